//! The streams of the CPU device.
//!
//! On the fast device, a call has done its work when it returns, so there is nothing to queue.
//!
//! On the checked device, the same holds while it has only one stream. With two or more, streams are independent
//! queues: work stays in its queue until something waits for it, and then only that queue runs, with the work it
//! depends on. So if the library forgets to order two tasks, they run in the wrong order: as late as possible, or, with
//! [`Schedule::Random`](super::Schedule::Random), at a moment that depends on the seed.

use super::CpuDevice;
use crate::executor::Random;
use crate::executor::context::in_kernel;
use crate::runtime::device::lock;
use crate::runtime::error::Error;
use crate::runtime::step::Step;
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
    /// Held during a launch on the fast device: kernels of one stream do not overlap.
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

/// All queues of a checked device.
#[derive(Debug, Default)]
pub(super) struct Queues {
    by_id: BTreeMap<usize, Queue>,
    made: usize,
    /// The number of lanes that still exist.
    lanes: usize,
    random: Option<Random>,
    /// An error of a dropped queue that was not reported yet.
    unreported: Option<Error>,
}

#[derive(Debug, Default)]
struct Queue {
    tasks: VecDeque<Task>,
    /// The number of tasks submitted so far, and the number of those that are done.
    submitted: u64,
    done: u64,
    /// An error that was not reported yet.
    unreported: Option<Error>,
    /// If a kernel faulted, the last task queued behind it: all tasks up to this one are dropped.
    dropped_until: u64,
}

enum Task {
    Work(Step),
    /// Waits until another queue has reached a position.
    Wait {
        queue: usize,
        position: u64,
    },
    Mark(Arc<OnceLock<Instant>>),
}

impl std::fmt::Debug for Task {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Work(_) => write!(f, "Work"),
            Self::Wait { queue, position } => write!(f, "Wait({queue}, {position})"),
            Self::Mark(_) => write!(f, "Mark"),
        }
    }
}

/// Returns an error inside a kernel: its launch would wait for itself.
fn expect_host() -> Result<(), Error> {
    if in_kernel() { Err(Error::HostCallInKernel) } else { Ok(()) }
}

impl CpuLane {
    pub(crate) fn new(device: &Arc<CpuDevice>) -> Result<Self, Error> {
        expect_host()?;
        let mut queues = lock(&device.queues);
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
        self.push(Task::Work(step))
    }

    /// Makes later work wait for the tasks of `other` up to a position.
    pub(crate) fn wait_for(&self, other: &Self, position: u64) -> Result<(), Error> {
        if !self.is_queued() || !Arc::ptr_eq(&self.device, &other.device) {
            return Ok(());
        }
        self.push(Task::Wait { queue: other.queue, position })
    }

    /// Makes later work wait for a mark.
    pub(crate) fn wait_for_mark(&self, mark: &CpuMark) -> Result<(), Error> {
        if !Arc::ptr_eq(&self.device, &mark.device) {
            return mark.finish();
        }
        if mark.passed.get().is_some() {
            return Ok(());
        }
        self.push(Task::Wait { queue: mark.queue, position: mark.position })
    }

    /// Marks the current end of the stream.
    pub(crate) fn mark(&self) -> Result<CpuMark, Error> {
        let passed = Arc::new(OnceLock::new());
        if self.is_queued() {
            self.push(Task::Mark(Arc::clone(&passed)))?;
        } else {
            let _ = passed.set(Instant::now());
        }
        Ok(CpuMark { device: Arc::clone(&self.device), queue: self.queue, position: self.position(), passed })
    }

    fn push(&self, task: Task) -> Result<(), Error> {
        expect_host()?;
        let mut queues = lock(&self.device.queues);
        let queues = &mut *queues;
        let is_alone = queues.lanes == 1;
        let queue = queues.queue(self.queue);
        queue.tasks.push_back(task);
        queue.submitted += 1;
        let position = queue.submitted;
        if is_alone {
            return queues.finish(&self.device, self.queue, position);
        }
        if queue.tasks.len() > MOST_TASKS
            && let Err(error) = queues.finish(&self.device, self.queue, position - MOST_TASKS as u64)
        {
            // This task is queued nevertheless, so the error is reported to the next waiter.
            queues.queue(self.queue).unreported.get_or_insert(error);
        }
        queues.run_some(&self.device);
        Ok(())
    }

    /// Returns the number of tasks submitted so far.
    pub(crate) fn position(&self) -> u64 {
        lock(&self.device.queues).queue(self.queue).submitted
    }

    /// Runs all work of the stream.
    pub(crate) fn finish(&self) -> Result<(), Error> {
        expect_host()?;
        if !self.is_queued() {
            return Ok(());
        }
        let mut queues = lock(&self.device.queues);
        let position = queues.queue(self.queue).submitted;
        queues.finish(&self.device, self.queue, position)
    }
}

impl Drop for CpuLane {
    fn drop(&mut self) {
        let mut queues = lock(&self.device.queues);
        let position = queues.queue(self.queue).submitted;
        if let Err(error) = queues.finish(&self.device, self.queue, position) {
            queues.unreported.get_or_insert(error);
        }
        queues.lanes -= 1;
        queues.by_id.remove(&self.queue);
    }
}

impl CpuMark {
    /// Runs all work up to the mark.
    pub(crate) fn finish(&self) -> Result<(), Error> {
        if self.passed.get().is_some() {
            return Ok(());
        }
        lock(&self.device.queues).finish(&self.device, self.queue, self.position)
    }

    /// Returns whether the work is done. If not, runs a part of it, so that polling makes progress.
    pub(crate) fn is_passed(&self) -> Result<bool, Error> {
        if self.passed.get().is_some() {
            return Ok(true);
        }
        let mut queues = lock(&self.device.queues);
        let next = queues.queue(self.queue).done + 1;
        queues.finish(&self.device, self.queue, next.min(self.position))?;
        Ok(false)
    }

    /// Returns when the stream passed the mark.
    pub(crate) fn time(&self) -> Option<Instant> {
        self.passed.get().copied()
    }
}

impl CpuDevice {
    /// Runs all work of all streams, so that the memory they free can be allocated again.
    pub(super) fn finish_all(&self) {
        lock(&self.queues).finish_all(self);
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

    /// Runs a queue up to a position, and the work of other queues that it waits for. Continues after a failure, and
    /// returns the first error.
    fn finish(&mut self, device: &CpuDevice, id: usize, position: u64) -> Result<(), Error> {
        let mut first_error = None;
        // A stack of goals: each one must be reached before the one below it. A task waits only for earlier
        // submissions, so this terminates.
        let mut goals = vec![(id, position)];
        while let Some(&(id, position)) = goals.last() {
            self.run_some(device);
            if let Some(error) = self.by_id.get_mut(&id).and_then(|queue| queue.unreported.take()) {
                first_error.get_or_insert(error);
            }
            if self.has_passed(id, position) {
                goals.pop();
            } else if let Some(&Task::Wait { queue, position }) = self.queue(id).tasks.front()
                && !self.has_passed(queue, position)
            {
                goals.push((queue, position));
            } else if let Err(error) = self.run_next(device, id) {
                first_error.get_or_insert(error);
            }
        }
        first_error.or_else(|| self.unreported.take()).map_or(Ok(()), Err)
    }

    /// Runs the next task of a queue. It must be ready.
    fn run_next(&mut self, device: &CpuDevice, id: usize) -> Result<(), Error> {
        let queue = self.queue(id);
        let Some(task) = queue.tasks.pop_front() else { return Ok(()) };
        queue.done += 1;
        let is_dropped = queue.done <= queue.dropped_until && !matches!(task, Task::Work(Step::Free { .. }));
        match task {
            Task::Work(_) if is_dropped => Ok(()),
            Task::Work(step) => {
                // SAFETY: guaranteed at submission, and the stream has reached the step.
                let result = unsafe { step.run(device) };
                if matches!(result, Err(Error::KernelFault(_))) {
                    queue.dropped_until = queue.submitted;
                }
                result
            }
            Task::Wait { .. } => Ok(()),
            Task::Mark(passed) => {
                let _ = passed.set(Instant::now());
                Ok(())
            }
        }
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
            if let Err(error) = self.run_next(device, id) {
                self.queue(id).unreported.get_or_insert(error);
            }
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

    /// Runs all queues to their ends. Keeps errors for the next waiter of each queue.
    fn finish_all(&mut self, device: &CpuDevice) {
        let ids: Vec<usize> = self.by_id.keys().copied().collect();
        for id in ids {
            let position = self.queue(id).submitted;
            if let Err(error) = self.finish(device, id, position) {
                self.queue(id).unreported.get_or_insert(error);
            }
        }
    }
}
