//! The smallest and the largest element.

use crate::host::source::{Source, map};
use crate::map::Map;
use crate::operator::operator;
use crate::reduce::{Monoid, reduce};
use crate::{DeviceValue, Error, Stream};
use bytemuck::{Pod, Zeroable};

/// The smallest and the largest number, as [`Min`](crate::reduce::Min) and [`Max`](crate::reduce::Max) give them: NaN counts as
/// absent. Of zeros, -0.0 is the smaller one, so that the order of the numbers makes no difference. It also makes such a pair of a
/// number.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
pub struct MinMax;

macro_rules! min_max {
    ($($type:ty, $least:expr, $most:expr, $a:ident, $b:ident, $less:expr, $more:expr;)*) => { $(
        #[operator]
        impl Map<$type> for MinMax {
            type Output = [$type; 2];

            #[inline(always)]
            fn map(&self, number: $type) -> [$type; 2] {
                [number, number]
            }
        }

        #[operator]
        impl Monoid<[$type; 2]> for MinMax {
            const EXACT: bool = true;
            const COMMUTATIVE: bool = true;

            #[inline(always)]
            fn identity(&self) -> [$type; 2] {
                [$most, $least]
            }

            #[inline(always)]
            fn combine(&self, $a: [$type; 2], $b: [$type; 2]) -> [$type; 2] {
                [if $less { $b[0] } else { $a[0] }, if $more { $b[1] } else { $a[1] }]
            }
        }
    )* };
}

macro_rules! integers {
    ($($type:ty)*) => {
        min_max! { $($type, <$type>::MIN, <$type>::MAX, a, b, b[0] < a[0], b[1] > a[1];)* }
    };
}

macro_rules! floats {
    ($($type:ty)*) => {
        min_max! { $(
            $type, <$type>::NEG_INFINITY, <$type>::INFINITY, a, b,
            b[0] < a[0] || a[0].is_nan() || b[0] == a[0] && b[0].to_bits() > a[0].to_bits(),
            b[1] > a[1] || a[1].is_nan() || b[1] == a[1] && b[1].to_bits() < a[1].to_bits();
        )* }
    };
}

integers!(u8 u16 u32 u64 u128 i8 i16 i32 i64 i128);
floats!(f32 f64);

#[cfg(feature = "half")]
floats!(half::f16 half::bf16);

/// Returns the smallest and the largest number, in one pass. An empty input gives the identities of
/// [`Min`](crate::reduce::Min) and [`Max`](crate::reduce::Max): the largest number, and then the smallest. Does not wait.
///
/// ```
/// use gpu_primitives::{Device, Error, reduce};
///
/// let stream = Device::default()?.stream()?;
/// let input = stream.upload(&[2.5f32, -1.0, f32::NAN, 7.0])?;
/// assert_eq!(reduce::min_max(&stream, &input)?.get(&stream)?, [-1.0, 7.0]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// [`Error::OutOfMemory`]; any launch error.
pub fn min_max<'a, T: Pod>(stream: &Stream, input: impl Source<'a, T>) -> Result<DeviceValue<[T; 2]>, Error>
where
    MinMax: Map<T, Output = [T; 2]> + Monoid<[T; 2]>,
{
    let input = input.into_parts()?;
    let _span = crate::span!(stream, "reduce::min_max", input.len());
    reduce(stream, map(input, MinMax), MinMax)
}
