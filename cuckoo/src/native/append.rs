//! Appends to lists that several threads append to.

use crate::device::PairsMut;
use bytemuck::Pod;
use std::sync::atomic::{AtomicU64, Ordering};

/// The number of items that wait before they are appended together.
const WAITING: usize = 64;

/// Appends items to a list, many at once. The last ones are appended by [`finish`](Self::finish).
pub struct Appender<'a, T, F> {
    /// The length of the list.
    count: &'a AtomicU64,
    /// Writes an item to a position.
    write: F,
    items: [T; WAITING],
    waiting: usize,
}

impl<'a, T: Copy, F: Fn(usize, T)> Appender<'a, T, F> {
    /// Makes an appender to a list of this length. `any` is any item.
    #[inline(always)]
    pub fn new(count: &'a AtomicU64, any: T, write: F) -> Self {
        Self { count, write, items: [any; WAITING], waiting: 0 }
    }

    /// Appends an item.
    #[inline(always)]
    pub fn push(&mut self, item: T) {
        self.items[self.waiting] = item;
        self.waiting += 1;
        if self.waiting == WAITING {
            self.finish();
        }
    }

    /// Appends the items that wait.
    pub fn finish(&mut self) {
        let waiting = std::mem::take(&mut self.waiting);
        if waiting == 0 {
            return;
        }
        let start = self.count.fetch_add(waiting as u64, Ordering::Relaxed) as usize;
        self.items[..waiting].iter().enumerate().for_each(|(i, &item)| (self.write)(start + i, item));
    }
}

/// Writes a pair.
///
/// # Panics
/// If there is no room for it.
///
/// # Safety
/// Nothing else uses this pair.
#[inline(always)]
pub unsafe fn put<C: Pod, V: Pod>(pairs: PairsMut<C, V>, at: usize, key: C, value: V) {
    assert!(at < pairs.keys.len() && (size_of::<V>() == 0 || at < pairs.values.len()), "there is room for pair {at}");
    // SAFETY: the pair exists. The caller guarantees the rest.
    unsafe {
        pairs.keys.as_mut_ptr().add(at).write(key);
        if size_of::<V>() > 0 {
            pairs.values.as_mut_ptr().add(at).write(value);
        }
    }
}

/// Returns the value of a pair. Zero-sized values have no memory.
#[inline(always)]
pub fn value_at<V: Pod>(values: &[V], at: usize) -> V {
    if size_of::<V>() == 0 { V::zeroed() } else { values[at] }
}
