//! Joins: which rows of two tables belong together.
//!
//! Both sides have keys of the same columns. A row of the left side matches the rows of the right side whose key is equal; a key with a
//! null matches nothing. Either side may have a key any number of times. All joins but [`as_of`] wait for the number of rows that they give.
//!
//! ```
//! use gpu_primitives::{Device, Error};
//! use gpu_relational::{Column, join};
//!
//! let stream = &Device::default()?.stream()?;
//! let (customer, amount) = (Column::upload(stream, &[7u32, 9, 7])?, Column::upload(stream, &[10u64, 20, 30])?);
//! let (number, country) = (Column::upload(stream, &[9u32, 7])?, Column::upload(stream, b"ab")?);
//!
//! let joined = join::inner(stream, &customer, &number)?;
//! assert_eq!(joined.left.take(stream, &amount)?.to_vec(stream)?, [10, 20, 30]);
//! assert_eq!(joined.right.take(stream, &country)?.to_vec(stream)?, b"bab");
//! # Ok::<(), Error>(())
//! ```
//!
//! # How it works
//! The keys of both sides become [numbers](Keys). The right side is sorted by them. A binary search finds for each row of the left side
//! where its matches begin and end. A running sum of how many there are says where they go.
//!
//! With [`narrow`](crate::narrow), the numbers may be in a range that is no larger than both sides together. Then a histogram of the right side
//! and a running sum make a table of the range, which says where the matches of each number begin: no row searches. [`semi`] and [`anti`]
//! need no more than that, so the right side is not sorted.

use crate::key::{Codes, Keys, Packed, Sorted};
use crate::rows::{NO_ROW, Rows, expect_rows, filter};
use gpu_primitives::compare::Less;
use gpu_primitives::operator::{map, predicate};
use gpu_primitives::scan::{self, Sum};
use gpu_primitives::source::{at, counting, map as mapped, map2, map3};
use gpu_primitives::{DeviceSlice, DeviceVec, Error, Stream, multisplit, runs, search, transform};

/// Rows that belong together: row `i` of both sides.
#[derive(Debug)]
pub struct Joined {
    /// Rows of the left side.
    pub left: Rows,
    /// Rows of the right side.
    pub right: Rows,
}

/// Returns all pairs of rows with equal keys, in the order of the left side, and of the right side for each of its rows.
///
/// Waits once, for the number of pairs.
///
/// # Errors
/// [`Error::LengthMismatch`] if the key columns of a side have different lengths, or the sides a different number of them, or a column is
/// shorter than the table that its [`Rows`] were made for; [`Error::InvalidOption`] if their types differ, or only one of them is
/// [`desc`](crate::desc); [`Error::TooLong`] if both sides together have 2^32 - 1 rows or more, or there are as many pairs;
/// [`Error::OutOfMemory`]; any launch error.
pub fn inner<'a, 'b>(stream: &Stream, left: impl Into<Keys<'a>>, right: impl Into<Keys<'b>>) -> Result<Joined, Error> {
    Matches::new(stream, &left.into(), &right.into(), true)?.pairs(stream, false)
}

/// Returns all pairs of rows with equal keys, and each row of the left side without a match with [`NO_ROW`].
///
/// Waits once, for the number of pairs.
///
/// # Errors
/// Same as [`inner`].
pub fn left<'a, 'b>(stream: &Stream, left: impl Into<Keys<'a>>, right: impl Into<Keys<'b>>) -> Result<Joined, Error> {
    Matches::new(stream, &left.into(), &right.into(), true)?.pairs(stream, true)
}

/// Returns all pairs of rows with equal keys, each row of the left side without a match with [`NO_ROW`], and then each row of the right side
/// without a match, with [`NO_ROW`] on the left. Waits twice.
///
/// # Errors
/// Same as [`inner`].
pub fn full<'a, 'b>(stream: &Stream, left: impl Into<Keys<'a>>, right: impl Into<Keys<'b>>) -> Result<Joined, Error> {
    let (left, right) = (left.into(), right.into());
    let joined = Matches::new(stream, &left, &right, true)?.pairs(stream, true)?;
    let rest = Matches::new(stream, &right, &left, false)?.none(stream)?;
    let (paired, len) = (joined.left.len(), joined.left.len() + rest.len());
    expect_rows(len)?;
    let (mut lefts, mut rights) = (stream.uninit(len)?, stream.uninit(len)?);
    lefts.slice_mut(..paired)?.copy_from(stream, joined.left.positions())?;
    gpu_primitives::transfer::fill(stream, lefts.slice_mut(paired..)?, NO_ROW)?;
    rights.slice_mut(..paired)?.copy_from(stream, joined.right.positions())?;
    rights.slice_mut(paired..)?.copy_from(stream, rest.positions())?;
    Ok(Joined { left: Rows::new(lefts)?, right: Rows::new(rights)? })
}

/// Returns the rows of the left side that have a match: `EXISTS` of SQL, and `IN`.
///
/// Waits once, for their number.
///
/// # Errors
/// Same as [`inner`].
pub fn semi<'a, 'b>(stream: &Stream, left: impl Into<Keys<'a>>, right: impl Into<Keys<'b>>) -> Result<Rows, Error> {
    let matches = Matches::new(stream, &left.into(), &right.into(), false)?;
    filter(stream, &matches.counts, predicate!(|count: u32| count > 0))
}

/// Returns the rows of the left side that have no match, also those whose key has a null: `NOT EXISTS` of SQL. It is not `NOT IN`, which
/// gives no rows at all if the right side has a null, and none whose own key is null.
///
/// Waits once, for their number.
///
/// # Errors
/// Same as [`inner`].
pub fn anti<'a, 'b>(stream: &Stream, left: impl Into<Keys<'a>>, right: impl Into<Keys<'b>>) -> Result<Rows, Error> {
    Matches::new(stream, &left.into(), &right.into(), false)?.none(stream)
}

/// Returns for each row of the left side the row of the right side that was valid at its time: the last one whose other keys are equal and
/// whose time is not greater; [`NO_ROW`] if there is none. The last key column is the time. Of equal times, the last row counts. A key
/// with a null matches nothing, also if the null is the time. Does not wait.
///
/// ```
/// use gpu_primitives::{Device, Error};
/// use gpu_relational::{Column, NO_ROW, join};
///
/// let stream = &Device::default()?.stream()?;
/// let (share, sold) = (Column::upload(stream, b"aba")?, Column::upload(stream, &[15i64, 15, 2])?);
/// let (quoted, time) = (Column::upload(stream, b"aaa")?, Column::upload(stream, &[10i64, 20, 5])?);
/// let quotes = join::as_of(stream, (&share, &sold), (&quoted, &time))?;
/// assert_eq!(quotes.to_vec(stream)?, [0, NO_ROW, NO_ROW]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Same as [`inner`].
pub fn as_of<'a, 'b>(stream: &Stream, left: impl Into<Keys<'a>>, right: impl Into<Keys<'b>>) -> Result<Rows, Error> {
    let (left, right) = (left.into(), right.into());
    let (valid, right_valid) = (left.valid(stream)?, right.valid(stream)?);
    let Sides { left: needles, right, last, .. } = Sides::new(stream, &left, &right)?;
    let right = Sorted::new(stream, right)?;
    let mut ends = stream.uninit::<u32>(needles.len())?;
    search::upper_bound(stream, &right.numbers, &needles, &mut ends, Less)?;
    // The row before the end, if all of its key but the time is equal.
    let before = transform::collect(stream, mapped(&ends, map!(|end: u32| -> u32 { end.wrapping_sub(1) })))?;
    let same = map!(last: u32 = last; |a: u64, b: u64| -> u8 {
        let (a, b) = if last < 64 { (a >> last, b >> last) } else { (0, 0) };
        if a == b { 1 } else { 0 }
    });
    let mut same = transform::collect(stream, map2(&needles, at(&right.numbers, &before), same))?;
    let row = map!(len: u32 = right.rows.len() as u32; |before: u32, same: u8, row: u32| -> u32 {
        if same != 0 && before < len { row } else { 0xFFFF_FFFF }
    });
    let of_right = transform::collect(stream, at(&right.rows, &before))?;
    let both = map!(|a: u8, b: u8| -> u8 { if a != 0 && b != 0 { 1 } else { 0 } });
    if let Some(valid) = valid {
        same = transform::collect(stream, map2(&same, &valid, both))?;
    }
    if let Some(valid) = right_valid {
        // A null is less than all times.
        same = transform::collect(stream, map2(&same, at(&valid, &of_right), both))?;
    }
    Rows::new(transform::collect(stream, map3(&before, &same, &of_right, row))?)
}

/// The numbers of both sides.
struct Sides {
    left: DeviceVec<u64>,
    right: Codes,
    /// The bits of the last column.
    last: u32,
    narrow: bool,
}

impl Sides {
    fn new(stream: &Stream, left: &Keys<'_>, right: &Keys<'_>) -> Result<Self, Error> {
        let Packed { mut sides, bits, last, narrow } = Packed::new(stream, &[left, right])?;
        let numbers = sides.pop().expect("two sides");
        let left = sides.pop().expect("two sides");
        Ok(Self { left, right: Codes { numbers, bits }, last, narrow })
    }

    /// Returns the length of a table of all numbers, if it is to be used: if there are no more of them than rows.
    fn table_len(&self) -> Option<usize> {
        let len = 1usize.checked_shl(self.right.bits)?;
        (self.narrow && len <= self.left.len() + self.right.numbers.len()).then_some(len)
    }
}

/// What matches each row of the left side.
struct Matches {
    /// Where the matches begin among the rows of the right side.
    starts: DeviceVec<u32>,
    counts: DeviceVec<u32>,
    /// The rows of the right side, ordered by their keys; none, if they were not asked for.
    rows: DeviceVec<u32>,
}

impl Matches {
    /// Finds how many matches there are, and which, if `with_rows`.
    fn new(stream: &Stream, left: &Keys<'_>, right: &Keys<'_>, with_rows: bool) -> Result<Self, Error> {
        let sides = Sides::new(stream, left, right)?;
        let len = sides.left.len();
        let (mut starts, mut ends) = (stream.uninit(len)?, stream.uninit::<u32>(len)?);
        let rows = if let Some(table_len) = sides.table_len() {
            let mut table = stream.uninit::<u32>(table_len + 1)?;
            multisplit::group_offsets(stream, &sides.right.numbers, &mut table)?;
            transform::write(stream, at(table.slice(..table_len)?, &sides.left), &mut starts)?;
            transform::write(stream, at(table.slice(1..)?, &sides.left), &mut ends)?;
            if with_rows { Sorted::new(stream, sides.right)?.rows } else { stream.uninit(0)? }
        } else {
            let Sorted { numbers, rows } = Sorted::new(stream, sides.right)?;
            search::equal_range(stream, &numbers, &sides.left, &mut starts, &mut ends, Less)?;
            rows
        };
        let counts = match left.valid(stream)? {
            // A key with a null has a number that keys without do not have: only the left side must be asked.
            Some(valid) => {
                let count = map!(|start: u32, end: u32, valid: u8| -> u32 { if valid != 0 { end - start } else { 0 } });
                transform::collect(stream, map3(&starts, &ends, &valid, count))?
            }
            None => transform::collect(stream, map2(&starts, &ends, map!(|a: u32, b: u32| -> u32 { b - a })))?,
        };
        Ok(Self { starts, counts, rows })
    }

    /// Returns the rows of the left side without a match.
    fn none(&self, stream: &Stream) -> Result<Rows, Error> {
        filter(stream, &self.counts, predicate!(|count: u32| count == 0))
    }

    /// Returns all pairs; with `outer`, each row of the left side without a match, too.
    fn pairs(&self, stream: &Stream, outer: bool) -> Result<Joined, Error> {
        let (Self { starts, counts, rows }, len) = (self, self.counts.len());
        let least = map!(least: u32 = outer.into(); |count: u32| -> u32 { if count < least { least } else { count } });
        let lengths = transform::collect(stream, mapped(counts, least))?;
        let mut ends = stream.uninit::<u64>(len)?;
        scan::inclusive(stream, mapped(&lengths, map!(|length: u32| -> u64 { length as u64 })), &mut ends, Sum)?;
        let total = match len.checked_sub(1) {
            Some(last) => ends.slice(last..)?.to_vec(stream)?[0] as usize,
            None => 0,
        };
        expect_rows(total)?;

        let numbers = transform::collect(stream, counting(0u32, len))?;
        let mut left = stream.uninit::<u32>(total)?;
        runs::run_length_decode(stream, (&numbers, &lengths), &mut left)?;
        // Pair `i` has row `i - (first pair of its left row)` of the matches. Where there is no match, that is far beyond all rows.
        let first = map2(&ends, &lengths, map!(|end: u64, length: u32| -> u64 { end - length as u64 }));
        let first = transform::collect(stream, first)?;
        let moved = map!(|first: u64, start: u32, count: u32| -> u64 {
            let moved = (start as u64).wrapping_sub(first);
            if count > 0 { moved } else { 0x4000_0000_0000_0000 }
        });
        let moved = transform::collect(stream, map3(&first, starts, counts, moved))?;
        let place = map!(|moved: u64, pair: u64| -> u64 { moved.wrapping_add(pair) });
        let places = map2(at(&moved, &left), counting(0u64, total), place);
        let right = if outer {
            let places = transform::collect(stream, places)?;
            Rows::new(rows_or_none(stream, rows, &places)?)?
        } else {
            Rows::existing(transform::collect(stream, at(rows, places))?, rows.len())
        };
        Ok(Joined { left: Rows::existing(left, len), right })
    }
}

/// Returns rows at places; [`NO_ROW`] for places beyond all.
pub(crate) fn rows_or_none<'a, 'b, P: Place>(
    stream: &Stream,
    rows: impl Into<DeviceSlice<'a, u32>>,
    places: impl Into<DeviceSlice<'b, P>>,
) -> Result<DeviceVec<u32>, Error> {
    P::rows(stream, rows.into(), places.into())
}

/// A number that says where a row is.
pub(crate) trait Place: bytemuck::Pod {
    fn rows(
        stream: &Stream,
        rows: DeviceSlice<'_, u32>,
        places: DeviceSlice<'_, Self>,
    ) -> Result<DeviceVec<u32>, Error>;
}

macro_rules! places {
    ($($type:ident)*) => { $(
        impl Place for $type {
            fn rows(
                stream: &Stream,
                rows: DeviceSlice<'_, u32>,
                places: DeviceSlice<'_, Self>,
            ) -> Result<DeviceVec<u32>, Error> {
                let or_none = map!(len: u64 = rows.len() as u64; |place: $type, row: u32| -> u32 {
                    if (place as u64) < len { row } else { 0xFFFF_FFFF }
                });
                transform::collect(stream, map2(places, at(rows, places), or_none))
            }
        }
    )* };
}

places!(u32 u64);
