//! The LSM compared with a `BTreeMap`, on every device: the common suite of all dictionaries, and tests of the LSM
//! alone.
//!
//! `GPU_PRIMITIVES_LONG=1` runs 10,000 histories instead of a few. `GPU_PRIMITIVES_SOAK=SECONDS` adds a case that runs
//! for this time, with as much data as suits the device.

mod behaviour;
mod failures;
mod files;
mod levels;
mod lies;
mod soak;

use behaviour::*;
use failures::*;
use files::*;
use gpu_conformance::{Case, cases, run};
use gpu_dictionary_conformance::{cases, combining_cases, ordered_cases};
use levels::Lsm;
use lies::*;
use std::process::ExitCode;

fn main() -> ExitCode {
    let own = cases![
        a_policy_asks_for_cleanups,
        reserving_and_clearing,
        many_neighbours,
        batches_are_counted,
        kernels_of_ones_own,
        failed_cleanups_and_views,
        failed_cleanups_are_told,
        insertions_of_another_device,
        crafted_files,
        files_of_version_1,
        long_arrays,
        views_and_checkpoints_after_upserts,
        carries_through_all_slots,
        carries,
        codes_of_more_bits_than_they_say,
        codes_that_change,
    ];
    let mut cases = [&cases::<Lsm>()[..], &ordered_cases::<Lsm>(), &combining_cases::<Lsm>(), own].concat();
    if std::env::var_os("GPU_PRIMITIVES_SOAK").is_some() {
        cases.push(Case::new("soak", soak::soak));
    }
    run(&cases)
}
