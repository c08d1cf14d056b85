//! Checkpoints of sharded dictionaries: the tests that all dictionaries share, and ranks of which some fail or die.

use gpu_cuckoo::{GpuCuckoo, PlainCuckoo};
use gpu_dictionary::checkpoint::{Disk, Folder};
use gpu_dictionary::{Dictionary, Durable, LargeValues, Updatable};
use gpu_dictionary_conformance::{
    Machine, OwnFolder, Random, checkpoint_crashes, checkpoint_damage, checkpoint_history,
};
use gpu_lsm::GpuLsm;
use gpu_primitives::{CpuOptions, Device, Error, Stream};
use gpu_sharded::{Options, Shard, Sharded, Threads, World};
use gpu_sorted_array::GpuSortedArray;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

type Lsm = GpuLsm<u32, u32>;
type Cuckoo = GpuCuckoo<u32, u32>;

fn options<O: gpu_dictionary::DictionaryOptions>(shards: usize) -> Options<O> {
    Options::new(World::local(shards))
}

fn word(number: u64) -> u32 {
    number as u32
}

#[test]
fn histories() {
    checkpoint_history::<Sharded<Lsm>>(&options(3), word);
    checkpoint_history::<Sharded<GpuSortedArray<u32, u32>>>(&options(1), word);
    checkpoint_history::<Sharded<Cuckoo>>(&options(2), word);
    checkpoint_history::<Sharded<PlainCuckoo<u32, [u32; 3]>>>(&options(2), |number| [number as u32, 1, 2]);
    checkpoint_history::<Sharded<LargeValues<Lsm, [u32; 3]>>>(&options(2), |number| [number as u32, 1, 2]);
}

#[test]
fn crashes_of_ranges() {
    checkpoint_crashes::<Sharded<GpuSortedArray<u32, u32>>>(&options(2), word);
}

#[test]
fn crashes_of_hashes() {
    checkpoint_crashes::<Sharded<Cuckoo>>(&options(2), word);
}

#[test]
fn damage() {
    checkpoint_damage::<Sharded<GpuSortedArray<u32, u32>>>(&options(2), word);
}

/// Runs a function on each rank, on a thread and a device of its own. A rank that dies gives `None`.
fn run<R: Send>(ranks: usize, rank: impl Fn(World, &Stream) -> R + Sync) -> Vec<Option<R>> {
    let worlds = Threads::ranks(ranks).into_iter().map(|rank| World::new(rank).timeout(Duration::from_secs(30)));
    std::thread::scope(|scope| {
        let threads: Vec<_> = worlds
            .map(|world| {
                let rank = &rank;
                scope.spawn(move || rank(world, &Device::cpu_with(CpuOptions::default()).stream().unwrap()))
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().ok()).collect()
    })
}

/// How a rank ends.
#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    /// An operation fails. The rank says so.
    Fails,
    /// The rank is gone, without a word.
    Dies,
}

/// The disk of one rank. One of its operations, counted from 0, fails or ends the rank.
struct OfRank {
    machine: Machine,
    left: AtomicUsize,
    end: End,
}

/// What a rank that dies panics with.
const DEATH: &str = "this rank dies, as the test wants it";

impl OfRank {
    fn new(machine: &Machine, left: usize, end: End) -> Self {
        Self { machine: machine.clone(), left: left.into(), end }
    }

    fn operate(&self) -> io::Result<()> {
        match (self.left.fetch_sub(1, Ordering::Relaxed), self.end) {
            (0, End::Dies) => panic!("{DEATH}"),
            (0, End::Fails) => Err(ErrorKind::StorageFull.into()),
            _ => Ok(()),
        }
    }
}

impl Disk for OfRank {
    type Writer = <Machine as Disk>::Writer;
    type Reader = <Machine as Disk>::Reader;
    type Lock = <Machine as Disk>::Lock;

    fn path(&self) -> &Path {
        self.machine.path()
    }

    fn lock(&self) -> io::Result<Self::Lock> {
        self.operate()?;
        self.machine.lock()
    }

    fn lock_shared(&self) -> io::Result<Option<Self::Lock>> {
        self.operate()?;
        self.machine.lock_shared()
    }

    fn names(&self) -> io::Result<Vec<String>> {
        self.operate()?;
        self.machine.names()
    }

    fn open(&self, name: &str) -> io::Result<Self::Reader> {
        self.operate()?;
        self.machine.open(name)
    }

    fn create(&self, name: &str) -> io::Result<Self::Writer> {
        self.operate()?;
        self.machine.create(name)
    }

    fn sync(&self, file: &mut Self::Writer) -> io::Result<()> {
        self.operate()?;
        self.machine.sync(file)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.operate()?;
        self.machine.rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.operate()?;
        self.machine.remove(name)
    }

    fn sync_folder(&self) -> io::Result<()> {
        self.operate()?;
        self.machine.sync_folder()
    }

    fn sync_parents(&self) -> io::Result<()> {
        self.operate()?;
        self.machine.sync_parents()
    }
}

type State = Vec<(u32, u32)>;

fn pairs<D: Dictionary<Key = u32, Value = u32>>(stream: &Stream, all: &D) -> State {
    all.export(stream).unwrap().to_vec(stream).unwrap()
}

/// Inserts some keys of each rank, with this value.
fn insert<D: Shard<Key = u32, Value = u32> + Updatable>(stream: &Stream, all: &mut Sharded<D>, value: u32) {
    let rank = all.world().rank() as u32;
    let keys: Vec<u32> = (0..30).map(|i| i * 140_000_000 + rank).collect();
    let pairs = (&stream.upload(&keys).unwrap(), &stream.upload(&vec![value; keys.len()]).unwrap());
    all.insert(stream, pairs).unwrap();
}

/// What two ranks hold after a number of checkpoints.
fn expected(ranks: u32, value: u32) -> State {
    let mut pairs: State = (0..30).flat_map(|i| (0..ranks).map(move |rank| (i * 140_000_000 + rank, value))).collect();
    pairs.sort_unstable();
    pairs
}

/// Reads the state on a disk with so many ranks. All of them must find the same.
fn found<D: Shard<Key = u32, Value = u32> + Durable>(machine: &Machine, ranks: usize) -> Option<State> {
    let found = run(ranks, |world, stream| {
        let all = Sharded::<D>::recover_from(stream, machine, Some(&Options::new(world))).unwrap();
        all.map(|all| pairs(stream, &all))
    });
    let mut found = found.into_iter().map(|state| state.expect("a rank has failed"));
    let first = found.next().unwrap();
    assert!(found.all(|state| state == first));
    first
}

/// Lets one rank fail or die at each of its operations. Recoveries find the last checkpoint or the new one on all ranks, also
/// after a loss of power, and with another number of ranks.
fn ranks_end_at_every_operation<D: Shard<Key = u32, Value = u32> + Updatable + Durable>(end: End) {
    const RANKS: usize = 2;
    let machine = Machine::default();
    let write = |machine: &Machine, value: u32, victim: usize, after: usize| {
        run(RANKS, |world, stream| {
            let after = if world.rank() == victim { after } else { usize::MAX };
            let mut all = match Sharded::<D>::recover_from(stream, machine, Some(&Options::new(world.clone()))).unwrap()
            {
                Some(all) => all,
                None => Sharded::new(stream, Options::new(world)).unwrap(),
            };
            insert(stream, &mut all, value);
            let disk = OfRank::new(machine, after, end);
            let written = all.checkpoint_to(stream, &disk);
            // The others know that a rank is lost, or all know that the checkpoint failed.
            match &written {
                Ok(()) => {}
                Err(Error::Io(error)) => {
                    assert!(end == End::Fails && error.kind() == ErrorKind::StorageFull, "{error}")
                }
                Err(Error::RankFailed { rank, .. }) => assert!(end == End::Fails && *rank == victim),
                Err(Error::DictionaryLost { .. }) => assert_eq!(end, End::Dies),
                Err(error) => panic!("{error}"),
            }
            if end == End::Fails {
                // All ranks go on, and a later checkpoint works.
                assert_eq!(pairs(stream, &all), expected(RANKS as u32, value));
                insert(stream, &mut all, value + 100);
                all.checkpoint_to(stream, machine).unwrap();
            }
            written.is_ok()
        })
    };
    for (last, new) in [(None, 1), (Some(expected(RANKS as u32, 1)), 2)] {
        for victim in 0..RANKS {
            let mut is_over = false;
            for after in 0.. {
                let when = format!("{end:?}, rank {victim} after {after} operations, checkpoint {new}");
                let crashed = machine.copy();
                let written = write(&crashed, new, victim, after);
                if end == End::Fails {
                    assert!(written.iter().all(Option::is_some), "{when}");
                    assert_eq!(found::<D>(&crashed, RANKS), Some(expected(RANKS as u32, new + 100)), "{when}");
                    let files = crashed.all_names();
                    assert_eq!(files.len(), 1 + RANKS, "garbage: {files:?}, {when}");
                    // What failed is no longer there to be found. The removal of old parts may fail: nobody minds.
                    is_over = written.iter().all(|written| *written == Some(true)) && after > 16;
                } else {
                    let is_finished = written.contains(&Some(true)) || written.iter().all(Option::is_some);
                    let new = expected(RANKS as u32, new);
                    for (ranks, machine) in
                        [(2, crashed.copy()), (3, crashed.after_power_loss(&mut Random(after as u64)))]
                    {
                        let found = found::<D>(&machine, ranks);
                        let is_new = found.as_ref() == Some(&new);
                        assert!(is_new || !is_finished && found == last, "{when}");
                    }
                    // A dead rank comes back: all of them go on.
                    let again = write(&crashed, 9, victim, usize::MAX);
                    assert!(again.iter().all(|written| *written == Some(true)), "{when}");
                    assert_eq!(found::<D>(&crashed, RANKS), Some(expected(RANKS as u32, 9)), "{when}");
                    is_over = written.iter().all(|written| *written == Some(true));
                }
                if is_over {
                    println!("{when}: nothing happened any more");
                    break;
                }
                assert!(after < 60, "{when}");
            }
            assert!(is_over);
        }
        if new == 1 {
            write(&machine, 1, 0, usize::MAX);
            if end == End::Fails {
                let folder = Folder::new(&machine);
                assert_eq!(folder.names().unwrap().len(), 1 + RANKS);
            }
        }
    }
}

#[test]
fn ranks_die_at_every_operation() {
    ranks_end_at_every_operation::<GpuSortedArray<u32, u32>>(End::Dies);
}

#[test]
fn ranks_with_hashes_die_at_every_operation() {
    ranks_end_at_every_operation::<Cuckoo>(End::Dies);
}

#[test]
fn ranks_fail_at_every_operation() {
    ranks_end_at_every_operation::<Lsm>(End::Fails);
}

/// A kill between the phases: all parts are there, and no manifest names them. All ranks find the checkpoint before.
#[test]
fn the_manifest_is_switched_last() {
    let machine = Machine::default();
    let write = |value: u32, machine: &Machine, limit: usize| {
        run(3, |world, stream| {
            let first = world.rank() == 0;
            let mut all = Sharded::<Lsm>::recover_from(stream, machine, Some(&Options::new(world.clone()))).unwrap();
            let all = all.get_or_insert_with(|| Sharded::new(stream, Options::new(world)).unwrap());
            insert(stream, all, value);
            all.checkpoint_to(stream, &OfRank::new(machine, if first { limit } else { usize::MAX }, End::Dies)).is_ok()
        })
    };
    assert_eq!(write(1, &machine, usize::MAX), [Some(true); 3]);
    let mut is_between = 0;
    for limit in 0..40 {
        let killed = machine.copy();
        let written = write(2, &killed, limit);
        let parts =
            killed.all_names().iter().filter(|name| name.starts_with("part-") && !name.ends_with(".tmp")).count();
        let state = found::<Lsm>(&killed, 3);
        if written[0].is_none() && parts == 6 {
            is_between += usize::from(state == Some(expected(3, 1)));
            // Once the manifest is switched, the old parts are the ones that nobody needs.
            assert!(state == Some(expected(3, 1)) || state == Some(expected(3, 2)));
        }
        if written == [Some(true); 3] {
            assert_eq!(state, Some(expected(3, 2)));
            assert_eq!(parts, 3);
        }
    }
    assert!(is_between >= 3, "{is_between} kills between the phases");
}

/// A checkpoint in a folder of the operating system, of any number of ranks, for any number of ranks.
#[test]
fn folders_for_any_number_of_ranks() {
    fn check<D: Shard<Key = u32, Value = u32> + Updatable + Durable>() {
        let folder = OwnFolder::new();
        for (round, ranks) in [2usize, 3, 1, 2].into_iter().enumerate() {
            let value = round as u32;
            let states = run(ranks, |world, stream| {
                let mut all = Sharded::<D>::recover_or_new(stream, folder.path(), Options::new(world)).unwrap();
                insert(stream, &mut all, value);
                all.checkpoint(stream, folder.path()).unwrap();
                pairs(stream, &all)
            });
            let stream = &Device::cpu().stream().unwrap();
            let alone = Sharded::<D>::recover(stream, folder.path()).unwrap();
            assert_eq!(alone.shards().len(), ranks);
            for state in states {
                assert_eq!(state, Some(pairs(stream, &alone)), "{ranks} ranks");
            }
        }
    }
    check::<Lsm>();
    check::<Cuckoo>();
}

/// Ranks that name different folders are told, and the folders stay as they were.
#[test]
fn ranks_with_different_folders_are_told() {
    let folders = [OwnFolder::new(), OwnFolder::new()];
    let errors = run(2, |world, stream| {
        let folder = folders[world.rank()].path();
        // The second one is there, too.
        std::fs::create_dir_all(folder).unwrap();
        let mut all = Sharded::<Lsm>::new(stream, Options::new(world)).unwrap();
        insert(stream, &mut all, 1);
        all.checkpoint(stream, folder).unwrap_err().to_string()
    });
    assert!(errors[0].as_ref().unwrap().contains("pass the same one"), "{errors:?}");
    assert!(errors[1].as_ref().unwrap().contains("rank 0"), "{errors:?}");
    let stream = &Device::cpu().stream().unwrap();
    for folder in &folders {
        let found = Sharded::<Lsm>::recover(stream, folder.path());
        assert!(found.is_err(), "no checkpoint was finished");
    }

    // One of them has a checkpoint, the other one has not.
    let (with, without) = (OwnFolder::new(), OwnFolder::new());
    let mut all = Sharded::<Lsm>::new(stream, options(2)).unwrap();
    insert(stream, &mut all, 1);
    all.checkpoint(stream, with.path()).unwrap();
    let errors = run(2, |world, stream| {
        let folder = if world.rank() == 0 { with.path() } else { without.path() };
        Sharded::<Lsm>::recover_or_new(stream, folder, Options::new(world)).unwrap_err()
    });
    for error in errors {
        assert!(matches!(error, Some(Error::RanksDisagree { .. })), "{error:?}");
    }
}

/// Folders of other dictionaries, and shards of another kind.
#[test]
fn folders_of_other_dictionaries() {
    let stream = &Device::cpu().stream().unwrap();
    let (sharded, plain) = (OwnFolder::new(), OwnFolder::new());
    let mut all = Sharded::<Lsm>::new(stream, options(2)).unwrap();
    insert(stream, &mut all, 1);
    all.checkpoint(stream, sharded.path()).unwrap();
    let mut lsm = Lsm::with_batch_size(8).unwrap();
    lsm.insert(stream, (&stream.upload(&[1]).unwrap(), &stream.upload(&[1]).unwrap())).unwrap();
    lsm.checkpoint(stream, plain.path()).unwrap();
    let refused = |found: Option<Error>, expected: &str| match found {
        Some(Error::InvalidFile { what, .. }) => assert!(what.contains(expected), "{what}"),
        other => panic!("expected an invalid file: {other:?}"),
    };
    refused(Sharded::<Lsm>::recover(stream, plain.path()).err(), "a checkpoint of an LSM, but");
    refused(Lsm::recover(stream, sharded.path()).err(), "a checkpoint of a sharded dictionary, but");
    refused(
        Sharded::<Cuckoo>::recover(stream, sharded.path()).err(),
        "it holds an LSM, but a cuckoo table was expected",
    );
    refused(Sharded::<GpuLsm<u32, u64>>::recover(stream, sharded.path()).err(), "its values are of type u32");
    refused(all.checkpoint(stream, plain.path()).err(), "a checkpoint of an LSM, but");
    assert_eq!(pairs(stream, &Sharded::<Lsm>::recover(stream, sharded.path()).unwrap()), expected(1, 1));
}
