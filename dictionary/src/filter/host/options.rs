//! The options of a filter.

use super::theory;
use crate::filter::hash::{BLOCK_BYTES, MAX_BITS, Shape};
use gpu_primitives::Error;

/// The bits of a block.
const BLOCK_BITS: f64 = 8.0 * BLOCK_BYTES as f64;
/// The most bits per key. More hardly lower the rate.
const MOST_PER_KEY: f64 = 256.0;
/// The fewest bits per key: then practically every query finds its bits set.
const LEAST_PER_KEY: f64 = 0.5;

/// How to make a filter: for how many keys, of which size, with which hash function.
///
/// ```
/// use gpu_dictionary::filter::{BloomFilter, Options};
/// use gpu_primitives::{Device, Error};
///
/// let stream = Device::cpu().stream()?;
/// let options = Options::new().capacity(1 << 20);
/// let eight = BloomFilter::<u64>::new(&stream, options.clone().bits_per_key(8.0))?;
/// assert_eq!(eight.bytes(), 1 << 20);
/// let rare = BloomFilter::<u64>::new(&stream, options.false_positive_rate(1e-4))?;
/// assert!(rare.bytes() > 2 << 20);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    capacity: usize,
    size: Size,
    /// The bits that a key sets in its block; None for the best number.
    hashes: Option<u32>,
    seed: u64,
}

/// What says how large a filter is.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Size {
    BitsPerKey(f64),
    Rate(f64),
}

impl Default for Options {
    fn default() -> Self {
        Self::new()
    }
}

impl Options {
    /// Returns the defaults: room for the given keys, 16 bits per key (one false positive in 800), the number of hashes with
    /// the fewest false positives, seed 0.
    #[must_use]
    pub const fn new() -> Self {
        Self { capacity: 0, size: Size::BitsPerKey(16.0), hashes: None, seed: 0 }
    }

    /// Sets for how many keys the filter has the wanted size. One that is [built](super::BloomFilter::build) from more keys is made
    /// for these. More keys can be inserted later; then there are more false positives.
    #[must_use]
    pub const fn capacity(self, keys: usize) -> Self {
        Self { capacity: keys, ..self }
    }

    /// Sets the size: so many bits of the filter for each key, from 0.5 to 256. 8 give 2.7 % false positives, 16 give 0.13 %.
    #[must_use]
    pub const fn bits_per_key(self, bits: f64) -> Self {
        Self { size: Size::BitsPerKey(bits), ..self }
    }

    /// Sets the size by the share of false positives among queries for absent keys, when the filter has all of its keys. The
    /// filter has the smallest size with this rate or a lower one.
    #[must_use]
    pub const fn false_positive_rate(self, rate: f64) -> Self {
        Self { size: Size::Rate(rate), ..self }
    }

    /// Sets how many bits of its block a key sets: 4, 8, 12 or 16. Without it, the number with the fewest false positives.
    #[must_use]
    pub const fn hashes(self, hashes: u32) -> Self {
        Self { hashes: Some(hashes), ..self }
    }

    /// Sets the seed of the hash function. Filters can be [merged](super::BloomFilter::merge) only if they have the same. If an
    /// adversary can choose the keys, choose a seed at random: who knows it can find keys that are false positives.
    #[must_use]
    pub const fn seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    /// Returns the shape of a filter for at least so many keys.
    pub(crate) fn shape(&self, keys: usize) -> Result<Shape, Error> {
        let keys = self.capacity.max(keys).max(1) as f64;
        let fixed = match self.hashes {
            None => None,
            Some(hashes) if hashes.is_multiple_of(4) && (1..=MAX_BITS).contains(&(hashes / 4)) => Some(hashes / 4),
            Some(hashes) => return invalid("the number of hashes of a filter", hashes, "4, 8, 12 or 16"),
        };
        let bits_per_key = match self.size {
            // The conditions also reject NaN.
            Size::BitsPerKey(bits) if (LEAST_PER_KEY..=MOST_PER_KEY).contains(&bits) => bits,
            Size::BitsPerKey(bits) => return invalid("the bits per key of a filter", bits, "from 0.5 to 256"),
            Size::Rate(rate) if rate > 0.0 && rate < 1.0 => match bits_for(rate, fixed) {
                Some(bits) => bits,
                None => return invalid("the false positive rate of a filter", rate, "what 256 bits per key reach"),
            },
            Size::Rate(rate) => return invalid("the false positive rate of a filter", rate, "between 0 and 1"),
        };
        let blocks = (keys * bits_per_key / BLOCK_BITS).ceil();
        if blocks > f64::from(u32::MAX) {
            let limit = (f64::from(u32::MAX) * BLOCK_BITS / bits_per_key) as usize;
            return Err(Error::TooLong { what: "the keys of a filter", len: keys as usize, limit });
        }
        let bits = fixed.unwrap_or_else(|| theory::best_bits(BLOCK_BITS / bits_per_key));
        Ok(Shape { seed: self.seed, blocks: blocks as u32, bits })
    }
}

/// Returns the fewest bits per key with this rate, if there are any.
fn bits_for(rate: f64, fixed: Option<u32>) -> Option<f64> {
    let reached = |bits_per_key: f64| {
        let keys = BLOCK_BITS / bits_per_key;
        theory::rate(keys, fixed.unwrap_or_else(|| theory::best_bits(keys))) <= rate
    };
    let (mut low, mut high) = (LEAST_PER_KEY, MOST_PER_KEY);
    if !reached(high) {
        return None;
    }
    // A thousandth of a bit is less than the rounding to blocks.
    while high - low > 1e-3 {
        let middle = (low + high) / 2.0;
        if reached(middle) { high = middle } else { low = middle }
    }
    Some(high)
}

fn invalid<T>(what: &'static str, asked: impl ToString, allowed: &'static str) -> Result<T, Error> {
    Err(Error::InvalidOption { what, asked: asked.to_string(), allowed })
}

#[cfg(test)]
mod tests {
    use super::{Options, theory};

    #[test]
    fn sizes_reach_the_rate() {
        for rate in [0.5, 0.1, 0.01, 1e-3, 1e-5, 1e-9] {
            let shape = Options::new().false_positive_rate(rate).shape(1_000_000).unwrap();
            let keys = 1e6 / f64::from(shape.blocks);
            let reached = theory::rate(keys, shape.bits);
            assert!(reached <= rate && reached > 0.9 * rate, "{rate}: {reached}");
        }
    }

    #[test]
    fn nonsense_is_refused() {
        let options = Options::new();
        for bad in [
            options.clone().bits_per_key(0.0),
            options.clone().bits_per_key(f64::NAN),
            options.clone().bits_per_key(f64::INFINITY),
            options.clone().false_positive_rate(0.0),
            options.clone().false_positive_rate(1.0),
            options.clone().false_positive_rate(f64::NAN),
            options.clone().false_positive_rate(1e-300),
            // 256 bits per key are one key per block, of whose bits an absent key has all with a chance of 2^-32.
            options.clone().false_positive_rate(1e-10),
            options.clone().hashes(0),
            options.clone().hashes(6),
            options.clone().hashes(20),
            options.clone().capacity(usize::MAX),
        ] {
            assert!(bad.shape(1).is_err(), "{bad:?}");
        }
        assert_eq!(options.shape(0).unwrap().blocks, 1);
    }
}
