//! Streams that share memory: every pair of operations, on two streams and two threads, without an event in between.

use gpu_conformance::data::random;
use gpu_conformance::{Case, cases, is_checked, is_gpu, is_long, run};
use gpu_primitives::compare::Less;
use gpu_primitives::multisplit::{self, Shift};
use gpu_primitives::operator::Recorded;
use gpu_primitives::scan::Monoid;
use gpu_primitives::select::{self, Masked};
use gpu_primitives::{
    CpuOptions, Device, DeviceSliceMut, DeviceVec, Error, FaultKind, Schedule, Stream, merge, reduce, scan, search,
    sort, transfer, transform,
};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Barrier, Mutex, PoisonError};

fn main() -> ExitCode {
    let mut cases = cases![
        small_pairs_of_operations,
        pairs_of_operations,
        a_read_is_not_overtaken_by_a_write,
        many_readers_and_a_writer,
        memory_is_freed_after_the_last_reader,
        unordered_slices_are_ordered_by_events,
        events_still_order_streams,
        streams_of_rayon_tasks,
        halves_of_one_vector,
        parts_are_read_by_streams_that_have_read_before,
        parts_and_streams_that_are_gone;
        checked:
        pairs_of_operations_at_random_moments,
        a_missing_wait_is_found,
        errors_are_told_to_who_waits,
        halves_of_one_vector_at_random_moments,
    ]
    .to_vec();
    // Operators cannot panic on a GPU.
    let on_the_cpu = cases![a_fault_spoils_nothing_of_another_thread, an_operator_that_asks_its_stream_for_memory];
    cases.extend(on_the_cpu.iter().map(|&case| Case { is_about: |device| !is_gpu(device), ..case }));
    run(&cases)
}

/// An operation on the elements of a vector: on the device, and on the host.
struct Operation {
    name: &'static str,
    device: fn(&Stream, &mut DeviceVec<u32>) -> Result<(), Error>,
    host: fn(&mut Vec<u32>),
}

const OPERATIONS: [Operation; 13] = [
    Operation {
        name: "fill",
        device: |stream, data| {
            let half = data.len() / 2;
            transfer::fill(stream, data.slice_mut(..half)?, 7)
        },
        host: |data| {
            let half = data.len() / 2;
            data[..half].fill(7);
        },
    },
    Operation {
        name: "upload",
        device: |stream, data| {
            let (half, rest) = (data.len() / 2, data.len().div_ceil(2));
            data.slice_mut(half..)?.copy_from_host(stream, &vec![5; rest])
        },
        host: |data| {
            let half = data.len() / 2;
            data[half..].fill(5);
        },
    },
    Operation {
        name: "sort of keys",
        device: |stream, data| sort::keys_in_place(stream, data, sort::Options::new()),
        host: |data| data.sort_unstable(),
    },
    Operation {
        name: "sort of pairs",
        device: |stream, data| {
            let mut places = stream.uninit::<u32>(data.len())?;
            transform::sequence(stream, &mut places, 0)?;
            sort::pairs_in_place(stream, (&mut *data, &mut places), sort::Options::new().descending())?;
            transfer::copy(stream, &places, data)
        },
        host: |data| {
            let mut places: Vec<u32> = (0..data.len() as u32).collect();
            places.sort_by_key(|&place| !data[place as usize]);
            *data = places;
        },
    },
    Operation {
        name: "scan in place",
        device: |stream, data| scan::inclusive_in_place(stream, data, scan::Sum),
        host: |data| {
            let mut sum = 0u32;
            data.iter_mut().for_each(|x| {
                sum = sum.wrapping_add(*x);
                *x = sum;
            });
        },
    },
    Operation {
        name: "scan",
        device: |stream, data| {
            let mut sums = stream.uninit::<u32>(data.len())?;
            scan::exclusive_sum(stream, &*data, &mut sums)?;
            data.copy_from(stream, &sums)
        },
        host: |data| {
            let mut sum = 0u32;
            data.iter_mut().for_each(|x| sum = sum.wrapping_add(std::mem::replace(x, sum)));
        },
    },
    Operation {
        name: "merge",
        device: |stream, data| {
            let mut sorted = data.try_clone(stream)?;
            sort::keys_in_place(stream, &mut sorted, sort::Options::new())?;
            let (a, b) = sorted.as_slice().split_at(sorted.len() / 3)?;
            merge::keys(stream, b, a, data, Less)
        },
        host: |data| data.sort_unstable(),
    },
    Operation {
        name: "merge of runs",
        device: |stream, data| {
            let mut sorted = data.try_clone(stream)?;
            sort::keys_in_place(stream, &mut sorted, sort::Options::new())?;
            let fifth = data.len() / 5;
            let runs: Vec<_> = (0..5)
                .map(|i| sorted.slice(i * fifth..if i == 4 { data.len() } else { (i + 1) * fifth }))
                .collect::<Result<_, _>>()?;
            merge::runs_keys(stream, &runs, data, Less)
        },
        host: |data| data.sort_unstable(),
    },
    Operation {
        name: "segmented sort",
        device: |stream, data| {
            let offsets = stream.upload(&[0, data.len() as u32 / 3, data.len() as u32])?;
            sort::segmented_keys_in_place(stream, data, &offsets, Less)
        },
        host: |data| {
            let third = data.len() / 3;
            data[..third].sort_unstable();
            data[third..].sort_unstable();
        },
    },
    Operation {
        name: "multisplit",
        device: |stream, data| {
            let mut split = stream.uninit::<u32>(data.len())?;
            multisplit::keys(stream, &*data, &mut split, 8, Shift::by(29))?;
            data.copy_from(stream, &split)
        },
        host: |data| data.sort_by_key(|x| x >> 29),
    },
    Operation {
        name: "select",
        device: |stream, data| {
            let mut selected = stream.zeroed::<u32>(data.len())?;
            select::select(stream, &*data, &mut selected, Masked::equal(1, 1))?;
            data.copy_from(stream, &selected)
        },
        host: |data| {
            let len = data.len();
            data.retain(|x| x & 1 == 1);
            data.resize(len, 0);
        },
    },
    Operation {
        name: "partition",
        device: |stream, data| {
            let mut parted = stream.uninit::<u32>(data.len())?;
            select::partition(stream, &*data, &mut parted, Masked::equal(1, 1))?;
            data.copy_from(stream, &parted)
        },
        host: |data| data.sort_by_key(|x| x & 1 == 0),
    },
    Operation {
        name: "search",
        device: |stream, data| {
            let mut sorted = data.try_clone(stream)?;
            sort::keys_in_place(stream, &mut sorted, sort::Options::new())?;
            let mut places = stream.uninit::<u32>(data.len())?;
            search::lower_bound(stream, &sorted, &*data, &mut places, Less)?;
            data.copy_from(stream, &places)
        },
        host: |data| {
            let mut sorted = data.clone();
            sorted.sort_unstable();
            data.iter_mut().for_each(|x| *x = sorted.partition_point(|y| y < x) as u32);
        },
    },
];

fn some(n: usize, seed: u64) -> Vec<u32> {
    random(seed).take(n).map(|x| x as u32).collect()
}

fn len(device: &Device) -> usize {
    match (is_gpu(device), is_checked(device)) {
        (true, _) => 100_000,
        (_, true) => 90,
        _ => 2000,
    }
}

/// Keeps a GPU's stream busy, so that later work does not run at once.
fn delay(stream: &Stream) -> Result<(), Error> {
    if is_gpu(stream.device()) {
        let mut waste = stream.zeroed::<u32>(1 << 22)?;
        for _ in 0..3 {
            scan::inclusive_in_place(stream, &mut waste, scan::Sum)?;
        }
    }
    Ok(())
}

/// Runs one operation on one stream, then another one on a second stream by another thread. A third stream reads the
/// memory.
fn check_pair(streams: &[Stream; 3], first: &Operation, second: &Operation, n: usize, seed: u64) {
    let when = format!("{}, then {}, seed {seed}", first.name, second.name);
    let [a, b, c] = streams;
    let mut host = some(n, seed);
    let mut data = a.upload(&host).unwrap();
    if n > 100 {
        delay(a).unwrap();
    }
    (first.device)(a, &mut data).unwrap();
    (first.host)(&mut host);
    // A read before the second operation must not see it.
    let between = (data.try_clone(a).unwrap(), host.clone());
    std::thread::scope(|scope| {
        scope.spawn(|| (second.device)(b, &mut data).unwrap());
    });
    (second.host)(&mut host);
    assert_eq!(data.to_vec(c).unwrap(), host, "{when}");
    assert_eq!(between.0.to_vec(c).unwrap(), between.1, "in between, {when}");
}

/// A few pairs, for slow tools.
fn small_pairs_of_operations(device: &Device) {
    let streams = [(); 3].map(|()| device.stream().unwrap());
    for (first, second) in OPERATIONS.iter().zip(OPERATIONS.iter().rev()) {
        check_pair(&streams, first, second, 90, 1);
    }
}

fn pairs_of_operations(device: &Device) {
    let streams = [(); 3].map(|()| device.stream().unwrap());
    for (i, first) in OPERATIONS.iter().enumerate() {
        for (j, second) in OPERATIONS.iter().enumerate() {
            check_pair(&streams, first, second, len(device), (i * 100 + j) as u64);
        }
    }
}

/// The same, with queues of the checked device that run at random moments.
fn pairs_of_operations_at_random_moments(_: &Device) {
    for seed in 0..40 {
        let options = CpuOptions { checked: true, schedule: Schedule::Random { seed }, ..CpuOptions::default() };
        let device = Device::cpu_with(options);
        let streams = [(); 3].map(|()| device.stream().unwrap());
        let [first, second] = [seed % 13, seed * 7 % 13].map(|i| &OPERATIONS[i as usize]);
        check_pair(&streams, first, second, 40, seed);
    }
}

/// A slow stream reads, and another stream writes at once.
fn a_read_is_not_overtaken_by_a_write(device: &Device) {
    let [a, b, c] = [(); 3].map(|()| device.stream().unwrap());
    let n = len(device);
    for operation in &OPERATIONS {
        let host = some(n, 3);
        let mut data = a.upload(&host).unwrap();
        delay(&b).unwrap();
        let copy = data.try_clone(&b).unwrap();
        (operation.device)(&a, &mut data).unwrap();
        let mut expected = host.clone();
        (operation.host)(&mut expected);
        assert_eq!(data.to_vec(&c).unwrap(), expected, "{}", operation.name);
        assert_eq!(copy.to_vec(&c).unwrap(), host, "before {}", operation.name);
    }
}

/// More readers than an allocation remembers, some of which are dropped before the write.
fn many_readers_and_a_writer(device: &Device) {
    let home = device.stream().unwrap();
    let n = len(device);
    let mut data = home.upload(&some(n, 1)).unwrap();
    for round in 0..3u32 {
        let expected = data.to_vec(&home).unwrap();
        let copies: Vec<_> = (0..20)
            .map(|_| {
                let reader = device.stream().unwrap();
                delay(&reader).unwrap();
                data.try_clone(&reader).unwrap()
            })
            .collect();
        let writer = device.stream().unwrap();
        transfer::fill(&writer, &mut data, round).unwrap();
        for copy in copies {
            assert_eq!(copy.to_vec(&writer).unwrap(), expected);
        }
        assert_eq!(data.to_vec(&home).unwrap(), vec![round; n]);
    }
}

/// A vector is dropped while other streams still read it, and its memory is reused at once.
fn memory_is_freed_after_the_last_reader(device: &Device) {
    let [home, reader] = [(); 2].map(|()| device.stream().unwrap());
    let n = len(device);
    for round in 0..10 {
        let host = some(n, round);
        let data = home.upload(&host).unwrap();
        delay(&reader).unwrap();
        let copy = data.try_clone(&reader).unwrap();
        drop(data);
        let mut again = home.uninit::<u32>(n).unwrap();
        transfer::fill(&home, &mut again, 9).unwrap();
        assert_eq!(copy.to_vec(&reader).unwrap(), host);
        assert_eq!(again.to_vec(&home).unwrap(), vec![9; n]);
    }
}

/// The checked device would show a missing wait in the library: here the caller omits it.
fn a_missing_wait_is_found(device: &Device) {
    let [a, b] = [(); 2].map(|()| device.stream().unwrap());
    let mut data = a.uninit::<u32>(100).unwrap();
    transfer::fill(&a, &mut data, 1).unwrap();
    // SAFETY: on the CPU device, all accessed memory exists. The accesses are in the wrong order on purpose.
    let unordered = unsafe { data.as_slice().unordered() };
    assert!(matches!(unordered.to_vec(&b), Err(Error::UninitialisedRead { index: 0 })));
    assert_eq!(data.to_vec(&b).unwrap(), [1; 100], "the fill is visible after the wait");

    transfer::fill(&a, &mut data, 2).unwrap();
    // SAFETY: as above.
    let unordered = unsafe { data.as_slice().unordered() };
    assert_eq!(unordered.to_vec(&b).unwrap(), [1; 100], "the fill has not happened yet");
    assert_eq!(data.to_vec(&b).unwrap(), [2; 100]);

    // Memory that is freed too early is detected, too.
    let copy = {
        let data = a.upload(&[3u32; 100]).unwrap();
        // SAFETY: as above. The library still waits before it frees the memory.
        let unordered = unsafe { data.as_slice().unordered() };
        b.wait(&a.record().unwrap()).unwrap();
        let mut copy = b.uninit::<u32>(100).unwrap();
        transfer::copy(&b, unordered, &mut copy).unwrap();
        copy
    };
    a.synchronize().unwrap();
    assert_eq!(copy.to_vec(&b).unwrap(), [3; 100]);
}

fn unordered_slices_are_ordered_by_events(device: &Device) {
    let [a, b] = [(); 2].map(|()| device.stream().unwrap());
    let n = len(device);
    let mut data = a.zeroed::<u32>(n).unwrap();
    let mut copy = b.zeroed::<u32>(n).unwrap();
    delay(&a).unwrap();
    transfer::fill(&a, &mut data, 4).unwrap();
    b.wait(&a.record().unwrap()).unwrap();
    // SAFETY: the event orders the two.
    let from = unsafe { data.as_slice().unordered() };
    // SAFETY: nothing else uses the copy.
    let to = unsafe { copy.as_mut_slice().unordered() };
    transfer::copy(&b, from, to).unwrap();
    assert_eq!(copy.to_vec(&b).unwrap(), vec![4; n]);
}

/// Events of streams with queued work, queried in several ways.
fn events_still_order_streams(device: &Device) {
    let [a, b] = [(); 2].map(|()| device.stream().unwrap());
    let mut data = a.zeroed::<u32>(len(device)).unwrap();
    let start = a.record().unwrap();
    transfer::fill(&a, &mut data, 1).unwrap();
    let end = a.record().unwrap();
    b.wait(&end).unwrap();
    let after = b.record().unwrap();
    while !after.is_done().unwrap() {
        std::thread::yield_now();
    }
    assert!(end.is_done().unwrap() && start.is_done().unwrap());
    end.elapsed(&start).unwrap();
    assert!(a.record().unwrap().elapsed(&start).is_ok());
}

/// A failed download returns its error to the caller that waits for it, and the stream still works.
fn errors_are_told_to_who_waits(device: &Device) {
    let [a, b] = [(); 2].map(|()| device.stream().unwrap());
    let unwritten = a.uninit::<u32>(10).unwrap();
    let pending = a.download_pinned(&unwritten, device.pinned(10).unwrap()).unwrap();
    b.synchronize().unwrap();
    assert!(matches!(pending.wait(), Err(Error::UninitialisedRead { index: 0 })));
    let mut data = a.zeroed::<u32>(10).unwrap();
    transfer::fill(&a, &mut data, 6).unwrap();
    assert_eq!(data.to_vec(&b).unwrap(), [6; 10]);
    // Dropping the pending buffer waits for the copy, so later waits do not return its error again.
    let gone = device.stream().unwrap();
    drop(gone.download_pinned(&unwritten, device.pinned(10).unwrap()));
    drop(gone);
    assert!(b.synchronize().is_ok(), "the error was already returned when the buffer was waited for");
}

/// Tasks that share a stream: a task that waits for its launch must not start another one that waits for the first.
fn streams_of_rayon_tasks(device: &Device) {
    let stream = device.stream().unwrap();
    let n = len(device);
    rayon::scope(|scope| {
        for task in 0..20u32 {
            let stream = stream.clone();
            scope.spawn(move |_| {
                let mut data = stream.zeroed::<u32>(n).unwrap();
                transfer::fill(&stream, &mut data, task).unwrap();
                scan::inclusive_in_place(&stream, &mut data, scan::Sum).unwrap();
                assert_eq!(data.to_vec(&stream).unwrap()[n - 1], (n as u32).wrapping_mul(task));
            });
        }
    });
}

/// Changes the elements of a half, with one launch or with several.
fn change(stream: &Stream, half: DeviceSliceMut<'_, u32>, round: u32) {
    match round % 3 {
        0 => transfer::fill(stream, half, round),
        1 => scan::inclusive_in_place(stream, half, scan::Sum),
        _ => sort::keys_in_place(stream, half, sort::Options::new().descending()),
    }
    .unwrap();
}

fn change_on_host(half: &mut [u32], round: u32) {
    match round % 3 {
        0 => half.fill(round),
        1 => {
            let mut sum = 0u32;
            half.iter_mut().for_each(|x| {
                sum = sum.wrapping_add(*x);
                *x = sum;
            });
        }
        _ => half.sort_by_key(|&x| !x),
    }
}

/// Two threads write the halves of one vector at the same moment, each on a stream of its own. Later a third stream reads
/// the vector, or the vector is dropped and its memory is used again.
fn check_halves(device: &Device, n: usize, rounds: u32) {
    let streams = [(); 2].map(|()| device.stream().unwrap());
    let [reader, home] = [(); 2].map(|()| device.stream().unwrap());
    let start = Barrier::new(2);
    let mut data = home.zeroed::<u32>(2 * n).unwrap();
    for round in 0..rounds {
        let mut host = some(2 * n, u64::from(round));
        // The last user of the whole vector is one of the two streams, or another one.
        let before = [&streams[0], &streams[1], &home][round as usize % 3];
        data.copy_from_host(before, &host).unwrap();
        let (low, high) = data.as_mut_slice().split_at_mut(n).unwrap();
        std::thread::scope(|scope| {
            for (stream, half) in streams.iter().zip([low, high]) {
                let start = &start;
                scope.spawn(move || {
                    start.wait();
                    change(stream, half, round);
                });
            }
        });
        host.chunks_mut(n).for_each(|half| change_on_host(half, round));
        if round % 4 == 3 {
            let copy = data.try_clone(&reader).unwrap();
            drop(data);
            let mut again = home.uninit::<u32>(2 * n).unwrap();
            transfer::fill(&home, &mut again, 9).unwrap();
            assert!(copy.to_vec(&reader).unwrap() == host, "round {round}");
            assert!(again.to_vec(&home).unwrap() == vec![9; 2 * n], "round {round}, used again");
            data = again;
        } else {
            assert!(data.to_vec(&reader).unwrap() == host, "round {round}");
        }
    }
}

fn halves_of_one_vector(device: &Device) {
    let (n, rounds) = match (is_gpu(device), is_checked(device)) {
        (true, _) => (100_000, 2000),
        (_, true) => (40, if is_long() { 3000 } else { 45 }),
        _ => (200, 20),
    };
    check_halves(device, n, rounds);
}

fn halves_of_one_vector_at_random_moments(_: &Device) {
    for seed in 0..if is_long() { 100 } else { 6 } {
        let options = CpuOptions { checked: true, schedule: Schedule::Random { seed }, ..CpuOptions::default() };
        check_halves(&Device::cpu_with(options), 20, 6);
    }
}

/// A stream that has read one part reads another one, which was written in the meantime.
fn parts_are_read_by_streams_that_have_read_before(device: &Device) {
    let [writer, reader] = [(); 2].map(|()| device.stream().unwrap());
    let n = len(device);
    for round in 0..10 {
        let mut data = writer.zeroed::<u32>(2 * n).unwrap();
        delay(&writer).unwrap();
        let (mut low, mut high) = data.as_mut_slice().split_at_mut(n).unwrap();
        assert_eq!(high.to_vec(&reader).unwrap(), vec![0; n]);
        delay(&writer).unwrap();
        transfer::fill(&writer, &mut low, round).unwrap();
        assert_eq!(low.to_vec(&reader).unwrap(), vec![round; n]);
        // The same the other way round: the reader writes, and the writer reads.
        delay(&reader).unwrap();
        transfer::fill(&reader, &mut high, round + 1).unwrap();
        assert_eq!(high.to_vec(&writer).unwrap(), vec![round + 1; n]);
        let both = data.to_vec(&device.stream().unwrap()).unwrap();
        assert!(both[..n] == vec![round; n] && both[n..] == vec![round + 1; n]);
    }
}

/// More streams than an allocation remembers write parts, and are dropped at once.
fn parts_and_streams_that_are_gone(device: &Device) {
    let home = device.stream().unwrap();
    let n = len(device).min(1000);
    let mut data = home.zeroed::<u32>(n).unwrap();
    for round in 0..30 {
        let (low, high) = data.as_mut_slice().split_at_mut(n / 2).unwrap();
        std::thread::scope(|scope| {
            for (half, value) in [(low, round), (high, round + 1)] {
                scope.spawn(move || {
                    let stream = device.stream().unwrap();
                    delay(&stream).unwrap();
                    transfer::fill(&stream, half, value).unwrap();
                });
            }
        });
    }
    let mut expected = vec![29; n];
    expected[n / 2..].fill(30);
    assert_eq!(data.to_vec(&device.stream().unwrap()).unwrap(), expected);
}

/// Adds, and panics at one number.
#[derive(Clone, Copy)]
#[repr(C)]
struct PanicsAt(u32);

// SAFETY: a number.
unsafe impl gpu_primitives::kernel::Param for PanicsAt {}

impl Monoid<u32> for PanicsAt {
    fn identity(&self) -> u32 {
        0
    }

    fn combine(&self, a: u32, b: u32) -> u32 {
        assert!(b != self.0, "on purpose");
        a.wrapping_add(b)
    }

    fn recorded() -> Recorded {
        <scan::Sum as Monoid<u32>>::recorded()
    }
}

/// Two threads use one stream, and the kernels of one of them stop half-way: the other one must not meet their tickets.
fn a_fault_spoils_nothing_of_another_thread(device: &Device) {
    const TILE: usize = 256 * 4 * 9;
    let stream = device.stream().unwrap();
    let n = if is_checked(device) { TILE + 1 } else { 3 * TILE };
    let rounds = if is_checked(device) { 3 } else { 60 };
    let mut host = vec![1u32; n];
    let ones = stream.upload(&host).unwrap();
    host[n - 7] = 13;
    let poisoned = stream.upload(&host).unwrap();
    let is_done = AtomicBool::new(false);
    let faults = std::thread::scope(|scope| {
        let faults = scope.spawn(|| {
            let mut sums = stream.zeroed::<u32>(n).unwrap();
            let mut faults = 0;
            while !is_done.load(Ordering::Relaxed) {
                let result = scan::inclusive(&stream, &poisoned, &mut sums, PanicsAt(13));
                assert!(matches!(result, Err(Error::KernelFault(_))), "{result:?}");
                faults += 1;
            }
            faults
        });
        // So that the other thread stops even if this one fails.
        struct Done<'a>(&'a AtomicBool);
        impl Drop for Done<'_> {
            fn drop(&mut self) {
                self.0.store(true, Ordering::Relaxed);
            }
        }
        let done = Done(&is_done);
        let mut sums = stream.zeroed::<u32>(n).unwrap();
        for round in 0..rounds {
            scan::inclusive_sum(&stream, &ones, &mut sums).unwrap();
            assert!(sums.to_vec(&stream).unwrap().into_iter().eq(1..=n as u32), "round {round}");
            assert_eq!(reduce::sum(&stream, &ones).unwrap().get(&stream).unwrap(), n as u32, "round {round}");
        }
        drop(done);
        faults.join().unwrap()
    });
    assert!(faults > 0);
}

/// The stream on which the operator runs.
static OWN: Mutex<Option<Stream>> = Mutex::new(None);

#[derive(Clone, Copy)]
#[repr(C)]
struct AsksItsStream;

// SAFETY: no bytes.
unsafe impl gpu_primitives::kernel::Param for AsksItsStream {}

impl Monoid<u32> for AsksItsStream {
    fn identity(&self) -> u32 {
        0
    }

    fn combine(&self, _: u32, _: u32) -> u32 {
        let stream = OWN.lock().unwrap_or_else(PoisonError::into_inner).clone().unwrap();
        let result = stream.lookback_words(10);
        assert!(matches!(result, Err(Error::HostCallInKernel)), "the call was accepted");
        panic!("refused")
    }

    fn recorded() -> Recorded {
        <scan::Sum as Monoid<u32>>::recorded()
    }
}

/// It would wait for its own kernel.
fn an_operator_that_asks_its_stream_for_memory(device: &Device) {
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let stream = device.stream().unwrap();
    *OWN.lock().unwrap() = Some(stream.clone());
    let mut data = stream.upload(&[1u32; 100]).unwrap();
    let result = scan::inclusive_in_place(&stream, &mut data, AsksItsStream);
    *OWN.lock().unwrap() = None;
    let Err(Error::KernelFault(fault)) = result else { panic!("{result:?}") };
    assert!(matches!(&fault.kind, FaultKind::Panic { message } if message.contains("refused")), "{fault}");
}
