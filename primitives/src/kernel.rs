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

pub use crate::form::{Buffer, Holes, Kernel, Param, ReadParam, kernel};
pub use crate::hole::{Hole, RegisterRepr};
pub use crate::pairs::{Pairs, PairsMut};

#[cfg(not(target_arch = "nvptx64"))]
pub use crate::host::executor::Team;
#[cfg(not(target_arch = "nvptx64"))]
pub use crate::host::instance::Instance;
#[cfg(not(target_arch = "nvptx64"))]
#[doc(hidden)]
pub use crate::host::instance::{expect_distinct_sizes, no_member};
#[cfg(not(target_arch = "nvptx64"))]
pub use crate::host::runtime::call::{Argument, Call, Reach, View};
#[cfg(not(target_arch = "nvptx64"))]
pub use crate::host::runtime::loading::{Next, Upcoming};
#[cfg(not(target_arch = "nvptx64"))]
#[doc(hidden)]
pub use gpu_primitives_kernel_macro::packed_ptx;
#[cfg(not(target_arch = "nvptx64"))]
#[doc(hidden)]
pub use inventory;
