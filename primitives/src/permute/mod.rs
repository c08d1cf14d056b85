//! Moving elements to other places: gather, scatter, reverse, rotate, shift, interleave, and copies of many ranges at once.
//!
//! - **Elements**: of any type and size. They are moved in words, up to 16 bytes at a time if size and addresses allow it.
//! - **Indices**: `u32` or `u64`, from a slice or any other [source](crate::host::source).
//! - **Indices out of range** never touch memory. [`gather`] and [`scatter`] leave those places as they are, and return how
//!   many there were. The `_unchecked` forms are for indices that are known to be right.
//! - **Deterministic**: if several elements are scattered to one place, the last one wins.
//! - **Synchronisation**: none; the result is ready in stream order.
//!
//! ```
//! use gpu_primitives::{Device, Error, permute};
//!
//! let stream = Device::default()?.stream()?;
//! let letters = stream.upload(&[b'a', b'b', b'c', b'd'])?;
//! let indices = stream.upload(&[3u32, 0, 9, 1])?;
//! let mut gathered = stream.upload(&[b'-'; 4])?;
//! let outside = permute::gather(&stream, &letters, &indices, &mut gathered)?;
//! assert_eq!(gathered.to_vec(&stream)?, *b"da-b");
//! assert_eq!(outside.get(&stream)?, 1);
//!
//! let mut scattered = stream.upload(&[b'-'; 4])?;
//! permute::scatter(&stream, &letters, &indices, &mut scattered)?;
//! assert_eq!(scattered.to_vec(&stream)?, *b"bd-a");
//!
//! permute::reverse_in_place(&stream, &mut scattered)?;
//! assert_eq!(scattered.to_vec(&stream)?, *b"a-db");
//! # Ok::<(), Error>(())
//! ```

pub(crate) mod device;
#[cfg(not(target_arch = "nvptx64"))]
pub(crate) mod host;
#[cfg(not(target_arch = "nvptx64"))]
pub(crate) mod native;

#[cfg(not(target_arch = "nvptx64"))]
pub use host::arrange::{interleave, rotate, shift};
#[cfg(not(target_arch = "nvptx64"))]
pub use host::{
    Position, batched_copy, gather, gather_unchecked, reverse, reverse_in_place, scatter, scatter_unchecked,
};
#[cfg(not(target_arch = "nvptx64"))]
pub(crate) use host::{RangePlaces, copy_to_places};
