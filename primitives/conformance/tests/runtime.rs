//! Devices, streams, memory and launches: the same behaviour and the same errors everywhere.

use bytemuck::{Pod, Zeroable};
use gpu_conformance::data::random;
use gpu_conformance::kernels::Crash;
use gpu_conformance::{cases, is_checked, is_gpu, is_simulated, run};
use gpu_primitives::compare::Compare;
use gpu_primitives::kernel::kernel;
use gpu_primitives::operator::operator;
use gpu_primitives::{
    CpuOptions, Device, DeviceKind, DeviceSlice, DeviceSliceMut, Error, GlobalMut, Operator, merge, scan, thread,
    transfer, transform,
};
use std::process::ExitCode;
use std::time::Duration;

fn main() -> ExitCode {
    run(cases![
        preloaded_kernels_are_found,
        small_round_trips,
        slices_follow_host_rules,
        copies_between_slices,
        pinned_transfers,
        events_order_streams,
        memory_outlives_work_on_other_streams,
        threads_share_a_device,
        first_launch_from_many_threads,
        memory_is_counted,
        foreign_memory,
        empty_launch,
        oversized_launch,
        too_much_shared_memory,
        out_of_memory,
        length_mismatch,
        range_outside,
        wrong_device,
        unknown_devices,
        uninitialised_memory,
    ])
}

fn small_round_trips(device: &Device) {
    let stream = device.stream().unwrap();
    for n in [0, 1, 2, 1000, 70_001] {
        let host: Vec<u64> = random(n as u64).take(n).collect();
        assert_eq!(stream.upload(&host).unwrap().to_vec(&stream).unwrap(), host);
        assert_eq!(stream.zeroed::<u64>(n).unwrap().to_vec(&stream).unwrap(), vec![0; n]);
        let mut copy = stream.uninit::<u64>(n).unwrap();
        copy.copy_from_host(&stream, &host).unwrap();
        let mut back = vec![0; n];
        copy.try_clone(&stream).unwrap().copy_to_host(&stream, &mut back).unwrap();
        assert_eq!(back, host);
    }
}

fn slices_follow_host_rules(device: &Device) {
    let stream = device.stream().unwrap();
    let mut data = stream.upload(&[0u32, 1, 2, 3, 4, 5, 6, 7]).unwrap();
    assert_eq!(data.slice(2..5).unwrap().to_vec(&stream).unwrap(), [2, 3, 4]);
    assert_eq!(data.slice(2..).unwrap().slice(1..=2).unwrap().to_vec(&stream).unwrap(), [3, 4]);
    let (left, right) = data.as_slice().split_at(3).unwrap();
    assert_eq!((left.len(), right.len()), (3, 5));
    let (mut left, right) = data.as_mut_slice().split_at_mut(4).unwrap();
    left.copy_from(&stream, &right).unwrap();
    assert_eq!(data.to_vec(&stream).unwrap(), [4, 5, 6, 7, 4, 5, 6, 7]);
}

fn copies_between_slices(device: &Device) {
    let stream = device.stream().unwrap();
    let from = stream.upload(&[1u8, 2, 3, 4, 5]).unwrap();
    let mut to = stream.upload(&[0u8; 5]).unwrap();
    to.slice_mut(1..4).unwrap().copy_from(&stream, from.slice(2..).unwrap()).unwrap();
    assert_eq!(to.to_vec(&stream).unwrap(), [0, 3, 4, 5, 0]);
}

fn pinned_transfers(device: &Device) {
    let stream = device.stream().unwrap();
    let mut pinned = device.pinned::<u32>(1000).unwrap();
    for (i, number) in pinned.iter_mut().enumerate() {
        *number = i as u32 * 3;
    }
    let mut data = stream.uninit::<u32>(1000).unwrap();
    let pinned = stream.upload_pinned(pinned, &mut data).unwrap().wait().unwrap();
    transfer::fill(&stream, data.slice_mut(0..10).unwrap(), 1).unwrap();
    let pinned = stream.download_pinned(&data, pinned).unwrap().wait().unwrap();
    assert!(pinned.iter().enumerate().all(|(i, &x)| x == if i < 10 { 1 } else { i as u32 * 3 }));
    // Dropped during the copy: the copy ends before the buffer is freed.
    drop(stream.download_pinned(&data, pinned).unwrap());
    let short = device.pinned::<u32>(999).unwrap();
    assert!(matches!(stream.download_pinned(&data, short), Err(Error::LengthMismatch { .. })));
}

/// A chain of streams, each waiting for the event of the previous one.
fn events_order_streams(device: &Device) {
    let streams: Vec<_> = (0..4).map(|_| device.stream().unwrap()).collect();
    let n = if is_checked(device) { 5000 } else { 300_000 };
    let mut data = streams[0].zeroed::<u32>(n).unwrap();
    transfer::fill(&streams[0], &mut data, 1).unwrap();
    let start = streams[0].record().unwrap();
    let mut done = streams[0].record().unwrap();
    for stream in &streams {
        stream.wait(&done).unwrap();
        scan::inclusive_in_place(stream, &mut data, scan::Sum).unwrap();
        done = stream.record().unwrap();
    }
    done.synchronize().unwrap();
    assert!(done.is_done().unwrap());
    assert!(done.elapsed(&start).unwrap() > Duration::ZERO);
    let mut expected = vec![1u32; n];
    for _ in &streams {
        let mut sum = 0u32;
        for x in &mut expected {
            sum = sum.wrapping_add(*x);
            *x = sum;
        }
    }
    assert_eq!(data.to_vec(&streams[3]).unwrap(), expected);
}

/// A vector dropped on the host while another stream still works with it.
fn memory_outlives_work_on_other_streams(device: &Device) {
    let (home, other) = (device.stream().unwrap(), device.stream().unwrap());
    let n = if is_simulated(device) { 3000 } else { 1 << 20 };
    for round in 0..10 {
        let mut output = other.uninit::<u32>(n).unwrap();
        {
            let mut input = home.uninit::<u32>(n).unwrap();
            transfer::fill(&home, &mut input, round).unwrap();
            other.wait(&home.record().unwrap()).unwrap();
            transfer::copy(&other, &input, &mut output).unwrap();
        }
        // Reuses the freed memory if it was freed too early.
        let mut overwrite = home.uninit::<u32>(n).unwrap();
        transfer::fill(&home, &mut overwrite, 99).unwrap();
        assert!(output.to_vec(&other).unwrap().iter().all(|&x| x == round));
    }
}

fn threads_share_a_device(device: &Device) {
    std::thread::scope(|scope| {
        for seed in 0..4 {
            scope.spawn(move || {
                let stream = device.stream().unwrap();
                let host: Vec<u32> = random(seed).take(10_000).map(|x| x as u32).collect();
                let input = stream.upload(&host).unwrap();
                let mut output = stream.uninit::<u32>(host.len()).unwrap();
                scan::inclusive_sum(&stream, &input, &mut output).unwrap();
                let total = host.iter().fold(0u32, |sum, &x| sum.wrapping_add(x));
                assert_eq!(output.to_vec(&stream).unwrap().last(), Some(&total));
            });
        }
    });
}

fn first_launch_from_many_threads(device: &Device) {
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let stream = device.stream().unwrap();
                let mut data = stream.uninit::<i16>(100).unwrap();
                transform::sequence(&stream, &mut data, -50).unwrap();
                assert_eq!(data.to_vec(&stream).unwrap(), (-50..50).collect::<Vec<i16>>());
            });
        }
    });
}

/// Returns a separate device where the kind allows it, since other tests allocate at the same time.
fn memory_is_counted(device: &Device) {
    let (DeviceKind::Cpu | DeviceKind::CpuChecked) = device.kind() else {
        assert!(device.memory_free().unwrap().0 <= device.memory_free().unwrap().1);
        return;
    };
    let device = Device::cpu_with(CpuOptions { checked: is_checked(device), ..CpuOptions::default() });
    let stream = device.stream().unwrap();
    assert_eq!(device.memory_used(), 0);
    let a = stream.uninit::<u32>(1000).unwrap();
    let used = device.memory_used();
    assert!(used >= 4000);
    drop(stream.uninit::<u64>(10_000).unwrap());
    assert_eq!(device.memory_used(), used);
    assert!(device.peak_memory() >= used + 80_000);
    device.reset_peak_memory();
    assert_eq!(device.peak_memory(), used);
    drop(a);
    assert_eq!(device.memory_used(), 0);
}

/// Memory that another library owns, here lent by a vector.
fn foreign_memory(device: &Device) {
    let stream = device.stream().unwrap();
    let (home, address, len) = stream.upload(&[5u32, 6, 7]).unwrap().into_raw();
    // SAFETY: the address is that of three numbers on this device, which nothing else uses until they are taken back
    // below.
    let (slice, mut slice_mut) = unsafe {
        (DeviceSlice::from_raw_parts(device, address, len), DeviceSliceMut::from_raw_parts(device, address, len))
    };
    assert_eq!(slice.to_vec(&stream).unwrap(), [5, 6, 7]);
    transfer::fill(&stream, slice_mut.reborrow(), 8).unwrap();
    // SAFETY: these are the parts that `into_raw` returned.
    let data = unsafe { gpu_primitives::DeviceVec::from_raw(&home, address, len) };
    assert_eq!(data.to_vec(&stream).unwrap(), [8, 8, 8]);
}

fn empty_launch(device: &Device) {
    let stream = device.stream().unwrap();
    let mut out = stream.zeroed::<u32>(64).unwrap();
    // SAFETY: nothing is launched.
    let error = unsafe { stream.launch(Crash::new(out.view_mut(&stream).unwrap(), 0), 0) }.unwrap_err();
    assert!(matches!(error, Error::EmptyLaunch { kernel: "crash" }), "{error}");
}

fn oversized_launch(device: &Device) {
    let stream = device.stream().unwrap();
    let mut out = stream.zeroed::<u32>(64).unwrap();
    // SAFETY: nothing is launched.
    let error = unsafe { stream.launch(Crash::new(out.view_mut(&stream).unwrap(), 0), 1 << 31) }.unwrap_err();
    assert!(matches!(error, Error::LaunchTooLarge { kernel: "crash", .. }), "{error}");
}

/// A block with more shared memory than any device has.
///
/// # Safety
/// The launch must have one block. `out` must have 32 elements, which nothing else uses while the kernel runs.
#[kernel(threads = 32, shared = 1 << 20)]
unsafe fn greedy(out: GlobalMut<u32>) {
    out.set(thread::thread_idx_x() as usize, 1);
}

fn too_much_shared_memory(device: &Device) {
    let stream = device.stream().unwrap();
    let mut out = stream.zeroed::<u32>(32).unwrap();
    // SAFETY: nothing is launched.
    let error = unsafe { stream.launch(Greedy::new(out.view_mut(&stream).unwrap()), 1) }.unwrap_err();
    assert!(matches!(error, Error::LaunchTooLarge { kernel: "greedy", .. } | Error::NoInstance { .. }), "{error}");
    assert_eq!(out.to_vec(&stream).unwrap(), [0; 32]);
}

fn out_of_memory(device: &Device) {
    let device = match device.kind() {
        DeviceKind::Cuda { .. } => device.clone(),
        _ => Device::cpu_with(CpuOptions { memory_limit: Some(1 << 20), ..CpuOptions::default() }),
    };
    let stream = device.stream().unwrap();
    let keep = stream.upload(&[1u32, 2, 3]).unwrap();
    for len in [1usize << 45, usize::MAX / 2, usize::MAX] {
        match stream.uninit::<u32>(len) {
            Err(Error::OutOfMemory { requested, free, .. }) => assert!(requested > free, "{requested} {free}"),
            Err(other) => panic!("{other}"),
            Ok(_) => panic!("{len} elements were allocated"),
        }
    }
    assert_eq!(keep.to_vec(&stream).unwrap(), [1, 2, 3]);
}

fn length_mismatch(device: &Device) {
    let stream = device.stream().unwrap();
    let mut data = stream.upload(&[1u32, 2, 3]).unwrap();
    assert!(matches!(data.copy_from_host(&stream, &[1, 2]), Err(Error::LengthMismatch { expected: 3, found: 2, .. })));
    assert!(matches!(data.copy_to_host(&stream, &mut [0; 4]), Err(Error::LengthMismatch { .. })));
    let other = stream.upload(&[9u32; 4]).unwrap();
    assert!(matches!(data.copy_from(&stream, &other), Err(Error::LengthMismatch { .. })));
    assert_eq!(data.to_vec(&stream).unwrap(), [1, 2, 3]);
}

fn range_outside(device: &Device) {
    let stream = device.stream().unwrap();
    let mut data = stream.upload(&[1u32, 2, 3]).unwrap();
    assert!(matches!(data.slice(2..4), Err(Error::RangeOutside { start: 2, end: 4, len: 3 })));
    #[allow(clippy::reversed_empty_ranges, reason = "that is what is tested")]
    let reversed = 2..1;
    assert!(data.slice_mut(reversed).is_err());
    assert!(data.slice(..=usize::MAX).is_err());
    assert!(data.as_slice().split_at(4).is_err());
    assert_eq!(data.slice(3..3).unwrap().len(), 0);
}

fn wrong_device(device: &Device) {
    let elsewhere = Device::cpu_with(CpuOptions::default()).stream().unwrap();
    let stream = device.stream().unwrap();
    let mine = stream.upload(&[1u32]).unwrap();
    let mut theirs = elsewhere.upload(&[2u32]).unwrap();
    assert!(matches!(mine.view(&elsewhere), Err(Error::WrongDevice { .. })));
    assert!(matches!(transfer::copy(&stream, &mine, &mut theirs), Err(Error::WrongDevice { .. })));
    assert!(matches!(mine.to_vec(&elsewhere), Err(Error::WrongDevice { .. })));
    assert_eq!(theirs.to_vec(&elsewhere).unwrap(), [2]);
}

fn unknown_devices(_: &Device) {
    for name in ["", "gpu", "cuda:", "cuda:x", "cuda:-1", "cpu:0"] {
        assert!(matches!(Device::parse(name), Err(Error::UnknownDevice { .. })), "{name:?}");
    }
    match Device::parse("cuda:99") {
        Err(Error::NoSuchDevice { asked: 99, available }) => assert_eq!(available, Device::cuda_count()),
        Err(Error::DriverMissing) => assert_eq!(Device::cuda_count(), 0),
        other => panic!("{other:?}"),
    }
    assert_eq!(Device::parse("cpu").unwrap().kind(), DeviceKind::Cpu);
    assert_eq!(Device::parse("cpu-checked").unwrap().kind(), DeviceKind::CpuChecked);
}

/// Only checked mode detects this.
fn uninitialised_memory(device: &Device) {
    let stream = device.stream().unwrap();
    let fresh = stream.uninit::<u32>(10).unwrap();
    if is_checked(device) {
        assert!(matches!(fresh.to_vec(&stream), Err(Error::UninitialisedRead { index: 0 })));
        let mut out = stream.uninit::<u32>(10).unwrap();
        let error = scan::exclusive_sum(&stream, &fresh, &mut out).unwrap_err();
        assert!(error.to_string().contains("input"), "{error}");
    } else {
        assert_eq!(fresh.to_vec(&stream).unwrap().len(), 10);
    }
}

/// An order that no other test uses. (Other tests load kernels at the same time, so that only a lower bound is known.)
fn preloaded_kernels_are_found(device: &Device) {
    #[repr(C)]
    #[derive(Clone, Copy, Pod, Zeroable)]
    struct LastDigit;

    #[operator]
    impl Compare<u64> for LastDigit {
        fn less(&self, a: u64, b: u64) -> bool {
            a % 10 < b % 10
        }
    }

    let before = device.loading().kernels;
    device.preload(&[Operator::order::<u64, LastDigit>()]).unwrap();
    let after = device.loading();
    assert_eq!(after.kernels > before, is_gpu(device), "only a GPU loads kernels");
    assert_eq!(after.slowest.is_some(), is_gpu(device));
    let stream = device.stream().unwrap();
    let (a, b) = (stream.upload(&[20u64, 11, 33]).unwrap(), stream.upload(&[1u64, 2]).unwrap());
    let mut merged = stream.uninit::<u64>(5).unwrap();
    merge::keys(&stream, &a, &b, &mut merged, LastDigit).unwrap();
    assert_eq!(merged.to_vec(&stream).unwrap(), [20, 11, 1, 2, 33]);
}
