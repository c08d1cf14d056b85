//! Levels as native bodies search them: many queries at a time, so that they wait for memory together.

use crate::KeyCode;
use crate::levels::device::find::{Found, Levels};
use crate::levels::device::payload::{OPERAND, PUT, TOMBSTONE};
use crate::levels::device::table::Entry;
use bytemuck::Pod;
use std::ptr::with_exposed_provenance;
use std::slice::from_raw_parts;

/// The queries that are answered at once: one bit of a word each.
pub const CHUNK: usize = u32::BITS as usize;

/// Returns the word with a bit for each of the first `len` queries, at most [`CHUNK`].
pub const fn first_bits(len: usize) -> u32 {
    if len == CHUNK { u32::MAX } else { (1 << len) - 1 }
}

/// Returns the indices of the bits that are set.
pub fn bits(mut word: u32) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let index = word.trailing_zeros();
        word &= word.wrapping_sub(1);
        (index < u32::BITS).then_some(index as usize)
    })
}

/// A level.
#[derive(Clone, Copy)]
pub struct NativeLevel<'a, C> {
    /// The codes of the keys.
    pub keys: &'a [C],
    /// The address of the values.
    values: u64,
    /// The words of the marks: tombstones, then operands if there are any.
    marks: &'a [u32],
    has_operands: bool,
    /// The entries of the buckets, and one more. None if the level has no directory.
    directory: &'a [u64],
    /// A key's bucket is its distance from the first key, shifted right by this.
    shift: u32,
}

/// Returns the levels, newest first.
///
/// # Safety
/// The levels are an argument of the kernel. Nobody changes them while the result is used.
pub unsafe fn newest_first<'a, C: KeyCode, V: Pod>(levels: Levels<C, V>) -> Vec<NativeLevel<'a, C>> {
    // SAFETY: guaranteed by the caller; there are levels in these slots.
    bits(levels.occupied()).map(|slot| unsafe { NativeLevel::new(levels.level(slot as u32)) }).collect()
}

/// Returns the levels, oldest first.
///
/// # Safety
/// Same as [`newest_first`].
pub unsafe fn oldest_first<'a, C: KeyCode, V: Pod>(levels: Levels<C, V>) -> Vec<NativeLevel<'a, C>> {
    // SAFETY: guaranteed by the caller.
    let mut levels = unsafe { newest_first(levels) };
    levels.reverse();
    levels
}

impl<'a, C: KeyCode> NativeLevel<'a, C> {
    /// # Safety
    /// The entry is that of a level with keys `C`, which nobody changes or frees while the result is used.
    unsafe fn new<V: Pod>(level: Found<C, V>) -> Self {
        let Entry { values, marks, directory, len, last_bucket, shift, has_operands, .. } = level.entry;
        let words = (len as usize).div_ceil(32) << u32::from(has_operands != 0);
        // SAFETY: the entry has the addresses of the level's arrays, and these lengths. The last bucket in use is that of the
        // last key, and one more entry follows.
        unsafe {
            Self {
                keys: level.keys().as_slice(),
                values,
                marks: if marks == 0 { &[] } else { from_raw_parts(with_exposed_provenance(marks as usize), words) },
                has_operands: has_operands != 0,
                directory: match directory {
                    0 => &[],
                    address => from_raw_parts(with_exposed_provenance(address as usize), last_bucket as usize + 2),
                },
                shift,
            }
        }
    }

    /// Returns the value at a position.
    ///
    /// # Safety
    /// The level has values of this type, or the type is zero-sized. The position is within the level.
    #[inline(always)]
    pub unsafe fn value<V: Pod>(&self, position: u32) -> V {
        if size_of::<V>() == 0 {
            return V::zeroed();
        }
        // SAFETY: guaranteed by the caller.
        unsafe { *self.values_ptr::<V>().add(position as usize) }
    }

    /// Returns the address of the values.
    pub fn values_ptr<V>(&self) -> *const V {
        with_exposed_provenance(self.values as usize)
    }

    /// Returns all values.
    ///
    /// # Safety
    /// The level has values of this type, which is not zero-sized.
    pub unsafe fn values<V: Pod>(&self) -> &'a [V] {
        // SAFETY: guaranteed by the caller: there are as many values as keys.
        unsafe { from_raw_parts(self.values_ptr(), self.keys.len()) }
    }

    /// Returns whether there can be tombstones or operands.
    pub fn has_marks(&self) -> bool {
        !self.marks.is_empty()
    }

    /// Returns whether the element at a position is marked as a tombstone.
    #[inline(always)]
    pub fn is_dead(&self, position: u32) -> bool {
        !self.marks.is_empty() && self.mark(position, 0) == TOMBSTONE
    }

    /// Returns the kind of the element at a position.
    #[inline(always)]
    pub fn kind(&self, position: u32) -> u32 {
        if self.marks.is_empty() {
            return PUT;
        }
        self.mark(position, 0) | if self.has_operands { OPERAND * self.mark(position, 1) } else { 0 }
    }

    #[inline(always)]
    fn mark(&self, position: u32, array: usize) -> u32 {
        let word = array * self.keys.len().div_ceil(32) + position as usize / 32;
        self.marks[word] >> (position % 32) & 1
    }

    /// Returns the directory's entry for a key and where the key's bucket ends, if the key lies within the level's range.
    #[inline(always)]
    fn bucket(&self, code: C, first: C) -> Option<(u64, u32)> {
        let bucket = code.bucket(first, self.shift);
        let last = self.directory.len() as u64 - 2;
        (bucket <= last).then(|| (self.directory[bucket as usize], self.directory[bucket as usize + 1] as u32))
    }

    /// Finds the newest element with each code of which `asked` has a bit: writes its position, and sets its bit in the
    /// result if there is one.
    pub fn newest(&self, codes: &[C], asked: u32, positions: &mut [u32; CHUNK]) -> u32 {
        let Some(&first) = self.keys.first() else { return 0 };
        let mut buckets = [(0, 0); CHUNK];
        let mut likely = 0;
        for i in bits(asked) {
            let code = codes[i];
            if code >= first
                && let Some((entry, end)) = self.bucket(code, first)
            {
                buckets[i] = (entry as u32, end);
                likely |= ((entry >> 32) as u32 >> code.fingerprint() & 1) << i;
            }
        }
        let mut found = 0;
        for i in bits(likely) {
            let (start, end) = buckets[i];
            let end = bound(self.keys, start, end, codes[i], true);
            if end > start && self.keys[end as usize - 1] == codes[i] {
                positions[i] = end - 1;
                found |= 1 << i;
            }
        }
        found
    }

    /// Counts, for each code, the keys that are less or, with `or_equal`, not greater.
    pub fn count_before(&self, codes: &[C], or_equal: bool, counts: &mut [u32; CHUNK]) {
        let Some(&first) = self.keys.first() else {
            *counts = [0; CHUNK];
            return;
        };
        let mut ends = [0; CHUNK];
        let all = self.keys.len() as u32;
        for (i, &code) in codes.iter().enumerate() {
            (counts[i], ends[i]) = if code < first {
                (0, 0)
            } else {
                self.bucket(code, first).map_or((all, all), |(entry, end)| (entry as u32, end))
            };
        }
        for (i, &code) in codes.iter().enumerate() {
            counts[i] = bound(self.keys, counts[i], ends[i], code, or_equal);
        }
    }
}

/// Returns how many keys are less than `code` or, with `or_equal`, not greater, if that is known to be from `low` to `high`.
#[inline(always)]
fn bound<C: KeyCode>(keys: &[C], low: u32, high: u32, code: C, or_equal: bool) -> u32 {
    /// This many keys are compared one by one: usually more than a bucket has.
    const fn few<C>() -> usize {
        if size_of::<C>() > 8 { 8 } else { 16 }
    }
    let is_before = |key: C| if or_equal { key <= code } else { key < code };
    let (mut low, mut high) = (low as usize, high as usize);
    while high - low > few::<C>() {
        let middle = low + (high - low) / 2;
        if is_before(keys[middle]) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    // The keys from `high` on do not come before the code. So they can be compared too: always the same number, without a
    // jump that depends on it.
    let compared = keys.get(low..low + few::<C>()).unwrap_or(&keys[low..high]);
    low as u32 + compared.iter().map(|&key| u32::from(is_before(key))).sum::<u32>()
}

/// Returns the first index from `start` on at which `is_before` is false. It searches near `start` first. The keys for which
/// it is true come first.
#[inline]
pub fn gallop<C: Copy>(keys: &[C], start: usize, is_before: impl Fn(C) -> bool) -> usize {
    let mut low = start;
    let mut step = 1;
    while low + step <= keys.len() && is_before(keys[low + step - 1]) {
        low += step;
        step *= 2;
    }
    let high = keys.len().min(low + step - 1);
    low + keys[low..high].partition_point(|&key| is_before(key))
}
