//! The position of the smallest or the largest element.

#![deny(unsafe_op_in_unsafe_fn)]

use super::reduce_to;
use crate::host::source::{AnySource, Source, counting, map, map2};
use crate::map::Map2;
use crate::monoid::HoleMonoid;
use crate::operator::{Record, map, operator};
use crate::reduce::{Min, Monoid};
use crate::{DeviceValue, Error, Stream, transform};
use bytemuck::{Pod, Zeroable};

/// A number whose smallest and largest element can be found.
pub trait Ranked: Pod {
    /// Returns what combines to the first of the best elements, with their positions.
    #[doc(hidden)]
    fn ranked<'a>(input: impl Source<'a, Self>, end: End) -> Result<Ranks<'a>, Error>;
}

/// Which elements are the best.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Smallest,
    Largest,
}

/// Elements with their positions, of which the smallest is wanted.
#[doc(hidden)]
#[expect(missing_debug_implementations, reason = "users do not see it")]
pub struct Ranks<'a> {
    source: AnySource<'a>,
    /// An element is one word: an unsigned number of 32 bits that is ordered like the element, and the position below it. So one
    /// comparison decides, and a reduction moves half of the bytes. Otherwise it is a pair of both, 64 bits each.
    are_words: bool,
}

impl<'a> Ranks<'a> {
    /// Pairs codes with positions of 32 bits if these are enough for so many.
    fn new<T: Pod>(input: impl Source<'a, T>, end: End) -> Result<Self, Error>
    where
        Rank: Map2<T, u32, Output = u64>,
        Rank: Map2<T, u64, Output = [u64; 2]>,
    {
        let input = input.into_parts()?;
        let Ok(len) = u32::try_from(input.len()) else {
            return Self::pairs(input, end);
        };
        let positions = counting(0u32, len as usize);
        Ok(Self { source: map2(input, positions, Rank::new(end)).into_parts()?.lower(), are_words: true })
    }

    /// Pairs codes with positions of 64 bits.
    fn pairs<T: Pod>(input: impl Source<'a, T>, end: End) -> Result<Self, Error>
    where
        Rank: Map2<T, u64, Output = [u64; 2]>,
    {
        let input = input.into_parts()?;
        let positions = counting(0u64, input.len());
        Ok(Self { source: map2(input, positions, Rank::new(end)).into_parts()?.lower(), are_words: false })
    }
}

/// Pairs an unsigned number that is ordered like the element, or the other way round, with the position.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable, Record)]
struct Rank {
    /// The bits of the number that are flipped: all of them if the largest are wanted.
    flip: u64,
}

impl Rank {
    fn new(end: End) -> Self {
        Self { flip: if end == End::Largest { u64::MAX } else { 0 } }
    }
}

macro_rules! ranked {
    ($($type:ty: $x:ident => $code:expr;)*) => { $(
        #[operator]
        impl Map2<$type, u32> for Rank {
            type Output = u64;

            #[inline(always)]
            fn map(&self, $x: $type, position: u32) -> u64 {
                ((($code) as u64) ^ self.flip) << 32 | position as u64
            }
        }

        #[operator]
        impl Map2<$type, u64> for Rank {
            type Output = [u64; 2];

            #[inline(always)]
            fn map(&self, $x: $type, position: u64) -> [u64; 2] {
                [($code) as u64 ^ self.flip, position]
            }
        }

        impl Ranked for $type {
            fn ranked<'a>(input: impl Source<'a, Self>, end: End) -> Result<Ranks<'a>, Error> {
                Ranks::new(input, end)
            }
        }
    )* };
}

macro_rules! ranked_in_64_bits {
    ($($type:ty: $x:ident => $code:expr;)*) => { $(
        #[operator]
        impl Map2<$type, u64> for Rank {
            type Output = [u64; 2];

            #[inline(always)]
            fn map(&self, $x: $type, position: u64) -> [u64; 2] {
                [($code) ^ self.flip, position]
            }
        }

        impl Ranked for $type {
            fn ranked<'a>(input: impl Source<'a, Self>, end: End) -> Result<Ranks<'a>, Error> {
                Ranks::pairs(input, end)
            }
        }
    )* };
}

ranked! {
    u8: x => x as u32;
    u16: x => x as u32;
    u32: x => x;
    i8: x => (x as i32) as u32 ^ (1 << 31);
    i16: x => (x as i32) as u32 ^ (1 << 31);
    i32: x => x as u32 ^ (1 << 31);
    f32: x => x.to_bits() ^ (((x.to_bits() as i32) >> 31) as u32 | 1 << 31);
}

ranked_in_64_bits! {
    u64: x => x;
    i64: x => x as u64 ^ (1 << 63);
    f64: x => x.to_bits() ^ (((x.to_bits() as i64) >> 63) as u64 | 1 << 63);
}

#[cfg(feature = "half")]
ranked! {
    half::f16: x => (x.to_bits() ^ (((x.to_bits() as i16) >> 15) as u16 | 1 << 15)) as u32;
    half::bf16: x => (x.to_bits() ^ (((x.to_bits() as i16) >> 15) as u16 | 1 << 15)) as u32;
}

/// The first of the smallest.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct Smallest;

#[operator]
impl Monoid<[u64; 2]> for Smallest {
    const EXACT: bool = true;
    const COMMUTATIVE: bool = true;

    fn identity(&self) -> [u64; 2] {
        [u64::MAX, u64::MAX]
    }

    fn combine(&self, a: [u64; 2], b: [u64; 2]) -> [u64; 2] {
        if b[0] < a[0] || b[0] == a[0] && b[1] < a[1] { b } else { a }
    }
}

/// Returns the position of the smallest element: the first one, if there are several. An empty input gives `u64::MAX`. Floats
/// are in the total order of `total_cmp`. Does not wait.
///
/// ```
/// use gpu_primitives::{Device, Error, reduce};
///
/// let stream = Device::default()?.stream()?;
/// let input = stream.upload(&[2.5f32, -1.0, 7.0, -1.0])?;
/// assert_eq!(reduce::argmin(&stream, &input)?.get(&stream)?, 1);
/// assert_eq!(reduce::argmax(&stream, &input)?.get(&stream)?, 2);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// [`Error::OutOfMemory`]; any launch error.
pub fn argmin<'a, T: Ranked>(stream: &Stream, input: impl Source<'a, T>) -> Result<DeviceValue<u64>, Error> {
    let input = input.into_parts()?;
    let _span = crate::span!(stream, "reduce::argmin", input.len());
    arg(stream, &T::ranked(input, End::Smallest)?)
}

/// Returns the position of the largest element: see [`argmin`].
///
/// # Errors
/// Same as [`argmin`].
pub fn argmax<'a, T: Ranked>(stream: &Stream, input: impl Source<'a, T>) -> Result<DeviceValue<u64>, Error> {
    let input = input.into_parts()?;
    let _span = crate::span!(stream, "reduce::argmax", input.len());
    arg(stream, &T::ranked(input, End::Largest)?)
}

fn arg(stream: &Stream, ranks: &Ranks<'_>) -> Result<DeviceValue<u64>, Error> {
    let _span = crate::span!(stream, "reduce::reduce", ranks.source.len());
    let mut position = DeviceValue::uninit(stream)?;
    if ranks.are_words {
        let mut best = DeviceValue::<u64>::uninit(stream)?;
        reduce_to(stream, &ranks.source, best.as_mut_slice().into(), HoleMonoid::of::<u64, _>(Min))?;
        // No position of 32 bits has all bits set.
        let low = map!(|best: u64| -> u64 { if best == u64::MAX { u64::MAX } else { best & 0xFFFF_FFFF } });
        transform::write(stream, map(best.as_slice(), low), position.as_mut_slice())?;
    } else {
        let mut best = DeviceValue::<[u64; 2]>::uninit(stream)?;
        reduce_to(stream, &ranks.source, best.as_mut_slice().into(), HoleMonoid::of::<[u64; 2], _>(Smallest))?;
        let second = map(best.as_slice(), map!(|best: [u64; 2]| -> u64 { best[1] }));
        transform::write(stream, second, position.as_mut_slice())?;
    }
    Ok(position)
}
