//! Keys to codes, and back.

#![deny(unsafe_op_in_unsafe_fn)]

use crate::host::source::Source;
use crate::sort::{FromCode, RadixKey};
use crate::{DeviceSliceMut, Error, Stream, transform};

/// Writes the code of each key: see [`RadixKey`]. Does not wait.
///
/// ```
/// use gpu_primitives::{Device, Error, sort};
///
/// let stream = Device::default()?.stream()?;
/// let keys = stream.upload(&[-1i16, 0, i16::MIN])?;
/// let mut codes = stream.uninit::<u32>(3)?;
/// sort::encode(&stream, &keys, &mut codes)?;
/// assert_eq!(codes.to_vec(&stream)?, [0x7FFF, 0x8000, 0]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// [`Error::LengthMismatch`] if the lengths differ; any launch error.
pub fn encode<'a, 'b, K: RadixKey>(
    stream: &Stream,
    keys: impl Source<'a, K>,
    codes: impl Into<DeviceSliceMut<'b, K::Code>>,
) -> Result<(), Error> {
    transform::write(stream, keys.into_parts()?.codes(), codes)
}

/// Writes the key of each code: the inverse of [`encode`]. Does not wait.
///
/// # Errors
/// Same as [`encode`].
pub fn decode<'a, 'b, K: FromCode>(
    stream: &Stream,
    codes: impl Source<'a, K::Code>,
    keys: impl Into<DeviceSliceMut<'b, K>>,
) -> Result<(), Error> {
    transform::write(stream, codes.into_parts()?.keys::<K>(), keys)
}
