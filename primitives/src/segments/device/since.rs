//! Values that restart at the heads of segments.

use crate::arch::warp::{FULL, ballot, lane_id, lane_mask_le};
use crate::block::warp;
use crate::form::{Holes, Param};
use crate::hole::RegisterRepr;
use crate::monoid::Combine;
use bytemuck::Pod;
use core::marker::PhantomData;

/// An element that can be joined with a flag.
pub trait Flagged: RegisterRepr {
    /// The combination of elements since the last head among them, and whether there is a head: plain data without padding.
    type Since: Pod;

    /// Joins a value and the flag.
    fn since(self, starts: bool) -> Self::Since;

    /// Returns the value and the flag.
    fn parts(since: Self::Since) -> (Self, bool);
}

macro_rules! flagged {
    ($($type:ty, $since:ty: |$value:ident, $flag:ident| $join:expr, |$joined:ident| $parts:expr;)*) => { $(
        impl Flagged for $type {
            type Since = $since;

            #[inline(always)]
            fn since(self, starts: bool) -> $since {
                let ($value, $flag) = (self, starts as u32);
                $join
            }

            #[inline(always)]
            fn parts($joined: $since) -> ($type, bool) {
                $parts
            }
        }
    )* };
}

/// Returns a number of 64 bits as two words, the lower one first.
#[inline(always)]
const fn split(x: u64) -> [u32; 2] {
    [x as u32, (x >> 32) as u32]
}

/// Returns the number of two words.
#[inline(always)]
const fn join(low: u32, high: u32) -> u64 {
    low as u64 | (high as u64) << 32
}

flagged! {
    u8, u16: |x, flag| x as u16 | (flag as u16) << 8, |s| (s as u8, s >> 8 != 0);
    u16, u32: |x, flag| x as u32 | flag << 16, |s| (s as u16, s >> 16 != 0);
    u32, [u32; 2]: |x, flag| [x, flag], |s| (s[0], s[1] != 0);
    u64, [u32; 3]: |x, flag| { let [a, b] = split(x); [a, b, flag] }, |s| (join(s[0], s[1]), s[2] != 0);
    [u32; 3], [u32; 4]: |x, flag| [x[0], x[1], x[2], flag], |s| ([s[0], s[1], s[2]], s[3] != 0);
    [u64; 2], [u32; 5]: |x, flag| {
        let ([a, b], [c, d]) = (split(x[0]), split(x[1]));
        [a, b, c, d, flag]
    }, |s| ([join(s[0], s[1]), join(s[2], s[3])], s[4] != 0);
    [u64; 4], [u32; 9]: |x, flag| {
        let ([a, b], [c, d]) = (split(x[0]), split(x[1]));
        let ([e, f], [g, h]) = (split(x[2]), split(x[3]));
        [a, b, c, d, e, f, g, h, flag]
    }, |s| ([join(s[0], s[1]), join(s[2], s[3]), join(s[4], s[5]), join(s[6], s[7])], s[8] != 0);
}

/// The operation on [`Flagged::Since`]: what comes before a head is forgotten. It is associative if `Op` is.
#[derive(Clone, Copy, Debug)]
pub struct Restart<H, Op> {
    op: Op,
    elements: PhantomData<H>,
}

impl<H, Op> Restart<H, Op> {
    /// The operation that restarts `op`.
    #[inline(always)]
    pub const fn new(op: Op) -> Self {
        Self { op, elements: PhantomData }
    }
}

// SAFETY: the only field with a size is a parameter. Kernels make it themselves; it is never passed to one.
unsafe impl<H: Pod, Op: Param> Param for Restart<H, Op> {
    const HOLES: Holes = Op::HOLES;
}

impl<H: Flagged, Op: Combine<H>> Combine<H::Since> for Restart<H, Op> {
    #[inline(always)]
    fn identity(&self) -> H::Since {
        self.op.identity().since(false)
    }

    #[inline(always)]
    fn combine(&self, a: H::Since, b: H::Since) -> H::Since {
        let ((a, a_starts), (b, b_starts)) = (H::parts(a), H::parts(b));
        let both = self.op.combine(a, b);
        (if b_starts { b } else { both }).since(a_starts | b_starts)
    }
}

/// Combines the values of the lanes up to and including this one, since the last lane that `starts`, in five steps. Also
/// returns the lanes that start.
///
/// The flags do not move with the values: one vote tells every lane how far it reaches back.
///
/// # Safety
/// All lanes of the warp must call this.
#[inline(always)]
pub unsafe fn scan_lanes<H: Pod, Op: Combine<H>>(value: H, starts: bool, op: Op) -> (H, u32) {
    let heads = ballot(FULL, starts);
    let from = (32 - (heads & lane_mask_le()).leading_zeros()).saturating_sub(1);
    let reach = lane_id() - from;
    let mut sum = value;
    let mut step = 0;
    while step < 5 {
        let both = op.combine(warp::shuffle_up(sum, 1 << step), sum);
        sum = if 1 << step <= reach { both } else { sum };
        step += 1;
    }
    (sum, heads)
}
