//! A level on the host, and the ways to make one.

#![deny(unsafe_op_in_unsafe_fn)]

use super::directory::{BuildDirectory, directory_len};
use super::elements::ElementsMut;
use super::find::LevelBuffers;
use super::operation::SharedOperation;
use super::table::THREADS;
use super::whole::{Live, keep_all};
use crate::cast::{carried, codes, keys_of, recast};
use crate::file::unique_id;
use crate::{Carrier, Contents, Key, KeyCode, Upsertion, Value, assert_carried, values_for};
use bytemuck::Pod;
use gpu_primitives::code::Sign;
use gpu_primitives::kernel::{Reach, View};
use gpu_primitives::merge::{self, MAX_PLACED};
use gpu_primitives::sort::{self, SortedRuns};
use gpu_primitives::{Device, DeviceSlice, DeviceVec, Error, Global, Stream, expect_len, select, transfer};
use std::any::TypeId;
use std::sync::OnceLock;

/// The most elements in a level.
const MAX_LEN: usize = u32::MAX as usize;
/// Up to this many elements, three or more levels are merged faster by computing the position of each element, in a
/// single launch, than by tiles. With two levels, the tiles are found faster.
const FEW: usize = 1 << 18;
/// The same limit for levels and a batch that is sorted in chunks, all of which are merged at once.
const FEW_WITH_BATCH: usize = 1 << 17;

/// The codes and the carried values of a level: codes `C`, carriers `W`.
pub(super) type Run<'a, C, W> = (DeviceSlice<'a, C>, DeviceSlice<'a, W>);

/// A sorted array of keys, with values and possibly tombstones and operands.
#[derive(Debug)]
pub struct Level<K: Key, V: Value> {
    /// The codes of the keys, ascending. Of equal ones, the newest is last.
    keys: DeviceVec<K::Code>,
    /// One value per key; empty if values are zero-sized.
    values: DeviceVec<V::Carrier>,
    /// One bit per element, set for tombstones, then one bit per element, set for operands, if there can be any. `None` if
    /// there are only values.
    marks: Option<DeviceVec<u32>>,
    /// The operation that combines operands; `None` if there are none.
    operation: Option<SharedOperation<K, V>>,
    /// Whether all elements are operands, or nothing.
    only_operands: bool,
    /// The number of elements; the vectors may be longer.
    len: usize,
    /// Whether the keys are known to be distinct, without tombstones.
    is_distinct: bool,
    /// Identifies the contents; chosen when it is first needed.
    id: OnceLock<u128>,
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

/// Returns how codes are sorted: by the bits that codes of these keys have.
pub(super) fn by_code<K: Key>() -> sort::Options {
    sort::Options::new().bits(0..sort::bits_of::<K>())
}

fn expect_short(len: usize) -> Result<(), Error> {
    if len <= MAX_LEN { Ok(()) } else { Err(Error::TooLong { what: "a level", len, limit: MAX_LEN }) }
}

/// Checks that there is exactly one value per key or, for zero-sized values, none.
fn expect_values<V>(keys: usize, found: usize) -> Result<(), Error> {
    expect_len("the values of a dictionary", values_for::<V>(keys), found)
}

impl<K: Key, V: Value> Level<K, V> {
    fn uninit(stream: &Stream, len: usize) -> Result<Self, Error> {
        expect_short(len)?;
        // The level counts as sorted right after this call, but recorded work would sort it only later.
        stream.refuse_recording("an update of a dictionary")?;
        Ok(Self::of(stream.uninit(len)?, stream.uninit(values_for::<V>(len))?, len))
    }

    /// Makes a level of values: the first `len` of these vectors.
    fn of(keys: DeviceVec<K::Code>, values: DeviceVec<V::Carrier>, len: usize) -> Self {
        assert_carried::<V>();
        Self {
            keys,
            values,
            marks: None,
            operation: None,
            only_operands: false,
            len,
            is_distinct: false,
            id: OnceLock::new(),
        }
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
        expect_values::<V>(keys.len(), values.len())?;
        expect_short(keys.len())?;
        Self::sorted(stream, codes(stream, keys)?.slice(), carried(stream, values)?.slice())
    }

    /// Makes a level of pairs with these key codes. The caller has checked the number of codes and of values.
    fn sorted(
        stream: &Stream,
        codes: DeviceSlice<'_, K::Code>,
        values: DeviceSlice<'_, V::Carrier>,
    ) -> Result<Self, Error> {
        let mut level = Self::uninit(stream, codes.len())?;
        if const { size_of::<V>() == 0 } {
            sort::keys(stream, codes, &mut level.keys, by_code::<K>())?;
        } else {
            sort::pairs(stream, (codes, values), (&mut level.keys, &mut level.values), by_code::<K>())?;
        }
        Ok(level)
    }

    /// Makes a level of tombstones for these keys. Does not wait.
    ///
    /// # Errors
    /// The errors of [`from_pairs`](Self::from_pairs).
    pub fn tombstones(stream: &Stream, keys: DeviceSlice<'_, K>) -> Result<Self, Error> {
        expect_short(keys.len())?;
        stream.refuse_recording("an update of a dictionary")?;
        let codes = codes(stream, keys)?;
        let mut sorted = stream.uninit(keys.len())?;
        let values = stream.zeroed(values_for::<V>(keys.len()))?;
        let mut marks = stream.uninit::<u32>(keys.len().div_ceil(32))?;
        sort::keys(stream, codes.slice(), &mut sorted, by_code::<K>())?;
        transfer::fill(stream, &mut marks, u32::MAX)?;
        Ok(Self { marks: Some(marks), ..Self::of(sorted, values, keys.len()) })
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
        let mut level = Self::from_pairs(stream, keys, values)?;
        if let Some(operation) = V::Carrier::operation::<K::Code, V, M>(operation) {
            level.only_operands = true;
            level.combine(stream, operation)?;
        }
        Ok(level)
    }

    /// Combines the elements of each key, and remembers the operation. The level has marks, or only operands. Does not wait.
    fn combine(&mut self, stream: &Stream, operation: SharedOperation<K, V>) -> Result<(), Error> {
        let mut marks = match self.marks.take() {
            Some(marks) => marks,
            None => stream.uninit::<u32>(2 * self.len.div_ceil(32))?,
        };
        let (keys, values) = (self.keys.view(stream)?, self.values.view_mut(stream)?);
        // SAFETY: the keys of a level ascend. It has as many values, and twice the marks of its tombstones.
        unsafe { operation.combine_runs(stream, keys, values, marks.view_mut(stream)?, self.only_operands)? };
        (self.marks, self.operation) = (Some(marks), Some(operation));
        Ok(())
    }

    /// Returns the codes and the carried values.
    pub(super) fn run(&self) -> Run<'_, K::Code, V::Carrier> {
        let (codes, values) = (self.keys.slice(..self.len), self.values.slice(..values_for::<V>(self.len)));
        codes.and_then(|codes| Ok((codes, values?))).expect("the vectors are at least as long as the level")
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
        expect_values::<V>(keys.len(), values.len())?;
        let len = keys.len() + older.iter().map(|level| level.len).sum::<usize>();
        expect_short(len)?;
        let (codes, values) = (codes(stream, keys)?, carried(stream, values)?);
        let is_plain = !older.iter().any(|level| level.has_tombstones());
        if (1..MAX_PLACED).contains(&older.len()) && is_plain && len <= FEW_WITH_BATCH {
            // The batch need not be a single run before it is merged with the others.
            let most = MAX_PLACED - older.len();
            if let Some(batch) = SortedRuns::new(stream, codes.slice(), values.slice(), most)? {
                let runs: Vec<_> = older.iter().map(|level| level.run()).chain(batch.runs()).collect();
                return Self::placed(stream, &runs, len);
            }
        }
        let batch = Self::sorted(stream, codes.slice(), values.slice())?;
        if older.is_empty() {
            return Ok(batch);
        }
        let all: Vec<&Self> = older.iter().copied().chain([&batch]).collect();
        Self::merge(stream, &all)
    }

    /// Makes a level by merging runs of few elements in all.
    fn placed(stream: &Stream, runs: &[Run<'_, K::Code, V::Carrier>], len: usize) -> Result<Self, Error> {
        let mut merged = Self::uninit(stream, len)?;
        if const { size_of::<V>() == 0 } {
            let runs: Vec<_> = runs.iter().map(|run| run.0).collect();
            merge::place_keys(stream, &runs, &mut merged.keys, K::Code::ORDER)?;
        } else {
            merge::place_pairs(stream, runs, (&mut merged.keys, &mut merged.values), K::Code::ORDER)?;
        }
        Ok(merged)
    }

    /// Merges levels, oldest first. Keeps all elements. If there are operands, combines them. Does not wait.
    ///
    /// # Errors
    /// [`Error::TooMany`] for more than 32 levels, or the errors of [`from_pairs`](Self::from_pairs).
    pub fn merge(stream: &Stream, levels: &[&Self]) -> Result<Self, Error> {
        let has_marks = levels.iter().any(|level| level.has_tombstones());
        if !has_marks {
            return Self::merge_plain(stream, levels);
        }
        let operation = levels.iter().find_map(|level| level.operation.clone());
        if let Some(operation) = operation.clone().filter(|_| levels.iter().all(|level| level.only_operands)) {
            // What is nothing has the identity as its value. So the marks need not travel.
            let mut merged = Self::merge_plain(stream, levels)?;
            merged.only_operands = true;
            merged.combine(stream, operation)?;
            return Ok(merged);
        }
        let len = levels.iter().map(|level| level.len).sum();
        let mut merged = Self::uninit(stream, len)?;
        let arrays = if operation.is_some() { 2 } else { 1 };
        let mut marks = stream.uninit::<u32>(arrays * len.div_ceil(32))?;
        if len > 0 {
            let out = ElementsMut::view(merged.keys.view_mut(stream)?, merged.values.view_mut(stream)?);
            keep_all(stream, levels, out, marks.view_mut(stream)?)?;
        }
        merged.marks = Some(marks);
        if let Some(operation) = operation {
            merged.combine(stream, operation)?;
        }
        Ok(merged)
    }

    /// Merges the keys and values of levels, oldest first. Does not wait.
    fn merge_plain(stream: &Stream, levels: &[&Self]) -> Result<Self, Error> {
        let len = levels.iter().map(|level| level.len).sum();
        let runs: Vec<_> = levels.iter().map(|level| level.run()).collect();
        if len <= FEW && (3..=MAX_PLACED).contains(&levels.len()) {
            return Self::placed(stream, &runs, len);
        }
        let mut merged = Self::uninit(stream, len)?;
        if const { size_of::<V>() == 0 } {
            let runs: Vec<_> = runs.iter().map(|run| run.0).collect();
            merge::runs_keys(stream, &runs, &mut merged.keys, K::Code::ORDER)?;
        } else {
            merge::runs_pairs(stream, &runs, (&mut merged.keys, &mut merged.values), K::Code::ORDER)?;
        }
        Ok(merged)
    }

    /// Merges levels, oldest first, into a level of their live elements. Waits for the stream, to learn how many there
    /// are.
    ///
    /// # Errors
    /// The errors of [`merge`](Self::merge).
    pub fn live(stream: &Stream, levels: &[&Self]) -> Result<Self, Error> {
        let mut level = Self::live_with_room(stream, levels)?;
        let (len, total) = (level.len, levels.iter().map(|level| level.len).sum::<usize>());
        // Free the memory allocated for dead elements if that is worth a copy.
        if len < total - total / 8 {
            let mut exact = Self::uninit(stream, len)?;
            exact.is_distinct = true;
            exact.keys.copy_from(stream, level.keys.slice(..len)?)?;
            if size_of::<V>() > 0 {
                exact.values.copy_from(stream, level.values.slice(..len)?)?;
            }
            level = exact;
        }
        Ok(level)
    }

    /// Merges levels, oldest first, into a level of their live elements, with their values or without. The vectors keep
    /// the room allocated for dead elements. Waits for the stream.
    pub(super) fn live_with_room<U: Value>(stream: &Stream, levels: &[&Level<K, U>]) -> Result<Self, Error> {
        let Live { keys, values, len } = Live::of(stream, levels, Sign::NONE)?;
        expect_short(len)?;
        Ok(Self { is_distinct: true, ..Self::of(keys, values, len) })
    }

    /// Makes a level of the elements whose flag is not 0. Waits for the stream, to learn how many there are.
    ///
    /// # Errors
    /// [`Error::InvalidOption`] if the level has tombstones or operands; [`Error::LengthMismatch`] if there is not one flag
    /// per element; the errors of [`from_pairs`](Self::from_pairs).
    pub fn select(&self, stream: &Stream, flags: &DeviceVec<u8>) -> Result<Self, Error> {
        self.expect_values("a level to select from")?;
        expect_len("the flags of a level", self.len, flags.len())?;
        let mut kept = Self::uninit(stream, self.len)?;
        let (codes, values) = self.run();
        let count = if const { size_of::<V>() == 0 } {
            select::flagged(stream, codes, flags, &mut kept.keys)?
        } else {
            select::flagged_pairs(stream, (codes, values), flags, (&mut kept.keys, &mut kept.values))?
        };
        kept.len = count.get(stream)? as usize;
        Ok(kept)
    }

    /// Returns all elements, live or not, as keys and values. Does not wait.
    ///
    /// # Errors
    /// [`Error::InvalidOption`] if the level has tombstones or operands; any launch error.
    pub fn into_contents(self, stream: &Stream) -> Result<Contents<K, V>, Error> {
        self.expect_values("a level to take apart")?;
        let Self { mut keys, mut values, len, .. } = self;
        keys.truncate(len);
        values.truncate(values_for::<V>(len));
        Ok(Contents { keys: keys_of(stream, keys)?, values: recast(values) })
    }

    /// Returns an error unless all elements are values.
    fn expect_values(&self, what: &'static str) -> Result<(), Error> {
        if self.has_tombstones() || self.has_operands() {
            let asked = "one with tombstones or operands".to_owned();
            return Err(Error::InvalidOption { what, asked, allowed: "one with values alone" });
        }
        Ok(())
    }

    /// Returns the device of the level.
    #[must_use]
    pub fn device(&self) -> &Device {
        self.keys.device()
    }

    /// Returns the number of elements, live or stale.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether there are no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns whether some elements may be tombstones.
    #[must_use]
    pub fn has_tombstones(&self) -> bool {
        self.marks.is_some()
    }

    /// Returns whether some elements may be operands.
    #[must_use]
    pub fn has_operands(&self) -> bool {
        self.operation.is_some()
    }

    /// Returns the operation of the operands.
    pub(super) fn operation(&self) -> Option<&SharedOperation<K, V>> {
        self.operation.as_ref()
    }

    /// Returns whether the level has operands of another operation than this one.
    #[must_use]
    pub fn has_other_operands<M: Pod>(&self, operation: &M) -> bool {
        let state = bytemuck::bytes_of(operation);
        self.operation.as_ref().is_some_and(|operation| !operation.is(TypeId::of::<M>(), state))
    }

    /// Returns whether the keys are known to be distinct, without tombstones. Then an element is live unless a newer
    /// level has its key.
    #[must_use]
    pub fn is_distinct(&self) -> bool {
        self.is_distinct
    }

    /// Declares that the keys are distinct. Has no effect on a level with tombstones. If the keys are not distinct,
    /// queries may count too many.
    pub fn set_distinct(&mut self) {
        self.is_distinct = self.marks.is_none();
    }

    /// Returns a number that identifies the contents. It is random, so no other level has it, in this process or in
    /// another. Contents never change, so a file that is named after the id need not be written again.
    #[must_use]
    pub fn id(&self) -> u128 {
        *self.id.get_or_init(unique_id)
    }

    /// Sets the id of a level that was read from a file: the id it had when it was written.
    #[must_use]
    pub fn with_id(self, id: u128) -> Self {
        Self { id: OnceLock::from(id), ..self }
    }

    /// Returns the device memory in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.keys.len() * size_of::<K::Code>()
            + self.values.len() * size_of::<V>()
            + self.marks.as_ref().map_or(0, |marks| marks.len() * 4)
    }

    /// Returns the elements, for reading.
    #[must_use]
    pub fn parts(&self) -> Parts<'_, K::Code, V> {
        let (codes, values) = self.run();
        let values = values.cast().expect("a value and its carrier have the same size");
        let words = self.len.div_ceil(32);
        let marks = self.marks.as_ref();
        let marks = marks.map(|marks| marks.slice(..words).expect("there is a mark for each element"));
        Parts { codes, values, marks }
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
        let len = keys.len();
        expect_short(len)?;
        expect_len("the values of a level", values_for::<V>(len), values.len())?;
        if let Some(marks) = &marks {
            expect_len("the marks of a level", len.div_ceil(32), marks.len())?;
        }
        Ok(Self { marks, ..Self::of(keys, recast(values), len) })
    }

    /// Returns the level as kernels see it, with values as their carrier, or without: `W` is `V::Carrier` or `()`.
    pub(super) fn buffers<W: Carrier>(
        &self,
        stream: &Stream,
        slot: usize,
    ) -> Result<LevelBuffers<'_, K::Code, W>, Error> {
        let codes = self.parts().codes;
        let values = if size_of::<W>() == 0 { View::empty() } else { self.carriers::<W>().view(stream)? };
        let marks = self.marks.as_ref().map_or_else(|| Ok(View::empty()), |marks| marks.view(stream))?;
        Ok(LevelBuffers { slot, keys: codes.view(stream)?, values, marks, directory: View::empty() })
    }

    /// Returns the values as their carrier, which the caller names.
    fn carriers<W: Carrier>(&self) -> DeviceSlice<'_, W> {
        self.run().1.cast().expect("the caller named the carrier of the values")
    }

    /// Builds the directory, with one bucket per `bucket` elements, and the level's entry in the table. There must be
    /// at least one element. Does not wait.
    pub(super) fn build_directory(
        &self,
        stream: &Stream,
        table: &mut DeviceVec<u64>,
        slot: usize,
        bucket: usize,
    ) -> Result<DeviceVec<u64>, Error> {
        let mut directory = stream.uninit::<u64>(directory_len((self.len / bucket).max(2)))?;
        let LevelBuffers { keys, values, marks, .. } = self.buffers::<V::Carrier>(stream, slot)?;
        // SAFETY: this is the same memory, as bytes, and still borrowed.
        let values = unsafe {
            let values = values.into_param();
            View::new(Global::from_raw(values.as_ptr().cast(), values.len() * size_of::<V>()), Reach::none())
        };
        let kernel =
            BuildDirectory::new(keys, values, marks, directory.view_mut(stream)?, table.view_mut(stream)?, slot as u32);
        // SAFETY: there is a thread per element and at least one element. The directory has room for the buckets.
        unsafe { stream.launch(kernel, self.len.div_ceil(THREADS as usize))? };
        Ok(directory)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
