//! What is compiled with a program that uses the library, and what is not.
//!
//! The examples are optimised as release builds are, so that they do not share generic code with the library: all of it
//! that they call is compiled with them, into their files.

use std::process::Command;

/// The most bytes of code for one type of dictionary. It takes 18,000.
const ONE_TYPE: usize = 27_000;
/// The most bytes that a second type adds. Keys with a sign take 26,000: functions that convert them, and record that for GPUs.
const SECOND_TYPE: usize = 39_000;
/// The most bytes for six calls of primitives. They take 37,000.
const PRIMITIVES: usize = 55_000;

/// A function that was compiled with an example.
struct Function {
    bytes: usize,
    name: String,
}

/// Returns the functions that were compiled with an example.
fn compiled_with(example: &str) -> Vec<Function> {
    let own = std::env::current_exe().expect("a test has a file");
    let folder = own.ancestors().nth(2).expect("tests are in a folder of the target's folder");
    let library = folder.join("examples").join(format!("lib{example}.rlib"));
    let listed = Command::new("nm").args(["--print-size", "--defined-only"]).arg(&library).output();
    let listed = listed.expect("`nm` is part of binutils, which every linker needs");
    assert!(listed.status.success(), "{}: {}", library.display(), String::from_utf8_lossy(&listed.stderr));
    let symbols = String::from_utf8_lossy(&listed.stdout);
    let functions: Vec<Function> = symbols
        .lines()
        .filter_map(|line| {
            let [_, bytes, kind, name] = line.split_whitespace().collect::<Vec<_>>()[..] else { return None };
            let bytes = usize::from_str_radix(bytes, 16).ok()?;
            kind.eq_ignore_ascii_case("t").then(|| Function { bytes, name: name.to_owned() })
        })
        .collect();
    // The example itself is there, so the list was understood.
    assert!(functions.iter().any(|function| function.name.contains(example)), "{example} is not in its own file");
    functions
}

fn bytes(functions: &[Function]) -> usize {
    functions.iter().map(|function| function.bytes).sum()
}

/// Returns whether a function is a kernel's body for the CPU, or launches kernels of one type. Mangled names have their parts
/// after the lengths of these. The loops of a program's own operators (`filling::native`, and `body::native` for functions of one
/// element) belong to the program.
fn is_of_a_kernel(function: &Function) -> bool {
    let parts = ["6native", "3cpu5entry", "10KernelType", "6Stream6launch"];
    let own = ["7filling6native", "8computed4body6native"];
    parts.iter().any(|part| function.name.contains(part)) && !own.iter().any(|part| function.name.contains(part))
}

#[test]
fn programs_compile_no_kernels() {
    for example in ["one_type", "two_types", "primitives"] {
        let functions = compiled_with(example);
        let kernels: Vec<_> = functions.iter().filter(|function| is_of_a_kernel(function)).map(|it| &it.name).collect();
        assert!(kernels.is_empty(), "{example} has {} functions of kernels: {kernels:#?}", kernels.len());
    }
}

/// What a type costs is what its functions at the door take: what is below is compiled once, with the library.
#[test]
fn a_type_costs_little() {
    let [one, two, primitives] = ["one_type", "two_types", "primitives"].map(|example| bytes(&compiled_with(example)));
    println!("bytes of code: one type {one}, two types {two}, primitives {primitives}");
    assert!(one < ONE_TYPE, "{one} bytes for one type");
    assert!(one < two && two - one < SECOND_TYPE, "{one} bytes for one type, {two} for two");
    assert!(primitives < PRIMITIVES, "{primitives} bytes for calls of primitives");
}
