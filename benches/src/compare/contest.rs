//! Who takes part in a comparison.

use super::workload::{self, Scenario, Workload};
use super::{MOST_ON_HOST, Options, SECTION, run};
use crate::contender::host::{Hash, Sorted, Tree};
use crate::contender::{Contender, OrderedContender};
use crate::data::{Datum, Number};
use crate::measure::Clock;
use crate::session::{self, Session};
use crate::{Error, command};
use clap::Parser;
use gpu_cuckoo::GpuCuckoo;
use gpu_lsm::GpuLsm;
use gpu_sorted_array::GpuSortedArray;
use std::process::ExitCode;

/// A comparison of dictionaries with these types of keys and values. Everybody's structure can take part: implement
/// [`Contender`], and [`OrderedContender`] if it keeps its keys in order, and register it. It is then measured on the same
/// data as the others, its results are checked, and it stands beside them in the report.
///
/// ```no_run
/// use gpu_benches::compare::Contest;
/// use gpu_benches::contender::host::Tree;
/// use std::process::ExitCode;
///
/// type Mine = Tree<u32, u32>; // your structure
///
/// fn main() -> ExitCode {
///     Contest::<u32, u32>::new().register_ordered::<Mine>().main()
/// }
/// ```
///
/// `benches/examples/own_contender.rs` is a whole program.
pub struct Contest<K: Number, V: Datum> {
    entrants: Vec<Entrant<K, V>>,
}

/// A structure that takes part.
struct Entrant<K: Number, V: Datum> {
    name: &'static str,
    clock: Clock,
    steps: usize,
    measure: fn(&Scenario<'_, K, V>, &str) -> Result<(), Error>,
}

impl<K: Number, V: Datum> Default for Contest<K, V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: Number, V: Datum> Contest<K, V> {
    /// Creates a comparison of the dictionaries of this workspace and of common structures on the host.
    #[must_use]
    pub fn new() -> Self {
        Self::empty()
            .register_ordered::<GpuLsm<K, V>>()
            .register_ordered::<GpuSortedArray<K, V>>()
            .register::<GpuCuckoo<K, V>>()
            .register_ordered::<Tree<K, V>>()
            .register::<Hash<K, V>>()
            .register_ordered::<Sorted<K, V>>()
    }

    /// Creates a comparison without structures.
    #[must_use]
    pub const fn empty() -> Self {
        Self { entrants: Vec::new() }
    }

    /// Adds a structure. It replaces one of the same name.
    #[must_use]
    pub fn register<C: Contender<Key = K, Value = V>>(self) -> Self {
        self.add(Entrant {
            name: C::NAME,
            clock: C::CLOCK,
            steps: workload::STEPS,
            measure: |scenario, section| scenario.measure::<C>(section),
        })
    }

    /// Adds a structure that keeps its keys in order. It replaces one of the same name.
    #[must_use]
    pub fn register_ordered<C: OrderedContender<Key = K, Value = V>>(self) -> Self {
        self.add(Entrant {
            name: C::NAME,
            clock: C::CLOCK,
            steps: workload::STEPS + workload::ORDERED_STEPS,
            measure: |scenario, section| scenario.measure_ordered::<C>(section),
        })
    }

    fn add(mut self, entrant: Entrant<K, V>) -> Self {
        match self.entrants.iter_mut().find(|known| known.name == entrant.name) {
            Some(known) => *known = entrant,
            None => self.entrants.push(entrant),
        }
        self
    }

    /// The number of steps that [`measure`](Self::measure) counts.
    #[must_use]
    pub fn steps(&self) -> usize {
        self.entrants.iter().map(|entrant| entrant.steps).sum()
    }

    /// Measures all structures with `n` elements; those on the host with fewer, if there are many.
    ///
    /// # Errors
    /// The errors of the structures; [`Error::WrongResult`]; [`Error::Interrupted`].
    pub fn measure(&self, session: &Session, n: usize, workload: &Workload) -> Result<(), Error> {
        let of = |clock: Clock| self.entrants.iter().filter(move |entrant| entrant.clock == clock);
        let scenario = Scenario::new(session, n, workload)?;
        let measure = |entrant: &Entrant<K, V>, scenario: &Scenario<'_, K, V>| {
            (entrant.measure)(scenario, SECTION).map_err(|error| error.of(entrant.name))
        };
        of(Clock::Device).try_for_each(|entrant| measure(entrant, &scenario))?;
        let on_host = n.min(MOST_ON_HOST);
        let names: Vec<&str> = of(Clock::Host).map(|entrant| entrant.name).collect();
        // If several sizes are larger than what the host takes, it has been measured already.
        let is_done = session.has(|record| record.n == on_host as u64 && names.contains(&record.subject.as_str()));
        if is_done || names.is_empty() {
            return Ok(());
        }
        let scenario = if n > on_host {
            drop(scenario);
            Scenario::new(session, on_host, workload)?
        } else {
            scenario
        };
        of(Clock::Host).try_for_each(|entrant| measure(entrant, &scenario))
    }

    /// Runs the comparison as a program: reads the options of `gpu-benches compare` from the command line, measures, and
    /// writes the report.
    #[must_use]
    pub fn main(self) -> ExitCode {
        /// Compare dictionaries on the same data.
        #[derive(Parser)]
        struct Arguments {
            #[command(flatten)]
            compare: command::Compare,
        }
        session::stop_on_ctrl_c();
        finish(self.run(&Arguments::parse().compare))
    }

    /// Runs the comparison with these options, and writes the report.
    ///
    /// # Errors
    /// [`Error::Arguments`] if the options ask for other types; the errors of [`run`]; [`Error::File`].
    pub fn run(&self, arguments: &command::Compare) -> Result<(), Error> {
        let workload = arguments.workload(8 * size_of::<K>(), size_of::<V>())?;
        let output = arguments.common.output("compare", "GPU dictionaries compared")?;
        let options = Options {
            device: arguments.common.device.as_deref(),
            quick: arguments.quick,
            sizes: &arguments.common.sizes,
            workload,
            peers: &arguments.peers,
        };
        output.deliver(run(&options, self.steps(), |session, n, workload| self.measure(session, n, workload))?)
    }
}

/// Prints the error of a program, if there is one, and returns its exit code.
#[must_use]
pub fn finish(result: Result<(), Error>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            // The exit code of a program that was ended by Ctrl-C, by the convention of shells.
            ExitCode::from(if matches!(error, Error::Interrupted) { 130 } else { 1 })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_structure_takes_part_once() {
        let contest = Contest::<u32, u32>::empty().register::<Hash<u32, u32>>();
        let steps = contest.steps();
        assert_eq!((steps, contest.register::<Hash<u32, u32>>().steps()), (workload::STEPS, workload::STEPS));
        let both = Contest::<u32, u32>::empty().register::<Hash<u32, u32>>().register_ordered::<Tree<u32, u32>>();
        assert_eq!(both.steps(), 2 * workload::STEPS + workload::ORDERED_STEPS);
    }
}
