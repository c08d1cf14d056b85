//! What is compared: the dictionaries of this workspace on a device, and structures that everybody knows on the host. Both do
//! the same with the same data, so one piece of code measures and checks them all.

pub mod device;
pub mod host;

use crate::Error;
use crate::both::{PairSlice, Slice};
use crate::data::{Datum, Number};
use crate::measure::Clock;
use gpu_primitives::Stream;

/// An answer that is still where it was made: bringing it to the host is not part of the time.
pub type Answer<T> = Box<dyn FnOnce(&Stream) -> Result<T, Error>>;

/// The pairs of many intervals on the host.
pub struct Flat<K, V> {
    /// Where the pairs of each interval begin; one more entry says where the last ones end.
    pub offsets: Vec<u64>,
    /// The keys, ascending within each interval.
    pub keys: Vec<K>,
    /// Their values.
    pub values: Vec<V>,
}

/// A pair of a contender.
pub type Pair<C> = (<C as Contender>::Key, <C as Contender>::Value);

/// The pairs of many intervals of a contender.
pub type FlatPairs<C> = Flat<<C as Contender>::Key, <C as Contender>::Value>;

/// A dictionary to be measured.
pub trait Contender: Sized {
    /// The keys.
    type Key: Number;
    /// The values.
    type Value: Datum;

    /// What people call it.
    const NAME: &'static str;
    /// What tells its times.
    const CLOCK: Clock;

    /// An empty one, for batches of so many pairs.
    ///
    /// # Errors
    /// What the structure gives. So for all methods.
    fn empty(stream: &Stream, batch: usize) -> Result<Self, Error>;
    /// One of these pairs.
    ///
    /// # Errors
    /// What the structure gives.
    fn build(stream: &Stream, pairs: PairSlice<'_, Self::Key, Self::Value>, batch: usize) -> Result<Self, Error>;
    /// Inserts pairs.
    ///
    /// # Errors
    /// What the structure gives.
    fn insert(&mut self, stream: &Stream, pairs: PairSlice<'_, Self::Key, Self::Value>) -> Result<(), Error>;
    /// Deletes keys.
    ///
    /// # Errors
    /// What the structure gives.
    fn delete(&mut self, stream: &Stream, keys: Slice<'_, Self::Key>) -> Result<(), Error>;
    /// Inserts pairs and deletes keys.
    ///
    /// # Errors
    /// What the structure gives.
    fn update(
        &mut self,
        stream: &Stream,
        insert: PairSlice<'_, Self::Key, Self::Value>,
        delete: Slice<'_, Self::Key>,
    ) -> Result<(), Error>;
    /// Looks keys up.
    ///
    /// # Errors
    /// What the structure gives.
    fn lookup(&self, stream: &Stream, keys: Slice<'_, Self::Key>) -> Result<Answer<Vec<Option<Self::Value>>>, Error>;
    /// All pairs in the order of the keys.
    ///
    /// # Errors
    /// What the structure gives.
    fn contents(&self, stream: &Stream) -> Result<Vec<Pair<Self>>, Error>;
    /// The bytes that it takes, if that can be known.
    ///
    /// # Errors
    /// What the structure gives.
    fn bytes(&self, stream: &Stream) -> Result<Option<usize>, Error>;
    /// Elements in it, dead or alive, if some may be dead, and a [`cleanup`](Self::cleanup) removes them.
    fn cleanable(&self) -> Option<usize> {
        None
    }
    /// Removes dead elements.
    ///
    /// # Errors
    /// What the structure gives.
    fn cleanup(&mut self, _: &Stream) -> Result<(), Error> {
        Ok(())
    }
}

/// A dictionary that knows the order of its keys.
pub trait OrderedContender: Contender {
    /// Counts the keys of intervals.
    ///
    /// # Errors
    /// What the structure gives.
    fn count(
        &self,
        stream: &Stream,
        low: Slice<'_, Self::Key>,
        high: Slice<'_, Self::Key>,
    ) -> Result<Answer<Vec<u64>>, Error>;
    /// Gives the pairs of intervals.
    ///
    /// # Errors
    /// What the structure gives.
    fn range(
        &self,
        stream: &Stream,
        low: Slice<'_, Self::Key>,
        high: Slice<'_, Self::Key>,
    ) -> Result<Answer<FlatPairs<Self>>, Error>;
    /// Finds the smallest key above each.
    ///
    /// # Errors
    /// What the structure gives.
    fn successor(&self, stream: &Stream, keys: Slice<'_, Self::Key>) -> Result<Answer<Vec<Option<Pair<Self>>>>, Error>;
}
