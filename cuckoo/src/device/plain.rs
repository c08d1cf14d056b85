//! Keys of any plain type: their hashes, and comparisons of their bytes.
//!
//! A kernel sees the bytes of the keys as words of 4 bytes if they are aligned, otherwise one by one.

use super::last::Entries;
use super::probe::{THREADS, index};
use bytemuck::Pod;
use gpu_primitives::arch::{Order, Scope};
use gpu_primitives::kernel::{Param, kernel};
use gpu_primitives::{Global, GlobalMut, warp};

/// The words of 4 bytes in the longest key.
pub const MAX_WORDS: usize = 8;

/// A hash function of 64 bits: two sums of products.
///
/// Each sum is `offset + word[0] * factor[0] + word[1] * factor[1] + …`, modulo 2^64. Its upper 32 bits are half of the hash.
/// If the offset and the factors are random, any two keys of the same size have the same half with a chance of 2^-32, and the
/// same hash with a chance of 2^-64:
///
/// Say that the keys differ in word `i`, by `d`, which is a multiple of 2^t and not of 2^(t + 1), for a `t` below 32. The
/// difference of the sums is `factor[i] * d` plus a number that does not depend on that factor. So it is any of the numbers
/// of a coset of the multiples of 2^t, all of them equally likely. The random offset makes each sum uniform, also if the
/// difference is known. Two sums that differ by `x`, with |x| < 2^32, have the same upper half with a chance of
/// 1 - |x| / 2^32, and otherwise with none. In a coset of the multiples of 2^t, which divides 2^32, these chances add up to
/// 2^(32 - t). There are 2^(64 - t) numbers in it, which gives 2^-32.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sums {
    offsets: [u64; 2],
    /// For each word of a key.
    factors: [[u64; 2]; MAX_WORDS],
}

// SAFETY: `repr(C)` plain data without padding.
unsafe impl Param for Sums {}

impl Sums {
    /// Makes the hash function of a seed. Its numbers are those of a generator (SplitMix64) that starts there.
    #[cfg(not(target_arch = "nvptx64"))]
    pub fn new(mut seed: u64) -> Self {
        let mut random = || {
            seed = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let bits = (seed ^ (seed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            let bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            bits ^ (bits >> 31)
        };
        let mut two = || [random(), random()];
        Self { offsets: two(), factors: [(); MAX_WORDS].map(|()| two()) }
    }

    /// Returns the hash of a key of so many words, by a function that returns word `i`.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub fn hash(self, words: usize, word: impl Fn(usize) -> u32) -> u64 {
        let mut sums = self.offsets;
        // No loops: the words stay in registers, and the factors where the launch has put them. All words are requested before
        // the first one is used. Words that there are not are zero, and add nothing.
        macro_rules! add {
            ($($at:literal $word:ident),+) => {
                $(let $word = if $at < words { word($at) as u64 } else { 0 };)+
                $(
                    sums[0] = sums[0].wrapping_add($word.wrapping_mul(self.factors[$at][0]));
                    sums[1] = sums[1].wrapping_add($word.wrapping_mul(self.factors[$at][1]));
                )+
            };
        }
        add!(0 a, 1 b, 2 c, 3 d);
        if words > 4 {
            add!(4 a, 5 b, 6 c, 7 d);
        }
        (sums[0] >> 32 << 32) | (sums[1] >> 32)
    }
}

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
/// The launch has at least one thread per hash. There are as many keys of `size` bytes, in whole pieces, and at most of
/// [`MAX_WORDS`] words. While the kernel runs, nobody writes the keys, and nobody else uses the hashes.
#[kernel(listed = super::HASH_KEYS_PTX, threads = THREADS, native = crate::native::plain::hash_keys)]
pub unsafe fn hash_keys<P: Piece>(keys: Global<P>, size: u32, sums: Sums, mask: u64, hashes: GlobalMut<u64>) {
    let i = index();
    if i >= hashes.len() {
        return;
    }
    let hash = sums.hash(size.div_ceil(4) as usize, |at| word(keys, size as usize, i, at));
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
#[kernel(listed = super::VERIFY_KEYS_PTX, threads = THREADS, native = crate::native::plain::verify_keys)]
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
#[kernel(listed = super::FIND_CLASHES_PTX, threads = THREADS, native = crate::native::plain::find_clashes)]
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

#[cfg(test)]
mod tests {
    use super::Sums;

    /// Whoever does not know the seed cannot choose two keys that are more likely to have the same hash than any others. This is
    /// seen in 12 bits of the hash, at each of six places, for differences that are the first to try.
    #[test]
    fn no_two_keys_are_likely_to_clash() {
        const SEEDS: u64 = 1 << 16;
        let pairs = [
            [[0, 0, 0], [1, 0, 0]],
            [[0, 0, 0], [0, 0, 1]],
            [[0, 0, 0], [1 << 31, 0, 0]],
            [[0, 0, 0], [1 << 31, 1 << 31, 0]],
            [[3, 5, 0], [3 ^ 1 << 31, 5 ^ 0x8001_0000, 0]],
            [[3, 5, 9], [5, 3, 9]],
            [[0, 0, 0], [!0, !0, !0]],
            [[7, 9, 0], [8, 8, 0]],
        ];
        for [one, other] in pairs {
            let mut same = [0; 6];
            for seed in 0..SEEDS {
                let sums = Sums::new(seed);
                let [one, other] = [one, other].map(|key: [u32; 3]| sums.hash(3, |at| key[at]));
                for (place, same) in same.iter_mut().enumerate() {
                    *same += u32::from((one ^ other) >> (10 * place) & 0xFFF == 0);
                }
            }
            // 16 on average. With random hashes, 45 or more are seen once in 10^8 tests.
            assert!(same.iter().all(|&same| same < 45), "{one:x?}, {other:x?}: {same:?} of {SEEDS} seeds");
        }
    }
}
