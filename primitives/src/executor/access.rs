//! The memory accesses that device functions report to the executor: accesses to check, and invalid accesses.

use super::context::with_block;
use super::fault::{Caught, FaultKind, Place, Site};
use crate::model::{Order, Scope};
use std::panic::Location;

/// The memory that an access goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Space {
    Global,
    Shared,
}

/// The kind of a plain access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Read,
    /// A read through the read-only path, which does not see writes of the same launch.
    ReadOnly,
    Write,
}

/// The effect of an atomic access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    Load,
    Store,
    Rmw { changed: bool },
}

/// The bytes of an access, and the view it goes through.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Touch {
    pub space: Space,
    pub base: usize,
    pub address: usize,
    pub bytes: usize,
    pub element_bytes: usize,
}

impl Touch {
    /// Returns the byte at `offset` of the access, for a message.
    pub(super) fn place(&self, offset: usize) -> Place {
        Place {
            base: self.base,
            byte: self.address + offset,
            element_bytes: self.element_bytes,
            shared: (self.space == Space::Shared).then(|| with_block(|block| block.shared().0)),
        }
    }
}

#[cold]
#[inline(never)]
#[track_caller]
pub(crate) fn out_of_bounds(touch: &Touch, index: usize, len: usize) -> ! {
    fault(touch, FaultKind::OutOfBounds { buffer: String::new(), index, len }, Location::caller())
}

#[cold]
#[inline(never)]
#[track_caller]
pub(crate) fn misaligned(touch: &Touch, index: usize, align: usize) -> ! {
    fault(touch, FaultKind::Misaligned { buffer: String::new(), index, align }, Location::caller())
}

#[cold]
#[track_caller]
pub(crate) fn trap() -> ! {
    let site = Location::caller();
    with_block(|block| block.throw(Caught::new(FaultKind::Trap, Some(site))))
}

fn fault(touch: &Touch, kind: FaultKind, site: Site) -> ! {
    let caught = Caught { kind, place: Some(touch.place(0)), location: Some(site) };
    with_block(|block| block.throw(caught))
}

/// Reports a plain access to the checker.
#[cold]
#[inline(never)]
#[track_caller]
pub(crate) fn plain(touch: &Touch, kind: Kind) {
    let site = Location::caller();
    with_block(|block| {
        let checker = block.checker().expect("checked mode has a checker");
        let result = checker.borrow_mut().plain(block, touch, kind, site);
        if let Err(caught) = result {
            block.throw(*caught);
        }
    });
}

/// Reports an atomic access to the checker.
#[cold]
#[inline(never)]
pub(crate) fn atomic(touch: &Touch, effect: Effect, scope: Scope, order: Order, site: Site) {
    with_block(|block| {
        let checker = block.checker().expect("checked mode has a checker");
        let result = checker.borrow_mut().atomic(block, touch, effect, scope, order, site);
        if let Err(caught) = result {
            block.throw(*caught);
        }
    });
}

/// Reports a fence to the checker.
#[cold]
#[inline(never)]
pub(crate) fn fence(scope: Scope) {
    with_block(|block| block.checker().expect("checked mode has a checker").borrow_mut().fence(block, scope));
}
