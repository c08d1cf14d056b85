//! Where the live elements of a tile go: after those of all tiles before it.

use gpu_primitives::arch::warp::{lane_id, warp_id};
use gpu_primitives::block::lookback::{Ticket, announce, exchange, look_back, take_ticket};
use gpu_primitives::monoid::Sum;
use gpu_primitives::view::{GlobalMut, Shared, SharedMemory, shared_bytes};

/// A block's part in a [look-back](gpu_primitives::block::lookback) over the numbers of live elements. Each block has one
/// tile.
#[derive(Clone, Copy)]
pub struct LookBack {
    scratch: GlobalMut<u64>,
    /// The number of tiles.
    tiles: u32,
    /// Shared memory for the block's ticket: the tile in the lower half, the tag in the upper half.
    ticket: Shared<u64>,
    /// Shared memory for the number of live elements in all tiles before.
    base: Shared<u64>,
}

impl LookBack {
    /// The shared memory in bytes.
    pub const BYTES: usize = 2 * shared_bytes::<u64>(1);

    /// Takes the shared memory and the block's ticket. A barrier must come before [`ticket`](Self::ticket).
    ///
    /// # Safety
    /// All threads of the block call it; `own` is the thread. The launch has `tiles` blocks. `scratch` comes from the
    /// stream's look-back words, for one `u64` per tile. The memory has room for it.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn start(memory: &mut SharedMemory, own: u32, scratch: GlobalMut<u64>, tiles: u32) -> Self {
        let (ticket, base) = (memory.take(1), memory.take(1));
        if own == 0 {
            let taken = take_ticket(scratch, tiles);
            ticket.set(0, taken.tile as u64 | (taken.tag as u64) << 32);
        }
        Self { scratch, tiles, ticket, base }
    }

    /// Returns the block's ticket, which says the tile.
    ///
    /// # Safety
    /// A barrier followed the [start](Self::start).
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn ticket(self) -> Ticket {
        let word = self.ticket.get(0);
        Ticket { tile: word as u32, tag: (word >> 32) as u32 }
    }

    /// Returns whether the block has the last tile.
    #[inline(always)]
    pub fn is_last(self, ticket: Ticket) -> bool {
        ticket.tile == self.tiles - 1
    }

    /// Announces the number of live elements in the block's tile.
    ///
    /// # Safety
    /// All threads of the block call it, once, with the same arguments except `own`, which is the thread.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn announce(self, own: u32, ticket: Ticket, live: u32) {
        if own == 0 {
            announce(self.scratch, ticket, live as u64);
        }
    }

    /// Finds the number of live elements in all tiles before. A barrier must come before [`base`](Self::base).
    ///
    /// # Safety
    /// All threads of the block call it, once, with what they have [announced](Self::announce).
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn find_base(self, ticket: Ticket, live: u32) {
        if warp_id() == 0 {
            let base = look_back(self.scratch, ticket, self.tiles, live as u64, Sum);
            if lane_id() == 0 {
                self.base.set(0, base);
            }
        }
    }

    /// Announces the number of live elements in the block's tile, and finds the number in all tiles before. A barrier must
    /// come before [`base`](Self::base).
    ///
    /// # Safety
    /// All threads of the block call it, once, with the same arguments.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn exchange(self, ticket: Ticket, live: u32) {
        if warp_id() == 0 {
            let base = exchange(self.scratch, ticket, self.tiles, live as u64, Sum);
            if lane_id() == 0 {
                self.base.set(0, base);
            }
        }
    }

    /// Returns the number of live elements in all tiles before.
    ///
    /// # Safety
    /// A barrier followed [`find_base`](Self::find_base) or [`exchange`](Self::exchange).
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn base(self) -> u64 {
        self.base.get(0)
    }
}
