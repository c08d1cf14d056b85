//! The bodies of the sort's kernels for the CPU. See [`kernel`](super::device::kernel) for what they do and for their contracts.

#![deny(unsafe_op_in_unsafe_fn)]

pub(crate) mod block;
pub(crate) mod rows;

use super::device::kernel::{BucketHistogram, BucketPass};
use super::device::pack::{PackCodes, Packed};
use crate::block::radix::RADIX;
use crate::buckets::{Buckets, buckets_of, last_bucket};
use crate::kernel::Team;
use crate::pairs::PairsMut;
use crate::view::GlobalMut;
use bytemuck::Pod;
use std::ops::Range;
use std::sync::Mutex;

/// The number of items of each bucket.
type Counts = [u64; RADIX];

/// The keys whose buckets are found at once.
const CHUNK: usize = 512;

/// # Safety
/// The contract of [`bucket_histogram`](super::device::kernel::BucketHistogram).
pub(super) unsafe fn bucket_histogram<K: Pod, B: Buckets<K>>(kernel: BucketHistogram<K, B>, team: Team) {
    let BucketHistogram { keys, buckets, passes, bases, .. } = kernel;
    let sum = Mutex::new(vec![[0; RADIX]; passes as usize]);
    // SAFETY: nothing writes the keys, nor their number.
    let keys = unsafe { keys.get().as_slice() };
    let work = |_: usize, range: Range<usize>| {
        let mut counts = vec![[0; RADIX]; passes as usize];
        for (pass, counts) in counts.iter_mut().enumerate() {
            count(&buckets, pass as u32, &keys[range.clone()], counts);
        }
        let mut sum = sum.lock().expect("nothing panics while it has the lock");
        for (sum, counts) in sum.iter_mut().zip(&counts) {
            add(sum, counts);
        }
    };
    // SAFETY: the body captures arguments, plain data and locks. Each call writes outputs of its own.
    unsafe { team.divide(keys.len(), work) };
    let (bases, len) = (bases.as_mut_ptr(), bases.len());
    for (pass, counts) in sum.into_inner().expect("all parts have returned").iter().enumerate() {
        let mut before = 0;
        for (bucket, count) in counts.iter().enumerate() {
            let at = pass * RADIX + bucket;
            if at < len {
                // SAFETY: there is room for so many positions.
                unsafe { bases.add(at).write(before) };
            }
            before += count;
        }
        let end = (pass + 1) * RADIX;
        if end == passes as usize * RADIX && end < len {
            // SAFETY: the same.
            unsafe { bases.add(end).write(before) };
        }
    }
}

/// Adds the number of keys in each bucket.
fn count<K: Pod, B: Buckets<K>>(buckets: &B, pass: u32, keys: &[K], counts: &mut Counts) {
    let last = last_bucket(buckets, pass);
    // Two tables, so that equal buckets in a row do not wait for each other.
    let mut others = [0; RADIX];
    let mut found = [0; CHUNK];
    for keys in keys.chunks(CHUNK) {
        let found = &mut found[..keys.len()];
        buckets_of(buckets, keys, pass, last, found);
        let (pairs, rest) = found.as_chunks::<2>();
        for &[a, b] in pairs {
            counts[a as usize % RADIX] += 1;
            others[b as usize % RADIX] += 1;
        }
        for &bucket in rest {
            counts[bucket as usize % RADIX] += 1;
        }
    }
    add(counts, &others);
}

/// Adds counts to others.
fn add(to: &mut Counts, counts: &Counts) {
    to.iter_mut().zip(counts).for_each(|(to, count)| *to += count);
}

/// Returns, for each part, where its items of each bucket begin, and where they end. There is at least one part.
///
/// A bucket function that contradicts itself has counted more here than when the bases were counted. No two parts may write the
/// same position, so a bucket ends where the next one begins.
fn places(counts: Vec<Mutex<Counts>>, bases: &[u64], len: u64) -> Vec<(Counts, Counts)> {
    let mut places: Vec<(Counts, Counts)> = Vec::with_capacity(counts.len());
    // Buckets that do not exist begin at the end.
    let first = |bucket: usize| bases.get(bucket).copied().unwrap_or(len);
    let mut next: Counts = std::array::from_fn(first);
    for counts in counts {
        let starts = next;
        let counts = counts.into_inner().expect("all parts have returned");
        add(&mut next, &counts);
        places.push((starts, next));
    }
    let mut limit = len;
    for bucket in (0..RADIX).rev() {
        places.iter_mut().for_each(|(_, ends)| ends[bucket] = ends[bucket].min(limit));
        limit = limit.min(first(bucket));
    }
    places
}

/// Each worker distributes a part of the items. It knows where to write from the counts of all parts.
///
/// # Safety
/// The contract of [`bucket_pass`](super::device::kernel::BucketPass).
pub(super) unsafe fn bucket_pass<
    K: Pod,
    V: Pod,
    B: Buckets<K>,
    const THREADS: u32,
    const ITEMS: usize,
    const MIN_BLOCKS: u32,
>(
    kernel: BucketPass<K, V, B, THREADS, ITEMS, MIN_BLOCKS>,
    team: Team,
) {
    let BucketPass { keys_in, values_in, to, buckets, pass, bases, next_bases, .. } = kernel;
    let PairsMut { keys: keys_out, values: values_out } = to;
    // SAFETY: nothing writes the inputs, the number of keys, or the bases.
    let (keys, values, bases) = unsafe { (keys_in.get().as_slice(), values_in.as_slice(), bases.as_slice()) };
    let len = keys.len();
    if len == 0 {
        // Nothing follows either, and the bases may not have been written.
        return;
    }
    let mut counts: Vec<Mutex<Counts>> = Vec::new();
    counts.resize_with(team.parts(len), || Mutex::new([0; RADIX]));
    let work = |part: usize, range: Range<usize>| {
        count(&buckets, pass, &keys[range], &mut counts[part].lock().expect("each part has its own"));
    };
    // SAFETY: the body captures arguments, plain data and locks. Each call writes outputs of its own.
    unsafe { team.divide(len, work) };
    let places = places(counts, bases, keys_out.len() as u64);
    let (_, next) = places[places.len() - 1];
    // SAFETY: there are 256 positions.
    unsafe { next_bases.as_mut_ptr().copy_from_nonoverlapping(next.as_ptr(), RADIX) };

    let last = last_bucket(&buckets, pass);
    let work = |part: usize, range: Range<usize>| {
        let (next, ends) = places[part];
        let mut lines = Lines { keys: [K::zeroed(); RADIX * LINE], values: [V::zeroed(); RADIX * LINE], next, ends };
        let mut waiting = [0u8; RADIX];
        let mut found = [0; CHUNK];
        for index in range.clone() {
            let within = (index - range.start) % CHUNK;
            if within == 0 {
                let chunk = &keys[index..range.end.min(index + CHUNK)];
                buckets_of(&buckets, chunk, pass, last, &mut found[..chunk.len()]);
            }
            let (key, bucket) = (keys[index], found[within] as usize % RADIX);
            let at = bucket * LINE + waiting[bucket] as usize;
            lines.keys[at] = key;
            if size_of::<V>() > 0 {
                lines.values[at] = values[index];
            }
            waiting[bucket] += 1;
            if waiting[bucket] as usize == LINE {
                // SAFETY: guaranteed by the caller; see `Lines`.
                unsafe { lines.write(bucket, LINE, keys_out, values_out) };
                waiting[bucket] = 0;
            }
        }
        for (bucket, &count) in waiting.iter().enumerate() {
            // SAFETY: the same.
            unsafe { lines.write(bucket, count as usize, keys_out, values_out) };
        }
    };
    // SAFETY: the body captures arguments, plain data and locks. Each call writes outputs of its own.
    unsafe { team.divide(len, work) };
}

/// The number of items that a bucket collects before they are written. Single items to 256 places would miss the caches.
const LINE: usize = 16;

/// Items that wait to be written, a line for each bucket.
struct Lines<K, V> {
    keys: [K; RADIX * LINE],
    values: [V; RADIX * LINE],
    /// Where the next items of each bucket go, and where they must end. No other part has these places.
    next: Counts,
    ends: Counts,
}

impl<K: Pod, V: Pod> Lines<K, V> {
    /// Writes the first `count` items of a bucket.
    ///
    /// # Safety
    /// The outputs have the places of this part, and nothing else uses them.
    #[inline(always)]
    unsafe fn write(&mut self, bucket: usize, count: usize, keys: GlobalMut<K>, values: GlobalMut<V>) {
        // A bucket function that contradicts itself may have more items than places.
        let (start, room) = (self.next[bucket], self.ends[bucket].saturating_sub(self.next[bucket]));
        let count = count.min(room as usize);
        self.next[bucket] += count as u64;
        // SAFETY: guaranteed by the caller.
        unsafe {
            let from = bucket * LINE;
            keys.as_mut_ptr().add(start as usize).copy_from_nonoverlapping(self.keys.as_ptr().add(from), count);
            if size_of::<V>() > 0 {
                values.as_mut_ptr().add(start as usize).copy_from_nonoverlapping(self.values.as_ptr().add(from), count);
            }
        }
    }
}

/// # Safety
/// The contract of [`pack_codes`](super::device::pack::PackCodes).
pub(super) unsafe fn pack_codes<C: Packed>(kernel: PackCodes<C>, team: Team) {
    let PackCodes { fields, count, order, numbers, .. } = kernel;
    let pack = |_: usize, range: Range<usize>| {
        for at in range {
            let mut packed = 0;
            // SAFETY: columns, bits and order have all rows, and nothing writes them. Each number is written by one call.
            unsafe {
                let row = if order.is_empty() { at } else { order.get(at) as usize };
                for field in &fields.0[..count as usize] {
                    packed |= field.of_row(row);
                }
                numbers.as_mut_ptr().add(at).write(C::lowest(packed));
            }
        }
    };
    // SAFETY: the body captures arguments, and each call writes numbers of its own.
    unsafe { team.divide(numbers.len(), pack) };
}
