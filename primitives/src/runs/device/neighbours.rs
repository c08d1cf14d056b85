//! Loads a warp's run of items, and finds those that differ from a neighbour.

use crate::arch::warp::{FULL, LANES, lane_id, shuffle_idx, sync_warp};
use crate::block::warp::{choose, map_words};
use crate::equality::HoleEquality;
use crate::hole::RegisterRepr;
use crate::input::Input;
use crate::select::device::tile::{Rows, run_len, striped};
use crate::view::Shared;

/// Loads the warp's items, in rows. Complete and aligned runs take `ROWS` wide accesses at once. Others go through shared
/// memory, one item at a time. Positions after the last item read as the last item.
///
/// # Safety
/// Same as [`load`].
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
unsafe fn load_rows<K: RegisterRepr, I: Input<K>, const VEC: usize, const ROWS: usize>(
    input: I,
    len: usize,
    start: usize,
    stage: Shared<K>,
) -> [[K; VEC]; ROWS] {
    let mut items = [[K::zeroed(); VEC]; ROWS];
    if start + run_len(VEC, ROWS) <= len && input.lead::<VEC>() == start % VEC {
        for row in 0..ROWS {
            items[row] = input.row(start + striped::<VEC>(0), row * LANES as usize * VEC);
        }
        return items;
    }
    const GROUP: usize = 4;
    let mut first = lane_id() as usize;
    while first < run_len(VEC, ROWS) {
        let mut group = [K::zeroed(); GROUP];
        for i in 0..GROUP {
            let at = start + first + i * LANES as usize;
            group[i] = input.item(if at < len { at } else { len - 1 });
        }
        for i in 0..GROUP {
            let at = first + i * LANES as usize;
            if at < run_len(VEC, ROWS) {
                stage.set(at, group[i]);
            }
        }
        first += GROUP * LANES as usize;
    }
    sync_warp(FULL);
    for row in 0..ROWS {
        items[row] = stage.load_vec(striped::<VEC>(row));
    }
    items
}

/// Loads the warp's run, which begins at `start`, and flags the first item of each run of equal ones, or the last one.
///
/// An item's neighbour is in the same lane, or comes by a shuffle from the next lane; at the end of a row, from the next
/// row. Only the neighbour of the whole run is loaded in addition. The equality is called with items of the input only.
///
/// # Safety
/// All lanes of the warp must call this. The input has `len` items, at least one. `stage` has room for the run, belongs to
/// the warp until the next barrier, and starts at a multiple of 16 bytes.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub(crate) unsafe fn load<K: RegisterRepr, I: Input<K>, const VEC: usize, const ROWS: usize>(
    input: I,
    len: usize,
    start: usize,
    equality: HoleEquality,
    last: bool,
    stage: Shared<K>,
) -> Rows<K, VEC, ROWS> {
    let end = start + run_len(VEC, ROWS);
    let outside = if last { end } else { start.saturating_sub(1) };
    let outside = input.item(if outside < len { outside } else { len - 1 });
    let items = load_rows::<K, I, VEC, ROWS>(input, len, start, stage);

    // The lane whose item is the neighbour, and the lane whose neighbour is in another row.
    let (source, turn) = if last { (lane_id() + 1, LANES - 1) } else { (lane_id() + LANES - 1, 0) };
    let rotated = |row: usize| {
        let item = choose(last, items[row][0], items[row][VEC - 1]);
        map_words(item, |_, word| shuffle_idx(FULL, word, source % LANES))
    };
    let mut flags = 0;
    let (mut before, mut current) = (outside, rotated(0));
    for row in 0..ROWS {
        let after = if row + 1 < ROWS { rotated(row + 1) } else { outside };
        let neighbour = choose(lane_id() == turn, choose(last, after, before), current);
        let mut within = 0;
        for i in 1..VEC {
            within |= (!equality.equal(items[row][i - 1], items[row][i]) as u32) << (i - 1);
        }
        let edge = choose(last, items[row][VEC - 1], items[row][0]);
        let differs = !equality.equal(neighbour, edge) as u32;
        flags |= (if last { within | differs << (VEC - 1) } else { within << 1 | differs }) << (row * VEC);
        (before, current) = (current, after);
    }

    // The first item of the input begins a run, and the last one ends one.
    let forced = if last { len - 1 } else { 0 };
    if start <= forced && forced < end {
        let at = forced - start;
        let (row, in_row) = (at / (LANES as usize * VEC), at % (LANES as usize * VEC));
        if in_row / VEC == lane_id() as usize {
            flags |= 1 << (row * VEC + in_row % VEC);
        }
    }
    if end > len {
        for row in 0..ROWS {
            let there = len.saturating_sub(start + striped::<VEC>(row)).min(VEC);
            flags &= !(((1 << VEC) - (1 << there)) << (row * VEC));
        }
    }
    Rows { items, flags }
}
