//! Kernels: one generic function becomes a PTX entry per named instance, a CPU function and a typed launch.
//!
//! [`#[kernel]`](macro@kernel) turns a function into a struct that holds its arguments. Building the struct passes the
//! arguments, so an argument of the wrong type does not compile. [`Stream::launch`](crate::Stream::launch) takes the
//! struct and the number of blocks. The CPU device runs every kernel type directly. A GPU needs it compiled to PTX:
//! [`instances!`](crate::instances) lists the concrete types and the location of their PTX.
//!
//! ```
//! use gpu_primitives::kernel::kernel;
//! use gpu_primitives::{Device, Error, Global, GlobalMut, thread};
//!
//! /// `y[i] += a * x[i]`.
//! ///
//! /// # Safety
//! /// The launch has one block per 128 elements. `x` is as long as `y` and does not overlap it.
//! #[kernel(threads = 128)]
//! unsafe fn axpy(a: f32, x: Global<f32>, y: GlobalMut<f32>) {
//!     let i = (thread::block_idx_x() * 128 + thread::thread_idx_x()) as usize;
//!     if i < y.len() {
//!         y.set(i, y.get(i) + a * x.get(i));
//!     }
//! }
//!
//! let stream = Device::cpu().stream()?;
//! let x = stream.upload(&[1.0f32, 2.0, 3.0])?;
//! let mut y = stream.upload(&[10.0f32, 20.0, 30.0])?;
//! let axpy = Axpy::new(2.0, x.view(&stream)?, y.view_mut(&stream)?);
//! // SAFETY: one block covers all elements; `x` and `y` have the same length and are separate buffers.
//! unsafe { stream.launch(axpy, 1)? };
//! assert_eq!(y.to_vec(&stream)?, [12.0, 24.0, 36.0]);
//! # Ok::<(), Error>(())
//! ```
//!
//! A [`View`] borrows the memory it shows, and so does a kernel that takes the view. The memory cannot be freed, or
//! used in any other way, before the launch:
//!
//! ```compile_fail,E0505
//! # use gpu_primitives::kernel::kernel;
//! # use gpu_primitives::{Device, Error, GlobalMut, thread};
//! #[kernel(threads = 128)]
//! unsafe fn clear(out: GlobalMut<u32>) {
//!     out.set(thread::thread_idx_x() as usize, 0);
//! }
//!
//! let stream = Device::cpu().stream()?;
//! let mut numbers = stream.upload(&[1u32; 128])?;
//! let clear = Clear::new(numbers.view_mut(&stream)?);
//! drop(numbers); // the kernel still borrows this memory
//! // SAFETY: one thread per element.
//! unsafe { stream.launch(clear, 1)? };
//! # Ok::<(), Error>(())
//! ```
//!
//! An argument of the wrong type does not compile either:
//!
//! ```compile_fail,E0277
//! # use gpu_primitives::kernel::kernel;
//! # use gpu_primitives::{Device, Error, GlobalMut, thread};
//! #[kernel(threads = 128)]
//! unsafe fn clear(out: GlobalMut<u32>) {
//!     out.set(thread::thread_idx_x() as usize, 0);
//! }
//!
//! let stream = Device::cpu().stream()?;
//! let mut floats = stream.upload(&[1.0f32; 128])?;
//! let clear = Clear::new(floats.view_mut(&stream)?); // a view of f32 instead of u32
//! # Ok::<(), Error>(())
//! ```

use crate::view::{Global, GlobalMut};
use bytemuck::Pod;

#[cfg(not(target_arch = "nvptx64"))]
pub use crate::runtime::call::{Argument, Call, Reach, View};
pub use gpu_primitives_kernel_macro::kernel;
#[cfg(not(target_arch = "nvptx64"))]
#[doc(hidden)]
pub use gpu_primitives_kernel_macro::packed_ptx;

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
}

/// A buffer among a kernel's arguments. The checked executor knows device memory by these.
#[derive(Clone, Copy, Debug)]
pub struct Buffer {
    /// The address of the first element.
    pub address: usize,
    /// The number of elements.
    pub len: usize,
    /// The size of one element in bytes.
    pub element_bytes: usize,
}

/// A type that can be a kernel argument: plain data, a buffer, or an operator that contains either.
///
/// # Safety
/// The type holds no host pointer or reference, and its layout is the same on host and device (`repr(C)` or primitive).
pub unsafe trait Param: Copy + 'static {
    /// Calls `visit` with each buffer in this argument; `name` is the argument's name. Plain data has no buffers.
    fn buffers(&self, name: &'static str, visit: &mut dyn FnMut(&'static str, Buffer)) {
        let _ = (name, visit);
    }
}

// SAFETY: `Pod` is plain data with a fixed layout and no pointers.
unsafe impl<T: Pod> Param for T {}

// SAFETY: a `repr(C)` pair of a device pointer and a length.
unsafe impl<T: Pod> Param for Global<T> {
    fn buffers(&self, name: &'static str, visit: &mut dyn FnMut(&'static str, Buffer)) {
        visit(name, Buffer { address: self.as_ptr().addr(), len: self.len(), element_bytes: size_of::<T>() });
    }
}

// SAFETY: same as for `Global`.
unsafe impl<T: Pod> Param for GlobalMut<T> {
    fn buffers(&self, name: &'static str, visit: &mut dyn FnMut(&'static str, Buffer)) {
        self.as_const().buffers(name, visit);
    }
}

/// An argument that only reads memory. Its [`View`]s can therefore be cloned.
///
/// # Safety
/// No kernel writes the memory that the argument shows or leads to.
pub unsafe trait ReadParam: Param {}

// SAFETY: `Global` has no way to write.
unsafe impl<T: Pod> ReadParam for Global<T> {}

/// Lists concrete kernels that are compiled to PTX: `instances! { in DIR; name: Type; … }`.
///
/// When compiled for the GPU, each line defines the PTX entry `name`. When compiled for the host, it embeds
/// `DIR/name.ptx` (written by `gpu-kernel-builder`) and registers it for the kernel type, so that a launch finds it.
/// `DIR` is a string literal expression such as `concat!(env!("CARGO_MANIFEST_DIR"), "/ptx")` or
/// `concat!(env!("OUT_DIR"), "/ptx")`.
#[macro_export]
macro_rules! instances {
    (in $dir:expr; $($name:ident: $kernel:ty;)*) => {
        $(
            // `gpu-kernel-builder` sets `ptx_entries` only for the crate it builds: dependent crates must not compile
            // these entries again.
            #[cfg(target_arch = "nvptx64")]
            #[cfg(ptx_entries)]
            const _: () = {
                /// The PTX entry of the kernel.
                ///
                /// # Safety
                /// The contract in the kernel's documentation must hold.
                #[unsafe(no_mangle)]
                #[allow(improper_ctypes_definitions)]
                unsafe extern "ptx-kernel" fn $name(kernel: $kernel) {
                    // SAFETY: whoever launched the kernel guarantees its contract.
                    unsafe { $crate::kernel::Kernel::run(kernel) }
                }
            };
            $crate::launch_bounds!($name: $kernel);

            #[cfg(not(target_arch = "nvptx64"))]
            $crate::kernel::inventory::submit! {
                // SAFETY: `gpu-kernel-builder` generated the file from this kernel.
                unsafe {
                    $crate::kernel::Instance::new::<$kernel>(
                        stringify!($name),
                        $crate::kernel::packed_ptx!($dir, $name),
                    )
                }
            }
        )*
    };
}

/// Rust has no syntax for launch bounds. A static next to the entry passes them to `gpu-kernel-builder`, which then
/// removes the static.
#[doc(hidden)]
#[macro_export]
macro_rules! launch_bounds {
    ($name:ident: $kernel:ty) => {
        #[cfg(target_arch = "nvptx64")]
        #[cfg(ptx_entries)]
        const _: () = {
            #[used]
            #[unsafe(export_name = concat!("__launch_bounds_", stringify!($name)))]
            static BOUNDS: [u32; 2] =
                [<$kernel as $crate::kernel::Kernel>::THREADS, <$kernel as $crate::kernel::Kernel>::MIN_BLOCKS];
        };
    };
}

#[cfg(not(target_arch = "nvptx64"))]
pub use crate::runtime::instance::Instance;
#[cfg(not(target_arch = "nvptx64"))]
#[doc(hidden)]
pub use inventory;
