//! Segmented sort: sorts each segment of a sequence separately. [`sort`](crate::sort#segments) makes it public.

pub(crate) mod device;
#[cfg(not(target_arch = "nvptx64"))]
pub(crate) mod host;
#[cfg(not(target_arch = "nvptx64"))]
pub(crate) mod native;

#[cfg(not(target_arch = "nvptx64"))]
pub(crate) use host::{GatheredValues, moves_values, run_len, sort_promised, sort_runs};
#[cfg(not(target_arch = "nvptx64"))]
pub use host::{segmented_argsort, segmented_keys, segmented_keys_in_place, segmented_pairs, segmented_pairs_in_place};
