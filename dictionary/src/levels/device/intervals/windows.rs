//! The kernel that finds the part of each level that lies in an interval.

use crate::KeyCode;
use crate::levels::device::find::Levels;
use crate::levels::device::table::THREADS;
use crate::levels::device::tiles::LEAST_PER_PIECE;
use gpu_primitives::arch::thread;
use gpu_primitives::code::U256;
use gpu_primitives::kernel::kernel;
use gpu_primitives::view::{Global, GlobalMut};

/// Finds, for each interval of keys from `low` to `high`, both inclusive, the window of each level within it.
///
/// `windows` receives, per interval, `1 << log_pieces` pieces of two words: the first element of the window and its
/// length. The levels come oldest first. The pieces after the last level are empty.
///
/// If `left` is not empty, the windows of an interval for which it has a zero are empty.
///
/// `weights` receives the total length of the windows of each interval, but at least twice `1 << log_pieces`, and a
/// zero in one more element. The tiles are cut by these weights. `overlapping` receives the total length itself, and a
/// zero in one more element if it has one. Empty outputs are not written.
///
/// Cost: two searches per interval and level.
///
/// # Safety
/// - The launch has at least one thread per interval, and one more.
/// - `high` is as long as `low`. `left` is as long, or empty.
/// - Outputs that are not empty have room for what they receive: `windows`, at a multiple of 8 bytes, for two words per
///   interval and piece, and the others for one element per interval.
/// - While the kernel runs, nobody changes the levels or writes the intervals, and nobody else uses the outputs.
#[kernel(listed, threads = THREADS, native = crate::levels::native::find_windows)]
pub unsafe fn find_windows<C: KeyCode>(
    levels: Levels<C, ()>,
    low: Global<C>,
    high: Global<C>,
    left: Global<u64>,
    log_pieces: u32,
    windows: GlobalMut<u32>,
    weights: GlobalMut<u64>,
    overlapping: GlobalMut<u64>,
) {
    let at = thread::block_idx_x() as usize * THREADS as usize + thread::thread_idx_x() as usize;
    if at == low.len() {
        if at < weights.len() {
            weights.set(at, 0);
        }
        if at < overlapping.len() {
            overlapping.set(at, 0);
        }
    }
    if at >= low.len() {
        return;
    }
    let pieces = 1usize << log_pieces;
    let is_asked = left.is_empty() || left.get(at) > 0;
    let (low, high) = (levels.sign().encode(low.get(at)), levels.sign().encode(high.get(at)));
    let mut total = 0u64;
    let mut slots = levels.occupied();
    for piece in 0..pieces {
        let (mut start, mut len) = (0, 0);
        if slots != 0 {
            let slot = u32::BITS - 1 - slots.leading_zeros();
            slots ^= 1 << slot;
            if is_asked && low <= high {
                let level = levels.level(slot);
                start = level.count_before(low, false);
                len = level.count_before(high, true) - start;
            }
        }
        if !windows.is_empty() {
            windows.store_vec::<2>(2 * (at * pieces + piece), [start, len], gpu_primitives::arch::Cache::Default);
        }
        total += len as u64;
    }
    if !weights.is_empty() {
        let least = (pieces * LEAST_PER_PIECE) as u64;
        weights.set(at, if total > least { total } else { least });
    }
    if !overlapping.is_empty() {
        overlapping.set(at, total);
    }
}

gpu_primitives::instances! {
    static in concat!(env!("CARGO_MANIFEST_DIR"), "/ptx");
    for C in [u32, u64, u128, U256]: FindWindows<C>;
}
