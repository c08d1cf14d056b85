//! Keys: rows as numbers that are equal and ordered as the rows are.
//!
//! Whatever columns a key has, it becomes one number of at most 64 bits per row. Joins, groups and sorts work on these alone.
//! The [numbers] of short columns are [packed] side by side. Where that takes more than 64 bits, what is packed so far is replaced by
//! its rank among all rows, which takes no more than 32. A number of at most 32 bits has 32 bits in memory, too: every pass over
//! it, and every pass of a sort, moves half the bytes.

mod numbers;
mod packed;

use crate::column::{both_valid, expect_len, valid_at};
use crate::decimals::Digits;
use crate::rows::{Rows, expect_rows};
use crate::{Column, Dates, Decimals, Strings, Timestamps};
use gpu_primitives::operator::map;
use gpu_primitives::source::{at, map as mapped};
use gpu_primitives::{DeviceSlice, DeviceVec, Error, Stream, transfer, transform};
pub use numbers::Key;
pub(crate) use numbers::{Codes, Numbers, Width, fit_caches, with_short, with_width};
use numbers::{Elements, Parts, Shape};
pub(crate) use packed::{Packed, Sorted, in_order, run_offsets};

/// The key columns of some rows, in the order of their importance.
///
/// A reference to a column is a key, and so is a tuple of keys. [`Rows::on`] makes one of some rows of a table. [`asc`] and [`desc`] say
/// how to sort by it. All columns of a key have the same number of rows. A null is less than all other elements.
///
/// Both sides of a join have the same types of columns, and the same of [`asc`] and [`desc`] for each.
pub struct Keys<'a> {
    columns: Vec<KeyColumn<'a>>,
    /// Whether to find out how many bits the columns need.
    narrow: bool,
}

/// Sorts by a key in ascending order, as it does without this.
pub fn asc<'a>(key: impl Into<Keys<'a>>) -> Keys<'a> {
    key.into()
}

/// Sorts by a key in descending order: also by nulls, which come last.
pub fn desc<'a>(key: impl Into<Keys<'a>>) -> Keys<'a> {
    let mut keys = key.into();
    for column in &mut keys.columns {
        column.descending = !column.descending;
    }
    keys
}

/// Finds out first how many bits the columns of a key need: for keys whose elements are in a small range, as numbers of things and
/// dates are. The result is the same.
///
/// It reads each column once more, and waits for its least and its greatest element. A key of fewer bits is sorted in fewer passes, and
/// several columns fit into 64 bits more often. If the range is not larger than the tables, [joins](crate::join#how-it-works) look keys up in
/// a table of the range, instead of searching, and [`semi`](crate::join::semi) and [`anti`](crate::join::anti) do not sort at all. For a join,
/// it is enough on one side.
///
/// ```
/// use gpu_primitives::{Device, Error};
/// use gpu_relational::{Column, join, narrow};
///
/// let stream = &Device::default()?.stream()?;
/// let (order, number) = (Column::upload(stream, &[7001i64, 7003])?, Column::upload(stream, &[7000i64, 7001, 7002])?);
/// let joined = join::inner(stream, narrow(&order), &number)?;
/// assert_eq!(joined.right.to_vec(stream)?, [1]);
/// # Ok::<(), Error>(())
/// ```
pub fn narrow<'a>(key: impl Into<Keys<'a>>) -> Keys<'a> {
    Keys { narrow: true, ..key.into() }
}

struct KeyColumn<'a> {
    column: &'a dyn AnyColumn,
    /// Rows of the column, rows of these rows, and so on; nothing, if it is the whole column.
    rows: Vec<&'a Rows>,
    descending: bool,
}

/// A column without the type of its elements.
trait AnyColumn {
    fn len(&self) -> usize;
    fn valid(&self) -> Option<DeviceSlice<'_, u8>>;
    /// What the elements are: those of different kinds cannot be compared.
    fn kind(&self) -> Kind;
    /// Returns the elements at rows, of which the numbers are made; `None` is all of the column.
    fn elements(&self, stream: &Stream, rows: Option<&Rows>) -> Result<Elements<'_>, Error>;
}

/// What the elements of a column are.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Kind {
    name: &'static str,
    /// What distinguishes columns of this name: the address of the words of strings, the scale of decimals, the unit of timestamps.
    detail: usize,
}

impl<T: Key> AnyColumn for Column<T> {
    fn len(&self) -> usize {
        Column::len(self)
    }

    fn valid(&self) -> Option<DeviceSlice<'_, u8>> {
        Column::valid(self)
    }

    fn kind(&self) -> Kind {
        Kind { name: std::any::type_name::<T>(), detail: 0 }
    }

    fn elements(&self, stream: &Stream, rows: Option<&Rows>) -> Result<Elements<'_>, Error> {
        let parts = match rows {
            Some(rows) => Parts::Taken(transform::collect(stream, at(self.values(), rows.positions()))?),
            None => Parts::All(self.values()),
        };
        Ok(Elements { bits: T::PARTS.iter().map(|part| part.bits).collect(), parts: Box::new(parts) })
    }
}

impl AnyColumn for Strings {
    fn len(&self) -> usize {
        Strings::len(self)
    }

    fn valid(&self) -> Option<DeviceSlice<'_, u8>> {
        self.codes().valid()
    }

    fn kind(&self) -> Kind {
        Kind { name: "strings", detail: self.words().as_ptr().addr() }
    }

    fn elements(&self, stream: &Stream, rows: Option<&Rows>) -> Result<Elements<'_>, Error> {
        // The numbers of words are less than that of words.
        let bits = usize::BITS - self.words().len().saturating_sub(1).leading_zeros();
        Ok(Elements { bits: vec![bits.max(1)], ..self.codes().elements(stream, rows)? })
    }
}

/// Columns whose elements are those of another column, with a meaning.
macro_rules! columns_of_numbers {
    ($($type:ident $(<$digits:ident>)?: $numbers:ident, |$column:ident| $detail:expr;)*) => { $(
        impl $(<$digits: Digits>)? AnyColumn for $type $(<$digits>)? {
            fn len(&self) -> usize {
                $type::len(self)
            }

            fn valid(&self) -> Option<DeviceSlice<'_, u8>> {
                self.$numbers().valid()
            }

            fn kind(&self) -> Kind {
                let $column = self;
                Kind { name: std::any::type_name::<Self>(), detail: $detail }
            }

            fn elements(&self, stream: &Stream, rows: Option<&Rows>) -> Result<Elements<'_>, Error> {
                self.$numbers().elements(stream, rows)
            }
        }
    )* };
}

columns_of_numbers! {
    Decimals<T>: numbers, |decimals| decimals.scale().into();
    Dates: days, |_dates| 0;
    Timestamps: numbers, |timestamps| timestamps.unit().per_second() as usize;
}

macro_rules! keys_of_columns {
    ($($type:ident $(<$element:ident: $bound:ident>)?)*) => { $(
        impl<'a $(, $element: $bound)?> From<&'a $type $(<$element>)?> for Keys<'a> {
            fn from(column: &'a $type $(<$element>)?) -> Self {
                Self { columns: vec![KeyColumn { column, rows: Vec::new(), descending: false }], narrow: false }
            }
        }
    )* };
}

keys_of_columns! { Column<T: Key> Strings Decimals<T: Digits> Dates Timestamps }

macro_rules! tuples {
    ($(($($name:ident $number:tt),+))*) => { $(
        impl<'a, $($name: Into<Keys<'a>>),+> From<($($name,)+)> for Keys<'a> {
            fn from(keys: ($($name,)+)) -> Self {
                let (mut columns, mut narrow) = (Vec::new(), false);
                $({
                    let keys = keys.$number.into();
                    columns.extend(keys.columns);
                    narrow |= keys.narrow;
                })+
                Self { columns, narrow }
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

impl KeyColumn<'_> {
    fn len(&self) -> usize {
        self.rows.last().map_or(self.column.len(), |rows| rows.len())
    }

    fn may_be_null(&self) -> bool {
        self.column.valid().is_some() || self.rows.iter().any(|rows| rows.may_be_missing())
    }

    /// Checks that the rows are of tables that are as long as these.
    fn check(&self) -> Result<(), Error> {
        let mut len = self.column.len();
        for rows in &self.rows {
            rows.expect_in(len)?;
            len = rows.len();
        }
        Ok(())
    }

    /// Calls a function with the rows of the column; `None` if they are all of it.
    fn with_rows<R>(&self, stream: &Stream, then: impl FnOnce(Option<&Rows>) -> Result<R, Error>) -> Result<R, Error> {
        let Some((first, rest)) = self.rows.split_first() else { return then(None) };
        let mut composed: Option<Rows> = None;
        for rows in rest {
            composed = Some(rows.take(stream, composed.as_ref().unwrap_or(first))?);
        }
        then(Some(composed.as_ref().unwrap_or(first)))
    }

    /// Returns which rows are valid; `None` if all are.
    fn valid(&self, stream: &Stream) -> Result<Option<DeviceVec<u8>>, Error> {
        let valid = self.column.valid();
        self.with_rows(stream, |rows| match rows {
            Some(rows) => valid_at(stream, valid, self.column.len(), rows),
            None => both_valid(stream, None, valid),
        })
    }

    /// Returns the elements at the rows, and which of them are valid.
    fn at_rows(&self, stream: &Stream) -> Result<AtRows<'_>, Error> {
        let elements = self.with_rows(stream, |rows| self.column.elements(stream, rows))?;
        Ok(AtRows { elements, valid: self.valid(stream)?, len: self.len() })
    }
}

/// The elements of a key column at its rows, and which rows are valid.
struct AtRows<'a> {
    elements: Elements<'a>,
    valid: Option<DeviceVec<u8>>,
    len: usize,
}

impl AtRows<'_> {
    fn valid(&self) -> Option<DeviceSlice<'_, u8>> {
        self.valid.as_ref().map(DeviceVec::as_slice)
    }

    /// Returns the numbers of a part.
    fn numbers(&self, stream: &Stream, part: usize, shape: Shape) -> Result<Numbers, Error> {
        self.elements.parts.numbers(stream, part, self.valid(), shape)
    }

    /// Returns a number that says which rows are valid.
    fn validity(&self, stream: &Stream, flip: u64) -> Result<Numbers, Error> {
        let Some(valid) = &self.valid else {
            let mut all = stream.uninit(self.len)?;
            transfer::fill(stream, &mut all, 1 ^ flip as u32)?;
            return Ok(Numbers::Short(all));
        };
        let number = map!(flip: u32 = flip as u32; |valid: u8| -> u32 { (if valid != 0 { 1 } else { 0 }) ^ flip });
        Ok(Numbers::Short(transform::collect(stream, mapped(valid, number))?))
    }
}

impl<'a> Keys<'a> {
    /// Returns the keys at rows of their tables, or of the rows that were chosen before.
    pub(crate) fn at(mut self, rows: &'a Rows) -> Self {
        self.columns.iter_mut().for_each(|column| column.rows.push(rows));
        self
    }

    /// Returns the number of rows.
    pub(crate) fn len(&self) -> usize {
        self.columns.first().map_or(0, KeyColumn::len)
    }

    fn check(&self) -> Result<(), Error> {
        expect_rows(self.len())?;
        self.columns.iter().try_for_each(|column| {
            column.check()?;
            expect_len("a key column beside others", self.len(), column.len())
        })
    }

    /// Returns which rows have no null in any column; `None` if all are like that.
    pub(crate) fn valid(&self, stream: &Stream) -> Result<Option<DeviceVec<u8>>, Error> {
        let mut all = None;
        for column in &self.columns {
            if let Some(valid) = column.valid(stream)? {
                all = both_valid(stream, all, Some(valid.as_slice()))?;
            }
        }
        Ok(all)
    }

    /// Returns the numbers of the rows.
    pub(crate) fn codes(&self, stream: &Stream) -> Result<Codes, Error> {
        self.packed(stream, false)
    }

    /// Returns the numbers of the rows; [tiny](Numbers::Tiny) ones if they are few.
    pub(crate) fn codes_of_groups(&self, stream: &Stream) -> Result<Codes, Error> {
        self.packed(stream, true)
    }

    fn packed(&self, stream: &Stream, tiny: bool) -> Result<Codes, Error> {
        let Packed { mut sides, bits, .. } = Packed::new(stream, &[self], tiny)?;
        Ok(Codes { numbers: sides.remove(0), bits })
    }
}
