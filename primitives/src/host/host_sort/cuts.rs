//! Where sorted runs are cut, so that the pieces of all runs between two cuts are together what comes next in the merged sequence.

use std::ops::Range;

/// The pieces of a merge: each has so many elements, the last one maybe fewer. A piece is a range of each run, in the order of the
/// runs, without those that are empty.
///
/// Equal keys belong to the piece by the order of their runs, so a stable sort of each piece is a stable merge.
pub struct Cuts<'a, C> {
    /// What is left of each run.
    left: Vec<Range<usize>>,
    piece: usize,
    /// Returns the code of an element.
    code: &'a dyn Fn(usize) -> C,
}

impl<'a, C: Ord> Cuts<'a, C> {
    /// Begins with all elements of these sorted runs.
    pub fn new(runs: impl Iterator<Item = Range<usize>>, piece: usize, code: &'a dyn Fn(usize) -> C) -> Self {
        Self { left: runs.collect(), piece, code }
    }

    /// Returns where each run is cut so that `count` elements come before the cuts. There are more than `count`.
    ///
    /// Every step takes an element in the middle of what is undecided in some run, and its place in all runs. If fewer than
    /// `count` elements come before it, it is before the cuts, with all of these; otherwise it is not, nor is any that comes after
    /// it.
    fn cut(&self, count: usize) -> Vec<usize> {
        // Elements before `low` are before the cuts. Those from `high` on are not.
        let mut low: Vec<usize> = self.left.iter().map(|run| run.start).collect();
        let mut high: Vec<usize> = self.left.iter().map(|run| run.end).collect();
        let mut places = low.clone();
        while let Some(widest) =
            (0..low.len()).max_by_key(|&run| high[run] - low[run]).filter(|&run| low[run] < high[run])
        {
            let middle = low[widest] + (high[widest] - low[widest]) / 2;
            let pivot = (self.code)(middle);
            let mut before = 0;
            for (run, place) in places.iter_mut().enumerate() {
                // Of equal keys, those of earlier runs come first.
                *place = match run.cmp(&widest) {
                    std::cmp::Ordering::Less => self.search(low[run]..high[run], |code| *code <= pivot),
                    std::cmp::Ordering::Equal => middle,
                    std::cmp::Ordering::Greater => self.search(low[run]..high[run], |code| *code < pivot),
                };
                before += *place - self.left[run].start;
            }
            if before < count {
                low.copy_from_slice(&places);
                low[widest] = middle + 1;
            } else {
                high.copy_from_slice(&places);
            }
        }
        low
    }

    /// Returns the first of these elements that is not before something.
    fn search(&self, range: Range<usize>, is_before: impl Fn(&C) -> bool) -> usize {
        let (mut low, mut high) = (range.start, range.end);
        while low < high {
            let middle = low + (high - low) / 2;
            if is_before(&(self.code)(middle)) { low = middle + 1 } else { high = middle }
        }
        low
    }
}

impl<C: Ord> Iterator for Cuts<'_, C> {
    type Item = Vec<Range<usize>>;

    fn next(&mut self) -> Option<Vec<Range<usize>>> {
        let left: usize = self.left.iter().map(Range::len).sum();
        let ends = if left > self.piece { self.cut(self.piece) } else { self.left.iter().map(|run| run.end).collect() };
        let mut piece = Vec::new();
        for (run, end) in self.left.iter_mut().zip(ends) {
            if run.start < end {
                piece.push(run.start..end);
            }
            run.start = end;
        }
        (!piece.is_empty()).then_some(piece)
    }
}

#[cfg(test)]
mod tests {
    use super::Cuts;

    #[test]
    fn pieces_are_what_a_stable_merge_gives() {
        let mut state = 1u64;
        let mut random = || {
            state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
            (state >> 33) as usize
        };
        for round in 0..300 {
            let different = [1, 2, 10, 1000][round % 4];
            let (mut keys, mut runs) = (Vec::new(), Vec::new());
            for _ in 0..1 + random() % 7 {
                let mut run: Vec<usize> = (0..random() % 40).map(|_| random() % different).collect();
                run.sort_unstable();
                runs.push(keys.len()..keys.len() + run.len());
                keys.extend(run);
            }
            let mut expected: Vec<usize> = (0..keys.len()).collect();
            expected.sort_by_key(|&i| keys[i]);
            for piece in [1, 2, 7, 64] {
                let key = |i: usize| keys[i];
                let pieces: Vec<Vec<_>> = Cuts::new(runs.iter().cloned(), piece, &key).collect();
                assert_eq!(pieces.len(), keys.len().div_ceil(piece));
                for (at, ranges) in pieces.into_iter().enumerate() {
                    let mut elements: Vec<usize> = ranges.into_iter().flatten().collect();
                    elements.sort_by_key(|&i| keys[i]);
                    let end = keys.len().min((at + 1) * piece);
                    assert_eq!(elements, expected[at * piece..end], "piece {at} of {piece} elements");
                }
            }
        }
    }
}
