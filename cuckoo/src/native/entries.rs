//! The last positions of keys in a batch: see [`Entries`]. The methods do what those of the kernels do.

use super::atomics;
use crate::device::Entries;
use gpu_dictionary::WordCode as KeyCode;
use gpu_primitives::kernel::Team;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// The entries of a batch, and its keys.
pub struct Batch<'a, C> {
    entries: Entries,
    words: &'a [AtomicU32],
    keys: &'a [C],
}

impl<'a, C: KeyCode> Batch<'a, C> {
    /// Makes them of their parts.
    ///
    /// # Safety
    /// While the result is used, the entries are used only by this type.
    pub unsafe fn new(entries: Entries, keys: &'a [C]) -> Self {
        // SAFETY: guaranteed by the caller.
        Self { entries, words: unsafe { atomics::words(entries.words) }, keys }
    }

    /// Returns the keys of the batch.
    pub fn keys(&self) -> &'a [C] {
        self.keys
    }

    /// Notes the keys that have an entry.
    pub fn recorded(&self, team: Team) -> Recorded {
        let bits: Vec<AtomicU64> = (0..Recorded::BITS / 64).map(|_| AtomicU64::new(0)).collect();
        let recorded = Recorded { entries: self.entries, bits };
        let note = |_: usize, range: Range<usize>| {
            for there in self.words[range].iter().map(|word| word.load(Relaxed)) {
                if there > self.entries.base {
                    let bit = recorded.bit(self.keys[self.position(there)]);
                    recorded.bits[bit / 64].fetch_or(1 << (bit % 64), Relaxed);
                }
            }
        };
        // SAFETY: the body captures atomics and what is only read.
        unsafe { team.divide(self.words.len(), note) };
        recorded
    }

    /// Finds the entry of a key, or the free entry where it would be. Returns it with what it holds, 0 if it is free.
    ///
    /// # Panics
    /// If there are no entries.
    fn seek(&self, key: C) -> (&AtomicU32, u32) {
        let mut entry = self.entries.home(key);
        // Ends: there are more entries than keys.
        loop {
            let word = &self.words[entry];
            let there = word.load(Relaxed);
            if there <= self.entries.base {
                return (word, 0);
            }
            if self.keys[self.position(there)] == key {
                return (word, there);
            }
            entry = self.entries.after(entry);
        }
    }

    /// Returns the position that an entry holds.
    fn position(&self, there: u32) -> usize {
        (there - self.entries.base) as usize - 1
    }

    /// Returns the entry that holds a position.
    fn entry_of(&self, position: usize) -> u32 {
        self.entries.base + position as u32 + 1
    }

    /// Records a position of its key. Returns another position that was recorded, or `None` if it is the first.
    pub fn record(&self, position: usize, key: C) -> Option<usize> {
        let mine = self.entry_of(position);
        loop {
            let (word, there) = self.seek(key);
            if there != 0 {
                if there < mine {
                    word.fetch_max(mine, Relaxed);
                }
                return Some(self.position(there));
            }
            // Another thread may take the entry first, perhaps with this key: then the search goes on.
            let free = word.load(Relaxed);
            if free <= self.entries.base && word.compare_exchange(free, mine, Relaxed, Relaxed).is_ok() {
                return None;
            }
        }
    }

    /// Raises the position of a key to this one, if the key has an entry.
    pub fn raise(&self, position: usize, key: C) {
        let (word, there) = self.seek(key);
        if there != 0 {
            word.fetch_max(self.entry_of(position), Relaxed);
        }
    }

    /// Returns whether a position of this key is recorded.
    pub fn has(&self, key: C) -> bool {
        self.seek(key).1 != 0
    }

    /// Returns whether `position` is the last one recorded of its key.
    pub fn is_last(&self, position: usize, key: C) -> bool {
        self.seek(key).1 == self.entry_of(position)
    }
}

/// The keys that have an entry, as bits of their hashes. These stay in a cache. In most batches few keys have one, and the
/// others need not be looked for in memory.
pub struct Recorded {
    entries: Entries,
    bits: Vec<AtomicU64>,
}

impl Recorded {
    /// The number of bits.
    const BITS: usize = 1 << 17;

    /// Returns the bit of a key.
    #[inline(always)]
    fn bit<C: KeyCode>(&self, key: C) -> usize {
        self.entries.spread(key) as usize >> (u32::BITS - Self::BITS.trailing_zeros())
    }

    /// Returns whether a key may have an entry.
    #[inline(always)]
    pub fn may_have<C: KeyCode>(&self, key: C) -> bool {
        let bit = self.bit(key);
        self.bits[bit / 64].load(Relaxed) >> (bit % 64) & 1 != 0
    }
}
