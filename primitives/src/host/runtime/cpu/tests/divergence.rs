//! Barriers and collectives that not all threads reach, deadlocks, traps and panics.

use super::*;
use crate::arch::{Order, Scope};
use crate::form::kernel;
use crate::host::executor::{Elsewhere, FaultKind};
use crate::{thread, warp};

/// # Safety
/// Launched only by the tests of this file, on the CPU device, which detects its faults.
#[kernel(threads = 64)]
unsafe fn early_return(quitter: u32) {
    if thread::thread_idx_x() == quitter {
        return;
    }
    thread::sync_threads(); // barrier
}

/// # Safety
/// Launched only by the tests of this file, on the CPU device, which detects its faults.
#[kernel(threads = 64)]
unsafe fn two_barriers() {
    if thread::thread_idx_x() < 32 {
        thread::sync_threads(); // low
    } else {
        thread::sync_threads(); // high
    }
}

#[test]
fn a_barrier_misses_a_thread_that_returned() {
    for device in all() {
        let caught = fault(&device, EarlyReturn::new(40), 3);
        assert!(caught.thread != 40);
        assert_eq!(caught.kind, FaultKind::BarrierDivergence { other_thread: 40, other_location: None });
        assert!(line(&caught).ends_with("// barrier"));
        device.run(EarlyReturn::new(64), 3).unwrap();
    }
}

#[test]
fn two_barriers_are_not_one() {
    for device in all() {
        let caught = fault(&device, TwoBarriers::new(), 1);
        let FaultKind::BarrierDivergence { other_thread, other_location: Some(other) } = caught.kind else {
            panic!("{caught}");
        };
        assert!((caught.thread < 32) != (other_thread < 32));
        assert_ne!(other.line(), caught.location.unwrap().line());
        assert!(line(&caught).ends_with(if caught.thread < 32 { "// low" } else { "// high" }));
    }
}

/// # Safety
/// Launched only by the tests of this file, on the CPU device, which detects its faults.
#[kernel(threads = 32)]
unsafe fn exited_lane() {
    if warp::lane_id() != 9 {
        let _ = warp::ballot(warp::FULL, true); // vote
    }
}

/// # Safety
/// Launched only by the tests of this file, on the CPU device, which detects its faults.
#[kernel(threads = 32)]
unsafe fn two_masks() {
    let mask = if warp::lane_id() == 4 { 0xffff_0010 } else { warp::FULL };
    warp::sync_warp(mask); // masks
}

/// # Safety
/// Launched only by the tests of this file, on the CPU device, which detects its faults.
#[kernel(threads = 32)]
unsafe fn two_operations() {
    if warp::lane_id() == 4 {
        let _ = warp::any(warp::FULL, true); // any
    } else {
        warp::sync_warp(warp::FULL); // sync
    }
}

/// # Safety
/// Launched only by the tests of this file, on the CPU device, which detects its faults.
#[kernel(threads = 64)]
unsafe fn barrier_or_collective() {
    if thread::thread_idx_x() == 36 {
        thread::sync_threads(); // barrier
    } else {
        warp::sync_warp(warp::FULL); // collective
    }
    thread::sync_threads(); // behind
}

/// # Safety
/// Launched only by the tests of this file, on the CPU device, which detects its faults.
#[kernel(threads = 32)]
unsafe fn not_in_mask() {
    if warp::lane_id() == 6 {
        warp::sync_warp(1);
    }
}

/// # Safety
/// Launched only by the tests of this file, on the CPU device, which detects its faults.
#[kernel(threads = 32)]
unsafe fn inactive_source(mask: u32) {
    if mask >> warp::lane_id() & 1 == 1 {
        let _ = warp::shuffle_down(mask, 0, 1);
    }
}

#[test]
fn a_collective_misses_a_lane() {
    for device in all() {
        let caught = fault(&device, ExitedLane::new(), 1);
        assert_ne!(caught.thread, 9);
        let returned = FaultKind::CollectiveDivergence { mask: !0, other_thread: 9, other: Elsewhere::Returned };
        assert_eq!(caught.kind, returned);
        assert!(line(&caught).ends_with("// vote"));

        let caught = fault(&device, TwoMasks::new(), 1);
        let FaultKind::CollectiveDivergence { mask, other: Elsewhere::InCollective { mask: other, .. }, .. } =
            caught.kind
        else {
            panic!("{caught}");
        };
        assert_ne!(mask, other);
        assert!(line(&caught).ends_with("// masks"));

        let caught = fault(&device, TwoOperations::new(), 1);
        let FaultKind::CollectiveDivergence { mask: warp::FULL, other_thread, other: Elsewhere::InCollective { .. } } =
            caught.kind
        else {
            panic!("{caught}");
        };
        assert!((other_thread == 4) != (caught.thread == 4));

        let caught = fault(&device, BarrierOrCollective::new(), 1);
        // Warp 0 is at the second barrier before lane 4 of warp 1 is at the first, or the other way round.
        match caught.kind {
            FaultKind::BarrierDivergence { .. } => {}
            FaultKind::CollectiveDivergence { other_thread: 36, other: Elsewhere::AtBarrier(_), .. } => {}
            _ => panic!("{caught}"),
        }

        let caught = fault(&device, NotInMask::new(), 1);
        assert_eq!(caught.thread, 6);
        let kind = FaultKind::CollectiveDivergence { mask: 1, other_thread: 6, other: Elsewhere::NotInMask };
        assert!(
            matches!(&caught.kind, FaultKind::CollectiveDivergence { other: Elsewhere::Returned, .. })
                || caught.kind == kind
        );
    }
}

#[test]
fn a_shuffle_reads_lanes_of_its_mask() {
    for device in all_checked() {
        device.run(InactiveSource::new(!0), 1).unwrap();
        let caught = fault(&device, InactiveSource::new(0xffff), 1);
        assert_eq!((caught.thread, caught.kind), (15, FaultKind::InactiveSource { lane: 16, mask: 0xffff }));
    }
}

/// # Safety
/// Launched only by the tests of this file, on the CPU device, which detects its faults.
#[kernel(threads = 64)]
unsafe fn wait_for_ever(flag: GlobalMut<u32>, hint: u32, together: u32) {
    if thread::thread_idx_x() == 7 || together != 0 {
        loop {
            let raised = flag.atomic_load(0, Scope::Gpu, Order::Acquire); // poll
            if raised != 0 {
                break;
            }
            if hint != 0 {
                thread::spin_hint();
            }
            if together != 0 {
                warp::sync_warp(warp::FULL);
            }
        }
    }
    thread::sync_threads();
}

#[test]
fn a_deadlock_ends() {
    for device in [checked(), random(1), random(2), fast()] {
        let flag = Memory::zeroed(&device, 1);
        for hint in [1, 0] {
            let caught = fault(&device, WaitForEver::new(flag.view_mut(), hint, 0), 3);
            assert_eq!(caught.thread, 7);
            assert_eq!(caught.kind, FaultKind::Deadlock { polling: 1, waiting: 63 });
            assert!(line(&caught).ends_with("// poll"));

            let caught = fault(&device, WaitForEver::new(flag.view_mut(), hint, 1), 2);
            assert!(matches!(caught.kind, FaultKind::Deadlock { .. }), "{caught}");
        }
    }
}

/// Block 0 waits for block 1, then works for half a second, and block 2 waits for that.
///
/// # Safety
/// One block for each flag.
#[kernel(threads = 32)]
unsafe fn work_for_long(flags: GlobalMut<u32>) {
    let wait_for = |flag| while flags.atomic_load(flag, Scope::Gpu, Order::Acquire) == 0 {};
    if thread::thread_idx_x() == 0 {
        let milliseconds = match thread::block_idx_x() {
            0 => {
                wait_for(1);
                500
            }
            1 => 30,
            _ => {
                wait_for(0);
                0
            }
        };
        std::thread::sleep(std::time::Duration::from_millis(milliseconds));
        flags.atomic_store(thread::block_idx_x() as usize, 1, Scope::Gpu, Order::Release);
    }
}

/// A worker that was quiet before does not count as quiet while it works.
#[test]
fn a_block_that_works_for_long_is_no_deadlock() {
    let device = CpuDevice::new(CpuOptions { workers: Some(3), ..CpuOptions::default() });
    let flags = Memory::zeroed(&device, 3);
    device.run(WorkForLong::new(flags.view_mut()), 3).unwrap();
    assert_eq!(flags.read(), [1; 3]);
}

/// # Safety
/// Launched only by the tests of this file, on the CPU device, which detects its faults.
#[kernel(threads = 64)]
unsafe fn give_up(thread: u32, panics: u32) {
    if thread::thread_idx_x() == thread && thread::block_idx_x() == 2 {
        if panics == 0 {
            thread::trap();
        }
        let digits = [1, 2, 3];
        let _ = core::hint::black_box(digits[panics as usize]); // panic
    }
    thread::sync_threads();
}

#[test]
fn traps_and_panics_are_faults() {
    for device in all() {
        let caught = fault(&device, GiveUp::new(33, 0), 4);
        assert_eq!((caught.block, caught.thread, caught.kind), (2, 33, FaultKind::Trap));
        let caught = fault(&device, GiveUp::new(34, 3), 4);
        assert_eq!((caught.block, caught.thread), (2, 34));
        let message = "index out of bounds: the len is 3 but the index is 3".to_owned();
        assert_eq!(caught.kind, FaultKind::Panic { message });
        assert!(line(&caught).ends_with("// panic"));
        // The device still works.
        device.run(GiveUp::new(64, 0), 4).unwrap();
    }
}
