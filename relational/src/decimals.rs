//! Decimals: integers, with a number of digits behind the point.

use crate::Column;
use crate::column::{both_valid, expect_len};
use crate::key::Key;
use crate::number::Summable;
use crate::rows::{Rows, Take};
use bytemuck::Pod;
use gpu_primitives::operator::{map, operator, predicate};
use gpu_primitives::source::{Source, map as mapped, map2, map3};
use gpu_primitives::{DeviceSlice, DeviceVec, Error, Stream, reduce, transform};

/// The integers of [`Decimals`]: `i64`, for up to 18 digits, and `i128`, for up to 38.
pub trait Digits: Key + Summable<Sum = i128> + sealed::Digits {
    /// The largest scale: 18 or 38.
    const MAX_SCALE: u8;
}

mod sealed {
    use super::{Column, Error, Stream};
    use gpu_primitives::DeviceSlice;
    use gpu_primitives::source::Source;

    pub trait Digits: bytemuck::Pod {
        /// The greatest magnitude: that of the least integer.
        const MOST: u128;

        fn widened<'a>(values: DeviceSlice<'a, Self>) -> impl Source<'a, i128> + Copy;

        fn of(number: i128) -> Option<Self>;

        fn wide(self) -> i128;

        /// Returns the numbers in this type, if all fit that are valid.
        fn narrowed(stream: &Stream, wide: Column<i128>) -> Result<Column<Self>, Error>;

        /// Returns the numbers in this type, all of which fit.
        fn cut(stream: &Stream, wide: Column<i128>) -> Result<Column<Self>, Error>;
    }
}

impl Digits for i64 {
    const MAX_SCALE: u8 = 18;
}

impl sealed::Digits for i64 {
    const MOST: u128 = 1 << 63;

    fn widened<'a>(values: DeviceSlice<'a, Self>) -> impl Source<'a, i128> + Copy {
        mapped(values, map!(|x: i64| -> i128 { x as i128 }))
    }

    fn of(number: i128) -> Option<Self> {
        number.try_into().ok()
    }

    fn wide(self) -> i128 {
        self.into()
    }

    fn narrowed(stream: &Stream, wide: Column<i128>) -> Result<Column<Self>, Error> {
        let wrong = map!(|x: i128| -> u8 { if x as i64 as i128 == x { 0 } else { 1 } });
        expect_none(stream, mapped(&wide, wrong), wide.valid(), FITS_64)?;
        Self::cut(stream, wide)
    }

    fn cut(stream: &Stream, wide: Column<i128>) -> Result<Column<Self>, Error> {
        let narrow = transform::collect(stream, mapped(&wide, map!(|x: i128| -> i64 { x as i64 })))?;
        let (_, valid) = wide.into_parts();
        Column::of_parts(narrow, valid)
    }
}

impl Digits for i128 {
    const MAX_SCALE: u8 = 38;
}

impl sealed::Digits for i128 {
    const MOST: u128 = 1 << 127;

    fn widened<'a>(values: DeviceSlice<'a, Self>) -> impl Source<'a, i128> + Copy {
        mapped(values, map!(|x: i128| -> i128 { x }))
    }

    fn of(number: i128) -> Option<Self> {
        Some(number)
    }

    fn wide(self) -> i128 {
        self
    }

    fn narrowed(_: &Stream, wide: Column<i128>) -> Result<Column<Self>, Error> {
        Ok(wide)
    }

    fn cut(_: &Stream, wide: Column<i128>) -> Result<Column<Self>, Error> {
        Ok(wide)
    }
}

/// A column of decimals: integers, of which the last [`scale`](Self::scale) digits are behind the point. Amounts in cents have the
/// scale 2.
///
/// The integers are a [`Column`], which sources, [`filter`](crate::filter()) and [`Column::compute`] read. Decimals of the same type and scale
/// are keys, and [`Groups`](crate::Groups) add them up and compare them.
///
/// ```
/// use gpu_primitives::{Device, Error};
/// use gpu_relational::{Column, Decimals, group_by};
///
/// let stream = &Device::default()?.stream()?;
/// let price = Decimals::<i64>::upload(stream, ["19.99", "5", "0.5"], 2)?;
/// let rate = Decimals::<i64>::upload(stream, ["0.075", "0.1", "0"], 3)?;
/// let tax = price.mul(stream, &rate)?;
/// assert_eq!(tax.scale(), 5);
/// let rounded = tax.rescale(stream, 2)?;
/// assert_eq!(rounded.to_strings(stream)?, ["1.50", "0.50", "0.00"].map(|x| Some(x.into())));
///
/// let shop = Column::upload(stream, b"aba")?;
/// let sales = group_by(stream, &shop)?.sum(stream, &price)?;
/// assert_eq!(sales.to_strings(stream)?, ["20.49", "5.00"].map(|x| Some(x.into())));
/// # Ok::<(), Error>(())
/// ```
///
/// # Arithmetic
/// | | scale of the result | integers of the result | error |
/// | --- | --- | --- | --- |
/// | `add`, `sub` | the larger scale | `i128` | a result beyond 128 bits |
/// | `mul` | the sum of the scales | `i128` | as above; a scale beyond 38 |
/// | [`Groups::sum`](crate::Groups::sum) | the same | `i128` | as above |
/// | `rescale` | as asked | the same | a result beyond their bits |
/// | `narrow` | the same | `i64` | a result beyond 64 bits |
///
/// Results are exact. Only `rescale` to a smaller scale rounds: to the nearest, and half away from zero, as SQL does. There is no division:
/// divide [floats](Self::to_floats). A result is null where an argument is null, and is 0 there. An element that does not fit is an
/// error, which names the first row; what is null is not asked. -2^127 is beyond 128 bits, too.
///
/// Calls that may find such an element wait for that. Sums, differences and products of `i64` fit always, and do not wait; a
/// sum or a difference must not extend a side by more than 18 digits for that.
#[derive(Debug)]
pub struct Decimals<T: Digits = i64> {
    numbers: Column<T>,
    scale: u8,
}

const FITS_64: &str = "an integer of 64 bits";
const FITS_128: &str = "an integer of 128 bits";

impl<T: Digits> Decimals<T> {
    /// Returns decimals of integers, which count units of 10^-`scale`.
    ///
    /// # Errors
    /// [`Error::InvalidOption`] if the scale is beyond [`Digits::MAX_SCALE`].
    pub fn new(numbers: Column<T>, scale: u8) -> Result<Self, Error> {
        expect_scale::<T>(scale)?;
        Ok(Self { numbers, scale })
    }

    /// Makes a column of decimals as they are written: digits, with a sign or a point or without.
    ///
    /// # Errors
    /// [`Error::InvalidOption`] if a string is no decimal, has more digits behind the point than the scale, or does not fit; same as
    /// [`new`](Self::new) and [`Column::upload`].
    pub fn upload<'a>(stream: &Stream, strings: impl IntoIterator<Item = &'a str>, scale: u8) -> Result<Self, Error> {
        expect_scale::<T>(scale)?;
        let numbers = strings.into_iter().map(|string| parse(string, scale)).collect::<Result<Vec<T>, _>>()?;
        Self::new(Column::upload(stream, &numbers)?, scale)
    }

    /// Makes a column of decimals and nulls. See [`upload`](Self::upload).
    ///
    /// # Errors
    /// Same as [`upload`](Self::upload).
    pub fn upload_optional<'a>(
        stream: &Stream,
        strings: impl IntoIterator<Item = Option<&'a str>>,
        scale: u8,
    ) -> Result<Self, Error> {
        expect_scale::<T>(scale)?;
        let parsed = strings.into_iter().map(|string| string.map(|string| parse(string, scale)).transpose());
        Self::new(Column::upload_optional(stream, &parsed.collect::<Result<Vec<Option<T>>, _>>()?)?, scale)
    }

    /// Returns the integers.
    #[must_use]
    pub fn numbers(&self) -> &Column<T> {
        &self.numbers
    }

    /// Returns the integers, without copying.
    #[must_use]
    pub fn into_numbers(self) -> Column<T> {
        self.numbers
    }

    /// Returns how many digits are behind the point.
    #[must_use]
    pub fn scale(&self) -> u8 {
        self.scale
    }

    /// Returns the number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.numbers.len()
    }

    /// Returns whether there are no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }

    /// Copies the decimals to the host, as they are written: with all digits behind the point. Waits.
    ///
    /// # Errors
    /// Any error of the copy.
    pub fn to_strings(&self, stream: &Stream) -> Result<Vec<Option<String>>, Error> {
        let numbers = self.numbers.to_options(stream)?;
        Ok(numbers.into_iter().map(|number| number.map(|number| written(number.wide(), self.scale))).collect())
    }

    /// Returns the decimals with another number of digits behind the point. Fewer digits round: to the nearest, and half away from
    /// zero.
    ///
    /// # Errors
    /// [`Error::InvalidOption`] if the scale is beyond [`Digits::MAX_SCALE`], or a result does not fit; [`Error::OutOfMemory`]; any
    /// launch error.
    pub fn rescale(&self, stream: &Stream, scale: u8) -> Result<Self, Error> {
        expect_scale::<T>(scale)?;
        if scale < self.scale {
            let wide = self.rounded(stream, scale)?;
            return Self::new(T::cut(stream, self.nullable(stream, wide)?)?, scale);
        }
        let wide = self.extended(stream, scale)?;
        Self::new(T::narrowed(stream, self.nullable(stream, wide)?)?, scale)
    }

    /// Returns the same decimals with integers of 128 bits.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]; any launch error.
    pub fn widen(&self, stream: &Stream) -> Result<Decimals<i128>, Error> {
        let wide = transform::collect(stream, T::widened(self.numbers.values()))?;
        Decimals::new(self.nullable(stream, wide)?, self.scale)
    }

    /// Returns the same decimals with integers of 64 bits.
    ///
    /// # Errors
    /// [`Error::InvalidOption`] if an element does not fit, or the scale is beyond 18; [`Error::OutOfMemory`]; any launch error.
    pub fn narrow(&self, stream: &Stream) -> Result<Decimals<i64>, Error> {
        expect_scale::<i64>(self.scale)?;
        let wide = transform::collect(stream, T::widened(self.numbers.values()))?;
        Decimals::new(sealed::Digits::narrowed(stream, self.nullable(stream, wide)?)?, self.scale)
    }

    /// Returns the sums of the rows of two columns.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if the columns have different lengths; [`Error::InvalidOption`] if a result does not fit;
    /// [`Error::OutOfMemory`]; any launch error.
    pub fn add<U: Digits>(&self, stream: &Stream, other: &Decimals<U>) -> Result<Decimals<i128>, Error> {
        self.add_or_sub(stream, other, 0)
    }

    /// Returns the differences of the rows of two columns.
    ///
    /// # Errors
    /// Same as [`add`](Self::add).
    pub fn sub<U: Digits>(&self, stream: &Stream, other: &Decimals<U>) -> Result<Decimals<i128>, Error> {
        self.add_or_sub(stream, other, -1)
    }

    /// Adds what the other column is, xor a mask, minus the mask.
    fn add_or_sub<U: Digits>(&self, stream: &Stream, other: &Decimals<U>, mask: i128) -> Result<Decimals<i128>, Error> {
        expect_len("decimals beside others", self.len(), other.len())?;
        let scale = self.scale.max(other.scale);
        let (a, b) = (self.extended(stream, scale)?, other.extended(stream, scale)?);
        let most = |of: u128, from: u8| of.checked_mul(power(scale - from));
        let most = most(T::MOST, self.scale).zip(most(U::MOST, other.scale)).and_then(|(a, b)| a.checked_add(b));
        let valid = self.both_valid(stream, other)?;
        if most.is_none_or(|most| most > i128::MAX as u128) {
            let wrong = map!(mask: i128 = mask; |a: i128, b: i128| -> u8 {
                let sum = a + ((b ^ mask) - mask);
                // The sum of two with equal signs has another sign, or the difference of two with different ones.
                let wraps = ((a ^ sum) & (b ^ mask ^ sum)) < 0;
                if wraps || sum << 1 == 0 && sum < 0 { 1 } else { 0 }
            });
            expect_none(stream, map2(&a, &b, wrong), valid.as_ref().map(DeviceVec::as_slice), FITS_128)?;
        }
        let add = map!(mask: i128 = mask; |a: i128, b: i128| -> i128 { a + ((b ^ mask) - mask) });
        let sums = transform::collect(stream, map2(&a, &b, add))?;
        Decimals::new(Column::of_parts(sums, valid)?.with_zeros(stream)?, scale)
    }

    /// Returns the products of the rows of two columns.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if the columns have different lengths; [`Error::InvalidOption`] if a result does not fit, or the scales
    /// add up to more than 38; [`Error::OutOfMemory`]; any launch error.
    pub fn mul<U: Digits>(&self, stream: &Stream, other: &Decimals<U>) -> Result<Decimals<i128>, Error> {
        expect_len("decimals beside others", self.len(), other.len())?;
        expect_scale::<i128>(self.scale + other.scale)?;
        let (a, b) = (T::widened(self.numbers.values()), U::widened(other.numbers.values()));
        let valid = self.both_valid(stream, other)?;
        if T::MOST.checked_mul(U::MOST).is_none_or(|most| most > i128::MAX as u128) {
            let wrong = map!(|a: i128, b: i128| -> u8 { if is_long(a, b) { 1 } else { 0 } });
            expect_none(stream, map2(a, b, wrong), valid.as_ref().map(DeviceVec::as_slice), FITS_128)?;
        }
        let products = transform::collect(stream, map2(a, b, map!(|a: i128, b: i128| -> i128 { a * b })))?;
        Decimals::new(Column::of_parts(products, valid)?.with_zeros(stream)?, self.scale + other.scale)
    }

    /// Returns the quotients of the rows of two columns, with `scale` digits behind the point: exact, then rounded to the nearest, and half
    /// away from zero. A division by 0 is null.
    ///
    /// ```
    /// use gpu_primitives::{Device, Error};
    /// use gpu_relational::Decimals;
    ///
    /// let stream = &Device::default()?.stream()?;
    /// let paid = Decimals::<i64>::upload(stream, ["10.00", "-0.05", "7.00"], 2)?;
    /// let pieces = Decimals::<i64>::upload(stream, ["3", "10", "0"], 0)?;
    /// let each = paid.div(stream, &pieces, 2)?;
    /// assert_eq!(each.to_strings(stream)?, [Some("3.33".into()), Some("-0.01".into()), None]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// It divides bit by bit, and then digit by digit: a column of 128 bits is read and written some ten times.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if the columns have different lengths; [`Error::InvalidOption`] if a result does not fit, or the scale is
    /// beyond 38; [`Error::OutOfMemory`]; any launch error.
    pub fn div<U: Digits>(&self, stream: &Stream, other: &Decimals<U>, scale: u8) -> Result<Decimals<i128>, Error> {
        expect_len("decimals beside others", self.len(), other.len())?;
        expect_scale::<i128>(scale)?;
        // The upper half of what fits into 64 bits is 0: these bits need no division.
        let passes = if T::MOST <= 1 << 63 { 2 } else { 4 };
        let start = map!(shift: u32 = 128 - 32 * passes; |a: i128| -> [u128; 2] { [magnitude(a) << shift, 0] });
        let mut state = transform::collect(stream, mapped(T::widened(self.numbers.values()), start))?;
        for _ in 0..passes {
            let bits = map!(|state: [u128; 2], by: u128| -> [u128; 2] { divided_by_bits(state, by) });
            state = transform::collect(stream, map2(&state, other.magnitudes(), bits))?;
        }
        // How many digits are missing, or too many.
        let (mut missing, many) = (
            (u32::from(scale) + u32::from(other.scale)).saturating_sub(self.scale.into()),
            (u32::from(self.scale)).saturating_sub(u32::from(scale) + u32::from(other.scale)) as u8,
        );
        let magnitudes = if many > 0 {
            // What is left of the division cannot make a half of what is less than that.
            let quotient = map!(half: u128 = power(many) / 2; |state: [u128; 2]| -> u128 { state[0] + half });
            let mut quotients = transform::collect(stream, mapped(&state, quotient))?;
            let mut digits = many;
            while digits > 0 {
                let less = map!(by: u64 = power(digits.min(9)) as u64; |x: u128| -> u128 { divided(x, by) });
                transform::map_in_place(stream, &mut quotients, less)?;
                digits -= digits.min(9);
            }
            quotients
        } else {
            while missing > 0 {
                let append = map!(most: u128 = u128::MAX / 10, digits: u128 = missing.min(4).into(); |state: [u128; 2], by: u128| -> [u128; 2] {
                    with_digits(state, by, digits, most)
                });
                state = transform::collect(stream, map2(&state, other.magnitudes(), append))?;
                missing -= missing.min(4);
            }
            let round = map!(|state: [u128; 2], by: u128| -> u128 {
                if state[1] << 1 >= by && state[0] + 1 != 0 { state[0] + 1 } else { state[0] }
            });
            transform::collect(stream, map2(&state, other.magnitudes(), round))?
        };
        drop(state);
        let is_some = map!(|b: i128| -> u8 { if b != 0 { 1 } else { 0 } });
        let is_some = transform::collect(stream, mapped(U::widened(other.numbers.values()), is_some))?;
        let nulls = self.both_valid(stream, other)?;
        let valid = both_valid(stream, Some(is_some), nulls.as_ref().map(DeviceVec::as_slice))?;
        let wrong = map!(|x: u128| -> u8 { if x >> 127 != 0 { 1 } else { 0 } });
        expect_none(stream, mapped(&magnitudes, wrong), valid.as_ref().map(DeviceVec::as_slice), FITS_128)?;
        let with_sign = map!(|x: u128, a: i128, b: i128| -> i128 {
            let sign = (a ^ b) >> 127;
            (x as i128 ^ sign) - sign
        });
        let (a, b) = (T::widened(self.numbers.values()), U::widened(other.numbers.values()));
        let quotients = transform::collect(stream, map3(&magnitudes, a, b, with_sign))?;
        Decimals::new(Column::of_parts(quotients, valid)?.with_zeros(stream)?, scale)
    }

    /// Returns how far the integers are from 0.
    fn magnitudes(&self) -> impl Source<'_, u128> + Copy {
        mapped(T::widened(self.numbers.values()), map!(|x: i128| -> u128 { magnitude(x) }))
    }

    /// Returns the decimals as floats: the integer, rounded, by the power of ten.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]; any launch error.
    pub fn to_floats(&self, stream: &Stream) -> Result<Column<f64>, Error> {
        let floats = T::to_floats(stream, self.numbers.values())?;
        let divided = map!(by: f64 = self.unit(); |x: f64| -> f64 { x / by });
        let (floats, valid) = (transform::collect(stream, mapped(&floats, divided))?, self.numbers.valid());
        Column::of_parts(floats, both_valid(stream, None, valid)?)?.with_zeros(stream)
    }

    /// Returns decimals of these integers, with the scale of this column.
    pub(crate) fn with_numbers(&self, numbers: Column<T>) -> Self {
        Self { numbers, scale: self.scale }
    }

    /// Returns what 1 is in these integers.
    pub(crate) fn unit(&self) -> f64 {
        power(self.scale) as f64
    }

    /// Returns the integers at a scale that is not smaller.
    fn extended(&self, stream: &Stream, scale: u8) -> Result<DeviceVec<i128>, Error> {
        let (wide, by) = (T::widened(self.numbers.values()), power(scale - self.scale));
        let most = i128::MAX as u128 / by;
        if by > 1 && T::MOST > most {
            let wrong = map!(most: u128 = most; |x: i128| -> u8 { if magnitude(x) > most { 1 } else { 0 } });
            expect_none(stream, mapped(wide, wrong), self.numbers.valid(), FITS_128)?;
        }
        transform::collect(stream, mapped(wide, map!(by: i128 = by as i128; |x: i128| -> i128 { x * by })))
    }

    /// Returns the integers at a smaller scale.
    fn rounded(&self, stream: &Stream, scale: u8) -> Result<DeviceVec<i128>, Error> {
        let (mut half, mut digits) = (power(self.scale - scale) / 2, self.scale - scale);
        let mut numbers = transform::collect(stream, T::widened(self.numbers.values()))?;
        while digits > 0 {
            let by = power(digits.min(9));
            let divide = map!(half: u128 = half, by: u128 = by; |x: i128| -> i128 {
                let sign = x >> 127;
                let quotient = divided(magnitude(x) + half, by as u64) as i128;
                (quotient ^ sign) - sign
            });
            transform::map_in_place(stream, &mut numbers, divide)?;
            (half, digits) = (0, digits - digits.min(9));
        }
        Ok(numbers)
    }

    /// Returns a column of these numbers that is null where this one is, above zeros.
    fn nullable(&self, stream: &Stream, numbers: DeviceVec<i128>) -> Result<Column<i128>, Error> {
        Column::of_parts(numbers, both_valid(stream, None, self.numbers.valid())?)?.with_zeros(stream)
    }

    fn both_valid<U: Digits>(&self, stream: &Stream, other: &Decimals<U>) -> Result<Option<DeviceVec<u8>>, Error> {
        both_valid(stream, both_valid(stream, None, self.numbers.valid())?, other.numbers.valid())
    }
}

impl Decimals<i64> {
    /// Returns floats as decimals: rounded to the nearest, and half away from zero.
    ///
    /// The float is multiplied by the power of ten first, which rounds, too.
    ///
    /// # Errors
    /// [`Error::InvalidOption`] if the scale is beyond 18, or a float is NaN, infinite, or too large; [`Error::OutOfMemory`]; any launch
    /// error.
    pub fn from_floats(stream: &Stream, floats: &Column<f64>, scale: u8) -> Result<Self, Error> {
        expect_scale::<i64>(scale)?;
        let unit = power(scale) as f64;
        let wrong = map!(unit: f64 = unit; |x: f64| -> u8 {
            // The floats below 2^63 are integers that fit.
            if (x * unit).abs() < 9_223_372_036_854_775_808.0 { 0 } else { 1 }
        });
        expect_none(stream, mapped(floats, wrong), floats.valid(), FITS_64)?;
        let round = map!(unit: f64 = unit; |x: f64| -> i64 {
            let whole = (x * unit).trunc();
            let away = if (x * unit - whole).abs() >= 0.5 { (1.0f64).copysign(x) } else { 0.0 };
            (whole + away) as i64
        });
        let numbers = transform::collect(stream, mapped(floats, round))?;
        let numbers = Column::of_parts(numbers, both_valid(stream, None, floats.valid())?)?;
        Self::new(numbers.with_zeros(stream)?, scale)
    }
}

impl<T: Digits> Take for &Decimals<T> {
    type Taken = Decimals<T>;

    fn take(self, stream: &Stream, rows: &Rows) -> Result<Decimals<T>, Error> {
        Ok(self.with_numbers(self.numbers.take(stream, rows)?))
    }
}

/// Returns an error if a row is wrong and not null.
pub(crate) fn expect_none<'a>(
    stream: &Stream,
    wrong: impl Source<'a, u8>,
    valid: Option<DeviceSlice<'a, u8>>,
    allowed: &'static str,
) -> Result<(), Error> {
    let is_one = predicate!(|wrong: u8| wrong != 0);
    let row = match valid {
        Some(valid) => {
            let both = map!(|wrong: u8, valid: u8| -> u8 { if valid != 0 { wrong } else { 0 } });
            reduce::find_first(stream, map2(wrong, valid, both), is_one)?
        }
        None => reduce::find_first(stream, wrong, is_one)?,
    };
    match row.get(stream)? {
        reduce::NOT_FOUND => Ok(()),
        row => Err(Error::InvalidOption { what: "a result", asked: format!("beyond that in row {row}"), allowed }),
    }
}

fn expect_scale<T: Digits>(scale: u8) -> Result<(), Error> {
    if scale <= T::MAX_SCALE {
        return Ok(());
    }
    Err(Error::InvalidOption {
        what: "a scale of decimals",
        asked: scale.to_string(),
        allowed: "at most 18 for integers of 64 bits, and 38 for those of 128",
    })
}

const fn power(exponent: u8) -> u128 {
    10u128.pow(exponent as u32)
}

/// Returns how far a number is from 0.
#[operator]
fn magnitude(x: i128) -> u128 {
    let sign = x >> 127;
    ((x ^ sign) - sign) as u128
}

/// Returns whether a product is beyond 128 bits.
#[operator]
fn is_long(a: i128, b: i128) -> bool {
    let (a, b) = (magnitude(a), magnitude(b));
    let (a_high, b_high) = (a >> 64, b >> 64);
    let (a_low, b_low) = (a as u64 as u128, b as u64 as u128);
    // One of them is 0, or both numbers are too long.
    let cross = a_high * b_low + b_high * a_low;
    let top = cross + ((a_low * b_low) >> 64);
    a_high != 0 && b_high != 0 || top >> 63 != 0
}

/// Divides by a number of up to 32 bits, digit by digit of 32 bits.
#[operator]
fn divided(x: u128, by: u64) -> u128 {
    let mut quotient = 0u128;
    let mut rest = 0u64;
    for digit in 0..4 {
        let place = 96 - 32 * digit as u32;
        let part = (rest << 32) | ((x >> place) as u64 & 0xFFFF_FFFF);
        quotient |= ((part / by) as u128) << place;
        rest = part % by;
    }
    quotient
}

/// Divides 32 more bits: the upper ones of the first number, which the bits of the quotient follow. The second number is the rest so far.
#[operator]
fn divided_by_bits(state: [u128; 2], by: u128) -> [u128; 2] {
    let mut quotient = state[0];
    let mut rest = state[1];
    for _bit in 0..32 {
        let next = (rest << 1) | (quotient >> 127);
        let fits = next >= by;
        rest = if fits { next - by } else { next };
        quotient = (quotient << 1) | (if fits { 1u128 } else { 0u128 });
    }
    [quotient, rest]
}

/// Appends up to four decimal digits to a quotient, and returns what is left. A quotient that does not fit becomes the greatest number.
#[operator]
fn with_digits(state: [u128; 2], by: u128, digits: u128, most: u128) -> [u128; 2] {
    let mut quotient = state[0];
    let mut rest = state[1];
    for digit in 0..4 {
        // Ten times the rest: twice, twice again, once more, twice again. Each time it is less than twice the divisor.
        let mut next = rest << 1;
        let mut count = if next >= by { 1u128 } else { 0u128 };
        next = if next >= by { next - by } else { next };
        next = next << 1;
        count = (count << 1) + (if next >= by { 1u128 } else { 0u128 });
        next = if next >= by { next - by } else { next };
        next = next + rest;
        count = count + (if next >= by { 1u128 } else { 0u128 });
        next = if next >= by { next - by } else { next };
        next = next << 1;
        count = (count << 1) + (if next >= by { 1u128 } else { 0u128 });
        next = if next >= by { next - by } else { next };
        let is_missing = (digit as u128) < digits;
        let appended = if quotient >= most { !0u128 } else { quotient * 10 + count };
        quotient = if is_missing { appended } else { quotient };
        rest = if is_missing { next } else { rest };
    }
    [quotient, rest]
}

/// Reads a decimal.
fn parse<T: Digits>(string: &str, scale: u8) -> Result<T, Error> {
    let wrong = || Error::InvalidOption {
        what: "a decimal",
        asked: format!("`{string}`, at the scale {scale}"),
        allowed: "digits, with a sign or a point or without; no more behind the point than the scale, and no more than fit",
    };
    let digits = string.strip_prefix(['-', '+']).unwrap_or(string);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let is_decimal = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let short = usize::from(scale).checked_sub(fraction.len());
    let Some(missing) = short.filter(|_| is_decimal(whole) && is_decimal(fraction) && whole.len() + fraction.len() > 0)
    else {
        return Err(wrong());
    };
    let mut number = Some(0i128);
    let zeros = std::iter::repeat_n(b'0', missing);
    for digit in whole.bytes().chain(fraction.bytes()).chain(zeros) {
        let digit = i128::from(digit - b'0');
        let signed = if string.starts_with('-') { -digit } else { digit };
        number = number.and_then(|number| number.checked_mul(10)?.checked_add(signed));
    }
    number.and_then(T::of).ok_or_else(wrong)
}

/// Writes a decimal.
fn written(number: i128, scale: u8) -> String {
    let (sign, magnitude, unit) = (if number < 0 { "-" } else { "" }, number.unsigned_abs(), power(scale));
    let (whole, fraction) = (magnitude / unit, magnitude % unit);
    if scale == 0 {
        return format!("{sign}{whole}");
    }
    format!("{sign}{whole}.{fraction:0width$}", width = usize::from(scale))
}

impl<T: Pod> Column<T> {
    /// Returns a column of elements, and which of them are valid.
    pub(crate) fn of_parts(values: DeviceVec<T>, valid: Option<DeviceVec<u8>>) -> Result<Self, Error> {
        match valid {
            Some(valid) => Self::with_valid(values, valid),
            None => Self::new(values),
        }
    }
}
