//! The kernels of the filter. Each of their threads has a part of a key's block, not a whole key: then the parts of a block are
//! one access of a warp.

// Register arrays are indexed by the counters of unrolled loops: iterators would move the arrays to memory.
#![allow(clippy::needless_range_loop)]

use super::hash::{Shape, WORDS, factor, fold, mix};
use super::view::FilterView;
use crate::WordCode;
use bytemuck::Pod;
use gpu_primitives::arch::{Cache, Order, Rmw, Scope, thread, warp};
use gpu_primitives::kernel::kernel;
use gpu_primitives::view::{Global, GlobalMut};

/// Threads per block.
pub const THREADS: u32 = 256;
const WARPS: usize = (THREADS / warp::LANES) as usize;

/// The keys that a warp inserts in one step: four lanes for each, which change its four words.
const INSERT_KEYS: usize = warp::LANES as usize / WORDS;
/// The steps of a warp. Their keys are read before the first word is changed.
const INSERT_STEPS: usize = 8;
/// The keys that a block inserts.
pub const INSERT_TILE: usize = WARPS * INSERT_KEYS * INSERT_STEPS;

/// The keys that a warp asks for in one step: two lanes for each, which load 16 bytes of its block.
const QUERY_KEYS: usize = warp::LANES as usize / 2;
/// The rows of a warp: 32 keys, which are two steps. The blocks of all rows are requested before the first one is used.
const QUERY_ROWS: usize = 2;
const QUERY_STEPS: usize = 2 * QUERY_ROWS;
/// The keys that a block asks for.
pub const QUERY_TILE: usize = WARPS * QUERY_KEYS * QUERY_STEPS;

/// Inserts keys.
///
/// Cost: the keys are read once. Four atomics per key, whose results nobody waits for, and which are one access to a sector.
///
/// # Safety
/// The launch has one block per tile of keys. The words are those of the shape. While the kernel runs, nobody writes the keys, and
/// others use the words only in this way.
#[kernel(listed, threads = THREADS, native = super::native::insert_keys)]
pub unsafe fn filter_insert<C: WordCode>(keys: Global<C>, shape: Shape, words: GlobalMut<u64>) {
    let lane = warp::lane_id();
    let (word, warp_index) = (lane % WORDS as u32, warp::warp_id() as usize);
    let first = thread::block_idx_x() as usize * INSERT_TILE
        + warp_index * INSERT_KEYS * INSERT_STEPS
        + (lane / WORDS as u32) as usize;
    let factor = factor(word);
    let mut loaded = [C::MIN; INSERT_STEPS];
    for step in 0..INSERT_STEPS {
        let at = first + step * INSERT_KEYS;
        if at < keys.len() {
            loaded[step] = keys.load(at, Cache::Streaming);
        }
    }
    for step in 0..INSERT_STEPS {
        if first + step * INSERT_KEYS < keys.len() {
            let hash = mix(loaded[step].to_u64(), shape.seed);
            let (at, mask) = (shape.first_word(hash) + word as usize, shape.mask(hash, factor));
            words.atomic_rmw(Rmw::Or, at, mask, Scope::Gpu, Order::Relaxed);
        }
    }
}

/// Asks for the keys of this warp. Returns the index of the first of them, and a bit for each, in rows of 32.
///
/// # Safety
/// All threads of a warp call it. Nobody writes the filter or the keys.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
unsafe fn ask<C: WordCode>(filter: FilterView<C>, keys: Global<C>) -> (usize, [u32; QUERY_ROWS]) {
    let (words, shape) = (filter.words(), filter.shape());
    let (lane, warp_index) = (warp::lane_id(), warp::warp_id() as usize);
    let start = thread::block_idx_x() as usize * QUERY_TILE + warp_index * QUERY_KEYS * QUERY_STEPS;
    let first = start + (lane / 2) as usize;
    let word = 2 * (lane % 2);
    let factors = [factor(word), factor(word + 1)];
    let mut loaded = [C::MIN; QUERY_STEPS];
    for step in 0..QUERY_STEPS {
        let at = first + step * QUERY_KEYS;
        if at < keys.len() {
            loaded[step] = keys.load(at, Cache::Streaming);
        }
    }
    // What is beyond the last key asks for the smallest one.
    let mut hashes = [0; QUERY_STEPS];
    let mut parts = [[0; 2]; QUERY_STEPS];
    for step in 0..QUERY_STEPS {
        hashes[step] = mix(loaded[step].to_u64(), shape.seed);
        let at = shape.first_word(hashes[step]) + word as usize;
        parts[step] = words.load_vec::<2>(at, Cache::ReadOnly);
    }
    let mut rows = [0; QUERY_ROWS];
    for step in 0..QUERY_STEPS {
        let missing = shape.mask(hashes[step], factors[0]) & !parts[step][0]
            | shape.mask(hashes[step], factors[1]) & !parts[step][1];
        let halves = warp::ballot(warp::FULL, missing == 0);
        rows[step / 2] |= even_bits(halves & (halves >> 1)) << (step % 2 * QUERY_KEYS);
    }
    (start, rows)
}

/// Returns the 16 bits at even places, side by side.
#[inline(always)]
fn even_bits(bits: u32) -> u32 {
    let mut even = bits & 0x5555_5555;
    even = (even | even >> 1) & 0x3333_3333;
    even = (even | even >> 2) & 0x0F0F_0F0F;
    even = (even | even >> 4) & 0x00FF_00FF;
    (even | even >> 8) & 0xFFFF
}

/// Writes 1 for each key that the filter may contain, and 0 for the others.
///
/// Cost: the keys are read once, and a byte is written for each. Per key one sector at a random place.
///
/// # Safety
/// The launch has one block per tile of keys. `found` is as long as `keys`. While the kernel runs, nobody writes the filter or the
/// keys, and nobody else uses the output.
#[kernel(listed, threads = THREADS, native = super::native::contains_keys)]
pub unsafe fn filter_contains<C: WordCode>(filter: FilterView<C>, keys: Global<C>, found: GlobalMut<u8>) {
    let (start, rows) = ask(filter, keys);
    let lane = warp::lane_id();
    for row in 0..QUERY_ROWS {
        let at = start + row * warp::LANES as usize + lane as usize;
        if at < found.len() {
            found.store(at, (rows[row] >> lane & 1) as u8, Cache::Streaming);
        }
    }
}

/// Writes a bit for each key, the first one lowest: whether the filter may contain it. Bits of the last byte after the last key
/// are 0.
///
/// Cost: that of [`FilterContains`], with an eighth of the output.
///
/// # Safety
/// The launch has one block per tile of keys. `bits` has a byte for each eight keys. While the kernel runs, nobody writes the
/// filter or the keys, and nobody else uses the output.
#[kernel(listed, threads = THREADS, native = super::native::contains_bits)]
pub unsafe fn filter_bits<C: WordCode>(filter: FilterView<C>, keys: Global<C>, bits: GlobalMut<u8>) {
    let (start, rows) = ask(filter, keys);
    let lane = warp::lane_id() as usize;
    for row in 0..QUERY_ROWS {
        let key = start + row * warp::LANES as usize + 8 * lane;
        if lane < warp::LANES as usize / 8 && key < keys.len() {
            let left = keys.len() - key;
            let mask = if left < 8 { (1 << left) - 1 } else { 0xFF };
            bits.set(key / 8, (rows[row] >> (8 * lane) & mask) as u8);
        }
    }
}

/// A piece of a key: `u8` or `u32`.
pub trait Piece: Pod {
    /// Extends the piece to 64 bits.
    fn widen(self) -> u64;
}

impl Piece for u8 {
    #[inline(always)]
    fn widen(self) -> u64 {
        self as u64
    }
}

impl Piece for u32 {
    #[inline(always)]
    fn widen(self) -> u64 {
        self as u64
    }
}

/// Writes the numbers that stand for keys of any size: see [`fold`].
///
/// Floor: the bytes of the key read, 8 written.
///
/// # Safety
/// The launch has at least one thread per number. There are as many keys of `size` bytes, in whole pieces. While the kernel runs,
/// nobody writes the keys, and nobody else uses the numbers.
#[kernel(listed, threads = THREADS, native = super::native::fold_keys)]
pub unsafe fn filter_fold<P: Piece>(keys: Global<P>, size: u32, seed: u64, numbers: GlobalMut<u64>) {
    let i = thread::block_idx_x() as usize * THREADS as usize + thread::thread_idx_x() as usize;
    if i >= numbers.len() {
        return;
    }
    let pieces = size as usize / size_of::<P>();
    let key = keys.slice(i * pieces, pieces);
    let folded = fold(seed, size as usize, |word| {
        let each = 8 / size_of::<P>();
        let mut number = 0;
        let mut piece = 0;
        while piece < each && word * each + piece < pieces {
            number |= key.get(word * each + piece).widen() << (8 * size_of::<P>() * piece);
            piece += 1;
        }
        number
    });
    numbers.set(i, folded);
}

gpu_primitives::instances! {
    static in concat!(env!("CARGO_MANIFEST_DIR"), "/ptx");
    for C in [u32, u64]: FilterInsert<C>;
    for C in [u32, u64]: FilterContains<C>;
    for C in [u32, u64]: FilterBits<C>;
    for P in [u8, u32]: FilterFold<P>;
}
