//! Packed bits in device memory.

use super::slice::DeviceSlice;
use super::stream::Stream;
use crate::host::error::Error;
use crate::view::Global;

/// Bits that lie in bytes of device memory, the lowest bit of each byte first, as in Arrow. They begin at any bit.
///
/// ```
/// use gpu_primitives::{Bits, Device, Error, bits};
///
/// let stream = Device::default()?.stream()?;
/// let bytes = stream.upload(&[0b1010_0000u8, 0b0000_0111])?;
/// let middle = Bits::new(&bytes, 5, 4)?; // 1, 0, 1, 1
/// assert_eq!(bits::count(&stream, middle)?.get(&stream)?, 3);
/// assert!(Bits::new(&bytes, 5, 12).is_err()); // there are 16
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Bits<'a> {
    bytes: DeviceSlice<'a, u8>,
    start: usize,
    len: usize,
}

impl<'a> Bits<'a> {
    /// Returns the `len` bits from bit `start` of the bytes on.
    ///
    /// # Errors
    /// [`Error::RangeOutside`] if the bytes do not have them.
    pub fn new(bytes: impl Into<DeviceSlice<'a, u8>>, start: usize, len: usize) -> Result<Self, Error> {
        let bytes = bytes.into();
        let (end, all) = (start.saturating_add(len), bytes.len().saturating_mul(8));
        if end > all {
            return Err(Error::RangeOutside { start, end, len: all });
        }
        // Only the bytes that have such bits: others may change while a kernel reads these.
        let first = start / 8;
        let bytes = bytes.slice(first..if len == 0 { first } else { end.div_ceil(8) })?;
        Ok(Self { bytes, start: start % 8, len })
    }

    /// Returns the number of bits.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether there are no bits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the bytes, the number of bits before the first one, and the number of bits: for a kernel.
    pub(crate) fn raw_parts(&self, stream: &Stream) -> Result<(Global<u8>, u64, u64), Error> {
        Ok((self.bytes.raw_view(stream)?, self.start as u64, self.len as u64))
    }
}
