//! Criterion benchmarks of the primitives, timed by device events, on the default device or on the device that
//! `GPU_PRIMITIVES_DEVICE` names.

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use gpu_benches::data::random_u32;
use gpu_primitives::compare::Less;
use gpu_primitives::multisplit::{self, Shift};
use gpu_primitives::select::{self, Masked};
use gpu_primitives::{Device, DeviceKind, DeviceVec, Error, Stream, merge, scan, search, sort, transfer};
use rayon::iter::ParallelIterator;
use rayon::slice::ParallelSliceMut;
use std::time::Duration;

/// The number of runs of a merge of many runs.
const RUNS: usize = 8;
/// The length of a segment.
const SEGMENT: usize = 64;

/// The rows of one size.
struct Rows<'a, 'b> {
    group: &'a mut BenchmarkGroup<'b, WallTime>,
    stream: &'a Stream,
    log: u32,
}

impl Rows<'_, '_> {
    /// Measures the device time of an operation.
    fn row(&mut self, name: &str, mut operation: impl FnMut() -> Result<(), Error>) {
        let stream = self.stream;
        self.group.bench_function(BenchmarkId::new(name, format!("2^{}", self.log)), |bencher| {
            bencher.iter_custom(|runs| {
                let mut time = || -> Result<Duration, Error> {
                    let start = stream.record()?;
                    for _ in 0..runs {
                        operation()?;
                    }
                    stream.record()?.elapsed(&start)
                };
                time().expect("a benchmark that runs")
            });
        });
    }

    /// Returns numbers on the device, sorted in pieces of this length.
    fn sorted(&self, seed: u64, piece: usize) -> Result<DeviceVec<u32>, Error> {
        let mut numbers = random_u32(seed, 1 << self.log);
        numbers.par_chunks_mut(piece).for_each(|piece| piece.par_sort_unstable());
        self.stream.upload(&numbers)
    }

    fn measure(&mut self) -> Result<(), Error> {
        let (stream, len) = (self.stream, 1usize << self.log);
        self.group.throughput(Throughput::Elements(len as u64));
        let (keys, values) = (stream.upload(&random_u32(1, len))?, stream.upload(&random_u32(2, len))?);
        let (mut keys_out, mut values_out) = (stream.uninit::<u32>(len)?, stream.uninit::<u32>(len)?);
        self.row("copy", || transfer::copy(stream, &keys, &mut keys_out));
        self.row("fill", || transfer::fill(stream, &mut keys_out, 7));
        self.row("exclusive_sum_u32", || scan::exclusive_sum(stream, &keys, &mut keys_out));
        self.row("sort_pairs_u32_u32", || {
            sort::pairs(stream, (&keys, &values), (&mut keys_out, &mut values_out), sort::Options::new())
        });
        let offsets: Vec<u32> = (0..=len as u32).step_by(SEGMENT).collect();
        let offsets = stream.upload(&offsets)?;
        self.row("segmented_sort_pairs_64", || {
            sort::segmented_pairs(stream, (&keys, &values), &offsets, (&mut keys_out, &mut values_out), Less)
        });
        self.row("multisplit_pairs_32", || {
            let buckets = Shift::by(27);
            multisplit::pairs(stream, (&keys, &values), (&mut keys_out, &mut values_out), 32, buckets).map(drop)
        });
        let odd = Masked::equal(1, 1);
        self.row("select_half", || select::select(stream, &keys, &mut keys_out, odd).map(drop));
        self.row("partition_halves", || select::partition(stream, &keys, &mut keys_out, odd).map(drop));

        let halves = self.sorted(3, len / 2)?;
        let (a, b) = (halves.slice(..len / 2)?, halves.slice(len / 2..)?);
        self.row("merge_keys", || merge::keys(stream, a, b, &mut keys_out, Less));
        let pieces = self.sorted(4, len / RUNS)?;
        let runs = (0..len).step_by(len / RUNS).map(|start| {
            let range = start..start + len / RUNS;
            Ok((pieces.slice(range.clone())?, values.slice(range)?))
        });
        let runs = runs.collect::<Result<Vec<_>, Error>>()?;
        self.row("merge_8_runs_pairs", || merge::runs_pairs(stream, &runs, (&mut keys_out, &mut values_out), Less));
        let haystack = self.sorted(5, len)?;
        self.row("lower_bound", || search::lower_bound(stream, &haystack, &keys, &mut keys_out, Less));
        Ok(())
    }
}

fn primitives(criterion: &mut Criterion) {
    let device = Device::default().expect("a device");
    let stream = device.stream().expect("a stream");
    let log_sizes: &[u32] =
        if matches!(device.kind(), DeviceKind::Cuda { .. }) { &[16, 20, 24, 27] } else { &[12, 16] };
    let mut group = criterion.benchmark_group(device.name());
    for &log in log_sizes {
        Rows { group: &mut group, stream: &stream, log }.measure().expect("memory for the input");
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(20).warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_secs(1));
    targets = primitives
}
criterion_main!(benches);
