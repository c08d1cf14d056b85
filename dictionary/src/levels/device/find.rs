//! How device code finds keys in levels.

use super::payload::{OPERAND, PUT, TOMBSTONE};
use super::table::Entry;
use crate::KeyCode;
use bytemuck::Pod;
use core::marker::PhantomData;
use gpu_primitives::code::Sign;
use gpu_primitives::kernel::{Buffer, Param, ReadParam};
use gpu_primitives::monoid::Combine;
use gpu_primitives::view::Global;

/// Sorted levels as a kernel argument, which can be copied freely. `C` is the code type of the keys, `V` the type of
/// the values.
///
/// The view shows the dictionary as it was when the view was made. The dictionary cannot change while the view borrows
/// it.
#[repr(C)]
#[derive(Debug)]
pub struct Levels<C, V> {
    /// The entries, with the addresses of the levels.
    table: Global<u64>,
    /// One bit per existing level; lower bits are newer levels.
    occupied: u32,
    _padding: u32,
    sign: Sign,
    of: PhantomData<fn() -> (C, V)>,
}

impl<C, V> Clone for Levels<C, V> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}
impl<C, V> Copy for Levels<C, V> {}

// SAFETY: `repr(C)`: a view and plain data.
unsafe impl<C: KeyCode, V: Pod> Param for Levels<C, V> {
    fn buffers(&self, name: &'static str, visit: &mut dyn FnMut(&'static str, Buffer)) {
        self.table.buffers(name, visit);
    }
}

// SAFETY: the type offers no way to write.
unsafe impl<C: KeyCode, V: Pod> ReadParam for Levels<C, V> {}

impl<C: KeyCode, V: Pod> Levels<C, V> {
    /// Describes the levels whose entries are in a table.
    #[cfg(not(target_arch = "nvptx64"))]
    pub(crate) const fn new(table: Global<u64>, occupied: u32, sign: Sign) -> Self {
        Self { table, occupied, _padding: 0, sign, of: PhantomData }
    }

    /// Returns one bit per existing level; lower bits are newer levels.
    #[inline(always)]
    pub(crate) fn occupied(&self) -> u32 {
        self.occupied
    }

    /// Returns how keys are converted to codes and back.
    #[inline(always)]
    pub(crate) fn sign(&self) -> Sign {
        self.sign
    }

    /// Returns the level in `slot`.
    ///
    /// # Safety
    /// The requirements of [`get`](Self::get). There is a level in the slot.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub(crate) unsafe fn level(&self, slot: u32) -> Found<C, V> {
        Found::new(Entry::load(self.table, slot))
    }

    /// Returns the value of a key, if the key is present. The key is given as the unsigned integer with the bits of a
    /// key of the dictionary's key type, or as its code if the type is not a number of 32, 64 or 128 bits.
    ///
    /// Cost: one 32-byte access for each level that does not have the key, and about three for the level that has it.
    ///
    /// # Safety
    /// The caller is a kernel that was launched with this view as an argument, while the dictionary was borrowed.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn get(&self, key: C) -> Option<V> {
        let code = self.sign.encode(key);
        let mut slots = self.occupied;
        while slots != 0 {
            let level = self.level(slots.trailing_zeros());
            slots &= slots - 1;
            if let Some(position) = level.newest(code) {
                return if level.is_dead(position) { None } else { Some(level.value(position)) };
            }
        }
        None
    }

    /// Returns the value of a key, if the key is present, where some levels have operands: those that are newer than the
    /// newest value or tombstone of the key are combined with it, from old to new.
    ///
    /// Cost: that of [`get`](Self::get) for the levels down to that value.
    ///
    /// # Safety
    /// The requirements of [`get`](Self::get).
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub(crate) unsafe fn get_combined(&self, key: C, operation: impl Combine<V>) -> Option<V> {
        let code = self.sign.encode(key);
        let mut combined = None;
        let mut slots = self.occupied;
        while slots != 0 {
            let level = self.level(slots.trailing_zeros());
            slots &= slots - 1;
            let Some(position) = level.newest(code) else { continue };
            let kind = level.kind(position);
            if kind == TOMBSTONE {
                break;
            }
            let value = level.value(position);
            combined = Some(match combined {
                Some(newer) => operation.combine(value, newer),
                None => value,
            });
            if kind == PUT {
                break;
            }
        }
        combined
    }
}

/// A level whose table entry a kernel has loaded.
#[derive(Clone, Copy)]
pub(crate) struct Found<C, V> {
    pub entry: Entry,
    of: PhantomData<(C, V)>,
}

impl<C: KeyCode, V: Pod> Found<C, V> {
    #[inline(always)]
    pub const fn new(entry: Entry) -> Self {
        Self { entry, of: PhantomData }
    }

    /// Returns the codes of the keys.
    ///
    /// # Safety
    /// The entry is that of a level with keys `C` and, unless `V` is zero-sized, values `V`. Nobody changes or frees
    /// the level while the kernel runs.
    #[inline(always)]
    pub unsafe fn keys(&self) -> Global<C> {
        Global::from_raw(core::ptr::with_exposed_provenance(self.entry.keys as usize), self.entry.len as usize)
    }

    /// Returns the value at a position.
    ///
    /// # Safety
    /// The requirements of [`keys`](Self::keys). The position is within the level.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn value(&self, position: u32) -> V {
        let values: Global<V> =
            Global::from_raw(core::ptr::with_exposed_provenance(self.entry.values as usize), self.entry.len as usize);
        values.get(position as usize)
    }

    /// Returns whether the element at a position is a tombstone.
    ///
    /// # Safety
    /// The requirements of [`keys`](Self::keys). The position is within the level.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn is_dead(&self, position: u32) -> bool {
        self.entry.marks != 0 && self.mark(position, 0) == TOMBSTONE
    }

    /// Returns the kind of the element at a position.
    ///
    /// # Safety
    /// The requirements of [`keys`](Self::keys). The position is within the level.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn kind(&self, position: u32) -> u32 {
        if self.entry.marks == 0 {
            return PUT;
        }
        let operand = if self.entry.has_operands != 0 { OPERAND * self.mark(position, 1) } else { 0 };
        self.mark(position, 0) | operand
    }

    /// Returns the bit of an element in one of the two arrays of marks.
    ///
    /// # Safety
    /// The requirements of [`kind`](Self::kind). The level has that array.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn mark(&self, position: u32, array: usize) -> u32 {
        let words = (self.entry.len as usize).div_ceil(32);
        let address = core::ptr::with_exposed_provenance(self.entry.marks as usize);
        let marks: Global<u32> = Global::from_raw(address, (array + 1) * words);
        marks.get(array * words + position as usize / 32) >> (position % 32) & 1
    }

    /// Returns entry `bucket` of the directory.
    ///
    /// # Safety
    /// The requirements of [`keys`](Self::keys). The level has a directory. The bucket is at most the one after that of
    /// the last key.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn directory(&self, bucket: u64) -> u64 {
        // The largest length that is safe: the last bucket in use is that of the last key, and one more entry follows.
        let len = self.entry.last_bucket as usize + 2;
        let directory: Global<u64> =
            Global::from_raw(core::ptr::with_exposed_provenance(self.entry.directory as usize), len);
        directory.get(bucket as usize)
    }

    /// Returns the bucket of a key, if it is not before the first one. The bucket may be after the last one.
    ///
    /// # Safety
    /// The requirements of [`keys`](Self::keys). The level has a directory.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn bucket(&self, code: C) -> Option<u64> {
        let first = if size_of::<C>() > 16 { self.keys().get(0) } else { C::from_words(self.entry.first) };
        if code < first { None } else { Some(code.bucket(first, self.entry.shift)) }
    }

    /// Returns the position of the newest element with a key, if there is one.
    ///
    /// # Safety
    /// The requirements of [`keys`](Self::keys). The level has a directory.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn newest(&self, code: C) -> Option<u32> {
        let bucket = self.bucket(code)?;
        if bucket > self.entry.last_bucket as u64 {
            return None;
        }
        let entry = self.directory(bucket);
        if (entry >> 32) as u32 >> code.fingerprint() & 1 == 0 {
            return None;
        }
        let end = self.bound(entry as u32, self.directory(bucket + 1) as u32, code, true);
        if end > entry as u32 && self.keys().get(end as usize - 1) == code { Some(end - 1) } else { None }
    }

    /// Returns how many keys are less than `code` or, with `or_equal`, not greater.
    ///
    /// # Safety
    /// The requirements of [`keys`](Self::keys). The level has a directory.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn count_before(&self, code: C, or_equal: bool) -> u32 {
        let Some(bucket) = self.bucket(code) else { return 0 };
        if bucket > self.entry.last_bucket as u64 {
            return self.entry.len;
        }
        self.bound(self.directory(bucket) as u32, self.directory(bucket + 1) as u32, code, or_equal)
    }

    /// Returns the same as [`count_before`](Self::count_before), if the result is known to be from `low` to `high`.
    ///
    /// # Safety
    /// The requirements of [`keys`](Self::keys). `low <= high`, and `high` is at most the number of keys.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn bound(&self, low: u32, high: u32, code: C, or_equal: bool) -> u32 {
        /// This many keys are compared one by one, with all loads in flight at once.
        const FEW: u32 = 4;
        let keys = self.keys();
        let is_before = |key: C| key < code || (or_equal && key == code);
        let (mut low, mut high) = (low, high);
        while high - low > FEW {
            let middle = low + (high - low) / 2;
            if is_before(keys.get(middle as usize)) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        let mut count = 0;
        for i in 0..FEW {
            if low + i < high {
                count += u32::from(is_before(keys.get((low + i) as usize)));
            }
        }
        low + count
    }
}
