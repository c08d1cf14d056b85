//! A mixture of experts: tokens are brought together by the expert that each was given to, and back again.
//!
//! `cargo run --release -p gpu-primitives --example expert_offsets`

use gpu_primitives::{Device, Error, multisplit, permute};

const TOKENS: usize = 20_000;
const EXPERTS: u32 = 64;

/// The embedding of a token: what moves.
type Embedding = [f32; 8];

fn main() -> Result<(), Error> {
    let experts: Vec<u8> = (0..TOKENS as u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 26) as u8).collect();
    let embeddings: Vec<Embedding> = (0..TOKENS).map(|i| [i as f32; 8]).collect();

    let stream = Device::default()?.stream()?;
    let (on_experts, on_embeddings) = (stream.upload(&experts)?, stream.upload(&embeddings)?);
    // No call waits: how many tokens an expert gets stays on the device.
    let groups = multisplit::group_by(&stream, &on_experts, EXPERTS)?;
    let mut grouped = stream.uninit::<Embedding>(TOKENS)?;
    permute::gather(&stream, &on_embeddings, &groups.positions, &mut grouped)?;
    let mut back = stream.uninit::<Embedding>(TOKENS)?;
    permute::scatter(&stream, &grouped, &groups.positions, &mut back)?;

    let (offsets, grouped) = (groups.offsets.to_vec(&stream)?, grouped.to_vec(&stream)?);
    assert_eq!(back.to_vec(&stream)?, embeddings);
    for expert in 0..EXPERTS as usize {
        let found = &grouped[offsets[expert] as usize..offsets[expert + 1] as usize];
        let tokens = (0..TOKENS).filter(|&token| experts[token] as usize == expert);
        assert!(found.iter().map(|embedding| embedding[0] as usize).eq(tokens));
    }
    let busiest = (0..EXPERTS as usize).max_by_key(|&expert| offsets[expert + 1] - offsets[expert]).expect("experts");
    let most = offsets[busiest + 1] - offsets[busiest];
    println!("{TOKENS} tokens for {EXPERTS} experts, on {}", stream.device().name());
    println!("expert {busiest} has the most: {most}");
    Ok(())
}
