//! How ranks reach each other.

use core::fmt::{self, Debug};
use gpu_primitives::{DeviceSlice, DeviceSliceMut, Error, Stream};
use std::time::Instant;

/// The engine that moves bytes between ranks.
///
/// Every rank makes the same calls in the same order; each call waits for the others. No call waits past its deadline. After an
/// error the ranks are out of step, and the [`World`](crate::World) makes no further calls.
pub trait Transport: Send + Sync + Debug {
    /// Returns the number of this rank, from 0.
    fn rank(&self) -> usize;

    /// Returns the number of ranks.
    fn ranks(&self) -> usize;

    /// Gives every rank the bytes of all ranks, in the order of the ranks. They are few. Ranks may pass different numbers of
    /// bytes.
    ///
    /// # Errors
    /// [`Lost`] if a rank does not answer until the deadline, or cannot answer any more.
    fn gather(&self, mine: &[u8], deadline: Instant) -> Result<Vec<Vec<u8>>, Lost>;

    /// Sends memory of this rank's device to others, and receives what they send, in the order of the stream. Messages from
    /// one rank to another arrive in the order in which both list them. None is from a rank to itself.
    ///
    /// # Safety
    /// Both ranks list the same messages between them, with the same lengths. GPUs write into each other's memory by what
    /// their own side lists, so a wrong length would overwrite memory of another rank. A [`World`](crate::World) calls this
    /// function after all ranks have agreed on the lengths.
    ///
    /// # Errors
    /// The errors of [`gather`](Self::gather), and [`Lost`] if the device fails.
    unsafe fn exchange(
        &self,
        stream: &Stream,
        send: &[Outgoing<'_>],
        receive: &mut [Incoming<'_>],
        deadline: Instant,
    ) -> Result<(), Lost>;
}

/// A message to another rank.
#[derive(Debug)]
pub struct Outgoing<'a> {
    /// The rank that receives it.
    pub to: usize,
    /// The bytes.
    pub bytes: DeviceSlice<'a, u8>,
}

/// A message from another rank.
#[derive(Debug)]
pub struct Incoming<'a> {
    /// The rank that sends it.
    pub from: usize,
    /// Where the bytes go.
    pub bytes: DeviceSliceMut<'a, u8>,
}

/// The ranks cannot work together any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lost {
    /// What happened.
    pub cause: String,
}

impl Lost {
    /// Says what happened.
    pub fn new(cause: impl Into<String>) -> Self {
        Self { cause: cause.into() }
    }

    /// Not all ranks answered in time. Which one is to blame is not known: one that does not answer may be waiting for another.
    #[must_use]
    pub fn late() -> Self {
        Self::new("a rank was lost: not all of them answered in time")
    }

    /// Rank `rank` is known to have ended.
    #[must_use]
    pub fn gone(rank: usize) -> Self {
        Self::new(format!("rank {rank} has ended"))
    }
}

/// The bytes of the first message of [`gather_framed`]: the longest messages of a call in a world of 200 shards fit.
#[cfg(any(test, feature = "mpi", feature = "nccl"))]
const FRAME: usize = 2048;

/// Gathers messages of any lengths by a function that needs the same length on all ranks.
///
/// The first step has a fixed length, so it is right whatever the ranks pass: the length of each message, and its beginning.
/// Only if a message is longer, a second step follows, of a length that all ranks know then.
#[cfg(any(test, feature = "mpi", feature = "nccl"))]
pub(crate) fn gather_framed(
    mine: &[u8],
    mut gather: impl FnMut(&[u8]) -> Result<Vec<u8>, Lost>,
) -> Result<Vec<Vec<u8>>, Lost> {
    const ROOM: usize = FRAME - size_of::<u64>();
    let padded = |bytes: &[u8], len: usize| [bytes, &vec![0; len - bytes.len()]].concat();
    let (beginning, rest) = mine.split_at(mine.len().min(ROOM));
    let mut frame = (mine.len() as u64).to_le_bytes().to_vec();
    frame.extend(padded(beginning, ROOM));
    let frames = gather(&frame)?;
    let read = |frame: &[u8]| {
        let (len, beginning) = frame.split_at(size_of::<u64>());
        let len = u64::from_le_bytes(len.try_into().unwrap_or_default()) as usize;
        (len, beginning[..len.min(ROOM)].to_vec())
    };
    let (lens, mut all): (Vec<usize>, Vec<Vec<u8>>) = frames.chunks_exact(FRAME).map(read).unzip();
    let longest_rest = lens.iter().map(|len| len.saturating_sub(ROOM)).max().unwrap_or(0);
    if longest_rest > 0 {
        let rests = gather(&padded(rest, longest_rest))?;
        for ((message, len), rest) in all.iter_mut().zip(lens).zip(rests.chunks_exact(longest_rest)) {
            message.extend(&rest[..len.saturating_sub(ROOM)]);
        }
    }
    Ok(all)
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.cause)
    }
}

impl std::error::Error for Lost {}

impl From<Error> for Lost {
    fn from(error: Error) -> Self {
        Self::new(format!("this rank failed while it exchanged data: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use super::{FRAME, gather_framed};
    use std::sync::{Barrier, Mutex};

    /// An all-gather that, like that of NCCL, is right only if all ranks pass the same number of bytes.
    fn strict(rank: usize, steps: &Mutex<Vec<Vec<u8>>>, barrier: &Barrier, mine: &[u8]) -> Vec<u8> {
        steps.lock().unwrap()[rank] = mine.to_vec();
        barrier.wait();
        let all = steps.lock().unwrap().clone();
        barrier.wait();
        assert!(all.iter().all(|bytes| bytes.len() == mine.len()), "the ranks pass different numbers of bytes");
        all.concat()
    }

    #[test]
    fn ranks_may_pass_different_numbers_of_bytes() {
        for lens in [[0, 0, 0], [1, 2, 3], [FRAME - 8, 5, FRAME - 7], [3 * FRAME, 0, FRAME], [FRAME; 3]] {
            let message = |rank: usize| (0..lens[rank]).map(|i| (i * 7 + rank) as u8).collect::<Vec<u8>>();
            let (steps, barrier) = (Mutex::new(vec![Vec::new(); 3]), Barrier::new(3));
            std::thread::scope(|scope| {
                for rank in 0..3 {
                    let (steps, barrier) = (&steps, &barrier);
                    scope.spawn(move || {
                        let gather = |mine: &[u8]| Ok(strict(rank, steps, barrier, mine));
                        let all = gather_framed(&message(rank), gather).unwrap();
                        assert!(all == [0, 1, 2].map(message), "{lens:?}");
                    });
                }
            });
        }
    }
}
