//! Merges a batch into a level of distinct keys: see [`renew`](crate::levels::renew).

use crate::KeyCode;
use crate::levels::renew::{RenewLevel, renew_tile};
use bytemuck::Pod;
use gpu_primitives::kernel::Team;

/// Collects the live elements of each tile, then writes them one after the other.
///
/// # Safety
/// The contract of [`renew_level`](crate::levels::renew::RenewLevel).
pub unsafe fn renew_level<C: KeyCode, V: Pod, const ITEMS: usize>(kernel: RenewLevel<C, V, ITEMS>, team: Team) {
    let RenewLevel { level, batch, sign, splits, out, live_count, .. } = kernel;
    // SAFETY: nothing writes the inputs.
    let (a, b, splits) = unsafe { (level.keys.as_slice(), batch.elements.keys.as_slice(), splits.as_slice()) };
    // SAFETY: the same.
    let (a_values, b_values, marks) =
        unsafe { (level.values.as_slice(), batch.elements.values.as_slice(), batch.marks.as_slice()) };
    let is_dead = |at: usize| !marks.is_empty() && marks[at / 32] >> (at % 32) & 1 == 1;
    let (tile_len, total) = (renew_tile(ITEMS), a.len() + b.len());
    let tiles = total.div_ceil(tile_len);

    let mut live: Vec<Vec<(C, V)>> = vec![Vec::new(); tiles];
    let to_live = live.as_mut_ptr();
    let collect = |tile: usize| {
        let (start, end) = (tile * tile_len, total.min((tile + 1) * tile_len));
        let (mut i, a_end) = (splits[tile] as usize, splits[tile + 1] as usize);
        let (mut j, b_end) = (start - i, end - a_end);
        let mut kept = Vec::with_capacity(end - start);
        while i < a_end || j < b_end {
            let takes_a = i < a_end && (j == b_end || b[j] >= a[i]);
            let at = if takes_a { i } else { j };
            let key = if takes_a { a[i] } else { b[j] };
            (i, j) = (i + usize::from(takes_a), j + usize::from(!takes_a));
            let is_newest = a.get(i) != Some(&key) && b.get(j) != Some(&key);
            if is_newest && (takes_a || !is_dead(at)) {
                let values = if takes_a { a_values } else { b_values };
                kept.push((sign.decode(key), if size_of::<V>() > 0 { values[at] } else { V::zeroed() }));
            }
        }
        // SAFETY: there is an element per tile, and no other call uses it.
        unsafe { *to_live.add(tile) = kept };
    };
    // SAFETY: the body captures arguments and plain data. Each call writes elements of its own.
    unsafe { team.each(tiles, collect) };

    let mut count = 0;
    let starts: Vec<usize> = live
        .iter()
        .map(|live| {
            count += live.len();
            count - live.len()
        })
        .collect();
    let write = |tile: usize| {
        for (i, &(key, value)) in live[tile].iter().enumerate() {
            // SAFETY: the output has room for all elements, and tiles write different ones.
            unsafe {
                out.keys.as_mut_ptr().add(starts[tile] + i).write(key);
                if size_of::<V>() > 0 {
                    out.values.as_mut_ptr().add(starts[tile] + i).write(value);
                }
            }
        }
    };
    // SAFETY: the body captures arguments and plain data. Each call writes outputs of its own.
    unsafe { team.each(tiles, write) };
    // SAFETY: there is one count.
    unsafe { live_count.as_mut_ptr().write(count as u64) };
}
