//! Crafted files.

use gpu_dictionary::file::write_section;
use gpu_dictionary_conformance::{refused, saved};
use gpu_primitives::Device;
use gpu_sorted_array::{GpuSortedArray, Parts};

type Array = GpuSortedArray<u32, u32>;

/// Creates a file with correct checksums.
fn craft(stated_len: u64, keys: &[u32], values: &[u32]) -> Vec<u8> {
    let mut file = Vec::new();
    let header = [&b"gpu-arr\n\x02\0\0\0\x01\x04\x01\x04"[..], &stated_len.to_le_bytes()].concat();
    write_section(&mut file, &header).unwrap();
    for array in [keys, values] {
        for part in array.chunks(1 << 18) {
            write_section(&mut file, bytemuck::cast_slice(part)).unwrap();
        }
    }
    file
}

/// Files of version 1 still load. Their header states the size of the values, but not their type.
pub fn files_of_version_1(device: &Device) {
    let stream = device.stream().unwrap();
    let mut file = Vec::new();
    write_section(&mut file, b"gpu-arr\n\x01\0\0\0\x01\x04\x04\x03\0\0\0\0\0\0\0").unwrap();
    for array in [[1u32, 5, 7], [10, 50, 70]] {
        write_section(&mut file, bytemuck::cast_slice(&array)).unwrap();
    }
    let loaded = Array::load(&stream, &file[..]).unwrap();
    assert_eq!(saved(&stream, &loaded), craft(3, &[1, 5, 7], &[10, 50, 70]), "it is saved as version 2");
    let wide = refused::<GpuSortedArray<u32, u64>>(&stream, &file);
    assert_eq!(wide, "its values have 4 bytes, but 8 were expected");
}

/// Files with correct checksums and wrong contents.
pub fn crafted_files(device: &Device) {
    let stream = device.stream().unwrap();
    let good = craft(3, &[1, 5, 7], &[10, 50, 70]);
    let loaded = Array::load(&stream, &good[..]).unwrap();
    assert_eq!(loaded.iter(&stream).unwrap().collect::<Vec<_>>(), [(1, 10), (5, 50), (7, 70)]);
    assert_eq!(saved(&stream, &loaded), good, "a crafted file differs from one that the array writes");

    for keys in [[1, 3, 2], [1, 2, 2]] {
        assert_eq!(refused::<Array>(&stream, &craft(3, &keys, &keys)), "the keys: they do not ascend");
    }
    for len in [1 << 32, u64::MAX] {
        let what = refused::<Array>(&stream, &craft(len, &[], &[]));
        assert_eq!(what, format!("it has {len} elements, but an array has less than 2^32"));
    }
    for stated in [0, 1, 2] {
        // Shorter sections, with a stated length that matches.
        let shorter = craft(stated, &[1, 5, 7][..stated as usize], &[10, 50, 70][..stated as usize]);
        assert_eq!(Array::load(&stream, &shorter[..]).unwrap().len(&stream).unwrap(), stated as usize);
    }
    assert_eq!(refused::<Array>(&stream, &craft(2, &[1, 5, 7], &[1, 5])), "the checksum of the keys is wrong");
    // The header states the maximum number of keys, but there are none or one section: the stated size must not be
    // allocated.
    let keys: Vec<u32> = (0..1 << 18).collect();
    for keys in [&[], &keys[..]] {
        assert_eq!(refused::<Array>(&stream, &craft(u64::from(u32::MAX), keys, &[])), "it ends too early");
    }
}

/// Arrays of many sections, for which the buffer grows; and an error in a late section.
pub fn long_arrays(device: &Device) {
    let stream = device.stream().unwrap();
    // 17 sections and a part.
    let len = (17 << 18) + 1000;
    let mut keys: Vec<u32> = (0..len).map(|i| 3 * i).collect();
    let loaded = Array::load(&stream, &craft(u64::from(len), &keys, &keys)[..]).unwrap();
    let Parts { codes, values, .. } = loaded.level().unwrap().parts();
    assert!(codes.to_vec(&stream).unwrap() == keys && values.to_vec(&stream).unwrap() == keys);

    // The last section but one begins with the last key of the section before it.
    let at = (len as usize >> 18 << 18) - (1 << 18);
    keys[at - 1] = keys[at];
    assert_eq!(refused::<Array>(&stream, &craft(u64::from(len), &keys, &keys)), "the keys: they do not ascend");
}
