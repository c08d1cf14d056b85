//! The bodies of the kernels for the CPU. See [`kernel`](super::device::kernel) and [`rows`](super::device::rows) for what they
//! do and for their contracts.

#![deny(unsafe_op_in_unsafe_fn)]

use super::device::cuts::{NO_SLOT, rank_of_fraction};
use super::device::kernel::{KeepRanks, Step};
use super::device::rows::SelectInRows;
use crate::input::Input;
use crate::kernel::Team;
use crate::sort::ShortCode;
use crate::top_k::device::code::Position as _;
use crate::top_k::device::histogram::BINS;
use crate::top_k::device::layout::Row;
use bytemuck::Zeroable as _;
use std::cmp::Reverse;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// The elements that are loaded at once.
const CHUNK: usize = 1024;

/// The bins in which ranks lie.
struct Picked {
    /// The slot of each bin.
    slots: Vec<u32>,
    /// The number of slots, and of the elements in them.
    count: u32,
    kept: u64,
    /// The slot of each rank, and its rank among the elements in slots. Nothing if there are not so many elements.
    of_ranks: Vec<Option<(u32, u64)>>,
}

impl Picked {
    /// Finds the bins: see [`Picker::pick`](super::device::pick::Picker::pick).
    fn new(counts: &[u64], ranks: &[u64]) -> Self {
        let mut ends = Vec::with_capacity(BINS);
        let mut end = 0;
        for count in counts {
            end += count;
            ends.push(end);
        }
        let bin_of = |rank: u64| ends.partition_point(|&end| end <= rank);
        let mut slots = vec![NO_SLOT; BINS];
        for &rank in ranks.iter().filter(|&&rank| rank < end) {
            slots[bin_of(rank)] = 0;
        }
        let (mut count, mut kept, mut kept_before) = (0, 0, vec![0; BINS]);
        for bin in 0..BINS {
            kept_before[bin] = kept;
            if slots[bin] != NO_SLOT {
                slots[bin] = count;
                count += 1;
                kept += counts[bin];
            }
        }
        let of_rank = |&rank: &u64| {
            let bin = bin_of(rank);
            (rank < end).then(|| (slots[bin], kept_before[bin] + rank - (ends[bin] - counts[bin])))
        };
        let of_ranks = ranks.iter().map(of_rank).collect();
        Self { slots, count, kept, of_ranks }
    }
}

/// # Safety
/// The contract of [`keep_ranks`](super::device::kernel::KeepRanks).
pub(super) unsafe fn keep_ranks<C: ShortCode, I: Input<C::Repr>, const VEC: usize>(
    kernel: KeepRanks<C, I, VEC>,
    team: Team,
) {
    let KeepRanks { input, coding, cuts, level, wanted, search, .. } = kernel;
    let (this, ranks) = (level as usize, wanted.count as usize);
    // SAFETY: earlier launches have written it, unless this is the first digit.
    let before = if level == 0 { Step::zeroed() } else { unsafe { search.steps.as_mut_ptr().add(this).read() } };
    if before.source == Step::DONE {
        // SAFETY: there is one more.
        unsafe { search.steps.as_mut_ptr().add(this + 1).write(before) };
        return;
    }
    let (from_input, room, base) = (before.source == 0, search.first_spare.codes.len(), before.base);
    // SAFETY: nothing writes the length.
    let all = unsafe { input.count() };
    // SAFETY: an earlier launch has moved them.
    let moved = || unsafe { search.moved.as_mut_ptr().add(base as usize - 1).read() } as usize;
    let len = if from_input { all } else { moved().min(room) };
    // SAFETY: earlier launches have written these, and nothing writes them now.
    let (counts, words, tables) = unsafe {
        (
            search.counts.as_const().slice(this * BINS, BINS).as_slice(),
            search.ranks.as_const().slice(this * ranks, ranks).as_slice(),
            search.slots.as_const().slice(0, this * BINS).as_slice(),
        )
    };
    let rank = |&word: &u64| if level == 0 { wanted.rank(word, all as u64) } else { word };
    let picked = Picked::new(counts, &words.iter().map(rank).collect::<Vec<_>>());
    // SAFETY: there is one position per rank, and nothing else uses it.
    let found = |rank: usize, position: u64| unsafe {
        if search.wide.is_empty() {
            search.narrow.as_mut_ptr().add(rank).write(position as u32);
        } else {
            search.wide.as_mut_ptr().add(rank).write(position);
        }
    };
    for (at, rank) in picked.of_ranks.iter().enumerate() {
        let after = rank.map_or(u64::MAX, |(_, rank)| rank);
        // SAFETY: there are as many ranks after this digit.
        unsafe { search.ranks.as_mut_ptr().add((this + 1) * ranks + at).write(after) };
        if level == 0 && rank.is_none() {
            found(at, u64::MAX);
        }
    }
    let is_last = level + 1 == cuts.levels() || picked.kept == u64::from(picked.count);
    let moves = !is_last && picked.kept < len as u64 && picked.kept <= room as u64;
    let (source, target, moved_to) = match before.source {
        1 => (search.first_spare, search.second_spare, 2),
        _ => (search.second_spare, search.first_spare, 1),
    };
    let after = match (is_last, moves) {
        (true, _) => Step { source: Step::DONE, base },
        (false, true) => Step { source: moved_to, base: level + 1 },
        (false, false) => before,
    };
    // SAFETY: there is one more step, and one table per digit.
    unsafe {
        search.steps.as_mut_ptr().add(this + 1).write(after);
        if !moves && !is_last {
            search.slots.as_mut_ptr().add(this * BINS).copy_from_nonoverlapping(picked.slots.as_ptr(), BINS);
        }
    }
    // SAFETY: nothing writes the source, which is not the target.
    let (codes, positions) = unsafe { (source.codes.as_const().as_slice(), source.positions.as_const().as_slice()) };
    let (cut, next) = (cuts.cut(level), cuts.cut(if is_last { level } else { level + 1 }));
    // SAFETY: the counters exist, and all accesses of this launch are atomic.
    let add = |to: *mut u64, count: u64| unsafe { AtomicU64::from_ptr(to) }.fetch_add(count, Ordering::Relaxed);
    let keep: &dyn Fn(usize, Range<usize>) = &|_, range| {
        let (mut elements, mut numbers, mut kept, mut tally) = (Vec::new(), Vec::new(), Vec::new(), vec![0u64; BINS]);
        for start in range.clone().step_by(CHUNK) {
            let end = range.end.min(start + CHUNK);
            numbers.clear();
            if from_input {
                // SAFETY: the elements exist, and nothing writes them.
                let elements = unsafe { input.elements(start, end - start, &mut elements) };
                numbers.extend(elements.iter().map(|&key| coding.encode::<C>(key)));
            } else {
                numbers.extend_from_slice(&codes[start..end]);
            }
            kept.clear();
            'numbers: for (at, &number) in numbers.iter().enumerate() {
                let position = if from_input { (start + at) as u64 } else { positions[start + at] };
                let mut number = number;
                for earlier in base..level {
                    let cut = cuts.cut(earlier);
                    let slot = tables[earlier as usize * BINS + cut.bin(number, position)];
                    if slot == NO_SLOT {
                        continue 'numbers;
                    }
                    number = cut.recode(number, slot);
                }
                let slot = picked.slots[cut.bin(number, position)];
                if slot == NO_SLOT {
                    continue;
                }
                let number = cut.recode(number, slot);
                if is_last {
                    let is_here = |rank: &Option<(u32, u64)>| rank.is_some_and(|(of_rank, _)| of_rank == slot);
                    for (at, _) in picked.of_ranks.iter().enumerate().filter(|(_, rank)| is_here(rank)) {
                        if position < all as u64 {
                            found(at, position);
                        }
                    }
                    continue;
                }
                tally[next.bin(number, position)] += 1;
                if moves {
                    kept.push((number, position));
                }
            }
            if kept.is_empty() {
                continue;
            }
            let first = add(search.moved.as_mut_ptr().wrapping_add(this), kept.len() as u64) as usize;
            // A code function that is not a function may keep more than there are places.
            for (place, &(number, position)) in (first..room).zip(&kept) {
                // SAFETY: the place exists, and no other call has taken it.
                unsafe {
                    target.codes.as_mut_ptr().add(place).write(number);
                    target.positions.as_mut_ptr().add(place).write(position);
                }
            }
        }
        for (bin, &count) in tally.iter().enumerate().filter(|&(_, &count)| count > 0) {
            add(search.counts.as_mut_ptr().wrapping_add((this + 1) * BINS + bin), count);
        }
    };
    // SAFETY: the body captures arguments and plain data. What several calls write is atomic, or belongs to one of them.
    unsafe { team.divide(len, keep) };
}

/// # Safety
/// The contract of [`select_in_rows`](super::device::rows::SelectInRows).
pub(super) unsafe fn select_in_rows<C: ShortCode, I: Input<C::Repr>>(kernel: SelectInRows<C, I>, team: Team) {
    let SelectInRows { input, coding, layout, per_row, ranks, fractions, positions, .. } = kernel;
    // SAFETY: nothing writes these.
    let (all, ranks, fractions) = unsafe { (input.count(), ranks.as_slice(), fractions.as_slice()) };
    let per_row = per_row as usize;
    let select = |row: usize| {
        // SAFETY: there are so many rows, and nothing writes the offsets.
        let Row { first, len } = unsafe { layout.row_natively(row, all) };
        let mut room = Vec::new();
        // SAFETY: the elements exist, and nothing writes them.
        let elements = unsafe { input.elements(first, len, &mut room) };
        // The codes are complements.
        let mut items: Vec<(Reverse<C>, u32)> = Vec::with_capacity(elements.len());
        for (position, &key) in elements.iter().enumerate() {
            items.push((Reverse(coding.encode(key)), position as u32));
        }
        // Many ranks find a sorted row.
        if per_row > 8 {
            items.sort_unstable();
        }
        for at in 0..per_row {
            let rank = match ranks {
                [] => rank_of_fraction(fractions[at], items.len() as u64),
                ranks => u64::from(ranks[row * per_row + at]),
            };
            let position = if rank >= items.len() as u64 {
                u32::NONE
            } else if per_row > 8 {
                items[rank as usize].1
            } else {
                items.select_nth_unstable(rank as usize).1.1
            };
            // SAFETY: there is a position for each rank of each row, and no other row has it.
            unsafe { positions.as_mut_ptr().add(row * per_row + at).write(position) };
        }
    };
    // SAFETY: the body captures arguments. Each call writes positions of its own.
    unsafe { team.each(positions.len() / per_row.max(1), select) };
}
