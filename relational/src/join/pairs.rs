//! The pairs of a join, in the order of its left side.

use super::Joined;
use super::find::{ALWAYS, Found, Right};
use crate::rows::{Rows, expect_rows};
use gpu_primitives::operator::{map, monoid, predicate};
use gpu_primitives::scan::{self, Sum};
use gpu_primitives::sort::{self, Options};
use gpu_primitives::source::{Source, at, counting, map as mapped, map2, map3};
use gpu_primitives::{Error, Stream, reduce, runs, select, transform};

impl Found {
    /// Returns all pairs; with `outer`, each row of the left side without a match, too. Waits for their number.
    pub fn pairs(&self, stream: &Stream, outer: bool) -> Result<Joined, Error> {
        // The number of pairs, and the most of a row.
        let numbers = map!(least: u32 = outer.into(); |count: u32| -> [u64; 2] {
            [(if count < least { least } else { count }) as u64, count as u64]
        });
        let both = monoid!(exact, commutative; [0, 0], |a: [u64; 2], b: [u64; 2]| [a[0] + b[0], a[1].max(b[1])]);
        let [total, most] = reduce::reduce(stream, mapped(self.counts(), numbers), both)?.get(stream)?;
        expect_rows(total as usize)?;
        match (most > 1 || self.many == ALWAYS, outer) {
            (true, _) => self.all_pairs(stream, outer, total as usize),
            (false, true) => self.row_or_none(stream),
            (false, false) => self.single_pairs(stream, total as usize),
        }
    }

    /// Returns how many matches each row has. Only those with several are looked at on the right side.
    fn counts(&self) -> impl Source<'_, u32> {
        let place =
            map!(many: u32 = self.many; |mark: u32| -> u32 { if mark >= many { mark - many } else { 0xFFFF_FFFF } });
        let count = map!(many: u32 = self.many; |mark: u32, start: u32| -> u32 {
            if mark >= many { mark - many - start + 1 } else if mark > 0 { 1 } else { 0 }
        });
        map2(&self.marks, at(&self.right.starts, mapped(&self.marks, place)), count)
    }

    /// Returns all pairs, of which there are `total`, where no row of the left side has more than one match.
    fn single_pairs(&self, stream: &Stream, total: usize) -> Result<Joined, Error> {
        let len = self.marks.len();
        let mut left = stream.uninit::<u32>(len)?;
        select::positions(stream, &self.marks, &mut left, predicate!(|mark: u32| mark != 0))?;
        if total < len {
            let mut exact = stream.uninit(total)?;
            exact.copy_from(stream, left.slice(..total)?)?;
            left = exact;
        }
        let row = map!(|mark: u32| -> u32 { mark - 1 });
        let right = transform::collect(stream, mapped(at(&self.marks, &left), row))?;
        Ok(Joined { left: Rows::existing(left, len), right: Rows::existing(right, self.right.rows.len()) })
    }

    /// Returns each row of the left side with its match, of which no row has more than one.
    fn row_or_none(&self, stream: &Stream) -> Result<Joined, Error> {
        // The number before 0 is `NO_ROW`.
        let row = map!(|mark: u32| -> u32 { mark.wrapping_sub(1) });
        let right = Rows::new(transform::collect(stream, mapped(&self.marks, row))?)?;
        Ok(Joined { left: Rows::all(stream, self.marks.len())?, right })
    }

    /// Returns all pairs, of which there are `total`; with `outer`, each row of the left side without a match, too.
    fn all_pairs(&self, stream: &Stream, outer: bool, total: usize) -> Result<Joined, Error> {
        let Self { marks, many, right: Right { rows, starts } } = self;
        let (len, many) = (marks.len(), *many);
        let least = map!(least: u32 = outer.into(); |count: u32| -> u32 { if count < least { least } else { count } });
        let lengths = transform::collect(stream, mapped(self.counts(), least))?;
        let mut first = stream.uninit::<u32>(len)?;
        scan::exclusive(stream, &lengths, &mut first, Sum, 0)?;
        let numbers = transform::collect(stream, counting(0u32, len))?;
        let mut left = stream.uninit::<u32>(total)?;
        runs::run_length_decode(stream, (&numbers, &lengths), &mut left)?;
        // Of several matches, pair `i` has the one at `i - (first pair of its left row)` after the first. Numbers wrap on the way.
        let place = map!(many: u32 = many; |mark: u32| -> u32 { if mark >= many { mark - many } else { 0xFFFF_FFFF } });
        let moved = map!(|first: u32, start: u32| -> u32 { start.wrapping_sub(first) });
        let moved = transform::collect(stream, map2(&first, at(starts, mapped(marks, place)), moved))?;
        let of_pairs = transform::collect(stream, at(marks, &left))?;
        let place = map!(many: u32 = many; |mark: u32, moved: u32, pair: u32| -> u32 {
            if mark >= many { moved.wrapping_add(pair) } else { 0xFFFF_FFFF }
        });
        let places = map3(&of_pairs, at(&moved, &left), counting(0u32, total), place);
        let places = transform::collect(stream, places)?;
        // A mark of 0 is that of no match: the number before it is `NO_ROW`.
        let row = map!(many: u32 = many; |mark: u32, row: u32| -> u32 {
            if mark >= many { row } else { mark.wrapping_sub(1) }
        });
        let right = transform::collect(stream, map2(&of_pairs, at(rows, &places), row))?;
        let right = if outer { Rows::new(right)? } else { Rows::existing(right, rows.len()) };
        Ok(Joined { left: Rows::existing(left, len), right })
    }
}

/// Swaps the sides of pairs, and puts them in the order of what is then the left side. The sides then have so many rows.
pub(super) fn swapped(
    stream: &Stream,
    Joined { left: right, right: left }: Joined,
    (left_len, right_len): (usize, usize),
) -> Result<Joined, Error> {
    let (mut lefts, mut rights) = (stream.uninit(left.len())?, stream.uninit(left.len())?);
    let bits = u32::BITS - (left_len as u32).leading_zeros();
    // The sort is stable: the rows that each row is paired with stay in order.
    let from = (left.positions(), right.positions());
    sort::pairs(stream, from, (&mut lefts, &mut rights), Options::new().bits(0..bits.max(1)))?;
    Ok(Joined { left: Rows::existing(lefts, left_len), right: Rows::existing(rights, right_len) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::join::Method;
    use crate::{Column, narrow};
    use gpu_primitives::Device;

    /// What a right side of 2^31 rows or more does, without one.
    #[test]
    fn no_match_is_a_row() {
        let rights: [&[u32]; 4] = [&[9, 7, 0, 7], &[7, 1, 9], &[5], &[]];
        for (device, rights) in [(Device::cpu(), &rights[..]), (Device::cpu_checked(), &rights[..1])] {
            let stream = &device.stream().unwrap();
            let left = [Some(7u32), Some(0), None, Some(9), Some(7), Some(8)];
            let left = Column::upload_optional(stream, &left).unwrap();
            for (right, outer) in rights.iter().flat_map(|right| [(right, false), (right, true)]) {
                let right = Column::upload(stream, right).unwrap();
                let pairs = |found: Found| {
                    let joined = found.pairs(stream, outer).unwrap();
                    (joined.left.to_vec(stream).unwrap(), joined.right.to_vec(stream).unwrap())
                };
                let ways =
                    [(Method::Auto, narrow(&left)), (Method::Hash, (&left).into()), (Method::Sort, (&left).into())];
                // Where every access is checked, one way is enough: pairs are made of what it finds.
                for (method, keys) in ways.iter().take(if rights.len() == 1 { 1 } else { 3 }) {
                    let short = Found::new(stream, *method, keys, &(&right).into()).unwrap();
                    let long = Found::with(stream, *method, (keys, &(&right).into()), ALWAYS).unwrap();
                    assert_eq!(pairs(short), pairs(long), "{method:?}");
                }
            }
        }
    }
}
