//! Bucket functions.

use super::{Buckets, Purity};
use crate::form::{Holes, Param};
#[cfg(not(target_arch = "nvptx64"))]
use crate::hole::OperatorBody;
use crate::hole::{Hole, RegisterRepr};
#[cfg(not(target_arch = "nvptx64"))]
use crate::host::computed::{Unary, body};
#[cfg(not(target_arch = "nvptx64"))]
use crate::host::recorded::Recipe;
#[cfg(not(target_arch = "nvptx64"))]
use crate::operator::Recorded;
use crate::operator::{Record, operator};
use bytemuck::{Pod, Zeroable};
#[cfg(not(target_arch = "nvptx64"))]
use core::marker::PhantomData;

/// A function from keys to bucket numbers. It may carry state, which is passed to the GPU as a kernel argument: at most 64
/// bytes. Put [`#[operator]`](crate::operator) on an implementation: it records the function for GPUs.
///
/// ```
/// use bytemuck::{Pod, Zeroable};
/// use gpu_primitives::multisplit::{self, Bucket};
/// use gpu_primitives::operator::{Record, operator};
/// use gpu_primitives::{Device, Error};
///
/// #[repr(C)]
/// #[derive(Clone, Copy, Pod, Zeroable, Record)]
/// struct Remainder {
///     divisor: u32,
/// }
///
/// #[operator]
/// impl Bucket<u32> for Remainder {
///     fn bucket(&self, key: u32) -> u32 {
///         key % self.divisor
///     }
/// }
///
/// let stream = Device::default()?.stream()?;
/// let input = stream.upload(&[3u32, 1, 4, 1, 5, 9])?;
/// let mut output = stream.uninit::<u32>(6)?;
/// multisplit::keys(&stream, &input, &mut output, 3, Remainder { divisor: 3 })?;
/// assert_eq!(output.to_vec(&stream)?, [3, 9, 1, 4, 1, 5]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Contract
/// The same key always has the same bucket; otherwise some items may be lost and others repeated. Numbers beyond the
/// last bucket count as the last bucket.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a function from keys of type `{K}` to numbers of buckets",
    note = "`gpu_primitives::operator::bucket!` makes one of a closure",
    note = "or put `#[operator]` on an implementation of the trait"
)]
pub trait Bucket<K>: Param {
    /// Returns the bucket of a key.
    fn bucket(&self, key: K) -> u32;

    /// Records the function for GPUs: [`#[operator]`](crate::operator) writes this function.
    #[cfg(not(target_arch = "nvptx64"))]
    fn recorded() -> Recorded;
}

/// Buckets by the upper bits of a number: `key >> bits`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable, Record)]
pub struct Shift {
    bits: u32,
    /// All ones, or zero if the shift leaves nothing of a number of 32, 64 or 128 bits: cheaper than a comparison for
    /// each key.
    mask_32: u32,
    mask_64: u32,
    mask_128: u32,
}

impl Shift {
    /// Buckets of `2^bits` consecutive numbers.
    #[must_use]
    pub const fn by(bits: u32) -> Self {
        const fn mask(is_there: bool) -> u32 {
            if is_there { !0 } else { 0 }
        }
        Self { bits, mask_32: mask(bits < 32), mask_64: mask(bits < 64), mask_128: mask(bits < 128) }
    }
}

macro_rules! shifts {
    ($($type:ty: $key:ident, $bits:ident => $number:expr, $mask:ident;)*) => { $(
        #[operator]
        impl Bucket<$type> for Shift {
            #[inline(always)]
            fn bucket(&self, $key: $type) -> u32 {
                let $bits = self.bits;
                let number: u32 = $number;
                number & self.$mask
            }
        }
    )* };
}

shifts! {
    u8: key, bits => key as u32 >> bits, mask_32;
    u16: key, bits => key as u32 >> bits, mask_32;
    u32: key, bits => key >> bits, mask_32;
    u64: key, bits => (key >> bits).min(0xFFFF_FFFF) as u32, mask_64;
    u128: key, bits => (key >> bits).min(0xFFFF_FFFF) as u32, mask_128;
}

/// A bucket function in the form that the kernels take: a [`Hole`], one pass, and no bucket beyond the last.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct HoleBuckets {
    hole: Hole,
    last: u32,
}

// SAFETY: `repr(C)`, and both fields are parameters themselves.
unsafe impl Param for HoleBuckets {
    const HOLES: Holes = Holes::FIRST;
}

#[cfg(not(target_arch = "nvptx64"))]
impl HoleBuckets {
    /// Returns a function for keys `K`, for kernels that hold them in a type of the same size or a larger one. `last` is
    /// at most 255.
    pub(crate) fn of<K: Pod, B: Bucket<K>>(function: B, last: u32) -> Self {
        Self { hole: Hole::new(function, Self::filling::<K, B>()), last }
    }

    /// Describes what fills the hole.
    pub(crate) fn filling<K: Pod, B: Bucket<K>>() -> &'static OperatorBody {
        body::<BucketOf<K, B>>()
    }

    /// Returns the function. Its results are not clamped to the last bucket.
    pub(crate) fn hole(&self) -> &Hole {
        &self.hole
    }

    /// Returns the function for keys that are the results of this one.
    pub(crate) fn of_results(&self) -> Self {
        Self::of::<u32, _>(Shift::by(0), self.last)
    }
}

/// A bucket function as a function of one element.
#[cfg(not(target_arch = "nvptx64"))]
#[repr(transparent)]
#[derive(Clone, Copy)]
struct BucketOf<K, B>(B, PhantomData<K>);

#[cfg(not(target_arch = "nvptx64"))]
impl<K: Pod, B: Bucket<K>> Unary for BucketOf<K, B> {
    type Item = K;
    type Output = u32;
    const RECIPE: Recipe = Recipe::new::<B, K, u32>("bucket", B::recorded, const { &[size_of::<K>()] });

    #[inline(always)]
    fn call(&self, key: K) -> u32 {
        self.0.bucket(key)
    }
}

impl<H: RegisterRepr> Buckets<H> for HoleBuckets {
    const MAX_PASSES: usize = 1;
    // On the CPU the function is any Rust function.
    #[cfg(not(target_arch = "nvptx64"))]
    const PURITY: Purity = Purity::UNKNOWN;
    // SAFETY: a recorded function depends only on the key and the state, and is recorded once, so all kernels have the same
    // one (`recorded`). Its result is clamped to the last bucket.
    #[cfg(target_arch = "nvptx64")]
    const PURITY: Purity = unsafe { Purity::promised() };

    #[inline(always)]
    fn bucket(&self, key: H, _: u32) -> u32 {
        // SAFETY: it is made of a `Bucket`, and the host launches a kernel with it only for keys of that type.
        unsafe { H::bucket(&self.hole, key) }.min(self.last)
    }

    #[cfg(not(target_arch = "nvptx64"))]
    fn buckets(&self, keys: &[H], _: u32, buckets: &mut [u32]) {
        // SAFETY: same as above.
        unsafe { self.hole.each(keys, buckets) };
        buckets.iter_mut().for_each(|bucket| *bucket = (*bucket).min(self.last));
    }

    #[inline(always)]
    fn last(&self, _: u32) -> u32 {
        self.last
    }
}
