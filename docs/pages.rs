//! The code blocks of the book, compiled and run as documentation tests. The blocks of the README and of the guide are
//! those of `gpu-primitives`. A test of `xtask` checks that every page with code is named here.

/// Names the pages whose code blocks are compiled.
macro_rules! pages {
    ($($name:ident $page:literal)*) => {$(
        #[cfg(doctest)]
        #[doc = include_str!($page)]
        mod $name {}
    )*};
}

pages! {
    choosing "choosing.md"
    cuckoo "cuckoo.md"
    kernels "kernels.md"
    keys "keys.md"
    lsm "lsm.md"
    operators "operators.md"
    performance "performance.md"
    primitives "primitives.md"
    quick_start "quick-start.md"
    sources "sources.md"
    threads "threads.md"
    troubleshooting "troubleshooting.md"
    writing_a_kernel "writing-a-kernel.md"
}
