//! Fibers: the coroutines that GPU threads run on.
//!
//! A fiber runs one thread of a block after another on the same stack, so a thread that never waits costs no switch.
//! When a thread waits, its fiber is suspended with it, and the scheduler takes another fiber for the next threads.
//!
//! Device code owns nothing (its values are plain data), so a suspended fiber may be discarded without unwinding.

use super::block::Block;
use super::context;
use corosensei::stack::{DefaultStack, Stack, StackPointer};
use corosensei::{Coroutine, CoroutineResult, Yielder};
use std::cell::{Cell, RefCell};

/// The size of a stack in bytes. Only touched pages cost memory.
const STACK_BYTES: usize = 256 << 10;
/// The number of idle fibers that an OS thread keeps: enough for two blocks of the maximum size.
const KEPT: usize = 2048;

/// Why a fiber returned control.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Park {
    /// Its thread waits.
    Waiting,
    /// It has no thread to run.
    Idle,
}

pub(super) type Suspend = Yielder<(), Park>;

/// A coroutine that runs threads of the current block of its OS thread.
pub(super) struct Fiber(Box<Coroutine<(), Park, (), ColouredStack>>);

impl Fiber {
    /// Takes a fiber from this OS thread's pool, or creates one.
    pub fn take() -> Self {
        POOL.with_borrow_mut(Vec::pop).unwrap_or_else(Self::new)
    }

    fn new() -> Self {
        Self(Box::new(Coroutine::with_stack(ColouredStack::new(), |suspend: &Suspend, ()| {
            loop {
                context::with_block(|block: &Block| block.run_threads(suspend));
                suspend.suspend(Park::Idle);
            }
        })))
    }

    /// Returns an idle fiber to the pool of its OS thread.
    pub fn give_back(self) {
        POOL.with_borrow_mut(|pool| {
            if pool.len() < KEPT {
                pool.push(self);
            }
        });
    }

    /// Runs the fiber until it waits or has no thread to run.
    #[inline(always)]
    pub fn resume(&mut self) -> Park {
        match self.0.resume(()) {
            CoroutineResult::Yield(park) => park,
            CoroutineResult::Return(()) => Park::Idle,
        }
    }
}

impl Drop for Fiber {
    fn drop(&mut self) {
        // SAFETY: neither the loop of the fiber nor device code holds anything that must be dropped.
        unsafe { self.0.force_reset() };
    }
}

thread_local! {
    static POOL: RefCell<Vec<Fiber>> = const { RefCell::new(Vec::new()) };
}

/// A stack whose base is at one of several offsets in its page.
///
/// The stacks of a warp are used in turn. At equal page offsets they would all compete for the same few lines of the
/// first-level cache.
struct ColouredStack {
    stack: DefaultStack,
    offset: usize,
}

impl ColouredStack {
    fn new() -> Self {
        thread_local! {
            static COLOUR: Cell<usize> = const { Cell::new(0) };
        }
        let stack = DefaultStack::new(STACK_BYTES).expect("out of memory for the stack of a GPU thread");
        // An odd number of cache lines, so that all 64 offsets occur before one repeats.
        let offset = COLOUR.replace(COLOUR.get().wrapping_add(9 * 64)) % 4096;
        Self { stack, offset }
    }
}

// SAFETY: this is the default stack without a few lines at its base. The guard page is unchanged.
unsafe impl Stack for ColouredStack {
    fn base(&self) -> StackPointer {
        StackPointer::new(self.stack.base().get() - self.offset).expect("a stack is not at address zero")
    }

    fn limit(&self) -> StackPointer {
        self.stack.limit()
    }

    #[cfg(windows)]
    fn teb_fields(&self) -> corosensei::stack::StackTebFields {
        self.stack.teb_fields()
    }

    #[cfg(windows)]
    fn update_teb_fields(&mut self, stack_limit: usize, guaranteed_stack_bytes: usize) {
        self.stack.update_teb_fields(stack_limit, guaranteed_stack_bytes);
    }
}
