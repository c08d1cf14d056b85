//! One type of dictionary: an insertion and a lookup.

use gpu_lsm::{GpuLsm, Options};
use gpu_primitives::{Device, Error};

/// Inserts and looks up.
///
/// # Errors
/// Those of the calls.
pub fn run() -> Result<(), Error> {
    let stream = Device::default()?.stream()?;
    let mut lsm = GpuLsm::<u32, u32>::new(&stream, Options::new())?;
    let keys = stream.upload(&[1, 2, 3])?;
    lsm.insert(&stream, (&keys, &keys))?;
    println!("{:?}", lsm.lookup(&stream, &keys)?.to_vec(&stream)?);
    Ok(())
}
