//! The numbers of both sides, and what each row of the left side finds on the right: in a hash table, by a search, or in a table of
//! the range.

use super::Method;
use crate::key::{Codes, Keys, Numbers, Packed, Sorted, Width, in_order, with_width};
use gpu_cuckoo::{GpuCuckoo, Options};
use gpu_primitives::compare::Less;
use gpu_primitives::operator::map;
use gpu_primitives::source::{at, counting, map as mapped, map2, map3};
use gpu_primitives::{DeviceVec, Error, Stream, histogram, multisplit, search, transform};

/// A table of the left side is worth a sort of the pairs if the right side is so many times longer.
const FAR_SMALLER: usize = 4;

/// [`Method::Auto`] hashes from so many rows on the left, and on the right. With fewer on the left, the table takes longer than searches (H200: 0.16
/// to 0.38 ms, against 0.11 to 0.22 ms of a sort; from there on, a row takes about half the time of a search).
const HASH_FROM: (usize, usize) = (1 << 22, 1 << 12);

/// Returns whether a join should build its table of the left side.
pub(super) const fn is_far_smaller(left: usize, right: usize) -> bool {
    left < right / FAR_SMALLER
}

/// The numbers of both sides.
pub(super) struct Sides {
    pub left: Numbers,
    pub right: Codes,
    /// The bits of the last column.
    pub last: u32,
    narrow: bool,
}

/// How the rows of the left side find their matches.
enum Way {
    /// In a table of all numbers, of this length.
    Range(usize),
    Hash,
    Sort,
}

impl Sides {
    pub fn new(stream: &Stream, left: &Keys<'_>, right: &Keys<'_>) -> Result<Self, Error> {
        let Packed { mut sides, bits, last, narrow } = Packed::new(stream, &[left, right], false)?;
        let numbers = sides.pop().expect("two sides");
        let left = sides.pop().expect("two sides");
        Ok(Self { left, right: Codes { numbers, bits }, last, narrow })
    }

    fn way(&self, method: Method) -> Way {
        let (left, right) = (self.left.len(), self.right.numbers.len());
        let range = 1usize.checked_shl(self.right.bits).filter(|len| self.narrow && *len <= left + right);
        match (method, range) {
            (Method::Auto, Some(len)) => Way::Range(len),
            (Method::Auto, None) if left >= HASH_FROM.0 && right >= HASH_FROM.1 => Way::Hash,
            (Method::Auto | Method::Sort, _) => Way::Sort,
            (Method::Hash, _) => Way::Hash,
        }
    }
}

/// Returns a byte for each row of the left side: whether it has a match.
pub(super) fn matched(
    stream: &Stream,
    method: Method,
    left: &Keys<'_>,
    right: &Keys<'_>,
) -> Result<DeviceVec<u8>, Error> {
    let sides = Sides::new(stream, left, right)?;
    let way = sides.way(method);
    let matched = with_width!(&sides.left => needles: K, match way {
        Way::Range(len) => {
            let mut counts = stream.uninit::<u32>(len)?;
            histogram::bincount(stream, K::of(&sides.right.numbers), &mut counts)?;
            // Bytes, so that more of the table fits into caches.
            let is_some = mapped(&counts, map!(|count: u32| -> u8 { if count > 0 { 1 } else { 0 } }));
            transform::collect(stream, at(&transform::collect(stream, is_some)?, needles))?
        }
        Way::Hash => {
            let set = GpuCuckoo::<K, ()>::build_set(stream, K::of(&sides.right.numbers), Options::new())?;
            set.contains(stream, needles)?
        }
        Way::Sort => {
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

/// What the rows of the left side find: the *mark* of their matches.
pub(super) struct Found {
    /// 0 if there is no match. Less than `many`: the row of the single match, and one. Otherwise: the place of the last match, after `many`.
    pub marks: DeviceVec<u32>,
    pub many: u32,
    pub right: Right,
}

/// The rows of the right side, in the order of their numbers.
pub(super) struct Right {
    pub rows: DeviceVec<u32>,
    /// For each place in this order, the first place with an equal number.
    pub starts: DeviceVec<u32>,
}

/// From here on, a mark is not of a row. There are fewer rows than that on most right sides.
const MANY: u32 = 1 << 31;

/// The same for other right sides: no mark is of a row.
pub(super) const ALWAYS: u32 = 1;

impl Found {
    pub fn new(stream: &Stream, method: Method, left: &Keys<'_>, right: &Keys<'_>) -> Result<Self, Error> {
        let many = if right.len() < MANY as usize { MANY } else { ALWAYS };
        Self::with(stream, method, (left, right), many)
    }

    #[allow(clippy::unnecessary_cast, reason = "numbers have one of two types")]
    /// Marks several matches with `many` and more.
    pub(super) fn with(
        stream: &Stream,
        method: Method,
        (left, right): (&Keys<'_>, &Keys<'_>),
        many: u32,
    ) -> Result<Self, Error> {
        let sides = Sides::new(stream, left, right)?;
        let way = sides.way(method);
        let (mut marks, right) = with_width!(&sides.left => needles: K, match way {
            Way::Range(len) => {
                let mut offsets = stream.uninit::<u32>(len + 1)?;
                multisplit::group_offsets(stream, K::of(&sides.right.numbers), &mut offsets)?;
                let (right, _, marks) = Right::new(stream, sides.right, many)?;
                let (starts, ends) = (offsets.slice(..len)?, offsets.slice(1..)?);
                let last = map!(|end: u32| -> u32 { end.wrapping_sub(1) });
                let or_none = map!(|start: u32, end: u32, last: u32| -> u32 { if start < end { last } else { 0 } });
                let table = transform::collect(stream, map3(starts, ends, at(&marks, mapped(ends, last)), or_none))?;
                (transform::collect(stream, at(&table, needles))?, right)
            }
            Way::Hash => {
                let (right, numbers, marks) = Right::new(stream, sides.right, many)?;
                // Of equal numbers, the last one counts.
                let table = GpuCuckoo::<K, u32>::bulk_build(stream, (K::of(&numbers), &marks), Options::new())?;
                // An absent number has a zero.
                (table.lookup(stream, needles)?.values, right)
            }
            Way::Sort => {
                let (right, numbers, marks) = Right::new(stream, sides.right, many)?;
                let mut ends = stream.uninit::<u32>(needles.len())?;
                search::upper_bound(stream, K::of(&numbers), needles, &mut ends, Less)?;
                // One access for both: what is read anywhere costs a sector. Before the first entry, and beyond all, there are zeros.
                let entry = map!(|number: K, mark: u32| -> [K; 2] { [number, mark as K] });
                let entries = transform::collect(stream, map2(K::of(&numbers), &marks, entry))?;
                let last = mapped(&ends, map!(|end: u32| -> u32 { end.wrapping_sub(1) }));
                let if_equal = map!(|needle: K, entry: [K; 2]| -> u32 { if entry[0] == needle { entry[1] as u32 } else { 0 } });
                (transform::collect(stream, map2(needles, at(&entries, last), if_equal))?, right)
            }
        });
        // A key with a null has a number that keys without do not have: only the left side must be asked.
        if let Some(valid) = left.valid(stream)? {
            let of_valid = map!(|found: u32, valid: u8| -> u32 { if valid != 0 { found } else { 0 } });
            marks = transform::collect(stream, map2(&marks, &valid, of_valid))?;
        }
        Ok(Self { marks, many, right })
    }
}

impl Right {
    /// Sorts the rows. Returns their numbers in this order, too, and the marks of these: of equal ones, that of the last one counts.
    fn new(stream: &Stream, codes: Codes, many: u32) -> Result<(Self, Numbers, DeviceVec<u32>), Error> {
        let Sorted { numbers, rows } = Sorted::new(stream, codes)?;
        let mut starts = stream.uninit::<u32>(rows.len())?;
        with_width!(&numbers => numbers: K, search::lower_bound_sorted::<K, _, _>(stream, numbers, numbers, &mut starts, Less)?);
        let mark = map!(many: u32 = many; |place: u32, start: u32, row: u32| -> u32 {
            if place == start && many > 1 { row + 1 } else { many + place }
        });
        let marks = transform::collect(stream, map3(counting(0u32, rows.len()), &starts, &rows, mark))?;
        Ok((Self { rows, starts }, numbers, marks))
    }
}
