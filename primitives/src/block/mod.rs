//! Collectives of a warp and of a block, built from the words of [`crate::arch`]: the parts that kernels are made of.

pub mod exchange;
pub mod lookback;
pub mod merge;
pub mod radix;
pub mod runs;
pub mod scan;
pub mod warp;
