//! The levels, and how batches are added to them.

use crate::budget::Budget;
use gpu_dictionary::levels::{AnyBuffer, AnyLevel, AnyStack, Operation, Types};
use gpu_primitives::lowered::{AnySlice, Place};
use gpu_primitives::{Error, Stream};

/// The levels of a dictionary, and what they stand for.
///
/// A clone shares the levels, which never change.
#[derive(Clone, Debug)]
pub(crate) struct Levels {
    pub batch_size: usize,
    /// The number of batches. Its binary digits say which levels exist.
    pub batches: u64,
    pub stack: AnyStack,
    pub tombstones: usize,
}

/// What an update changes.
pub(crate) struct Finished {
    batches: u64,
    changed: Changed,
    tombstones: usize,
}

/// The new contents of each slot that changed.
type Changed = Vec<Option<Option<AnyLevel>>>;

/// Returns the error for more batches than there are slots.
fn too_many_batches(batch_size: usize, batches: u64) -> Error {
    let elements = |batches: u64| batch_size.saturating_mul(batches as usize);
    let limit = elements(u32::MAX.into());
    Error::TooLong { what: "a dictionary of this batch size", len: elements(batches), limit }
}

impl Levels {
    pub fn new(types: &'static Types, batch_size: usize) -> Self {
        Self { batch_size, batches: 0, stack: AnyStack::new(types), tombstones: 0 }
    }

    /// Creates levels of which `level` is the only one, in the first slot it fits into. It must have no tombstones.
    pub fn of_one(&self, level: AnyLevel) -> Result<Self, Error> {
        let mut only = Self::new(self.stack.types(), self.batch_size);
        let batches = (level.len().div_ceil(self.batch_size) as u64).next_power_of_two();
        let slot = batches.ilog2() as usize;
        if slot >= AnyStack::SLOTS {
            return Err(too_many_batches(self.batch_size, batches));
        }
        if !level.is_empty() {
            only.stack.set(slot, Some(level));
            only.batches = batches;
        }
        Ok(only)
    }

    /// Notes that elements were removed. A level that is empty now counts as none: its slot is free, and its batches are gone.
    pub fn removed(&mut self) {
        self.batches = self.stack.oldest_first().map(|(slot, _)| 1 << slot).sum();
    }

    /// Replaces the levels that an update changes.
    pub fn install(&mut self, finished: Finished) {
        let Finished { batches, changed, tombstones } = finished;
        (self.batches, self.tombstones) = (batches, tombstones);
        for (slot, level) in changed.into_iter().enumerate() {
            if let Some(level) = level {
                self.stack.set(slot, level);
            }
        }
    }

    /// Returns the slot for a level of `additional` elements and of all levels in lower slots: the first free one that it fits
    /// into. For a batch it is the one where the carry ends.
    ///
    /// # Errors
    /// [`Error::TooLong`] if there is no such slot, or if the level would have too many elements.
    pub fn slot_for(&self, additional: usize) -> Result<usize, Error> {
        let mut len = additional;
        for slot in 0..AnyStack::SLOTS {
            match self.stack.level(slot) {
                Some(level) => len = len.saturating_add(level.len()),
                None if len <= self.batch_size << slot => {
                    return AnyLevel::expect_short(len).map(|()| slot);
                }
                None => {}
            }
        }
        Err(too_many_batches(self.batch_size, 1 << AnyStack::SLOTS))
    }

    /// Merges the operations of a buffer with the levels in their way. Changes nothing yet. Does not wait.
    pub fn with(&self, stream: &Stream, budget: Budget, buffer: &AnyBuffer) -> Result<Finished, Error> {
        let slot = self.slot_for(buffer.len())?;
        let older: Vec<&AnyLevel> = (0..slot).rev().filter_map(|slot| self.stack.level(slot)).collect();
        let mut draft = Draft::new(self, budget);
        let level = buffer.merge(stream, draft.place(buffer.len(), &older), &older)?;
        draft.put(0, slot, level);
        draft.batches = (self.batches >> slot | 1) << slot;
        draft.tombstones += buffer.tombstones();
        draft.finish(stream)
    }
}

/// The levels as an update will leave them. The dictionary's own levels stay unchanged until the whole update has
/// succeeded.
pub(crate) struct Draft<'a> {
    levels: &'a Levels,
    budget: Budget,
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
    /// Returns the number of elements.
    fn len(&self) -> usize {
        match self {
            Self::Pairs(keys, _) => keys.len(),
            Self::Levels(runs) => runs.iter().map(AnyLevel::len).sum(),
        }
    }

    /// Merges them with `older` levels, which are ordered from oldest to newest, into a level in a place.
    fn merge(
        self,
        types: &'static Types,
        stream: &Stream,
        place: Place,
        older: &[&AnyLevel],
    ) -> Result<AnyLevel, Error> {
        let mut runs = match self {
            Self::Pairs(keys, values) => return AnyLevel::merge_pairs(types, stream, place, older, keys, values),
            Self::Levels(runs) => runs,
        };
        if older.len() + runs.len() > AnyStack::SLOTS {
            // A mixed batch whose carry runs through all slots: more inputs than one merge takes.
            runs = vec![AnyLevel::merge(types, stream, Place::Device, &runs.iter().collect::<Vec<_>>())?];
        }
        if older.is_empty() && runs.len() == 1 {
            return runs.remove(0).into_place(stream, place);
        }
        let all: Vec<&AnyLevel> = older.iter().copied().chain(&runs).collect();
        AnyLevel::merge(types, stream, place, &all)
    }
}

impl<'a> Draft<'a> {
    pub fn new(levels: &'a Levels, budget: Budget) -> Self {
        let changed = std::iter::repeat_with(|| None).take(AnyStack::SLOTS).collect();
        Self { levels, budget, batches: levels.batches, changed, tombstones: levels.tombstones }
    }

    /// Moves levels off the device for which newer ones have left no room there, and ends the update. Does not wait.
    pub fn finish(mut self, stream: &Stream) -> Result<Finished, Error> {
        if self.budget.0.is_some() {
            self.arrange(stream, |from, to| (from, to) == (Place::Device, Place::Host))?;
        }
        Ok(Finished { batches: self.batches, changed: self.changed, tombstones: self.tombstones })
    }

    /// Moves levels to where the budget has them, and to the device, too. Does not wait.
    pub fn arranged(mut self, stream: &Stream) -> Result<Finished, Error> {
        self.arrange(stream, |from, to| from != to)?;
        self.finish(stream)
    }

    /// Moves the levels that are not where the budget has them, if the move is meant.
    fn arrange(&mut self, stream: &Stream, is_meant: impl Fn(Place, Place) -> bool) -> Result<(), Error> {
        let newest_first: Vec<usize> = (0..AnyStack::SLOTS).filter(|&slot| self.level(slot).is_some()).collect();
        let bytes = newest_first.iter().filter_map(|&slot| self.level(slot)).map(AnyLevel::array_bytes);
        let places: Vec<Place> = self.budget.places(bytes).collect();
        for (slot, place) in newest_first.into_iter().zip(places) {
            if let Some(level) = self.level(slot).filter(|level| is_meant(level.place(), place)) {
                self.changed[slot] = Some(Some(level.copy_in(stream, place)?));
            }
        }
        Ok(())
    }

    /// Returns where a level of `added` elements and of those of `older` levels belongs, if there is none in lower slots.
    fn place(&self, added: usize, older: &[&AnyLevel]) -> Place {
        let len = older.iter().map(|level| level.len()).fold(added, usize::saturating_add);
        self.budget.place(len.saturating_mul(self.types().stored_bytes()))
    }

    fn types(&self) -> &'static Types {
        self.levels.stack.types()
    }

    fn level(&self, slot: usize) -> Option<&AnyLevel> {
        match &self.changed[slot] {
            Some(changed) => changed.as_ref(),
            None => self.levels.stack.level(slot),
        }
    }

    /// Puts a level into a slot, which takes the place of those from `from` on.
    fn put(&mut self, from: usize, slot: usize, level: AnyLevel) {
        for cleared in from..slot {
            self.changed[cleared] = Some(None);
        }
        self.changed[slot] = Some(Some(level));
    }

    /// Returns how many of the `left` operations to add next, and the base-2 logarithm of the number of batches they
    /// count as. A chunk of several batches fills the lowest slots, which are free, and makes one level.
    fn next_chunk(&self, left: usize) -> (usize, u32) {
        let full = left / self.levels.batch_size;
        if full == 0 {
            return (left, 0);
        }
        let log_batches = full.ilog2().min(self.batches.trailing_zeros());
        (self.levels.batch_size << log_batches, log_batches)
    }

    /// Adds `1 << log_batches` batches. The slots below `log_batches` are free. Makes one level of the new batches and of the
    /// levels in their way.
    fn add(&mut self, stream: &Stream, log_batches: u32, newer: Newer<'_>) -> Result<(), Error> {
        let carries = (self.batches >> log_batches).trailing_ones();
        let (from, slot) = (log_batches as usize, (log_batches + carries) as usize);
        if slot >= self.changed.len() {
            return Err(too_many_batches(self.levels.batch_size, self.batches + (1 << log_batches)));
        }
        let older: Vec<&AnyLevel> = (from..slot).rev().filter_map(|slot| self.level(slot)).collect();
        let place = self.place(newer.len(), &older);
        let level = newer.merge(self.types(), stream, place, &older)?;
        self.put(from, slot, level);
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

    /// Inserts pairs.
    pub fn insert(&mut self, stream: &Stream, keys: AnySlice<'_>, values: AnySlice<'_>) -> Result<(), Error> {
        self.add_chunks(stream, keys, values, &|keys, values| Ok(Newer::Pairs(keys, values)))
    }

    /// Combines values with those that are present.
    pub fn upsert(
        &mut self,
        stream: &Stream,
        keys: AnySlice<'_>,
        values: AnySlice<'_>,
        operation: &Operation,
    ) -> Result<(), Error> {
        let types = self.types();
        self.add_chunks(stream, keys, values, &|keys, values| {
            Ok(Newer::Levels(vec![AnyLevel::operands(types, stream, keys, values, Some(operation.clone()))?]))
        })
    }

    /// Deletes keys.
    pub fn delete(&mut self, stream: &Stream, keys: AnySlice<'_>) -> Result<(), Error> {
        let types = self.types();
        self.add_chunks(stream, keys, keys.slice(0..0)?, &|keys, _| {
            Ok(Newer::Levels(vec![AnyLevel::tombstones(types, stream, keys)?]))
        })?;
        self.tombstones += keys.len();
        Ok(())
    }

    /// Inserts pairs and then deletes keys, as a single batch.
    pub fn insert_and_delete(
        &mut self,
        stream: &Stream,
        keys: AnySlice<'_>,
        values: AnySlice<'_>,
        deleted: AnySlice<'_>,
    ) -> Result<(), Error> {
        let types = self.types();
        let runs =
            vec![AnyLevel::from_pairs(types, stream, keys, values)?, AnyLevel::tombstones(types, stream, deleted)?];
        self.add(stream, 0, Newer::Levels(runs))?;
        self.tombstones += deleted.len();
        Ok(())
    }
}
