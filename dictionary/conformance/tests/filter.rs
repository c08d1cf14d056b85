//! The filter: no false negatives, as many false positives as theory says, and bits that depend on the set of keys alone.

use bytemuck::{Pod, Zeroable};
use gpu_conformance::{Case, cases, is_checked, run};
use gpu_dictionary::filter::{BloomFilter, Options};
use gpu_dictionary_conformance::kernels::Passing;
use gpu_dictionary_conformance::{Failing, Random};
use gpu_primitives::{CpuOptions, Device, Error, Schedule, Stream};
use std::fmt::Debug;
use std::process::ExitCode;

fn main() -> ExitCode {
    let own = cases![
        all_sizes_of_keys,
        lengths_at_edges,
        misaligned_keys,
        misses_are_as_theory_says,
        patterns_are_as_good_as_random_keys,
        bits_depend_on_the_set_alone,
        large_filters_are_filled_by_parts,
        filters_are_merged,
        merges_are_not_recorded,
        copies_are_independent,
        a_kernel_of_ones_own,
        damaged_files,
        estimates,
        another_device,
    ];
    let failures = [
        Case::new("failing_allocations", failing_allocations).of_host_code(),
        Case::new("random_schedules", random_schedules).of_host_code(),
    ];
    run(&[&own[..], &failures].concat())
}

/// A key of 12 bytes with a type of its own.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
struct Cell([u32; 3]);

/// Returns the bytes of a filter's file: all that there is of it.
fn saved<K: Pod>(stream: &Stream, filter: &BloomFilter<K>) -> Vec<u8> {
    let mut file = Vec::new();
    filter.save(stream, &mut file).unwrap();
    file
}

/// Asks in all ways, which agree. Returns the answers.
fn ask<K: Pod>(stream: &Stream, filter: &BloomFilter<K>, keys: &[K]) -> Vec<bool> {
    let on_device = stream.upload(keys).unwrap();
    let found = filter.contains(stream, &on_device).unwrap().to_vec(stream).unwrap();
    let bits = filter.contains_bits(stream, &on_device).unwrap().to_vec(stream).unwrap();
    assert_eq!((found.len(), bits.len()), (keys.len(), keys.len().div_ceil(8)));
    assert!(found.iter().all(|&found| found <= 1));
    for (i, byte) in bits.iter().enumerate() {
        let expected = found[8 * i..].iter().take(8).rev().fold(0, |byte, &bit| byte << 1 | bit);
        assert_eq!(*byte, expected, "byte {i} of {}", bits.len());
    }
    let count = filter.count(stream, &on_device).unwrap().get(stream).unwrap();
    assert_eq!(count, found.iter().map(|&found| u64::from(found)).sum());
    found.into_iter().map(|found| found == 1).collect()
}

/// Builds a filter of some keys, and asks for these and for others.
fn check<K: Pod + Debug>(device: &Device, len: usize, key: impl Fn(u64) -> K) {
    let stream = device.stream().unwrap();
    let keys: Vec<K> = (0..len as u64).map(&key).collect();
    let filter = BloomFilter::build(&stream, &stream.upload(&keys).unwrap(), Options::new().seed(len as u64)).unwrap();
    assert!(ask(&stream, &filter, &keys).into_iter().all(|found| found), "{len} keys of {} bytes", size_of::<K>());
    let again = BloomFilter::<K>::load(&stream, &saved(&stream, &filter)[..]).unwrap();
    assert!(ask(&stream, &again, &keys).into_iter().all(|found| found));
    let empty = BloomFilter::<K>::new(&stream, Options::new().capacity(len)).unwrap();
    assert!(!ask(&stream, &empty, &keys).into_iter().any(|found| found), "an empty filter has no keys");
}

fn all_sizes_of_keys(device: &Device) {
    check(device, 250, |i| i as u8);
    check(device, 300, |i| i as i16);
    check(device, 300, |i| [i as u8, (i >> 8) as u8, 7]);
    check(device, 300, |i| i as u32);
    check(device, 300, |i| i as f32);
    check(device, 300, |i| [i as u8; 5]);
    check(device, 300, |i| [i as u16, 1, 2]);
    check(device, 300, |i| -(i as i64));
    check(device, 300, |i| [i as u32, 9]);
    check(device, 300, |i| Cell([1, i as u32, 2]));
    check(device, 300, |i| u128::from(i) << 64);
    check(device, 300, |i| [1u8; 17].map(|x| x ^ i as u8 ^ (i >> 3) as u8));
    check(device, 300, |i| [0, 0, 0, i]);
    check(device, 300, |i| [i as u8; 31]);
}

fn lengths_at_edges(device: &Device) {
    for len in [0, 1, 7, 8, 9, 31, 32, 33, 63, 64, 65, 511, 512, 513, 1025] {
        check(device, len, |i| i as u32);
        check(device, len, |i| i << 40);
    }
}

/// Keys that begin at any byte are the same keys.
fn misaligned_keys(device: &Device) {
    fn of<const N: usize>(device: &Device)
    where
        [u8; N]: Pod,
    {
        let stream = device.stream().unwrap();
        let mut random = Random(N as u64);
        let bytes: Vec<u8> = (0..100 * N + 3).map(|_| random.number() as u8).collect();
        let on_device = stream.upload(&bytes).unwrap();
        for offset in 0..4 {
            let keys: Vec<[u8; N]> = bytes[offset..].chunks_exact(N).map(|key| key.try_into().unwrap()).collect();
            // SAFETY: these bytes are in the vector, which lives on, and bytes need no alignment.
            let misaligned = unsafe {
                gpu_primitives::DeviceSlice::from_raw_parts(
                    device,
                    on_device.as_slice().as_ptr().wrapping_add(offset).cast::<[u8; N]>(),
                    keys.len(),
                )
            };
            let one = BloomFilter::build(&stream, misaligned, Options::new()).unwrap();
            let other = BloomFilter::build(&stream, &stream.upload(&keys).unwrap(), Options::new()).unwrap();
            assert_eq!(saved(&stream, &one), saved(&stream, &other), "{N} bytes from byte {offset}");
            assert!(
                one.contains(&stream, misaligned).unwrap().to_vec(&stream).unwrap().iter().all(|&found| found == 1)
            );
        }
    }
    of::<4>(device);
    of::<8>(device);
    of::<12>(device);
}

/// Returns how many of absent keys pass, and how many should.
fn misses<K: Pod>(
    device: &Device,
    options: Options,
    members: usize,
    asked: usize,
    key: impl Fn(u64) -> K,
) -> (f64, f64) {
    let stream = device.stream().unwrap();
    let keys: Vec<K> = (0..members as u64).map(&key).collect();
    let filter = BloomFilter::build(&stream, &stream.upload(&keys).unwrap(), options).unwrap();
    let others: Vec<K> = (members as u64..(members + asked) as u64).map(&key).collect();
    let passed = filter.count(&stream, &stream.upload(&others).unwrap()).unwrap().get(&stream).unwrap();
    (passed as f64, filter.stats(&stream).unwrap().false_positive_rate * asked as f64)
}

/// Checks a count against its expectation, with room for five standard deviations, and for those of the blocks' loads.
fn assert_near(passed: f64, expected: f64, what: &str) {
    assert!(
        (passed - expected).abs() < 5.0 * expected.sqrt() + 0.08 * expected + 3.0,
        "{what}: {passed}, not {expected}"
    );
}

fn misses_are_as_theory_says(device: &Device) {
    // The checked device simulates every thread.
    let (members, asked) = if is_checked(device) { (2000, 8000) } else { (50_000, 200_000) };
    let mut random = Random(5);
    let scrambled: Vec<u64> = (0..members + asked).map(|_| random.number()).collect();
    for (bits, published) in [(8.0, 0.0267), (16.0, 0.00128)] {
        let options = Options::new().bits_per_key(bits);
        let (passed, expected) = misses(device, options, members, asked, |i| scrambled[i as usize]);
        assert_near(passed, expected, &format!("{bits} bits per key"));
        // What the page says.
        let rate = expected / asked as f64;
        assert!((rate / published - 1.0).abs() < 0.15, "{bits} bits per key: {rate}");
    }
    for hashes in [4, 8, 12, 16] {
        let options = Options::new().bits_per_key(10.0).hashes(hashes);
        let (passed, expected) = misses(device, options, members, asked, |i| scrambled[i as usize] as u32);
        assert_near(passed, expected, &format!("{hashes} hashes"));
    }
    let (passed, _) =
        misses(device, Options::new().false_positive_rate(0.01), members, asked, |i| scrambled[i as usize]);
    assert_near(passed, 0.01 * asked as f64, "a rate of 1 %");
}

fn patterns_are_as_good_as_random_keys(device: &Device) {
    let (members, asked) = if is_checked(device) { (1500, 4000) } else { (30_000, 60_000) };
    let near = |what: &str, (passed, expected): (f64, f64)| assert_near(passed, expected, what);
    for seed in 0..if is_checked(device) { 1 } else { 3 } {
        let options = Options::new().bits_per_key(8.0).seed(seed);
        let of = |key: &dyn Fn(u64) -> u64| misses(device, options.clone(), members, asked, key);
        near("a sequence", of(&|i| i));
        for shift in [8, 16, 24, 32, 40] {
            near(&format!("steps of 2^{shift}"), of(&|i| i << shift));
        }
        near("both halves", of(&|i| i << 32 | i));
        near("floats", of(&|i| (i as f64).to_bits()));
        near("a grid", of(&|i| ((i % 256) << 32) | (i / 256)));
        near("32 bits", misses(device, options.clone(), members, asked, |i| i as u32));
        near("32 bits, in steps", misses(device, options.clone(), members, asked, |i| (i as u32) << 12));
        near("32-bit floats", misses(device, options.clone(), members, asked, |i| i as f32));
        near("the last word of four", misses(device, options.clone(), members, asked, |i| [7, 7, 7, i]));
        near("the first word of four", misses(device, options.clone(), members, asked, |i| [i, 7, 7, 7]));
        near("two words against each other", misses(device, options.clone(), members, asked, |i| [i, !i]));
    }
}

fn bits_depend_on_the_set_alone(device: &Device) {
    let (one, other) = (device.stream().unwrap(), device.stream().unwrap());
    let mut random = Random(3);
    let mut keys: Vec<u32> = (0..700).map(|_| random.number() as u32).collect();
    let options = Options::new().capacity(1000);
    let at_once = BloomFilter::build(&one, &one.upload(&keys).unwrap(), options.clone()).unwrap();
    keys.reverse();
    let mut in_parts = BloomFilter::<u32>::new(&one, options).unwrap();
    for (i, part) in keys.chunks(97).enumerate() {
        // Calls on different streams, and keys that are there already.
        let stream = if i % 2 == 0 { &one } else { &other };
        in_parts.insert(stream, &stream.upload(part).unwrap()).unwrap();
        in_parts.insert(stream, &stream.upload(&part[..9]).unwrap()).unwrap();
    }
    assert_eq!(saved(&one, &at_once), saved(&other, &in_parts));
    in_parts.clear(&other).unwrap();
    assert_eq!(in_parts.stats(&one).unwrap().bits_set, 0);
}

/// A filter that is larger than what counts as a cache on the CPU: keys are ordered before they are inserted.
fn large_filters_are_filled_by_parts(device: &Device) {
    fn of<K: Pod + Debug>(device: &Device, key: impl Fn(u64) -> K) {
        let stream = device.stream().unwrap();
        // 768 KiB: 24,576 blocks.
        let options = Options::new().capacity(24_576 * 32).bits_per_key(8.0);
        let keys: Vec<K> = (0..25_000).map(|i| key(i * 0x9E37_79B9)).collect();
        let filter = BloomFilter::build(&stream, &stream.upload(&keys).unwrap(), options.clone()).unwrap();
        let mut by_calls = BloomFilter::new(&stream, options).unwrap();
        for part in keys.chunks(9000) {
            by_calls.insert(&stream, &stream.upload(part).unwrap()).unwrap();
        }
        assert_eq!(saved(&stream, &filter), saved(&stream, &by_calls));
        let asked = if is_checked(device) { &keys[..2000] } else { &keys };
        assert!(ask(&stream, &filter, asked).into_iter().all(|found| found));
    }
    of(device, |i| i as u32);
    of(device, |i| i);
    if !is_checked(device) {
        of(device, |i| u128::from(i) << 17);
    }
}

fn filters_are_merged(device: &Device) {
    let stream = device.stream().unwrap();
    let options = Options::new().capacity(500);
    let keys: Vec<u64> = (0..500).collect();
    let all = BloomFilter::build(&stream, &stream.upload(&keys).unwrap(), options.clone()).unwrap();
    let mut some = BloomFilter::build(&stream, &stream.upload(&keys[..200]).unwrap(), options.clone()).unwrap();
    let rest = BloomFilter::build(&stream, &stream.upload(&keys[200..]).unwrap(), options.clone()).unwrap();
    some.merge(&stream, &rest).unwrap();
    assert_eq!(saved(&stream, &some), saved(&stream, &all));
    for other in [options.clone().seed(1), options.clone().capacity(1000), options.hashes(4)] {
        let other = BloomFilter::new(&stream, other).unwrap();
        let error = some.merge(&stream, &other).unwrap_err().to_string();
        assert!(error.contains("same size, hashes and seed"), "{error}");
        assert_eq!(saved(&stream, &some), saved(&stream, &all));
    }
}

/// A merge that is recorded and never launched would leave a filter without keys.
fn merges_are_not_recorded(device: &Device) {
    let stream = device.stream().unwrap();
    let options = Options::new().capacity(100);
    let mut one = BloomFilter::build(&stream, &stream.upload(&[1u32, 2]).unwrap(), options.clone()).unwrap();
    let other = BloomFilter::build(&stream, &stream.upload(&[3u32]).unwrap(), options).unwrap();
    let recorded = stream.capture(|stream| one.merge(stream, &other));
    assert_eq!(ask(&stream, &one, &[1, 2]), [true; 2], "{recorded:?}");
    assert!(matches!(recorded, Err(Error::NotRecordable { what: "a merge of filters" })), "{recorded:?}");
    one.merge(&stream, &other).unwrap();
    assert_eq!(ask(&stream, &one, &[1, 2, 3]), [true; 3]);
}

fn copies_are_independent(device: &Device) {
    let stream = device.stream().unwrap();
    let keys = stream.upload(&[1u32, 2, 3]).unwrap();
    let mut filter = BloomFilter::build(&stream, &keys, Options::new().capacity(100)).unwrap();
    let copy = filter.try_clone(&stream).unwrap();
    filter.clear(&stream).unwrap();
    assert_eq!(ask(&stream, &copy, &[1, 2, 3]), [true; 3]);
    assert_eq!(ask(&stream, &filter, &[1, 2, 3]), [false; 3]);
}

fn a_kernel_of_ones_own(device: &Device) {
    let stream = device.stream().unwrap();
    let keys: Vec<[u32; 3]> = (0..200).map(|i| [i, i * i, 7]).collect();
    let filter = BloomFilter::build(&stream, &stream.upload(&keys[..100]).unwrap(), Options::new()).unwrap();
    let on_device = stream.upload(&keys).unwrap();
    let mut passes = stream.uninit::<u32>(200).unwrap();
    let (view, to) = (filter.view(&stream).unwrap(), passes.view_mut(&stream).unwrap());
    let kernel = Passing::new(view, on_device.view(&stream).unwrap(), to);
    // SAFETY: a thread and an element for each key.
    unsafe { stream.launch(kernel, 200usize.div_ceil(64)).unwrap() };
    let expected: Vec<u32> = ask(&stream, &filter, &keys).into_iter().map(u32::from).collect();
    assert_eq!(passes.to_vec(&stream).unwrap(), expected);
    assert_eq!(expected[..100], [1; 100]);
}

fn damaged_files(device: &Device) {
    let stream = device.stream().unwrap();
    let keys = stream.upload(&(0..100u32).collect::<Vec<_>>()).unwrap();
    let file = saved(&stream, &BloomFilter::build(&stream, &keys, Options::new()).unwrap());
    let refused = |file: &[u8]| match BloomFilter::<u32>::load(&stream, file) {
        Err(error @ Error::InvalidFile { .. }) => error.to_string(),
        other => panic!("{other:?}"),
    };
    for cut in (0..file.len()).step_by(13) {
        assert!(refused(&file[..cut]).contains("ends too early"));
        let mut damaged = file.clone();
        damaged[cut] ^= 0x10;
        refused(&damaged);
    }
    let other = BloomFilter::<u64>::load(&stream, &file[..]).unwrap_err().to_string();
    assert!(other.contains("keys have 4 bytes, but 8"), "{other}");
    let longer = [&file[..], b"more"].concat();
    let mut rest = &longer[..];
    BloomFilter::<u32>::load(&stream, &mut rest).unwrap();
    assert_eq!(rest, b"more");
    let filter = BloomFilter::build(&stream, &keys, Options::new()).unwrap();
    for bytes in [0, 10, 100] {
        assert!(matches!(filter.save(&stream, Failing(bytes)), Err(Error::Io(_))));
    }
}

fn estimates(device: &Device) {
    let stream = device.stream().unwrap();
    let len = if is_checked(device) { 2000 } else { 100_000 };
    let keys = stream.upload(&(0..len).collect::<Vec<u32>>()).unwrap();
    for bits in [6.0, 12.0, 24.0] {
        let filter = BloomFilter::build(&stream, &keys, Options::new().bits_per_key(bits)).unwrap();
        let stats = filter.stats(&stream).unwrap();
        assert!((stats.estimated_keys / f64::from(len) - 1.0).abs() < 0.06, "{stats:?}");
        assert_eq!(stats.bytes, filter.bytes());
    }
    // One block with far too many keys: everything is present, and nothing is known.
    let mut full = BloomFilter::<u32>::new(&stream, Options::new()).unwrap();
    full.insert(&stream, &keys).unwrap();
    let stats = full.stats(&stream).unwrap();
    assert_eq!((stats.bits_set, stats.false_positive_rate, stats.estimated_keys), (256, 1.0, f64::INFINITY));
}

fn another_device(device: &Device) {
    let elsewhere = Device::cpu_with(CpuOptions { checked: is_checked(device), ..CpuOptions::default() });
    let (stream, foreign) = (device.stream().unwrap(), elsewhere.stream().unwrap());
    let keys = stream.upload(&[1u32]).unwrap();
    let mut filter = BloomFilter::build(&stream, &keys, Options::new()).unwrap();
    let before = saved(&stream, &filter);
    assert!(matches!(filter.contains(&foreign, &keys), Err(Error::WrongDevice { .. })));
    assert!(matches!(filter.insert(&foreign, &foreign.upload(&[2]).unwrap()), Err(Error::WrongDevice { .. })));
    assert_eq!(saved(&stream, &filter), before);
}

/// Makes each allocation of a call fail, one after the other. The filter is then what it was, or what it should be.
fn failing_allocations(device: &Device) {
    let stream = device.stream().unwrap();
    let options = Options::new().capacity(24_576 * 32).bits_per_key(8.0);
    let keys: Vec<[u16; 3]> = (0..24_600u32).map(|i| [i as u16, (i >> 3) as u16, 5]).collect();
    let on_device = stream.upload(&keys).unwrap();
    let full = saved(&stream, &BloomFilter::build(&stream, &on_device, options.clone()).unwrap());
    let mut failed = 0;
    for successes in 0.. {
        let mut filter = BloomFilter::new(&stream, options.clone()).unwrap();
        let empty = saved(&stream, &filter);
        let fresh = device.stream().unwrap();
        fresh.fail_allocation_after(Some(successes));
        let outcome = filter.insert(&fresh, &on_device);
        // If the call made fewer allocations, this is the one that fails.
        let all_were_tried = fresh.upload(&[0u8]).is_err();
        fresh.fail_allocation_after(None);
        match outcome {
            Ok(()) => assert_eq!(saved(&stream, &filter), full, "after {successes} allocations"),
            Err(Error::OutOfMemory { .. }) => {
                assert_eq!(saved(&stream, &filter), empty);
                failed += 1;
            }
            Err(error) => panic!("{error}"),
        }
        if all_were_tried {
            break;
        }
    }
    assert_eq!(failed, 1, "only the numbers of the keys must have memory");
    for successes in 0..3 {
        let mut filter = BloomFilter::build(&stream, &on_device, options.clone()).unwrap();
        let fresh = device.stream().unwrap();
        fresh.fail_allocation_after(Some(successes));
        let other = BloomFilter::<[u16; 3]>::new(&stream, options.clone()).unwrap();
        let _ = filter.merge(&fresh, &other);
        let _ = filter.count(&fresh, &on_device);
        fresh.fail_allocation_after(None);
        assert_eq!(saved(&stream, &filter), full);
    }
}

fn random_schedules(_: &Device) {
    let expected = {
        let stream = Device::cpu().stream().unwrap();
        let keys = stream.upload(&(0..1500u32).collect::<Vec<_>>()).unwrap();
        saved(&stream, &BloomFilter::build(&stream, &keys, Options::new().bits_per_key(3.0)).unwrap())
    };
    for seed in 0..3 {
        let schedule = Schedule::Random { seed };
        let device = Device::cpu_with(CpuOptions { checked: true, schedule, ..CpuOptions::default() });
        let stream = device.stream().unwrap();
        let keys = stream.upload(&(0..1500u32).collect::<Vec<_>>()).unwrap();
        let filter = BloomFilter::build(&stream, &keys, Options::new().bits_per_key(3.0)).unwrap();
        assert_eq!(saved(&stream, &filter), expected, "seed {seed}");
    }
}
