//! The workload of a comparison: its data and operations.

use crate::Error;
use crate::both::{Both, Pairs};
use crate::contender::{Contender, OrderedContender};
use crate::data::{Datum, Distribution, Number, random_below, random_below_at};
use crate::oracle::{Intervals, Lookups, Oracle, Successors};
use crate::record::power;
use crate::rows::{self, At, Base, Mix};
use crate::session::Session;
use rayon::iter::{IntoParallelIterator, ParallelIterator};

/// The number of steps that [`Scenario::measure`] counts.
pub const STEPS: usize = 5;
/// The number of additional steps that [`Scenario::measure_ordered`] counts.
pub const ORDERED_STEPS: usize = 3;

/// The number of keys in an interval, and the most intervals per call: the answers must fit into memory.
const LENGTHS: [(usize, usize); 2] = [(8, 1 << 20), (1024, 1 << 14)];

/// The workload of a comparison.
#[derive(Clone, Debug)]
pub struct Workload {
    /// The distribution of the keys.
    pub keys: Distribution,
    /// The share of deletions in mixed batches.
    pub deletions: f64,
    /// The share of absent keys in mixed lookups.
    pub absent: f64,
    /// The size of a value in bytes: 0, 4 or 8.
    pub value_bytes: usize,
    /// The size of a key in bits: 32 or 64.
    pub key_bits: usize,
    /// The number of operations per batch; `None` for a sixteenth of the elements.
    pub batch: Option<usize>,
}

impl Workload {
    fn batch(&self, n: usize) -> usize {
        self.batch.unwrap_or(n / 16).min(n)
    }

    /// Checks the workload for `n` elements.
    ///
    /// # Errors
    /// [`Error::Arguments`].
    pub fn check(&self, n: usize) -> Result<(), Error> {
        let refuse = |what: String| Err(Error::Arguments(what));
        if !(1 << 10..=1 << 30).contains(&n) {
            return refuse(format!("--size {n}: it must be at least 2^10 and at most 2^30"));
        }
        if self.batch == Some(0) {
            return refuse("--batch 0: it must be at least one operation".into());
        }
        for (name, share) in [("deletions", self.deletions), ("absent", self.absent)] {
            // Also rejects NaN.
            if !(0.0..=1.0).contains(&share) {
                return refuse(format!("--{name} {share}: it must be from 0 to 1"));
            }
        }
        Ok(())
    }

    /// Says how the batches are chosen.
    #[must_use]
    pub fn batch_in_words(&self) -> String {
        self.batch.map_or_else(|| String::from("a sixteenth of the elements"), power)
    }

    /// Describes the workload.
    #[must_use]
    pub fn describe(&self, n: usize) -> String {
        let Self { keys, deletions, absent, value_bytes, key_bits, .. } = self;
        format!(
            "{} keys of {key_bits} bits, values of {value_bytes} bytes, batches of {}; mixed updates have {:.0} % \
             deletions, mixed lookups {:.0} % absent keys",
            keys.name(),
            power(self.batch(n)),
            deletions * 100.0,
            absent * 100.0
        )
    }
}

/// The data and queries of a workload, with the expected results.
pub struct Scenario<'a, K: Number, V: Datum> {
    session: &'a Session,
    batch: usize,
    pairs: Pairs<K, V>,
    oracle: Oracle<K, V>,
    lookups: [(String, Lookups<K, V>); 3],
    intervals: Vec<(usize, Intervals<K>)>,
    successors: Successors<K, V>,
    deleted: Both<K>,
    after_deletion: Oracle<K, V>,
    mix: Mix<K, V>,
    after_mix: Oracle<K, V>,
}

impl<'a, K: Number, V: Datum> Scenario<'a, K, V> {
    /// Creates the data.
    ///
    /// # Errors
    /// Any device error.
    pub fn new(session: &'a Session, n: usize, workload: &Workload) -> Result<Self, Error> {
        let stream = &session.stream;
        let batch = workload.batch(n);
        let pairs = Pairs::<K, V>::new(stream, workload.keys.keys(n), 0)?;
        let oracle = Oracle::new(&pairs.keys.host, &pairs.values.host);

        // Keys are looked up as often as they were inserted.
        let there = |index: usize| pairs.keys.host[random_below_at(20, n, index)];
        let not_there = |index: usize| K::of(random_below_at(21, 1 << 32, index) as u64, false);
        let asked: Vec<(K, Option<V>)> = (0..n).into_par_iter().map(there).map(|key| (key, oracle.find(key))).collect();
        let absent: Vec<(K, Option<V>)> = (0..n).into_par_iter().map(|index| (not_there(index), None)).collect();
        let is_absent = random_below(22, 1 << 32).map(|number| (number as f64) < workload.absent * f64::from(u32::MAX));
        let mixed: Vec<(K, Option<V>)> =
            asked.iter().zip(&absent).zip(is_absent).map(|((there, not), is)| if is { *not } else { *there }).collect();
        let share = format!("lookup, {:.0} % absent", workload.absent * 100.0);
        let lookups = [
            ("lookup, all present".into(), Lookups::new(stream, asked.into_par_iter())?),
            ("lookup, all absent".into(), Lookups::new(stream, absent.into_par_iter())?),
            (share, Lookups::new(stream, mixed.into_par_iter())?),
        ];

        let mut intervals = Vec::new();
        for (len, most) in LENGTHS {
            intervals.push((len, Intervals::of_keys(stream, &oracle, len, (n / len.min(64)).min(most))?));
        }
        let successors = Successors::new(stream, &oracle, n)?;

        let some = |seed: u64, count: usize| -> Vec<K> {
            random_below(seed, oracle.pairs.len()).take(count).map(|place| oracle.pairs[place].0).collect()
        };
        let operations = n.div_ceil(4);
        let deleted = some(23, operations);
        let mut after_deletion = oracle.clone();
        after_deletion.delete(&deleted);

        let deletions = (operations as f64 * workload.deletions) as usize;
        let new_keys = (n..n + operations - deletions).map(|index| K::of(index as u64, true)).collect();
        let mix = Mix {
            insert: Pairs::new(stream, new_keys, n)?,
            delete: Both::new(stream, some(24, deletions))?,
            batches: operations.div_ceil(batch),
        };
        let mut after_mix = oracle.clone();
        after_mix.insert(&mix.insert.keys.host, &mix.insert.values.host);
        after_mix.delete(&mix.delete.host);

        let deleted = Both::new(stream, deleted)?;
        Ok(Self {
            session,
            batch,
            pairs,
            oracle,
            lookups,
            intervals,
            successors,
            deleted,
            after_deletion,
            mix,
            after_mix,
        })
    }

    /// Measures the operations that all dictionaries support.
    ///
    /// # Errors
    /// The errors of the dictionary; [`Error::WrongResult`]; [`Error::Interrupted`].
    pub fn measure<C: Contender<Key = K, Value = V>>(&self, section: &str) -> Result<(), Error> {
        self.built::<C>(section).map(drop)
    }

    /// Measures these and the operations that only ordered dictionaries support.
    ///
    /// # Errors
    /// The errors of [`measure`](Self::measure).
    pub fn measure_ordered<C: OrderedContender<Key = K, Value = V>>(&self, section: &str) -> Result<(), Error> {
        let built = self.built::<C>(section)?;
        let at = self.at(section);
        for (len, intervals) in &self.intervals {
            self.session.step(format!("{}: intervals of {len} keys", C::NAME))?;
            rows::intervals(At { parameter: &format!("L = {len}"), ..at }, &built, intervals, &self.oracle)?;
        }
        self.session.step(format!("{}: successors", C::NAME))?;
        rows::successors(at, &built, &self.successors)
    }

    fn at<'b>(&self, section: &'b str) -> At<'b>
    where
        'a: 'b,
    {
        At { session: self.session, section, parameter: "", n: self.pairs.len() }
    }

    fn built<C: Contender<Key = K, Value = V>>(&self, section: &str) -> Result<C, Error> {
        let (session, at, n) = (self.session, self.at(section), self.pairs.len());
        let step = |what: &str| session.step(format!("{}: {what}", C::NAME));
        let base = Base { pairs: self.pairs.slice(0..n)?, batch: self.batch };
        step("bulk build")?;
        let built = rows::build::<C>(at, base.pairs, self.batch, &self.oracle)?;
        step("insertion")?;
        rows::insert_all::<C>(at, &self.pairs, n, self.batch, &self.oracle)?;
        step("deletion")?;
        rows::delete::<C>(at, base, &self.deleted, &self.after_deletion)?;
        step("mixed updates")?;
        rows::update::<C>(at, base, &self.mix, &self.after_mix)?;
        step("lookups")?;
        for (row, lookups) in &self.lookups {
            rows::lookup(at, row, &built, lookups)?;
        }
        // With the index that the lookups have built.
        rows::bytes(at, "bytes per element", &built, self.oracle.pairs.len())?;
        Ok(built)
    }
}
