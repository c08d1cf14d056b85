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
use crate::{DeviceVec, Error, Global, GlobalMut, Stream};
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
                    from.values,
                    to,
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
    /// The first positions of each bucket, for every pass.
    starts: GlobalMut<u64>,
    /// Those that each chunk of a pass leaves to the next one.
    rests: GlobalMut<u64>,
    lookback: GlobalMut<u32>,
    len: usize,
    /// The memory, which is freed in stream order.
    _memory: (DeviceVec<u64>, DeviceVec<u32>),
}

impl<'a> Passes<'a> {
    /// Counts the buckets of all passes. Writes where they begin, to `starts` if there is only one pass: see the kernel.
    pub fn count(
        stream: &Stream,
        keys: Column,
        kernels: &'a dyn Kernels,
        passes: u32,
        starts: Option<GlobalMut<u64>>,
    ) -> Result<Self, Error> {
        let len = keys.len();
        let is_small = kernels.is_small(len);
        let tile = if is_small { SMALL_THREADS as usize * SMALL_ITEMS } else { kernels.tile() };
        let chunks = len.div_ceil(chunk_len(tile));
        let counts = stream.zero_words(passes as usize * RADIX + 1)?;
        let own = if starts.is_some() { 0 } else { passes as usize * RADIX };
        let mut bases = stream.uninit::<u64>(own + passes as usize * chunks * RADIX)?;
        let words: usize = chunk_lens(len, tile).map(|len| lookback_len(len.div_ceil(tile))).sum();
        let mut memory = stream.uninit::<u32>(passes as usize * words)?;
        let (all, lookback) = (bases.raw_view_mut(stream)?, memory.raw_view_mut(stream)?);
        // SAFETY: both parts are in the memory.
        let (first, rests) = unsafe { (all.slice(0, own), all.slice(own, all.len() - own)) };
        let starts = starts.unwrap_or(first);

        let wave = 2 * stream.device().limits().multiprocessors as usize;
        let tiles = len.div_ceil(HISTOGRAM_TILE);
        // Every block adds its counts to those of all others: two tiles per block, if all blocks have work.
        let blocks = if tiles <= wave { tiles.max(1) } else { (tiles / 2).clamp(wave, 2 * wave) };
        let histogram = Histogram { keys, passes, counts, bases: starts, lookback };
        // SAFETY: the counts are zeros of the stream; `bases` and `lookback` have the lengths that the kernel requires.
        unsafe { kernels.count(stream, histogram, blocks, is_small)? };
        Ok(Self { kernels, is_small, tile, passes, starts, rests, lookback, len, _memory: (bases, memory) })
    }

    /// Distributes all items by one pass.
    pub fn run(&self, stream: &Stream, pass: u32, from: Columns, to: ColumnsMut) -> Result<(), Error> {
        let words = self.lookback.len() / self.passes as usize;
        let chunks = self.len.div_ceil(chunk_len(self.tile));
        let (mut start, mut word) = (0, pass as usize * words);
        let at = pass as usize * RADIX;
        // SAFETY: the starts of the pass, which are fewer if there is only one.
        let mut bases = unsafe { self.starts.slice(at, RADIX.min(self.starts.len() - at)) };
        for (chunk, len) in chunk_lens(self.len, self.tile).enumerate() {
            let tiles = len.div_ceil(self.tile);
            let next = (pass as usize * chunks + chunk) * RADIX;
            // SAFETY: bases and words lie within the memory that `count` allocated for them; the tiles are of the shape
            // that it chose.
            unsafe {
                let next_bases = self.rests.slice(next, RADIX);
                let lookback = self.lookback.slice(word, lookback_len(tiles));
                let (from, bases_now) = (from.slice(start, len), bases.as_const());
                let chunk = Chunk { from, to, pass, bases: bases_now, next_bases, lookback, tiles };
                self.kernels.pass(stream, chunk, self.is_small)?;
                bases = next_bases;
            }
            start += len;
            word += lookback_len(tiles);
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
    let passes = Passes::count(stream, from.keys, kernels, count, None)?;
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
