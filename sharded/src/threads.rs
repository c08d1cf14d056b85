//! Ranks that are threads of one process.

use crate::transport::{Incoming, Lost, Outgoing, Transport};
use core::fmt::{self, Debug};
use gpu_primitives::Stream;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// A rank that is a thread, or anything else in this process. Bytes go through host memory.
///
/// ```
/// use gpu_dictionary::{Dictionary, Updatable};
/// use gpu_lsm::GpuLsm;
/// use gpu_primitives::{Device, Error};
/// use gpu_sharded::{Options, Sharded, Threads, World};
///
/// /// What each rank does, with keys of its own.
/// fn rank(transport: Threads, rank: u32) -> Result<(), Error> {
///     let stream = Device::cpu().stream()?;
///     let mut all = Sharded::<GpuLsm<u32, u32>>::new(&stream, Options::new(World::new(transport)))?;
///     let keys = stream.upload(&(0..100).map(|i| 100 * rank + i).collect::<Vec<u32>>())?;
///     all.insert(&stream, (&keys, &keys))?;
///     assert_eq!(all.len(&stream)?, 300);
///     let found = all.lookup(&stream, &stream.upload(&[7, 107, 207, 307])?)?;
///     assert_eq!(found.to_vec(&stream)?, [Some(7), Some(107), Some(207), None]);
///     Ok(())
/// }
///
/// std::thread::scope(|scope| {
///     let ranks = (0..).zip(Threads::ranks(3));
///     let threads: Vec<_> = ranks.map(|(number, transport)| scope.spawn(move || rank(transport, number))).collect();
///     threads.into_iter().try_for_each(|thread| thread.join().expect("no panic"))
/// })?;
/// # Ok::<(), Error>(())
/// ```
pub struct Threads {
    rank: usize,
    ranks: usize,
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    /// What rank `from` has sent to rank `to`, at `from * ranks + to`.
    queues: Vec<VecDeque<Vec<u8>>>,
    is_gone: Vec<bool>,
    /// The rank that ended first. Others may have ended because of it.
    first_gone: Option<usize>,
}

impl Threads {
    /// Returns a transport for each of so many ranks.
    #[must_use]
    pub fn ranks(ranks: usize) -> Vec<Self> {
        let queues = (0..ranks * ranks).map(|_| VecDeque::new()).collect();
        let state = Mutex::new(State { queues, is_gone: vec![false; ranks], first_gone: None });
        let shared = Arc::new(Shared { state, changed: Condvar::new() });
        (0..ranks).map(|rank| Self { rank, ranks, shared: Arc::clone(&shared) }).collect()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn send(&self, to: usize, bytes: Vec<u8>) {
        self.state().queues[self.rank * self.ranks + to].push_back(bytes);
        self.shared.changed.notify_all();
    }

    fn receive(&self, from: usize, deadline: Instant) -> Result<Vec<u8>, Lost> {
        let mut state = self.state();
        loop {
            if let Some(bytes) = state.queues[from * self.ranks + self.rank].pop_front() {
                return Ok(bytes);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if state.is_gone[from] || left.is_zero() {
                return Err(state.first_gone.map_or_else(Lost::late, Lost::gone));
            }
            state = self.shared.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Transport for Threads {
    fn rank(&self) -> usize {
        self.rank
    }

    fn ranks(&self) -> usize {
        self.ranks
    }

    fn gather(&self, mine: &[u8], deadline: Instant) -> Result<Vec<Vec<u8>>, Lost> {
        for to in (0..self.ranks).filter(|&to| to != self.rank) {
            self.send(to, mine.to_vec());
        }
        let of_rank = |from: usize| match from == self.rank {
            true => Ok(mine.to_vec()),
            false => self.receive(from, deadline),
        };
        (0..self.ranks).map(of_rank).collect()
    }

    unsafe fn exchange(
        &self,
        stream: &Stream,
        send: &[Outgoing<'_>],
        receive: &mut [Incoming<'_>],
        deadline: Instant,
    ) -> Result<(), Lost> {
        for message in send {
            self.send(message.to, message.bytes.to_vec(stream)?);
        }
        for message in receive {
            let (bytes, len) = (self.receive(message.from, deadline)?, message.bytes.len());
            if bytes.len() != len {
                return Err(Lost::new(format!("rank {} sent {} bytes instead of {len}", message.from, bytes.len())));
            }
            message.bytes.copy_from_host(stream, &bytes)?;
        }
        Ok(())
    }
}

/// The others learn at once that this rank has ended.
impl Drop for Threads {
    fn drop(&mut self) {
        let mut state = self.state();
        state.is_gone[self.rank] = true;
        state.first_gone.get_or_insert(self.rank);
        drop(state);
        self.shared.changed.notify_all();
    }
}

impl Debug for Threads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Threads(rank {} of {})", self.rank, self.ranks)
    }
}
