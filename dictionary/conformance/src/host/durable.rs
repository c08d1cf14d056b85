//! Checkpoints of any dictionary: in a folder, on a disk whose operations fail, and in folders that are damaged.

use super::disk::{Failure, Machine};
use super::model::{OwnFolder, Random};
use gpu_dictionary::checkpoint::Folder;
use gpu_dictionary::{DictionaryOptions, Durable, Updatable};
use gpu_primitives::{Device, Error, Stream};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::io::ErrorKind;

/// A dictionary that is updated at random, and its model.
struct Subject<'a, D: Durable + Updatable<Key = u32>> {
    stream: &'a Stream,
    dictionary: D,
    model: BTreeMap<u32, D::Value>,
    value: fn(u64) -> D::Value,
}

type State<D> = Vec<(u32, <D as gpu_dictionary::Dictionary>::Value)>;

/// Returns all pairs of a dictionary.
fn pairs<D: Durable<Key = u32>>(stream: &Stream, dictionary: &D) -> State<D> {
    dictionary.export(stream).unwrap().to_vec(stream).unwrap()
}

impl<'a, D: Durable + Updatable<Key = u32, Value: PartialEq + Debug>> Subject<'a, D> {
    fn new(stream: &'a Stream, options: &D::Options, value: fn(u64) -> D::Value) -> Self {
        let dictionary = D::new(stream, options.clone()).unwrap();
        Self { stream, dictionary, model: BTreeMap::new(), value }
    }

    /// Inserts some keys, and deletes others.
    fn update(&mut self, random: &mut Random) {
        let domain: Vec<u32> = (0..60).map(|i| i * 70_000_000).collect();
        let (mut inserted, mut deleted) = (random.keys(&domain, 20), random.keys(&domain, 6));
        inserted.push(random.number() as u32);
        deleted.truncate(random.below(7));
        let values: Vec<D::Value> = inserted.iter().map(|_| (self.value)(random.number())).collect();
        let upload = |keys: &[u32]| self.stream.upload(keys).unwrap();
        let pairs = (&upload(&inserted), &self.stream.upload(&values).unwrap());
        self.dictionary.update(self.stream, pairs, &upload(&deleted)).unwrap();
        self.model.extend(inserted.into_iter().zip(values));
        self.model.retain(|key, _| !deleted.contains(key));
    }

    fn model(&self) -> State<D> {
        self.model.iter().map(|(&key, &value)| (key, value)).collect()
    }

    /// Returns what a disk holds; `None` if no checkpoint was finished.
    fn found(&self, machine: &Machine) -> Result<Option<State<D>>, Error> {
        Ok(D::recover_from(self.stream, machine, None)?.map(|found| pairs(self.stream, &found)))
    }

    /// Returns how many operations a checkpoint takes, and how many files it leaves.
    fn rehearsed(&self, machine: &Machine) -> (usize, usize) {
        let rehearsal = machine.copy();
        self.dictionary.checkpoint_to(self.stream, &rehearsal).unwrap();
        (rehearsal.operations() - machine.operations(), rehearsal.all_names().len())
    }

    /// Interrupts a checkpoint on a copy of the disk. Returns the copy, and whether the checkpoint was finished.
    fn interrupted(&self, machine: &Machine, failure: (usize, Failure)) -> (Machine, bool) {
        let machine = machine.copy();
        machine.fail(Some(failure));
        let is_finished = self.dictionary.checkpoint_to(self.stream, &machine).is_ok();
        machine.fail(None);
        (machine, is_finished)
    }
}

/// Returns the kind of an error of the operating system, whose message must say what to do.
#[track_caller]
fn kind<T>(result: Result<T, Error>, advice: &str) -> ErrorKind {
    match result.err() {
        Some(Error::Io(error)) => {
            assert!(error.to_string().contains(advice), "{error}");
            error.kind()
        }
        other => panic!("expected an error of the operating system: {other:?}"),
    }
}

/// Checkpoints between updates, in a folder of the operating system. Sometimes a recovered dictionary continues.
///
/// # Panics
/// If a guarantee is broken.
pub fn checkpoint_history<D: Durable + Updatable<Key = u32, Value: PartialEq + Debug>>(
    options: &D::Options,
    value: fn(u64) -> D::Value,
) {
    let stream = &Device::cpu().stream().unwrap();
    let random = &mut Random(5);
    let own = OwnFolder::new();
    // The parent is missing as well.
    let folder = &own.path().join("nested");
    assert_eq!(kind(D::recover(stream, folder), "check the path"), ErrorKind::NotFound);
    let mut subject = Subject::<D>::new(stream, options, value);
    subject.dictionary = D::recover_or_new(stream, folder, options.clone()).unwrap();
    assert!(subject.dictionary.is_empty(stream).unwrap() && !own.path().exists());
    for step in 0..10 {
        // The first checkpoint is one of an empty dictionary.
        if step > 0 {
            subject.update(random);
        }
        if step == 6 {
            subject.dictionary.clear(stream).unwrap();
            subject.model.clear();
        }
        subject.dictionary.checkpoint(stream, folder).unwrap();
        let again = D::recover(stream, folder).unwrap();
        let with_options = D::recover_or_new(stream, folder, options.clone().expected_keys(7)).unwrap();
        for recovered in [&subject.dictionary, &again, &with_options] {
            assert_eq!(pairs(stream, recovered), subject.model(), "step {step}");
        }
        if step % 3 == 0 {
            // What was recovered with options goes on like any other.
            subject.dictionary = if step == 3 { again } else { with_options };
        }
    }
    one_folder_one_dictionary(subject, options, random);
}

/// A dictionary that has not seen the last checkpoint may not replace it.
fn one_folder_one_dictionary<D: Durable + Updatable<Key = u32, Value: PartialEq + Debug>>(
    mut subject: Subject<'_, D>,
    options: &D::Options,
    random: &mut Random,
) {
    let stream = subject.stream;
    let own = OwnFolder::new();
    let folder = own.path();
    let refused = |dictionary: &D| {
        let before = pairs(stream, &D::recover(stream, folder).unwrap());
        assert_eq!(kind(dictionary.checkpoint(stream, folder), "use another folder"), ErrorKind::AlreadyExists);
        assert_eq!(pairs(stream, &D::recover(stream, folder).unwrap()), before);
    };
    let written = |dictionary: &D| dictionary.checkpoint(stream, folder).unwrap();
    subject.dictionary = subject.dictionary.try_clone(stream).unwrap();
    written(&subject.dictionary);
    // One that was built anew, and a copy, although it is the same.
    refused(&D::new(stream, options.clone()).unwrap());
    refused(&subject.dictionary.try_clone(stream).unwrap());
    // Two continue the same checkpoint. The first one to write wins.
    let mut second = D::recover(stream, folder).unwrap();
    subject.update(random);
    written(&subject.dictionary);
    refused(&second);
    second = D::recover(stream, folder).unwrap();
    second.clear(stream).unwrap();
    written(&second);
    refused(&subject.dictionary);
    written(&second);

    // While someone reads the folder, nobody writes. A recovery is possible.
    let lock = std::fs::File::open(folder.join("lock")).unwrap();
    lock.lock_shared().unwrap();
    assert_eq!(kind(second.checkpoint(stream, folder), "try again"), ErrorKind::WouldBlock);
    assert!(D::recover(stream, folder).unwrap().is_empty(stream).unwrap());
    lock.unlock().unwrap();
    written(&second);
}

/// Kills a checkpoint at every operation, and takes the power at every operation in several ways. Then makes every operation
/// fail alone. The disk always holds the last state or the new one, and a later checkpoint works. Last, leaves out each sync in
/// turn: a crash must show it.
///
/// # Panics
/// If a guarantee is broken.
pub fn checkpoint_crashes<D: Durable + Updatable<Key = u32, Value: PartialEq + Debug>>(
    options: &D::Options,
    value: fn(u64) -> D::Value,
) {
    let stream = &Device::cpu().stream().unwrap();
    let random = &mut Random(1);
    let machine = Machine::default();
    let mut subject = Subject::<D>::new(stream, options, value);
    let mut last = None;
    let mut crashes = 0;
    for round in 0..3 {
        subject.update(random);
        let new = subject.model();
        let (operations, files) = subject.rehearsed(&machine);
        for after in 0..=operations {
            for failure in [Failure::Killed, Failure::DiskFull] {
                let when = format!("round {round}, {failure:?} after {after} of {operations}");
                let (crashed, is_finished) = subject.interrupted(&machine, (after, failure));
                assert!(is_finished || after < operations, "{when}");
                let allowed = |state: &Option<State<D>>| match state {
                    Some(state) if *state == new => true,
                    state => !is_finished && *state == last,
                };
                assert_eq!(pairs(stream, &subject.dictionary), new, "the dictionary has changed, {when}");
                assert!(allowed(&subject.found(&crashed).unwrap()), "{when}");
                for _ in 0..3 {
                    let after_loss = crashed.after_power_loss(random);
                    let found = subject.found(&after_loss).unwrap_or_else(|error| panic!("{error}, {when}"));
                    assert!(allowed(&found), "power loss, {when}");
                    // A new process continues.
                    if let Some(again) = D::recover_from(stream, &after_loss, Some(options)).unwrap() {
                        again.checkpoint_to(stream, &after_loss).unwrap();
                        assert_eq!(subject.found(&after_loss).unwrap(), found, "{when}");
                    }
                    crashes += 1;
                }
                // The same process continues.
                subject.dictionary.checkpoint_to(stream, &crashed).unwrap_or_else(|error| panic!("{error}, {when}"));
                let found = subject.found(&crashed.after_power_loss(random)).unwrap();
                assert_eq!(found.as_ref(), Some(&new), "{when}");
                assert_eq!(crashed.all_names().len(), files, "garbage: {:?}, {when}", crashed.all_names());
            }
        }
        if round < 2 {
            every_sync_is_needed(&subject, &machine, last.as_ref());
        }
        subject.dictionary.checkpoint_to(stream, &machine).unwrap();
        last = Some(new);
    }
    println!("{crashes} losses of power");
}

/// Leaves out each sync of a checkpoint in turn: some crash must damage the disk, or leave neither the last state nor, after the
/// end, the new one.
fn every_sync_is_needed<D: Durable + Updatable<Key = u32, Value: PartialEq + Debug>>(
    subject: &Subject<'_, D>,
    machine: &Machine,
    last: Option<&State<D>>,
) {
    let new = subject.model();
    let is_loss_found = |omitted: usize| {
        let random = &mut Random(9);
        let machine = machine.copy();
        machine.omit_sync(omitted);
        let (operations, _) = subject.rehearsed(&machine);
        // Losses are found near the end: begin there.
        (0..=operations).rev().any(|after| {
            let (crashed, is_finished) = subject.interrupted(&machine, (after, Failure::Killed));
            (0..40).any(|_| match subject.found(&crashed.after_power_loss(random)) {
                Ok(found) => found.as_ref() != Some(&new) && (is_finished || found.as_ref() != last),
                Err(_) => true,
            })
        })
    };
    let rehearsal = machine.copy();
    subject.dictionary.checkpoint_to(subject.stream, &rehearsal).unwrap();
    let syncs = rehearsal.cost().1 - machine.cost().1;
    assert!(syncs >= 4, "a part and its name, the manifest and its name");
    assert!(!is_loss_found(syncs), "a crash without an omission");
    for omitted in 0..syncs {
        assert!(is_loss_found(omitted), "sync {omitted} of {syncs} was left out, and nothing was lost");
    }
}

/// Changes every byte of every file, shortens and lengthens files, takes files away, and puts parts of other checkpoints in their
/// place: a recovery names the file, and nobody writes to a folder that has lost its manifest.
///
/// # Panics
/// If a guarantee is broken.
pub fn checkpoint_damage<D: Durable + Updatable<Key = u32, Value: PartialEq + Debug>>(
    options: &D::Options,
    value: fn(u64) -> D::Value,
) {
    let stream = &Device::cpu().stream().unwrap();
    let random = &mut Random(3);
    let machine = Machine::default();
    let mut subject = Subject::<D>::new(stream, options, value);
    subject.update(random);
    subject.dictionary.checkpoint_to(stream, &machine).unwrap();
    let other = Machine::default();
    let apart = subject.dictionary.try_clone(stream).unwrap();
    apart.checkpoint_to(stream, &other).unwrap();
    let part = |machine: &Machine| {
        let names = machine.all_names();
        names.into_iter().find(|name| name.starts_with("part-") || name.starts_with("level-")).unwrap()
    };
    for name in machine.all_names() {
        let refused = |alter: &dyn Fn(&mut Vec<u8>)| {
            let damaged = machine.copy();
            damaged.alter(&name, alter);
            match subject.found(&damaged) {
                Err(Error::InvalidFile { what, .. }) => {
                    assert!(what.contains(&name) && what.contains("restore the folder"), "{what}");
                }
                other => panic!("{name}: {other:?}"),
            }
        };
        let mut len = 0;
        machine.alter(&name, |bytes| len = bytes.len());
        for at in 0..len {
            refused(&|bytes| bytes[at] ^= 1 << (at % 8));
            refused(&|bytes| bytes.truncate(at));
        }
        refused(&|bytes| bytes.push(0));
        // A file of the same dictionary that belongs to another checkpoint.
        if name == part(&machine) && D::NAME != "LSM" {
            let mut foreign = Vec::new();
            other.alter(&part(&other), |bytes| foreign.clone_from(bytes));
            refused(&|bytes| bytes.clone_from(&foreign));
        }

        let lost = machine.copy();
        lost.take(&name);
        let missing = |result: Result<(), Error>| match result {
            Err(Error::DamagedFolder { missing, .. }) => assert_eq!(missing, name),
            other => panic!("{name}: {other:?}"),
        };
        missing(subject.found(&lost).map(drop));
        if name == "manifest" {
            let left = lost.all_names();
            missing(subject.dictionary.checkpoint_to(stream, &lost));
            missing(D::new(stream, options.clone()).unwrap().checkpoint_to(stream, &lost));
            assert_eq!(lost.all_names(), left);
        }
    }
    // Files of others stay; what a killed writer left is removed.
    let ours = machine.all_names();
    let garbage = format!("part-{:032x}.tmp", 7);
    for name in ["notes.txt", "part-1", &garbage, "manifest.tmp"] {
        machine.put(name, b"bytes");
    }
    subject.dictionary.checkpoint_to(stream, &machine).unwrap();
    let names = machine.all_names();
    assert_eq!(names.len(), ours.len() + 2, "{names:?}");
    assert!(["notes.txt", "part-1"].iter().all(|name| names.iter().any(|found| found == name)), "{names:?}");
    // Nobody writes to a folder that someone else has locked.
    let lock = Folder::new(&machine).lock().unwrap();
    assert_eq!(kind(subject.dictionary.checkpoint_to(stream, &machine), "try again"), ErrorKind::WouldBlock);
    drop(lock);
    subject.dictionary.checkpoint_to(stream, &machine).unwrap();
}
