//! Keys that occur more than once in a batch: they get their values after it was inserted.

use super::claim::{Batch, EqualKeys, Operation};
use super::pairs::{self, PairSlices, PairVec, sizes_of, sort_by_key, typed};
use super::storage::{probe_blocks, with_table};
use super::table::RawTable;
use super::work::Work;
#[cfg(doc)]
use crate::device::Latest;
use crate::device::{Raise, Revert, Settle};
use gpu_primitives::{DeviceValue, DeviceVec, Error, Stream, lowered, sized};

/// Combines the values of equal keys, which are next to each other. The first pairs of the result are those of the different
/// keys, as many as the number says. Does not wait.
pub type CombineRuns<'a> = &'a dyn Fn(PairSlices<'_>, &mut PairVec) -> Result<DeviceValue<u64>, Error>;

/// What an insertion does about equal keys after it, if there are any.
#[derive(Clone, Copy)]
pub enum AtLast<'a> {
    /// Nothing: there are none.
    Nothing,
    /// Gives them the value of the last one.
    Settle,
    /// Combines all of their values.
    Combine(CombineRuns<'a>),
}

impl RawTable {
    /// Gives equal keys of the batch the value of the last one. Does not wait; allocates nothing.
    ///
    /// # Safety
    /// The batch was inserted with the operation [`Latest`], and the work was not used since then except for leftovers. All
    /// its keys are in the table.
    pub(super) unsafe fn settle(&mut self, stream: &Stream, work: &mut Work, batch: &Batch<'_>) -> Result<(), Error> {
        let sizes = self.storage.sizes();
        if sizes.value == 0 {
            return Ok(());
        }
        let (keys, blocks) = (batch.pairs.0, probe_blocks(batch.pairs.0.len()));
        let (mut entries, history) = work.entries_and_history()?;
        let fates = typed::<u8>(history.keys.as_slice().slice(0..keys.len())?);
        sized!(sizes.key => C in u32 | u64, {
            let raise = Raise::new(typed::<C>(keys).view(stream)?, fates.view(stream)?, entries.view(stream)?);
            // SAFETY: there is a thread per key. The fates and the entries are what the insertion wrote.
            unsafe { stream.launch(raise, blocks)? };
        }, else unreachable!("{sizes:?}"));
        with_table!(self.storage => C, V in u32 | u64, {
            let (table, pairs) = (self.storage.view_mut::<C, V, WIDTH>(stream)?, pairs::view(stream, batch.pairs)?);
            let settle = Settle::new(table, pairs, fates.view(stream)?, entries.view(stream)?);
            // SAFETY: there is a thread per pair. The fates and the entries are what the insertion wrote. The caller guarantees
            // the rest.
            unsafe { stream.launch(settle, blocks) }
        })
    }

    /// Combines the values of equal keys in their order, after a batch was inserted of which all equal keys count: takes back
    /// what it did to them, combines them, and inserts the results. Waits. After an error, what was taken back is not part of
    /// the batch's history any more.
    pub(super) fn combine_repeats(
        &mut self,
        stream: &Stream,
        batch: &Batch<'_>,
        work: &mut Work,
        operation: Operation,
        combine_runs: CombineRuns<'_>,
    ) -> Result<(), Error> {
        let sizes = sizes_of(batch.pairs);
        let mut repeated = PairVec::uninit(stream, sizes, batch.pairs.0.len())?;
        // SAFETY: the batch was inserted with this work, and its keys are in the table.
        let flags = unsafe { self.revert(stream, work, batch)? };
        let to = (repeated.keys.as_mut_slice(), repeated.values.as_mut_slice());
        let count = lowered::select::flagged(stream, batch.pairs, flags.as_slice(), to)?.get(stream)? as usize;
        let sorted = sort_by_key(stream, repeated.first(count)?)?;
        let mut combined = PairVec::uninit(stream, sizes, count)?;
        let different = combine_runs(sorted.slices(), &mut combined)?.get(stream)? as usize;
        let different = Batch { pairs: combined.first(different)?, equal_keys: EqualKeys::None };
        // SAFETY: the keys of these pairs are different. The operation is that of the batch.
        unsafe { self.add(stream, &different, operation, AtLast::Nothing) }
    }

    /// Takes back what the batch has done to its equal keys. Returns 1 for each of their pairs, and 0 for the others. Counts
    /// the keys that are absent again as erased. Does not wait.
    ///
    /// # Safety
    /// The batch was inserted, and all of its equal keys count. The work was not used since then except for leftovers. All keys
    /// of the batch are in the table.
    unsafe fn revert(&mut self, stream: &Stream, work: &mut Work, batch: &Batch<'_>) -> Result<DeviceVec<u8>, Error> {
        let keys = batch.pairs.0;
        let mut reverted = stream.uninit(keys.len())?;
        let (mut entries, history) = work.entries_and_history()?;
        let mut erased = self.erased.as_mut_slice();
        with_table!(self.storage => C, V in u32 | u64, {
            let kernel = Revert::new(
                self.storage.view_mut::<C, V, WIDTH>(stream)?,
                typed::<C>(keys).view(stream)?,
                history.view_mut(stream)?,
                entries.view(stream)?,
                reverted.view_mut(stream)?,
                erased.view_mut(stream)?,
            );
            // SAFETY: there is a thread and a result per key. The history and the entries are what the insertion wrote. The
            // caller guarantees the rest.
            unsafe { stream.launch(kernel, probe_blocks(keys.len()))? };
        });
        Ok(reverted)
    }
}
