//! Warp and block collectives, built from the device functions of [`crate::arch`]. Kernels are composed of them.

pub mod exchange;
pub(crate) mod last;
pub mod lookback;
pub mod merge;
#[cfg(not(target_arch = "nvptx64"))]
pub(crate) mod native;
pub mod radix;
pub mod runs;
pub mod scan;
pub mod warp;
