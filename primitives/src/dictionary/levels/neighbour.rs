//! The kernel that finds the next live key above or below a key.

use super::find::Levels;
use super::table::THREADS;
use crate::arch::thread;
use crate::dictionary::KeyCode;
use crate::kernel::kernel;
use crate::view::{Global, GlobalMut};
use bytemuck::Pod;

/// Finds, for each key, the smallest live key greater than it or, with `below`, the largest live key less than it, and
/// its value. Sets `found` to 1 if there is one, else to 0.
///
/// In every level, finds the next element on that side. Takes the nearest key of these. The newest level that has this
/// key decides whether it is live. If it is not, the search continues beyond it in all levels. So the search takes one
/// extra step per dead key in between.
///
/// # Safety
/// The launch has at least one thread per key. `out_keys` and `found` are as long as `keys`, and so is `out_values`
/// unless values are zero-sized. While the kernel runs, nobody changes the levels or writes the keys, and nobody else
/// uses the outputs.
#[kernel(threads = THREADS, min_blocks = 6)]
pub unsafe fn find_neighbours<C: KeyCode, V: Pod>(
    levels: Levels<C, V>,
    keys: Global<C>,
    below: u32,
    out_keys: GlobalMut<C>,
    out_values: GlobalMut<V>,
    found: GlobalMut<u8>,
) {
    let at = thread::block_idx_x() as usize * THREADS as usize + thread::thread_idx_x() as usize;
    let below = below != 0;
    if at >= keys.len() {
        return;
    }
    let mut limit = levels.sign().encode(keys.get(at));
    let mut answer = None;
    loop {
        // Searches every level beyond the limit, for the nearest key there and the newest level that has it.
        let mut nearest = None;
        let mut slots = levels.occupied();
        while slots != 0 {
            let slot = slots.trailing_zeros();
            slots &= slots - 1;
            let level = levels.level(slot);
            let place = level.count_before(limit, !below);
            let is_there = if below { place > 0 } else { place < level.entry.len };
            if is_there {
                let key = level.keys().get(if below { place - 1 } else { place } as usize);
                nearest = match nearest {
                    Some((other, slot, place)) if (key >= other) != below || key == other => Some((other, slot, place)),
                    _ => Some((key, slot, place)),
                };
            }
        }
        let Some((key, slot, place)) = nearest else { break };
        // The newest element with the key is the last of its run in that level.
        let level = levels.level(slot);
        let place = if below { place } else { level.count_before(key, true) } - 1;
        if !level.is_dead(place) {
            answer = Some((key, level.value(place)));
            break;
        }
        limit = key;
    }
    found.set(at, u8::from(answer.is_some()));
    let (key, value) = answer.unwrap_or((C::MIN, V::zeroed()));
    out_keys.set(at, if answer.is_some() { levels.sign().decode(key) } else { C::MIN });
    if size_of::<V>() > 0 {
        out_values.set(at, value);
    }
}

crate::instances! {
    in concat!(env!("CARGO_MANIFEST_DIR"), "/ptx");
    levels_neighbours_u32: FindNeighbours<u32, ()>;
    levels_neighbours_u32_u32: FindNeighbours<u32, u32>;
    levels_neighbours_u32_u64: FindNeighbours<u32, u64>;
    levels_neighbours_u64: FindNeighbours<u64, ()>;
    levels_neighbours_u64_u32: FindNeighbours<u64, u32>;
    levels_neighbours_u64_u64: FindNeighbours<u64, u64>;
}
