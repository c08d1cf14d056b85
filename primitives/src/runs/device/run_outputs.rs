//! What a compaction of runs writes in addition to the kept items.

use super::open::{Join, Open};
use crate::arch::warp::{LANES, lane_id};
use crate::block::warp;
use crate::form::{Buffer, Param};
use crate::monoid::{Combine, Max, Sum};
use crate::select::Offset;
use crate::select::device::tile::{run_len, striped};
use crate::view::{Global, GlobalMut, Shared};
use bytemuck::{Pod, Zeroable};
#[cfg(not(target_arch = "nvptx64"))]
use {crate::select::native::write_kept, std::ops::Range};

/// What is known about the items before a warp or tile: at least how many are kept.
pub trait Tally: Pod {
    /// How the tallies of neighbouring tiles are joined.
    type Join: Combine<Self>;
    /// The tally of a part of a tile, in fewer words.
    type Short: Pod;
    /// How those are joined.
    type JoinShort: Combine<Self::Short>;

    /// Returns how tallies are joined.
    fn join() -> (Self::Join, Self::JoinShort);

    /// Returns the tally of a warp that has `len` items and keeps `kept` of them, by its lanes' flags.
    ///
    /// # Safety
    /// All lanes of the warp must call this.
    unsafe fn of<const VEC: usize>(flags: u32, kept: u32, len: usize) -> Self::Short;

    /// Converts the tally of a part of a tile.
    fn long(short: Self::Short) -> Self;

    /// Returns the number of items that are kept.
    fn kept(self) -> u64;
}

impl Tally for u64 {
    type Join = Sum;
    type Short = u32;
    type JoinShort = Sum;

    #[inline(always)]
    fn join() -> (Sum, Sum) {
        (Sum, Sum)
    }

    #[inline(always)]
    unsafe fn of<const VEC: usize>(_: u32, kept: u32, _: usize) -> u32 {
        kept
    }

    #[inline(always)]
    fn long(short: u32) -> Self {
        short as u64
    }

    #[inline(always)]
    fn kept(self) -> u64 {
        self
    }
}

/// Joins neighbouring parts of a tile: the number of runs that begin, and the length of the last one so far.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub struct JoinLengths;

impl Combine<[u32; 2]> for JoinLengths {
    #[inline(always)]
    fn identity(&self) -> [u32; 2] {
        [0; 2]
    }

    #[inline(always)]
    fn combine(&self, a: [u32; 2], b: [u32; 2]) -> [u32; 2] {
        [a[0] + b[0], if b[0] > 0 { b[1] } else { a[1] + b[1] }]
    }
}

/// The number of runs that begin, and the length of the last one so far.
impl Tally for Open<u64> {
    type Join = Join<Sum>;
    type Short = [u32; 2];
    type JoinShort = JoinLengths;

    #[inline(always)]
    fn join() -> (Join<Sum>, JoinLengths) {
        (Join(Sum), JoinLengths)
    }

    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn of<const VEC: usize>(flags: u32, kept: u32, len: usize) -> [u32; 2] {
        // The lane's last head. A lane without heads has 0, which is no more than that of another lane.
        let bit = 31 - (flags | 1).leading_zeros() as usize;
        let position = if flags == 0 { 0 } else { striped::<VEC>(bit / VEC) + bit % VEC };
        let last = warp::reduce(position as u32, Max);
        [kept, if kept == 0 { len as u32 } else { len as u32 - last }]
    }

    #[inline(always)]
    fn long(short: [u32; 2]) -> Self {
        Self::new(short[0] as u64, short[1] as u64)
    }

    #[inline(always)]
    fn kept(self) -> u64 {
        self.heads()
    }
}

/// What is written in addition to the kept items.
///
/// # Safety
/// For all methods: the buffers it carries satisfy the requirements of its type, and nothing else uses those that it writes
/// while the kernel runs.
pub trait RunOutputs: Param {
    /// What it needs to know about the items before.
    type Tally: Tally;

    /// Whether it needs the positions of the kept items.
    const POSITIONS: bool;

    /// Called by all lanes of a warp, whose items begin at `start` of `len`, with the flags of the kept ones.
    #[inline(always)]
    unsafe fn flag<const VEC: usize, const ROWS: usize>(&self, start: usize, len: usize, flags: u32) {
        let _ = (start, len, flags);
    }

    /// Called by all lanes of a warp, whose items begin at `start`, when it is known what comes before. The positions of
    /// the kept items are counted from there.
    #[inline(always)]
    unsafe fn write(&self, start: usize, before: Self::Tally, kept: u32, positions: Shared<u16>) {
        let _ = (start, before, kept, positions);
    }

    /// Writes what belongs to the kept items of a range, which go to these places. There is a flag for every item of the
    /// input, 1 if it is kept.
    #[cfg(not(target_arch = "nvptx64"))]
    unsafe fn write_natively(&self, range: Range<usize>, flags: &[u8], places: Range<usize>) {
        let _ = (range, flags, places);
    }

    /// Called once, with the flags of all items and the number of those that are kept.
    #[cfg(not(target_arch = "nvptx64"))]
    unsafe fn close_natively(&self, flags: &[u8], kept: usize) {
        let _ = (flags, kept);
    }

    /// Called by one thread with the tally of all items.
    #[inline(always)]
    unsafe fn close(&self, all: Self::Tally) {
        let _ = all;
    }
}

/// Nothing.
impl RunOutputs for () {
    type Tally = u64;
    const POSITIONS: bool = false;
}

/// A byte for each item of the input: 1 if it is kept, otherwise 0. There are at least as many as items, and the first one
/// is aligned to 4 bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Marks(pub GlobalMut<u8>);

// SAFETY: `repr(C)` around a view.
unsafe impl Param for Marks {
    fn buffers(&self, _: &'static str, visit: &mut dyn FnMut(&'static str, Buffer)) {
        self.0.buffers("marks", visit);
    }
}

impl RunOutputs for Marks {
    type Tally = u64;
    const POSITIONS: bool = false;

    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn flag<const VEC: usize, const ROWS: usize>(&self, start: usize, len: usize, flags: u32) {
        let is_whole = start + run_len(VEC, ROWS) <= len;
        for row in 0..ROWS {
            let at = start + striped::<VEC>(row);
            let mut bytes = [0; VEC];
            for i in 0..VEC {
                bytes[i] = (flags >> (row * VEC + i) & 1) as u8;
            }
            if is_whole {
                self.0.store_vec(at, bytes, crate::arch::Cache::Default);
            } else {
                for i in 0..VEC {
                    if at + i < len {
                        self.0.set(at + i, bytes[i]);
                    }
                }
            }
        }
    }

    #[cfg(not(target_arch = "nvptx64"))]
    unsafe fn write_natively(&self, range: Range<usize>, flags: &[u8], _: Range<usize>) {
        // SAFETY: there are as many bytes as items, and no other call has this range.
        unsafe {
            self.0.as_mut_ptr().add(range.start).copy_from_nonoverlapping(flags[range.clone()].as_ptr(), range.len())
        };
    }
}

/// The values of the kept items. There are at least as many values as items, and as much room.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Values<V> {
    /// One for each item of the input.
    pub input: Global<V>,
    /// Those of the kept items.
    pub output: GlobalMut<V>,
}

// SAFETY: `repr(C)`, and all fields are `Param`s.
unsafe impl<V: Pod> Param for Values<V> {
    fn buffers(&self, _: &'static str, visit: &mut dyn FnMut(&'static str, Buffer)) {
        self.input.buffers("values", visit);
        self.output.buffers("output_values", visit);
    }
}

/// Only the values that are kept are read, when their places are known: long runs take hardly more traffic than their keys.
impl<V: Pod> RunOutputs for Values<V> {
    type Tally = u64;
    const POSITIONS: bool = true;

    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn write(&self, start: usize, before: u64, kept: u32, positions: Shared<u16>) {
        const GROUP: usize = 4;
        let output = self.output.slice(before as usize, kept as usize);
        let mut first = lane_id() as usize;
        while first < kept as usize {
            let mut values = [V::zeroed(); GROUP];
            for i in 0..GROUP {
                let at = first + i * LANES as usize;
                if at < kept as usize {
                    values[i] = self.input.get(start + positions.get(at) as usize);
                }
            }
            for i in 0..GROUP {
                let at = first + i * LANES as usize;
                if at < kept as usize {
                    output.set(at, values[i]);
                }
            }
            first += GROUP * LANES as usize;
        }
    }

    #[cfg(not(target_arch = "nvptx64"))]
    unsafe fn write_natively(&self, range: Range<usize>, flags: &[u8], places: Range<usize>) {
        // SAFETY: there are as many values as items, nothing writes them, and the output has room for the kept ones.
        unsafe {
            let values = self.input.slice(range.start, range.len()).as_slice();
            write_kept(values, &flags[range], self.output.as_mut_ptr().add(places.start), places.len());
        }
    }
}

/// The lengths of the runs, of which the first items are kept. There is room for one per item.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Lengths<C>(pub GlobalMut<C>);

// SAFETY: `repr(C)` around a view.
unsafe impl<C: Pod> Param for Lengths<C> {
    fn buffers(&self, _: &'static str, visit: &mut dyn FnMut(&'static str, Buffer)) {
        self.0.buffers("lengths", visit);
    }
}

/// A run's length is written where the next run begins, which is where it is known.
impl<C: Offset> RunOutputs for Lengths<C> {
    type Tally = Open<u64>;
    const POSITIONS: bool = true;

    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn write(&self, _: usize, before: Open<u64>, kept: u32, positions: Shared<u16>) {
        let mut at = lane_id();
        while at < kept {
            let head = positions.get(at as usize) as u64;
            let length = if at > 0 { head - positions.get(at as usize - 1) as u64 } else { before.total + head };
            let run = before.heads() + at as u64;
            // No run ends where the first one begins.
            if run > 0 {
                self.0.set(run as usize - 1, C::new(length));
            }
            at += LANES;
        }
    }

    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn close(&self, all: Open<u64>) {
        self.0.set(all.heads() as usize - 1, C::new(all.total));
    }

    #[cfg(not(target_arch = "nvptx64"))]
    unsafe fn write_natively(&self, range: Range<usize>, flags: &[u8], places: Range<usize>) {
        // Without a head in the range, no run ends there.
        let mut before = if places.is_empty() { None } else { last_head(&flags[..range.start]) };
        let heads = range.filter(|&at| flags[at] != 0);
        for (head, place) in heads.zip(places) {
            if let Some(before) = before {
                // SAFETY: there is room for one length per item, and no other call has this place.
                unsafe { self.0.as_mut_ptr().add(place - 1).write(C::new((head - before) as u64)) };
            }
            before = Some(head);
        }
    }

    #[cfg(not(target_arch = "nvptx64"))]
    unsafe fn close_natively(&self, flags: &[u8], kept: usize) {
        if let Some(head) = last_head(flags) {
            // SAFETY: there is room for one length per item.
            unsafe { self.0.as_mut_ptr().add(kept - 1).write(C::new((flags.len() - head) as u64)) };
        }
    }
}

/// Returns the last item whose flag is set.
#[cfg(not(target_arch = "nvptx64"))]
fn last_head(flags: &[u8]) -> Option<usize> {
    flags.iter().rposition(|&flag| flag != 0)
}
