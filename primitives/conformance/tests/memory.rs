//! Temporary memory: the memory that every call uses in addition to its operands, as measured by the device's counter
//! and as documented.
//!
//! Cases run one at a time, since the counter is that of the whole device.

use gpu_conformance::data::random;
use gpu_conformance::{Case, cases, is_checked, run_one_by_one};
use gpu_primitives::compare::Less;
use gpu_primitives::equality::Same;
use gpu_primitives::monoid::Sum;
use gpu_primitives::multisplit::{self, Shift};
use gpu_primitives::select::{self, Masked};
use gpu_primitives::sort::{self, Options};
use gpu_primitives::source::counted;
use gpu_primitives::{
    Device, DeviceValue, DeviceVec, Error, Offsets, Stream, histogram, merge, merge_sort, order_statistics, reduce,
    runs, scan, search, sets, top_k, transfer, transform,
};
use std::process::ExitCode;

const KIB: usize = 1 << 10;
/// The minimum scratch memory of a stream, for each of the two kinds: for look-back, and for counters that are zero
/// between launches.
const LEAST_SCRATCH: usize = 8 * KIB;

const ODD: Masked<u32> = Masked::equal(1, 1);

fn main() -> ExitCode {
    // How much memory a call takes is decided by host code, which is the same on each CPU device.
    let cases: &[Case] = cases![
        transfers,
        scans,
        scans_that_share_a_stream,
        sorts_in_one_block,
        sorts,
        argsorts,
        multisplits,
        selections,
        partitions,
        segmented_compactions,
        merges,
        merges_of_runs,
        segmented_sorts,
        searches_in_any_order,
        searches_of_sorted_needles,
        graphs,
        planned,
    ];
    run_one_by_one(&cases.iter().map(|&case| case.of_checked_calls()).collect::<Vec<_>>())
}

/// The bytes that a call uses.
struct Taken {
    /// At its peak, including the result.
    peak: usize,
    /// After the call, when its result was dropped: the scratch memory of the stream.
    kept: usize,
}

fn measure<R>(stream: &Stream, call: impl FnOnce() -> R) -> Taken {
    let device = stream.device();
    let before = device.memory_used();
    device.reset_peak_memory();
    drop(call());
    stream.synchronize().unwrap();
    Taken { peak: device.peak_memory() - before, kept: device.memory_used() - before }
}

impl Taken {
    /// Checks that the documented figure is not exceeded and not out of date.
    #[track_caller]
    fn assert_peak(&self, stated: usize) {
        assert!((stated * 9 / 10..=stated).contains(&self.peak), "{} bytes used, {stated} documented", self.peak);
    }

    #[track_caller]
    fn assert_kept(&self, stated: usize) {
        assert!((stated * 9 / 10..=stated).contains(&self.kept), "{} bytes kept, {stated} documented", self.kept);
    }
}

/// Enough for the tiles of large inputs and for more than the minimum scratch memory; less in checked mode.
fn len(device: &Device) -> usize {
    if is_checked(device) { 10_000 } else { (1 << 19) + 1000 }
}

fn numbers(stream: &Stream, n: usize) -> DeviceVec<u32> {
    stream.upload(&random(1).take(n).map(|x| x as u32).collect::<Vec<_>>()).unwrap()
}

fn sorted(stream: &Stream, n: usize) -> DeviceVec<u32> {
    stream.upload(&(0..n as u32).collect::<Vec<_>>()).unwrap()
}

/// The look-back words of `tiles` tiles with values of `value_words` 32-bit words: 8.5 bytes per word, including the
/// tree.
fn lookback(tiles: usize, value_words: usize) -> usize {
    (tiles * value_words * 17 / 2).max(LEAST_SCRATCH)
}

fn transfers(device: &Device) {
    let stream = device.stream().unwrap();
    let (from, mut to) = (numbers(&stream, 10_000), numbers(&stream, 10_000));
    let taken = measure(&stream, || {
        transfer::fill(&stream, &mut to, 1).unwrap();
        transform::sequence(&stream, &mut to, 1).unwrap();
        transfer::copy(&stream, &from, &mut to).unwrap();
    });
    assert_eq!((taken.peak, taken.kept), (0, 0));
}

fn scans(device: &Device) {
    let stream = device.stream().unwrap();
    let n = if is_checked(device) { 20_000 } else { 3 << 20 };
    let input = stream.zeroed::<u64>(n).unwrap();
    let mut output = stream.zeroed::<u64>(n).unwrap();
    let taken = measure(&stream, || scan::exclusive_sum(&stream, &input, &mut output).unwrap());
    let stated = lookback(n.div_ceil(36 * KIB / 8), 2);
    taken.assert_peak(stated);
    taken.assert_kept(stated);
}

/// Scratch memory is reused. If it is too small, it is kept in addition to its replacement.
fn scans_that_share_a_stream(device: &Device) {
    let stream = device.stream().unwrap();
    let n = len(device);
    let mut data = numbers(&stream, n);
    let first = measure(&stream, || scan::inclusive_in_place(&stream, &mut data, scan::Sum).unwrap());
    assert!(first.kept > 0);
    let again = measure(&stream, || {
        scan::inclusive_in_place(&stream, &mut data, scan::Sum).unwrap();
        scan::inclusive_in_place(&stream, data.slice_mut(..n / 2).unwrap(), scan::Sum).unwrap();
    });
    assert_eq!((again.peak, again.kept), (0, 0));
    let mut output = numbers(&stream, n);
    let selection = measure(&stream, || select::select(&stream, &data, &mut output, ODD).unwrap());
    assert_eq!((selection.peak, selection.kept), (8, 0), "the count alone");
}

fn sorts_in_one_block(device: &Device) {
    let stream = device.stream().unwrap();
    let (mut keys, mut values) = (numbers(&stream, 4096), numbers(&stream, 4096));
    let taken = measure(&stream, || {
        sort::pairs_in_place(&stream, (&mut keys, &mut values), Options::new()).unwrap();
        sort::keys_in_place(&stream, &mut keys, Options::new().descending()).unwrap();
    });
    assert_eq!((taken.peak, taken.kept), (0, 0));
}

/// The passes of a sort of 32-bit pairs: 1 KiB per tile and pass, and little more.
fn passes(n: usize, passes: usize) -> usize {
    let tile = if n < 1 << 19 { 2048 } else { 320 * 25 };
    passes * (n.div_ceil(tile) * KIB + 4 * KIB + 4) + LEAST_SCRATCH + 8
}

/// The memory that a sort of 32-bit pairs uses in addition to its second buffer, and keeps: nothing up to 16 chunks of
/// 4096.
fn sort_scratch(n: usize) -> (usize, usize) {
    if n <= 16 * 4096 { (0, 0) } else { (passes(n, 4), LEAST_SCRATCH + 8) }
}

fn sorts(device: &Device) {
    let n = len(device);
    let home = device.stream().unwrap();
    let (mut keys, mut values) = (numbers(&home, n), numbers(&home, n));
    let (mut other_keys, mut other_values) = (numbers(&home, n), numbers(&home, n));
    home.synchronize().unwrap();

    let stream = device.stream().unwrap();
    let in_place = measure(&stream, || {
        sort::pairs_in_place(&stream, (&mut keys, &mut values), Options::new()).unwrap();
    });
    let stream = device.stream().unwrap();
    let apart = measure(&stream, || {
        sort::pairs(&stream, (&keys, &values), (&mut other_keys, &mut other_values), Options::new()).unwrap();
    });
    let stream = device.stream().unwrap();
    let double_buffered = measure(&stream, || {
        let (first, second) = ((&mut keys, &mut values), (&mut other_keys, &mut other_values));
        sort::pairs_double_buffered(&stream, first, second, Options::new()).unwrap();
    });
    let (scratch, kept) = sort_scratch(n);
    in_place.assert_peak(8 * n + scratch);
    apart.assert_peak(8 * n + scratch);
    double_buffered.assert_peak(scratch);
    for taken in [in_place, apart, double_buffered] {
        taken.assert_kept(kept);
    }
}

/// The indices, the sorted keys, the result, and the memory of a sort of pairs.
fn argsorts(device: &Device) {
    let stream = device.stream().unwrap();
    let n = len(device);
    let keys = numbers(&stream, n);
    let taken = measure(&stream, || sort::argsort(&stream, &keys, Options::new()).unwrap());
    taken.assert_peak(3 * 4 * n + 8 * n + sort_scratch(n).0);
}

fn multisplits(device: &Device) {
    let stream = device.stream().unwrap();
    let n = len(device);
    let (keys, values) = (numbers(&stream, n), numbers(&stream, n));
    let (mut keys_out, mut values_out) = (numbers(&stream, n), numbers(&stream, n));
    let taken = measure(&stream, || {
        multisplit::pairs(&stream, (&keys, &values), (&mut keys_out, &mut values_out), 256, Shift::by(24)).unwrap()
    });
    // Where the buckets begin is written to the result alone.
    taken.assert_peak(passes(n, 1) - 2 * KIB + 257 * 8);
    taken.assert_kept(LEAST_SCRATCH);
}

fn selections(device: &Device) {
    let n = if is_checked(device) { 20_000 } else { 5 << 20 };
    let stream = device.stream().unwrap();
    let input = stream.zeroed::<u32>(n).unwrap();
    let mut output = stream.zeroed::<u32>(n).unwrap();
    let taken = measure(&stream, || select::select(&stream, &input, &mut output, ODD).unwrap());
    let stated = lookback(n.div_ceil(32 * KIB / 4), 2);
    taken.assert_peak(stated + 8);
    taken.assert_kept(stated);
    let flags = stream.zeroed::<u8>(n).unwrap();
    let taken = measure(&stream, || select::flagged(&stream, &input, &flags, &mut output).unwrap());
    assert_eq!((taken.peak, taken.kept), (8, 0), "the count alone");
}

fn partitions(device: &Device) {
    let n = if is_checked(device) { 20_000 } else { 5 << 20 };
    let stream = device.stream().unwrap();
    let input = stream.zeroed::<u32>(n).unwrap();
    let mut output = stream.zeroed::<u32>(n).unwrap();
    let taken = measure(&stream, || select::partition(&stream, &input, &mut output, ODD).unwrap());
    let tiles = n.div_ceil(32 * KIB / 4);
    taken.assert_peak(lookback(tiles, 2) + 8 * tiles + 8);
    taken.assert_kept(lookback(tiles, 2));
}

/// The marks of the selection, the new offsets, and the verdict on the old ones.
fn segmented_compactions(device: &Device) {
    let stream = device.stream().unwrap();
    let n = len(device);
    let input = numbers(&stream, n);
    let mut output = numbers(&stream, n);
    let offsets = stream.upload(&[0, 5, n as u32]).unwrap();
    let taken = measure(&stream, || select::segmented(&stream, &input, &offsets, &mut output, ODD).unwrap());
    let tiles = n.div_ceil(32 * KIB / 4);
    taken.assert_peak(tiles * 3584 + lookback(tiles, 2) + 3 * 4 + 32);
    taken.assert_kept(lookback(tiles, 2));
    assert!(taken.peak - taken.kept <= n.next_multiple_of(32 * KIB / 4) / 2, "half a byte per item");
}

/// 8 bytes per tile boundary, and one byte per block of the kernel that finds them: one block for 7 to 255 tiles.
fn two_way(total: usize) -> usize {
    let tiles = total.div_ceil(256 * 15);
    8 * (tiles + 1 + tiles.div_ceil(7).div_ceil(8))
}

fn merges(device: &Device) {
    let stream = device.stream().unwrap();
    let n = len(device);
    let (a, b) = (sorted(&stream, n), sorted(&stream, n));
    let mut output = stream.zeroed::<u32>(2 * n).unwrap();
    let taken = measure(&stream, || merge::keys(&stream, &a, &b, &mut output, Less).unwrap());
    taken.assert_peak(two_way(2 * n));
    assert_eq!(taken.kept, 0);
    assert!(taken.peak * 1000 < 2 * n * 4, "a thousandth of the data");
}

/// 8 bytes per boundary and run, and a table of the runs.
fn merges_of_runs(device: &Device) {
    let stream = device.stream().unwrap();
    let n = len(device) / 8;
    let runs: Vec<_> = (0..8).map(|_| sorted(&stream, n)).collect();
    let slices: Vec<_> = runs.iter().map(DeviceVec::as_slice).collect();
    let mut output = stream.zeroed::<u32>(8 * n).unwrap();
    let taken = measure(&stream, || merge::runs_keys(&stream, &slices, &mut output, Less).unwrap());
    let tiles = (8 * n).div_ceil((160 - 4) * 17 / 32 * 32 - 128);
    taken.assert_peak(8 * (3 * 32 + 8 * (tiles + 1) + tiles.div_ceil(31).div_ceil(8)));
    assert_eq!(taken.kept, 0);
}

/// Only the edges of the tiles, unless a segment spans several tiles.
fn segmented_sorts(device: &Device) {
    let stream = device.stream().unwrap();
    let n = len(device);
    let edges = 8 * (n.div_ceil(1792) + 1) + 16;
    let (mut keys, mut values) = (numbers(&stream, n), numbers(&stream, n));
    let short = stream.upload(&(0..n as u32).step_by(100).collect::<Vec<_>>()).unwrap();
    let taken = measure(&stream, || {
        sort::segmented_pairs_in_place(&stream, (&mut keys, &mut values), &short, Less).unwrap();
    });
    assert_eq!((taken.peak, taken.kept), (edges, 0));
    let long = stream.upload(&[0, n as u32]).unwrap();
    let taken = measure(&stream, || {
        sort::segmented_pairs_in_place(&stream, (&mut keys, &mut values), &long, Less).unwrap();
    });
    assert_eq!((taken.peak, taken.kept), (8 * n + edges, 0));
}

/// A seventh of the haystack; nothing for few needles.
fn searches_in_any_order(device: &Device) {
    let stream = device.stream().unwrap();
    let n = len(device);
    let haystack = sorted(&stream, n);
    let needles = numbers(&stream, n / 8);
    let mut output = stream.zeroed::<u32>(n / 8).unwrap();
    let taken = measure(&stream, || search::lower_bound(&stream, &haystack, &needles, &mut output, Less).unwrap());
    assert_eq!(taken.kept, 0);
    assert!((n * 4 / 9..=n * 4 / 7 + 256).contains(&taken.peak), "{} bytes for {n} elements", taken.peak);
    let taken = measure(&stream, || {
        let (needles, output) = (needles.slice(..100).unwrap(), output.slice_mut(..100).unwrap());
        search::lower_bound(&stream, &haystack, needles, output, Less).unwrap();
    });
    assert_eq!((taken.peak, taken.kept), (0, 0));
}

fn searches_of_sorted_needles(device: &Device) {
    let stream = device.stream().unwrap();
    let n = len(device);
    let (haystack, needles) = (sorted(&stream, n), sorted(&stream, n));
    let mut output = stream.zeroed::<u32>(n).unwrap();
    let taken =
        measure(&stream, || search::lower_bound_sorted(&stream, &haystack, &needles, &mut output, Less).unwrap());
    taken.assert_peak(two_way(2 * n));
    assert_eq!(taken.kept, 0);
}

/// RegisterRepr from the recording until the graph is dropped. Many launches need no more. The calls of a graph share it.
fn graphs(device: &Device) {
    let stream = device.stream().unwrap();
    let n = 5000;
    let mut keys = numbers(&stream, n);
    let before = device.memory_used();
    let held_by = |calls: usize, keys: &mut DeviceVec<u32>| {
        let recorded = stream
            .capture(|stream| (0..calls).try_for_each(|_| sort::keys_in_place(stream, &mut *keys, Options::new())));
        let (mut graph, ()) = recorded.unwrap();
        let held = device.memory_used() - before;
        for _ in 0..3 {
            // SAFETY: the keys still exist, and are used only on this stream.
            unsafe { graph.launch(&stream).unwrap() };
            assert_eq!(device.memory_used() - before, held);
        }
        drop(graph);
        assert_eq!(device.memory_used(), before);
        held
    };
    let once = held_by(1, &mut keys);
    assert_eq!(once, 4 * n, "the second buffer");
    assert_eq!(held_by(3, &mut keys), once);
}

/// A call with inputs of this length, which says how much memory it took.
type Planned = fn(&Stream, usize) -> Result<usize, Error>;

/// Creates the inputs and measures the call: `planned_call!(|stream, len| a: u32, b: u64 => call)`.
macro_rules! planned_call {
    (|$stream:ident, $len:ident| $($vector:ident: $type:ty [$room:expr]),* => $call:expr) => {
        |$stream, $len| {
            $(#[allow(unused_mut, reason = "some are only read")] let mut $vector = $stream.zeroed::<$type>($room)?;)*
            $stream.device().memory_for(|| $call)
        }
    };
}

/// A device that only plans tells what the calls then take, to the byte.
fn planned(device: &Device) {
    let calls: &[(&str, Planned)] = &[
        ("sort", planned_call!(|s, n| a: u32[n], b: u32[n] => sort::keys(s, &a, &mut b, Options::new()))),
        (
            "sort of other keys",
            planned_call!(|s, n| a: i16[n], b: [u8; 3][n] => {
                sort::pairs_in_place(s, (&mut a, &mut b), Options::new())
            }),
        ),
        ("argsort", planned_call!(|s, n| a: u64[n] => sort::argsort(s, &a, Options::new()))),
        (
            "sort of a length on the device",
            planned_call!(|s, n| a: u32[n], b: u64[n] => {
                let count = DeviceValue::new(s, 5u64)?;
                sort::pairs_in_place(s, (counted(&mut a, &count), &mut b), Options::new().bits(0..24))
            }),
        ),
        ("merge sort", planned_call!(|s, n| a: u32[n], b: u32[n] => merge_sort::keys(s, &a, &mut b, Less))),
        ("merge", planned_call!(|s, n| a: u32[n], b: u32[n], c: u32[2 * n] => merge::keys(s, &a, &b, &mut c, Less))),
        (
            "merge of many",
            planned_call!(|s, n| a: u32[n], b: u32[3 * n] => {
                merge::runs_keys(s, &[a.as_slice(), a.as_slice(), a.as_slice()], &mut b, Less)
            }),
        ),
        ("select", planned_call!(|s, n| a: u32[n], b: u32[n] => select::select(s, &a, &mut b, ODD))),
        ("partition", planned_call!(|s, n| a: u32[n], b: u32[n] => select::partition(s, &a, &mut b, ODD))),
        ("scan", planned_call!(|s, n| a: u32[n], b: u32[n] => scan::inclusive_sum(s, &a, &mut b))),
        ("reduce", planned_call!(|s, n| a: u32[n] => reduce::sum(s, &a))),
        (
            "runs",
            planned_call!(|s, n| a: u32[n], b: u32[n], c: u32[n] => {
                runs::run_length_encode(s, &a, (&mut b, &mut c), Same)
            }),
        ),
        (
            "reduce by key",
            planned_call!(|s, n| a: u32[n], b: u64[n], c: u32[n], d: u64[n] => {
                runs::reduce_by_key(s, (&a, &b), (&mut c, &mut d), Same, Sum)
            }),
        ),
        ("distinct", planned_call!(|s, n| a: u32[n], b: u32[n] => runs::distinct(s, &a, &mut b))),
        ("top-k", planned_call!(|s, n| a: u32[n], b: u32[50], c: u32[50] => top_k::largest(s, &a, (&mut b, &mut c)))),
        ("median", planned_call!(|s, n| a: u32[n] => order_statistics::median(s, &a))),
        ("sets", planned_call!(|s, n| a: u32[n], b: u32[n], c: u32[2 * n] => sets::union(s, &a, &b, &mut c, Less))),
        ("histogram", planned_call!(|s, n| a: u32[n], b: u32[300] => histogram::bincount(s, &a, &mut b))),
        (
            "multisplit",
            planned_call!(|s, n| a: u32[n], b: u32[n] => multisplit::keys(s, &a, &mut b, 16, Shift::by(28))),
        ),
        (
            "segmented sort",
            planned_call!(|s, n| a: u32[n], b: u32[n], offsets: u32[30] => {
                // SAFETY: all of them are zero.
                sort::segmented_keys(s, &a, unsafe { Offsets::unchecked(&offsets) }, &mut b, Less)
            }),
        ),
    ];
    for (name, call) in calls {
        for len in if is_checked(device) { [0, 100, 5000] } else { [100, 5000, 50_000] } {
            let on = |device: &Device| call(&device.stream().unwrap(), len.max(50)).unwrap();
            assert_eq!(on(&Device::planned(device.limits())), on(device), "{name} of {len}");
        }
    }
    // What waits for a result cannot be planned.
    let stream = Device::planned(device.limits()).stream().unwrap();
    let count = DeviceValue::new(&stream, 1u64).unwrap();
    assert!(matches!(count.get(&stream), Err(Error::OnlyPlanned { .. })));
}
