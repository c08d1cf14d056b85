//! Out-of-bounds, misaligned and uninitialised accesses, too much shared memory; and the allocator.

use super::*;
use crate::arch::{Cache, Order, Scope};
use crate::form::kernel;
use crate::host::executor::{AllocError, FaultKind};
use crate::view::shared_bytes;
use crate::{SharedMemory, thread};

/// # Safety
/// Launched only by the tests of this file, on the CPU device, which detects its faults.
#[kernel(threads = 32)]
unsafe fn read_at(input: Global<u32>, output: GlobalMut<u32>, index: u32) {
    if thread::thread_idx_x() == 3 {
        output.set(0, input.get(index as usize)); // read
    }
}

/// # Safety
/// Launched only by the tests of this file, on the CPU device, which detects its faults.
#[kernel(threads = 32)]
unsafe fn write_at(output: GlobalMut<u32>, index: u32) {
    if thread::thread_idx_x() == 5 {
        output.slice(1, 2).set(index as usize, 1); // write
    }
}

/// # Safety
/// Launched only by the tests of this file, on the CPU device, which detects its faults.
#[kernel(threads = 32, shared = shared_bytes::<u32>(4) + shared_bytes::<u32>(8))]
unsafe fn shared_at(index: u32, write: u32) {
    let mut memory = SharedMemory::new();
    let _ = memory.take::<u32>(4);
    let piece = memory.take::<u32>(8);
    if thread::thread_idx_x() == 7 {
        if write != 0 {
            piece.set(index as usize, 1); // shared write
        } else {
            let _ = piece.get(index as usize); // shared read
        }
    }
}

/// # Safety
/// Launched only by the tests of this file, on the CPU device, which detects its faults.
#[kernel(threads = 32)]
unsafe fn vector_at(input: Global<u32>, index: u32) {
    if thread::thread_idx_x() == 1 {
        let _ = input.load_vec::<4>(index as usize, Cache::Default); // vector
    }
}

/// # Safety
/// Launched only by the tests of this file, on the CPU device, which detects its faults.
#[kernel(threads = 32)]
unsafe fn poll_at(flags: GlobalMut<u64>, index: u32) {
    if thread::thread_idx_x() == 2 {
        let _ = flags.atomic_load(index as usize, Scope::Gpu, Order::Relaxed); // atomic
    }
}

/// # Safety
/// Launched only by the tests of this file, on the CPU device, which detects its faults.
#[kernel(threads = 32, shared = 64)]
unsafe fn take_shared(len: u32) {
    let _ = SharedMemory::new().take::<u8>(len as usize);
}

#[test]
fn out_of_bounds_is_found_by_both_modes() {
    for device in [fast(), checked()] {
        let input = Memory::new(&device, &[1u32, 2, 3]);
        let output = Memory::zeroed(&device, 4);
        let caught = fault(&device, ReadAt::new(input.view(), output.view_mut(), 3), 1);
        assert_eq!((caught.block, caught.thread), (0, 3));
        assert_eq!(caught.kind, FaultKind::OutOfBounds { buffer: "input".into(), index: 3, len: 3 });
        assert!(line(&caught).ends_with("// read"));

        let caught = fault(&device, WriteAt::new(output.view_mut(), 2), 1);
        assert_eq!(caught.thread, 5);
        assert_eq!(caught.kind, FaultKind::OutOfBounds { buffer: "output".into(), index: 2, len: 2 });
        assert!(line(&caught).ends_with("// write"));
        assert!(caught.to_string().contains("index 2 is out of bounds of `output`"), "{caught}");

        let caught = fault(&device, PollAt::new(Memory::zeroed(&device, 1).view_mut(), u32::MAX), 1);
        assert_eq!(caught.kind, FaultKind::OutOfBounds { buffer: "flags".into(), index: u32::MAX as usize, len: 1 });
        assert!(line(&caught).ends_with("// atomic"));

        for (write, comment) in [(0, "// shared read"), (1, "// shared write")] {
            let caught = fault(&device, SharedAt::new(8, write), 1);
            assert_eq!(caught.thread, 7);
            let buffer = "shared memory at byte 16".to_owned();
            assert_eq!(caught.kind, FaultKind::OutOfBounds { buffer, index: 8, len: 8 });
            assert!(line(&caught).ends_with(comment));
        }
    }
}

#[test]
fn vectors_must_fit_and_be_aligned() {
    for device in [fast(), checked()] {
        let input = Memory::new(&device, &[0u32; 10]);
        device.run(VectorAt::new(input.view(), 4), 1).unwrap();
        let caught = fault(&device, VectorAt::new(input.view(), 8), 1);
        assert_eq!(caught.kind, FaultKind::OutOfBounds { buffer: "input".into(), index: 11, len: 10 });
        let caught = fault(&device, VectorAt::new(input.view(), 2), 1);
        assert_eq!(caught.kind, FaultKind::Misaligned { buffer: "input".into(), index: 2, align: 16 });
        assert_eq!(caught.thread, 1);
        assert!(line(&caught).ends_with("// vector"));
    }
}

#[test]
fn what_nobody_wrote_must_not_be_read() {
    for device in all_checked() {
        let input = Memory::<u32>::uninitialised(&device, 6);
        let output = Memory::zeroed(&device, 4);
        // The host writes all but one element.
        device.mark_initialised(input.base.cast(), 16);
        device.mark_initialised(input.base.wrapping_add(5).cast(), 4);
        assert_eq!(device.first_uninitialised(input.base.cast(), 24), Some(16));
        for index in [0, 3, 5] {
            device.run(ReadAt::new(input.view(), output.view_mut(), index), 1).unwrap();
        }
        let caught = fault(&device, ReadAt::new(input.view(), output.view_mut(), 4), 1);
        assert_eq!(caught.kind, FaultKind::Uninitialised { buffer: "input".into(), index: 4 });
        assert_eq!(caught.thread, 3);
    }
}

#[test]
fn what_nobody_wrote_is_followed_through_kernels_and_copies() {
    let device = checked();
    let (a, b) = (Memory::<u32>::uninitialised(&device, 8), Memory::<u32>::uninitialised(&device, 8));
    device.mark_initialised(a.base.cast(), 24);
    let caught = fault(&device, VectorAt::new(a.view(), 4), 1);
    assert_eq!(caught.kind, FaultKind::Uninitialised { buffer: "input".into(), index: 6 });
    device.copy_initialised(a.base.cast(), b.base.cast(), 32);
    assert_eq!(device.first_uninitialised(b.base.cast(), 32), Some(24));
    // A kernel's write counts, too: `write_at` writes the element after `index`.
    device.run(WriteAt::new(b.view_mut(), 0), 1).unwrap();
    let tail = Memory::<u32>::uninitialised(&device, 3);
    device.run(WriteAt::new(tail.view_mut(), 1), 1).unwrap();
    assert_eq!(device.first_uninitialised(tail.base.cast(), 12), Some(0));
    assert_eq!(device.first_uninitialised(tail.base.wrapping_add(2).cast(), 4), None);
}

#[test]
fn shared_memory_starts_uninitialised_in_every_block() {
    for device in all_checked() {
        device.run(SharedAt::new(6, 1), 4).unwrap();
        let caught = fault(&device, SharedAt::new(6, 0), 4);
        assert_eq!(caught.kind, FaultKind::Uninitialised { buffer: "shared memory at byte 16".into(), index: 6 });
        let message = "uninitialised read of shared memory at byte 16 at index 6: is a barrier missing?";
        assert!(caught.to_string().contains(message), "{caught}");
        assert_eq!(caught.thread, 7);
        assert!(line(&caught).ends_with("// shared read"));
    }
}

#[test]
fn shared_memory_must_be_declared() {
    for device in [fast(), checked()] {
        device.run(TakeShared::new(64), 1).unwrap();
        let caught = fault(&device, TakeShared::new(65), 1);
        assert_eq!(caught.kind, FaultKind::SharedOverflow { end: 80, declared: 64 });
    }
}

#[test]
fn memory_is_aligned_counted_and_limited() {
    let device = CpuDevice::new(CpuOptions { memory_limit: Some(1000), ..CpuOptions::default() });
    let first = device.allocate(600, Place::Device).unwrap();
    assert_eq!(first.addr() % 256, 0);
    assert_eq!(device.used(), 600);
    assert_eq!(device.allocate(401, Place::Device), Err(AllocError { requested: 401, free: 400 }));
    assert!(!device.allocate(0, Place::Device).unwrap().is_null());
    // SAFETY: allocated above.
    unsafe { device.free(first, 600, Place::Device, None) };
    assert_eq!(device.used(), 0);
    let too_much = CpuDevice::new(CpuOptions::default()).allocate(usize::MAX / 2 - 4096, Place::Device);
    assert!(matches!(too_much, Err(AllocError { requested, .. }) if requested == usize::MAX / 2 - 4096));
}
