//! What a dictionary holds, and how much that is.

use crate::{DeviceVec, Error, Stream};
use bytemuck::Pod;

/// All pairs of a dictionary, on the device, in the order of the keys.
#[derive(Debug)]
pub struct Contents<K: Pod, V: Pod> {
    /// The keys, each once. Beyond the first [`len`](Self::len) there may be more elements, which mean nothing.
    pub keys: DeviceVec<K>,
    /// Their values. Empty if values have no size.
    pub values: DeviceVec<V>,
    /// How many pairs there are.
    pub len: usize,
}

impl<K: Pod, V: Pod> Contents<K, V> {
    /// The pairs on the host. Waits for the stream.
    ///
    /// # Errors
    /// What a copy to the host can give.
    pub fn to_vec(&self, stream: &Stream) -> Result<Vec<(K, V)>, Error> {
        let keys = self.keys.slice(..self.len)?.to_vec(stream)?;
        let values = if size_of::<V>() == 0 {
            vec![V::zeroed(); self.len]
        } else {
            self.values.slice(..self.len)?.to_vec(stream)?
        };
        Ok(keys.into_iter().zip(values).collect())
    }
}

/// What can be said of every dictionary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stats {
    /// Elements that take room, dead or alive.
    pub resident: usize,
    /// Keys that are there, if that is known without going through all elements.
    pub live: Option<usize>,
    /// Bytes of device memory, with those of an index as far as it is built.
    pub bytes: usize,
}
