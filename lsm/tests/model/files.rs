//! Saving and loading: what was saved, or nothing.

use crate::model::{Modelled, Random, Value, extremes};
use gpu_conformance::is_checked;
use gpu_lsm::{GpuLsm, Key};
use gpu_primitives::dictionary::file::write_section;
use gpu_primitives::{Device, Error, Stream};
use std::fmt::Debug;
use std::io::{self, Read, Write};

fn saved<K: Key, V: Value>(stream: &Stream, lsm: &GpuLsm<K, V>) -> Vec<u8> {
    let mut file = Vec::new();
    lsm.save(stream, &mut file).unwrap();
    file
}

/// Saves a dictionary, loads it again, and compares.
fn round_trip<K: Key + Debug, V: Value>(stream: &Stream, both: &mut Modelled<K, V>, domain: &[K], what: &str) {
    let file = saved(stream, &both.lsm);
    let longer = [&file[..], b"more"].concat();
    let mut reader = &longer[..];
    let loaded = GpuLsm::load(stream, &mut reader).unwrap();
    assert_eq!(reader, b"more", "{what}: no more is read than is the dictionary's");
    let (before, after) = (both.lsm.stats(), loaded.stats());
    assert_eq!(
        (before.batch_size, before.batches, before.levels, before.resident, before.tombstones),
        (after.batch_size, after.batches, after.levels, after.resident, after.tombstones),
        "{what}"
    );
    assert_eq!(saved(stream, &loaded), file, "{what}: the same file again");
    both.lsm = loaded;
    both.check_all(stream, &mut Random(3), domain, what);
}

/// Round trips of a growing dictionary: empty, with a level, with several, with tombstones, cleaned up; and it goes on after
/// each.
fn round_trips_of<K: Key + Debug, V: Value>(stream: &Stream, keys: impl Iterator<Item = K>) {
    let domain: Vec<K> = keys.chain(extremes()).collect();
    let mut random = Random(11);
    let mut both = Modelled::<K, V>::new(40);
    round_trip(stream, &mut both, &domain, "empty");
    for step in 0..3 {
        let some = random.keys(&domain, 100);
        both.insert(stream, &some, &random.values(some.len()));
        if step > 0 {
            both.delete(stream, &random.keys(&domain, 50));
        }
        round_trip(stream, &mut both, &domain, &format!("step {step}"));
    }
    both.lsm.cleanup(stream).unwrap();
    round_trip(stream, &mut both, &domain, "cleaned up");
}

pub fn round_trips(device: &Device) {
    let stream = device.stream().unwrap();
    round_trips_of::<u32, u32>(&stream, 0..100);
    if !is_checked(device) {
        round_trips_of::<f64, u64>(&stream, (-50..50).map(f64::from));
        round_trips_of::<i32, u32>(&stream, -50..50);
        round_trips_of::<u64, u32>(&stream, (0..100).map(|i| i << 50));
        round_trips_of::<i64, ()>(&stream, (-50..50).map(|i| i << 50));
    }
}

pub fn the_same_calls_give_the_same_file(device: &Device) {
    let (batch, most) = if is_checked(device) { (20, 50) } else { (1000, 3000) };
    let domain: Vec<u32> = (0..10_000).collect();
    let file = || {
        let stream = device.stream().unwrap();
        let mut random = Random(21);
        let mut lsm = GpuLsm::<u32, u32>::new(batch).unwrap();
        for _ in 0..4 {
            let keys = random.keys(&domain, most);
            let insert = (&stream.upload(&keys).unwrap(), &stream.upload(&random.values(keys.len())).unwrap());
            lsm.update(&stream, insert, &stream.upload(&random.keys(&domain, most)).unwrap()).unwrap();
        }
        saved(&stream, &lsm)
    };
    let first = file();
    assert!(first.len() > 4 * most);
    for again in 0..if is_checked(device) { 1 } else { 3 } {
        assert!(file() == first, "again {again}");
    }
}

/// What a file that cannot be loaded is refused for.
#[track_caller]
fn refused<K: Key, V: Value>(stream: &Stream, file: &[u8]) -> String {
    match GpuLsm::<K, V>::load(stream, file) {
        Err(Error::InvalidFile { what, at }) => {
            assert!(at <= file.len() as u64, "{what}: byte {at} of {}", file.len());
            what
        }
        Err(error) => panic!("another error: {error}"),
        Ok(_) => panic!("it was loaded"),
    }
}

pub fn damaged_files(device: &Device) {
    let stream = device.stream().unwrap();
    let mut both = Modelled::<u32, u32>::new(4);
    both.insert(&stream, &[1, 2, 3, 4, 5, 6, 7], &[10, 20, 30, 40, 50, 60, 70]);
    both.update(&stream, &[3, 8], &[31, 80], &[1, 9]);
    let empty = saved(&stream, &GpuLsm::<u32, u32>::new(4).unwrap());
    for file in [saved(&stream, &both.lsm), empty] {
        for at in 0..file.len() {
            for flipped in [1, 0x80, 0xff] {
                let mut altered = file.clone();
                altered[at] ^= flipped;
                assert!(!refused::<u32, u32>(&stream, &altered).is_empty(), "byte {at}");
            }
            assert_eq!(refused::<u32, u32>(&stream, &file[..at]), "it ends too early", "{at} bytes");
        }
    }
    let mut file = saved(&stream, &both.lsm);
    let last = file.len() - 1;
    file[last] ^= 1;
    assert_eq!(refused::<u32, u32>(&stream, &file), "the checksum of the marks of level 0 is wrong");
    file[last] ^= 1;
    assert_eq!(refused::<i32, u32>(&stream, &file), "its keys are of type u32, and not i32");
    assert_eq!(refused::<f64, u64>(&stream, &file), "its keys are of type u32, and not f64");
    assert_eq!(refused::<u32, u64>(&stream, &file), "its values have 4 bytes, and not 8");
    assert_eq!(refused::<u32, ()>(&stream, &file), "its values have 4 bytes, and not 0");
    file[8] = 2;
    assert_eq!(refused::<u32, u32>(&stream, &file), "its version is 2, and only 1 is known");
    assert_eq!(refused::<u32, u32>(&stream, b"a text and no dictionary"), "it is no gpu-lsm file");
}

/// A level as someone may write it into a file.
struct Crafted {
    slot: u32,
    /// What the header says; else the length of the keys.
    stated_len: Option<u64>,
    keys: Vec<u32>,
    values: Vec<u32>,
    marks: Option<Vec<u32>>,
}

fn level(slot: u32, keys: &[u32]) -> Crafted {
    Crafted { slot, stated_len: None, keys: keys.to_vec(), values: keys.to_vec(), marks: None }
}

/// A file with right checksums.
fn craft(batch_size: u64, batches: u64, tombstones: u64, levels: &[Crafted]) -> Vec<u8> {
    let mut header = b"gpu-lsm\n\x01\0\0\0\x01\x04\x04".to_vec();
    header.push(levels.len() as u8);
    header.extend([batch_size, batches, tombstones].map(u64::to_le_bytes).concat());
    for level in levels {
        header.extend([level.slot, u32::from(level.marks.is_some())].map(u32::to_le_bytes).concat());
        header.extend(level.stated_len.unwrap_or(level.keys.len() as u64).to_le_bytes());
    }
    let mut file = Vec::new();
    write_section(&mut file, &header).unwrap();
    for level in levels {
        for array in [&level.keys, &level.values].into_iter().chain(&level.marks) {
            for part in array.chunks(1 << 18) {
                write_section(&mut file, bytemuck::cast_slice(part)).unwrap();
            }
        }
    }
    file
}

/// Checksums are right, and the rest is not.
pub fn crafted_files(device: &Device) {
    let stream = device.stream().unwrap();
    let good = craft(4, 0b101, 0, &[level(2, &[1, 2, 3, 3, 5]), level(0, &[2, 7])]);
    let loaded = GpuLsm::<u32, u32>::load(&stream, &good[..]).unwrap();
    assert_eq!(loaded.iter(&stream).unwrap().collect::<Vec<_>>(), [(1, 1), (2, 2), (3, 3), (5, 5), (7, 7)]);
    assert_eq!(saved(&stream, &loaded), good, "files are crafted as the dictionary writes them");

    let marked = |bits| Crafted { marks: Some(vec![bits]), ..level(0, &[1, 2, 3]) };
    let loaded = GpuLsm::<u32, u32>::load(&stream, &craft(4, 1, 2, &[marked(0b1111_1101)])[..]).unwrap();
    assert_eq!(loaded.iter(&stream).unwrap().collect::<Vec<_>>(), [(2, 2)], "marks beyond the end mean nothing");

    let contradictions = [
        craft(0, 1, 0, &[level(0, &[1])]),
        craft(1 << 32, 1, 0, &[level(0, &[1])]),
        craft(u64::MAX, 1, 0, &[level(0, &[1])]),
        craft(4, 0, 0, &[level(0, &[1])]),
        craft(4, 2, 0, &[level(0, &[1])]),
        craft(4, 3, 0, &[level(0, &[1])]),
        craft(4, 1, 0, &[]),
        craft(4, 1 << 32, 0, &[level(32, &[1])]),
        craft(4, 1, 0, &[level(u32::MAX, &[1])]),
        craft(4, 1, 0, &[level(0, &[])]),
        craft(4, 1, 0, &[level(0, &[1, 2, 3, 4, 5])]),
        craft(4, 0b11, 0, &[level(0, &[1]), level(1, &[1])]),
        craft(4, 0b1, 0, &[level(0, &[1]), level(0, &[1])]),
        craft(1 << 31, 0b1_0000, 0, &[Crafted { stated_len: Some(1 << 32), ..level(4, &[1]) }]),
    ];
    for (i, file) in contradictions.iter().enumerate() {
        assert_eq!(refused::<u32, u32>(&stream, file), "its header contradicts itself", "file {i}");
    }
    let unsorted = craft(4, 1, 0, &[level(0, &[1, 3, 2])]);
    assert_eq!(refused::<u32, u32>(&stream, &unsorted), "the keys of level 0: they are not sorted");
    for (stated, bits) in [(0, 1), (1, 0), (1, 0b11), (u64::MAX, 1)] {
        let what = refused::<u32, u32>(&stream, &craft(4, 1, stated, &[marked(bits)]));
        assert!(what.contains("tombstones"), "{what}");
    }
    // As many keys as there can be, and no byte of them: what is stated is not allocated.
    let lie = Crafted { stated_len: Some(u64::from(u32::MAX)), ..level(31, &[]) };
    assert_eq!(refused::<u32, u32>(&stream, &craft(1 << 31, 1 << 31, 0, &[lie])), "it ends too early");
    // Nor if the first section is there.
    let lie = Crafted { stated_len: Some(u64::from(u32::MAX)), ..level(31, &vec![5; 1 << 18]) };
    let file = craft(1 << 31, 1 << 31, 0, &[Crafted { values: Vec::new(), ..lie }]);
    assert_eq!(refused::<u32, u32>(&stream, &file), "it ends too early");
}

/// Arrays of many sections, for which the room grows; and an error in a late one.
pub fn long_arrays(device: &Device) {
    let stream = device.stream().unwrap();
    // 17 sections and a piece; fewer where every byte is accounted for.
    let len = if is_checked(device) { 5 << 17 } else { (17 << 18) + 1000 };
    let keys: Vec<u32> = (0..len).map(|i| 3 * i).collect();
    let mut both = Modelled::<u32, u32>::new(1 << 20);
    let batches = (u64::from(len) >> 20).max(1).next_power_of_two() << 1;
    let file = craft(1 << 20, batches, 0, &[level(batches.ilog2(), &keys)]);
    both.lsm = GpuLsm::load(&stream, &file[..]).unwrap();
    let mut level = both.lsm.levels();
    let (codes, values, _) = level.next().unwrap().1.parts().unwrap();
    assert!(codes.to_vec(&stream).unwrap() == keys && values.to_vec(&stream).unwrap() == keys);

    // The section before the last begins with a smaller key than the one before it ends with.
    let mut unsorted = keys;
    let at = (len as usize >> 18 << 18) - (1 << 18);
    unsorted[at - 1] = unsorted[at] + 1;
    let file = craft(1 << 20, batches, 0, &[self::level(batches.ilog2(), &unsorted)]);
    let what = refused::<u32, u32>(&stream, &file);
    assert!(what.ends_with("they are not sorted"), "{what}");
}

/// 31 levels: a mixed batch is more than one merge takes. And 32: another batch is one too many.
pub fn carries_through_all_slots(device: &Device) {
    let stream = device.stream().unwrap();
    let levels = |count: u32| (0..count).rev().map(|slot| level(slot, &[slot, 100 + slot])).collect::<Vec<_>>();
    let load = |count: u32| {
        let mut both = Modelled::<u32, u32>::new(2);
        let file = craft(2, (1 << count) - 1, 0, &levels(count));
        both.lsm = GpuLsm::load(&stream, &file[..]).unwrap();
        let keys: Vec<u32> = (0..count).chain(100..100 + count).collect();
        both.model_insert(&keys, &keys);
        both
    };
    let domain: Vec<u32> = (0..150).collect();
    let mut both = load(31);
    both.update(&stream, &[7], &[77], &[108]);
    both.check_all(&stream, &mut Random(1), &domain, "31 levels");
    assert_eq!((both.lsm.stats().batches, both.lsm.stats().levels), (1 << 31, 1));

    let mut both = load(32);
    both.check_all(&stream, &mut Random(2), &domain, "32 levels");
    let one = stream.upload(&[1u32]).unwrap();
    assert!(matches!(both.lsm.insert(&stream, &one, &one), Err(Error::TooLong { .. })));
    assert!(matches!(both.lsm.delete(&stream, &one), Err(Error::TooLong { .. })));
    both.check(&stream, &domain, "as before");
    both.lsm.cleanup(&stream).unwrap();
    both.update(&stream, &[7], &[77], &[108]);
    both.check_all(&stream, &mut Random(3), &domain, "cleaned up");
}

/// Reads or writes some bytes, and then fails.
struct Failing(usize);

impl Failing {
    fn take(&mut self, len: usize) -> io::Result<usize> {
        let len = len.min(self.0);
        self.0 -= len;
        if len == 0 { Err(io::Error::other("the disk is on fire")) } else { Ok(len) }
    }
}

impl Write for Failing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.take(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Read for Failing {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.take(bytes.len())
    }
}

pub fn failing_files(device: &Device) {
    let stream = device.stream().unwrap();
    let mut both = Modelled::<u32, u32>::new(4);
    both.insert(&stream, &[1, 2, 3, 4, 5], &[10, 20, 30, 40, 50]);
    let file = saved(&stream, &both.lsm);
    for len in 0..file.len() {
        assert!(matches!(both.lsm.save(&stream, Failing(len)), Err(Error::Io(_))), "{len} bytes written");
        let reader = file[..len].chain(Failing(0));
        assert!(matches!(GpuLsm::<u32, u32>::load(&stream, reader), Err(Error::Io(_))), "{len} bytes read");
    }
    both.lsm.save(&stream, Failing(file.len())).unwrap();
    both.check(&stream, &[0, 1, 2, 3, 4, 5], "after all that");
}
