//! Criterion benches of the primitives, timed by device events, on the device that `GPU_PRIMITIVES_DEVICE` names or that
//! is found.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use gpu_benches::data::random_u32;
use gpu_primitives::{Device, DeviceKind, Error, Stream, scan, transfer};
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

fn primitives(criterion: &mut Criterion) {
    let device = Device::default().expect("a device");
    let stream = device.stream().expect("a stream");
    let log_sizes: &[u32] =
        if matches!(device.kind(), DeviceKind::Cuda { .. }) { &[16, 20, 24, 27] } else { &[16, 20] };
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
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(20).warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_secs(1));
    targets = primitives
}
criterion_main!(benches);
