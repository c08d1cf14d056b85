//! Bugs that leave the checked paths: casts, computed addresses, helpers, raw pointers, overlapping regions, other
//! streams, and accesses that are long past.

use super::*;
use crate::arch::{Order, Rmw, Scope};
use crate::form::kernel;
use crate::host::executor::FaultKind;
use crate::view::shared_bytes;
use crate::{Device, Error, SharedMemory, thread, warp};
use std::ptr;

/// # Safety
/// Launched only by the tests of this file, on the CPU device, which detects its faults.
#[kernel(threads = 32)]
unsafe fn write_through_a_cast(input: Global<u32>, atomically: u32) {
    let writable = GlobalMut::from_raw(input.as_ptr().cast_mut(), input.len());
    if thread::thread_idx_x() == 3 {
        if atomically == 0 {
            writable.set(2, 7); // cast
        } else {
            writable.atomic_add(2, 7, Scope::Gpu, Order::Relaxed); // atomic cast
        }
    }
}

#[test]
fn a_read_only_view_cannot_be_cast_to_a_writable_one() {
    for device in all_checked() {
        let data = Memory::new(&device, &[5u32; 4]);
        for (atomically, comment) in [(0, "// cast"), (1, "// atomic cast")] {
            let caught = fault(&device, WriteThroughACast::new(data.view(), atomically), 1);
            assert_eq!(caught.kind, FaultKind::ReadOnly { buffer: "input".into(), index: 2 });
            assert_eq!(caught.thread, 3);
            assert!(line(&caught).ends_with(comment));
            assert!(caught.to_string().contains("which the launch was given for reading"), "{caught}");
        }
        assert_eq!(data.read(), [5; 4], "the write did not happen");
    }
}

/// # Safety
/// Launched only by the tests of this file, on the CPU device, which detects its faults.
#[kernel(threads = 32)]
unsafe fn write_in_place(input: Global<u32>, output: GlobalMut<u32>) {
    let lane = thread::thread_idx_x() as usize;
    output.set(lane, input.get(lane) + 1);
}

#[test]
fn memory_that_is_also_given_for_writing_may_be_written() {
    for device in all_checked() {
        let data = Memory::new(&device, &[5u32; 32]);
        device.run(WriteInPlace::new(data.view(), data.view_mut()), 1).unwrap();
        assert_eq!(data.read(), [6; 32]);
    }
}

/// Reads `distance` elements behind the beginning of `first`, through a view that claims to be long enough.
///
/// # Safety
/// Launched only by the tests of this file, on the CPU device, which detects its faults.
#[kernel(threads = 32)]
unsafe fn read_far(first: Global<u32>, second: Global<u32>, distance: u64) {
    let _ = second;
    if thread::thread_idx_x() == 1 {
        let far = Global::from_raw(first.as_ptr(), usize::MAX / 4);
        let _ = far.get(distance as usize); // far
    }
}

#[test]
fn a_view_of_one_buffer_does_not_reach_another() {
    for device in all_checked() {
        let (a, b) = (Memory::new(&device, &[1u32; 8]), Memory::new(&device, &[2u32; 8]));
        let (first, second) = if a.base < b.base { (&a, &b) } else { (&b, &a) };
        let distance = (second.base.addr() - first.base.addr()) as u64 / 4 + 5;
        let caught = fault(&device, ReadFar::new(first.view(), second.view(), distance), 1);
        let kind = FaultKind::OtherBuffer { buffer: "first".into(), other: "second".into(), index: 5 };
        assert_eq!((caught.thread, &caught.kind), (1, &kind));
        assert!(line(&caught).ends_with("// far"));
        // Two halves of one allocation are two buffers.
        let (low, high) = (half(&a, 0), half(&a, 4));
        device.run(ReadFar::new(low, high, 3), 1).unwrap();
        let caught = fault(&device, ReadFar::new(low, high, 6), 1);
        assert_eq!(caught.kind, FaultKind::OtherBuffer { buffer: "first".into(), other: "second".into(), index: 2 });
        // The whole allocation and a half of it are one.
        device.run(ReadFar::new(a.view(), high, 6), 1).unwrap();
    }
}

fn half(memory: &Memory<'_, u32>, start: usize) -> Global<u32> {
    // SAFETY: the memory has eight elements.
    unsafe { Global::from_raw(memory.base.wrapping_add(start), 4) }
}

fn barrier_of_a_helper() {
    // SAFETY: the checked device detects that not all threads come here.
    unsafe {
        thread::sync_threads(); // helper
    }
}

fn vote_of_a_helper() -> bool {
    // SAFETY: as above.
    unsafe {
        warp::any(warp::FULL, true) // vote
    }
}

/// # Safety
/// Launched only by the tests of this file, on the CPU device, which detects its faults.
#[kernel(threads = 64)]
unsafe fn call_helpers(output: GlobalMut<u32>, limit: u32, votes: u32) {
    let thread = thread::thread_idx_x();
    if votes != 0 {
        if thread % 32 < limit {
            output.set(thread as usize, u32::from(vote_of_a_helper()));
        } else {
            output.set(thread as usize, 2 + u32::from(vote_of_a_helper()));
            core::hint::black_box(limit); // as below
        }
    } else if thread < limit {
        output.set(thread as usize, 1);
        barrier_of_a_helper(); // first call
    } else {
        output.set(thread as usize, 2);
        barrier_of_a_helper(); // second call
        core::hint::black_box(limit); // or the compiler makes one call of the two
    }
}

#[test]
#[cfg(all(unix, target_arch = "x86_64"))]
fn a_helper_that_is_called_from_two_lines_is_two_barriers() {
    for device in all_checked() {
        let output = Memory::zeroed(&device, 64);
        for limit in [0, 64] {
            device.run(CallHelpers::new(output.view_mut(), limit, 0), 1).unwrap();
            device.run(CallHelpers::new(output.view_mut(), limit, 1), 1).unwrap();
        }
        for (votes, limit, comment) in [(0, 40, "// helper"), (1, 9, "// vote")] {
            let caught = device.run(CallHelpers::new(output.view_mut(), limit, votes), 1);
            if !has_lines() {
                continue;
            }
            let caught = caught.unwrap_err();
            let FaultKind::CallDivergence { calls, other_thread, other_calls } = &caught.kind else {
                panic!("{caught}")
            };
            let is_first = |thread: u32| if votes == 0 { thread < limit } else { thread % 32 < limit };
            assert_ne!(is_first(caught.thread), is_first(*other_thread));
            assert_ne!(calls, other_calls);
            assert!(calls.contains("escapes.rs:") && other_calls.contains("escapes.rs:"), "{calls} {other_calls}");
            assert!(line(&caught).ends_with(comment));
        }
    }
}

/// Returns whether this executable knows its lines. One without them cannot tell the callers of a helper apart.
fn has_lines() -> bool {
    std::backtrace::Backtrace::force_capture().to_string().contains("escapes.rs:")
}

/// # Safety
/// Launched only by the tests of this file, on the CPU device, which detects its faults.
#[kernel(threads = 64)]
unsafe fn two_sizes(words: GlobalMut<u64>, order: u32) {
    let halves = GlobalMut::<u32>::from_raw(words.as_mut_ptr().cast(), words.len() * 2);
    let thread = thread::thread_idx_x();
    if thread == 0 {
        words.atomic_add(1, 1, Scope::Gpu, Order::Relaxed); // whole
    }
    if order != 0 {
        thread::sync_threads();
    }
    if thread == 33 {
        halves.atomic_rmw(Rmw::Or, 3, 1, Scope::Gpu, Order::Relaxed); // half
    }
}

#[test]
fn atomics_of_two_sizes_need_an_order() {
    for device in all_checked() {
        let words = Memory::<u64>::zeroed(&device, 2);
        device.run(TwoSizes::new(words.view_mut(), 1), 1).unwrap();
        assert_eq!(words.read(), [0, 1 << 32 | 1]);
        let caught = fault(&device, TwoSizes::new(words.view_mut(), 0), 1);
        let FaultKind::MixedAtomics { buffer, index, bytes, other_block, other_thread, other_bytes, other_location } =
            &caught.kind
        else {
            panic!("{caught}")
        };
        assert_eq!((buffer.as_str(), *index, *other_block), ("words", 1, 0));
        assert_eq!((*bytes, *other_bytes), if caught.thread == 33 { (4, 8) } else { (8, 4) });
        assert_eq!(caught.thread + other_thread, 33);
        assert_ne!(other_location.line(), caught.location.unwrap().line());
        assert!(line(&caught).ends_with(if caught.thread == 33 { "// half" } else { "// whole" }));
    }
}

/// # Safety
/// Launched only by the tests of this file, on the CPU device, which detects its faults.
#[kernel(threads = 64)]
unsafe fn write_raw(data: GlobalMut<u32>, input: Global<u32>, how: u32) {
    let thread = thread::thread_idx_x() as usize;
    data.set(thread, 1); // before
    if thread == 37 && thread::block_idx_x() == 0 {
        match how {
            0 => {}
            1 => ptr::write(data.as_mut_ptr().add(100), 9),
            _ => ptr::write(input.as_ptr().cast_mut().add(2), 9),
        }
    }
    let _ = data.get(thread); // after
}

#[test]
fn a_write_through_a_raw_pointer_is_seen() {
    for device in all_checked() {
        let (data, input) = (Memory::zeroed(&device, 128), Memory::zeroed(&device, 4));
        device.run(WriteRaw::new(data.view_mut(), input.view(), 0), 1).unwrap();
        for (how, buffer, index) in [(1, "data", 100), (2, "input", 2)] {
            let caught = fault(&device, WriteRaw::new(data.view_mut(), input.view(), how), 1);
            assert_eq!(caught.kind, FaultKind::RawWrite { buffer: buffer.into(), index });
            assert_eq!((caught.block, caught.thread), (0, 37));
            assert!(line(&caught).ends_with("// after"));
            assert!(caught.to_string().contains("through a raw pointer: use a view"), "{caught}");
        }
        // The device still works, and does not blame the next launch.
        device.run(WriteRaw::new(data.view_mut(), input.view(), 0), 1).unwrap();
    }
}

/// # Safety
/// Launched only by the tests of this file, on the CPU device, which detects its faults.
#[kernel(threads = 32, shared = shared_bytes::<u32>(64))]
unsafe fn two_regions(output: GlobalMut<u32>, synchronised: u32) {
    let lane = thread::thread_idx_x() as usize;
    let counts = SharedMemory::new().take::<u32>(64); // counts
    let sums = SharedMemory::new().take::<u32>(32); // sums
    counts.set(lane, 5); // count
    sums.set(lane, 6); // sum
    if synchronised != 0 {
        thread::sync_threads();
    }
    output.set(lane, counts.slice(0, 32).get(lane)); // read
}

#[test]
fn regions_of_shared_memory_that_overlap() {
    for device in all_checked() {
        let output = Memory::zeroed(&device, 32);
        let caught = fault(&device, TwoRegions::new(output.view_mut(), 0), 1);
        let FaultKind::SharedOverlap { buffer, index, other_location } = &caught.kind else { panic!("{caught}") };
        assert_eq!((buffer.as_str(), *index as u32), ("shared memory at byte 0", caught.thread));
        assert!(line(&caught).ends_with("// read"));
        assert!(line_at(other_location).ends_with("// sum"));
        // With a barrier, the second region begins a new phase.
        device.run(TwoRegions::new(output.view_mut(), 1), 1).unwrap();
        assert_eq!(output.read(), [6; 32]);
    }
}

/// # Safety
/// Launched only by the tests of this file, on the CPU device, which detects its faults.
#[kernel(threads = 32)]
unsafe fn copy_first(input: Global<u32>, output: GlobalMut<u32>) {
    if thread::thread_idx_x() == 0 {
        output.set(0, input.get(0)); // first
    }
}

#[test]
fn a_view_belongs_to_its_stream() {
    let device = Device::cpu_checked();
    let (first, second) = (device.stream().unwrap(), device.stream().unwrap());
    let input = first.upload(&[4u32]).unwrap();
    let mut output = first.zeroed::<u32>(1).unwrap();
    for (reads, writes) in [(&first, &second), (&second, &first), (&first, &first)] {
        let call = CopyFirst::new(input.view(reads).unwrap(), output.view_mut(writes).unwrap());
        // SAFETY: the checked device refuses the launch; that is the test.
        let result = unsafe { second.launch(call, 1) };
        assert!(matches!(result, Err(Error::ViewOfOtherStream { kernel: "copy_first" })), "{result:?}");
    }
    let call = CopyFirst::new(input.view(&second).unwrap(), output.view_mut(&second).unwrap());
    // SAFETY: one block, and both views have an element.
    unsafe { second.launch(call, 1).unwrap() };
    assert_eq!(output.to_vec(&second).unwrap(), [4]);
}

#[test]
fn freed_memory_is_known_after_many_frees() {
    let stream = Device::cpu_checked().stream().unwrap();
    let mut output = stream.zeroed::<u32>(1).unwrap();
    let input = stream.upload(&[1u32, 2, 3]).unwrap(); // upload
    let upload = line!() - 1;
    // SAFETY: the checked device refuses the access; that is the test.
    let torn = unsafe { input.view(&stream).unwrap().into_param() };
    drop(input); // drop
    let freed = line!() - 1;
    for round in 0..3000 {
        drop(stream.upload(&[round; 3]).unwrap());
    }
    // SAFETY: as above.
    let result = unsafe { stream.launch(CopyFirst::new(torn, output.view_mut(&stream).unwrap()), 1) };
    let Err(Error::KernelFault(fault)) = result else { panic!("{result:?}") };
    let FaultKind::Freed { buffer, index: 0, allocated: Some(allocated), by } = &fault.kind else { panic!("{fault}") };
    assert_eq!((buffer.as_str(), allocated.line()), ("input", upload));
    assert!(allocated.file().ends_with("escapes.rs"));
    // Without line information, the function is known; in a stripped executable, nothing.
    let here = format!("escapes.rs:{freed}:");
    let is_here = |by: &String| by.contains(if has_lines() { &here } else { "freed_memory_is_known_after_many_frees" });
    assert!(by.as_ref().is_none_or(is_here) && (by.is_some() || !has_lines()), "{fault}");
    assert!(line(&fault).ends_with("// first"));
}

/// Threads of `readers` blocks read an element. Then `writer` overwrites it, ordered after all of them or after all but
/// the first.
///
/// # Safety
/// Launched only by the tests of this file, on the CPU device, which detects its faults.
#[kernel(threads = 64)]
unsafe fn many_readers(data: GlobalMut<u32>, done: GlobalMut<u32>, forgotten: u32) {
    let (block, thread) = (thread::block_idx_x(), thread::thread_idx_x());
    if block > 0 {
        let _ = data.get(0); // read
        if block * 64 + thread != forgotten {
            done.atomic_add(0, 1, Scope::Gpu, Order::Release);
        } else {
            done.atomic_add(0, 1, Scope::Gpu, Order::Relaxed);
        }
    } else if thread == 0 {
        while done.atomic_load(0, Scope::Gpu, Order::Acquire) < (thread::grid_dim_x() - 1) * 64 {
            thread::spin_hint();
        }
        data.set(0, 1); // write
    }
}

#[test]
fn every_reader_counts() {
    for device in all_checked() {
        let data = Memory::zeroed(&device, 1);
        for forgotten in [0, 64, 70, 127, 150, 255] {
            let done = Memory::zeroed(&device, 1);
            let result = device.run(ManyReaders::new(data.view_mut(), done.view_mut(), forgotten), 4);
            if forgotten == 0 {
                result.unwrap();
                continue;
            }
            let caught = result.unwrap_err();
            let FaultKind::Race { other_block, other_thread, .. } = caught.kind else { panic!("{caught}") };
            assert_eq!(other_block * 64 + other_thread, forgotten);
            assert!(line(&caught).ends_with("// write"));
        }
    }
}
