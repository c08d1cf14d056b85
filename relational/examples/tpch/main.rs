//! Runs the queries of TPC-H on tables of a given scale, and prints times: `tpch 1`. With `--answers`, prints the answers, and the times as
//! errors; with `--tables DIR`, writes the tables as text, for another database; with `--compare`, also runs some of them by hand on all
//! cores of the host, and with a copy of their columns from the host.

mod data;
mod host;
mod queries;

use data::Db;
use gpu_primitives::{Device, Error, Stream};
use queries::QUERIES;
use rayon::iter::{IntoParallelIterator, ParallelIterator};
use std::fmt::Display;
use std::io::{BufWriter, Write as _};
use std::path::Path;
use std::time::Instant;
use tpchgen::generators as tpch;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let scale: f64 = arguments.first().map_or(Ok(0.01), |scale| scale.parse())?;
    match arguments.get(1).map(String::as_str) {
        Some("--tables") => write_tables(scale, Path::new(arguments.get(2).ok_or("a folder is missing")?))?,
        Some("--compare") => compare(scale)?,
        what => run(scale, what == Some("--answers"))?,
    }
    Ok(())
}

/// Returns the median time of some calls in ms, after one that is not measured, and what they return.
fn time<T>(mut call: impl FnMut() -> Result<T, Error>) -> Result<(f64, T), Error> {
    let result = call()?;
    let mut times = Vec::new();
    for _ in 0..5 {
        let start = Instant::now();
        call()?;
        times.push(start.elapsed().as_secs_f64() * 1e3);
    }
    times.sort_by(f64::total_cmp);
    Ok((times[2], result))
}

fn generate(stream: &Stream, scale: f64) -> Result<Db, Error> {
    let start = Instant::now();
    let db = Db::generate(stream, scale)?;
    stream.synchronize()?;
    let (used, seconds) = (stream.device().memory_used() >> 20, start.elapsed().as_secs_f64());
    eprintln!("tables of {used} MB generated in {seconds:.1} s");
    Ok(db)
}

fn run(scale: f64, prints_answers: bool) -> Result<(), Error> {
    let stream = &Device::default()?.stream()?;
    let db = generate(stream, scale)?;
    for (number, query) in QUERIES {
        let (time, answer) = time(|| query(stream, &db))?;
        let line = format!("Q{number:<2} {time:>9.3} ms, {} rows", answer.len());
        if prints_answers {
            println!("Q{number}\n{}\n", answer.join("\n"));
            eprintln!("{line}");
        } else {
            println!("{line}");
        }
    }
    Ok(())
}

/// Compares the device with the host, for the queries that the host has.
fn compare(scale: f64) -> Result<(), Error> {
    let stream = &Device::default()?.stream()?;
    let db = generate(stream, scale)?;
    let start = Instant::now();
    let host = host::Host::generate(stream, scale)?;
    eprintln!(
        "the host's columns generated in {:.1} s; {} threads",
        start.elapsed().as_secs_f64(),
        rayon::current_num_threads()
    );
    for (number, by_hand) in host::QUERIES {
        let query = QUERIES.iter().find(|(other, _)| other == number).expect("the device has all queries").1;
        let (resident, answer) = time(|| query(stream, &db))?;
        let (copied, _) = time(|| host.copy(stream, *number).and_then(|_| query(stream, &db)))?;
        let bytes = host.copy(stream, *number)? >> 20;
        let (on_host, expected) = time(|| Ok(by_hand(&host)))?;
        assert_eq!(answer, expected, "Q{number}");
        println!(
            "Q{number:<2} {resident:>9.3} ms, {copied:>9.3} ms with a copy of {bytes} MB, {on_host:>9.3} ms on the host"
        );
    }
    Ok(())
}

/// Writes each table in several files, on all cores.
fn write_tables(scale: f64, folder: &Path) -> std::io::Result<()> {
    const PARTS: i32 = 16;
    fn write(
        folder: &Path,
        name: &str,
        part: i32,
        mut rows: impl Iterator<Item = impl Display>,
    ) -> std::io::Result<()> {
        let mut file = BufWriter::new(std::fs::File::create(folder.join(format!("{name}-{part}.tbl")))?);
        rows.try_for_each(|row| writeln!(file, "{row}"))?;
        file.flush()
    }
    (1..=PARTS).into_par_iter().try_for_each(|part| {
        write(folder, "lineitem", part, tpch::LineItemGenerator::new(scale, part, PARTS).iter())?;
        write(folder, "orders", part, tpch::OrderGenerator::new(scale, part, PARTS).iter())?;
        write(folder, "customer", part, tpch::CustomerGenerator::new(scale, part, PARTS).iter())?;
        write(folder, "part", part, tpch::PartGenerator::new(scale, part, PARTS).iter())?;
        write(folder, "partsupp", part, tpch::PartSuppGenerator::new(scale, part, PARTS).iter())
    })?;
    write(folder, "supplier", 1, tpch::SupplierGenerator::new(scale, 1, 1).iter())?;
    write(folder, "nation", 1, tpch::NationGenerator::new(scale, 1, 1).iter())?;
    write(folder, "region", 1, tpch::RegionGenerator::new(scale, 1, 1).iter())
}
