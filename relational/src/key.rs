//! Keys: rows as numbers that are equal and ordered as the rows are.
//!
//! Whatever columns a key has, it becomes one number of at most 64 bits per row. Joins, groups and sorts work on these alone.
//! The numbers of short columns are packed side by side. Where that takes more than 64 bits, what is packed so far is replaced by
//! its rank among all rows, which takes no more than 32.

use crate::column::{both_valid, expect_len, valid_at};
use crate::decimals::Digits;
use crate::rows::{Rows, expect_rows};
use crate::{Column, Dates, Decimals, Strings, Timestamps};
use bytemuck::Pod;
use gpu_primitives::operator::{map, monoid};
use gpu_primitives::scan::{self, Sum};
use gpu_primitives::sort::{self, Options};
use gpu_primitives::source::{at, counting, map as mapped, map2};
use gpu_primitives::{DeviceSlice, DeviceValue, DeviceVec, Error, Stream, permute, reduce, transfer, transform};

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
    /// Returns the numbers of the rows, the most important one first.
    fn codes(&self, stream: &Stream, rows: Option<&Rows>) -> Result<Vec<Codes>, Error>;
}

/// What the elements of a column are.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Kind {
    name: &'static str,
    /// What distinguishes columns of this name: the address of the words of strings, the scale of decimals, the unit of timestamps.
    detail: usize,
}

/// A number for each row. Public in name only, as the sealed trait is.
pub struct Codes {
    pub numbers: DeviceVec<u64>,
    /// The bits that the numbers have.
    pub bits: u32,
}

/// The type of elements that keys are made of: all integers, and floats, whose `-0.0` equals `0.0` and whose NaN are equal and the
/// greatest.
pub trait Key: Pod + sealed::Key {}

mod sealed {
    use super::{Codes, Rows};
    use gpu_primitives::{DeviceSlice, Error, Stream};

    pub trait Key: bytemuck::Pod {
        fn codes(stream: &Stream, values: DeviceSlice<'_, Self>, rows: Option<&Rows>) -> Result<Vec<Codes>, Error>;
    }
}

macro_rules! keys {
    ($($type:ident: $($bits:literal |$x:ident| $code:expr),+;)*) => { $(
        impl Key for $type {}

        impl sealed::Key for $type {
            fn codes(stream: &Stream, values: DeviceSlice<'_, Self>, rows: Option<&Rows>) -> Result<Vec<Codes>, Error> {
                Ok(vec![$({
                    let code = map!(|$x: $type| -> u64 { $code });
                    let numbers = match rows {
                        Some(rows) => transform::collect(stream, mapped(at(values, rows.positions()), code))?,
                        None => transform::collect(stream, mapped(values, code))?,
                    };
                    Codes { numbers, bits: $bits }
                }),+])
            }
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

    fn codes(&self, stream: &Stream, rows: Option<&Rows>) -> Result<Vec<Codes>, Error> {
        T::codes(stream, self.values(), rows)
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

    fn codes(&self, stream: &Stream, rows: Option<&Rows>) -> Result<Vec<Codes>, Error> {
        let mut codes = AnyColumn::codes(self.codes(), stream, rows)?;
        // The numbers of words are less than that of words.
        let bits = usize::BITS - self.words().len().saturating_sub(1).leading_zeros();
        codes.iter_mut().for_each(|codes| codes.bits = bits.max(1));
        Ok(codes)
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

            fn codes(&self, stream: &Stream, rows: Option<&Rows>) -> Result<Vec<Codes>, Error> {
                AnyColumn::codes(self.$numbers(), stream, rows)
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

    /// Returns the numbers of the rows.
    fn raw(&self, stream: &Stream) -> Result<Raw, Error> {
        let parts = self.with_rows(stream, |rows| self.column.codes(stream, rows))?;
        Ok(Raw { parts, valid: self.valid(stream)?, len: self.len(), descending: self.descending })
    }
}

/// The numbers of the rows of a column, the most important one first; and which rows are valid.
struct Raw {
    parts: Vec<Codes>,
    valid: Option<DeviceVec<u8>>,
    len: usize,
    descending: bool,
}

impl Raw {
    /// Cuts off the bits that the numbers of no side need. Waits for each number of the column.
    fn narrow(stream: &Stream, sides: &mut [Self]) -> Result<(), Error> {
        for part in 0..sides[0].parts.len() {
            let ranges = sides.iter().map(|side| side.range(stream, part)).collect::<Result<Vec<_>, _>>()?;
            let (mut least, mut most) = (u64::MAX, 0);
            for range in ranges {
                let [first, last] = range.get(stream)?;
                (least, most) = (least.min(first), most.max(last));
            }
            // There may be no number.
            let bits = (u64::BITS - most.saturating_sub(least).leading_zeros()).max(1);
            for side in sides.iter_mut() {
                let codes = &mut side.parts[part];
                let from_least = map!(least: u64 = least; |code: u64| -> u64 { code.wrapping_sub(least) });
                transform::map_in_place(stream, &mut codes.numbers, from_least)?;
                codes.bits = bits;
            }
        }
        Ok(())
    }

    /// Returns the least and the greatest number that is valid; the greatest and the least of all if there is none.
    fn range(&self, stream: &Stream, part: usize) -> Result<DeviceValue<[u64; 2]>, Error> {
        let union = monoid!(exact, commutative; [0xFFFF_FFFF_FFFF_FFFF, 0], |a: [u64; 2], b: [u64; 2]| {
            [a[0].min(b[0]), a[1].max(b[1])]
        });
        let numbers = &self.parts[part].numbers;
        match &self.valid {
            Some(valid) => {
                let range = map!(|code: u64, valid: u8| -> [u64; 2] {
                    if valid != 0 { [code, code] } else { [0xFFFF_FFFF_FFFF_FFFF, 0] }
                });
                reduce::reduce(stream, map2(numbers, valid, range), union)
            }
            None => reduce::reduce(stream, mapped(numbers, map!(|code: u64| -> [u64; 2] { [code, code] })), union),
        }
    }

    /// Returns the numbers in the order of the key. With `nulls`, the first of them says whether the row is valid.
    fn finish(self, stream: &Stream, nulls: bool) -> Result<Vec<Codes>, Error> {
        let Self { parts: mut all, valid, len, descending } = self;
        if nulls {
            let valid = match valid {
                Some(valid) => {
                    let only_valid = map!(|code: u64, valid: u8| -> u64 { if valid != 0 { code } else { 0 } });
                    for codes in &mut all {
                        codes.numbers = transform::collect(stream, map2(&codes.numbers, &valid, only_valid))?;
                    }
                    let as_code = map!(|valid: u8| -> u64 { if valid != 0 { 1 } else { 0 } });
                    transform::collect(stream, mapped(&valid, as_code))?
                }
                None => {
                    let mut valid = stream.uninit(len)?;
                    transfer::fill(stream, &mut valid, 1u64)?;
                    valid
                }
            };
            all.insert(0, Codes { numbers: valid, bits: 1 });
        }
        if descending {
            for codes in &mut all {
                let mask = u64::MAX >> (64 - codes.bits);
                let flip = map!(mask: u64 = mask; |code: u64| -> u64 { code ^ mask });
                transform::map_in_place(stream, &mut codes.numbers, flip)?;
            }
        }
        Ok(all)
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
        let Packed { mut sides, bits, .. } = Packed::new(stream, &[self])?;
        Ok(Codes { numbers: sides.remove(0), bits })
    }
}

/// The numbers of the rows of one side or two, which are comparable.
pub(crate) struct Packed {
    pub sides: Vec<DeviceVec<u64>>,
    pub bits: u32,
    /// The bits that are of the last column.
    pub last: u32,
    /// Whether the numbers have as few bits as they need.
    pub narrow: bool,
}

impl Packed {
    /// Returns the numbers of the rows of these sides.
    pub fn new(stream: &Stream, sides: &[&Keys<'_>]) -> Result<Self, Error> {
        let (number, narrow) = (check_sides(sides)?, sides.iter().any(|keys| keys.narrow));
        let mut packed: Option<Self> = None;
        for column in 0..number {
            let nulls = sides.iter().any(|keys| keys.columns[column].may_be_null());
            let mut of_sides =
                sides.iter().map(|keys| keys.columns[column].raw(stream)).collect::<Result<Vec<_>, Error>>()?;
            if narrow {
                Raw::narrow(stream, &mut of_sides)?;
            }
            let of_sides = of_sides.into_iter().map(|raw| Ok(raw.finish(stream, nulls)?.into_iter()));
            let mut of_sides = of_sides.collect::<Result<Vec<_>, Error>>()?;
            // The last column is packed on its own, so that it can be cut off.
            let mut of_column: Option<Self> = None;
            while let Some(part) = of_sides.iter_mut().map(Iterator::next).collect::<Option<Vec<Codes>>>() {
                let bits = part[0].bits;
                let sides = part.into_iter().map(|codes| codes.numbers).collect();
                let part = Self { sides, bits, last: bits, narrow };
                of_column = Some(Self::append(stream, of_column, part)?);
            }
            packed = of_column.map(|column| Self::append(stream, packed.take(), column)).transpose()?;
        }
        packed.ok_or(Error::InvalidOption {
            what: "the number of key columns",
            asked: "0".into(),
            allowed: "1 or more",
        })
    }

    /// Appends less important numbers.
    fn append(stream: &Stream, first: Option<Self>, mut second: Self) -> Result<Self, Error> {
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
        let append = map!(bits: u32 = second.bits; |a: u64, b: u64| -> u64 { (a << bits) | b });
        for (a, b) in first.sides.iter_mut().zip(&second.sides) {
            *a = transform::collect(stream, map2(&*a, b, append))?;
        }
        Ok(Self { bits: first.bits + second.bits, last: second.bits, ..first })
    }

    /// Replaces the numbers by their ranks among those of all sides: equal numbers have the same rank.
    fn rank(&mut self, stream: &Stream) -> Result<(), Error> {
        let len = self.sides.iter().map(DeviceVec::len).sum();
        let mut all = stream.uninit::<u64>(len)?;
        let mut start = 0;
        for side in &self.sides {
            all.slice_mut(start..start + side.len())?.copy_from(stream, side)?;
            start += side.len();
        }
        let Sorted { numbers, rows } = Sorted::new(stream, Codes { numbers: all, bits: self.bits })?;
        let mut ranks = heads(stream, &numbers)?;
        if len > 0 {
            transfer::fill(stream, ranks.slice_mut(..1)?, 0u32)?;
        }
        scan::inclusive_in_place(stream, &mut ranks, Sum)?;
        let mut of_rows = stream.uninit::<u32>(len)?;
        // SAFETY: the rows are a permutation of all indices.
        unsafe { permute::scatter_unchecked(stream, &ranks, &rows, &mut of_rows)? };
        start = 0;
        for side in &mut self.sides {
            let ranks = of_rows.slice(start..start + side.len())?;
            start += side.len();
            *side = transform::collect(stream, mapped(ranks, map!(|rank: u32| -> u64 { rank as u64 })))?;
        }
        self.bits = (usize::BITS - len.leading_zeros()).max(1);
        Ok(())
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
    pub numbers: DeviceVec<u64>,
    pub rows: DeviceVec<u32>,
}

impl Sorted {
    /// Sorts all rows.
    pub fn new(stream: &Stream, Codes { numbers, bits }: Codes) -> Result<Self, Error> {
        let rows = transform::collect(stream, counting(0u32, numbers.len()))?;
        let mut sorted = Self { numbers: stream.uninit(numbers.len())?, rows: stream.uninit(numbers.len())? };
        let to = (&mut sorted.numbers, &mut sorted.rows);
        sort::pairs(stream, (&numbers, &rows), to, Options::new().bits(0..bits))?;
        Ok(sorted)
    }
}

/// Returns 1 where a number differs from the one before it, and for the first one; otherwise 0.
pub(crate) fn heads(stream: &Stream, sorted: &DeviceVec<u64>) -> Result<DeviceVec<u32>, Error> {
    let mut heads = stream.uninit::<u32>(sorted.len())?;
    if let Some(last) = sorted.len().checked_sub(1) {
        transfer::fill(stream, heads.slice_mut(..1)?, 1u32)?;
        let differs = map!(|a: u64, b: u64| -> u32 { if a != b { 1 } else { 0 } });
        transform::map2(stream, sorted.slice(..last)?, sorted.slice(1..)?, heads.slice_mut(1..)?, differs)?;
    }
    Ok(heads)
}
