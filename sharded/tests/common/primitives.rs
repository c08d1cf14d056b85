//! Primitives on many GPUs, compared with what one host thread makes of the elements of all ranks. Every rank knows the elements of all.

use bytemuck::{Pod, Zeroable};
use gpu_dictionary::Key;
use gpu_dictionary_conformance::Random;
use gpu_primitives::equality::{Equality, Same};
use gpu_primitives::monoid::Monoid;
use gpu_primitives::multisplit::Shift;
use gpu_primitives::operator::{Record, operator};
use gpu_primitives::scan::Max;
use gpu_primitives::{DeviceVec, Stream};
use gpu_sharded::World;
use gpu_sharded::primitives::{Spread, histogram, join, reduce, runs, scan, sort, top_k};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::ops::Range;

/// The function `x -> factor * x + summand`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable, Record)]
pub struct Affine {
    factor: u32,
    summand: u32,
}

/// One function after the other: not commutative.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub struct Then;

#[operator]
impl Monoid<Affine> for Then {
    fn identity(&self) -> Affine {
        Affine { factor: 1, summand: 0 }
    }

    fn combine(&self, a: Affine, b: Affine) -> Affine {
        Affine { factor: a.factor * b.factor, summand: a.summand * b.factor + b.summand }
    }
}

/// Combines functions on the host, where arithmetic does not wrap by itself.
fn then(a: Affine, b: Affine) -> Affine {
    Affine {
        factor: a.factor.wrapping_mul(b.factor),
        summand: a.summand.wrapping_mul(b.factor).wrapping_add(b.summand),
    }
}

pub fn affine(i: u32) -> Affine {
    Affine { factor: i.wrapping_mul(0x9E37_79B1) | 1, summand: i.rotate_left(7) ^ 5 }
}

/// Numbers that differ by less than 3 are equal: not transitive, so it matters which elements are compared.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub struct Near;

#[operator]
impl Equality<u32> for Near {
    fn equal(&self, a: u32, b: u32) -> bool {
        let distance = if a < b { b - a } else { a - b };
        distance < 3
    }
}

/// The elements of every rank.
pub type Ranks = Vec<Vec<u32>>;

/// How elements are spread, and how often they occur.
pub fn kinds(ranks: usize) -> Vec<(&'static str, Ranks)> {
    let with = |len: &dyn Fn(usize) -> usize, key: &dyn Fn(&mut Random) -> u32| -> Ranks {
        let rank = |rank: usize| {
            let mut random = Random(rank as u64 + 7);
            (0..len(rank)).map(|_| key(&mut random)).collect()
        };
        (0..ranks).map(rank).collect()
    };
    let any = |random: &mut Random| random.number() as u32;
    let few = |random: &mut Random| random.below(5) as u32;
    let zipf = |random: &mut Random| (1000.0 / (1.0 + random.below(1000) as f64)) as u32;
    vec![
        ("nothing", with(&|_| 0, &any)),
        ("one element", with(&|rank| usize::from(rank + 1 == ranks), &any)),
        ("fewer than shards", with(&|rank| rank % 2, &any)),
        ("random", with(&|rank| 900 + 37 * rank, &any)),
        ("equal", with(&|rank| 300 + rank, &|_| 5)),
        ("few different", with(&|rank| 400 + rank, &few)),
        ("skewed", with(&|rank| 700 - 3 * rank, &zipf)),
        ("empty ranks", with(&|rank| if rank % 2 == 0 { 0 } else { 501 }, &zipf)),
        ("all on the last rank", with(&|rank| if rank + 1 == ranks { 2000 } else { 0 }, &any)),
        ("ranges in reverse", (0..ranks as u32).rev().map(|rank| (0..600).map(|i| rank * 600 + i).collect()).collect()),
    ]
}

/// Returns which of `len` elements this rank has if they are spread evenly, by shards.
fn even_parts(world: &World, len: usize) -> Vec<Range<usize>> {
    let shards = world.shards();
    let first = world.rank() * world.own_shards();
    (first..first + world.own_shards()).map(|shard| shard * len / shards..(shard + 1) * len / shards).collect()
}

/// Sorts the keys of all ranks, with their positions as values, and checks that they are even, in order, and stable.
pub fn check_sort<K: Key + Debug>(world: &World, stream: &Stream, ranks: &[Vec<K>], kind: &str) {
    let (all, rank) = (ranks.concat(), world.rank());
    let start: usize = ranks[..rank].iter().map(Vec::len).sum();
    let positions: Vec<u64> = (0..all.len() as u64).collect();
    let mut order: Vec<usize> = (0..all.len()).collect();
    order.sort_by(|&a, &b| all[a].code().partial_cmp(&all[b].code()).unwrap());
    let keys = stream.upload(&ranks[rank]).unwrap();
    let values = stream.upload(&positions[start..start + keys.len()]).unwrap();
    let sorted = sort::keys(stream, world, &keys).unwrap();
    let (with_values, along) = sort::pairs(stream, world, (&keys, &values)).unwrap();
    let bits = |keys: &DeviceVec<K>| bytemuck::cast_slice::<K, u8>(&keys.to_vec(stream).unwrap()).to_vec();
    for (own, range) in even_parts(world, all.len()).into_iter().enumerate() {
        let expected: Vec<K> = order[range.clone()].iter().map(|&i| all[i]).collect();
        let expected = bytemuck::cast_slice::<K, u8>(&expected);
        assert!(bits(&sorted.parts()[own]) == expected, "{kind}: keys of shard {own} of {world:?}");
        assert!(bits(&with_values.parts()[own]) == expected, "{kind}: keys of pairs of shard {own} of {world:?}");
        let expected: Vec<u64> = order[range].iter().map(|&i| i as u64).collect();
        assert!(along.parts()[own].to_vec(stream).unwrap() == expected, "{kind}: values of shard {own} of {world:?}");
    }
    assert!(bits(&keys) == bytemuck::cast_slice::<K, u8>(&ranks[rank]), "{kind}: the input has changed");
}

pub fn check_reductions_and_scans(world: &World, stream: &Stream, ranks: &Ranks, kind: &str) {
    let (all, rank) = (ranks.concat(), world.rank());
    let start: usize = ranks[..rank].iter().map(Vec::len).sum();
    let numbers = stream.upload(&ranks[rank]).unwrap();
    let sum = all.iter().fold(0u32, |sum, &x| sum.wrapping_add(x));
    assert_eq!(reduce::sum(stream, world, &numbers).unwrap(), sum, "{kind}");
    let largest = all.iter().copied().max().unwrap_or(0);
    assert_eq!(reduce::reduce(stream, world, &numbers, Max).unwrap(), largest, "{kind}");

    let functions: Vec<Affine> = all.iter().map(|&x| affine(x)).collect();
    let own = start..start + numbers.len();
    let elements = stream.upload(&functions[own.clone()]).unwrap();
    let total = functions.iter().fold(Then.identity(), |total, &function| then(total, function));
    assert_eq!(reduce::reduce(stream, world, &elements, Then).unwrap(), total, "{kind}");
    let initial = affine(99);
    let (mut inclusive, mut exclusive) = (Vec::new(), Vec::new());
    let (mut total, mut before) = (Then.identity(), initial);
    for &function in &functions {
        total = then(total, function);
        inclusive.push(total);
        exclusive.push(before);
        before = then(before, function);
    }
    let scanned = scan::inclusive(stream, world, &elements, Then).unwrap();
    assert!(scanned.to_vec(stream).unwrap() == inclusive[own.clone()], "{kind}: inclusive");
    let scanned = scan::exclusive(stream, world, &elements, Then, initial).unwrap();
    assert!(scanned.to_vec(stream).unwrap() == exclusive[own], "{kind}: exclusive");
}

/// Returns the runs by an equality of neighbours: where they begin, and the combination of their values.
fn runs_of(keys: &[u32], equal: impl Fn(u32, u32) -> bool) -> Vec<(usize, Affine)> {
    let mut runs: Vec<(usize, Affine)> = Vec::new();
    for (i, &key) in keys.iter().enumerate() {
        let value = affine(i as u32);
        match runs.last_mut() {
            Some((_, total)) if equal(keys[i - 1], key) => *total = then(*total, value),
            _ => runs.push((i, value)),
        }
    }
    runs
}

pub fn check_runs(world: &World, stream: &Stream, ranks: &Ranks, kind: &str) {
    // In the order they are in, and sorted: then runs go over several ranks.
    let mut sorted = ranks.concat();
    sorted.sort_unstable();
    let mut rest = &sorted[..];
    let sorted: Ranks = ranks
        .iter()
        .map(|rank| {
            let (own, after) = rest.split_at(rank.len());
            rest = after;
            own.to_vec()
        })
        .collect();
    for (ranks, order) in [(ranks, "as they are"), (&sorted, "sorted")] {
        let (all, rank) = (ranks.concat(), world.rank());
        let start: usize = ranks[..rank].iter().map(Vec::len).sum();
        let own = start..start + ranks[rank].len();
        let keys = stream.upload(&ranks[rank]).unwrap();
        let values: Vec<Affine> = own.clone().map(|i| affine(i as u32)).collect();
        let values = stream.upload(&values).unwrap();
        let check =
            |runs: Vec<(usize, Affine)>, kept: Spread<u32>, pairs: (Spread<u32>, Spread<Affine>), what: &str| {
                let here: Vec<_> = runs.into_iter().filter(|(at, _)| own.contains(at)).collect();
                let expected: Vec<u32> = here.iter().map(|&(at, _)| all[at]).collect();
                let totals: Vec<Affine> = here.iter().map(|&(_, total)| total).collect();
                assert!(kept.to_vec(stream).unwrap() == expected, "{kind}, {order}, {what}: unique");
                assert!(pairs.0.to_vec(stream).unwrap() == expected, "{kind}, {order}, {what}: keys");
                assert!(pairs.1.to_vec(stream).unwrap() == totals, "{kind}, {order}, {what}: totals");
            };
        let kept = runs::unique(stream, world, &keys, Same).unwrap();
        let pairs = runs::reduce_by_key(stream, world, (&keys, &values), Same, Then).unwrap();
        check(runs_of(&all, |a, b| a == b), kept, pairs, "equal");
        let kept = runs::unique(stream, world, &keys, Near).unwrap();
        let pairs = runs::reduce_by_key(stream, world, (&keys, &values), Near, Then).unwrap();
        check(runs_of(&all, |a, b| a.abs_diff(b) < 3), kept, pairs, "near");
    }
}

pub fn check_top_k_and_histogram(world: &World, stream: &Stream, ranks: &Ranks, kind: &str) {
    let (all, rank) = (ranks.concat(), world.rank());
    let keys = stream.upload(&ranks[rank]).unwrap();
    let mut order: Vec<u64> = (0..all.len() as u64).collect();
    for k in [0, 1, 7, 450, 100_000] {
        for is_largest in [true, false] {
            let best = match is_largest {
                true => top_k::largest(stream, world, &keys, k).unwrap(),
                false => top_k::smallest(stream, world, &keys, k).unwrap(),
            };
            let key = |at: &u64| all[*at as usize];
            order.sort_by(|a, b| if is_largest { key(b).cmp(&key(a)) } else { key(a).cmp(&key(b)) }.then(a.cmp(b)));
            let expected = &order[..k.min(all.len())];
            assert!(best.positions.to_vec(stream).unwrap() == expected, "{kind}: positions of the best {k}");
            let expected: Vec<u32> = expected.iter().map(key).collect();
            assert!(best.keys.to_vec(stream).unwrap() == expected, "{kind}: keys of the best {k}");
        }
    }
    let mut expected = vec![0u64; 9];
    all.iter().filter(|&&x| x < 9 << 28 >> 1).for_each(|&x| expected[(x >> 28) as usize] += 1);
    expected.truncate(8);
    let counts = histogram::by(stream, world, &keys, 8, Shift::by(28)).unwrap();
    let counted: Vec<u64> = (0..8).map(|bin| all.iter().filter(|&&x| x >> 28 == bin).count() as u64).collect();
    assert_eq!(counts.to_vec(stream).unwrap(), counted, "{kind}");
    let counts = histogram::even(stream, world, &keys, 5, 0, 1000).unwrap();
    let counted: Vec<u64> =
        (0..5).map(|bin| all.iter().filter(|&&x| x < 1000 && x / 200 == bin).count() as u64).collect();
    assert_eq!(counts.to_vec(stream).unwrap(), counted, "{kind}");
    assert_eq!(histogram::by(stream, world, &keys, 0, Shift::by(28)).unwrap().len(), 0);
}

pub fn check_join(world: &World, stream: &Stream, ranks: &Ranks, kind: &str) {
    let rank = world.rank();
    // The other side: some of the keys, from other ranks, and some that are not there. Few of each key, so that there are not too many rows.
    let mut other: Ranks = vec![Vec::new(); ranks.len()];
    let mut taken: BTreeMap<u32, usize> = BTreeMap::new();
    for (i, &key) in ranks.concat().iter().enumerate().filter(|(i, _)| i % 3 == 0) {
        let times = taken.entry(key).or_default();
        *times += 1;
        if *times <= 3 {
            let to = (i + 1) % ranks.len();
            other[to].extend([key, key.wrapping_add(1)]);
        }
    }
    let model = |ranks: &Ranks| {
        let mut model: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
        ranks.concat().into_iter().zip(0u64..).for_each(|(key, at)| model.entry(key).or_default().push(at));
        model
    };
    let upload = |ranks: &Ranks| {
        let start = ranks[..rank].iter().map(Vec::len).sum::<usize>() as u64;
        let positions: Vec<u64> = (start..start + ranks[rank].len() as u64).collect();
        (stream.upload(&ranks[rank]).unwrap(), stream.upload(&positions).unwrap())
    };
    let (left, right) = (upload(ranks), upload(&other));
    let rows = join::inner(stream, world, (&left.0, &left.1), (&right.0, &right.1)).unwrap();
    let (left, right) = (model(ranks), model(&other));
    let mut here: BTreeMap<u32, Vec<(u64, u64)>> = BTreeMap::new();
    for own in 0..world.own_shards() {
        let keys = rows.keys.parts()[own].to_vec(stream).unwrap();
        assert!(keys.is_sorted(), "{kind}: the keys of a shard");
        let positions = [&rows.left, &rows.right].map(|side| side.parts()[own].to_vec(stream).unwrap());
        assert!(keys.len() == positions[0].len() && keys.len() == positions[1].len(), "{kind}");
        for ((key, left), right) in keys.into_iter().zip(&positions[0]).zip(&positions[1]) {
            here.entry(key).or_default().push((*left, *right));
        }
    }
    let rows_of = |key: &u32| -> Vec<(u64, u64)> {
        let (left, right) = (left.get(key), right.get(key));
        let (left, right) = (left.map_or(&[][..], Vec::as_slice), right.map_or(&[][..], Vec::as_slice));
        left.iter().flat_map(|&left| right.iter().map(move |&right| (left, right))).collect()
    };
    for (key, rows) in &here {
        assert!(*rows == rows_of(key), "{kind}: the rows of {key}");
    }
    // Each key that matches is on one shard.
    let here = stream.upload(&[here.len() as u64]).unwrap();
    let expected = left.keys().filter(|&key| right.contains_key(key)).count() as u64;
    let found = reduce::sum(stream, &world.clone().shards_per_rank(1), &here).unwrap();
    assert_eq!(found, expected, "{kind}: keys that match");
}

/// Checks all primitives with all kinds of elements.
pub fn check_all(world: &World, stream: &Stream) {
    for (kind, ranks) in kinds(world.ranks()) {
        check_sort(world, stream, &ranks, kind);
        check_reductions_and_scans(world, stream, &ranks, kind);
        check_runs(world, stream, &ranks, kind);
        check_top_k_and_histogram(world, stream, &ranks, kind);
        check_join(world, stream, &ranks, kind);
    }
}
