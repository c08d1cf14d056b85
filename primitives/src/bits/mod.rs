//! Packed bits: made of elements by a test, counted, combined, and turned into positions.
//!
//! [`Bits`](crate::Bits) lie in bytes, the lowest bit of each byte first, as in Arrow. They may begin at any bit.
//! [`select::by_bits`](crate::select::by_bits) keeps the elements whose bit is set.
//!
//! - **Order**: positions ascend.
//! - **Synchronisation**: none; the results are ready in stream order.
//! - **Memory**: each bit is read once, and each result is written once. [`positions`] takes 8 bytes of temporary memory per
//!   8,192 bits.
//!
//! ```
//! use gpu_primitives::operator::predicate;
//! use gpu_primitives::{Bits, Device, Error, bits, select};
//!
//! let stream = Device::default()?.stream()?;
//! let numbers = stream.upload(&[3u32, 14, 15, 92, 65, 35, 89, 79, 32, 38])?;
//! let mut bytes = stream.uninit::<u8>(2)?;
//! bits::pack(&stream, &numbers, &mut bytes, predicate!(|x: u32| x % 2 == 1))?;
//! assert_eq!(bytes.to_vec(&stream)?, [0b1111_0101, 0b00]);
//!
//! // The bits 2 to 9.
//! let odd = Bits::new(&bytes, 2, 8)?;
//! assert_eq!(bits::count(&stream, odd)?.get(&stream)?, 5);
//! let mut positions = stream.uninit::<u32>(8)?;
//! let count = bits::positions(&stream, odd, &mut positions)?.get(&stream)? as usize;
//! assert_eq!(positions.slice(..count)?.to_vec(&stream)?, [0, 2, 3, 4, 5]);
//!
//! let mut kept = stream.uninit::<u32>(8)?;
//! let count = select::by_bits(&stream, numbers.slice(2..)?, odd, &mut kept)?.get(&stream)? as usize;
//! assert_eq!(kept.slice(..count)?.to_vec(&stream)?, [15, 65, 35, 89, 79]);
//! # Ok::<(), Error>(())
//! ```

pub(crate) mod device;
#[cfg(not(target_arch = "nvptx64"))]
pub(crate) mod host;
#[cfg(not(target_arch = "nvptx64"))]
pub(crate) mod native;

#[cfg(not(target_arch = "nvptx64"))]
pub use host::{and, and_not, count, not, or, pack, positions, xor};
