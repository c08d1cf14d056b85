//! Ranks that are processes under `mpirun`.
//!
//! Started by `cargo test`, this executable starts itself under `mpirun` for every case and for 1, 2, 3, 4 and 7 ranks, on the CPU
//! unless `GPU_PRIMITIVES_DEVICE` says otherwise. `GPU_SHARDED_MPIRUN` names another `mpirun`.

mod common;

use common::histories::{history, ordered_history};
use common::primitives::check_all;
use common::{Cuckoo, Lsm, SOME, set_world};
use gpu_cuckoo::GpuCuckoo;
use gpu_dictionary_conformance::cases;
use gpu_lsm::GpuLsm;
use gpu_primitives::{Device, Error, Stream};
use gpu_sharded::primitives::sort;
use gpu_sharded::{Incoming, Mpi, Options, Outgoing, Sharded, Transport, World};
use libtest_mimic::{Arguments, Failed, Trial};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

/// The variable that tells a process which case it is a rank of.
const CASE: &str = "GPU_SHARDED_MPI_CASE";

fn main() -> ExitCode {
    match std::env::var(CASE) {
        Ok(case) => rank(&case),
        Err(_) => {
            let trial = |case: &'static str, ranks: usize| {
                Trial::test(format!("{case}::{ranks}_ranks"), move || start(case, ranks))
            };
            let all = [1, 2, 3, 4, 7];
            let mut trials: Vec<Trial> = Vec::new();
            for case in ["suite", "own_keys", "files", "primitives"] {
                trials.extend(all.map(|ranks| trial(case, ranks)));
            }
            for case in ["disagreement", "lengths", "two_engines", "two_streams", "started_by_the_program"] {
                trials.extend([2, 4].map(|ranks| trial(case, ranks)));
            }
            for case in ["killed_before_a_call", "killed_in_a_call", "killed_in_a_sort", "late"] {
                trials.extend([2, 4, 7].map(|ranks| trial(case, ranks)));
            }
            // The ranks of one case already use all cores.
            libtest_mimic::run(&Arguments { test_threads: Some(1), ..Arguments::from_args() }, trials).exit_code()
        }
    }
}

/// Runs a case under `mpirun`. Every rank that is not killed must print a line.
fn start(case: &str, ranks: usize) -> Result<(), Failed> {
    let mpirun = std::env::var("GPU_SHARDED_MPIRUN").unwrap_or_else(|_| "mpirun".to_owned());
    let folder = std::env::temp_dir().join(format!("gpu-sharded-mpi-{case}-{ranks}-{}", std::process::id()));
    let mut command = Command::new(mpirun);
    let is_killed = case.starts_with("killed");
    let is_lost = is_killed || case == "late";
    if is_lost {
        // Open MPI ends all ranks when one dies, or ends without a farewell, unless it is told not to.
        command.env("OMPI_MCA_orte_enable_recovery", "1").env("OMPI_MCA_orte_abort_on_non_zero_status", "0");
    }
    let started = Instant::now();
    let output = command
        .args(["-n", &ranks.to_string()])
        .arg(std::env::current_exe()?)
        // More ranks than cores, in a container of root.
        .env("OMPI_MCA_rmaps_base_oversubscribe", "1")
        .env("OMPI_MCA_mpi_yield_when_idle", "1")
        .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
        .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
        // Shared memory that needs no rights on other processes.
        .env("OMPI_MCA_btl_vader_single_copy_mechanism", "none")
        .env("GPU_PRIMITIVES_DEVICE", std::env::var("GPU_PRIMITIVES_DEVICE").unwrap_or_else(|_| "cpu".to_owned()))
        .env("GPU_SHARDED_FOLDER", &folder)
        .env(CASE, case)
        .stdin(Stdio::null())
        .output()?;
    _ = std::fs::remove_dir_all(&folder);
    let (out, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let done = out.lines().filter(|line| line.starts_with("done: rank ")).count();
    let expected = if is_killed { ranks - 1 } else { ranks };
    if done != expected || (!is_lost && !output.status.success()) {
        return Err(format!("{done} of {expected} ranks came to the end, {}\n{out}\n{error}", output.status).into());
    }
    let limit = Duration::from_secs(120);
    if started.elapsed() > limit { Err(format!("it took more than {limit:?}").into()) } else { Ok(()) }
}

fn rank(case: &str) -> ExitCode {
    if case == "started_by_the_program" {
        return started_by_the_program();
    }
    let mpi = Mpi::new().expect("MPI cannot be started");
    let timeout = Duration::from_secs(if case.starts_with("killed") || case == "late" { 3 } else { 60 });
    let world = World::new(mpi).timeout(timeout);
    let number = world.rank();
    let stream = Device::default().and_then(|device| device.stream()).expect("no device");
    match case {
        "suite" => suite(&world, &stream),
        "own_keys" => own_keys(&world, &stream),
        "files" => files(&world, &stream),
        "primitives" => check_all(&world, &stream),
        "disagreement" => disagreement(&world, &stream),
        "lengths" => lengths(),
        "two_engines" => two_engines(&world),
        "two_streams" => two_streams(),
        "killed_before_a_call" => killed(&world, &stream, None),
        "killed_in_a_call" => killed(&world, &stream, Some(Duration::from_millis(20))),
        "killed_in_a_sort" => killed_in_a_sort(&world, &stream),
        "late" => late(&world, &stream),
        other => panic!("there is no case `{other}`"),
    }
    set_world(None);
    println!("done: rank {number}");
    drop(world);
    ExitCode::SUCCESS
}

fn suite(world: &World, stream: &Stream) {
    set_world(world.clone());
    for case in [cases::<Lsm>(), cases::<Cuckoo>()].concat() {
        if SOME.contains(&case.name) {
            (case.run)(stream.device());
        }
    }
}

fn own_keys(world: &World, stream: &Stream) {
    ordered_history::<GpuLsm<u32, u32>>(world.clone(), stream, |n| (n % 500) as u32 * 7_000_000);
    history::<GpuCuckoo<u64, u32>>(world.clone(), stream, |n| (n % 500) << 40);
}

fn files(world: &World, stream: &Stream) {
    let folder = std::env::var("GPU_SHARDED_FOLDER").expect("set by the driver");
    let keys: Vec<u32> = (0..500).map(|i| i * 16 + world.rank() as u32).collect();
    let keys = stream.upload(&keys).unwrap();
    let options = || Options::new(world.clone());
    let all = Sharded::<GpuLsm<u32, u32>>::bulk_build(stream, (&keys, &keys), options()).unwrap();
    all.save_set(stream, &folder).unwrap();
    let again = Sharded::<GpuLsm<u32, u32>>::load_set(stream, &folder, options()).unwrap();
    assert_eq!(again.len(stream).unwrap(), 500 * world.ranks());
    // On another number of shards.
    let more = Options::new(world.clone().shards_per_rank(2));
    let again = Sharded::<GpuLsm<u32, u32>>::load_set(stream, &folder, more).unwrap();
    assert_eq!(again.lookup(stream, &keys).unwrap().values.to_vec(stream).unwrap(), keys.to_vec(stream).unwrap());
}

fn disagreement(world: &World, stream: &Stream) {
    let mut all = Sharded::<GpuCuckoo<u32, u32>>::new(stream, Options::new(world.clone())).unwrap();
    let keys = stream.upload(&[1, 2, 3]).unwrap();
    let outcome = match world.rank() {
        0 => all.insert(stream, (&keys, &keys)),
        _ => all.delete(stream, &keys),
    };
    assert!(matches!(outcome, Err(Error::RanksDisagree { .. })), "{outcome:?}");
    // They have different numbers of shards.
    for shards in [2, 300] {
        let other = world.clone().shards_per_rank(if world.rank() == 0 { 1 } else { shards });
        let outcome = Sharded::<GpuCuckoo<u32, u32>>::new(stream, Options::new(other)).map(drop);
        assert!(matches!(outcome, Err(Error::RanksDisagree { .. })), "{outcome:?}");
    }
    // One rank has no memory.
    let poor = stream.device().stream().unwrap();
    poor.fail_allocation_after((world.rank() == 1).then_some(3));
    let outcome = all.insert(&poor, (&keys, &keys));
    assert!(matches!(outcome, Err(Error::OutOfMemory { .. } | Error::RankFailed { rank: 1, .. })), "{outcome:?}");
    assert_eq!(all.len(stream).unwrap(), 0);
    all.insert(stream, (&keys, &keys)).unwrap();
    assert_eq!(all.len(stream).unwrap(), 3);
}

/// Ranks may gather different numbers of bytes.
fn lengths() {
    let mpi = Mpi::new().unwrap();
    let deadline = || Instant::now() + Duration::from_secs(30);
    for of_rank in [1usize, 100, 5000, 100_000] {
        let message = |rank: usize| vec![rank as u8; rank * of_rank];
        let all = mpi.gather(&message(mpi.rank()), deadline()).unwrap();
        assert!(all == (0..mpi.ranks()).map(message).collect::<Vec<_>>(), "{of_rank} bytes per rank");
    }
}

/// Engines of one process are used at the same time, by two threads. The first one may be dropped before the other.
fn two_engines(world: &World) {
    let second = World::new(Mpi::new().unwrap());
    let use_it = |world: World| {
        let stream = Device::cpu().stream().unwrap();
        history::<GpuCuckoo<u64, u32>>(world, &stream, |n| (n % 500) << 40);
    };
    std::thread::scope(|scope| {
        let (first, second) = (world.clone(), second.clone());
        _ = scope.spawn(move || use_it(first));
        _ = scope.spawn(move || use_it(second));
    });
    drop(second);
    use_it(world.clone());
}

/// An exchange on a second stream does not overwrite what the first one has received, and not yet copied: the queues of the checked
/// device do their work late. Even ranks send, and odd ones receive: nothing else orders their streams.
fn two_streams() {
    // SAFETY: the memory of a CPU device is memory of the host, which MPI takes.
    let mpi = unsafe { Mpi::new().unwrap().device_memory() };
    let device = Device::cpu_checked();
    let streams = [device.stream().unwrap(), device.stream().unwrap()];
    let deadline = || Instant::now() + Duration::from_secs(30);
    let (rank, receives) = (mpi.rank(), mpi.rank() % 2 == 1);
    let content = |rank: usize, round: u32| vec![rank as u32 * 100 + round; 10_000];
    let mut received = Vec::new();
    for round in 0..6 {
        let stream = &streams[round as usize % 2];
        let (mut send, mut receive) = (Vec::new(), Vec::new());
        let mine = stream.upload(&content(rank, round)).unwrap();
        let mut theirs = stream.zeroed::<u32>(10_000).unwrap();
        match receives {
            true => receive.push(Incoming { from: rank - 1, bytes: theirs.as_mut_slice().bytes() }),
            false => send.push(Outgoing { to: rank + 1, bytes: mine.as_slice().bytes() }),
        }
        // SAFETY: all messages have the same length.
        unsafe { mpi.exchange(stream, &send, &mut receive, deadline()).unwrap() };
        drop(receive);
        received.push(theirs);
    }
    for (round, theirs) in received.iter().enumerate().filter(|_| receives) {
        let theirs = theirs.to_vec(&streams[round % 2]).unwrap();
        assert!(theirs == content(rank - 1, round as u32), "round {round}: {} …", theirs[0]);
    }
}

/// The program has started MPI for calls from one thread only. That is refused, in words.
fn started_by_the_program() -> ExitCode {
    let (universe, level) = ::mpi::initialize_with_threading(::mpi::Threading::Funneled).unwrap();
    let cause = Mpi::new().unwrap_err().cause;
    assert!(cause.contains("`Mpi::of_program`"), "{cause}");
    // SAFETY: MPI does not end before the engine does.
    let outcome = unsafe { Mpi::of_program() };
    match level < ::mpi::Threading::Multiple {
        true => assert!(outcome.unwrap_err().cause.contains("MPI_THREAD_MULTIPLE is required")),
        false => assert!(outcome.is_ok()),
    }
    let number = ::mpi::traits::Communicator::rank(&universe.world());
    drop(universe);
    let cause = Mpi::new().unwrap_err().cause;
    assert!(cause.contains("cannot be started again"), "{cause}");
    println!("done: rank {number}");
    ExitCode::SUCCESS
}

/// The last rank is killed: before the others call, or while they make many calls.
fn killed(world: &World, stream: &Stream, after: Option<Duration>) {
    let mut all = Sharded::<GpuLsm<u32, u32>>::new(stream, Options::new(world.clone())).unwrap();
    let keys = stream.upload(&(0..2000).collect::<Vec<u32>>()).unwrap();
    all.insert(stream, (&keys, &keys)).unwrap();
    let is_victim = world.rank() + 1 == world.ranks();
    if is_victim {
        match after {
            None => kill(),
            Some(after) => {
                _ = std::thread::spawn(move || {
                    std::thread::sleep(after);
                    kill();
                })
            }
        }
    }
    let outcome = (0..100_000).try_for_each(|_| all.update(stream, (&keys, &keys), keys.slice(..10)?));
    let start = Instant::now();
    let Err(Error::DictionaryLost { cause }) = outcome else { panic!("{outcome:?}") };
    // A rank that is alive is never blamed.
    let is_blamed = |rank: usize| cause.contains(&format!("rank {rank} "));
    assert!(!(0..world.ranks() - 1).any(is_blamed), "{cause}");
    // Later calls do not wait at all, and the shard of this rank is still there.
    assert!(matches!(all.lookup(stream, &keys), Err(Error::DictionaryLost { .. })));
    assert!(all.shards()[0].len(stream).unwrap() > 0);
    assert!(start.elapsed() < Duration::from_secs(2));
}

/// The last rank is killed while the ranks sort, again and again.
fn killed_in_a_sort(world: &World, stream: &Stream) {
    let own: Vec<u32> = (0..2000u32).map(|i| i.wrapping_mul(0x9E37_79B1) ^ world.rank() as u32).collect();
    let keys = stream.upload(&own).unwrap();
    sort::keys(stream, world, &keys).unwrap();
    if world.rank() + 1 == world.ranks() {
        _ = std::thread::spawn(|| {
            std::thread::sleep(Duration::from_millis(20));
            kill();
        });
    }
    let outcome = (0..100_000).try_for_each(|_| sort::keys(stream, world, &keys).map(drop));
    let start = Instant::now();
    assert!(matches!(outcome, Err(Error::DictionaryLost { .. })), "{outcome:?}");
    // Later calls do not wait at all, and the keys are as they were.
    assert!(matches!(sort::keys(stream, world, &keys), Err(Error::DictionaryLost { .. })));
    assert!(start.elapsed() < Duration::from_secs(2));
    assert!(keys.to_vec(stream).unwrap() == own);
}

/// Ends this process as `kill -9` does: without any farewell.
fn kill() {
    _ = Command::new("kill").args(["-9", &std::process::id().to_string()]).status();
    std::thread::sleep(Duration::from_secs(60));
}

/// A rank comes too late for a call.
fn late(world: &World, stream: &Stream) {
    let all = Sharded::<GpuLsm<u32, u32>>::new(stream, Options::new(world.clone())).unwrap();
    let keys = stream.upload(&[1, 2, 3]).unwrap();
    if world.rank() == 0 {
        std::thread::sleep(Duration::from_secs(8));
    }
    let start = Instant::now();
    let outcome = all.lookup(stream, &keys).map(drop);
    assert!(matches!(outcome, Err(Error::DictionaryLost { .. })), "{outcome:?}");
    assert!(start.elapsed() < Duration::from_secs(7));
}
