//! What a kernel did wrong: where, on what memory, and which source line.

use crate::kernel::{Buffer, Kernel};
use std::fmt;
use std::panic::Location;

/// A line of a kernel's source.
pub(crate) type Site = &'static Location<'static>;

/// A kernel did something that no kernel may do.
///
/// `Display` says it in one sentence.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Fault {
    /// The kernel's name.
    pub kernel: &'static str,
    /// The block of the thread that was caught.
    pub block: u32,
    /// The thread that was caught: its index in the block.
    pub thread: u32,
    /// What it did.
    pub kind: FaultKind,
    /// The line that did it, where it is known.
    pub location: Option<&'static Location<'static>>,
}

/// What a thread did that it may not do. `buffer` is the name of the kernel's argument, or the place in shared memory.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FaultKind {
    /// An access beyond the end of a view.
    OutOfBounds {
        /// The buffer that the view shows.
        buffer: String,
        /// The last element of the access, counted in the view.
        index: usize,
        /// The elements of the view.
        len: usize,
    },
    /// An access whose address is no multiple of what its width asks for.
    Misaligned {
        /// The buffer.
        buffer: String,
        /// The first element of the access, counted in the view.
        index: usize,
        /// What the address should be a multiple of.
        align: usize,
    },
    /// A read of memory that nobody has written.
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
        /// The line of the program that freed it, if that could be found out.
        by: Option<String>,
    },
    /// An access to memory that the launch was not given, by an address that the kernel computed.
    NotGiven {
        /// What lies there.
        what: String,
    },
    /// Two threads used the same memory with nothing between the two accesses that orders them.
    Race {
        /// The buffer.
        buffer: String,
        /// The element.
        index: usize,
        /// What this thread did.
        access: Access,
        /// The block of the other thread.
        other_block: u32,
        /// The other thread: its index in that block.
        other_thread: u32,
        /// What the other thread did, earlier in this schedule.
        other_access: Access,
        /// The line where it did so.
        other_location: &'static Location<'static>,
    },
    /// A piece taken from shared memory ends beyond what the kernel declared.
    SharedOverflow {
        /// Where the piece would end.
        end: usize,
        /// The bytes of shared memory that the kernel declared.
        declared: usize,
    },
    /// A thread waits at a barrier that another thread of the block does not come to.
    BarrierDivergence {
        /// The thread that does not come.
        other_thread: u32,
        /// The barrier where that one waits; `None` if it has returned.
        other_location: Option<&'static Location<'static>>,
    },
    /// A lane waits in a collective that another lane of its mask does not come to.
    CollectiveDivergence {
        /// The mask of the waiting lane.
        mask: u32,
        /// The thread that does not come; the waiting thread itself if it is not in its own mask.
        other_thread: u32,
        /// What that one does instead.
        other: Elsewhere,
    },
    /// A shuffle reads a lane that takes no part in it.
    InactiveSource {
        /// The lane that is read.
        lane: u32,
        /// The lanes that take part.
        mask: u32,
    },
    /// All threads wait for memory that no thread will write.
    Deadlock {
        /// Threads that poll memory.
        polling: usize,
        /// Threads that wait for those, at a barrier or in a collective.
        waiting: usize,
    },
    /// The kernel gave up by itself.
    Trap,
    /// The kernel panicked.
    Panic {
        /// The message.
        message: String,
    },
}

/// How a thread used memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// A plain load.
    Read,
    /// A plain store.
    Write,
    /// An atomic access of any sort.
    Atomic,
}

/// What a lane does that is missed in a collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Elsewhere {
    /// It has returned.
    Returned,
    /// It is not in the mask that it passed.
    NotInMask,
    /// It waits at the block's barrier.
    AtBarrier(&'static Location<'static>),
    /// It is in another collective, or in this one with another mask.
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
        // Arguments are quoted; places in memory are words already.
        let quoted = |buffer: &str| if buffer.contains(' ') { buffer.to_owned() } else { format!("`{buffer}`") };
        match self {
            Self::OutOfBounds { buffer, index, len } => {
                let buffer = quoted(buffer);
                write!(f, "index {index} is out of bounds of {buffer}, seen through a view of {len} elements")
            }
            Self::Misaligned { buffer, index, align } => {
                let buffer = quoted(buffer);
                write!(f, "the access to {buffer} at index {index} is not aligned to {align} bytes")
            }
            Self::Uninitialised { buffer, index } => {
                // Memory of a block is written by the block itself, so it is the order that is wrong.
                let hint = if buffer.contains("shared memory") { " yet: is a barrier missing?" } else { "" };
                let buffer = quoted(buffer);
                write!(f, "{buffer} is read at index {index}, where nothing was written{hint}")
            }
            Self::Freed { buffer, index, by } => {
                let buffer = quoted(buffer);
                write!(f, "{buffer} is used at index {index}, but its memory was freed before the launch")?;
                match by {
                    Some(by) => write!(f, ", at {by}"),
                    None => Ok(()),
                }
            }
            Self::NotGiven { what } => write!(f, "the address was computed and leads to {what}"),
            Self::Race { buffer, index, access, other_block, other_thread, other_access, other_location } => write!(
                f,
                "race on {} at index {index}: {access} here, {other_access} by block {other_block}, thread {other_thread} \
                 at {other_location}, and nothing orders the two",
                quoted(buffer)
            ),
            Self::SharedOverflow { end, declared } => {
                write!(f, "a piece of shared memory ends at byte {end}, but the kernel declares {declared} bytes")
            }
            Self::BarrierDivergence { other_thread, other_location } => {
                write!(f, "waits at a barrier, but thread {other_thread} of the block ")?;
                match other_location {
                    Some(location) => write!(f, "waits at another one, at {location}"),
                    None => write!(f, "has returned"),
                }
            }
            Self::CollectiveDivergence { mask, other_thread, other } => {
                write!(f, "calls a collective with mask {mask:#010x}, but thread {other_thread} {other}")
            }
            Self::InactiveSource { lane, mask } => {
                write!(f, "shuffles from lane {lane}, which is not in mask {mask:#010x}")
            }
            Self::Deadlock { polling, waiting } => write!(
                f,
                "deadlock: {polling} threads poll memory that no thread writes, {waiting} threads wait for those"
            ),
            Self::Trap => write!(f, "trap"),
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
            Self::NotInMask => write!(f, "is not in it"),
            Self::AtBarrier(location) => write!(f, "waits at the block's barrier, at {location}"),
            Self::InCollective { mask, location } => {
                write!(f, "is in a collective with mask {mask:#010x}, at {location}")
            }
        }
    }
}

/// A view as a fault saw it: where it starts, the byte in question, the size of an element.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub base: usize,
    pub byte: usize,
    pub element_bytes: usize,
    /// The start of the block's shared memory, if that is where the place lies.
    pub shared: Option<usize>,
}

/// A fault as the thread that is caught reports it, before memory has got its names.
#[derive(Clone, Debug)]
pub(crate) struct Caught {
    pub kind: FaultKind,
    /// Names the buffer that `kind` is about.
    pub place: Option<Place>,
    pub location: Option<Site>,
}

impl Caught {
    pub fn new(kind: FaultKind, location: Option<Site>) -> Self {
        Self { kind, place: None, location }
    }

    /// Names the buffer: the argument that holds the place, or the place in shared memory.
    pub fn named<K: Kernel>(mut self, kernel: &K, block: u32, thread: u32) -> Fault {
        if let Some(place) = self.place {
            let (name, element) = place.name(kernel);
            match &mut self.kind {
                FaultKind::OutOfBounds { buffer, .. } | FaultKind::Misaligned { buffer, .. } => *buffer = name,
                FaultKind::Uninitialised { buffer, index }
                | FaultKind::Freed { buffer, index, .. }
                | FaultKind::Race { buffer, index, .. } => {
                    (*buffer, *index) = (name, element);
                }
                _ => {}
            }
        }
        Fault { kernel: K::NAME, block, thread, kind: self.kind, location: self.location }
    }
}

impl Place {
    /// The buffer's name and the element of it.
    fn name<K: Kernel>(&self, kernel: &K) -> (String, usize) {
        if let Some(start) = self.shared {
            let name = format!("shared memory at byte {}", self.base - start);
            return (name, (self.byte - self.base) / self.element_bytes.max(1));
        }
        // The first argument that holds the place. A view that begins where its buffer ends is empty, and belongs to it
        // unless another buffer begins there.
        // A view that was moved begins elsewhere; then it is the byte that counts.
        let (mut inside, mut behind): (Option<(&'static str, Buffer)>, _) = (None, None);
        let mut at_byte = None;
        kernel.params(&mut |name, buffer| {
            let end = buffer.address + buffer.len * buffer.element_bytes;
            if (buffer.address..end).contains(&self.base) {
                inside = inside.or(Some((name, buffer)));
            } else if self.base == end {
                behind = behind.or(Some((name, buffer)));
            }
            if (buffer.address..end).contains(&self.byte) {
                at_byte = at_byte.or(Some((name, buffer)));
            }
        });
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
