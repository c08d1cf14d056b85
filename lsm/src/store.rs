//! Levels with a buffer in front of them, which any thread may flush.
//!
//! Queries take `&self`, and the first one after an update has to flush the buffer. So a store is in one of two states, and goes
//! from the second to the first behind a lock:
//! - *settled*: levels hold everything. They stay where they are as long as the store is borrowed, so queries and views keep
//!   references to them.
//! - *pending*: there is a buffer in front of levels. Nobody has a reference to these: whoever wants one flushes first.
//!
//! Copies share a store until one of them changes. So what a copy flushes is flushed for all.
//!
//! A flush runs functions of the program while it holds the lock: on the CPU the operators themselves, inside kernels. There, all that
//! takes the lock is refused. Recording an operator for a GPU is the caller's code, too, and happens before: see
//! [`AnyLsm::change`](crate::any::AnyLsm::change).

use crate::budget::Budget;
use crate::levels::Levels;
use gpu_dictionary::levels::{AnyBuffer, Operations};
use gpu_primitives::lowered::expect_host;
use gpu_primitives::{Error, Stream};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// The contents of a dictionary.
#[derive(Debug)]
pub(crate) struct Store(Arc<State>);

/// Either there are levels that hold everything, or something is pending.
#[derive(Debug)]
struct State {
    settled: OnceLock<Levels>,
    pending: Mutex<Option<Pending>>,
}

/// Operations that are newer than all levels. There is at least one.
#[derive(Debug)]
struct Pending {
    levels: Levels,
    buffer: AnyBuffer,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A thread that panicked while it flushed has changed nothing.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl From<Levels> for Store {
    fn from(levels: Levels) -> Self {
        Self(Arc::new(State { settled: OnceLock::from(levels), pending: Mutex::new(None) }))
    }
}

impl Clone for Store {
    fn clone(&self) -> Self {
        // Settled levels are cheap to copy, and the copy is one that its owner can change.
        self.0.settled.get().map_or_else(|| Self(Arc::clone(&self.0)), |levels| levels.clone().into())
    }
}

impl Store {
    /// Returns the levels. Flushes the buffer first, if there is something in it: once, whichever thread is the first. The others
    /// wait for its host, and their streams for its stream. Levels go to where the budget has them. After an error everything is as
    /// before.
    pub fn settled(&self, stream: &Stream, budget: Budget) -> Result<&Levels, Error> {
        expect_host()?;
        let State { settled, pending } = &*self.0;
        if settled.get().is_none() {
            let mut pending = lock(pending);
            let flushed = match &*pending {
                Some(Pending { levels, buffer }) => {
                    buffer.expect_device(stream)?;
                    // Others rely on the levels right after this call, but recorded work would make them only later.
                    stream.refuse_recording("`flush`, or the first query after an update of a dictionary,")?;
                    let _span = gpu_primitives::span!(stream, "lsm::flush", buffer.len());
                    Some(levels.with(stream, budget, buffer)?)
                }
                // Another thread was faster.
                None => None,
            };
            if let (Some(flushed), Some(Pending { mut levels, buffer })) = (flushed, pending.take()) {
                levels.install(flushed);
                drop(buffer);
                settled.set(levels).expect("it is not set while something is pending");
            }
        }
        Ok(settled.get().expect("nothing is pending"))
    }

    /// Returns the levels, to change them: see [`settled`](Self::settled).
    pub fn settled_mut(&mut self, stream: &Stream, budget: Budget) -> Result<&mut Levels, Error> {
        self.settled(stream, budget)?;
        self.make_own();
        Ok(Arc::get_mut(&mut self.0)
            .and_then(|state| state.settled.get_mut())
            .expect("it is settled, and nobody else's"))
    }

    /// If the store is settled and others share it, copies it.
    fn make_own(&mut self) {
        if Arc::get_mut(&mut self.0).is_none()
            && let Some(levels) = self.0.settled.get()
        {
            *self = levels.clone().into();
        }
    }

    /// Appends operations to the buffer, for up to `most` in all; a new one gets room for `room`. If they do not fit, flushes before. After
    /// an error everything is as before.
    pub fn append(
        &mut self,
        stream: &Stream,
        budget: Budget,
        added: Operations<'_>,
        room: usize,
        most: usize,
    ) -> Result<(), Error> {
        if self.buffered()? + added.len() > most || Arc::get_mut(&mut self.0).is_none() {
            // Copies that share the buffer do not have the new operations.
            self.settled(stream, budget)?;
        }
        self.make_own();
        let state = Arc::get_mut(&mut self.0).expect("it is nobody else's");
        let pending = state.pending.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(Pending { levels, buffer }) = pending {
            // A flush can then fail only for lack of memory, or by a fault of its kernels.
            levels.slot_for(buffer.len() + added.len())?;
            buffer.expect_device(stream)?;
            return buffer.append(stream, added, most);
        }
        let levels = state.settled.get().expect("nothing is pending");
        levels.slot_for(added.len())?;
        levels.stack.expect_device(stream)?;
        let (least, room) = (added.len(), room.max(added.len()).min(most));
        let mut buffer = AnyBuffer::with_room_if_any(levels.stack.types(), stream, least, room)?;
        buffer.append(stream, added, most)?;
        *pending = state.settled.take().map(|levels| Pending { levels, buffer });
        Ok(())
    }

    /// Drops what is in the buffer. Returns how many operations there were. Copies that share the buffer keep it.
    pub fn discard(&mut self) -> Result<usize, Error> {
        let left = self.look(|levels, buffer| buffer.map(|buffer| (levels.clone(), buffer.len())))?;
        let Some((levels, discarded)) = left else { return Ok(0) };
        *self = levels.into();
        Ok(discarded)
    }

    /// Calls a function with the levels and, if there is something in it, the buffer. Flushes nothing.
    ///
    /// # Errors
    /// [`Error::HostCallInKernel`] inside a kernel: it may be one of a flush, which holds the lock.
    pub fn look<T>(&self, look: impl FnOnce(&Levels, Option<&AnyBuffer>) -> T) -> Result<T, Error> {
        expect_host()?;
        Ok(match &*lock(&self.0.pending) {
            Some(Pending { levels, buffer }) => look(levels, Some(buffer)),
            None => look(self.0.settled.get().expect("nothing is pending"), None),
        })
    }

    /// Returns how many operations are in the buffer.
    pub fn buffered(&self) -> Result<usize, Error> {
        self.look(|_, buffer| buffer.map_or(0, AnyBuffer::len))
    }

    /// Checks that what is there, if there is anything, is on the stream's device.
    pub fn expect_device(&self, stream: &Stream) -> Result<(), Error> {
        self.look(|levels, buffer| {
            buffer.map_or_else(|| levels.stack.expect_device(stream), |b| b.expect_device(stream))
        })?
    }
}
