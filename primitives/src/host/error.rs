//! Errors, and what to do about them.

use super::device_kind::DeviceKind;
use crate::host::executor::Fault;
use std::fmt;
use std::path::PathBuf;

/// All errors of this crate and of the dictionaries built on it. Each variant says what was requested, what was
/// available and, where possible, what to do.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no NVIDIA driver on this machine.
    #[error("no NVIDIA driver found (libcuda could not be loaded): install the driver, or use the CPU device")]
    DriverMissing,

    /// The NVIDIA driver is older than this crate can use.
    #[error(
        "the NVIDIA driver supports CUDA {}.{}, but {}.{} is required: update the driver, or use the CPU device",
        found.0, found.1, needed.0, needed.1
    )]
    DriverTooOld {
        /// The CUDA version that the driver supports.
        found: (u32, u32),
        /// The oldest version that is supported.
        needed: (u32, u32),
    },

    /// There is no GPU with that number.
    #[error("GPU {asked} was requested, but there are only {available} GPUs, numbered from 0: use a smaller number")]
    NoSuchDevice {
        /// The requested number.
        asked: usize,
        /// The number of GPUs.
        available: usize,
    },

    /// The device name is unknown.
    #[error("unknown device `{asked}`: use `cpu`, `cpu-checked`, `cuda`, or `cuda:N` for GPU number N, from 0")]
    UnknownDevice {
        /// The name that was given.
        asked: String,
    },

    /// The GPU lacks a feature that this crate always needs.
    #[error("{device} does not support {needs}, which is required: use another GPU, or the CPU device")]
    DeviceUnsupported {
        /// The GPU.
        device: String,
        /// The missing feature.
        needs: &'static str,
    },

    /// A CUDA-specific call was given another device.
    #[error("this call requires a CUDA device, but was given the device `{device}`: pass a CUDA device")]
    NotCuda {
        /// The device that was given.
        device: DeviceKind,
    },

    /// There is not enough memory.
    #[error("{requested} bytes of memory were requested, but only {free} of {total} are free: free memory or use less")]
    OutOfMemory {
        /// The requested bytes; `usize::MAX` if the size overflows.
        requested: usize,
        /// The free bytes.
        free: usize,
        /// The total bytes, or the limit that was set.
        total: usize,
    },

    /// Two lengths that must be equal differ.
    #[error("{what} has {found} elements, but {expected} are required: pass that many")]
    LengthMismatch {
        /// The object whose length is wrong.
        what: &'static str,
        /// The required length.
        expected: usize,
        /// The actual length.
        found: usize,
    },

    /// A call was given more items than it accepts, or none where it requires at least one.
    #[error("{asked} {what} were requested, but 1 to {limit} are allowed: use a number in this range")]
    TooMany {
        /// The resource that is exceeded.
        what: &'static str,
        /// The number that was given.
        asked: usize,
        /// The maximum number.
        limit: usize,
    },

    /// A range ends outside the buffer, or before it starts.
    #[error("the range {start}..{end} is out of bounds for {len} elements: use a range within 0..{len}")]
    RangeOutside {
        /// The first index of the range.
        start: usize,
        /// The index after the last one.
        end: usize,
        /// The number of elements.
        len: usize,
    },

    /// A bit range is outside the key.
    #[error("bits {start}..{end} were requested, but the keys have {bits} bits: use a range within 0..{bits}")]
    BitRange {
        /// The first requested bit.
        start: u32,
        /// The end of the requested bits.
        end: u32,
        /// The number of bits in a key.
        bits: u32,
    },

    /// An input is too long for an operation.
    #[error("{what} accepts at most {limit} elements, but {len} were given: split the input")]
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
        "segment offset {index} is {offset}, but it must be at least {previous} (the offset before it) and at most \
         {len} (the number of items): pass ascending offsets"
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
    #[error("kernel `{kernel}` was launched with 0 blocks: skip the launch when there is nothing to do")]
    EmptyLaunch {
        /// The kernel.
        kernel: &'static str,
    },

    /// A kernel was launched with a view that was made for another stream. Only the checked CPU device finds this.
    #[error(
        "kernel `{kernel}` was launched with a view that was made for another stream: pass the stream of the launch to \
         `view` or `view_mut`"
    )]
    ViewOfOtherStream {
        /// The kernel.
        kernel: &'static str,
    },

    /// A launch requests more than the device offers.
    #[error("kernel `{kernel}` requests {asked} {what}, but the device allows at most {limit}: use a smaller launch")]
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
        "there is no PTX for the kernel type `{kernel}`: list it in `gpu_primitives::instances!` in its crate, and build that \
         crate's PTX with gpu-kernel-builder, which needs a nightly toolchain with rust-src (see docs/own-kernel). A crate \
         that was built without that toolchain runs on the CPU alone"
    )]
    NoInstance {
        /// The kernel type.
        kernel: &'static str,
    },

    /// Kernels are to run on the CPU, or to be simulated there, but were not compiled for it.
    #[error(
        "{what} needs the feature `{feature}` of gpu-primitives, which compiles kernels for it: turn it on in Cargo.toml, or \
         use another device"
    )]
    NeedsFeature {
        /// The kernel or the device.
        what: &'static str,
        /// The feature.
        feature: &'static str,
    },

    /// A kernel on the CPU, or an operator inside one, called the host side of this library.
    #[error(
        "a kernel, or an operator inside one, used a stream or device memory, which only the host can do: move that \
         call out of the kernel"
    )]
    HostCallInKernel,

    /// Two crates of the program list the same kernel in `instances!`, with different PTX.
    #[error(
        "two crates have different PTX for the kernel `{kernel}` (entries `{}` and `{}`): list the kernel in only one \
         of them, or rebuild both with the same compiler",
        names[0], names[1]
    )]
    AmbiguousInstance {
        /// The kernel type.
        kernel: &'static str,
        /// The names of the two entries.
        names: [&'static str; 2],
    },

    /// An operator cannot be recorded, so no GPU can run it.
    #[error("the function `{function}` of the operator `{operator}` cannot be recorded for GPUs: {reason}")]
    Unrecordable {
        /// The type of the operator.
        operator: &'static str,
        /// The name of the function.
        function: &'static str,
        /// Why it cannot be recorded, and what to write instead.
        reason: String,
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
    #[error("a kernel crashed on the GPU ({message}); {}. Run it on `cpu-checked` to find the line", suspects(kernels))]
    KernelCrashed {
        /// The most recent kernels launched on the stream that are not known to have succeeded, oldest first.
        kernels: Vec<&'static str>,
        /// The driver's message.
        message: String,
    },

    /// The device was lost in an earlier call.
    #[error("the device was lost by an earlier error: restart the process to use it again. The error was: {cause}")]
    DeviceLost {
        /// The earlier error.
        cause: String,
    },

    /// Objects of two devices were used together.
    #[error("{what} is on device `{found}`, but was used with device `{expected}`: use objects of the same device")]
    WrongDevice {
        /// The object on the wrong device.
        what: &'static str,
        /// The device it is on.
        found: DeviceKind,
        /// The device it must be on.
        expected: DeviceKind,
    },

    /// An object of one CUDA context was used with another one of the same GPU, or of another GPU.
    #[error(
        "{what} does not belong to the CUDA context of the device `cuda:{ordinal}` that it was used with: use objects of the \
         same context, or make a device of the other context"
    )]
    WrongContext {
        /// The object of another context.
        what: &'static str,
        /// The number of the device's GPU.
        ordinal: usize,
    },

    /// An address is not a multiple of what its elements need.
    #[error("{what} is at address {address:#x}, but its elements need a multiple of {alignment}: pass aligned memory")]
    Misaligned {
        /// The memory.
        what: &'static str,
        /// Its address.
        address: usize,
        /// The alignment of an element.
        alignment: usize,
    },

    /// The host read device memory that was never written; found by the checked CPU device.
    #[error("the host read element {index} of device memory, which is uninitialised: write it first")]
    UninitialisedRead {
        /// The first such element, counted from the start of the range that was read.
        index: usize,
    },

    /// An operation that cannot be part of a graph was attempted while recording one.
    #[error("{what} cannot be recorded in a graph: do it before the recording starts, or after the graph's launch")]
    NotRecordable {
        /// The operation.
        what: &'static str,
    },

    /// A device that only plans was asked for what has to be computed.
    #[error("the device only plans, so {what} is not possible: do it on a device that computes")]
    OnlyPlanned {
        /// What was asked for.
        what: &'static str,
    },

    /// Reading or writing a file failed.
    #[error("reading or writing a file failed: {0}")]
    Io(#[from] std::io::Error),

    /// A file is damaged, truncated, or of the wrong kind. Nothing was loaded.
    #[error("the file cannot be loaded: {what} (at byte {at})")]
    InvalidFile {
        /// The problem.
        what: String,
        /// The position in the file where it was found.
        at: u64,
    },

    /// A folder of checkpoints has lost a file that its dictionary consists of. Nothing was read or changed.
    #[error(
        "the checkpoint in {} is damaged: the file `{missing}` is missing. Restore the folder from a copy. If you do not \
         need what is left in it, delete the folder or use another one",
        folder.display()
    )]
    DamagedFolder {
        /// The folder.
        folder: PathBuf,
        /// The name of the missing file.
        missing: String,
    },

    /// A folder already holds a newer checkpoint of the same dictionary. The folder is unchanged.
    #[error(
        "{} already holds a newer checkpoint of this dictionary: after update {held}, and this is the state after update \
         {given}. So the folder was left as it is. Nothing is lost: write a checkpoint of the dictionary as it is now, or of \
         a newer snapshot",
        folder.display()
    )]
    NewerCheckpoint {
        /// The folder.
        folder: PathBuf,
        /// The number of updates of the dictionary before the checkpoint in the folder.
        held: u64,
        /// The number of updates before the state that was to be written.
        given: u64,
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

    /// A dictionary has upserts that are not combined with older values yet, and the call cannot combine them.
    #[error("{what} needs a dictionary whose upserts are combined: call `cleanup` first")]
    PendingUpserts {
        /// What was asked for.
        what: &'static str,
    },

    /// A hash table has no room for all keys.
    #[error(
        "{unplaced} of {keys} keys do not fit into {what} of {slots} slots: let it grow, or build it with a lower load \
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

    /// The ranks that share a dictionary made different calls. Nothing has changed on any of them.
    #[error(
        "the ranks do not agree, so nothing has changed: {what}. Make the same calls in the same order on every rank"
    )]
    RanksDisagree {
        /// What they called.
        what: String,
    },

    /// Another rank could not do its part of a call. Nothing has changed on any rank.
    #[error("rank {rank} could not do its part of the call, so nothing has changed on any rank: {cause}")]
    RankFailed {
        /// The rank.
        rank: usize,
        /// The error on that rank.
        cause: String,
    },

    /// A part of a dictionary that several ranks share cannot be reached any more, or is not as it was. Every later call
    /// returns this error.
    #[error("the dictionary is lost: {cause}. Load it again from its last files, with the ranks that are left")]
    DictionaryLost {
        /// What happened.
        cause: String,
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

/// Checks a length.
///
/// # Errors
/// [`Error::LengthMismatch`] if the length is not the expected one. `what` names the object in the message.
pub fn expect_len(what: &'static str, expected: usize, found: usize) -> Result<(), Error> {
    if found == expected { Ok(()) } else { Err(Error::LengthMismatch { what, expected, found }) }
}

/// Returns an error if there is less room than needed.
pub(crate) fn expect_room(what: &'static str, expected: usize, found: usize) -> Result<(), Error> {
    if found >= expected { Ok(()) } else { Err(Error::LengthMismatch { what, expected, found }) }
}

fn suspects(kernels: &[&str]) -> String {
    let exactly = "run with GPU_PRIMITIVES_SYNC=1 to find out which one";
    match kernels {
        [] => exactly.to_owned(),
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
