//! The memory of the device: allocations, and in checked mode which of their bytes were written, which memory a launch may
//! use, and what was freed lately.

use crate::kernel::{Buffer, Kernel, Reach};
use std::alloc::{self, Layout};
use std::backtrace::Backtrace;
use std::collections::{BTreeMap, VecDeque};
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
            Ok(layout) => unsafe { alloc::alloc_zeroed(layout) },
            Err(_) => std::ptr::null_mut(),
        };
        if pointer.is_null() {
            self.used.fetch_sub(bytes, Ordering::Relaxed);
            // What the system has left is not known; it is less than what was asked for.
            return Err(AllocError { requested: bytes, free: 0 });
        }
        Ok(pointer)
    }

    /// Memory that is no longer used may be allocated again, as far as the limit goes.
    pub fn discount(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Gives memory back to the system.
    ///
    /// # Safety
    /// `pointer` and `bytes` are those of an allocation of this heap, which was [discounted](Self::discount), and which
    /// nobody uses any more.
    pub unsafe fn give_back(&self, pointer: *mut u8, bytes: usize) {
        // SAFETY: allocated with this layout.
        unsafe { alloc::dealloc(pointer, Layout::from_size_align_unchecked(bytes, ALIGN)) };
    }
}

/// What is known of memory in checked mode: which bytes of every allocation were written, and what was freed lately.
#[derive(Debug, Default)]
pub(super) struct Known {
    by_start: BTreeMap<usize, Bits>,
    /// The oldest first.
    freed: VecDeque<Freed>,
    freed_bytes: usize,
}

/// Memory that was freed and is kept, so that nobody else gets it.
#[derive(Debug)]
struct Freed {
    pointer: *mut u8,
    bytes: usize,
    /// The line that freed it, if that could be found out.
    by: Option<String>,
}

// SAFETY: the pointer is that of memory which nobody uses.
unsafe impl Send for Known {}

/// Freed memory that is kept: bytes and pieces.
const MOST_FREED_BYTES: usize = 16 << 20;
const MOST_FREED: usize = 256;

impl Known {
    pub fn allocated(&mut self, start: usize, bytes: usize) {
        self.by_start.insert(start, Bits::new(bytes));
    }

    /// Keeps freed memory, and gives what is to be given back instead.
    #[must_use]
    pub fn freed(&mut self, pointer: *mut u8, bytes: usize, by: Option<&Backtrace>) -> Vec<(*mut u8, usize)> {
        self.by_start.remove(&pointer.addr());
        self.freed.push_back(Freed { pointer, bytes, by: by.and_then(line_of) });
        self.freed_bytes += bytes;
        let mut forgotten = Vec::new();
        while self.freed_bytes > MOST_FREED_BYTES || self.freed.len() > MOST_FREED {
            let Some(oldest) = self.freed.pop_front() else { break };
            self.freed_bytes -= oldest.bytes;
            forgotten.push((oldest.pointer, oldest.bytes));
        }
        forgotten
    }

    /// Keeps nothing any more.
    pub fn forget_all(&mut self) -> Vec<(*mut u8, usize)> {
        self.freed_bytes = 0;
        self.freed.drain(..).map(|freed| (freed.pointer, freed.bytes)).collect()
    }

    /// Freed memory that is still kept.
    fn find_freed(&self, address: usize) -> Option<&Freed> {
        self.freed.iter().find(|freed| (0..freed.bytes).contains(&address.wrapping_sub(freed.pointer.addr())))
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

/// The line of the program, outside of this library's runtime and of Rust's own library, that a backtrace comes from.
fn line_of(trace: &Backtrace) -> Option<String> {
    let text = trace.to_string();
    let places = text.lines().filter_map(|line| line.trim().strip_prefix("at "));
    let is_own = |place: &str| {
        // All memory is freed there.
        let of_runtime = place.contains("src/runtime/memory.rs:");
        of_runtime || place.contains("/rustc/") || place.contains("/library/")
    };
    places.into_iter().find(|place| !is_own(place)).map(str::to_owned)
}

/// The memory that a launch may use: what its arguments show, and what they lead to.
#[derive(Debug)]
pub(super) struct Given {
    /// From here to there, ascending and apart.
    pieces: Vec<(usize, usize)>,
}

/// Why memory may not be used.
#[derive(Debug)]
pub(super) enum Refused {
    /// It was freed, by this line if that is known.
    Freed { by: Option<String> },
    /// The launch was not given it; what lies there.
    NotGiven { what: String },
}

impl Given {
    pub fn new<K: Kernel>(known: &Known, kernel: &K, reach: &Reach) -> Self {
        let mut pieces: Vec<(usize, usize)> = Vec::new();
        let mut add = |buffer: &Buffer| {
            let (start, bytes) = (buffer.address, buffer.len.saturating_mul(buffer.element_bytes));
            if bytes == 0 || known.find_freed(start).is_some() {
                return;
            }
            // A view may say that it is longer than its memory. Memory of others is what it is said to be.
            let end = known.find(start).map_or(usize::MAX, |(bits, at)| start + (bits.len - at));
            pieces.push((start, start.saturating_add(bytes).min(end)));
        };
        kernel.params(&mut |_, buffer| add(&buffer));
        reach.buffers().iter().for_each(add);
        pieces.sort_unstable();
        pieces.dedup_by(|next, last| {
            let joins = next.0 <= last.1;
            if joins {
                last.1 = last.1.max(next.1);
            }
            joins
        });
        Self { pieces }
    }

    /// Whether bytes may be used.
    pub fn check(&self, known: &Known, address: usize, bytes: usize) -> Result<(), Refused> {
        let after = self.pieces.partition_point(|&(start, _)| start <= address);
        if after > 0 && address.saturating_add(bytes) <= self.pieces[after - 1].1 {
            return Ok(());
        }
        if let Some(freed) = known.find_freed(address) {
            return Err(Refused::Freed { by: freed.by.clone() });
        }
        let what = match known.find(address) {
            Some((bits, at)) => {
                format!("byte {at} of an allocation of {} bytes that the launch was not given", bits.len)
            }
            None => "memory that is no allocation of the device".to_owned(),
        };
        Err(Refused::NotGiven { what })
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
