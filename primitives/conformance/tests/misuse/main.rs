//! Misuse: every call of the primitives in circumstances that do not fit, and with operators that lie. Each ends in an error
//! that tells why, in the right answer, or in unspecified values; no call touches memory that it was not given.

mod calls;
mod liars;
mod lies;
mod memory;
mod objects;
mod rows;
mod table;

use calls::{
    calls_after_a_fault, calls_from_two_threads, calls_in_a_recording, calls_without_memory,
    operands_of_another_device, operands_of_other_streams, wrong_lengths,
};
use gpu_conformance::{cases, run};
use liars::{digits_that_are_not_listed, operators_that_lie};
use objects::{
    copies_that_do_not_fit, events_of_another_device, numbers_that_do_not_fit, ranges_that_do_not_fit,
    sizes_that_overflow, the_host_in_a_recording,
};
use std::panic;
use std::process::ExitCode;

fn main() -> ExitCode {
    // The panics of operators are planned, and there are thousands.
    let previous = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        if info.payload_as_str() != Some(lies::PANIC) {
            previous(info);
        }
    }));
    run(cases![
        wrong_lengths,
        operands_of_other_streams,
        operands_of_another_device,
        calls_in_a_recording,
        calls_after_a_fault,
        calls_from_two_threads,
        calls_without_memory,
        operators_that_lie,
        ranges_that_do_not_fit,
        copies_that_do_not_fit,
        sizes_that_overflow,
        events_of_another_device,
        the_host_in_a_recording,
        numbers_that_do_not_fit,
        digits_that_are_not_listed,
    ])
}
