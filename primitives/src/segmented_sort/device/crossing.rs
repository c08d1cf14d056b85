//! Segments that are longer than a tile.

use super::cut::Edge;
use super::shape::Shape;
use crate::view::Global;

/// A segment that crosses an edge between tiles.
#[derive(Clone, Copy)]
pub(crate) struct Crossing {
    pub start: u32,
    pub end: u32,
    /// The number of merge passes it needs.
    pub passes: u32,
}

impl Crossing {
    /// Returns the segment that crosses `edge`, if there is one.
    ///
    /// # Safety
    /// Nothing writes the offsets during the call.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub(crate) unsafe fn at<const THREADS: u32, const ITEMS: usize, const SLACK: u32>(
        shape: Shape<THREADS, ITEMS, SLACK>,
        offsets: Global<u32>,
        len: u32,
        edge: Edge,
    ) -> Option<Self> {
        if edge.offset == 0 || edge.offset as usize >= offsets.len() {
            return None;
        }
        let start = offsets.get(edge.offset as usize - 1);
        let end = offsets.get(edge.offset as usize).min(len);
        if start < edge.position && edge.position < end {
            Some(Self { start, end, passes: passes(shape.pieces(start, end)) })
        } else {
            None
        }
    }
}

/// Returns the number of merge rounds that this many pieces need.
#[inline(always)]
pub(crate) const fn passes(pieces: u32) -> u32 {
    u32::BITS - pieces.saturating_sub(1).leading_zeros()
}
