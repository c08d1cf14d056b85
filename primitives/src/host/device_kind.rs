//! The kinds of devices.

use std::fmt;

/// The kind of a device. It displays as the name that [`Device::parse`](crate::Device::parse) accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DeviceKind {
    /// The CPU.
    Cpu,
    /// The CPU, with every memory access of every kernel checked.
    CpuChecked,
    /// An NVIDIA GPU.
    Cuda {
        /// The GPU's number, from 0.
        ordinal: usize,
    },
}

impl fmt::Display for DeviceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cpu => f.write_str("cpu"),
            Self::CpuChecked => f.write_str("cpu-checked"),
            Self::Cuda { ordinal } => write!(f, "cuda:{ordinal}"),
        }
    }
}
