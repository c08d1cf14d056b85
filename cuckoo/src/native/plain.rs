//! Keys of any plain type. All of them are seen as bytes, so each body is compiled once.

use super::atomics::{add, counter};
use super::entries::Batch;
use crate::device::{FindClashes, HashKeys, Piece, Sums, VerifyKeys};
use gpu_primitives::kernel::Team;
use gpu_primitives::{Global, GlobalMut};
use std::ops::Range;

/// Keys of the same size.
#[derive(Clone, Copy)]
struct Keys<'a> {
    bytes: &'a [u8],
    size: usize,
}

impl Keys<'_> {
    /// Makes them of the argument of a kernel.
    ///
    /// # Safety
    /// Nothing writes the pieces.
    unsafe fn new<P: Piece>(pieces: Global<P>, size: u32) -> Self {
        // SAFETY: guaranteed by the caller.
        Self { bytes: bytemuck::cast_slice(unsafe { pieces.as_slice() }), size: size as usize }
    }

    /// Returns the bytes of a key.
    ///
    /// # Panics
    /// If there is no such key.
    fn get(&self, key: usize) -> &[u8] {
        &self.bytes[key * self.size..][..self.size]
    }
}

/// # Safety
/// The contract of [`HashKeys`].
pub unsafe fn hash_keys<P: Piece>(kernel: HashKeys<P>, team: Team) {
    let HashKeys { keys, size, sums, mask, hashes, .. } = kernel;
    // SAFETY: guaranteed by the caller.
    unsafe { hash_all(Keys::new(keys, size), sums, mask, hashes, team) };
}

/// Computes the hash of every key.
///
/// # Safety
/// Nothing else uses the hashes.
unsafe fn hash_all(keys: Keys<'_>, sums: Sums, mask: u64, hashes: GlobalMut<u64>, team: Team) {
    let words = keys.size.div_ceil(4);
    let hash = |_: usize, range: Range<usize>| {
        for i in range {
            let key = keys.get(i);
            let word = |at: usize| match key[4 * at..] {
                [a, b, c, d, ..] => u32::from_le_bytes([a, b, c, d]),
                ref rest => rest.iter().rev().fold(0, |word, &byte| word << 8 | u32::from(byte)),
            };
            // SAFETY: the hash exists, and no other part has it.
            unsafe { hashes.as_mut_ptr().add(i).write(sums.hash(words, word) & mask) };
        }
    };
    // SAFETY: the body captures arguments. Each call writes hashes of its own.
    unsafe { team.divide(hashes.len(), hash) };
}

/// # Safety
/// The contract of [`VerifyKeys`].
pub unsafe fn verify_keys<P: Piece>(kernel: VerifyKeys<P>, team: Team) {
    let VerifyKeys { stored, asked, size, indices, found, different, .. } = kernel;
    // SAFETY: guaranteed by the caller.
    unsafe { verify_all(Keys::new(stored, size), Keys::new(asked, size), indices.as_slice(), found, different, team) };
}

/// Takes back what was found with other bytes, and counts it.
///
/// # Safety
/// Nothing else uses `found` and `different`.
unsafe fn verify_all(
    stored: Keys<'_>,
    asked: Keys<'_>,
    indices: &[u32],
    found: GlobalMut<u8>,
    different: GlobalMut<u64>,
    team: Team,
) {
    assert!(found.len() >= indices.len(), "there is an element for each index");
    // SAFETY: the counter is used only in this way.
    let different = unsafe { counter(different, 0) };
    let verify = |_: usize, range: Range<usize>| {
        let mut different_here = 0;
        for i in range {
            // SAFETY: the element exists, and no other part has it.
            let found = unsafe { &mut *found.as_mut_ptr().add(i) };
            if *found != 0 && stored.get(indices[i] as usize) != asked.get(i) {
                *found = 0;
                different_here += 1;
            }
        }
        add(different, different_here);
    };
    // SAFETY: the body captures arguments and a counter. Each call writes elements of its own.
    unsafe { team.divide(indices.len(), verify) };
}

/// # Safety
/// The contract of [`FindClashes`].
pub unsafe fn find_clashes<P: Piece>(kernel: FindClashes<P>, team: Team) {
    let FindClashes { keys, size, hashes, entries, clashes, .. } = kernel;
    // SAFETY: guaranteed by the caller.
    unsafe { count_clashes(Keys::new(keys, size), Batch::new(entries, hashes.as_slice()), clashes, team) };
}

/// Counts keys that have the hash of a different key.
///
/// # Safety
/// Nothing else uses the counter.
unsafe fn count_clashes(keys: Keys<'_>, hashes: Batch<'_, u64>, clashes: GlobalMut<u64>, team: Team) {
    // SAFETY: the counter is used only in this way.
    let clashes = unsafe { counter(clashes, 0) };
    let count = |_: usize, range: Range<usize>| {
        let clashes_with = |i: usize, other: usize| keys.get(other) != keys.get(i);
        let of_other = |&i: &usize| hashes.record(i, hashes.keys()[i]).is_some_and(|other| clashes_with(i, other));
        add(clashes, range.filter(of_other).count() as u64);
    };
    // SAFETY: the body captures arguments and a counter. Entries are written atomically.
    unsafe { team.divide(hashes.keys().len(), count) };
}
