//! The kernels of packed bits.

// Unrolled loops index register arrays by their counters; iterators would force the arrays into memory.
#![allow(clippy::needless_range_loop)]

use crate::arch::warp::{FULL, LANES, ballot, lane_id, lane_mask_lt, shuffle_idx, warp_id};
use crate::arch::{Cache, Order, Scope, thread};
use crate::block::lookback::LookBack;
use crate::block::{scan, warp};
use crate::form::{Buffer, Param, kernel};
use crate::hole::RegisterRepr;
use crate::input::{Input, SourceArg};
use crate::monoid::Sum;
use crate::search::IndexOut;
use crate::select::device::predicate::{HolePredicate, Keep};
use crate::view::{Global, GlobalMut, SharedMemory, shared_bytes};

/// The threads per block.
pub(crate) const THREADS: u32 = 256;

/// The elements that a thread tests, and the bytes that its warp writes, in words.
const ROWS: usize = 8;

/// The elements of a block that tests.
pub(crate) const PACK_TILE: usize = THREADS as usize * ROWS;

/// The bits of a block that counts or finds positions: a word per thread.
pub(crate) const WORDS_TILE: usize = THREADS as usize * 32;

/// Bits as a kernel's argument: those from bit `start` of the bytes on. The host has checked that there are `len` of them.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct BitView {
    pub bytes: Global<u8>,
    pub start: u64,
    pub len: u64,
}

// SAFETY: `repr(C)` without padding.
unsafe impl Param for BitView {
    fn buffers(&self, name: &'static str, visit: &mut dyn FnMut(&'static str, Buffer)) {
        self.bytes.buffers(name, visit);
    }
}

impl BitView {
    /// Returns the 32 bits from bit `index` on; 0 after the last one. They lie in up to five bytes, which may have any address.
    ///
    /// # Safety
    /// Nothing writes the bytes at the same time.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn word(&self, index: usize) -> u32 {
        let len = self.len as usize;
        if index >= len {
            return 0;
        }
        let bit = self.start as usize + index;
        let (first, end) = (bit / 8, (self.start as usize + len).div_ceil(8));
        let mut bits = 0u64;
        if first.is_multiple_of(4) && first + 4 <= end && self.bytes.as_ptr().addr().is_multiple_of(4) {
            // One access, and another one if the bits do not begin with a byte.
            bits = u32::from_le_bytes(self.bytes.load_vec::<4>(first, Cache::Default)) as u64;
            if !bit.is_multiple_of(8) && first + 4 < end {
                bits |= (self.bytes.get(first + 4) as u64) << 32;
            }
        } else {
            for byte in 0..5 {
                if first + byte < end {
                    bits |= (self.bytes.get(first + byte) as u64) << (8 * byte);
                }
            }
        }
        let bits = (bits >> (bit % 8)) as u32;
        let left = len - index;
        if left < 32 { bits & ((1 << left) - 1) } else { bits }
    }
}

/// Tests the elements of a source, and writes a bit for each.
///
/// A warp tests 32 neighbours at a time; a ballot makes a word of that. Its eight words are 32 bytes, which the lanes write
/// together. So the bytes may have any address.
///
/// Cost: what the source reads, and an eighth of a byte per element. 2^27 elements of 4 bytes: 0.55 GB, 135 µs at 4.1 TB/s.
///
/// # Safety
/// The launch has one block per tile of [`PACK_TILE`] elements. `output` has a byte for each eight of them. While the
/// kernel runs, nothing writes what the source reads, and nothing else uses the output.
#[kernel(listed, threads = THREADS, native = super::native::pack_bits)]
pub unsafe fn pack_bits<H: RegisterRepr>(input: SourceArg, keep: HolePredicate, output: GlobalMut<u8>) {
    let len = Input::<H>::count(&input);
    let start = thread::block_idx_x() as usize * PACK_TILE + warp_id() as usize * ROWS * LANES as usize;
    let first = start + lane_id() as usize;
    let mut items = [H::zeroed(); ROWS];
    for row in 0..ROWS {
        let index = first + row * LANES as usize;
        if index < len {
            items[row] = input.item(index);
        }
    }
    let mut own = 0;
    for row in 0..ROWS {
        let index = first + row * LANES as usize;
        // Predicates are only called with items.
        let word = ballot(FULL, index < len && keep.item(index, items[row]));
        if lane_id() == row as u32 {
            own = word;
        }
    }
    let word = shuffle_idx(FULL, own, lane_id() / 4);
    let byte = start / 8 + lane_id() as usize;
    if byte < output.len() {
        output.set(byte, (word >> (8 * (lane_id() % 4))) as u8);
    }
}

/// Adds the number of bits that are set to `count`: a word per thread, a sum per warp, one addition per warp.
///
/// Cost: each bit is read once.
///
/// # Safety
/// The launch has one block per tile of [`WORDS_TILE`] bits. `count` has one element. Nothing writes the bits meanwhile.
#[kernel(listed, threads = THREADS, native = super::native::count_bits)]
pub unsafe fn count_bits(bits: BitView, count: GlobalMut<u64>) {
    let index = thread::block_idx_x() as usize * WORDS_TILE + thread::thread_idx_x() as usize * 32;
    let own = bits.word(index).count_ones();
    let total = warp::reduce(own, Sum);
    if lane_id() == 0 && total > 0 {
        count.atomic_add(0, total as u64, Scope::Gpu, Order::Relaxed);
    }
}

/// Returns the shared memory of a block that finds positions: those in the tile, one count per warp, the tile's place, and the
/// ticket.
const fn positions_shared() -> usize {
    shared_bytes::<u16>(WORDS_TILE)
        + shared_bytes::<u32>((THREADS / LANES) as usize)
        + shared_bytes::<u64>(1)
        + LookBack::BYTES
}

/// Writes the positions of the bits that are set, in order, and how many there are.
///
/// Each thread has a word of the tile. Its warp goes through the words: each lane writes the position of its bit, if that is
/// set, to where the bits before it end in shared memory. Meanwhile the first warp looks back for the number of positions
/// before the tile. Then the block writes its positions, coalesced.
///
/// Cost: an eighth of a byte per bit, and each position is written once; 32 steps of a warp per 1,024 bits. 2^27 bits of which
/// half are set, as `u32`: 0.28 GB, 70 µs at 4.1 TB/s.
///
/// # Safety
/// The launch has one block per tile of [`WORDS_TILE`] bits, and there is a bit. `output` has room for a position per bit; `count`
/// has one element. `scratch` comes from the stream's look-back words, for one `u64` per tile. While the kernel runs,
/// nothing writes the bits, and nothing else uses the other buffers.
#[kernel(listed, threads = THREADS, shared = positions_shared(), native = super::native::bit_positions)]
pub unsafe fn bit_positions<P: IndexOut>(
    bits: BitView,
    output: GlobalMut<P>,
    count: GlobalMut<u64>,
    scratch: GlobalMut<u64>,
) {
    let mut memory = SharedMemory::new();
    let stage = memory.take::<u16>(WORDS_TILE);
    let warp_totals = memory.take::<u32>((THREADS / LANES) as usize);
    let place = memory.take::<u64>(1);
    let look_back = LookBack::begin(&mut memory, scratch, thread::grid_dim_x());
    let tile_start = look_back.tile() * WORDS_TILE;
    let own = bits.word(tile_start + thread::thread_idx_x() as usize * 32);

    let up_to = warp::inclusive_scan(own.count_ones(), Sum);
    let in_warp = warp::broadcast(up_to, LANES - 1);
    let block = scan::scan_warps::<u32, Sum, THREADS>(in_warp, Sum, warp_totals);
    look_back.announce(u64::from(block.total));
    let before = block.before + up_to - own.count_ones();
    let first = warp_id() * LANES * 32 + lane_id();
    for lane in 0..LANES {
        let word = shuffle_idx(FULL, own, lane);
        let rank = shuffle_idx(FULL, before, lane) + (word & lane_mask_lt()).count_ones();
        if word >> lane_id() & 1 != 0 {
            stage.set(rank as usize, (first + lane * 32) as u16);
        }
    }
    look_back.look_back(u64::from(block.total), Sum, |before| {
        if lane_id() == 0 {
            place.set(0, before);
            if look_back.is_last() {
                count.set(0, before + u64::from(block.total));
            }
        }
    });
    thread::sync_threads();

    let to = output.slice(place.get(0) as usize, block.total as usize);
    let mut at = thread::thread_idx_x() as usize;
    while at < to.len() {
        to.set(at, P::from_position(tile_start + stage.get(at) as usize));
        at += THREADS as usize;
    }
}

/// The truth table of a function of two bits: bit `2 * a + b` is its result.
pub(crate) mod table {
    pub const AND: u32 = 0b1000;
    pub const OR: u32 = 0b1110;
    pub const XOR: u32 = 0b0110;
    pub const AND_NOT: u32 = 0b0100;
    pub const NOT: u32 = 0b0011;
}

/// Returns a function of each bit of two words, given by its [table].
#[inline(always)]
pub(crate) fn combined(table: u32, a: u32, b: u32) -> u32 {
    let mut result = 0;
    for row in 0..4 {
        let is_row = (if row & 2 != 0 { a } else { !a }) & (if row & 1 != 0 { b } else { !b });
        // All ones, if the result is 1 in this row.
        result |= is_row & (table >> row & 1).wrapping_neg();
    }
    result
}

/// Writes a function of each pair of bits, a byte per thread. Bits of the last byte after the last pair are 0.
///
/// Cost: each bit is read once and written once.
///
/// # Safety
/// The launch has one thread per byte of `output`, which has one for each eight bits. There are as many bits in `b` as in
/// `a`. Nothing writes the bits meanwhile, and nothing else uses the output.
#[kernel(listed, threads = THREADS, native = super::native::combine_bits)]
pub unsafe fn combine_bits(a: BitView, b: BitView, table: u32, output: GlobalMut<u8>) {
    let byte = thread::block_idx_x() as usize * THREADS as usize + thread::thread_idx_x() as usize;
    if byte < output.len() {
        let left = a.len as usize - byte * 8;
        let mask = if left < 8 { (1 << left) - 1 } else { 0xff };
        output.set(byte, (combined(table, a.word(byte * 8), b.word(byte * 8)) & mask) as u8);
    }
}

crate::instances! {
    static in concat!(env!("CARGO_MANIFEST_DIR"), "/ptx");
    family pack_bits(H) {
        for H in [u8, u16, u32, u64, [u32; 3], [u64; 2], [u64; 4]]: PackBits<H>;
    }
    CountBits;
    family bit_positions(P) {
        for P in [u32, u64]: BitPositions<P>;
    }
    CombineBits;
}
