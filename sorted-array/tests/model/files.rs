//! Files as someone may write them.

use gpu_conformance::dictionary::{refused, saved};
use gpu_conformance::is_checked;
use gpu_primitives::Device;
use gpu_primitives::dictionary::file::write_section;
use gpu_sorted_array::GpuSortedArray;

type Array = GpuSortedArray<u32, u32>;

/// A file with right checksums.
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

/// Checksums are right, and the rest is not.
pub fn crafted_files(device: &Device) {
    let stream = device.stream().unwrap();
    let good = craft(3, &[1, 5, 7], &[10, 50, 70]);
    let loaded = Array::load(&stream, &good[..]).unwrap();
    assert_eq!(loaded.iter(&stream).unwrap().collect::<Vec<_>>(), [(1, 10), (5, 50), (7, 70)]);
    assert_eq!(saved(&stream, &loaded), good, "files are crafted as the array writes them");

    for keys in [[1, 3, 2], [1, 2, 2]] {
        assert_eq!(refused::<Array>(&stream, &craft(3, &keys, &keys)), "the keys: they do not ascend");
    }
    for len in [1 << 32, u64::MAX] {
        let what = refused::<Array>(&stream, &craft(len, &[], &[]));
        assert_eq!(what, format!("it has {len} elements, and an array has less than 2^32"));
    }
    for stated in [0, 1, 2] {
        // Cut where the sections say that they end.
        let shorter = craft(stated, &[1, 5, 7][..stated as usize], &[10, 50, 70][..stated as usize]);
        assert_eq!(Array::load(&stream, &shorter[..]).unwrap().len(), stated as usize);
    }
    assert_eq!(refused::<Array>(&stream, &craft(2, &[1, 5, 7], &[1, 5])), "the checksum of the keys is wrong");
    // As many keys as there can be, and no byte of them or one section: what is stated is not allocated.
    let keys: Vec<u32> = (0..1 << 18).collect();
    for keys in [&[], &keys[..]] {
        assert_eq!(refused::<Array>(&stream, &craft(u64::from(u32::MAX), keys, &[])), "it ends too early");
    }
}

/// Arrays of many sections, for which the room grows; and an error in a late one.
pub fn long_arrays(device: &Device) {
    let stream = device.stream().unwrap();
    // 17 sections and a piece; fewer where every byte is accounted for.
    let len = if is_checked(device) { 5 << 17 } else { (17 << 18) + 1000 };
    let mut keys: Vec<u32> = (0..len).map(|i| 3 * i).collect();
    let loaded = Array::load(&stream, &craft(u64::from(len), &keys, &keys)[..]).unwrap();
    let (codes, values, _) = loaded.level().unwrap().parts().unwrap();
    assert!(codes.to_vec(&stream).unwrap() == keys && values.to_vec(&stream).unwrap() == keys);

    // The section before the last begins with the key that the one before it ends with.
    let at = (len as usize >> 18 << 18) - (1 << 18);
    keys[at - 1] = keys[at];
    assert_eq!(refused::<Array>(&stream, &craft(u64::from(len), &keys, &keys)), "the keys: they do not ascend");
}
