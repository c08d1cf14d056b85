//! The body of the set operations' kernel for the CPU. See [`kernel`](super::device) for what it does and for its contract.

#![deny(unsafe_op_in_unsafe_fn)]

use super::device::SetTiles;
use crate::compare::KeyOrder;
use crate::kernel::Team;
use crate::pairs::PairsMut;
use bytemuck::Pod;
use std::sync::Mutex;

/// Each worker has the items between two keys, so that equal items are in the same part, and walks through both sides.
///
/// # Safety
/// The contract of [`set_tiles`](super::device::SetTiles).
pub(super) unsafe fn set_tiles<K: Pod, V: Pod, C: KeyOrder<K>, const THREADS: u32, const ITEMS: usize>(
    kernel: SetTiles<K, V, C, THREADS, ITEMS>,
    team: Team,
) {
    let SetTiles { a, b, out, compare, keep, count, .. } = kernel;
    let (PairsMut { keys: out_keys, values: out_values }, a_values, b_values) = (out, a.values, b.values);
    // SAFETY: nothing writes these, nor their numbers.
    let (a, b) = unsafe { (a.keys.get().as_slice(), b.keys.get().as_slice()) };
    // SAFETY: the same.
    let (a_values, b_values) = unsafe { (a_values.as_slice(), b_values.as_slice()) };
    let longer = if a.len() < b.len() { b } else { a };
    let parts = team.parts(a.len() + b.len());
    // Where each part begins on both sides. A comparator that contradicts itself may put boundaries in any order.
    let mut boundaries = vec![(0, 0)];
    for part in 1..parts {
        let key = longer[longer.len() * part / parts];
        let first = |keys: &[K]| keys.partition_point(|&other| compare.less(other, key));
        let (before_a, before_b) = boundaries[part - 1];
        boundaries.push((first(a).max(before_a), first(b).max(before_b)));
    }
    boundaries.push((a.len(), b.len()));
    let mut kept: Vec<Mutex<Vec<(K, V)>>> = Vec::new();
    kept.resize_with(parts, Mutex::default);
    let work = |part: usize| {
        let ((mut i, mut j), (a_end, b_end)) = (boundaries[part], boundaries[part + 1]);
        let mut items = Vec::with_capacity((a_end - i).max(b_end - j));
        let value = |values: &[V], at: usize| if size_of::<V>() > 0 { values[at] } else { V::zeroed() };
        while i < a_end || j < b_end {
            let (takes_a, takes_b) = if i == a_end {
                (false, true)
            } else if j == b_end {
                (true, false)
            } else {
                let b_first = compare.less(b[j], a[i]);
                (!b_first, b_first || !compare.less(a[i], b[j]))
            };
            // Of two equal items, the second one goes with the first.
            let keeps = match (takes_a, takes_b) {
                (true, true) => keep.matched,
                (true, false) => keep.unmatched,
                _ => keep.second,
            };
            if keeps != 0 {
                items.push(if takes_a { (a[i], value(a_values, i)) } else { (b[j], value(b_values, j)) });
            }
            (i, j) = (i + usize::from(takes_a), j + usize::from(takes_b));
        }
        *kept[part].lock().expect("each part has its own") = items;
    };
    // SAFETY: the body captures arguments, plain data and locks.
    unsafe { team.each(parts, work) };
    let (mut total, mut starts) = (0, Vec::with_capacity(parts));
    for items in &mut kept {
        starts.push(total);
        total += items.get_mut().expect("all parts have returned").len();
    }
    // There is room for what sorted sides can give. More is left out.
    let room = out_keys.len();
    let write = |part: usize| {
        let (start, items) = (starts[part], kept[part].lock().expect("all parts have returned"));
        let len = items.len().min(room.saturating_sub(start));
        for (at, &(key, value)) in items[..len].iter().enumerate() {
            // SAFETY: there is room, and no other part has this place.
            unsafe {
                out_keys.as_mut_ptr().add(start + at).write(key);
                if size_of::<V>() > 0 {
                    out_values.as_mut_ptr().add(start + at).write(value);
                }
            }
        }
    };
    // SAFETY: the body captures arguments and plain data. Each call writes outputs of its own.
    unsafe { team.each(parts, write) };
    // SAFETY: there is one count.
    unsafe { count.as_mut_ptr().write(total.min(room) as u64) };
}
