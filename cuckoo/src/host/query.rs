//! The table: queries.

use super::options::Width;
use super::pairs::{PairVec, typed, typed_mut};
use super::storage::{probe_blocks, with_table};
use super::table::{GpuCuckoo, RawTable, Stats};
use crate::device::{Collect, Find};
use crate::view::CuckooView;
use gpu_dictionary::{Contents, Lookup, Value, WordKey as Key};
use gpu_primitives::kernel::View;
use gpu_primitives::lowered::{AnySlice, AnyVec};
use gpu_primitives::{DeviceSlice, DeviceVec, Error, Stream, sort};

impl<K: Key, V: Value> GpuCuckoo<K, V> {
    /// Looks up the values of keys. Does not wait.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] for the results, or any launch error.
    pub fn lookup<'a>(&self, stream: &Stream, keys: impl Into<DeviceSlice<'a, K>>) -> Result<Lookup<V>, Error> {
        let (values, found) = self.raw.lookup(stream, keys.into().into())?;
        Ok(Lookup { values: values.into_typed(), found })
    }

    /// Returns 1 for each key that is present and 0 for each that is absent. Does not wait.
    ///
    /// # Errors
    /// The errors of [`lookup`](Self::lookup).
    pub fn contains<'a>(&self, stream: &Stream, keys: impl Into<DeviceSlice<'a, K>>) -> Result<DeviceVec<u8>, Error> {
        self.raw.contains(stream, keys.into().into())
    }

    /// Returns the number of keys. Waits.
    ///
    /// # Errors
    /// Any error of a copy to the host.
    pub fn len(&self, stream: &Stream) -> Result<usize, Error> {
        self.raw.len(stream)
    }

    /// Returns whether the table has no keys. Waits.
    ///
    /// # Errors
    /// The errors of [`len`](Self::len).
    pub fn is_empty(&self, stream: &Stream) -> Result<bool, Error> {
        Ok(self.raw.len(stream)? == 0)
    }

    /// Returns all pairs in key order. Waits for the number of keys.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], or any launch error.
    pub fn export(&self, stream: &Stream) -> Result<Contents<K, V>, Error> {
        let PairVec { keys, values } = self.raw.collect(stream, 0)?;
        let (keys, mut values): (DeviceVec<K>, DeviceVec<V>) = (keys.into_typed(), values.into_typed());
        let mut sorted = stream.uninit(keys.len())?;
        if const { size_of::<V>() == 0 } {
            values.truncate(0);
            sort::keys(stream, &keys, &mut sorted, sort::Options::new())?;
            return Ok(Contents { keys: sorted, values });
        }
        let mut sorted_values = stream.uninit(values.len())?;
        sort::pairs(stream, (&keys, &values), (&mut sorted, &mut sorted_values), sort::Options::new())?;
        Ok(Contents { keys: sorted, values: sorted_values })
    }

    /// Returns all pairs in key order, on the host. Waits.
    ///
    /// # Errors
    /// The errors of [`export`](Self::export).
    pub fn iter(&self, stream: &Stream) -> Result<impl Iterator<Item = (K, V)> + use<K, V>, Error> {
        Ok(self.export(stream)?.to_vec(stream)?.into_iter())
    }

    /// Returns statistics of the table. Waits for the number of keys.
    ///
    /// # Errors
    /// The errors of [`len`](Self::len).
    pub fn stats(&self, stream: &Stream) -> Result<Stats, Error> {
        self.raw.stats(stream)
    }

    /// Returns the table as an argument for a kernel of your own: see [`CuckooView`]. The kernel sees a key as the
    /// unsigned integer with the same bits, and a value as its [carrier](Value::Carrier). `WIDTH` must be the bucket
    /// width of the table, which is 8 unless the options say otherwise. Does not wait.
    ///
    /// # Errors
    /// - [`Error::InvalidOption`] if `WIDTH` is not the table's bucket width.
    /// - [`Error::WrongDevice`].
    #[allow(clippy::type_complexity)]
    pub fn view<const WIDTH: usize>(
        &self,
        stream: &Stream,
    ) -> Result<View<'_, CuckooView<K::Code, V::Carrier, WIDTH>>, Error> {
        expect_width(WIDTH, self.raw.storage.width())?;
        self.raw.storage.view(stream)
    }
}

impl RawTable {
    pub(super) fn lookup(&self, stream: &Stream, keys: AnySlice<'_>) -> Result<(AnyVec, DeviceVec<u8>), Error> {
        let _span = gpu_primitives::span!(stream, "cuckoo::lookup", keys.len());
        self.find(stream, keys, self.storage.sizes().value > 0)
    }

    fn contains(&self, stream: &Stream, keys: AnySlice<'_>) -> Result<DeviceVec<u8>, Error> {
        let _span = gpu_primitives::span!(stream, "cuckoo::contains", keys.len());
        let (_, found) = self.find(stream, keys, false)?;
        Ok(found)
    }

    /// Looks up keys. Returns the values, or none if `with_values` is false, and 1 or 0 for each key. Does not wait.
    fn find(&self, stream: &Stream, keys: AnySlice<'_>, with_values: bool) -> Result<(AnyVec, DeviceVec<u8>), Error> {
        let mut values = AnyVec::uninit(stream, self.storage.sizes().value, if with_values { keys.len() } else { 0 })?;
        let mut found = stream.uninit(keys.len())?;
        if !keys.is_empty() {
            with_table!(self.storage => C, V, {
                let (table, asked) = (self.storage.view::<C, V, WIDTH>(stream)?, typed::<C>(keys));
                let mut values = typed_mut::<V>(&mut values);
                let kernel = Find::new(table, asked.view(stream)?, values.view_mut(stream)?, found.view_mut(stream)?);
                // SAFETY: there is a thread per key. There are as many results as keys, or no values.
                unsafe { stream.launch(kernel, probe_blocks(keys.len()))? };
            });
        }
        Ok((values, found))
    }

    pub(super) fn len(&self, stream: &Stream) -> Result<usize, Error> {
        let added = self.additions.as_ref().map_or(Ok(0), |additions| additions.count(stream))?;
        Ok((self.placed + added - self.erased.get(stream)?) as usize)
    }

    /// Copies all pairs, in any order, and leaves room for `more` pairs after them. Waits.
    pub(super) fn collect(&self, stream: &Stream, more: usize) -> Result<PairVec, Error> {
        let mut pairs = PairVec::uninit(stream, self.storage.sizes(), self.len(stream)? + more)?;
        self.collect_to(stream, &mut pairs)?;
        Ok(pairs)
    }

    /// Counts the keys in the slots. Waits.
    pub(super) fn count_live(&self, stream: &Stream) -> Result<u64, Error> {
        let mut none = PairVec::uninit(stream, self.storage.sizes(), 0)?;
        Ok(self.collect_to(stream, &mut none)?.to_vec(stream)?[0])
    }

    /// Copies the pairs for which there is room, and counts all. Does not wait.
    fn collect_to(&self, stream: &Stream, pairs: &mut PairVec) -> Result<DeviceVec<u64>, Error> {
        let mut count = stream.zeroed::<u64>(1)?;
        with_table!(self.storage => C, V, {
            let table = self.storage.view::<C, V, WIDTH>(stream)?;
            let kernel = Collect::new(table, pairs.view_mut(stream)?, count.view_mut(stream)?);
            // SAFETY: there is a thread per slot, and the count is zero.
            unsafe { stream.launch(kernel, probe_blocks(self.storage.slots() as usize))? };
        });
        Ok(count)
    }

    fn stats(&self, stream: &Stream) -> Result<Stats, Error> {
        let (len, slots) = (self.len(stream)?, self.storage.slots() as usize);
        // The slots, and the number of deleted keys.
        let bytes = self.storage.bytes() + size_of::<u64>();
        let kept = self.work.as_ref().map_or(0, |work| work.bytes());
        Ok(Stats { len, slots, load: len as f64 / slots as f64, bytes, kept, rebuilds: self.rebuilds })
    }
}

/// Checks the width of a view.
pub fn expect_width(asked: usize, width: Width) -> Result<(), Error> {
    if asked == width.keys() {
        return Ok(());
    }
    let allowed = match width {
        Width::Four => "4, the bucket width of the table",
        Width::Eight => "8, the bucket width of the table",
    };
    Err(Error::InvalidOption { what: "the bucket width of a view", asked: asked.to_string(), allowed })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Options;
    use crate::translate::{THREADS, Translate};
    use gpu_primitives::Device;

    /// A kernel of a user's own looks up keys in the table, on every device.
    #[test]
    fn inside_a_kernel() {
        let gpus = (0..Device::cuda_count()).map(|ordinal| Device::cuda(ordinal).unwrap());
        for device in [Device::cpu_checked(), Device::cpu()].into_iter().chain(gpus) {
            let stream = device.stream().unwrap();
            let keys = stream.upload(&(0..1000).collect::<Vec<u32>>()).unwrap();
            let values = stream.upload(&(1..1001).collect::<Vec<u32>>()).unwrap();
            let table = GpuCuckoo::bulk_build(&stream, (&keys, &values), Options::new()).unwrap();
            let mut numbers = stream.upload(&(0..1500).collect::<Vec<u32>>()).unwrap();
            let kernel = Translate::new(table.view(&stream).unwrap(), 10, numbers.view_mut(&stream).unwrap());
            // SAFETY: there is a thread per number.
            unsafe { stream.launch(kernel, 1500usize.div_ceil(THREADS as usize)).unwrap() };
            let expected: Vec<u32> = (0..1500).map(|x: u32| if x < 1000 { (x + 10).min(1000) } else { x }).collect();
            assert_eq!(numbers.to_vec(&stream).unwrap(), expected);
        }
    }

    #[test]
    fn a_view_has_the_width_of_the_table() {
        let stream = Device::cpu().stream().unwrap();
        for width in [4, 8] {
            let table = GpuCuckoo::<u32, u32>::new(&stream, Options::new().bucket_width(width)).unwrap();
            assert_eq!(table.view::<4>(&stream).is_ok(), width == 4);
            assert_eq!(table.view::<8>(&stream).is_ok(), width == 8);
            let message = table.view::<16>(&stream).unwrap_err().to_string();
            assert!(message.contains("16") && message.contains(&format!("{width}, ")), "{message}");
        }
    }
}
