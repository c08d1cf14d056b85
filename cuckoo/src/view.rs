//! A table in device memory: the layout of the buckets, and how kernels read and change them.
//!
//! A bucket is `WIDTH` keys followed by their `WIDTH` values.

use crate::hash::Map;
use bytemuck::Pod;
use gpu_dictionary::WordCode as KeyCode;
use gpu_primitives::arch::Cache;
use gpu_primitives::kernel::{Buffer, Param, ReadParam};
use gpu_primitives::{Global, GlobalMut};

/// A table as an argument of your own kernels, whose threads call [`get`](Self::get).
///
/// A kernel sees a key as `C`, the unsigned integer with the same bits: `u32` or `u64`. It sees a value as `V`, its
/// [carrier](gpu_dictionary::Value::Carrier): `()`, `u32` or `u64`. `WIDTH` is the bucket width of the table.
#[repr(C)]
#[derive(Debug)]
pub struct CuckooView<C, V, const WIDTH: usize = 8> {
    pub(crate) keys: Global<C>,
    pub(crate) values: Global<V>,
    pub(crate) map: Map<C>,
}

// Derived impls would require `Copy` of the type parameters.
impl<C: KeyCode, V, const WIDTH: usize> Clone for CuckooView<C, V, WIDTH> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}
impl<C: KeyCode, V, const WIDTH: usize> Copy for CuckooView<C, V, WIDTH> {}

// SAFETY: a `repr(C)` struct of parameters. Both views are of the same memory, which is reported once.
unsafe impl<C: KeyCode, V: Pod, const WIDTH: usize> Param for CuckooView<C, V, WIDTH> {
    fn buffers(&self, name: &'static str, visit: &mut dyn FnMut(&'static str, Buffer)) {
        self.keys.buffers(name, visit);
    }
}

// SAFETY: the type offers no way to write.
unsafe impl<C: KeyCode, V: Pod, const WIDTH: usize> ReadParam for CuckooView<C, V, WIDTH> {}

/// A table as kernels change it.
#[repr(C)]
#[derive(Debug)]
pub struct TableMut<C, V, const WIDTH: usize> {
    pub keys: GlobalMut<C>,
    pub values: GlobalMut<V>,
    pub map: Map<C>,
}

impl<C: KeyCode, V, const WIDTH: usize> Clone for TableMut<C, V, WIDTH> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}
impl<C: KeyCode, V, const WIDTH: usize> Copy for TableMut<C, V, WIDTH> {}

// SAFETY: as for `CuckooView`.
unsafe impl<C: KeyCode, V: Pod, const WIDTH: usize> Param for TableMut<C, V, WIDTH> {
    fn buffers(&self, name: &'static str, visit: &mut dyn FnMut(&'static str, Buffer)) {
        self.keys.buffers(name, visit);
    }
}

/// Returns the size of a bucket in bytes.
pub const fn bucket_bytes<C, V>(width: usize) -> usize {
    width * (size_of::<C>() + size_of::<V>())
}

/// Returns the index of a bucket's first key, in elements of `C`.
#[inline(always)]
pub fn key_index<C, V>(width: usize, bucket: u32) -> usize {
    bucket as usize * (bucket_bytes::<C, V>(width) / size_of::<C>())
}

/// Returns the index of a bucket's first value, in elements of `V`, which must not be zero-sized. The division is
/// exact: the width is a multiple of 4, and the sizes are 4 or 8.
#[inline(always)]
pub fn value_index<C, V>(width: usize, bucket: u32) -> usize {
    let offset = bucket as usize * bucket_bytes::<C, V>(width) + width * size_of::<C>();
    // Values without a size have any index.
    if size_of::<V>() == 0 { 0 } else { offset / size_of::<V>() }
}

/// A set of slots of a bucket: one bit per slot.
pub type Slots = u32;

/// The keys of a bucket, in registers.
#[derive(Clone, Copy)]
pub struct Bucket<C, const WIDTH: usize>(pub [C; WIDTH]);

impl<C: KeyCode, const WIDTH: usize> Bucket<C, WIDTH> {
    /// Loads the keys 16 bytes at a time, with all loads in flight together.
    ///
    /// # Safety
    /// `at` is the index of a bucket's first key. `cache` is valid as for [`Global::load`].
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn load(keys: Global<C>, at: usize, cache: Cache) -> Self {
        let keys = keys.slice(at, WIDTH);
        let mut loaded = [C::MIN; WIDTH];
        if size_of::<C>() == 4 {
            for row in 0..WIDTH / 4 {
                let four = keys.load_vec::<4>(4 * row, cache);
                for i in 0..4 {
                    loaded[4 * row + i] = four[i];
                }
            }
        } else {
            for row in 0..WIDTH / 2 {
                let two = keys.load_vec::<2>(2 * row, cache);
                for i in 0..2 {
                    loaded[2 * row + i] = two[i];
                }
            }
        }
        Self(loaded)
    }

    /// Loads the keys like [`load`](Self::load), each of them atomically: other threads may change them at the same time.
    ///
    /// # Safety
    /// `at` is the index of a bucket's first key. Other threads change the keys only atomically.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn load_atomic(keys: GlobalMut<C>, at: usize) -> Self {
        let mut loaded = [C::MIN; WIDTH];
        if size_of::<C>() == 4 {
            for row in 0..WIDTH / 4 {
                let four = keys.atomic_load_vec::<4>(at + 4 * row);
                for i in 0..4 {
                    loaded[4 * row + i] = four[i];
                }
            }
        } else {
            for row in 0..WIDTH / 2 {
                let two = keys.atomic_load_vec::<2>(at + 2 * row);
                for i in 0..2 {
                    loaded[2 * row + i] = two[i];
                }
            }
        }
        Self(loaded)
    }

    /// Returns the slots that hold `key`.
    #[inline(always)]
    pub fn slots_with(&self, key: C) -> Slots {
        let mut slots = 0;
        for slot in 0..WIDTH {
            slots |= ((self.0[slot] == key) as Slots) << slot;
        }
        slots
    }
}

/// The position of a key.
#[derive(Clone, Copy, Debug)]
pub struct Position {
    pub bucket: u32,
    pub slot: u32,
}

impl<C: KeyCode, V: Pod, const WIDTH: usize> CuckooView<C, V, WIDTH> {
    /// Returns the value of a key, if the key is in the table.
    ///
    /// Reads the keys of one bucket, then of the next one if the first has no empty slot, and so on, and finally the
    /// value. At load 0.8 with buckets of 8, one key in ten is in its second bucket, and two buckets in five have no
    /// empty slot.
    ///
    /// # Safety
    /// The caller is a kernel, and the table does not change while it runs.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn get(self, key: C) -> Option<V> {
        let position = self.find(key)?;
        Some(self.value(position.bucket, position.slot as usize))
    }

    /// Returns the key stored in a slot, which may be a marker.
    ///
    /// # Safety
    /// The requirements of [`get`](Self::get). The slot exists.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub(crate) unsafe fn key(self, bucket: u32, slot: usize) -> C {
        self.keys.load(key_index::<C, V>(WIDTH, bucket) + slot, Cache::ReadOnly)
    }

    /// Returns the value in a slot.
    ///
    /// # Safety
    /// The requirements of [`key`](Self::key).
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub(crate) unsafe fn value(self, bucket: u32, slot: usize) -> V {
        self.values.load(value_index::<C, V>(WIDTH, bucket) + slot, Cache::ReadOnly)
    }

    /// Finds a key.
    ///
    /// # Safety
    /// The requirements of [`get`](Self::get).
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub(crate) unsafe fn find(self, key: C) -> Option<Position> {
        let choices = self.map.hash.choices(key);
        let mut choice = 0;
        while choice < self.map.hash.hashes {
            let bucket = choices.get(choice);
            let keys = Bucket::<C, WIDTH>::load(self.keys, key_index::<C, V>(WIDTH, bucket), Cache::ReadOnly);
            let slots = keys.slots_with(key);
            if slots != 0 {
                return Some(Position { bucket, slot: slots.trailing_zeros() });
            }
            if keys.slots_with(self.map.empty.of(bucket)) != 0 {
                return None;
            }
            choice += 1;
        }
        None
    }
}

impl<C: KeyCode, V: Pod, const WIDTH: usize> TableMut<C, V, WIDTH> {
    /// Returns the same table for reading.
    #[inline(always)]
    pub fn as_const(self) -> CuckooView<C, V, WIDTH> {
        CuckooView { keys: self.keys.as_const(), values: self.values.as_const(), map: self.map }
    }
}

#[cfg(not(target_arch = "nvptx64"))]
impl<C: KeyCode, V: Pod, const WIDTH: usize> TableMut<C, V, WIDTH> {
    /// Returns the table in these words.
    ///
    /// # Safety
    /// The words hold all buckets of the map.
    pub unsafe fn new(words: GlobalMut<u64>, map: Map<C>) -> Self {
        const { assert!(WIDTH.is_multiple_of(4) && WIDTH <= Slots::BITS as usize) };
        let base = words.as_const().as_ptr().cast_mut();
        let bytes = words.len() * size_of::<u64>();
        let values = if size_of::<V>() == 0 { 0 } else { bytes / size_of::<V>() };
        // SAFETY: the same bytes, aligned to 8.
        unsafe {
            Self {
                keys: GlobalMut::from_raw(base.cast(), bytes / size_of::<C>()),
                values: GlobalMut::from_raw(base.cast(), values),
                map,
            }
        }
    }
}

#[cfg(not(target_arch = "nvptx64"))]
impl<C: KeyCode, V: Pod, const WIDTH: usize> CuckooView<C, V, WIDTH> {
    /// Returns the table in these words.
    ///
    /// # Safety
    /// The words hold all buckets of the map.
    pub(crate) unsafe fn new(words: Global<u64>, map: Map<C>) -> Self {
        // SAFETY: the same words, which this view cannot write.
        unsafe { TableMut::new(GlobalMut::from_raw(words.as_ptr().cast_mut(), words.len()), map) }.as_const()
    }
}
