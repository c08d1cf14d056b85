//! The results of lookups.

use bytemuck::Pod;
use gpu_primitives::{DeviceVec, Error, Stream};

/// The results of a lookup, on the device, in the order of the keys that were looked up.
#[derive(Debug)]
pub struct Lookup<V: Pod> {
    /// The values; zero for absent keys. Empty if values are zero-sized.
    pub values: DeviceVec<V>,
    /// 1 for each key that is present, 0 for each that is absent.
    pub found: DeviceVec<u8>,
}

impl<V: Pod> Lookup<V> {
    /// Copies the results to the host. Waits for the stream.
    ///
    /// # Errors
    /// Any error of a copy to the host.
    pub fn to_vec(&self, stream: &Stream) -> Result<Vec<Option<V>>, Error> {
        let found = self.found.to_vec(stream)?;
        if size_of::<V>() == 0 {
            return Ok(found.into_iter().map(|found| (found != 0).then(V::zeroed)).collect());
        }
        let values = self.values.to_vec(stream)?;
        Ok(found.into_iter().zip(values).map(|(found, value)| (found != 0).then_some(value)).collect())
    }
}
