//! Transformations: a function of each element, or of the elements of several slices at the same place.
//!
//! - **Order**: output `i` is the function of inputs `i`.
//! - **Synchronisation**: none; the result is ready in stream order.
//! - **Memory**: reads each input and writes each output once. No scratch memory, unless elements have a size other than
//!   1, 2, 4, 8, 12, 16 or 32 bytes.
//!
//! ```
//! use gpu_primitives::operator::map;
//! use gpu_primitives::{Device, Error, transform};
//!
//! let stream = Device::default()?.stream()?;
//! let (x, mut y) = (stream.upload(&[1.0f32, 2.0, 3.0])?, stream.upload(&[10.0f32, 20.0, 30.0])?);
//! let mut sum = stream.uninit::<f32>(3)?;
//! transform::map2(&stream, &x, &y, &mut sum, map!(a: f32 = 2.0; |x: f32, y: f32| -> f32 { a * x + y }))?;
//! assert_eq!(sum.to_vec(&stream)?, [12.0, 24.0, 36.0]);
//!
//! transform::map_in_place(&stream, &mut y, map!(|y: f32| -> f32 { y / 2.0 }))?;
//! assert_eq!(y.to_vec(&stream)?, [5.0, 10.0, 15.0]);
//! # Ok::<(), Error>(())
//! ```

pub(crate) mod device;
#[cfg(not(target_arch = "nvptx64"))]
pub(crate) mod host;
#[cfg(not(target_arch = "nvptx64"))]
pub(crate) mod native;

#[cfg(not(target_arch = "nvptx64"))]
pub use host::{collect, map, map_in_place, map2, map3, map4, sequence, write};
#[cfg(not(target_arch = "nvptx64"))]
pub(crate) use host::{in_memory, laid_out, write_arg, write_column};
