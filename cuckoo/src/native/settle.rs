//! What is done about equal keys after an insertion: the last one gets its value into the table, or all are taken back.

use super::append::value_at;
use super::atomics::{add, counter};
use super::entries::Batch;
use super::table::Table;
use crate::device::{Fate, Raise, Revert, Settle, took_part};
use bytemuck::Pod;
use gpu_dictionary::WordCode as KeyCode;
use gpu_primitives::kernel::Team;
use std::ops::Range;

/// # Safety
/// The contract of [`Raise`].
pub unsafe fn raise<C: KeyCode>(kernel: Raise<C>, team: Team) {
    let Raise { keys, fates, entries, .. } = kernel;
    // SAFETY: nothing writes the inputs, and the entries are used only in this way.
    let (keys, fates) = unsafe { (keys.as_slice(), fates.as_slice()) };
    // SAFETY: the same.
    let batch = unsafe { Batch::new(entries, keys) };
    let recorded = batch.recorded(team);
    let raise = |_: usize, range: Range<usize>| {
        range.filter(|&i| took_part(fates[i]) && recorded.may_have(keys[i])).for_each(|i| batch.raise(i, keys[i]));
    };
    // SAFETY: the body captures arguments. Entries are written atomically.
    unsafe { team.divide(keys.len(), raise) };
}

/// # Safety
/// The contract of [`Settle`].
pub unsafe fn settle<C: KeyCode, V: Pod, const WIDTH: usize>(kernel: Settle<C, V, WIDTH>, team: Team) {
    let Settle { table, pairs, fates, entries, .. } = kernel;
    if size_of::<V>() == 0 {
        return;
    }
    let table = Table::new(table);
    // SAFETY: nothing writes the inputs.
    let (keys, values, fates) = unsafe { (pairs.keys.as_slice(), pairs.values.as_slice(), fates.as_slice()) };
    // SAFETY: the entries are only read.
    let batch = unsafe { Batch::new(entries, keys) };
    let settle = |_: usize, range: Range<usize>| {
        for i in range.filter(|&i| !took_part(fates[i]) && batch.is_last(i, keys[i])) {
            // SAFETY: the buckets are those of the key. Only the last pair of a key writes its value.
            unsafe {
                if let Some(position) = table.find(keys[i]) {
                    table.set_value(position.bucket, position.slot, value_at(values, i));
                }
            }
        }
    };
    // SAFETY: the body captures arguments. Each call writes values of its own.
    unsafe { team.divide(keys.len(), settle) };
}

/// # Safety
/// The contract of [`Revert`].
pub unsafe fn revert<C: KeyCode, V: Pod, const WIDTH: usize>(kernel: Revert<C, V, WIDTH>, team: Team) {
    let Revert { table, keys, history, entries, reverted, erased, .. } = kernel;
    let table = Table::new(table);
    // SAFETY: nothing writes the keys. The entries are only read, and the counter is used only in this way.
    let (keys, erased) = unsafe { (keys.as_slice(), counter(erased, 0)) };
    // SAFETY: the same.
    let batch = unsafe { Batch::new(entries, keys) };
    let has_all = |len: usize| len >= keys.len();
    assert!(has_all(reverted.len()) && has_all(history.keys.len()), "there is an element for each key");
    assert!(size_of::<V>() == 0 || has_all(history.values.len()), "there is an old value for each key");
    let recorded = batch.recorded(team);
    let revert = |_: usize, range: Range<usize>| {
        let mut erased_here = 0;
        for i in range {
            let key = keys[i];
            // SAFETY: the position exists, and no other part has it. The buckets are those of the key. Of several pairs
            // with the same key, at most one was merged, and only that one writes the value.
            unsafe {
                let fate_at = history.keys.as_mut_ptr().add(i);
                let fate = fate_at.read();
                let is_reverted = !took_part(fate) || (recorded.may_have(key) && batch.has(key));
                reverted.as_mut_ptr().add(i).write(u8::from(is_reverted));
                if !is_reverted {
                    continue;
                }
                let (choices, all) = (table.map.hash.choices(key), 0..table.map.hash.hashes);
                if fate == Fate::Merged as u8 {
                    // If another thread deletes the key meanwhile, it was absent, and the value is of no importance.
                    if size_of::<V>() > 0
                        && let Some(held) = table.hold(key, choices, all).found()
                    {
                        table.set_value(held.bucket, held.slot, history.values.as_mut_ptr().add(i).read());
                    }
                } else if fate != Fate::Superseded as u8 {
                    erased_here += u64::from(table.erase(key, choices, all).found() == Some(true));
                }
                fate_at.write(Fate::Superseded as u8);
            }
        }
        add(erased, erased_here);
    };
    // SAFETY: the body captures arguments and a counter. Each call writes elements of its own, and keys atomically.
    unsafe { team.divide(keys.len(), revert) };
}
