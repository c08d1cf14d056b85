//! Values of any size.

mod methods;

use super::checkpoint::{Disk, History, recover_whole, write_whole};
use super::column::{Column, expect_values, indices};
use super::combine::Combined;
use super::file::{Format, Source, write_array, write_section};
use crate::{
    Contents, Dictionary, DictionaryOptions, Durable, Lookup, Neighbour, Ordered, Ranges, Stats, Updatable, Upsertable,
    Upsertion, values_for,
};
use bytemuck::Pod;
use core::fmt::{self, Debug, Formatter};
use gpu_primitives::monoid::Monoid;
use gpu_primitives::{DeviceSlice, DeviceVec, Error, Stream, permute};
use std::io::{Read, Write};

/// A dictionary with values of any size: plain data from 0 bytes to some kilobytes.
///
/// It keeps the values in one array, where they stay, and their indices in a dictionary `D`. So an update moves each value
/// once, whatever `D` does with its pairs later, and an answer reads each value once, at a random place. A value that is
/// replaced or deleted keeps its place until the array is full; then what is left is moved together, if that is less than
/// half. [`compact`](Self::compact) does so at once.
///
/// Cost for a value of `S` bytes, in addition to a `D` with values of 4 bytes: an update writes `S` bytes, and `2 * S` more
/// when the array grows, which doubles it; an answer reads `S` bytes in 32-byte sectors, and writes them. The array takes up
/// to twice the memory of its values.
///
/// # Examples
/// ```
/// # // The dictionaries are in crates that depend on this one.
/// use gpu_dictionary::{Dictionary, LargeValues, Updatable};
/// use gpu_primitives::{Error, Stream};
///
/// type Embedding = [f32; 96];
///
/// /// Works with `GpuLsm<u64, u32>`, `GpuSortedArray<u64, u32>` and `GpuCuckoo<u64, u32>`.
/// fn store<D: Updatable<Key = u64, Value = u32>>(stream: &Stream) -> Result<(), Error> {
///     let mut embeddings = LargeValues::<D, Embedding>::new(stream, D::Options::default())?;
///     let (keys, values) = (stream.upload(&[7, 3])?, stream.upload(&[[0.5; 96], [2.0; 96]])?);
///     embeddings.insert(stream, (&keys, &values))?;
///     let found = embeddings.lookup(stream, &stream.upload(&[3, 4])?)?.to_vec(stream)?;
///     assert_eq!(found, [Some([2.0; 96]), None]);
///     Ok(())
/// }
/// ```
pub struct LargeValues<D: Dictionary<Value = u32>, V: Pod> {
    /// Where the value of each key is.
    indices: D,
    values: Column<V>,
    /// Which checkpoints this dictionary continues. That of `indices` is not used.
    history: History,
}

impl<D: Dictionary<Value = u32> + Debug, V: Pod> Debug for LargeValues<D, V> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("LargeValues").field("indices", &self.indices).field("values", &self.values.len()).finish()
    }
}

/// Returns whether the numbers are 0, 1, 2 and so on. Waits.
fn is_sequence(stream: &Stream, numbers: &DeviceVec<u32>) -> Result<bool, Error> {
    let mut host = vec![0; numbers.len().min(1 << 18)];
    let mut expected = 0..u32::MAX;
    while expected.start as usize != numbers.len() {
        let start = expected.start as usize;
        let part = &mut host[..(numbers.len() - start).min(1 << 18)];
        numbers.slice(start..start + part.len())?.copy_to_host(stream, part)?;
        if !part.iter().all(|&number| expected.next() == Some(number)) {
            return Ok(false);
        }
    }
    Ok(true)
}

const FORMAT: Format = Format { magic: *b"gpu-val\n", version: 2 };

impl<D: Dictionary<Value = u32>, V: Pod> LargeValues<D, V> {
    /// Returns the dictionary that has the indices of the values.
    #[must_use]
    pub fn indices(&self) -> &D {
        &self.indices
    }

    /// Moves the values of the present keys together, in key order, and builds the dictionary of their indices anew. Waits.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], or any launch error. After an error the dictionary is unchanged.
    pub fn compact(&mut self, stream: &Stream) -> Result<(), Error> {
        let compact = self.compacted(stream, 0)?;
        self.replace(compact);
        Ok(())
    }

    /// Becomes a copy of itself.
    fn replace(&mut self, copy: Self) {
        *self = Self { history: std::mem::take(&mut self.history), ..copy };
    }

    /// Returns a compact copy, with room for more values.
    fn compacted(&self, stream: &Stream, more: usize) -> Result<Self, Error> {
        let Contents { keys, values: live } = self.indices.export(stream)?;
        let len = values_for::<V>(live.len());
        let room = if more == 0 { len } else { len + len.max(more) };
        let values = self.values.compacted(stream, &live, stream.uninit(0)?.as_slice(), room)?;
        let indices = D::bulk_build(stream, (&keys, &indices(stream, 0, keys.len())?), self.indices.options())?;
        Ok(Self { indices, values, history: History::default() })
    }
}

impl<D: Updatable<Value = u32>, V: Pod> LargeValues<D, V> {
    /// Adds values, and calls `update` with the dictionary and their indices. After an error nothing has changed.
    fn add(
        &mut self,
        stream: &Stream,
        keys: usize,
        values: DeviceSlice<'_, V>,
        update: impl FnOnce(&mut D, &DeviceVec<u32>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        expect_values::<V>(keys, values.len())?;
        if self.values.is_to_be_compacted(values.len(), || self.indices.len(stream))? {
            let compact = self.compacted(stream, values.len())?;
            self.replace(compact);
        }
        let more = self.values.with(stream, values)?;
        let start = if size_of::<V>() == 0 { 0 } else { self.values.len() };
        update(&mut self.indices, &indices(stream, start, keys)?)?;
        self.values = more;
        Ok(())
    }
}

impl<D: Dictionary<Value = u32>, V: Pod> Dictionary for LargeValues<D, V> {
    type Key = D::Key;
    type Value = V;
    type Options = D::Options;

    const NAME: &'static str = D::NAME;

    fn new(stream: &Stream, options: D::Options) -> Result<Self, Error> {
        let values = Column::empty(stream)?;
        Ok(Self { indices: D::new(stream, options)?, values, history: History::default() })
    }

    fn bulk_build<'a>(
        stream: &Stream,
        pairs: (impl Into<DeviceSlice<'a, Self::Key>>, impl Into<DeviceSlice<'a, V>>),
        options: D::Options,
    ) -> Result<Self, Error> {
        let (keys, values) = (pairs.0.into(), pairs.1.into());
        expect_values::<V>(keys.len(), values.len())?;
        let values = Column::with_room(stream, values, 0)?;
        let indices = D::bulk_build(stream, (keys, &indices(stream, 0, keys.len())?), options)?;
        Ok(Self { indices, values, history: History::default() })
    }

    fn options(&self) -> D::Options {
        self.indices.options()
    }

    fn try_clone(&self, stream: &Stream) -> Result<Self, Error> {
        let (indices, values) = (self.indices.try_clone(stream)?, self.values.clone());
        Ok(Self { indices, values, history: History::default() })
    }

    fn lookup<'a>(&self, stream: &Stream, keys: impl Into<DeviceSlice<'a, Self::Key>>) -> Result<Lookup<V>, Error> {
        let Lookup { values, found } = self.indices.lookup(stream, keys)?;
        Ok(Lookup { values: self.values.where_found(stream, &values, &found)?, found })
    }

    fn contains<'a>(
        &self,
        stream: &Stream,
        keys: impl Into<DeviceSlice<'a, Self::Key>>,
    ) -> Result<DeviceVec<u8>, Error> {
        self.indices.contains(stream, keys)
    }

    fn len(&self, stream: &Stream) -> Result<usize, Error> {
        self.indices.len(stream)
    }

    fn is_empty(&self, stream: &Stream) -> Result<bool, Error> {
        self.indices.is_empty(stream)
    }

    fn export(&self, stream: &Stream) -> Result<Contents<Self::Key, V>, Error> {
        let Contents { keys, values } = self.indices.export(stream)?;
        Ok(Contents { keys, values: self.values.at(stream, &values)? })
    }

    /// Writes a compact copy: the header with the size of a value and their number, the file of the dictionary of the indices,
    /// and the values in key order.
    fn save(&self, stream: &Stream, mut writer: impl Write) -> Result<(), Error> {
        let compact = self.compacted(stream, 0)?;
        let mut header = FORMAT.header::<D::Key, V>();
        header.extend((size_of::<V>() as u64).to_le_bytes());
        header.extend((compact.values.len() as u64).to_le_bytes());
        write_section(&mut writer, &header)?;
        compact.indices.save(stream, &mut writer)?;
        write_array(stream, &mut writer, compact.values.values()?)?;
        writer.flush()?;
        Ok(())
    }

    fn load(stream: &Stream, mut reader: impl Read) -> Result<Self, Error> {
        let mut source = Source::new(&mut reader);
        let (bytes, len) = source.header::<D::Key, V, _>(FORMAT, |source| Ok((source.u64()?, source.u64()?)))?;
        if bytes != size_of::<V>() as u64 {
            let expected = size_of::<V>();
            return Err(source.invalid(format!("its values have {bytes} bytes, but {expected} were expected")));
        }
        let indices = D::load(stream, &mut reader)?;
        let mut source = Source::new(&mut reader);
        let places = indices.export(stream)?.values;
        if values_for::<V>(places.len()) as u64 != len {
            return Err(source.invalid("it does not have one value per key"));
        }
        // Queries rely on it: an index must be that of a value.
        if !is_sequence(stream, &places)? {
            return Err(source.invalid("the indices of the values are not in key order"));
        }
        let array = source.values::<V>(stream, "the values", places.len())?;
        Ok(Self { indices, values: Column::from(array), history: History::default() })
    }

    fn stats(&self, stream: &Stream) -> Result<Stats, Error> {
        let stats = self.indices.stats(stream)?;
        Ok(Stats { bytes: stats.bytes + self.values.bytes(), ..stats })
    }
}

impl<D: Updatable<Value = u32>, V: Pod> Updatable for LargeValues<D, V> {
    fn insert<'a>(
        &mut self,
        stream: &Stream,
        pairs: (impl Into<DeviceSlice<'a, Self::Key>>, impl Into<DeviceSlice<'a, V>>),
    ) -> Result<(), Error> {
        let (keys, values) = (pairs.0.into(), pairs.1.into());
        self.add(stream, keys.len(), values, |dictionary, indices| dictionary.insert(stream, (keys, indices)))
    }

    fn delete<'a>(&mut self, stream: &Stream, keys: impl Into<DeviceSlice<'a, Self::Key>>) -> Result<(), Error> {
        self.indices.delete(stream, keys)
    }

    fn update<'a>(
        &mut self,
        stream: &Stream,
        insert: (impl Into<DeviceSlice<'a, Self::Key>>, impl Into<DeviceSlice<'a, V>>),
        delete: impl Into<DeviceSlice<'a, Self::Key>>,
    ) -> Result<(), Error> {
        let (keys, values, delete) = (insert.0.into(), insert.1.into(), delete.into());
        self.add(stream, keys.len(), values, |dictionary, indices| dictionary.update(stream, (keys, indices), delete))
    }

    fn clear(&mut self, stream: &Stream) -> Result<(), Error> {
        let empty = Column::empty(stream)?;
        self.indices.clear(stream)?;
        self.values = empty;
        Ok(())
    }
}

impl<D: Updatable<Value = u32>, V: Pod> Upsertable for LargeValues<D, V> {
    /// Combines values with those that are present. An operation takes elements of up to 32 bytes, so the values may not be longer.
    fn upsert<'a>(
        &mut self,
        stream: &Stream,
        pairs: (impl Into<DeviceSlice<'a, Self::Key>>, impl Into<DeviceSlice<'a, V>>),
        operation: impl Upsertion<V>,
    ) -> Result<(), Error> {
        let (keys, values) = (pairs.0.into(), pairs.1.into());
        if size_of::<V>() == 0 {
            return self.insert(stream, (keys, values));
        }
        expect_values::<V>(keys.len(), values.len())?;
        stream.refuse_recording("an update of a dictionary")?;
        if keys.is_empty() {
            return Ok(());
        }
        // The position of the last pair of a key is the number of the key.
        let options = D::Options::default().expected_keys(keys.len()).expected_operations(keys.len());
        let last = D::bulk_build(stream, (keys, &indices(stream, 0, keys.len())?), options)?;
        let (ids, present) = (last.lookup(stream, keys)?.values, self.indices.lookup(stream, keys)?);
        let Combined { positions, values, .. } = self.values.combined(stream, &ids, &present, values, operation)?;
        let mut different = stream.uninit(positions.len())?;
        permute::gather(stream, keys, &positions, &mut different)?;
        self.insert(stream, (&different, &values))
    }
}

/// A checkpoint writes everything, as [`save`](Dictionary::save) does, also if the dictionary of the indices is an LSM.
impl<D: Durable<Value = u32>, V: Pod> Durable for LargeValues<D, V> {
    fn checkpoint_to(&self, stream: &Stream, disk: &impl Disk) -> Result<(), Error> {
        write_whole(self, &self.history, stream, disk)
    }

    fn recover_from(stream: &Stream, disk: &impl Disk, options: Option<&D::Options>) -> Result<Option<Self>, Error> {
        recover_whole(stream, disk, options, |large: &mut Self| &mut large.history)
    }

    fn adopt(&mut self, options: &D::Options) {
        self.indices.adopt(options);
    }
}

impl<D: Ordered<Value = u32>, V: Pod> LargeValues<D, V> {
    /// Returns neighbours with their values.
    fn neighbours(&self, stream: &Stream, at: Neighbour<D::Key, u32>) -> Result<Neighbour<D::Key, V>, Error> {
        let Neighbour { keys, values, found } = at;
        Ok(Neighbour { keys, values: self.values.where_found(stream, &values, &found)?, found })
    }
}

impl<D: Ordered<Value = u32>, V: Pod> Ordered for LargeValues<D, V> {
    fn count<'a>(
        &self,
        stream: &Stream,
        low: impl Into<DeviceSlice<'a, Self::Key>>,
        high: impl Into<DeviceSlice<'a, Self::Key>>,
    ) -> Result<DeviceVec<u64>, Error> {
        self.indices.count(stream, low, high)
    }

    fn range<'a>(
        &self,
        stream: &Stream,
        low: impl Into<DeviceSlice<'a, Self::Key>>,
        high: impl Into<DeviceSlice<'a, Self::Key>>,
    ) -> Result<Ranges<Self::Key, V>, Error> {
        let Ranges { offsets, keys, values } = self.indices.range(stream, low, high)?;
        Ok(Ranges { offsets, keys, values: self.values.at(stream, &values)? })
    }

    fn reduce<'a>(
        &self,
        stream: &Stream,
        low: impl Into<DeviceSlice<'a, Self::Key>>,
        high: impl Into<DeviceSlice<'a, Self::Key>>,
        operation: impl Monoid<V>,
    ) -> Result<DeviceVec<V>, Error> {
        self.range(stream, low, high)?.reduce(stream, operation)
    }

    fn successor<'a>(
        &self,
        stream: &Stream,
        keys: impl Into<DeviceSlice<'a, Self::Key>>,
    ) -> Result<Neighbour<Self::Key, V>, Error> {
        self.neighbours(stream, self.indices.successor(stream, keys)?)
    }

    fn predecessor<'a>(
        &self,
        stream: &Stream,
        keys: impl Into<DeviceSlice<'a, Self::Key>>,
    ) -> Result<Neighbour<Self::Key, V>, Error> {
        self.neighbours(stream, self.indices.predecessor(stream, keys)?)
    }
}
