//! The model of a device: streams, and memory of two halves.
//!
//! Work is not run. A stream knows how much of every stream's work comes before its own next work. Two accesses to the same
//! memory, of which one writes, must be ordered in this way.

use crate::order::{Lane, Timeline, Use, Users};
use crate::sync::{Arc, AtomicU64, Mutex, Ordering, lock};
use std::ops::Range;

/// The streams and the memory.
pub struct Device {
    driver: Arc<Mutex<Driver>>,
    /// Outside the model: whether two accesses were not ordered in any of the interleavings.
    is_wrong: std::sync::Arc<std::sync::atomic::AtomicBool>,
    waits_fail: bool,
}

/// What the driver knows.
#[derive(Default)]
struct Driver {
    streams: Vec<State>,
    accesses: Vec<Access>,
    memories: usize,
}

#[derive(Default)]
struct State {
    submitted: u64,
    /// How much of each stream's work comes before the next work of this one.
    before: Vec<u64>,
    /// How much of its work the host has waited for.
    done: u64,
}

struct Access {
    stream: usize,
    position: u64,
    memory: usize,
    half: usize,
    writes: bool,
}

/// A stream of the model.
pub struct Line {
    number: usize,
    driver: Arc<Mutex<Driver>>,
    /// Counted after the driver has accepted the work, as in `CudaStream`.
    submitted: AtomicU64,
    is_wrong: std::sync::Arc<std::sync::atomic::AtomicBool>,
    waits_fail: bool,
}

/// An error of the model.
#[derive(Debug, PartialEq, Eq)]
pub enum Refused {
    ByDriver,
    OtherThreadRecords,
}

/// Memory and its home lane.
pub struct Memory {
    number: usize,
    home: Arc<Lane<Line>>,
    users: Users<Line>,
}

/// Runs a scenario in all interleavings. Returns whether two accesses were not ordered in any of them.
pub fn is_wrong(waits_fail: bool, scenario: impl Fn(&Device) + Send + Sync + 'static) -> bool {
    let is_wrong = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let found = std::sync::Arc::clone(&is_wrong);
    loom::model(move || {
        let device = Device { driver: Arc::default(), is_wrong: std::sync::Arc::clone(&is_wrong), waits_fail };
        scenario(&device);
    });
    found.load(std::sync::atomic::Ordering::Relaxed)
}

impl Device {
    fn line(&self) -> Line {
        let mut driver = lock(&self.driver);
        let number = driver.streams.len();
        driver.streams.push(State::default());
        let (driver, is_wrong) = (Arc::clone(&self.driver), std::sync::Arc::clone(&self.is_wrong));
        Line { number, driver, submitted: AtomicU64::new(0), is_wrong, waits_fail: self.waits_fail }
    }

    pub fn lane(&self) -> Arc<Lane<Line>> {
        Arc::new(Lane::new(self.line()))
    }

    pub fn recorder(&self, parent: &Arc<Lane<Line>>) -> Arc<Lane<Line>> {
        Arc::new(Lane::recorder(self.line(), parent))
    }

    /// Memory that `allocator` allocates in its order, with `home` as the lane that frees it.
    pub fn memory(&self, home: &Arc<Lane<Line>>, allocator: &Arc<Lane<Line>>) -> Memory {
        let number = {
            let mut driver = lock(&self.driver);
            driver.memories += 1;
            driver.memories
        };
        let memory = Memory { number, home: Arc::clone(home), users: Users::new(home) };
        memory.submit(allocator, 0..2, true);
        memory
    }

    /// Lets a lane use memory that was left to it.
    pub fn reuse(&self, (number, home): (usize, Arc<Lane<Line>>)) {
        home.kind.submit(number, 0..2, true);
    }
}

impl Memory {
    pub fn touch(&self, lane: &Arc<Lane<Line>>, how: Use) -> Result<(), Refused> {
        self.users.touch(&self.home, lane, how)
    }

    pub fn note(&self, lane: &Arc<Lane<Line>>) -> Result<(), Refused> {
        self.users.note(&self.home, lane)
    }

    /// Gives work on some halves to a stream.
    pub fn submit(&self, lane: &Lane<Line>, halves: Range<usize>, writes: bool) {
        lane.kind.submit(self.number, halves, writes);
    }

    /// Both steps of a call.
    pub fn access(&self, lane: &Arc<Lane<Line>>, how: Use, halves: Range<usize>) {
        self.touch(lane, how).expect("nothing is refused here");
        self.submit(lane, halves, how != Use::Read);
    }

    /// Frees the memory in the order of its home lane.
    pub fn free(self) {
        let (number, home) = self.leave();
        home.kind.submit(number, 0..2, true);
    }

    /// Leaves the memory to its home lane, which may use it again. Returns its number and the lane.
    pub fn leave(mut self) -> (usize, Arc<Lane<Line>>) {
        self.users.leave_to(&self.home);
        (self.number, self.home)
    }
}

impl Line {
    fn submit(&self, memory: usize, halves: Range<usize>, writes: bool) {
        let mut guard = lock(&self.driver);
        let driver = &mut *guard;
        let stream = self.number;
        driver.streams[stream].submitted += 1;
        let position = driver.streams[stream].submitted;
        for half in halves {
            let is_ordered = |access: &Access| {
                let before = driver.streams[stream].before.get(access.stream).copied().unwrap_or(0);
                let done = driver.streams[access.stream].done;
                access.stream == stream || access.position <= before.max(done)
            };
            let is_conflict =
                |access: &&Access| access.memory == memory && access.half == half && (access.writes || writes);
            if !driver.accesses.iter().filter(is_conflict).all(is_ordered) {
                self.is_wrong.store(true, std::sync::atomic::Ordering::Relaxed);
            }
            driver.accesses.push(Access { stream, position, memory, half, writes });
        }
        drop(guard);
        self.submitted.fetch_add(1, Ordering::Release);
    }
}

impl Timeline for Line {
    type Error = Refused;

    fn is_asynchronous(&self) -> bool {
        true
    }

    fn position(&self) -> Option<u64> {
        Some(self.submitted.load(Ordering::Acquire))
    }

    fn wait_for(&self, other: &Self) -> Result<(), Refused> {
        if self.waits_fail {
            return Err(Refused::ByDriver);
        }
        let mut driver = lock(&self.driver);
        let mut before = driver.streams[other.number].before.clone();
        before.resize(driver.streams.len(), 0);
        before[other.number] = driver.streams[other.number].submitted;
        let this = &mut driver.streams[self.number];
        this.before.resize(before.len(), 0);
        this.before.iter_mut().zip(before).for_each(|(mine, theirs)| *mine = theirs.max(*mine));
        this.submitted += 1;
        drop(driver);
        self.submitted.fetch_add(1, Ordering::Release);
        Ok(())
    }

    fn synchronize(&self) -> Result<(), Refused> {
        let mut driver = lock(&self.driver);
        // All that this stream waited for is done, too.
        for (other, position) in driver.streams[self.number].before.clone().into_iter().enumerate() {
            let done = &mut driver.streams[other].done;
            *done = position.max(*done);
        }
        let this = &mut driver.streams[self.number];
        this.done = this.submitted;
        Ok(())
    }

    fn expect_host(&self) -> Result<(), Refused> {
        Ok(())
    }

    fn recorded_elsewhere() -> Refused {
        Refused::OtherThreadRecords
    }
}
