//! Shared code of the calls that take segment offsets.

use super::slice::DeviceSlice;
use super::stream::Stream;
use crate::host::error::Error;
use bytemuck::Pod;

/// Whether the offsets are checked before anything is written. The check requires a wait.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trust {
    /// The offsets are checked.
    Check,
    /// The caller guarantees that the offsets are valid.
    Promised,
}

/// Checks that there is at least one offset: that of the end.
pub(crate) fn expect_offsets(found: usize) -> Result<(), Error> {
    let what = "the slice of offsets (one per segment, and the end)";
    if found > 0 { Ok(()) } else { Err(Error::LengthMismatch { what, expected: 1, found }) }
}

/// Returns the error for offset `index`; reads the offset for the message.
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
