//! The state of a sequence of runs that is cut anywhere: how many runs begin in a part, and what the last one has so far.

use crate::form::{Holes, Param};
use crate::monoid::Combine;
use bytemuck::{Pod, Zeroable};

/// A part of the input: the number of runs that begin in it, and the total of its items from the last beginning on. If no
/// run begins in it, that is the total of all its items.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Open<V> {
    /// The total of the run that is open at the end.
    pub total: V,
    /// The number of runs that begin, as two words: a `u64` would leave padding after some totals.
    heads: [u32; 2],
}

// SAFETY: plain data.
unsafe impl<V: Pod> Zeroable for Open<V> {}
// SAFETY: there is no padding, as `new` checks: no other function creates one from its parts.
unsafe impl<V: Pod> Pod for Open<V> {}

impl<V: Pod> Open<V> {
    /// Creates a part in which `heads` runs begin.
    #[inline(always)]
    pub fn new(heads: u64, total: V) -> Self {
        const { assert!(size_of::<Self>() == size_of::<V>() + 8, "no padding") };
        Self { total, heads: [heads as u32, (heads >> 32) as u32] }
    }

    /// Returns the number of runs that begin.
    #[inline(always)]
    pub fn heads(self) -> u64 {
        (self.heads[1] as u64) << 32 | self.heads[0] as u64
    }
}

/// Joins neighbouring parts. The totals are combined by another operation.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Join<Op>(pub Op);

// SAFETY: `repr(C)` around a parameter.
unsafe impl<Op: Param> Param for Join<Op> {
    const HOLES: Holes = Op::HOLES;
}

impl<V: Pod, Op: Combine<V>> Combine<Open<V>> for Join<Op> {
    #[inline(always)]
    fn identity(&self) -> Open<V> {
        Open::new(0, self.0.identity())
    }

    #[inline(always)]
    fn combine(&self, a: Open<V>, b: Open<V>) -> Open<V> {
        let together = self.0.combine(a.total, b.total);
        Open::new(a.heads() + b.heads(), if b.heads() > 0 { b.total } else { together })
    }
}
