//! The kernel form: one generic function, a PTX entry per named instance, a CPU function and a typed launch.
//!
//! [`#[kernel]`](macro@kernel) turns a function into a struct of its arguments. Building the struct *is* passing the
//! arguments, so a wrong type does not compile, and [`Stream::launch`](crate::Stream::launch) takes the struct and the
//! number of blocks. The CPU device runs any kernel type at once. A GPU needs it compiled to PTX:
//! [`instances!`](crate::instances) names the concrete types and says where their PTX lies.
//!
//! ```
//! use gpu_primitives::kernel::kernel;
//! use gpu_primitives::{Device, Error, Global, GlobalMut, thread};
//!
//! /// `y[i] += a * x[i]`.
//! ///
//! /// # Safety
//! /// The launch has one block per 128 elements. `x` is as long as `y`, and other memory.
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
//! // SAFETY: one block for all elements, as many of both, and two buffers.
//! unsafe { stream.launch(axpy, 1)? };
//! assert_eq!(y.to_vec(&stream)?, [12.0, 24.0, 36.0]);
//! # Ok::<(), Error>(())
//! ```
//!
//! A [`View`] borrows the memory that it shows, and so does a kernel that was given it. Memory cannot be freed, or used in
//! other ways, before the launch:
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
//! drop(numbers); // the kernel was given its memory
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
//! let clear = Clear::new(floats.view_mut(&stream)?); // a view of f32 where u32 is asked for
//! # Ok::<(), Error>(())
//! ```

use crate::view::{Global, GlobalMut};
use bytemuck::Pod;

#[cfg(not(target_arch = "nvptx64"))]
pub use crate::runtime::call::{Argument, Call, Reach, View};
pub use gpu_primitives_kernel_macro::kernel;

/// A kernel with its arguments. Written by [`#[kernel]`](macro@kernel), not by hand.
///
/// # Safety
/// The type is `repr(C)` and all its fields are [`Param`]s, so that host and GPU agree on its bytes.
pub unsafe trait Kernel: Copy + 'static {
    /// The name of the function, for messages.
    const NAME: &'static str;
    /// Threads of a block: a multiple of 32, at most 1024.
    const THREADS: u32;
    /// Blocks that must fit on a multiprocessor at once; 0 leaves it to the compiler.
    const MIN_BLOCKS: u32;
    /// Bytes of shared memory of a block.
    const SHARED_BYTES: usize;

    /// The body, as one thread of the grid runs it.
    ///
    /// # Safety
    /// Called by an executor, for every thread of the grid, with the contract that the kernel's documentation states.
    unsafe fn run(self);

    /// Shows every buffer among the arguments, with the argument's name.
    fn params(&self, visit: &mut dyn FnMut(&'static str, Buffer));
}

/// A buffer that a kernel was given: what the checked executor knows memory by.
#[derive(Clone, Copy, Debug)]
pub struct Buffer {
    /// Address of the first element.
    pub address: usize,
    /// Number of elements.
    pub len: usize,
    /// Size of one element in bytes.
    pub element_bytes: usize,
}

/// What may be an argument of a kernel: plain data, buffers, and operators that carry either.
///
/// # Safety
/// The type holds no host pointer or reference, and its layout is the same on both sides (`repr(C)` or primitive).
pub unsafe trait Param: Copy + 'static {
    /// Shows the buffers in this argument; `name` is the argument's name. Plain data has none.
    fn buffers(&self, name: &'static str, visit: &mut dyn FnMut(&'static str, Buffer)) {
        let _ = (name, visit);
    }
}

// SAFETY: `Pod` is plain data with a fixed layout and no pointers.
unsafe impl<T: Pod> Param for T {}

// SAFETY: `repr(C)` pointer to device memory and a length.
unsafe impl<T: Pod> Param for Global<T> {
    fn buffers(&self, name: &'static str, visit: &mut dyn FnMut(&'static str, Buffer)) {
        visit(name, Buffer { address: self.as_ptr().addr(), len: self.len(), element_bytes: size_of::<T>() });
    }
}

// SAFETY: as for `Global`.
unsafe impl<T: Pod> Param for GlobalMut<T> {
    fn buffers(&self, name: &'static str, visit: &mut dyn FnMut(&'static str, Buffer)) {
        self.as_const().buffers(name, visit);
    }
}

/// An argument that kernels only read memory by, so that there can be several of it.
///
/// # Safety
/// No kernel writes the memory that it shows or leads to.
pub unsafe trait ReadParam: Param {}

// SAFETY: it has no way to write.
unsafe impl<T: Pod> ReadParam for Global<T> {}

/// Names concrete kernels, so that they exist as PTX: `instances! { in DIR; name: Type; … }`.
///
/// Compiled for the GPU, each line is the PTX entry `name`. Compiled for the host, it embeds `DIR/name.ptx` (written by
/// `gpu-kernel-builder`) and registers it for the kernel type, so that a launch finds it. `DIR` is a string literal expression,
/// such as `concat!(env!("CARGO_MANIFEST_DIR"), "/ptx")` or `concat!(env!("OUT_DIR"), "/ptx")`.
#[macro_export]
macro_rules! instances {
    (in $dir:expr; $($name:ident: $kernel:ty;)*) => {
        $(
            // `gpu-kernel-builder` sets `ptx_entries` for the crate at hand alone: a crate above it must not compile these again.
            #[cfg(target_arch = "nvptx64")]
            #[cfg(ptx_entries)]
            const _: () = {
                /// The kernel's entry.
                ///
                /// # Safety
                /// The contract that the kernel's documentation states.
                #[unsafe(no_mangle)]
                #[allow(improper_ctypes_definitions)]
                unsafe extern "ptx-kernel" fn $name(kernel: $kernel) {
                    // SAFETY: the launch promised the kernel's contract.
                    unsafe { $crate::kernel::Kernel::run(kernel) }
                }
            };
            $crate::launch_bounds!($name: $kernel);

            #[cfg(not(target_arch = "nvptx64"))]
            $crate::kernel::inventory::submit! {
                // SAFETY: `gpu-kernel-builder` wrote the file from this very kernel.
                unsafe {
                    $crate::kernel::Instance::new::<$kernel>(
                        stringify!($name),
                        include_str!(concat!($dir, "/", stringify!($name), ".ptx")),
                    )
                }
            }
        )*
    };
}

/// Launch bounds cannot be said in Rust: a static beside the entry tells them to `gpu-kernel-builder`, which removes it.
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
