//! The kernels of the table.

// Register arrays are indexed by the counters of unrolled loops: iterators would move the arrays to memory.
#![allow(clippy::needless_range_loop)]

mod append;
mod claim;
mod last;
mod marks;
mod place;
mod plain;
mod probe;
mod revert;
mod settle;
mod slots;
mod split;
mod thin;
mod tile;
mod walk;

use gpu_primitives::monoid::HoleMonoid;
use gpu_primitives::sort::{BucketHistogram, LargePass, SmallPass, items};

pub use claim::{Claim, Latest};
#[cfg(not(target_arch = "nvptx64"))]
pub use gpu_primitives::kernel::{Pairs, PairsMut};
pub use place::PlacePairs;
pub use plain::{FindClashes, HashKeys, VerifyKeys};
pub use probe::{Collect, Erase, Find, Take};
pub use revert::Revert;
pub use settle::{Raise, Settle};
pub use slots::{Assign, Keep, Sweep, Unpack};
pub use split::Split;
pub use thin::ThinTiles;
pub use tile::{FillTiles, TileDigits, TileStarts};
pub use walk::WalkPairs;
#[cfg(not(target_arch = "nvptx64"))]
pub use {
    claim::{Claims, Fate},
    last::{ENTRIES_PER_POSITION, Entries},
    marks::{MARKS, Marks},
    place::{BLOCKS_PER_MULTIPROCESSOR, NO_BUCKET, THREADS as PLACE_THREADS},
    plain::{MAX_WORDS, Piece, Sums},
    probe::THREADS as PROBE_THREADS,
    settle::took_part,
    thin::{CHUNK, LONG_TILE},
    tile::{Count, START_THREADS, spill_slots, tile_buckets},
    walk::{THREADS as WALK_THREADS, last_but, random_slot},
};

gpu_primitives::instances! {
    static in concat!(env!("CARGO_MANIFEST_DIR"), "/ptx");
    for C in [u32, u64], V in [(), u32, u64], WIDTH in [4, 8]: Find<C, V, WIDTH>;
    for C in [u32, u64], V in [(), u32, u64], WIDTH in [4, 8]: Claim<C, V, WIDTH, Latest>;
    for C in [u32, u64], V in [u32, u64], WIDTH in [4, 8]: Claim<C, V, WIDTH, HoleMonoid<V>>;
    for C in [u32, u64]: Raise<C>;
    for C in [u32, u64], V in [u32, u64], WIDTH in [4, 8]: Settle<C, V, WIDTH>;
    for C in [u32, u64], V in [u32, u64], WIDTH in [4, 8]: Revert<C, V, WIDTH>;
    for C in [u32, u64], V in [(), u32, u64], WIDTH in [4, 8]: Split<C, V, WIDTH>;
    for C in [u32, u64], V in [(), u32, u64], WIDTH in [4, 8]: Unpack<C, V, WIDTH>;
    for C in [u32, u64], V in [u32, u64], WIDTH in [4, 8]: Assign<C, V, WIDTH>;
    for C in [u32, u64], V in [(), u32, u64], WIDTH in [4, 8]: Keep<C, V, WIDTH>;
    for C in [u32, u64], V in [(), u32, u64], WIDTH in [4, 8]: Erase<C, V, WIDTH>;
    for C in [u32, u64], V in [(), u32, u64], WIDTH in [4, 8]: Take<C, V, WIDTH>;
    for C in [u32, u64], V in [(), u32, u64], WIDTH in [4, 8]: Sweep<C, V, WIDTH>;
    for C in [u32, u64], V in [(), u32, u64], WIDTH in [4, 8]: Collect<C, V, WIDTH>;
    for C in [u32, u64], V in [(), u32, u64], WIDTH in [4, 8]: FillTiles<C, V, WIDTH>;
    for C in [u32, u64], V in [(), u32, u64], WIDTH in [4, 8]: PlacePairs<C, V, WIDTH>;
    for C in [u32, u64], V in [(), u32, u64], WIDTH in [4, 8]: WalkPairs<C, V, WIDTH>;
    for C in [u32, u64]: TileStarts<C>;
    for C in [u32, u64], V in [(), u32, u64]: ThinTiles<C, V>;
    for P in [u8, u32]: HashKeys<P>;
    for P in [u8, u32]: VerifyKeys<P>;
    for P in [u8, u32]: FindClashes<P>;
}

// The sort by tile: other instances of the primitives' kernels.
gpu_primitives::instances! {
    in concat!(env!("CARGO_MANIFEST_DIR"), "/ptx");
    for C in [u32, u64]: BucketHistogram<C, TileDigits>;
    for C in [u32, u64], V in [(), u32, u64]: SmallPass<C, V, TileDigits>;
    for C in [u32, u64], V in [(), u32, u64]: LargePass<C, V, TileDigits, { items::<C, V>() }>;
}
