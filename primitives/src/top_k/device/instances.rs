//! The instances for GPUs.

use super::kernel::{CountDigits, GatherKeys, Narrow};
use super::order::OrderBest;
use super::rows::SelectRows;
use super::sample_rows::SampleRows;
use super::sift::{FindThreshold, SampleMaxima, Sift};
use crate::input::SourceArg;
use crate::view::Global;

crate::instances! {
    static in concat!(env!("CARGO_MANIFEST_DIR"), "/ptx");
    // Accesses of 16 bytes, and 64 bytes of candidates per thread that puts them in order.
    family find_largest(C, P, VEC, PER) {
        for C in [u32], P in [u32, u64], VEC = 4, PER = 16, I in [Global<u32>, SourceArg]:
            SampleMaxima<C, I, VEC>, FindThreshold<C>, Sift<C, I, P, VEC>,
            CountDigits<C, I, VEC>, Narrow<C, I, P, VEC>, OrderBest<C, P, PER>;
        for C in [u64], P in [u32, u64], VEC = 2, PER = 8, I in [Global<u64>, SourceArg]:
            SampleMaxima<C, I, VEC>, FindThreshold<C>, Sift<C, I, P, VEC>,
            CountDigits<C, I, VEC>, Narrow<C, I, P, VEC>, OrderBest<C, P, PER>;
        for C in [u128], P in [u32, u64], VEC = 1, PER = 4, I in [Global<[u64; 2]>, SourceArg]:
            SampleMaxima<C, I, VEC>, FindThreshold<C>, Sift<C, I, P, VEC>,
            CountDigits<C, I, VEC>, Narrow<C, I, P, VEC>, OrderBest<C, P, PER>;
    }
    family select_rows(C, VEC, PER) {
        for C in [u32], VEC = 4, PER = 16, I in [Global<u32>, SourceArg], THREADS in [256, 512]:
            SampleRows<C, I, VEC, PER>, SelectRows<C, I, VEC, THREADS>;
        for C in [u64], VEC = 2, PER = 8, I in [Global<u64>, SourceArg], THREADS in [256, 512]:
            SampleRows<C, I, VEC, PER>, SelectRows<C, I, VEC, THREADS>;
        for C in [u128], VEC = 1, PER = 4, I in [Global<[u64; 2]>, SourceArg], THREADS in [256, 512]:
            SampleRows<C, I, VEC, PER>, SelectRows<C, I, VEC, THREADS>;
    }
    family gather_keys(H, P) {
        for H in [u8, u16, u32, u64, [u32; 3], [u64; 2], [u64; 4]], P in [u32, u64]: GatherKeys<H, P>;
    }
}
