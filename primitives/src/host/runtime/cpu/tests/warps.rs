//! The collectives of a warp, compared with their definitions.

use super::*;
use crate::form::kernel;
use crate::{thread, warp};

/// The number of operations whose results [`every_operation`] writes.
const OPERATIONS: usize = 9;

/// The lanes of `masks[warp]` call every operation with their values and arguments.
///
/// # Safety
/// Launched only by the tests of this file, on the CPU device, which detects its faults.
#[kernel(threads = 64)]
unsafe fn every_operation(masks: Global<u32>, values: Global<u32>, arguments: Global<u32>, output: GlobalMut<u32>) {
    let thread = thread::thread_idx_x() as usize;
    let mask = masks.get(thread / 32);
    if mask >> warp::lane_id() & 1 == 0 {
        return;
    }
    let (value, argument) = (values.get(thread), arguments.get(thread));
    let results: [u32; OPERATIONS] = [
        warp::ballot(mask, value & 1 == 1),
        u32::from(warp::any(mask, value & 7 == 0)),
        u32::from(warp::all(mask, value & 7 != 0)),
        warp::match_any(mask, value & 15),
        warp::match_any_u64(mask, u64::from(value & 3) << 40),
        warp::shuffle_idx(mask, value, argument),
        warp::shuffle_up(mask, value, argument % 33),
        warp::shuffle_down(mask, value, argument % 33),
        warp::shuffle_xor(mask, value, argument % 32),
    ];
    for (operation, result) in results.into_iter().enumerate() {
        output.set(operation * 64 + thread, result);
    }
}

/// Returns the expected result of `lane`; `None` if it reads a lane that does not participate.
fn expected(operation: usize, mask: u32, values: &[u32], arguments: &[u32], lane: usize) -> Option<u32> {
    let lanes = || (0..32).filter(|lane| mask >> lane & 1 == 1);
    let those =
        |holds: &dyn Fn(u32) -> bool| lanes().fold(0, |votes, lane| votes | u32::from(holds(values[lane])) << lane);
    let value = values[lane];
    let from = |source: usize| (mask >> source & 1 == 1).then(|| values[source]);
    let argument = arguments[lane] as usize;
    match operation {
        0 => Some(those(&|value| value & 1 == 1)),
        1 => Some(u32::from(those(&|value| value & 7 == 0) != 0)),
        2 => Some(u32::from(those(&|value| value & 7 != 0) == mask)),
        3 => Some(those(&|other| other & 15 == value & 15)),
        4 => Some(those(&|other| other & 3 == value & 3)),
        5 => from(argument % 32),
        6 => from(lane.checked_sub(argument % 33 % 32).unwrap_or(lane)),
        7 => from(Some(lane + argument % 33 % 32).filter(|&source| source < 32).unwrap_or(lane)),
        _ => from(lane ^ (argument % 32)),
    }
}

#[test]
fn operations_match_their_definition() {
    let mut numbers = crate::host::executor::Random::new(11);
    for device in all() {
        for partial in [false, true] {
            let masks = [0, 0].map(|_| if partial { numbers.next() as u32 | 1 } else { !0 });
            let values: Vec<u32> = (0..64).map(|_| numbers.next() as u32).collect();
            let mut arguments: Vec<u32> = (0..64).map(|_| numbers.below(100)).collect();
            // With a partial mask, shuffles read lane 0 or the lane itself: reading a lane outside the mask is a fault.
            if partial {
                arguments.iter_mut().for_each(|argument| *argument = *argument / 50 * 32);
            }
            let output = Memory::zeroed(&device, OPERATIONS * 64);
            let (masks_there, values_there) = (Memory::new(&device, &masks), Memory::new(&device, &values));
            let arguments_there = Memory::new(&device, &arguments);
            let kernel =
                EveryOperation::new(masks_there.view(), values_there.view(), arguments_there.view(), output.view_mut());
            device.run(kernel, 1).unwrap();
            let output = output.read();
            for (operation, thread) in
                (0..OPERATIONS).flat_map(|operation| (0..64).map(move |thread| (operation, thread)))
            {
                let (mask, warp) = (masks[thread / 32], thread & !31);
                if mask >> (thread % 32) & 1 == 0 {
                    continue;
                }
                let (values, arguments) = (&values[warp..warp + 32], &arguments[warp..warp + 32]);
                let expected = expected(operation, mask, values, arguments, thread % 32);
                assert_eq!(Some(output[operation * 64 + thread]), expected, "operation {operation}, thread {thread}");
            }
        }
    }
}

/// Halves, quarters and odd sets of lanes call different numbers of collectives. The whole warp calls some in between.
///
/// # Safety
/// Launched only by the tests of this file, on the CPU device, which detects its faults.
#[kernel(threads = 64)]
unsafe fn uneven(output: GlobalMut<u32>, rounds: u32) {
    let lane = warp::lane_id();
    let half = if lane < 16 { 0xffff } else { 0xffff_0000 };
    let quarter = 0xff << (lane & !7);
    let mut sum = 0;
    for round in 0..rounds {
        let repeats = if lane < 16 { 5 } else { 1 + round % 3 };
        for _ in 0..repeats {
            sum += warp::ballot(half, true).count_ones();
        }
        if lane % 16 < 8 {
            sum += warp::shuffle_xor(quarter, lane, 1);
            warp::sync_warp(quarter);
        }
        if lane != 31 {
            sum += warp::match_any(!(1 << 31), lane / 4).count_ones();
        }
        sum += warp::ballot(warp::FULL, lane.is_multiple_of(2)).count_ones();
    }
    output.set((thread::block_idx_x() * 64 + thread::thread_idx_x()) as usize, sum);
}

#[test]
fn masks_may_nest_and_be_uneven() {
    let rounds = 6;
    let expected = |lane: u32| {
        (0..rounds).fold(0, |sum, round| {
            let repeats = if lane < 16 { 5 } else { 1 + round % 3 };
            let matched = if lane == 31 {
                0
            } else if lane >= 28 {
                3
            } else {
                4
            };
            sum + 16 * repeats + if lane % 16 < 8 { lane ^ 1 } else { 0 } + matched + 16
        })
    };
    for device in all() {
        let output = Memory::zeroed(&device, 192);
        device.run(Uneven::new(output.view_mut(), rounds), 3).unwrap();
        assert_eq!(output.read(), (0..192).map(|thread| expected(thread % 32)).collect::<Vec<u32>>());
    }
}
