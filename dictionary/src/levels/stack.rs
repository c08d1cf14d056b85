//! The stack of levels that queries search, and its index.

#![deny(unsafe_op_in_unsafe_fn)]

use super::directory::BUCKET;
use super::find::{LevelBuffers, Levels};
use super::level::Level;
use super::table::{ENTRY_WORDS, MAX_LEVELS};
use crate::{Carrier, Key, Value};
use bytemuck::Pod;
use gpu_primitives::kernel::{Reach, View};
use gpu_primitives::{DeviceVec, Error, Global, Stream};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Levels ordered by age, and their index.
#[derive(Debug)]
pub struct Stack<K: Key, V: Value> {
    /// The slots; lower slots hold newer levels.
    levels: Vec<Option<Level<K, V>>>,
    /// Elements per bucket of a directory.
    bucket: usize,
    index: Mutex<Index>,
}

#[derive(Debug, Default)]
struct Index {
    table: Option<DeviceVec<u64>>,
    /// The directories of the levels whose entries are in the table.
    directories: Vec<Option<DeviceVec<u64>>>,
}

impl<K: Key, V: Value> Default for Stack<K, V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: Key, V: Value> Stack<K, V> {
    /// Creates a stack without levels. Their directories will have one bucket per four elements: 2 bytes per element.
    #[must_use]
    pub fn new() -> Self {
        Self::with_bucket(BUCKET)
    }

    /// Creates a stack without levels. Their directories will have one 8-byte bucket per `elements` elements, at least
    /// one. More elements per bucket take less memory, but a query reads more keys.
    #[must_use]
    pub fn with_bucket(elements: usize) -> Self {
        Self {
            levels: std::iter::repeat_with(|| None).take(MAX_LEVELS).collect(),
            bucket: elements.max(1),
            index: Mutex::default(),
        }
    }

    /// The number of slots.
    pub const SLOTS: usize = MAX_LEVELS;

    /// Returns the level in a slot.
    #[must_use]
    pub fn level(&self, slot: usize) -> Option<&Level<K, V>> {
        self.levels.get(slot)?.as_ref()
    }

    /// Returns the existing levels, oldest first, with their slots.
    pub fn oldest_first(&self) -> impl Iterator<Item = (usize, &Level<K, V>)> {
        self.levels.iter().enumerate().rev().filter_map(|(slot, level)| Some((slot, level.as_ref()?)))
    }

    /// Puts a level into a slot, or empties the slot. An empty level counts as none.
    ///
    /// # Panics
    /// If there is no such slot: there are [`SLOTS`](Self::SLOTS) slots.
    pub fn set(&mut self, slot: usize, level: Option<Level<K, V>>) {
        let index = self.index.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(directory) = index.directories.get_mut(slot) {
            *directory = None;
        }
        self.levels[slot] = level.filter(|level| !level.is_empty());
        if self.is_empty() {
            // The next level may be on another device.
            *self.index.get_mut().unwrap_or_else(PoisonError::into_inner) = Index::default();
        }
    }

    /// Removes all levels. Cannot fail.
    pub fn clear(&mut self) {
        *self = Self::with_bucket(self.bucket);
    }

    /// Returns the only level if its keys are known to be distinct. Then all of its elements are live.
    pub(super) fn distinct_level(&self) -> Option<&Level<K, V>> {
        let mut levels = self.oldest_first().map(|(_, level)| level);
        let level = levels.next().filter(|level| level.is_distinct())?;
        levels.next().is_none().then_some(level)
    }

    /// Returns the number of levels.
    pub(super) fn level_count(&self) -> usize {
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

    /// Returns the device memory in bytes, including the part of the index that has been built.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let index = self.lock_index();
        let directories = index.directories.iter().flatten().map(DeviceVec::len).sum::<usize>();
        let table = index.table.as_ref().map_or(0, DeviceVec::len);
        self.oldest_first().map(|(_, level)| level.bytes()).sum::<usize>() + 8 * (directories + table)
    }

    fn lock_index(&self) -> MutexGuard<'_, Index> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the levels as a kernel argument, with values as their carrier, or without: `W` is `V::Carrier` or `()`.
    /// Builds the missing parts of the index. Does not wait.
    pub(super) fn carried_view<W: Carrier>(&self, stream: &Stream) -> Result<View<'_, Levels<K::Code, W>>, Error> {
        if self.is_empty() {
            // Without levels there is no device either, and kernels do not read the table.
            return Ok(Levels::view(stream, View::empty(), K::SIGN, &[]));
        }
        // Reject a stream of another device before anything is allocated there.
        self.expect_device(stream)?;
        let mut index = self.lock_index();
        let Index { table, directories } = &mut *index;
        directories.resize_with(MAX_LEVELS, || None);
        if self.oldest_first().any(|(slot, _)| directories[slot].is_none()) {
            // Other queries use the index right after this call, but recorded work would build it only later.
            stream.refuse_recording("the first query after an update of a dictionary")?;
        }
        let table = match table {
            Some(table) => table,
            None => table.insert(stream.uninit(MAX_LEVELS * ENTRY_WORDS)?),
        };
        let mut buffers = Vec::new();
        for (slot, level) in self.oldest_first() {
            let directory = match &mut directories[slot] {
                Some(directory) => directory,
                none => none.insert(level.build_directory(stream, table, slot, self.bucket)?),
            };
            // SAFETY: see below.
            let directory = unsafe { outlive(directory.view(stream)?) };
            buffers.push(LevelBuffers { directory, ..level.buffers::<W>(stream, slot)? });
        }
        // SAFETY: see below.
        let table = unsafe { outlive(table.view(stream)?) };
        Ok(Levels::view(stream, table, K::SIGN, &buffers))
    }
}

/// Extends a view of the index, which a lock guards, to the lifetime of the stack's borrow.
///
/// # Safety
/// The memory is part of the index of a stack that is borrowed for `'a`. Then it stays allocated: levels change only
/// through `&mut`, and queries add entries only for levels that had none, and remove nothing.
unsafe fn outlive<'a, T: Pod>(view: View<'_, Global<T>>) -> View<'a, Global<T>> {
    // SAFETY: guaranteed by the caller.
    unsafe { View::new(view.into_param(), Reach::none()) }
}

/// Deliberate bugs where kernels find levels by the addresses in the table: the checked device must find them.
#[cfg(test)]
mod planted {
    use super::*;
    use crate::levels::Intervals;
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
        let table = stack.lock_index().table.as_ref().unwrap().slice(..2 * ENTRY_WORDS).unwrap().to_vec(stream);
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
            let index = stack.index.get_mut().unwrap();
            index.table.as_mut().unwrap().slice_mut(..table.len()).unwrap().copy_from_host(&stream, &table).unwrap();
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
        let index = stack.index.get_mut().unwrap();
        index.table.as_mut().unwrap().slice_mut(..table.len()).unwrap().copy_from_host(&stream, &table).unwrap();
        let (low, high) = (stream.upload(&[0u32]).unwrap(), stream.upload(&[u32::MAX]).unwrap());
        let intervals = Intervals { low: low.as_slice(), high: high.as_slice() };
        assert!(matches!(fault(stack.ranges(&stream, intervals).map(drop)), FaultKind::NotGiven { .. }));
        assert!(matches!(fault(stack.count(&stream, intervals).map(drop)), FaultKind::NotGiven { .. }));
    }
}
