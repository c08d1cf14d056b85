//! Timing: what the device spent between two events, or, for structures of the host, what the clock says.

use gpu_primitives::{Error, Stream};
use std::time::{Duration, Instant};

/// What tells the time of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// Events on the stream.
    Device,
    /// The host's clock.
    Host,
}

impl Clock {
    /// Runs the operation once and tells what it gave and how long it took.
    ///
    /// # Errors
    /// What the operation gives.
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

/// The times of some runs of one thing, at least one.
#[derive(Clone, Debug)]
pub struct Times(Vec<Duration>);

impl Times {
    /// Of these runs.
    ///
    /// # Panics
    /// If there are none.
    #[must_use]
    pub fn new(mut times: Vec<Duration>) -> Self {
        assert!(!times.is_empty(), "no run was timed");
        // A clock that did not move would make a rate infinite.
        times.iter_mut().for_each(|time| *time = (*time).max(Duration::from_nanos(1)));
        times.sort_unstable();
        Self(times)
    }

    /// The middle one.
    #[must_use]
    pub fn median(&self) -> Duration {
        self.0[self.0.len() / 2]
    }

    /// The shortest one.
    #[must_use]
    pub fn shortest(&self) -> Duration {
        self.0[0]
    }

    /// The longest one.
    #[must_use]
    pub fn longest(&self) -> Duration {
        self.0[self.0.len() - 1]
    }

    /// How many there are.
    #[must_use]
    pub fn runs(&self) -> usize {
        self.0.len()
    }
}

/// Elements per second, in millions.
#[must_use]
pub fn million_per_second(elements: usize, time: Duration) -> f64 {
    elements as f64 / time.as_secs_f64() / 1e6
}

/// The harmonic mean: the rate of doing the same work at each of these rates.
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
