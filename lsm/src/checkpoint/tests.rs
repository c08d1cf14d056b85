//! Checkpoints on a simulated disk: every operation is made to fail, and every crash forgets what it may.

use crate::{GpuLsm, Key, Options};
use gpu_dictionary::checkpoint::{Folder, Parts};
use gpu_dictionary::{Durable, KeyCode};
use gpu_dictionary_conformance::{Failure, Machine, Random, Value, extremes, saved, upload_values};
use gpu_primitives::{Device, Error, Stream};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::io::ErrorKind;

/// A dictionary that is updated at random, and its model.
pub(super) struct Subject<'a, K: Key, V: Value> {
    pub(super) stream: &'a Stream,
    lsm: GpuLsm<K, V>,
    model: BTreeMap<K::Code, V>,
    domain: Vec<K>,
}

impl<'a, K: Key + Debug, V: Value> Subject<'a, K, V> {
    /// A dictionary without a buffer: every call makes levels, which checkpoints write.
    pub(super) fn new(stream: &'a Stream) -> Self {
        Self::with_options(stream, Options::new().buffer(0))
    }

    pub(super) fn with_options(stream: &'a Stream, options: Options) -> Self {
        let step = u64::MAX >> (64 - 8 * size_of::<K>()) as u32;
        let codes = (0..40u64).map(|i| step / 41 * i);
        let domain = codes.map(|bits| K::from_code(KeyCode::from_words([bits, 0]))).chain(extremes()).collect();
        let lsm = GpuLsm::new(stream, options.batch_size(4)).unwrap();
        Self { stream, lsm, model: BTreeMap::new(), domain }
    }

    /// Makes one update.
    pub(super) fn update(&mut self, random: &mut Random) {
        match random.below(12) {
            0 => self.lsm.cleanup(self.stream).unwrap(),
            1 if random.below(4) == 0 => {
                self.lsm.clear(self.stream).unwrap();
                self.model.clear();
            }
            1 | 2 => self.change(&[], &random.keys(&self.domain, 6), random),
            3 => {
                let inserted = random.keys(&self.domain, 10);
                self.change(&inserted, &random.keys(&self.domain, 4), random);
            }
            _ => self.change(&random.keys(&self.domain, 10), &[], random),
        }
    }

    pub(super) fn change(&mut self, inserted: &[K], deleted: &[K], random: &mut Random) {
        let values: Vec<V> = random.values(inserted.len());
        let insert = (&self.stream.upload(inserted).unwrap(), &upload_values(self.stream, &values));
        self.lsm.update(self.stream, insert, &self.stream.upload(deleted).unwrap()).unwrap();
        self.model.extend(inserted.iter().map(|key| key.code()).zip(values));
        for key in deleted {
            self.model.remove(&key.code());
        }
    }

    pub(super) fn checkpoint(&self, machine: &Machine) -> Result<(), Error> {
        self.lsm.checkpoint_to(self.stream, machine)
    }

    /// Reads the checkpoint in a folder; `None` if none was finished.
    pub(super) fn find(&self, machine: &Machine) -> Result<Option<GpuLsm<K, V>>, Error> {
        let options = Some(self.lsm.options()).filter(|options| options.device_memory.0.is_some());
        GpuLsm::recover_from(self.stream, machine, options.as_ref())
    }

    pub(super) fn recover(&self, machine: &Machine) -> Result<GpuLsm<K, V>, Error> {
        self.find(machine).map(|found| found.expect("a finished checkpoint"))
    }

    /// Returns the state of the dictionary: its file.
    pub(super) fn state(&self) -> Vec<u8> {
        saved(self.stream, &self.lsm)
    }

    /// Returns the state in a folder; `None` if there was no checkpoint.
    fn state_in(&self, machine: &Machine) -> Option<Vec<u8>> {
        self.find(machine).unwrap().map(|lsm| saved(self.stream, &lsm))
    }

    /// Returns what is in the model.
    pub(super) fn contents(&self) -> Vec<(K::Code, V)> {
        self.model.iter().map(|(&code, &value)| (code, value)).collect()
    }

    /// Returns how many operations the buffer has.
    pub(super) fn buffered(&self) -> usize {
        self.lsm.stats(self.stream).unwrap().buffered
    }

    /// Compares the contents with the model.
    fn check(&self, when: &str) {
        let found = self.lsm.export(self.stream).unwrap().to_vec(self.stream).unwrap();
        let found = found.into_iter().map(|(key, value)| (key.code(), value));
        assert!(found.eq(self.model.iter().map(|(&code, &value)| (code, value))), "{when}");
    }
}

fn io_error(result: Result<(), Error>) -> std::io::Error {
    match result {
        Err(Error::Io(error)) => error,
        other => panic!("expected an error of the operating system: {other:?}"),
    }
}

/// Returns the name of the file that a folder has lost.
fn missing_file<T: Debug>(result: Result<T, Error>) -> String {
    match result {
        Err(error @ Error::DamagedFolder { .. }) => {
            let message = error.to_string();
            let Error::DamagedFolder { folder, missing } = error else { unreachable!() };
            assert!(message.contains(&*folder.to_string_lossy()) && message.contains(&missing), "{message}");
            assert!(message.contains("Restore the folder from a copy"), "{message}");
            missing
        }
        other => panic!("expected a damaged folder: {other:?}"),
    }
}

/// Interrupts a checkpoint in a copy of the folder. Returns the copy, and whether the checkpoint was finished.
fn interrupted<K: Key + Debug, V: Value>(
    subject: &Subject<'_, K, V>,
    machine: &Machine,
    failure: (usize, Failure),
) -> (Machine, bool) {
    let machine = machine.copy();
    machine.fail(Some(failure));
    let is_finished = subject.checkpoint(&machine).is_ok();
    machine.fail(None);
    (machine, is_finished)
}

/// Returns how many operations a checkpoint takes.
fn operations<K: Key + Debug, V: Value>(subject: &Subject<'_, K, V>, machine: &Machine) -> usize {
    let rehearsal = machine.copy();
    subject.checkpoint(&rehearsal).unwrap();
    rehearsal.operations() - machine.operations()
}

/// Kills a checkpoint at every operation, and takes the power at every operation in several ways. Then makes every
/// operation fail alone. The folder always holds the last state or the new one, and a later checkpoint works.
fn every_operation_of<K: Key + Debug, V: Value>(histories: u64, options: Options) {
    let stream = &Device::cpu().stream().unwrap();
    let mut crashes = 0;
    for seed in 0..histories {
        let random = &mut Random(seed);
        let machine = Machine::default();
        let mut subject = Subject::<K, V>::with_options(stream, options);
        let mut last = None;
        for round in 0..3 {
            for _ in 0..1 + random.below(3) {
                subject.update(random);
            }
            let new = subject.state();
            let operations = operations(&subject, &machine);
            for after in 0..=operations {
                for failure in [Failure::Killed, Failure::DiskFull] {
                    let when = format!("seed {seed}, round {round}, {failure:?} after {after} of {operations}");
                    let (crashed, is_finished) = interrupted(&subject, &machine, (after, failure));
                    assert!(is_finished || after < operations, "{when}");
                    let allowed = |state: &Option<Vec<u8>>| match state {
                        Some(state) if *state == new => true,
                        state => !is_finished && *state == last,
                    };
                    assert!(subject.state() == new, "the dictionary has changed, {when}");
                    assert!(allowed(&subject.state_in(&crashed)), "{when}");
                    for _ in 0..6 {
                        let after_loss = crashed.after_power_loss(random);
                        let found = subject.state_in(&after_loss);
                        assert!(allowed(&found), "power loss, {when}");
                        // A new process continues.
                        if found.is_some() {
                            let again = subject.recover(&after_loss).unwrap();
                            again.checkpoint_to(stream, &after_loss).unwrap();
                            assert!(subject.state_in(&after_loss) == found, "{when}");
                            let names = after_loss.all_names();
                            assert_eq!(
                                names.len(),
                                1 + again.stats(stream).unwrap().levels,
                                "garbage: {names:?}, {when}"
                            );
                        }
                        crashes += 1;
                    }
                    // The same process continues.
                    subject.checkpoint(&crashed).unwrap_or_else(|error| panic!("{error}, {when}"));
                    assert!(subject.state_in(&crashed.after_power_loss(random)).as_ref() == Some(&new), "{when}");
                    assert_eq!(
                        crashed.all_names().len(),
                        1 + subject.lsm.stats(stream).unwrap().levels,
                        "garbage, {when}"
                    );
                }
            }
            subject.checkpoint(&machine).unwrap();
            last = Some(new);
        }
        subject.check("at the end");
    }
    println!("{crashes} losses of power");
}

#[test]
fn every_operation_fails() {
    every_operation_of::<u32, u32>(8, Options::new().buffer(0));
}

#[test]
fn every_operation_fails_with_sets() {
    every_operation_of::<u64, ()>(4, Options::new().buffer(0));
}

#[test]
fn every_operation_fails_with_wide_values() {
    every_operation_of::<i64, [u32; 2]>(4, Options::new().buffer(0));
}

#[test]
fn every_operation_fails_with_levels_on_the_host() {
    every_operation_of::<u32, u32>(2, Options::new().buffer(0).device_memory(0));
    every_operation_of::<u32, u32>(2, Options::new().buffer(0).device_memory(100));
}

/// Returns whether some crash shows that a checkpoint loses its syncs: the folder is damaged, or its state is neither
/// the last one nor, as it must be after the end, the new one.
fn is_loss_found(subject: &Subject<'_, u32, u32>, machine: &Machine, last: Option<&[u8]>, omitted: usize) -> bool {
    let random = &mut Random(9);
    let new = subject.state();
    let machine = machine.copy();
    machine.omit_sync(omitted);
    (0..=operations(subject, &machine)).any(|after| {
        let (crashed, is_finished) = interrupted(subject, &machine, (after, Failure::Killed));
        (0..100).any(|_| match subject.find(&crashed.after_power_loss(random)) {
            Ok(Some(lsm)) => {
                let found = saved(subject.stream, &lsm);
                found != new && (is_finished || Some(&found[..]) != last)
            }
            Ok(None) => is_finished || last.is_some(),
            Err(_) => true,
        })
    })
}

/// Deliberate bugs: no sync of a checkpoint can be left out. So the simulation finds those that are missing.
#[test]
fn planted_omissions_are_found() {
    let stream = &Device::cpu().stream().unwrap();
    let random = &mut Random(1);
    let machine = Machine::default();
    let mut subject = Subject::<u32, u32>::new(stream);
    subject.change(&[1, 2, 3, 4], &[], random);
    let no_sync = usize::MAX / 2;
    assert!(!is_loss_found(&subject, &machine, None, no_sync));
    let syncs =
        ["the parents", "the first manifest", "its name", "a level", "its name", "the second manifest", "its name"];
    for (omitted, what) in syncs.iter().enumerate() {
        assert!(is_loss_found(&subject, &machine, None, omitted), "the first checkpoint without a sync of {what}");
    }
    subject.checkpoint(&machine).unwrap();
    let first = subject.state();

    subject.change(&[5, 6, 7, 8], &[], random);
    assert!(!is_loss_found(&subject, &machine, Some(&first), no_sync));
    for (omitted, what) in ["a level", "its name", "the manifest", "its name"].iter().enumerate() {
        assert!(is_loss_found(&subject, &machine, Some(&first), omitted), "the second one without a sync of {what}");
    }

    // Killed after the rename of the manifest, before its name is durable. The next checkpoint removes the old level.
    let killed =
        (0..operations(&subject, &machine)).map(|after| interrupted(&subject, &machine, (after, Failure::Killed)));
    let last_state = subject.state();
    let mut killed = killed.filter(|(machine, _)| subject.state_in(machine).as_ref() == Some(&last_state));
    let machine = killed.next().unwrap().0;
    subject.change(&[9], &[], random);
    let is_lost = |omitted| {
        let machine = machine.copy();
        machine.omit_sync(omitted);
        (0..operations(&subject, &machine)).any(|after| {
            let (crashed, _) = interrupted(&subject, &machine, (after, Failure::Killed));
            (0..100).any(|_| subject.find(&crashed.after_power_loss(random)).is_err())
        })
    };
    let [without, with] = [0, no_sync].map(is_lost);
    assert!(without && !with, "the collection of garbage without a sync of the manifest's name");
}

/// Long histories in which processes are killed, disks are full and power is lost, at random operations and again and
/// again.
fn random_failures_of<K: Key + Debug, V: Value>(seed: u64, steps: usize) {
    let stream = &Device::cpu().stream().unwrap();
    let random = &mut Random(seed);
    let mut machine = Machine::default();
    let mut subject = Subject::<K, V>::new(stream);
    // What may be found: the last finished state, and those of the attempts since then.
    let mut allowed = vec![None];
    let mut counts = [0; 3];
    for step in 0..steps {
        subject.update(random);
        let failure = match random.below(3) {
            0 => None,
            1 => Some((random.below(30), Failure::Killed)),
            _ => Some((random.below(30), Failure::DiskFull)),
        };
        machine.fail(failure);
        let finished = subject.checkpoint(&machine);
        machine.fail(None);
        if finished.is_ok() {
            allowed.clear();
        }
        allowed.push(Some((subject.state(), subject.model.clone())));
        let is_killed = finished.is_err() && matches!(failure, Some((_, Failure::Killed)));
        let is_power_lost = random.below(4) == 0;
        counts[0] += usize::from(finished.is_ok());
        counts[1] += usize::from(is_killed);
        counts[2] += usize::from(is_power_lost);
        if is_power_lost {
            machine = machine.after_power_loss(random);
        }
        if is_killed || is_power_lost {
            let found = subject.state_in(&machine);
            let is_found = |allowed: &&Option<(_, _)>| allowed.as_ref().map(|(state, _)| state) == found.as_ref();
            let state = allowed.iter().rev().find(is_found);
            let state = state.unwrap_or_else(|| panic!("seed {seed}, step {step}: an unknown state")).clone();
            match &state {
                Some((_, model)) => {
                    subject.lsm = subject.recover(&machine).unwrap();
                    subject.model = model.clone();
                }
                None => subject = Subject::new(stream),
            }
            if is_power_lost {
                allowed = vec![state];
            }
        }
    }
    subject.check("at the end");
    println!("{counts:?} checkpoints, kills, losses of power");
    assert!(counts.iter().all(|&count| count > steps / 20), "{counts:?}");
}

#[test]
fn random_failures() {
    random_failures_of::<u32, u32>(1, 40);
    random_failures_of::<u64, ()>(2, 25);
    random_failures_of::<i64, u64>(3, 25);
}

#[test]
fn only_new_levels_are_written() {
    let stream = &Device::cpu().stream().unwrap();
    let random = &mut Random(1);
    let machine = Machine::default();
    let mut subject = Subject::<u32, u32>::new(stream);
    let batch: Vec<u32> = (0..4).collect();
    // Seven batches: levels of 16, 8 and 4 elements.
    for _ in 0..7 {
        subject.change(&batch, &[], random);
    }
    let (empty, _) = machine.cost();
    assert_eq!(empty, 0);
    subject.checkpoint(&machine).unwrap();
    let (bytes, syncs) = machine.cost();
    assert!(bytes > 28 * 8, "{bytes}");
    assert_eq!(
        syncs,
        1 + 2 + 3 + 1 + 2,
        "the parents; a manifest and its name; each level; their names; the same again"
    );

    // Nothing is new: only the names are made durable once more.
    subject.checkpoint(&machine).unwrap();
    assert_eq!(machine.cost(), (bytes, syncs + 1));
    // Also after a recovery.
    subject.lsm = subject.recover(&machine).unwrap();
    subject.checkpoint(&machine).unwrap();
    assert_eq!(machine.cost(), (bytes, syncs + 2));

    // The eighth batch carries into one new level.
    subject.change(&batch, &[], random);
    subject.checkpoint(&machine).unwrap();
    let (after_eight, syncs_after_eight) = machine.cost();
    assert_eq!(syncs_after_eight - syncs - 2, 1 + 1 + 2, "the level, its name, the manifest and its name");
    assert_eq!(machine.all_names().len(), 2, "the old levels are removed");
    // The ninth batch writes one small level, and not the large one.
    subject.lsm = subject.recover(&machine).unwrap();
    subject.change(&batch, &[], random);
    subject.checkpoint(&machine).unwrap();
    let ninth = machine.cost().0 - after_eight;
    assert!(ninth < 8 * 32, "{ninth} bytes");
    assert_eq!(machine.all_names().len(), 3);

    // Two folders in turn: what one holds is not written again.
    let other = Machine::default();
    subject.checkpoint(&other).unwrap();
    let costs = [machine.cost().0, other.cost().0];
    subject.checkpoint(&machine).unwrap();
    subject.checkpoint(&other).unwrap();
    assert_eq!([machine.cost().0, other.cost().0], costs);

    // A level file that someone removed is written again.
    let name = machine.all_names().into_iter().find(|name| name.starts_with("level-")).unwrap();
    machine.take(&name);
    assert_eq!(missing_file(subject.recover(&machine)), name);
    subject.checkpoint(&machine).unwrap();
    assert!(subject.state_in(&machine) == Some(subject.state()));
}

/// A dictionary that has not seen the last checkpoint may not replace it.
#[test]
fn checkpoints_of_others_are_not_replaced() {
    let stream = &Device::cpu().stream().unwrap();
    let random = &mut Random(1);
    let machine = Machine::default();
    let mut first = Subject::<u32, u32>::new(stream);
    first.change(&[1, 2, 3], &[], random);
    first.checkpoint(&machine).unwrap();
    let refused = |subject: &Subject<'_, u32, u32>, machine: &Machine| {
        let (state, cost) = (subject.state_in(machine), machine.cost());
        let error = io_error(subject.checkpoint(machine));
        assert_eq!(error.kind(), ErrorKind::AlreadyExists);
        assert!(error.to_string().contains("use another folder"), "{error}");
        assert!(subject.state_in(machine) == state && machine.cost() == cost);
    };

    // A dictionary that was built anew, even with the same contents.
    let mut unrelated = Subject::new(stream);
    refused(&unrelated, &machine);
    unrelated.lsm = GpuLsm::load(stream, &first.state()[..]).unwrap();
    refused(&unrelated, &machine);

    // Two continue the same checkpoint. The first one to write wins.
    let mut second = Subject::new(stream);
    second.lsm = first.recover(&machine).unwrap();
    let copy = machine.copy();
    second.change(&[7], &[], random);
    second.checkpoint(&machine).unwrap();
    first.change(&[8], &[], random);
    refused(&first, &machine);
    second.change(&[9], &[], random);
    second.checkpoint(&machine).unwrap();
    assert!(second.state_in(&machine) == Some(second.state()));

    // In a copy from before, the other one can continue, with names of its own. Then they are apart.
    first.checkpoint(&copy).unwrap();
    refused(&second, &copy);
    refused(&first, &machine);
    let mut third = Subject::new(stream);
    third.lsm = first.recover(&copy).unwrap();
    refused(&third, &machine);
    third.lsm.clear(stream).unwrap();
    third.checkpoint(&copy).unwrap();
    assert_eq!(third.recover(&copy).unwrap().stats(stream).unwrap().resident, 0);

    // Other types.
    let mut typed = Subject::<u64, ()>::new(stream);
    typed.change(&[1], &[], random);
    let error = typed.checkpoint(&machine).unwrap_err();
    assert!(matches!(&error, Error::InvalidFile { what, .. } if what.contains("keys are of type u32")), "{error}");
    // Those who delete all files say that they need them no more.
    for name in machine.all_names() {
        machine.take(&name);
    }
    typed.checkpoint(&machine).unwrap();
    assert_eq!(machine.all_names().len(), 2);
}

#[test]
fn locked_and_read_only_folders() {
    let stream = &Device::cpu().stream().unwrap();
    let random = &mut Random(1);
    let machine = Machine::default();
    let mut subject = Subject::<u32, u32>::new(stream);
    subject.change(&[1, 2, 3], &[], random);
    let folder = Folder::new(&machine);
    let lock = folder.lock().unwrap();
    assert_eq!(io_error(subject.checkpoint(&machine)).kind(), ErrorKind::WouldBlock);
    drop(lock);
    subject.checkpoint(&machine).unwrap();
    let state = subject.state();

    subject.change(&[4], &[], random);
    for after in 0..20 {
        machine.fail(Some((after, Failure::ReadOnly)));
        if let Err(error) = subject.checkpoint(&machine) {
            assert!(matches!(error, Error::Io(error) if error.kind() == ErrorKind::ReadOnlyFilesystem));
            assert!(subject.state_in(&machine) == Some(state.clone()) || after > 8, "{after}");
        }
        machine.fail(None);
    }
    subject.checkpoint(&machine).unwrap();
    assert!(subject.state_in(&machine) == Some(subject.state()));
}

/// Every byte of every file is changed, and every file is cut off or made longer.
#[test]
fn damaged_files() {
    let stream = &Device::cpu().stream().unwrap();
    let machine = Machine::default();
    let mut subject = Subject::<u32, u32>::new(stream);
    subject.change(&[1, 2, 3, 4, 5, 6, 7], &[], &mut Random(1));
    subject.change(&[8], &[3], &mut Random(2));
    subject.checkpoint(&machine).unwrap();
    let mut damages = 0;
    for name in machine.all_names() {
        let refused = |alter: &dyn Fn(&mut Vec<u8>)| {
            let damaged = machine.copy();
            damaged.alter(&name, alter);
            match subject.recover(&damaged) {
                Err(Error::InvalidFile { what, .. }) => {
                    assert!(what.contains(&name) && what.contains("restore the folder"), "{what}");
                }
                other => panic!("{name}: {other:?}"),
            }
        };
        let mut len = 0;
        machine.alter(&name, |bytes| len = bytes.len());
        for at in 0..len {
            for flipped in [1, 0x80, 0xff] {
                refused(&|bytes| bytes[at] ^= flipped);
            }
            refused(&|bytes| bytes.truncate(at));
            damages += 4;
        }
        refused(&|bytes| bytes.push(0));
    }
    println!("{damages} damages");

    // A damaged manifest is not replaced either. Nothing is lost that could be repaired.
    let damaged = machine.copy();
    damaged.alter("manifest", |bytes| bytes[20] ^= 1);
    assert!(matches!(subject.checkpoint(&damaged), Err(Error::InvalidFile { .. })));

    // Levels in each other's place.
    let levels: Vec<String> = machine.all_names().into_iter().filter(|name| name.starts_with("level-")).collect();
    assert!(levels.len() > 1);
    let mut contents = Vec::new();
    machine.alter(&levels[0], |bytes| contents.clone_from(bytes));
    machine.alter(&levels[1], |bytes| *bytes = contents);
    let swapped = subject.recover(&machine).unwrap_err().to_string();
    assert!(swapped.contains("not the level that the manifest names"), "{swapped}");
}

/// Files of others stay, and so do all files of ours that are in use.
#[test]
fn garbage_is_collected() {
    let stream = &Device::cpu().stream().unwrap();
    let machine = Machine::default();
    let mut subject = Subject::<u32, u32>::new(stream);
    subject.change(&[1, 2, 3], &[], &mut Random(1));
    subject.checkpoint(&machine).unwrap();
    let ours = machine.all_names();
    let level = Parts::Levels.name(5);
    let others = ["notes.txt", "notes.tmp", "level-1", "manifest.old", "lock"];
    for name in others {
        machine.put(name, b"mine");
    }
    for name in [&level, &format!("{level}.tmp"), "manifest.tmp"] {
        machine.put(name, b"torn");
    }
    subject.checkpoint(&machine).unwrap();
    let mut expected: Vec<&str> = ours.iter().map(String::as_str).chain(others).collect();
    expected.sort_unstable();
    assert_eq!(machine.all_names(), expected);
}

/// A folder that has lost its manifest or a level is damaged, and nobody writes to it. Without any of them it is new.
#[test]
fn lost_files_are_noticed() {
    let stream = &Device::cpu().stream().unwrap();
    let random = &mut Random(1);
    let machine = Machine::default();
    let mut subject = Subject::<u32, u32>::new(stream);
    assert!(subject.find(&machine).unwrap().is_none(), "there is nothing yet");
    subject.change(&[1, 2, 3, 4, 5, 6, 7, 8], &[], random);
    subject.change(&[9], &[3], random);
    subject.checkpoint(&machine).unwrap();
    let names = machine.all_names();
    assert_eq!(names.len(), 3, "{names:?}");
    for name in &names {
        let damaged = machine.copy();
        damaged.take(name);
        assert_eq!(missing_file(subject.recover(&damaged)), *name);
    }

    // Without the manifest, the levels are not overwritten: neither by another dictionary nor by this one.
    machine.take("manifest");
    subject.change(&[10], &[], random);
    let left = machine.all_names();
    for writer in [&Subject::new(stream), &subject] {
        assert_eq!(missing_file(writer.checkpoint(&machine)), "manifest");
        assert_eq!(machine.all_names(), left);
    }
    // Also if the level that is left was never finished, or if there is a torn manifest.
    for name in &left {
        let torn = Machine::default();
        torn.put(&format!("{name}.tmp"), b"torn");
        assert_eq!(missing_file(subject.recover(&torn)), "manifest");
        torn.put("manifest.tmp", b"torn");
        assert_eq!(missing_file(subject.checkpoint(&torn)), "manifest");
    }
    // All of it was lost, or this was never finished: that is a new folder.
    let new = Machine::default();
    for name in ["lock", "manifest.tmp", "notes"] {
        new.put(name, b"");
    }
    assert!(subject.find(&new).unwrap().is_none());
    subject.checkpoint(&new).unwrap();
    assert!(subject.state_in(&new) == Some(subject.state()));
}

/// Changes what a section of a file holds, and corrects its checksum.
fn alter_section(machine: &Machine, name: &str, alter: impl FnOnce(&mut Vec<u8>)) {
    machine.alter(name, |bytes| {
        bytes.truncate(bytes.len() - 4);
        alter(bytes);
        let contents = std::mem::take(bytes);
        gpu_dictionary::file::write_section(bytes, &contents).unwrap();
    });
}

/// Manifests of version 2 do not count updates. They are read, and replaced by those of version 3.
#[test]
fn manifests_of_version_2() {
    let stream = &Device::cpu().stream().unwrap();
    let machine = Machine::default();
    let mut subject = Subject::<u32, u32>::new(stream);
    subject.change(&[1, 2, 3, 4, 5], &[], &mut Random(1));
    subject.checkpoint(&machine).unwrap();
    // After the common header of 16 bytes and two ids.
    alter_section(&machine, "manifest", |bytes| {
        bytes.drain(48..57);
        bytes[8] = 2;
    });
    assert!(subject.state_in(&machine) == Some(subject.state()));
    subject.lsm = subject.recover(&machine).unwrap();
    subject.change(&[6], &[2], &mut Random(2));
    subject.checkpoint(&machine).unwrap();
    machine.alter("manifest", |bytes| assert_eq!(bytes[8], 3));
    assert!(subject.state_in(&machine) == Some(subject.state()));
    // Neither finished nor unfinished; and an unfinished one with levels.
    for is_finished in [0, 2] {
        let damaged = machine.copy();
        alter_section(&damaged, "manifest", |bytes| bytes[56] = is_finished);
        assert!(matches!(subject.find(&damaged), Err(Error::InvalidFile { .. })), "{is_finished}");
    }
}
