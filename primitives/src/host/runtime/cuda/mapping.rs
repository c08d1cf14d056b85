//! Memory of the system, mapped for page-locking: huge pages, cleared by all cores.

use memmap2::{Advice, MmapMut};

/// A region of zeroed memory, which is unmapped when it is dropped.
pub(super) type Mapping = MmapMut;

/// The distance of bytes that are on different pages.
const PAGE: usize = 4096;
/// A thread clears at least so many bytes.
const PER_THREAD: usize = 32 << 20;

/// Returns a region of zeroed memory whose pages are all there; `None` if the system maps none.
pub(super) fn map(bytes: usize) -> Option<Mapping> {
    let mut mapping = MmapMut::map_anon(bytes).ok()?;
    // Without huge pages all works, three times slower. A child process must not share pages that a device writes to.
    let _ = mapping.advise(Advice::HugePage);
    let _ = mapping.advise(Advice::DontFork);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for part in mapping.chunks_mut(bytes.div_ceil(threads).max(PER_THREAD)) {
            // If there is no thread to be had, the driver makes the pages itself.
            let touch = || part.iter_mut().step_by(PAGE).for_each(|byte| *byte = 0);
            let _ = std::thread::Builder::new().name("page-locking".into()).spawn_scoped(scope, touch);
        }
    });
    Some(mapping)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_are_zeroed() {
        for bytes in [1, PAGE, PER_THREAD + 5, 3 * PER_THREAD] {
            let mut mapping = map(bytes).unwrap();
            assert_eq!(mapping.len(), bytes);
            assert!(mapping.iter().step_by(997).all(|&byte| byte == 0));
            mapping[bytes - 1] = 1;
        }
        assert!(map(usize::MAX / 2).is_none());
    }
}
