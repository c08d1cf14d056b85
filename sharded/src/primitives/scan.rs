//! Scans of elements that are spread over ranks.
//!
//! ```
//! use gpu_primitives::{Device, Error};
//! use gpu_primitives::scan::Sum;
//! use gpu_sharded::World;
//! use gpu_sharded::primitives::scan;
//!
//! let stream = Device::default()?.stream()?;
//! let world = World::local(3);
//! let numbers = stream.upload(&[3u32, 1, 4, 1, 5])?;
//! assert_eq!(scan::inclusive(&stream, &world, &numbers, Sum)?.to_vec(&stream)?, [3, 4, 8, 9, 14]);
//! assert_eq!(scan::exclusive(&stream, &world, &numbers, Sum, 10)?.to_vec(&stream)?, [10, 13, 14, 18, 19]);
//! # Ok::<(), Error>(())
//! ```
//!
//! Each shard first reduces its elements. One step tells the totals of all shards to all ranks. Then each shard scans its elements, from the
//! total of the shards before it on. No elements are exchanged, and the result is spread as the input is. So each element is read twice and
//! written once.

use super::call::Turn;
use super::spread::{Parts, Spread};
use crate::world::World;
use bytemuck::{NoUninit, Pod};
use core::any::type_name;
use gpu_dictionary::cast::Input;
use gpu_primitives::monoid::Monoid;
use gpu_primitives::{DeviceValue, DeviceVec, Error, Stream, reduce, scan};

/// Computes for each element the combination of all elements up to it, those of lower ranks first: the operation need not be
/// commutative. Waits.
///
/// The operation must be the same on all ranks, with the same state. Sums of floats depend on how the elements are spread.
///
/// # Errors
/// [`Error::OutOfMemory`], [`Error::RanksDisagree`], [`Error::RankFailed`], [`Error::NotRecordable`], or any launch error, and
/// [`Error::DictionaryLost`] if a rank is lost. No memory of the caller is changed.
pub fn inclusive<'a, T: Pod, M: Monoid<T>>(
    stream: &Stream,
    world: &World,
    elements: impl Into<Parts<'a, T>>,
    operation: M,
) -> Result<Spread<T>, Error> {
    let turn = Turn::begin(stream, world, "scan::inclusive", (type_name::<T>(), type_name::<M>()))?;
    scanned(&turn, elements.into(), operation, operation.identity(), |home, input, before, total| {
        let input = input.slice();
        let mut output = home.uninit::<T>(input.len())?;
        let Some(last) = input.len().checked_sub(1) else { return Ok(output) };
        // The elements after the first one, from the first one on. So the last result is left: the total.
        let first = operation.combine(before, input.slice(..1)?.to_vec(home)?[0]);
        scan::exclusive(home, input.slice(1..)?, output.slice_mut(..last)?, operation, first)?;
        output.slice_mut(last..)?.copy_from_host(home, &[operation.combine(before, total)])?;
        Ok(output)
    })
}

/// Computes for each element the combination of `initial` and all elements before it, those of lower ranks first: see
/// [`inclusive`]. `initial` must be the same on all ranks. Waits.
///
/// # Errors
/// Those of [`inclusive`].
pub fn exclusive<'a, T: Pod, M: Monoid<T>>(
    stream: &Stream,
    world: &World,
    elements: impl Into<Parts<'a, T>>,
    operation: M,
    initial: T,
) -> Result<Spread<T>, Error> {
    let call = (type_name::<T>(), type_name::<M>(), bytemuck::bytes_of(&initial).to_vec());
    let turn = Turn::begin(stream, world, "scan::exclusive", call)?;
    scanned(&turn, elements.into(), operation, initial, |home, input, before, _| {
        let mut output = home.uninit::<T>(input.slice().len())?;
        scan::exclusive(home, input.slice(), &mut output, operation, before)?;
        Ok(output)
    })
}

/// Scans the elements of each shard by a function, which is given the combination of what comes before, and that of the shard.
fn scanned<T: Pod + NoUninit, M: Monoid<T>>(
    turn: &Turn<'_>,
    elements: Parts<'_, T>,
    operation: M,
    initial: T,
    scan: impl Fn(&Stream, &Input<'_, T>, T, T) -> Result<DeviceVec<T>, Error>,
) -> Result<Spread<T>, Error> {
    let part = || {
        let inputs = turn.inputs(elements)?;
        // All shards work before the first one is waited for.
        let total = |(own, home): (usize, Stream)| Ok((reduce::reduce(&home, inputs[own].slice(), operation)?, home));
        let totals: Vec<(DeviceValue<T>, Stream)> = turn.on_shards(total)?;
        let totals: Result<Vec<T>, Error> = totals.iter().map(|(total, home)| total.get(home)).collect();
        Ok((inputs, totals?))
    };
    let (inputs, totals) = match part() {
        Ok((inputs, totals)) => (inputs, turn.share_each(Ok(totals))?),
        Err(error) => return turn.vote(Err(error)),
    };
    let mut before = Vec::with_capacity(totals.len());
    _ = totals.iter().fold(initial, |sum, &total| {
        before.push(sum);
        operation.combine(sum, total)
    });
    let first = turn.world.first_shard();
    let own = |(own, home): (usize, Stream)| scan(&home, &inputs[own], before[first + own], totals[first + own]);
    Ok(turn.spread(turn.finish(turn.on_shards(own))?))
}
