//! The form of kernels and of their arguments, on host and device.

use crate::view::{Global, GlobalMut};
use bytemuck::Pod;

pub use crate::model::Buffer;
pub use gpu_primitives_kernel_macro::kernel;

/// A kernel with its arguments. [`#[kernel]`](macro@kernel) implements this trait; do not implement it by hand.
///
/// # Safety
/// The type is `repr(C)` and all its fields are [`Param`]s, so that host and GPU agree on its layout.
pub unsafe trait Kernel: Copy + 'static {
    /// The function's name, for messages.
    const NAME: &'static str;
    /// The number of threads per block: a multiple of 32, at most 1024.
    const THREADS: u32;
    /// The number of blocks that must fit on a multiprocessor at once; 0 leaves the choice to the compiler.
    const MIN_BLOCKS: u32;
    /// The bytes of shared memory per block.
    const SHARED_BYTES: usize;

    /// Runs the kernel body for one thread of the grid.
    ///
    /// # Safety
    /// Only an executor may call this, once per thread of the grid. The contract in the kernel's documentation must
    /// hold.
    unsafe fn run(self);

    /// Calls `visit` with every buffer among the arguments and with the argument's name.
    fn params(&self, visit: &mut dyn FnMut(&'static str, Buffer));

    /// The body for the CPU, if there is one: it writes the same results as the threads of the whole grid. Its caller
    /// upholds the kernel's contract.
    #[cfg(not(target_arch = "nvptx64"))]
    const NATIVE: Option<unsafe fn(Self, crate::host::executor::Team)> = None;

    /// Whether the kernel is in the lists of [its PTX](Self::PTX).
    #[cfg(not(target_arch = "nvptx64"))]
    const IS_LISTED: bool = false;

    /// The lists with the PTX of the kernel's instances. Those in no list are found in the program's registry.
    #[cfg(not(target_arch = "nvptx64"))]
    const PTX: &'static [&'static [crate::host::instance::Instance]] = &[];

    /// Where the [`Hole`](crate::kernel::Hole)s among the arguments are.
    const HOLES: Holes = Holes::NONE;
}

/// Where the [`Hole`](crate::kernel::Hole)s in an argument, or among all arguments of a kernel, are: in bytes from the
/// beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holes {
    offsets: [usize; Self::MAX],
    len: usize,
}

impl Holes {
    /// The largest number of holes of a kernel.
    pub const MAX: usize = 3;

    /// No holes.
    pub const NONE: Self = Self { offsets: [0; Self::MAX], len: 0 };

    /// The only hole, at the beginning.
    pub const FIRST: Self = Self { offsets: [0; Self::MAX], len: 1 };

    /// Returns these holes, and those of a part that begins at `offset`.
    #[must_use]
    pub const fn and(mut self, offset: usize, part: Self) -> Self {
        let mut i = 0;
        while i < part.len {
            assert!(self.len < Self::MAX, "a kernel has at most three operators that are not known");
            self.offsets[self.len] = offset + part.offsets[i];
            self.len += 1;
            i += 1;
        }
        self
    }

    /// Returns the offsets.
    #[must_use]
    pub fn offsets(&self) -> &[usize] {
        &self.offsets[..self.len]
    }
}

/// A type that can be a kernel argument: plain data, a buffer, or an operator that contains either.
///
/// # Safety
/// The type holds no host pointer or reference, and its layout is the same on host and device (`repr(C)` or primitive).
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not plain data, so it cannot be passed to the device",
    note = "an operator is plain data, even without fields: `#[repr(C)]`, and `#[derive(Clone, Copy, Pod, Zeroable)]` of `bytemuck`"
)]
pub unsafe trait Param: Copy + 'static {
    /// Calls `visit` with each buffer in this argument; `name` is the argument's name. Plain data has no buffers.
    fn buffers(&self, name: &'static str, visit: &mut dyn FnMut(&'static str, Buffer)) {
        let _ = (name, visit);
    }

    /// Where the [`Hole`](crate::kernel::Hole)s in this argument are. Plain data has none.
    const HOLES: Holes = Holes::NONE;
}

// SAFETY: `Pod` is plain data with a fixed layout and no pointers.
unsafe impl<T: Pod> Param for T {}

// SAFETY: a `repr(C)` pair of a device pointer and a length.
unsafe impl<T: Pod> Param for Global<T> {
    fn buffers(&self, name: &'static str, visit: &mut dyn FnMut(&'static str, Buffer)) {
        let (address, len) = (self.as_ptr().addr(), self.len());
        visit(name, Buffer { address, len, element_bytes: size_of::<T>(), is_writable: false });
    }
}

// SAFETY: same as for `Global`.
unsafe impl<T: Pod> Param for GlobalMut<T> {
    fn buffers(&self, name: &'static str, visit: &mut dyn FnMut(&'static str, Buffer)) {
        self.as_const().buffers(name, &mut |name, buffer| visit(name, Buffer { is_writable: true, ..buffer }));
    }
}

/// An argument that only reads memory. Its [`View`](crate::kernel::View)s can therefore be cloned.
///
/// # Safety
/// No kernel writes the memory that the argument shows or leads to.
pub unsafe trait ReadParam: Param {}

// SAFETY: `Global` has no way to write.
unsafe impl<T: Pod> ReadParam for Global<T> {}
