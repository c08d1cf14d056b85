//! The main job of the repository, and the measurements behind the documentation.

use clap::{Parser, Subcommand};
use gpu_benches::primitives::Options;
use std::process::ExitCode;

/// GPU primitives and dictionaries, measured on the device found.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    /// cpu, cpu-checked, cuda or cuda:N; else `GPU_PRIMITIVES_DEVICE`, else the first GPU, else the CPU
    #[arg(long, global = true)]
    device: Option<String>,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// Scan 2^20 numbers, check the result, print device and rate (the default)
    Quickstart,
    /// The table of the primitives, with the peer (CUB) in the same run where nvcc is there
    Primitives {
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
        /// Sizes, as powers of two
        #[arg(long = "log-size", value_parser = clap::value_parser!(u32).range(10..=28))]
        log_sizes: Vec<u32>,
    },
    /// The table of the LSM
    Lsm {
        /// The number of elements of most rows, as a power of two
        #[arg(long = "log-size", value_parser = clap::value_parser!(u32).range(12..=26))]
        log_size: Option<u32>,
        /// The insertion table of the paper, too
        #[arg(long)]
        insertions: bool,
    },
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let device = arguments.device.as_deref();
    let result = match arguments.command.unwrap_or(Command::Quickstart) {
        Command::Quickstart => gpu_benches::quickstart::run(device),
        Command::Cuckoo { log_sizes } => {
            gpu_benches::cuckoo::run(&gpu_benches::cuckoo::Options { device, log_sizes: &log_sizes })
        }
        Command::Lsm { log_size, insertions } => {
            gpu_benches::lsm::run(&gpu_benches::lsm::Options { device, log_size, insertions })
        }
        Command::Primitives { log_sizes, peer, only } => {
            gpu_benches::primitives::run(&Options { device, log_sizes: &log_sizes, peer: peer.as_deref(), only: &only })
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
