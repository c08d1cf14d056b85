//! The table: deletion, rebuilding, and mixed updates.

use super::build::{Built, buckets_for, build};
use super::options::Options;
use super::pairs::{PairSlices, PairVec, Sizes, typed, typed_mut};
use super::storage::{probe_blocks, with_table};
use super::table::{GpuCuckoo, RawTable, of_caller};
use super::work::Work;
use crate::device::{Erase, Marks, Sweep, Take};
use gpu_dictionary::{Lookup, Value, WordKey as Key};
use gpu_primitives::lowered::{AnySlice, AnyVec};
use gpu_primitives::{DeviceSlice, DeviceValue, DeviceVec, Error, Stream};

impl<K: Key, V: Value> GpuCuckoo<K, V> {
    /// Rebuilds the table with room for `capacity` keys at its load factor, or for the keys it has if they are more.
    /// Afterwards no slot is dead. Waits.
    ///
    /// # Errors
    /// The errors of [`bulk_build`](Self::bulk_build). After an error the table is unchanged.
    pub fn rebuild(&mut self, stream: &Stream, capacity: usize) -> Result<(), Error> {
        self.raw.rebuild(stream, capacity)
    }

    /// Deletes keys. Ignores absent keys. Does not wait.
    ///
    /// # Errors
    /// Any launch error.
    pub fn delete<'a>(&mut self, stream: &Stream, keys: impl Into<DeviceSlice<'a, K>>) -> Result<(), Error> {
        self.raw.delete(stream, keys.into().into())
    }

    /// Deletes keys, and returns the values they had: [`lookup`](Self::lookup), then [`delete`](Self::delete). Each of
    /// several equal keys gets the value. Does not wait. Many keys at once are deleted in the order of their slots, which is
    /// faster.
    ///
    /// ```
    /// use gpu_cuckoo::{GpuCuckoo, Options};
    /// use gpu_primitives::{Device, Error};
    ///
    /// let stream = Device::cpu().stream()?;
    /// let keys = stream.upload(&[1u32, 2, 3])?;
    /// let mut table = GpuCuckoo::bulk_build(&stream, (&keys, &keys), Options::new())?;
    /// let removed = table.remove(&stream, &stream.upload(&[3, 4])?)?;
    /// assert_eq!(removed.to_vec(&stream)?, [Some(3), None]);
    /// assert_eq!(table.len(&stream)?, 2);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] for the results and for 4 bytes per bucket, or any launch error. After an error the table is
    /// unchanged.
    pub fn remove<'a>(&mut self, stream: &Stream, keys: impl Into<DeviceSlice<'a, K>>) -> Result<Lookup<V>, Error> {
        let (values, found) = self.raw.remove(stream, keys.into().into())?;
        Ok(Lookup { values: values.into_typed(), found })
    }

    /// Inserts pairs and deletes keys in one call. If a key is in both, the deletion wins. Waits.
    ///
    /// # Errors
    /// The errors of [`insert`](Self::insert). After an error the table holds the same pairs as before.
    pub fn update<'a>(
        &mut self,
        stream: &Stream,
        insert: (impl Into<DeviceSlice<'a, K>>, impl Into<DeviceSlice<'a, V>>),
        delete: impl Into<DeviceSlice<'a, K>>,
    ) -> Result<(), Error> {
        self.raw.update(stream, of_caller(insert), delete.into().into())
    }

    /// Deletes all keys. The table keeps its slots. Waits.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], or any launch error. After an error the table is unchanged.
    pub fn clear(&mut self, stream: &Stream) -> Result<(), Error> {
        self.raw.clear(stream)
    }
}

impl RawTable {
    /// Replaces the table by a new one of these pairs, with room for `capacity` keys.
    pub(super) fn build_anew(
        &mut self,
        stream: &Stream,
        pairs: PairSlices<'_>,
        capacity: usize,
        options: Options,
    ) -> Result<(), Error> {
        // A different seed: the current one may have failed.
        let options = options.seed(self.options.any_seed().wrapping_add(self.rebuilds + 1));
        let built = build(stream, pairs, buckets_for(capacity, &options)?, &options)?;
        let failures = u64::from(built.failures);
        self.install(stream, built)?;
        self.rebuilds += 1 + failures;
        Ok(())
    }

    /// Replaces the contents of the table. After an error the table is unchanged.
    pub(super) fn install(&mut self, stream: &Stream, built: Built) -> Result<(), Error> {
        self.erased = DeviceValue::new(stream, 0)?;
        (self.storage, self.placed, self.known_erased, self.additions) = (built.storage, built.len, 0, None);
        Ok(())
    }

    pub(super) fn rebuild(&mut self, stream: &Stream, capacity: usize) -> Result<(), Error> {
        let pairs = self.collect(stream, 0)?;
        self.build_anew(stream, pairs.slices(), capacity.max(pairs.len()), self.options.clone())?;
        self.work = None;
        Ok(())
    }

    fn delete(&mut self, stream: &Stream, keys: AnySlice<'_>) -> Result<(), Error> {
        let _span = gpu_primitives::span!(stream, "cuckoo::delete", keys.len());
        self.erase(stream, keys)
    }

    /// Deletes keys, and counts those that were present as erased. Does not wait.
    pub(super) fn erase(&mut self, stream: &Stream, keys: AnySlice<'_>) -> Result<(), Error> {
        if keys.is_empty() {
            return Ok(());
        }
        let mut erased = self.erased.as_mut_slice();
        with_table!(self.storage => C, V, {
            let (table, gone) = (self.storage.view_mut::<C, V, WIDTH>(stream)?, typed::<C>(keys));
            let kernel = Erase::new(table, gone.view(stream)?, erased.view_mut(stream)?);
            // SAFETY: there is a thread per key.
            unsafe { stream.launch(kernel, probe_blocks(keys.len())) }
        })
    }

    fn remove(&mut self, stream: &Stream, keys: AnySlice<'_>) -> Result<(AnyVec, DeviceVec<u8>), Error> {
        let _span = gpu_primitives::span!(stream, "cuckoo::remove", keys.len());
        // Many keys are deleted in the order of the buckets. A recording cannot do so: it would repeat the number of its batch.
        let is_recording = stream.refuse_recording("a removal").is_err();
        if keys.len() >= self.storage.buckets() as usize && !is_recording {
            let mut work = self.take_work(stream)?;
            let removed = self.take(stream, &mut work, keys)?;
            self.keep_work(stream, work);
            return Ok(removed);
        }
        let found = self.lookup(stream, keys)?;
        self.delete(stream, keys)?;
        Ok(found)
    }

    /// Looks up keys, and deletes those that are present. Returns the values, and 1 or 0 for each key. Counts the deleted
    /// keys as erased. Does not wait.
    fn take(&mut self, stream: &Stream, work: &mut Work, keys: AnySlice<'_>) -> Result<(AnyVec, DeviceVec<u8>), Error> {
        work.prepare_marks(stream, self.storage.buckets())?;
        let Sizes { value, .. } = self.storage.sizes();
        let mut values = AnyVec::uninit(stream, value, if value == 0 { 0 } else { keys.len() })?;
        let mut found = stream.uninit(keys.len())?;
        if keys.is_empty() {
            return Ok((values, found));
        }
        let (marks, batch, mut erased) = (&mut work.marks, work.batches, self.erased.as_mut_slice());
        with_table!(self.storage => C, V, {
            let mut written = typed_mut::<V>(&mut values);
            let take = Take::new(
                self.storage.view::<C, V, WIDTH>(stream)?,
                Marks::view(stream, marks, batch, false)?,
                typed::<C>(keys).view(stream)?,
                written.view_mut(stream)?,
                found.view_mut(stream)?,
            );
            // SAFETY: there is a thread per key, and there are as many results, or no values if they are zero-sized. There is a
            // mark for every bucket, and none is of this batch.
            unsafe { stream.launch(take, probe_blocks(keys.len()))? };
            let (slots, table) = (self.storage.slots() as usize, self.storage.view_mut::<C, V, WIDTH>(stream)?);
            let sweep = Sweep::new(table, Marks::view(stream, marks, batch, false)?, erased.view_mut(stream)?);
            // SAFETY: there is a thread per slot. The marks are those of keys that were found.
            unsafe { stream.launch(sweep, probe_blocks(slots))? };
        });
        Ok((values, found))
    }

    fn update(&mut self, stream: &Stream, insert: PairSlices<'_>, delete: AnySlice<'_>) -> Result<(), Error> {
        let _span = gpu_primitives::span!(stream, "cuckoo::update", insert.0.len());
        // Rejects keys of another device before anything is inserted.
        delete.bytes().view(stream).map(drop)?;
        self.insert(stream, insert)?;
        // Cannot fail for lack of memory: if anything was inserted, the kernel is loaded.
        self.delete(stream, delete)
    }

    fn clear(&mut self, stream: &Stream) -> Result<(), Error> {
        stream.refuse_recording("an update of a dictionary")?;
        let none = PairVec::uninit(stream, self.storage.sizes(), 0)?;
        let built = build(stream, none.slices(), self.storage.buckets(), &self.options)?;
        self.install(stream, built)?;
        self.work = None;
        Ok(())
    }
}
