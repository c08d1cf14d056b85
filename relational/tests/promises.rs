//! What the documentation promises where tables are odd: nulls, NaN, overflows, rows of other tables.

use gpu_primitives::operator::{monoid, predicate};
use gpu_primitives::source::counting;
use gpu_primitives::{CpuOptions, Device, Error, Stream};
use gpu_relational::{Column, Groups, NO_ROW, Rows, Strings, Text, asc, desc, filter, group_by, join, sort_by};

/// The CPU device. It refuses what a GPU would refuse.
fn cpu() -> Device {
    Device::cpu_with(CpuOptions { only_with_ptx: true, ..CpuOptions::default() })
}

/// Runs a test on the CPU device, and on the one that checks every access.
fn on_devices(test: impl Fn(&Stream)) {
    test(&cpu().stream().unwrap());
    test(&Device::cpu_checked().stream().unwrap());
}

/// A column whose bytes of valid elements are these.
fn with_valid<T: bytemuck::Pod>(stream: &Stream, values: &[T], valid: &[u8]) -> Column<T> {
    Column::with_valid(stream.upload(values).unwrap(), stream.upload(valid).unwrap()).unwrap()
}

fn is_wrong_length<T>(result: Result<T, Error>) -> bool {
    matches!(result, Err(Error::LengthMismatch { .. }))
}

#[test]
fn nulls_that_calls_make_are_zeros() {
    on_devices(|stream| {
        let words = Strings::upload_optional(stream, [Some("a"), None, Some("b")]).unwrap();
        let is = words.test(stream, |word| word == "a").unwrap();
        assert_eq!(is.to_vec(stream).unwrap(), [1, 0, 0]);
        assert_eq!(is.to_options(stream).unwrap(), [Some(1), None, Some(0)]);
        assert_eq!(filter(stream, &is, predicate!(|is: u8| is != 0)).unwrap().to_vec(stream).unwrap(), [0]);
        let other = Strings::upload(stream, ["", "a"]).unwrap();
        assert_eq!(words.recode(stream, &other).unwrap().codes().to_vec(stream).unwrap(), [1, 0, 0]);

        let rows = Rows::new(stream.upload(&[NO_ROW, 0]).unwrap()).unwrap();
        let text = rows.take(stream, &Text::upload(stream, ["ab"]).unwrap()).unwrap();
        assert_eq!(text.like(stream, "%").unwrap().to_vec(stream).unwrap(), [0, 1]);
        assert_eq!(text.byte(stream, 0).unwrap().to_vec(stream).unwrap(), [0, b'a']);

        let filled = |column: Column<i32>| column.fill_null(stream, 9).unwrap();
        let (some, none) = (filled(with_valid(stream, &[1, 2, 3], &[0, 2, 0])), filled(with_valid(stream, &[], &[])));
        assert_eq!(some.to_options(stream).unwrap(), [Some(9), Some(2), Some(9)]);
        assert!(none.is_empty() && none.valid().is_none());

        let key = Column::upload(stream, &[1u8, 2, 1]).unwrap();
        let values = with_valid(stream, &[-5i32, -6, 7], &[2, 0, 0]);
        let groups = group_by(stream, &key).unwrap();
        let last = monoid!(exact; -1, |a: i32, b: i32| if b == -1 { a } else { b });
        for column in [
            groups.max(stream, &values).unwrap(),
            groups.min(stream, &values).unwrap(),
            groups.fold(stream, &values, last).unwrap(),
        ] {
            assert_eq!(column.to_options(stream).unwrap(), [Some(-5), None]);
            assert_eq!(column.to_vec(stream).unwrap(), [-5, 0]);
        }
        assert_eq!(groups.sum(stream, &values).unwrap().to_vec(stream).unwrap(), [-5, 0]);
        assert_eq!(groups.mean(stream, &values).unwrap().to_vec(stream).unwrap(), [-5.0, 0.0]);
        assert_eq!(groups.variance(stream, &values, false).unwrap().to_vec(stream).unwrap(), [0.0, 0.0]);
        let none = Column::upload(stream, &[0i32; 0]).unwrap();
        assert_eq!(Groups::all(stream, 0).unwrap().max(stream, &none).unwrap().to_vec(stream).unwrap(), [0]);
    });
}

#[test]
fn rows_have_the_length_of_what_filters_them() {
    on_devices(|stream| {
        let (short, long) = (Column::upload(stream, &[1u8]).unwrap(), Column::upload(stream, &[1u8; 3]).unwrap());
        let rows = Rows::all(stream, 2).unwrap();
        let is_one = || predicate!(|x: u8| x == 1);
        assert!(is_wrong_length(rows.filter(stream, &long, is_one())));
        assert!(is_wrong_length(rows.filter(stream, &short, is_one())));
        let pair = Column::upload(stream, &[0u8, 1]).unwrap();
        assert_eq!(rows.filter(stream, &pair, is_one()).unwrap().to_vec(stream).unwrap(), [1]);
        // An error before memory is taken.
        let many = counting(0u64, u32::MAX as usize);
        assert!(matches!(filter(stream, many, predicate!(|x: u64| x == 0)), Err(Error::TooLong { .. })));
    });
}

#[test]
fn rows_of_a_longer_table_are_errors() {
    on_devices(|stream| {
        let (short, long) = (Column::upload(stream, &[1u8, 2]).unwrap(), Column::upload(stream, &[3u8; 4]).unwrap());
        let (words, text) = (Strings::upload(stream, ["a"]).unwrap(), Text::upload(stream, ["a"]).unwrap());
        let rows = filter(stream, &long, predicate!(|x: u8| x == 3)).unwrap();
        assert!(is_wrong_length(rows.take(stream, &short)));
        assert!(is_wrong_length(rows.take(stream, &words)));
        assert!(is_wrong_length(rows.take(stream, &text)));
        assert!(is_wrong_length(rows.take(stream, &Rows::all(stream, 2).unwrap())));
        assert!(is_wrong_length(sort_by(stream, rows.on(&short))));
        assert!(is_wrong_length(join::inner(stream, &long, rows.on(&short))));
        assert!(is_wrong_length(join::as_of(stream, rows.on(&short), &long)));
        // Also if none of these rows is beyond the shorter one.
        assert!(is_wrong_length(rows.first(stream, 1).unwrap().take(stream, &short)));
        assert_eq!(rows.take(stream, &long).unwrap().to_vec(stream).unwrap(), [3; 4]);
        // Positions of the caller are null instead.
        let rows = Rows::new(stream.upload(&[0u32, 1, 2, 3]).unwrap()).unwrap();
        assert_eq!(rows.take(stream, &short).unwrap().to_options(stream).unwrap(), [Some(1), Some(2), None, None]);
    });
}

#[test]
fn means_and_variances_of_every_width() {
    fn check<T: gpu_relational::Summable>(stream: &Stream, values: &[T], mean: f64, variance: f64) {
        let (all, column) = (Groups::all(stream, values.len()).unwrap(), Column::upload(stream, values).unwrap());
        assert_eq!(all.mean(stream, &column).unwrap().to_vec(stream).unwrap(), [mean]);
        assert_eq!(all.variance(stream, &column, false).unwrap().to_vec(stream).unwrap(), [variance]);
    }
    on_devices(|stream| {
        check(stream, &[-1i128], -1.0, 0.0);
        check(stream, &[-3i128, 1, -1, -1], -1.0, 2.0);
        check(stream, &[-(1i128 << 100), 1 << 100], 0.0, 2.0f64.powi(200));
        check(stream, &[i128::MIN], -(2.0f64.powi(127)), 0.0);
        check(stream, &[1u128 << 127, 0], 2.0f64.powi(126), 2.0f64.powi(252));
        check(stream, &[-3i64, 1, -1, -1], -1.0, 2.0);
        check(stream, &[i64::MIN, i64::MAX], -0.5, 2.0f64.powi(126));
        check(stream, &[u64::MAX, 1], 2.0f64.powi(63), 2.0f64.powi(126));
        check(stream, &[-3i8, 1, -1, -1], -1.0, 2.0);
        check(stream, &[3u16, 1], 2.0, 1.0);
    });
}

#[test]
fn times_that_are_null_match_nothing() {
    on_devices(|stream| {
        let (key, time) = (Column::upload(stream, &[1u8, 1]).unwrap(), Column::upload(stream, &[5i32, 9]).unwrap());
        let other_key = Column::upload(stream, &[1u8, 1]).unwrap();
        let as_of = |times: &Column<i32>| {
            join::as_of(stream, (&key, &time), (&other_key, times)).unwrap().to_vec(stream).unwrap()
        };
        assert_eq!(as_of(&Column::upload_optional(stream, &[None, Some(7)]).unwrap()), [NO_ROW, 1]);
        assert_eq!(as_of(&Column::upload_optional(stream, &[None, None]).unwrap()), [NO_ROW; 2]);
        // A byte that is even is valid, too.
        assert_eq!(as_of(&with_valid(stream, &[4, 7], &[2, 4])), [0, 1]);
        let left = with_valid(stream, &[5, 9], &[2, 0]);
        let rows = join::as_of(stream, &left, &with_valid(stream, &[4, 7], &[8, 16])).unwrap();
        assert_eq!(rows.to_vec(stream).unwrap(), [0, NO_ROW]);
    });
}

#[test]
fn not_a_number_is_the_greatest() {
    macro_rules! check {
        ($stream:ident, $type:ident) => {
            let (nan, inf) = ($type::NAN, $type::INFINITY);
            let key = Column::upload($stream, &[0u8, 0, 1, 1, 2, 2]).unwrap();
            let values = Column::upload($stream, &[nan, nan, 1.0, nan, -inf, inf]).unwrap();
            let groups = group_by($stream, &key).unwrap();
            let least = groups.min($stream, &values).unwrap().to_vec($stream).unwrap();
            assert!(least[0].is_nan() && least[1..] == [1.0, -inf], "{least:?}");
            let most = groups.max($stream, &values).unwrap().to_vec($stream).unwrap();
            assert!(most[0].is_nan() && most[1].is_nan() && most[2] == inf, "{most:?}");
        };
    }
    on_devices(|stream| {
        check!(stream, f32);
        check!(stream, f64);
    });
}

#[test]
fn means_of_infinities_and_variances_of_large_floats() {
    on_devices(|stream| {
        let inf = f64::INFINITY;
        let key = Column::upload(stream, &[0u8, 0, 1, 1, 2]).unwrap();
        let groups = group_by(stream, &key).unwrap();
        let means = groups.mean(stream, &Column::upload(stream, &[inf, inf, 1.0, -inf, 3.0]).unwrap()).unwrap();
        assert_eq!(means.to_vec(stream).unwrap(), [inf, -inf, 3.0]);
        let values = Column::upload(stream, &[1e200, 1e200, 3.0, 1.0, -1e300]).unwrap();
        assert_eq!(groups.variance(stream, &values, false).unwrap().to_vec(stream).unwrap(), [0.0, 1.0, 0.0]);
    });
}

#[test]
fn both_sides_of_a_join_have_the_same_order() {
    on_devices(|stream| {
        let (a, b) = (Column::upload(stream, &[1u8, 2]).unwrap(), Column::upload(stream, &[2u8, 1]).unwrap());
        let wrong = |result: Result<join::Joined, Error>| matches!(result, Err(Error::InvalidOption { .. }));
        assert!(wrong(join::inner(stream, desc(&a), &b)));
        assert!(wrong(join::left(stream, (&a, &a), (asc(&b), desc(&b)))));
        let joined = join::inner(stream, desc(&a), desc(&b)).unwrap();
        assert_eq!(joined.right.to_vec(stream).unwrap(), [1, 0]);
    });
}

#[test]
fn rows_of_rows_are_a_key() {
    on_devices(|stream| {
        let (a, b) = (Column::upload(stream, &[5u8, 9, 7]).unwrap(), Column::upload(stream, &[0u8, 1]).unwrap());
        let inner = Rows::new(stream.upload(&[2u32, 0, 1]).unwrap()).unwrap(); // 7, 5, 9
        let rows = filter(stream, counting(0u32, 3), predicate!(|i: u32| i != 1)).unwrap(); // 7, 9
        // Row 1 of `inner.on(&a)` is 5; not that of `a`, which is 9.
        assert_eq!(join::inner(stream, rows.on(inner.on(&a)), &a).unwrap().right.to_vec(stream).unwrap(), [2, 1]);
        let order = sort_by(stream, (desc(&b), rows.on(inner.on(&a)))).unwrap();
        assert_eq!(order.to_vec(stream).unwrap(), [1, 0]);
        let twice = Rows::new(stream.upload(&[1u32, 4]).unwrap()).unwrap(); // 9, null
        let groups = group_by(stream, twice.on(rows.on((inner.on(&a), desc(&b))))).err();
        // `b` is as long as `rows`: its rows 0 and 2 do not all exist.
        assert!(matches!(groups, Some(Error::LengthMismatch { .. })));
        let order = sort_by(stream, twice.on(rows.on(inner.on(&a)))).unwrap();
        assert_eq!(order.to_vec(stream).unwrap(), [1, 0]);
        assert!(is_wrong_length(sort_by(stream, rows.on(rows.on(&a)))));
    });
}

#[test]
fn ranks_of_long_columns_and_bits_of_valid_rows() {
    on_devices(|stream| {
        // A column of 64 bits with nulls, beside another one.
        let wide = Column::upload_optional(stream, &[Some(i64::MAX), None, Some(i64::MIN), Some(i64::MAX)]).unwrap();
        let narrow = Column::upload(stream, &[2u32, 9, 1, 1]).unwrap();
        assert_eq!(sort_by(stream, (&wide, &narrow)).unwrap().to_vec(stream).unwrap(), [1, 2, 3, 0]);
        assert_eq!(sort_by(stream, (desc(&narrow), &wide)).unwrap().to_vec(stream).unwrap(), [1, 0, 2, 3]);
        assert_eq!(group_by(stream, &wide).unwrap().len(), 3);
        let bytes = stream.upload(&[0xFFu8]).unwrap();
        let values = || stream.upload(&[1u32, 2]).unwrap();
        assert!(matches!(Column::with_valid_bits(stream, values(), &bytes, 7), Err(Error::RangeOutside { .. })));
        assert_eq!(Column::with_valid_bits(stream, values(), &bytes, 6).unwrap().to_vec(stream).unwrap(), [1, 2]);
    });
}
