//! The kernel that finds the elements of a level that are not among others.

use crate::KeyCode;
use crate::levels::device::table::THREADS;
use bytemuck::Pod;
use gpu_primitives::arch::thread;
use gpu_primitives::code::U256;
use gpu_primitives::kernel::Pairs;
use gpu_primitives::kernel::kernel;
use gpu_primitives::view::GlobalMut;

/// Sets a flag to 0 for each element that is among the others, and to 1 for each that is not. If the others have no values,
/// keys are compared; otherwise keys and values.
///
/// Cost: reads each element once, and writes a byte; a binary search in the others, which are few and mostly in the cache.
///
/// # Safety
/// - The launch has at least one thread per element. There are as many flags.
/// - The keys of the others ascend, and the values of equal keys. There are as many values as keys, or none.
/// - While the kernel runs, nobody writes the elements, and nobody else uses the flags.
#[kernel(listed, threads = THREADS, native = crate::levels::native::flag_others)]
pub unsafe fn flag_others<C: KeyCode, V: Pod + Ord>(elements: Pairs<C, V>, others: Pairs<C, V>, flags: GlobalMut<u8>) {
    let at = thread::block_idx_x() as usize * THREADS as usize + thread::thread_idx_x() as usize;
    if at >= elements.keys.len() {
        return;
    }
    let by_value = size_of::<V>() > 0 && !others.values.is_empty();
    let key = elements.keys.get(at);
    let value = if by_value { elements.values.get(at) } else { V::zeroed() };
    let (mut low, mut high) = (0, others.keys.len());
    let mut is_among = false;
    while low < high {
        let middle = low + (high - low) / 2;
        let other = others.keys.get(middle);
        let other_value = if by_value { others.values.get(middle) } else { V::zeroed() };
        is_among |= other == key && other_value == value;
        if other < key || other == key && other_value < value {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    flags.set(at, u8::from(!is_among));
}

gpu_primitives::instances! {
    static in concat!(env!("CARGO_MANIFEST_DIR"), "/ptx");
    for C in [u32, u64, u128, U256], V in [(), u32, u64]: FlagOthers<C, V>;
}
