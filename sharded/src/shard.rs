//! Which dictionaries can be shards.

use bytemuck::Pod;
use gpu_cuckoo::{GpuCuckoo, PlainCuckoo};
use gpu_dictionary::{Dictionary, Key, LargeValues, PlainKey, Value, WordKey};
use gpu_lsm::GpuLsm;
use gpu_sorted_array::GpuSortedArray;

/// A dictionary that [`Sharded`](crate::Sharded) makes one large dictionary of.
///
/// The dictionaries of this library implement it. For one of your own, the two constants are usually all there is to say.
///
/// ```
/// use gpu_sharded::Shard;
///
/// fn name<D: Shard>() -> &'static str {
///     if D::IN_RANGES { "each shard has a range of keys" } else { "each shard has the keys of some hashes" }
/// }
///
/// assert_eq!(name::<gpu_lsm::GpuLsm<u32, u32>>(), "each shard has a range of keys");
/// assert_eq!(name::<gpu_cuckoo::GpuCuckoo<u32, u32>>(), "each shard has the keys of some hashes");
/// ```
pub trait Shard: Dictionary {
    /// Whether each shard has a range of keys, as an [ordered](gpu_dictionary::Ordered) dictionary needs it. Otherwise the
    /// hash of a key says where it is.
    const IN_RANGES: bool;

    /// Whether a [copy](Dictionary::try_clone) shares its contents with the original and so costs next to nothing.
    ///
    /// Then an update changes copies, which replace the shards when all of them have succeeded. Otherwise it changes the
    /// shards, and remembers what it overwrites, to put that back when another shard fails.
    const COPIES_SHARE: bool;

    /// Returns the options that must be the same on all ranks, in any form that differs if they do. These are all options if
    /// nothing else is said.
    #[must_use]
    fn common_options(options: &Self::Options) -> String {
        format!("{options:?}")
    }
}

impl<K: Key, V: Value> Shard for GpuLsm<K, V> {
    const IN_RANGES: bool = true;
    const COPIES_SHARE: bool = true;
}

impl<K: Key, V: Value> Shard for GpuSortedArray<K, V> {
    const IN_RANGES: bool = true;
    const COPIES_SHARE: bool = true;
}

impl<K: WordKey, V: Value> Shard for GpuCuckoo<K, V> {
    const IN_RANGES: bool = false;
    const COPIES_SHARE: bool = false;

    /// Each table may have a seed of its own.
    fn common_options(options: &Self::Options) -> String {
        format!("{:?}", options.clone().seed(0))
    }
}

/// Of keys with a code, whose hash says where a key is. A [`PlainCuckoo`] of other keys is no [`Dictionary`].
impl<K: PlainKey + Key, V: Pod> Shard for PlainCuckoo<K, V> {
    const IN_RANGES: bool = false;
    // A copy shares the pairs, but not the table of their indices.
    const COPIES_SHARE: bool = false;

    /// Each table may have a seed of its own.
    fn common_options(options: &Self::Options) -> String {
        format!("{:?}", options.clone().seed(0))
    }
}

impl<D: Shard<Value = u32>, V: Pod> Shard for LargeValues<D, V> {
    const IN_RANGES: bool = D::IN_RANGES;
    // A copy shares the array of the values, but the next value would copy it.
    const COPIES_SHARE: bool = false;

    fn common_options(options: &Self::Options) -> String {
        D::common_options(options)
    }
}
