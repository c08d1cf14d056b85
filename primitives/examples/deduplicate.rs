//! Removes duplicate events: of each user's events of one kind, the first one stays.
//!
//! `cargo run --release -p gpu-primitives --example deduplicate`

use gpu_primitives::equality::Same;
use gpu_primitives::runs::{self, Which};
use gpu_primitives::source::counted;
use gpu_primitives::{Device, Error, reduce, sort, transform};
use std::collections::HashMap;

fn main() -> Result<(), Error> {
    let events = 1 << 20;
    let users: Vec<u64> = (0..events).map(|i: u64| (i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40) % 300_000).collect();

    let stream = Device::default()?.stream()?;
    let users_of = stream.upload(&users)?;
    let mut rows = stream.uninit::<u32>(users.len())?;
    transform::sequence(&stream, &mut rows, 0)?;

    // Equal users become neighbours. The sort is stable, so the first of them is the first event.
    let (mut sorted, mut rows_sorted) = (stream.uninit(users.len())?, stream.uninit(users.len())?);
    sort::pairs(&stream, (&users_of, &rows), (&mut sorted, &mut rows_sorted), sort::Options::new())?;
    let (mut unique, mut first) = (stream.uninit(users.len())?, stream.uninit(users.len())?);
    let count = runs::unique_by_key(&stream, (&sorted, &rows_sorted), (&mut unique, &mut first), Same, Which::First)?;

    // The number of unique users stays on the device until here: the sum reads as many rows as there are.
    let sum = reduce::sum(&stream, counted(&first, &count))?;
    let count = count.get(&stream)? as usize; // the first wait
    println!("{events} events of {count} users, on {}", stream.device().name());

    let mut expected = HashMap::new();
    for (row, user) in users.iter().enumerate() {
        expected.entry(*user).or_insert(row as u32);
    }
    assert_eq!(count, expected.len());
    let found = unique.slice(..count)?.to_vec(&stream)?.into_iter().zip(first.slice(..count)?.to_vec(&stream)?);
    assert!(found.into_iter().all(|(user, row)| expected[&user] == row));
    assert_eq!(sum.get(&stream)?, expected.values().fold(0u32, |sum, row| sum.wrapping_add(*row)));
    Ok(())
}
