//! Random tables of the shapes that break joins and groups, against plain Rust: all keys equal, all different, Zipf; no nulls, some, nothing
//! else; sides without rows; keys of several columns and types; with narrow keys and without.

use gpu_primitives::scan::Sum;
use gpu_primitives::{CpuOptions, Device, Stream};
use gpu_relational::{
    Column, Dates, Decimals, Keys, NO_ROW, Strings, Window, agg, asc, desc, distinct, group_by, join, narrow, sort_by,
};
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// Runs a test on the CPU device, which refuses what a GPU would refuse, and on the one that checks every access.
fn on_devices(test: impl Fn(&Stream, usize)) {
    let options = CpuOptions { only_with_ptx: true, ..CpuOptions::default() };
    test(&Device::cpu_with(options).stream().unwrap(), 150);
    test(&Device::cpu_checked().stream().unwrap(), CHECKED);
}

/// The number of rows where every access is checked, which takes its time.
const CHECKED: usize = 15;

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

/// How often keys repeat.
#[derive(Clone, Copy, Debug)]
enum Spread {
    AllEqual,
    /// The number of the row.
    AllDifferent,
    /// The key `n` is about `n` times rarer than the first one, of so many.
    Zipf(f64),
}

/// How many of eight elements are null.
const NULLS: [u64; 3] = [0, 2, 8];

/// A word, a price, a date, and a long number, each of which may be null.
type Row = (Option<&'static str>, Option<i64>, Option<i32>, Option<i128>);

const WORDS: [&str; 6] = ["", "a", "ab", "b", "ba", "ä"];

struct Table {
    rows: Vec<Row>,
    word: Strings,
    price: Decimals<i64>,
    date: Dates,
    long: Column<i128>,
}

impl Table {
    fn new(stream: &Stream, seed: u64, len: usize, spread: Spread, nulls: u64) -> Self {
        let mut next = random(seed);
        let row = |i: usize| {
            let mut key = || match spread {
                Spread::AllEqual => 3,
                Spread::AllDifferent => i as u64,
                Spread::Zipf(kinds) => kinds.powf(next() as f64 / (1u64 << 53) as f64) as u64 - 1,
            };
            let (word, price, date) = (WORDS[key() as usize % WORDS.len()], key() as i64 * 25 - 700, key() as i32 - 20);
            let long = i128::from(key() % 5) * (i128::MAX / 7) - (1 << 100);
            let mut is_some = || next() % 8 >= nulls;
            (
                is_some().then_some(word),
                is_some().then_some(price),
                is_some().then_some(date),
                is_some().then_some(long),
            )
        };
        let rows: Vec<Row> = (0..len).map(row).collect();
        let column = |of: fn(&Row) -> Option<i64>| -> Vec<Option<i64>> { rows.iter().map(of).collect() };
        let price = if nulls == 0 {
            Column::upload(stream, &column(|row| row.1).into_iter().flatten().collect::<Vec<_>>())
        } else {
            Column::upload_optional(stream, &column(|row| row.1))
        };
        let date: Vec<Option<i32>> = rows.iter().map(|row| row.2).collect();
        let long: Vec<Option<i128>> = rows.iter().map(|row| row.3).collect();
        Self {
            word: Strings::upload_optional(stream, rows.iter().map(|row| row.0)).unwrap(),
            price: Decimals::new(price.unwrap(), 2).unwrap(),
            date: Dates::new(Column::upload_optional(stream, &date).unwrap()),
            long: Column::upload_optional(stream, &long).unwrap(),
            rows,
        }
    }
}

/// The columns of a key, and whether its bits are found out.
#[derive(Clone, Copy, Debug)]
struct Kind {
    columns: &'static [u8],
    narrow: bool,
}

const KINDS: [&[u8]; 5] = [&[1], &[2], &[0, 2], &[3], &[2, 0, 3, 1]];

/// Two kinds of keys for each case, so that few cases have all of them.
fn kinds(case: usize) -> [Kind; 2] {
    [false, true].map(|narrow| Kind { columns: KINDS[(case + usize::from(narrow)) % KINDS.len()], narrow })
}

/// The key of a table. Its second column descends.
fn keys<'a>(table: &'a Table, word: &'a Strings, kind: Kind) -> Keys<'a> {
    let key = |place: usize, column: u8| -> Keys<'a> {
        let key = match column {
            0 => Keys::from(word),
            1 => (&table.price).into(),
            2 => (&table.date).into(),
            _ => (&table.long).into(),
        };
        if place == 1 { desc(key) } else { asc(key) }
    };
    let mut columns = kind.columns.iter().enumerate();
    let (place, first) = columns.next().expect("a key has columns");
    let all = columns.fold(key(place, *first), |all, (place, column)| (all, key(place, *column)).into());
    if kind.narrow { narrow(all) } else { all }
}

fn compare(a: &Row, b: &Row, kind: Kind) -> Ordering {
    let column = |place: usize, column: u8| {
        let order = match column {
            0 => a.0.cmp(&b.0),
            1 => a.1.cmp(&b.1),
            2 => a.2.cmp(&b.2),
            _ => a.3.cmp(&b.3),
        };
        if place == 1 { order.reverse() } else { order }
    };
    kind.columns.iter().enumerate().fold(Ordering::Equal, |all, (place, of)| all.then_with(|| column(place, *of)))
}

fn has_null(row: &Row, kind: Kind) -> bool {
    kind.columns.iter().any(|column| match column {
        0 => row.0.is_none(),
        1 => row.1.is_none(),
        2 => row.2.is_none(),
        _ => row.3.is_none(),
    })
}

/// The lengths of two tables, and how their keys repeat.
fn shapes(len: usize) -> Vec<(usize, usize, Spread)> {
    let all = vec![
        (len, len / 3, Spread::Zipf(30.0)),
        (len / 20, len / 20, Spread::AllEqual),
        (0, 7, Spread::AllDifferent),
        (7, 0, Spread::AllEqual),
        (len / 2, len, Spread::AllDifferent),
        (len / 3, len, Spread::Zipf(1e6)),
        (0, 0, Spread::AllEqual),
    ];
    if len == CHECKED { all.into_iter().take(1).collect() } else { all }
}

/// How many of eight elements are null, with their numbers.
fn nulls(len: usize) -> impl Iterator<Item = (usize, u64)> {
    NULLS.into_iter().enumerate().filter(move |(_, nulls)| len > CHECKED || *nulls == 2)
}

#[test]
fn all_joins() {
    on_devices(|stream, len| {
        for (case, (left, right, spread)) in shapes(len).into_iter().enumerate() {
            for (turn, nulls) in nulls(len) {
                let a = Table::new(stream, case as u64 * 10 + nulls, left, spread, nulls);
                let b = Table::new(stream, case as u64 * 10 + nulls + 500, right, spread, nulls);
                // Words of the other table, if this one has them.
                let word = b.word.recode(stream, &a.word).unwrap();
                for kind in kinds(case * 3 + turn * 2) {
                    check_joins(
                        stream,
                        &a,
                        &b,
                        &word,
                        kind,
                        &format!("{left}, {right}, {spread:?}, {nulls}, {kind:?}"),
                    );
                }
            }
        }
    });
}

fn check_joins(stream: &Stream, a: &Table, b: &Table, word: &Strings, kind: Kind, what: &str) {
    let matches = |row: &Row| -> Vec<u32> {
        let is_match =
            |other: &Row| !has_null(row, kind) && !has_null(other, kind) && compare(row, other, kind).is_eq();
        (0..).zip(&b.rows).filter(|(_, other)| is_match(other)).map(|(j, _)| j).collect()
    };
    let of_rows: Vec<Vec<u32>> = a.rows.iter().map(matches).collect();
    let pairs = |joined: join::Joined| -> Vec<(u32, u32)> {
        joined.left.to_vec(stream).unwrap().into_iter().zip(joined.right.to_vec(stream).unwrap()).collect()
    };
    let mut inner = Vec::new();
    let mut outer = Vec::new();
    for (i, found) in (0u32..).zip(&of_rows) {
        inner.extend(found.iter().map(|&j| (i, j)));
        outer.extend(found.iter().map(|&j| (i, j)));
        if found.is_empty() {
            outer.push((i, NO_ROW));
        }
    }
    let (lefts, rights) = (|| keys(a, &a.word, kind), || keys(b, word, kind));
    let (with, without): (Vec<u32>, Vec<u32>) =
        (0..a.rows.len() as u32).partition(|i| !of_rows[*i as usize].is_empty());
    let rest = (0..b.rows.len() as u32).filter(|j| !of_rows.iter().flatten().any(|found| found == j));
    let all: Vec<_> = outer.iter().copied().chain(rest.map(|j| (NO_ROW, j))).collect();
    for method in [join::Method::Auto, join::Method::Hash, join::Method::Sort] {
        let what = format!("{method:?}: {what}");
        assert_eq!(pairs(method.inner(stream, lefts(), rights()).unwrap()), inner, "inner: {what}");
        assert_eq!(pairs(method.left(stream, lefts(), rights()).unwrap()), outer, "left: {what}");
        assert_eq!(method.semi(stream, lefts(), rights()).unwrap().to_vec(stream).unwrap(), with, "semi: {what}");
        assert_eq!(method.anti(stream, lefts(), rights()).unwrap().to_vec(stream).unwrap(), without, "anti: {what}");
        assert_eq!(pairs(method.full(stream, lefts(), rights()).unwrap()), all, "full: {what}");
    }
    // The last column is the time: it ascends only if it is alone, or the third.
    if kind.columns.len() != 2 {
        let before = |row: &Row| {
            let (last, rest) = kind.columns.split_last().expect("a key has columns");
            let (rest, last) = (Kind { columns: rest, ..kind }, Kind { columns: std::slice::from_ref(last), ..kind });
            let earlier = (0u32..).zip(&b.rows).filter(|(_, other)| {
                let valid = !has_null(row, kind) && !has_null(other, kind);
                valid && compare(row, other, rest).is_eq() && compare(other, row, last).is_le()
            });
            earlier.max_by(|x, y| compare(x.1, y.1, last).then(x.0.cmp(&y.0))).map_or(NO_ROW, |(j, _)| j)
        };
        let expected: Vec<u32> = a.rows.iter().map(before).collect();
        let found = join::as_of(stream, lefts(), rights()).unwrap();
        assert_eq!(found.to_vec(stream).unwrap(), expected, "as of: {what}");
    }
}

#[test]
fn groups_sorts_and_windows() {
    on_devices(|stream, most| {
        for (case, (_, len, spread)) in shapes(most).into_iter().enumerate() {
            for (turn, nulls) in nulls(most) {
                let table = Table::new(stream, case as u64 * 10 + nulls + 900, len, spread, nulls);
                for kind in kinds(case * 3 + turn * 2) {
                    check_groups(stream, &table, kind, &format!("{len}, {spread:?}, {nulls}, {kind:?}"));
                }
            }
        }
    });
}

fn check_groups(stream: &Stream, table: &Table, kind: Kind, what: &str) {
    let keys = || keys(table, &table.word, kind);
    let mut order: Vec<u32> = (0..table.rows.len() as u32).collect();
    order.sort_by(|&a, &b| compare(&table.rows[a as usize], &table.rows[b as usize], kind));
    assert_eq!(sort_by(stream, keys()).unwrap().to_vec(stream).unwrap(), order, "sort: {what}");

    let mut expected: Vec<Vec<u32>> = Vec::new();
    for &row in &order {
        let is_same =
            |group: &&mut Vec<u32>| compare(&table.rows[group[0] as usize], &table.rows[row as usize], kind).is_eq();
        match expected.last_mut().filter(is_same) {
            Some(group) => group.push(row),
            None => expected.push(vec![row]),
        }
    }
    let groups = group_by(stream, keys()).unwrap();
    let first: Vec<u32> = expected.iter().map(|group| group[0]).collect();
    assert_eq!(groups.rows().to_vec(stream).unwrap(), first, "groups: {what}");
    assert_eq!(distinct(stream, keys()).unwrap().to_vec(stream).unwrap(), first, "distinct: {what}");
    let prices = |group: &Vec<u32>| -> Vec<i64> { group.iter().filter_map(|&i| table.rows[i as usize].1).collect() };
    let some = |f: fn(Vec<i64>) -> i64| -> Vec<Option<i64>> {
        expected.iter().map(prices).map(|prices| (!prices.is_empty()).then(|| f(prices))).collect()
    };
    let sums = groups.sum(stream, &table.price).unwrap().narrow(stream).unwrap();
    let sums = sums.numbers().to_options(stream).unwrap();
    assert_eq!(sums, some(|prices| prices.iter().sum()), "sums: {what}");
    let most = groups.max(stream, &table.price).unwrap().into_numbers().to_options(stream).unwrap();
    assert_eq!(most, some(|prices| prices.into_iter().max().unwrap()), "max: {what}");
    let (first_of_all, total, least, greatest, number, different) = groups
        .agg(
            stream,
            (
                agg::first(&table.date),
                agg::sum(&table.price),
                agg::min(&table.price),
                agg::max(&table.price),
                agg::count_valid(&table.long),
                agg::count_distinct(table.date.days()),
            ),
        )
        .unwrap();
    let prices_of = |column: &Decimals<i64>| column.numbers().to_options(stream).unwrap();
    assert_eq!(total.narrow(stream).unwrap().numbers().to_options(stream).unwrap(), sums, "sums: {what}");
    assert_eq!(prices_of(&greatest), most, "max: {what}");
    assert_eq!(prices_of(&least), some(|prices| prices.into_iter().min().unwrap()), "min: {what}");
    let dates: Vec<Option<i32>> = first.iter().map(|&i| table.rows[i as usize].2).collect();
    assert_eq!(first_of_all.days().to_options(stream).unwrap(), dates, "first: {what}");
    let different_dates = |group: &Vec<u32>| {
        group.iter().filter_map(|&i| table.rows[i as usize].2).collect::<std::collections::BTreeSet<_>>().len() as u64
    };
    let dates: Vec<u64> = expected.iter().map(different_dates).collect();
    assert_eq!(different.to_vec(stream).unwrap(), dates, "different: {what}");
    let counts = groups.count_valid(stream, &table.long).unwrap().to_vec(stream).unwrap();
    let of_group = |group: &Vec<u32>| group.iter().filter(|&&i| table.rows[i as usize].3.is_some()).count() as u64;
    assert_eq!(counts, expected.iter().map(of_group).collect::<Vec<_>>(), "counts: {what}");
    assert_eq!(number.to_vec(stream).unwrap(), counts, "counts: {what}");

    // Partitions by the key, in the order of the dates.
    let window = Window::new(stream, keys(), &table.date).unwrap();
    let ones = Column::upload(stream, &vec![1u32; table.rows.len()]).unwrap();
    let numbers = window.row_number(stream).unwrap().to_vec(stream).unwrap();
    assert_eq!(window.running(stream, &ones, Sum).unwrap().to_vec(stream).unwrap(), numbers, "running: {what}");
    let mut of_rows = BTreeMap::new();
    for group in &expected {
        let mut group = group.clone();
        group.sort_by_key(|&i| table.rows[i as usize].2);
        of_rows.extend(group.into_iter().zip(1u32..));
    }
    assert_eq!(numbers, of_rows.into_values().collect::<Vec<_>>(), "row numbers: {what}");
}
