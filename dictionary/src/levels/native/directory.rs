//! The directory of a level: see [`directory`](crate::levels::device::directory).

use super::divide;
use crate::KeyCode;
use crate::levels::device::directory::{BuildDirectory, MOST_FINGERPRINTS, shift_for};
use crate::levels::device::table::{ENTRY_WORDS, Entry};
use gpu_primitives::kernel::Team;
use std::ops::Range;

/// # Safety
/// The contract of [`build_directory`](BuildDirectory).
pub unsafe fn build_directory<C: KeyCode>(kernel: BuildDirectory<C>, team: Team) {
    let BuildDirectory { keys, values, marks, directory, table, slot, .. } = kernel;
    // SAFETY: nobody writes the keys.
    let codes = unsafe { keys.as_slice() };
    let (Some(&first), Some(&last)) = (codes.first(), codes.last()) else { return };
    let buckets = directory.len() - 1 - ENTRY_WORDS;
    let shift = shift_for(first, last, buckets as u64);
    let last_bucket = last.bucket(first, shift);
    let entry = Entry {
        keys: keys.as_ptr().expose_provenance() as u64,
        values: values.as_ptr().expose_provenance() as u64,
        marks: if marks.is_empty() { 0 } else { marks.as_ptr().expose_provenance() as u64 },
        directory: directory.as_mut_ptr().expose_provenance() as u64,
        first: first.to_words(),
        len: codes.len() as u32,
        last_bucket: last_bucket as u32,
        shift,
        has_operands: u32::from(marks.len() > codes.len().div_ceil(32)),
    };
    let set = |bucket: u64, entry: u64| {
        // Keys that do not ascend could lead anywhere.
        assert!(bucket <= buckets as u64, "the keys of a level must ascend");
        // SAFETY: there is an entry per bucket and one more.
        unsafe { directory.as_mut_ptr().add(bucket as usize).write(entry) };
    };
    // SAFETY: the table has the level's entry, and the directory has room for it after the buckets.
    unsafe {
        let words: [u64; ENTRY_WORDS] = bytemuck::cast(entry);
        table.as_mut_ptr().add(slot as usize * ENTRY_WORDS).cast::<[u64; ENTRY_WORDS]>().write(words);
        directory.as_mut_ptr().add(buckets + 1).cast::<[u64; ENTRY_WORDS]>().write(words);
    }
    set(last_bucket + 1, codes.len() as u64);

    let bucket_of = |at: usize| codes[at].bucket(first, shift);
    let work = |range: Range<usize>| {
        let mut at = range.start;
        // The next bucket to write: the one after that of the element before.
        let mut next = if at == 0 { 0 } else { bucket_of(at - 1) + 1 };
        // The part before has the bucket that it begins.
        while at < range.end && bucket_of(at) < next {
            at += 1;
        }
        while at < range.end {
            let bucket = bucket_of(at);
            for empty in next..bucket {
                set(empty, at as u64);
            }
            let mut fingerprints = 0u32;
            let mut end = at;
            while end < codes.len() && bucket_of(end) == bucket {
                fingerprints |= 1 << codes[end].fingerprint();
                end += 1;
            }
            if end - at >= MOST_FINGERPRINTS as usize {
                fingerprints = u32::MAX;
            }
            set(bucket, at as u64 | u64::from(fingerprints) << 32);
            (at, next) = (end, bucket + 1);
        }
    };
    // SAFETY: the body captures arguments and plain data. Each bucket is written by the part where it begins, and so are the
    // empty ones before it.
    unsafe { divide(team, codes.len(), 1, work) };
}
