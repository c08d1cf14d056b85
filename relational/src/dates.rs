//! Dates, and moments of time.

use crate::Column;
use crate::column::both_valid;
use crate::decimals::expect_none;
use crate::rows::{Rows, Take};
use bytemuck::Pod;
use gpu_primitives::map::Map;
use gpu_primitives::operator::{map, operator};
use gpu_primitives::source::map as mapped;
use gpu_primitives::{Error, Stream, transform};
use std::sync::Arc;

/// A column of dates: days since 1970-01-01, in the Gregorian calendar, which is continued to all years.
///
/// The days are a [`Column`], which sources and [`filter`](crate::filter()) read. Dates are keys, and have a
/// [`min`](crate::Groups::min) and a [`max`](crate::Groups::max).
///
/// ```
/// use gpu_primitives::operator::predicate;
/// use gpu_primitives::{Device, Error};
/// use gpu_relational::{Dates, filter};
///
/// let stream = &Device::default()?.stream()?;
/// let sold = Dates::upload(stream, ["1995-03-15", "1996-02-29", "1969-12-31"])?;
/// let from = const { Dates::day(1995, 3, 16).unwrap() };
/// let late = filter(stream, sold.days(), predicate!(from: i32 = from; |day: i32| day >= from))?;
/// assert_eq!(late.take(stream, &sold)?.to_strings(stream)?, [Some("1996-02-29".into())]);
/// assert_eq!(sold.year(stream)?.to_vec(stream)?, [1995, 1996, 1969]);
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug)]
pub struct Dates {
    days: Column<i32>,
}

impl Dates {
    /// Returns dates of days since 1970-01-01.
    #[must_use]
    pub fn new(days: Column<i32>) -> Self {
        Self { days }
    }

    /// Returns the days from 1970-01-01 to a date; `None` if there is no such date, or its day needs more than 32 bits.
    #[must_use]
    pub const fn day(year: i32, month: u32, day: u32) -> Option<i32> {
        let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        let in_month = match month {
            2 => 28 + is_leap as u32,
            4 | 6 | 9 | 11 => 30,
            1..=12 => 31,
            _ => 0,
        };
        if day == 0 || day > in_month {
            return None;
        }
        // Years that begin in March end with the day that is not always there.
        let (year, month) = if month > 2 { (year as i64, month - 3) } else { (year as i64 - 1, month + 9) };
        let leap = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
        let days = year * 365 + leap + ((month * 153 + 2) / 5 + day) as i64 - 1 - MARCH_0;
        if days == days as i32 as i64 { Some(days as i32) } else { None }
    }

    /// Makes a column of dates as they are written: `1995-03-15`.
    ///
    /// # Errors
    /// [`Error::InvalidOption`] if a string is no date; same as [`Column::upload`].
    pub fn upload<'a>(stream: &Stream, strings: impl IntoIterator<Item = &'a str>) -> Result<Self, Error> {
        let days = strings.into_iter().map(parse).collect::<Result<Vec<i32>, _>>()?;
        Ok(Self { days: Column::upload(stream, &days)? })
    }

    /// Makes a column of dates and nulls. See [`upload`](Self::upload).
    ///
    /// # Errors
    /// Same as [`upload`](Self::upload).
    pub fn upload_optional<'a>(
        stream: &Stream,
        strings: impl IntoIterator<Item = Option<&'a str>>,
    ) -> Result<Self, Error> {
        let days = strings.into_iter().map(|string| string.map(parse).transpose());
        Ok(Self { days: Column::upload_optional(stream, &days.collect::<Result<Vec<Option<i32>>, _>>()?)? })
    }

    /// Returns the days since 1970-01-01.
    #[must_use]
    pub fn days(&self) -> &Column<i32> {
        &self.days
    }

    /// Returns the days, without copying.
    #[must_use]
    pub fn into_days(self) -> Column<i32> {
        self.days
    }

    /// Returns the number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.days.len()
    }

    /// Returns whether there are no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.days.is_empty()
    }

    /// Returns the year of each date.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]; any launch error.
    pub fn year(&self, stream: &Stream) -> Result<Column<i32>, Error> {
        self.part(stream, map!(|day: i32| -> i32 { civil(day)[0] }))
    }

    /// Returns the month of each date, from 1 on.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]; any launch error.
    pub fn month(&self, stream: &Stream) -> Result<Column<u8>, Error> {
        self.part(stream, map!(|day: i32| -> u8 { civil(day)[1] as u8 }))
    }

    /// Returns the day of the month of each date, from 1 on.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]; any launch error.
    pub fn day_of_month(&self, stream: &Stream) -> Result<Column<u8>, Error> {
        self.part(stream, map!(|day: i32| -> u8 { civil(day)[2] as u8 }))
    }

    /// Returns the day of the week of each date, as ISO 8601 has them: 1 is Monday, and 7 is Sunday.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]; any launch error.
    pub fn weekday(&self, stream: &Stream) -> Result<Column<u8>, Error> {
        // 1970 began on a Thursday. The days are counted from one long before, since a remainder has the sign of the dividend.
        self.part(stream, map!(|day: i32| -> u8 { ((day as i64 + 7_000_000_003) % 7 + 1) as u8 }))
    }

    /// Returns the first day of each date's month: to group by months. In the first month that 32 bits have, which they do not have whole,
    /// it is the first day that they have.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]; any launch error.
    pub fn first_of_month(&self, stream: &Stream) -> Result<Self, Error> {
        let first = map!(|day: i32| -> i32 {
            let first = day as i64 - civil(day)[2] as i64 + 1;
            first.max(-0x8000_0000) as i32
        });
        Ok(Self { days: self.part(stream, first)? })
    }

    /// Copies the dates to the host, as they are written. Waits.
    ///
    /// # Errors
    /// Any error of the copy.
    pub fn to_strings(&self, stream: &Stream) -> Result<Vec<Option<String>>, Error> {
        Ok(self.days.to_options(stream)?.into_iter().map(|day| day.map(|day| written(day.into()))).collect())
    }

    fn part<T: Pod>(&self, stream: &Stream, part: impl Map<i32, Output = T>) -> Result<Column<T>, Error> {
        let parts = transform::collect(stream, mapped(&self.days, part))?;
        Column::of_parts(parts, both_valid(stream, None, self.days.valid())?)?.with_zeros(stream)
    }
}

impl Take for &Dates {
    type Taken = Dates;

    fn take(self, stream: &Stream, rows: &Rows) -> Result<Dates, Error> {
        Ok(Dates { days: self.days.take(stream, rows)? })
    }
}

/// What a moment of [`Timestamps`] counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TimeUnit {
    /// Seconds.
    Second,
    /// Thousandths of a second.
    Millisecond,
    /// Millionths of a second.
    Microsecond,
    /// Billionths of a second.
    Nanosecond,
}

impl TimeUnit {
    /// Returns how many there are in a second.
    #[must_use]
    pub const fn per_second(self) -> i64 {
        match self {
            Self::Second => 1,
            Self::Millisecond => 1_000,
            Self::Microsecond => 1_000_000,
            Self::Nanosecond => 1_000_000_000,
        }
    }
}

/// A column of moments: how many of a unit there are since 1970-01-01 00:00, without leap seconds.
///
/// The numbers are a [`Column`], which sources and [`filter`](crate::filter()) read. Timestamps of the same unit are keys, also of
/// [`join::as_of`](crate::join::as_of), and have a [`min`](crate::Groups::min) and a [`max`](crate::Groups::max).
///
/// ```
/// use gpu_primitives::{Device, Error};
/// use gpu_relational::{Column, TimeUnit, Timestamps};
///
/// let stream = &Device::default()?.stream()?;
/// let seen = Timestamps::new(Column::upload(stream, &[-1i64, 86_400_000])?, TimeUnit::Millisecond);
/// assert_eq!(seen.to_strings(stream)?[0].as_deref(), Some("1969-12-31T23:59:59.999"));
/// assert_eq!(seen.dates(stream)?.to_strings(stream)?, ["1969-12-31", "1970-01-02"].map(|x| Some(x.into())));
/// assert_eq!(seen.convert(stream, TimeUnit::Second)?.numbers().to_vec(stream)?, [-1, 86_400]);
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug)]
pub struct Timestamps {
    numbers: Column<i64>,
    unit: TimeUnit,
    zone: Option<Arc<str>>,
}

const FITS: &str = "an integer of 64 bits, or a date of 32";

impl Timestamps {
    /// Returns moments of these numbers of a unit.
    #[must_use]
    pub fn new(numbers: Column<i64>, unit: TimeUnit) -> Self {
        Self { numbers, unit, zone: None }
    }

    /// Returns these moments with the name of a time zone, which goes where they go, and changes no result: numbers with a time zone are in
    /// UTC, those without are in some local time.
    #[must_use]
    pub fn with_zone(self, zone: &str) -> Self {
        Self { zone: Some(zone.into()), ..self }
    }

    /// Returns the numbers.
    #[must_use]
    pub fn numbers(&self) -> &Column<i64> {
        &self.numbers
    }

    /// Returns the numbers, without copying.
    #[must_use]
    pub fn into_numbers(self) -> Column<i64> {
        self.numbers
    }

    /// Returns the unit.
    #[must_use]
    pub fn unit(&self) -> TimeUnit {
        self.unit
    }

    /// Returns the name of the time zone; `None` for local times.
    #[must_use]
    pub fn zone(&self) -> Option<&str> {
        self.zone.as_deref()
    }

    /// Returns moments of these numbers, with the unit and the zone of this column.
    pub(crate) fn with_numbers(&self, numbers: Column<i64>) -> Self {
        Self { numbers, unit: self.unit, zone: self.zone.clone() }
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

    /// Returns the same moments in another unit. A coarser one rounds down, also before 1970.
    ///
    /// # Errors
    /// [`Error::InvalidOption`] if a number does not fit in 64 bits, which names the first row: a finer unit waits for that.
    /// [`Error::OutOfMemory`]; any launch error.
    pub fn convert(&self, stream: &Stream, unit: TimeUnit) -> Result<Self, Error> {
        let (from, to) = (self.unit.per_second(), unit.per_second());
        let numbers = if to > from {
            let by = to / from;
            let wrong = map!(most: i64 = i64::MAX / by; |x: i64| -> u8 { if x > most || x < -most { 1 } else { 0 } });
            expect_none(stream, mapped(&self.numbers, wrong), self.numbers.valid(), FITS)?;
            transform::collect(stream, mapped(&self.numbers, map!(by: i64 = by; |x: i64| -> i64 { x * by })))?
        } else {
            let floor = map!(by: i64 = from / to; |x: i64| -> i64 { floored(x, by) });
            transform::collect(stream, mapped(&self.numbers, floor))?
        };
        let numbers = Column::of_parts(numbers, both_valid(stream, None, self.numbers.valid())?)?;
        Ok(Self { unit, ..self.with_numbers(numbers.with_zeros(stream)?) })
    }

    /// Returns the dates of the moments, in UTC if there is a [zone](Self::zone).
    ///
    /// # Errors
    /// [`Error::InvalidOption`] if a date does not fit in 32 bits, which names the first row: seconds and milliseconds wait for
    /// that. [`Error::OutOfMemory`]; any launch error.
    pub fn dates(&self, stream: &Stream) -> Result<Dates, Error> {
        let per_day = self.unit.per_second() * 86_400;
        if i64::MAX / per_day > i32::MAX.into() {
            let wrong = map!(by: i64 = per_day; |x: i64| -> u8 {
                let day = floored(x, by);
                if day as i32 as i64 == day { 0 } else { 1 }
            });
            expect_none(stream, mapped(&self.numbers, wrong), self.numbers.valid(), FITS)?;
        }
        let day = map!(by: i64 = per_day; |x: i64| -> i32 { floored(x, by) as i32 });
        let days = transform::collect(stream, mapped(&self.numbers, day))?;
        let days = Column::of_parts(days, both_valid(stream, None, self.numbers.valid())?)?;
        Ok(Dates { days: days.with_zeros(stream)? })
    }

    /// Returns how many of the unit there are since midnight, in UTC if there is a [zone](Self::zone).
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]; any launch error.
    pub fn time_of_day(&self, stream: &Stream) -> Result<Column<i64>, Error> {
        let time = map!(by: i64 = self.unit.per_second() * 86_400; |x: i64| -> i64 { x - floored(x, by) * by });
        let times = transform::collect(stream, mapped(&self.numbers, time))?;
        Column::of_parts(times, both_valid(stream, None, self.numbers.valid())?)?.with_zeros(stream)
    }

    /// Copies the moments to the host, as ISO 8601 writes them, without the zone. Waits.
    ///
    /// # Errors
    /// Any error of the copy.
    pub fn to_strings(&self, stream: &Stream) -> Result<Vec<Option<String>>, Error> {
        let (per_second, digits) = (self.unit.per_second(), self.unit.per_second().ilog10() as usize);
        let string = |x: i64| {
            let (second, fraction) = (x.div_euclid(per_second), x.rem_euclid(per_second));
            let (day, time) = (second.div_euclid(86_400), second.rem_euclid(86_400));
            let (hour, minute, second) = (time / 3600, time / 60 % 60, time % 60);
            let fraction = if digits > 0 { format!(".{fraction:0digits$}") } else { String::new() };
            format!("{}T{hour:02}:{minute:02}:{second:02}{fraction}", written(day))
        };
        Ok(self.numbers.to_options(stream)?.into_iter().map(|x| x.map(string)).collect())
    }
}

impl Take for &Timestamps {
    type Taken = Timestamps;

    fn take(self, stream: &Stream, rows: &Rows) -> Result<Timestamps, Error> {
        Ok(self.with_numbers(self.numbers.take(stream, rows)?))
    }
}

/// The days from 0000-03-01 to 1970-01-01.
const MARCH_0: i64 = 719_468;

/// The days of 400 years.
const ERA: i64 = 146_097;

/// Divides, and rounds down.
#[operator]
fn floored(x: i64, by: i64) -> i64 {
    let quotient = x / by;
    if x % by < 0 { quotient - 1 } else { quotient }
}

/// Returns the year, the month and the day of the month of a day since 1970-01-01.
#[operator]
fn civil(day: i32) -> [i32; 3] {
    // Days since the first of March of a year that 400 divides, and years from March to February.
    let days = day as i64 + MARCH_0;
    let era = floored(days, ERA);
    let of_era = days - era * ERA;
    // Without the leap days before it: one every 4 years, none every 100, one at the end of 400.
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (year * 365 + year / 4 - year / 100);
    let month = (of_year * 5 + 2) / 153;
    let of_month = of_year - (month * 153 + 2) / 5 + 1;
    let year = era * 400 + year;
    if month < 10 {
        [year as i32, month as i32 + 3, of_month as i32]
    } else {
        [year as i32 + 1, month as i32 - 9, of_month as i32]
    }
}

/// Reads a date.
fn parse(string: &str) -> Result<i32, Error> {
    let read = || {
        let (sign, digits) = string.strip_prefix('-').map_or((1, string), |rest| (-1, rest));
        let mut parts = digits.split('-');
        let (year, month, day) = (parts.next()?, parts.next()?, parts.next()?);
        let is_number = |part: &str, len: usize| part.len() == len && part.bytes().all(|byte| byte.is_ascii_digit());
        if parts.next().is_some() || year.len() < 4 || !is_number(year, year.len()) {
            return None;
        }
        if !is_number(month, 2) || !is_number(day, 2) {
            return None;
        }
        Dates::day(sign * year.parse::<i32>().ok()?, month.parse().ok()?, day.parse().ok()?)
    };
    read().ok_or_else(|| Error::InvalidOption {
        what: "a date",
        asked: format!("`{string}`"),
        allowed: "one of the calendar, as in `1995-03-15`",
    })
}

/// Writes the date of a day since 1970-01-01, also of one beyond 32 bits.
fn written(day: i64) -> String {
    // The calendar repeats itself every 400 years.
    let eras = day.div_euclid(ERA);
    let [year, month, day] = civil(day.rem_euclid(ERA) as i32);
    let year = i64::from(year) + eras * 400;
    let sign = if year < 0 { "-" } else { "" };
    format!("{sign}{:04}-{month:02}-{day:02}", year.unsigned_abs())
}
