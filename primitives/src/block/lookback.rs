//! How the blocks of one launch pass on a prefix: tickets, and a look-back of fixed shape.
//!
//! # The protocol
//! Blocks take *tickets*. The ticket is the tile that the block works on next. A block works on its tickets in order,
//! and a tile waits only for lower tickets. The lowest unfinished ticket therefore waits for nothing: it was taken by a
//! block that has started and has finished all its lower tickets. So the protocol cannot deadlock, on any schedule that
//! keeps started blocks running.
//!
//! Classical decoupled look-back adds up whatever its predecessors have published so far. The shape of the sum then
//! depends on timing, and floating-point results change from run to run. Here the shape is fixed. Tiles form groups of
//! 32, groups form groups of 32, and so on: a tree of radix 32. Every tile publishes its aggregate at level 0. The last
//! tile of a group combines its group's aggregates (it needs the 31 others anyway, for its own prefix) and publishes
//! the result one level up. The prefix of a tile is then, level by level, the combination of the at most 31 aggregates
//! before it in its group. Nothing depends on timing. The longest chain of waits is one per level (three for 2^27
//! elements). A tile reads 32 words per level, and the words of a level are loaded while the tile waits for the level
//! below.
//!
//! # Publishing without fences
//! A value of up to 40 bytes is published as one to ten 64-bit words. Each word holds 32 bits of the value and a
//! 32-bit tag. A word is written and read by single 64-bit relaxed atomics, so a reader that sees the tag also sees the
//! bits that belong to it. The reader waits until the tags of all words are right. The tag is the *epoch*, which every
//! launch on a stream increments. The words of earlier launches have other tags, so nothing is cleared between
//! launches.

// Unrolled loops index register arrays by their counters; iterators would force the arrays into memory.
#![allow(clippy::needless_range_loop)]

use super::warp::{self, MAX_WORDS, map_words, word_count};
use crate::arch::warp::{FULL, LANES, all, lane_id, warp_id};
use crate::arch::{Order, Scope, thread};
use crate::monoid::Combine;
use crate::view::{GlobalMut, Shared, SharedMemory, shared_bytes};
use bytemuck::Pod;

/// The number of children of a tree node: a warp looks at one per lane. (128, four per lane, measured slower.)
const RADIX: u32 = LANES;

/// Returns the words of scratch memory that `tiles` tiles of `T` need: the ticket, then the levels of the tree.
#[must_use]
pub const fn scratch_words<T>(tiles: usize) -> usize {
    let mut words = 1;
    let mut nodes = tiles;
    loop {
        words += nodes * word_count::<T>();
        if nodes <= 1 {
            return words;
        }
        nodes = nodes.div_ceil(RADIX as usize);
    }
}

/// The tile that a block works on, and the tag of this launch.
#[derive(Clone, Copy)]
pub struct Ticket {
    /// The ticket number: 0, 1, 2, … in the order in which tickets are taken.
    pub tile: u32,
    /// The tag of this launch. It is never 0, because fresh scratch memory is zero.
    pub tag: u32,
}

impl Ticket {
    /// Returns whether later tiles wait for this one's [`look_back`]. Otherwise a tile that does not need its own prefix
    /// may leave it out, once its aggregate is [announced](announce).
    #[inline(always)]
    #[must_use]
    pub const fn is_awaited(self) -> bool {
        self.tile % RADIX == RADIX - 1
    }
}

/// Takes a ticket. The word holds the epoch in its upper half and the next ticket in its lower half.
///
/// The block that takes the last of `tickets` prepares the word for the next launch. From then on no block of this
/// launch takes a ticket, and the next launch on the stream begins after this one has ended.
///
/// # Safety
/// All blocks together call this `tickets` times. `scratch` is zero, or as earlier launches left it.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub unsafe fn take_ticket(scratch: GlobalMut<u64>, tickets: u32) -> Ticket {
    let word = scratch.atomic_add(0, 1, Scope::Gpu, Order::Relaxed);
    let (epoch, tile) = ((word >> 32) as u32, word as u32);
    if tile == tickets - 1 {
        scratch.atomic_store(0, ((epoch + 1) as u64) << 32, Scope::Gpu, Order::Relaxed);
    }
    Ticket { tile, tag: epoch + 1 }
}

/// The shared memory through which a block learns its ticket.
#[derive(Clone, Copy)]
pub struct TicketSlot(Shared<u32>);

impl TicketSlot {
    /// The shared memory in bytes.
    pub const BYTES: usize = shared_bytes::<u32>(2);

    /// Takes the shared memory.
    ///
    /// # Safety
    /// The block's shared memory has room for it.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn take(memory: &mut SharedMemory) -> Self {
        Self(memory.take(2))
    }

    /// [Takes a ticket](take_ticket) for the block. There is a barrier in it.
    ///
    /// # Safety
    /// All threads of the block call this. All blocks together call it `tickets` times; a barrier separates two calls of a
    /// block. `scratch` is zero, or as earlier launches left it.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn next(self, scratch: GlobalMut<u64>, tickets: u32) -> Ticket {
        self.fill(scratch, tickets);
        self.ticket()
    }

    /// # Safety
    /// As for [`next`](Self::next).
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn fill(self, scratch: GlobalMut<u64>, tickets: u32) {
        if thread::thread_idx_x() == 0 {
            let ticket = take_ticket(scratch, tickets);
            self.0.set(0, ticket.tile);
            self.0.set(1, ticket.tag);
        }
        thread::sync_threads();
    }

    /// # Safety
    /// The slot was [filled](Self::fill).
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn ticket(self) -> Ticket {
        Ticket { tile: self.0.get(0), tag: self.0.get(1) }
    }
}

/// A block's part in a look-back in which each block has one tile. A kernel [begins](Self::begin) it, announces what its tile
/// adds up to, does other work, and asks for [what comes before](Self::look_back).
#[derive(Clone, Copy)]
pub struct LookBack {
    scratch: GlobalMut<u64>,
    tiles: u32,
    tile: u32,
    /// The ticket. It is read again where it is needed, so that it takes no register meanwhile.
    slot: TicketSlot,
}

impl LookBack {
    /// The shared memory in bytes.
    pub const BYTES: usize = TicketSlot::BYTES;

    /// Gives the block its tile, one of `tiles`. There is a barrier in it.
    ///
    /// # Safety
    /// All threads of the block call this once, and `tiles` blocks of the launch do. The block's shared memory has room for
    /// [`BYTES`](Self::BYTES). `scratch` comes from the stream's look-back words, for what is announced, once per tile.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn begin(memory: &mut SharedMemory, scratch: GlobalMut<u64>, tiles: u32) -> Self {
        let slot = TicketSlot::take(memory);
        slot.fill(scratch, tiles);
        Self { scratch, tiles, tile: slot.0.get(0), slot }
    }

    /// Returns the tile.
    #[inline(always)]
    #[must_use]
    pub const fn tile(self) -> usize {
        self.tile as usize
    }

    /// Returns whether the tile is the last one.
    #[inline(always)]
    #[must_use]
    pub const fn is_last(self) -> bool {
        self.tile == self.tiles - 1
    }

    /// Announces the aggregate of the tile, before other work of the block.
    ///
    /// # Safety
    /// All threads of the block call this once, with the same aggregate.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn announce<T: Pod>(self, aggregate: T) {
        if thread::thread_idx_x() == 0 {
            announce(self.scratch, self.slot.ticket(), aggregate);
        }
    }

    /// Calls `then` in all lanes of the first warp, with the combination of all tiles before this one. The kernel puts into
    /// shared memory what the other warps need of it.
    ///
    /// # Safety
    /// All threads of the block call this once, with what they have [announced](Self::announce).
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn look_back<T: Pod, Op: Combine<T>>(self, aggregate: T, op: Op, then: impl FnOnce(T)) {
        if warp_id() == 0 {
            then(look_back(self.scratch, self.slot.ticket(), self.tiles, aggregate, op));
        }
    }

    /// [Announces](Self::announce) and [looks back](Self::look_back): for kernels that have nothing to do meanwhile.
    ///
    /// # Safety
    /// All threads of the block call this once, with the same aggregate.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn exchange<T: Pod, Op: Combine<T>>(self, aggregate: T, op: Op, then: impl FnOnce(T)) {
        if warp_id() == 0 {
            then(exchange(self.scratch, self.slot.ticket(), self.tiles, aggregate, op));
        }
    }
}

/// Publishes the aggregate of a tile ahead of [`look_back`], so that other blocks need not wait for this block's other
/// work.
///
/// # Safety
/// One thread of the block calls this, with the aggregate that the block later passes to `look_back`. Otherwise the
/// same as [`exchange`].
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub unsafe fn announce<T: Pod>(scratch: GlobalMut<u64>, ticket: Ticket, aggregate: T) {
    publish(scratch, 1 + ticket.tile * word_count::<T>() as u32, ticket.tag, aggregate);
}

/// Publishes the aggregate of a tile and returns, to every lane, the combination of all tiles before it.
///
/// # Safety
/// One full warp of the block calls this once per ticket, with the block's ticket; `scratch` has [`scratch_words`] for
/// `tiles`.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub unsafe fn exchange<T: Pod, Op: Combine<T>>(
    scratch: GlobalMut<u64>,
    ticket: Ticket,
    tiles: u32,
    aggregate: T,
    op: Op,
) -> T {
    if lane_id() == 0 {
        announce(scratch, ticket, aggregate);
    }
    look_back(scratch, ticket, tiles, aggregate, op)
}

/// Returns, to every lane, the combination of all tiles before this one, whose aggregate was [announced](announce).
///
/// # Safety
/// Same as [`exchange`].
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub unsafe fn look_back<T: Pod, Op: Combine<T>>(
    scratch: GlobalMut<u64>,
    ticket: Ticket,
    tiles: u32,
    aggregate: T,
    op: Op,
) -> T {
    let words = word_count::<T>() as u32;
    let mut prefix = op.identity();
    // The aggregate of this tile and all tiles before it below the current node. If the tile closes the node, it is the
    // node's.
    let mut whole = aggregate;
    let mut closes = true;
    let mut level = Level { base: 1, nodes: tiles, node: ticket.tile };
    let mut seen = level.peek::<T>(scratch);
    loop {
        let above = level.above(words);
        // Load the next level's words while waiting for this level's.
        let seen_above = above.peek::<T>(scratch);
        let position = level.node % RADIX;
        if position > 0 {
            let mine = lane_id() < position;
            while !all(FULL, !mine || is_ready::<T>(seen, ticket.tag)) {
                thread::spin_hint();
                seen = level.peek::<T>(scratch);
            }
            let before = warp::reduce(if mine { unpack(seen) } else { op.identity() }, op);
            whole = op.combine(before, whole);
            prefix = op.combine(before, prefix);
        }
        closes = closes && position == RADIX - 1;
        if closes && lane_id() == 0 {
            publish(scratch, above.base + above.node * words, ticket.tag, whole);
        }
        if above.node == 0 {
            return prefix;
        }
        level = above;
        seen = seen_above;
    }
}

/// One level of the tree, as seen from one tile.
#[derive(Clone, Copy)]
struct Level {
    /// The position of the level's first word.
    base: u32,
    /// The number of nodes on the level.
    nodes: u32,
    /// The node above the tile.
    node: u32,
}

impl Level {
    /// Returns the level above.
    #[inline(always)]
    fn above(self, words: u32) -> Self {
        Self { base: self.base + self.nodes * words, nodes: self.nodes.div_ceil(RADIX), node: self.node / RADIX }
    }

    /// Reads the words of the node that this lane looks at: one of those before the tile's node in its group. Other
    /// lanes get zeros.
    ///
    /// # Safety
    /// `scratch` has the words of this level up to the tile's own node, and they are only accessed atomically.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn peek<T: Pod>(self, scratch: GlobalMut<u64>) -> [u64; MAX_WORDS] {
        let mut words = [0; MAX_WORDS];
        let position = self.node % RADIX;
        if lane_id() < position {
            let at = self.base + (self.node - position + lane_id()) * word_count::<T>() as u32;
            for i in 0..word_count::<T>() {
                words[i] = scratch.atomic_load(at as usize + i, Scope::Gpu, Order::Relaxed);
            }
        }
        words
    }
}

/// Writes the words of a value, each with the tag.
///
/// # Safety
/// `scratch` has the words of a `T` from `at` on, and they are only accessed atomically.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
unsafe fn publish<T: Pod>(scratch: GlobalMut<u64>, at: u32, tag: u32, value: T) {
    map_words(value, |i, word| {
        scratch.atomic_store(at as usize + i, (tag as u64) << 32 | word as u64, Scope::Gpu, Order::Relaxed);
        word
    });
}

/// Returns whether all words carry the tag.
#[inline(always)]
fn is_ready<T>(words: [u64; MAX_WORDS], tag: u32) -> bool {
    let mut ready = true;
    for i in 0..word_count::<T>() {
        ready &= (words[i] >> 32) as u32 == tag;
    }
    ready
}

/// Returns the value that the words carry.
#[inline(always)]
fn unpack<T: Pod>(words: [u64; MAX_WORDS]) -> T {
    map_words(T::zeroed(), |i, _| words[i] as u32)
}
