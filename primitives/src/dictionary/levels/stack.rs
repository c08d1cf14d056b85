//! The stack of levels that queries go to, and its index.

use super::directory::BUCKET;
use super::find::Levels;
use super::level::Level;
use super::table::{ENTRY_WORDS, MAX_LEVELS};
use crate::dictionary::Key;
use crate::{DeviceVec, Error, Event, Stream};
use bytemuck::Pod;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Levels by age, and their index.
#[derive(Debug)]
pub struct Stack<K: Key, V: Pod> {
    /// Lower ones are newer.
    levels: Vec<Option<Level<K, V>>>,
    /// Elements per bucket of a directory.
    bucket: usize,
    index: Mutex<Index>,
}

#[derive(Debug, Default)]
struct Index {
    table: Option<DeviceVec<u64>>,
    /// Of the levels whose entries are in the table.
    directories: Vec<Option<DeviceVec<u64>>>,
    /// When the last of it was built, for other streams.
    ready: Option<Event>,
}

impl<K: Key, V: Pod> Default for Stack<K, V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: Key, V: Pod> Stack<K, V> {
    /// No levels. Their directories will have a bucket per four elements: 2 bytes per element.
    #[must_use]
    pub fn new() -> Self {
        Self::with_bucket(BUCKET)
    }

    /// No levels. Their directories will have a bucket of 8 bytes for so many elements, which are one at least: the more, the
    /// less memory, and the more keys a query looks at.
    #[must_use]
    pub fn with_bucket(elements: usize) -> Self {
        const { assert!(matches!(size_of::<V>(), 0 | 4 | 8), "values have 0, 4 or 8 bytes") };
        Self {
            levels: std::iter::repeat_with(|| None).take(MAX_LEVELS).collect(),
            bucket: elements.max(1),
            index: Mutex::default(),
        }
    }

    /// How many slots there are.
    pub const SLOTS: usize = MAX_LEVELS;

    /// The level in a slot.
    #[must_use]
    pub fn level(&self, slot: usize) -> Option<&Level<K, V>> {
        self.levels.get(slot)?.as_ref()
    }

    /// The levels that there are, the oldest first, with their slots.
    pub fn oldest_first(&self) -> impl Iterator<Item = (usize, &Level<K, V>)> {
        self.levels.iter().enumerate().rev().filter_map(|(slot, level)| Some((slot, level.as_ref()?)))
    }

    /// Puts a level into a slot, or nothing: an empty level is none. Cannot fail.
    pub fn set(&mut self, slot: usize, level: Option<Level<K, V>>) {
        let index = self.index.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(directory) = index.directories.get_mut(slot) {
            *directory = None;
        }
        self.levels[slot] = level.filter(|level| !level.is_empty());
    }

    /// Takes away all levels. Cannot fail.
    pub fn clear(&mut self) {
        *self = Self::with_bucket(self.bucket);
    }

    /// The only level, if its keys are known to be all different: then everything in it is live.
    pub(super) fn distinct_level(&self) -> Option<&Level<K, V>> {
        let mut levels = self.oldest_first().map(|(_, level)| level);
        let level = levels.next().filter(|level| level.is_distinct())?;
        levels.next().is_none().then_some(level)
    }

    /// Elements, dead or alive.
    #[must_use]
    pub fn len(&self) -> usize {
        self.oldest_first().map(|(_, level)| level.len()).sum()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of device memory, with those of the index as far as it is built.
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

    /// The levels as a kernel's argument, with values as their carrier, or without. Builds what is missing of the index; does
    /// not wait.
    pub(super) fn carried_view<W: Pod>(&self, stream: &Stream) -> Result<Levels<K::Code, W>, Error> {
        // A stream of another device is refused before anything is made there.
        for (_, level) in self.oldest_first() {
            level.parts()?.0.view(stream)?;
        }
        let mut index = self.lock_index();
        let index = &mut *index;
        // Where the levels are, the index is; unless another device asked when there were none.
        if index.table.as_ref().is_some_and(|table| table.view(stream).is_err()) {
            *index = Index::default();
        }
        index.directories.resize_with(MAX_LEVELS, || None);
        let mut is_changed = index.table.is_none();
        if is_changed {
            index.table = Some(stream.uninit(MAX_LEVELS * ENTRY_WORDS)?);
        }
        let Some(table) = &mut index.table else { unreachable!("it was just made") };
        if let Some(ready) = &index.ready {
            stream.wait(ready)?;
        }
        let buffers = self
            .oldest_first()
            .map(|(slot, level)| {
                let mut buffers = level.buffers::<W>(stream, slot)?;
                if index.directories[slot].is_none() {
                    index.directories[slot] = Some(level.build_directory(stream, table, slot, self.bucket)?);
                    is_changed = true;
                }
                if let Some(directory) = &index.directories[slot] {
                    buffers.directory = directory.view(stream)?;
                }
                Ok(buffers)
            })
            .collect::<Result<Vec<_>, Error>>();
        // Also if not all could be built: other streams must wait for those that were, and for the table's memory.
        if is_changed {
            index.ready = Some(stream.record()?);
        }
        Ok(Levels::new(table.view(stream)?, K::SIGN, &buffers?))
    }
}
