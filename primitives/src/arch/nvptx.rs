//! The device functions as PTX.
//!
//! Three rules, each learnt from a miscompilation:
//! - Convergent operations (barriers, votes, shuffles) are LLVM intrinsics. LLVM may move or duplicate an `asm!` block
//!   across a branch, and a collective that was moved deadlocks.
//! - Global memory is accessed through `asm!` with an explicit state space. Pointers arrive inside the kernel's
//!   argument struct, where LLVM cannot infer their state space, and it would fall back to slower generic accesses.
//!   `ptxas` still folds the address arithmetic and schedules the accesses freely.
//! - Shared memory is accessed through ordinary pointers derived from the launch-sized region. LLVM knows their state
//!   space as long as everything is inlined.

use super::{Cache, Order, Rmw, Scope};
use bytemuck::Pod;
use core::arch::asm;
use core::arch::nvptx;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicI32, AtomicI64, AtomicU32, AtomicU64, Ordering};

mod intrinsic {
    #[allow(improper_ctypes)]
    unsafe extern "C" {
        #[link_name = "llvm.nvvm.shfl.sync.idx.i32"]
        pub fn shuffle_idx(mask: u32, value: u32, source: u32, clamp: u32) -> u32;
        #[link_name = "llvm.nvvm.shfl.sync.up.i32"]
        pub fn shuffle_up(mask: u32, value: u32, delta: u32, clamp: u32) -> u32;
        #[link_name = "llvm.nvvm.shfl.sync.down.i32"]
        pub fn shuffle_down(mask: u32, value: u32, delta: u32, clamp: u32) -> u32;
        #[link_name = "llvm.nvvm.shfl.sync.bfly.i32"]
        pub fn shuffle_xor(mask: u32, value: u32, lanes: u32, clamp: u32) -> u32;
        #[link_name = "llvm.nvvm.bar.warp.sync"]
        pub fn sync_warp(mask: u32);
        #[link_name = "llvm.nvvm.vote.ballot.sync"]
        pub fn ballot(mask: u32, predicate: bool) -> u32;
        #[link_name = "llvm.nvvm.vote.any.sync"]
        pub fn any(mask: u32, predicate: bool) -> bool;
        #[link_name = "llvm.nvvm.vote.all.sync"]
        pub fn all(mask: u32, predicate: bool) -> bool;
        #[link_name = "llvm.nvvm.match.any.sync.i32"]
        pub fn match_any(mask: u32, value: u32) -> u32;
        #[link_name = "llvm.nvvm.match.any.sync.i64"]
        pub fn match_any_u64(mask: u32, value: u64) -> u32;
    }
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    trap()
}

#[inline(always)]
pub fn thread_idx_x() -> u32 {
    // SAFETY: reads a special register.
    unsafe { nvptx::_thread_idx_x() as u32 }
}

#[inline(always)]
pub fn block_idx_x() -> u32 {
    // SAFETY: reads a special register.
    unsafe { nvptx::_block_idx_x() as u32 }
}

#[inline(always)]
pub fn block_dim_x() -> u32 {
    // SAFETY: reads a special register.
    unsafe { nvptx::_block_dim_x() as u32 }
}

#[inline(always)]
pub fn grid_dim_x() -> u32 {
    // SAFETY: reads a special register.
    unsafe { nvptx::_grid_dim_x() as u32 }
}

#[inline(always)]
pub fn lane_id() -> u32 {
    thread_idx_x() % 32
}

#[inline(always)]
pub unsafe fn sync_threads() {
    nvptx::_syncthreads();
}

/// Polling loops already pause for the latency of the load.
#[inline(always)]
pub fn spin_hint() {}

#[inline(always)]
pub fn trap() -> ! {
    // SAFETY: ends the kernel.
    unsafe { asm!("trap;", options(noreturn, nostack)) }
}

#[inline(always)]
pub fn opaque(value: u32) -> u32 {
    let copy: u32;
    // SAFETY: copies a register. Not `pure`, so that the compiler does not merge two copies.
    unsafe { asm!("mov.b32 {}, {};", out(reg32) copy, in(reg32) value, options(nomem, nostack, preserves_flags)) };
    copy
}

#[inline(always)]
pub fn fence(scope: Scope) {
    // SAFETY: a fence has no operands.
    unsafe {
        match scope {
            Scope::Block => asm!("fence.acq_rel.cta;", options(nostack, preserves_flags)),
            Scope::Gpu => asm!("fence.acq_rel.gpu;", options(nostack, preserves_flags)),
            Scope::System => asm!("fence.acq_rel.sys;", options(nostack, preserves_flags)),
        }
    }
}

#[inline(always)]
pub unsafe fn sync_warp(mask: u32) {
    intrinsic::sync_warp(mask);
}

#[inline(always)]
pub unsafe fn ballot(mask: u32, predicate: bool) -> u32 {
    intrinsic::ballot(mask, predicate)
}

#[inline(always)]
pub unsafe fn any(mask: u32, predicate: bool) -> bool {
    intrinsic::any(mask, predicate)
}

#[inline(always)]
pub unsafe fn all(mask: u32, predicate: bool) -> bool {
    intrinsic::all(mask, predicate)
}

#[inline(always)]
pub unsafe fn match_any(mask: u32, value: u32) -> u32 {
    intrinsic::match_any(mask, value)
}

#[inline(always)]
pub unsafe fn match_any_u64(mask: u32, value: u64) -> u32 {
    intrinsic::match_any_u64(mask, value)
}

#[inline(always)]
pub unsafe fn shuffle_idx(mask: u32, value: u32, source: u32) -> u32 {
    intrinsic::shuffle_idx(mask, value, source, 31)
}

#[inline(always)]
pub unsafe fn shuffle_up(mask: u32, value: u32, delta: u32) -> u32 {
    intrinsic::shuffle_up(mask, value, delta, 0)
}

#[inline(always)]
pub unsafe fn shuffle_down(mask: u32, value: u32, delta: u32) -> u32 {
    intrinsic::shuffle_down(mask, value, delta, 31)
}

#[inline(always)]
pub unsafe fn shuffle_xor(mask: u32, value: u32, lanes: u32) -> u32 {
    intrinsic::shuffle_xor(mask, value, lanes, 31)
}

// Global memory.

/// Expands to one load instruction. `$cache` selects the cache operator.
macro_rules! load {
    ($cache:expr, $suffix:literal, $class:ident, $type:ty, $address:expr) => {{
        let value: $type;
        match $cache {
            Cache::Default => asm!(concat!("ld.global.", $suffix, " {}, [{}];"), out($class) value, in(reg64) $address,
                options(pure, readonly, nostack, preserves_flags)),
            Cache::Streaming => asm!(concat!("ld.global.cs.", $suffix, " {}, [{}];"), out($class) value, in(reg64) $address,
                options(pure, readonly, nostack, preserves_flags)),
            Cache::ReadOnly => asm!(concat!("ld.global.nc.", $suffix, " {}, [{}];"), out($class) value, in(reg64) $address,
                options(pure, readonly, nostack, preserves_flags)),
        }
        value
    }};
}

macro_rules! store {
    ($cache:expr, $suffix:literal, $class:ident, $address:expr, $value:expr) => {
        match $cache {
            Cache::Streaming => asm!(concat!("st.global.cs.", $suffix, " [{}], {};"), in(reg64) $address, in($class) $value,
                options(nostack, preserves_flags)),
            Cache::Default | Cache::ReadOnly => asm!(concat!("st.global.", $suffix, " [{}], {};"), in(reg64) $address,
                in($class) $value, options(nostack, preserves_flags)),
        }
    };
}

#[inline(always)]
unsafe fn load_16_bytes(address: *const u8, cache: Cache) -> [u32; 4] {
    let (a, b, c, d): (u32, u32, u32, u32);
    macro_rules! load {
        ($operator:literal) => {
            asm!(concat!("ld.global", $operator, ".v4.b32 {{{}, {}, {}, {}}}, [{}];"), out(reg32) a, out(reg32) b,
                out(reg32) c, out(reg32) d, in(reg64) address, options(pure, readonly, nostack, preserves_flags))
        };
    }
    match cache {
        Cache::Default => load!(""),
        Cache::Streaming => load!(".cs"),
        Cache::ReadOnly => load!(".nc"),
    }
    [a, b, c, d]
}

#[inline(always)]
unsafe fn store_16_bytes(address: *mut u8, [a, b, c, d]: [u32; 4], cache: Cache) {
    macro_rules! store {
        ($operator:literal) => {
            asm!(concat!("st.global", $operator, ".v4.b32 [{}], {{{}, {}, {}, {}}};"), in(reg64) address, in(reg32) a,
                in(reg32) b, in(reg32) c, in(reg32) d, options(nostack, preserves_flags))
        };
    }
    match cache {
        Cache::Streaming => store!(".cs"),
        Cache::Default | Cache::ReadOnly => store!(""),
    }
}

/// Loads a value whose address is a multiple of `align`, with accesses as wide as `align` and the value's size allow.
#[inline(always)]
unsafe fn load_wide<V: Copy>(address: *const u8, align: usize, cache: Cache) -> V {
    let mut value = MaybeUninit::<V>::uninit();
    let out = value.as_mut_ptr().cast::<u8>();
    let size = size_of::<V>();
    let mut at = 0;
    while at < size {
        let from = address.add(at);
        if align >= 16 && size % 16 == 0 {
            out.add(at).cast::<[u32; 4]>().write_unaligned(load_16_bytes(from, cache));
            at += 16;
        } else if align >= 8 && size % 8 == 0 {
            out.add(at).cast::<u64>().write_unaligned(load!(cache, "b64", reg64, u64, from));
            at += 8;
        } else if align >= 4 && size % 4 == 0 {
            out.add(at).cast::<u32>().write_unaligned(load!(cache, "b32", reg32, u32, from));
            at += 4;
        } else if align >= 2 && size % 2 == 0 {
            out.add(at).cast::<u16>().write_unaligned(load!(cache, "b16", reg16, u16, from));
            at += 2;
        } else {
            out.add(at).write(load!(cache, "b8", reg16, u16, from) as u8);
            at += 1;
        }
    }
    value.assume_init()
}

/// Stores a value at an address that is a multiple of `align`, with accesses as wide as `align` and the value's size
/// allow.
#[inline(always)]
unsafe fn store_wide<V: Copy>(address: *mut u8, align: usize, value: V, cache: Cache) {
    let from = (&raw const value).cast::<u8>();
    let size = size_of::<V>();
    let mut at = 0;
    while at < size {
        let to = address.add(at);
        if align >= 16 && size % 16 == 0 {
            store_16_bytes(to, from.add(at).cast::<[u32; 4]>().read_unaligned(), cache);
            at += 16;
        } else if align >= 8 && size % 8 == 0 {
            store!(cache, "b64", reg64, to, from.add(at).cast::<u64>().read_unaligned());
            at += 8;
        } else if align >= 4 && size % 4 == 0 {
            store!(cache, "b32", reg32, to, from.add(at).cast::<u32>().read_unaligned());
            at += 4;
        } else if align >= 2 && size % 2 == 0 {
            store!(cache, "b16", reg16, to, from.add(at).cast::<u16>().read_unaligned());
            at += 2;
        } else {
            store!(cache, "b8", reg16, to, from.add(at).read() as u16);
            at += 1;
        }
    }
}

#[inline(always)]
pub unsafe fn global_load<T: Pod>(base: *const T, _: usize, index: usize, cache: Cache) -> T {
    load_wide(base.wrapping_add(index).cast(), align_of::<T>(), cache)
}

#[inline(always)]
pub unsafe fn global_load_shifted<T: Pod>(base: *const T, len: usize, index: usize) -> T {
    global_load(base, len, index, Cache::Default)
}

#[inline(always)]
pub unsafe fn global_store<T: Pod>(base: *mut T, _: usize, index: usize, value: T, cache: Cache) {
    store_wide(base.wrapping_add(index).cast(), align_of::<T>(), value, cache);
}

#[inline(always)]
pub unsafe fn global_load_vec<T: Pod, const N: usize>(base: *const T, _: usize, index: usize, cache: Cache) -> [T; N] {
    load_wide(base.wrapping_add(index).cast(), size_of::<[T; N]>(), cache)
}

#[inline(always)]
pub unsafe fn global_store_vec<T: Pod, const N: usize>(
    base: *mut T,
    _: usize,
    index: usize,
    values: [T; N],
    cache: Cache,
) {
    store_wide(base.wrapping_add(index).cast(), size_of::<[T; N]>(), values, cache);
}

/// Loads 16 bytes of words in one access. Each word is read atomically (relaxed, GPU scope), not all of them together.
#[inline(always)]
pub unsafe fn global_atomic_load_vec<T: AtomicWord, const N: usize>(base: *mut T, _: usize, index: usize) -> [T; N] {
    let from = base.wrapping_add(index);
    let mut value = MaybeUninit::<[T; N]>::uninit();
    let out = value.as_mut_ptr();
    if size_of::<T>() == 4 {
        let (a, b, c, d): (u32, u32, u32, u32);
        asm!("ld.relaxed.gpu.global.v4.b32 {{{}, {}, {}, {}}}, [{}];", out(reg32) a, out(reg32) b, out(reg32) c,
            out(reg32) d, in(reg64) from, options(nostack, preserves_flags));
        out.cast::<[u32; 4]>().write_unaligned([a, b, c, d]);
    } else {
        let (a, b): (u64, u64);
        asm!("ld.relaxed.gpu.global.v2.b64 {{{}, {}}}, [{}];", out(reg64) a, out(reg64) b, in(reg64) from,
            options(nostack, preserves_flags));
        out.cast::<[u64; 2]>().write_unaligned([a, b]);
    }
    value.assume_init()
}

/// The instructions for one width of atomics.
pub trait AtomicWord: Copy {
    unsafe fn load(address: *const Self, scope: Scope, order: Order) -> Self;
    unsafe fn store(address: *mut Self, value: Self, scope: Scope, order: Order);
    unsafe fn rmw(address: *mut Self, operation: Rmw, value: Self, scope: Scope, order: Order) -> Self;
    unsafe fn compare_exchange(address: *mut Self, expected: Self, new: Self, scope: Scope, order: Order) -> Self;
    unsafe fn shared_load(address: *const Self) -> Self;
    unsafe fn shared_store(address: *mut Self, value: Self);
    unsafe fn shared_rmw(address: *mut Self, operation: Rmw, value: Self) -> Self;
    unsafe fn shared_compare_exchange(address: *mut Self, expected: Self, new: Self) -> Self;
}

/// Expands `$body!(".scope")` for the requested scope, which is a constant after inlining.
macro_rules! for_scope {
    ($scope:expr, $body:ident, $($rest:literal),*) => {
        match $scope {
            Scope::Block => $body!(".cta", $($rest),*),
            Scope::Gpu => $body!(".gpu", $($rest),*),
            Scope::System => $body!(".sys", $($rest),*),
        }
    };
}

macro_rules! atomic_word {
    ($type:ty, $core:ty, $class:ident, $bits:literal, $number:literal, $add:literal) => {
        impl AtomicWord for $type {
            #[inline(always)]
            unsafe fn load(address: *const Self, scope: Scope, order: Order) -> Self {
                let value: Self;
                macro_rules! load {
                    ($at:literal, $how:literal) => {
                        asm!(concat!("ld", $how, $at, ".global.", $bits, " {}, [{}];"), out($class) value,
                            in(reg64) address, options(nostack, preserves_flags))
                    };
                }
                match order {
                    Order::Relaxed => for_scope!(scope, load, ".relaxed"),
                    _ => for_scope!(scope, load, ".acquire"),
                }
                value
            }

            #[inline(always)]
            unsafe fn store(address: *mut Self, value: Self, scope: Scope, order: Order) {
                macro_rules! store {
                    ($at:literal, $how:literal) => {
                        asm!(concat!("st", $how, $at, ".global.", $bits, " [{}], {};"), in(reg64) address,
                            in($class) value, options(nostack, preserves_flags))
                    };
                }
                match order {
                    Order::Relaxed => for_scope!(scope, store, ".relaxed"),
                    _ => for_scope!(scope, store, ".release"),
                }
            }

            #[inline(always)]
            unsafe fn rmw(address: *mut Self, operation: Rmw, value: Self, scope: Scope, order: Order) -> Self {
                let old: Self;
                macro_rules! rmw {
                    ($at:literal, $how:literal, $name:literal, $kind:literal) => {
                        asm!(concat!("atom", $how, $at, ".global.", $name, $kind, " {}, [{}], {};"), out($class) old,
                            in(reg64) address, in($class) value, options(nostack, preserves_flags))
                    };
                }
                macro_rules! ordered {
                    ($name:literal, $kind:literal) => {
                        match order {
                            Order::Relaxed => for_scope!(scope, rmw, ".relaxed", $name, $kind),
                            Order::Acquire => for_scope!(scope, rmw, ".acquire", $name, $kind),
                            Order::Release => for_scope!(scope, rmw, ".release", $name, $kind),
                            Order::AcqRel => for_scope!(scope, rmw, ".acq_rel", $name, $kind),
                        }
                    };
                }
                match operation {
                    Rmw::Add => ordered!("add.", $add),
                    Rmw::Min => ordered!("min.", $number),
                    Rmw::Max => ordered!("max.", $number),
                    Rmw::And => ordered!("and.", $bits),
                    Rmw::Or => ordered!("or.", $bits),
                    Rmw::Xor => ordered!("xor.", $bits),
                    Rmw::Exchange => ordered!("exch.", $bits),
                }
                old
            }

            #[inline(always)]
            unsafe fn compare_exchange(address: *mut Self, expected: Self, new: Self, scope: Scope, order: Order) -> Self {
                let old: Self;
                macro_rules! cas {
                    ($at:literal, $how:literal) => {
                        asm!(concat!("atom", $how, $at, ".global.cas.", $bits, " {}, [{}], {}, {};"), out($class) old,
                            in(reg64) address, in($class) expected, in($class) new, options(nostack, preserves_flags))
                    };
                }
                match order {
                    Order::Relaxed => for_scope!(scope, cas, ".relaxed"),
                    Order::Acquire => for_scope!(scope, cas, ".acquire"),
                    Order::Release => for_scope!(scope, cas, ".release"),
                    Order::AcqRel => for_scope!(scope, cas, ".acq_rel"),
                }
                old
            }

            #[inline(always)]
            unsafe fn shared_load(address: *const Self) -> Self {
                (*address.cast::<$core>()).load(Ordering::Relaxed)
            }

            #[inline(always)]
            unsafe fn shared_store(address: *mut Self, value: Self) {
                (*address.cast::<$core>()).store(value, Ordering::Relaxed);
            }

            #[inline(always)]
            unsafe fn shared_rmw(address: *mut Self, operation: Rmw, value: Self) -> Self {
                let word = &*address.cast::<$core>();
                match operation {
                    Rmw::Add => word.fetch_add(value, Ordering::Relaxed),
                    Rmw::Min => word.fetch_min(value, Ordering::Relaxed),
                    Rmw::Max => word.fetch_max(value, Ordering::Relaxed),
                    Rmw::And => word.fetch_and(value, Ordering::Relaxed),
                    Rmw::Or => word.fetch_or(value, Ordering::Relaxed),
                    Rmw::Xor => word.fetch_xor(value, Ordering::Relaxed),
                    Rmw::Exchange => word.swap(value, Ordering::Relaxed),
                }
            }

            #[inline(always)]
            unsafe fn shared_compare_exchange(address: *mut Self, expected: Self, new: Self) -> Self {
                let word = &*address.cast::<$core>();
                match word.compare_exchange(expected, new, Ordering::Relaxed, Ordering::Relaxed) {
                    Ok(old) | Err(old) => old,
                }
            }
        }
    };
}

// `add` has no signed 64-bit form; two's complement needs none.
atomic_word!(u32, AtomicU32, reg32, "b32", "u32", "u32");
atomic_word!(i32, AtomicI32, reg32, "b32", "s32", "u32");
atomic_word!(u64, AtomicU64, reg64, "b64", "u64", "u64");
atomic_word!(i64, AtomicI64, reg64, "b64", "s64", "u64");

/// Floats that can be added to atomically.
pub trait AtomicFloat: Copy {
    unsafe fn add(address: *mut Self, value: Self, scope: Scope, order: Order) -> Self;
}

macro_rules! atomic_float {
    ($type:ty, $class:ident, $kind:literal) => {
        impl AtomicFloat for $type {
            #[inline(always)]
            unsafe fn add(address: *mut Self, value: Self, scope: Scope, order: Order) -> Self {
                let old: Self;
                macro_rules! add {
                    ($at:literal, $how:literal) => {
                        asm!(concat!("atom", $how, $at, ".global.add.", $kind, " {}, [{}], {};"), out($class) old,
                            in(reg64) address, in($class) value, options(nostack, preserves_flags))
                    };
                }
                match order {
                    Order::Relaxed => for_scope!(scope, add, ".relaxed"),
                    Order::Acquire => for_scope!(scope, add, ".acquire"),
                    Order::Release => for_scope!(scope, add, ".release"),
                    Order::AcqRel => for_scope!(scope, add, ".acq_rel"),
                }
                old
            }
        }
    };
}

atomic_float!(f32, reg32, "f32");
atomic_float!(f64, reg64, "f64");

#[inline(always)]
pub unsafe fn global_float_add<T: AtomicFloat>(
    base: *mut T,
    _: usize,
    index: usize,
    value: T,
    scope: Scope,
    order: Order,
) -> T {
    T::add(base.wrapping_add(index), value, scope, order)
}

#[inline(always)]
pub unsafe fn global_atomic_load<T: AtomicWord>(base: *mut T, _: usize, index: usize, scope: Scope, order: Order) -> T {
    T::load(base.wrapping_add(index), scope, order)
}

#[inline(always)]
pub unsafe fn global_atomic_store<T: AtomicWord>(
    base: *mut T,
    _: usize,
    index: usize,
    value: T,
    scope: Scope,
    order: Order,
) {
    T::store(base.wrapping_add(index), value, scope, order);
}

#[inline(always)]
pub unsafe fn global_rmw<T: AtomicWord>(
    base: *mut T,
    _: usize,
    operation: Rmw,
    index: usize,
    value: T,
    scope: Scope,
    order: Order,
) -> T {
    T::rmw(base.wrapping_add(index), operation, value, scope, order)
}

#[inline(always)]
pub unsafe fn global_compare_exchange<T: AtomicWord>(
    base: *mut T,
    _: usize,
    index: usize,
    expected: T,
    new: T,
    scope: Scope,
    order: Order,
) -> T {
    T::compare_exchange(base.wrapping_add(index), expected, new, scope, order)
}

// Shared memory.

/// The element type of the launch-sized region, aligned for the widest access.
#[repr(C, align(16))]
struct Line([u32; 4]);

/// Returns the address of `bytes` bytes at `offset` in the block's shared memory.
#[inline(always)]
pub unsafe fn shared_base(offset: usize, _bytes: usize) -> *mut u8 {
    core::intrinsics::gpu::gpu_launch_sized_workgroup_mem::<Line>().cast::<u8>().wrapping_add(offset)
}

#[inline(always)]
pub unsafe fn shared_load<T: Pod>(base: *const T, _: usize, index: usize) -> T {
    base.add(index).read()
}

#[inline(always)]
pub unsafe fn shared_store<T: Pod>(base: *mut T, _: usize, index: usize, value: T) {
    base.add(index).write(value);
}

#[inline(always)]
pub fn expect_part<T>(_: bool, _: *const T, _: usize, _: usize, _: usize) {}

/// An array aligned to its size, so that LLVM moves it in one access.
#[repr(C, align(4))]
#[derive(Clone, Copy)]
struct Aligned4<V>(V);
#[repr(C, align(8))]
#[derive(Clone, Copy)]
struct Aligned8<V>(V);
#[repr(C, align(16))]
#[derive(Clone, Copy)]
struct Aligned16<V>(V);

#[inline(always)]
pub unsafe fn shared_load_vec<T: Pod, const N: usize>(base: *const T, _: usize, index: usize) -> [T; N] {
    let address = base.add(index);
    match size_of::<[T; N]>() {
        16 => address.cast::<Aligned16<[T; N]>>().read().0,
        8 => address.cast::<Aligned8<[T; N]>>().read().0,
        _ => address.cast::<Aligned4<[T; N]>>().read().0,
    }
}

#[inline(always)]
pub unsafe fn shared_store_vec<T: Pod, const N: usize>(base: *mut T, _: usize, index: usize, values: [T; N]) {
    let address = base.add(index);
    match size_of::<[T; N]>() {
        16 => address.cast::<Aligned16<[T; N]>>().write(Aligned16(values)),
        8 => address.cast::<Aligned8<[T; N]>>().write(Aligned8(values)),
        _ => address.cast::<Aligned4<[T; N]>>().write(Aligned4(values)),
    }
}

#[inline(always)]
pub unsafe fn shared_atomic_load<T: AtomicWord>(base: *mut T, _: usize, index: usize) -> T {
    T::shared_load(base.add(index))
}

#[inline(always)]
pub unsafe fn shared_atomic_store<T: AtomicWord>(base: *mut T, _: usize, index: usize, value: T) {
    T::shared_store(base.add(index), value);
}

#[inline(always)]
pub unsafe fn shared_rmw<T: AtomicWord>(base: *mut T, _: usize, operation: Rmw, index: usize, value: T) -> T {
    T::shared_rmw(base.add(index), operation, value)
}

#[inline(always)]
pub unsafe fn shared_compare_exchange<T: AtomicWord>(base: *mut T, _: usize, index: usize, expected: T, new: T) -> T {
    T::shared_compare_exchange(base.add(index), expected, new)
}
