//! The largest numbers of each row of a matrix.

use super::{expect, time};
use crate::data::random_u32;
use crate::session::Session;
use gpu_primitives::order_statistics::Rows;
use gpu_primitives::top_k;
use rayon::iter::ParallelIterator;
use rayon::slice::ParallelSlice;
use std::cmp::Reverse;

/// The number of columns, and how many of them are wanted.
const SHAPES: [(usize, usize); 2] = [(1024, 8), (131_072, 100)];

/// Measures as many whole rows as `len` elements have: none, if they are fewer than the columns.
pub(super) fn measure(session: &Session, len: usize) -> Result<(), crate::Error> {
    let stream = &session.stream;
    for (columns, k) in SHAPES.into_iter().filter(|(columns, _)| *columns <= len) {
        let rows = len / columns;
        let host = random_u32(len as u64, rows * columns);
        let input = stream.upload(&host)?;
        let (mut keys, mut positions) = (stream.uninit::<u32>(rows * k)?, stream.uninit::<u32>(rows * k)?);
        time(session, format!("top_{k}_of_rows_of_{columns}"), rows * columns, 4.0, || {
            top_k::segmented_largest(stream, &input, Rows::of_len(columns), k, (&mut keys, &mut positions))
        })?;
        let best = |row: &[u32]| -> Vec<(u32, u32)> {
            let mut row: Vec<(u32, u32)> = row.iter().copied().zip(0..).collect();
            // The largest first; of equal ones, the one with the lowest position.
            row.sort_unstable_by_key(|&(key, position)| (Reverse(key), position));
            row.truncate(k);
            row
        };
        let expected: Vec<(u32, u32)> = host.par_chunks_exact(columns).flat_map_iter(best).collect();
        expect("largest keys of rows", &keys.to_vec(stream)?, expected.iter().map(|best| best.0))?;
        expect("positions in rows", &positions.to_vec(stream)?, expected.iter().map(|best| best.1))?;
    }
    Ok(())
}
