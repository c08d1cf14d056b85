//! A sampler of tokens: temperature, top-k and top-p, for many sequences at once. A step is recorded in a graph; nothing waits.
//!
//! `cargo run --release -p gpu-primitives --example sampler [SEQUENCES VOCABULARY STEPS]`

use gpu_primitives::monoid::{Min, Sum};
use gpu_primitives::operator::{map, operator};
use gpu_primitives::source::{self, counting};
use gpu_primitives::top_k::{self, Rows};
use gpu_primitives::transform::{map_in_place, map2};
use gpu_primitives::{Device, DeviceKind, DeviceVec, Error, Stream, permute, reduce, scan};
use std::time::Instant;

const K: usize = 64;
const TEMPERATURE: f32 = 0.7;
const TOP_P: f32 = 0.9;

/// Returns `e` to the power of `x`, for `x` up to 0, to a few units in the last place.
#[operator]
fn exp(x: f32) -> f32 {
    let x = (x * std::f32::consts::LOG2_E).max(-126.0);
    let whole = x.round_ties_even();
    let y = (x - whole) * std::f32::consts::LN_2;
    // The exponential series: `y` is at most 0.35.
    let series =
        1.0 + y * (1.0 + y * (0.5 + y * (1.0 / 6.0 + y * (1.0 / 24.0 + y * (1.0 / 120.0 + y * (1.0 / 720.0))))));
    series * f32::from_bits(((whole as i32 + 127) << 23) as u32)
}

/// The memory of a step. It is the same in every step, so that a graph can be recorded.
struct Sampler {
    sequences: usize,
    /// The states of the random numbers, one per sequence.
    states: DeviceVec<u64>,
    largest: DeviceVec<f32>,
    candidates: DeviceVec<u32>,
    /// For each candidate, the index of the first and of the last one of its sequence, and the number of the sequence.
    firsts: DeviceVec<u32>,
    lasts: DeviceVec<u32>,
    rows: DeviceVec<u32>,
    /// Where the candidates of each sequence begin, and the end.
    offsets: DeviceVec<u32>,
    tokens: DeviceVec<u32>,
}

impl Sampler {
    fn new(stream: &Stream, sequences: usize) -> Result<Self, Error> {
        let all = 0..(sequences * K) as u32;
        let (k, rows) = (K as u32, 0..=sequences as u32);
        let upload = |numbers: Vec<u32>| stream.upload(&numbers);
        Ok(Self {
            sequences,
            states: stream.upload(
                &(0..sequences as u64).map(|i| (i + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15)).collect::<Vec<_>>(),
            )?,
            largest: stream.uninit(sequences * K)?,
            candidates: stream.uninit(sequences * K)?,
            firsts: upload(all.clone().map(|i| i / k * k).collect())?,
            lasts: upload(all.clone().map(|i| i / k * k + k - 1).collect())?,
            rows: upload(all.map(|i| i / k).collect())?,
            offsets: upload(rows.map(|row| row * k).collect())?,
            tokens: stream.uninit(sequences)?,
        })
    }

    /// Chooses a token for each sequence.
    fn step(&mut self, stream: &Stream, logits: &DeviceVec<f32>) -> Result<(), Error> {
        let (sequences, all) = (self.sequences, self.sequences * K);
        // The best K logits of each sequence, the largest first.
        let scaled = source::map(logits, map!(|logit: f32| -> f32 { logit / TEMPERATURE }));
        let row = Rows::of_len(logits.len() / sequences);
        top_k::segmented_largest(stream, scaled, row, K, (&mut self.largest, &mut self.candidates))?;

        // Their weights, relative to the first one's, and the sums of these.
        let mut first = stream.uninit::<f32>(all)?;
        permute::gather(stream, &self.largest, &self.firsts, &mut first)?;
        let weight = map!(|logit: f32, first: f32| -> f32 { exp(logit - first) });
        let mut weights = stream.uninit::<f32>(all)?;
        map2(stream, &self.largest, &first, &mut weights, weight)?;
        let mut upto = stream.uninit::<f32>(all)?;
        scan::segmented_inclusive(stream, &weights, &self.offsets, &mut upto, Sum)?;

        // Those that together have the share of TOP_P: up to the first one that reaches it.
        let mut total = stream.uninit::<f32>(all)?;
        permute::gather(stream, &upto, &self.lasts, &mut total)?;
        let reached = map!(|upto: f32, total: f32| -> f32 { if upto >= TOP_P * total { upto } else { f32::INFINITY } });
        let mut kept = stream.uninit::<f32>(sequences)?;
        reduce::segmented(stream, source::map2(&upto, &total, reached), &self.offsets, &mut kept, Min)?;

        // A random share of their weights, and how many candidates lie below it.
        let next =
            map!(|x: u64| -> u64 { x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407) });
        map_in_place(stream, &mut self.states, next)?;
        let draw = map!(|kept: f32, state: u64| -> f32 { kept * ((state >> 40) as f32 / 16_777_216.0) });
        let mut drawn = stream.uninit::<f32>(sequences)?;
        map2(stream, &kept, &self.states, &mut drawn, draw)?;
        let mut drawn_of_each = stream.uninit::<f32>(all)?;
        permute::gather(stream, &drawn, &self.rows, &mut drawn_of_each)?;
        let is_below = map!(|upto: f32, drawn: f32| -> u32 { (upto <= drawn) as u32 });
        let mut below = stream.uninit::<u32>(sequences)?;
        reduce::segmented(stream, source::map2(&upto, &drawn_of_each, is_below), &self.offsets, &mut below, Sum)?;

        let place = map!(|row: u32, below: u32| -> u32 { row * K as u32 + below.min(K as u32 - 1) });
        let mut places = stream.uninit::<u32>(sequences)?;
        map2(stream, counting(0u32, sequences), &below, &mut places, place)?;
        permute::gather(stream, &self.candidates, &places, &mut self.tokens)?;
        Ok(())
    }
}

/// Returns the tokens that may be chosen for a sequence, with their probabilities.
fn expected(logits: &[f32]) -> Vec<(u32, f64)> {
    let mut tokens: Vec<u32> = (0..logits.len() as u32).collect();
    let scaled = |token: u32| logits[token as usize] / TEMPERATURE;
    tokens.sort_by(|&a, &b| scaled(b).total_cmp(&scaled(a)));
    tokens.truncate(K);
    let weight = |token: u32| f64::from(scaled(token) - scaled(tokens[0])).exp();
    let total: f64 = tokens.iter().map(|&token| weight(token)).sum();
    let mut upto = 0.0;
    let kept = tokens.iter().take_while(|&&token| {
        let is_kept = upto < f64::from(TOP_P) * total;
        upto += weight(token);
        is_kept
    });
    let kept: Vec<u32> = kept.copied().collect();
    let mass: f64 = kept.iter().map(|&token| weight(token)).sum();
    kept.into_iter().map(|token| (token, weight(token) / mass)).collect()
}

fn main() -> Result<(), Error> {
    let stream = Device::default()?.stream()?;
    let is_gpu = matches!(stream.device().kind(), DeviceKind::Cuda { .. });
    let asked: Vec<usize> = std::env::args().skip(1).filter_map(|argument| argument.parse().ok()).collect();
    let (sequences, vocabulary, steps) = match asked[..] {
        [sequences, vocabulary, steps] => (sequences, vocabulary, steps),
        _ if is_gpu => (64, 131_072, 1000),
        _ => (4, 4000, 200),
    };
    assert!(vocabulary >= K && sequences > 0 && steps > 0, "at least {K} tokens, a sequence and a step");
    let logits: Vec<f32> = (0..sequences * vocabulary)
        .map(|i| ((i as u32).wrapping_mul(2_654_435_761) >> 8) as f32 / (1 << 24) as f32)
        // A few tokens are much more probable than the others.
        .map(|x| 12.0 * x.powi(4))
        .collect();
    let on_device = stream.upload(&logits)?;

    let mut sampler = Sampler::new(&stream, sequences)?;
    sampler.step(&stream, &on_device)?; // compiles the kernels
    let (mut graph, ()) = stream.capture(|stream| sampler.step(stream, &on_device))?;
    let mut chosen = Vec::new();
    // SAFETY: here and below, the logits and the sampler's memory are still there.
    unsafe { graph.launch(&stream)? };
    stream.synchronize()?;
    let start = Instant::now();
    for _ in 0..steps {
        // SAFETY: see above.
        unsafe { graph.launch(&stream)? };
    }
    stream.synchronize()?;
    let per_step = start.elapsed().as_secs_f64() / steps as f64;
    println!("{sequences} sequences, {vocabulary} tokens, best {K}, on {}", stream.device().name());
    println!("{:.1} µs per step, {steps} steps", 1e6 * per_step);

    // What is chosen must be allowed, and as frequent as it is probable.
    let draws = 200;
    for _ in 0..draws {
        // SAFETY: see above.
        unsafe { graph.launch(&stream)? };
        chosen.push(sampler.tokens.to_vec(&stream)?);
    }
    for sequence in 0..sequences.min(4) {
        let allowed = expected(&logits[sequence * vocabulary..][..vocabulary]);
        let is_allowed = |token: u32| allowed.iter().any(|&(other, _)| other == token);
        assert!(
            chosen.iter().all(|tokens| is_allowed(tokens[sequence])),
            "sequence {sequence}: a token that is not allowed"
        );
        let (token, probability) = allowed[0];
        let frequency = chosen.iter().filter(|tokens| tokens[sequence] == token).count() as f64 / f64::from(draws);
        println!(
            "sequence {sequence}: {} tokens allowed; token {token}: {frequency:.3} of {probability:.3}",
            allowed.len()
        );
        assert!((frequency - probability).abs() < 0.15, "sequence {sequence}: {frequency} instead of {probability}");
    }
    Ok(())
}
