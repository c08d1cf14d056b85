//! Host functions of the multisplit.

#![deny(unsafe_op_in_unsafe_fn)]

use super::{Bucket, Clamped};
use crate::runtime::carrier::carried;
use crate::runtime::pairs::{Pairs, PairsMut};
use crate::sort::distribute::Passes;
use crate::transfer::Line;
use crate::{DeviceSlice, DeviceSliceMut, DeviceVec, Error, Stream, expect_len};
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
    let (input, output) = (input.into(), output.into());
    expect_len("the output of a multisplit", input.len(), output.len())?;
    split(stream, Pairs::keys(stream, input)?, PairsMut::keys(stream, output)?, buckets, bucket)
}

/// [`keys`] with values that move along with their keys.
///
/// # Errors
/// Same as [`keys`].
pub fn pairs<'a, K: Pod, V: Pod, B: Bucket<K>>(
    stream: &Stream,
    input: (impl Into<DeviceSlice<'a, K>>, impl Into<DeviceSlice<'a, V>>),
    output: (impl Into<DeviceSliceMut<'a, K>>, impl Into<DeviceSliceMut<'a, V>>),
    buckets: u32,
    bucket: B,
) -> Result<DeviceVec<u64>, Error> {
    let from = Pairs::new(stream, input.0.into(), input.1.into(), "the values of a multisplit")?;
    let keys_out = output.0.into();
    expect_len("the output of a multisplit", from.keys.len(), keys_out.len())?;
    let to = PairsMut::new(stream, keys_out, output.1.into(), "the values' output of a multisplit")?;
    carried!(V => () | u32 | u64 | Line, (from, to), |(from, to)| split(stream, from, to, buckets, bucket))
}

fn split<K: Pod, V: Pod, B: Bucket<K>>(
    stream: &Stream,
    from: Pairs<K, V>,
    to: PairsMut<K, V>,
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
