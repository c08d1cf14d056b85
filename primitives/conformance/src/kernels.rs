//! Operators and kernels from outside gpu-primitives.

use bytemuck::{Pod, Zeroable};
use gpu_primitives::arch::{Order, Scope};
use gpu_primitives::compare::Compare;
use gpu_primitives::kernel::kernel;
use gpu_primitives::multisplit::Bucket;
use gpu_primitives::operator::{Record, operator};
use gpu_primitives::scan::Monoid;
use gpu_primitives::select::Predicate;
use gpu_primitives::sort::{BucketHistogram, Buckets, LargePass, RadixKey, SmallPass, items};
use gpu_primitives::view::shared_bytes;
use gpu_primitives::{Global, GlobalMut, Shared, SharedMemory, thread};

/// The map `x ↦ scale * x + shift`, wrapping.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable, Record)]
pub struct Affine {
    /// The factor.
    pub scale: u32,
    /// The summand.
    pub shift: u32,
}

/// First the one map, then the other: associative, not commutative.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable, Record)]
pub struct Compose;

#[operator]
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
#[derive(Clone, Copy, Debug, Pod, Zeroable, Record)]
pub struct SumModulo {
    /// Values are below it; it is at most 2^31.
    pub modulus: u32,
}

#[operator]
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
#[derive(Clone, Copy, Debug, Pod, Zeroable, Record)]
pub struct Modulo {
    /// Not zero.
    pub divisor: u32,
}

#[operator]
impl Bucket<u32> for Modulo {
    #[inline(always)]
    fn bucket(&self, key: u32) -> u32 {
        key % self.divisor
    }
}

/// A key of 16 bytes: ordered by zone, then downwards by street, then by number.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable, Record)]
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

#[operator]
impl RadixKey for Address {
    type Code = u128;

    #[inline(always)]
    fn code(key: Self) -> u128 {
        (key.zone as u128) << 64 | (!key.street as u128) << 32 | key.number as u128
    }
}

/// Passes numbers in a range that is known at run time: a predicate with state.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable, Record)]
pub struct Between {
    /// The smallest that passes.
    pub low: i32,
    /// The largest that passes.
    pub high: i32,
}

#[operator]
impl Predicate<i32> for Between {
    #[inline(always)]
    fn test(&self, item: i32) -> bool {
        self.low <= item && item <= self.high
    }
}

/// The order of numbers that begins at `start` and comes around: an order with state.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable, Record)]
pub struct CyclicFrom {
    /// The least number.
    pub start: u32,
}

#[operator]
impl Compare<u32> for CyclicFrom {
    #[inline(always)]
    fn less(&self, a: u32, b: u32) -> bool {
        a.wrapping_sub(self.start) < b.wrapping_sub(self.start)
    }
}

/// Comparators that are no order at all: the highest bit of `a * left + b * right + shift`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable, Record)]
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

#[operator]
impl Compare<u32> for NotAnOrder {
    #[inline(always)]
    fn less(&self, a: u32, b: u32) -> bool {
        (a.wrapping_mul(self.left)).wrapping_add(b.wrapping_mul(self.right)).wrapping_add(self.shift) >> 31 == 1
    }
}

/// A key of 16 bytes, of which a part is compared.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable, Record)]
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
#[derive(Clone, Copy, Debug, Pod, Zeroable, Record)]
pub struct ByAddress;

#[operator]
impl Compare<Place> for ByAddress {
    #[inline(always)]
    fn less(&self, a: Place, b: Place) -> bool {
        (a.city, a.street) < (b.city, b.street)
    }
}

/// No order at all: the dice are thrown for each pair of numbers.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable, Record)]
pub struct Dice {
    /// Another number, another order; [`Dice::ALWAYS`] throws none.
    pub seed: u32,
}

impl Dice {
    /// Everything comes before everything else.
    pub const ALWAYS: Self = Self { seed: u32::MAX };
}

#[operator]
impl Compare<u32> for Dice {
    #[inline(always)]
    fn less(&self, a: u32, b: u32) -> bool {
        let mixed = (a ^ self.seed).wrapping_mul(0x9E37_79B9) ^ b.wrapping_mul(0x85EB_CA6B);
        let mixed = (mixed ^ mixed >> 15).wrapping_mul(0xC2B2_AE35);
        (mixed ^ mixed >> 13) & 1 == 0 || self.seed == Self::ALWAYS.seed
    }
}

/// What GPUs are given in the place of [`Unsteady`]: no order, and buckets beyond the last one.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
struct Coins;

#[operator]
impl Compare<u32> for Coins {
    fn less(&self, a: u32, b: u32) -> bool {
        (a * 0x9E37_79B1 + b * 0x85EB_CA6B) >> 31 == 1
    }
}

#[operator]
impl Bucket<u32> for Coins {
    fn bucket(&self, key: u32) -> u32 {
        key * 0x9E37_79B1 % 300
    }
}

/// Answers otherwise in every other block, and in every other warp: an order and a bucket function that change their minds.
/// Through a hole, only the CPU can be lied to in this way: what is recorded for GPUs depends on the arguments alone.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub struct Unsteady;

impl Unsteady {
    /// 0 or 1, by the place of the thread.
    #[inline(always)]
    fn mood() -> u32 {
        let of_thread = || (thread::block_idx_x() ^ (thread::thread_idx_x() / 32)) & 1;
        #[cfg(target_arch = "nvptx64")]
        return of_thread();
        #[cfg(not(target_arch = "nvptx64"))]
        return std::panic::catch_unwind(of_thread).unwrap_or_else(|_| Self::mood_of_call());
    }

    /// 0 or 1, for some calls in turn: the native body of a kernel has no threads.
    #[cfg(not(target_arch = "nvptx64"))]
    fn mood_of_call() -> u32 {
        use std::sync::atomic::{AtomicU32, Ordering};
        static CALLS: AtomicU32 = AtomicU32::new(0);
        (CALLS.fetch_add(1, Ordering::Relaxed) / 61) & 1
    }
}

impl Compare<u32> for Unsteady {
    #[inline(always)]
    fn less(&self, a: u32, b: u32) -> bool {
        (a < b) != (Self::mood() == 1)
    }

    #[cfg(not(target_arch = "nvptx64"))]
    fn recorded() -> gpu_primitives::operator::Recorded {
        <Coins as Compare<u32>>::recorded()
    }
}

impl Bucket<u32> for Unsteady {
    #[inline(always)]
    fn bucket(&self, key: u32) -> u32 {
        key.wrapping_add(Self::mood() * 1000) % 300
    }

    #[cfg(not(target_arch = "nvptx64"))]
    fn recorded() -> gpu_primitives::operator::Recorded {
        <Coins as Bucket<u32>>::recorded()
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

/// A float with atomics.
pub trait AtomicFloat: Pod {
    /// Adds to a number, and to the smallest and the largest one.
    ///
    /// # Safety
    /// The numbers are only accessed atomically.
    unsafe fn collect(sums: GlobalMut<Self>, shared: Shared<Self>, value: Self);
}

macro_rules! atomic_float {
    ($($type:ty)*) => { $(
        impl AtomicFloat for $type {
            #[inline(always)]
            unsafe fn collect(sums: GlobalMut<Self>, shared: Shared<Self>, value: Self) {
                // SAFETY: guaranteed by the caller.
                unsafe {
                    sums.atomic_add(0, value, Scope::Gpu, Order::Relaxed);
                    sums.atomic_min(1, value, Scope::Gpu, Order::Relaxed);
                    sums.atomic_max(2, value, Scope::Gpu, Order::Relaxed);
                    shared.atomic_add(0, value);
                    shared.atomic_min(1, value);
                    shared.atomic_max(2, value);
                }
            }
        }
    )* };
}

atomic_float!(f32 f64);

/// Collects the sum, the minimum and the maximum of a block's numbers, by atomics on global memory and on shared memory.
///
/// # Safety
/// The launch has one block. `numbers` has 256 elements. `results` has three for global atomics, which begin with the first
/// number, and three for those of shared memory. Nothing else uses them.
#[kernel(threads = 256, shared = shared_bytes::<T>(3))]
pub unsafe fn collect_floats<T: AtomicFloat>(numbers: Global<T>, results: GlobalMut<T>) {
    let shared = SharedMemory::new().take::<T>(3);
    let thread = thread::thread_idx_x() as usize;
    if thread < 3 {
        shared.set(thread, numbers.get(0));
    }
    thread::sync_threads();
    if thread > 0 {
        T::collect(results.slice(0, 3), shared, numbers.get(thread));
    }
    thread::sync_threads();
    if thread < 3 {
        results.set(3 + thread, shared.get(thread));
    }
}

gpu_primitives::instances! {
    in concat!(env!("CARGO_MANIFEST_DIR"), "/ptx");
    for T in [f32, f64]: CollectFloats<T>;
    Crash;
    BucketHistogram<u32, Unsteady>;
    LargePass<u32, u32, Unsteady, { items::<u32, u32>() }>;
    SmallPass<u32, u32, Unsteady>;
}
