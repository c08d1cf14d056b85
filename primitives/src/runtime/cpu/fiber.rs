//! Fibers: the coroutines that GPU threads run on.
//!
//! A fiber runs thread after thread of a block on one stack, so that a thread that never waits costs no switch. When a
//! thread waits, its fiber is suspended with it, and the scheduler takes another one for the threads that follow.
//!
//! Device code owns nothing (its values are plain data), so a suspended fiber may be thrown away without unwinding.

use super::block::Block;
use super::context;
use corosensei::stack::{DefaultStack, Stack, StackPointer};
use corosensei::{Coroutine, CoroutineResult, Yielder};
use std::cell::{Cell, RefCell};

/// Bytes of a stack. Only the pages that are touched cost memory.
const STACK_BYTES: usize = 256 << 10;
/// Idle fibers that an OS thread keeps: enough for two blocks of the largest size.
const KEPT: usize = 2048;

/// Why a fiber gave control back.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Park {
    /// The thread that it runs waits.
    Waiting,
    /// It has no thread to run.
    Idle,
}

pub(super) type Suspend = Yielder<(), Park>;

/// A coroutine that runs threads of the current block of its OS thread.
pub(super) struct Fiber(Box<Coroutine<(), Park, (), ColouredStack>>);

impl Fiber {
    /// A fiber of this OS thread's pool, or a new one.
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

    /// Gives the fiber back to the pool of its OS thread. It is idle.
    pub fn give_back(self) {
        POOL.with_borrow_mut(|pool| {
            if pool.len() < KEPT {
                pool.push(self);
            }
        });
    }

    /// Lets the fiber run until it waits or has nothing to do.
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
        // SAFETY: neither the loop of the fiber nor device code holds anything that has to be dropped.
        unsafe { self.0.force_reset() };
    }
}

thread_local! {
    static POOL: RefCell<Vec<Fiber>> = const { RefCell::new(Vec::new()) };
}

/// A stack whose hot end starts at one of several offsets in its page.
///
/// The stacks of a warp are used in turn. At equal offsets in their pages they would all fight for the same few lines of
/// the first-level cache.
struct ColouredStack {
    stack: DefaultStack,
    offset: usize,
}

impl ColouredStack {
    fn new() -> Self {
        thread_local! {
            static COLOUR: Cell<usize> = const { Cell::new(0) };
        }
        let stack = DefaultStack::new(STACK_BYTES).expect("no memory for the stack of a GPU thread");
        // An odd number of cache lines: all 64 offsets come up before one returns.
        let offset = COLOUR.replace(COLOUR.get().wrapping_add(9 * 64)) % 4096;
        Self { stack, offset }
    }
}

// SAFETY: the stack is the default one, less a few lines at its base; its guard page stays where it was.
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
