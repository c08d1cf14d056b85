//! The executor of the CPU device: runs every GPU thread of a launch as a coroutine.
//!
//! From the outside in:
//! - [`launch`]: workers, one per OS thread, take blocks and run them. They schedule the blocks and detect deadlocks.
//! - [`resident`]: a block with the fibers of its suspended threads. Picks the thread that runs next.
//! - [`block`] and [`warp`]: the state of a block: its barrier, its polling threads, the collectives of its warps.
//! - [`native`]: kernels with a body for the CPU run it instead, as plain loops, unless threads are to be simulated.
//! - [`fiber`]: the coroutines. [`context`]: how device code finds its block.
//! - [`access`]: the memory accesses of device code.
//! - [`memory`]: the allocations of a device, and the memory that a launch may use.
//! - [`check`]: in checked mode, observes every access and finds races and uninitialised reads.
//! - [`fault`] and [`panics`]: the errors of a kernel, and how they reach the caller of the launch.
//!
//! A block runs on one OS thread. Its threads take turns only where they wait: at barriers, in collectives, while they
//! poll. The state of a block is therefore plain cells, and a thread that never waits runs as a plain call.
//!
//! The executor knows kernels only as [entries](Entry). It depends on nothing above it.

pub(crate) mod access;
mod block;
mod check;
pub(crate) mod context;
mod fault;
mod fiber;
mod launch;
mod memory;
mod native;
mod pages;
mod panics;
mod paths;
mod random;
mod resident;
pub(crate) mod warp;

pub(crate) use block::{Block, Entry, Job};
pub(crate) use check::Checker;
pub use fault::{Access, Elsewhere, Fault, FaultKind};
pub(crate) use launch::{Launch, default_workers};
pub(crate) use memory::{AllocError, Given, Heap, Known};
pub use native::Team;
pub(crate) use native::{chunks, run_native};
pub(crate) use panics::install_hook;
pub(crate) use random::Random;
