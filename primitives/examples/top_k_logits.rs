//! The most probable tokens of each sequence in a batch: the largest logits of each row, at a temperature.
//!
//! `cargo run --release -p gpu-primitives --example top_k_logits`

use gpu_primitives::operator::map;
use gpu_primitives::source;
use gpu_primitives::top_k::{self, Rows};
use gpu_primitives::{Device, Error};

const SEQUENCES: usize = 16;
const VOCABULARY: usize = 50_257;
const K: usize = 40;

fn main() -> Result<(), Error> {
    let logits: Vec<f32> = (0..SEQUENCES * VOCABULARY)
        .map(|i| ((i as u32).wrapping_mul(2_654_435_761) >> 8) as f32 / (1 << 24) as f32 * 20.0 - 10.0)
        .collect();

    let stream = Device::default()?.stream()?;
    let on_device = stream.upload(&logits)?;
    // Divided by the temperature as they are read: nothing is written but the result.
    let scaled = source::map(&on_device, map!(|logit: f32| -> f32 { logit / 0.5 }));
    let (mut largest, mut tokens) = (stream.uninit::<f32>(SEQUENCES * K)?, stream.uninit::<u32>(SEQUENCES * K)?);
    top_k::segmented_largest(&stream, scaled, Rows::of_len(VOCABULARY), K, (&mut largest, &mut tokens))?;

    let (largest, tokens) = (largest.to_vec(&stream)?, tokens.to_vec(&stream)?);
    println!("the best {K} of {VOCABULARY} tokens for {SEQUENCES} sequences, on {}", stream.device().name());
    for sequence in 0..SEQUENCES {
        let row = &logits[sequence * VOCABULARY..][..VOCABULARY];
        let (largest, tokens) = (&largest[sequence * K..][..K], &tokens[sequence * K..][..K]);
        let mut expected: Vec<usize> = (0..VOCABULARY).collect();
        expected.sort_by(|a, b| row[*b].total_cmp(&row[*a])); // stable: of equal logits, the first token
        assert!(tokens.iter().zip(&expected).all(|(found, expected)| *found as usize == *expected));
        assert!(largest.iter().zip(&expected).all(|(found, expected)| *found == row[*expected] / 0.5));

        let weights: Vec<f32> = largest.iter().map(|logit| (logit - largest[0]).exp()).collect();
        let probability = weights[0] / weights.iter().sum::<f32>();
        println!("sequence {sequence:2}: token {:5} with probability {probability:.3} among the best {K}", tokens[0]);
    }
    Ok(())
}
