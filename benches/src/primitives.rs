//! The table of the primitives: our rate, the peer's in the same run, and the share of the memory rate.

use crate::data::random_u32;
use crate::measure::{median, million_per_second};
use crate::peers::{self, PeerRow};
use gpu_primitives::{Device, DeviceKind, Stream, scan, transfer};
use std::time::Duration;

/// One measured row.
struct Row {
    name: &'static str,
    len: usize,
    /// Bytes that must move per element: each input read once, each output written once.
    bytes: usize,
    time: Duration,
}

/// Measures every row on the device, next to the peer program if it can be had, and prints the table.
///
/// # Errors
/// What the device gives; a wrong result.
pub fn run(device: Option<&str>, log_sizes: &[u32], peer: Option<&str>) -> Result<(), crate::Error> {
    let device = device.map_or_else(Device::default, Device::parse)?;
    let stream = device.stream()?;
    let gpu = matches!(device.kind(), DeviceKind::Cuda { .. });
    let default_sizes: &[u32] = if gpu { &[20, 24, 27] } else { &[20] };
    let log_sizes = if log_sizes.is_empty() { default_sizes } else { log_sizes };

    let mut rows = Vec::new();
    for &log in log_sizes {
        measure(&stream, 1 << log, &mut rows)?;
    }
    let peer_rows = if gpu { peers::measure(peer)? } else { Vec::new() };

    println!("device: {}", device.name());
    println!("{:<22} {:>10} {:>12} {:>10} {:>10} {:>8}", "row", "n", "M/s", "GB/s", "peer M/s", "ratio");
    for row in &rows {
        let rate = million_per_second(row.len, row.time);
        let gigabytes = rate * row.bytes as f64 / 1e3;
        let peer = peer_rows.iter().find(|peer: &&PeerRow| peer.name == row.name && peer.len == row.len);
        let (peer_rate, ratio) = peer.map_or((String::from("-"), String::from("-")), |peer| {
            (format!("{:.0}", peer.million_per_second), format!("{:.3}", rate / peer.million_per_second))
        });
        println!("{:<22} {:>10} {rate:>12.0} {gigabytes:>10.0} {peer_rate:>10} {ratio:>8}", row.name, row.len);
    }
    Ok(())
}

fn measure(stream: &Stream, len: usize, rows: &mut Vec<Row>) -> Result<(), crate::Error> {
    let host = random_u32(len as u64, len);
    let input = stream.upload(&host)?;
    let mut output = stream.uninit::<u32>(len)?;
    let repetitions = 15;

    let time = median(stream, repetitions, || output.copy_from(stream, &input))?;
    rows.push(Row { name: "memcpy", len, bytes: 8, time });

    transfer::fill(stream, &mut output, 0)?;
    let time = median(stream, repetitions, || transfer::copy(stream, &input, &mut output))?;
    rows.push(Row { name: "copy", len, bytes: 8, time });
    expect("copy", &output.to_vec(stream)?, host.iter().copied())?;

    let time = median(stream, repetitions, || transfer::fill(stream, &mut output, 7))?;
    rows.push(Row { name: "fill", len, bytes: 4, time });
    expect("fill", &output.to_vec(stream)?, std::iter::repeat_n(7, len))?;

    let time = median(stream, repetitions, || scan::exclusive_sum(stream, &input, &mut output))?;
    rows.push(Row { name: "exclusive_sum_u32", len, bytes: 8, time });
    let sums = host.iter().scan(0u32, |sum, &number| {
        let before = *sum;
        *sum = before.wrapping_add(number);
        Some(before)
    });
    expect("exclusive sum", &output.to_vec(stream)?, sums)?;
    Ok(())
}

/// Every timed result is checked.
fn expect(what: &'static str, found: &[u32], expected: impl Iterator<Item = u32>) -> Result<(), crate::Error> {
    match found.iter().zip(expected).position(|(&found, expected)| found != expected) {
        Some(index) => Err(crate::Error::WrongResult { what, index }),
        None => Ok(()),
    }
}
