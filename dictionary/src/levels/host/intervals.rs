//! The host side of queries on intervals: counts and ranges.
//!
//! There are four ways to answer them:
//! - If there is a single level with distinct keys, the elements of an interval are adjacent. Their number is the
//!   difference of two positions, and they are copied.
//! - Otherwise, the elements that overlap the intervals are merged, tile by tile.
//! - If few short intervals are counted, a warp compares the elements of each.
//! - If the intervals overlap each other so much that they have far more elements in total than the levels, the levels
//!   are merged once, into a temporary level of distinct keys.

#![deny(unsafe_op_in_unsafe_fn)]

use super::level::AnyLevel;
use super::stack::AnyStack;
use super::types::{Types, Written, with_code, with_value};
use super::view::AnyLevels;
use crate::Carrier;
use crate::levels::device::intervals::copy::{COPY_TILE, CopyWindows};
use crate::levels::device::intervals::windows::FindWindows;
use crate::levels::device::query::small::{CountFew, FEW_QUERIES};
use crate::levels::device::table::THREADS;
use crate::levels::device::tiles::{
    BLOCKS_AT_ONCE, CountLive, Cuts, EmitLive, LEAST_PER_PIECE, count_items, items, nominal,
};
use bytemuck::Pod;
use gpu_primitives::block::lookback;
use gpu_primitives::kernel::PairsMut;
use gpu_primitives::kernel::{Next, View};
use gpu_primitives::lowered::{AnySlice, AnySliceMut, AnyVec};
use gpu_primitives::monoid::Monoid;
use gpu_primitives::{
    DeviceSlice, DeviceSliceMut, DeviceValue, DeviceVec, Error, Stream, expect_len, reduce, scan, transfer,
};

/// All levels are merged once if the intervals have more than this many times as many overlapping elements as the
/// levels have elements.
const OVERLAP: usize = 2;

/// Intervals of keys, both ends inclusive: `low[i]` to `high[i]`. An interval that ends before it begins is empty.
#[derive(Clone, Copy, Debug)]
pub struct Intervals<'a, K> {
    /// The first key of each interval.
    pub low: DeviceSlice<'a, K>,
    /// The last key of each interval.
    pub high: DeviceSlice<'a, K>,
}

/// The elements of intervals, on the device.
#[derive(Debug)]
pub struct Ranges<K: Pod, V: Pod> {
    /// Where the elements of each interval begin; one more entry says where the last ones end.
    pub offsets: DeviceVec<u64>,
    /// The keys, ascending within each interval. As many as the last offset says.
    pub keys: DeviceVec<K>,
    /// The values of the keys. Empty if values are zero-sized.
    pub values: DeviceVec<V>,
}

/// Room for the elements of intervals.
#[derive(Debug)]
pub struct RangesMut<'a, K, V> {
    /// Where the elements of each interval begin; one more entry for where the last ones end.
    pub offsets: DeviceSliceMut<'a, u64>,
    /// The keys, ascending within each interval.
    pub keys: DeviceSliceMut<'a, K>,
    /// As many values; none if values are zero-sized.
    pub values: DeviceSliceMut<'a, V>,
}

impl<K: Pod, V: Pod> Ranges<K, V> {
    /// Copies the elements of each interval to the host. Waits for the stream.
    ///
    /// # Errors
    /// Any error of a copy to the host.
    pub fn to_vec(&self, stream: &Stream) -> Result<Vec<Vec<(K, V)>>, Error> {
        let offsets = self.offsets.to_vec(stream)?;
        let total = offsets.last().map_or(0, |&total| total as usize);
        let keys = self.keys.slice(..total)?.to_vec(stream)?;
        let values =
            if size_of::<V>() == 0 { vec![V::zeroed(); total] } else { self.values.slice(..total)?.to_vec(stream)? };
        let pairs: Vec<(K, V)> = keys.into_iter().zip(values).collect();
        let range = |ends: &[u64]| {
            let (start, end) = (ends[0] as usize, ends[1] as usize);
            let range = pairs.get(start..end).ok_or(Error::RangeOutside { start, end, len: pairs.len() })?;
            Ok(range.to_vec())
        };
        offsets.windows(2).map(range).collect()
    }

    /// Combines the values of each interval, in key order. Does not wait.
    ///
    /// # Errors
    /// Those of [`reduce::segmented`].
    #[doc(hidden)]
    pub fn reduce(&self, stream: &Stream, operation: impl Monoid<V>) -> Result<DeviceVec<V>, Error> {
        let mut reduced = stream.uninit(self.offsets.len().saturating_sub(1))?;
        reduce::segmented(stream, &self.values, &self.offsets, &mut reduced, operation)?;
        Ok(reduced)
    }
}

/// [`Intervals`] of keys whose type is known by its size alone.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AnyIntervals<'a> {
    pub low: AnySlice<'a>,
    pub high: AnySlice<'a>,
}

impl<'a, K: Pod> From<Intervals<'a, K>> for AnyIntervals<'a> {
    fn from(intervals: Intervals<'a, K>) -> Self {
        Self { low: intervals.low.into(), high: intervals.high.into() }
    }
}

impl AnyIntervals<'_> {
    /// Returns the number of intervals.
    pub(crate) fn len(&self) -> Result<usize, Error> {
        expect_len("the ends of the intervals", self.low.len(), self.high.len())?;
        Ok(self.low.len())
    }
}

/// [`Ranges`] of types that are known by their sizes alone.
#[derive(Debug)]
pub(crate) struct AnyRanges {
    pub offsets: DeviceVec<u64>,
    pub keys: AnyVec,
    pub values: AnyVec,
}

/// Room for the elements of intervals, of types that are known by their sizes alone.
pub(crate) struct AnyRangesMut<'a> {
    pub offsets: DeviceSliceMut<'a, u64>,
    pub keys: AnySliceMut<'a>,
    pub values: AnySliceMut<'a>,
}

impl AnyStack {
    /// Counts the live keys in each interval: see [`Stack::count`](crate::levels::Stack::count).
    pub(crate) fn count(&self, stream: &Stream, intervals: AnyIntervals<'_>) -> Result<DeviceVec<u64>, Error> {
        let len = intervals.len()?;
        if len == 0 || self.is_empty() {
            return stream.zeroed(len);
        }
        let mut counts = stream.uninit(len)?;
        if self.distinct_level().is_some() {
            self.count_distinct(stream, intervals, counts.as_mut_slice())?;
            return Ok(counts);
        }
        if len <= OVERLAP {
            self.count_into(stream, intervals, counts.as_mut_slice())?;
            return Ok(counts);
        }
        let windows;
        let overlapping = if self.are_few(stream, len) {
            let left = self.count_few(stream, intervals, counts.as_mut_slice())?;
            let overlapping: u64 = left.to_vec(stream)?.iter().sum();
            if overlapping == 0 {
                return Ok(counts);
            }
            windows = self.windows(stream, intervals, Some(left.as_slice()))?;
            overlapping as usize
        } else {
            transfer::fill(stream, &mut counts, 0)?;
            windows = self.windows(stream, intervals, None)?;
            windows.overlapping(stream)?
        };
        if overlapping > OVERLAP * self.len()
            && let Some(merged) = self.merged(self.types.keys_alone(), stream)
        {
            return merged.count(stream, intervals);
        }
        self.count_windows(stream, &windows, counts.as_mut_slice())?;
        Ok(counts)
    }

    /// Counts the live keys in each interval, and does not wait: see [`Stack::count_into`](crate::levels::Stack::count_into).
    pub(crate) fn count_into(
        &self,
        stream: &Stream,
        intervals: AnyIntervals<'_>,
        mut counts: DeviceSliceMut<'_, u64>,
    ) -> Result<(), Error> {
        let len = intervals.len()?;
        expect_len("the counts of the intervals", len, counts.len())?;
        if len == 0 || self.is_empty() {
            transfer::fill(stream, counts, 0)
        } else if self.distinct_level().is_some() {
            self.count_distinct(stream, intervals, counts)
        } else {
            let mut left = None;
            if self.are_few(stream, len) {
                left = Some(self.count_few(stream, intervals, counts.reborrow())?);
            } else {
                transfer::fill(stream, counts.reborrow(), 0)?;
            }
            let windows = self.windows(stream, intervals, left.as_ref().map(DeviceVec::as_slice))?;
            self.count_windows(stream, &windows, counts)
        }
    }

    /// Finds the windows of intervals, or only those of which `left` says that there is something left. Does not wait.
    fn windows(
        &self,
        stream: &Stream,
        intervals: AnyIntervals<'_>,
        left: Option<DeviceSlice<'_, u64>>,
    ) -> Result<Windows, Error> {
        Windows::find(stream, self.any_view(stream, false)?, intervals, left, self.next_of_count())
    }

    /// Counts the live keys in each short interval, and returns how many elements overlap each of the others, whose counts
    /// are zero. There must be at least one level and one interval. Does not wait.
    fn count_few(
        &self,
        stream: &Stream,
        intervals: AnyIntervals<'_>,
        mut counts: DeviceSliceMut<'_, u64>,
    ) -> Result<DeviceVec<u64>, Error> {
        let mut left = stream.uninit(intervals.low.len())?;
        let low = self.types.encode_query(stream, intervals.low)?;
        let high = self.types.encode_query(stream, intervals.high)?;
        let levels = self.any_view(stream, false)?;
        with_code!(self.types.code => C, {
            let (low, high) = (low.slice().view(stream)?, high.slice().view(stream)?);
            let (counts, left) = (counts.view_mut(stream)?, left.view_mut(stream)?);
            let kernel = CountFew::<C>::new(levels.typed(), low, high, counts, left).followed_by(self.next_of_count());
            // SAFETY: there is a warp per interval. All arrays have the same length.
            unsafe { stream.launch(kernel, intervals.low.len().div_ceil(FEW_QUERIES))? };
        });
        Ok(left)
    }

    /// Counts the keys in intervals of a single level whose keys are distinct.
    fn count_distinct(
        &self,
        stream: &Stream,
        intervals: AnyIntervals<'_>,
        counts: DeviceSliceMut<'_, u64>,
    ) -> Result<(), Error> {
        let windows = FoundWindows { counts: Some(counts), ..FoundWindows::default() };
        find_windows(stream, self.any_view(stream, false)?, intervals, None, 0, windows, |_| {})
    }

    /// Names the kernels of a count, whichever is first.
    fn next_of_count(&self) -> Next {
        let is_marked = self.has_tombstones();
        with_code!(self.types.code => C, if is_marked {
            type P = <() as Carrier>::Marked;
            |next| {
                next.kernel::<FindWindows<C>>();
                next.kernel::<CountLive<C, P, { count_items::<C, P>() }>>();
            }
        } else {
            |next| {
                next.kernel::<FindWindows<C>>();
                next.kernel::<CountLive<C, (), { count_items::<C, ()>() }>>();
            }
        })
    }

    /// Names the kernels of ranges after the first one.
    fn next_of_ranges(&self) -> Next {
        let is_marked = self.has_tombstones();
        with_code!(self.types.code => C, with_value!(self.types.value => W, if is_marked {
            type P = <W as Carrier>::Marked;
            |next| next.kernel::<EmitLive<C, P, { items::<C, P>() }>>()
        } else {
            |next| next.kernel::<EmitLive<C, W, { items::<C, W>() }>>()
        }))
    }

    /// Adds the number of live keys in windows to the counts.
    fn count_windows(
        &self,
        stream: &Stream,
        windows: &Windows,
        mut counts: DeviceSliceMut<'_, u64>,
    ) -> Result<(), Error> {
        let levels = self.any_view(stream, false)?;
        let blocks = stream.device().limits().multiprocessors as usize * BLOCKS_AT_ONCE as usize;
        macro_rules! count {
            ($code:ty, $payload:ty) => {{
                const ITEMS: usize = count_items::<$code, $payload>();
                let cuts = windows.cuts(stream, nominal(ITEMS))?;
                let kernel = CountLive::<$code, $payload, ITEMS>::new(levels.typed(), cuts, counts.view_mut(stream)?);
                // SAFETY: the windows and positions are those of these levels, and the counts are zero. Any number of
                // blocks will do.
                unsafe { stream.launch(kernel, blocks) }
            }};
        }
        let is_marked = self.has_tombstones();
        with_code!(self.types.code => C, if is_marked {
            type P = <() as Carrier>::Marked;
            count!(C, P)
        } else {
            count!(C, ())
        })
    }

    /// Returns the live elements in each interval: see [`Stack::ranges`](crate::levels::Stack::ranges).
    pub(crate) fn ranges(&self, stream: &Stream, intervals: AnyIntervals<'_>) -> Result<AnyRanges, Error> {
        let (types, len) = (self.types, intervals.len()?);
        if len == 0 || self.is_empty() {
            let keys = AnyVec::uninit(stream, types.key, 0)?;
            return Ok(AnyRanges { offsets: stream.zeroed(len + 1)?, keys, values: types.room_for_values(stream, 0)? });
        }
        if let Some(level) = self.distinct_level() {
            return self.ranges_of_only(stream, level, intervals);
        }
        let windows = Windows::find(stream, self.any_view(stream, false)?, intervals, None, self.next_of_ranges())?;
        let total = reduce::sum(stream, &windows.overlapping)?;
        let [overlapping, weight] = last_of(stream, [total.as_slice(), windows.positions.as_slice()])?;
        if overlapping > OVERLAP * self.len()
            && let Some(merged) = self.merged(types, stream)
        {
            return merged.ranges(stream, intervals);
        }
        let mut offsets = stream.uninit(len + 1)?;
        let mut keys = AnyVec::uninit(stream, types.code, overlapping)?;
        let mut values = types.room_for_values(stream, overlapping)?;
        let out =
            AnyRangesMut { offsets: offsets.as_mut_slice(), keys: keys.as_mut_slice(), values: values.as_mut_slice() };
        self.emit(stream, &windows, weight, out)?;
        let [found] = last_of(stream, [offsets.as_slice()])?;
        keys.truncate(found);
        values.truncate(found);
        let keys = types.decode_result(stream, keys)?;
        let values = self.combined(stream, keys.as_slice(), values)?;
        Ok(AnyRanges { offsets, keys, values })
    }

    /// Returns all elements in each interval of the only level, live or not. There must be at least one interval. Waits.
    pub(crate) fn ranges_of_only(
        &self,
        stream: &Stream,
        level: &AnyLevel,
        intervals: AnyIntervals<'_>,
    ) -> Result<AnyRanges, Error> {
        let types = self.types;
        let windows = LevelWindows::find(stream, self.any_view(stream, false)?, intervals)?;
        let [total] = last_of(stream, [windows.offsets.as_slice()])?;
        let mut keys = AnyVec::uninit(stream, types.code, total)?;
        let mut values = types.room_for_values(stream, total)?;
        windows.copy(stream, level, keys.as_mut_slice(), values.as_mut_slice())?;
        Ok(AnyRanges { offsets: windows.offsets, keys: types.decode_result(stream, keys)?, values })
    }

    /// Writes the live elements in each interval into given room: see [`Stack::ranges_into`](crate::levels::Stack::ranges_into).
    pub(crate) fn ranges_into(
        &self,
        stream: &Stream,
        intervals: AnyIntervals<'_>,
        to: AnyRangesMut<'_>,
    ) -> Result<DeviceValue<u64>, Error> {
        let AnyRangesMut { mut offsets, mut keys, values } = to;
        let (types, len, room) = (self.types, intervals.len()?, keys.len());
        expect_len("the offsets of the intervals", len + 1, offsets.len())?;
        expect_len("the values of the intervals", types.values_for(room), values.len())?;
        if len == 0 || self.is_empty() {
            transfer::fill(stream, offsets.reborrow(), 0)?;
            return reduce::sum(stream, offsets.as_slice());
        }
        if self.combines() {
            // All keys are looked up in the end, also those that the kernel does not write.
            keys.zero(stream)?;
        }
        let mut written_keys = Written::keys(types, stream, keys)?;
        let mut written_values = Written::values(types, stream, values)?;
        let view = self.any_view(stream, false)?;
        let needed;
        if let Some(level) = self.distinct_level() {
            let windows = LevelWindows::find(stream, view, intervals)?;
            windows.copy(stream, level, written_keys.slice(), written_values.slice())?;
            offsets.copy_from(stream, windows.offsets.as_slice())?;
            needed = reduce::sum(stream, &windows.counts)?;
        } else {
            let windows = Windows::find(stream, view, intervals, None, self.next_of_ranges())?;
            needed = reduce::sum(stream, &windows.overlapping)?;
            // Every interval has its elements, or the least weight.
            let weight = room + len * windows.least();
            let (keys, values) = (written_keys.slice(), written_values.slice());
            self.emit(stream, &windows, weight, AnyRangesMut { offsets: offsets.reborrow(), keys, values })?;
        }
        let keys = written_keys.finish(stream)?;
        let mut values = written_values.finish(stream)?;
        if self.combines() {
            values.copy_from(stream, self.lookup(stream, keys.as_slice())?.0.as_slice())?;
        }
        Ok(needed)
    }

    /// Writes the live elements in windows, as kernels write them. `weight` is at least the length of the sequence that is
    /// cut into tiles: if it is less, nothing is written. Does not wait.
    fn emit(&self, stream: &Stream, windows: &Windows, weight: usize, mut out: AnyRangesMut<'_>) -> Result<(), Error> {
        let levels = self.any_view(stream, true)?;
        macro_rules! emit {
            ($code:ty, $payload:ty) => {{
                const ITEMS: usize = items::<$code, $payload>();
                let tile = nominal(ITEMS);
                let tiles = weight.div_ceil(tile);
                let kernel = EmitLive::<$code, $payload, ITEMS>::new(
                    levels.typed(),
                    windows.cuts(stream, tile)?,
                    PairsMut::view(out.keys.view_mut(stream)?, out.values.view_mut(stream)?),
                    out.offsets.view_mut(stream)?,
                    stream.lookback_words(lookback::scratch_words::<u64>(tiles))?,
                );
                // SAFETY: the windows and positions are those of these levels. There is scratch for all blocks.
                unsafe { stream.launch(kernel, tiles) }
            }};
        }
        let is_marked = self.has_tombstones();
        with_code!(self.types.code => C, with_value!(self.types.value => W, if is_marked {
            type P = <W as Carrier>::Marked;
            emit!(C, P)
        } else {
            emit!(C, W)
        }))
    }

    /// Makes a temporary merged copy of the live elements as one level, with their values or without, as `types` has them.
    /// Returns `None` if that fails, most likely for lack of memory. Waits.
    fn merged(&self, types: &'static Types, stream: &Stream) -> Option<Self> {
        let merged = AnyLevel::live_with_room(types, stream, self.place_of_copies(), &self.levels()).ok()?;
        let mut stack = Self::new(types);
        stack.set(0, Some(merged));
        Some(stack)
    }
}

/// Returns the last element of each slice. Waits once: the elements are gathered on the device before they are copied to
/// the host.
pub(crate) fn last_of<const N: usize>(stream: &Stream, slices: [DeviceSlice<'_, u64>; N]) -> Result<[usize; N], Error> {
    let last = slices.map(|slice| slice.slice(slice.len() - 1..));
    let mut found = [0; N];
    if let [Ok(only)] = &last[..] {
        only.copy_to_host(stream, &mut found)?;
    } else {
        let mut gathered = stream.uninit::<u64>(N)?;
        for (i, element) in last.into_iter().enumerate() {
            gathered.slice_mut(i..=i)?.copy_from(stream, element?)?;
        }
        gathered.slice(..)?.copy_to_host(stream, &mut found)?;
    }
    Ok(found.map(|number: u64| number as usize))
}

/// Where the results of [`FindWindows`] go; `None` for those that are not wanted.
#[derive(Default)]
pub(crate) struct FoundWindows<'a> {
    pub windows: Option<DeviceSliceMut<'a, u32>>,
    pub weights: Option<DeviceSliceMut<'a, u64>>,
    pub counts: Option<DeviceSliceMut<'a, u64>>,
}

pub(crate) fn find_windows(
    stream: &Stream,
    levels: AnyLevels<'_>,
    intervals: AnyIntervals<'_>,
    left: Option<DeviceSlice<'_, u64>>,
    log_pieces: u32,
    mut found: FoundWindows<'_>,
    next: Next,
) -> Result<(), Error> {
    let types = levels.types;
    let (low, high) = (types.encode_query(stream, intervals.low)?, types.encode_query(stream, intervals.high)?);
    let left = left.map_or_else(|| Ok(View::empty()), |left| left.view(stream))?;
    let windows = found.windows.as_mut().map_or_else(|| Ok(View::empty_mut()), |windows| windows.view_mut(stream))?;
    let weights = found.weights.as_mut().map_or_else(|| Ok(View::empty_mut()), |weights| weights.view_mut(stream))?;
    let counts = found.counts.as_mut().map_or_else(|| Ok(View::empty_mut()), |counts| counts.view_mut(stream))?;
    with_code!(types.code => C, {
        let (low, high) = (low.slice().view(stream)?, high.slice().view(stream)?);
        let kernel = FindWindows::<C>::new(levels.typed(), low, high, left, log_pieces, windows, weights, counts)
            .followed_by(next);
        // SAFETY: there is a thread per interval and one more. The outputs have the required lengths.
        unsafe { stream.launch(kernel, (intervals.low.len() + 1).div_ceil(THREADS as usize)) }
    })
}

/// The parts of a level whose keys are distinct that lie in intervals.
struct LevelWindows {
    windows: DeviceVec<u32>,
    /// The number of elements in each window, and a zero.
    counts: DeviceVec<u64>,
    /// The exclusive sums of the counts.
    offsets: DeviceVec<u64>,
}

impl LevelWindows {
    /// Finds the windows. There must be at least one interval. Does not wait.
    fn find(stream: &Stream, levels: AnyLevels<'_>, intervals: AnyIntervals<'_>) -> Result<Self, Error> {
        let len = intervals.len()?;
        let mut windows = stream.uninit(2 * len)?;
        let mut counts = stream.uninit(len + 1)?;
        let found =
            FoundWindows { windows: Some(windows.as_mut_slice()), counts: Some(counts.as_mut_slice()), weights: None };
        find_windows(stream, levels, intervals, None, 0, found, |_| {})?;
        let mut offsets = stream.uninit::<u64>(len + 1)?;
        scan::exclusive_sum(stream, &counts, &mut offsets)?;
        Ok(Self { windows, counts, offsets })
    }

    /// Copies the elements in the windows, or nothing if there is not room for all of them. Does not wait.
    fn copy(
        &self,
        stream: &Stream,
        level: &AnyLevel,
        mut keys: AnySliceMut<'_>,
        mut values: AnySliceMut<'_>,
    ) -> Result<(), Error> {
        let most = keys.len() + self.offsets.len() - 1;
        let (codes, level_values) = level.run();
        let types = level.types;
        with_code!(types.code => C, with_value!(types.value => W, {
            let kernel = CopyWindows::<C, W>::new(
                codes.view(stream)?,
                level_values.view(stream)?,
                types.sign,
                self.windows.view(stream)?,
                self.offsets.view(stream)?,
                keys.view_mut(stream)?,
                values.view_mut(stream)?,
            );
            // SAFETY: there is a block per tile of outputs and windows. The windows are within the level, and the offsets
            // are the sums of their lengths.
            unsafe { stream.launch(kernel, most.div_ceil(COPY_TILE)) }
        }))
    }
}

/// The parts of each level that lie in the intervals.
struct Windows {
    log_pieces: u32,
    windows: DeviceVec<u32>,
    /// Where each interval begins in the sequence that is cut into tiles, and where the last one ends.
    positions: DeviceVec<u64>,
    /// How many overlapping elements each interval has.
    overlapping: DeviceVec<u64>,
}

impl Windows {
    /// Finds the windows. There must be at least one level and one interval. Does not wait.
    fn find(
        stream: &Stream,
        view: AnyLevels<'_>,
        intervals: AnyIntervals<'_>,
        left: Option<DeviceSlice<'_, u64>>,
        next: Next,
    ) -> Result<Self, Error> {
        let len = intervals.len()?;
        let log_pieces = view.len().next_power_of_two().ilog2();
        let mut windows = stream.uninit::<u32>((2 * len) << log_pieces)?;
        let mut weights = stream.uninit::<u64>(len + 1)?;
        let mut counts = stream.uninit::<u64>(len + 1)?;
        let found = FoundWindows {
            windows: Some(windows.as_mut_slice()),
            weights: Some(weights.as_mut_slice()),
            counts: Some(counts.as_mut_slice()),
        };
        find_windows(stream, view, intervals, left, log_pieces, found, next)?;
        let mut positions = stream.uninit::<u64>(len + 1)?;
        scan::exclusive_sum(stream, &weights, &mut positions)?;
        Ok(Self { log_pieces, windows, positions, overlapping: counts })
    }

    /// Returns the number of overlapping elements. Waits.
    fn overlapping(&self, stream: &Stream) -> Result<usize, Error> {
        Ok(reduce::sum(stream, &self.overlapping)?.get(stream)? as usize)
    }

    /// Returns how the elements in the windows are cut into tiles.
    fn cuts(&self, stream: &Stream, tile: usize) -> Result<View<'_, Cuts>, Error> {
        Ok(Cuts::by_intervals(self.windows.view(stream)?, self.positions.view(stream)?, tile, self.log_pieces))
    }

    /// Returns the least weight of an interval.
    fn least(&self) -> usize {
        LEAST_PER_PIECE << self.log_pieces
    }
}
