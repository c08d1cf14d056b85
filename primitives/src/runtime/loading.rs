//! What loading kernels has cost.

use super::device::{Backend, Device};
use super::error::Error;
use super::fill::Operators;
use super::instance::Instance;
use std::time::Duration;

/// What loading kernels has cost a device so far. The CPU loads nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Loading {
    /// The number of kernels, counted once for each operator.
    pub kernels: usize,
    /// The time that the driver took to compile and load them.
    pub time: Duration,
    /// The kernel that took longest, and its time.
    pub slowest: Option<(&'static str, Duration)>,
}

impl Device {
    /// Returns whether the device loads kernels: a CPU does not.
    pub(crate) fn loads_kernels(&self) -> bool {
        matches!(self.backend(), Backend::Cuda(_))
    }

    /// Loads a kernel for its operators.
    pub(crate) fn load(&self, instance: &'static Instance, operators: Operators) -> Result<(), Error> {
        match self.backend() {
            Backend::Cuda(device) => device.preload(instance, operators),
            Backend::Cpu(_) => Ok(()),
        }
    }

    /// Returns what loading kernels has cost so far.
    #[must_use]
    pub fn loading(&self) -> Loading {
        match self.backend() {
            Backend::Cuda(device) => device.loading(),
            Backend::Cpu(_) => Loading::default(),
        }
    }
}
