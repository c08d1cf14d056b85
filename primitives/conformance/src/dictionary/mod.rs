//! One suite for all dictionaries: what they promise through the traits, compared with a `BTreeMap`.
//!
//! A structure's tests say what is its own in a [`Family`], and run [`cases`], and [`ordered_cases`] if it knows the order of
//! its keys. The histories are the same for all.

mod behaviour;
mod failures;
mod files;
mod histories;
mod model;
mod streams;

pub use behaviour::{a_join, a_kernel_of_ones_own};
pub use failures::{Input, fail};
pub use files::{Failing, refused, round_trip, saved};
pub use model::{Family, Modelled, Questions, Random, Value, check_order, extremes, is_long, upload_values};

use crate::Case;
use behaviour::*;
use failures::*;
use files::*;
use gpu_primitives::dictionary::Ordered;
use histories::*;
use streams::*;

/// A case for each function, for a family of dictionaries.
macro_rules! cases_of {
    ($family:ident: $($function:ident),* $(,)?) => {
        vec![$(Case::new(stringify!($function), $function::<$family>)),*]
    };
}

/// What every dictionary must pass.
#[must_use]
pub fn cases<F: Family<Of<u32, u32>: Send + Sync>>() -> Vec<Case> {
    cases_of![
        F: small_history,
        tiny_batches,
        batches_of_several_tiles,
        signed_and_float_keys,
        wide_keys_and_values,
        sets,
        a_long_history,
        extreme_keys,
        clearing,
        bad_input_changes_nothing,
        things_of_another_device,
        two_streams_ask_at_once,
        pairs_of_operations_on_two_streams,
        threads_and_streams_at_random,
        failed_updates,
        failed_queries,
        failed_constructions,
        round_trips,
        the_same_calls_give_the_same_file,
        damaged_files,
        values_of_other_types,
        updates_are_not_recorded,
        failing_files,
    ]
}

/// What those must pass beside it that know the order of their keys.
#[must_use]
pub fn ordered_cases<F: Family<Of<u32, u32>: Ordered>>() -> Vec<Case> {
    cases_of![F: intervals_of_different_lengths, failed_ordered_queries]
}
