//! The dictionary without its types: what an update does, compiled once.

use crate::budget::Budget;
use crate::cadence::Cadence;
use crate::levels::{Draft, Levels};
use crate::options::Options;
use crate::store::Store;
use crate::{CleanupPolicy, Stats};
use gpu_dictionary::checkpoint::History;
use gpu_dictionary::levels::{AnyBuffer, AnyLevel, Operation, Operations, Types};
use gpu_primitives::{Error, Stream, expect_len};

/// A dictionary whose types are known by their sizes alone.
#[derive(Debug)]
pub(crate) struct AnyLsm {
    types: &'static Types,
    store: Store,
    /// The most operations in the buffer; 0 for none.
    pub buffer: usize,
    /// How much room the last buffer needed.
    room: usize,
    cadence: Cadence,
    pub batch_size: usize,
    /// The device memory that levels may take.
    pub budget: Budget,
    pub policy: Option<CleanupPolicy>,
    /// Why the last cleanup that the policy asked for failed.
    pub cleanup_failure: Option<Error>,
    /// The checkpoints that this dictionary continues.
    pub history: History,
}

/// The room of a first buffer.
const FIRST_ROOM: usize = 1 << 12;

impl AnyLsm {
    pub fn new(types: &'static Types, options: Options) -> Result<Self, Error> {
        let Options { batch_size, buffer, device_memory: budget, cleanup_policy: policy } = options.checked()?;
        Ok(Self {
            types,
            store: Levels::new(types, batch_size).into(),
            buffer,
            room: FIRST_ROOM,
            cadence: Cadence::default(),
            batch_size,
            budget,
            policy,
            cleanup_failure: None,
            history: History::default(),
        })
    }

    /// Makes a clone with this history.
    pub fn with_history(&self, history: History) -> Self {
        // As after a query, the next update cannot use the same buffer.
        self.cadence.query();
        let (store, cadence) = (self.store.clone(), self.cadence.clone());
        // A failure is about an update of the original.
        Self { store, cadence, cleanup_failure: None, history, ..*self }
    }

    /// Returns the levels for a query, after a flush.
    pub fn levels(&self, stream: &Stream) -> Result<&Levels, Error> {
        self.cadence.query();
        self.store.settled(stream, self.budget)
    }

    /// Returns the levels to change them, after a flush.
    pub fn levels_mut(&mut self, stream: &Stream) -> Result<&mut Levels, Error> {
        self.store.settled_mut(stream, self.budget)
    }

    /// Merges the buffer with the levels.
    pub fn flush(&self, stream: &Stream) -> Result<(), Error> {
        self.store.settled(stream, self.budget).map(drop)
    }

    /// Takes the options that can change.
    pub fn adopt(&mut self, options: &Options) {
        (self.buffer, self.budget, self.policy) = (options.buffer, options.device_memory, options.cleanup_policy);
    }

    /// Changes the budget, and moves levels to where it has them.
    pub fn set_budget(&mut self, stream: &Stream, budget: Budget) -> Result<(), Error> {
        let levels = self.store.settled_mut(stream, self.budget)?;
        let finished = Draft::new(levels, budget).arranged(stream)?;
        levels.install(finished);
        self.budget = budget;
        Ok(())
    }

    /// Makes `level` the only level, in the first slot it fits into. It must have no tombstones.
    pub fn put_only(&mut self, stream: &Stream, level: AnyLevel) -> Result<(), Error> {
        let place = self.budget.place(level.len() * self.types.stored_bytes());
        let level = level.into_place(stream, place)?;
        self.put(Levels::new(self.types, self.batch_size).of_one(level)?);
        self.history.advance();
        Ok(())
    }

    /// Makes these the levels. The buffer is gone.
    pub fn put(&mut self, levels: Levels) {
        self.store = levels.into();
    }

    /// Inserts pairs, or combines values with those that are present, and then deletes keys.
    pub fn change(&mut self, stream: &Stream, operations: Operations<'_>) -> Result<(), Error> {
        let Operations { keys, values, operation, .. } = operations;
        let what = if operation.is_some() { "the values to upsert" } else { "the values to insert" };
        expect_len(what, self.types.values_for(keys.len()), values.len())?;
        self.store.expect_device(stream)?;
        // What the buffer takes must pass the flush, which would fail again and again. And no lock is held here.
        self.types.record(stream)?;
        if let Some(operation) = operation {
            operation.record(stream)?;
            if self.has_operands_of_another(operation)? {
                self.cleanup(stream)?;
            }
        }
        if !operations.is_empty() {
            self.add(stream, operations)?;
        }
        self.history.advance();
        let stats = self.stats()?;
        let is_due = self.policy.is_some_and(|policy| policy.asks_for_cleanup(&stats));
        // The update has succeeded, so it returns `Ok`. The next update retries a failed cleanup.
        self.cleanup_failure = if is_due { self.cleanup(stream).err() } else { None };
        Ok(())
    }

    /// Adds operations to the buffer, or to the levels at once.
    fn add(&mut self, stream: &Stream, operations: Operations<'_>) -> Result<(), Error> {
        let is_query_expected = self.cadence.update();
        // What fills the buffer alone need not be copied.
        let is_buffered = operations.len() < self.buffer && !(is_query_expected && self.store.buffered()? == 0);
        if is_buffered {
            self.store.append(stream, self.budget, operations, self.room, self.buffer)?;
            self.room = self.room.max(self.store.buffered()?);
            return Ok(());
        }
        let Operations { keys, values, operation, deleted } = operations;
        let levels = self.store.settled_mut(stream, self.budget)?;
        let mut draft = Draft::new(levels, self.budget);
        match (operation, deleted) {
            (None, Some(deleted)) if !keys.is_empty() && operations.len() <= levels.batch_size => {
                draft.insert_and_delete(stream, keys, values, deleted)?;
            }
            _ => {
                match operation {
                    Some(operation) => draft.upsert(stream, keys, values, operation)?,
                    None => draft.insert(stream, keys, values)?,
                }
                if let Some(deleted) = deleted {
                    draft.delete(stream, deleted)?;
                }
            }
        }
        let finished = draft.finish(stream)?;
        levels.install(finished);
        Ok(())
    }

    /// Returns whether values are to be combined by another operation than this one.
    fn has_operands_of_another(&self, operation: &Operation) -> Result<bool, Error> {
        self.store.look(|levels, buffer| {
            let buffered = buffer.and_then(AnyBuffer::operation);
            buffered.is_some_and(|own| !own.is_same(operation))
                || levels.stack.oldest_first().any(|(_, level)| level.has_operands_of_another(operation))
        })
    }

    /// Returns a copy without values that are still to be combined, or `None` if there are none. Waits.
    pub fn combined(&self, stream: &Stream) -> Result<Option<Self>, Error> {
        if !self.levels(stream)?.stack.has_operands() {
            return Ok(None);
        }
        let mut combined = self.with_history(History::default());
        combined.cleanup(stream)?;
        // It has the contents of this dictionary, so its checkpoint is one of this dictionary, as it is now.
        combined.history = self.history.of_snapshot();
        Ok(Some(combined))
    }

    pub fn cleanup(&mut self, stream: &Stream) -> Result<(), Error> {
        let levels = self.store.settled(stream, self.budget)?;
        let _span = gpu_primitives::span!(stream, "lsm::cleanup", levels.stack.len());
        // How much is live is not known yet.
        let place = self.budget.place(levels.stack.len() * self.types.stored_bytes());
        let live = AnyLevel::live(self.types, stream, place, &levels.stack.levels())?;
        self.put_only(stream, live)?;
        self.cleanup_failure = None;
        Ok(())
    }

    pub fn clear(&mut self) {
        self.history.advance();
        self.put(Levels::new(self.types, self.batch_size));
    }

    /// Drops what is in the buffer. Returns how many operations there were.
    pub fn discard_buffer(&mut self) -> Result<usize, Error> {
        let discarded = self.store.discard()?;
        if discarded > 0 {
            self.history.advance();
        }
        Ok(discarded)
    }

    pub fn check_memory(&self, stream: &Stream, additional: usize) -> Result<(), Error> {
        let bytes = |elements: usize| elements.saturating_mul(self.types.bytes());
        let present = bytes(self.len()?).min(self.budget.0.unwrap_or(usize::MAX));
        stream.uninit::<u8>(present.saturating_add(bytes(additional.saturating_mul(3)))).map(drop)
    }

    /// Returns the number of elements, live or stale, in the levels and in the buffer.
    pub fn len(&self) -> Result<usize, Error> {
        self.store.look(|levels, buffer| levels.stack.len() + buffer.map_or(0, AnyBuffer::len))
    }

    pub fn stats(&self) -> Result<Stats, Error> {
        self.store.look(|levels, buffer| {
            let buffered = buffer.map_or(0, AnyBuffer::len);
            let resident = levels.stack.len() + buffered;
            let tombstones = levels.tombstones + buffer.map_or(0, AnyBuffer::tombstones);
            Stats {
                batch_size: self.batch_size,
                batches: levels.batches,
                levels: levels.stack.oldest_first().count(),
                buffered,
                resident,
                tombstones,
                stale_estimate: (2 * tombstones).min(resident),
                bytes: levels.stack.bytes() + buffer.map_or(0, AnyBuffer::bytes),
                host_bytes: levels.stack.host_bytes(),
            }
        })
    }
}
