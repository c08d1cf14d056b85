//! Growth: doubles the number of buckets without sorting the pairs again.

use super::append::{Appender, appender_shared};
use super::probe::{THREADS, index};
use crate::view::{CuckooView, TableMut, key_index, value_index};
use bytemuck::Pod;
use gpu_dictionary::WordCode as KeyCode;
use gpu_primitives::kernel::{PairsMut, kernel};
use gpu_primitives::{GlobalMut, SharedMemory, warp};

/// Copies a table to one with the same hash functions and twice as many buckets.
///
/// A key's bucket is a fraction of the number of buckets, rounded down. With twice as many buckets, the keys of bucket
/// `b` belong to the buckets `2b` and `2b + 1`, so a group of threads that reads one bucket writes two. Keys in their first
/// bucket stay in their first bucket, and there is room for them. The other keys may find free slots in earlier buckets
/// now, so they are appended to `moved` and are to be inserted again.
///
/// Floor per key of 4 + 4 bytes at load 0.95: 8.4 bytes read, 16.8 written, all in order; and 16 for each of the 30 % that
/// move.
///
/// # Safety
/// - The launch has at least one thread per slot of `from`.
/// - `to` has the hash functions of `from` with twice as many buckets.
/// - `moved` has room for all pairs that are not in the first bucket of their key. `moved_count` has one element, zero
///   before and their number after.
/// - While the kernel runs, nobody changes `from`, and nobody else uses the other buffers.
#[kernel(listed = super::SPLIT_PTX, threads = THREADS, shared = appender_shared(), native = crate::native::slots::split)]
pub unsafe fn split<C: KeyCode, V: Pod, const WIDTH: usize>(
    from: CuckooView<C, V, WIDTH>,
    to: TableMut<C, V, WIDTH>,
    moved: PairsMut<C, V>,
    moved_count: GlobalMut<u64>,
) {
    let mut memory = SharedMemory::new();
    let appender = Appender::new(&mut memory);
    let i = index();
    let (bucket, slot) = ((i / WIDTH) as u32, i % WIDTH);
    let exists = i / WIDTH < from.map.hash.buckets as usize;
    let (mut key, mut value) = (C::MIN, V::zeroed());
    let mut is_live = false;
    if exists {
        key = from.key(bucket, slot);
        is_live = key != from.map.empty.of(bucket) && key != from.map.dead.of(bucket);
        if is_live {
            value = from.value(bucket, slot);
        }
    }
    let stays = is_live && from.map.hash.choices(key).get(0) == bucket;
    let target = to.map.hash.choices(key).get(0);
    // The slots of this bucket are neighbouring lanes.
    let shift = warp::lane_id() / WIDTH as u32 * WIDTH as u32;
    let group = (1u32 << WIDTH) - 1;
    let lower = (warp::ballot(warp::FULL, stays && target & 1 == 0) >> shift) & group;
    let upper = (warp::ballot(warp::FULL, stays && target & 1 == 1) >> shift) & group;
    if exists {
        if stays {
            let earlier = (1u32 << slot) - 1;
            let rank = (if target & 1 == 0 { lower } else { upper } & earlier).count_ones();
            write(to, target, rank as usize, key, value);
        }
        if slot >= lower.count_ones() as usize {
            write(to, 2 * bucket, slot, to.map.empty.of(2 * bucket), V::zeroed());
        }
        if slot >= upper.count_ones() as usize {
            write(to, 2 * bucket + 1, slot, to.map.empty.of(2 * bucket + 1), V::zeroed());
        }
    }
    let moves = is_live && !stays;
    let position = appender.reserve(moved_count, moves);
    if moves {
        moved.set(position, key, value);
    }
}

/// Writes a slot.
///
/// # Safety
/// The slot exists, and no other thread uses it.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
unsafe fn write<C: KeyCode, V: Pod, const WIDTH: usize>(
    table: TableMut<C, V, WIDTH>,
    bucket: u32,
    slot: usize,
    key: C,
    value: V,
) {
    table.keys.set(key_index::<C, V>(WIDTH, bucket) + slot, key);
    table.values.set(value_index::<C, V>(WIDTH, bucket) + slot, value);
}
