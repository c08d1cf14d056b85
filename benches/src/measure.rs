//! Timing: by device events, or by the host's clock for structures on the host.

use gpu_primitives::{Error, Stream};
use std::time::{Duration, Instant};

/// The clock that times an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// Events on the stream.
    Device,
    /// The host's clock.
    Host,
}

impl Clock {
    /// Runs the operation once. Returns its result and its time.
    ///
    /// # Errors
    /// The errors of the operation.
    pub fn time<T, E: From<Error>>(
        self,
        stream: &Stream,
        operation: impl FnOnce() -> Result<T, E>,
    ) -> Result<(T, Duration), E> {
        match self {
            Self::Device => {
                let start = stream.record()?;
                let result = operation()?;
                let end = stream.record()?;
                Ok((result, end.elapsed(&start)?))
            }
            Self::Host => {
                let start = Instant::now();
                let result = operation()?;
                Ok((result, start.elapsed()))
            }
        }
    }
}

/// The times of at least one run of an operation.
#[derive(Clone, Debug)]
pub struct Times(Vec<Duration>);

impl Times {
    /// Creates the times of runs.
    ///
    /// # Panics
    /// If `times` is empty.
    #[must_use]
    pub fn new(mut times: Vec<Duration>) -> Self {
        assert!(!times.is_empty(), "no run was timed");
        // A time of zero would give an infinite rate.
        times.iter_mut().for_each(|time| *time = (*time).max(Duration::from_nanos(1)));
        times.sort_unstable();
        Self(times)
    }

    /// Returns the median.
    #[must_use]
    pub fn median(&self) -> Duration {
        self.0[self.0.len() / 2]
    }

    /// Returns the shortest time.
    #[must_use]
    pub fn shortest(&self) -> Duration {
        self.0[0]
    }

    /// Returns the longest time.
    #[must_use]
    pub fn longest(&self) -> Duration {
        self.0[self.0.len() - 1]
    }

    /// Returns the number of runs.
    #[must_use]
    pub fn runs(&self) -> usize {
        self.0.len()
    }
}

/// Returns the rate in millions of elements per second.
#[must_use]
pub fn million_per_second(elements: usize, time: Duration) -> f64 {
    elements as f64 / time.as_secs_f64() / 1e6
}

/// Returns the harmonic mean: the overall rate of doing the same amount of work at each of these rates.
#[must_use]
pub fn harmonic_mean(rates: &[f64]) -> f64 {
    rates.len() as f64 / rates.iter().map(|rate| 1.0 / rate).sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_ordered_and_never_zero() {
        let times = Times::new([30, 0, 20].map(Duration::from_micros).to_vec());
        assert_eq!((times.median(), times.longest()), (Duration::from_micros(20), Duration::from_micros(30)));
        assert_eq!((times.shortest(), times.runs()), (Duration::from_nanos(1), 3));
    }

    #[test]
    fn half_the_time_at_each_rate() {
        assert!((harmonic_mean(&[60.0, 30.0]) - 40.0).abs() < 1e-12);
    }
}
