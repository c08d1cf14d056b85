//! Criterion benchmarks of the dictionaries, timed by device events, on the default device or on the device that
//! `GPU_PRIMITIVES_DEVICE` names. Keys and values have 32 bits; a batch is a sixteenth of the elements.

use criterion::{
    BenchmarkGroup, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main, measurement::WallTime,
};
use gpu_benches::Error;
use gpu_benches::both::Pairs;
use gpu_benches::contender::{Contender, OrderedContender};
use gpu_benches::data::Distribution;
use gpu_benches::oracle::{Intervals, Lookups, Oracle};
use gpu_cuckoo::GpuCuckoo;
use gpu_lsm::GpuLsm;
use gpu_primitives::{Device, DeviceKind, Stream};
use gpu_sorted_array::GpuSortedArray;
use std::time::Duration;

/// The data and queries of one size.
struct Data {
    stream: Stream,
    n: usize,
    batch: usize,
    pairs: Pairs<u32, u32>,
    present: Lookups<u32, u32>,
    absent: Lookups<u32, u32>,
    intervals: Intervals<u32>,
}

impl Data {
    fn new(stream: Stream, n: usize) -> Result<Self, Error> {
        let pairs = Pairs::new(&stream, Distribution::Uniform.keys(n), 0)?;
        let oracle = Oracle::new(&pairs.keys.host, &pairs.values.host);
        let (present, absent) = (Lookups::present(&stream, n, n)?, Lookups::absent(&stream, n)?);
        let intervals = Intervals::of_keys(&stream, &oracle, 8, n / 8)?;
        Ok(Self { stream, n, batch: n / 16, pairs, present, absent, intervals })
    }

    /// Returns the device time of `runs` runs of an operation. The state is prepared before each run and not timed.
    fn timed<S, T>(
        &self,
        runs: u64,
        mut prepare: impl FnMut() -> Result<S, Error>,
        mut operation: impl FnMut(S) -> Result<T, Error>,
    ) -> Duration {
        let mut time = || -> Result<Duration, Error> {
            let mut sum = Duration::ZERO;
            for _ in 0..runs {
                let state = prepare()?;
                let start = self.stream.record()?;
                let result = operation(state)?;
                sum += self.stream.record()?.elapsed(&start)?;
                drop(result);
            }
            Ok(sum)
        };
        time().expect("a benchmark that runs")
    }

    fn updates_and_lookups<C: Contender<Key = u32, Value = u32>>(&self, group: &mut BenchmarkGroup<'_, WallTime>) -> C {
        let (stream, n) = (&self.stream, self.n);
        let all = self.pairs.slice(0..n).expect("all pairs");
        let id = |what: &str| BenchmarkId::new(format!("{}/{what}", C::NAME), format!("2^{}", n.ilog2()));
        group.throughput(Throughput::Elements(n as u64));
        group.bench_function(id("bulk_build"), |bencher| {
            bencher.iter_custom(|runs| self.timed(runs, || Ok(()), |()| C::build(stream, all, self.batch)));
        });
        group.bench_function(id("insert_batches"), |bencher| {
            bencher.iter_custom(|runs| {
                self.timed(
                    runs,
                    || C::empty(stream, self.batch),
                    |mut contender| {
                        for slice in self.pairs.batches(n, self.batch) {
                            contender.insert(stream, slice?)?;
                        }
                        Ok(contender)
                    },
                )
            });
        });
        let built = C::build(stream, all, self.batch).expect("a dictionary");
        for (what, lookups) in [("lookup_all", &self.present), ("lookup_none", &self.absent)] {
            group.bench_function(id(what), |bencher| {
                bencher.iter_custom(|runs| self.timed(runs, || Ok(()), |()| built.lookup(stream, lookups.keys.all())));
            });
        }
        built
    }

    fn intervals<C: OrderedContender<Key = u32, Value = u32>>(&self, group: &mut BenchmarkGroup<'_, WallTime>) {
        let built = self.updates_and_lookups::<C>(group);
        let (low, high) = (self.intervals.low.all(), self.intervals.high.all());
        let id = |what: &str| BenchmarkId::new(format!("{}/{what}", C::NAME), format!("2^{}", self.n.ilog2()));
        group.throughput(Throughput::Elements(low.host.len() as u64));
        group.bench_function(id("count_8"), |bencher| {
            bencher.iter_custom(|runs| self.timed(runs, || Ok(()), |()| built.count(&self.stream, low, high)));
        });
        group.bench_function(id("range_8"), |bencher| {
            bencher.iter_custom(|runs| self.timed(runs, || Ok(()), |()| built.range(&self.stream, low, high)));
        });
    }
}

fn dictionaries(criterion: &mut Criterion) {
    let device = Device::default().expect("a device");
    let log_sizes: &[u32] = if matches!(device.kind(), DeviceKind::Cuda { .. }) { &[20, 24] } else { &[13] };
    let mut group = criterion.benchmark_group(device.name());
    for &log in log_sizes {
        let data = Data::new(device.stream().expect("a stream"), 1 << log).expect("memory");
        data.intervals::<GpuLsm<u32, u32>>(&mut group);
        data.intervals::<GpuSortedArray<u32, u32>>(&mut group);
        data.updates_and_lookups::<GpuCuckoo<u32, u32>>(&mut group);
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(10).warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_secs(1));
    targets = dictionaries
}
criterion_main!(benches);
