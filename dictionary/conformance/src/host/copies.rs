//! Copies of a dictionary: they stay as they are while the original changes, and the other way round.

use super::model::{Family, Modelled, Random, is_long};
use super::streams::{OPERATIONS, operate};
use gpu_conformance::{is_checked, is_gpu};
use gpu_dictionary::Dictionary;
use gpu_primitives::{CpuOptions, Device, Schedule, Stream};
use std::sync::{Mutex, mpsc};

type Both<F> = Modelled<F, u32, u32>;

/// Every operation on the original, then on the copy, and both compared with their models: with an index that was built
/// before the copy was made, or after, by the original or by the copy.
pub fn copies_are_independent<F: Family>(device: &Device) {
    let stream = device.stream().unwrap();
    let domain: Vec<u32> = (0..60).map(|i| i * 5).collect();
    for (i, operation) in OPERATIONS.iter().enumerate() {
        for asked_before in [false, true] {
            let mut random = Random((2 * i + usize::from(asked_before)) as u64);
            let mut original = Both::<F>::new(&stream, 8);
            for _ in 0..3 {
                operate(&mut original, "insert", &stream, &mut random, &domain);
            }
            if asked_before {
                original.check(&stream, &domain, "before the copy");
            }
            let mut copy = original.copy(&stream);
            operate(&mut original, operation, &stream, &mut random, &domain);
            copy.check_all(&stream, &mut random, &domain, &format!("the copy after {operation} of the original"));
            original.check(&stream, &domain, &format!("the original after its {operation}"));
            let copy_of_copy = copy.copy(&stream);
            operate(&mut copy, operation, &stream, &mut random, &domain);
            original.check(&stream, &domain, &format!("the original after {operation} of the copy"));
            drop(original);
            copy.check_all(&stream, &mut random, &domain, &format!("the copy after its {operation}"));
            drop(copy);
            copy_of_copy.check(&stream, &domain, "the copy of the copy, alone");
        }
    }
}

/// One thread updates the dictionary. After each update it hands a copy to threads that query it on streams of their own,
/// so that many versions are alive at a time and are dropped in any order.
pub fn copies_are_queried_while_updates_go_on<F: Family<Of<u32, u32>: Send + Sync>>(device: &Device) {
    const READERS: usize = 3;
    let rounds = match (is_long(), is_checked(device)) {
        (true, false) => 3000,
        (true, true) => 300,
        (false, false) => 60,
        (false, true) => 20,
    };
    for seed in 0..if is_checked(device) { 3u64 } else { 1 } {
        let schedule = Schedule::Random { seed };
        let device = match seed {
            0 => device.clone(),
            _ => Device::cpu_with(CpuOptions { checked: true, schedule, ..CpuOptions::default() }),
        };
        let domain: Vec<u32> = (0..if is_gpu(&device) { 3000 } else { 50 }).map(|i| i * 7).collect();
        let (send, receive) = mpsc::channel::<Both<F>>();
        let receive = Mutex::new(receive);
        std::thread::scope(|scope| {
            for reader in 0..READERS {
                let (device, domain, receive) = (&device, &domain, &receive);
                scope.spawn(move || {
                    let stream = device.stream().unwrap();
                    let mut random = Random(seed << 32 | reader as u64);
                    let mut kept: Vec<Both<F>> = Vec::new();
                    loop {
                        let next = receive.lock().unwrap().recv();
                        let Ok(copy) = next else { break };
                        copy.check_all(&stream, &mut random, domain, "a copy");
                        kept.push(copy);
                        // Asked again, when the original is much further.
                        let again = random.below(kept.len());
                        kept[again].check(&stream, domain, "an older copy");
                        if kept.len() > 4 {
                            drop(kept.swap_remove(random.below(kept.len())));
                        }
                    }
                });
            }
            let streams = [(); 2].map(|()| device.stream().unwrap());
            let mut random = Random(!seed);
            let mut original = Both::<F>::new(&streams[0], domain.len() / 16);
            for _ in 0..rounds {
                let stream: &Stream = &streams[random.below(2)];
                let operation = OPERATIONS[random.below(OPERATIONS.len())];
                operate(&mut original, operation, stream, &mut random, &domain);
                send.send(original.copy(stream)).unwrap();
            }
            drop(send);
            original.check_all(&streams[0], &mut random, &domain, "the original at the end");
        });
    }
}

/// When all copies are dropped, their memory is free.
pub fn copies_free_their_memory<F: Family>(device: &Device) {
    let stream = device.stream().unwrap();
    let domain: Vec<u32> = (0..200).collect();
    let run = || {
        let mut random = Random(3);
        let mut original = Both::<F>::new(&stream, 16);
        let mut copies = Vec::new();
        for round in 0..12 {
            operate(&mut original, ["insert", "update", "tidy"][round % 3], &stream, &mut random, &domain);
            copies.push(original.copy(&stream));
            let asked = random.below(copies.len());
            copies[asked].check(&stream, &domain, "a copy");
        }
        drop(original);
        copies.swap(0, 5);
        for copy in copies {
            copy.check(&stream, &domain, "a copy without the original");
        }
    };
    // The first time, the stream's own memory grows.
    run();
    stream.synchronize().unwrap();
    let before = device.memory_used();
    run();
    stream.synchronize().unwrap();
    assert_eq!(device.memory_used(), before);
}

/// A copy of a dictionary whose parts never change takes no device memory.
pub fn copies_take_no_memory<F: Family>(device: &Device) {
    let stream = device.stream().unwrap();
    let mut original = Both::<F>::new(&stream, 16);
    let keys: Vec<u32> = (0..1000).collect();
    original.insert(&stream, &keys, &keys);
    original.check(&stream, &keys, "before");
    stream.synchronize().unwrap();
    let before = device.memory_used();
    device.reset_peak_memory();
    let copies: Vec<_> = (0..10).map(|_| original.dictionary.try_clone(&stream).unwrap()).collect();
    assert_eq!((device.memory_used(), device.peak_memory()), (before, before));
    // All of them share the index, too.
    for copy in &copies {
        copy.contains(&stream, &stream.upload(&[1u32]).unwrap()).unwrap().to_vec(&stream).unwrap();
    }
    stream.synchronize().unwrap();
    assert_eq!(device.memory_used(), before);
}
