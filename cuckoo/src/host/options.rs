//! The options of a table.

use crate::hash::MAX_HASHES;
use gpu_dictionary::DictionaryOptions;
use gpu_dictionary::file::unique_id;
use gpu_primitives::Error;

/// The highest load, including later insertions.
pub(super) const MAX_LOAD: f64 = 0.95;
/// The load at which a table grows, unless its load factor is higher. Beyond it, insertions displace ever more keys: on an
/// H200, 2^16 new keys take 50 us at a load of 0.7, 130 at 0.87, and 450 at 0.94.
pub(super) const GROWTH_LOAD: f64 = 0.85;
/// The lowest load. Lower loads would only waste memory, and a file of a few bytes could request all of it.
const MIN_LOAD: f64 = 0.01;
/// The most seeds a build may try, and the most keys one key may displace. Beyond these limits, more attempts do not
/// help.
const MAX_RESEEDS: u32 = 1 << 10;
const MAX_EVICTIONS: u32 = 1 << 16;

/// How to build a table: its room, load, hash functions and buckets, and what to do when it is full.
///
/// # Examples
/// ```
/// use gpu_cuckoo::{GpuCuckoo, Options, WhenFull};
/// use gpu_primitives::{Device, Error};
///
/// let stream = Device::cpu().stream()?;
/// let keys = stream.upload(&(0..1000u64).collect::<Vec<_>>())?;
/// let dense = Options::new().load_factor(0.9).hashes(3).when_full(WhenFull::Refuse);
/// let table = GpuCuckoo::build_set(&stream, &keys, dense)?;
/// assert!(table.stats(&stream)?.load > 0.85);
///
/// let error = GpuCuckoo::build_set(&stream, &keys, Options::new().load_factor(1.5)).unwrap_err();
/// assert!(matches!(error, Error::InvalidOption { .. }));
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    pub(super) capacity: usize,
    pub(super) load_factor: f64,
    pub(super) hashes: u32,
    pub(super) bucket_width: usize,
    /// None if it is chosen at random for each table.
    pub(super) seed: Option<u64>,
    pub(super) reseeds: u32,
    pub(super) evictions: u32,
    pub(super) when_full: WhenFull,
}

/// What to do when keys cannot be placed after all seeds were tried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhenFull {
    /// Grow the table.
    #[default]
    Grow,
    /// Return [`Error::TableFull`] and leave the table unchanged.
    Refuse,
}

impl Default for Options {
    fn default() -> Self {
        Self::new()
    }
}

impl Options {
    /// Returns the defaults: room only for the given keys, load 0.8, two hash functions, buckets of 8 keys, a random seed, and
    /// growth when the table is full.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            capacity: 0,
            load_factor: 0.8,
            hashes: 2,
            bucket_width: 8,
            seed: None,
            reseeds: 4,
            evictions: 500,
            when_full: WhenFull::Grow,
        }
    }

    /// Sets for how many keys a new table has room at its load factor. If it is built from more keys, it has room for
    /// them. Later growth and [`rebuild`](crate::GpuCuckoo::rebuild) ignore this option, and files do not store it.
    ///
    /// ```
    /// use gpu_cuckoo::{GpuCuckoo, Options};
    /// use gpu_primitives::{Device, Error};
    ///
    /// let stream = Device::cpu().stream()?;
    /// let table = GpuCuckoo::<u32, u32>::new(&stream, Options::new().capacity(1000))?;
    /// assert!(table.stats(&stream)?.slots >= 1250); // load 0.8
    /// # Ok::<(), Error>(())
    /// ```
    #[must_use]
    pub const fn capacity(self, keys: usize) -> Self {
        Self { capacity: keys, ..self }
    }

    /// Sets the share of the slots that a build fills: from 0.01 to 0.95. Insertions let the table grow at a load of
    /// 0.85, or this one if it is higher; a table that may not grow is filled up to 0.95.
    #[must_use]
    pub const fn load_factor(self, load_factor: f64) -> Self {
        Self { load_factor, ..self }
    }

    /// Sets the number of buckets per key: 2 to 4. More buckets make very full tables easier to build, but searches for
    /// absent keys take longer in them.
    #[must_use]
    pub const fn hashes(self, hashes: u32) -> Self {
        Self { hashes, ..self }
    }

    /// Sets the number of keys per bucket: 4 or 8. The keys of a bucket are read together. With wide buckets, more keys
    /// are in their first bucket; narrow buckets have fewer bytes to read.
    #[must_use]
    pub const fn bucket_width(self, bucket_width: usize) -> Self {
        Self { bucket_width, ..self }
    }

    /// Sets the seed of the hash functions, so that the same calls give the same layout. Without it, every table has a random
    /// seed: nobody can choose keys that are hard for it. Do not set it if an adversary can choose the keys. Files store the seed.
    ///
    /// A table of [plain keys](crate::PlainCuckoo) leaves the seed for a random one if it does not tell all keys apart. That
    /// practically never happens, unless the keys were chosen to do this.
    ///
    /// ```
    /// use gpu_cuckoo::{GpuCuckoo, Options};
    /// use gpu_primitives::{Device, Error};
    ///
    /// let stream = Device::cpu().stream()?;
    /// let keys = stream.upload(&(0..1000u64).collect::<Vec<_>>())?;
    /// let save = |options: Options| {
    ///     let mut file = Vec::new();
    ///     GpuCuckoo::build_set(&stream, &keys, options)?.save(&stream, &mut file).map(|()| file)
    /// };
    /// assert_eq!(save(Options::new().seed(7))?, save(Options::new().seed(7))?);
    /// assert_ne!(save(Options::new())?, save(Options::new())?);
    /// # Ok::<(), Error>(())
    /// ```
    #[must_use]
    pub const fn seed(self, seed: u64) -> Self {
        Self { seed: Some(seed), ..self }
    }

    /// Returns the seed, or a random one if none is set.
    pub(super) fn any_seed(&self) -> u64 {
        self.seed.unwrap_or_else(random_seed)
    }

    /// Sets a random seed if none is set. The options of a table have a seed: it stays the same in copies and files.
    pub(super) fn with_any_seed(self) -> Self {
        let seed = self.any_seed();
        self.seed(seed)
    }

    /// Sets how many other seeds are tried before the table counts as full: at most 1024.
    #[must_use]
    pub const fn reseeds(self, reseeds: u32) -> Self {
        Self { reseeds, ..self }
    }

    /// Sets how many keys one insertion may displace before it gives up: at most 65,536.
    #[must_use]
    pub const fn evictions(self, evictions: u32) -> Self {
        Self { evictions, ..self }
    }

    /// Sets what to do when the table is full.
    #[must_use]
    pub const fn when_full(self, when_full: WhenFull) -> Self {
        Self { when_full, ..self }
    }

    /// Checks that all settings are in range.
    pub(super) fn check(&self) -> Result<(), Error> {
        // This condition also rejects NaN.
        if !(self.load_factor >= MIN_LOAD && self.load_factor <= MAX_LOAD) {
            return invalid("the load factor", self.load_factor, "from 0.01 to 0.95");
        }
        if !(2..=MAX_HASHES).contains(&self.hashes) {
            return invalid("the number of hash functions", self.hashes, "2, 3 or 4");
        }
        if self.reseeds > MAX_RESEEDS {
            return invalid("the number of reseeds", self.reseeds, "at most 1024");
        }
        if self.evictions > MAX_EVICTIONS {
            return invalid("the number of evictions", self.evictions, "at most 65536");
        }
        self.checked_width().map(drop)
    }

    /// Returns the bucket width, if there is such a width.
    pub(super) fn checked_width(&self) -> Result<Width, Error> {
        match self.bucket_width {
            4 => Ok(Width::Four),
            8 => Ok(Width::Eight),
            other => invalid("the bucket width", other, "4 or 8"),
        }
    }
}

impl DictionaryOptions for Options {
    /// Sets the [`capacity`](Options::capacity).
    fn expected_keys(self, keys: usize) -> Self {
        self.capacity(keys)
    }

    /// Has no effect: an insertion of any size takes free slots.
    fn expected_operations(self, _: usize) -> Self {
        self
    }
}

/// Returns a seed that nobody can foresee.
pub(super) fn random_seed() -> u64 {
    unique_id() as u64
}

/// The number of keys per bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    Four,
    Eight,
}

impl Width {
    /// Returns the number.
    pub const fn keys(self) -> usize {
        match self {
            Self::Four => 4,
            Self::Eight => 8,
        }
    }
}

fn invalid<T>(what: &'static str, asked: impl ToString, allowed: &'static str) -> Result<T, Error> {
    Err(Error::InvalidOption { what, asked: asked.to_string(), allowed })
}
