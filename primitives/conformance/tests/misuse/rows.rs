//! The rows of the table.

use super::memory::Memory;
use super::table::*;
use gpu_primitives::compare::Less;
use gpu_primitives::equality::Same;
use gpu_primitives::multisplit::Shift;
use gpu_primitives::operator::{bucket, equality, map, predicate, sort_by};
use gpu_primitives::reduce::Sum;
use gpu_primitives::runs::Which;
use gpu_primitives::sort::{Options, Side, SortColumn, SortedRuns};
use gpu_primitives::source::{constant, counted, counting, map, map2, map3, map4};
use gpu_primitives::top_k::Rows;
use gpu_primitives::{
    DeviceSlice, DeviceValue, histogram, merge, merge_sort, multisplit, order_statistics, permute, ranges, reduce,
    runs, scan, search, select, sets, sort, top_k, transfer, transform,
};

/// Returns all rows.
pub fn all() -> Vec<Row> {
    [element_by_element(), scans(), moves(), selections(), run_lengths(), sorts(), merges(), searches()]
        .into_iter()
        .flatten()
        .collect()
}

fn element_by_element() -> Vec<Row> {
    rows! {
        "transfer::copy": (s; a = KEYS, out = OUT) => transfer::copy(s, a.words(), out.words_mut());
        "transfer::copy, odd": (s; a = KEYS.odd(), out = OUT.odd()) => transfer::copy(s, a.odd(), out.odd_mut());
        "transfer::fill": (s; out = OUT) => transfer::fill(s, out.words_mut(), 7);
        "transfer::fill, odd": (s; out = OUT.odd()) => transfer::fill(s, out.odd_mut(), [1, 2, 3]);
        "transfer::fill, bytes": (s; out = OUT.bytes()) => transfer::fill(s, out.bytes_mut(), 9);
        "DeviceSliceMut::copy_from": (s; a = KEYS, out = OUT) => out.words_mut().copy_from(s, a.words());
        "DeviceSliceMut::copy_from_host": (s; out = OUT) => {
            let numbers = vec![5; out.len()];
            out.words_mut().copy_from_host(s, &numbers)
        };
        "transform::map_in_place": (s; data = KEYS.changed()) => {
            transform::map_in_place(s, data.words_mut(), map!(|x: u32| -> u32 { x ^ 21 }))
        };
        "transform::map": (s; a = KEYS, out = OUT) => {
            transform::map(s, a.words(), out.words_mut(), map!(|x: u32| -> u32 { x * 3 }))
        };
        "transform::map2": (s; a = KEYS, b = OTHERS, out = OUT) => {
            transform::map2(s, a.words(), b.words(), out.words_mut(), map!(|x: u32, y: u32| -> u32 { x - y }))
        };
        "transform::map3": (s; a = KEYS, b = OTHERS, c = VALUES, out = OUT) => {
            let f = map!(|x: u32, y: u32, z: u32| -> u32 { x - y + z });
            transform::map3(s, a.words(), b.words(), c.words(), out.words_mut(), f)
        };
        "transform::map4": (s; a = KEYS, b = OTHERS, c = VALUES, d = SORTED, out = OUT) => {
            let f = map!(|x: u32, y: u32, z: u32, w: u32| -> u32 { x - y + z - w });
            transform::map4(s, a.words(), b.words(), c.words(), d.words(), out.words_mut(), f)
        };
        "transform::sequence": (s; out = OUT) => transform::sequence(s, out.words_mut(), 3);
        "transform::write": (s; a = KEYS.odd(), out = OUT.odd()) => transform::write(s, a.odd(), out.odd_mut());
        "source::constant": (s; out = OUT) => {
            let len = out.len();
            transform::write(s, constant(9u32, len), out.words_mut())
        };
        "source::counting": (s; out = OUT) => {
            let len = out.len();
            transform::write(s, counting(9u32, len), out.words_mut())
        };
        "source::counted": (s; a = KEYS) => {
            let count = DeviceValue::new(s, 20)?;
            reduce::sum(s, counted(a.words(), &count))
        };
        "source::map": (s; a = KEYS) => reduce::sum(s, map(a.words(), map!(|x: u32| -> u32 { x + 1 })));
        "source::map2": (s; a = KEYS, b = OTHERS) => {
            reduce::sum(s, map2(a.words(), b.words(), map!(|x: u32, y: u32| -> u32 { x * y })))
        };
        "source::map3": (s; a = KEYS, b = OTHERS, c = VALUES) => {
            let f = map!(|x: u32, y: u32, z: u32| -> u32 { x * y - z });
            reduce::sum(s, map3(a.words(), b.words(), c.words(), f))
        };
        "source::map4": (s; a = KEYS, b = OTHERS, c = VALUES, d = SORTED) => {
            let f = map!(|x: u32, y: u32, z: u32, w: u32| -> u32 { x * y - z * w });
            reduce::sum(s, map4(a.words(), b.words(), c.words(), d.words(), f))
        };
        "histogram::by": (s; a = KEYS, out = OUT_OF_BINS) => {
            histogram::by(s, a.words(), out.words_mut(), bucket!(|x: u32| x % 5))
        };
        "histogram::bincount": (s; a = KEYS, out = OUT_OF_BINS) => histogram::bincount(s, a.words(), out.words_mut());
        "histogram::bytes": (s; a = KEYS.bytes(), out = OUT_OF_BYTES) => {
            histogram::bytes(s, a.bytes(), out.words_mut())
        };
        "histogram::even": (s; a = KEYS, out = OUT_OF_BINS.longs()) => {
            histogram::even(s, a.words(), out.longs_mut(), 10, 4000)
        };
        "histogram::ranges": (s; a = KEYS, levels = LEVELS, out = OUT_OF_BINS) => {
            histogram::ranges(s, a.words(), out.words_mut(), levels.words())
        };
    }
}

fn scans() -> Vec<Row> {
    rows! {
        "reduce::reduce": (s; a = KEYS) => reduce::reduce(s, a.words(), reduce::Max);
        "reduce::sum": (s; a = KEYS) => reduce::sum(s, a.words());
        "reduce::argmin": (s; a = KEYS) => reduce::argmin(s, a.words());
        "reduce::argmax": (s; a = KEYS) => reduce::argmax(s, a.words());
        "reduce::min_max": (s; a = KEYS) => {
            let both = reduce::min_max(s, a.words())?;
            reduce::sum(s, map(both.as_slice(), map!(|x: [u32; 2]| -> u32 { x[0] ^ x[1] })))
        };
        "reduce::find_first": (s; a = KEYS) => reduce::find_first(s, a.words(), predicate!(|x: u32| x % 7 == 3));
        "reduce::any": (s; a = KEYS) => {
            let any = reduce::any(s, a.words(), predicate!(|x: u32| x % 7 == 3))?;
            reduce::sum(s, map(any.as_slice(), map!(|x: u8| -> u32 { x as u32 })))
        };
        "reduce::all": (s; a = KEYS) => {
            let all = reduce::all(s, a.words(), predicate!(|x: u32| x % 7 == 3))?;
            reduce::sum(s, map(all.as_slice(), map!(|x: u8| -> u32 { x as u32 })))
        };
        "reduce::count_if": (s; a = KEYS) => reduce::count_if(s, a.words(), predicate!(|x: u32| x % 7 == 3));
        "reduce::segmented": (s; a = KEYS, offsets = OFFSETS, out = OUT_OF_THREE) => {
            reduce::segmented(s, a.words(), offsets.words(), out.words_mut(), Sum)
        };
        "reduce::segmented, long offsets": (s; a = KEYS, offsets = OFFSETS.longs(), out = OUT_OF_THREE) => {
            reduce::segmented(s, a.words(), offsets.longs(), out.words_mut(), Sum)
        };
        "scan::exclusive": (s; a = KEYS, out = OUT) => scan::exclusive(s, a.words(), out.words_mut(), Sum, 5);
        "scan::exclusive_by_key": (s; keys = RUNS, a = KEYS, out = OUT) => {
            scan::exclusive_by_key(s, (keys.words(), a.words()), out.words_mut(), Same, Sum, 5)
        };
        "scan::exclusive_in_place": (s; data = KEYS.changed()) => scan::exclusive_in_place(s, data.words_mut(), Sum, 5);
        "scan::exclusive_sum": (s; a = KEYS, out = OUT) => scan::exclusive_sum(s, a.words(), out.words_mut());
        "scan::inclusive": (s; a = KEYS, out = OUT) => scan::inclusive(s, a.words(), out.words_mut(), Sum);
        "scan::inclusive_by_key": (s; keys = RUNS, a = KEYS, out = OUT) => {
            scan::inclusive_by_key(s, (keys.words(), a.words()), out.words_mut(), Same, Sum)
        };
        "scan::inclusive_in_place": (s; data = KEYS.changed()) => scan::inclusive_in_place(s, data.words_mut(), Sum);
        "scan::inclusive_sum": (s; a = KEYS, out = OUT) => scan::inclusive_sum(s, a.words(), out.words_mut());
        "scan::segmented_exclusive": (s; a = KEYS, offsets = OFFSETS, out = OUT) => {
            scan::segmented_exclusive(s, a.words(), offsets.words(), out.words_mut(), Sum)
        };
        "reduce::rows": (s; a = KEYS, out = OUT) => reduce::rows(s, a.words(), 1, out.words_mut(), Sum);
        "scan::row_exclusive": (s; a = KEYS, out = OUT) => {
            let row = a.len();
            scan::row_exclusive(s, a.words(), row, out.words_mut(), Sum)
        };
        "scan::row_inclusive": (s; a = KEYS, out = OUT) => scan::row_inclusive(s, a.words(), 1, out.words_mut(), Sum);
        "scan::segmented_inclusive": (s; a = KEYS, offsets = OFFSETS, out = OUT) => {
            scan::segmented_inclusive(s, a.words(), offsets.words(), out.words_mut(), Sum)
        };
    }
}

fn moves() -> Vec<Row> {
    rows! {
        "permute::gather": (s; a = VALUES, places = PLACES, out = OUT) => {
            permute::gather(s, a.words(), places.words(), out.words_mut())
        };
        "permute::gather, odd": (s; a = VALUES.odd(), places = PLACES, out = OUT.odd()) => {
            permute::gather(s, a.odd(), places.words(), out.odd_mut())
        };
        "permute::scatter": (s; a = VALUES, places = PLACES, out = OUT) => {
            permute::scatter(s, a.words(), places.words(), out.words_mut())
        };
        "permute::batched_copy": (s; a = VALUES, starts = STARTS.longs(), offsets = OFFSETS.longs(), out = OUT) => {
            permute::batched_copy(s, a.words(), starts.longs(), out.words_mut(), offsets.longs())
        };
        "ranges::copy": (
            s; a = VALUES, starts = STARTS.longs(), places = PLACES_OF_RANGES.longs(), lengths = LENGTHS_OF_RANGES.longs(), out = OUT
        ) => {
            ranges::copy(s, a.words(), starts.longs(), out.words_mut(), places.longs(), lengths.longs())
        };
        "permute::rotate": (s; a = VALUES, out = OUT) => permute::rotate(s, a.words(), out.words_mut(), 5);
        "permute::shift": (s; a = VALUES, out = OUT) => permute::shift(s, a.words(), out.words_mut(), -5, 3);
        "permute::reverse": (s; a = VALUES, out = OUT) => permute::reverse(s, a.words(), out.words_mut());
        "permute::reverse_in_place": (s; data = VALUES.odd().changed()) => permute::reverse_in_place(s, data.odd_mut());
        "multisplit::group_offsets": (s; a = KEYS, out = OUT_OF_BINS) => {
            multisplit::group_offsets(s, a.words(), out.words_mut())
        };
        "multisplit::group_by": (s; a = KEYS) => multisplit::group_by(s, a.words(), 16).map(|groups| groups.positions);
        "multisplit::group_by, many": (s; a = KEYS) => {
            multisplit::group_by(s, a.words(), 3000).map(|groups| groups.offsets)
        };
        "multisplit::keys": (s; a = KEYS, out = OUT) => {
            multisplit::keys(s, a.words(), out.words_mut(), 16, Shift::by(9))
        };
        "multisplit::pairs": (s; a = KEYS, b = VALUES, out = OUT, with = OUT) => {
            multisplit::pairs(s, (a.words(), b.words()), (out.words_mut(), with.words_mut()), 16, Shift::by(9))
        };
        "multisplit::pairs, odd": (s; a = KEYS, b = VALUES.odd(), out = OUT, with = OUT.odd()) => {
            multisplit::pairs(s, (a.words(), b.odd()), (out.words_mut(), with.odd_mut()), 16, Shift::by(9))
        };
    }
}

fn selections() -> Vec<Row> {
    rows! {
        "select::select": (s; a = KEYS, out = OUT) => {
            select::select(s, a.words(), out.words_mut(), predicate!(|x: u32| x % 3 == 1))
        };
        "select::select_pairs": (s; a = KEYS, b = VALUES.odd(), out = OUT, with = OUT.odd()) => {
            let pairs = (out.words_mut(), with.odd_mut());
            select::select_pairs(s, (a.words(), b.odd()), pairs, predicate!(|x: u32| x % 3 == 1))
        };
        "select::partition": (s; a = KEYS, out = OUT) => {
            select::partition(s, a.words(), out.words_mut(), predicate!(|x: u32| x % 3 == 1))
        };
        "select::partition_pairs": (s; a = KEYS, b = VALUES, out = OUT, with = OUT) => {
            let pairs = (out.words_mut(), with.words_mut());
            select::partition_pairs(s, (a.words(), b.words()), pairs, predicate!(|x: u32| x % 3 == 1))
        };
        "select::flagged": (s; a = KEYS, flags = FLAGS.bytes(), out = OUT) => {
            select::flagged(s, a.words(), flags.bytes(), out.words_mut())
        };
        "select::flagged_pairs": (s; a = KEYS, b = VALUES, flags = FLAGS.bytes(), out = OUT, with = OUT) => {
            select::flagged_pairs(s, (a.words(), b.words()), flags.bytes(), (out.words_mut(), with.words_mut()))
        };
        "select::segmented": (s; a = KEYS, offsets = OFFSETS, out = OUT) => {
            select::segmented(s, a.words(), offsets.words(), out.words_mut(), predicate!(|x: u32| x % 3 == 1))
        };
        "select::segmented_pairs": (s; a = KEYS, b = VALUES, offsets = OFFSETS.longs(), out = OUT, with = OUT) => {
            let pairs = (out.words_mut(), with.words_mut());
            select::segmented_pairs(s, (a.words(), b.words()), offsets.longs(), pairs, predicate!(|x: u32| x % 3 == 1))
        };
    }
}

fn run_lengths() -> Vec<Row> {
    rows! {
        "runs::unique": (s; a = RUNS, out = OUT) => runs::unique(s, a.words(), out.words_mut(), Same);
        "runs::distinct": (s; a = KEYS, out = OUT) => runs::distinct(s, a.words(), out.words_mut());
        "runs::distinct_counts": (s; a = KEYS, out = OUT, with = OUT) => {
            runs::distinct_counts(s, a.words(), (out.words_mut(), with.words_mut()))
        };
        "runs::distinct_inverse": (s; a = KEYS, out = OUT, with = OUT) => {
            runs::distinct_inverse(s, a.words(), (out.words_mut(), with.words_mut()))
        };
        "runs::unique_last": (s; a = RUNS, out = OUT) => runs::unique_last(s, a.words(), out.words_mut(), Same);
        "runs::unique, odd": (s; a = RUNS.odd(), out = OUT.odd()) => {
            let same = equality!(|a: [u8; 3], b: [u8; 3]| a == b);
            runs::unique(s, a.odd(), out.odd_mut(), same)
        };
        "runs::unique_by_key": (s; a = RUNS, b = VALUES, out = OUT, with = OUT) => {
            let pairs = (out.words_mut(), with.words_mut());
            runs::unique_by_key(s, (a.words(), b.words()), pairs, Same, Which::Last)
        };
        "runs::run_length_encode": (s; a = RUNS, out = OUT, lengths = OUT) => {
            runs::run_length_encode(s, a.words(), (out.words_mut(), lengths.words_mut()), Same)
        };
        "runs::run_length_decode": (s; a = HALF, lengths = LENGTHS, out = OUT) => {
            runs::run_length_decode(s, (a.words(), lengths.words()), out.words_mut())
        };
        "runs::reduce_by_key": (s; a = RUNS, b = VALUES, out = OUT, sums = OUT) => {
            runs::reduce_by_key(s, (a.words(), b.words()), (out.words_mut(), sums.words_mut()), Same, Sum)
        };
        "runs::adjacent_difference": (s; a = KEYS, out = OUT) => {
            runs::adjacent_difference(s, a.words(), out.words_mut(), map!(|x: u32, y: u32| -> u32 { x - y }))
        };
        "runs::adjacent_difference_in_place": (s; data = KEYS.changed()) => {
            runs::adjacent_difference_in_place(s, data.words_mut(), map!(|x: u32, y: u32| -> u32 { x - y }))
        };
    }
}

fn sorts() -> Vec<Row> {
    rows! {
        "sort::keys": (s; a = KEYS, out = OUT) => sort::keys(s, a.words(), out.words_mut(), Options::new());
        "sort::keys_in_place": (s; data = KEYS.changed()) => sort::keys_in_place(s, data.words_mut(), Options::new());
        "sort::keys_by": (s; a = KEYS, out = OUT) => {
            sort::keys_by(s, a.words(), out.words_mut(), sort_by!(|x: u32| -> u32 { x % 100 }), Options::new())
        };
        "sort::keys_double_buffered": (s; a = KEYS.spent(), b = OUT.spent(), out = OUT) => {
            sort::keys_double_buffered(s, a.words_mut(), b.words_mut(), Options::new())
                .and_then(|side| transfer::copy(s, if side == Side::First { a } else { b }.words(), out.words_mut()))
        };
        "sort::pairs": (s; a = KEYS, b = VALUES, out = OUT, with = OUT) => {
            sort::pairs(s, (a.words(), b.words()), (out.words_mut(), with.words_mut()), Options::new().descending())
        };
        "sort::pairs, odd": (s; a = KEYS, b = VALUES.odd(), out = OUT, with = OUT.odd()) => {
            sort::pairs(s, (a.words(), b.odd()), (out.words_mut(), with.odd_mut()), Options::new())
        };
        "sort::pairs_in_place": (s; a = KEYS.changed(), b = VALUES.changed()) => {
            sort::pairs_in_place(s, (a.words_mut(), b.words_mut()), Options::new())
        };
        "sort::pairs_by": (s; a = KEYS, b = VALUES, out = OUT, with = OUT) => {
            let by = sort_by!(|x: u32| -> u64 { (x % 100) as u64 });
            sort::pairs_by(s, (a.words(), b.words()), (out.words_mut(), with.words_mut()), by, Options::new())
        };
        "sort::pairs_double_buffered": (
            s; a = KEYS.spent(), b = VALUES.spent(), c = OUT.spent(), d = OUT.spent(), out = OUT
        ) => {
            let (first, second) = ((a.words_mut(), b.words_mut()), (c.words_mut(), d.words_mut()));
            sort::pairs_double_buffered(s, first, second, Options::new())
                .and_then(|side| transfer::copy(s, if side == Side::First { b } else { d }.words(), out.words_mut()))
        };
        "sort::argsort": (s; a = KEYS) => sort::argsort(s, a.words(), Options::new());
        "sort::rank": (s; a = KEYS) => sort::rank(s, a.words(), Options::new());
        "sort::by_columns": (s; a = KEYS, b = VALUES) => {
            sort::by_columns(s, &[SortColumn::new(a.words()), SortColumn::new(b.words()).descending()])
        };
        "sort::encode": (s; a = KEYS, out = OUT) => sort::encode(s, a.words(), out.words_mut());
        "sort::decode": (s; a = KEYS, out = OUT) => sort::decode(s, a.words(), out.words_mut());
        "sort::SortedRuns": (s; a = KEYS, b = VALUES) => SortedRuns::new(s, a.words(), b.words(), 16).map(drop);
        "sort::pairs_in_place, counted": (s; a = KEYS.bytes().changed(), b = VALUES.changed()) => {
            let count = DeviceValue::new(s, 1 << 40)?;
            sort::pairs_in_place(s, (counted(a.bytes_mut(), &count), b.words_mut()), Options::new())
        };
        "sort::row_keys": (s; a = KEYS, out = OUT) => {
            let row = a.len();
            sort::row_keys(s, a.words(), row, out.words_mut(), Options::new())
        };
        "sort::row_pairs": (s; a = KEYS, b = VALUES.odd(), out = OUT, with = OUT.odd()) => {
            let row = a.len();
            sort::row_pairs(s, (a.words(), b.odd()), row, (out.words_mut(), with.odd_mut()), Options::new())
        };
        "sort::row_keys_in_place": (s; data = KEYS.changed()) => {
            let row = data.len();
            sort::row_keys_in_place(s, data.words_mut(), row, Options::new())
        };
        "sort::row_pairs_in_place": (s; a = KEYS.changed(), b = VALUES.odd().changed()) => {
            let row = a.len();
            sort::row_pairs_in_place(s, (a.words_mut(), b.odd_mut()), row, Options::new())
        };
        "runs::distinct_counts_hashed": (s; a = KEYS, out = OUT, counts = OUT) => {
            runs::distinct_counts_hashed(s, a.words(), (out.words_mut(), counts.words_mut()), 5000).map(drop)
        };
        "merge_sort::keys": (s; a = KEYS, out = OUT) => merge_sort::keys(s, a.words(), out.words_mut(), Less);
        "merge_sort::keys_in_place": (s; data = KEYS.changed()) => merge_sort::keys_in_place(s, data.words_mut(), Less);
        "merge_sort::pairs": (s; a = KEYS, b = VALUES.odd(), out = OUT, with = OUT.odd()) => {
            merge_sort::pairs(s, (a.words(), b.odd()), (out.words_mut(), with.odd_mut()), Less)
        };
        "merge_sort::pairs_in_place, odd": (s; a = KEYS.changed(), b = VALUES.odd().changed()) => {
            merge_sort::pairs_in_place(s, (a.words_mut(), b.odd_mut()), Less)
        };
        "merge_sort::pairs_in_place": (s; a = KEYS.changed(), b = VALUES.changed()) => {
            merge_sort::pairs_in_place(s, (a.words_mut(), b.words_mut()), Less)
        };
        "sort::segmented_keys": (s; a = KEYS, offsets = OFFSETS, out = OUT) => {
            sort::segmented_keys(s, a.words(), offsets.words(), out.words_mut(), Less)
        };
        "sort::segmented_keys_in_place": (s; data = KEYS.changed(), offsets = OFFSETS) => {
            sort::segmented_keys_in_place(s, data.words_mut(), offsets.words(), Less)
        };
        "sort::segmented_pairs": (s; a = KEYS, b = VALUES.odd(), offsets = OFFSETS, out = OUT, with = OUT.odd()) => {
            let pairs = (out.words_mut(), with.odd_mut());
            sort::segmented_pairs(s, (a.words(), b.odd()), offsets.words(), pairs, Less)
        };
        "sort::segmented_pairs_in_place": (s; a = KEYS.changed(), b = VALUES.changed(), offsets = OFFSETS) => {
            sort::segmented_pairs_in_place(s, (a.words_mut(), b.words_mut()), offsets.words(), Less)
        };
        "sort::segmented_pairs_in_place, odd": (s; a = KEYS.changed(), b = VALUES.odd().changed(), offsets = OFFSETS) => {
            sort::segmented_pairs_in_place(s, (a.words_mut(), b.odd_mut()), offsets.words(), Less)
        };
        "sort::segmented_argsort": (s; a = KEYS, offsets = OFFSETS, out = OUT) => {
            sort::segmented_argsort(s, a.words(), offsets.words(), out.words_mut(), Less)
        };
        "top_k::largest": (s; a = KEYS, out = OUT_OF_TEN, places = OUT_OF_TEN) => {
            top_k::largest(s, a.words(), (out.words_mut(), places.words_mut()))
        };
        "top_k::smallest": (s; a = KEYS, out = OUT_OF_TEN, places = OUT_OF_TEN.longs()) => {
            top_k::smallest(s, a.words(), (out.words_mut(), places.longs_mut()))
        };
        "top_k::segmented_largest": (s; a = KEYS, offsets = OFFSETS, out = OUT_OF_ROWS, places = OUT_OF_ROWS) => {
            let rows = Rows::at(offsets.words());
            top_k::segmented_largest(s, a.words(), rows, 10, (out.words_mut(), places.words_mut()))
        };
        "top_k::segmented_smallest": (s; a = KEYS, out = OUT_OF_TEN, places = OUT_OF_TEN) => {
            let rows = Rows::of_len(a.len().max(1));
            top_k::segmented_smallest(s, a.words(), rows, 10, (out.words_mut(), places.words_mut()))
        };
        "order_statistics::select_kth": (s; a = KEYS, out = OUT_OF_TEN) => {
            order_statistics::select_kth(s, a.words(), &[0, 3, 9, 5, 0, 1, 2, 9, 4, 8], out.words_mut())
        };
        "order_statistics::quantiles with positions": (s; a = KEYS, out = OUT_OF_TEN, places = OUT_OF_TEN.longs()) => {
            order_statistics::quantiles(s, a.words(), &TENTHS, (out.words_mut(), places.longs_mut()))
        };
        "order_statistics::quantiles, sorted": (s; a = KEYS, out = OUT) => {
            let fractions = vec![0.25; out.len()];
            order_statistics::quantiles(s, a.words(), &fractions, out.words_mut())
        };
        "order_statistics::segmented_quantiles": (
            s; a = KEYS, offsets = OFFSETS, out = OUT_OF_ROWS, places = OUT_OF_ROWS
        ) => {
            let rows = Rows::at(offsets.words());
            order_statistics::segmented_quantiles(s, a.words(), rows, &TENTHS, (out.words_mut(), places.words_mut()))
        };
        "order_statistics::segmented_select_kth": (
            s; a = KEYS, offsets = OFFSETS, b = OFFSETS, out = OUT_OF_THREE, places = OUT_OF_THREE
        ) => {
            let (rows, ranks) = (Rows::at(offsets.words()), b.words().slice(..3.min(b.len())).unwrap());
            order_statistics::segmented_select_kth(s, a.words(), rows, ranks, (out.words_mut(), places.words_mut()))
        };
    }
}

/// Ten fractions.
pub(super) const TENTHS: [f64; 10] = [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 1.0];

/// The two sorted inputs of a merge of runs, with an empty one between them.
fn keys_of<'a>(a: &'a Memory, b: &'a Memory) -> [DeviceSlice<'a, u32>; 3] {
    [a.words(), a.words().slice(..0).unwrap(), b.words()]
}

/// The pairs of two sorted inputs.
fn pairs_of<'a>([a, b, c, d]: [&'a Memory; 4]) -> [(DeviceSlice<'a, u32>, DeviceSlice<'a, u32>); 2] {
    [(a.words(), b.words()), (c.words(), d.words())]
}

fn merges() -> Vec<Row> {
    rows! {
        "merge::keys": (s; a = SORTED, b = HALF, out = OUT_OF_BOTH) => {
            merge::keys(s, a.words(), b.words(), out.words_mut(), Less)
        };
        "merge::pairs": (
            s; a = SORTED, b = VALUES, c = HALF, d = HALF_VALUES, out = OUT_OF_BOTH, with = OUT_OF_BOTH
        ) => {
            let [first, second] = pairs_of([a, b, c, d]);
            merge::pairs(s, first, second, (out.words_mut(), with.words_mut()), Less)
        };
        "merge::runs_keys": (s; a = SORTED, b = HALF, out = OUT_OF_BOTH) => {
            merge::runs_keys(s, &keys_of(a, b), out.words_mut(), Less)
        };
        "merge::runs_pairs": (
            s; a = SORTED, b = VALUES, c = HALF, d = HALF_VALUES, out = OUT_OF_BOTH, with = OUT_OF_BOTH
        ) => merge::runs_pairs(s, &pairs_of([a, b, c, d]), (out.words_mut(), with.words_mut()), Less);
        "merge::small_runs_keys": (s; a = SORTED, b = HALF, out = OUT_OF_BOTH) => {
            merge::small_runs_keys(s, &keys_of(a, b), out.words_mut(), Less)
        };
        "merge::small_runs_pairs": (
            s; a = SORTED, b = VALUES, c = HALF, d = HALF_VALUES, out = OUT_OF_BOTH, with = OUT_OF_BOTH
        ) => merge::small_runs_pairs(s, &pairs_of([a, b, c, d]), (out.words_mut(), with.words_mut()), Less);
        "merge::Splits": (s; a = SORTED, b = HALF) => merge::Splits::find(s, a.words(), b.words(), Less, 100).map(drop);
        "merge::RunsSplits": (s; a = SORTED, b = HALF) => {
            merge::RunsSplits::find(s, &keys_of(a, b), Less, 100).map(drop)
        };
        "sets::union": (s; a = SORTED, b = HALF, out = OUT_OF_BOTH) => {
            sets::union(s, a.words(), b.words(), out.words_mut(), Less)
        };
        "sets::intersection": (s; a = SORTED, b = HALF, out = OUT) => {
            sets::intersection(s, a.words(), b.words(), out.words_mut(), Less)
        };
        "sets::difference": (s; a = SORTED, b = HALF, out = OUT) => {
            sets::difference(s, a.words(), b.words(), out.words_mut(), Less)
        };
        "sets::symmetric_difference": (s; a = SORTED, b = HALF, out = OUT_OF_BOTH) => {
            sets::symmetric_difference(s, a.words(), b.words(), out.words_mut(), Less)
        };
        "sets::union_pairs": (
            s; a = SORTED, b = VALUES, c = HALF, d = HALF_VALUES, out = OUT_OF_BOTH, with = OUT_OF_BOTH
        ) => {
            let [first, second] = pairs_of([a, b, c, d]);
            sets::union_pairs(s, first, second, (out.words_mut(), with.words_mut()), Less)
        };
        "sets::symmetric_difference_pairs": (
            s; a = SORTED, b = VALUES, c = HALF, d = HALF_VALUES, out = OUT_OF_BOTH, with = OUT_OF_BOTH
        ) => {
            let [first, second] = pairs_of([a, b, c, d]);
            sets::symmetric_difference_pairs(s, first, second, (out.words_mut(), with.words_mut()), Less)
        };
        "sets::intersection_pairs": (s; a = SORTED, b = VALUES, c = HALF, out = OUT, with = OUT) => {
            let to = (out.words_mut(), with.words_mut());
            sets::intersection_pairs(s, (a.words(), b.words()), c.words(), to, Less)
        };
        "sets::difference_pairs": (s; a = SORTED, b = VALUES, c = HALF, out = OUT, with = OUT) => {
            let to = (out.words_mut(), with.words_mut());
            sets::difference_pairs(s, (a.words(), b.words()), c.words(), to, Less)
        };
    }
}

fn searches() -> Vec<Row> {
    rows! {
        "search::lower_bound": (s; a = SORTED, b = OTHERS, out = OUT) => {
            search::lower_bound(s, a.words(), b.words(), out.words_mut(), Less)
        };
        "search::upper_bound": (s; a = SORTED, b = OTHERS, out = OUT.longs()) => {
            search::upper_bound(s, a.words(), b.words(), out.longs_mut(), Less)
        };
        "search::lower_bound_sorted": (s; a = SORTED, b = HALF, out = OUT_OF_HALF) => {
            search::lower_bound_sorted(s, a.words(), b.words(), out.words_mut(), Less)
        };
        "search::upper_bound_sorted": (s; a = SORTED, b = HALF, out = OUT_OF_HALF) => {
            search::upper_bound_sorted(s, a.words(), b.words(), out.words_mut(), Less)
        };
        "search::equal_range": (s; a = SORTED, b = OTHERS, from = OUT, to = OUT) => {
            search::equal_range(s, a.words(), b.words(), from.words_mut(), to.words_mut(), Less)
        };
    }
}
