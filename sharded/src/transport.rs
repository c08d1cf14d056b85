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

    /// Gives every rank the bytes of all ranks, in the order of the ranks. All pass the same number of bytes, which is small.
    ///
    /// # Errors
    /// [`Lost`] if a rank does not answer until the deadline, or cannot answer any more.
    fn gather(&self, mine: &[u8], deadline: Instant) -> Result<Vec<u8>, Lost>;

    /// Sends memory of this rank's device to others, and receives what they send, in the order of the stream. Messages from
    /// one rank to another arrive in the order in which both list them, and have the same lengths at both. None is from a
    /// rank to itself.
    ///
    /// # Errors
    /// The errors of [`gather`](Self::gather), and [`Lost`] if the device fails.
    fn exchange(
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

    /// Rank `rank` did not answer in time.
    #[must_use]
    pub fn late(rank: usize) -> Self {
        Self::new(format!("rank {rank} did not answer in time"))
    }

    /// Rank `rank` has ended.
    #[must_use]
    pub fn gone(rank: usize) -> Self {
        Self::new(format!("rank {rank} has ended"))
    }
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
