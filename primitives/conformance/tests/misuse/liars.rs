//! Calls with operators that lie: whatever they answer, a call touches only its operands.

use super::lies::{Liar, Lie, PANIC, Untrue, choose};
use super::memory::Memory;
use super::rows::TENTHS;
use super::table::*;
use gpu_conformance::{is_checked, is_gpu};
use gpu_primitives::monoid::Sum;
use gpu_primitives::runs::Which;
use gpu_primitives::sort::Options;
use gpu_primitives::source::{Source, counting, map, map2, map3, map4};
use gpu_primitives::top_k::Rows;
use gpu_primitives::{
    Device, DeviceSlice, DeviceSliceMut, Error, FaultKind, Stream, histogram, merge, merge_sort, multisplit,
    order_statistics, permute, reduce, runs, scan, search, select, sets, sort, top_k, transform,
};
use std::any::Any;
use std::panic::AssertUnwindSafe;

/// Operators of every kind, with every lie.
pub fn operators_that_lie(device: &Device) {
    lie_in(rows(), device);
}

/// Digits of one's own are an error on every device: no list of kernels has them.
pub fn digits_that_are_not_listed(device: &Device) {
    let stream = device.stream().unwrap();
    let keys = stream.upload(&[3u32, 1, 2]).unwrap();
    let mut to = [stream.upload(&[7u32; 3]).unwrap(), stream.upload(&[8u32; 3]).unwrap()];
    let [out, with] = &mut to;
    let result = sort::pairs_by_digits(&stream, (&keys, &keys), (out, with), Liar::chosen(), 3);
    assert!(matches!(result, Err(Error::NoInstance { .. })), "{result:?}");
    assert_eq!(to.map(|memory| memory.to_vec(&stream).unwrap()), [[7; 3], [8; 3]]);
    works_still(&stream, "after digits that are not listed");
}

fn lie_in(rows: Vec<Row>, device: &Device) {
    let stream = device.stream().unwrap();
    each(&rows, |row| {
        for lie in Lie::ALL {
            // Several tiles, for lies that change between them.
            let is_long = matches!(lie, Lie::InRuns | Lie::Random) && !is_checked(device);
            let before = row.contents(if is_long { 1201 } else { 97 });
            let when = format!("{} with a lie: {lie:?}", row.name);
            choose(lie);
            let operands = row.operands.iter().zip(&before);
            let mut memory: Vec<Memory> =
                operands.map(|(operand, contents)| Memory::new(&stream, operand.kind, contents)).collect();
            // What the host asks of an operator, its identity for example, panics as any function of the caller.
            let call = || (row.call)(&stream, &mut memory).and_then(|answer| answer.read(&stream));
            match std::panic::catch_unwind(AssertUnwindSafe(call)) {
                Ok(Ok(_)) => {}
                Ok(Err(error)) => assert!(!is_gpu(device) && is_harmless(&error), "{when}: {error}"),
                Err(panic) => assert!(is_of_the_operator(&*panic), "{when}: it panicked"),
            }
            for (i, operand) in row.operands.iter().enumerate() {
                let after = memory[i].read(&stream, &when);
                assert!(operand.role != Role::Read || after == before[i], "{when}: operand {i} has changed");
            }
            works_still(&stream, &when);
        }
    });
}

/// Returns whether an error tells of no access out of bounds: a panic of the operator, or items that were lost or that collided
/// since their places have changed, which the simulating devices notice.
fn is_harmless(error: &Error) -> bool {
    match error {
        Error::KernelFault(fault) => matches!(
            fault.kind,
            FaultKind::Panic { .. }
                | FaultKind::Uninitialised { .. }
                | FaultKind::Race { .. }
                | FaultKind::BarrierDivergence { .. }
                | FaultKind::CollectiveDivergence { .. }
                | FaultKind::Deadlock { .. }
        ),
        Error::UninitialisedRead { .. } => true,
        _ => false,
    }
}

/// Returns whether a panic is that of an operator.
fn is_of_the_operator(panic: &(dyn Any + Send)) -> bool {
    panic.downcast_ref() == Some(&PANIC)
}

/// Checks that a stream gives right answers.
fn works_still(stream: &Stream, when: &str) {
    let mut data = stream.upload(&[1u32; 70]).unwrap();
    scan::inclusive_in_place(stream, &mut data, Sum).unwrap();
    assert!(data.to_vec(stream).unwrap().into_iter().eq(1..=70), "{when}: the next call is wrong");
}

/// Numbers of an operand that lie when they are read.
fn lied_about<'a>(operand: &'a Memory) -> impl Source<'a, u32> {
    map(operand.words(), Liar::chosen())
}

/// The same, as elements of a type that lies.
fn untrue(operand: &Memory) -> DeviceSlice<'_, Untrue> {
    operand.words().cast().unwrap()
}

fn untrue_mut(operand: &mut Memory) -> DeviceSliceMut<'_, Untrue> {
    operand.words_mut().cast().unwrap()
}

fn rows() -> Vec<Row> {
    [orders(), equalities(), monoids(), choices(), functions(), codes()].into_iter().flatten().collect()
}

fn orders() -> Vec<Row> {
    rows! {
        "merge::keys": (s; a = SORTED, b = HALF, out = OUT_OF_BOTH) => {
            merge::keys(s, a.words(), b.words(), out.words_mut(), Liar::chosen())
        };
        "merge::pairs": (
            s; a = SORTED, b = VALUES, c = HALF, d = HALF_VALUES, out = OUT_OF_BOTH, with = OUT_OF_BOTH
        ) => {
            let to = (out.words_mut(), with.words_mut());
            merge::pairs(s, (a.words(), b.words()), (c.words(), d.words()), to, Liar::chosen())
        };
        "merge::runs_pairs": (
            s; a = SORTED, b = VALUES, c = HALF, d = HALF_VALUES, out = OUT_OF_BOTH, with = OUT_OF_BOTH
        ) => {
            let runs = [(a.words(), b.words()), (c.words(), d.words())];
            merge::runs_pairs(s, &runs, (out.words_mut(), with.words_mut()), Liar::chosen())
        };
        "merge::runs_keys": (s; a = SORTED, b = HALF, c = SORTED, out = OUT_OF_ALL) => {
            merge::runs_keys(s, &[a.words(), b.words(), c.words()], out.words_mut(), Liar::chosen())
        };
        "merge::small_runs_keys": (s; a = SORTED, b = HALF, c = SORTED, out = OUT_OF_ALL) => {
            merge::small_runs_keys(s, &[a.words(), b.words(), c.words()], out.words_mut(), Liar::chosen())
        };
        "merge::small_runs_pairs": (
            s; a = SORTED, b = VALUES, c = HALF, d = HALF_VALUES, out = OUT_OF_BOTH, with = OUT_OF_BOTH
        ) => {
            let runs = [(a.words(), b.words()), (c.words(), d.words())];
            merge::small_runs_pairs(s, &runs, (out.words_mut(), with.words_mut()), Liar::chosen())
        };
        "merge::Splits": (s; a = SORTED, b = HALF) => {
            merge::Splits::find(s, a.words(), b.words(), Liar::chosen(), 100).map(drop)
        };
        "merge::RunsSplits": (s; a = SORTED, b = HALF) => {
            merge::RunsSplits::find(s, &[a.words(), b.words()], Liar::chosen(), 100).map(drop)
        };
        "merge_sort::keys": (s; a = KEYS, out = OUT) => {
            merge_sort::keys(s, a.words(), out.words_mut(), Liar::chosen())
        };
        "merge_sort::pairs": (s; a = KEYS, b = VALUES.odd(), out = OUT, with = OUT.odd()) => {
            merge_sort::pairs(s, (a.words(), b.odd()), (out.words_mut(), with.odd_mut()), Liar::chosen())
        };
        "sort::segmented_keys": (s; a = KEYS, offsets = OFFSETS, out = OUT) => {
            sort::segmented_keys(s, a.words(), offsets.words(), out.words_mut(), Liar::chosen())
        };
        "sort::segmented_pairs": (s; a = KEYS, b = VALUES.odd(), offsets = OFFSETS, out = OUT, with = OUT.odd()) => {
            let to = (out.words_mut(), with.odd_mut());
            sort::segmented_pairs(s, (a.words(), b.odd()), offsets.words(), to, Liar::chosen())
        };
        "sort::segmented_argsort": (s; a = KEYS, offsets = OFFSETS, out = OUT) => {
            sort::segmented_argsort(s, a.words(), offsets.words(), out.words_mut(), Liar::chosen())
        };
        "search::lower_bound": (s; a = SORTED, b = OTHERS, out = OUT) => {
            search::lower_bound(s, a.words(), b.words(), out.words_mut(), Liar::chosen())
        };
        "search::upper_bound": (s; a = SORTED, b = OTHERS, out = OUT) => {
            search::upper_bound(s, a.words(), b.words(), out.words_mut(), Liar::chosen())
        };
        "search::lower_bound_sorted": (s; a = SORTED, b = HALF, out = OUT_OF_HALF) => {
            search::lower_bound_sorted(s, a.words(), b.words(), out.words_mut(), Liar::chosen())
        };
        "search::upper_bound_sorted": (s; a = SORTED, b = HALF, out = OUT_OF_HALF) => {
            search::upper_bound_sorted(s, a.words(), b.words(), out.words_mut(), Liar::chosen())
        };
        "search::equal_range": (s; a = SORTED, b = OTHERS, from = OUT, to = OUT) => {
            search::equal_range(s, a.words(), b.words(), from.words_mut(), to.words_mut(), Liar::chosen())
        };
        "sets::union": (s; a = SORTED, b = HALF, out = OUT_OF_BOTH) => {
            sets::union(s, a.words(), b.words(), out.words_mut(), Liar::chosen())
        };
        "sets::intersection": (s; a = SORTED, b = HALF, out = OUT) => {
            sets::intersection(s, a.words(), b.words(), out.words_mut(), Liar::chosen())
        };
        "sets::difference": (s; a = SORTED, b = HALF, out = OUT) => {
            sets::difference(s, a.words(), b.words(), out.words_mut(), Liar::chosen())
        };
        "sets::symmetric_difference": (s; a = SORTED, b = HALF, out = OUT_OF_BOTH) => {
            sets::symmetric_difference(s, a.words(), b.words(), out.words_mut(), Liar::chosen())
        };
        "sets::union_pairs": (
            s; a = SORTED, b = VALUES, c = HALF, d = HALF_VALUES, out = OUT_OF_BOTH, with = OUT_OF_BOTH
        ) => {
            let to = (out.words_mut(), with.words_mut());
            sets::union_pairs(s, (a.words(), b.words()), (c.words(), d.words()), to, Liar::chosen())
        };
        "sets::intersection_pairs": (s; a = SORTED, b = VALUES, c = HALF, out = OUT, with = OUT) => {
            let to = (out.words_mut(), with.words_mut());
            sets::intersection_pairs(s, (a.words(), b.words()), c.words(), to, Liar::chosen())
        };
    }
}

fn equalities() -> Vec<Row> {
    rows! {
        "runs::unique": (s; a = RUNS, out = OUT) => runs::unique(s, a.words(), out.words_mut(), Liar::chosen());
        "runs::unique_last": (s; a = RUNS, out = OUT) => {
            runs::unique_last(s, a.words(), out.words_mut(), Liar::chosen())
        };
        "runs::unique_by_key": (s; a = RUNS, b = VALUES.odd(), out = OUT, with = OUT.odd()) => {
            let to = (out.words_mut(), with.odd_mut());
            runs::unique_by_key(s, (a.words(), b.odd()), to, Liar::chosen(), Which::Last)
        };
        "runs::run_length_encode": (s; a = RUNS, out = OUT, lengths = OUT) => {
            runs::run_length_encode(s, a.words(), (out.words_mut(), lengths.words_mut()), Liar::chosen())
        };
        "runs::reduce_by_key": (s; a = RUNS, b = VALUES, out = OUT, sums = OUT) => {
            let lie = Liar::chosen();
            runs::reduce_by_key(s, (a.words(), b.words()), (out.words_mut(), sums.words_mut()), lie, lie)
        };
        "scan::inclusive_by_key": (s; keys = RUNS, a = KEYS, out = OUT) => {
            scan::inclusive_by_key(s, (keys.words(), a.words()), out.words_mut(), Liar::chosen(), Liar::chosen())
        };
        "scan::exclusive_by_key": (s; keys = RUNS, a = KEYS, out = OUT) => {
            scan::exclusive_by_key(s, (keys.words(), a.words()), out.words_mut(), Liar::chosen(), Liar::chosen(), 1)
        };
    }
}

fn monoids() -> Vec<Row> {
    rows! {
        "reduce::reduce": (s; a = KEYS) => reduce::reduce(s, a.words(), Liar::chosen());
        "reduce::segmented": (s; a = KEYS, offsets = OFFSETS, out = OUT_OF_THREE) => {
            reduce::segmented(s, a.words(), offsets.words(), out.words_mut(), Liar::chosen())
        };
        "scan::inclusive": (s; a = KEYS, out = OUT) => scan::inclusive(s, a.words(), out.words_mut(), Liar::chosen());
        "scan::exclusive_in_place": (s; data = KEYS.changed()) => {
            scan::exclusive_in_place(s, data.words_mut(), Liar::chosen(), 3)
        };
        "scan::segmented_inclusive": (s; a = KEYS, offsets = OFFSETS, out = OUT) => {
            scan::segmented_inclusive(s, a.words(), offsets.words(), out.words_mut(), Liar::chosen())
        };
        "scan::segmented_exclusive": (s; a = KEYS, offsets = OFFSETS, out = OUT) => {
            scan::segmented_exclusive(s, a.words(), offsets.words(), out.words_mut(), Liar::chosen())
        };
    }
}

fn choices() -> Vec<Row> {
    rows! {
        "select::select": (s; a = KEYS, out = OUT) => select::select(s, a.words(), out.words_mut(), Liar::chosen());
        "select::select_pairs": (s; a = KEYS, b = VALUES.odd(), out = OUT, with = OUT.odd()) => {
            select::select_pairs(s, (a.words(), b.odd()), (out.words_mut(), with.odd_mut()), Liar::chosen())
        };
        "select::partition": (s; a = KEYS, out = OUT) => {
            select::partition(s, a.words(), out.words_mut(), Liar::chosen())
        };
        "select::partition_pairs": (s; a = KEYS, b = VALUES, out = OUT, with = OUT) => {
            select::partition_pairs(s, (a.words(), b.words()), (out.words_mut(), with.words_mut()), Liar::chosen())
        };
        "select::segmented": (s; a = KEYS, offsets = OFFSETS, out = OUT) => {
            select::segmented(s, a.words(), offsets.words(), out.words_mut(), Liar::chosen())
        };
        "select::segmented_pairs": (s; a = KEYS, b = VALUES, offsets = OFFSETS.longs(), out = OUT, with = OUT) => {
            let to = (out.words_mut(), with.words_mut());
            select::segmented_pairs(s, (a.words(), b.words()), offsets.longs(), to, Liar::chosen())
        };
        "multisplit::keys": (s; a = KEYS, out = OUT) => {
            multisplit::keys(s, a.words(), out.words_mut(), 16, Liar::chosen())
        };
        "multisplit::pairs": (s; a = KEYS, b = VALUES.odd(), out = OUT, with = OUT.odd()) => {
            multisplit::pairs(s, (a.words(), b.odd()), (out.words_mut(), with.odd_mut()), 16, Liar::chosen())
        };
        "multisplit::keys of another size": (s; a = KEYS, out = OUT) => {
            multisplit::keys(s, untrue(a), untrue_mut(out), 200, Liar::chosen())
        };
        "histogram::by": (s; a = KEYS, out = OUT_OF_BINS) => {
            histogram::by(s, a.words(), out.words_mut(), Liar::chosen())
        };
        "histogram::even": (s; a = KEYS, out = OUT_OF_BINS) => {
            histogram::even(s, untrue(a), out.words_mut(), Untrue::new(0), Untrue::new(9))
        };
        "histogram::ranges": (s; a = KEYS, levels = LEVELS, out = OUT_OF_BINS) => {
            histogram::ranges(s, untrue(a), out.words_mut(), untrue(levels))
        };
    }
}

/// Functions of elements, and sources of which calls read more than once: indices, lengths, flags.
fn functions() -> Vec<Row> {
    rows! {
        "transform::map_in_place": (s; data = KEYS.changed()) => transform::map_in_place(s, data.words_mut(), Liar::chosen());
        "transform::map": (s; a = KEYS, out = OUT) => transform::map(s, a.words(), out.words_mut(), Liar::chosen());
        "transform::map2": (s; a = KEYS, out = OUT) => {
            transform::map2(s, a.words(), lied_about(a), out.words_mut(), Liar::chosen())
        };
        "source::map2": (s; a = KEYS, b = OTHERS) => reduce::sum(s, map2(a.words(), b.words(), Liar::chosen()));
        "source::map3": (s; a = KEYS, b = OTHERS) => {
            reduce::sum(s, map3(a.words(), b.words(), a.words(), Liar::chosen()))
        };
        "source::map4": (s; a = KEYS, b = OTHERS) => {
            reduce::sum(s, map4(a.words(), b.words(), a.words(), b.words(), Liar::chosen()))
        };
        "source::counting": (s; out = OUT) => {
            let len = out.len();
            transform::write(s, counting(Untrue::new(7), len), untrue_mut(out))
        };
        "runs::adjacent_difference": (s; a = KEYS, out = OUT) => {
            runs::adjacent_difference(s, a.words(), out.words_mut(), Liar::chosen())
        };
        "runs::adjacent_difference_in_place": (s; data = KEYS.changed()) => {
            runs::adjacent_difference_in_place(s, data.words_mut(), Liar::chosen())
        };
        "permute::gather": (s; a = VALUES, places = PLACES, out = OUT) => {
            permute::gather(s, a.words(), lied_about(places), out.words_mut())
        };
        "permute::scatter": (s; a = VALUES, places = PLACES, out = OUT) => {
            permute::scatter(s, a.words(), lied_about(places), out.words_mut())
        };
        "permute::scatter, odd": (s; a = VALUES.odd(), places = PLACES, out = OUT.odd()) => {
            permute::scatter(s, a.odd(), lied_about(places), out.odd_mut())
        };
        "runs::run_length_decode": (s; a = HALF, lengths = LENGTHS, out = OUT) => {
            runs::run_length_decode(s, (a.words(), lied_about(lengths)), out.words_mut())
        };
        "runs::run_length_encode of a source": (s; a = RUNS, out = OUT, lengths = OUT) => {
            runs::run_length_encode(s, lied_about(a), (out.words_mut(), lengths.words_mut()), Liar::chosen())
        };
        "runs::reduce_by_key of sources": (s; a = RUNS, b = VALUES, out = OUT, sums = OUT) => {
            let lie = Liar::chosen();
            runs::reduce_by_key(s, (lied_about(a), lied_about(b)), (out.words_mut(), sums.words_mut()), lie, lie)
        };
        "select::select of a source": (s; a = KEYS, out = OUT) => {
            select::select(s, lied_about(a), out.words_mut(), Liar::chosen())
        };
        "scan::exclusive of a source": (s; a = KEYS, out = OUT) => {
            scan::exclusive(s, lied_about(a), out.words_mut(), Liar::chosen(), 1)
        };
        "reduce::argmax of a source": (s; a = KEYS) => reduce::argmax(s, lied_about(a));
        "top_k::largest of a source": (s; a = KEYS, out = OUT_OF_TEN, places = OUT_OF_TEN) => {
            top_k::largest(s, lied_about(a), (out.words_mut(), places.words_mut()))
        };
        "top_k::smallest of a source, all": (s; a = KEYS, out = OUT, places = OUT.longs()) => {
            top_k::smallest(s, lied_about(a), (out.words_mut(), places.longs_mut()))
        };
        "top_k::segmented_largest of a source": (
            s; a = KEYS, offsets = OFFSETS, out = OUT_OF_ROWS, places = OUT_OF_ROWS
        ) => {
            let rows = Rows::at(offsets.words());
            top_k::segmented_largest(s, lied_about(a), rows, 10, (out.words_mut(), places.words_mut()))
        };
        "order_statistics::quantiles with positions, of a source": (s; a = KEYS, out = OUT_OF_TEN, places = OUT_OF_TEN) => {
            order_statistics::quantiles(s, lied_about(a), &TENTHS, (out.words_mut(), places.words_mut()))
        };
        "order_statistics::quantiles of a source, sorted": (s; a = KEYS, out = OUT) => {
            let fractions = vec![0.25; out.len()];
            order_statistics::quantiles(s, lied_about(a), &fractions, out.words_mut())
        };
        "order_statistics::segmented_quantiles of a source": (
            s; a = KEYS, offsets = OFFSETS, out = OUT_OF_ROWS, places = OUT_OF_ROWS
        ) => {
            let rows = Rows::at(offsets.words());
            order_statistics::segmented_quantiles(s, lied_about(a), rows, &TENTHS, (out.words_mut(), places.words_mut()))
        };
        "histogram::even of a source": (s; a = KEYS, out = OUT_OF_BINS) => {
            histogram::even(s, lied_about(a), out.words_mut(), 10, 4000)
        };
    }
}

fn codes() -> Vec<Row> {
    rows! {
        "sort::keys": (s; a = KEYS, out = OUT) => sort::keys(s, untrue(a), untrue_mut(out), Options::new());
        "sort::keys_in_place": (s; data = KEYS.changed()) => {
            sort::keys_in_place(s, untrue_mut(data), Options::new())
        };
        "sort::keys_double_buffered": (s; a = KEYS.spent(), b = OUT.spent()) => {
            sort::keys_double_buffered(s, untrue_mut(a), untrue_mut(b), Options::new())
        };
        "sort::pairs": (s; a = KEYS, b = VALUES.odd(), out = OUT, with = OUT.odd()) => {
            sort::pairs(s, (untrue(a), b.odd()), (untrue_mut(out), with.odd_mut()), Options::new().bits(3..20))
        };
        "sort::argsort": (s; a = KEYS) => sort::argsort(s, untrue(a), Options::new());
        "sort::encode": (s; a = KEYS, out = OUT) => sort::encode(s, untrue(a), out.words_mut());
        "sort::decode": (s; a = KEYS, out = OUT) => sort::decode(s, a.words(), untrue_mut(out));
        "sort::keys_by": (s; a = KEYS, out = OUT) => {
            sort::keys_by(s, a.words(), out.words_mut(), Liar::chosen(), Options::new())
        };
        "sort::pairs_by": (s; a = KEYS, b = VALUES, out = OUT, with = OUT) => {
            let to = (out.words_mut(), with.words_mut());
            sort::pairs_by(s, (a.words(), b.words()), to, Liar::chosen(), Options::new())
        };
        "top_k::largest": (s; a = KEYS, out = OUT_OF_TEN, places = OUT_OF_TEN) => {
            top_k::largest(s, untrue(a), (untrue_mut(out), places.words_mut()))
        };
        "top_k::smallest, all": (s; a = KEYS, out = OUT, places = OUT) => {
            top_k::smallest(s, untrue(a), (untrue_mut(out), places.words_mut()))
        };
        "top_k::segmented_smallest": (s; a = KEYS, offsets = OFFSETS, out = OUT_OF_ROWS, places = OUT_OF_ROWS) => {
            let rows = Rows::at(offsets.words());
            top_k::segmented_smallest(s, untrue(a), rows, 10, (untrue_mut(out), places.words_mut()))
        };
        "order_statistics::quantiles": (s; a = KEYS, out = OUT_OF_TEN) => {
            order_statistics::quantiles(s, untrue(a), &TENTHS, untrue_mut(out))
        };
        "order_statistics::quantiles, sorted": (s; a = KEYS, out = OUT) => {
            let fractions = vec![0.25; out.len()];
            order_statistics::quantiles(s, untrue(a), &fractions, untrue_mut(out))
        };
        "order_statistics::segmented_quantiles": (s; a = KEYS, offsets = OFFSETS, out = OUT_OF_ROWS, places = OUT_OF_ROWS) => {
            let rows = Rows::at(offsets.words());
            order_statistics::segmented_quantiles(s, untrue(a), rows, &TENTHS, (untrue_mut(out), places.words_mut()))
        };
    }
}
