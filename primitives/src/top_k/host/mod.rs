//! Host functions of top-k.

#![deny(unsafe_op_in_unsafe_fn)]

pub(crate) mod find;
pub(crate) mod output;
mod rows;

pub use output::Output;
pub use rows::{RowCounts, Rows, segmented_largest, segmented_smallest};

use super::device::code::{Coding, Position};
use super::device::instances::{find_largest, gather_keys};
use super::device::kernel::{GatherKeys, THREADS};
use super::device::layout::RowLayout;
use super::device::order::{NumberKeys, orderable};
use crate::host::repr::{expect_repr, repr_size_or_bytes};
use crate::host::runtime::column::{Column, ColumnMut, number};
use crate::host::source::{AnySource, Opened, Source};
use crate::input::SourceArg;
use crate::pairs::PairsMut;
use crate::sort::{RadixKey, ShortCode, bits_of, descending_codes, sign_of};
use crate::transform::laid_out::ReprOutput;
use crate::{Error, Stream};
use find::{Find, Memory, Sieve};
use output::AnyOutput;

/// Writes the largest elements, the largest first, and their positions if they are wanted: as many as the [`Output`] has room
/// for. Does not wait.
///
/// If the source has a length that only the device knows, and fewer elements, the positions after them are
/// [`Position::NONE`], and the keys after them are not written.
///
/// # Errors
/// [`Error::LengthMismatch`] if there are not as many positions as keys, or fewer elements; [`Error::TooLong`] if 32 bits
/// do not hold the positions; [`Error::OutOfMemory`]: nothing is written in these cases. Any launch error.
pub fn largest<'a, 'b, K: RadixKey<Code: ShortCode>, P: Position>(
    stream: &Stream,
    input: impl Source<'a, K>,
    output: impl Output<'b, K, P>,
) -> Result<(), Error> {
    let (input, output) = (Keys::new(input, false)?, AnyOutput::new(output));
    let _span = crate::span!(stream, "top_k::largest", input.len());
    select(stream, &input, output)
}

/// Writes the smallest elements, the smallest first, and their positions: see [`largest`].
///
/// # Errors
/// Same as [`largest`].
pub fn smallest<'a, 'b, K: RadixKey<Code: ShortCode>, P: Position>(
    stream: &Stream,
    input: impl Source<'a, K>,
    output: impl Output<'b, K, P>,
) -> Result<(), Error> {
    let (input, output) = (Keys::new(input, true)?, AnyOutput::new(output));
    let _span = crate::span!(stream, "top_k::smallest", input.len());
    select(stream, &input, output)
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

    /// Returns the output, if keys can be written by what stands for them: they are numbers with all bits of it.
    fn number_keys(&self, to: ColumnMut) -> Option<NumberKeys> {
        (self.codes.is_none() && to.size() == self.size).then(|| NumberKeys::new(to.words::<u8>()))
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
    /// Returns what kernels load as codes, or as numbers.
    pub fn fused(&self) -> SourceArg {
        self.codes.as_ref().unwrap_or(&self.plain).fused()
    }
}

fn select(stream: &Stream, input: &Keys<'_>, output: AnyOutput<'_>) -> Result<(), Error> {
    let (len, wanted) = (input.len(), output.keys.len());
    output.expect_positions("the positions of the wanted elements")?;
    if wanted > len {
        return Err(Error::LengthMismatch { what: "the wanted elements", expected: len, found: wanted });
    }
    if wanted == 0 {
        return Ok(());
    }
    let (mut keys, mut positions) = output.open(stream, len)?;
    // Before anything is written: a view can be refused.
    let (to, to_keys) = (positions.raw_view_mut(stream)?, keys.raw_view_mut(stream)?);
    number!(to.size() => P, expect_positions::<P>(len)?);
    let opened = input.open(stream)?;
    let keys = input.number_keys(to_keys);
    let has_keys = find_largest!((input.size, to.size()) => (C, P, VEC, PER), {
        find::<C, P, VEC, PER>(stream, input, &opened, to, keys)?
    });
    if has_keys {
        return Ok(());
    }
    gather(stream, opened.plain.fused(), to.as_const(), to_keys, wanted, RowLayout::equal(len))
}

/// Writes the positions of the largest numbers. Returns whether the keys are also written.
fn find<C: ShortCode, P: Position, const VEC: usize, const PER: usize>(
    stream: &Stream,
    input: &Keys<'_>,
    opened: &OpenedKeys,
    to: ColumnMut,
    keys: Option<NumberKeys>,
) -> Result<bool, Error> {
    let (len, wanted, to) = (input.len(), to.len(), to.typed().expect("positions are aligned"));
    let &Keys { coding, bits, .. } = input;
    let mut selected = Memory::<C, P>::new(stream, wanted)?;
    if input.plain.is_counted() {
        selected.clear(stream)?;
    }
    let mut sieve = Sieve::<C, P>::new(stream, len, wanted, bits)?;
    let find = Find { stream, len, coding, bits, sieve: sieve.view(stream)?, selected: selected.view(stream)? };
    find.run::<_, VEC>(opened.fused())?;
    if wanted <= orderable::<C>() {
        sieve.order::<PER>(stream, selected.view(stream)?, to, coding, keys.unwrap_or(NumberKeys::none()))?;
        return Ok(keys.is_some());
    }
    // Equal codes are in the order of their positions, and stay so.
    let mut sorted = stream.uninit::<C>(wanted)?;
    let to = PairsMut { keys: sorted.raw_view_mut(stream)?, values: to };
    descending_codes(stream, selected.pairs(stream)?.into(), to.into(), bits)?;
    Ok(false)
}

/// Checks that positions in an input of this length can be told.
pub(crate) fn expect_positions<P: Position>(len: usize) -> Result<(), Error> {
    let limit = P::NONE.index();
    if len > limit { Err(Error::TooLong { what: "an input whose positions have 32 bits", len, limit }) } else { Ok(()) }
}

/// Writes the elements at some positions, of which each row has `per_row`.
pub(crate) fn gather(
    stream: &Stream,
    input: SourceArg,
    positions: Column,
    keys: ColumnMut,
    per_row: usize,
    layout: RowLayout,
) -> Result<(), Error> {
    gather_keys!((repr_size_or_bytes(keys.size()), positions.size()) => (H, P), {
        let output = ReprOutput::<H>::with_contents(stream, keys)?;
        let positions = positions.typed().expect("positions are aligned");
        let kernel = GatherKeys::<H, P>::new(input, positions, output.view, per_row as u64, layout);
        // SAFETY: one thread per position, and as many keys. The positions are those of elements.
        unsafe { stream.launch(kernel, positions.len().div_ceil(THREADS as usize))? };
        output.finish(stream)
    })
}
