//! The table of the cuckoo hash table: build and lookups, with 32-bit keys and values. Every timed result is checked.

use crate::data::random_u32;
use crate::measure::{median, million_per_second};
use gpu_cuckoo::{GpuCuckoo, Options as TableOptions};
use gpu_primitives::{Device, DeviceKind};
use std::time::Duration;

/// Timed runs of a row.
const REPETITIONS: usize = 9;

/// What to measure.
pub struct Options<'a> {
    /// The device's name; else as `Device::default` finds it.
    pub device: Option<&'a str>,
    /// Sizes as powers of two; else those of the device.
    pub log_sizes: &'a [u32],
}

/// Different keys in no order, none of which is odd; those that are asked for in vain are.
fn key(index: u32) -> u32 {
    let mixed = index.wrapping_mul(0x2c92_77b5) & (u32::MAX >> 1);
    (mixed ^ (mixed >> 16)).wrapping_mul(0x1b87_3593) << 1
}

fn value_of(key: u32) -> u32 {
    key ^ 0x5555_aaaa
}

/// Measures everything and prints it.
///
/// # Errors
/// What the device gives; a wrong result.
pub fn run(options: &Options<'_>) -> Result<(), crate::Error> {
    let device = options.device.map_or_else(Device::default, Device::parse)?;
    let gpu = matches!(device.kind(), DeviceKind::Cuda { .. });
    let stream = device.stream()?;
    println!("device: {}", device.name());
    let default_sizes: &[u32] = if gpu { &[24, 27] } else { &[16] };
    let log_sizes = if options.log_sizes.is_empty() { default_sizes } else { options.log_sizes };
    let row = |name: &str, param: &str, len: usize, time: Duration| {
        let rate = million_per_second(len, time);
        println!("{name:<24} {param:<20} {rate:>10.1} M/s {:>12.1} us", time.as_secs_f64() * 1e6);
    };
    for &log in log_sizes {
        let len = 1usize << log;
        let keys: Vec<u32> = (0..len as u32).map(key).collect();
        let values: Vec<u32> = keys.iter().map(|&key| value_of(key)).collect();
        let (keys_in, values_in) = (stream.upload(&keys)?, stream.upload(&values)?);
        let asked: Vec<u32> = random_u32(3, len).iter().map(|&i| key(i % len as u32)).collect();
        let absent: Vec<u32> = random_u32(4, len).iter().map(|&i| i | 1).collect();
        let (present_keys, absent_keys) = (stream.upload(&asked)?, stream.upload(&absent)?);
        for load in [0.8, 0.95] {
            let what = format!("2^{log}, load {load}");
            let mut table = None;
            let time = median(&stream, REPETITIONS, || {
                table = None;
                table = Some(GpuCuckoo::<u32, u32>::bulk_build(
                    &stream,
                    &keys_in,
                    &values_in,
                    TableOptions::new().load_factor(load),
                )?);
                Ok(())
            })?;
            row("build", &what, len, time);
            let Some(table) = table else { continue };
            let mut result = None;
            let time = median(&stream, REPETITIONS, || {
                result = Some(table.lookup(&stream, &present_keys)?);
                Ok(())
            })?;
            row("lookup, all there", &what, len, time);
            if let Some(result) = result {
                let found = result.to_vec(&stream)?;
                if let Some(index) = found.iter().zip(&asked).position(|(found, &key)| *found != Some(value_of(key))) {
                    return Err(crate::Error::WrongResult { what: "lookups of keys that are there", index });
                }
            }
            let mut result = None;
            let time = median(&stream, REPETITIONS, || {
                result = Some(table.lookup(&stream, &absent_keys)?);
                Ok(())
            })?;
            row("lookup, none there", &what, len, time);
            if let Some(result) = result
                && let Some(index) = result.found.to_vec(&stream)?.iter().position(|&found| found != 0)
            {
                return Err(crate::Error::WrongResult { what: "lookups of keys that are not there", index });
            }
            let stats = table.stats(&stream)?;
            println!("{:<24} {what:<20} {:>10.2} bytes per element", "memory", stats.bytes as f64 / len as f64);
        }
    }
    Ok(())
}
