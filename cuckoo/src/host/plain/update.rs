//! The table of plain keys: updates.

use super::super::hasher::Hasher;
use super::PlainCuckoo;
use super::index::{Found, selected};
use bytemuck::Pod;
use gpu_dictionary::column::{expect_values, indices};
use gpu_dictionary::combine::Combined;
use gpu_dictionary::{Lookup, PlainKey, Upsertion};
use gpu_primitives::{DeviceSlice, DeviceVec, Error, Stream, permute};

/// How pairs get into the table.
enum Way {
    /// They are appended to the arrays. Found are their keys.
    Append(Found),
    /// The table is built anew, by this hash function.
    Rebuild(Hasher),
}

impl<K: PlainKey, V: Pod> PlainCuckoo<K, V> {
    /// Inserts pairs: keys, and as many values. Inserting a key that is already present replaces its value. If a key occurs
    /// more than once, the last pair wins. For zero-sized values, pass an empty slice. Waits.
    ///
    /// # Errors
    /// The errors of [`bulk_build`](Self::bulk_build) and of [`GpuCuckoo::insert`](crate::GpuCuckoo::insert). After an error
    /// the table holds the same pairs as before.
    pub fn insert<'a>(
        &mut self,
        stream: &Stream,
        pairs: (impl Into<DeviceSlice<'a, K>>, impl Into<DeviceSlice<'a, V>>),
    ) -> Result<(), Error> {
        let pairs: (DeviceSlice<'a, K>, _) = (pairs.0.into(), pairs.1);
        let _span = gpu_primitives::span!(stream, "plain_cuckoo::insert", pairs.0.len());
        let (keys, values) = (pairs.0, pairs.1.into());
        expect_values::<V>(keys.len(), values.len())?;
        stream.refuse_recording("an insertion")?;
        if keys.is_empty() {
            return Ok(());
        }
        match self.way_of(stream, keys)? {
            Way::Append(found) => self.append(stream, &found.hashes, (keys, values)),
            Way::Rebuild(hasher) => {
                let next = self.with_pairs(stream, (keys, values), hasher)?;
                self.replace(next);
                Ok(())
            }
        }
    }

    /// Deletes keys. Ignores absent keys. Waits.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], or any launch error. After an error the table is unchanged.
    pub fn delete<'a>(&mut self, stream: &Stream, keys: impl Into<DeviceSlice<'a, K>>) -> Result<(), Error> {
        let keys = keys.into();
        let _span = gpu_primitives::span!(stream, "plain_cuckoo::delete", keys.len());
        self.index.delete(stream, self.keys.values()?.into(), keys.into())
    }

    /// Deletes keys, and returns the values they had: [`lookup`](Self::lookup), then [`delete`](Self::delete). Each of several
    /// equal keys gets the value. Waits.
    ///
    /// ```
    /// use gpu_cuckoo::{Options, PlainCuckoo};
    /// use gpu_primitives::{Device, Error};
    ///
    /// let stream = Device::cpu().stream()?;
    /// let keys = stream.upload(&[[1u8, 1, 1], [2, 2, 2]])?;
    /// let mut table = PlainCuckoo::bulk_build(&stream, (&keys, &stream.upload(&[1u32, 2])?), Options::new())?;
    /// let removed = table.remove(&stream, &stream.upload(&[[2; 3], [3; 3]])?)?;
    /// assert_eq!(removed.to_vec(&stream)?, [Some(2), None]);
    /// assert_eq!(table.len(&stream)?, 1);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], or any launch error. After an error the table is unchanged.
    pub fn remove<'a>(&mut self, stream: &Stream, keys: impl Into<DeviceSlice<'a, K>>) -> Result<Lookup<V>, Error> {
        let keys = keys.into();
        let _span = gpu_primitives::span!(stream, "plain_cuckoo::remove", keys.len());
        let Found { hashes, present: Lookup { values: at, found } } = self.find(stream, keys)?;
        let values = self.values.where_found(stream, &at, &found)?;
        let gone = selected(stream, &hashes, &found)?;
        self.index.table.delete(stream, &gone)?;
        Ok(Lookup { values, found })
    }

    /// Inserts pairs and deletes keys in one call. If a key is in both, the deletion wins. Waits.
    ///
    /// If there are pairs and keys, this needs a temporary table of the pairs' hashes, to learn which of the keys are among them.
    ///
    /// ```
    /// use gpu_cuckoo::{Options, PlainCuckoo};
    /// use gpu_primitives::{Device, Error};
    ///
    /// let stream = Device::cpu().stream()?;
    /// let mut table = PlainCuckoo::<[u8; 3], u32>::new(&stream, Options::new())?;
    /// let pairs = (&stream.upload(&[[1; 3], [2; 3]])?, &stream.upload(&[1, 2])?);
    /// table.update(&stream, pairs, &stream.upload(&[[2; 3], [3; 3]])?)?;
    /// assert_eq!(table.contains(&stream, &stream.upload(&[[1; 3], [2; 3]])?)?.to_vec(&stream)?, [1, 0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`insert`](Self::insert). After an error the table holds the same pairs as before.
    pub fn update<'a>(
        &mut self,
        stream: &Stream,
        insert: (impl Into<DeviceSlice<'a, K>>, impl Into<DeviceSlice<'a, V>>),
        delete: impl Into<DeviceSlice<'a, K>>,
    ) -> Result<(), Error> {
        let (keys, values, delete): (DeviceSlice<'a, K>, _, _) = (insert.0.into(), insert.1.into(), delete.into());
        let _span = gpu_primitives::span!(stream, "plain_cuckoo::update", keys.len());
        expect_values::<V>(keys.len(), values.len())?;
        stream.refuse_recording("an update of a dictionary")?;
        if keys.is_empty() {
            return self.delete(stream, delete);
        }
        if delete.is_empty() {
            return self.insert(stream, (keys, values));
        }
        match self.way_of(stream, keys)? {
            Way::Append(Found { hashes, .. }) => {
                let (stored, inserted) = (self.keys.values()?.into(), (keys.into(), &hashes));
                let gone = self.index.hashes_of_present(stream, stored, delete.into(), Some(inserted))?;
                self.append(stream, &hashes, (keys, values))?;
                // Allocates nothing, and the insertion has loaded the kernel.
                self.index.table.delete(stream, &gone)
            }
            Way::Rebuild(hasher) => {
                let mut next = self.with_pairs(stream, (keys, values), hasher)?;
                next.delete(stream, delete)?;
                self.replace(next);
                Ok(())
            }
        }
    }

    /// Inserts pairs, and combines the value of a key that is already present with the new one: `combine(present, new)`. If a key
    /// occurs more than once, its values are combined in the order of the pairs. Waits.
    ///
    /// The operation must be associative; one that is not gives some values. An operation takes elements of up to 32 bytes, so
    /// the values may not be longer. The pairs are sorted by their hashes, which costs more than an insertion.
    ///
    /// ```
    /// use gpu_cuckoo::{Options, PlainCuckoo};
    /// use gpu_primitives::scan::Sum;
    /// use gpu_primitives::{Device, Error};
    ///
    /// // Counts pairs of letters.
    /// let stream = Device::cpu().stream()?;
    /// let mut counts = PlainCuckoo::<[u8; 2], u64>::new(&stream, Options::new())?;
    /// for words in [[*b"th", *b"he", *b"th"], [*b"he", *b"er", *b"th"]] {
    ///     counts.upsert(&stream, (&stream.upload(&words)?, &stream.upload(&[1; 3])?), Sum)?;
    /// }
    /// let asked = stream.upload(&[*b"th", *b"he", *b"er", *b"xx"])?;
    /// assert_eq!(counts.lookup(&stream, &asked)?.to_vec(&stream)?, [Some(3), Some(2), Some(1), None]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`insert`](Self::insert). After an error the table holds the same pairs as before.
    pub fn upsert<'a, M: Upsertion<V>>(
        &mut self,
        stream: &Stream,
        pairs: (impl Into<DeviceSlice<'a, K>>, impl Into<DeviceSlice<'a, V>>),
        operation: M,
    ) -> Result<(), Error> {
        let (keys, values): (DeviceSlice<'a, K>, DeviceSlice<'a, V>) = (pairs.0.into(), pairs.1.into());
        let _span = gpu_primitives::span!(stream, "plain_cuckoo::upsert", keys.len());
        if size_of::<V>() == 0 {
            return self.insert(stream, (keys, values));
        }
        expect_values::<V>(keys.len(), values.len())?;
        stream.refuse_recording("an insertion")?;
        if keys.is_empty() {
            return Ok(());
        }
        let Some(found) = self.index.find_to_insert(stream, self.keys.values()?.into(), keys.into())? else {
            // Finds a hash function that tells all keys apart.
            let hasher = self.with_pairs(stream, (keys, values), self.index.hasher.reseeded())?.index.hasher;
            let mut next = self.with_pairs(stream, (keys.slice(..0)?, values.slice(..0)?), hasher)?;
            next.upsert(stream, (keys, values), operation)?;
            self.replace(next);
            return Ok(());
        };
        let combined = self.values.combined(stream, &found.hashes, &found.present, values, operation)?;
        let Combined { ids: hashes, positions, values } = combined;
        let mut different = stream.uninit(positions.len())?;
        permute::gather(stream, keys, &positions, &mut different)?;
        let pairs = (different.as_slice(), values.as_slice());
        if self.is_to_be_compacted(stream, different.len())? {
            let next = self.with_pairs(stream, pairs, self.index.hasher)?;
            self.replace(next);
            return Ok(());
        }
        self.append(stream, &hashes, pairs)
    }

    /// Decides how pairs with these keys get into the table. Waits.
    fn way_of(&self, stream: &Stream, keys: DeviceSlice<'_, K>) -> Result<Way, Error> {
        let Some(found) = self.index.find_to_insert(stream, self.keys.values()?.into(), keys.into())? else {
            return Ok(Way::Rebuild(self.index.hasher.reseeded()));
        };
        let compacts = self.is_to_be_compacted(stream, keys.len())?;
        Ok(if compacts { Way::Rebuild(self.index.hasher) } else { Way::Append(found) })
    }

    /// Returns whether the arrays have no room for more pairs, but more than half of those in them are stale.
    fn is_to_be_compacted(&self, stream: &Stream, more: usize) -> Result<bool, Error> {
        self.keys.is_to_be_compacted(more, || self.len(stream))
    }

    /// Appends pairs to the arrays, and puts them into the table by the hashes of their keys. After an error the table holds the
    /// same pairs as before.
    fn append(
        &mut self,
        stream: &Stream,
        hashes: &DeviceVec<u64>,
        (keys, values): (DeviceSlice<'_, K>, DeviceSlice<'_, V>),
    ) -> Result<(), Error> {
        let all = (self.keys.with(stream, keys)?, self.values.with(stream, values)?);
        self.index.table.insert(stream, (hashes, &indices(stream, self.keys.len(), keys.len())?))?;
        (self.keys, self.values) = all;
        Ok(())
    }
}
