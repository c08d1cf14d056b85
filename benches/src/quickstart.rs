//! The shortest proof that everything works: a scan on the device found, checked and timed.

use crate::data::random_u32;
use crate::measure::{median, million_per_second};
use gpu_primitives::{Device, scan};
use std::time::Instant;

/// Numbers that are scanned.
const LEN: usize = 1 << 20;

/// Scans 2^20 numbers, checks the result, prints the device and the rate.
///
/// # Errors
/// What the device gives; a wrong result.
pub fn run(device: Option<&str>) -> Result<(), crate::Error> {
    let start = Instant::now();
    let device = device.map_or_else(Device::default, Device::parse)?;
    let stream = device.stream()?;
    let host = random_u32(1, LEN);
    let input = stream.upload(&host)?;
    let mut output = stream.uninit::<u32>(LEN)?;
    scan::exclusive_sum(&stream, &input, &mut output)?;
    let result = output.to_vec(&stream)?;
    let first = start.elapsed();

    let mut sum = 0u32;
    for (index, (&number, &found)) in host.iter().zip(&result).enumerate() {
        if found != sum {
            return Err(crate::Error::WrongResult { what: "exclusive sum", index });
        }
        sum = sum.wrapping_add(number);
    }

    let time = median(&stream, 21, || scan::exclusive_sum(&stream, &input, &mut output))?;
    println!("device           {}", device.name());
    println!("exclusive sum    {LEN} numbers, checked against a sequential loop");
    println!("first result     after {:.0} ms (device opened, kernel loaded, data moved)", first.as_secs_f64() * 1e3);
    println!("rate             {:.0} million numbers/s", million_per_second(LEN, time));
    Ok(())
}
