//! The shared memory of a block that merges tiles.

use super::pieces::PieceTable;
use super::{THREADS, room};
use crate::KeyCode;
use crate::levels::device::find::{Found, Levels};
use crate::levels::device::payload::Payload;
use crate::levels::device::table::{Entry, MAX_LEVELS};
use bytemuck::Pod;
use core::marker::PhantomData;
use gpu_primitives::arch::warp::LANES;
use gpu_primitives::block::runs::Items;
use gpu_primitives::view::{Shared, SharedMemory, shared_bytes};

/// The shared memory of a block, part by part. Its methods are the steps of the kernels.
#[derive(Clone, Copy)]
pub struct Workspace<C, P: Payload, const ITEMS: usize> {
    /// The elements, twice the [room] of a tile: the rounds of the merge alternate between the halves.
    pub items: Items<C, P>,
    /// The levels.
    pub levels: LevelTable<C, P::Value>,
    /// The pieces.
    pub pieces: PieceTable,
    /// The key after the tile.
    pub next_key: NextKey<C>,
    /// One number per warp, for scans.
    pub warp_totals: Shared<u32>,
}

impl<C: KeyCode, P: Payload, const ITEMS: usize> Workspace<C, P, ITEMS> {
    /// The size in bytes.
    pub const BYTES: usize = Items::<C, P>::bytes(2 * room(ITEMS))
        + LevelTable::<C, P::Value>::BYTES
        + PieceTable::bytes(ITEMS)
        + NextKey::<C>::BYTES
        + shared_bytes::<u32>((THREADS / LANES) as usize);

    /// Takes the memory and writes the entries of the levels. A barrier must come before they are read.
    ///
    /// # Safety
    /// All threads of the block call it; `own` is the thread. The memory has room for it. `levels` is an argument of the
    /// kernel.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn start(memory: &mut SharedMemory, own: u32, levels: Levels<C, P::Value>) -> Self {
        Self {
            items: Items::take(memory, 2 * room(ITEMS)),
            levels: LevelTable::write(memory, own, levels),
            pieces: PieceTable::take(memory, ITEMS),
            next_key: NextKey::take(memory),
            warp_totals: memory.take::<u32>((THREADS / LANES) as usize),
        }
    }
}

/// The levels, oldest first.
#[derive(Clone, Copy)]
pub struct LevelTable<C, V> {
    entries: Shared<Entry>,
    /// The number of levels.
    pub len: u32,
    of: PhantomData<fn() -> (C, V)>,
}

impl<C: KeyCode, V: Pod> LevelTable<C, V> {
    const BYTES: usize = shared_bytes::<Entry>(MAX_LEVELS);

    /// Takes memory for the entries of the levels and writes them. A barrier must come before they are read.
    ///
    /// # Safety
    /// Same as [`Workspace::start`].
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn write(memory: &mut SharedMemory, own: u32, levels: Levels<C, V>) -> Self {
        let entries = memory.take::<Entry>(MAX_LEVELS);
        let occupied = levels.occupied();
        if own < LANES && occupied >> own & 1 == 1 {
            let older = (occupied >> own >> 1).count_ones();
            entries.set(older as usize, levels.level(own).entry);
        }
        Self { entries, len: occupied.count_ones(), of: PhantomData }
    }

    /// Returns a level.
    ///
    /// # Safety
    /// There is such a level, and a barrier followed the [start](Workspace::start).
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn get(self, level: u32) -> Found<C, V> {
        Found::new(self.entries.get(level as usize))
    }
}

/// The smallest key that follows the tile in the tile's last interval, if there is one.
#[derive(Clone, Copy)]
pub struct NextKey<C> {
    key: Shared<C>,
    exists: Shared<u32>,
}

impl<C: KeyCode> NextKey<C> {
    const BYTES: usize = shared_bytes::<C>(1) + shared_bytes::<u32>(1);

    /// # Safety
    /// Same as [`SharedMemory::take`].
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn take(memory: &mut SharedMemory) -> Self {
        Self { key: memory.take(1), exists: memory.take(1) }
    }

    /// Sets the key.
    ///
    /// # Safety
    /// One thread calls it, and no other thread uses the key before a barrier.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn set(self, key: C, exists: bool) {
        self.key.set(0, key);
        self.exists.set(0, exists.into());
    }

    /// Returns whether the key exists and is equal to `key`.
    ///
    /// # Safety
    /// The key was set before the last barrier.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn is(self, key: C) -> bool {
        self.exists.get(0) != 0 && self.key.get(0) == key
    }
}
