//! Decimals, dates and timestamps against plain Rust and the calendar.

use gpu_primitives::{CpuOptions, Device, Error, Stream};
use gpu_relational::{Column, Dates, Decimals, Groups, Rows, TimeUnit, Timestamps, group_by, join, sort_by};

/// The CPU device. It refuses what a GPU would refuse.
fn cpu() -> Device {
    Device::cpu_with(CpuOptions { only_with_ptx: true, ..CpuOptions::default() })
}

/// Runs a test on the CPU device, and on the one that checks every access.
fn on_devices(test: impl Fn(&Stream)) {
    test(&cpu().stream().unwrap());
    test(&Device::cpu_checked().stream().unwrap());
}

fn is_refused<T>(result: Result<T, Error>, row: &str) -> bool {
    let Err(error) = result else { return false };
    matches!(&error, Error::InvalidOption { .. }) && error.to_string().contains(row)
}

fn strings(stream: &Stream, decimals: &Decimals<i128>) -> Vec<Option<String>> {
    decimals.to_strings(stream).unwrap()
}

fn wide(stream: &Stream, numbers: &[Option<i128>], scale: u8) -> Decimals<i128> {
    Decimals::new(Column::upload_optional(stream, numbers).unwrap(), scale).unwrap()
}

#[test]
fn decimals_are_read_and_written() {
    on_devices(|stream| {
        let read = |string: &str, scale: u8| Decimals::<i64>::upload(stream, [string], scale);
        for (string, scale, written) in [
            ("0", 0, "0"),
            ("-0.05", 2, "-0.05"),
            ("+7", 2, "7.00"),
            (".5", 1, "0.5"),
            ("5.", 1, "5.0"),
            ("-9223372036854775808", 0, "-9223372036854775808"),
            ("9.223372036854775807", 18, "9.223372036854775807"),
        ] {
            assert_eq!(read(string, scale).unwrap().to_strings(stream).unwrap(), [Some(written.to_owned())]);
        }
        for (string, scale) in [
            ("", 2),
            (".", 2),
            ("-", 2),
            ("1e3", 2),
            ("0.005", 2),
            ("--1", 0),
            ("1.2.3", 4),
            ("9223372036854775808", 0),
            ("١", 0),
        ] {
            assert!(is_refused(read(string, scale), "at the scale"), "{string}");
        }
        assert!(is_refused(read("1", 19), "19"));
        assert!(Decimals::<i128>::upload(stream, ["170141183460469231731687303715884105727"], 0).is_ok());
        assert!(Decimals::<i128>::upload(stream, ["170141183460469231731687303715884105728"], 0).is_err());
        assert!(Decimals::<i128>::upload(stream, [], 39).is_err());
        let some = Decimals::<i64>::upload_optional(stream, [Some("1.5"), None], 1).unwrap();
        assert_eq!(some.to_strings(stream).unwrap(), [Some("1.5".into()), None]);
        assert_eq!(some.numbers().to_vec(stream).unwrap(), [15, 0]);
    });
}

#[test]
fn arithmetic_is_exact_or_an_error() {
    const NUMBERS: [i128; 12] = [
        0,
        1,
        -1,
        5,
        -15,
        999_999_999_999,
        i64::MAX as i128,
        i64::MIN as i128,
        1 << 64,
        -(1 << 65) - 3,
        i128::MAX,
        -i128::MAX,
    ];
    let devices = [(cpu(), false), (Device::cpu_checked(), true)];
    for (device, is_checked) in devices {
        let stream = &device.stream().unwrap();
        // Each pair on its own: a pair that overflows is an error of the whole column.
        let column = |x: i128| wide(stream, &[None, Some(x)], 0);
        let numbers = if is_checked { &NUMBERS[9..] } else { &NUMBERS[..] };
        let columns: Vec<_> = numbers.iter().map(|&x| column(x)).collect();
        let check = |found: Result<Decimals<i128>, Error>, expected: Option<i128>, what: &str| match expected {
            Some(expected) if expected != i128::MIN => {
                assert_eq!(found.unwrap().numbers().to_options(stream).unwrap(), [None, Some(expected)], "{what}");
            }
            _ => assert!(is_refused(found, "row 1"), "{what}"),
        };
        for (a, of_a) in numbers.iter().zip(&columns) {
            for (b, of_b) in numbers.iter().zip(&columns) {
                check(of_a.add(stream, of_b), a.checked_add(*b), &format!("{a} + {b}"));
                check(of_a.sub(stream, of_b), a.checked_sub(*b), &format!("{a} - {b}"));
                check(of_a.mul(stream, of_b), a.checked_mul(*b), &format!("{a} * {b}"));
            }
            for scale in [1, 9, 10, 20, 38] {
                let scaled = a.checked_mul(10i128.pow(scale.into()));
                check(of_a.rescale(stream, scale), scaled, &format!("{a} at {scale}"));
                // And back, with a digit that rounds.
                let from = wide(stream, &[None, Some(*a)], scale);
                let unit = 10u128.pow(scale.into());
                let rounded = (a.unsigned_abs() + unit / 2) / unit;
                let rounded = if *a < 0 { -(rounded as i128) } else { rounded as i128 };
                check(from.rescale(stream, 0), Some(rounded), &format!("{a} from {scale}"));
            }
        }
        // The least number: only its null may be in a sum.
        let least = column(i128::MIN);
        let one = column(1);
        assert!(is_refused(one.sub(stream, &least), "row 1"));
        assert!(is_refused(least.mul(stream, &one), "row 1"));
        let null = wide(stream, &[Some(1), None], 0);
        assert_eq!(strings(stream, &null.sub(stream, &least).unwrap()), [None, None]);
        let hidden = Column::with_valid(stream.upload(&[i128::MAX]).unwrap(), stream.upload(&[0u8]).unwrap()).unwrap();
        let hidden = Decimals::new(hidden, 0).unwrap();
        assert_eq!(hidden.add(stream, &hidden).unwrap().numbers().to_vec(stream).unwrap(), [0]);
        assert_eq!(hidden.rescale(stream, 5).unwrap().numbers().to_vec(stream).unwrap(), [0]);
    }
}

/// A product of numbers, in digits of 32 bits.
fn product(factors: &[u128]) -> Vec<u32> {
    let mut all = vec![1u32];
    for &factor in factors {
        let mut next = vec![0u32; all.len() + 4];
        for (i, &digit) in all.iter().enumerate() {
            let mut carry = 0u64;
            for j in 0..next.len() - i {
                let part = if j < 4 { (factor >> (32 * j)) as u32 } else { 0 };
                let sum = u64::from(digit) * u64::from(part) + u64::from(next[i + j]) + carry;
                (next[i + j], carry) = (sum as u32, sum >> 32);
            }
        }
        all = next;
    }
    while all.last() == Some(&0) {
        all.pop();
    }
    all
}

fn is_less(a: &[u32], b: &[u32]) -> bool {
    a.len().cmp(&b.len()).then_with(|| a.iter().rev().cmp(b.iter().rev())).is_lt()
}

#[test]
fn quotients_are_exact_or_an_error() {
    /// Checks that `quotient` is `a / b` rounded, where `a` and `b` have these scales.
    fn is_rounded(quotient: u128, a: (u128, u8), b: (u128, u8), scale: u8) -> bool {
        let power = |exponent: u8| 10u128.pow(exponent.into());
        let twice = product(&[2, a.0, power(scale), power(b.1)]);
        let bound = |twice: u128| product(&[twice, b.0, power(a.1)]);
        (quotient == 0 || !is_less(&twice, &bound(2 * quotient - 1))) && is_less(&twice, &bound(2 * quotient + 1))
    }
    const NUMBERS: [i128; 10] =
        [0, 1, -1, 7, -15, 999_999_999_999, i64::MIN as i128, (1 << 100) - 9, i128::MAX / 3, -i128::MAX];
    const SCALES: [(u8, u8, u8); 8] =
        [(0, 0, 0), (2, 2, 2), (0, 0, 6), (2, 0, 5), (9, 0, 0), (38, 0, 0), (0, 38, 38), (3, 18, 1)];
    for (device, numbers) in [(cpu(), &NUMBERS[..]), (Device::cpu_checked(), &NUMBERS[2..5])] {
        let stream = &device.stream().unwrap();
        for (of_a, of_b, scale) in if numbers.len() == 10 { &SCALES[..] } else { &SCALES[3..5] } {
            for &a in numbers {
                for &b in numbers {
                    let what = format!("{a} / {b}: {of_a}, {of_b}, {scale}");
                    // A null, whose element is not asked, and the pair.
                    let column = |x: i128, of: u8| wide(stream, &[None, Some(x)], of);
                    let found = column(a, *of_a).div(stream, &column(b, *of_b), *scale);
                    let parts = ((a.unsigned_abs(), *of_a), (b.unsigned_abs(), *of_b));
                    match found {
                        Ok(found) => {
                            assert_eq!(found.scale(), *scale);
                            let quotient = found.numbers().to_options(stream).unwrap();
                            assert_eq!((quotient[0], quotient[1].is_none()), (None, b == 0), "{what}");
                            let quotient = quotient[1].unwrap_or(0);
                            assert!(quotient == 0 || (quotient < 0) == ((a < 0) != (b < 0)), "{what}: {quotient}");
                            assert!(
                                b == 0 || is_rounded(quotient.unsigned_abs(), parts.0, parts.1, *scale),
                                "{what}: {quotient}"
                            );
                        }
                        error => {
                            let too_large = product(&[u128::MAX, parts.1.0, 10u128.pow((*of_a).into())]);
                            let twice =
                                product(&[2, parts.0.0, 10u128.pow((*scale).into()), 10u128.pow((*of_b).into())]);
                            assert!(b != 0 && !is_less(&twice, &too_large) && is_refused(error, "row 1"), "{what}");
                        }
                    }
                }
            }
        }
    }
    let stream = &cpu().stream().unwrap();
    let (a, b) = (["7.5", "-7.5", "0.1", "-9223372036854775.808"], ["3", "-3", "0", "0.001"]);
    let a = Decimals::<i64>::upload(stream, a, 3).unwrap();
    let b = Decimals::<i64>::upload(stream, b, 3).unwrap();
    let found = strings(stream, &a.div(stream, &b, 0).unwrap());
    assert_eq!(found, [Some("3".into()), Some("3".into()), None, Some("-9223372036854775808".into())]);
    assert!(matches!(a.div(stream, &wide(stream, &[], 0), 0), Err(Error::LengthMismatch { .. })));
    assert!(a.div(stream, &b, 39).is_err());
}

#[test]
fn decimals_of_64_bits() {
    on_devices(|stream| {
        let a = Decimals::<i64>::upload_optional(stream, [Some("1.25"), None, Some("-3.00")], 2).unwrap();
        let b = Decimals::<i64>::upload(stream, ["0.005", "1", "-2"], 3).unwrap();
        let some = |strings: [Option<&str>; 3]| strings.map(|x| x.map(str::to_owned));
        assert_eq!(strings(stream, &a.add(stream, &b).unwrap()), some([Some("1.255"), None, Some("-5.000")]));
        assert_eq!(strings(stream, &b.sub(stream, &a).unwrap()), some([Some("-1.245"), None, Some("1.000")]));
        let product = a.mul(stream, &b).unwrap();
        assert_eq!(strings(stream, &product), some([Some("0.00625"), None, Some("6.00000")]));
        let rounded = product.rescale(stream, 2).unwrap().narrow(stream).unwrap();
        assert_eq!(rounded.to_strings(stream).unwrap(), some([Some("0.01"), None, Some("6.00")]));
        assert_eq!(a.to_floats(stream).unwrap().to_options(stream).unwrap(), [Some(1.25), None, Some(-3.0)]);
        let (most, least) =
            (Column::upload(stream, &[i64::MAX]).unwrap(), Column::upload(stream, &[i64::MIN]).unwrap());
        let (most, least) = (Decimals::new(most, 0).unwrap(), Decimals::new(least, 0).unwrap());
        let difference = most.sub(stream, &least).unwrap();
        assert_eq!(difference.numbers().to_vec(stream).unwrap(), [u64::MAX.into()]);
        assert!(is_refused(difference.narrow(stream), "row 0"));
        assert_eq!(least.mul(stream, &least).unwrap().numbers().to_vec(stream).unwrap(), [1 << 126]);
        assert_eq!(least.widen(stream).unwrap().narrow(stream).unwrap().numbers().to_vec(stream).unwrap(), [i64::MIN]);
        assert!(is_refused(most.rescale(stream, 1), "row 0"));
        // The scales of a product may be too large, and lengths may differ.
        let fine = wide(stream, &[Some(1)], 30);
        assert!(is_refused(fine.mul(stream, &fine), "60"));
        assert!(is_refused(fine.narrow(stream), "30"));
        assert!(matches!(a.add(stream, &most), Err(Error::LengthMismatch { .. })));
        let floats = Column::upload_optional(stream, &[Some(0.125), Some(-2.5), None, Some(9.2e16)]).unwrap();
        let read = Decimals::from_floats(stream, &floats, 2).unwrap();
        assert_eq!(
            read.numbers().to_options(stream).unwrap(),
            [Some(13), Some(-250), None, Some(9_200_000_000_000_000_000)]
        );
        for wrong in [f64::NAN, f64::INFINITY, -9.3e18] {
            let floats = Column::upload(stream, &[0.0, wrong]).unwrap();
            assert!(is_refused(Decimals::from_floats(stream, &floats, 0), "row 1"));
        }
    });
}

#[test]
fn decimals_in_groups_and_keys() {
    on_devices(|stream| {
        let shop = Column::upload(stream, b"abaab").unwrap();
        let prices = [Some("1.00"), None, Some("2.50"), Some("-0.25"), None];
        let price = Decimals::<i64>::upload_optional(stream, prices, 2).unwrap();
        let groups = group_by(stream, &shop).unwrap();
        let some = |x: &str| [Some(x.to_owned()), None];
        assert_eq!(strings(stream, &groups.sum(stream, &price).unwrap()), some("3.25"));
        assert_eq!(groups.min(stream, &price).unwrap().to_strings(stream).unwrap(), some("-0.25"));
        assert_eq!(groups.max(stream, &price).unwrap().to_strings(stream).unwrap(), some("2.50"));
        let mean = groups.mean(stream, &price).unwrap().to_options(stream).unwrap();
        assert_eq!(mean, [Some(325.0 / 3.0 / 100.0), None]);
        let variance = groups.variance(stream, &price, false).unwrap().to_options(stream).unwrap();
        assert!((variance[0].unwrap() - 1.263_888_888).abs() < 1e-6, "{variance:?}");
        assert_eq!(sort_by(stream, &price).unwrap().to_vec(stream).unwrap(), [1, 4, 3, 0, 2]);
        let same = join::inner(stream, &price, &price).unwrap();
        assert_eq!(same.right.to_vec(stream).unwrap(), [0, 2, 3]);
        let other = price.rescale(stream, 3).unwrap();
        assert!(is_refused(join::inner(stream, &price, &other), "rescale"));
        let taken = Rows::new(stream.upload(&[2u32, 9]).unwrap()).unwrap().take(stream, &other).unwrap();
        assert_eq!(taken.to_strings(stream).unwrap(), some("2.500"));

        // Sums of 128 bits, which are larger on the way, and too large.
        let sum = |numbers: &[i128]| {
            let column = Column::upload(stream, numbers).unwrap();
            Groups::all(stream, numbers.len()).unwrap().sum(stream, &column)
        };
        assert_eq!(sum(&[i128::MAX, i128::MAX, i128::MIN, -i128::MAX]).unwrap().to_vec(stream).unwrap(), [-1]);
        assert_eq!(sum(&[i128::MIN, -1, 1]).unwrap().to_vec(stream).unwrap(), [i128::MIN]);
        assert_eq!(sum(&[-1, 1 << 64, -1]).unwrap().to_vec(stream).unwrap(), [(1 << 64) - 2]);
        assert!(is_refused(sum(&[i128::MAX, 1]), "group 0"));
        assert!(is_refused(sum(&[i128::MIN, -1]), "group 0"));
        let unsigned = Column::upload(stream, &[u128::MAX, 0, u128::MAX, 1]).unwrap();
        let (key, fits) =
            (Column::upload(stream, &[0u8, 0, 1, 1]).unwrap(), Column::upload(stream, &[1u8, 1, 0, 1]).unwrap());
        assert!(is_refused(group_by(stream, &key).unwrap().sum(stream, &unsigned), "group 1"));
        let unsigned = unsigned.and_valid(
            stream,
            &Column::with_valid(fits.into_parts().0, stream.upload(&[1u8, 1, 0, 1]).unwrap()).unwrap(),
        );
        let sums = group_by(stream, &key).unwrap().sum(stream, &unsigned.unwrap()).unwrap();
        assert_eq!(sums.to_vec(stream).unwrap(), [u128::MAX, 1]);
    });
}

/// The date after another one, by the rules of the calendar alone.
fn next(date: (i32, u32, u32)) -> (i32, u32, u32) {
    let (year, month, day) = date;
    let is_leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    let days = [31, if is_leap { 29 } else { 28 }, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    if day < days[month as usize - 1] {
        (year, month, day + 1)
    } else if month < 12 {
        (year, month + 1, 1)
    } else {
        (year + 1, 1, 1)
    }
}

#[test]
fn dates_of_eight_centuries() {
    let stream = &cpu().stream().unwrap();
    let first = Dates::day(1599, 12, 31).unwrap();
    let mut expected = vec![(1599, 12, 31)];
    while expected.last() != Some(&(2401, 1, 1)) {
        expected.push(next(expected[expected.len() - 1]));
    }
    assert_eq!(expected.iter().position(|date| *date == (1970, 1, 1)), Some(-first as usize));
    let days: Vec<i32> = (first..).take(expected.len()).collect();
    let dates = Dates::new(Column::upload(stream, &days).unwrap());
    assert_eq!(dates.year(stream).unwrap().to_vec(stream).unwrap(), expected.iter().map(|x| x.0).collect::<Vec<_>>());
    let months = dates.month(stream).unwrap().to_vec(stream).unwrap();
    assert!(months.iter().zip(&expected).all(|(month, x)| u32::from(*month) == x.1));
    let of_month = dates.day_of_month(stream).unwrap().to_vec(stream).unwrap();
    assert!(of_month.iter().zip(&expected).all(|(day, x)| u32::from(*day) == x.2));
    let firsts = dates.first_of_month(stream).unwrap().days().to_vec(stream).unwrap();
    assert!(firsts.iter().zip(&days).zip(&expected).all(|((first, day), x)| *first == *day - x.2 as i32 + 1));
    assert!(expected.iter().zip(&days).all(|(x, day)| Dates::day(x.0, x.1, x.2) == Some(*day)));
    // 1970 began on a Thursday.
    let weekdays = dates.weekday(stream).unwrap().to_vec(stream).unwrap();
    assert!(weekdays.iter().zip(&days).all(|(weekday, day)| i32::from(*weekday) == (*day + 3).rem_euclid(7) + 1));
}

#[test]
fn dates_at_the_edges() {
    on_devices(|stream| {
        for (year, month, day) in
            [(2023, 2, 29), (1900, 2, 29), (2000, 13, 1), (2000, 0, 1), (2000, 4, 31), (2000, 1, 0), (5_881_580, 7, 12)]
        {
            assert_eq!(Dates::day(year, month, day), None);
        }
        assert_eq!((Dates::day(5_881_580, 7, 11), Dates::day(-5_877_641, 6, 23)), (Some(i32::MAX), Some(i32::MIN)));
        let edges =
            Dates::new(Column::upload_optional(stream, &[Some(i32::MAX), Some(i32::MIN), None, Some(-1)]).unwrap());
        let written =
            ["5881580-07-11", "-5877641-06-23", "", "1969-12-31"].map(|x| (!x.is_empty()).then(|| x.to_owned()));
        assert_eq!(edges.to_strings(stream).unwrap(), written);
        let again = Dates::upload_optional(stream, written.iter().map(Option::as_deref)).unwrap();
        assert_eq!(again.days().to_options(stream).unwrap(), edges.days().to_options(stream).unwrap());
        assert_eq!(edges.year(stream).unwrap().to_vec(stream).unwrap(), [5_881_580, -5_877_641, 0, 1969]);
        assert_eq!(edges.weekday(stream).unwrap().to_options(stream).unwrap(), [Some(5), Some(2), None, Some(3)]);
        assert_eq!(
            edges.first_of_month(stream).unwrap().days().to_vec(stream).unwrap(),
            [i32::MAX - 10, i32::MIN, 0, -31]
        );
        for wrong in
            ["", "1995-3-15", "1995-03-32", "95-03-01", "1995-03-01-", "1995/03/01", "--95-03-01", "+1995-03-01"]
        {
            assert!(is_refused(Dates::upload(stream, [wrong]), "date"), "{wrong}");
        }
        let groups = group_by(stream, &edges).unwrap();
        assert_eq!(groups.rows().to_vec(stream).unwrap(), [2, 1, 3, 0]);
        let all = Groups::all(stream, 4).unwrap();
        assert_eq!(all.max(stream, &edges).unwrap().to_strings(stream).unwrap(), [written[0].clone()]);
    });
}

#[test]
fn timestamps_of_all_units() {
    on_devices(|stream| {
        let moments = |numbers: &[i64], unit| Timestamps::new(Column::upload(stream, numbers).unwrap(), unit);
        let seconds = moments(&[0, -1, 86_400, -86_400, -86_401], TimeUnit::Second);
        assert_eq!(seconds.dates(stream).unwrap().days().to_vec(stream).unwrap(), [0, -1, 1, -1, -2]);
        assert_eq!(seconds.time_of_day(stream).unwrap().to_vec(stream).unwrap(), [0, 86_399, 0, 0, 86_399]);
        let nanoseconds = seconds.convert(stream, TimeUnit::Nanosecond).unwrap();
        assert_eq!(nanoseconds.numbers().to_vec(stream).unwrap()[4], -86_401_000_000_000);
        assert_eq!(nanoseconds.dates(stream).unwrap().days().to_vec(stream).unwrap(), [0, -1, 1, -1, -2]);
        let fine = moments(&[-1, 1_999_999_999, i64::MIN], TimeUnit::Nanosecond);
        let whole = fine.convert(stream, TimeUnit::Second).unwrap();
        assert_eq!(whole.numbers().to_vec(stream).unwrap(), [-1, 1, -9_223_372_037]);
        assert_eq!(fine.to_strings(stream).unwrap()[1].as_deref(), Some("1970-01-01T00:00:01.999999999"));
        assert_eq!(fine.to_strings(stream).unwrap()[2].as_deref(), Some("1677-09-21T00:12:43.145224192"));
        let far = moments(&[0, i64::MAX], TimeUnit::Second);
        assert!(is_refused(far.convert(stream, TimeUnit::Millisecond), "row 1"));
        assert!(is_refused(far.dates(stream), "row 1"));
        assert!(far.to_strings(stream).unwrap()[1].is_some());
        assert!(is_refused(join::as_of(stream, &far, &fine), "convert"));
        let zoned = moments(&[5, 3], TimeUnit::Second).with_zone("Europe/Berlin");
        let first = Groups::all(stream, 2).unwrap().min(stream, &zoned).unwrap();
        assert_eq!((first.numbers().to_vec(stream).unwrap(), first.zone()), (vec![3], Some("Europe/Berlin")));
        assert_eq!(join::as_of(stream, &zoned, &first).unwrap().to_vec(stream).unwrap(), [0, 0]);
    });
}
