//! The instances for GPUs.

use super::best_of_rows::BestOfRows;
use super::kernel::{CountDigits, GatherKeys, Narrow};
use super::order::OrderBest;
use super::rows::SelectRows;
use super::sample_rows::SampleRows;
use super::sift::{FindThreshold, SampleMaxima, Sift};
use crate::input::SourceArg;

crate::instances! {
    static in concat!(env!("CARGO_MANIFEST_DIR"), "/ptx");
    // Accesses of 16 bytes, and 64 bytes of candidates per thread that puts them in order.
    family find_largest(C, P, VEC, PER) {
        for C in [u32], P in [u32, u64], VEC = 4, PER = 16:
            SampleMaxima<C, SourceArg, VEC>, FindThreshold<C>, Sift<C, SourceArg, P, VEC>,
            CountDigits<C, SourceArg, VEC>, Narrow<C, SourceArg, P, VEC>, OrderBest<C, P, PER>;
        for C in [u64], P in [u32, u64], VEC = 2, PER = 8:
            SampleMaxima<C, SourceArg, VEC>, FindThreshold<C>, Sift<C, SourceArg, P, VEC>,
            CountDigits<C, SourceArg, VEC>, Narrow<C, SourceArg, P, VEC>, OrderBest<C, P, PER>;
        for C in [u128], P in [u32, u64], VEC = 1, PER = 4:
            SampleMaxima<C, SourceArg, VEC>, FindThreshold<C>, Sift<C, SourceArg, P, VEC>,
            CountDigits<C, SourceArg, VEC>, Narrow<C, SourceArg, P, VEC>, OrderBest<C, P, PER>;
    }
    family best_of_rows(C, VEC) {
        for C in [u32], VEC = 4, THREADS in [64, 256]: BestOfRows<C, SourceArg, VEC, THREADS>;
        for C in [u64], VEC = 2, THREADS in [64, 256]: BestOfRows<C, SourceArg, VEC, THREADS>;
        for C in [u128], VEC = 1, THREADS in [64, 256]: BestOfRows<C, SourceArg, VEC, THREADS>;
    }
    family select_rows(C, VEC, PER) {
        for C in [u32], VEC = 4, PER = 16: SampleRows<C, SourceArg, VEC, PER>, SelectRows<C, SourceArg, VEC>;
        for C in [u64], VEC = 2, PER = 8: SampleRows<C, SourceArg, VEC, PER>, SelectRows<C, SourceArg, VEC>;
        for C in [u128], VEC = 1, PER = 4: SampleRows<C, SourceArg, VEC, PER>, SelectRows<C, SourceArg, VEC>;
    }
    family gather_keys(H, P) {
        for H in [u8, u16, u32, u64, [u32; 3], [u64; 2], [u64; 4]], P in [u32, u64]: GatherKeys<H, P>;
    }
}
