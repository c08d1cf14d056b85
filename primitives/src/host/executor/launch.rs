//! A launch: workers that take blocks and run them, until all are done or one faults.
//!
//! A worker runs one block at a time while that block makes progress. When all its threads poll memory, another block
//! has to run first: the worker yields the processor, then makes one more block resident in addition to the stalled
//! one. When nothing changes any more and no block is left to start, the launch is deadlocked.

use super::block::Job;
use super::fault::Caught;
use super::random::Random;
use super::resident::{Resident, Status};
use core::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The number of rounds without progress after which one of several workers makes another block resident.
const ROUNDS_TO_GROW: u32 = 64;
/// The conditions for a deadlock: the rounds of every worker and the time without any progress. A checked launch has
/// one worker and needs no time, so that its faults do not depend on the machine.
const CHECKED_DEADLOCK: (u32, Duration) = (1000, Duration::ZERO);
const FAST_DEADLOCK: (u32, Duration) = (100, Duration::from_millis(200));
/// The most blocks and threads that a worker keeps resident.
const MOST_BLOCKS: usize = 64;
const MOST_THREADS: usize = 16 << 10;
/// How often threads poll again before all others have run, while nothing changes.
const MOST_LOOKS: u32 = 64;
/// The count of a worker that has left or has not started.
const ABSENT: u64 = u64::MAX;

/// The thread pool of a process.
struct Pool {
    process: u32,
    threads: rayon_core::ThreadPool,
}

/// Returns the thread pool that runs blocks. It belongs to this crate: if a thread of the caller's pool waited for a
/// launch, it could meanwhile run other work of the caller that waits for the same launch.
///
/// After a `fork`, the child has none of its parent's threads, so it makes a pool of its own.
pub(super) fn pool() -> &'static rayon_core::ThreadPool {
    // No lock: another thread could hold it while the process is forked.
    static POOL: AtomicPtr<Pool> = AtomicPtr::new(null_mut());
    let process = std::process::id();
    loop {
        let known = POOL.load(Ordering::Acquire);
        // SAFETY: a pool is never dropped once it is stored.
        if let Some(pool) = unsafe { known.as_ref() }.filter(|pool| pool.process == process) {
            return &pool.threads;
        }
        let named = rayon_core::ThreadPoolBuilder::new().thread_name(|index| format!("gpu-primitives {index}"));
        let threads = named.build().expect("failed to start the threads of the CPU device");
        let made = Box::into_raw(Box::new(Pool { process, threads }));
        if POOL.compare_exchange(known, made, Ordering::AcqRel, Ordering::Relaxed).is_err() {
            // Another thread was faster.
            // SAFETY: made above, and not stored.
            drop(unsafe { Box::from_raw(made) });
        }
    }
}

/// Returns the default number of threads that run blocks.
pub(crate) fn default_workers() -> usize {
    pool().current_num_threads()
}

/// The state that the workers of a launch share.
pub(crate) struct Launch {
    job: Job,
    /// The order in which blocks start, if it is not ascending.
    order: Option<Vec<u32>>,
    seed: Option<u64>,
    next: AtomicU32,
    stop: AtomicBool,
    /// The block, the thread and the fault of the lowest block that faulted so far.
    caught: Mutex<Option<(u32, u32, Caught)>>,
    /// Changes whenever a worker makes progress.
    progress: AtomicU64,
    /// For each worker, the number of rounds in which it made no progress. A worker that is running a block completes no round,
    /// however long that takes, so nobody takes it for a quiet one.
    quiet: Box<[AtomicU64]>,
}

// SAFETY: the pointers in `job` point to the kernel, which is immutable plain data, and to the checker, which exists
// only if the launch has a single worker.
unsafe impl Sync for Launch {}

impl Launch {
    /// Creates a launch with up to `workers` workers; with one if there is a seed for a random schedule.
    pub fn new(job: Job, workers: usize, seed: Option<u64>) -> Self {
        let order = seed.map(|seed| {
            let mut order: Vec<u32> = (0..job.grid).collect();
            Random::new(!seed).shuffle(&mut order);
            order
        });
        let workers = workers.clamp(1, job.grid as usize);
        Self {
            job,
            order,
            seed,
            next: AtomicU32::new(0),
            stop: AtomicBool::new(false),
            caught: Mutex::new(None),
            progress: AtomicU64::new(0),
            quiet: (0..workers).map(|_| AtomicU64::new(ABSENT)).collect(),
        }
    }

    /// Runs all blocks. Returns the block, the thread and the fault of the lowest block that faulted.
    pub fn run(self) -> Option<(u32, u32, Caught)> {
        let workers = self.quiet.len();
        if workers == 1 {
            Worker::new(&self, 0).run();
        } else {
            let launch = &self;
            pool().in_place_scope(|scope| {
                for id in 1..workers {
                    scope.spawn(move |_| Worker::new(launch, id).run());
                }
                Worker::new(launch, 0).run();
            });
        }
        self.caught.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    fn next_block(&self) -> Option<u32> {
        // Load first, so that workers that ask repeatedly do not make the counter overflow.
        if self.next.load(Ordering::Relaxed) >= self.job.grid {
            return None;
        }
        let index = self.next.fetch_add(1, Ordering::Relaxed);
        (index < self.job.grid).then(|| self.order.as_ref().map_or(index, |order| order[index as usize]))
    }

    fn report(&self, block: u32, thread: u32, caught: Caught) {
        let mut first = self.caught.lock().unwrap_or_else(PoisonError::into_inner);
        if first.as_ref().is_none_or(|&(other, ..)| block < other) {
            *first = Some((block, thread, caught));
        }
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// Runs blocks on one OS thread.
struct Worker<'a> {
    launch: &'a Launch,
    id: usize,
    random: Option<Random>,
    /// The number of blocks to keep resident while there are more to start.
    wanted: usize,
    residents: Vec<Resident>,
    /// Finished blocks, to be reused.
    spare: Vec<Resident>,
    /// In a random schedule, a resident block that is not scheduled for some steps.
    starved: Option<(u32, u32)>,
    /// In a random schedule, the last known progress, and how often threads have polled again since.
    looks: (u64, u32),
    stall: Stall,
}

/// A worker's record of the time without progress.
struct Stall {
    quiet: u32,
    /// The progress of the resident blocks and of the launch at the last check.
    own: u64,
    others: u64,
    since: Instant,
    /// The rounds of all workers when it began.
    rounds: Box<[u64]>,
}

impl<'a> Worker<'a> {
    fn new(launch: &'a Launch, id: usize) -> Self {
        let mut random = launch.seed.map(Random::new);
        let wanted = random.as_mut().map_or(1, |random| 1 + random.below(8) as usize);
        let rounds = launch.quiet.iter().map(|_| ABSENT).collect();
        let stall = Stall { quiet: 0, own: 0, others: 0, since: Instant::now(), rounds };
        Self {
            launch,
            id,
            random,
            wanted,
            residents: Vec::new(),
            spare: Vec::new(),
            starved: None,
            looks: (0, 0),
            stall,
        }
    }

    fn run(&mut self) {
        self.launch.quiet[self.id].store(0, Ordering::Relaxed);
        while !self.launch.stop.load(Ordering::Relaxed) {
            while self.residents.len() < self.wanted && self.start_block() {}
            if self.residents.is_empty() {
                break;
            }
            match self.random {
                None => self.turn_in_order(),
                Some(random) => self.turn_random(random),
            }
        }
        // What the blocks did last may be what others wait for. Whoever sees that this worker has left also sees this progress.
        self.launch.progress.fetch_add(1, Ordering::Relaxed);
        self.launch.quiet[self.id].store(ABSENT, Ordering::Release);
    }

    /// Runs every resident block as far as possible.
    fn turn_in_order(&mut self) {
        for index in (0..self.residents.len()).rev() {
            let status = self.residents[index].run_in_order();
            self.settle(index, status);
            if self.launch.stop.load(Ordering::Relaxed) {
                return;
            }
        }
        if !self.residents.is_empty() {
            self.stalled();
        }
    }

    /// Runs one thread of one block until it waits.
    fn turn_random(&mut self, mut random: Random) {
        self.starve(&mut random);
        let starved = self.starved.map(|(block, _)| block);
        let mut choice = None;
        let mut seen = 0;
        for (index, resident) in self.residents.iter().enumerate() {
            if resident.runnable() && Some(resident.block().index()) != starved {
                seen += 1;
                if random.one_in(seen) {
                    choice = Some(index);
                }
            }
        }
        match choice {
            Some(index) => {
                let wake = self.looks_again(&mut random);
                let status = self.residents[index].run_one(&mut random, wake);
                self.settle(index, status);
            }
            // All others wait, perhaps for the starved block.
            None if starved.is_some() && !random.one_in(8) => {
                self.residents.iter().for_each(|resident| _ = resident.block().wake_polling());
            }
            None if starved.is_some() => self.starved = None,
            None => self.stalled(),
        }
        self.random = Some(random);
    }

    /// Returns whether a polling thread shall poll again before all others have run. Limited while nothing changes:
    /// otherwise polling threads would hide from each other that the block is stalled.
    fn looks_again(&mut self, random: &mut Random) -> bool {
        let progress = self.own_progress();
        if self.looks.0 != progress {
            self.looks = (progress, 0);
        }
        let wake = self.looks.1 < MOST_LOOKS && random.one_in(16);
        self.looks.1 += u32::from(wake);
        wake
    }

    fn own_progress(&self) -> u64 {
        self.residents.iter().map(|resident| resident.block().progress_made()).sum()
    }

    /// Now and then, starves one of several blocks for a long time.
    fn starve(&mut self, random: &mut Random) {
        self.starved = match self.starved {
            Some((_, 0)) => None,
            Some((block, steps)) => Some((block, steps - 1)),
            None if self.residents.len() > 1 && self.stall.quiet < 8 && random.one_in(256) => {
                let victim = random.below(self.residents.len() as u32) as usize;
                Some((self.residents[victim].block().index(), random.below(4096)))
            }
            None => None,
        };
    }

    fn settle(&mut self, index: usize, status: Status) {
        match status {
            Status::Running | Status::Polling => {}
            Status::Done => {
                let resident = self.residents.swap_remove(index);
                if let Some(checker) = resident.block().checker() {
                    checker.borrow_mut().block_done(resident.block());
                }
                self.spare.push(resident);
                self.launch.progress.fetch_add(1, Ordering::Relaxed);
            }
            Status::Caught { thread, caught } => {
                self.launch.report(self.residents[index].block().index(), thread, caught)
            }
        }
    }

    fn start_block(&mut self) -> bool {
        let Some(index) = self.launch.next_block() else { return false };
        let resident = self.spare.pop().unwrap_or_else(|| Resident::new(&self.launch.job));
        resident.block().reset(index, self.random.is_none());
        if let Some(checker) = resident.block().checker() {
            checker.borrow_mut().block_starts(resident.block());
        }
        self.residents.push(resident);
        true
    }

    /// Lets polling threads poll again, when no resident block has any other thread to run.
    fn stalled(&mut self) {
        let own = self.own_progress();
        if own != self.stall.own {
            self.stall.own = own;
            self.launch.progress.fetch_add(1, Ordering::Relaxed);
        }
        let others = self.launch.progress.load(Ordering::Relaxed);
        if others != self.stall.others {
            (self.stall.quiet, self.stall.others, self.stall.since) = (0, others, Instant::now());
            let counts = self.launch.quiet.iter().map(|count| count.load(Ordering::Relaxed));
            self.stall.rounds.iter_mut().zip(counts).for_each(|(rounds, count)| *rounds = count);
        } else {
            self.stall.quiet = self.stall.quiet.saturating_add(1);
            self.launch.quiet[self.id].fetch_add(1, Ordering::Relaxed);
        }
        let quiet = self.stall.quiet;
        let alone = self.launch.quiet.len() == 1;
        if quiet != 0 {
            let room = self.residents.len() < MOST_BLOCKS
                && (self.residents.len() + 1) * self.launch.job.threads as usize <= MOST_THREADS;
            let grow = room && (alone || quiet.is_multiple_of(ROUNDS_TO_GROW));
            if !(grow && self.start_block()) {
                if !alone {
                    std::thread::yield_now();
                }
                if self.deadlocked() {
                    return self.report_deadlock();
                }
            }
        }
        self.residents.iter().for_each(|resident| _ = resident.block().wake_polling());
    }

    /// Returns whether all workers have been quiet since the last progress.
    fn deadlocked(&self) -> bool {
        let (rounds, time) = if self.launch.job.checker.is_null() { FAST_DEADLOCK } else { CHECKED_DEADLOCK };
        let is_quiet = |(now, &before): (&AtomicU64, &u64)| {
            let (now, before) = (now.load(Ordering::Acquire), if before == ABSENT { 0 } else { before });
            now == ABSENT || now - before >= u64::from(rounds)
        };
        self.stall.quiet >= rounds
            && self.stall.since.elapsed() >= time
            && self.launch.quiet.iter().zip(&self.stall.rounds).all(is_quiet)
            && self.launch.progress.load(Ordering::Relaxed) == self.stall.others
    }

    fn report_deadlock(&self) {
        // Report the lowest block, so that the report does not depend on which worker noticed.
        let lowest = self.residents.iter().min_by_key(|resident| resident.block().index());
        if let Some((block, (thread, caught))) =
            lowest.and_then(|resident| Some((resident.block().index(), resident.deadlock()?)))
        {
            self.launch.report(block, thread, caught);
        }
    }
}
