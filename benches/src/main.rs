//! The benchmark program: the comparison of the dictionaries, and the measurements behind the documentation.

use clap::{Parser, Subcommand};
use gpu_benches::command::{Common, Compare, Peers};
use gpu_benches::compare::{Contest, finish};
use gpu_benches::{Error, cuckoo, lsm, paper, primitives, results, session, sorted_array, tables};
use std::path::PathBuf;
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

#[derive(Subcommand)]
enum Command {
    /// Compare the three dictionaries with CPU structures on the same data, and measure the primitives (the default)
    Compare(Box<Compare>),
    /// Run every experiment of the paper, and print its numbers next to ours; --size is the paper's 2^27 by default
    Paper {
        #[command(flatten)]
        common: Common,
        /// Divide all sizes by 2^SCALE, instead of --size: 12 for a CPU, 2 for a small GPU
        #[arg(long, conflicts_with = "sizes", value_parser = clap::value_parser!(u32).range(0..=i64::from(paper::MOST_SCALE)))]
        scale: Option<u32>,
        /// Insert at most so many batches of each size in the insertion table: quick, but not the paper's table
        #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
        most_batches: Option<u32>,
        /// Run only these experiments, separated by commas
        #[arg(long, value_enum, value_delimiter = ',')]
        only: Vec<paper::Experiment>,
    },
    /// Measure the primitives, and CUB in the same run if nvcc is installed
    Primitives {
        #[command(flatten)]
        common: Common,
        #[command(flatten)]
        peers: Peers,
        /// Compile CUB's program with the headers in this folder instead of the toolkit's
        #[arg(long, value_name = "FOLDER")]
        cub: Option<PathBuf>,
        /// Measure only these suites of rows, separated by commas
        #[arg(long, value_delimiter = ',')]
        only: Vec<String>,
    },
    /// Measure the cuckoo hash table
    Cuckoo {
        #[command(flatten)]
        common: Common,
    },
    /// Measure the sorted array
    SortedArray {
        #[command(flatten)]
        common: Common,
    },
    /// Measure the LSM
    Lsm {
        #[command(flatten)]
        common: Common,
        /// Also measure the insertion table of the paper
        #[arg(long)]
        insertions: bool,
        /// Also measure a dictionary that is larger than its budget of device memory: on a GPU with 128 times as many elements, which take
        /// up to 64 GiB of the host's memory
        #[arg(long)]
        beyond: bool,
    },
    /// Measure joins, groups and sorts of tables; --size is the number of rows of the larger table
    Tables {
        #[command(flatten)]
        common: Common,
        /// Measure quickly, with fewer rows and runs
        #[arg(long)]
        quick: bool,
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

fn run_compare(arguments: &Compare) -> Result<(), Error> {
    match (arguments.key_bits.as_deref().unwrap_or("32"), arguments.value_bytes.as_deref().unwrap_or("4")) {
        ("32", "0") => Contest::<u32, ()>::new().run(arguments),
        ("32", "4") => Contest::<u32, u32>::new().run(arguments),
        ("32", _) => Contest::<u32, u64>::new().run(arguments),
        (_, "0") => Contest::<u64, ()>::new().run(arguments),
        (_, "4") => Contest::<u64, u32>::new().run(arguments),
        _ => Contest::<u64, u64>::new().run(arguments),
    }
}

/// Returns the scale of the paper's experiments with this many elements.
fn scale_of(size: usize) -> Result<u32, Error> {
    let allowed = paper::LOG_SIZE - paper::MOST_SCALE..=paper::LOG_SIZE;
    Ok(paper::LOG_SIZE - session::logarithms(&[size], allowed)?[0])
}

fn run(arguments: Arguments) -> Result<(), Error> {
    let Some(command) = arguments.command else { return run_compare(&arguments.compare) };
    match command {
        Command::Compare(compare) => run_compare(&compare),
        Command::Paper { common, scale, most_batches, only } => {
            let output = common.output("paper", "The experiments of the GPU LSM paper")?;
            let scale = match common.one_size()? {
                Some(size) => scale_of(size)?,
                None => scale.unwrap_or(0),
            };
            let device = common.device.as_deref();
            output.deliver(paper::run(&paper::Options { device, scale, most_batches, only: &only })?)
        }
        Command::Primitives { common, peers, cub, only } => {
            let output = common.output("primitives", "Primitives")?;
            let options = primitives::Options {
                device: common.device.as_deref(),
                sizes: &common.sizes,
                peers: &peers,
                cub: cub.as_deref(),
                only: &only,
            };
            output.deliver(primitives::run(&options)?)
        }
        Command::Cuckoo { common } => {
            let output = common.output("cuckoo", "Cuckoo table")?;
            output.deliver(cuckoo::run(common.device.as_deref(), &common.sizes)?)
        }
        Command::SortedArray { common } => {
            let output = common.output("sorted-array", "Sorted array")?;
            output.deliver(sorted_array::run(common.device.as_deref(), &common.sizes)?)
        }
        Command::Lsm { common, insertions, beyond } => {
            let output = common.output("lsm", "LSM")?;
            let (device, size) = (common.device.as_deref(), common.one_size()?);
            output.deliver(lsm::run(&lsm::Options { device, size, insertions, beyond })?)
        }
        Command::Tables { common, quick } => {
            let output = common.output("tables", "Tables")?;
            let (device, sizes) = (common.device.as_deref(), &common.sizes[..]);
            output.deliver(tables::run(&tables::Options { device, sizes, quick })?)
        }
        Command::Results { check, docs } => results::run(&docs, check),
    }
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    session::stop_on_ctrl_c();
    finish(run(arguments))
}
