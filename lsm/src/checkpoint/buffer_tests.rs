//! Checkpoints of a dictionary whose buffer is not empty.

use super::tests::Subject;
use crate::Options;
use gpu_dictionary_conformance::{Failure, Machine, Random};
use gpu_primitives::Device;

/// Kills a checkpoint at every operation of the disk, and makes every operation fail, each time with operations in the buffer. The
/// folder holds the last state or the new one. The process that goes on has lost nothing.
#[test]
fn every_operation_fails_with_a_buffer() {
    let stream = &Device::cpu().stream().unwrap();
    for failure in [Failure::Killed, Failure::DiskFull] {
        for after in 0.. {
            let random = &mut Random(after as u64);
            let machine = Machine::default();
            let mut subject = Subject::<u32, u32>::with_options(stream, Options::new().buffer(100));
            subject.change(&[1, 2, 3], &[], random);
            subject.checkpoint(&machine).unwrap();
            let old = subject.contents();
            subject.change(&[3, 4], &[1], random);
            subject.change(&[4, 5, 6], &[2], random);
            assert!(subject.buffered() > 0);
            machine.fail(Some((after, failure)));
            let is_finished = subject.checkpoint(&machine).is_ok();
            machine.fail(None);

            let when = format!("{failure:?} after {after}");
            let new = subject.contents();
            let found: Vec<(u32, u32)> = subject.recover(&machine).unwrap().iter(stream).unwrap().collect();
            assert!(found == new || !is_finished && found == old, "{when}");
            subject.checkpoint(&machine).unwrap();
            assert!(subject.recover(&machine).unwrap().iter(stream).unwrap().eq(new), "{when}");
            if is_finished {
                assert!(after > 4, "{when}: a checkpoint has several operations");
                break;
            }
        }
    }
}
