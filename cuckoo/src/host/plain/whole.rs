//! The table of plain keys: operations on all pairs.

use super::PlainCuckoo;
use super::index::selected;
use bytemuck::Pod;
use gpu_dictionary::{Contents, PlainKey};
use gpu_primitives::map::{Map, Map2};
use gpu_primitives::operator::map;
use gpu_primitives::{DeviceVec, Error, Stream, permute, transform};

impl<K: PlainKey, V: Pod> PlainCuckoo<K, V> {
    /// Keeps the pairs for which `keep(key, value)` is not 0, and deletes the others. Waits.
    ///
    /// Needs temporary memory for a byte per stored pair and a copy of the table's indices. `keep` is also called for pairs that
    /// were deleted or replaced; its result is ignored there. A function takes elements of 1 to 32 bytes, so the values may not
    /// be longer. For a set, whose values have no bytes, use [`retain_keys`](PlainCuckoo::retain_keys).
    ///
    /// ```
    /// use gpu_cuckoo::{Options, PlainCuckoo};
    /// use gpu_primitives::operator::map;
    /// use gpu_primitives::{Device, Error};
    ///
    /// let stream = Device::cpu().stream()?;
    /// let (keys, values) = (stream.upload(&[1u32, 2, 3])?, stream.upload(&[10.0f32, 0.5, 2.0])?);
    /// let mut table = PlainCuckoo::bulk_build(&stream, (&keys, &values), Options::new())?;
    /// table.retain(&stream, map!(|key: u32, value: f32| -> u8 { (value > key as f32) as u8 }))?;
    /// assert_eq!(table.export(&stream)?.to_vec(&stream)?, [(1, 10.0)]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], or any launch error. After an error the table is unchanged.
    pub fn retain<F: Map2<K, V, Output = u8>>(&mut self, stream: &Stream, keep: F) -> Result<(), Error> {
        let mut keeps = stream.uninit(self.keys.len())?;
        transform::map2(stream, self.keys.values()?, self.values.values()?, &mut keeps, keep)?;
        self.keep(stream, &keeps)
    }

    /// Replaces every value by `function(key, value)`. Does not wait.
    ///
    /// Needs memory for another array of values. The function is also called for pairs that were deleted or replaced; its result
    /// is ignored there. A function has results of 1 to 32 bytes: for a set, or for longer values, this does not compile.
    ///
    /// ```
    /// use gpu_cuckoo::{Options, PlainCuckoo};
    /// use gpu_primitives::operator::map;
    /// use gpu_primitives::{Device, Error};
    ///
    /// let stream = Device::cpu().stream()?;
    /// let (keys, values) = (stream.upload(&[1u32, 2])?, stream.upload(&[10u32, 20])?);
    /// let mut table = PlainCuckoo::bulk_build(&stream, (&keys, &values), Options::new())?;
    /// table.for_each(&stream, map!(|key: u32, value: u32| -> u32 { value * 2 + key }))?;
    /// assert_eq!(table.export(&stream)?.to_vec(&stream)?, [(1, 21), (2, 42)]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], or any launch error. After an error the table is unchanged.
    pub fn for_each<F: Map2<K, V, Output = V>>(&mut self, stream: &Stream, function: F) -> Result<(), Error> {
        stream.refuse_recording("an update of a dictionary")?;
        let mut results = stream.uninit::<V>(self.values.len())?;
        transform::map2(stream, self.keys.values()?, self.values.values()?, &mut results, function)?;
        self.values = results.into();
        Ok(())
    }

    /// Deletes the pairs whose flag is 0. There is one for each pair in the arrays.
    fn keep(&mut self, stream: &Stream, keeps: &DeviceVec<u8>) -> Result<(), Error> {
        let Contents { keys: hashes, values: live } = self.index.table.export(stream)?;
        let mut kept = stream.zeroed(live.len())?;
        permute::gather(stream, keeps, &live, &mut kept)?;
        let mut gone = stream.uninit(live.len())?;
        transform::map(stream, &kept, &mut gone, map!(|keep: u8| -> u8 { (keep == 0) as u8 }))?;
        let gone = selected(stream, &hashes, &gone)?;
        self.index.table.delete(stream, &gone)
    }
}

impl<K: PlainKey> PlainCuckoo<K, ()> {
    /// Keeps the keys for which `keep(key)` is not 0, and deletes the others: [`retain`](PlainCuckoo::retain) for sets. Waits.
    ///
    /// ```
    /// use gpu_cuckoo::{Options, PlainCuckoo};
    /// use gpu_primitives::operator::map;
    /// use gpu_primitives::{Device, Error};
    ///
    /// let stream = Device::cpu().stream()?;
    /// let mut set = PlainCuckoo::build_set(&stream, &stream.upload(&[1u32, 2, 3, 4])?, Options::new())?;
    /// set.retain_keys(&stream, map!(|key: u32| -> u8 { (key % 2 == 0) as u8 }))?;
    /// assert_eq!(set.keys(&stream)?.to_vec(&stream)?, [2, 4]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], or any launch error. After an error the set is unchanged.
    pub fn retain_keys<F: Map<K, Output = u8>>(&mut self, stream: &Stream, keep: F) -> Result<(), Error> {
        let mut keeps = stream.uninit(self.keys.len())?;
        transform::map(stream, self.keys.values()?, &mut keeps, keep)?;
        self.keep(stream, &keeps)
    }
}
