//! Keys of any plain type: their hashes, and comparisons of their bytes.
//!
//! A kernel sees the bytes of the keys as words of 4 bytes if they are aligned, otherwise one by one.

use super::last::Entries;
use super::probe::{THREADS, index};
use bytemuck::Pod;
use gpu_primitives::arch::{Order, Scope};
use gpu_primitives::kernel::kernel;
use gpu_primitives::{Global, GlobalMut, warp};

/// A piece of a key: `u8` or `u32`.
pub trait Piece: Pod + PartialEq {
    /// Extends the piece to 32 bits.
    fn widen(self) -> u32;
}

impl Piece for u8 {
    #[inline(always)]
    fn widen(self) -> u32 {
        self as u32
    }
}

impl Piece for u32 {
    #[inline(always)]
    fn widen(self) -> u32 {
        self
    }
}

/// Returns four bytes of a key of `size` bytes, or what is left of them, as a number. It is the same for all pieces.
///
/// # Safety
/// The key exists, and nobody writes it.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
unsafe fn word<P: Piece>(pieces: Global<P>, size: usize, key: usize, word: usize) -> u32 {
    if size_of::<P>() == 4 {
        return pieces.get(key * (size / 4) + word).widen();
    }
    let mut bytes = 0;
    let mut byte = 0;
    while byte < 4 && 4 * word + byte < size {
        bytes |= pieces.get(key * size + 4 * word + byte).widen() << (8 * byte);
        byte += 1;
    }
    bytes
}

/// Returns whether two keys have the same bytes.
///
/// # Safety
/// The keys exist, and nobody writes them.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
unsafe fn are_equal<P: Piece>(a: Global<P>, b: Global<P>, size: usize, at: [usize; 2]) -> bool {
    let pieces = size / size_of::<P>();
    let mut piece = 0;
    while piece < pieces && a.get(at[0] * pieces + piece) == b.get(at[1] * pieces + piece) {
        piece += 1;
    }
    piece == pieces
}

/// Mixes 64 bits: different numbers have different results, and every bit affects every other.
#[inline(always)]
fn mix(bits: u64) -> u64 {
    let bits = (bits ^ (bits >> 32)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let bits = (bits ^ (bits >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits ^ (bits >> 32)
}

/// Adds a number of this warp's threads to a counter.
///
/// # Safety
/// All threads of the warp call it. The counter has one element and is only used in this way.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
unsafe fn count(counter: GlobalMut<u64>, counts: bool) {
    let here = warp::ballot(warp::FULL, counts).count_ones();
    if warp::lane_id() == 0 && here != 0 {
        counter.atomic_add(0, here as u64, Scope::Gpu, Order::Relaxed);
    }
}

/// Computes a hash of 64 bits for every key: the lower ones that `mask` has.
///
/// Floor: the bytes of the key read, 8 written.
///
/// # Safety
/// The launch has at least one thread per hash. There are as many keys of `size` bytes, in whole pieces. While the kernel
/// runs, nobody writes the keys, and nobody else uses the hashes.
#[kernel(threads = THREADS)]
pub unsafe fn hash_keys<P: Piece>(keys: Global<P>, size: u32, seed: u64, mask: u64, hashes: GlobalMut<u64>) {
    let i = index();
    if i >= hashes.len() {
        return;
    }
    let mut hash = mix(seed ^ 0x2545_F491_4F6C_DD1D);
    let mut at = 0;
    while at < size.div_ceil(4) {
        hash = mix(hash ^ word(keys, size as usize, i, at as usize) as u64);
        at += 1;
    }
    hashes.set(i, hash & mask);
}

/// Compares keys with those at the indices where their hashes were found. Takes back what was found with other bytes, and
/// counts it.
///
/// Floor: the bytes of both keys, the stored one at a random place, and 5 more.
///
/// # Safety
/// The launch has at least one thread per index. There are as many `asked` keys of `size` bytes, in whole pieces, and as
/// many elements of `found`. The indices that were found are those of `stored` keys. `different` has one element, to which
/// the number is added. While the kernel runs, nobody writes the inputs, and nobody else uses the outputs.
#[kernel(threads = THREADS)]
pub unsafe fn verify_keys<P: Piece>(
    stored: Global<P>,
    asked: Global<P>,
    size: u32,
    indices: Global<u32>,
    found: GlobalMut<u8>,
    different: GlobalMut<u64>,
) {
    let i = index();
    let mut is_different = false;
    if i < indices.len() && found.get(i) != 0 {
        is_different = !are_equal(stored, asked, size as usize, [indices.get(i) as usize, i]);
        if is_different {
            found.set(i, 0);
        }
    }
    count(different, is_different);
}

/// Counts keys that have the hash of a different key.
///
/// Each key is compared with one that has the same hash and was recorded before. The first key that differs from those
/// before it is compared with one of them. So the count is zero only if keys with equal hashes are all equal.
///
/// Floor: 8 bytes of hash, and an entry from L2. Keys with equal hashes also read their bytes.
///
/// # Safety
/// The launch has at least one thread per hash. The hashes are those of the keys, which have `size` bytes, in whole pieces.
/// There are more entries than hashes, all free before. `clashes` has one element, to which the number is added. While the
/// kernel runs, nobody writes the inputs, and nobody else uses the outputs.
#[kernel(threads = THREADS)]
pub unsafe fn find_clashes<P: Piece>(
    keys: Global<P>,
    size: u32,
    hashes: Global<u64>,
    entries: Entries,
    clashes: GlobalMut<u64>,
) {
    let i = index();
    let mut clashes_here = false;
    if i < hashes.len()
        && let Some(other) = entries.record(hashes, i, hashes.get(i))
    {
        clashes_here = !are_equal(keys, keys, size as usize, [other, i]);
    }
    count(clashes, clashes_here);
}
