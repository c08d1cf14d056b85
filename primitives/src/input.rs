//! What kernels read their elements from: a view, or a source whose code is put in when the kernel is loaded.

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

    /// Returns the elements from `start` on, if they lie in memory.
    ///
    /// # Safety
    /// `start + len` is at most the [count](Self::count).
    unsafe fn run(&self, start: usize, len: usize) -> Option<Global<T>>;

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
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn run(&self, start: usize, len: usize) -> Option<Global<T>> {
        Some(self.slice(start, len))
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

/// The number of slices that a source can read.
pub const MAX_LEAVES: usize = 4;

/// A source that is not known when a kernel is compiled: a [`Hole`] whose code loads or computes an element.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct SourceArg {
    hole: Hole,
    leaves: [Global<u8>; MAX_LEAVES],
    count: Count,
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
    unsafe fn run(&self, _: usize, _: usize) -> Option<Global<H>> {
        None
    }

    #[cfg(not(target_arch = "nvptx64"))]
    unsafe fn elements<'a>(&self, start: usize, len: usize, room: &'a mut Vec<H>) -> &'a [H] {
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

    /// Creates a source of `len` elements at most.
    pub(crate) fn new(hole: Hole, leaves: &[Global<u8>], len: usize, counted: Option<Global<u64>>) -> Self {
        let mut all = [Global::empty(); MAX_LEAVES];
        all[..leaves.len()].copy_from_slice(leaves);
        Self { hole, leaves: all, count: Count::new(len, counted) }
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
