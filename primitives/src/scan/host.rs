//! Host functions of the scan.

#![deny(unsafe_op_in_unsafe_fn)]

use super::kernel::ScanTiles;
use super::{Monoid, Sum};
use crate::block::lookback;
use crate::monoid::{Combine, HoleMonoid};
use crate::runtime::held::{HeldIn, HeldOut, held, widened};
use crate::with_shape;
use crate::{DeviceSlice, DeviceSliceMut, Error, Stream, expect_len};
use bytemuck::Pod;

/// The tile shape, which is part of the kernel type.
#[doc(hidden)]
pub struct Shape<const THREADS: u32, const VEC: usize, const ROWS: usize>;

/// Computes `output[i] = input[0] + … + input[i - 1]`, with `output[0] = 0`. Integers wrap.
///
/// # Errors
/// [`Error::LengthMismatch`] if the slices differ in length; any launch error.
pub fn exclusive_sum<'a, T>(
    stream: &Stream,
    input: impl Into<DeviceSlice<'a, T>>,
    output: impl Into<DeviceSliceMut<'a, T>>,
) -> Result<(), Error>
where
    T: Pod,
    Sum: Monoid<T>,
{
    exclusive(stream, input, output, Sum, Monoid::identity(&Sum))
}

/// Computes `output[i] = input[0] + … + input[i]`. Integers wrap.
///
/// # Errors
/// Same as [`exclusive_sum`].
pub fn inclusive_sum<'a, T>(
    stream: &Stream,
    input: impl Into<DeviceSlice<'a, T>>,
    output: impl Into<DeviceSliceMut<'a, T>>,
) -> Result<(), Error>
where
    T: Pod,
    Sum: Monoid<T>,
{
    inclusive(stream, input, output, Sum)
}

/// Computes `output[i] = init ∘ input[0] ∘ … ∘ input[i - 1]`.
///
/// # Errors
/// Same as [`exclusive_sum`].
pub fn exclusive<'a, T: Pod, Op: Monoid<T>>(
    stream: &Stream,
    input: impl Into<DeviceSlice<'a, T>>,
    output: impl Into<DeviceSliceMut<'a, T>>,
    op: Op,
    init: T,
) -> Result<(), Error> {
    let (input, mut output) = (input.into(), output.into());
    scan(stream, Operands::apart(stream, input, &mut output)?, op, init, false)
}

/// Computes `output[i] = input[0] ∘ … ∘ input[i]`.
///
/// # Errors
/// Same as [`exclusive`].
pub fn inclusive<'a, T: Pod, Op: Monoid<T>>(
    stream: &Stream,
    input: impl Into<DeviceSlice<'a, T>>,
    output: impl Into<DeviceSliceMut<'a, T>>,
    op: Op,
) -> Result<(), Error> {
    let (input, mut output) = (input.into(), output.into());
    scan(stream, Operands::apart(stream, input, &mut output)?, op, op.identity(), true)
}

/// Runs [`exclusive`] in place.
///
/// # Errors
/// Same as [`exclusive`].
pub fn exclusive_in_place<'a, T: Pod, Op: Monoid<T>>(
    stream: &Stream,
    data: impl Into<DeviceSliceMut<'a, T>>,
    op: Op,
    init: T,
) -> Result<(), Error> {
    let mut data = data.into();
    scan(stream, Operands::same(stream, &mut data)?, op, init, false)
}

/// Runs [`inclusive`] in place.
///
/// # Errors
/// Same as [`exclusive`].
pub fn inclusive_in_place<'a, T: Pod, Op: Monoid<T>>(
    stream: &Stream,
    data: impl Into<DeviceSliceMut<'a, T>>,
    op: Op,
) -> Result<(), Error> {
    let mut data = data.into();
    scan(stream, Operands::same(stream, &mut data)?, op, op.identity(), true)
}

/// Input and output of equal length: two buffers, or the same one.
#[doc(hidden)]
pub struct Operands<T> {
    input: crate::Global<T>,
    output: crate::GlobalMut<T>,
}

impl<T: Pod> Operands<T> {
    fn apart(stream: &Stream, input: DeviceSlice<'_, T>, output: &mut DeviceSliceMut<'_, T>) -> Result<Self, Error> {
        expect_len("the output of a scan", input.len(), output.len())?;
        Ok(Self { input: input.raw_view(stream)?, output: output.raw_view_mut(stream)? })
    }

    /// Each tile is read before it is written, by the same block, so both may be the same memory.
    fn same(stream: &Stream, data: &mut DeviceSliceMut<'_, T>) -> Result<Self, Error> {
        let output = data.raw_view_mut(stream)?;
        Ok(Self { input: output.as_const(), output })
    }
}

/// Scans in the form in which kernels exist: elements in the type that holds them.
fn scan<T: Pod, Op: Monoid<T>>(
    stream: &Stream,
    data: Operands<T>,
    op: Op,
    init: T,
    inclusive: bool,
) -> Result<(), Error> {
    let is_in_place = data.input.as_ptr() == data.output.as_const().as_ptr();
    held!(T as H or bytes, {
        let output = if is_in_place {
            HeldOut::<T, H>::with_contents(stream, data.output)?
        } else {
            HeldOut::<T, H>::new(stream, data.output)?
        };
        let input = if is_in_place { None } else { Some(HeldIn::<H>::new(stream, data.input)?) };
        let view = input.as_ref().map_or(output.view.as_const(), |input| input.view);
        let held = Operands { input: view, output: output.view };
        scan_held(stream, held, HoleMonoid::<H>::of::<T, Op>(op), widened(init), inclusive)?;
        output.finish(stream)
    })
}

/// Returns the elements per access: accesses of 16 bytes, but not more than 4 elements.
const fn vector<T>() -> usize {
    match size_of::<T>() {
        1 | 2 | 4 => 4,
        8 => 2,
        _ => 1,
    }
}

fn scan_held<T: Pod, Op: Combine<T>>(
    stream: &Stream,
    data: Operands<T>,
    op: Op,
    init: T,
    inclusive: bool,
) -> Result<(), Error> {
    // An odd number of rows, which the exchange requires. 144 bytes per thread measured best. Not all GPUs have room for
    // nine rows of 32 bytes.
    if const { size_of::<T>() > 16 } {
        run::<T, Op, 256, 1, 7>(stream, data, op, init, inclusive)
    } else {
        with_shape!(
            VEC in 4 | 2 | 1 = vector::<T>(),
            run::<T, Op, 256, VEC, 9>(stream, data, op, init, inclusive)
        )
    }
}

/// Runs [`exclusive`] or [`inclusive`] with a given tile shape: for tests that need many tiles of few elements.
#[doc(hidden)]
pub fn scan_shaped<T: Pod, Op: Monoid<T>, const THREADS: u32, const VEC: usize, const ROWS: usize>(
    stream: &Stream,
    input: DeviceSlice<'_, T>,
    mut output: DeviceSliceMut<'_, T>,
    op: Op,
    inclusive: bool,
    _: Shape<THREADS, VEC, ROWS>,
) -> Result<(), Error> {
    let data = Operands::apart(stream, input, &mut output)?;
    held!(T as H or bytes, {
        let (input, output) =
            (HeldIn::<H>::new(stream, data.input)?, HeldOut::<T, H>::new(stream, data.output)?);
        let (held, op) = (Operands { input: input.view, output: output.view }, HoleMonoid::<H>::of::<T, Op>(op));
        run::<H, _, THREADS, VEC, ROWS>(stream, held, op, op.identity(), inclusive)?;
        output.finish(stream)
    })
}

fn run<T: Pod, Op: Combine<T>, const THREADS: u32, const VEC: usize, const ROWS: usize>(
    stream: &Stream,
    data: Operands<T>,
    op: Op,
    init: T,
    inclusive: bool,
) -> Result<(), Error> {
    let tiles = data.input.len().div_ceil(THREADS as usize * VEC * ROWS);
    if tiles == 0 {
        return Ok(());
    }
    let scratch = stream.lookback_words(lookback::scratch_words::<T>(tiles))?;
    let kernel =
        ScanTiles::<T, Op, THREADS, VEC, ROWS>::new(data.input, data.output, op, init, u32::from(inclusive), scratch);
    // SAFETY: one block per tile; input and output have equal lengths; the scratch memory has the words that the tiles
    // need.
    unsafe { stream.launch(kernel, tiles) }
}
