//! The numbers of all columns of a key side by side, and their order.

use super::numbers::{Codes, Numbers, Shape, Width, is_few, with_width};
use super::{AtRows, KeyColumn, Keys};
use crate::column::expect_len;
use crate::rows::expect_rows;
use gpu_primitives::operator::{map, predicate};
use gpu_primitives::scan::{self, Sum};
use gpu_primitives::sort::{self, Options};
use gpu_primitives::source::{counting, map as mapped, map2};
use gpu_primitives::{DeviceVec, Error, Stream, permute, select, transfer, transform};

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
