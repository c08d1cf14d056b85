//! The instances for GPUs.

use super::kernel::KeepRanks;
use super::rows::SelectInRows;
use crate::input::SourceArg;

crate::instances! {
    static in concat!(env!("CARGO_MANIFEST_DIR"), "/ptx");
    // A warp's access is one element per lane, so a source needs no wider loads than a slice does.
    family keep_ranks(C, VEC) {
        for C in [u32], VEC = 4: KeepRanks<C, SourceArg, VEC>;
        for C in [u64], VEC = 2: KeepRanks<C, SourceArg, VEC>;
        for C in [u128], VEC = 1: KeepRanks<C, SourceArg, VEC>;
    }
    family select_in_rows(C) {
        for C in [u32, u64, u128]: SelectInRows<C, SourceArg>;
    }
}
