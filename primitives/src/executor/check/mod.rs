//! The checker: observes every memory access, and finds uninitialised reads and data races.
//!
//! Races are found by happens-before, independent of the schedule: two accesses race if no barrier, `sync_warp`, or
//! release and acquire orders them, no matter which came first. Shuffles, votes and matches order nothing. Atomics and
//! fences follow the rules of C++, with scopes: a release in the scope of a block is not acquired by another block.

mod clock;
mod shadow;

use super::access::{Effect, Kind, Space, Touch};
use super::block::Block;
use super::fault::{Caught, FaultKind, Site};
use super::memory::{Bits, Given, Known, Refused};
use crate::model::{Order, Scope};
use clock::{Clock, Moment, Snapshot};
use shadow::{AddressHasher, Shadow, Sort, Stamp};
use std::collections::HashMap;
use std::hash::BuildHasherDefault;

/// The checker's state for a launch.
pub(crate) struct Checker {
    /// Which bytes of device memory are initialised, by this launch or before.
    known: Known,
    given: Given,
    shadow: Shadow,
    /// The last release at each atomic word.
    released: HashMap<usize, Snapshot, BuildHasherDefault<AddressHasher>>,
    blocks: HashMap<u32, Watched, BuildHasherDefault<AddressHasher>>,
}

/// The checker's state for a resident block.
struct Watched {
    epoch: u32,
    clocks: Vec<Clock>,
    /// Which bytes of shared memory are initialised.
    written: Bits,
}

impl Checker {
    pub fn new(known: Known, given: Given) -> Self {
        Self { known, given, shadow: Shadow::default(), released: HashMap::default(), blocks: HashMap::default() }
    }

    /// Returns the state of memory, for the next launch.
    pub fn into_known(self) -> Known {
        self.known
    }

    pub fn block_starts(&mut self, block: &Block) {
        let clocks = (0..block.threads()).map(Clock::new).collect();
        let written = Bits::new(block.shared().1.next_multiple_of(16));
        self.blocks.insert(block.index(), Watched { epoch: 0, clocks, written });
    }

    pub fn block_done(&mut self, block: &Block) {
        self.blocks.remove(&block.index());
        let (start, bytes) = block.shared();
        self.shadow.forget(start, bytes);
        if bytes != 0 {
            self.released.retain(|&address, _| !(start..start + bytes).contains(&address));
        }
    }

    pub fn sync_warp(&mut self, block: &Block, mask: u32) {
        let first = block.thread() as usize & !31;
        clock::sync_warp(&mut self.watched(block).clocks[first..first + 32], mask);
    }

    pub fn sync_block(&mut self, block: &Block) {
        let watched = self.watched(block);
        watched.epoch += 1;
        clock::sync_block(&mut watched.clocks);
    }

    pub fn fence(&mut self, block: &Block, scope: Scope) {
        let (clock, now) = self.running(block);
        clock.fence(&now, scope != Scope::Block);
    }

    pub fn plain(&mut self, block: &Block, touch: &Touch, kind: Kind, site: Site) -> Result<(), Box<Caught>> {
        let sort = match kind {
            Kind::Read => Sort::Read,
            Kind::ReadOnly => Sort::ReadOnly,
            Kind::Write => Sort::Write,
        };
        self.look(block, touch, sort != Sort::Write, sort == Sort::Write, site)?;
        self.stamp(block, touch, sort, site)
    }

    pub fn atomic(
        &mut self,
        block: &Block,
        touch: &Touch,
        effect: Effect,
        scope: Scope,
        order: Order,
        site: Site,
    ) -> Result<(), Box<Caught>> {
        let (reads, writes) = (effect != Effect::Store, effect != Effect::Load);
        let wide = scope != Scope::Block;
        self.look(block, touch, reads, writes, site)?;
        let sort = if writes { Sort::AtomicWrite { wide } } else { Sort::AtomicRead { wide } };
        self.stamp(block, touch, sort, site)?;

        let before = self.released.remove(&touch.address);
        let (clock, now) = self.running(block);
        let before_is_visible = before.as_ref().filter(|before| before.visible(now.block, wide));
        if reads && let Some(before) = before_is_visible {
            if matches!(order, Order::Acquire | Order::AcqRel) {
                clock.acquire(before);
            } else {
                clock.acquire_at_fence(before);
            }
        }
        let after = if !writes {
            before
        } else {
            let own = if matches!(order, Order::Release | Order::AcqRel) {
                Some(clock.release(&now, wide))
            } else {
                clock.fenced().map(|fenced| fenced.narrowed(wide))
            };
            // A read-modify-write continues the release sequence that it read. A store begins a new one.
            let continued = before_is_visible.filter(|_| reads);
            match (continued, own) {
                (Some(before), Some(own)) => Some(before.followed_by(own)),
                (Some(before), None) => Some(before.clone()),
                (None, own) => own,
            }
        };
        if let Some(after) = after {
            self.released.insert(touch.address, after);
        }
        Ok(())
    }

    fn watched(&mut self, block: &Block) -> &mut Watched {
        self.blocks.get_mut(&block.index()).expect("a block is watched while it is resident")
    }

    /// Returns the clock of the running thread, and its current moment.
    fn running(&mut self, block: &Block) -> (&mut Clock, Moment) {
        let thread = block.thread();
        let watched = self.watched(block);
        let clock = &mut watched.clocks[thread as usize];
        let now = clock.now(block.index(), thread, watched.epoch);
        (clock, now)
    }

    /// Checks that the launch may use the memory and that a read finds it initialised. Records writes.
    fn look(&mut self, block: &Block, touch: &Touch, reads: bool, writes: bool, site: Site) -> Result<(), Box<Caught>> {
        let (address, bytes) = (touch.address, touch.bytes);
        if bytes == 0 {
            return Ok(());
        }
        if touch.space == Space::Global
            && let Err(refused) = self.given.check(&self.known, address, bytes)
        {
            let kind = match refused {
                Refused::Freed { by } => FaultKind::Freed { buffer: String::new(), index: 0, by },
                Refused::NotGiven { what } => FaultKind::NotGiven { what },
            };
            return Err(Box::new(Caught { kind, place: Some(touch.place(0)), location: Some(site) }));
        }
        let offset = address.wrapping_sub(block.shared().0);
        let unwritten = match (reads, touch.space) {
            (false, _) => None,
            (true, Space::Global) => self.known.first_unwritten(address, bytes),
            (true, Space::Shared) => self.watched(block).written.first_unset(offset, bytes),
        };
        if let Some(at) = unwritten {
            let kind = FaultKind::Uninitialised { buffer: String::new(), index: 0 };
            return Err(Box::new(Caught { kind, place: Some(touch.place(at)), location: Some(site) }));
        }
        if writes {
            match touch.space {
                Space::Global => self.known.mark(address, bytes),
                Space::Shared => self.watched(block).written.set(offset, bytes),
            }
        }
        Ok(())
    }

    fn stamp(&mut self, block: &Block, touch: &Touch, sort: Sort, site: Site) -> Result<(), Box<Caught>> {
        let Self { shadow, blocks, .. } = self;
        let watched = &blocks[&block.index()];
        let thread = block.thread();
        let clock = &watched.clocks[thread as usize];
        let now = clock.now(block.index(), thread, watched.epoch);
        let stamp = Stamp { moment: now, sort, site };
        let ordered = |earlier: &Moment| clock.follows(&now, earlier);
        shadow.access(touch.address, touch.bytes, &stamp, ordered).map_err(|(other, at)| {
            let kind = FaultKind::Race {
                buffer: String::new(),
                index: 0,
                access: sort.access(),
                other_block: other.moment.block,
                other_thread: other.moment.thread,
                other_access: other.sort.access(),
                other_location: other.site,
            };
            Box::new(Caught { kind, place: Some(touch.place(at)), location: Some(site) })
        })
    }
}
