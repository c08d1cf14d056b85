//! A unit of work on the CPU device: executed immediately, queued, or recorded in a graph.

use super::call::Reach;
use super::cpu::CpuDevice;
use super::host_blocks::Place;
use super::launch::Arguments;
use super::stream::{Address, ScratchBuffers};
use crate::host::error::Error;
use std::backtrace::Backtrace;
use std::sync::Arc;

/// A unit of work. Addresses are those of device memory, unless a field says otherwise.
pub(crate) enum Step {
    Zero {
        to: *mut u8,
        bytes: usize,
    },
    Copy {
        from: *const u8,
        to: *mut u8,
        bytes: usize,
    },
    /// Copies from host memory that the step owns.
    Upload {
        data: Box<[u8]>,
        to: *mut u8,
    },
    /// Copies from host memory that the caller keeps until the stream has passed the step.
    UploadLater {
        from: *const u8,
        to: *mut u8,
        bytes: usize,
    },
    /// Copies to host memory that the caller keeps until the stream has passed the step.
    Download {
        from: *const u8,
        to: *mut u8,
        bytes: usize,
        element_bytes: usize,
    },
    Free {
        address: *mut u8,
        bytes: usize,
        place: Place,
        /// Where the program freed the memory, on the checked device.
        by: Option<Arc<Backtrace>>,
    },
    Launch {
        arguments: Arguments,
        reach: Reach,
        blocks: u32,
        /// The scratch memory of its stream. A recorded launch has none: a graph zeroes its own at every launch.
        scratch: Option<Arc<ScratchBuffers>>,
    },
    Graph(Arc<[Step]>),
}

// SAFETY: a step holds addresses, which are used only when it runs, and kernels, which consist of addresses and plain
// data.
unsafe impl Send for Step {}
// SAFETY: as above.
unsafe impl Sync for Step {}

impl Step {
    /// Executes the step.
    ///
    /// # Safety
    /// The memory is valid and may be used as the step uses it. Freed memory is not used afterwards.
    pub(super) unsafe fn run(&self, cpu: &CpuDevice) -> Result<(), Error> {
        match self {
            &Self::Zero { to, bytes } => {
                // SAFETY: guaranteed by the caller. The same applies to all arms below.
                unsafe { to.write_bytes(0, bytes) };
                cpu.mark_initialised(to, bytes);
            }
            &Self::Copy { from, to, bytes } => {
                // SAFETY: same as above; source and destination of a copy do not overlap.
                unsafe { to.copy_from_nonoverlapping(from, bytes) };
                cpu.copy_initialised(from, to, bytes);
            }
            Self::Upload { data, to } => {
                // SAFETY: as above.
                unsafe { to.copy_from_nonoverlapping(data.as_ptr(), data.len()) };
                cpu.mark_initialised(*to, data.len());
            }
            &Self::UploadLater { from, to, bytes } => {
                // SAFETY: as above.
                unsafe { to.copy_from_nonoverlapping(from, bytes) };
                cpu.mark_initialised(to, bytes);
            }
            &Self::Download { from, to, bytes, element_bytes } => {
                if let Some(byte) = cpu.first_uninitialised(from, bytes) {
                    return Err(Error::UninitialisedRead { index: byte / element_bytes.max(1) });
                }
                // SAFETY: as above.
                unsafe { to.copy_from_nonoverlapping(from, bytes) };
            }
            // SAFETY: same as above. A step that frees memory runs once: graphs contain none.
            Self::Free { address, bytes, place, by } => unsafe { cpu.free(*address, *bytes, *place, by.as_ref()) },
            Self::Launch { arguments, reach, blocks, scratch } => {
                // SAFETY: the arguments are those of their kernel.
                let launch = || unsafe { cpu.launch(arguments.kernel, arguments.as_ptr(), reach, *blocks) };
                let launched = match scratch {
                    // Whoever runs a step keeps other kernels of the stream from running meanwhile.
                    Some(scratch) => scratch.clear_after_fault(launch, |Address(address), words| {
                        // SAFETY: scratch memory is freed after all launches of its stream, in the stream's order.
                        unsafe { address.write_bytes(0, words) };
                        cpu.mark_initialised(address.as_ptr().cast(), words * size_of::<u64>());
                    }),
                    None => launch(),
                };
                launched.map_err(Error::KernelFault)?;
            }
            Self::Graph(steps) => {
                for step in steps.iter() {
                    // SAFETY: as above.
                    unsafe { step.run(cpu)? };
                }
            }
        }
        Ok(())
    }
}
