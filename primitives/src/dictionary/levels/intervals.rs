//! The host side of queries on intervals: counts and ranges.
//!
//! There are three ways to answer them:
//! - If there is a single level with distinct keys, the elements of an interval are adjacent. Their number is the
//!   difference of two positions, and they are copied.
//! - Otherwise, the elements that overlap the intervals are merged, tile by tile.
//! - If the intervals overlap each other so much that they have far more elements in total than the levels, the levels
//!   are merged once, into a temporary level of distinct keys.

#![deny(unsafe_op_in_unsafe_fn)]

use super::copy::COPY_TILE;
use super::level::{Level, bits, carried, carried_mut, nothing, nothing_mut, values_for, with_carrier, with_payload};
use super::payload::{Marked, MarkedLong, MarkedNone, Payload};
use super::stack::Stack;
use super::table::THREADS;
use super::tiles::{COUNT, EMIT, items, nominal};
use super::{CopyWindows, FindWindows, LevelTiles, Levels};
use crate::block::lookback;
use crate::dictionary::Key;
use crate::kernel::View;
use crate::{DeviceSlice, DeviceVec, Error, Stream, scan};
use bytemuck::Pod;

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
    /// The keys, ascending within each interval. Elements past the last offset, if any, have no meaning.
    pub keys: DeviceVec<K>,
    /// The values of the keys. Empty if values are zero-sized.
    pub values: DeviceVec<V>,
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
}

impl<K: Pod> Intervals<'_, K> {
    /// Returns the number of intervals.
    fn len(&self) -> Result<usize, Error> {
        let (expected, found) = (self.low.len(), self.high.len());
        if expected != found {
            return Err(Error::LengthMismatch { what: "the ends of the intervals", expected, found });
        }
        Ok(expected)
    }
}

impl<K: Key, V: Pod> Stack<K, V> {
    /// Counts the live keys in each interval.
    ///
    /// Does not wait if there is a single level whose keys are known to be distinct. Otherwise, for three intervals or
    /// more, waits for the stream, to learn whether they overlap so much that merging all levels once is faster than
    /// merging the elements of each interval. If so, waits once more.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if `low` and `high` differ in length, or the errors of [`lookup`](Self::lookup).
    pub fn count(&self, stream: &Stream, intervals: Intervals<'_, K>) -> Result<DeviceVec<u64>, Error> {
        let len = intervals.len()?;
        if len == 0 || self.is_empty() {
            return stream.zeroed(len);
        }
        let view = self.carried_view::<()>(stream)?;
        if self.distinct_level().is_some() {
            let mut counts = stream.uninit(len)?;
            let windows = FoundWindows { counts: Some(&mut counts), ..FoundWindows::default() };
            find_windows::<K>(stream, view, intervals, 0, windows)?;
            return Ok(counts);
        }
        let windows = Windows::find(stream, view.clone(), self.level_count(), intervals)?;
        if len > OVERLAP
            && windows.candidates(stream)? > OVERLAP * self.len()
            && let Some(merged) = self.merged::<()>(stream)
        {
            return merged.count(stream, intervals);
        }
        let mut counts = stream.zeroed::<u64>(len)?;
        if self.has_tombstones() {
            windows.count::<K, MarkedNone>(stream, view, &mut counts)?;
        } else {
            windows.count::<K, ()>(stream, view, &mut counts)?;
        }
        Ok(counts)
    }

    /// Returns the live elements in each interval. Waits for the stream, to learn how much memory they may need.
    ///
    /// # Errors
    /// - [`Error::LengthMismatch`] if `low` and `high` differ in length.
    /// - [`Error::OutOfMemory`] if the results do not fit. The error says how much memory they need.
    /// - The errors of [`lookup`](Self::lookup).
    pub fn ranges(&self, stream: &Stream, intervals: Intervals<'_, K>) -> Result<Ranges<K, V>, Error> {
        let len = intervals.len()?;
        if len == 0 || self.is_empty() {
            return Ok(Ranges { offsets: stream.zeroed(len + 1)?, keys: stream.uninit(0)?, values: stream.uninit(0)? });
        }
        let view = self.carried_view::<()>(stream)?;
        if let Some(level) = self.distinct_level() {
            return copy_ranges(stream, level, view, intervals);
        }
        let windows = Windows::find(stream, view, self.level_count(), intervals)?;
        let candidates = windows.candidates(stream)?;
        if candidates > OVERLAP * self.len()
            && let Some(merged) = self.merged::<V>(stream)
        {
            return merged.ranges(stream, intervals);
        }
        let weight = last(stream, &windows.places)?;
        let mut ranges = Ranges {
            offsets: stream.uninit(len + 1)?,
            keys: stream.uninit(candidates)?,
            values: stream.uninit(values_for::<V>(candidates))?,
        };
        with_payload!(V, self.has_tombstones(), P => windows.emit::<K, V, P>(stream, self, weight, &mut ranges)?);
        Ok(ranges)
    }

    /// Makes a temporary merged copy of the live elements as one level, with their values or without. Returns `None` if
    /// that fails, most likely for lack of memory. Waits.
    fn merged<W: Pod>(&self, stream: &Stream) -> Option<Stack<K, W>> {
        let levels: Vec<&Level<K, V>> = self.oldest_first().map(|(_, level)| level).collect();
        let merged = Level::live_with_room(stream, &levels).ok()?;
        let mut stack = Stack::new();
        stack.set(0, Some(merged));
        Some(stack)
    }
}

/// Returns the last element. Waits.
fn last(stream: &Stream, elements: &DeviceVec<u64>) -> Result<usize, Error> {
    let mut last = [0];
    elements.slice(elements.len() - 1..)?.copy_to_host(stream, &mut last)?;
    Ok(last[0] as usize)
}

/// Where the results of [`FindWindows`] go; `None` for those that are not wanted.
#[derive(Default)]
struct FoundWindows<'a> {
    windows: Option<&'a mut DeviceVec<u32>>,
    weights: Option<&'a mut DeviceVec<u64>>,
    counts: Option<&'a mut DeviceVec<u64>>,
}

fn find_windows<K: Key>(
    stream: &Stream,
    view: View<'_, Levels<K::Code, ()>>,
    intervals: Intervals<'_, K>,
    log_pieces: u32,
    found: FoundWindows<'_>,
) -> Result<(), Error> {
    let kernel = FindWindows::<K::Code>::new(
        view,
        bits(stream, intervals.low)?,
        bits(stream, intervals.high)?,
        log_pieces,
        found.windows.map_or(Ok(nothing_mut()), |windows| windows.raw_view_mut(stream))?,
        found.weights.map_or(Ok(nothing_mut()), |weights| weights.raw_view_mut(stream))?,
        found.counts.map_or(Ok(nothing_mut()), |counts| counts.raw_view_mut(stream))?,
    );
    // SAFETY: there is a thread per interval and one more. The outputs have the required lengths.
    unsafe { stream.launch(kernel, (intervals.low.len() + 1).div_ceil(THREADS as usize)) }
}

/// Copies the elements of intervals from the only level, whose keys are distinct.
fn copy_ranges<K: Key, V: Pod>(
    stream: &Stream,
    level: &Level<K, V>,
    view: View<'_, Levels<K::Code, ()>>,
    intervals: Intervals<'_, K>,
) -> Result<Ranges<K, V>, Error> {
    let len = intervals.len()?;
    let mut windows = stream.uninit(2 * len)?;
    let mut counts = stream.uninit(len + 1)?;
    let found = FoundWindows { windows: Some(&mut windows), counts: Some(&mut counts), weights: None };
    find_windows::<K>(stream, view, intervals, 0, found)?;
    let mut offsets = stream.uninit::<u64>(len + 1)?;
    scan::exclusive_sum(stream, &counts, &mut offsets)?;
    let total = last(stream, &offsets)?;
    let mut keys = stream.uninit::<K>(total)?;
    let mut values = stream.uninit::<V>(values_for::<V>(total))?;
    let (level_keys, level_values, _) = level.parts()?;
    with_carrier!(V, W => {
        let kernel = CopyWindows::<K::Code, W>::new(
            level_keys.raw_view(stream)?,
            carried(level_values.raw_view(stream)?),
            K::SIGN,
            windows.raw_view(stream)?,
            offsets.raw_view(stream)?,
            carried_mut(keys.raw_view_mut(stream)?),
            carried_mut(values.raw_view_mut(stream)?),
        );
        // SAFETY: there is a block per tile of outputs and windows. The windows are within the level, and the offsets
        // are the sums of their lengths.
        unsafe { stream.launch(kernel, (total + len).div_ceil(COPY_TILE))? };
    });
    Ok(Ranges { offsets, keys, values })
}

/// The parts of each level that lie in the intervals.
struct Windows {
    log_pieces: u32,
    windows: DeviceVec<u32>,
    /// Where each interval begins in the sequence that is cut into tiles, and where the last one ends.
    places: DeviceVec<u64>,
    /// How many overlapping elements come before those of each interval, and how many there are in all.
    candidates: DeviceVec<u64>,
}

impl Windows {
    /// Finds the windows. There must be at least one level and one interval. Does not wait.
    fn find<K: Key>(
        stream: &Stream,
        view: View<'_, Levels<K::Code, ()>>,
        levels: usize,
        intervals: Intervals<'_, K>,
    ) -> Result<Self, Error> {
        let len = intervals.len()?;
        let log_pieces = levels.next_power_of_two().ilog2();
        let mut windows = stream.uninit::<u32>((2 * len) << log_pieces)?;
        let mut weights = stream.uninit::<u64>(len + 1)?;
        let mut counts = stream.uninit::<u64>(len + 1)?;
        let found =
            FoundWindows { windows: Some(&mut windows), weights: Some(&mut weights), counts: Some(&mut counts) };
        find_windows::<K>(stream, view, intervals, log_pieces, found)?;
        let mut places = stream.uninit::<u64>(len + 1)?;
        scan::exclusive_sum(stream, &weights, &mut places)?;
        let mut candidates = weights;
        scan::exclusive_sum(stream, &counts, &mut candidates)?;
        Ok(Self { log_pieces, windows, places, candidates })
    }

    /// Returns the number of overlapping elements. Waits.
    fn candidates(&self, stream: &Stream) -> Result<usize, Error> {
        last(stream, &self.candidates)
    }

    fn count<K: Key, P: Payload<Value = ()>>(
        &self,
        stream: &Stream,
        view: View<'_, Levels<K::Code, ()>>,
        counts: &mut DeviceVec<u64>,
    ) -> Result<(), Error> {
        match const { items::<K::Code, P>(COUNT) } {
            13 => self.count_shaped::<K, P, 13>(stream, view, counts),
            _ => self.count_shaped::<K, P, 9>(stream, view, counts),
        }
    }

    fn count_shaped<K: Key, P: Payload<Value = ()>, const ITEMS: usize>(
        &self,
        stream: &Stream,
        view: View<'_, Levels<K::Code, ()>>,
        counts: &mut DeviceVec<u64>,
    ) -> Result<(), Error> {
        /// Blocks per multiprocessor.
        const BLOCKS_AT_ONCE: usize = 2;
        let tile = nominal(ITEMS);
        let kernel = LevelTiles::<K::Code, P, COUNT, ITEMS>::new(
            view,
            self.log_pieces,
            self.windows.raw_view(stream)?,
            self.places.raw_view(stream)?,
            nothing(),
            0,
            tile as u32,
            nothing_mut(),
            nothing_mut(),
            nothing_mut(),
            counts.raw_view_mut(stream)?,
            nothing_mut(),
        );
        let blocks = stream.device().limits().multiprocessors as usize * BLOCKS_AT_ONCE;
        // SAFETY: the windows and positions are those of these levels, and the counts are zero. Any number of blocks
        // will do.
        unsafe { stream.launch(kernel, blocks) }
    }

    fn emit<K: Key, V: Pod, P: Payload>(
        &self,
        stream: &Stream,
        stack: &Stack<K, V>,
        weight: usize,
        ranges: &mut Ranges<K, V>,
    ) -> Result<(), Error> {
        match const { items::<K::Code, P>(EMIT) } {
            13 => self.emit_shaped::<K, V, P, 13>(stream, stack, weight, ranges),
            9 => self.emit_shaped::<K, V, P, 9>(stream, stack, weight, ranges),
            7 => self.emit_shaped::<K, V, P, 7>(stream, stack, weight, ranges),
            _ => self.emit_shaped::<K, V, P, 5>(stream, stack, weight, ranges),
        }
    }

    fn emit_shaped<K: Key, V: Pod, P: Payload, const ITEMS: usize>(
        &self,
        stream: &Stream,
        stack: &Stack<K, V>,
        weight: usize,
        ranges: &mut Ranges<K, V>,
    ) -> Result<(), Error> {
        let tile = nominal(ITEMS);
        let tiles = weight.div_ceil(tile);
        let kernel = LevelTiles::<K::Code, P, EMIT, ITEMS>::new(
            stack.carried_view::<P::Value>(stream)?,
            self.log_pieces,
            self.windows.raw_view(stream)?,
            self.places.raw_view(stream)?,
            nothing(),
            0,
            tile as u32,
            carried_mut(ranges.keys.raw_view_mut(stream)?),
            carried_mut(ranges.values.raw_view_mut(stream)?),
            nothing_mut(),
            ranges.offsets.raw_view_mut(stream)?,
            stream.lookback_words(lookback::scratch_words::<u64>(tiles))?,
        );
        // SAFETY: there is a block per tile. The windows and positions are those of these levels. The outputs have room
        // for all overlapping elements.
        unsafe { stream.launch(kernel, tiles) }
    }
}
