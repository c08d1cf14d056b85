//! The memory of the device: allocations, and in checked mode which of their bytes were written.

use std::alloc::{self, Layout};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Every allocation begins at a multiple of this, as on a GPU.
const ALIGN: usize = 256;

/// There is not enough memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AllocError {
    /// Bytes asked for.
    pub requested: usize,
    /// Bytes that were free.
    pub free: usize,
}

/// Allocates and counts.
#[derive(Debug)]
pub(super) struct Heap {
    limit: usize,
    used: AtomicUsize,
}

impl Heap {
    pub fn new(limit: Option<usize>) -> Self {
        Self { limit: limit.unwrap_or(usize::MAX), used: AtomicUsize::new(0) }
    }

    pub fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    pub fn allocate(&self, bytes: usize) -> Result<*mut u8, AllocError> {
        if bytes == 0 {
            return Ok(std::ptr::without_provenance_mut(ALIGN));
        }
        let take = |used: usize| used.checked_add(bytes).filter(|&used| used <= self.limit);
        let failed = |used: usize| AllocError { requested: bytes, free: self.limit - used };
        self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).map_err(failed)?;
        let pointer = match Layout::from_size_align(bytes, ALIGN) {
            // SAFETY: the layout's size is not zero.
            Ok(layout) => unsafe { alloc::alloc(layout) },
            Err(_) => std::ptr::null_mut(),
        };
        if pointer.is_null() {
            self.used.fetch_sub(bytes, Ordering::Relaxed);
            // What the system has left is not known; it is less than what was asked for.
            return Err(AllocError { requested: bytes, free: 0 });
        }
        Ok(pointer)
    }

    /// # Safety
    /// `pointer` and `bytes` are those of an allocation of this heap, which nobody uses any more.
    pub unsafe fn free(&self, pointer: *mut u8, bytes: usize) {
        if bytes != 0 {
            alloc::dealloc(pointer, Layout::from_size_align_unchecked(bytes, ALIGN));
            self.used.fetch_sub(bytes, Ordering::Relaxed);
        }
    }
}

/// Which bytes of memory were written: a bit per byte of every allocation that is known.
#[derive(Debug, Default)]
pub(super) struct Written {
    by_start: BTreeMap<usize, Bits>,
}

impl Written {
    pub fn allocated(&mut self, start: usize, bytes: usize) {
        self.by_start.insert(start, Bits::new(bytes));
    }

    pub fn freed(&mut self, start: usize) {
        self.by_start.remove(&start);
    }

    /// The allocation that holds `address`, and where in it.
    fn find(&self, address: usize) -> Option<(&Bits, usize)> {
        let (start, bits) = self.by_start.range(..=address).next_back()?;
        (address - start < bits.len).then_some((bits, address - start))
    }

    fn find_mut(&mut self, address: usize) -> Option<(&mut Bits, usize)> {
        let (start, bits) = self.by_start.range_mut(..=address).next_back()?;
        (address - start < bits.len).then_some((bits, address - start))
    }

    pub fn mark(&mut self, address: usize, bytes: usize) {
        if let Some((bits, at)) = self.find_mut(address) {
            bits.set(at, bytes);
        }
    }

    /// The first byte, counted from `address`, that was not written. Memory of others counts as written.
    pub fn first_unwritten(&self, address: usize, bytes: usize) -> Option<usize> {
        self.find(address).and_then(|(bits, at)| bits.first_unset(at, bytes))
    }

    /// What was written stays so when memory is copied.
    pub fn copy(&mut self, from: usize, to: usize, bytes: usize) {
        let source: Vec<bool> = match self.find(from) {
            Some((bits, at)) => (at..at + bytes).map(|byte| bits.get(byte)).collect(),
            None => vec![true; bytes],
        };
        if let Some((bits, at)) = self.find_mut(to) {
            for (byte, written) in source.into_iter().enumerate() {
                bits.assign(at + byte, written);
            }
        }
    }
}

/// A bit per byte.
#[derive(Debug, Default)]
pub(super) struct Bits {
    words: Vec<u64>,
    len: usize,
}

impl Bits {
    pub fn new(len: usize) -> Self {
        Self { words: vec![0; len.div_ceil(64)], len }
    }

    fn get(&self, bit: usize) -> bool {
        self.words.get(bit / 64).is_some_and(|word| word >> (bit % 64) & 1 == 1)
    }

    fn assign(&mut self, bit: usize, value: bool) {
        if let Some(word) = self.words.get_mut(bit / 64) {
            *word = *word & !(1 << (bit % 64)) | u64::from(value) << (bit % 64);
        }
    }

    /// The pieces of `start..start + count`, as words and the bits in them.
    fn pieces(&self, start: usize, count: usize) -> impl Iterator<Item = (usize, u64)> + use<> {
        let end = (start + count).min(self.len);
        let mut at = start;
        std::iter::from_fn(move || {
            if at >= end {
                return None;
            }
            let (word, low) = (at / 64, at % 64);
            let width = (64 - low).min(end - at);
            at += width;
            Some((word, (!0 >> (64 - width)) << low))
        })
    }

    pub fn set(&mut self, start: usize, count: usize) {
        for (word, mask) in self.pieces(start, count) {
            self.words[word] |= mask;
        }
    }

    /// The first unset bit of `start..start + count`, counted from `start`.
    pub fn first_unset(&self, start: usize, count: usize) -> Option<usize> {
        self.pieces(start, count).find_map(|(word, mask)| {
            let unset = mask & !self.words[word];
            (unset != 0).then(|| word * 64 + unset.trailing_zeros() as usize - start)
        })
    }
}
