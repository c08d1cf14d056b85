//! Host functions of the reduction.

#![deny(unsafe_op_in_unsafe_fn)]

pub(crate) mod arg;
pub(crate) mod min_max;
pub(crate) mod passing;
pub(crate) mod segmented;

use super::device::kernel::{ReduceTiles, THREADS, reduce_tiles};
use super::{Monoid, Sum};
use crate::hole::RegisterRepr;
use crate::host::repr::{expect_repr, repr_size_or_bytes};
use crate::host::runtime::column::AnySliceMut;
use crate::host::source::{AnySource, Source};
use crate::input::SourceArg;
use crate::monoid::HoleMonoid;
use crate::transform::laid_out::ReprOutput;
use crate::{DeviceValue, Error, GlobalMut, Stream};
use bytemuck::Pod;

/// Returns the sum of all elements. Integers wrap; an empty input gives 0. Does not wait.
///
/// # Errors
/// [`Error::OutOfMemory`]; any launch error.
pub fn sum<'a, T: Pod>(stream: &Stream, input: impl Source<'a, T>) -> Result<DeviceValue<T>, Error>
where
    Sum: Monoid<T>,
{
    let input = input.into_parts()?;
    let _span = crate::span!(stream, "reduce::sum", input.len());
    reduce(stream, input, Sum)
}

/// Returns the combination of all elements, in order. An empty input gives the identity. Does not wait.
///
/// # Errors
/// [`Error::OutOfMemory`]; any launch error.
pub fn reduce<'a, T: Pod, M: Monoid<T>>(
    stream: &Stream,
    input: impl Source<'a, T>,
    operation: M,
) -> Result<DeviceValue<T>, Error> {
    const { expect_repr::<T>() };
    let input = input.into_parts()?.lower();
    let _span = crate::span!(stream, "reduce::reduce", input.len());
    let mut result = DeviceValue::<T>::uninit(stream)?;
    reduce_to(stream, &input, result.as_mut_slice().into(), HoleMonoid::of::<T, M>(operation))?;
    Ok(result)
}

/// [`reduce`], with the place of the result.
pub(super) fn reduce_to(
    stream: &Stream,
    input: &AnySource<'_>,
    mut output: AnySliceMut<'_>,
    operation: HoleMonoid<[u64; 4]>,
) -> Result<(), Error> {
    let (len, input, output) = (input.len(), input.open(stream)?, output.raw_view_mut(stream)?);
    reduce_tiles!(repr_size_or_bytes(output.size()) => (H, VEC, ROWS), {
        let output = ReprOutput::<H>::new(stream, output)?;
        run::<H, VEC, ROWS>(stream, input.fused(), len, output.view, operation)?;
        output.finish(stream)
    })
}

/// A block per tile, unless the tiles are few, or may be combined in any order.
fn run<H: RegisterRepr, const VEC: usize, const ROWS: usize>(
    stream: &Stream,
    input: SourceArg,
    len: usize,
    output: GlobalMut<H>,
    operation: HoleMonoid<[u64; 4]>,
) -> Result<(), Error> {
    /// The tiles that one block reduces alone, without a partial result.
    const ALONE: usize = 2;
    /// The blocks for any order: some waves of them on a large GPU. They exchange their elements once, not for each tile.
    const BLOCKS: usize = 4096;

    let (tiles, commutes) = (len.div_ceil(THREADS as usize * VEC * ROWS), operation.commutes());
    let each = if commutes { tiles.div_ceil(BLOCKS) } else { 1 };
    let (blocks, tiles) = if tiles <= ALONE { (1, tiles) } else { (tiles.div_ceil(each), each) };
    let mut partial = stream.uninit::<H>(if blocks == 1 { 0 } else { blocks })?;
    let (partial, finished) = (partial.raw_view_mut(stream)?, stream.zero_words(1)?);
    let kernel = ReduceTiles::<H, _, _, VEC, ROWS>::new(
        input,
        partial,
        output,
        finished,
        operation.held_in(),
        tiles as u32,
        commutes as u32,
    );
    // SAFETY: the blocks cover all tiles. There is one output, a partial result per block, and a zero of the stream.
    unsafe { stream.launch(kernel, blocks) }
}
