//! Checkpoints of all dictionaries of one device: the same tests for each, and folders of one dictionary that another one reads.

use bytemuck::Zeroable;
use gpu_cuckoo::{GpuCuckoo, PlainCuckoo};
use gpu_dictionary::{Durable, LargeValues, Updatable};
use gpu_dictionary_conformance::{OwnFolder, checkpoint_crashes, checkpoint_damage, checkpoint_history};
use gpu_lsm::{GpuLsm, GpuMultimap};
use gpu_primitives::{Device, Error, Stream};
use gpu_sorted_array::GpuSortedArray;
use std::fmt::Debug;
use std::io::ErrorKind;
use std::path::Path;

type Lsm = GpuLsm<u32, u32>;
type SortedArray = GpuSortedArray<u32, u32>;
type Cuckoo = GpuCuckoo<u32, u64>;
type Plain = PlainCuckoo<u32, [u8; 3]>;
type LargeLsm = LargeValues<GpuLsm<u32, u32>, [u32; 3]>;
type LargeArray = LargeValues<GpuSortedArray<u32, u32>, [u32; 3]>;
type LargeCuckoo = LargeValues<GpuCuckoo<u32, u32>, [u32; 3]>;

fn lsm() -> gpu_lsm::Options {
    gpu_lsm::Options::new().batch_size(8)
}

fn array() -> gpu_sorted_array::Options {
    gpu_sorted_array::Options::new()
}

fn cuckoo() -> gpu_cuckoo::Options {
    gpu_cuckoo::Options::new().seed(1)
}

fn word(number: u64) -> u32 {
    number as u32
}

fn large(number: u64) -> [u32; 3] {
    [number as u32, (number >> 32) as u32, 7]
}

fn bytes(number: u64) -> [u8; 3] {
    [number as u8, (number >> 8) as u8, 7]
}

#[test]
fn histories() {
    checkpoint_history::<Lsm>(&lsm(), word);
    checkpoint_history::<SortedArray>(&array(), word);
    checkpoint_history::<Cuckoo>(&cuckoo(), |number| number);
    checkpoint_history::<Plain>(&cuckoo(), bytes);
    checkpoint_history::<LargeLsm>(&lsm(), large);
    checkpoint_history::<LargeArray>(&array(), large);
    checkpoint_history::<LargeCuckoo>(&cuckoo(), large);
}

#[test]
fn crashes_of_an_lsm() {
    checkpoint_crashes::<Lsm>(&lsm(), word);
}

#[test]
fn crashes_of_a_sorted_array() {
    checkpoint_crashes::<SortedArray>(&array(), word);
}

#[test]
fn crashes_of_a_cuckoo_table() {
    checkpoint_crashes::<Cuckoo>(&cuckoo(), |number| number);
}

#[test]
fn crashes_of_a_table_of_plain_keys() {
    checkpoint_crashes::<Plain>(&cuckoo(), bytes);
}

#[test]
fn crashes_of_large_values() {
    checkpoint_crashes::<LargeLsm>(&lsm(), large);
}

#[test]
fn damage() {
    checkpoint_damage::<Lsm>(&lsm(), word);
    checkpoint_damage::<SortedArray>(&array(), word);
    checkpoint_damage::<Cuckoo>(&cuckoo(), |number| number);
    checkpoint_damage::<Plain>(&cuckoo(), bytes);
    checkpoint_damage::<LargeLsm>(&lsm(), large);
}

/// Writes a checkpoint of a dictionary of one key.
fn write<D: Durable + Updatable>(stream: &Stream, folder: &Path) {
    let mut dictionary = D::new(stream, D::Options::default()).unwrap();
    let (key, value) = (stream.upload(&[D::Key::zeroed()]).unwrap(), stream.upload(&[D::Value::zeroed()]).unwrap());
    dictionary.insert(stream, (&key, &value)).unwrap();
    dictionary.checkpoint(stream, folder).unwrap();
}

/// Checks that a dictionary is told what is in a folder, and may neither start anew there nor replace what is there.
#[track_caller]
fn refused<D: Durable + Debug>(stream: &Stream, folder: &Path, expected: &str) {
    for found in [D::recover(stream, folder), D::recover_or_new(stream, folder, D::Options::default())] {
        match found {
            Err(Error::InvalidFile { what, .. }) => {
                assert!(what.contains(expected) && what.contains("use another one"), "{what}");
            }
            other => panic!("expected an invalid file: {other:?}"),
        }
    }
    match D::new(stream, D::Options::default()).unwrap().checkpoint(stream, folder) {
        Err(Error::InvalidFile { what, .. }) => assert!(what.contains(expected), "{what}"),
        Err(Error::Io(error)) => assert_eq!(error.kind(), ErrorKind::AlreadyExists, "{error}"),
        other => panic!("expected an error: {other:?}"),
    }
}

#[test]
fn folders_of_other_dictionaries() {
    let stream = &Device::cpu().stream().unwrap();
    let folders: Vec<OwnFolder> = (0..4).map(|_| OwnFolder::new()).collect();
    let [of_lsm, of_array, of_cuckoo, of_large] = [0, 1, 2, 3].map(|folder: usize| folders[folder].path());
    write::<Lsm>(stream, of_lsm);
    write::<SortedArray>(stream, of_array);
    write::<Cuckoo>(stream, of_cuckoo);
    write::<LargeArray>(stream, of_large);
    // Another structure.
    refused::<Lsm>(
        stream,
        of_array,
        "the manifest of a checkpoint in one part, but the manifest of a checkpoint of an LSM",
    );
    refused::<SortedArray>(stream, of_lsm, "the manifest of a checkpoint of an LSM");
    refused::<GpuCuckoo<u32, u32>>(stream, of_array, "it holds a sorted array, but a cuckoo table was expected");
    refused::<LargeValues<GpuSortedArray<u32, u32>, u32>>(
        stream,
        of_array,
        "a dictionary of large values was expected",
    );
    refused::<LargeCuckoo>(stream, of_large, "it holds a sorted array, but a cuckoo table was expected");
    // Other keys, and other values.
    refused::<GpuLsm<i32, u32>>(stream, of_lsm, "its keys are of type u32, but i32 was expected");
    refused::<GpuSortedArray<u32, f32>>(stream, of_array, "its values are of type u32, but f32 was expected");
    refused::<GpuCuckoo<u64, u64>>(stream, of_cuckoo, "its keys are of type u32, but u64 was expected");
    refused::<LargeValues<GpuSortedArray<u32, u32>, [u32; 4]>>(stream, of_large, "plain data of 12 bytes");
    // A multimap has levels, too.
    for found in [
        GpuMultimap::<u32, u32>::recover(stream, of_lsm),
        GpuMultimap::<u32, u32>::recover_or_new(stream, of_lsm, gpu_lsm::Options::new()),
    ] {
        assert!(matches!(&found, Err(Error::InvalidFile { what, .. }) if what.contains("an LSM, but")), "{found:?}");
    }
    // All of them are as they were.
    assert_eq!(Lsm::recover(stream, of_lsm).unwrap().len(stream).unwrap(), 1);
    assert_eq!(SortedArray::recover(stream, of_array).unwrap().len(stream).unwrap(), 1);
    assert_eq!(Cuckoo::recover(stream, of_cuckoo).unwrap().len(stream).unwrap(), 1);
    assert_eq!(LargeArray::recover(stream, of_large).unwrap().len(stream).unwrap(), 1);
}

/// What a checkpoint does not hold comes from the options.
#[test]
fn options_are_adopted() {
    let stream = &Device::cpu().stream().unwrap();
    let folders: Vec<OwnFolder> = (0..3).map(|_| OwnFolder::new()).collect();
    let [of_array, of_cuckoo, of_large] = [0, 1, 2].map(|folder: usize| folders[folder].path());
    write::<SortedArray>(stream, of_array);
    let few = array().keys_per_bucket(4);
    let recovered = SortedArray::recover_or_new(stream, of_array, few).unwrap();
    assert_eq!((recovered.options(), recovered.len(stream).unwrap()), (few, 1));
    // A table has its own.
    let mut table = Cuckoo::recover_or_new(stream, of_cuckoo, cuckoo().load_factor(0.5)).unwrap();
    table.insert(stream, (&stream.upload(&[1]).unwrap(), &stream.upload(&[10]).unwrap())).unwrap();
    table.checkpoint(stream, of_cuckoo).unwrap();
    let recovered = Cuckoo::recover_or_new(stream, of_cuckoo, cuckoo().load_factor(0.8)).unwrap();
    assert!(format!("{:?}", recovered.options()).contains("load_factor: 0.5"), "{:?}", recovered.options());
    // Large values pass them on.
    write::<LargeLsm>(stream, of_large);
    let policy = gpu_lsm::CleanupPolicy::new().max_levels(3);
    let recovered = LargeLsm::recover_or_new(stream, of_large, lsm().cleanup_policy(policy)).unwrap();
    assert_eq!(recovered.indices().cleanup_policy(), Some(policy));
}

/// A table of plain keys is the same table after it was compacted or built anew, so it may replace its checkpoint. Keys of the same
/// size are told apart.
#[test]
fn tables_of_plain_keys() {
    let stream = &Device::cpu().stream().unwrap();
    let folder = OwnFolder::new();
    let mut table = Plain::new(stream, cuckoo()).unwrap();
    for round in 0..6u32 {
        let keys: Vec<u32> = (0..40).map(|i| i + 30 * round).collect();
        let values: Vec<[u8; 3]> = keys.iter().map(|&key| bytes(key.into())).collect();
        table.insert(stream, (&stream.upload(&keys).unwrap(), &stream.upload(&values).unwrap())).unwrap();
        table.delete(stream, &stream.upload(&keys[..25]).unwrap()).unwrap();
        if round % 2 == 0 {
            table.compact(stream).unwrap();
        }
        table.checkpoint(stream, folder.path()).unwrap();
        let recovered = Plain::recover(stream, folder.path()).unwrap();
        assert!(recovered.iter(stream).unwrap().eq(table.iter(stream).unwrap()), "round {round}");
    }
    refused::<PlainCuckoo<i32, [u8; 3]>>(stream, folder.path(), "its keys are of type u32, but i32 was expected");
    refused::<GpuCuckoo<u32, u32>>(stream, folder.path(), "values");
    // A copy is another table.
    let copy = table.try_clone(stream).unwrap();
    let refused = copy.checkpoint(stream, folder.path());
    assert!(matches!(refused, Err(Error::Io(error)) if error.kind() == ErrorKind::AlreadyExists));
    // It keeps its own options.
    let recovered = Plain::recover_or_new(stream, folder.path(), cuckoo().load_factor(0.3)).unwrap();
    assert_eq!(format!("{:?}", recovered.options()), format!("{:?}", table.options()));
}

/// A snapshot's checkpoint is one of the array. If snapshots are written out of order, the newest one stays.
#[test]
fn snapshots_of_sorted_arrays() {
    let stream = &Device::cpu().stream().unwrap();
    let folder = OwnFolder::new();
    let mut array = SortedArray::default();
    let insert = |array: &mut SortedArray, key: u32| {
        let key = stream.upload(&[key]).unwrap();
        array.insert(stream, (&key, &key)).unwrap();
    };
    insert(&mut array, 1);
    let one = array.snapshot();
    insert(&mut array, 2);
    one.checkpoint(stream, folder.path()).unwrap();
    let two = array.snapshot();
    array.checkpoint(stream, folder.path()).unwrap();
    two.checkpoint(stream, folder.path()).unwrap();
    let older = one.checkpoint(stream, folder.path());
    assert!(matches!(older, Err(Error::NewerCheckpoint { held: 2, given: 1, .. })), "{older:?}");
    // Clearing is an update like others.
    array.clear(stream).unwrap();
    array.checkpoint(stream, folder.path()).unwrap();
    assert!(matches!(two.checkpoint(stream, folder.path()), Err(Error::NewerCheckpoint { .. })));
    // A snapshot that was taken apart and updated is another array.
    let mut apart = array.snapshot().into_inner();
    insert(&mut apart, 7);
    let refused = apart.checkpoint(stream, folder.path());
    assert!(matches!(refused, Err(Error::Io(error)) if error.kind() == ErrorKind::AlreadyExists));
    assert!(SortedArray::recover(stream, folder.path()).unwrap().is_empty(stream).unwrap());
}
