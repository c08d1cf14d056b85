//! Sharded dictionaries of one rank compared with a `BTreeMap`, on every device: the common suite of all dictionaries.

mod common;

use common::{Cuckoo, Lsm, Plain, SortedArray};
use gpu_conformance::{Case, run};
use gpu_dictionary_conformance::{cases, combining_cases, composed, ordered_cases};
use std::process::ExitCode;

/// What the shards alone decide is left to their own tests. Queries of several shards are never recorded: `ranks.rs` tests what
/// they say.
const LEFT_OUT: [&str; 5] = [
    "updates_are_not_recorded",
    "threads_and_streams_at_random",
    "copies_are_queried_while_updates_go_on",
    "upserts_of_few_keys",
    "upserts_of_floats",
];

/// The host does the same for all kinds of shards. These cases are about what depends on the kind.
const OF_EACH: [&str; 9] = [
    "small_history",
    "wide_keys_and_values",
    "sets",
    "clearing",
    "failed_updates",
    "round_trips",
    "copies_are_independent",
    "small_upserts",
    "failed_upserts",
];

/// A table of plain keys differs from a cuckoo table in what an update does, and in what a failed one leaves. The suite of that table
/// makes each allocation fail where threads are simulated.
const OF_PLAIN_KEYS: [&str; 4] = ["small_history", "sets", "failed_updates", "failed_upserts"];

fn some(cases: Vec<Case>, is_chosen: impl Fn(&str) -> bool) -> Vec<Case> {
    cases.into_iter().filter(|case| is_chosen(case.name)).collect()
}

fn named(cases: Vec<Case>, kind: &str) -> Vec<Case> {
    let name = |name: &str| -> &'static str { Box::leak(format!("{kind}::{name}").into_boxed_str()) };
    composed(cases).into_iter().map(|case| Case { name: name(case.name), ..case }).collect()
}

/// Leaves simulated threads out of a case.
fn on_hosts(cases: Vec<Case>, name: &str) -> Vec<Case> {
    cases.into_iter().map(|case| if case.name == name { case.of_host_code() } else { case }).collect()
}

fn main() -> ExitCode {
    let lsm = [cases::<Lsm>(), ordered_cases::<Lsm>(), combining_cases::<Lsm>()].concat();
    let array = [cases::<SortedArray>(), combining_cases::<SortedArray>()].concat();
    let cuckoo = [cases::<Cuckoo>(), combining_cases::<Cuckoo>()].concat();
    let plain = [cases::<Plain>(), combining_cases::<Plain>()].concat();
    run(&[
        named(some(lsm, |name| !LEFT_OUT.contains(&name)), "lsm"),
        named(some(array, |name| OF_EACH.contains(&name)), "sorted_array"),
        named(some(cuckoo, |name| OF_EACH.contains(&name)), "cuckoo"),
        on_hosts(named(some(plain, |name| OF_PLAIN_KEYS.contains(&name)), "plain"), "plain::failed_updates"),
    ]
    .concat())
}
