//! The bodies of the filter's kernels for the CPU: plain loops. See [`device`](super::device) for what they do, and for their
//! contracts.

#![deny(unsafe_op_in_unsafe_fn)]

use super::device::{FilterBits, FilterContains, FilterFold, FilterInsert, Piece};
use super::hash::{Shape, WORDS, factor, fold, mix};
use super::view::FilterView;
use crate::WordCode;
use gpu_primitives::kernel::Team;
use gpu_primitives::{Global, GlobalMut};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Returns the bits of a key in its block, and the index of the block's first word.
#[inline(always)]
fn bits_of(shape: Shape, key: u64) -> (usize, [u64; WORDS]) {
    let hash = mix(key, shape.seed);
    let mut masks = [0; WORDS];
    for (word, mask) in masks.iter_mut().enumerate() {
        *mask = shape.mask(hash, factor(word as u32));
    }
    (shape.first_word(hash), masks)
}

/// # Safety
/// The contract of [`FilterInsert`].
pub unsafe fn insert_keys<C: WordCode>(kernel: FilterInsert<C>, team: Team) {
    let FilterInsert { keys, shape, words, .. } = kernel;
    // SAFETY: nobody writes the keys. The words are only used as atomics, which have the layout of their numbers.
    let (keys, words) =
        unsafe { (keys.as_slice(), std::slice::from_raw_parts(words.as_mut_ptr().cast::<AtomicU64>(), words.len())) };
    let insert = |_: usize, range: Range<usize>| {
        for key in &keys[range] {
            let (first, masks) = bits_of(shape, key.to_u64());
            for (word, mask) in words[first..first + WORDS].iter().zip(masks) {
                // Most bits of a filter that fills are set already, and reading is cheaper.
                if word.load(Relaxed) & mask != mask {
                    word.fetch_or(mask, Relaxed);
                }
            }
        }
    };
    // SAFETY: the body captures arguments, and atomics.
    unsafe { team.divide(keys.len(), insert) };
}

/// Returns whether the filter may contain a key.
#[inline(always)]
fn contains(words: &[u64], shape: Shape, key: u64) -> bool {
    let (first, masks) = bits_of(shape, key);
    let block = &words[first..first + WORDS];
    let mut missing = 0;
    for word in 0..WORDS {
        missing |= masks[word] & !block[word];
    }
    missing == 0
}

/// Writes the answers of `per` keys at a time: calls `answer` with the answers as bits, the first one lowest.
///
/// # Safety
/// Nobody writes the filter or the keys. There is an answer for each `per` keys, at most 8, which nobody else uses.
unsafe fn ask<C: WordCode>(filter: FilterView<C>, keys: Global<C>, per: usize, answers: GlobalMut<u8>, team: Team) {
    let shape = filter.shape();
    // SAFETY: guaranteed by the caller.
    let (words, keys) = unsafe { (filter.words().as_slice(), keys.as_slice()) };
    assert!(answers.len() >= keys.len().div_ceil(per), "there is an answer for each key");
    let ask = |_: usize, range: Range<usize>| {
        for at in range {
            let mut answer = 0;
            for (bit, key) in keys[at * per..keys.len().min((at + 1) * per)].iter().enumerate() {
                answer |= u8::from(contains(words, shape, key.to_u64())) << bit;
            }
            // SAFETY: the answer exists, and no other part has it.
            unsafe { answers.as_mut_ptr().add(at).write(answer) };
        }
    };
    // SAFETY: the body captures arguments. Each call writes answers of its own.
    unsafe { team.divide(keys.len().div_ceil(per), ask) };
}

/// # Safety
/// The contract of [`FilterContains`].
pub unsafe fn contains_keys<C: WordCode>(kernel: FilterContains<C>, team: Team) {
    // SAFETY: guaranteed by the caller.
    unsafe { ask(kernel.filter, kernel.keys, 1, kernel.found, team) };
}

/// # Safety
/// The contract of [`FilterBits`].
pub unsafe fn contains_bits<C: WordCode>(kernel: FilterBits<C>, team: Team) {
    // SAFETY: guaranteed by the caller.
    unsafe { ask(kernel.filter, kernel.keys, 8, kernel.bits, team) };
}

/// # Safety
/// The contract of [`FilterFold`].
pub unsafe fn fold_keys<P: Piece>(kernel: FilterFold<P>, team: Team) {
    let FilterFold { keys, size, seed, numbers, .. } = kernel;
    // SAFETY: nobody writes the keys.
    let keys: &[u8] = bytemuck::cast_slice(unsafe { keys.as_slice() });
    // SAFETY: guaranteed by the caller.
    unsafe { fold_all(keys, size as usize, seed, numbers, team) };
}

/// # Safety
/// There are as many keys of this size as numbers, which nobody else uses.
unsafe fn fold_all(keys: &[u8], size: usize, seed: u64, numbers: GlobalMut<u64>, team: Team) {
    let fold = |_: usize, range: Range<usize>| {
        for i in range {
            let key = &keys[i * size..][..size];
            let word = |at: usize| {
                let mut bytes = [0; 8];
                let part = &key[8 * at..size.min(8 * at + 8)];
                bytes[..part.len()].copy_from_slice(part);
                u64::from_le_bytes(bytes)
            };
            // SAFETY: the number exists, and no other part has it.
            unsafe { numbers.as_mut_ptr().add(i).write(fold(seed, size, word)) };
        }
    };
    // SAFETY: the body captures arguments. Each call writes numbers of its own.
    unsafe { team.divide(numbers.len(), fold) };
}
