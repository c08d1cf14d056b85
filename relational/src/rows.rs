//! Rows: what a filter, a join or a sort gives.

use crate::Column;
use crate::column::expect_len;
use crate::key::Keys;
use crate::strings::{Strings, Text};
use bytemuck::Pod;
use gpu_primitives::operator::predicate;
use gpu_primitives::select::Predicate;
use gpu_primitives::source::{Source, at, counting};
use gpu_primitives::{DeviceSlice, DeviceVec, Error, Stream, select, transform};

/// The position of a row that does not exist: an outer join gives it where there is no match.
pub const NO_ROW: u32 = u32::MAX;

/// Rows of a table: their positions, in any order, any number of times. Columns are gathered only when they are used.
///
/// ```
/// use gpu_primitives::operator::predicate;
/// use gpu_primitives::{Device, Error};
/// use gpu_relational::{Column, filter};
///
/// let stream = &Device::default()?.stream()?;
/// let price = Column::upload(stream, &[30u32, 5, 80])?;
/// let name = Column::upload(stream, &[b'a', b'b', b'c'])?;
/// let expensive = filter(stream, &price, predicate!(|price: u32| price > 10))?;
/// assert_eq!(expensive.take(stream, &name)?.to_vec(stream)?, b"ac");
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug)]
pub struct Rows {
    positions: DeviceVec<u32>,
    /// The length of a table that has all of these rows; nothing, if some may not exist.
    below: Option<usize>,
}

/// Returns the rows whose element passes. The elements are those of any source: of a column, or computed of several.
///
/// A null is what lies there, which is 0 in [columns that this crate made](Column#what-lies-under-a-null). [`Rows::valid`] leaves nulls
/// out.
///
/// Reads the source once. Waits for the number of rows.
///
/// # Errors
/// [`Error::TooLong`] for 2^32 - 1 elements or more; [`Error::OutOfMemory`]; any launch error.
pub fn filter<'a, T: Pod>(
    stream: &Stream,
    source: impl Source<'a, T>,
    predicate: impl Predicate<T>,
) -> Result<Rows, Error> {
    let source = source.into_parts()?;
    let len = source.len();
    expect_rows(len)?;
    Ok(Rows::existing(select::collect_positions(stream, source, predicate)?, len))
}

impl Rows {
    /// Returns rows that all exist in tables of at least `below` rows.
    pub(crate) fn existing(positions: DeviceVec<u32>, below: usize) -> Self {
        Self { positions, below: Some(below) }
    }

    /// Returns rows at these positions. A row that the table does not have is null in all columns, whatever the length of the table.
    ///
    /// # Errors
    /// [`Error::TooLong`] for 2^32 - 1 rows or more.
    pub fn new(positions: DeviceVec<u32>) -> Result<Self, Error> {
        expect_rows(positions.len())?;
        Ok(Self { positions, below: None })
    }

    /// Returns all rows of a table.
    ///
    /// # Errors
    /// [`Error::TooLong`] for 2^32 - 1 rows or more; [`Error::OutOfMemory`]; any launch error.
    pub fn all(stream: &Stream, len: usize) -> Result<Self, Error> {
        expect_rows(len)?;
        Ok(Self::existing(transform::collect(stream, counting(0u32, len))?, len))
    }

    /// Returns the rows whose element in this column is not null.
    ///
    /// # Errors
    /// Same as [`filter`].
    pub fn valid<T: Pod>(stream: &Stream, column: &Column<T>) -> Result<Self, Error> {
        match column.valid() {
            Some(valid) => filter(stream, valid, predicate!(|valid: u8| valid != 0)),
            None => Self::all(stream, column.len()),
        }
    }

    /// Returns the number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.positions.len()
    }

    /// Returns whether there are no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.positions.is_empty()
    }

    /// Returns the positions. [`NO_ROW`] and all positions beyond a table are rows that do not exist.
    #[must_use]
    pub fn positions(&self) -> DeviceSlice<'_, u32> {
        self.positions.as_slice()
    }

    /// Returns whether some of the rows may not exist.
    pub(crate) fn may_be_missing(&self) -> bool {
        self.below.is_none()
    }

    /// Returns an error if a table of `len` rows is shorter than the one that these rows were made for.
    pub(crate) fn expect_in(&self, len: usize) -> Result<(), Error> {
        match self.below {
            Some(below) if below > len => {
                Err(Error::LengthMismatch { what: "a column at rows of a longer table", expected: below, found: len })
            }
            _ => Ok(()),
        }
    }

    /// Returns a column, or rows, or a tuple of these, at these rows: element `i` of the result is element `self[i]`.
    ///
    /// Rows know how long the table was that a filter, a join or a sort made them for. A column may be longer than that, but not
    /// shorter. A [`Text`] waits for the number of its bytes; nothing else waits.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if a column is shorter than the table that the rows were made for; [`Error::OutOfMemory`]; any launch
    /// error.
    pub fn take<T: Take>(&self, stream: &Stream, what: T) -> Result<T::Taken, Error> {
        what.take(stream, self)
    }

    /// Returns the elements of a column at these rows as a source, which is gathered when it is read. It has zeros where there is no
    /// such row, and what lies there for nulls. A column that is too short is not noticed.
    #[must_use]
    pub fn of<'a, T: Pod>(&'a self, column: &'a Column<T>) -> impl Source<'a, T> + Copy {
        at(column, self.positions())
    }

    /// Returns those of these rows whose element passes. The elements are in step with the rows.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if there is not an element for each row; those of [`filter`](filter()).
    pub fn filter<'a, T: Pod>(
        &self,
        stream: &Stream,
        source: impl Source<'a, T>,
        predicate: impl Predicate<T>,
    ) -> Result<Self, Error> {
        let source = source.into_parts()?;
        expect_len("a condition of rows", self.len(), source.len())?;
        let kept = filter(stream, source, predicate)?;
        kept.take(stream, self)
    }

    /// Returns the keys of these rows: one column, or a tuple of them, in the order of their importance. A column may be a key of rows
    /// itself: `rows.on(inner.on(&column))` is the column at those rows of `inner`.
    pub fn on<'a>(&'a self, columns: impl Into<Keys<'a>>) -> Keys<'a> {
        columns.into().at(self)
    }

    /// Copies the positions to the host. Waits.
    ///
    /// # Errors
    /// Any error of the copy.
    pub fn to_vec(&self, stream: &Stream) -> Result<Vec<u32>, Error> {
        self.positions.to_vec(stream)
    }

    /// Returns the first rows.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]; any error of the copy.
    pub fn first(&self, stream: &Stream, len: usize) -> Result<Self, Error> {
        let len = len.min(self.len());
        let mut positions = stream.uninit(len)?;
        positions.copy_from(stream, self.positions.slice(..len)?)?;
        Ok(Self { positions, ..*self })
    }
}

/// What can be [taken](Rows::take) at rows.
pub trait Take {
    /// What it becomes.
    type Taken;

    /// Returns it at these rows.
    ///
    /// # Errors
    /// Same as [`Rows::take`].
    fn take(self, stream: &Stream, rows: &Rows) -> Result<Self::Taken, Error>;
}

impl<T: Pod> Take for &Column<T> {
    type Taken = Column<T>;

    fn take(self, stream: &Stream, rows: &Rows) -> Result<Column<T>, Error> {
        Column::take(self, stream, rows)
    }
}

impl Take for &Strings {
    type Taken = Strings;

    fn take(self, stream: &Stream, rows: &Rows) -> Result<Strings, Error> {
        Strings::take(self, stream, rows)
    }
}

impl Take for &Text {
    type Taken = Text;

    fn take(self, stream: &Stream, rows: &Rows) -> Result<Text, Error> {
        Text::take(self, stream, rows)
    }
}

impl Take for &Rows {
    type Taken = Rows;

    fn take(self, stream: &Stream, rows: &Rows) -> Result<Rows, Error> {
        rows.expect_in(self.len())?;
        if self.may_be_missing() || rows.may_be_missing() {
            return Rows::new(crate::join::rows_or_none(stream, &self.positions, &rows.positions)?);
        }
        let positions = transform::collect(stream, at(&self.positions, &rows.positions))?;
        Ok(Rows { positions, below: self.below })
    }
}

macro_rules! tuples {
    ($(($($name:ident $number:tt),+))*) => { $(
        impl<$($name: Take),+> Take for ($($name,)+) {
            type Taken = ($($name::Taken,)+);

            fn take(self, stream: &Stream, rows: &Rows) -> Result<Self::Taken, Error> {
                Ok(($(self.$number.take(stream, rows)?,)+))
            }
        }
    )* };
}

tuples! {
    (A 0, B 1)
    (A 0, B 1, C 2)
    (A 0, B 1, C 2, D 3)
    (A 0, B 1, C 2, D 3, E 4)
    (A 0, B 1, C 2, D 3, E 4, F 5)
}

/// Returns an error if positions of 32 bits do not do for so many rows.
pub(crate) fn expect_rows(len: usize) -> Result<(), Error> {
    let limit = NO_ROW as usize - 1;
    if len <= limit { Ok(()) } else { Err(Error::TooLong { what: "the rows of a table", len, limit }) }
}
