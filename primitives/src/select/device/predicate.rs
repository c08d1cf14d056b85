//! Predicates for selections.

use crate::form::{Buffer, Holes, Param};
#[cfg(not(target_arch = "nvptx64"))]
use crate::hole::OperatorBody;
use crate::hole::{Hole, RegisterRepr};
#[cfg(not(target_arch = "nvptx64"))]
use crate::host::computed::{Unary, body};
#[cfg(not(target_arch = "nvptx64"))]
use crate::host::recorded::Recipe;
#[cfg(not(target_arch = "nvptx64"))]
use crate::operator::Recorded;
use crate::operator::{Record, operator};
use crate::view::Global;
use bytemuck::{Pod, Zeroable};
#[cfg(not(target_arch = "nvptx64"))]
use core::marker::PhantomData;

/// A test for items. It may carry state, which is passed to the GPU as a kernel argument: at most 64 bytes. Put
/// [`#[operator]`](crate::operator) on an implementation: it records the test for GPUs.
///
/// ```
/// use bytemuck::{Pod, Zeroable};
/// use gpu_primitives::operator::{Record, operator};
/// use gpu_primitives::select::{self, Predicate};
/// use gpu_primitives::{Device, Error};
///
/// #[repr(C)]
/// #[derive(Clone, Copy, Pod, Zeroable, Record)]
/// struct Above(f64);
///
/// #[operator]
/// impl Predicate<f64> for Above {
///     fn test(&self, item: f64) -> bool {
///         item > self.0
///     }
/// }
///
/// let stream = Device::default()?.stream()?;
/// let input = stream.upload(&[0.5, 2.0, -1.0, 7.5])?;
/// let mut output = stream.uninit::<f64>(4)?;
/// let count = select::select(&stream, &input, &mut output, Above(1.0))?;
/// assert_eq!(count.get(&stream)?, 2);
/// assert_eq!(output.slice(..2)?.to_vec(&stream)?, [2.0, 7.5]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Contract
/// The result depends only on the item and the state. A predicate that breaks this contract yields some selection, but
/// never an out-of-bounds access. It is only called with items of the input, once or twice for each.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a test of elements of type `{T}`",
    note = "`gpu_primitives::operator::predicate!` makes a test of a closure",
    note = "or put `#[operator]` on an implementation of the trait"
)]
pub trait Predicate<T>: Param {
    /// Returns whether the item passes.
    fn test(&self, item: T) -> bool;

    /// Records the test for GPUs: [`#[operator]`](crate::operator) writes this function.
    #[cfg(not(target_arch = "nvptx64"))]
    fn recorded() -> Recorded;
}

/// Tests the bits of an integer: `item & mask == expected`, or the opposite.
///
/// ```
/// use gpu_primitives::select::{Masked, Predicate};
///
/// assert!(Masked::equal(0xf0u32, 0x30).test(0x1234));
/// assert!(!Masked::differ(0xf0u32, 0x30).test(0x1234));
/// ```
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Zeroable, Record)]
pub struct Masked<T> {
    mask: T,
    expected: T,
    /// Zero, or not.
    differ: T,
}

// SAFETY: three elements of the same type leave no padding.
unsafe impl<T: Pod> Pod for Masked<T> {}

impl<T: Pod> Masked<T> {
    /// Passes if `item & mask == expected`.
    #[must_use]
    pub const fn equal(mask: T, expected: T) -> Self {
        // SAFETY: a `T` is plain data.
        Self { mask, expected, differ: unsafe { core::mem::zeroed() } }
    }

    /// Passes if `item & mask != expected`.
    #[must_use]
    pub const fn differ(mask: T, expected: T) -> Self {
        const { assert!(size_of::<T>() <= 16, "integers have at most 16 bytes") };
        // SAFETY: a `T` is plain data, and no larger than the array.
        Self { mask, expected, differ: unsafe { core::mem::transmute_copy(&[1u8; 16]) } }
    }
}

macro_rules! masked {
    ($($type:ty)*) => { $(
        #[operator]
        impl Predicate<$type> for Masked<$type> {
            #[inline(always)]
            fn test(&self, item: $type) -> bool {
                (item & self.mask == self.expected) != (self.differ != 0)
            }
        }
    )* };
}

masked!(u8 u16 u32 u64 u128 i8 i16 i32 i64 i128);

/// The kernels' form of a [`Predicate`]: it also gets the item's index, tests rows at once, and may record by-products.
///
/// # Safety
/// For all methods: the buffers it carries satisfy the requirements of its type, and nothing else writes them while the
/// kernel runs. Indices are those of items and lie within [`range`](Self::range). The index of a [`row`](Self::row) is
/// a multiple of `VEC`, and all items of the row lie within the range. A run is one of a tile's runs: all lanes of the
/// warp that owns it call [`record`](Self::record) and [`record_place`](Self::record_place) once each, and no other
/// warp does.
pub trait Keep<K>: Param {
    /// The number of blocks of 256 threads that must fit on a multiprocessor, as in a kernel's settings.
    const MIN_BLOCKS: u32 = 0;

    /// Returns the range of indices to look at, out of `len` items: start and end.
    #[inline(always)]
    unsafe fn range(&self, len: usize) -> (usize, usize) {
        (0, len)
    }

    /// Returns whether item `index` is kept.
    unsafe fn item(&self, index: usize, item: K) -> bool;

    /// Writes which of the items from `index` on are kept: 1 or 0 each.
    #[cfg(not(target_arch = "nvptx64"))]
    unsafe fn items(&self, index: usize, items: &[K], kept: &mut [u8])
    where
        K: Copy,
    {
        for (i, (&item, kept)) in items.iter().zip(kept).enumerate() {
            // SAFETY: guaranteed by the caller.
            *kept = u8::from(unsafe { self.item(index + i, item) });
        }
    }

    /// Called once, in place of [`record`](Self::record) and [`record_place`](Self::record_place), where the kernel runs
    /// natively: with the flags of all items of the range, which begins with item `start`, and the number of items of a lane
    /// in a run.
    #[cfg(not(target_arch = "nvptx64"))]
    unsafe fn record_natively(&self, start: usize, kept: &[u8], items: usize) {
        let _ = (start, kept, items);
    }

    /// Returns which of the items from `index` on are kept, one bit each.
    #[inline(always)]
    unsafe fn row<const VEC: usize>(&self, index: usize, items: [K; VEC]) -> u32
    where
        K: Pod,
    {
        let mut bits = 0;
        for i in 0..VEC {
            bits |= (self.item(index + i, items[i]) as u32) << i;
        }
        bits
    }

    /// Called for every run of a warp, by all its lanes. Gets the run's number, the lane's bits and, per row, the
    /// number of items kept in lower lanes and in all lanes (one byte each). The result is passed to
    /// [`record_place`](Self::record_place).
    #[inline(always)]
    unsafe fn record<const ROWS: usize>(&self, run: usize, flags: u32, in_row: u64, row_totals: u64) -> u32 {
        let _ = (run, flags, in_row, row_totals);
        0
    }

    /// Called for the run again when its position is known: the number of items kept before it.
    #[inline(always)]
    unsafe fn record_place<const ROWS: usize>(&self, run: usize, note: u32, before: usize) {
        let _ = (run, note, before);
    }
}

/// Keeps items by a predicate that is not known when a kernel is compiled: a [`Hole`].
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct HolePredicate(Hole);

// SAFETY: `repr(C)` around a parameter.
unsafe impl Param for HolePredicate {
    const HOLES: Holes = Holes::FIRST;
}

#[cfg(not(target_arch = "nvptx64"))]
impl HolePredicate {
    /// Returns a predicate for items `T`, for kernels that hold them in a type of the same size or a larger one.
    pub(crate) fn of<T: Pod, P: Predicate<T>>(predicate: P) -> Self {
        Self(Hole::new(predicate, Self::filling::<T, P>()))
    }

    /// Describes what fills the hole.
    pub(crate) fn filling<T: Pod, P: Predicate<T>>() -> &'static OperatorBody {
        body::<Test<T, P>>()
    }

    /// Returns the function.
    pub(crate) fn hole(&self) -> &Hole {
        &self.0
    }
}

/// A predicate as a function of one element.
#[cfg(not(target_arch = "nvptx64"))]
#[repr(transparent)]
#[derive(Clone, Copy)]
struct Test<T, P>(P, PhantomData<T>);

#[cfg(not(target_arch = "nvptx64"))]
impl<T: Pod, P: Predicate<T>> Unary for Test<T, P> {
    type Item = T;
    /// 1 or 0.
    type Output = u8;
    const RECIPE: Recipe = Recipe::new::<P, T, bool>("test", P::recorded, const { &[size_of::<T>()] });

    #[inline(always)]
    fn call(&self, item: T) -> u8 {
        u8::from(self.0.test(item))
    }
}

impl<H: RegisterRepr> Keep<H> for HolePredicate {
    #[inline(always)]
    unsafe fn item(&self, _: usize, item: H) -> bool {
        // SAFETY: it is made of a `Predicate`, and the host launches a kernel with it only for items of that type.
        unsafe { H::test(&self.0, item) }
    }

    #[cfg(not(target_arch = "nvptx64"))]
    unsafe fn items(&self, _: usize, items: &[H], kept: &mut [u8]) {
        // SAFETY: same as above.
        unsafe { self.0.each(items, kept) }
    }
}

/// Keeps items by one byte each: zero drops the item. There are as many bytes as items.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Flags(pub Global<u8>);

// SAFETY: `repr(C)` around a view.
unsafe impl Param for Flags {
    fn buffers(&self, name: &'static str, visit: &mut dyn FnMut(&'static str, Buffer)) {
        self.0.buffers(name, visit);
    }
}

/// Keeps items by one bit each, from bit `start` of the bytes on. There are as many bits as items.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct BitFlags {
    pub bytes: Global<u8>,
    pub start: u64,
}

// SAFETY: `repr(C)` without padding.
unsafe impl Param for BitFlags {
    fn buffers(&self, name: &'static str, visit: &mut dyn FnMut(&'static str, Buffer)) {
        self.bytes.buffers(name, visit);
    }
}

impl<K> Keep<K> for BitFlags {
    #[inline(always)]
    unsafe fn item(&self, index: usize, _: K) -> bool {
        let bit = self.start as usize + index;
        self.bytes.get(bit / 8) >> (bit % 8) & 1 != 0
    }

    /// The bits of a row lie in one byte, or in two.
    #[inline(always)]
    unsafe fn row<const VEC: usize>(&self, index: usize, _: [K; VEC]) -> u32
    where
        K: Pod,
    {
        let bit = self.start as usize + index;
        let (first, last) = (bit / 8, (bit + VEC - 1) / 8);
        let low = self.bytes.get(first) as u32;
        let high = if last == first { 0 } else { self.bytes.get(last) as u32 };
        ((high << 8 | low) >> (bit % 8)) & ((1 << VEC) - 1)
    }
}

impl<K> Keep<K> for Flags {
    #[inline(always)]
    unsafe fn item(&self, index: usize, _: K) -> bool {
        self.0.get(index) != 0
    }

    #[inline(always)]
    unsafe fn row<const VEC: usize>(&self, index: usize, _: [K; VEC]) -> u32
    where
        K: Pod,
    {
        let mut bits = 0;
        if VEC == 4 && self.0.as_ptr().addr().is_multiple_of(4) {
            let flags = self.0.load_vec::<4>(index, crate::arch::Cache::Default);
            for i in 0..4 {
                bits |= ((flags[i] != 0) as u32) << i;
            }
        } else {
            for i in 0..VEC {
                bits |= ((self.0.get(index + i) != 0) as u32) << i;
            }
        }
        bits
    }
}
