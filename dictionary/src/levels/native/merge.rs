//! Merges of parts of levels: the keys in order, and where each element is.

use super::level::{NativeLevel, gallop};
use crate::KeyCode;
use crate::levels::device::payload::TOMBSTONE;
use crate::levels::device::table::MAX_LEVELS;
use std::ops::Range;
use std::slice;

/// A list that is so many times shorter than the other is merged by searching for its keys.
const SKEWED: usize = 16;

/// The bit of a place that says that the element is a tombstone, while a list is merged with the oldest run.
const DEAD: u64 = 1 << 63;

/// The parts of levels to merge, oldest level first.
pub struct Windows {
    ranges: [(u32, u32); MAX_LEVELS],
    len: usize,
}

impl Windows {
    /// Makes empty windows of so many levels.
    pub const fn new(levels: usize) -> Self {
        Self { ranges: [(0, 0); MAX_LEVELS], len: levels }
    }

    /// Sets where the part of each level begins and ends.
    pub fn set(&mut self, mut range: impl FnMut(usize) -> (u32, u32)) {
        for (level, to) in self.ranges[..self.len].iter_mut().enumerate() {
            *to = range(level);
        }
    }

    /// Returns the part of a level.
    pub fn get(&self, level: usize) -> Range<usize> {
        let (start, end) = self.ranges[level];
        start as usize..end.max(start) as usize
    }

    /// Returns the levels whose part is not empty.
    fn indices(&self) -> impl DoubleEndedIterator<Item = usize> {
        (0..self.len).filter(|&level| !self.get(level).is_empty())
    }
}

/// Elements in the order of their keys.
pub struct List<C> {
    /// The codes of the keys.
    pub keys: Vec<C>,
    /// Where the elements are: the level in the upper half, the position in the lower half.
    pub places: Vec<u64>,
}

/// Returns the level and the position of a place.
#[inline(always)]
pub fn split_place(place: u64) -> (usize, u32) {
    ((place >> 32) as usize, place as u32)
}

/// A part of a level: its keys, and the place of the first one.
#[derive(Clone, Copy)]
struct Run<'a, C> {
    keys: &'a [C],
    place: u64,
}

impl<'a, C: KeyCode> Run<'a, C> {
    fn new(levels: &[NativeLevel<'a, C>], level: usize, range: Range<usize>) -> Self {
        Self { keys: &levels[level].keys[range.clone()], place: (level as u64) << 32 | range.start as u64 }
    }

    fn part(self, range: Range<usize>) -> Self {
        Self { keys: &self.keys[range.clone()], place: self.place + range.start as u64 }
    }
}

impl<C: KeyCode> List<C> {
    /// Makes a list without elements.
    pub const fn new() -> Self {
        Self { keys: Vec::new(), places: Vec::new() }
    }

    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Removes all elements.
    pub fn clear(&mut self) {
        self.keys.clear();
        self.places.clear();
    }

    /// Makes room for more elements. Returns where to write them.
    fn room(&mut self, more: usize) -> (*mut C, *mut u64) {
        self.keys.reserve(more);
        self.places.reserve(more);
        let len = self.len();
        (self.keys.as_mut_ptr().wrapping_add(len), self.places.as_mut_ptr().wrapping_add(len))
    }

    /// Adds the elements that were written to the [room](Self::room).
    ///
    /// # Safety
    /// There was room for so many, and they were written.
    unsafe fn add(&mut self, more: usize) {
        let len = self.len() + more;
        // SAFETY: guaranteed by the caller.
        unsafe {
            self.keys.set_len(len);
            self.places.set_len(len);
        }
    }

    /// Appends a run of distinct keys, or all elements of a run.
    fn append_all(&mut self, run: Run<'_, C>) {
        self.keys.extend_from_slice(run.keys);
        self.places.extend((0..run.keys.len() as u64).map(|i| run.place + i));
    }

    /// Appends the last element of each key of a run.
    fn append_last(&mut self, run: Run<'_, C>) {
        let Run { keys, place } = run;
        let (to_keys, to_places) = self.room(keys.len());
        let mut len = 0;
        for (i, &key) in keys.iter().enumerate() {
            // SAFETY: there is room for all elements, of which there are not more before this one.
            unsafe {
                to_keys.add(len).write(key);
                to_places.add(len).write(place + i as u64);
            }
            // What is stale is overwritten: no jump has to be predicted.
            len += usize::from(keys.get(i + 1) != Some(&key));
        }
        // SAFETY: these were written.
        unsafe { self.add(len) };
    }

    /// Appends a run or, unless `ALL`, the last element of each key.
    fn append<const ALL: bool>(&mut self, run: Run<'_, C>) {
        if ALL || are_distinct(run.keys) {
            self.append_all(run);
        } else {
            self.append_last(run);
        }
    }

    /// Appends elements, except those that are [marked](DEAD).
    fn append_unmarked(&mut self, keys: &[C], places: &[u64]) {
        let (to_keys, to_places) = self.room(keys.len());
        let mut len = 0;
        for (&key, &place) in keys.iter().zip(places) {
            // SAFETY: there is room for all elements, of which there are not more before this one.
            unsafe {
                to_keys.add(len).write(key);
                to_places.add(len).write(place);
            }
            len += usize::from(place & DEAD == 0);
        }
        // SAFETY: these were written.
        unsafe { self.add(len) };
    }

    /// Appends the merge of an older run with a newer list. Of equal keys, the older come first. Unless `ALL`, only the newest
    /// element of each key is kept; the newer list has none else. Elements of it that are [marked](DEAD) are left out.
    fn append_merged<const ALL: bool>(&mut self, older: Run<'_, C>, newer: &Self) {
        if newer.len() <= older.keys.len() / SKEWED {
            self.append_searched::<ALL>(older, newer);
            return;
        }
        let (a, b, places) = (older.keys, &newer.keys[..], &newer.places[..newer.len()]);
        let (to_keys, to_places) = self.room(a.len() + b.len());
        let (mut i, mut j, mut len) = (0, 0, 0);
        while i < a.len() && j < b.len() {
            let (x, y, place) = (a[i], b[j], places[j]);
            let (is_less, takes_older) = (x < y, x <= y);
            let writes_older = if ALL { takes_older } else { is_less };
            // SAFETY: there is room for all elements, and `len <= i + j`.
            unsafe {
                to_keys.add(len).write(if writes_older { x } else { y });
                to_places.add(len).write(if writes_older { older.place + i as u64 } else { place });
            }
            (i, j) = (i + usize::from(takes_older), j + usize::from(!takes_older));
            // An older element with the key of a newer one is overwritten by that. No jump has to be predicted.
            let is_last = a.get(i) != Some(&x);
            let is_kept = ALL | (is_less & is_last) | (!takes_older & (place & DEAD == 0));
            len += usize::from(is_kept);
        }
        // SAFETY: these were written.
        unsafe { self.add(len) };
        self.append::<ALL>(older.part(i..a.len()));
        self.append_unmarked(&b[j..], &places[j..]);
    }

    /// The same as [`append_merged`](Self::append_merged), for a list that is much shorter than the run.
    fn append_searched<const ALL: bool>(&mut self, older: Run<'_, C>, newer: &Self) {
        let are_all_kept = ALL || are_distinct(older.keys);
        let append = |list: &mut Self, range: Range<usize>| match are_all_kept {
            true => list.append_all(older.part(range)),
            false => list.append_last(older.part(range)),
        };
        let mut at = 0;
        for (key, place) in newer.keys.iter().zip(&newer.places) {
            let end = gallop(older.keys, at, |other| if ALL { other <= *key } else { other < *key });
            append(self, at..end);
            self.append_unmarked(slice::from_ref(key), slice::from_ref(place));
            at = if ALL { end } else { gallop(older.keys, end, |other| other == *key) };
        }
        append(self, at..older.keys.len());
    }

    /// Marks the tombstones.
    fn mark_dead(&mut self, levels: &[NativeLevel<'_, C>]) {
        if levels.iter().any(NativeLevel::has_marks) {
            self.places.iter_mut().for_each(|place| *place |= if is_dead(levels, *place) { DEAD } else { 0 });
        }
    }

    /// Removes the tombstones from `start` on.
    fn drop_dead(&mut self, levels: &[NativeLevel<'_, C>], start: usize) {
        let mut len = start;
        for at in start..self.len() {
            let (key, place) = (self.keys[at], self.places[at]);
            (self.keys[len], self.places[len]) = (key, place);
            len += usize::from(!is_dead(levels, place));
        }
        self.keys.truncate(len);
        self.places.truncate(len);
    }
}

#[inline(always)]
fn is_dead<C: KeyCode>(levels: &[NativeLevel<'_, C>], place: u64) -> bool {
    let (level, position) = split_place(place);
    levels[level].kind(position) == TOMBSTONE
}

/// Returns whether ascending keys are distinct.
fn are_distinct<C: KeyCode>(keys: &[C]) -> bool {
    // Parts are compared as a whole, without a jump per key.
    let (from, next) = (keys, keys.get(1..).unwrap_or(&[]));
    from.chunks(64).zip(next.chunks(64)).all(|(a, b)| !a.iter().zip(b).fold(false, |found, (a, b)| found | (a == b)))
}

/// Returns the number of different keys among ascending ones.
fn count_distinct<C: KeyCode>(keys: &[C]) -> usize {
    let next = keys.get(1..).unwrap_or(&[]);
    usize::from(!keys.is_empty()) + keys.iter().zip(next).map(|(a, b)| usize::from(a != b)).sum::<usize>()
}

/// Lists that merges of several windows alternate between.
pub struct Merger<C> {
    merged: List<C>,
    next: List<C>,
}

impl<C: KeyCode> Merger<C> {
    /// Makes one without memory.
    pub const fn new() -> Self {
        Self { merged: List::new(), next: List::new() }
    }

    /// Merges all windows but the oldest that is not empty, which it returns.
    ///
    /// The newest come first: usually they are the shortest.
    fn merge_newer<'a, const ALL: bool>(
        &mut self,
        levels: &[NativeLevel<'a, C>],
        windows: &Windows,
    ) -> Option<Run<'a, C>> {
        self.merged.clear();
        let mut older: Option<Run<'a, C>> = None;
        for level in windows.indices().rev() {
            if let Some(run) = older.replace(Run::new(levels, level, windows.get(level))) {
                self.next.clear();
                self.next.append_merged::<ALL>(run, &self.merged);
                std::mem::swap(&mut self.merged, &mut self.next);
            }
        }
        older
    }

    /// Appends all elements of windows to a list. Of equal keys, the older come first.
    pub fn append_all(&mut self, levels: &[NativeLevel<'_, C>], windows: &Windows, list: &mut List<C>) {
        if let Some(oldest) = self.merge_newer::<true>(levels, windows) {
            list.append_merged::<true>(oldest, &self.merged);
        }
    }

    /// Appends the live elements of windows to a list.
    pub fn append_live(&mut self, levels: &[NativeLevel<'_, C>], windows: &Windows, list: &mut List<C>) {
        if let Some(oldest) = self.merge_newer::<false>(levels, windows) {
            self.merged.mark_dead(levels);
            append_oldest(levels, oldest, &self.merged, list);
        }
    }

    /// Counts the live elements of windows.
    pub fn count_live(&mut self, levels: &[NativeLevel<'_, C>], windows: &Windows) -> usize {
        let Some(oldest) = self.merge_newer::<false>(levels, windows) else { return 0 };
        self.merged.mark_dead(levels);
        let is_marked = levels[split_place(oldest.place).0].has_marks();
        if is_marked || self.merged.len() > oldest.keys.len() / SKEWED {
            self.next.clear();
            append_oldest(levels, oldest, &self.merged, &mut self.next);
            return self.next.len();
        }
        // A newer element adds a key, or removes one.
        let mut count = count_distinct(oldest.keys);
        let mut at = 0;
        for (&key, &place) in self.merged.keys.iter().zip(&self.merged.places) {
            at = gallop(oldest.keys, at, |other| other < key);
            let is_present = oldest.keys.get(at) == Some(&key);
            count = count + usize::from(place & DEAD == 0) - usize::from(is_present);
        }
        count
    }
}

/// Appends the live elements of the oldest run and of the list that all newer ones were merged into, whose tombstones are
/// [marked](DEAD).
fn append_oldest<C: KeyCode>(levels: &[NativeLevel<'_, C>], oldest: Run<'_, C>, newer: &List<C>, list: &mut List<C>) {
    let start = list.len();
    list.append_merged::<false>(oldest, newer);
    if levels[split_place(oldest.place).0].has_marks() {
        list.drop_dead(levels, start);
    }
}
