//! Errors, and what to do about them.

use super::cpu::Fault;
use super::device::DeviceKind;
use std::fmt;

/// All errors of this crate and of the dictionaries built on it. Each variant says what was requested, what was
/// available and, where possible, what to do.
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
        /// The oldest version that is supported.
        needed: (u32, u32),
    },

    /// There is no GPU with that number.
    #[error("GPU {asked} was asked for, but the driver sees {available} (they are numbered from 0)")]
    NoSuchDevice {
        /// The requested number.
        asked: usize,
        /// The number of GPUs.
        available: usize,
    },

    /// The device name is unknown.
    #[error("`{asked}` names no device: it is one of `cpu`, `cpu-checked`, `cuda` and `cuda:N`, N a number from 0")]
    UnknownDevice {
        /// The name that was given.
        asked: String,
    },

    /// The GPU lacks a feature that this crate always needs.
    #[error("{device} does not support {needs}, which is needed: use another GPU or the CPU device")]
    DeviceUnsupported {
        /// The GPU.
        device: String,
        /// The missing feature.
        needs: &'static str,
    },

    /// A CUDA-specific call was given another device.
    #[error("a CUDA device is needed, but the device is `{device}`")]
    NotCuda {
        /// The device that was given.
        device: DeviceKind,
    },

    /// There is not enough memory.
    #[error("{requested} bytes of memory were asked for, but {free} of {total} are free")]
    OutOfMemory {
        /// The requested bytes; `usize::MAX` if the size overflows.
        requested: usize,
        /// The free bytes.
        free: usize,
        /// The total bytes, or the limit that was set.
        total: usize,
    },

    /// Two lengths that must be equal differ.
    #[error("{what} has {found} elements, but {expected} are needed")]
    LengthMismatch {
        /// The object whose length is wrong.
        what: &'static str,
        /// The required length.
        expected: usize,
        /// The actual length.
        found: usize,
    },

    /// A call got more items than it takes, or none where it needs at least one.
    #[error("{asked} {what} were given: at least one and at most {limit} can be")]
    TooMany {
        /// The resource that is exceeded.
        what: &'static str,
        /// The number that was given.
        asked: usize,
        /// The maximum number.
        limit: usize,
    },

    /// A range ends outside the buffer, or before it starts.
    #[error("the range {start}..{end} does not lie within the {len} elements")]
    RangeOutside {
        /// The first index of the range.
        start: usize,
        /// The index after the last one.
        end: usize,
        /// The number of elements.
        len: usize,
    },

    /// A bit range is outside the key.
    #[error("bits {start}..{end} were asked for, but the keys have {bits} bits: take a range within 0..{bits}")]
    BitRange {
        /// The first requested bit.
        start: u32,
        /// The end of the requested bits.
        end: u32,
        /// The number of bits in a key.
        bits: u32,
    },

    /// An input is too long for an operation.
    #[error("{what} takes at most {limit} elements, but there are {len}: split them")]
    TooLong {
        /// The operation.
        what: &'static str,
        /// The number of elements given.
        len: usize,
        /// The maximum number of elements.
        limit: usize,
    },

    /// Segment offsets decrease, or exceed the number of items.
    #[error(
        "offset {index} of the segments is {offset}, but it must be at least {previous}, the one before it, and at most \
         {len}, the number of items"
    )]
    InvalidOffsets {
        /// The index of the first wrong offset.
        index: usize,
        /// The value of that offset.
        offset: u64,
        /// The preceding offset; 0 for the first one.
        previous: u64,
        /// The number of items.
        len: usize,
    },

    /// A kernel was launched with zero blocks.
    #[error("kernel `{kernel}` was launched with 0 blocks: leave the launch out when there is nothing to do")]
    EmptyLaunch {
        /// The kernel.
        kernel: &'static str,
    },

    /// A launch requests more than the device offers.
    #[error("kernel `{kernel}` asks for {asked} {what}, but the device allows {limit}")]
    LaunchTooLarge {
        /// The kernel.
        kernel: &'static str,
        /// The resource that is exceeded.
        what: &'static str,
        /// The requested amount.
        asked: usize,
        /// The maximum.
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

    /// A kernel on the CPU, or an operator inside one, called the host side of this library.
    #[error("a kernel, or an operator in one, called the host: device code cannot use streams and device memory")]
    HostCallInKernel,

    /// Two crates of the program list the same kernel in `instances!`, with different PTX.
    #[error(
        "two crates have PTX for the kernel `{kernel}` and it differs (entries `{}` and `{}`): name the kernel in one of them \
         alone, or rebuild both with the same compiler",
        names[0], names[1]
    )]
    AmbiguousInstance {
        /// The kernel type.
        kernel: &'static str,
        /// The names of the two entries.
        names: [&'static str; 2],
    },

    /// The driver could not compile a kernel's PTX for this GPU.
    #[error("the driver rejected the PTX of kernel `{kernel}` for {device}: {log}")]
    PtxRejected {
        /// The kernel.
        kernel: &'static str,
        /// The GPU.
        device: String,
        /// The driver's message.
        log: String,
    },

    /// The CPU executor found an invalid operation in a kernel.
    #[error("{0}")]
    KernelFault(Box<Fault>),

    /// A kernel crashed on the GPU. The device is lost: restart the process to use it again.
    #[error("a kernel crashed the GPU ({message}); {}. Run it on `cpu-checked` to learn where", suspects(kernels))]
    KernelCrashed {
        /// The most recent kernels launched on the stream that are not known to have succeeded, oldest first.
        kernels: Vec<&'static str>,
        /// The driver's message.
        message: String,
    },

    /// The device was lost in an earlier call.
    #[error("the device was lost earlier and cannot be used until the process is started anew: {cause}")]
    DeviceLost {
        /// The earlier error.
        cause: String,
    },

    /// Objects of two devices were used together.
    #[error("{what} belongs to a device `{found}`, but it was used with another one, `{expected}`")]
    WrongDevice {
        /// The object on the wrong device.
        what: &'static str,
        /// The device it is on.
        found: DeviceKind,
        /// The device it must be on.
        expected: DeviceKind,
    },

    /// The host read device memory that was never written; found by the checked CPU device.
    #[error("element {index} was read, but nothing was ever written there")]
    UninitialisedRead {
        /// The first such element, counted from the start of the range that was read.
        index: usize,
    },

    /// An operation that cannot be part of a graph was attempted while recording one.
    #[error("{what} cannot be recorded in a graph: do it before the recording, or after a launch")]
    NotRecordable {
        /// The operation.
        what: &'static str,
    },

    /// Reading or writing a file failed.
    #[error("reading or writing failed: {0}")]
    Io(#[from] std::io::Error),

    /// A file is damaged, truncated, or of the wrong kind. Nothing was loaded.
    #[error("the file cannot be loaded: {what} (found at byte {at})")]
    InvalidFile {
        /// The problem.
        what: String,
        /// The position in the file where it was found.
        at: u64,
    },

    /// An option is outside its range.
    #[error("{what} is {asked}, but it must be {allowed}")]
    InvalidOption {
        /// The option.
        what: &'static str,
        /// The value it was set to.
        asked: String,
        /// The allowed values.
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
        /// The number of keys that found no slot.
        unplaced: u64,
        /// The total number of keys, including these.
        keys: u64,
        /// The number of slots in the table.
        slots: u64,
    },

    /// Any other failure of a driver call.
    #[error("{call} failed with {code}: {message}")]
    Driver {
        /// The driver function.
        call: &'static str,
        /// The name of the error.
        code: String,
        /// The driver's description of the error.
        message: String,
    },
}

/// Returns an error unless a length is the expected one.
pub(crate) fn expect_len(what: &'static str, expected: usize, found: usize) -> Result<(), Error> {
    if found == expected { Ok(()) } else { Err(Error::LengthMismatch { what, expected, found }) }
}

/// Returns an error if there is less room than needed.
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

/// Prints the message: this is what `fn main() -> Result<(), Error>` and `unwrap` show.
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
