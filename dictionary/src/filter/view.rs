//! A filter inside kernels.

use super::hash::{Shape, WORDS, factor, fold, mix};
use bytemuck::Pod;
use core::marker::PhantomData;
use gpu_primitives::arch::Cache;
use gpu_primitives::kernel::{Buffer, Param, ReadParam};
use gpu_primitives::view::Global;

/// A filter as an argument of your own kernels, whose threads call [`contains`](Self::contains).
#[repr(C)]
#[derive(Debug)]
pub struct FilterView<K> {
    words: Global<u64>,
    shape: Shape,
    keys: PhantomData<K>,
}

// Derived impls would require `K: Copy`.
impl<K> Clone for FilterView<K> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}
impl<K> Copy for FilterView<K> {}

// SAFETY: a `repr(C)` struct of parameters.
unsafe impl<K: 'static> Param for FilterView<K> {
    fn buffers(&self, name: &'static str, visit: &mut dyn FnMut(&'static str, Buffer)) {
        self.words.buffers(name, visit);
    }
}

// SAFETY: the type offers no way to write.
unsafe impl<K: 'static> ReadParam for FilterView<K> {}

impl<K> FilterView<K> {
    /// Returns the filter in these words.
    ///
    /// # Safety
    /// The words hold all blocks of the shape, which has at least one.
    #[cfg(not(target_arch = "nvptx64"))]
    pub(crate) const unsafe fn new(words: Global<u64>, shape: Shape) -> Self {
        Self { words, shape, keys: PhantomData }
    }

    #[inline(always)]
    pub(crate) fn words(self) -> Global<u64> {
        self.words
    }

    #[inline(always)]
    pub(crate) fn shape(self) -> Shape {
        self.shape
    }
}

impl<K: Pod> FilterView<K> {
    /// Returns whether the filter may contain the key: `false` if the key was never inserted, `true` if it was, or by chance.
    ///
    /// Reads one block of 32 bytes.
    ///
    /// # Safety
    /// The caller is a kernel, and the filter does not change while it runs.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn contains(self, key: K) -> bool {
        let bytes = bytemuck::bytes_of(&key);
        let folded = fold(self.shape.seed, size_of::<K>(), |word| {
            let mut number = 0;
            let mut byte = 0;
            while byte < 8 && 8 * word + byte < size_of::<K>() {
                number |= (bytes[8 * word + byte] as u64) << (8 * byte);
                byte += 1;
            }
            number
        });
        let hash = mix(folded, self.shape.seed);
        let first = self.shape.first_word(hash);
        let halves = [0, 2].map(|word| self.words.load_vec::<2>(first + word, Cache::ReadOnly));
        let mut missing = 0;
        let mut word = 0;
        while word < WORDS {
            missing |= self.shape.mask(hash, factor(word as u32)) & !halves[word / 2][word % 2];
            word += 1;
        }
        missing == 0
    }
}
