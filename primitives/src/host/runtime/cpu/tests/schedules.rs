//! Schedules: every order gives the same result, different seeds give different orders, and blocks wait for blocks.

use super::*;
use crate::arch::{Order, Rmw, Scope};
use crate::form::kernel;
use crate::view::shared_bytes;
use crate::{SharedMemory, thread, warp};
use std::collections::HashSet;

/// Every block takes a ticket.
///
/// # Safety
/// Launched only by the tests of this file, on the CPU device, which detects its faults.
#[kernel(threads = 32)]
unsafe fn tickets(counter: GlobalMut<u32>, order: GlobalMut<u32>) {
    if thread::thread_idx_x() == 0 {
        let ticket = counter.atomic_add(0, 1, Scope::Gpu, Order::Relaxed);
        order.set(ticket as usize, thread::block_idx_x());
    }
}

fn ticket_order(device: &CpuDevice) -> Vec<u32> {
    let (counter, order) = (Memory::zeroed(device, 1), Memory::zeroed(device, 12));
    device.run(Tickets::new(counter.view_mut(), order.view_mut()), 12).unwrap();
    order.read()
}

#[test]
fn seeds_give_orders() {
    let orders: HashSet<_> = (0..50).map(|seed| ticket_order(&random(seed))).collect();
    assert!(orders.len() > 45);
    for seed in 0..10 {
        let (first, second) = (random(seed), random(seed));
        let runs = |device: &CpuDevice| [ticket_order(device), ticket_order(device), ticket_order(device)];
        assert_eq!(runs(&first), runs(&second));
        assert_eq!(ticket_order(&checked()), (0..12).collect::<Vec<_>>());
    }
}

/// An exclusive sum over blocks with dynamic tickets and decoupled look-back: status 0 is unknown, odd is the sum of
/// one block, even is the sum of all blocks up to it.
///
/// # Safety
/// Launched only by the tests of this file, on the CPU device, which detects its faults.
#[kernel(threads = 64, shared = shared_bytes::<u32>(64) + shared_bytes::<u32>(2))]
unsafe fn look_back(
    input: Global<u32>,
    ticket: GlobalMut<u32>,
    status: GlobalMut<u64>,
    output: GlobalMut<u32>,
    hint: u32,
) {
    let mut memory = SharedMemory::new();
    let sums = memory.take::<u32>(64);
    let shared = memory.take::<u32>(2);
    let thread = thread::thread_idx_x() as usize;
    if thread == 0 {
        shared.set(0, ticket.atomic_add(0, 1, Scope::Gpu, Order::Relaxed));
    }
    thread::sync_threads();
    let tile = shared.get(0) as usize;
    let value = input.get(tile * 64 + thread);
    let mut sum = value;
    for step in 0..5 {
        let below = warp::shuffle_up(warp::FULL, sum, 1 << step);
        if warp::lane_id() >= 1 << step {
            sum += below;
        }
    }
    sums.set(thread, sum);
    thread::sync_threads();
    if thread >= 32 {
        sum += sums.get(31);
    }
    if thread == 63 {
        let word = |kind: u64, sum: u32| u64::from(sum) << 2 | kind;
        if tile == 0 {
            status.atomic_store(0, word(2, sum), Scope::Gpu, Order::Release);
            shared.set(1, 0);
        } else {
            status.atomic_store(tile, word(1, sum), Scope::Gpu, Order::Release);
            let (mut before, mut at) = (0, tile - 1);
            loop {
                let found = status.atomic_load(at, Scope::Gpu, Order::Acquire);
                match found & 3 {
                    0 if hint != 0 => thread::spin_hint(),
                    0 => {}
                    1 => (before, at) = (before + (found >> 2) as u32, at - 1),
                    _ => {
                        before += (found >> 2) as u32;
                        break;
                    }
                }
            }
            status.atomic_store(tile, word(2, before + sum), Scope::Gpu, Order::Release);
            shared.set(1, before);
        }
    }
    thread::sync_threads();
    output.set(tile * 64 + thread, shared.get(1) + sum - value);
}

#[test]
fn look_back_works_in_every_order() {
    let blocks = 20;
    let input: Vec<u32> = (0..blocks * 64).map(|i| i * 7 % 13).collect();
    let expected: Vec<u32> = input.iter().scan(0, |sum, value| Some(std::mem::replace(sum, *sum + value))).collect();
    for device in (0..200).map(random).chain(all()) {
        for hint in [1, 0] {
            let (ticket, status) = (Memory::zeroed(&device, 1), Memory::zeroed(&device, blocks as usize));
            let output = Memory::uninitialised(&device, input.len());
            let input = Memory::new(&device, &input);
            let kernel = LookBack::new(input.view(), ticket.view_mut(), status.view_mut(), output.view_mut(), hint);
            device.run(kernel, blocks).unwrap();
            assert_eq!(output.read(), expected);
        }
    }
}

/// A barrier of the whole grid: all blocks have to be resident at once.
///
/// # Safety
/// Launched only by the tests of this file, on the CPU device, which detects its faults.
#[kernel(threads = 32)]
unsafe fn meet(arrived: GlobalMut<u32>, output: GlobalMut<u32>) {
    let (block, blocks) = (thread::block_idx_x(), thread::grid_dim_x());
    if thread::thread_idx_x() == 0 {
        output.set(block as usize, block);
        arrived.atomic_add(0, 1, Scope::Gpu, Order::AcqRel);
        while arrived.atomic_load(0, Scope::Gpu, Order::Acquire) < blocks {
            thread::spin_hint();
        }
        let next = (block + 1) % blocks;
        output.set((blocks + block) as usize, output.get(next as usize));
    }
}

#[test]
fn blocks_that_wait_for_each_other_become_resident_together() {
    for device in all() {
        let (arrived, output) = (Memory::zeroed(&device, 1), Memory::zeroed(&device, 40));
        device.run(Meet::new(arrived.view_mut(), output.view_mut()), 20).unwrap();
        assert_eq!(output.read()[20..], (1..20).chain([0]).collect::<Vec<u32>>());
    }
}

/// All read-modify-writes, on both memories.
///
/// # Safety
/// Launched only by the tests of this file, on the CPU device, which detects its faults.
#[kernel(threads = 64, shared = 8 * 8)]
unsafe fn updates(words: GlobalMut<i64>, output: GlobalMut<i64>) {
    const OPERATIONS: [Rmw; 6] = [Rmw::Add, Rmw::Min, Rmw::Max, Rmw::And, Rmw::Or, Rmw::Xor];
    let shared = SharedMemory::new().take::<i64>(8);
    let thread = thread::thread_idx_x() as usize;
    if thread < 6 {
        shared.atomic_store(thread, -5);
    }
    thread::sync_threads();
    let value = (thread as i64 - 30) * 3;
    for (index, operation) in OPERATIONS.into_iter().enumerate() {
        shared.atomic_rmw(operation, index, value);
        words.atomic_rmw(operation, index, value, Scope::Gpu, Order::Relaxed);
    }
    thread::sync_threads();
    if thread < 6 {
        output.set(thread, shared.atomic_load(thread));
    }
}

#[test]
fn updates_are_complete() {
    let values = || (0..64).map(|thread| (thread - 30) * 3);
    let expected: [i64; 6] = [
        -5 + values().sum::<i64>(),
        values().min().unwrap(),
        values().max().unwrap(),
        values().fold(-5, |a, b| a & b),
        values().fold(-5, |a, b| a | b),
        values().fold(-5, |a, b| a ^ b),
    ];
    for device in all() {
        let (words, output) = (Memory::new(&device, &[-5i64; 6]), Memory::zeroed(&device, 6));
        device.run(Updates::new(words.view_mut(), output.view_mut()), 1).unwrap();
        assert_eq!((words.read(), output.read()), (expected.to_vec(), expected.to_vec()));
    }
}

/// Every thread increments a counter.
///
/// # Safety
/// Launched only by the tests of this file, on the CPU device, which detects its faults.
#[kernel(threads = 64)]
unsafe fn count(counter: GlobalMut<u32>) {
    counter.atomic_add(0, 1, Scope::Gpu, Order::Relaxed);
    thread::sync_threads();
}

#[test]
fn many_threads_may_launch_at_once() {
    for device in [fast(), checked(), random(3)] {
        std::thread::scope(|scope| {
            for _ in 0..100 {
                scope.spawn(|| {
                    let counter = Memory::zeroed(&device, 1);
                    for _ in 0..5 {
                        device.run(Count::new(counter.view_mut()), 7).unwrap();
                    }
                    assert_eq!(counter.read(), [5 * 7 * 64]);
                });
            }
        });
        assert_eq!(device.used(), 0);
    }
}
