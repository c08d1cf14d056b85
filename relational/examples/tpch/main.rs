//! Runs queries of TPC-H on tables of a given scale, and prints times: `tpch 1`. With `--answers`, prints the answers; with `--tables DIR`,
//! writes the tables as text, for another database.

mod data;
mod queries;

use data::Db;
use gpu_primitives::{Device, Error};
use queries::QUERIES;
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
    let db = Db::generate(&stream, scale)?;
    for (number, query) in QUERIES {
        let answer = query(&stream, &db)?;
        if prints_answers {
            println!("Q{number}\n{}\n", answer.join("\n"));
            continue;
        }
        let mut times = Vec::new();
        for _ in 0..5 {
            stream.synchronize()?;
            let start = Instant::now();
            query(&stream, &db)?;
            stream.synchronize()?;
            times.push(start.elapsed().as_secs_f64() * 1e3);
        }
        times.sort_by(f64::total_cmp);
        println!("Q{number:<2} {:>9.3} ms, {} rows", times[2], answer.len());
    }
    Ok(())
}

fn write_tables(scale: f64, folder: &Path) -> std::io::Result<()> {
    fn write(folder: &Path, name: &str, mut rows: impl Iterator<Item = impl Display>) -> std::io::Result<()> {
        let mut file = BufWriter::new(std::fs::File::create(folder.join(name).with_extension("tbl"))?);
        rows.try_for_each(|row| writeln!(file, "{row}"))?;
        file.flush()
    }
    write(folder, "lineitem", tpch::LineItemGenerator::new(scale, 1, 1).iter())?;
    write(folder, "orders", tpch::OrderGenerator::new(scale, 1, 1).iter())?;
    write(folder, "customer", tpch::CustomerGenerator::new(scale, 1, 1).iter())?;
    write(folder, "part", tpch::PartGenerator::new(scale, 1, 1).iter())?;
    write(folder, "partsupp", tpch::PartSuppGenerator::new(scale, 1, 1).iter())?;
    write(folder, "supplier", tpch::SupplierGenerator::new(scale, 1, 1).iter())?;
    write(folder, "nation", tpch::NationGenerator::new(scale, 1, 1).iter())?;
    write(folder, "region", tpch::RegionGenerator::new(scale, 1, 1).iter())
}
