//! Which shard holds a key.

use bytemuck::{Pod, Zeroable};
use gpu_dictionary::cast::codes;
use gpu_dictionary::{Key, KeyCode};
use gpu_primitives::map::Map;
use gpu_primitives::multisplit::{self, Bucket, Shift};
use gpu_primitives::operator::{Record, operator};
use gpu_primitives::sort::U256;
use gpu_primitives::{DeviceSlice, DeviceVec, Error, Stream, permute, search, transform};

/// Which shard holds a key: the same on all ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Partition<C> {
    /// The shard follows from the hash of the key.
    Hash { seed: u32 },
    /// Shard `i` has the codes from `splitters[i - 1]` on and below `splitters[i]`. There are none while the dictionary has never
    /// had a key: then all keys belong to shard 0.
    Ranges { splitters: Vec<C> },
}

/// The most shards: what a multisplit can do.
pub(crate) const MAX_SHARDS: usize = multisplit::MAX_BUCKETS as usize;

/// Items of one rank, ordered by the shards that they go to. Those of a shard keep their order.
#[derive(Debug)]
pub(crate) struct Split<K: Pod, V: Pod> {
    pub keys: DeviceVec<K>,
    /// What goes along with the keys: values, or positions. Empty if zero-sized.
    pub along: DeviceVec<V>,
    /// How many items go to each shard.
    pub counts: Vec<usize>,
}

/// Mixes 32 bits with a seed: every bit of both affects every bit of the result. Cuckoo tables mix in another way: their
/// buckets must not depend on the shard.
#[operator]
fn mix(bits: u32, seed: u32) -> u32 {
    let first = (bits ^ seed) * 0x8F1B_BCDD;
    let second = (first ^ (first >> 15)) * 0xCA62_C1D7;
    let third = (second ^ (second >> 13)) * 0x6ED9_EBA1;
    third ^ (third >> 16)
}

#[operator]
fn mix_long(bits: u64, seed: u32) -> u32 {
    mix(bits as u32 ^ mix((bits >> 32) as u32, seed ^ 0x5A82_7999), seed)
}

#[operator]
fn mix_wide(bits: u128, seed: u32) -> u32 {
    mix_long(bits as u64 ^ mix_long((bits >> 64) as u64, seed ^ 0x5A82_7999) as u64, seed)
}

/// A 32-bit hash, taken as a fraction of 2^32, says the shard.
#[operator]
fn share(hash: u32, shards: u32) -> u32 {
    ((hash as u64 * shards as u64) >> 32) as u32
}

/// The shard of a key by its hash.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable, Record)]
struct ByHash {
    seed: u32,
    shards: u32,
}

#[operator]
impl Bucket<u32> for ByHash {
    fn bucket(&self, key: u32) -> u32 {
        share(mix(key, self.seed), self.shards)
    }
}

#[operator]
impl Bucket<u64> for ByHash {
    fn bucket(&self, key: u64) -> u32 {
        share(mix_long(key, self.seed), self.shards)
    }
}

#[operator]
impl Map<u32> for ByHash {
    type Output = u32;
    fn map(&self, code: u32) -> u32 {
        share(mix(code, self.seed), self.shards)
    }
}

#[operator]
impl Map<u64> for ByHash {
    type Output = u32;
    fn map(&self, code: u64) -> u32 {
        share(mix_long(code, self.seed), self.shards)
    }
}

#[operator]
impl Map<u128> for ByHash {
    type Output = u32;
    fn map(&self, code: u128) -> u32 {
        share(mix_wide(code, self.seed), self.shards)
    }
}

#[operator]
impl Map<U256> for ByHash {
    type Output = u32;
    fn map(&self, code: U256) -> u32 {
        share(mix_wide(code.low ^ mix_wide(code.high, self.seed) as u128, self.seed), self.shards)
    }
}

/// How the bits of a number become its code: some are flipped always, and others if the highest one is set.
fn flips<K: Key>() -> (K::Code, K::Code) {
    let ones = [0xFFu8; 32];
    let all_ones: K = bytemuck::pod_read_unaligned(&ones[..size_of::<K>()]);
    (K::zeroed().code(), all_ones.code())
}

/// Returns the code of a 32-bit number, whose flipped bits are given.
#[operator]
fn code_32(key: u32, always: u32, if_negative: u32) -> u32 {
    let flipped = if key >> 31 != 0 { if_negative } else { 0 };
    key ^ always ^ flipped
}

/// Returns the code of a 64-bit number. Of the flipped bits the upper half is given; the lower half of those that are flipped in
/// negative numbers is all ones if there are any.
#[operator]
fn code_64(key: u64, always: u32, if_negative: u32) -> u64 {
    let low = if if_negative != 0 { 0xFFFF_FFFFu64 } else { 0 };
    let flipped = if key >> 63 != 0 { (if_negative as u64) << 32 | low } else { 0 };
    key ^ ((always as u64) << 32) ^ flipped
}

/// Declares the shard of a number by so many splitters. Those that are not used are the largest code.
macro_rules! by_range {
    ($name:ident: $number:ident, $splitters:literal, $code:ident) => {
        #[repr(C)]
        #[derive(Clone, Copy, Debug, Pod, Zeroable, Record)]
        struct $name {
            splitters: [$number; $splitters],
            always: u32,
            if_negative: u32,
        }

        #[operator]
        impl Bucket<$number> for $name {
            fn bucket(&self, key: $number) -> u32 {
                let code = $code(key, self.always, self.if_negative);
                let mut shard = 0;
                for i in 0..$splitters {
                    shard += if code >= self.splitters[i] { 1 } else { 0 };
                }
                shard
            }
        }

        impl $name {
            /// Returns the operator for keys of a type.
            fn of<K: Key>(splitters: &[K::Code]) -> Self {
                let (zero, ones): ($number, $number) = (number(flips::<K>().0), number(flips::<K>().1));
                let upper = |bits: $number| (bits >> ($number::BITS - 32)) as u32;
                let (always, if_negative) = (upper(zero), upper(!ones ^ zero));
                Self { splitters: padded_splitters(splitters, $number::MAX), always, if_negative }
            }
        }
    };
}

// Few comparisons for few shards: each takes 7 us of a split of 2^24 keys on an H200.
by_range!(ByThree32: u32, 3, code_32);
by_range!(ByFourteen32: u32, 14, code_32);
by_range!(ByThree64: u64, 3, code_64);
by_range!(BySeven64: u64, 7, code_64);

/// Returns splitters as numbers, with the largest one in the places of those that are missing.
fn padded_splitters<C: KeyCode, N: Pod, const LEN: usize>(splitters: &[C], largest: N) -> [N; LEN] {
    core::array::from_fn(|i| splitters.get(i).map_or(largest, |&code| number(code)))
}

/// Returns the code as a number, if it has so many bytes.
fn number<C: KeyCode, N: Pod>(code: C) -> N {
    bytemuck::pod_read_unaligned(bytemuck::bytes_of(&code))
}

/// Returns the positions of so many items.
pub(crate) fn positions(stream: &Stream, len: usize) -> Result<DeviceVec<u32>, Error> {
    let limit = u32::MAX as usize;
    if len > limit {
        return Err(Error::TooLong { what: "a call of a sharded dictionary", len, limit });
    }
    let mut positions = stream.uninit(len)?;
    transform::sequence(stream, &mut positions, 0u32)?;
    Ok(positions)
}

/// Returns the elements at some positions, which are in range.
pub(crate) fn at<'a, T: Pod>(
    stream: &Stream,
    elements: impl Into<DeviceSlice<'a, T>>,
    positions: &'a DeviceVec<u32>,
) -> Result<DeviceVec<T>, Error> {
    let elements = elements.into();
    if size_of::<T>() == 0 {
        return stream.uninit(elements.len());
    }
    let mut out = stream.uninit(positions.len())?;
    permute::gather(stream, elements, positions, &mut out)?;
    Ok(out)
}

fn counts(stream: &Stream, offsets: &DeviceVec<u64>) -> Result<Vec<usize>, Error> {
    let offsets = offsets.to_vec(stream)?;
    Ok(offsets.windows(2).map(|ends| (ends[1] - ends[0]) as usize).collect())
}

/// Orders positions by the shards that are given for them.
pub(crate) fn split_by_number(
    stream: &Stream,
    shards: usize,
    numbers: &DeviceVec<u32>,
) -> Result<(DeviceVec<u32>, Vec<usize>), Error> {
    let from = positions(stream, numbers.len())?;
    let (mut sorted, mut to) = (stream.uninit::<u32>(from.len())?, stream.uninit::<u32>(from.len())?);
    let offsets = multisplit::pairs(stream, (numbers, &from), (&mut sorted, &mut to), shards as u32, Shift::by(0))?;
    Ok((to, counts(stream, &offsets)?))
}

impl<C: KeyCode> Partition<C> {
    /// Splits items by the shards of their keys. `along` has one element per key, or none if zero-sized. Waits.
    pub fn split<K: Key<Code = C>, V: Pod>(
        &self,
        stream: &Stream,
        shards: usize,
        keys: DeviceSlice<'_, K>,
        along: DeviceSlice<'_, V>,
    ) -> Result<Split<K, V>, Error> {
        if keys.is_empty() {
            return Ok(Split { keys: stream.uninit(0)?, along: stream.uninit(0)?, counts: vec![0; shards] });
        }
        if let Some(split) = self.split_at_once(stream, shards, keys, along) {
            return split;
        }
        let (order, counts) = split_by_number(stream, shards, &self.shards_of(stream, shards, keys)?)?;
        Ok(Split { keys: at(stream, keys, &order)?, along: at(stream, along, &order)?, counts })
    }

    /// Splits numbers of 4 or 8 bytes in one pass, if an operator can tell their shard.
    fn split_at_once<K: Key<Code = C>, V: Pod>(
        &self,
        stream: &Stream,
        shards: usize,
        keys: DeviceSlice<'_, K>,
        along: DeviceSlice<'_, V>,
    ) -> Option<Result<Split<K, V>, Error>> {
        if !K::IS_PLAIN {
            return None;
        }
        let used = self.used(shards);
        match (self, size_of::<K>()) {
            (&Self::Hash { seed }, 4) => by::<K, u32, V, _>(stream, shards, keys, along, ByHash::of(seed, shards)),
            (&Self::Hash { seed }, 8) => by::<K, u64, V, _>(stream, shards, keys, along, ByHash::of(seed, shards)),
            (Self::Ranges { splitters }, 4) => match splitters.len() {
                0..=3 => in_ranges::<K, u32, V, _>(stream, shards, used, keys, along, ByThree32::of::<K>(splitters)),
                4..=14 => {
                    in_ranges::<K, u32, V, _>(stream, shards, used, keys, along, ByFourteen32::of::<K>(splitters))
                }
                _ => None,
            },
            (Self::Ranges { splitters }, 8) => match splitters.len() {
                0..=3 => in_ranges::<K, u64, V, _>(stream, shards, used, keys, along, ByThree64::of::<K>(splitters)),
                4..=7 => in_ranges::<K, u64, V, _>(stream, shards, used, keys, along, BySeven64::of::<K>(splitters)),
                _ => None,
            },
            _ => None,
        }
    }

    /// Returns how many shards can have keys: the first one alone while there are no splitters.
    fn used(&self, shards: usize) -> usize {
        match self {
            Self::Ranges { splitters } => shards.min(splitters.len() + 1),
            Self::Hash { .. } => shards,
        }
    }

    /// Returns the shard of each key.
    pub fn shards_of<K: Key<Code = C>>(
        &self,
        stream: &Stream,
        shards: usize,
        keys: DeviceSlice<'_, K>,
    ) -> Result<DeviceVec<u32>, Error> {
        let codes = codes(stream, keys)?;
        let codes = codes.slice();
        let mut numbers = stream.uninit::<u32>(codes.len())?;
        match self {
            Self::Ranges { splitters } => {
                let splitters = stream.upload(splitters)?;
                search::upper_bound(stream, &splitters, codes, &mut numbers, C::ORDER)?;
            }
            &Self::Hash { seed } => {
                let hash = ByHash::of(seed, shards);
                // The type of codes follows from their size.
                if let Some(codes) = codes.cast::<u32>() {
                    transform::map(stream, codes, &mut numbers, hash)?;
                } else if let Some(codes) = codes.cast::<u64>() {
                    transform::map(stream, codes, &mut numbers, hash)?;
                } else if let Some(codes) = codes.cast::<u128>() {
                    transform::map(stream, codes, &mut numbers, hash)?;
                } else if let Some(codes) = codes.cast::<U256>() {
                    transform::map(stream, codes, &mut numbers, hash)?;
                } else {
                    let asked = format!("a number of {} bytes", size_of::<C>());
                    return Err(Error::InvalidOption { what: "the code of a key", asked, allowed: "4, 8, 16 or 32" });
                }
            }
        }
        Ok(numbers)
    }
}

impl ByHash {
    fn of(seed: u32, shards: usize) -> Self {
        Self { seed, shards: shards as u32 }
    }
}

/// Splits keys by ranges. Only the first `used` shards can have keys.
fn in_ranges<K: Key, N: Pod, V: Pod, B: Bucket<N>>(
    stream: &Stream,
    shards: usize,
    used: usize,
    keys: DeviceSlice<'_, K>,
    along: DeviceSlice<'_, V>,
    bucket: B,
) -> Option<Result<Split<K, V>, Error>> {
    let split = by::<K, N, V, B>(stream, used, keys, along, bucket)?;
    Some(split.map(|mut split| {
        split.counts.resize(shards, 0);
        split
    }))
}

/// Splits keys that are numbers `N`, with what goes along. `None` if the keys are misaligned for them.
fn by<K: Key, N: Pod, V: Pod, B: Bucket<N>>(
    stream: &Stream,
    shards: usize,
    keys: DeviceSlice<'_, K>,
    along: DeviceSlice<'_, V>,
    bucket: B,
) -> Option<Result<Split<K, V>, Error>> {
    let numbers = keys.cast::<N>()?;
    let split = || {
        let (mut to, mut to_along) = (stream.uninit::<N>(keys.len())?, stream.uninit::<V>(along.len())?);
        let offsets = match size_of::<V>() {
            0 => multisplit::keys(stream, numbers, &mut to, shards as u32, bucket)?,
            _ => multisplit::pairs(stream, (numbers, along), (&mut to, &mut to_along), shards as u32, bucket)?,
        };
        let counts = counts(stream, &offsets)?;
        Ok(Split { keys: gpu_dictionary::cast::recast(to), along: to_along, counts })
    };
    Some(split())
}

#[cfg(test)]
mod tests {
    use super::{Bucket, ByFourteen32, ByHash, BySeven64, ByThree32, ByThree64, Map, Partition, U256};
    use bytemuck::{Pod, bytes_of};
    use gpu_dictionary::Key;
    use gpu_primitives::Device;
    use gpu_primitives::operator::Recorded;

    /// Returns what a recorded function, which GPUs run, makes of an argument.
    fn recorded<A: Pod>(recorded: &Recorded, name: &str, argument: A, state: impl Pod) -> u32 {
        let result = recorded.function(name).unwrap().interpret(&[bytes_of(&argument)], bytes_of(&state));
        u32::from_le_bytes(result[..4].try_into().unwrap())
    }

    #[test]
    fn gpus_and_the_cpu_send_keys_to_the_same_shards() {
        let hash = ByHash::of(12_345, 7);
        let short = ByFourteen32 {
            splitters: core::array::from_fn(|i| [0, 9, 1 << 31, u32::MAX][i.min(3)]),
            always: 1 << 31,
            if_negative: u32::MAX >> 1,
        };
        let long = BySeven64 {
            splitters: core::array::from_fn(|i| [0, 9, 1 << 63, u64::MAX][i.min(3)]),
            always: 1 << 31,
            if_negative: u32::MAX >> 1,
        };
        let few_short = ByThree32 { splitters: [9, 1 << 31, u32::MAX], always: 0, if_negative: u32::MAX };
        let few_long = ByThree64 { splitters: [9, 1 << 63, u64::MAX], always: 0, if_negative: u32::MAX };
        let mut number = 1u128;
        for i in 0..300 {
            number = number.wrapping_mul(0x2360_ED05_1FC6_5DA4_4385_DF64_9FCC_F645).wrapping_add(i);
            let (a, b) = (number as u32 >> (i % 32), (number >> 64) as u64 >> (i % 64));
            let (c, d) = (number >> (i % 128), U256 { high: number, low: number.rotate_left(50) });
            let same = |native: u32, recorded: u32| {
                assert_eq!(native, recorded, "{number:x}");
                native
            };
            let of_hash = [
                same(Bucket::bucket(&hash, a), recorded(&<ByHash as Bucket<u32>>::recorded(), "bucket", a, hash)),
                same(Bucket::bucket(&hash, b), recorded(&<ByHash as Bucket<u64>>::recorded(), "bucket", b, hash)),
                same(Map::map(&hash, a), recorded(&<ByHash as Map<u32>>::recorded(), "map", a, hash)),
                same(Map::map(&hash, b), recorded(&<ByHash as Map<u64>>::recorded(), "map", b, hash)),
                same(Map::map(&hash, c), recorded(&<ByHash as Map<u128>>::recorded(), "map", c, hash)),
                same(Map::map(&hash, d), recorded(&<ByHash as Map<U256>>::recorded(), "map", d, hash)),
            ];
            assert!(of_hash.iter().all(|&shard| shard < 7) && of_hash[0] == of_hash[2] && of_hash[1] == of_hash[3]);
            same(short.bucket(a), recorded(&<ByFourteen32 as Bucket<u32>>::recorded(), "bucket", a, short));
            same(long.bucket(b), recorded(&<BySeven64 as Bucket<u64>>::recorded(), "bucket", b, long));
            same(few_short.bucket(a), recorded(&<ByThree32 as Bucket<u32>>::recorded(), "bucket", a, few_short));
            same(few_long.bucket(b), recorded(&<ByThree64 as Bucket<u64>>::recorded(), "bucket", b, few_long));
        }
    }

    /// Hashes of sequences, strides and upper bits are as even as random ones.
    #[test]
    fn hashes_are_even() {
        for seed in [0, 1, 2, 99] {
            for shards in [2usize, 3, 4, 7, 64] {
                let hash = ByHash::of(seed, shards);
                let keys = 1000 * shards as u64;
                let shapes: [&dyn Fn(u64) -> u32; 5] = [
                    &|i| hash.bucket(i as u32),
                    &|i| hash.bucket((i as u32) << 14),
                    &|i| hash.bucket(i),
                    &|i| hash.bucket(i << 40),
                    &|i| hash.bucket(i * 0x1_0000_0001),
                ];
                for (shape, of) in shapes.iter().enumerate() {
                    let mut counts = vec![0u32; shards];
                    (0..keys).for_each(|i| counts[of(i) as usize] += 1);
                    // Four standard deviations and a half are less than 15 % of 1000.
                    assert!(counts.iter().all(|count| (850..1150).contains(count)), "{shape}, {seed}: {counts:?}");
                }
            }
        }
    }

    /// The pass with an operator and the search agree, for all kinds of numbers.
    #[test]
    fn splits_agree_with_searches() {
        fn check<K: Key>(keys: &[K]) {
            let stream = Device::cpu().stream().unwrap();
            let mut codes: Vec<K::Code> = keys.iter().map(|key| key.code()).collect();
            codes.sort_unstable_by(|a, b| a.partial_cmp(b).unwrap());
            for splitters in [1, 3, 7] {
                let splitters = (1..=splitters).map(|i| codes[i * codes.len() / (splitters + 1)]).collect();
                let partition = Partition::Ranges { splitters };
                let keys = stream.upload(keys).unwrap();
                let nothing = stream.uninit::<()>(0).unwrap();
                let split = partition.split_at_once(&stream, 8, keys.as_slice(), nothing.as_slice()).unwrap().unwrap();
                let numbers = partition.shards_of(&stream, 8, keys.as_slice()).unwrap().to_vec(&stream).unwrap();
                let counts: Vec<usize> = (0..8).map(|shard| numbers.iter().filter(|&&n| n == shard).count()).collect();
                assert_eq!(split.counts, counts);
            }
        }
        check::<u32>(&[0, 1, 5, 5, 7, 1 << 31, u32::MAX, 12, 13, 99]);
        check::<i32>(&[i32::MIN, -5, -1, 0, 1, 9, i32::MAX, 3, -7, 100]);
        check::<f32>(&[f32::NEG_INFINITY, -1.5, -0.0, 0.0, 2.5, f32::MAX, f32::NAN, -f32::NAN, 1.0, -7.0]);
        check::<u64>(&[0, 1, 5, 5, 7, 1 << 63, u64::MAX, 12, 1 << 32, 99]);
        check::<i64>(&[i64::MIN, -5, -1, 0, 1, 9, i64::MAX, 3, -7 << 40, 100]);
        check::<f64>(&[f64::NEG_INFINITY, -1.5, -0.0, 0.0, 2.5, f64::MAX, f64::NAN, -f64::NAN, 1.0, -7.0]);
    }
}
