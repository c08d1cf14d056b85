//! A streaming aggregation: amounts arrive in batches, and the total of each account is known at any time.
//!
//! `cargo run --release -p gpu-lsm --example streaming_aggregation`

use gpu_lsm::GpuLsm;
use gpu_primitives::scan::Sum;
use gpu_primitives::{Device, Error};
use std::collections::BTreeMap;

const BATCH: u64 = 1 << 14;
const BATCHES: u64 = 20;

fn main() -> Result<(), Error> {
    let stream = Device::default()?.stream()?;
    let mut totals = GpuLsm::<u64, u64>::with_batch_size(BATCH as usize)?;
    let mut expected = BTreeMap::new();

    for batch in 0..BATCHES {
        let (accounts, amounts): (Vec<u64>, Vec<u64>) = (batch * BATCH..(batch + 1) * BATCH)
            .map(|i| ((i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 44) % 50_000, i % 1000))
            .unzip();
        for (account, amount) in accounts.iter().zip(&amounts) {
            *expected.entry(*account).or_insert(0) += amount;
        }
        // Combines the amounts with the totals that are there, and those of one batch with each other. Does not wait.
        totals.upsert(&stream, (&stream.upload(&accounts)?, &stream.upload(&amounts)?), Sum)?;

        // Queries between batches: single accounts, and the number of accounts in a range.
        let asked = stream.upload(&[accounts[0], 50_000])?;
        let found = totals.lookup(&stream, &asked)?.to_vec(&stream)?;
        assert_eq!(found, [expected.get(&accounts[0]).copied(), None]);
        let (low, high) = (stream.upload(&[1000u64])?, stream.upload(&[1999u64])?);
        let count = totals.count(&stream, &low, &high)?.to_vec(&stream)?[0];
        assert_eq!(count as usize, expected.range(1000..=1999).count());
    }

    totals.cleanup(&stream)?;
    assert!(totals.iter(&stream)?.eq(expected.iter().map(|(account, total)| (*account, *total))));
    let device = stream.device().name();
    println!("{} amounts of {} accounts, in {BATCHES} batches, on {device}", BATCH * BATCHES, expected.len());
    Ok(())
}
