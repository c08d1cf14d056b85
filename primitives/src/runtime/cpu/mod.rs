//! The CPU device: runs kernels with every GPU thread as a coroutine.
//!
//! From the outside in:
//! - [`CpuDevice`] owns memory ([`memory`]) and launches kernels.
//! - [`launch`]: workers, one per OS thread, take blocks and run them; who waits for whom, and when nobody can go on.
//! - [`resident`]: a block with the fibers of its suspended threads; picks the thread that runs next.
//! - [`block`] and [`warp`]: the state of a block; its barrier, its polling threads, the collectives of its warps.
//! - [`fiber`]: the coroutines. [`context`]: how device code finds its block.
//! - [`device`]: what `arch::cpu` says to the executor about memory.
//! - [`queue`]: streams; on the checked device queues that are really apart.
//! - [`check`]: in checked mode, sees every access and finds races and reads of what nobody wrote.
//! - [`fault`] and [`panics`]: what a thread was caught at, and how it travels to who launched the kernel.
//!
//! A block runs on one OS thread, and its threads take turns only where they wait: at barriers, in collectives, while
//! they poll. Everything in a block is therefore plain cells, and a thread that never waits runs as a plain call.

mod block;
mod check;
pub(crate) mod context;
pub(crate) mod device;
mod fault;
mod fiber;
mod launch;
mod memory;
mod panics;
mod queue;
mod random;
mod resident;
#[cfg(test)]
mod tests;
pub(crate) mod warp;

pub use fault::{Access, Elsewhere, Fault, FaultKind};
pub(crate) use memory::AllocError;
pub(crate) use queue::{CpuLane, CpuMark};

use crate::kernel::{Kernel, Reach};
use block::Job;
use check::Checker;
use launch::Launch;
use memory::{Given, Heap, Known};
use queue::Queues;
use std::backtrace::Backtrace;
use std::cell::RefCell;
use std::mem;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How the CPU device runs kernels. The default is fast: unchecked, in order, on all cores.
#[derive(Clone, Debug, Default)]
pub struct CpuOptions {
    /// Find races, uninitialised reads and the like. Much slower; blocks run on one core.
    pub checked: bool,
    /// The order in which threads and blocks run.
    pub schedule: Schedule,
    /// OS threads that run blocks; `None` for one per core.
    pub workers: Option<usize>,
    /// Bytes that the device pretends to have; `None` for as much as the system gives.
    pub memory_limit: Option<usize>,
}

/// The order in which threads and blocks run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Schedule {
    /// Blocks start in ascending order and threads run in ascending order, as far as they do not wait.
    #[default]
    InOrder,
    /// An order that depends on the seed alone, made to break protocols: blocks start in random order and several are
    /// interleaved, lanes and warps run in random order, threads are pre-empted at atomics and fences, and now and then
    /// a block gets no turn for long. Runs on one core.
    Random {
        /// The same seed and the same launches before give the same order.
        seed: u64,
    },
}

/// The CPU as a device.
#[derive(Debug)]
pub(crate) struct CpuDevice {
    options: CpuOptions,
    heap: Heap,
    /// Used in checked mode.
    known: Mutex<Known>,
    queues: Mutex<Queues>,
    launches: AtomicU64,
}

/// Loads of one address in a row that count as polling.
const PATIENCE_FAST: u32 = 4096;
const PATIENCE_CHECKED: u32 = 8;

impl CpuDevice {
    pub fn new(options: CpuOptions) -> Self {
        panics::install_hook();
        let seed = match options.schedule {
            Schedule::InOrder => None,
            Schedule::Random { seed } => Some(seed),
        };
        Self {
            heap: Heap::new(options.memory_limit),
            known: Mutex::default(),
            queues: Mutex::new(Queues::new(seed)),
            launches: AtomicU64::new(0),
            options,
        }
    }

    pub fn options(&self) -> &CpuOptions {
        &self.options
    }

    /// Memory of `bytes` bytes at a multiple of 256. The bytes are zero; in checked mode they count as not written.
    pub fn allocate(&self, bytes: usize) -> Result<*mut u8, AllocError> {
        let pointer = self.heap.allocate(bytes).or_else(|_| {
            // Memory that waits in a queue to be freed can be had.
            self.finish_all();
            self.heap.allocate(bytes)
        })?;
        if bytes != 0 {
            self.if_checked(|known| known.allocated(pointer.addr(), bytes));
        }
        Ok(pointer)
    }

    /// Gives memory back. In checked mode it is kept for a while, so that its use is found; `by` is who freed it.
    ///
    /// # Safety
    /// `pointer` is from [`allocate`](Self::allocate) of this device with the same `bytes`, and nobody uses it any more.
    pub unsafe fn free(&self, pointer: *mut u8, bytes: usize, by: Option<&Backtrace>) {
        if bytes == 0 {
            return;
        }
        self.heap.discount(bytes);
        match self.if_checked(|known| known.freed(pointer, bytes, by)) {
            // SAFETY: the caller's promise.
            None => unsafe { self.heap.give_back(pointer, bytes) },
            Some(forgotten) => {
                for (pointer, bytes) in forgotten {
                    // SAFETY: freed before, and kept until now.
                    unsafe { self.heap.give_back(pointer, bytes) };
                }
            }
        }
    }

    /// Bytes that are allocated.
    pub fn used(&self) -> usize {
        self.heap.used()
    }

    /// The host has written these bytes.
    pub fn mark_initialised(&self, pointer: *const u8, bytes: usize) {
        self.if_checked(|known| known.mark(pointer.addr(), bytes));
    }

    /// The first of these bytes that nobody has written. Known in checked mode only.
    pub fn first_uninitialised(&self, pointer: *const u8, bytes: usize) -> Option<usize> {
        self.if_checked(|known| known.first_unwritten(pointer.addr(), bytes)).flatten()
    }

    /// The host has copied these bytes; those that nobody has written are still so.
    pub fn copy_initialised(&self, from: *const u8, to: *mut u8, bytes: usize) {
        self.if_checked(|known| known.copy(from.addr(), to.addr(), bytes));
    }

    fn if_checked<R>(&self, f: impl FnOnce(&mut Known) -> R) -> Option<R> {
        self.options.checked.then(|| f(&mut self.lock()))
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a kernel with `blocks` blocks, at least one, and waits for it. `reach` is memory that it may use in addition to
    /// that of its arguments.
    pub fn launch<K: Kernel>(&self, kernel: K, reach: &Reach, blocks: u32) -> Result<(), Box<Fault>> {
        const { assert!(K::THREADS % 32 == 0 && K::THREADS > 0 && K::THREADS <= 1024, "a block is 1 to 32 whole warps") };
        let number = self.launches.fetch_add(1, Ordering::Relaxed);
        let seed = match self.options.schedule {
            Schedule::InOrder => None,
            // Launches of one device differ, but in the same way every time.
            Schedule::Random { seed } => Some(seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15)),
        };
        let caught = if self.options.checked {
            // Held throughout: one checked launch at a time.
            let mut known = self.lock();
            let given = Given::new(&known, &kernel, reach);
            let checker = RefCell::new(Checker::new(mem::take(&mut *known), given));
            let job = Job::new(&kernel, blocks, PATIENCE_CHECKED, seed, Some(&checker));
            let caught = Launch::new(job, 1, seed).run();
            *known = checker.into_inner().into_known();
            caught
        } else {
            let workers = self.options.workers.unwrap_or_else(launch::default_workers);
            let job = Job::new(&kernel, blocks, PATIENCE_FAST, seed, None);
            Launch::new(job, if seed.is_some() { 1 } else { workers }, seed).run()
        };
        match caught {
            None => Ok(()),
            Some((block, thread, caught)) => Err(Box::new(caught.named(&kernel, block, thread))),
        }
    }
}

impl Drop for CpuDevice {
    fn drop(&mut self) {
        for (pointer, bytes) in self.lock().forget_all() {
            // SAFETY: freed before, and kept until now.
            unsafe { self.heap.give_back(pointer, bytes) };
        }
    }
}
