//! Faults as panics: a fault unwinds from the faulting thread to its fiber, just like a panic of the kernel itself.

use super::context;
use super::fault::{Caught, FaultKind, Site};
use std::any::Any;
use std::cell::Cell;
use std::panic::{self, Location};
use std::sync::Once;

thread_local! {
    static LOCATION: Cell<Option<Site>> = const { Cell::new(None) };
}

/// Ends the running thread with a fault. Prints nothing.
#[cold]
pub(super) fn throw(caught: Caught) -> ! {
    panic::resume_unwind(Box::new(caught))
}

/// Converts a panic's payload into the fault that ended the thread.
pub(super) fn caught(payload: Box<dyn Any + Send>) -> Caught {
    let payload = match payload.downcast::<Caught>() {
        Ok(caught) => return *caught,
        Err(payload) => payload,
    };
    let message = match (payload.downcast_ref::<&str>(), payload.downcast_ref::<String>()) {
        (Some(message), _) => (*message).to_owned(),
        (_, Some(message)) => message.clone(),
        _ => "no message".to_owned(),
    };
    Caught::new(FaultKind::Panic { message }, LOCATION.take())
}

/// Installs a panic hook that prints nothing for panics in kernels, which are reported as faults, and records their
/// lines. Other panics go to the previous hook.
pub(crate) fn install_hook() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        let previous = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if context::in_kernel() {
                LOCATION.set(info.location().map(keep));
            } else {
                previous(info);
            }
        }));
    });
}

/// Extends the lifetime of a location, which the hook sees with a shorter one.
fn keep(location: &Location<'_>) -> Site {
    // SAFETY: the location of a panic is that of a call, and the compiler stores those in statics.
    unsafe { std::mem::transmute::<&Location<'_>, Site>(location) }
}
