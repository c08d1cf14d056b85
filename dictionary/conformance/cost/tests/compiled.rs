//! What is compiled with a program that uses the library, and what is not.
//!
//! The programs are optimised as release builds are, so that they do not share generic code with the library: all of it
//! that they call is compiled with them, in their crates. The name of such a function ends with that of the crate.

use std::process::Command;

/// A function in a program that was compiled in the program's own crate.
struct Function {
    bytes: usize,
    name: String,
}

/// Returns the functions of a program that its own crate has compiled.
fn compiled_in(program: &str, path: &str) -> Vec<Function> {
    let listed = Command::new("nm").args(["--print-size", "--defined-only", path]).output();
    let listed = listed.expect("`nm` is part of binutils, which every linker needs");
    assert!(listed.status.success(), "{}", String::from_utf8_lossy(&listed.stderr));
    let suffix = format!("{}{program}", program.len());
    let symbols = String::from_utf8_lossy(&listed.stdout);
    let own = symbols.lines().filter_map(|line| {
        let [_, bytes, kind, name] = line.split_whitespace().collect::<Vec<_>>()[..] else { return None };
        let symbol = name.split('.').next()?;
        let is_own = kind.eq_ignore_ascii_case("t") && symbol.starts_with("_R") && symbol.ends_with(&suffix);
        is_own.then(|| Function { bytes: usize::from_str_radix(bytes, 16).unwrap_or(0), name: symbol.to_owned() })
    });
    own.collect()
}

fn bytes(functions: &[Function]) -> usize {
    functions.iter().map(|function| function.bytes).sum()
}

/// Returns whether a function is a kernel's body for the CPU, or launches kernels of one type.
fn is_of_a_kernel(function: &Function) -> bool {
    // The parts of a mangled name, each after its length.
    ["6native", "3cpu5entry", "16KernelType", "6launch", "7runtime6launch"]
        .iter()
        .any(|part| function.name.contains(part))
}

#[test]
fn programs_compile_no_kernels() {
    for (program, path) in [
        ("one_type", env!("CARGO_BIN_EXE_one_type")),
        ("two_types", env!("CARGO_BIN_EXE_two_types")),
        ("primitives", env!("CARGO_BIN_EXE_primitives")),
    ] {
        let functions = compiled_in(program, path);
        // The program itself is there, so the names were understood.
        assert!(functions.iter().any(|function| function.name.contains("4main")), "{program} has no `main`");
        let kernels: Vec<_> = functions.iter().filter(|function| is_of_a_kernel(function)).map(|it| &it.name).collect();
        assert!(kernels.is_empty(), "{program} compiles {} functions of kernels: {kernels:#?}", kernels.len());
    }
}

/// What a type costs is what its functions at the door take: what is below is compiled once, with the library.
#[test]
fn a_type_costs_little() {
    let one = bytes(&compiled_in("one_type", env!("CARGO_BIN_EXE_one_type")));
    let two = bytes(&compiled_in("two_types", env!("CARGO_BIN_EXE_two_types")));
    let primitives = bytes(&compiled_in("primitives", env!("CARGO_BIN_EXE_primitives")));
    println!("bytes of code: one type {one}, two types {two}, primitives {primitives}");
    assert!(one > 0 && two > one);
    assert!(one < ONE, "{one} bytes for one type");
    assert!(two - one < SECOND, "{} bytes for a second type", two - one);
    assert!(primitives < PRIMITIVES, "{primitives} bytes for calls of primitives");
}

/// The most bytes of a program with one type.
const ONE: usize = 40_000;
/// The most bytes that a second type adds.
const SECOND: usize = 20_000;
/// The most bytes of a program that calls primitives.
const PRIMITIVES: usize = 60_000;
