//! The bodies of the kernels that look for elements, for the CPU. See [`passing`](crate::reduce::device::passing) for what they do
//! and for their contracts.

use crate::hole::RegisterRepr;
use crate::input::{Input, SourceArg};
use crate::kernel::Team;
use crate::reduce::device::passing::{CountPassing, FindPassing};
use crate::select::device::predicate::{HolePredicate, Keep};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// The elements that a worker tests at a time.
const BLOCK: usize = 1024;

/// Tests the elements of a block: calls `each` with its number, its first element, and a byte per element: whether it passes.
/// Workers take blocks in turn.
///
/// # Safety
/// Nothing writes what the source reads. The predicate is one for these elements. Several threads may call `is_over` and `each`
/// at the same time.
unsafe fn test<H: RegisterRepr>(
    input: SourceArg,
    keep: HolePredicate,
    team: Team,
    is_over: &dyn Fn(usize) -> bool,
    each: &dyn Fn(usize, &[u8]),
) {
    // SAFETY: nothing writes the length.
    let len = unsafe { Input::<H>::count(&input) };
    /// The blocks that are taken at once: taking one costs a little.
    const AT_ONCE: usize = 16;

    let blocks = len.div_ceil(BLOCK);
    let some = |turn: usize| {
        if is_over(turn * AT_ONCE * BLOCK) {
            return;
        }
        let (mut room, mut flags): (Vec<H>, _) = (Vec::new(), [0u8; BLOCK]);
        for block in turn * AT_ONCE..blocks.min((turn + 1) * AT_ONCE) {
            let items: Range<usize> = block * BLOCK..len.min((block + 1) * BLOCK);
            if is_over(items.start) {
                return;
            }
            let flags = &mut flags[..items.len()];
            // SAFETY: the items exist, and nothing writes what the source reads.
            unsafe { keep.items(items.start, input.elements(items.start, items.len(), &mut room), flags) };
            each(items.start, flags);
        }
    };
    // SAFETY: the body captures arguments, and what several threads may use.
    unsafe { team.each(blocks.div_ceil(AT_ONCE), some) };
}

/// # Safety
/// The contract of [`find_passing`](crate::reduce::device::passing::FindPassing).
pub(crate) unsafe fn find_passing<H: RegisterRepr, const ROWS: usize>(kernel: FindPassing<H, ROWS>, team: Team) {
    let FindPassing { input, keep, wanted, found, .. } = kernel;
    let first = AtomicU64::new(u64::MAX);
    let is_over = |start: usize| first.load(Ordering::Relaxed) <= start as u64;
    let each = |start: usize, flags: &[u8]| {
        if let Some(place) = flags.iter().position(|&flag| u32::from(flag) == wanted) {
            first.fetch_min((start + place) as u64, Ordering::Relaxed);
        }
    };
    // SAFETY: guaranteed by the caller; the functions use an atomic number.
    unsafe { test::<H>(input, keep, team, &is_over, &each) };
    // SAFETY: nothing else uses the result.
    unsafe { found.set_natively(first.into_inner(), wanted) };
}

/// # Safety
/// The contract of [`count_passing`](crate::reduce::device::passing::CountPassing).
pub(crate) unsafe fn count_passing<H: RegisterRepr, const ROWS: usize>(kernel: CountPassing<H, ROWS>, team: Team) {
    let CountPassing { input, keep, count, .. } = kernel;
    let total = AtomicU64::new(0);
    let each = |_: usize, flags: &[u8]| {
        let own = flags.iter().map(|&flag| u64::from(flag)).sum();
        total.fetch_add(own, Ordering::Relaxed);
    };
    // SAFETY: guaranteed by the caller; the functions use an atomic number.
    unsafe { test::<H>(input, keep, team, &|_| false, &each) };
    // SAFETY: there is one count.
    unsafe { count.as_mut_ptr().write(total.into_inner()) };
}
