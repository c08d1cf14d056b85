//! The operation by which operands are combined, whatever its type.

#![deny(unsafe_op_in_unsafe_fn)]

use super::combine::{CombineRuns, LookupCombined, combine_items, combine_tile};
use super::find::Levels;
use super::payload::{Marked, MarkedLong, Payload};
use super::table::THREADS;
use crate::{Carrier, KeyCode, Upsertion, Value};
use core::fmt::{self, Debug, Formatter};
use gpu_primitives::block::lookback;
use gpu_primitives::kernel::{Held, View};
use gpu_primitives::monoid::HoleMonoid;
use gpu_primitives::{Error, Global, GlobalMut, Stream, with_shape};
use std::any::{TypeId, type_name};
use std::sync::Arc;

/// The operation of levels with operands. They share it.
pub(super) type SharedOperation<K, V> = Operation<<K as gpu_primitives::sort::RadixKey>::Code, <V as Value>::Carrier>;

/// An operation that combines values, as their carrier `W`, in levels with keys of code `C`. Clones share it.
///
/// Only levels use it: see [`Level::operands`](super::Level::operands). They know that their keys ascend, and that there are
/// as many values and marks, which the kernels rely on:
///
/// ```compile_fail,E0624
/// use gpu_dictionary::Carrier;
/// use gpu_primitives::monoid::Sum;
/// use gpu_primitives::{Device, Error};
///
/// let stream = Device::default()?.stream()?;
/// let (keys, mut values, mut marks) = (stream.upload(&[0u32; 99])?, stream.upload(&[1u32])?, stream.upload(&[0u32])?);
/// let operation = u32::operation::<u32, u32, Sum>(Sum).expect("numbers can be added");
/// // There are fewer values than keys.
/// operation.combine_runs(&stream, keys.view(&stream)?, values.view_mut(&stream)?, marks.view_mut(&stream)?, true)?;
/// # Ok::<(), Error>(())
/// ```
pub struct Operation<C, W>(Arc<dyn Combining<C, W>>);

impl<C, W> Clone for Operation<C, W> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<C, W> Debug for Operation<C, W> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<C, W> Operation<C, W> {
    /// Combines the elements of each key of a level, whose keys ascend: the last one receives the result, and the others
    /// become nothing. With `only_operands`, does not read the marks. Does not wait.
    ///
    /// # Errors
    /// Any launch error.
    ///
    /// # Safety
    /// The views were made for this stream. The keys ascend, and there are as many values. There are two words of marks per
    /// 32 keys, rounded up: see [`combine_runs`](super::combine::CombineRuns).
    pub(super) unsafe fn combine_runs(
        &self,
        stream: &Stream,
        keys: View<'_, Global<C>>,
        values: View<'_, GlobalMut<W>>,
        marks: View<'_, GlobalMut<u32>>,
        only_operands: bool,
    ) -> Result<(), Error> {
        // SAFETY: guaranteed by the caller.
        unsafe { self.0.combine_runs(stream, keys, values, marks, only_operands) }
    }

    /// Looks up keys in levels of which some have operands. Does not wait.
    ///
    /// # Errors
    /// Any launch error.
    ///
    /// # Safety
    /// The views were made for this stream. The outputs are as long as the keys.
    pub(super) unsafe fn lookup(
        &self,
        stream: &Stream,
        levels: View<'_, Levels<C, W>>,
        keys: View<'_, Global<C>>,
        values: View<'_, GlobalMut<W>>,
        found: View<'_, GlobalMut<u8>>,
    ) -> Result<(), Error> {
        // SAFETY: guaranteed by the caller.
        unsafe { self.0.lookup(stream, levels, keys, values, found) }
    }

    /// Returns whether this is the operation of a type with a state.
    pub(super) fn is(&self, operation: TypeId, state: &[u8]) -> bool {
        self.0.is(operation, state)
    }
}

/// An [`Operation`], whatever its type.
trait Combining<C, W>: Debug + Send + Sync {
    /// # Safety
    /// See [`Operation::combine_runs`].
    unsafe fn combine_runs(
        &self,
        stream: &Stream,
        keys: View<'_, Global<C>>,
        values: View<'_, GlobalMut<W>>,
        marks: View<'_, GlobalMut<u32>>,
        only_operands: bool,
    ) -> Result<(), Error>;

    /// # Safety
    /// See [`Operation::lookup`].
    unsafe fn lookup(
        &self,
        stream: &Stream,
        levels: View<'_, Levels<C, W>>,
        keys: View<'_, Global<C>>,
        values: View<'_, GlobalMut<W>>,
        found: View<'_, GlobalMut<u8>>,
    ) -> Result<(), Error>;

    fn is(&self, operation: TypeId, state: &[u8]) -> bool;
}

/// A carrier of values that can be combined, and its [payload](Payload) with a kind. There is none for zero-sized values.
pub trait Combinable: Carrier<Marked = Self::WithKind> + Held {
    /// The payload.
    type WithKind: Payload<Value = Self>;
}

impl Combinable for u32 {
    type WithKind = Marked;
}

impl Combinable for u64 {
    type WithKind = MarkedLong;
}

/// An operation on values `V`.
struct OnValues<V, M> {
    operation: M,
    values: std::marker::PhantomData<fn() -> V>,
}

impl<V, M> Debug for OnValues<V, M> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(type_name::<M>())
    }
}

/// Returns an operation on values `V` that are carried by a `W`.
pub(crate) fn combining<C: KeyCode, W: Combinable, V: Value<Carrier = W>, M: Upsertion<V>>(
    operation: M,
) -> Operation<C, W> {
    Operation(Arc::new(OnValues::<V, M> { operation, values: std::marker::PhantomData }))
}

impl<C: KeyCode, W: Combinable, V: Value<Carrier = W>, M: Upsertion<V>> Combining<C, W> for OnValues<V, M> {
    unsafe fn combine_runs(
        &self,
        stream: &Stream,
        keys: View<'_, Global<C>>,
        values: View<'_, GlobalMut<W>>,
        marks: View<'_, GlobalMut<u32>>,
        only_operands: bool,
    ) -> Result<(), Error> {
        // SAFETY: only the length is used.
        let len = unsafe { keys.clone().into_param() }.len();
        if len == 0 {
            return Ok(());
        }
        with_shape!(ITEMS in 9 | 5 = combine_items::<W::WithKind>(), {
            let tiles = len.div_ceil(combine_tile(ITEMS));
            let scratch = stream.lookback_words(lookback::scratch_words::<W::WithKind>(tiles))?;
            let operation = HoleMonoid::<W>::of::<V, M>(self.operation);
            let only_operands = u32::from(only_operands);
            let kernel =
                CombineRuns::<C, W::WithKind, ITEMS>::new(keys, values, marks, only_operands, operation, scratch);
            // SAFETY: there is a block per tile. The caller guarantees the rest.
            unsafe { stream.launch(kernel, tiles) }
        })
    }

    unsafe fn lookup(
        &self,
        stream: &Stream,
        levels: View<'_, Levels<C, W>>,
        keys: View<'_, Global<C>>,
        values: View<'_, GlobalMut<W>>,
        found: View<'_, GlobalMut<u8>>,
    ) -> Result<(), Error> {
        // SAFETY: only the length is used.
        let len = unsafe { keys.clone().into_param() }.len();
        let kernel =
            LookupCombined::<C, W>::new(levels, HoleMonoid::<W>::of::<V, M>(self.operation), keys, values, found);
        // SAFETY: there is a thread per key. The caller guarantees the rest.
        unsafe { stream.launch(kernel, len.div_ceil(THREADS as usize)) }
    }

    fn is(&self, operation: TypeId, state: &[u8]) -> bool {
        operation == TypeId::of::<M>() && state == bytemuck::bytes_of(&self.operation)
    }
}
