//! Both libraries in one program.

use cudarc::driver::CudaContext;
use gpu_primitives::{Device, Error, sort};

fn main() -> Result<(), Error> {
    let stream = Device::default()?.stream()?;
    let mut numbers = stream.upload(&[3u32, 1, 2])?;
    sort::keys_in_place(&stream, &mut numbers, sort::Options::new())?;
    println!("{:?}, and cudarc sees {:?} GPUs", numbers.to_vec(&stream)?, CudaContext::device_count());
    Ok(())
}
