//! Finds the live elements of a merged tile, counts them, and compacts them.
//!
//! Each thread examines `ITEMS` consecutive elements. An element is live if the next one has a different key, because
//! the newest comes last, and if it is not a tombstone.

use super::pieces::Pieces;
use super::workspace::Workspace;
use super::{THREADS, room};
use crate::KeyCode;
use crate::levels::device::payload::Payload;
use gpu_primitives::block::runs::Items;
use gpu_primitives::block::scan;
use gpu_primitives::monoid::Sum;
use gpu_primitives::view::{Shared, SharedMemory, shared_bytes};

/// Shared memory that says which elements are live.
#[derive(Clone, Copy)]
pub struct LiveTable {
    /// For each thread, which of its elements are live: one bit each.
    bits: Shared<u32>,
    /// For each thread, how many live elements precede its own.
    before: Shared<u32>,
}

impl LiveTable {
    /// The size in bytes.
    pub const BYTES: usize = 2 * shared_bytes::<u32>(THREADS as usize);

    /// Takes memory for the table.
    ///
    /// # Safety
    /// Same as [`SharedMemory::take`].
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn take(memory: &mut SharedMemory) -> Self {
        Self { bits: memory.take(THREADS as usize), before: memory.take(THREADS as usize) }
    }
}

/// The live elements of a tile, as one thread knows them.
#[derive(Clone, Copy)]
pub struct Live<const ITEMS: usize> {
    table: LiveTable,
    /// Which of the thread's elements are live.
    bits: u32,
    /// How many live elements precede the thread's.
    before: u32,
    /// The number of live elements in the tile.
    pub total: u32,
}

impl<const ITEMS: usize> Live<ITEMS> {
    /// Returns how many live elements precede element `at` of the tile.
    ///
    /// # Safety
    /// A barrier followed [`Workspace::find_live`].
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn before(self, at: u32) -> u32 {
        let thread = at / ITEMS as u32;
        if thread >= THREADS {
            return self.total;
        }
        let earlier = self.table.bits.get(thread as usize) & ((1 << (at % ITEMS as u32)) - 1);
        self.table.before.get(thread as usize) + earlier.count_ones()
    }
}

impl<C: KeyCode, P: Payload, const ITEMS: usize> Workspace<C, P, ITEMS> {
    /// Finds and counts the live elements of the tile. A barrier must come before [`Live::before`].
    ///
    /// # Safety
    /// All threads of the block call it; `own` is the thread. The pieces were [merged](Self::merge). Nobody uses `table`
    /// since the last barrier.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn find_live(self, own: u32, pieces: Pieces, table: LiveTable) -> Live<ITEMS> {
        let bits = self.live_bits(own, pieces);
        let local = scan::exclusive_scan::<u32, Sum, THREADS>(bits.count_ones(), Sum, self.warp_totals);
        table.bits.set(own as usize, bits);
        table.before.set(own as usize, local.before);
        Live { table, bits, before: local.before, total: local.total }
    }

    /// Returns which of the thread's elements are live: one bit each.
    ///
    /// # Safety
    /// The pieces were [merged](Self::merge).
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn live_bits(self, own: u32, pieces: Pieces) -> u32 {
        let begin = own * ITEMS as u32;
        if begin >= pieces.count {
            return 0;
        }
        let mut bits = 0;
        let mut interval = pieces.group(begin, pieces.log_per_interval);
        let mut end = pieces.interval(interval + 1);
        let (mut key, mut payload) = self.items.get(begin as usize);
        let mut at = begin;
        // Not unrolled, as in the merge of many pieces.
        while at < (begin + ITEMS as u32).min(pieces.count) {
            let (next_key, next_payload) = self.items.get((at + 1).min(pieces.count - 1) as usize);
            let mut is_newest = next_key != key;
            if at + 1 == end {
                // The next element is in another interval or, if this interval is the last one, in another tile.
                is_newest = interval < pieces.intervals - 1 || !self.next_key.is(key);
                while at + 1 == end && interval < pieces.intervals - 1 {
                    interval += 1;
                    end = pieces.interval(interval + 1);
                }
            }
            bits |= u32::from(is_newest && !payload.is_dead()) << (at - begin);
            (key, payload) = (next_key, next_payload);
            at += 1;
        }
        bits
    }

    /// Moves the live elements together and returns them. A barrier must come before they are read.
    ///
    /// # Safety
    /// All threads of the block call it; `own` is the thread. `live` is what [`find_live`](Self::find_live) has returned
    /// for these pieces.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn compact(self, own: u32, pieces: Pieces, live: Live<ITEMS>) -> Items<C, P> {
        let room = room(ITEMS);
        // If all elements are live, they are already compact.
        let is_compact = live.total == pieces.count;
        if !is_compact {
            let compacted = self.items.slice(room, room);
            let (mut index, mut bits) = (live.before, live.bits);
            while bits != 0 {
                let (key, payload) = self.items.get((own * ITEMS as u32 + bits.trailing_zeros()) as usize);
                compacted.set(index as usize, key, payload);
                index += 1;
                bits &= bits - 1;
            }
        }
        self.items.slice(if is_compact { 0 } else { room }, room)
    }
}
