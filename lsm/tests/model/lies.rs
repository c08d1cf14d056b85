//! Keys whose codes break their contract: other keys come back, but levels stay sorted, and nothing is accessed out of bounds.

use bytemuck::{Pod, Zeroable};
use gpu_conformance::data::random;
use gpu_conformance::is_gpu;
use gpu_lsm::GpuLsm;
use gpu_primitives::operator::{Record, Recorded, operator};
use gpu_primitives::sort::{FromCode, RadixKey};
use gpu_primitives::{Device, Stream};
use std::sync::atomic::{AtomicU32, Ordering};

/// Says that its codes have `BITS` bits, whatever they have.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable, Record)]
struct Cut<const BITS: usize>(u32);

#[operator]
impl<const BITS: usize> RadixKey for Cut<BITS> {
    type Code = u32;
    const BITS: u32 = BITS as u32;
    fn code(key: Self) -> u32 {
        key.0
    }
}

#[operator]
impl<const BITS: usize> FromCode for Cut<BITS> {
    fn from_code(code: u32) -> Self {
        Cut::<BITS>(code)
    }
}

/// Has another code each time. GPUs are given one code, with all of its bits.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable, Record)]
struct Fickle(u32);

impl RadixKey for Fickle {
    type Code = u32;

    fn code(key: Self) -> u32 {
        static CALLS: AtomicU32 = AtomicU32::new(0);
        key.0 ^ CALLS.fetch_add(1, Ordering::Relaxed).wrapping_mul(0x9E37_79B1)
    }

    fn recorded() -> Recorded {
        <Cut<32> as RadixKey>::recorded()
    }
}

impl FromCode for Fickle {
    fn from_code(code: u32) -> Self {
        Self(code)
    }

    fn recorded() -> Recorded {
        <Cut<32> as FromCode>::recorded()
    }
}

/// Updates and queries of several levels. Returns what is in the dictionary.
fn work<K: FromCode<Code = u32> + std::fmt::Debug>(stream: &Stream, n: usize, key: impl Fn(u32) -> K) -> Vec<(K, u32)> {
    let mut lsm = GpuLsm::<K, u32>::with_batch_size(n).unwrap();
    let queries: Vec<K> = random(99).take(n).map(|bits| key(bits as u32)).collect();
    let queries = stream.upload(&queries).unwrap();
    for round in 0..4 {
        let keys: Vec<K> = random(round).take(n).map(|bits| key(bits as u32)).collect();
        let keys = stream.upload(&keys).unwrap();
        lsm.insert(stream, (&keys, &stream.upload(&vec![round as u32; n]).unwrap())).unwrap();
        lsm.delete(stream, keys.slice(..n / 3).unwrap()).unwrap();
        lsm.lookup(stream, &keys).unwrap().to_vec(stream).unwrap();
        lsm.successor(stream, &queries).unwrap().to_vec(stream).unwrap();
        lsm.count(stream, &queries, &keys).unwrap().to_vec(stream).unwrap();
    }
    lsm.cleanup(stream).unwrap();
    lsm.export(stream).unwrap().to_vec(stream).unwrap()
}

pub fn codes_of_more_bits_than_they_say(device: &Device) {
    let stream = device.stream().unwrap();
    let n = if is_gpu(device) { 100_000 } else { 3000 };
    check::<1>(&stream, n);
    check::<13>(&stream, n);
    check::<32>(&stream, n);
}

fn check<const BITS: usize>(stream: &Stream, n: usize) {
    let keys: Vec<u32> = work(stream, n, Cut::<BITS>).into_iter().map(|(key, _)| key.0).collect();
    let fits = |key: &u32| key.checked_shr(BITS as u32).unwrap_or(0) == 0;
    assert!(keys.is_sorted() && keys.iter().all(fits), "{BITS} bits");
}

pub fn codes_that_change(device: &Device) {
    let stream = device.stream().unwrap();
    let pairs = work(&stream, if is_gpu(device) { 100_000 } else { 3000 }, Fickle);
    assert!(pairs.is_sorted_by_key(|(key, _)| key.0), "levels are sorted by the codes that they store");
}
