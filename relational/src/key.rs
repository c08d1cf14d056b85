//! Keys: rows as numbers that are equal and ordered as the rows are.
//!
//! Whatever columns a key has, it becomes one number of at most 64 bits per row. Joins, groups and sorts work on these alone.
//! The numbers of short columns are packed side by side. Where that takes more than 64 bits, what is packed so far is replaced by
//! its rank among all rows, which takes no more than 32. A number of at most 32 bits has 32 bits in memory, too: every pass over
//! it, and every pass of a sort, moves half the bytes.

use crate::column::{both_valid, expect_len, valid_at};
use crate::decimals::Digits;
use crate::rows::{Rows, expect_rows};
use crate::{Column, Dates, Decimals, Strings, Timestamps};
use bytemuck::Pod;
use gpu_primitives::operator::{map, monoid, predicate};
use gpu_primitives::scan::{self, Sum};
use gpu_primitives::sort::{self, Options, RadixKey};
use gpu_primitives::source::{Source, at, counting, map as mapped, map2};
use gpu_primitives::{
    DeviceSlice, DeviceValue, DeviceVec, Error, Stream, permute, reduce, select, transfer, transform,
};

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

/// A number for each row: of 32 bits in memory if that is enough.
pub(crate) enum Numbers {
    /// Numbers of [few](is_few) groups, where it was asked for them. They are not sorted.
    Tiny(DeviceVec<u16>),
    Short(DeviceVec<u32>),
    Long(DeviceVec<u64>),
}

/// Numbers of so many bits are few: a block of a kernel has room for the sums of all of them.
const FEW_BITS: u32 = 12;

/// Returns whether numbers of so many bits are few, for so many rows: there is a table of them.
const fn is_few(bits: u32, rows: usize) -> bool {
    const SMALL_TABLE: usize = 256;
    bits <= FEW_BITS && (1 << bits <= SMALL_TABLE || 1 << bits <= rows)
}

/// A type that [`Numbers`] have in memory.
pub(crate) trait Width: RadixKey {
    /// Returns numbers of this type.
    fn of(numbers: &Numbers) -> &DeviceVec<Self>;

    fn wrap(numbers: DeviceVec<Self>) -> Numbers;
}

macro_rules! widths {
    ($($type:ident $variant:ident)*) => { $(
        impl Width for $type {
            fn of(numbers: &Numbers) -> &DeviceVec<Self> {
                match numbers {
                    Numbers::$variant(numbers) => numbers,
                    _ => unreachable!("numbers that are compared have the same bits"),
                }
            }

            fn wrap(numbers: DeviceVec<Self>) -> Numbers {
                Numbers::$variant(numbers)
            }
        }
    )* };
}

widths!(u32 Short u64 Long);

/// Evaluates an expression with numbers in the type that they have in memory.
macro_rules! with_width {
    ($numbers:expr => $name:ident: $type:ident, $body:expr) => {
        match $numbers {
            $crate::key::Numbers::Short($name) => {
                type $type = u32;
                $body
            }
            $crate::key::Numbers::Long($name) => {
                type $type = u64;
                $body
            }
            $crate::key::Numbers::Tiny(_) => unreachable!("numbers of few groups are neither sorted nor packed"),
        }
    };
}
pub(crate) use with_width;

impl Numbers {
    /// Computes numbers of so many bits; tiny ones, if that is said.
    fn collect<'a>(stream: &Stream, source: impl Source<'a, u64>, bits: u32, tiny: bool) -> Result<Self, Error> {
        Ok(if tiny {
            Self::Tiny(transform::collect(stream, mapped(source, map!(|number: u64| -> u16 { number as u16 })))?)
        } else if bits <= u32::BITS {
            Self::Short(transform::collect(stream, mapped(source, map!(|number: u64| -> u32 { number as u32 })))?)
        } else {
            Self::Long(transform::collect(stream, source)?)
        })
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        match self {
            Self::Tiny(numbers) => numbers.len(),
            Self::Short(numbers) => numbers.len(),
            Self::Long(numbers) => numbers.len(),
        }
    }

    /// Returns the numbers at these rows, all of which exist.
    pub fn take(&self, stream: &Stream, rows: &Rows) -> Result<Self, Error> {
        with_width!(self => numbers: K, Ok(K::wrap(transform::collect(stream, at(numbers, rows.positions()))?)))
    }
}

/// The numbers of rows, and the bits that they have.
pub(crate) struct Codes {
    pub numbers: Numbers,
    pub bits: u32,
}

/// How the number of an element becomes that of its row. Public in name only, as the sealed trait is.
#[derive(Clone, Copy)]
pub struct Shape {
    /// What is subtracted from all numbers.
    least: u64,
    /// The bits of the number of a row.
    bits: u32,
    /// What is added to the numbers of valid elements, so that they are greater than that of a null, which is 0.
    is_valid: u64,
    /// The bits that are flipped at last, for a descending order.
    flip: u64,
    /// Whether the numbers are [tiny](Numbers::Tiny).
    tiny: bool,
}

/// The type of elements that keys are made of: all integers, and floats, whose `-0.0` equals `0.0` and whose NaN are equal and the
/// greatest.
pub trait Key: Pod + sealed::Key {}

mod sealed {
    use super::Part;

    pub trait Key: bytemuck::Pod {
        /// The numbers of an element, the most important one first.
        const PARTS: &'static [Part<Self>];
    }
}

/// Finds the range of the numbers of elements, of which some may be null.
type FindRange<T> =
    fn(&Stream, DeviceSlice<'_, T>, Option<DeviceSlice<'_, u8>>) -> Result<DeviceValue<[u64; 2]>, Error>;

/// Computes the numbers of rows.
type MakeNumbers<T> = fn(&Stream, DeviceSlice<'_, T>, Option<DeviceSlice<'_, u8>>, Shape) -> Result<Numbers, Error>;

/// A number of an element. Public in name only, as the sealed trait is.
pub struct Part<T: Pod> {
    /// The bits of the number.
    bits: u32,
    range: FindRange<T>,
    numbers: MakeNumbers<T>,
}

macro_rules! keys {
    ($($type:ident: $($bits:literal |$x:ident| $code:expr),+;)*) => { $(
        impl Key for $type {}

        impl sealed::Key for $type {
            const PARTS: &'static [Part<Self>] = &[$(Part {
                bits: $bits,
                range: |stream, elements, valid| range(stream, mapped(elements, map!(|$x: $type| -> u64 { $code })), valid),
                numbers: |stream, elements, valid, shape| {
                    shaped(stream, mapped(elements, map!(|$x: $type| -> u64 { $code })), valid, shape)
                },
            }),+];
        }
    )* };
}

keys! {
    u8: 8 |x| x as u64;
    u16: 16 |x| x as u64;
    u32: 32 |x| x as u64;
    u64: 64 |x| x;
    i8: 8 |x| ((x as u8) ^ 0x80) as u64;
    i16: 16 |x| ((x as u16) ^ 0x8000) as u64;
    i32: 32 |x| ((x as u32) ^ 0x8000_0000) as u64;
    i64: 64 |x| (x as u64) ^ 0x8000_0000_0000_0000;
    u128: 64 |x| (x >> 64) as u64, 64 |x| x as u64;
    i128: 64 |x| ((x >> 64) as u64) ^ 0x8000_0000_0000_0000, 64 |x| x as u64;
    f32: 32 |x| {
        let bits = (x + 0.0).to_bits();
        let code = if bits >> 31 != 0 { !bits } else { bits | 0x8000_0000 };
        (if x.is_nan() { 0xFFFF_FFFF } else { code }) as u64
    };
    f64: 64 |x| {
        let bits = (x + 0.0).to_bits();
        let code = if bits >> 63 != 0 { !bits } else { bits | 0x8000_0000_0000_0000 };
        if x.is_nan() { 0xFFFF_FFFF_FFFF_FFFF } else { code }
    };
}

/// Returns the least and the greatest number that is valid; the greatest and the least of all if there is none.
fn range<'a>(
    stream: &Stream,
    numbers: impl Source<'a, u64>,
    valid: Option<DeviceSlice<'a, u8>>,
) -> Result<DeviceValue<[u64; 2]>, Error> {
    let union = monoid!(exact, commutative; [0xFFFF_FFFF_FFFF_FFFF, 0], |a: [u64; 2], b: [u64; 2]| {
        [a[0].min(b[0]), a[1].max(b[1])]
    });
    match valid {
        Some(valid) => {
            let range = map!(|number: u64, valid: u8| -> [u64; 2] {
                if valid != 0 { [number, number] } else { [0xFFFF_FFFF_FFFF_FFFF, 0] }
            });
            reduce::reduce(stream, map2(numbers, valid, range), union)
        }
        None => reduce::reduce(stream, mapped(numbers, map!(|number: u64| -> [u64; 2] { [number, number] })), union),
    }
}

/// Returns the numbers of rows, in one pass over the elements.
fn shaped<'a>(
    stream: &Stream,
    numbers: impl Source<'a, u64>,
    valid: Option<DeviceSlice<'a, u8>>,
    Shape { least, bits, is_valid, flip, tiny }: Shape,
) -> Result<Numbers, Error> {
    match valid {
        Some(valid) => {
            let shaped = map!(least: u64 = least, is_valid: u64 = is_valid, flip: u64 = flip; |number: u64, valid: u8| -> u64 {
                (if valid != 0 { number.wrapping_sub(least) | is_valid } else { 0 }) ^ flip
            });
            Numbers::collect(stream, map2(numbers, valid, shaped), bits, tiny)
        }
        None => {
            let shaped = map!(least: u64 = least, is_valid: u64 = is_valid, flip: u64 = flip; |number: u64| -> u64 {
                (number.wrapping_sub(least) | is_valid) ^ flip
            });
            Numbers::collect(stream, mapped(numbers, shaped), bits, tiny)
        }
    }
}

/// The elements of a key column, without their type.
struct Elements<'a> {
    /// The bits of the numbers of an element, the most important one first.
    bits: Vec<u32>,
    parts: Box<dyn AnyParts + 'a>,
}

/// The [parts](Part) of elements, by their index.
trait AnyParts {
    fn range(
        &self,
        stream: &Stream,
        part: usize,
        valid: Option<DeviceSlice<'_, u8>>,
    ) -> Result<DeviceValue<[u64; 2]>, Error>;

    fn numbers(
        &self,
        stream: &Stream,
        part: usize,
        valid: Option<DeviceSlice<'_, u8>>,
        shape: Shape,
    ) -> Result<Numbers, Error>;
}

/// Elements of a column: all of them, or those that were taken.
enum Parts<'a, T: Key> {
    All(DeviceSlice<'a, T>),
    Taken(DeviceVec<T>),
}

impl<T: Key> Parts<'_, T> {
    fn elements(&self) -> DeviceSlice<'_, T> {
        match self {
            Self::All(elements) => *elements,
            Self::Taken(elements) => elements.as_slice(),
        }
    }
}

impl<T: Key> AnyParts for Parts<'_, T> {
    fn range(
        &self,
        stream: &Stream,
        part: usize,
        valid: Option<DeviceSlice<'_, u8>>,
    ) -> Result<DeviceValue<[u64; 2]>, Error> {
        (T::PARTS[part].range)(stream, self.elements(), valid)
    }

    fn numbers(
        &self,
        stream: &Stream,
        part: usize,
        valid: Option<DeviceSlice<'_, u8>>,
        shape: Shape,
    ) -> Result<Numbers, Error> {
        (T::PARTS[part].numbers)(stream, self.elements(), valid, shape)
    }
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

/// Returns the least of the numbers of a part on all sides, and the bits that they need when it is subtracted. Waits for each side.
fn narrowed(stream: &Stream, sides: &[AtRows<'_>], part: usize) -> Result<(u64, u32), Error> {
    let ranges = sides.iter().map(|side| side.elements.parts.range(stream, part, side.valid()));
    let (mut least, mut most) = (u64::MAX, 0);
    for range in ranges.collect::<Result<Vec<_>, _>>()? {
        let [first, last] = range.get(stream)?;
        (least, most) = (least.min(first), most.max(last));
    }
    // There may be no number.
    Ok((least, (u64::BITS - most.saturating_sub(least).leading_zeros()).max(1)))
}

/// Returns the lowest bits of a number.
const fn low_bits(bits: u32) -> u64 {
    u64::MAX >> (u64::BITS - bits)
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

/// The numbers of the rows of one side or two, which are comparable.
pub(crate) struct Packed {
    pub sides: Vec<Numbers>,
    pub bits: u32,
    /// The bits that are of the last column.
    pub last: u32,
    /// Whether the numbers have as few bits as they need.
    pub narrow: bool,
}

impl Packed {
    /// Returns the numbers of the rows of these sides; [tiny](Numbers::Tiny) ones, if that is said, and they are few.
    pub fn new(stream: &Stream, sides: &[&Keys<'_>], tiny: bool) -> Result<Self, Error> {
        let (number, narrow) = (check_sides(sides)?, sides.iter().any(|keys| keys.narrow));
        let mut packed: Option<Self> = None;
        for column in 0..number {
            // The last column is packed on its own, so that it can be cut off.
            let of_column = Self::of_column(stream, sides, column, narrow, tiny && number == 1)?;
            packed = Some(Self::append(stream, packed, of_column, tiny && column + 1 == number)?);
        }
        packed.ok_or(Error::InvalidOption {
            what: "the number of key columns",
            asked: "0".into(),
            allowed: "1 or more",
        })
    }

    /// Returns the numbers of a column.
    fn of_column(stream: &Stream, sides: &[&Keys<'_>], column: usize, narrow: bool, tiny: bool) -> Result<Self, Error> {
        let nulls = sides.iter().any(|keys| keys.columns[column].may_be_null());
        let descending = sides[0].columns[column].descending;
        let sides = sides.iter().map(|keys| keys.columns[column].at_rows(stream)).collect::<Result<Vec<_>, _>>()?;
        let flip = |bits: u32| if descending { low_bits(bits) } else { 0 };
        let mut packed: Option<Self> = None;
        let mut append = |sides: Result<Vec<Numbers>, Error>, bits: u32| -> Result<(), Error> {
            let part = Self { sides: sides?, bits, last: bits, narrow };
            packed = Some(Self::append(stream, packed.take(), part, false)?);
            Ok(())
        };
        for (part, &bits) in sides[0].elements.bits.iter().enumerate() {
            let (least, bits) = if narrow { narrowed(stream, &sides, part)? } else { (0, bits) };
            // A bit before the first number says whether a row is valid. If there is no room for it, it is a number of its own.
            let with_valid = nulls && part == 0 && bits < u64::BITS;
            if nulls && part == 0 && !with_valid {
                append(sides.iter().map(|side| side.validity(stream, flip(1))).collect(), 1)?;
            }
            let all = bits + u32::from(with_valid);
            let is_valid = u64::from(with_valid) << (bits % u64::BITS);
            let tiny = tiny && sides[0].elements.bits.len() == 1 && is_few(all, sides[0].len);
            let shape = Shape { least, bits: all, is_valid, flip: flip(all), tiny };
            append(sides.iter().map(|side| side.numbers(stream, part, shape)).collect(), all)?;
        }
        Ok(packed.expect("an element has a number"))
    }

    /// Appends less important numbers.
    #[allow(clippy::unnecessary_cast, reason = "numbers have one of two types")]
    fn append(stream: &Stream, first: Option<Self>, mut second: Self, tiny: bool) -> Result<Self, Error> {
        let Some(mut first) = first else {
            second.last = second.bits;
            return Ok(second);
        };
        // Ranks have up to 32 bits: they do not help a number that is as short. Each costs a sort.
        if first.bits + second.bits > 64 && first.bits > 32 {
            first.rank(stream)?;
        }
        if first.bits + second.bits > 64 {
            second.rank(stream)?;
        }
        let bits = first.bits + second.bits;
        let tiny = tiny && is_few(bits, first.sides[0].len());
        let mut sides = Vec::new();
        for (a, b) in first.sides.iter().zip(&second.sides) {
            sides.push(with_width!(a => a: A, with_width!(b => b: B, {
                let append = map!(bits: u32 = second.bits; |a: A, b: B| -> u64 { ((a as u64) << bits) | b as u64 });
                Numbers::collect(stream, map2(a, b, append), bits, tiny)?
            })));
        }
        Ok(Self { sides, bits, last: second.bits, narrow: first.narrow })
    }

    /// Replaces the numbers by their ranks among those of all sides: equal numbers have the same rank.
    fn rank(&mut self, stream: &Stream) -> Result<(), Error> {
        let len = self.sides.iter().map(Numbers::len).sum();
        let all = with_width!(&self.sides[0] => _numbers: K, self.concatenated::<K>(stream, len)?);
        let Sorted { numbers, rows } = Sorted::new(stream, Codes { numbers: all, bits: self.bits })?;
        let mut ranks = heads(stream, &numbers)?;
        if len > 0 {
            transfer::fill(stream, ranks.slice_mut(..1)?, 0u32)?;
        }
        scan::inclusive_in_place(stream, &mut ranks, Sum)?;
        let mut of_rows = stream.uninit::<u32>(len)?;
        // SAFETY: the rows are a permutation of all indices.
        unsafe { permute::scatter_unchecked(stream, &ranks, &rows, &mut of_rows)? };
        let mut start = 0;
        for side in &mut self.sides {
            let mut of_side = stream.uninit(side.len())?;
            of_side.copy_from(stream, of_rows.slice(start..start + side.len())?)?;
            start += side.len();
            *side = Numbers::Short(of_side);
        }
        self.bits = (usize::BITS - len.leading_zeros()).max(1);
        Ok(())
    }

    /// Returns the numbers of all sides, one side after the other.
    fn concatenated<K: Width>(&self, stream: &Stream, len: usize) -> Result<Numbers, Error> {
        let mut all = stream.uninit::<K>(len)?;
        let mut start = 0;
        for side in &self.sides {
            all.slice_mut(start..start + side.len())?.copy_from(stream, K::of(side))?;
            start += side.len();
        }
        Ok(K::wrap(all))
    }
}

/// Checks that keys of all sides can be compared, and returns the number of their columns.
fn check_sides(sides: &[&Keys<'_>]) -> Result<usize, Error> {
    let first = &sides[0].columns;
    for keys in sides {
        keys.check()?;
        expect_len("the key columns of the other side", first.len(), keys.columns.len())?;
        for (a, b) in first.iter().zip(&keys.columns) {
            if a.descending != b.descending {
                let order = |column: &KeyColumn<'_>| if column.descending { "desc" } else { "asc" };
                return Err(Error::InvalidOption {
                    what: "the order of a key column",
                    asked: format!("{}, beside {}", order(b), order(a)),
                    allowed: "the same on both sides",
                });
            }
            let (a, b) = (a.column.kind(), b.column.kind());
            if a != b {
                return Err(Error::InvalidOption {
                    what: "the type of a key column",
                    asked: format!("{}, beside {}", b.name, a.name),
                    allowed: "the same on both sides; strings with the same words, decimals with the same scale, timestamps with the same unit: see \
                              `recode`, `rescale`, `convert`",
                });
            }
        }
    }
    expect_rows(sides.iter().map(|keys| keys.len()).sum())?;
    Ok(first.len())
}

/// Rows in the order of their numbers; rows with equal numbers in order of their positions.
pub(crate) struct Sorted {
    pub numbers: Numbers,
    pub rows: DeviceVec<u32>,
}

impl Sorted {
    /// Sorts all rows.
    pub fn new(stream: &Stream, Codes { numbers, bits }: Codes) -> Result<Self, Error> {
        with_width!(&numbers => numbers: K, Self::of::<K>(stream, numbers, bits))
    }

    fn of<K: Width>(stream: &Stream, numbers: &DeviceVec<K>, bits: u32) -> Result<Self, Error> {
        let rows = transform::collect(stream, counting(0u32, numbers.len()))?;
        let (mut sorted, mut sorted_rows) = (stream.uninit(numbers.len())?, stream.uninit(numbers.len())?);
        let to = (&mut sorted, &mut sorted_rows);
        sort::pairs(stream, (numbers, &rows), to, Options::new().bits(0..bits))?;
        Ok(Self { numbers: K::wrap(sorted), rows: sorted_rows })
    }
}

/// Returns numbers in order, without their rows.
pub(crate) fn in_order(stream: &Stream, Codes { numbers, bits }: Codes) -> Result<Numbers, Error> {
    fn sorted<K: Width>(stream: &Stream, numbers: &DeviceVec<K>, bits: u32) -> Result<Numbers, Error> {
        let mut sorted = stream.uninit(numbers.len())?;
        sort::keys(stream, numbers, &mut sorted, Options::new().bits(0..bits))?;
        Ok(K::wrap(sorted))
    }
    with_width!(&numbers => numbers: K, sorted::<K>(stream, numbers, bits))
}

/// Returns 1 where a number differs from the one before it, and for the first one; otherwise 0.
fn heads(stream: &Stream, sorted: &Numbers) -> Result<DeviceVec<u32>, Error> {
    let mut heads = stream.uninit::<u32>(sorted.len())?;
    if let Some(last) = sorted.len().checked_sub(1) {
        transfer::fill(stream, heads.slice_mut(..1)?, 1u32)?;
        with_width!(sorted => sorted: K, {
            let differs = map!(|a: K, b: K| -> u32 { if a != b { 1 } else { 0 } });
            transform::map2(stream, sorted.slice(..last)?, sorted.slice(1..)?, heads.slice_mut(1..)?, differs)?;
        });
    }
    Ok(heads)
}

/// Returns where each run of equal numbers begins, and their length at last. Waits for how many there are.
pub(crate) fn run_offsets(stream: &Stream, sorted: &Numbers) -> Result<DeviceVec<u32>, Error> {
    let Some(last) = sorted.len().checked_sub(1) else { return stream.zeroed(1) };
    // Where a number differs from the next one.
    let ends: DeviceVec<u32> = with_width!(sorted => sorted: K, {
        let differs = map!(|a: K, b: K| -> u8 { if a != b { 1 } else { 0 } });
        let differs = map2(sorted.slice(..last)?, sorted.slice(1..)?, differs);
        select::collect_positions(stream, differs, predicate!(|differs: u8| differs != 0))?
    });
    let mut offsets = stream.zeroed(ends.len() + 2)?;
    let after = map!(|end: u32| -> u32 { end + 1 });
    transform::write(stream, mapped(&ends, after), offsets.slice_mut(1..=ends.len())?)?;
    transfer::fill(stream, offsets.slice_mut(ends.len() + 1..)?, sorted.len() as u32)?;
    Ok(offsets)
}
