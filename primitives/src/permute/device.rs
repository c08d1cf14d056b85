//! The kernels that move elements.
//!
//! An element is some words. A thread moves one word, so that neighbouring threads move neighbouring words of an element,
//! and then those of the next one.

use crate::arch::thread;
use crate::arch::warp::{FULL, any, ballot, lane_id};
use crate::arch::{Order, Rmw, Scope};
use crate::form::kernel;
use crate::hole::RegisterRepr;
use crate::input::{Input, SourceArg};
use crate::sealed::Sealed;
use crate::view::{Global, GlobalMut};
use bytemuck::Pod;

/// The threads per block.
const THREADS: u32 = 256;
/// The words per thread.
const ROWS: usize = 4;
/// The words of a block.
pub(super) const TILE: usize = THREADS as usize * ROWS;

/// A number that is an index: `u32` or `u64`.
pub trait Index: RegisterRepr + Sealed {
    /// Returns the number.
    fn index(self) -> usize;
}

impl Index for u32 {
    #[inline(always)]
    fn index(self) -> usize {
        self as usize
    }
}

impl Index for u64 {
    #[inline(always)]
    fn index(self) -> usize {
        self as usize
    }
}

/// No index.
const NOTHING: usize = usize::MAX;

/// Returns the number of elements of so many words.
#[inline(always)]
fn elements<W: Pod>(buffer: Global<W>, words: u32) -> usize {
    if words == 1 { buffer.len() } else { buffer.len() / words as usize }
}

/// A word of an element.
#[derive(Clone, Copy)]
struct Part {
    element: usize,
    word: usize,
}

/// Returns which part of which element the block's word number `offset` is.
#[inline(always)]
fn part(offset: u32, words: u32) -> Part {
    part_of_tile(thread::block_idx_x() as usize, offset, words)
}

/// Returns which part of which element word number `offset` of a tile is.
#[inline(always)]
fn part_of_tile(tile: usize, offset: u32, words: u32) -> Part {
    let first = tile * TILE;
    if words == 1 {
        return Part { element: first + offset as usize, word: 0 };
    }
    // One division of 64 bits per thread; those of the rows have 32 bits.
    let (element, word) = (first / words as usize, (first % words as usize) as u32);
    Part { element: element + ((word + offset) / words) as usize, word: ((word + offset) % words) as usize }
}

/// Returns the parts that a thread moves, one per row.
#[inline(always)]
fn parts(words: u32) -> [Part; ROWS] {
    core::array::from_fn(|row| part(row as u32 * THREADS + thread::thread_idx_x(), words))
}

/// Loads the index of each part whose element is below `len`.
///
/// # Safety
/// There are `len` indices, which nothing writes.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
unsafe fn load_indices<I: Index>(indices: &SourceArg, parts: &[Part; ROWS], len: usize) -> [usize; ROWS] {
    core::array::from_fn(|row| match parts[row].element < len {
        true => Input::<I>::item(indices, parts[row].element).index(),
        false => NOTHING,
    })
}

/// Adds the number of lanes with an index out of range to the count.
///
/// # Safety
/// All lanes of the warp call this. `outside` has one element, which is accessed atomically, or none.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
unsafe fn count_outside(is_outside: bool, outside: GlobalMut<u64>) {
    let lanes = ballot(FULL, is_outside).count_ones();
    if lanes > 0 && lane_id() == 0 && !outside.is_empty() {
        outside.atomic_add(0, u64::from(lanes), Scope::Gpu, Order::Relaxed);
    }
}

/// Copies element `indices[i]` of `from` to place `i` of `to`. Places whose index is out of range stay as they are, and are
/// counted.
///
/// Cost: each index is read once and each element is written once, in coalesced accesses. An element that is read costs at
/// least a sector of 32 bytes.
///
/// # Safety
/// The launch has one block per [`TILE`] words of the target. The buffers have whole elements of `words` words. There is an
/// index for each element of the target, or fewer if only the device knows how many. `outside` has one element or none.
/// While the kernel runs, nothing writes what it reads, and nothing else uses `to` and `outside`.
#[kernel(listed, threads = THREADS, native = super::native::gather_elements)]
pub unsafe fn gather_elements<W: Pod, I: Index>(
    from: Global<W>,
    indices: SourceArg,
    to: GlobalMut<W>,
    words: u32,
    outside: GlobalMut<u64>,
) {
    let (len, elements) = (Input::<I>::count(&indices), elements(from, words));
    let parts = parts(words);
    // All loads come before the first store, which they could not pass: so those of the rows overlap.
    let sources = load_indices::<I>(&indices, &parts, len);
    let items: [W; ROWS] = core::array::from_fn(|row| match sources[row] < elements {
        true => from.get(sources[row] * words as usize + parts[row].word),
        false => W::zeroed(),
    });
    for row in 0..ROWS {
        let Part { element, word } = parts[row];
        let is_inside = sources[row] < elements;
        if is_inside {
            to.set(element * words as usize + word, items[row]);
        }
        count_outside(element < len && !is_inside && word == 0, outside);
    }
}

/// Copies element `i` of `from` to place `indices[i]` of `to`, if the place is free. Zeroes `last`.
///
/// Each place has a bit that says whether it is taken. Those of 2^27 places are 16 MiB, which stay in the cache. If several
/// elements come to one place, some of them finds it free, and another one notes that places are repeated. Then [`ClaimPlaces`]
/// and [`ScatterElements`] have work to do: they replace that element by the last one.
///
/// Cost: reads each index and each element once, in coalesced accesses; an atomic in the cache and a sector of 32 bytes per
/// element that is written; 8 bytes per place for `last`.
///
/// # Safety
/// The launch has one block per [`TILE`] elements; there may be more. The buffers have whole elements of `words` words. There is an
/// index for each element of the source, or fewer if only the device knows how many. `last` has one number per place.
/// `claimed` is zero: one bit per place, and a word after them, which becomes 1 if places are repeated. `outside` has one element.
/// While the kernel runs, nothing writes what it reads, and nothing else uses the other buffers.
// `ptxas` would spill rather than use more registers, unless it is told that a few blocks are enough.
#[kernel(listed, threads = THREADS, min_blocks = if size_of::<W>() == 16 { 2 } else { 4 }, native = super::native::scatter_first)]
pub unsafe fn scatter_first<W: Pod, I: Index>(
    from: Global<W>,
    indices: SourceArg,
    to: GlobalMut<W>,
    words: u32,
    claimed: GlobalMut<u32>,
    last: GlobalMut<u64>,
    outside: GlobalMut<u64>,
) {
    let (len, words) = (Input::<I>::count(&indices), words as usize);
    let element = |row: usize| parts(1)[row].element;
    // As in `gather_elements`.
    let places = load_indices::<I>(&indices, &parts(1), len);
    let items: [W; ROWS] = core::array::from_fn(|row| match element(row) < len {
        true => from.get(element(row) * words),
        false => W::zeroed(),
    });
    let is_inside = |row: usize| places[row] < last.len();
    let bit = |row: usize| 1u32 << (places[row] % 32);
    let earlier: [u32; ROWS] = core::array::from_fn(|row| match is_inside(row) {
        true => claimed.atomic_rmw(Rmw::Or, places[row] / 32, bit(row), Scope::Gpu, Order::Relaxed),
        false => 0,
    });
    let mut is_repeated = false;
    for row in 0..ROWS {
        let is_free = earlier[row] & bit(row) == 0;
        if is_inside(row) && is_free {
            to.set(places[row] * words, items[row]);
            // The other words of long elements. The index is not asked again: a source may answer otherwise.
            let mut word = 1;
            while word < words {
                to.set(places[row] * words + word, from.get(element(row) * words + word));
                word += 1;
            }
        }
        is_repeated |= is_inside(row) && !is_free;
        count_outside(element(row) < len && !is_inside(row), outside);
    }
    if any(FULL, is_repeated) && lane_id() == 0 {
        claimed.atomic_store(claimed.len() - 1, 1, Scope::Gpu, Order::Relaxed);
    }
    let threads = thread::grid_dim_x() as usize * THREADS as usize;
    let mut place = thread::block_idx_x() as usize * THREADS as usize + thread::thread_idx_x() as usize;
    while place < last.len() {
        last.set(place, 0);
        place += threads;
    }
}

/// Returns whether a kernel has nothing to do, because no place is repeated. Without a word, it has.
///
/// # Safety
/// Nothing writes the word.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub(super) unsafe fn is_idle(repeated: Global<u32>) -> bool {
    !repeated.is_empty() && repeated.get(0) == 0
}

/// Notes for each place the last element that is scattered to it: its index plus 1.
///
/// # Safety
/// The launch has one block per [`TILE`] indices. `last` is zero, has one number per place, and nothing else uses it. Nothing writes
/// `repeated`, which [`ScatterFirst`] has left.
#[kernel(listed, threads = THREADS, native = super::native::claim_places)]
pub unsafe fn claim_places<I: Index>(indices: SourceArg, last: GlobalMut<u64>, repeated: Global<u32>) {
    if is_idle(repeated) {
        return;
    }
    let len = Input::<I>::count(&indices);
    for row in 0..ROWS {
        let element = parts(1)[row].element;
        if element < len {
            let place = Input::<I>::item(&indices, element).index();
            if place < last.len() {
                last.atomic_rmw(Rmw::Max, place, element as u64 + 1, Scope::Gpu, Order::Relaxed);
            }
        }
    }
}

/// Copies element `i` of `from` to place `indices[i]` of `to`.
///
/// # Safety
/// The launch has one block per [`TILE`] words of the source. The buffers have whole elements of `words` words; there is an
/// index for each element of the source, or fewer if only the device knows how many. If `last` has numbers, they are those
/// of [`ClaimPlaces`] for the same indices, and `repeated` is what it has; otherwise all indices are distinct and in range. While the
/// kernel runs, nothing writes what it reads, and nothing else uses `to`.
#[kernel(listed, threads = THREADS, native = super::native::scatter_elements)]
pub unsafe fn scatter_elements<W: Pod, I: Index>(
    from: Global<W>,
    indices: SourceArg,
    to: GlobalMut<W>,
    words: u32,
    last: Global<u64>,
    repeated: Global<u32>,
) {
    if is_idle(repeated) {
        return;
    }
    let len = Input::<I>::count(&indices);
    let parts = parts(words);
    // As in `gather_elements`.
    let places = load_indices::<I>(&indices, &parts, len);
    let items: [W; ROWS] = core::array::from_fn(|row| match parts[row].element < len {
        true => from.get(parts[row].element * words as usize + parts[row].word),
        false => W::zeroed(),
    });
    for row in 0..ROWS {
        let (Part { element, word }, place) = (parts[row], places[row]);
        let is_chosen = last.is_empty() || (place < last.len() && last.get(place) == element as u64 + 1);
        if element < len && is_chosen {
            to.set(place * words as usize + word, items[row]);
        }
    }
}

/// Copies the elements in reverse.
///
/// # Safety
/// The launch has one block per [`TILE`] words. Both buffers have the same number of whole elements, and do not overlap.
/// Nothing else uses `to`, and nothing writes `from`.
#[kernel(listed, threads = THREADS, native = super::native::reverse_elements)]
pub unsafe fn reverse_elements<W: Pod>(from: Global<W>, to: GlobalMut<W>, words: u32) {
    let len = to.len() / words as usize;
    for row in 0..ROWS {
        let Part { element, word } = part(row as u32 * THREADS + thread::thread_idx_x(), words);
        if element < len {
            to.set(element * words as usize + word, from.get((len - 1 - element) * words as usize + word));
        }
    }
}

/// Swaps the elements of the first half with those of the second half, in reverse.
///
/// # Safety
/// The launch has one block per [`TILE`] words of the first half. The buffer has whole elements, and nothing else uses it.
#[kernel(listed, threads = THREADS, native = super::native::swap_ends)]
pub unsafe fn swap_ends<W: Pod>(data: GlobalMut<W>, words: u32) {
    let len = data.len() / words as usize;
    for row in 0..ROWS {
        let Part { element, word } = part(row as u32 * THREADS + thread::thread_idx_x(), words);
        if element < len / 2 {
            let (a, b) = (element * words as usize + word, (len - 1 - element) * words as usize + word);
            let (first, second) = (data.get(a), data.get(b));
            data.set(a, second);
            data.set(b, first);
        }
    }
}

/// What [`CopyRanges`] copies.
#[derive(Clone, Copy)]
struct CopiedRanges<W> {
    from: Global<W>,
    starts: Global<u64>,
    to: GlobalMut<W>,
    offsets: Global<u64>,
    places: Global<u64>,
    words: u32,
    /// The number of elements.
    len: usize,
}

/// Copies ranges: element `i` of the target, which lies in range `r` (from `offsets[r]` to `offsets[r + 1]`), is element
/// `starts[r] + i - offsets[r]` of the source. What is out of range in the source is left out, and counted.
///
/// With `places`, these elements are those of all ranges, one after the other, and element `i` goes to place `places[r] + i - offsets[r]`
/// of the target. Only the device knows how many there are: so the blocks take tiles in turn, until none is left.
///
/// A thread finds its range by a binary search of the offsets. Neighbours find the same one or the next, so the search
/// reads from the cache.
///
/// Cost: each element is read and written once, in coalesced accesses within a range; `log2` of the number of ranges steps
/// of search per word.
///
/// # Safety
/// The launch has one block per [`TILE`] words of the target; with places, any number of blocks. The buffers have whole elements. There
/// is one offset more than there are starts. There are no places, or as many as starts: then there is at least one range, the
/// offsets begin with 0 and ascend, and ranges do not overlap in the target. `outside` has one element. While the kernel runs,
/// nothing writes what it reads, and nothing else uses `to` and `outside`.
#[kernel(listed, threads = THREADS, native = super::native::copy_ranges)]
pub unsafe fn copy_ranges<W: Pod>(
    from: Global<W>,
    starts: Global<u64>,
    to: GlobalMut<W>,
    offsets: Global<u64>,
    places: Global<u64>,
    words: u32,
    outside: GlobalMut<u64>,
) {
    let room = to.len() / words as usize;
    let len = if places.is_empty() { room } else { offsets.get(starts.len()) as usize };
    let ranges = CopiedRanges { from, starts, to, offsets, places, words, len };
    let tiles = (len * words as usize).div_ceil(TILE);
    let mut tile = thread::block_idx_x() as usize;
    while tile < tiles {
        copy_tile(tile, &ranges, outside);
        tile += thread::grid_dim_x() as usize;
    }
}

/// Copies a tile of the elements of [`CopyRanges`].
///
/// # Safety
/// All threads of the block call this, and the contract of the kernel holds.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
unsafe fn copy_tile<W: Pod>(tile: usize, ranges: &CopiedRanges<W>, outside: GlobalMut<u64>) {
    let CopiedRanges { from, starts, to, offsets, places, words, len } = *ranges;
    let (room, available) = (to.len() / words as usize, from.len() / words as usize);
    for row in 0..ROWS {
        let Part { element, word } = part_of_tile(tile, row as u32 * THREADS + thread::thread_idx_x(), words);
        let mut is_outside = false;
        if element < len {
            // The number of ranges that begin at or before the element.
            let (mut low, mut high) = (0, starts.len());
            while low < high {
                let middle = (low + high) / 2;
                if offsets.get(middle) <= element as u64 {
                    low = middle + 1;
                } else {
                    high = middle;
                }
            }
            if low > 0 && (element as u64) < offsets.get(low) {
                let at = element as u64 - offsets.get(low - 1);
                // A range that would wrap ends beyond every input.
                let index = starts.get(low - 1).saturating_add(at) as usize;
                let place = if places.is_empty() { element } else { places.get(low - 1).wrapping_add(at) as usize };
                is_outside = index >= available || place >= room;
                if !is_outside {
                    to.set(place * words as usize + word, from.get(index * words as usize + word));
                }
                is_outside &= word == 0;
            }
        }
        count_outside(is_outside, outside);
    }
}

crate::instances! {
    static in concat!(env!("CARGO_MANIFEST_DIR"), "/ptx");
    // By index, in words.
    family by_index(W, I) {
        for W in [u8, u16, u32, u64, [u64; 2]], I in [u32, u64]:
            GatherElements<W, I>, ScatterFirst<W, I>, ScatterElements<W, I>, ClaimPlaces<I>;
    }
    family in_words(W) {
        for W in [u8, u16, u32, u64, [u64; 2]]: ReverseElements<W>, SwapEnds<W>, CopyRanges<W>;
    }
}
