//! What goes wrong around a call: lengths, streams, devices, recordings, faults, threads, memory.

use super::lies::{Liar, Lie};
use super::memory::{Answer, Memory};
use super::rows;
use super::table::{Role, Row, each};
use gpu_conformance::{is_checked, is_gpu};
use gpu_primitives::{CpuOptions, Device, Error, FaultKind, Stream, transform};
use std::cell::Cell;
use std::collections::HashMap;

/// What a call leaves behind: its answer, and the contents of its operands.
struct Outcome {
    answer: Result<Vec<u64>, Error>,
    contents: Vec<Vec<u64>>,
}

impl Outcome {
    /// Reads what a call has left behind, on `stream`.
    fn read(stream: &Stream, answer: Result<Answer, Error>, memory: &[Memory], when: &str) -> Self {
        let answer = answer.and_then(|answer| answer.read(stream));
        Self { answer, contents: contents_of(stream, memory, when) }
    }

    /// Makes a call on one stream.
    fn of(stream: &Stream, row: &Row, contents: &[Vec<u64>], when: &str) -> Self {
        let mut memory = upload(stream, row, contents);
        let answer = (row.call)(stream, &mut memory);
        Self::read(stream, answer, &memory, when)
    }
}

fn contents_of(stream: &Stream, memory: &[Memory], when: &str) -> Vec<Vec<u64>> {
    memory.iter().enumerate().map(|(i, operand)| operand.read(stream, &format!("{when}, operand {i}"))).collect()
}

fn upload(stream: &Stream, row: &Row, contents: &[Vec<u64>]) -> Vec<Memory> {
    let operands = row.operands.iter().zip(contents);
    operands.map(|(operand, contents)| Memory::new(stream, operand.kind, contents)).collect()
}

/// The number of elements.
fn len(device: &Device) -> usize {
    match (is_gpu(device), is_checked(device)) {
        (true, _) => 20_001,
        (_, true) => 97,
        _ => 257,
    }
}

/// Returns another implementation of the same calls: native bodies for a device that checks them or is a GPU, and otherwise
/// kernels that are simulated.
fn reference(device: &Device) -> Stream {
    let simulated = !is_gpu(device) && !is_checked(device);
    Device::cpu_with(CpuOptions { simulated, ..CpuOptions::default() }).stream().unwrap()
}

/// Checks that a call did what the reference does with the same operands: the same answer, or the same error and nothing else.
#[track_caller]
fn check(row: &Row, before: &[Vec<u64>], found: &Outcome, expected: &Outcome, when: &str) {
    match (&found.answer, &expected.answer) {
        (Ok(found), Ok(expected)) => assert!(found == expected, "{when}: another answer"),
        (Err(found), Err(expected)) if is_same(found, expected) => {}
        (found, expected) => panic!("{when}: {:?} instead of {:?}", found.as_ref().err(), expected.as_ref().err()),
    }
    for (i, operand) in row.operands.iter().enumerate() {
        match (operand.role, &found.answer) {
            (Role::Spent, _) => {}
            (Role::Written, Ok(_)) => assert!(found.contents[i] == expected.contents[i], "{when}: wrong operand {i}"),
            _ => assert!(found.contents[i] == before[i], "{when}: operand {i} has changed"),
        }
    }
}

fn is_same(a: &Error, b: &Error) -> bool {
    std::mem::discriminant(a) == std::mem::discriminant(b)
}

/// Operands that are one element too short, one too long, or empty. A call takes them, or says that their lengths do not fit.
pub fn wrong_lengths(device: &Device) {
    let (stream, reference) = (device.stream().unwrap(), reference(device));
    let refused = Cell::new(0);
    each(&rows::all(), |row| {
        let right = row.contents(len(device));
        let [found, expected] = [&stream, &reference].map(|stream| Outcome::of(stream, row, &right, row.name));
        assert!(found.answer.is_ok(), "{}: {:?}", row.name, found.answer);
        check(row, &right, &found, &expected, row.name);
        for operand in 0..right.len() {
            let mut long = right[operand].clone();
            long.push(*long.last().unwrap_or(&0));
            let short = long[..right[operand].len() - 1].to_vec();
            for wrong in [short, long, vec![]] {
                let when = format!("{} with {} elements of operand {operand}", row.name, wrong.len());
                let mut contents = right.clone();
                contents[operand] = wrong;
                let [found, expected] = [&stream, &reference].map(|stream| Outcome::of(stream, row, &contents, &when));
                if let Err(error) = &found.answer {
                    assert!(is_about_lengths(error), "{when}: {error}");
                    refused.update(|count| count + 1);
                }
                check(row, &contents, &found, &expected, &when);
            }
        }
    });
    assert!(refused.get() > 200, "only {} calls refused lengths that do not fit", refused.get());
}

/// Returns whether an error tells that lengths do not fit together.
fn is_about_lengths(error: &Error) -> bool {
    match error {
        // Ranks, and fractions, of an input that is too short.
        Error::InvalidOption { what, .. } => what.contains("rank") || what.contains("number of elements"),
        _ => matches!(error, Error::LengthMismatch { .. } | Error::InvalidOffsets { .. } | Error::TooMany { .. }),
    }
}

/// Operands that were made on several streams, a call on another one, and a read on yet another one.
pub fn operands_of_other_streams(device: &Device) {
    let [a, b, c, d] = [(); 4].map(|()| device.stream().unwrap());
    let reference = reference(device);
    each(&rows::all(), |row| {
        let contents = row.contents(len(device));
        let operands = row.operands.iter().zip(&contents).zip([&a, &b].into_iter().cycle());
        let mut memory: Vec<Memory> =
            operands.map(|((operand, contents), home)| Memory::new(home, operand.kind, contents)).collect();
        let answer = (row.call)(&c, &mut memory);
        let found = Outcome::read(&d, answer, &memory, row.name);
        check(row, &contents, &found, &Outcome::of(&reference, row, &contents, row.name), row.name);
    });
}

/// One operand after the other of another device, and then the stream.
pub fn operands_of_another_device(device: &Device) {
    let stream = device.stream().unwrap();
    let elsewhere = Device::cpu_with(CpuOptions { checked: is_checked(device), ..CpuOptions::default() });
    let elsewhere = elsewhere.stream().unwrap();
    each(&rows::all(), |row| {
        let contents = row.contents(40);
        for stranger in 0..=contents.len() {
            let when = format!("{} with a stranger at {stranger}", row.name);
            let home = |i: usize| if i == stranger { &elsewhere } else { &stream };
            let operands = row.operands.iter().zip(&contents).enumerate();
            let mut memory: Vec<Memory> =
                operands.map(|(i, (operand, contents))| Memory::new(home(i), operand.kind, contents)).collect();
            let answer = (row.call)(home(contents.len()), &mut memory).map(drop);
            assert!(matches!(answer, Err(Error::WrongDevice { .. })), "{when}: {answer:?}");
            for (i, operand) in memory.iter().enumerate() {
                let is_same = row.operands[i].role == Role::Spent || operand.read(home(i), &when) == contents[i];
                assert!(is_same, "{when}: operand {i} has changed");
            }
        }
    });
}

/// A call is recorded, and does nothing until the graph is launched, or it cannot be recorded and does nothing at all.
pub fn calls_in_a_recording(device: &Device) {
    let (stream, reference) = (device.stream().unwrap(), reference(device));
    let recorded = Cell::new(0);
    each(&rows::all(), |row| {
        let contents = row.contents(len(device));
        let mut memory = upload(&stream, row, &contents);
        let captured = stream.capture(|recorder| (row.call)(recorder, &mut memory));
        assert!(contents_of(&stream, &memory, row.name) == contents, "{}: it ran while it was recorded", row.name);
        let (graph, answer) = match captured {
            Ok((graph, answer)) => (Some(graph), Ok(answer)),
            Err(Error::NotRecordable { .. }) => (None, (row.call)(&stream, &mut memory)),
            Err(error) => panic!("{}: {error}", row.name),
        };
        if let Some(mut graph) = graph {
            recorded.update(|count| count + 1);
            // SAFETY: the operands still exist, and are used only on this stream.
            unsafe { graph.launch(&stream).unwrap() };
        }
        let found = Outcome::read(&stream, answer, &memory, row.name);
        check(row, &contents, &found, &Outcome::of(&reference, row, &contents, row.name), row.name);
    });
    assert!(recorded.get() > 60, "only {} calls can be recorded", recorded.get());
}

/// Each call comes after a kernel that has failed, on the same stream or on another one.
pub fn calls_after_a_fault(device: &Device) {
    if is_gpu(device) {
        return; // no operator can fail there
    }
    let reference = reference(device);
    for is_same in [true, false] {
        // The checked device loses a stream whose work faults in a queue, and it has queues if it has two streams.
        let device = if is_checked(device) { Device::cpu_checked() } else { device.clone() };
        let stream = device.stream().unwrap();
        each(&rows::all(), |row| {
            let failing = &if is_same { stream.clone() } else { device.stream().unwrap() };
            let contents = row.contents(len(&device));
            let mut memory = upload(&stream, row, &contents);
            let mut data = failing.zeroed::<u32>(100).unwrap();
            let failed = transform::map_in_place(failing, &mut data, Liar::new(Lie::Panic));
            let failed = failed.and_then(|()| failing.synchronize());
            let Err(Error::KernelFault(fault)) = failed else { panic!("{}: {failed:?}", row.name) };
            assert!(matches!(fault.kind, FaultKind::Panic { .. }), "{}: {fault}", row.name);
            let answer = (row.call)(&stream, &mut memory);
            let found = Outcome::read(&stream, answer, &memory, row.name);
            check(row, &contents, &found, &Outcome::of(&reference, row, &contents, row.name), row.name);
        });
    }
}

/// Two threads make all calls, in opposite orders: on one stream, and on one stream each.
pub fn calls_from_two_threads(device: &Device) {
    let [a, b] = [(); 2].map(|()| device.stream().unwrap());
    let expected = |row: &Row| Outcome::of(&reference(device), row, &row.contents(len(device)), row.name);
    let expected: Vec<Outcome> = rows::all().iter().map(expected).collect();
    let expected: HashMap<&str, &Outcome> = rows::all().iter().map(|row| row.name).zip(&expected).collect();
    for streams in [[&a, &a], [&a, &b]] {
        std::thread::scope(|scope| {
            for (thread, stream) in streams.into_iter().enumerate() {
                let expected = &expected;
                scope.spawn(move || {
                    let mut rows = rows::all();
                    if thread == 1 {
                        rows.reverse();
                    }
                    each(&rows, |row| {
                        let contents = row.contents(len(stream.device()));
                        let found = Outcome::of(stream, row, &contents, row.name);
                        check(row, &contents, &found, expected[row.name], row.name);
                    });
                });
            }
        });
    }
}

/// Each allocation of a call fails in turn. Its operands stay as they are, and the next call works.
pub fn calls_without_memory(device: &Device) {
    let (home, reference) = (device.stream().unwrap(), reference(device));
    let failures = Cell::new(0);
    each(&rows::all(), |row| {
        let contents = row.contents(len(device));
        let expected = Outcome::of(&reference, row, &contents, row.name);
        for successes in 0.. {
            let when = format!("{} after {successes} allocations", row.name);
            let mut memory = upload(&home, row, &contents);
            home.synchronize().unwrap();
            // A new stream: a used one would already have its scratch memory.
            let stream = device.stream().unwrap();
            stream.fail_allocation_after(Some(successes));
            let answer = (row.call)(&stream, &mut memory);
            stream.fail_allocation_after(None);
            if answer.is_ok() {
                check(row, &contents, &Outcome::read(&stream, answer, &memory, &when), &expected, &when);
                break;
            }
            failures.update(|count| count + 1);
            let Outcome { answer, contents: left } = Outcome::read(&stream, answer, &memory, &when);
            assert!(matches!(answer, Err(Error::OutOfMemory { .. })), "{when}: {answer:?}");
            for (i, operand) in row.operands.iter().enumerate() {
                assert!(operand.role == Role::Spent || left[i] == contents[i], "{when}: operand {i} has changed");
            }
            check(row, &contents, &Outcome::of(&stream, row, &contents, &when), &expected, &when);
        }
    });
    assert!(failures.get() > 50, "only {} allocations failed", failures.get());
}
