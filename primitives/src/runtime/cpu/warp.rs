//! Warps: which lanes may run, and the collectives of their lanes.
//!
//! A lane that calls a collective publishes its call. The last lane of the mask to arrive computes the results of all of
//! them and goes on; the others are suspended once, and find their result when they run again. Nothing but the call of
//! each lane is stored, so masks may overlap and nest in any way: a lane waits with its mask until exactly the lanes of
//! this mask wait with the same one.

use super::block::Block;
use super::context;
use super::fault::{Caught, Elsewhere, FaultKind, Site};
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
    /// Suspended, and may go on.
    pub ready: Cell<u32>,
    /// Started by the scheduler, one by one; in order they start by themselves, and none is here.
    pub unstarted: Cell<u32>,
    /// Polls memory; goes on when all others have had their turn.
    pub polling: Cell<u32>,
    /// Waits at the block's barrier.
    pub at_barrier: Cell<u32>,
    /// Waits in a collective.
    pub in_collective: Cell<u32>,
    /// Has returned.
    pub finished: Cell<u32>,
    /// The call that each lane is in: operation, line, mask, value, and the source or distance of a shuffle. An array
    /// of each, since a lane writes them one by one and the last lane reads all of one sort.
    operations: [Cell<Collective>; LANES],
    sites: [Cell<Site>; LANES],
    masks: [Cell<u32>; LANES],
    values: [Cell<u64>; LANES],
    arguments: [Cell<u32>; LANES],
    results: [Cell<u64>; LANES],
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
        }
    }

    /// No lane has run; `unstarted` are for the scheduler to start.
    pub fn reset(&self, unstarted: u32) {
        self.ready.set(0);
        self.unstarted.set(unstarted);
        self.polling.set(0);
        self.at_barrier.set(0);
        self.in_collective.set(0);
        self.finished.set(0);
    }

    /// The lowest lane that waits in a collective which `lane` can no longer come to, since it has returned.
    pub fn waits_for(&self, lane: u32) -> Option<u32> {
        lanes(self.in_collective.get()).find(|&waiting| self.masks[waiting as usize].get() & 1 << lane != 0)
    }

    /// The mask and the line of the collective that `lane` waits in.
    pub fn call(&self, lane: u32) -> (u32, Site) {
        (self.masks[lane as usize].get(), self.sites[lane as usize].get())
    }

    /// Whether all lanes of `mask` wait with that mask.
    #[inline(always)]
    fn complete(&self, mask: u32) -> bool {
        self.in_collective.get() & mask == mask
            && (0..LANES).fold(true, |same, lane| same & (mask >> lane & 1 == 0 || self.masks[lane].get() == mask))
    }
}

/// The lanes of a mask, ascending.
pub(super) fn lanes(mut mask: u32) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let lane = mask.trailing_zeros();
        mask &= mask.wrapping_sub(1);
        (lane < 32).then_some(lane)
    })
}

/// Calls a collective: publishes the call, waits for the lanes of `mask`, gives this lane's result.
///
/// The switch to another fiber is inlined into the kernel. Inside a function of its own, every return after a switch
/// would go elsewhere than the processor predicts, which costs more than the switch itself.
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

/// Publishes the call of the running thread. True if it was the last one, and all lanes have their results.
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

/// Reports that a lane of the mask will not come: it has returned, or the caller is not in its own mask.
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

/// Checks that all lanes of the mask called the same operation at the same place.
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
}

/// One line may have several `Location`s, one per instance of a generic function.
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

/// Gives each lane the value of the lane that `source` names, or its own value beyond the ends of the warp.
#[inline(always)]
fn shuffle(block: &Block, warp: &Warp, mask: u32, site: Site, source: impl Fn(u32, u32) -> u32) {
    for lane in lanes(mask) {
        // The hardware looks at five bits of the argument.
        let from = source(lane, warp.arguments[lane as usize].get() % 32);
        let from = if from < 32 { from } else { lane };
        if mask >> from & 1 == 0 && block.checker().is_some() {
            // On a GPU the value would be undefined. The fast mode gives what that lane published last.
            block.set_thread((block.thread() & !31) + lane);
            block.throw(Caught::new(FaultKind::InactiveSource { lane: from, mask }, Some(site)));
        }
        warp.results[lane as usize].set(warp.values[from as usize].get());
    }
}

/// The lanes with equal values, for each lane: a small hash table instead of comparing all pairs.
fn match_any(warp: &Warp, mask: u32) {
    const SLOTS: usize = 64;
    const EMPTY: u8 = 0xff;
    let mut first = [EMPTY; SLOTS];
    let mut peers = [0u32; LANES];
    let mut group = [0u8; LANES];
    for lane in lanes(mask) {
        let value = warp.values[lane as usize].get();
        let mut slot = (value.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58) as usize;
        // Ends: there are twice as many slots as lanes.
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
