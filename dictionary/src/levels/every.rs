//! Queries about all elements, live or not: for a dictionary that keeps all values of a key.

#![deny(unsafe_op_in_unsafe_fn)]

use super::elements::Elements;
use super::except::FlagOthers;
use super::gather::{GATHER_INTERVALS, GatherWindows};
use super::intervals::{FoundWindows, Intervals, find_windows, last_of};
use super::level::{Level, by_code};
use super::stack::Stack;
use super::table::THREADS;
use crate::cast::{WrittenValues, recast};
use crate::{Carrier, Key, Value, values_for};
use gpu_primitives::{DeviceSlice, DeviceSliceMut, DeviceVec, Error, Stream, scan, sort, transfer};

/// All values of keys, on the device.
#[derive(Debug)]
pub struct Every<V: bytemuck::Pod> {
    /// Where the values of each key begin; one more entry says where the last ones end.
    pub offsets: DeviceVec<u64>,
    /// The values, key by key in the order of the question, the oldest of a key first. Empty if values are zero-sized.
    pub values: DeviceVec<V>,
}

impl<V: bytemuck::Pod> Every<V> {
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

impl<K: Key, V: Value> Stack<K, V> {
    /// Counts the elements of each key, live or not. Does not wait.
    ///
    /// # Errors
    /// Any allocation or launch error.
    pub fn count_every(&self, stream: &Stream, keys: DeviceSlice<'_, K>) -> Result<DeviceVec<u64>, Error> {
        let mut counts = stream.uninit(keys.len())?;
        if self.is_empty() {
            transfer::fill(stream, &mut counts, 0)?;
        } else if !keys.is_empty() {
            let found = FoundWindows { counts: Some(counts.as_mut_slice()), ..FoundWindows::default() };
            let intervals = Intervals { low: keys, high: keys };
            find_windows::<K>(stream, self.carried_view::<()>(stream)?, intervals, None, self.log_pieces(), found)?;
        }
        Ok(counts)
    }

    /// Returns the values of all elements of each key, live or not. Waits for the stream, to learn how many there are.
    ///
    /// # Errors
    /// Any allocation or launch error.
    pub fn every(&self, stream: &Stream, keys: DeviceSlice<'_, K>) -> Result<Every<V>, Error> {
        let mut offsets = stream.uninit(keys.len() + 1)?;
        let windows = self.windows_of(stream, keys, offsets.as_mut_slice())?;
        let [total] = last_of(stream, [offsets.as_slice()])?;
        let mut values = stream.uninit::<V::Carrier>(values_for::<V>(total))?;
        self.gather(stream, &windows, &offsets, values.as_mut_slice())?;
        Ok(Every { offsets, values: recast(values) })
    }

    /// Writes the values of all elements of each key, live or not, into given room: as many as fit. The offsets, one more than
    /// keys, say how many there are. Does not wait.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if there is not one more offset than keys. Any allocation or launch error.
    pub fn every_into(
        &self,
        stream: &Stream,
        keys: DeviceSlice<'_, K>,
        mut offsets: DeviceSliceMut<'_, u64>,
        values: DeviceSliceMut<'_, V>,
    ) -> Result<(), Error> {
        gpu_primitives::expect_len("the offsets of the values", keys.len() + 1, offsets.len())?;
        let windows = self.windows_of(stream, keys, offsets.reborrow())?;
        let mut written = WrittenValues::<V>::new(stream, values)?;
        self.gather(stream, &windows, offsets.as_slice(), written.slice())?;
        written.finish(stream)?;
        Ok(())
    }

    /// Removes all elements with these keys. Waits.
    ///
    /// # Errors
    /// [`Error::InvalidOption`] if there are tombstones or operands; any allocation or launch error. After an error the stack
    /// is unchanged.
    pub fn remove_keys(&mut self, stream: &Stream, keys: DeviceSlice<'_, K>) -> Result<(), Error> {
        let no_values = stream.uninit::<()>(0)?;
        let others = Level::<K, ()>::from_pairs(stream, keys, no_values.as_slice())?;
        self.remove(stream, others.parts().codes, stream.uninit::<V::Carrier>(0)?.as_slice())
    }

    /// Removes all elements with these keys and values. Waits.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if there is not exactly one value per key; for zero-sized values, if `values` is not empty.
    /// The errors of [`remove_keys`](Self::remove_keys).
    pub fn remove_pairs(
        &mut self,
        stream: &Stream,
        keys: DeviceSlice<'_, K>,
        values: DeviceSlice<'_, V>,
    ) -> Result<(), Error> {
        let others = Level::<K, V>::from_pairs(stream, keys, values)?;
        let (codes, values) = others.run();
        if size_of::<V>() == 0 {
            return self.remove(stream, codes, values);
        }
        // Sorts by value, and then by key: sorts are stable.
        let (mut by_value, mut codes_by_value) = (stream.uninit(values.len())?, stream.uninit(codes.len())?);
        V::Carrier::sort_with(stream, (values, codes), (&mut by_value, &mut codes_by_value))?;
        let (mut sorted_codes, mut sorted_values) = (stream.uninit(codes.len())?, stream.uninit(values.len())?);
        let to = (&mut sorted_codes, &mut sorted_values);
        sort::pairs(stream, (&codes_by_value, &by_value), to, by_code::<K>())?;
        self.remove(stream, sorted_codes.as_slice(), sorted_values.as_slice())
    }

    /// Removes all elements that are among others, which are sorted.
    fn remove(
        &mut self,
        stream: &Stream,
        codes: DeviceSlice<'_, K::Code>,
        values: DeviceSlice<'_, V::Carrier>,
    ) -> Result<(), Error> {
        if codes.is_empty() {
            return Ok(());
        }
        self.expect_device(stream)?;
        let mut kept = Vec::new();
        for (slot, level) in self.oldest_first() {
            let mut flags = stream.uninit::<u8>(level.len())?;
            let own = level.buffers::<V::Carrier>(stream, slot)?;
            let kernel = FlagOthers::<K::Code, V::Carrier>::new(
                Elements::view(own.keys, own.values),
                Elements::view(codes.view(stream)?, values.view(stream)?),
                flags.view_mut(stream)?,
            );
            // SAFETY: there is a thread per element, and a flag for each. The others are sorted.
            unsafe { stream.launch(kernel, level.len().div_ceil(THREADS as usize))? };
            kept.push((slot, level.select(stream, &flags)?));
        }
        for (slot, level) in kept {
            self.set(slot, Some(level));
        }
        Ok(())
    }

    fn log_pieces(&self) -> u32 {
        self.level_count().max(1).next_power_of_two().ilog2()
    }

    /// Finds the windows of keys, and where the values of each key begin.
    fn windows_of(
        &self,
        stream: &Stream,
        keys: DeviceSlice<'_, K>,
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
        let intervals = Intervals { low: keys, high: keys };
        find_windows::<K>(stream, self.carried_view::<()>(stream)?, intervals, None, self.log_pieces(), found)?;
        scan::exclusive_sum(stream, &counts, offsets)?;
        Ok(windows)
    }

    fn gather<'a>(
        &self,
        stream: &Stream,
        windows: &DeviceVec<u32>,
        offsets: impl Into<DeviceSlice<'a, u64>>,
        mut values: DeviceSliceMut<'_, V::Carrier>,
    ) -> Result<(), Error> {
        if windows.is_empty() || values.is_empty() {
            return Ok(());
        }
        let kernel = GatherWindows::<K::Code, V::Carrier>::new(
            self.carried_view(stream)?,
            windows.view(stream)?,
            self.log_pieces(),
            offsets.into().view(stream)?,
            values.view_mut(stream)?,
        );
        let intervals = windows.len() >> (1 + self.log_pieces());
        // SAFETY: there is a warp per interval, and an offset for each. The windows are those of these levels.
        unsafe { stream.launch(kernel, intervals.div_ceil(GATHER_INTERVALS)) }
    }
}
