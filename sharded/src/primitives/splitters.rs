//! Where to cut sorted shards so that all parts have the lengths that are asked for.
//!
//! A cut is at the element that has so many others before it: by its code, then by its shard, then by its position. So equal keys may be on
//! both sides of a cut, and the parts have exactly the lengths that are asked for, whatever the keys are.
//!
//! All ranks search together, and for all cuts at the same time. For each cut every shard has a window of positions, all of its elements
//! at first. In each round, samples are taken from the windows of all shards, at equal distances. Every shard counts its elements that are
//! less than each sample, and those that are not greater. The sums are the positions of the samples among all elements. They end the
//! search, or they narrow the windows to what lies between two samples. No window keeps a sample, so the search ends. For most keys, a round
//! leaves one of some dozens of elements.

use super::call::{Turn, numbers};
use crate::transport::Lost;
use crate::world::World;
use core::cmp::Ordering;
use core::ops::Range;
use gpu_dictionary::KeyCode;
use gpu_primitives::{DeviceVec, Error, Stream, permute, search};

/// The samples per cut and round; two for each shard if there are more shards.
const SAMPLES: usize = 128;
/// The samples per round that are counted, of all cuts together: if there are more, some are left out, but not below
/// [`COUNTED_PER_CUT`].
const COUNTED: usize = 2048;
const COUNTED_PER_CUT: usize = 16;

/// A cut that is searched for.
struct Search {
    /// How many elements come before it.
    target: usize,
    /// Where it can be in each shard.
    windows: Vec<Range<usize>>,
    /// Where it is in each shard.
    found: Option<Vec<usize>>,
}

impl Search {
    /// Returns the positions of the samples in each shard. `phase` is in `0..phases`: cuts with the same windows have other samples.
    fn positions(&self, samples: usize, phase: usize, phases: usize) -> Vec<Vec<u64>> {
        let len: usize = self.windows.iter().map(Range::len).sum();
        let samples = samples.min(len);
        let mut positions = vec![Vec::new(); self.windows.len()];
        let (mut shard, mut start) = (0, 0);
        for i in 0..samples {
            // Below `len`, since `i * phases + phase` is below `samples * phases`.
            let at = ((i * phases + phase) as u128 * len as u128 / (samples * phases) as u128) as usize;
            while at - start >= self.windows[shard].len() {
                start += self.windows[shard].len();
                shard += 1;
            }
            positions[shard].push((self.windows[shard].start + at - start) as u64);
        }
        positions
    }

    /// Ends the search, or narrows the windows. `counted` has ascending samples. Returns whether it has come nearer to the end.
    fn narrow(&mut self, counted: &[Counted]) -> bool {
        let before: usize = self.windows.iter().map(Range::len).sum();
        let next = counted.partition_point(|sample| sample.not_greater <= self.target);
        if let Some(sample) = counted.get(next) {
            if sample.less <= self.target {
                // Equal elements are divided in the order of the shards.
                let mut rest = self.target - sample.less;
                let cut = |window: &Range<usize>| {
                    let equal = rest.min(window.len());
                    rest -= equal;
                    window.start + equal
                };
                self.found = Some(sample.equal.iter().map(cut).collect());
                return true;
            }
            for (window, equal) in self.windows.iter_mut().zip(&sample.equal) {
                window.end = window.end.min(equal.start).max(window.start);
            }
        }
        if let Some(sample) = next.checked_sub(1).map(|last| &counted[last]) {
            for (window, equal) in self.windows.iter_mut().zip(&sample.equal) {
                window.start = window.start.max(equal.end).min(window.end);
            }
        }
        self.windows.iter().map(Range::len).sum::<usize>() < before
    }
}

/// A sample whose place among all elements is known.
struct Counted {
    less: usize,
    not_greater: usize,
    /// Where the elements are in each shard that are equal to it.
    equal: Vec<Range<usize>>,
}

fn ascending<C: KeyCode>(a: &C, b: &C) -> Ordering {
    a.partial_cmp(b).unwrap_or(Ordering::Equal)
}

/// Sorts codes, and leaves each of them once.
fn distinct<C: KeyCode>(mut codes: Vec<C>) -> Vec<C> {
    codes.sort_unstable_by(ascending);
    codes.dedup();
    codes
}

fn inconsistent(world: &World) -> Error {
    world.lose(Lost::new("the ranks have told each other positions that do not fit together"))
}

/// Returns, for each target, the position in each shard before which so many elements of all shards are. `sorted` has the codes of
/// the shards of this rank, and `lens` the lengths of all shards. Targets ascend.
pub(crate) fn cuts<C: KeyCode>(
    turn: &Turn<'_>,
    sorted: &[DeviceVec<C>],
    lens: &[usize],
    targets: &[usize],
) -> Result<Vec<Vec<usize>>, Error> {
    let (world, total) = (turn.world, lens.iter().sum::<usize>());
    let new = |&target: &usize| Search {
        target,
        windows: lens.iter().map(|&len| 0..len).collect(),
        found: match target {
            0 => Some(vec![0; lens.len()]),
            target if target >= total => Some(lens.to_vec()),
            _ => None,
        },
    };
    let mut searches: Vec<Search> = targets.iter().map(new).collect();
    // One more than a multiple of the shards: then no two of them have samples at the same places of windows of one length. If keys are in random
    // order, such samples would be much the same.
    let samples = (SAMPLES / lens.len()).max(2) * lens.len() + 1;
    while searches.iter().any(|search| search.found.is_none()) {
        let open = || searches.iter().enumerate().filter(|(_, search)| search.found.is_none());
        let positions: Vec<Vec<Vec<u64>>> =
            open().map(|(phase, search)| search.positions(samples, phase, searches.len())).collect();
        let chosen = gathered_samples(turn, sorted, &positions)?;
        let counted = counted(turn, sorted, lens, &chosen)?;
        let is_nearer = |search: &mut Search| search.found.is_some() || search.narrow(&counted);
        if !searches.iter_mut().all(is_nearer) {
            return Err(inconsistent(world));
        }
    }
    let cuts: Vec<Vec<usize>> = searches.into_iter().filter_map(|search| search.found).collect();
    // What the other ranks have said decides how much memory they write to.
    let in_order = |shard: usize| {
        let ends = cuts.iter().map(|cut| cut[shard]).chain([lens[shard]]);
        ends.clone().zip(ends.skip(1)).all(|(start, end)| start <= end)
    };
    let fits = |(cut, &target): (&Vec<usize>, &usize)| cut.iter().sum::<usize>() == target;
    match (0..lens.len()).all(in_order) && cuts.iter().zip(targets).all(fits) {
        true => Ok(cuts),
        false => Err(inconsistent(world)),
    }
}

/// Gives every rank the samples at these positions: by the cut, then by the shard. Returns those that will be counted, in order.
fn gathered_samples<C: KeyCode>(
    turn: &Turn<'_>,
    sorted: &[DeviceVec<C>],
    positions: &[Vec<Vec<u64>>],
) -> Result<Vec<C>, Error> {
    let (world, own_shards) = (turn.world, turn.own_shards());
    let first = world.first_shard();
    let own = turn.on_shards(|(own, home)| {
        let wanted: Vec<u64> = positions.iter().flat_map(|of_cut| of_cut[first + own].iter().copied()).collect();
        let mut samples = home.uninit::<C>(wanted.len())?;
        permute::gather(&home, &sorted[own], &home.upload(&wanted)?, &mut samples)?;
        samples.to_vec(&home)
    });
    let all = turn.share(own.map(|own| bytemuck::cast_slice(&own.concat()).to_vec()))?;
    let read = |bytes: &[u8]| bytes.chunks_exact(size_of::<C>()).map(bytemuck::pod_read_unaligned).collect();
    let mut of_rank: Vec<std::vec::IntoIter<C>> = Vec::new();
    for (rank, bytes) in all.iter().enumerate() {
        let shards = rank * own_shards..(rank + 1) * own_shards;
        let expected: usize = positions.iter().flat_map(|of_cut| &of_cut[shards.clone()]).map(Vec::len).sum();
        if bytes.len() != expected * size_of::<C>() {
            return Err(inconsistent(world));
        }
        let samples: Vec<C> = read(bytes);
        of_rank.push(samples.into_iter());
    }
    // A rank sends the samples of its first shard for all cuts, then those of the second.
    let mut of_cut = vec![Vec::new(); positions.len()];
    for (shard, from) in (0..world.shards()).map(|shard| (shard, shard / own_shards)) {
        for (samples, positions) in of_cut.iter_mut().zip(positions) {
            samples.extend(of_rank[from].by_ref().take(positions[shard].len()));
        }
    }
    let most = (COUNTED / positions.len().max(1)).max(COUNTED_PER_CUT);
    let some = |samples: Vec<C>| {
        let samples = distinct(samples);
        let count = samples.len().min(most);
        // In the middle of equal parts.
        (0..count).map(|i| samples[(2 * i + 1) * samples.len() / (2 * count)]).collect::<Vec<C>>()
    };
    Ok(distinct(of_cut.into_iter().flat_map(some).collect()))
}

/// Finds the places of ascending samples among the elements of all shards.
fn counted<C: KeyCode>(
    turn: &Turn<'_>,
    sorted: &[DeviceVec<C>],
    lens: &[usize],
    samples: &[C],
) -> Result<Vec<Counted>, Error> {
    let own = turn.on_shards(|(own, home)| equal_ranges(&home, &sorted[own], samples));
    let all = turn.share(own.map(|own| bytemuck::cast_slice(&own.concat()).to_vec()))?;
    let all: Vec<usize> = all.iter().flat_map(|bytes| numbers(bytes)).collect();
    if all.len() != 2 * samples.len() * lens.len() {
        return Err(inconsistent(turn.world));
    }
    // Of each shard, the lower and then the upper ends.
    let of_shard: Vec<(&[usize], &[usize])> =
        all.chunks(2 * samples.len()).map(|ends| ends.split_at(samples.len())).collect();
    let of_sample = |i: usize| {
        let equal: Vec<Range<usize>> = of_shard.iter().map(|(lower, upper)| lower[i]..upper[i]).collect();
        let is_valid = equal.iter().zip(lens).all(|(equal, &len)| equal.start <= equal.end && equal.end <= len);
        let less = equal.iter().map(|equal| equal.start).sum();
        let not_greater = equal.iter().map(|equal| equal.end).sum();
        is_valid.then_some(Counted { less, not_greater, equal })
    };
    (0..samples.len()).map(of_sample).collect::<Option<_>>().ok_or_else(|| inconsistent(turn.world))
}

/// Returns the lower ends of the elements that are equal to each sample, and then the upper ends.
fn equal_ranges<C: KeyCode>(home: &Stream, sorted: &DeviceVec<C>, samples: &[C]) -> Result<Vec<u64>, Error> {
    let samples = home.upload(samples)?;
    let mut ends = home.uninit::<u64>(2 * samples.len())?;
    let (lower, upper) = ends.as_mut_slice().split_at_mut(samples.len())?;
    search::equal_range(home, sorted, &samples, lower, upper, C::ORDER)?;
    ends.to_vec(home)
}

#[cfg(test)]
mod tests {
    use super::{Counted, Search};

    /// Shards of sorted numbers, and their concatenation, sorted by number and shard.
    fn search(shards: &[&[u32]], target: usize, samples: usize) -> (Vec<usize>, usize) {
        let windows = shards.iter().map(|shard| 0..shard.len()).collect();
        let mut search = Search { target, windows, found: None };
        for round in 1.. {
            let positions = search.positions(samples, round % 3, 3);
            let count: usize = positions.iter().map(Vec::len).sum();
            assert_eq!(count, samples.min(search.windows.iter().map(|window| window.len()).sum()));
            let mut chosen: Vec<u32> = Vec::new();
            for (shard, positions) in shards.iter().zip(&positions) {
                chosen.extend(positions.iter().map(|&at| shard[at as usize]));
            }
            chosen.sort_unstable();
            chosen.dedup();
            let counted: Vec<Counted> = chosen
                .iter()
                .map(|sample| {
                    let range =
                        |shard: &&[u32]| shard.partition_point(|x| x < sample)..shard.partition_point(|x| x <= sample);
                    let equal: Vec<_> = shards.iter().map(range).collect();
                    let (less, not_greater) =
                        (equal.iter().map(|range| range.start).sum(), equal.iter().map(|range| range.end).sum());
                    Counted { less, not_greater, equal }
                })
                .collect();
            assert!(search.narrow(&counted), "round {round} has changed nothing");
            if let Some(found) = search.found {
                return (found, round);
            }
        }
        unreachable!("the loop above ends only by returning")
    }

    #[test]
    fn cuts_are_where_a_sort_has_them() {
        let long: Vec<u32> = (0..5000).map(|i| i / 3).collect();
        let far: Vec<u32> = (0..700).map(|i| 1000 + i).collect();
        let cases: [&[&[u32]]; 6] = [
            &[&[1, 2, 3], &[1, 2, 3], &[]],
            &[&[5; 40], &[5; 1], &[5; 17]],
            &[&long, &far, &[0; 9], &[1_000_000; 300]],
            &[&[7]],
            &[&[], &[], &[3, 3, 4]],
            &[&far, &far, &far],
        ];
        for shards in cases {
            let mut all: Vec<(u32, usize)> = Vec::new();
            for (number, shard) in shards.iter().enumerate() {
                all.extend(shard.iter().map(|&x| (x, number)));
            }
            all.sort();
            for samples in [1, 2, 5, 64] {
                for target in (0..all.len()).step_by(1 + all.len() / 13) {
                    let (found, rounds) = search(shards, target, samples);
                    let expected: Vec<usize> = (0..shards.len())
                        .map(|number| all[..target].iter().filter(|&&(_, shard)| shard == number).count())
                        .collect();
                    assert_eq!(found, expected, "target {target} of {shards:?}");
                    assert!(samples < 64 || rounds <= 3, "{rounds} rounds");
                }
            }
        }
    }
}
