//! A filter as columnar formats have it: packed bits that begin at any bit, made of one column, select the rows of columns of other
//! types.
//!
//! `cargo run --release -p gpu-primitives --example packed_filter`

use gpu_primitives::operator::predicate;
use gpu_primitives::{Bits, Device, Error, bits, select};

const ROWS: usize = 100_003;
/// Where the slice of the table begins: not at a whole byte.
const FIRST: usize = 13;

fn main() -> Result<(), Error> {
    let prices: Vec<f64> = (0..ROWS as u32).map(|i| f64::from(i.wrapping_mul(2_654_435_761) >> 12) / 100.0).collect();
    let flags: Vec<u8> = (0..ROWS).map(|i| (i % 251) as u8).collect();
    let ids: Vec<[u64; 4]> = (0..ROWS as u64).map(|i| [i, i * i, !i, 7]).collect();

    let stream = Device::default()?.stream()?;
    let (on_prices, on_flags, on_ids) = (stream.upload(&prices)?, stream.upload(&flags)?, stream.upload(&ids)?);
    let mut packed = stream.uninit::<u8>(ROWS.div_ceil(8))?;
    bits::pack(&stream, &on_prices, &mut packed, predicate!(|price: f64| price > 9000.0))?;

    // The rows of a slice: neither the bits nor the columns are copied.
    let len = ROWS - FIRST;
    let filter = Bits::new(&packed, FIRST, len)?;
    let (mut kept_flags, mut kept_ids) = (stream.uninit::<u8>(len)?, stream.uninit::<[u64; 4]>(len)?);
    let mut kept_rows = stream.uninit::<u32>(len)?;
    // Nothing waits before the first count is read.
    let count = select::by_bits(&stream, on_flags.slice(FIRST..)?, filter, &mut kept_flags)?;
    select::by_bits(&stream, on_ids.slice(FIRST..)?, filter, &mut kept_ids)?;
    bits::positions(&stream, filter, &mut kept_rows)?;
    let count = count.get(&stream)? as usize;

    let expected: Vec<usize> = (FIRST..ROWS).filter(|&row| prices[row] > 9000.0).collect();
    assert_eq!(count, expected.len());
    let rows = kept_rows.slice(..count)?.to_vec(&stream)?;
    assert!(rows.iter().zip(&expected).all(|(&found, &row)| found as usize + FIRST == row));
    assert!(
        kept_flags.slice(..count)?.to_vec(&stream)?.iter().zip(&expected).all(|(&found, &row)| found == flags[row])
    );
    assert!(kept_ids.slice(..count)?.to_vec(&stream)?.iter().zip(&expected).all(|(&found, &row)| found == ids[row]));
    println!("{count} of {len} rows pass, on {}", stream.device().name());
    Ok(())
}
