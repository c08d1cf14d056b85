//! What can be observed of a device and of calls: counters, spans of `tracing`, ranges of NVTX.

mod ranges;
mod spans;

use gpu_primitives::{Device, scan, sort};

/// Returns a device whose counters no other test changes.
fn own_device() -> Device {
    Device::cpu_with(gpu_primitives::CpuOptions::default())
}

#[test]
fn bytes_are_counted() {
    let stream = own_device().stream().unwrap();
    let device = stream.device();
    assert_eq!(device.counters(), Default::default());
    let first = stream.upload(&[1u32, 2, 3]).unwrap();
    let second = stream.zeroed::<u64>(10).unwrap();
    let copy = first.try_clone(&stream).unwrap();
    assert_eq!(copy.to_vec(&stream).unwrap(), [1, 2, 3]);
    let counters = device.counters();
    assert_eq!((counters.bytes_uploaded, counters.bytes_zeroed), (12, 80));
    assert_eq!((counters.bytes_copied, counters.bytes_downloaded), (12, 12));
    assert_eq!((counters.memory_used, counters.peak_memory), (104, 104));
    assert_eq!((counters.launches, counters.modules), (0, 0));
    drop((first, second, copy));
    assert_eq!((device.counters().memory_used, device.counters().peak_memory), (0, 104));

    let pinned = device.pinned::<u8>(5).unwrap();
    let mut vector = stream.uninit::<u8>(5).unwrap();
    let pinned = stream.upload_pinned(pinned, &mut vector).unwrap().wait().unwrap();
    stream.download_pinned(&vector, pinned).unwrap().wait().unwrap();
    let spent = device.counters().since(&counters);
    assert_eq!((spent.bytes_uploaded, spent.bytes_downloaded, spent.bytes_zeroed), (5, 5, 0));
}

#[test]
fn launches_are_counted_and_recorded_ones_are_not() {
    let stream = own_device().stream().unwrap();
    let device = stream.device();
    let mut numbers = stream.upload(&vec![7u32; 10_000]).unwrap();
    sort::keys_in_place(&stream, &mut numbers, sort::Options::new()).unwrap();
    let sorted = device.counters();
    assert!(sorted.launches > 0 && sorted.graph_launches == 0, "{sorted:?}");

    let mut sums = stream.zeroed::<u32>(10_000).unwrap();
    let before = device.counters();
    let (mut graph, ()) = stream.capture(|stream| scan::inclusive_sum(stream, &numbers, &mut sums)).unwrap();
    assert_eq!(device.counters().launches, before.launches);
    for _ in 0..3 {
        // SAFETY: both vectors are still allocated, and used on this stream alone.
        unsafe { graph.launch(&stream).unwrap() };
    }
    let spent = device.counters().since(&before);
    assert_eq!((spent.launches, spent.graph_launches), (0, 3));
    assert_eq!(sums.slice(..2).unwrap().to_vec(&stream).unwrap(), [7, 14]);
}

#[test]
fn a_gpu_counts_its_modules() {
    let device = Device::default().unwrap();
    let stream = device.stream().unwrap();
    let before = device.counters();
    let input = stream.upload(&[1i16; 100]).unwrap();
    let mut output = stream.zeroed::<i16>(100).unwrap();
    scan::inclusive_sum(&stream, &input, &mut output).unwrap();
    let spent = device.counters().since(&before);
    assert!(spent.launches > 0);
    if device.limits().compute_capability.is_some() {
        assert!(spent.modules > 0 && !spent.compile_time.is_zero(), "{spent:?}");
    }
}
