//! The position of the smallest or the largest element.

#![deny(unsafe_op_in_unsafe_fn)]

use super::reduce_to;
use crate::host::source::{AnySource, Source, counting, map, map2};
use crate::map::Map2;
use crate::monoid::HoleMonoid;
use crate::operator::{map, operator};
use crate::reduce::Monoid;
use crate::{DeviceValue, Error, Stream, transform};
use bytemuck::{Pod, Zeroable};

/// A number whose smallest and largest element can be found.
pub trait Ranked: Pod {
    /// Pairs an unsigned number that is ordered like the element with the position.
    #[doc(hidden)]
    type Rank: Map2<Self, u64, Output = [u64; 2]> + Default;
}

/// The rank of an element and its position.
#[doc(hidden)]
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
pub struct Rank;

macro_rules! ranked {
    ($($type:ty: $x:ident => $code:expr;)*) => { $(
        #[operator]
        impl Map2<$type, u64> for Rank {
            type Output = [u64; 2];

            #[inline(always)]
            fn map(&self, $x: $type, position: u64) -> [u64; 2] {
                [$code, position]
            }
        }

        impl Ranked for $type {
            type Rank = Rank;
        }
    )* };
}

ranked! {
    u8: x => x as u64;
    u16: x => x as u64;
    u32: x => x as u64;
    u64: x => x;
    i8: x => (x as i64) as u64 ^ (1 << 63);
    i16: x => (x as i64) as u64 ^ (1 << 63);
    i32: x => (x as i64) as u64 ^ (1 << 63);
    i64: x => x as u64 ^ (1 << 63);
    f32: x => (x.to_bits() ^ (((x.to_bits() as i32) >> 31) as u32 | 1 << 31)) as u64;
    f64: x => x.to_bits() ^ (((x.to_bits() as i64) >> 63) as u64 | 1 << 63);
}

#[cfg(feature = "half")]
ranked! {
    half::f16: x => (x.to_bits() as u64) ^ (((x.to_bits() as i16) >> 15) as u16 | 1 << 15) as u64;
    half::bf16: x => (x.to_bits() as u64) ^ (((x.to_bits() as i16) >> 15) as u16 | 1 << 15) as u64;
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

/// The first of the largest.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct Largest;

#[operator]
impl Monoid<[u64; 2]> for Largest {
    const EXACT: bool = true;
    const COMMUTATIVE: bool = true;

    fn identity(&self) -> [u64; 2] {
        [0, u64::MAX]
    }

    fn combine(&self, a: [u64; 2], b: [u64; 2]) -> [u64; 2] {
        if b[0] > a[0] || b[0] == a[0] && b[1] < a[1] { b } else { a }
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
    arg(stream, &ranked(input)?, HoleMonoid::of::<[u64; 2], _>(Smallest))
}

/// Returns the position of the largest element: see [`argmin`].
///
/// # Errors
/// Same as [`argmin`].
pub fn argmax<'a, T: Ranked>(stream: &Stream, input: impl Source<'a, T>) -> Result<DeviceValue<u64>, Error> {
    let input = input.into_parts()?;
    let _span = crate::span!(stream, "reduce::argmax", input.len());
    arg(stream, &ranked(input)?, HoleMonoid::of::<[u64; 2], _>(Largest))
}

/// Returns the ranks of the elements, with their positions.
fn ranked<'a, T: Ranked>(input: impl Source<'a, T>) -> Result<AnySource<'a>, Error> {
    let input = input.into_parts()?;
    let positions = counting(0u64, input.len());
    Ok(map2(input, positions, T::Rank::default()).into_parts()?.lower())
}

fn arg(stream: &Stream, ranks: &AnySource<'_>, operation: HoleMonoid<[u64; 4]>) -> Result<DeviceValue<u64>, Error> {
    let _span = crate::span!(stream, "reduce::reduce", ranks.len());
    let mut best = DeviceValue::<[u64; 2]>::uninit(stream)?;
    reduce_to(stream, ranks, best.as_mut_slice().into(), operation)?;
    let mut position = DeviceValue::uninit(stream)?;
    let second = map(best.as_slice(), map!(|found: [u64; 2]| -> u64 { found[1] }));
    transform::write(stream, second, position.as_mut_slice())?;
    Ok(position)
}
