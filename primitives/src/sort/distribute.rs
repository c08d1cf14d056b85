//! Launches the passes: host code that sort and multisplit share.

#![deny(unsafe_op_in_unsafe_fn)]

use super::kernel::{BucketHistogram, Buckets, HISTOGRAM_TILE, MAX_CHUNK, lookback_len};
use super::shape::{LargePass, SMALL_ITEMS, SMALL_THREADS, SmallPass, THREADS, items};
use crate::block::radix::RADIX;
use crate::runtime::pairs::{Pairs, PairsMut};
use crate::with_shape;
use crate::{DeviceSlice, DeviceVec, Error, Global, GlobalMut, Stream};
use bytemuck::Pod;

/// Below this number of elements the small tiles are faster.
const SMALL: usize = 1 << 19;

/// Returns whether to use small tiles. There are none for keys of 16 bytes.
const fn is_small<K>(len: usize) -> bool {
    len < SMALL && size_of::<K>() <= 8
}

/// Second buffers from the device's pool.
#[derive(Debug)]
pub struct Spare<K: Pod, V: Pod> {
    keys: DeviceVec<K>,
    values: DeviceVec<V>,
}

impl<K: Pod, V: Pod> Spare<K, V> {
    pub fn new(stream: &Stream, len: usize) -> Result<Self, Error> {
        let values = if size_of::<V>() == 0 { 0 } else { len };
        Ok(Self { keys: stream.uninit(len)?, values: stream.uninit(values)? })
    }

    pub fn target(&mut self, stream: &Stream) -> Result<PairsMut<K, V>, Error> {
        Ok(PairsMut { keys: self.keys.raw_view_mut(stream)?, values: self.values.raw_view_mut(stream)? })
    }

    pub fn into_parts(self) -> (DeviceVec<K>, DeviceVec<V>) {
        (self.keys, self.values)
    }

    pub fn slices(&self) -> (DeviceSlice<'_, K>, DeviceSlice<'_, V>) {
        (self.keys.as_slice(), self.values.as_slice())
    }
}

/// The results of the histogram, and the scratch memory of the passes.
pub struct Passes<B> {
    buckets: B,
    tile: usize,
    /// The first positions of each bucket, for every pass and then for every chunk.
    bases: DeviceVec<u64>,
    lookback: DeviceVec<u32>,
    len: usize,
}

impl<B> Passes<B> {
    /// Counts the buckets of all passes.
    pub fn count<K: Pod, V: Pod>(stream: &Stream, keys: Global<K>, buckets: B, passes: u32) -> Result<Self, Error>
    where
        B: Buckets<K>,
    {
        let len = keys.len();
        let tile =
            if is_small::<K>(len) { SMALL_THREADS as usize * SMALL_ITEMS } else { THREADS as usize * items::<K, V>() };
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
        let kernel = BucketHistogram::new(keys, buckets, passes, counts, first, lookback.raw_view_mut(stream)?);
        // SAFETY: the counts are zeros of the stream; `bases` and `lookback` have the lengths that the kernel requires.
        unsafe { stream.launch(kernel, blocks)? };
        Ok(Self { buckets, tile, bases, lookback, len })
    }

    /// Returns where each bucket ends in the output of a pass. Valid after the pass.
    pub fn ends(&self, passes: u32, pass: u32) -> Result<DeviceSlice<'_, u64>, Error> {
        let chunks = self.len.div_ceil(chunk_len(self.tile));
        let last = passes as usize + (pass as usize + 1) * chunks - 1;
        self.bases.slice(last * RADIX..(last + 1) * RADIX)
    }

    /// Distributes all items by one pass.
    pub fn run<K: Pod, V: Pod>(
        &mut self,
        stream: &Stream,
        passes: u32,
        pass: u32,
        from: Pairs<K, V>,
        to: PairsMut<K, V>,
    ) -> Result<(), Error>
    where
        B: Buckets<K>,
    {
        let all_bases = self.bases.raw_view_mut(stream)?;
        let all_words = self.lookback.raw_view_mut(stream)?;
        let words = all_words.len() / passes as usize;
        let chunks = self.len.div_ceil(chunk_len(self.tile));
        let (mut start, mut word) = (0, pass as usize * words);
        let mut bases = pass as usize * RADIX;
        for (chunk, len) in chunk_lens(self.len, self.tile).enumerate() {
            let tiles = len.div_ceil(self.tile);
            let next = (passes as usize + pass as usize * chunks + chunk) * RADIX;
            // SAFETY: chunks lie within the input, and bases and words within the memory that `count` allocated for
            // them.
            unsafe {
                let chunk = Chunk {
                    from: Pairs {
                        keys: from.keys.slice(start, len),
                        values: if size_of::<V>() == 0 { from.values } else { from.values.slice(start, len) },
                    },
                    to,
                    pass,
                    bases: all_bases.slice(bases, RADIX).as_const(),
                    next_bases: all_bases.slice(next, RADIX),
                    lookback: all_words.slice(word, lookback_len(tiles)),
                    tiles,
                };
                launch(stream, self.buckets, is_small::<K>(self.len), chunk)?;
            }
            start += len;
            word += lookback_len(tiles);
            bases = next;
        }
        Ok(())
    }
}

/// One launch of a pass.
struct Chunk<K, V> {
    from: Pairs<K, V>,
    to: PairsMut<K, V>,
    pass: u32,
    bases: Global<u64>,
    next_bases: GlobalMut<u64>,
    lookback: GlobalMut<u32>,
    tiles: usize,
}

/// Launches the kernel of a pass for one chunk.
///
/// # Safety
/// The chunk's buffers satisfy the kernel's contract, for its number of tiles and for tiles of the selected shape.
unsafe fn launch<K: Pod, V: Pod, B: Buckets<K>>(
    stream: &Stream,
    buckets: B,
    small: bool,
    chunk: Chunk<K, V>,
) -> Result<(), Error> {
    macro_rules! launch {
        ($pass:ty) => {{
            let kernel = <$pass>::new(
                chunk.from.keys,
                chunk.to.keys,
                chunk.from.values,
                chunk.to.values,
                buckets,
                chunk.pass,
                chunk.bases,
                chunk.next_bases,
                chunk.lookback,
            );
            // SAFETY: guaranteed by the caller; one block per tile.
            unsafe { stream.launch(kernel, chunk.tiles) }
        }};
    }
    if const { size_of::<K>() <= 8 } && small {
        return launch!(SmallPass<K, V, B>);
    }
    with_shape!(ITEMS in 25 | 17 | 13 | 9 | 7 = items::<K, V>(), launch!(LargePass<K, V, B, ITEMS>))
}

/// Returns the maximum number of elements per launch: a multiple of the tile.
fn chunk_len(tile: usize) -> usize {
    MAX_CHUNK / tile * tile
}

fn chunk_lens(len: usize, tile: usize) -> impl Iterator<Item = usize> {
    (0..len).step_by(chunk_len(tile)).map(move |start| (len - start).min(chunk_len(tile)))
}
