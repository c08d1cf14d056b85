//! Random tables against plain Rust: on the CPU device, and on the one that checks every access.

use gpu_primitives::operator::{map, monoid, predicate};
use gpu_primitives::scan::Sum;
use gpu_primitives::source::map2;
use gpu_primitives::{CpuOptions, Device, Error, Stream};
use gpu_relational::{
    Column, Groups, NO_ROW, Rows, Strings, Text, Window, asc, desc, distinct, filter, group_by, join, sort_by, top_k,
};
use std::collections::BTreeMap;

/// The CPU device. It refuses what a GPU would refuse.
fn cpu() -> Device {
    Device::cpu_with(CpuOptions { only_with_ptx: true, ..CpuOptions::default() })
}

/// Runs a test on the devices, with the number of rows that suits each.
fn on_devices(test: impl Fn(&Stream, usize)) {
    test(&cpu().stream().unwrap(), 700);
    test(&Device::cpu_checked().stream().unwrap(), CHECKED);
}

/// The number of rows where every access is checked, which takes its time.
const CHECKED: usize = 40;

/// Random numbers.
fn random(seed: u64) -> impl FnMut(u64) -> u64 {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    move |below| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) % below
    }
}

type Row = (Option<i64>, Option<u16>, Option<&'static str>);

const WORDS: [&str; 5] = ["", "a", "ab", "b", "ba"];

/// A table of the shapes that break joins: `kinds` different keys, all equal, skewed, with nulls or without.
struct Table {
    rows: Vec<Row>,
    number: Column<i64>,
    small: Column<u16>,
    word: Strings,
}

impl Table {
    fn new(stream: &Stream, seed: u64, len: usize, kinds: u64, nulls: bool) -> Self {
        let mut next = random(seed);
        let rows: Vec<Row> = (0..len)
            .map(|_| {
                // Small numbers are frequent.
                let most = next(kinds) + 1;
                let number = next(most) as i64 * -1_000_000_007;
                let (small, word) = (next(2) as u16, WORDS[next(WORDS.len() as u64) as usize]);
                let mut is_some = || !nulls || next(5) > 0;
                (is_some().then_some(number), is_some().then_some(small), is_some().then_some(word))
            })
            .collect();
        let numbers: Vec<Option<i64>> = rows.iter().map(|row| row.0).collect();
        let small: Vec<Option<u16>> = rows.iter().map(|row| row.1).collect();
        let plain: Vec<i64> = numbers.iter().flatten().copied().collect();
        Self {
            number: if nulls { Column::upload_optional(stream, &numbers) } else { Column::upload(stream, &plain) }
                .unwrap(),
            small: Column::upload_optional(stream, &small).unwrap(),
            word: Strings::upload_optional(stream, rows.iter().map(|row| row.2)).unwrap(),
            rows,
        }
    }
}

/// The lengths of two tables, the number of different keys, and whether there are nulls.
fn shapes(len: usize) -> impl Iterator<Item = (usize, usize, u64, bool)> {
    [(len, len / 3, 20, true), (5, 0, 3, true), (0, 5, 1, false)]
        .into_iter()
        .chain([(0, 0, 1, true), (1, 1, 1, false), (33, 9, 1, true), (len / 10, len, 7, true)])
        .chain([(len, len / 3, 1 << 40, false)])
        .take(if len == CHECKED { 2 } else { 8 })
}

fn matches(a: &Row, b: &Row) -> bool {
    a.0.is_some() && a.1.is_some() && a.2.is_some() && a == b
}

#[test]
fn joins() {
    on_devices(|stream, len| {
        for (case, (left, right, kinds, nulls)) in shapes(len).enumerate() {
            let a = Table::new(stream, case as u64 + 1, left, kinds, nulls);
            let b = Table::new(stream, case as u64 + 100, right, kinds, nulls);
            let mut expected = Vec::new();
            let (mut single, mut outer) = (Vec::new(), Vec::new());
            for (i, row) in (0u32..).zip(&a.rows) {
                let found: Vec<u32> =
                    (0..).zip(&b.rows).filter(|(_, other)| matches(row, other)).map(|(j, _)| j).collect();
                expected.extend(found.iter().map(|&j| (i, j)));
                outer.extend(found.iter().map(|&j| (i, j)));
                if found.is_empty() {
                    outer.push((i, NO_ROW));
                }
                let equal = |other: &&Row| row.0.is_some() && row.0 == other.0;
                single.extend((0..).zip(&b.rows).filter(|(_, other)| equal(other)).map(|(j, _): (u32, _)| (i, j)));
            }
            let pairs = |joined: join::Joined| -> Vec<(u32, u32)> {
                joined.left.to_vec(stream).unwrap().into_iter().zip(joined.right.to_vec(stream).unwrap()).collect()
            };
            // Strings of two tables have words of their own.
            let word = b.word.recode(stream, &a.word).unwrap();
            let lefts = || (&a.number, &a.small, &a.word);
            let rights = || (&b.number, &b.small, &word);
            assert_eq!(pairs(join::inner(stream, &a.number, &b.number).unwrap()), single, "{case}");
            assert_eq!(pairs(join::inner(stream, lefts(), rights()).unwrap()), expected, "{case}");
            assert_eq!(pairs(join::left(stream, lefts(), rights()).unwrap()), outer, "{case}");
            let (with, without): (Vec<u32>, Vec<u32>) =
                (0..left as u32).partition(|i| expected.iter().any(|pair| pair.0 == *i));
            assert_eq!(join::semi(stream, lefts(), rights()).unwrap().to_vec(stream).unwrap(), with, "{case}");
            assert_eq!(join::anti(stream, lefts(), rights()).unwrap().to_vec(stream).unwrap(), without, "{case}");
            let rest = (0..right as u32).filter(|j| !expected.iter().any(|pair| pair.1 == *j));
            outer.extend(rest.map(|j| (NO_ROW, j)));
            let full = join::full(stream, lefts(), rights()).unwrap();
            let of_right = full.right.take(stream, &b.number).unwrap().to_options(stream).unwrap();
            let expected: Vec<_> = outer.iter().map(|pair| b.rows.get(pair.1 as usize).and_then(|row| row.0)).collect();
            assert_eq!(of_right, expected, "{case}");
            assert_eq!(pairs(full), outer, "{case}");
        }
    });
}

#[test]
fn groups_and_sorts() {
    on_devices(|stream, len| {
        for (case, (_, len, kinds, nulls)) in shapes(len).enumerate() {
            let table = Table::new(stream, case as u64 + 7, len, kinds, nulls);
            let mut next = random(case as u64);
            let values: Vec<Option<i32>> = (0..len).map(|_| (next(4) > 0).then_some(next(1000) as i32 - 500)).collect();
            let column = Column::upload_optional(stream, &values).unwrap();
            let mut expected = BTreeMap::<Row, Vec<usize>>::new();
            table.rows.iter().enumerate().for_each(|(i, row)| expected.entry(*row).or_default().push(i));
            let keys = || (&table.number, &table.small, &table.word);

            let groups = group_by(stream, keys()).unwrap();
            let first: Vec<u32> = expected.values().map(|rows| rows[0] as u32).collect();
            assert_eq!(groups.rows().to_vec(stream).unwrap(), first, "{case}");
            assert_eq!(distinct(stream, keys()).unwrap().to_vec(stream).unwrap(), first, "{case}");
            let last: Vec<u32> = expected.values().map(|rows| *rows.last().unwrap() as u32).collect();
            assert_eq!(groups.last_rows(stream).unwrap().to_vec(stream).unwrap(), last, "{case}");
            let of = |f: &dyn Fn(Vec<i64>) -> Option<i64>| -> Vec<Option<i64>> {
                let present = |rows: &Vec<usize>| rows.iter().filter_map(|&i| values[i].map(i64::from)).collect();
                expected.values().map(|rows| f(present(rows))).collect()
            };
            let total = |x: Vec<i64>| (!x.is_empty()).then(|| x.iter().sum());
            assert_eq!(groups.sum(stream, &column).unwrap().to_options(stream).unwrap(), of(&total), "{case}");
            let wide = |x: Option<i32>| x.map(i64::from);
            let most = groups.max(stream, &column).unwrap().to_options(stream).unwrap();
            assert_eq!(most.into_iter().map(wide).collect::<Vec<_>>(), of(&|x| x.into_iter().max()), "{case}");
            let least = groups.min(stream, &column).unwrap().to_options(stream).unwrap();
            assert_eq!(least.into_iter().map(wide).collect::<Vec<_>>(), of(&|x| x.into_iter().min()), "{case}");
            let counts: Vec<u64> = expected.values().map(|rows| rows.len() as u64).collect();
            assert_eq!(groups.count(stream).unwrap().to_vec(stream).unwrap(), counts, "{case}");
            let count = |column: Column<u64>| -> Vec<_> {
                column.to_vec(stream).unwrap().into_iter().map(|count| Some(count as i64)).collect()
            };
            assert_eq!(count(groups.count_valid(stream, &column).unwrap()), of(&|x| Some(x.len() as i64)), "{case}");
            let different = |mut x: Vec<i64>| {
                x.sort_unstable();
                x.dedup();
                Some(x.len() as i64)
            };
            assert_eq!(count(groups.count_distinct(stream, &column).unwrap()), of(&different), "{case}");
            // An operation that is not commutative.
            let join = monoid!(exact; 0, |a: i32, b: i32| if b == 0 { a } else { b });
            let ends = groups.fold(stream, &column, join).unwrap().to_options(stream).unwrap();
            let end = |x: Vec<i64>| (!x.is_empty()).then(|| x.into_iter().rfind(|x| *x != 0).unwrap_or(0));
            assert_eq!(ends.into_iter().map(wide).collect::<Vec<_>>(), of(&end), "{case}");
            let means = groups.mean(stream, &column).unwrap().to_options(stream).unwrap();
            let variances = groups.variance(stream, &column, true).unwrap().to_options(stream).unwrap();
            for ((rows, mean), variance) in expected.values().zip(means).zip(variances) {
                let x: Vec<f64> = rows.iter().filter_map(|&i| values[i].map(f64::from)).collect();
                let is_near = |a: f64, b: f64| (a - b).abs() <= 1e-9 * (1.0 + b.abs());
                assert_eq!(mean.is_some(), !x.is_empty());
                assert_eq!(variance.is_some(), x.len() > 1);
                let expected = x.iter().sum::<f64>() / x.len() as f64;
                assert!(mean.is_none_or(|mean| is_near(mean, expected)));
                let squares = x.iter().map(|x| (x - expected).powi(2)).sum::<f64>() / (x.len() as f64 - 1.0);
                assert!(variance.is_none_or(|variance| is_near(variance, squares)), "{variance:?} {squares}");
            }

            let mut order: Vec<u32> = (0..len as u32).collect();
            order.sort_by(|&a, &b| {
                let (a, b) = (&table.rows[a as usize], &table.rows[b as usize]);
                b.2.cmp(&a.2).then(a.0.cmp(&b.0)).then(b.1.cmp(&a.1))
            });
            let keys = || (desc(&table.word), asc(&table.number), desc(&table.small));
            assert_eq!(sort_by(stream, keys()).unwrap().to_vec(stream).unwrap(), order, "{case}");
            order.truncate(3);
            assert_eq!(top_k(stream, 3, keys()).unwrap().to_vec(stream).unwrap(), order, "{case}");
        }
        let none = Column::upload(stream, &[0i64; 0]).unwrap();
        let all = Groups::all(stream, 0).unwrap();
        assert_eq!(all.sum(stream, &none).unwrap().to_options(stream).unwrap(), [None]);
        assert_eq!(all.count(stream).unwrap().to_vec(stream).unwrap(), [0]);
    });
}

#[test]
fn keys_of_every_type() {
    fn check<T: gpu_relational::Key + PartialOrd>(stream: &Stream, values: &[T]) {
        let column = Column::upload(stream, values).unwrap();
        let mut order: Vec<u32> = (0..values.len() as u32).collect();
        order.sort_by(|&a, &b| values[a as usize].partial_cmp(&values[b as usize]).unwrap());
        assert_eq!(sort_by(stream, &column).unwrap().to_vec(stream).unwrap(), order);
        order = (0..values.len() as u32).collect();
        order.sort_by(|&a, &b| values[b as usize].partial_cmp(&values[a as usize]).unwrap());
        assert_eq!(sort_by(stream, (desc(&column), &column)).unwrap().to_vec(stream).unwrap(), order);
    }
    on_devices(|stream, len| {
        check(stream, &[3i128, i128::MIN, i128::MAX, -1, 1 << 64]);
        if len == CHECKED {
            return;
        }
        check(stream, &[3u8, 255, 0, 3]);
        check(stream, &[3i8, -128, 127, -1, 0]);
        check(stream, &[3u16, 65535, 0]);
        check(stream, &[3i16, -32768, 32767]);
        check(stream, &[3u32, u32::MAX, 0]);
        check(stream, &[3i32, i32::MIN, i32::MAX]);
        check(stream, &[3u64, u64::MAX, 0, 1 << 40]);
        check(stream, &[3i64, i64::MIN, i64::MAX]);
        check(stream, &[3u128, u128::MAX, 1 << 64, 0, (1 << 64) + 1]);
        check(stream, &[0.0f32, -0.0, 1.5, -1.5, f32::INFINITY, f32::NEG_INFINITY, f32::MIN_POSITIVE]);
        check(stream, &[0.0f64, -0.0, 1.5, -1.5, f64::INFINITY, f64::NEG_INFINITY]);
        let odd = Column::upload(stream, &[f64::NAN, 1.0, -f64::NAN, f64::INFINITY]).unwrap();
        assert_eq!(sort_by(stream, &odd).unwrap().to_vec(stream).unwrap(), [1, 3, 0, 2]);
        assert_eq!(group_by(stream, &odd).unwrap().len(), 3);
    });
}

#[test]
fn as_of_joins_and_windows() {
    on_devices(|stream, len| {
        let mut next = random(5);
        let mut rows = |len: usize| -> Vec<(u8, i32)> { (0..len).map(|_| (next(4) as u8, next(50) as i32)).collect() };
        let (a, b) = (rows(len), rows(len / 4));
        let column = |rows: &[(u8, i32)]| {
            let (keys, times): (Vec<u8>, Vec<i32>) = rows.iter().copied().unzip();
            (Column::upload(stream, &keys).unwrap(), Column::upload(stream, &times).unwrap())
        };
        let ((keys, times), (other_keys, other_times)) = (column(&a), column(&b));
        let found = join::as_of(stream, (&keys, &times), (&other_keys, &other_times)).unwrap();
        let before = |row: &(u8, i32)| {
            let earlier = (0u32..).zip(&b).filter(|(_, other)| other.0 == row.0 && other.1 <= row.1);
            earlier.max_by_key(|(i, other)| (other.1, *i)).map_or(NO_ROW, |(i, _)| i)
        };
        assert_eq!(found.to_vec(stream).unwrap(), a.iter().map(before).collect::<Vec<_>>());

        let window = Window::new(stream, &keys, &times).unwrap();
        let numbers = window.row_number(stream).unwrap().to_vec(stream).unwrap();
        let totals = window.running(stream, &times, Sum).unwrap().to_vec(stream).unwrap();
        let (lag, lead) = (window.lag(stream, &times, 2).unwrap(), window.lead(stream, &times, 1).unwrap());
        let (lag, lead) = (lag.to_options(stream).unwrap(), lead.to_options(stream).unwrap());
        for key in 0..4 {
            let mut order: Vec<usize> = (0..a.len()).filter(|&i| a[i].0 == key).collect();
            order.sort_by_key(|&i| a[i].1);
            for (place, &i) in order.iter().enumerate() {
                assert_eq!(numbers[i] as usize, place + 1);
                assert_eq!(totals[i], order[..=place].iter().map(|&i| a[i].1).sum::<i32>());
                assert_eq!(lag[i], place.checked_sub(2).map(|place| a[order[place]].1));
                assert_eq!(lead[i], order.get(place + 1).map(|&i| a[i].1));
            }
        }
    });
}

#[test]
fn rows_and_strings() {
    on_devices(|stream, _| {
        let (a, b) = (Column::upload(stream, &[1u32, 5, 9]).unwrap(), Column::upload(stream, &[2u32, 4, 9]).unwrap());
        let less = map2(&a, &b, map!(|a: u32, b: u32| -> u8 { if a < b { 1 } else { 0 } }));
        let rows = filter(stream, less, predicate!(|less: u8| less != 0)).unwrap();
        assert_eq!(rows.to_vec(stream).unwrap(), [0]);
        // Rows of rows, some of which do not exist.
        let odd = Rows::new(stream.upload(&[2u32, 7, NO_ROW, 0]).unwrap()).unwrap();
        let taken = odd.take(stream, (&a, &Rows::all(stream, 3).unwrap())).unwrap();
        assert_eq!(taken.0.to_options(stream).unwrap(), [Some(9), None, None, Some(1)]);
        assert_eq!(taken.1.to_vec(stream).unwrap(), [2, NO_ROW, NO_ROW, 0]);
        assert_eq!(Rows::valid(stream, &taken.0).unwrap().to_vec(stream).unwrap(), [0, 3]);
        let again = taken.1.take(stream, &a).unwrap();
        assert_eq!(again.to_options(stream).unwrap(), [Some(9), None, None, Some(1)]);
        // Bits as Arrow has them, there and back.
        let bits = again.valid_bits(stream).unwrap().unwrap();
        assert_eq!(bits.to_vec(stream).unwrap(), [0b1001]);
        let shifted = stream.upload(&[0b0010_0000u8, 0b1]).unwrap();
        let column = Column::with_valid_bits(stream, stream.upload(&[7u8; 4]).unwrap(), &shifted, 5).unwrap();
        assert_eq!(column.to_options(stream).unwrap(), [Some(7), None, None, Some(7)]);

        let notes = ["", "a", "special requests", "xspecialx requestsx", "requests special", "ab", "aab", "b%a"];
        let text = Text::upload(stream, notes).unwrap();
        for (pattern, expected) in [
            ("%", &[1, 1, 1, 1, 1, 1, 1, 1][..]),
            ("", &[1, 0, 0, 0, 0, 0, 0, 0]),
            ("_", &[0, 1, 0, 0, 0, 0, 0, 0]),
            ("%special%requests%", &[0, 0, 1, 1, 0, 0, 0, 0]),
            ("a%", &[0, 1, 0, 0, 0, 1, 1, 0]),
            ("%ab", &[0, 0, 0, 0, 0, 1, 1, 0]),
            ("_a_", &[0, 0, 0, 0, 0, 0, 1, 0]),
            ("ab", &[0, 0, 0, 0, 0, 1, 0, 0]),
            ("%a", &[0, 1, 0, 0, 0, 0, 0, 1]),
            // More than 16 states.
            ("%xspecial%requestsx%", &[0, 0, 0, 1, 0, 0, 0, 0]),
            ("special requests%", &[0, 0, 1, 0, 0, 0, 0, 0]),
            ("xspecialx requestsx", &[0, 0, 0, 1, 0, 0, 0, 0]),
            ("%_______________%", &[0, 0, 1, 1, 1, 0, 0, 0]),
        ] {
            assert_eq!(text.like(stream, pattern).unwrap().to_vec(stream).unwrap(), expected, "{pattern}");
        }
        assert!(matches!(text.like(stream, "a pattern of many letters"), Err(Error::InvalidOption { .. })));
        assert_eq!(text.byte(stream, 1).unwrap().to_vec(stream).unwrap(), *b"\0\0pse\x62a%");
        let taken = Rows::new(stream.upload(&[5u32, 3, 99, 5]).unwrap()).unwrap().take(stream, &text).unwrap();
        let some = |x: &str| Some(x.to_owned());
        let expected = [some("ab"), some("xspecialx requestsx"), None, some("ab")];
        assert_eq!(taken.to_options(stream).unwrap(), expected);
        let like = taken.like(stream, "a%").unwrap().to_options(stream).unwrap();
        assert_eq!(like, [Some(1), Some(0), None, Some(1)]);
    });
}

#[test]
fn wrong_keys_are_errors() {
    on_devices(|stream, _| {
        let (a, b) = (Column::upload(stream, &[1u32, 2]).unwrap(), Column::upload(stream, &[1i32]).unwrap());
        let words = Strings::upload(stream, ["a"]).unwrap();
        let other = Strings::upload(stream, ["a"]).unwrap();
        assert!(matches!(join::inner(stream, &a, &b), Err(Error::InvalidOption { .. })));
        assert!(matches!(join::semi(stream, &words, &other), Err(Error::InvalidOption { .. })));
        assert!(matches!(join::left(stream, (&a, &a), &a), Err(Error::LengthMismatch { .. })));
        assert!(matches!(group_by(stream, (&a, &b)), Err(Error::LengthMismatch { .. })));
        assert!(matches!(group_by(stream, &a).unwrap().sum(stream, &b), Err(Error::LengthMismatch { .. })));
        assert!(matches!(Window::new(stream, &a, &b), Err(Error::LengthMismatch { .. })));
    });
}
