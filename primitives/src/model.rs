//! The terms that host, device and executor share: scopes and orders of atomic operations, cache hints, buffers.

/// How far an atomic operation or fence is seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The threads of the block.
    Block,
    /// All threads on this GPU.
    Gpu,
    /// All threads on all GPUs and the host.
    System,
}

/// How an atomic operation orders the accesses around it. Loads take `Relaxed` or `Acquire`, stores `Relaxed` or
/// `Release`; read-modify-writes take any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Atomic, but orders nothing else.
    Relaxed,
    /// Later accesses stay after it.
    Acquire,
    /// Earlier accesses stay before it.
    Release,
    /// Both.
    AcqRel,
}

/// A hint to the caches. It never changes what is read or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cache {
    /// Keep it as usual.
    Default,
    /// Used once: evict it first.
    Streaming,
    /// No thread of the kernel writes it: the read-only path may serve it. For loads; stores treat it as `Default`.
    ReadOnly,
}

/// A read-modify-write operation on a [`Word`](crate::arch::memory::Word).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rmw {
    /// Wrapping addition.
    Add,
    /// The smaller of the two.
    Min,
    /// The larger of the two.
    Max,
    /// Bitwise and.
    And,
    /// Bitwise or.
    Or,
    /// Bitwise exclusive or.
    Xor,
    /// The new value.
    Exchange,
}

/// A buffer among a kernel's arguments. The checked executor knows device memory by these.
#[derive(Clone, Copy, Debug)]
pub struct Buffer {
    /// The address of the first element.
    pub address: usize,
    /// The number of elements.
    pub len: usize,
    /// The size of one element in bytes.
    pub element_bytes: usize,
    /// Whether the kernel may write it.
    pub is_writable: bool,
}
