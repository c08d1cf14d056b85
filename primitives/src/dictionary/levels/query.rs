//! The queries on the host.

use super::host::{
    Level, Stack, bits, carried_mut, count_live, nothing, nothing_mut, values_for, with_carrier, with_payload,
};
use super::payload::{Marked, MarkedLong, MarkedNone, Payload};
use super::table::THREADS;
use super::tiles::{COUNT, EMIT, items, nominal};
use super::{FindNeighbours, FindWindows, LevelTiles, Levels, LookupKeys};
use crate::block::lookback;
use crate::dictionary::{Key, Lookup};
use crate::{DeviceSlice, DeviceVec, Error, Stream, scan};
use bytemuck::Pod;

/// Intervals of keys, both ends included: those of one index belong together. One that ends before it begins is empty.
#[derive(Clone, Copy, Debug)]
pub struct Intervals<'a, K> {
    /// The first keys.
    pub low: DeviceSlice<'a, K>,
    /// The last keys.
    pub high: DeviceSlice<'a, K>,
}

/// What intervals have, on the device.
#[derive(Debug)]
pub struct Ranges<K: Pod, V: Pod> {
    /// Where the elements of each interval begin; one more entry says where the last ones end.
    pub offsets: DeviceVec<u64>,
    /// The keys, ascending within each interval. Beyond the last offset there may be more elements, which mean nothing.
    pub keys: DeviceVec<K>,
    /// Their values. Empty if values have no size.
    pub values: DeviceVec<V>,
}

impl<K: Pod, V: Pod> Ranges<K, V> {
    /// The elements of each interval on the host. Waits for the stream.
    ///
    /// # Errors
    /// What a copy to the host can give.
    pub fn to_vec(&self, stream: &Stream) -> Result<Vec<Vec<(K, V)>>, Error> {
        let offsets = self.offsets.to_vec(stream)?;
        let total = offsets.last().map_or(0, |&total| total as usize);
        let keys = self.keys.slice(..total)?.to_vec(stream)?;
        let values =
            if size_of::<V>() == 0 { vec![V::zeroed(); total] } else { self.values.slice(..total)?.to_vec(stream)? };
        let pairs: Vec<(K, V)> = keys.into_iter().zip(values).collect();
        Ok(offsets.windows(2).map(|range| pairs[range[0] as usize..range[1] as usize].to_vec()).collect())
    }
}

/// The nearest keys, on the device, in the order of the keys that were asked for.
#[derive(Debug)]
pub struct Neighbour<K: Pod, V: Pod> {
    /// The keys, where there are any.
    pub keys: DeviceVec<K>,
    /// Their values. Empty if values have no size.
    pub values: DeviceVec<V>,
    /// 1 where there is one, else 0.
    pub found: DeviceVec<u8>,
}

impl<K: Pod, V: Pod> Neighbour<K, V> {
    /// The pairs on the host. Waits for the stream.
    ///
    /// # Errors
    /// What a copy to the host can give.
    pub fn to_vec(&self, stream: &Stream) -> Result<Vec<Option<(K, V)>>, Error> {
        let (found, keys) = (self.found.to_vec(stream)?, self.keys.to_vec(stream)?);
        let values = if size_of::<V>() == 0 { vec![V::zeroed(); keys.len()] } else { self.values.to_vec(stream)? };
        let pairs = keys.into_iter().zip(values);
        Ok(found.into_iter().zip(pairs).map(|(found, pair)| (found != 0).then_some(pair)).collect())
    }
}

impl<K: Key, V: Pod> Stack<K, V> {
    /// Looks keys up. Does not wait.
    ///
    /// # Errors
    /// What an allocation or a launch can give.
    pub fn lookup(&self, stream: &Stream, keys: DeviceSlice<'_, K>) -> Result<Lookup<V>, Error> {
        let mut values = stream.uninit::<V>(values_for::<V>(keys.len()))?;
        let mut found = stream.uninit::<u8>(keys.len())?;
        if !keys.is_empty() {
            with_carrier!(V, W => {
                let kernel = LookupKeys::<K::Code, W>::new(
                    self.carried_view::<W>(stream)?,
                    bits(stream, keys)?,
                    carried_mut(values.view_mut(stream)?),
                    found.view_mut(stream)?,
                );
                // SAFETY: a thread per key, and as many outputs.
                unsafe { stream.launch(kernel, keys.len().div_ceil(THREADS as usize))? };
            });
        }
        Ok(Lookup { values, found })
    }

    /// Tells which keys are there: 1 or 0. Does not wait.
    ///
    /// # Errors
    /// As [`lookup`](Self::lookup).
    pub fn contains(&self, stream: &Stream, keys: DeviceSlice<'_, K>) -> Result<DeviceVec<u8>, Error> {
        let mut found = stream.uninit::<u8>(keys.len())?;
        if !keys.is_empty() {
            let kernel = LookupKeys::<K::Code, ()>::new(
                self.carried_view::<()>(stream)?,
                bits(stream, keys)?,
                nothing_mut(),
                found.view_mut(stream)?,
            );
            // SAFETY: a thread per key, and as many outputs.
            unsafe { stream.launch(kernel, keys.len().div_ceil(THREADS as usize))? };
        }
        Ok(found)
    }

    /// Finds the smallest key above each, or with `below` the largest one below. Does not wait.
    ///
    /// # Errors
    /// As [`lookup`](Self::lookup).
    pub fn neighbours(&self, stream: &Stream, keys: DeviceSlice<'_, K>, below: bool) -> Result<Neighbour<K, V>, Error> {
        let len = keys.len();
        let mut out_keys = stream.uninit::<K>(len)?;
        let mut values = stream.uninit::<V>(values_for::<V>(len))?;
        let mut found = stream.uninit::<u8>(len)?;
        if len > 0 {
            with_carrier!(V, W => {
                let kernel = FindNeighbours::<K::Code, W>::new(
                    self.carried_view::<W>(stream)?,
                    bits(stream, keys)?,
                    u32::from(below),
                    carried_mut(out_keys.view_mut(stream)?),
                    carried_mut(values.view_mut(stream)?),
                    found.view_mut(stream)?,
                );
                // SAFETY: a thread per key, and as many outputs.
                unsafe { stream.launch(kernel, len.div_ceil(THREADS as usize))? };
            });
        }
        Ok(Neighbour { keys: out_keys, values, found })
    }

    /// Counts the live keys of each interval. Does not wait.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if there are not as many ends as beginnings; else as [`lookup`](Self::lookup).
    pub fn count(&self, stream: &Stream, intervals: Intervals<'_, K>) -> Result<DeviceVec<u64>, Error> {
        let windows = Windows::find(self, stream, intervals, false)?;
        let mut counts = stream.zeroed::<u64>(intervals.low.len())?;
        if let Some(windows) = windows {
            let view = self.carried_view::<()>(stream)?;
            if self.has_tombstones() {
                windows.count::<K, MarkedNone>(stream, view, &mut counts)?;
            } else {
                windows.count::<K, ()>(stream, view, &mut counts)?;
            }
        }
        Ok(counts)
    }

    /// Gives the live elements of each interval. Waits for the stream once, to know how much memory they may need.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if there are not as many ends as beginnings; [`Error::OutOfMemory`] if the results need more
    /// than there is, with how much; else as [`lookup`](Self::lookup).
    pub fn ranges(&self, stream: &Stream, intervals: Intervals<'_, K>) -> Result<Ranges<K, V>, Error> {
        let Some(windows) = Windows::find(self, stream, intervals, true)? else {
            return Ok(Ranges {
                offsets: stream.zeroed(intervals.low.len() + 1)?,
                keys: stream.uninit(0)?,
                values: stream.uninit(0)?,
            });
        };
        let (weight, candidates) = windows.totals(stream)?;
        let mut ranges = Ranges {
            offsets: stream.uninit(intervals.low.len() + 1)?,
            keys: stream.uninit(candidates)?,
            values: stream.uninit(values_for::<V>(candidates))?,
        };
        with_payload!(V, self.has_tombstones(), P => windows.emit::<K, V, P>(stream, self, weight, &mut ranges)?);
        Ok(ranges)
    }

    /// How many keys there are: a number on the device, the only element. Does not wait.
    ///
    /// # Errors
    /// As [`lookup`](Self::lookup).
    pub fn live_len(&self, stream: &Stream) -> Result<DeviceVec<u64>, Error> {
        let levels: Vec<&Level<K, V>> = self.oldest_first().map(|(_, level)| level).collect();
        count_live(stream, &levels)
    }

    /// All live pairs in the order of the keys, and how many there are: the vectors may be longer. Waits for the stream.
    ///
    /// # Errors
    /// As [`lookup`](Self::lookup).
    pub fn export(&self, stream: &Stream) -> Result<(DeviceVec<K>, DeviceVec<V>, usize), Error> {
        let levels: Vec<&Level<K, V>> = self.oldest_first().map(|(_, level)| level).collect();
        let (codes, values, len) = Level::live_as(stream, &levels, K::SIGN)?;
        let (home, address, capacity) = codes.into_raw();
        // SAFETY: the same memory; a key and its code have the same size, and the kernel has written keys.
        let keys = unsafe { DeviceVec::from_raw(&home, address.cast(), capacity) };
        Ok((keys, values, len))
    }

    /// Whether some level may have tombstones.
    #[must_use]
    pub fn has_tombstones(&self) -> bool {
        self.oldest_first().any(|(_, level)| level.has_tombstones())
    }

    /// The levels as an argument of a kernel of your own: see [`Levels`]. Values are seen as their carrier `W`, an unsigned
    /// number of the same size, or `()`. Builds what is missing of the index; does not wait.
    ///
    /// # Errors
    /// As [`lookup`](Self::lookup).
    ///
    /// # Panics
    /// If `W` has another size than the values.
    pub fn view<W: Pod>(&self, stream: &Stream) -> Result<Levels<K::Code, W>, Error> {
        assert_eq!(size_of::<W>(), size_of::<V>(), "the carrier has the size of the values");
        self.carried_view(stream)
    }
}

/// What intervals take of each level.
struct Windows {
    log_pieces: u32,
    windows: DeviceVec<u32>,
    /// Where each interval begins in the sequence that is cut into tiles, and its end.
    places: DeviceVec<u64>,
    /// How many elements come before each interval's, and all; empty if nobody needs to know.
    candidates: DeviceVec<u64>,
}

impl Windows {
    /// Finds them; `None` if there are no intervals or no levels.
    fn find<K: Key, V: Pod>(
        stack: &Stack<K, V>,
        stream: &Stream,
        intervals: Intervals<'_, K>,
        needs_total: bool,
    ) -> Result<Option<Self>, Error> {
        let len = intervals.low.len();
        if intervals.high.len() != len {
            let what = "the ends of the intervals";
            return Err(Error::LengthMismatch { what, expected: len, found: intervals.high.len() });
        }
        let view = stack.carried_view::<()>(stream)?;
        if len == 0 || view.count() == 0 {
            return Ok(None);
        }
        let log_pieces = view.count().next_power_of_two().ilog2();
        let mut windows = stream.uninit::<u32>((2 * len) << log_pieces)?;
        let mut weights = stream.uninit::<u64>(len + 1)?;
        let mut totals = stream.uninit::<u64>(if needs_total { len + 1 } else { 0 })?;
        let kernel = FindWindows::<K::Code>::new(
            view,
            bits(stream, intervals.low)?,
            bits(stream, intervals.high)?,
            log_pieces,
            windows.view_mut(stream)?,
            weights.view_mut(stream)?,
            totals.view_mut(stream)?,
        );
        // SAFETY: a thread per interval and one more; the outputs are as long as they must be.
        unsafe { stream.launch(kernel, (len + 1).div_ceil(THREADS as usize))? };
        let mut places = stream.uninit::<u64>(len + 1)?;
        scan::exclusive_sum(stream, &weights, &mut places)?;
        let mut candidates = totals;
        if needs_total {
            let totals = std::mem::replace(&mut candidates, weights);
            scan::exclusive_sum(stream, &totals, &mut candidates)?;
        }
        Ok(Some(Self { log_pieces, windows, places, candidates }))
    }

    /// The length of the sequence, and the number of all candidates. Waits.
    fn totals(&self, stream: &Stream) -> Result<(usize, usize), Error> {
        let (mut weight, mut candidates) = ([0], [0]);
        let last = self.places.len() - 1;
        self.places.slice(last..)?.copy_to_host(stream, &mut weight)?;
        self.candidates.slice(last..)?.copy_to_host(stream, &mut candidates)?;
        Ok((weight[0] as usize, candidates[0] as usize))
    }

    fn count<K: Key, P: Payload<Value = ()>>(
        &self,
        stream: &Stream,
        view: Levels<K::Code, ()>,
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
        view: Levels<K::Code, ()>,
        counts: &mut DeviceVec<u64>,
    ) -> Result<(), Error> {
        /// Blocks that share a multiprocessor.
        const BLOCKS_AT_ONCE: usize = 2;
        let tile = nominal(ITEMS);
        let kernel = LevelTiles::<K::Code, P, COUNT, ITEMS>::new(
            view,
            self.log_pieces,
            self.windows.view(stream)?,
            self.places.view(stream)?,
            nothing(),
            0,
            tile as u32,
            nothing_mut(),
            nothing_mut(),
            nothing_mut(),
            counts.view_mut(stream)?,
            nothing_mut(),
        );
        let blocks = stream.device().limits().multiprocessors as usize * BLOCKS_AT_ONCE;
        // SAFETY: the windows and places are those of these levels; the counts are zero. Any number of blocks will do.
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
            self.windows.view(stream)?,
            self.places.view(stream)?,
            nothing(),
            0,
            tile as u32,
            carried_mut(ranges.keys.view_mut(stream)?),
            carried_mut(ranges.values.view_mut(stream)?),
            nothing_mut(),
            ranges.offsets.view_mut(stream)?,
            stream.lookback_words(lookback::scratch_words::<u64>(tiles))?,
        );
        // SAFETY: a block per tile; the windows and places are those of these levels; the outputs have room for all candidates.
        unsafe { stream.launch(kernel, tiles) }
    }
}
