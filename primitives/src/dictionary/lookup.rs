//! What lookups give.

use crate::{DeviceVec, Error, Stream};
use bytemuck::Pod;

/// The answers to lookups, on the device, in the order of the keys that were asked for.
#[derive(Debug)]
pub struct Lookup<V: Pod> {
    /// The values; zero where there is none. Empty if values have no size.
    pub values: DeviceVec<V>,
    /// 1 where the key is there, else 0.
    pub found: DeviceVec<u8>,
}

impl<V: Pod> Lookup<V> {
    /// The answers on the host. Waits for the stream.
    ///
    /// # Errors
    /// What a copy to the host can give.
    pub fn to_vec(&self, stream: &Stream) -> Result<Vec<Option<V>>, Error> {
        let found = self.found.to_vec(stream)?;
        if size_of::<V>() == 0 {
            return Ok(found.into_iter().map(|found| (found != 0).then(V::zeroed)).collect());
        }
        let values = self.values.to_vec(stream)?;
        Ok(found.into_iter().zip(values).map(|(found, value)| (found != 0).then_some(value)).collect())
    }
}
