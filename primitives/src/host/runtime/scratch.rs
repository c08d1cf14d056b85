//! Memory that the kernels of a stream keep from launch to launch. The models in `primitives/models` check this file over
//! all interleavings.

use super::sync::{Mutex, lock};

/// What scratch memory needs of a stream.
pub(crate) trait Store {
    type Address: Copy;
    type Error;

    /// Allocates words that are zero for later work of the stream.
    fn allocate(&self, words: usize) -> Result<Self::Address, Self::Error>;

    /// Zeroes words in the stream's order. They are scratch memory of the stream.
    fn zero(&self, address: Self::Address, words: usize) -> Result<(), Self::Error>;
}

/// Scratch memory that grows.
pub(crate) struct Scratch<A> {
    current: Mutex<Current<A>>,
}

struct Current<A> {
    address: Option<A>,
    words: usize,
    /// The number of calls since the words were last zeroed.
    calls: u32,
}

impl<A: Copy> Scratch<A> {
    /// Kernels count launches in 32 bits, and the count must not wrap around: see `lookback_words`.
    pub(crate) const CALLS_BEFORE_ZEROING: u32 = 1 << 31;
    pub(crate) const LEAST_WORDS: usize = 1024;

    pub(crate) fn none() -> Self {
        Self { current: Mutex::new(Current { address: None, words: 0, calls: 0 }) }
    }

    /// Returns the address of at least this many words; `None` only for no words. They keep what kernels wrote there,
    /// until larger ones replace them, which are zero. The caller keeps kernels of the stream from running meanwhile, or
    /// the stream orders them.
    pub(crate) fn words<S: Store<Address = A>>(
        &self,
        store: &S,
        buffers: &Buffers<A>,
        words: usize,
    ) -> Result<Option<A>, S::Error> {
        let mut current = lock(&self.current);
        if current.words < words {
            let words = words.max(2 * current.words).max(Self::LEAST_WORDS);
            let address = store.allocate(words)?;
            buffers.add(address, words);
            *current = Current { address: Some(address), words, calls: 0 };
        } else if current.calls == Self::CALLS_BEFORE_ZEROING {
            if let Some(address) = current.address {
                store.zero(address, current.words)?;
            }
            current.calls = 0;
        }
        current.calls += 1;
        Ok(current.address)
    }

    /// Forgets the memory, which its owner frees.
    pub(crate) fn forget(&self) {
        *lock(&self.current) = Current { address: None, words: 0, calls: 0 };
    }

    /// For tests: sets the number of calls, and returns what it was.
    #[cfg(test)]
    pub(crate) fn set_calls(&self, calls: u32) -> u32 {
        core::mem::replace(&mut lock(&self.current).calls, calls)
    }
}

/// All scratch memory of a stream, as addresses and numbers of words. Outgrown memory is kept as long as the stream:
/// another thread may be about to launch a kernel with it. Sizes double, so together it is no larger than the memory in
/// use.
pub(crate) struct Buffers<A>(Mutex<Vec<(A, usize)>>);

impl<A: Copy> Buffers<A> {
    pub(crate) fn none() -> Self {
        Self(Mutex::new(Vec::new()))
    }

    fn add(&self, address: A, words: usize) {
        lock(&self.0).push((address, words));
    }

    pub(crate) fn all(&self) -> Vec<(A, usize)> {
        lock(&self.0).clone()
    }

    /// Runs a kernel. If it stops half-way, zeroes all scratch memory, since it leaves its tickets and tags behind. The
    /// caller keeps other kernels of the stream from running until this returns: the next one must not find them.
    pub(crate) fn clear_after_fault<E>(
        &self,
        kernel: impl FnOnce() -> Result<(), E>,
        zero: impl Fn(A, usize),
    ) -> Result<(), E> {
        kernel().inspect_err(|_| self.all().into_iter().for_each(|(address, words)| zero(address, words)))
    }

    /// Returns all memory and forgets it.
    pub(crate) fn take(&self) -> Vec<(A, usize)> {
        core::mem::take(&mut lock(&self.0))
    }
}
