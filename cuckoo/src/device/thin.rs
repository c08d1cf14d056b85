//! Thins out the tiles of a build that have too many pairs, because some keys are repeated very often.
//!
//! One block builds a tile. If a key occurs a million times, this block would work through a million pairs while all
//! others have finished. So before that, many blocks remove repeated keys from such tiles, each from one *chunk*.

use super::tile::TileDigits;
use bytemuck::Pod;
use gpu_dictionary::WordCode as KeyCode;
use gpu_primitives::arch::Rmw;
use gpu_primitives::block::warp::{inclusive_scan, shuffle_up};
use gpu_primitives::kernel::{PairsMut, kernel};
use gpu_primitives::scan::Sum;
use gpu_primitives::view::shared_bytes;
use gpu_primitives::{Global, GlobalMut, Shared, SharedMemory, thread, warp};

/// The number of pairs in a chunk.
pub const CHUNK: usize = 4096;
/// A tile with more pairs than this is thinned out. It has repeated keys, or more keys than a tile can take.
pub const LONG_TILE: usize = 2 * CHUNK;

/// Threads per block.
const THREADS: u32 = 256;
/// The number of entries of the block's hash table.
const ENTRIES: usize = 2 * CHUNK;
/// The number of words with a bit per pair of the chunk: one per thread of four warps.
const WORDS: usize = CHUNK / 32;
/// The number of warps that add up the words.
const SCANNING_WARPS: usize = WORDS / warp::LANES as usize;

/// Removes all pairs but the last one of each key from the chunks of long tiles. The pairs that are left move to the
/// beginning of the chunk, in their order.
///
/// A block looks at the first and the last key of its chunk. If they are in different tiles, or in one that is not long,
/// it is done. Otherwise it finds the last position of each key in a hash table of positions.
///
/// Floor: two keys and two starts per chunk. For the chunks of long tiles, their keys twice, and the pairs that are left.
///
/// # Safety
/// - The launch has one block per chunk of the pairs, which are sorted by tile.
/// - `starts` says where each tile begins and where the last one ends.
/// - `kept` has one element per chunk, which receives the number of pairs that are left.
/// - While the kernel runs, nobody writes `starts`, and nobody else uses the other buffers.
#[kernel(
    listed = super::THIN_TILES_PTX,
    threads = THREADS,
    shared = shared_bytes::<u32>(ENTRIES) + shared_bytes::<u32>(WORDS) + shared_bytes::<u32>(WORDS) + shared_bytes::<u32>(SCANNING_WARPS),
    native = crate::native::tile::thin_tiles
)]
pub unsafe fn thin_tiles<C: KeyCode, V: Pod>(
    pairs: PairsMut<C, V>,
    starts: Global<u32>,
    digits: TileDigits,
    kept: GlobalMut<u32>,
) {
    let mut memory = SharedMemory::new();
    // 0, or a position in the chunk plus one.
    let entries = memory.take::<u32>(ENTRIES);
    // A bit for each pair that is left, and how many there are in the earlier words of the same warp.
    let left = memory.take::<u32>(WORDS);
    let ranks = memory.take::<u32>(WORDS);
    let totals = memory.take::<u32>(SCANNING_WARPS);

    let thread = thread::thread_idx_x() as usize;
    let chunk = thread::block_idx_x() as usize;
    let start = chunk * CHUNK;
    let len = (pairs.keys.len() - start).min(CHUNK);
    let keys = pairs.keys.slice(start, len);
    let tile = digits.tile(keys.get(0));
    let is_long = digits.tile(keys.get(len - 1)) == tile
        && (starts.get(tile as usize + 1) - starts.get(tile as usize)) as usize > LONG_TILE;
    if !is_long {
        if thread == 0 {
            kept.set(chunk, len as u32);
        }
        return;
    }

    let mut entry = thread;
    while entry < ENTRIES {
        entries.set(entry, 0);
        entry += THREADS as usize;
    }
    if thread < WORDS {
        left.set(thread, 0);
    }
    thread::sync_threads();

    // From the end, so that most repeated keys find a later position.
    let mut done = 0;
    while done < len {
        let exists = done + thread < len;
        let position = if exists { len - 1 - done - thread } else { 0 };
        let key = if exists { keys.get(position) } else { C::MIN };
        // The lane below has the next position.
        let next = shuffle_up(key, 1);
        let gives_way = warp::lane_id() != 0 && next == key;
        if exists && !gives_way {
            note_last(entries, keys, digits.spread(key) as usize % ENTRIES, key, position as u32 + 1);
        }
        done += THREADS as usize;
    }
    thread::sync_threads();

    let mut entry = thread;
    while entry < ENTRIES {
        let there = entries.get(entry) as usize;
        if there != 0 {
            left.atomic_rmw(Rmw::Or, (there - 1) / 32, 1 << ((there - 1) % 32));
        }
        entry += THREADS as usize;
    }
    thread::sync_threads();
    if thread < WORDS {
        let count = left.get(thread).count_ones();
        let sum = inclusive_scan(count, Sum);
        ranks.set(thread, sum - count);
        if warp::lane_id() == warp::LANES - 1 {
            totals.set(warp::warp_id() as usize, sum);
        }
    }
    thread::sync_threads();

    // A pair moves to an earlier position or stays, and every round reads its pairs before it writes any.
    let mut done = 0;
    while done < len {
        let position = done + thread;
        let is_left = position < len && (left.get(position / 32) >> (position % 32)) & 1 != 0;
        let (mut key, mut value) = (C::MIN, V::zeroed());
        let mut rank = 0;
        if is_left {
            key = keys.get(position);
            value = pairs.values.get(start + position);
            let word = position / 32;
            rank = ranks.get(word) + (left.get(word) & ((1 << (position % 32)) - 1)).count_ones();
            for earlier in 0..SCANNING_WARPS {
                if earlier < word / warp::LANES as usize {
                    rank += totals.get(earlier);
                }
            }
        }
        thread::sync_threads();
        if is_left {
            pairs.set(start + rank as usize, key, value);
        }
        done += THREADS as usize;
    }
    if thread == 0 {
        let mut sum = 0;
        for earlier in 0..SCANNING_WARPS {
            sum += totals.get(earlier);
        }
        kept.set(chunk, sum);
    }
}

/// Notes, in a table of positions, the last position of a key: `mine`, unless a later one is there. The search begins at an entry.
///
/// # Safety
/// `mine` is the position of the key plus one, and so is what the other entries hold. There are more entries than keys, so it ends.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
unsafe fn note_last<C: KeyCode>(entries: Shared<u32>, keys: GlobalMut<C>, mut entry: usize, key: C, mine: u32) {
    loop {
        let mut there = entries.atomic_load(entry);
        if there == 0 {
            there = entries.compare_exchange(entry, 0, mine);
            if there == 0 {
                break;
            }
        }
        if keys.get(there as usize - 1) == key {
            if there < mine {
                entries.atomic_rmw(Rmw::Max, entry, mine);
            }
            break;
        }
        entry = (entry + 1) % ENTRIES;
    }
}
