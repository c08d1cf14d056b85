//! Kernels that go through all slots, in order: for operations on all pairs.

use super::pairs::PairsMut;
use super::probe::{THREADS, index};
use crate::view::{CuckooView, TableMut, key_index, value_index};
use bytemuck::Pod;
use gpu_dictionary::WordCode as KeyCode;
use gpu_primitives::arch::{Order, Scope};
use gpu_primitives::kernel::kernel;
use gpu_primitives::{Global, GlobalMut, warp};

/// Copies all slots, in order: also free ones, whose contents are of no importance.
///
/// Floor: every slot is read and written once.
///
/// # Safety
/// The launch has at least one thread per slot. `slots` has room for all slots. While the kernel runs, nobody changes the
/// table, and nobody else uses the output.
#[kernel(threads = THREADS)]
pub unsafe fn unpack<C: KeyCode, V: Pod, const WIDTH: usize>(table: CuckooView<C, V, WIDTH>, slots: PairsMut<C, V>) {
    let i = index();
    let (bucket, slot) = ((i / WIDTH) as u32, i % WIDTH);
    if i / WIDTH < table.map.hash.buckets as usize {
        slots.set(i, table.key(bucket, slot), table.value(bucket, slot));
    }
}

/// Sets the values of all pairs.
///
/// Floor: reads the keys of the table and the values once, and writes the values once.
///
/// # Safety
/// The launch has at least one thread per slot. `values` has one element per slot, in order. While the kernel runs, nobody
/// else uses the table, and nobody writes the values.
#[kernel(threads = THREADS)]
pub unsafe fn assign<C: KeyCode, V: Pod, const WIDTH: usize>(table: TableMut<C, V, WIDTH>, values: Global<V>) {
    let i = index();
    let (bucket, slot) = ((i / WIDTH) as u32, i % WIDTH);
    if size_of::<V>() == 0 || i / WIDTH >= table.map.hash.buckets as usize {
        return;
    }
    let key = table.keys.get(key_index::<C, V>(WIDTH, bucket) + slot);
    if key != table.map.empty.of(bucket) && key != table.map.dead.of(bucket) {
        table.values.set(value_index::<C, V>(WIDTH, bucket) + slot, values.get(i));
    }
}

/// Deletes all pairs but those to keep, and counts them. The slots become empty or dead as in [`Erase`](super::Erase).
///
/// Floor: reads the keys of the table and a byte per slot, and writes the keys of the pairs that go.
///
/// # Safety
/// The launch has at least one thread per slot. `keeps` has one element per slot, in order: 0 to delete the pair. `erased`
/// has one element, to which the number of deleted keys is added. While the kernel runs, nobody else uses the table or
/// `erased`, and nobody writes `keeps`.
#[kernel(threads = THREADS)]
pub unsafe fn keep<C: KeyCode, V: Pod, const WIDTH: usize>(
    table: TableMut<C, V, WIDTH>,
    keeps: Global<u8>,
    erased: GlobalMut<u64>,
) {
    let i = index();
    let map = table.map;
    let (bucket, slot) = ((i / WIDTH) as u32, i % WIDTH);
    let at = key_index::<C, V>(WIDTH, bucket) + slot;
    let (mut is_empty, mut goes) = (false, false);
    if i / WIDTH < map.hash.buckets as usize {
        let key = table.keys.get(at);
        is_empty = key == map.empty.of(bucket);
        goes = !is_empty && key != map.dead.of(bucket) && keeps.get(i) == 0;
    }
    // The slots of this bucket are neighbouring lanes.
    let shift = warp::lane_id() / WIDTH as u32 * WIDTH as u32;
    let empties = (warp::ballot(warp::FULL, is_empty) >> shift) & ((1u32 << WIDTH) - 1);
    let going = warp::ballot(warp::FULL, goes);
    if goes {
        table.keys.set(at, if empties != 0 { map.empty.of(bucket) } else { map.dead.of(bucket) });
    }
    if warp::lane_id() == 0 && going != 0 {
        erased.atomic_add(0, going.count_ones() as u64, Scope::Gpu, Order::Relaxed);
    }
}
