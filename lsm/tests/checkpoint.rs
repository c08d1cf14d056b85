//! Checkpoints on a real disk: processes that are killed, writers at the same time, and folders that cannot be written.
//!
//! The crashes at every single operation are simulated: see the unit tests of the checkpoints.

use gpu_dictionary_conformance::{Random, Value, saved, upload_values};
use gpu_lsm::{CleanupPolicy, GpuLsm, Key, Options};
use gpu_primitives::{Device, Error, Stream};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Names the folder for the process that will be killed.
const FOLDER: &str = "GPU_LSM_TEST_FOLDER";

/// A folder that is removed at the end.
struct Temporary(PathBuf);

impl Temporary {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("gpu-lsm-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        Self(path)
    }

    fn names(&self) -> Vec<String> {
        let names = fs::read_dir(&self.0).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn contents<K: Key, V: Value>(stream: &Stream, lsm: &GpuLsm<K, V>) -> BTreeMap<K::Code, V> {
    lsm.iter(stream).unwrap().map(|(key, value)| (key.code(), value)).collect()
}

fn kind<T: Debug>(result: Result<T, Error>) -> ErrorKind {
    match result {
        Err(Error::Io(error)) => error.kind(),
        other => panic!("expected an error of the operating system: {other:?}"),
    }
}

/// Checkpoints between insertions, deletions and cleanups. Sometimes a new dictionary is recovered and continues.
fn history_of<K: Key + Debug, V: Value>(name: &str, key: impl Fn(usize) -> K) {
    let stream = &Device::cpu().stream().unwrap();
    let temporary = Temporary::new(name);
    // The parent is missing as well.
    let folder = temporary.0.join("nested");
    let random = &mut Random(5);
    let domain: Vec<K> = (0..60).map(key).collect();
    let mut lsm = GpuLsm::<K, V>::with_batch_size(8).unwrap();
    let mut model = BTreeMap::new();
    assert_eq!(kind(GpuLsm::<K, V>::recover(stream, &folder)), ErrorKind::NotFound);
    for step in 0..18 {
        match step % 6 {
            5 => lsm.cleanup(stream).unwrap(),
            2 | 4 => {
                let keys = random.keys(&domain, 12);
                lsm.delete(stream, &stream.upload(&keys).unwrap()).unwrap();
                for key in &keys {
                    model.remove(&key.code());
                }
            }
            _ => {
                let keys = random.keys(&domain, 20);
                let values: Vec<V> = random.values(keys.len());
                let pairs = (&stream.upload(&keys).unwrap(), &upload_values(stream, &values));
                lsm.insert(stream, pairs).unwrap();
                model.extend(keys.iter().map(|key| key.code()).zip(values));
            }
        }
        lsm.checkpoint(stream, &folder).unwrap();
        let again = GpuLsm::<K, V>::recover(stream, &folder).unwrap();
        assert!(contents(stream, &again) == model, "step {step}");
        assert!(saved(stream, &again) == saved(stream, &lsm), "step {step}");
        assert_eq!(
            fs::read_dir(&folder).unwrap().count(),
            2 + lsm.stats(stream).unwrap().levels,
            "step {step}: manifest, lock, levels"
        );
        if random.below(3) == 0 {
            lsm = again;
        }
    }
}

#[test]
fn histories() {
    history_of::<u32, u32>("u32", |i| 3 * i as u32);
    history_of::<u64, ()>("set", |i| (i as u64) << 50);
    history_of::<i64, [u32; 2]>("i64", |i| (i as i64 - 30) << 50);
}

/// Recovered levels are not written again: their files stay as they are.
#[test]
fn recovered_levels_are_kept() {
    let stream = &Device::cpu().stream().unwrap();
    let folder = Temporary::new("kept");
    let upload = |keys: &[u32]| stream.upload(keys).unwrap();
    let mut lsm = GpuLsm::<u32, u32>::with_batch_size(4).unwrap();
    lsm.insert(stream, (&upload(&[1, 2, 3, 4, 5, 6, 7, 8]), &upload(&[9; 8]))).unwrap();
    lsm.checkpoint(stream, &folder.0).unwrap();
    let before = folder.names();
    assert_eq!(before.len(), 3);
    let written = |name: &String| fs::metadata(folder.0.join(name)).unwrap().modified().unwrap();
    let times: Vec<_> = before.iter().map(written).collect();
    drop(lsm);
    let mut lsm = GpuLsm::<u32, u32>::recover(stream, &folder.0).unwrap();
    lsm.checkpoint(stream, &folder.0).unwrap();
    assert_eq!((folder.names(), before.iter().map(written).collect()), (before.clone(), times.clone()));
    lsm.insert(stream, (&upload(&[9]), &upload(&[9]))).unwrap();
    lsm.checkpoint(stream, &folder.0).unwrap();
    let level = before.iter().position(|name| name.starts_with("level-")).unwrap();
    assert_eq!(written(&before[level]), times[level]);
    assert_eq!(folder.names().len(), 4);
}

/// The keys and values that the process to be killed inserts and deletes in a step. Key 0 holds the number of steps.
/// Deletions are few: on the CPU, merges with tombstones take long.
fn step_of(step: u32) -> (Vec<u32>, Vec<u32>, Vec<u32>) {
    let mut random = Random(step.into());
    let domain: Vec<u32> = (1..500).collect();
    let mut keys = random.keys(&domain, 14);
    let mut values: Vec<u32> = random.values(keys.len());
    keys.push(0);
    values.push(step);
    (keys, values, if is_cleaned_up(step) { random.keys(&domain, 14) } else { Vec::new() })
}

/// Whether there are deletions and a cleanup in a step.
fn is_cleaned_up(step: u32) -> bool {
    step.is_multiple_of(16)
}

/// Not a test of its own: the process that [`killed_processes`] kills.
#[test]
fn process_to_be_killed() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let folder = Path::new(&folder);
    let stream = &Device::cpu().stream().unwrap();
    let mut lsm = match GpuLsm::<u32, u32>::recover(stream, folder) {
        Err(Error::Io(error)) if error.kind() == ErrorKind::NotFound => GpuLsm::with_batch_size(16).unwrap(),
        lsm => lsm.unwrap(),
    };
    let steps = lsm.lookup(stream, &stream.upload(&[0]).unwrap()).unwrap().to_vec(stream).unwrap();
    let mut step = steps[0].unwrap_or(0);
    loop {
        step += 1;
        let (keys, values, deleted) = step_of(step);
        let upload = |keys: &[u32]| stream.upload(keys).unwrap();
        lsm.update(stream, (&upload(&keys), &upload(&values)), &upload(&deleted)).unwrap();
        if is_cleaned_up(step) {
            lsm.cleanup(stream).unwrap();
        }
        lsm.checkpoint(stream, folder).unwrap();
        // The parent learns that this step is durable. A rename is atomic: the parent finds the old step or the new one.
        fs::write(folder.join("finished.new"), step.to_string()).unwrap();
        fs::rename(folder.join("finished.new"), folder.join("finished")).unwrap();
    }
}

/// Kills processes that write checkpoints, at random moments. Each process continues where the last one was killed.
#[test]
fn killed_processes() {
    let stream = &Device::cpu().stream().unwrap();
    let folder = Temporary::new("killed");
    let random = &mut Random(std::process::id().into());
    let mut model = BTreeMap::new();
    let (mut steps, mut unfinished, mut leftovers) = (0, 0, 0);
    let rounds = 20;
    for round in 0..rounds {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["process_to_be_killed", "--exact", "--nocapture"])
            .env(FOLDER, &folder.0)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // At least one step, so that there is progress.
        let started = Instant::now();
        let is_running = |child: &mut std::process::Child| child.try_wait().unwrap().is_none();
        while finished(&folder.0) <= steps && is_running(&mut child) && started.elapsed() < Duration::from_secs(60) {
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(Duration::from_micros(random.below(100_000) as u64));
        if !is_running(&mut child) {
            let mut message = String::new();
            child.stderr.take().unwrap().read_to_string(&mut message).unwrap();
            panic!("round {round}: the process ended by itself: {message}");
        }
        child.kill().unwrap();
        child.wait().unwrap();

        leftovers += folder.names().iter().filter(|name| name.ends_with(".tmp")).count();
        let lsm = GpuLsm::<u32, u32>::recover(stream, &folder.0).unwrap();
        let found = contents(stream, &lsm);
        let (known, recovered) = (finished(&folder.0), found[&0]);
        assert!(
            recovered == known || recovered == known + 1,
            "round {round}: {recovered} steps, {known} were finished"
        );
        unfinished += usize::from(recovered > known);
        for step in steps + 1..=recovered {
            let (keys, values, deleted) = step_of(step);
            model.extend(keys.into_iter().zip(values));
            for key in deleted {
                model.remove(&key);
            }
        }
        assert!(found == model, "round {round}, step {recovered}");
        steps = recovered;
    }
    println!(
        "{rounds} processes killed after {steps} checkpoints; {unfinished} left a newer state than they knew, {leftovers} \
         temporary files were left"
    );
}

/// Returns the last step that a process knows to be durable.
fn finished(folder: &Path) -> u32 {
    match fs::read_to_string(folder.join("finished")) {
        Err(error) if error.kind() == ErrorKind::NotFound => 0,
        step => step.unwrap().parse().unwrap(),
    }
}

/// While someone uses the folder, a checkpoint is refused. A recovery is possible at any time.
#[test]
fn a_locked_folder() {
    let stream = &Device::cpu().stream().unwrap();
    let folder = Temporary::new("locked");
    let mut lsm = GpuLsm::<u32, u32>::with_batch_size(4).unwrap();
    lsm.checkpoint(stream, &folder.0).unwrap();
    lsm.insert(stream, (&stream.upload(&[1]).unwrap(), &stream.upload(&[10]).unwrap())).unwrap();
    let lock = File::open(folder.0.join("lock")).unwrap();
    lock.lock_shared().unwrap();
    assert_eq!(kind(lsm.checkpoint(stream, &folder.0)), ErrorKind::WouldBlock);
    assert_eq!(GpuLsm::<u32, u32>::recover(stream, &folder.0).unwrap().stats(stream).unwrap().resident, 0);
    lock.unlock().unwrap();
    lsm.checkpoint(stream, &folder.0).unwrap();
    assert_eq!(GpuLsm::<u32, u32>::recover(stream, &folder.0).unwrap().stats(stream).unwrap().resident, 1);
    // A copy without the lock file.
    fs::remove_file(folder.0.join("lock")).unwrap();
    assert_eq!(GpuLsm::<u32, u32>::recover(stream, &folder.0).unwrap().stats(stream).unwrap().resident, 1);
}

/// Threads write to one folder and read from it at once. Of the dictionaries, one wins; all others are refused.
#[test]
fn writers_at_once() {
    let folder = &Temporary::new("writers");
    let device = &Device::cpu();
    let finished: Vec<usize> = std::thread::scope(|scope| {
        let writers = (0..3u32).map(|writer| {
            scope.spawn(move || {
                let stream = &device.stream().unwrap();
                let mut lsm = GpuLsm::<u32, u32>::with_batch_size(4).unwrap();
                let mut finished = 0;
                for step in 0..20 {
                    let pair = (&stream.upload(&[step]).unwrap(), &stream.upload(&[writer]).unwrap());
                    lsm.insert(stream, pair).unwrap();
                    match lsm.checkpoint(stream, &folder.0) {
                        Ok(()) => finished += 1,
                        Err(Error::Io(error)) => {
                            assert!(
                                matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::AlreadyExists),
                                "{error}"
                            );
                        }
                        Err(error) => panic!("{error}"),
                    }
                    match GpuLsm::<u32, u32>::recover(stream, &folder.0) {
                        Ok(found) => {
                            let writers: Vec<u32> = found.iter(stream).unwrap().map(|(_, writer)| writer).collect();
                            assert!(writers.is_sorted_by(|a, b| a == b), "mixed dictionaries: {writers:?}");
                        }
                        Err(Error::Io(error)) => assert_eq!(error.kind(), ErrorKind::NotFound, "{error}"),
                        Err(error) => panic!("{error}"),
                    }
                }
                finished
            })
        });
        let writers: Vec<_> = writers.collect();
        writers.into_iter().map(|writer| writer.join().unwrap()).collect()
    });
    assert_eq!(finished.iter().filter(|&&finished| finished > 0).count(), 1, "{finished:?}");
}

#[cfg(unix)]
#[test]
fn folders_that_cannot_be_written() {
    use std::os::unix::fs::PermissionsExt;
    let stream = &Device::cpu().stream().unwrap();
    let folder = Temporary::new("read-only");
    let mut lsm = GpuLsm::<u32, u32>::with_batch_size(4).unwrap();
    lsm.insert(stream, (&stream.upload(&[1]).unwrap(), &stream.upload(&[10]).unwrap())).unwrap();
    lsm.checkpoint(stream, &folder.0).unwrap();
    let state = saved(stream, &lsm);

    fs::set_permissions(&folder.0, fs::Permissions::from_mode(0o555)).unwrap();
    lsm.insert(stream, (&stream.upload(&[2]).unwrap(), &stream.upload(&[20]).unwrap())).unwrap();
    // The superuser may write everywhere.
    let is_refused = fs::write(folder.0.join("probe"), "").is_err();
    if is_refused {
        assert_eq!(kind(lsm.checkpoint(stream, &folder.0)), ErrorKind::PermissionDenied);
        assert!(saved(stream, &GpuLsm::<u32, u32>::recover(stream, &folder.0).unwrap()) == state);
    }
    fs::set_permissions(&folder.0, fs::Permissions::from_mode(0o755)).unwrap();
    lsm.checkpoint(stream, &folder.0).unwrap();
    assert!(saved(stream, &GpuLsm::<u32, u32>::recover(stream, &folder.0).unwrap()) == saved(stream, &lsm));

    // A file where the folder should be.
    let file = folder.0.join("file");
    fs::write(&file, "text").unwrap();
    let error = lsm.checkpoint(stream, &file).unwrap_err().to_string();
    assert!(error.contains(&*file.to_string_lossy()), "{error}");
    assert!(GpuLsm::<u32, u32>::recover(stream, &file).is_err());
}

/// A snapshot's checkpoint is one of the dictionary. A clone has a history of its own.
#[test]
fn checkpoints_of_snapshots() {
    let device = Device::cpu();
    let stream = device.stream().unwrap();
    let Temporary(folder) = &Temporary::new("snapshots");
    let mut lsm = GpuLsm::<u32, u32>::with_batch_size(4).unwrap();
    let insert = |lsm: &mut GpuLsm<u32, u32>, keys: &[u32]| {
        let keys = stream.upload(keys).unwrap();
        lsm.insert(&stream, (&keys, &keys)).unwrap();
    };
    insert(&mut lsm, &[1, 2, 3]);
    lsm.checkpoint(&stream, folder).unwrap();
    insert(&mut lsm, &[4]);
    let snapshot = lsm.snapshot();
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| snapshot.checkpoint(&device.stream().unwrap(), folder));
        insert(&mut lsm, &[5]);
        writer.join().unwrap().unwrap();
    });
    let recovered = GpuLsm::<u32, u32>::recover(&stream, folder).unwrap();
    assert_eq!(contents(&stream, &recovered).into_keys().collect::<Vec<_>>(), [1, 2, 3, 4]);

    assert_eq!(kind(lsm.clone().checkpoint(&stream, folder)), ErrorKind::AlreadyExists);
    lsm.checkpoint(&stream, folder).unwrap();
    let recovered = GpuLsm::<u32, u32>::recover(&stream, folder).unwrap();
    assert_eq!(contents(&stream, &recovered).into_keys().collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
}

/// Checks that a checkpoint was refused because the folder holds a newer one of the same dictionary.
#[track_caller]
fn assert_older(result: Result<(), Error>) {
    assert!(matches!(result, Err(Error::NewerCheckpoint { held, given, .. }) if held > given), "{result:?}");
}

/// An older state never replaces a newer one, whoever writes it.
#[test]
fn older_states_do_not_replace_newer_ones() {
    let stream = &Device::cpu().stream().unwrap();
    let Temporary(folder) = &Temporary::new("older");
    let upload = |keys: &[u32]| stream.upload(keys).unwrap();
    let insert = |lsm: &mut GpuLsm<u32, u32>, key: u32| lsm.insert(stream, (&upload(&[key]), &upload(&[key]))).unwrap();
    let holds = |expected: &[u32]| {
        let recovered = GpuLsm::<u32, u32>::recover(stream, folder).unwrap();
        assert_eq!(contents(stream, &recovered).into_keys().collect::<Vec<_>>(), expected);
    };
    let mut lsm = GpuLsm::<u32, u32>::with_batch_size(4).unwrap();
    let empty = lsm.snapshot();
    insert(&mut lsm, 1);
    let one = lsm.snapshot();
    insert(&mut lsm, 2);
    lsm.checkpoint(stream, folder).unwrap();
    assert_older(empty.checkpoint(stream, folder));
    assert_older(one.checkpoint(stream, folder));
    holds(&[1, 2]);
    // The same state, and newer ones.
    let two = lsm.snapshot();
    two.checkpoint(stream, folder).unwrap();
    lsm.checkpoint(stream, folder).unwrap();
    lsm.cleanup(stream).unwrap();
    lsm.checkpoint(stream, folder).unwrap();
    assert_older(two.checkpoint(stream, folder));

    // A snapshot that is taken apart is what it was. When it is updated, it is another dictionary.
    let mut fork = lsm.snapshot().into_inner();
    fork.checkpoint(stream, folder).unwrap();
    insert(&mut fork, 7);
    assert_eq!(kind(fork.checkpoint(stream, folder)), ErrorKind::AlreadyExists);
    let mut fork = one.into_inner();
    assert_older(fork.checkpoint(stream, folder));
    for key in 10..20 {
        insert(&mut fork, key); // more updates than the dictionary has
    }
    assert_eq!(kind(fork.checkpoint(stream, folder)), ErrorKind::AlreadyExists);
    let mut cleared = lsm.snapshot().into_inner();
    cleared.clear(stream).unwrap();
    assert_eq!(kind(cleared.checkpoint(stream, folder)), ErrorKind::AlreadyExists);
    holds(&[1, 2]);

    // Values that are not combined yet are combined in a copy, which is no newer.
    lsm.upsert(stream, (&upload(&[1]), &upload(&[5])), gpu_primitives::scan::Sum).unwrap();
    let pending = lsm.snapshot();
    pending.checkpoint(stream, folder).unwrap();
    insert(&mut lsm, 3);
    lsm.checkpoint(stream, folder).unwrap();
    assert_older(pending.checkpoint(stream, folder));
    holds(&[1, 2, 3]);

    // What was recovered goes on counting; what was there before is another dictionary.
    let mut again = GpuLsm::<u32, u32>::recover(stream, folder).unwrap();
    let recovered = again.snapshot();
    insert(&mut again, 4);
    again.checkpoint(stream, folder).unwrap();
    assert_older(recovered.checkpoint(stream, folder));
    insert(&mut lsm, 5);
    assert_eq!(kind(lsm.checkpoint(stream, folder)), ErrorKind::AlreadyExists);
    holds(&[1, 2, 3, 4]);
    // Clearing is an update like others.
    let full = again.snapshot();
    again.clear(stream).unwrap();
    again.checkpoint(stream, folder).unwrap();
    assert_older(full.checkpoint(stream, folder));
    holds(&[]);
}

/// Threads write snapshots in any order. What is left is the newest that was acknowledged.
#[test]
fn threads_that_write_snapshots_out_of_order() {
    let device = &Device::cpu();
    let stream = &device.stream().unwrap();
    let Temporary(folder) = &Temporary::new("out-of-order");
    let mut lsm = GpuLsm::<u32, u32>::with_batch_size(4).unwrap();
    let mut snapshots = Vec::new();
    for key in 0..24 {
        let key = stream.upload(&[key]).unwrap();
        lsm.insert(stream, (&key, &key)).unwrap();
        snapshots.push(lsm.snapshot());
    }
    // Each thread has every third snapshot, the newest first.
    let newest = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..3)
            .map(|writer| {
                let own: Vec<_> = snapshots.iter().enumerate().skip(writer).step_by(3).collect();
                scope.spawn(move || {
                    let stream = &device.stream().unwrap();
                    let written = own.into_iter().rev().filter(|(_, snapshot)| {
                        loop {
                            match snapshot.checkpoint(stream, folder) {
                                Ok(()) => return true,
                                Err(Error::Io(error)) if error.kind() == ErrorKind::WouldBlock => {
                                    std::thread::yield_now();
                                }
                                refused => {
                                    assert_older(refused);
                                    return false;
                                }
                            }
                        }
                    });
                    written.map(|(index, _)| index).max()
                })
            })
            .collect();
        writers.into_iter().filter_map(|writer| writer.join().unwrap()).max().unwrap()
    });
    let recovered = GpuLsm::<u32, u32>::recover(stream, folder).unwrap();
    assert_eq!(recovered.len(stream).unwrap(), newest + 1);
    assert_eq!(newest, 23, "one thread begins with the newest one");
}

/// A program that starts anew where there is no checkpoint does not do so where there was one.
#[test]
fn lost_files_are_not_a_new_folder() {
    let stream = &Device::cpu().stream().unwrap();
    let Temporary(folder) = &Temporary::new("lost");
    let start = || match GpuLsm::<u32, u32>::recover(stream, folder) {
        Err(Error::Io(error)) if error.kind() == ErrorKind::NotFound => GpuLsm::with_batch_size(2),
        recovered => recovered,
    };
    let start_with = |options| GpuLsm::<u32, u32>::recover_or_new(stream, folder, options);
    let options = Options::new().batch_size(2).buffer(0);
    let upload = |keys: &[u32]| stream.upload(keys).unwrap();
    let mut lsm = start_with(options).unwrap();
    lsm.insert(stream, (&upload(&[1, 2, 3, 4]), &upload(&[1, 2, 3, 4]))).unwrap();
    lsm.insert(stream, (&upload(&[5]), &upload(&[5]))).unwrap();
    lsm.checkpoint(stream, folder).unwrap();
    let names: Vec<String> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    let names: Vec<&String> = names.iter().filter(|name| *name != "lock").collect();
    assert_eq!(names.len(), 3);
    for name in names {
        let (path, aside) = (folder.join(name), folder.join("aside"));
        fs::rename(&path, &aside).unwrap();
        let message = start().unwrap_err().to_string();
        assert!(message.contains(&*folder.to_string_lossy()) && message.contains(name), "{message}");
        let damaged = start_with(options);
        assert!(matches!(&damaged, Err(Error::DamagedFolder { missing, .. }) if missing == name), "{damaged:?}");
        fs::rename(&aside, &path).unwrap();
        for recovered in [start(), start_with(options)] {
            assert_eq!(recovered.unwrap().len(stream).unwrap(), 5);
        }
    }

    // The batch size is that of the dictionary, the policy that of the options. A new one has both.
    let policy = CleanupPolicy::new().max_levels(3);
    let recovered = start_with(options.batch_size(99).cleanup_policy(policy)).unwrap();
    assert_eq!((recovered.stats(stream).unwrap().batch_size, recovered.cleanup_policy()), (2, Some(policy)));
    fs::remove_dir_all(folder).unwrap();
    let new = start_with(options.batch_size(99).cleanup_policy(policy)).unwrap();
    assert_eq!((new.stats(stream).unwrap().batch_size, new.cleanup_policy()), (99, Some(policy)));
    assert!(new.is_empty(stream).unwrap() && !folder.exists());
    assert!(matches!(start_with(options.batch_size(0)), Err(Error::InvalidOption { .. })));
}
