//! Host functions of the multisplit.

#![deny(unsafe_op_in_unsafe_fn)]

use super::{Bucket, Clamped};
use crate::runtime::carrier::carried;
use crate::sort::distribute::{Passes, Source, Target, expect_len, no_values, no_values_mut};
use crate::{DeviceSlice, DeviceSliceMut, DeviceVec, Error, Stream};
use bytemuck::Pod;

/// The maximum number of buckets.
pub const MAX_BUCKETS: u32 = 256;

/// Splits keys into `buckets` buckets, 1 to 256, and returns the bucket offsets: bucket `b` is
/// `offsets[b]..offsets[b + 1]` of the output.
///
/// # Errors
/// [`Error::LengthMismatch`], [`Error::TooMany`] for zero buckets or more than 256, or [`Error::OutOfMemory`]: nothing
/// is written in these cases. Any launch error.
pub fn keys<'a, K: Pod, B: Bucket<K>>(
    stream: &Stream,
    input: impl Into<DeviceSlice<'a, K>>,
    output: impl Into<DeviceSliceMut<'a, K>>,
    buckets: u32,
    bucket: B,
) -> Result<DeviceVec<u64>, Error> {
    let (input, mut output) = (input.into(), output.into());
    expect_len("the output of a multisplit", input.len(), output.len())?;
    let from = Source { keys: input.raw_view(stream)?, values: no_values() };
    let to = Target { keys: output.raw_view_mut(stream)?, values: no_values_mut() };
    split(stream, from, to, buckets, bucket)
}

/// [`keys`] with values that move along with their keys.
///
/// # Errors
/// Same as [`keys`].
pub fn pairs<'a, K: Pod, V: Pod, B: Bucket<K>>(
    stream: &Stream,
    keys_in: impl Into<DeviceSlice<'a, K>>,
    values_in: impl Into<DeviceSlice<'a, V>>,
    keys_out: impl Into<DeviceSliceMut<'a, K>>,
    values_out: impl Into<DeviceSliceMut<'a, V>>,
    buckets: u32,
    bucket: B,
) -> Result<DeviceVec<u64>, Error> {
    let (keys_in, values_in) = (keys_in.into(), values_in.into());
    let (mut keys_out, mut values_out) = (keys_out.into(), values_out.into());
    expect_len("the values of a multisplit", keys_in.len(), values_in.len())?;
    expect_len("the output of a multisplit", keys_in.len(), keys_out.len())?;
    expect_len("the values' output of a multisplit", keys_in.len(), values_out.len())?;
    let from = Source { keys: keys_in.raw_view(stream)?, values: values_in.raw_view(stream)? };
    let to = Target { keys: keys_out.raw_view_mut(stream)?, values: values_out.raw_view_mut(stream)? };
    carried!(V, from.values, to.values, |from_values, to_values| {
        let from = Source { keys: from.keys, values: from_values };
        split(stream, from, Target { keys: to.keys, values: to_values }, buckets, bucket)
    })
}

fn split<K: Pod, V: Pod, B: Bucket<K>>(
    stream: &Stream,
    from: Source<K, V>,
    to: Target<K, V>,
    buckets: u32,
    bucket: B,
) -> Result<DeviceVec<u64>, Error> {
    if buckets == 0 || buckets > MAX_BUCKETS {
        return Err(Error::TooMany { what: "buckets", asked: buckets as usize, limit: MAX_BUCKETS as usize });
    }
    let mut offsets = stream.zeroed::<u64>(buckets as usize + 1)?;
    if from.keys.is_empty() {
        return Ok(offsets);
    }
    let mut passes = Passes::count::<K, V>(stream, from.keys, Clamped { function: bucket, last: buckets - 1 }, 1)?;
    passes.run(stream, 1, 0, from, to)?;
    offsets.slice_mut(1..)?.copy_from(stream, passes.ends(1, 0)?.slice(..buckets as usize)?)?;
    Ok(offsets)
}
