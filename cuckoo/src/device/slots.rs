//! Kernels that go through all slots, in order: for operations on all pairs.

use super::marks::Marks;
use super::probe::{THREADS, index};
use crate::view::{CuckooView, TableMut, key_index, value_index};
use bytemuck::Pod;
use gpu_dictionary::WordCode as KeyCode;
use gpu_primitives::arch::{Order, Scope};
use gpu_primitives::kernel::{PairsMut, kernel};
use gpu_primitives::{Global, GlobalMut, warp};

/// Copies all slots, in order: also free ones, whose contents are of no importance.
///
/// Floor: every slot is read and written once.
///
/// # Safety
/// The launch has at least one thread per slot. `slots` has room for all slots. While the kernel runs, nobody changes the
/// table, and nobody else uses the output.
#[kernel(listed = super::UNPACK_PTX, threads = THREADS, native = crate::native::slots::unpack)]
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
#[kernel(listed = super::ASSIGN_PTX, threads = THREADS, native = crate::native::slots::assign)]
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
#[kernel(listed = super::KEEP_PTX, threads = THREADS, native = crate::native::slots::keep)]
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
    delete(table, bucket, at, is_empty, goes, erased);
}

/// Deletes the pairs whose slots are marked, and counts them. The slots become empty or dead as in [`Erase`](super::Erase).
///
/// Floor: 4 bytes per bucket, and the keys of buckets with marks, all in order. Deleting most of a table in this way moves less
/// than a sector read and written per key.
///
/// # Safety
/// The launch has at least one thread per slot. There is a mark for every bucket, and only slots with keys are marked. `erased`
/// has one element, to which the number of deleted keys is added. While the kernel runs, nobody else uses the table, the marks
/// or `erased`.
#[kernel(listed = super::SWEEP_PTX, threads = THREADS, native = crate::native::slots::sweep)]
pub unsafe fn sweep<C: KeyCode, V: Pod, const WIDTH: usize>(
    table: TableMut<C, V, WIDTH>,
    marks: Marks,
    erased: GlobalMut<u64>,
) {
    let i = index();
    let (bucket, slot) = ((i / WIDTH) as u32, i % WIDTH);
    let at = key_index::<C, V>(WIDTH, bucket) + slot;
    let marked = if i / WIDTH < table.map.hash.buckets as usize { marks.marked(bucket) } else { 0 };
    let is_empty = marked != 0 && table.keys.get(at) == table.map.empty.of(bucket);
    delete(table, bucket, at, is_empty, (marked >> slot) & 1 != 0, erased);
}

/// Deletes the key of this thread's slot if it `goes`. The slots of a bucket are those of neighbouring lanes.
///
/// # Safety
/// All threads of the warp call it, each for one slot, in order. If any key of a bucket goes, `is_empty` is right for all of its
/// slots. The requirements of [`Keep`] for the table and `erased`.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
unsafe fn delete<C: KeyCode, V: Pod, const WIDTH: usize>(
    table: TableMut<C, V, WIDTH>,
    bucket: u32,
    at: usize,
    is_empty: bool,
    goes: bool,
    erased: GlobalMut<u64>,
) {
    let map = table.map;
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
