//! Streams that share memory: uses are noted first and submitted later, from two threads.

use crate::device::{Device, Memory, is_wrong};
use crate::order::Use;
use crate::sync::Arc;
use loom::thread;

/// Which stream used the whole memory last.
#[derive(Clone, Copy)]
enum Last {
    Home,
    First,
    Other,
}

const LAST: [Last; 3] = [Last::Home, Last::First, Last::Other];

/// Takes the memory back from the threads.
fn alone(memory: Arc<Memory>) -> Memory {
    Arc::try_unwrap(memory).ok().expect("the threads have ended")
}

/// Two threads write the halves of the memory, each on its stream, which it gives work twice. Then another stream reads
/// both halves, unless it has written them before, and the memory is freed.
fn halves(device: &Device, last: Last, how: Use) {
    let [home, first, second, reader] = [(); 4].map(|()| device.lane());
    let memory = Arc::new(device.memory(&home, &home));
    match last {
        Last::Home => {}
        Last::First => memory.access(&first, Use::Write, 0..2),
        Last::Other => memory.access(&reader, Use::Write, 0..2),
    }
    let write = |lane: &Arc<_>, half: usize| {
        let (memory, lane) = (Arc::clone(&memory), Arc::clone(lane));
        move || {
            memory.touch(&lane, how).unwrap();
            memory.submit(&lane, half..half + 1, true);
            memory.submit(&lane, half..half + 1, true);
        }
    };
    let other = thread::spawn(write(&second, 1));
    write(&first, 0)();
    other.join().unwrap();
    if !matches!(last, Last::Other) {
        memory.access(&reader, Use::Read, 0..2);
    }
    alone(memory).free();
}

#[test]
fn halves_of_one_vector() {
    for last in LAST {
        assert!(!is_wrong(false, move |device| halves(device, last, Use::Part)));
    }
}

/// The mistake: the write of a half counts as one of the whole, so that the other stream is forgotten, although its work is
/// still to come.
#[test]
fn planted_halves_that_count_as_the_whole() {
    for last in LAST {
        assert!(is_wrong(false, move |device| halves(device, last, Use::Write)));
    }
}

/// As above, but the driver refuses every wait on the device, so the host waits.
#[test]
fn halves_if_the_driver_fails() {
    assert!(!is_wrong(true, |device| halves(device, Last::First, Use::Part)));
    assert!(is_wrong(true, |device| halves(device, Last::First, Use::Write)));
}

/// A thread reads its half, while another one writes the other half. Then the stream that has read reads the other half.
fn read_and_write(device: &Device, last: Last, how: Use) {
    let [home, first, second] = [(); 3].map(|()| device.lane());
    let memory = Arc::new(device.memory(&home, &home));
    match last {
        Last::Home => {}
        Last::First => memory.access(&first, Use::Write, 0..2),
        Last::Other => memory.access(&second, Use::Write, 0..2),
    }
    let other = thread::spawn({
        let (memory, second) = (Arc::clone(&memory), Arc::clone(&second));
        move || {
            memory.touch(&second, how).unwrap();
            memory.submit(&second, 1..2, false);
        }
    });
    memory.access(&first, Use::Part, 0..1);
    other.join().unwrap();
    memory.touch(&second, how).unwrap();
    memory.submit(&second, 0..1, false);
    memory.access(&first, Use::Part, 1..2);
    memory.access(&home, Use::Part, 0..2);
    alone(memory).free();
}

#[test]
fn parts_are_read_and_written() {
    for last in LAST {
        assert!(!is_wrong(false, move |device| read_and_write(device, last, Use::Part)));
    }
    // The mistake: a read of a part counts as one of the whole, which need not be ordered twice.
    assert!(is_wrong(false, |device| read_and_write(device, Last::First, Use::Read)));
}

/// Two threads read the whole, and one of them does not use what it asked for. Then it is written and freed.
#[test]
fn readers_and_a_writer() {
    assert!(!is_wrong(false, |device| {
        let [home, first, second, writer] = [(); 4].map(|()| device.lane());
        let memory = Arc::new(device.memory(&home, &home));
        let other = thread::spawn({
            let (memory, second) = (Arc::clone(&memory), Arc::clone(&second));
            move || memory.touch(&second, Use::Read).unwrap()
        });
        memory.access(&first, Use::Read, 0..2);
        memory.access(&home, Use::Read, 0..2);
        other.join().unwrap();
        memory.access(&writer, Use::Write, 0..2);
        memory.access(&first, Use::Read, 0..2);
        alone(memory).free();
    }));
}

/// A thread drops its stream right after its last work, while another one makes the memory forget streams that are gone.
fn streams_that_go(device: &Device, is_home_last: bool) {
    let [home, writer, reader, other] = [(); 4].map(|()| device.lane());
    let memory = Arc::new(device.memory(&home, &home));
    if !is_home_last {
        memory.access(&writer, Use::Write, 0..2);
    }
    // As many as are remembered.
    let lanes: Vec<_> = (0..8).map(|_| device.lane()).collect();
    lanes.iter().for_each(|lane| memory.access(lane, Use::Part, 0..1));
    lanes[..7].iter().for_each(|lane| lane.close());
    if is_home_last {
        // Now the home lane follows all others, and must notice that one of them goes on.
        memory.access(&home, Use::Part, 1..2);
    }
    let thread = thread::spawn({
        let (memory, lane) = (Arc::clone(&memory), Arc::clone(&lanes[7]));
        move || {
            memory.submit(&lane, 0..1, true);
            lane.close();
        }
    });
    memory.access(&other, Use::Part, 1..2);
    thread.join().unwrap();
    memory.access(&reader, Use::Read, 0..2);
    alone(memory).free();
}

#[test]
fn streams_that_are_gone() {
    for is_home_last in [false, true] {
        assert!(!is_wrong(false, move |device| streams_that_go(device, is_home_last)));
    }
}

/// Work that the caller orders keeps the memory until it is done.
#[test]
fn unordered_work_comes_before_the_end() {
    let scenario = |device: &Device, is_noted: bool| {
        let [home, stream] = [(); 2].map(|()| device.lane());
        // Allocated where it is used, so that the caller has ordered the two.
        let memory = Arc::new(device.memory(&home, &stream));
        let other = thread::spawn({
            let (memory, stream) = (Arc::clone(&memory), Arc::clone(&stream));
            move || {
                if is_noted {
                    memory.note(&stream).unwrap();
                }
                memory.submit(&stream, 0..2, true);
            }
        });
        other.join().unwrap();
        alone(memory).free();
    };
    assert!(!is_wrong(false, move |device| scenario(device, true)));
    assert!(is_wrong(false, move |device| scenario(device, false)), "the mistake: it is not noted");
}
