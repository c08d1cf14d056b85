//! Order statistics of rows.

#![deny(unsafe_op_in_unsafe_fn)]

use super::bits_of_fractions;
use crate::host::source::Source;
use crate::input::SourceArg;
use crate::order_statistics::device::instances::select_in_rows;
use crate::order_statistics::device::rows::SelectInRows;
use crate::sort::{RadixKey, ShortCode};
use crate::top_k::device::layout::RowLayout;
use crate::top_k::host::find::clear_if_codes_can_change;
use crate::top_k::host::output::AnyOutput;
use crate::top_k::host::{Keys, gather};
use crate::top_k::{Output, Rows};
use crate::{DeviceSlice, Error, Global, Stream, expect_len};

/// Writes the elements of each row that have given ranks in the row, and their positions in the row. Does not wait.
///
/// The ranks are on the device: the same number for each row, at least one, row by row. Element `i` of `keys` and `positions` is
/// that of rank `ranks[i]`. If the row has no such rank, the position is [`Position::NONE`](crate::top_k::Position::NONE), and
/// the key is not written.
///
/// A block works on each rank, and reads the row once per digit. For a few rows of many millions of elements, call
/// [`select_kth`](super::select_kth) for each.
///
/// ```
/// use gpu_primitives::order_statistics::{self, Rows};
/// use gpu_primitives::{Device, Error};
///
/// let stream = Device::cpu().stream()?;
/// let input = stream.upload(&[7u32, 5, 6, 1, 9, 8])?;
/// let offsets = stream.upload(&[0u32, 3, 3, 6])?; // three rows, the second one empty
/// let ranks = stream.upload(&[2u32, 0, 1])?;
/// let (mut keys, mut positions) = (stream.zeroed::<u32>(3)?, stream.uninit::<u32>(3)?);
/// let rows = Rows::at(&offsets);
/// order_statistics::segmented_select_kth(&stream, &input, rows, &ranks, (&mut keys, &mut positions))?;
/// assert_eq!(keys.to_vec(&stream)?, [7, 0, 8]);
/// assert_eq!(positions.to_vec(&stream)?, [0, u32::MAX, 2]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// [`Error::LengthMismatch`] if there is not the same number of ranks for each row, not one key and position per rank, or if
/// the input does not consist of whole rows; [`Error::TooLong`] for rows of 2^32 - 1 elements or more;
/// [`Error::OutOfMemory`]: nothing is written in these cases. Any launch error.
pub fn segmented_select_kth<'a, 'b, 'c, K: RadixKey<Code: ShortCode>>(
    stream: &Stream,
    input: impl Source<'a, K>,
    rows: Rows<'_>,
    ranks: impl Into<DeviceSlice<'b, u32>>,
    output: impl Output<'c, K, u32>,
) -> Result<(), Error> {
    let (input, output) = (Keys::new(input, true)?, AnyOutput::new(output));
    let _span = crate::span!(stream, "order_statistics::segmented_select_kth", input.len());
    select_ranks(stream, &input, rows, ranks.into(), output)
}

/// Writes quantiles of each row, and their positions in the row. Does not wait.
///
/// A quantile is the element with rank `fraction * (n - 1)`, rounded down, of the row's `n` elements: see
/// [`quantiles`](super::quantiles). Row `i` of the result has the elements `i * m .. (i + 1) * m` of `keys` and `positions`,
/// for `m` fractions. For a row without elements, the positions are [`Position::NONE`](crate::top_k::Position::NONE), and the
/// keys are not written.
///
/// A block works on each quantile: see [`segmented_select_kth`].
///
/// # Errors
/// [`Error::InvalidOption`] for a fraction that is not from 0 to 1; [`Error::LengthMismatch`] if there is not one key and
/// position per row and fraction. Otherwise the same as [`segmented_select_kth`].
pub fn segmented_quantiles<'a, 'b, K: RadixKey<Code: ShortCode>>(
    stream: &Stream,
    input: impl Source<'a, K>,
    rows: Rows<'_>,
    fractions: &[f64],
    output: impl Output<'b, K, u32>,
) -> Result<(), Error> {
    let (input, output) = (Keys::new(input, true)?, AnyOutput::new(output));
    let _span = crate::span!(stream, "order_statistics::segmented_quantiles", input.len());
    select_fractions(stream, &input, rows, fractions, output)
}

/// Writes the median of each row, and its position in the row: see [`segmented_quantiles`]. Does not wait.
///
/// # Errors
/// Same as [`segmented_quantiles`].
pub fn segmented_median<'a, 'b, K: RadixKey<Code: ShortCode>>(
    stream: &Stream,
    input: impl Source<'a, K>,
    rows: Rows<'_>,
    output: impl Output<'b, K, u32>,
) -> Result<(), Error> {
    let (input, output) = (Keys::new(input, true)?, AnyOutput::new(output));
    let _span = crate::span!(stream, "order_statistics::segmented_median", input.len());
    select_fractions(stream, &input, rows, &[0.5], output)
}

fn select_ranks(
    stream: &Stream,
    input: &Keys<'_>,
    rows: Rows<'_>,
    ranks: DeviceSlice<'_, u32>,
    output: AnyOutput<'_>,
) -> Result<(), Error> {
    let (count, len) = (rows.count(input.len())?, ranks.len());
    let per_row = len.checked_div(count).unwrap_or(0).max(1);
    expect_len("the ranks of all rows", count.saturating_mul(per_row), len)?;
    expect_len("the keys of the wanted ranks", len, output.keys.len())?;
    output.expect_positions("the positions of the wanted ranks")?;
    if len == 0 {
        return Ok(());
    }
    let search =
        InRows { per_row, layout: rows.layout(stream)?, ranks: ranks.raw_view(stream)?, fractions: Global::empty() };
    search.run(stream, input, output)
}

fn select_fractions(
    stream: &Stream,
    input: &Keys<'_>,
    rows: Rows<'_>,
    fractions: &[f64],
    output: AnyOutput<'_>,
) -> Result<(), Error> {
    let (words, per_row) = (bits_of_fractions(fractions)?, fractions.len());
    let all = rows.count(input.len())?.saturating_mul(per_row);
    expect_len("the quantiles of all rows", all, output.keys.len())?;
    output.expect_positions("the positions of the quantiles")?;
    if all == 0 {
        return Ok(());
    }
    let words = stream.upload(&words)?;
    let layout = rows.layout(stream)?;
    InRows { per_row, layout, ranks: Global::empty(), fractions: words.raw_view(stream)? }.run(stream, input, output)
}

/// A search for ranks in rows, except for its input.
struct InRows {
    per_row: usize,
    layout: RowLayout,
    ranks: Global<u32>,
    fractions: Global<u64>,
}

impl InRows {
    fn run(&self, stream: &Stream, input: &Keys<'_>, output: AnyOutput<'_>) -> Result<(), Error> {
        // Positions in a row have 32 bits, however long the input is.
        let (mut keys, mut positions) = output.open(stream, 0)?;
        // Before anything is written: a view can be refused.
        let (to_keys, opened) = (keys.raw_view_mut(stream)?, input.open(stream)?);
        let to = positions.raw_view_mut(stream)?.as_type::<u32>();
        clear_if_codes_can_change(stream, to.into())?;
        select_in_rows!(input.size => C, {
            let kernel = SelectInRows::<C, SourceArg>::new(
                opened.fused(),
                input.coding,
                input.bits,
                self.layout,
                self.per_row as u64,
                self.ranks,
                self.fractions,
                to,
            );
            // SAFETY: one block per position, and as many ranks or fractions. The codes are complements.
            unsafe { stream.launch(kernel, to.len())? };
        });
        gather(stream, opened.plain.fused(), to.as_const().into(), to_keys, self.per_row, self.layout)
    }
}
