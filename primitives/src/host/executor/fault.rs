//! The faults of kernels: what a thread did wrong, on which memory, and at which source line.

use crate::model::Buffer;
use std::fmt;
use std::panic::Location;

/// A line of a kernel's source.
pub(crate) type Site = &'static Location<'static>;

/// An error of a kernel, found by the CPU device.
///
/// `Display` describes it in one sentence.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Fault {
    /// The kernel's name.
    pub kernel: &'static str,
    /// The block of the faulting thread.
    pub block: u32,
    /// The index of the faulting thread in its block.
    pub thread: u32,
    /// What the thread did.
    pub kind: FaultKind,
    /// The line of the fault, if known.
    pub location: Option<&'static Location<'static>>,
}

/// The kind of a fault. `buffer` is the name of the kernel's argument, or the position in shared memory.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FaultKind {
    /// An access beyond the end of a view.
    OutOfBounds {
        /// The buffer that the view refers to.
        buffer: String,
        /// The last element of the access, counted in the view.
        index: usize,
        /// The number of elements of the view.
        len: usize,
    },
    /// A misaligned access.
    Misaligned {
        /// The buffer.
        buffer: String,
        /// The first element of the access, counted in the view.
        index: usize,
        /// The required alignment in bytes.
        align: usize,
    },
    /// A read of uninitialised memory.
    Uninitialised {
        /// The buffer.
        buffer: String,
        /// The element.
        index: usize,
    },
    /// An access to memory that was freed before the launch.
    Freed {
        /// The buffer.
        buffer: String,
        /// The element.
        index: usize,
        /// The line of the program that allocated it, if known.
        allocated: Option<&'static Location<'static>>,
        /// The line of the program that freed it, or the function if the executable has no line information.
        by: Option<String>,
    },
    /// An access to memory that the launch was not given, through an address that the kernel computed.
    NotGiven {
        /// What the address refers to.
        what: String,
    },
    /// An access through a view that begins in one buffer to memory of another one.
    OtherBuffer {
        /// The buffer where the view begins.
        buffer: String,
        /// The buffer of the access.
        other: String,
        /// The element of the access in that buffer.
        index: usize,
    },
    /// A write through a raw pointer instead of a view. The line is that of the thread's next device function.
    RawWrite {
        /// The buffer.
        buffer: String,
        /// The element.
        index: usize,
    },
    /// A write to memory that the launch was given for reading.
    ReadOnly {
        /// The buffer.
        buffer: String,
        /// The element.
        index: usize,
    },
    /// Two threads accessed the same memory, and nothing orders the two accesses.
    Race {
        /// The buffer.
        buffer: String,
        /// The element.
        index: usize,
        /// What this thread did.
        access: Access,
        /// The block of the other thread.
        other_block: u32,
        /// The index of the other thread in that block.
        other_thread: u32,
        /// What the other thread did, earlier in this schedule.
        other_access: Access,
        /// The line of the other access.
        other_location: &'static Location<'static>,
    },
    /// Two threads accessed the same memory with atomics of different sizes, and nothing orders the two accesses.
    MixedAtomics {
        /// The buffer.
        buffer: String,
        /// The element.
        index: usize,
        /// The size of this access in bytes.
        bytes: usize,
        /// The block of the other thread.
        other_block: u32,
        /// The index of the other thread in that block.
        other_thread: u32,
        /// The size of the other access in bytes.
        other_bytes: usize,
        /// The line of the other access.
        other_location: &'static Location<'static>,
    },
    /// A thread reads through one region of shared memory what it wrote through another one that overlaps it, with no
    /// barrier in between.
    SharedOverlap {
        /// The region of the read.
        buffer: String,
        /// The element.
        index: usize,
        /// The line of the write.
        other_location: &'static Location<'static>,
    },
    /// A piece taken from shared memory ends beyond what the kernel declared.
    SharedOverflow {
        /// The end of the piece, in bytes.
        end: usize,
        /// The number of bytes of shared memory that the kernel declares.
        declared: usize,
    },
    /// A thread waits at a barrier that another thread of the block does not reach.
    BarrierDivergence {
        /// The thread that does not arrive.
        other_thread: u32,
        /// The barrier where the other thread waits; `None` if it has returned.
        other_location: Option<&'static Location<'static>>,
    },
    /// A lane waits in a collective that another lane of its mask does not reach.
    CollectiveDivergence {
        /// The mask of the waiting lane.
        mask: u32,
        /// The thread that does not arrive; the waiting thread itself if it is not in its own mask.
        other_thread: u32,
        /// What the other thread does instead.
        other: Elsewhere,
    },
    /// Threads wait at the same barrier or collective of a function that they called from different lines.
    CallDivergence {
        /// The call of this thread.
        calls: String,
        /// The other thread.
        other_thread: u32,
        /// The call of the other thread.
        other_calls: String,
    },
    /// A shuffle reads a lane that does not participate.
    InactiveSource {
        /// The source lane.
        lane: u32,
        /// The participating lanes.
        mask: u32,
    },
    /// All threads wait for memory that no thread will write.
    Deadlock {
        /// The number of threads that poll memory.
        polling: usize,
        /// The number of threads that wait for them, at a barrier or in a collective.
        waiting: usize,
    },
    /// The kernel called `trap`.
    Trap,
    /// The kernel panicked.
    Panic {
        /// The message.
        message: String,
    },
}

/// The kind of a memory access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// A plain load.
    Read,
    /// A plain store.
    Write,
    /// Any atomic access.
    Atomic,
}

/// What a lane does instead of arriving at a collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Elsewhere {
    /// It has returned.
    Returned,
    /// It is not in the mask that it passed.
    NotInMask,
    /// It waits at the block's barrier.
    AtBarrier(&'static Location<'static>),
    /// It is in another collective, or in the same one with a different mask.
    InCollective {
        /// The mask that it passed.
        mask: u32,
        /// The line of the call.
        location: &'static Location<'static>,
    },
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "kernel `{}`, block {}, thread {}: {}", self.kernel, self.block, self.thread, self.kind)?;
        match self.location {
            Some(location) => write!(f, ", at {location}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Fault {}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Arguments are quoted. Positions in memory are phrases already.
        let quoted = |buffer: &str| if buffer.contains(' ') { buffer.to_owned() } else { format!("`{buffer}`") };
        match self {
            Self::OutOfBounds { buffer, index, len } => {
                let buffer = quoted(buffer);
                write!(f, "index {index} is out of bounds of {buffer}: the view has {len} elements")
            }
            Self::Misaligned { buffer, index, align } => {
                let buffer = quoted(buffer);
                write!(f, "the access to {buffer} at index {index} is not aligned to {align} bytes")
            }
            Self::Uninitialised { buffer, index } => {
                // Only the block itself writes its shared memory, so most likely the order is wrong.
                let hint = if buffer.contains("shared memory") { ": is a barrier missing?" } else { "" };
                let buffer = quoted(buffer);
                write!(f, "uninitialised read of {buffer} at index {index}{hint}")
            }
            Self::Freed { buffer, index, allocated, by } => {
                let buffer = quoted(buffer);
                write!(f, "{buffer} is used at index {index}, but its memory")?;
                if let Some(allocated) = allocated {
                    write!(f, ", allocated at {allocated},")?;
                }
                write!(f, " was freed before the launch")?;
                match by {
                    Some(by) => write!(f, ", at {by}"),
                    None => Ok(()),
                }
            }
            Self::RawWrite { buffer, index } => {
                let buffer = quoted(buffer);
                write!(f, "{buffer} was written at index {index} through a raw pointer: use a view")
            }
            Self::NotGiven { what } => write!(f, "a computed address refers to {what}"),
            Self::OtherBuffer { buffer, other, index } => {
                let (buffer, other) = (quoted(buffer), quoted(other));
                write!(f, "a view of {buffer} is used to access {other} at index {index}")
            }
            Self::ReadOnly { buffer, index } => {
                let buffer = quoted(buffer);
                write!(f, "a write to {buffer} at index {index}, which the launch was given for reading")
            }
            Self::Race { buffer, index, access, other_block, other_thread, other_access, other_location } => write!(
                f,
                "race on {} at index {index}: {access} here, {other_access} by block {other_block}, \
                 thread {other_thread}, at {other_location}; nothing orders the two",
                quoted(buffer)
            ),
            Self::MixedAtomics { buffer, index, bytes, other_block, other_thread, other_bytes, other_location } => {
                write!(
                    f,
                    "atomics of different sizes on {} at index {index}: {bytes} bytes here, {other_bytes} by block \
                     {other_block}, thread {other_thread}, at {other_location}; nothing orders the two",
                    quoted(buffer)
                )
            }
            Self::SharedOverlap { buffer, index, other_location } => {
                let buffer = quoted(buffer);
                write!(
                    f,
                    "a read of {buffer} at index {index}, but the thread has written these bytes through another region \
                     that overlaps it, at {other_location}, with no barrier in between"
                )
            }
            Self::SharedOverflow { end, declared } => {
                write!(f, "a piece of shared memory ends at byte {end}, but the kernel declares {declared} bytes")
            }
            Self::BarrierDivergence { other_thread, other_location } => {
                write!(f, "the thread waits at a barrier, but thread {other_thread} of the block ")?;
                match other_location {
                    Some(location) => write!(f, "waits at another barrier, at {location}"),
                    None => write!(f, "has returned"),
                }
            }
            Self::CollectiveDivergence { mask, other_thread, other } => {
                write!(f, "the thread calls a collective with mask {mask:#010x}, but thread {other_thread} {other}")
            }
            Self::CallDivergence { calls, other_thread, other_calls } => write!(
                f,
                "the thread waits at a barrier or collective that it reached through the call at {calls}, but thread \
                 {other_thread} reached it through the call at {other_calls}"
            ),
            Self::InactiveSource { lane, mask } => {
                write!(f, "the thread shuffles from lane {lane}, which is not in mask {mask:#010x}")
            }
            Self::Deadlock { polling, waiting } => write!(
                f,
                "deadlock: {polling} threads poll memory that no thread writes, and {waiting} threads wait for them"
            ),
            Self::Trap => write!(f, "the kernel called `trap`"),
            Self::Panic { message } => write!(f, "panic: {message}"),
        }
    }
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Atomic => "atomic access",
        })
    }
}

impl fmt::Display for Elsewhere {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Returned => write!(f, "has returned"),
            Self::NotInMask => write!(f, "is not in that mask"),
            Self::AtBarrier(location) => write!(f, "waits at the block's barrier, at {location}"),
            Self::InCollective { mask, location } => {
                write!(f, "is in a collective with mask {mask:#010x}, at {location}")
            }
        }
    }
}

/// The memory of a fault: the start of the view, the accessed byte, the size of an element.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub base: usize,
    pub byte: usize,
    pub element_bytes: usize,
    /// The start of the block's shared memory, if the access is to shared memory.
    pub shared: Option<usize>,
}

/// A fault as the thread reports it, before buffers are named.
#[derive(Clone, Debug)]
pub(crate) struct Caught {
    pub kind: FaultKind,
    /// The memory from which the buffer in `kind` is named.
    pub place: Option<Place>,
    pub location: Option<Site>,
}

impl Caught {
    pub fn new(kind: FaultKind, location: Option<Site>) -> Self {
        Self { kind, place: None, location }
    }

    /// Names the buffer: the argument that holds the address, or the position in shared memory.
    pub fn named(mut self, kernel: &'static str, buffers: &[(&'static str, Buffer)], block: u32, thread: u32) -> Fault {
        if let Some(place) = self.place {
            let (name, element) = place.name(buffers);
            match &mut self.kind {
                FaultKind::OutOfBounds { buffer, .. } | FaultKind::Misaligned { buffer, .. } => *buffer = name,
                FaultKind::Uninitialised { buffer, index }
                | FaultKind::Freed { buffer, index, .. }
                | FaultKind::ReadOnly { buffer, index }
                | FaultKind::RawWrite { buffer, index }
                | FaultKind::MixedAtomics { buffer, index, .. }
                | FaultKind::SharedOverlap { buffer, index, .. }
                | FaultKind::Race { buffer, index, .. } => {
                    (*buffer, *index) = (name, element);
                }
                FaultKind::OtherBuffer { buffer, other, index } => {
                    *buffer = name;
                    (*other, *index) = Place { base: place.byte, ..place }.name(buffers);
                }
                _ => {}
            }
        }
        Fault { kernel, block, thread, kind: self.kind, location: self.location }
    }
}

impl Place {
    /// Returns the name of the buffer, and the element in it.
    fn name(&self, buffers: &[(&'static str, Buffer)]) -> (String, usize) {
        if let Some(start) = self.shared {
            let name = format!("shared memory at byte {}", self.base - start);
            return (name, (self.byte - self.base) / self.element_bytes.max(1));
        }
        // Take the first argument that holds the start of the view. A view that begins where a buffer ends is empty,
        // and belongs to that buffer unless another one begins there. If the view's start was moved out of its buffer,
        // the accessed byte decides.
        let (mut inside, mut behind): (Option<(&'static str, Buffer)>, _) = (None, None);
        let mut at_byte = None;
        for &(name, buffer) in buffers {
            let end = buffer.address + buffer.len * buffer.element_bytes;
            if (buffer.address..end).contains(&self.base) {
                inside = inside.or(Some((name, buffer)));
            } else if self.base == end {
                behind = behind.or(Some((name, buffer)));
            }
            if (buffer.address..end).contains(&self.byte) {
                at_byte = at_byte.or(Some((name, buffer)));
            }
        }
        let found = inside.or(at_byte).or(behind);
        match found {
            Some((name, buffer)) => {
                (name.to_owned(), self.byte.saturating_sub(buffer.address) / buffer.element_bytes.max(1))
            }
            None => {
                let name = format!("unknown buffer at address {:#x}", self.base);
                (name, self.byte.saturating_sub(self.base) / self.element_bytes.max(1))
            }
        }
    }
}
