//! Timing: by device events, or by the host's clock for structures on the host.
//!
//! Operations of a device are timed in two ways. *Call*: the device is idle, and the time from an event before one call to an
//! event after it includes what the host takes to launch. *Queued*: calls follow each other behind a copy that keeps the
//! device busy until the host has enqueued all of them, so that the time is the device's alone.

use gpu_primitives::{DeviceVec, Error, PinnedVec, Stream};
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

/// The bytes of the copy that calls queue behind. It takes some milliseconds.
const BLOCKER: usize = 1 << 27;

/// Keeps a device busy while the host enqueues calls, by a copy from page-locked memory, which leaves the multiprocessors alone.
pub struct Blocker {
    host: Option<PinnedVec<u8>>,
    device: DeviceVec<u8>,
}

impl Blocker {
    /// Allocates the memory of the copy.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] and driver errors.
    pub fn new(stream: &Stream) -> Result<Self, Error> {
        Self::of(stream, BLOCKER)
    }

    fn of(stream: &Stream, bytes: usize) -> Result<Self, Error> {
        Ok(Self { host: Some(stream.device().pinned(bytes)?), device: stream.zeroed(bytes)? })
    }

    /// Returns the time of one of `calls` calls in a row. Returns `None` if the device did not wait for the host: if the calls
    /// themselves wait, or if the host took longer than the copy. One more call before them is not timed: it fills the caches.
    ///
    /// # Errors
    /// The errors of the operation.
    pub fn time<E: From<Error>>(
        &mut self,
        stream: &Stream,
        calls: u32,
        mut operation: impl FnMut() -> Result<(), E>,
    ) -> Result<Option<Duration>, E> {
        let host = match self.host.take() {
            Some(host) => host,
            None => stream.device().pinned(self.device.len())?,
        };
        let copy = stream.upload_pinned(host, &mut self.device)?;
        operation()?;
        let start = stream.record()?;
        for _ in 0..calls {
            operation()?;
        }
        let end = stream.record()?;
        // If the device has not even begun, the host is no longer part of the time.
        let has_waited = !start.is_done()?;
        let time = end.elapsed(&start)?;
        self.host = Some(copy.wait()?);
        Ok(has_waited.then(|| time / calls.max(1)))
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
    fn calls_that_do_not_queue_have_no_such_time() {
        // On the CPU device a call is over when it returns.
        let stream = gpu_primitives::Device::cpu().stream().unwrap();
        let mut blocker = Blocker::of(&stream, 1 << 12).unwrap();
        let mut calls = 0;
        for _ in 0..2 {
            let time = blocker.time(&stream, 3, || {
                calls += 1;
                stream.synchronize()
            });
            assert_eq!(time.unwrap(), None);
        }
        assert_eq!(calls, 2 * (1 + 3));
    }

    #[test]
    fn a_failing_call_leaves_the_blocker_usable() {
        let stream = gpu_primitives::Device::cpu().stream().unwrap();
        let mut blocker = Blocker::of(&stream, 1 << 12).unwrap();
        let failed = blocker.time(&stream, 3, || stream.upload(&[1u32])?.slice(2..3).map(drop));
        assert!(failed.is_err());
        assert_eq!(blocker.time(&stream, 1, || stream.synchronize()).unwrap(), None);
    }

    #[test]
    fn half_the_time_at_each_rate() {
        assert!((harmonic_mean(&[60.0, 30.0]) - 40.0).abs() < 1e-12);
    }
}
