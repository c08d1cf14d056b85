//! The latest accesses to each byte: stamps on granules of four bytes.
//!
//! A granule keeps a short list of stamps, each for some of its bytes. A plain write replaces all stamps on its bytes,
//! since it is ordered after them or is reported. Other accesses replace the stamps of their own sort that are ordered
//! before them, because an access that races with such a stamp also races with the new one. Of the remaining stamps,
//! the newest [`MOST`] of each sort stay in the list, and older ones join the granule's [`Crowd`].

use super::clock::Moment;
use crate::host::executor::fault::{Access, Site};
use crate::host::executor::warp::{LANES, lanes};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};

/// The most stamps of one sort in the list of a granule.
const MOST: usize = 4;
/// The most entries in the crowds of a launch: about 50 MB. Beyond that, a granule forgets all but the newest stamps.
const MOST_CROWDED: usize = 1 << 20;
const GRANULE: usize = 4;
/// The number of granules per page.
const PAGE: usize = 256;
const NONE: u32 = u32::MAX;

/// The sorts of accesses that race detection distinguishes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sort {
    Read,
    ReadOnly,
    Write,
    AtomicRead { wide: bool, bytes: u8 },
    AtomicWrite { wide: bool, bytes: u8 },
}

impl Sort {
    pub fn access(self) -> Access {
        match self {
            Self::Read | Self::ReadOnly => Access::Read,
            Self::Write => Access::Write,
            Self::AtomicRead { .. } | Self::AtomicWrite { .. } => Access::Atomic,
        }
    }

    #[inline(always)]
    fn writes(self) -> bool {
        matches!(self, Self::Write | Self::AtomicWrite { .. })
    }

    /// Returns whether an atomic access reaches other blocks, and its size; `None` for plain accesses.
    #[inline(always)]
    fn atomic(self) -> Option<(bool, u8)> {
        match self {
            Self::AtomicRead { wide, bytes } | Self::AtomicWrite { wide, bytes } => Some((wide, bytes)),
            _ => None,
        }
    }

    /// Returns the sizes of two atomics if they differ.
    pub fn mixes_with(self, other: Self) -> Option<(u8, u8)> {
        let sizes = (self.atomic()?.1, other.atomic()?.1);
        (sizes.0 != sizes.1).then_some(sizes)
    }

    /// Returns whether two accesses to the same byte race.
    #[inline(always)]
    fn conflict(self, other: Self) -> Conflict {
        if !self.writes() && !other.writes() {
            return Conflict::Never;
        }
        // The read-only path does not see writes of the same launch, ordered or not.
        if self == Self::ReadOnly || other == Self::ReadOnly {
            return Conflict::Always;
        }
        match (self.atomic(), other.atomic()) {
            (Some((true, a)), Some((true, b))) if a == b => Conflict::Never,
            (Some((_, a)), Some((_, b))) if a == b => Conflict::BetweenBlocks,
            _ => Conflict::Unordered,
        }
    }
}

/// When two accesses race.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Conflict {
    Never,
    Always,
    /// If nothing orders them.
    Unordered,
    /// If nothing orders them and they are of different blocks.
    BetweenBlocks,
}

impl Conflict {
    #[inline(always)]
    fn is_race(self, same_block: bool, ordered: impl FnOnce() -> bool) -> bool {
        match self {
            Self::Never => false,
            Self::Always => true,
            Self::Unordered => !ordered(),
            Self::BetweenBlocks => !same_block && !ordered(),
        }
    }
}

/// One access to some bytes of a granule.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stamp {
    pub moment: Moment,
    pub sort: Sort,
    /// The region of shared memory that the access goes through; 0 for global memory.
    pub region: u16,
    pub site: Site,
}

impl Stamp {
    /// Returns whether the two accesses race. `ordered` returns whether `self` is ordered before `later`.
    #[inline(always)]
    fn races_with(&self, later: &Self, ordered: impl FnOnce() -> bool) -> bool {
        self.sort.conflict(later.sort).is_race(self.moment.block == later.moment.block, ordered)
    }

    /// Returns whether `later` reads what the same thread has written through another region since the last barrier.
    #[inline(always)]
    fn is_lost_to(&self, later: &Self) -> bool {
        let (a, b) = (&self.moment, &later.moment);
        self.region != later.region
            && self.sort.writes()
            && !later.sort.writes()
            && (a.block, a.thread, a.epoch) == (b.block, b.thread, b.epoch)
    }
}

#[derive(Clone, Copy)]
struct Node {
    stamp: Stamp,
    /// The bytes of the granule that the stamp covers.
    bytes: u8,
    next: u32,
}

/// The accesses to a granule that its list has no room for, by sort.
type Crowd = Vec<(Sort, HashMap<Group, Members, BuildHasherDefault<AddressHasher>>)>;

/// Lanes of one warp that made the same access at the same clock.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Group {
    block: u32,
    warp: u32,
    clock: u32,
    bytes: u8,
}

impl Hash for Group {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_usize((self.block as usize) << 32 | self.warp as usize);
        state.write_usize((self.clock as usize) << 8 | usize::from(self.bytes));
    }
}

/// The members of a group that are in the latest epoch. Those of earlier epochs are ordered before them, by the block's
/// barrier.
struct Members {
    epoch: u32,
    lanes: u32,
    /// The line of one of them, and the region.
    site: Site,
    region: u16,
}

impl Group {
    fn stamps(self, sort: Sort, members: &Members) -> impl Iterator<Item = Stamp> {
        let Self { block, warp, clock, .. } = self;
        let &Members { epoch, site, region, .. } = members;
        lanes(members.lanes).map(move |lane| {
            let thread = warp * LANES as u32 + lane;
            Stamp { moment: Moment { block, thread, epoch, clock }, sort, region, site }
        })
    }
}

/// All stamps of a launch.
#[derive(Default)]
pub(super) struct Shadow {
    /// The first node of each granule's list, newest first.
    pages: HashMap<usize, Box<[u32; PAGE]>, BuildHasherDefault<AddressHasher>>,
    nodes: Vec<Node>,
    free: Vec<u32>,
    crowds: HashMap<usize, Crowd, BuildHasherDefault<AddressHasher>>,
    /// The number of groups in all crowds.
    crowded: usize,
}

impl Shadow {
    /// Stamps an access to `bytes` bytes at `address`. If it races, returns the other access, and the offset in this
    /// access of the granule where they race.
    pub fn access(
        &mut self,
        address: usize,
        bytes: usize,
        stamp: &Stamp,
        ordered: impl Fn(&Moment) -> bool,
    ) -> Result<(), (Stamp, usize)> {
        let end = address + bytes;
        for granule in address / GRANULE..end.div_ceil(GRANULE) {
            let start = granule * GRANULE;
            let (from, to) = (address.max(start) - start, end.min(start + GRANULE) - start);
            let mask = ((1 << to) - (1 << from)) as u8;
            self.stamp(granule, mask, stamp, &ordered).map_err(|other| (other, address.max(start) - address))?;
        }
        Ok(())
    }

    fn stamp(
        &mut self,
        granule: usize,
        mask: u8,
        stamp: &Stamp,
        ordered: impl Fn(&Moment) -> bool,
    ) -> Result<(), Stamp> {
        if !self.crowds.is_empty() {
            self.meet_crowd(granule, mask, stamp, &ordered)?;
        }
        let Self { pages, nodes, free, crowds, crowded } = self;
        let page = pages.entry(granule / PAGE).or_insert_with(|| Box::new([NONE; PAGE]));
        let head = &mut page[granule % PAGE];
        let mut alike = 0;
        // The link to the node in question: the head, or the `next` of the node before.
        let mut before = NONE;
        let mut at = *head;
        while at != NONE {
            let node = nodes[at as usize];
            if node.bytes & mask != 0 {
                if node.stamp.races_with(stamp, || ordered(&node.stamp.moment)) || node.stamp.is_lost_to(stamp) {
                    return Err(node.stamp);
                }
                let replaced =
                    stamp.sort == Sort::Write || node.stamp.sort == stamp.sort && ordered(&node.stamp.moment);
                if replaced {
                    nodes[at as usize].bytes &= !mask;
                }
            }
            let bytes = nodes[at as usize].bytes;
            let has_no_room = node.stamp.sort == stamp.sort && {
                alike += 1;
                alike >= MOST.max(GRANULE)
            };
            if bytes == 0 || has_no_room {
                match before {
                    NONE => *head = node.next,
                    _ => nodes[before as usize].next = node.next,
                }
                free.push(at);
                if bytes != 0 && *crowded < MOST_CROWDED {
                    *crowded += join(crowds.entry(granule).or_default(), &node.stamp, bytes);
                }
            } else {
                before = at;
            }
            at = node.next;
        }
        let node = Node { stamp: *stamp, bytes: mask, next: *head };
        *head = match free.pop() {
            Some(at) => {
                nodes[at as usize] = node;
                at
            }
            None => {
                nodes.push(node);
                nodes.len() as u32 - 1
            }
        };
        Ok(())
    }

    /// Compares an access with the crowd of its granule. A plain write replaces the crowd on its bytes.
    fn meet_crowd(
        &mut self,
        granule: usize,
        mask: u8,
        stamp: &Stamp,
        ordered: impl Fn(&Moment) -> bool,
    ) -> Result<(), Stamp> {
        let Some(crowd) = self.crowds.get_mut(&granule) else { return Ok(()) };
        for (sort, groups) in &*crowd {
            let conflict = sort.conflict(stamp.sort);
            if conflict == Conflict::Never {
                continue;
            }
            for (group, members) in groups.iter().filter(|(group, _)| group.bytes & mask != 0) {
                // Almost always a barrier of the block orders all lanes of a group before this access.
                let same_block = group.block == stamp.moment.block;
                let is_before = same_block && members.epoch < stamp.moment.epoch;
                if !conflict.is_race(same_block, || is_before) {
                    continue;
                }
                let mut stamps = group.stamps(*sort, members);
                if let Some(other) = stamps.find(|other| conflict.is_race(same_block, || ordered(&other.moment))) {
                    return Err(other);
                }
            }
        }
        if stamp.sort == Sort::Write {
            // A group with other bytes stays as it is: what races with its old accesses also races with this write.
            for (_, groups) in &mut *crowd {
                let len = groups.len();
                groups.retain(|group, _| group.bytes & !mask != 0);
                self.crowded -= len - groups.len();
            }
            if crowd.iter().all(|(_, groups)| groups.is_empty()) {
                self.crowds.remove(&granule);
            }
        }
        Ok(())
    }

    /// Removes all stamps on `bytes` bytes from `address`, because another block will use the memory.
    pub fn forget(&mut self, address: usize, bytes: usize) {
        for granule in address / GRANULE..(address + bytes).div_ceil(GRANULE) {
            if let Some(crowd) = self.crowds.remove(&granule) {
                self.crowded -= crowd.iter().map(|(_, groups)| groups.len()).sum::<usize>();
            }
            let Some(page) = self.pages.get_mut(&(granule / PAGE)) else { continue };
            let mut at = std::mem::replace(&mut page[granule % PAGE], NONE);
            while at != NONE {
                self.free.push(at);
                at = self.nodes[at as usize].next;
            }
        }
    }
}

/// Adds an access to a crowd. Returns by how many groups the crowd has grown.
fn join(crowd: &mut Crowd, stamp: &Stamp, bytes: u8) -> usize {
    let &Stamp { moment: Moment { block, thread, epoch, clock }, sort, region, site } = stamp;
    let at = crowd.iter().position(|(other, _)| *other == sort).unwrap_or_else(|| {
        crowd.push((sort, HashMap::default()));
        crowd.len() - 1
    });
    let groups = &mut crowd[at].1;
    let len = groups.len();
    let group = Group { block, warp: thread / LANES as u32, clock, bytes };
    let members = groups.entry(group).or_insert(Members { epoch, lanes: 0, site, region });
    if members.epoch != epoch {
        *members = Members { epoch, lanes: 0, site, region };
    }
    members.lanes |= 1 << (thread % LANES as u32);
    groups.len() - len
}

/// A fast hasher: addresses are looked up all the time and need no protection against collisions.
#[derive(Default)]
pub(super) struct AddressHasher(u64);

impl Hasher for AddressHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_usize(byte.into()));
    }

    fn write_u32(&mut self, value: u32) {
        self.write_usize(value as usize);
    }

    fn write_usize(&mut self, value: usize) {
        self.0 = (self.0 ^ value as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(32);
    }
}
