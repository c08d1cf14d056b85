//! The host side of all queries except those on intervals.

#![deny(unsafe_op_in_unsafe_fn)]

use super::full_merge::{Live, count_live};
use super::level::AnyLevel;
use super::operation::Operation;
use super::stack::AnyStack;
use super::types::{with_code, with_value};
use super::view::AnyLevels;
use crate::levels::device::query::lookup::LookupKeys;
use crate::levels::device::query::neighbour::FindNeighbours;
use crate::levels::device::query::small::{FEW_QUERIES, LookupFew};
use crate::levels::device::table::THREADS;
use bytemuck::Pod;
use gpu_primitives::kernel::View;
use gpu_primitives::lowered::{AnySlice, AnySliceMut, AnyVec, Place};
use gpu_primitives::{DeviceSliceMut, DeviceVec, Error, Stream};

/// The neighbours of keys, on the device, in the order of the keys that were asked for.
#[derive(Debug)]
pub struct Neighbour<K: Pod, V: Pod> {
    /// The neighbours, where there are any.
    pub keys: DeviceVec<K>,
    /// The values of the neighbours. Empty if values are zero-sized.
    pub values: DeviceVec<V>,
    /// 1 for each key that has a neighbour, 0 for each that has none.
    pub found: DeviceVec<u8>,
}

impl<K: Pod, V: Pod> Neighbour<K, V> {
    /// Copies the pairs to the host. Waits for the stream.
    ///
    /// # Errors
    /// Any error of a copy to the host.
    pub fn to_vec(&self, stream: &Stream) -> Result<Vec<Option<(K, V)>>, Error> {
        let (found, keys) = (self.found.to_vec(stream)?, self.keys.to_vec(stream)?);
        let values = if size_of::<V>() == 0 { vec![V::zeroed(); keys.len()] } else { self.values.to_vec(stream)? };
        let pairs = keys.into_iter().zip(values);
        Ok(found.into_iter().zip(pairs).map(|(found, pair)| (found != 0).then_some(pair)).collect())
    }
}

/// Neighbours of keys whose types are known by their sizes alone.
#[derive(Debug)]
pub(crate) struct AnyNeighbour {
    pub keys: AnyVec,
    pub values: AnyVec,
    pub found: DeviceVec<u8>,
}

impl AnyStack {
    /// Looks up keys: their values, and which of them are present. Does not wait, unless levels are in host memory: see
    /// [`far`](super::far).
    pub(crate) fn lookup(&self, stream: &Stream, keys: AnySlice<'_>) -> Result<(AnyVec, DeviceVec<u8>), Error> {
        let mut values = self.types.room_for_values(stream, keys.len())?;
        let found = self.find(stream, keys, Some(values.as_mut_slice()))?;
        Ok((values, found))
    }

    /// Returns which keys are present: 1 or 0 for each. Waits if [`lookup`](Self::lookup) does.
    pub(crate) fn contains(&self, stream: &Stream, keys: AnySlice<'_>) -> Result<DeviceVec<u8>, Error> {
        self.find(stream, keys, None)
    }

    /// Finds keys and, if they are wanted, their values.
    fn find(
        &self,
        stream: &Stream,
        keys: AnySlice<'_>,
        mut values: Option<AnySliceMut<'_>>,
    ) -> Result<DeviceVec<u8>, Error> {
        let mut found = stream.uninit::<u8>(keys.len())?;
        if keys.is_empty() {
            return Ok(found);
        }
        if self.sorts_lookups(stream, keys.len()) {
            match self.find_far(stream, keys, values.as_mut().map(AnySliceMut::reborrow), &mut found) {
                // Without the memory for that, levels are read at random.
                Err(Error::OutOfMemory { .. }) => {}
                done => return done.map(|()| found),
            }
        }
        let asked = self.types.encode_query(stream, keys)?;
        let levels = self.any_view(stream, values.is_some())?;
        self.search(stream, levels, asked.slice(), values, found.as_mut_slice())?;
        Ok(found)
    }

    /// Searches levels of this stack for keys, in the form that the view of the levels takes. There is at least one.
    pub(crate) fn search(
        &self,
        stream: &Stream,
        levels: AnyLevels<'_>,
        keys: AnySlice<'_>,
        values: Option<AnySliceMut<'_>>,
        mut found: DeviceSliceMut<'_, u8>,
    ) -> Result<(), Error> {
        let found_view = found.view_mut(stream)?;
        let values = match (values, self.operation()) {
            (Some(values), Some(operation)) => {
                // SAFETY: the outputs are as long as the keys.
                return unsafe { operation.lookup(stream, levels, keys, values, found_view) };
            }
            (values, _) => values.filter(|_| self.types.value > 0),
        };
        let are_few = levels.len() > 1 && self.are_few(stream, keys.len());
        let size = if values.is_some() { self.types.value } else { 0 };
        with_code!(self.types.code => C, with_value!(size => W, {
            let (levels, keys_view) = (levels.typed::<C, W>(), keys.view(stream)?);
            let mut values = values;
            let values = values.as_mut().map_or_else(|| Ok(View::empty_mut()), |values| values.view_mut::<W>(stream))?;
            if are_few {
                let kernel = LookupFew::new(levels, keys_view, values, found_view);
                // SAFETY: there is a warp per key, and the outputs are as long as the keys.
                unsafe { stream.launch(kernel, keys.len().div_ceil(FEW_QUERIES))? };
            } else {
                let kernel = LookupKeys::new(levels, keys_view, values, found_view);
                // SAFETY: there is a thread per key, and the outputs are as long as the keys.
                unsafe { stream.launch(kernel, keys.len().div_ceil(THREADS as usize))? };
            }
        }));
        Ok(())
    }

    /// Returns the operation of the levels with operands, if there are any.
    fn operation(&self) -> Option<&Operation> {
        self.oldest_first().find_map(|(_, level)| level.operation())
    }

    /// Returns whether any level may have operands.
    #[must_use]
    pub fn has_operands(&self) -> bool {
        self.operation().is_some()
    }

    /// Returns the values of keys that were found in several levels. The newest level of a key may have an operand, which is
    /// only a part of the value.
    pub(crate) fn combined(&self, stream: &Stream, keys: AnySlice<'_>, newest: AnyVec) -> Result<AnyVec, Error> {
        if self.combines() { Ok(self.lookup(stream, keys)?.0) } else { Ok(newest) }
    }

    /// Returns whether the newest element of a key may be only a part of its value.
    pub(crate) fn combines(&self) -> bool {
        self.has_operands() && self.level_count() > 1
    }

    /// Returns whether a warp per query is faster than a thread per query: there are several levels, and so few queries that
    /// the device runs all their warps at once.
    pub(crate) fn are_few(&self, stream: &Stream, queries: usize) -> bool {
        const WARPS_AT_ONCE: usize = 32;

        self.level_count() > 1 && queries <= WARPS_AT_ONCE * stream.device().limits().multiprocessors as usize
    }

    /// Returns whether searching every level for so many keys takes longer than merging the levels and searching once. On an
    /// H200, an element takes 0.02 ns to merge and index, and a query some 0.03 ns per level.
    fn are_many(&self, queries: usize) -> bool {
        /// Fewer queries take less time than the launches of a merge.
        const LEAST: usize = 1 << 18;

        queries >= LEAST && queries.saturating_mul(self.level_count().saturating_sub(1)) >= self.len()
    }

    /// Returns the levels, oldest first.
    #[must_use]
    pub fn levels(&self) -> Vec<&AnyLevel> {
        self.oldest_first().map(|(_, level)| level).collect()
    }

    /// Returns where temporary copies of all elements are made: on the host if some of them are there, because then the device has no
    /// room for all.
    pub(crate) fn place_of_copies(&self) -> Place {
        let is_far = self.oldest_first().any(|(_, level)| level.place() == Place::Host);
        if is_far { Place::Host } else { Place::Device }
    }

    /// Makes a temporary copy of all elements, live or not, as one level. Returns `None` if that fails, most likely for
    /// lack of memory. Does not wait.
    pub(crate) fn in_one_level(&self, stream: &Stream) -> Option<Self> {
        let mut merged = Self::with_bucket(self.types, self.keys_per_bucket());
        merged.set(0, Some(AnyLevel::merge(self.types, stream, self.place_of_copies(), &self.levels()).ok()?));
        Some(merged)
    }

    /// Finds, for each of `keys`, the smallest key greater than it or, with `below`, the largest key less than it. Does
    /// not wait.
    pub(crate) fn neighbours(&self, stream: &Stream, keys: AnySlice<'_>, below: bool) -> Result<AnyNeighbour, Error> {
        // The index of the merged level cannot be recorded.
        let may_merge = self.are_many(keys.len()) && stream.refuse_recording("a merge for a query").is_ok();
        if may_merge && let Some(merged) = self.in_one_level(stream) {
            return merged.neighbours(stream, keys, below);
        }
        let len = keys.len();
        let mut out_keys = AnyVec::uninit(stream, self.types.code, len)?;
        let mut values = self.types.room_for_values(stream, len)?;
        let mut found = stream.uninit::<u8>(len)?;
        if len > 0 {
            let asked = self.types.encode_query(stream, keys)?;
            let levels = self.any_view(stream, true)?;
            let (mut out_keys, mut values) = (out_keys.as_mut_slice(), values.as_mut_slice());
            with_code!(self.types.code => C, with_value!(self.types.value => W, {
                let kernel = FindNeighbours::<C, W>::new(
                    levels.typed(),
                    asked.slice().view(stream)?,
                    u32::from(below),
                    out_keys.view_mut(stream)?,
                    values.view_mut(stream)?,
                    found.view_mut(stream)?,
                );
                // SAFETY: there is a thread per key, and the outputs are as long as the keys.
                unsafe { stream.launch(kernel, len.div_ceil(THREADS as usize))? };
            }));
        }
        let keys = self.types.decode_result(stream, out_keys)?;
        let values = self.combined(stream, keys.as_slice(), values)?;
        Ok(AnyNeighbour { keys, values, found })
    }

    /// Returns the number of keys, as a single element on the device. Does not wait.
    ///
    /// # Errors
    /// Any allocation or launch error.
    pub fn live_len(&self, stream: &Stream) -> Result<DeviceVec<u64>, Error> {
        match self.distinct_level() {
            Some(level) => stream.upload(&[level.len() as u64]),
            None => count_live(self.types, stream, &self.levels()),
        }
    }

    /// Returns all live pairs in key order. Waits for the stream.
    pub(crate) fn export(&self, stream: &Stream) -> Result<(AnyVec, AnyVec), Error> {
        let Live { mut keys, mut values, len } =
            Live::of(self.types, stream, Place::Device, &self.levels(), self.types.sign)?;
        keys.truncate(len);
        values.truncate(len);
        Ok((self.types.decode_result(stream, keys)?, values))
    }

    /// Returns whether any level may have tombstones.
    #[must_use]
    pub fn has_tombstones(&self) -> bool {
        self.oldest_first().any(|(_, level)| level.has_tombstones())
    }
}

#[cfg(test)]
mod tests {
    use crate::levels::{Level, Stack};
    use gpu_primitives::Device;
    use gpu_primitives::monoid::Sum;

    /// Stale values, tombstones and operands give the same neighbours when all levels are merged.
    #[test]
    fn merged_levels_have_the_same_neighbours() {
        for device in [Device::cpu(), Device::cpu_checked()] {
            let stream = device.stream().unwrap();
            let upload = |numbers: &[u32]| stream.upload(numbers).unwrap();
            let mut stack = Stack::<u32, u32>::new();
            let (keys, values) = (upload(&[10, 20, 30, 40, 50]), upload(&[1, 2, 3, 4, 5]));
            stack.set(3, Some(Level::from_pairs(&stream, keys.as_slice(), values.as_slice()).unwrap()));
            stack.set(2, Some(Level::tombstones(&stream, upload(&[20, 40, 60]).as_slice()).unwrap()));
            let (keys, values) = (upload(&[25, 30, 40]), upload(&[6, 7, 8]));
            let mut expected = [
                vec![(10, 1), (25, 6), (25, 6), (30, 7), (40, 8), (50, 5)].into_iter().map(Some).collect::<Vec<_>>(),
                vec![None, None, Some((10, 1)), Some((25, 6)), Some((30, 7)), Some((40, 8))],
            ];
            let asked = upload(&[0, 10, 20, 29, 31, 49]);
            for with_operands in [false, true] {
                if with_operands {
                    stack.set(0, Some(Level::operands(&stream, keys.as_slice(), values.as_slice(), Sum).unwrap()));
                    for (key, value) in expected.iter_mut().flatten().flatten() {
                        // The level below has the same pairs, so each of their values is counted twice.
                        *value *= if [25, 30, 40].contains(key) { 2 } else { 1 };
                    }
                } else {
                    stack.set(1, Some(Level::from_pairs(&stream, keys.as_slice(), values.as_slice()).unwrap()));
                }
                let merged = stack.in_one_level(&stream).unwrap();
                assert_eq!(merged.level_count(), 1);
                for (below, expected) in [(false, &expected[0]), (true, &expected[1])] {
                    for stack in [&stack, Stack::of_ref(&merged)] {
                        let found = stack.neighbours(&stream, asked.as_slice(), below).unwrap();
                        assert_eq!(&found.to_vec(&stream).unwrap(), expected, "below: {below}");
                    }
                }
            }
        }
    }
}
