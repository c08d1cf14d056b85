//! Sorts of rows of equal length.

#![deny(unsafe_op_in_unsafe_fn)]

use super::Options;
use super::distribute::Spare;
use super::lowered::{self, Coding, copy_all, sort_in_place, sort_indices, sort_to, turns};
use crate::block::radix::RADIX;
use crate::compare::{HoleOrder, Less};
use crate::host::runtime::column::{AnySlice, AnySliceMut, AnyVec, Column};
use crate::host::runtime::loading::Upcoming;
use crate::host::runtime::pairs::{Columns, ColumnsMut};
use crate::host::source::counting;
use crate::operator::map;
use crate::segmented_sort;
use crate::sort::device::digits::ByDigits;
use crate::sort::device::kernel::{HISTOGRAM_TILE, MAX_CHUNK, lookback_len};
use crate::sort::device::rows::{ROW_THREADS, RowHistogram, RowParts, RowPass, SortRows, row_passes, sort_rows};
use crate::sort::device::shape::BLOCK_THREADS;
use crate::sort::{Digits, RadixKey, Sign};
use crate::transform::laid_out::Indices;
use crate::{DeviceSlice, DeviceSliceMut, Error, Stream, expect_len, sized, transform};
use bytemuck::Pod;

/// Sorts each row of `row_len` keys into another buffer. Does not wait.
///
/// Rows lie one after the other, as in a matrix. Equal keys keep their order.
///
/// ```
/// use gpu_primitives::sort::{self, Options};
/// use gpu_primitives::{Device, Error};
///
/// let stream = Device::default()?.stream()?;
/// let scores = stream.upload(&[2.5f32, -1.0, 0.5, 7.0, 9.0, 8.0])?; // two rows of three
/// let mut sorted = stream.uninit::<f32>(6)?;
/// sort::row_keys(&stream, &scores, 3, &mut sorted, Options::new().descending())?;
/// assert_eq!(sorted.to_vec(&stream)?, [2.5, 0.5, -1.0, 9.0, 8.0, 7.0]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// [`Error::LengthMismatch`] if the lengths differ, or the input does not consist of whole rows; the errors of
/// [`keys`](super::keys): nothing is written in these cases. Any launch error.
pub fn row_keys<'a, 'b, K: RadixKey>(
    stream: &Stream,
    input: impl Into<DeviceSlice<'a, K>>,
    row_len: usize,
    output: impl Into<DeviceSliceMut<'b, K>>,
    options: Options,
) -> Result<(), Error> {
    let (input, output): (DeviceSlice<'a, K>, DeviceSliceMut<'b, K>) = (input.into(), output.into());
    let _span = crate::span!(stream, "sort::row_keys", input.len());
    keys(stream, input.into(), output.into(), row_len, &Coding::of::<K>(), &options)
}

/// Sorts each row of `row_len` keys in place. Does not wait.
///
/// # Errors
/// Same as [`row_keys`].
pub fn row_keys_in_place<'a, K: RadixKey>(
    stream: &Stream,
    keys: impl Into<DeviceSliceMut<'a, K>>,
    row_len: usize,
    options: Options,
) -> Result<(), Error> {
    let keys: DeviceSliceMut<'a, K> = keys.into();
    let _span = crate::span!(stream, "sort::row_keys_in_place", keys.len());
    let row = row_of(keys.len(), row_len)?;
    in_place(stream, ColumnsMut::keys(stream, keys.into())?, row, &Coding::of::<K>(), &options)
}

/// Sorts each row of `row_len` keys together with their values into other buffers. Does not wait.
///
/// # Errors
/// Same as [`row_keys`].
pub fn row_pairs<'a, 'b, 'c, 'd, K: RadixKey, V: Pod>(
    stream: &Stream,
    input: (impl Into<DeviceSlice<'a, K>>, impl Into<DeviceSlice<'b, V>>),
    row_len: usize,
    output: (impl Into<DeviceSliceMut<'c, K>>, impl Into<DeviceSliceMut<'d, V>>),
    options: Options,
) -> Result<(), Error> {
    let input: (DeviceSlice<'a, K>, _) = (input.0.into(), input.1);
    let _span = crate::span!(stream, "sort::row_pairs", input.0.len());
    let from = (input.0.into(), input.1.into().into());
    let to = (output.0.into().into(), output.1.into().into());
    pairs(stream, from, to, row_len, &Coding::of::<K>(), &options)
}

/// Sorts each row of `row_len` keys together with their values in place. Does not wait.
///
/// # Errors
/// Same as [`row_keys`].
pub fn row_pairs_in_place<'a, 'b, K: RadixKey, V: Pod>(
    stream: &Stream,
    pairs: (impl Into<DeviceSliceMut<'a, K>>, impl Into<DeviceSliceMut<'b, V>>),
    row_len: usize,
    options: Options,
) -> Result<(), Error> {
    let pairs: (DeviceSliceMut<'a, K>, _) = (pairs.0.into(), pairs.1);
    let _span = crate::span!(stream, "sort::row_pairs_in_place", pairs.0.len());
    let row = row_of(pairs.0.len(), row_len)?;
    let data = ColumnsMut::new(stream, (pairs.0.into(), pairs.1.into().into()), "the values of a sort")?;
    in_place(stream, data, row, &Coding::of::<K>(), &options)
}

/// Finds the order of each row's keys: element `i` of a row of `positions` is the position, within the row, of the key that comes to
/// place `i` when the row is sorted. Equal keys keep their order. The keys are not changed. Does not wait.
///
/// ```
/// use gpu_primitives::sort::{self, Options};
/// use gpu_primitives::{Device, Error};
///
/// let stream = Device::default()?.stream()?;
/// let scores = stream.upload(&[2.5f32, -1.0, 0.5, 7.0, 9.0, 8.0])?; // two rows of three
/// let mut positions = stream.uninit::<u32>(6)?;
/// sort::row_argsort(&stream, &scores, 3, &mut positions, Options::new())?;
/// assert_eq!(positions.to_vec(&stream)?, [1, 2, 0, 0, 2, 1]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Same as [`row_keys`], and [`Error::TooLong`] for rows of more than 2^32 - 1 keys.
pub fn row_argsort<'a, 'b, K: RadixKey>(
    stream: &Stream,
    keys: impl Into<DeviceSlice<'a, K>>,
    row_len: usize,
    positions: impl Into<DeviceSliceMut<'b, u32>>,
    options: Options,
) -> Result<(), Error> {
    let (keys, positions): (DeviceSlice<'a, K>, DeviceSliceMut<'b, u32>) = (keys.into(), positions.into());
    let _span = crate::span!(stream, "sort::row_argsort", keys.len());
    argsort(stream, keys.into(), row_len, positions, &Coding::of::<K>(), &options)
}

/// Returns the length of the rows to sort, if there are several.
fn row_of(len: usize, row_len: usize) -> Result<Option<usize>, Error> {
    let rows = len.checked_div(row_len).unwrap_or(0);
    expect_len("an input of equal rows", rows * row_len, len)?;
    Ok((rows > 1).then_some(row_len))
}

fn keys(
    stream: &Stream,
    from: AnySlice<'_>,
    to: AnySliceMut<'_>,
    row_len: usize,
    coding: &Coding,
    options: &Options,
) -> Result<(), Error> {
    expect_len("the output of a sort", from.len(), to.len())?;
    let row = row_of(from.len(), row_len)?;
    sort_to(stream, Columns::keys(stream, from)?, ColumnsMut::keys(stream, to)?, coding, options, row)
}

fn pairs(
    stream: &Stream,
    from: (AnySlice<'_>, AnySlice<'_>),
    to: (AnySliceMut<'_>, AnySliceMut<'_>),
    row_len: usize,
    coding: &Coding,
    options: &Options,
) -> Result<(), Error> {
    let row = row_of(from.0.len(), row_len)?;
    let (from, to) = lowered::operands(stream, from, to)?;
    sort_to(stream, from, to, coding, options, row)
}

fn argsort(
    stream: &Stream,
    keys: AnySlice<'_>,
    row_len: usize,
    positions: DeviceSliceMut<'_, u32>,
    coding: &Coding,
    options: &Options,
) -> Result<(), Error> {
    let (len, limit) = (keys.len(), u32::MAX as usize);
    expect_len("the positions of a sort", len, positions.len())?;
    row_of(len, row_len)?;
    if row_len.min(len) > limit {
        return Err(Error::TooLong { what: "argsort of rows with 32-bit positions", len: row_len, limit });
    }
    let mut numbers = stream.uninit::<u32>(len)?;
    let mut sorted = AnyVec::uninit(stream, keys.size(), len)?;
    let position = map!(row: u64 = row_len.max(1) as u64; |i: u64| -> u32 { (i % row) as u32 });
    transform::map(stream, counting(0u64, len), &mut numbers, position)?;
    let to = (sorted.as_mut_slice(), positions.into());
    pairs(stream, (keys, numbers.as_slice().into()), to, row_len, coding, options)
}

fn in_place(
    stream: &Stream,
    data: ColumnsMut,
    row: Option<usize>,
    coding: &Coding,
    options: &Options,
) -> Result<(), Error> {
    let (Some(row), Some(digits)) = (row, coding.digits(options)?) else {
        return sort_in_place(stream, data, coding, options);
    };
    let from = data.as_const();
    if coding.is_in_place(data) && is_moved(from.keys.size(), from.values) {
        return sort_codes(stream, from, data, digits, row);
    }
    let mut copy = Spare::like(stream, from)?;
    let copy = copy.target(stream)?;
    copy_all(stream, from, copy)?;
    sort_to(stream, copy.as_const(), data, coding, options, Some(row))
}

/// Returns whether kernels move these values with the codes of rows. With long codes, whatever the values are, indices are moved.
pub(super) fn is_moved(code: usize, values: Column) -> bool {
    code > 8 || row_passes!((code, values.size()) => (K, V, ITEMS), values.fits::<V>(), else false)
}

/// Sorts the codes of each row, with values that [move with them](is_moved). There are several rows. Codes of up to 8 bytes may be
/// sorted in place.
pub(super) fn sort_codes(
    stream: &Stream,
    from: Columns,
    to: ColumnsMut,
    digits: Digits,
    row: usize,
) -> Result<(), Error> {
    let code = from.keys.size();
    if code > 8 {
        return sort_long_codes(stream, from, to, digits, row);
    }
    if row <= segmented_sort::run_len(from.sizes()) {
        let order = sized!(code => C in u32 | u64, {
            if digits.is_natural(C::BITS) {
                HoleOrder::of::<C, Less>(Less)
            } else {
                HoleOrder::of::<C, ByDigits>(digits.order())
            }
        }, else unreachable!("longer codes are sorted with indices"));
        return segmented_sort::sort_runs(stream, from, to, order, row);
    }
    let is_block = sort_rows!(from.sizes() => (K, V, ITEMS), {
        let fits = row <= BLOCK_THREADS as usize * ITEMS;
        if fits {
            let (from, to) = (from.as_types::<K, V>(), to.as_types::<K, V>());
            let kernel =
                SortRows::<K, V, ITEMS>::new(from.keys, to.keys, from.values, to.values, digits, row as u32);
            // SAFETY: one block per row, which has room for it. Keys and values have equal lengths.
            unsafe { stream.launch(kernel, to.keys.len() / row)? };
        }
        fits
    });
    if is_block {
        return Ok(());
    }
    let is_in_place = from.keys.address() == to.keys.as_const().address();
    if row > MAX_CHUNK && !is_in_place {
        return long_rows(stream, from, to, digits, row);
    }
    let mut spare = Spare::like(stream, from)?;
    let spare = spare.target(stream)?;
    if row > MAX_CHUNK {
        copy_all(stream, from, spare)?;
        return long_rows(stream, spare.as_const(), to, digits, row);
    }
    let is_odd = digits.passes() % 2 == 1;
    let targets = if is_in_place { [spare, to] } else { turns(to, spare, digits.passes()) };
    run_passes(stream, from, targets, digits, row)?;
    if is_in_place && is_odd { copy_all(stream, spare.as_const(), to) } else { Ok(()) }
}

/// Sorts one row after the other. Each of them fills the device.
fn long_rows(stream: &Stream, from: Columns, to: ColumnsMut, digits: Digits, row: usize) -> Result<(), Error> {
    let mut starts = (0..from.keys.len()).step_by(row);
    starts.try_for_each(|start| lowered::sort_codes(stream, from.slice(start, row), to.slice(start, row), digits, None))
}

/// Runs all passes over all rows: see [`distribute::run_passes`](super::distribute::run_passes).
fn run_passes(
    stream: &Stream,
    from: Columns,
    targets: [ColumnsMut; 2],
    digits: Digits,
    row: usize,
) -> Result<(), Error> {
    /// The tiles that a block counts, if there are so many: it adds its counts to those of the others.
    const COUNTED: usize = 4;
    let (rows, passes) = (from.keys.len() / row, digits.passes() as usize);
    row_passes!(from.sizes() => (K, V, ITEMS), {
        let tiles = row.div_ceil(ROW_THREADS as usize * ITEMS);
        let (positions, lookback) = (rows * passes * RADIX, lookback_len(rows * tiles));
        let mut words = stream.zeroed::<u32>(positions + rows + passes * lookback)?;
        let words = words.raw_view_mut(stream)?;
        // SAFETY: the memory is divided into parts.
        let (positions, finished, lookbacks) = unsafe {
            let rest = positions + rows;
            (words.slice(0, positions), words.slice(positions, rows), words.slice(rest, passes * lookback))
        };

        let waves = 8 * stream.device().limits().multiprocessors as usize;
        let parts = waves.div_ceil(rows).min(row.div_ceil(COUNTED * HISTOGRAM_TILE)).max(1);
        let parts_of_row = RowParts { len: row as u64, parts: parts as u64 };
        let keys = from.as_types::<K, V>().keys;
        let kernel = RowHistogram::<K>::new(keys, parts_of_row, digits, positions, finished)
            .followed_by(Upcoming::kernel::<RowPass<K, V, ITEMS>>);
        // SAFETY: as many blocks per row; the words are zeros of the stream.
        unsafe { stream.launch(kernel, rows * parts)? };
        let tiles_of_row = RowParts { len: row as u64, parts: tiles as u64 };
        let mut source = from;
        for pass in 0..passes {
            let target = targets[pass % 2];
            let (from, to) = (source.as_types::<K, V>(), target.as_types::<K, V>());
            // SAFETY: the words of each pass are its own.
            let lookback = unsafe { lookbacks.slice(pass * lookback, lookback) };
            let kernel = RowPass::<K, V, ITEMS>::new(
                from.keys,
                to.keys,
                from.values,
                to.values,
                tiles_of_row,
                digits,
                pass as u32,
                positions.as_const(),
                lookback,
            );
            // SAFETY: one block per tile of each row; the histogram has counted the same rows and digits.
            unsafe { stream.launch(kernel, rows * tiles)? };
            source = target.as_const();
        }
        Ok(())
    })
}

/// Sorts all codes with their indices, and then the indices by their rows. Both sorts are stable.
fn sort_long_codes(stream: &Stream, from: Columns, to: ColumnsMut, digits: Digits, row: usize) -> Result<(), Error> {
    let rows = from.keys.len() / row;
    // Nothing is written to the outputs before all memory is allocated: they may be the inputs.
    let mut all = AnyVec::uninit(stream, from.keys.size(), from.keys.len())?;
    let mut by_code = sort_indices(stream, from.keys, all.raw_view_mut(stream)?, digits, None)?;
    let number = map!(row: u32 = row as u32; |index: u32| -> u32 { index / row });
    let mut numbers = stream.uninit::<u32>(by_code.to.len())?;
    transform::map(stream, &by_code.to, &mut numbers, number)?;
    let mut sorted = stream.uninit::<u32>(numbers.len())?;
    let mut order = stream.uninit::<u32>(numbers.len())?;
    let numbered =
        Columns { keys: numbers.raw_view(stream)?.into(), values: by_code.to.raw_view_mut(stream)?.as_const().into() };
    let ordered = ColumnsMut { keys: sorted.raw_view_mut(stream)?.into(), values: order.raw_view_mut(stream)?.into() };
    let bits = u32::BITS - (rows as u32 - 1).leading_zeros();
    lowered::sort_codes(stream, numbered, ordered, Digits::new(Sign::NONE, 0, bits, false), None)?;
    let by_row = Indices { from: by_code.from, to: order };
    by_row.gather_held(stream, from.keys, to.keys)?;
    by_row.gather_held(stream, from.values, to.values)
}
