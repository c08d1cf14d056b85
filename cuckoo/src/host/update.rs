//! The table: changing it.

use super::build::{Pairs, aligned, buckets_for, build, codes, full};
use super::launch::{RawPairs, SettleJob};
use super::options::{HIGHEST_LOAD, Options, WhenFull};
use super::table::{GpuCuckoo, expect_values};
use bytemuck::Pod;
use gpu_primitives::dictionary::Key;
use gpu_primitives::{DeviceSlice, DeviceValue, Error, Stream};

impl<K: Key, V: Pod> GpuCuckoo<K, V> {
    /// Adds pairs. A key that is there already gets the new value; of equal keys the last one counts. Waits.
    ///
    /// The keys are sorted to find equal ones; those that are new take free slots, up to a load of 0.95. If there is not enough
    /// room for them, the table is built anew, larger, or the call refuses, as the options say.
    ///
    /// ```
    /// use gpu_cuckoo::{GpuCuckoo, Options};
    /// use gpu_primitives::{Device, Error};
    ///
    /// let stream = Device::cpu().stream()?;
    /// let mut table = GpuCuckoo::<u32, u32>::new(&stream, 100, Options::new())?;
    /// table.insert(&stream, &stream.upload(&[1u32, 2, 1])?, &stream.upload(&[10u32, 20, 30])?)?;
    /// table.insert(&stream, &stream.upload(&[2u32])?, &stream.upload(&[40u32])?)?;
    /// let (keys, values) = table.export(&stream)?;
    /// assert_eq!((keys.to_vec(&stream)?, values.to_vec(&stream)?), (vec![1, 2], vec![30, 40]));
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::LengthMismatch`]; [`Error::TableFull`] if the table may not grow; [`Error::OutOfMemory`]; what a launch can give.
    /// After [`Error::TableFull`] the table holds what it held before.
    pub fn insert<'a>(
        &mut self,
        stream: &Stream,
        keys: impl Into<DeviceSlice<'a, K>>,
        values: impl Into<DeviceSlice<'a, V>>,
    ) -> Result<(), Error> {
        let (keys, values) = (keys.into(), values.into());
        expect_values(keys, values)?;
        if keys.is_empty() {
            return Ok(());
        }
        // Equal keys side by side, the last one last.
        let mut batch = Pairs::<K, V>::room(stream, keys.len())?;
        let aligned_values = aligned(stream, values)?;
        let given = RawPairs::of(stream, keys, aligned_values.as_slice())?;
        // SAFETY: as many pairs, in memory of their own.
        unsafe { self.kernels().sort(stream, given, batch.raw(stream)?, K::SIGN)? };
        let mut is_new = stream.uninit::<u8>(keys.len())?;
        let (table, sorted) = (self.raw(stream)?, codes(stream, batch.keys.as_slice())?);
        // SAFETY: the table is this one; the keys are sorted; as many marks as keys.
        unsafe { self.kernels().tell_new(stream, table, sorted, is_new.view_mut(stream)?)? };
        let mut fresh = Pairs::<K, V>::room(stream, keys.len())?;
        // SAFETY: as many marks as pairs, and as much room.
        let count = unsafe { self.kernels().flagged(stream, batch.raw(stream)?, &is_new, fresh.raw(stream)?)? };
        let new = count.get(stream)?;
        let len = self.len(stream)? as u64;

        let most = (self.slots() as f64 * HIGHEST_LOAD) as u64;
        if len + new > most {
            if self.options.when_full == WhenFull::Refuse {
                return Err(full(len + new - most, len + new, self.slots()));
            }
            // Old pairs first: of equal keys the last one counts.
            let mut all = self.collect(stream, keys.len())?;
            all.keys.slice_mut(len as usize..)?.copy_from(stream, keys)?;
            all.values.slice_mut(len as usize..)?.copy_from(stream, values)?;
            // Twice the room, so that a table which grows by many batches is not built anew by each of them.
            return self.build_anew(stream, &all, (len + new).max(2 * len) as usize, &self.options.clone());
        }
        if new > 0 {
            self.settle_or_undo(stream, &mut fresh, &count, new)?;
        }
        let (table, batch) = (self.raw(stream)?, batch.raw(stream)?);
        // SAFETY: as above, and all keys are in the table now.
        unsafe { self.kernels().replace(stream, table, batch, is_new.view(stream)?) }
    }

    /// Places the first `new` pairs, whose keys are different and not in the table. If some find no place, builds everything
    /// anew; if that is not to be, leaves what was there before.
    fn settle_or_undo(
        &mut self,
        stream: &Stream,
        fresh: &mut Pairs<K, V>,
        count: &DeviceValue<u64>,
        new: u64,
    ) -> Result<(), Error> {
        let mut orphans = Pairs::<K, V>::room(stream, new as usize)?;
        let mut unplaced = stream.zeroed::<u64>(1)?;
        let mut locks = stream.zeroed::<u32>((self.map.hash.buckets as usize).div_ceil(32))?;
        let job = SettleJob {
            pairs: fresh.raw(stream)?,
            count: count.as_slice().view(stream)?,
            table: self.raw(stream)?,
            locks: locks.view_mut(stream)?,
            skip_first: false,
            limit: self.options.evictions,
            orphans: orphans.raw(stream)?,
            unplaced: unplaced.view_mut(stream)?,
        };
        // SAFETY: the keys are new, and different; a lock for every bucket; each of the pairs leaves at most one orphan.
        unsafe { self.kernels().settle(stream, job)? };
        let unplaced = unplaced.to_vec(stream)?[0];
        self.placed += new - unplaced;
        if unplaced == 0 {
            return Ok(());
        }
        let len = self.len(stream)?;
        let lost = unplaced as usize;
        let mut all = self.collect(stream, lost)?;
        all.keys.slice_mut(len..)?.copy_from(stream, orphans.keys.slice(..lost)?)?;
        all.values.slice_mut(len..)?.copy_from(stream, orphans.values.slice(..lost)?)?;
        let slots = self.slots();
        let capacity = (slots as f64 * self.options.load_factor) as usize;
        let result = self.build_anew(stream, &all, capacity.max(len + lost), &self.options.clone());
        if result.is_ok() {
            return result;
        }
        // What was there before is the table without the new keys, and the orphans that are none of these. It fitted once; should
        // it not do so again, the table grows in spite of its options rather than lose anything.
        let fresh_keys = fresh.keys.slice(..new as usize)?;
        self.delete(stream, fresh_keys)?;
        // Sorted, as the batch was.
        let fresh: Vec<K::Code> = fresh_keys.to_vec(stream)?.into_iter().map(K::code).collect();
        let lost_keys = orphans.keys.slice(..lost)?.to_vec(stream)?;
        let lost_pairs = lost_keys.into_iter().zip(orphans.values.slice(..lost)?.to_vec(stream)?);
        let (old_keys, old_values): (Vec<K>, Vec<V>) =
            lost_pairs.filter(|(key, _)| fresh.binary_search(&key.code()).is_err()).unzip();
        let len = self.len(stream)?;
        let mut before = self.collect(stream, old_keys.len())?;
        before.keys.slice_mut(len..)?.copy_from_host(stream, &old_keys)?;
        before.values.slice_mut(len..)?.copy_from_host(stream, &old_values)?;
        let growing = self.options.clone().when_full(WhenFull::Grow);
        self.build_anew(stream, &before, capacity.max(before.keys.len()), &growing)?;
        result
    }

    /// Replaces the table by one of these pairs, with room for so many keys.
    fn build_anew(
        &mut self,
        stream: &Stream,
        pairs: &Pairs<K, V>,
        capacity: usize,
        options: &Options,
    ) -> Result<(), Error> {
        // Another seed than the one that may have failed.
        let options = options.clone().seed(self.options.seed.wrapping_add(self.rebuilds + 1));
        let buckets = buckets_for(capacity, &options)?;
        let built = build(stream, pairs.keys.as_slice(), pairs.values.as_slice(), buckets, &options)?;
        self.erased = DeviceValue::new(stream, 0)?;
        (self.words, self.map, self.placed) = (built.words, built.map, built.len);
        self.rebuilds += 1 + u64::from(built.failures);
        Ok(())
    }

    /// Builds the table anew, with room for `capacity` keys at its load factor, or for those that it has. Afterwards no slot
    /// is dead. Waits.
    ///
    /// # Errors
    /// As [`bulk_build`](Self::bulk_build); the table stays as it was then.
    pub fn rebuild(&mut self, stream: &Stream, capacity: usize) -> Result<(), Error> {
        let pairs = self.collect(stream, 0)?;
        self.build_anew(stream, &pairs, capacity.max(pairs.keys.len()), &self.options.clone())
    }

    /// Deletes keys; those that are not there are passed over. Does not wait.
    ///
    /// # Errors
    /// What a launch can give.
    pub fn delete<'a>(&mut self, stream: &Stream, keys: impl Into<DeviceSlice<'a, K>>) -> Result<(), Error> {
        let keys = keys.into();
        if keys.is_empty() {
            return Ok(());
        }
        let (table, keys) = (self.raw(stream)?, codes(stream, keys)?);
        let erased = self.erased.as_mut_slice().view_mut(stream)?;
        // SAFETY: the table is this one.
        unsafe { self.kernels().erase(stream, table, keys, erased) }
    }

    /// Inserts pairs and deletes keys in one call: a key that is in both is deleted. Waits.
    ///
    /// # Errors
    /// As [`insert`](Self::insert); nothing is deleted then.
    pub fn update<'a>(
        &mut self,
        stream: &Stream,
        insert_keys: impl Into<DeviceSlice<'a, K>>,
        insert_values: impl Into<DeviceSlice<'a, V>>,
        delete_keys: impl Into<DeviceSlice<'a, K>>,
    ) -> Result<(), Error> {
        self.insert(stream, insert_keys, insert_values)?;
        self.delete(stream, delete_keys)
    }

    /// Deletes all keys; the table keeps its slots. Waits.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]; what a launch can give. The table stays as it was then.
    pub fn clear(&mut self, stream: &Stream) -> Result<(), Error> {
        let nothing = Pairs::<K, V>::room(stream, 0)?;
        let buckets = self.map.hash.buckets;
        let built = build(stream, nothing.keys.as_slice(), nothing.values.as_slice(), buckets, &self.options)?;
        self.erased = DeviceValue::new(stream, 0)?;
        (self.words, self.map, self.placed) = (built.words, built.map, built.len);
        Ok(())
    }
}
