//! Ordering of streams that share memory.
//!
//! Work on one stream runs in order; nothing has to be done for that. Every allocation records which streams have used
//! it. When another stream accesses it, that stream first waits, on the device, for conflicting work: a read waits for
//! the last writer, a write for the last writer and for all readers since then. The wait uses an event, recorded at
//! that moment on the stream that is waited for.
//!
//! A stream is recorded when it asks for the memory, and its work is submitted a little later. While several threads use
//! parts of one allocation, the work of one may come after the wait of another: so all of them stay recorded until the
//! allocation is written as a whole, which needs a borrow that ends all others ([`Use`]).
//!
//! While a single stream uses an allocation, each access costs one load and one comparison on the host. With several
//! streams, a stream that already follows all work of another one does not wait for it again: a call that accesses
//! forty allocations waits once.

mod order;

use super::cpu::{CpuLane, expect_host};
use super::cuda::{CudaEvent, CudaStream};
use super::plan::PlannedDevice;
use super::sync;
use crate::host::error::Error;
use std::sync::Arc;

pub(super) use order::{Timeline, Use};
pub(super) type Lane = order::Lane<LaneKind>;
pub(super) type Users = order::Users<LaneKind>;

/// A stream of a device.
pub(super) enum LaneKind {
    Cpu(CpuLane),
    Cuda(Arc<CudaStream>),
    /// Nothing happens on it.
    Planned(Arc<PlannedDevice>),
}

impl Timeline for LaneKind {
    type Error = Error;

    fn is_asynchronous(&self) -> bool {
        match self {
            Self::Cpu(lane) => lane.is_queued(),
            Self::Cuda(_) => true,
            Self::Planned(_) => false,
        }
    }

    fn position(&self) -> Option<u64> {
        match self {
            Self::Cpu(lane) => lane.position().ok(), // an error inside a kernel, where nothing is ordered
            Self::Cuda(stream) => stream.position(),
            Self::Planned(_) => Some(0),
        }
    }

    fn wait_for(&self, other: &Self) -> Result<(), Error> {
        match (self, other) {
            (Self::Cuda(stream), Self::Cuda(other)) => {
                CudaEvent::record_untimed(other).and_then(|event| stream.wait(&event))
            }
            (Self::Cpu(lane), Self::Cpu(other)) => lane.wait_for(other, other.position()?),
            _ => Ok(()), // memory is used on its own device alone
        }
    }

    fn synchronize(&self) -> Result<(), Error> {
        match self {
            Self::Cpu(lane) => lane.finish(),
            Self::Cuda(stream) => stream.synchronize(),
            Self::Planned(_) => Ok(()),
        }
    }

    fn expect_host(&self) -> Result<(), Error> {
        match self {
            Self::Cpu(_) => expect_host(),
            Self::Cuda(_) | Self::Planned(_) => Ok(()),
        }
    }

    fn recorded_elsewhere() -> Error {
        Error::NotRecordable { what: "work of another thread than the one that records" }
    }
}
