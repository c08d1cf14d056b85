//! Warps: which lanes may run, and their collectives.
//!
//! A lane that calls a collective publishes its call. The last lane of the mask to arrive computes the results of all
//! lanes and continues. The others are suspended once and find their result when they run again. Only the call of each
//! lane is stored, so masks may overlap and nest in any way: a lane waits with its mask until all lanes of this mask
//! wait with the same mask.

use super::block::Block;
use super::context;
use super::fault::{Caught, Elsewhere, FaultKind, Site};
use super::paths::PathId;
use std::cell::Cell;
use std::panic::Location;

pub(crate) const LANES: usize = 32;

/// The collectives of a warp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Collective {
    Sync,
    Ballot,
    Match,
    ShuffleIdx,
    ShuffleUp,
    ShuffleDown,
    ShuffleXor,
}

/// The state of 32 threads, each a bit of the masks.
pub(super) struct Warp {
    /// Suspended lanes that may continue.
    pub ready: Cell<u32>,
    /// Lanes that the scheduler has to start one by one. Empty in order, where lanes start without it.
    pub unstarted: Cell<u32>,
    /// Lanes that poll memory. They continue when all others have run.
    pub polling: Cell<u32>,
    /// Lanes that wait at the block's barrier.
    pub at_barrier: Cell<u32>,
    /// Lanes that wait in a collective.
    pub in_collective: Cell<u32>,
    /// Lanes that have returned.
    pub finished: Cell<u32>,
    /// The call of each lane: operation, line, mask, value, and the source or distance of a shuffle. One array per
    /// field, since a lane writes its fields one by one and the last lane reads one field of all lanes.
    operations: [Cell<Collective>; LANES],
    sites: [Cell<Site>; LANES],
    masks: [Cell<u32>; LANES],
    values: [Cell<u64>; LANES],
    arguments: [Cell<u32>; LANES],
    results: [Cell<u64>; LANES],
    /// The calls that led each lane to its collective, in checked mode.
    paths: [Cell<Option<PathId>>; LANES],
}

impl Warp {
    pub fn new() -> Self {
        let nowhere = Location::caller();
        Self {
            ready: Cell::new(0),
            unstarted: Cell::new(0),
            polling: Cell::new(0),
            at_barrier: Cell::new(0),
            in_collective: Cell::new(0),
            finished: Cell::new(0),
            operations: [const { Cell::new(Collective::Sync) }; LANES],
            sites: std::array::from_fn(|_| Cell::new(nowhere)),
            masks: [const { Cell::new(0) }; LANES],
            values: [const { Cell::new(0) }; LANES],
            arguments: [const { Cell::new(0) }; LANES],
            results: [const { Cell::new(0) }; LANES],
            paths: [const { Cell::new(None) }; LANES],
        }
    }

    /// Resets all lanes to not started. The scheduler starts the lanes in `unstarted`.
    pub fn reset(&self, unstarted: u32) {
        self.ready.set(0);
        self.unstarted.set(unstarted);
        self.polling.set(0);
        self.at_barrier.set(0);
        self.in_collective.set(0);
        self.finished.set(0);
    }

    /// Returns the lowest lane that waits in a collective for `lane`, which has returned.
    pub fn waits_for(&self, lane: u32) -> Option<u32> {
        lanes(self.in_collective.get()).find(|&waiting| self.masks[waiting as usize].get() & 1 << lane != 0)
    }

    /// Returns the mask and the line of the collective that `lane` waits in.
    pub fn call(&self, lane: u32) -> (u32, Site) {
        (self.masks[lane as usize].get(), self.sites[lane as usize].get())
    }

    /// Returns whether all lanes of `mask` wait with that mask.
    #[inline(always)]
    fn complete(&self, mask: u32) -> bool {
        self.in_collective.get() & mask == mask
            && (0..LANES).fold(true, |same, lane| same & (mask >> lane & 1 == 0 || self.masks[lane].get() == mask))
    }
}

/// Returns the lanes of a mask in ascending order.
pub(super) fn lanes(mut mask: u32) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let lane = mask.trailing_zeros();
        mask &= mask.wrapping_sub(1);
        (lane < 32).then_some(lane)
    })
}

/// Calls a collective: publishes the call, waits for the lanes of `mask`, and returns this lane's result.
///
/// The switch to another fiber is inlined into the kernel. In a separate function, the processor would mispredict every
/// return after a switch, which costs more than the switch itself.
#[inline(always)]
pub(crate) fn collective(operation: Collective, mask: u32, value: u64, argument: u32, site: Site) -> u64 {
    context::with_block(|block| {
        if !arrive(block, operation, mask, value, argument, site) {
            block.wait();
        }
        let thread = block.thread();
        block.warp(thread).results[thread as usize % LANES].get()
    })
}

/// Publishes the call of the running thread. Returns whether it was the last one: then all lanes have their results.
#[inline(never)]
fn arrive(block: &Block, operation: Collective, mask: u32, value: u64, argument: u32, site: Site) -> bool {
    let thread = block.thread();
    let lane = thread as usize % LANES;
    let warp = block.warp(thread);
    let bit = 1 << lane;
    if mask & bit == 0 || mask & warp.finished.get() != 0 {
        absent(block, warp, mask, site);
    }
    warp.operations[lane].set(operation);
    warp.sites[lane].set(site);
    warp.masks[lane].set(mask);
    warp.values[lane].set(value);
    warp.arguments[lane].set(argument);
    if block.checker().is_some() {
        warp.paths[lane].set(block.path(site));
    }
    warp.in_collective.set(warp.in_collective.get() | bit);
    if !warp.complete(mask) {
        return false;
    }
    agree(block, warp, operation, mask, site);
    finish(block, warp, operation, mask, site);
    warp.in_collective.set(warp.in_collective.get() & !mask);
    block.make_ready(thread, mask & !bit);
    true
}

/// Faults because a lane of the mask will not arrive: it has returned, or the caller is not in its own mask.
#[cold]
fn absent(block: &Block, warp: &Warp, mask: u32, site: Site) -> ! {
    let gone = mask & warp.finished.get();
    let (other_thread, other) = if gone != 0 {
        ((block.thread() & !31) + gone.trailing_zeros(), Elsewhere::Returned)
    } else {
        (block.thread(), Elsewhere::NotInMask)
    };
    block.throw(Caught::new(FaultKind::CollectiveDivergence { mask, other_thread, other }, Some(site)))
}

/// Checks that all lanes of the mask called the same operation at the same line.
#[inline(always)]
fn agree(block: &Block, warp: &Warp, operation: Collective, mask: u32, site: Site) {
    for lane in lanes(mask) {
        let (other, other_site) = (warp.operations[lane as usize].get(), warp.sites[lane as usize].get());
        if other != operation || !same_site(other_site, site) {
            let kind = FaultKind::CollectiveDivergence {
                mask,
                other_thread: (block.thread() & !31) + lane,
                other: Elsewhere::InCollective { mask, location: other_site },
            };
            block.throw(Caught::new(kind, Some(site)));
        }
    }
    if block.checker().is_some() {
        let path = |thread: u32| warp.paths[thread as usize % LANES].get();
        let (thread, first) = (block.thread(), block.thread() & !31);
        lanes(mask).for_each(|lane| block.expect_same_calls(site, path(thread), first + lane, path(lane)));
    }
}

/// Compares lines. One line may have several `Location`s, one per instance of a generic function.
#[inline(always)]
pub(super) fn same_site(a: Site, b: Site) -> bool {
    std::ptr::eq(a, b) || a == b
}

/// Computes the results of all lanes of the mask.
#[inline(always)]
fn finish(block: &Block, warp: &Warp, operation: Collective, mask: u32, site: Site) {
    match operation {
        Collective::Sync => {
            if let Some(checker) = block.checker() {
                checker.borrow_mut().sync_warp(block, mask);
            }
        }
        Collective::Ballot => {
            let votes = lanes(mask).fold(0, |votes, lane| votes | warp.values[lane as usize].get() << lane);
            lanes(mask).for_each(|lane| warp.results[lane as usize].set(votes));
        }
        Collective::Match => match_any(warp, mask),
        Collective::ShuffleIdx => shuffle(block, warp, mask, site, |_, source| source),
        Collective::ShuffleUp => shuffle(block, warp, mask, site, u32::wrapping_sub),
        Collective::ShuffleDown => shuffle(block, warp, mask, site, |lane, delta| lane + delta),
        Collective::ShuffleXor => shuffle(block, warp, mask, site, |lane, bits| lane ^ bits),
    }
}

/// Sets the result of each lane to the value of the lane that `source` returns, or to its own value if that lane is
/// beyond the ends of the warp.
#[inline(always)]
fn shuffle(block: &Block, warp: &Warp, mask: u32, site: Site, source: impl Fn(u32, u32) -> u32) {
    for lane in lanes(mask) {
        // The hardware uses five bits of the argument.
        let from = source(lane, warp.arguments[lane as usize].get() % 32);
        let from = if from < 32 { from } else { lane };
        if mask >> from & 1 == 0 && block.checker().is_some() {
            // On a GPU the value would be undefined. The fast mode returns the value that the lane published last.
            block.set_thread((block.thread() & !31) + lane);
            block.throw(Caught::new(FaultKind::InactiveSource { lane: from, mask }, Some(site)));
        }
        warp.results[lane as usize].set(warp.values[from as usize].get());
    }
}

/// Computes, for each lane, the lanes with an equal value. Uses a small hash table instead of comparing all pairs.
fn match_any(warp: &Warp, mask: u32) {
    const SLOTS: usize = 64;
    const EMPTY: u8 = 0xff;
    let mut first = [EMPTY; SLOTS];
    let mut peers = [0u32; LANES];
    let mut group = [0u8; LANES];
    for lane in lanes(mask) {
        let value = warp.values[lane as usize].get();
        let mut slot = (value.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58) as usize;
        // Terminates: there are twice as many slots as lanes.
        while first[slot] != EMPTY && warp.values[first[slot] as usize].get() != value {
            slot = (slot + 1) % SLOTS;
        }
        if first[slot] == EMPTY {
            first[slot] = lane as u8;
        }
        group[lane as usize] = first[slot];
        peers[first[slot] as usize] |= 1 << lane;
    }
    for lane in lanes(mask) {
        warp.results[lane as usize].set(u64::from(peers[group[lane as usize] as usize]));
    }
}
