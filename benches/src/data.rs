//! Input data for benchmarks. Equal arguments give equal data on every machine.

use gpu_dictionary::{Value, WordKey as Key};
use rayon::iter::{IntoParallelIterator, ParallelIterator};
use rayon::slice::ParallelSliceMut;
use std::fmt::Debug;
use std::hash::Hash;

/// Returns the number at `index` of a sequence of pseudo-random 64-bit numbers (splitmix64).
fn random_at(seed: u64, index: u64) -> u64 {
    let mut z = seed.wrapping_add((index + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// Returns pseudo-random 64-bit numbers.
pub fn random(seed: u64) -> impl Iterator<Item = u64> {
    (0..).map(move |index| random_at(seed, index))
}

/// Returns pseudo-random 32-bit numbers.
#[must_use]
pub fn random_u32(seed: u64, len: usize) -> Vec<u32> {
    (0..len).into_par_iter().map(|index| random_at(seed, index as u64) as u32).collect()
}

/// Returns the number at `index` of [`random_below`].
#[must_use]
pub fn random_below_at(seed: u64, limit: usize, index: usize) -> usize {
    (((random_at(seed, index as u64) >> 32) * limit as u64) >> 32) as usize
}

/// Returns pseudo-random numbers below `limit`, which must be at most 2^32.
pub fn random_below(seed: u64, limit: usize) -> impl Iterator<Item = usize> {
    (0..).map(move |index| random_below_at(seed, limit, index))
}

/// A key of a benchmark.
pub trait Number: Key + Ord + Hash + Debug + Send + Sync {
    /// Returns the key with this index. Different indices give different keys, in random order. Keys with and without
    /// `present` are different, too.
    fn of(index: u64, present: bool) -> Self;
}

impl Number for u32 {
    fn of(index: u64, present: bool) -> Self {
        // Each step is a bijection on 31 bits.
        let mixed = (index as u32).wrapping_mul(0x2c92_77b5) & (u32::MAX >> 1);
        (mixed ^ (mixed >> 16)).wrapping_mul(0x1b87_3593) << 1 | u32::from(!present)
    }
}

impl Number for u64 {
    fn of(index: u64, present: bool) -> Self {
        let mixed = index.wrapping_mul(0x9E37_79B9_7F4A_7C15) & (u64::MAX >> 1);
        (mixed ^ (mixed >> 32)).wrapping_mul(0xBF58_476D_1CE4_E5B9) << 1 | u64::from(!present)
    }
}

/// A value of a benchmark.
pub trait Datum: Value + PartialEq + Debug + Send + Sync {
    /// Returns the value of the pair with this index.
    fn of(index: u64) -> Self;
}

impl Datum for () {
    fn of(_: u64) -> Self {}
}

impl Datum for u32 {
    fn of(index: u64) -> Self {
        index as Self ^ 0x5555_aaaa
    }
}

impl Datum for u64 {
    fn of(index: u64) -> Self {
        index.wrapping_mul(0x9E37_79B9_7F4A_7C15)
    }
}

/// The distribution of the keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Distribution {
    /// Distinct keys in random order
    #[default]
    Uniform,
    /// Distinct keys in ascending order
    Sorted,
    /// Zipf: the frequency of the k-th most frequent key is proportional to 1/k
    Zipf,
    /// 256 different keys
    Few,
}

impl Distribution {
    /// Returns its name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Uniform => "uniform",
            Self::Sorted => "sorted",
            Self::Zipf => "zipf",
            Self::Few => "few",
        }
    }

    /// Returns the first `len` keys.
    #[must_use]
    pub fn keys<K: Number>(self, len: usize) -> Vec<K> {
        let key = |index: usize| K::of(index as u64, true);
        match self {
            Self::Uniform => (0..len).into_par_iter().map(key).collect(),
            Self::Sorted => {
                let mut keys: Vec<K> = (0..len).into_par_iter().map(key).collect();
                keys.par_sort_unstable();
                keys
            }
            Self::Zipf => {
                // The inverse of the distribution's integral, which for 1/k is a logarithm.
                let log = (len as f64 + 1.0).ln();
                let rank = |number: u64| (((number >> 11) as f64 / (1u64 << 53) as f64 * log).exp() - 1.0) as usize;
                random(11).take(len).map(|number| key(rank(number).min(len - 1))).collect()
            }
            Self::Few => random_below(12, 256).take(len).map(key).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    fn all_different<K: Number>() {
        let mut keys: Vec<K> = (0..1 << 16).flat_map(|index| [K::of(index, true), K::of(index, false)]).collect();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), 2 << 16);
    }

    #[test]
    fn keys_are_different_and_absent_ones_are_others() {
        all_different::<u32>();
        all_different::<u64>();
    }

    #[test]
    fn distributions_are_what_they_say() {
        assert!(Distribution::Sorted.keys::<u32>(1000).is_sorted());
        let count = |distribution: Distribution| {
            let mut counts = HashMap::<u64, usize>::new();
            distribution.keys::<u64>(1 << 14).into_iter().for_each(|key| *counts.entry(key).or_default() += 1);
            counts
        };
        assert_eq!(count(Distribution::Few).len(), 256);
        assert_eq!(count(Distribution::Uniform).len(), 1 << 14);
        let zipf = count(Distribution::Zipf);
        let (first, second) = (zipf[&Number::of(0, true)] as f64, zipf[&Number::of(1, true)] as f64);
        assert!((1.5..2.5).contains(&(first / second)), "{first} {second}");
    }
}
