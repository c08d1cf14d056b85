//! Values of an array that are combined with new ones: what an upsert does in dictionaries that refer to values by index.

use super::column::{Column, indices};
use crate::Lookup;
use bytemuck::Pod;
use gpu_primitives::compare::{Compare, Less};
use gpu_primitives::equality::{Equality, Same};
use gpu_primitives::monoid::Monoid;
use gpu_primitives::sort::{self, RadixKey};
use gpu_primitives::{DeviceSlice, DeviceVec, Error, Stream, merge, permute, runs, select};

/// The different keys of a call, with one value each.
#[derive(Debug)]
pub struct Combined<I: Pod, V: Pod> {
    /// The numbers of the keys, ascending.
    pub ids: DeviceVec<I>,
    /// Where the first pair of each key is in the call.
    pub positions: DeviceVec<u32>,
    /// The value of each key: the present one, if there is one, and then the new ones in their order.
    pub values: DeviceVec<V>,
}

impl<V: Pod> Column<V> {
    /// Combines new values with those that are present. Equal keys have equal `ids`, and different keys different ones.
    /// `present` says where the value of each key is. Waits for the number of different keys.
    ///
    /// Needs temporary memory for three copies of the values. The values must not be zero-sized.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if there are not as many ids, answers and values; [`Error::TooLong`] for more than 2^32 of
    /// them; [`Error::OutOfMemory`]; any launch error.
    pub fn combined<I: RadixKey, M: Monoid<V>>(
        &self,
        stream: &Stream,
        ids: &DeviceVec<I>,
        present: &Lookup<u32>,
        values: DeviceSlice<'_, V>,
        operation: M,
    ) -> Result<Combined<I, V>, Error>
    where
        Same: Equality<I>,
        Less: Compare<I>,
    {
        let len = ids.len();
        let (mut sorted, mut order) = (stream.uninit(len)?, stream.uninit(len)?);
        let positions = indices(stream, 0, len)?;
        sort::pairs(stream, (ids, &positions), (&mut sorted, &mut order), sort::Options::new())?;
        let (mut ids, mut positions) = (stream.uninit(len)?, positions);
        let to = (&mut ids, &mut positions);
        let count = runs::unique_by_key(stream, (&sorted, &order), to, Same, runs::Which::First)?.get(stream)? as usize;
        ids.truncate(count);
        positions.truncate(count);

        // The present values, in the order of the ids.
        let (mut found, mut at) = (stream.zeroed(count)?, stream.zeroed(count)?);
        permute::gather(stream, &present.found, &positions, &mut found)?;
        permute::gather(stream, &present.values, &positions, &mut at)?;
        let (mut old_ids, mut old_at) = (stream.uninit(count)?, stream.uninit(count)?);
        let old = select::flagged_pairs(stream, (&ids, &at), &found, (&mut old_ids, &mut old_at))?.get(stream)?;
        let (old, all) = (old as usize, old as usize + len);
        old_at.truncate(old);
        let mut both = stream.uninit::<V>(all)?;
        both.slice_mut(..len)?.copy_from(stream, values)?;
        self.gather(stream, &old_at, both.slice_mut(len..)?)?;

        // A merge takes equal elements of the first sequence before those of the second.
        let (mut merged, mut order_of_both) = (stream.uninit(all)?, stream.uninit(all)?);
        let (a, b) = ((old_ids.slice(..old)?, &indices(stream, len, old)?), (&sorted, &order));
        merge::pairs(stream, a, b, (&mut merged, &mut order_of_both), Less)?;
        let mut ordered = stream.uninit::<V>(all)?;
        permute::gather(stream, &both, &order_of_both, &mut ordered)?;
        let mut totals = both;
        let mut different = stream.uninit(all)?;
        runs::reduce_by_key(stream, (&merged, &ordered), (&mut different, &mut totals), Same, operation)?;
        totals.truncate(count);
        Ok(Combined { ids, positions, values: totals })
    }
}
