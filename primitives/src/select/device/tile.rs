//! A tile of a selection: loading it, ranking the kept items, compacting it in shared memory, and writing it out.
//!
//! A block's tile is a run of `32 * VEC * ROWS` consecutive items per warp. A row is one coalesced access: `VEC`
//! adjacent items per lane. The item order is run, row, lane, `i`.

use super::predicate::Keep;
use crate::arch::Cache;
use crate::arch::warp::{FULL, LANES, lane_id, sync_warp, warp_id};
use crate::block::lookback::LookBack;
use crate::block::warp;
use crate::monoid::Sum;
use crate::view::{Global, GlobalMut, Shared, shared_bytes};
use bytemuck::Pod;

/// Returns the items per access, for accesses of 16 bytes by the wider type.
#[must_use]
pub const fn vector<K, V>() -> usize {
    let widest = if size_of::<K>() > size_of::<V>() { size_of::<K>() } else { size_of::<V>() };
    match widest {
        0..=4 => 4,
        5..=8 => 2,
        _ => 1,
    }
}

/// Returns the rows of a warp: with [`vector`], a thread has 128 bytes of keys alone, and 120 or 160 bytes of pairs.
#[must_use]
pub const fn rows<V>() -> usize {
    if size_of::<V>() == 0 { 8 } else { 5 }
}

/// Returns the number of items of a warp.
#[must_use]
pub const fn run_len(vec: usize, rows: usize) -> usize {
    LANES as usize * vec * rows
}

/// Returns the shared memory of a block: keys and values of the tile, one count per warp, the tile's position, and the
/// ticket.
#[must_use]
pub const fn shared<K, V>(threads: u32, vec: usize, rows: usize) -> usize {
    let items = threads as usize * vec * rows;
    shared_bytes::<K>(items)
        + shared_bytes::<V>(items)
        + shared_bytes::<u32>((threads / LANES) as usize)
        + shared_bytes::<u64>(1)
        + LookBack::BYTES
}

/// A lane's items, and whether they are kept.
pub(crate) struct Rows<K, const VEC: usize, const ROWS: usize> {
    /// The items; zeros where there are none.
    pub items: [[K; VEC]; ROWS],
    /// The kept items: bit `row * VEC + i` for each.
    pub flags: u32,
}

/// Returns the position of the lane's first item of a row in the run.
#[inline(always)]
pub(crate) fn striped<const VEC: usize>(row: usize) -> usize {
    (row * LANES as usize + lane_id() as usize) * VEC
}

/// Returns whether accesses of `VEC` elements may start here.
#[inline(always)]
fn is_aligned<T, const VEC: usize>(address: *const T) -> bool {
    address.addr().is_multiple_of(size_of::<[T; VEC]>())
}

/// Returns whether the warp's run lies within the range and can be loaded in rows.
#[inline(always)]
fn is_whole<K: Pod, const VEC: usize, const ROWS: usize>(
    input: Global<K>,
    start: usize,
    (from, to): (usize, usize),
) -> bool {
    start >= from && start + run_len(VEC, ROWS) <= to && is_aligned::<K, VEC>(input.as_ptr())
}

/// Loads the warp's run, which begins at `start`, and tests its items.
///
/// Complete runs take `ROWS` wide accesses at once. Others go through shared memory, row by row, in narrow accesses, so
/// that the rare case takes no registers from the common one.
///
/// # Safety
/// All lanes of the warp must call this. `stage` has room for the run, belongs to the warp until the next barrier, and
/// starts at a multiple of 16 bytes.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub(crate) unsafe fn load<K: Pod, F: Keep<K>, const VEC: usize, const ROWS: usize>(
    input: Global<K>,
    start: usize,
    keep: F,
    stage: Shared<K>,
) -> Rows<K, VEC, ROWS> {
    const { assert!(VEC <= 4 && ROWS <= 8, "ranks in a row are bytes, and the flags of a lane are a word") };
    let (from, to) = keep.range(input.len());
    let mut items = [[K::zeroed(); VEC]; ROWS];
    let mut flags = 0;
    if is_whole::<K, VEC, ROWS>(input, start, (from, to)) {
        let run = input.slice(start, run_len(VEC, ROWS));
        for row in 0..ROWS {
            items[row] = run.load_vec(striped::<VEC>(row), Cache::Default);
        }
        for row in 0..ROWS {
            flags |= keep.row::<VEC>(start + striped::<VEC>(row), items[row]) << (row * VEC);
        }
    } else {
        let mut at = lane_id() as usize;
        while at < run_len(VEC, ROWS) {
            // As many loads in flight at once as a row has items per lane.
            let mut row = [K::zeroed(); VEC];
            for i in 0..VEC {
                let index = start + at + i * LANES as usize;
                if index < input.len() {
                    row[i] = input.get(index);
                }
            }
            for i in 0..VEC {
                stage.set(at + i * LANES as usize, row[i]);
            }
            at += VEC * LANES as usize;
        }
        sync_warp(FULL);
        let mut bit = 0;
        while bit < VEC * ROWS {
            let at = striped::<VEC>(bit / VEC) + bit % VEC;
            let index = start + at;
            if index >= from && index < to && keep.item(index, stage.get(at)) {
                flags |= 1 << bit;
            }
            bit += 1;
        }
        for row in 0..ROWS {
            items[row] = stage.load_vec(striped::<VEC>(row));
        }
    }
    Rows { items, flags }
}

impl<K: Pod, const VEC: usize, const ROWS: usize> Rows<K, VEC, ROWS> {
    /// Stores the items in the warp's region of shared memory, so that they take no registers.
    ///
    /// # Safety
    /// Same as [`load`], for the same `stage`.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn park(&self, stage: Shared<K>) {
        for row in 0..ROWS {
            stage.store_vec(striped::<VEC>(row), self.items[row]);
        }
    }
}

/// The number of kept items before those of a lane, per row: one byte each, since a row has at most 128.
#[derive(Clone, Copy)]
pub(crate) struct Ranks {
    /// In the same row, in lower lanes.
    pub in_row: u64,
    /// In each row.
    pub row_totals: u64,
}

#[inline(always)]
fn byte(bytes: u64, row: usize) -> u32 {
    (bytes >> (8 * row)) as u32 & 0xff
}

impl Ranks {
    /// Scans all rows over the lanes at once, as the bytes of one word: 10 shuffles, for any number of rows.
    ///
    /// # Safety
    /// All lanes of the warp must call this.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn of<const VEC: usize, const ROWS: usize>(flags: u32) -> Self {
        let mut counts = 0u64;
        for row in 0..ROWS {
            let bits = (flags >> (row * VEC)) & ((1 << VEC) - 1);
            counts |= (bits.count_ones() as u64) << (8 * row);
        }
        let up_to = warp::inclusive_scan(counts, Sum);
        Self { in_row: up_to - counts, row_totals: warp::broadcast(up_to, LANES - 1) }
    }

    /// Returns the number of kept items of the run.
    #[inline(always)]
    pub fn total<const ROWS: usize>(self) -> u32 {
        let mut total = 0;
        for row in 0..ROWS {
            total += byte(self.row_totals, row);
        }
        total
    }
}

/// The positions of a lane's items when a run is compacted or, with `BOTH`, a tile. In a tile, dropped items follow the
/// kept ones. (So do the positions after the input's last item, at the very end of the tile.)
#[derive(Clone, Copy)]
pub(crate) struct Places<const VEC: usize, const ROWS: usize, const BOTH: bool> {
    pub flags: u32,
    pub ranks: Ranks,
    /// The number of items kept in lower warps of the tile; 0 to compact the run separately.
    pub before: u32,
    /// The number of items kept in the tile; used with `BOTH`.
    pub total: u32,
}

impl<const VEC: usize, const ROWS: usize, const BOTH: bool> Places<VEC, ROWS, BOTH> {
    /// Calls `put(i, place)` for the items of a row; `before` is the number of items kept before the row.
    #[inline(always)]
    fn row(self, row: usize, before: u32, mut put: impl FnMut(usize, usize)) {
        let first = warp_id() * run_len(VEC, ROWS) as u32 + striped::<VEC>(row) as u32;
        let mut rank = before + byte(self.ranks.in_row, row);
        let flags = self.flags >> (row * VEC);
        for i in 0..VEC {
            let kept = flags >> i & 1 != 0;
            if BOTH {
                put(i, if kept { rank } else { self.total + first + i as u32 - rank } as usize);
            } else if kept {
                put(i, rank as usize);
            }
            rank += kept as u32;
        }
    }

    /// Compacts the run in place, where it was [parked](Rows::park).
    ///
    /// An item never moves up, so a row overwrites only itself and lower rows: it is enough that all lanes have read
    /// it.
    ///
    /// # Safety
    /// All lanes of the warp must call this, and nothing else uses the run.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn compact<K: Pod>(self, run: Shared<K>) {
        self.compact_and(run, |_, _| ());
    }

    /// [Compacts](Self::compact) the run, and calls `put(position, place)` with the kept items' positions in the run and
    /// their new places.
    ///
    /// # Safety
    /// Same as [`compact`](Self::compact).
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn compact_and<K: Pod>(self, run: Shared<K>, mut put: impl FnMut(usize, usize)) {
        let mut before = self.before;
        let mut items: [K; VEC] = run.load_vec(striped::<VEC>(0));
        for row in 0..ROWS {
            let next = if row + 1 < ROWS { run.load_vec(striped::<VEC>(row + 1)) } else { items };
            sync_warp(FULL);
            self.row(row, before, |i, place| {
                run.set(place, items[i]);
                put(striped::<VEC>(row) + i, place);
            });
            before += byte(self.ranks.row_totals, row);
            items = next;
        }
    }

    /// Compacts the rows into shared memory.
    ///
    /// # Safety
    /// `to` has room for the run or the tile, and nothing else uses it until the next barrier.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn scatter<K: Pod>(self, items: [[K; VEC]; ROWS], to: Shared<K>) {
        let mut before = self.before;
        for row in 0..ROWS {
            self.row(row, before, |i, place| to.set(place, items[row][i]));
            before += byte(self.ranks.row_totals, row);
        }
    }

    /// Loads the values of the warp's run, which begins at `start`, and compacts them in the same way.
    ///
    /// # Safety
    /// Same as [`scatter`](Self::scatter); there are as many values as keys.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn move_values<V: Pod>(self, values: Global<V>, start: usize, to: Shared<V>) {
        if is_whole::<V, VEC, ROWS>(values, start, (0, values.len())) {
            let run = values.slice(start, run_len(VEC, ROWS));
            let mut items = [[V::zeroed(); VEC]; ROWS];
            for row in 0..ROWS {
                items[row] = run.load_vec(striped::<VEC>(row), Cache::Default);
            }
            self.scatter(items, to);
        } else {
            let mut before = self.before;
            let mut row = 0;
            while row < ROWS {
                let at = start + striped::<VEC>(row);
                self.row(row, before, |i, place| {
                    if at + i < values.len() {
                        to.set(place, values.get(at + i));
                    }
                });
                before += byte(self.ranks.row_totals, row);
                row += 1;
            }
        }
    }
}

/// Writes the first items of `from` to all of `to`, with `workers` threads, of which this is number `worker`. A warp's
/// store fills one line of 128 bytes, wherever the output begins.
///
/// # Safety
/// All of these threads must call this, after the barrier that makes the items visible; `workers` is a multiple of 32;
/// `from` has at least as many items as `to`.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub(crate) unsafe fn write_run<T: Pod>(from: Shared<T>, to: GlobalMut<T>, worker: u32, workers: u32) {
    if size_of::<T>() == 0 {
        return;
    }
    let (size, len) = (size_of::<T>().max(1), to.len() as u32);
    let skew = (to.as_const().as_ptr().addr() / size) as u32 % LANES.min((128 / size).max(1) as u32);
    let mut at = worker + workers - skew;
    if at >= workers {
        at -= workers;
    }
    while at < len {
        to.set(at as usize, from.get(at as usize));
        at += workers;
    }
}
