//! The benchmark program: the comparison of the dictionaries, and the measurements behind the documentation.

use clap::{Args, Parser, Subcommand};
use gpu_benches::compare::{self, Workload};
use gpu_benches::data::Distribution;
use gpu_benches::output::Output;
use gpu_benches::{Error, cuckoo, lsm, paper, primitives, results, session, sorted_array};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Benchmarks of the GPU primitives and dictionaries.
///
/// Without a command, runs `compare`.
#[derive(Parser)]
#[command(version, args_conflicts_with_subcommands = true)]
struct Arguments {
    #[command(flatten)]
    compare: Compare,
    #[command(subcommand)]
    command: Option<Command>,
}

/// The device and the outputs.
#[derive(Args, Clone)]
struct Common {
    /// cpu, cpu-checked, cuda or cuda:N [default: `GPU_PRIMITIVES_DEVICE`, else the first GPU, else the CPU]
    #[arg(long)]
    device: Option<String>,
    /// Also write the measurements to this file
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Print JSON instead of tables
    #[arg(long)]
    json: bool,
}

/// The options of the comparison.
#[derive(Args)]
struct Compare {
    #[command(flatten)]
    common: Common,
    /// Measure quickly, with fewer elements and runs
    #[arg(long)]
    quick: bool,
    /// Number of elements, such as 1000000 or 2^24 [default: suited to the device]
    #[arg(long, value_parser = size)]
    size: Option<usize>,
    /// The folder for the report
    #[arg(long, value_name = "DIR", default_value = "target/gpu-benches")]
    out: PathBuf,
    /// Distribution of the keys
    #[arg(long, value_enum, default_value_t)]
    keys: Distribution,
    /// Share of deletions in mixed updates, from 0 to 1
    #[arg(long, default_value_t = 0.2)]
    deletions: f64,
    /// Share of absent keys in mixed lookups, from 0 to 1
    #[arg(long, default_value_t = 0.5)]
    absent: f64,
    /// Size of a value in bytes
    #[arg(long, default_value = "4", value_parser = ["0", "4", "8"])]
    value_bytes: String,
    /// Size of a key in bits
    #[arg(long, default_value = "32", value_parser = ["32", "64"])]
    key_bits: String,
    /// Operations per batch, such as 10000 or 2^16 [default: a sixteenth of the elements]
    #[arg(long, value_parser = size)]
    batch: Option<usize>,
}

#[derive(Subcommand)]
enum Command {
    /// Compare the three dictionaries with CPU structures on the same data, and measure the primitives (the default)
    Compare(Box<Compare>),
    /// Run every experiment of the paper, and print its numbers next to ours
    Paper {
        #[command(flatten)]
        common: Common,
        /// Divide all sizes by 2^SCALE: 12 for a CPU, 2 for a small GPU
        #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=i64::from(paper::MOST_SCALE)))]
        scale: u32,
        /// Insert at most so many batches of each size in the insertion table: quick, but not the paper's table
        #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
        most_batches: Option<u32>,
        /// Run only these experiments
        #[arg(long, value_enum)]
        only: Vec<paper::Experiment>,
        /// The folder for the report
        #[arg(long, value_name = "DIR", default_value = "target/gpu-benches")]
        out: PathBuf,
    },
    /// Measure the primitives, and CUB in the same run if nvcc is installed
    Primitives {
        #[command(flatten)]
        common: Common,
        /// Sizes, as powers of two
        #[arg(long = "log-size", value_parser = clap::value_parser!(u32).range(0..=40))]
        log_sizes: Vec<u32>,
        /// A peer program that is already compiled
        #[arg(long)]
        peer: Option<String>,
        /// Measure only these suites of rows
        #[arg(long)]
        only: Vec<String>,
    },
    /// Measure the cuckoo hash table
    Cuckoo {
        #[command(flatten)]
        common: Common,
        /// Sizes, as powers of two
        #[arg(long = "log-size", value_parser = clap::value_parser!(u32).range(10..=28))]
        log_sizes: Vec<u32>,
    },
    /// Measure the sorted array
    SortedArray {
        #[command(flatten)]
        common: Common,
        /// Sizes, as powers of two
        #[arg(long = "log-size", value_parser = clap::value_parser!(u32).range(10..=28))]
        log_sizes: Vec<u32>,
    },
    /// Measure the LSM
    Lsm {
        #[command(flatten)]
        common: Common,
        /// Number of elements of most rows, as a power of two
        #[arg(long = "log-size", value_parser = clap::value_parser!(u32).range(12..=26))]
        log_size: Option<u32>,
        /// Also measure the insertion table of the paper
        #[arg(long)]
        insertions: bool,
    },
    /// Generate the results page of the documentation from the measurements in its `data` folder
    Results {
        /// Change nothing; fail if the page is out of date
        #[arg(long)]
        check: bool,
        /// Folder of the documentation
        #[arg(long, default_value = "docs")]
        docs: PathBuf,
    },
}

/// Parses a number of elements: `1000` or `2^10`.
fn size(text: &str) -> Result<usize, String> {
    let number = match text.split_once('^') {
        Some(("2", power)) => power.parse().ok().and_then(|power| 1usize.checked_shl(power)),
        Some(_) => None,
        None => text.replace('_', "").parse().ok(),
    };
    number.ok_or_else(|| String::from("use a number such as 1000000 or 2^20"))
}

fn output(common: &Common, name: &'static str, title: &'static str, folder: Option<&Path>) -> Result<Output, Error> {
    let output = Output { name, title, csv: common.csv.clone(), folder: folder.map(PathBuf::from), json: common.json };
    output.prepare()?;
    Ok(output)
}

fn run_compare(arguments: &Compare) -> Result<(), Error> {
    let output = output(&arguments.common, "compare", "GPU dictionaries compared", Some(&arguments.out))?;
    // The parser accepts only numbers here.
    let number = |text: &str| text.parse().unwrap_or_default();
    let options = compare::Options {
        device: arguments.common.device.as_deref(),
        quick: arguments.quick,
        size: arguments.size,
        workload: Workload {
            keys: arguments.keys,
            deletions: arguments.deletions,
            absent: arguments.absent,
            value_bytes: number(&arguments.value_bytes),
            key_bits: number(&arguments.key_bits),
            batch: arguments.batch,
        },
    };
    output.deliver(compare::run(&options, |session, n, workload| match (workload.key_bits, workload.value_bytes) {
        (32, 0) => compare::dictionaries::<u32, ()>(session, n, workload),
        (32, 4) => compare::dictionaries::<u32, u32>(session, n, workload),
        (32, _) => compare::dictionaries::<u32, u64>(session, n, workload),
        (_, 0) => compare::dictionaries::<u64, ()>(session, n, workload),
        (_, 4) => compare::dictionaries::<u64, u32>(session, n, workload),
        _ => compare::dictionaries::<u64, u64>(session, n, workload),
    })?)
}

fn run(arguments: Arguments) -> Result<(), Error> {
    let Some(command) = arguments.command else { return run_compare(&arguments.compare) };
    match command {
        Command::Compare(compare) => run_compare(&compare),
        Command::Paper { common, scale, most_batches, only, out } => {
            let output = output(&common, "paper", "The experiments of the GPU LSM paper", Some(&out))?;
            let device = common.device.as_deref();
            output.deliver(paper::run(&paper::Options { device, scale, most_batches, only: &only })?)
        }
        Command::Primitives { common, log_sizes, peer, only } => {
            let output = output(&common, "primitives", "Primitives", None)?;
            let (device, peer) = (common.device.as_deref(), peer.as_deref());
            output.deliver(primitives::run(&primitives::Options { device, log_sizes: &log_sizes, peer, only: &only })?)
        }
        Command::Cuckoo { common, log_sizes } => {
            let output = output(&common, "cuckoo", "Cuckoo table", None)?;
            output.deliver(cuckoo::run(common.device.as_deref(), &log_sizes)?)
        }
        Command::SortedArray { common, log_sizes } => {
            let output = output(&common, "sorted-array", "Sorted array", None)?;
            output.deliver(sorted_array::run(common.device.as_deref(), &log_sizes)?)
        }
        Command::Lsm { common, log_size, insertions } => {
            let output = output(&common, "lsm", "LSM", None)?;
            let device = common.device.as_deref();
            output.deliver(lsm::run(&lsm::Options { device, log_size, insertions })?)
        }
        Command::Results { check, docs } => results::run(&docs, check),
    }
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    session::stop_on_ctrl_c();
    match run(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            // The exit code of a program that was ended by Ctrl-C, by the convention of shells.
            ExitCode::from(if matches!(error, Error::Interrupted) { 130 } else { 1 })
        }
    }
}
