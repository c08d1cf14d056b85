//! The stack of levels that queries search, and its index.

#![deny(unsafe_op_in_unsafe_fn)]

use super::far::filter_of;
use super::level::AnyLevel;
use super::types::Types;
use super::view::{AnyLevels, LevelBuffers};
use crate::filter::host::raw::RawFilter;
use crate::levels::device::directory::BUCKET;
use crate::levels::device::table::{ENTRY_WORDS, MAX_LEVELS};
use bytemuck::Pod;
use gpu_primitives::code::Sign;
use gpu_primitives::kernel::{Reach, View};
use gpu_primitives::lowered::{Place, expect_host};
use gpu_primitives::{DeviceVec, Error, Global, Stream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A [`Stack`](crate::levels::Stack) of levels whose types are known by their sizes alone.
///
/// A clone shares the levels, which never change, and what has been built of the index. It costs no device memory. Both
/// stacks can be changed and queried independently, also by different threads.
#[derive(Debug)]
pub struct AnyStack {
    pub(crate) types: &'static Types,
    /// The slots; lower slots hold newer levels.
    levels: Vec<Option<Arc<Indexed>>>,
    /// Elements per bucket of a directory.
    bucket: usize,
    table: Mutex<Table>,
}

/// A level, and its directory when a query has built it. If the level is in host memory, also a filter of its keys, when a large lookup has
/// built it.
#[derive(Debug)]
struct Indexed {
    level: AnyLevel,
    directory: Mutex<Option<DeviceVec<u64>>>,
    filter: Mutex<Option<Arc<RawFilter>>>,
}

impl From<AnyLevel> for Indexed {
    fn from(level: AnyLevel) -> Self {
        Self { level, directory: Mutex::default(), filter: Mutex::default() }
    }
}

/// The entries of levels on the device.
#[derive(Clone, Debug, Default)]
struct Table {
    /// Shared with clones until one of them needs other entries.
    words: Option<Arc<DeviceVec<u64>>>,
    /// One bit per slot: whether the table has the entry of its level.
    entries: u32,
}

impl Table {
    /// Returns the words for writing. If clones share them, copies them first.
    fn words_mut(&mut self, stream: &Stream) -> Result<&mut DeviceVec<u64>, Error> {
        let is_own = self.words.as_mut().is_some_and(|words| Arc::get_mut(words).is_some());
        if !is_own {
            let own = match &self.words {
                None => stream.zeroed(MAX_LEVELS * ENTRY_WORDS)?,
                Some(shared) => {
                    let mut copy = stream.uninit(shared.len())?;
                    copy.copy_from(stream, &**shared)?;
                    copy
                }
            };
            self.words = Some(Arc::new(own));
        }
        Ok(self.words.as_mut().and_then(Arc::get_mut).expect("nobody else has these words"))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What the locks guard is consistent at every moment: a thread that panicked has broken nothing.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Clone for AnyStack {
    fn clone(&self) -> Self {
        // Inside a kernel, the lock's owner may wait for this very kernel. Queries add the entries that a table does not have.
        let table = if expect_host().is_ok() { lock(&self.table).clone() } else { Table::default() };
        Self { levels: self.levels.clone(), table: Mutex::new(table), ..*self }
    }
}

impl AnyStack {
    /// Creates a stack without levels. Their directories will have one bucket per four elements: 2 bytes per element.
    #[must_use]
    pub fn new(types: &'static Types) -> Self {
        Self::with_bucket(types, BUCKET)
    }

    /// Creates a stack without levels. Their directories will have one 8-byte bucket per `elements` elements, at least
    /// one. More elements per bucket take less memory, but a query reads more keys.
    #[must_use]
    pub fn with_bucket(types: &'static Types, elements: usize) -> Self {
        Self { types, levels: vec![None; MAX_LEVELS], bucket: elements.max(1), table: Mutex::default() }
    }

    /// Returns the types of the levels.
    #[must_use]
    pub fn types(&self) -> &'static Types {
        self.types
    }

    /// Returns how many elements a bucket of a directory has.
    #[must_use]
    pub fn keys_per_bucket(&self) -> usize {
        self.bucket
    }

    /// Sets how many elements a bucket has, at least one, in the directories that are built from now on.
    pub fn set_keys_per_bucket(&mut self, elements: usize) {
        self.bucket = elements.max(1);
    }

    /// The number of slots.
    pub const SLOTS: usize = MAX_LEVELS;

    /// Returns the level in a slot.
    #[must_use]
    pub fn level(&self, slot: usize) -> Option<&AnyLevel> {
        self.levels.get(slot)?.as_ref().map(|indexed| &indexed.level)
    }

    /// Returns the existing levels with their directories, oldest first, and their slots.
    fn indexed(&self) -> impl Iterator<Item = (usize, &Indexed)> {
        self.levels.iter().enumerate().rev().filter_map(|(slot, indexed)| Some((slot, &**indexed.as_ref()?)))
    }

    /// Returns the existing levels, oldest first, with their slots.
    pub fn oldest_first(&self) -> impl Iterator<Item = (usize, &AnyLevel)> {
        self.indexed().map(|(slot, indexed)| (slot, &indexed.level))
    }

    /// Puts a level into a slot, or empties the slot. An empty level counts as none.
    ///
    /// # Panics
    /// If there is no such slot: there are [`SLOTS`](Self::SLOTS) slots. If the level has other types.
    pub fn set(&mut self, slot: usize, level: Option<AnyLevel>) {
        let level = level.filter(|level| !level.is_empty());
        level.iter().for_each(|level| level.types.expect_same(self.types));
        self.levels[slot] = level.map(|level| Arc::new(level.into()));
        let is_empty = self.is_empty();
        let table = self.table.get_mut().unwrap_or_else(PoisonError::into_inner);
        table.entries &= !(1 << slot);
        if is_empty {
            // The next level may be on another device.
            *table = Table::default();
        }
    }

    /// Removes all levels. Cannot fail.
    pub fn clear(&mut self) {
        *self = Self::with_bucket(self.types, self.bucket);
    }

    /// Returns the only level if its keys are known to be distinct. Then all of its elements are live.
    pub(crate) fn distinct_level(&self) -> Option<&AnyLevel> {
        let mut levels = self.oldest_first().map(|(_, level)| level);
        let level = levels.next().filter(|level| level.is_distinct())?;
        levels.next().is_none().then_some(level)
    }

    /// Returns the number of levels.
    pub(crate) fn level_count(&self) -> usize {
        self.oldest_first().count()
    }

    /// Checks that the levels, if there are any, are on the stream's device.
    ///
    /// # Errors
    /// [`Error::WrongDevice`] if they are not.
    pub fn expect_device(&self, stream: &Stream) -> Result<(), Error> {
        match self.oldest_first().next() {
            Some((_, level)) if level.device() != stream.device() => Err(Error::WrongDevice {
                what: "the dictionary",
                found: level.device().kind(),
                expected: stream.device().kind(),
            }),
            _ => Ok(()),
        }
    }

    /// Returns the number of elements, live or stale.
    #[must_use]
    pub fn len(&self) -> usize {
        self.oldest_first().map(|(_, level)| level.len()).sum()
    }

    /// Returns whether there are no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the device memory in bytes, including the part of the index that has been built. Memory that clones share
    /// counts for each of them.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let directory = |indexed: &Indexed| lock(&indexed.directory).as_ref().map_or(0, DeviceVec::len);
        let filter = |indexed: &Indexed| lock(&indexed.filter).as_ref().map_or(0, |filter| filter.bytes());
        let of = |indexed: &Indexed| indexed.level.bytes() + 8 * directory(indexed) + filter(indexed);
        let table = lock(&self.table).words.as_ref().map_or(0, |words| words.len());
        self.indexed().map(|(_, indexed)| of(indexed)).sum::<usize>() + 8 * table
    }

    /// Returns the bytes of the levels' arrays in host memory. Memory that clones share counts for each of them.
    #[must_use]
    pub fn host_bytes(&self) -> usize {
        self.oldest_first().map(|(_, level)| level.host_bytes()).sum()
    }

    /// Returns the levels as a kernel argument, with values or without. Builds the missing parts of the index. Does not wait.
    pub(crate) fn any_view(&self, stream: &Stream, with_values: bool) -> Result<AnyLevels<'_>, Error> {
        self.view_of(stream, with_values, self.types.sign, |_| true)
    }

    /// [`any_view`](Self::any_view) of some of the levels, for kernels that convert keys by `sign`. Builds the index of all.
    pub(crate) fn view_of(
        &self,
        stream: &Stream,
        with_values: bool,
        sign: Sign,
        is_meant: impl Fn(&AnyLevel) -> bool,
    ) -> Result<AnyLevels<'_>, Error> {
        if !self.oldest_first().any(|(_, level)| is_meant(level)) {
            // Without levels there is no device either, and kernels do not read the table.
            return Ok(AnyLevels::new(self.types, stream, View::empty(), sign, &[]));
        }
        // Reject a stream of another device before anything is allocated there.
        self.expect_device(stream)?;
        let with_values = with_values && self.types.value > 0;
        // Building the index launches kernels under the locks. A kernel that waited for a lock would wait for itself.
        expect_host()?;
        let mut table = lock(&self.table);
        let mut buffers = Vec::new();
        // Also of those that are not meant: see `outlive`.
        for (slot, indexed) in self.indexed() {
            let mut directory = lock(&indexed.directory);
            if directory.is_none() || table.entries >> slot & 1 == 0 {
                self.add_entry(stream, &mut table, slot, &indexed.level, &mut directory)?;
            }
            if !is_meant(&indexed.level) {
                continue;
            }
            let directory = directory.as_ref().expect("it was just built").view(stream)?;
            // SAFETY: see below.
            let directory = unsafe { outlive(directory) };
            buffers.push(LevelBuffers { directory, ..indexed.level.buffers(stream, slot, with_values)? });
        }
        let words = table.words.as_ref().expect("there are entries").view(stream)?;
        // SAFETY: see below.
        let words = unsafe { outlive(words) };
        Ok(AnyLevels::new(self.types, stream, words, sign, &buffers))
    }

    /// Returns the filters of the levels in host memory. Builds those that are missing. Does not wait.
    pub(crate) fn filters(&self, stream: &Stream) -> Result<Vec<Arc<RawFilter>>, Error> {
        // As for the rest of the index.
        expect_host()?;
        stream.refuse_recording("the first query after an update of a dictionary")?;
        let far = self.indexed().filter(|(_, indexed)| indexed.level.place() == Place::Host);
        far.map(|(_, indexed)| {
            let mut filter = lock(&indexed.filter);
            let built = match &*filter {
                Some(built) => Arc::clone(built),
                None => Arc::new(filter_of(stream, &indexed.level)?),
            };
            Ok(Arc::clone(filter.insert(built)))
        })
        .collect()
    }

    /// Writes the entry of a level into the table. Builds the directory if no clone has built it.
    fn add_entry(
        &self,
        stream: &Stream,
        table: &mut Table,
        slot: usize,
        level: &AnyLevel,
        directory: &mut Option<DeviceVec<u64>>,
    ) -> Result<(), Error> {
        // Other queries use the index right after this call, but recorded work would build it only later.
        stream.refuse_recording("the first query after an update of a dictionary")?;
        let words = table.words_mut(stream)?;
        match directory {
            Some(directory) => {
                let entry = directory.slice(directory.len() - ENTRY_WORDS..)?;
                words.slice_mut(slot * ENTRY_WORDS..(slot + 1) * ENTRY_WORDS)?.copy_from(stream, entry)?;
            }
            none => *none = Some(level.build_directory(stream, words, slot, self.bucket)?),
        }
        table.entries |= 1 << slot;
        Ok(())
    }
}

/// Extends a view of the index, which locks guard, to the lifetime of the stack's borrow.
///
/// # Safety
/// The memory is part of the index of a stack that is borrowed for `'a`. Then it stays allocated:
/// - A directory belongs to its level, which the stack owns together with its clones and changes only through `&mut`. A
///   directory that has been built stays as it is.
/// - The table is replaced only to add the entry of a level that had none. No view can be of the table before: a query
///   adds all missing entries before it makes a view, and only `&mut` makes entries missing.
unsafe fn outlive<'a, T: Pod>(view: View<'_, Global<T>>) -> View<'a, Global<T>> {
    // SAFETY: guaranteed by the caller.
    unsafe { View::new(view.into_param(), Reach::none()) }
}

/// Deliberate bugs where kernels find levels by the addresses in the table: the checked device must find them.
#[cfg(test)]
mod planted {
    use super::*;
    use crate::levels::{Intervals, Level, Stack};
    use gpu_primitives::{Device, FaultKind};

    fn fault<T: std::fmt::Debug>(result: Result<T, Error>) -> FaultKind {
        match result {
            Err(Error::KernelFault(fault)) => fault.kind,
            other => panic!("the bug was not found: {other:?}"),
        }
    }

    /// Makes two levels with their index. Also returns the table on the host.
    fn indexed(stream: &Stream) -> (Stack<u32, u32>, Vec<u64>) {
        let mut stack = Stack::new();
        for slot in 0..2u32 {
            let keys = stream.upload(&(0..300).map(|i| 2 * i + slot).collect::<Vec<_>>()).unwrap();
            let level = Level::from_pairs(stream, keys.as_slice(), keys.as_slice()).unwrap();
            stack.set(slot as usize, Some(level));
        }
        let asked = stream.upload(&[5u32]).unwrap();
        stack.lookup(stream, asked.as_slice()).unwrap();
        let table = lock(&stack.any().table).words.as_ref().unwrap().slice(..2 * ENTRY_WORDS).unwrap().to_vec(stream);
        (stack, table.unwrap())
    }

    /// Each address in the table's entries in turn points to memory that the launch was not given.
    #[test]
    fn addresses_that_lead_elsewhere() {
        let stream = Device::cpu_checked().stream().unwrap();
        let asked = stream.upload(&(0..600u32).collect::<Vec<_>>()).unwrap();
        let elsewhere = stream.zeroed::<u64>(1000).unwrap();
        let address = elsewhere.as_slice().as_ptr().addr() as u64;
        for word in [0, 1, 3] {
            let (mut stack, mut table) = indexed(&stream);
            table[ENTRY_WORDS + word] = address;
            let words = stack.any_mut().table.get_mut().unwrap().words_mut(&stream).unwrap();
            words.slice_mut(..table.len()).unwrap().copy_from_host(&stream, &table).unwrap();
            let found = fault(stack.lookup(&stream, asked.as_slice()).map(drop));
            assert!(matches!(found, FaultKind::NotGiven { .. }), "word {word}: {found:?}");
            if word != 1 {
                let found = fault(stack.neighbours(&stream, asked.as_slice(), false).map(drop));
                assert!(matches!(found, FaultKind::NotGiven { .. }), "word {word}: {found:?}");
                let intervals = Intervals { low: asked.as_slice(), high: asked.as_slice() };
                let found = fault(stack.count(&stream, intervals).map(drop));
                assert!(matches!(found, FaultKind::NotGiven { .. }), "word {word}: {found:?}");
            }
        }
    }

    /// The table says that a level is longer than it is.
    #[test]
    fn levels_that_are_shorter_than_the_table_says() {
        let stream = Device::cpu_checked().stream().unwrap();
        let (mut stack, mut table) = indexed(&stream);
        table[6] += 100; // the length, the lower half of the word
        let words = stack.any_mut().table.get_mut().unwrap().words_mut(&stream).unwrap();
        words.slice_mut(..table.len()).unwrap().copy_from_host(&stream, &table).unwrap();
        let (low, high) = (stream.upload(&[0u32]).unwrap(), stream.upload(&[u32::MAX]).unwrap());
        let intervals = Intervals { low: low.as_slice(), high: high.as_slice() };
        assert!(matches!(fault(stack.ranges(&stream, intervals).map(drop)), FaultKind::NotGiven { .. }));
        assert!(matches!(fault(stack.count(&stream, intervals).map(drop)), FaultKind::NotGiven { .. }));
    }
}
