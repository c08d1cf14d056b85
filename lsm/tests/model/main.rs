//! The LSM compared with a `BTreeMap`, on every device: the common suite of all dictionaries, and tests of the LSM
//! alone.
//!
//! `GPU_PRIMITIVES_LONG=1` runs 10,000 histories instead of a few. `GPU_PRIMITIVES_SOAK=SECONDS` adds a case that runs
//! for this time, with as much data as suits the device.

mod behaviour;
mod budgets;
mod buffers;
mod failures;
mod files;
mod levels;
mod lies;
mod operators;
mod soak;

use behaviour::*;
use budgets::*;
use buffers::*;
use failures::*;
use files::*;
use gpu_conformance::{Case, cases, run};
use gpu_dictionary_conformance::{cases, combining_cases, ordered_cases};
use levels::Lsm;
use lies::*;
use operators::*;
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
        files_of_version_1,
        views_and_checkpoints_after_upserts,
        carries_through_all_slots,
        carries,
        codes_of_more_bits_than_they_say,
        codes_that_change,
        mixed_operations,
        keys_that_are_not_words,
        operations_change,
        two_threads_flush_once,
        flushes_are_not_recorded,
        buffers_of_another_device,
        multimaps_with_a_buffer,
        operators_that_cannot_be_recorded,
        operators_that_panic,
        operators_that_ask_the_dictionary,
        recordings_that_ask_the_dictionary,
        levels_that_just_fit,
        snapshots_over_moves,
        large_lookups_in_host_memory,
    ];
    // When the host flushes, and where it puts levels. Kernels of buffers and of large lookups are run by the cases above.
    let of_host_code: &[Case] = cases![
        buffers_of_1,
        upserts_with_buffers_of_33,
        buffers_of_33,
        large_buffers,
        upserts_with_large_buffers,
        ordered_queries_with_large_buffers,
        when_buffers_are_flushed,
        copies_with_a_buffer,
        failed_flushes,
        little_memory_for_a_buffer,
        budgets_of_nothing,
        budgets_of_little,
        upserts_with_budgets,
        ordered_queries_with_budgets,
        budgets_that_change,
        recovery_into_a_budget,
        long_arrays,
        large_lookups_of_other_types,
        failed_large_lookups,
        multimaps_with_a_budget,
    ];
    let of_host_code: Vec<Case> = of_host_code.iter().map(|&case| case.of_host_code()).collect();
    let files = [Case::new("crafted_files", crafted_files).of_checked_calls()];
    let mut cases =
        [&cases::<Lsm>()[..], &ordered_cases::<Lsm>(), &combining_cases::<Lsm>(), own, &files, &of_host_code].concat();
    if std::env::var_os("GPU_PRIMITIVES_SOAK").is_some() {
        cases.push(Case::new("soak", soak::soak));
    }
    run(&cases)
}
