//! The measurements of tables: joins, groups, sorts. Columns are on the device before and after. Every timed result is checked.
//!
//! # What bounds the rates
//! A row of `n` elements cannot take less than its bytes at the memory rate. An H200 copies 4.1 TB/s, so 2^27 rows take 33 µs for each
//! byte of a row. An element at a random position costs its whole sector of 32 bytes, unless the column fits into the L2 cache
//! (50 MB). With that, for 2^27 rows:
//!
//! | row | bytes per row that must move | at 4.1 TB/s |
//! | --- | --- | --- |
//! | inner join, unique keys | 4 of the key, a sector of the right side, 8 of the pair | 93 G/s |
//! | inner join, 8 duplicates | 4 of the key, a sector; then 8 of a pair and 4 of its right row, which comes 8 in a row | 85 G/s |
//! | semi join, a half of the rows | 4 of the key, a sector, 4 of each second row | 108 G/s |
//! | group by, sum and count | 4 of the key, 8 of the element | 341 G/s |
//! | the same, 2^20 groups or more | the sort's 17 per pass (3 passes for 20 bits, 4 for 26), 36 of a gathered element | 45, 38 G/s |
//! | distinct | as a sort of the key | 58 G/s |
//! | sort by two columns | 8 of the columns, 12 of packed keys and rows, 8 passes of 24 | 19 G/s |
//! | as-of join | 8 of the columns, a sector for the key and one for the row, 4 of the row | 54 G/s |
//!
//! The aims are 12 G/s for joins, and 300, 150, 25 and 10 G/s for 4, 2^10, 2^20 and 2^26 groups.

use crate::data::{Number as _, random_below_at};
use crate::record::{Record, power};
use crate::session::Session;
use crate::{Error, Run, check};
use gpu_relational::{Column, NO_ROW, distinct, group_by, join, narrow, sort_by};
use rayon::iter::{IntoParallelIterator, ParallelIterator};
use rayon::slice::ParallelSliceMut;

/// The section of the records.
pub const SECTION: &str = "tables";

/// The name of the measured library.
const SUBJECT: &str = "gpu-relational";

/// The number of timed runs per row: on a GPU; on a CPU, and of a quick run.
const RUNS: (usize, usize) = (9, 3);

/// The number of rows of the table.
const STEPS: usize = 13;

/// The right side of a join has one row for so many of the left side.
const SMALLER: usize = 8;

/// How often each key occurs in the right side of the join with duplicates.
const DUPLICATES: usize = 8;

/// The shares of the as-of join.
const SHARES: usize = 1000;

/// What to measure.
pub struct Options<'a> {
    /// The name of the device; `None` for the default device.
    pub device: Option<&'a str>,
    /// The numbers of rows of the larger side; if empty, 2^27 on a GPU and 2^16 on a CPU.
    pub sizes: &'a [usize],
    /// Whether to measure fewer rows, fewer times.
    pub quick: bool,
}

/// Measures every row.
///
/// # Errors
/// Any error before the first measurement. Later errors are in [`Run::outcome`], next to the measurements so far.
pub fn run(options: &Options<'_>) -> Result<Run, Error> {
    const LEAST: usize = 1 << 10;
    let mut session = Session::open(options.device, RUNS.0)?;
    if options.quick || !session.is_gpu() {
        session.runs = RUNS.1;
    }
    let sizes = match (options.sizes, session.is_gpu(), options.quick) {
        ([], true, false) => vec![1 << 27],
        ([], true, true) => vec![1 << 22],
        ([], false, false) => vec![1 << 16],
        ([], false, true) => vec![1 << 12],
        (asked, ..) => asked.to_vec(),
    };
    if let Some(size) = sizes.iter().find(|size| !(LEAST..1 << 31).contains(*size)) {
        return Err(Error::Arguments(format!("--size {size}: a table needs at least 2^10 rows, and fewer than 2^31")));
    }
    session.expect_room(sizes.iter().max().copied().unwrap_or(0), 128)?;
    session.expect_steps(STEPS * sizes.len());
    let outcome = sizes.iter().try_for_each(|&n| measure(&session, n));
    Ok(Run { recording: session.finish(), outcome })
}

fn measure(session: &Session, n: usize) -> Result<(), Error> {
    joins(session, n)?;
    for groups in [4, 1 << 10, n >> 7, n >> 1] {
        groups_of(session, n, groups)?;
    }
    distinct_keys(session, n)?;
    sorts(session, n)?;
    as_of(session, n)
}

/// Times a call and records its rate. `bytes` is what must move per row, at least.
fn time<T>(
    session: &Session,
    (row, parameter): (&str, &str),
    n: usize,
    bytes: f64,
    mut call: impl FnMut() -> Result<T, gpu_primitives::Error>,
) -> Result<T, Error> {
    session.step(format!("{row} of {}", power(n)))?;
    let (result, times) = session.time(|| Ok(call()?))?;
    let queued = session.queued(times.median(), || {
        call()?;
        Ok(())
    })?;
    let record = Record::new(SECTION, SUBJECT, row, parameter, n).rate(n, &times);
    session.keep(record.bytes(bytes).queued(queued));
    Ok(result)
}

/// Makes a column of as many elements, and their copy on the device.
fn column<T: bytemuck::Pod + Send>(
    session: &Session,
    len: usize,
    element: impl Fn(usize) -> T + Send + Sync,
) -> Result<(Vec<T>, Column<T>), Error> {
    let host: Vec<T> = (0..len).into_par_iter().map(element).collect();
    let column = Column::upload(&session.stream, &host)?;
    Ok((host, column))
}

fn joins(session: &Session, n: usize) -> Result<(), Error> {
    let stream = &session.stream;
    let right_len = n / SMALLER;
    // Keys are spread over the 32 bits in random order.
    let key = |index: usize| u32::of(index as u64, true);
    let (left_host, left) = column(session, n, |i| key(random_below_at(1, right_len, i)))?;
    let (right_host, right) = column(session, right_len, key)?;
    for (method, parameter) in [(join::Method::Hash, "hash"), (join::Method::Sort, "sort")] {
        let what = ("inner join, unique keys", parameter);
        let joined = time(session, what, n, 44.0, || method.inner(stream, &left, &right))?;
        expect_pairs(session, what.0, &joined, (&left_host, &right_host), n)?;
    }

    // Numbers of rows, as the keys of most tables are.
    let (left_host, left) = column(session, n, |i| random_below_at(2, right_len, i) as u32)?;
    let mut shuffled: Vec<u32> = (0..right_len as u32).collect();
    shuffled.par_sort_unstable_by_key(|&index| key(index as usize));
    let right = Column::upload(stream, &shuffled)?;
    let what = ("inner join, unique keys", "narrow");
    let joined = time(session, what, n, 44.0, || join::inner(stream, narrow(&left), &right))?;
    expect_pairs(session, what.0, &joined, (&left_host, &shuffled), n)?;
    drop((joined, left, left_host));

    // One of eight rows has matches, and each of these has eight.
    let kinds = right_len / DUPLICATES;
    let (left_host, left) = column(session, n, |i| key(random_below_at(3, right_len, i)))?;
    let (right_host, right) = column(session, kinds * DUPLICATES, |i| key(i % kinds))?;
    let is_present = |i: &usize| random_below_at(3, right_len, *i) < kinds;
    let pairs = (0..n).into_par_iter().filter(is_present).count() * DUPLICATES;
    let what = ("inner join, 8 duplicates", "");
    let joined = time(session, what, n, 48.0, || join::inner(stream, &left, &right))?;
    expect_pairs(session, what.0, &joined, (&left_host, &right_host), pairs)?;
    drop((joined, right, right_host));

    // A half of the rows have matches.
    let half = right_len / 2;
    let (_, right) = column(session, half, key)?;
    let rows = time(session, ("semi join", ""), n, 38.0, || join::semi(stream, &left, &right))?;
    expect_rows(session, &rows, (0..n).filter(|&i| random_below_at(3, right_len, i) < half))?;
    let (_, left) = column(session, n, |i| random_below_at(3, right_len, i) as u32)?;
    let (_, right) = column(session, half, |i| i as u32)?;
    let rows = time(session, ("semi join", "narrow"), n, 38.0, || join::semi(stream, narrow(&left), &right))?;
    expect_rows(session, &rows, (0..n).filter(|&i| random_below_at(3, right_len, i) < half))
}

/// Checks that a join has as many pairs of equal keys, in order: so it has all of them, once.
fn expect_pairs(
    session: &Session,
    what: &str,
    joined: &join::Joined,
    (left_keys, right_keys): (&[u32], &[u32]),
    pairs: usize,
) -> Result<(), Error> {
    let (left, right) = (joined.left.to_vec(&session.stream)?, joined.right.to_vec(&session.stream)?);
    let is_pair = |i: usize| {
        let (Some(a), Some(b)) = (left_keys.get(left[i] as usize), right_keys.get(right[i] as usize)) else {
            return false;
        };
        a == b && (i == 0 || (left[i - 1], right[i - 1]) < (left[i], right[i]))
    };
    if left.len() != pairs || right.len() != pairs {
        return Err(Error::WrongResult { what: what.into(), index: pairs.min(left.len()).min(right.len()) });
    }
    expect_all(what, pairs, is_pair)
}

/// Returns an error that names the first element for which a test fails.
fn expect_all(what: &str, len: usize, test: impl Fn(usize) -> bool + Sync) -> Result<(), Error> {
    match (0..len).into_par_iter().find_first(|&i| !test(i)) {
        Some(index) => Err(Error::WrongResult { what: what.into(), index }),
        None => Ok(()),
    }
}

fn expect_rows(
    session: &Session,
    rows: &gpu_relational::Rows,
    expected: impl Iterator<Item = usize>,
) -> Result<(), Error> {
    check::equal("semi join", rows.to_vec(&session.stream)?, expected, |found, expected| *found as usize == *expected)
}

/// Measures groups of random rows: finding them, and the sum and the count of each.
fn groups_of(session: &Session, n: usize, groups: usize) -> Result<(), Error> {
    let stream = &session.stream;
    let (keys, key) = column(session, n, |i| random_below_at(4, groups, i) as u32)?;
    // Amounts in cents, some of which are negative.
    let (values, value) = column(session, n, |i| random_below_at(5, 1 << 20, i) as i64 - 1000)?;
    let parameter = format!("groups = {}", power(groups));
    let (found, sums, counts) = time(session, ("group by, sum and count", &parameter), n, 12.0, || {
        let found = group_by(stream, narrow(&key))?;
        let sums = found.sum(stream, &value)?;
        let counts = found.count(stream)?;
        Ok((found, sums, counts))
    })?;
    let mut expected = vec![(0i128, 0u64, 0u32); groups];
    for (i, (&key, &value)) in keys.iter().zip(&values).enumerate().rev() {
        let (sum, count, first) = &mut expected[key as usize];
        (*sum, *count, *first) = (*sum + i128::from(value), *count + 1, i as u32);
    }
    let expected = || expected.iter().filter(|(_, count, _)| *count > 0);
    let what = "group by, sum and count";
    check::equal(what, sums.to_vec(stream)?, expected(), |sum, expected| *sum == expected.0)?;
    check::equal(what, counts.to_vec(stream)?, expected(), |count, expected| *count == expected.1)?;
    check::equal(what, found.rows().to_vec(stream)?, expected(), |first, expected| *first == expected.2)
}

/// Measures the different keys of random rows.
fn distinct_keys(session: &Session, n: usize) -> Result<(), Error> {
    let stream = &session.stream;
    let kinds = n >> 7;
    let (keys, key) = column(session, n, |i| u32::of(random_below_at(6, kinds, i) as u64, true))?;
    let what = ("distinct", &*format!("groups = {}", power(kinds)));
    let rows = time(session, what, n, 4.0, || distinct(stream, &key))?;
    let mut pairs: Vec<(u32, u32)> = keys.into_iter().zip(0u32..).collect();
    pairs.par_sort_unstable();
    pairs.dedup_by_key(|pair| pair.0);
    check::equal("distinct", rows.to_vec(stream)?, pairs, |found, expected| *found == expected.1)
}

/// Measures a sort by two columns.
fn sorts(session: &Session, n: usize) -> Result<(), Error> {
    let stream = &session.stream;
    let (first_host, first) = column(session, n, |i| random_below_at(7, 1 << 20, i) as u32)?;
    let (second_host, second) = column(session, n, |i| random_below_at(8, 1 << 32, i) as u32)?;
    let rows = time(session, ("sort by two columns", ""), n, 12.0, || sort_by(stream, (&first, &second)))?;
    let rows = rows.to_vec(stream)?;
    let key = |row: u32| (first_host[row as usize], second_host[row as usize], row);
    let is_next = |i: usize| (rows[i] as usize) < n && (i == 0 || key(rows[i - 1]) < key(rows[i]));
    if rows.len() == n { expect_all("sort by two columns", n, is_next) } else { expect_all("sort", 1, |_| false) }
}

/// Measures the prices that were valid when shares were sold: one quote for eight sales.
fn as_of(session: &Session, n: usize) -> Result<(), Error> {
    let stream = &session.stream;
    let of =
        |seed: u64, i: usize| (random_below_at(seed, SHARES, i) as u32, random_below_at(seed + 1, 1 << 32, i) as u32);
    let (sold_host, share) = column(session, n, |i| of(20, i).0)?;
    let (times_host, time_of_sale) = column(session, n, |i| of(20, i).1)?;
    let (_, quoted) = column(session, n / SMALLER, |i| of(30, i).0)?;
    let (_, time_of_quote) = column(session, n / SMALLER, |i| of(30, i).1)?;
    let rows = time(session, ("as-of join", ""), n, 76.0, || {
        join::as_of(stream, (&share, &time_of_sale), (&quoted, &time_of_quote))
    })?;
    let rows = rows.to_vec(stream)?;
    let mut quotes: Vec<(u32, u32, u32)> =
        (0..n / SMALLER).into_par_iter().map(|i| (of(30, i).0, of(30, i).1, i as u32)).collect();
    quotes.par_sort_unstable();
    let expected = |i: usize| {
        let end = quotes.partition_point(|quote| (quote.0, quote.1) <= (sold_host[i], times_host[i]));
        end.checked_sub(1).map(|last| quotes[last]).filter(|quote| quote.0 == sold_host[i]).map_or(NO_ROW, |q| q.2)
    };
    if rows.len() == n {
        expect_all("as-of join", n, |i| rows[i] == expected(i))
    } else {
        expect_all("as-of", 1, |_| false)
    }
}
