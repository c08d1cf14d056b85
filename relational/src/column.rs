//! Columns: elements on the device, of which some may be null.

use crate::rows::{Rows, expect_rows};
use bytemuck::Pod;
use gpu_primitives::operator::{map, predicate};
use gpu_primitives::source::{Source, at, counting, map as mapped, map2};
use gpu_primitives::{Bits, DeviceSlice, DeviceVec, Error, Stream, bits, transfer, transform};

/// A column of a table: elements, and which of them are valid. An element that is not valid is null.
///
/// A reference to a column is a [source](gpu_primitives::source) of its elements, so every primitive reads it.
///
/// # What lies under a null
/// Each null has an element, too, which a source gives. It is 0 where a call of this crate computed or uploaded the column. It is what
/// the caller put there in [`with_valid`](Self::with_valid), [`with_valid_bits`](Self::with_valid_bits) and
/// [`and_valid`](Self::and_valid), and what [`Rows::take`] found in such a column.
///
/// # Examples
/// ```
/// use gpu_primitives::{Device, Error};
/// use gpu_relational::Column;
///
/// let stream = Device::default()?.stream()?;
/// let ages = Column::upload_optional(&stream, &[Some(40u8), None, Some(7)])?;
/// assert_eq!(ages.to_options(&stream)?, [Some(40), None, Some(7)]);
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug)]
pub struct Column<T: Pod> {
    values: DeviceVec<T>,
    /// A byte for each element, 0 for a null; nothing, if there are no nulls.
    valid: Option<DeviceVec<u8>>,
}

impl<T: Pod> Column<T> {
    /// Copies elements of the host into a new column without nulls.
    ///
    /// # Errors
    /// [`Error::TooLong`] for 2^32 - 1 elements or more; [`Error::OutOfMemory`]; any error of the copy.
    pub fn upload(stream: &Stream, values: &[T]) -> Result<Self, Error> {
        expect_rows(values.len())?;
        Ok(Self { values: stream.upload(values)?, valid: None })
    }

    /// Copies elements and nulls of the host into a new column.
    ///
    /// # Errors
    /// Same as [`upload`](Self::upload).
    pub fn upload_optional(stream: &Stream, values: &[Option<T>]) -> Result<Self, Error> {
        let plain: Vec<T> = values.iter().map(|value| value.unwrap_or(T::zeroed())).collect();
        let valid: Vec<u8> = values.iter().map(|value| value.is_some().into()).collect();
        Self::with_valid(stream.upload(&plain)?, stream.upload(&valid)?)
    }

    /// Returns a column without nulls of elements that are on the device already.
    ///
    /// # Errors
    /// [`Error::TooLong`] for 2^32 - 1 elements or more.
    pub fn new(values: DeviceVec<T>) -> Result<Self, Error> {
        expect_rows(values.len())?;
        Ok(Self { values, valid: None })
    }

    /// Returns a column of elements, of which those are null whose byte is 0. The elements stay as they are.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if there is not a byte for each element; [`Error::TooLong`] for 2^32 - 1 elements or more.
    pub fn with_valid(values: DeviceVec<T>, valid: DeviceVec<u8>) -> Result<Self, Error> {
        expect_rows(values.len())?;
        expect_len("the bytes of valid rows", values.len(), valid.len())?;
        Ok(Self { values, valid: Some(valid) })
    }

    /// Returns a column of elements, of which those are null whose bit is 0, as Arrow has them. Bit `start` is the first element's. The
    /// elements stay as they are.
    ///
    /// # Errors
    /// [`Error::RangeOutside`] if there is not a bit for each element; [`Error::TooLong`] for 2^32 - 1 elements or more;
    /// [`Error::OutOfMemory`]; any launch error.
    pub fn with_valid_bits(
        stream: &Stream,
        values: DeviceVec<T>,
        bytes: &DeviceVec<u8>,
        start: usize,
    ) -> Result<Self, Error> {
        expect_rows(values.len())?;
        // Checks that there are enough bits.
        Bits::new(bytes, start, values.len())?;
        let bits = counting(start as u64, values.len());
        let of_bits = at(bytes, mapped(bits, map!(|bit: u64| -> u64 { bit >> 3 })));
        let valid =
            map2(of_bits, bits, map!(|byte: u8, bit: u64| -> u8 { ((byte as u32 >> (bit as u32 & 7)) & 1) as u8 }));
        Self::with_valid(values, transform::collect(stream, valid)?)
    }

    /// Computes a column without nulls from a source, for example from other columns. Reads and writes each element once.
    ///
    /// # Errors
    /// [`Error::TooLong`] for 2^32 - 1 elements or more; [`Error::OutOfMemory`]; any launch error.
    pub fn compute<'a>(stream: &Stream, source: impl Source<'a, T>) -> Result<Self, Error> {
        Self::new(transform::collect(stream, source)?)
    }

    /// Returns this column with the nulls of another one in addition: a result that is null where one of its arguments is. The elements
    /// stay as they are, also under the new nulls.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if the columns have different lengths; [`Error::OutOfMemory`]; any launch error.
    pub fn and_valid<U: Pod>(mut self, stream: &Stream, other: &Column<U>) -> Result<Self, Error> {
        expect_len("a column beside another", self.len(), other.len())?;
        self.valid = both_valid(stream, self.valid, other.valid())?;
        Ok(self)
    }

    /// Returns this column with a value in place of its nulls: SQL's `COALESCE`.
    ///
    /// ```
    /// use gpu_primitives::{Device, Error};
    /// use gpu_relational::Column;
    ///
    /// let stream = &Device::default()?.stream()?;
    /// let counts = Column::upload_optional(stream, &[Some(3u32), None])?.fill_null(stream, 7)?;
    /// assert_eq!(counts.to_options(stream)?, [Some(3), Some(7)]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]; any launch error.
    pub fn fill_null(self, stream: &Stream, value: T) -> Result<Self, Error> {
        let (Some(valid), len) = (&self.valid, self.len()) else { return Ok(self) };
        // The value is behind the last element, and nulls are gathered from there.
        let mut values = stream.uninit::<T>(len + 1)?;
        values.slice_mut(..len)?.copy_from(stream, &self.values)?;
        transfer::fill(stream, values.slice_mut(len..)?, value)?;
        let place =
            map!(len: u32 = len as u32; |place: u32, valid: u8| -> u32 { if valid != 0 { place } else { len } });
        let places = map2(counting(0u32, len), valid, place);
        Ok(Self { values: transform::collect(stream, at(&values, places))?, valid: None })
    }

    /// Returns the number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Returns whether there are no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Returns the elements.
    #[must_use]
    pub fn values(&self) -> DeviceSlice<'_, T> {
        self.values.as_slice()
    }

    /// Returns a byte for each element, 0 for a null; `None` if there are no nulls.
    #[must_use]
    pub fn valid(&self) -> Option<DeviceSlice<'_, u8>> {
        self.valid.as_ref().map(DeviceVec::as_slice)
    }

    /// Returns a bit for each element, 0 for a null, as Arrow has them; `None` if there are no nulls.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]; any launch error.
    pub fn valid_bits(&self, stream: &Stream) -> Result<Option<DeviceVec<u8>>, Error> {
        let Some(valid) = &self.valid else { return Ok(None) };
        let mut packed = stream.uninit(valid.len().div_ceil(8))?;
        bits::pack(stream, valid, &mut packed, predicate!(|valid: u8| valid != 0))?;
        Ok(Some(packed))
    }

    /// Returns the elements and what is valid of them, without copying.
    #[must_use]
    pub fn into_parts(self) -> (DeviceVec<T>, Option<DeviceVec<u8>>) {
        (self.values, self.valid)
    }

    /// Copies the elements to the host. Waits.
    ///
    /// # Errors
    /// Any error of the copy.
    pub fn to_vec(&self, stream: &Stream) -> Result<Vec<T>, Error> {
        self.values.to_vec(stream)
    }

    /// Copies the elements and nulls to the host. Waits.
    ///
    /// # Errors
    /// Any error of the copy.
    pub fn to_options(&self, stream: &Stream) -> Result<Vec<Option<T>>, Error> {
        let values = self.values.to_vec(stream)?;
        let Some(valid) = &self.valid else { return Ok(values.into_iter().map(Some).collect()) };
        let valid = valid.to_vec(stream)?;
        Ok(values.into_iter().zip(valid).map(|(value, valid)| (valid != 0).then_some(value)).collect())
    }

    /// Returns this column with zeros under its nulls.
    pub(crate) fn with_zeros(self, stream: &Stream) -> Result<Self, Error> {
        let Some(valid) = &self.valid else { return Ok(self) };
        // Beyond all elements, a source has zeros.
        let place = map!(|place: u32, valid: u8| -> u32 { if valid != 0 { place } else { 0xFFFF_FFFF } });
        let places = map2(counting(0u32, valid.len()), valid, place);
        let values = transform::collect(stream, at(&self.values, places))?;
        Ok(Self { values, ..self })
    }

    /// Returns the elements at rows: null where there is no such row.
    pub(crate) fn take(&self, stream: &Stream, rows: &Rows) -> Result<Self, Error> {
        rows.expect_in(self.len())?;
        let values = transform::collect(stream, at(&self.values, rows.positions()))?;
        Ok(Self { values, valid: valid_at(stream, self.valid(), self.len(), rows)? })
    }
}

impl<'a, T: Pod> From<&'a Column<T>> for DeviceSlice<'a, T> {
    fn from(column: &'a Column<T>) -> Self {
        column.values()
    }
}

/// Returns which rows are valid, of a column of `len` elements.
pub(crate) fn valid_at(
    stream: &Stream,
    valid: Option<DeviceSlice<'_, u8>>,
    len: usize,
    rows: &Rows,
) -> Result<Option<DeviceVec<u8>>, Error> {
    rows.expect_in(len)?;
    Ok(match valid {
        // The byte of a row that does not exist is 0.
        Some(valid) => Some(transform::collect(stream, at(valid, rows.positions()))?),
        None if !rows.may_be_missing() => None,
        None => {
            let exists = map!(len: u32 = len as u32; |row: u32| -> u8 { if row < len { 1 } else { 0 } });
            Some(transform::collect(stream, mapped(rows.positions(), exists))?)
        }
    })
}

/// Returns what is valid in both.
pub(crate) fn both_valid(
    stream: &Stream,
    a: Option<DeviceVec<u8>>,
    b: Option<DeviceSlice<'_, u8>>,
) -> Result<Option<DeviceVec<u8>>, Error> {
    let both = map!(|a: u8, b: u8| -> u8 { if a != 0 && b != 0 { 1 } else { 0 } });
    Ok(match (a, b) {
        (Some(a), Some(b)) => Some(transform::collect(stream, map2(&a, b, both))?),
        (None, Some(b)) => {
            let mut copy = stream.uninit(b.len())?;
            copy.copy_from(stream, b)?;
            Some(copy)
        }
        (a, None) => a,
    })
}

pub(crate) fn expect_len(what: &'static str, expected: usize, found: usize) -> Result<(), Error> {
    if expected == found { Ok(()) } else { Err(Error::LengthMismatch { what, expected, found }) }
}
