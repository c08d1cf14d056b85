//! The table of the LSM: updates, queries, cleanup, with 32-bit keys and values. Every timed result is checked.

use crate::data::random_u32;
use crate::measure::{median, million_per_second};
use gpu_lsm::GpuLsm;
use gpu_primitives::{Device, DeviceKind, DeviceVec, Stream};
use std::time::Duration;

/// Timed runs of a query.
const REPETITIONS: usize = 9;

/// What to measure.
pub struct Options<'a> {
    /// The device's name; else as `Device::default` finds it.
    pub device: Option<&'a str>,
    /// The logarithm of the number of elements of most rows; else 24 on a GPU and 16 on a CPU.
    pub log_size: Option<u32>,
    /// Whether to measure the insertion table, which takes longer.
    pub insertions: bool,
}

/// The table as it is printed.
struct Table<'a> {
    stream: &'a Stream,
}

impl Table<'_> {
    fn row(&self, name: &str, param: &str, elements: usize, time: Duration) {
        let rate = million_per_second(elements, time);
        println!("{name:<34} {param:<24} {rate:>10.1} M/s {:>12.1} us", time.as_secs_f64() * 1e6);
    }

    fn query(
        &self,
        name: &str,
        param: &str,
        queries: usize,
        operation: impl FnMut() -> Result<(), gpu_primitives::Error>,
    ) -> Result<(), crate::Error> {
        let time = median(self.stream, REPETITIONS, operation)?;
        self.row(name, param, queries, time);
        Ok(())
    }
}

/// The `index`-th of many different keys in no order: the numbers from 0 to 2^30 in a fixed permutation, times four, and for
/// those that are never inserted two more.
fn key(index: u32, present: bool) -> u32 {
    let mixed = index.wrapping_mul(0x2c9_277b5) & ((1 << 30) - 1);
    let mixed = (mixed ^ (mixed >> 15)).wrapping_mul(0x1b87_3593) & ((1 << 30) - 1);
    mixed << 2 | u32::from(!present) << 1
}

/// The value of a key.
fn value_of(key: u32) -> u32 {
    key ^ 0x5555_aaaa
}

struct Data {
    keys: DeviceVec<u32>,
    values: DeviceVec<u32>,
}

impl Data {
    fn new(stream: &Stream, len: usize) -> Result<Self, crate::Error> {
        let keys: Vec<u32> = (0..len as u32).map(|i| key(i, true)).collect();
        let values: Vec<u32> = keys.iter().map(|&key| value_of(key)).collect();
        Ok(Self { keys: stream.upload(&keys)?, values: stream.upload(&values)? })
    }

    /// Inserts the first `len` elements, a batch per call.
    fn insert(
        &self,
        stream: &Stream,
        lsm: &mut GpuLsm<u32, u32>,
        len: usize,
        batch: usize,
    ) -> Result<(), crate::Error> {
        for start in (0..len).step_by(batch) {
            let range = start..(start + batch).min(len);
            lsm.insert(stream, self.keys.slice(range.clone())?, self.values.slice(range)?)?;
        }
        Ok(())
    }
}

/// Measures everything and prints it.
///
/// # Errors
/// What the device gives; a wrong result.
pub fn run(options: &Options<'_>) -> Result<(), crate::Error> {
    let device = options.device.map_or_else(Device::default, Device::parse)?;
    let gpu = matches!(device.kind(), DeviceKind::Cuda { .. });
    let stream = device.stream()?;
    let table = Table { stream: &stream };
    println!("device: {}", device.name());
    let log_size = options.log_size.unwrap_or(if gpu { 24 } else { 16 });
    let len = 1usize << log_size;
    let data = Data::new(&stream, len)?;
    // Batches that make 256, 64 and 16 of the whole.
    let batches = [log_size - 8, log_size - 6, log_size - 4];
    for log_batch in batches {
        insert_all(&table, &data, len, log_batch)?;
    }

    let lookups = Lookups::new(&stream, len)?;
    let one_level = GpuLsm::bulk_build(&stream, len, &data.keys, &data.values)?;
    lookups.measure(&table, &one_level, len, "one level")?;
    for log_batch in [batches[0], batches[2]] {
        let batch = 1usize << log_batch;
        let mut lsm = GpuLsm::new(batch)?;
        let resident = len - batch;
        data.insert(&stream, &mut lsm, resident, batch)?;
        lookups.measure(&table, &lsm, resident, &format!("full, b = 2^{log_batch}"))?;
        if log_batch == batches[2] {
            intervals(&table, &lsm, resident, log_batch)?;
        }
    }
    drop(one_level);
    bulk_build(&table, if gpu { len << 3 } else { len })?;
    for stale in [10, 50] {
        cleanup(&table, if gpu { len << 2 } else { len }, stale)?;
    }
    memory(&device, &stream, &data, len, batches[0])?;
    if options.insertions {
        insertion_table(&table, if gpu { len << 3 } else { len })?;
    }
    Ok(())
}

fn insert_all(table: &Table<'_>, data: &Data, len: usize, log_batch: u32) -> Result<(), crate::Error> {
    let batch = 1usize << log_batch;
    let mut times = Vec::new();
    for _ in 0..4 {
        let mut lsm = GpuLsm::new(batch)?;
        let start = table.stream.record()?;
        data.insert(table.stream, &mut lsm, len, batch)?;
        let end = table.stream.record()?;
        times.push(end.elapsed(&start)?);
        expect("inserted elements", lsm.len(table.stream)?, len)?;
    }
    times.remove(0);
    times.sort_unstable();
    table.row("insert, all batches", &format!("b = 2^{log_batch}, n = {len}"), len, times[times.len() / 2]);
    Ok(())
}

/// Queries for keys that are there and for keys that are not.
struct Lookups {
    order: Vec<u32>,
    absent: DeviceVec<u32>,
}

impl Lookups {
    fn new(stream: &Stream, len: usize) -> Result<Self, crate::Error> {
        let order = random_u32(5, len);
        let absent: Vec<u32> = random_u32(6, len).iter().map(|&i| key(i, false)).collect();
        Ok(Self { order, absent: stream.upload(&absent)? })
    }

    fn measure(&self, table: &Table<'_>, lsm: &GpuLsm<u32, u32>, len: usize, what: &str) -> Result<(), crate::Error> {
        let stream = table.stream;
        let present: Vec<u32> = self.order.iter().map(|&i| key(i % len as u32, true)).collect();
        let on_device = stream.upload(&present)?;
        // The first query builds the index.
        let start = stream.record()?;
        let first = lsm.lookup(stream, &on_device)?;
        let end = stream.record()?;
        table.row("first lookup, with the index", what, present.len(), end.elapsed(&start)?);
        drop(first);
        let mut result = None;
        table.query("lookup, all there", what, present.len(), || {
            result = Some(lsm.lookup(stream, &on_device)?);
            Ok(())
        })?;
        if let Some(result) = result {
            let found = result.to_vec(stream)?;
            let wrong = found.iter().zip(&present).position(|(found, &key)| *found != Some(value_of(key)));
            expect("lookups of keys that are there", wrong, None)?;
        }
        let mut result = None;
        table.query("lookup, none there", what, present.len(), || {
            result = Some(lsm.lookup(stream, &self.absent)?);
            Ok(())
        })?;
        if let Some(result) = result {
            let found = result.found.to_vec(stream)?;
            expect("lookups of keys that are not there", found.iter().position(|&found| found != 0), None)?;
        }
        Ok(())
    }
}

fn intervals(table: &Table<'_>, lsm: &GpuLsm<u32, u32>, resident: usize, log_batch: u32) -> Result<(), crate::Error> {
    let stream = table.stream;
    let sorted: Vec<u32> = {
        let mut keys: Vec<u32> = (0..resident as u32).map(|i| key(i, true)).collect();
        keys.sort_unstable();
        keys
    };
    for expected in [8usize, 1024] {
        let queries = (resident / expected.min(64)).clamp(1, 1 << 20);
        // An interval of so many keys on average, of all that there may be.
        let width = ((1u64 << 32) as f64 / resident as f64 * expected as f64) as u32;
        let low: Vec<u32> = random_u32(9, queries).iter().map(|&low| low.min(u32::MAX - width)).collect();
        let high: Vec<u32> = low.iter().map(|&low| low + width - 1).collect();
        let (low_keys, high_keys) = (stream.upload(&low)?, stream.upload(&high)?);
        let bounds: Vec<(usize, usize)> = low
            .iter()
            .zip(&high)
            .map(|(&low, &high)| (sorted.partition_point(|&key| key < low), sorted.partition_point(|&key| key <= high)))
            .collect();
        let what = format!("L = {expected}, b = 2^{log_batch}");
        let mut counts = None;
        table.query("count", &what, queries, || {
            counts = Some(lsm.count(stream, &low_keys, &high_keys)?);
            Ok(())
        })?;
        if let Some(counts) = counts {
            let counts = counts.to_vec(stream)?;
            let wrong = counts.iter().zip(&bounds).position(|(&count, &(from, to))| count != (to - from) as u64);
            expect("counts", wrong, None)?;
        }
        let mut ranges = None;
        table.query("range", &what, queries, || {
            ranges = None;
            ranges = Some(lsm.range(stream, &low_keys, &high_keys)?);
            Ok(())
        })?;
        if let Some(ranges) = ranges {
            let offsets = ranges.offsets.to_vec(stream)?;
            let total = offsets[queries] as usize;
            let (keys, values) =
                (ranges.keys.slice(..total)?.to_vec(stream)?, ranges.values.slice(..total)?.to_vec(stream)?);
            let wrong = bounds.iter().enumerate().position(|(i, &(from, to))| {
                let range = offsets[i] as usize..offsets[i + 1] as usize;
                keys[range.clone()] != sorted[from..to]
                    || keys[range.clone()].iter().zip(&values[range]).any(|(&key, &value)| value != value_of(key))
            });
            expect("ranges", wrong, None)?;
        }
    }
    Ok(())
}

fn bulk_build(table: &Table<'_>, len: usize) -> Result<(), crate::Error> {
    let data = Data::new(table.stream, len)?;
    let mut lsm = None;
    table.query("bulk build", &format!("n = {len}"), len, || {
        lsm = None;
        lsm = Some(GpuLsm::bulk_build(table.stream, len, &data.keys, &data.values)?);
        Ok(())
    })?;
    if let Some(lsm) = lsm {
        expect("built elements", lsm.len(table.stream)?, len)?;
    }
    Ok(())
}

/// Of 63 batches so many percent are stale: every insertion of a share of them is of a key of the first batches.
fn cleanup(table: &Table<'_>, len: usize, stale_percent: usize) -> Result<(), crate::Error> {
    let stream = table.stream;
    let batch = len / 64;
    let resident = 63 * batch;
    let fresh = resident * (100 - stale_percent) / 100;
    let keys: Vec<u32> = (0..resident).map(|i| key(if i < fresh { i } else { i - fresh } as u32, true)).collect();
    let values: Vec<u32> = keys.iter().map(|&key| value_of(key)).collect();
    let data = Data { keys: stream.upload(&keys)?, values: stream.upload(&values)? };
    let mut times = Vec::new();
    for _ in 0..4 {
        let mut lsm = GpuLsm::new(batch)?;
        data.insert(stream, &mut lsm, resident, batch)?;
        let start = stream.record()?;
        lsm.cleanup(stream)?;
        let end = stream.record()?;
        times.push(end.elapsed(&start)?);
        expect("elements after a cleanup", (lsm.len(stream)?, lsm.stats().resident), (fresh, fresh))?;
    }
    times.remove(0);
    times.sort_unstable();
    table.row("cleanup", &format!("r = 63, {stale_percent} % stale"), resident, times[times.len() / 2]);
    Ok(())
}

fn memory(device: &Device, stream: &Stream, data: &Data, len: usize, log_batch: u32) -> Result<(), crate::Error> {
    let batch = 1 << log_batch;
    stream.synchronize()?;
    let before = device.memory_used();
    device.reset_peak_memory();
    let mut lsm = GpuLsm::new(batch)?;
    data.insert(stream, &mut lsm, len, batch)?;
    lsm.len(stream)?;
    let peak = device.peak_memory() - before;
    println!(
        "{:<34} {:<24} {:>10.2} bytes per element at most, {:.2} at rest",
        "memory",
        format!("b = 2^{log_batch}, n = {len}"),
        peak as f64 / len as f64,
        lsm.stats().bytes as f64 / len as f64,
    );
    Ok(())
}

/// The paper's table: batches of each size until the whole is there, each timed.
fn insertion_table(table: &Table<'_>, len: usize) -> Result<(), crate::Error> {
    let stream = table.stream;
    let data = Data::new(stream, len)?;
    println!("{:<34} {:>12} {:>12} {:>12}", "insertion rates, M/s", "min", "max", "mean");
    let log_len = len.ilog2();
    let mut means = Vec::new();
    for log_batch in (log_len - 12..=log_len).rev() {
        let batch = 1usize << log_batch;
        let mut lsm = GpuLsm::new(batch)?;
        let mut events = vec![stream.record()?];
        for start in (0..len).step_by(batch) {
            lsm.insert(stream, data.keys.slice(start..start + batch)?, data.values.slice(start..start + batch)?)?;
            events.push(stream.record()?);
        }
        let mut rates = Vec::with_capacity(events.len());
        for pair in events.windows(2) {
            rates.push(million_per_second(batch, pair[1].elapsed(&pair[0])?));
        }
        expect("inserted elements", lsm.len(stream)?, len)?;
        let mean = rates.len() as f64 / rates.iter().map(|rate| 1.0 / rate).sum::<f64>();
        means.push(mean);
        let (min, max) = rates.iter().fold((f64::MAX, 0.0f64), |(min, max), &rate| (min.min(rate), max.max(rate)));
        println!("{:<34} {min:>12.1} {max:>12.1} {mean:>12.1}", format!("b = 2^{log_batch}"));
    }
    let mean = means.len() as f64 / means.iter().map(|mean| 1.0 / mean).sum::<f64>();
    println!("{:<34} {:>12} {:>12} {mean:>12.1}", "harmonic mean of the means", "", "");
    Ok(())
}

fn expect<T: PartialEq + std::fmt::Debug>(what: &'static str, found: T, expected: T) -> Result<(), crate::Error> {
    if found == expected {
        Ok(())
    } else {
        eprintln!("{what}: {found:?} instead of {expected:?}");
        Err(crate::Error::WrongResult { what, index: 0 })
    }
}
