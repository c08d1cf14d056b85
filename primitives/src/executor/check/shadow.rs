//! The latest accesses to each byte: stamps on granules of four bytes.
//!
//! A granule keeps a short list of stamps, each for some of its bytes. A plain write replaces all stamps on its bytes,
//! since it is ordered after them or is reported. Other accesses replace the stamps of their own sort that are ordered
//! before them, because an access that races with such a stamp also races with the new one. Of the remaining stamps,
//! the newest [`MOST`] of each sort are kept: a race with a fifth concurrent reader of the same word may be missed.

use super::super::fault::{Access, Site};
use super::clock::Moment;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// The most stamps of one sort that a granule keeps.
const MOST: usize = 4;
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
    AtomicRead { wide: bool },
    AtomicWrite { wide: bool },
}

impl Sort {
    pub fn access(self) -> Access {
        match self {
            Self::Read | Self::ReadOnly => Access::Read,
            Self::Write => Access::Write,
            Self::AtomicRead { .. } | Self::AtomicWrite { .. } => Access::Atomic,
        }
    }

    fn writes(self) -> bool {
        matches!(self, Self::Write | Self::AtomicWrite { .. })
    }

    /// Returns whether an atomic access reaches other blocks; `None` for plain accesses.
    fn wide(self) -> Option<bool> {
        match self {
            Self::AtomicRead { wide } | Self::AtomicWrite { wide } => Some(wide),
            _ => None,
        }
    }
}

/// One access to some bytes of a granule.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stamp {
    pub moment: Moment,
    pub sort: Sort,
    pub site: Site,
}

impl Stamp {
    /// Returns whether the two accesses race. `ordered` returns whether `self` is ordered before `later`.
    fn races_with(&self, later: &Self, ordered: impl FnOnce() -> bool) -> bool {
        if !self.sort.writes() && !later.sort.writes() {
            return false;
        }
        // The read-only path does not see writes of the same launch, ordered or not.
        if self.sort == Sort::ReadOnly || later.sort == Sort::ReadOnly {
            return true;
        }
        if let (Some(a), Some(b)) = (self.sort.wide(), later.sort.wide())
            && (self.moment.block == later.moment.block || a && b)
        {
            return false;
        }
        !ordered()
    }
}

#[derive(Clone, Copy)]
struct Node {
    stamp: Stamp,
    /// The bytes of the granule that the stamp covers.
    bytes: u8,
    next: u32,
}

/// All stamps of a launch.
#[derive(Default)]
pub(super) struct Shadow {
    /// The first node of each granule's list, newest first.
    pages: HashMap<usize, Box<[u32; PAGE]>, BuildHasherDefault<AddressHasher>>,
    nodes: Vec<Node>,
    free: Vec<u32>,
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
        let Self { pages, nodes, free } = self;
        let page = pages.entry(granule / PAGE).or_insert_with(|| Box::new([NONE; PAGE]));
        let head = &mut page[granule % PAGE];
        let mut alike = 0;
        // The link to the node in question: the head, or the `next` of the node before.
        let mut before = NONE;
        let mut at = *head;
        while at != NONE {
            let node = nodes[at as usize];
            if node.bytes & mask != 0 {
                if node.stamp.races_with(stamp, || ordered(&node.stamp.moment)) {
                    return Err(node.stamp);
                }
                let replaced =
                    stamp.sort == Sort::Write || node.stamp.sort == stamp.sort && ordered(&node.stamp.moment);
                if replaced {
                    nodes[at as usize].bytes &= !mask;
                }
            }
            let crowded = node.stamp.sort == stamp.sort && {
                alike += 1;
                alike >= MOST.max(GRANULE)
            };
            if nodes[at as usize].bytes == 0 || crowded {
                match before {
                    NONE => *head = node.next,
                    _ => nodes[before as usize].next = node.next,
                }
                free.push(at);
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

    /// Removes all stamps on `bytes` bytes from `address`, because another block will use the memory.
    pub fn forget(&mut self, address: usize, bytes: usize) {
        for granule in address / GRANULE..(address + bytes).div_ceil(GRANULE) {
            let Some(page) = self.pages.get_mut(&(granule / PAGE)) else { continue };
            let mut at = std::mem::replace(&mut page[granule % PAGE], NONE);
            while at != NONE {
                self.free.push(at);
                at = self.nodes[at as usize].next;
            }
        }
    }
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
