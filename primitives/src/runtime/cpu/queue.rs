//! The streams of the CPU device.
//!
//! On the fast device a call has done its work when it returns, so there is nothing to queue.
//!
//! On the checked device the same holds as long as it has one stream. From the second one on, streams are queues that are
//! really apart: work waits in its queue until somebody waits for it, and then only that queue runs, with what it was told to
//! wait for. So work that the library forgot to put in order happens in the wrong one, as late as it can, or, with
//! [`Schedule::Random`](super::Schedule::Random), at some moment that depends on the seed.

use super::CpuDevice;
use super::context::in_kernel;
use super::random::Random;
use crate::runtime::device::lock;
use crate::runtime::error::Error;
use crate::runtime::step::Step;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::Instant;

/// Tasks that may wait in a queue: it holds what they upload.
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
    /// Lanes that still exist.
    lanes: usize,
    random: Option<Random>,
    /// An error of a queue that is gone, which nobody was told yet.
    untold: Option<Error>,
}

#[derive(Debug, Default)]
struct Queue {
    tasks: VecDeque<Task>,
    /// Tasks so far, and those of them that are done.
    submitted: u64,
    done: u64,
    /// An error that nobody was told yet.
    untold: Option<Error>,
    /// A kernel stopped half-way: what was queued behind it, up to this task, is dropped.
    dropped_until: u64,
    /// The kernel has left the stream's scratch as it was then.
    is_scratch_spoiled: bool,
}

enum Task {
    Work(Step),
    /// Another queue has to get that far first.
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

/// An error inside a kernel, whose launch would wait for itself.
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

    /// Whether work may wait.
    pub(crate) fn is_queued(&self) -> bool {
        self.device.options.checked
    }

    /// Keeps kernels of this stream from running, on the fast device.
    pub(crate) fn hold(&self) -> MutexGuard<'_, ()> {
        lock(&self.order)
    }

    /// Does the step, or queues it behind what was submitted before.
    ///
    /// # Safety
    /// As [`Step::run`], when the stream comes to it.
    pub(crate) unsafe fn submit(&self, step: Step) -> Result<(), Error> {
        expect_host()?;
        if !self.is_queued() {
            let _order = matches!(step, Step::Launch(_) | Step::Graph(_)).then(|| self.hold());
            // SAFETY: the caller's promise.
            return unsafe { step.run(&self.device) };
        }
        self.push(Task::Work(step))
    }

    /// Lets what comes later wait for what `other` was given up to a position.
    pub(crate) fn wait_for(&self, other: &Self, position: u64) -> Result<(), Error> {
        if !self.is_queued() || !Arc::ptr_eq(&self.device, &other.device) {
            return Ok(());
        }
        self.push(Task::Wait { queue: other.queue, position })
    }

    /// Lets what comes later wait for a mark.
    pub(crate) fn wait_for_mark(&self, mark: &CpuMark) -> Result<(), Error> {
        if !Arc::ptr_eq(&self.device, &mark.device) {
            return mark.finish();
        }
        if mark.passed.get().is_some() {
            return Ok(());
        }
        self.push(Task::Wait { queue: mark.queue, position: mark.position })
    }

    /// Marks where the stream is now.
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
            // This task is queued all the same, so the error is for who waits.
            queues.queue(self.queue).untold.get_or_insert(error);
        }
        queues.run_some(&self.device);
        Ok(())
    }

    /// How many tasks it was given.
    pub(crate) fn position(&self) -> u64 {
        lock(&self.device.queues).queue(self.queue).submitted
    }

    /// Does all work that the stream was given.
    pub(crate) fn finish(&self) -> Result<(), Error> {
        expect_host()?;
        if !self.is_queued() {
            return Ok(());
        }
        let mut queues = lock(&self.device.queues);
        let position = queues.queue(self.queue).submitted;
        queues.finish(&self.device, self.queue, position)
    }

    /// Whether a kernel of the stream stopped half-way since this was last asked.
    pub(crate) fn take_spoiled_scratch(&self) -> bool {
        self.is_queued() && core::mem::take(&mut lock(&self.device.queues).queue(self.queue).is_scratch_spoiled)
    }
}

impl Drop for CpuLane {
    fn drop(&mut self) {
        let mut queues = lock(&self.device.queues);
        let position = queues.queue(self.queue).submitted;
        if let Err(error) = queues.finish(&self.device, self.queue, position) {
            queues.untold.get_or_insert(error);
        }
        queues.lanes -= 1;
        queues.by_id.remove(&self.queue);
    }
}

impl CpuMark {
    /// Does all work up to the mark.
    pub(crate) fn finish(&self) -> Result<(), Error> {
        if self.passed.get().is_some() {
            return Ok(());
        }
        lock(&self.device.queues).finish(&self.device, self.queue, self.position)
    }

    /// Whether the work is done. If it is not, a piece of it is done now, so that who asks again and again gets on.
    pub(crate) fn is_passed(&self) -> Result<bool, Error> {
        if self.passed.get().is_some() {
            return Ok(true);
        }
        let mut queues = lock(&self.device.queues);
        let next = queues.queue(self.queue).done + 1;
        queues.finish(&self.device, self.queue, next.min(self.position))?;
        Ok(false)
    }

    /// When the stream passed it.
    pub(crate) fn time(&self) -> Option<Instant> {
        self.passed.get().copied()
    }
}

impl CpuDevice {
    /// Does all work of all streams: what they free can then be allocated again.
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

    /// Whether a queue has got that far. One that is gone did all its work before it went.
    fn has_passed(&self, id: usize, position: u64) -> bool {
        self.by_id.get(&id).is_none_or(|queue| queue.done >= position)
    }

    /// Runs a queue up to a position, and of the others what it waits for. It gets there also if something fails on the way;
    /// the first error is given.
    fn finish(&mut self, device: &CpuDevice, id: usize, position: u64) -> Result<(), Error> {
        let mut first_error = None;
        // What has to be done, and above it what has to be done first. A task waits for what was submitted before it, so
        // this ends.
        let mut goals = vec![(id, position)];
        while let Some(&(id, position)) = goals.last() {
            self.run_some(device);
            if let Some(error) = self.by_id.get_mut(&id).and_then(|queue| queue.untold.take()) {
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
        first_error.or_else(|| self.untold.take()).map_or(Ok(()), Err)
    }

    /// Runs the next task of a queue, which has one that need not wait.
    fn run_next(&mut self, device: &CpuDevice, id: usize) -> Result<(), Error> {
        let queue = self.queue(id);
        let Some(task) = queue.tasks.pop_front() else { return Ok(()) };
        queue.done += 1;
        let is_dropped = queue.done <= queue.dropped_until && !matches!(task, Task::Work(Step::Free { .. }));
        match task {
            Task::Work(_) if is_dropped => Ok(()),
            Task::Work(step) => {
                // SAFETY: promised when it was submitted, and the stream has come to it.
                let result = unsafe { step.run(device) };
                if matches!(result, Err(Error::KernelFault(_))) {
                    queue.dropped_until = queue.submitted;
                    queue.is_scratch_spoiled = true;
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

    /// With a random schedule, lets some queues get on.
    fn run_some(&mut self, device: &CpuDevice) {
        let Some(mut random) = self.random else { return };
        while random.one_in(2) {
            let ready: Vec<usize> = self.by_id.keys().copied().filter(|&id| self.is_ready(id)).collect();
            if ready.is_empty() {
                break;
            }
            let id = ready[random.below(ready.len() as u32) as usize];
            if let Err(error) = self.run_next(device, id) {
                self.queue(id).untold.get_or_insert(error);
            }
        }
        self.random = Some(random);
    }

    /// Whether a queue has a task that need not wait.
    fn is_ready(&self, id: usize) -> bool {
        match self.by_id.get(&id).and_then(|queue| queue.tasks.front()) {
            None => false,
            Some(&Task::Wait { queue, position }) => self.has_passed(queue, position),
            Some(_) => true,
        }
    }

    /// Runs all queues to their ends. Errors are kept for those who wait for the queues.
    fn finish_all(&mut self, device: &CpuDevice) {
        let ids: Vec<usize> = self.by_id.keys().copied().collect();
        for id in ids {
            let position = self.queue(id).submitted;
            if let Err(error) = self.finish(device, id, position) {
                self.queue(id).untold.get_or_insert(error);
            }
        }
    }
}
