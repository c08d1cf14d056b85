//! What can go wrong, and what to do about it.

use super::cpu::Fault;
use super::device::DeviceKind;
use std::fmt;

/// Every failure of this crate and of the dictionaries built on it. Each case says what was asked, what was there, and
/// where it helps, what to do.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no NVIDIA driver on this machine.
    #[error("no NVIDIA driver was found (libcuda could not be loaded): install one, or use the CPU device")]
    DriverMissing,

    /// The NVIDIA driver is older than this crate can use.
    #[error(
        "the NVIDIA driver supports CUDA {}.{}, but {}.{} is needed: update the driver, or use the CPU device",
        found.0, found.1, needed.0, needed.1
    )]
    DriverTooOld {
        /// The CUDA version that the driver supports.
        found: (u32, u32),
        /// The oldest one that will do.
        needed: (u32, u32),
    },

    /// There is no GPU of that number.
    #[error("GPU {asked} was asked for, but the driver sees {available} (they are numbered from 0)")]
    NoSuchDevice {
        /// The number that was asked for.
        asked: usize,
        /// How many GPUs there are.
        available: usize,
    },

    /// The name of a device was not understood.
    #[error("`{asked}` names no device: it is one of `cpu`, `cpu-checked`, `cuda` and `cuda:N`, N a number from 0")]
    UnknownDevice {
        /// The name that was given.
        asked: String,
    },

    /// The GPU lacks something that every call of this crate needs.
    #[error("{device} does not support {needs}, which is needed: use another GPU or the CPU device")]
    DeviceUnsupported {
        /// The GPU.
        device: String,
        /// What it lacks.
        needs: &'static str,
    },

    /// A call that is about CUDA was given another device.
    #[error("a CUDA device is needed, but the device is `{device}`")]
    NotCuda {
        /// The device that was given.
        device: DeviceKind,
    },

    /// There is not enough memory.
    #[error("{requested} bytes of memory were asked for, but {free} of {total} are free")]
    OutOfMemory {
        /// Bytes that were asked for; `usize::MAX` if they cannot be counted.
        requested: usize,
        /// Bytes that are free.
        free: usize,
        /// All bytes there are, or the limit that was set.
        total: usize,
    },

    /// Two lengths that must agree do not.
    #[error("{what} has {found} elements, but {expected} are needed")]
    LengthMismatch {
        /// Whose length is wrong.
        what: &'static str,
        /// The length that it must have.
        expected: usize,
        /// The length that it has.
        found: usize,
    },

    /// More of something than a call takes, or nothing where it needs one.
    #[error("{asked} {what} were given: at least one and at most {limit} can be")]
    TooMany {
        /// What there is too much of.
        what: &'static str,
        /// How many were given.
        asked: usize,
        /// How many there may be.
        limit: usize,
    },

    /// A range reaches beyond the buffer, or ends before it starts.
    #[error("the range {start}..{end} does not lie within the {len} elements")]
    RangeOutside {
        /// First index of the range.
        start: usize,
        /// Index after the last one.
        end: usize,
        /// Elements that there are.
        len: usize,
    },

    /// Bits of a key that it does not have.
    #[error("bits {start}..{end} were asked for, but the keys have {bits} bits: take a range within 0..{bits}")]
    BitRange {
        /// The first bit asked for.
        start: u32,
        /// The end of the bits asked for.
        end: u32,
        /// The bits of a key.
        bits: u32,
    },

    /// An input that is too long for an operation.
    #[error("{what} takes at most {limit} elements, but there are {len}: split them")]
    TooLong {
        /// The operation.
        what: &'static str,
        /// The elements given.
        len: usize,
        /// The elements possible.
        limit: usize,
    },

    /// Offsets of segments that decrease, or that reach beyond the items.
    #[error(
        "offset {index} of the segments is {offset}, but it must be at least {previous}, the one before it, and at most \
         {len}, the number of items"
    )]
    InvalidOffsets {
        /// The first offset that is wrong.
        index: usize,
        /// What it says.
        offset: u64,
        /// The offset before it; 0 for the first one.
        previous: u64,
        /// How many items there are.
        len: usize,
    },

    /// A launch of no blocks.
    #[error("kernel `{kernel}` was launched with 0 blocks: leave the launch out when there is nothing to do")]
    EmptyLaunch {
        /// The kernel.
        kernel: &'static str,
    },

    /// A launch asks for more than the device has.
    #[error("kernel `{kernel}` asks for {asked} {what}, but the device allows {limit}")]
    LaunchTooLarge {
        /// The kernel.
        kernel: &'static str,
        /// What there is too much of.
        what: &'static str,
        /// How much was asked for.
        asked: usize,
        /// How much there may be.
        limit: usize,
    },

    /// The kernel was not compiled for GPUs with these types.
    #[error(
        "there is no PTX for the kernel type `{kernel}`: name it in `gpu_primitives::instances!` and rebuild the PTX"
    )]
    NoInstance {
        /// The kernel type.
        kernel: &'static str,
    },

    /// A kernel on the CPU, or an operator in one, has called this library's host side.
    #[error("a kernel, or an operator in one, called the host: device code cannot use streams and device memory")]
    HostCallInKernel,

    /// Two crates of the program name the same kernel in `instances!`, with PTX that differs.
    #[error(
        "two crates have PTX for the kernel `{kernel}` and it differs (entries `{}` and `{}`): name the kernel in one of them \
         alone, or rebuild both with the same compiler",
        names[0], names[1]
    )]
    AmbiguousInstance {
        /// The kernel type.
        kernel: &'static str,
        /// The entries' names.
        names: [&'static str; 2],
    },

    /// The driver could not compile a kernel's PTX for this GPU.
    #[error("the driver rejected the PTX of kernel `{kernel}` for {device}: {log}")]
    PtxRejected {
        /// The kernel.
        kernel: &'static str,
        /// The GPU.
        device: String,
        /// What the driver said.
        log: String,
    },

    /// A kernel did something that no kernel may do; found by the CPU executor.
    #[error("{0}")]
    KernelFault(Box<Fault>),

    /// A kernel crashed on the GPU, and the device is lost with it: the process must be started anew to use it again.
    #[error("a kernel crashed the GPU ({message}); {}. Run it on `cpu-checked` to learn where", suspects(kernels))]
    KernelCrashed {
        /// The latest kernels that were launched on the stream and not known to have ended well, oldest first.
        kernels: Vec<&'static str>,
        /// What the driver said.
        message: String,
    },

    /// The device was lost in an earlier call.
    #[error("the device was lost earlier and cannot be used until the process is started anew: {cause}")]
    DeviceLost {
        /// What happened then.
        cause: String,
    },

    /// Things of two devices were used together.
    #[error("{what} belongs to a device `{found}`, but it was used with another one, `{expected}`")]
    WrongDevice {
        /// What is on the wrong device.
        what: &'static str,
        /// The device that it is on.
        found: DeviceKind,
        /// The device that it must be on.
        expected: DeviceKind,
    },

    /// The host read device memory that nobody has written; found by the checked CPU device.
    #[error("element {index} was read, but nothing was ever written there")]
    UninitialisedRead {
        /// The first such element, counted from the start of what was read.
        index: usize,
    },

    /// Something that cannot be part of a graph was done while recording one.
    #[error("{what} cannot be recorded in a graph: do it before the recording, or after a launch")]
    NotRecordable {
        /// What was done.
        what: &'static str,
    },

    /// Reading or writing a file failed.
    #[error("reading or writing failed: {0}")]
    Io(#[from] std::io::Error),

    /// A file that is damaged, cut off, or not what it should be. Nothing was loaded.
    #[error("the file cannot be loaded: {what} (found at byte {at})")]
    InvalidFile {
        /// What is wrong.
        what: String,
        /// How far it was read.
        at: u64,
    },

    /// A setting outside of its range.
    #[error("{what} is {asked}, but it must be {allowed}")]
    InvalidOption {
        /// The setting.
        what: &'static str,
        /// What it was set to.
        asked: String,
        /// What it may be set to.
        allowed: &'static str,
    },

    /// A hash table has no room for all keys.
    #[error(
        "{unplaced} of {keys} keys found no place in {what} of {slots} slots: let it grow, or build it with a lower load \
         factor"
    )]
    TableFull {
        /// The table.
        what: &'static str,
        /// How many keys found no place.
        unplaced: u64,
        /// How many keys there are, these included.
        keys: u64,
        /// How many slots the table has.
        slots: u64,
    },

    /// Another failure of a driver call.
    #[error("{call} failed with {code}: {message}")]
    Driver {
        /// The function of the driver.
        call: &'static str,
        /// The name of the error.
        code: String,
        /// What the driver says about it.
        message: String,
    },
}

/// The error if a length is not the one that is needed.
pub(crate) fn expect_len(what: &'static str, expected: usize, found: usize) -> Result<(), Error> {
    if found == expected { Ok(()) } else { Err(Error::LengthMismatch { what, expected, found }) }
}

/// The error if there is less room than is needed.
pub(crate) fn expect_room(what: &'static str, expected: usize, found: usize) -> Result<(), Error> {
    if found >= expected { Ok(()) } else { Err(Error::LengthMismatch { what, expected, found }) }
}

fn suspects(kernels: &[&str]) -> String {
    let exactly = "run with GPU_PRIMITIVES_SYNC=1 to learn which one";
    match kernels {
        [] => format!("{exactly} it was"),
        [one] => format!("it was `{one}`"),
        many => format!("it was one of `{}`: {exactly}", many.join("`, `")),
    }
}

/// The message: it is what `fn main() -> Result<(), Error>` and `unwrap` print.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_carry_the_numbers() {
        let message = Error::DriverTooOld { found: (11, 2), needed: (11, 4) }.to_string();
        assert!(message.contains("CUDA 11.2") && message.contains("11.4"), "{message}");
        let message = Error::OutOfMemory { requested: 30, free: 20, total: 25 }.to_string();
        assert!(message.contains("30") && message.contains("20") && message.contains("25"), "{message}");
        let message = Error::KernelCrashed { kernels: vec!["sort", "scan"], message: "bad".into() }.to_string();
        assert!(message.contains("`sort`, `scan`"), "{message}");
    }

    #[test]
    fn errors_travel_between_threads() {
        fn travels<T: Send + Sync + 'static>() {}
        travels::<Error>();
    }
}
