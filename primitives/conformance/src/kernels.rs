//! Operators and kernels from outside gpu-primitives.

use bytemuck::{Pod, Zeroable};
use gpu_primitives::compare::Compare;
use gpu_primitives::dictionary::levels::Levels;
use gpu_primitives::kernel::kernel;
use gpu_primitives::multisplit::Bucket;
use gpu_primitives::scan::{Monoid, ScanTiles};
use gpu_primitives::select::{By, CountTiles, PartitionTiles, Predicate, SelectTiles};
use gpu_primitives::sort::{BucketHistogram, Buckets, LargePass, RadixCode, RadixKey, Sign, SmallPass, items};
use gpu_primitives::{Global, GlobalMut, thread};

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

/// The remainder of a division: a bucket function with state.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub struct Modulo {
    /// Not zero.
    pub divisor: u32,
}

impl Bucket<u32> for Modulo {
    #[inline(always)]
    fn bucket(&self, key: u32) -> u32 {
        key % self.divisor
    }
}

/// A key of 16 bytes: ordered by zone, then downwards by street, then by number.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct Address {
    zone: u64,
    street: u32,
    number: u32,
}

impl Address {
    /// An address.
    #[must_use]
    pub const fn new(zone: u64, street: u32, number: u32) -> Self {
        Self { zone, street, number }
    }

    /// Its order, as the host sees it.
    #[must_use]
    pub fn compare(&self, other: &Self) -> core::cmp::Ordering {
        (self.zone, !self.street, self.number).cmp(&(other.zone, !other.street, other.number))
    }
}

impl RadixCode for Address {
    const BITS: u32 = 128;

    #[inline(always)]
    fn digits(self, shift: u32, _: Sign) -> u32 {
        if shift >= 64 {
            (self.zone >> (shift - 64)) as u32
        } else if shift >= 32 {
            // The next digit above may reach into the zone.
            ((self.zone << 32 | !self.street as u64) >> (shift - 32)) as u32
        } else {
            (((!self.street as u64) << 32 | self.number as u64) >> shift) as u32
        }
    }
}

impl RadixKey for Address {
    type Code = Self;
}

/// Passes numbers in a range that is known at run time: a predicate with state.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub struct Between {
    /// The smallest that passes.
    pub low: i32,
    /// The largest that passes.
    pub high: i32,
}

impl Predicate<i32> for Between {
    #[inline(always)]
    fn test(&self, item: i32) -> bool {
        self.low <= item && item <= self.high
    }
}

/// The order of numbers that begins at `start` and comes around: an order with state.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub struct CyclicFrom {
    /// The least number.
    pub start: u32,
}

impl Compare<u32> for CyclicFrom {
    #[inline(always)]
    fn less(&self, a: u32, b: u32) -> bool {
        a.wrapping_sub(self.start) < b.wrapping_sub(self.start)
    }
}

/// Comparators that are no order at all: the highest bit of `a * left + b * right + shift`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub struct NotAnOrder {
    left: u32,
    right: u32,
    shift: u32,
}

impl NotAnOrder {
    /// Some of them.
    pub const KINDS: [Self; 5] = [
        // Always.
        Self { left: 0, right: 0, shift: 1 << 31 },
        // Around a circle: not transitive.
        Self { left: 1, right: !0, shift: 0 },
        // The same, and what is equal is less, too.
        Self { left: 1, right: !0, shift: !0 },
        // Coins, the second one the same for both sides.
        Self { left: 0x9E37_79B1, right: 0x85EB_CA6B, shift: 0 },
        Self { left: 0x9E37_79B1, right: 0x9E37_79B1, shift: 0 },
    ];
}

impl Compare<u32> for NotAnOrder {
    #[inline(always)]
    fn less(&self, a: u32, b: u32) -> bool {
        (a.wrapping_mul(self.left)).wrapping_add(b.wrapping_mul(self.right)).wrapping_add(self.shift) >> 31 == 1
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

/// Answers otherwise in every other block, and in every other warp: an order, a bucket function and digits that change their
/// minds.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub struct Unsteady;

impl Unsteady {
    /// 0 or 1, by the place of the thread.
    #[inline(always)]
    fn mood() -> u32 {
        (thread::block_idx_x() ^ (thread::thread_idx_x() / 32)) & 1
    }
}

impl Compare<u32> for Unsteady {
    #[inline(always)]
    fn less(&self, a: u32, b: u32) -> bool {
        (a < b) != (Self::mood() == 1)
    }
}

impl Bucket<u32> for Unsteady {
    #[inline(always)]
    fn bucket(&self, key: u32) -> u32 {
        key.wrapping_add(Self::mood() * 1000) % 300
    }
}

impl Buckets<u32> for Unsteady {
    const MAX_PASSES: usize = 2;

    #[inline(always)]
    fn bucket(&self, key: u32, pass: u32) -> u32 {
        (key >> (9 * pass)).wrapping_add(Self::mood() * 77) & 0x3ff
    }

    #[inline(always)]
    fn last(&self, _: u32) -> u32 {
        900 - 800 * Self::mood()
    }
}

/// Joins two dictionaries: the sum of the values that they have for each key. A thread per key.
///
/// # Safety
/// There are as many sums as keys, and as many threads at least.
#[kernel(threads = 64)]
pub unsafe fn join(left: Levels<u32, u32>, right: Levels<u32, u32>, keys: Global<u32>, sums: GlobalMut<u64>) {
    let at = (thread::block_idx_x() * 64 + thread::thread_idx_x()) as usize;
    if at < keys.len() {
        let key = keys.get(at);
        let (left, right) = (left.get(key), right.get(key));
        sums.set(at, left.unwrap_or(0) as u64 + right.unwrap_or(0) as u64);
    }
}

/// Ends as a fault in the thread whose index is `thread`.
///
/// # Safety
/// The launch has one block. `out` has 64 elements, and nobody else uses them while the kernel runs.
#[kernel(threads = 64)]
pub unsafe fn crash(out: GlobalMut<u32>, thread: u32) {
    if thread::thread_idx_x() == thread {
        thread::trap();
    }
    out.set(thread::thread_idx_x() as usize, 1);
}

/// Sums the values of keys that are there: thread `i` of all those that were launched takes the keys `i`, `i + n` and so on,
/// where `n` is the number of sums.
///
/// # Safety
/// The launch has at least one thread per sum. Nobody changes the dictionary or writes the keys, and nobody else uses
/// the sums, while the kernel runs.
#[kernel(threads = 64)]
pub unsafe fn sum_values(dictionary: Levels<u32, u32>, keys: Global<u32>, sums: GlobalMut<u64>) {
    let thread = (thread::block_idx_x() * 64 + thread::thread_idx_x()) as usize;
    if thread < sums.len() {
        let mut sum = 0;
        let mut at = thread;
        while at < keys.len() {
            if let Some(value) = dictionary.get(keys.get(at)) {
                sum += value as u64;
            }
            at += sums.len();
        }
        sums.set(thread, sum);
    }
}

gpu_primitives::instances! {
    in concat!(env!("CARGO_MANIFEST_DIR"), "/ptx");
    scan_affine_compose: ScanTiles<Affine, Compose, 256, 2, 9>;
    scan_u32_sum_modulo: ScanTiles<u32, SumModulo, 256, 4, 9>;
    select_i32_between: SelectTiles<i32, (), By<Between>, 256, 4, 8>;
    count_i32_between: CountTiles<i32, By<Between>, 256, 4, 8>;
    partition_i32_between: PartitionTiles<i32, (), By<Between>, 256, 4, 8>;
    crash: Crash;
    sum_values: SumValues;
    join: Join;
    sort_pairs_by_unsteady_histogram: BucketHistogram<u32, Unsteady>;
    sort_pairs_by_unsteady_pass: LargePass<u32, u32, Unsteady, { items::<u32, u32>() }>;
    sort_pairs_by_unsteady_small: SmallPass<u32, u32, Unsteady>;
}

gpu_primitives::sort_instances! {
    in concat!(env!("CARGO_MANIFEST_DIR"), "/ptx");
    Address, sort_histogram_address;
    (): sort_pass_address, sort_small_address, sort_block_address, sort_place_address;
    u32: sort_pass_address_32, sort_small_address_32, sort_block_address_32, sort_place_address_32;
}

gpu_primitives::multisplit_instances! {
    in concat!(env!("CARGO_MANIFEST_DIR"), "/ptx");
    u32, Modulo, split_histogram_modulo;
    (): split_pass_modulo, split_small_modulo;
    u32: split_pass_modulo_32, split_small_modulo_32;
}

gpu_primitives::multisplit_instances! {
    in concat!(env!("CARGO_MANIFEST_DIR"), "/ptx");
    u32, Unsteady, split_histogram_unsteady;
    u32: split_pass_unsteady_32, split_small_unsteady_32;
}

gpu_primitives::segmented_sort_instances! {
    in concat!(env!("CARGO_MANIFEST_DIR"), "/ptx");
    u32, Unsteady;
    u32: segsort_unsteady, segmerge_unsteady;
}

gpu_primitives::merge_instances! {
    in concat!(env!("CARGO_MANIFEST_DIR"), "/ptx");
    u32, Unsteady, merge_partition_unsteady;
    u32: merge_u32_u32_unsteady;
}

gpu_primitives::merge_runs_instances! {
    in concat!(env!("CARGO_MANIFEST_DIR"), "/ptx");
    u32, Unsteady, runs_partition_unsteady;
    u32: runs_u32_u32_unsteady;
}

gpu_primitives::segmented_sort_instances! {
    in concat!(env!("CARGO_MANIFEST_DIR"), "/ptx");
    u32, CyclicFrom;
    u32: segsort_cyclic, segmerge_cyclic;
}

gpu_primitives::segmented_sort_instances! {
    in concat!(env!("CARGO_MANIFEST_DIR"), "/ptx");
    u32, NotAnOrder;
    u32: segsort_no_order, segmerge_no_order;
}

gpu_primitives::merge_instances! {
    in concat!(env!("CARGO_MANIFEST_DIR"), "/ptx");
    Place, ByAddress, merge_partition_place;
    u32: merge_place_u32;
}

gpu_primitives::merge_instances! {
    in concat!(env!("CARGO_MANIFEST_DIR"), "/ptx");
    u32, CyclicFrom, merge_partition_cyclic;
    u32: merge_u32_u32_cyclic;
}

gpu_primitives::merge_instances! {
    in concat!(env!("CARGO_MANIFEST_DIR"), "/ptx");
    u32, Dice, merge_partition_dice;
    u32: merge_u32_u32_dice;
}

gpu_primitives::merge_runs_instances! {
    in concat!(env!("CARGO_MANIFEST_DIR"), "/ptx");
    Place, ByAddress, runs_partition_place;
    u32: runs_place_u32;
}

gpu_primitives::merge_runs_instances! {
    in concat!(env!("CARGO_MANIFEST_DIR"), "/ptx");
    u32, CyclicFrom, runs_partition_cyclic;
    u32: runs_u32_u32_cyclic;
}

gpu_primitives::merge_runs_instances! {
    in concat!(env!("CARGO_MANIFEST_DIR"), "/ptx");
    u32, Dice, runs_partition_dice;
    u32: runs_u32_u32_dice;
}

gpu_primitives::search_instances! {
    in concat!(env!("CARGO_MANIFEST_DIR"), "/ptx");
    Place, build_index_place;
    ByAddress, u32: search_directly_place, search_indexed_place, search_sorted_place;
}

gpu_primitives::search_instances! {
    in concat!(env!("CARGO_MANIFEST_DIR"), "/ptx");
    u32;
    CyclicFrom, u32: search_directly_cyclic, search_indexed_cyclic, search_sorted_cyclic;
    Dice, u32: search_directly_dice, search_indexed_dice, search_sorted_dice;
    Unsteady, u32: search_directly_unsteady, search_indexed_unsteady, search_sorted_unsteady;
}
