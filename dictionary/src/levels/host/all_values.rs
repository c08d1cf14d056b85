//! Queries about all elements, live or not: for a dictionary that keeps all values of a key.

#![deny(unsafe_op_in_unsafe_fn)]

use super::intervals::{AnyIntervals, AnyRanges, FoundWindows, find_windows, last_of};
use super::level::AnyLevel;
use super::stack::AnyStack;
use super::types::{Written, with_code, with_value};
use crate::levels::device::intervals::gather::{GATHER_INTERVALS, GatherWindows};
use crate::levels::device::merge::except::FlagOthers;
use crate::levels::device::table::THREADS;
use gpu_primitives::kernel::Pairs;
use gpu_primitives::lowered::{self, AnySlice, AnySliceMut, AnyVec};
use gpu_primitives::{DeviceSlice, DeviceSliceMut, DeviceVec, Error, Stream, expect_len, scan, sized, transfer};

/// All values of keys, on the device.
#[derive(Debug)]
pub struct AllValues<V: bytemuck::Pod> {
    /// Where the values of each key begin; one more entry says where the last ones end.
    pub offsets: DeviceVec<u64>,
    /// The values, key by key in the order of the question, the oldest of a key first. Empty if values are zero-sized.
    pub values: DeviceVec<V>,
}

impl<V: bytemuck::Pod> AllValues<V> {
    /// Copies the values of each key to the host. Waits for the stream.
    ///
    /// # Errors
    /// Any error of a copy to the host.
    pub fn to_vec(&self, stream: &Stream) -> Result<Vec<Vec<V>>, Error> {
        let offsets = self.offsets.to_vec(stream)?;
        let values = self.values.to_vec(stream)?;
        let of_key = |ends: &[u64]| match size_of::<V>() {
            0 => vec![V::zeroed(); (ends[1] - ends[0]) as usize],
            _ => values[ends[0] as usize..ends[1] as usize].to_vec(),
        };
        Ok(offsets.windows(2).map(of_key).collect())
    }
}

impl AnyStack {
    /// Counts the elements in each interval, live or not. Does not wait.
    pub(crate) fn count_every(&self, stream: &Stream, intervals: AnyIntervals<'_>) -> Result<DeviceVec<u64>, Error> {
        let mut counts = stream.uninit(intervals.len()?)?;
        if self.is_empty() {
            transfer::fill(stream, &mut counts, 0)?;
        } else if !counts.is_empty() {
            let found = FoundWindows { counts: Some(counts.as_mut_slice()), ..FoundWindows::default() };
            self.find_every(stream, intervals, found)?;
        }
        Ok(counts)
    }

    /// Returns the elements in each interval, live or not, in key order, the oldest of a key first. If there is more than one
    /// level, merges them first. Waits for the stream, to learn how many there are.
    pub(crate) fn ranges_of_every(&self, stream: &Stream, intervals: AnyIntervals<'_>) -> Result<AnyRanges, Error> {
        let levels: Vec<&AnyLevel> = self.oldest_first().map(|(_, level)| level).collect();
        match levels[..] {
            [level] if intervals.len()? > 0 => self.ranges_of_only(stream, level, intervals),
            [_, _, ..] if intervals.len()? > 0 => {
                let mut merged = Self::new(self.types);
                merged.set(0, Some(AnyLevel::merge(self.types, stream, self.place_of_copies(), &levels)?));
                merged.ranges_of_every(stream, intervals)
            }
            // There is nothing.
            _ => self.ranges(stream, intervals),
        }
    }

    /// Returns the values of all elements of each key, live or not, and where those of each key begin. Waits for the stream,
    /// to learn how many there are.
    pub(crate) fn every(&self, stream: &Stream, keys: AnySlice<'_>) -> Result<(DeviceVec<u64>, AnyVec), Error> {
        let mut offsets = stream.uninit(keys.len() + 1)?;
        let windows = self.windows_of(stream, keys, offsets.as_mut_slice())?;
        let [total] = last_of(stream, [offsets.as_slice()])?;
        let mut values = self.types.room_for_values(stream, total)?;
        self.gather(stream, &windows, offsets.as_slice(), values.as_mut_slice())?;
        Ok((offsets, values))
    }

    /// Writes the values of all elements of each key, live or not, into given room: see
    /// [`Stack::every_into`](crate::levels::Stack::every_into).
    pub(crate) fn every_into(
        &self,
        stream: &Stream,
        keys: AnySlice<'_>,
        mut offsets: DeviceSliceMut<'_, u64>,
        values: AnySliceMut<'_>,
    ) -> Result<(), Error> {
        expect_len("the offsets of the values", keys.len() + 1, offsets.len())?;
        let windows = self.windows_of(stream, keys, offsets.reborrow())?;
        let mut written = Written::values(self.types, stream, values)?;
        self.gather(stream, &windows, offsets.as_slice(), written.slice())?;
        written.finish(stream)?;
        Ok(())
    }

    /// Removes all elements with these keys: see [`Stack::remove_keys`](crate::levels::Stack::remove_keys).
    pub(crate) fn remove_keys(&mut self, stream: &Stream, keys: AnySlice<'_>) -> Result<(), Error> {
        let none = AnyVec::uninit(stream, 0, 0)?;
        let others = AnyLevel::from_pairs(self.types.keys_alone(), stream, keys, none.as_slice())?;
        let no_values = self.types.room_for_values(stream, 0)?;
        self.remove(stream, others.run().0, no_values.as_slice())
    }

    /// Removes all elements with these keys and values: see [`Stack::remove_pairs`](crate::levels::Stack::remove_pairs).
    pub(crate) fn remove_pairs(
        &mut self,
        stream: &Stream,
        keys: AnySlice<'_>,
        values: AnySlice<'_>,
    ) -> Result<(), Error> {
        let types = self.types;
        let others = AnyLevel::from_pairs(types, stream, keys, values)?;
        let (codes, values) = others.run();
        if types.value == 0 {
            return self.remove(stream, codes, values);
        }
        // Sorts by value, and then by key: sorts are stable.
        let len = codes.len();
        let (mut by_value, mut codes_by_value) =
            (types.room_for_values(stream, len)?, AnyVec::uninit(stream, types.code, len)?);
        let to = (by_value.as_mut_slice(), codes_by_value.as_mut_slice());
        lowered::sort::codes(stream, (values, codes), to, 8 * types.value as u32)?;
        let (mut sorted_codes, mut sorted_values) =
            (AnyVec::uninit(stream, types.code, len)?, types.room_for_values(stream, len)?);
        let to = (sorted_codes.as_mut_slice(), sorted_values.as_mut_slice());
        lowered::sort::codes(stream, (codes_by_value.as_slice(), by_value.as_slice()), to, types.bits)?;
        self.remove(stream, sorted_codes.as_slice(), sorted_values.as_slice())
    }

    /// Removes all elements that are among others, which are sorted.
    fn remove(&mut self, stream: &Stream, codes: AnySlice<'_>, values: AnySlice<'_>) -> Result<(), Error> {
        if codes.is_empty() {
            return Ok(());
        }
        self.expect_device(stream)?;
        let mut kept = Vec::new();
        for (slot, level) in self.oldest_first() {
            let mut flags = stream.uninit::<u8>(level.len())?;
            let (own_codes, own_values) = level.run();
            with_code!(self.types.code => C, with_value!(self.types.value => W, {
                let kernel = FlagOthers::<C, W>::new(
                    Pairs::view(own_codes.view(stream)?, own_values.view(stream)?),
                    Pairs::view(codes.view(stream)?, values.view(stream)?),
                    flags.view_mut(stream)?,
                );
                // SAFETY: there is a thread per element, and a flag for each. The others are sorted.
                unsafe { stream.launch(kernel, level.len().div_ceil(THREADS as usize))? };
            }));
            kept.push((slot, level.select(stream, flags.as_slice())?));
        }
        for (slot, level) in kept {
            self.set(slot, Some(level));
        }
        Ok(())
    }

    fn log_pieces(&self) -> u32 {
        self.level_count().max(1).next_power_of_two().ilog2()
    }

    /// Finds the windows of intervals. There must be at least one level and one interval.
    fn find_every(&self, stream: &Stream, intervals: AnyIntervals<'_>, found: FoundWindows<'_>) -> Result<(), Error> {
        find_windows(stream, self.any_view(stream, false)?, intervals, None, self.log_pieces(), found, |_| {})
    }

    /// Finds the windows of keys, and where the values of each key begin.
    fn windows_of(
        &self,
        stream: &Stream,
        keys: AnySlice<'_>,
        offsets: DeviceSliceMut<'_, u64>,
    ) -> Result<DeviceVec<u32>, Error> {
        let mut windows = stream.uninit::<u32>((2 * keys.len()) << self.log_pieces())?;
        let mut counts = stream.uninit::<u64>(keys.len() + 1)?;
        if keys.is_empty() || self.is_empty() {
            transfer::fill(stream, offsets, 0)?;
            return stream.uninit(0);
        }
        let found = FoundWindows {
            windows: Some(windows.as_mut_slice()),
            counts: Some(counts.as_mut_slice()),
            ..FoundWindows::default()
        };
        self.find_every(stream, AnyIntervals { low: keys, high: keys }, found)?;
        scan::exclusive_sum(stream, &counts, offsets)?;
        Ok(windows)
    }

    fn gather(
        &self,
        stream: &Stream,
        windows: &DeviceVec<u32>,
        offsets: DeviceSlice<'_, u64>,
        mut values: AnySliceMut<'_>,
    ) -> Result<(), Error> {
        if windows.is_empty() || values.is_empty() {
            return Ok(());
        }
        let levels = self.any_view(stream, true)?;
        let intervals = windows.len() >> (1 + self.log_pieces());
        with_code!(self.types.code => C, sized!(self.types.value => W in u32 | u64, {
            let kernel = GatherWindows::<C, W>::new(
                levels.typed(),
                windows.view(stream)?,
                self.log_pieces(),
                offsets.view(stream)?,
                values.view_mut(stream)?,
            );
            // SAFETY: there is a warp per interval, and an offset for each. The windows are those of these levels.
            unsafe { stream.launch(kernel, intervals.div_ceil(GATHER_INTERVALS)) }
        }, else unreachable!("values without a size have no elements")))
    }
}
