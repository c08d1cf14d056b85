//! The CPU device: memory, launches, and streams as queues.

mod queue;
#[cfg(test)]
mod tests;

pub use queue::expect_host;
pub(crate) use queue::{CpuLane, CpuMark, Landing};

use crate::form::Kernel;
use crate::host::executor::{
    self, AllocError, Block, Checker, Entry, Fault, Given, Heap, Job, Known, Launch, default_workers, run_native,
};
use crate::host::runtime::call::Reach;
use crate::host::runtime::host_blocks::Place;
use crate::host::runtime::launch::KernelType;
use queue::Queues;
use std::backtrace::Backtrace;
use std::cell::RefCell;
use std::mem;
use std::panic::Location;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The options of the CPU device. The default is the fast mode: unchecked, in order, on all cores.
#[derive(Clone, Debug, Default)]
pub struct CpuOptions {
    /// Whether to detect races, uninitialised reads and similar faults. Much slower, and blocks run on one core.
    pub checked: bool,
    /// Whether to run every kernel thread by thread, as a GPU would. Otherwise the kernels that cost most run as plain
    /// loops, with the same results, unless the device is checked or runs in a random order.
    pub simulated: bool,
    /// The order in which threads and blocks run.
    pub schedule: Schedule,
    /// The number of OS threads that run blocks; `None` for one per core.
    pub workers: Option<usize>,
    /// The size of the device's memory in bytes; `None` for no limit except that of the system.
    pub memory_limit: Option<usize>,
    /// Whether to refuse kernels that have no PTX, and operators that cannot be recorded, with the errors that a GPU gives: for
    /// tests on a machine without a GPU.
    pub only_with_ptx: bool,
}

/// The order in which threads and blocks run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Schedule {
    /// Blocks start in ascending order, and threads run in ascending order until they wait.
    #[default]
    InOrder,
    /// A random order, made to break synchronisation protocols. Blocks start in random order, and several are
    /// interleaved. Lanes and warps run in random order. Threads are pre-empted at atomics and fences. Now and then a
    /// block is starved for a long time. Depends only on the seed, and runs on one core.
    Random {
        /// The same seed and the same preceding launches give the same order.
        seed: u64,
    },
}

/// The CPU as a device.
#[derive(Debug)]
pub(crate) struct CpuDevice {
    options: CpuOptions,
    heap: Heap,
    /// What stands for the host memory of a GPU. It has no limit.
    host_heap: Heap,
    /// Used in checked mode.
    known: Mutex<Known>,
    queues: Mutex<Queues>,
    launches: AtomicU64,
}

/// The number of consecutive loads of one address that count as polling.
const PATIENCE_FAST: u32 = 4096;
const PATIENCE_CHECKED: u32 = 8;

impl CpuDevice {
    pub fn new(options: CpuOptions) -> Self {
        executor::install_hook();
        let seed = match options.schedule {
            Schedule::InOrder => None,
            Schedule::Random { seed } => Some(seed),
        };
        Self {
            heap: Heap::new(options.memory_limit),
            host_heap: Heap::new(None),
            known: Mutex::default(),
            queues: Mutex::new(Queues::new(seed)),
            launches: AtomicU64::new(0),
            options,
        }
    }

    pub fn options(&self) -> &CpuOptions {
        &self.options
    }

    /// Returns whether kernels run thread by thread, although they have native bodies.
    pub fn simulates(&self) -> bool {
        self.options.simulated || self.options.checked || self.options.schedule != Schedule::InOrder
    }

    /// Allocates `bytes` bytes at a multiple of 256. The bytes are zero; in checked mode they count as uninitialised.
    #[track_caller]
    pub fn allocate(&self, bytes: usize, place: Place) -> Result<*mut u8, AllocError> {
        let site = Location::caller();
        let heap = self.heap(place);
        let pointer = heap.allocate(bytes).or_else(|_| {
            // Run the queued frees, then try again.
            self.finish_all();
            heap.allocate(bytes)
        })?;
        if bytes != 0 {
            self.if_checked(|known| known.allocated(pointer, bytes, site));
        }
        Ok(pointer)
    }

    /// Frees memory. In checked mode the memory is kept for a while, so that later accesses are detected; `by` is the
    /// backtrace of the free.
    ///
    /// # Safety
    /// `pointer` must come from [`allocate`](Self::allocate) of this device with the same `bytes` and `place`, and must no longer
    /// be used.
    pub unsafe fn free(&self, pointer: *mut u8, bytes: usize, place: Place, by: Option<&Arc<Backtrace>>) {
        if bytes == 0 {
            return;
        }
        self.heap(place).discount(bytes);
        match self.if_checked(|known| known.freed(pointer, bytes, by.cloned())) {
            // SAFETY: guaranteed by the caller. All heaps get their memory from one allocator, and freed memory is that of any.
            None => unsafe { self.heap.give_back(pointer, bytes) },
            Some(forgotten) => {
                for (pointer, bytes) in forgotten {
                    // SAFETY: freed before, and kept until now.
                    unsafe { self.heap.give_back(pointer, bytes) };
                }
            }
        }
    }

    fn heap(&self, place: Place) -> &Heap {
        match place {
            Place::Device => &self.heap,
            Place::Host => &self.host_heap,
        }
    }

    /// Returns the number of allocated bytes, without those of host memory.
    pub fn used(&self) -> usize {
        self.heap.used()
    }

    /// Marks bytes that the host has written as initialised.
    pub fn mark_initialised(&self, pointer: *const u8, bytes: usize) {
        self.if_checked(|known| known.mark(pointer.addr(), bytes));
    }

    /// Returns the first of these bytes that is uninitialised. Always `None` outside checked mode.
    pub fn first_uninitialised(&self, pointer: *const u8, bytes: usize) -> Option<usize> {
        self.if_checked(|known| known.first_unwritten(pointer.addr(), bytes)).flatten()
    }

    /// Marks bytes that the host has copied: uninitialised bytes stay uninitialised.
    pub fn copy_initialised(&self, from: *const u8, to: *mut u8, bytes: usize) {
        self.if_checked(|known| known.copy(from.addr(), to.addr(), bytes));
    }

    fn if_checked<R>(&self, f: impl FnOnce(&mut Known) -> R) -> Option<R> {
        self.options.checked.then(|| f(&mut self.lock()))
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a kernel with `blocks` blocks, at least one, and waits for it. `reach` is memory that it may use in
    /// addition to that of its arguments.
    ///
    /// # Safety
    /// The arguments are those of a kernel of this type, and satisfy its contract.
    pub unsafe fn launch(
        &self,
        kernel: &KernelType,
        arguments: *const (),
        reach: &Reach,
        blocks: u32,
    ) -> Result<(), Box<Fault>> {
        let workers = self.options.workers.unwrap_or_else(default_workers);
        // SAFETY: guaranteed by the caller.
        let buffers = || unsafe { kernel.buffers(arguments) };
        if let Some(native) = kernel.native.filter(|_| !self.simulates()) {
            // SAFETY: guaranteed by the caller.
            let caught = run_native(workers, &|team| unsafe { native(arguments, team) });
            return match caught {
                None => Ok(()),
                Some(caught) => Err(Box::new(caught.named(kernel.name, &buffers(), 0, 0))),
            };
        }
        let entry = kernel.entry.expect("a stream launches no kernel that was not compiled");
        let number = self.launches.fetch_add(1, Ordering::Relaxed);
        let seed = match self.options.schedule {
            Schedule::InOrder => None,
            // The launches of one device differ, but reproducibly.
            Schedule::Random { seed } => Some(seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15)),
        };
        let job = |checker: Option<&RefCell<Checker>>| Job {
            entry,
            kernel: arguments,
            grid: blocks,
            threads: kernel.threads,
            shared_bytes: kernel.shared_bytes,
            patience: if checker.is_some() { PATIENCE_CHECKED } else { PATIENCE_FAST },
            pre_empt: seed,
            checker: checker.map_or(ptr::null(), ptr::from_ref),
        };
        let caught = if self.options.checked {
            // RegisterRepr throughout: one checked launch at a time.
            let mut known = self.lock();
            let reachable = buffers().into_iter().map(|(_, buffer)| buffer).chain(reach.buffers().iter().copied());
            let given = Given::new(&known, reachable);
            let checker = RefCell::new(Checker::new(mem::take(&mut *known), given));
            let run = || Launch::new(job(Some(&checker)), 1, seed).run();
            let caught = run().or_else(|| {
                // A second run finds the thread of a raw write. It writes the same, since nothing else has changed.
                let raw_write = checker.borrow_mut().rewind()?;
                run().or(Some((0, 0, raw_write)))
            });
            *known = checker.into_inner().into_known();
            caught
        } else {
            Launch::new(job(None), if seed.is_some() { 1 } else { workers }, seed).run()
        };
        match caught {
            None => Ok(()),
            Some((block, thread, caught)) => Err(Box::new(caught.named(kernel.name, &buffers(), block, thread))),
        }
    }
}

/// Returns the code of a kernel on the CPU.
pub(super) const fn entry<K: Kernel>() -> Entry {
    /// Runs threads of a block until none is left to start.
    ///
    /// # Safety
    /// The block's job must have been created for a `K` that still exists. The kernel's contract must hold.
    unsafe fn run<K: Kernel>(block: &Block) {
        let kernel = block.kernel().cast::<K>();
        while block.next_thread() {
            // SAFETY: `kernel` is the `K` of the launch. The launch's caller guarantees the kernel's contract.
            unsafe { (*kernel).run() };
            block.thread_returned();
        }
    }
    Entry(run::<K>)
}

impl Drop for CpuDevice {
    fn drop(&mut self) {
        for (pointer, bytes) in self.lock().forget_all() {
            // SAFETY: freed before, and kept until now.
            unsafe { self.heap.give_back(pointer, bytes) };
        }
    }
}
