//! Host functions of packed bits.

#![deny(unsafe_op_in_unsafe_fn)]

use super::device::{
    BitPositions, BitView, CombineBits, CountBits, PACK_TILE, PackBits, THREADS, WORDS_TILE, bit_positions, pack_bits,
    table,
};
use crate::block::lookback;
use crate::host::repr::{expect_repr, repr_size_or_bytes};
use crate::host::runtime::column::AnySliceMut;
use crate::host::source::{AnySource, Source};
use crate::search::IndexOut;
use crate::select::{HolePredicate, Predicate};
use crate::{Bits, DeviceSliceMut, DeviceValue, Error, Stream, expect_len, expect_room};
use bytemuck::Pod;

/// Writes a bit for each element: whether it passes. There is a byte of output for each eight elements. Bits of the last byte after
/// the last element are 0. If only the device knows the length of the source, bits after its last element are 0, too. Does not wait.
///
/// # Errors
/// [`Error::LengthMismatch`] if there are not as many bytes; any launch error.
pub fn pack<'a, 'b, T: Pod, P: Predicate<T>>(
    stream: &Stream,
    input: impl Source<'a, T>,
    output: impl Into<DeviceSliceMut<'b, u8>>,
    predicate: P,
) -> Result<(), Error> {
    const { expect_repr::<T>() };
    let (input, output) = (input.into_parts()?.lower(), output.into());
    let _span = crate::span!(stream, "bits::pack", input.len());
    pack_any(stream, &input, output, HolePredicate::of::<T, P>(predicate))
}

fn pack_any(
    stream: &Stream,
    input: &AnySource<'_>,
    mut output: DeviceSliceMut<'_, u8>,
    keep: HolePredicate,
) -> Result<(), Error> {
    let len = input.len();
    expect_len("the bytes of packed bits", len.div_ceil(8), output.len())?;
    let (input, output) = (input.open(stream)?, output.raw_view_mut(stream)?);
    if len == 0 {
        return Ok(());
    }
    pack_bits!(repr_size_or_bytes(input.size()) => H, {
        let kernel = PackBits::<H>::new(input.fused(), keep, output);
        // SAFETY: one block per tile, and a byte for each eight elements. The output is borrowed mutably.
        unsafe { stream.launch(kernel, len.div_ceil(PACK_TILE)) }
    })
}

/// Returns how many bits are set. Does not wait.
///
/// # Errors
/// [`Error::OutOfMemory`]; any launch error.
pub fn count(stream: &Stream, bits: Bits<'_>) -> Result<DeviceValue<u64>, Error> {
    let _span = crate::span!(stream, "bits::count", bits.len());
    let mut count = DeviceValue::new(stream, 0)?;
    if !bits.is_empty() {
        let kernel = CountBits::new(view(stream, bits)?, count.as_mut_slice().raw_view_mut(stream)?);
        // SAFETY: one block per tile; one count.
        unsafe { stream.launch(kernel, bits.len().div_ceil(WORDS_TILE))? };
    }
    Ok(count)
}

/// Writes the positions of the bits that are set to the front of `output`, in order, and returns how many there are. Does not wait.
///
/// `output` has at least as many elements as there are bits. Elements after the positions are not changed.
///
/// # Errors
/// [`Error::LengthMismatch`] if the output is too short; [`Error::TooLong`] if 32 bits do not hold the positions: nothing is written in
/// these cases. [`Error::OutOfMemory`]; any launch error.
pub fn positions<'a, P: IndexOut>(
    stream: &Stream,
    bits: Bits<'_>,
    output: impl Into<DeviceSliceMut<'a, P>>,
) -> Result<DeviceValue<u64>, Error> {
    let _span = crate::span!(stream, "bits::positions", bits.len());
    let output: DeviceSliceMut<'_, P> = output.into();
    // Positions are less than the length.
    let limit = P::LIMIT.saturating_add(1);
    if bits.len() > limit {
        return Err(Error::TooLong { what: "bits whose positions have 32 bits", len: bits.len(), limit });
    }
    positions_any(stream, bits, output.into())
}

fn positions_any(stream: &Stream, bits: Bits<'_>, mut output: AnySliceMut<'_>) -> Result<DeviceValue<u64>, Error> {
    expect_room("the positions of bits", bits.len(), output.len())?;
    let tiles = bits.len().div_ceil(WORDS_TILE);
    if tiles == 0 {
        return DeviceValue::new(stream, 0);
    }
    let (bits, output) = (view(stream, bits)?, output.raw_view_mut(stream)?);
    let mut count = DeviceValue::uninit(stream)?;
    let scratch = stream.lookback_words(lookback::scratch_words::<u64>(tiles))?;
    let count_view = count.as_mut_slice().raw_view_mut(stream)?;
    bit_positions!(output.size() => P, {
        let kernel = BitPositions::<P>::new(bits, output.as_type(), count_view, scratch);
        // SAFETY: one block per tile; the output has room for all positions; the scratch memory has the words that the tiles
        // need.
        unsafe { stream.launch(kernel, tiles)? };
    });
    Ok(count)
}

/// Writes the bits that are set in both.
///
/// There is a byte of output for each eight bits. Bits of the last byte after the last pair are 0. Does not wait.
///
/// # Errors
/// [`Error::LengthMismatch`] if there are not as many bits in `b` as in `a`, or not as many bytes of output; any launch error.
pub fn and<'a>(
    stream: &Stream,
    a: Bits<'_>,
    b: Bits<'_>,
    output: impl Into<DeviceSliceMut<'a, u8>>,
) -> Result<(), Error> {
    combine(stream, a, b, output.into(), table::AND)
}

/// Writes the bits that are set in one of both, or in both: see [`and`].
///
/// # Errors
/// Same as [`and`].
pub fn or<'a>(
    stream: &Stream,
    a: Bits<'_>,
    b: Bits<'_>,
    output: impl Into<DeviceSliceMut<'a, u8>>,
) -> Result<(), Error> {
    combine(stream, a, b, output.into(), table::OR)
}

/// Writes the bits that are set in one of both alone: see [`and`].
///
/// # Errors
/// Same as [`and`].
pub fn xor<'a>(
    stream: &Stream,
    a: Bits<'_>,
    b: Bits<'_>,
    output: impl Into<DeviceSliceMut<'a, u8>>,
) -> Result<(), Error> {
    combine(stream, a, b, output.into(), table::XOR)
}

/// Writes the bits that are set in `a`, and not in `b`: see [`and`].
///
/// # Errors
/// Same as [`and`].
pub fn and_not<'a>(
    stream: &Stream,
    a: Bits<'_>,
    b: Bits<'_>,
    output: impl Into<DeviceSliceMut<'a, u8>>,
) -> Result<(), Error> {
    combine(stream, a, b, output.into(), table::AND_NOT)
}

/// Writes the opposite of each bit: see [`and`].
///
/// # Errors
/// Same as [`and`].
pub fn not<'a>(stream: &Stream, bits: Bits<'_>, output: impl Into<DeviceSliceMut<'a, u8>>) -> Result<(), Error> {
    combine(stream, bits, bits, output.into(), table::NOT)
}

fn combine(
    stream: &Stream,
    a: Bits<'_>,
    b: Bits<'_>,
    mut output: DeviceSliceMut<'_, u8>,
    table: u32,
) -> Result<(), Error> {
    let _span = crate::span!(stream, "bits::combine", a.len());
    expect_len("the second bits", a.len(), b.len())?;
    expect_len("the bytes of combined bits", a.len().div_ceil(8), output.len())?;
    if a.is_empty() {
        return Ok(());
    }
    let kernel = CombineBits::new(view(stream, a)?, view(stream, b)?, table, output.raw_view_mut(stream)?);
    // SAFETY: one thread per byte; as many bits on both sides. The output is borrowed mutably.
    unsafe { stream.launch(kernel, output.len().div_ceil(THREADS as usize)) }
}

/// Returns the bits as kernels read them.
pub(crate) fn view(stream: &Stream, bits: Bits<'_>) -> Result<BitView, Error> {
    let (bytes, start, len) = bits.raw_parts(stream)?;
    Ok(BitView { bytes, start, len })
}
