//! The sort of keys and values whose types are known by their sizes alone. Ordered dictionaries sort their codes with it.

#![deny(unsafe_op_in_unsafe_fn)]

use super::chunks::Chunks;
use super::distribute::{Kernels, Spare, Typed, is_moved, run_passes};
use super::rows;
use crate::compare::HoleOrder;
use crate::host::runtime::column::{AnySlice, AnySliceMut, AnyVec, Column, ColumnMut};
use crate::host::runtime::pairs::{Columns, ColumnsMut};
use crate::host::source::{self, Counted, Elements, Source};
use crate::key::HoleCode;
use crate::merge_sort;
use crate::operator::map;
use crate::sized;
use crate::sort::device::instances::sort_digits;
use crate::sort::{Digits, Options, Side, Sign, U256};
use crate::transform::InMemory;
use crate::transform::laid_out::{Indices, LaidOut, LaidOutMut, copy_first};
use crate::{DeviceVec, Error, Stream, expect_len, permute, transform};
use std::alloc::Layout;

/// Sorts codes of 4, 8, 16 or 32 bytes, by their lowest `bits` bits, together with values of any size. Values of no size are
/// not moved.
///
/// # Errors
/// Those of [`pairs`](crate::sort::pairs()).
pub fn codes(
    stream: &Stream,
    from: (AnySlice<'_>, AnySlice<'_>),
    to: (AnySliceMut<'_>, AnySliceMut<'_>),
    bits: u32,
) -> Result<(), Error> {
    let (options, coding) = (Options::new().bits(0..bits), Coding::of_codes(from.0.size()));
    if from.1.size() == 0 {
        keys(stream, from.0.into(), to.0, &coding, &options)
    } else {
        pairs(stream, (from.0.into(), from.1.into()), to, &coding, &options)
    }
}

/// Codes and values in a few sorted runs: see [`SortedRuns`](crate::sort::SortedRuns).
#[derive(Debug)]
pub struct Runs {
    memory: Spare,
    /// The number of pairs per run; the last run may have fewer.
    run: usize,
}

impl Runs {
    /// Sorts codes with their values in at most `most` runs. Returns `None` if there are too many for that, or if no kernel
    /// merges codes or moves values of their size. Where values have no size, there are none.
    ///
    /// # Errors
    /// Those of [`SortedRuns::new`](crate::sort::SortedRuns::new).
    pub fn new(stream: &Stream, keys: AnySlice<'_>, values: AnySlice<'_>, most: usize) -> Result<Option<Self>, Error> {
        expect_len("the values of a sort", if values.size() == 0 { 0 } else { keys.len() }, values.len())?;
        let from = Columns { keys: keys.raw_view(stream)?, values: values.raw_view(stream)? };
        if keys.size() > 8 || !is_moved(keys.size(), from.values) {
            return Ok(None);
        }
        let digits = Digits::new(Sign::NONE, 0, 8 * keys.size() as u32, false);
        let Some(chunks) = Chunks::at_most(most, from, digits) else { return Ok(None) };
        let mut memory = Spare::like(stream, from)?;
        chunks.sort(stream, from, memory.target(stream)?)?;
        Ok(Some(Self { memory, run: chunks.len }))
    }

    /// Returns the runs, each with its codes and values.
    pub fn runs(&self) -> impl Iterator<Item = (AnySlice<'_>, AnySlice<'_>)> {
        let (keys, values) = (self.memory.keys.as_slice(), self.memory.values.as_slice());
        (0..keys.len()).step_by(self.run).map(move |start| {
            let range = start..keys.len().min(start + self.run);
            let of_values = if values.size() == 0 { 0..0 } else { range.clone() };
            keys.slice(range)
                .and_then(|keys| Ok((keys, values.slice(of_values)?)))
                .expect("runs lie within the vectors")
        })
    }
}

/// How keys become the codes that they are sorted by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Coding {
    /// The bytes of a code.
    pub size: usize,
    /// The bits of a code.
    pub bits: u32,
    pub sign: Sign,
    /// The function, unless keys are numbers: the sign says how those become codes.
    pub code: Option<HoleCode>,
    /// Whether keys are floats of two bytes.
    pub is_half: bool,
}

impl Coding {
    /// Codes are their own.
    pub fn of_codes(size: usize) -> Self {
        Self { size, bits: 8 * size as u32, sign: Sign::NONE, code: None, is_half: false }
    }

    /// Returns the layout of the codes, in the types that kernels have for them.
    pub fn layout(&self) -> Layout {
        sized!(
            self.size => C in u32 | u64 | u128 | U256, Layout::new::<C>(),
            else unreachable!("codes have 4, 8, 16 or 32 bytes")
        )
    }

    pub(super) fn digits(&self, options: &Options) -> Result<Option<Digits>, Error> {
        options.digits(self.sign, self.bits)
    }

    /// Checks that codes have the bits to compare.
    pub fn expect_bits(&self, options: &Options) -> Result<(), Error> {
        self.digits(options).map(drop)
    }

    /// Returns whether kernels can sort the keys where they are.
    pub(super) fn is_in_place(&self, keys: ColumnsMut) -> bool {
        let keys = keys.keys.as_const();
        keys.size() <= 8 && self.code.is_none() && keys.has_layout(self.layout())
    }
}

pub(crate) fn keys(
    stream: &Stream,
    from: Elements<'_>,
    to: AnySliceMut<'_>,
    coding: &Coding,
    options: &Options,
) -> Result<(), Error> {
    expect_len("the output of a sort", from.len(), to.len())?;
    coding.expect_bits(options)?;
    let from = InMemory::new(stream, from)?;
    sort_to(stream, Columns::keys(stream, from.as_slice())?, ColumnsMut::keys(stream, to)?, coding, options, None)
}

pub(crate) fn pairs(
    stream: &Stream,
    (keys, values): (Elements<'_>, Elements<'_>),
    to: (AnySliceMut<'_>, AnySliceMut<'_>),
    coding: &Coding,
    options: &Options,
) -> Result<(), Error> {
    // Before anything is written to new memory.
    expect_len("the values of a sort", keys.len(), values.len())?;
    expect_len("the output of a sort", keys.len(), to.0.len())?;
    expect_len("the values' output of a sort", to.0.len(), to.1.len())?;
    coding.expect_bits(options)?;
    let (keys, values) = (InMemory::new(stream, keys)?, InMemory::new(stream, values)?);
    let (from, to) = operands(stream, (keys.as_slice(), values.as_slice()), to)?;
    sort_to(stream, from, to, coding, options, None)
}

pub(crate) fn keys_in_place(
    stream: &Stream,
    keys: AnySliceMut<'_>,
    coding: &Coding,
    options: &Options,
) -> Result<(), Error> {
    sort_in_place(stream, ColumnsMut::keys(stream, keys)?, coding, options)
}

pub(crate) fn pairs_in_place(
    stream: &Stream,
    pairs: (AnySliceMut<'_>, AnySliceMut<'_>),
    coding: &Coding,
    options: &Options,
) -> Result<(), Error> {
    sort_in_place(stream, ColumnsMut::new(stream, pairs, "the values of a sort")?, coding, options)
}

pub(crate) fn keys_double_buffered(
    stream: &Stream,
    first: AnySliceMut<'_>,
    second: AnySliceMut<'_>,
    coding: &Coding,
    options: &Options,
) -> Result<Side, Error> {
    expect_len("the second buffer of a sort", first.len(), second.len())?;
    sort_between(stream, ColumnsMut::keys(stream, first)?, ColumnsMut::keys(stream, second)?, coding, options)
}

pub(crate) fn pairs_double_buffered(
    stream: &Stream,
    first: (AnySliceMut<'_>, AnySliceMut<'_>),
    second: (AnySliceMut<'_>, AnySliceMut<'_>),
    coding: &Coding,
    options: &Options,
) -> Result<Side, Error> {
    expect_len("the second buffer of a sort", first.0.len(), second.0.len())?;
    let first = ColumnsMut::new(stream, first, "the values of a sort")?;
    let second = ColumnsMut::new(stream, second, "the values' second buffer of a sort")?;
    sort_between(stream, first, second, coding, options)
}

/// Returns the indices of `len` keys.
pub(crate) fn indices(stream: &Stream, len: usize) -> Result<DeviceVec<u32>, Error> {
    if len > 1 << 32 {
        return Err(Error::TooLong { what: "argsort with 32-bit indices", len, limit: 1 << 32 });
    }
    let mut indices = stream.uninit::<u32>(len)?;
    transform::sequence(stream, &mut indices, 0)?;
    Ok(indices)
}

pub(crate) fn argsort(
    stream: &Stream,
    keys: Elements<'_>,
    coding: &Coding,
    options: &Options,
) -> Result<DeviceVec<u32>, Error> {
    let len = keys.len();
    let indices = indices(stream, len)?;
    let mut order = stream.uninit::<u32>(len)?;
    let mut sorted = AnyVec::uninit(stream, keys.size(), len)?;
    let to = (sorted.as_mut_slice(), order.as_mut_slice().into());
    pairs(stream, (keys, indices.as_slice().into()), to, coding, options)?;
    Ok(order)
}

pub(crate) fn rank(
    stream: &Stream,
    keys: Elements<'_>,
    coding: &Coding,
    options: &Options,
) -> Result<DeviceVec<u32>, Error> {
    let count = keys.count();
    let order = argsort(stream, keys, coding, options)?;
    let positions = indices(stream, order.len())?;
    let mut ranks = stream.uninit::<u32>(order.len())?;
    let order = Counted::by(&order, count);
    // SAFETY: the order has each index once: it is what a sort made of all of them, by codes that it had computed before.
    unsafe { permute::scatter_unchecked(stream, &positions, order, &mut ranks)? };
    Ok(ranks)
}

pub(crate) fn pairs_by_digits(
    stream: &Stream,
    from: (AnySlice<'_>, AnySlice<'_>),
    to: (AnySliceMut<'_>, AnySliceMut<'_>),
    kernels: &dyn Kernels,
    passes: u32,
    limit: usize,
) -> Result<(), Error> {
    let (from, to) = operands(stream, from, to)?;
    if passes == 0 || passes as usize > limit {
        return Err(Error::TooMany { what: "passes of a sort", asked: passes as usize, limit });
    }
    if from.keys.len() == 0 {
        return Ok(());
    }
    if passes == 1 {
        return run_passes(stream, from, [to, to], kernels, passes);
    }
    let mut spare = Spare::like(stream, from)?;
    let spare = spare.target(stream)?;
    run_passes(stream, from, turns(to, spare, passes), kernels, passes)
}

/// Returns the input and the output of a sort of pairs.
pub(super) fn operands(
    stream: &Stream,
    from: (AnySlice<'_>, AnySlice<'_>),
    to: (AnySliceMut<'_>, AnySliceMut<'_>),
) -> Result<(Columns, ColumnsMut), Error> {
    let from = Columns::new(stream, from, "the values of a sort")?;
    expect_len("the output of a sort", from.keys.len(), to.0.len())?;
    Ok((from, ColumnsMut::new(stream, to, "the values' output of a sort")?))
}

/// Returns the targets of the passes. The last pass writes to the output, so with an odd number of passes the first one does
/// too.
pub(super) fn turns(to: ColumnsMut, spare: ColumnsMut, passes: u32) -> [ColumnsMut; 2] {
    if passes % 2 == 1 { [to, spare] } else { [spare, to] }
}

/// Sorts in the form in which kernels exist: numbers in the type of their codes, other keys by their codes. Sorts all, or each row of so
/// many items.
pub(super) fn sort_to(
    stream: &Stream,
    from: Columns,
    to: ColumnsMut,
    coding: &Coding,
    options: &Options,
    row: Option<usize>,
) -> Result<(), Error> {
    assert_eq!(from.sizes(), to.sizes(), "the output of a sort has elements of the same sizes");
    let Some(digits) = coding.digits(options)? else {
        return copy_all(stream, from, to);
    };
    if let Some(code) = coding.code {
        let sort = if coding.is_half { sort_halves } else { sort_coded };
        return sort(stream, from, to, coding.layout(), code, (digits, row));
    }
    let keys = LaidOut::new(stream, from.keys, coding.layout())?;
    let to_keys = LaidOutMut::first(stream, to.keys, coding.layout(), from.limit().counted())?;
    let from = Columns { keys: keys.view, values: from.values };
    sort_values(stream, from, ColumnsMut { keys: to_keys.view, values: to.values }, digits, row)?;
    to_keys.finish(stream)
}

/// Sorts codes of `bits` bits, the largest first, with their values. Equal ones keep their order.
pub(crate) fn descending_codes(stream: &Stream, from: Columns, to: ColumnsMut, bits: u32) -> Result<(), Error> {
    sort_values(stream, from, to, Digits::new(Sign::NONE, 0, bits, true), None)
}

/// Sorts codes with values of any size.
fn sort_values(
    stream: &Stream,
    from: Columns,
    to: ColumnsMut,
    digits: Digits,
    row: Option<usize>,
) -> Result<(), Error> {
    let code = from.keys.size();
    if code > 16 || moves(code, from.values, row) && moves(code, to.values.as_const(), row) {
        return sort_codes(stream, from, to, digits, row);
    }
    let indices = sort_indices(stream, from.keys, to.keys, digits, row)?;
    indices.gather_held(stream, from.values, to.values)
}

/// Returns whether the kernels move these values with codes of `code` bytes.
fn moves(code: usize, values: Column, row: Option<usize>) -> bool {
    if row.is_some() { rows::is_moved(code, values) } else { is_moved(code, values) }
}

/// Sorts codes, and returns where their values go.
pub(super) fn sort_indices(
    stream: &Stream,
    codes: Column,
    sorted: ColumnMut,
    digits: Digits,
    row: Option<usize>,
) -> Result<Indices, Error> {
    let mut indices = Indices::new(stream, codes.len(), codes.len())?;
    let from = Columns { keys: codes, values: indices.from.raw_view(stream)?.into() };
    let to = ColumnsMut { keys: sorted, values: indices.to.raw_view_mut(stream)?.into() };
    sort_codes(stream, from, to, digits, row)?;
    Ok(indices)
}

/// Sorts keys by their codes: computes the codes, and sorts them with the keys as values (keys alone, of a size that
/// kernels move) or with the indices of keys and values.
fn sort_coded(
    stream: &Stream,
    from: Columns,
    to: ColumnsMut,
    layout: Layout,
    code: HoleCode,
    (digits, row): (Digits, Option<usize>),
) -> Result<(), Error> {
    let len = from.keys.len();
    if len == 0 {
        return Ok(());
    }
    let mut codes = encode_keys_of(stream, from.keys, layout, code)?;
    let mut sorted = AnyVec::uninit(stream, layout.size(), len)?;
    let (codes, sorted) = (codes.raw_view_mut(stream)?.as_const().limited(from.limit()), sorted.raw_view_mut(stream)?);
    let size = layout.size();
    let moves_keys = moves(size, from.keys, row) && moves(size, to.keys.as_const(), row);
    if from.values.size() == 0 && size <= 8 && moves_keys {
        let from = Columns { keys: codes, values: from.keys };
        return sort_codes(stream, from, ColumnsMut { keys: sorted, values: to.keys }, digits, row);
    }
    let indices = sort_indices(stream, codes, sorted, digits, row)?;
    indices.gather_held(stream, from.keys, to.keys)?;
    indices.gather_held(stream, from.values, to.values)
}

/// Sorts floats of two bytes by their codes, which give them back.
fn sort_halves(
    stream: &Stream,
    from: Columns,
    to: ColumnsMut,
    layout: Layout,
    code: HoleCode,
    (digits, row): (Digits, Option<usize>),
) -> Result<(), Error> {
    let len = from.keys.len();
    if len == 0 {
        return Ok(());
    }
    let mut codes = encode_keys_of(stream, from.keys, layout, code)?;
    let mut sorted = stream.uninit::<u32>(len)?;
    let limit = from.limit();
    let coded = Columns { keys: codes.raw_view_mut(stream)?.as_const().limited(limit), values: from.values };
    let to_codes = ColumnsMut { keys: sorted.raw_view_mut(stream)?.into(), values: to.values };
    sort_values(stream, coded, to_codes, digits, row)?;
    let bits =
        map!(|code: u32| -> u16 { if code >> 15 == 0 { (code ^ 0xFFFF) as u16 } else { (code ^ 0x8000) as u16 } });
    let keys = source::map(&sorted, bits).into_parts()?.lower().open(stream)?.fused();
    transform::write_arg(stream, keys.limited(limit.counted()), to.keys)
}

/// Computes the codes of keys.
pub(super) fn encode_keys_of(stream: &Stream, keys: Column, layout: Layout, code: HoleCode) -> Result<AnyVec, Error> {
    let mut codes = AnyVec::uninit(stream, layout.size(), keys.len())?;
    transform::write_arg(stream, source::results_of(code.hole(), keys), codes.raw_view_mut(stream)?)?;
    Ok(codes)
}

/// Sorts codes with values that kernels move; those of 256 bits with values of any size.
pub(super) fn sort_codes(
    stream: &Stream,
    from: Columns,
    to: ColumnsMut,
    digits: Digits,
    row: Option<usize>,
) -> Result<(), Error> {
    if let Some(row) = row {
        return rows::sort_codes(stream, from, to, digits, row);
    }
    if from.keys.size() > 16 {
        // A merge takes fewer passes than there are digits.
        return merge_sort::sort(stream, from, to, HoleOrder::of::<U256, _>(digits.order_of_long()));
    }
    let chunks = Chunks::of(from, digits);
    if let Some(chunk) = chunks.filter(|chunks| from.keys.len() <= chunks.len) {
        return chunk.sort(stream, from, to);
    }
    let mut spare = Spare::like(stream, from)?;
    let spare = spare.target(stream)?;
    if let Some(chunks) = chunks {
        chunks.sort(stream, from, spare)?;
        return chunks.place(stream, spare.as_const().limited(from.limit()), to);
    }
    sort_passes(stream, from, turns(to, spare, digits.passes()), digits)
}

fn sort_passes(stream: &Stream, from: Columns, targets: [ColumnsMut; 2], digits: Digits) -> Result<(), Error> {
    sort_digits!(from.sizes() => (K, V, ITEMS, BLOCK_ITEMS), {
        run_passes(stream, from, targets, &Typed::<K, V, Digits>::new(digits), digits.passes())
    })
}

pub(super) fn sort_in_place(
    stream: &Stream,
    data: ColumnsMut,
    coding: &Coding,
    options: &Options,
) -> Result<(), Error> {
    let Some(digits) = coding.digits(options)? else { return Ok(()) };
    let source = data.as_const();
    if !coding.is_in_place(data) || !is_moved(source.keys.size(), source.values) {
        let mut copy = Spare::like(stream, source)?;
        let copy = copy.target(stream)?;
        copy_all(stream, source, copy)?;
        return sort_to(stream, copy.as_const().limited(source.limit()), data, coding, options, None);
    }
    let chunks = Chunks::of(source, digits);
    if let Some(chunk) = chunks.filter(|chunks| source.keys.len() <= chunks.len) {
        return chunk.sort(stream, source, data);
    }
    let mut spare = Spare::like(stream, source)?;
    let spare = spare.target(stream)?;
    if let Some(chunks) = chunks {
        chunks.sort(stream, source, spare)?;
        return chunks.place(stream, spare.as_const().limited(source.limit()), data);
    }
    sort_passes(stream, source, [spare, data], digits)?;
    if digits.passes() % 2 == 1 { copy_all(stream, spare.as_const().limited(source.limit()), data) } else { Ok(()) }
}

fn sort_between(
    stream: &Stream,
    first: ColumnsMut,
    second: ColumnsMut,
    coding: &Coding,
    options: &Options,
) -> Result<Side, Error> {
    let Some(digits) = coding.digits(options)? else { return Ok(Side::First) };
    assert_eq!(first.sizes(), second.sizes(), "both buffers of a sort have elements of the same sizes");
    let source = first.as_const();
    let is_moved = [first, second]
        .iter()
        .all(|pairs| coding.is_in_place(*pairs) && is_moved(pairs.keys.size(), pairs.values.as_const()));
    if !is_moved {
        sort_to(stream, source, second, coding, options, None)?;
        return Ok(Side::Second);
    }
    if let Some(chunks) = Chunks::of(source, digits) {
        chunks.sort(stream, source, first)?;
        if source.keys.len() <= chunks.len {
            return Ok(Side::First);
        }
        chunks.place(stream, source, second)?;
        return Ok(Side::Second);
    }
    sort_passes(stream, source, [second, first], digits)?;
    Ok(if digits.passes() % 2 == 1 { Side::Second } else { Side::First })
}

pub(super) fn copy_all(stream: &Stream, from: Columns, to: ColumnsMut) -> Result<(), Error> {
    let limit = from.limit();
    copy_first(stream, from.keys, to.keys)?;
    copy_first(stream, from.values.limited(limit), to.values)
}
