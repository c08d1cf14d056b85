//! Operands: values that are combined with what is older, and the kernels that combine them.
//!
//! A level holds at most one element per key that counts, the last one of the key's run. If a level has operands, the elements
//! before it are *nothing*, with the identity of the operation as their value. So a query that has found the last element of a key in a level need not look at the others, and the
//! elements of a key in several levels can be merged in any grouping.

use crate::KeyCode;
use crate::levels::device::find::Levels;
use crate::levels::device::payload::{KIND, Marked, MarkedLong, NOTHING, OPERAND, PUT, Payload, TOMBSTONE};
use crate::levels::device::table::THREADS as LOOKUP_THREADS;
use core::marker::PhantomData;
use gpu_primitives::arch::thread;
use gpu_primitives::arch::warp::{FULL, LANES, ballot, lane_id};
use gpu_primitives::block::lookback::LookBack;
use gpu_primitives::block::scan;
use gpu_primitives::code::U256;
use gpu_primitives::kernel::{Holes, Param, RegisterRepr, kernel};
use gpu_primitives::monoid::{Combine, HoleMonoid};
use gpu_primitives::view::{Global, GlobalMut, SharedMemory, shared_bytes};

/// Threads per block.
const THREADS: u32 = 256;

/// The first element of a key, among the bits of its kind.
const FIRST: u32 = 4;

/// Returns the number of items per thread: an odd number, to avoid bank conflicts.
#[must_use]
pub const fn combine_items<P>() -> usize {
    if size_of::<P>() > 8 { 5 } else { 9 }
}

/// Returns the number of items per tile.
#[must_use]
pub const fn combine_tile(items: usize) -> usize {
    THREADS as usize * items
}

/// Combines the elements of a key, from old to new. What comes before the first element of another key is forgotten.
#[derive(Clone, Copy)]
struct OldToNew<P, Op> {
    operation: Op,
    payload: PhantomData<P>,
}

// SAFETY: the only field with a size is a parameter. Kernels make it themselves; it is never passed to one.
unsafe impl<P: 'static + Copy, Op: Param> Param for OldToNew<P, Op> {
    const HOLES: Holes = Op::HOLES;
}

impl<P: Payload, Op: Combine<P::Value>> Combine<P> for OldToNew<P, Op> {
    #[inline(always)]
    fn identity(&self) -> P {
        P::new(bytemuck::Zeroable::zeroed(), NOTHING)
    }

    #[inline(always)]
    fn combine(&self, a: P, b: P) -> P {
        let (older, newer) = (a.kind() & KIND, b.kind() & KIND);
        // Computed in any case: a branch around a hole would cost more.
        let combined = self.operation.combine(a.value(), b.value());
        let (value, kind) = if b.kind() & FIRST != 0 {
            (b.value(), newer)
        } else if newer == NOTHING {
            (a.value(), older)
        } else if newer != OPERAND || older == NOTHING {
            (b.value(), newer)
        } else if older == TOMBSTONE {
            (b.value(), PUT)
        } else {
            (combined, older)
        };
        P::new(value, kind | (a.kind() | b.kind()) & FIRST)
    }
}

/// Returns the shared memory of a block: the items of its tile, one per warp, the prefix of the tile, and the ticket.
const fn shared<P>(items: usize) -> usize {
    shared_bytes::<P>(combine_tile(items))
        + shared_bytes::<P>((THREADS / LANES) as usize)
        + shared_bytes::<P>(1)
        + LookBack::BYTES
}

/// Combines the elements of each key, from old to new. The last element of a key receives the result. Those before it become
/// nothing.
///
/// It is a [scan](gpu_primitives::scan) that restarts at each new key, in place. A result is an operand only if all elements
/// of its key are operands, or nothing. After a tombstone an operand becomes a value. If `only_operands` is not 0, the marks are
/// not read: all elements are operands, or nothing, which has the identity as its value.
///
/// Cost: reads each key once, or twice from the cache; reads and writes each value once, and two bits.
///
/// # Safety
/// - The launch has one block per tile of `combine_tile(ITEMS)` elements.
/// - The keys ascend. There are as many values. `marks` has room for a bit per element for tombstones, in words of 32 elements, and as
///   many for operands.
/// - `scratch` comes from the stream's look-back words, for one `P` per tile.
/// - While the kernel runs, nobody writes the keys, and nobody else uses the other buffers.
#[kernel(listed, threads = THREADS, shared = shared::<P>(ITEMS), native = crate::levels::native::combine_runs)]
pub unsafe fn combine_runs<C: KeyCode, P: Payload<Value: RegisterRepr>, const ITEMS: usize>(
    keys: Global<C>,
    values: GlobalMut<P::Value>,
    marks: GlobalMut<u32>,
    only_operands: u32,
    operation: HoleMonoid<P::Value>,
    scratch: GlobalMut<u64>,
) {
    let mut memory = SharedMemory::new();
    let items = memory.take::<P>(combine_tile(ITEMS));
    let warp_totals = memory.take::<P>((THREADS / LANES) as usize);
    let tile_prefix = memory.take::<P>(1);
    let look_back = LookBack::begin(&mut memory, scratch, thread::grid_dim_x());
    let own = thread::thread_idx_x();
    let start = look_back.tile() * combine_tile(ITEMS);
    let (len, words) = (keys.len(), keys.len().div_ceil(LANES as usize));
    let old_to_new = OldToNew { operation, payload: PhantomData };

    for i in 0..ITEMS as u32 {
        let at = start + (own + i * THREADS) as usize;
        let mut item = old_to_new.identity();
        if at < len {
            let (word, bit) = (at / LANES as usize, at as u32 % LANES);
            let kind = match only_operands {
                0 => (marks.get(word) >> bit & 1) | ((marks.get(words + word) >> bit & 1) * OPERAND),
                _ => OPERAND,
            };
            let is_first = at == 0 || keys.get(at - 1) != keys.get(at);
            item = P::new(values.get(at), kind | (FIRST * u32::from(is_first)));
        }
        items.set((own + i * THREADS) as usize, item);
    }
    thread::sync_threads();

    let mut total = old_to_new.identity();
    for i in 0..ITEMS {
        total = old_to_new.combine(total, items.get(own as usize * ITEMS + i));
    }
    let block = scan::exclusive_scan::<P, _, THREADS>(total, old_to_new, warp_totals);
    look_back.exchange(block.total, old_to_new, |prefix| {
        if lane_id() == 0 {
            tile_prefix.set(0, prefix);
        }
    });
    thread::sync_threads();

    let mut running = old_to_new.combine(tile_prefix.get(0), block.before);
    for i in 0..ITEMS {
        let at = own as usize * ITEMS + i;
        running = old_to_new.combine(running, items.get(at));
        items.set(at, running);
    }
    thread::sync_threads();

    for i in 0..ITEMS as u32 {
        let at = start + (own + i * THREADS) as usize;
        let mut kind = 0;
        if at < len {
            let item = items.get((own + i * THREADS) as usize);
            let is_last = at + 1 == len || keys.get(at + 1) != keys.get(at);
            kind = if is_last { item.kind() & KIND } else { NOTHING };
            values.set(at, if is_last { item.value() } else { operation.identity() });
        }
        let marked = [ballot(FULL, kind & TOMBSTONE != 0), ballot(FULL, kind & OPERAND != 0)];
        if at < len && lane_id() == 0 {
            marks.set(at / LANES as usize, marked[0]);
            marks.set(words + at / LANES as usize, marked[1]);
        }
    }
}

/// Looks up keys in levels of which some have operands: see [`LookupKeys`](crate::levels::device::query::lookup::LookupKeys).
///
/// Cost: see [`Levels::get_combined`].
///
/// # Safety
/// The launch has at least one thread per key. `found` and `values` are as long as `keys`. While the kernel runs, nobody
/// changes the levels or writes the keys, and nobody else uses the outputs.
#[kernel(listed, threads = LOOKUP_THREADS, min_blocks = 4, native = crate::levels::native::lookup_combined)]
pub unsafe fn lookup_combined<C: KeyCode, V: RegisterRepr>(
    levels: Levels<C, V>,
    operation: HoleMonoid<V>,
    keys: Global<C>,
    values: GlobalMut<V>,
    found: GlobalMut<u8>,
) {
    let at = thread::block_idx_x() as usize * LOOKUP_THREADS as usize + thread::thread_idx_x() as usize;
    if at < keys.len() {
        let value = levels.get_combined(keys.get(at), operation);
        found.set(at, u8::from(value.is_some()));
        values.set(at, value.unwrap_or(V::zeroed()));
    }
}

gpu_primitives::instances! {
    static in concat!(env!("CARGO_MANIFEST_DIR"), "/ptx");
    for C in [u32, u64, u128, U256], P in [Marked, MarkedLong]: CombineRuns<C, P, { combine_items::<P>() }>;
    for C in [u32, u64, u128, U256], V in [u32, u64]: LookupCombined<C, V>;
}
