//! A block with the fibers of its suspended threads: what a worker schedules.

use super::block::{Block, Job};
use super::context;
use super::fault::{Caught, Elsewhere, FaultKind};
use super::fiber::{Fiber, Park};
use super::random::Random;
use super::warp::{LANES, Warp, lanes};

pub(super) struct Resident {
    // Boxed: device code holds the address while the worker's list grows.
    block: Box<Block>,
    /// The fiber of each suspended thread.
    fibers: Vec<Option<Fiber>>,
}

/// How far a block has come.
pub(super) enum Status {
    /// Threads are ready to run.
    Running,
    /// Some threads poll, all others wait for those.
    Polling,
    /// All threads have returned.
    Done,
    /// A thread was caught.
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
                // Ready threads first: the caches still hold what they go on with.
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

    /// Lets one random thread run until it waits. With `wake`, a thread that polls is among the choice.
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

    /// Whether a thread can run now.
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

    /// All threads wait for one another. A barrier alone cannot be the reason: it opens when all are there, and threads
    /// that have returned were reported at once. So a lane waits in a collective, and another one is elsewhere.
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
        unreachable!("a block whose threads all wait has one in a collective");
    }

    /// The first thread that polls, as the fault of a launch that cannot go on.
    pub fn deadlock(&self) -> Option<(u32, Caught)> {
        let warps = self.block.warps().iter().zip((0..).step_by(LANES));
        let count = |mask: fn(&Warp) -> u32| -> usize {
            self.block.warps().iter().map(|warp| mask(warp).count_ones() as usize).sum()
        };
        // Threads that were just woken are ready, and poll.
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

/// A random thread of those in `lanes` of each warp.
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

/// Lets a suspended thread go on.
#[inline(always)]
fn resume(block: &Block, fibers: &mut [Option<Fiber>], thread: u32) {
    let slot = &mut fibers[thread as usize];
    let fiber = slot.as_mut().expect("a thread that waits has a fiber");
    let park = fiber.resume();
    // The thread may have returned, and its fiber have begun others.
    if park == Park::Idle || block.thread() != thread {
        let fiber = slot.take();
        settle(block, fibers, fiber, park);
    }
}

/// Takes a fiber to start threads that have not run.
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
