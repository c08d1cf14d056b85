//! The comparison of the dictionaries with CPU structures on the same data, and the primitives they are built on.

mod contest;
mod workload;

pub use contest::{Contest, finish};
pub use workload::Workload;

use crate::command::Peers;
use crate::peers::{self, Told};
use crate::primitives;
use crate::record::power;
use crate::session::Session;
use crate::{Error, Run};

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
    /// The numbers of elements; if empty, one that suits the device.
    pub sizes: &'a [usize],
    /// The workload.
    pub workload: Workload,
    /// Programs that measure the same rows with other structures.
    pub peers: &'a Peers,
}

/// Measures everything. `dictionaries` must measure a [`Contest`] with the key and value types of the workload, which
/// counts `steps` steps. The program passes this function, so that the kernels of all types are compiled once and not again
/// for the library's tests.
///
/// # Errors
/// Any error before the first measurement. Later errors are in [`Run::outcome`], next to the measurements so far.
pub fn run(
    options: &Options<'_>,
    steps: usize,
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
    let sizes = if options.sizes.is_empty() { vec![default] } else { options.sizes.to_vec() };
    let workload = &options.workload;
    let largest = sizes.iter().copied().max().unwrap_or(default);
    for &n in &sizes {
        workload.check(n)?;
    }
    let peers = options.peers.open()?;
    // Data, queries and answers, a dictionary, and several times as much for its merges and sorts.
    session.expect_room(largest, 12 * (workload.key_bits / 8 + workload.value_bytes))?;
    session.tell("elements", sizes.iter().map(|&n| power(n)).collect::<Vec<_>>().join(", "));
    session.tell("workload", workload.describe(largest));
    session.tell("batch", workload.batch_in_words());
    session.tell(
        "on the host",
        format!("the structures on the host have {} elements and one thread", power(largest.min(MOST_ON_HOST))),
    );
    session.expect_steps(sizes.len() * (steps + primitives::steps()));
    let measure = || {
        for &n in &sizes {
            dictionaries(&session, n, workload)?;
            primitives::measure_all(&session, n)?;
        }
        let told = Told { keys: workload.keys, key_bits: workload.key_bits, value_bytes: workload.value_bytes };
        peers.iter().try_for_each(|peer| {
            peers::measure(&session, peer, SECTION, told)?;
            peers::measure(&session, peer, primitives::SECTION, Told::default())
        })
    };
    let outcome = measure();
    Ok(Run { recording: session.finish(), outcome })
}
