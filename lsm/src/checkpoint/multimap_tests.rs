//! Checkpoints of multimaps, and folders whose bytes are written out by hand.

use crate::budget::Budget;
use crate::{GpuLsm, GpuMultimap, Options};
use gpu_dictionary::Durable;
use gpu_dictionary::file::write_section;
use gpu_dictionary_conformance::{Failure, Machine, OwnFolder};
use gpu_primitives::{Device, Error, Stream};
use std::io::ErrorKind;

type Edges = GpuMultimap<u32, u32>;

fn options() -> Options {
    Options::new().batch_size(4)
}

fn insert(stream: &Stream, edges: &mut Edges, pairs: &[(u32, u32)]) {
    let (keys, values): (Vec<u32>, Vec<u32>) = pairs.iter().copied().unzip();
    edges.insert(stream, (&stream.upload(&keys).unwrap(), &stream.upload(&values).unwrap())).unwrap();
}

fn all(stream: &Stream, edges: &Edges) -> Vec<(u32, u32)> {
    edges.export(stream).unwrap().to_vec(stream).unwrap()
}

#[test]
fn a_history() {
    let stream = &Device::cpu().stream().unwrap();
    let own = OwnFolder::new();
    let folder = own.path();
    let not_found = Edges::recover(stream, folder);
    assert!(matches!(&not_found, Err(Error::Io(error)) if error.kind() == ErrorKind::NotFound), "{not_found:?}");
    let mut edges = Edges::recover_or_new(stream, folder, options()).unwrap();
    edges.checkpoint(stream, folder).unwrap();
    for step in 0..8 {
        match step {
            3 => edges.delete(stream, &stream.upload(&[1]).unwrap()).unwrap(),
            5 => edges.clear(stream).unwrap(),
            _ => insert(stream, &mut edges, &[(step, 1), (1, step), (1, step), (9, 9)]),
        }
        edges.checkpoint(stream, folder).unwrap();
        let again = Edges::recover(stream, folder).unwrap();
        assert_eq!(all(stream, &again), all(stream, &edges), "step {step}");
        if step % 2 == 0 {
            edges = again;
        }
    }
    assert!(all(stream, &edges).len() > 4);
    // The batch size stays; wrong options are noticed.
    let recovered = Edges::recover_or_new(stream, folder, options().batch_size(99)).unwrap();
    assert_eq!(recovered.lsm.any.batch_size, 4);
    assert!(matches!(Edges::recover_or_new(stream, folder, options().batch_size(0)), Err(Error::InvalidOption { .. })));

    // Snapshots are checkpoints of the multimap, and clones are not.
    let before = edges.snapshot();
    insert(stream, &mut edges, &[(2, 2)]);
    before.checkpoint(stream, folder).unwrap();
    edges.checkpoint(stream, folder).unwrap();
    assert!(matches!(before.checkpoint(stream, folder), Err(Error::NewerCheckpoint { .. })));
    let refused = edges.clone().checkpoint(stream, folder);
    assert!(matches!(&refused, Err(Error::Io(error)) if error.kind() == ErrorKind::AlreadyExists), "{refused:?}");
    // An LSM does not take the levels for its own.
    let lsm = GpuLsm::<u32, u32>::recover(stream, folder);
    assert!(matches!(&lsm, Err(Error::InvalidFile { what, .. }) if what.contains("of a multimap, but")), "{lsm:?}");
}

/// Kills a checkpoint at every operation, with and without a loss of power.
#[test]
fn every_operation_is_killed() {
    let stream = &Device::cpu().stream().unwrap();
    let random = &mut gpu_dictionary_conformance::Random(1);
    let machine = Machine::default();
    let mut edges = Edges::new(stream, options()).unwrap();
    let found = |machine: &Machine| {
        Edges::recover_from(stream, machine, Budget::default()).unwrap().map(|edges| all(stream, &edges))
    };
    let mut last = None;
    for round in 0..3 {
        insert(stream, &mut edges, &[(1, round), (2, round), (1, round), (3, 3), (1, 7)]);
        let new = all(stream, &edges);
        let mut is_finished = false;
        for after in 0.. {
            let killed = machine.copy();
            killed.fail(Some((after, Failure::Killed)));
            is_finished = edges.checkpoint_to(stream, &killed).is_ok();
            let operations = killed.operations() - machine.operations();
            killed.fail(None);
            for machine in [killed.copy(), killed.after_power_loss(random), killed.after_power_loss(random)] {
                let state = found(&machine);
                assert!(state.as_ref() == Some(&new) || !is_finished && state == last, "round {round}, {after}");
            }
            edges.checkpoint_to(stream, &killed).unwrap();
            assert_eq!(found(&killed).as_ref(), Some(&new));
            if is_finished && operations <= after {
                break;
            }
        }
        assert!(is_finished);
        edges.checkpoint_to(stream, &machine).unwrap();
        last = Some(new);
    }
}

/// The bytes of a folder, as all versions since version 3 write them.
#[test]
fn folders_written_by_hand() {
    let stream = &Device::cpu().stream().unwrap();
    let machine = Machine::default();
    let file = |sections: &[&[u8]]| {
        let mut bytes = Vec::new();
        sections.iter().for_each(|section| write_section(&mut bytes, section).unwrap());
        bytes
    };
    let id = 0x0123_u128;
    let types = [1, 4, 1, 4];
    let numbers = |numbers: &[u64]| numbers.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<u8>>();
    let words = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
    let manifest = [
        &b"gpu-man\n\x03\0\0\0"[..],
        &types,
        &7_u128.to_le_bytes(),
        &8_u128.to_le_bytes(),
        &numbers(&[5]),
        &[1, 1],
        &numbers(&[4, 1, 1]),
        &words(&[0, 1]),
        &numbers(&[3]),
        &id.to_le_bytes(),
    ];
    let level = [&b"gpu-lvl\n\x02\0\0\0"[..], &types, &id.to_le_bytes(), &words(&[1]), &numbers(&[3])].concat();
    machine.put("manifest", &file(&[&manifest.concat()]));
    let arrays = [words(&[10, 20, 30]), words(&[1, 2, 3]), words(&[0b010])];
    machine.put(&format!("level-{id:032x}"), &file(&[&level, &arrays[0], &arrays[1], &arrays[2]]));
    let mut lsm = GpuLsm::<u32, u32>::recover_from(stream, &machine, None).unwrap().unwrap();
    assert_eq!(lsm.iter(stream).unwrap().collect::<Vec<_>>(), [(10, 1), (30, 3)]);
    assert_eq!(lsm.stats(stream).unwrap().batch_size, 4);

    // It is continued, and the level is not written again.
    let keys = stream.upload(&[40, 50, 60, 70]).unwrap();
    let mut before = Vec::new();
    machine.alter(&format!("level-{id:032x}"), |bytes| before.clone_from(bytes));
    lsm.checkpoint_to(stream, &machine).unwrap();
    machine.alter(&format!("level-{id:032x}"), |bytes| assert!(*bytes == before));
    lsm.insert(stream, (&keys, &keys)).unwrap();
    lsm.checkpoint_to(stream, &machine).unwrap();
    let again = GpuLsm::<u32, u32>::recover_from(stream, &machine, None).unwrap().unwrap();
    assert_eq!(again.len(stream).unwrap(), 6);
}
