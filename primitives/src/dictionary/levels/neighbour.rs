//! The kernel that finds the next live key above or below.

use super::find::Levels;
use super::table::THREADS;
use crate::arch::thread;
use crate::dictionary::KeyCode;
use crate::kernel::kernel;
use crate::view::{Global, GlobalMut};
use bytemuck::Pod;

/// Finds, for each key, the smallest live key above it, or with `below` the largest one below it, and its value. `found` says
/// whether there is one.
///
/// Of every level the next element on that side is found. The nearest of their keys is the candidate, and the newest level that
/// has it decides whether it is live; if not, all levels go on beyond it. So it takes a step per dead key that lies between.
///
/// # Safety
/// The launch has at least one thread per key. `out_keys`, `found` and, unless values have no size, `out_values` are as
/// long as `keys`. Nobody changes the levels or writes the keys, and nobody else uses the outputs, while the kernel
/// runs.
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
        // Beyond the limit in every level; the nearest key there, and the newest level that has it.
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
        // The newest element of the key is the last one of its run in that level.
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
