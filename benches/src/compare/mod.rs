//! The comparison of the dictionaries with CPU structures on the same data, and the primitives they are built on.

mod workload;

pub use workload::Workload;

use crate::contender::host::{Hash, Sorted, Tree};
use crate::data::{Datum, Number};
use crate::primitives;
use crate::record::power;
use crate::session::Session;
use crate::{Error, Run};
use gpu_cuckoo::GpuCuckoo;
use gpu_lsm::GpuLsm;
use gpu_sorted_array::GpuSortedArray;
use workload::Scenario;

/// The section of the records.
pub const SECTION: &str = "compare";

/// The most elements of structures on the host: they are slow, and the comparison should take seconds.
const MOST_ON_HOST: usize = 1 << 19;

/// What to measure.
pub struct Options<'a> {
    /// The name of the device; `None` for the default device.
    pub device: Option<&'a str>,
    /// Whether to measure quickly, with fewer elements and runs.
    pub quick: bool,
    /// The number of elements; `None` for a size that suits the device.
    pub size: Option<usize>,
    /// The workload.
    pub workload: Workload,
}

/// Measures everything. `dictionaries` must call [`dictionaries`] with the key and value types of the workload. The
/// program passes this function, so that the kernels of all types are compiled once and not again for the library's
/// tests.
///
/// # Errors
/// Any error before the first measurement. Later errors are in [`Run::outcome`], next to the measurements so far.
pub fn run(
    options: &Options<'_>,
    dictionaries: impl Fn(&Session, usize, &Workload) -> Result<(), Error>,
) -> Result<Run, Error> {
    let mut session = Session::open(options.device, 1)?;
    (session.warm_ups, session.runs) = match (session.is_gpu(), options.quick) {
        (true, false) => (2, 7),
        (true, true) => (1, 3),
        (false, false) => (1, 3),
        (false, true) => (0, 1),
    };
    let default = match (session.is_gpu(), options.quick) {
        (true, false) => 1 << 24,
        (true, true) => 1 << 20,
        (false, false) => 1 << 17,
        (false, true) => 1 << 12,
    };
    let n = options.size.unwrap_or(default);
    let workload = &options.workload;
    workload.check(n)?;
    // Data, queries and answers, a dictionary, and several times as much for its merges and sorts.
    session.expect_room(n, 12 * (workload.key_bits / 8 + workload.value_bytes))?;
    session.tell("elements", power(n));
    session.tell("workload", workload.describe(n));
    session.tell(
        "on the host",
        format!("the structures on the host have {} elements and one thread", power(n.min(MOST_ON_HOST))),
    );
    session.expect_steps(6 * workload::STEPS + 4 * workload::ORDERED_STEPS + primitives::steps());
    let measure = || {
        dictionaries(&session, n, workload)?;
        primitives::measure_all(&session, n)
    };
    let outcome = measure();
    Ok(Run { recording: session.finish(), outcome })
}

/// Measures the dictionaries and the CPU structures with `n` elements of these types.
///
/// # Errors
/// The errors of the dictionaries; [`Error::WrongResult`]; [`Error::Interrupted`].
pub fn dictionaries<K: Number, V: Datum>(session: &Session, n: usize, workload: &Workload) -> Result<(), Error> {
    let scenario = Scenario::<K, V>::new(session, n, workload)?;
    scenario.measure_ordered::<GpuLsm<K, V>>(SECTION)?;
    scenario.measure_ordered::<GpuSortedArray<K, V>>(SECTION)?;
    scenario.measure::<GpuCuckoo<K, V>>(SECTION)?;
    let scenario = if n > MOST_ON_HOST {
        drop(scenario);
        Scenario::new(session, MOST_ON_HOST, workload)?
    } else {
        scenario
    };
    scenario.measure_ordered::<Tree<K, V>>(SECTION)?;
    scenario.measure::<Hash<K, V>>(SECTION)?;
    scenario.measure_ordered::<Sorted<K, V>>(SECTION)
}
