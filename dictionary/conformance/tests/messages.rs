//! What the compiler says about programs that are wrong in a way that happens to everybody. The lines that help must be there; the
//! rest of a message changes with the compiler.
//!
//! Programs are checked, as `cargo check` does, against the libraries that cargo has built for this package.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// A program that does not compile.
struct Wrong {
    name: &'static str,
    /// What `main` does. It has `stream`, and `values` in the memory of the device.
    body: &'static str,
    /// Items before `main`.
    items: &'static str,
    /// What the first line says: not the words of the inside, but what is wrong.
    title: &'static str,
    /// What the rest says: what to do.
    advice: &'static [&'static str],
}

const WRONG: &[Wrong] = &[
    Wrong {
        name: "a lookup of keys of the host",
        body: "GpuLsm::<u32, u32>::new(&stream, gpu_lsm::Options::new())?.lookup(&stream, &[1, 2])?;",
        items: "",
        title: "in the memory of the host",
        advice: &["takes memory of a device", "stream.upload(", "elements of the host"],
    },
    Wrong {
        name: "an insertion of vectors of the host",
        body: "GpuCuckoo::<u32, u32>::new(&stream, Options::new())?.insert(&stream, (&vec![1, 2], &values))?;",
        items: "",
        title: "in the memory of the host",
        advice: &["stream.upload("],
    },
    Wrong {
        name: "a primitive with elements of the host",
        body: "scan::inclusive(&stream, &[1u32, 2], &mut stream.uninit::<u32>(2)?, Sum)?;",
        items: "",
        title: "[u32; 2]",
        advice: &["stream.upload("],
    },
    Wrong {
        name: "keys that are strings",
        body: "GpuLsm::<String, u32>::new(&stream, gpu_lsm::Options::new())?;",
        items: "",
        title: "`String` is not a key of an ordered dictionary",
        advice: &["numbers of 8 to 128 bits", "derive `Record` and `RadixKey`"],
    },
    Wrong {
        name: "keys of a hash table that are short",
        body: "GpuCuckoo::<u16, u32>::new(&stream, Options::new())?;",
        items: "",
        title: "`u16` is not a number of 32 or 64 bits",
        advice: &["the keys of a hash table are `u32`", "`GpuLsm` and `GpuSortedArray`"],
    },
    Wrong {
        name: "plain keys that are too long",
        body: "PlainCuckoo::<[u8; 33], u32>::new(&stream, Options::new())?;",
        items: "",
        title: "a key of a `PlainCuckoo` has 1 to 32 bytes",
        advice: &["this array has 33 elements"],
    },
    Wrong {
        name: "plain keys of a type of one's own",
        body: "PlainCuckoo::<Cell, u32>::new(&stream, Options::new())?;",
        items: "#[repr(C)] #[derive(Clone, Copy)] struct Cell(u32);
            unsafe impl bytemuck::Zeroable for Cell {} unsafe impl bytemuck::Pod for Cell {}",
        title: "`Cell` is not a key of a `PlainCuckoo`",
        advice: &["gpu_dictionary::plain_key!(Cell);"],
    },
    Wrong {
        name: "values of twelve bytes",
        body: "GpuSortedArray::<u32, [u32; 3]>::new(&stream, gpu_sorted_array::Options::new())?;",
        items: "",
        title: "not a value of a dictionary",
        advice: &["0, 4 or 8 bytes", "`gpu_dictionary::LargeValues`"],
    },
    Wrong {
        name: "an operator that is not plain",
        body: "scan::inclusive(&stream, &values, &mut stream.uninit::<u32>(2)?, Or)?;",
        items: "#[derive(Clone, Copy)] struct Or;
            #[gpu_primitives::operator::operator]
            impl Monoid<u32> for Or {
                fn identity(&self) -> u32 { 0 }
                fn combine(&self, a: u32, b: u32) -> u32 { a | b }
            }",
        title: "`Or` is not plain data",
        advice: &["an operator is plain data", "#[derive(Clone, Copy, Pod, Zeroable)]"],
    },
    Wrong {
        name: "a function that is a closure",
        body: "transform::map(&stream, &values, &mut stream.uninit::<u32>(2)?, |x: u32| x + 1)?;",
        items: "",
        title: "is not a function that the device can call",
        advice: &["`gpu_primitives::operator::map!` makes one of a closure", "#[operator]"],
    },
    Wrong {
        name: "an operation that does not combine such elements",
        body: "scan::inclusive(&stream, &stream.upload(&[[1u8; 3]])?, &mut stream.uninit::<[u8; 3]>(1)?, Sum)?;",
        items: "",
        title: "is not an operation that combines elements of type `[u8; 3]`",
        advice: &["`gpu_primitives::operator::monoid!` makes an operation", "#[operator]"],
    },
    Wrong {
        name: "an order that is a closure",
        body: "merge_sort::keys_in_place(&stream, &mut stream.upload(&[2u32, 1])?, |a: u32, b: u32| a < b)?;",
        items: "",
        title: "is not an order of elements of type `u32`",
        advice: &["`gpu_primitives::operator::order!` makes an order of a closure", "#[operator]"],
    },
    Wrong {
        name: "an upsertion by what is no operation",
        body: "GpuCuckoo::<u32, f32>::new(&stream, Options::new())?.upsert(&stream, (&values, &floats), 7)?;",
        items: "",
        title: "`f32`",
        advice: &["an operation implements `Monoid<f32>`", "#[operator]"],
    },
];

/// What all programs begin with.
const START: &str = "
#![allow(unused)]
extern crate all as gpu_primitives;
use gpu_primitives::{bytemuck, gpu_cuckoo, gpu_dictionary, gpu_lsm, gpu_sorted_array};
use gpu_primitives::monoid::Monoid;
use gpu_primitives::scan::{self, Sum};
use gpu_primitives::{Device, Error, merge_sort, transform};
use gpu_cuckoo::{GpuCuckoo, Options, PlainCuckoo};
use gpu_lsm::GpuLsm;
use gpu_sorted_array::GpuSortedArray;
";

/// The compiler, and where cargo has put the libraries.
struct Compiler {
    rustc: PathBuf,
    built: PathBuf,
    scratch: PathBuf,
}

impl Compiler {
    /// Returns the compiler of the cargo that runs the test. None if it does not: then there is no Rust here.
    fn of_cargo() -> Option<Self> {
        let rustc = PathBuf::from(std::env::var_os("CARGO")?).with_file_name("rustc");
        let own = std::env::current_exe().expect("a test has a file");
        let built = own.ancestors().nth(2).expect("tests are in a folder of the target's folder").to_owned();
        let scratch = std::env::temp_dir().join(format!("messages-{}", std::process::id()));
        std::fs::create_dir_all(&scratch).expect("the folder for temporary files can be written");
        Some(Self { rustc, built, scratch })
    }

    /// Returns the file of the example `all`, which links all libraries.
    fn library(&self) -> PathBuf {
        self.built.join("examples/liball.rlib")
    }

    /// Checks a program. Returns what the compiler says if it is wrong.
    fn check(&self, number: usize, items: &str, body: &str) -> Option<String> {
        let main = "fn main() -> Result<(), Error> {
            let stream = Device::cpu().stream()?;
            let (values, floats) = (stream.upload(&[1u32, 2])?, stream.upload(&[1.0f32, 2.0])?);";
        let file = self.scratch.join(format!("program_{number}.rs"));
        std::fs::write(&file, format!("{START}\n{items}\n{main}\n{body}\nOk(())\n}}\n")).expect("it can be written");
        let compiled = Command::new(&self.rustc)
            .args(["--edition=2024", "--emit=metadata", "--color=never", "--out-dir"])
            .arg(&self.scratch)
            .arg("--extern")
            .arg(format!("all={}", path(&self.library())))
            .arg("-L")
            .arg(format!("dependency={}", path(&self.built.join("deps"))))
            .arg(&file)
            .output()
            .unwrap_or_else(|error| panic!("{}: {error}", self.rustc.display()));
        let message = String::from_utf8_lossy(&compiled.stderr).into_owned();
        (!compiled.status.success()).then_some(message)
    }
}

impl Drop for Compiler {
    fn drop(&mut self) {
        // It is a folder of temporary files.
        let _ = std::fs::remove_dir_all(&self.scratch);
    }
}

fn path(path: &Path) -> &str {
    path.to_str().expect("paths of the target's folder are text")
}

fn main() -> ExitCode {
    let Some(compiler) = Compiler::of_cargo() else {
        println!("not run by cargo: there is no compiler");
        return ExitCode::SUCCESS;
    };
    if !compiler.library().exists() {
        println!("build the libraries first: `cargo build -p gpu-dictionary-conformance --example all`");
        return ExitCode::FAILURE;
    }
    // What is right compiles, so that the others fail for their own reasons.
    let right = "GpuLsm::<u32, u32>::new(&stream, gpu_lsm::Options::new())?.lookup(&stream, &values)?;
        GpuCuckoo::<u32, f32>::new(&stream, Options::new())?.upsert(&stream, (&values, &floats), Sum)?;
        PlainCuckoo::<[u8; 32], u32>::new(&stream, Options::new())?;
        scan::inclusive(&stream, &values, &mut stream.uninit::<u32>(2)?, Sum)?;";
    if let Some(message) = compiler.check(0, "", right) {
        println!("a right program does not compile:\n{message}");
        return ExitCode::FAILURE;
    }
    let mut failures = 0;
    for (number, wrong) in (1..).zip(WRONG) {
        let Some(message) = compiler.check(number, wrong.items, wrong.body) else {
            println!("{}: it compiles", wrong.name);
            failures += 1;
            continue;
        };
        let has_title = message.lines().next().is_some_and(|line| line.contains(wrong.title));
        let missing: Vec<_> = wrong.advice.iter().filter(|text| !message.contains(**text)).collect();
        if has_title && missing.is_empty() {
            println!("{}: ok", wrong.name);
        } else {
            println!("{}: the title is there: {has_title}; these are not: {missing:?}\n{message}", wrong.name);
            failures += 1;
        }
    }
    if failures == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
