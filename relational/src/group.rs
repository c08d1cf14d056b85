//! Groups: rows with equal keys, and what their columns add up to.

use crate::Column;
use crate::agg::{self, Aggregates, Shared, Totals};
use crate::column::expect_len;
use crate::key::{Codes, Key, Keys, Numbers, Sorted, fit_caches, run_offsets, with_short};
use crate::number::{Aggregate, Amount, NumberedRows, SortedRows, Summable};
use crate::rows::{Rows, Take, expect_rows};
use bytemuck::Pod;
use gpu_primitives::operator::{map, predicate};
use gpu_primitives::scan::{self, Max, Monoid, Sum};
use gpu_primitives::sort::{self, Options};
use gpu_primitives::source::{at, counting, map as mapped, map2};
use gpu_primitives::{DeviceSlice, DeviceVec, Error, Stream, histogram, permute, reduce, select, transform};
use std::sync::OnceLock;

/// Rows in groups. Groups are in ascending order of their keys, and the rows of a group in that of their positions.
///
/// ```
/// use gpu_primitives::{Device, Error};
/// use gpu_relational::{Column, group_by};
///
/// let stream = &Device::default()?.stream()?;
/// let (shop, sales) = (Column::upload(stream, b"baab")?, Column::upload(stream, &[1i32, 2, 3, 4])?);
/// let shops = group_by(stream, &shop)?;
/// assert_eq!(shops.rows().take(stream, &shop)?.to_vec(stream)?, b"ab");
/// assert_eq!(shops.sum(stream, &sales)?.to_vec(stream)?, [5i64, 5]);
/// assert_eq!(shops.max(stream, &sales)?.to_vec(stream)?, [3, 4]);
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug)]
pub struct Groups {
    members: Members,
    /// Where each group begins, if rows are in the order of their groups; and the number of rows.
    offsets: DeviceVec<u32>,
    first: Rows,
    /// The number of rows of the table.
    rows: usize,
}

/// Which rows the groups have.
#[derive(Debug)]
enum Members {
    /// The rows, group after group.
    Ordered(DeviceVec<u32>),
    Numbered(Numbered),
}

/// Rows with numbers of few bits, so that there is a table of them. Sums and counts need no order of the rows, which is made when something
/// else asks for it.
#[derive(Debug)]
struct Numbered {
    numbers: Numbers,
    bits: u32,
    /// The number that the rows of each group have, in ascending order.
    of_groups: DeviceVec<u32>,
    order: OnceLock<DeviceVec<u32>>,
}

/// Returns the groups of rows with equal keys. Nulls are equal to each other. Waits once, for the number of groups.
///
/// # Errors
/// [`Error::LengthMismatch`] if the key columns have different lengths; [`Error::TooLong`] for 2^32 - 1 rows or more;
/// [`Error::OutOfMemory`]; any launch error.
pub fn group_by<'a>(stream: &Stream, keys: impl Into<Keys<'a>>) -> Result<Groups, Error> {
    Groups::of(stream, keys.into().codes_of_groups(stream)?)
}

/// Returns the first row of each different key, in ascending order of the keys. Waits once, for their number.
///
/// # Errors
/// Same as [`group_by`].
pub fn distinct<'a>(stream: &Stream, keys: impl Into<Keys<'a>>) -> Result<Rows, Error> {
    Ok(group_by(stream, keys)?.first)
}

impl Groups {
    /// Returns the groups of rows with these numbers.
    fn of(stream: &Stream, codes: Codes) -> Result<Self, Error> {
        let has_table = match &codes.numbers {
            Numbers::Tiny(_) => true,
            Numbers::Short(numbers) => fit_caches(codes.bits, numbers.len()) && is_even(stream, numbers, codes.bits)?,
            Numbers::Long(_) => false,
        };
        if has_table { Self::numbered(stream, codes) } else { Self::ordered(stream, codes) }
    }

    /// Returns the groups of rows with numbers of few bits.
    #[allow(clippy::unnecessary_cast, reason = "numbers have one of two types")]
    fn numbered(stream: &Stream, Codes { numbers, bits }: Codes) -> Result<Self, Error> {
        let (rows, table_len) = (numbers.len(), 1 << bits);
        let (mut counts, mut firsts) = (stream.uninit::<u32>(table_len)?, stream.uninit::<u32>(table_len)?);
        with_short!(&numbers => numbers: K, {
            let bins = mapped(numbers, map!(|number: K| -> u32 { number as u32 }));
            histogram::counts_and_firsts(stream, bins, &mut counts, &mut firsts)?;
        });
        let of_groups: DeviceVec<u32> =
            select::collect_positions(stream, &counts, predicate!(|count: u32| count != 0))?;
        let mut offsets = stream.zeroed::<u32>(of_groups.len() + 1)?;
        scan::inclusive(stream, at(&counts, &of_groups), offsets.slice_mut(1..)?, Sum)?;
        let first = Rows::existing(transform::collect(stream, at(&firsts, &of_groups))?, rows);
        let members = Members::Numbered(Numbered { numbers, bits, of_groups, order: OnceLock::new() });
        Ok(Self { members, offsets, first, rows })
    }

    /// Returns the groups of rows in the order of their numbers.
    pub(crate) fn ordered(stream: &Stream, codes: Codes) -> Result<Self, Error> {
        let Sorted { numbers, rows } = Sorted::new(stream, codes)?;
        let offsets = run_offsets(stream, &numbers)?;
        drop(numbers);
        let starts = offsets.slice(..offsets.len() - 1)?;
        let first = Rows::existing(transform::collect(stream, at(&rows, starts))?, rows.len());
        let len = rows.len();
        Ok(Self { members: Members::Ordered(rows), offsets, first, rows: len })
    }

    /// Returns one group of all rows, also if there are none: for totals of a whole table.
    ///
    /// # Errors
    /// [`Error::TooLong`] for 2^32 - 1 rows or more; [`Error::OutOfMemory`]; any launch error.
    pub fn all(stream: &Stream, len: usize) -> Result<Self, Error> {
        expect_rows(len)?;
        let order = transform::collect(stream, counting(0u32, len))?;
        let offsets = stream.upload(&[0, len as u32])?;
        let first = Rows::new(stream.upload(&[if len > 0 { 0 } else { crate::NO_ROW }])?)?;
        Ok(Self { members: Members::Ordered(order), offsets, first, rows: len })
    }

    /// Returns the number of groups.
    #[must_use]
    pub fn len(&self) -> usize {
        self.first.len()
    }

    /// Returns whether there are no groups.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.first.is_empty()
    }

    /// Returns the first row of each group. Its key columns are those of the group.
    #[must_use]
    pub fn rows(&self) -> &Rows {
        &self.first
    }

    /// Returns the last row of each group.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]; any launch error.
    pub fn last_rows(&self, stream: &Stream) -> Result<Rows, Error> {
        let last = mapped(self.offsets.slice(1..)?, map!(|end: u32| -> u32 { end.wrapping_sub(1) }));
        let last = transform::collect(stream, last)?;
        Rows::new(crate::join::rows_or_none(stream, self.order(stream)?, &last)?)
    }

    /// Computes several [aggregates](crate::agg) in one call: a tuple of columns for a tuple of aggregates. What they have in common is
    /// done once.
    ///
    /// ```
    /// use gpu_primitives::{Device, Error};
    /// use gpu_relational::agg::{count, first, sum};
    /// use gpu_relational::{Column, group_by};
    ///
    /// let stream = &Device::default()?.stream()?;
    /// let (shop, sales) = (Column::upload(stream, b"baab")?, Column::upload(stream, &[1i32, 2, 3, 4])?);
    /// let (shop, total, number) = group_by(stream, &shop)?.agg(stream, (first(&shop), sum(&sales), count()))?;
    /// assert_eq!(shop.to_vec(stream)?, b"ab");
    /// assert_eq!(total.to_vec(stream)?, [5i64, 5]);
    /// assert_eq!(number.to_vec(stream)?, [2u64, 2]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of the methods that have the names of the aggregates.
    pub fn agg<A: Aggregates>(&self, stream: &Stream, aggregates: A) -> Result<A::Columns, Error> {
        let shared = Shared::new(self, &aggregates);
        aggregates.compute(stream, &shared)
    }

    /// Returns the number of rows of each group.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]; any launch error.
    pub fn count(&self, stream: &Stream) -> Result<Column<u64>, Error> {
        self.agg(stream, agg::count())
    }

    /// Returns the number of elements of each group that are not null.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if the column does not have as many rows as were grouped; same as [`count`](Self::count).
    pub fn count_valid<T: Pod>(&self, stream: &Stream, column: &Column<T>) -> Result<Column<u64>, Error> {
        self.agg(stream, agg::count_valid(column))
    }

    /// Returns the sum of each group; null where there are no elements but nulls. Those of integers are [exact](Summable), and waited for if
    /// the integers have 128 bits. Those of floats are the same on every run and every device.
    ///
    /// # Errors
    /// [`Error::InvalidOption`] if a sum of integers of 128 bits does not fit; same as [`count_valid`](Self::count_valid).
    pub fn sum<'a, A: Amount<'a>>(&self, stream: &Stream, column: A) -> Result<A::Sums, Error> {
        self.agg(stream, agg::sum(column))
    }

    /// Returns the mean of each group: its sum, divided by the number of elements. Null where there are no elements but nulls.
    ///
    /// The sum is the one of [`sum`](Self::sum): exact for integers. For those of 128 bits it is one of floats.
    ///
    /// # Errors
    /// Same as [`count_valid`](Self::count_valid).
    pub fn mean<'a, A: Amount<'a>>(&self, stream: &Stream, column: A) -> Result<Column<f64>, Error> {
        self.agg(stream, agg::mean(column))
    }

    /// Returns the variance of each group: of the elements as a sample, or as the whole (`sample` is 1 or 0). Null where there are no more
    /// elements than that; NaN where an element is infinite or NaN.
    ///
    /// # Errors
    /// Same as [`count_valid`](Self::count_valid).
    pub fn variance<'a, A: Amount<'a>>(&self, stream: &Stream, column: A, sample: bool) -> Result<Column<f64>, Error> {
        self.agg(stream, agg::variance(column, sample))
    }

    /// Returns the smallest element of each group; null where there are no elements but nulls. NaN is the greatest, as it is in a
    /// [key](Key): so it is the smallest only where there is nothing else.
    ///
    /// # Errors
    /// Same as [`count_valid`](Self::count_valid).
    pub fn min<'a, A: Aggregate<'a>>(&self, stream: &Stream, column: A) -> Result<A::Same, Error> {
        self.agg(stream, agg::min(column))
    }

    /// Returns the largest element of each group; null where there are no elements but nulls. NaN is the greatest, as it is in a
    /// [key](Key). [`fold`](Self::fold) with [`Max`](gpu_primitives::scan::Max) leaves NaN out.
    ///
    /// # Errors
    /// Same as [`count_valid`](Self::count_valid).
    pub fn max<'a, A: Aggregate<'a>>(&self, stream: &Stream, column: A) -> Result<A::Same, Error> {
        self.agg(stream, agg::max(column))
    }

    /// Returns the combination of each group by any [operation](Monoid), in the order of the rows; null where there are no elements but
    /// nulls.
    ///
    /// # Errors
    /// Same as [`count_valid`](Self::count_valid).
    pub fn fold<T: Pod>(
        &self,
        stream: &Stream,
        column: &Column<T>,
        operation: impl Monoid<T>,
    ) -> Result<Column<T>, Error> {
        self.agg(stream, agg::fold(column, operation))
    }

    /// Returns how many different elements each group has, without nulls. Waits twice.
    ///
    /// # Errors
    /// Same as [`count_valid`](Self::count_valid).
    pub fn count_distinct<T: Key>(&self, stream: &Stream, column: &Column<T>) -> Result<Column<u64>, Error> {
        self.agg(stream, agg::count_distinct(column))
    }

    pub(crate) fn count_rows(&self, stream: &Stream) -> Result<Column<u64>, Error> {
        count(stream, self.offsets())
    }

    /// Counts the elements that are not null, if this needs no order of the rows.
    pub(crate) fn counts_by_number<T: Pod>(
        &self,
        stream: &Stream,
        column: &Column<T>,
    ) -> Result<Option<Column<u64>>, Error> {
        match (&self.members, column.valid()) {
            (_, None) => self.count_rows(stream).map(Some),
            (Members::Numbered(numbered), Some(valid)) => {
                let counts = numbered.count(stream, valid)?;
                Column::compute(stream, mapped(&counts, map!(|count: u32| -> u64 { count as u64 }))).map(Some)
            }
            _ => Ok(None),
        }
    }

    pub(crate) fn count_distinct_elements<T: Key>(
        &self,
        stream: &Stream,
        column: &Column<T>,
    ) -> Result<Column<u64>, Error> {
        expect_len("a column of grouped rows", self.rows, column.len())?;
        let (group, rows) = (self.group_of_rows(stream)?, Rows::valid(stream, column)?);
        let pairs = distinct(stream, rows.on((&group, column)))?;
        let groups = rows.take(stream, &group)?;
        let mut counts = stream.zeroed::<u64>(self.len())?;
        if !counts.is_empty() {
            histogram::bincount(stream, pairs.of(&groups), &mut counts)?;
        }
        Column::new(counts)
    }

    /// Returns the number of rows that were grouped.
    pub(crate) fn table_len(&self) -> usize {
        self.rows
    }

    /// Returns whether some aggregates need no order of the rows.
    pub(crate) fn is_numbered(&self) -> bool {
        matches!(self.members, Members::Numbered(_))
    }

    /// Returns for each row what its group has: a column, or rows, or a tuple of these, of which element `i` is that of group `i`.
    ///
    /// ```
    /// use gpu_primitives::{Device, Error};
    /// use gpu_relational::{Column, group_by};
    ///
    /// let stream = &Device::default()?.stream()?;
    /// let (shop, sales) = (Column::upload(stream, b"baab")?, Column::upload(stream, &[1i32, 2, 3, 4])?);
    /// let shops = group_by(stream, &shop)?;
    /// let best = shops.max(stream, &sales)?;
    /// assert_eq!(shops.spread(stream, &best)?.to_vec(stream)?, [4, 3, 3, 4]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if there is not an element for each group; [`Error::OutOfMemory`]; any launch error.
    pub fn spread<T: Take>(&self, stream: &Stream, of_groups: T) -> Result<T::Taken, Error> {
        let (groups, _) = self.group_of_rows(stream)?.into_parts();
        Rows::existing(groups, self.len()).take(stream, of_groups)
    }

    /// Returns for each row the number of its group. [`spread`](Self::spread) gives what its group has.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]; any launch error.
    pub fn group_of_rows(&self, stream: &Stream) -> Result<Column<u32>, Error> {
        if let Members::Numbered(numbered) = &self.members {
            return Column::new(numbered.group_of_rows(stream)?);
        }
        let groups = self.group_of_order(stream)?;
        let mut of_rows = stream.uninit::<u32>(self.rows)?;
        // SAFETY: the order has each row once.
        unsafe { permute::scatter_unchecked(stream, &groups, self.order(stream)?, &mut of_rows)? };
        Column::new(of_rows)
    }

    /// Returns the number of the group of each place in the order.
    pub(crate) fn group_of_order(&self, stream: &Stream) -> Result<DeviceVec<u32>, Error> {
        let numbers = transform::collect(stream, counting(0u32, self.len()))?;
        let mut groups = stream.uninit::<u32>(self.rows)?;
        let lengths = map2(
            self.offsets.slice(1..)?,
            self.offsets.slice(..self.len())?,
            map!(|end: u32, start: u32| -> u32 { end - start }),
        );
        gpu_primitives::runs::run_length_decode(stream, (&numbers, lengths), &mut groups)?;
        Ok(groups)
    }

    /// Returns the rows, group after group.
    pub(crate) fn order(&self, stream: &Stream) -> Result<DeviceSlice<'_, u32>, Error> {
        Ok(match &self.members {
            Members::Ordered(order) => order.as_slice(),
            Members::Numbered(numbered) => numbered.order(stream)?.as_slice(),
        })
    }

    pub(crate) fn offsets(&self) -> DeviceSlice<'_, u32> {
        self.offsets.as_slice()
    }

    /// Leaves the rows out that are null in a column.
    pub(crate) fn present<T: Pod>(&self, stream: &Stream, column: &Column<T>) -> Result<Present, Error> {
        expect_len("a column of grouped rows", self.rows, column.len())?;
        let Some(valid) = column.valid() else { return Ok(Present(None)) };
        let all = self.order(stream)?;
        let present = transform::collect(stream, at(valid, all))?;
        // What follows the last group is read, too.
        let mut order = stream.zeroed::<u32>(self.rows)?;
        select::flagged(stream, all, &present, &mut order)?;
        // How many are present before each place.
        let mut before = stream.zeroed::<u32>(present.len() + 1)?;
        let one = map!(|valid: u8| -> u32 { if valid != 0 { 1 } else { 0 } });
        scan::inclusive(stream, mapped(&present, one), before.slice_mut(1..)?, Sum)?;
        let offsets = transform::collect(stream, at(&before, &self.offsets))?;
        Ok(Present(Some((order, offsets))))
    }

    /// Returns the sum of each group, and how many elements it has that are not null, if this needs no order of the rows.
    pub(crate) fn sums_by_number<T: Summable>(
        &self,
        stream: &Stream,
        column: &Column<T>,
    ) -> Result<Option<Totals<T>>, Error> {
        let Members::Numbered(numbered) = &self.members else { return Ok(None) };
        expect_len("a column of grouped rows", self.rows, column.len())?;
        let rows = NumberedRows {
            numbers: &numbered.numbers,
            valid: column.valid(),
            of_groups: numbered.of_groups.as_slice(),
            table_len: 1 << numbered.bits,
        };
        let Some(sums) = T::sums_by_number(stream, column.values(), rows)? else { return Ok(None) };
        let Some(valid) = column.valid() else {
            let (starts, ends) = (self.offsets.slice(..self.len())?, self.offsets.slice(1..)?);
            let counts = map2(starts, ends, map!(|start: u32, end: u32| -> u32 { end - start }));
            return Ok(Some(Totals { sums, valid: None, counts: transform::collect(stream, counts)? }));
        };
        let counts = numbered.count(stream, valid)?;
        let is_some = map!(|count: u32| -> u8 { if count > 0 { 1 } else { 0 } });
        let is_some = transform::collect(stream, mapped(&counts, is_some))?;
        // The sum of no elements is zero.
        Ok(Some(Totals { sums, valid: Some(is_some), counts }))
    }
}

impl Numbered {
    /// Returns the rows, group after group.
    fn order(&self, stream: &Stream) -> Result<&DeviceVec<u32>, Error> {
        if let Some(order) = self.order.get() {
            return Ok(order);
        }
        let options = Options::new().bits(0..self.bits);
        let order = with_short!(&self.numbers => numbers: K, sort::argsort::<K>(stream, numbers, options)?);
        Ok(self.order.get_or_init(|| order))
    }

    /// Returns how many rows of each group are valid.
    #[allow(clippy::unnecessary_cast, reason = "numbers have one of two types")]
    fn count(&self, stream: &Stream, valid: DeviceSlice<'_, u8>) -> Result<DeviceVec<u32>, Error> {
        let mut counts = stream.uninit::<u32>(1 << self.bits)?;
        with_short!(&self.numbers => numbers: K, {
            // The number of a row that is not valid is beyond the table.
            let bin = map!(|number: K, valid: u8| -> u32 { if valid != 0 { number as u32 } else { 0xFFFF_FFFF } });
            histogram::bincount(stream, map2(numbers, valid, bin), &mut counts)?;
        });
        transform::collect(stream, at(&counts, &self.of_groups))
    }

    /// Returns the group of each row.
    #[allow(clippy::unnecessary_cast, reason = "numbers have one of two types")]
    fn group_of_rows(&self, stream: &Stream) -> Result<DeviceVec<u32>, Error> {
        let groups = transform::collect(stream, counting(0u32, self.of_groups.len()))?;
        let mut table = stream.zeroed::<u32>(1 << self.bits)?;
        // SAFETY: the numbers of groups are different, and have so many bits.
        unsafe { permute::scatter_unchecked(stream, &groups, &self.of_groups, &mut table)? };
        with_short!(&self.numbers => numbers: K, {
            let bins = mapped(numbers, map!(|number: K| -> u32 { number as u32 }));
            transform::collect(stream, at(&table, bins))
        })
    }
}

/// Returns whether no number is very frequent, as far as a sample says: rows of a frequent one would all wait for the same address. Waits.
fn is_even(stream: &Stream, numbers: &DeviceVec<u32>, bits: u32) -> Result<bool, Error> {
    const SAMPLE: usize = 1 << 13;
    const MOST: u32 = SAMPLE as u32 / 64;
    let place = map!(step: u32 = (numbers.len() / SAMPLE) as u32; |i: u32| -> u32 { i * step });
    let sample = at(numbers, mapped(counting(0u32, SAMPLE.min(numbers.len())), place));
    let mut counts = stream.uninit::<u32>(1 << bits)?;
    histogram::bincount(stream, sample, &mut counts)?;
    Ok(reduce::reduce(stream, &counts, Max)?.get(stream)? <= MOST)
}

/// The rows that are not null in a column, group after group: their order and offsets, if these are not those of the groups.
pub(crate) struct Present(Option<(DeviceVec<u32>, DeviceVec<u32>)>);

impl Present {
    pub fn sorted<'a>(&'a self, groups: &'a Groups, stream: &Stream) -> Result<SortedRows<'a>, Error> {
        Ok(match &self.0 {
            Some((order, offsets)) => SortedRows { order: order.as_slice(), offsets: offsets.as_slice() },
            None => SortedRows { order: groups.order(stream)?, offsets: groups.offsets() },
        })
    }

    /// Returns how many there are in each group.
    pub fn count(&self, groups: &Groups, stream: &Stream) -> Result<Column<u64>, Error> {
        count(stream, self.sorted(groups, stream)?.offsets)
    }

    /// Returns a column of totals: null, above a zero, where there are no elements.
    pub fn column<T: Pod>(&self, groups: &Groups, stream: &Stream, totals: DeviceVec<T>) -> Result<Column<T>, Error> {
        // Only the group of a table without rows is empty.
        if self.0.is_none() && groups.rows > 0 {
            return Column::new(totals);
        }
        let (starts, ends) = self.sorted(groups, stream)?.bounds()?;
        let is_some = map!(|start: u32, end: u32| -> u8 { if start < end { 1 } else { 0 } });
        let valid = transform::collect(stream, map2(starts, ends, is_some))?;
        Column::with_valid(totals, valid)?.with_zeros(stream)
    }
}

/// Returns the lengths of groups that begin at these offsets.
fn count(stream: &Stream, offsets: DeviceSlice<'_, u32>) -> Result<Column<u64>, Error> {
    let (starts, ends) = (offsets.slice(..offsets.len() - 1)?, offsets.slice(1..)?);
    Column::compute(stream, map2(starts, ends, map!(|start: u32, end: u32| -> u64 { (end - start) as u64 })))
}
