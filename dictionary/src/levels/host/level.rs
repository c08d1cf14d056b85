//! Levels on the host, and the ways to make one, for types that are known by their sizes alone.

#![deny(unsafe_op_in_unsafe_fn)]

use super::full_merge::{Live, Out, keep};
use super::kinds::Kinds;
use super::operation::Operation;
use super::types::{Types, with_code};
use super::view::LevelBuffers;
use crate::host::file::unique_id;
use crate::levels::device::directory::{BuildDirectory, directory_len};
use crate::levels::device::payload::{OPERAND, TOMBSTONE};
use crate::levels::device::table::THREADS;
use gpu_primitives::code::Sign;
use gpu_primitives::kernel::View;
use gpu_primitives::lowered::merge::{Run, Way};
use gpu_primitives::lowered::{self, AnySlice, AnyVec, Place};
use gpu_primitives::merge::MAX_PLACED;
use gpu_primitives::select::Masked;
use gpu_primitives::{
    Device, DeviceSlice, DeviceVec, Error, Global, Stream, bits, expect_len, permute, sized, transfer, transform,
};
use std::sync::OnceLock;

/// The most elements in a level.
const MAX_LEN: usize = u32::MAX as usize;
/// Up to this many elements, three or more levels are merged faster by computing the position of each element, in a
/// single launch, than by tiles. With two levels, the tiles are found faster.
const FEW: usize = 1 << 18;
/// The same limit for levels and a batch that is sorted in chunks, all of which are merged at once.
const FEW_WITH_BATCH: usize = 1 << 17;
/// More elements than these, some of them in host memory, are merged in pieces of so many.
const PIECE: usize = 1 << 22;

/// A [`Level`](crate::levels::Level) whose types are known by their sizes alone.
#[derive(Debug)]
pub struct AnyLevel {
    pub(crate) types: &'static Types,
    /// The codes of the keys, ascending. Of equal ones, the newest is last.
    keys: AnyVec,
    /// One value per key; empty if values are zero-sized.
    values: AnyVec,
    kinds: Kinds,
    /// The number of elements; the vectors may be longer.
    len: usize,
    /// Where the keys and the values are. The marks are on the device in any case.
    place: Place,
    /// Identifies the contents; chosen when it is first needed.
    id: OnceLock<u128>,
}

/// Returns the number of elements of levels.
pub(crate) fn total(levels: &[&AnyLevel]) -> usize {
    levels.iter().map(|level| level.len).sum()
}

// Errors are those of the typed level's functions of the same names.
#[allow(clippy::missing_errors_doc, reason = "documented there")]
impl AnyLevel {
    /// Checks that a level can have this many elements.
    ///
    /// # Errors
    /// [`Error::TooLong`] if it cannot.
    pub fn expect_short(len: usize) -> Result<(), Error> {
        if len <= MAX_LEN { Ok(()) } else { Err(Error::TooLong { what: "a level", len, limit: MAX_LEN }) }
    }

    fn uninit(types: &'static Types, stream: &Stream, place: Place, len: usize) -> Result<Self, Error> {
        Self::expect_short(len)?;
        // The level counts as sorted right after this call, but recorded work would sort it only later.
        stream.refuse_recording("an update of a dictionary")?;
        let keys = AnyVec::uninit_in(stream, place, types.code, len)?;
        let values = AnyVec::uninit_in(stream, place, types.value, types.values_for(len))?;
        Ok(Self::of(types, place, keys, values, len))
    }

    /// Makes a level of values: the first `len` of these vectors, which are in a place.
    fn of(types: &'static Types, place: Place, keys: AnyVec, values: AnyVec, len: usize) -> Self {
        Self { types, keys, values, kinds: Kinds::of_marks(None), len, place, id: OnceLock::new() }
    }

    /// Makes a level of these pairs. Of equal keys, later ones are newer. For zero-sized values, pass an empty slice. Does
    /// not wait.
    #[doc(hidden)]
    pub fn from_pairs(
        types: &'static Types,
        stream: &Stream,
        keys: AnySlice<'_>,
        values: AnySlice<'_>,
    ) -> Result<Self, Error> {
        expect_len("the values of a dictionary", types.values_for(keys.len()), values.len())?;
        Self::expect_short(keys.len())?;
        let (codes, values) = (types.codes(stream, keys)?, types.carried(stream, values)?);
        Self::sorted(types, stream, codes.slice(), values.slice())
    }

    /// Makes a level of pairs with these key codes. The caller has checked the number of codes and of values.
    fn sorted(
        types: &'static Types,
        stream: &Stream,
        codes: AnySlice<'_>,
        values: AnySlice<'_>,
    ) -> Result<Self, Error> {
        let mut level = Self::uninit(types, stream, Place::Device, codes.len())?;
        let to = (level.keys.as_mut_slice(), level.values.as_mut_slice());
        lowered::sort::codes(stream, (codes, values), to, types.bits)?;
        Ok(level)
    }

    /// Makes a level of tombstones for these keys. Does not wait.
    #[doc(hidden)]
    pub fn tombstones(types: &'static Types, stream: &Stream, keys: AnySlice<'_>) -> Result<Self, Error> {
        Self::expect_short(keys.len())?;
        stream.refuse_recording("an update of a dictionary")?;
        let len = keys.len();
        let codes = types.codes(stream, keys)?;
        let mut sorted = AnyVec::uninit(stream, types.code, len)?;
        let values = AnyVec::zeroed(stream, types.value, types.values_for(len))?;
        let mut marks = stream.uninit::<u32>(len.div_ceil(32))?;
        // The values of tombstones are zeros, and need not move.
        let (none, mut to_none) = (AnyVec::uninit(stream, 0, 0)?, AnyVec::uninit(stream, 0, 0)?);
        let to = (sorted.as_mut_slice(), to_none.as_mut_slice());
        lowered::sort::codes(stream, (codes.slice(), none.as_slice()), to, types.bits)?;
        transfer::fill(stream, &mut marks, u32::MAX)?;
        Ok(Self { kinds: Kinds::Tombstones { marks }, ..Self::of(types, Place::Device, sorted, values, len) })
    }

    /// Makes a level of operands: values that are combined with what is older, by an operation. Without one, values are
    /// zero-sized, and combined ones as before. Does not wait.
    #[doc(hidden)]
    pub fn operands(
        types: &'static Types,
        stream: &Stream,
        keys: AnySlice<'_>,
        values: AnySlice<'_>,
        operation: Option<Operation>,
    ) -> Result<Self, Error> {
        let mut level = Self::from_pairs(types, stream, keys, values)?;
        if let Some(operation) = operation {
            level.combine(stream, operation, None)?;
        }
        Ok(level)
    }

    /// Makes a level of operations of several kinds: that of a value, a tombstone or an operand for each key. The operation is
    /// that of the operands, if there are any. Of equal keys, later ones are newer. Does not wait.
    pub(crate) fn of_kinds(
        types: &'static Types,
        stream: &Stream,
        (keys, values): (AnySlice<'_>, AnySlice<'_>),
        kinds: DeviceSlice<'_, u8>,
        operation: Option<Operation>,
    ) -> Result<Self, Error> {
        let len = keys.len();
        expect_len("the values of a dictionary", types.values_for(len), values.len())?;
        expect_len("the kinds of operations", len, kinds.len())?;
        let codes = types.codes(stream, keys)?;
        let mut level = Self::uninit(types, stream, Place::Device, len)?;
        // Values and kinds follow the positions of their keys.
        let (mut positions, mut sorted) = (stream.uninit::<u32>(len)?, stream.uninit::<u32>(len)?);
        transform::sequence(stream, &mut positions, 0u32)?;
        let to = (level.keys.as_mut_slice(), sorted.as_mut_slice().into());
        lowered::sort::codes(stream, (codes.slice(), positions.as_slice().into()), to, types.bits)?;
        let mut sorted_kinds = stream.uninit::<u8>(len)?;
        // SAFETY: a sort only moves the positions, which are in range.
        unsafe { permute::gather_unchecked(stream, kinds, &sorted, &mut sorted_kinds)? };
        sized!(types.value => W in u32 | u64, {
            let (values, to) = (types.carried(stream, values)?, level.values.as_mut_slice());
            let (values, to) = (values.slice().typed::<W>(), to.typed::<W>());
            let (values, to) = values.zip(to).expect("both are aligned, and of this size");
            // SAFETY: the same.
            unsafe { permute::gather_unchecked(stream, values, &sorted, to)? };
        }, else {});
        let words = len.div_ceil(32);
        let bits: &[u32] = if operation.is_some() { &[TOMBSTONE, OPERAND] } else { &[TOMBSTONE] };
        // Bits after the last element are zeros, so that equal levels make equal files.
        let mut marks = stream.zeroed::<u32>(bits.len() * words)?;
        for (array, &bit) in bits.iter().enumerate() {
            let marks = marks.slice_mut(array * words..(array + 1) * words)?.bytes().slice_mut(..len.div_ceil(8))?;
            bits::pack(stream, &sorted_kinds, marks, Masked::differ(bit as u8, 0))?;
        }
        level.mark(stream, marks, operation)?;
        Ok(level)
    }

    /// Gives a level its marks: of tombstones and, if there is an operation, of operands, which it combines. Does not wait.
    fn mark(&mut self, stream: &Stream, marks: DeviceVec<u32>, operation: Option<Operation>) -> Result<(), Error> {
        match operation {
            Some(operation) => self.combine(stream, operation, Some(marks)),
            None => {
                self.kinds = Kinds::Tombstones { marks };
                Ok(())
            }
        }
    }

    /// Combines the elements of each key. The marks say which are tombstones and operands; without marks all are operands, or
    /// nothing. Does not wait.
    fn combine(&mut self, stream: &Stream, operation: Operation, marks: Option<DeviceVec<u32>>) -> Result<(), Error> {
        let are_all = marks.is_none();
        let mut marks = match marks {
            Some(marks) => marks,
            None => stream.uninit::<u32>(2 * self.len.div_ceil(32))?,
        };
        let (keys, values) = (self.keys.as_slice(), self.values.as_mut_slice());
        // SAFETY: the keys of a level ascend. It has as many values, and twice the marks of its tombstones.
        unsafe { operation.combine_runs(stream, keys, values, marks.view_mut(stream)?, are_all)? };
        self.kinds = Kinds::Operands { marks, operation, are_all };
        Ok(())
    }

    /// Returns the codes and the carried values.
    #[doc(hidden)]
    pub fn run(&self) -> Run<'_> {
        let (keys, values) = (self.keys.as_slice(), self.values.as_slice());
        let values = values.slice(0..self.types.values_for(self.len));
        let run = keys.slice(0..self.len).and_then(|codes| Ok((codes, values?)));
        run.expect("the vectors are at least as long as the level")
    }

    /// Merges levels, oldest first, with these pairs, which are newer than all of them, into a level in a place. Does not wait.
    #[doc(hidden)]
    pub fn merge_pairs(
        types: &'static Types,
        stream: &Stream,
        place: Place,
        older: &[&Self],
        keys: AnySlice<'_>,
        values: AnySlice<'_>,
    ) -> Result<Self, Error> {
        expect_len("the values of a dictionary", types.values_for(keys.len()), values.len())?;
        let len = keys.len() + total(older);
        Self::expect_short(len)?;
        let (codes, values) = (types.codes(stream, keys)?, types.carried(stream, values)?);
        let is_plain = !older.iter().any(|level| level.has_tombstones());
        if (1..MAX_PLACED).contains(&older.len()) && is_plain && len <= FEW_WITH_BATCH {
            // The batch need not be a single run before it is merged with the others.
            let most = MAX_PLACED - older.len();
            if let Some(batch) = lowered::sort::Runs::new(stream, codes.slice(), values.slice(), most)? {
                let runs: Vec<_> = older.iter().map(|level| level.run()).chain(batch.runs()).collect();
                return Self::merged(types, stream, place, &runs, len, Way::Places);
            }
        }
        let batch = Self::sorted(types, stream, codes.slice(), values.slice())?;
        if older.is_empty() {
            return batch.into_place(stream, place);
        }
        let all: Vec<&Self> = older.iter().copied().chain([&batch]).collect();
        Self::merge(types, stream, place, &all)
    }

    /// Makes a level by merging runs.
    fn merged(
        types: &'static Types,
        stream: &Stream,
        place: Place,
        runs: &[Run<'_>],
        len: usize,
        way: Way,
    ) -> Result<Self, Error> {
        let mut merged = Self::uninit(types, stream, place, len)?;
        lowered::merge::codes(stream, runs, (merged.keys.as_mut_slice(), merged.values.as_mut_slice()), way)?;
        Ok(merged)
    }

    /// Merges levels, oldest first, into a level in a place. Keeps all elements. If there are operands, combines them. Does not wait.
    #[doc(hidden)]
    pub fn merge(types: &'static Types, stream: &Stream, place: Place, levels: &[&Self]) -> Result<Self, Error> {
        let has_marks = levels.iter().any(|level| level.has_tombstones());
        if !has_marks {
            return Self::merge_plain(types, stream, place, levels);
        }
        let operation = levels.iter().find_map(|level| level.operation()).cloned();
        let are_all = |level: &&Self| matches!(level.kinds, Kinds::Operands { are_all: true, .. });
        if let Some(operation) = operation.clone().filter(|_| levels.iter().all(are_all)) {
            // Absorbed elements hold the identity. So the marks need not travel.
            let mut merged = Self::merge_plain(types, stream, place, levels)?;
            merged.combine(stream, operation, None)?;
            return Ok(merged);
        }
        let len = total(levels);
        let mut merged = Self::uninit(types, stream, place, len)?;
        let arrays = if operation.is_some() { 2 } else { 1 };
        let mut marks = stream.uninit::<u32>(arrays * len.div_ceil(32))?;
        if len > 0 {
            let out = Out { keys: merged.keys.as_mut_slice(), values: merged.values.as_mut_slice() };
            keep(types, stream, levels, out, marks.view_mut(stream)?)?;
        }
        merged.mark(stream, marks, operation)?;
        Ok(merged)
    }

    /// Merges the keys and values of levels, oldest first. Does not wait, unless more than a piece is merged, some of it in host memory.
    fn merge_plain(types: &'static Types, stream: &Stream, place: Place, levels: &[&Self]) -> Result<Self, Error> {
        let len = total(levels);
        if len > PIECE && levels.iter().any(|level| level.place == Place::Host) {
            let runs: Vec<_> = levels.iter().map(|level| (level.run(), level.place)).collect();
            let mut merged = Self::uninit(types, stream, place, len)?;
            let to = (merged.keys.as_mut_slice(), merged.values.as_mut_slice());
            lowered::merge::codes_in_pieces(stream, &runs, to, PIECE)?;
            return Ok(merged);
        }
        let runs: Vec<_> = levels.iter().map(|level| level.run()).collect();
        let is_placed = len <= FEW && (3..=MAX_PLACED).contains(&levels.len());
        Self::merged(types, stream, place, &runs, len, if is_placed { Way::Places } else { Way::Tiles })
    }

    /// Merges levels, oldest first, into a level of their live elements in a place. Waits for the stream, to learn how many there are.
    #[doc(hidden)]
    pub fn live(types: &'static Types, stream: &Stream, place: Place, levels: &[&Self]) -> Result<Self, Error> {
        let mut level = Self::live_with_room(types, stream, place, levels)?;
        let (len, total) = (level.len, total(levels));
        // Free the memory allocated for dead elements if that is worth a copy.
        if len < total - total / 8 {
            let mut exact = level.arrays_in(stream, place)?;
            exact.kinds = level.kinds;
            level = exact;
        }
        Ok(level)
    }

    /// Copies the keys and values to a place, exactly as many as there are. Does not wait.
    fn arrays_in(&self, stream: &Stream, place: Place) -> Result<Self, Error> {
        let mut copy = Self::uninit(self.types, stream, place, self.len)?;
        let (codes, values) = self.run();
        copy.keys.as_mut_slice().copy_from(stream, codes)?;
        copy.values.as_mut_slice().copy_from(stream, values)?;
        Ok(copy)
    }

    /// Returns the same level in a place: a copy, with the same id, unless it is there. Does not wait.
    #[doc(hidden)]
    pub fn copy_in(&self, stream: &Stream, place: Place) -> Result<Self, Error> {
        let kinds = self.kinds.try_clone(stream)?;
        let Self { keys, values, .. } = self.arrays_in(stream, place)?;
        // The id that files have.
        let id = OnceLock::from(self.id());
        Ok(Self { kinds, id, ..Self::of(self.types, place, keys, values, self.len) })
    }

    /// Moves the level to a place. Does not wait.
    #[doc(hidden)]
    pub fn into_place(self, stream: &Stream, place: Place) -> Result<Self, Error> {
        if self.place == place {
            return Ok(self);
        }
        let Self { keys, values, .. } = self.arrays_in(stream, place)?;
        Ok(Self { keys, values, place, ..self })
    }

    /// Merges levels, oldest first, into a level of their live elements, with their values or, if `types` has none, without.
    /// The vectors keep the room allocated for dead elements. Waits for the stream.
    pub(crate) fn live_with_room(
        types: &'static Types,
        stream: &Stream,
        place: Place,
        levels: &[&Self],
    ) -> Result<Self, Error> {
        let Live { keys, values, len } = Live::of(types, stream, place, levels, Sign::NONE)?;
        Self::expect_short(len)?;
        Ok(Self { kinds: Kinds::Values { are_distinct: true }, ..Self::of(types, place, keys, values, len) })
    }

    /// Makes a level of the elements whose flag is not 0, in the same place. Waits for the stream, to learn how many there are.
    #[doc(hidden)]
    pub fn select(&self, stream: &Stream, flags: DeviceSlice<'_, u8>) -> Result<Self, Error> {
        self.expect_values("a level to select from")?;
        expect_len("the flags of a level", self.len, flags.len())?;
        let mut kept = Self::uninit(self.types, stream, self.place, self.len)?;
        let to = (kept.keys.as_mut_slice(), kept.values.as_mut_slice());
        kept.len = lowered::select::flagged(stream, self.run(), flags, to)?.get(stream)? as usize;
        Ok(kept)
    }

    /// Returns all elements, live or not, as keys and values. Does not wait.
    #[doc(hidden)]
    pub fn into_contents(self, stream: &Stream) -> Result<(AnyVec, AnyVec), Error> {
        self.expect_values("a level to take apart")?;
        let Self { types, mut keys, mut values, len, .. } = self;
        keys.truncate(len);
        values.truncate(types.values_for(len));
        Ok((types.keys_of(stream, keys)?, values))
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
        self.kinds.marks().is_some()
    }

    /// Returns whether some elements may be operands.
    #[must_use]
    pub fn has_operands(&self) -> bool {
        self.operation().is_some()
    }

    /// Returns the operation of the operands.
    pub(crate) fn operation(&self) -> Option<&Operation> {
        self.kinds.operation()
    }

    /// Returns whether the level has operands of another operation than this one.
    #[must_use]
    pub fn has_operands_of_another(&self, operation: &Operation) -> bool {
        self.operation().is_some_and(|own| !own.is_same(operation))
    }

    /// Returns whether the keys are known to be distinct, without tombstones. Then an element is live unless a newer
    /// level has its key.
    #[must_use]
    pub fn is_distinct(&self) -> bool {
        matches!(self.kinds, Kinds::Values { are_distinct: true })
    }

    /// Declares that the keys are distinct. Has no effect on a level with tombstones. If the keys are not distinct,
    /// queries may count too many.
    pub fn set_distinct(&mut self) {
        if let Kinds::Values { are_distinct } = &mut self.kinds {
            *are_distinct = true;
        }
    }

    /// Returns a number that identifies the contents. It is random, so no other level has it, in this process or in
    /// another. Contents never change, so a file that is named after the id need not be written again.
    #[must_use]
    pub fn id(&self) -> u128 {
        *self.id.get_or_init(unique_id)
    }

    /// Sets the id of a level that was read from a file: the id it had when it was written.
    #[doc(hidden)]
    pub fn set_id(&mut self, id: u128) {
        self.id = OnceLock::from(id);
    }

    /// Returns where the keys and the values are.
    #[doc(hidden)]
    #[must_use]
    pub fn place(&self) -> Place {
        self.place
    }

    /// Returns the bytes of the keys and values.
    #[doc(hidden)]
    #[must_use]
    pub fn array_bytes(&self) -> usize {
        self.keys.len() * self.types.code + self.values.len() * self.types.value
    }

    /// Returns the device memory in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let arrays = if self.place == Place::Device { self.array_bytes() } else { 0 };
        arrays + self.kinds.marks().map_or(0, |marks| marks.len() * 4)
    }

    /// Returns the host memory in bytes.
    #[must_use]
    pub fn host_bytes(&self) -> usize {
        if self.place == Place::Host { self.array_bytes() } else { 0 }
    }

    /// Returns the words of the tombstones' marks.
    pub(crate) fn marks(&self) -> Option<DeviceSlice<'_, u32>> {
        let words = self.len.div_ceil(32);
        self.kinds.marks().map(|marks| marks.slice(..words).expect("there is a mark for each element"))
    }

    /// Makes a level of its parts.
    ///
    /// # Safety
    /// The codes ascend, and all parts are on one device, keys and values in this place. The work that writes them has been
    /// enqueued on a stream, not recorded.
    pub(crate) unsafe fn from_parts(
        types: &'static Types,
        place: Place,
        keys: AnyVec,
        values: AnyVec,
        marks: Option<DeviceVec<u32>>,
    ) -> Result<Self, Error> {
        let len = keys.len();
        Self::expect_short(len)?;
        expect_len("the values of a level", types.values_for(len), values.len())?;
        if let Some(marks) = &marks {
            expect_len("the marks of a level", len.div_ceil(32), marks.len())?;
        }
        Ok(Self { kinds: Kinds::of_marks(marks), ..Self::of(types, place, keys, values, len) })
    }

    /// Returns the level as kernels find it, with values or without.
    pub(crate) fn buffers(&self, stream: &Stream, slot: usize, with_values: bool) -> Result<LevelBuffers<'_>, Error> {
        let (codes, values) = self.run();
        let values = if with_values { values.bytes_view(stream)? } else { View::empty() };
        let marks = self.all_marks(stream)?;
        let keys = codes.bytes_view(stream)?;
        Ok(LevelBuffers { slot, len: self.len, keys, values, marks, directory: View::empty() })
    }

    /// Returns the marks as kernels take them: none, or those of tombstones and of operands.
    pub(crate) fn all_marks(&self, stream: &Stream) -> Result<View<'_, Global<u32>>, Error> {
        self.kinds.marks().map_or_else(|| Ok(View::empty()), |marks| marks.view(stream))
    }

    /// Builds the directory, with one bucket per `bucket` elements, and the level's entry in the table. There must be
    /// at least one element. Does not wait.
    pub(crate) fn build_directory(
        &self,
        stream: &Stream,
        table: &mut DeviceVec<u64>,
        slot: usize,
        bucket: usize,
    ) -> Result<DeviceVec<u64>, Error> {
        let mut directory = stream.uninit::<u64>(directory_len((self.len / bucket).max(2)))?;
        let (codes, values) = self.run();
        let (values, marks) = (values.bytes_view(stream)?, self.all_marks(stream)?);
        let (to, table, slot) = (directory.view_mut(stream)?, table.view_mut(stream)?, slot as u32);
        with_code!(self.types.code => C, {
            let kernel = BuildDirectory::<C>::new(codes.view(stream)?, values, marks, to, table, slot);
            // SAFETY: there is a thread per element and at least one element. The directory has room for the buckets.
            unsafe { stream.launch(kernel, self.len.div_ceil(THREADS as usize))? };
        });
        Ok(directory)
    }
}
