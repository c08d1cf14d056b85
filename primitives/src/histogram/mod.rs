//! Histograms: how many elements fall into each bin.
//!
//! - **Bins**: [`even`] has bins of equal width, [`ranges`] bins between levels, [`bytes`] one bin per byte, [`bincount`] one per
//!   small integer, and [`by`] those of any function. An element that falls into no bin is not counted.
//! - **Sums**: [`sums`] adds up the integers of each bin, exactly. [`counts_and_firsts`] also finds the first element of each.
//! - **Counts** are `u32` or `u64`, and are written, not added to. Those of 32 bits wrap.
//! - **Deterministic**: the same input gives the same counts on every run and every device.
//! - **Synchronisation**: none; the counts are ready in stream order.
//! - **Memory**: reads each element once. No temporary memory.
//!
//! ```
//! use gpu_primitives::operator::bucket;
//! use gpu_primitives::{Device, Error, histogram};
//!
//! let stream = Device::default()?.stream()?;
//! let samples = stream.upload(&[0.5f32, 9.0, 2.5, 2.0, -1.0, 10.0])?;
//! let mut counts = stream.uninit::<u32>(5)?;
//! histogram::even(&stream, &samples, &mut counts, 0.0, 10.0)?; // 0 to 2, 2 to 4, …
//! assert_eq!(counts.to_vec(&stream)?, [1, 2, 0, 0, 1]);
//!
//! let levels = stream.upload(&[0.0f32, 1.0, 100.0])?;
//! let mut counts = stream.uninit::<u64>(2)?;
//! histogram::ranges(&stream, &samples, &mut counts, &levels)?;
//! assert_eq!(counts.to_vec(&stream)?, [1, 4]);
//!
//! let text = stream.upload(b"histogram")?;
//! let mut counts = stream.uninit::<u32>(256)?;
//! histogram::bytes(&stream, &text, &mut counts)?;
//! assert_eq!(counts.to_vec(&stream)?[b'a' as usize], 1);
//!
//! let mut vowels = stream.uninit::<u32>(2)?;
//! let is_vowel = bucket!(|x: u8| match x {
//!     b'a' | b'e' | b'i' | b'o' | b'u' => 1,
//!     _ => 0,
//! });
//! histogram::by(&stream, &text, &mut vowels, is_vowel)?;
//! assert_eq!(vowels.to_vec(&stream)?, [6, 3]);
//! # Ok::<(), Error>(())
//! ```

pub(crate) mod device;
#[cfg(not(target_arch = "nvptx64"))]
pub(crate) mod host;
#[cfg(not(target_arch = "nvptx64"))]
pub(crate) mod native;

pub use crate::buckets::Bucket;
pub use device::kernel::Count;
pub use device::sample::Sample;

#[cfg(not(target_arch = "nvptx64"))]
pub use host::{Summand, Value, bincount, by, bytes, counts_and_firsts, even, ranges, sums};
