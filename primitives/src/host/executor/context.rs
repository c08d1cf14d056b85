//! The current block of device code: one pointer per OS thread.

use super::block::Block;
use std::cell::Cell;
use std::ptr;

struct Context {
    block: Cell<*const Block>,
    /// Whether the native body of a kernel is running. It has no blocks.
    native: Cell<bool>,
    checked: Cell<bool>,
}

thread_local! {
    static CONTEXT: Context = const { Context { block: Cell::new(ptr::null()), native: Cell::new(false), checked: Cell::new(false) } };
}

/// Returns whether memory accesses must be reported to the checker. This test is all that checking costs the fast mode.
#[inline(always)]
pub(crate) fn checked() -> bool {
    CONTEXT.with(|context| context.checked.get())
}

/// Returns whether this OS thread is running a kernel.
pub(crate) fn in_kernel() -> bool {
    CONTEXT.with(|context| context.native.get() || !context.block.get().is_null())
}

/// Calls `f`, which runs a native body or a part of it.
pub(super) fn in_native_body<R>(f: impl FnOnce() -> R) -> R {
    struct Leave<'a>(&'a Context, bool);

    impl Drop for Leave<'_> {
        fn drop(&mut self) {
            self.0.native.set(self.1);
        }
    }

    CONTEXT.with(|context| {
        let _leave = Leave(context, context.native.replace(true));
        f()
    })
}

/// Calls `f` with the block of the running thread.
#[inline(always)]
pub(crate) fn with_block<R>(f: impl FnOnce(&Block) -> R) -> R {
    let block = CONTEXT.with(|context| context.block.get());
    if block.is_null() {
        outside();
    }
    // SAFETY: `enter` keeps the block alive while the pointer is set.
    f(unsafe { &*block })
}

#[cold]
#[inline(never)]
fn outside() -> ! {
    panic!("a device function was called outside a kernel");
}

/// Makes `block` the current block while `f` runs its threads.
#[inline(always)]
pub(super) fn enter<R>(block: &Block, f: impl FnOnce() -> R) -> R {
    /// Resets the context even if `f` panics. Fibers catch the panics of device code, but creating a fiber may fail.
    struct Leave<'a>(&'a Context);

    impl Drop for Leave<'_> {
        fn drop(&mut self) {
            self.0.block.set(ptr::null());
            self.0.checked.set(false);
        }
    }

    CONTEXT.with(|context| {
        context.block.set(block);
        context.checked.set(block.checker().is_some());
        let _leave = Leave(context);
        f()
    })
}
