//! The device functions on the CPU executor, which runs every GPU thread as a coroutine.
//!
//! The bounds of all accesses and the alignment of vector accesses are always checked. Everything else is checked only
//! in the executor's checked mode, behind one branch. `#[track_caller]` puts the kernel's line into a fault's message.

#![allow(missing_docs, clippy::missing_safety_doc, reason = "`arch` and the views document each function's contract")]

use super::{Cache, Order, Rmw, Scope};
use crate::host::executor::access::{self, Effect, Kind, Space, Touch};
use crate::host::executor::context::{checked, with_block};
use crate::host::executor::warp::{Collective, collective};
use bytemuck::Pod;
use std::panic::Location;
use std::sync::atomic::{self, AtomicI32, AtomicI64, AtomicU32, AtomicU64, Ordering};

#[inline(always)]
pub fn thread_idx_x() -> u32 {
    with_block(|block| block.thread())
}

#[inline(always)]
pub fn block_idx_x() -> u32 {
    with_block(|block| block.index())
}

#[inline(always)]
pub fn block_dim_x() -> u32 {
    with_block(|block| block.threads())
}

#[inline(always)]
pub fn grid_dim_x() -> u32 {
    with_block(|block| block.grid())
}

#[inline(always)]
pub fn lane_id() -> u32 {
    thread_idx_x() % 32
}

#[inline(always)]
#[track_caller]
pub unsafe fn sync_threads() {
    let site = Location::caller();
    with_block(|block| block.barrier(site));
}

#[inline(always)]
pub fn spin_hint() {
    with_block(|block| block.poll());
}

#[inline(always)]
#[track_caller]
pub fn trap() -> ! {
    access::trap()
}

/// Register pressure does not matter on the CPU.
#[inline(always)]
pub fn opaque(value: u32) -> u32 {
    value
}

#[inline(always)]
pub fn fence(scope: Scope) {
    with_block(|block| block.before_visible());
    atomic::fence(Ordering::AcqRel);
    if checked() {
        access::fence(scope);
    }
}

#[inline(always)]
#[track_caller]
pub unsafe fn sync_warp(mask: u32) {
    collective(Collective::Sync, mask, 0, 0, Location::caller());
}

#[inline(always)]
#[track_caller]
pub unsafe fn ballot(mask: u32, predicate: bool) -> u32 {
    collective(Collective::Ballot, mask, u64::from(predicate), 0, Location::caller()) as u32
}

#[inline(always)]
#[track_caller]
pub unsafe fn any(mask: u32, predicate: bool) -> bool {
    ballot(mask, predicate) != 0
}

#[inline(always)]
#[track_caller]
pub unsafe fn all(mask: u32, predicate: bool) -> bool {
    ballot(mask, predicate) == mask
}

#[inline(always)]
#[track_caller]
pub unsafe fn match_any(mask: u32, value: u32) -> u32 {
    match_any_u64(mask, u64::from(value))
}

#[inline(always)]
#[track_caller]
pub unsafe fn match_any_u64(mask: u32, value: u64) -> u32 {
    collective(Collective::Match, mask, value, 0, Location::caller()) as u32
}

#[inline(always)]
#[track_caller]
pub unsafe fn shuffle_idx(mask: u32, value: u32, source: u32) -> u32 {
    collective(Collective::ShuffleIdx, mask, u64::from(value), source, Location::caller()) as u32
}

#[inline(always)]
#[track_caller]
pub unsafe fn shuffle_up(mask: u32, value: u32, delta: u32) -> u32 {
    collective(Collective::ShuffleUp, mask, u64::from(value), delta, Location::caller()) as u32
}

#[inline(always)]
#[track_caller]
pub unsafe fn shuffle_down(mask: u32, value: u32, delta: u32) -> u32 {
    collective(Collective::ShuffleDown, mask, u64::from(value), delta, Location::caller()) as u32
}

#[inline(always)]
#[track_caller]
pub unsafe fn shuffle_xor(mask: u32, value: u32, lanes: u32) -> u32 {
    collective(Collective::ShuffleXor, mask, u64::from(value), lanes, Location::caller()) as u32
}

/// Faults if a part reaches beyond its view. An empty part may begin anywhere.
#[inline(always)]
#[track_caller]
pub fn expect_part<T>(shared: bool, base: *const T, len: usize, start: usize, count: usize) {
    // Zero-sized elements have no memory, and the length of their views may be anything.
    if size_of::<T>() > 0 && count > 0 && (start > len || len - start < count) {
        let touch = Touch {
            space: if shared { Space::Shared } else { Space::Global },
            base: base.addr(),
            address: base.addr(),
            bytes: 0,
            element_bytes: size_of::<T>(),
            region: 0,
        };
        access::out_of_bounds(&touch, start.saturating_add(count - 1), len);
    }
}

/// Describes an access to `count` elements from `index`. Faults if it is out of bounds or not aligned to `align`.
#[inline(always)]
#[track_caller]
fn touch<T>(space: Space, base: *const T, len: usize, index: usize, count: usize, align: usize) -> Touch {
    let touch = Touch {
        space,
        base: base.addr(),
        address: base.wrapping_add(index).addr(),
        bytes: count * size_of::<T>(),
        element_bytes: size_of::<T>(),
        region: 0,
    };
    if index >= len || len - index < count {
        access::out_of_bounds(&touch, index.saturating_add(count - 1), len);
    }
    if !touch.address.is_multiple_of(align) {
        access::misaligned(&touch, index, align);
    }
    touch
}

#[inline(always)]
#[track_caller]
unsafe fn load<V: Copy, T>(space: Space, base: *const T, len: usize, index: usize, align: usize, kind: Kind) -> V {
    let touch = touch(space, base, len, index, size_of::<V>() / size_of::<T>(), align);
    let mut at = base.wrapping_add(index);
    if checked() {
        at = at.with_addr(access::plain(&touch, kind));
    }
    at.cast::<V>().read_unaligned()
}

#[inline(always)]
#[track_caller]
unsafe fn store<V: Copy, T>(space: Space, base: *mut T, len: usize, index: usize, align: usize, value: V) {
    let touch = touch(space, base, len, index, size_of::<V>() / size_of::<T>(), align);
    let at = base.wrapping_add(index);
    if checked() {
        at.with_addr(access::plain(&touch, Kind::Write)).cast::<V>().write_unaligned(value);
        access::wrote(&touch);
    } else {
        at.cast::<V>().write_unaligned(value);
    }
}

#[inline(always)]
fn read_kind(cache: Cache) -> Kind {
    if cache == Cache::ReadOnly { Kind::ReadOnly } else { Kind::Read }
}

// Global memory.

#[inline(always)]
#[track_caller]
pub unsafe fn global_load<T: Pod>(base: *const T, len: usize, index: usize, cache: Cache) -> T {
    load(Space::Global, base, len, index, align_of::<T>(), read_kind(cache))
}

/// A load through a view that may begin anywhere: the element counts as a view of its own.
#[inline(always)]
#[track_caller]
pub unsafe fn global_load_shifted<T: Pod>(base: *const T, len: usize, index: usize) -> T {
    expect_part(false, base, len, index, 1);
    load(Space::Global, base.wrapping_add(index), 1, 0, align_of::<T>(), read_kind(Cache::Default))
}

#[inline(always)]
#[track_caller]
pub unsafe fn global_store<T: Pod>(base: *mut T, len: usize, index: usize, value: T, _: Cache) {
    store(Space::Global, base, len, index, align_of::<T>(), value);
}

#[inline(always)]
#[track_caller]
pub unsafe fn global_load_vec<T: Pod, const N: usize>(
    base: *const T,
    len: usize,
    index: usize,
    cache: Cache,
) -> [T; N] {
    load(Space::Global, base, len, index, size_of::<[T; N]>(), read_kind(cache))
}

#[inline(always)]
#[track_caller]
pub unsafe fn global_store_vec<T: Pod, const N: usize>(
    base: *mut T,
    len: usize,
    index: usize,
    values: [T; N],
    _: Cache,
) {
    store(Space::Global, base, len, index, size_of::<[T; N]>(), values);
}

/// The operations of one width of atomics.
pub trait AtomicWord: Copy + PartialEq {
    unsafe fn load(address: *mut Self, order: Ordering) -> Self;
    unsafe fn store(address: *mut Self, value: Self, order: Ordering);
    unsafe fn rmw(address: *mut Self, operation: Rmw, value: Self, order: Ordering) -> Self;
    unsafe fn compare_exchange(address: *mut Self, expected: Self, new: Self, order: Ordering) -> Self;
    /// Returns the new value after `operation` on `old`.
    fn apply(operation: Rmw, old: Self, value: Self) -> Self;
}

macro_rules! atomic_word {
    ($type:ty, $atomic:ty) => {
        impl AtomicWord for $type {
            #[inline(always)]
            unsafe fn load(address: *mut Self, order: Ordering) -> Self {
                <$atomic>::from_ptr(address).load(order)
            }

            #[inline(always)]
            unsafe fn store(address: *mut Self, value: Self, order: Ordering) {
                <$atomic>::from_ptr(address).store(value, order);
            }

            #[inline(always)]
            unsafe fn rmw(address: *mut Self, operation: Rmw, value: Self, order: Ordering) -> Self {
                let word = <$atomic>::from_ptr(address);
                match operation {
                    Rmw::Add => word.fetch_add(value, order),
                    Rmw::Min => word.fetch_min(value, order),
                    Rmw::Max => word.fetch_max(value, order),
                    Rmw::And => word.fetch_and(value, order),
                    Rmw::Or => word.fetch_or(value, order),
                    Rmw::Xor => word.fetch_xor(value, order),
                    Rmw::Exchange => word.swap(value, order),
                }
            }

            #[inline(always)]
            unsafe fn compare_exchange(address: *mut Self, expected: Self, new: Self, order: Ordering) -> Self {
                let failure = if matches!(order, Ordering::Relaxed | Ordering::Release) {
                    Ordering::Relaxed
                } else {
                    Ordering::Acquire
                };
                match <$atomic>::from_ptr(address).compare_exchange(expected, new, order, failure) {
                    Ok(old) | Err(old) => old,
                }
            }

            #[inline(always)]
            fn apply(operation: Rmw, old: Self, value: Self) -> Self {
                match operation {
                    Rmw::Add => old.wrapping_add(value),
                    Rmw::Min => old.min(value),
                    Rmw::Max => old.max(value),
                    Rmw::And => old & value,
                    Rmw::Or => old | value,
                    Rmw::Xor => old ^ value,
                    Rmw::Exchange => value,
                }
            }
        }
    };
}

atomic_word!(u32, AtomicU32);
atomic_word!(i32, AtomicI32);
atomic_word!(u64, AtomicU64);
atomic_word!(i64, AtomicI64);

#[inline(always)]
fn ordering(order: Order) -> Ordering {
    match order {
        Order::Relaxed => Ordering::Relaxed,
        Order::Acquire => Ordering::Acquire,
        Order::Release => Ordering::Release,
        Order::AcqRel => Ordering::AcqRel,
    }
}

/// Performs one atomic access, which may write if `writes`, and reports it to the executor. Other threads may be scheduled right before it.
#[inline(always)]
#[track_caller]
unsafe fn atomically<T: AtomicWord, R>(
    place: (Space, *mut T, usize, usize),
    writes: bool,
    scope: Scope,
    order: Order,
    act: impl FnOnce(*mut T) -> (R, Effect),
) -> R {
    let (space, base, len, index) = place;
    let touch = touch(space, base, len, index, 1, size_of::<T>());
    let site = Location::caller();
    with_block(|block| {
        block.before_visible();
        let is_checked = checked();
        let mut at = base.wrapping_add(index);
        if is_checked {
            at = at.with_addr(access::before_atomic(&touch, writes, site));
        }
        let (result, effect) = act(at);
        if is_checked {
            access::atomic(&touch, effect, scope, order, site);
        }
        match effect {
            Effect::Load | Effect::Rmw { changed: false } => block.looked_at(touch.address, site),
            Effect::Store | Effect::Rmw { changed: true } => block.progress(),
        }
        result
    })
}

#[inline(always)]
#[track_caller]
pub unsafe fn global_atomic_load<T: AtomicWord>(
    base: *mut T,
    len: usize,
    index: usize,
    scope: Scope,
    order: Order,
) -> T {
    let how = if order == Order::Relaxed { Ordering::Relaxed } else { Ordering::Acquire };
    // SAFETY: the element is in bounds and aligned, and all concurrent accesses to it are atomic.
    atomically((Space::Global, base, len, index), false, scope, order, |at| (unsafe { T::load(at, how) }, Effect::Load))
}

#[inline(always)]
#[track_caller]
pub unsafe fn global_atomic_load_vec<T: AtomicWord, const N: usize>(base: *mut T, len: usize, index: usize) -> [T; N] {
    let mut at = index;
    [(); N].map(|()| {
        at += 1;
        global_atomic_load(base, len, at - 1, Scope::Gpu, Order::Relaxed)
    })
}

#[inline(always)]
#[track_caller]
pub unsafe fn global_atomic_store<T: AtomicWord>(
    base: *mut T,
    len: usize,
    index: usize,
    value: T,
    scope: Scope,
    order: Order,
) {
    let how = if order == Order::Relaxed { Ordering::Relaxed } else { Ordering::Release };
    atomically((Space::Global, base, len, index), true, scope, order, |at| {
        // SAFETY: as for `global_atomic_load`.
        (unsafe { T::store(at, value, how) }, Effect::Store)
    });
}

#[inline(always)]
#[track_caller]
pub unsafe fn global_rmw<T: AtomicWord>(
    base: *mut T,
    len: usize,
    operation: Rmw,
    index: usize,
    value: T,
    scope: Scope,
    order: Order,
) -> T {
    atomically((Space::Global, base, len, index), true, scope, order, |at| {
        // SAFETY: as for `global_atomic_load`.
        let old = unsafe { T::rmw(at, operation, value, ordering(order)) };
        (old, Effect::Rmw { changed: T::apply(operation, old, value) != old })
    })
}

#[inline(always)]
#[track_caller]
pub unsafe fn global_compare_exchange<T: AtomicWord>(
    base: *mut T,
    len: usize,
    index: usize,
    expected: T,
    new: T,
    scope: Scope,
    order: Order,
) -> T {
    atomically((Space::Global, base, len, index), true, scope, order, |at| {
        // SAFETY: as for `global_atomic_load`.
        let old = unsafe { T::compare_exchange(at, expected, new, ordering(order)) };
        (old, if old == expected { Effect::Rmw { changed: new != old } } else { Effect::Load })
    })
}

/// Floats that can be added to atomically.
pub trait AtomicFloat: Copy {
    type Bits: AtomicWord + PartialEq;

    fn add(bits: Self::Bits, value: Self) -> Self::Bits;
    fn from_bits(bits: Self::Bits) -> Self;
}

macro_rules! atomic_float {
    ($($type:ty as $bits:ty;)*) => { $(
        impl AtomicFloat for $type {
            type Bits = $bits;

            fn add(bits: $bits, value: Self) -> $bits {
                (Self::from_bits(bits) + value).to_bits()
            }

            fn from_bits(bits: $bits) -> Self {
                Self::from_bits(bits)
            }
        }
    )* };
}

atomic_float!(f32 as u32; f64 as u64;);

#[inline(always)]
#[track_caller]
pub unsafe fn global_float_add<T: AtomicFloat>(
    base: *mut T,
    len: usize,
    index: usize,
    value: T,
    scope: Scope,
    order: Order,
) -> T {
    let words = base.cast::<T::Bits>();
    // SAFETY: guaranteed by the caller; a float has the size and the alignment of its bits.
    unsafe {
        let mut old = global_atomic_load(words, len, index, scope, Order::Relaxed);
        loop {
            let found = global_compare_exchange(words, len, index, old, T::add(old, value), scope, order);
            if found == old {
                return T::from_bits(old);
            }
            old = found;
        }
    }
}

// Shared memory. A block runs on one OS thread, so its atomics need no atomic instructions.

/// Returns the address of `bytes` bytes at `offset` in the block's shared memory.
#[inline(always)]
#[track_caller]
pub unsafe fn shared_base(offset: usize, bytes: usize) -> *mut u8 {
    let site = Location::caller();
    with_block(|block| block.shared_piece(offset, bytes, site))
}

#[inline(always)]
#[track_caller]
pub unsafe fn shared_load<T: Pod>(base: *const T, len: usize, index: usize) -> T {
    load(Space::Shared, base, len, index, align_of::<T>(), Kind::Read)
}

#[inline(always)]
#[track_caller]
pub unsafe fn shared_store<T: Pod>(base: *mut T, len: usize, index: usize, value: T) {
    store(Space::Shared, base, len, index, align_of::<T>(), value);
}

#[inline(always)]
#[track_caller]
pub unsafe fn shared_load_vec<T: Pod, const N: usize>(base: *const T, len: usize, index: usize) -> [T; N] {
    load(Space::Shared, base, len, index, size_of::<[T; N]>(), Kind::Read)
}

#[inline(always)]
#[track_caller]
pub unsafe fn shared_store_vec<T: Pod, const N: usize>(base: *mut T, len: usize, index: usize, values: [T; N]) {
    store(Space::Shared, base, len, index, size_of::<[T; N]>(), values);
}

#[inline(always)]
#[track_caller]
pub unsafe fn shared_atomic_load<T: AtomicWord>(base: *mut T, len: usize, index: usize) -> T {
    atomically((Space::Shared, base, len, index), false, Scope::Block, Order::Relaxed, |at| {
        // SAFETY: the element is in bounds and aligned, and only this OS thread uses it.
        (unsafe { at.read() }, Effect::Load)
    })
}

#[inline(always)]
#[track_caller]
pub unsafe fn shared_atomic_store<T: AtomicWord>(base: *mut T, len: usize, index: usize, value: T) {
    atomically((Space::Shared, base, len, index), true, Scope::Block, Order::Relaxed, |at| {
        // SAFETY: as for `shared_atomic_load`.
        (unsafe { at.write(value) }, Effect::Store)
    });
}

#[inline(always)]
#[track_caller]
pub unsafe fn shared_rmw<T: AtomicWord>(base: *mut T, len: usize, operation: Rmw, index: usize, value: T) -> T {
    atomically((Space::Shared, base, len, index), true, Scope::Block, Order::Relaxed, |at| {
        // SAFETY: as for `shared_atomic_load`.
        let old = unsafe { at.read() };
        let new = T::apply(operation, old, value);
        // SAFETY: as above.
        unsafe { at.write(new) };
        (old, Effect::Rmw { changed: new != old })
    })
}

#[inline(always)]
#[track_caller]
pub unsafe fn shared_compare_exchange<T: AtomicWord>(base: *mut T, len: usize, index: usize, expected: T, new: T) -> T {
    atomically((Space::Shared, base, len, index), true, Scope::Block, Order::Relaxed, |at| {
        // SAFETY: as for `shared_atomic_load`.
        let old = unsafe { at.read() };
        if old != expected {
            return (old, Effect::Load);
        }
        // SAFETY: as above.
        unsafe { at.write(new) };
        (old, Effect::Rmw { changed: new != old })
    })
}
