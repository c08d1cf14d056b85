//! Operators and kernels from outside gpu-primitives.

use bytemuck::{Pod, Zeroable};
use gpu_primitives::compare::Compare;
use gpu_primitives::kernel::kernel;
use gpu_primitives::merge::{MergePartition, MergeTiles, RunsPartition, RunsTiles};
use gpu_primitives::scan::{Monoid, ScanTiles};
use gpu_primitives::search::{BuildIndex, SearchDirectly, SearchIndexed, SearchSorted};
use gpu_primitives::{GlobalMut, thread};

/// The map `x ↦ scale * x + shift`, wrapping.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct Affine {
    /// The factor.
    pub scale: u32,
    /// The summand.
    pub shift: u32,
}

/// First the one map, then the other: associative, not commutative.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub struct Compose;

impl Monoid<Affine> for Compose {
    #[inline(always)]
    fn identity(&self) -> Affine {
        Affine { scale: 1, shift: 0 }
    }

    #[inline(always)]
    fn combine(&self, a: Affine, b: Affine) -> Affine {
        Affine { scale: a.scale.wrapping_mul(b.scale), shift: a.shift.wrapping_mul(b.scale).wrapping_add(b.shift) }
    }
}

/// Addition modulo a number that is known at run time: an operator with state.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub struct SumModulo {
    /// Values are below it; it is at most 2^31.
    pub modulus: u32,
}

impl Monoid<u32> for SumModulo {
    #[inline(always)]
    fn identity(&self) -> u32 {
        0
    }

    #[inline(always)]
    fn combine(&self, a: u32, b: u32) -> u32 {
        let sum = a + b;
        if sum >= self.modulus { sum - self.modulus } else { sum }
    }
}

/// A key of 16 bytes, of which a part is compared.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct Place {
    /// Compared first.
    pub city: u32,
    /// Compared next.
    pub street: u32,
    /// Not compared.
    pub note: u64,
}

/// By city, then by street.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub struct ByAddress;

impl Compare<Place> for ByAddress {
    #[inline(always)]
    fn less(&self, a: Place, b: Place) -> bool {
        (a.city, a.street) < (b.city, b.street)
    }
}

/// The order of numbers that are rotated first: a comparator with state.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub struct Rotated {
    /// What becomes the smallest.
    pub zero: u32,
}

impl Compare<u32> for Rotated {
    #[inline(always)]
    fn less(&self, a: u32, b: u32) -> bool {
        a.wrapping_sub(self.zero) < b.wrapping_sub(self.zero)
    }
}

/// No order at all: the dice are thrown for each pair of numbers.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub struct Dice {
    /// Another number, another order; [`Dice::ALWAYS`] throws none.
    pub seed: u32,
}

impl Dice {
    /// Everything comes before everything else.
    pub const ALWAYS: Self = Self { seed: u32::MAX };
}

impl Compare<u32> for Dice {
    #[inline(always)]
    fn less(&self, a: u32, b: u32) -> bool {
        let mixed = (a ^ self.seed).wrapping_mul(0x9E37_79B9) ^ b.wrapping_mul(0x85EB_CA6B);
        let mixed = (mixed ^ mixed >> 15).wrapping_mul(0xC2B2_AE35);
        (mixed ^ mixed >> 13) & 1 == 0 || self.seed == Self::ALWAYS.seed
    }
}

/// Ends as a fault in the thread whose index is `thread`.
#[kernel(threads = 64)]
pub unsafe fn crash(out: GlobalMut<u32>, thread: u32) {
    if thread::thread_idx_x() == thread {
        thread::trap();
    }
    out.set(thread::thread_idx_x() as usize, 1);
}

gpu_primitives::instances! {
    in concat!(env!("CARGO_MANIFEST_DIR"), "/ptx");
    scan_affine_compose: ScanTiles<Affine, Compose, 256, 2, 9>;
    scan_u32_sum_modulo: ScanTiles<u32, SumModulo, 256, 4, 9>;
    crash: Crash;
    merge_partition_place: MergePartition<Place, ByAddress>;
    merge_place_u32: MergeTiles<Place, u32, ByAddress, 256, 5>;
    runs_partition_place: RunsPartition<Place, ByAddress>;
    runs_place_u32: RunsTiles<Place, u32, ByAddress, 256, 3>;
    merge_partition_rotated: MergePartition<u32, Rotated>;
    merge_u32_u32_rotated: MergeTiles<u32, u32, Rotated, 256, 15>;
    runs_partition_rotated: RunsPartition<u32, Rotated>;
    runs_u32_u32_rotated: RunsTiles<u32, u32, Rotated, 256, 11>;
    merge_partition_dice: MergePartition<u32, Dice>;
    merge_u32_u32_dice: MergeTiles<u32, u32, Dice, 256, 15>;
    runs_partition_dice: RunsPartition<u32, Dice>;
    build_index_place: BuildIndex<Place>;
    search_indexed_place: SearchIndexed<Place, ByAddress, u32, 1>;
    search_directly_place: SearchDirectly<Place, ByAddress, u32>;
    search_sorted_place: SearchSorted<Place, ByAddress, u32, 5>;
    search_indexed_rotated: SearchIndexed<u32, Rotated, u32, 4>;
    search_directly_rotated: SearchDirectly<u32, Rotated, u32>;
    search_sorted_rotated: SearchSorted<u32, Rotated, u32, 15>;
    search_indexed_dice: SearchIndexed<u32, Dice, u32, 4>;
    search_directly_dice: SearchDirectly<u32, Dice, u32>;
    search_sorted_dice: SearchSorted<u32, Dice, u32, 15>;
    runs_u32_u32_dice: RunsTiles<u32, u32, Dice, 256, 11>;
}
