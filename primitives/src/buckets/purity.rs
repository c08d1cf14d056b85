//! Whether the kernels can rely on a function of keys.

/// What is known about a function that kernels call with the same key more than once.
///
/// Memory safety does not depend on the results of such a function. If it is not known to return the same result every
/// time, the kernels check each computed position before they write there, which costs a few percent of the time. The
/// functions of this crate are known to be pure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Purity {
    is_promised: bool,
}

impl Purity {
    /// Nothing is known.
    pub const UNKNOWN: Self = Self { is_promised: false };

    /// The function always returns the same result for the same key.
    ///
    /// # Safety
    /// It does so in every thread of a launch and in every launch of a call, and its results are in the range that its
    /// trait documents. Otherwise kernels write out of bounds.
    #[must_use]
    pub const unsafe fn promised() -> Self {
        Self { is_promised: true }
    }

    /// Returns whether purity was promised.
    #[must_use]
    pub const fn is_promised(self) -> bool {
        self.is_promised
    }
}
