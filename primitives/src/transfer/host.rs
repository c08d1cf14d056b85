//! Host functions of the transfers.

#![deny(unsafe_op_in_unsafe_fn)]

use super::device::{COPY_TILE, CopyElements, CopyLines, Edges, FILL_TILE, FillLines, Line};
use crate::host::runtime::column::{Column, ColumnMut};
use crate::{DeviceSlice, DeviceSliceMut, Error, Global, GlobalMut, Stream, expect_len};
use bytemuck::Pod;

/// Copies device memory with a kernel.
///
/// # Errors
/// [`Error::LengthMismatch`] if the slices differ in length; any launch error.
pub fn copy<'a, 'b, T: Pod>(
    stream: &Stream,
    from: impl Into<DeviceSlice<'a, T>>,
    to: impl Into<DeviceSliceMut<'b, T>>,
) -> Result<(), Error> {
    let (from, mut to) = (from.into(), to.into());
    let _span = crate::span!(stream, "transfer::copy", from.len());
    expect_len("the target of a copy", from.len(), to.len())?;
    copy_columns(stream, from.raw_view(stream)?.into(), to.raw_view_mut(stream)?.into())
}

/// [`copy`] of columns of equal lengths and sizes.
pub(crate) fn copy_columns(stream: &Stream, from: Column, to: ColumnMut) -> Result<(), Error> {
    let (from, to) = (from.words::<u8>(), to.words::<u8>());
    if to.is_empty() {
        return Ok(());
    }
    let (from_address, to_address) = (from.as_ptr().addr(), to.as_const().as_ptr().addr());
    match (from_address ^ to_address) % 16 {
        0 => {
            let split = Split::of(to_address, to.len());
            // SAFETY: the lines lie within the bytes, aligned, at the same offset in both buffers.
            let (from_lines, to_lines) = unsafe {
                (
                    Global::from_raw(from.as_ptr().wrapping_add(split.head).cast::<Line>(), split.lines),
                    GlobalMut::from_raw(
                        to.as_const().as_ptr().wrapping_add(split.head).cast_mut().cast::<Line>(),
                        split.lines,
                    ),
                )
            };
            let kernel = CopyLines::new(from, to, from_lines, to_lines, split.edges());
            // SAFETY: the kernel's contract holds: the addresses agree modulo 16, and there is one block per tile and
            // at least one block.
            unsafe { stream.launch(kernel, split.lines.div_ceil(COPY_TILE).max(1)) }
        }
        // The widest word that both addresses are aligned for.
        apart => match (apart | from_address | to.len()) % 16 {
            bits if bits % 8 == 0 => copy_elements::<u64>(stream, from, to),
            bits if bits % 4 == 0 => copy_elements::<u32>(stream, from, to),
            bits if bits % 2 == 0 => copy_elements::<u16>(stream, from, to),
            _ => copy_elements::<u8>(stream, from, to),
        },
    }
}

fn copy_elements<W: Pod>(stream: &Stream, from: Global<u8>, to: GlobalMut<u8>) -> Result<(), Error> {
    let len = to.len() / size_of::<W>();
    // SAFETY: both addresses and the length are multiples of the element size, as the caller has checked.
    let kernel = unsafe {
        CopyElements::<W>::new(
            Global::from_raw(from.as_ptr().cast(), len),
            GlobalMut::from_raw(to.as_const().as_ptr().cast_mut().cast(), len),
        )
    };
    // SAFETY: equal lengths, one block per tile.
    unsafe { stream.launch(kernel, len.div_ceil(COPY_TILE)) }
}

/// Sets every element to `value`.
///
/// One launch for elements of 1, 2, 4, 8 or 16 bytes, and for a value whose bytes are all equal. For others, one launch
/// per 16 bytes of an element, and then one for each doubling of what is filled.
///
/// # Errors
/// Any launch error.
pub fn fill<'a, T: Pod>(stream: &Stream, to: impl Into<DeviceSliceMut<'a, T>>, value: T) -> Result<(), Error> {
    let mut to = to.into();
    let _span = crate::span!(stream, "transfer::fill", to.len());
    fill_column(stream, to.raw_view_mut(stream)?.into(), bytemuck::bytes_of(&value))
}

/// [`fill`] with the bytes of a value.
pub(crate) fn fill_column(stream: &Stream, to: ColumnMut, value: &[u8]) -> Result<(), Error> {
    let to = to.words::<u8>();
    if to.is_empty() {
        return Ok(());
    }
    if value.iter().all(|byte| *byte == value[0]) {
        return fill_pattern(stream, to, &value[..1]);
    }
    if LINE.is_multiple_of(value.len()) {
        return fill_pattern(stream, to, value);
    }
    for (i, piece) in value.chunks(LINE).enumerate() {
        fill_pattern(stream, part(to, i * LINE, piece.len()), piece)?;
    }
    let mut filled = value.len();
    while filled < to.len() {
        let more = filled.min(to.len() - filled);
        copy_columns(stream, part(to, 0, more).as_const().into(), part(to, filled, more).into())?;
        filled += more;
    }
    Ok(())
}

/// The bytes of a [`Line`].
const LINE: usize = size_of::<Line>();

/// Returns `len` of the bytes, which exist.
fn part(bytes: GlobalMut<u8>, start: usize, len: usize) -> GlobalMut<u8> {
    // SAFETY: these bytes are some of those.
    unsafe { GlobalMut::from_raw(bytes.as_const().as_ptr().wrapping_add(start).cast_mut(), len) }
}

/// Fills memory with a pattern: one that fits a whole number of times into a line, or one that is as long as the memory and no
/// longer than a line.
fn fill_pattern(stream: &Stream, to: GlobalMut<u8>, pattern: &[u8]) -> Result<(), Error> {
    debug_assert!(LINE.is_multiple_of(pattern.len()) || pattern.len() == to.len() && to.len() <= LINE);
    let address = to.as_const().as_ptr().addr();
    let split = Split::of(address, to.len());
    // An aligned line. It need not begin with the pattern's first byte.
    let mut line = Line([0; 4]);
    for (i, byte) in bytemuck::bytes_of_mut(&mut line).iter_mut().enumerate() {
        *byte = pattern[i.wrapping_sub(address) % LINE % pattern.len()];
    }
    // SAFETY: the lines lie within the bytes and are aligned.
    let to_lines = unsafe {
        GlobalMut::from_raw(to.as_const().as_ptr().wrapping_add(split.head).cast_mut().cast::<Line>(), split.lines)
    };
    let kernel = FillLines::new(to, to_lines, line, split.edges());
    // SAFETY: one block per tile, and at least one block.
    unsafe { stream.launch(kernel, split.lines.div_ceil(FILL_TILE).max(1)) }
}

/// A range of bytes, divided into whole aligned lines and the bytes before and after them.
struct Split {
    head: usize,
    lines: usize,
    tail: usize,
}

impl Split {
    fn of(address: usize, len: usize) -> Self {
        let head = (address.wrapping_neg() % 16).min(len);
        let lines = (len - head) / 16;
        Self { head, lines, tail: len - head - lines * 16 }
    }

    fn edges(&self) -> Edges {
        Edges { head: self.head as u32, tail: self.tail as u32 }
    }
}
