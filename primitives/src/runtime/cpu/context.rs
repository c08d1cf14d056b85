//! How device code finds the block that it runs for: a pointer per OS thread.

use super::block::Block;
use std::cell::Cell;
use std::ptr;

struct Context {
    block: Cell<*const Block>,
    checked: Cell<bool>,
}

thread_local! {
    static CONTEXT: Context = const { Context { block: Cell::new(ptr::null()), checked: Cell::new(false) } };
}

/// Whether memory accesses are to be shown to the checker. The only cost of checking that the fast mode pays.
#[inline(always)]
pub(crate) fn checked() -> bool {
    CONTEXT.with(|context| context.checked.get())
}

/// Whether this OS thread is running a kernel.
pub(super) fn in_kernel() -> bool {
    CONTEXT.with(|context| !context.block.get().is_null())
}

/// The block of the running thread.
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
    panic!("device code was called outside a kernel");
}

/// Makes `block` the current one while `f` runs, which is where its threads run.
#[inline(always)]
pub(super) fn enter<R>(block: &Block, f: impl FnOnce() -> R) -> R {
    /// Device code panics in its fiber, which catches that; but a fiber may be refused by the system.
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
