//! Unordered accesses are races; the same accesses with an order are not.

use super::*;
use crate::arch::{Cache, Order, Scope};
use crate::form::kernel;
use crate::host::executor::{Access, FaultKind};
use crate::{SharedMemory, thread, warp};

/// How the read is ordered after the write.
const NOTHING: u32 = 0;
const BARRIER: u32 = 1;
const WARP: u32 = 2;
const SHUFFLE: u32 = 3;

/// Every thread writes an element of shared memory and reads the element of the thread `distance` above.
///
/// # Safety
/// Launched only by the tests of this file, on the CPU device, which detects its faults.
#[kernel(threads = 64, shared = 64 * 4)]
unsafe fn exchange(output: GlobalMut<u32>, distance: u32, order: u32) {
    let memory = SharedMemory::new().take::<u32>(64);
    let thread = thread::thread_idx_x();
    memory.set(thread as usize, thread); // write
    match order {
        BARRIER => thread::sync_threads(),
        WARP => warp::sync_warp(warp::FULL),
        SHUFFLE => _ = warp::shuffle_idx(warp::FULL, thread, 0),
        _ => {}
    }
    let other = memory.get(((thread + distance) % 64) as usize); // read
    output.set((thread::block_idx_x() * 64 + thread) as usize, other);
}

fn race(fault: &Fault) -> (&str, usize, [Access; 2], u32, u32) {
    match &fault.kind {
        FaultKind::Race { buffer, index, access, other_block, other_thread, other_access, .. } => {
            (buffer, *index, [*access, *other_access], *other_block, *other_thread)
        }
        other => panic!("not a race: {other}"),
    }
}

#[test]
fn without_a_barrier_neighbours_race() {
    for device in all_checked() {
        for order in [NOTHING, SHUFFLE, WARP] {
            let output = Memory::zeroed(&device, 128);
            let caught = fault(&device, Exchange::new(output.view_mut(), 40, order), 2);
            // In order, thread 0 reads before thread 40 writes. In other schedules, either may come first.
            let (buffer, index, accesses, other_block, other_thread) = match &caught.kind {
                // The read may also come before any write.
                FaultKind::Uninitialised { buffer, index } => {
                    assert_eq!(
                        (buffer.as_str(), *index as u32),
                        ("shared memory at byte 0", (caught.thread + 40) % 64)
                    );
                    continue;
                }
                _ => race(&caught),
            };
            assert_eq!(buffer, "shared memory at byte 0");
            assert_eq!(other_block, caught.block);
            let (reader, writer) = match accesses {
                [Access::Read, Access::Write] => (caught.thread, other_thread),
                [Access::Write, Access::Read] => (other_thread, caught.thread),
                other => panic!("{other:?}"),
            };
            assert_eq!((index as u32, (reader + 40) % 64), (writer, writer));
        }
        let output = Memory::zeroed(&device, 128);
        device.run(Exchange::new(output.view_mut(), 40, BARRIER), 2).unwrap();
        assert_eq!(output.read()[..64], (0..64).map(|i| (i + 40) % 64).collect::<Vec<u32>>());
    }
}

/// Lane 0 writes, lane 1 reads.
///
/// # Safety
/// Launched only by the tests of this file, on the CPU device, which detects its faults.
#[kernel(threads = 32, shared = 16)]
unsafe fn within_warp(output: GlobalMut<u32>, order: u32) {
    let memory = SharedMemory::new().take::<u32>(4);
    let lane = warp::lane_id();
    if lane == 0 {
        memory.set(2, 9);
    }
    match order {
        WARP => warp::sync_warp(warp::FULL),
        SHUFFLE => _ = warp::ballot(warp::FULL, true),
        _ => {}
    }
    if lane == 1 {
        output.set(0, memory.get(2)); // read
    }
}

#[test]
fn lanes_need_sync_warp() {
    for device in all_checked() {
        let output = Memory::zeroed(&device, 1);
        // A vote makes the lanes wait for each other, but does not order memory.
        let caught = fault(&device, WithinWarp::new(output.view_mut(), SHUFFLE), 1);
        assert_eq!(caught.thread, 1);
        assert_eq!(race(&caught), ("shared memory at byte 0", 2, [Access::Read, Access::Write], 0, 0));
        assert!(line(&caught).ends_with("// read"));
        device.run(WithinWarp::new(output.view_mut(), WARP), 1).unwrap();
        assert_eq!(output.read(), [9]);
    }
}

/// Threads 0 and 40 of the first `blocks` blocks write the same element of global memory.
///
/// # Safety
/// Launched only by the tests of this file, on the CPU device, which detects its faults.
#[kernel(threads = 64)]
unsafe fn collide(data: GlobalMut<u32>, within: u32) {
    let thread = thread::thread_idx_x();
    let (a, b) = if within != 0 { (0, 40) } else { (0, 0) };
    if thread == a || thread == b {
        data.set(3, thread);
    }
}

#[test]
fn global_memory_races_within_a_block() {
    let device = checked();
    let data = Memory::zeroed(&device, 4);
    let caught = fault(&device, Collide::new(data.view_mut(), 1), 1);
    assert_eq!(caught.thread, 40);
    assert_eq!(race(&caught), ("data", 3, [Access::Write, Access::Write], 0, 0));
    assert!(caught.to_string().contains("race on `data` at index 3"), "{caught}");
}

#[test]
fn global_memory_races_between_blocks() {
    for device in all_checked() {
        let data = Memory::zeroed(&device, 4);
        let caught = fault(&device, Collide::new(data.view_mut(), 0), 2);
        assert_eq!(race(&caught), ("data", 3, [Access::Write, Access::Write], 1 - caught.block, 0));
        // One block alone is fine, and so is the next launch.
        device.run(Collide::new(data.view_mut(), 0), 1).unwrap();
        device.run(Collide::new(data.view_mut(), 0), 1).unwrap();
    }
}

/// Neighbouring bytes are different memory.
///
/// # Safety
/// Launched only by the tests of this file, on the CPU device, which detects its faults.
#[kernel(threads = 64)]
unsafe fn bytes(data: GlobalMut<u8>, stride: u32) {
    let index = thread::thread_idx_x() / stride;
    data.set(index as usize, index as u8);
}

#[test]
fn bytes_of_a_word_do_not_race() {
    for device in all_checked() {
        let data = Memory::zeroed(&device, 64);
        device.run(Bytes::new(data.view_mut(), 1), 1).unwrap();
        assert_eq!(data.read(), (0..64).collect::<Vec<u8>>());
        let caught = fault(&device, Bytes::new(data.view_mut(), 2), 1);
        let (buffer, index, _, _, other) = race(&caught);
        assert_eq!((buffer, index as u32, other), ("data", caught.thread / 2, caught.thread ^ 1));
    }
}

/// # Safety
/// Launched only by the tests of this file, on the CPU device, which detects its faults.
#[kernel(threads = 32)]
unsafe fn read_only(data: GlobalMut<u32>) {
    let lane = thread::thread_idx_x() as usize;
    data.set(lane, 1);
    thread::sync_threads();
    let _ = data.as_const().load(lane ^ 1, Cache::ReadOnly);
}

#[test]
fn the_read_only_path_sees_no_writes() {
    let device = checked();
    let data = Memory::zeroed(&device, 32);
    let caught = fault(&device, ReadOnly::new(data.view_mut()), 1);
    assert_eq!(race(&caught).2, [Access::Read, Access::Write]);
}

/// How a flag publishes a payload.
const RELEASE_ACQUIRE: u32 = 0;
const RELAXED: u32 = 1;
const FENCES: u32 = 2;
const ONLY_RELEASE: u32 = 3;
const THROUGH_RMW: u32 = 4;
const BLOCK_SCOPE: u32 = 5;
const BLOCK_FENCES: u32 = 6;

/// Block 1 writes a payload and sets a flag. Block 0 waits for the flag and reads the payload.
///
/// # Safety
/// Launched only by the tests of this file, on the CPU device, which detects its faults.
#[kernel(threads = 64)]
unsafe fn message(payload: GlobalMut<u32>, flag: GlobalMut<u32>, output: GlobalMut<u32>, how: u32) {
    let thread = thread::thread_idx_x();
    let (scope, fences) = match how {
        BLOCK_SCOPE => (Scope::Block, false),
        FENCES | BLOCK_FENCES => (Scope::Gpu, true),
        _ => (Scope::Gpu, false),
    };
    let fence = if how == BLOCK_FENCES { Scope::Block } else { Scope::Gpu };
    let release = matches!(how, RELEASE_ACQUIRE | ONLY_RELEASE | THROUGH_RMW | BLOCK_SCOPE);
    let acquire = matches!(how, RELEASE_ACQUIRE | THROUGH_RMW | BLOCK_SCOPE);
    if thread::block_idx_x() == 1 {
        payload.set(thread as usize, thread);
        thread::sync_threads();
        if thread == 0 {
            if fences {
                thread::fence(fence);
            }
            flag.atomic_store(0, 1, scope, if release { Order::Release } else { Order::Relaxed });
        } else if thread == 32 && how == THROUGH_RMW {
            // Waits for the release of thread 0 and continues its release sequence.
            while flag.compare_exchange(0, 1, 2, Scope::Gpu, Order::Relaxed) != 1 {
                thread::spin_hint();
            }
        }
    } else if thread::block_idx_x() == 0 {
        let wanted = if how == THROUGH_RMW { 2 } else { 1 };
        if thread == 5 {
            while flag.atomic_load(0, scope, if acquire { Order::Acquire } else { Order::Relaxed }) != wanted {
                thread::spin_hint();
            }
            if fences {
                thread::fence(fence);
            }
        }
        // The barrier publishes what one thread acquired to all threads.
        thread::sync_threads();
        output.set(thread as usize, payload.get(63 - thread as usize)); // payload
    }
}

fn pass_message(device: &CpuDevice, how: u32) -> Result<(), Fault> {
    let (payload, flag) = (Memory::zeroed(device, 64), Memory::zeroed(device, 1));
    let output = Memory::zeroed(device, 64);
    device.run(Message::new(payload.view_mut(), flag.view_mut(), output.view_mut(), how), 2).map_err(|fault| *fault)?;
    assert_eq!(output.read(), (0..64).rev().collect::<Vec<u32>>());
    Ok(())
}

#[test]
fn release_and_acquire_pass_a_message() {
    for device in (0..200).map(random).chain([checked()]) {
        for how in [RELEASE_ACQUIRE, FENCES, THROUGH_RMW] {
            pass_message(&device, how).unwrap();
        }
    }
    for _ in 0..20 {
        pass_message(&fast(), RELEASE_ACQUIRE).unwrap();
    }
}

#[test]
fn a_relaxed_flag_passes_no_message() {
    for device in all_checked() {
        for how in [RELAXED, ONLY_RELEASE, BLOCK_FENCES] {
            let caught = pass_message(&device, how).unwrap_err();
            assert_eq!(caught.block, 0);
            let (buffer, index, accesses, other_block, other_thread) = race(&caught);
            assert_eq!((buffer, accesses, other_block), ("payload", [Access::Read, Access::Write], 1));
            assert_eq!((index as u32, other_thread), (63 - caught.thread, 63 - caught.thread));
            assert!(line(&caught).ends_with("// payload"));
        }
    }
}

#[test]
fn the_scope_of_a_block_ends_at_the_block() {
    for device in all_checked() {
        // The two atomics on the flag race already.
        let caught = pass_message(&device, BLOCK_SCOPE).unwrap_err();
        let (buffer, _, accesses, ..) = race(&caught);
        assert_eq!((buffer, accesses), ("flag", [Access::Atomic, Access::Atomic]));
    }
}

/// All threads increment a counter, and one of them reads it.
///
/// # Safety
/// Launched only by the tests of this file, on the CPU device, which detects its faults.
#[kernel(threads = 64)]
unsafe fn count(counter: GlobalMut<u32>, output: GlobalMut<u32>, plain: u32) {
    if plain != 0 && thread::thread_idx_x() == 9 {
        output.set(0, counter.get(0));
    }
    counter.atomic_add(0, 1, Scope::Gpu, Order::Relaxed);
}

#[test]
fn atomics_do_not_race_with_each_other_but_with_plain_accesses() {
    for device in all_checked() {
        let (counter, output) = (Memory::zeroed(&device, 1), Memory::zeroed(&device, 1));
        device.run(Count::new(counter.view_mut(), output.view_mut(), 0), 4).unwrap();
        assert_eq!(counter.read(), [256]);
        let caught = fault(&device, Count::new(counter.view_mut(), output.view_mut(), 1), 4);
        let (buffer, index, mut accesses, ..) = race(&caught);
        accesses.sort_by_key(|access| *access == Access::Atomic);
        assert_eq!((buffer, index, accesses), ("counter", 0, [Access::Read, Access::Atomic]));
    }
}

#[test]
fn one_buffer_may_be_two_arguments() {
    // The fault names the first argument that holds the address.
    let device = checked();
    let data = Memory::<u32>::zeroed(&device, 64);
    let message = Message::new(data.view_mut(), data.view_mut(), data.view_mut(), RELEASE_ACQUIRE);
    let caught = fault(&device, message, 2);
    assert_eq!(race(&caught).0, "payload");
}
