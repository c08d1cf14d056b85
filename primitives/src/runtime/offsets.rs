//! What the calls that take the offsets of segments have in common.

use super::error::Error;
use super::slice::DeviceSlice;
use super::stream::Stream;
use bytemuck::Pod;

/// Whether offsets are checked before anything is written, which takes waiting for the verdict.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trust {
    /// They are.
    Check,
    /// The caller knows them to be right.
    Promised,
}

/// There is always an offset: that of the end.
pub(crate) fn expect_offsets(found: usize) -> Result<(), Error> {
    let what = "the slice of offsets (one per segment, and the end)";
    if found > 0 { Ok(()) } else { Err(Error::LengthMismatch { what, expected: 1, found }) }
}

/// The error about offset `index`; what is wrong with it is read for the message.
pub(crate) fn invalid_offset<O: Pod + Into<u64>>(
    stream: &Stream,
    offsets: DeviceSlice<'_, O>,
    index: usize,
    len: usize,
) -> Error {
    let start = index.saturating_sub(1);
    match offsets.slice(start..=index).and_then(|read| read.to_vec(stream)) {
        Ok(read) => {
            let previous = if index == 0 { 0 } else { read[0].into() };
            Error::InvalidOffsets { index, offset: read[index - start].into(), previous, len }
        }
        Err(error) => error,
    }
}
