//! The memory of the device: its allocations. In checked mode also which bytes are initialised, which memory a launch
//! may use, and recently freed memory.

use crate::model::Buffer;
use std::alloc::{self, Layout};
use std::backtrace::Backtrace;
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};

/// The alignment of every allocation, as on a GPU.
const ALIGN: usize = 256;

/// The error of an allocation that did not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AllocError {
    /// The requested number of bytes.
    pub requested: usize,
    /// The number of free bytes.
    pub free: usize,
}

/// The allocator: allocates memory and counts it.
#[derive(Debug)]
pub(crate) struct Heap {
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
            // How much memory the system has left is unknown, but it is less than requested.
            return Err(AllocError { requested: bytes, free: 0 });
        }
        Ok(pointer)
    }

    /// Subtracts freed memory from the memory in use, which counts towards the limit.
    pub fn discount(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Returns memory to the system.
    ///
    /// # Safety
    /// `pointer` and `bytes` must be those of an allocation of this heap that was [discounted](Self::discount) and is
    /// no longer used.
    pub unsafe fn give_back(&self, pointer: *mut u8, bytes: usize) {
        // SAFETY: allocated with this layout.
        unsafe { alloc::dealloc(pointer, Layout::from_size_align_unchecked(bytes, ALIGN)) };
    }
}

/// The state of memory in checked mode: the initialised bytes of every allocation, and recently freed memory.
#[derive(Debug, Default)]
pub(crate) struct Known {
    by_start: BTreeMap<usize, Bits>,
    /// Oldest first.
    freed: VecDeque<Freed>,
    freed_bytes: usize,
}

/// Freed memory that is kept for a while, so that it is not allocated again.
#[derive(Debug)]
struct Freed {
    pointer: *mut u8,
    bytes: usize,
    /// The line that freed it, if known.
    by: Option<String>,
}

// SAFETY: the pointer refers to memory that nothing uses.
unsafe impl Send for Known {}

/// The most bytes and the most allocations of freed memory that are kept.
const MOST_FREED_BYTES: usize = 16 << 20;
const MOST_FREED: usize = 256;

impl Known {
    pub fn allocated(&mut self, start: usize, bytes: usize) {
        self.by_start.insert(start, Bits::new(bytes));
    }

    /// Keeps freed memory. Returns the older memory to give back to the system in its place.
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

    /// Stops keeping freed memory. Returns all of it.
    pub fn forget_all(&mut self) -> Vec<(*mut u8, usize)> {
        self.freed_bytes = 0;
        self.freed.drain(..).map(|freed| (freed.pointer, freed.bytes)).collect()
    }

    /// Returns the kept freed memory that holds `address`.
    fn find_freed(&self, address: usize) -> Option<&Freed> {
        self.freed.iter().find(|freed| (0..freed.bytes).contains(&address.wrapping_sub(freed.pointer.addr())))
    }

    /// Returns the allocation that holds `address`, and the offset in it.
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

    /// Returns the first uninitialised byte, counted from `address`. Memory of other owners counts as initialised.
    pub fn first_unwritten(&self, address: usize, bytes: usize) -> Option<usize> {
        self.find(address).and_then(|(bits, at)| bits.first_unset(at, bytes))
    }

    /// Copies which bytes are initialised along with the memory.
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

/// Returns the innermost line of a backtrace outside this library's runtime and the standard library.
fn line_of(trace: &Backtrace) -> Option<String> {
    let text = trace.to_string();
    let places = text.lines().filter_map(|line| line.trim().strip_prefix("at "));
    let is_own = |place: &str| {
        // All memory is freed in that file.
        let of_runtime = place.contains("src/runtime/memory.rs:");
        of_runtime || place.contains("/rustc/") || place.contains("/library/")
    };
    places.into_iter().find(|place| !is_own(place)).map(str::to_owned)
}

/// The memory that a launch may use: the memory of its arguments, and the memory reachable through them.
#[derive(Debug)]
pub(crate) struct Given {
    /// Start and end of each piece, in ascending order and disjoint.
    pieces: Vec<(usize, usize)>,
}

/// Why an access to memory is not allowed.
#[derive(Debug)]
pub(crate) enum Refused {
    /// The memory was freed, by this line if known.
    Freed { by: Option<String> },
    /// The launch was not given the memory.
    NotGiven { what: String },
}

impl Given {
    pub fn new(known: &Known, buffers: impl IntoIterator<Item = Buffer>) -> Self {
        let mut pieces: Vec<(usize, usize)> = Vec::new();
        for buffer in buffers {
            let (start, bytes) = (buffer.address, buffer.len.saturating_mul(buffer.element_bytes));
            if bytes == 0 || known.find_freed(start).is_some() {
                continue;
            }
            // A view may be longer than its memory. The length of other owners' memory is taken from the view.
            let end = known.find(start).map_or(usize::MAX, |(bits, at)| start + (bits.len - at));
            pieces.push((start, start.saturating_add(bytes).min(end)));
        }
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

    /// Checks whether the launch may use these bytes.
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
            None => "memory outside all allocations of the device".to_owned(),
        };
        Err(Refused::NotGiven { what })
    }
}

/// One bit per byte.
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

    /// Splits `start..start + count` into words: the index of each word, and the mask of its bits.
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

    /// Returns the first unset bit of `start..start + count`, counted from `start`.
    pub fn first_unset(&self, start: usize, count: usize) -> Option<usize> {
        self.pieces(start, count).find_map(|(word, mask)| {
            let unset = mask & !self.words[word];
            (unset != 0).then(|| word * 64 + unset.trailing_zeros() as usize - start)
        })
    }
}
