//! Host functions of the multisplit.

#![deny(unsafe_op_in_unsafe_fn)]

pub(crate) mod groups;

use crate::buckets::{Bucket, Buckets, HoleBuckets};
use crate::host::repr::expect_repr;
use crate::host::runtime::column::{AnySlice, AnySliceMut};
use crate::host::runtime::pairs::{Columns, ColumnsMut};
use crate::host::source;
use crate::pairs::{Pairs, PairsMut};
use crate::sort::device::instances::split_buckets;
use crate::sort::host::distribute::{Passes, Typed};
use crate::transform;
use crate::transform::laid_out::Indices;
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
pub fn keys<'a, 'b, K: Pod, B: Bucket<K>>(
    stream: &Stream,
    input: impl Into<DeviceSlice<'a, K>>,
    output: impl Into<DeviceSliceMut<'b, K>>,
    buckets: u32,
    bucket: B,
) -> Result<DeviceVec<u64>, Error> {
    const { expect_repr::<K>() };
    let (input, output) = (input.into(), output.into());
    let _span = crate::span!(stream, "multisplit::keys", input.len());
    split_keys(stream, input.into(), output.into(), buckets, HoleBuckets::of::<K, B>(bucket, buckets.wrapping_sub(1)))
}

/// [`keys`] with values that move along with their keys.
///
/// # Errors
/// Same as [`keys`].
pub fn pairs<'a, 'b, 'c, 'd, K: Pod, V: Pod, B: Bucket<K>>(
    stream: &Stream,
    input: (impl Into<DeviceSlice<'a, K>>, impl Into<DeviceSlice<'b, V>>),
    output: (impl Into<DeviceSliceMut<'c, K>>, impl Into<DeviceSliceMut<'d, V>>),
    buckets: u32,
    bucket: B,
) -> Result<DeviceVec<u64>, Error> {
    const { expect_repr::<K>() };
    let (keys, values, to_keys, to_values) = (input.0.into(), input.1.into(), output.0.into(), output.1.into());
    let _span = crate::span!(stream, "multisplit::pairs", keys.len());
    let bucket = HoleBuckets::of::<K, B>(bucket, buckets.wrapping_sub(1));
    split_pairs(stream, (keys.into(), values.into()), (to_keys.into(), to_values.into()), buckets, bucket)
}

fn split_keys(
    stream: &Stream,
    input: AnySlice<'_>,
    output: AnySliceMut<'_>,
    buckets: u32,
    bucket: HoleBuckets,
) -> Result<DeviceVec<u64>, Error> {
    expect_len("the output of a multisplit", input.len(), output.len())?;
    split(stream, (Columns::keys(stream, input)?, ColumnsMut::keys(stream, output)?), buckets, bucket)
}

fn split_pairs(
    stream: &Stream,
    from: (AnySlice<'_>, AnySlice<'_>),
    to: (AnySliceMut<'_>, AnySliceMut<'_>),
    buckets: u32,
    bucket: HoleBuckets,
) -> Result<DeviceVec<u64>, Error> {
    expect_len("the values of a multisplit", from.0.len(), from.1.len())?;
    expect_len("the output of a multisplit", from.0.len(), to.0.len())?;
    expect_len("the values' output of a multisplit", to.0.len(), to.1.len())?;
    split(stream, (Columns::of_any(stream, from)?, ColumnsMut::of_any(stream, to)?), buckets, bucket)
}

/// What a multisplit reads, and where it writes.
type Items = (Columns, ColumnsMut);

fn split(stream: &Stream, items: Items, buckets: u32, bucket: HoleBuckets) -> Result<DeviceVec<u64>, Error> {
    if buckets == 0 || buckets > MAX_BUCKETS {
        return Err(Error::TooMany { what: "buckets", asked: buckets as usize, limit: MAX_BUCKETS as usize });
    }
    let mut offsets = stream.zeroed::<u64>(buckets as usize + 1)?;
    if items.0.keys.len() > 0 {
        distribute_items(stream, items, bucket, offsets.slice_mut(1..)?)?;
    }
    Ok(offsets)
}

/// The bytes of an index.
const INDEX: usize = size_of::<u32>();

/// Distributes items in the form in which kernels exist.
fn distribute_items(
    stream: &Stream,
    (from, to): Items,
    bucket: HoleBuckets,
    ends: DeviceSliceMut<'_, u64>,
) -> Result<(), Error> {
    split_buckets!(from.sizes() => (K, V, ITEMS), {
        if let (Some(from), Some(to)) = (from.typed::<K, V>(), to.typed()) {
            return distribute(stream, from, to, bucket, ends);
        }
    }, else ());
    split_buckets!((from.keys.size(), INDEX) => (K, V, ITEMS), {
        if let (Some(keys), Some(to_keys)) = (from.keys.typed::<K>(), to.keys.typed()) {
            let mut indices = Indices::new(stream, from.keys.len(), from.keys.len())?;
            let indexed = Pairs { keys, values: indices.from.raw_view(stream)? };
            let moved = PairsMut { keys: to_keys, values: indices.to.raw_view_mut(stream)? };
            distribute(stream, indexed, moved, bucket, ends)?;
            return indices.gather_held(stream, from.values, to.values);
        }
    }, else ());
    distribute_numbered(stream, (from, to), bucket, ends)
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
fn distribute_numbered(
    stream: &Stream,
    (from, to): Items,
    bucket: HoleBuckets,
    ends: DeviceSliceMut<'_, u64>,
) -> Result<(), Error> {
    let len = from.keys.len();
    let mut numbers = stream.uninit::<u32>(len)?;
    let mut moved = stream.uninit::<u32>(len)?;
    transform::write_arg(stream, source::results_of(bucket.hole(), from.keys), numbers.raw_view_mut(stream)?.into())?;
    let mut indices = Indices::new(stream, len, len)?;
    let numbered = Pairs { keys: numbers.raw_view(stream)?, values: indices.from.raw_view(stream)? };
    let out = PairsMut { keys: moved.raw_view_mut(stream)?, values: indices.to.raw_view_mut(stream)? };
    distribute(stream, numbered, out, bucket.of_results(), ends)?;
    indices.gather_held(stream, from.keys, to.keys)?;
    indices.gather_held(stream, from.values, to.values)
}
