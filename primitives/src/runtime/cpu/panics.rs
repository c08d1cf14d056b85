//! Faults travel as panics, from the thread that is caught to the fiber that runs it; so do the kernel's own panics.

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

/// What ended a thread.
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

/// Makes the panic hook keep quiet about panics in kernels, which are reported as faults, and remember their lines.
/// Other panics go to the hook that was there before.
pub(super) fn install_hook() {
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

/// The location as what it is. The hook sees it with a shorter life.
fn keep(location: &Location<'_>) -> Site {
    // SAFETY: a panic's location is that of a call, and the compiler makes those statics.
    unsafe { std::mem::transmute::<&Location<'_>, Site>(location) }
}
