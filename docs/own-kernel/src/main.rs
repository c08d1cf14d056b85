//! Counts bytes on a device, and compares the result with what the host counts.

use gpu_primitives::{Device, Error};
use own_kernel::CountBytes;
use std::process::ExitCode;

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Returns whether the counts are right.
fn run() -> Result<bool, Error> {
    let device = Device::default()?;
    let stream = device.stream()?;
    let bytes: Vec<u8> = (0..1_000_000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let on_device = stream.upload(&bytes)?;
    let mut counts = stream.zeroed::<u32>(256)?;
    let kernel = CountBytes::new(on_device.view(&stream)?, counts.view_mut(&stream)?);
    // SAFETY: there are 256 counters, and nothing else uses them or writes the bytes.
    unsafe { stream.launch(kernel, 64)? };

    let mut expected = vec![0u32; 256];
    bytes.iter().for_each(|&byte| expected[byte as usize] += 1);
    let is_right = counts.to_vec(&stream)? == expected;
    println!("{} bytes on {}: {}", bytes.len(), device.name(), if is_right { "right" } else { "WRONG" });
    Ok(is_right)
}
