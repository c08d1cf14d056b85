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
//! The keys of both sides become [numbers](Keys). The matches of each row are found in one of three ways, by a [`Method`]:
//!
//! - **By hash**: a hash table has the numbers of the right side, and each row of the left side looks its own up.
//! - **By sort**: the right side is sorted by its numbers, and each row of the left side searches there.
//! - **By a table of the range**: with [`narrow`](crate::narrow), the numbers may be in a range that is no larger than both sides together.
//!   Then a histogram of the right side and a running sum make a table of the range, which says what matches each number.
//!
//! If no row has more than one match, the pairs are the rows that have one. Else a running sum of how many there are says where they go.
//! [`semi`] and [`anti`] need no more than whether there is a number: by hash or with a table of the range, the right side is not sorted.

mod find;
mod pairs;

use crate::key::{Keys, Sorted, Width, with_width};
use crate::rows::{NO_ROW, Rows, expect_rows, filter};
use find::{Found, Sides, matched};
use gpu_primitives::compare::Less;
use gpu_primitives::operator::{map, predicate};
use gpu_primitives::source::{at, map as mapped, map2, map3};
use gpu_primitives::{DeviceSlice, DeviceVec, Error, Stream, search, transform};
use pairs::swapped;

/// Rows that belong together: row `i` of both sides.
#[derive(Debug)]
pub struct Joined {
    /// Rows of the left side.
    pub left: Rows,
    /// Rows of the right side.
    pub right: Rows,
}

/// How the matches of rows are found. Results are the same; time and memory differ.
///
/// The functions of this module choose: that is [`Auto`](Self::Auto). To choose yourself, call the same functions of a method:
///
/// ```
/// use gpu_primitives::{Device, Error};
/// use gpu_relational::{Column, join};
///
/// let stream = &Device::default()?.stream()?;
/// let (left, right) = (Column::upload(stream, &[7u32, 9, 7])?, Column::upload(stream, &[9u32, 7])?);
/// let joined = join::Method::Hash.inner(stream, &left, &right)?;
/// assert_eq!(joined.right.to_vec(stream)?, [1, 0, 1]);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Method {
    /// A table of the range, if a key is [`narrow`](crate::narrow) and its range is no larger than both sides together. Else by hash if
    /// both sides have many rows, and by sort if not.
    #[default]
    Auto,
    /// By a [hash table](gpu_cuckoo) of different numbers. It waits once more, for the table.
    ///
    /// An inner join builds it of the left side, if that one has far fewer rows, and then sorts the pairs.
    Hash,
    /// By a sort of the right side, and a search for each row of the left one.
    Sort,
}

impl Method {
    /// [`inner`], by this method.
    ///
    /// # Errors
    /// Same as [`inner`].
    pub fn inner<'a, 'b>(
        self,
        stream: &Stream,
        left: impl Into<Keys<'a>>,
        right: impl Into<Keys<'b>>,
    ) -> Result<Joined, Error> {
        let (left, right) = (left.into(), right.into());
        if self != Self::Sort && find::is_far_smaller(left.len(), right.len()) {
            let joined = Found::new(stream, self, &right, &left)?.pairs(stream, false)?;
            return swapped(stream, joined, (left.len(), right.len()));
        }
        Found::new(stream, self, &left, &right)?.pairs(stream, false)
    }

    /// [`left`], by this method.
    ///
    /// # Errors
    /// Same as [`inner`].
    pub fn left<'a, 'b>(
        self,
        stream: &Stream,
        left: impl Into<Keys<'a>>,
        right: impl Into<Keys<'b>>,
    ) -> Result<Joined, Error> {
        Found::new(stream, self, &left.into(), &right.into())?.pairs(stream, true)
    }

    /// [`full`], by this method.
    ///
    /// # Errors
    /// Same as [`inner`].
    pub fn full<'a, 'b>(
        self,
        stream: &Stream,
        left: impl Into<Keys<'a>>,
        right: impl Into<Keys<'b>>,
    ) -> Result<Joined, Error> {
        let (left, right) = (left.into(), right.into());
        let joined = Found::new(stream, self, &left, &right)?.pairs(stream, true)?;
        let rest = filter(stream, &matched(stream, self, &right, &left)?, predicate!(|matched: u8| matched == 0))?;
        let (paired, len) = (joined.left.len(), joined.left.len() + rest.len());
        expect_rows(len)?;
        let (mut lefts, mut rights) = (stream.uninit(len)?, stream.uninit(len)?);
        lefts.slice_mut(..paired)?.copy_from(stream, joined.left.positions())?;
        gpu_primitives::transfer::fill(stream, lefts.slice_mut(paired..)?, NO_ROW)?;
        rights.slice_mut(..paired)?.copy_from(stream, joined.right.positions())?;
        rights.slice_mut(paired..)?.copy_from(stream, rest.positions())?;
        Ok(Joined { left: Rows::new(lefts)?, right: Rows::new(rights)? })
    }

    /// [`semi`], by this method.
    ///
    /// # Errors
    /// Same as [`inner`].
    pub fn semi<'a, 'b>(
        self,
        stream: &Stream,
        left: impl Into<Keys<'a>>,
        right: impl Into<Keys<'b>>,
    ) -> Result<Rows, Error> {
        let matched = matched(stream, self, &left.into(), &right.into())?;
        filter(stream, &matched, predicate!(|matched: u8| matched != 0))
    }

    /// [`anti`], by this method.
    ///
    /// # Errors
    /// Same as [`inner`].
    pub fn anti<'a, 'b>(
        self,
        stream: &Stream,
        left: impl Into<Keys<'a>>,
        right: impl Into<Keys<'b>>,
    ) -> Result<Rows, Error> {
        let matched = matched(stream, self, &left.into(), &right.into())?;
        filter(stream, &matched, predicate!(|matched: u8| matched == 0))
    }
}

/// Returns all pairs of rows with equal keys, in the order of the left side, and of the right side for each of its rows.
///
/// Waits for the number of pairs; [by hash](Method::Hash) also for the table.
///
/// # Errors
/// [`Error::LengthMismatch`] if the key columns of a side have different lengths, or the sides a different number of them, or a column is
/// shorter than the table that its [`Rows`] were made for; [`Error::InvalidOption`] if their types differ, or only one of them is
/// [`desc`](crate::desc); [`Error::TooLong`] if both sides together have 2^32 - 1 rows or more, or there are as many pairs;
/// [`Error::OutOfMemory`]; any launch error.
pub fn inner<'a, 'b>(stream: &Stream, left: impl Into<Keys<'a>>, right: impl Into<Keys<'b>>) -> Result<Joined, Error> {
    Method::Auto.inner(stream, left, right)
}

/// Returns all pairs of rows with equal keys, and each row of the left side without a match with [`NO_ROW`].
///
/// Waits as [`inner`] does.
///
/// # Errors
/// Same as [`inner`].
pub fn left<'a, 'b>(stream: &Stream, left: impl Into<Keys<'a>>, right: impl Into<Keys<'b>>) -> Result<Joined, Error> {
    Method::Auto.left(stream, left, right)
}

/// Returns all pairs of rows with equal keys, each row of the left side without a match with [`NO_ROW`], and then each row of the right side
/// without a match, with [`NO_ROW`] on the left. Waits twice as often as [`inner`].
///
/// # Errors
/// Same as [`inner`].
pub fn full<'a, 'b>(stream: &Stream, left: impl Into<Keys<'a>>, right: impl Into<Keys<'b>>) -> Result<Joined, Error> {
    Method::Auto.full(stream, left, right)
}

/// Returns the rows of the left side that have a match: `EXISTS` of SQL, and `IN`.
///
/// Waits for their number, as [`inner`] does.
///
/// # Errors
/// Same as [`inner`].
pub fn semi<'a, 'b>(stream: &Stream, left: impl Into<Keys<'a>>, right: impl Into<Keys<'b>>) -> Result<Rows, Error> {
    Method::Auto.semi(stream, left, right)
}

/// Returns the rows of the left side that have no match, also those whose key has a null: `NOT EXISTS` of SQL. It is not `NOT IN`, which
/// gives no rows at all if the right side has a null, and none whose own key is null.
///
/// Waits for their number, as [`inner`] does.
///
/// # Errors
/// Same as [`inner`].
pub fn anti<'a, 'b>(stream: &Stream, left: impl Into<Keys<'a>>, right: impl Into<Keys<'b>>) -> Result<Rows, Error> {
    Method::Auto.anti(stream, left, right)
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
#[allow(clippy::unnecessary_cast, reason = "numbers have one of two types")]
pub fn as_of<'a, 'b>(stream: &Stream, left: impl Into<Keys<'a>>, right: impl Into<Keys<'b>>) -> Result<Rows, Error> {
    let (left, right) = (left.into(), right.into());
    let (valid, right_valid) = (left.valid(stream)?, right.valid(stream)?);
    let Sides { left: needles, right, last, .. } = Sides::new(stream, &left, &right)?;
    let right = Sorted::new(stream, right)?;
    let mut ends = stream.uninit::<u32>(needles.len())?;
    // The row before the end, if all of its key but the time is equal.
    let (before, mut same) = with_width!(&needles => needles: K, {
        let numbers = K::of(&right.numbers);
        search::upper_bound(stream, numbers, needles, &mut ends, Less)?;
        let before = transform::collect(stream, mapped(&ends, map!(|end: u32| -> u32 { end.wrapping_sub(1) })))?;
        let same = map!(last: u32 = last; |a: K, b: K| -> u8 {
            let (a, b) = (a as u64, b as u64);
            let (a, b) = if last < 64 { (a >> last, b >> last) } else { (0, 0) };
            if a == b { 1 } else { 0 }
        });
        let same = transform::collect(stream, map2(needles, at(numbers, &before), same))?;
        (before, same)
    });
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

/// Returns rows at places; [`NO_ROW`] for places beyond all.
pub(crate) fn rows_or_none<'a, 'b>(
    stream: &Stream,
    rows: impl Into<DeviceSlice<'a, u32>>,
    places: impl Into<DeviceSlice<'b, u32>>,
) -> Result<DeviceVec<u32>, Error> {
    let (rows, places) = (rows.into(), places.into());
    let or_none = map!(len: u32 = rows.len() as u32; |place: u32, row: u32| -> u32 {
        if place < len { row } else { 0xFFFF_FFFF }
    });
    transform::collect(stream, map2(places, at(rows, places), or_none))
}
