//! Folders whose files are lost, shortened, put in each other's place, or changed at random.

use super::tests::Subject;
use crate::GpuLsm;
use gpu_dictionary::Durable;
use gpu_dictionary_conformance::{Machine, Mutator, Random, Round, fuzz_seeds, saved};
use gpu_primitives::{CpuOptions, Device, Error};

/// Returns the contents of a file.
fn contents(machine: &Machine, name: &str) -> Vec<u8> {
    let mut contents = Vec::new();
    machine.alter(name, |bytes| contents.clone_from(bytes));
    contents
}

/// Loses a file, shortens it, or gives it the name of another one.
fn damage(machine: &Machine, random: &mut Random) {
    let names = machine.all_names();
    if names.is_empty() {
        return;
    }
    let (name, other) = (&names[random.below(names.len())], &names[random.below(names.len())]);
    match random.below(5) {
        0 => machine.take(name),
        1 => machine.alter(name, |bytes| bytes.truncate(random.below(bytes.len().max(1)))),
        2 => machine.alter(name, Vec::clear),
        3 => {
            let [first, second] = [name, other].map(|name| contents(machine, name));
            machine.alter(name, |bytes| *bytes = second);
            machine.alter(other, |bytes| *bytes = first);
        }
        _ => {
            let moved = contents(machine, name);
            machine.take(name);
            machine.put(other, &moved);
        }
    }
}

/// A damaged folder gives the last state or an error. It is never taken for a new one, and nobody writes to it.
#[test]
fn lost_shortened_and_swapped_files() {
    let stream = &Device::cpu().stream().unwrap();
    let (mut errors, mut unharmed) = (0, 0);
    for seed in fuzz_seeds(40) {
        let _round = Round(seed);
        let random = &mut Random(seed);
        let machine = Machine::default();
        let mut subject = Subject::<u32, u32>::new(stream);
        for _ in 0..6 {
            for _ in 0..1 + random.below(3) {
                subject.update(random);
            }
            subject.checkpoint(&machine).unwrap();
            let damaged = machine.copy();
            for _ in 0..1 + random.below(2) {
                damage(&damaged, random);
            }
            let left = damaged.all_names();
            let is_new = left.is_empty();
            match subject.find(&damaged) {
                Err(Error::DamagedFolder { missing, .. }) => {
                    assert!(!left.contains(&missing) && machine.all_names().contains(&missing), "{missing}: {left:?}");
                    errors += 1;
                }
                Err(Error::InvalidFile { what, .. }) => {
                    assert!(left.iter().any(|name| what.contains(name)), "{what}");
                    errors += 1;
                }
                Err(error) => panic!("{error}"),
                Ok(Some(found)) => {
                    assert!(saved(stream, &found) == subject.state());
                    unharmed += 1;
                }
                Ok(None) => assert!(is_new, "{left:?}"),
            }
            // A dictionary that knows nothing of this may write only where nothing is left.
            let written = Subject::<u32, u32>::new(stream).checkpoint(&damaged);
            assert_eq!(written.is_ok(), is_new, "{written:?}");
            assert!(is_new || damaged.all_names() == left);
        }
    }
    println!("{errors} damages were noticed, {unharmed} did no harm");
    assert!(errors + unharmed < 100 || errors > unharmed);
}

/// Files of a checkpoint with random changes and correct checksums: a recovery gives a consistent dictionary or an error.
#[test]
fn changed_files() {
    let small = CpuOptions { memory_limit: Some(64 << 20), ..CpuOptions::default() };
    let checked = CpuOptions { checked: true, ..small.clone() };
    for (device, few) in [(Device::cpu_with(small), 300), (Device::cpu_with(checked), 20)] {
        let stream = &device.stream().unwrap();
        let machine = Machine::default();
        let mut subject = Subject::<u32, u32>::new(stream);
        subject.change(&[1, 2, 3, 4, 5, 6, 7, 8, 9], &[], &mut Random(1));
        subject.change(&[10, 20], &[3, 4], &mut Random(2));
        subject.checkpoint(&machine).unwrap();
        let names = machine.all_names();
        let mutators = names.iter().map(|name| Mutator::new(vec![contents(&machine, name)]));
        let mutators: Vec<Mutator> =
            mutators.chain([Mutator::new(names.iter().map(|name| contents(&machine, name)).collect())]).collect();
        let (mut recovered, mut refused) = (0, 0);
        for seed in fuzz_seeds(few) {
            let _round = Round(seed);
            let random = &mut Random(seed);
            let changed = machine.copy();
            let at = random.below(names.len());
            let mutator = if random.below(4) == 0 { names.len() } else { at };
            changed.alter(&names[at], |bytes| *bytes = mutators[mutator].file(random));
            match subject.find(&changed) {
                Ok(Some(lsm)) => {
                    check(&subject, lsm, &changed);
                    recovered += 1;
                }
                Ok(None) => {}
                Err(Error::InvalidFile { .. } | Error::DamagedFolder { .. }) => refused += 1,
                Err(error) => panic!("{error}"),
            }
        }
        println!("{}: {recovered} were recovered, {refused} refused", device.kind());
    }
}

/// Checks that the answers of a dictionary agree with its contents, and that it can be updated and written.
fn check(subject: &Subject<'_, u32, u32>, mut lsm: GpuLsm<u32, u32>, machine: &Machine) {
    let stream = subject.stream;
    let all = |lsm: &GpuLsm<u32, u32>| lsm.iter(stream).unwrap().collect::<Vec<_>>();
    let mut model = all(&lsm);
    assert!(model.is_sorted_by(|a, b| a.0 < b.0));
    let keys: Vec<u32> = model.iter().map(|pair| pair.0).collect();
    let found = lsm.lookup(stream, &stream.upload(&keys).unwrap()).unwrap().to_vec(stream).unwrap();
    assert!(found.into_iter().eq(model.iter().map(|pair| Some(pair.1))));
    let key = stream.upload(&[30]).unwrap();
    lsm.insert(stream, (&key, &key)).unwrap();
    model.retain(|pair| pair.0 != 30);
    model.insert(model.partition_point(|pair| pair.0 < 30), (30, 30));
    assert!(all(&lsm) == model);
    lsm.checkpoint_to(stream, machine).unwrap();
    assert!(all(&subject.recover(machine).unwrap()) == model);
}
