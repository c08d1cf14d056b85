//! The kernel that copies the values of all elements in intervals, live or not: for a dictionary that keeps all values of a
//! key.

use crate::KeyCode;
use crate::levels::device::find::Levels;
use crate::levels::device::table::THREADS;
use bytemuck::Pod;
use gpu_primitives::arch::thread;
use gpu_primitives::arch::warp::{LANES, lane_id, warp_id};
use gpu_primitives::code::U256;
use gpu_primitives::kernel::kernel;
use gpu_primitives::view::{Global, GlobalMut};

/// Returns how many intervals a block copies: one per warp.
pub const GATHER_INTERVALS: usize = (THREADS / LANES) as usize;

/// Copies the values in the windows of each interval, from the oldest level to the newest, to `offsets[i]` and on. Values
/// for which there is no room are left out.
///
/// Cost: reads and writes each value once, 32 at a time; reads 8 bytes per interval and level. A warp copies an interval, so a
/// very long one takes longer than many short ones.
///
/// # Safety
/// - The launch has a warp per interval. There are as many offsets as intervals, or more.
/// - `windows` is what [`FindWindows`](super::windows::FindWindows) has found for these levels and `log_pieces`, with at least
///   as many pieces as levels.
/// - While the kernel runs, nobody changes the levels or writes the inputs, and nobody else uses the output.
#[kernel(listed, threads = THREADS, native = crate::levels::native::gather_windows)]
pub unsafe fn gather_windows<C: KeyCode, V: Pod>(
    levels: Levels<C, V>,
    windows: Global<u32>,
    log_pieces: u32,
    offsets: Global<u64>,
    out: GlobalMut<V>,
) {
    let interval = thread::block_idx_x() as usize * GATHER_INTERVALS + warp_id() as usize;
    let pieces = 1usize << log_pieces;
    if interval >= windows.len() / (2 * pieces) {
        return;
    }
    let mut to = offsets.get(interval) as usize;
    let mut slots = levels.occupied();
    let mut piece = 0;
    while slots != 0 {
        let slot = u32::BITS - 1 - slots.leading_zeros();
        slots ^= 1 << slot;
        let window = 2 * (interval * pieces + piece);
        let (start, len) = (windows.get(window), windows.get(window + 1));
        piece += 1;
        let level = levels.level(slot);
        let mut at = lane_id();
        while at < len {
            if to + (at as usize) < out.len() {
                out.set(to + at as usize, level.value(start + at));
            }
            at += LANES;
        }
        to += len as usize;
    }
}

gpu_primitives::instances! {
    static in concat!(env!("CARGO_MANIFEST_DIR"), "/ptx");
    for C in [u32, u64, u128, U256], V in [u32, u64]: GatherWindows<C, V>;
}
