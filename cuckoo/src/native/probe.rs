//! Lookups, deletions of some keys, and the list of all pairs.

use super::append::{Appender, put};
use super::atomics::{add, counter};
use super::table::{Search, Table};
use crate::device::{Collect, Erase, Find, Take};
use crate::view::Position;
use bytemuck::Pod;
use gpu_dictionary::WordCode as KeyCode;
use gpu_primitives::GlobalMut;
use gpu_primitives::kernel::Team;
use std::ops::Range;

/// Looks up keys. Writes whether each is present, and its value if there is room for values. Calls `request` with buckets
/// that will be searched, and `note` with the positions of keys that are present.
///
/// # Safety
/// Nothing changes the table or the keys, and nothing else uses the outputs. Several threads can call the functions at the
/// same time.
#[inline(always)]
unsafe fn look_up<C: KeyCode, V: Pod, const WIDTH: usize>(
    (table, keys): (Table<C, V, WIDTH>, &[C]),
    values: GlobalMut<V>,
    found: GlobalMut<u8>,
    team: Team,
    request: impl Fn(u32),
    note: impl Fn(Position),
) {
    let has_values = size_of::<V>() > 0 && !values.is_empty();
    assert!(found.len() >= keys.len() && (!has_values || values.len() >= keys.len()), "there is a result for each key");
    let look_up = |_: usize, range: Range<usize>| {
        table.each_key(keys, range, &request, |i, key, choices, others| {
            // SAFETY: the buckets are those of the key. There is a result for each key, which no other part writes. The
            // caller guarantees the rest.
            unsafe {
                let search = table.find_in(key, choices, table.choices(others));
                if !others && matches!(search, Search::Open) {
                    return false;
                }
                let position = search.found();
                found.as_mut_ptr().add(i).write(u8::from(position.is_some()));
                if let Some(position) = position {
                    note(position);
                }
                if has_values {
                    let value = position.map_or(V::zeroed(), |at| table.value(at.bucket, at.slot));
                    values.as_mut_ptr().add(i).write(value);
                }
                true
            }
        });
    };
    // SAFETY: the body captures arguments, and what the caller allows. Each call writes results of its own.
    unsafe { team.divide(keys.len(), look_up) };
}

/// # Safety
/// The contract of [`Find`].
pub unsafe fn find<C: KeyCode, V: Pod, const WIDTH: usize>(kernel: Find<C, V, WIDTH>, team: Team) {
    let Find { table, keys, values, found, .. } = kernel;
    // SAFETY: guaranteed by the caller. The functions do nothing.
    unsafe { look_up((Table::of_view(table), keys.as_slice()), values, found, team, |_| {}, |_| {}) };
}

/// # Safety
/// The contract of [`Take`].
pub unsafe fn take<C: KeyCode, V: Pod, const WIDTH: usize>(kernel: Take<C, V, WIDTH>, team: Team) {
    let Take { table, marks, keys, values, found, .. } = kernel;
    // SAFETY: guaranteed by the caller. Marks are set atomically.
    unsafe {
        let mark = |at: Position| {
            marks.mark_natively(at.bucket, at.slot);
        };
        let table = (Table::of_view(table), keys.as_slice());
        look_up(table, values, found, team, |bucket| marks.prefetch(bucket), mark);
    };
}

/// # Safety
/// The contract of [`Erase`].
pub unsafe fn erase<C: KeyCode, V: Pod, const WIDTH: usize>(kernel: Erase<C, V, WIDTH>, team: Team) {
    let Erase { table, keys, erased, .. } = kernel;
    let table = Table::new(table);
    // SAFETY: nothing writes the keys, and the counter is used only in this way.
    let (keys, erased) = unsafe { (keys.as_slice(), counter(erased, 0)) };
    let erase = |_: usize, range: Range<usize>| {
        let mut erased_here = 0;
        table.each_key(
            keys,
            range,
            |_| {},
            |_, key, choices, others| {
                // SAFETY: the buckets are those of the key, and the table is changed only in this way.
                match unsafe { table.erase(key, choices, table.choices(others)) } {
                    Search::Found(is_mine) => erased_here += u64::from(is_mine),
                    Search::Absent => {}
                    Search::Open => return false,
                }
                true
            },
        );
        add(erased, erased_here);
    };
    // SAFETY: the body captures arguments and a counter. Common memory is written atomically.
    unsafe { team.divide(keys.len(), erase) };
}

/// # Safety
/// The contract of [`Collect`].
pub unsafe fn collect<C: KeyCode, V: Pod, const WIDTH: usize>(kernel: Collect<C, V, WIDTH>, team: Team) {
    let Collect { table, pairs, count, .. } = kernel;
    // SAFETY: the table is only read, and the counter is used only to append.
    let (table, count) = unsafe { (Table::of_view(table), counter(count, 0)) };
    let collect = |_: usize, buckets: Range<usize>| {
        let write = |at: usize, (key, value)| {
            if at < pairs.keys.len() {
                // SAFETY: positions in the list are given once.
                unsafe { put(pairs, at, key, value) };
            }
        };
        let mut list = Appender::new(count, (C::MIN, V::zeroed()), write);
        for bucket in buckets.start as u32..buckets.end as u32 {
            // SAFETY: the bucket exists, and nothing changes the table.
            let keys = unsafe { table.load(bucket) };
            let (empties, deads) = table.free(bucket, &keys);
            let mut live = !(empties | deads) & ((1 << WIDTH) - 1);
            while live != 0 {
                let slot = live.trailing_zeros();
                // SAFETY: the same.
                list.push((keys.0[slot as usize], unsafe { table.value(bucket, slot) }));
                live &= live - 1;
            }
        }
        list.finish();
    };
    // SAFETY: the body captures arguments and a counter. Each call writes pairs of its own.
    unsafe { team.divide(table.buckets(), collect) };
}
