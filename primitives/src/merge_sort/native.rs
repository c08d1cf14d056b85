//! The bodies of the merge sort's kernels for the CPU. See [`kernel`](super::device) for what they do and for their contracts.

#![deny(unsafe_op_in_unsafe_fn)]

use super::device::{MergeGroups, SplitGroups};
use crate::compare::KeyOrder;
use crate::kernel::Team;
use crate::merge::native::merge_pieces;
use bytemuck::Pod;
use std::ops::Range;

/// The merge divides its groups itself.
///
/// # Safety
/// The contract of [`split_groups`](super::device::SplitGroups).
pub(super) unsafe fn split_groups<K: Pod, C: KeyOrder<K>>(_: SplitGroups<K, C>, _: Team) {}

/// Merges the groups in rounds, two runs at a time. Several workers merge one group if there are few.
///
/// # Safety
/// The contract of [`merge_groups`](super::device::MergeGroups).
pub(super) unsafe fn merge_groups<K: Pod, V: Pod, C: KeyOrder<K>, const THREADS: u32, const ITEMS: usize>(
    kernel: MergeGroups<K, V, C, THREADS, ITEMS>,
    team: Team,
) {
    let MergeGroups { keys, values, out_keys, out_values, compare, plan, .. } = kernel;
    // SAFETY: nothing writes the inputs, nor the number of keys.
    let (keys, values) = unsafe { (keys.get().as_slice(), values.as_slice()) };
    if keys.is_empty() {
        return;
    }
    let (run, group) = (plan.run as usize, (plan.run as usize) << plan.rounds);
    let groups = keys.len().div_ceil(group);
    let parts = (2 * team.parts(keys.len())).div_ceil(groups);
    // What a part of a group takes of each of its runs: the items between two keys of the first run.
    let shares = |start: usize, part: usize| -> Vec<Range<usize>> {
        let end = keys.len().min(start + group);
        let first = &keys[start..end.min(start + run)];
        let boundary = |part: usize, run: Range<usize>| match part {
            0 => run.start,
            part if part == parts => run.end,
            part => {
                let key = first[first.len() * part / parts];
                run.start + keys[run].partition_point(|&other| compare.less(other, key))
            }
        };
        let runs = (start..end).step_by(run).map(|start| start..end.min(start + run));
        // A comparator that contradicts itself may put the boundaries in any order.
        runs.map(|run| {
            (1..=part + 1).fold(run.start..run.start, |share, at| share.end..boundary(at, run.clone()).max(share.end))
        })
        .collect()
    };
    let merge = |task: usize| {
        let (start, part) = (task / parts * group, task % parts);
        let shares = shares(start, part);
        // The items of the runs before the part come first.
        let first_runs = (start..).step_by(run);
        let mut to = start + shares.iter().zip(first_runs).map(|(share, run)| share.start - run).sum::<usize>();
        let value = |at: usize| if size_of::<V>() > 0 { values[at] } else { V::zeroed() };
        let mut items: Vec<(K, V)> = Vec::with_capacity(shares.iter().map(ExactSizeIterator::len).sum());
        let mut ends = Vec::with_capacity(shares.len());
        for share in shares {
            items.extend(share.map(|at| (keys[at], value(at))));
            ends.push(items.len());
        }
        for (key, value) in merge_pieces(items, ends, |a, b| compare.less(a.0, b.0)) {
            // SAFETY: the output is as long as the input, and no other part writes here.
            unsafe {
                out_keys.as_mut_ptr().add(to).write(key);
                if size_of::<V>() > 0 {
                    out_values.as_mut_ptr().add(to).write(value);
                }
            }
            to += 1;
        }
    };
    // SAFETY: the body captures arguments and plain data. Each call writes outputs of its own.
    unsafe { team.each(groups * parts, merge) };
}
