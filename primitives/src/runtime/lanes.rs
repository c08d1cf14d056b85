//! Ordering of streams that share memory.
//!
//! Work on one stream runs in order; nothing has to be done for that. Every allocation records which streams have used
//! it. When another stream accesses it, that stream first waits, on the device, for conflicting work: a read waits for
//! the last writer, a write for the last writer and for all readers since then. The wait uses an event, recorded at
//! that moment on the stream that is waited for.
//!
//! While a single stream uses an allocation, each access costs one load and one comparison on the host. With several
//! streams, a stream that already follows all work of another one does not wait for it again: a call that accesses
//! forty allocations waits once.

use super::cpu::CpuLane;
use super::cuda::{CudaEvent, CudaStream};
use super::device::lock;
use super::error::Error;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// The ordering part of a stream. It lives as long as any memory that was used on it.
pub(super) struct Lane {
    id: u64,
    pub(super) kind: LaneKind,
    /// Keyed by the id of another lane: how much of that lane's work comes before all later work of this lane.
    follows: Mutex<HashMap<u64, u64>>,
    /// Whether a [`Stream`](super::Stream) still exists that can add work.
    is_open: AtomicBool,
    /// Whether work is recorded instead of executed.
    is_recording: AtomicBool,
}

pub(super) enum LaneKind {
    Cpu(CpuLane),
    Cuda(Arc<CudaStream>),
}

/// The kind of access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    Read,
    Write,
}

impl Lane {
    /// The maximum number of followed lanes that a lane remembers. Forgetting one costs a wait and nothing else.
    const MANY: usize = 64;

    pub(super) fn new(kind: LaneKind) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self {
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            kind,
            follows: Mutex::default(),
            is_open: AtomicBool::new(true),
            is_recording: AtomicBool::new(false),
        }
    }

    pub(super) fn close(&self) {
        self.is_open.store(false, Ordering::Relaxed);
    }

    pub(super) fn set_recording(&self, is_recording: bool) {
        self.is_recording.store(is_recording, Ordering::Release);
    }

    fn is_recording(&self) -> bool {
        self.is_recording.load(Ordering::Acquire)
    }

    /// Returns whether calls return before their work is done, so that ordering is needed.
    fn is_asynchronous(&self) -> bool {
        match &self.kind {
            LaneKind::Cpu(lane) => lane.is_queued(),
            LaneKind::Cuda(_) => true,
        }
    }

    /// Returns how much work the lane has been given; `None` if another library may have added more.
    fn position(&self) -> Option<u64> {
        match &self.kind {
            LaneKind::Cpu(lane) => Some(lane.position()),
            LaneKind::Cuda(stream) => stream.position(),
        }
    }

    /// Orders all work given to `other` so far before all later work of this lane. Does not wait.
    fn follow(&self, other: &Self) -> Result<(), Error> {
        if self.id == other.id || other.is_recording() {
            return Ok(()); // what is recorded does not happen
        }
        // Read this before the event is recorded, so that the event covers it.
        let position = other.position();
        if position.is_some() && lock(&self.follows).get(&other.id).copied() >= position {
            return Ok(());
        }
        let joined = match (&self.kind, &other.kind) {
            (LaneKind::Cuda(stream), LaneKind::Cuda(other)) => {
                CudaEvent::record_untimed(other).and_then(|event| stream.wait(&event))
            }
            (LaneKind::Cpu(lane), LaneKind::Cpu(other)) => lane.wait_for(other, other.position()),
            _ => Ok(()), // memory is used on its own device alone
        };
        if joined.is_err() {
            // Waiting here is slower but has the same effect.
            other.synchronize()?;
        }
        if let Some(position) = position {
            let mut follows = lock(&self.follows);
            if follows.len() >= Self::MANY {
                follows.clear();
            }
            follows.insert(other.id, position);
        }
        Ok(())
    }

    /// [`follow`](Self::follow) for destructors, which cannot return an error: on a lost device nothing is used any
    /// more.
    fn follow_at_last(&self, other: &Self) {
        if self.is_recording() {
            // Recorded work cannot depend on the current work of another stream.
            let _ = other.synchronize();
        } else {
            let _ = self.follow(other);
        }
    }

    fn synchronize(&self) -> Result<(), Error> {
        match &self.kind {
            LaneKind::Cpu(lane) => lane.finish(),
            LaneKind::Cuda(stream) => stream.synchronize(),
        }
    }
}

/// The lanes that have used an allocation.
pub(super) struct Users {
    /// The lane that all work on the memory belongs to or precedes; 0 if there are several lanes.
    sole: AtomicU64,
    several: Mutex<Several>,
}

#[derive(Default)]
struct Several {
    /// The last lane that wrote; `None` means the home lane, which allocated the memory.
    writer: Option<Arc<Lane>>,
    /// The lanes that have read since the last write. The writer need not be among them.
    readers: Vec<Arc<Lane>>,
    /// The lanes whose uses the caller orders: they matter only when the memory is freed.
    unordered: Vec<Arc<Lane>>,
}

impl Users {
    /// The number of readers from which closed lanes are dropped from the list.
    const MANY: usize = 8;

    /// The users of memory that `home` has just allocated.
    pub(super) fn new(home: &Lane) -> Self {
        Self { sole: AtomicU64::new(home.id), several: Mutex::default() }
    }

    /// Lets `lane` use the memory, after conflicting work of other lanes.
    pub(super) fn touch(&self, home: &Arc<Lane>, lane: &Arc<Lane>, how: Use) -> Result<(), Error> {
        if self.sole.load(Ordering::Acquire) == lane.id {
            return Ok(());
        }
        self.order(home, lane, how)
    }

    /// Records a use that the caller orders.
    pub(super) fn note(&self, home: &Arc<Lane>, lane: &Arc<Lane>) {
        if home.id == lane.id || !lane.is_asynchronous() || lane.is_recording() {
            return;
        }
        let mut several = lock(&self.several);
        if !several.unordered.iter().any(|other| Arc::ptr_eq(other, lane)) {
            several.unordered.push(Arc::clone(lane));
        }
    }

    #[cold]
    fn order(&self, home: &Arc<Lane>, lane: &Arc<Lane>, how: Use) -> Result<(), Error> {
        // A recording stream does not access the memory now: whoever launches the graph must keep the memory valid.
        if !lane.is_asynchronous() || lane.is_recording() {
            return Ok(());
        }
        let mut several = lock(&self.several);
        let several = &mut *several;
        let is_same = |other: &Arc<Lane>| Arc::ptr_eq(other, lane);
        if how == Use::Read && several.readers.iter().any(is_same) {
            return Ok(());
        }
        lane.follow(several.writer.as_ref().unwrap_or(home))?;
        match how {
            Use::Read => {
                self.sole.store(0, Ordering::Release);
                several.forget_closed(home);
                several.readers.push(Arc::clone(lane));
            }
            Use::Write => {
                several.readers.iter().try_for_each(|reader| lane.follow(reader))?;
                several.readers.clear();
                several.writer = (!is_same(home)).then(|| Arc::clone(lane));
                self.sole.store(lane.id, Ordering::Release);
            }
        }
        Ok(())
    }

    /// Orders all work on the memory before all later work of `home`.
    pub(super) fn leave_to(&mut self, home: &Lane) {
        let several = self.several.get_mut().unwrap_or_else(PoisonError::into_inner);
        if *self.sole.get_mut() == home.id && several.unordered.is_empty() {
            return;
        }
        let Several { writer, readers, unordered } = core::mem::take(several);
        writer.into_iter().chain(readers).chain(unordered).for_each(|lane| home.follow_at_last(&lane));
    }
}

impl Several {
    /// Drops closed lanes from the readers. Long-lived memory must not keep every stream that ever read it: the work of
    /// closed lanes is ordered before the next work of the home lane, and the home lane counts as a reader instead.
    fn forget_closed(&mut self, home: &Arc<Lane>) {
        if self.readers.len() < Users::MANY {
            return;
        }
        let (open, closed): (Vec<_>, Vec<_>) =
            self.readers.drain(..).partition(|reader| reader.is_open.load(Ordering::Relaxed));
        self.readers = open;
        if closed.is_empty() {
            return;
        }
        closed.iter().for_each(|reader| home.follow_at_last(reader));
        if !self.readers.iter().any(|reader| Arc::ptr_eq(reader, home)) {
            self.readers.push(Arc::clone(home));
        }
    }
}
