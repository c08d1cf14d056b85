//! Options of sharded dictionaries.

use crate::shard::Shard;
use crate::sharded::fingerprint;
use crate::world::World;
use gpu_dictionary::DictionaryOptions;

/// The options of a [`Sharded`](crate::Sharded) dictionary: those of its shards, and the world that they live in.
///
/// ```
/// use gpu_sharded::{Options, World};
///
/// let options: Options<gpu_lsm::Options> = Options::new(World::local(4));
/// let shard = gpu_lsm::Options::new().batch_size(1 << 18);
/// let options = options.shard(shard).balance_from(100_000);
/// ```
#[derive(Clone, Debug)]
pub struct Options<O> {
    pub(crate) world: World,
    pub(crate) shard: O,
    pub(crate) expected_keys: Option<usize>,
    pub(crate) expected_operations: Option<usize>,
    pub(crate) balance_from: usize,
}

impl<O: DictionaryOptions> Options<O> {
    /// The default options of shards, in this world.
    #[must_use]
    pub fn new(world: World) -> Self {
        let shard = O::default();
        Self { world, shard, expected_keys: None, expected_operations: None, balance_from: 1 << 16 }
    }

    /// Sets the options of every shard. They are about a shard, and not about the whole: a shard gets its part of the keys of
    /// each call.
    #[must_use]
    pub fn shard(self, shard: O) -> Self {
        Self { shard, ..self }
    }

    /// Sets how many elements the largest shard must have before shards are balanced. It is 2^16 if nothing else is said.
    #[must_use]
    pub fn balance_from(self, elements: usize) -> Self {
        Self { balance_from: elements, ..self }
    }

    /// Returns a number that differs if options differ that must be the same on all ranks.
    pub(crate) fn fingerprint<D: Shard<Options = O>>(&self) -> u64 {
        let Self { world: _, shard, expected_keys, expected_operations, balance_from } = self;
        fingerprint((D::common_options(shard), expected_keys, expected_operations, balance_from))
    }

    /// Returns the options of one shard.
    pub(crate) fn of_shard(&self) -> O {
        // Shards do not get exactly equal parts.
        let share =
            |whole: usize| whole.div_ceil(self.world.shards()).saturating_add(whole / (8 * self.world.shards()));
        let is_one = self.world.shards() == 1;
        let share = |whole: usize| if is_one { whole } else { share(whole) };
        let mut options = self.shard.clone();
        if let Some(keys) = self.expected_keys {
            options = options.expected_keys(share(keys));
        }
        if let Some(operations) = self.expected_operations {
            options = options.expected_operations(share(operations));
        }
        options
    }
}

impl<O: DictionaryOptions> Default for Options<O> {
    fn default() -> Self {
        Self::new(World::default())
    }
}

/// The numbers are those of the whole dictionary, and of the calls of all ranks together.
impl<O: DictionaryOptions> DictionaryOptions for Options<O> {
    fn expected_keys(self, keys: usize) -> Self {
        Self { expected_keys: Some(keys), ..self }
    }

    fn expected_operations(self, operations: usize) -> Self {
        Self { expected_operations: Some(operations), ..self }
    }
}
