//! Criterion benches of the primitives, timed by device events, on the device that `GPU_PRIMITIVES_DEVICE` names or that
//! is found.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use gpu_benches::data::random_u32;
use gpu_primitives::compare::Less;
use gpu_primitives::{Device, DeviceKind, DeviceVec, Error, Stream, merge, scan, search, sort, transfer};
use std::time::Duration;

/// The device's time for `runs` runs.
fn timed(stream: &Stream, runs: u64, mut operation: impl FnMut() -> Result<(), Error>) -> Duration {
    let mut time = || -> Result<Duration, Error> {
        let start = stream.record()?;
        for _ in 0..runs {
            operation()?;
        }
        stream.record()?.elapsed(&start)
    };
    time().expect("a benchmark that runs")
}

/// Sorted numbers on the device.
fn sorted(stream: &Stream, seed: u64, len: usize) -> DeviceVec<u32> {
    let mut numbers = random_u32(seed, len);
    numbers.sort_unstable();
    stream.upload(&numbers).expect("memory")
}

fn primitives(criterion: &mut Criterion) {
    let device = Device::default().expect("a device");
    let stream = device.stream().expect("a stream");
    let log_sizes: &[u32] =
        if matches!(device.kind(), DeviceKind::Cuda { .. }) { &[16, 20, 24, 27] } else { &[12, 16] };
    let mut group = criterion.benchmark_group(device.name());
    for &log in log_sizes {
        let len = 1usize << log;
        let input = stream.upload(&random_u32(1, len)).expect("memory");
        let mut output = stream.uninit::<u32>(len).expect("memory");
        group.throughput(Throughput::Elements(len as u64));
        group.bench_function(BenchmarkId::new("copy", format!("2^{log}")), |bencher| {
            bencher.iter_custom(|runs| timed(&stream, runs, || transfer::copy(&stream, &input, &mut output)));
        });
        group.bench_function(BenchmarkId::new("fill", format!("2^{log}")), |bencher| {
            bencher.iter_custom(|runs| timed(&stream, runs, || transfer::fill(&stream, &mut output, 7)));
        });
        group.bench_function(BenchmarkId::new("exclusive_sum_u32", format!("2^{log}")), |bencher| {
            bencher.iter_custom(|runs| timed(&stream, runs, || scan::exclusive_sum(&stream, &input, &mut output)));
        });
        let values = stream.upload(&random_u32(2, len)).expect("memory");
        let mut values_out = stream.uninit::<u32>(len).expect("memory");
        group.bench_function(BenchmarkId::new("sort_pairs_u32_u32", format!("2^{log}")), |bencher| {
            bencher.iter_custom(|runs| {
                timed(&stream, runs, || {
                    sort::pairs(&stream, &input, &values, &mut output, &mut values_out, sort::Options::new())
                })
            });
        });
        let (a, b) = (sorted(&stream, 3, len / 2), sorted(&stream, 4, len / 2));
        group.bench_function(BenchmarkId::new("merge_keys", format!("2^{log}")), |bencher| {
            bencher.iter_custom(|runs| timed(&stream, runs, || merge::keys(&stream, &a, &b, &mut output, Less)));
        });
        let haystack = sorted(&stream, 5, len);
        group.bench_function(BenchmarkId::new("lower_bound", format!("2^{log}")), |bencher| {
            bencher.iter_custom(|runs| {
                timed(&stream, runs, || search::lower_bound(&stream, &haystack, &input, &mut output, Less))
            });
        });
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(20).warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_secs(1));
    targets = primitives
}
criterion_main!(benches);
