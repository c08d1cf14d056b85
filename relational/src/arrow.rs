//! Columns from Arrow arrays in host memory, and the other way, also by Arrow's C data interface.
//!
//! [`FromArrow`] and [`ToArrow`] convert [`ArrayData`], which is what every array of `arrow-rs` is made of (`array.to_data()`,
//! `make_array(data)`). [`import`] and [`export`] do the same by the C data interface, which other languages have, too.
//! [`import_device`] and [`export_device`] copy nothing: what is on a GPU stays there. Needs the feature `arrow`.
//!
//! | column | from arrays of | makes arrays of |
//! | --- | --- | --- |
//! | `Column<i8>` and the like, `Column<f32>`, `Column<f64>` | the same type | the same type |
//! | `Column<u8>` | `UInt8`, `Boolean` | `UInt8` |
//! | [`Strings`] | `Dictionary` of any integers and `Utf8` or `LargeUtf8`; these alone | `Dictionary` of `UInt32` and `LargeUtf8` |
//! | [`Text`] | `Utf8`, `LargeUtf8` | `LargeUtf8` |
//! | [`Decimals<i64>`](Decimals) | `Decimal32`, `Decimal64` | `Decimal64` of 18 digits |
//! | [`Decimals<i128>`](Decimals) | `Decimal32`, `Decimal64`, `Decimal128` | `Decimal128` of 38 digits |
//! | [`Dates`] | `Date32` | `Date32` |
//! | [`Timestamps`] | `Timestamp`, with a time zone or without | the same |
//!
//! Arrays may be slices of others, and have nulls. What lies under a null becomes 0. The buffers of an array are copied once, to the
//! device; those of strings with a dictionary, and bits, pass through memory of the host. Conversions to Arrow wait.
//!
//! ```
//! use arrow_buffer::Buffer;
//! use arrow_data::ArrayData;
//! use arrow_schema::DataType;
//! use gpu_primitives::{Device, Error};
//! use gpu_relational::Column;
//! use gpu_relational::arrow::{FromArrow, ToArrow, export, import};
//!
//! let stream = &Device::default()?.stream()?;
//! let array = ArrayData::builder(DataType::Int32).len(4).add_buffer(Buffer::from_vec(vec![1, 2, 3, 4])).build().unwrap();
//! let column = Column::<i32>::from_arrow(stream, &array.slice(1, 2))?;
//! assert_eq!(column.to_vec(stream)?, [2, 3]);
//! assert_eq!(column.to_arrow(stream)?, array.slice(1, 2));
//!
//! let (array, schema) = export(stream, &column)?;
//! // SAFETY: both come from `export`.
//! let again: Column<i32> = unsafe { import(stream, array, &schema)? };
//! assert_eq!(again.to_vec(stream)?, [2, 3]);
//! # Ok::<(), Error>(())
//! ```

mod device;
mod interface;

pub use device::{ArrowArray, ArrowDeviceArray, Imported, OnDevice, export_device, import_device};
pub use interface::{export, import};

use crate::decimals::Digits;
use crate::{Column, Dates, Decimals, Strings, Text, TimeUnit, Timestamps};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer};
use arrow_data::ArrayData;
use arrow_schema::{ArrowError, DataType};
use bytemuck::Pod;
use gpu_primitives::{Error, Stream};
use std::borrow::Cow;

/// A column that is made from Arrow arrays. The [module](self) has the list.
pub trait FromArrow: Sized {
    /// Copies an array to the device.
    ///
    /// # Errors
    /// [`Error::InvalidOption`] if the array has another type, or what the column cannot hold; those of [`Column::upload`].
    fn from_arrow(stream: &Stream, array: &ArrayData) -> Result<Self, Error>;
}

/// A column that makes Arrow arrays. The [module](self) has the list.
pub trait ToArrow {
    /// Copies the column to the host. Waits.
    ///
    /// # Errors
    /// [`Error::InvalidOption`] if Arrow does not have what the column has; any error of the copy.
    fn to_arrow(&self, stream: &Stream) -> Result<ArrayData, Error>;
}

fn wrong_type(array: &ArrayData, allowed: &'static str) -> Error {
    wrong_type_of(array.data_type(), allowed)
}

fn wrong_type_of(data_type: &DataType, allowed: &'static str) -> Error {
    Error::InvalidOption { what: "the type of an Arrow array", asked: data_type.to_string(), allowed }
}

fn invalid(error: &ArrowError) -> Error {
    Error::InvalidOption { what: "an Arrow array", asked: error.to_string(), allowed: "one that is valid" }
}

/// Returns the elements of the first buffer of an array that are in its slice, and `more` of them.
fn elements<T: Pod>(array: &ArrayData, more: usize) -> Result<Cow<'_, [T]>, Error> {
    let bytes = array.buffers().first().map_or(&[][..], Buffer::as_slice);
    let (start, end) = (array.offset() * size_of::<T>(), (array.offset() + array.len() + more) * size_of::<T>());
    let bytes = bytes.get(start..end).ok_or(Error::RangeOutside { start, end, len: bytes.len() })?;
    // Buffers of other libraries may be misaligned.
    let copied = |_| bytes.chunks_exact(size_of::<T>()).map(bytemuck::pod_read_unaligned).collect();
    Ok(bytemuck::try_cast_slice(bytes).map_or_else(copied, Cow::Borrowed))
}

/// Uploads elements with the nulls of an array.
fn column<T: Pod>(stream: &Stream, array: &ArrayData, elements: &[T]) -> Result<Column<T>, Error> {
    let Some(nulls) = array.nulls().filter(|nulls| nulls.null_count() > 0) else {
        return Column::upload(stream, elements);
    };
    crate::rows::expect_rows(elements.len())?;
    let (first, end) = (nulls.offset() / 8, (nulls.offset() + nulls.len()).div_ceil(8));
    let bits = stream.upload(&nulls.validity()[first..end])?;
    Column::with_valid_bits(stream, stream.upload(elements)?, &bits, nulls.offset() % 8)?.with_zeros(stream)
}

/// Returns the nulls of a column.
fn nulls<T: Pod>(stream: &Stream, column: &Column<T>) -> Result<Option<NullBuffer>, Error> {
    let Some(bits) = column.valid_bits(stream)? else { return Ok(None) };
    let bits = BooleanBuffer::new(Buffer::from_vec(bits.to_vec(stream)?), 0, column.len());
    Ok(Some(NullBuffer::new(bits)))
}

/// Makes an array of the elements of a column.
fn array<T: Pod>(stream: &Stream, column: &Column<T>, data_type: DataType) -> Result<ArrayData, Error> {
    let values = column.to_vec(stream)?;
    let builder = ArrayData::builder(data_type).len(column.len()).nulls(nulls(stream, column)?);
    // A copy, into memory that is aligned as Arrow wants it.
    let buffer = Buffer::from_slice_ref(bytemuck::cast_slice::<T, u8>(&values));
    builder.add_buffer(buffer).build().map_err(|error| invalid(&error))
}

macro_rules! columns {
    ($($type:ident $arrow:ident $(or $bits:ident)?,)*) => { $(
        impl FromArrow for Column<$type> {
            fn from_arrow(stream: &Stream, array: &ArrayData) -> Result<Self, Error> {
                match array.data_type() {
                    DataType::$arrow => column(stream, array, &elements::<$type>(array, 0)?),
                    $(DataType::$bits => column(stream, array, &bits(array)?),)?
                    _ => Err(wrong_type(array, concat!(stringify!($arrow), $(" or ", stringify!($bits))?))),
                }
            }
        }

        impl ToArrow for Column<$type> {
            fn to_arrow(&self, stream: &Stream) -> Result<ArrayData, Error> {
                array(stream, self, DataType::$arrow)
            }
        }
    )* };
}

columns! {
    i8 Int8, i16 Int16, i32 Int32, i64 Int64, u8 UInt8 or Boolean, u16 UInt16, u32 UInt32, u64 UInt64, f32 Float32, f64 Float64,
}

/// Returns the bits of an array of these.
fn bits(array: &ArrayData) -> Result<Vec<u8>, Error> {
    let bytes = array.buffers().first().map_or(&[][..], Buffer::as_slice);
    let (start, end, len) = (array.offset(), array.offset() + array.len(), bytes.len() * 8);
    if end > len {
        return Err(Error::RangeOutside { start, end, len });
    }
    Ok((start..end).map(|bit| (bytes[bit / 8] >> (bit % 8)) & 1).collect())
}

/// Returns where the strings of an array begin and end, and their bytes.
fn strings(array: &ArrayData) -> Result<(Vec<u64>, &[u8]), Error> {
    let offsets: Vec<u64> = match array.data_type() {
        // An array without rows may have no offsets, either.
        DataType::Utf8 | DataType::LargeUtf8 if array.is_empty() => vec![0],
        DataType::Utf8 => elements::<i32>(array, 1)?.iter().map(|&offset| offset as u64).collect(),
        DataType::LargeUtf8 => elements::<i64>(array, 1)?.iter().map(|&offset| offset as u64).collect(),
        _ => {
            return Err(wrong_type(
                array,
                "Utf8, LargeUtf8, or, for `Strings`, a Dictionary of these; cast a Utf8View",
            ));
        }
    };
    let bytes = array.buffers().get(1).map_or(&[][..], Buffer::as_slice);
    let len = bytes.len();
    for (index, pair) in offsets.windows(2).enumerate() {
        if pair[0] > pair[1] || pair[1] > len as u64 {
            return Err(Error::InvalidOffsets { index: index + 1, offset: pair[1], previous: pair[0], len });
        }
    }
    let (first, last) = (offsets[0], offsets[offsets.len() - 1]);
    let bytes = if first == last { &[] } else { &bytes[first as usize..last as usize] };
    Ok((offsets.iter().map(|offset| offset - first).collect(), bytes))
}

impl FromArrow for Text {
    fn from_arrow(stream: &Stream, array: &ArrayData) -> Result<Self, Error> {
        let (offsets, bytes) = strings(array)?;
        // Only which rows are valid matters here.
        let (_, valid) = column(stream, array, &vec![0u8; array.len()])?.into_parts();
        Text::of_parts(stream.upload(&offsets)?, stream.upload(bytes)?, valid)
    }
}

/// Makes an array of strings.
fn large_strings(offsets: Vec<i64>, bytes: &[u8], nulls: Option<NullBuffer>) -> Result<ArrayData, Error> {
    let builder = ArrayData::builder(DataType::LargeUtf8).len(offsets.len() - 1).nulls(nulls);
    let builder = builder.add_buffer(Buffer::from_vec(offsets)).add_buffer(Buffer::from(bytes));
    builder.build().map_err(|error| invalid(&error))
}

impl ToArrow for Text {
    fn to_arrow(&self, stream: &Stream) -> Result<ArrayData, Error> {
        let (offsets, bytes, valid) = self.parts();
        let offsets = offsets.to_vec(stream)?.into_iter().map(|offset| offset as i64).collect();
        let valid = valid.map(|valid| valid.to_vec(stream)).transpose()?;
        let nulls = valid.map(|valid| NullBuffer::from_iter(valid.into_iter().map(|valid| valid != 0)));
        large_strings(offsets, &bytes.to_vec(stream)?, nulls)
    }
}

/// Returns the strings of an array.
fn words(array: &ArrayData) -> Result<Vec<Option<&str>>, Error> {
    let (offsets, bytes) = strings(array)?;
    let word = |row: usize| {
        let bytes = &bytes[offsets[row] as usize..offsets[row + 1] as usize];
        str::from_utf8(bytes).map_err(|error| invalid(&ArrowError::InvalidArgumentError(error.to_string())))
    };
    (0..array.len()).map(|row| (!array.is_null(row)).then(|| word(row)).transpose()).collect()
}

impl FromArrow for Strings {
    fn from_arrow(stream: &Stream, array: &ArrayData) -> Result<Self, Error> {
        let DataType::Dictionary(keys, _) = array.data_type() else {
            return Strings::upload_optional(stream, words(array)?);
        };
        macro_rules! numbers {
            ($($arrow:ident $type:ty,)*) => {
                match **keys {
                    // A negative number is beyond all words.
                    $(DataType::$arrow => elements::<$type>(array, 0)?.iter().map(|&number| number as usize).collect(),)*
                    _ => return Err(wrong_type(array, "a Dictionary of integers and strings")),
                }
            };
        }
        let numbers: Vec<usize> = numbers! {
            Int8 i8, Int16 i16, Int32 i32, Int64 i64, UInt8 u8, UInt16 u16, UInt32 u32, UInt64 u64,
        };
        let words = array.child_data().first().map_or(Ok(Vec::new()), words)?;
        let mut rows = Vec::with_capacity(numbers.len());
        for (row, number) in numbers.into_iter().enumerate() {
            rows.push(if array.is_null(row) {
                None
            } else {
                *words.get(number).ok_or(Error::RangeOutside { start: number, end: number, len: words.len() })?
            });
        }
        Strings::upload_optional(stream, rows)
    }
}

impl ToArrow for Strings {
    fn to_arrow(&self, stream: &Stream) -> Result<ArrayData, Error> {
        let mut offsets = vec![0i64];
        offsets.extend(self.words().iter().scan(0, |end, word| {
            *end += word.len() as i64;
            Some(*end)
        }));
        let words = large_strings(offsets, self.words().concat().as_bytes(), None)?;
        let codes = self.codes().to_vec(stream)?;
        let data_type = DataType::Dictionary(Box::new(DataType::UInt32), Box::new(DataType::LargeUtf8));
        let builder = ArrayData::builder(data_type).len(codes.len()).nulls(nulls(stream, self.codes())?);
        builder.add_buffer(Buffer::from_vec(codes)).add_child_data(words).build().map_err(|error| invalid(&error))
    }
}

/// Returns the scale of decimals, if it is not negative.
fn scale(data_type: &DataType, scale: i8) -> Result<u8, Error> {
    u8::try_from(scale).map_err(|_| wrong_type_of(data_type, "of a scale that is not negative"))
}

fn decimals<T: Digits, U: Pod + Into<T>>(
    stream: &Stream,
    array: &ArrayData,
    of_array: i8,
) -> Result<Decimals<T>, Error> {
    let numbers: Vec<T> = elements::<U>(array, 0)?.iter().map(|&number| number.into()).collect();
    Decimals::new(column(stream, array, &numbers)?, scale(array.data_type(), of_array)?)
}

impl FromArrow for Decimals<i64> {
    fn from_arrow(stream: &Stream, array: &ArrayData) -> Result<Self, Error> {
        match *array.data_type() {
            DataType::Decimal32(_, scale) => decimals::<i64, i32>(stream, array, scale),
            DataType::Decimal64(_, scale) => decimals::<i64, i64>(stream, array, scale),
            _ => Err(wrong_type(array, "Decimal32 or Decimal64; for Decimal128 use `Decimals<i128>`, and `narrow`")),
        }
    }
}

impl FromArrow for Decimals<i128> {
    fn from_arrow(stream: &Stream, array: &ArrayData) -> Result<Self, Error> {
        match *array.data_type() {
            DataType::Decimal32(_, scale) => decimals::<i128, i32>(stream, array, scale),
            DataType::Decimal64(_, scale) => decimals::<i128, i64>(stream, array, scale),
            DataType::Decimal128(_, scale) => decimals::<i128, i128>(stream, array, scale),
            _ => Err(wrong_type(array, "Decimal32, Decimal64 or Decimal128")),
        }
    }
}

macro_rules! decimals_to_arrow {
    ($($type:ident $arrow:ident $digits:literal,)*) => { $(
        impl ToArrow for Decimals<$type> {
            /// A number of more digits than the array's is an error.
            fn to_arrow(&self, stream: &Stream) -> Result<ArrayData, Error> {
                let array = array(stream, self.numbers(), DataType::$arrow($digits, self.scale() as i8))?;
                let numbers = elements::<$type>(&array, 0)?;
                let limit = (10 as $type).pow($digits);
                let long = numbers.iter().enumerate().find(|(_, number)| **number >= limit || **number <= -limit);
                match long.map(|(row, number)| (row, *number)) {
                    Some((row, number)) => Err(Error::InvalidOption {
                        what: "a decimal for Arrow",
                        asked: format!("{number} in row {row}"),
                        allowed: concat!("of ", $digits, " digits or fewer"),
                    }),
                    None => Ok(array),
                }
            }
        }
    )* };
}

decimals_to_arrow! { i64 Decimal64 18, i128 Decimal128 38, }

impl FromArrow for Dates {
    fn from_arrow(stream: &Stream, array: &ArrayData) -> Result<Self, Error> {
        match array.data_type() {
            DataType::Date32 => Ok(Dates::new(column(stream, array, &elements::<i32>(array, 0)?)?)),
            _ => Err(wrong_type(array, "Date32")),
        }
    }
}

impl ToArrow for Dates {
    fn to_arrow(&self, stream: &Stream) -> Result<ArrayData, Error> {
        array(stream, self.days(), DataType::Date32)
    }
}

macro_rules! units {
    ($($unit:ident)*) => {
        impl From<arrow_schema::TimeUnit> for TimeUnit {
            fn from(unit: arrow_schema::TimeUnit) -> Self {
                match unit {
                    $(arrow_schema::TimeUnit::$unit => Self::$unit,)*
                }
            }
        }

        impl From<TimeUnit> for arrow_schema::TimeUnit {
            fn from(unit: TimeUnit) -> Self {
                match unit {
                    $(TimeUnit::$unit => Self::$unit,)*
                }
            }
        }
    };
}

units! { Second Millisecond Microsecond Nanosecond }

impl FromArrow for Timestamps {
    fn from_arrow(stream: &Stream, array: &ArrayData) -> Result<Self, Error> {
        let DataType::Timestamp(unit, zone) = array.data_type() else { return Err(wrong_type(array, "Timestamp")) };
        let moments = Timestamps::new(column(stream, array, &elements::<i64>(array, 0)?)?, (*unit).into());
        Ok(match zone {
            Some(zone) => moments.with_zone(zone),
            None => moments,
        })
    }
}

impl ToArrow for Timestamps {
    fn to_arrow(&self, stream: &Stream) -> Result<ArrayData, Error> {
        array(stream, self.numbers(), DataType::Timestamp(self.unit().into(), self.zone().map(Into::into)))
    }
}
