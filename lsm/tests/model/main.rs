//! The dictionary against a `BTreeMap`, on every device.
//!
//! `GPU_PRIMITIVES_LONG=1` makes 10,000 histories instead of a few. `GPU_PRIMITIVES_SOAK=SECONDS` adds a case that goes on for so
//! long, with as much data as the device is good for.

mod behaviour;
mod failures;
mod files;
mod histories;
mod model;
mod soak;

use behaviour::*;
use failures::*;
use files::*;
use gpu_conformance::{Case, cases, run};
use histories::*;
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut cases = cases![
        small_history,
        tiny_batches,
        batches_of_several_tiles,
        signed_and_float_keys,
        wide_keys_and_values,
        sets,
        a_long_history,
        extreme_keys,
        a_policy_asks_for_cleanups,
        reserving_and_clearing,
        bad_input_changes_nothing,
        two_streams_ask_at_once,
        a_kernel_of_ones_own,
        failed_updates,
        failed_queries,
        failed_constructions,
        round_trips,
        the_same_calls_give_the_same_file,
        damaged_files,
        crafted_files,
        long_arrays,
        carries_through_all_slots,
        failing_files,
    ]
    .to_vec();
    if std::env::var_os("GPU_PRIMITIVES_SOAK").is_some() {
        cases.push(Case { name: "soak", run: soak::soak });
    }
    run(&cases)
}
