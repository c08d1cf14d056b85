//! The kernel that finds the next live key above or below a key.

use crate::KeyCode;
use crate::levels::device::find::Levels;
use crate::levels::device::table::THREADS;
use bytemuck::Pod;
use gpu_primitives::arch::thread;
use gpu_primitives::code::U256;
use gpu_primitives::kernel::kernel;
use gpu_primitives::view::{Global, GlobalMut};

/// Returns the number of blocks per multiprocessor. With more, `ptxas` would spill registers.
const fn min_blocks<C>() -> u32 {
    if size_of::<C>() > 8 { 4 } else { 6 }
}

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
#[kernel(listed, threads = THREADS, min_blocks = min_blocks::<C>(), native = crate::levels::native::find_neighbours)]
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
            let position = level.count_before(limit, !below);
            let exists = if below { position > 0 } else { position < level.entry.len };
            if exists {
                let key = level.keys().get(if below { position - 1 } else { position } as usize);
                nearest = match nearest {
                    Some((other, slot, position)) if (key >= other) != below || key == other => {
                        Some((other, slot, position))
                    }
                    _ => Some((key, slot, position)),
                };
            }
        }
        let Some((key, slot, position)) = nearest else { break };
        // The newest element with the key is the last of its run in that level.
        let level = levels.level(slot);
        let position = if below { position } else { level.count_before(key, true) } - 1;
        if !level.is_dead(position) {
            answer = Some((key, level.value(position)));
            break;
        }
        limit = key;
    }
    found.set(at, u8::from(answer.is_some()));
    let (key, value) = answer.unwrap_or((C::MIN, V::zeroed()));
    out_keys.set(at, if answer.is_some() { levels.sign().decode(key) } else { C::MIN });
    out_values.set(at, value);
}

gpu_primitives::instances! {
    static in concat!(env!("CARGO_MANIFEST_DIR"), "/ptx");
    for C in [u32, u64, u128, U256], V in [(), u32, u64]: FindNeighbours<C, V>;
}
