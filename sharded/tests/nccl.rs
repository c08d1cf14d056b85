//! The engine NCCL, with one rank: on the first GPU, if there is one and the library can be loaded.

use gpu_lsm::GpuLsm;
use gpu_primitives::scan::Sum;
use gpu_primitives::{Device, Stream};
use gpu_sharded::primitives::{scan, sort};
use gpu_sharded::{Incoming, Nccl, NcclId, Options, Outgoing, Sharded, Transport, World};
use libtest_mimic::{Arguments, Trial};
use std::process::ExitCode;
use std::time::{Duration, Instant};

fn main() -> ExitCode {
    let has_gpu = Device::cuda_count() > 0;
    let trial = |name: &str, test: fn(Stream, Nccl)| {
        Trial::test(name, move || {
            let stream = Device::cuda(0)?.stream()?;
            test(stream.clone(), Nccl::new(&stream, NcclId::new()?, 0, 1)?);
            Ok(())
        })
        .with_ignored_flag(!has_gpu)
    };
    let refused = Trial::test("streams_of_the_cpu_are_refused", || {
        let outcome = Nccl::new(&Device::cpu().stream()?, NcclId::from_bytes([0; 128]), 0, 1);
        assert!(outcome.unwrap_err().cause.contains("NCCL connects GPUs"));
        Ok(())
    });
    let trials =
        vec![trial("messages", messages), trial("dictionary", dictionary), trial("primitives", primitives), refused];
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// One rank sends to itself, in a group.
fn messages(stream: Stream, nccl: Nccl) {
    let deadline = Instant::now() + Duration::from_secs(30);
    assert_eq!(nccl.gather(b"mine", deadline).unwrap(), [b"mine"]);
    let long: Vec<u8> = (0..10_000).map(|i| i as u8).collect();
    assert!(nccl.gather(&long, deadline).unwrap() == [&long[..]]);
    let from: Vec<u32> = (0..1_000_000).collect();
    let from = stream.upload(&from).unwrap();
    let mut to = stream.zeroed::<u32>(from.len()).unwrap();
    let (first, second) = from.as_slice().split_at(300_000).unwrap();
    let (first_to, second_to) = to.as_mut_slice().split_at_mut(300_000).unwrap();
    let send = [first, second].map(|part| Outgoing { to: 0, bytes: part.bytes() });
    let mut receive = [first_to, second_to].map(|part| Incoming { from: 0, bytes: part.bytes() });
    // SAFETY: the rank sends itself what it receives.
    unsafe { nccl.exchange(&stream, &send, &mut receive, deadline).unwrap() };
    assert!(to.to_vec(&stream).unwrap() == from.to_vec(&stream).unwrap());
}

fn dictionary(stream: Stream, nccl: Nccl) {
    let world = World::new(nccl).shards_per_rank(3);
    let mut all = Sharded::<GpuLsm<u32, u32>>::new(&stream, Options::new(world)).unwrap();
    let keys = stream.upload(&(0..100_000).map(|i| i * 40_000).collect::<Vec<u32>>()).unwrap();
    all.insert(&stream, (&keys, &keys)).unwrap();
    let found = all.lookup(&stream, &keys).unwrap();
    assert!(found.values.to_vec(&stream).unwrap() == keys.to_vec(&stream).unwrap());
    assert_eq!(all.len(&stream).unwrap(), 100_000);
}

fn primitives(stream: Stream, nccl: Nccl) {
    let world = World::new(nccl).shards_per_rank(3);
    let keys: Vec<u32> = (0..100_000u32).map(|i| i.wrapping_mul(0x9E37_79B1)).collect();
    let uploaded = stream.upload(&keys).unwrap();
    let sorted = sort::keys(&stream, &world, &uploaded).unwrap().to_vec(&stream).unwrap();
    let mut expected = keys;
    expected.sort_unstable();
    assert!(sorted == expected);
    let ones = stream.upload(&[1u32; 1000]).unwrap();
    let scanned = scan::inclusive(&stream, &world, &ones, Sum).unwrap().to_vec(&stream).unwrap();
    assert!(scanned == (1..=1000).collect::<Vec<u32>>());
}
