//! The table of the indices of pairs, by the hashes of their keys.

use super::super::hasher::{Hasher, verify};
use super::super::options::Options;
use super::super::table::GpuCuckoo;
use super::NAME;
use gpu_dictionary::Lookup;
use gpu_dictionary::column::indices;
use gpu_primitives::lowered::AnySlice;
use gpu_primitives::operator::map;
use gpu_primitives::{DeviceVec, Error, Stream, select, transform};

/// Where the pair with each hash is. Its code is compiled once, with this crate: it knows keys by their size alone.
#[derive(Debug)]
pub struct Index {
    pub table: GpuCuckoo<u64, u32>,
    pub hasher: Hasher,
}

/// What is known of some keys.
pub struct Found {
    pub hashes: DeviceVec<u64>,
    /// Where the pair of each key is that is present.
    pub present: Lookup<u32>,
}

/// Pairs that an update inserts: the keys and their hashes.
pub type Inserted<'a> = (AnySlice<'a>, &'a DeviceVec<u64>);

impl Index {
    /// Finds keys. Does not wait.
    pub fn find(&self, stream: &Stream, stored: AnySlice<'_>, keys: AnySlice<'_>) -> Result<Found, Error> {
        self.find_hashes(stream, stored, keys, self.hasher.hash(stream, keys)?, &mut stream.zeroed(1)?)
    }

    /// Finds keys by their hashes. Adds the number of keys whose hash belongs to another key to `different`, one element. Does
    /// not wait.
    fn find_hashes(
        &self,
        stream: &Stream,
        stored: AnySlice<'_>,
        keys: AnySlice<'_>,
        hashes: DeviceVec<u64>,
        different: &mut DeviceVec<u64>,
    ) -> Result<Found, Error> {
        let Lookup { values, mut found } = self.table.lookup(stream, &hashes)?;
        // SAFETY: the indices in the table are those of keys in the array.
        unsafe { verify(stream, stored, keys, &values, &mut found, different)? };
        Ok(Found { hashes, present: Lookup { values, found } })
    }

    /// Finds keys that are to be inserted. Returns `None` if two different keys would have the same hash. Waits.
    pub fn find_to_insert(
        &self,
        stream: &Stream,
        stored: AnySlice<'_>,
        keys: AnySlice<'_>,
    ) -> Result<Option<Found>, Error> {
        let hashes = self.hasher.hash(stream, keys)?;
        let mut clashes = stream.zeroed(1)?;
        self.hasher.find_clashes(stream, keys, &hashes, &mut clashes)?;
        let found = self.find_hashes(stream, stored, keys, hashes, &mut clashes)?;
        Ok((clashes.to_vec(stream)? == [0]).then_some(found))
    }

    /// Returns the hashes of the keys that are present, or will be after an insertion. An absent key may have the hash of a
    /// present one: its hash is not among them. Waits.
    pub fn hashes_of_present(
        &self,
        stream: &Stream,
        stored: AnySlice<'_>,
        keys: AnySlice<'_>,
        inserted: Option<Inserted<'_>>,
    ) -> Result<DeviceVec<u64>, Error> {
        let Found { hashes, present } = self.find(stream, stored, keys)?;
        let mut found = present.found;
        if let Some((new_keys, new_hashes)) = inserted {
            let pairs = (new_hashes, &indices(stream, 0, new_keys.len())?);
            let new = GpuCuckoo::<u64, u32>::bulk_build(stream, pairs, Options::new())?;
            let Lookup { values, found: mut found_in_new } = new.lookup(stream, &hashes)?;
            // SAFETY: the indices in this table are those of the new keys.
            unsafe { verify(stream, new_keys, keys, &values, &mut found_in_new, &mut stream.zeroed(1)?)? };
            let mut either = stream.uninit(found.len())?;
            transform::map2(stream, &found, &found_in_new, &mut either, map!(|a: u8, b: u8| -> u8 { a | b }))?;
            found = either;
        }
        selected(stream, &hashes, &found)
    }

    /// Deletes keys. Waits.
    pub fn delete(&mut self, stream: &Stream, stored: AnySlice<'_>, keys: AnySlice<'_>) -> Result<(), Error> {
        let present = self.hashes_of_present(stream, stored, keys, None)?;
        self.table.delete(stream, &present)
    }

    /// Returns the index of these keys, with the options of this one, by this hash function, or else by the first random one that
    /// tells all of them apart. Waits.
    pub fn of_keys(&self, stream: &Stream, keys: AnySlice<'_>, mut hasher: Hasher) -> Result<Self, Error> {
        /// If hashes had few bits, many functions would fail.
        const ATTEMPTS: u32 = 64;

        let mut found = 0;
        for _ in 0..ATTEMPTS {
            let hashes = hasher.hash(stream, keys)?;
            let mut clashes = stream.zeroed(1)?;
            hasher.find_clashes(stream, keys, &hashes, &mut clashes)?;
            found = clashes.to_vec(stream)?[0];
            if found == 0 {
                let (pairs, options) = ((&hashes, &indices(stream, 0, keys.len())?), self.table.raw.options.clone());
                return Ok(Self { table: GpuCuckoo::bulk_build(stream, pairs, options)?, hasher });
            }
            hasher = hasher.reseeded();
        }
        let slots = self.table.stats(stream)?.slots as u64;
        Err(Error::TableFull { what: NAME, unplaced: found, keys: keys.len() as u64, slots })
    }
}

/// Returns the hashes whose flag is not 0. Waits for their number.
pub fn selected(stream: &Stream, hashes: &DeviceVec<u64>, flags: &DeviceVec<u8>) -> Result<DeviceVec<u64>, Error> {
    let mut some = stream.uninit(hashes.len())?;
    let count = select::flagged(stream, hashes, flags, &mut some)?.get(stream)?;
    some.truncate(count as usize);
    Ok(some)
}
