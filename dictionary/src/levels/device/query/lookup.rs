//! The lookup kernel.

use crate::KeyCode;
use crate::levels::device::find::Levels;
use crate::levels::device::table::THREADS;
use bytemuck::Pod;
use gpu_primitives::arch::thread;
use gpu_primitives::code::U256;
use gpu_primitives::kernel::kernel;
use gpu_primitives::view::{Global, GlobalMut};

/// Returns the number of blocks per multiprocessor; 0 leaves it to `ptxas`, which would spill registers for wide keys.
const fn min_blocks<C>() -> u32 {
    if size_of::<C>() > 16 { 4 } else { 0 }
}

/// Looks up keys. Sets `found` to 1 for each key that is present and to 0 for each that is absent. Unless `values` is
/// empty, writes the value of each present key, and zero for each absent one.
///
/// Cost: see [`Levels::get`].
///
/// # Safety
/// The launch has at least one thread per key. `found` is as long as `keys`. `values` is as long as `keys`, or empty.
/// While the kernel runs, nobody changes the levels or writes the keys, and nobody else uses the outputs.
#[kernel(listed, threads = THREADS, min_blocks = min_blocks::<C>(), native = crate::levels::native::lookup_keys)]
pub unsafe fn lookup_keys<C: KeyCode, V: Pod>(
    levels: Levels<C, V>,
    keys: Global<C>,
    values: GlobalMut<V>,
    found: GlobalMut<u8>,
) {
    let at = thread::block_idx_x() as usize * THREADS as usize + thread::thread_idx_x() as usize;
    if at < keys.len() {
        let value = levels.get(keys.get(at));
        found.set(at, u8::from(value.is_some()));
        if size_of::<V>() > 0 && !values.is_empty() {
            values.set(at, value.unwrap_or(V::zeroed()));
        }
    }
}

gpu_primitives::instances! {
    static in concat!(env!("CARGO_MANIFEST_DIR"), "/ptx");
    for C in [u32, u64, u128, U256], V in [(), u32, u64]: LookupKeys<C, V>;
}
