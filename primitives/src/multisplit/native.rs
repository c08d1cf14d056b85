//! The body of the kernel that computes bucket numbers for the CPU. See [`kernel`](super::device) for what it does and for its
//! contract.

#![deny(unsafe_op_in_unsafe_fn)]

use super::device::NumberKeys;
use crate::block::native::part_mut;
use crate::buckets::Buckets as _;
use crate::hole::RegisterRepr;
use crate::kernel::Team;
use std::ops::Range;

/// # Safety
/// The contract of [`number_keys`](super::device::NumberKeys).
pub(super) unsafe fn number_keys<H: RegisterRepr>(kernel: NumberKeys<H>, team: Team) {
    let NumberKeys { keys, buckets, numbers, .. } = kernel;
    // SAFETY: nothing writes the keys.
    let keys = unsafe { keys.as_slice() };
    let number: &dyn Fn(usize, Range<usize>) = &|_, range| {
        // SAFETY: there are as many numbers as keys, and no other call has these.
        buckets.buckets(&keys[range.clone()], 0, unsafe { part_mut(numbers, range) });
    };
    // SAFETY: the body captures arguments. Each call writes numbers of its own.
    unsafe { team.divide(keys.len(), number) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::native::tests::{compare, random};
    use crate::buckets::{Bucket, HoleBuckets, Shift};
    use bytemuck::Pod;

    fn numbered<K: Pod, H: RegisterRepr>(shift: Shift, of: impl Fn(u64) -> H)
    where
        Shift: Bucket<K>,
    {
        for len in [1, 255, 256, 257, (3 << 13) + 1] {
            compare(&format!("{len} keys"), |stream| {
                let keys = stream.upload(&random(len).map(&of).collect::<Vec<_>>()).unwrap();
                let mut numbers = stream.uninit::<u32>(len).unwrap();
                let buckets = HoleBuckets::of::<K, Shift>(shift, 200);
                let (from, to) = (keys.raw_view(stream).unwrap(), numbers.raw_view_mut(stream).unwrap());
                // SAFETY: one thread per key, and as many numbers.
                unsafe { stream.launch(NumberKeys::<H>::new(from, buckets, to), len.div_ceil(256)).unwrap() };
                numbers.to_vec(stream).unwrap()
            });
        }
    }

    #[test]
    fn numbers_are_those_of_the_threads() {
        numbered::<u16, _>(Shift::by(6), |x| x as u16);
        numbered::<u128, _>(Shift::by(120), |x| [!x, x]);
    }
}
