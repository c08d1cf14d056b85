//! The table: updates.

use super::build::{Built, buckets_for, build, full, locks};
use super::options::{MAX_LOAD, Options, WhenFull};
use super::pairs::{Given, PairSlices, PairVec, sort_by_key};
use super::storage::PlaceJob;
use super::table::GpuCuckoo;
use bytemuck::Pod;
use gpu_dictionary::cast::bits;
use gpu_dictionary::{Key, Value};
use gpu_primitives::{DeviceSlice, DeviceValue, DeviceVec, Error, Stream, select};

/// New pairs: the first ones of `pairs`.
struct NewPairs<C: Pod, V: Pod> {
    pairs: PairVec<C, V>,
    /// Their number, on the device and on the host.
    count: DeviceValue<u64>,
    len: usize,
}

/// The temporary buffers for placing pairs one by one.
struct PlaceBuffers<C: Pod, V: Pod> {
    /// Room for the pairs that cannot be placed.
    leftovers: PairVec<C, V>,
    /// The number of such pairs.
    unplaced: DeviceVec<u64>,
    /// One bit per bucket; all zero between calls.
    locks: DeviceVec<u32>,
}

impl<K: Key, V: Value> GpuCuckoo<K, V> {
    /// Inserts pairs: keys, and as many values. Inserting a key that is already present replaces its value. If a key
    /// occurs more than once, the last pair wins. For zero-sized values, pass an empty slice. Waits.
    ///
    /// The keys are sorted to find equal ones. New keys take free slots, up to a load of 0.95. If there are not enough
    /// free slots, the table is rebuilt with more buckets, or the call fails, as the options say.
    ///
    /// ```
    /// use gpu_cuckoo::{GpuCuckoo, Options};
    /// use gpu_primitives::{Device, Error};
    ///
    /// let stream = Device::cpu().stream()?;
    /// let mut table = GpuCuckoo::<u32, u32>::new(&stream, Options::new().capacity(100))?;
    /// table.insert(&stream, (&stream.upload(&[1u32, 2, 1])?, &stream.upload(&[10u32, 20, 30])?))?;
    /// table.insert(&stream, (&stream.upload(&[2u32])?, &stream.upload(&[40u32])?))?;
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
        pairs: (impl Into<DeviceSlice<'a, K>>, impl Into<DeviceSlice<'a, V>>),
    ) -> Result<(), Error> {
        let given = Given::<K, V>::new(stream, pairs.0.into(), pairs.1.into())?;
        let given = given.slices();
        let batch_len = given.0.len();
        if batch_len == 0 {
            return Ok(());
        }
        // Makes equal keys adjacent, in their original order.
        let mut batch = PairVec::uninit(stream, batch_len)?;
        sort_by_key::<K, _>(stream, given, &mut batch)?;
        let is_new = self.storage.mark_absent(stream, batch.keys.as_slice())?;
        let mut fresh = PairVec::uninit(stream, batch_len)?;
        let to = (&mut fresh.keys, &mut fresh.values);
        let count = select::flagged_pairs(stream, batch.slices(), &is_new, to)?;
        let new = count.get(stream)? as usize;
        let len = self.len(stream)?;

        let slots = self.storage.slots();
        let most = (slots as f64 * MAX_LOAD) as usize;
        if len + new > most {
            if self.options.when_full == WhenFull::Refuse {
                return Err(full((len + new - most) as u64, (len + new) as u64, slots));
            }
            // The old pairs come first: of equal keys, the last one wins.
            let mut all = self.collect(stream, batch_len)?;
            all.copy_from(stream, len, given)?;
            // At least twice the room, so a table that grows by many batches is not rebuilt for each of them.
            return self.build_anew(stream, all.slices(), (len + new).max(2 * len), self.options.clone());
        }
        if new > 0 {
            self.place_or_undo(stream, NewPairs { pairs: fresh, count, len: new })?;
        }
        // Now all keys are in the table.
        self.storage.replace(stream, batch.slices(), &is_new)
    }

    /// Places pairs whose keys are distinct and not in the table. If some cannot be placed, rebuilds the table. If that
    /// fails, restores the previous contents.
    fn place_or_undo(&mut self, stream: &Stream, new: NewPairs<K::Code, V::Carrier>) -> Result<(), Error> {
        let mut buffers = PlaceBuffers {
            leftovers: PairVec::uninit(stream, new.len)?,
            unplaced: stream.uninit(1)?,
            locks: locks(stream, self.storage.buckets())?,
        };
        let unplaced = self.place(stream, &new, self.options.evictions, &mut buffers)?;
        if unplaced == 0 {
            return Ok(());
        }
        let result = self.build_with(stream, buffers.leftovers.first(unplaced)?, self.options.clone());
        if result.is_err() {
            self.undo(stream, new, buffers, unplaced)?;
        }
        result
    }

    /// Places pairs whose keys are distinct and not in the table. Returns how many pairs are left without a slot: new
    /// pairs or displaced ones. They are now the first of the leftovers. Waits; allocates nothing.
    fn place(
        &mut self,
        stream: &Stream,
        new: &NewPairs<K::Code, V::Carrier>,
        limit: u32,
        buffers: &mut PlaceBuffers<K::Code, V::Carrier>,
    ) -> Result<usize, Error> {
        buffers.unplaced.copy_from_host(stream, &[0])?;
        let job = PlaceJob {
            pairs: new.pairs.first(new.len)?,
            count: new.count.as_slice(),
            skip_first: false,
            limit,
            locks: &mut buffers.locks,
            leftovers: &mut buffers.leftovers,
            unplaced: buffers.unplaced.as_mut_slice(),
        };
        // SAFETY: the count is the number of these pairs. The keys are new and distinct. There is a lock for every
        // bucket. Each pair leaves at most one pair over, and there is room for them.
        unsafe { self.storage.place(stream, job)? };
        let mut unplaced = [0];
        buffers.unplaced.copy_to_host(stream, &mut unplaced)?;
        self.placed += new.len as u64 - unplaced[0];
        Ok(unplaced[0] as usize)
    }

    /// Rebuilds the table together with other pairs.
    fn build_with(
        &mut self,
        stream: &Stream,
        others: PairSlices<'_, K::Code, V::Carrier>,
        options: Options,
    ) -> Result<(), Error> {
        let more = others.0.len();
        let mut all = self.collect(stream, more)?;
        let len = all.len();
        all.copy_from(stream, len - more, others)?;
        let capacity = (self.storage.slots() as f64 * self.options.load_factor) as usize;
        self.build_anew(stream, all.slices(), capacity.max(len), options)
    }

    /// Removes the new keys, and puts back the pairs they displaced: those of the first `unplaced` leftovers whose keys
    /// are not new.
    ///
    /// Allocates nothing on the device, except as a last resort: the cause may be a lack of memory.
    fn undo(
        &mut self,
        stream: &Stream,
        mut new: NewPairs<K::Code, V::Carrier>,
        mut buffers: PlaceBuffers<K::Code, V::Carrier>,
        unplaced: usize,
    ) -> Result<(), Error> {
        // The displaced pairs had slots before, and there is as much room again, so a high limit finds it. Each round
        // combines the random choices with other keys.
        const LIMIT: u32 = 1 << 16;
        const ROUNDS: u32 = 32;

        let new_keys = new.pairs.keys.slice(..new.len)?;
        self.storage.erase(stream, new_keys, &mut self.erased)?;
        let mut new_keys = new_keys.to_vec(stream)?;
        new_keys.sort_unstable();
        let (keys, values) = buffers.leftovers.first(unplaced)?;
        let leftovers = keys.to_vec(stream)?.into_iter().zip(values.to_vec(stream)?);
        let (keys, values): (Vec<_>, Vec<_>) =
            leftovers.filter(|(key, _)| new_keys.binary_search(key).is_err()).unzip();
        let mut displaced = keys.len();
        buffers.leftovers.keys.slice_mut(..displaced)?.copy_from_host(stream, &keys)?;
        buffers.leftovers.values.slice_mut(..displaced)?.copy_from_host(stream, &values)?;
        for _ in 0..ROUNDS {
            if displaced == 0 {
                return Ok(());
            }
            std::mem::swap(&mut new.pairs, &mut buffers.leftovers);
            new.count.as_mut_slice().copy_from_host(stream, &[displaced as u64])?;
            new.len = displaced;
            displaced = self.place(stream, &new, LIMIT, &mut buffers)?;
        }
        // Grow the table despite its options rather than lose a pair. This does allocate.
        let growing = self.options.clone().when_full(WhenFull::Grow);
        self.build_with(stream, buffers.leftovers.first(displaced)?, growing)
    }

    /// Replaces the table by a new one of these pairs, with room for `capacity` keys.
    fn build_anew(
        &mut self,
        stream: &Stream,
        pairs: PairSlices<'_, K::Code, V::Carrier>,
        capacity: usize,
        options: Options,
    ) -> Result<(), Error> {
        // A different seed: the current one may have failed.
        let options = options.seed(self.options.seed.wrapping_add(self.rebuilds + 1));
        let built = build(stream, pairs, buckets_for(capacity, &options)?, &options)?;
        let failures = u64::from(built.failures);
        self.install(stream, built)?;
        self.rebuilds += 1 + failures;
        Ok(())
    }

    /// Replaces the contents of the table. After an error the table is unchanged.
    fn install(&mut self, stream: &Stream, built: Built<K::Code, V::Carrier>) -> Result<(), Error> {
        self.erased = DeviceValue::new(stream, 0)?;
        (self.storage, self.placed) = (built.storage, built.len);
        Ok(())
    }

    /// Rebuilds the table with room for `capacity` keys at its load factor, or for the keys it has if they are more.
    /// Afterwards no slot is dead. Waits.
    ///
    /// # Errors
    /// The errors of [`bulk_build`](Self::bulk_build). After an error the table is unchanged.
    pub fn rebuild(&mut self, stream: &Stream, capacity: usize) -> Result<(), Error> {
        let pairs = self.collect(stream, 0)?;
        self.build_anew(stream, pairs.slices(), capacity.max(pairs.len()), self.options.clone())
    }

    /// Deletes keys. Ignores absent keys. Does not wait.
    ///
    /// # Errors
    /// Any launch error.
    pub fn delete<'a>(&mut self, stream: &Stream, keys: impl Into<DeviceSlice<'a, K>>) -> Result<(), Error> {
        self.storage.erase(stream, bits(keys.into()), &mut self.erased)
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
        // Rejects keys of another device before anything is inserted.
        delete.view(stream).map(drop)?;
        self.insert(stream, insert)?;
        self.delete(stream, delete)
    }

    /// Deletes all keys. The table keeps its slots. Waits.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], or any launch error. After an error the table is unchanged.
    pub fn clear(&mut self, stream: &Stream) -> Result<(), Error> {
        let none = PairVec::uninit(stream, 0)?;
        let built = build(stream, none.slices(), self.storage.buckets(), &self.options)?;
        self.install(stream, built)
    }
}
