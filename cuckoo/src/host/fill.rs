//! The first steps of a build: most pairs go to the first bucket of their key, tile by tile. Those that find it full can take
//! steps together, and are then [placed](super::place) one by one.

use super::options::Width;
use super::pairs::{self, PairSlices, PairVec, sizes_of, typed, typed_mut, with_types};
use super::storage::{AnyMap, Storage, with_table};
use crate::device::{
    BLOCKS_PER_MULTIPROCESSOR, CHUNK, Count, FillTiles, LONG_TILE, PlacePairs, START_THREADS, ThinTiles, TileDigits,
    TileStarts, WALK_THREADS, WalkPairs, spill_slots, tile_buckets,
};
use gpu_primitives::{DeviceSlice, DeviceVec, Error, Stream, sized, sort};

/// The result of [`fill`].
pub struct Filled {
    pub storage: Storage,
    /// The pairs whose first bucket was full, and room after them.
    pub spill: PairVec,
    /// The counters of [`Count`].
    pub counts: DeviceVec<u64>,
}

/// Builds the buckets, with the pairs that fit into the first bucket of their key. If a key occurs more than once,
/// the last pair wins. Does not wait.
pub fn fill(stream: &Stream, map: AnyMap, width: Width, pairs: PairSlices<'_>) -> Result<Filled, Error> {
    let (len, sizes) = (pairs.0.len(), sizes_of(pairs));
    let (tile_buckets, spill_slots) = sized!(sizes.key => C in u32 | u64, {
        (tile_buckets::<C>(width.keys()), spill_slots::<C>())
    }, else unreachable!("{sizes:?}"));
    let digits = TileDigits::new(map.hash(), tile_buckets);
    let tiles = digits.tiles();
    let mut storage = Storage::uninit(stream, map, width, sizes)?;
    let mut counts = stream.zeroed(Count::ALL)?;

    // If there is only one tile, the pairs are already in tile order.
    let mut by_tile = PairVec::uninit(stream, sizes, if tiles == 1 { 0 } else { len })?;
    if tiles > 1 {
        with_types!(sizes => C, V, {
            let from = (typed::<C>(pairs.0), typed::<V>(pairs.1));
            let to = (typed_mut::<C>(&mut by_tile.keys), typed_mut::<V>(&mut by_tile.values));
            sort::pairs_by_digits(stream, from, to, digits, digits.passes())?;
        });
    }
    let sorted = if tiles == 1 { pairs } else { by_tile.slices() };
    let mut starts = stream.uninit::<u32>(tiles + 1)?;
    with_table!(storage => C, V, {
        let keys = typed::<C>(sorted.0);
        let find_starts = TileStarts::new(keys.view(stream)?, digits, starts.view_mut(stream)?).followed_by(|next| {
            next.kernel::<ThinTiles<C, V>>();
            next.kernel::<FillTiles<C, V, WIDTH>>();
            next.kernel::<PlacePairs<C, V, WIDTH>>();
        });
        // SAFETY: there is a thread per start, and the keys are in tile order.
        unsafe { stream.launch(find_starts, (tiles + 1).div_ceil(START_THREADS as usize))? };
    });

    // A single tile is long only if the table is far too small for the pairs.
    let chunks = if tiles == 1 || len <= LONG_TILE { 0 } else { len.div_ceil(CHUNK) };
    let mut kept = stream.uninit::<u32>(chunks)?;
    if chunks > 0 {
        with_types!(sizes => C, V, {
            let room = by_tile.view_mut::<C, V>(stream)?;
            let thin = ThinTiles::new(room, starts.view(stream)?, digits, kept.view_mut(stream)?);
            // SAFETY: there is a block per chunk. The pairs are in tile order, and the starts are theirs.
            unsafe { stream.launch(thin, chunks)? };
        });
    }
    let sorted = if tiles == 1 { pairs } else { by_tile.slices() };

    let mut spill = PairVec::uninit(stream, sizes, len.min(tiles * spill_slots))?;
    with_table!(storage => C, V, {
        let kernel = FillTiles::new(
            pairs::view::<C, V>(stream, sorted)?,
            starts.view(stream)?,
            kept.view(stream)?,
            storage.view_mut::<C, V, WIDTH>(stream)?,
            spill.view_mut(stream)?,
            counts.view_mut(stream)?,
        );
        // SAFETY: there is a block per tile. The pairs are in tile order, and the starts are theirs, as is what was
        // kept. The spill has room for all pairs, or for all that the tiles may spill. The counters are zero.
        unsafe { stream.launch(kernel, tiles)? };
    });
    Ok(Filled { storage, spill, counts })
}

/// Pairs on their way to a slot.
struct Walkers {
    pairs: PairVec,
    /// The buckets from which they will displace others.
    targets: DeviceVec<u32>,
}

/// Takes `steps` steps with pairs, as many as `count` says, whose first bucket is full: see [`WalkPairs`]. Returns those
/// that have no slot yet, and how many there were after each step. Does not wait.
///
/// # Safety
/// `count` is one element, at most the number of pairs. Their keys are distinct and not in the table, and their first
/// buckets are full.
pub unsafe fn walk(
    stream: &Stream,
    storage: &mut Storage,
    pairs: PairVec,
    count: DeviceSlice<'_, u64>,
    steps: u32,
) -> Result<(PairVec, DeviceVec<u64>), Error> {
    let len = pairs.len();
    let most = stream.device().limits().multiprocessors as usize * BLOCKS_PER_MULTIPROCESSOR;
    let blocks = len.div_ceil(WALK_THREADS as usize).clamp(1, most);
    let mut turns = stream.zeroed::<u32>(storage.buckets() as usize)?;
    let mut counts = stream.zeroed::<u64>(steps as usize)?;
    // The first step has no targets.
    let mut from = Walkers { pairs, targets: stream.uninit(0)? };
    let mut to = Walkers { pairs: PairVec::uninit(stream, storage.sizes(), len)?, targets: stream.uninit(len)? };
    for step in 0..steps {
        let (known, unknown) = counts.as_mut_slice().split_at_mut(step as usize)?;
        let count = if step == 0 { count } else { known.slice(step as usize - 1..)? };
        let (mut left, _) = unknown.split_at_mut(1)?;
        with_table!(storage => C, V, {
            let kernel = WalkPairs::new(
                pairs::view::<C, V>(stream, from.pairs.slices())?,
                from.targets.view(stream)?,
                count.view(stream)?,
                storage.view_mut::<C, V, WIDTH>(stream)?,
                turns.view_mut(stream)?,
                step + 1,
                to.pairs.view_mut(stream)?,
                to.targets.view_mut(stream)?,
                left.view_mut(stream)?,
            );
            // SAFETY: any number of blocks will do. The targets are those of the step before; the first step has none,
            // and first buckets are full. The turns are those of earlier steps. There is room for all pairs.
            unsafe { stream.launch(kernel, blocks)? };
        });
        std::mem::swap(&mut from, &mut to);
        if to.targets.is_empty() {
            to.targets = stream.uninit(len)?;
        }
    }
    Ok((from.pairs, counts))
}
