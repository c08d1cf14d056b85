//! The suite of all dictionaries, and failures during displacement. Compared with a `BTreeMap`, on every device.
//!
//! `GPU_PRIMITIVES_LONG=1` runs 10,000 histories instead of a few.

mod failures;
mod files;

use failures::*;
use files::*;
use gpu_conformance::{cases, run};
use gpu_cuckoo::{GpuCuckoo, Key, Options};
use gpu_dictionary::Upsertion;
use gpu_dictionary_conformance::{self as dictionary, Combining, Family, Value};
use gpu_primitives::{DeviceVec, Error, Stream};
use std::fmt::Debug;
use std::process::ExitCode;

fn main() -> ExitCode {
    let own = cases![
        failed_displacements,
        failed_operations,
        displacements_without_memory,
        crafted_files,
        files_of_version_1
    ];
    run(&[&dictionary::cases::<Cuckoo>()[..], &dictionary::combining_cases::<Cuckoo>(), own].concat())
}

#[derive(Debug)]
struct Cuckoo;

type Modelled<K, V> = dictionary::Modelled<Cuckoo, K, V>;

impl Family for Cuckoo {
    type Options = Options;
    type Of<K: Key + Debug, V: Value> = GpuCuckoo<K, V>;

    /// Both bucket widths, at the highest load.
    fn options(batch: usize) -> Options {
        Options::new().bucket_width([8, 4][batch % 2]).load_factor(0.95).seed(0)
    }

    fn tidy<K: Key + Debug, V: Value>(table: &mut GpuCuckoo<K, V>, stream: &Stream) -> Result<(), Error> {
        table.rebuild(stream, 0)
    }

    fn check_structure<K: Key + Debug, V: Value>(table: &GpuCuckoo<K, V>, stream: &Stream, when: &str) {
        let stats = table.stats(stream).unwrap();
        assert!(stats.len <= stats.slots && stats.load <= 0.95, "{stats:?}, {when}");
        let pairs = stats.slots * (size_of::<K>() + size_of::<V>());
        assert_eq!(stats.bytes, pairs + 8, "the slots and a counter, {when}");
    }

    dictionary::keys_in_order!(false);
}

impl Combining for Cuckoo {
    fn upsert<K: Key + Debug, V: Value>(
        table: &mut GpuCuckoo<K, V>,
        stream: &Stream,
        pairs: (&DeviceVec<K>, &DeviceVec<V>),
        operation: impl Upsertion<V>,
    ) -> Result<(), Error> {
        table.upsert(stream, pairs, operation)
    }
}
