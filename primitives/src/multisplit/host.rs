//! Host functions of the multisplit.

#![deny(unsafe_op_in_unsafe_fn)]

use super::kernel::{NumberKeys, THREADS};
use super::{Bucket, HoleBuckets};
use crate::runtime::column::{AnySlice, AnySliceMut, Column, ColumnMut};
use crate::runtime::held::{HeldIn, Indices, expect_held, held_by};
use crate::runtime::pairs::{Pairs, PairsMut, no_values};
use crate::sort::distribute::Passes;
use crate::sort::{Buckets, Digits};
use crate::{DeviceSlice, DeviceSliceMut, DeviceVec, Error, Global, GlobalMut, Stream, expect_len, sized};
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
    const { expect_held::<K>() };
    let (input, output) = (input.into(), output.into());
    let _span = crate::span!(stream, "multisplit::keys", input.len());
    split_keys(stream, input.into(), output.into(), buckets, HoleBuckets::of::<K, B>(bucket, buckets.wrapping_sub(1)))
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
    const { expect_held::<K>() };
    let (keys, values, to_keys, to_values) = (input.0.into(), input.1.into(), output.0.into(), output.1.into());
    let _span = crate::span!(stream, "multisplit::pairs", keys.len());
    let bucket = HoleBuckets::of::<K, B>(bucket, buckets.wrapping_sub(1));
    split_pairs(stream, (keys.into(), values.into()), (to_keys.into(), to_values.into()), buckets, bucket)
}

/// Items, and where they go. As many as there are.
#[derive(Clone, Copy)]
struct Items {
    keys: Column,
    values: Column,
    to_keys: ColumnMut,
    to_values: ColumnMut,
}

fn split_keys(
    stream: &Stream,
    input: AnySlice<'_>,
    mut output: AnySliceMut<'_>,
    buckets: u32,
    bucket: HoleBuckets,
) -> Result<DeviceVec<u64>, Error> {
    expect_len("the output of a multisplit", input.len(), output.len())?;
    let (keys, to_keys, units) = (input.raw_view(stream)?, output.raw_view_mut(stream)?, no_values(input.len()));
    split(stream, Items { keys, values: units.as_const().into(), to_keys, to_values: units.into() }, buckets, bucket)
}

fn split_pairs(
    stream: &Stream,
    (keys, values): (AnySlice<'_>, AnySlice<'_>),
    (mut to_keys, mut to_values): (AnySliceMut<'_>, AnySliceMut<'_>),
    buckets: u32,
    bucket: HoleBuckets,
) -> Result<DeviceVec<u64>, Error> {
    expect_len("the values of a multisplit", keys.len(), values.len())?;
    expect_len("the output of a multisplit", keys.len(), to_keys.len())?;
    expect_len("the values' output of a multisplit", to_keys.len(), to_values.len())?;
    let (keys, values) = (keys.raw_view(stream)?, values.raw_view(stream)?);
    let (to_keys, to_values) = (to_keys.raw_view_mut(stream)?, to_values.raw_view_mut(stream)?);
    split(stream, Items { keys, values, to_keys, to_values }, buckets, bucket)
}

fn split(stream: &Stream, items: Items, buckets: u32, bucket: HoleBuckets) -> Result<DeviceVec<u64>, Error> {
    if buckets == 0 || buckets > MAX_BUCKETS {
        return Err(Error::TooMany { what: "buckets", asked: buckets as usize, limit: MAX_BUCKETS as usize });
    }
    let mut offsets = stream.zeroed::<u64>(buckets as usize + 1)?;
    if items.keys.len() > 0 {
        let ends = offsets.slice_mut(1..)?;
        sized!(items.keys.size() => K in u32 | u64, match (items.keys.typed::<K>(), items.to_keys.typed()) {
            (Some(keys), Some(to_keys)) => distribute_keys(stream, (keys, to_keys), items, bucket, ends)?,
            _ => distribute_numbered(stream, items, bucket, ends)?,
        }, else distribute_numbered(stream, items, bucket, ends)?);
    }
    Ok(offsets)
}

/// Distributes keys, with their values or with the indices of these.
fn distribute_keys<K: Pod>(
    stream: &Stream,
    (keys, to_keys): (Global<K>, GlobalMut<K>),
    items: Items,
    bucket: HoleBuckets,
    ends: DeviceSliceMut<'_, u64>,
) -> Result<(), Error>
where
    HoleBuckets: Buckets<K>,
{
    sized!(items.values.size() => V in () | u32, if let (Some(values), Some(to_values)) = (items.values.typed::<V>(), items.to_values.typed()) {
        return distribute(stream, Pairs { keys, values }, PairsMut { keys: to_keys, values: to_values }, bucket, ends);
    }, else ());
    let mut indices = Indices::new(stream, keys.len(), keys.len())?;
    let from = Pairs { keys, values: indices.from.raw_view(stream)? };
    let to = PairsMut { keys: to_keys, values: indices.to.raw_view_mut(stream)? };
    distribute(stream, from, to, bucket, ends)?;
    indices.gather_held(stream, items.values, items.to_values)
}

/// Distributes items, and writes the ends of the buckets.
fn distribute<K: Pod, V: Pod, B: Buckets<K>>(
    stream: &Stream,
    from: Pairs<K, V>,
    to: PairsMut<K, V>,
    bucket: B,
    mut ends: DeviceSliceMut<'_, u64>,
) -> Result<(), Error> {
    let mut passes = Passes::count::<K, V>(stream, from.keys, bucket, 1)?;
    passes.run(stream, 1, 0, from, to)?;
    let buckets = ends.len();
    ends.copy_from(stream, passes.ends(1, 0)?.slice(..buckets)?)
}

/// Distributes keys of other sizes: their numbers, with their indices, and then keys and values by the indices.
fn distribute_numbered(
    stream: &Stream,
    items: Items,
    bucket: HoleBuckets,
    ends: DeviceSliceMut<'_, u64>,
) -> Result<(), Error> {
    let len = items.keys.len();
    let mut numbers = stream.uninit::<u32>(len)?;
    let mut moved = stream.uninit::<u32>(len)?;
    held_by!(items.keys.size() => H or bytes, {
        let keys = HeldIn::<H>::new(stream, items.keys)?;
        let kernel = NumberKeys::<H>::new(keys.view, bucket, numbers.raw_view_mut(stream)?);
        // SAFETY: one thread per key, and as many numbers; the function is one for these keys.
        unsafe { stream.launch(kernel, len.div_ceil(THREADS as usize))? };
    });
    let mut indices = Indices::new(stream, len, len)?;
    let numbered = Pairs { keys: numbers.raw_view(stream)?, values: indices.from.raw_view(stream)? };
    let out = PairsMut { keys: moved.raw_view_mut(stream)?, values: indices.to.raw_view_mut(stream)? };
    distribute(stream, numbered, out, Digits::of_buckets(), ends)?;
    indices.gather_held(stream, items.keys, items.to_keys)?;
    indices.gather_held(stream, items.values, items.to_values)
}
