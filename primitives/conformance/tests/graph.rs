//! Graphs: recorded once, launched many times with different input.

use gpu_conformance::data::random;
use gpu_conformance::{cases, is_checked, is_gpu, run};
use gpu_primitives::compare::Less;
use gpu_primitives::multisplit::{self, Shift};
use gpu_primitives::operator::map;
use gpu_primitives::select::{self, Masked};
use gpu_primitives::sort::{self, Options};
use gpu_primitives::source::{at, counting, map, map2};
use gpu_primitives::top_k::{self, Position, RowCounts, Rows};
use gpu_primitives::{
    CpuOptions, Device, DeviceVec, Error, Offsets, RawMemory, Stream, merge, permute, reduce, scan, transfer, transform,
};
use std::process::ExitCode;

/// The number of elements of a tile of the scan, and the number that one block sorts.
const SCAN_TILE: usize = 256 * 4 * 9;
const SORT_BLOCK: usize = 4096;

const ODD: Masked<u32> = Masked::equal(1, 1);

fn main() -> ExitCode {
    run(cases![
        small_scans,
        small_sorts,
        results_given_out,
        many_primitives_in_one_graph,
        uploads_are_kept,
        nothing_happens_while_recording,
        own_work_between_launches,
        on_another_stream,
        two_graphs_at_once,
        what_cannot_be_recorded,
        a_failed_recording_changes_nothing,
        wrong_device,
        vectors_of_a_recording_on_other_streams,
        vectors_of_a_failed_recording,
        a_recorder_on_another_thread,
        a_sampler_step_in_foreign_memory,
    ])
}

fn numbers(seed: u64, n: usize) -> Vec<u32> {
    random(seed).take(n).map(|x| x as u32).collect()
}

fn sums(input: &[u32]) -> Vec<u32> {
    let mut sum = 0u32;
    let sums = input.iter().map(|&x| {
        sum = sum.wrapping_add(x);
        sum
    });
    sums.collect()
}

fn small_scans(device: &Device) {
    let stream = device.stream().unwrap();
    for n in [1, 1000, SCAN_TILE + 1, 5 * SCAN_TILE + 7] {
        let mut input = stream.zeroed::<u32>(n).unwrap();
        let mut output = stream.zeroed::<u32>(n).unwrap();
        let (mut graph, ()) = stream.capture(|stream| scan::inclusive_sum(stream, &input, &mut output)).unwrap();
        for round in 0..10 {
            let host = numbers(round, n);
            input.copy_from_host(&stream, &host).unwrap();
            // SAFETY: input and output still exist, and are used only on this stream. The same holds for "as above"
            // below.
            unsafe { graph.launch(&stream).unwrap() };
            assert!(output.to_vec(&stream).unwrap() == sums(&host), "{n} elements, launch {round}");
        }
    }
}

/// Sorts in one block, in several chunks that are put together, and, where there is time, in several passes with tiles
/// that look back.
fn small_sorts(device: &Device) {
    let stream = device.stream().unwrap();
    let sizes = [1 << 12, SORT_BLOCK + 1000, (1 << 16) + 1];
    for &n in &sizes[..if is_checked(device) { 2 } else { 3 }] {
        let (mut keys, mut values) = (stream.zeroed::<u32>(n).unwrap(), stream.zeroed::<u32>(n).unwrap());
        let (mut keys_out, mut values_out) = (stream.zeroed::<u32>(n).unwrap(), stream.zeroed::<u32>(n).unwrap());
        let sort = stream
            .capture(|stream| sort::pairs(stream, (&keys, &values), (&mut keys_out, &mut values_out), Options::new()));
        let (mut graph, ()) = sort.unwrap();
        for round in 0..10 {
            let mut pairs: Vec<(u32, u32)> = numbers(round, n).into_iter().map(|x| x % 5000).zip(0..).collect();
            let (host_keys, host_values): (Vec<u32>, Vec<u32>) = pairs.iter().copied().unzip();
            keys.copy_from_host(&stream, &host_keys).unwrap();
            values.copy_from_host(&stream, &host_values).unwrap();
            // SAFETY: as above.
            unsafe { graph.launch(&stream).unwrap() };
            pairs.sort_by_key(|&(key, _)| key);
            let found = keys_out.to_vec(&stream).unwrap().into_iter().zip(values_out.to_vec(&stream).unwrap());
            assert!(found.eq(pairs), "{n} pairs, launch {round}");
        }
    }
}

/// Values and vectors that the recorded calls return.
fn results_given_out(device: &Device) {
    let stream = device.stream().unwrap();
    let n = 9000;
    let mut input = stream.zeroed::<u32>(n).unwrap();
    let (mut kept, mut split) = (stream.zeroed::<u32>(n).unwrap(), stream.zeroed::<u32>(n).unwrap());
    let recorded = stream.capture(|stream| {
        let count = select::select(stream, &input, &mut kept, ODD)?;
        Ok((count, multisplit::keys(stream, &input, &mut split, 16, Shift::by(28))?))
    });
    let (mut graph, (count, offsets)) = recorded.unwrap();
    for round in 0..10 {
        let host = numbers(round, n);
        input.copy_from_host(&stream, &host).unwrap();
        // SAFETY: as above.
        unsafe { graph.launch(&stream).unwrap() };
        let odd: Vec<u32> = host.iter().copied().filter(|x| x & 1 == 1).collect();
        assert_eq!(count.get(&stream).unwrap(), odd.len() as u64);
        assert!(kept.slice(..odd.len()).unwrap().to_vec(&stream).unwrap() == odd);
        let mut by_bucket = host;
        by_bucket.sort_by_key(|x| x >> 28);
        let bounds: Vec<u64> = (0..=16).map(|b| by_bucket.partition_point(|x| x >> 28 < b) as u64).collect();
        assert_eq!(offsets.to_vec(&stream).unwrap(), bounds);
        assert!(split.to_vec(&stream).unwrap() == by_bucket);
    }
}

/// Consecutive calls, where temporary memory passes from one to the next.
fn many_primitives_in_one_graph(device: &Device) {
    let stream = device.stream().unwrap();
    let n = SORT_BLOCK + 904;
    let (mut a, mut b) = (stream.zeroed::<u32>(n).unwrap(), stream.zeroed::<u32>(n).unwrap());
    let mut merged = stream.zeroed::<u32>(2 * n).unwrap();
    let mut total = stream.zeroed::<u32>(2 * n).unwrap();
    let recorded = stream.capture(|stream| {
        sort::keys_in_place(stream, &mut a, Options::new())?;
        sort::keys_in_place(stream, &mut b, Options::new())?;
        let mut spare = stream.zeroed::<u32>(2 * n)?;
        merge::keys(stream, &a, &b, &mut spare, Less)?;
        merged.copy_from(stream, &spare)?;
        scan::inclusive_sum(stream, &merged, &mut total)
    });
    let (mut graph, ()) = recorded.unwrap();
    for round in 0..10 {
        let (left, right) = (numbers(2 * round, n), numbers(2 * round + 1, n));
        a.copy_from_host(&stream, &left).unwrap();
        b.copy_from_host(&stream, &right).unwrap();
        // SAFETY: as above.
        unsafe { graph.launch(&stream).unwrap() };
        let mut expected = [left, right].concat();
        expected.sort_unstable();
        assert!(merged.to_vec(&stream).unwrap() == expected, "launch {round}");
        assert!(total.to_vec(&stream).unwrap() == sums(&expected), "launch {round}");
    }
}

/// The host's data may change or be freed after the recording. Memory that the graph reuses does not hold it.
fn uploads_are_kept(device: &Device) {
    let stream = device.stream().unwrap();
    let mut output = stream.zeroed::<u32>(100).unwrap();
    let mut host = vec![3u32; 100];
    let recorded = stream.capture(|stream| {
        let uploaded = stream.upload(&host)?;
        transfer::copy(stream, &uploaded, &mut output)?;
        drop(uploaded);
        let mut same_size = stream.uninit::<u32>(100)?;
        transfer::fill(stream, &mut same_size, 9)?;
        output.slice_mut(..1)?.copy_from_host(stream, &[7])
    });
    let (mut graph, ()) = recorded.unwrap();
    host.fill(0);
    for _ in 0..3 {
        transfer::fill(&stream, &mut output, 1).unwrap();
        // SAFETY: as above.
        unsafe { graph.launch(&stream).unwrap() };
        let found = output.to_vec(&stream).unwrap();
        assert!(found[0] == 7 && found[1..] == [3; 99], "{found:?}");
    }
}

fn nothing_happens_while_recording(device: &Device) {
    let stream = device.stream().unwrap();
    let mut data = stream.upload(&[5u32; 3000]).unwrap();
    let recorded = stream.capture(|recorder| {
        transfer::fill(recorder, &mut data, 1)?;
        scan::inclusive_in_place(recorder, &mut data, scan::Sum)?;
        // The stream itself works as usual.
        assert_eq!(data.to_vec(&stream)?, [5; 3000]);
        Ok(())
    });
    let (mut graph, ()) = recorded.unwrap();
    assert_eq!(data.to_vec(&stream).unwrap(), [5; 3000]);
    // SAFETY: as above.
    unsafe { graph.launch(&stream).unwrap() };
    assert!(data.to_vec(&stream).unwrap().into_iter().eq(1..=3000));
}

/// The stream and the graph have separate scratch memory.
fn own_work_between_launches(device: &Device) {
    let stream = device.stream().unwrap();
    let n = 3 * SCAN_TILE;
    let host = numbers(1, n);
    let input = stream.upload(&host).unwrap();
    let (mut by_graph, mut by_stream) = (stream.zeroed::<u32>(n).unwrap(), stream.zeroed::<u32>(n).unwrap());
    let (mut graph, ()) = stream.capture(|stream| scan::inclusive_sum(stream, &input, &mut by_graph)).unwrap();
    for round in 1..=10 {
        // SAFETY: as above.
        unsafe { graph.launch(&stream).unwrap() };
        let len = n / round;
        scan::inclusive_sum(&stream, input.slice(..len).unwrap(), by_stream.slice_mut(..len).unwrap()).unwrap();
        assert!(by_graph.to_vec(&stream).unwrap() == sums(&host));
        assert!(by_stream.slice(..len).unwrap().to_vec(&stream).unwrap() == sums(&host[..len]));
    }
}

/// A graph runs on any stream, and its memory outlives its last launch.
fn on_another_stream(device: &Device) {
    let (home, other) = (device.stream().unwrap(), device.stream().unwrap());
    let n = SORT_BLOCK + 300;
    for round in 0..10 {
        let host = numbers(round, n);
        let mut keys = home.upload(&host).unwrap();
        let (mut graph, ()) = home.capture(|stream| sort::keys_in_place(stream, &mut keys, Options::new())).unwrap();
        other.wait(&home.record().unwrap()).unwrap();
        // SAFETY: the keys still exist, and are used only after the event.
        unsafe { graph.launch(&other).unwrap() };
        drop(graph);
        // Would reuse the graph's memory if it were freed too early.
        drop(home.upload(&vec![u32::MAX; n]).unwrap());
        let mut expected = host;
        expected.sort_unstable();
        assert!(keys.to_vec(&other).unwrap() == expected, "launch {round}");
    }
}

/// Graphs of one stream, launched concurrently on two streams.
fn two_graphs_at_once(device: &Device) {
    let stream = device.stream().unwrap();
    let n = if is_checked(device) { 2 * SCAN_TILE } else { 100 * SCAN_TILE };
    let streams = [device.stream().unwrap(), device.stream().unwrap()];
    let hosts = [numbers(1, n), numbers(2, n)];
    let inputs = hosts.each_ref().map(|host| stream.upload(host).unwrap());
    let mut outputs = [stream.zeroed::<u32>(n).unwrap(), stream.zeroed::<u32>(n).unwrap()];
    let mut graphs: Vec<_> = (0..2)
        .map(|i| stream.capture(|stream| scan::inclusive_sum(stream, &inputs[i], &mut outputs[i])).unwrap().0)
        .collect();
    let ready = stream.record().unwrap();
    streams.iter().for_each(|stream| stream.wait(&ready).unwrap());
    for _ in 0..10 {
        for i in 0..2 {
            // SAFETY: each graph has its own input and output, which are used only on its stream.
            unsafe { graphs[i].launch(&streams[i]).unwrap() };
        }
    }
    for i in 0..2 {
        assert!(outputs[i].to_vec(&streams[i]).unwrap() == sums(&hosts[i]));
    }
}

fn what_cannot_be_recorded(device: &Device) {
    fn refused<T>(stream: &Stream, work: impl FnOnce(&Stream) -> Result<T, Error>) {
        let error = stream.capture(work).map(drop).unwrap_err();
        assert!(matches!(error, Error::NotRecordable { .. }), "{error}");
    }
    let stream = device.stream().unwrap();
    let host = numbers(1, 100);
    let data = stream.upload(&host).unwrap();
    let offsets = stream.upload(&[0u32, 40, 100]).unwrap();
    let mut output = stream.zeroed::<u32>(100).unwrap();
    let event = stream.record().unwrap();
    let (mut graph, ()) = stream.capture(|stream| transfer::copy(stream, &data, &mut output)).unwrap();

    refused(&stream, |stream| stream.synchronize());
    refused(&stream, |stream| data.to_vec(stream));
    refused(&stream, |stream| stream.uninit::<u32>(3)?.to_vec(stream));
    refused(&stream, |stream| stream.record());
    refused(&stream, |stream| stream.wait(&event));
    refused(&stream, |stream| stream.download_pinned(&data, device.pinned(100)?));
    refused(&stream, |stream| stream.upload_pinned(device.pinned(100)?, &mut output));
    refused(&stream, |stream| stream.capture(|_| Ok(())));
    // SAFETY: nothing is launched.
    refused(&stream, |stream| unsafe { graph.launch(stream) });
    refused(&stream, |stream| sort::segmented_keys(stream, &data, &offsets, &mut output, Less));
    refused(&stream, |stream| select::segmented(stream, &data, &offsets, &mut output, ODD));
    assert_eq!(output.to_vec(&stream).unwrap(), [0; 100]);

    // Calls that do not wait can be recorded.
    let mut sorted = stream.zeroed::<u32>(100).unwrap();
    let recorded = stream.capture(|stream| {
        // SAFETY: the offsets ascend, and nothing changes them.
        let offsets = unsafe { Offsets::unchecked(&offsets) };
        sort::segmented_keys(stream, &data, offsets, &mut sorted, Less)?;
        select::segmented(stream, &data, offsets, &mut output, ODD)
    });
    let (mut graph, new_offsets) = recorded.unwrap();
    for _ in 0..3 {
        // SAFETY: all memory still exists, and is used only on this stream.
        unsafe { graph.launch(&stream).unwrap() };
    }
    let mut expected = host.clone();
    expected[..40].sort_unstable();
    expected[40..].sort_unstable();
    assert_eq!(sorted.to_vec(&stream).unwrap(), expected);
    let odd = |part: &[u32]| part.iter().filter(|&&x| x & 1 == 1).count() as u32;
    assert_eq!(new_offsets.to_vec(&stream).unwrap(), [0, odd(&host[..40]), odd(&host)]);
}

fn a_failed_recording_changes_nothing(device: &Device) {
    let stream = device.stream().unwrap();
    let mut data = stream.upload(&[5u32; 1000]).unwrap();
    let failed = stream.capture(|stream| {
        scan::inclusive_in_place(stream, &mut data, scan::Sum)?;
        Err::<(), _>(Error::UnknownDevice { asked: "none".into() })
    });
    assert!(matches!(failed, Err(Error::UnknownDevice { .. })));
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        stream.capture(|stream| -> Result<(), Error> {
            scan::inclusive_in_place(stream, &mut data, scan::Sum)?;
            std::panic::resume_unwind(Box::new("on purpose"))
        })
    }));
    assert!(panicked.is_err());
    assert_eq!(data.to_vec(&stream).unwrap(), [5; 1000]);
    scan::inclusive_in_place(&stream, &mut data, scan::Sum).unwrap();
    assert!(data.to_vec(&stream).unwrap().into_iter().eq((1..=1000).map(|i| 5 * i)));
}

fn wrong_device(device: &Device) {
    let stream = device.stream().unwrap();
    let (mut graph, ()) = stream.capture(|_| Ok(())).unwrap();
    let elsewhere = Device::cpu_with(CpuOptions::default()).stream().unwrap();
    // SAFETY: the graph is empty.
    let (wrong, right) = unsafe { (graph.launch(&elsewhere), graph.launch(&stream)) };
    assert!(matches!(wrong, Err(Error::WrongDevice { .. })), "{wrong:?}");
    right.unwrap();
}

/// The number of elements with which a GPU is busy for a while.
fn many(device: &Device) -> usize {
    if is_gpu(device) { 1 << 26 } else { 1 << 10 }
}

/// Frees memory of `n` numbers that the stream still writes. The next allocation on the stream gets the same memory.
fn free_while_it_is_written(stream: &Stream, n: usize) {
    let mut old = stream.uninit::<u32>(n).unwrap();
    for _ in 0..20 {
        transfer::fill(stream, &mut old, 40).unwrap();
    }
}

/// A vector that was made while recording is used on another stream at once, while its stream still uses what was in that
/// memory before.
fn vectors_of_a_recording_on_other_streams(device: &Device) {
    let [stream, other, third] = [(); 3].map(|()| device.stream().unwrap());
    let n = many(device);
    for round in 0..5 {
        free_while_it_is_written(&stream, n);
        let (graph, ones) = stream
            .capture(|recorder| {
                let mut ones = recorder.uninit::<u32>(n)?;
                transfer::fill(&other, &mut ones, 1)?;
                assert_eq!(reduce::sum(&other, &ones)?.get(&other)?, n as u32, "while recording, round {round}");
                Ok(ones)
            })
            .unwrap();
        assert_eq!(reduce::sum(&third, &ones).unwrap().get(&third).unwrap(), n as u32, "round {round}");
        drop((ones, graph));
    }
}

/// The same, if the recording fails: the vector outlives it.
fn vectors_of_a_failed_recording(device: &Device) {
    let [stream, other] = [(); 2].map(|()| device.stream().unwrap());
    let n = many(device);
    for round in 0..5 {
        free_while_it_is_written(&stream, n);
        let mut kept = None;
        let failed = stream.capture(|recorder| {
            kept = Some((recorder.uninit::<u32>(n)?, recorder.clone()));
            Err::<(), _>(Error::EmptyLaunch { kernel: "none" })
        });
        assert!(matches!(failed, Err(Error::EmptyLaunch { .. })));
        let (mut ones, recorder) = kept.unwrap();
        let on = if round % 2 == 0 { &other } else { &recorder };
        transfer::fill(on, &mut ones, 1).unwrap();
        assert_eq!(reduce::sum(on, &ones).unwrap().get(on).unwrap(), n as u32, "round {round}");
        drop(ones);
        let mut again = recorder.uninit::<u32>(n).unwrap();
        transfer::fill(&recorder, &mut again, 2).unwrap();
        assert_eq!(reduce::sum(&recorder, &again).unwrap().get(&recorder).unwrap(), 2 * n as u32, "round {round}");
    }
}

/// A recording belongs to the thread that records: for another one, the recording could end between two steps of a call.
fn a_recorder_on_another_thread(device: &Device) {
    let stream = device.stream().unwrap();
    let mut data = stream.upload(&[5u32; 100]).unwrap();
    let (mut graph, kept) = stream
        .capture(|recorder| {
            std::thread::scope(|scope| {
                let refused = |result: Result<(), Error>| assert!(matches!(result, Err(Error::NotRecordable { .. })));
                let data = &mut data;
                scope.spawn(move || {
                    refused(transfer::fill(recorder, &mut *data, 1));
                    refused(recorder.upload(&[1u32]).map(drop));
                    refused(recorder.uninit::<u32>(1).map(drop));
                    refused(recorder.zeroed::<u32>(1).map(drop));
                    refused(data.try_clone(recorder).map(drop));
                });
            });
            transfer::fill(recorder, &mut data, 2)?;
            Ok(recorder.clone())
        })
        .unwrap();
    assert_eq!(data.to_vec(&stream).unwrap(), [5; 100]);
    // SAFETY: the data still exist, and are used only on this stream.
    unsafe { graph.launch(&stream).unwrap() };
    assert_eq!(data.to_vec(&stream).unwrap(), [2; 100]);
    std::thread::scope(|scope| {
        scope.spawn(|| transfer::fill(&kept, &mut data, 3).unwrap()).join().unwrap();
    });
    assert_eq!(data.to_vec(&stream).unwrap(), [3; 100]);
}

/// A step of a sampler, recorded once: logits, the numbers of candidates, and the tokens that are chosen are in memory that is lent by
/// its address, as other libraries do it.
fn a_sampler_step_in_foreign_memory(device: &Device) {
    const SEQUENCES: usize = 3;
    const VOCABULARY: usize = 500;
    const K: usize = 20;
    let stream = device.stream().unwrap();
    // What another library has allocated: on a GPU, memory of the device.
    let mut on_host = (vec![0f32; SEQUENCES * VOCABULARY], vec![0u32; SEQUENCES], vec![0u32; SEQUENCES]);
    let on_device: (DeviceVec<f32>, DeviceVec<u32>, DeviceVec<u32>);
    let addresses = if is_gpu(device) {
        on_device = (
            stream.zeroed(SEQUENCES * VOCABULARY).unwrap(),
            stream.zeroed(SEQUENCES).unwrap(),
            stream.zeroed(SEQUENCES).unwrap(),
        );
        (
            on_device.0.as_slice().as_ptr().cast_mut(),
            on_device.1.as_slice().as_ptr().cast_mut(),
            on_device.2.as_slice().as_ptr().cast_mut(),
        )
    } else {
        (on_host.0.as_mut_ptr(), on_host.1.as_mut_ptr(), on_host.2.as_mut_ptr())
    };
    let memory = (
        RawMemory::new(device, addresses.0, SEQUENCES * VOCABULARY).unwrap(),
        RawMemory::new(device, addresses.1, SEQUENCES).unwrap(),
        RawMemory::new(device, addresses.2, SEQUENCES).unwrap(),
    );
    // SAFETY: the memory is there until the end of the test, and nothing else uses it before.
    let (mut logits, mut wanted, mut tokens) = unsafe {
        (memory.0.lend_mut(&stream).unwrap(), memory.1.lend_mut(&stream).unwrap(), memory.2.lend_mut(&stream).unwrap())
    };

    let mut states = stream.upload(&[1u32, 20, 300]).unwrap();
    let (mut best, mut candidates) =
        (stream.zeroed::<f32>(SEQUENCES * K).unwrap(), stream.uninit::<u32>(SEQUENCES * K).unwrap());
    let recorded = stream.capture(|stream| {
        // The best of each sequence, as many as it wants, and the sums of their weights.
        let k = RowCounts::each(&wanted, K);
        top_k::segmented_largest(stream, &logits, Rows::of_len(VOCABULARY), k, (&mut best, &mut candidates))?;
        let weight = map!(|logit: f32, at: u32| -> u32 { if at == u32::MAX { 0 } else { logit as u32 + 1 } });
        let weights = map2(&best, &candidates, weight);
        let (mut upto, mut totals) = (stream.uninit::<u32>(SEQUENCES * K)?, stream.uninit::<u32>(SEQUENCES)?);
        scan::row_inclusive(stream, weights, K, &mut upto, scan::Sum)?;
        reduce::rows(stream, weights, K, &mut totals, reduce::Sum)?;
        // A random share, and how many candidates lie below it.
        transform::map_in_place(
            stream,
            &mut states,
            map!(|x: u32| -> u32 { x.wrapping_mul(747_796_405).wrapping_add(1) }),
        )?;
        let mut drawn = stream.uninit::<u32>(SEQUENCES)?;
        transform::map2(stream, &states, &totals, &mut drawn, map!(|x: u32, total: u32| -> u32 { (x >> 8) % total }))?;
        let row = map(counting(0u32, SEQUENCES * K), map!(|i: u32| -> u32 { i / K as u32 }));
        let is_below = map!(|upto: u32, drawn: u32| -> u32 { (upto <= drawn) as u32 });
        let mut below = stream.uninit::<u32>(SEQUENCES)?;
        reduce::rows(stream, map2(&upto, at(&drawn, row), is_below), K, &mut below, reduce::Sum)?;
        let place = map!(|row: u32, below: u32| -> u32 { row * K as u32 + below });
        let places = map2(counting(0u32, SEQUENCES), &below, place);
        permute::gather(stream, &candidates, places, &mut tokens)
    });
    let (mut graph, outside) = recorded.unwrap();

    let mut expected_states = [1u32, 20, 300];
    for round in 0..4 {
        let host: Vec<f32> = numbers(round, SEQUENCES * VOCABULARY).into_iter().map(|x| (x % 5000) as f32).collect();
        let counts = [1, 5 + round as u32, 99];
        logits.as_mut_slice().copy_from_host(&stream, &host).unwrap();
        wanted.as_mut_slice().copy_from_host(&stream, &counts).unwrap();
        // SAFETY: as above; the vectors are still there, too.
        unsafe { graph.launch(&stream).unwrap() };
        let mut expected = Vec::new();
        for (row, logits) in host.chunks(VOCABULARY).enumerate() {
            let mut order: Vec<usize> = (0..VOCABULARY).collect();
            order.sort_by(|&a, &b| logits[b].total_cmp(&logits[a]));
            order.truncate(K.min(counts[row] as usize));
            expected_states[row] = expected_states[row].wrapping_mul(747_796_405).wrapping_add(1);
            let weights: Vec<u32> = order.iter().map(|&token| logits[token] as u32 + 1).collect();
            let drawn = (expected_states[row] >> 8) % weights.iter().sum::<u32>();
            let chosen = sums(&weights).iter().filter(|&&upto| upto <= drawn).count();
            expected.push(order[chosen] as u32);
        }
        assert_eq!(tokens.to_vec(&stream).unwrap(), expected, "step {round}");
        assert_eq!(outside.get(&stream).unwrap(), 0);
        // A sequence that wants one candidate has no others.
        assert!(candidates.slice(1..K).unwrap().to_vec(&stream).unwrap().iter().all(|&at| at == u32::NONE));
    }
    drop((logits, wanted, tokens));
    stream.synchronize().unwrap();
}
