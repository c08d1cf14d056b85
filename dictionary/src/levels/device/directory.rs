//! The kernel that builds the directory of a level.

use super::table::{ENTRY_WORDS, Entry, THREADS};
use crate::KeyCode;
use gpu_primitives::arch::thread;
use gpu_primitives::arch::warp::{FULL, LANES, ballot, lane_id, shuffle_idx};
use gpu_primitives::code::U256;
use gpu_primitives::kernel::kernel;
use gpu_primitives::view::{Global, GlobalMut};

/// Elements per bucket that the directory is sized for, if keys are spread evenly. The width of a bucket is a power of
/// two, so a bucket may hold up to twice as many.
pub const BUCKET: usize = 4;

/// A bucket with this many elements or more is given all fingerprints.
pub(crate) const MOST_FINGERPRINTS: u32 = 32;

/// Returns the length of a directory with one entry per bucket and one more, followed by the level's entry of the table.
#[cfg(not(target_arch = "nvptx64"))]
pub const fn directory_len(buckets: usize) -> usize {
    buckets + 1 + ENTRY_WORDS
}

/// Returns the shift that maps every key from the first to the last to a number less than `buckets`, which is at least
/// two.
#[inline(always)]
pub(crate) fn shift_for<C: KeyCode>(first: C, last: C, buckets: u64) -> u32 {
    let mut shift = last.distance_bits(first).saturating_sub(u64::BITS - buckets.leading_zeros());
    while last.bucket(first, shift) >= buckets {
        shift += 1;
    }
    shift
}

/// Builds the directory of a level and writes the level's entry: into the table, and to the end of the directory, from
/// where it can be copied into other tables.
///
/// If an element's bucket differs from that of the element before it, the element's thread writes the entry of its
/// bucket and the entries of the empty buckets in between. It reads the following elements of its bucket for the
/// fingerprints. Gaps of more than a warp's width are filled by the whole warp.
///
/// Cost: reads each key once or twice, from memory or cache; writes 8 bytes per bucket.
///
/// # Safety
/// - The launch has at least one thread per element.
/// - The level is not empty and has fewer than 2^32 elements, and its keys ascend.
/// - `directory` has one entry per bucket, one more, and room for the level's entry. There are at least two buckets and
///   at most 2^32.
/// - `table` has an entry `slot`.
/// - `marks` is empty, or has one bit per element or two, in words of 32 elements. Only the addresses of the values and marks are used.
/// - While the kernel runs, nobody writes the keys, and nobody else uses the directory or that entry of the table.
#[kernel(listed, threads = THREADS, native = crate::levels::native::build_directory)]
pub unsafe fn build_directory<C: KeyCode>(
    keys: Global<C>,
    values: Global<u8>,
    marks: Global<u32>,
    directory: GlobalMut<u64>,
    table: GlobalMut<u64>,
    slot: u32,
) {
    let at = thread::block_idx_x() as usize * THREADS as usize + thread::thread_idx_x() as usize;
    let len = keys.len();
    let buckets = directory.len() - 1 - ENTRY_WORDS;
    let (first, last) = (keys.get(0), keys.get(len - 1));
    let shift = shift_for(first, last, buckets as u64);
    let bucket_of = |at: usize| keys.get(at).bucket(first, shift);
    if at == 0 {
        let entry = Entry {
            keys: keys.as_ptr().expose_provenance() as u64,
            values: values.as_ptr().expose_provenance() as u64,
            marks: if marks.is_empty() { 0 } else { marks.as_ptr().expose_provenance() as u64 },
            directory: directory.as_const().as_ptr().expose_provenance() as u64,
            first: first.to_words(),
            len: len as u32,
            last_bucket: last.bucket(first, shift) as u32,
            shift,
            has_operands: u32::from(marks.len() > len.div_ceil(32)),
        };
        // SAFETY: plain data of the same size.
        let words: [u64; ENTRY_WORDS] = core::mem::transmute(entry);
        for (i, word) in words.iter().enumerate() {
            table.set(slot as usize * ENTRY_WORDS + i, *word);
            directory.set(buckets + 1 + i, *word);
        }
        directory.set(bucket_of(len - 1) as usize + 1, len as u64);
    }

    // The number of empty buckets right before this thread's bucket.
    let mut gap = 0;
    let mut bucket = 0;
    if at < len {
        bucket = bucket_of(at);
        let before = if at == 0 { u64::MAX } else { bucket_of(at - 1) };
        if bucket != before {
            gap = bucket.wrapping_sub(before).wrapping_sub(1) as u32;
            let mut fingerprints = 0u32;
            let mut count = 0;
            while at + (count as usize) < len && bucket_of(at + count as usize) == bucket {
                fingerprints |= 1 << keys.get(at + count as usize).fingerprint();
                count += 1;
                if count == MOST_FINGERPRINTS {
                    fingerprints = u32::MAX;
                    break;
                }
            }
            directory.set(bucket as usize, at as u64 | (fingerprints as u64) << 32);
        }
    }
    if gap <= LANES {
        for i in 0..gap {
            directory.set(bucket as usize - 1 - i as usize, at as u64);
        }
    }
    let mut wide = ballot(FULL, gap > LANES);
    while wide != 0 {
        let lane = wide.trailing_zeros();
        let (gap, bucket) = (shuffle_idx(FULL, gap, lane), shuffle_idx(FULL, bucket as u32, lane));
        let start = at - lane_id() as usize + lane as usize;
        let mut i = lane_id();
        while i < gap {
            directory.set((bucket - 1 - i) as usize, start as u64);
            i += LANES;
        }
        wide &= wide - 1;
    }
}

gpu_primitives::instances! {
    static in concat!(env!("CARGO_MANIFEST_DIR"), "/ptx");
    for C in [u32, u64, u128, U256]: BuildDirectory<C>;
}

#[cfg(test)]
mod tests {
    use super::shift_for;

    #[test]
    fn the_range_falls_into_the_buckets() {
        for range in [0, 1, 2, 3, 7, 8, 1000, u64::from(u32::MAX), u64::MAX] {
            for buckets in [2u64, 3, 4, 1000, 1 << 30] {
                let shift = shift_for(0, range, buckets);
                assert!(range >> shift < buckets, "{range} {buckets}");
                assert!(shift == 0 || range >> (shift - 1) >= buckets, "{range} {buckets}: {shift} is too much");
                // Keys of 128 bits that lie as far from each other, or 2^64 times as far.
                let first = u128::MAX / 3;
                assert_eq!(shift_for(first, first + u128::from(range), buckets), shift, "{range} {buckets}");
                if range > buckets {
                    let wide = shift_for(first, first + (u128::from(range) << 63), buckets);
                    assert_eq!(wide, shift + 63, "{range} {buckets}");
                }
            }
        }
    }
}
