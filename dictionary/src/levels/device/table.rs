//! The table of levels in device memory.

use bytemuck::{Pod, Zeroable};
use gpu_primitives::view::Global;

/// The largest number of levels: one per lane of a warp.
pub const MAX_LEVELS: usize = 32;

/// A level as kernels find it: addresses, and the shape of its directory.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub struct Entry {
    /// The address of the keys.
    pub keys: u64,
    /// The address of the values.
    pub values: u64,
    /// The address of the bits that mark tombstones and then, if there are any, operands; 0 if there are neither.
    pub marks: u64,
    /// The address of the directory.
    pub directory: u64,
    /// The smallest key: its lower and its upper 64 bits. A key of 256 bits has no room here, and is read where it is.
    pub first: [u64; 2],
    /// The number of elements.
    pub len: u32,
    /// The bucket of the largest key.
    pub last_bucket: u32,
    /// A key's bucket is its distance from the first key, shifted right by this.
    pub shift: u32,
    /// Whether there are operands: 1 or 0. An entry has 64 bytes, which are loaded in four 16-byte accesses.
    pub has_operands: u32,
}

/// The number of words in an entry.
pub const ENTRY_WORDS: usize = size_of::<Entry>() / 8;

impl Entry {
    /// Loads entry `slot` of a table.
    ///
    /// # Safety
    /// The table has that entry.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn load(table: Global<u64>, slot: u32) -> Self {
        let mut words = [[0u64; 2]; ENTRY_WORDS / 2];
        for (i, pair) in words.iter_mut().enumerate() {
            *pair = table.load_vec::<2>(slot as usize * ENTRY_WORDS + 2 * i, gpu_primitives::arch::Cache::Default);
        }
        // SAFETY: plain data of the same size.
        core::mem::transmute(words)
    }
}

/// Threads per block of the kernels that process one element per thread.
pub const THREADS: u32 = 256;
