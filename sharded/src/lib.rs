//! One GPU dictionary made of many: on several devices of a process, or on many processes.
//!
//! [`Sharded<D>`](Sharded) divides the keys among dictionaries `D`, its shards: by their hash for the cuckoo table, by ranges for
//! the dictionaries that keep their keys in order. It implements the traits that `D` does, so a program goes from one GPU to many
//! by naming another type.
//!
//! ```
//! use gpu_dictionary::{Dictionary, Ordered, Updatable};
//! use gpu_lsm::GpuLsm;
//! use gpu_primitives::{Device, Error};
//! use gpu_sharded::{Options, Sharded, World};
//!
//! let stream = Device::default()?.stream()?;
//! let options = Options::new(World::local(4)); // or World::on(streams of several devices), or World::new(an engine)
//! let mut all = Sharded::<GpuLsm<u32, u32>>::new(&stream, options)?;
//! let keys = stream.upload(&(0..1000).collect::<Vec<u32>>())?;
//! all.insert(&stream, (&keys, &keys))?;
//! assert_eq!(all.lookup(&stream, &stream.upload(&[7, 2000])?)?.to_vec(&stream)?, [Some(7), None]);
//! assert_eq!(all.count(&stream, &stream.upload(&[10])?, &stream.upload(&[899])?)?.to_vec(&stream)?, [890]);
//! # Ok::<(), Error>(())
//! ```
//!
//! The module [`primitives`] has sorts, scans, reductions and joins of elements that are spread over the same ranks.
//!
//! # Ranks
//! A [`World`] has one or more *ranks*: processes, or threads of a process. Each rank has one or more shards. All ranks make the
//! same calls in the same order, each with its own keys, and each gets the results for these, in their order. An engine, the
//! [`Transport`], moves bytes between ranks:
//!
//! | engine | ranks | bytes go |
//! | --- | --- | --- |
//! | none: [`World::local`], [`World::on`] | one, with all shards | nowhere on one device; through host memory between devices |
//! | [`Threads`] | threads of a process | through host memory |
//! | `Mpi`, feature `mpi` | processes, on one machine or many | through host memory, or from device to device |
//! | `Nccl`, feature `nccl` | processes with a GPU each | from GPU to GPU |
//!
//! [`Modelled`] adds an account, and the time that a link of your choice would take, to any of them.
//!
//! # What a call does
//! A query splits its keys by shard, sends them, asks each shard once, brings the answers back, and puts them into the order of the
//! keys. Intervals go to the shards that they touch. With one shard in all, a call is a call of that shard, and nothing else.
//!
//! An update changes all shards or none. The ranks tell each other how their parts went before the changes stand.
//!
//! # Failures
//! - A rank fails, or the ranks do not make the same call: all get an error, and nothing has changed.
//! - A rank dies, or does not answer in time ([`World::timeout`]): all others get [`DictionaryLost`](gpu_primitives::Error), now or
//!   from their next call on. Nothing waits longer than that.
//! - [`Durable::checkpoint`](gpu_dictionary::Durable::checkpoint) keeps a dictionary in a folder, whatever fails and whenever.
//!   [`Sharded::save_set`] and [`Sharded::load_set`] keep a dictionary, also for another number of ranks.

mod build;
mod durable;
mod files;
mod methods;
mod modelled;
#[cfg(feature = "mpi")]
mod mpi;
#[cfg(feature = "nccl")]
mod nccl;
mod options;
mod ordered;
mod partition;
mod plan;
pub mod primitives;
mod shard;
mod sharded;
mod threads;
mod transport;
mod update;
mod world;

#[cfg(feature = "mpi")]
pub use self::mpi::Mpi;
pub use modelled::{Account, Link, Modelled};
#[cfg(feature = "nccl")]
pub use nccl::{Nccl, NcclId};
pub use options::Options;
pub use shard::Shard;
pub use sharded::Sharded;
pub use threads::Threads;
pub use transport::{Incoming, Lost, Outgoing, Transport};
pub use world::World;
