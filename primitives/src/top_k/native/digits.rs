//! The bodies of the kernels that find numbers digit by digit, for the CPU. See [`kernel`](crate::top_k::device::kernel),
//! [`sift`](crate::top_k::device::sift) and [`order`](crate::top_k::device::order) for what they do and for their contracts.

#![deny(unsafe_op_in_unsafe_fn)]

use crate::hole::RegisterRepr;
use crate::input::Input;
use crate::kernel::Team;
use crate::sort::ShortCode;
use crate::top_k::device::code::{Digit, Position};
use crate::top_k::device::histogram::{BINS, Cutoff, Pick};
use crate::top_k::device::kernel::{CountDigits, GatherKeys, Narrow, Search, Step, THREADS};
use crate::top_k::device::order::OrderBest;
use crate::top_k::device::sift::FindThreshold;
use crate::view::GlobalMut;
use bytemuck::Zeroable as _;
use std::cmp::Reverse;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// The elements that are loaded at once.
const CHUNK: usize = 1024;

/// The numbers with each digit.
struct Tally {
    /// Two tables, so that equal digits in a row do not wait for each other.
    tables: Box<[[u64; 2]; BINS]>,
}

impl Tally {
    fn new() -> Self {
        Self { tables: Box::new([[0; 2]; BINS]) }
    }

    /// Counts a digit; `at` chooses the table.
    #[inline(always)]
    fn add(&mut self, digit: u32, at: usize) {
        self.tables[digit as usize % BINS][at % 2] += 1;
    }

    /// Adds the counts to those of all parts.
    ///
    /// # Safety
    /// There are [`BINS`] counts, which all parts only add to.
    unsafe fn flush(&self, to: GlobalMut<u64>) {
        for (bin, [a, b]) in self.tables.iter().enumerate() {
            if a + b > 0 {
                // SAFETY: guaranteed by the caller.
                let count = unsafe { AtomicU64::from_ptr(to.as_mut_ptr().add(bin)) };
                count.fetch_add(a + b, Ordering::Relaxed);
            }
        }
    }
}

/// Returns the digit that the `wanted` largest numbers go down to: see [`Histogram::pick`](crate::top_k::device::histogram::Histogram::pick).
/// If there are no numbers, it is the last digit of the last thread.
fn pick(count: impl Fn(usize) -> u64, wanted: u64) -> Pick {
    let total = (0..BINS).map(&count).sum::<u64>();
    if total == 0 {
        return Pick { digit: (BINS / THREADS as usize - 1) as u32, above: 0, count: 0 };
    }
    let wanted = wanted.min(total);
    let (mut bin, mut above) = (BINS - 1, 0);
    while bin > 0 && above + count(bin) < wanted {
        above += count(bin);
        bin -= 1;
    }
    Pick { digit: bin as u32, above, count: count(bin) }
}

/// Returns a number such that at least `wanted` of the numbers are not below it: see
/// [`Histogram::cutoff`](crate::top_k::device::histogram::Histogram::cutoff).
fn cutoff(codes: &[u128], bits: u32, wanted: u64, slack: u64) -> Cutoff {
    let (mut prefix, mut above, mut level) = ([0; 2], 0, 0);
    loop {
        let digit = Digit::of(bits, level);
        let mut counts = vec![0; BINS];
        for &code in codes.iter().filter(|code| level == 0 || code.bits_from(digit.end()) == u128::of_halves(prefix)) {
            counts[digit.get(code) as usize] += 1;
        }
        let pick = pick(|bin| counts[bin], wanted - above);
        prefix = digit.append(prefix, pick.digit);
        above += pick.above;
        level += 1;
        let kept = above + pick.count;
        if level == Digit::levels(bits) || kept <= wanted + slack {
            return Cutoff { least: digit.least(prefix), kept };
        }
    }
}

/// # Safety
/// The contract of [`find_threshold`](crate::top_k::device::sift::FindThreshold).
pub(crate) unsafe fn find_threshold<C: ShortCode>(kernel: FindThreshold<C>, _: Team) {
    let FindThreshold { maxima, bits, wanted, stride, sifted, .. } = kernel;
    // SAFETY: nothing writes the maxima.
    let codes: Vec<u128> = unsafe { maxima.as_slice() }.iter().map(|code| u128::of_halves(code.halves())).collect();
    let cutoff = cutoff(&codes, bits, wanted, wanted / 4);
    // SAFETY: only this thread uses the words.
    unsafe { sifted.start(cutoff.least, cutoff.kept * u64::from(stride)) };
}

/// # Safety
/// The contract of [`order_best`](crate::top_k::device::order::OrderBest).
pub(crate) unsafe fn order_best<C: ShortCode, P: Position, const PER: usize>(kernel: OrderBest<C, P, PER>, team: Team) {
    let OrderBest { wanted, sifted, candidates, selected, positions, coding, keys, .. } = kernel;
    let room_of_row = wanted.most();
    let order_row = |row: usize| {
        // SAFETY: there are so many rows, and earlier launches have finished their lists and the selected numbers.
        let (list, len, wanted) = unsafe {
            let wanted = wanted.of_natively(row);
            match sifted.row(row).enough_natively() {
                Some(kept) => (candidates.row(row, sifted.room()), kept, wanted),
                None => (selected.row(row, room_of_row), wanted, wanted),
            }
        };
        // SAFETY: nothing writes the list.
        let (codes, from) = unsafe { (list.codes.as_const().as_slice(), list.positions.as_const().as_slice()) };
        let items = codes[..len].iter().zip(&from[..len]);
        let mut items =
            items.map(|(code, position)| (Reverse(u128::of_halves(code.halves())), position.index())).collect();
        order(&mut items, wanted);
        for at in 0..room_of_row {
            let place = row * room_of_row + at;
            let position = items.get(at).map_or(P::NONE, |&(_, position)| P::of(position));
            // SAFETY: the position exists, and nothing else uses it.
            unsafe { positions.as_mut_ptr().add(place).write(position) };
            if let Some(&(Reverse(code), _)) = items.get(at)
                && position != P::NONE
            {
                // SAFETY: the key exists, and nothing else uses it.
                unsafe { keys.set_natively(place, coding.decode(C::of_halves(code.halves()))) };
            }
        }
    };
    // SAFETY: the body captures arguments. Each call writes positions of its own.
    unsafe { team.each(positions.len() / room_of_row, order_row) };
}

/// Orders the `wanted` largest numbers, and drops the others. Of equal ones, the first comes first.
fn order(items: &mut Vec<(Reverse<u128>, usize)>, wanted: usize) {
    if wanted < items.len() {
        items.select_nth_unstable(wanted);
        items.truncate(wanted);
    }
    items.sort_unstable();
}

/// Counts all digits: the others do no harm.
///
/// # Safety
/// The contract of [`count_digits`](crate::top_k::device::kernel::CountDigits).
pub(crate) unsafe fn count_digits<C: ShortCode, I: Input<C::Repr>, const VEC: usize>(
    kernel: CountDigits<C, I, VEC>,
    team: Team,
) {
    let CountDigits { input, coding, digit, counts, sifted, .. } = kernel;
    // SAFETY: earlier launches have finished the list.
    if unsafe { sifted.enough_natively() }.is_some() {
        return;
    }
    let count: &dyn Fn(usize, Range<usize>) = &|_, range| {
        let (mut room, mut tally) = (Vec::new(), Tally::new());
        for start in range.clone().step_by(CHUNK) {
            // SAFETY: the elements exist, and nothing writes them.
            let elements = unsafe { input.elements(start, CHUNK.min(range.end - start), &mut room) };
            for (at, &key) in elements.iter().enumerate() {
                tally.add(digit.get(coding.encode::<C>(key)), at);
            }
        }
        // SAFETY: there is a count for each digit.
        unsafe { tally.flush(counts) };
    };
    // SAFETY: the body captures arguments. What several calls write is atomic. Nothing writes the length.
    unsafe { team.divide(input.count(), count) };
}

/// What a launch of `narrow` does.
#[derive(Clone, Copy)]
struct Plan {
    digit: Digit,
    /// The digit to count, unless this is the last one.
    next: Option<Digit>,
    /// What is known afterwards.
    after: Step,
    /// Whether the numbers move to other memory, and to the first spare memory unless they are selected.
    moves: bool,
    to_first: bool,
    /// The numbers with the prefix that are kept.
    limit: u64,
}

impl Plan {
    /// Plans for `len` numbers in question, with these counts of the digit, where `spare` numbers have room.
    fn new(
        (bits, level): (u32, u32),
        before: Step,
        len: usize,
        counts: &[u64],
        (wanted, spare): (usize, usize),
    ) -> Self {
        let (digit, is_last) = (Digit::of(bits, level), level + 1 == Digit::levels(bits));
        let pick = pick(|bin| counts[bin], wanted as u64 - before.above);
        let prefix = digit.append(before.prefix, pick.digit);
        let above = before.above + pick.above;
        let kept = above + pick.count;
        let moves = is_last || kept < len as u64 && kept <= spare as u64;
        let to_first = before.source != 1;
        let (source, len) = match (moves, to_first) {
            (false, _) => (before.source, before.len),
            (true, true) => (1, kept),
            (true, false) => (2, kept),
        };
        let next = (!is_last).then(|| Digit::of(bits, level + 1));
        let limit = if is_last { wanted as u64 - above } else { u64::MAX };
        Self { digit, next, after: Step { prefix, above, source, len }, moves, to_first, limit }
    }
}

/// The numbers of a part that are kept or still in question.
struct Part<C> {
    /// The number of those above the prefix, and with the prefix.
    greater: u64,
    ties: u64,
    /// All of them that move, with their indices. Those for which there is no place in any case are left out.
    items: Vec<(C, usize)>,
}

/// # Safety
/// The contract of [`narrow`](crate::top_k::device::kernel::Narrow).
pub(crate) unsafe fn narrow<C: ShortCode, I: Input<C::Repr>, P: Position, const VEC: usize>(
    kernel: Narrow<C, I, P, VEC>,
    team: Team,
) {
    let Narrow { input, coding, level, search, .. } = kernel;
    let Search { steps, first_spare, second_spare, selected, .. } = search;
    // SAFETY: earlier launches have finished the list.
    if unsafe { kernel.sifted.enough_natively() }.is_some() {
        return;
    }
    // SAFETY: it exists and was written, unless this is the first digit.
    let before = if level == 0 { Step::zeroed() } else { unsafe { steps.as_mut_ptr().add(level as usize).read() } };
    let source = if before.source == 1 { first_spare } else { second_spare };
    // SAFETY: nothing writes the source, which is not the target. Earlier launches have written the counts.
    let (codes, positions, counts) = unsafe {
        (
            source.codes.as_const().as_slice(),
            source.positions.as_const().as_slice(),
            search.counts(level).as_const().as_slice(),
        )
    };
    let from_input = before.source == 0;
    // SAFETY: nothing writes the length.
    let len = if from_input { unsafe { input.count() } } else { before.len as usize };
    let room = (selected.codes.len(), first_spare.codes.len());
    let plan = Plan::new((kernel.bits, level), before, len, counts, room);
    // SAFETY: there is one more.
    unsafe { steps.as_mut_ptr().add(level as usize + 1).write(plan.after) };
    let target = match plan {
        Plan { next: None, .. } => selected,
        Plan { to_first: true, .. } => first_spare,
        _ => second_spare,
    };
    let load: &dyn Fn(Range<usize>, &mut Vec<C>) = &|range, to| {
        if from_input {
            let mut room = Vec::new();
            // SAFETY: the elements exist, and nothing writes them.
            let elements = unsafe { input.elements(range.start, range.len(), &mut room) };
            to.extend(elements.iter().map(|&key| coding.encode::<C>(key)));
        } else {
            to.extend_from_slice(&codes[range]);
        }
    };
    // SAFETY: several threads can call the function, and there are counts for the next digit.
    let parts = unsafe { mark(len, plan, target.codes.len(), load, search.counts(level + 1), team) };
    let (mut greater, mut ties) = (0, 0);
    for part in parts {
        let (mut greater_here, mut ties_here) = (greater, ties);
        for (code, at) in part.items {
            let place = (greater_here + plan.limit.min(ties_here)) as usize;
            let is_tie = u64::from(is_tie(code, plan));
            // A code function that is not a function may have more of them than places.
            if place < target.codes.len() && (is_tie == 0 || ties_here < plan.limit) {
                // SAFETY: the place exists, and nothing else uses it.
                unsafe {
                    target.codes.as_mut_ptr().add(place).write(code);
                    target.positions.as_mut_ptr().add(place).write(if from_input { P::of(at) } else { positions[at] });
                }
            }
            (greater_here, ties_here) = (greater_here + 1 - is_tie, ties_here + is_tie);
        }
        (greater, ties) = (greater + part.greater, ties + part.ties);
    }
}

/// Returns whether a number that is not below the prefix has it.
fn is_tie<C: ShortCode>(code: C, plan: Plan) -> bool {
    code.bits_from(plan.digit.shift) == C::of_halves(plan.after.prefix)
}

/// Finds the numbers that are not below the prefix, each worker in a part, and counts the next digit of those that have it.
/// `most` is the number of places that they can move to.
///
/// # Safety
/// Several threads can call `load`. If there is a next digit, there are [`BINS`] counts of it, and nothing else uses them.
unsafe fn mark<C: ShortCode>(
    len: usize,
    plan: Plan,
    most: usize,
    load: &dyn Fn(Range<usize>, &mut Vec<C>),
    next_counts: GlobalMut<u64>,
    team: Team,
) -> Vec<Part<C>> {
    let part = || Mutex::new(Part { greater: 0, ties: 0, items: Vec::new() });
    let parts: Vec<Mutex<Part<C>>> = (0..team.parts(len)).map(|_| part()).collect();
    let least = C::of_halves(plan.digit.least(plan.after.prefix));
    let find: &dyn Fn(usize, Range<usize>) = &|part, range| {
        let mut part = parts[part].lock().expect("each part has its own");
        let (mut codes, mut tally) = (Vec::with_capacity(CHUNK), plan.next.map(|next| (next, Tally::new())));
        for start in range.clone().step_by(CHUNK) {
            codes.clear();
            load(start..range.end.min(start + CHUNK), &mut codes);
            // Nearly all chunks have no such numbers: the first look has no jumps.
            if codes.iter().fold(C::zeroed(), |largest, &code| largest.max(code)) < least {
                continue;
            }
            for (at, &code) in codes.iter().enumerate().filter(|&(_, &code)| code >= least) {
                let is_tie = is_tie(code, plan);
                if is_tie && let Some((next, tally)) = &mut tally {
                    tally.add(next.get(code), at);
                }
                // Those of this part are after as many of the parts before.
                if plan.moves && part.items.len() < most && (!is_tie || part.ties < plan.limit) {
                    part.items.push((code, start + at));
                }
                (part.greater, part.ties) = (part.greater + u64::from(!is_tie), part.ties + u64::from(is_tie));
            }
        }
        if let Some((_, tally)) = tally {
            // SAFETY: guaranteed by the caller.
            unsafe { tally.flush(next_counts) };
        }
    };
    // SAFETY: the body captures plain data, locks, and what several threads can call. What several calls write is atomic.
    unsafe { team.divide(len, find) };
    parts.into_iter().map(|part| part.into_inner().expect("all parts have returned")).collect()
}

/// # Safety
/// The contract of [`gather_keys`](crate::top_k::device::kernel::GatherKeys).
pub(crate) unsafe fn gather_keys<H: RegisterRepr, P: Position>(kernel: GatherKeys<H, P>, team: Team) {
    let GatherKeys { input, positions, output, per_row, layout, .. } = kernel;
    // SAFETY: nothing writes them.
    let positions = unsafe { positions.as_slice() };
    // SAFETY: nothing writes the length.
    let len = unsafe { Input::<H>::count(&input) };
    let gather: &dyn Fn(usize, Range<usize>) = &|_, range| {
        for at in range.filter(|&at| positions[at] != P::NONE) {
            // SAFETY: there are so many rows, and nothing writes the offsets.
            let row = unsafe { layout.row_natively(at / per_row as usize, len) };
            let from = row.first + positions[at].index();
            assert!(from < len, "the input has the elements at all positions");
            // SAFETY: the element exists, and nothing writes it. The output exists, and no other call has it.
            unsafe { output.as_mut_ptr().add(at).write(Input::<H>::item(&input, from)) };
        }
    };
    // SAFETY: the body captures arguments. Each call writes outputs of its own.
    unsafe { team.divide(output.len(), gather) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Stream;
    use crate::block::lookback;
    use crate::block::native::tests::{compare, random};
    use crate::code::Sign;
    use crate::host::source::{Source as _, counting, of_view};
    use crate::input::SourceArg;
    use crate::top_k::device::code::Coding;
    use crate::top_k::device::kernel::tile_len;
    use crate::top_k::device::layout::{RowLayout, Wanted};
    use crate::top_k::device::order::{NumberKeys, listable, orderable, per_thread};
    use crate::top_k::device::sift::Sifted;
    use crate::top_k::device::tile::{Candidates, Counts};
    use crate::with_shape;
    use bytemuck::Pod;

    /// Codes of several kinds: any, all equal, few different ones, and in order.
    fn codes<C: ShortCode>(kind: usize, len: usize) -> Vec<C> {
        let number = |(at, x): (usize, u64)| match kind {
            0 => C::of_halves([x, !x]),
            1 => C::of_halves([77, 77]),
            2 => C::of_halves([x % 5, x % 3]),
            _ => C::of_halves([at as u64, 0]),
        };
        random(len).enumerate().map(number).collect()
    }

    fn bytes<T: Pod>(items: &[T]) -> Vec<u8> {
        bytemuck::cast_slice(items).to_vec()
    }

    fn thresholds<C: ShortCode>() {
        for (len, wanted) in [(64, 1), (64, 64), (511, 100), (512, 3), (513, 512), (8192, 300)] {
            for kind in 0..4 {
                compare(&format!("{wanted} of {len}, kind {kind}"), |stream| {
                    let maxima = stream.upload(&codes::<C>(kind, len)).unwrap();
                    let mut words = stream.zeroed::<u64>(Sifted::WORDS).unwrap();
                    let sifted = Sifted::new(words.raw_view_mut(stream).unwrap(), 1000);
                    let from = maxima.raw_view(stream).unwrap();
                    let kernel = FindThreshold::<C>::new(from, C::BITS, wanted, 4, sifted);
                    // SAFETY: one block, and enough maxima.
                    unsafe { stream.launch(kernel, 1).unwrap() };
                    words.to_vec(stream).unwrap()
                });
            }
        }
    }

    #[test]
    fn thresholds_are_those_of_the_threads() {
        thresholds::<u32>();
        thresholds::<u64>();
        thresholds::<u128>();
    }

    /// Orders numbers of the list, if that has `kept`, or of the selected ones.
    fn ordered<C: ShortCode, P: Position>() {
        let most = orderable::<C>();
        for (kept, wanted) in
            [(0, 1), (1, 1), (100, 30), (30, 100), (listable::<C>(), most), (listable::<C>() + 1, most), (9999, 700)]
        {
            for kind in 0..4 {
                compare(&format!("{wanted} of {kept}, kind {kind}"), |stream| {
                    // Positions in any order. There are as many selected numbers as are wanted.
                    let list = |len: usize| {
                        let positions: Vec<P> = (0..len).map(|i| P::of(i * 7919 % 65_521)).collect();
                        (stream.upload(&codes::<C>(kind, len)).unwrap(), stream.upload(&positions).unwrap())
                    };
                    let (mut candidates, mut selected) = (list(listable::<C>()), list(wanted));
                    let mut words = stream.upload(&[kept as u64, 0, 0]).unwrap();
                    let mut positions = stream.uninit::<P>(wanted).unwrap();
                    let sifted = Sifted::new(words.raw_view_mut(stream).unwrap(), listable::<C>());
                    let [candidates, selected] =
                        [&mut candidates, &mut selected].map(|(codes, positions)| Candidates {
                            codes: codes.raw_view_mut(stream).unwrap(),
                            positions: positions.raw_view_mut(stream).unwrap(),
                        });
                    let to = positions.raw_view_mut(stream).unwrap();
                    let coding = Coding::new(Sign::NONE, C::BITS, kept % 2 == 0);
                    let mut keys = stream.zeroed::<u8>(wanted * size_of::<C>()).unwrap();
                    let to_keys = keys.raw_view_mut(stream).unwrap();
                    with_shape!(PER in 16 | 8 | 4 = per_thread::<C>(), {
                                           let kernel = OrderBest::<C, P, PER>::new(
                    C::BITS, Wanted::all(wanted), sifted, candidates, selected, to, coding, NumberKeys::new(to_keys));
                                           // SAFETY: one block, which can order so many.
                                           unsafe { stream.launch(kernel, 1).unwrap() };
                                       });
                    [bytes(&positions.to_vec(stream).unwrap()), keys.to_vec(stream).unwrap()].concat()
                });
            }
        }
    }

    #[test]
    fn the_best_are_ordered_as_by_the_threads() {
        ordered::<u32, u32>();
        ordered::<u64, u64>();
        ordered::<u128, u32>();
    }

    /// Counts the first digit, and then narrows digit by digit. Returns what each launch has left; of the first counts, only
    /// those that are needed.
    fn narrowed<C: ShortCode, const VEC: usize>(stream: &Stream, keys: &[C::Repr], wanted: usize) -> Vec<Vec<u8>> {
        let (len, bits) = (keys.len(), C::BITS);
        let input = stream.upload(keys).unwrap();
        let input = of_view(input.raw_view(stream).unwrap());
        let (coding, levels) = (Coding::new(Sign::NONE, bits, true), Digit::levels(bits));
        let spare = wanted.max(len / 16).max(len.min(tile_len(VEC)));
        let mut memory =
            [spare, spare, wanted].map(|len| (stream.zeroed::<C>(len).unwrap(), stream.zeroed::<u32>(len).unwrap()));
        let mut steps = stream.zeroed::<Step>(levels as usize + 1).unwrap();
        let mut counts = stream.zeroed::<u64>((levels as usize + 1) * BINS).unwrap();
        let sifted = Sifted::new(GlobalMut::empty(), 0);
        let mut left = Vec::new();
        {
            let to = counts.raw_view_mut(stream).unwrap();
            let digit = Digit::of(bits, 0);
            let kernel = CountDigits::<C, SourceArg, VEC>::new(input, coding, digit, wanted as u64, to, sifted);
            // SAFETY: something is wanted, and the counts are zero.
            unsafe { stream.launch(kernel, 3).unwrap() };
            let first = &counts.to_vec(stream).unwrap()[..BINS];
            left.push(bytes(&first[pick(|bin| first[bin], wanted as u64).digit as usize..]));
        }
        for level in 0..levels {
            let tiles = len.div_ceil(tile_len(VEC));
            let scratch = stream.lookback_words(lookback::scratch_words::<Counts>(tiles)).unwrap();
            let [first, second, selected] = memory.each_mut().map(|(codes, positions)| Candidates {
                codes: codes.raw_view_mut(stream).unwrap(),
                positions: positions.raw_view_mut(stream).unwrap(),
            });
            let search = Search {
                steps: steps.raw_view_mut(stream).unwrap(),
                counts: counts.raw_view_mut(stream).unwrap(),
                first_spare: first,
                second_spare: second,
                selected,
            };
            let kernel = Narrow::<C, SourceArg, u32, VEC>::new(input, coding, bits, level, search, scratch, sifted);
            // SAFETY: the counts and the step before are those of the launch before.
            unsafe { stream.launch(kernel, 3).unwrap() };
            left.push(bytes(&steps.to_vec(stream).unwrap()));
            left.push(bytes(&counts.to_vec(stream).unwrap()[BINS..]));
            for (codes, positions) in &memory {
                left.push(bytes(&codes.to_vec(stream).unwrap()));
                left.push(bytes(&positions.to_vec(stream).unwrap()));
            }
        }
        left
    }

    fn narrowed_alike<C: ShortCode>(of: impl Fn(C) -> C::Repr) {
        let tile = tile_len(16 / size_of::<C>());
        for len in [1, 31, tile - 1, tile, tile + 1, 25_349] {
            for wanted in [1, 20, len / 3, len].into_iter().filter(|wanted| (1..=len).contains(wanted)) {
                for kind in 0..4 {
                    let keys: Vec<C::Repr> = codes::<C>(kind, len).into_iter().map(&of).collect();
                    compare(
                        &format!("{wanted} of {len}, kind {kind}"),
                        |stream| with_shape!(VEC in 4 | 2 | 1 = 16 / size_of::<C>(), narrowed::<C, VEC>(stream, &keys, wanted)),
                    );
                }
            }
        }
    }

    #[test]
    fn numbers_are_narrowed_as_by_the_threads() {
        narrowed_alike::<u32>(|code| code);
        narrowed_alike::<u64>(|code| code);
        narrowed_alike::<u128>(ShortCode::halves);
    }

    #[test]
    fn keys_are_gathered_as_by_the_threads() {
        for (rows, per_row) in [(1, 1), (1, 255), (1, 256), (1, 257), (50, 7), (3000, 11)] {
            for equal in [false, true] {
                compare(&format!("{per_row} of {rows} rows, {equal}"), |stream| {
                    let row_len = 300;
                    let position = |x: u64| if x.is_multiple_of(5) { u32::NONE } else { (x % row_len) as u32 };
                    let positions: Vec<u32> = random(rows * per_row).map(position).collect();
                    let positions = stream.upload(&positions).unwrap();
                    // In any order. The end of the last row does not count.
                    let starts = (0..rows as u32).rev().map(|row| row * row_len as u32).chain([0]);
                    let starts: Vec<u32> = starts.collect();
                    let starts = stream.upload(&starts).unwrap();
                    let layout = if equal {
                        RowLayout::equal(row_len as usize)
                    } else {
                        RowLayout::at(starts.raw_view(stream).unwrap())
                    };
                    let input =
                        counting(5u64, rows * row_len as usize).into_parts().unwrap().lower().open(stream).unwrap();
                    let mut output = stream.zeroed::<u64>(rows * per_row).unwrap();
                    let kernel = GatherKeys::<u64, u32>::new(
                        input.fused(),
                        positions.raw_view(stream).unwrap(),
                        output.raw_view_mut(stream).unwrap(),
                        per_row as u64,
                        layout,
                    );
                    // SAFETY: one thread per position, and as many outputs. The input has these elements.
                    unsafe { stream.launch(kernel, (rows * per_row).div_ceil(THREADS as usize)).unwrap() };
                    output.to_vec(stream).unwrap()
                });
            }
        }
    }
}
