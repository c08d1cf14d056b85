//! Hashes: keys that are chosen against them, and patterns.

use super::*;

/// Keys of 8 bytes, two of which clash under each of the seeds 0 to 63 of a hash that XORs one word after the other into a
/// state of 64 bits: if the upper halves of two states are equal, the next words can make the lower ones equal.
fn keys_against_xored_words() -> Vec<[u32; 2]> {
    fn mix(bits: u64) -> u64 {
        let bits = (bits ^ (bits >> 32)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let bits = (bits ^ (bits >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits ^ (bits >> 32)
    }
    let hash = |seed: u64, key: [u32; 2]| {
        key.iter().fold(mix(seed ^ 0x2545_F491_4F6C_DD1D), |state, &word| mix(state ^ u64::from(word)))
    };
    let mut keys: Vec<[u32; 2]> = (0..12).map(|i| [i, i]).collect();
    for seed in 0..64 {
        let start = mix(seed ^ 0x2545_F491_4F6C_DD1D);
        let mut upper_halves = HashMap::new();
        let (first, second) = (0..)
            .find_map(|word: u32| {
                let upper = mix(start ^ u64::from(word)) >> 32;
                upper_halves.insert(upper, word).map(|other| (other, word))
            })
            .unwrap();
        let difference = mix(start ^ u64::from(first)) ^ mix(start ^ u64::from(second));
        let pair = [[first, 0], [second, difference as u32]];
        assert_eq!(hash(seed, pair[0]), hash(seed, pair[1]));
        keys.extend(pair);
    }
    keys
}

#[test]
fn crafted_keys_are_told_apart() {
    let crafted = keys_against_xored_words();
    assert_eq!(crafted.len(), 140);
    for device in devices() {
        let stream = device.stream().unwrap();
        let keys = stream.upload(&crafted).unwrap();
        let values: Vec<u32> = (0..140).collect();
        let values = stream.upload(&values).unwrap();
        for options in [Options::new(), Options::new().seed(0)] {
            let table = PlainCuckoo::bulk_build(&stream, (&keys, &values), options).unwrap();
            let found = table.lookup(&stream, &keys).unwrap().to_vec(&stream).unwrap();
            assert!(found.iter().zip(0..).all(|(&found, number)| found == Some(number)));
        }
    }
}

/// Pairs of keys whose words differ by the same bits, in any way that an attacker may try: no seed gives two of them the same
/// hash.
#[test]
fn keys_with_equal_differences_do_not_clash() {
    for device in devices() {
        let stream = device.stream().unwrap();
        let single = |bit: u32| 1u32 << bit;
        let mut keys = vec![[0u32; 3]];
        for first in 0..32 {
            keys.extend([[single(first), 0, 0], [0, single(first), 0], [0, 0, single(first)]]);
            // Two words, with bits at any distance.
            keys.extend((0..32).map(|second| [single(first), single(second), 0]));
            keys.extend((0..32).map(|second| [0, single(first), single(second)]));
            // Two words whose XOR, or sum, is always the same.
            keys.extend([[5 + first, 77 ^ (5 + first), 1], [5 + first, 77u32.wrapping_sub(first), 2]]);
        }
        let keys = stream.upload(&keys).unwrap();
        for seed in 0..5 {
            let hasher = Hasher::new(seed);
            let (hashes, mut clashes) =
                (hasher.hash(&stream, keys.as_slice().into()).unwrap(), stream.zeroed(1).unwrap());
            hasher.find_clashes(&stream, keys.as_slice().into(), &hashes, &mut clashes).unwrap();
            assert_eq!(clashes.to_vec(&stream).unwrap(), [0], "seed {seed}");
        }
    }
}

/// With random hashes, 6.6 % of the keys find their first bucket full at load 0.8.
#[test]
fn patterns_of_plain_keys_spread_like_random_ones() {
    const KEYS: u32 = 20_000;
    const BUCKETS: u32 = KEYS * 5 / 4 / 8;
    fn check<K: Pod>(name: &str, stream: &Stream, key: impl Fn(u32) -> K) {
        let keys = stream.upload(&(0..KEYS).map(key).collect::<Vec<K>>()).unwrap();
        for seed in 0..5 {
            let hashes = Hasher::new(seed).hash(stream, keys.as_slice().into()).unwrap().to_vec(stream).unwrap();
            let mut counts = vec![0; BUCKETS as usize];
            for hash in hashes {
                counts[crate::hash::Hash::new(seed, BUCKETS, 2).choices(hash).get(0) as usize] += 1;
            }
            let over: u32 = counts.iter().map(|&count: &u32| count.saturating_sub(8)).sum();
            let share = f64::from(over) / f64::from(KEYS);
            assert!(share < 0.085, "{name}, seed {seed}: {share}");
        }
    }
    let stream = &Device::cpu().stream().unwrap();
    check("sequence of bytes", stream, |i| [i as u8, (i >> 8) as u8, (i >> 16) as u8]);
    check("sequence", stream, |i| [i, 0]);
    check("second word", stream, |i| [0, i]);
    check("grid", stream, |i| [i % 141, i / 141]);
    check("equal words", stream, |i| [i; 3]);
    check("stride", stream, |i| [i << 12, i << 17, 0, 0]);
    check("last word", stream, |i| [7, 7, 7, 7, 7, 7, 7, i]);
    check("floats", stream, |i| [f64::from(i), -f64::from(i)]);
}
