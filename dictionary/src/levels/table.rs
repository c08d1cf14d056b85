//! The table of levels in device memory, and the kernel that encodes and decodes keys.

use crate::KeyCode;
use bytemuck::{Pod, Zeroable};
use gpu_primitives::arch::thread;
use gpu_primitives::kernel::kernel;
use gpu_primitives::sort::Sign;
use gpu_primitives::view::{Global, GlobalMut};

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
    /// The smallest key.
    pub first: u64,
    /// The largest key.
    pub last: u64,
    /// The number of elements.
    pub len: u32,
    /// A key's bucket is its distance from the first key, shifted right by this.
    pub shift: u32,
    /// Whether there are operands: 1 or 0. An entry has 64 bytes, which are loaded in four 16-byte accesses.
    pub has_operands: u64,
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

/// Writes the codes of keys, or the keys of codes if `back` is not 0.
///
/// Cost: reads and writes each key once.
///
/// # Safety
/// The launch has at least one thread per key. `codes` is as long as `keys`. While the kernel runs, nobody writes
/// `keys`, and nobody else uses `codes`.
#[kernel(threads = THREADS)]
pub unsafe fn encode_keys<C: KeyCode>(keys: Global<C>, codes: GlobalMut<C>, sign: Sign, back: u32) {
    let at = thread::block_idx_x() as usize * THREADS as usize + thread::thread_idx_x() as usize;
    if at < keys.len() {
        let key = keys.get(at);
        codes.set(at, if back == 0 { sign.encode(key) } else { sign.decode(key) });
    }
}

gpu_primitives::instances! {
    in concat!(env!("CARGO_MANIFEST_DIR"), "/ptx");
    for C in [u32, u64]: EncodeKeys<C>;
}
