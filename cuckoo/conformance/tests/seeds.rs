//! Sets of keys that are hard for simple hash functions, with many seeds: 1,000 if `GPU_PRIMITIVES_LONG` is set, fewer
//! by default.

use gpu_conformance::data::random;
use gpu_conformance::{cases, is_checked, run};
use gpu_cuckoo::{GpuCuckoo, Options, WhenFull};
use gpu_primitives::{Device, Error};
use std::collections::HashSet;
use std::process::ExitCode;

fn main() -> ExitCode {
    run(cases![load_of_80_percent, load_of_90_percent, load_of_95_percent])
}

/// Sets of distinct keys. Most of them are patterns that depend on the size of the table.
fn sets(len: u32) -> [(&'static str, Vec<u32>); 9] {
    let slots = len * 5 / 4;
    let mut seen = HashSet::new();
    let random: Vec<u32> = random(1).map(|x| x as u32).filter(|&x| seen.insert(x)).take(len as usize).collect();
    [
        ("sequential", (0..len).collect()),
        ("downwards from the top", (0..len).map(|x| u32::MAX - x).collect()),
        ("stride of 64", (0..len).map(|x| 64 * x).collect()),
        ("stride of 4099", (0..len).map(|x| x.wrapping_mul(4099)).collect()),
        ("upper bits", (0..len).map(|x| x.reverse_bits()).collect()),
        ("multiples of the slots", (0..len).map(|x| x.wrapping_mul(slots | 1)).collect()),
        ("multiples of the buckets", (0..len).map(|x| x.wrapping_mul((slots / 8) | 1)).collect()),
        ("clusters of 16", (0..len).map(|x| (x / 16).wrapping_mul(16 * 0x12_3459) + x % 16).collect()),
        ("random", random),
    ]
}

/// Builds all sets with some seeds. Returns how many builds were refused.
fn check(device: &Device, load_factor: f64) -> usize {
    let seeds = match (std::env::var_os("GPU_PRIMITIVES_LONG").is_some(), is_checked(device)) {
        (true, false) => 112,
        (true, true) => 12,
        (false, false) => 6,
        (false, true) => 1,
    };
    let len = if is_checked(device) { 1200 } else { 9000 };
    let stream = device.stream().unwrap();
    let mut refused = 0;
    for (name, keys) in sets(len) {
        let expected: HashSet<u32> = keys.iter().copied().collect();
        assert_eq!(expected.len(), keys.len(), "{name}: the keys are distinct");
        let absent: Vec<u32> = random(2).map(|x| x as u32).filter(|x| !expected.contains(x)).take(3000).collect();
        let (on_device, others) = (stream.upload(&keys).unwrap(), stream.upload(&absent).unwrap());
        for seed in 0..seeds {
            let width = [8, 4][seed as usize % 2];
            let options = Options::new().load_factor(load_factor).bucket_width(width).hashes(2 + seed as u32 / 2 % 3);
            let options = options.seed(u64::wrapping_mul(seed, 0x1234_5678_9ABC_DEF1)).when_full(WhenFull::Refuse);
            let table = match GpuCuckoo::bulk_build(&stream, (&on_device, &on_device), options) {
                Ok(table) => table,
                Err(Error::TableFull { unplaced, .. }) if unplaced > 0 => {
                    refused += 1;
                    continue;
                }
                Err(error) => panic!("{name}, seed {seed}: {error}"),
            };
            let found = table.lookup(&stream, &on_device).unwrap().to_vec(&stream).unwrap();
            assert!(found.iter().zip(&keys).all(|(&found, &key)| found == Some(key)), "{name}, seed {seed}");
            let found = table.contains(&stream, &others).unwrap().to_vec(&stream).unwrap();
            assert!(found.iter().all(|&found| found == 0), "{name}, seed {seed}: absent keys");
        }
    }
    refused
}

fn load_of_80_percent(device: &Device) {
    assert_eq!(check(device, 0.8), 0);
}

fn load_of_90_percent(device: &Device) {
    assert_eq!(check(device, 0.9), 0);
}

/// A build succeeds, or returns `TableFull`.
fn load_of_95_percent(device: &Device) {
    let _ = check(device, 0.95);
}
