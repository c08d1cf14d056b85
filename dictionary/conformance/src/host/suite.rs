//! The list of all cases.

use super::behaviour::*;
use super::copies::*;
use super::failures::*;
use super::files::*;
use super::histories::*;
use super::misuse::*;
use super::model::Family;
use super::streams::*;
use super::upserts::*;
use gpu_conformance::Case;
use gpu_dictionary::Ordered;

/// Creates a case for each function, for a family of dictionaries.
macro_rules! cases_of {
    ($family:ident: $($function:ident),* $(,)?) => {
        vec![$(Case::new(stringify!($function), $function::<$family>)),*]
    };
}

/// The cases that every dictionary must pass.
#[must_use]
pub fn cases<F: Family<Of<u32, u32>: Send + Sync>>() -> Vec<Case> {
    let results = cases_of![
        F: small_history,
        tiny_batches,
        batches_of_several_tiles,
        signed_and_float_keys,
        wide_keys_and_values,
        sets,
        a_long_history,
        extreme_keys,
        clearing,
        the_same_calls_give_the_same_file,
        copies_are_independent,
    ];
    let calls = cases_of![
        F: bad_input_changes_nothing,
        things_of_another_device,
        misused_methods,
        methods_from_two_threads,
        two_streams_ask_at_once,
        pairs_of_operations_on_two_streams,
        threads_and_streams_at_random,
        failed_updates,
        failed_queries,
        failed_constructions,
        round_trips,
        updates_are_not_recorded,
        copies_are_queried_while_updates_go_on,
    ];
    let host = cases_of![F: damaged_files, values_of_other_types, failing_files];
    let alone = Case::new("copies_free_their_memory", copies_free_their_memory::<F>).alone();
    results
        .into_iter()
        .chain(calls.into_iter().map(Case::of_checked_calls))
        .chain(host.into_iter().map(Case::of_host_code))
        .chain([alone.of_checked_calls()])
        .collect()
}

/// The additional cases for a dictionary whose values can be combined.
#[must_use]
pub fn combining_cases<F: Combining>() -> Vec<Case> {
    let results = cases_of![
        F: small_upserts,
        upserts_among_other_updates,
        upserts_of_few_keys,
        operations_that_are_not_commutative,
        upserts_of_floats,
        upserts_of_sets,
    ];
    let calls = cases_of![F: failed_upserts, upserts_are_saved, misused_upserts];
    results.into_iter().chain(calls.into_iter().map(Case::of_checked_calls)).collect()
}

/// The additional cases for a dictionary that keeps its keys in order.
#[must_use]
pub fn ordered_cases<F: Family<Of<u32, u32>: Ordered>>() -> Vec<Case> {
    let calls = cases_of![F: failed_ordered_queries, misused_ordered_methods];
    let alone = Case::new("copies_take_no_memory", copies_take_no_memory::<F>).alone();
    cases_of![F: intervals_of_different_lengths, intervals_are_reduced]
        .into_iter()
        .chain(calls.into_iter().chain([alone]).map(Case::of_checked_calls))
        .collect()
}

/// The cases for a dictionary that is made of another one. Such a dictionary is host code: the kernels that it launches belong
/// to primitives and to the other dictionary. So only some of the cases run on devices that simulate kernels.
#[must_use]
pub fn composed(cases: Vec<Case>) -> Vec<Case> {
    const SIMULATED: [&str; 5] = ["small_history", "sets", "extreme_keys", "failed_updates", "intervals_are_reduced"];
    let of_host_code = |case: Case| if SIMULATED.contains(&case.name) { case } else { case.of_host_code() };
    cases.into_iter().map(of_host_code).collect()
}
