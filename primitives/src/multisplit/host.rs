//! Host functions of the multisplit.

#![deny(unsafe_op_in_unsafe_fn)]

use super::kernel::{NumberKeys, THREADS};
use super::{Bucket, HoleBuckets};
use crate::runtime::carrier::carried;
use crate::runtime::held::{HeldIn, Indices, held};
use crate::runtime::pairs::{Pairs, PairsMut};
use crate::sort::distribute::{Passes, Typed};
use crate::sort::{Buckets, Digits};
use crate::{DeviceSlice, DeviceSliceMut, DeviceVec, Error, Stream, expect_len};
use bytemuck::Pod;

/// The maximum number of buckets.
pub const MAX_BUCKETS: u32 = 256;

/// Splits keys into `buckets` buckets, 1 to 256, and returns the bucket offsets: bucket `b` is
/// `offsets[b]..offsets[b + 1]` of the output.
///
/// # Errors
/// [`Error::LengthMismatch`], [`Error::TooMany`] for zero buckets or more than 256, [`Error::OutOfMemory`], or
/// [`Error::TooLong`] for 2^32 items or more of sizes that are [moved by index](super): nothing is written in these cases.
/// Any launch error.
pub fn keys<'a, K: Pod, B: Bucket<K>>(
    stream: &Stream,
    input: impl Into<DeviceSlice<'a, K>>,
    output: impl Into<DeviceSliceMut<'a, K>>,
    buckets: u32,
    bucket: B,
) -> Result<DeviceVec<u64>, Error> {
    let (input, output) = (input.into(), output.into());
    let _span = crate::span!(stream, "multisplit::keys", input.len());
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
    let input: (DeviceSlice<'a, K>, _) = (input.0.into(), input.1);
    let _span = crate::span!(stream, "multisplit::pairs", input.0.len());
    let from = Pairs::new(stream, input.0, input.1.into(), "the values of a multisplit")?;
    let keys_out = output.0.into();
    expect_len("the output of a multisplit", from.keys.len(), keys_out.len())?;
    let to = PairsMut::new(stream, keys_out, output.1.into(), "the values' output of a multisplit")?;
    split(stream, from, to, buckets, bucket)
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
    let bucket = HoleBuckets::of::<K, B>(bucket, buckets - 1);
    let ends = offsets.slice_mut(1..)?;
    let keys = (from.keys, to.keys);
    let (values, to_values) = (from.values, to.values);
    carried!(
        K => u32 | u64, keys,
        |(from, to)| {
            let (from, to) = (Pairs { keys: from, values }, PairsMut { keys: to, values: to_values });
            carried!(
                V => () | u32, (from, to),
                |(from, to)| distribute(stream, from, to, bucket, ends),
                else |(from, to)| {
                    let mut indices = Indices::new(stream, from.keys.len(), from.keys.len())?;
                    let indexed = Pairs { keys: from.keys, values: indices.from.raw_view(stream)? };
                    let moved = PairsMut { keys: to.keys, values: indices.to.raw_view_mut(stream)? };
                    distribute(stream, indexed, moved, bucket, ends)?;
                    indices.gather_held(stream, from.values, to.values)
                }
            )
        },
        else |_| distribute_numbered(stream, from, to, bucket, ends)
    )?;
    Ok(offsets)
}

/// Distributes items, and writes the ends of the buckets.
fn distribute<K: Pod, V: Pod, B: Buckets<K>>(
    stream: &Stream,
    from: Pairs<K, V>,
    to: PairsMut<K, V>,
    bucket: B,
    mut ends: DeviceSliceMut<'_, u64>,
) -> Result<(), Error> {
    let kernels = Typed::<K, V, B>::new(bucket);
    let mut passes = Passes::count(stream, from.keys.into(), &kernels, 1)?;
    passes.run(stream, 0, from.into(), to.into())?;
    let buckets = ends.len();
    ends.copy_from(stream, passes.ends(0)?.slice(..buckets)?)
}

/// Distributes keys of other sizes: their numbers, with their indices, and then keys and values by the indices.
fn distribute_numbered<K: Pod, V: Pod>(
    stream: &Stream,
    from: Pairs<K, V>,
    to: PairsMut<K, V>,
    bucket: HoleBuckets,
    ends: DeviceSliceMut<'_, u64>,
) -> Result<(), Error> {
    let len = from.keys.len();
    let mut numbers = stream.uninit::<u32>(len)?;
    let mut moved = stream.uninit::<u32>(len)?;
    held!(K as H or bytes, {
        let keys = HeldIn::<H>::new(stream, from.keys)?;
        let kernel = NumberKeys::<H>::new(keys.view, bucket, numbers.raw_view_mut(stream)?);
        // SAFETY: one thread per key, and as many numbers; the function is one for these keys.
        unsafe { stream.launch(kernel, len.div_ceil(THREADS as usize))? };
    });
    let mut indices = Indices::new(stream, len, len)?;
    let numbered = Pairs { keys: numbers.raw_view(stream)?, values: indices.from.raw_view(stream)? };
    let out = PairsMut { keys: moved.raw_view_mut(stream)?, values: indices.to.raw_view_mut(stream)? };
    distribute(stream, numbered, out, Digits::of_buckets(), ends)?;
    indices.gather_held(stream, from.keys, to.keys)?;
    indices.gather_held(stream, from.values, to.values)
}
