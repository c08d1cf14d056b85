//! Kernels that insert into a table as your own kernels would. Only tests use them.

use crate::{CuckooMut, Insertion};
use gpu_dictionary::WordCode as KeyCode;
use gpu_primitives::arch::{Order, Scope};
use gpu_primitives::kernel::kernel;
use gpu_primitives::{Global, GlobalMut, thread};

/// Threads per block.
pub const THREADS: u32 = 128;

/// Returns the value of a key that was counted once: the key and a one.
#[inline(always)]
pub fn counted_once<C: KeyCode>(key: C) -> u64 {
    (key.to_u64() << 32) | 1
}

/// Counts keys, and looks up others meanwhile. The upper half of each value is that of [`counted_once`].
///
/// # Safety
/// The launch has at least one thread per key. There are as many outcomes, which receive the [`Insertion`]s. `wrong` has one
/// element, to which the number of wrong answers is added. While the kernel runs, nobody else uses the table and the
/// outputs, and nobody writes the keys.
#[kernel(listed, threads = THREADS, native = crate::native::own::tally)]
pub unsafe fn tally<C: KeyCode, const WIDTH: usize>(
    keys: Global<C>,
    table: CuckooMut<C, u64, WIDTH>,
    outcomes: GlobalMut<u8>,
    wrong: GlobalMut<u32>,
) {
    let i = thread::block_idx_x() as usize * THREADS as usize + thread::thread_idx_x() as usize;
    if i >= keys.len() {
        return;
    }
    let key = keys.get(i);
    let outcome = table.upsert(key, counted_once(key), |old, _| old + 1);
    outcomes.set(i, outcome as u8);
    let other = keys.get((i * 7 + 3) % keys.len());
    let is_torn = table.get(other).is_some_and(|value| value >> 32 != counted_once(other) >> 32);
    let is_lost = (outcome == Insertion::Full) != table.get(key).is_none();
    if is_torn || is_lost {
        wrong.atomic_add(0, 1, Scope::Gpu, Order::Relaxed);
    }
}

/// Inserts keys into a set and into a table of positions, as far as there is room.
///
/// # Safety
/// The launch has at least one thread per key. While the kernel runs, nobody else uses the tables, and nobody writes the
/// keys.
#[kernel(listed, threads = THREADS, native = crate::native::own::enrol)]
pub unsafe fn enrol(keys: Global<u32>, set: CuckooMut<u32, ()>, positions: CuckooMut<u32, u32>, new: GlobalMut<u32>) {
    let i = thread::block_idx_x() as usize * THREADS as usize + thread::thread_idx_x() as usize;
    if i < keys.len() {
        let is_new = set.insert(keys.get(i), ()) == Insertion::New;
        let is_new_there = positions.insert(keys.get(i), i as u32) == Insertion::New;
        new.atomic_add(0, is_new as u32, Scope::Gpu, Order::Relaxed);
        new.atomic_add(1, is_new_there as u32, Scope::Gpu, Order::Relaxed);
    }
}

gpu_primitives::instances! {
    static in concat!(env!("CARGO_MANIFEST_DIR"), "/ptx");
    for C in [u32, u64], WIDTH in [4, 8]: Tally<C, WIDTH>;
    Enrol;
}
