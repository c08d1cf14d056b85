//! Runs the queries of TPC-H on tables of a given scale, and prints times: `tpch 1`. With `--answers`, prints the answers, and the times as
//! errors; with `--tables DIR`, writes the tables as text, for another database.

mod data;
mod queries;

use data::Db;
use gpu_primitives::{Device, Error};
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
        what => run(scale, what == Some("--answers"))?,
    }
    Ok(())
}

fn run(scale: f64, prints_answers: bool) -> Result<(), Error> {
    let device = Device::default()?;
    let stream = device.stream()?;
    let start = Instant::now();
    let db = Db::generate(&stream, scale)?;
    stream.synchronize()?;
    eprintln!("tables of {} MB generated in {:.1} s", device.memory_used() >> 20, start.elapsed().as_secs_f64());
    for (number, query) in QUERIES {
        let answer = query(&stream, &db)?;
        let mut times = Vec::new();
        for _ in 0..5 {
            stream.synchronize()?;
            let start = Instant::now();
            query(&stream, &db)?;
            stream.synchronize()?;
            times.push(start.elapsed().as_secs_f64() * 1e3);
        }
        times.sort_by(f64::total_cmp);
        let line = format!("Q{number:<2} {:>9.3} ms, {} rows", times[2], answer.len());
        if prints_answers {
            println!("Q{number}\n{}\n", answer.join("\n"));
            eprintln!("{line}");
        } else {
            println!("{line}");
        }
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
