//! A dictionary on several streams and threads, without events.

use super::model::{Family, Modelled, Random, is_long};
use gpu_conformance::{is_checked, is_gpu};
use gpu_dictionary::{Dictionary, Updatable};
use gpu_primitives::{CpuOptions, Device, Schedule, Stream, scan};
use std::sync::RwLock;
use std::sync::atomic::{AtomicUsize, Ordering};

type Both<F> = Modelled<F, u32, u32>;

/// The operations on a dictionary.
pub const OPERATIONS: [&str; 9] =
    ["insert", "delete", "update", "tidy", "rebuild", "clear", "lookup", "export", "order and length"];

/// Applies an operation, with random keys of the domain.
pub fn operate<F: Family>(both: &mut Both<F>, operation: &str, stream: &Stream, random: &mut Random, domain: &[u32]) {
    let keys = random.keys(domain, domain.len() / 2);
    let values = random.values::<u32>(keys.len());
    match operation {
        "insert" => both.insert(stream, &keys, &values),
        "delete" => both.delete(stream, &keys),
        "update" => both.update(stream, &keys, &values, &random.keys(domain, domain.len() / 4)),
        "tidy" => both.tidy(stream),
        "rebuild" => both.rebuild(stream, &keys, &values),
        "clear" => {
            both.dictionary.clear(stream).unwrap();
            both.model.clear();
        }
        question => ask(both, question, stream, random, domain),
    }
}

/// The operations that change nothing.
fn ask<F: Family>(both: &Both<F>, question: &str, stream: &Stream, random: &mut Random, domain: &[u32]) {
    let keys = random.keys(domain, domain.len() / 2);
    match question {
        "lookup" => {
            let found = both.dictionary.lookup(stream, &stream.upload(&keys).unwrap()).unwrap().to_vec(stream).unwrap();
            let expected: Vec<_> = keys.iter().map(|key| both.model.get(key).copied()).collect();
            assert_eq!(found, expected, "lookup");
        }
        "export" => both.check(stream, &keys, "export"),
        _ => both.check_all(stream, random, domain, "all queries"),
    }
}

/// Keeps a GPU's stream busy.
fn delay(stream: &Stream) {
    if is_gpu(stream.device()) {
        let mut waste = stream.zeroed::<u32>(1 << 22).unwrap();
        scan::inclusive_in_place(stream, &mut waste, scan::Sum).unwrap();
    }
}

/// Every pair of operations, on two streams by two threads.
pub fn pairs_of_operations_on_two_streams<F: Family<Of<u32, u32>: Send + Sync>>(device: &Device) {
    let [a, b, c] = [(); 3].map(|()| device.stream().unwrap());
    let domain: Vec<u32> = (0..if is_gpu(device) { 5000 } else { 60 }).collect();
    for (i, first) in OPERATIONS.iter().enumerate() {
        for (j, second) in OPERATIONS.iter().enumerate() {
            let mut random = Random((i * 100 + j) as u64);
            let mut both = Both::<F>::new(&a, domain.len() / 8);
            operate(&mut both, "insert", &a, &mut random, &domain);
            delay(&a);
            operate(&mut both, first, &a, &mut random, &domain);
            let both = &mut both;
            std::thread::scope(|scope| {
                scope.spawn(|| operate(both, second, &b, &mut random, &domain));
            });
            both.check(&c, &domain[..domain.len() / 2], &format!("{first}, then {second}"));
        }
    }
}

/// Threads with their own streams share a dictionary. A lock orders the calls on the host; only the library orders the
/// work on the device.
pub fn threads_and_streams_at_random<F: Family<Of<u32, u32>: Send + Sync>>(device: &Device) {
    const THREADS: usize = 4;
    let rounds = match (is_long(), is_checked(device)) {
        (true, false) => 10_000,
        (true, true) => 1000,
        (false, false) => 300,
        (false, true) => 60,
    };
    let seeds = if is_checked(device) { 2 } else { 1 };
    for seed in 0..seeds {
        let schedule = Schedule::Random { seed };
        let device = match is_checked(device) && seed > 0 {
            true => Device::cpu_with(CpuOptions { checked: true, schedule, ..CpuOptions::default() }),
            false => device.clone(),
        };
        let domain: Vec<u32> = (0..if is_gpu(&device) { 3000 } else { 50 }).map(|i| i * 7).collect();
        let shared = RwLock::new(Both::<F>::new(&device.stream().unwrap(), domain.len() / 16));
        let round = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let (device, domain, shared, round) = (&device, &domain, &shared, &round);
                scope.spawn(move || {
                    let streams = [(); 2].map(|()| device.stream().unwrap());
                    let mut random = Random(seed << 32 | thread as u64);
                    while round.fetch_add(1, Ordering::Relaxed) < rounds {
                        let stream = &streams[random.below(2)];
                        match random.below(16) {
                            0..=3 => operate(&mut shared.write().unwrap(), "insert", stream, &mut random, domain),
                            4..=5 => operate(&mut shared.write().unwrap(), "delete", stream, &mut random, domain),
                            6..=7 => operate(&mut shared.write().unwrap(), "update", stream, &mut random, domain),
                            8 => operate(&mut shared.write().unwrap(), "tidy", stream, &mut random, domain),
                            9 if random.below(4) == 0 => {
                                operate(&mut shared.write().unwrap(), "clear", stream, &mut random, domain);
                            }
                            10 => ask(&shared.read().unwrap(), "all", stream, &mut random, domain),
                            11 => ask(&shared.read().unwrap(), "export", stream, &mut random, domain),
                            _ => ask(&shared.read().unwrap(), "lookup", stream, &mut random, domain),
                        }
                    }
                });
            }
        });
        let both = shared.into_inner().unwrap();
        both.check_all(&device.stream().unwrap(), &mut Random(1), &domain, "at the end");
    }
}
