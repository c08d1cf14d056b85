//! Loading kernels before they are needed.

use crate::buckets::{Bucket, HoleBuckets};
use crate::compare::{Compare, HoleOrder};
use crate::hole::OperatorBody;
use crate::host::instance::Instance;
use crate::host::runtime::fill::{Operators, has_hole_for, record};
use crate::key::HoleCode;
use crate::monoid::{HoleMonoid, Monoid};
use crate::select::{HolePredicate, Predicate};
use crate::sort::{RadixKey, SortBy};
use crate::{Device, Error, Stream};
use bytemuck::Pod;
use core::fmt;

/// The PTX of all kernels of this crate. Whatever names it keeps all of it in the program.
pub(crate) const ALL_PTX: &[&[&[Instance]]] = &[
    crate::bits::device::ALL_PTX,
    crate::histogram::device::kernel::ALL_PTX,
    crate::histogram::device::totals::ALL_PTX,
    crate::merge::device::kernel::ALL_PTX,
    crate::merge::device::place::ALL_PTX,
    crate::merge::device::runs::ALL_PTX,
    crate::merge_sort::device::ALL_PTX,
    crate::order_statistics::device::instances::ALL_PTX,
    crate::permute::device::ALL_PTX,
    crate::reduce::device::kernel::ALL_PTX,
    crate::reduce::device::passing::ALL_PTX,
    crate::reduce::device::segments::ALL_PTX,
    crate::runs::device::compact::ALL_PTX,
    crate::runs::device::expand::ALL_PTX,
    crate::runs::device::hashed::ALL_PTX,
    crate::runs::device::reduce::ALL_PTX,
    crate::scan::device::kernel::ALL_PTX,
    crate::scan::device::segments::ALL_PTX,
    crate::search::device::kernel::ALL_PTX,
    crate::segmented_sort::device::instances::ALL_PTX,
    crate::segmented_sort::device::number::ALL_PTX,
    crate::segments::device::edges::ALL_PTX,
    crate::segments::device::heads::ALL_PTX,
    crate::select::device::kernel::ALL_PTX,
    crate::select::device::segments::ALL_PTX,
    crate::select::device::source::ALL_PTX,
    crate::sets::device::ALL_PTX,
    crate::sort::device::instances::ALL_PTX,
    crate::sort::device::pack::ALL_PTX,
    crate::sort::device::rows::ALL_PTX,
    crate::top_k::device::instances::ALL_PTX,
    crate::transfer::device::ALL_PTX,
    crate::transform::device::ALL_PTX,
];

/// An operator for elements of a type, to [preload](Device::preload) kernels for. Its state does not matter.
#[derive(Clone, Copy)]
pub struct Operator {
    filling: &'static OperatorBody,
    bytes: usize,
    /// The kernel that writes its results, if that is what calls do.
    written_by: Option<&'static str>,
}

impl Operator {
    /// An order, for merges, searches and segmented sorts.
    #[must_use]
    pub fn order<T: Pod, C: Compare<T>>() -> Self {
        Self { filling: HoleOrder::filling::<T, C>(), bytes: size_of::<T>(), written_by: None }
    }

    /// An associative operation, for scans.
    #[must_use]
    pub fn monoid<T: Pod, M: Monoid<T>>() -> Self {
        Self { filling: HoleMonoid::<u32>::filling::<T, M>(), bytes: size_of::<T>(), written_by: None }
    }

    /// A predicate, for selections and partitions.
    #[must_use]
    pub fn predicate<T: Pod, P: Predicate<T>>() -> Self {
        Self { filling: HolePredicate::filling::<T, P>(), bytes: size_of::<T>(), written_by: None }
    }

    /// A bucket function, for multisplits.
    #[must_use]
    pub fn bucket<T: Pod, B: Bucket<T>>() -> Self {
        Self { filling: HoleBuckets::filling::<T, B>(), bytes: size_of::<T>(), written_by: None }
    }

    /// The code of a key, for radix sorts.
    #[must_use]
    pub fn radix_key<K: RadixKey>() -> Self {
        Self { filling: HoleCode::key_filling::<K>(), bytes: size_of::<K>(), written_by: Some(writer::<K::Code>()) }
    }

    /// An order by a number, for radix sorts.
    #[must_use]
    pub fn sort_by<K: Pod, B: SortBy<K>>() -> Self {
        Self { filling: HoleCode::filling::<K, B>(), bytes: size_of::<K>(), written_by: Some(writer::<B::Code>()) }
    }

    /// Records the operator now if launches on this stream would. A structure that keeps an operator for later launches calls this
    /// first, so that the call that brings the operator fails, and not a later one. This runs code of the operator's author, so the
    /// caller holds no lock.
    ///
    /// # Errors
    /// [`Error::Unrecordable`].
    #[doc(hidden)]
    pub fn record(&self, stream: &Stream) -> Result<(), Error> {
        if stream.records_operators() { record(self.filling) } else { Ok(()) }
    }
}

/// Returns the kernel that writes codes of this type.
const fn writer<C>() -> &'static str {
    match size_of::<C>() {
        4 => "transform_tiles_u32",
        8 => "transform_tiles_u64",
        16 => "transform_tiles_u64x2",
        _ => "transform_tiles_u64x4",
    }
}

impl fmt::Debug for Operator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` of {} for elements of {} bytes", self.filling.function, (self.filling.type_name)(), self.bytes)
    }
}

/// Returns the kernels of this crate that exist as PTX.
pub(crate) fn instances() -> impl Iterator<Item = &'static Instance> {
    ALL_PTX.iter().copied().flatten().copied().flatten()
}

impl Device {
    /// Loads the primitives' kernels that have a place for one of these operators and for nothing else. Later calls with them find them
    /// loaded. Without it, the first call loads what it needs.
    ///
    /// The driver takes a tenth of a second to compile a kernel, unless the result is in its cache on disk; an order has about
    /// twenty kernels. They are compiled on all cores. To go on meanwhile, call this on another thread.
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
    /// [`Error::PtxRejected`], [`Error::OutOfMemory`], and other driver errors. All other kernels are loaded.
    pub fn preload(&self, operators: &[Operator]) -> Result<(), Error> {
        if !self.loads_kernels() {
            return Ok(());
        }
        let mut kernels = Vec::new();
        for instance in instances() {
            // With several operators, a kernel is compiled for each combination: there are too many to guess.
            if instance.holes().offsets().len() != 1 {
                continue;
            }
            let ptx = instance.ptx();
            let fitting = operators.iter().filter(|it| has_hole_for(&ptx, it.filling.function, it.bytes));
            kernels.extend(fitting.map(|it| (instance, Operators::new(instance.holes(), |_| it.filling))));
            let results = operators.iter().filter(|it| it.written_by == Some(instance.name()));
            let results = results.filter_map(|it| it.filling.results);
            kernels.extend(results.map(|body| (instance, Operators::new(instance.holes(), |_| body))));
        }
        self.load(&kernels)
    }
}

#[cfg(test)]
mod tests {
    use super::instances;
    use std::collections::BTreeSet;

    #[test]
    fn all_kernels_are_in_the_lists() {
        let kernels = include_str!("../../ptx/MANIFEST").lines().filter_map(|line| line.strip_prefix("kernel "));
        let compiled: BTreeSet<&str> = kernels.filter_map(|line| line.split(' ').next()).collect();
        let listed: BTreeSet<&str> = instances().map(|instance| instance.name()).collect();
        assert_eq!(listed, compiled, "`ALL_PTX` names the lists of all modules");
    }
}
