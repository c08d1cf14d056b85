//! Merges of levels, whole or within intervals: see [`tiles`](crate::levels::device::tiles).
//!
//! The native bodies do not cut the sequence of overlapping elements into tiles, but into larger parts. A cut within an
//! interval is before all elements of some key, in all levels. So each part finds the live elements on its own.

use super::level::{NativeLevel, oldest_first};
use super::merge::{List, Merger, Windows, split_place};
use crate::KeyCode;
use crate::levels::device::find::Levels;
use crate::levels::device::payload::{OPERAND, Payload, TOMBSTONE};
use crate::levels::device::table::MAX_LEVELS;
use crate::levels::device::tiles::{CountLive, Cuts, EmitLive, LEAST_PER_PIECE, MergeMarked};
use bytemuck::Pod;
use gpu_primitives::code::Sign;
use gpu_primitives::kernel::PairsMut;
use gpu_primitives::kernel::Team;
use gpu_primitives::view::GlobalMut;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// The intervals of a launch.
struct Sequence<'a, C> {
    /// Oldest first.
    levels: Vec<NativeLevel<'a, C>>,
    /// The windows of each interval, as the kernel finds them: for each piece a start and a length.
    windows: &'a [u32],
    /// Where each interval begins, and where the last one ends. None if the only interval has all elements.
    positions: &'a [u64],
    /// The number of pieces of an interval.
    pieces: usize,
}

/// Where a part begins or ends.
struct Cut {
    interval: usize,
    /// How many elements of each window come before the cut, if it is within the interval.
    before: Option<[u32; MAX_LEVELS]>,
}

impl<'a, C: KeyCode> Sequence<'a, C> {
    /// # Safety
    /// Nobody changes the levels or writes what `cuts` shows while the result is used.
    unsafe fn new<V: Pod>(levels: Levels<C, V>, cuts: Cuts) -> Self {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let (windows, positions) = cuts.intervals();
            Self { levels: oldest_first(levels), windows, positions, pieces: cuts.pieces() as usize }
        }
    }

    /// Returns the number of intervals.
    fn intervals(&self) -> usize {
        if self.positions.is_empty() { 1 } else { self.positions.len() - 1 }
    }

    /// Returns the length of the sequence.
    fn len(&self) -> u64 {
        match self.positions.last() {
            Some(&len) => len,
            None => self.levels.iter().map(|level| level.keys.len() as u64).sum(),
        }
    }

    /// Returns the part of a level in an interval: where it begins and ends.
    fn window(&self, interval: usize, level: usize) -> (u32, u32) {
        let len = self.levels[level].keys.len() as u32;
        if self.positions.is_empty() {
            return (0, len);
        }
        let at = 2 * (interval * self.pieces + level);
        let start = self.windows[at].min(len);
        (start, start + self.windows[at + 1].min(len - start))
    }

    /// Returns the cut near a position of the sequence.
    fn cut(&self, position: u64) -> Cut {
        /// Intervals that are not longer are not cut.
        const LONG: u64 = 1 << 12;
        let interval = self.positions.partition_point(|&begin| begin <= position).saturating_sub(1);
        if position == 0 || interval >= self.intervals() || position >= self.len() {
            return Cut { interval: if position == 0 { 0 } else { self.intervals() }, before: None };
        }
        let begin = self.positions.get(interval).copied().unwrap_or(0);
        let len = self.positions.get(interval + 1).map_or_else(|| self.len(), |end| end - begin);
        let windows = (0..self.levels.len()).map(|level| self.window(interval, level));
        let widest = windows.enumerate().max_by_key(|(_, (start, end))| end - start);
        let Some((widest, (start, end))) = widest.filter(|(_, (start, end))| len > LONG && start < end) else {
            return Cut { interval, before: None };
        };
        let share = u128::from(end - start) * u128::from(position - begin) / u128::from(len);
        let key = self.levels[widest].keys[start as usize + share as usize];
        let mut before = [0; MAX_LEVELS];
        for (level, before) in before[..self.levels.len()].iter_mut().enumerate() {
            let (start, end) = self.window(interval, level);
            let keys = &self.levels[level].keys[start as usize..end as usize];
            *before = keys.partition_point(|&other| other < key) as u32;
        }
        Cut { interval, before: Some(before) }
    }

    /// Cuts the sequence into parts.
    fn parts(&self, team: Team) -> Vec<(Cut, Cut)> {
        /// The elements of a part, so that its lists stay in the cache.
        const PART: u64 = 1 << 16;
        let parts = (team.parts(self.len() as usize) as u64).max(self.len() / PART);
        let cut = |part: u64| self.cut((u128::from(self.len()) * u128::from(part) / u128::from(parts)) as u64);
        (0..parts).map(|part| (cut(part), cut(part + 1))).collect()
    }

    /// Calls `visit` for each interval that begins in a part, or continues there: with the interval, whether it begins, and
    /// what the part has of it.
    fn for_each(&self, (first, last): &(Cut, Cut), mut visit: impl FnMut(usize, bool, &Windows)) {
        let mut windows = Windows::new(self.levels.len());
        let end = last.interval + usize::from(last.before.is_some());
        for interval in first.interval..end {
            let cut_off = first.before.as_ref().filter(|_| interval == first.interval);
            let left = last.before.as_ref().filter(|_| interval == last.interval);
            windows.set(|level| {
                let (start, end) = self.window(interval, level);
                (start + cut_off.map_or(0, |before| before[level]), left.map_or(end, |before| start + before[level]))
            });
            visit(interval, cut_off.is_none(), &windows);
        }
    }
}

/// # Safety
/// The contract of [`count_live`](CountLive).
pub unsafe fn count_live<C: KeyCode, P: Payload<Value = ()>, const ITEMS: usize>(
    kernel: CountLive<C, P, ITEMS>,
    team: Team,
) {
    let CountLive { levels, cuts, counts, .. } = kernel;
    // SAFETY: guaranteed by the caller.
    unsafe { count(Sequence::new(levels, cuts), counts, team) };
}

/// Adds the number of live elements of each interval to its count.
///
/// # Safety
/// There is a count per interval, and nobody else uses them.
unsafe fn count<C: KeyCode>(sequence: Sequence<'_, C>, counts: GlobalMut<u64>, team: Team) {
    let parts = sequence.parts(team);
    let work = |part: usize| {
        let mut merger = Merger::new();
        sequence.for_each(&parts[part], |interval, _, windows| {
            let live = merger.count_live(&sequence.levels, windows);
            // SAFETY: there is a count per interval. Two parts may have the same interval.
            let count = unsafe { AtomicU64::from_ptr(counts.as_mut_ptr().add(interval)) };
            count.fetch_add(live as u64, Ordering::Relaxed);
        });
    };
    // SAFETY: the body captures arguments and plain data. Calls change common counts atomically.
    unsafe { team.each(parts.len(), work) };
}

/// # Safety
/// The contract of [`emit_live`](EmitLive). Elements for which there is no room are left out, but not their whole tile.
pub unsafe fn emit_live<C: KeyCode, P: Payload, const ITEMS: usize>(kernel: EmitLive<C, P, ITEMS>, team: Team) {
    let EmitLive { levels, cuts, out, offsets, .. } = kernel;
    let sign = levels.sign();
    // SAFETY: guaranteed by the caller.
    let sequence = unsafe { Sequence::new(levels, cuts) };
    // There are no blocks: the launch has as many as tiles of these lengths, in the worst case.
    let least = sequence.intervals() * LEAST_PER_PIECE * sequence.pieces;
    if !cuts.is_whole() && cuts.tiles_of(sequence.len()) > cuts.tiles_of((out.keys.len() + least) as u64) {
        return;
    }
    let parts = sequence.parts(team);
    // SAFETY: there is an offset per interval and one more, and nobody else uses them.
    let lists = unsafe { collect(&sequence, &parts, offsets, team) };
    // SAFETY: the places are in these levels, and nobody else uses the outputs.
    unsafe { emit(&sequence.levels, &lists, out, sign, team) };
}

/// Lists the live elements of each part, and writes where those of each interval begin.
///
/// # Safety
/// There is an offset per interval and one more, and nobody else uses them.
unsafe fn collect<C: KeyCode>(
    sequence: &Sequence<'_, C>,
    parts: &[(Cut, Cut)],
    offsets: GlobalMut<u64>,
    team: Team,
) -> Vec<List<C>> {
    let mut lists: Vec<List<C>> = parts.iter().map(|_| List::new()).collect();
    let to_lists = lists.as_mut_ptr();
    let work = |part: usize| {
        // SAFETY: there is a list per part, and no other call uses it.
        let list = unsafe { &mut *to_lists.add(part) };
        let mut merger = Merger::new();
        sequence.for_each(&parts[part], |interval, begins, windows| {
            if begins {
                // SAFETY: there is an offset per interval, which begins in one part.
                unsafe { offsets.as_mut_ptr().add(interval).write(list.len() as u64) };
            }
            merger.append_live(&sequence.levels, windows, list);
        });
    };
    // SAFETY: the body captures arguments and plain data. Each call writes offsets and a list of its own.
    unsafe { team.each(parts.len(), work) };
    let mut before = 0;
    for ((first, last), list) in parts.iter().zip(&lists) {
        let begin = first.interval + usize::from(first.before.is_some());
        let end = last.interval + usize::from(last.before.is_some());
        for interval in begin..end {
            // SAFETY: there is an offset per interval, which the part has written.
            unsafe { *offsets.as_mut_ptr().add(interval) += before };
        }
        before += list.len() as u64;
    }
    // SAFETY: there is one more offset.
    unsafe { offsets.as_mut_ptr().add(offsets.len() - 1).write(before) };
    lists
}

/// Writes the elements of lists one after the other, as many as there is room for.
///
/// # Safety
/// The elements are in these levels, which have values of this type. Nobody else uses the output.
unsafe fn emit<C: KeyCode, V: Pod>(
    levels: &[NativeLevel<'_, C>],
    lists: &[List<C>],
    out: PairsMut<C, V>,
    sign: Sign,
    team: Team,
) {
    let mut total = 0;
    let starts: Vec<usize> = lists
        .iter()
        .map(|list| {
            total += list.len();
            total - list.len()
        })
        .collect();
    let work = |part: usize| {
        let (list, start) = (&lists[part], starts[part]);
        let len = list.len().min(out.keys.len().saturating_sub(start));
        // SAFETY: the output has this part, and no other call writes it. The places are those of elements.
        unsafe { write(levels, list, 0..len, out, start, sign) };
    };
    // SAFETY: the body captures arguments and plain data. Each call writes outputs of its own.
    unsafe { team.each(lists.len(), work) };
}

/// Writes elements of a list to `start` and on.
///
/// # Safety
/// The elements are in these levels, which have values of this type. The output has room, which nobody else uses.
unsafe fn write<C: KeyCode, V: Pod>(
    levels: &[NativeLevel<'_, C>],
    list: &List<C>,
    range: Range<usize>,
    out: PairsMut<C, V>,
    start: usize,
    sign: Sign,
) {
    for (i, &key) in list.keys[range.clone()].iter().enumerate() {
        // SAFETY: guaranteed by the caller.
        unsafe { out.keys.as_mut_ptr().add(start + i).write(sign.decode(key)) };
    }
    if size_of::<V>() > 0 {
        let mut values = [std::ptr::null::<V>(); MAX_LEVELS];
        for (to, level) in values.iter_mut().zip(levels) {
            *to = level.values_ptr();
        }
        for (i, &place) in list.places[range].iter().enumerate() {
            let (level, position) = split_place(place);
            // SAFETY: guaranteed by the caller.
            unsafe { out.values.as_mut_ptr().add(start + i).write(*values[level].add(position as usize)) };
        }
    }
}

/// Merges tile by tile, because the marks of a tile are whole words.
///
/// # Safety
/// The contract of [`merge_marked`](MergeMarked).
pub unsafe fn merge_marked<C: KeyCode, P: Payload, const ITEMS: usize>(kernel: MergeMarked<C, P, ITEMS>, team: Team) {
    let MergeMarked { levels, cuts, out, marks, .. } = kernel;
    // SAFETY: guaranteed by the caller.
    unsafe { keep(oldest_first(levels), cuts, out, marks, team) };
}

/// # Safety
/// The contract of [`merge_marked`](MergeMarked).
unsafe fn keep<C: KeyCode, V: Pod>(
    levels: Vec<NativeLevel<'_, C>>,
    cuts: Cuts,
    out: PairsMut<C, V>,
    marks: GlobalMut<u32>,
    team: Team,
) {
    // SAFETY: nobody writes what the cuts show.
    let (splits, tile) = unsafe { cuts.splits() };
    let total = levels.iter().map(|level| level.keys.len()).sum::<usize>();
    let tiles = total.div_ceil(tile);
    let words = out.keys.len().div_ceil(32);
    let split = |tile: usize, level: usize| splits[tile * levels.len() + level].min(levels[level].keys.len() as u64);
    let work = |range: Range<usize>| {
        let mut merger = Merger::new();
        let mut list = List::new();
        let mut windows = Windows::new(levels.len());
        for index in range {
            windows.set(|level| (split(index, level) as u32, split(index + 1, level) as u32));
            list.clear();
            merger.append_all(&levels, &windows, &mut list);
            let begin = index * tile;
            let len = list.len().min(tile).min(out.keys.len().saturating_sub(begin));
            // SAFETY: the output has this part, and no other tile writes it. The places are those of elements.
            unsafe { write(&levels, &list, 0..len, out, begin, Sign::NONE) };
            for (i, places) in list.places[..len].chunks(32).enumerate() {
                let (word, marked) = (begin / 32 + i, marks_of(&levels, places));
                // SAFETY: the output has one or two bits per element. Tiles begin at whole words.
                unsafe {
                    marks.as_mut_ptr().add(word).write(marked[0]);
                    if marks.len() > words {
                        marks.as_mut_ptr().add(words + word).write(marked[1]);
                    }
                }
            }
        }
    };
    // SAFETY: the body captures arguments and plain data. Each call writes outputs of its own.
    unsafe { super::divide(team, tiles, tile, work) };
}

/// Returns the marks of up to 32 elements: of tombstones, and of operands.
fn marks_of<C: KeyCode>(levels: &[NativeLevel<'_, C>], places: &[u64]) -> [u32; 2] {
    let mut marked = [0; 2];
    for (i, &place) in places.iter().enumerate() {
        let (level, position) = split_place(place);
        let kind = levels[level].kind(position);
        marked[0] |= u32::from(kind & TOMBSTONE != 0) << i;
        marked[1] |= u32::from(kind & OPERAND != 0) << i;
    }
    marked
}
