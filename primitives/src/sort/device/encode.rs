//! The kernel that computes the codes of keys.

use crate::arch::thread;
use crate::code::U256;
use crate::form::kernel;
use crate::hole::RegisterRepr;
use crate::key::HoleCode;
use crate::sort::RadixCode;
use crate::view::{Global, GlobalMut};

/// The threads per block.
pub(crate) const THREADS: u32 = 256;

/// Writes the code of each key.
///
/// Cost: reads every key once and writes every code once.
///
/// # Safety
/// The launch has at least one thread per key, and there are as many codes. `code` was made of a function for keys that
/// are held in an `H`, with results of type `C`. While the kernel runs, nothing writes the keys, and nothing else uses the
/// codes.
#[kernel(listed, threads = THREADS, native = crate::sort::native::encode_keys)]
pub unsafe fn encode_keys<H: RegisterRepr, C: RadixCode>(keys: Global<H>, code: HoleCode, codes: GlobalMut<C>) {
    let at = thread::block_idx_x() as usize * THREADS as usize + thread::thread_idx_x() as usize;
    if at < keys.len() {
        codes.set(at, C::of(&code.0, keys.get(at)));
    }
}

crate::instances! {
    static in concat!(env!("CARGO_MANIFEST_DIR"), "/ptx");
    family encode_keys(H, C) {
        for H in [u8, u16, u32, u64, [u32; 3], [u64; 2], [u64; 4]], C in [u32, u64, u128, U256]: EncodeKeys<H, C>;
    }
}
