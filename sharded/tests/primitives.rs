//! Primitives on many GPUs: ranks that are threads with a CPU device each, and shards of one rank on one or several devices. Failures in
//! every step.

mod common;

use bytemuck::{Pod, Zeroable};
use common::primitives::{Affine, Then, affine, check_all, check_join, check_sort, kinds};
use common::ranks::{Dying, run, worlds};
use gpu_dictionary_conformance::Random;
use gpu_primitives::equality::Same;
use gpu_primitives::operator::Record;
use gpu_primitives::scan::{Max, Sum};
use gpu_primitives::sort::RadixKey;
use gpu_primitives::{CpuOptions, Device, Error, Stream};
use gpu_sharded::primitives::{Spread, histogram, join, reduce, runs, scan, sort, top_k};
use gpu_sharded::{Link, Modelled, Threads, World};
use std::time::{Duration, Instant};

#[test]
fn as_one_host_thread_has_it() {
    for ranks in [1, 2, 3, 4, 5, 6, 7] {
        run(worlds(ranks), |world, stream| check_all(&world, &stream));
    }
}

#[test]
fn ranks_with_several_shards() {
    for (ranks, shards) in [(1, 2), (1, 5), (2, 3), (3, 2)] {
        run(worlds(ranks), |world, stream| check_all(&world.shards_per_rank(shards), &stream));
    }
}

#[test]
fn shards_of_a_simulated_device() {
    let stream = Device::cpu_checked().stream().unwrap();
    let world = World::local(3);
    for (kind, ranks) in kinds(1).into_iter().filter(|(kind, _)| ["few different", "random"].contains(kind)) {
        let ranks: Vec<Vec<u32>> = ranks.into_iter().map(|rank| rank.into_iter().take(60).collect()).collect();
        check_sort(&world, &stream, &ranks, kind);
        check_join(&world, &stream, &ranks, kind);
    }
}

#[test]
fn shards_on_several_devices() {
    let stream = Device::cpu().stream().unwrap();
    let devices: Vec<Stream> = (0..3).map(|_| Device::cpu_with(CpuOptions::default()).stream().unwrap()).collect();
    let world = World::on(devices.clone());
    let keys: Vec<u32> = (0..1000u32).map(|i| i.wrapping_mul(0x9E37_79B1) % 300).collect();
    let mut expected = keys.clone();
    expected.sort_unstable();
    // Memory on the device of the call, and memory where the shards are.
    let here = stream.upload(&keys).unwrap();
    let there = Spread::upload(&stream, &world, &keys).unwrap();
    let sorted = sort::keys(&stream, &world, &here).unwrap();
    assert_eq!(sorted.to_vec(&stream).unwrap(), expected);
    for (part, home) in sorted.parts().iter().zip(&devices) {
        assert!(part.device() == home.device());
    }
    assert_eq!(
        sort::keys(&stream, &world, &there).unwrap().into_one(&stream).unwrap().to_vec(&stream).unwrap(),
        expected
    );
    assert_eq!(reduce::sum(&stream, &world, &there).unwrap(), keys.iter().sum::<u32>());
    let scanned = scan::inclusive(&stream, &world, &there, Sum).unwrap().to_vec(&stream).unwrap();
    assert_eq!(scanned.last(), Some(&keys.iter().sum::<u32>()));
    assert_eq!(runs::unique(&stream, &world, &sorted, Same).unwrap().len(), 300);
    assert_eq!(top_k::largest(&stream, &world, &there, 3).unwrap().keys.to_vec(&stream).unwrap(), [299, 299, 299]);
    assert_eq!(histogram::even(&stream, &world, &there, 1, 0, 300).unwrap().to_vec(&stream).unwrap(), [1000]);
    let rows = join::inner(
        &stream,
        &world,
        (&there, &there),
        (&stream.upload(&[7u32]).unwrap(), &stream.upload(&[1u8]).unwrap()),
    );
    assert_eq!(rows.unwrap().left.len(), keys.iter().filter(|&&key| key == 7).count());
    // Parts on other devices than the shards' are refused.
    let parts = Spread::new(&world, (0..3).map(|_| stream.upload(&[1u32, 2]).unwrap()).collect()).unwrap();
    assert!(matches!(sort::keys(&stream, &world, &parts), Err(Error::WrongDevice { .. })));
    assert!(matches!(reduce::sum(&stream, &world, &parts), Err(Error::WrongDevice { .. })));
}

/// Sorts by `major`, then by `minor`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable, Record, RadixKey)]
struct Version {
    major: u32,
    minor: i32,
}

#[test]
fn keys_of_all_types() {
    run(worlds(3), |world, stream| {
        fn numbers<T>(of: impl Fn(u64) -> T) -> Vec<Vec<T>> {
            let mut random = Random(5);
            (0..3).map(|rank| (0..200 + rank).map(|_| of(random.number())).collect()).collect()
        }
        let check = "a type";
        check_sort(&world, &stream, &numbers(|n| n as u8), check);
        check_sort(&world, &stream, &numbers(|n| n as i16), check);
        check_sort(&world, &stream, &numbers(|n| n as i32), check);
        check_sort(&world, &stream, &numbers(|n| f32::from_bits(n as u32)), check);
        check_sort(&world, &stream, &numbers(|n| n as i64), check);
        check_sort(&world, &stream, &numbers(f64::from_bits), check);
        check_sort(&world, &stream, &numbers(|n| (u128::from(n) << 64) | u128::from(n % 3)), check);
        check_sort(&world, &stream, &numbers(|n| n as i128 - (1 << 63)), check);
        check_sort(&world, &stream, &numbers(|n| Version { major: n as u32 % 4, minor: (n >> 40) as i32 - 99 }), check);
        // Values of any size, and none.
        let own = stream.upload(&[3u32, 1, 2]).unwrap();
        let odd = stream.upload(&[[3u8; 7], [1; 7], [2; 7]]).unwrap();
        let (_, along) = sort::pairs(&stream, &world, (&own, &odd)).unwrap();
        assert_eq!(along.to_vec(&stream).unwrap(), [[world.rank() as u8 + 1; 7]; 3]);
        let none = stream.uninit::<()>(0).unwrap();
        let (keys, along) = sort::pairs(&stream, &world, (&own, &none)).unwrap();
        assert_eq!((keys.len(), along.len()), (3, 0));
        let rows = join::inner(&stream, &world, (&own, &none), (&own, &none)).unwrap();
        assert_eq!(
            (
                reduce::sum(&stream, &world, &stream.upload(&[rows.keys.len() as u32]).unwrap()).unwrap(),
                rows.left.len()
            ),
            (27, 0)
        );
    });
}

#[test]
fn more_shards_than_a_merge_takes_runs() {
    let stream = Device::cpu().stream().unwrap();
    let mut random = Random(3);
    let keys: Vec<u32> = (0..20_000).map(|_| random.number() as u32).collect();
    check_sort(&World::local(70), &stream, &[keys], "70 shards");
    // A call is split into 256 at most.
    let one = stream.upload(&[1u32]).unwrap();
    assert!(matches!(sort::keys(&stream, &World::local(300), &one), Err(Error::TooMany { .. })));
}

/// One rank has no memory: for its first allocation, or for its second one, and so on. All ranks get an error, or none, and what the
/// caller has stays as it is.
fn a_rank_without_memory<R>(name: &str, least: u32, call: impl Fn(&Stream, &World) -> Result<R, Error> + Sync) {
    let failures = run(worlds(3), |world, home| {
        for successes in 0..1000 {
            let stream = home.device().stream().unwrap();
            stream.fail_allocation_after((world.rank() == 1).then_some(successes));
            let outcome = call(&stream, &world);
            stream.fail_allocation_after(None);
            match outcome {
                Ok(_) => return successes,
                Err(Error::OutOfMemory { .. }) if world.rank() == 1 => {}
                Err(Error::RankFailed { rank: 1, .. }) if world.rank() != 1 => {}
                Err(error) => panic!("{name}: {error}"),
            }
        }
        panic!("{name} never succeeds");
    });
    assert!(failures.iter().all(|&count| count == failures[0]), "{name}: all ranks fail, or none: {failures:?}");
    assert!(failures[0] >= least, "{name}: only {} allocations have failed", failures[0]);
}

/// The elements of a rank in the tests of failures.
fn own(world: &World) -> Vec<u32> {
    (0..50).map(|i| (i * 7 + world.rank() as u32 * 3) % 40).collect()
}

/// A call of a primitive by a rank, with elements of its own.
type PrimitiveCall<'a> = &'a (dyn Fn(&Stream, &World) -> Result<(), Error> + Sync);

/// Hands over all calls, one after the other: their names, and how many allocations they make at least.
fn each_call(run: &mut dyn FnMut(&'static str, u32, PrimitiveCall<'_>)) {
    // The memory of the caller is not what fails.
    let upload = |stream: &Stream, world: &World| stream.device().stream().unwrap().upload(&own(world)).unwrap();
    let unchanged = |stream: &Stream, world: &World, keys: &gpu_primitives::DeviceVec<u32>| {
        assert_eq!(keys.to_vec(&stream.device().stream().unwrap()).unwrap(), own(world), "the input has changed");
    };
    macro_rules! call {
        ($name:literal, $least:literal, |$stream:ident, $world:ident, $keys:ident| $call:expr) => {
            run($name, $least, &|$stream, $world| {
                let $keys = &upload($stream, $world);
                let outcome = $call.map(drop);
                unchanged($stream, $world, $keys);
                outcome
            })
        };
    }
    call!("sort::keys", 8, |stream, world, keys| sort::keys(stream, world, keys));
    call!("sort::pairs", 10, |stream, world, keys| sort::pairs(stream, world, (keys, keys)));
    call!("reduce", 1, |stream, world, keys| reduce::reduce(stream, world, keys, Max));
    call!("scan::inclusive", 2, |stream, world, keys| scan::inclusive(stream, world, keys, Sum));
    call!("scan::exclusive", 2, |stream, world, keys| scan::exclusive(stream, world, keys, Sum, 5));
    call!("unique", 2, |stream, world, keys| runs::unique(stream, world, keys, Same));
    call!("reduce_by_key", 4, |stream, world, keys| runs::reduce_by_key(stream, world, (keys, keys), Same, Sum));
    call!("top_k", 6, |stream, world, keys| top_k::largest(stream, world, keys, 5));
    call!("histogram", 4, |stream, world, keys| histogram::even(stream, world, keys, 4, 0, 40));
    call!("join", 20, |stream, world, keys| join::inner(stream, world, (keys, keys), (keys, keys)));
}

#[test]
fn calls_succeed_everywhere_or_nowhere() {
    each_call(&mut |name, least, call| a_rank_without_memory(name, least, call));
}

/// A rank dies at any step of any call. The others learn it, and do not wait.
#[test]
fn ranks_die_at_any_step() {
    each_call(&mut |name, _, call| {
        let mut whole = 0;
        for steps in 0..40 {
            let mut engines = Threads::ranks(3);
            let dying = Dying::after(steps, engines.pop().unwrap());
            let mut worlds: Vec<World> = engines.into_iter().map(World::new).collect();
            worlds.push(World::new(dying));
            let outcomes = run(worlds, |world, stream| {
                let start = Instant::now();
                let outcome = call(&stream, &world);
                assert!(start.elapsed() < Duration::from_secs(20), "{name} waits");
                match &outcome {
                    Ok(()) => {}
                    Err(Error::DictionaryLost { cause }) => {
                        assert!(cause == "rank 2 has ended" || cause == "killed", "{name}: {cause}");
                        assert!(matches!(call(&stream, &world), Err(Error::DictionaryLost { .. })));
                    }
                    Err(error) => panic!("{name}: {error}"),
                }
                outcome.is_ok()
            });
            whole += usize::from(outcomes.iter().all(|&is_whole| is_whole));
            if whole > 0 {
                assert!(steps > 0, "{name} takes no step");
                break;
            }
        }
        assert_eq!(whole, 1, "{name} never succeeds");
    });
}

#[test]
fn ranks_that_call_differently_are_told() {
    run(worlds(3), |world, stream| {
        let (rank, w) = (world.rank(), &world);
        let keys = &stream.upload(&own(&world)).unwrap();
        let signed = &stream.upload(&[1i32, 2]).unwrap();
        let s = &stream;
        let other = |is_other: bool, a: &dyn Fn() -> Result<(), Error>, b: &dyn Fn() -> Result<(), Error>| {
            let outcome = if is_other { a() } else { b() };
            assert!(matches!(outcome, Err(Error::RanksDisagree { .. })), "{outcome:?}");
        };
        let sort = || sort::keys(s, w, keys).map(drop);
        other(rank == 1, &|| sort::keys(s, w, signed).map(drop), &sort);
        other(rank == 0, &|| sort::pairs(s, w, (keys, keys)).map(drop), &sort);
        other(rank == 2, &|| reduce::reduce(s, w, keys, Max).map(drop), &|| reduce::reduce(s, w, keys, Sum).map(drop));
        other(rank == 2, &|| scan::exclusive(s, w, keys, Sum, 1).map(drop), &|| {
            scan::exclusive(s, w, keys, Sum, 2).map(drop)
        });
        other(rank == 1, &|| top_k::largest(s, w, keys, 1).map(drop), &|| top_k::largest(s, w, keys, 2).map(drop));
        let even = |bins: usize, upper: u32| histogram::even(s, w, keys, bins, 0, upper).map(drop);
        other(rank == 1, &|| even(4, 40), &|| even(5, 40));
        other(rank == 1, &|| even(4, 40), &|| even(4, 41));
        // Another number of shards.
        let shards = w.clone().shards_per_rank(if rank == 1 { 2 } else { 1 });
        let outcome = sort::keys(s, &shards, keys).map(drop);
        assert!(matches!(outcome, Err(Error::RanksDisagree { .. })), "{outcome:?}");
        // One rank has one value too few.
        let few = keys.slice(..if rank == 1 { 49 } else { 50 }).unwrap();
        let outcomes = [
            sort::pairs(s, w, (keys, few)).map(drop),
            runs::reduce_by_key(s, w, (keys, few), Same, Sum).map(drop),
            join::inner(s, w, (keys, keys), (keys, few)).map(drop),
        ];
        for outcome in outcomes {
            match rank {
                1 => assert!(matches!(outcome, Err(Error::LengthMismatch { .. })), "{outcome:?}"),
                _ => assert!(matches!(outcome, Err(Error::RankFailed { rank: 1, .. })), "{outcome:?}"),
            }
        }
        // The ranks can go on.
        assert_eq!(sort::keys(s, w, keys).unwrap().len(), 50);
    });
}

#[test]
fn wrong_parts_and_recordings_are_refused() {
    let stream = Device::cpu().stream().unwrap();
    let world = World::local(2);
    let keys = stream.upload(&[1u32, 2, 3]).unwrap();
    let outcome = sort::keys(&stream, &world, vec![keys.as_slice(); 3]).map(drop);
    assert!(matches!(outcome, Err(Error::LengthMismatch { expected: 2, found: 3, .. })), "{outcome:?}");
    assert!(Spread::new(&world, vec![keys]).is_err());
    let keys = stream.upload(&[1u32, 2, 3]).unwrap();
    let outcome = stream.capture(|stream| sort::keys(stream, &world, &keys)).map(drop);
    assert!(matches!(outcome, Err(Error::NotRecordable { .. })), "{outcome:?}");
    let outcome = stream.capture(|stream| reduce::sum(stream, &world, &keys)).map(drop);
    assert!(matches!(outcome, Err(Error::NotRecordable { .. })), "{outcome:?}");
    assert_eq!(reduce::sum(&stream, &world, &keys).unwrap(), 6);
}

/// Calls of a world with one shard are those of the primitives.
#[test]
fn one_shard() {
    let stream = Device::cpu().stream().unwrap();
    let functions: Vec<Affine> = (0..100).map(affine).collect();
    let elements = stream.upload(&functions).unwrap();
    let mut scanned = stream.uninit(100).unwrap();
    gpu_primitives::scan::inclusive(&stream, &elements, &mut scanned, Then).unwrap();
    let spread = scan::inclusive(&stream, &World::default(), &elements, Then).unwrap();
    assert_eq!(spread.into_one(&stream).unwrap().to_vec(&stream).unwrap(), scanned.to_vec(&stream).unwrap());
}

/// The account of the engine has the bytes that the page says, and one exchange per sort or join.
#[test]
fn bytes_are_those_of_the_model() {
    let link = Link { latency: Duration::from_micros(10), bytes_per_second: 1e9 };
    for ranks in [2, 4, 7] {
        let (engines, accounts): (Vec<_>, Vec<_>) =
            Threads::ranks(ranks).into_iter().map(|engine| Modelled::new(engine, link)).unzip();
        run(engines.into_iter().map(World::new).collect(), |world, stream| {
            const N: usize = 20_000;
            let rank = world.rank();
            let mut random = Random(rank as u64);
            let keys: Vec<u32> = (0..N).map(|_| random.number() as u32).collect();
            let keys = stream.upload(&keys).unwrap();
            let account = || *accounts[rank].lock().unwrap();
            let away = N as f64 * (ranks - 1) as f64 / ranks as f64;
            let near = |bytes: u64, expected: f64, what: &str| {
                let ratio = bytes as f64 / expected;
                assert!((0.95..1.05).contains(&ratio), "{what}: {bytes} bytes, {expected} expected");
            };
            let before = account();
            sort::pairs(&stream, &world, (&keys, &keys)).unwrap();
            let sorted = account();
            near(sorted.sent - before.sent, 8.0 * away, "sort");
            near(sorted.received - before.received, 8.0 * away, "sort");
            assert_eq!(sorted.exchanges - before.exchanges, 1);
            let gathers = sorted.gathers - before.gathers;
            assert!((5..=13).contains(&gathers), "{gathers} small steps");
            join::inner(&stream, &world, (&keys, &keys), (&keys, &keys)).unwrap();
            let joined = account();
            near(joined.sent - sorted.sent, 16.0 * away, "join");
            assert_eq!((joined.exchanges - sorted.exchanges, joined.gathers - sorted.gathers), (1, 3));
            reduce::sum(&stream, &world, &keys).unwrap();
            scan::inclusive(&stream, &world, &keys, Sum).unwrap();
            runs::unique(&stream, &world, &keys, Same).unwrap();
            let rest = account();
            assert_eq!((rest.exchanges - joined.exchanges, rest.gathers - joined.gathers), (0, 5));
        });
    }
}
