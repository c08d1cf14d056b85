//! The sorted array compared with a `BTreeMap`, on every device: the common suite of all dictionaries, and tests of the
//! array alone.
//!
//! `GPU_PRIMITIVES_LONG=1` runs 10,000 histories instead of a few.

mod files;

use files::*;
use gpu_conformance::{Case, cases, run};
use gpu_dictionary::{Upsertion, WordKey as Key};
use gpu_dictionary_conformance::{
    self as dictionary, Combining, Family, Value, a_kernel_of_ones_own, combining_cases, fail, ordered_cases,
};
use gpu_primitives::{Device, DeviceVec, Error, Stream};
use gpu_sorted_array::{GpuSortedArray, Options, Parts};
use std::fmt::Debug;
use std::process::ExitCode;

fn main() -> ExitCode {
    let own = cases![nothing_stale_stays, kernels_of_ones_own, failed_views, files_of_version_1];
    let files = [
        Case::new("crafted_files", crafted_files).of_checked_calls(),
        Case::new("long_arrays", long_arrays).of_host_code(),
    ];
    let common = [dictionary::cases::<SortedArray>(), ordered_cases::<SortedArray>(), combining_cases::<SortedArray>()];
    run(&[&common.concat()[..], own, &files].concat())
}

#[derive(Debug)]
struct SortedArray;

type Modelled<K, V> = dictionary::Modelled<SortedArray, K, V>;

impl Family for SortedArray {
    type Options = Options;
    type Of<K: Key + Debug, V: Value> = GpuSortedArray<K, V>;

    fn options(_: usize) -> Options {
        Options::new()
    }

    fn tidy<K: Key + Debug, V: Value>(_: &mut GpuSortedArray<K, V>, _: &Stream) -> Result<(), Error> {
        Ok(()) // nothing is stale
    }

    fn check_structure<K: Key + Debug, V: Value>(array: &GpuSortedArray<K, V>, stream: &Stream, when: &str) {
        let Some(level) = array.level() else {
            assert!(array.is_empty(stream).unwrap(), "{when}");
            return;
        };
        let Parts { codes, values, marks } = level.parts();
        assert!(marks.is_none(), "there are tombstones, {when}");
        let is_strict = codes.to_vec(stream).unwrap().is_sorted_by(|a, b| a < b);
        assert!(is_strict, "a key occurs twice, {when}");
        assert_eq!(values.len(), if size_of::<V>() == 0 { 0 } else { codes.len() }, "values, {when}");
        assert_eq!(
            (array.len(stream).unwrap(), array.is_empty(stream).unwrap()),
            (codes.len(), codes.is_empty()),
            "{when}"
        );
    }

    dictionary::keys_in_order!(true);
}

impl Combining for SortedArray {
    fn upsert<K: Key + Debug, V: Value>(
        array: &mut GpuSortedArray<K, V>,
        stream: &Stream,
        pairs: (&DeviceVec<K>, &DeviceVec<V>),
        operation: impl Upsertion<V>,
    ) -> Result<(), Error> {
        array.upsert(stream, pairs, operation)
    }
}

/// The array uses memory only for live elements, and `check_memory` checks whether more would fit.
fn nothing_stale_stays(device: &Device) {
    let stream = device.stream().unwrap();
    let mut both = Modelled::<u32, u32>::new(&stream, 1);
    assert_eq!(both.dictionary.stats(&stream).unwrap().bytes, 0);
    let keys: Vec<u32> = (0..1000).collect();
    for round in 0..4 {
        both.insert(&stream, &keys, &vec![round; keys.len()]);
    }
    let stats = both.dictionary.stats(&stream).unwrap();
    assert_eq!((stats.resident, stats.live, stats.bytes), (1000, Some(1000), 8000));
    both.delete(&stream, &keys[100..]);
    assert_eq!(both.dictionary.stats(&stream).unwrap().bytes, 800);
    both.check(&stream, &keys, "after deletions");
    assert!(both.dictionary.stats(&stream).unwrap().bytes > 800, "a query must build the index");
    both.dictionary.check_memory(&stream, 1000).unwrap();
    assert!(matches!(both.dictionary.check_memory(&stream, usize::MAX), Err(Error::OutOfMemory { .. })));
    both.dictionary.clear(&stream).unwrap();
    assert_eq!(both.dictionary.stats(&stream).unwrap().bytes, 0);
}

fn kernels_of_ones_own(device: &Device) {
    a_kernel_of_ones_own::<SortedArray>(device, GpuSortedArray::view);
}

fn failed_views(device: &Device) {
    let view = |both: &mut Modelled<u32, u32>, stream: &_, _: &_| both.dictionary.view(stream).map(drop);
    assert!(fail::<SortedArray>(device, "a view", (3, 1), view) > 0);
}
