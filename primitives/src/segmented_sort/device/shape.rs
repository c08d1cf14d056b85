//! How the input is cut into tiles.

use super::cut::Edge;

/// The threads per block that sorts or merges.
pub const THREADS: u32 = 128;

/// Returns the items per thread: fewer if they have more than 8 bytes, and again if they have more than 24, so that they
/// fit in registers.
#[must_use]
pub const fn items<K, V>() -> usize {
    match size_of::<K>() + size_of::<V>() {
        0..=8 => 15,
        9..=24 => 9,
        _ => 5,
    }
}

/// Returns the slack of a tile with this many items per thread.
#[must_use]
pub const fn slack(items: usize) -> u32 {
    match items {
        15 => 128,
        9 => 96,
        _ => 64,
    }
}

/// The shape of a tile, which is part of the kernel types: at most `THREADS * ITEMS` items, of which `SLACK` are
/// reserved for moving an edge to the end of a segment.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct Shape<const THREADS: u32, const ITEMS: usize, const SLACK: u32>;

impl<const THREADS: u32, const ITEMS: usize, const SLACK: u32> Shape<THREADS, ITEMS, SLACK> {
    /// Returns the number of items from edge to edge, before edges are moved.
    #[inline(always)]
    pub(crate) const fn stride(self) -> u32 {
        THREADS * ITEMS as u32 - SLACK
    }

    /// Returns the number of tiles that `len` items are cut into.
    #[inline(always)]
    pub(crate) const fn tiles(self, len: u32) -> u32 {
        len.div_ceil(self.stride())
    }

    /// Returns the tile that would contain `position` if no edge were moved. The start of a segment does lie in this
    /// tile: an edge moves to the first offset after it, and so never across one.
    #[inline(always)]
    pub(crate) const fn nominal_tile(self, position: u32) -> u32 {
        position / self.stride()
    }

    /// Returns edge `tile`, where `next` is the first offset that is not below it and `offset` is the index of that
    /// offset.
    #[inline(always)]
    pub(crate) fn edge(self, tile: u32, next: u32, offset: u32, snap: bool) -> Edge {
        // Beyond the last offset the product may overflow, but then it is not used.
        let nominal = tile.wrapping_mul(self.stride());
        Edge { position: if snap || next - nominal <= SLACK { next } else { nominal }, offset }
    }

    /// Returns the number of pieces that the edges cut a segment into. Only its last edge can have moved, to its very
    /// end. Edges within it have not moved.
    #[inline(always)]
    pub(crate) const fn pieces(self, start: u32, end: u32) -> u32 {
        if end <= start {
            return 0;
        }
        let first = self.nominal_tile(start);
        let last = self.nominal_tile(end - 1);
        let moved = last > first && end - last * self.stride() <= SLACK;
        last - first + !moved as u32
    }
}

#[cfg(test)]
mod tests {
    use super::Shape;

    #[test]
    fn pieces_are_counted_as_edges_cut() {
        let shape = Shape::<32, 3, 10>; // stride 86
        assert_eq!(shape.stride(), 86);
        for (start, end, pieces) in
            [(5, 5, 0), (0, 86, 1), (0, 96, 1), (0, 97, 2), (85, 96, 1), (85, 97, 2), (86, 172, 1), (10, 300, 4)]
        {
            assert_eq!(shape.pieces(start, end), pieces, "{start}..{end}");
            // The edges within the segment, as they are cut, and that they have not moved.
            let nominal = (0..10).map(|tile| (tile, tile * 86)).filter(|&(_, at)| start < at && at < end);
            let edges: Vec<u32> = nominal.map(|(tile, _)| shape.edge(tile, end, 1, false).position).collect();
            let inside: Vec<u32> = edges.into_iter().filter(|&edge| edge < end).collect();
            assert!(inside.iter().all(|edge| edge % 86 == 0));
            assert_eq!(inside.len() as u32 + u32::from(end > start), pieces, "{start}..{end}");
        }
    }
}
