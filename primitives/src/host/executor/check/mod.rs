//! The checker: observes every memory access, and finds uninitialised reads and data races.
//!
//! Races are found by happens-before, independent of the schedule: two accesses race if no barrier, `sync_warp`, or
//! release and acquire orders them, no matter which came first. Shuffles, votes and matches order nothing. Atomics and
//! fences follow the rules of C++, with scopes: a release in the scope of a block is not acquired by another block.

mod clock;
mod mirror;
mod shadow;

use super::access::{Effect, Kind, Space, Touch};
use super::block::Block;
use super::fault::{Caught, FaultKind, Place, Site};
use super::memory::{Allowed, Bits, Given, Known, Refused};
use crate::model::{Order, Scope};
use clock::{Clock, Moment, Snapshot};
use mirror::Mirror;
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
    /// The regions of shared memory that threads have taken, by offset, length and line.
    regions: HashMap<(usize, usize, Site), u16>,
    mirror: Mirror,
    /// A byte that a raw pointer has written in an earlier run of this launch. This run finds out when.
    sought: Option<usize>,
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
        Self {
            mirror: Mirror::new(&known, &given),
            known,
            given,
            shadow: Shadow::default(),
            released: HashMap::default(),
            blocks: HashMap::default(),
            regions: HashMap::default(),
            sought: None,
        }
    }

    /// Returns the state of memory, for the next launch.
    pub fn into_known(self) -> Known {
        self.known
    }

    /// Returns the fault of a launch that wrote through a raw pointer, and makes memory what it was before the launch. If
    /// the launch then runs again, it faults right after the write, so that the thread is known.
    pub fn rewind(&mut self) -> Option<Caught> {
        let byte = self.mirror.first_difference()?;
        self.mirror.rewind();
        self.sought = Some(byte);
        (self.shadow, self.released, self.blocks) = (Shadow::default(), HashMap::default(), HashMap::default());
        Some(raw_write(byte, None))
    }

    /// Checks that the running thread has not written the sought byte through a raw pointer since the last call.
    pub fn seek(&self, site: Option<Site>) -> Result<(), Box<Caught>> {
        match self.sought {
            Some(byte) if self.mirror.differs(byte) => Err(Box::new(raw_write(byte, site))),
            _ => Ok(()),
        }
    }

    /// Records that a view has written memory.
    pub fn wrote(&mut self, touch: &Touch) {
        if touch.space == Space::Global {
            self.mirror.update(touch.address, touch.bytes);
        }
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
        let writes = sort == Sort::Write;
        let allowed = self.admit(touch, writes, site)?;
        self.look(block, touch, !writes, writes, site)?;
        match allowed {
            // Reads do not race with each other.
            Allowed::Constant => Ok(()),
            Allowed::Changing => self.stamp(block, touch, sort, site),
        }
    }

    /// Checks that the launch may use the memory.
    pub fn admit(&self, touch: &Touch, writes: bool, site: Site) -> Result<Allowed, Box<Caught>> {
        self.seek(Some(site))?;
        if touch.bytes == 0 {
            return Ok(Allowed::Constant);
        }
        if touch.space == Space::Shared {
            return Ok(Allowed::Changing);
        }
        self.given.check(&self.known, touch.base, touch.address, touch.bytes, writes).map_err(|refused| {
            let buffer = String::new();
            let kind = match refused {
                Refused::Freed { by, allocated } => FaultKind::Freed { buffer, index: 0, allocated, by },
                Refused::NotGiven { what } => FaultKind::NotGiven { what },
                Refused::OtherBuffer => FaultKind::OtherBuffer { buffer, other: String::new(), index: 0 },
                Refused::ReadOnly => FaultKind::ReadOnly { buffer, index: 0 },
            };
            Box::new(Caught { kind, place: Some(touch.place(0)), location: Some(site) })
        })
    }

    /// Returns the number of a region of shared memory. A region is known by where it lies and by the line that takes it.
    pub fn region(&mut self, offset: usize, bytes: usize, site: Site) -> u16 {
        let next = u16::try_from(self.regions.len() + 1).unwrap_or(0);
        *self.regions.entry((offset, bytes, site)).or_insert(next)
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
        if writes {
            self.wrote(touch);
        }
        self.look(block, touch, reads, writes, site)?;
        let bytes = touch.bytes as u8;
        let sort = if writes { Sort::AtomicWrite { wide, bytes } } else { Sort::AtomicRead { wide, bytes } };
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

    /// Checks that a read finds the memory initialised. Records writes.
    fn look(&mut self, block: &Block, touch: &Touch, reads: bool, writes: bool, site: Site) -> Result<(), Box<Caught>> {
        let (address, bytes) = (touch.address, touch.bytes);
        if bytes == 0 {
            return Ok(());
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
        let stamp = Stamp { moment: now, sort, site, region: touch.region };
        let ordered = |earlier: &Moment| clock.follows(&now, earlier);
        shadow.access(touch.address, touch.bytes, &stamp, ordered).map_err(|(other, at)| {
            let (buffer, index) = (String::new(), 0);
            let (other_block, other_thread) = (other.moment.block, other.moment.thread);
            let other_location = other.site;
            let kind = if (other_block, other_thread) == (now.block, now.thread) && other.region != touch.region {
                FaultKind::SharedOverlap { buffer, index, other_location }
            } else if let Some((bytes, other_bytes)) = sort.mixes_with(other.sort) {
                let (bytes, other_bytes) = (bytes.into(), other_bytes.into());
                FaultKind::MixedAtomics { buffer, index, bytes, other_block, other_thread, other_bytes, other_location }
            } else {
                let (access, other_access) = (sort.access(), other.sort.access());
                FaultKind::Race { buffer, index, access, other_block, other_thread, other_access, other_location }
            };
            Box::new(Caught { kind, place: Some(touch.place(at)), location: Some(site) })
        })
    }
}

/// Returns the fault of a write through a raw pointer. The writing thread went on to `site`.
fn raw_write(byte: usize, site: Option<Site>) -> Caught {
    let place = Place { base: byte, byte, element_bytes: 1, shared: None };
    let kind = FaultKind::RawWrite { buffer: String::new(), index: 0 };
    Caught { kind, place: Some(place), location: site }
}
