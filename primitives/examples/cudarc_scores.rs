//! Sorts the scores of a program that uses cudarc, and ranks its rows by them. Needs a GPU.
//!
//! `cargo run --release -p gpu-primitives --example cudarc_scores --features cudarc,cudarc/cuda-12080`

use cudarc::driver::CudaContext;
use gpu_primitives::{Stream, sort, transform};
use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let scores: Vec<f32> = (0..1u32 << 20).map(|i| (i.wrapping_mul(2_654_435_761) >> 8) as f32).collect();

    // The program has a context, a stream, and slices.
    let cuda = CudaContext::new(0)?.new_stream()?;
    let mut on_device = cuda.clone_htod(&scores)?;
    let mut rows = cuda.alloc_zeros::<u32>(scores.len())?;

    // This library works on them: the highest score first, with its row.
    let stream = Stream::from_cudarc(&cuda)?;
    stream.lend((&mut on_device, &mut rows), |(scores, mut rows)| {
        transform::sequence(&stream, &mut rows, 0)?;
        sort::pairs_in_place(&stream, (scores, rows), sort::Options::new().descending())
    })?;

    // The program goes on, in the order of its stream.
    let (best, rows) = (cuda.clone_dtoh(&on_device)?, cuda.clone_dtoh(&rows)?);
    println!("the best scores: {:?} of rows {:?}", &best[..3], &rows[..3]);
    assert!(best.is_sorted_by(|a, b| a >= b));
    assert!(best.iter().zip(&rows).all(|(score, row)| *score == scores[*row as usize]));
    Ok(())
}
