//! Merges the pieces of each interval of a tile.

use super::pieces::Pieces;
use super::workspace::Workspace;
use super::{THREADS, room};
use crate::KeyCode;
use crate::levels::device::payload::Payload;
use gpu_primitives::arch::thread;
use gpu_primitives::block::merge::{self, path};
use gpu_primitives::block::runs::{self as block, first_half};

impl<C: KeyCode, P: Payload, const ITEMS: usize> Workspace<C, P, ITEMS> {
    /// Merges the pieces of each interval. The elements are then at the beginning of `items`, interval by interval. Ends
    /// with a barrier.
    ///
    /// # Safety
    /// All threads of the block call it. The pieces were [loaded](Self::load).
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn merge(self, pieces: Pieces) {
        if pieces.count == 0 {
            return;
        }
        if let Some((table, log_pieces)) = pieces.few() {
            block::merge::<C, P, C::Order, THREADS, ITEMS, false>(
                self.items,
                room(ITEMS),
                table,
                log_pieces,
                pieces.log_per_interval,
                pieces.count,
                C::ORDER,
            );
        } else {
            self.merge_many(pieces);
        }
    }

    /// Merges many pieces: the form of [`block::merge`] for many short groups. Each thread makes `ITEMS` outputs, which
    /// may belong to several pairs of pieces.
    ///
    /// # Safety
    /// The requirements of [`merge`](Self::merge). There is at least one element.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn merge_many(self, pieces: Pieces) {
        let room = room(ITEMS);
        let own = thread::thread_idx_x() * ITEMS as u32;
        let last = pieces.count - 1;
        let mut from = first_half(pieces.log_per_interval, room);
        let mut round = 0;
        while round < pieces.log_per_interval {
            let items = self.items.slice(from, room);
            let merged = self.items.slice(room - from, room);
            if own < pieces.count {
                let mut pair = pieces.group(own, round + 1);
                let start = pieces.offset(pair << (round + 1));
                let mut a_end = pieces.offset((2 * pair + 1) << round);
                let mut end = pieces.offset((pair + 1) << (round + 1));
                let diagonal = own - start;
                let both = merge::Pieces { a: start, a_len: a_end - start, b: a_end, b_len: end - a_end };
                let share = path(|at| items.key(at as usize), both, diagonal, C::ORDER);
                let mut a = start + share;
                let mut b = a_end + diagonal - share;
                let (mut key_a, mut payload_a) = items.get(a.min(last) as usize);
                let (mut key_b, mut payload_b) = items.get(b.min(last) as usize);
                let mut at = own;
                // The bound is not a constant, so that the loop is not unrolled: that would only make the kernel longer.
                while at < (own + ITEMS as u32).min(pieces.count) {
                    if at == end {
                        while at == end {
                            pair += 1;
                            a = end;
                            a_end = pieces.offset((2 * pair + 1) << round);
                            end = pieces.offset((pair + 1) << (round + 1));
                        }
                        b = a_end;
                        (key_a, payload_a) = items.get(a as usize);
                        (key_b, payload_b) = items.get(b.min(last) as usize);
                    }
                    let takes_a = a < a_end && (b >= end || key_a <= key_b);
                    let (source, key, payload) = if takes_a { (a, key_a, payload_a) } else { (b, key_b, payload_b) };
                    merged.set(at as usize, key, payload);
                    let next = items.get((source + 1).min(last) as usize);
                    if takes_a {
                        a += 1;
                        (key_a, payload_a) = next;
                    } else {
                        b += 1;
                        (key_b, payload_b) = next;
                    }
                    at += 1;
                }
            }
            thread::sync_threads();
            from = room - from;
            round += 1;
        }
    }
}
