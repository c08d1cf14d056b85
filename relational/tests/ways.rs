//! Groups and joins are found in different ways, by what the keys look like: the results are the same.

use gpu_primitives::operator::monoid;
use gpu_primitives::{CpuOptions, Device, Stream};
use gpu_relational::{Column, Groups, NO_ROW, Summable, agg, distinct, group_by, join, narrow};
use std::fmt::Debug;

/// Runs a test on the CPU device, which refuses what a GPU would refuse, and on the one that checks every access.
fn on_devices(test: impl Fn(&Stream, bool)) {
    let options = CpuOptions { only_with_ptx: true, ..CpuOptions::default() };
    test(&Device::cpu_with(options).stream().unwrap(), false);
    test(&Device::cpu_checked().stream().unwrap(), true);
}

/// Random numbers.
fn random(seed: u64) -> impl FnMut() -> u64 {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 11
    }
}

/// A column of random numbers, with nulls or without.
fn column<T: bytemuck::Pod>(stream: &Stream, len: usize, nulls: bool, mut number: impl FnMut() -> T) -> Column<T> {
    let mut is_some = random(len as u64 + 5);
    if nulls {
        let values: Vec<Option<T>> = (0..len).map(|_| (!is_some().is_multiple_of(3)).then(&mut number)).collect();
        Column::upload_optional(stream, &values).unwrap()
    } else {
        Column::upload(stream, &(0..len).map(|_| number()).collect::<Vec<_>>()).unwrap()
    }
}

/// Compares what two groupings of the same rows say of a column.
fn compare<T: Summable<Sum: Debug + PartialEq> + Debug + PartialEq>(
    stream: &Stream,
    (one, other): (&Groups, &Groups),
    column: &Column<T>,
) {
    let both = |of: &dyn Fn(&Groups) -> String| assert_eq!(of(one), of(other));
    both(&|groups| format!("{:?}", groups.sum(stream, column).unwrap().to_options(stream).unwrap()));
    both(&|groups| format!("{:?}", groups.mean(stream, column).unwrap().to_options(stream).unwrap()));
    both(&|groups| format!("{:?}", groups.count_valid(stream, column).unwrap().to_options(stream).unwrap()));
    both(&|groups| format!("{:?}", groups.min(stream, column).unwrap().to_options(stream).unwrap()));
    // All of them in one call.
    for groups in [one, other] {
        let several =
            (agg::sum(column), agg::mean(column), agg::min(column), agg::sum(column), agg::count_valid(column));
        let (sum, mean, min, again, count) = groups.agg(stream, several).unwrap();
        assert_eq!(sum.to_options(stream).unwrap(), groups.sum(stream, column).unwrap().to_options(stream).unwrap());
        assert_eq!(again.to_options(stream).unwrap(), sum.to_options(stream).unwrap());
        let both = |a: &dyn Debug, b: &dyn Debug| assert_eq!(format!("{a:?}"), format!("{b:?}"));
        both(&mean.to_options(stream).unwrap(), &groups.mean(stream, column).unwrap().to_options(stream).unwrap());
        assert_eq!(min.to_options(stream).unwrap(), groups.min(stream, column).unwrap().to_options(stream).unwrap());
        assert_eq!(count.to_vec(stream).unwrap(), groups.count_valid(stream, column).unwrap().to_vec(stream).unwrap());
    }
}

/// Groups of few numbers, which are not sorted, and of the same keys as 64-bit integers, which are.
#[test]
fn few_groups_are_like_many() {
    on_devices(|stream, checked| {
        // Numbers of up to 12 bits are few; those of a table of 256 for any number of rows.
        let shapes: &[(u64, usize)] = if checked {
            &[(5, 60)]
        } else {
            &[(1, 0), (1, 1), (255, 100), (257, 300), (4095, 5000), (4096, 5000), (4097, 9000)]
        };
        for (case, &(kinds, len)) in shapes.iter().enumerate() {
            for nulls in [false, true].into_iter().filter(|nulls| *nulls || !checked) {
                let mut next = random(case as u64 * 2 + u64::from(nulls) + 1);
                let numbers = column(stream, len, nulls, || {
                    // Small numbers are frequent, and the greatest one occurs.
                    let most = next() % kinds + 1;
                    if most == kinds { kinds - 1 } else { next() % most }
                });
                let host = numbers.to_options(stream).unwrap();
                let of_key = |key: u64| key as i64 * 2 - 77;
                let long: Vec<Option<i64>> = host.iter().map(|key| key.map(of_key)).collect();
                let short: Vec<Option<i16>> = host.iter().map(|key| key.map(|key| key as i16 - 9)).collect();
                let (long, short) =
                    (Column::upload_optional(stream, &long).unwrap(), Column::upload_optional(stream, &short).unwrap());
                let (few, many) = (group_by(stream, narrow(&short)).unwrap(), group_by(stream, &long).unwrap());
                let what = format!("{kinds} kinds of {len}, {nulls}");
                assert_eq!(few.rows().to_vec(stream).unwrap(), many.rows().to_vec(stream).unwrap(), "{what}");
                assert_eq!(
                    few.rows().to_vec(stream).unwrap(),
                    distinct(stream, &numbers).unwrap().to_vec(stream).unwrap()
                );
                let both = |of: &dyn Fn(&Groups) -> Vec<u64>| assert_eq!(of(&few), of(&many), "{what}");
                both(&|groups| groups.count(stream).unwrap().to_vec(stream).unwrap());

                let amounts = column(stream, len, nulls, || (next() as i64).wrapping_mul(4001));
                compare(stream, (&few, &many), &amounts);
                compare(stream, (&few, &many), &column(stream, len, nulls, || next() as u8));
                compare(stream, (&few, &many), &column(stream, len, nulls, || (next() << 11) as i32));
                compare(stream, (&few, &many), &column(stream, len, nulls, || u64::MAX - next()));
                compare(stream, (&few, &many), &column(stream, len, nulls, || next() as f64 / 1e3));
                compare(stream, (&few, &many), &column(stream, len, nulls, || i128::from(next()) << 60));
                let rows = |groups: &Groups| groups.group_of_rows(stream).unwrap().to_vec(stream).unwrap();
                assert_eq!(rows(&few), rows(&many), "{what}");
                let last = |groups: &Groups| groups.last_rows(stream).unwrap().to_vec(stream).unwrap();
                assert_eq!(last(&few), last(&many), "{what}");
                both(&|groups| groups.count_distinct(stream, &amounts).unwrap().to_vec(stream).unwrap());
                // The order of the rows is that of the table.
                let first = monoid!(exact; -1, |a: i64, b: i64| if a == -1 { b } else { a });
                let fold = |groups: &Groups| groups.fold(stream, &amounts, first).unwrap().to_options(stream).unwrap();
                assert_eq!(fold(&few), fold(&many), "{what}");
                let variance = |groups: &Groups| {
                    format!("{:?}", groups.variance(stream, &amounts, true).unwrap().to_options(stream).unwrap())
                };
                assert_eq!(variance(&few), variance(&many), "{what}");
            }
        }
    });
}

/// Groups of more numbers, which are counted in a table in global memory if none of them is frequent.
#[test]
fn a_table_in_memory_is_like_a_sort() {
    let options = CpuOptions { only_with_ptx: true, ..CpuOptions::default() };
    let stream = &Device::cpu_with(options).stream().unwrap();
    let len = 1 << 20;
    for frequent in [0, 3] {
        let mut next = random(frequent + 7);
        let numbers: Vec<i64> =
            (0..len).map(|i| if i % 4 < frequent { 77 } else { (next() >> 7) as i64 & 0xFFFF }).collect();
        let (sorted, keys) = (Column::upload(stream, &numbers).unwrap(), Column::upload(stream, &numbers).unwrap());
        let (one, other) = (group_by(stream, narrow(&keys)).unwrap(), group_by(stream, &sorted).unwrap());
        assert_eq!(one.rows().to_vec(stream).unwrap(), other.rows().to_vec(stream).unwrap());
        let counts = |groups: &Groups| groups.count(stream).unwrap().to_vec(stream).unwrap();
        assert_eq!(counts(&one), counts(&other));
        let amounts = column(stream, len as usize, true, || (next() as i64).wrapping_mul(4001));
        compare(stream, (&one, &other), &amounts);
        compare(stream, (&one, &other), &column(stream, len as usize, false, || next() as u32));
        let rows = |groups: &Groups| groups.group_of_rows(stream).unwrap().to_vec(stream).unwrap();
        assert_eq!(rows(&one), rows(&other));
        let last = |groups: &Groups| groups.last_rows(stream).unwrap().to_vec(stream).unwrap();
        assert_eq!(last(&one), last(&other));
    }
}

/// Right sides with unique keys, with duplicates, and with both, at the ends of the range of a key.
#[test]
fn joins_by_all_ways() {
    fn check<T>(stream: &Stream, left: &[T], right: &[T])
    where
        T: gpu_relational::Key + PartialEq + Debug,
    {
        let (mut inner, mut outer, mut with, mut without) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for (i, key) in (0u32..).zip(left) {
            let found = (0u32..).zip(right).filter(|(_, other)| *other == key).map(|(j, _)| (i, j));
            let before = inner.len();
            inner.extend(found);
            outer.extend_from_slice(&inner[before..]);
            if inner.len() == before {
                outer.push((i, NO_ROW));
                without.push(i);
            } else {
                with.push(i);
            }
        }
        let (a, b) = (Column::upload(stream, left).unwrap(), Column::upload(stream, right).unwrap());
        let pairs = |joined: join::Joined| -> Vec<(u32, u32)> {
            joined.left.to_vec(stream).unwrap().into_iter().zip(joined.right.to_vec(stream).unwrap()).collect()
        };
        let what = format!("{left:?}, {right:?}");
        for method in [join::Method::Auto, join::Method::Hash, join::Method::Sort] {
            let what = format!("{method:?}: {what}");
            let rows = |rows: gpu_relational::Rows| rows.to_vec(stream).unwrap();
            assert_eq!(pairs(method.inner(stream, &a, &b).unwrap()), inner, "{what}");
            assert_eq!(pairs(method.inner(stream, narrow(&a), &b).unwrap()), inner, "narrow: {what}");
            assert_eq!(pairs(method.left(stream, &a, &b).unwrap()), outer, "{what}");
            assert_eq!(pairs(method.left(stream, &a, narrow(&b)).unwrap()), outer, "narrow: {what}");
            assert_eq!(rows(method.semi(stream, &a, &b).unwrap()), with, "{what}");
            assert_eq!(rows(method.semi(stream, narrow(&a), &b).unwrap()), with, "narrow: {what}");
            assert_eq!(rows(method.anti(stream, &a, &b).unwrap()), without, "{what}");
            assert_eq!(rows(method.anti(stream, narrow(&a), &b).unwrap()), without, "narrow: {what}");
        }
    }
    on_devices(|stream, checked| {
        check(stream, &[0u32, u32::MAX, 5, 0, 7], &[u32::MAX, 0]);
        check(stream, &[0u64, u64::MAX, 5, 0, 7], &[u64::MAX, 0, 0]);
        if checked {
            return;
        }
        check(stream, &[0u32, 0], &[]);
        check::<u32>(stream, &[], &[0, 3]);
        check(stream, &[i64::MIN, -1, 0, i64::MAX], &[0, i64::MAX, i64::MIN, i64::MIN, 3]);
        let mut next = random(9);
        for (left, right, kinds) in [(500, 40, 50), (40, 500, 50), (300, 300, 1 << 30), (700, 700, 600)] {
            let left: Vec<u32> = (0..left).map(|_| (next() % kinds) as u32 * 3).collect();
            let right: Vec<u32> = (0..right).map(|_| (next() % kinds) as u32 * 3).collect();
            check(stream, &left, &right);
            let mut unique = right.clone();
            unique.sort_unstable_by_key(|key| key.wrapping_mul(0x9E37_79B1));
            unique.dedup();
            check(stream, &left, &unique);
            let long = |keys: &[u32]| -> Vec<i64> { keys.iter().map(|&key| i64::from(key) << 32).collect() };
            check(stream, &long(&left), &long(&unique));
            check(stream, &long(&left), &long(&right));
        }
    });
}
