//! Many ranks, as threads with a CPU device each: the suite that all dictionaries share, ranks with different keys, faults, skew,
//! and sets of files.

mod common;

use common::histories::{history, ordered_history};
use common::ranks::{Dying, run, worlds};
use common::{Cuckoo, Lsm, SOME, SortedArray, set_world};
use gpu_conformance::Case;
use gpu_cuckoo::{GpuCuckoo, PlainCuckoo};
use gpu_dictionary::{LargeValues, Updatable};
use gpu_dictionary_conformance::{Random, cases, ordered_cases};
use gpu_lsm::GpuLsm;
use gpu_primitives::scan::{Max, Sum};
use gpu_primitives::{CpuOptions, Device, Error, Stream};
use gpu_sharded::{Incoming, Link, Lost, Modelled, Options, Outgoing, Shard, Sharded, Threads, Transport, World};
use gpu_sorted_array::GpuSortedArray;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::time::{Duration, Instant};

const RANKS: [usize; 5] = [1, 2, 3, 4, 7];

/// Every rank makes the same calls with the same keys. Then all have the same answers as one.
fn suite(ranks: usize, cases: &[Case], names: &[&str]) {
    let chosen: Vec<&Case> = cases.iter().filter(|case| names.contains(&case.name)).collect();
    assert_eq!(chosen.len(), names.len());
    run(worlds(ranks), |world, stream| {
        set_world(world);
        chosen.iter().for_each(|case| (case.run)(stream.device()));
    });
}

#[test]
fn the_suite_on_two_ranks() {
    let names = [&SOME[..], &["small_history", "wide_keys_and_values", "copies_are_independent"]].concat();
    suite(2, &cases::<Lsm>(), &names);
    suite(2, &cases::<SortedArray>(), &SOME);
    suite(2, &cases::<Cuckoo>(), &names);
    suite(2, &ordered_cases::<Lsm>(), &["intervals_of_different_lengths", "intervals_are_reduced"]);
}

#[test]
fn the_suite_on_more_ranks() {
    for ranks in [1, 3, 4, 7] {
        suite(ranks, &cases::<Lsm>(), &SOME);
        suite(ranks, &cases::<Cuckoo>(), &SOME);
    }
}

#[test]
fn ranks_have_keys_of_their_own() {
    for ranks in RANKS {
        for shards in if ranks < 4 { [1, 3] } else { [1, 2] } {
            run(worlds(ranks), |world, stream| {
                let world = || world.clone().shards_per_rank(shards);
                ordered_history::<GpuLsm<u32, u32>>(world(), &stream, |n| (n % 500) as u32 * 7_000_000);
                history::<GpuCuckoo<u64, u32>>(world(), &stream, |n| (n % 500) << 40);
            });
        }
    }
}

#[test]
fn keys_of_all_sizes() {
    // Some are split in one pass; others by searches, or by hashes of their codes.
    for shards in [2, 8, 15, 20] {
        let stream = Device::cpu().stream().unwrap();
        let world = || World::local(shards);
        ordered_history::<GpuLsm<u8, u32>>(world(), &stream, |n| n as u8);
        ordered_history::<GpuSortedArray<i16, u32>>(world(), &stream, |n| n as i16);
        ordered_history::<GpuSortedArray<i32, u32>>(world(), &stream, |n| (n % 300) as i32 - 150);
        ordered_history::<GpuLsm<f32, u32>>(world(), &stream, |n| (n % 300) as f32 - 150.0);
        ordered_history::<GpuLsm<i64, u32>>(world(), &stream, |n| (n % 300) as i64 - 150);
        ordered_history::<GpuLsm<f64, u32>>(world(), &stream, |n| ((n % 300) as f64 - 150.0) * 1e100);
        ordered_history::<LargeValues<GpuLsm<u32, u32>, u32>>(world(), &stream, |n| (n % 300) as u32);
        ordered_history::<GpuLsm<u128, u32>>(world(), &stream, |n| u128::from(n % 300) << 90);
        history::<GpuCuckoo<f32, u32>>(world(), &stream, |n| (n % 300) as f32 - 150.0);
        history::<GpuCuckoo<i64, u32>>(world(), &stream, |n| (n % 300) as i64 - 150);
        history::<PlainCuckoo<i16, u32>>(world(), &stream, |n| (n % 300) as i16 - 150);
        history::<PlainCuckoo<u128, u32>>(world(), &stream, |n| u128::from(n % 300) << 90);
    }
}

#[test]
fn shards_on_several_devices() {
    let stream = Device::cpu().stream().unwrap();
    let devices = || (0..3).map(|_| Device::cpu_with(CpuOptions::default()).stream().unwrap());
    ordered_history::<GpuLsm<u32, u32>>(World::on(devices()), &stream, |n| (n % 500) as u32);
    history::<GpuCuckoo<u32, u32>>(World::on(devices()), &stream, |n| (n % 500) as u32);
    // One of them is on the device of the calls.
    let world = World::on(devices().take(1).chain([Device::cpu().stream().unwrap()]));
    ordered_history::<GpuSortedArray<u32, u32>>(world, &stream, |n| (n % 500) as u32);
}

#[test]
fn upserts_are_combined_in_the_order_of_the_ranks() {
    for ranks in RANKS {
        run(worlds(ranks), |world, stream| {
            let rank = world.rank() as u32;
            let mut all = Sharded::<GpuLsm<u32, u32>>::new(&stream, Options::new(world)).unwrap();
            let keys: Vec<u32> = (0..100).map(|i| i * 1000).collect();
            let (keys, values) = (stream.upload(&keys).unwrap(), stream.upload(&[rank + 1; 100]).unwrap());
            for _ in 0..3 {
                all.upsert(&stream, (&keys, &values), Sum).unwrap();
            }
            let sum = 3 * (1..=ranks as u32).sum::<u32>();
            assert_eq!(all.lookup(&stream, &keys).unwrap().values.to_vec(&stream).unwrap(), [sum; 100]);
            // The highest rank wins.
            all.insert(&stream, (&keys, &values)).unwrap();
            assert_eq!(all.lookup(&stream, &keys).unwrap().values.to_vec(&stream).unwrap(), [ranks as u32; 100]);
        });
    }
}

#[test]
fn nothing_of_several_shards_is_recorded() {
    let stream = Device::cpu().stream().unwrap();
    let mut all = Sharded::<GpuLsm<u32, u32>>::new(&stream, Options::new(World::local(3))).unwrap();
    let keys = stream.upload(&[1, 2]).unwrap();
    all.insert(&stream, (&keys, &keys)).unwrap();
    let is_refused = |error: Error| assert!(matches!(error, Error::NotRecordable { .. }), "{error}");
    is_refused(stream.capture(|stream| all.lookup(stream, &keys)).map(drop).unwrap_err());
    is_refused(stream.capture(|stream| all.count(stream, &keys, &keys)).map(drop).unwrap_err());
    is_refused(stream.capture(|stream| all.insert(stream, (&keys, &keys))).map(drop).unwrap_err());
    assert_eq!(all.len(&stream).unwrap(), 2);
}

#[test]
fn ranks_that_call_differently_are_told() {
    for ranks in [2, 3, 7] {
        run(worlds(ranks), |world, stream| {
            let rank = world.rank();
            let mut all = Sharded::<GpuCuckoo<u32, u32>>::new(&stream, Options::new(world.clone())).unwrap();
            let mut other = Sharded::<GpuCuckoo<u32, u32>>::new(&stream, Options::new(world)).unwrap();
            let keys = stream.upload(&(0..50).collect::<Vec<u32>>()).unwrap();
            all.insert(&stream, (&keys, &keys)).unwrap();
            let outcomes = [
                // One rank inserts, the others look up.
                if rank == 1 { all.insert(&stream, (&keys, &keys)) } else { all.lookup(&stream, &keys).map(drop) },
                // One rank calls another dictionary.
                if rank == 0 { all.delete(&stream, &keys) } else { other.delete(&stream, &keys) },
                // Another operation.
                match rank {
                    0 => all.upsert(&stream, (&keys, &keys), Sum),
                    _ => all.upsert(&stream, (&keys, &keys), Max),
                },
            ];
            for outcome in outcomes {
                assert!(matches!(outcome, Err(Error::RanksDisagree { .. })), "{outcome:?}");
            }
            // One rank has one value too few.
            let few = keys.slice(..if rank == 1 { 49 } else { 50 }).unwrap();
            let outcome = all.insert(&stream, (&keys, few));
            match rank {
                1 => assert!(matches!(outcome, Err(Error::LengthMismatch { .. })), "{outcome:?}"),
                _ => assert!(matches!(outcome, Err(Error::RankFailed { rank: 1, .. })), "{outcome:?}"),
            }
            assert_eq!(
                all.lookup(&stream, &keys).unwrap().values.to_vec(&stream).unwrap(),
                (0..50).collect::<Vec<_>>()
            );
            assert_eq!((all.len(&stream).unwrap(), other.len(&stream).unwrap()), (50, 0));
        });
    }
}

/// What must be the same on all ranks is compared when a dictionary is made. The ranks can go on with another one.
#[test]
fn ranks_with_other_options_are_told() {
    type Lsm = Sharded<GpuLsm<u32, u32>>;
    for ranks in [2, 3, 7] {
        run(worlds(ranks), |world, stream| {
            let is_other = world.rank() == 1;
            let keys = stream.upload(&(0..50).collect::<Vec<u32>>()).unwrap();
            let shards = || Options::new(world.clone().shards_per_rank(if is_other { 2 } else { 1 }));
            let batches = || {
                let batch_size = if is_other { 512 } else { 1024 };
                Options::new(world.clone()).shard(gpu_lsm::Options::new().batch_size(batch_size))
            };
            let balanced = || Options::new(world.clone()).balance_from(if is_other { 10 } else { 20 });
            let too_many = || Options::new(world.clone().shards_per_rank(if is_other { 10_000 } else { 1 }));
            for (options, what) in [
                (&shards as &dyn Fn() -> Options<gpu_lsm::Options>, "`shards_per_rank`"),
                (&batches, "different options"),
                (&balanced, "different options"),
                (&too_many, "`shards_per_rank`"),
            ] {
                for outcome in [
                    Lsm::new(&stream, options()).map(drop),
                    Lsm::bulk_build(&stream, (&keys, &keys), options()).map(drop),
                ] {
                    let Err(Error::RanksDisagree { what: told }) = &outcome else { panic!("{what}: {outcome:?}") };
                    assert!(told.contains(what), "{told}");
                }
            }
            let all = Lsm::bulk_build(&stream, (&keys, &keys), Options::new(world)).unwrap();
            assert_eq!(all.len(&stream).unwrap(), 50);
        });
    }
}

/// What a table's random seed is does not matter: the ranks need not have the same.
#[test]
fn tables_of_ranks_have_seeds_of_their_own() {
    run(worlds(2), |world, stream| {
        let keys = stream.upload(&(0..50).collect::<Vec<u32>>()).unwrap();
        let mut all = Sharded::<GpuCuckoo<u32, u32>>::new(&stream, Options::new(world)).unwrap();
        all.insert(&stream, (&keys, &keys)).unwrap();
        let copy = Sharded::<GpuCuckoo<u32, u32>>::bulk_build(&stream, (&keys, &keys), all.options()).unwrap();
        all.clear(&stream).unwrap();
        assert_eq!((all.len(&stream).unwrap(), copy.len(&stream).unwrap()), (0, 50));
    });
}

/// An engine that gathers too few messages, or messages of other lengths.
#[derive(Debug)]
struct Lying {
    engine: Threads,
    how: fn(&mut Vec<Vec<u8>>),
}

impl Transport for Lying {
    fn rank(&self) -> usize {
        self.engine.rank()
    }

    fn ranks(&self) -> usize {
        Transport::ranks(&self.engine)
    }

    fn gather(&self, mine: &[u8], deadline: Instant) -> Result<Vec<Vec<u8>>, Lost> {
        let mut all = self.engine.gather(mine, deadline)?;
        (self.how)(&mut all);
        Ok(all)
    }

    unsafe fn exchange(
        &self,
        stream: &Stream,
        send: &[Outgoing<'_>],
        receive: &mut [Incoming<'_>],
        deadline: Instant,
    ) -> Result<(), Lost> {
        // SAFETY: the same messages.
        unsafe { self.engine.exchange(stream, send, receive, deadline) }
    }
}

#[test]
fn engines_that_lie_are_told() {
    let lies: [fn(&mut Vec<Vec<u8>>); 5] = [
        |all| all.clear(),
        |all| all.push(Vec::new()),
        |all| all[1].clear(),
        |all| all[1].truncate(100),
        |all| all[1].push(0),
    ];
    for how in lies {
        let worlds = Threads::ranks(2).into_iter().map(|engine| World::new(Lying { engine, how }));
        run(worlds.collect(), |world, stream| {
            let outcome = Sharded::<GpuLsm<u32, u32>>::new(&stream, Options::new(world)).map(drop);
            assert!(matches!(outcome, Err(Error::DictionaryLost { .. })), "{outcome:?}");
        });
    }
}

/// One rank has no memory: for its first allocation, or for its second one, and so on.
fn a_rank_without_memory<D: Shard<Key = u32, Value = u32> + Updatable>(ranks: usize, shards: usize) -> u32 {
    let failures = run(worlds(ranks), |world, home| {
        let rank = world.rank();
        let mut all = Sharded::<D>::new(&home, Options::new(world.shards_per_rank(shards))).unwrap();
        let old: Vec<u32> = (0..60).map(|i| i * 50_000_000).collect();
        let keys = home.upload(&old).unwrap();
        all.insert(&home, (&keys, &keys)).unwrap();
        let new: Vec<u32> = (0..60).map(|i| 7 + i * 25_000_000).chain(old.iter().copied().take(20)).collect();
        let (keys, deleted) = (home.upload(&new).unwrap(), home.upload(&old[10..30]).unwrap());
        let values = home.upload(&new.iter().map(|key| key + 1).collect::<Vec<u32>>()).unwrap();
        let before = all.export(&home).unwrap().to_vec(&home).unwrap();
        for successes in 0.. {
            let stream = home.device().stream().unwrap();
            stream.fail_allocation_after((rank == 1).then_some(successes));
            let outcome = all.update(&stream, (&keys, &values), &deleted);
            stream.fail_allocation_after(None);
            let after = all.export(&home).unwrap().to_vec(&home).unwrap();
            match outcome {
                Ok(()) => {
                    assert_eq!(after.len(), 100);
                    return successes;
                }
                Err(Error::OutOfMemory { .. }) if rank == 1 => {}
                Err(Error::RankFailed { rank: 1, .. }) if rank != 1 => {}
                Err(error) => panic!("{error}"),
            }
            assert_eq!(after, before, "rank {rank}, after {successes} allocations");
        }
        unreachable!("the loop above ends only by returning")
    });
    assert!(failures.iter().all(|&count| count == failures[0]), "all ranks fail, or none: {failures:?}");
    failures[0]
}

#[test]
fn updates_are_done_everywhere_or_nowhere() {
    assert!(a_rank_without_memory::<GpuLsm<u32, u32>>(2, 1) > 5);
    assert!(a_rank_without_memory::<GpuSortedArray<u32, u32>>(3, 1) > 5);
    assert!(a_rank_without_memory::<GpuCuckoo<u32, u32>>(2, 2) > 5);
    assert!(a_rank_without_memory::<GpuCuckoo<u32, u32>>(4, 1) > 5);
    assert!(a_rank_without_memory::<LargeValues<GpuLsm<u32, u32>, u32>>(2, 1) > 5);
}

/// A rank dies at any step of its calls. The others learn it at once, keep their shards, and do not wait. They blame that rank, also
/// if another one has given up because of it before.
#[test]
fn ranks_die_at_any_step() {
    let mut whole = 0;
    for steps in 1..40 {
        let mut engines = Threads::ranks(3);
        let dying = Dying::after(steps, engines.pop().unwrap());
        let mut worlds: Vec<World> = engines.into_iter().map(World::new).collect();
        worlds.push(World::new(dying));
        let outcomes = run(worlds, |world, stream| {
            let calls = || -> Result<(), Error> {
                let mut all = Sharded::<GpuLsm<u32, u32>>::new(&stream, Options::new(world.clone()))?;
                let keys = stream.upload(&(0..90).collect::<Vec<u32>>())?;
                all.insert(&stream, (&keys, &keys))?;
                all.lookup(&stream, &keys)?;
                all.range(&stream, &keys, &keys)?;
                all.delete(&stream, &keys)?;
                Ok(())
            };
            let start = Instant::now();
            let outcome = calls();
            let again = || Sharded::<GpuLsm<u32, u32>>::new(&stream, Options::new(world.clone())).map(drop);
            if outcome.is_err() {
                assert!(matches!(again(), Err(Error::DictionaryLost { .. })));
            }
            assert!(start.elapsed() < Duration::from_secs(20));
            match &outcome {
                Ok(()) => {}
                Err(Error::DictionaryLost { cause }) => {
                    assert!(cause == "rank 2 has ended" || cause == "killed", "{cause}")
                }
                Err(error) => panic!("{error}"),
            }
            outcome.is_ok()
        });
        whole += usize::from(outcomes.iter().all(|&is_whole| is_whole));
    }
    assert!((1..30).contains(&whole), "{whole} of 39 runs had enough steps");
}

/// Rank 2 ends first, then rank 1, perhaps because of it. Rank 0, which waits for both, blames rank 2.
#[test]
fn the_rank_that_ended_first_is_blamed() {
    let mut engines = Threads::ranks(3);
    drop(engines.pop());
    drop(engines.pop());
    let outcome = engines[0].gather(b"here", Instant::now() + Duration::from_secs(30));
    assert_eq!(outcome, Err(Lost::gone(2)));
    // Nobody has ended, and somebody is late: who is to blame is not known.
    let engines = Threads::ranks(3);
    assert_eq!(engines[0].gather(b"here", Instant::now()), Err(Lost::late()));
    assert!(!Lost::late().cause.contains("rank 1"), "{}", Lost::late());
}

#[test]
fn a_rank_that_does_not_come_is_not_waited_for() {
    let worlds = Threads::ranks(3).into_iter().map(|rank| World::new(rank).timeout(Duration::from_millis(300)));
    run(worlds.collect(), |world, stream| {
        let mut all = Sharded::<GpuLsm<u32, u32>>::new(&stream, Options::new(world.clone())).unwrap();
        let keys = stream.upload(&[1, 2, 3]).unwrap();
        all.insert(&stream, (&keys, &keys)).unwrap();
        if world.rank() == 0 {
            std::thread::sleep(Duration::from_secs(2));
        }
        let start = Instant::now();
        let outcome = all.lookup(&stream, &keys).map(drop);
        let Err(Error::DictionaryLost { cause }) = outcome else { panic!("{outcome:?}") };
        // A rank that has given up before is not the one that came late: nobody is blamed.
        assert!(cause.starts_with("a rank was lost") || cause.ends_with("has ended"), "{cause}");
        assert!(start.elapsed() < Duration::from_secs(2));
        // What this rank has is still there.
        assert!(all.shards()[0].len(&stream).unwrap() <= 3);
        assert!(matches!(all.insert(&stream, (&keys, &keys)), Err(Error::DictionaryLost { .. })));
    });
}

/// Checks that no shard has more than 1.2 times the mean.
fn expect_even<D: Shard>(all: &Sharded<D>, stream: &Stream, when: &str) {
    let world = all.world();
    let mean = all.len(stream).unwrap() as f64 / world.shards() as f64;
    for shard in all.shards() {
        let len = shard.len(stream).unwrap() as f64;
        assert!(len <= 1.2 * mean, "a shard has {len} of {mean} keys on average, {when}");
    }
}

#[test]
fn shards_stay_even() {
    for ranks in [1, 3, 4] {
        run(worlds(ranks), |world, stream| {
            let rank = world.rank() as u32;
            let world = world.shards_per_rank(if ranks == 1 { 4 } else { 1 });
            let options = Options::new(world).balance_from(100);
            let mut all = Sharded::<GpuLsm<u32, u32>>::new(&stream, options).unwrap();
            let insert = |all: &mut Sharded<GpuLsm<u32, u32>>, keys: Vec<u32>, when: &str| {
                let keys = stream.upload(&keys).unwrap();
                all.insert(&stream, (&keys, &keys)).unwrap();
                expect_even(all, &stream, when);
            };
            // Ascending keys: all new ones would go to the last shard.
            for batch in 0..8 {
                insert(&mut all, (0..400).map(|i| (batch * 400 + i) * 8 + rank).collect(), "ascending");
            }
            // A narrow range, far from the others.
            insert(&mut all, (0..2000).map(|i| 3_000_000_000 + i * 8 + rank).collect(), "a narrow range");
            assert!(all.times_balanced() > 0 && all.balance_failure().is_none());
            // Most operations are about a few keys: these need no balancing, since they add no keys.
            let times = all.times_balanced();
            let mut random = Random(u64::from(rank));
            for _ in 0..4 {
                let zipf = |random: &mut Random| 8 * (400.0 / (1.0 + random.below(400) as f64)) as u32;
                insert(&mut all, (0..1000).map(|_| zipf(&mut random)).collect(), "the same keys again and again");
            }
            assert_eq!(all.times_balanced(), times);
        });
    }
}

/// Samples count keys that occur often as often. Then the shards that they lead to are uneven, and are balanced at once.
#[test]
fn repeated_keys_do_not_mislead() {
    for ranks in [1, 2] {
        run(worlds(ranks), |world, stream| {
            let options = Options::new(world.shards_per_rank(4 / ranks)).balance_from(100);
            let keys: Vec<u32> = (0..40_000).map(|i| if i % 2 == 0 { i % 4000 } else { 1_000_000 + i }).collect();
            let keys = stream.upload(&keys).unwrap();
            let all = Sharded::<GpuSortedArray<u32, u32>>::bulk_build(&stream, (&keys, &keys), options).unwrap();
            assert_eq!((all.len(&stream).unwrap(), all.times_balanced()), (22_000, 1));
            expect_even(&all, &stream, "built from repeated keys");
        });
    }
}

/// Keys that all have hashes of one shard, as an adversary would choose them.
#[test]
fn hashes_are_changed_when_they_collide() {
    let stream = Device::cpu().stream().unwrap();
    let options = || Options::new(World::local(4)).balance_from(1000);
    let keys = stream.upload(&(0..20_000).collect::<Vec<u32>>()).unwrap();
    let all = Sharded::<GpuCuckoo<u32, u32>>::bulk_build(&stream, (&keys, &keys), options()).unwrap();
    expect_even(&all, &stream, "of consecutive keys");
    let bad = all.shards()[2].export(&stream).unwrap().keys;
    let mut all = Sharded::<GpuCuckoo<u32, u32>>::new(&stream, options()).unwrap();
    all.insert(&stream, (&bad, &bad)).unwrap();
    assert_eq!(all.times_balanced(), 1);
    expect_even(&all, &stream, "of keys with the hashes of one shard");
    assert!(all.contains(&stream, &bad).unwrap().to_vec(&stream).unwrap().iter().all(|&found| found == 1));
}

#[test]
fn fewer_keys_than_shards() {
    let stream = Device::cpu().stream().unwrap();
    let options = Options::new(World::local(7)).balance_from(1);
    let mut all = Sharded::<GpuSortedArray<u32, u32>>::new(&stream, options).unwrap();
    for keys in [&[5][..], &[5, 9], &[1], &[7, 7, 7]] {
        let keys = stream.upload(keys).unwrap();
        all.insert(&stream, (&keys, &keys)).unwrap();
    }
    assert_eq!(all.export(&stream).unwrap().keys.to_vec(&stream).unwrap(), [1, 5, 7, 9]);
    let asked = stream.upload(&[0, 1, 5, 6, 9]).unwrap();
    let above = all.successor(&stream, &asked).unwrap().to_vec(&stream).unwrap();
    assert_eq!(above, [Some((1, 1)), Some((5, 5)), Some((7, 7)), Some((7, 7)), None]);
}

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("gpu-sharded-{name}-{}", std::process::id()));
    _ = std::fs::remove_dir_all(&folder);
    folder
}

#[test]
fn sets_of_files_load_on_any_number_of_ranks() {
    let folder = folder("any-number");
    let keys: Vec<u32> = (0..3000).map(|i| i * 1_000_003).collect();
    for saved_by in [3, 2] {
        run(worlds(saved_by), |world, stream| {
            let options = Options::new(world.clone());
            let mut all = Sharded::<GpuLsm<u32, u32>>::new(&stream, options).unwrap();
            let own: Vec<u32> = keys.iter().copied().skip(world.rank()).step_by(saved_by).collect();
            let own = stream.upload(&own).unwrap();
            all.insert(&stream, (&own, &own)).unwrap();
            all.save_set(&stream, &folder).unwrap();
            // The same number of ranks reads its own files.
            let again = Sharded::<GpuLsm<u32, u32>>::load_set(&stream, &folder, Options::new(world)).unwrap();
            assert_eq!(again.len(&stream).unwrap(), keys.len());
        });
        let files = std::fs::read_dir(&folder).unwrap().count();
        assert_eq!(files, saved_by + 1, "an older set is removed");
        for ranks in RANKS {
            run(worlds(ranks), |world, stream| {
                let all = Sharded::<GpuLsm<u32, u32>>::load_set(&stream, &folder, Options::new(world)).unwrap();
                let mut expected: Vec<(u32, u32)> = keys.iter().map(|&key| (key, key)).collect();
                expected.sort_unstable();
                assert_eq!(all.export(&stream).unwrap().to_vec(&stream).unwrap(), expected);
                expect_even(&all, &stream, "loaded");
            });
        }
    }
    // A file is missing: all ranks are told, also those that have theirs.
    let shard = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    std::fs::remove_file(shard.filter(|path| path.to_string_lossy().ends_with("-001.shard")).last().unwrap()).unwrap();
    let outcomes = run(worlds(2), |world, stream| {
        let (rank, loaded) =
            (world.rank(), Sharded::<GpuLsm<u32, u32>>::load_set(&stream, &folder, Options::new(world)));
        (rank, loaded.map(drop))
    });
    for (rank, outcome) in outcomes {
        let message = outcome.as_ref().unwrap_err().to_string();
        assert!(message.contains("is damaged") && message.contains("-001.shard"), "{message}");
        match rank {
            // Not "not found": there is a set, and it is damaged. The file is named.
            1 => assert!(
                matches!(&outcome, Err(Error::Io(error)) if error.kind() == ErrorKind::InvalidData),
                "{outcome:?}"
            ),
            _ => assert!(matches!(outcome, Err(Error::RankFailed { rank: 1, .. })), "{outcome:?}"),
        }
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

/// One rank saves to another folder than the others: all are told, and what was there stays as it was.
#[test]
fn a_set_is_saved_to_one_folder() {
    let (folder, elsewhere) = (folder("one-folder"), folder("elsewhere"));
    run(worlds(3), |world, stream| {
        let rank = world.rank();
        let options = || Options::new(world.clone());
        let keys = stream.upload(&(0..300).collect::<Vec<u32>>()).unwrap();
        let mut all = Sharded::<GpuLsm<u32, u32>>::bulk_build(&stream, (&keys, &keys), options()).unwrap();
        all.save_set(&stream, &folder).unwrap();
        all.delete(&stream, &keys).unwrap();
        let own_folder = if rank == 1 { &elsewhere } else { &folder };
        let error = all.save_set(&stream, own_folder).unwrap_err();
        match rank {
            0 => assert!(matches!(error, Error::Io(_)), "{error}"),
            _ => assert!(matches!(error, Error::RankFailed { rank: 0, .. }), "{error}"),
        }
        let message = error.to_string();
        assert!(message.contains("rank 1 has saved to another folder than rank 0: pass the same one"), "{message}");
        let old = Sharded::<GpuLsm<u32, u32>>::load_set(&stream, &folder, options()).unwrap();
        assert_eq!(old.len(&stream).unwrap(), 300);
    });
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 4, "three shards and a list");
    assert_eq!(std::fs::read_dir(&elsewhere).unwrap().count(), 0);
    std::fs::remove_dir_all(&elsewhere).unwrap();

    // Ranks that load from different folders are told, too. So is a rank whose folder has shards, and no list.
    let load = |folder_of_1: &PathBuf| {
        run(worlds(2), |world, stream| {
            let folder = if world.rank() == 1 { folder_of_1 } else { &folder };
            Sharded::<GpuLsm<u32, u32>>::load_set(&stream, folder, Options::new(world)).map(drop).unwrap_err()
        })
    };
    let errors = load(&elsewhere);
    assert!(matches!(&errors[1], Error::Io(error) if error.kind() == ErrorKind::NotFound), "{}", errors[1]);
    assert!(matches!(errors[0], Error::RankFailed { rank: 1, .. }), "{}", errors[0]);
    std::fs::remove_file(folder.join("sharded.list")).unwrap();
    let errors = load(&folder);
    assert!(matches!(&errors[1], Error::Io(error) if error.kind() == ErrorKind::InvalidData), "{}", errors[1]);
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn hashed_shards_are_saved_too() {
    let folder = folder("hashed");
    let stream = Device::cpu().stream().unwrap();
    let keys = stream.upload(&(0..1000).collect::<Vec<u64>>()).unwrap();
    let options = |shards| Options::new(World::local(shards));
    let all = Sharded::<GpuCuckoo<u64, u64>>::bulk_build(&stream, (&keys, &keys), options(4)).unwrap();
    all.save_set(&stream, &folder).unwrap();
    for shards in [1, 3, 4, 9] {
        let all = Sharded::<GpuCuckoo<u64, u64>>::load_set(&stream, &folder, options(shards)).unwrap();
        assert_eq!(all.lookup(&stream, &keys).unwrap().values.to_vec(&stream).unwrap(), (0..1000).collect::<Vec<_>>());
    }
    let other = Sharded::<GpuCuckoo<u64, u32>>::load_set(&stream, &folder, options(4)).map(drop).unwrap_err();
    assert!(other.to_string().contains("its values are of type u64, but u32 was expected"), "{other}");
    let list = std::fs::read(folder.join("sharded.list")).unwrap();
    for at in 0..list.len() {
        let mut damaged = list.clone();
        damaged[at] ^= 0x10;
        std::fs::write(folder.join("sharded.list"), damaged).unwrap();
        let outcome = Sharded::<GpuCuckoo<u64, u64>>::load_set(&stream, &folder, options(4)).map(drop);
        assert!(matches!(outcome, Err(Error::InvalidFile { .. })), "byte {at}: {outcome:?}");
    }
    std::fs::remove_dir_all(&folder).unwrap();
    let outcome = Sharded::<GpuCuckoo<u64, u64>>::load_set(&stream, &folder, options(4)).map(drop);
    assert!(matches!(outcome, Err(Error::Io(_))), "{outcome:?}");
    // A part of a dictionary is not taken for the whole.
    run(worlds(2), |world, stream| {
        let keys = stream.upload(&[1, 2, 3]).unwrap();
        let all = Sharded::<GpuLsm<u32, u32>>::bulk_build(&stream, (&keys, &keys), Options::new(world)).unwrap();
        let mut file = Vec::new();
        all.save(&stream, &mut file).unwrap();
        let error = Sharded::<GpuLsm<u32, u32>>::load(&stream, &file[..]).map(drop).unwrap_err().to_string();
        assert!(error.contains("of 2: use `load_set`"), "{error}");
    });
}

/// The account of the engine has the bytes that the cost model says.
#[test]
fn bytes_are_those_of_the_model() {
    let link = Link { latency: Duration::from_micros(10), bytes_per_second: 1e9 };
    for ranks in [2, 4, 7] {
        let (engines, accounts): (Vec<_>, Vec<_>) =
            Threads::ranks(ranks).into_iter().map(|engine| Modelled::new(engine, link)).unzip();
        let worlds = engines.into_iter().map(World::new).collect();
        run(worlds, |world, stream| {
            const N: usize = 20_000;
            let rank = world.rank();
            let mut random = Random(rank as u64);
            let keys: Vec<u32> = (0..N).map(|_| random.number() as u32).collect();
            let keys = stream.upload(&keys).unwrap();
            let mut all = Sharded::<GpuCuckoo<u32, u32>>::new(&stream, Options::new(world)).unwrap();
            let account = || *accounts[rank].lock().unwrap();
            let near = |bytes: u64, expected: f64, what: &str| {
                let ratio = bytes as f64 / expected;
                assert!((0.95..1.05).contains(&ratio), "{what}: {bytes} bytes, {expected} expected");
            };
            let away = N as f64 * (ranks - 1) as f64 / ranks as f64;
            let before = account();
            all.insert(&stream, (&keys, &keys)).unwrap();
            let inserted = account();
            near(inserted.sent - before.sent, 8.0 * away, "insert");
            assert_eq!((inserted.exchanges - before.exchanges, inserted.gathers - before.gathers), (2, 3));
            all.lookup(&stream, &keys).unwrap();
            let asked = account();
            near(asked.sent - inserted.sent, (4.0 + 5.0) * away, "lookup");
            near(asked.received - inserted.received, (4.0 + 5.0) * away, "lookup");
            assert_eq!((asked.exchanges - inserted.exchanges, asked.gathers - inserted.gathers), (3, 3));
            let least = Duration::from_micros(60) + Duration::from_secs_f64(0.9 * 9.0 * away / 1e9);
            assert!(asked.time - inserted.time >= least, "{:?}", asked.time - inserted.time);
        });
    }
}

/// A program need not import the traits.
mod methods_of_its_own {
    use super::{Device, GpuLsm, Options, PlainCuckoo, Sharded, World};
    use gpu_primitives::scan::Sum;

    #[test]
    fn of_pairs() {
        let stream = &Device::cpu().stream().unwrap();
        let upload = |numbers: &[u32]| stream.upload(numbers).unwrap();
        let mut all = Sharded::<GpuLsm<u32, u32>>::new(stream, Options::new(World::local(3))).unwrap();
        all.insert(stream, (&upload(&[5, 1, 9]), &upload(&[50, 10, 90]))).unwrap();
        all.update(stream, (&upload(&[7]), &upload(&[70])), &upload(&[9])).unwrap();
        all.upsert(stream, (&upload(&[7, 7]), &upload(&[1, 2])), Sum).unwrap();
        assert!(all.iter(stream).unwrap().eq([(1, 10), (5, 50), (7, 73)]));
        assert_eq!(all.count(stream, &upload(&[2]), &upload(&[7])).unwrap().to_vec(stream).unwrap(), [2]);
        assert_eq!(all.reduce(stream, &upload(&[2]), &upload(&[7]), Sum).unwrap().to_vec(stream).unwrap(), [123]);
        let copy = Sharded::bulk_build(stream, (&upload(&[3]), &upload(&[30])), all.options()).unwrap();
        all.clear(stream).unwrap();
        let sizes: [usize; 2] = [&all, &copy].map(|all: &Sharded<GpuLsm<u32, u32>>| all.len(stream).unwrap());
        assert_eq!(sizes, [0, 1]);
    }

    #[test]
    fn of_sets() {
        let stream = &Device::cpu().stream().unwrap();
        let keys = stream.upload(&[[1u8, 2], [3, 4]].map(u16::from_le_bytes)).unwrap();
        let mut set = Sharded::<PlainCuckoo<u16, ()>>::build_set(stream, &keys, Options::new(World::local(2))).unwrap();
        set.insert_keys(stream, &stream.upload(&[7u16]).unwrap()).unwrap();
        assert_eq!(
            set.contains(stream, &stream.upload(&[7u16, 8, 0x0201]).unwrap()).unwrap().to_vec(stream).unwrap(),
            [1, 0, 1]
        );
    }
}
