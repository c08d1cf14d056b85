//! The last one of equal keys in a batch gets its value into the table.

use super::claim::Fate;
use super::last::Entries;
use super::probe::{THREADS, index};
use crate::view::{TableMut, value_index};
use bytemuck::Pod;
use gpu_dictionary::WordCode as KeyCode;
use gpu_primitives::Global;
use gpu_primitives::kernel::{Pairs, kernel};

/// Returns whether a pair of this fate is in the table with its value, or in the overflow.
#[inline(always)]
pub fn took_part(fate: u8) -> bool {
    fate == Fate::Merged as u8 || fate == Fate::Claimed as u8 || fate == Fate::Overflowed as u8
}

/// Raises the positions of keys that are recorded in the entries to those of the pairs that took part in the insertion.
/// Afterwards the entries have the last positions of these keys.
///
/// Floor per 4-byte key: 5 bytes in order, and an entry from L2.
///
/// # Safety
/// The launch has at least one thread per key. [`Claim`](super::Claim) wrote the fates and the entries for these keys. While
/// the kernel runs, nobody writes the inputs, and nobody else uses the entries.
#[kernel(listed = super::RAISE_PTX, threads = THREADS, native = crate::native::settle::raise)]
pub unsafe fn raise<C: KeyCode>(keys: Global<C>, fates: Global<u8>, entries: Entries) {
    let i = index();
    if i < keys.len() && took_part(fates.get(i)) {
        entries.raise(keys, i, keys.get(i));
    }
}

/// Writes the values of those pairs that did not take part in the insertion but are the last ones of their keys.
///
/// Floor per pair: a byte in order. For those that did not take part also the key, an entry, and if they are the last ones
/// the sectors of a lookup and the value.
///
/// # Safety
/// The launch has at least one thread per pair. [`Raise`] has run. The keys are in the table. While the kernel runs, nobody
/// else uses the table, and nobody writes the inputs.
#[kernel(listed = super::SETTLE_PTX, threads = THREADS, native = crate::native::settle::settle)]
pub unsafe fn settle<C: KeyCode, V: Pod, const WIDTH: usize>(
    table: TableMut<C, V, WIDTH>,
    pairs: Pairs<C, V>,
    fates: Global<u8>,
    entries: Entries,
) {
    let i = index();
    if size_of::<V>() == 0 || i >= pairs.keys.len() || took_part(fates.get(i)) {
        return;
    }
    let key = pairs.keys.get(i);
    if entries.is_last(pairs.keys, i, key)
        && let Some(position) = table.as_const().find(key)
    {
        let at = value_index::<C, V>(WIDTH, position.bucket) + position.slot as usize;
        table.values.set(at, pairs.values.get(i));
    }
}
