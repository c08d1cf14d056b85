//! A cuckoo hash table as a GPU dictionary, built from [`gpu_primitives`]. It has the fastest lookups, keeps no order,
//! and is built in bulk.
//!
//! - [`GpuCuckoo`]: the table. Keys are 32-bit or 64-bit numbers, and every value of the type is a valid key. Values
//!   are plain data of 0, 4 or 8 bytes.
//! - [`PlainCuckoo`]: a table with keys of any plain type of up to 32 bytes, and values of any size.
//! - [`CuckooView`]: the table inside a kernel of your own. [`CuckooMut`]: the same, for kernels that insert.
//! - [`Options`]: room, load, number of hash functions, bucket width, and what to do when the table is full.
//!
//! ```
//! use gpu_cuckoo::{GpuCuckoo, Options};
//! use gpu_primitives::{Device, Error};
//!
//! let stream = Device::cpu().stream()?;
//! let keys = stream.upload(&[7u32, 0, u32::MAX, 7])?;
//! let values = stream.upload(&[1.0f32, 2.0, 3.0, 4.0])?;
//! let mut table = GpuCuckoo::bulk_build(&stream, (&keys, &values), Options::new())?;
//! assert_eq!(table.len(&stream)?, 3); // of equal keys, the last one wins
//!
//! let asked = stream.upload(&[7u32, 8])?;
//! assert_eq!(table.lookup(&stream, &asked)?.to_vec(&stream)?, [Some(4.0), None]);
//! table.delete(&stream, &asked)?;
//! assert_eq!(table.contains(&stream, &asked)?.to_vec(&stream)?, [0, 0]);
//! # Ok::<(), Error>(())
//! ```
//!
//! # The same program with another dictionary
//! The table shares the traits [`Dictionary`](gpu_dictionary::Dictionary), [`Updatable`](gpu_dictionary::Updatable) and
//! [`Upsertable`](gpu_dictionary::Upsertable) with the LSM and the sorted array:
//!
//! ```
//! use gpu_cuckoo::GpuCuckoo;
//! use gpu_dictionary::{DictionaryOptions, Updatable};
//! use gpu_primitives::{Device, Error, Stream};
//!
//! fn run<D>(stream: &Stream) -> Result<Vec<(u32, u64)>, Error>
//! where
//!     D: Updatable<Key = u32, Value = u64>,
//! {
//!     let (keys, values) = (stream.upload(&[7, 3, 5])?, stream.upload(&[70, 30, 50])?);
//!     let options = D::Options::default().expected_keys(100);
//!     let mut dictionary = D::bulk_build(stream, (&keys, &values), options)?;
//!     dictionary.update(stream, (&stream.upload(&[3])?, &stream.upload(&[31])?), &stream.upload(&[5])?)?;
//!     println!("the {} has {} keys", D::NAME, dictionary.len(stream)?);
//!     dictionary.export(stream)?.to_vec(stream)
//! }
//!
//! let stream = Device::cpu().stream()?;
//! // Or `GpuLsm<u32, u64>`, or `GpuSortedArray<u32, u64>`.
//! assert_eq!(run::<GpuCuckoo<u32, u64>>(&stream)?, [(3, 31), (7, 70)]);
//! # Ok::<(), Error>(())
//! ```
//!
//! A hash table has no ordered queries: it is not [`Ordered`](gpu_dictionary::Ordered). So this does not compile, while
//! it does with the other two dictionaries:
//!
//! ```compile_fail,E0277
//! # use gpu_dictionary::Ordered;
//! # use gpu_primitives::{Device, DeviceVec, Error, Stream};
//! fn count<D: Ordered<Key = u32>>(dictionary: &D, stream: &Stream) -> Result<DeviceVec<u64>, Error> {
//!     dictionary.count(stream, &stream.upload(&[0])?, &stream.upload(&[9])?)
//! }
//!
//! # let stream = Device::cpu().stream()?;
//! let table = gpu_cuckoo::GpuCuckoo::<u32, u32>::new(&stream, gpu_cuckoo::Options::new())?;
//! count(&table, &stream)?;
//! # Ok::<(), Error>(())
//! ```

#![cfg_attr(target_arch = "nvptx64", no_std)]
#![cfg_attr(target_arch = "nvptx64", feature(abi_ptx))]
// Device functions are unsafe as a whole: each states its contract once, on the function.
#![allow(unsafe_op_in_unsafe_fn)]

mod device;
mod hash;
mod seek;
#[cfg(any(test, target_arch = "nvptx64"))]
mod tally;
#[cfg(any(test, target_arch = "nvptx64"))]
mod translate;
mod view;
mod view_mut;

#[cfg(not(target_arch = "nvptx64"))]
mod host;
#[cfg(not(target_arch = "nvptx64"))]
mod native;

pub use gpu_dictionary::{PlainKey, Value, WordKey as Key, plain_key, value};
pub use view::CuckooView;
pub use view_mut::{CuckooMut, Insertion};

#[cfg(not(target_arch = "nvptx64"))]
pub use gpu_dictionary::{Contents, Lookup};
#[cfg(not(target_arch = "nvptx64"))]
pub use host::{GpuCuckoo, Options, PlainCuckoo, Stats, WhenFull};
