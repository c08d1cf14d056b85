//! The median and 16 quantiles of random numbers.

use super::{expect, time};
use crate::data::random_u32;
use crate::session::Session;
use gpu_primitives::order_statistics;

pub(super) fn measure(session: &Session, len: usize) -> Result<(), crate::Error> {
    let stream = &session.stream;
    let mut host = random_u32(len as u64, len);
    let input = stream.upload(&host)?;
    let mut median = stream.uninit::<u32>(1)?;
    time(session, "kth_u32", len, 4.0, || order_statistics::quantiles(stream, &input, &[0.5], &mut median))?;
    let fractions: Vec<f64> = (0..16).map(|i| f64::from(i) / 15.0).collect();
    let mut quantiles = stream.uninit::<u32>(16)?;
    time(session, "kth_16_u32", len, 4.0, || order_statistics::quantiles(stream, &input, &fractions, &mut quantiles))?;
    let mut at = |fraction: f64| *host.select_nth_unstable((fraction * (len - 1) as f64) as usize).1;
    expect("median", &median.to_vec(stream)?, [at(0.5)].into_iter())?;
    expect("quantiles", &quantiles.to_vec(stream)?, fractions.iter().map(|&fraction| at(fraction)))
}
