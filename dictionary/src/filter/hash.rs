//! Where the bits of a key are: the same functions on host and device.
//!
//! A filter is an array of blocks of 32 bytes, which is what memory delivers at once. All bits of a key are in one block, in each
//! of its four words the same number of them: 1 to 4. So a query reads one sector, and an insertion changes each word once.
//!
//! A key of up to 8 bytes is a number. Of a longer one, [`fold`] makes a number. [`mix`] turns the number into 64 bits: the upper
//! half chooses the block, and the lower half, multiplied by a factor for each word, the bits in it.

use bytemuck::{Pod, Zeroable};
#[cfg(not(target_arch = "nvptx64"))]
use gpu_primitives::multisplit::Bucket;
use gpu_primitives::operator::{Record, operator};

/// The words of a block.
pub const WORDS: usize = 4;
/// The bytes of a block.
pub const BLOCK_BYTES: usize = WORDS * size_of::<u64>();
/// The most bits that a key sets in a word.
pub const MAX_BITS: u32 = 4;

/// Odd factors near 2^64 divided by the golden ratio, and of an equal number of ones and zeros: products spread upwards.
const FACTORS: [u64; 2] = [0x9E37_79B9_7F4A_7C15, 0xD6E8_FEB8_6659_FD93];

/// The size of a filter and its hash function: plain data, the same on host and device.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct Shape {
    pub seed: u64,
    /// The number of blocks: at least one.
    pub blocks: u32,
    /// The bits that a key sets in each word of its block: 1 to [`MAX_BITS`].
    pub bits: u32,
}

/// Returns 64 bits that depend on all bits of the key and of the seed. Different keys have different ones.
#[operator]
#[inline(always)]
pub fn mix(key: u64, seed: u64) -> u64 {
    let mixed = key ^ seed;
    // Without this, keys that differ only in their upper halves would spread too evenly.
    let first = (mixed ^ (mixed >> 33)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let second = (first ^ (first >> 32)).wrapping_mul(0xD6E8_FEB8_6659_FD93);
    second ^ (second >> 32)
}

/// Returns the share of the upper 32 bits in 2^32, as one of `all` numbers.
#[operator]
#[inline(always)]
pub fn share(hash: u64, all: u32) -> u32 {
    ((hash >> 32).wrapping_mul(all as u64) >> 32) as u32
}

/// The part of a filter that has the block of a key: parts are ranges of blocks of about equal lengths.
#[cfg(not(target_arch = "nvptx64"))]
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable, Record)]
pub struct Part {
    pub seed: u64,
    pub parts: u32,
    pub unused: u32,
}

#[cfg(not(target_arch = "nvptx64"))]
#[operator]
impl Bucket<u32> for Part {
    #[inline(always)]
    fn bucket(&self, key: u32) -> u32 {
        share(mix(key as u64, self.seed), self.parts)
    }
}

#[cfg(not(target_arch = "nvptx64"))]
#[operator]
impl Bucket<u64> for Part {
    #[inline(always)]
    fn bucket(&self, key: u64) -> u32 {
        share(mix(key, self.seed), self.parts)
    }
}

/// Returns the number that stands for a key of `size` bytes. `word` returns its bytes from `8 * i` on, the first one lowest;
/// bytes after the key are 0.
///
/// Two keys of up to 8 bytes have different numbers. Two longer ones have the same number with a chance of about 2^-64.
#[inline(always)]
pub fn fold(seed: u64, size: usize, word: impl Fn(usize) -> u64) -> u64 {
    if size <= 8 {
        return word(0);
    }
    let mut folded = seed;
    let mut i = 0;
    while 8 * i < size {
        folded = (folded ^ word(i)).wrapping_mul(FACTORS[0]);
        folded = (folded ^ (folded >> 32)).wrapping_mul(FACTORS[1]);
        folded ^= folded >> 29;
        i += 1;
    }
    folded
}

impl Shape {
    /// Returns the index of the first word of a key's block. `hash` is that of the key.
    #[inline(always)]
    pub fn first_word(self, hash: u64) -> usize {
        share(hash, self.blocks) as usize * WORDS
    }

    /// Returns the bits of a key in the word with this factor.
    #[inline(always)]
    pub fn mask(self, hash: u64, factor: u32) -> u64 {
        let product = (hash as u32).wrapping_mul(factor);
        let mut mask = 1u64 << (product >> 26);
        // Uniform branches: all threads have the same number of bits.
        if self.bits > 1 {
            mask |= 1u64 << ((product >> 20) & 63);
        }
        if self.bits > 2 {
            mask |= 1u64 << ((product >> 14) & 63);
        }
        if self.bits > 3 {
            mask |= 1u64 << ((product >> 8) & 63);
        }
        mask
    }
}

/// Returns the factor of a word of a block. (No array: its index would not be constant, and the array in memory.)
#[inline(always)]
pub fn factor(word: u32) -> u32 {
    let even = if word < 2 { 0x47B6_137B } else { 0x8824_AD5B };
    let odd = if word < 2 { 0x4497_4D91 } else { 0xA2B7_289D };
    if word & 1 == 0 { even } else { odd }
}
