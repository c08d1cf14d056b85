//! The kernels of the table.

// Register arrays are indexed by the counters of unrolled loops: iterators would move the arrays to memory.
#![allow(clippy::needless_range_loop)]

mod pairs;
mod place;
mod probe;
mod tile;

use gpu_primitives::sort::{BucketHistogram, LargePass, SmallPass, items};

#[cfg(not(target_arch = "nvptx64"))]
pub use pairs::{Pairs, PairsMut};
pub use place::PlacePairs;
pub use probe::{Collect, Erase, Find, MarkAbsent, Replace};
pub use tile::{FillTiles, TileDigits, TileStarts};
#[cfg(not(target_arch = "nvptx64"))]
pub use {
    place::{BLOCKS_PER_MULTIPROCESSOR, THREADS as PLACE_THREADS},
    probe::THREADS as PROBE_THREADS,
    tile::{Count, START_THREADS, spill_slots, tile_buckets},
};

gpu_primitives::instances! {
    in concat!(env!("CARGO_MANIFEST_DIR"), "/ptx");
    for C in [u32, u64], V in [(), u32, u64], WIDTH in [4, 8]: Find<C, V, WIDTH>;
    for C in [u32, u64], V in [(), u32, u64], WIDTH in [4, 8]: MarkAbsent<C, V, WIDTH>;
    for C in [u32, u64], V in [(), u32, u64], WIDTH in [4, 8]: Replace<C, V, WIDTH>;
    for C in [u32, u64], V in [(), u32, u64], WIDTH in [4, 8]: Erase<C, V, WIDTH>;
    for C in [u32, u64], V in [(), u32, u64], WIDTH in [4, 8]: Collect<C, V, WIDTH>;
    for C in [u32, u64], V in [(), u32, u64], WIDTH in [4, 8]: FillTiles<C, V, WIDTH>;
    for C in [u32, u64], V in [(), u32, u64], WIDTH in [4, 8]: PlacePairs<C, V, WIDTH>;
    for C in [u32, u64]: TileStarts<C>;
    // The sort by tile.
    for C in [u32, u64]: BucketHistogram<C, TileDigits>;
    for C in [u32, u64], V in [(), u32, u64]: SmallPass<C, V, TileDigits>;
    for C in [u32, u64], V in [(), u32, u64]: LargePass<C, V, TileDigits, { items::<C, V>() }>;
}
