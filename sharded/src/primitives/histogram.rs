//! Histograms of elements that are spread over ranks.
//!
//! ```
//! use gpu_primitives::{Device, Error};
//! use gpu_sharded::World;
//! use gpu_sharded::primitives::histogram;
//!
//! let stream = Device::default()?.stream()?;
//! let world = World::local(3);
//! let samples = stream.upload(&[0.5f32, 9.0, 2.5, 2.0, -1.0, 10.0])?;
//! let counts = histogram::even(&stream, &world, &samples, 5, 0.0, 10.0)?; // 0 to 2, 2 to 4, …
//! assert_eq!(counts.to_vec(&stream)?, [1, 2, 0, 0, 1]); // -1 and 10 are outside
//! # Ok::<(), Error>(())
//! ```
//!
//! Each shard counts its own elements. Every rank gets the counts of all ranks, and adds them: 8 bytes per bin and rank, to every rank.

use super::call::Turn;
use super::spread::Parts;
use crate::plan::fetch;
use crate::sharded::gather_column;
use crate::world::World;
use bytemuck::Pod;
use core::any::type_name;
use gpu_primitives::histogram::{self, Bucket, Sample};
use gpu_primitives::operator::map;
use gpu_primitives::{DeviceSlice, DeviceSliceMut, DeviceVec, Error, Stream, transform};

/// Counts the samples of all ranks in `bins` bins of equal width, from `lower` up to `upper`. What falls into no bin is not counted. Every
/// rank gets the counts. The bins must be the same on all ranks. Waits.
///
/// # Errors
/// Those of [`gpu_primitives::histogram::even`], [`Error::RanksDisagree`], [`Error::RankFailed`], [`Error::NotRecordable`], and
/// [`Error::DictionaryLost`] if a rank is lost. No memory of the caller is changed.
pub fn even<'a, T: Sample>(
    stream: &Stream,
    world: &World,
    samples: impl Into<Parts<'a, T>>,
    bins: usize,
    lower: T,
    upper: T,
) -> Result<DeviceVec<u64>, Error> {
    let range = [lower, upper].map(|end| bytemuck::bytes_of(&end).to_vec());
    let turn = Turn::begin(stream, world, "histogram::even", (type_name::<T>(), bins, range))?;
    counted(&turn, samples.into(), bins, |home, samples, counts| histogram::even(home, samples, counts, lower, upper))
}

/// Counts the elements of all ranks by a function, in `bins` bins: see [`even`]. The function must be the same on all ranks, with the same
/// state. Waits.
///
/// ```
/// use gpu_primitives::multisplit::Shift;
/// use gpu_primitives::{Device, Error};
/// use gpu_sharded::World;
/// use gpu_sharded::primitives::histogram;
///
/// let stream = Device::default()?.stream()?;
/// let numbers = stream.upload(&[1u32, 17, 18, 40])?;
/// let counts = histogram::by(&stream, &World::local(2), &numbers, 3, Shift::by(4))?;
/// assert_eq!(counts.to_vec(&stream)?, [1, 2, 1]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Those of [`even`].
pub fn by<'a, T: Pod, B: Bucket<T>>(
    stream: &Stream,
    world: &World,
    elements: impl Into<Parts<'a, T>>,
    bins: usize,
    bucket: B,
) -> Result<DeviceVec<u64>, Error> {
    let turn = Turn::begin(stream, world, "histogram::by", (type_name::<T>(), type_name::<B>(), bins))?;
    counted(&turn, elements.into(), bins, |home, elements, counts| histogram::by(home, elements, counts, bucket))
}

fn counted<T: Pod>(
    turn: &Turn<'_>,
    elements: Parts<'_, T>,
    bins: usize,
    count: impl Fn(&Stream, DeviceSlice<'_, T>, DeviceSliceMut<'_, u64>) -> Result<(), Error>,
) -> Result<DeviceVec<u64>, Error> {
    let (world, stream) = (turn.world, turn.stream);
    let part = || {
        let inputs = turn.inputs(elements)?;
        let own = turn.on_shards(|(own, home)| {
            let mut counts = home.uninit(bins)?;
            count(&home, inputs[own].slice(), counts.as_mut_slice())?;
            Ok((counts, home))
        })?;
        let here: Result<Vec<_>, Error> = own.into_iter().map(|(counts, home)| fetch(counts, &home, stream)).collect();
        let here = here?;
        let own = added(stream, bins, here.iter().map(DeviceVec::as_slice))?;
        Ok((own, stream.uninit(if world.is_alone() { 0 } else { bins * world.ranks() })?))
    };
    let (own, mut all) = turn.vote(part())?;
    if world.is_alone() {
        return turn.finish(Ok(own));
    }
    if bins > 0 {
        gather_column(world, stream, own.as_slice(), &mut all, &vec![bins; world.ranks()])?;
    }
    let part = || {
        let of_rank = |rank: usize| all.slice(rank * bins..(rank + 1) * bins);
        let of_ranks = (0..world.ranks()).map(of_rank).collect::<Result<Vec<_>, _>>()?;
        added(stream, bins, of_ranks.into_iter())
    };
    turn.finish(part())
}

/// Adds columns of counts. Does not wait.
fn added<'a>(
    stream: &Stream,
    bins: usize,
    columns: impl Iterator<Item = DeviceSlice<'a, u64>>,
) -> Result<DeviceVec<u64>, Error> {
    let (mut sum, mut next) = (stream.zeroed(bins)?, stream.uninit(bins)?);
    for column in columns {
        transform::map2(stream, &sum, column, &mut next, map!(|a: u64, b: u64| -> u64 { a + b }))?;
        core::mem::swap(&mut sum, &mut next);
    }
    Ok(sum)
}
