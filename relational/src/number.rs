//! Numbers: what groups add up and compare.

use crate::decimals::{Decimals, Digits};
use crate::key::{Numbers, with_short};
use crate::{Column, Dates, Timestamps};
use bytemuck::Pod;
use gpu_primitives::histogram::{self, Summand};
use gpu_primitives::operator::{map, monoid, predicate};
use gpu_primitives::reduce;
use gpu_primitives::scan::{Max, Min, Monoid, Sum};
use gpu_primitives::source::{at, map as mapped, map2};
use gpu_primitives::{DeviceSlice, DeviceVec, Error, Stream, transform};

/// An integer of 8 to 128 bits, or a float of 32 or 64: what has a mean, a least and a greatest.
pub trait Number: Pod {
    #[doc(hidden)]
    fn to_floats(stream: &Stream, values: DeviceSlice<'_, Self>) -> Result<DeviceVec<f64>, Error>;

    /// Returns sums as floats: rounded once if they are [exact](Summable).
    #[doc(hidden)]
    fn totals(stream: &Stream, values: DeviceSlice<'_, Self>, sorted: SortedRows<'_>) -> Result<DeviceVec<f64>, Error>;

    #[doc(hidden)]
    fn moments(
        stream: &Stream,
        values: DeviceSlice<'_, Self>,
        sorted: SortedRows<'_>,
    ) -> Result<DeviceVec<[f64; 3]>, Error>;

    #[doc(hidden)]
    fn least() -> impl Monoid<Self>;

    #[doc(hidden)]
    fn greatest() -> impl Monoid<Self>;
}

/// A number that can be added up.
///
/// Sums of integers are exact. Those of 8 to 64 bits have sums of more bits, which cannot overflow. A sum of integers of 128 bits that does
/// not fit into 128 bits is an error:
///
/// ```
/// use gpu_primitives::{Device, Error};
/// use gpu_relational::{Column, Groups};
///
/// let stream = &Device::default()?.stream()?;
/// let all = Groups::all(stream, 3)?;
/// let sum = all.sum(stream, &Column::upload(stream, &[i128::MAX, 1, 0])?);
/// assert!(matches!(sum, Err(Error::InvalidOption { .. })));
/// // What is added up on the way may be larger.
/// let sum = all.sum(stream, &Column::upload(stream, &[i128::MAX, 5, -9])?)?;
/// assert_eq!(sum.to_vec(stream)?, [i128::MAX - 4]);
/// # Ok::<(), Error>(())
/// ```
pub trait Summable: Number {
    /// The type of sums: 64 bits for integers of up to 32, and 128 bits for the others; `f64` for floats.
    type Sum: Number;

    #[doc(hidden)]
    fn sums(
        stream: &Stream,
        values: DeviceSlice<'_, Self>,
        sorted: SortedRows<'_>,
    ) -> Result<DeviceVec<Self::Sum>, Error>;

    /// Whether [`sums_by_number`](Self::sums_by_number) returns sums.
    #[doc(hidden)]
    const HAS_TOTALS: bool = false;

    /// Returns the sums of rows that are in no order; `None` if these need one.
    #[doc(hidden)]
    fn sums_by_number(
        _stream: &Stream,
        _values: DeviceSlice<'_, Self>,
        _rows: NumberedRows<'_>,
    ) -> Result<Option<DeviceVec<Self::Sum>>, Error> {
        Ok(None)
    }
}

/// Rows, group after group, and where each group begins.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct SortedRows<'a> {
    pub(crate) order: DeviceSlice<'a, u32>,
    pub(crate) offsets: DeviceSlice<'a, u32>,
}

/// Rows with the numbers of their groups.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct NumberedRows<'a> {
    pub(crate) numbers: &'a Numbers,
    /// Which rows count; all, if there is nothing.
    pub(crate) valid: Option<DeviceSlice<'a, u8>>,
    /// The number of each group.
    pub(crate) of_groups: DeviceSlice<'a, u32>,
    /// All numbers are less than this.
    pub(crate) table_len: usize,
}

impl NumberedRows<'_> {
    /// Adds up the rows of each group.
    #[allow(clippy::unnecessary_cast, reason = "numbers have one of two types")]
    fn totals<T: Summand>(&self, stream: &Stream, values: DeviceSlice<'_, T>) -> Result<DeviceVec<T::Total>, Error> {
        let mut totals = stream.uninit::<T::Total>(self.table_len)?;
        with_short!(self.numbers => numbers: K, match self.valid {
            Some(valid) => {
                // The number of a row that is not valid is beyond the table.
                let bin = map!(|number: K, valid: u8| -> u32 { if valid != 0 { number as u32 } else { 0xFFFF_FFFF } });
                histogram::sums(stream, map2(numbers, valid, bin), values, &mut totals)?;
            }
            None => {
                let bin = map!(|number: K| -> u32 { number as u32 });
                histogram::sums(stream, mapped(numbers, bin), values, &mut totals)?;
            }
        });
        Ok(totals)
    }
}

impl<'a> SortedRows<'a> {
    fn groups(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Returns where the elements of each group begin and end.
    pub(crate) fn bounds(self) -> Result<(DeviceSlice<'a, u32>, DeviceSlice<'a, u32>), Error> {
        Ok((self.offsets.slice(..self.offsets.len() - 1)?, self.offsets.slice(1..)?))
    }
}

macro_rules! summable {
    ($($type:ident $sum:ident $($total:ident)?,)*) => { $(
        impl Summable for $type {
            type Sum = $sum;

            fn sums(stream: &Stream, values: DeviceSlice<'_, Self>, sorted: SortedRows<'_>) -> Result<DeviceVec<$sum>, Error> {
                let mut sums = stream.uninit::<$sum>(sorted.groups())?;
                let wide = mapped(at(values, sorted.order), map!(|x: $type| -> $sum { x as $sum }));
                reduce::segmented(stream, wide, sorted.offsets, &mut sums, Sum)?;
                Ok(sums)
            }

            $(
                const HAS_TOTALS: bool = size_of::<$total>() > 0;

                fn sums_by_number(
                    stream: &Stream,
                    values: DeviceSlice<'_, Self>,
                    rows: NumberedRows<'_>,
                ) -> Result<Option<DeviceVec<$sum>>, Error> {
                    let totals = rows.totals(stream, values)?;
                    let sum = map!(|total: $total| -> $sum { total as $sum });
                    Ok(Some(transform::collect(stream, mapped(at(&totals, rows.of_groups), sum))?))
                }
            )?
        }
    )* };
}

summable! {
    u8 u64 u128, u16 u64 u128, u32 u64 u128, u64 u128 u128,
    i8 i64 i128, i16 i64 i128, i32 i64 i128, i64 i128 i128,
    f32 f64, f64 f64,
}

/// Adds up integers of 128 bits: their upper halves, and their lower halves, neither of which can overflow. Waits.
macro_rules! long_sums {
    ($($type:ident $half:ident)*) => { $(
        impl Summable for $type {
            type Sum = $type;

            fn sums(stream: &Stream, values: DeviceSlice<'_, Self>, sorted: SortedRows<'_>) -> Result<DeviceVec<$type>, Error> {
                let (mut high, mut low) = (stream.uninit::<$type>(sorted.groups())?, stream.uninit::<u128>(sorted.groups())?);
                let values = at(values, sorted.order);
                let (of_high, of_low) = (map!(|x: $type| -> $type { x >> 64 }), map!(|x: $type| -> u128 { x as u64 as u128 }));
                reduce::segmented(stream, mapped(values, of_high), sorted.offsets, &mut high, Sum)?;
                reduce::segmented(stream, mapped(values, of_low), sorted.offsets, &mut low, Sum)?;
                let wrong = map!(|high: $type, low: u128| -> u8 {
                    let high = high + (low >> 64) as $type;
                    if high as $half as $type == high { 0 } else { 1 }
                });
                let wrong = reduce::find_first(stream, map2(&high, &low, wrong), predicate!(|wrong: u8| wrong != 0))?;
                let wrong = wrong.get(stream)?;
                if wrong != reduce::NOT_FOUND {
                    return Err(Error::InvalidOption {
                        what: "a sum",
                        asked: format!("beyond 128 bits in group {wrong}"),
                        allowed: "an integer of 128 bits",
                    });
                }
                let sum = map!(|high: $type, low: u128| -> $type { (high << 64) + low as $type });
                transform::collect(stream, map2(&high, &low, sum))
            }
        }
    )* };
}

long_sums! { i128 i64 u128 u64 }

macro_rules! numbers {
    ($($least:expr, $greatest:expr, $totals:ident: $($type:ident |$x:ident| $float:expr,)+;)*) => { $($(
        impl Number for $type {
            fn to_floats(stream: &Stream, values: DeviceSlice<'_, Self>) -> Result<DeviceVec<f64>, Error> {
                transform::collect(stream, mapped(values, map!(|$x: $type| -> f64 { $float })))
            }

            fn totals(stream: &Stream, values: DeviceSlice<'_, Self>, sorted: SortedRows<'_>) -> Result<DeviceVec<f64>, Error> {
                numbers!(@ $totals stream, values, sorted, map!(|$x: $type| -> f64 { $float }))
            }

            fn moments(
                stream: &Stream,
                values: DeviceSlice<'_, Self>,
                sorted: SortedRows<'_>,
            ) -> Result<DeviceVec<[f64; 3]>, Error> {
                let mut moments = stream.uninit::<[f64; 3]>(sorted.groups())?;
                let moment = map!(|$x: $type| -> [f64; 3] { [1.0, $float, 0.0] });
                reduce::segmented(stream, mapped(at(values, sorted.order), moment), sorted.offsets, &mut moments, moments_of())?;
                Ok(moments)
            }

            fn least() -> impl Monoid<Self> {
                $least
            }

            fn greatest() -> impl Monoid<Self> {
                $greatest
            }
        }
    )+)* };
    (@ exact $stream:ident, $values:ident, $sorted:ident, $float:expr) => {{
        let sums = <Self as Summable>::sums($stream, $values, $sorted)?;
        Number::to_floats($stream, sums.as_slice())
    }};
    (@ rounded $stream:ident, $values:ident, $sorted:ident, $float:expr) => {{
        let mut totals = $stream.uninit::<f64>($sorted.groups())?;
        reduce::segmented($stream, mapped(at($values, $sorted.order), $float), $sorted.offsets, &mut totals, Sum)?;
        Ok(totals)
    }};
}

numbers! {
    Min, Max, exact:
        u8 |x| x as f64,
        u16 |x| x as f64,
        u32 |x| x as f64,
        u64 |x| x as f64,
        i8 |x| x as f64,
        i16 |x| x as f64,
        i32 |x| x as f64,
        i64 |x| x as f64,;
    // Operators cast no integers of 128 bits to floats.
    Min, Max, rounded:
        u128 |x| (x >> 64) as u64 as f64 * 18_446_744_073_709_551_616.0 + x as u64 as f64,
        i128 |x| {
            // `!x` is `-x - 1`.
            let sign = x >> 127;
            let positive = x ^ sign;
            let float = (positive >> 64) as u64 as f64 * 18_446_744_073_709_551_616.0 + positive as u64 as f64;
            if sign != 0 { -float - 1.0 } else { float }
        },;
    // NaN is the greatest, as it is in keys: so the identity of the least is NaN.
    monoid!(<f32>::NAN, |a: f32, b: f32| if b < a || a.is_nan() { b } else { a }),
    monoid!(<f32>::NEG_INFINITY, |a: f32, b: f32| if b > a || b.is_nan() { b } else { a }), exact:
        f32 |x| x as f64,;
    monoid!(<f64>::NAN, |a: f64, b: f64| if b < a || a.is_nan() { b } else { a }),
    monoid!(<f64>::NEG_INFINITY, |a: f64, b: f64| if b > a || b.is_nan() { b } else { a }), exact:
        f64 |x| x,;
}

/// Combines numbers of elements, their means and their squared deviations from these.
fn moments_of() -> impl Monoid<[f64; 3]> {
    monoid!([0.0, 0.0, 0.0], |a: [f64; 3], b: [f64; 3]| {
        let count = a[0] + b[0];
        let apart = b[1] - a[1];
        let share = b[0] / count;
        let both = [count, a[1] + apart * share, a[2] + b[2] + apart * apart * a[0] * share];
        // What is apart from nothing may be infinite.
        if a[0] == 0.0 {
            b
        } else if b[0] == 0.0 {
            a
        } else {
            both
        }
    })
}

/// What has a least and a greatest in each of [`Groups`](crate::Groups): a [`Column`] of numbers, [`Decimals`], [`Dates`], [`Timestamps`].
pub trait Aggregate<'a>: Copy {
    /// The type of its elements.
    type Element: Number;

    /// A column of the same kind.
    type Same;

    #[doc(hidden)]
    fn elements(self) -> &'a Column<Self::Element>;

    #[doc(hidden)]
    fn same(self, elements: Column<Self::Element>) -> Self::Same;
}

/// What also has a sum, a mean and a variance: a [`Column`] of numbers, and [`Decimals`].
#[diagnostic::on_unimplemented(message = "`{Self}` has no sums and means")]
pub trait Amount<'a>: Aggregate<'a, Element: Summable> {
    /// The column of sums.
    type Sums;

    #[doc(hidden)]
    fn sums(self, sums: Column<<Self::Element as Summable>::Sum>) -> Result<Self::Sums, Error>;

    /// Returns what 1 is in these elements.
    #[doc(hidden)]
    fn unit(self) -> f64;
}

impl<'a, T: Number> Aggregate<'a> for &'a Column<T> {
    type Element = T;
    type Same = Column<T>;

    fn elements(self) -> &'a Column<T> {
        self
    }

    fn same(self, elements: Column<T>) -> Column<T> {
        elements
    }
}

impl<'a, T: Summable> Amount<'a> for &'a Column<T> {
    type Sums = Column<T::Sum>;

    fn sums(self, sums: Column<T::Sum>) -> Result<Column<T::Sum>, Error> {
        Ok(sums)
    }

    fn unit(self) -> f64 {
        1.0
    }
}

impl<'a, T: Digits> Aggregate<'a> for &'a Decimals<T> {
    type Element = T;
    type Same = Decimals<T>;

    fn elements(self) -> &'a Column<T> {
        self.numbers()
    }

    fn same(self, elements: Column<T>) -> Decimals<T> {
        self.with_numbers(elements)
    }
}

impl<'a, T: Digits> Amount<'a> for &'a Decimals<T> {
    type Sums = Decimals<i128>;

    fn sums(self, sums: Column<i128>) -> Result<Decimals<i128>, Error> {
        Decimals::new(sums, self.scale())
    }

    fn unit(self) -> f64 {
        Decimals::unit(self)
    }
}

impl<'a> Aggregate<'a> for &'a Dates {
    type Element = i32;
    type Same = Dates;

    fn elements(self) -> &'a Column<i32> {
        self.days()
    }

    fn same(self, elements: Column<i32>) -> Dates {
        Dates::new(elements)
    }
}

impl<'a> Aggregate<'a> for &'a Timestamps {
    type Element = i64;
    type Same = Timestamps;

    fn elements(self) -> &'a Column<i64> {
        self.numbers()
    }

    fn same(self, elements: Column<i64>) -> Timestamps {
        self.with_numbers(elements)
    }
}
