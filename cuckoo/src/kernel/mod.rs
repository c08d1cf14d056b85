//! The kernels of the table.

// Register arrays are indexed by the counters of unrolled loops: iterators would move the arrays to memory.
#![allow(clippy::needless_range_loop)]

mod probe;
mod settle;
mod tile;

use gpu_primitives::sort::{BucketHistogram, LargePass, SmallPass, items};

pub use probe::{Collect, Erase, Find, Replace, TellNew};
pub use settle::Settle;
#[cfg(not(target_arch = "nvptx64"))]
pub use tile::Spill;
pub use tile::{FillTiles, TileDigits, TileStarts};
#[cfg(not(target_arch = "nvptx64"))]
pub use {
    probe::THREADS as PROBE_THREADS,
    settle::{SETTLED_AT_ONCE, THREADS as SETTLE_THREADS},
    tile::{Count, spill_slots, tile_buckets},
};

/// Names the kernels for a key type, a value type and a bucket width.
macro_rules! table_kernels {
    ($($code:ty, $value:ty, $width:literal:
        $find:ident, $fill:ident, $settle:ident, $erase:ident, $tell:ident, $replace:ident, $collect:ident;)*) => {
        gpu_primitives::instances! {
            in concat!(env!("CARGO_MANIFEST_DIR"), "/ptx");
            $(
                $find: Find<$code, $value, $width>;
                $fill: FillTiles<$code, $value, $width>;
                $settle: Settle<$code, $value, $width>;
                $erase: Erase<$code, $value, $width>;
                $tell: TellNew<$code, $value, $width>;
                $replace: Replace<$code, $value, $width>;
                $collect: Collect<$code, $value, $width>;
            )*
        }
    };
}

table_kernels! {
    u32, (), 4:
        find_32_by_4, fill_32_by_4, settle_32_by_4,
        erase_32_by_4, tell_new_32_by_4, replace_32_by_4, collect_32_by_4;
    u32, (), 8:
        find_32_by_8, fill_32_by_8, settle_32_by_8,
        erase_32_by_8, tell_new_32_by_8, replace_32_by_8, collect_32_by_8;
    u32, u32, 4:
        find_32_32_by_4, fill_32_32_by_4, settle_32_32_by_4,
        erase_32_32_by_4, tell_new_32_32_by_4, replace_32_32_by_4, collect_32_32_by_4;
    u32, u32, 8:
        find_32_32_by_8, fill_32_32_by_8, settle_32_32_by_8,
        erase_32_32_by_8, tell_new_32_32_by_8, replace_32_32_by_8, collect_32_32_by_8;
    u32, u64, 4:
        find_32_64_by_4, fill_32_64_by_4, settle_32_64_by_4,
        erase_32_64_by_4, tell_new_32_64_by_4, replace_32_64_by_4, collect_32_64_by_4;
    u32, u64, 8:
        find_32_64_by_8, fill_32_64_by_8, settle_32_64_by_8,
        erase_32_64_by_8, tell_new_32_64_by_8, replace_32_64_by_8, collect_32_64_by_8;
    u64, (), 4:
        find_64_by_4, fill_64_by_4, settle_64_by_4,
        erase_64_by_4, tell_new_64_by_4, replace_64_by_4, collect_64_by_4;
    u64, (), 8:
        find_64_by_8, fill_64_by_8, settle_64_by_8,
        erase_64_by_8, tell_new_64_by_8, replace_64_by_8, collect_64_by_8;
    u64, u32, 4:
        find_64_32_by_4, fill_64_32_by_4, settle_64_32_by_4,
        erase_64_32_by_4, tell_new_64_32_by_4, replace_64_32_by_4, collect_64_32_by_4;
    u64, u32, 8:
        find_64_32_by_8, fill_64_32_by_8, settle_64_32_by_8,
        erase_64_32_by_8, tell_new_64_32_by_8, replace_64_32_by_8, collect_64_32_by_8;
    u64, u64, 4:
        find_64_64_by_4, fill_64_64_by_4, settle_64_64_by_4,
        erase_64_64_by_4, tell_new_64_64_by_4, replace_64_64_by_4, collect_64_64_by_4;
    u64, u64, 8:
        find_64_64_by_8, fill_64_64_by_8, settle_64_64_by_8,
        erase_64_64_by_8, tell_new_64_64_by_8, replace_64_64_by_8, collect_64_64_by_8;
}

/// Names the kernels that sort pairs by tile.
macro_rules! tile_kernels {
    ($code:ty: $starts:ident, $histogram:ident; $($value:ty: $large:ident, $small:ident;)*) => {
        gpu_primitives::instances! {
            in concat!(env!("CARGO_MANIFEST_DIR"), "/ptx");
            $starts: TileStarts<$code>;
            $histogram: BucketHistogram<$code, TileDigits>;
            $(
                $large: LargePass<$code, $value, TileDigits, { items::<$code, $value>() }>;
                $small: SmallPass<$code, $value, TileDigits>;
            )*
        }
    };
}

tile_kernels! {
    u32: tile_starts_32, tile_histogram_32;
    (): tile_pass_32, tile_small_32;
    u32: tile_pass_32_32, tile_small_32_32;
    u64: tile_pass_32_64, tile_small_32_64;
}
tile_kernels! {
    u64: tile_starts_64, tile_histogram_64;
    (): tile_pass_64, tile_small_64;
    u32: tile_pass_64_32, tile_small_64_32;
    u64: tile_pass_64_64, tile_small_64_64;
}
