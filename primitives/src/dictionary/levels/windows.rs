//! The kernel that finds what an interval takes of each level.

use super::find::Levels;
use super::table::THREADS;
use super::tiles::LEAST_PER_PIECE;
use crate::arch::thread;
use crate::dictionary::KeyCode;
use crate::kernel::kernel;
use crate::view::{Global, GlobalMut};

/// Finds, for each interval of keys from `low` to `high`, both included, and each level, the oldest first, the first element
/// within it and how many there are: two words in `windows` per `1 << log_pieces` pieces, those beyond the levels being empty.
///
/// `weights` gets the number of all of them, or twice `1 << log_pieces` if there are fewer, and in one more element zero: what the
/// tiles are cut by. `candidates` gets the number itself, and zero in one more element if it has one. Outputs that are empty
/// are not written.
///
/// Cost: two searches per interval and level.
///
/// # Safety
/// The launch has at least one thread per interval, and one more. `high` is as long as `low`. Outputs that are not
/// empty have room for what they get: `windows`, at a multiple of 8 bytes, for two words per interval and piece, the
/// others for an element per interval. Nobody changes the levels or writes the intervals, and nobody else uses the
/// outputs, while the kernel runs.
#[kernel(threads = THREADS)]
pub unsafe fn find_windows<C: KeyCode>(
    levels: Levels<C, ()>,
    low: Global<C>,
    high: Global<C>,
    log_pieces: u32,
    windows: GlobalMut<u32>,
    weights: GlobalMut<u64>,
    candidates: GlobalMut<u64>,
) {
    let at = thread::block_idx_x() as usize * THREADS as usize + thread::thread_idx_x() as usize;
    if at == low.len() {
        if at < weights.len() {
            weights.set(at, 0);
        }
        if at < candidates.len() {
            candidates.set(at, 0);
        }
    }
    if at >= low.len() {
        return;
    }
    let pieces = 1usize << log_pieces;
    let (low, high) = (levels.sign().encode(low.get(at)), levels.sign().encode(high.get(at)));
    let mut total = 0u64;
    let mut slots = levels.occupied();
    for piece in 0..pieces {
        let (mut start, mut len) = (0, 0);
        if slots != 0 {
            let slot = u32::BITS - 1 - slots.leading_zeros();
            slots ^= 1 << slot;
            if low <= high {
                let level = levels.level(slot);
                start = level.count_before(low, false);
                len = level.count_before(high, true) - start;
            }
        }
        if !windows.is_empty() {
            windows.store_vec::<2>(2 * (at * pieces + piece), [start, len], crate::arch::Cache::Default);
        }
        total += len as u64;
    }
    if !weights.is_empty() {
        let least = (pieces * LEAST_PER_PIECE) as u64;
        weights.set(at, if total > least { total } else { least });
    }
    if !candidates.is_empty() {
        candidates.set(at, total);
    }
}

crate::instances! {
    in concat!(env!("CARGO_MANIFEST_DIR"), "/ptx");
    levels_windows_u32: FindWindows<u32>;
    levels_windows_u64: FindWindows<u64>;
}
