//! Timing by device events: what the device spent, not what the host waited.

use gpu_primitives::{Error, Stream};
use std::time::Duration;

/// Runs before the timed ones: they load the kernel, fill the memory pool and raise the clocks.
const WARM_UPS: usize = 3;

/// The median time of `repetitions` runs of `operation` on the stream, each between two events.
///
/// # Errors
/// What the operation gives.
pub fn median(
    stream: &Stream,
    repetitions: usize,
    mut operation: impl FnMut() -> Result<(), Error>,
) -> Result<Duration, Error> {
    let mut times = Vec::with_capacity(repetitions);
    for run in 0..WARM_UPS + repetitions {
        let start = stream.record()?;
        operation()?;
        let end = stream.record()?;
        let time = end.elapsed(&start)?;
        if run >= WARM_UPS {
            times.push(time);
        }
    }
    times.sort_unstable();
    Ok(times[times.len() / 2])
}

/// Elements per second, in millions.
#[must_use]
pub fn million_per_second(elements: usize, time: Duration) -> f64 {
    elements as f64 / time.as_secs_f64() / 1e6
}
