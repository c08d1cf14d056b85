//! For the tests of this library: calls with a given tile shape, so that few elements are many tiles. With the feature `testing`,
//! as is [`Stream::fail_allocation_after`](crate::Stream::fail_allocation_after), which programs can use in tests of their own. This
//! module may change at any time.

pub use crate::runs::host::{reduce_by_key_shaped, run_length_encode_shaped};
pub use crate::scan::host::scan_shaped;
pub use crate::segmented_sort::device::shape::Shape as SegmentShape;
pub use crate::segmented_sort::host::segmented_pairs_shaped;
pub use crate::select::host::segments::segmented_shaped as segmented_select_shaped;
pub use crate::select::host::{partition_shaped, select_shaped};
