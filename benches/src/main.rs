//! The main job of the repository, and the measurements behind the documentation.

use clap::{Args, Parser, Subcommand};
use gpu_benches::compare::{self, Workload};
use gpu_benches::data::Distribution;
use gpu_benches::output::Output;
use gpu_benches::{Error, cuckoo, lsm, paper, primitives, results, session, sorted_array};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// GPU primitives and dictionaries, measured on the device found.
///
/// Without a command: `compare`.
#[derive(Parser)]
#[command(version, args_conflicts_with_subcommands = true)]
struct Arguments {
    #[command(flatten)]
    compare: Compare,
    #[command(subcommand)]
    command: Option<Command>,
}

/// Where it runs and where numbers go.
#[derive(Args, Clone)]
struct Common {
    /// cpu, cpu-checked, cuda or cuda:N; else `GPU_PRIMITIVES_DEVICE`, else the first GPU, else the CPU
    #[arg(long)]
    device: Option<String>,
    /// Write the numbers to this file, too
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Print JSON instead of tables
    #[arg(long)]
    json: bool,
}

/// The main job's options.
#[derive(Args)]
struct Compare {
    #[command(flatten)]
    common: Common,
    /// A rough answer in a moment
    #[arg(long)]
    quick: bool,
    /// Elements, such as 1000000 or 2^24; else what fits the device
    #[arg(long, value_parser = size)]
    size: Option<usize>,
    /// The folder for the report
    #[arg(long, value_name = "DIR", default_value = "target/gpu-benches")]
    out: PathBuf,
    /// How keys are distributed
    #[arg(long, value_enum, default_value_t)]
    keys: Distribution,
    /// The share of deletions in mixed updates
    #[arg(long, default_value_t = 0.2)]
    deletions: f64,
    /// The share of absent keys in mixed lookups
    #[arg(long, default_value_t = 0.5)]
    absent: f64,
    /// Bytes of a value
    #[arg(long, default_value = "4", value_parser = ["0", "4", "8"])]
    value_bytes: String,
    /// Bits of a key
    #[arg(long, default_value = "32", value_parser = ["32", "64"])]
    key_bits: String,
    /// Operations of a batch, such as 10000 or 2^16; else a sixteenth of the elements
    #[arg(long, value_parser = size)]
    batch: Option<usize>,
}

#[derive(Subcommand)]
enum Command {
    /// The three dictionaries, what everybody knows, and the primitives, on the same data (the default)
    Compare(Box<Compare>),
    /// Every experiment of the paper, with its numbers beside ours
    Paper {
        #[command(flatten)]
        common: Common,
        /// Divide all sizes by two to the power of this: for a CPU 12, for a small GPU 2
        #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=i64::from(paper::MOST_SCALE)))]
        scale: u32,
        /// Only these experiments
        #[arg(long, value_enum)]
        only: Vec<paper::Experiment>,
        /// The folder for the report
        #[arg(long, value_name = "DIR", default_value = "target/gpu-benches")]
        out: PathBuf,
    },
    /// The table of the primitives, with the peer (CUB) in the same run where nvcc is there
    Primitives {
        #[command(flatten)]
        common: Common,
        /// Sizes, as powers of two
        #[arg(long = "log-size", value_parser = clap::value_parser!(u32).range(0..=40))]
        log_sizes: Vec<u32>,
        /// A peer program that is compiled already
        #[arg(long)]
        peer: Option<String>,
        /// Only these suites of rows
        #[arg(long)]
        only: Vec<String>,
    },
    /// The table of the cuckoo hash table
    Cuckoo {
        #[command(flatten)]
        common: Common,
        /// Sizes, as powers of two
        #[arg(long = "log-size", value_parser = clap::value_parser!(u32).range(10..=28))]
        log_sizes: Vec<u32>,
    },
    /// The table of the sorted array
    SortedArray {
        #[command(flatten)]
        common: Common,
        /// Sizes, as powers of two
        #[arg(long = "log-size", value_parser = clap::value_parser!(u32).range(10..=28))]
        log_sizes: Vec<u32>,
    },
    /// The table of the LSM
    Lsm {
        #[command(flatten)]
        common: Common,
        /// The number of elements of most rows, as a power of two
        #[arg(long = "log-size", value_parser = clap::value_parser!(u32).range(12..=26))]
        log_size: Option<u32>,
        /// The insertion table of the paper, too
        #[arg(long)]
        insertions: bool,
    },
    /// Write the results page of the documentation from the files of measurements beside it
    Results {
        /// Change nothing; fail if the page is not what the measurements give
        #[arg(long)]
        check: bool,
        /// The folder of the documentation
        #[arg(long, default_value = "docs")]
        docs: PathBuf,
    },
}

/// A number of elements: `1000` or `2^10`.
fn size(text: &str) -> Result<usize, String> {
    let number = match text.split_once('^') {
        Some(("2", power)) => power.parse().ok().and_then(|power| 1usize.checked_shl(power)),
        Some(_) => None,
        None => text.replace('_', "").parse().ok(),
    };
    number.ok_or_else(|| String::from("a number such as 1000000 or 2^20 is needed"))
}

fn output(common: &Common, name: &'static str, title: &'static str, folder: Option<&Path>) -> Result<Output, Error> {
    let output = Output { name, title, csv: common.csv.clone(), folder: folder.map(PathBuf::from), json: common.json };
    output.prepare()?;
    Ok(output)
}

fn run_compare(arguments: &Compare) -> Result<(), Error> {
    let output = output(&arguments.common, "compare", "GPU dictionaries compared", Some(&arguments.out))?;
    // The parser takes nothing else.
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
        Command::Paper { common, scale, only, out } => {
            let output = output(&common, "paper", "The experiments of the GPU LSM paper", Some(&out))?;
            let device = common.device.as_deref();
            output.deliver(paper::run(&paper::Options { device, scale, only: &only })?)
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
            // As a shell reports a program that Ctrl-C has ended.
            ExitCode::from(if matches!(error, Error::Interrupted) { 130 } else { 1 })
        }
    }
}
