//! Host functions of top-k.

#![deny(unsafe_op_in_unsafe_fn)]

use super::code::{Coding, Position};
use super::find::{Find, Memory, Sieve};
use super::kernel::{GatherKeys, THREADS};
use super::order::orderable;
use super::rows::{SelectRows, room};
use super::tile::{Candidates, vector};
use crate::input::{Fused, Input};
use crate::operator::map;
use crate::runtime::held::{HeldOut, held};
use crate::runtime::offsets::expect_offsets;
use crate::runtime::pairs::PairsMut;
use crate::sort::{RadixKey, ShortCode, bits_of, descending_codes, sign_of};
use crate::source::{Source, counting};
use crate::with_shape;
use crate::{DeviceKind, DeviceSlice, DeviceSliceMut, Error, Global, GlobalMut, Stream, expect_len};
use crate::{segmented_sort, transfer, transform};

/// Writes the largest elements, the largest first, and their positions: as many as `keys` has room for. Does not wait.
///
/// If the source has a length that only the device knows, and fewer elements, the positions after them are
/// [`Position::NONE`], and the keys after them are not written.
///
/// # Errors
/// [`Error::LengthMismatch`] if there are not as many positions as keys, or fewer elements; [`Error::TooLong`] if 32 bits
/// do not hold the positions; [`Error::OutOfMemory`]: nothing is written in these cases. Any launch error.
pub fn largest<'a, K: RadixKey<Code: ShortCode>, P: Position>(
    stream: &Stream,
    input: impl Source<'a, K>,
    keys: impl Into<DeviceSliceMut<'a, K>>,
    positions: impl Into<DeviceSliceMut<'a, P>>,
) -> Result<(), Error> {
    let input = input.into_parts()?;
    let _span = crate::span!(stream, "top_k::largest", input.len());
    select(stream, input, keys.into(), positions.into(), false)
}

/// Writes the smallest elements, the smallest first, and their positions: see [`largest`].
///
/// # Errors
/// Same as [`largest`].
pub fn smallest<'a, K: RadixKey<Code: ShortCode>, P: Position>(
    stream: &Stream,
    input: impl Source<'a, K>,
    keys: impl Into<DeviceSliceMut<'a, K>>,
    positions: impl Into<DeviceSliceMut<'a, P>>,
) -> Result<(), Error> {
    let input = input.into_parts()?;
    let _span = crate::span!(stream, "top_k::smallest", input.len());
    select(stream, input, keys.into(), positions.into(), true)
}

fn select<'a, K: RadixKey<Code: ShortCode>, P: Position>(
    stream: &Stream,
    input: impl Source<'a, K>,
    mut keys: DeviceSliceMut<'_, K>,
    mut positions: DeviceSliceMut<'_, P>,
    smallest: bool,
) -> Result<(), Error> {
    let input = input.into_parts()?;
    let (len, wanted) = (input.len(), keys.len());
    expect_len("the positions of the wanted elements", wanted, positions.len())?;
    if wanted > len {
        return Err(Error::LengthMismatch { what: "the wanted elements", expected: len, found: wanted });
    }
    expect_positions::<P>(len)?;
    if wanted == 0 {
        return Ok(());
    }
    // Before anything is written: a view can be refused.
    let (to, to_keys) = (positions.raw_view_mut(stream)?, keys.raw_view_mut(stream)?);
    let mut selected = Memory::<K::Code, P>::new(stream, wanted)?;
    if input.is_counted() {
        selected.clear(stream)?;
    }
    let (codes, plain) = (input.codes(), input.open(stream)?);
    let mut sieve = Sieve::<K::Code, P>::new(stream, len, wanted, bits_of::<K>())?;
    let find = Find {
        stream,
        len,
        coding: coding::<K>(smallest),
        bits: bits_of::<K>(),
        sieve: sieve.view(stream)?,
        selected: selected.view(stream)?,
    };
    // Numbers are loaded as they are. The code of other keys is part of the source.
    if K::NUMBER.is_none() {
        find.shaped(codes.open(stream)?.fused())?;
    } else {
        match plain.held::<<K::Code as ShortCode>::Held>() {
            Ok(view) => find.shaped(view)?,
            Err(fused) => find.shaped(fused)?,
        }
    }
    if wanted <= orderable::<K::Code>() {
        sieve.order(stream, selected.view(stream)?, to)?;
    } else {
        // Equal codes are in the order of their positions, and stay so.
        let mut sorted = stream.uninit::<K::Code>(wanted)?;
        let to = PairsMut { keys: sorted.raw_view_mut(stream)?, values: to };
        descending_codes(stream, selected.pairs(stream)?.into(), to.into(), bits_of::<K>())?;
    }
    gather(stream, plain.fused(), to.as_const(), to_keys, whole(wanted))
}

/// The rows of an input.
#[derive(Clone, Copy, Debug)]
pub struct Rows<'a> {
    form: Form<'a>,
}

#[derive(Clone, Copy, Debug)]
enum Form<'a> {
    Equal(usize),
    Offsets(DeviceSlice<'a, u32>),
}

impl<'a> Rows<'a> {
    /// Rows of `len` elements each: a matrix, row by row.
    #[must_use]
    pub const fn of_len(len: usize) -> Self {
        Self { form: Form::Equal(len) }
    }

    /// Rows of any length: row `i` has the elements `offsets[i] .. offsets[i + 1]`. Offsets beyond the input count as its
    /// end, and a row whose end lies before its start is empty.
    pub fn at(offsets: impl Into<DeviceSlice<'a, u32>>) -> Self {
        Self { form: Form::Offsets(offsets.into()) }
    }

    /// Returns the number of rows of `len` elements.
    fn count(self, len: usize) -> Result<usize, Error> {
        match self.form {
            Form::Equal(row) => {
                expect_positions::<u32>(row)?;
                let rows = len.checked_div(row).unwrap_or(0);
                expect_len("an input of equal rows", rows * row, len)?;
                Ok(rows)
            }
            Form::Offsets(offsets) => {
                expect_offsets(offsets.len())?;
                Ok(offsets.len() - 1)
            }
        }
    }

    fn layout(self, stream: &Stream, per_row: usize) -> Result<Layout, Error> {
        let (row_len, starts) = match self.form {
            Form::Equal(row) => (row, Global::empty()),
            Form::Offsets(offsets) => (0, offsets.raw_view(stream)?),
        };
        Ok(Layout { per_row, row_len, starts })
    }
}

/// Writes the `k` largest elements of each row, the largest first, and their positions in the row. Does not wait.
///
/// Row `i` of the result has the elements `i * k .. (i + 1) * k` of `keys` and `positions`. If a row has fewer than `k`
/// elements, the positions after them are [`Position::NONE`], and the keys after them are not written.
///
/// A block works on each row. For a few rows of many millions of elements, call [`largest`] for each.
///
/// # Errors
/// [`Error::LengthMismatch`] if there are not `k` keys and positions per row, or the input does not consist of whole rows;
/// [`Error::TooLong`] for rows of 2^32 - 1 elements or more; [`Error::OutOfMemory`]: nothing is written in these cases. Any
/// launch error.
pub fn segmented_largest<'a, K: RadixKey<Code: ShortCode>>(
    stream: &Stream,
    input: impl Source<'a, K>,
    rows: Rows<'a>,
    k: usize,
    keys: impl Into<DeviceSliceMut<'a, K>>,
    positions: impl Into<DeviceSliceMut<'a, u32>>,
) -> Result<(), Error> {
    let input = input.into_parts()?;
    let _span = crate::span!(stream, "top_k::segmented_largest", input.len());
    select_rows(stream, input, rows, k, (keys.into(), positions.into()), false)
}

/// Writes the `k` smallest elements of each row, the smallest first, and their positions in the row: see
/// [`segmented_largest`].
///
/// # Errors
/// Same as [`segmented_largest`].
pub fn segmented_smallest<'a, K: RadixKey<Code: ShortCode>>(
    stream: &Stream,
    input: impl Source<'a, K>,
    rows: Rows<'a>,
    k: usize,
    keys: impl Into<DeviceSliceMut<'a, K>>,
    positions: impl Into<DeviceSliceMut<'a, u32>>,
) -> Result<(), Error> {
    let input = input.into_parts()?;
    let _span = crate::span!(stream, "top_k::segmented_smallest", input.len());
    select_rows(stream, input, rows, k, (keys.into(), positions.into()), true)
}

fn select_rows<'a, K: RadixKey<Code: ShortCode>>(
    stream: &Stream,
    input: impl Source<'a, K>,
    rows: Rows<'_>,
    wanted: usize,
    (mut keys, mut positions): (DeviceSliceMut<'_, K>, DeviceSliceMut<'_, u32>),
    smallest: bool,
) -> Result<(), Error> {
    let input = input.into_parts()?;
    let (len, count) = (input.len(), rows.count(input.len())?);
    let all = count.saturating_mul(wanted);
    expect_len("the wanted elements of all rows", all, keys.len())?;
    expect_len("the positions of the wanted elements", all, positions.len())?;
    if all == 0 {
        return Ok(());
    }
    // Before anything is written: a view can be refused.
    let to_keys = keys.raw_view_mut(stream)?;
    let (codes, plain) = (input.codes(), input.open(stream)?);
    let mut selected = stream.uninit::<K::Code>(all)?;
    let selected = Candidates { codes: selected.raw_view_mut(stream)?, positions: positions.raw_view_mut(stream)? };
    let layout = rows.layout(stream, wanted)?;
    if !matches!(stream.device().kind(), DeviceKind::Cuda { .. }) {
        // Keys on the CPU can change their codes, and so leave positions that nobody writes. They count as missing.
        transfer::fill(stream, positions.reborrow(), u32::NONE)?;
    }
    let find = FindRows { stream, len, count, coding: coding::<K>(smallest), bits: bits_of::<K>(), layout, selected };
    if K::NUMBER.is_none() {
        find.shaped(codes.open(stream)?.fused())?;
    } else {
        match plain.held::<<K::Code as ShortCode>::Held>() {
            Ok(view) => find.shaped(view)?,
            Err(fused) => find.shaped(fused)?,
        }
    }
    if wanted > room::<K::Code>() {
        sort_rows(stream, selected, wanted)?;
    }
    let layout = rows.layout(stream, wanted)?;
    gather(stream, plain.fused(), selected.positions.as_const(), to_keys, layout)
}

/// Orders the numbers of each row, the largest first. Equal ones stay in order.
fn sort_rows<C: ShortCode>(stream: &Stream, rows: Candidates<C, u32>, per_row: usize) -> Result<(), Error> {
    let limit = u32::MAX as usize;
    let (len, codes) = (rows.codes.len(), rows.codes);
    if len > limit {
        return Err(Error::TooLong { what: "the wanted elements of all rows", len, limit });
    }
    let mut offsets = stream.uninit::<u32>(len / per_row + 1)?;
    let row_start = map!(per_row: u32 = per_row as u32; |row: u32| -> u32 { row * per_row });
    transform::map(stream, counting(0u32, offsets.len()), &mut offsets, row_start)?;
    // SAFETY: a code is loaded as this type, which has the same size and no stricter alignment.
    let keys = unsafe { GlobalMut::from_raw(codes.as_const().as_ptr().cast_mut().cast::<C::Held>(), len) };
    let pairs = PairsMut { keys, values: rows.positions };
    segmented_sort::sort_promised(stream, offsets.as_slice(), pairs.into(), C::descending())
}

/// A search for the largest numbers of rows, except for its input.
struct FindRows<'a, C> {
    stream: &'a Stream,
    len: usize,
    count: usize,
    coding: Coding,
    bits: u32,
    layout: Layout,
    selected: Candidates<C, u32>,
}

impl<C: ShortCode> FindRows<'_, C> {
    fn shaped<I: Input<C::Held>>(self, input: I) -> Result<(), Error> {
        /// The elements of a row for which a block of 512 threads is worthwhile: several of its tiles.
        const LONG: usize = 1 << 14;
        if self.len / self.count >= LONG {
            with_shape!(VEC in 4 | 2 | 1 = vector::<C>(), self.run::<I, VEC, 512>(input))
        } else {
            with_shape!(VEC in 4 | 2 | 1 = vector::<C>(), self.run::<I, VEC, 256>(input))
        }
    }

    fn run<I: Input<C::Held>, const VEC: usize, const THREADS: u32>(self, input: I) -> Result<(), Error> {
        let Layout { per_row, row_len, starts } = self.layout;
        let kernel = SelectRows::<C, I, VEC, THREADS>::new(
            input,
            self.coding,
            self.bits,
            row_len as u64,
            starts,
            per_row as u64,
            self.selected,
        );
        // SAFETY: one block per row, and as many selected numbers per row as are wanted.
        unsafe { self.stream.launch(kernel, self.count) }
    }
}

/// Checks that positions in an input of this length can be told.
fn expect_positions<P: Position>(len: usize) -> Result<(), Error> {
    let limit = P::NONE.index();
    if len > limit { Err(Error::TooLong { what: "an input whose positions have 32 bits", len, limit }) } else { Ok(()) }
}

/// Returns how keys become numbers of which the largest are wanted.
fn coding<K: RadixKey<Code: ShortCode>>(smallest: bool) -> Coding {
    Coding::new(sign_of::<K>(), bits_of::<K>(), smallest)
}

/// How many positions belong to a row, and where the rows' elements are.
struct Layout {
    per_row: usize,
    row_len: usize,
    starts: Global<u32>,
}

/// One row of `wanted` positions.
fn whole(wanted: usize) -> Layout {
    Layout { per_row: wanted, row_len: 0, starts: Global::empty() }
}

/// Writes the elements at some positions.
fn gather<K: RadixKey<Code: ShortCode>, P: Position>(
    stream: &Stream,
    input: Fused,
    positions: Global<P>,
    keys: GlobalMut<K>,
    layout: Layout,
) -> Result<(), Error> {
    held!(K as H or bytes, {
        let output = HeldOut::<H>::with_contents(stream, keys)?;
        let Layout { per_row, row_len, starts } = layout;
        let kernel =
            GatherKeys::<H, P>::new(input, positions, output.view, per_row as u64, row_len as u64, starts);
        // SAFETY: one thread per position, and as many keys. The positions are those of elements.
        unsafe { stream.launch(kernel, positions.len().div_ceil(THREADS as usize))? };
        output.finish(stream)
    })
}
