//! Columns from Arrow arrays and back: every type, with nulls and slices, as arrays and by the C data interface.
#![cfg(feature = "arrow")]

use arrow_buffer::{Buffer, NullBuffer};
use arrow_data::ArrayData;
use arrow_data::ffi::FFI_ArrowArray;
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{DataType, TimeUnit};
use gpu_primitives::{Device, Error, Stream};
use gpu_relational::arrow::{FromArrow, ToArrow, export, import};
use gpu_relational::{Column, Dates, Decimals, Strings, Text, Timestamps, group_by};

fn stream() -> Stream {
    Device::cpu().stream().unwrap()
}

/// The nulls of an array of this length: every third element, or none.
fn nulls(len: usize, some: bool) -> Option<NullBuffer> {
    some.then(|| (0..len).map(|i| i % 3 != 1).collect())
}

fn array(
    data_type: DataType,
    len: usize,
    some_nulls: bool,
    buffers: Vec<Buffer>,
    children: Vec<ArrayData>,
) -> ArrayData {
    let builder = ArrayData::builder(data_type).len(len).nulls(nulls(len, some_nulls));
    builder.buffers(buffers).child_data(children).build().unwrap()
}

/// Checks that slices of an array become columns, whose arrays are as `expected` makes them of the slices.
fn check<C: FromArrow + ToArrow>(array: &ArrayData, expected: impl Fn(&ArrayData) -> ArrayData) {
    let stream = &stream();
    let len = array.len();
    for (start, end) in [(0, len), (0, 0), (len, len), (1, len), (3, len - 2), (9, len - 1), (1, 2)] {
        let slice = array.slice(start, end - start);
        let column = C::from_arrow(stream, &slice).unwrap();
        let found = column.to_arrow(stream).unwrap();
        found.validate_full().unwrap();
        assert_eq!(found, expected(&slice), "{start}..{end}");

        let schema = FFI_ArrowSchema::try_from(slice.data_type()).unwrap();
        // SAFETY: an array of `arrow-data` obeys the interface, and the schema is of its type.
        let imported: C = unsafe { import(stream, FFI_ArrowArray::new(&slice), &schema).unwrap() };
        let (exported, schema) = export(stream, &imported).unwrap();
        // SAFETY: as above.
        let again: C = unsafe { import(stream, exported, &schema).unwrap() };
        assert_eq!(again.to_arrow(stream).unwrap(), found, "{start}..{end} by the interface");
    }
}

/// The number of elements of arrays: more than a byte has bits.
const LEN: usize = 21;

macro_rules! check_numbers {
    ($($type:ident $arrow:expr, $column:ty;)*) => { $(
        for some_nulls in [false, true] {
            let values: Vec<$type> = (0..LEN).map(|i| if i % 2 == 0 { i as $type } else { $type::MAX - i as $type }).collect();
            // Whatever is under nulls: arrays are equal where it differs.
            check::<$column>(&array($arrow, LEN, some_nulls, vec![Buffer::from_vec(values)], vec![]), ArrayData::clone);
        }
    )* };
}

#[test]
fn numbers_and_times() {
    check_numbers! {
        i8 DataType::Int8, Column<i8>;
        i16 DataType::Int16, Column<i16>;
        i32 DataType::Int32, Column<i32>;
        i64 DataType::Int64, Column<i64>;
        u8 DataType::UInt8, Column<u8>;
        u16 DataType::UInt16, Column<u16>;
        u32 DataType::UInt32, Column<u32>;
        u64 DataType::UInt64, Column<u64>;
        f32 DataType::Float32, Column<f32>;
        f64 DataType::Float64, Column<f64>;
        i32 DataType::Date32, Dates;
        i64 DataType::Timestamp(TimeUnit::Second, None), Timestamps;
        i64 DataType::Timestamp(TimeUnit::Microsecond, Some("+01:00".into())), Timestamps;
    }
}

#[test]
fn what_lies_under_nulls_becomes_zero() {
    let stream = &stream();
    let array = array(DataType::Int32, 4, true, vec![Buffer::from_vec(vec![1, 2, 3, 4])], vec![]);
    let column = Column::<i32>::from_arrow(stream, &array).unwrap();
    assert_eq!(column.to_options(stream).unwrap(), [Some(1), None, Some(3), Some(4)]);
    assert_eq!(column.to_vec(stream).unwrap(), [1, 0, 3, 4]);
    // An array that has no nulls in its slice makes a column without.
    assert!(Column::<i32>::from_arrow(stream, &array.slice(2, 2)).unwrap().valid().is_none());
}

#[test]
fn decimals_of_three_widths() {
    for some_nulls in [false, true] {
        let short: Vec<i32> = (0..LEN as i32).map(|i| i * 1_000_001 - 7).collect();
        let long: Vec<i64> = short.iter().map(|&x| i64::from(x)).collect();
        let longest: Vec<i128> = short.iter().map(|&x| i128::from(x)).collect();
        let make = |data_type, buffer| array(data_type, LEN, some_nulls, vec![buffer], vec![]);
        let short = make(DataType::Decimal32(9, 2), Buffer::from_vec(short));
        let long = make(DataType::Decimal64(18, 2), Buffer::from_vec(long));
        let longest = make(DataType::Decimal128(38, 2), Buffer::from_vec(longest));
        let of = |whole: &ArrayData, slice: &ArrayData| whole.slice(slice.offset(), slice.len());
        check::<Decimals<i64>>(&short, |slice| of(&long, slice));
        check::<Decimals<i64>>(&long, |slice| of(&long, slice));
        check::<Decimals<i128>>(&short, |slice| of(&longest, slice));
        check::<Decimals<i128>>(&long, |slice| of(&longest, slice));
        check::<Decimals<i128>>(&longest, |slice| of(&longest, slice));
    }
    let stream = &stream();
    let negative = array(DataType::Decimal64(9, -2), 1, false, vec![Buffer::from_vec(vec![1i64])], vec![]);
    assert!(is_refused(Decimals::<i64>::from_arrow(stream, &negative)));
    let long = Decimals::new(Column::upload(stream, &[0, 10i64.pow(18)]).unwrap(), 0).unwrap();
    assert!(is_refused(long.to_arrow(stream)));
    let long = Decimals::new(Column::upload(stream, &[-(10i128.pow(38))]).unwrap(), 0).unwrap();
    assert!(is_refused(long.to_arrow(stream)));
}

const WORDS: [&str; 5] = ["b", "", "äöü", "b", "a longer word"];

fn is_refused<T>(result: Result<T, Error>) -> bool {
    matches!(result, Err(Error::InvalidOption { .. }))
}

/// The offsets and the bytes of words.
fn strings<T: TryFrom<usize, Error: std::fmt::Debug>>(words: &[&str]) -> (Vec<T>, Buffer) {
    let ends = words.iter().scan(0, |end, word| {
        *end += word.len();
        Some(*end)
    });
    let offsets = std::iter::once(0).chain(ends).map(|end| T::try_from(end).unwrap()).collect();
    (offsets, Buffer::from(words.concat().as_bytes()))
}

fn large(words: &[&str], some_nulls: bool) -> ArrayData {
    let (offsets, bytes) = strings::<i64>(words);
    array(DataType::LargeUtf8, words.len(), some_nulls, vec![Buffer::from_vec(offsets), bytes], vec![])
}

fn small(words: &[&str], some_nulls: bool) -> ArrayData {
    let (offsets, bytes) = strings::<i32>(words);
    array(DataType::Utf8, words.len(), some_nulls, vec![Buffer::from_vec(offsets), bytes], vec![])
}

#[test]
fn strings_of_both_kinds() {
    let stream = &stream();
    let words: Vec<&str> = (0..LEN).map(|i| WORDS[i % WORDS.len()]).collect();
    for some_nulls in [false, true] {
        let large = large(&words, some_nulls);
        let of = |slice: &ArrayData| large.slice(slice.offset(), slice.len());
        check::<Text>(&large, of);
        check::<Text>(&small(&words, some_nulls), of);
        let small = small(&words, some_nulls);
        let expected: Vec<_> = (3..LEN).map(|i| (!some_nulls || i % 3 != 1).then_some(words[i])).collect();
        let column = Strings::from_arrow(stream, &small.slice(3, LEN - 3)).unwrap();
        assert_eq!(column.to_options(stream).unwrap(), expected);
        let again = Strings::from_arrow(stream, &column.to_arrow(stream).unwrap()).unwrap();
        assert_eq!(again.to_options(stream).unwrap(), expected);
        // Without rows there may be no offsets.
        let empty = ArrayData::new_empty(&DataType::Utf8);
        assert!(Text::from_arrow(stream, &empty).unwrap().is_empty());
        assert!(Strings::from_arrow(stream, &empty).unwrap().is_empty());
    }
}

#[test]
fn dictionaries_of_all_numbers() {
    let stream = &stream();
    macro_rules! check {
        ($($type:ident $arrow:ident)*) => { $(
            for some_nulls in [false, true] {
                let keys: Vec<$type> = (0..LEN).map(|i| (i * 7 % WORDS.len()) as $type).collect();
                let buffer = Buffer::from_vec(keys.clone());
                // The words are not sorted, one is there twice, and one is null.
                let data_type = DataType::Dictionary(Box::new(DataType::$arrow), Box::new(DataType::Utf8));
                let array = array(data_type, LEN, some_nulls, vec![buffer], vec![small(&WORDS, true)]);
                for (start, end) in [(0, LEN), (4, LEN - 1), (5, 5)] {
                    let slice = array.slice(start, end - start);
                    let expected: Vec<_> = (start..end).map(|i| {
                        let word = keys[i] as usize;
                        (!(some_nulls && i % 3 == 1) && word % 3 != 1).then_some(WORDS[word])
                    }).collect();
                    let schema = FFI_ArrowSchema::try_from(slice.data_type()).unwrap();
                    // SAFETY: an array of `arrow-data` obeys the interface, and the schema is of its type.
                    let column: Strings = unsafe { import(stream, FFI_ArrowArray::new(&slice), &schema).unwrap() };
                    assert_eq!(column.to_options(stream).unwrap(), expected);
                    assert!(column.words().is_sorted());
                    let again = Strings::from_arrow(stream, &column.to_arrow(stream).unwrap()).unwrap();
                    assert_eq!(again.to_options(stream).unwrap(), expected);
                    let groups = expected.iter().collect::<std::collections::BTreeSet<_>>().len();
                    assert_eq!(group_by(stream, &again).unwrap().len(), groups);
                }
            }
        )* };
    }
    check! { i8 Int8 i16 Int16 i32 Int32 i64 Int64 u8 UInt8 u16 UInt16 u32 UInt32 u64 UInt64 }
}

#[test]
fn bits_become_bytes() {
    let stream = &stream();
    for some_nulls in [false, true] {
        let bits = Buffer::from_vec(vec![0b1010_0110u8, 0b0101_1100, 0b11]);
        let array = array(DataType::Boolean, LEN, some_nulls, vec![bits], vec![]);
        for (start, end) in [(0, LEN), (5, LEN), (9, 11), (21, 21)] {
            let slice = array.slice(start, end - start);
            let bit = |i: usize| ((0b11_0101_1100_1010_0110u32 >> i) & 1) as u8;
            let expected: Vec<_> = (start..end).map(|i| (!some_nulls || i % 3 != 1).then(|| bit(i))).collect();
            assert_eq!(Column::<u8>::from_arrow(stream, &slice).unwrap().to_options(stream).unwrap(), expected);
            let schema = FFI_ArrowSchema::try_from(slice.data_type()).unwrap();
            // SAFETY: an array of `arrow-data` obeys the interface, and the schema is of its type.
            let column: Column<u8> = unsafe { import(stream, FFI_ArrowArray::new(&slice), &schema).unwrap() };
            assert_eq!(column.to_options(stream).unwrap(), expected);
        }
    }
}

#[test]
fn arrays_of_other_types_are_errors() {
    let stream = &stream();
    let numbers = array(DataType::Int32, 2, false, vec![Buffer::from_vec(vec![1, 2])], vec![]);
    assert!(is_refused(Column::<u32>::from_arrow(stream, &numbers)));
    assert!(is_refused(Text::from_arrow(stream, &numbers)));
    assert!(is_refused(Strings::from_arrow(stream, &numbers)));
    assert!(is_refused(Dates::from_arrow(stream, &numbers)));
    assert!(is_refused(Timestamps::from_arrow(stream, &numbers)));
    assert!(is_refused(Decimals::<i64>::from_arrow(stream, &numbers)));
    let long = array(DataType::Decimal128(38, 0), 1, false, vec![Buffer::from_vec(vec![1i128])], vec![]);
    assert!(is_refused(Decimals::<i64>::from_arrow(stream, &long)));
    let schema = FFI_ArrowSchema::try_from(&DataType::Int32).unwrap();
    // SAFETY: an empty array is a released one.
    assert!(is_refused(unsafe { import::<Column<i32>>(stream, FFI_ArrowArray::empty(), &schema) }));
    let nothing = FFI_ArrowSchema::try_from(&DataType::Null).unwrap();
    // SAFETY: the buffers are not looked at: there is one too few.
    let null = unsafe {
        import::<Column<i32>>(stream, FFI_ArrowArray::new(&ArrayData::new_null(&DataType::Null, 2)), &nothing)
    };
    assert!(is_refused(null));
    // Offsets of the interface that descend.
    let wrong = ArrayData::builder(DataType::Utf8).len(2).add_buffer(Buffer::from_vec(vec![0i32, 3, 1]));
    let wrong = wrong.add_buffer(Buffer::from(b"abc"));
    // SAFETY: the array is only exported, and its buffers are as long as they say.
    let wrong = unsafe { wrong.build_unchecked() };
    let schema = FFI_ArrowSchema::try_from(wrong.data_type()).unwrap();
    // SAFETY: the buffers are as long as the interface demands.
    assert!(is_refused(unsafe { import::<Text>(stream, FFI_ArrowArray::new(&wrong), &schema) }));
    // As an array of `arrow-data`, which may be one that nobody has checked.
    assert!(matches!(Text::from_arrow(stream, &wrong), Err(Error::InvalidOffsets { .. })));
}
