//! The table: updates.

use super::build::{Pairs, aligned, buckets_for, build, codes, full, read, write};
use super::launch::{RawPairs, SettleJob};
use super::options::{HIGHEST_LOAD, Options, WhenFull};
use super::table::{GpuCuckoo, expect_values};
use bytemuck::Pod;
use gpu_primitives::dictionary::Key;
use gpu_primitives::{DeviceSlice, DeviceValue, DeviceVec, Error, Stream};

/// The temporary buffers for placing pairs one by one.
struct SettleTools<K: Pod, V: Pod> {
    /// Room for the pairs that cannot be placed.
    orphans: Pairs<K, V>,
    /// The number of such pairs.
    unplaced: DeviceVec<u64>,
    /// One bit per bucket; all zero between calls.
    locks: DeviceVec<u32>,
}

impl<K: Key, V: Pod> GpuCuckoo<K, V> {
    /// Inserts pairs. Inserting a key that is already present replaces its value. If a key occurs more than once, the
    /// last pair wins. Waits.
    ///
    /// The keys are sorted to find equal ones. New keys take free slots, up to a load of 0.95. If there are not enough
    /// free slots, the table is rebuilt with more buckets, or the call fails, as the options say.
    ///
    /// ```
    /// use gpu_cuckoo::{GpuCuckoo, Options};
    /// use gpu_primitives::{Device, Error};
    ///
    /// let stream = Device::cpu().stream()?;
    /// let mut table = GpuCuckoo::<u32, u32>::new(&stream, 100, Options::new())?;
    /// table.insert(&stream, &stream.upload(&[1u32, 2, 1])?, &stream.upload(&[10u32, 20, 30])?)?;
    /// table.insert(&stream, &stream.upload(&[2u32])?, &stream.upload(&[40u32])?)?;
    /// assert_eq!(table.export(&stream)?.to_vec(&stream)?, [(1, 30), (2, 40)]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// - [`Error::LengthMismatch`] if there is not exactly one value per key; for zero-sized values, if `values` is not
    ///   empty.
    /// - [`Error::TableFull`] if there is no room and the table may not grow.
    /// - [`Error::OutOfMemory`].
    /// - Any launch error.
    ///
    /// After an error the table holds the same pairs as before.
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
        // Brings equal keys together, in their original order.
        let mut batch = Pairs::<K, V>::room(stream, keys.len())?;
        let aligned_values = aligned(stream, values)?;
        let given = RawPairs::of(stream, keys, aligned_values.as_slice())?;
        // SAFETY: `batch` has as many pairs, in separate memory.
        unsafe { self.kernels().sort(stream, given, batch.raw(stream)?, K::SIGN)? };
        let mut is_new = stream.uninit::<u8>(keys.len())?;
        let (table, sorted) = (self.raw(stream)?, codes(stream, batch.keys.as_slice())?);
        // SAFETY: the table is this one. The keys are sorted. There are as many flags as keys.
        unsafe { self.kernels().tell_new(stream, table, sorted, write(stream, is_new.as_mut_slice())?)? };
        let mut fresh = Pairs::<K, V>::room(stream, keys.len())?;
        // SAFETY: there are as many flags as pairs, and `fresh` has as much room.
        let mut count = unsafe { self.kernels().flagged(stream, batch.raw(stream)?, &is_new, fresh.raw(stream)?)? };
        let new = count.get(stream)?;
        let len = self.len(stream)? as u64;

        let most = (self.slots() as f64 * HIGHEST_LOAD) as u64;
        if len + new > most {
            if self.options.when_full == WhenFull::Refuse {
                return Err(full(len + new - most, len + new, self.slots()));
            }
            // The old pairs come first: of equal keys, the last one wins.
            let mut all = self.collect(stream, keys.len())?;
            all.put(stream, len as usize, keys, values)?;
            // At least twice the room, so a table that grows by many batches is not rebuilt for each of them.
            return self.build_anew(stream, &all, (len + new).max(2 * len) as usize, &self.options.clone());
        }
        if new > 0 {
            self.settle_or_undo(stream, &mut fresh, &mut count, new)?;
        }
        let (table, batch) = (self.raw_mut(stream)?, batch.raw(stream)?);
        // SAFETY: as above, and all keys are now in the table.
        unsafe { self.kernels().replace(stream, table, batch, read(stream, is_new.as_slice())?) }
    }

    /// Places the first `new` pairs, whose keys are distinct and not in the table. If some cannot be placed, rebuilds
    /// the table. If that fails, restores the previous contents.
    fn settle_or_undo(
        &mut self,
        stream: &Stream,
        fresh: &mut Pairs<K, V>,
        count: &mut DeviceValue<u64>,
        new: u64,
    ) -> Result<(), Error> {
        let mut tools = SettleTools {
            orphans: Pairs::<K, V>::room(stream, new as usize)?,
            unplaced: stream.uninit::<u64>(1)?,
            locks: stream.zeroed::<u32>((self.map.hash.buckets as usize).div_ceil(32))?,
        };
        let lost = self.settle(stream, fresh, (count, new), self.options.evictions, &mut tools)?;
        if lost == 0 {
            return Ok(());
        }
        let result = self.build_with(stream, &tools.orphans, lost, &self.options.clone());
        if result.is_err() {
            self.undo(stream, fresh, (count, new), tools, lost)?;
        }
        result
    }

    /// Places the first `count` pairs, whose keys are distinct and not in the table. Returns how many pairs were left
    /// without a slot: new pairs or displaced ones. They are now the first of the orphans. Waits; allocates nothing.
    fn settle(
        &mut self,
        stream: &Stream,
        pairs: &mut Pairs<K, V>,
        (count, len): (&DeviceValue<u64>, u64),
        limit: u32,
        tools: &mut SettleTools<K, V>,
    ) -> Result<usize, Error> {
        tools.unplaced.copy_from_host(stream, &[0])?;
        let job = SettleJob {
            pairs: pairs.raw(stream)?,
            count: read(stream, count.as_slice())?,
            table: self.raw_mut(stream)?,
            locks: write(stream, tools.locks.as_mut_slice())?,
            skip_first: false,
            limit,
            orphans: tools.orphans.raw(stream)?,
            unplaced: write(stream, tools.unplaced.as_mut_slice())?,
        };
        // SAFETY: the keys are new and distinct. There is a lock for every bucket. Each pair leaves at most one orphan.
        unsafe { self.kernels().settle(stream, job)? };
        let mut unplaced = [0];
        tools.unplaced.copy_to_host(stream, &mut unplaced)?;
        self.placed += len - unplaced[0];
        Ok(unplaced[0] as usize)
    }

    /// Rebuilds the table, together with the first `more` of other pairs.
    fn build_with(
        &mut self,
        stream: &Stream,
        others: &Pairs<K, V>,
        more: usize,
        options: &Options,
    ) -> Result<(), Error> {
        let mut all = self.collect(stream, more)?;
        let len = all.keys.len();
        let (keys, values) = others.first(more)?;
        all.put(stream, len - more, keys, values)?;
        let capacity = (self.slots() as f64 * self.options.load_factor) as usize;
        self.build_anew(stream, &all, capacity.max(len), options)
    }

    /// Removes the new keys, the first `new` of `fresh`, and puts back the pairs they displaced: those of the first
    /// `lost` orphans whose keys are not new.
    ///
    /// Allocates nothing on the device, except as a last resort: the cause may be a lack of memory.
    fn undo(
        &mut self,
        stream: &Stream,
        fresh: &mut Pairs<K, V>,
        (count, new): (&mut DeviceValue<u64>, u64),
        mut tools: SettleTools<K, V>,
        lost: usize,
    ) -> Result<(), Error> {
        // The returning pairs had slots before, and there is as much room again, so a high limit finds it. Each round
        // pairs the random choices with other keys.
        const PATIENCE: u32 = 1 << 16;
        const ROUNDS: u32 = 32;

        let fresh_keys = fresh.keys.slice(..new as usize)?;
        self.delete(stream, fresh_keys)?;
        // Sorted, because the batch was sorted.
        let fresh_codes: Vec<K::Code> = fresh_keys.to_vec(stream)?.into_iter().map(K::code).collect();
        let (keys, values) = tools.orphans.first(lost)?;
        let lost_pairs = keys.to_vec(stream)?.into_iter().zip(values.to_vec(stream)?);
        let (old_keys, old_values): (Vec<K>, Vec<V>) =
            lost_pairs.filter(|(key, _)| fresh_codes.binary_search(&key.code()).is_err()).unzip();
        let mut homeless = old_keys.len();
        tools.orphans.keys.slice_mut(..homeless)?.copy_from_host(stream, &old_keys)?;
        tools.orphans.values.slice_mut(..homeless)?.copy_from_host(stream, &old_values)?;
        for _ in 0..ROUNDS {
            if homeless == 0 {
                return Ok(());
            }
            std::mem::swap(fresh, &mut tools.orphans);
            count.as_mut_slice().copy_from_host(stream, &[homeless as u64])?;
            homeless = self.settle(stream, fresh, (count, homeless as u64), PATIENCE, &mut tools)?;
        }
        // Grow the table despite its options rather than lose a pair. This does allocate.
        let growing = self.options.clone().when_full(WhenFull::Grow);
        self.build_with(stream, &tools.orphans, homeless, &growing)
    }

    /// Replaces the table by a new one of these pairs, with room for `capacity` keys.
    fn build_anew(
        &mut self,
        stream: &Stream,
        pairs: &Pairs<K, V>,
        capacity: usize,
        options: &Options,
    ) -> Result<(), Error> {
        // A different seed: the current one may have failed.
        let options = options.clone().seed(self.options.seed.wrapping_add(self.rebuilds + 1));
        let buckets = buckets_for(capacity, &options)?;
        let built = build(stream, pairs.keys.as_slice(), pairs.values.as_slice(), buckets, &options)?;
        self.erased = DeviceValue::new(stream, 0)?;
        (self.words, self.map, self.placed) = (built.words, built.map, built.len);
        self.rebuilds += 1 + u64::from(built.failures);
        Ok(())
    }

    /// Rebuilds the table with room for `capacity` keys at its load factor, or for the keys it has if they are more.
    /// Afterwards no slot is dead. Waits.
    ///
    /// # Errors
    /// The errors of [`bulk_build`](Self::bulk_build). After an error the table is unchanged.
    pub fn rebuild(&mut self, stream: &Stream, capacity: usize) -> Result<(), Error> {
        let pairs = self.collect(stream, 0)?;
        self.build_anew(stream, &pairs, capacity.max(pairs.keys.len()), &self.options.clone())
    }

    /// Deletes keys. Ignores absent keys. Does not wait.
    ///
    /// # Errors
    /// Any launch error.
    pub fn delete<'a>(&mut self, stream: &Stream, keys: impl Into<DeviceSlice<'a, K>>) -> Result<(), Error> {
        let keys = keys.into();
        if keys.is_empty() {
            return Ok(());
        }
        let (table, keys) = (self.raw_mut(stream)?, codes(stream, keys)?);
        let erased = write(stream, self.erased.as_mut_slice())?;
        // SAFETY: the table is this one.
        unsafe { self.kernels().erase(stream, table, keys, erased) }
    }

    /// Inserts pairs and deletes keys in one call. If a key is in both, the deletion wins. Waits.
    ///
    /// # Errors
    /// The errors of [`insert`](Self::insert). After an error nothing is deleted.
    pub fn update<'a>(
        &mut self,
        stream: &Stream,
        insert: (impl Into<DeviceSlice<'a, K>>, impl Into<DeviceSlice<'a, V>>),
        delete: impl Into<DeviceSlice<'a, K>>,
    ) -> Result<(), Error> {
        let delete = delete.into();
        // Rejects unusable keys before anything is inserted.
        read(stream, delete)?;
        self.insert(stream, insert.0, insert.1)?;
        self.delete(stream, delete)
    }

    /// Deletes all keys. The table keeps its slots. Waits.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], or any launch error. After an error the table is unchanged.
    pub fn clear(&mut self, stream: &Stream) -> Result<(), Error> {
        let nothing = Pairs::<K, V>::room(stream, 0)?;
        let buckets = self.map.hash.buckets;
        let built = build(stream, nothing.keys.as_slice(), nothing.values.as_slice(), buckets, &self.options)?;
        self.erased = DeviceValue::new(stream, 0)?;
        (self.words, self.map, self.placed) = (built.words, built.map, built.len);
        Ok(())
    }
}
