//! The workspace's own commands: `cargo xtask ptx`, `cargo xtask ptx-lint`, `cargo xtask kernel-page`, `cargo xtask methods-page`,
//! `cargo xtask book`, `cargo xtask packages`, `cargo xtask api`, `cargo xtask gpu-bundle`.

mod api;
mod assembled;
mod book;
mod bundle;
mod error;
mod kernel_page;
mod methods_page;
mod packages;
mod ptx;
mod ptx_lint;
mod workspace;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// The workspace's own commands.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Compiles every kernel crate (with `[package.metadata.ptx]`) to PTX in its `ptx` folder. Needs a nightly.
    Ptx {
        /// Change nothing; compare byte for byte with the checked-in PTX.
        #[arg(long)]
        check: bool,
        /// Only this package; may be given several times.
        #[arg(short, long = "package")]
        packages: Vec<String>,
    },
    /// Checks the checked-in PTX: no local memory, no calls, no generic accesses.
    PtxLint {
        /// Also assemble every kernel with ptxas for every GPU generation: no failures, no spills. What `.ci/assembled` records
        /// was accepted before, and is left out.
        #[arg(long)]
        ptxas: bool,
        /// With `--ptxas`: leave nothing out.
        #[arg(long, requires = "ptxas")]
        all: bool,
        /// Only this package; may be given several times.
        #[arg(short, long = "package")]
        packages: Vec<String>,
    },
    /// Writes the page that lists which kernels exist.
    KernelPage {
        /// Change nothing; compare with the page that is there.
        #[arg(long)]
        check: bool,
    },
    /// Writes the page that compares the methods of all dictionaries, from the lists that `api` writes.
    MethodsPage {
        /// Change nothing; compare with the page that is there.
        #[arg(long)]
        check: bool,
    },
    /// Checks the links and the code of the documentation's pages.
    Book {
        /// Also build the book with this mdBook, and check its links.
        #[arg(long, value_name = "PROGRAM")]
        mdbook: Option<PathBuf>,
    },
    /// Checks that every library crate can be published, and compiles each from its package.
    Packages,
    /// Writes the public items of every library crate to the folder `api`. Needs a nightly.
    Api {
        /// Change nothing; compare with the lists that are there.
        #[arg(long)]
        check: bool,
    },
    /// Collects tests, benchmarks and a `run.sh` for a machine with an NVIDIA driver and without Rust.
    GpuBundle {
        /// The folder to write, which is emptied first.
        #[arg(long, default_value = "target/gpu-bundle")]
        out: PathBuf,
    },
}

fn main() -> ExitCode {
    let result = match Arguments::parse().task {
        Task::Ptx { check, packages } => ptx::run(check, &packages),
        Task::PtxLint { ptxas, all, packages } => ptx_lint::run(ptxas, all, &packages),
        Task::KernelPage { check } => kernel_page::run(check),
        Task::MethodsPage { check } => methods_page::run(check),
        Task::Book { mdbook } => book::run(mdbook.as_deref()),
        Task::Packages => packages::run(),
        Task::Api { check } => api::run(check),
        Task::GpuBundle { out } => bundle::run(&out),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
