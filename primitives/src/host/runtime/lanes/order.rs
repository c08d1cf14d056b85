//! The ordering itself, for any kind of stream: the models in `primitives/models` check this file over all interleavings.

use super::sync::{Arc, AtomicBool, AtomicU64, Mutex, Ordering, PoisonError, ThreadId, current_thread, lock};
use std::collections::HashMap;

/// What the ordering needs of a stream.
pub(crate) trait Timeline {
    type Error;

    /// Returns whether calls return before their work is done, so that ordering is needed.
    fn is_asynchronous(&self) -> bool;

    /// Returns how much work the stream has been given; `None` if another library may have added more.
    fn position(&self) -> Option<u64>;

    /// Orders all work given to `other` so far before all later work of this stream. Does not wait.
    fn wait_for(&self, other: &Self) -> Result<(), Self::Error>;

    /// Waits until all work is done.
    fn synchronize(&self) -> Result<(), Self::Error>;

    /// Returns an error inside a kernel: whoever runs it may hold the locks that the ordering needs.
    fn expect_host(&self) -> Result<(), Self::Error>;

    /// Returns the error of a thread that uses a stream while another thread records on it.
    fn recorded_elsewhere() -> Self::Error;
}

/// The ordering part of a stream. It lives as long as any memory that was used on it.
pub(crate) struct Lane<T> {
    id: u64,
    pub(crate) kind: T,
    /// Keyed by the id of another lane: how much of that lane's work comes before all later work of this lane.
    follows: Mutex<HashMap<u64, u64>>,
    /// Whether a [`Stream`](crate::Stream) still exists that can add work.
    is_open: AtomicBool,
    /// Set if the lane was made to record.
    recording: Option<RecordingLane<T>>,
}

/// What a lane that was made to record knows of its recording.
struct RecordingLane<T> {
    /// The lane in whose order the memory of the recording is allocated.
    parent: Arc<Lane<T>>,
    /// The only thread that may record. For another one, the recording could end between the two steps of a call, that
    /// it asks for memory and that it uses the memory.
    thread: ThreadId,
    /// Whether work is recorded instead of executed.
    is_on: AtomicBool,
}

/// A use of memory.
///
/// A stream asks for memory first and is given the work later: the two are not one step, and other threads may ask in
/// between. But each use borrows the memory until its work has been submitted. So the kind of the borrow tells which
/// work of others is still to come, and may not be forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    /// Reads the memory, which is borrowed as a whole. All writes have been submitted.
    Read,
    /// Writes the memory, which is borrowed as a whole, by nobody else. All other uses have been submitted.
    Write,
    /// Reads or writes a part of the memory. Other threads may be using the other parts.
    Part,
}

impl<T: Timeline> Lane<T> {
    /// The maximum number of followed lanes that a lane remembers. Forgetting one costs a wait and nothing else.
    const MANY: usize = 64;

    pub(crate) fn new(kind: T) -> Self {
        static NEXT: core::sync::atomic::AtomicU64 = core::sync::atomic::AtomicU64::new(1);
        Self {
            id: NEXT.fetch_add(1, core::sync::atomic::Ordering::Relaxed),
            kind,
            follows: Mutex::default(),
            is_open: AtomicBool::new(true),
            recording: None,
        }
    }

    /// Creates a lane on which this thread records, with memory that is allocated in the order of `parent`.
    pub(crate) fn recorder(kind: T, parent: &Arc<Self>) -> Self {
        let (parent, thread) = (Arc::clone(parent), current_thread());
        Self { recording: Some(RecordingLane { parent, thread, is_on: AtomicBool::new(true) }), ..Self::new(kind) }
    }

    /// Ends the recording: from now on work is executed. Before that, the lane follows its parent, in whose order its
    /// memory was allocated, so that from now on others can follow the lane itself.
    pub(crate) fn stop_recording(&self) {
        if let Some(recording) = &self.recording {
            // If this fails, the device is lost, and nothing is used any more.
            let _ = self.follow(&recording.parent);
            recording.is_on.store(false, Ordering::Release);
        }
    }

    /// Returns the lane's number, which no other lane has.
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// Notes that no stream exists any more that could add work.
    pub(crate) fn close(&self) {
        // Whoever sees this also sees all of the lane's work.
        self.is_open.store(false, Ordering::Release);
    }

    fn is_open(&self) -> bool {
        self.is_open.load(Ordering::Acquire)
    }

    /// Returns the recording, unless it has ended.
    fn recording(&self) -> Option<&RecordingLane<T>> {
        self.recording.as_ref().filter(|recording| recording.is_on.load(Ordering::Acquire))
    }

    /// Returns whether work of this thread is recorded instead of executed.
    ///
    /// # Errors
    /// If another thread records.
    pub(crate) fn records_here(&self) -> Result<bool, T::Error> {
        match self.recording() {
            None => Ok(false),
            Some(recording) if recording.thread == current_thread() => Ok(true),
            Some(_) => Err(T::recorded_elsewhere()),
        }
    }

    /// Orders all work given to `other` so far before all later work of this lane. Does not wait.
    fn follow(&self, other: &Self) -> Result<(), T::Error> {
        if self.id() == other.id() {
            return Ok(());
        }
        if let Some(recording) = other.recording() {
            // What is recorded does not happen, but its memory is allocated.
            return self.follow(&recording.parent);
        }
        // Read this before the wait, so that the wait covers it.
        let position = other.kind.position();
        if position.is_some() && lock(&self.follows).get(&other.id).copied() >= position {
            return Ok(());
        }
        if self.kind.wait_for(&other.kind).is_err() {
            // Waiting here is slower but has the same effect.
            other.kind.synchronize()?;
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
        if self.recording().is_some() {
            // Recorded work cannot depend on the current work of another stream.
            let _ = other.kind.synchronize();
        } else {
            let _ = self.follow(other);
        }
    }
}

/// The lanes that have used an allocation.
pub(crate) struct Users<T> {
    /// The lane that all work on the memory belongs to or precedes; 0 if there are several lanes.
    sole: AtomicU64,
    /// Most allocations are used by one lane only, and need no lists.
    several: Mutex<Option<Box<Several<T>>>>,
}

struct Several<T> {
    /// The last lane that wrote the whole; `None` means the home lane, which allocated the memory.
    writer: Option<Arc<Lane<T>>>,
    /// The other lanes that have used parts since then. Their work may still be submitted, so they stay until the whole
    /// is written.
    parts: Vec<Arc<Lane<T>>>,
    /// The lanes that have read the whole since the last write, and since the last use of a part. The writer need not be
    /// among them.
    readers: Vec<Arc<Lane<T>>>,
    /// The lanes whose uses the caller orders: they matter only when the memory is freed.
    unordered: Vec<Arc<Lane<T>>>,
}

impl<T: Timeline> Users<T> {
    /// The number of lanes in a list from which closed ones are dropped.
    const MANY: usize = 8;

    /// The users of memory that `home` has just allocated.
    pub(crate) fn new(home: &Lane<T>) -> Self {
        Self { sole: AtomicU64::new(home.id), several: Mutex::new(None) }
    }

    /// Lets `lane` use the memory, after conflicting work of other lanes.
    #[inline]
    pub(crate) fn touch(&self, home: &Arc<Lane<T>>, lane: &Arc<Lane<T>>, how: Use) -> Result<(), T::Error> {
        // The sole lane is the last one that wrote the whole, or the home lane, so all others follow it in any case.
        if self.sole.load(Ordering::Acquire) == lane.id {
            return Ok(());
        }
        self.order(home, lane, how)
    }

    /// Records a use that the caller orders.
    pub(crate) fn note(&self, home: &Arc<Lane<T>>, lane: &Arc<Lane<T>>) -> Result<(), T::Error> {
        lane.kind.expect_host()?;
        if lane.records_here()? || home.id == lane.id || !lane.kind.is_asynchronous() {
            return Ok(());
        }
        add(&mut Several::of(&mut lock(&self.several)).unordered, home, lane);
        Ok(())
    }

    #[cold]
    fn order(&self, home: &Arc<Lane<T>>, lane: &Arc<Lane<T>>, how: Use) -> Result<(), T::Error> {
        lane.kind.expect_host()?;
        // A recording stream does not access the memory now: whoever launches the graph must keep the memory valid.
        if lane.records_here()? || !lane.kind.is_asynchronous() {
            return Ok(());
        }
        let mut several = lock(&self.several);
        let Several { writer, parts, readers, .. } = Several::of(&mut several);
        if how == Use::Read && readers.iter().any(|reader| Arc::ptr_eq(reader, lane)) {
            return Ok(()); // nothing was written since then
        }
        let last = writer.as_ref().unwrap_or(home);
        lane.follow(last)?;
        parts.iter().try_for_each(|other| lane.follow(other))?;
        if how == Use::Read {
            self.sole.store(0, Ordering::Release);
            add(readers, home, lane);
            return Ok(());
        }
        // Readers of the whole have ended before it was written or divided.
        readers.iter().try_for_each(|reader| lane.follow(reader))?;
        readers.clear();
        if how == Use::Write {
            parts.clear();
            *writer = (!Arc::ptr_eq(home, lane)).then(|| Arc::clone(lane));
        } else if !Arc::ptr_eq(last, lane) {
            add(parts, home, lane);
        }
        let is_sole = parts.is_empty();
        self.sole.store(if is_sole { lane.id } else { 0 }, Ordering::Release);
        Ok(())
    }

    /// Orders all work on the memory before all later work of `home`.
    pub(crate) fn leave_to(&mut self, home: &Lane<T>) {
        let sole = self.sole.load(Ordering::Relaxed);
        let several = self.several.get_mut().unwrap_or_else(PoisonError::into_inner);
        let Some(several) = several else { return };
        let Several { writer, parts, readers, unordered } = &mut **several;
        if sole == home.id && unordered.is_empty() {
            return;
        }
        let others = writer.iter().chain(&*parts).chain(&*readers).chain(&*unordered);
        others.for_each(|lane| home.follow_at_last(lane));
    }
}

impl<T> Several<T> {
    fn of(several: &mut Option<Box<Self>>) -> &mut Self {
        several.get_or_insert_with(|| {
            Box::new(Self { writer: None, parts: Vec::new(), readers: Vec::new(), unordered: Vec::new() })
        })
    }
}

/// Adds a lane to a list. Long-lived memory must not keep every stream that ever used it, so in a long list closed lanes
/// are replaced by the home lane: it follows their work, and they can have no more.
fn add<T: Timeline>(lanes: &mut Vec<Arc<Lane<T>>>, home: &Arc<Lane<T>>, lane: &Arc<Lane<T>>) {
    if lanes.len() >= Users::<T>::MANY {
        let before = lanes.len();
        lanes.retain(|lane| {
            let stays = lane.is_open();
            if !stays {
                home.follow_at_last(lane);
            }
            stays
        });
        if lanes.len() < before {
            add_once(lanes, home);
        }
    }
    add_once(lanes, lane);
}

fn add_once<T>(lanes: &mut Vec<Arc<Lane<T>>>, lane: &Arc<Lane<T>>) {
    if !lanes.iter().any(|other| Arc::ptr_eq(other, lane)) {
        lanes.push(Arc::clone(lane));
    }
}
