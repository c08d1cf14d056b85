//! What a sharded dictionary would do on more GPUs than there are: the same code, with ranks that are threads, on an engine that
//! keeps an account of the bytes and steps. The account gives the time of the links; the time of the GPUs is measured by the
//! example `rates`, and passed here.
//!
//! The second table is about sorts and joins of pairs. Their time on a GPU has not been measured on several GPUs: that of a sort is made up of
//! what one H200 takes to sort pairs, and to merge runs of them. `--sorted` is how many pairs each rank really sorts: more of them need
//! more rounds of samples.
//!
//! ```sh
//! cargo run --release -p gpu-sharded --example simulate -- \
//!     --keys 16777216 --insert-ns 0.051 --lookup-ns 0.071        # of four local shards, per key
//! ```

use gpu_lsm::GpuLsm;
use gpu_primitives::{Device, Error};
use gpu_sharded::primitives::{join, sort};
use gpu_sharded::{Account, Link, Modelled, Options, Sharded, Threads, World};
use std::time::Duration;

/// The keys of each rank in the simulated calls. Bytes grow in proportion.
const SIMULATED: usize = 1 << 12;

struct Case {
    name: &'static str,
    ranks: usize,
    link: Link,
}

fn micros(micros: u64) -> Duration {
    Duration::from_micros(micros)
}

fn cases() -> Vec<Case> {
    let link = |latency, bytes_per_second| Link { latency: micros(latency), bytes_per_second };
    // The rate through host memory was chosen to fit measured ranks of Open MPI; the others are 80 % of what the links can do.
    vec![
        Case { name: "2 ranks of one host, through host memory", ranks: 2, link: link(30, 2.5e9) },
        Case { name: "4 ranks of one host, through host memory", ranks: 4, link: link(30, 2.5e9) },
        Case { name: "8 GPUs on NVLink (450 GB/s each way)", ranks: 8, link: link(15, 360e9) },
        Case { name: "64 hosts with one GPU, 400 Gb/s each", ranks: 64, link: link(25, 40e9) },
    ]
}

/// The calls of a rank. It is given its number, its world, and what tells the account of rank 0.
type Calls<'a> = &'a (dyn Fn(usize, World, &dyn Fn() -> Account) -> Result<[Account; 2], Error> + Sync);

fn since(before: &Account, after: Account) -> Account {
    Account {
        gathers: after.gathers - before.gathers,
        exchanges: after.exchanges - before.exchanges,
        sent: after.sent - before.sent,
        received: after.received - before.received,
        time: after.time - before.time,
    }
}

/// Runs calls on all ranks. Returns what rank 0 has sent, received and waited for in each of two.
fn simulate(case: &Case, calls: Calls<'_>) -> Result<[Account; 2], Error> {
    let (engines, accounts): (Vec<_>, Vec<_>) =
        Threads::ranks(case.ranks).into_iter().map(|engine| Modelled::new(engine, case.link)).unzip();
    let account = || accounts[0].lock().map_or_else(|account| *account.into_inner(), |account| *account);
    std::thread::scope(|scope| {
        let threads: Vec<_> = engines
            .into_iter()
            .enumerate()
            .map(|(number, engine)| {
                let account = &account;
                scope.spawn(move || calls(number, World::new(engine).timeout(Duration::from_secs(600)), account))
            })
            .collect();
        let results: Vec<_> = threads.into_iter().map(|thread| thread.join().expect("a rank has failed")).collect();
        results.into_iter().next().expect("there is a rank")
    })
}

/// Runs an insertion and a lookup.
fn dictionary(case: &Case) -> Result<[Account; 2], Error> {
    simulate(case, &|rank, world, account| {
        let stream = Device::cpu().stream()?;
        let key = |i: usize| ((i * case.ranks + rank) as u32).wrapping_mul(0x9E37_79B1);
        let keys = stream.upload(&(0..SIMULATED).map(key).collect::<Vec<u32>>())?;
        let mut all = Sharded::<GpuLsm<u32, u32>>::new(&stream, Options::new(world))?;
        // The first insertion also finds the splitters.
        all.insert(&stream, (&keys, &keys))?;
        let before = account();
        all.insert(&stream, (&keys, &keys))?;
        let inserted = account();
        all.lookup(&stream, &keys)?;
        Ok([since(&before, inserted), since(&inserted, account())])
    })
}

/// Sorts pairs, and joins them with themselves.
fn primitives(case: &Case, pairs: usize) -> Result<[Account; 2], Error> {
    simulate(case, &|rank, world, account| {
        let stream = Device::cpu().stream()?;
        // Different numbers in no order that a sample could have, too.
        let mix = |x: u32| (x ^ (x >> 16)).wrapping_mul(0x7FEB_352D);
        let key = |i: usize| mix(mix((i * case.ranks + rank) as u32) ^ 0x5555);
        let keys = stream.upload(&(0..pairs).map(key).collect::<Vec<u32>>())?;
        let before = account();
        sort::pairs(&stream, &world, (&keys, &keys))?;
        let sorted = account();
        join::inner(&stream, &world, (&keys, &keys), (&keys, &keys))?;
        Ok([since(&before, sorted), since(&sorted, account())])
    })
}

fn number(name: &str, default: f64) -> f64 {
    let arguments: Vec<String> = std::env::args().collect();
    let value = arguments.windows(2).find(|pair| pair[0] == name).and_then(|pair| pair[1].parse().ok());
    value.unwrap_or(default)
}

fn main() -> Result<(), Error> {
    let keys = number("--keys", 16_777_216.0);
    let device = [number("--insert-ns", 0.15), number("--lookup-ns", 0.15)];
    println!("{keys} keys per rank and call; on the GPU {} ns per insertion, {} ns per lookup\n", device[0], device[1]);
    println!("| ranks | call | steps | bytes sent per key | link | GPU | all ranks |");
    println!("| --- | --- | --- | --- | --- | --- | --- |");
    for case in cases() {
        let accounts = dictionary(&case)?;
        for (call, (account, device_ns)) in ["insert", "lookup"].into_iter().zip(accounts.into_iter().zip(device)) {
            let bytes = account.sent.max(account.received) as f64 / SIMULATED as f64;
            let steps = account.gathers + account.exchanges;
            let link = case.link.latency.as_secs_f64() * steps as f64 + bytes * keys / case.link.bytes_per_second;
            let device = keys * device_ns * 1e-9;
            let rate = keys * case.ranks as f64 / (link + device) / 1e9;
            println!(
                "| {} | {call} | {steps} | {bytes:.2} | {:.0} us | {:.0} us | {rate:.1} G/s |",
                case.name,
                link * 1e6,
                device * 1e6
            );
        }
    }

    let sorted = number("--sorted", SIMULATED as f64) as usize;
    let (sort_ns, merge_ns) = (number("--sort-ns", 0.033), number("--merge-ns", 0.0125));
    println!(
        "\n{keys} pairs per rank and side; {sort_ns} ns per pair to sort, {merge_ns} ns per pair to merge up to 32 runs"
    );
    println!("{sorted} pairs per rank were really sorted\n");
    println!("| ranks | call | steps | bytes sent per pair | link | GPU | all ranks |");
    println!("| --- | --- | --- | --- | --- | --- | --- |");
    for case in cases().into_iter().skip(2) {
        let passes = if case.ranks > 32 { 2.0 } else { 1.0 };
        let device = [Some(keys * (sort_ns + merge_ns * passes) * 1e-9), None];
        for (call, (account, device)) in
            ["sort", "join"].into_iter().zip(primitives(&case, sorted)?.into_iter().zip(device))
        {
            let bytes = account.sent.max(account.received) as f64 / sorted as f64;
            let steps = account.gathers + account.exchanges;
            // What was sent, with the samples; and what more pairs would add.
            let link = account.time.as_secs_f64() + bytes * (keys - sorted as f64) / case.link.bytes_per_second;
            let rate = |device: f64| format!("{:.1} G/s", keys * case.ranks as f64 / (link + device) / 1e9);
            println!(
                "| {} | {call} | {steps} | {bytes:.2} | {:.0} us | {} | {} |",
                case.name,
                link * 1e6,
                device.map_or("–".to_owned(), |device| format!("{:.0} us", device * 1e6)),
                device.map_or("–".to_owned(), rate),
            );
        }
    }
    Ok(())
}
