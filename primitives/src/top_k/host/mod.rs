//! Host functions of top-k.

#![deny(unsafe_op_in_unsafe_fn)]

pub(crate) mod find;

use super::device::code::{Coding, Position};
use super::device::instances::{find_largest, gather_keys, select_rows};
use super::device::kernel::{GatherKeys, THREADS};
use super::device::order::orderable;
use super::device::rows::{SelectRows, room};
use super::device::tile::Candidates;
use crate::host::repr::{expect_repr, repr_size_or_bytes};
use crate::host::runtime::column::{AnySliceMut, AnyVec, Column, ColumnMut, number};
use crate::host::runtime::offsets::expect_offsets;
use crate::host::runtime::pairs::PairsMut;
use crate::host::source::{AnySource, Opened, Source, counting};
use crate::input::{Input, SourceArg};
use crate::operator::map;
use crate::sort::{RadixKey, ShortCode, bits_of, descending_codes, sign_of};
use crate::transform::laid_out::ReprOutput;
use crate::{DeviceKind, DeviceSlice, DeviceSliceMut, Error, Global, GlobalMut, Stream, expect_len};
use crate::{segmented_sort, transfer, transform};
use find::{Find, Memory, Sieve};

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
    let (input, keys, positions) = (Keys::new(input, false)?, keys.into(), positions.into());
    let _span = crate::span!(stream, "top_k::largest", input.len());
    select(stream, &input, keys.into(), positions.into())
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
    let (input, keys, positions) = (Keys::new(input, true)?, keys.into(), positions.into());
    let _span = crate::span!(stream, "top_k::smallest", input.len());
    select(stream, &input, keys.into(), positions.into())
}

/// The input, without the type of its keys.
pub(crate) struct Keys<'a> {
    pub plain: AnySource<'a>,
    /// The codes of keys that are no numbers. The code is part of the source. Numbers are loaded as they are.
    codes: Option<AnySource<'a>>,
    /// The bytes of a code.
    pub size: usize,
    /// How keys become numbers of which the largest are wanted.
    pub coding: Coding,
    pub bits: u32,
}

impl<'a> Keys<'a> {
    pub fn new<K: RadixKey<Code: ShortCode>>(input: impl Source<'a, K>, smallest: bool) -> Result<Self, Error> {
        const { expect_repr::<K>() };
        let (input, bits) = (input.into_parts()?, bits_of::<K>());
        let codes = if const { K::NUMBER.is_none() } { Some(input.codes().lower()) } else { None };
        let coding = Coding::new(sign_of::<K>(), bits, smallest);
        Ok(Self { plain: input.lower(), codes, size: size_of::<K::Code>(), coding, bits })
    }

    pub fn len(&self) -> usize {
        self.plain.len()
    }

    pub fn open(&self, stream: &Stream) -> Result<OpenedKeys, Error> {
        let codes = self.codes.map(|codes| codes.open(stream)).transpose()?;
        Ok(OpenedKeys { plain: self.plain.open(stream)?, codes })
    }
}

/// Keys as kernels read them.
pub(crate) struct OpenedKeys {
    pub plain: Opened,
    codes: Option<Opened>,
}

impl OpenedKeys {
    /// Returns what kernels load as codes of this type, or as numbers.
    #[allow(clippy::result_large_err, reason = "no error: the other form, which a kernel's arguments hold as it is")]
    pub fn loaded<C: ShortCode>(&self) -> Result<Global<C::Repr>, SourceArg> {
        match &self.codes {
            Some(codes) => Err(codes.fused()),
            None => self.plain.held(),
        }
    }

    /// Returns what kernels load as codes, or as numbers, one by one.
    pub fn fused(&self) -> SourceArg {
        self.codes.as_ref().unwrap_or(&self.plain).fused()
    }
}

fn select(
    stream: &Stream,
    input: &Keys<'_>,
    mut keys: AnySliceMut<'_>,
    mut positions: AnySliceMut<'_>,
) -> Result<(), Error> {
    let (len, wanted) = (input.len(), keys.len());
    expect_len("the positions of the wanted elements", wanted, positions.len())?;
    if wanted > len {
        return Err(Error::LengthMismatch { what: "the wanted elements", expected: len, found: wanted });
    }
    number!(positions.size() => P, expect_positions::<P>(len)?);
    if wanted == 0 {
        return Ok(());
    }
    // Before anything is written: a view can be refused.
    let (to, to_keys) = (positions.raw_view_mut(stream)?, keys.raw_view_mut(stream)?);
    let opened = input.open(stream)?;
    find_largest!((input.size, to.size()) => (C, P, VEC, PER), find::<C, P, VEC, PER>(stream, input, &opened, to)?);
    gather(stream, opened.plain.fused(), to.as_const(), to_keys, whole(wanted))
}

/// Writes the positions of the largest numbers.
fn find<C: ShortCode, P: Position, const VEC: usize, const PER: usize>(
    stream: &Stream,
    input: &Keys<'_>,
    opened: &OpenedKeys,
    to: ColumnMut,
) -> Result<(), Error> {
    let (len, wanted, to) = (input.len(), to.len(), to.typed().expect("positions are aligned"));
    let &Keys { coding, bits, .. } = input;
    let mut selected = Memory::<C, P>::new(stream, wanted)?;
    if input.plain.is_counted() {
        selected.clear(stream)?;
    }
    let mut sieve = Sieve::<C, P>::new(stream, len, wanted, bits)?;
    let find = Find { stream, len, coding, bits, sieve: sieve.view(stream)?, selected: selected.view(stream)? };
    match opened.loaded::<C>() {
        Ok(view) => find.run::<_, VEC>(view)?,
        Err(fused) => find.run::<_, VEC>(fused)?,
    }
    if wanted <= orderable::<C>() {
        return sieve.order::<PER>(stream, selected.view(stream)?, to);
    }
    // Equal codes are in the order of their positions, and stay so.
    let mut sorted = stream.uninit::<C>(wanted)?;
    let to = PairsMut { keys: sorted.raw_view_mut(stream)?, values: to };
    descending_codes(stream, selected.pairs(stream)?.into(), to.into(), bits)
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
    pub(crate) fn count(self, len: usize) -> Result<usize, Error> {
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

    pub(crate) fn layout(self, stream: &Stream, per_row: usize) -> Result<Layout, Error> {
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
    let (input, keys) = (Keys::new(input, false)?, keys.into());
    let _span = crate::span!(stream, "top_k::segmented_largest", input.len());
    select_rows(stream, &input, rows, k, (keys.into(), positions.into()))
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
    let (input, keys) = (Keys::new(input, true)?, keys.into());
    let _span = crate::span!(stream, "top_k::segmented_smallest", input.len());
    select_rows(stream, &input, rows, k, (keys.into(), positions.into()))
}

fn select_rows(
    stream: &Stream,
    input: &Keys<'_>,
    rows: Rows<'_>,
    wanted: usize,
    (mut keys, mut positions): (AnySliceMut<'_>, DeviceSliceMut<'_, u32>),
) -> Result<(), Error> {
    let count = rows.count(input.len())?;
    let all = count.saturating_mul(wanted);
    expect_len("the wanted elements of all rows", all, keys.len())?;
    expect_len("the positions of the wanted elements", all, positions.len())?;
    if all == 0 {
        return Ok(());
    }
    // Before anything is written: a view can be refused.
    let to_keys = keys.raw_view_mut(stream)?;
    let (opened, layout) = (input.open(stream)?, rows.layout(stream, wanted)?);
    let mut codes = AnyVec::uninit(stream, input.size, all)?;
    let (codes, to) = (codes.as_mut_slice().raw_view_mut(stream)?, positions.raw_view_mut(stream)?);
    if !matches!(stream.device().kind(), DeviceKind::Cuda { .. }) {
        // Keys on the CPU can change their codes, and so leave positions that nobody writes. They count as missing.
        transfer::fill(stream, positions.reborrow(), u32::NONE)?;
    }
    select_rows!(input.size => (C, VEC), {
        let selected = Candidates { codes: codes.typed().expect("memory is aligned"), positions: to };
        find_rows::<C, VEC>(stream, input, &opened, count, layout, selected)?;
    });
    gather(stream, opened.plain.fused(), to.as_const().into(), to_keys, layout)
}

/// Writes the positions of the largest numbers of each row.
fn find_rows<C: ShortCode, const VEC: usize>(
    stream: &Stream,
    input: &Keys<'_>,
    opened: &OpenedKeys,
    count: usize,
    layout: Layout,
    selected: Candidates<C, u32>,
) -> Result<(), Error> {
    let &Keys { coding, bits, .. } = input;
    let find = FindRows { stream, len: input.len(), count, coding, bits, layout, selected };
    match opened.loaded::<C>() {
        Ok(view) => find.run::<_, VEC>(view)?,
        Err(fused) => find.run::<_, VEC>(fused)?,
    }
    if layout.per_row > room::<C>() { sort_rows(stream, selected, layout.per_row) } else { Ok(()) }
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
    let keys = unsafe { GlobalMut::from_raw(codes.as_const().as_ptr().cast_mut().cast::<C::Repr>(), len) };
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
    fn run<I: Input<C::Repr>, const VEC: usize>(self, input: I) -> Result<(), Error> {
        /// The elements of a row for which a block of 512 threads is worthwhile: several of its tiles.
        const LONG: usize = 1 << 14;
        if self.len / self.count >= LONG {
            self.launch::<I, VEC, 512>(input)
        } else {
            self.launch::<I, VEC, 256>(input)
        }
    }

    fn launch<I: Input<C::Repr>, const VEC: usize, const THREADS: u32>(self, input: I) -> Result<(), Error> {
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
pub(crate) fn expect_positions<P: Position>(len: usize) -> Result<(), Error> {
    let limit = P::NONE.index();
    if len > limit { Err(Error::TooLong { what: "an input whose positions have 32 bits", len, limit }) } else { Ok(()) }
}

/// How many positions belong to a row, and where the rows' elements are.
#[derive(Clone, Copy)]
pub(crate) struct Layout {
    pub per_row: usize,
    pub row_len: usize,
    pub starts: Global<u32>,
}

/// One row of `wanted` positions.
pub(crate) fn whole(wanted: usize) -> Layout {
    Layout { per_row: wanted, row_len: 0, starts: Global::empty() }
}

/// Writes the elements at some positions.
pub(crate) fn gather(
    stream: &Stream,
    input: SourceArg,
    positions: Column,
    keys: ColumnMut,
    layout: Layout,
) -> Result<(), Error> {
    gather_keys!((repr_size_or_bytes(keys.size()), positions.size()) => (H, P), {
        let output = ReprOutput::<H>::with_contents(stream, keys)?;
        let Layout { per_row, row_len, starts } = layout;
        let positions = positions.typed().expect("positions are aligned");
        let kernel = GatherKeys::<H, P>::new(input, positions, output.view, per_row as u64, row_len as u64, starts);
        // SAFETY: one thread per position, and as many keys. The positions are those of elements.
        unsafe { stream.launch(kernel, positions.len().div_ceil(THREADS as usize))? };
        output.finish(stream)
    })
}
