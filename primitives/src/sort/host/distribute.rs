//! Launches the passes: host code that sort and multisplit share.

#![deny(unsafe_op_in_unsafe_fn)]

use crate::block::radix::RADIX;
use crate::buckets::Buckets;
use crate::host::runtime::column::{AnyVec, Column};
use crate::host::runtime::loading::Upcoming;
use crate::host::runtime::pairs::{Columns, ColumnsMut};
use crate::sort::device::instances::sort_digits;
use crate::sort::device::kernel::{BucketHistogram, HISTOGRAM_TILE, MAX_CHUNK, lookback_len};
use crate::sort::device::shape::{LargePass, SMALL_ITEMS, SMALL_THREADS, SmallPass, THREADS, items};
use crate::with_shape;
use crate::{DeviceSlice, DeviceVec, Error, Global, GlobalMut, Stream};
use bytemuck::Pod;
use std::marker::PhantomData;

/// Below this number of elements the small tiles are faster.
const SMALL: usize = 1 << 19;

/// Returns whether the kernels of the sort move these values with codes of `code` bytes.
pub(crate) fn is_moved(code: usize, values: Column) -> bool {
    sort_digits!((code, values.size()) => (K, V, ITEMS, BLOCK_ITEMS), values.fits::<V>(), else false)
}

/// Second buffers from the device's pool.
#[derive(Debug)]
pub struct Spare {
    pub keys: AnyVec,
    pub values: AnyVec,
}

impl Spare {
    /// Memory for as many pairs of the same sizes.
    pub fn like(stream: &Stream, pairs: Columns) -> Result<Self, Error> {
        let (key, value) = pairs.sizes();
        let len = pairs.keys.len();
        Ok(Self { keys: AnyVec::uninit(stream, key, len)?, values: AnyVec::uninit(stream, value, len)? })
    }

    pub fn target(&mut self, stream: &Stream) -> Result<ColumnsMut, Error> {
        Ok(ColumnsMut { keys: self.keys.raw_view_mut(stream)?, values: self.values.raw_view_mut(stream)? })
    }
}

/// The kernels of the passes.
pub trait Kernels {
    /// Returns the number of items of a tile, if the input is not small.
    fn tile(&self) -> usize;

    /// Returns whether inputs of `len` items have small tiles.
    fn is_small(&self, len: usize) -> bool;

    /// Launches the histogram. `is_small` tells which passes follow.
    ///
    /// # Safety
    /// The buffers satisfy the kernel's contract.
    unsafe fn count(&self, stream: &Stream, histogram: Histogram, blocks: usize, is_small: bool) -> Result<(), Error>;

    /// Launches a pass over one chunk.
    ///
    /// # Safety
    /// The buffers satisfy the kernel's contract, for their number of tiles and for tiles of the selected shape.
    unsafe fn pass(&self, stream: &Stream, chunk: Chunk, is_small: bool) -> Result<(), Error>;
}

/// The launch of the histogram.
pub struct Histogram {
    keys: Column,
    passes: u32,
    counts: GlobalMut<u64>,
    bases: GlobalMut<u64>,
    lookback: GlobalMut<u32>,
}

/// One launch of a pass.
pub struct Chunk {
    from: Columns,
    to: ColumnsMut,
    pass: u32,
    bases: Global<u64>,
    next_bases: GlobalMut<u64>,
    lookback: GlobalMut<u32>,
    tiles: usize,
}

/// The kernels for keys and values of these types.
pub struct Typed<K, V, B> {
    buckets: B,
    types: PhantomData<fn(K, V)>,
}

impl<K, V, B> Typed<K, V, B> {
    pub fn new(buckets: B) -> Self {
        Self { buckets, types: PhantomData }
    }
}

impl<K: Pod, V: Pod, B: Buckets<K>> Kernels for Typed<K, V, B> {
    fn tile(&self) -> usize {
        THREADS as usize * items::<K, V>()
    }

    /// There are no small tiles for keys of 16 bytes.
    fn is_small(&self, len: usize) -> bool {
        len < SMALL && size_of::<K>() <= 8
    }

    unsafe fn count(&self, stream: &Stream, histogram: Histogram, blocks: usize, is_small: bool) -> Result<(), Error> {
        let Histogram { keys, passes, counts, bases, lookback } = histogram;
        let kernel = BucketHistogram::new(keys.prefix::<K>(), self.buckets, passes, counts, bases, lookback);
        let kernel = if const { size_of::<K>() <= 8 } && is_small {
            kernel.followed_by(Upcoming::kernel::<SmallPass<K, V, B>>)
        } else {
            with_shape!(ITEMS in 25 | 17 | 13 | 9 | 7 = items::<K, V>(), {
                kernel.followed_by(Upcoming::kernel::<LargePass<K, V, B, ITEMS>>)
            })
        };
        // SAFETY: guaranteed by the caller.
        unsafe { stream.launch(kernel, blocks) }
    }

    unsafe fn pass(&self, stream: &Stream, chunk: Chunk, is_small: bool) -> Result<(), Error> {
        let (from, to) = (chunk.from.as_types::<K, V>(), chunk.to.as_types::<K, V>());
        macro_rules! launch {
            ($pass:ty) => {{
                let kernel = <$pass>::new(
                    chunk.from.keys.prefix::<K>(),
                    to.keys,
                    from.values,
                    to.values,
                    self.buckets,
                    chunk.pass,
                    chunk.bases,
                    chunk.next_bases,
                    chunk.lookback,
                );
                // SAFETY: guaranteed by the caller; one block per tile.
                unsafe { stream.launch(kernel, chunk.tiles) }
            }};
        }
        if const { size_of::<K>() <= 8 } && is_small {
            return launch!(SmallPass<K, V, B>);
        }
        with_shape!(ITEMS in 25 | 17 | 13 | 9 | 7 = items::<K, V>(), launch!(LargePass<K, V, B, ITEMS>))
    }
}

/// The results of the histogram, and the scratch memory of the passes.
pub struct Passes<'a> {
    kernels: &'a dyn Kernels,
    is_small: bool,
    tile: usize,
    passes: u32,
    /// The first positions of each bucket, for every pass and then for every chunk.
    bases: DeviceVec<u64>,
    lookback: DeviceVec<u32>,
    len: usize,
}

impl<'a> Passes<'a> {
    /// Counts the buckets of all passes.
    pub fn count(stream: &Stream, keys: Column, kernels: &'a dyn Kernels, passes: u32) -> Result<Self, Error> {
        let len = keys.len();
        let is_small = kernels.is_small(len);
        let tile = if is_small { SMALL_THREADS as usize * SMALL_ITEMS } else { kernels.tile() };
        // The bases of each pass, and those that each of its chunks passes on to the next.
        let chunks = len.div_ceil(chunk_len(tile));
        let counts = stream.zero_words(passes as usize * RADIX + 1)?;
        let mut bases = stream.uninit::<u64>(passes as usize * (chunks + 1) * RADIX)?;
        let words: usize = chunk_lens(len, tile).map(|len| lookback_len(len.div_ceil(tile))).sum();
        let mut lookback = stream.uninit::<u32>(passes as usize * words)?;

        let wave = 2 * stream.device().limits().multiprocessors as usize;
        let tiles = len.div_ceil(HISTOGRAM_TILE);
        // Every block adds its counts to those of all others: two tiles per block, if all blocks have work.
        let blocks = if tiles <= wave { tiles.max(1) } else { (tiles / 2).clamp(wave, 2 * wave) };
        let first = bases.slice_mut(..passes as usize * RADIX)?.raw_view_mut(stream)?;
        let histogram = Histogram { keys, passes, counts, bases: first, lookback: lookback.raw_view_mut(stream)? };
        // SAFETY: the counts are zeros of the stream; `bases` and `lookback` have the lengths that the kernel requires.
        unsafe { kernels.count(stream, histogram, blocks, is_small)? };
        Ok(Self { kernels, is_small, tile, passes, bases, lookback, len })
    }

    /// Returns where each bucket ends in the output of a pass. Valid after the pass.
    pub fn ends(&self, pass: u32) -> Result<DeviceSlice<'_, u64>, Error> {
        let chunks = self.len.div_ceil(chunk_len(self.tile));
        let last = self.passes as usize + (pass as usize + 1) * chunks - 1;
        self.bases.slice(last * RADIX..(last + 1) * RADIX)
    }

    /// Distributes all items by one pass.
    pub fn run(&mut self, stream: &Stream, pass: u32, from: Columns, to: ColumnsMut) -> Result<(), Error> {
        let all_bases = self.bases.raw_view_mut(stream)?;
        let all_words = self.lookback.raw_view_mut(stream)?;
        let passes = self.passes as usize;
        let words = all_words.len() / passes;
        let chunks = self.len.div_ceil(chunk_len(self.tile));
        let (mut start, mut word) = (0, pass as usize * words);
        let mut bases = pass as usize * RADIX;
        for (chunk, len) in chunk_lens(self.len, self.tile).enumerate() {
            let tiles = len.div_ceil(self.tile);
            let next = (passes + pass as usize * chunks + chunk) * RADIX;
            // SAFETY: bases and words lie within the memory that `count` allocated for them; the tiles are of the shape
            // that it chose.
            unsafe {
                let chunk = Chunk {
                    from: from.slice(start, len),
                    to,
                    pass,
                    bases: all_bases.slice(bases, RADIX).as_const(),
                    next_bases: all_bases.slice(next, RADIX),
                    lookback: all_words.slice(word, lookback_len(tiles)),
                    tiles,
                };
                self.kernels.pass(stream, chunk, self.is_small)?;
            }
            start += len;
            word += lookback_len(tiles);
            bases = next;
        }
        Ok(())
    }
}

/// Runs all passes. The first one reads `from`; each later one reads what the previous one wrote. They write to the two
/// targets in turn.
pub fn run_passes(
    stream: &Stream,
    from: Columns,
    targets: [ColumnsMut; 2],
    kernels: &dyn Kernels,
    count: u32,
) -> Result<(), Error> {
    let mut passes = Passes::count(stream, from.keys, kernels, count)?;
    let mut source = from;
    for pass in 0..count {
        let target = targets[pass as usize % 2];
        passes.run(stream, pass, source, target)?;
        source = target.as_const().limited(from.limit());
    }
    Ok(())
}

/// Returns the maximum number of elements per launch: a multiple of the tile.
fn chunk_len(tile: usize) -> usize {
    MAX_CHUNK / tile * tile
}

fn chunk_lens(len: usize, tile: usize) -> impl Iterator<Item = usize> {
    (0..len).step_by(chunk_len(tile)).map(move |start| (len - start).min(chunk_len(tile)))
}
