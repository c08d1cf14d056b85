//! Arrow's C data interface.

use super::{FromArrow, ToArrow, invalid};
use arrow_buffer::Buffer;
use arrow_data::ArrayData;
use arrow_data::ffi::FFI_ArrowArray;
use arrow_schema::DataType;
use arrow_schema::ffi::FFI_ArrowSchema;
use gpu_primitives::{Error, Stream};
use std::ptr::NonNull;
use std::sync::Arc;

/// Copies an array of the C data interface to the device. The array is released when it has been copied, or on an error; the schema
/// is the caller's.
///
/// The array is checked as far as that is possible: its type, the number of its buffers, offsets, numbers of words, UTF-8.
///
/// # Errors
/// Those of [`FromArrow::from_arrow`]; [`Error::InvalidOption`] if the array has been released, or is not valid.
///
/// # Safety
/// The array and the schema obey the C data interface: the buffers are readable, and are as long as the type, the length and the offset
/// say. [`FFI_ArrowArray::from_raw`] and [`FFI_ArrowSchema::from_raw`] take both from a producer's pointers.
pub unsafe fn import<C: FromArrow>(
    stream: &Stream,
    array: FFI_ArrowArray,
    schema: &FFI_ArrowSchema,
) -> Result<C, Error> {
    let data_type = DataType::try_from(schema).map_err(|error| invalid(&error))?;
    let array = Arc::new(array);
    // SAFETY: the caller promises what this needs, and `array` keeps it alive.
    let data = unsafe { adopt(&array, &array, &data_type)? };
    C::from_arrow(stream, &data)
}

/// Copies a column to the host, for the C data interface. The consumer releases the array and the schema; dropping them does so, too. Waits.
///
/// # Errors
/// Same as [`ToArrow::to_arrow`].
pub fn export(stream: &Stream, column: &impl ToArrow) -> Result<(FFI_ArrowArray, FFI_ArrowSchema), Error> {
    let data = column.to_arrow(stream)?;
    let schema = FFI_ArrowSchema::try_from(data.data_type()).map_err(|error| invalid(&error))?;
    Ok((FFI_ArrowArray::new(&data), schema))
}

fn refused(asked: &str, allowed: &'static str) -> Error {
    Error::InvalidOption { what: "an array of the C data interface", asked: asked.into(), allowed }
}

/// Returns the contents of an array, without copying.
///
/// # Safety
/// The array obeys the interface for this type, as long as `owner` lives.
unsafe fn adopt(owner: &Arc<FFI_ArrowArray>, array: &FFI_ArrowArray, data_type: &DataType) -> Result<ArrayData, Error> {
    if array.is_released() {
        return Err(refused("released", "one that is not"));
    }
    let (len, offset) = (array.len(), array.offset());
    // Negative numbers are large ones here.
    let rows = len.checked_add(offset).filter(|rows| *rows <= isize::MAX as usize / 32);
    let rows = rows.ok_or_else(|| refused("of a negative length or offset, or too long", "shorter"))?;
    let strings = matches!(data_type, DataType::Utf8 | DataType::LargeUtf8);
    let expected = if strings { 3 } else { 2 };
    if array.num_buffers() != expected {
        return Err(refused("of another number of buffers", "one of 2 buffers, or of 3 for strings"));
    }
    let buffer = |index: usize, bytes: usize| match NonNull::new(array.buffer(index).cast_mut()) {
        // SAFETY: the caller promises that the buffer has so many bytes while the owner lives.
        Some(pointer) if bytes > 0 => Ok(unsafe { Buffer::from_custom_allocation(pointer, bytes, owner.clone()) }),
        None if bytes > 0 => Err(refused("of a buffer that is null", "one with memory")),
        _ => Ok(Buffer::from_vec(Vec::<u8>::new())),
    };
    let has_bits = !array.buffer(0).is_null() && array.null_count_opt() != Some(0);
    let nulls = has_bits.then(|| buffer(0, rows.div_ceil(8))).transpose()?;
    let mut builder = ArrayData::builder(data_type.clone()).len(len).offset(offset).null_bit_buffer(nulls);
    if strings {
        let width = if *data_type == DataType::Utf8 { size_of::<i32>() } else { size_of::<i64>() };
        // An array without rows may have no offsets, either.
        let offsets = buffer(1, if rows == 0 { 0 } else { (rows + 1) * width })?;
        let mut last = [0u8; 8];
        if rows > 0 {
            last[..width].copy_from_slice(&offsets.as_slice()[rows * width..]);
        }
        let (last, offsets) =
            (i64::from_le_bytes(last), if rows == 0 { Buffer::from_vec(vec![0i64]) } else { offsets });
        let bytes = usize::try_from(last).ok().filter(|_| width == 8 || last <= i64::from(i32::MAX));
        let bytes = bytes.ok_or_else(|| refused("of a negative offset", "one of offsets that ascend from 0 on"))?;
        builder = builder.add_buffer(offsets).add_buffer(buffer(2, bytes)?);
    } else {
        let values = if *data_type == DataType::Boolean {
            rows.div_ceil(8)
        } else {
            rows * width(data_type)
                .ok_or_else(|| refused(&data_type.to_string(), "of a type that columns are made from"))?
        };
        builder = builder.add_buffer(buffer(1, values)?);
    }
    if let DataType::Dictionary(_, words) = data_type {
        let dictionary = array.dictionary().ok_or_else(|| refused("without its dictionary", "one that has it"))?;
        // SAFETY: the caller's promise includes the dictionary, which lives as long as the array.
        builder = builder.add_child_data(unsafe { adopt(owner, dictionary, words)? });
    }
    builder.align_buffers(true).build().map_err(|error| invalid(&error))
}

/// Returns the bytes of each element; `None` if the elements have no fixed size.
fn width(data_type: &DataType) -> Option<usize> {
    match data_type {
        DataType::Dictionary(keys, _) => keys.primitive_width(),
        other => other.primitive_width(),
    }
}
