//! The memory of the device: its allocations. In checked mode also which bytes are initialised, which memory a launch
//! may use, and recently freed memory.

use super::fault::Site;
use super::pages;
use crate::model::Buffer;
use std::alloc::{self, Layout};
use std::backtrace::Backtrace;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

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
    kept: Mutex<Kept>,
}

/// Freed memory of some size, for later allocations: to return it to the system, and to get it again page by page, takes ten
/// times as long as to zero it.
#[derive(Debug, Default)]
struct Kept {
    by_size: BTreeMap<usize, Vec<*mut u8>>,
    bytes: usize,
}

// SAFETY: nothing uses the memory.
unsafe impl Send for Kept {}

impl Kept {
    /// The most bytes that are kept.
    const MOST: usize = 32 << 20;
    /// Sizes of memory that is kept are multiples of this one.
    const STEP: usize = 16 << 10;

    /// Returns the size of an allocation: those of at least one step are rounded up, so that similar ones share memory.
    fn size(bytes: usize) -> usize {
        if bytes < Self::STEP || pages::are_pages(bytes) {
            bytes
        } else {
            bytes.checked_next_multiple_of(Self::STEP).unwrap_or(bytes)
        }
    }

    /// Returns kept memory of this size.
    fn take(&mut self, size: usize) -> Option<*mut u8> {
        let pointer = self.by_size.get_mut(&size)?.pop()?;
        self.bytes -= size;
        Some(pointer)
    }

    /// Keeps memory of this size. Returns whether there is room for it.
    fn keep(&mut self, pointer: *mut u8, size: usize) -> bool {
        let is_kept = size >= Self::STEP && self.bytes + size <= Self::MOST;
        if is_kept {
            self.by_size.entry(size).or_default().push(pointer);
            self.bytes += size;
        }
        is_kept
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        for (&size, blocks) in &self.by_size {
            for &pointer in blocks {
                // SAFETY: allocated with this layout, and used by nobody.
                unsafe { alloc::dealloc(pointer, Layout::from_size_align_unchecked(size, ALIGN)) };
            }
        }
    }
}

impl Heap {
    pub fn new(limit: Option<usize>) -> Self {
        Self { limit: limit.unwrap_or(usize::MAX), used: AtomicUsize::new(0), kept: Mutex::default() }
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
        let kept = self.kept().take(Kept::size(bytes));
        let pointer = match (kept, Layout::from_size_align(Kept::size(bytes), ALIGN)) {
            (Some(kept), _) => {
                // SAFETY: the memory is at least as long, and nothing uses it.
                unsafe { kept.write_bytes(0, bytes) };
                kept
            }
            (None, Ok(_)) if pages::are_pages(bytes) => pages::allocate(bytes),
            // SAFETY: the layout's size is not zero.
            (None, Ok(layout)) => unsafe { alloc::alloc_zeroed(layout) },
            (None, Err(_)) => std::ptr::null_mut(),
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

    /// Returns memory to the system, or keeps it for later allocations.
    ///
    /// # Safety
    /// `pointer` and `bytes` must be those of an allocation of this heap that was [discounted](Self::discount) and is
    /// no longer used.
    pub unsafe fn give_back(&self, pointer: *mut u8, bytes: usize) {
        if pages::are_pages(bytes) {
            // SAFETY: allocated as pages. The caller guarantees the rest.
            return unsafe { pages::free(pointer, bytes) };
        }
        let size = Kept::size(bytes);
        if !self.kept().keep(pointer, size) {
            // SAFETY: allocated with this layout.
            unsafe { alloc::dealloc(pointer, Layout::from_size_align_unchecked(size, ALIGN)) };
        }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The state of memory in checked mode: the initialised bytes of every allocation, and recently freed memory.
#[derive(Debug, Default)]
pub(crate) struct Known {
    by_start: BTreeMap<usize, Live>,
    freed: BTreeMap<usize, Freed>,
    /// The starts of freed memory, oldest first.
    freed_in_order: VecDeque<usize>,
    freed_bytes: usize,
}

#[derive(Debug)]
struct Live {
    pointer: *mut u8,
    bits: Bits,
    /// The line that allocated it.
    site: Site,
}

/// Freed memory that is kept for a while, so that it is not allocated again.
#[derive(Debug)]
struct Freed {
    pointer: *mut u8,
    bytes: usize,
    site: Option<Site>,
    /// The calls that freed it, if known.
    by: Option<Arc<Backtrace>>,
}

// SAFETY: the pointers refer to memory that nothing uses, or that launches use in turn.
unsafe impl Send for Known {}

/// The most bytes and the most allocations of freed memory that are kept. A backtrace takes about 2 KB.
const MOST_FREED_BYTES: usize = 128 << 20;
const MOST_FREED: usize = 16 << 10;

impl Known {
    pub fn allocated(&mut self, pointer: *mut u8, bytes: usize, site: Site) {
        self.by_start.insert(pointer.addr(), Live { pointer, bits: Bits::new(bytes), site });
    }

    /// Keeps freed memory. Returns the older memory to give back to the system in its place.
    #[must_use]
    pub fn freed(&mut self, pointer: *mut u8, bytes: usize, by: Option<Arc<Backtrace>>) -> Vec<(*mut u8, usize)> {
        let site = self.by_start.remove(&pointer.addr()).map(|live| live.site);
        self.freed.insert(pointer.addr(), Freed { pointer, bytes, site, by });
        self.freed_in_order.push_back(pointer.addr());
        self.freed_bytes += bytes;
        let mut forgotten = Vec::new();
        while self.freed_bytes > MOST_FREED_BYTES || self.freed.len() > MOST_FREED {
            let oldest = self.freed_in_order.pop_front().and_then(|start| self.freed.remove(&start));
            let Some(oldest) = oldest else { break };
            self.freed_bytes -= oldest.bytes;
            forgotten.push((oldest.pointer, oldest.bytes));
        }
        forgotten
    }

    /// Stops keeping freed memory. Returns all of it.
    pub fn forget_all(&mut self) -> Vec<(*mut u8, usize)> {
        self.freed_bytes = 0;
        self.freed_in_order.clear();
        std::mem::take(&mut self.freed).into_values().map(|freed| (freed.pointer, freed.bytes)).collect()
    }

    /// Returns the kept freed memory that holds `address`.
    fn find_freed(&self, address: usize) -> Option<&Freed> {
        let (start, freed) = self.freed.range(..=address).next_back()?;
        (address - start < freed.bytes).then_some(freed)
    }

    /// Returns the allocation that holds `address`, and the offset in it.
    fn find(&self, address: usize) -> Option<(&Live, usize)> {
        let (start, live) = self.by_start.range(..=address).next_back()?;
        (address - start < live.bits.len).then_some((live, address - start))
    }

    fn find_mut(&mut self, address: usize) -> Option<(&mut Bits, usize)> {
        let (start, live) = self.by_start.range_mut(..=address).next_back()?;
        (address - start < live.bits.len).then_some((&mut live.bits, address - start))
    }

    pub fn mark(&mut self, address: usize, bytes: usize) {
        if let Some((bits, at)) = self.find_mut(address) {
            bits.set(at, bytes);
        }
    }

    /// Returns the first uninitialised byte, counted from `address`. Memory of other owners counts as initialised.
    pub fn first_unwritten(&self, address: usize, bytes: usize) -> Option<usize> {
        self.find(address).and_then(|(live, at)| live.bits.first_unset(at, bytes))
    }

    /// Copies which bytes are initialised along with the memory.
    pub fn copy(&mut self, from: usize, to: usize, bytes: usize) {
        let source: Vec<bool> = match self.find(from) {
            Some((live, at)) => (at..at + bytes).map(|byte| live.bits.get(byte)).collect(),
            None => vec![true; bytes],
        };
        if let Some((bits, at)) = self.find_mut(to) {
            for (byte, written) in source.into_iter().enumerate() {
                bits.assign(at + byte, written);
            }
        }
    }
}

/// Returns who called this library: the innermost line of a backtrace outside the library's runtime and the standard
/// library. If that function has no line information, returns its name.
fn caller_of(trace: &Backtrace) -> Option<String> {
    let text = trace.to_string();
    let mut lines = text.lines().map(str::trim).peekable();
    while let Some(line) = lines.next() {
        let Some((_, function)) = line.split_once(": ") else { continue };
        let place = lines.next_if(|next| next.starts_with("at ")).and_then(|next| next.strip_prefix("at "));
        // The names of methods of traits begin with `<`.
        let function = function.trim_start_matches('<');
        let is_own = ["gpu_primitives::host::runtime", "std::", "core::", "alloc::", "__rust", "rust_"]
            .iter()
            .any(|own| function.starts_with(own));
        let is_own_line = |place: &str| {
            ["src/host/runtime/memory.rs:", "src/host/runtime/bytes.rs:", "/rustc/", "/library/"]
                .iter()
                .any(|own| place.contains(own))
        };
        match place {
            Some(place) if !is_own_line(place) && !is_own => return Some(place.to_owned()),
            // A stripped executable has no names, either.
            None if !is_own && !function.starts_with("unknown>") => return Some(format!("`{function}`")),
            _ => {}
        }
    }
    None
}

/// The memory that a launch may use: the memory of its arguments, and the memory reachable through them.
#[derive(Debug)]
pub(crate) struct Given {
    /// In ascending order and disjoint: buffers that overlap or touch are one piece.
    pieces: Vec<Piece>,
    /// The buffers of all pieces, in ascending order.
    parts: Vec<Part>,
}

#[derive(Debug)]
struct Piece {
    start: usize,
    end: usize,
    /// Its buffers among the parts.
    parts: Range<usize>,
    writable: Writable,
}

/// Whether a kernel may write a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Writable {
    All,
    None,
    Parts,
}

#[derive(Clone, Copy, Debug)]
struct Part {
    start: usize,
    end: usize,
    is_writable: bool,
}

impl Part {
    fn holds(&self, start: usize, end: usize) -> bool {
        self.start <= start && end <= self.end
    }
}

/// Why an access to memory is not allowed.
#[derive(Debug)]
pub(crate) enum Refused {
    /// The memory was freed, by this line if known.
    Freed { allocated: Option<Site>, by: Option<String> },
    /// The launch was not given the memory.
    NotGiven { what: String },
    /// The launch was given the memory, but the view begins in another buffer.
    OtherBuffer,
    /// The launch was given the memory for reading.
    ReadOnly,
}

/// An access that [`Given::check`] has allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Allowed {
    /// Nothing in the launch may write the memory.
    Constant,
    Changing,
}

impl Given {
    pub fn new(known: &Known, buffers: impl IntoIterator<Item = Buffer>) -> Self {
        let mut parts: Vec<Part> = Vec::new();
        for Buffer { address: start, len, element_bytes, is_writable } in buffers {
            let bytes = len.saturating_mul(element_bytes);
            if bytes == 0 || known.find_freed(start).is_some() {
                continue;
            }
            // A view may be longer than its memory. The length of other owners' memory is taken from the view.
            let end = known.find(start).map_or(usize::MAX, |(live, at)| start + (live.bits.len - at));
            parts.push(Part { start, end: start.saturating_add(bytes).min(end), is_writable });
        }
        parts.sort_unstable_by_key(|part| (part.start, part.end, part.is_writable));
        // Of equal buffers, the last one is writable if any of them is.
        parts.dedup_by(|next, last| {
            let is_same = (next.start, next.end) == (last.start, last.end);
            last.is_writable |= is_same && next.is_writable;
            is_same
        });
        let mut pieces: Vec<Piece> = Vec::new();
        for (index, part) in parts.iter().enumerate() {
            let writable = if part.is_writable { Writable::All } else { Writable::None };
            match pieces.last_mut().filter(|piece| part.start <= piece.end) {
                Some(piece) => {
                    piece.end = piece.end.max(part.end);
                    piece.parts.end = index + 1;
                    if piece.writable != writable {
                        piece.writable = Writable::Parts;
                    }
                }
                None => pieces.push(Piece { start: part.start, end: part.end, parts: index..index + 1, writable }),
            }
        }
        Self { pieces, parts }
    }

    /// Returns the start and the length of each piece that is in an allocation of the device.
    pub fn allocated(&self, known: &Known) -> impl Iterator<Item = (*mut u8, usize)> {
        self.pieces.iter().filter_map(|piece| {
            let (live, at) = known.find(piece.start)?;
            Some((live.pointer.wrapping_add(at), (piece.end - piece.start).min(live.bits.len - at)))
        })
    }

    /// Returns the piece that holds a byte.
    fn piece(&self, address: usize) -> Option<&Piece> {
        let after = self.pieces.partition_point(|piece| piece.start <= address);
        self.pieces[..after].last().filter(|piece| address < piece.end)
    }

    /// Checks whether the launch may use the `bytes` bytes at `address` through a view that begins at `base`.
    pub fn check(
        &self,
        known: &Known,
        base: usize,
        address: usize,
        bytes: usize,
        writes: bool,
    ) -> Result<Allowed, Refused> {
        let end = address.saturating_add(bytes);
        let Some(piece) = self.piece(address).filter(|piece| end <= piece.end) else {
            return Err(self.refuse(known, address));
        };
        let parts = &self.parts[piece.parts.clone()];
        if let [_, _, ..] = parts {
            let begins = |part: &&Part| (part.start..part.end).contains(&base);
            let is_from_here = |part: &&Part| begins(part) && part.holds(address, end);
            // Most often, the last buffer that begins before the access is the right one.
            let before = parts.partition_point(|part| part.start <= address);
            if !parts[..before].iter().rev().any(|part| is_from_here(&part)) && parts.iter().any(|part| begins(&part)) {
                return Err(Refused::OtherBuffer);
            }
        }
        // A view may also begin outside all buffers: then only the access counts.
        if !(piece.start..piece.end).contains(&base) && self.piece(base).is_some() {
            return Err(Refused::OtherBuffer);
        }
        let is_writable = || match piece.writable {
            Writable::All => true,
            Writable::None => false,
            Writable::Parts => parts.iter().any(|part| part.is_writable && part.holds(address, end)),
        };
        if writes && !is_writable() {
            return Err(Refused::ReadOnly);
        }
        Ok(if piece.writable == Writable::None { Allowed::Constant } else { Allowed::Changing })
    }

    #[cold]
    fn refuse(&self, known: &Known, address: usize) -> Refused {
        if let Some(freed) = known.find_freed(address) {
            return Refused::Freed { allocated: freed.site, by: freed.by.as_deref().and_then(caller_of) };
        }
        let what = match known.find(address) {
            Some((live, at)) => {
                let (bytes, site) = (live.bits.len, live.site);
                format!(
                    "byte {at} of an allocation of {bytes} bytes that the launch was not given, allocated at {site}"
                )
            }
            None => "memory outside all allocations of the device".to_owned(),
        };
        Refused::NotGiven { what }
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
