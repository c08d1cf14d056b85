//! Files with valid checksums and invalid contents.

use gpu_cuckoo::{GpuCuckoo, Options, WhenFull};
use gpu_dictionary::file::write_section;
use gpu_dictionary_conformance::{refused, saved};
use gpu_primitives::Device;

type Table = GpuCuckoo<u32, u32>;

/// The table's own fields of the header.
#[derive(Clone, Copy)]
struct Header {
    load_factor: f64,
    seed: u64,
    /// Hash functions, bucket width, reseeds, evictions, whether it refuses.
    numbers: [u32; 5],
    len: u64,
}

const GOOD: Header = Header { load_factor: 0.9, seed: 7, numbers: [3, 4, 2, 100, 1], len: 3 };

/// Makes a file with valid checksums.
fn craft(header: Header, keys: &[u32], values: &[u32]) -> Vec<u8> {
    let mut bytes = b"gpu-cuc\n\x02\0\0\0\x01\x04\x01\x04".to_vec();
    bytes.extend(header.load_factor.to_le_bytes());
    bytes.extend(header.seed.to_le_bytes());
    bytes.extend(header.numbers.map(u32::to_le_bytes).concat());
    bytes.extend(header.len.to_le_bytes());
    let mut file = Vec::new();
    write_section(&mut file, &bytes).unwrap();
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
    let mut bytes = b"gpu-cuc\n\x01\0\0\0\x01\x04\x04".to_vec();
    bytes.extend(GOOD.load_factor.to_le_bytes());
    bytes.extend(GOOD.seed.to_le_bytes());
    bytes.extend(GOOD.numbers.map(u32::to_le_bytes).concat());
    bytes.extend(GOOD.len.to_le_bytes());
    let mut file = Vec::new();
    write_section(&mut file, &bytes).unwrap();
    for array in [[1u32, 5, 7], [10, 50, 70]] {
        write_section(&mut file, bytemuck::cast_slice(&array)).unwrap();
    }
    let loaded = Table::load(&stream, &file[..]).unwrap();
    assert_eq!(saved(&stream, &loaded), craft(GOOD, &[1, 5, 7], &[10, 50, 70]), "it is saved as version 2");
    let wide = refused::<GpuCuckoo<u32, u64>>(&stream, &file);
    assert_eq!(wide, "its values have 4 bytes, but 8 were expected");
}

/// The checksums are valid, the rest is not.
pub fn crafted_files(device: &Device) {
    let stream = device.stream().unwrap();
    let (keys, values) = ([1, 5, 7], [10, 50, 70]);
    let good = craft(GOOD, &keys, &values);
    let loaded = Table::load(&stream, &good[..]).unwrap();
    assert_eq!(loaded.export(&stream).unwrap().to_vec(&stream).unwrap(), [(1, 10), (5, 50), (7, 70)]);
    assert_eq!(saved(&stream, &loaded), good, "files are crafted as the table writes them");
    let options = Options::new().load_factor(0.9).seed(7).hashes(3).bucket_width(4).reseeds(2).evictions(100);
    let on_device = (stream.upload(&keys).unwrap(), stream.upload(&values).unwrap());
    let options = options.capacity(1000).when_full(WhenFull::Refuse);
    let built = Table::bulk_build(&stream, (&on_device.0, &on_device.1), options).unwrap();
    assert_eq!(saved(&stream, &built), good, "all options but the capacity are in the file");

    for keys in [[1, 3, 2], [1, 2, 2]] {
        assert_eq!(refused::<Table>(&stream, &craft(GOOD, &keys, &values)), "the keys: they do not ascend");
    }
    for load_factor in [0.0, 1e-9, -1.0, 0.96, f64::NAN, f64::INFINITY] {
        let what = refused::<Table>(&stream, &craft(Header { load_factor, ..GOOD }, &keys, &values));
        assert!(what.starts_with("the load factor is "), "{what}");
    }
    for (at, number) in [
        (0, 1),
        (0, 5),
        (0, u32::MAX),
        (1, 0),
        (1, 5),
        (1, u32::MAX),
        (2, 1025),
        (2, u32::MAX),
        (3, 65_537),
        (3, u32::MAX),
    ] {
        let mut header = GOOD;
        header.numbers[at] = number;
        let what = refused::<Table>(&stream, &craft(header, &keys, &values));
        assert!(what.contains("but it must be"), "{what}");
    }
    // The file does not decide how long the build tries.
    let patient = Header { numbers: [2, 8, 1024, 65_536, 0], seed: u64::MAX, ..GOOD };
    assert_eq!(Table::load(&stream, &craft(patient, &keys, &values)[..]).unwrap().len(&stream).unwrap(), 3);

    for len in [u64::from(u32::MAX), u64::MAX] {
        let what = refused::<Table>(&stream, &craft(Header { len, ..GOOD }, &keys, &values));
        assert_eq!(what, format!("it states {len} keys, but a table has at most 4294967294"));
    }
    // The header states the most keys there can be, but there are none, or one section: the rest is not allocated.
    let many: Vec<u32> = (0..1 << 18).collect();
    let lie = Header { len: u64::from(u32::MAX) - 1, ..GOOD };
    for keys in [&[], &many[..]] {
        let what = refused::<Table>(&stream, &craft(lie, keys, &[]));
        assert!(what.starts_with("it ends too early"), "{what}");
    }
}
