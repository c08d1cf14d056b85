//! The operation by which operands are combined, whatever its type.

#![deny(unsafe_op_in_unsafe_fn)]

use super::types::with_code;
use super::view::AnyLevels;
use crate::levels::device::merge::combine::{CombineRuns, LookupCombined, combine_items, combine_tile};
use crate::levels::device::table::THREADS;
use crate::{Carrier, Upsertion, Value, assert_carried};
use core::fmt::{self, Debug, Formatter};
use gpu_primitives::block::lookback;
use gpu_primitives::kernel::View;
use gpu_primitives::lowered::{AnySlice, AnySliceMut};
use gpu_primitives::monoid::HoleMonoid;
use gpu_primitives::{Error, GlobalMut, Operator, Stream};
use std::any::{TypeId, type_name};
use std::sync::Arc;

/// An operation that combines values of levels with operands. Clones share it.
///
/// Only levels use it: see [`Level::operands`](crate::levels::Level::operands). They know that their keys ascend, and that there are
/// as many values and marks, which the kernels rely on:
///
/// ```compile_fail,E0624
/// use gpu_dictionary::levels::Operation;
/// use gpu_primitives::monoid::Sum;
/// use gpu_primitives::{Device, Error};
///
/// let stream = Device::default()?.stream()?;
/// let (keys, mut values, mut marks) = (stream.upload(&[0u32; 99])?, stream.upload(&[1u32])?, stream.upload(&[0u32])?);
/// let operation = Operation::of::<u32, Sum>(Sum).expect("numbers can be added");
/// // There are fewer values than keys.
/// let (keys, values) = (keys.as_slice().into(), values.as_mut_slice().into());
/// operation.combine_runs(&stream, keys, values, marks.view_mut(&stream)?, true)?;
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone)]
pub struct Operation(Arc<OnValues>);

/// An operation on values of some type.
struct OnValues {
    combine: Combine,
    /// Its function, to record it.
    function: Operator,
    operation: TypeId,
    state: Box<[u8]>,
    name: fn() -> &'static str,
}

/// The operation as kernels take it, by the carrier of the values.
enum Combine {
    Short(HoleMonoid<u32>),
    Long(HoleMonoid<u64>),
}

impl Debug for Operation {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str((self.0.name)())
    }
}

impl Operation {
    /// Returns an operation on values `V`. There is none on zero-sized values: combined ones are as before.
    #[must_use]
    pub fn of<V: Value, M: Upsertion<V>>(operation: M) -> Option<Self> {
        assert_carried::<V>();
        // The sizes are compared as constants, so that only one of these is compiled.
        let combine = if const { size_of::<V>() == 0 } {
            return None;
        } else if const { size_of::<V>() == 4 } {
            Combine::Short(HoleMonoid::of::<V, M>(operation))
        } else {
            Combine::Long(HoleMonoid::of::<V, M>(operation))
        };
        let (function, state) = (Operator::monoid::<V, M>(), bytemuck::bytes_of(&operation).into());
        Some(Self(Arc::new(OnValues { combine, function, operation: TypeId::of::<M>(), state, name: type_name::<M> })))
    }

    /// Records the operation now if launches on this stream would. This runs code of its author, so the caller holds no lock.
    ///
    /// # Errors
    /// [`Error::Unrecordable`].
    #[doc(hidden)]
    pub fn record(&self, stream: &Stream) -> Result<(), Error> {
        self.0.function.record(stream)
    }

    /// Combines the elements of each key of a level, whose keys ascend: the last one receives the result, and the others
    /// become nothing. With `only_operands`, does not read the marks. Does not wait.
    ///
    /// # Errors
    /// Any launch error.
    ///
    /// # Safety
    /// The view was made for this stream. The keys ascend, and there are as many values. There are two words of marks per
    /// 32 keys, rounded up: see [`combine_runs`](crate::levels::device::merge::combine::CombineRuns).
    pub(crate) unsafe fn combine_runs(
        &self,
        stream: &Stream,
        keys: AnySlice<'_>,
        mut values: AnySliceMut<'_>,
        marks: View<'_, GlobalMut<u32>>,
        only_operands: bool,
    ) -> Result<(), Error> {
        if keys.is_empty() {
            return Ok(());
        }
        let only_operands = u32::from(only_operands);
        macro_rules! combine {
            ($carrier:ty, $operation:expr) => {{
                type P = <$carrier as Carrier>::Marked;
                const ITEMS: usize = combine_items::<P>();
                let tiles = keys.len().div_ceil(combine_tile(ITEMS));
                let scratch = stream.lookback_words(lookback::scratch_words::<P>(tiles))?;
                with_code!(keys.size() => C, {
                    let (keys, values) = (keys.view(stream)?, values.view_mut(stream)?);
                    let kernel = CombineRuns::<C, P, ITEMS>::new(keys, values, marks, only_operands, $operation, scratch);
                    // SAFETY: there is a block per tile. The caller guarantees the rest.
                    unsafe { stream.launch(kernel, tiles) }
                })
            }};
        }
        match self.0.combine {
            Combine::Short(operation) => combine!(u32, operation),
            Combine::Long(operation) => combine!(u64, operation),
        }
    }

    /// Looks up keys in levels of which some have operands. Does not wait.
    ///
    /// # Errors
    /// Any launch error.
    ///
    /// # Safety
    /// The outputs are as long as the keys, of which there is at least one. The levels are open to this stream.
    pub(crate) unsafe fn lookup(
        &self,
        stream: &Stream,
        levels: AnyLevels<'_>,
        keys: AnySlice<'_>,
        mut values: AnySliceMut<'_>,
        found: View<'_, GlobalMut<u8>>,
    ) -> Result<(), Error> {
        macro_rules! lookup {
            ($carrier:ty, $operation:expr) => {
                with_code!(keys.size() => C, {
                    let (keys_view, values) = (keys.view(stream)?, values.view_mut(stream)?);
                    let kernel =
                        LookupCombined::<C, $carrier>::new(levels.typed(), $operation, keys_view, values, found);
                    // SAFETY: there is a thread per key. The caller guarantees the rest.
                    unsafe { stream.launch(kernel, keys.len().div_ceil(THREADS as usize)) }
                })
            };
        }
        match self.0.combine {
            Combine::Short(operation) => lookup!(u32, operation),
            Combine::Long(operation) => lookup!(u64, operation),
        }
    }

    /// Returns whether both are of one type, with the same state.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        (self.0.operation, &self.0.state) == (other.0.operation, &other.0.state)
    }
}
