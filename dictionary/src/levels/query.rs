//! The host side of all queries except those on intervals.

#![deny(unsafe_op_in_unsafe_fn)]

use super::few::{FEW_QUERIES, LookupFew};
use super::find::Levels;
use super::level::Level;
use super::lookup::LookupKeys;
use super::neighbour::FindNeighbours;
use super::operation::SharedOperation;
use super::stack::Stack;
use super::table::THREADS;
use super::whole::{Live, count_live};
use crate::cast::{answered, asked, recast};
use crate::{Contents, Key, Lookup, Value, values_for};
use bytemuck::Pod;
use gpu_primitives::kernel::View;
use gpu_primitives::{DeviceSlice, DeviceVec, Error, Stream};

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

impl<K: Key, V: Value> Stack<K, V> {
    /// Looks up keys. Does not wait.
    ///
    /// # Errors
    /// Any allocation or launch error.
    pub fn lookup(&self, stream: &Stream, keys: DeviceSlice<'_, K>) -> Result<Lookup<V>, Error> {
        let mut values = stream.uninit::<V::Carrier>(values_for::<V>(keys.len()))?;
        let mut found = stream.uninit::<u8>(keys.len())?;
        if !keys.is_empty() {
            let asked = asked(stream, keys)?;
            let (levels, keys_view) = (self.carried_view::<V::Carrier>(stream)?, asked.slice().view(stream)?);
            let (values, found) = (values.view_mut(stream)?, found.view_mut(stream)?);
            if let Some(operation) = self.operation() {
                // SAFETY: the outputs are as long as the keys.
                unsafe { operation.lookup(stream, levels, keys_view, values, found)? };
            } else if self.are_few(stream, keys.len()) {
                let kernel = LookupFew::new(levels, keys_view, values, found);
                // SAFETY: there is a warp per key, and the outputs are as long as the keys.
                unsafe { stream.launch(kernel, keys.len().div_ceil(FEW_QUERIES))? };
            } else {
                let kernel = LookupKeys::new(levels, keys_view, values, found);
                // SAFETY: there is a thread per key, and the outputs are as long as the keys.
                unsafe { stream.launch(kernel, keys.len().div_ceil(THREADS as usize))? };
            }
        }
        Ok(Lookup { values: recast(values), found })
    }

    /// Returns the operation of the levels with operands, if there are any.
    fn operation(&self) -> Option<&SharedOperation<K, V>> {
        self.oldest_first().find_map(|(_, level)| level.operation())
    }

    /// Returns whether any level may have operands.
    #[must_use]
    pub fn has_operands(&self) -> bool {
        self.operation().is_some()
    }

    /// Returns the values of keys that were found in several levels. The newest level of a key may have an operand, which is
    /// only a part of the value.
    pub(super) fn combined(
        &self,
        stream: &Stream,
        keys: DeviceSlice<'_, K>,
        newest: DeviceVec<V>,
    ) -> Result<DeviceVec<V>, Error> {
        if self.combines() { Ok(self.lookup(stream, keys)?.values) } else { Ok(newest) }
    }

    /// Returns whether the newest element of a key may be only a part of its value.
    pub(super) fn combines(&self) -> bool {
        self.has_operands() && self.level_count() > 1
    }

    /// Returns whether a warp per query is faster than a thread per query: there are several levels, and so few queries that
    /// the device runs all their warps at once.
    pub(super) fn are_few(&self, stream: &Stream, queries: usize) -> bool {
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

    /// Makes a temporary copy of all elements, live or not, as one level. Returns `None` if that fails, most likely for
    /// lack of memory. Does not wait.
    fn in_one_level(&self, stream: &Stream) -> Option<Self> {
        let levels: Vec<&Level<K, V>> = self.oldest_first().map(|(_, level)| level).collect();
        let mut merged = Self::with_bucket(self.keys_per_bucket());
        merged.set(0, Some(Level::merge(stream, &levels).ok()?));
        Some(merged)
    }

    /// Returns which keys are present: 1 or 0 for each. Does not wait.
    ///
    /// # Errors
    /// The errors of [`lookup`](Self::lookup).
    pub fn contains(&self, stream: &Stream, keys: DeviceSlice<'_, K>) -> Result<DeviceVec<u8>, Error> {
        let mut found = stream.uninit::<u8>(keys.len())?;
        if !keys.is_empty() {
            let asked = asked(stream, keys)?;
            let (levels, keys_view) = (self.carried_view::<()>(stream)?, asked.slice().view(stream)?);
            let (values, found) = (View::empty_mut(), found.view_mut(stream)?);
            if self.are_few(stream, keys.len()) {
                let kernel = LookupFew::new(levels, keys_view, values, found);
                // SAFETY: there is a warp per key, and the output is as long as the keys.
                unsafe { stream.launch(kernel, keys.len().div_ceil(FEW_QUERIES))? };
            } else {
                let kernel = LookupKeys::new(levels, keys_view, values, found);
                // SAFETY: there is a thread per key, and the output is as long as the keys.
                unsafe { stream.launch(kernel, keys.len().div_ceil(THREADS as usize))? };
            }
        }
        Ok(found)
    }

    /// Finds, for each of `keys`, the smallest key greater than it or, with `below`, the largest key less than it. Does
    /// not wait.
    ///
    /// For so many keys that searching all levels would take longer than merging them, merges them first, if there is
    /// memory for that.
    ///
    /// # Errors
    /// The errors of [`lookup`](Self::lookup).
    pub fn neighbours(&self, stream: &Stream, keys: DeviceSlice<'_, K>, below: bool) -> Result<Neighbour<K, V>, Error> {
        // The index of the merged level cannot be recorded.
        let may_merge = self.are_many(keys.len()) && stream.refuse_recording("a merge for a query").is_ok();
        if may_merge && let Some(merged) = self.in_one_level(stream) {
            return merged.neighbours(stream, keys, below);
        }
        let len = keys.len();
        let mut out_keys = stream.uninit::<K::Code>(len)?;
        let mut values = stream.uninit::<V::Carrier>(values_for::<V>(len))?;
        let mut found = stream.uninit::<u8>(len)?;
        if len > 0 {
            let asked = asked(stream, keys)?;
            let kernel = FindNeighbours::new(
                self.carried_view::<V::Carrier>(stream)?,
                asked.slice().view(stream)?,
                u32::from(below),
                out_keys.view_mut(stream)?,
                values.view_mut(stream)?,
                found.view_mut(stream)?,
            );
            // SAFETY: there is a thread per key, and the outputs are as long as the keys.
            unsafe { stream.launch(kernel, len.div_ceil(THREADS as usize))? };
        }
        let keys = answered(stream, out_keys)?;
        let values = self.combined(stream, keys.as_slice(), recast(values))?;
        Ok(Neighbour { keys, values, found })
    }

    /// Returns the number of keys, as a single element on the device. Does not wait.
    ///
    /// # Errors
    /// The errors of [`lookup`](Self::lookup).
    pub fn live_len(&self, stream: &Stream) -> Result<DeviceVec<u64>, Error> {
        if let Some(level) = self.distinct_level() {
            return stream.upload(&[level.len() as u64]);
        }
        let levels: Vec<&Level<K, V>> = self.oldest_first().map(|(_, level)| level).collect();
        count_live(stream, &levels)
    }

    /// Returns all live pairs in key order. Waits for the stream.
    ///
    /// # Errors
    /// The errors of [`lookup`](Self::lookup).
    pub fn export(&self, stream: &Stream) -> Result<Contents<K, V>, Error> {
        let levels: Vec<&Level<K, V>> = self.oldest_first().map(|(_, level)| level).collect();
        let Live { keys, values, len } = Live::<_, V::Carrier>::of(stream, &levels, K::SIGN)?;
        let (mut keys, mut values) = (keys, recast(values));
        keys.truncate(len);
        values.truncate(len);
        Ok(Contents { keys: answered(stream, keys)?, values })
    }

    /// Returns whether any level may have tombstones.
    #[must_use]
    pub fn has_tombstones(&self) -> bool {
        self.oldest_first().any(|(_, level)| level.has_tombstones())
    }

    /// Returns the levels as an argument for a kernel of your own: see [`Levels`]. The kernel sees a key as the unsigned
    /// integer with the same bits, or as its code if it is not a [plain](Key::IS_PLAIN) number, and a value as its
    /// [carrier](Value::Carrier). Builds the missing parts of the index.
    /// Does not wait.
    ///
    /// # Errors
    /// [`Error::PendingUpserts`] if there are operands, which a kernel of your own cannot combine. The errors of
    /// [`lookup`](Self::lookup).
    #[allow(clippy::type_complexity)]
    pub fn view(&self, stream: &Stream) -> Result<View<'_, Levels<K::Code, V::Carrier>>, Error> {
        if self.has_operands() {
            return Err(Error::PendingUpserts { what: "a view for a kernel" });
        }
        self.carried_view(stream)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
                    for stack in [&stack, &merged] {
                        let found = stack.neighbours(&stream, asked.as_slice(), below).unwrap();
                        assert_eq!(&found.to_vec(&stream).unwrap(), expected, "below: {below}");
                    }
                }
            }
        }
    }
}
