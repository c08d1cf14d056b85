//! Loading kernels at the same time, and what loading has cost.

use super::device::{Backend, Device};
use super::fill::Operators;
use crate::form::Kernel;
use crate::hole::OperatorBody;
use crate::host::error::Error;
use crate::host::instance::{Instance, Target};
use core::fmt;
use std::time::Duration;

/// What loading kernels has cost a device so far. The CPU loads nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Loading {
    /// The number of kernels, counted once for each operator.
    pub kernels: usize,
    /// The time that the driver took to compile and load each of them, added up. Several may be loaded at the same time.
    pub time: Duration,
    /// The kernel that took longest, and its time.
    pub slowest: Option<(&'static str, Duration)>,
}

/// Names kernels.
pub type Next = fn(&mut Upcoming);

/// Kernels that will be launched: after another one, see [`Call::followed_by`](crate::kernel::Call::followed_by), or after
/// [`Stream::load`](crate::Stream::load).
pub struct Upcoming {
    first: Operators,
    pub(super) kernels: Vec<(Target, Operators)>,
}

impl Upcoming {
    /// Collects kernels. Those with holes take these operators.
    pub(super) fn after(first: Operators, next: Next) -> Self {
        let mut upcoming = Self { first, kernels: Vec::new() };
        next(&mut upcoming);
        upcoming
    }

    /// Adds a kernel. If it has [holes](crate::kernel::Hole), it takes the operators of the first one, in the same order.
    pub fn kernel<K: Kernel>(&mut self) {
        let holes = K::HOLES;
        let operators =
            if holes.offsets().is_empty() { Some(Operators::default()) } else { self.first.moved_to(holes) };
        self.kernels.extend(operators.map(|operators| (Target::of::<K>(), operators)));
    }

    /// Adds a kernel with this operator in all its holes.
    pub(crate) fn filled<K: Kernel>(&mut self, filling: &'static OperatorBody) {
        self.kernels.push((Target::of::<K>(), Operators::new(K::HOLES, |_| filling)));
    }
}

impl fmt::Debug for Upcoming {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} kernels", self.kernels.len())
    }
}

impl Device {
    /// Returns whether the device loads kernels: a CPU does not.
    pub(crate) fn loads_kernels(&self) -> bool {
        matches!(self.backend(), Backend::Cuda(_))
    }

    /// Loads kernels for their operators.
    pub(crate) fn load(&self, kernels: &[(&'static Instance, Operators)]) -> Result<(), Error> {
        match self.backend() {
            Backend::Cuda(device) => device.preload(kernels),
            Backend::Cpu(_) | Backend::Planned(_) => Ok(()),
        }
    }

    /// Loads the kernels without holes that the function names, unless they are loaded.
    pub(crate) fn load_named(&self, kernels: Next) -> Result<(), Error> {
        match self.backend() {
            Backend::Cuda(device) => device.load_missing(&Upcoming::after(Operators::default(), kernels).kernels),
            Backend::Cpu(_) | Backend::Planned(_) => Ok(()),
        }
    }

    /// Returns what loading kernels has cost so far.
    #[must_use]
    pub fn loading(&self) -> Loading {
        match self.backend() {
            Backend::Cuda(device) => device.loading(),
            Backend::Cpu(_) | Backend::Planned(_) => Loading::default(),
        }
    }
}
