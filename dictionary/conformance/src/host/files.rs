//! Saving and loading: a load returns exactly what was saved, or an error.

use super::model::{Family, Modelled, Random, Value, extremes};
use gpu_conformance::is_checked;
use gpu_dictionary::{Dictionary, Updatable, WordKey as Key};
use gpu_primitives::{Device, Error, Stream};
use std::fmt::Debug;
use std::io::{self, Read, Write};

/// Returns the file of a dictionary.
pub fn saved(stream: &Stream, dictionary: &impl Dictionary) -> Vec<u8> {
    let mut file = Vec::new();
    dictionary.save(stream, &mut file).unwrap();
    file
}

/// Saves a dictionary, loads it again, and compares.
pub fn round_trip<F: Family, K: Key + Debug, V: Value>(
    stream: &Stream,
    both: &mut Modelled<F, K, V>,
    domain: &[K],
    what: &str,
) {
    let file = saved(stream, &both.dictionary);
    let longer = [&file[..], b"more"].concat();
    let mut reader = &longer[..];
    let loaded = <F::Of<K, V>>::load(stream, &mut reader).unwrap();
    assert_eq!(reader, b"more", "{what}: bytes after the dictionary were read");
    let [before, after] = [&both.dictionary, &loaded].map(|dictionary| dictionary.stats(stream).unwrap());
    assert_eq!((before.resident, before.live), (after.resident, after.live), "{what}");
    assert!(saved(stream, &loaded) == file, "{what}: the file differs when saved again");
    both.dictionary = loaded;
    both.check_all(stream, &mut Random(3), domain, what);
}

/// Round trips of a growing dictionary: empty, after an insertion, after deletions, tidied up. It is updated after
/// each.
fn round_trips_of<F: Family, K: Key + Debug, V: Value>(stream: &Stream, keys: impl Iterator<Item = K>) {
    let domain: Vec<K> = keys.chain(extremes()).collect();
    let mut random = Random(11);
    let mut both = Modelled::<F, K, V>::new(stream, 40);
    round_trip(stream, &mut both, &domain, "empty");
    for step in 0..3 {
        let some = random.keys(&domain, 100);
        both.insert(stream, &some, &random.values(some.len()));
        if step > 0 {
            both.delete(stream, &random.keys(&domain, 50));
        }
        round_trip(stream, &mut both, &domain, &format!("step {step}"));
    }
    both.tidy(stream);
    round_trip(stream, &mut both, &domain, "tidied up");
}

pub fn round_trips<F: Family>(device: &Device) {
    let stream = device.stream().unwrap();
    round_trips_of::<F, u32, u32>(&stream, 0..100);
    if !is_checked(device) {
        round_trips_of::<F, f64, u64>(&stream, (-50..50).map(f64::from));
        round_trips_of::<F, i32, u32>(&stream, -50..50);
        round_trips_of::<F, u64, u32>(&stream, (0..100).map(|i| i << 50));
        round_trips_of::<F, i64, ()>(&stream, (-50..50).map(|i| i << 50));
    }
}

pub fn the_same_calls_give_the_same_file<F: Family>(device: &Device) {
    let (batch, most) = if is_checked(device) { (20, 50) } else { (1000, 3000) };
    let domain: Vec<u32> = (0..10_000).collect();
    let file = || {
        let stream = device.stream().unwrap();
        let mut random = Random(21);
        let mut dictionary = <F::Of<u32, u32> as Dictionary>::new(&stream, F::options(batch)).unwrap();
        for _ in 0..4 {
            let keys = random.keys(&domain, most);
            let insert = (&stream.upload(&keys).unwrap(), &stream.upload(&random.values(keys.len())).unwrap());
            dictionary.update(&stream, insert, &stream.upload(&random.keys(&domain, most)).unwrap()).unwrap();
        }
        saved(&stream, &dictionary)
    };
    let first = file();
    assert!(first.len() > 4 * most);
    for again in 0..if is_checked(device) { 1 } else { 3 } {
        assert!(file() == first, "run {again} differs");
    }
}

/// Returns the reason why a file cannot be loaded.
#[track_caller]
pub fn refused<D: Dictionary>(stream: &Stream, file: &[u8]) -> String {
    match D::load(stream, file) {
        Err(Error::InvalidFile { what, at }) => {
            assert!(at <= file.len() as u64, "{what}: byte {at} of {}", file.len());
            what
        }
        Err(error) => panic!("another error: {error}"),
        Ok(_) => panic!("the file was loaded"),
    }
}

pub fn damaged_files<F: Family>(device: &Device) {
    let stream = device.stream().unwrap();
    let mut both = Modelled::<F, u32, u32>::new(&stream, 4);
    let empty = saved(&stream, &both.dictionary);
    both.insert(&stream, &[1, 2, 3, 4, 5, 6, 7], &[10, 20, 30, 40, 50, 60, 70]);
    both.update(&stream, &[3, 8], &[31, 80], &[1, 9]);
    let mut file = saved(&stream, &both.dictionary);
    let refused_as_it_was = refused::<F::Of<u32, u32>>;
    for file in [&file, &empty] {
        for at in 0..file.len() {
            for flipped in [1, 0x80, 0xff] {
                let mut altered = file.clone();
                altered[at] ^= flipped;
                assert!(!refused_as_it_was(&stream, &altered).is_empty(), "byte {at}");
            }
            assert_eq!(refused_as_it_was(&stream, &file[..at]), "it ends too early", "{at} bytes");
        }
    }
    let last = file.len() - 1;
    file[last] ^= 1;
    assert!(refused_as_it_was(&stream, &file).starts_with("the checksum of the "));
    file[last] ^= 1;
    assert_eq!(refused::<F::Of<i32, u32>>(&stream, &file), "its keys are of type u32, but i32 was expected");
    assert_eq!(refused::<F::Of<f64, u64>>(&stream, &file), "its keys are of type u32, but f64 was expected");
    assert_eq!(refused::<F::Of<u32, u64>>(&stream, &file), "its values are of type u32, but u64 was expected");
    let nothing = "its values are of type u32, but plain data of 0 bytes was expected";
    assert_eq!(refused::<F::Of<u32, ()>>(&stream, &file), nothing);
    file[8] = 0;
    assert_eq!(refused_as_it_was(&stream, &file), "its format version is 0, but 2 was expected: it is too old");
    // The header of version 1 is shorter.
    file[8] = 1;
    assert!(!refused_as_it_was(&stream, &file).is_empty());
    file[8] = 3;
    let newer = "its format version is 3, but 2 was expected: a newer version of this library wrote it";
    assert_eq!(refused_as_it_was(&stream, &file), newer);
    file[8] = 2;
    let text = refused_as_it_was(&stream, b"a text and not a dictionary");
    assert!(text.starts_with("it does not hold a dictionary; a"), "{text}");
    // The error names the structure that the file holds.
    let magics: [&[u8; 8]; 3] = [b"gpu-lsm\n", b"gpu-arr\n", b"gpu-cuc\n"];
    for (magic, name) in magics.into_iter().zip(["an LSM", "a sorted array", "a cuckoo table"]) {
        if file[..8] != magic[..] {
            let what = refused_as_it_was(&stream, &[magic, &file[8..]].concat());
            assert!(what.starts_with(&format!("it holds {name}, but a")) && what.ends_with(" was expected"), "{what}");
        }
    }
}

/// Values of one type are not loaded as values of another type of the same size.
pub fn values_of_other_types<F: Family>(device: &Device) {
    let stream = device.stream().unwrap();
    let mut both = Modelled::<F, u32, u64>::new(&stream, 4);
    both.insert(&stream, &[1, 2], &[10, 20]);
    let file = saved(&stream, &both.dictionary);
    assert_eq!(refused::<F::Of<u32, f64>>(&stream, &file), "its values are of type u64, but f64 was expected");
    let pair = "its values are of type u64, but plain data of 8 bytes was expected";
    assert_eq!(refused::<F::Of<u32, [u32; 2]>>(&stream, &file), pair);
    round_trip(&stream, &mut both, &[1, 2, 3], "the same type");

    let mut both = Modelled::<F, u32, [u32; 2]>::new(&stream, 4);
    both.insert(&stream, &[1, 2], &[[10, 11], [20, 21]]);
    round_trip(&stream, &mut both, &[1, 2, 3], "plain data");
}

/// A reader and writer that fails after some bytes.
#[derive(Debug)]
pub struct Failing(pub usize);

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

pub fn failing_files<F: Family>(device: &Device) {
    let stream = device.stream().unwrap();
    let mut both = Modelled::<F, u32, u32>::new(&stream, 4);
    both.insert(&stream, &[1, 2, 3, 4, 5], &[10, 20, 30, 40, 50]);
    let file = saved(&stream, &both.dictionary);
    for len in 0..file.len() {
        assert!(matches!(both.dictionary.save(&stream, Failing(len)), Err(Error::Io(_))), "{len} bytes written");
        let reader = file[..len].chain(Failing(0));
        assert!(matches!(<F::Of<u32, u32>>::load(&stream, reader), Err(Error::Io(_))), "{len} bytes read");
    }
    both.dictionary.save(&stream, Failing(file.len())).unwrap();
    both.check(&stream, &[0, 1, 2, 3, 4, 5], "after the errors");
}
