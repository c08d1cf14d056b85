//! The rate of false positives, as probability theory has it.
//!
//! Blocks have a number of keys with a Poisson distribution, whose mean is that of the filter. In a block with `j` keys, each of
//! which sets `d` random bits in each of four words of 64 bits, a word is what `j * d` balls leave in 64 bins. A query asks for `d`
//! random bits in each word. The words are independent of each other once `j` is known.
//!
//! The bits are no more random than the 32 bits of the hash that they follow from. So a query for an absent key also passes if it has
//! these 32 bits in common with a key of its block. Below a rate of about 1e-8 this is what counts.

use crate::filter::hash::{MAX_BITS, WORDS};

/// The bits of a word.
const BITS: f64 = 64.0;
/// The chance that two keys of a block have the same lower half of their hash, and with it the same bits: 2^-32.
const SAME_BITS: f64 = 1.0 / (1u64 << 32) as f64;

/// Returns the chance that `draws` random bits of a word are set, after `balls` random bits were set.
///
/// By inclusion and exclusion over the draws that hit no set bit: `i` draws hit `k` different bits, and all of these are still
/// unset with a chance of `(1 - k / 64)^balls`.
fn all_set(balls: f64, draws: u32) -> f64 {
    let mut chance = 0.0;
    let mut choose = 1.0;
    for i in 0..=draws {
        let distinct = distinct(i);
        let unset: f64 =
            distinct.iter().enumerate().map(|(k, share)| share * (1.0 - k as f64 / BITS).powf(balls)).sum();
        chance += if i % 2 == 0 { choose * unset } else { -choose * unset };
        choose = choose * f64::from(draws - i) / f64::from(i + 1);
    }
    chance.max(0.0)
}

/// Returns the chances that so many random bits of a word are 0, 1, 2, … different ones.
fn distinct(draws: u32) -> [f64; MAX_BITS as usize + 1] {
    let mut chances = [0.0; MAX_BITS as usize + 1];
    chances[0] = 1.0;
    for _ in 0..draws {
        let before = chances;
        for (k, chance) in chances.iter_mut().enumerate() {
            let new = if k == 0 { 0.0 } else { before[k - 1] * (BITS - (k as f64 - 1.0)) / BITS };
            *chance = new + before[k] * k as f64 / BITS;
        }
    }
    chances
}

/// Returns the rate of false positives of a filter with so many different keys per block on average, of which each sets `bits`
/// bits in each word.
pub fn rate(keys_per_block: f64, bits: u32) -> f64 {
    if keys_per_block <= 0.0 {
        return 0.0;
    }
    // Beyond twelve standard deviations there is nothing. Far more keys than bits set all of them.
    if keys_per_block > 100.0 * BITS {
        return 1.0;
    }
    let spread = 12.0 * keys_per_block.sqrt() + 12.0;
    let (least, most) = ((keys_per_block - spread).max(0.0).floor(), (keys_per_block + spread).ceil());
    let mut rate = 0.0;
    let mut keys = least;
    // The logarithm of the chance of so many keys.
    let mut log = -keys_per_block + keys * keys_per_block.ln() - log_factorial(keys);
    while keys <= most {
        rate += log.exp() * all_set(keys * f64::from(bits), bits).powi(WORDS as i32);
        keys += 1.0;
        log += (keys_per_block / keys).ln();
    }
    (rate + keys_per_block * SAME_BITS).min(1.0)
}

fn log_factorial(n: f64) -> f64 {
    (1..=n as u64).map(|i| (i as f64).ln()).sum()
}

/// Returns the number of bits per word with the lowest rate.
pub fn best_bits(keys_per_block: f64) -> u32 {
    (1..=MAX_BITS).min_by(|&a, &b| rate(keys_per_block, a).total_cmp(&rate(keys_per_block, b))).unwrap_or(1)
}

/// Returns the mean number of different keys per block that sets this share of the bits.
pub fn keys_of_fill(share: f64, bits: u32) -> f64 {
    if share >= 1.0 {
        return f64::INFINITY;
    }
    // A key leaves a bit unset with this chance. Over a Poisson distribution of keys, exp(-keys * (1 - chance)) are unset.
    let unset = (1.0 - 1.0 / BITS).powi(bits as i32);
    -(1.0 - share).ln() / (1.0 - unset)
}

#[cfg(test)]
mod tests {
    use super::{all_set, best_bits, distinct, keys_of_fill, rate};

    #[test]
    fn chances_add_up() {
        for draws in 0..=4 {
            assert!((distinct(draws).iter().sum::<f64>() - 1.0).abs() < 1e-12);
            assert!(all_set(0.0, draws) < 1e-12 || draws == 0);
            assert!((all_set(1e6, draws) - 1.0).abs() < 1e-9);
        }
        // One ball: one of 64 draws hits it.
        assert!((all_set(1.0, 1) - 1.0 / 64.0).abs() < 1e-12);
        assert!((all_set(1.0, 2) - 1.0 / 4096.0).abs() < 1e-12);
    }

    /// A simulation of blocks, with a generator of its own.
    #[test]
    fn rates_are_those_of_a_simulation() {
        let mut state = 1u64;
        let mut random = || {
            state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let bits = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            let bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            bits ^ (bits >> 31)
        };
        for (keys_per_block, bits) in [(32, 1), (16, 2), (16, 1)] {
            const BLOCKS: usize = 2000;
            let mut blocks = vec![[0u64; 4]; BLOCKS];
            let mask = |random: &mut dyn FnMut() -> u64| {
                [(); 4].map(|()| (0..bits).fold(0u64, |mask, _| mask | 1 << (random() & 63)))
            };
            for _ in 0..keys_per_block * BLOCKS {
                let block = &mut blocks[random() as usize % BLOCKS];
                let mask = mask(&mut random);
                (0..4).for_each(|word| block[word] |= mask[word]);
            }
            let queries = 400_000;
            let hits = (0..queries)
                .filter(|_| {
                    let block = blocks[random() as usize % BLOCKS];
                    let mask = mask(&mut random);
                    (0..4).all(|word| block[word] & mask[word] == mask[word])
                })
                .count() as f64;
            let expected = rate(keys_per_block as f64, bits) * f64::from(queries);
            // The blocks themselves vary, too.
            assert!((hits - expected).abs() < 5.0 * expected.sqrt() + 0.03 * expected, "{hits}, not {expected}");
        }
    }

    #[test]
    fn more_room_is_better() {
        let rates: Vec<f64> = (1..40).map(|keys| rate(f64::from(keys), best_bits(f64::from(keys)))).collect();
        assert!(rates.is_sorted(), "{rates:?}");
        assert_eq!((best_bits(32.0), best_bits(16.0)), (1, 2));
        assert_eq!((rate(0.0, 2), rate(1e9, 2)), (0.0, 1.0));
    }

    /// Keys with the same lower half of their hash have the same bits, however large the filter is.
    #[test]
    fn rates_have_a_floor() {
        for bits in 1..=4 {
            for keys in [1.0, 2.0, 4.0] {
                assert!(rate(keys, bits) >= keys * 2f64.powi(-32), "{keys} keys per block, {bits} bits");
            }
        }
    }

    #[test]
    fn fill_tells_the_keys() {
        for bits in 1..=4 {
            // With `keys` keys in each of many blocks, this share is set on average.
            let keys = 12.0;
            let share = 1.0 - (-keys * (1.0 - (63f64 / 64.0).powi(bits as i32))).exp();
            assert!((keys_of_fill(share, bits) - keys).abs() < 1e-9);
        }
        assert_eq!(keys_of_fill(1.0, 1), f64::INFINITY);
    }
}
