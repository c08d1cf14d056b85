//! Searches with as many needles as elements, in random order and sorted.

use super::{expect, time};
use crate::data::random_u32;
use crate::session::Session;
use gpu_primitives::compare::Less;
use gpu_primitives::search;
use rayon::slice::ParallelSliceMut;

pub(super) fn measure(session: &Session, len: usize) -> Result<(), crate::Error> {
    let stream = &session.stream;
    let mut host = random_u32(len as u64, len);
    host.par_sort_unstable();
    let haystack = stream.upload(&host)?;
    let mut out = stream.uninit::<u32>(len)?;

    let mut wanted = random_u32(len as u64 + 1, len);
    let needles = stream.upload(&wanted)?;
    // Per needle: reads the needle and an element of the haystack, and writes a position.
    time(session, "lower_bound_random", len, 12.0, || {
        search::lower_bound(stream, &haystack, &needles, &mut out, Less)
    })?;
    let is_lower_bound = |&(needle, place): &(u32, u32)| {
        let place = place as usize;
        place <= len && (place == 0 || host[place - 1] < needle) && (place == len || host[place] >= needle)
    };
    let check = |wanted: &[u32], found: &[u32], what| {
        let right = wanted.iter().copied().zip(found.iter().copied()).map(|pair| is_lower_bound(&pair));
        expect(what, &vec![true; len], right)
    };
    check(&wanted, &out.to_vec(stream)?, "lower bounds")?;

    wanted.par_sort_unstable();
    let needles = stream.upload(&wanted)?;
    time(session, "sorted_search", len, 12.0, || {
        search::lower_bound_sorted(stream, &haystack, &needles, &mut out, Less)
    })?;
    check(&wanted, &out.to_vec(stream)?, "lower bounds of sorted needles")
}
