//! The hash functions, and how free slots are marked.
//!
//! Every key has up to four buckets, computed from two 32-bit hashes. There is no reserved key and no flag per slot.
//! Instead, a free slot holds a key that *cannot* be in its bucket, because none of that key's own buckets is this one.
//! Two such keys serve the whole table: the second is used in the buckets of the first.

use bytemuck::{Pod, Zeroable};
use gpu_dictionary::WordCode as KeyCode;
use gpu_primitives::kernel::Param;

/// The largest number of hash functions.
pub const MAX_HASHES: u32 = 4;

/// The hash functions: plain data, the same on host and device.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct Hash {
    /// The seeds of the two 32-bit hashes of a key.
    seeds: [u32; 2],
    /// The number of buckets in the table: at least one.
    pub buckets: u32,
    /// The number of buckets per key: 2 to 4.
    pub hashes: u32,
}

/// The buckets of one key.
#[derive(Clone, Copy, Debug)]
pub struct Choices {
    first: u32,
    step: u32,
    buckets: u32,
}

impl Hash {
    /// Makes the hash functions of a seed. Seeds that differ in one bit give values that differ in about half of their
    /// bits.
    pub const fn new(seed: u64, buckets: u32, hashes: u32) -> Self {
        let mut mixed = seed ^ (seed >> 31) ^ 0x2545_F491_4F6C_DD1D;
        mixed = mixed.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        mixed = (mixed ^ (mixed >> 32)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        Self { seeds: [mixed as u32, (mixed >> 32) as u32], buckets, hashes }
    }

    /// Returns the buckets of a key. All of its hashes come from two 32-bit numbers: the first hash, and the distance
    /// from each hash to the next.
    #[inline(always)]
    pub fn choices<C: KeyCode>(self, key: C) -> Choices {
        let first = mix(key, self.seeds[0], [0x9E37_79B1, 0xBB67_AE85, 0x6A09_E667]);
        let step = mix(key, self.seeds[1], [0x3C6E_F373, 0xA54F_F53B, 0x510E_527F]);
        Choices { first, step: step | 1, buckets: self.buckets }
    }
}

/// Mixes a key into 32 bits. Every bit of the key affects every bit of the result, so sequences, strides, and keys that
/// differ only in their upper bits spread like random keys. Multiplying by odd factors and xor-shifting are reversible:
/// different 4-byte keys have different results, and so do 8-byte keys with the same lower half.
///
/// The lower half of an 8-byte key is multiplied to 64 bits, and both halves of the product count. A product of 32 bits would
/// pass a difference in the top bit on as it is, for every seed, and the upper half of the key could cancel it.
#[inline(always)]
fn mix<C: KeyCode>(key: C, seed: u32, factors: [u32; 3]) -> u32 {
    let bits = key.to_u64();
    let mut mixed = bits as u32 ^ seed;
    if size_of::<C>() == 8 {
        let product = mixed as u64 * factors[2] as u64;
        mixed = product as u32 ^ (product >> 32) as u32 ^ (bits >> 32) as u32;
    }
    mixed = (mixed ^ (mixed >> 16)).wrapping_mul(factors[0]);
    mixed = (mixed ^ (mixed >> 15)).wrapping_mul(factors[1]);
    mixed ^ (mixed >> 16)
}

impl Choices {
    /// Returns bucket `index` of the key. The hash is taken as a fraction of 2^32 and multiplied by the number of
    /// buckets, so the result is less than that number.
    #[inline(always)]
    pub fn get(self, index: u32) -> u32 {
        let hash = self.first.wrapping_add(self.step.wrapping_mul(index));
        ((hash as u64 * self.buckets as u64) >> 32) as u32
    }

    /// Returns 32 bits that depend on every bit of the key.
    #[inline(always)]
    pub fn spread(self) -> u32 {
        self.first
    }

    /// Returns some bits that do not depend on the first bucket.
    #[inline(always)]
    pub fn salt(self) -> u32 {
        self.step >> 8
    }
}

/// Two marker keys, and the buckets of the first one. The second key has none of these buckets.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Marker<C> {
    keys: [C; 2],
    buckets: [u32; MAX_HASHES as usize],
}

impl<C: KeyCode> Marker<C> {
    /// Returns the key that marks free slots of a bucket. It cannot be in that bucket.
    #[inline(always)]
    pub fn of(self, bucket: u32) -> C {
        let [a, b, c, d] = self.buckets;
        let is_own = (bucket == a) | (bucket == b) | (bucket == c) | (bucket == d);
        if is_own { self.keys[1] } else { self.keys[0] }
    }
}

/// The hash functions and the markers of free slots.
///
/// A slot that has been free since the table was built is *empty*. A key goes to the first of its buckets that has a
/// free slot, so a bucket with an empty slot ends every search. Deleting from a bucket without empty slots leaves a
/// *dead* slot, which is free but does not end a search.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Map<C> {
    pub hash: Hash,
    pub empty: Marker<C>,
    pub dead: Marker<C>,
}

// SAFETY: `repr(C)` plain data without padding: 16 bytes, then twice two codes and four 4-byte words.
unsafe impl<C: KeyCode> Param for Map<C> {}

/// The smallest number of buckets in a table. Two keys without a common bucket can exist as soon as there are twice as
/// many buckets as a key has. Twice that number makes such keys quick to find.
#[cfg(not(target_arch = "nvptx64"))]
pub const MIN_BUCKETS: u32 = 4 * MAX_HASHES;

#[cfg(not(target_arch = "nvptx64"))]
impl<C: KeyCode> Map<C> {
    /// Finds the markers among the small keys. Returns `None` in the unlikely case that there are none.
    pub fn new(hash: Hash) -> Option<Self> {
        let buckets_of = |code: u64| {
            let choices = hash.choices(C::from_u64(code));
            // A key with fewer buckets repeats its last one.
            [0, 1, 2, 3].map(|index: u32| choices.get(index.min(hash.hashes - 1)))
        };
        let marker = |first: u64, others: core::ops::Range<u64>| {
            let buckets = buckets_of(first);
            let is_disjoint = |&code: &u64| buckets_of(code).iter().all(|bucket| !buckets.contains(bucket));
            let second = others.into_iter().find(is_disjoint)?;
            Some(Marker { keys: [first, second].map(C::from_u64), buckets })
        };
        // The ranges are disjoint, so an empty slot is never mistaken for a dead one.
        Some(Self { hash, empty: marker(0, 2..1000)?, dead: marker(1, 1000..2000)? })
    }

    /// Returns the map with the same hash functions and twice as many buckets. Returns `None` if these are too many, or
    /// in the unlikely case that there are no markers.
    pub fn doubled(&self) -> Option<Self> {
        let buckets = self.hash.buckets.checked_mul(2)?;
        Self::new(Hash { buckets, ..self.hash })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WIDTH: usize = 8;
    const KEYS: u64 = 200_000;
    const BUCKETS: u32 = (KEYS as u32 * 5 / 4) / WIDTH as u32;

    /// Returns the share of keys that find bucket `choice` full if every key goes to that bucket.
    fn overflow<C: KeyCode>(hash: Hash, choice: u32, keys: impl Iterator<Item = u64>) -> f64 {
        let mut counts = vec![0; BUCKETS as usize];
        for key in keys {
            counts[hash.choices(C::from_u64(key)).get(choice) as usize] += 1;
        }
        let over: usize = counts.iter().map(|&count: &usize| count.saturating_sub(WIDTH)).sum();
        over as f64 / KEYS as f64
    }

    /// With random keys, 6.6 % overflow at load 0.8: the excess over 8 of a Poisson distribution with mean 6.4.
    #[test]
    fn patterns_spread_like_random_keys() {
        fn check<C: KeyCode>(name: &str, pattern: impl Fn(u64) -> u64) {
            for seed in 0..5 {
                for choice in 0..MAX_HASHES {
                    let over = overflow::<C>(Hash::new(seed, BUCKETS, 4), choice, (0..KEYS).map(&pattern));
                    assert!(over < 0.075, "{name}, seed {seed}, bucket {choice}: {over}");
                }
            }
        }
        check::<u32>("sequence", |x| x);
        check::<u32>("from the top", |x| u64::from(u32::MAX) - x);
        for shift in [2, 5, 8, 12, 14] {
            check::<u32>("stride", |x| x << shift);
        }
        check::<u32>("odd stride", |x| x * 4099);
        check::<u32>("reversed", |x| u64::from((x as u32).reverse_bits()));
        check::<u32>("multiples of the buckets", |x| x * u64::from(BUCKETS | 1));
        check::<u32>("clusters", |x| (x / 16) * 16 * 0x12_3459 + x % 16);
        check::<u32>("floats", |x| u64::from((x as f32).to_bits()));
        check::<u64>("sequence", |x| x);
        for shift in [8, 16, 24, 31, 32, 33, 40, 46] {
            check::<u64>("stride", |x| x << shift);
        }
        check::<u64>("both halves", |x| x << 32 | x);
        check::<u64>("halves against each other", |x| (KEYS - x) << 32 | x);
        check::<u64>("grid", |x| ((x % 448) << 32) | (x / 448));
        check::<u64>("floats", |x| (x as f64).to_bits());
        check::<u64>("reversed", u64::reverse_bits);
    }

    /// Keys that share their first bucket have second buckets all over the table.
    #[test]
    fn choices_are_independent() {
        let hash = Hash::new(1, 64, 2);
        let mut seconds = [0u32; 64];
        let choices = (0..64 * 6400u32).map(|key| hash.choices(key));
        for choices in choices.filter(|choices| choices.get(0) == 7) {
            seconds[choices.get(1) as usize] += 1;
        }
        assert!(seconds.iter().all(|&count| (60..145).contains(&count)), "{seconds:?}");
    }

    /// Flipping the same bits of any key must not give a key with the same buckets, whatever the seed is: many such pairs would
    /// share their buckets. The top bit of the lower half passes through a multiplication unchanged, so pairs that differ there
    /// are the first to try.
    #[test]
    fn no_difference_leaves_the_buckets_as_they_are() {
        let mut random = 1u64;
        let mut number = || {
            random = random.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
            random ^ (random >> 29)
        };
        // Every difference of one or two of the top bits of the lower half, with what a multiplication and a shift make of them.
        let mut differences = vec![1 << 63];
        for low in [1u32 << 31, 1 << 30, 3 << 30] {
            for shift in 1..32 {
                differences.push(u64::from(low ^ low >> shift) << 32 | u64::from(low));
                differences.push(u64::from(low >> shift) << 32 | u64::from(low));
            }
        }
        for difference in differences {
            let has_same_hashes = |_: &u32| {
                let (hash, key) = (Hash::new(number(), u32::MAX, 2), number());
                let (one, other) = (hash.choices(key), hash.choices(key ^ difference));
                (one.first, one.step) == (other.first, other.step)
            };
            let same = (0..1000).filter(has_same_hashes).count();
            assert!(same <= 5, "{difference:#x}: {same} of 1000 keys and seeds");
        }
    }

    /// A marker is never a valid key of the bucket it marks, and the two markers of a bucket differ.
    #[test]
    fn markers_cannot_be_keys() {
        for seed in 0..200 {
            for hashes in 2..=MAX_HASHES {
                let hash = Hash::new(seed, MIN_BUCKETS + seed as u32 % 9, hashes);
                let map = Map::<u32>::new(hash).expect("markers");
                for bucket in 0..hash.buckets {
                    let (empty, dead) = (map.empty.of(bucket), map.dead.of(bucket));
                    assert_ne!(empty, dead);
                    for key in [empty, dead] {
                        assert!((0..hashes).all(|index| hash.choices(key).get(index) != bucket));
                    }
                }
            }
        }
    }
}
