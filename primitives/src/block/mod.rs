//! Warp and block collectives, built from the device functions of [`crate::arch`]. Kernels are composed of them.

pub mod exchange;
pub mod lookback;
pub mod merge;
pub mod radix;
pub mod runs;
pub mod scan;
pub mod warp;
