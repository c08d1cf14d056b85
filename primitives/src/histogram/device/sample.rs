//! The numbers that histograms have bins for, and the bins of equal width.

use crate::buckets::Bucket;
use crate::compare::Compare;
use crate::operator::{Record, operator};
use bytemuck::{Pod, Zeroable};

/// What is in no bin.
pub(crate) const NONE: u32 = u32::MAX;

/// A number that has bins of equal width, and bins between levels: an integer of up to 64 bits, or a float.
pub trait Sample: Pod {
    /// The function of bins of equal width.
    #[doc(hidden)]
    type Even: Bucket<Self>;

    /// The order of levels.
    #[doc(hidden)]
    type Order: Compare<Self> + Default;

    /// Returns the function of `bins` bins of equal width, from `lower` up to `upper`, which is excluded.
    #[doc(hidden)]
    fn even(lower: Self, upper: Self, bins: u32) -> Self::Even;
}

/// The `<` of numbers. NaN is not less than a level, and so belongs after the last one.
#[doc(hidden)]
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
pub struct Below;

/// Bins of integers of up to 32 bits: bin `floor(d * bins / range)` for the distance `d` from the lower end.
///
/// A division per sample would take longer than its load. With `bins = whole * range + rest`, the bin is
/// `d * whole + floor(d * rest / range)`, and the quotient is `d * fraction` without its lower 64 bits, where `fraction` is
/// `rest * 2^64 / range`, rounded up. The result is exact: rounding adds less than `d / 2^64` to the quotient, which is less
/// than `1 / range`, and the quotient is a multiple of `1 / range`.
#[doc(hidden)]
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable, Record)]
pub struct EvenShort {
    lower: u32,
    range: u32,
    whole: u32,
    fraction_low: u32,
    fraction_high: u32,
}

impl EvenShort {
    const fn new(lower: u32, range: u32, bins: u32) -> Self {
        if range == 0 {
            return Self { lower, range, whole: 0, fraction_low: 0, fraction_high: 0 };
        }
        let fraction = (((bins % range) as u128) << 64).div_ceil(range as u128) as u64;
        Self {
            lower,
            range,
            whole: bins / range,
            fraction_low: fraction as u32,
            fraction_high: (fraction >> 32) as u32,
        }
    }
}

/// Bins of integers of 64 bits: as for [`EvenShort`], but the fraction is rounded down, so that the quotient is exact or one
/// too small. An exact comparison tells which.
#[doc(hidden)]
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable, Record)]
pub struct EvenLong {
    lower: u64,
    range: u64,
    whole: u64,
    rest: u64,
    fraction: u64,
}

impl EvenLong {
    const fn new(lower: u64, range: u64, bins: u32) -> Self {
        if range == 0 {
            return Self { lower, range, whole: 0, rest: 0, fraction: 0 };
        }
        let rest = bins as u64 % range;
        let fraction = (((rest as u128) << 64) / range as u128) as u64;
        Self { lower, range, whole: bins as u64 / range, rest, fraction }
    }
}

macro_rules! short {
    ($($type:ty)*) => { $(
        #[operator]
        impl Bucket<$type> for EvenShort {
            #[inline(always)]
            fn bucket(&self, sample: $type) -> u32 {
                // What is less than `lower` wraps, and is beyond `range`, too.
                let distance = (sample as u32).wrapping_sub(self.lower);
                let long = distance as u64;
                let high = long * self.fraction_high as u64 + ((long * self.fraction_low as u64) >> 32);
                let bin = distance.wrapping_mul(self.whole).wrapping_add((high >> 32) as u32);
                if distance < self.range { bin } else { 0xFFFF_FFFF }
            }
        }

        sample!($type, EvenShort, |lower, upper, bins| {
            let range = if lower < upper { (upper as u32).wrapping_sub(lower as u32) } else { 0 };
            EvenShort::new(lower as u32, range, bins)
        });
    )* };
}

macro_rules! long {
    ($($type:ty)*) => { $(
        #[operator]
        impl Bucket<$type> for EvenLong {
            #[inline(always)]
            fn bucket(&self, sample: $type) -> u32 {
                let distance = (sample as u64).wrapping_sub(self.lower);
                let long = distance as u128;
                let quotient = ((long * self.fraction as u128) >> 64) as u64;
                let next = quotient.wrapping_add(1);
                let is_next = next as u128 * self.range as u128 <= long * self.rest as u128;
                let quotient = if is_next { next } else { quotient };
                let bin = distance.wrapping_mul(self.whole).wrapping_add(quotient) as u32;
                if distance < self.range { bin } else { 0xFFFF_FFFF }
            }
        }

        sample!($type, EvenLong, |lower, upper, bins| {
            let range = if lower < upper { (upper as u64).wrapping_sub(lower as u64) } else { 0 };
            EvenLong::new(lower as u64, range, bins)
        });
    )* };
}

macro_rules! sample {
    ($type:ty, $even:ty, |$lower:ident, $upper:ident, $bins:ident| $new:expr) => {
        #[operator]
        impl Compare<$type> for Below {
            #[inline(always)]
            fn less(&self, a: $type, b: $type) -> bool {
                a < b
            }
        }

        impl Sample for $type {
            type Even = $even;
            type Order = Below;

            fn even($lower: $type, $upper: $type, $bins: u32) -> $even {
                $new
            }
        }
    };
}

macro_rules! floats {
    ($($name:ident $type:ty, $last:ty;)*) => { $(
        /// Bins of floats: bin `floor((x - lower) * scale)`, computed in the type, but no more than the last one.
        #[doc(hidden)]
        #[repr(C)]
        #[derive(Clone, Copy, Debug, Pod, Zeroable, Record)]
        pub struct $name {
            lower: $type,
            upper: $type,
            scale: $type,
            last: $last,
        }

        #[operator]
        impl Bucket<$type> for $name {
            #[inline(always)]
            fn bucket(&self, sample: $type) -> u32 {
                let bin = ((sample - self.lower) * self.scale) as u32;
                let bin = bin.min(self.last as u32);
                if (sample >= self.lower) & (sample < self.upper) { bin } else { 0xFFFF_FFFF }
            }
        }

        sample!($type, $name, |lower, upper, bins| {
            $name { lower, upper, scale: bins as $type / (upper - lower), last: bins.saturating_sub(1) as $last }
        });
    )* };
}

short!(u8 u16 u32 i8 i16 i32);
long!(u64 i64);
floats! {
    EvenF32 f32, u32;
    EvenF64 f64, u64;
}
