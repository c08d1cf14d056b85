//! Histograms: 256 bins of small numbers, of numbers of the full range and of bytes, and 65,536 bins.

use super::{expect, time};
use crate::data::random_u32;
use crate::session::Session;
use gpu_primitives::histogram;

pub(super) fn measure(session: &Session, len: usize) -> Result<(), crate::Error> {
    let stream = &session.stream;
    let mut counts = stream.uninit::<u32>(256)?;
    let expected = |host: &[u32], shift: u32| {
        let mut counts = vec![0u32; 256];
        for number in host {
            counts[(number >> shift) as usize] += 1;
        }
        counts
    };

    let host: Vec<u32> = random_u32(len as u64, len).iter().map(|number| number % 256).collect();
    let input = stream.upload(&host)?;
    time(session, "histogram_256_even_bytes_in_u32", len, 4.0, || {
        histogram::even(stream, &input, &mut counts, 0, 256)
    })?;
    expect("histogram of bytes", &counts.to_vec(stream)?, expected(&host, 0).into_iter())?;

    // As many bins as bits allow, so that the upper level is a number: 2^31 of 2^32.
    let host: Vec<u32> = random_u32(len as u64, len).iter().map(|number| number >> 1).collect();
    let input = stream.upload(&host)?;
    time(session, "histogram_256_even_full_range_u32", len, 4.0, || {
        histogram::even(stream, &input, &mut counts, 0, 1 << 31)
    })?;
    expect("histogram", &counts.to_vec(stream)?, expected(&host, 23).into_iter())?;

    let bytes: Vec<u8> = random_u32(len as u64, len).iter().map(|number| (number >> 24) as u8).collect();
    let on_device = stream.upload(&bytes)?;
    time(session, "histogram_256_u8", len, 1.0, || histogram::bytes(stream, &on_device, &mut counts))?;
    let bytes: Vec<u32> = bytes.into_iter().map(u32::from).collect();
    expect("histogram of 8-bit numbers", &counts.to_vec(stream)?, expected(&bytes, 0).into_iter())?;

    many_bins(session, "histogram_65536_even_u32", len, |number| number >> 16)?;
    // The fourth power of a random number below 1: the first of 65,536 bins gets a sixteenth of the numbers.
    many_bins(session, "histogram_65536_skewed_u32", len, |number| {
        let fraction = f64::from(number) / 2f64.powi(32);
        (fraction.powi(4) * 65_536.0) as u32
    })
}

/// Measures a histogram of 65,536 bins of numbers that are made of random ones.
fn many_bins(session: &Session, name: &str, len: usize, number: fn(u32) -> u32) -> Result<(), crate::Error> {
    let stream = &session.stream;
    let host: Vec<u32> = random_u32(len as u64, len).into_iter().map(number).collect();
    let input = stream.upload(&host)?;
    let mut counts = stream.uninit::<u32>(1 << 16)?;
    time(session, name, len, 4.0, || histogram::even(stream, &input, &mut counts, 0, 1 << 16))?;
    let mut expected = vec![0u32; 1 << 16];
    host.iter().for_each(|&number| expected[number as usize] += 1);
    expect(name, &counts.to_vec(stream)?, expected.into_iter())
}
