//! Operations on all slots, in order. Each part has its own buckets.

use super::append::{Appender, put};
use super::atomics::{add, counter};
use super::table::Table;
use crate::device::{Assign, Keep, Split, Sweep, Unpack};
use crate::view::{Bucket, Slots};
use bytemuck::Pod;
use gpu_dictionary::WordCode as KeyCode;
use gpu_primitives::GlobalMut;
use gpu_primitives::kernel::Team;
use std::ops::Range;

/// # Safety
/// The contract of [`Unpack`].
pub unsafe fn unpack<C: KeyCode, V: Pod, const WIDTH: usize>(kernel: Unpack<C, V, WIDTH>, team: Team) {
    let Unpack { table, slots, .. } = kernel;
    // SAFETY: the table is only read.
    let table = unsafe { Table::of_view(table) };
    let len = table.buckets() * WIDTH;
    assert!(
        slots.keys.len() >= len && (size_of::<V>() == 0 || slots.values.len() >= len),
        "there is room for all slots"
    );
    let copy = |_: usize, buckets: Range<usize>| {
        for bucket in buckets {
            // SAFETY: the bucket exists, and there is room for it, which no other part has.
            unsafe {
                slots.keys.as_mut_ptr().add(bucket * WIDTH).copy_from_nonoverlapping(table.keys(bucket as u32), WIDTH);
                if size_of::<V>() > 0 {
                    let to = slots.values.as_mut_ptr().add(bucket * WIDTH);
                    to.copy_from_nonoverlapping(table.values(bucket as u32), WIDTH);
                }
            }
        }
    };
    // SAFETY: the body captures arguments. Each call writes slots of its own.
    unsafe { team.divide(table.buckets(), copy) };
}

/// # Safety
/// The contract of [`Assign`].
pub unsafe fn assign<C: KeyCode, V: Pod, const WIDTH: usize>(kernel: Assign<C, V, WIDTH>, team: Team) {
    let Assign { table, values, .. } = kernel;
    if size_of::<V>() == 0 {
        return;
    }
    // SAFETY: nothing writes the values.
    let (table, values) = (Table::new(table), unsafe { values.as_slice() });
    let assign = |_: usize, buckets: Range<usize>| {
        for bucket in buckets {
            let values = &values[bucket * WIDTH..][..WIDTH];
            // SAFETY: the bucket exists, and no other part has it.
            let (empties, deads) = unsafe { table.free(bucket as u32, &table.load(bucket as u32)) };
            for (slot, &value) in values.iter().enumerate().filter(|(slot, _)| (empties | deads) >> slot & 1 == 0) {
                // SAFETY: the same.
                unsafe { table.set_value(bucket as u32, slot as u32, value) };
            }
        }
    };
    // SAFETY: the body captures arguments. Each call writes slots of its own.
    unsafe { team.divide(table.buckets(), assign) };
}

/// Deletes the keys of all slots that `goes` returns for a bucket, and counts them. It may return free slots.
///
/// # Safety
/// Nothing else uses the table. Several threads can call `goes` at the same time.
#[inline(always)]
unsafe fn delete<C: KeyCode, V: Pod, const WIDTH: usize>(
    table: Table<C, V, WIDTH>,
    erased: GlobalMut<u64>,
    team: Team,
    goes: impl Fn(u32) -> Slots,
) {
    // SAFETY: the counter is used only in this way.
    let erased = unsafe { counter(erased, 0) };
    let delete = |_: usize, buckets: Range<usize>| {
        let mut erased_here = 0;
        for bucket in buckets.start as u32..buckets.end as u32 {
            let going = goes(bucket);
            if going == 0 {
                continue;
            }
            // SAFETY: the bucket exists, and no other part has it.
            let keys: Bucket<C, WIDTH> = unsafe { table.load(bucket) };
            let (empties, deads) = table.free(bucket, &keys);
            let free = if empties != 0 { table.map.empty.of(bucket) } else { table.map.dead.of(bucket) };
            let mut going = going & !(empties | deads) & ((1 << WIDTH) - 1);
            erased_here += u64::from(going.count_ones());
            while going != 0 {
                // SAFETY: the same.
                unsafe { table.keys(bucket).add(going.trailing_zeros() as usize).write(free) };
                going &= going - 1;
            }
        }
        add(erased, erased_here);
    };
    // SAFETY: the body captures arguments and a counter. Each call writes slots of its own.
    unsafe { team.divide(table.buckets(), delete) };
}

/// # Safety
/// The contract of [`Keep`].
pub unsafe fn keep<C: KeyCode, V: Pod, const WIDTH: usize>(kernel: Keep<C, V, WIDTH>, team: Team) {
    let Keep { table, keeps, erased, .. } = kernel;
    // SAFETY: nothing writes what to keep.
    let keeps = unsafe { keeps.as_slice() };
    let goes = |bucket: u32| {
        let keeps = &keeps[bucket as usize * WIDTH..][..WIDTH];
        keeps.iter().enumerate().fold(0, |goes, (slot, &keep)| goes | Slots::from(keep == 0) << slot)
    };
    // SAFETY: guaranteed by the caller.
    unsafe { delete(Table::new(table), erased, team, goes) };
}

/// # Safety
/// The contract of [`Sweep`].
pub unsafe fn sweep<C: KeyCode, V: Pod, const WIDTH: usize>(kernel: Sweep<C, V, WIDTH>, team: Team) {
    let Sweep { table, marks, erased, .. } = kernel;
    // SAFETY: guaranteed by the caller. Nothing marks slots.
    unsafe { delete(Table::new(table), erased, team, |bucket| marks.marked_natively(bucket)) };
}

/// # Safety
/// The contract of [`Split`].
pub unsafe fn split<C: KeyCode, V: Pod, const WIDTH: usize>(kernel: Split<C, V, WIDTH>, team: Team) {
    let Split { from, to, moved, moved_count, .. } = kernel;
    // SAFETY: the source is only read, and the counter is used only to append.
    let (from, to, moved_count) = unsafe { (Table::of_view(from), Table::new(to), counter(moved_count, 0)) };
    assert!(to.buckets() >= 2 * from.buckets(), "there are twice as many buckets");
    let split = |_: usize, buckets: Range<usize>| {
        // SAFETY: positions in the list are given once.
        let write = |at: usize, (key, value)| unsafe { put(moved, at, key, value) };
        let mut list = Appender::new(moved_count, (C::MIN, V::zeroed()), write);
        for bucket in buckets.start as u32..buckets.end as u32 {
            let halves = [2 * bucket, 2 * bucket + 1];
            // The two buckets, and how many pairs each has.
            let mut keys = halves.map(|half| [to.map.empty.of(half); WIDTH]);
            let (mut values, mut lens) = ([[V::zeroed(); WIDTH]; 2], [0; 2]);
            // SAFETY: the bucket exists, and nothing changes the source.
            let there: Bucket<C, WIDTH> = unsafe { from.load(bucket) };
            let (empties, deads) = from.free(bucket, &there);
            for (slot, &key) in there.0.iter().enumerate().filter(|(slot, _)| (empties | deads) >> slot & 1 == 0) {
                // SAFETY: the same.
                let value = unsafe { from.value(bucket, slot as u32) };
                if from.map.hash.choices(key).get(0) == bucket {
                    let half = to.map.hash.choices(key).get(0) as usize % 2;
                    (keys[half][lens[half]], values[half][lens[half]]) = (key, value);
                    lens[half] += 1;
                } else {
                    list.push((key, value));
                }
            }
            for half in 0..2 {
                // SAFETY: the bucket exists, and no other part has it.
                unsafe {
                    to.keys(halves[half]).cast::<[C; WIDTH]>().write(keys[half]);
                    if size_of::<V>() > 0 {
                        to.values(halves[half]).cast::<[V; WIDTH]>().write(values[half]);
                    }
                }
            }
        }
        list.finish();
    };
    // SAFETY: the body captures arguments and a counter. Each call writes slots and pairs of its own.
    unsafe { team.divide(from.buckets(), split) };
}
