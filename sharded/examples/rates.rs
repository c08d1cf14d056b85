//! Measures what sharding costs: each dictionary as it is, as one shard, and as four shards of one device; under `mpirun`, also
//! as the ranks of the job. Insertion of 2^24 pairs of 32-bit keys and values into an empty dictionary, and lookups of all of them.
//!
//! ```sh
//! cargo run --release -p gpu-sharded --example rates                 # 2^24 on a GPU, 2^16 on a CPU
//! cargo run --release -p gpu-sharded --example rates -- 20           # 2^20
//! cargo build --release -p gpu-sharded --features mpi --example rates
//! mpirun -n 4 target/release/examples/rates                          # 2^24 in all
//! ```
//!
//! Times are medians of the host's clock, with all work of the stream done. Every lookup is checked.

use gpu_cuckoo::GpuCuckoo;
use gpu_dictionary::{DictionaryOptions, Updatable};
use gpu_lsm::GpuLsm;
use gpu_primitives::{Device, DeviceKind, DeviceVec, Error, Stream};
use gpu_sharded::{Options, Shard, Sharded, World};
use gpu_sorted_array::GpuSortedArray;
use std::time::{Duration, Instant};

struct Data {
    keys: DeviceVec<u32>,
    values: DeviceVec<u32>,
    host_values: Vec<u32>,
    /// The keys of all ranks.
    total: usize,
    runs: usize,
}

/// Returns the median times of an insertion and of a lookup.
fn measure<D: Updatable<Key = u32, Value = u32>>(
    stream: &Stream,
    data: &Data,
    options: &D::Options,
) -> Result<[Duration; 2], Error> {
    let options = options.clone().expected_keys(data.total).expected_operations(data.total);
    let (mut inserts, mut lookups) = (Vec::new(), Vec::new());
    for run in 0..=data.runs {
        let mut dictionary = D::new(stream, options.clone())?;
        stream.synchronize()?;
        let start = Instant::now();
        dictionary.insert(stream, (&data.keys, &data.values))?;
        stream.synchronize()?;
        let inserted = start.elapsed();
        // The first lookup builds an index.
        dictionary.lookup(stream, data.keys.slice(..data.keys.len().min(1000))?)?;
        stream.synchronize()?;
        let start = Instant::now();
        let found = dictionary.lookup(stream, &data.keys)?;
        stream.synchronize()?;
        let asked = start.elapsed();
        // The first run loads kernels.
        if run == 0 {
            assert!(found.values.to_vec(stream)? == data.host_values, "wrong values");
            continue;
        }
        inserts.push(inserted);
        lookups.push(asked);
    }
    Ok([inserts, lookups].map(|mut times| {
        times.sort_unstable();
        times[times.len() / 2]
    }))
}

fn print(name: &str, form: &str, total: usize, times: [Duration; 2], plain: Option<[Duration; 2]>) {
    let cells = [0, 1].map(|i| {
        let rate = total as f64 / times[i].as_secs_f64() / 1e9;
        let ratio =
            plain.map_or(String::new(), |plain| format!(" ({:.2})", plain[i].as_secs_f64() / times[i].as_secs_f64()));
        format!("{:9.1} us {rate:7.3} G/s{ratio}", times[i].as_secs_f64() * 1e6)
    });
    println!("| {name} | {form} | {} | {} |", cells[0], cells[1]);
}

fn rows<D: Shard<Key = u32, Value = u32> + Updatable>(
    stream: &Stream,
    data: &Data,
    world: &World,
) -> Result<(), Error> {
    if world.ranks() > 1 {
        let times = measure::<Sharded<D>>(stream, data, &Options::new(world.clone()))?;
        if world.rank() == 0 {
            print(D::NAME, &format!("{} ranks", world.ranks()), data.total, times, None);
        }
        return Ok(());
    }
    let plain = measure::<D>(stream, data, &D::Options::default())?;
    print(D::NAME, "plain", data.total, plain, None);
    let one = measure::<Sharded<D>>(stream, data, &Options::new(world.clone()))?;
    print(D::NAME, "one rank", data.total, one, Some(plain));
    let four = measure::<Sharded<D>>(stream, data, &Options::new(World::local(4)))?;
    print(D::NAME, "four local shards", data.total, four, Some(plain));
    Ok(())
}

/// The ranks of the job, if there is one.
fn world() -> Result<World, Error> {
    #[cfg(feature = "mpi")]
    if ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE"].iter().any(|name| std::env::var_os(name).is_some()) {
        let mpi = gpu_sharded::Mpi::new().map_err(|lost| Error::DictionaryLost { cause: lost.cause })?;
        return Ok(World::new(mpi));
    }
    Ok(World::default())
}

fn main() -> Result<(), Error> {
    let world = world()?;
    let stream = Device::default()?.stream()?;
    let is_gpu = matches!(stream.device().kind(), DeviceKind::Cuda { .. });
    let log_size = std::env::args().nth(1).and_then(|log| log.parse().ok()).unwrap_or(if is_gpu { 24 } else { 16 });
    let total = 1usize << log_size;
    let own = total * world.rank() / world.ranks()..total * (world.rank() + 1) / world.ranks();
    // Distinct keys in an order that looks random: an odd factor permutes all 32-bit numbers.
    let keys: Vec<u32> =
        own.map(|i| (i as u32).wrapping_mul(0x9E37_79B1).rotate_left(16).wrapping_mul(0x85EB_CA77)).collect();
    let host_values: Vec<u32> = keys.iter().map(|key| key ^ 0x5555_5555).collect();
    let (keys, values) = (stream.upload(&keys)?, stream.upload(&host_values)?);
    let data = Data { keys, values, host_values, total, runs: if is_gpu { 9 } else { 5 } };
    if world.rank() == 0 {
        println!("2^{log_size} pairs, {:?}, {} ranks\n", stream.device(), world.ranks());
        println!("| dictionary | | insert | lookup |\n| --- | --- | --- | --- |");
    }
    rows::<GpuLsm<u32, u32>>(&stream, &data, &world)?;
    rows::<GpuSortedArray<u32, u32>>(&stream, &data, &world)?;
    rows::<GpuCuckoo<u32, u32>>(&stream, &data, &world)
}
