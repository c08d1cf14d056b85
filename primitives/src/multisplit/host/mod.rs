//! Host functions of the multisplit.

#![deny(unsafe_op_in_unsafe_fn)]

pub(crate) mod groups;

use crate::buckets::{Bucket, Buckets, HoleBuckets};
use crate::host::repr::expect_repr;
use crate::host::runtime::column::{AnySliceMut, ColumnMut};
use crate::host::runtime::pairs::{Columns, ColumnsMut};
use crate::host::source::{self, Elements, Source};
use crate::sort::device::instances::split_buckets;
use crate::sort::host::distribute::{Passes, Typed};
use crate::transform;
use crate::transform::InMemory;
use crate::transform::laid_out::Indices;
use crate::{DeviceSliceMut, DeviceVec, Error, GlobalMut, Stream, expect_len};
use bytemuck::Pod;

/// The maximum number of buckets.
pub const MAX_BUCKETS: u32 = 256;

/// Splits keys into `buckets` buckets, 1 to 256, and returns the bucket offsets: bucket `b` is
/// `offsets[b]..offsets[b + 1]` of the output. Keys of a source that is no slice are first written to temporary memory. If only the
/// device knows how many keys there are, the output keeps what it has beyond them.
///
/// # Errors
/// [`Error::LengthMismatch`], [`Error::TooMany`] for zero buckets or more than 256, [`Error::OutOfMemory`], or
/// [`Error::TooLong`] for 2^32 items or more of sizes that are [moved by index](super): nothing is written in these cases.
/// Any launch error.
pub fn keys<'a, 'b, K: Pod, B: Bucket<K>>(
    stream: &Stream,
    input: impl Source<'a, K>,
    output: impl Into<DeviceSliceMut<'b, K>>,
    buckets: u32,
    bucket: B,
) -> Result<DeviceVec<u64>, Error> {
    const { expect_repr::<K>() };
    let (input, output) = (input.into_parts()?.elements(), output.into().into());
    let _span = crate::span!(stream, "multisplit::keys", input.len());
    split_keys(stream, input, output, buckets, HoleBuckets::of::<K, B>(bucket, buckets.wrapping_sub(1)))
}

/// [`keys`] with values that move along with their keys.
///
/// # Errors
/// Same as [`keys`].
pub fn pairs<'a, 'b, 'c, 'd, K: Pod, V: Pod, B: Bucket<K>>(
    stream: &Stream,
    input: (impl Source<'a, K>, impl Source<'b, V>),
    output: (impl Into<DeviceSliceMut<'c, K>>, impl Into<DeviceSliceMut<'d, V>>),
    buckets: u32,
    bucket: B,
) -> Result<DeviceVec<u64>, Error> {
    const { expect_repr::<K>() };
    let (keys, values) = (input.0.into_parts()?.elements(), input.1.into_parts()?.elements());
    let to = (output.0.into().into(), output.1.into().into());
    let _span = crate::span!(stream, "multisplit::pairs", keys.len());
    let bucket = HoleBuckets::of::<K, B>(bucket, buckets.wrapping_sub(1));
    split_pairs(stream, (keys, values), to, buckets, bucket)
}

fn split_keys(
    stream: &Stream,
    input: Elements<'_>,
    output: AnySliceMut<'_>,
    buckets: u32,
    bucket: HoleBuckets,
) -> Result<DeviceVec<u64>, Error> {
    expect_len("the output of a multisplit", input.len(), output.len())?;
    expect_buckets(buckets)?;
    let input = InMemory::new(stream, input)?;
    split(stream, (Columns::keys(stream, input.as_slice())?, ColumnsMut::keys(stream, output)?), buckets, bucket)
}

fn split_pairs(
    stream: &Stream,
    (keys, values): (Elements<'_>, Elements<'_>),
    to: (AnySliceMut<'_>, AnySliceMut<'_>),
    buckets: u32,
    bucket: HoleBuckets,
) -> Result<DeviceVec<u64>, Error> {
    expect_len("the values of a multisplit", keys.len(), values.len())?;
    expect_len("the output of a multisplit", keys.len(), to.0.len())?;
    expect_len("the values' output of a multisplit", to.0.len(), to.1.len())?;
    expect_buckets(buckets)?;
    let (keys, values) = (InMemory::new(stream, keys)?, InMemory::new(stream, values)?);
    let from = Columns::new(stream, (keys.as_slice(), values.as_slice()), "the values of a multisplit")?;
    split(stream, (from, ColumnsMut::of_any(stream, to)?), buckets, bucket)
}

fn expect_buckets(buckets: u32) -> Result<(), Error> {
    if buckets == 0 || buckets > MAX_BUCKETS {
        return Err(Error::TooMany { what: "buckets", asked: buckets as usize, limit: MAX_BUCKETS as usize });
    }
    Ok(())
}

/// What a multisplit reads, and where it writes.
type Items = (Columns, ColumnsMut);

fn split(stream: &Stream, items: Items, buckets: u32, bucket: HoleBuckets) -> Result<DeviceVec<u64>, Error> {
    let len = buckets as usize + 1;
    if items.0.keys.len() == 0 {
        return stream.zeroed(len);
    }
    let mut offsets = stream.uninit::<u64>(len)?;
    let places = offsets.raw_view_mut(stream)?;
    distribute_items(stream, items, bucket, places)?;
    Ok(offsets)
}

/// The bytes of an index.
const INDEX: usize = size_of::<u32>();

/// Distributes items in the form in which kernels exist.
fn distribute_items(
    stream: &Stream,
    (from, to): Items,
    bucket: HoleBuckets,
    offsets: GlobalMut<u64>,
) -> Result<(), Error> {
    split_buckets!(from.sizes() => (K, V, ITEMS), {
        if from.typed::<K, V>().is_some() && to.typed::<K, V>().is_some() {
            return distribute::<K, V, _>(stream, (from, to), bucket, offsets);
        }
    }, else ());
    split_buckets!((from.keys.size(), INDEX) => (K, V, ITEMS), {
        if from.keys.typed::<K>().is_some() && to.keys.typed::<K>().is_some() {
            let mut indices = Indices::new(stream, from.keys.len(), from.keys.len())?;
            let indexed = Columns { keys: from.keys, values: indices.from.raw_view(stream)?.into() };
            let moved = ColumnsMut { keys: to.keys, values: indices.to.raw_view_mut(stream)?.into() };
            distribute::<K, V, _>(stream, (indexed, moved), bucket, offsets)?;
            return indices.gather_held(stream, from.values, to.values);
        }
    }, else ());
    distribute_numbered(stream, (from, to), bucket, offsets)
}

/// Distributes items that have these types, and writes where the buckets begin.
fn distribute<K: Pod, V: Pod, B: Buckets<K>>(
    stream: &Stream,
    (from, to): Items,
    bucket: B,
    offsets: GlobalMut<u64>,
) -> Result<(), Error> {
    let kernels = Typed::<K, V, B>::new(bucket);
    Passes::count(stream, from.keys, &kernels, 1, Some(offsets))?.run(stream, 0, from, to)
}

/// Distributes keys of other sizes: their numbers, with their indices, and then keys and values by the indices.
fn distribute_numbered(
    stream: &Stream,
    (from, to): Items,
    bucket: HoleBuckets,
    offsets: GlobalMut<u64>,
) -> Result<(), Error> {
    let len = from.keys.len();
    let mut memory = stream.uninit::<u32>(len)?;
    let mut moved = stream.uninit::<u32>(len)?;
    let numbers = ColumnMut::from(memory.raw_view_mut(stream)?);
    transform::write_arg(stream, source::results_of(bucket.hole(), from.keys), numbers)?;
    let mut indices = Indices::new(stream, len, len)?;
    let keys = numbers.as_const().limited(from.limit());
    let numbered = Columns { keys, values: indices.from.raw_view(stream)?.into() };
    let out = ColumnsMut { keys: moved.raw_view_mut(stream)?.into(), values: indices.to.raw_view_mut(stream)?.into() };
    distribute::<u32, u32, _>(stream, (numbered, out), bucket.of_results(), offsets)?;
    indices.gather_held(stream, from.keys, to.keys)?;
    indices.gather_held(stream, from.values, to.values)
}
