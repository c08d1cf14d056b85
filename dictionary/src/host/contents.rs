//! The contents of a dictionary, and their statistics.

use bytemuck::Pod;
use gpu_primitives::{DeviceVec, Error, Stream};

/// All pairs of a dictionary, on the device, in key order.
#[derive(Debug)]
pub struct Contents<K: Pod, V: Pod> {
    /// The keys, without duplicates.
    pub keys: DeviceVec<K>,
    /// The values of the keys. Empty if values are zero-sized.
    pub values: DeviceVec<V>,
}

impl<K: Pod, V: Pod> Contents<K, V> {
    /// Copies the pairs to the host. Waits for the stream.
    ///
    /// # Errors
    /// Any error of a copy to the host.
    pub fn to_vec(&self, stream: &Stream) -> Result<Vec<(K, V)>, Error> {
        let keys = self.keys.to_vec(stream)?;
        let values = if size_of::<V>() == 0 { vec![V::zeroed(); keys.len()] } else { self.values.to_vec(stream)? };
        Ok(keys.into_iter().zip(values).collect())
    }
}

/// Statistics that every dictionary provides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stats {
    /// The number of elements that occupy memory, live or stale.
    pub resident: usize,
    /// The number of keys, if it is known without scanning all elements.
    pub live: Option<usize>,
    /// The memory in bytes, including the part of an index that has been built: that of the device and, if a dictionary has moved a part
    /// there, page-locked memory of the host.
    pub bytes: usize,
}
