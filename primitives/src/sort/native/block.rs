//! The body of the kernel that sorts chunks, for the CPU: a chunk at a time.

#![deny(unsafe_op_in_unsafe_fn)]

use crate::block::radix::RADIX;
use crate::buckets::{Buckets, bucket_of, last_bucket};
use crate::kernel::Team;
use crate::sort::device::block::SortBlock;
use crate::view::{Global, GlobalMut};
use bytemuck::Pod;
use std::ops::Range;

/// Chunks of so few items are sorted by insertion.
const FEW: usize = 32;

/// Sorts each chunk, a chunk at a time.
///
/// # Safety
/// The contract of [`sort_block`](crate::sort::device::block::sort_block).
pub(crate) unsafe fn sort_block<K: Pod, V: Pod, B: Buckets<K>, const THREADS: u32, const ITEMS: usize>(
    kernel: SortBlock<K, V, B, THREADS, ITEMS>,
    team: Team,
) {
    let SortBlock { keys_in, keys_out, values_in, values_out, buckets, passes, .. } = kernel;
    // SAFETY: nothing writes the number of keys.
    let keys_in = unsafe { keys_in.get() };
    let chunk = THREADS as usize * ITEMS;
    let len = keys_in.len();
    let work = |index: usize| {
        // SAFETY: guaranteed by the caller. No other chunk has these items.
        unsafe {
            let items = index * chunk..len.min((index + 1) * chunk);
            sort_range((keys_in, keys_out), (values_in, values_out), items, &buckets, passes);
        }
    };
    // SAFETY: the body captures arguments, plain data and locks. Each call writes outputs of its own.
    unsafe { team.each(len.div_ceil(chunk), work) };
}

/// Sorts some items.
///
/// # Safety
/// Inputs and outputs have these items, and nothing else writes the inputs or uses the outputs there. Each output is the memory of its
/// input, or overlaps no other.
pub(super) unsafe fn sort_range<K: Pod, V: Pod, B: Buckets<K>>(
    (keys_in, keys_out): (Global<K>, GlobalMut<K>),
    (values_in, values_out): (Global<V>, GlobalMut<V>),
    range: Range<usize>,
    buckets: &B,
    passes: u32,
) {
    // The output may be the memory of the input, so there are only pointers, and copies.
    let mut items: Vec<(K, V)> = Vec::with_capacity(range.len());
    for at in range.clone() {
        let value = if size_of::<V>() > 0 {
            // SAFETY: there are as many values as keys.
            unsafe { values_in.as_ptr().add(at).read() }
        } else {
            V::zeroed()
        };
        // SAFETY: guaranteed by the caller.
        items.push((unsafe { keys_in.as_ptr().add(at).read() }, value));
    }
    if items.len() <= FEW {
        sort_few(buckets, passes, &mut items);
    } else {
        sort_many(buckets, passes, &mut items);
    }
    for (at, &(key, value)) in range.zip(items.iter()) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            keys_out.as_mut_ptr().add(at).write(key);
            if size_of::<V>() > 0 {
                values_out.as_mut_ptr().add(at).write(value);
            }
        }
    }
}

/// Sorts by insertion: stably, by the bucket of the last pass, then by that of the pass before it, and so on.
fn sort_few<K: Pod, V: Pod, B: Buckets<K>>(buckets: &B, passes: u32, items: &mut [(K, V)]) {
    let bucket = |key: K, pass: u32| bucket_of(buckets, key, pass, last_bucket(buckets, pass));
    let is_less = |a: K, b: K| {
        for pass in (0..passes).rev() {
            let (a, b) = (bucket(a, pass), bucket(b, pass));
            if a != b {
                return a < b;
            }
        }
        false
    };
    for sorted in 1..items.len() {
        let mut at = sorted;
        while at > 0 && is_less(items[at].0, items[at - 1].0) {
            items.swap(at, at - 1);
            at -= 1;
        }
    }
}

/// Sorts pass by pass.
fn sort_many<K: Pod, V: Pod, B: Buckets<K>>(buckets: &B, passes: u32, items: &mut Vec<(K, V)>) {
    let mut other = items.clone();
    for pass in 0..passes {
        let last = last_bucket(buckets, pass);
        let bucket = |key: K| bucket_of(buckets, key, pass, last) as usize % RADIX;
        let mut places = [0usize; RADIX];
        for &(key, _) in items.iter() {
            places[bucket(key)] += 1;
        }
        let mut before = 0;
        for place in &mut places {
            before += std::mem::replace(place, before);
        }
        for &item in items.iter() {
            let place = &mut places[bucket(item.0)];
            // The bucket function may contradict itself.
            if let Some(to) = other.get_mut(*place) {
                *to = item;
            }
            *place += 1;
        }
        std::mem::swap(items, &mut other);
    }
}
