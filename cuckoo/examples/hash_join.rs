//! A hash join: the orders of known customers, each with the row of its customer, without a kernel of one's own.
//!
//! `cargo run --release -p gpu-cuckoo --example hash_join`

use gpu_cuckoo::{GpuCuckoo, Options};
use gpu_primitives::{Device, Error, permute, select, transform};
use std::collections::HashMap;

fn main() -> Result<(), Error> {
    let customers: Vec<u64> = (0..50_000u64).map(|row| row.wrapping_mul(0x9E37_79B9_7F4A_7C15)).collect();
    let discounts: Vec<f32> = (0..customers.len()).map(|row| (row % 30) as f32 / 100.0).collect();
    // Every fifth order has a customer that does not exist.
    let orders: Vec<u64> = (0..200_000usize)
        .map(|order| if order % 5 == 0 { order as u64 } else { customers[order * 7 % customers.len()] })
        .collect();

    let stream = Device::default()?.stream()?;
    // The build side: from a customer's number to its row.
    let mut rows = stream.uninit::<u32>(customers.len())?;
    transform::sequence(&stream, &mut rows, 0)?;
    let table = GpuCuckoo::bulk_build(&stream, (&stream.upload(&customers)?, &rows), Options::new())?;

    // The probe side: one lookup per order. Then the orders that have a customer, in order.
    let found = table.lookup(&stream, &stream.upload(&orders)?)?;
    let mut order_rows = stream.uninit::<u32>(orders.len())?;
    transform::sequence(&stream, &mut order_rows, 0)?;
    let (mut joined_orders, mut joined_customers) = (stream.zeroed::<u32>(orders.len())?, stream.zeroed(orders.len())?);
    let pairs = (&order_rows, &found.values);
    let count = select::flagged_pairs(&stream, pairs, &found.found, (&mut joined_orders, &mut joined_customers))?;
    let count = count.get(&stream)? as usize; // the only wait before the results

    // A column of the customers, for each joined order.
    let mut joined_discounts = stream.uninit::<f32>(count)?;
    let discounts_on_device = stream.upload(&discounts)?;
    permute::gather(&stream, &discounts_on_device, joined_customers.slice(..count)?, &mut joined_discounts)?;
    println!("{count} of {} orders have a customer, on {}", orders.len(), stream.device().name());

    let row_of: HashMap<u64, u32> = customers.iter().zip(0..).map(|(customer, row)| (*customer, row)).collect();
    let expected: Vec<(u32, u32)> =
        orders.iter().zip(0..).filter_map(|(customer, order)| Some((order, *row_of.get(customer)?))).collect();
    let joined_orders = joined_orders.slice(..count)?.to_vec(&stream)?;
    let joined_customers = joined_customers.slice(..count)?.to_vec(&stream)?;
    assert!(joined_orders.into_iter().zip(joined_customers).eq(expected.iter().copied()));
    let joined_discounts = joined_discounts.to_vec(&stream)?;
    assert!(joined_discounts.into_iter().eq(expected.iter().map(|(_, row)| discounts[*row as usize])));
    Ok(())
}
