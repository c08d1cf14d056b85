//! `cargo xtask ptx-lint`: checks all checked-in PTX, with or without NVIDIA's assembler.

use std::collections::BTreeSet;
use std::fs;
use std::num::NonZero;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use gpu_kernel_builder::Manifest;
use gpu_kernel_builder::lint::lint;
use gpu_kernel_builder::ptxas::{ARCHS, Ptxas, Usage};

use crate::assembled::Assembled;
use crate::error::Error;
use crate::workspace::Workspace;

/// The generation that the table shows.
const SHOWN: &str = "sm_90";

/// One kernel's checked-in PTX.
struct KernelFile {
    name: String,
    path: PathBuf,
    /// The hash of its text, as the manifest has it: `ptx --check` compares both.
    hash: String,
}

/// The results of `ptxas` for each kernel and each of [`ARCHS`].
type Matrix = Vec<Vec<Result<Usage, String>>>;

pub fn run(with_ptxas: bool, all: bool, packages: &[String]) -> Result<(), Error> {
    let workspace = Workspace::load()?;
    let mut assembler = None;
    if with_ptxas {
        let ptxas = Ptxas::find()?;
        let assembled = Assembled::read(&workspace, &ptxas)?;
        assembler = Some((ptxas, assembled));
    }
    let mut accepted = BTreeSet::new();
    let (mut findings, mut kernels) = (0, 0);
    for package in workspace.kernel_crates(packages)? {
        let folder = package.dir().join("ptx");
        let files: Vec<KernelFile> = Manifest::read(&folder)?
            .kernels
            .into_iter()
            .map(|(name, hash)| KernelFile { path: folder.join(format!("{name}.ptx")), name, hash })
            .collect();
        kernels += files.len();
        for file in &files {
            let ptx = fs::read_to_string(&file.path).map_err(Error::io("read", &file.path))?;
            for finding in lint(&ptx) {
                println!("{}: {}: {finding}", package.name, file.name);
                findings += 1;
            }
        }
        if let Some((ptxas, assembled)) = &assembler {
            let (files, known): (Vec<_>, Vec<_>) =
                files.into_iter().partition(|file| all || !assembled.has(&file.hash));
            accepted.extend(known.into_iter().map(|file| file.hash));
            let matrix = assemble_all(ptxas, &files)?;
            print_table(&package.name, &files, &matrix);
            findings += print_problems(&package.name, &files, &matrix);
            let rows = files.into_iter().zip(&matrix);
            accepted.extend(
                rows.filter(|(_, row)| row.iter().all(|cell| problem(cell).is_none())).map(|(file, _)| file.hash),
            );
        }
    }
    if let Some((_, assembled)) = assembler
        && packages.is_empty()
    {
        assembled.write(accepted)?;
    }
    if findings > 0 {
        return Err(Error::Findings { count: findings, kernels });
    }
    println!("{kernels} kernels, no findings");
    Ok(())
}

/// Assembles every kernel for every generation, on all cores: `ptxas` uses only one.
fn assemble_all(ptxas: &Ptxas, files: &[KernelFile]) -> Result<Matrix, Error> {
    let cells = files.len() * ARCHS.len();
    let results: Vec<_> = (0..cells).map(|_| Mutex::new(None)).collect();
    let next = AtomicUsize::new(0);
    let workers = thread::available_parallelism().map_or(1, NonZero::get).min(cells);
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let cell = next.fetch_add(1, Ordering::Relaxed);
                    let Some(slot) = results.get(cell) else { return };
                    let file = &files[cell / ARCHS.len()];
                    let result = ptxas.assemble(ARCHS[cell % ARCHS.len()], &file.path);
                    *slot.lock().unwrap() = Some(result);
                }
            });
        }
    });
    let mut results = results.into_iter().map(|slot| slot.into_inner().unwrap().expect("every cell was taken"));
    files.iter().map(|_| Ok(results.by_ref().take(ARCHS.len()).collect::<Result<_, _>>()?)).collect()
}

fn print_table(package: &str, files: &[KernelFile], matrix: &Matrix) {
    let shown = ARCHS.iter().position(|arch| *arch == SHOWN).expect("one of ARCHS");
    let width = files.iter().map(|file| file.name.len()).max().unwrap_or(0).max(6);
    println!("\n{package}, {SHOWN}\n{:width$}  registers  shared  spills", "kernel");
    for (file, row) in files.iter().zip(matrix) {
        match &row[shown] {
            Ok(usage) => {
                let spills = usage.spill_stores + usage.spill_loads;
                println!("{:width$}  {:>9}  {:>6}  {spills:>6}", file.name, usage.registers, usage.shared);
            }
            Err(_) => println!("{:width$}  rejected", file.name),
        }
    }
    println!();
}

/// Returns what is wrong with a kernel on one generation.
fn problem(cell: &Result<Usage, String>) -> Option<String> {
    match cell {
        Ok(usage) => usage.problem(),
        Err(message) => Some(format!("ptxas rejects it: {message}")),
    }
}

/// Prints the problems of all generations. Returns their number.
fn print_problems(package: &str, files: &[KernelFile], matrix: &Matrix) -> usize {
    let mut count = 0;
    for (file, row) in files.iter().zip(matrix) {
        for (arch, cell) in ARCHS.iter().zip(row) {
            if let Some(problem) = problem(cell) {
                println!("{package}: {}: {arch}: {problem}", file.name);
                count += 1;
            }
        }
    }
    count
}
