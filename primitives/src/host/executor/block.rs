//! A resident block: its threads, its shared memory, its barrier, and its interface to the scheduler.
//!
//! A block runs on one OS thread, so its state is cells. Device code reaches it through [`context`](super::context).

use super::access::tagged;
use super::check::Checker;
use super::fault::{Caught, FaultKind, Site};
use super::fiber::{Park, Suspend};
use super::panics;
use super::paths::{self, PathId};
use super::random::Random;
use super::warp::{LANES, Warp, same_site};
use std::cell::{Cell, RefCell};
use std::panic::{self, AssertUnwindSafe};
use std::ptr;

/// The data that all blocks of a launch share.
#[derive(Clone, Copy)]
pub(crate) struct Job {
    /// The code of the kernel.
    pub entry: Entry,
    /// The kernel's arguments.
    pub kernel: *const (),
    pub grid: u32,
    pub threads: u32,
    pub shared_bytes: usize,
    /// The number of consecutive loads of one address by one thread that count as polling, even without a hint.
    pub patience: u32,
    /// Set if threads are pre-empted at atomics and fences: the seed that decides where.
    pub pre_empt: Option<u64>,
    /// Set in checked mode. Lives as long as the launch.
    pub checker: *const RefCell<Checker>,
}

/// The code of a kernel on the CPU: runs threads of a block until none is left to start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry(pub unsafe fn(&Block));

/// One 16-byte line of shared memory, aligned for the widest access.
#[repr(C, align(16))]
#[derive(Clone, Copy)]
struct Line([u8; 16]);

/// The atomic loads of a thread, which may be polling.
#[derive(Default)]
struct Poll {
    address: Cell<usize>,
    /// The number of loads since the thread was last suspended for polling. A load of the same address as the one
    /// before counts [`SAME_ADDRESS`] times.
    count: Cell<u32>,
    site: Cell<Option<Site>>,
}

/// How many loads of different addresses are as strong a sign of polling as one repeated load of the same address.
const SAME_ADDRESS: u32 = 256;

pub(crate) struct Block {
    job: Job,
    index: Cell<u32>,
    /// The running thread.
    thread: Cell<u32>,
    /// The threads to start: `next..end`.
    next: Cell<u32>,
    end: Cell<u32>,
    /// Suspends the running fiber.
    suspend: Cell<*const Suspend>,
    warps: Box<[Warp]>,
    /// The warps with ready lanes, one bit each.
    ready_warps: Cell<u32>,
    finished: Cell<u32>,
    polls: Box<[Poll]>,
    at_barrier: Cell<u32>,
    /// The first thread at the barrier, and the line where it waits.
    barrier: Cell<Option<(u32, Site)>>,
    /// The path of that thread, in checked mode.
    barrier_path: Cell<Option<PathId>>,
    /// The number of memory changes that a polling thread may wait for, plus the number of threads that returned.
    progress: Cell<u64>,
    caught: RefCell<Option<Caught>>,
    random: Cell<Random>,
    shared: Box<[Cell<Line>]>,
}

impl Block {
    pub(super) fn new(job: &Job) -> Self {
        let warps = job.threads as usize / LANES;
        Self {
            job: *job,
            index: Cell::new(0),
            thread: Cell::new(0),
            next: Cell::new(0),
            end: Cell::new(0),
            suspend: Cell::new(ptr::null()),
            warps: (0..warps).map(|_| Warp::new()).collect(),
            ready_warps: Cell::new(0),
            finished: Cell::new(0),
            polls: (0..job.threads).map(|_| Poll::default()).collect(),
            at_barrier: Cell::new(0),
            barrier: Cell::new(None),
            barrier_path: Cell::new(None),
            progress: Cell::new(0),
            caught: RefCell::new(None),
            random: Cell::new(Random::new(job.pre_empt.unwrap_or(0))),
            shared: vec![Cell::new(Line([0; 16])); job.shared_bytes.div_ceil(16)].into(),
        }
    }

    /// Makes this block number `index`, with all threads unstarted. If `in_order`, they start without the scheduler.
    pub fn reset(&self, index: u32, in_order: bool) {
        self.index.set(index);
        self.random.set(Random::new(self.job.pre_empt.unwrap_or(0) ^ u64::from(index)));
        self.next.set(0);
        self.end.set(if in_order { self.job.threads } else { 0 });
        self.warps.iter().for_each(|warp| warp.reset(if in_order { 0 } else { !0 }));
        self.ready_warps.set(0);
        self.finished.set(0);
        self.at_barrier.set(0);
        self.barrier.set(None);
    }

    #[inline(always)]
    pub fn index(&self) -> u32 {
        self.index.get()
    }

    #[inline(always)]
    pub fn grid(&self) -> u32 {
        self.job.grid
    }

    #[inline(always)]
    pub fn threads(&self) -> u32 {
        self.job.threads
    }

    /// Returns the running thread.
    #[inline(always)]
    pub fn thread(&self) -> u32 {
        self.thread.get()
    }

    pub(super) fn set_thread(&self, thread: u32) {
        self.thread.set(thread);
    }

    #[inline(always)]
    pub(super) fn checker(&self) -> Option<&RefCell<Checker>> {
        // SAFETY: null, or a checker that outlives this block's launch.
        unsafe { self.job.checker.as_ref() }
    }

    #[inline(always)]
    pub(super) fn warps(&self) -> &[Warp] {
        &self.warps
    }

    #[inline(always)]
    pub(super) fn warp(&self, thread: u32) -> &Warp {
        &self.warps[thread as usize / LANES]
    }

    /// Returns the start and the length of the block's shared memory.
    pub(super) fn shared(&self) -> (usize, usize) {
        (self.shared.as_ptr().addr(), self.job.shared_bytes)
    }

    /// Returns the address of `bytes` bytes at `offset` in shared memory.
    pub fn shared_piece(&self, offset: usize, bytes: usize, site: Site) -> *mut u8 {
        let end = offset + bytes;
        // Pieces are padded to whole lines. The padding of the last piece need not be declared.
        if end > self.job.shared_bytes.next_multiple_of(16) {
            let kind = FaultKind::SharedOverflow { end, declared: self.job.shared_bytes };
            self.throw(Caught::new(kind, Some(site)));
        }
        let piece = self.shared.as_ptr().cast::<u8>().cast_mut().wrapping_add(offset);
        match self.checker() {
            Some(checker) => tagged(piece, checker.borrow_mut().region(offset, bytes, site)),
            None => piece,
        }
    }

    // Called by fibers.

    /// Runs threads until none is left to start. `suspend` suspends the fiber that this runs on.
    pub(super) fn run_threads(&self, suspend: &Suspend) {
        self.suspend.set(suspend);
        // SAFETY: the entry belongs to this job.
        let result = panic::catch_unwind(AssertUnwindSafe(|| unsafe { self.job.entry.0(self) }));
        if let Err(payload) = result {
            *self.caught.borrow_mut() = Some(panics::caught(payload));
        }
    }

    /// Returns the arguments of the kernel. They have the type that the job was created for.
    pub(crate) fn kernel(&self) -> *const () {
        self.job.kernel
    }

    /// Makes the next unstarted thread the running one. Returns `false` if there is none.
    #[inline(always)]
    pub(crate) fn next_thread(&self) -> bool {
        let thread = self.next.get();
        if thread == self.end.get() {
            return false;
        }
        self.next.set(thread + 1);
        self.thread.set(thread);
        true
    }

    /// Records that the running thread has returned.
    #[inline(always)]
    pub(crate) fn thread_returned(&self) {
        let thread = self.thread();
        let warp = self.warp(thread);
        if let Some(checker) = self.checker() {
            self.expect_views(checker, None);
        }
        self.finished.set(self.finished.get() + 1);
        warp.finished.set(warp.finished.get() | 1 << (thread % 32));
        self.progress();
        if self.at_barrier.get() != 0 || warp.in_collective.get() != 0 {
            self.missed(thread);
        }
    }

    /// Faults if another thread waits for `thread`, which has returned.
    #[cold]
    fn missed(&self, thread: u32) {
        if let Some((waiting, site)) = self.barrier.get() {
            self.thread.set(waiting);
            let kind = FaultKind::BarrierDivergence { other_thread: thread, other_location: None };
            self.throw(Caught::new(kind, Some(site)));
        }
        let warp = self.warp(thread);
        if let Some(lane) = warp.waits_for(thread % 32) {
            let (mask, site) = warp.call(lane);
            self.thread.set((thread & !31) + lane);
            let other = super::fault::Elsewhere::Returned;
            let kind = FaultKind::CollectiveDivergence { mask, other_thread: thread, other };
            self.throw(Caught::new(kind, Some(site)));
        }
    }

    // Called by threads.

    /// Ends the thread and the launch with a fault.
    #[cold]
    pub(crate) fn throw(&self, caught: Caught) -> ! {
        panics::throw(caught)
    }

    /// Suspends the running thread. The caller has recorded, in a mask of the warp, what the thread waits for.
    #[inline(always)]
    pub(super) fn wait(&self) {
        let (thread, suspend) = (self.thread.get(), self.suspend.get());
        // SAFETY: a fiber sets this pointer to its own yielder before it runs device code, and again below.
        unsafe { (*suspend).suspend(Park::Waiting) };
        self.thread.set(thread);
        self.suspend.set(suspend);
    }

    /// Marks the lanes `mask` of the warp of `thread` as ready.
    #[inline(always)]
    pub(super) fn make_ready(&self, thread: u32, mask: u32) {
        let warp = self.warp(thread);
        warp.ready.set(warp.ready.get() | mask);
        self.ready_warps.set(self.ready_warps.get() | 1 << (thread / 32));
    }

    /// Waits at the block's barrier.
    #[inline(always)]
    pub fn barrier(&self, site: Site) {
        if !self.arrive(site) {
            self.wait();
        }
    }

    /// Records that the running thread is at the barrier. Returns whether it was the last one.
    #[inline(never)]
    fn arrive(&self, site: Site) -> bool {
        let thread = self.thread();
        let arrived = self.at_barrier.get() + 1;
        let path = self.path(site);
        match self.barrier.get() {
            None => {
                self.barrier.set(Some((thread, site)));
                self.barrier_path.set(path);
            }
            Some((other_thread, other)) if !same_site(other, site) => {
                let kind = FaultKind::BarrierDivergence { other_thread, other_location: Some(other) };
                self.throw(Caught::new(kind, Some(site)));
            }
            Some((other_thread, _)) => self.expect_same_calls(site, path, other_thread, self.barrier_path.get()),
        }
        if self.finished.get() != 0 {
            self.someone_returned(site);
        }
        if arrived < self.threads() {
            self.at_barrier.set(arrived);
            let warp = self.warp(thread);
            warp.at_barrier.set(warp.at_barrier.get() | 1 << (thread % 32));
        } else {
            self.at_barrier.set(0);
            self.barrier.set(None);
            for (warp, first) in self.warps.iter().zip((0..).step_by(LANES)) {
                let lanes = warp.at_barrier.replace(0);
                if lanes != 0 {
                    self.make_ready(first, lanes);
                }
            }
            if let Some(checker) = self.checker() {
                checker.borrow_mut().sync_block(self);
            }
        }
        arrived == self.threads()
    }

    /// Returns the calls that led the running thread to `site`, in checked mode.
    #[inline(always)]
    pub(super) fn path(&self, site: Site) -> Option<PathId> {
        let checker = self.checker()?;
        self.expect_views(checker, Some(site));
        // The yielder lies at the base of the fiber's stack.
        paths::here(site, self.suspend.get().addr())
    }

    /// Faults if the running thread has written memory through a raw pointer.
    fn expect_views(&self, checker: &RefCell<Checker>, site: Option<Site>) {
        let result = checker.borrow().seek(site);
        if let Err(caught) = result {
            self.throw(*caught);
        }
    }

    /// Faults if another thread waits at the same line, but came there through other calls.
    #[inline(always)]
    pub(super) fn expect_same_calls(&self, site: Site, path: Option<PathId>, thread: u32, other: Option<PathId>) {
        if path != other
            && let (Some(path), Some(other)) = (path, other)
            && let Some((calls, other_calls)) = paths::difference(path, other)
        {
            let kind = FaultKind::CallDivergence { calls, other_thread: thread, other_calls };
            self.throw(Caught::new(kind, Some(site)));
        }
    }

    #[cold]
    fn someone_returned(&self, site: Site) -> ! {
        let gone = self.warps.iter().zip((0..).step_by(LANES)).find(|(warp, _)| warp.finished.get() != 0);
        let other_thread = gone.map_or(0, |(warp, first)| first + warp.finished.get().trailing_zeros());
        let kind = FaultKind::BarrierDivergence { other_thread, other_location: None };
        self.throw(Caught::new(kind, Some(site)))
    }

    /// Suspends a thread that waits for memory to change until the others have run.
    pub fn poll(&self) {
        let thread = self.thread();
        let warp = self.warp(thread);
        if let Some(checker) = self.checker() {
            self.expect_views(checker, None);
        }
        self.polls[thread as usize].count.set(0);
        warp.polling.set(warp.polling.get() | 1 << (thread % 32));
        self.wait();
    }

    /// Records an atomic load of `address`, which may be polling. A thread that does little else counts as polling.
    #[inline(always)]
    pub fn looked_at(&self, address: usize, site: Site) {
        let poll = &self.polls[self.thread() as usize];
        let weight = if poll.address.replace(address) == address { SAME_ADDRESS } else { 1 };
        let count = poll.count.get() + weight;
        poll.count.set(count);
        poll.site.set(Some(site));
        if count >= self.job.patience * SAME_ADDRESS {
            self.poll();
        }
    }

    /// Records that the thread changed memory that others may poll.
    #[inline(always)]
    pub fn progress(&self) {
        self.progress.set(self.progress.get() + 1);
    }

    /// Called before each operation that other threads may observe: a random schedule may pre-empt the thread here.
    #[inline(always)]
    pub fn before_visible(&self) {
        if self.job.pre_empt.is_some() {
            self.maybe_pre_empt();
        }
    }

    #[inline(never)]
    fn maybe_pre_empt(&self) {
        let mut random = self.random.take();
        let pre_empt = random.one_in(4);
        self.random.set(random);
        if pre_empt {
            let thread = self.thread();
            self.make_ready(thread, 1 << (thread % 32));
            self.wait();
        }
    }

    // Called by the scheduler.

    /// Takes the ready lanes of the first warp that has some: returns its first thread and the mask of the lanes, and
    /// unmarks them.
    #[inline(always)]
    pub(super) fn take_ready(&self) -> Option<(u32, u32)> {
        let warps = self.ready_warps.get();
        if warps == 0 {
            return None;
        }
        self.ready_warps.set(warps & (warps - 1));
        let index = warps.trailing_zeros();
        Some((index * 32, self.warps[index as usize].ready.replace(0)))
    }

    /// Unmarks one ready thread.
    pub(super) fn unmark_ready(&self, thread: u32) {
        let warp = self.warp(thread);
        let ready = warp.ready.get() & !(1 << (thread % 32));
        warp.ready.set(ready);
        if ready == 0 {
            self.ready_warps.set(self.ready_warps.get() & !(1 << (thread / 32)));
        }
    }

    /// Returns whether some of the threads that start in order have not started.
    #[inline(always)]
    pub(super) fn can_start(&self) -> bool {
        self.next.get() < self.end.get()
    }

    /// Makes `thread` the only one to start.
    pub(super) fn start_only(&self, thread: u32) {
        let warp = self.warp(thread);
        warp.unstarted.set(warp.unstarted.get() & !(1 << (thread % 32)));
        self.next.set(thread);
        self.end.set(thread + 1);
    }

    /// Lets all polling threads poll again. Returns `false` if there are none.
    pub(super) fn wake_polling(&self) -> bool {
        let mut any = false;
        for (warp, first) in self.warps.iter().zip((0..).step_by(LANES)) {
            let lanes = warp.polling.replace(0);
            if lanes != 0 {
                self.make_ready(first, lanes);
                any = true;
            }
        }
        any
    }

    pub(super) fn done(&self) -> bool {
        self.finished.get() == self.threads()
    }

    pub(super) fn progress_made(&self) -> u64 {
        self.progress.get()
    }

    /// Takes the fault of a thread, if there is one. The faulting thread is then the running one.
    #[inline(always)]
    pub(super) fn take_caught(&self) -> Option<Caught> {
        if self.caught.borrow().is_none() {
            return None;
        }
        self.caught.take()
    }

    pub(super) fn polled_at(&self, thread: u32) -> Option<Site> {
        self.polls[thread as usize].site.get()
    }

    pub(super) fn barrier_site(&self) -> Option<Site> {
        self.barrier.get().map(|(_, site)| site)
    }
}
