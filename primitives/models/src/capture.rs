//! A recording: its memory is allocated in the order of another stream, and it ends while other threads work.

use crate::device::{Refused, is_wrong};
use crate::order::Use;
use crate::sync::Arc;
use loom::thread;

/// A thread uses memory of the recording on another stream, while the recording ends. Then the memory is freed.
fn memory_of_a_recording(knows_parent: bool) -> bool {
    is_wrong(false, move |device| {
        let [parent, other] = [(); 2].map(|()| device.lane());
        let recorder = if knows_parent { device.recorder(&parent) } else { device.lane() };
        let memory = Arc::new(device.memory(&recorder, &parent));
        let user = thread::spawn({
            let (memory, other) = (Arc::clone(&memory), Arc::clone(&other));
            move || memory.access(&other, Use::Write, 0..2)
        });
        recorder.stop_recording();
        user.join().unwrap();
        memory.access(&recorder, Use::Part, 0..1);
        Arc::try_unwrap(memory).ok().unwrap().free();
    })
}

#[test]
fn memory_of_a_recording_is_used_elsewhere() {
    assert!(!memory_of_a_recording(true));
    assert!(memory_of_a_recording(false), "the mistake: nothing waits for the allocation");
}

/// The memory is dropped by another thread, while the recording ends.
#[test]
fn memory_of_a_recording_is_dropped_elsewhere() {
    assert!(!is_wrong(false, |device| {
        let [parent, other] = [(); 2].map(|()| device.lane());
        let recorder = device.recorder(&parent);
        let memory = device.memory(&recorder, &parent);
        let user = thread::spawn(move || {
            memory.access(&other, Use::Write, 0..2);
            memory.leave()
        });
        recorder.stop_recording();
        // While the recording lasts, it keeps the memory, for its graph. Afterwards it is freed.
        device.reuse(user.join().unwrap());
    }));
}

/// Another thread has a clone of the recorder. While the recording lasts, its work is refused; afterwards it is ordered.
/// `asks_before` is the mistake: it may ask for the memory while the recording lasts, and submits its work later.
fn other_threads(asks_before: bool) -> bool {
    is_wrong(false, move |device| {
        let [parent, writer] = [(); 2].map(|()| device.lane());
        let recorder = device.recorder(&parent);
        let memory = device.memory(&parent, &parent);
        memory.access(&writer, Use::Write, 0..2);
        if asks_before {
            memory.touch(&recorder, Use::Write).unwrap();
        }
        let memory = Arc::new(memory);
        let user = thread::spawn({
            let (memory, recorder) = (Arc::clone(&memory), Arc::clone(&recorder));
            move || match memory.touch(&recorder, Use::Write) {
                _ if asks_before => memory.submit(&recorder, 0..2, true),
                Ok(()) => memory.submit(&recorder, 0..2, true),
                Err(refused) => assert_eq!(refused, Refused::OtherThreadRecords),
            }
        });
        recorder.stop_recording();
        user.join().unwrap();
        memory.access(&parent, Use::Read, 0..2);
        Arc::try_unwrap(memory).ok().unwrap().free();
    })
}

#[test]
fn a_recorder_in_another_thread() {
    assert!(!other_threads(false));
    assert!(other_threads(true));
}
