//! Joins orders and customers on a device, compares the results with a hash join of the host, and prints times.
//!
//! The only argument is the number of orders. There are a quarter as many customers.

use gpu_cuckoo::{GpuCuckoo, Options};
use gpu_lsm::GpuLsm;
use gpu_primitives::kernel::View;
use gpu_primitives::scan::Sum;
use gpu_primitives::{Device, DeviceVec, Error, Stream};
use join::{InnerJoin, LeftJoin, NO_ROW, Search, THREADS, Total};
use std::collections::HashMap;
use std::process::ExitCode;
use std::time::{Duration, Instant};

fn main() -> ExitCode {
    let orders = std::env::args().nth(1).map_or(Ok(200_000), |argument| argument.parse());
    let Ok(orders @ 1..=1_000_000_000) = orders else {
        eprintln!("the only argument is the number of orders, from 1 to 1000000000");
        return ExitCode::FAILURE;
    };
    match run(orders) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// The two tables on the host.
struct Tables {
    /// The number of each customer, unique.
    customers: Vec<u32>,
    /// The customer's number of each order. Some customers do not exist.
    orders: Vec<u32>,
    amounts: Vec<u32>,
}

/// What the joins must give.
#[derive(PartialEq)]
struct Joined {
    /// For each order the row of its customer, or [`NO_ROW`].
    left: Vec<u32>,
    /// The orders with a customer and the customer's row, in the order of the orders.
    inner: Vec<(u32, u32)>,
}

impl Tables {
    fn new(orders: usize) -> Self {
        let mixed = |x: u64| (x.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 33) as u32;
        let customers = orders as u64 / 4 + 1;
        Self {
            // Multiplying by an odd number gives different results for different rows.
            customers: (0..customers).map(|row| (row as u32).wrapping_mul(0x9E37_79B1)).collect(),
            // Some orders have an unknown customer, and some customers have many orders.
            orders: (0..orders as u64)
                .map(|i| (mixed(i) as u64 % (customers + customers / 4)).min(mixed(i + 7) as u64 % customers * 2))
                .map(|row| (row as u32).wrapping_mul(0x9E37_79B1))
                .collect(),
            amounts: (0..orders as u64).map(|i| mixed(i + 13) % 1000).collect(),
        }
    }

    /// Joins on the host.
    fn join(&self) -> Joined {
        let rows: HashMap<u32, u32> = self.customers.iter().zip(0..).map(|(&number, row)| (number, row)).collect();
        let left: Vec<u32> = self.orders.iter().map(|order| rows.get(order).copied().unwrap_or(NO_ROW)).collect();
        let inner = (0..).zip(&left).filter(|(_, row)| **row != NO_ROW).map(|(order, &row)| (order, row)).collect();
        Joined { left, inner }
    }
}

/// Calls a function some times, and returns the shortest time.
fn time(stream: &Stream, mut call: impl FnMut() -> Result<(), Error>) -> Result<Duration, Error> {
    let mut shortest = Duration::MAX;
    for _ in 0..5 {
        stream.synchronize()?;
        let start = Instant::now();
        call()?;
        stream.synchronize()?;
        shortest = shortest.min(start.elapsed());
    }
    Ok(shortest)
}

fn report(what: &str, orders: usize, time: Duration) {
    println!(
        "{what:<28} {:>10.3} ms  {:>8.1} M orders/s",
        time.as_secs_f64() * 1e3,
        orders as f64 / time.as_secs_f64() / 1e6
    );
}

/// Joins with a dictionary, and prints the times. Returns what it got.
fn join_with<'a, D: Search>(
    stream: &Stream,
    name: &str,
    view: impl Fn() -> Result<View<'a, D>, Error>,
    orders: &DeviceVec<u32>,
) -> Result<Joined, Error> {
    let blocks = orders.len().div_ceil(THREADS as usize);
    let mut left = stream.uninit::<u32>(orders.len())?;
    let took = time(stream, || {
        let kernel = LeftJoin::new(view()?, orders.view(stream)?, left.view_mut(stream)?);
        // SAFETY: there is a thread and a row for every order.
        unsafe { stream.launch(kernel, blocks) }
    })?;
    report(&format!("left join, {name}"), orders.len(), took);

    let (mut matched, mut rows) = (stream.uninit::<u32>(orders.len())?, stream.uninit::<u32>(orders.len())?);
    let mut count = stream.zeroed::<u64>(1)?;
    let took = time(stream, || {
        count.copy_from_host(stream, &[0])?;
        let (matched, rows) = (matched.view_mut(stream)?, rows.view_mut(stream)?);
        let kernel = InnerJoin::new(view()?, orders.view(stream)?, matched, rows, count.view_mut(stream)?);
        // SAFETY: there is a thread for every order and room for all of them. The count is zero.
        unsafe { stream.launch(kernel, blocks) }
    })?;
    report(&format!("inner join, {name}"), orders.len(), took);

    let found = count.to_vec(stream)?[0] as usize;
    let (matched, rows) = (matched.slice(..found)?.to_vec(stream)?, rows.slice(..found)?.to_vec(stream)?);
    let mut inner: Vec<(u32, u32)> = matched.into_iter().zip(rows).collect();
    inner.sort_unstable();
    Ok(Joined { left: left.to_vec(stream)?, inner })
}

/// Adds up the amounts per customer in a kernel, in a table with room for the customers at this load. Returns whether the totals
/// are right.
fn total(stream: &Stream, tables: &Tables, orders: &DeviceVec<u32>, load: f64) -> Result<bool, Error> {
    let amounts = stream.upload(&tables.amounts)?;
    let mut expected = HashMap::<u32, u64>::new();
    for (&order, &amount) in tables.orders.iter().zip(&tables.amounts) {
        *expected.entry(order).or_default() += u64::from(amount);
    }
    let mut totals = GpuCuckoo::<u32, u64>::new(stream, Options::new().load_factor(load))?;
    totals.reserve(stream, expected.len())?;
    let mut left = stream.uninit::<u32>(orders.len())?;
    let mut count = stream.zeroed::<u64>(1)?;
    stream.synchronize()?;
    let start = Instant::now();
    let (places, number) = (left.view_mut(stream)?, count.view_mut(stream)?);
    let kernel = Total::new(orders.view(stream)?, amounts.view(stream)?, totals.view_mut(stream)?, places, number);
    // SAFETY: there is a thread, an amount and a place for every order. The count is zero.
    unsafe { stream.launch(kernel, orders.len().div_ceil(THREADS as usize))? };

    // Threads move no keys, so a few may find their buckets full, at any load. The host moves keys and grows the table.
    let found_no_room = count.to_vec(stream)?[0] as usize;
    if found_no_room > 0 {
        let left = left.slice(..found_no_room)?.to_vec(stream)?;
        let keys: Vec<u32> = left.iter().map(|&order| tables.orders[order as usize]).collect();
        let values: Vec<u64> = left.iter().map(|&order| tables.amounts[order as usize].into()).collect();
        totals.upsert(stream, (&stream.upload(&keys)?, &stream.upload(&values)?), Sum)?;
    }
    stream.synchronize()?;
    report(&format!("totals, load {load:.2}"), orders.len(), start.elapsed());
    println!("{found_no_room} of the orders found no room in the kernel");

    let mut expected: Vec<(u32, u64)> = expected.into_iter().collect();
    expected.sort_unstable();
    Ok(totals.export(stream)?.to_vec(stream)? == expected)
}

/// Returns whether all results are right.
fn run(orders: usize) -> Result<bool, Error> {
    let device = Device::default()?;
    let stream = device.stream()?;
    let tables = Tables::new(orders);
    println!("{} orders, {} customers, on {}", orders, tables.customers.len(), device.name());
    let start = Instant::now();
    let expected = tables.join();
    report("both joins on the host", orders, start.elapsed());

    let on_device = stream.upload(&tables.orders)?;
    let numbers = stream.upload(&tables.customers)?;
    let rows = stream.upload(&(0..tables.customers.len() as u32).collect::<Vec<_>>())?;

    let table = GpuCuckoo::bulk_build(&stream, (&numbers, &rows), Options::new())?;
    let by_table = join_with(&stream, "cuckoo table", || table.view(&stream), &on_device)?;

    let mut lsm = GpuLsm::<u32, u32>::with_batch_size(1 << 16)?;
    lsm.insert(&stream, (&numbers, &rows))?;
    let by_lsm = join_with(&stream, "LSM", || lsm.view(&stream), &on_device)?;

    // At a load of 0.25, less than one key in a million finds no room; at 0.8, one in 60.
    let mut totals_are_right = true;
    for load in [0.25, 0.8] {
        totals_are_right &= total(&stream, &tables, &on_device, load)?;
    }
    let is_right = by_table == expected && by_lsm == expected && totals_are_right;
    println!("{} orders have a customer: {}", expected.inner.len(), if is_right { "right" } else { "WRONG" });
    Ok(is_right)
}
