//! The table: operations on all pairs.

use super::pairs::{PairVec, typed};
use super::storage::{probe_blocks, with_table};
use super::table::{GpuCuckoo, RawTable};
use crate::device::{Assign, Keep, Unpack};
use gpu_dictionary::{Contents, Value, WordKey as Key};
use gpu_primitives::lowered::AnySlice;
use gpu_primitives::map::{Map, Map2};
use gpu_primitives::{DeviceSlice, DeviceVec, Error, Stream, transform};

impl<K: Key, V: Value> GpuCuckoo<K, V> {
    /// Keeps the pairs for which `keep(key, value)` is not 0, and deletes the others. Does not wait.
    ///
    /// Needs temporary memory for a copy of all slots and one byte per slot. `keep` is also called for free slots, with
    /// any key and value; its result is ignored there. For a set, see [`retain_keys`](GpuCuckoo::retain_keys).
    ///
    /// ```
    /// use gpu_cuckoo::{GpuCuckoo, Options};
    /// use gpu_primitives::operator::map;
    /// use gpu_primitives::{Device, Error};
    ///
    /// let stream = Device::cpu().stream()?;
    /// let (keys, values) = (stream.upload(&[1u32, 2, 3])?, stream.upload(&[10.0f32, 0.5, 2.0])?);
    /// let mut table = GpuCuckoo::bulk_build(&stream, (&keys, &values), Options::new())?;
    /// table.retain(&stream, map!(|key: u32, value: f32| -> u8 { (value > key as f32) as u8 }))?;
    /// assert_eq!(table.export(&stream)?.to_vec(&stream)?, [(1, 10.0)]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], or any launch error. After an error the table is unchanged.
    pub fn retain<F: Map2<K, V, Output = u8>>(&mut self, stream: &Stream, keep: F) -> Result<(), Error> {
        let slots = self.raw.unpack(stream)?;
        let mut keeps = stream.uninit(slots.len())?;
        let (keys, values) = of_table::<K, V>(&slots);
        transform::map2(stream, keys, values, &mut keeps, keep)?;
        self.raw.keep(stream, &keeps)
    }

    /// Replaces every value by `function(key, value)`. Does not wait.
    ///
    /// Needs temporary memory for a copy of all slots and another value per slot. The function is also called for free
    /// slots, with any key and value; its result is ignored there.
    ///
    /// ```
    /// use gpu_cuckoo::{GpuCuckoo, Options};
    /// use gpu_primitives::operator::map;
    /// use gpu_primitives::{Device, Error};
    ///
    /// let stream = Device::cpu().stream()?;
    /// let (keys, values) = (stream.upload(&[1u32, 2])?, stream.upload(&[10u32, 20])?);
    /// let mut table = GpuCuckoo::bulk_build(&stream, (&keys, &values), Options::new())?;
    /// table.for_each(&stream, map!(|key: u32, value: u32| -> u32 { value * 2 + key }))?;
    /// assert_eq!(table.export(&stream)?.to_vec(&stream)?, [(1, 21), (2, 42)]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], or any launch error. After an error the table is unchanged.
    pub fn for_each<F: Map2<K, V, Output = V>>(&mut self, stream: &Stream, function: F) -> Result<(), Error> {
        let slots = self.raw.unpack(stream)?;
        let mut results = stream.uninit::<V>(slots.len())?;
        let (keys, values) = of_table::<K, V>(&slots);
        transform::map2(stream, keys, values, &mut results, function)?;
        self.raw.assign(stream, AnySlice::from(results.as_slice()))
    }

    /// Returns all keys in order. Waits for their number.
    ///
    /// ```
    /// use gpu_cuckoo::{GpuCuckoo, Options};
    /// use gpu_primitives::{Device, Error};
    ///
    /// let stream = Device::cpu().stream()?;
    /// let (keys, values) = (stream.upload(&[5i64, -7, 5])?, stream.upload(&[1u32, 2, 3])?);
    /// let table = GpuCuckoo::bulk_build(&stream, (&keys, &values), Options::new())?;
    /// assert_eq!(table.keys(&stream)?.to_vec(&stream)?, [-7, 5]);
    /// assert_eq!(table.values(&stream)?.to_vec(&stream)?, [2, 3]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`export`](Self::export).
    pub fn keys(&self, stream: &Stream) -> Result<DeviceVec<K>, Error> {
        Ok(self.export(stream)?.keys)
    }

    /// Returns all values in the order of their keys: as many as [`keys`](Self::keys), or none if they are zero-sized.
    /// Waits for their number.
    ///
    /// # Errors
    /// The errors of [`export`](Self::export).
    pub fn values(&self, stream: &Stream) -> Result<DeviceVec<V>, Error> {
        Ok(self.export(stream)?.values)
    }

    /// Deletes all pairs and returns them in key order. The table keeps its slots. Waits.
    ///
    /// ```
    /// use gpu_cuckoo::{GpuCuckoo, Options};
    /// use gpu_primitives::{Device, Error};
    ///
    /// let stream = Device::cpu().stream()?;
    /// let (keys, values) = (stream.upload(&[2u32, 1])?, stream.upload(&[20u64, 10])?);
    /// let mut table = GpuCuckoo::bulk_build(&stream, (&keys, &values), Options::new())?;
    /// assert_eq!(table.drain(&stream)?.to_vec(&stream)?, [(1, 10), (2, 20)]);
    /// assert!(table.is_empty(&stream)?);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`export`](Self::export) and of [`clear`](Self::clear). After an error the table is unchanged.
    pub fn drain(&mut self, stream: &Stream) -> Result<Contents<K, V>, Error> {
        let contents = self.export(stream)?;
        self.clear(stream)?;
        Ok(contents)
    }
}

impl<K: Key> GpuCuckoo<K, ()> {
    /// Keeps the keys for which `keep(key)` is not 0, and deletes the others: [`retain`](GpuCuckoo::retain) for sets. Does
    /// not wait.
    ///
    /// ```
    /// use gpu_cuckoo::{GpuCuckoo, Options};
    /// use gpu_primitives::operator::map;
    /// use gpu_primitives::{Device, Error};
    ///
    /// let stream = Device::cpu().stream()?;
    /// let mut set = GpuCuckoo::build_set(&stream, &stream.upload(&[1u32, 2, 3, 4])?, Options::new())?;
    /// set.retain_keys(&stream, map!(|key: u32| -> u8 { (key % 2 == 0) as u8 }))?;
    /// assert_eq!(set.keys(&stream)?.to_vec(&stream)?, [2, 4]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], or any launch error. After an error the set is unchanged.
    pub fn retain_keys<F: Map<K, Output = u8>>(&mut self, stream: &Stream, keep: F) -> Result<(), Error> {
        let slots = self.raw.unpack(stream)?;
        let mut keeps = stream.uninit(slots.len())?;
        transform::map(stream, typed::<K>(slots.keys.as_slice()), &mut keeps, keep)?;
        self.raw.keep(stream, &keeps)
    }
}

impl RawTable {
    /// Copies the contents of all slots, in order. Those of free slots are of no importance. Does not wait.
    pub(super) fn unpack(&self, stream: &Stream) -> Result<PairVec, Error> {
        let slots = self.storage.slots() as usize;
        let mut unpacked = PairVec::uninit(stream, self.storage.sizes(), slots)?;
        with_table!(self.storage => C, V, {
            let kernel = Unpack::new(self.storage.view::<C, V, WIDTH>(stream)?, unpacked.view_mut(stream)?);
            // SAFETY: there is a thread and room for every slot.
            unsafe { stream.launch(kernel, probe_blocks(slots))? };
        });
        Ok(unpacked)
    }

    /// Sets the values of all pairs, from one value per slot. Does not wait.
    ///
    /// # Panics
    /// If there are not as many values as slots.
    fn assign(&mut self, stream: &Stream, values: AnySlice<'_>) -> Result<(), Error> {
        let slots = self.storage.slots() as usize;
        assert_eq!(values.len(), slots, "there is a value for every slot");
        if self.storage.sizes().value == 0 {
            return Ok(());
        }
        with_table!(self.storage => C, V in u32 | u64, {
            let kernel = Assign::new(self.storage.view_mut::<C, V, WIDTH>(stream)?, typed(values).view(stream)?);
            // SAFETY: there is a thread and a value for every slot.
            unsafe { stream.launch(kernel, probe_blocks(slots)) }
        })
    }

    /// Deletes the pairs whose slots have a 0, and counts them as erased. Does not wait.
    ///
    /// # Panics
    /// If there are not as many elements as slots.
    fn keep(&mut self, stream: &Stream, keeps: &DeviceVec<u8>) -> Result<(), Error> {
        let slots = self.storage.slots() as usize;
        assert_eq!(keeps.len(), slots, "there is an element for every slot");
        let mut erased = self.erased.as_mut_slice();
        with_table!(self.storage => C, V, {
            let table = self.storage.view_mut::<C, V, WIDTH>(stream)?;
            let kernel = Keep::new(table, keeps.view(stream)?, erased.view_mut(stream)?);
            // SAFETY: there is a thread and an element for every slot.
            unsafe { stream.launch(kernel, probe_blocks(slots)) }
        })
    }
}

/// Returns pairs as those of the caller's types.
fn of_table<K: Key, V: Value>(pairs: &PairVec) -> (DeviceSlice<'_, K>, DeviceSlice<'_, V>) {
    (typed(pairs.keys.as_slice()), typed(pairs.values.as_slice()))
}
