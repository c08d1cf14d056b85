//! The dictionaries of this workspace.

use super::{Answer, Contender, Flat, OrderedContender};
use crate::Error;
use crate::both::{PairSlice, Slice};
use crate::data::{Datum, Number};
use crate::measure::Clock;
use gpu_cuckoo::GpuCuckoo;
use gpu_dictionary::{Dictionary, Ordered, Updatable};
use gpu_lsm::GpuLsm;
use gpu_primitives::Stream;
use gpu_sorted_array::GpuSortedArray;

/// What the measurements need in addition to the common dictionary trait.
pub trait OnDevice: Updatable {
    /// Returns the options for batches of `batch` pairs.
    fn options_for(batch: usize) -> Self::Options;

    /// See [`Contender::cleanable`].
    fn cleanable(&self, _: &Stream) -> Option<usize> {
        None
    }

    /// See [`Contender::cleanup`].
    ///
    /// # Errors
    /// The errors of the dictionary.
    fn cleanup(&mut self, _: &Stream) -> Result<(), gpu_primitives::Error> {
        Ok(())
    }
}

impl<K: Number, V: Datum> OnDevice for GpuLsm<K, V> {
    fn options_for(batch: usize) -> Self::Options {
        // Every batch is sorted at once, as in the paper: see `buffer` for the other way.
        gpu_lsm::Options::new().batch_size(batch).buffer(0)
    }

    fn cleanable(&self, stream: &Stream) -> Option<usize> {
        self.stats(stream).ok().map(|stats| stats.resident)
    }

    fn cleanup(&mut self, stream: &Stream) -> Result<(), gpu_primitives::Error> {
        self.cleanup(stream)
    }
}

impl<K: Number, V: Datum> OnDevice for GpuSortedArray<K, V> {
    fn options_for(_: usize) -> Self::Options {
        Self::Options::default()
    }
}

impl<K: Number, V: Datum> OnDevice for GpuCuckoo<K, V> {
    fn options_for(_: usize) -> Self::Options {
        // Every run measures the same layout.
        Self::Options::default().seed(0)
    }
}

impl<D: OnDevice<Key: Number, Value: Datum> + 'static> Contender for D {
    type Key = <D as Dictionary>::Key;
    type Value = <D as Dictionary>::Value;

    const NAME: &'static str = <D as Dictionary>::NAME;
    const CLOCK: Clock = Clock::Device;

    fn empty(stream: &Stream, batch: usize) -> Result<Self, Error> {
        Ok(Dictionary::new(stream, D::options_for(batch))?)
    }

    fn build(stream: &Stream, pairs: PairSlice<'_, Self::Key, Self::Value>, batch: usize) -> Result<Self, Error> {
        Ok(Dictionary::bulk_build(stream, (pairs.keys.device, pairs.values.device), D::options_for(batch))?)
    }

    fn insert(&mut self, stream: &Stream, pairs: PairSlice<'_, Self::Key, Self::Value>) -> Result<(), Error> {
        Ok(Updatable::insert(self, stream, (pairs.keys.device, pairs.values.device))?)
    }

    fn delete(&mut self, stream: &Stream, keys: Slice<'_, Self::Key>) -> Result<(), Error> {
        Ok(Updatable::delete(self, stream, keys.device)?)
    }

    fn update(
        &mut self,
        stream: &Stream,
        insert: PairSlice<'_, Self::Key, Self::Value>,
        delete: Slice<'_, Self::Key>,
    ) -> Result<(), Error> {
        Ok(Updatable::update(self, stream, (insert.keys.device, insert.values.device), delete.device)?)
    }

    fn lookup(&self, stream: &Stream, keys: Slice<'_, Self::Key>) -> Result<Answer<Vec<Option<Self::Value>>>, Error> {
        let found = Dictionary::lookup(self, stream, keys.device)?;
        Ok(Box::new(move |stream| Ok(found.to_vec(stream)?)))
    }

    fn contents(&self, stream: &Stream) -> Result<Vec<(Self::Key, Self::Value)>, Error> {
        Ok(self.export(stream)?.to_vec(stream)?)
    }

    fn bytes(&self, stream: &Stream) -> Result<Option<usize>, Error> {
        Ok(Some(Dictionary::stats(self, stream)?.bytes))
    }

    fn cleanable(&self, stream: &Stream) -> Option<usize> {
        OnDevice::cleanable(self, stream)
    }

    fn cleanup(&mut self, stream: &Stream) -> Result<(), Error> {
        Ok(OnDevice::cleanup(self, stream)?)
    }
}

impl<D: OnDevice<Key: Number, Value: Datum> + Ordered + 'static> OrderedContender for D {
    fn count(
        &self,
        stream: &Stream,
        low: Slice<'_, <Self as Contender>::Key>,
        high: Slice<'_, <Self as Contender>::Key>,
    ) -> Result<Answer<Vec<u64>>, Error> {
        let counts = Ordered::count(self, stream, low.device, high.device)?;
        Ok(Box::new(move |stream| Ok(counts.to_vec(stream)?)))
    }

    fn range(
        &self,
        stream: &Stream,
        low: Slice<'_, <Self as Contender>::Key>,
        high: Slice<'_, <Self as Contender>::Key>,
    ) -> Result<Answer<Flat<<Self as Contender>::Key, <Self as Contender>::Value>>, Error> {
        let ranges = Ordered::range(self, stream, low.device, high.device)?;
        Ok(Box::new(move |stream| {
            let offsets = ranges.offsets.to_vec(stream)?;
            let keys = ranges.keys.to_vec(stream)?;
            let values = if size_of::<<Self as Contender>::Value>() == 0 {
                vec![bytemuck::Zeroable::zeroed(); keys.len()]
            } else {
                ranges.values.to_vec(stream)?
            };
            Ok(Flat { offsets, keys, values })
        }))
    }

    fn successor(
        &self,
        stream: &Stream,
        keys: Slice<'_, <Self as Contender>::Key>,
    ) -> Result<Answer<Vec<Option<(<Self as Contender>::Key, <Self as Contender>::Value)>>>, Error> {
        let found = Ordered::successor(self, stream, keys.device)?;
        Ok(Box::new(move |stream| Ok(found.to_vec(stream)?)))
    }
}
