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
    /// The region of shared memory that the view belongs to, in checked mode; otherwise 0. See [`tagged`].
    pub region: u16,
}

/// In checked mode, the upper bits of an address in shared memory are the number of the region, so that regions that
/// overlap can be told apart. Processors do not use these bits of an address.
const TAG_SHIFT: u32 = 48;
const TAG_MASK: u64 = !0 << TAG_SHIFT;

/// Puts the number of a region into an address in shared memory.
pub(super) fn tagged(pointer: *mut u8, region: u16) -> *mut u8 {
    // Addresses of 32 bits have no bits to spare: all regions are number 0 there.
    pointer.map_addr(|address| address | (u64::from(region) << TAG_SHIFT) as usize)
}

impl Touch {
    /// Takes the region out of the addresses.
    fn untagged(&self) -> Self {
        if self.space == Space::Global {
            return *self;
        }
        let address = |tagged: usize| (tagged as u64 & !TAG_MASK) as usize;
        let region = (self.base as u64 >> TAG_SHIFT) as u16;
        Self { base: address(self.base), address: address(self.address), region, ..*self }
    }

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
    let caught = Caught { kind, place: Some(touch.untagged().place(0)), location: Some(site) };
    with_block(|block| block.throw(caught))
}

/// Reports a plain access to the checker. Returns the address to access.
#[cold]
#[inline(never)]
#[track_caller]
pub(crate) fn plain(touch: &Touch, kind: Kind) -> usize {
    let (touch, site) = (touch.untagged(), Location::caller());
    with_block(|block| {
        let checker = block.checker().expect("checked mode has a checker");
        let result = checker.borrow_mut().plain(block, &touch, kind, site);
        result.unwrap_or_else(|caught| block.throw(*caught));
    });
    touch.address
}

/// Reports that a plain write is done.
#[cold]
#[inline(never)]
pub(crate) fn wrote(touch: &Touch) {
    with_block(|block| block.checker().expect("checked mode has a checker").borrow_mut().wrote(touch));
}

/// Checks that the launch may access the memory atomically. Returns the address to access.
#[cold]
#[inline(never)]
pub(crate) fn before_atomic(touch: &Touch, writes: bool, site: Site) -> usize {
    let touch = touch.untagged();
    with_block(|block| {
        let checker = block.checker().expect("checked mode has a checker");
        let result = checker.borrow().admit(&touch, writes, site);
        result.unwrap_or_else(|caught| block.throw(*caught));
    });
    touch.address
}

/// Reports an atomic access, which [`before_atomic`] has allowed, to the checker.
#[cold]
#[inline(never)]
pub(crate) fn atomic(touch: &Touch, effect: Effect, scope: Scope, order: Order, site: Site) {
    let touch = touch.untagged();
    with_block(|block| {
        let checker = block.checker().expect("checked mode has a checker");
        let result = checker.borrow_mut().atomic(block, &touch, effect, scope, order, site);
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
