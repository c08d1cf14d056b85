//! The happens-before relation as vector clocks, compressed along the structure of a grid.
//!
//! A thread's time is the number of block barriers it has passed (its *epoch*) and a clock within the epoch, which
//! steps whenever the thread publishes what it did. Of its own block, a thread knows everything before the current
//! epoch. Of its own warp, it knows the clocks through `sync_warp`. Everything else comes from acquiring what another
//! thread released; this is stored as [`Known`].

use crate::host::executor::warp::LANES;
use std::cmp::Ordering;
use std::rc::Rc;

/// The moment of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Moment {
    pub block: u32,
    pub thread: u32,
    pub epoch: u32,
    pub clock: u32,
}

/// The knowledge about one block: everything before `epoch`, and the clocks of its threads within it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Seen {
    epoch: u32,
    /// Ascending by thread. A thread that is not listed is at clock 0.
    clocks: Vec<(u32, u32)>,
}

impl Seen {
    fn covers(&self, moment: &Moment) -> bool {
        moment.epoch < self.epoch
            || moment.epoch == self.epoch
                && self
                    .clocks
                    .binary_search_by_key(&moment.thread, |&(thread, _)| thread)
                    .is_ok_and(|at| self.clocks[at].1 >= moment.clock)
    }

    fn includes(&self, other: &Self) -> bool {
        self.epoch > other.epoch
            || self.epoch == other.epoch
                && other
                    .clocks
                    .iter()
                    .all(|&(thread, clock)| self.covers(&Moment { block: 0, thread, epoch: other.epoch, clock }))
    }

    fn joined(&self, other: &Self) -> Self {
        match self.epoch.cmp(&other.epoch) {
            Ordering::Less => other.clone(),
            Ordering::Greater => self.clone(),
            Ordering::Equal => {
                let clocks = merge(&self.clocks, &other.clocks, |a, b| *a.max(b));
                Self { epoch: self.epoch, clocks }
            }
        }
    }
}

/// Merges two lists that ascend by key.
fn merge<T: Clone>(mut a: &[(u32, T)], mut b: &[(u32, T)], both: impl Fn(&T, &T) -> T) -> Vec<(u32, T)> {
    let mut merged = Vec::with_capacity(a.len() + b.len());
    while let ([x, rest_of_a @ ..], [y, rest_of_b @ ..]) = (a, b) {
        if x.0 <= y.0 {
            a = rest_of_a;
        }
        if y.0 <= x.0 {
            b = rest_of_b;
        }
        merged.push(match x.0.cmp(&y.0) {
            Ordering::Less => x.clone(),
            Ordering::Greater => y.clone(),
            Ordering::Equal => (x.0, both(&x.1, &y.1)),
        });
    }
    merged.extend_from_slice(a);
    merged.extend_from_slice(b);
    merged
}

/// A thread's knowledge about other warps and blocks. Shared until it changes.
#[derive(Clone, Debug, Default)]
pub(super) struct Known(Rc<Vec<(u32, Rc<Seen>)>>);

impl Known {
    pub fn covers(&self, moment: &Moment) -> bool {
        self.0.binary_search_by_key(&moment.block, |&(block, _)| block).is_ok_and(|at| self.0[at].1.covers(moment))
    }

    pub fn same(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.0, &other.0)
    }

    /// Adds everything that `other` knows.
    pub fn join(&mut self, other: &Self) {
        if self.same(other) || other.is_known_to(self) {
            return;
        }
        if self.is_known_to(other) {
            *self = other.clone();
            return;
        }
        self.0 = Rc::new(merge(&self.0, &other.0, |a, b| {
            if Rc::ptr_eq(a, b) || a.includes(b) { Rc::clone(a) } else { Rc::new(a.joined(b)) }
        }));
    }

    /// Returns whether `other` knows everything that `self` knows.
    fn is_known_to(&self, other: &Self) -> bool {
        self.0.len() <= other.0.len()
            && self.0.iter().all(|(block, seen)| {
                other
                    .0
                    .binary_search_by_key(block, |&(block, _)| block)
                    .is_ok_and(|at| Rc::ptr_eq(&other.0[at].1, seen) || other.0[at].1.includes(seen))
            })
    }
}

/// The knowledge that a release publishes to the threads that acquire it.
#[derive(Clone, Debug)]
pub(super) struct Snapshot {
    known: Known,
    /// The block of the releasing thread.
    block: u32,
    /// Whether threads of other blocks may acquire it.
    wide: bool,
}

impl Snapshot {
    pub fn visible(&self, block: u32, wide: bool) -> bool {
        self.block == block || self.wide && wide
    }

    /// Returns the snapshot as a store publishes it that reaches other blocks only if `wide`.
    pub fn narrowed(&self, wide: bool) -> Self {
        Self { wide: self.wide && wide, ..self.clone() }
    }

    /// Continues the release sequence of `self` with a read-modify-write that releases `next`.
    pub fn followed_by(&self, next: Self) -> Self {
        let mut known = self.known.clone();
        known.join(&next.known);
        Self { known, ..next }
    }
}

/// The time and the knowledge of one thread.
#[derive(Clone, Debug)]
pub(super) struct Clock {
    own: u32,
    /// The known clocks of its warp in this epoch; its own lane is `own`.
    lanes: [u32; LANES],
    known: Known,
    /// What it knew at its last fence, for the relaxed stores after it.
    fenced: Option<Snapshot>,
    /// The snapshots that relaxed loads have read, for a later fence.
    unfenced: Vec<Snapshot>,
}

impl Clock {
    pub fn new(thread: u32) -> Self {
        let mut clock = Self { own: 0, lanes: [0; LANES], known: Known::default(), fenced: None, unfenced: Vec::new() };
        clock.step(thread);
        clock
    }

    fn step(&mut self, thread: u32) {
        self.own += 1;
        self.lanes[thread as usize % LANES] = self.own;
    }

    pub fn now(&self, block: u32, thread: u32, epoch: u32) -> Moment {
        Moment { block, thread, epoch, clock: self.own }
    }

    /// Returns whether `earlier` is ordered before this thread at `now`.
    pub fn follows(&self, now: &Moment, earlier: &Moment) -> bool {
        if earlier.block == now.block {
            if earlier.thread == now.thread || earlier.epoch < now.epoch {
                return true;
            }
            // Same epoch, then: no thread of the block is in a later one.
            if earlier.thread / 32 == now.thread / 32 && self.lanes[earlier.thread as usize % LANES] >= earlier.clock {
                return true;
            }
        }
        self.known.covers(earlier)
    }

    /// Returns everything the thread knows and did until now, to be published. Later accesses are not part of it.
    pub fn release(&mut self, now: &Moment, wide: bool) -> Snapshot {
        let first = now.thread & !31;
        let clocks = (first..).zip(self.lanes).filter(|&(_, clock)| clock != 0).collect();
        let own = Known(Rc::new(vec![(now.block, Rc::new(Seen { epoch: now.epoch, clocks }))]));
        let mut known = self.known.clone();
        known.join(&own);
        self.step(now.thread);
        Snapshot { known, block: now.block, wide }
    }

    pub fn acquire(&mut self, snapshot: &Snapshot) {
        self.known.join(&snapshot.known);
    }

    /// Records that a relaxed load has read a value released with `snapshot`.
    pub fn acquire_at_fence(&mut self, snapshot: &Snapshot) {
        if !self.unfenced.iter().any(|other| other.known.same(&snapshot.known)) {
            self.unfenced.push(snapshot.clone());
        }
    }

    pub fn fence(&mut self, now: &Moment, wide: bool) {
        for snapshot in std::mem::take(&mut self.unfenced) {
            if snapshot.visible(now.block, wide) {
                self.acquire(&snapshot);
            }
        }
        self.fenced = Some(self.release(now, wide));
    }

    pub fn fenced(&self) -> Option<&Snapshot> {
        self.fenced.as_ref()
    }
}

/// Shares the knowledge of the lanes `mask` of a warp among them.
pub(super) fn sync_warp(warp: &mut [Clock], mask: u32) {
    let takes_part = |lane: &usize| mask >> lane & 1 == 1;
    let mut lanes = [0; LANES];
    let mut known = Known::default();
    for lane in (0..LANES).filter(takes_part) {
        for (joined, clock) in lanes.iter_mut().zip(warp[lane].lanes) {
            *joined = clock.max(*joined);
        }
        known.join(&warp[lane].known);
    }
    for lane in (0..LANES).filter(takes_part) {
        warp[lane].lanes = lanes;
        warp[lane].known = known.clone();
        warp[lane].step(lane as u32);
    }
}

/// Shares the knowledge of all threads of a block among them, and begins the next epoch.
pub(super) fn sync_block(threads: &mut [Clock]) {
    let mut known = Known::default();
    for thread in &*threads {
        known.join(&thread.known);
    }
    for (thread, clock) in (0..).zip(threads) {
        clock.own = 0;
        clock.lanes = [0; LANES];
        clock.known = known.clone();
        clock.step(thread);
    }
}
