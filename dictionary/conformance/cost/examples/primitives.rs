//! Calls of most primitives.

use gpu_primitives::compare::Less;
use gpu_primitives::equality::Same;
use gpu_primitives::monoid::Sum;
use gpu_primitives::{Device, Error, merge, reduce, runs, scan, sort, top_k};

/// Calls them.
///
/// # Errors
/// Those of the calls.
pub fn run() -> Result<(), Error> {
    let stream = Device::default()?.stream()?;
    let mut keys = stream.upload(&[3u32, 1, 2])?;
    let mut values = stream.upload(&[0.5f64, 1.5, 2.5])?;
    sort::pairs_in_place(&stream, (&mut keys, &mut values), sort::Options::new())?;
    let mut merged = stream.uninit::<u32>(6)?;
    merge::keys(&stream, &keys, &keys, &mut merged, Less)?;
    let mut sums = stream.uninit::<f64>(3)?;
    scan::exclusive(&stream, &values, &mut sums, Sum, 0.0)?;
    let total = reduce::reduce(&stream, &values, Sum)?.get(&stream)?;
    let (mut distinct, mut totals) = (stream.uninit::<u32>(3)?, stream.uninit::<f64>(3)?);
    let found =
        runs::reduce_by_key(&stream, (&keys, &values), (&mut distinct, &mut totals), Same, Sum)?.get(&stream)?;
    let (mut largest, mut positions) = (stream.uninit::<f64>(2)?, stream.uninit::<u32>(2)?);
    top_k::largest(&stream, &values, (&mut largest, &mut positions))?;
    println!("{merged:?} {sums:?} {total} {found} {largest:?}");
    Ok(())
}
