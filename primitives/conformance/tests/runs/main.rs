//! Runs of equal neighbours against loops on the host.

mod calls;
mod common;
mod differences;
mod encode;
mod reduce;
mod unique;

use calls::{in_a_graph, large, lengths_on_the_device, misaligned_slices, sources, wrong_lengths};
use differences::{differences_of_every_size, small_differences};
use encode::{
    adversarial_schedules_of_encode, decode_into_less_room_and_more, decode_lengths_of_all_kinds, decode_of_every_size,
    decode_sums_that_overflow, encode_of_every_size, encode_patterns, small_decode, small_encode,
};
use gpu_conformance::{cases, run};
use reduce::{
    adversarial_schedules_of_reduce, floats_are_deterministic, reduce_in_order, reduce_of_every_size, reduce_patterns,
    small_reduce_by_key,
};
use std::process::ExitCode;
use unique::{
    custom_equalities, not_a_number, small_unique, unique_by_key_of_every_size, unique_of_every_size, unique_patterns,
};

fn main() -> ExitCode {
    run(cases![
        small_unique,
        small_encode,
        small_decode,
        small_reduce_by_key,
        small_differences,
        unique_patterns,
        unique_of_every_size,
        unique_by_key_of_every_size,
        custom_equalities,
        not_a_number,
        encode_patterns,
        encode_of_every_size,
        decode_of_every_size,
        decode_lengths_of_all_kinds,
        decode_into_less_room_and_more,
        decode_sums_that_overflow,
        reduce_patterns,
        reduce_of_every_size,
        reduce_in_order,
        floats_are_deterministic,
        differences_of_every_size,
        misaligned_slices,
        sources,
        lengths_on_the_device,
        wrong_lengths,
        in_a_graph,
        large,
        adversarial_schedules_of_encode,
        adversarial_schedules_of_reduce,
    ])
}
