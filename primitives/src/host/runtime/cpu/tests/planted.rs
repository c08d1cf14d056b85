//! Bugs of many kinds, one kernel each, as they happen in practice. The checked device names them with their line, in
//! every schedule, with two exceptions: two blocks share a ticket only in some schedules, and elements that a launch left
//! out are found when the host reads them.

use super::*;
use crate::arch::{Cache, Order, Scope};
use crate::form::kernel;
use crate::host::executor::{Elsewhere, FaultKind};
use crate::view::shared_bytes;
use crate::{Device, Error, SharedMemory, thread, warp};

/// What a fault is about, without its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    Race(&'static str),
    Uninitialised(&'static str),
    OutOfBounds(&'static str),
    Misaligned(&'static str),
    NotGiven,
    Overflow,
    Barrier,
    Collective,
    Deadlock,
}

const SHARED: &str = "shared memory at byte 0";

/// Runs a kernel with a bug in all checked schedules. It must end with one of these faults, in a line with one of these
/// comments.
fn expect<K: Kernel>(
    blocks: u32,
    found: &[Found],
    comments: &[&str],
    kernel: impl for<'a> Fn(&'a CpuDevice, &mut Vec<Memory<'a, u32>>) -> Call<'static, K>,
) {
    for device in all_checked() {
        let mut memory = Vec::new();
        let caught = fault(&device, kernel(&device, &mut memory), blocks);
        let is = |found: &Found| match (&caught.kind, *found) {
            (FaultKind::Race { buffer, .. }, Found::Race(expected))
            | (FaultKind::Uninitialised { buffer, .. }, Found::Uninitialised(expected))
            | (FaultKind::OutOfBounds { buffer, .. }, Found::OutOfBounds(expected))
            | (FaultKind::Misaligned { buffer, .. }, Found::Misaligned(expected)) => buffer == expected,
            (FaultKind::NotGiven { .. }, Found::NotGiven)
            | (FaultKind::SharedOverflow { .. }, Found::Overflow)
            | (FaultKind::BarrierDivergence { .. }, Found::Barrier)
            | (FaultKind::CollectiveDivergence { .. }, Found::Collective)
            | (FaultKind::Deadlock { .. }, Found::Deadlock) => true,
            _ => false,
        };
        assert!(found.iter().any(is), "{caught}");
        let line = line(&caught);
        assert!(comments.iter().any(|comment| line.ends_with(comment)), "{caught}: {line}");
    }
}

/// Allocates `len` zeros that live as long as the list.
fn zeros<'a>(device: &'a CpuDevice, memory: &mut Vec<Memory<'a, u32>>, len: usize) -> GlobalMut<u32> {
    memory.push(Memory::zeroed(device, len));
    memory[memory.len() - 1].view_mut()
}

/// Every round writes shared memory that others may still read.
///
/// # Safety
/// Launched only by the tests of this file, on the CPU device, which detects its faults.
#[kernel(threads = 64, shared = 64 * 4)]
unsafe fn rounds(output: GlobalMut<u32>) {
    let memory = SharedMemory::new().take::<u32>(64);
    let thread = thread::thread_idx_x() as usize;
    let mut sum = 0;
    for round in 0..3 {
        memory.set(thread, round); // write
        thread::sync_threads();
        sum += memory.get(63 - thread); // read
    }
    output.set(thread, sum);
}

#[test]
fn a_loop_lacks_its_second_barrier() {
    expect(1, &[Found::Race(SHARED)], &["// write", "// read"], |device, memory| {
        Rounds::new(zeros(device, memory, 64))
    });
}

/// Half of the warp shuffles with the mask of all lanes.
///
/// # Safety
/// Launched only by the tests of this file, on the CPU device, which detects its faults.
#[kernel(threads = 32)]
unsafe fn half_shuffles(output: GlobalMut<u32>) {
    let lane = warp::lane_id();
    if lane < 16 {
        output.set(lane as usize, warp::shuffle_xor(warp::FULL, lane, 1)); // shuffle
    }
}

#[test]
fn a_shuffle_names_lanes_that_took_another_branch() {
    expect(1, &[Found::Collective], &["// shuffle"], |device, memory| HalfShuffles::new(zeros(device, memory, 32)));
}

/// Lanes leave a loop one by one, but the vote counts on all of them.
///
/// # Safety
/// Launched only by the tests of this file, on the CPU device, which detects its faults.
#[kernel(threads = 32)]
unsafe fn votes_in_a_loop(output: GlobalMut<u32>) {
    let lane = warp::lane_id();
    let mut rounds = 0;
    while rounds < lane % 4 + 1 {
        rounds += warp::ballot(warp::FULL, true) & 1; // vote
    }
    output.set(lane as usize, rounds);
}

#[test]
fn a_vote_in_a_loop_that_lanes_leave() {
    expect(1, &[Found::Collective], &["// vote"], |device, memory| VotesInALoop::new(zeros(device, memory, 32)));
}

/// The second warp runs one more round.
///
/// # Safety
/// Launched only by the tests of this file, on the CPU device, which detects its faults.
#[kernel(threads = 64)]
unsafe fn uneven_rounds(output: GlobalMut<u32>) {
    let thread = thread::thread_idx_x();
    for round in 0..2 + thread / 32 {
        output.set(thread as usize, round);
        thread::sync_threads(); // barrier
    }
}

#[test]
fn warps_that_pass_different_numbers_of_barriers() {
    expect(1, &[Found::Barrier], &["// barrier"], |device, memory| UnevenRounds::new(zeros(device, memory, 64)));
}

/// A tree within one warp, without `sync_warp`: it once worked on hardware whose lanes ran in step.
///
/// # Safety
/// Launched only by the tests of this file, on the CPU device, which detects its faults.
#[kernel(threads = 32, shared = 64 * 4)]
unsafe fn tree(output: GlobalMut<u32>) {
    let memory = SharedMemory::new().take::<u32>(64);
    let lane = thread::thread_idx_x() as usize;
    memory.set(lane, 1); // write
    memory.set(lane + 32, 1);
    warp::sync_warp(warp::FULL);
    let mut width = 32;
    while width > 0 {
        if lane < width {
            let sum = memory.get(lane) + memory.get(lane + width); // read
            memory.set(lane, sum); // step
        }
        width /= 2;
    }
    if lane == 0 {
        output.set(0, memory.get(0));
    }
}

#[test]
fn a_tree_that_counts_on_lanes_in_step() {
    expect(1, &[Found::Race(SHARED)], &["// read", "// step"], |device, memory| Tree::new(zeros(device, memory, 1)));
}

/// The flag is raised before the last part of the message is written.
///
/// # Safety
/// Launched only by the tests of this file, on the CPU device, which detects its faults.
#[kernel(threads = 64)]
unsafe fn early_flag(message: GlobalMut<u32>, flag: GlobalMut<u32>, output: GlobalMut<u32>) {
    if thread::thread_idx_x() != 0 {
        return;
    }
    if thread::block_idx_x() == 1 {
        message.set(0, 1);
        flag.atomic_store(0, 1, Scope::Gpu, Order::Release);
        message.set(1, 2); // late
    } else {
        while flag.atomic_load(0, Scope::Gpu, Order::Acquire) == 0 {
            thread::spin_hint();
        }
        output.set(0, message.get(0) + message.get(1)); // message
    }
}

#[test]
fn a_message_that_is_written_after_its_flag() {
    expect(2, &[Found::Race("message")], &["// late", "// message"], |device, memory| {
        EarlyFlag::new(zeros(device, memory, 2), zeros(device, memory, 1), zeros(device, memory, 1))
    });
}

/// The flag is read without an atomic.
///
/// # Safety
/// Launched only by the tests of this file, on the CPU device, which detects its faults.
#[kernel(threads = 64)]
unsafe fn plain_flag(flag: GlobalMut<u32>, output: GlobalMut<u32>) {
    let thread = thread::thread_idx_x();
    if thread == 0 {
        flag.atomic_store(0, 1, Scope::Gpu, Order::Release); // raise
    } else if thread == 40 {
        output.set(0, flag.get(0)); // look
    }
}

#[test]
fn a_flag_that_is_read_without_an_atomic() {
    expect(1, &[Found::Race("flag")], &["// raise", "// look"], |device, memory| {
        PlainFlag::new(zeros(device, memory, 1), zeros(device, memory, 1))
    });
}

/// Blocks take a ticket with a load and a store, so that two of them may get the same one.
///
/// # Safety
/// Launched only by the tests of this file, on the CPU device, which detects its faults.
#[kernel(threads = 64)]
unsafe fn shared_ticket(ticket: GlobalMut<u32>, output: GlobalMut<u32>) {
    if thread::thread_idx_x() == 0 {
        let mine = ticket.atomic_load(0, Scope::Gpu, Order::Relaxed);
        output.set(mine as usize, thread::block_idx_x()); // entry
        ticket.atomic_store(0, mine + 1, Scope::Gpu, Order::Relaxed);
    }
}

#[test]
fn a_ticket_that_two_blocks_hold() {
    let mut found = 0;
    for device in (0..40).map(random) {
        let (ticket, output) = (Memory::zeroed(&device, 1), Memory::zeroed(&device, 8));
        if let Err(caught) = device.run(SharedTicket::new(ticket.view_mut(), output.view_mut()), 8) {
            assert!(matches!(&caught.kind, FaultKind::Race { buffer, .. } if buffer == "output"), "{caught}");
            assert!(line(&caught).ends_with("// entry"));
            found += 1;
        }
    }
    assert!(found > 0, "no schedule gave a ticket to two blocks");
}

/// The last tile is not full, and nobody fills the rest of shared memory.
///
/// # Safety
/// Launched only by the tests of this file, on the CPU device, which detects its faults.
#[kernel(threads = 64, shared = 64 * 4)]
unsafe fn partial_tile(input: Global<u32>, output: GlobalMut<u32>) {
    let memory = SharedMemory::new().take::<u32>(64);
    let thread = thread::thread_idx_x() as usize;
    if thread < input.len() {
        memory.set(thread, input.get(thread));
    }
    thread::sync_threads();
    output.set(thread, memory.get(63 - thread)); // rest
}

#[test]
fn the_rest_of_a_partial_tile() {
    expect(1, &[Found::Uninitialised(SHARED)], &["// rest"], |device, memory| {
        PartialTile::new(zeros(device, memory, 50).as_const(), zeros(device, memory, 64))
    });
}

/// Each thread compares its element with the next one, and the last one has none.
///
/// # Safety
/// Launched only by the tests of this file, on the CPU device, which detects its faults.
#[kernel(threads = 64)]
unsafe fn edges(input: Global<u32>, output: GlobalMut<u32>) {
    let at = (thread::block_idx_x() * 64 + thread::thread_idx_x()) as usize;
    if at < input.len() {
        output.set(at, u32::from(input.get(at) != input.get(at + 1))); // next
    }
}

#[test]
fn the_end_of_a_tile_is_off_by_one() {
    expect(2, &[Found::OutOfBounds("input")], &["// next"], |device, memory| {
        Edges::new(zeros(device, memory, 100).as_const(), zeros(device, memory, 100))
    });
}

/// Rows of odd length are loaded in vectors.
///
/// # Safety
/// Launched only by the tests of this file, on the CPU device, which detects its faults.
#[kernel(threads = 32)]
unsafe fn odd_rows(input: Global<u32>, width: u32) {
    let row = thread::thread_idx_x() as usize * width as usize;
    let _ = input.load_vec::<2>(row, Cache::Streaming); // row
}

#[test]
fn rows_of_odd_length_as_vectors() {
    expect(1, &[Found::Misaligned("input")], &["// row"], |device, memory| {
        OddRows::new(zeros(device, memory, 32 * 5).as_const(), 5)
    });
}

/// The index of an element is computed in 32 bits and wraps around: threads share elements.
///
/// # Safety
/// Launched only by the tests of this file, on the CPU device, which detects its faults.
#[kernel(threads = 64)]
unsafe fn wrapped_index(output: GlobalMut<u32>, stride: u32) {
    let thread = thread::thread_idx_x();
    output.set((thread.wrapping_mul(stride) >> 26) as usize, thread); // wrapped
}

#[test]
fn an_index_that_wraps_around() {
    expect(1, &[Found::Race("output")], &["// wrapped"], |device, memory| {
        WrappedIndex::new(zeros(device, memory, 64), 1 << 27)
    });
}

/// Blocks count together with atomics in the scope of a block.
///
/// # Safety
/// Launched only by the tests of this file, on the CPU device, which detects its faults.
#[kernel(threads = 64)]
unsafe fn narrow_counter(counter: GlobalMut<u32>) {
    counter.atomic_add(0, 1, Scope::Block, Order::Relaxed); // add
}

#[test]
fn a_counter_of_all_blocks_in_the_scope_of_one() {
    expect(3, &[Found::Race("counter")], &["// add"], |device, memory| NarrowCounter::new(zeros(device, memory, 1)));
}

/// A block takes more shared memory than the launch declared, for a large radius.
///
/// # Safety
/// Launched only by the tests of this file, on the CPU device, which detects its faults.
#[kernel(threads = 32, shared = shared_bytes::<u32>(34))]
unsafe fn large_radius(radius: u32) {
    let _ = SharedMemory::new().take::<u32>(32 + 2 * radius as usize); // take
}

#[test]
fn a_tile_that_outgrows_shared_memory() {
    expect(1, &[Found::Overflow], &["// take"], |device, memory| {
        let _ = (device, memory);
        LargeRadius::new(3)
    });
}

/// The second warp counts on the first one having run.
///
/// # Safety
/// Launched only by the tests of this file, on the CPU device, which detects its faults.
#[kernel(threads = 64)]
unsafe fn warp_order(output: GlobalMut<u32>) {
    let thread = thread::thread_idx_x() as usize;
    if thread < 32 {
        output.set(thread, 1); // first warp
    } else {
        output.set(thread, output.get(thread - 32)); // second warp
    }
}

#[test]
fn a_warp_that_counts_on_an_earlier_warp() {
    expect(1, &[Found::Race("output")], &["// first warp", "// second warp"], |device, memory| {
        WarpOrder::new(zeros(device, memory, 64))
    });
}

/// One thread writes a word, another one a byte of it.
///
/// # Safety
/// Launched only by the tests of this file, on the CPU device, which detects its faults.
#[kernel(threads = 64)]
unsafe fn byte_of_a_word(words: GlobalMut<u32>) {
    let bytes = GlobalMut::<u8>::from_raw(words.as_mut_ptr().cast(), words.len() * 4);
    match thread::thread_idx_x() {
        3 => words.set(1, 0x0101_0101), // word
        9 => bytes.set(6, 2),           // byte
        _ => {}
    }
}

#[test]
fn a_byte_and_the_word_around_it() {
    expect(1, &[Found::Race("words")], &["// word", "// byte"], |device, memory| {
        ByteOfAWord::new(zeros(device, memory, 2))
    });
}

/// The consumer waits for a value of the flag that the producer has already replaced.
///
/// # Safety
/// Launched only by the tests of this file, on the CPU device, which detects its faults.
#[kernel(threads = 64)]
unsafe fn replaced_flag(flag: GlobalMut<u32>) {
    if thread::thread_idx_x() == 0 && thread::block_idx_x() == 0 {
        flag.atomic_store(0, 1, Scope::Gpu, Order::Release);
        flag.atomic_store(0, 2, Scope::Gpu, Order::Release);
        flag.atomic_store(1, 1, Scope::Gpu, Order::Release);
    } else if thread::thread_idx_x() == 0 {
        while flag.atomic_load(1, Scope::Gpu, Order::Acquire) != 1 {
            thread::spin_hint();
        }
        loop {
            let value = flag.atomic_load(0, Scope::Gpu, Order::Acquire); // wait
            if value == 1 {
                break;
            }
            thread::spin_hint();
        }
    }
}

#[test]
fn a_flag_that_changes_twice() {
    expect(2, &[Found::Deadlock], &["// wait"], |device, memory| ReplacedFlag::new(zeros(device, memory, 2)));
}

/// A lock that its first owner does not give back.
///
/// # Safety
/// Launched only by the tests of this file, on the CPU device, which detects its faults.
#[kernel(threads = 64)]
unsafe fn kept_lock(lock: GlobalMut<u32>, data: GlobalMut<u32>) {
    if thread::thread_idx_x() == 0 {
        loop {
            let owner = lock.compare_exchange(0, 0, 1, Scope::Gpu, Order::Acquire); // lock
            if owner == 0 {
                break;
            }
            thread::spin_hint();
        }
        data.set(0, data.get(0) + 1);
    }
}

#[test]
fn a_lock_that_is_not_given_back() {
    expect(2, &[Found::Deadlock], &["// lock"], |device, memory| {
        KeptLock::new(zeros(device, memory, 1), zeros(device, memory, 1))
    });
}

/// The lock is taken and given back with relaxed atomics, which do not guard what it protects.
///
/// # Safety
/// Launched only by the tests of this file, on the CPU device, which detects its faults.
#[kernel(threads = 64)]
unsafe fn relaxed_lock(lock: GlobalMut<u32>, data: GlobalMut<u32>) {
    if thread::thread_idx_x() == 0 {
        while lock.compare_exchange(0, 0, 1, Scope::Gpu, Order::Relaxed) != 0 {
            thread::spin_hint();
        }
        data.set(0, data.get(0) + 1); // guarded
        lock.atomic_store(0, 0, Scope::Gpu, Order::Relaxed);
    }
}

#[test]
fn a_lock_of_relaxed_atomics() {
    expect(3, &[Found::Race("data")], &["// guarded"], |device, memory| {
        RelaxedLock::new(zeros(device, memory, 1), zeros(device, memory, 1))
    });
}

/// One thread publishes for the block, but the others may not have written yet.
///
/// # Safety
/// Launched only by the tests of this file, on the CPU device, which detects its faults.
#[kernel(threads = 64)]
unsafe fn lonely_fence(data: GlobalMut<u32>, flag: GlobalMut<u32>, output: GlobalMut<u32>) {
    let thread = thread::thread_idx_x() as usize;
    if thread::block_idx_x() == 1 {
        data.set(thread, 1); // data
        if thread == 0 {
            thread::fence(Scope::Gpu);
            flag.atomic_store(0, 1, Scope::Gpu, Order::Relaxed);
        }
    } else if thread == 0 {
        while flag.atomic_load(0, Scope::Gpu, Order::Acquire) == 0 {
            thread::spin_hint();
        }
        output.set(0, data.get(0));
        output.set(1, data.get(40)); // others
    }
}

#[test]
fn a_fence_that_speaks_for_one_thread_only() {
    expect(2, &[Found::Race("data")], &["// data", "// others"], |device, memory| {
        LonelyFence::new(zeros(device, memory, 64), zeros(device, memory, 1), zeros(device, memory, 2))
    });
}

/// Counters in shared memory are zeroed by some threads while others already count.
///
/// # Safety
/// Launched only by the tests of this file, on the CPU device, which detects its faults.
#[kernel(threads = 64, shared = 32)]
unsafe fn late_zeroes(output: GlobalMut<u32>) {
    let counts = SharedMemory::new().take::<u32>(8);
    let thread = thread::thread_idx_x() as usize;
    if thread >= 56 {
        counts.set(thread - 56, 0); // zero
    }
    counts.atomic_add(thread % 8, 1); // count
    thread::sync_threads();
    if thread < 8 {
        output.set(thread, counts.atomic_load(thread));
    }
}

#[test]
fn counters_that_are_zeroed_while_others_count() {
    expect(1, &[Found::Race(SHARED), Found::Uninitialised(SHARED)], &["// zero", "// count"], |device, memory| {
        LateZeroes::new(zeros(device, memory, 8))
    });
}

/// The buffer that is written next is the one that is still read.
///
/// # Safety
/// Launched only by the tests of this file, on the CPU device, which detects its faults.
#[kernel(threads = 64, shared = 128 * 4)]
unsafe fn double_buffer(output: GlobalMut<u32>) {
    let memory = SharedMemory::new().take::<u32>(128);
    let thread = thread::thread_idx_x() as usize;
    memory.set(thread, 1);
    memory.set(64 + thread, 1);
    thread::sync_threads();
    let mut sum = 0;
    for round in 0..4 {
        let (from, to) = (round % 2 * 64, round / 2 % 2 * 64);
        sum += memory.get(from + (thread + 1) % 64); // from
        memory.set(to + thread, sum); // to
        thread::sync_threads();
    }
    output.set(thread, sum);
}

#[test]
fn two_buffers_that_are_swapped_too_late() {
    expect(1, &[Found::Race(SHARED)], &["// from", "// to"], |device, memory| {
        DoubleBuffer::new(zeros(device, memory, 64))
    });
}

/// Every element is replaced by its right neighbour, in place.
///
/// # Safety
/// Launched only by the tests of this file, on the CPU device, which detects its faults.
#[kernel(threads = 64)]
unsafe fn shift(data: GlobalMut<u32>) {
    let thread = thread::thread_idx_x() as usize;
    data.set(thread, data.get(thread + 1)); // shift
}

#[test]
fn a_shift_in_place() {
    expect(1, &[Found::Race("data")], &["// shift"], |device, memory| Shift::new(zeros(device, memory, 65)));
}

/// The last block adds up what all blocks wrote, but its ticket acquires nothing.
///
/// # Safety
/// Launched only by the tests of this file, on the CPU device, which detects its faults.
#[kernel(threads = 64)]
unsafe fn last_block(partial: GlobalMut<u32>, ticket: GlobalMut<u32>, output: GlobalMut<u32>) {
    if thread::thread_idx_x() != 0 {
        return;
    }
    let (block, blocks) = (thread::block_idx_x(), thread::grid_dim_x());
    partial.set(block as usize, 1); // partial
    if ticket.atomic_add(0, 1, Scope::Gpu, Order::Release) == blocks - 1 {
        let mut sum = 0;
        for other in 0..blocks {
            sum += partial.get(other as usize); // sum
        }
        output.set(0, sum);
    }
}

#[test]
fn a_last_block_that_acquires_nothing() {
    expect(4, &[Found::Race("partial")], &["// sum"], |device, memory| {
        LastBlock::new(zeros(device, memory, 4), zeros(device, memory, 1), zeros(device, memory, 1))
    });
}

/// The mask of `sync_warp` misses the lane that reads.
///
/// # Safety
/// Launched only by the tests of this file, on the CPU device, which detects its faults.
#[kernel(threads = 32, shared = 32 * 4)]
unsafe fn narrow_sync(output: GlobalMut<u32>) {
    let memory = SharedMemory::new().take::<u32>(32);
    let lane = warp::lane_id() as usize;
    memory.set(lane, 1); // write
    if lane < 16 {
        warp::sync_warp(0xffff);
    }
    output.set(lane, memory.get(lane ^ 16)); // other half
}

#[test]
fn a_sync_that_misses_half_of_the_warp() {
    expect(
        1,
        &[Found::Race(SHARED), Found::Uninitialised(SHARED)],
        &["// write", "// other half"],
        |device, memory| NarrowSync::new(zeros(device, memory, 32)),
    );
}

/// A block counts on what an earlier block has left in shared memory.
///
/// # Safety
/// Launched only by the tests of this file, on the CPU device, which detects its faults.
#[kernel(threads = 64, shared = 16)]
unsafe fn left_behind(output: GlobalMut<u32>) {
    let memory = SharedMemory::new().take::<u32>(1);
    let (block, thread) = (thread::block_idx_x(), thread::thread_idx_x());
    if block == 0 && thread == 0 {
        memory.set(0, 7);
    }
    thread::sync_threads();
    if block == 1 && thread == 0 {
        output.set(0, memory.get(0)); // left
    }
}

#[test]
fn shared_memory_of_an_earlier_block() {
    expect(2, &[Found::Uninitialised(SHARED)], &["// left"], |device, memory| {
        LeftBehind::new(zeros(device, memory, 1))
    });
}

/// A thread shows others an array on its own stack.
///
/// # Safety
/// Launched only by the tests of this file, on the CPU device, which detects its faults.
#[kernel(threads = 64, shared = 16)]
unsafe fn own_array(output: GlobalMut<u32>) {
    let memory = SharedMemory::new().take::<u64>(1);
    let own = core::hint::black_box([1u32, 2, 3, 4]);
    let thread = thread::thread_idx_x();
    if thread == 0 {
        memory.set(0, own.as_ptr().expose_provenance() as u64);
    }
    thread::sync_threads();
    if thread == 33 {
        let shown = Global::<u32>::from_raw(core::ptr::with_exposed_provenance(memory.get(0) as usize), 4);
        output.set(0, shown.get(2)); // shown
    }
    thread::sync_threads();
}

#[test]
fn an_array_of_another_thread() {
    expect(1, &[Found::NotGiven], &["// shown"], |device, memory| OwnArray::new(zeros(device, memory, 1)));
}

/// A window is cut from the input without regard for its end.
///
/// # Safety
/// Launched only by the tests of this file, on the CPU device, which detects its faults.
#[kernel(threads = 32)]
unsafe fn window(input: Global<u32>, output: GlobalMut<u32>) {
    let block = thread::block_idx_x() as usize;
    let window = input.slice(block * 32, 32); // window
    output.set(block * 32 + warp::lane_id() as usize, window.get(warp::lane_id() as usize));
}

#[test]
fn a_window_beyond_the_end() {
    expect(3, &[Found::OutOfBounds("input")], &["// window"], |device, memory| {
        Window::new(zeros(device, memory, 70).as_const(), zeros(device, memory, 96))
    });
}

/// Copies element by element.
///
/// # Safety
/// Launched only by the tests of this file, on the CPU device, which detects its faults.
#[kernel(threads = 64)]
unsafe fn copy_elements(input: Global<u32>, output: GlobalMut<u32>) {
    let at = (thread::block_idx_x() * 64 + thread::thread_idx_x()) as usize;
    if at < input.len() {
        output.set(at, input.get(at)); // copy
    }
}

#[test]
fn a_launch_with_too_few_blocks() {
    let stream = Device::cpu_checked().stream().unwrap();
    let input = stream.upload(&[3u32; 100]).unwrap();
    let mut output = stream.uninit::<u32>(100).unwrap();
    let call = CopyElements::new(input.view(&stream).unwrap(), output.view_mut(&stream).unwrap());
    // SAFETY: the views have the same length. That one block is too few is the test.
    unsafe { stream.launch(call, 1).unwrap() };
    assert!(matches!(output.to_vec(&stream), Err(Error::UninitialisedRead { index: 64 })));
}

/// The lanes of a mask that is computed from stale data vote.
///
/// # Safety
/// Launched only by the tests of this file, on the CPU device, which detects its faults.
#[kernel(threads = 32)]
unsafe fn stale_mask(output: GlobalMut<u32>, mask: u32) {
    let lane = warp::lane_id();
    if lane.is_multiple_of(2) {
        output.set(lane as usize, warp::ballot(mask, true)); // stale
    }
}

#[test]
fn a_mask_that_names_the_wrong_lanes() {
    for device in all_checked() {
        let output = Memory::zeroed(&device, 32);
        device.run(StaleMask::new(output.view_mut(), 0x5555_5555), 1).unwrap();
        let caught = fault(&device, StaleMask::new(output.view_mut(), 0x5555_5557), 1);
        let FaultKind::CollectiveDivergence { other_thread: 1, other: Elsewhere::Returned, .. } = caught.kind else {
            panic!("{caught}")
        };
        assert!(line(&caught).ends_with("// stale"));
    }
}
