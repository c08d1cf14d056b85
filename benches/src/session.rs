//! One run of a command: the device, the measurements so far, the progress, and whether to stop.

use crate::measure::{Blocker, Clock, Times};
use crate::record::{Record, Recording};
use crate::{Error, machine};
use gpu_primitives::{Device, DeviceKind, Stream};
use indicatif::{ProgressBar, ProgressStyle};
use std::cell::RefCell;
use std::ops::RangeInclusive;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// When Ctrl-C was pressed.
static STOP: OnceLock<Instant> = OnceLock::new();
/// Signals that come faster are one: the command `timeout` sends it to the program, and then to its group.
const TWICE: Duration = Duration::from_millis(200);

/// Makes Ctrl-C stop after the current measurement. Pressed again, it ends the program at once.
pub fn stop_on_ctrl_c() {
    let handler = || match STOP.get() {
        None => {
            let _ = STOP.set(Instant::now());
            eprintln!("\nstopping after this measurement; press Ctrl-C again to stop at once");
        }
        Some(first) if first.elapsed() > TWICE => std::process::exit(130),
        Some(_) => {}
    };
    // Without a handler, Ctrl-C ends the program, as usual.
    let _ = ctrlc::set_handler(handler);
}

/// One run of a command.
pub struct Session {
    /// The device.
    pub device: Device,
    /// The stream of all work.
    pub stream: Stream,
    /// The number of warm-up runs of each measurement: they load the kernel, fill the memory pool and raise the clocks.
    pub warm_ups: usize,
    /// The number of timed runs of each measurement.
    pub runs: usize,
    recording: RefCell<Recording>,
    progress: RefCell<ProgressBar>,
    blocker: RefCell<Option<Blocker>>,
}

impl Session {
    /// Opens the device of this name, or the default device, with this number of timed runs per measurement.
    ///
    /// # Errors
    /// Any error of opening the device.
    pub fn open(device: Option<&str>, runs: usize) -> Result<Self, Error> {
        let device = device.map_or_else(Device::default, Device::parse)?;
        let stream = device.stream()?;
        let recording = RefCell::new(machine::describe(&device));
        let progress = RefCell::new(ProgressBar::hidden());
        let warm_ups = if matches!(device.kind(), DeviceKind::Cuda { .. }) { 3 } else { 1 };
        Ok(Self { device, stream, warm_ups, runs, recording, progress, blocker: RefCell::new(None) })
    }

    /// Opens a device for measurements of dictionaries at several sizes, which are powers of two; if there are none, they
    /// are chosen to suit the device. Also returns the logarithms of the sizes.
    ///
    /// # Errors
    /// The errors of [`open`](Self::open); [`Error::Arguments`] for other sizes; [`Error::NoRoom`] for the largest size.
    pub fn open_for_sizes(device: Option<&str>, sizes: &[usize]) -> Result<(Self, Vec<u32>), Error> {
        const RUNS: usize = 9;
        let session = Self::open(device, RUNS)?;
        let log_sizes = match sizes {
            [] if session.is_gpu() => vec![24, 27],
            [] => vec![16],
            asked => logarithms(asked, 10..=28)?,
        };
        session.expect_room(1 << log_sizes.iter().max().copied().unwrap_or(0), 64)?;
        Ok((session, log_sizes))
    }

    /// Returns whether the device is a GPU.
    #[must_use]
    pub fn is_gpu(&self) -> bool {
        matches!(self.device.kind(), DeviceKind::Cuda { .. })
    }

    /// Shows a progress bar of `steps` steps, with an estimate of the time left, if there is a terminal.
    pub fn expect_steps(&self, steps: usize) {
        let template = "{bar:24} {pos}/{len} {msg} ({eta} left)";
        let style = ProgressStyle::with_template(template).unwrap_or(ProgressStyle::default_bar());
        *self.progress.borrow_mut() = ProgressBar::new(steps as u64).with_style(style);
    }

    /// Shows the next measurement in the progress bar, and counts a step.
    ///
    /// # Errors
    /// [`Error::Interrupted`] after Ctrl-C.
    pub fn step(&self, what: impl Into<String>) -> Result<(), Error> {
        let progress = self.progress.borrow();
        progress.inc(1);
        progress.set_message(what.into());
        Self::go_on()
    }

    /// Keeps a record.
    pub fn keep(&self, record: Record) {
        self.recording.borrow_mut().records.push(record);
    }

    /// Adds to the description of the run.
    pub fn tell(&self, name: &str, text: impl Into<String>) {
        self.recording.borrow_mut().tell(name, text);
    }

    /// Returns whether there is such a record already.
    pub fn has(&self, is_wanted: impl Fn(&Record) -> bool) -> bool {
        self.recording.borrow().records.iter().any(is_wanted)
    }

    /// Returns copies of these records.
    pub fn records(&self, is_wanted: impl Fn(&Record) -> bool) -> Vec<Record> {
        self.recording.borrow().records.iter().filter(|record| is_wanted(record)).cloned().collect()
    }

    /// Changes the records so far.
    pub fn revise(&self, change: impl FnOnce(&mut Vec<Record>)) {
        change(&mut self.recording.borrow_mut().records);
    }

    /// Returns the measurements. Removes the progress bar.
    #[must_use]
    pub fn finish(self) -> Recording {
        self.progress.borrow().finish_and_clear();
        let mut recording = self.recording.into_inner();
        machine::describe_clocks(&self.device, &mut recording);
        recording
    }

    /// Returns an error if the command shall stop.
    ///
    /// # Errors
    /// [`Error::Interrupted`] after Ctrl-C.
    pub fn go_on() -> Result<(), Error> {
        if STOP.get().is_some() { Err(Error::Interrupted) } else { Ok(()) }
    }

    /// Checks that the device has enough memory for `elements` elements of at most `bytes_each` bytes each, all
    /// included.
    ///
    /// # Errors
    /// [`Error::NoRoom`].
    pub fn expect_room(&self, elements: usize, bytes_each: usize) -> Result<(), Error> {
        let needed = elements.saturating_mul(bytes_each);
        let (free, total) = self.device.memory_free()?;
        if needed <= free { Ok(()) } else { Err(Error::NoRoom { elements, needed, free, total }) }
    }

    /// Times several runs. Returns the result of the last one and the times. Drops the result of a run before the next.
    ///
    /// # Errors
    /// The errors of the operation; [`Error::Interrupted`].
    pub fn time<T>(&self, mut operation: impl FnMut() -> Result<T, Error>) -> Result<(T, Times), Error> {
        self.time_fresh(Clock::Device, self.warm_ups, self.runs, || Ok(()), |()| operation())
    }

    /// Times calls that queue on the device, without what the host takes ([`measure`](crate::measure)). `call` is about how long
    /// one takes. Returns `None` on the CPU, where a call is over when it returns, and for calls that wait.
    ///
    /// # Errors
    /// The errors of the operation; [`Error::Interrupted`].
    pub fn queued(
        &self,
        call: Duration,
        mut operation: impl FnMut() -> Result<(), Error>,
    ) -> Result<Option<Duration>, Error> {
        /// The calls in a row, and the time that these may take together, unless two calls take longer.
        const CALLS: u128 = 8;
        const TOGETHER: Duration = Duration::from_millis(20);
        /// The most rows of calls.
        const ROWS: usize = 5;
        if !self.is_gpu() {
            return Ok(None);
        }
        let mut blocker = self.blocker.borrow_mut();
        let blocker = match &mut *blocker {
            Some(blocker) => blocker,
            none => none.insert(Blocker::new(&self.stream)?),
        };
        let calls = (TOGETHER.as_nanos() / call.as_nanos().max(1)).clamp(2, CALLS) as u32;
        let mut times = Vec::with_capacity(ROWS);
        for _ in 0..ROWS.min(self.runs.max(1)) {
            Self::go_on()?;
            let Some(time) = blocker.time(&self.stream, calls, &mut operation)? else { return Ok(None) };
            times.push(time);
        }
        Ok(Some(Times::new(times).median()))
    }

    /// Like [`time`](Self::time), with a given clock and given numbers of warm-up runs and timed runs. The preparation
    /// before each run is not timed.
    ///
    /// # Errors
    /// The errors of the preparation and the operation; [`Error::Interrupted`].
    pub fn time_fresh<S, T>(
        &self,
        clock: Clock,
        warm_ups: usize,
        runs: usize,
        mut prepare: impl FnMut() -> Result<S, Error>,
        mut operation: impl FnMut(S) -> Result<T, Error>,
    ) -> Result<(T, Times), Error> {
        let mut times = Vec::with_capacity(runs);
        let mut last = None;
        for run in 0..warm_ups + runs.max(1) {
            Self::go_on()?;
            drop(last.take());
            let state = prepare()?;
            let (result, time) = clock.time(&self.stream, || operation(state))?;
            if run >= warm_ups {
                times.push(time);
            }
            last = Some(result);
        }
        // There was at least one run.
        last.map(|last| (last, Times::new(times))).ok_or(Error::Interrupted)
    }
}

/// Returns the logarithms of sizes, for measurements that take powers of two alone.
///
/// # Errors
/// [`Error::Arguments`] for another size, or for a power that is not allowed.
pub fn logarithms(sizes: &[usize], allowed: RangeInclusive<u32>) -> Result<Vec<u32>, Error> {
    let logarithm = |&size: &usize| {
        let log = size.checked_ilog2().filter(|log| size == 1 << log && allowed.contains(log));
        let (least, most) = (allowed.start(), allowed.end());
        log.ok_or_else(|| {
            Error::Arguments(format!("--size {size}: it must be a power of two from 2^{least} to 2^{most}"))
        })
    };
    sizes.iter().map(logarithm).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_powers_of_two() {
        assert_eq!(logarithms(&[1 << 10, 1 << 12], 10..=28).unwrap(), [10, 12]);
        for bad in [0, 1000, 1 << 9, 1 << 29] {
            let message = logarithms(&[bad], 10..=28).unwrap_err().to_string();
            assert!(message.contains("a power of two from 2^10 to 2^28"), "{message}");
        }
    }
}
