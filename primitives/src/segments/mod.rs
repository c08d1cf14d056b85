//! What segmented reductions and scans share: where segments begin, and values that restart there.
//!
//! The elements are divided into tiles. [`Heads`] marks the elements of a tile that begin a segment, its *heads*: from offsets,
//! from keys that differ, or from flags. [`Restart`] makes an associative operation of another one and the heads, which
//! prefixes of tiles are passed on with.

pub(crate) mod device;
#[cfg(not(target_arch = "nvptx64"))]
pub(crate) mod host;
#[cfg(not(target_arch = "nvptx64"))]
pub(crate) mod native;

pub use device::heads::{HeadFlags, HeadMemory, Heads, KeyHeads, OffsetHeads, Part};
pub use device::since::{Flagged, Restart, scan_lanes};

#[cfg(not(target_arch = "nvptx64"))]
pub(crate) use host::{find_edges, flag_heads, row_offsets};
