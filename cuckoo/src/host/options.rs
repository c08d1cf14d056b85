//! The policy of a table.

use gpu_primitives::Error;

/// The highest load, also by later insertions.
pub(super) const HIGHEST_LOAD: f64 = 0.95;
/// Lower loads would take memory for nothing: a file of a few bytes could ask for all there is.
const LOWEST_LOAD: f64 = 0.01;
/// Seeds that a build may try, and keys that one key may displace: whoever has tried so often does not get there.
const MOST_RESEEDS: u32 = 1 << 10;
const MOST_EVICTIONS: u32 = 1 << 16;

/// How a table is built: load, hash functions, buckets, and what happens when there is no room.
///
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
    pub(super) load_factor: f64,
    pub(super) hashes: u32,
    pub(super) bucket_width: usize,
    pub(super) seed: u64,
    pub(super) reseeds: u32,
    pub(super) evictions: u32,
    pub(super) when_full: WhenFull,
}

/// What happens when keys find no place, though all seeds were tried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhenFull {
    /// The table grows.
    #[default]
    Grow,
    /// The call gives [`Error::TableFull`] and leaves the table as it was.
    Refuse,
}

impl Default for Options {
    fn default() -> Self {
        Self::new()
    }
}

impl Options {
    /// Load 0.8, two hash functions, buckets of 8 keys; a table that is full grows.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            load_factor: 0.8,
            hashes: 2,
            bucket_width: 8,
            seed: 0,
            reseeds: 4,
            evictions: 500,
            when_full: WhenFull::Grow,
        }
    }

    /// The share of the slots that a build fills: from 0.01 to 0.95. Later insertions may fill up to 0.95.
    #[must_use]
    pub const fn load_factor(self, load_factor: f64) -> Self {
        Self { load_factor, ..self }
    }

    /// The number of buckets that a key may lie in: 2 to 4. With more of them very full tables are built more easily, and
    /// absent keys are searched longer in them.
    #[must_use]
    pub const fn hashes(self, hashes: u32) -> Self {
        Self { hashes, ..self }
    }

    /// The number of keys in a bucket: 4 or 8. The keys of a bucket are read together: wide buckets let more keys lie
    /// in their first one, narrow ones have fewer bytes.
    #[must_use]
    pub const fn bucket_width(self, bucket_width: usize) -> Self {
        Self { bucket_width, ..self }
    }

    /// Where the hash functions begin. Choose it at random if others choose the keys and wish you ill.
    #[must_use]
    pub const fn seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    /// How many other seeds are tried before a table counts as full: at most 1024.
    #[must_use]
    pub const fn reseeds(self, reseeds: u32) -> Self {
        Self { reseeds, ..self }
    }

    /// How many keys one insertion may displace before it gives up: at most 65,536.
    #[must_use]
    pub const fn evictions(self, evictions: u32) -> Self {
        Self { evictions, ..self }
    }

    /// What happens when there is no room.
    #[must_use]
    pub const fn when_full(self, when_full: WhenFull) -> Self {
        Self { when_full, ..self }
    }

    /// The error if a setting is outside of its range.
    pub(super) fn check(&self) -> Result<(), Error> {
        let wrong = |what, asked: String, allowed| Err(Error::InvalidOption { what, asked, allowed });
        // Also refuses what is no number.
        if !(self.load_factor >= LOWEST_LOAD && self.load_factor <= HIGHEST_LOAD) {
            return wrong("the load factor", self.load_factor.to_string(), "from 0.01 to 0.95");
        }
        if !(2..=crate::map::MOST_HASHES).contains(&self.hashes) {
            return wrong("the number of hash functions", self.hashes.to_string(), "2, 3 or 4");
        }
        if ![4, 8].contains(&self.bucket_width) {
            return wrong("the bucket width", self.bucket_width.to_string(), "4 or 8");
        }
        if self.reseeds > MOST_RESEEDS {
            return wrong("the number of reseeds", self.reseeds.to_string(), "at most 1024");
        }
        if self.evictions > MOST_EVICTIONS {
            return wrong("the number of evictions", self.evictions.to_string(), "at most 65536");
        }
        Ok(())
    }
}
