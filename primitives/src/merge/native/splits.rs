//! The bodies of the kernels that find the boundaries of tiles, for the CPU. See [`kernel`](crate::merge::device::kernel) and
//! [`runs`](crate::merge::device::runs) for what they do and for their contracts.
//!
//! They take the same steps as a group of lanes, so that a comparator that is not an order gets the same boundaries and
//! verdicts, and so does a boundary that may be a little off. They compare few items. So they call the comparator through a
//! pointer, and are compiled once for all keys.

#![deny(unsafe_op_in_unsafe_fn)]

use crate::block::native::part_mut;
use crate::block::runs::{FEW, MOST, count_before};
use crate::compare::KeyOrder;
use crate::kernel::Team;
use crate::merge::device::kernel::{MergePartition, PARTITION_THREADS};
use crate::merge::device::runs::{BoundarySearch, MAX_RUNS, RunsPartition, TABLE_WORDS};
use crate::view::GlobalMut;
use bytemuck::Pod;
use std::ops::Range;

/// # Safety
/// The contract of [`merge_partition`](crate::merge::device::kernel::MergePartition).
pub(crate) unsafe fn merge_partition<K: Pod, C: KeyOrder<K>>(kernel: MergePartition<K, C>, team: Team) {
    let MergePartition { a, b, compare, tile, log_lanes, splits, verdicts, .. } = kernel;
    // SAFETY: nothing writes the sides, nor their lengths.
    let (a, b) = unsafe { (a.get().as_slice(), b.get().as_slice()) };
    let takes_a = |i: usize, j: usize| !compare.less(b[j], a[i]);
    let sides = Sides { a_len: a.len(), b_len: b.len(), log_lanes, takes_a: &takes_a };
    // SAFETY: guaranteed by the caller.
    unsafe { split_sides(&sides, tile as usize, splits, verdicts, team) };
}

/// Two sides to be merged.
struct Sides<'a> {
    a_len: usize,
    b_len: usize,
    log_lanes: u32,
    /// Returns whether an item of the first side comes before one of the second.
    takes_a: &'a dyn Fn(usize, usize) -> bool,
}

/// Finds all boundaries, and writes the verdicts.
///
/// # Safety
/// The contract of [`merge_partition`](crate::merge::device::kernel::MergePartition). Several threads can call `takes_a`.
unsafe fn split_sides(sides: &Sides<'_>, tile: usize, splits: GlobalMut<u64>, verdicts: GlobalMut<u8>, team: Team) {
    /// The boundaries that a worker searches for at once.
    const BATCH: usize = 64;
    let (total, boundaries) = (sides.a_len + sides.b_len, splits.len());
    let diagonal = |index: usize| (index * tile).min(total);
    let find: &dyn Fn(usize) = &|batch| {
        for index in batch * BATCH..boundaries.min((batch + 1) * BATCH) {
            // SAFETY: the boundary exists, and no other call has it.
            unsafe { splits.as_mut_ptr().add(index).write(sides.split(diagonal(index)) as u64) };
        }
    };
    // SAFETY: the body captures arguments and what several threads can call. Each call writes boundaries of its own.
    unsafe { team.each(boundaries.div_ceil(BATCH), find) };
    // SAFETY: all boundaries were written, and nothing writes them any more. Nothing else uses the verdicts.
    let (found, verdicts) = unsafe { (splits.as_const().as_slice(), part_mut(verdicts, 0..verdicts.len())) };
    verdicts.fill(0);
    for (index, pair) in found.windows(2).enumerate() {
        let step = (diagonal(index + 1) - diagonal(index)) as u64;
        if pair[1] < pair[0] || pair[1] - pair[0] > step {
            verdicts[index / tiles_per_block(sides.log_lanes)] = 1;
        }
    }
}

/// Returns the number of tiles for which a block of a partition finds both boundaries.
fn tiles_per_block(log_lanes: u32) -> usize {
    (PARTITION_THREADS as usize >> log_lanes) - 1
}

impl Sides<'_> {
    /// Returns how many of the first `diagonal` outputs come from the first side.
    fn split(&self, diagonal: usize) -> usize {
        let takes_a = |i: usize| (self.takes_a)(i, diagonal - 1 - i);
        let (mut low, mut high) = (diagonal.saturating_sub(self.b_len), diagonal.min(self.a_len));
        let margin = 2usize << ((usize::BITS - diagonal.leading_zeros()) / 2);
        if high - low > 8 * margin {
            let total = self.a_len + self.b_len;
            let share = (diagonal as f32 * (self.a_len as f32 / total as f32)) as usize;
            let left = share.saturating_sub(margin).max(low).min(high - 1);
            let right = if high - left > 2 * margin { left + 2 * margin } else { high - 1 };
            (low, high) = match (takes_a(left), takes_a(right)) {
                (false, _) => (low, left),
                (true, false) => (left + 1, right),
                (true, true) => (right + 1, high),
            };
        }
        let lanes = 1usize << self.log_lanes;
        while low < high {
            let (first, gap) = (low, high - low);
            let place = |lane: usize| first + ((gap * (2 * lane + 1)) >> (self.log_lanes + 1));
            // The number of agreeing lanes before the first that disagrees.
            let agreeing = (0..lanes).find(|&lane| !takes_a(place(lane))).unwrap_or(lanes);
            if agreeing > 0 {
                low = place(agreeing - 1) + 1;
            }
            if agreeing < lanes {
                high = place(agreeing);
            }
        }
        low
    }
}

/// # Safety
/// The contract of [`runs_partition`](crate::merge::device::runs::RunsPartition).
pub(crate) unsafe fn runs_partition<K: Pod, C: KeyOrder<K>>(kernel: RunsPartition<K, C>, team: Team) {
    let RunsPartition { keys, limits, values, search, compare, splits, verdicts, .. } = kernel;
    let BoundarySearch { most, runs, tile, slack, log_lanes, edges_first } = search;
    let mut views: [&[K]; MAX_RUNS] = [&[]; MAX_RUNS];
    for run in 0..runs {
        let addresses = [keys.get(run).as_ptr().expose_provenance(), values.get(run).as_ptr().expose_provenance()];
        // SAFETY: nothing writes the keys, nor their number.
        views[run as usize] = unsafe { limits.first(keys.get(run), run).as_slice() };
        // SAFETY: the table has three words for each run.
        let entry = unsafe { part_mut(splits, 3 * run as usize..3 * run as usize + 3) };
        entry.copy_from_slice(&[addresses[0] as u64, addresses[1] as u64, views[run as usize].len() as u64]);
    }
    let is_less = |a: Item, b: Item| compare.less(views[a.run][a.at as usize], views[b.run][b.at as usize]);
    let sorted = Sorted {
        windows: views.map(|view| 0..view.len() as u64),
        runs: runs as usize,
        log_lanes,
        slack: u64::from(slack),
        is_less: &is_less,
    };
    // SAFETY: guaranteed by the caller.
    unsafe { split_runs(&sorted, (most, u64::from(tile)), edges_first != 0, splits, verdicts, team) };
}

/// An item of a run.
#[derive(Clone, Copy)]
struct Item {
    run: usize,
    at: u64,
}

/// For each run, the items in question.
type Windows = [Range<u64>; MAX_RUNS];

/// For each run, how many items come before a boundary.
type Shares = [u64; MAX_RUNS];

/// Runs to be merged.
struct Sorted<'a> {
    /// All items.
    windows: Windows,
    runs: usize,
    log_lanes: u32,
    slack: u64,
    is_less: &'a dyn Fn(Item, Item) -> bool,
}

/// Finds all boundaries, and writes the verdicts, block by block.
///
/// # Safety
/// The contract of [`runs_partition`](crate::merge::device::runs::RunsPartition). Several threads can call `is_less`.
unsafe fn split_runs(
    sorted: &Sorted<'_>,
    (most, tile): (u64, u64),
    edges_first: bool,
    splits: GlobalMut<u64>,
    verdicts: GlobalMut<u8>,
    team: Team,
) {
    let total = sorted.windows.iter().map(|window| window.end).sum::<u64>();
    let (last, per_block) = (most.div_ceil(tile) as usize, tiles_per_block(sorted.log_lanes));
    let before = |index: usize| (index as u64 * tile).min(total);
    // SAFETY: nothing else uses the verdicts yet.
    unsafe { part_mut(verdicts, 0..verdicts.len()) }.fill(0);
    let find: &dyn Fn(usize) = &|block| {
        let first = block * per_block;
        let edges = edges_first.then(|| {
            let edge = |index: usize| sorted.split(&sorted.windows, before(index));
            (edge(first), edge(first + per_block))
        });
        // If the comparator contradicts itself, the edges may be out of order.
        let between = edges.filter(|(from, to)| from.iter().zip(to).all(|(from, to)| from <= to));
        let between = between.map(|(from, to)| {
            let windows: Windows = std::array::from_fn(|run| from[run]..to[run]);
            (windows, from.iter().sum::<u64>(), to.iter().sum::<u64>())
        });
        let mut previous = [0; MAX_RUNS];
        for index in first..=last.min(first + per_block) {
            let shares = match &between {
                None => sorted.split(&sorted.windows, before(index)),
                Some((windows, start, end)) => {
                    // The edges themselves are not searched again: the next block must find the same ones.
                    let needed = match index - first {
                        0 => 0,
                        group if group == per_block => end - start,
                        _ => before(index).saturating_sub(*start).min(end - start),
                    };
                    sorted.split(windows, needed)
                }
            };
            // The last boundary is the next block's first.
            if index == last || index < first + per_block {
                let at = TABLE_WORDS + index * sorted.runs;
                // SAFETY: the boundary exists, and no other call writes it.
                unsafe { part_mut(splits, at..at + sorted.runs) }.copy_from_slice(&shares[..sorted.runs]);
            }
            if shares.iter().zip(&previous).any(|(share, previous)| share < previous) {
                // SAFETY: there is a verdict for each block.
                unsafe { verdicts.as_mut_ptr().add(block).write(1) };
            }
            previous = shares;
        }
    };
    // SAFETY: the body captures arguments and what several threads can call. Each call writes boundaries and a verdict of its
    // own.
    unsafe { team.each(last.div_ceil(per_block).max(1), find) };
}

/// Reduces one number of each run, pair by pair, as the lanes of a group do.
fn tree<T: Copy>(mut numbers: [T; MAX_RUNS], combine: impl Fn(T, T) -> T) -> T {
    let mut len = MAX_RUNS;
    while len > 1 {
        len /= 2;
        for pair in 0..len {
            numbers[pair] = combine(numbers[2 * pair], numbers[2 * pair + 1]);
        }
    }
    numbers[0]
}

impl Sorted<'_> {
    /// Splits the windows after their first `needed` items: see [`block::runs::split`](crate::block::runs::split). Returns the
    /// ends of the items that are taken.
    fn split(&self, windows: &Windows, mut needed: u64) -> Shares {
        let slack = self.slack;
        let mut low: Shares = std::array::from_fn(|run| windows[run].start);
        let mut high: Shares = std::array::from_fn(|run| windows[run].end);
        if slack > 0 && needed == windows.iter().map(|window| window.end - window.start).sum::<u64>() {
            return high;
        }
        let few = slack.max(FEW);
        // The number of open items in the last two turns, the most recent first.
        let mut opens = [f32::INFINITY; 2];
        let mut aims_high = true;
        while needed > few {
            let widths: Shares = std::array::from_fn(|run| high[run] - low[run]);
            let open = tree(widths.map(|width| width as f32), |a, b| a + b);
            let (_, pivot_run) = (0..MAX_RUNS).map(|run| (widths[run].min(MOST), run)).max().unwrap_or_default();
            let is_slow = 4.0 * open > opens[1];
            // Where each run would be split if all were alike, and how far from there it may be.
            let guess = |run: usize| {
                let width = widths[run].min(u64::from(u32::MAX)) as u32;
                let margin = (1u32 << ((u32::BITS - width.leading_zeros()) / 2)) / 2;
                let expected = (width as f32 * (needed as f32 / open)) as u32;
                let aim = match (is_slow, aims_high) {
                    (true, _) => width / 2,
                    (_, true) => expected.saturating_add(margin),
                    _ => expected.saturating_sub(margin),
                };
                (aim.min(width.saturating_sub(1)), 4 * margin)
            };
            let pivot_at = u64::from(guess(pivot_run).0);
            let pivot = Item { run: pivot_run, at: low[pivot_run] + pivot_at };
            let shares: Shares = std::array::from_fn(|run| match widths[run] {
                _ if run == pivot_run => pivot_at,
                0 => 0,
                width => self.count_before(pivot, Item { run, at: low[run] }, width, guess(run)),
            });
            let rank = shares.iter().sum::<u64>();
            opens = [open, opens[0]];
            aims_high = rank < needed;
            if needed.abs_diff(rank) <= slack {
                (0..MAX_RUNS).for_each(|run| low[run] += shares[run]);
                needed = 0;
            } else if aims_high {
                (0..MAX_RUNS).for_each(|run| low[run] += shares[run]);
                low[pivot_run] += 1;
                needed -= rank + 1;
            } else {
                (0..MAX_RUNS).for_each(|run| high[run] = low[run] + shares[run]);
            }
        }
        while needed > slack {
            // The run whose next item comes first, among those that have one; on a tie, the lower run.
            let heads = std::array::from_fn(|run| (low[run] < high[run]).then_some(Item { run, at: low[run] }));
            let first = tree(heads, |a: Option<Item>, b| match (a, b) {
                (Some(a), Some(b)) => Some(if (self.is_less)(b, a) { b } else { a }),
                _ => a.or(b),
            });
            if let Some(first) = first {
                low[first.run] += 1;
            }
            needed -= 1;
        }
        low
    }

    /// Returns how many of `width` items, from `first` on, come before the pivot, which is an item of another run. It is
    /// probably near the guess.
    fn count_before(&self, pivot: Item, first: Item, width: u64, (guess, reach): (u32, u32)) -> u64 {
        let is_earlier = first.run < pivot.run;
        let is_before = |at: u64| {
            let item = Item { at: first.at + at, ..first };
            let (a, b) = if is_earlier { (pivot, item) } else { (item, pivot) };
            (self.is_less)(a, b) != is_earlier
        };
        let (mut skipped, mut left) = (0, width);
        while left > u64::from(u32::MAX) {
            if is_before(skipped + left / 2) {
                skipped += left / 2 + 1;
                left -= left / 2 + 1;
            } else {
                left /= 2;
            }
        }
        if left == 0 {
            return skipped;
        }
        let guess = u64::from(guess).min(left - 1) as u32;
        skipped + u64::from(count_before(left as u32, guess, reach, |at| is_before(skipped + u64::from(at))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::native::tests::{compare, random};
    use crate::compare::{Compare, HoleOrder, Less};
    use crate::input::{Limit, Prefix};
    use crate::merge::device::runs::{RunLimits, Runs};
    use crate::operator::{Record, operator};
    use crate::view::Global;
    use bytemuck::Zeroable;

    /// Not an order.
    #[repr(C)]
    #[derive(Clone, Copy, Pod, Zeroable, Record)]
    struct Nonsense;

    #[operator]
    impl Compare<u32> for Nonsense {
        fn less(&self, a: u32, b: u32) -> bool {
            (a * 0x9E37_79B1 ^ b * 0x85EB_CA6B) & 0x40 != 0
        }
    }

    /// Numbers of which many are equal, in order.
    fn sorted(len: usize, seed: usize, most: u64) -> Vec<u32> {
        let mut keys: Vec<u32> = random(len + seed).skip(seed).map(|x| (x % most) as u32).collect();
        keys.sort_unstable();
        keys
    }

    fn bytes(words: GlobalMut<u64>) -> GlobalMut<u8> {
        // SAFETY: this is the same memory, with the length in bytes.
        unsafe { GlobalMut::from_raw(words.as_mut_ptr().cast(), 8 * words.len()) }
    }

    /// Splits two sides with each number of lanes.
    fn of_two<C: Compare<u32>>(compare_by: C, a: &[u32], b: &[u32], tile: usize) {
        let tiles = (a.len() + b.len()).div_ceil(tile);
        for log_lanes in 0..=5 {
            let blocks = tiles.div_ceil(tiles_per_block(log_lanes)).max(1);
            let what = format!("{} and {} items, tiles of {tile}, {log_lanes}", a.len(), b.len());
            compare(&what, |stream| {
                let (a, b) = (stream.upload(a).unwrap(), stream.upload(b).unwrap());
                let mut splits = stream.uninit::<u64>(tiles + 1).unwrap();
                let mut verdicts = stream.upload(&vec![!0u64; blocks.div_ceil(8)]).unwrap();
                let kernel = MergePartition::<u32, HoleOrder>::new(
                    Prefix::from(a.raw_view(stream).unwrap()),
                    Prefix::from(b.raw_view(stream).unwrap()),
                    HoleOrder::of::<u32, C>(compare_by),
                    tile as u32,
                    log_lanes,
                    splits.raw_view_mut(stream).unwrap(),
                    bytes(verdicts.raw_view_mut(stream).unwrap()),
                );
                // SAFETY: one split per boundary, one verdict per block, and as many blocks as the boundaries need.
                unsafe { stream.launch(kernel, blocks).unwrap() };
                (splits.to_vec(stream).unwrap(), verdicts.to_vec(stream).unwrap())
            });
        }
    }

    #[test]
    fn sides_are_split_as_by_the_threads() {
        for (a, b) in
            [(0, 1), (1, 0), (1, 1), (37, 23), (1000, 0), (0, 1000), (5000, 3000), (40_000, 500), (9000, 60_000)]
        {
            for tile in [1, 7, 256, 3840, 1 << 20].into_iter().filter(|tile| (a + b) / tile < 10_000) {
                for most in [1, 10, 1 << 32] {
                    of_two(Less, &sorted(a, 0, most), &sorted(b, a, most), tile);
                }
                of_two(Nonsense, &sorted(a, 0, 1 << 32), &sorted(b, a, 1 << 32), tile);
            }
        }
    }

    /// Splits runs, exactly and nearly, and with the edges of blocks first. Compares all but the addresses.
    fn of_many<C: Compare<u32>>(compare_by: C, runs: &[Vec<u32>], tile: usize) {
        let total = runs.iter().map(Vec::len).sum::<usize>();
        let tiles = total.div_ceil(tile);
        let least = runs.len().next_power_of_two().ilog2();
        for (log_lanes, slack, edges_first) in
            [(least, 0, 0), (least, 64, 0), (least, 0, 1), (least, 64, 1), (5, 0, 0), (5, 64, 1)]
        {
            let blocks = tiles.div_ceil(tiles_per_block(log_lanes)).max(1);
            let what =
                format!("{} runs, {total} items, tiles of {tile}, {log_lanes} {slack} {edges_first}", runs.len());
            compare(&what, |stream| {
                let keys: Vec<_> = runs.iter().map(|run| stream.upload(run).unwrap()).collect();
                let views: Vec<Global<u32>> = keys.iter().map(|run| run.raw_view(stream).unwrap()).collect();
                let views = std::array::from_fn(|run| views.get(run).copied().unwrap_or(Global::empty()));
                let mut splits = stream.zeroed::<u64>(TABLE_WORDS + (tiles + 1) * runs.len()).unwrap();
                let mut verdicts = stream.upload(&vec![!0u64; blocks.div_ceil(8)]).unwrap();
                let kernel = RunsPartition::<u32, HoleOrder>::new(
                    Runs::new(views),
                    RunLimits::new([Limit::NONE; MAX_RUNS]),
                    Runs::new([Global::empty(); MAX_RUNS]),
                    BoundarySearch {
                        most: total as u64,
                        runs: runs.len() as u32,
                        tile: tile as u32,
                        slack,
                        log_lanes,
                        edges_first,
                    },
                    HoleOrder::of::<u32, C>(compare_by),
                    splits.raw_view_mut(stream).unwrap(),
                    bytes(verdicts.raw_view_mut(stream).unwrap()),
                );
                // SAFETY: one split per boundary and run, one verdict per block, one lane per run, and as many blocks as the
                // boundaries need.
                unsafe { stream.launch(kernel, blocks).unwrap() };
                let mut splits = splits.to_vec(stream).unwrap();
                splits[..TABLE_WORDS].chunks_mut(3).for_each(|entry| entry[0] = 0);
                (splits, verdicts.to_vec(stream).unwrap())
            });
        }
    }

    #[test]
    fn runs_are_split_as_by_the_threads() {
        let shapes: [&[usize]; 6] =
            [&[1], &[500, 0, 700], &[3000; 8], &[20_000, 1, 0, 4000, 9], &[100; 32], &[0, 0, 5000, 60_000]];
        for lens in shapes {
            let total = lens.iter().sum::<usize>();
            for tile in [1, 100, 2600].into_iter().filter(|tile| total / tile < 3000) {
                let runs = |most| -> Vec<Vec<u32>> {
                    lens.iter().enumerate().map(|(i, &len)| sorted(len, 1000 * i, most)).collect()
                };
                for most in [1, 20, 1 << 32] {
                    of_many(Less, &runs(most), tile);
                }
                of_many(Nonsense, &runs(1 << 32), tile);
            }
        }
    }
}
