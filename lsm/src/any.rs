//! The dictionary without its types: what an update does, compiled once.

use crate::options::Options;
use crate::{CleanupPolicy, Stats};
use gpu_dictionary::checkpoint::History;
use gpu_dictionary::levels::{AnyLevel, AnyStack, Operation, Types};
use gpu_primitives::{AnySlice, Error, Stream, expect_len};

/// A dictionary whose types are known by their sizes alone.
#[derive(Debug)]
pub(crate) struct AnyLsm {
    types: &'static Types,
    pub batch_size: usize,
    /// The number of batches. Its binary digits say which levels exist.
    pub batches: u64,
    pub stack: AnyStack,
    pub tombstones: usize,
    pub policy: Option<CleanupPolicy>,
    /// Why the last cleanup that the policy asked for failed.
    pub cleanup_failure: Option<Error>,
    /// The checkpoints that this dictionary continues.
    pub history: History,
}

/// The levels as an update will leave them. The dictionary's own levels stay unchanged until the whole update has
/// succeeded.
struct Draft<'a> {
    lsm: &'a AnyLsm,
    batches: u64,
    changed: Changed,
    tombstones: usize,
}

/// The new contents of each slot that changed.
type Changed = Vec<Option<Option<AnyLevel>>>;

/// What a draft leaves: the fields of the dictionary that an update changes.
struct Finished {
    batches: u64,
    changed: Changed,
    tombstones: usize,
}

/// What is merged with older levels.
enum Newer<'a> {
    /// Pairs that are not sorted yet.
    Pairs(AnySlice<'a>, AnySlice<'a>),
    /// Levels, from oldest to newest.
    Levels(Vec<AnyLevel>),
}

impl Newer<'_> {
    /// Merges them with `older` levels, which are ordered from oldest to newest.
    fn merge(self, types: &'static Types, stream: &Stream, older: &[&AnyLevel]) -> Result<AnyLevel, Error> {
        let mut runs = match self {
            Self::Pairs(keys, values) => return AnyLevel::merge_pairs(types, stream, older, keys, values),
            Self::Levels(runs) => runs,
        };
        if older.len() + runs.len() > AnyStack::SLOTS {
            // A mixed batch whose carry runs through all slots: more inputs than one merge takes.
            runs = vec![AnyLevel::merge(types, stream, &runs.iter().collect::<Vec<_>>())?];
        }
        if older.is_empty() && runs.len() == 1 {
            return Ok(runs.remove(0));
        }
        let all: Vec<&AnyLevel> = older.iter().copied().chain(&runs).collect();
        AnyLevel::merge(types, stream, &all)
    }
}

/// Returns the error for more batches than there are slots.
fn too_many_batches(batch_size: usize, batches: u64) -> Error {
    let elements = |batches: u64| batch_size.saturating_mul(batches as usize);
    let limit = elements(u32::MAX.into());
    Error::TooLong { what: "a dictionary of this batch size", len: elements(batches), limit }
}

impl<'a> Draft<'a> {
    fn new(lsm: &'a AnyLsm) -> Self {
        let changed = std::iter::repeat_with(|| None).take(AnyStack::SLOTS).collect();
        Self { lsm, batches: lsm.batches, changed, tombstones: lsm.tombstones }
    }

    fn finish(self) -> Finished {
        Finished { batches: self.batches, changed: self.changed, tombstones: self.tombstones }
    }

    fn level(&self, slot: usize) -> Option<&AnyLevel> {
        match &self.changed[slot] {
            Some(changed) => changed.as_ref(),
            None => self.lsm.stack.level(slot),
        }
    }

    /// Returns how many of the `left` operations to add next, and the base-2 logarithm of the number of batches they
    /// count as. A chunk of several batches fills the lowest slots, which are free, and makes one level.
    fn next_chunk(&self, left: usize) -> (usize, u32) {
        let full = left / self.lsm.batch_size;
        if full == 0 {
            return (left, 0);
        }
        let log_batches = full.ilog2().min(self.batches.trailing_zeros());
        (self.lsm.batch_size << log_batches, log_batches)
    }

    /// Adds `1 << log_batches` batches. The slots below `log_batches` are free. Makes one level of the new batches and of the
    /// levels in their way.
    fn add(&mut self, stream: &Stream, log_batches: u32, newer: Newer<'_>) -> Result<(), Error> {
        let carries = (self.batches >> log_batches).trailing_ones();
        let (from, slot) = (log_batches as usize, (log_batches + carries) as usize);
        if slot >= self.changed.len() {
            return Err(too_many_batches(self.lsm.batch_size, self.batches + (1 << log_batches)));
        }
        let older: Vec<&AnyLevel> = (from..slot).rev().filter_map(|slot| self.level(slot)).collect();
        let level = newer.merge(self.lsm.types, stream, &older)?;
        for cleared in from..slot {
            self.changed[cleared] = Some(None);
        }
        self.changed[slot] = Some(Some(level));
        self.batches += 1 << log_batches;
        Ok(())
    }

    /// Calls `make` for each chunk of keys and values, and adds what it returns.
    fn add_chunks(
        &mut self,
        stream: &Stream,
        keys: AnySlice<'_>,
        values: AnySlice<'_>,
        make: &dyn for<'b> Fn(AnySlice<'b>, AnySlice<'b>) -> Result<Newer<'b>, Error>,
    ) -> Result<(), Error> {
        let mut done = 0;
        while done < keys.len() {
            let (count, log_batches) = self.next_chunk(keys.len() - done);
            let values = if values.is_empty() { values } else { values.slice(done..done + count)? };
            let newer = make(keys.slice(done..done + count)?, values)?;
            self.add(stream, log_batches, newer)?;
            done += count;
        }
        Ok(())
    }

    fn insert(&mut self, stream: &Stream, keys: AnySlice<'_>, values: AnySlice<'_>) -> Result<(), Error> {
        self.add_chunks(stream, keys, values, &|keys, values| Ok(Newer::Pairs(keys, values)))
    }

    fn upsert(
        &mut self,
        stream: &Stream,
        keys: AnySlice<'_>,
        values: AnySlice<'_>,
        operation: Option<&Operation>,
    ) -> Result<(), Error> {
        let types = self.lsm.types;
        self.add_chunks(stream, keys, values, &|keys, values| {
            Ok(Newer::Levels(vec![AnyLevel::operands(types, stream, keys, values, operation.cloned())?]))
        })
    }

    fn delete(&mut self, stream: &Stream, keys: AnySlice<'_>) -> Result<(), Error> {
        let types = self.lsm.types;
        self.add_chunks(stream, keys, keys.slice(0..0)?, &|keys, _| {
            Ok(Newer::Levels(vec![AnyLevel::tombstones(types, stream, keys)?]))
        })?;
        self.tombstones += keys.len();
        Ok(())
    }
}

impl AnyLsm {
    pub fn new(types: &'static Types, options: Options) -> Result<Self, Error> {
        let Options { batch_size, cleanup_policy: policy } = options.checked()?;
        Ok(Self {
            types,
            batch_size,
            batches: 0,
            stack: AnyStack::new(types),
            tombstones: 0,
            policy,
            cleanup_failure: None,
            history: History::default(),
        })
    }

    /// Makes a clone with this history.
    pub fn with_history(&self, history: History) -> Self {
        // A failure is about an update of the original.
        Self { stack: self.stack.clone(), cleanup_failure: None, history, ..*self }
    }

    /// Makes `level` the only level, in the first slot it fits into. It must have no tombstones.
    pub fn put_only(&mut self, level: AnyLevel) -> Result<(), Error> {
        let batches = (level.len().div_ceil(self.batch_size) as u64).next_power_of_two();
        let slot = batches.ilog2() as usize;
        if slot >= AnyStack::SLOTS {
            return Err(too_many_batches(self.batch_size, batches));
        }
        self.clear();
        if !level.is_empty() {
            self.stack.set(slot, Some(level));
            self.batches = batches;
        }
        Ok(())
    }

    /// Inserts pairs and then deletes keys: as a single mixed batch if there are both and they fit into one.
    pub fn change(
        &mut self,
        stream: &Stream,
        keys: AnySlice<'_>,
        values: AnySlice<'_>,
        deleted: Option<AnySlice<'_>>,
    ) -> Result<(), Error> {
        expect_len("the values to insert", self.types.values_for(keys.len()), values.len())?;
        self.stack.expect_device(stream)?;
        let mut draft = Draft::new(self);
        match deleted {
            Some(deleted) if !keys.is_empty() && keys.len() + deleted.len() <= self.batch_size => {
                let runs = vec![
                    AnyLevel::from_pairs(self.types, stream, keys, values)?,
                    AnyLevel::tombstones(self.types, stream, deleted)?,
                ];
                draft.add(stream, 0, Newer::Levels(runs))?;
                draft.tombstones += deleted.len();
            }
            _ => {
                draft.insert(stream, keys, values)?;
                if let Some(deleted) = deleted {
                    draft.delete(stream, deleted)?;
                }
            }
        }
        let finished = draft.finish();
        self.install(stream, finished)
    }

    /// Combines values with those that are present. Without an operation, values are zero-sized. `is_other` says whether a
    /// level has operands of another operation.
    pub fn upsert(
        &mut self,
        stream: &Stream,
        keys: AnySlice<'_>,
        values: AnySlice<'_>,
        operation: Option<&Operation>,
    ) -> Result<(), Error> {
        expect_len("the values to upsert", self.types.values_for(keys.len()), values.len())?;
        self.stack.expect_device(stream)?;
        let is_other = |level: &AnyLevel| operation.is_none_or(|operation| level.has_operands_of_another(operation));
        if self.stack.oldest_first().any(|(_, level)| level.has_operands() && is_other(level)) {
            self.cleanup(stream)?;
        }
        let mut draft = Draft::new(self);
        draft.upsert(stream, keys, values, operation)?;
        let finished = draft.finish();
        self.install(stream, finished)
    }

    /// Returns a copy without values that are still to be combined, or `None` if there are none. Waits.
    pub fn combined(&self, stream: &Stream) -> Result<Option<Self>, Error> {
        if !self.stack.has_operands() {
            return Ok(None);
        }
        let mut combined = self.with_history(History::default());
        combined.cleanup(stream)?;
        // It has the contents of this dictionary, so its checkpoint is one of this dictionary, as it is now.
        combined.history = self.history.of_snapshot();
        Ok(Some(combined))
    }

    /// Notes that elements were removed from the levels. A level that is empty now counts as none: its slot is free, and its
    /// batches are gone.
    pub fn removed(&mut self) {
        self.history.advance();
        self.batches = self.stack.oldest_first().map(|(slot, _)| 1 << slot).sum();
    }

    /// Makes the levels of a draft those of the dictionary. Then cleans up if the policy asks for it.
    fn install(&mut self, stream: &Stream, finished: Finished) -> Result<(), Error> {
        let Finished { batches, changed, tombstones } = finished;
        self.history.advance();
        (self.batches, self.tombstones) = (batches, tombstones);
        for (slot, level) in changed.into_iter().enumerate() {
            if let Some(level) = level {
                self.stack.set(slot, level);
            }
        }
        let is_due = self.policy.is_some_and(|policy| policy.asks_for_cleanup(&self.stats()));
        // The update has succeeded, so it returns `Ok`. The next update retries a failed cleanup.
        self.cleanup_failure = if is_due { self.cleanup(stream).err() } else { None };
        Ok(())
    }

    pub fn cleanup(&mut self, stream: &Stream) -> Result<(), Error> {
        let _span = gpu_primitives::span!(stream, "lsm::cleanup", self.stack.len());
        let live = AnyLevel::live(self.types, stream, &self.stack.levels())?;
        self.put_only(live)?;
        self.cleanup_failure = None;
        Ok(())
    }

    pub fn clear(&mut self) {
        self.history.advance();
        self.stack.clear();
        (self.batches, self.tombstones) = (0, 0);
    }

    pub fn check_memory(&self, stream: &Stream, additional: usize) -> Result<(), Error> {
        let elements = self.stack.len().saturating_add(additional.saturating_mul(3));
        stream.uninit::<u8>(elements.saturating_mul(self.types.bytes())).map(drop)
    }

    pub fn stats(&self) -> Stats {
        let resident = self.stack.len();
        Stats {
            batch_size: self.batch_size,
            batches: self.batches,
            levels: self.stack.oldest_first().count(),
            resident,
            tombstones: self.tombstones,
            stale_estimate: (2 * self.tombstones).min(resident),
            bytes: self.stack.bytes(),
        }
    }
}
