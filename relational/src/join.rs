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
//! The keys of both sides become [numbers](Keys). The right side is sorted by them. A search finds for each row of the left side where its
//! matches begin, and the number there says whether there are any, and how many. If no row has more than one, the pairs are the rows that
//! have one. Else a running sum of how many there are says where they go.
//!
//! With [`narrow`](crate::narrow), the numbers may be in a range that is no larger than both sides together. Then a histogram of the right side
//! and a running sum make a table of the range, which says where the matches of each number begin: no row searches. [`semi`] and [`anti`]
//! need no more than a byte for each number of the range, so the right side is not sorted.

use crate::key::{Codes, Keys, Numbers, Packed, Sorted, Width, in_order, with_width};
use crate::rows::{NO_ROW, Rows, expect_rows, filter};
use gpu_primitives::compare::Less;
use gpu_primitives::operator::{map, monoid, predicate};
use gpu_primitives::scan::{self, Sum};
use gpu_primitives::source::{at, counting, map as mapped, map2, map3};
use gpu_primitives::{
    DeviceSlice, DeviceVec, Error, Stream, histogram, multisplit, reduce, runs, search, select, transform,
};

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
    Matches::new(stream, &left.into(), &right.into())?.pairs(stream, false)
}

/// Returns all pairs of rows with equal keys, and each row of the left side without a match with [`NO_ROW`].
///
/// Waits once, for the number of pairs.
///
/// # Errors
/// Same as [`inner`].
pub fn left<'a, 'b>(stream: &Stream, left: impl Into<Keys<'a>>, right: impl Into<Keys<'b>>) -> Result<Joined, Error> {
    Matches::new(stream, &left.into(), &right.into())?.pairs(stream, true)
}

/// Returns all pairs of rows with equal keys, each row of the left side without a match with [`NO_ROW`], and then each row of the right side
/// without a match, with [`NO_ROW`] on the left. Waits twice.
///
/// # Errors
/// Same as [`inner`].
pub fn full<'a, 'b>(stream: &Stream, left: impl Into<Keys<'a>>, right: impl Into<Keys<'b>>) -> Result<Joined, Error> {
    let (left, right) = (left.into(), right.into());
    let joined = Matches::new(stream, &left, &right)?.pairs(stream, true)?;
    let rest = filter(stream, &matched(stream, &right, &left)?, predicate!(|matched: u8| matched == 0))?;
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
    filter(stream, &matched(stream, &left.into(), &right.into())?, predicate!(|matched: u8| matched != 0))
}

/// Returns the rows of the left side that have no match, also those whose key has a null: `NOT EXISTS` of SQL. It is not `NOT IN`, which
/// gives no rows at all if the right side has a null, and none whose own key is null.
///
/// Waits once, for their number.
///
/// # Errors
/// Same as [`inner`].
pub fn anti<'a, 'b>(stream: &Stream, left: impl Into<Keys<'a>>, right: impl Into<Keys<'b>>) -> Result<Rows, Error> {
    filter(stream, &matched(stream, &left.into(), &right.into())?, predicate!(|matched: u8| matched == 0))
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

/// The numbers of both sides.
struct Sides {
    left: Numbers,
    right: Codes,
    /// The bits of the last column.
    last: u32,
    narrow: bool,
}

impl Sides {
    fn new(stream: &Stream, left: &Keys<'_>, right: &Keys<'_>) -> Result<Self, Error> {
        let Packed { mut sides, bits, last, narrow } = Packed::new(stream, &[left, right], false)?;
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

/// Returns a byte for each row of the left side: whether it has a match.
fn matched(stream: &Stream, left: &Keys<'_>, right: &Keys<'_>) -> Result<DeviceVec<u8>, Error> {
    let sides = Sides::new(stream, left, right)?;
    let table_len = sides.table_len();
    let matched = with_width!(&sides.left => needles: K, match table_len {
        Some(len) => {
            let mut counts = stream.uninit::<u32>(len)?;
            histogram::bincount(stream, K::of(&sides.right.numbers), &mut counts)?;
            // Bytes, so that more of the table fits into caches.
            let is_some = mapped(&counts, map!(|count: u32| -> u8 { if count > 0 { 1 } else { 0 } }));
            transform::collect(stream, at(&transform::collect(stream, is_some)?, needles))?
        }
        None => {
            let sorted = in_order(stream, sides.right)?;
            let (sorted, mut starts) = (K::of(&sorted), stream.uninit::<u32>(needles.len())?);
            search::lower_bound(stream, sorted, needles, &mut starts, Less)?;
            let is_equal = map!(len: u32 = sorted.len() as u32; |needle: K, start: u32, found: K| -> u8 {
                if start < len && needle == found { 1 } else { 0 }
            });
            transform::collect(stream, map3(needles, &starts, at(sorted, &starts), is_equal))?
        }
    });
    // A key with a null has a number that keys without do not have: only the left side must be asked.
    let both = map!(|matched: u8, valid: u8| -> u8 { if valid != 0 { matched } else { 0 } });
    match left.valid(stream)? {
        Some(valid) => transform::collect(stream, map2(&matched, &valid, both)),
        None => Ok(matched),
    }
}

/// What matches each row of the left side.
struct Matches {
    /// Where the matches begin among the rows of the right side, and how many there are.
    found: DeviceVec<[u32; 2]>,
    /// The rows of the right side, ordered by their keys.
    rows: DeviceVec<u32>,
}

impl Matches {
    #[allow(clippy::unnecessary_cast, reason = "numbers have one of two types")]
    fn new(stream: &Stream, left: &Keys<'_>, right: &Keys<'_>) -> Result<Self, Error> {
        let sides = Sides::new(stream, left, right)?;
        let table_len = sides.table_len();
        let (mut found, rows) = with_width!(&sides.left => needles: K, match table_len {
            Some(len) => {
                let mut offsets = stream.uninit::<u32>(len + 1)?;
                multisplit::group_offsets(stream, K::of(&sides.right.numbers), &mut offsets)?;
                let range = map!(|start: u32, end: u32| -> [u32; 2] { [start, end - start] });
                // One access for both numbers: a row that is read anywhere costs a sector.
                let table = transform::collect(stream, map2(offsets.slice(..len)?, offsets.slice(1..)?, range))?;
                (transform::collect(stream, at(&table, needles))?, Sorted::new(stream, sides.right)?.rows)
            }
            None => {
                let Sorted { numbers, rows } = Sorted::new(stream, sides.right)?;
                let numbers = K::of(&numbers);
                let mut starts = stream.uninit::<u32>(needles.len())?;
                search::lower_bound(stream, numbers, needles, &mut starts, Less)?;
                // Each number, and how many equal ones there are from it on: one access for both.
                let mut ends = stream.uninit::<u32>(numbers.len())?;
                search::upper_bound_sorted(stream, numbers, numbers, &mut ends, Less)?;
                let entry = map!(|number: K, end: u32, place: u32| -> [K; 2] { [number, (end - place) as K] });
                let entries = map3(numbers, &ends, counting(0u32, numbers.len()), entry);
                let entries = transform::collect(stream, entries)?;
                // Beyond all entries there are zeros, so that the count is 0.
                let matches = map!(|start: u32, needle: K, entry: [K; 2]| -> [u32; 2] {
                    [start, if entry[0] == needle { entry[1] as u32 } else { 0 }]
                });
                (transform::collect(stream, map3(&starts, needles, at(&entries, &starts), matches))?, rows)
            }
        });
        // A key with a null has a number that keys without do not have: only the left side must be asked.
        if let Some(valid) = left.valid(stream)? {
            let of_valid = map!(|found: [u32; 2], valid: u8| -> [u32; 2] { if valid != 0 { found } else { [0, 0] } });
            found = transform::collect(stream, map2(&found, &valid, of_valid))?;
        }
        Ok(Self { found, rows })
    }

    /// Returns all pairs; with `outer`, each row of the left side without a match, too.
    fn pairs(&self, stream: &Stream, outer: bool) -> Result<Joined, Error> {
        // The number of pairs, and the most of a row.
        let numbers = map!(least: u32 = outer.into(); |found: [u32; 2]| -> [u64; 2] {
            [(if found[1] < least { least } else { found[1] }) as u64, found[1] as u64]
        });
        let both = monoid!(exact, commutative; [0, 0], |a: [u64; 2], b: [u64; 2]| [a[0] + b[0], a[1].max(b[1])]);
        let [total, most] = reduce::reduce(stream, mapped(&self.found, numbers), both)?.get(stream)?;
        expect_rows(total as usize)?;
        match (most > 1, outer) {
            (true, _) => self.all_pairs(stream, outer, total as usize),
            (false, true) => self.row_or_none(stream),
            (false, false) => self.single_pairs(stream, total as usize),
        }
    }

    /// Returns all pairs, of which there are `total`, where no row of the left side has more than one match.
    fn single_pairs(&self, stream: &Stream, total: usize) -> Result<Joined, Error> {
        let (Self { found, rows }, len) = (self, self.found.len());
        let has_match = predicate!(|found: [u32; 2]| found[1] != 0);
        let mut left = stream.uninit::<u32>(len)?;
        select::positions(stream, found, &mut left, has_match)?;
        if total < len {
            let mut exact = stream.uninit(total)?;
            exact.copy_from(stream, left.slice(..total)?)?;
            left = exact;
        }
        let starts = mapped(at(found, &left), map!(|found: [u32; 2]| -> u32 { found[0] }));
        let right = Rows::existing(transform::collect(stream, at(rows, starts))?, rows.len());
        Ok(Joined { left: Rows::existing(left, len), right })
    }

    /// Returns each row of the left side with its match, of which no row has more than one.
    fn row_or_none(&self, stream: &Stream) -> Result<Joined, Error> {
        let (Self { found, rows }, len) = (self, self.found.len());
        let starts = mapped(found, map!(|found: [u32; 2]| -> u32 { found[0] }));
        let or_none = map!(|found: [u32; 2], row: u32| -> u32 { if found[1] != 0 { row } else { 0xFFFF_FFFF } });
        let right = Rows::new(transform::collect(stream, map2(found, at(rows, starts), or_none))?)?;
        Ok(Joined { left: Rows::all(stream, len)?, right })
    }

    /// Returns all pairs, of which there are `total`; with `outer`, each row of the left side without a match, too.
    fn all_pairs(&self, stream: &Stream, outer: bool, total: usize) -> Result<Joined, Error> {
        let (Self { found, rows }, len) = (self, self.found.len());
        let length = map!(least: u32 = outer.into(); |found: [u32; 2]| -> u32 {
            if found[1] < least { least } else { found[1] }
        });
        let lengths = transform::collect(stream, mapped(found, length))?;
        let mut first = stream.uninit::<u32>(len)?;
        scan::exclusive(stream, &lengths, &mut first, Sum, 0)?;
        let numbers = transform::collect(stream, counting(0u32, len))?;
        let mut left = stream.uninit::<u32>(total)?;
        runs::run_length_decode(stream, (&numbers, &lengths), &mut left)?;
        // Pair `i` has row `i - (first pair of its left row)` of the matches. Where there is no match, the place is `NO_ROW`. Numbers
        // wrap on the way, and there are fewer pairs than that.
        let moved = map!(|first: u32, found: [u32; 2]| -> u32 {
            (if found[1] != 0 { found[0] } else { 0xFFFF_FFFF }).wrapping_sub(first)
        });
        let moved = transform::collect(stream, map2(&first, found, moved))?;
        let place = map!(|moved: u32, pair: u32| -> u32 { moved.wrapping_add(pair) });
        let places = map2(at(&moved, &left), counting(0u32, total), place);
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
