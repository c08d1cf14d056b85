//! Host functions of segments.

#![deny(unsafe_op_in_unsafe_fn)]

use super::device::edges::{FindEdges, Offsets, THREADS};
use super::device::heads::{FlagHeads, flag_heads};
use crate::arch::warp::LANES;
use crate::equality::HoleEquality;
use crate::host::repr::repr_size_or_bytes;
use crate::host::runtime::column::{AnyVec, Column, number};
use crate::host::source::{Opened, counting};
use crate::operator::map;
use crate::{DeviceVec, Error, Stream, transform};

/// Returns the offsets as kernels read them, and what [`FindEdges`] finds for `tiles` tiles.
pub(crate) fn find_edges(
    stream: &Stream,
    offsets: Column,
    tiles: usize,
    tile_len: usize,
) -> Result<(Offsets, DeviceVec<u64>), Error> {
    let offsets = number!(offsets.size() => O, Offsets::new(offsets.typed::<O>().expect("offsets are aligned")));
    let mut edges = stream.uninit::<u64>(tiles + 1)?;
    let kernel = FindEdges::new(offsets, edges.raw_view_mut(stream)?, tile_len as u64);
    // SAFETY: one warp per edge.
    unsafe { stream.launch(kernel, (tiles + 1).div_ceil((THREADS / LANES) as usize))? };
    Ok((offsets, edges))
}

/// Returns the offsets of rows of one length, and of the end of the last one. The rows are part of an input.
pub(crate) fn row_offsets(stream: &Stream, rows: usize, row_len: usize) -> Result<AnyVec, Error> {
    if rows.saturating_mul(row_len.max(1)) < u32::MAX as usize {
        let mut offsets = stream.uninit::<u32>(rows + 1)?;
        let start = map!(row_len: u32 = row_len as u32; |row: u32| -> u32 { row * row_len });
        transform::map(stream, counting(0u32, rows + 1), &mut offsets, start)?;
        Ok(offsets.into())
    } else {
        let mut offsets = stream.uninit::<u64>(rows + 1)?;
        let start = map!(row_len: u64 = row_len as u64; |row: u64| -> u64 { row * row_len });
        transform::map(stream, counting(0u64, rows + 1), &mut offsets, start)?;
        Ok(offsets.into())
    }
}

/// Returns one byte per key, of `len`: whether it begins a run of equal keys.
pub(crate) fn flag_heads(
    stream: &Stream,
    keys: &Opened,
    len: usize,
    equality: HoleEquality,
) -> Result<DeviceVec<u8>, Error> {
    let mut flags = stream.uninit::<u8>(len)?;
    let view = flags.raw_view_mut(stream)?;
    let blocks = len.div_ceil(THREADS as usize);
    if blocks > 0 {
        flag_heads!(repr_size_or_bytes(keys.size()) => H, {
            // SAFETY: one thread per flag, and as many flags as keys; the equality is one of these keys.
            unsafe { stream.launch(FlagHeads::<H, _>::new(keys.fused(), equality, view), blocks)? };
        });
    }
    Ok(flags)
}
