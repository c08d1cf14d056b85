//! A resident block with the fibers of its suspended threads: the unit that a worker schedules.

use super::block::{Block, Job};
use super::context;
use super::fault::{Caught, Elsewhere, FaultKind};
use super::fiber::{Fiber, Park};
use super::random::Random;
use super::warp::{LANES, Warp, lanes};

pub(super) struct Resident {
    // Boxed because device code holds the address while the worker's list grows.
    block: Box<Block>,
    /// The fiber of each suspended thread.
    fibers: Vec<Option<Fiber>>,
}

/// The state of a block.
pub(super) enum Status {
    /// Threads are ready to run.
    Running,
    /// Some threads poll, and all others wait for them.
    Polling,
    /// All threads have returned.
    Done,
    /// A thread faulted.
    Caught { thread: u32, caught: Caught },
}

impl Resident {
    pub fn new(job: &Job) -> Self {
        Self { block: Box::new(Block::new(job)), fibers: (0..job.threads).map(|_| None).collect() }
    }

    pub fn block(&self) -> &Block {
        &self.block
    }

    /// Runs ready threads in order, warp by warp, until none is ready.
    pub fn run_in_order(&mut self) -> Status {
        let Self { block, fibers } = self;
        let caught = context::enter(block, || {
            loop {
                // Ready threads first: their data is still in the caches.
                if let Some((first, mask)) = block.take_ready() {
                    for lane in lanes(mask) {
                        resume(block, fibers, first + lane);
                        if let Some(caught) = block.take_caught() {
                            return Some(caught);
                        }
                    }
                } else if block.can_start() {
                    start(block, fibers);
                    if let Some(caught) = block.take_caught() {
                        return Some(caught);
                    }
                } else {
                    return None;
                }
            }
        });
        self.status(caught)
    }

    /// Runs one random thread until it waits. If `wake`, it may be a polling thread.
    pub fn run_one(&mut self, random: &mut Random, wake: bool) -> Status {
        let Self { block, fibers } = self;
        if wake {
            wake_one(block, random);
        }
        let Some(thread) = choose(block, random, |warp| warp.ready.get() | warp.unstarted.get()) else {
            return self.status(None);
        };
        let caught = context::enter(block, || {
            if block.warp(thread).unstarted.get() >> (thread % 32) & 1 == 1 {
                block.start_only(thread);
                start(block, fibers);
            } else {
                block.unmark_ready(thread);
                resume(block, fibers, thread);
            }
            block.take_caught()
        });
        self.status(caught)
    }

    /// Returns whether a thread can run now.
    pub fn runnable(&self) -> bool {
        self.block.can_start() || self.block.warps().iter().any(|warp| warp.ready.get() | warp.unstarted.get() != 0)
    }

    fn status(&self, caught: Option<Caught>) -> Status {
        if let Some(caught) = caught {
            Status::Caught { thread: self.block.thread(), caught }
        } else if self.block.done() {
            Status::Done
        } else if self.runnable() {
            Status::Running
        } else if self.block.warps().iter().any(|warp| warp.polling.get() != 0) {
            Status::Polling
        } else {
            self.diverged()
        }
    }

    /// Returns the fault of a block whose threads all wait for each other. A barrier alone cannot be the reason: it
    /// opens when all threads have arrived, and a thread that returned was reported at once. So a lane waits in a
    /// collective for a lane that is elsewhere.
    fn diverged(&self) -> Status {
        for (warp, first) in self.block.warps().iter().zip((0..).step_by(LANES)) {
            for lane in lanes(warp.in_collective.get()) {
                let (mask, site) = warp.call(lane);
                let absent =
                    lanes(mask).find(|&other| warp.in_collective.get() >> other & 1 == 0 || warp.call(other).0 != mask);
                let Some(other) = absent else { continue };
                let elsewhere = if warp.in_collective.get() >> other & 1 == 1 {
                    let (mask, location) = warp.call(other);
                    Elsewhere::InCollective { mask, location }
                } else {
                    self.block.barrier_site().map_or(Elsewhere::Returned, Elsewhere::AtBarrier)
                };
                let kind = FaultKind::CollectiveDivergence { mask, other_thread: first + other, other: elsewhere };
                return Status::Caught { thread: first + lane, caught: Caught::new(kind, Some(site)) };
            }
        }
        unreachable!("if all threads of a block wait, one of them waits in a collective");
    }

    /// Returns the first polling thread and the fault of a deadlocked launch.
    pub fn deadlock(&self) -> Option<(u32, Caught)> {
        let warps = self.block.warps().iter().zip((0..).step_by(LANES));
        let count = |mask: fn(&Warp) -> u32| -> usize {
            self.block.warps().iter().map(|warp| mask(warp).count_ones() as usize).sum()
        };
        // Threads that were just woken are ready, but still poll.
        let polling = |warp: &Warp| warp.polling.get() | warp.ready.get();
        let (warp, first) = { warps }.find(|(warp, _)| polling(warp) != 0)?;
        let thread = first + polling(warp).trailing_zeros();
        let kind = FaultKind::Deadlock {
            polling: count(|warp| warp.polling.get() | warp.ready.get()),
            waiting: count(|warp| warp.at_barrier.get() | warp.in_collective.get()),
        };
        Some((thread, Caught::new(kind, self.block.polled_at(thread))))
    }
}

/// Chooses a random thread among the `lanes` of each warp.
fn choose(block: &Block, random: &mut Random, lanes: impl Fn(&Warp) -> u32) -> Option<u32> {
    let warps = (0..).zip(block.warps()).fold(0, |mask, (index, warp)| mask | u32::from(lanes(warp) != 0) << index);
    if warps == 0 {
        return None;
    }
    let warp = random.bit(warps);
    Some(warp * 32 + random.bit(lanes(&block.warps()[warp as usize])))
}

fn wake_one(block: &Block, random: &mut Random) {
    if let Some(thread) = choose(block, random, |warp| warp.polling.get()) {
        let polling = &block.warp(thread).polling;
        polling.set(polling.get() & !(1 << (thread % 32)));
        block.make_ready(thread, 1 << (thread % 32));
    }
}

/// Resumes a suspended thread.
#[inline(always)]
fn resume(block: &Block, fibers: &mut [Option<Fiber>], thread: u32) {
    let slot = &mut fibers[thread as usize];
    let fiber = slot.as_mut().expect("a waiting thread has a fiber");
    let park = fiber.resume();
    // The thread may have returned, and its fiber may have started others.
    if park == Park::Idle || block.thread() != thread {
        let fiber = slot.take();
        settle(block, fibers, fiber, park);
    }
}

/// Starts threads on another fiber.
fn start(block: &Block, fibers: &mut [Option<Fiber>]) {
    let mut fiber = Fiber::take();
    let park = fiber.resume();
    settle(block, fibers, Some(fiber), park);
}

fn settle(block: &Block, fibers: &mut [Option<Fiber>], fiber: Option<Fiber>, park: Park) {
    match park {
        Park::Waiting => fibers[block.thread() as usize] = fiber,
        Park::Idle => fiber.into_iter().for_each(Fiber::give_back),
    }
}
