//! Which slots a batch has touched.

use gpu_primitives::GlobalMut;
use gpu_primitives::arch::{Order, Scope};
use gpu_primitives::kernel::{Buffer, Param};
#[cfg(not(target_arch = "nvptx64"))]
use gpu_primitives::kernel::{Reach, View};
#[cfg(not(target_arch = "nvptx64"))]
use gpu_primitives::{DeviceVec, Error, Stream};

/// The bits of a word that are marks.
pub const MARKS: u32 = 8;

/// One word per bucket: the number of a batch, and a bit for each slot that this batch has touched.
///
/// The number makes clearing unnecessary: in a word of another batch, no slot counts as marked.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Marks {
    pub(crate) words: GlobalMut<u32>,
    pub(crate) batch: u32,
    /// Not 0 if all pairs with equal keys are to be recorded in the entries. Otherwise, at least the last one.
    all_count: u32,
}

// SAFETY: a `repr(C)` struct of parameters without padding.
unsafe impl Param for Marks {
    fn buffers(&self, name: &'static str, visit: &mut dyn FnMut(&'static str, Buffer)) {
        self.words.buffers(name, visit);
    }
}

#[cfg(not(target_arch = "nvptx64"))]
impl Marks {
    /// The largest number of a batch.
    pub const LAST_BATCH: u32 = u32::MAX >> MARKS;

    /// Returns these words as an argument for kernels on `stream`. No word is of a batch with this number.
    pub fn view<'a>(
        stream: &Stream,
        words: &'a mut DeviceVec<u32>,
        batch: u32,
        all_count: bool,
    ) -> Result<View<'a, Self>, Error> {
        let words = words.view_mut(stream)?;
        // SAFETY: the result borrows the same memory as the view.
        Ok(unsafe {
            View::new(Self { words: words.into_param(), batch, all_count: u32::from(all_count) }, Reach::none())
        })
    }
}

impl Marks {
    /// Returns whether there are no marks, because all keys are different.
    #[inline(always)]
    pub fn is_empty(self) -> bool {
        self.words.is_empty()
    }

    /// Returns whether a pair may give way to the next one, if that has the same key.
    #[inline(always)]
    pub fn may_give_way(self) -> bool {
        !self.is_empty() && self.all_count == 0
    }

    /// Loads the word of a bucket.
    ///
    /// # Safety
    /// The bucket has a word.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn load(self, bucket: u32) -> u32 {
        self.words.atomic_load(bucket as usize, Scope::Gpu, Order::Relaxed)
    }

    /// Returns the slots of a bucket that are marked, as bits.
    ///
    /// # Safety
    /// The bucket has a word, and no other thread marks slots.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn marked(self, bucket: u32) -> u32 {
        let word = self.words.get(bucket as usize);
        if word >> MARKS == self.batch { word & ((1 << MARKS) - 1) } else { 0 }
    }

    /// Marks a slot. Returns whether it was not marked: of all threads that mark a slot, exactly one gets `true`. `guess` is
    /// what the word may be.
    ///
    /// # Safety
    /// The bucket has a word and the slot a bit.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn mark(self, bucket: u32, slot: u32, guess: u32) -> bool {
        let bit = 1 << slot;
        let mut word = guess;
        // Ends: whenever the exchange fails, another thread has marked a slot of the bucket, or the guess was wrong.
        loop {
            let marked = if word >> MARKS == self.batch { word } else { self.batch << MARKS };
            if marked & bit != 0 {
                return false;
            }
            let seen = self.words.compare_exchange(bucket as usize, word, marked | bit, Scope::Gpu, Order::Relaxed);
            if seen == word {
                return true;
            }
            word = seen;
        }
    }
}
