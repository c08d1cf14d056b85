//! Crafted files.

use crate::levels::Modelled;
use gpu_dictionary::file::write_section;
use gpu_dictionary_conformance::{Random, refused, saved};
use gpu_lsm::{GpuLsm, Parts};
use gpu_primitives::{Device, Error};

/// A level of a crafted file.
struct Crafted {
    slot: u32,
    /// The length in the header; `None` for the number of keys.
    stated_len: Option<u64>,
    keys: Vec<u32>,
    values: Vec<u32>,
    marks: Option<Vec<u32>>,
}

fn level(slot: u32, keys: &[u32]) -> Crafted {
    Crafted { slot, stated_len: None, keys: keys.to_vec(), values: keys.to_vec(), marks: None }
}

/// Creates a file with correct checksums.
fn craft(batch_size: u64, batches: u64, tombstones: u64, levels: &[Crafted]) -> Vec<u8> {
    let mut header = b"gpu-lsm\n\x02\0\0\0\x01\x04\x01\x04".to_vec();
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

/// Files with correct checksums and wrong contents.
pub fn crafted_files(device: &Device) {
    let stream = device.stream().unwrap();
    let good = craft(4, 0b101, 0, &[level(2, &[1, 2, 3, 3, 5]), level(0, &[2, 7])]);
    let loaded = GpuLsm::<u32, u32>::load(&stream, &good[..]).unwrap();
    assert_eq!(loaded.iter(&stream).unwrap().collect::<Vec<_>>(), [(1, 1), (2, 2), (3, 3), (5, 5), (7, 7)]);
    assert_eq!(saved(&stream, &loaded), good, "a crafted file differs from one that the dictionary writes");

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
        assert_eq!(refused::<GpuLsm<u32, u32>>(&stream, file), "its header contradicts itself", "file {i}");
    }
    let unsorted = craft(4, 1, 0, &[level(0, &[1, 3, 2])]);
    assert_eq!(refused::<GpuLsm<u32, u32>>(&stream, &unsorted), "the keys of level 0: they are not sorted");
    for (stated, bits) in [(0, 1), (1, 0), (1, 0b11), (u64::MAX, 1)] {
        let what = refused::<GpuLsm<u32, u32>>(&stream, &craft(4, 1, stated, &[marked(bits)]));
        assert!(what.contains("tombstones"), "{what}");
    }
    // The header states the maximum number of keys, but there are none: the stated size must not be allocated.
    let lie = Crafted { stated_len: Some(u64::from(u32::MAX)), ..level(31, &[]) };
    assert_eq!(refused::<GpuLsm<u32, u32>>(&stream, &craft(1 << 31, 1 << 31, 0, &[lie])), "it ends too early");
    // The same with the first section present.
    let lie = Crafted { stated_len: Some(u64::from(u32::MAX)), ..level(31, &vec![5; 1 << 18]) };
    let file = craft(1 << 31, 1 << 31, 0, &[Crafted { values: Vec::new(), ..lie }]);
    assert_eq!(refused::<GpuLsm<u32, u32>>(&stream, &file), "it ends too early");
}

/// Files of version 1 still load. Their header states the size of the values, but not their type.
pub fn files_of_version_1(device: &Device) {
    let stream = device.stream().unwrap();
    // Keys of type i32 and values of 4 bytes. Two levels, batches of 4; there are 2 + 1 batches and one tombstone.
    let mut header = b"gpu-lsm\n\x01\0\0\0\x03\x04\x04\x02".to_vec();
    header.extend([4u64, 0b11, 1].map(u64::to_le_bytes).concat());
    // The slot, whether there are marks, and the length, of 8 bytes.
    header.extend([[1u32, 0, 5, 0], [0, 1, 2, 0]].concat().into_iter().flat_map(u32::to_le_bytes));
    let code = |key: i32| key.cast_unsigned() ^ 1 << 31;
    let mut file = Vec::new();
    write_section(&mut file, &header).unwrap();
    for array in [&[-7, -1, 0, 3, 3].map(code)[..], &[70, 10, 0, 30, 31], &[-1, 9].map(code), &[0, 90], &[0b01]] {
        write_section(&mut file, bytemuck::cast_slice(array)).unwrap();
    }
    let loaded = GpuLsm::<i32, u32>::load(&stream, &file[..]).unwrap();
    assert_eq!(loaded.iter(&stream).unwrap().collect::<Vec<_>>(), [(-7, 70), (0, 0), (3, 31), (9, 90)]);
    assert_eq!((loaded.stats(&stream).unwrap().batches, loaded.stats(&stream).unwrap().tombstones), (3, 1));
    // It is saved as version 2, which states the type.
    let again = saved(&stream, &loaded);
    assert_eq!((again[8], again.len()), (2, file.len() + 1));
    assert_eq!(refused::<GpuLsm<i32, f32>>(&stream, &again), "its values are of type u32, but f32 was expected");
    // Any type of that size will do; other sizes, other keys and damages will not.
    let loaded = GpuLsm::<i32, f32>::load(&stream, &file[..]).unwrap();
    assert_eq!(loaded.iter(&stream).unwrap().next().unwrap(), (-7, f32::from_bits(70)));
    assert_eq!(refused::<GpuLsm<i32, u64>>(&stream, &file), "its values have 4 bytes, but 8 were expected");
    assert_eq!(refused::<GpuLsm<i32, ()>>(&stream, &file), "its values have 4 bytes, but 0 were expected");
    assert_eq!(refused::<GpuLsm<u32, u32>>(&stream, &file), "its keys are of type i32, but u32 was expected");
    for at in 0..file.len() {
        let mut altered = file.clone();
        altered[at] ^= 1;
        assert!(!refused::<GpuLsm<i32, u32>>(&stream, &altered).is_empty(), "byte {at}");
        assert_eq!(refused::<GpuLsm<i32, u32>>(&stream, &file[..at]), "it ends too early", "{at} bytes");
    }
}

/// Arrays of many sections, for which the buffer grows; and an error in a late section.
pub fn long_arrays(device: &Device) {
    let stream = device.stream().unwrap();
    // 17 sections and a part.
    let len = (17 << 18) + 1000;
    let keys: Vec<u32> = (0..len).map(|i| 3 * i).collect();
    let mut both = Modelled::<u32, u32>::new(&stream, 1 << 20);
    let batches = (u64::from(len) >> 20).max(1).next_power_of_two() << 1;
    let file = craft(1 << 20, batches, 0, &[level(batches.ilog2(), &keys)]);
    both.dictionary = GpuLsm::load(&stream, &file[..]).unwrap();
    let mut level = both.dictionary.levels(&stream).unwrap();
    let Parts { codes, values, .. } = level.next().unwrap().1.parts();
    assert!(codes.to_vec(&stream).unwrap() == keys && values.to_vec(&stream).unwrap() == keys);

    // The last section but one begins with a smaller key than the last key of the section before it.
    let mut unsorted = keys;
    let at = (len as usize >> 18 << 18) - (1 << 18);
    unsorted[at - 1] = unsorted[at] + 1;
    let file = craft(1 << 20, batches, 0, &[self::level(batches.ilog2(), &unsorted)]);
    let what = refused::<GpuLsm<u32, u32>>(&stream, &file);
    assert!(what.ends_with("they are not sorted"), "{what}");
}

/// 31 levels: a mixed batch needs more than one merge. 32 levels: another batch is one too many.
pub fn carries_through_all_slots(device: &Device) {
    let stream = device.stream().unwrap();
    let levels = |count: u32| (0..count).rev().map(|slot| level(slot, &[slot, 100 + slot])).collect::<Vec<_>>();
    let load = |count: u32| {
        let mut both = Modelled::<u32, u32>::new(&stream, 2);
        let file = craft(2, (1 << count) - 1, 0, &levels(count));
        both.dictionary = GpuLsm::load(&stream, &file[..]).unwrap();
        let keys: Vec<u32> = (0..count).chain(100..100 + count).collect();
        both.model_insert(&keys, &keys);
        both
    };
    let domain: Vec<u32> = (0..150).collect();
    let mut both = load(31);
    both.update(&stream, &[7], &[77], &[108]);
    assert_eq!(both.dictionary.stats(&stream).unwrap().buffered, 2);
    both.check_all(&stream, &mut Random(1), &domain, "31 levels");
    assert_eq!(
        (both.dictionary.stats(&stream).unwrap().batches, both.dictionary.stats(&stream).unwrap().levels),
        (1 << 31, 1)
    );

    let mut both = load(32);
    both.check_all(&stream, &mut Random(2), &domain, "32 levels");
    let one = stream.upload(&[1u32]).unwrap();
    assert!(matches!(both.dictionary.insert(&stream, (&one, &one)), Err(Error::TooLong { .. })));
    assert!(matches!(both.dictionary.delete(&stream, &one), Err(Error::TooLong { .. })));
    both.check(&stream, &domain, "unchanged");
    both.dictionary.cleanup(&stream).unwrap();
    both.update(&stream, &[7], &[77], &[108]);
    both.check_all(&stream, &mut Random(3), &domain, "cleaned up");
}

/// Carries through one and two levels: with so many elements that they are merged in tiles, with so few that each
/// element searches for its own position (the second size, two levels), and with the batch in one chunk or several. The
/// old elements are kept in order, and the batch overrides them. Of equal keys in different chunks, the last one wins.
pub fn carries(device: &Device) {
    let stream = device.stream().unwrap();
    for (batch, inserted) in [(1u32 << 17, 5), (1 << 16, 5), (1 << 14, 5), (1 << 14, 1 << 14)] {
        let old: Vec<u32> = (0..2 * batch).map(|i| 2 * i).collect();
        let recent: Vec<u32> = (0..batch).map(|i| 4 * i).collect();
        let keys: Vec<u32> = [8, 1, 3 * batch, u32::MAX, 8].into_iter().cycle().take(inserted).collect();
        let values: Vec<u32> = (5..).take(inserted).collect();
        for (batches, levels) in [(1, vec![level(0, &recent)]), (3, vec![level(1, &old), level(0, &recent)])] {
            let file = craft(batch.into(), batches, 0, &levels);
            let mut both = Modelled::<u32, u32>::new(&stream, batch as usize);
            both.dictionary = GpuLsm::load(&stream, &file[..]).unwrap();
            for level in &levels {
                both.model_insert(&level.keys, &level.values);
            }
            both.insert(&stream, &keys, &values);
            both.dictionary.flush(&stream).unwrap();
            assert_eq!(both.dictionary.stats(&stream).unwrap().levels, 1);
            both.check(&stream, &[0, 1, 2, 4, 8, 12, 3 * batch, 4 * batch - 4, 4 * batch, u32::MAX], "after the carry");
            let mut merged = both.dictionary.levels(&stream).unwrap();
            let codes = merged.next().unwrap().1.parts().codes.to_vec(&stream).unwrap();
            let mut expected: Vec<u32> = levels.iter().flat_map(|level| &level.keys).copied().collect();
            expected.extend(&keys);
            expected.sort_unstable();
            assert!(codes == expected, "elements are missing or out of order");
        }
    }
}
