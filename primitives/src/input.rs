//! What kernels read their elements from: a view, or a source whose code is put in when the kernel is loaded.

use crate::arch::Cache;
use crate::form::{Buffer, Holes, Param};
#[cfg(not(target_arch = "nvptx64"))]
use crate::hole::Calls;
use crate::hole::{Hole, RegisterRepr};
use crate::view::Global;
use bytemuck::Pod;

/// Elements that a kernel reads by their indices.
pub trait Input<T>: Param {
    /// The elements lie in memory one after the other, and the length is known to the host.
    const IS_VIEW: bool;

    /// Returns the number of elements.
    ///
    /// # Safety
    /// The memory of a length that only the device knows is valid, and nothing writes it at the same time.
    unsafe fn count(&self) -> usize;

    /// Returns element `index`.
    ///
    /// # Safety
    /// `index` is less than the [count](Self::count), and nothing writes the element at the same time.
    unsafe fn item(&self, index: usize) -> T;

    /// Returns the first index from which on whole [rows](Self::row) can be read; [`usize::MAX`] if there is none.
    fn lead<const VEC: usize>(&self) -> usize;

    /// Returns `VEC` elements from `index + offset` on, which are read in wide accesses. An offset that the compiler knows costs
    /// no instruction.
    ///
    /// # Safety
    /// All of them are elements, and nothing writes them at the same time. `index + offset` is the [lead](Self::lead), or a
    /// multiple of `VEC` more.
    unsafe fn row<const VEC: usize>(&self, index: usize, offset: usize) -> [T; VEC];

    /// Returns `len` elements from `start` on, where they lie in memory, or computed into `room`.
    ///
    /// # Safety
    /// `start + len` is at most the [count](Self::count). Nothing writes the elements while the slice is used.
    #[cfg(not(target_arch = "nvptx64"))]
    unsafe fn elements<'a>(&self, start: usize, len: usize, room: &'a mut Vec<T>) -> &'a [T];
}

impl<T: Pod> Input<T> for Global<T> {
    const IS_VIEW: bool = true;

    #[inline(always)]
    unsafe fn count(&self) -> usize {
        self.len()
    }

    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn item(&self, index: usize) -> T {
        self.get(index)
    }

    #[inline(always)]
    fn lead<const VEC: usize>(&self) -> usize {
        let bytes = const { row_alignment(size_of::<[T; VEC]>()) };
        let missing = self.as_ptr().addr().wrapping_neg() % bytes;
        // An element that is aligned to less than its size may be in a row at no address.
        if missing.is_multiple_of(size_of::<T>()) { missing / size_of::<T>() } else { usize::MAX }
    }

    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn row<const VEC: usize>(&self, index: usize, offset: usize) -> [T; VEC] {
        self.load_vec(index + offset, Cache::Default)
    }

    #[cfg(not(target_arch = "nvptx64"))]
    unsafe fn elements<'a>(&self, start: usize, len: usize, _: &'a mut Vec<T>) -> &'a [T] {
        // SAFETY: guaranteed by the caller.
        unsafe { self.slice(start, len).as_slice() }
    }
}

/// A number of elements, which perhaps only the device knows.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Count {
    /// The number of elements; the most that it can be, if only the device knows it.
    len: usize,
    /// The number of elements, if only the device knows it. Otherwise empty.
    counted: Global<u64>,
}

// SAFETY: `repr(C)`, plain data and a `Param`.
unsafe impl Param for Count {
    fn buffers(&self, _: &'static str, visit: &mut dyn FnMut(&'static str, Buffer)) {
        self.counted.buffers("length", visit);
    }
}

impl Count {
    /// Returns the most that the number can be.
    #[inline(always)]
    pub fn most(&self) -> usize {
        self.len
    }

    /// Returns the number.
    ///
    /// # Safety
    /// The memory of a number that only the device knows is valid, and nothing writes it at the same time.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn get(&self) -> usize {
        if self.counted.is_empty() { self.len } else { (self.counted.get(0) as usize).min(self.len) }
    }
}

#[cfg(not(target_arch = "nvptx64"))]
impl Count {
    /// Creates a number of at most `len` elements.
    pub(crate) fn new(len: usize, counted: Option<Global<u64>>) -> Self {
        Self { len, counted: counted.unwrap_or(Global::empty()) }
    }
}

/// What limits a slice to the number of elements that only the device knows. Without one, all elements of the slice count.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Limit {
    /// The number of elements, from the first element of the whole slice on. Empty if there is no limit.
    counted: Global<u64>,
    /// The elements of the whole slice before this part of it.
    skipped: usize,
}

// SAFETY: `repr(C)`, a `Param` and plain data.
unsafe impl Param for Limit {
    fn buffers(&self, _: &'static str, visit: &mut dyn FnMut(&'static str, Buffer)) {
        if !self.counted.is_empty() {
            self.counted.buffers("length", visit);
        }
    }
}

impl Limit {
    /// Reads the number of elements of the whole slice. Every thread may ask: the lanes of a warp read one word together, and
    /// only if there is a limit. The word is on its way until [`of`](Self::of) needs it.
    ///
    /// # Safety
    /// The memory of the number is valid, and nothing writes it at the same time.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn ask(&self) -> u64 {
        if self.counted.is_empty() { u64::MAX } else { self.counted.get(0) }
    }

    /// Returns the number of elements of a slice of `len`, where the whole slice has as many as the answer says.
    #[inline(always)]
    fn of(&self, len: usize, answer: u64) -> usize {
        (answer as usize).saturating_sub(self.skipped).min(len)
    }

    /// Returns the elements of a slice that count.
    ///
    /// # Safety
    /// The memory of the number is valid, and nothing writes it at the same time.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn first<T: Pod>(&self, all: Global<T>) -> Global<T> {
        all.slice(0, self.of(all.len(), self.ask()))
    }

    /// Returns whether there is a limit.
    #[inline(always)]
    pub fn is_some(&self) -> bool {
        !self.counted.is_empty()
    }
}

#[cfg(not(target_arch = "nvptx64"))]
impl Limit {
    /// All elements count.
    pub(crate) const NONE: Self = Self { counted: Global::empty(), skipped: 0 };

    /// As many elements count as the device says.
    pub(crate) fn new(counted: Global<u64>) -> Self {
        Self { counted, skipped: 0 }
    }

    /// Returns what limits the elements from `start` on.
    pub(crate) fn from(self, start: usize) -> Self {
        Self { skipped: self.skipped + start, ..self }
    }

    /// Returns the number of elements of the whole slice, if only the device knows it. This is no part of another slice.
    pub(crate) fn counted(self) -> Option<Global<u64>> {
        debug_assert_eq!(self.skipped, 0, "a part of a slice has another number of elements");
        (!self.counted.is_empty()).then_some(self.counted)
    }
}

/// The first elements of a slice: as many as there are, or as many as the device says.
#[repr(C)]
#[derive(Debug)]
pub struct Prefix<T> {
    all: Global<T>,
    limit: Limit,
}

// Derived impls would require `Copy` of the type parameter.
impl<T> Clone for Prefix<T> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Prefix<T> {}

// SAFETY: `repr(C)`, and all fields are `Param`s.
unsafe impl<T: Pod> Param for Prefix<T> {
    fn buffers(&self, name: &'static str, visit: &mut dyn FnMut(&'static str, Buffer)) {
        self.all.buffers(name, visit);
        self.limit.buffers(name, visit);
    }
}

impl<T: Pod> Prefix<T> {
    /// Returns a view of the elements that count.
    ///
    /// # Safety
    /// The memory of a number that only the device knows is valid, and nothing writes it at the same time.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn get(self) -> Global<T> {
        self.limit.first(self.all)
    }
}

#[cfg(not(target_arch = "nvptx64"))]
impl<T: Pod> Prefix<T> {
    /// The first elements of a slice.
    pub(crate) fn new(all: Global<T>, limit: Limit) -> Self {
        Self { all, limit }
    }
}

#[cfg(not(target_arch = "nvptx64"))]
impl<T: Pod> From<Global<T>> for Prefix<T> {
    fn from(all: Global<T>) -> Self {
        Self { all, limit: Limit::NONE }
    }
}

/// [Pairs](crate::pairs::Pairs) of which perhaps only the device knows the number: the [prefix](Prefix) of keys says how many count.
#[repr(C)]
#[derive(Debug)]
pub struct PrefixPairs<K, V> {
    /// The keys.
    pub keys: Prefix<K>,
    /// As many values as there are keys at most.
    pub values: Global<V>,
}

// Derived impls would require `Copy` of the type parameters.
impl<K, V> Clone for PrefixPairs<K, V> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}
impl<K, V> Copy for PrefixPairs<K, V> {}

// SAFETY: `repr(C)`, and all fields are `Param`s.
unsafe impl<K: Pod, V: Pod> Param for PrefixPairs<K, V> {
    fn buffers(&self, name: &'static str, visit: &mut dyn FnMut(&'static str, Buffer)) {
        self.keys.buffers(name, visit);
        self.values.buffers(name, visit);
    }
}

/// The offsets of segments: one more than there are segments, of which perhaps only the device knows the number.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct SegmentOffsets<O> {
    /// At least one offset.
    all: Global<O>,
    segments: Limit,
}

// SAFETY: `repr(C)`, and all fields are `Param`s.
unsafe impl<O: Pod> Param for SegmentOffsets<O> {
    fn buffers(&self, name: &'static str, visit: &mut dyn FnMut(&'static str, Buffer)) {
        self.all.buffers(name, visit);
        self.segments.buffers(name, visit);
    }
}

impl<O: Pod> SegmentOffsets<O> {
    /// Returns a view of the offsets that count.
    ///
    /// # Safety
    /// The memory of a number that only the device knows is valid, and nothing writes it at the same time.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn get(self) -> Global<O> {
        self.all.slice(0, self.segments.of(self.all.len() - 1, self.segments.ask()) + 1)
    }
}

#[cfg(not(target_arch = "nvptx64"))]
impl<O: Pod> SegmentOffsets<O> {
    /// The offsets of the first segments. There is at least one offset.
    pub(crate) fn new(all: Global<O>, segments: Limit) -> Self {
        debug_assert!(!all.is_empty(), "there is the offset of the end");
        Self { all, segments }
    }
}

#[cfg(not(target_arch = "nvptx64"))]
impl<O: Pod> From<Global<O>> for SegmentOffsets<O> {
    fn from(all: Global<O>) -> Self {
        Self::new(all, Limit::NONE)
    }
}

/// The number of slices that a source can read.
pub const MAX_LEAVES: usize = 4;

/// A source that is not known when a kernel is compiled: a [`Hole`] whose code loads or computes an element.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct SourceArg {
    hole: Hole,
    leaves: [Global<u8>; MAX_LEAVES],
    count: Count,
    /// The first index at which every slice has an address that is a multiple of 16; [`NO_ROWS`] if there is none.
    lead: u32,
    /// The bytes that an element reads.
    read: u32,
}

/// The [lead](Input::lead) of a source that has no rows.
const NO_ROWS: u32 = u32::MAX;

/// The most bytes that a row reads: the registers hold no more than some such rows.
const MOST_READ: usize = 32;

/// Returns the largest power of two up to 16 that divides the bytes of a row: the alignment of rows from an address on that is a
/// multiple of 16.
pub(crate) const fn row_alignment(bytes: usize) -> usize {
    if bytes.is_multiple_of(16) { 16 } else { 1 << bytes.trailing_zeros() }
}

// SAFETY: `repr(C)`, and all fields are `Param`s.
unsafe impl Param for SourceArg {
    const HOLES: Holes = Holes::FIRST;

    fn buffers(&self, name: &'static str, visit: &mut dyn FnMut(&'static str, Buffer)) {
        for leaf in &self.leaves {
            leaf.buffers(name, visit);
        }
        self.count.buffers(name, visit);
    }
}

impl<H: RegisterRepr> Input<H> for SourceArg {
    const IS_VIEW: bool = false;

    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn count(&self) -> usize {
        self.count.get()
    }

    #[cfg(target_arch = "nvptx64")]
    #[inline(always)]
    unsafe fn item(&self, index: usize) -> H {
        H::load(index as u64)
    }

    #[cfg(not(target_arch = "nvptx64"))]
    #[inline(always)]
    unsafe fn item(&self, index: usize) -> H {
        let mut element = H::zeroed();
        // SAFETY: there is room for one element. The rest is guaranteed by the caller.
        unsafe { self.compute(index, 1, &raw mut element) };
        element
    }

    #[inline(always)]
    fn lead<const VEC: usize>(&self) -> usize {
        // An element further by `VEC` is further by a multiple of the alignment of rows.
        match self.lead {
            NO_ROWS => usize::MAX,
            _ if self.read as usize * VEC > MOST_READ => usize::MAX,
            lead => lead as usize % VEC,
        }
    }

    #[cfg(target_arch = "nvptx64")]
    #[inline(always)]
    unsafe fn row<const VEC: usize>(&self, index: usize, offset: usize) -> [H; VEC] {
        H::load_row(index as u64, offset as u64)
    }

    #[cfg(not(target_arch = "nvptx64"))]
    #[inline(always)]
    #[track_caller]
    unsafe fn row<const VEC: usize>(&self, index: usize, offset: usize) -> [H; VEC] {
        let (lead, index) = (Input::<H>::lead::<VEC>(self), index + offset);
        assert!(index >= lead && (index - lead).is_multiple_of(VEC), "a row begins at {index}, not {lead} + n * {VEC}");
        // SAFETY: guaranteed by the caller.
        core::array::from_fn(|i| unsafe { self.item(index + i) })
    }

    #[cfg(not(target_arch = "nvptx64"))]
    unsafe fn elements<'a>(&self, start: usize, len: usize, room: &'a mut Vec<H>) -> &'a [H] {
        let slice = self.leaves[0];
        if self.hole.filling().is_slice
            && self.read as usize == size_of::<H>()
            && slice.as_ptr().addr().is_multiple_of(align_of::<H>())
        {
            // SAFETY: they lie in memory as they are held. The rest is guaranteed by the caller.
            return unsafe {
                Global::from_raw(slice.as_ptr().cast::<H>(), self.count.len).slice(start, len).as_slice()
            };
        }
        room.clear();
        room.reserve(len);
        // SAFETY: there is room for them, and all are written. The rest is guaranteed by the caller.
        unsafe {
            self.compute(start, len, room.as_mut_ptr());
            room.set_len(len);
        }
        room
    }
}

#[cfg(not(target_arch = "nvptx64"))]
impl SourceArg {
    /// Where the addresses of the slices are, in bytes from the beginning.
    pub(crate) const LEAVES: usize = core::mem::offset_of!(Self, leaves);

    /// Creates a source of `len` elements at most. It reads slices of elements of these sizes; the size 0 stands for a slice that is read
    /// anywhere.
    pub(crate) fn new(hole: Hole, leaves: &[(Global<u8>, usize)], len: usize, counted: Option<Global<u64>>) -> Self {
        let mut all = [Global::empty(); MAX_LEAVES];
        for (to, from) in all.iter_mut().zip(leaves) {
            *to = from.0;
        }
        let is_aligned = |at: usize| {
            leaves.iter().all(|(leaf, size)| *size == 0 || (leaf.as_ptr().addr() + at * size).is_multiple_of(16))
        };
        let lead = (0..16).find(|&at| is_aligned(at)).map_or(NO_ROWS, |lead| lead as u32);
        let read = leaves.iter().map(|&(_, size)| size as u32).sum();
        Self { hole, leaves: all, count: Count::new(len, counted), lead, read }
    }

    /// Returns the number of elements, if only the device knows it.
    pub(crate) fn counted(&self) -> Option<Global<u64>> {
        (!self.count.counted.is_empty()).then_some(self.count.counted)
    }

    /// Returns the first elements, as many as the device says.
    pub(crate) fn limited(self, counted: Option<Global<u64>>) -> Self {
        Self { count: Count::new(self.count.len, counted), ..self }
    }

    /// Computes `len` elements from `start` on, one after the other.
    ///
    /// # Safety
    /// The source was made for elements that are held in an `H`, and has these elements. There is room for them. Nothing
    /// writes what the source reads, except that `to` may be where it reads the same elements.
    pub(crate) unsafe fn compute<H: RegisterRepr>(&self, start: usize, len: usize, to: *mut H) {
        let first = start as u64;
        let (arguments, step) = ([(&raw const first).cast(); 2], 0);
        let calls = Calls { arguments, step, results: to.cast(), result_step: size_of::<H>(), len };
        // SAFETY: the source begins with its state. The rest is guaranteed by the caller.
        unsafe { (self.hole.filling().native)(core::ptr::from_ref(self).cast(), &calls) };
    }

    /// Describes what fills the hole.
    #[cfg(test)]
    pub(crate) fn filling(&self) -> &'static crate::hole::OperatorBody {
        self.hole.filling()
    }

    /// Returns the slice number `leaf`, of the source that begins at this address.
    ///
    /// # Safety
    /// It is the address of a `SourceArg`, whose slice number `leaf` has elements of type `T`.
    #[inline(always)]
    pub(crate) unsafe fn leaf<T: Pod>(source: *const u8, leaf: usize) -> Global<T> {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let bytes = (*source.cast::<Self>()).leaves[leaf];
            Global::from_raw(bytes.as_ptr().cast(), bytes.len() / size_of::<T>())
        }
    }
}
