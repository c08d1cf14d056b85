//! The scratch memory of a stream that two threads use, and whose kernels may stop half-way.

use crate::scratch::{Buffers, Scratch, Store};
use crate::sync::{Arc, Mutex, lock};
use loom::thread;
use std::convert::Infallible;

/// A stream of the CPU device. Its memory is word 0 of each buffer, which is 0 when no kernel runs.
struct Stream {
    /// RegisterRepr while a kernel runs.
    order: Mutex<()>,
    words: Mutex<Vec<u64>>,
    scratch: Scratch<usize>,
    buffers: Buffers<usize>,
    /// Whether kernels wait in a queue: then the queue orders the growth of the memory, too.
    is_queued: bool,
    is_cleared_late: bool,
}

#[derive(Debug, PartialEq, Eq)]
enum Fault {
    Panic,
    /// The kernel has met what another one left behind.
    Spoiled,
}

impl Store for Stream {
    type Address = usize;
    type Error = Infallible;

    fn allocate(&self, _: usize) -> Result<usize, Infallible> {
        let _order = self.is_queued.then(|| lock(&self.order));
        let mut words = lock(&self.words);
        words.push(0);
        Ok(words.len() - 1)
    }

    fn zero(&self, address: usize, _: usize) -> Result<(), Infallible> {
        let _order = self.is_queued.then(|| lock(&self.order));
        lock(&self.words)[address] = 0;
        Ok(())
    }
}

impl Stream {
    fn new(is_queued: bool, is_cleared_late: bool) -> Self {
        let (order, words) = (Mutex::new(()), Mutex::default());
        Self { order, words, scratch: Scratch::none(), buffers: Buffers::none(), is_queued, is_cleared_late }
    }

    /// `Stream::lookback_words`.
    fn lookback_words(&self, words: usize) -> usize {
        let _order = (!self.is_queued).then(|| lock(&self.order));
        let Ok(address) = self.scratch.words(self, &self.buffers, words);
        address.expect("there are words")
    }

    /// Runs a kernel that takes a ticket and gives it back, unless it panics in between.
    fn launch(&self, address: usize, panics: bool) -> Result<(), Fault> {
        let kernel = || {
            if std::mem::replace(&mut lock(&self.words)[address], 1) != 0 {
                return Err(Fault::Spoiled);
            }
            if panics {
                return Err(Fault::Panic);
            }
            if std::mem::replace(&mut lock(&self.words)[address], 0) != 1 {
                return Err(Fault::Spoiled);
            }
            Ok(())
        };
        let zero = |address: usize, _| lock(&self.words)[address] = 0;
        if self.is_cleared_late {
            let result = {
                let _order = lock(&self.order);
                kernel()
            };
            return self.buffers.clear_after_fault(|| result, zero);
        }
        let _order = lock(&self.order);
        self.buffers.clear_after_fault(kernel, zero)
    }
}

/// One thread's kernel panics. The other one's kernels, one with the same memory and one with more, must not notice.
fn is_spoiled(is_queued: bool, is_cleared_late: bool) -> bool {
    let is_spoiled = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let found = std::sync::Arc::clone(&is_spoiled);
    loom::model(move || {
        let stream = Arc::new(Stream::new(is_queued, is_cleared_late));
        let other = thread::spawn({
            let stream = Arc::clone(&stream);
            move || {
                let address = stream.lookback_words(1);
                stream.launch(address, true)
            }
        });
        let mut results = Vec::new();
        for words in [1, 2 * Scratch::<usize>::LEAST_WORDS] {
            let address = stream.lookback_words(words);
            results.push(stream.launch(address, false));
        }
        let is_right = other.join().unwrap() == Err(Fault::Panic) && results.iter().all(Result::is_ok);
        is_spoiled.fetch_or(!is_right, std::sync::atomic::Ordering::Relaxed);
        assert!(is_cleared_late || stream.buffers.take().len() <= 2, "it grew once");
        stream.scratch.forget();
    });
    found.load(std::sync::atomic::Ordering::Relaxed)
}

#[test]
fn a_fault_spoils_nothing_of_another_thread() {
    assert!(!is_spoiled(false, false));
    assert!(!is_spoiled(true, false));
}

/// The mistake: the memory is cleared when the next kernel may already run.
#[test]
fn planted_memory_that_is_cleared_late() {
    assert!(is_spoiled(false, true));
    assert!(is_spoiled(true, true));
}

/// Words are zeroed before the number of calls comes around, and not while a kernel runs.
#[test]
fn words_are_zeroed_between_kernels() {
    loom::model(|| {
        let stream = Arc::new(Stream::new(false, false));
        let address = stream.lookback_words(1);
        stream.scratch.set_calls(Scratch::<usize>::CALLS_BEFORE_ZEROING);
        let other = thread::spawn({
            let stream = Arc::clone(&stream);
            move || stream.launch(address, false)
        });
        let again = stream.lookback_words(1);
        assert_eq!(stream.launch(again, false), Ok(()));
        assert_eq!(other.join().unwrap(), Ok(()));
        assert_eq!(stream.scratch.set_calls(0), 1);
    });
}
