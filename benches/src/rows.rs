//! The measurements of a dictionary, one function each. Each function times a contender, checks its result and keeps
//! the record.

use crate::Error;
use crate::both::{Both, PairSlice, Pairs};
use crate::contender::{Contender, OrderedContender};
use crate::measure::{Clock, Times};
use crate::oracle::{Intervals, Lookups, Oracle, Successors};
use crate::record::Record;
use crate::session::Session;

/// The common fields of the records of several measurements.
#[derive(Clone, Copy)]
pub struct At<'a> {
    /// The run.
    pub session: &'a Session,
    /// The table.
    pub section: &'a str,
    /// The parameters.
    pub parameter: &'a str,
    /// The number of elements of the dictionary.
    pub n: usize,
}

impl At<'_> {
    /// Records the rate of `work` operations in these times.
    pub fn keep<C: Contender>(&self, row: &str, work: usize, times: &Times) {
        self.session.keep(Record::new(self.section, C::NAME, row, self.parameter, self.n).rate(work, times));
    }

    /// Returns the number of warm-up runs and of timed runs. A contender on the host needs no warm-up and may be slow.
    fn runs<C: Contender>(&self) -> (usize, usize) {
        match C::CLOCK {
            Clock::Device => (self.session.warm_ups, self.session.runs),
            Clock::Host => (0, self.session.runs.min(if self.n < 1 << 22 { 3 } else { 1 })),
        }
    }

    /// Times a query, which changes nothing, in both ways, and records it.
    fn query<C: Contender, T>(
        &self,
        row: &str,
        work: usize,
        mut query: impl FnMut() -> Result<T, Error>,
    ) -> Result<(T, Times), Error> {
        let (answer, times) = self.time::<C, _, _>(|| Ok(()), |()| query())?;
        let queued = match C::CLOCK {
            Clock::Device => self.session.queued(times.median(), || query().map(drop))?,
            Clock::Host => None,
        };
        let record = Record::new(self.section, C::NAME, row, self.parameter, self.n).rate(work, &times);
        self.session.keep(record.queued(queued));
        Ok((answer, times))
    }

    /// Times an operation on a state that is freshly prepared for each run.
    fn time<C: Contender, S, T>(
        &self,
        prepare: impl FnMut() -> Result<S, Error>,
        operation: impl FnMut(S) -> Result<T, Error>,
    ) -> Result<(T, Times), Error> {
        let (warm_ups, runs) = self.runs::<C>();
        self.session.time_fresh(C::CLOCK, warm_ups, runs, prepare, operation)
    }
}

/// Measures the bulk build.
///
/// # Errors
/// The errors of the dictionary; [`Error::WrongResult`]; [`Error::Interrupted`]. All measurements can return these.
pub fn build<C: Contender>(
    at: At<'_>,
    pairs: PairSlice<'_, C::Key, C::Value>,
    batch: usize,
    oracle: &Oracle<C::Key, C::Value>,
) -> Result<C, Error> {
    let stream = &at.session.stream;
    let (built, times) = at.time::<C, _, C>(|| Ok(()), |()| C::build(stream, pairs, batch))?;
    at.keep::<C>("bulk build", pairs.keys.host.len(), &times);
    oracle.check("bulk build", &built.contents(stream)?)?;
    Ok(built)
}

/// Measures the insertion of the first `len` pairs into an empty dictionary, one batch per call.
///
/// # Errors
/// The errors of [`build`].
pub fn insert_all<C: Contender>(
    at: At<'_>,
    pairs: &Pairs<C::Key, C::Value>,
    len: usize,
    batch: usize,
    oracle: &Oracle<C::Key, C::Value>,
) -> Result<(), Error> {
    let stream = &at.session.stream;
    let (filled, times) = at.time::<C, _, C>(
        || C::empty(stream, batch),
        |mut contender| {
            for slice in pairs.batches(len, batch) {
                contender.insert(stream, slice?)?;
            }
            Ok(contender)
        },
    )?;
    at.keep::<C>("insert, all batches", len, &times);
    oracle.check("insert", &filled.contents(stream)?)
}

/// Measures lookups.
///
/// # Errors
/// The errors of [`build`].
pub fn lookup<C: Contender>(
    at: At<'_>,
    row: &str,
    contender: &C,
    lookups: &Lookups<C::Key, C::Value>,
) -> Result<Times, Error> {
    let stream = &at.session.stream;
    let work = lookups.keys.host.len();
    let (answer, times) = at.query::<C, _>(row, work, || contender.lookup(stream, lookups.keys.all()))?;
    lookups.check(row, &answer(stream)?)?;
    Ok(times)
}

/// Measures counts and ranges of the same intervals.
///
/// # Errors
/// The errors of [`build`].
pub fn intervals<C: OrderedContender>(
    at: At<'_>,
    contender: &C,
    intervals: &Intervals<C::Key>,
    oracle: &Oracle<C::Key, C::Value>,
) -> Result<(), Error> {
    let stream = &at.session.stream;
    let (low, high) = (intervals.low.all(), intervals.high.all());
    let queries = low.host.len();
    let (counts, _) = at.query::<C, _>("count", queries, || contender.count(stream, low, high))?;
    intervals.check_counts("count", &counts(stream)?)?;
    let (ranges, _) = at.query::<C, _>("range", queries, || contender.range(stream, low, high))?;
    intervals.check_ranges("range", oracle, &ranges(stream)?)
}

/// Measures successor queries.
///
/// # Errors
/// The errors of [`build`].
pub fn successors<C: OrderedContender>(
    at: At<'_>,
    contender: &C,
    successors: &Successors<C::Key, C::Value>,
) -> Result<(), Error> {
    let stream = &at.session.stream;
    let keys = successors.keys.all();
    let (answer, _) = at.query::<C, _>("successor", keys.host.len(), || contender.successor(stream, keys))?;
    successors.check("successor", &answer(stream)?)
}

/// The bulk build that updates start from: its pairs, and the batch size.
#[derive(Clone, Copy)]
pub struct Base<'a, K, V> {
    /// The pairs.
    pub pairs: PairSlice<'a, K, V>,
    /// The number of operations per batch.
    pub batch: usize,
}

/// Measures deletions from a bulk-built dictionary, one batch per call.
///
/// # Errors
/// The errors of [`build`].
pub fn delete<C: Contender>(
    at: At<'_>,
    base: Base<'_, C::Key, C::Value>,
    deleted: &Both<C::Key>,
    oracle: &Oracle<C::Key, C::Value>,
) -> Result<(), Error> {
    let stream = &at.session.stream;
    let len = deleted.host.len();
    let (left, times) = at.time::<C, _, C>(
        || C::build(stream, base.pairs, base.batch),
        |mut contender| {
            for start in (0..len).step_by(base.batch) {
                contender.delete(stream, deleted.slice(start..(start + base.batch).min(len))?)?;
            }
            Ok(contender)
        },
    )?;
    at.keep::<C>("delete", len, &times);
    oracle.check("delete", &left.contents(stream)?)
}

/// The operations of mixed batches: each batch inserts pairs and deletes keys.
pub struct Mix<K: crate::data::Number, V: crate::data::Datum> {
    /// The pairs to insert.
    pub insert: Pairs<K, V>,
    /// The keys to delete.
    pub delete: Both<K>,
    /// The number of batches.
    pub batches: usize,
}

impl<K: crate::data::Number, V: crate::data::Datum> Mix<K, V> {
    /// Returns the number of operations.
    #[must_use]
    pub fn len(&self) -> usize {
        self.insert.len() + self.delete.host.len()
    }

    /// Returns whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Applies all operations.
    ///
    /// # Errors
    /// The errors of the dictionary.
    pub fn apply<C: Contender<Key = K, Value = V>>(&self, session: &Session, contender: &mut C) -> Result<(), Error> {
        let part = |len: usize, batch: usize| len * batch / self.batches..len * (batch + 1) / self.batches;
        for batch in 0..self.batches {
            let insert = self.insert.slice(part(self.insert.len(), batch))?;
            let delete = self.delete.slice(part(self.delete.host.len(), batch))?;
            contender.update(&session.stream, insert, delete)?;
        }
        Ok(())
    }
}

/// Measures mixed batches on a bulk-built dictionary, and then a cleanup, if the dictionary has one.
///
/// # Errors
/// The errors of [`build`].
pub fn update<C: Contender>(
    at: At<'_>,
    base: Base<'_, C::Key, C::Value>,
    mix: &Mix<C::Key, C::Value>,
    oracle: &Oracle<C::Key, C::Value>,
) -> Result<(), Error> {
    let stream = &at.session.stream;
    let fresh = || C::build(stream, base.pairs, base.batch);
    let (updated, times) = at.time::<C, _, C>(fresh, |mut contender| {
        mix.apply(at.session, &mut contender)?;
        Ok(contender)
    })?;
    at.keep::<C>("update, mixed", mix.len(), &times);
    oracle.check("update", &updated.contents(stream)?)?;
    let Some(resident) = updated.cleanable(stream) else { return Ok(()) };
    drop(updated);
    cleanup::<C>(at, resident, oracle, || {
        let mut contender = fresh()?;
        mix.apply(at.session, &mut contender)?;
        Ok(contender)
    })
}

/// Measures a cleanup of `resident` elements, live and stale.
///
/// # Errors
/// The errors of [`build`].
pub fn cleanup<C: Contender>(
    at: At<'_>,
    resident: usize,
    oracle: &Oracle<C::Key, C::Value>,
    prepare: impl FnMut() -> Result<C, Error>,
) -> Result<(), Error> {
    let stream = &at.session.stream;
    let (clean, times) = at.time::<C, _, C>(prepare, |mut contender| {
        contender.cleanup(stream)?;
        Ok(contender)
    })?;
    at.keep::<C>("cleanup", resident, &times);
    crate::check::equal("elements after a cleanup", clean.cleanable(stream), [oracle.pairs.len()], |a, b| a == b)?;
    oracle.check("cleanup", &clean.contents(stream)?)
}

/// Records the bytes per element, for `len` elements.
///
/// # Errors
/// The errors of [`build`].
pub fn bytes<C: Contender>(at: At<'_>, row: &str, contender: &C, len: usize) -> Result<(), Error> {
    if let Some(bytes) = contender.bytes(&at.session.stream)? {
        let record = Record::new(at.section, C::NAME, row, at.parameter, at.n);
        at.session.keep(record.value(bytes as f64 / len as f64, "B"));
    }
    Ok(())
}
