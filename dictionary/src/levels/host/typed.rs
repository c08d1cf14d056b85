//! Levels and stacks with their types. This is where types end: below, all code is compiled once.

#![deny(unsafe_op_in_unsafe_fn)]

use super::all_values::AllValues;
use super::intervals::{AnyRanges, AnyRangesMut, Intervals, Ranges, RangesMut};
use super::level::AnyLevel;
use super::operation::Operation;
use super::query::{AnyNeighbour, Neighbour};
use super::stack::AnyStack;
use super::types::Types;
use crate::levels::device::find::Levels;
use crate::{Contents, Key, Lookup, Upsertion, Value};
use core::fmt::{self, Debug, Formatter};
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};
use gpu_primitives::kernel::View;
use gpu_primitives::lowered::Place;
use gpu_primitives::monoid::Monoid;
use gpu_primitives::{DeviceSlice, DeviceSliceMut, DeviceValue, DeviceVec, Error, Stream};

/// A sorted array of keys, with values and possibly tombstones and operands.
#[repr(transparent)]
pub struct Level<K: Key, V: Value> {
    any: AnyLevel,
    types: PhantomData<fn() -> (K, V)>,
}

/// A level's elements: key codes, values, and one bit per element if there are tombstones.
#[derive(Clone, Copy, Debug)]
pub struct Parts<'a, C, V> {
    /// The codes of the keys, ascending.
    pub codes: DeviceSlice<'a, C>,
    /// One value per key; empty if values are zero-sized.
    pub values: DeviceSlice<'a, V>,
    /// The words of the marks: one bit per element, set for tombstones. Those of operands are not part of it.
    pub marks: Option<DeviceSlice<'a, u32>>,
}

impl<K: Key, V: Value> Debug for Level<K, V> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.any.fmt(f)
    }
}

/// What does not depend on the types.
impl<K: Key, V: Value> Deref for Level<K, V> {
    type Target = AnyLevel;

    fn deref(&self) -> &AnyLevel {
        &self.any
    }
}

impl<K: Key, V: Value> DerefMut for Level<K, V> {
    fn deref_mut(&mut self) -> &mut AnyLevel {
        &mut self.any
    }
}

impl<K: Key, V: Value> Level<K, V> {
    const TYPES: &'static Types = Types::of::<K, V>();

    /// Gives a level its types.
    ///
    /// # Panics
    /// If it has others.
    #[must_use]
    pub fn of(any: AnyLevel) -> Self {
        any.types.expect_same(Self::TYPES);
        Self { any, types: PhantomData }
    }

    /// Gives a level its types.
    ///
    /// # Panics
    /// If it has others.
    #[must_use]
    pub fn of_ref(any: &AnyLevel) -> &Self {
        any.types.expect_same(Self::TYPES);
        // SAFETY: `repr(transparent)` around the level.
        unsafe { &*core::ptr::from_ref(any).cast::<Self>() }
    }

    /// Returns the level without its types.
    #[must_use]
    pub fn into_any(self) -> AnyLevel {
        self.any
    }

    /// Makes a level of these pairs. Of equal keys, later ones are newer. For zero-sized values, pass an empty slice.
    /// Does not wait.
    ///
    /// # Errors
    /// - [`Error::LengthMismatch`] if there is not exactly one value per key; for zero-sized values, if `values` is not
    ///   empty.
    /// - [`Error::TooLong`] for 2^32 keys or more.
    /// - Any error of a sort.
    pub fn from_pairs(stream: &Stream, keys: DeviceSlice<'_, K>, values: DeviceSlice<'_, V>) -> Result<Self, Error> {
        AnyLevel::from_pairs(Self::TYPES, stream, keys.into(), values.into()).map(Self::of)
    }

    /// Makes a level of tombstones for these keys. Does not wait.
    ///
    /// # Errors
    /// The errors of [`from_pairs`](Self::from_pairs).
    pub fn tombstones(stream: &Stream, keys: DeviceSlice<'_, K>) -> Result<Self, Error> {
        AnyLevel::tombstones(Self::TYPES, stream, keys.into()).map(Self::of)
    }

    /// Makes a level of operands: values that are combined with what is older, by an operation. Of equal keys, later ones
    /// are newer. Does not wait.
    ///
    /// Levels with operands of different operations must not be merged, or queried together: a query uses one of them.
    ///
    /// # Errors
    /// The errors of [`from_pairs`](Self::from_pairs).
    pub fn operands<M: Upsertion<V>>(
        stream: &Stream,
        keys: DeviceSlice<'_, K>,
        values: DeviceSlice<'_, V>,
        operation: M,
    ) -> Result<Self, Error> {
        let operation = Operation::of::<V, M>(operation);
        AnyLevel::operands(Self::TYPES, stream, keys.into(), values.into(), operation).map(Self::of)
    }

    /// Merges levels, oldest first, with these pairs, which are newer than all of them. Does not wait.
    ///
    /// # Errors
    /// The errors of [`from_pairs`](Self::from_pairs) and [`merge`](Self::merge).
    pub fn merge_pairs(
        stream: &Stream,
        older: &[&Self],
        keys: DeviceSlice<'_, K>,
        values: DeviceSlice<'_, V>,
    ) -> Result<Self, Error> {
        AnyLevel::merge_pairs(Self::TYPES, stream, Place::Device, any(older), keys.into(), values.into()).map(Self::of)
    }

    /// Merges levels, oldest first. Keeps all elements. If there are operands, combines them. Does not wait.
    ///
    /// # Errors
    /// [`Error::TooMany`] for more than 32 levels, or the errors of [`from_pairs`](Self::from_pairs).
    pub fn merge(stream: &Stream, levels: &[&Self]) -> Result<Self, Error> {
        AnyLevel::merge(Self::TYPES, stream, Place::Device, any(levels)).map(Self::of)
    }

    /// Merges levels, oldest first, into a level of their live elements. Waits for the stream, to learn how many there
    /// are.
    ///
    /// # Errors
    /// The errors of [`merge`](Self::merge).
    pub fn live(stream: &Stream, levels: &[&Self]) -> Result<Self, Error> {
        AnyLevel::live(Self::TYPES, stream, Place::Device, any(levels)).map(Self::of)
    }

    /// Makes a level of the elements whose flag is not 0, in the same place. Waits for the stream, to learn how many there are.
    ///
    /// # Errors
    /// [`Error::InvalidOption`] if the level has tombstones or operands; [`Error::LengthMismatch`] if there is not one flag
    /// per element; the errors of [`from_pairs`](Self::from_pairs).
    pub fn select(&self, stream: &Stream, flags: &DeviceVec<u8>) -> Result<Self, Error> {
        self.any.select(stream, flags.as_slice()).map(Self::of)
    }

    /// Returns all elements, live or not, as keys and values. Does not wait.
    ///
    /// # Errors
    /// [`Error::InvalidOption`] if the level has tombstones or operands; any launch error.
    pub fn into_contents(self, stream: &Stream) -> Result<Contents<K, V>, Error> {
        let (keys, values) = self.any.into_contents(stream)?;
        Ok(Contents { keys: keys.into_typed(), values: values.into_typed() })
    }

    /// Sets the id of a level that was read from a file: the id it had when it was written.
    #[must_use]
    pub fn with_id(mut self, id: u128) -> Self {
        self.any.set_id(id);
        self
    }

    /// Returns the elements, for reading.
    #[must_use]
    pub fn parts(&self) -> Parts<'_, K::Code, V> {
        let (codes, values) = self.any.run();
        let typed = codes.typed().zip(values.typed());
        let (codes, values) = typed.expect("these are the types of the level");
        Parts { codes, values, marks: self.any.marks() }
    }

    /// Makes a level of parts in the form that [`parts`](Self::parts) returns.
    ///
    /// # Errors
    /// - [`Error::LengthMismatch`] if the lengths do not match.
    /// - [`Error::TooLong`] for 2^32 elements or more.
    ///
    /// # Safety
    /// The codes ascend, and all parts are on one device. The work that writes them has been enqueued on a stream, not
    /// recorded.
    pub unsafe fn from_parts(
        keys: DeviceVec<K::Code>,
        values: DeviceVec<V>,
        marks: Option<DeviceVec<u32>>,
    ) -> Result<Self, Error> {
        // SAFETY: guaranteed by the caller.
        unsafe { Self::from_parts_in(Place::Device, keys, values, marks) }
    }

    /// [`from_parts`](Self::from_parts) with keys and values in a place.
    ///
    /// # Errors
    /// Those of `from_parts`.
    ///
    /// # Safety
    /// That of `from_parts`; and keys and values are in this place.
    #[doc(hidden)]
    pub unsafe fn from_parts_in(
        place: Place,
        keys: DeviceVec<K::Code>,
        values: DeviceVec<V>,
        marks: Option<DeviceVec<u32>>,
    ) -> Result<Self, Error> {
        // SAFETY: guaranteed by the caller.
        unsafe { AnyLevel::from_parts(Self::TYPES, place, keys.into(), values.into(), marks) }.map(Self::of)
    }
}

/// Returns levels without their types.
fn any<'a, K: Key, V: Value>(levels: &'a [&'a Level<K, V>]) -> &'a [&'a AnyLevel] {
    // SAFETY: a level is `repr(transparent)` around one without types, and so are references to it.
    unsafe { core::slice::from_raw_parts(levels.as_ptr().cast(), levels.len()) }
}

/// Levels ordered by age, and their index.
///
/// A clone shares the levels, which never change, and what has been built of the index. It costs no device memory. Both
/// stacks can be changed and queried independently, also by different threads.
#[repr(transparent)]
pub struct Stack<K: Key, V: Value> {
    any: AnyStack,
    types: PhantomData<fn() -> (K, V)>,
}

impl<K: Key, V: Value> Debug for Stack<K, V> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.any.fmt(f)
    }
}

impl<K: Key, V: Value> Clone for Stack<K, V> {
    fn clone(&self) -> Self {
        Self { any: self.any.clone(), types: PhantomData }
    }
}

impl<K: Key, V: Value> Default for Stack<K, V> {
    fn default() -> Self {
        Self::new()
    }
}

/// What does not depend on the types.
impl<K: Key, V: Value> Deref for Stack<K, V> {
    type Target = AnyStack;

    fn deref(&self) -> &AnyStack {
        &self.any
    }
}

impl<K: Key, V: Value> Stack<K, V> {
    const TYPES: &'static Types = Types::of::<K, V>();

    /// The number of slots.
    pub const SLOTS: usize = AnyStack::SLOTS;

    /// Creates a stack without levels. Their directories will have one bucket per four elements: 2 bytes per element.
    #[must_use]
    pub fn new() -> Self {
        Self { any: AnyStack::new(Self::TYPES), types: PhantomData }
    }

    /// Creates a stack without levels. Their directories will have one 8-byte bucket per `elements` elements, at least
    /// one. More elements per bucket take less memory, but a query reads more keys.
    #[must_use]
    pub fn with_bucket(elements: usize) -> Self {
        Self { any: AnyStack::with_bucket(Self::TYPES, elements), types: PhantomData }
    }

    /// Gives a stack its types.
    ///
    /// # Panics
    /// If it has others.
    #[must_use]
    pub fn of_ref(any: &AnyStack) -> &Self {
        any.types.expect_same(Self::TYPES);
        // SAFETY: `repr(transparent)` around the stack.
        unsafe { &*core::ptr::from_ref(any).cast::<Self>() }
    }

    /// Gives a stack its types, to change it.
    ///
    /// # Panics
    /// If it has others.
    #[must_use]
    pub fn of_mut(any: &mut AnyStack) -> &mut Self {
        any.types.expect_same(Self::TYPES);
        // SAFETY: `repr(transparent)` around the stack.
        unsafe { &mut *core::ptr::from_mut(any).cast::<Self>() }
    }

    /// Returns the stack without its types.
    #[must_use]
    pub fn any(&self) -> &AnyStack {
        &self.any
    }

    /// Returns the stack without its types, to change it: a level that is put into it must have these types.
    #[must_use]
    pub fn any_mut(&mut self) -> &mut AnyStack {
        &mut self.any
    }

    /// Returns the level in a slot.
    #[must_use]
    pub fn level(&self, slot: usize) -> Option<&Level<K, V>> {
        self.any.level(slot).map(Level::of_ref)
    }

    /// Returns the existing levels, oldest first, with their slots.
    pub fn oldest_first(&self) -> impl Iterator<Item = (usize, &Level<K, V>)> {
        self.any.oldest_first().map(|(slot, level)| (slot, Level::of_ref(level)))
    }

    /// Puts a level into a slot, or empties the slot. An empty level counts as none.
    ///
    /// # Panics
    /// If there is no such slot: there are [`SLOTS`](Self::SLOTS) slots.
    pub fn set(&mut self, slot: usize, level: Option<Level<K, V>>) {
        self.any.set(slot, level.map(Level::into_any));
    }

    /// Removes all levels. Cannot fail.
    pub fn clear(&mut self) {
        self.any.clear();
    }

    /// Looks up keys. Does not wait.
    ///
    /// # Errors
    /// Any allocation or launch error.
    pub fn lookup(&self, stream: &Stream, keys: DeviceSlice<'_, K>) -> Result<Lookup<V>, Error> {
        let (values, found) = self.any.lookup(stream, keys.into())?;
        Ok(Lookup { values: values.into_typed(), found })
    }

    /// Returns which keys are present: 1 or 0 for each. Does not wait.
    ///
    /// # Errors
    /// The errors of [`lookup`](Self::lookup).
    pub fn contains(&self, stream: &Stream, keys: DeviceSlice<'_, K>) -> Result<DeviceVec<u8>, Error> {
        self.any.contains(stream, keys.into())
    }

    /// Finds, for each of `keys`, the smallest key greater than it or, with `below`, the largest key less than it. Does
    /// not wait.
    ///
    /// For so many keys that searching all levels would take longer than merging them, merges them first, if there is
    /// memory for that.
    ///
    /// # Errors
    /// The errors of [`lookup`](Self::lookup).
    pub fn neighbours(&self, stream: &Stream, keys: DeviceSlice<'_, K>, below: bool) -> Result<Neighbour<K, V>, Error> {
        let AnyNeighbour { keys, values, found } = self.any.neighbours(stream, keys.into(), below)?;
        Ok(Neighbour { keys: keys.into_typed(), values: values.into_typed(), found })
    }

    /// Returns all live pairs in key order. Waits for the stream.
    ///
    /// # Errors
    /// The errors of [`lookup`](Self::lookup).
    pub fn export(&self, stream: &Stream) -> Result<Contents<K, V>, Error> {
        let (keys, values) = self.any.export(stream)?;
        Ok(Contents { keys: keys.into_typed(), values: values.into_typed() })
    }

    /// Returns the levels as an argument for a kernel of your own: see [`Levels`]. The kernel sees a key as the unsigned
    /// integer with the same bits, or as its code if it is not a [plain](Key::IS_PLAIN) number, and a value as its
    /// [carrier](Value::Carrier). Builds the missing parts of the index.
    /// Does not wait.
    ///
    /// # Errors
    /// [`Error::PendingUpserts`] if there are operands, which a kernel of your own cannot combine. The errors of
    /// [`lookup`](Self::lookup).
    #[allow(clippy::type_complexity)]
    pub fn view(&self, stream: &Stream) -> Result<View<'_, Levels<K::Code, V::Carrier>>, Error> {
        if self.any.has_operands() {
            return Err(Error::PendingUpserts { what: "a view for a kernel" });
        }
        Ok(self.any.any_view(stream, true)?.typed())
    }

    /// Counts the live keys in each interval.
    ///
    /// Does not wait if there is a single level whose keys are known to be distinct. Otherwise, for three intervals or
    /// more, waits for the stream, to learn whether they overlap so much that merging all levels once is faster than
    /// merging the elements of each interval. If so, waits once more.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if `low` and `high` differ in length, or the errors of [`lookup`](Self::lookup).
    pub fn count(&self, stream: &Stream, intervals: Intervals<'_, K>) -> Result<DeviceVec<u64>, Error> {
        self.any.count(stream, intervals.into())
    }

    /// Counts the live keys in each interval. Does not wait.
    ///
    /// The cost is that of merging the elements of each interval, also where intervals overlap: [`count`](Self::count) waits
    /// to avoid that.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if the lengths of `low`, `high` and `counts` differ, or the errors of
    /// [`lookup`](Self::lookup).
    pub fn count_into(
        &self,
        stream: &Stream,
        intervals: Intervals<'_, K>,
        counts: DeviceSliceMut<'_, u64>,
    ) -> Result<(), Error> {
        self.any.count_into(stream, intervals.into(), counts)
    }

    /// Returns the live elements in each interval. Waits for the stream to learn how much memory they may need, and once
    /// more to learn how many there are.
    ///
    /// # Errors
    /// - [`Error::LengthMismatch`] if `low` and `high` differ in length.
    /// - [`Error::OutOfMemory`] if the results do not fit. The error says how much memory they need.
    /// - The errors of [`lookup`](Self::lookup).
    pub fn ranges(&self, stream: &Stream, intervals: Intervals<'_, K>) -> Result<Ranges<K, V>, Error> {
        let AnyRanges { offsets, keys, values } = self.any.ranges(stream, intervals.into())?;
        Ok(Ranges { offsets, keys: keys.into_typed(), values: values.into_typed() })
    }

    /// Writes the live elements in each interval into given room. Returns how many elements there must be room for: those in
    /// the intervals, with older elements of the same keys and deleted ones. If there is less room, what is written is not
    /// specified. Does not wait.
    ///
    /// # Errors
    /// - [`Error::LengthMismatch`] if `low` and `high` differ in length, if there is not one more offset than intervals, or if
    ///   there is not room for as many values as keys.
    /// - The errors of [`lookup`](Self::lookup).
    pub fn ranges_into(
        &self,
        stream: &Stream,
        intervals: Intervals<'_, K>,
        to: RangesMut<'_, K, V>,
    ) -> Result<DeviceValue<u64>, Error> {
        let to = AnyRangesMut { offsets: to.offsets, keys: to.keys.into(), values: to.values.into() };
        self.any.ranges_into(stream, intervals.into(), to)
    }

    /// Combines the values of the live elements in each interval, in key order. Waits, as [`ranges`](Self::ranges) does.
    ///
    /// # Errors
    /// The errors of [`ranges`](Self::ranges).
    pub fn reduce<M: Monoid<V>>(
        &self,
        stream: &Stream,
        intervals: Intervals<'_, K>,
        operation: M,
    ) -> Result<DeviceVec<V>, Error> {
        self.ranges(stream, intervals)?.reduce(stream, operation)
    }

    /// Counts the elements in each interval, live or not. Does not wait.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if `low` and `high` differ in length. Any allocation or launch error.
    pub fn count_every(&self, stream: &Stream, intervals: Intervals<'_, K>) -> Result<DeviceVec<u64>, Error> {
        self.any.count_every(stream, intervals.into())
    }

    /// Returns the elements in each interval, live or not, in key order, the oldest of a key first. If there is more than one
    /// level, merges them first. Waits for the stream, to learn how many there are.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if `low` and `high` differ in length. Any allocation or launch error.
    pub fn ranges_of_every(&self, stream: &Stream, intervals: Intervals<'_, K>) -> Result<Ranges<K, V>, Error> {
        let AnyRanges { offsets, keys, values } = self.any.ranges_of_every(stream, intervals.into())?;
        Ok(Ranges { offsets, keys: keys.into_typed(), values: values.into_typed() })
    }

    /// Returns the values of all elements of each key, live or not. Waits for the stream, to learn how many there are.
    ///
    /// # Errors
    /// Any allocation or launch error.
    pub fn every(&self, stream: &Stream, keys: DeviceSlice<'_, K>) -> Result<AllValues<V>, Error> {
        let (offsets, values) = self.any.every(stream, keys.into())?;
        Ok(AllValues { offsets, values: values.into_typed() })
    }

    /// Writes the values of all elements of each key, live or not, into given room: as many as fit. The offsets, one more than
    /// keys, say how many there are. Does not wait.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if there is not one more offset than keys. Any allocation or launch error.
    pub fn every_into(
        &self,
        stream: &Stream,
        keys: DeviceSlice<'_, K>,
        offsets: DeviceSliceMut<'_, u64>,
        values: DeviceSliceMut<'_, V>,
    ) -> Result<(), Error> {
        self.any.every_into(stream, keys.into(), offsets, values.into())
    }

    /// Removes all elements with these keys. Waits.
    ///
    /// # Errors
    /// [`Error::InvalidOption`] if there are tombstones or operands; any allocation or launch error. After an error the stack
    /// is unchanged.
    pub fn remove_keys(&mut self, stream: &Stream, keys: DeviceSlice<'_, K>) -> Result<(), Error> {
        self.any.remove_keys(stream, keys.into())
    }

    /// Removes all elements with these keys and values. Waits.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if there is not exactly one value per key; for zero-sized values, if `values` is not empty.
    /// The errors of [`remove_keys`](Self::remove_keys).
    pub fn remove_pairs(
        &mut self,
        stream: &Stream,
        keys: DeviceSlice<'_, K>,
        values: DeviceSlice<'_, V>,
    ) -> Result<(), Error> {
        self.any.remove_pairs(stream, keys.into(), values.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpu_primitives::Device;
    use std::panic::AssertUnwindSafe;

    /// Tombstones have no values: nothing that needs values may take them for such.
    #[test]
    fn levels_with_tombstones_are_not_taken_apart() {
        let stream = Device::cpu().stream().unwrap();
        let keys = stream.upload(&[1u32, 2, 3]).unwrap();
        let level = Level::<u32, u32>::tombstones(&stream, keys.as_slice()).unwrap();
        let flags = stream.upload(&[1u8; 3]).unwrap();
        assert!(matches!(level.select(&stream, &flags), Err(Error::InvalidOption { .. })));
        assert!(matches!(level.into_contents(&stream), Err(Error::InvalidOption { .. })));
    }

    /// Types that kernels would confuse are told apart, also where their sizes are equal.
    #[test]
    fn levels_do_not_change_their_types() {
        let stream = Device::cpu().stream().unwrap();
        let keys = stream.upload(&[1u32, 2, 3]).unwrap();
        let level = || Level::<u32, u32>::from_pairs(&stream, keys.as_slice(), keys.as_slice()).unwrap().into_any();
        assert_eq!(Level::<u32, f32>::of(level()).len(), 3);
        let is_refused = |of: fn(AnyLevel)| std::panic::catch_unwind(AssertUnwindSafe(|| of(level()))).is_err();
        assert!(is_refused(|level| drop(Level::<i32, u32>::of(level))));
        assert!(is_refused(|level| drop(Level::<u32, u64>::of(level))));
        assert!(is_refused(|level| drop(Level::<u64, u32>::of(level))));
    }
}
