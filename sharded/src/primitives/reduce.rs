//! Reductions of elements that are spread over ranks.
//!
//! ```
//! use gpu_primitives::{Device, Error};
//! use gpu_primitives::scan::Max;
//! use gpu_sharded::World;
//! use gpu_sharded::primitives::reduce;
//!
//! let stream = Device::default()?.stream()?;
//! let world = World::local(3);
//! let numbers = stream.upload(&[3i32, -7, 12, 5])?;
//! assert_eq!(reduce::sum(&stream, &world, &numbers)?, 13);
//! assert_eq!(reduce::reduce(&stream, &world, &numbers, Max)?, 12);
//! # Ok::<(), Error>(())
//! ```

use super::call::Turn;
use super::spread::Parts;
use crate::world::World;
use bytemuck::Pod;
use core::any::type_name;
use gpu_primitives::monoid::{Monoid, Sum};
use gpu_primitives::{DeviceValue, Error, Stream, reduce};

/// Combines the elements of all ranks, in the order of the ranks: the operation need not be commutative. Every rank gets the result.
/// Waits.
///
/// Each shard reduces its own elements. Then one step tells the results of all shards to all ranks. No elements are exchanged. The operation
/// must be the same on all ranks, with the same state. Sums of floats depend on how the elements are spread.
///
/// # Errors
/// [`Error::OutOfMemory`], [`Error::RanksDisagree`], [`Error::RankFailed`], [`Error::NotRecordable`], or any launch error, and
/// [`Error::DictionaryLost`] if a rank is lost.
pub fn reduce<'a, T: Pod, M: Monoid<T>>(
    stream: &Stream,
    world: &World,
    elements: impl Into<Parts<'a, T>>,
    operation: M,
) -> Result<T, Error> {
    let turn = Turn::begin(stream, world, "reduce::reduce", (type_name::<T>(), type_name::<M>()))?;
    let all = turn.share_each(totals(&turn, elements.into(), operation))?;
    Ok(all.into_iter().fold(operation.identity(), |total, of_shard| operation.combine(total, of_shard)))
}

/// Adds up the elements of all ranks: see [`reduce`](reduce()).
///
/// # Errors
/// Those of [`reduce`](reduce()).
pub fn sum<'a, T: Pod>(stream: &Stream, world: &World, elements: impl Into<Parts<'a, T>>) -> Result<T, Error>
where
    Sum: Monoid<T>,
{
    reduce(stream, world, elements, Sum)
}

/// Returns the combination of the elements of each shard of this rank.
fn totals<T: Pod, M: Monoid<T>>(turn: &Turn<'_>, elements: Parts<'_, T>, operation: M) -> Result<Vec<T>, Error> {
    let inputs = turn.inputs(elements)?;
    // All shards work before the first one is waited for.
    let of_shard = |(own, home): (usize, Stream)| Ok((reduce::reduce(&home, inputs[own].slice(), operation)?, home));
    let totals: Vec<(DeviceValue<T>, Stream)> = turn.on_shards(of_shard)?;
    totals.iter().map(|(total, home)| total.get(home)).collect()
}
