//! The streams of the CPU device.
//!
//! On the fast device, a call has done its work when it returns, so there is nothing to queue.
//!
//! On the checked device, the same holds while it has only one stream. With two or more, streams are independent
//! queues: work stays in its queue until something waits for it, and then only that queue runs, with the work it
//! depends on. So if the library forgets to order two tasks, they run in the wrong order: as late as possible, or, with
//! [`Schedule::Random`](super::Schedule::Random), at a moment that depends on the seed.
//!
//! # Errors
//! An error belongs to the work that failed, not to the call that happens to run it:
//!
//! - A copy to the host has an outcome of its own, which only the call that waits for this copy takes.
//! - A kernel that faults after its launch has returned leaves memory that nobody can know, so its stream is lost: later work on
//!   it is dropped, and every call that adds work or waits gets the fault. A stream that waits for the fault is lost, too, for
//!   it may use that memory. This is what a GPU does, but there the whole device is lost.
//! - While there is one stream, the launch itself returns the fault, and nothing else is harmed.

use super::CpuDevice;
use crate::host::error::Error;
use crate::host::executor::context::in_kernel;
use crate::host::executor::{Fault, Random};
use crate::host::runtime::device::lock;
use crate::host::runtime::step::Step;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::Instant;

/// The most tasks that may wait in a queue. A queue holds the data of its uploads.
const MOST_TASKS: usize = 4096;

/// A stream of the CPU device.
pub(crate) struct CpuLane {
    device: Arc<CpuDevice>,
    /// Its queue, on the checked device.
    queue: usize,
    /// RegisterRepr during a launch on the fast device: kernels of one stream do not overlap.
    order: Mutex<()>,
}

/// A mark in a queue.
#[derive(Clone, Debug)]
pub(crate) struct CpuMark {
    device: Arc<CpuDevice>,
    queue: usize,
    position: u64,
    passed: Arc<OnceLock<Instant>>,
}

/// A copy to the host that was queued. Its outcome is told to nobody else.
#[derive(Debug)]
pub(crate) struct Landing {
    device: Arc<CpuDevice>,
    queue: usize,
    position: u64,
    outcome: Outcome,
}

/// The result of a task, once it is done.
type Outcome = Arc<Mutex<Option<Result<(), Error>>>>;

/// All queues of a checked device.
#[derive(Debug, Default)]
pub(super) struct Queues {
    by_id: BTreeMap<usize, Queue>,
    made: usize,
    /// The number of lanes that still exist.
    lanes: usize,
    random: Option<Random>,
    /// The queues that are lost. They stay here when they are dropped, for those that wait for them later.
    lost: BTreeMap<usize, Lost>,
}

#[derive(Debug, Default)]
struct Queue {
    tasks: VecDeque<Task>,
    /// The number of tasks submitted so far, and the number of those that are done.
    submitted: u64,
    done: u64,
}

/// Why and from which task on a queue is lost.
#[derive(Clone, Debug)]
struct Lost {
    from: u64,
    fault: Box<Fault>,
}

enum Task {
    Work {
        step: Step,
        /// Who is told the result. If nobody is, a fault is that of the whole queue.
        outcome: Option<Outcome>,
    },
    /// Waits until another queue has reached a position.
    Wait {
        queue: usize,
        position: u64,
    },
    Mark(Arc<OnceLock<Instant>>),
}

impl Task {
    /// Returns whether the task uses memory. Such tasks of a lost queue are dropped.
    fn is_use(&self) -> bool {
        matches!(self, Self::Work { step, .. } if !matches!(step, Step::Free { .. }))
    }
}

impl std::fmt::Debug for Task {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Work { .. } => write!(f, "Work"),
            Self::Wait { queue, position } => write!(f, "Wait({queue}, {position})"),
            Self::Mark(_) => write!(f, "Mark"),
        }
    }
}

/// Returns an error inside a kernel: its launch would wait for itself. Structures call this before they take a lock that another
/// thread, or the same one, may hold while it launches.
///
/// # Errors
/// [`Error::HostCallInKernel`].
pub fn expect_host() -> Result<(), Error> {
    if in_kernel() { Err(Error::HostCallInKernel) } else { Ok(()) }
}

impl CpuLane {
    pub(crate) fn new(device: &Arc<CpuDevice>) -> Result<Self, Error> {
        let mut queues = device.lock_queues()?;
        let queue = queues.made;
        queues.made += 1;
        queues.lanes += 1;
        queues.by_id.insert(queue, Queue::default());
        Ok(Self { device: Arc::clone(device), queue, order: Mutex::new(()) })
    }

    pub(crate) fn device(&self) -> &CpuDevice {
        &self.device
    }

    /// Returns whether work may be queued.
    pub(crate) fn is_queued(&self) -> bool {
        self.device.options.checked
    }

    /// Keeps kernels of this stream from running while the guard lives, on the fast device.
    pub(crate) fn hold(&self) -> MutexGuard<'_, ()> {
        lock(&self.order)
    }

    /// Runs the step, or queues it behind earlier ones.
    ///
    /// # Safety
    /// The requirements of [`Step::run`] must hold when the stream reaches the step.
    pub(crate) unsafe fn submit(&self, step: Step) -> Result<(), Error> {
        expect_host()?;
        if !self.is_queued() {
            let _order = matches!(step, Step::Launch { .. } | Step::Graph(_)).then(|| self.hold());
            // SAFETY: guaranteed by the caller.
            return unsafe { step.run(&self.device) };
        }
        self.push(Task::Work { step, outcome: None })?;
        Ok(())
    }

    /// [`submit`](Self::submit) for a copy to the host. If the copy is queued, the result tells how it went; otherwise it is done.
    ///
    /// # Safety
    /// Same as [`submit`](Self::submit).
    pub(crate) unsafe fn submit_download(&self, step: Step) -> Result<Option<Landing>, Error> {
        if !self.is_queued() {
            // SAFETY: guaranteed by the caller.
            unsafe { self.submit(step)? };
            return Ok(None);
        }
        let outcome = Outcome::default();
        let position = self.push(Task::Work { step, outcome: Some(Arc::clone(&outcome)) })?;
        if let Some(failed) = lock(&outcome).take_if(|result| result.is_err()) {
            failed?;
        }
        Ok(Some(Landing { device: Arc::clone(&self.device), queue: self.queue, position, outcome }))
    }

    /// Makes later work wait for the tasks of `other` up to a position.
    pub(crate) fn wait_for(&self, other: &Self, position: u64) -> Result<(), Error> {
        if !self.is_queued() || !Arc::ptr_eq(&self.device, &other.device) {
            return Ok(());
        }
        self.push(Task::Wait { queue: other.queue, position })?;
        Ok(())
    }

    /// Makes later work wait for a mark.
    pub(crate) fn wait_for_mark(&self, mark: &CpuMark) -> Result<(), Error> {
        if !Arc::ptr_eq(&self.device, &mark.device) {
            return mark.finish();
        }
        if !self.is_queued() {
            return expect_host();
        }
        self.push(Task::Wait { queue: mark.queue, position: mark.position })?;
        Ok(())
    }

    /// Marks the current end of the stream.
    pub(crate) fn mark(&self) -> Result<CpuMark, Error> {
        let passed = Arc::new(OnceLock::new());
        let position = if self.is_queued() {
            self.push(Task::Mark(Arc::clone(&passed)))?
        } else {
            expect_host()?;
            let _ = passed.set(Instant::now());
            0
        };
        Ok(CpuMark { device: Arc::clone(&self.device), queue: self.queue, position, passed })
    }

    /// Queues a task and returns its position.
    fn push(&self, task: Task) -> Result<u64, Error> {
        let mut queues = self.device.lock_queues()?;
        let queues = &mut *queues;
        let is_alone = queues.lanes == 1;
        if is_alone {
            // What other streams have left: afterwards the queue is empty.
            let before = queues.queue(self.queue).submitted;
            queues.reach(&self.device, self.queue, before);
        }
        if task.is_use() {
            queues.expect_found(self.queue, u64::MAX)?;
        }
        let queue = queues.queue(self.queue);
        queue.tasks.push_back(task);
        queue.submitted += 1;
        let (position, waiting) = (queue.submitted, queue.tasks.len());
        if is_alone {
            return match queues.run_next(&self.device, self.queue) {
                Some(fault) => Err(Error::KernelFault(fault)),
                None => Ok(position),
            };
        }
        if waiting > MOST_TASKS {
            queues.reach(&self.device, self.queue, position - MOST_TASKS as u64);
        }
        queues.run_some(&self.device);
        Ok(position)
    }

    /// Returns the number of tasks submitted so far.
    pub(crate) fn position(&self) -> Result<u64, Error> {
        Ok(self.device.lock_queues()?.queue(self.queue).submitted)
    }

    /// Runs all work of the stream.
    pub(crate) fn finish(&self) -> Result<(), Error> {
        if !self.is_queued() {
            return expect_host();
        }
        let mut queues = self.device.lock_queues()?;
        let position = queues.queue(self.queue).submitted;
        queues.finish(&self.device, self.queue, position)
    }
}

impl Drop for CpuLane {
    fn drop(&mut self) {
        // What a kernel drops is dropped when it is over (`left`), so this is the host.
        let Ok(mut queues) = self.device.lock_queues() else { return };
        let position = queues.queue(self.queue).submitted;
        queues.reach(&self.device, self.queue, position);
        queues.lanes -= 1;
        queues.by_id.remove(&self.queue);
    }
}

impl Landing {
    /// Runs all work up to the copy, and returns how the copy went.
    pub(crate) fn wait(self) -> Result<(), Error> {
        self.device.lock_queues()?.reach(&self.device, self.queue, self.position);
        lock(&self.outcome).take().expect("the queue has passed the copy, and nobody else takes its outcome")
    }
}

impl CpuMark {
    /// Runs all work up to the mark.
    pub(crate) fn finish(&self) -> Result<(), Error> {
        if !self.device.options.checked {
            return expect_host();
        }
        self.device.lock_queues()?.finish(&self.device, self.queue, self.position)
    }

    /// Returns whether the work is done. If not, runs a part of it, so that polling makes progress.
    pub(crate) fn is_passed(&self) -> Result<bool, Error> {
        if !self.device.options.checked {
            return expect_host().map(|()| true);
        }
        let mut queues = self.device.lock_queues()?;
        if !queues.has_passed(self.queue, self.position) {
            let next = queues.queue(self.queue).done + 1;
            queues.reach(&self.device, self.queue, next);
        }
        queues.expect_found(self.queue, self.position)?;
        Ok(queues.has_passed(self.queue, self.position))
    }

    /// Returns when the stream passed the mark.
    pub(crate) fn time(&self) -> Option<Instant> {
        self.passed.get().copied()
    }
}

impl CpuDevice {
    /// Locks the queues. They stay locked while a kernel runs, so inside a kernel this is an error.
    fn lock_queues(&self) -> Result<MutexGuard<'_, Queues>, Error> {
        expect_host()?;
        Ok(lock(&self.queues))
    }

    /// Runs all work of all streams, so that the memory they free can be allocated again.
    pub(super) fn finish_all(&self) {
        if let Ok(mut queues) = self.lock_queues() {
            queues.finish_all(self);
        }
    }
}

impl Queues {
    pub(super) fn new(seed: Option<u64>) -> Self {
        Self { random: seed.map(|seed| Random::new(seed ^ 0x5eed)), ..Self::default() }
    }

    fn queue(&mut self, id: usize) -> &mut Queue {
        self.by_id.entry(id).or_default()
    }

    /// Returns whether a queue has reached a position. A dropped queue has done all its work.
    fn has_passed(&self, id: usize, position: u64) -> bool {
        self.by_id.get(&id).is_none_or(|queue| queue.done >= position)
    }

    /// Returns the fault of a queue that is lost at a position.
    fn expect_found(&self, id: usize, position: u64) -> Result<(), Error> {
        match self.lost.get(&id) {
            Some(lost) if lost.from <= position => Err(Error::KernelFault(lost.fault.clone())),
            _ => Ok(()),
        }
    }

    /// [Reaches](Self::reach) a position, and returns the fault if the queue is lost there.
    fn finish(&mut self, device: &CpuDevice, id: usize, position: u64) -> Result<(), Error> {
        self.reach(device, id, position);
        self.expect_found(id, position)
    }

    /// Runs a queue up to a position, and the work of other queues that it waits for.
    fn reach(&mut self, device: &CpuDevice, id: usize, position: u64) {
        // A stack of goals: each one must be reached before the one below it. A task waits only for earlier
        // submissions, so this terminates.
        let mut goals = vec![(id, position)];
        while let Some(&(id, position)) = goals.last() {
            self.run_some(device);
            if self.has_passed(id, position) {
                goals.pop();
            } else if let Some(&Task::Wait { queue, position }) = self.queue(id).tasks.front()
                && !self.has_passed(queue, position)
            {
                goals.push((queue, position));
            } else {
                self.advance(device, id);
            }
        }
    }

    /// Runs the next task of a queue, which must be ready. If its kernel faults, the queue is lost.
    fn advance(&mut self, device: &CpuDevice, id: usize) {
        if let Some(fault) = self.run_next(device, id) {
            let from = self.queue(id).done;
            self.lost.insert(id, Lost { from, fault });
        }
    }

    /// Runs the next task of a queue, which must be ready. Returns the fault of its kernel, unless that is told to somebody.
    fn run_next(&mut self, device: &CpuDevice, id: usize) -> Option<Box<Fault>> {
        let queue = self.queue(id);
        let task = queue.tasks.pop_front()?;
        queue.done += 1;
        let done = queue.done;
        let lost = if task.is_use() { self.expect_found(id, done) } else { Ok(()) };
        match task {
            Task::Work { step, outcome } => {
                // SAFETY: guaranteed at submission, and the stream has reached the step.
                let result = lost.and_then(|()| unsafe { step.run(device) });
                match (outcome, result) {
                    (Some(outcome), result) => *lock(&outcome) = Some(result),
                    (None, Err(Error::KernelFault(fault))) if !self.lost.contains_key(&id) => return Some(fault),
                    _ => {}
                }
            }
            Task::Wait { queue, position } => {
                if let Some(lost) = self.lost.get(&queue).filter(|lost| lost.from <= position).cloned() {
                    self.lost.entry(id).or_insert(Lost { from: done, ..lost });
                }
            }
            Task::Mark(passed) => {
                let _ = passed.set(Instant::now());
            }
        }
        None
    }

    /// With a random schedule, runs some tasks of random queues.
    fn run_some(&mut self, device: &CpuDevice) {
        let Some(mut random) = self.random else { return };
        while random.one_in(2) {
            let ready: Vec<usize> = self.by_id.keys().copied().filter(|&id| self.is_ready(id)).collect();
            if ready.is_empty() {
                break;
            }
            let id = ready[random.below(ready.len() as u32) as usize];
            self.advance(device, id);
        }
        self.random = Some(random);
    }

    /// Returns whether the next task of a queue is ready.
    fn is_ready(&self, id: usize) -> bool {
        match self.by_id.get(&id).and_then(|queue| queue.tasks.front()) {
            None => false,
            Some(&Task::Wait { queue, position }) => self.has_passed(queue, position),
            Some(_) => true,
        }
    }

    /// Runs all queues to their ends.
    fn finish_all(&mut self, device: &CpuDevice) {
        let ids: Vec<usize> = self.by_id.keys().copied().collect();
        for id in ids {
            let position = self.queue(id).submitted;
            self.reach(device, id, position);
        }
    }
}
