//! Loading kernels before they are needed, and what loading has cost.

use super::device::{Backend, Device};
use super::error::Error;
use super::fill::{Operators, has_hole_for};
use super::instance::Instance;
use crate::compare::{Compare, HoleOrder};
use crate::hole::Filling;
use crate::monoid::{HoleMonoid, Monoid};
use crate::multisplit::{Bucket, HoleBuckets};
use crate::select::{HolePredicate, Predicate};
use crate::sort::{HoleCode, RadixKey, SortBy};
use bytemuck::Pod;
use core::fmt;
use std::time::Duration;

/// An operator for elements of a type, to [preload](Device::preload) kernels for. Its state does not matter.
#[derive(Clone, Copy)]
pub struct Operator {
    filling: &'static Filling,
    bytes: usize,
}

impl Operator {
    /// An order, for merges, searches and segmented sorts.
    #[must_use]
    pub fn order<T: Pod, C: Compare<T>>() -> Self {
        Self { filling: HoleOrder::filling::<T, C>(), bytes: size_of::<T>() }
    }

    /// An associative operation, for scans.
    #[must_use]
    pub fn monoid<T: Pod, M: Monoid<T>>() -> Self {
        Self { filling: HoleMonoid::<u32>::filling::<T, M>(), bytes: size_of::<T>() }
    }

    /// A predicate, for selections and partitions.
    #[must_use]
    pub fn predicate<T: Pod, P: Predicate<T>>() -> Self {
        Self { filling: HolePredicate::filling::<T, P>(), bytes: size_of::<T>() }
    }

    /// A bucket function, for multisplits.
    #[must_use]
    pub fn bucket<T: Pod, B: Bucket<T>>() -> Self {
        Self { filling: HoleBuckets::filling::<T, B>(), bytes: size_of::<T>() }
    }

    /// The code of a key, for radix sorts.
    #[must_use]
    pub fn radix_key<K: RadixKey>() -> Self {
        Self { filling: HoleCode::key_filling::<K>(), bytes: size_of::<K>() }
    }

    /// An order by a number, for radix sorts.
    #[must_use]
    pub fn sort_by<K: Pod, B: SortBy<K>>() -> Self {
        Self { filling: HoleCode::filling::<K, B>(), bytes: size_of::<K>() }
    }
}

impl fmt::Debug for Operator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` of {} for elements of {} bytes", self.filling.function, (self.filling.type_name)(), self.bytes)
    }
}

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
    /// Loads the kernels that have a place for one of these operators and for nothing else. Later calls with them find them
    /// loaded. Without it, the first call loads what it needs.
    ///
    /// The driver compiles one kernel at a time, which takes a tenth of a second each unless the result is in its cache on
    /// disk; an order has about twenty kernels. To go on meanwhile, call this on another thread.
    ///
    /// ```
    /// use gpu_primitives::compare::Less;
    /// use gpu_primitives::scan::Sum;
    /// use gpu_primitives::{Device, Error, Operator};
    ///
    /// let device = Device::default()?;
    /// device.preload(&[Operator::order::<u32, Less>(), Operator::monoid::<u64, Sum>()])?;
    /// let loading = device.loading();
    /// println!("{} kernels in {:?}", loading.kernels, loading.time);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::PtxRejected`], [`Error::OutOfMemory`], and other driver errors. Kernels that were loaded before the error
    /// stay loaded.
    pub fn preload(&self, operators: &[Operator]) -> Result<(), Error> {
        let Backend::Cuda(device) = self.backend() else { return Ok(()) };
        for instance in Instance::all() {
            // With several operators, a kernel is compiled for each combination: there are too many to guess.
            if instance.holes().offsets().len() != 1 {
                continue;
            }
            let ptx = instance.ptx();
            for it in operators.iter().filter(|it| has_hole_for(&ptx, it.filling.function, it.bytes)) {
                device.preload(instance, Operators::new(instance.holes(), |_| it.filling))?;
            }
        }
        Ok(())
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
