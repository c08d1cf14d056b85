//! The table of plain keys: queries.

use super::PlainCuckoo;
use bytemuck::Pod;
use gpu_dictionary::{self as dictionary, Contents, Key, Lookup, PlainKey};
use gpu_primitives::{DeviceSlice, DeviceVec, Error, Stream, sort};

impl<K: PlainKey, V: Pod> PlainCuckoo<K, V> {
    /// Looks up the values of keys. Does not wait.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], or any launch error.
    pub fn lookup<'a>(&self, stream: &Stream, keys: impl Into<DeviceSlice<'a, K>>) -> Result<Lookup<V>, Error> {
        let keys = keys.into();
        let _span = gpu_primitives::span!(stream, "plain_cuckoo::lookup", keys.len());
        let Lookup { values: at, found } = self.find(stream, keys)?.present;
        Ok(Lookup { values: self.values.where_found(stream, &at, &found)?, found })
    }

    /// Returns 1 for each key that is present and 0 for each that is absent. Does not wait.
    ///
    /// # Errors
    /// The errors of [`lookup`](Self::lookup).
    pub fn contains<'a>(&self, stream: &Stream, keys: impl Into<DeviceSlice<'a, K>>) -> Result<DeviceVec<u8>, Error> {
        let keys = keys.into();
        let _span = gpu_primitives::span!(stream, "plain_cuckoo::contains", keys.len());
        Ok(self.find(stream, keys)?.present.found)
    }

    /// Returns the number of keys. Waits.
    ///
    /// # Errors
    /// Any error of a copy to the host.
    pub fn len(&self, stream: &Stream) -> Result<usize, Error> {
        self.index.table.len(stream)
    }

    /// Returns whether the table has no keys. Waits.
    ///
    /// # Errors
    /// The errors of [`len`](Self::len).
    pub fn is_empty(&self, stream: &Stream) -> Result<bool, Error> {
        self.index.table.is_empty(stream)
    }

    /// Returns all pairs, in any order: the keys, and as many values, or none if they are zero-sized. Waits for their
    /// number. If the keys have an order, see [`export`](Self::export).
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], or any launch error.
    pub fn pairs(&self, stream: &Stream) -> Result<(DeviceVec<K>, DeviceVec<V>), Error> {
        let Contents { values: live, .. } = self.index.table.export(stream)?;
        Ok((self.keys.at(stream, &live)?, self.values.at(stream, &live)?))
    }

    /// Returns statistics of the table. Waits for the number of keys.
    ///
    /// # Errors
    /// The errors of [`len`](Self::len).
    pub fn stats(&self, stream: &Stream) -> Result<dictionary::Stats, Error> {
        let stats = self.index.table.stats(stream)?;
        let bytes = stats.bytes + self.keys.bytes() + self.values.bytes();
        Ok(dictionary::Stats { resident: self.keys.len(), live: Some(stats.len), bytes })
    }
}

/// Keys that have an order.
impl<K: PlainKey + Key, V: Pod> PlainCuckoo<K, V> {
    /// Returns all pairs in key order. Waits for the number of keys. Takes keys that have an order; for others there is
    /// [`pairs`](Self::pairs).
    ///
    /// ```
    /// use gpu_cuckoo::{Options, PlainCuckoo};
    /// use gpu_primitives::{Device, Error};
    ///
    /// let stream = Device::cpu().stream()?;
    /// let (keys, values) = (stream.upload(&[7u128, -5i128 as u128, 3])?, stream.upload(&[[1u8; 3], [2; 3], [3; 3]])?);
    /// let table = PlainCuckoo::bulk_build(&stream, (&keys, &values), Options::new())?;
    /// assert_eq!(table.export(&stream)?.to_vec(&stream)?[..2], [(3, [3; 3]), (7, [1; 3])]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// Arrays of bytes have none:
    ///
    /// ```compile_fail,E0599
    /// # use gpu_cuckoo::{Options, PlainCuckoo};
    /// # use gpu_primitives::{Device, Error};
    /// # let stream = Device::cpu().stream()?;
    /// let table = PlainCuckoo::<[u8; 5], u32>::new(&stream, Options::new())?;
    /// table.export(&stream)?;
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], or any launch error.
    pub fn export(&self, stream: &Stream) -> Result<Contents<K, V>, Error> {
        let Contents { values: live, .. } = self.index.table.export(stream)?;
        let unsorted = self.keys.at(stream, &live)?;
        let (mut keys, mut order) = (stream.uninit(live.len())?, stream.uninit(live.len())?);
        sort::pairs(stream, (&unsorted, &live), (&mut keys, &mut order), sort::Options::new())?;
        Ok(Contents { keys, values: self.values.at(stream, &order)? })
    }

    /// Returns all pairs in key order, on the host. Waits.
    ///
    /// # Errors
    /// The errors of [`export`](Self::export).
    pub fn iter(&self, stream: &Stream) -> Result<impl Iterator<Item = (K, V)> + use<K, V>, Error> {
        Ok(self.export(stream)?.to_vec(stream)?.into_iter())
    }

    /// Returns all keys in order. Waits for their number.
    ///
    /// # Errors
    /// The errors of [`export`](Self::export).
    pub fn keys(&self, stream: &Stream) -> Result<DeviceVec<K>, Error> {
        Ok(self.export(stream)?.keys)
    }

    /// Returns all values in the order of their keys: as many as [`keys`](Self::keys), or none if they are zero-sized. Waits
    /// for their number.
    ///
    /// # Errors
    /// The errors of [`export`](Self::export).
    pub fn values(&self, stream: &Stream) -> Result<DeviceVec<V>, Error> {
        Ok(self.export(stream)?.values)
    }

    /// Deletes all pairs and returns them in key order. Waits.
    ///
    /// # Errors
    /// The errors of [`export`](Self::export) and of [`clear`](Self::clear). After an error the table is unchanged.
    pub fn drain(&mut self, stream: &Stream) -> Result<Contents<K, V>, Error> {
        let contents = self.export(stream)?;
        self.clear(stream)?;
        Ok(contents)
    }
}
