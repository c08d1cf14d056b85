//! The bulk build: one part makes the buckets of a tile.

use super::append::{Appender, put, value_at};
use super::atomics::{add, counter};
use super::table::Table;
use crate::device::{CHUNK, Count, FillTiles, LONG_TILE, ThinTiles, TileStarts, spill_slots, tile_buckets};
use bytemuck::Pod;
use gpu_dictionary::WordCode as KeyCode;
use gpu_primitives::kernel::Team;
use std::ops::Range;

/// # Safety
/// The contract of [`TileStarts`].
pub unsafe fn tile_starts<C: KeyCode>(kernel: TileStarts<C>, team: Team) {
    let TileStarts { keys, digits, starts, .. } = kernel;
    // SAFETY: nothing writes the keys.
    let keys = unsafe { keys.as_slice() };
    let search = |_: usize, range: Range<usize>| {
        for tile in range {
            let start = keys.partition_point(|&key| (digits.tile(key) as usize) < tile);
            // SAFETY: there is a start for each tile, and no other part has this one.
            unsafe { starts.as_mut_ptr().add(tile).write(start as u32) };
        }
    };
    // SAFETY: the body captures arguments. Each call writes starts of its own.
    unsafe { team.divide(starts.len(), search) };
}

/// # Safety
/// The contract of [`ThinTiles`].
pub unsafe fn thin_tiles<C: KeyCode, V: Pod>(kernel: ThinTiles<C, V>, team: Team) {
    /// The number of entries of the hash table.
    const ENTRIES: usize = 2 * CHUNK;
    let ThinTiles { pairs, starts, digits, kept, .. } = kernel;
    let len = pairs.keys.len();
    // SAFETY: nothing writes the starts.
    let starts = unsafe { starts.as_slice() };
    assert!(size_of::<V>() == 0 || pairs.values.len() >= len, "there is a value for each key");
    let thin = |chunk: usize| {
        let start = chunk * CHUNK;
        // SAFETY: the chunk exists, and no other call has it.
        let keys =
            unsafe { std::slice::from_raw_parts_mut(pairs.keys.as_mut_ptr().add(start), CHUNK.min(len - start)) };
        let tile = digits.tile(keys[0]) as usize;
        let is_long = digits.tile(keys[keys.len() - 1]) as usize == tile
            && starts[tile + 1].saturating_sub(starts[tile]) as usize > LONG_TILE;
        let mut left = keys.len();
        if is_long {
            // 0, or a position in the chunk plus one.
            let mut entries = [0u16; ENTRIES];
            let mut is_last = [false; CHUNK];
            for position in (0..keys.len()).rev() {
                let mut entry = digits.spread(keys[position]) as usize % ENTRIES;
                // Ends: there are more entries than pairs.
                while entries[entry] != 0 && keys[entries[entry] as usize - 1] != keys[position] {
                    entry = (entry + 1) % ENTRIES;
                }
                if entries[entry] == 0 {
                    entries[entry] = position as u16 + 1;
                    is_last[position] = true;
                }
            }
            left = 0;
            for position in (0..keys.len()).filter(|&position| is_last[position]) {
                keys[left] = keys[position];
                if size_of::<V>() > 0 {
                    // SAFETY: there is a value for each key, and no other call has these.
                    unsafe {
                        let values = pairs.values.as_mut_ptr().add(start);
                        values.add(left).write(values.add(position).read());
                    }
                }
                left += 1;
            }
        }
        // SAFETY: there is an element for each chunk, and no other call has this one.
        unsafe { kept.as_mut_ptr().add(chunk).write(left as u32) };
    };
    // SAFETY: the body captures arguments. Each call writes a chunk and an element of its own.
    unsafe { team.each(len.div_ceil(CHUNK).min(kept.len()), thin) };
}

/// The pairs of a tile come in their order, so the last value of a key is the one that stays.
///
/// # Safety
/// The contract of [`FillTiles`].
pub unsafe fn fill_tiles<C: KeyCode, V: Pod, const WIDTH: usize>(kernel: FillTiles<C, V, WIDTH>, team: Team) {
    /// The most entries for keys that find their bucket full.
    const MAX_SPILL: usize = spill_slots::<u32>();
    let FillTiles { pairs, starts, kept, table, spill, counts, .. } = kernel;
    let table = Table::new(table);
    // SAFETY: nothing writes the inputs, and the counters are used only in this way.
    let (keys, values, starts, kept, [placed, spilled, unplaced]) = unsafe {
        let counters = [Count::Placed, Count::Spilled, Count::Unplaced].map(|at| counter(counts, at as usize));
        (pairs.keys.as_slice(), pairs.values.as_slice(), starts.as_slice(), kept.as_slice(), counters)
    };
    let fill = |tile: usize| {
        let first = tile * tile_buckets::<C>(WIDTH);
        let buckets = first as u32..table.buckets().min(first + tile_buckets::<C>(WIDTH)) as u32;
        for bucket in buckets.clone() {
            // SAFETY: the bucket exists, and no other call has it.
            unsafe {
                table.keys(bucket).cast::<[C; WIDTH]>().write([table.map.empty.of(bucket); WIDTH]);
                if size_of::<V>() > 0 {
                    table.values(bucket).cast::<[V; WIDTH]>().write([V::zeroed(); WIDTH]);
                }
            }
        }

        // A hash table of positions in the tile plus one; 0 if an entry is free.
        let mut entries = [0u32; MAX_SPILL];
        let entries = &mut entries[..spill_slots::<C>()];
        let start = starts[tile] as usize;
        let len = (starts[tile + 1] as usize).saturating_sub(start);
        let keys = &keys[start..start + len];
        let values = if size_of::<V>() == 0 { values } else { &values[start..start + len] };
        let (mut placed_here, mut unplaced_here) = (0, 0);
        let mut put_pairs = |positions: Range<usize>| {
            for position in positions {
                let key = keys[position];
                let choices = table.map.hash.choices(key);
                let bucket = choices.get(0);
                assert!(buckets.contains(&bucket), "the pairs are sorted by tile");
                // SAFETY: the bucket exists, and no other call has it.
                let there = unsafe { table.load(bucket) };
                let (own, empties) = (there.slots_with(key), there.slots_with(table.map.empty.of(bucket)));
                let slots = if own != 0 { own } else { empties };
                if slots != 0 {
                    let slot = slots.trailing_zeros();
                    placed_here += u64::from(own == 0);
                    // SAFETY: the same.
                    unsafe {
                        table.keys(bucket).add(slot as usize).write(key);
                        table.set_value(bucket, slot, value_at(values, position));
                    }
                    continue;
                }
                let probes = (0..entries.len()).map(|probe| (choices.salt() as usize + probe) % entries.len());
                let is_mine = |entry: &usize| entries[*entry] == 0 || keys[entries[*entry] as usize - 1] == key;
                match { probes }.find(is_mine) {
                    Some(entry) => entries[entry] = position as u32 + 1,
                    None => unplaced_here += 1,
                }
            }
        };
        if len > LONG_TILE && !kept.is_empty() {
            // Repeated keys were removed from its chunks.
            let chunks = start / CHUNK..(start + len).div_ceil(CHUNK);
            for (chunk, &left) in chunks.clone().zip(&kept[chunks]) {
                let (from, end) = (chunk * CHUNK, chunk * CHUNK + left as usize);
                put_pairs(from.max(start) - start..end.clamp(start, start + len) - start);
            }
        } else {
            put_pairs(0..len);
        }

        // SAFETY: positions in the list are given once.
        let write = |at: usize, (key, value)| unsafe { put(spill, at, key, value) };
        let mut list = Appender::new(spilled, (C::MIN, V::zeroed()), write);
        for latest in entries.iter().filter(|&&latest| latest != 0).map(|&latest| latest as usize - 1) {
            list.push((keys[latest], value_at(values, latest)));
        }
        list.finish();
        add(placed, placed_here);
        add(unplaced, unplaced_here);
    };
    // SAFETY: the body captures arguments and counters. Each call writes buckets and pairs of its own.
    unsafe { team.each(starts.len().saturating_sub(1), fill) };
}
