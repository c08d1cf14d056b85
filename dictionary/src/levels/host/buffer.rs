//! Operations in the order of their arrival, which become a level when somebody asks.

#![deny(unsafe_op_in_unsafe_fn)]

use super::level::AnyLevel;
use super::operation::Operation;
use super::types::Types;
use crate::levels::device::merge::append::AppendPairs;
use crate::levels::device::payload::{OPERAND, PUT, TOMBSTONE};
use crate::levels::device::table::THREADS;
use gpu_primitives::kernel::{Reach, View};
use gpu_primitives::lowered::{AnySlice, AnySliceMut, AnyVec, Place};
use gpu_primitives::sort::U256;
use gpu_primitives::{DeviceVec, Error, Global, GlobalMut, Stream, expect_len, sized, transfer};

/// Operations of one call.
#[derive(Clone, Copy, Debug)]
pub struct Operations<'a> {
    /// The keys to insert, or to combine.
    pub keys: AnySlice<'a>,
    /// Their values; none if values are zero-sized.
    pub values: AnySlice<'a>,
    /// The operation that combines the values; `None` if they replace those that are present.
    pub operation: Option<&'a Operation>,
    /// The keys to delete, after that.
    pub deleted: Option<AnySlice<'a>>,
}

impl Operations<'_> {
    /// Returns how many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.keys.len() + self.deletions()
    }

    /// Returns whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns how many deletions there are.
    #[must_use]
    pub fn deletions(&self) -> usize {
        self.deleted.map_or(0, |deleted| deleted.len())
    }
}

/// What the operations of a buffer do with their keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kinds {
    /// All of them do this.
    Only(u32),
    /// There is a byte for each.
    Each,
}

/// Operations of several calls on the device, in the order of their arrival: neither sorted nor combined.
///
/// An operation is a key, a value, and what it does: it replaces the value of the key, deletes the key, or is combined with the
/// value. As long as all do the same, nothing is stored for that.
#[derive(Debug)]
pub struct AnyBuffer {
    types: &'static Types,
    /// Room for keys, and for as many values.
    keys: AnyVec,
    values: AnyVec,
    /// Room for the kinds of operations, from the first call on that needs it.
    kinds: Option<DeviceVec<u8>>,
    /// The number of operations.
    len: usize,
    is: Kinds,
    /// How many of the operations are deletions.
    tombstones: usize,
    /// The operation of those that are combined.
    operation: Option<Operation>,
}

// Errors are those of levels.
#[allow(clippy::missing_errors_doc, reason = "any error of an allocation, a copy or a launch")]
impl AnyBuffer {
    /// Creates an empty buffer with room for some operations. Does not wait.
    #[doc(hidden)]
    pub fn with_room(types: &'static Types, stream: &Stream, room: usize) -> Result<Self, Error> {
        let (keys, values) = (AnyVec::uninit(stream, types.key, room)?, types.room_for_values(stream, room)?);
        Ok(Self { types, keys, values, kinds: None, len: 0, is: Kinds::Only(PUT), tombstones: 0, operation: None })
    }

    /// Creates an empty buffer with room for some operations or, if there is no memory for that, for no more than `least`. Does not
    /// wait.
    #[doc(hidden)]
    pub fn with_room_if_any(types: &'static Types, stream: &Stream, least: usize, room: usize) -> Result<Self, Error> {
        match Self::with_room(types, stream, room) {
            Err(Error::OutOfMemory { .. }) if least < room => Self::with_room(types, stream, least),
            buffer => buffer,
        }
    }

    /// Returns the number of operations.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether there are no operations.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns how many of the operations are deletions.
    #[must_use]
    pub fn tombstones(&self) -> usize {
        self.tombstones
    }

    /// Returns the device memory in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let kinds = self.kinds.as_ref().map_or(0, DeviceVec::len);
        self.keys.len() * self.types.key + self.values.len() * self.types.value + kinds
    }

    /// Returns the operation of those that are combined.
    #[must_use]
    pub fn operation(&self) -> Option<&Operation> {
        self.operation.as_ref()
    }

    /// Checks that the buffer is on the stream's device.
    ///
    /// # Errors
    /// [`Error::WrongDevice`] if it is not.
    pub fn expect_device(&self, stream: &Stream) -> Result<(), Error> {
        let (found, expected) = (self.keys.device(), stream.device());
        if found == expected {
            return Ok(());
        }
        Err(Error::WrongDevice { what: "the dictionary", found: found.kind(), expected: expected.kind() })
    }

    /// Appends operations. Those that are combined must have the operation of those that are there. If there is not enough
    /// room, makes some, for up to `most` operations. After an error the buffer is unchanged. Does not wait.
    ///
    /// # Panics
    /// If keys or values have other sizes than those of the buffer.
    #[doc(hidden)]
    pub fn append(&mut self, stream: &Stream, added: Operations<'_>, most: usize) -> Result<(), Error> {
        expect_len("the values of a dictionary", self.types.values_for(added.keys.len()), added.values.len())?;
        let deleted = added.deleted.map_or(self.types.key, |deleted| deleted.size());
        let sizes = (added.keys.size(), added.values.size(), deleted);
        assert_eq!(sizes, (self.types.key, self.types.value, self.types.key), "operations of another dictionary");
        // The buffer counts the operations right after this call, but recorded work would copy them only later.
        stream.refuse_recording("an update of a dictionary")?;
        self.make_room(stream, self.len + added.len(), most)?;
        let kind = if added.operation.is_some() { OPERAND } else { PUT };
        let parts = [(kind, added.keys, Some(added.values))];
        let deletions = added.deleted.map(|deleted| (TOMBSTONE, deleted, None));
        let (mut len, mut is) = (self.len, self.is);
        for (kind, keys, values) in parts.into_iter().chain(deletions).filter(|(_, keys, _)| !keys.is_empty()) {
            is = self.with_kind(stream, (len, is), kind, keys.len())?;
            self.write(stream, len, keys, values)?;
            len += keys.len();
        }
        // Nothing before this counts.
        (self.len, self.is) = (len, is);
        self.tombstones += added.deletions();
        if let Some(operation) = added.operation {
            self.operation = Some(operation.clone());
        }
        Ok(())
    }

    /// Makes room for `len` operations, and for as many again, but not for more than `most`.
    fn make_room(&mut self, stream: &Stream, len: usize, most: usize) -> Result<(), Error> {
        if len <= self.keys.len() {
            return Ok(());
        }
        let room = len.saturating_mul(2).min(most).max(len);
        let mut larger = Self::with_room_if_any(self.types, stream, len, room)?;
        let (own, values) = (0..self.len, 0..self.types.values_for(self.len));
        larger
            .keys
            .as_mut_slice()
            .slice_mut(own.clone())?
            .copy_from(stream, self.keys.as_slice().slice(own.clone())?)?;
        let mut to = larger.values.as_mut_slice().slice_mut(values.clone())?;
        to.copy_from(stream, self.values.as_slice().slice(values)?)?;
        if let (Kinds::Each, Some(kinds)) = (self.is, &self.kinds) {
            let mut copy = stream.uninit::<u8>(larger.keys.len())?;
            copy.slice_mut(own.clone())?.copy_from(stream, kinds.slice(own)?)?;
            larger.kinds = Some(copy);
        }
        (self.keys, self.values, self.kinds) = (larger.keys, larger.values, larger.kinds);
        Ok(())
    }

    /// Notes that `count` operations of a kind follow, after `len` that are known. Returns what is known then.
    fn with_kind(
        &mut self,
        stream: &Stream,
        (len, is): (usize, Kinds),
        kind: u32,
        count: usize,
    ) -> Result<Kinds, Error> {
        if len == 0 || is == Kinds::Only(kind) {
            return Ok(Kinds::Only(kind));
        }
        if self.kinds.is_none() {
            self.kinds = Some(stream.uninit::<u8>(self.keys.len())?);
        }
        let kinds = self.kinds.as_mut().expect("there is room now");
        if let Kinds::Only(before) = is {
            transfer::fill(stream, kinds.slice_mut(..len)?, before as u8)?;
        }
        transfer::fill(stream, kinds.slice_mut(len..len + count)?, kind as u8)?;
        Ok(Kinds::Each)
    }

    /// Writes keys and values to their places, for which there is room. Without values, writes zeros.
    fn write(
        &mut self,
        stream: &Stream,
        at: usize,
        keys: AnySlice<'_>,
        values: Option<AnySlice<'_>>,
    ) -> Result<(), Error> {
        let values_at = self.types.values_for(at)..self.types.values_for(at + keys.len());
        let mut to_keys = self.keys.as_mut_slice().slice_mut(at..at + keys.len())?;
        let mut to_values = self.values.as_mut_slice().slice_mut(values_at)?;
        let Some(values) = values else {
            to_keys.copy_from(stream, keys)?;
            return to_values.zero(stream);
        };
        let from = words(stream, keys)?.zip(words(stream, values)?);
        let to = words_mut(stream, &mut to_keys)?.zip(words_mut(stream, &mut to_values)?);
        if let (Some((from, from_values)), Some((to, to_values))) = (from, to) {
            let most = (keys.len() * keys.size()).max(values.len() * values.size()) / size_of::<u32>();
            let kernel = AppendPairs::new(from, from_values, to, to_values);
            // SAFETY: there is a thread per word, and as many words to write as to read.
            return unsafe { stream.launch(kernel, most.div_ceil(THREADS as usize)) };
        }
        // Short keys, and memory that is not aligned for words.
        to_keys.copy_from(stream, keys)?;
        to_values.copy_from(stream, values)
    }

    /// Merges levels, oldest first, with the operations, which are newer than all of them, into a level in a place. Does not wait.
    #[doc(hidden)]
    pub fn merge(&self, stream: &Stream, place: Place, older: &[&AnyLevel]) -> Result<AnyLevel, Error> {
        let keys = self.keys.as_slice().slice(0..self.len)?;
        let values = self.values.as_slice().slice(0..self.types.values_for(self.len))?;
        let level = match (self.is, &self.kinds) {
            (Kinds::Only(PUT), _) => return AnyLevel::merge_pairs(self.types, stream, place, older, keys, values),
            (Kinds::Only(TOMBSTONE), _) => AnyLevel::tombstones(self.types, stream, keys)?,
            (Kinds::Each, Some(kinds)) => {
                let kinds = kinds.slice(..self.len)?;
                AnyLevel::of_kinds(self.types, stream, (keys, values), kinds, self.operation.clone())?
            }
            _ => AnyLevel::operands(self.types, stream, keys, values, self.operation.clone())?,
        };
        if older.is_empty() {
            return level.into_place(stream, place);
        }
        let all: Vec<&AnyLevel> = older.iter().copied().chain([&level]).collect();
        AnyLevel::merge(self.types, stream, place, &all)
    }
}

/// Returns elements as words. Returns `None` if they are not made of words, or are misaligned for them.
fn words<'a>(stream: &Stream, elements: AnySlice<'a>) -> Result<Option<View<'a, Global<u32>>>, Error> {
    const WORD: usize = size_of::<u32>();
    if !elements.size().is_multiple_of(WORD) {
        return Ok(None);
    }
    // SAFETY: the result is a view of the same memory, for as long.
    let bytes = unsafe { elements.bytes_view(stream)?.into_param() };
    let is_aligned = bytes.is_empty() || bytes.as_ptr().addr().is_multiple_of(WORD);
    // SAFETY: these are the same bytes, aligned for words.
    Ok(is_aligned
        .then(|| unsafe { View::new(Global::from_raw(bytes.as_ptr().cast(), bytes.len() / WORD), Reach::none()) }))
}

/// Returns elements of a vector as words, to write: see [`words`].
fn words_mut<'a>(
    stream: &Stream,
    elements: &'a mut AnySliceMut<'_>,
) -> Result<Option<View<'a, GlobalMut<u32>>>, Error> {
    let len = elements.len() * elements.size() / size_of::<u32>();
    sized!(elements.size() => T in () | u32 | u64 | u128 | U256, {
        // SAFETY: the result is a view of the same memory, for as long.
        let typed = unsafe { elements.view_mut::<T>(stream)?.into_param() };
        // SAFETY: these are the same bytes. All of the types but the first are made of words, and of that there are none.
        Ok(Some(unsafe { View::new(GlobalMut::from_raw(typed.as_mut_ptr().cast(), len), Reach::none()) }))
    }, else Ok(None))
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpu_primitives::Device;

    /// Appends three pairs of these types, and deletes keys, to a buffer of pairs of `u32`.
    fn append<K: bytemuck::Pod, V: bytemuck::Pod, D: bytemuck::Pod>() {
        let stream = Device::cpu().stream().unwrap();
        let mut buffer = AnyBuffer::with_room(Types::of::<u32, u32>(), &stream, 10).unwrap();
        let (keys, values) = (stream.zeroed::<K>(3).unwrap(), stream.zeroed::<V>(3).unwrap());
        let deleted = stream.zeroed::<D>(3).unwrap();
        let (keys, values) = (keys.as_slice().into(), values.as_slice().into());
        let deleted = Some(deleted.as_slice().into());
        buffer.append(&stream, Operations { keys, values, operation: None, deleted }, 10).unwrap();
    }

    #[test]
    #[should_panic(expected = "operations of another dictionary")]
    fn keys_of_another_size() {
        append::<u64, u32, u32>();
    }

    #[test]
    #[should_panic(expected = "operations of another dictionary")]
    fn values_of_another_size() {
        append::<u32, u64, u32>();
    }

    #[test]
    #[should_panic(expected = "operations of another dictionary")]
    fn deleted_keys_of_another_size() {
        append::<u32, u32, u64>();
    }
}
