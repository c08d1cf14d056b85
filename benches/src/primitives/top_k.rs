//! The hundred largest of random numbers.

use super::{expect, time};
use crate::data::random_u32;
use crate::session::Session;
use gpu_primitives::top_k;

const K: usize = 100;

pub(super) fn measure(session: &Session, len: usize) -> Result<(), crate::Error> {
    let stream = &session.stream;
    let host = random_u32(len as u64, len);
    let input = stream.upload(&host)?;
    let k = K.min(len);
    let (mut keys, mut positions) = (stream.uninit::<u32>(k)?, stream.uninit::<u32>(k)?);
    time(session, "top_k_100_u32", len, 4.0, || top_k::largest(stream, &input, (&mut keys, &mut positions)))?;
    let mut best: Vec<(u32, u32)> = host.iter().copied().zip(0..).collect();
    // The largest first; of equal ones, the one with the lowest position.
    let order = |&(key, position): &(u32, u32)| (std::cmp::Reverse(key), position);
    if k < len {
        best.select_nth_unstable_by_key(k, order);
    }
    best.truncate(k);
    best.sort_unstable_by_key(order);
    expect("largest keys", &keys.to_vec(stream)?, best.iter().map(|best| best.0))?;
    expect("positions of the largest keys", &positions.to_vec(stream)?, best.iter().map(|best| best.1))
}
