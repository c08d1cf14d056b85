//! Insertions that displace no pairs: what the first step of every insertion does.

use super::pairs::{self, PairSlices, PairVec, Sizes};
use super::storage::{Storage, probe_blocks, with_table};
#[cfg(doc)]
use super::table::RawTable;
#[cfg(doc)]
use crate::device::Claims;
use crate::device::{Claim, Entries, Latest, Marks};
use crate::hash::Hash;
use gpu_dictionary::{Carrier, WordCode as KeyCode};
use gpu_primitives::kernel::View;
use gpu_primitives::monoid::{Combine, HoleMonoid};
use gpu_primitives::{DeviceSlice, DeviceSliceMut, DeviceVec, Error, Stream};

/// What an insertion does with the value of a key that is present.
#[derive(Clone, Copy)]
pub enum Operation {
    /// Replaces it by the new one.
    Latest,
    /// Combines it with the new one, of 4 bytes.
    Four(HoleMonoid<u32>),
    /// Combines it with the new one, of 8 bytes.
    Eight(HoleMonoid<u64>),
}

/// Pairs to insert.
#[derive(Clone, Copy)]
pub struct Batch<'a> {
    pub pairs: PairSlices<'a>,
    pub equal_keys: EqualKeys,
}

/// What a batch does about equal keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EqualKeys {
    /// All keys are known to be different.
    None,
    /// The last one counts.
    LastCounts,
    /// All of them count.
    AllCount,
}

impl Batch<'_> {
    /// Returns whether all keys are known to be different.
    pub fn is_distinct(&self) -> bool {
        self.equal_keys == EqualKeys::None
    }
}

/// Returns no room for what became of pairs.
pub fn no_history(stream: &Stream, sizes: Sizes) -> Result<PairVec, Error> {
    PairVec::uninit(stream, Sizes { key: 1, ..sizes }, 0)
}

/// What finds equal keys, if there can be any.
pub enum Repeats<'a> {
    /// All keys are different.
    None,
    /// Keys may be equal.
    Possible {
        /// A mark for every bucket.
        marks: &'a mut DeviceVec<u32>,
        /// A number that no mark has, from 1 to [`Marks::LAST_BATCH`].
        batch: u32,
        entries: EntrySlice<'a>,
        /// Whether all pairs with equal keys are to be recorded in the entries, or at least the last one.
        all_count: bool,
    },
}

/// Entries for the last positions of keys: more of them than keys, all at most `base` before. The base plus the number of
/// keys is less than 2^32.
pub struct EntrySlice<'a> {
    pub words: DeviceSliceMut<'a, u32>,
    /// Decides where the search for a key begins.
    pub hash: Hash,
    pub base: u32,
}

impl EntrySlice<'_> {
    /// Returns the entries as an argument for kernels on `stream`.
    pub fn view(&mut self, stream: &Stream) -> Result<View<'_, Entries>, Error> {
        Entries::view(stream, &mut self.words, self.hash, self.base)
    }
}

/// An insertion that displaces no pairs. Of equal keys one takes part; [`RawTable::settle`] corrects its value.
pub struct Claiming<'a> {
    pub pairs: PairSlices<'a>,
    /// The number of pairs to insert, from the first one on: one element. All pairs if there is none.
    pub count: Option<DeviceSlice<'a, u64>>,
    /// What finds equal keys.
    pub repeats: Repeats<'a>,
    /// Room for the fate of every pair and for the old values; or none.
    pub history: &'a mut PairVec,
    /// Room for the pairs that find all of their buckets full.
    pub overflow: &'a mut PairVec,
    /// The counters of [`Claims`], to which the numbers are added.
    pub counts: DeviceSliceMut<'a, u64>,
}

impl Claiming<'_> {
    /// Inserts the pairs. The old value of a key and the new one are combined. Does not wait.
    ///
    /// # Safety
    /// The buffers are as [`Claiming`] describes them. `count` is at most the number of pairs. If there can be no repeats,
    /// the keys are different. There is room for the overflow. The operation is one of the table's values.
    pub unsafe fn launch(self, stream: &Stream, storage: &mut Storage, operation: Operation) -> Result<(), Error> {
        // SAFETY: guaranteed by the caller.
        unsafe {
            match operation {
                Operation::Latest => {
                    with_table!(storage => C, V, self.launch_typed::<C, V, WIDTH, _>(stream, storage, Latest))
                }
                Operation::Four(operation) => {
                    with_table!(storage => C, V in u32, self.launch_typed::<C, V, WIDTH, _>(stream, storage, operation))
                }
                Operation::Eight(operation) => {
                    with_table!(storage => C, V in u64, self.launch_typed::<C, V, WIDTH, _>(stream, storage, operation))
                }
            }
        }
    }

    /// # Safety
    /// The requirements of [`launch`](Self::launch). The types are those of the table.
    unsafe fn launch_typed<C: KeyCode, V: Carrier, const WIDTH: usize, O: Combine<V>>(
        self,
        stream: &Stream,
        storage: &mut Storage,
        operation: O,
    ) -> Result<(), Error> {
        let Self { pairs, count, repeats, history, overflow, mut counts } = self;
        let len = pairs.0.len();
        if len == 0 {
            return Ok(());
        }
        let (no_count, mut no_marks, mut no_entries) = (stream.uninit(0)?, stream.uninit(0)?, stream.uninit(0)?);
        let count = count.unwrap_or(no_count.as_slice());
        let (marks, batch, mut entries, all_count) = match repeats {
            Repeats::None => {
                let entries = EntrySlice { words: no_entries.as_mut_slice(), hash: storage.hash(), base: 0 };
                (&mut no_marks, 0, entries, false)
            }
            Repeats::Possible { marks, batch, entries, all_count } => (marks, batch, entries, all_count),
        };
        let kernel = Claim::new(
            storage.view_mut::<C, V, WIDTH>(stream)?,
            pairs::view(stream, pairs)?,
            count.view(stream)?,
            Marks::view(stream, marks, batch, all_count)?,
            entries.view(stream)?,
            operation,
            history.view_mut(stream)?,
            overflow.view_mut(stream)?,
            counts.view_mut(stream)?,
        );
        // SAFETY: there is a thread per pair. The rest is guaranteed by the caller.
        unsafe { stream.launch(kernel, probe_blocks(len)) }
    }
}
