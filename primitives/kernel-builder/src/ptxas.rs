//! NVIDIA's assembler, which needs no GPU. It checks whether a kernel's PTX assembles for every generation, and whether
//! the kernel spills registers.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::Error;
use crate::error::tail;
use crate::holes::fill_with_samples;

/// The GPU generations that kernels are assembled for: Turing to Blackwell.
pub const ARCHS: [&str; 7] = ["sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120"];

/// An installed `ptxas`.
#[derive(Clone, Debug)]
pub struct Ptxas {
    path: PathBuf,
}

/// The resources that a kernel uses on one generation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Usage {
    /// Registers per thread.
    pub registers: u32,
    /// Bytes of shared memory that the kernel declares, without the dynamic shared memory of a launch.
    pub shared: u32,
    /// Bytes of stack per thread.
    pub stack: u32,
    /// Bytes of registers stored to memory.
    pub spill_stores: u32,
    /// Bytes of registers loaded back.
    pub spill_loads: u32,
}

impl Ptxas {
    /// Finds `ptxas`: first in the variable `PTXAS`, then in `PATH`, then among the packages that pip installed.
    pub fn find() -> Result<Self, Error> {
        if let Some(path) = env::var_os("PTXAS").filter(|path| !path.is_empty()) {
            return Ok(Self { path: path.into() });
        }
        let in_path = env::var_os("PATH").and_then(|paths| env::split_paths(&paths).map(program_in).find_map(existing));
        match in_path.or_else(installed_by_pip) {
            Some(path) => Ok(Self { path }),
            None => Err(Error::NoPtxas),
        }
    }

    /// Returns the release that it belongs to, such as `13.0`; or all that it says of its version, if no release is named.
    pub fn release(&self) -> Result<String, Error> {
        let output = Command::new(&self.path).arg("--version").output().map_err(Error::io("run", &self.path))?;
        Ok(release_in(&String::from_utf8_lossy(&output.stdout)))
    }

    /// Assembles one PTX file for one generation, with samples in its holes. The inner error is the message of `ptxas`
    /// about the PTX.
    pub fn assemble(&self, arch: &str, ptx: &Path) -> Result<Result<Usage, String>, Error> {
        // The machine code is discarded, and not every system has a /dev/null.
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("gpu-kernel-builder-{}-{number}", std::process::id());
        let output_file = env::temp_dir().join(format!("{name}.cubin"));
        let text = fs::read_to_string(ptx).map_err(Error::io("read", ptx))?;
        let filled_file = env::temp_dir().join(format!("{name}.ptx"));
        fs::write(&filled_file, &*fill_with_samples(&text)).map_err(Error::io("write", &filled_file))?;
        let mut command = Command::new(&self.path);
        command.arg(format!("-arch={arch}")).arg("-v").arg(&filled_file).arg("-o").arg(&output_file);
        let output = command.output().map_err(Error::io("run", &self.path));
        let _ = (fs::remove_file(&output_file), fs::remove_file(&filled_file));
        let output = output?;
        let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        if !output.status.success() {
            return Ok(Err(tail(&text, 10)));
        }
        Ok(Usage::parse(&text).ok_or_else(|| format!("cannot parse the output of ptxas -v:\n{text}")))
    }
}

impl Usage {
    /// Parses the output of `ptxas -v` for a file with one kernel. If there are functions, too, returns the maximum.
    fn parse(text: &str) -> Option<Self> {
        let mut usage = Self::default();
        let mut understood = false;
        for line in text.lines() {
            if line.contains("bytes stack frame") {
                usage.stack = usage.stack.max(number_before(line, " bytes stack frame")?);
                usage.spill_stores = usage.spill_stores.max(number_before(line, " bytes spill stores")?);
                usage.spill_loads = usage.spill_loads.max(number_before(line, " bytes spill loads")?);
            } else if line.contains(" registers") {
                usage.registers = usage.registers.max(number_before(line, " registers")?);
                usage.shared = usage.shared.max(number_before(line, " bytes smem").unwrap_or(0));
                understood = true;
            }
        }
        understood.then_some(usage)
    }

    /// Returns the problem of a kernel with this usage, if there is one.
    pub fn problem(&self) -> Option<String> {
        if self.spill_stores > 0 || self.spill_loads > 0 {
            Some(format!("spills registers ({} bytes stored, {} loaded)", self.spill_stores, self.spill_loads))
        } else if self.stack > 0 {
            Some(format!("uses {} bytes of stack", self.stack))
        } else {
            None
        }
    }
}

fn release_in(text: &str) -> String {
    let named = text.split_once("release ").and_then(|(_, rest)| rest.split(',').next());
    named.unwrap_or(text).trim().into()
}

fn number_before(line: &str, unit: &str) -> Option<u32> {
    let before = &line[..line.find(unit)?];
    before.rsplit(|character: char| !character.is_ascii_digit()).next()?.parse().ok()
}

fn program_in(folder: PathBuf) -> PathBuf {
    folder.join(format!("ptxas{}", env::consts::EXE_SUFFIX))
}

fn existing(path: PathBuf) -> Option<PathBuf> {
    path.is_file().then_some(path)
}

/// Finds the `ptxas` of the package `nvidia-cuda-nvcc`, whose folder only Python knows.
fn installed_by_pip() -> Option<PathBuf> {
    let output =
        Command::new("python3").args(["-c", "import nvidia; print(*nvidia.__path__, sep='\\n')"]).output().ok()?;
    let folders = String::from_utf8_lossy(&output.stdout).into_owned();
    let programs = folders.lines().flat_map(|folder| {
        ["cu13/bin", "cuda_nvcc/bin"].map(|relative| program_in(Path::new(folder.trim()).join(relative)))
    });
    programs.into_iter().find_map(existing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_read() {
        let text =
            "ptxas: NVIDIA (R) Ptx optimizing assembler\nCuda compilation tools, release 13.0, V13.0.88\nBuild 1\n";
        assert_eq!(release_in(text), "13.0");
        assert_eq!(release_in("some assembler 7\n"), "some assembler 7");
    }

    #[test]
    fn usage_is_read() {
        let text = "ptxas info    : 0 bytes gmem\n\
            ptxas info    : Compiling entry function 'k' for 'sm_90'\n\
            ptxas info    : Function properties for k\n    \
            64 bytes stack frame, 12 bytes spill stores, 20 bytes spill loads\n\
            ptxas info    : Used 255 registers, used 1 barriers, 64 bytes cumulative stack size, 1024 bytes smem\n\
            ptxas info    : Compile time = 11.994 ms\n";
        let usage = Usage::parse(text).unwrap();
        assert_eq!(usage, Usage { registers: 255, shared: 1024, stack: 64, spill_stores: 12, spill_loads: 20 });
        assert!(usage.problem().unwrap().contains("12 bytes stored, 20 loaded"));
        assert_eq!(Usage::parse("ptxas info    : 0 bytes gmem\n"), None);
    }

    #[test]
    fn registers_alone_are_no_problem_and_a_stack_is() {
        let text = "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n\
            ptxas info    : Used 16 registers, used 0 barriers\n";
        let usage = Usage::parse(text).unwrap();
        assert_eq!((usage.registers, usage.problem()), (16, None));
        assert!(Usage { stack: 8, ..usage }.problem().unwrap().contains("8 bytes of stack"));
    }
}
