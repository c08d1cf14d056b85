//! Whether a function of keys can be relied on.

/// What is known of a function that kernels ask about the same key more than once.
///
/// Memory is safe whatever such a function answers. Where it is not known to give the same answer every time, the kernels check
/// each place that they compute before they write there, which costs some percent of the time. The functions of this crate are
/// known to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Purity {
    is_promised: bool,
}

impl Purity {
    /// Nothing is known.
    pub const UNKNOWN: Self = Self { is_promised: false };

    /// The function gives the same answer whenever it is asked about the same key.
    ///
    /// # Safety
    /// It does, in every thread of a launch and in every launch of a call; and its answers are in the range that its trait
    /// documents. Otherwise kernels write to memory that is not theirs.
    #[must_use]
    pub const unsafe fn promised() -> Self {
        Self { is_promised: true }
    }

    /// Whether the promise was made.
    #[must_use]
    pub const fn is_promised(self) -> bool {
        self.is_promised
    }
}
