//! The contenders of a comparison: the dictionaries of this workspace on a device, and common structures on the host.
//! They share one trait, so the same code measures and checks all of them on the same data.
//!
//! # A structure of your own
//! Implement [`Contender`] for one type of keys and values, [`OrderedContender`] as well if it keeps its keys in order, and
//! [register](crate::compare::Contest::register) it. `benches/examples/own_contender.rs` is a whole program.
//! A dictionary that implements [`Updatable`](gpu_dictionary::Updatable) needs only [`device::OnDevice`].
//!
//! - **Input.** Every slice is there twice, [on the host and on the device](crate::both::Slice): use the one that suits the
//!   structure.
//! - **What is timed.** The call itself, by [`Contender::CLOCK`]: events on the stream for structures on the device, the host's
//!   clock for others. Queries return an [`Answer`], a function that brings the result to the host; it is not timed. `empty`,
//!   `build` before an update, `contents` and `bytes` are not timed either.
//! - **What is checked.** All contents after each update, in key order, and every answer. A wrong one ends the run; the
//!   error names the structure, the row and the index.
//! - **Semantics.** Of equal keys the last one counts. If `update` both inserts and deletes a key, the deletion wins.
//! - **Runs.** A structure on the device has warm-up runs and as many timed runs as ours. One on the host has at most 2^19
//!   elements, and up to three runs.

pub mod device;
pub mod host;

use crate::Error;
use crate::both::{PairSlice, Slice};
use crate::data::{Datum, Number};
use crate::measure::Clock;
use gpu_primitives::Stream;

/// An answer that is still on the device: copying it to the host is not timed.
pub type Answer<T> = Box<dyn FnOnce(&Stream) -> Result<T, Error>>;

/// The pairs of many intervals on the host.
pub struct Flat<K, V> {
    /// The start of each interval's pairs, and finally the end of the last interval's.
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
    /// The type of the keys.
    type Key: Number;
    /// The type of the values.
    type Value: Datum;

    /// The name in reports.
    const NAME: &'static str;
    /// The clock that times it.
    const CLOCK: Clock;

    /// Creates an empty structure for batches of `batch` pairs.
    ///
    /// # Errors
    /// The errors of the structure. All methods can return these.
    fn empty(stream: &Stream, batch: usize) -> Result<Self, Error>;
    /// Builds a structure from these pairs.
    ///
    /// # Errors
    /// The errors of the structure.
    fn build(stream: &Stream, pairs: PairSlice<'_, Self::Key, Self::Value>, batch: usize) -> Result<Self, Error>;
    /// Inserts pairs.
    ///
    /// # Errors
    /// The errors of the structure.
    fn insert(&mut self, stream: &Stream, pairs: PairSlice<'_, Self::Key, Self::Value>) -> Result<(), Error>;
    /// Deletes keys.
    ///
    /// # Errors
    /// The errors of the structure.
    fn delete(&mut self, stream: &Stream, keys: Slice<'_, Self::Key>) -> Result<(), Error>;
    /// Inserts pairs and deletes keys.
    ///
    /// # Errors
    /// The errors of the structure.
    fn update(
        &mut self,
        stream: &Stream,
        insert: PairSlice<'_, Self::Key, Self::Value>,
        delete: Slice<'_, Self::Key>,
    ) -> Result<(), Error>;
    /// Looks up keys.
    ///
    /// # Errors
    /// The errors of the structure.
    fn lookup(&self, stream: &Stream, keys: Slice<'_, Self::Key>) -> Result<Answer<Vec<Option<Self::Value>>>, Error>;
    /// Returns all pairs in key order.
    ///
    /// # Errors
    /// The errors of the structure.
    fn contents(&self, stream: &Stream) -> Result<Vec<Pair<Self>>, Error>;
    /// Returns the size of the structure in bytes, if known.
    ///
    /// # Errors
    /// The errors of the structure.
    fn bytes(&self, stream: &Stream) -> Result<Option<usize>, Error>;
    /// Returns the number of elements, live and stale, if the structure has a [`cleanup`](Self::cleanup) that removes
    /// stale ones.
    fn cleanable(&self, _: &Stream) -> Option<usize> {
        None
    }
    /// Removes stale elements.
    ///
    /// # Errors
    /// The errors of the structure.
    fn cleanup(&mut self, _: &Stream) -> Result<(), Error> {
        Ok(())
    }
}

/// A contender that keeps its keys in order.
pub trait OrderedContender: Contender {
    /// Counts the keys in intervals.
    ///
    /// # Errors
    /// The errors of the structure.
    fn count(
        &self,
        stream: &Stream,
        low: Slice<'_, Self::Key>,
        high: Slice<'_, Self::Key>,
    ) -> Result<Answer<Vec<u64>>, Error>;
    /// Returns the pairs in intervals.
    ///
    /// # Errors
    /// The errors of the structure.
    fn range(
        &self,
        stream: &Stream,
        low: Slice<'_, Self::Key>,
        high: Slice<'_, Self::Key>,
    ) -> Result<Answer<FlatPairs<Self>>, Error>;
    /// Finds the smallest key greater than each of `keys`.
    ///
    /// # Errors
    /// The errors of the structure.
    fn successor(&self, stream: &Stream, keys: Slice<'_, Self::Key>) -> Result<Answer<Vec<Option<Pair<Self>>>>, Error>;
}
