//! The families of sharded dictionaries, for the suite that all dictionaries share.

#![allow(dead_code, reason = "each test executable uses a part")]

pub mod histories;
pub mod primitives;
pub mod ranks;

use gpu_cuckoo::{GpuCuckoo, PlainCuckoo};
use gpu_dictionary::{Dictionary, Upsertable, Upsertion, WordKey as Key};
use gpu_dictionary_conformance::{self as dictionary, Combining, Family, Random, Value, saved};
use gpu_lsm::GpuLsm;
use gpu_primitives::{DeviceVec, Error, Stream};
use gpu_sharded::{Options, Sharded, World};
use gpu_sorted_array::GpuSortedArray;
use std::cell::RefCell;
use std::fmt::Debug;
use std::path::Path;

thread_local! {
    /// The world of the dictionaries that this thread makes; one rank with three shards if it is not set.
    static WORLD: RefCell<Option<World>> = const { RefCell::new(None) };
}

/// The cases of the shared suite that all ranks run together: those whose calls give the same result if every rank makes them.
pub const SOME: [&str; 6] =
    ["tiny_batches", "signed_and_float_keys", "sets", "extreme_keys", "clearing", "bad_input_changes_nothing"];

/// Makes this thread a rank of a world, or of none.
pub fn set_world(world: impl Into<Option<World>>) {
    WORLD.with(|here| *here.borrow_mut() = world.into());
}

fn world() -> World {
    WORLD.with(|world| world.borrow().clone()).unwrap_or_else(|| World::local(3))
}

/// Balanced early, so that the suite meets it.
fn options<O: gpu_dictionary::DictionaryOptions>(shard: O) -> Options<O> {
    Options::new(world()).shard(shard).balance_from(64)
}

macro_rules! family {
    ($family:ident, $structure:ident, $options:ty, $of_batch:expr, $tidy:expr, $in_order:tt) => {
        #[derive(Debug)]
        pub struct $family;

        impl Family for $family {
            type Options = Options<$options>;
            type Of<K: Key + Debug, V: Value> = Sharded<$structure<K, V>>;

            fn options(batch: usize) -> Self::Options {
                options($of_batch(batch))
            }

            fn tidy<K: Key + Debug, V: Value>(all: &mut Self::Of<K, V>, stream: &Stream) -> Result<(), Error> {
                all.each_shard(stream, $tidy)
            }

            /// A file, or a set of files. Several ranks have no folder in common here: they go on with a copy.
            fn persist<K: Key + Debug, V: Value>(
                all: &Self::Of<K, V>,
                stream: &Stream,
                folder: &Path,
                random: &mut Random,
            ) -> Self::Of<K, V> {
                if all.world().ranks() > 1 {
                    return all.try_clone(stream).unwrap();
                }
                if random.below(2) == 0 {
                    return <Self::Of<K, V>>::load(stream, &saved(stream, all)[..]).unwrap();
                }
                all.save_set(stream, folder).unwrap();
                Sharded::load_set(stream, folder, Dictionary::options(all)).unwrap()
            }

            fn check_structure<K: Key + Debug, V: Value>(all: &Self::Of<K, V>, stream: &Stream, when: &str) {
                let own = all.export_own(stream).unwrap();
                let lens: usize = all.shards().iter().map(|shard| Dictionary::len(shard, stream).unwrap()).sum();
                assert_eq!(own.keys.len(), lens, "{when}");
            }

            dictionary::keys_in_order!($in_order);
        }

        impl Combining for $family {
            fn upsert<K: Key + Debug, V: Value>(
                all: &mut Self::Of<K, V>,
                stream: &Stream,
                pairs: (&DeviceVec<K>, &DeviceVec<V>),
                operation: impl Upsertion<V>,
            ) -> Result<(), Error> {
                Upsertable::upsert(all, stream, pairs, operation)
            }
        }
    };
}

family!(
    Lsm,
    GpuLsm,
    gpu_lsm::Options,
    |batch| gpu_lsm::Options::new().batch_size(batch),
    |lsm, stream| lsm.cleanup(stream),
    true
);
family!(
    SortedArray,
    GpuSortedArray,
    gpu_sorted_array::Options,
    |_| gpu_sorted_array::Options::default(),
    |_, _| Ok(()),
    true
);
family!(Cuckoo, GpuCuckoo, gpu_cuckoo::Options, |_| gpu_cuckoo::Options::default(), |_, _| Ok(()), false);
family!(
    Plain,
    PlainCuckoo,
    gpu_cuckoo::Options,
    |_| gpu_cuckoo::Options::default(),
    |table, stream| table.compact(stream),
    false
);
