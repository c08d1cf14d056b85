//! Combinations in the shape in which blocks combine, for the native bodies of kernels: with floats, another shape would
//! give other results.

use crate::arch::warp::LANES;
use crate::input::Input;
use crate::monoid::Combine;
use crate::view::GlobalMut;
use bytemuck::Pod;
use std::ops::Range;

/// The lanes of a warp.
pub(crate) const WARP: usize = LANES as usize;

/// Returns some elements of an output as a slice.
///
/// # Safety
/// The elements exist, in memory of the CPU device that stays allocated, and nothing else uses them while the slice exists.
pub(crate) unsafe fn part_mut<'a, T: Pod>(view: GlobalMut<T>, range: Range<usize>) -> &'a mut [T] {
    // An empty view may have no address.
    if range.is_empty() {
        return &mut [];
    }
    // SAFETY: guaranteed by the caller.
    unsafe { std::slice::from_raw_parts_mut(view.as_mut_ptr().add(range.start), range.len()) }
}

/// A tile's elements, with identities behind the last one.
pub(crate) struct Tile<T> {
    computed: Vec<T>,
    padded: Vec<T>,
}

impl<T: Pod> Tile<T> {
    pub fn new() -> Self {
        Self { computed: Vec::new(), padded: Vec::new() }
    }

    /// Returns `len` elements from `start` on, of `count`.
    ///
    /// # Safety
    /// The input has as many elements, and nothing writes them while they are used.
    pub unsafe fn load(
        &mut self,
        input: impl Input<T>,
        count: usize,
        start: usize,
        len: usize,
        op: impl Combine<T>,
    ) -> &[T] {
        let start = start.min(count);
        // SAFETY: the elements exist. The rest is guaranteed by the caller.
        let elements = unsafe { input.elements(start, (count - start).min(len), &mut self.computed) };
        if elements.len() == len {
            return elements;
        }
        self.padded.clear();
        self.padded.extend_from_slice(elements);
        self.padded.resize(len, op.identity());
        &self.padded
    }
}

/// Combines values one after the other, from the identity on.
pub(crate) fn fold<T: Pod>(values: &[T], op: impl Combine<T>) -> T {
    op.fold(op.identity(), values)
}

/// Combines the values of all lanes, as [`warp::reduce`](super::warp::reduce) does.
pub(crate) fn reduce_lanes<T: Pod>(mut lanes: [T; WARP], op: impl Combine<T>) -> T {
    let mut len = WARP;
    while len > 1 {
        len /= 2;
        // Neighbours are combined, and their combinations are neighbours in the next step.
        let [mut even, mut odd] = [[T::zeroed(); WARP / 2]; 2];
        for pair in 0..len {
            (even[pair], odd[pair]) = (lanes[2 * pair], lanes[2 * pair + 1]);
        }
        op.combine_each(&even[..len], &odd[..len], &mut lanes);
    }
    lanes[0]
}

/// Combines the values up to each lane, as [`warp::inclusive_scan`](super::warp::inclusive_scan) does.
pub(crate) fn scan_lanes<T: Pod>(lanes: &mut [T], op: impl Combine<T>) {
    let mut before = [T::zeroed(); WARP];
    for step in 0..WARP.ilog2() {
        let distance = 1 << step;
        before.copy_from_slice(lanes);
        op.combine_each(&before, &before[distance..], &mut lanes[distance..]);
    }
}

/// Returns, for each tile, the combination of all tiles before it, as [`lookback`](super::lookback) computes it.
pub(crate) fn tile_prefixes<T: Pod>(totals: Vec<T>, op: impl Combine<T>) -> Vec<T> {
    let tiles = totals.len();
    let before = |nodes: &[T], node: usize| {
        let first = node - node % WARP;
        let mut lanes = [op.identity(); WARP];
        lanes[..node - first].copy_from_slice(&nodes[first..node]);
        reduce_lanes(lanes, op)
    };
    let mut levels = vec![totals];
    while let Some(nodes) = levels.last()
        && nodes.len() >= WARP
    {
        let mut closed = Vec::with_capacity(nodes.len() / WARP);
        for warp in 0..nodes.len() / WARP {
            let node = warp * WARP + WARP - 1;
            closed.push(op.combine(before(nodes, node), nodes[node]));
        }
        levels.push(closed);
    }
    let mut prefixes = Vec::with_capacity(tiles);
    for tile in 0..tiles {
        let (mut prefix, mut node) = (op.identity(), tile);
        for nodes in &levels {
            if node == 0 {
                break;
            }
            if node % WARP > 0 {
                prefix = op.combine(before(nodes, node), prefix);
            }
            node /= WARP;
        }
        prefixes.push(prefix);
    }
    prefixes
}

#[cfg(test)]
pub(crate) mod tests {
    use crate::{CpuOptions, Device, Stream};

    /// Checks that native bodies, with several numbers of workers, give the same results as all threads of the grid.
    pub(crate) fn compare<R: PartialEq>(what: &str, run: impl Fn(&Stream) -> R) {
        let on = |options: CpuOptions| run(&Device::cpu_with(options).stream().unwrap());
        let expected = on(CpuOptions { simulated: true, ..CpuOptions::default() });
        for workers in [1, 3] {
            let found = on(CpuOptions { workers: Some(workers), ..CpuOptions::default() });
            assert!(found == expected, "{what}, {workers} workers");
        }
    }

    /// Returns numbers that look random.
    pub(crate) fn random(len: usize) -> impl Iterator<Item = u64> {
        (1..=len as u64).map(|i| {
            let x = i.wrapping_mul(0x9E37_79B9_7F4A_7C15);
            (x ^ x >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9) ^ x >> 32
        })
    }
}
