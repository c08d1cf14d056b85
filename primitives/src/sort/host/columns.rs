//! The order of rows by several columns.

#![deny(unsafe_op_in_unsafe_fn)]

use super::lowered::{self, Coding};
use crate::host::runtime::column::{AnySlice, AnyVec, Column};
use crate::sort::device::pack::{Field, Fields, MAX_FIELDS, PackCodes, TILE, pack_codes};
use crate::sort::{Options, RadixKey, Sign};
use crate::{Bits, DeviceSlice, DeviceVec, Error, Global, Stream, expect_len};

/// The most columns that [`by_columns`] sorts by.
const MAX_COLUMNS: usize = 8;

/// A column that rows are [sorted by](by_columns): ascending, without nulls.
#[derive(Clone, Copy, Debug)]
pub struct SortColumn<'a> {
    keys: AnySlice<'a>,
    coding: Coding,
    descending: bool,
    nulls: Option<Nulls<'a>>,
}

/// Which rows are null, and where they come.
#[derive(Clone, Copy, Debug)]
struct Nulls<'a> {
    /// The bits of the others are set.
    valid: Bits<'a>,
    are_last: bool,
}

impl<'a> SortColumn<'a> {
    /// The rows in ascending order of these keys.
    pub fn new<K: RadixKey>(keys: impl Into<DeviceSlice<'a, K>>) -> Self {
        let keys: DeviceSlice<'a, K> = keys.into();
        Self { keys: keys.into(), coding: Coding::of::<K>(), descending: false, nulls: None }
    }

    /// The rows in descending order. Where nulls come does not change.
    #[must_use]
    pub fn descending(self) -> Self {
        Self { descending: true, ..self }
    }

    /// Rows whose bit is not set are null, as in Arrow. They come before all others, and are equal to each other: their keys do not
    /// matter.
    #[must_use]
    pub fn nulls_first(self, valid: Bits<'a>) -> Self {
        Self { nulls: Some(Nulls { valid, are_last: false }), ..self }
    }

    /// Rows whose bit is not set are null, and come after all others: see [`nulls_first`](Self::nulls_first).
    #[must_use]
    pub fn nulls_last(self, valid: Bits<'a>) -> Self {
        Self { nulls: Some(Nulls { valid, are_last: true }), ..self }
    }
}

/// Returns the permutation that sorts rows by up to eight columns: by the first one, rows that are equal there by the second one, and
/// so on. Element `i` of the result is the row at sorted position `i`; [`permute::gather`](crate::permute::gather) moves any column
/// by it. Rows that are equal in all columns keep their order. Does not wait.
///
/// The codes of the columns are packed into numbers of 64 bits. So two columns of 32 bits are sorted like one of 64. If there are
/// more bits, the least significant 64 are sorted first, and each further 64 bits take another sort.
///
/// ```
/// use gpu_primitives::sort::{self, SortColumn};
/// use gpu_primitives::{Bits, Device, Error, permute};
///
/// let stream = Device::default()?.stream()?;
/// let city = stream.upload(&[2u8, 1, 2, 1])?;
/// let price = stream.upload(&[9.5f32, 7.0, 11.0, 0.0])?;
/// let has_price = stream.upload(&[0b0111u8])?; // the last row has none
/// let columns = [
///     SortColumn::new(&city),
///     SortColumn::new(&price).descending().nulls_last(Bits::new(&has_price, 0, 4)?),
/// ];
/// let order = sort::by_columns(&stream, &columns)?;
/// assert_eq!(order.to_vec(&stream)?, [1, 3, 2, 0]);
///
/// let mut sorted = stream.uninit::<f32>(4)?;
/// permute::gather(&stream, &price, &order, &mut sorted)?;
/// assert_eq!(sorted.to_vec(&stream)?, [7.0, 0.0, 11.0, 9.5]);
/// # Ok::<(), Error>(())
/// ```
///
/// Temporary memory: 16 bytes per row and what the sort takes, and the codes of keys that are no numbers.
///
/// # Errors
/// [`Error::TooMany`] for no columns, or more than eight; [`Error::LengthMismatch`] if a column has another number of rows than the
/// first one, or not as many bits; [`Error::TooLong`] for more than 2^32 rows; [`Error::OutOfMemory`]; any launch error.
pub fn by_columns(stream: &Stream, columns: &[SortColumn<'_>]) -> Result<DeviceVec<u32>, Error> {
    if columns.is_empty() || columns.len() > MAX_COLUMNS {
        return Err(Error::TooMany { what: "columns to sort by", asked: columns.len(), limit: MAX_COLUMNS });
    }
    let len = columns[0].keys.len();
    let _span = crate::span!(stream, "sort::by_columns", len);
    for column in columns {
        expect_len("a column to sort by", len, column.keys.len())?;
        expect_len("the bits of a column to sort by", len, column.nulls.map_or(len, |nulls| nulls.valid.len()))?;
    }
    if let [SortColumn { keys, coding, descending, nulls: None }] = *columns {
        let options = if descending { Options::new().descending() } else { Options::new() };
        return lowered::argsort(stream, keys.into(), &coding, &options);
    }
    let mut order = lowered::indices(stream, len)?;
    if len == 0 {
        return Ok(order);
    }
    // The codes of keys that are no numbers: the memory is freed in stream order, when all is launched.
    let mut codes = Vec::new();
    let mut fields = Vec::new();
    for column in columns.iter().rev() {
        column.add_fields(stream, &mut codes, &mut fields)?;
    }
    for (i, number) in numbers(&fields).iter().enumerate() {
        order = number.sort(stream, order, i == 0)?;
    }
    Ok(order)
}

impl SortColumn<'_> {
    /// Adds the fields of this column, the least significant first.
    fn add_fields(&self, stream: &Stream, codes: &mut Vec<AnyVec>, fields: &mut Vec<Field>) -> Result<(), Error> {
        let mut keys = self.keys.raw_view(stream)?;
        if let Some(code) = self.coding.code {
            let mut encoded = lowered::encode_keys_of(stream, keys, self.coding.layout(), code)?;
            keys = encoded.raw_view_mut(stream)?.as_const();
            codes.push(encoded);
        }
        let (mut valid, mut valid_start) = (Global::empty(), 0);
        if let Some(nulls) = self.nulls {
            (valid, valid_start, _) = nulls.valid.raw_parts(stream)?;
        }
        let words = self.coding.bits.div_ceil(64);
        for word in 0..words {
            let mask = ones((self.coding.bits - 64 * word).min(64));
            fields.push(Field {
                keys: keys.words(),
                valid,
                valid_start,
                // The sign is in the most significant word.
                sign: if word + 1 == words { self.coding.sign } else { Sign::NONE },
                flip: if self.descending { mask } else { 0 },
                mask,
                size: keys.size() as u32,
                word: place_of(word, keys),
                ..Field::NONE
            });
        }
        if let Some(nulls) = self.nulls {
            fields.push(Field { valid, valid_start, flip: u64::from(nulls.are_last), mask: 1, ..Field::NONE });
        }
        Ok(())
    }
}

/// Returns where the word of a code is, in memory. That of 256 bits begins with its upper half.
fn place_of(word: u32, codes: Column) -> u32 {
    if codes.size() == 32 { word ^ 2 } else { word }
}

/// Returns a number whose lowest bits are set.
fn ones(bits: u32) -> u64 {
    u64::MAX >> (64 - bits)
}

/// Fields that are packed into one number.
#[derive(Default)]
struct PackedFields {
    fields: Vec<Field>,
    bits: u32,
}

/// Divides fields among numbers of up to 64 bits, the least significant first.
fn numbers(fields: &[Field]) -> Vec<PackedFields> {
    let mut numbers = vec![PackedFields::default()];
    for &field in fields {
        let mut rest = Some(field);
        while let Some(field) = rest {
            rest = numbers.last_mut().and_then(|number| number.take(field));
            if rest.is_some() {
                numbers.push(PackedFields::default());
            }
        }
    }
    numbers
}

impl PackedFields {
    /// Takes as many bits of a field as there is room for, and returns the others.
    fn take(&mut self, field: Field) -> Option<Field> {
        let (bits, room) = (field.mask.count_ones(), 64 - self.bits);
        if room == 0 || self.fields.len() == MAX_FIELDS {
            return Some(field);
        }
        let taken = bits.min(room);
        let mask = ones(taken);
        self.fields.push(Field { mask, flip: field.flip & mask, shift: self.bits, ..field });
        self.bits += taken;
        (taken < bits).then(|| Field {
            mask: field.mask >> taken,
            flip: field.flip >> taken,
            low: field.low + taken,
            ..field
        })
    }

    /// Sorts rows, which are in an order already, by these fields. At first they are in order of their numbers.
    fn sort(&self, stream: &Stream, order: DeviceVec<u32>, is_first: bool) -> Result<DeviceVec<u32>, Error> {
        let (len, size) = (order.len(), if self.bits <= 32 { 4 } else { 8 });
        let mut fields = [Field::NONE; MAX_FIELDS];
        fields[..self.fields.len()].copy_from_slice(&self.fields);
        let mut codes = AnyVec::uninit(stream, size, len)?;
        let packed = codes.raw_view_mut(stream)?;
        let rows = if is_first { Global::empty() } else { order.raw_view(stream)? };
        pack_codes!(size => C, {
            let (fields, count) = (Fields(fields), self.fields.len() as u32);
            let kernel = PackCodes::<C>::new(fields, count, rows, packed.as_type());
            // SAFETY: one block per tile; columns and bits have as many rows as the order, which has each of them once; the fields
            // have no more bits than the codes.
            unsafe { stream.launch(kernel, len.div_ceil(TILE))? };
        });
        let mut sorted = AnyVec::uninit(stream, size, len)?;
        let mut moved = stream.uninit::<u32>(len)?;
        let from = (codes.as_slice().into(), order.as_slice().into());
        let to = (sorted.as_mut_slice(), moved.as_mut_slice().into());
        lowered::pairs(stream, from, to, &Coding::of_codes(size), &Options::new().bits(0..self.bits))?;
        Ok(moved)
    }
}
