//! The native function, the interpreter and the lowered graph agree.

use super::inputs::Random;
use super::lowered::Program;
use super::{differential_module, kernels, ptxas, random};
use crate::{Function, Operands, Width, Word};

/// Returns operands in registers of one width.
fn operands(function: &Function, width: Width) -> Operands {
    let words = |size: usize| Word::list(size, width, |index| format!("%w{index}"));
    let arguments = function.arguments().iter().map(|layout| words(layout.size)).collect();
    Operands { arguments, result: words(function.result().size), state: None }
}

#[test]
fn every_operation_agrees_with_the_native_function() {
    let (_, cases) = differential_module();
    let mut comparisons = 0u64;
    for case in &cases {
        let inputs = case.inputs(400);
        let shapes = [Width::B16, Width::B32, Width::B64].map(|width| operands(case.function(), width));
        let programs = shapes.each_ref().map(|shape| Program::new(case.function(), shape));
        for position in 0..case.input_count(&inputs) {
            let operands = case.operands_at(&inputs, position);
            let native = case.native(&operands);
            let interpreted = case.interpreted(&operands);
            assert!(case.agrees(&native, &interpreted), "{} of {operands:?}: {native:?} {interpreted:?}", case.entry());
            let lowered = programs[position % programs.len()].run(&operands, &[]);
            assert!(
                case.agrees(&native, &lowered),
                "{} of {operands:?}: {native:?}, lowered {lowered:?}",
                case.entry()
            );
            comparisons += 2;
        }
    }
    println!("{} operations, {comparisons} comparisons", cases.len());
}

#[test]
fn every_operation_is_assembled() {
    let (module, cases) = differential_module();
    let mut names: Vec<&str> = cases.iter().map(super::Case::entry).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), cases.len(), "each kernel has a name of its own");
    if ptxas::assemble("operations", &module) {
        println!("{} operations assembled", cases.len());
    }
}

/// How many random operators are tried.
const OPERATORS: u64 = 500;

#[test]
fn random_operators_agree_with_their_lowered_form() {
    let mut comparisons = 0;
    for seed in 0..OPERATORS {
        let mut random = Random::new(seed);
        let (function, operands) = random::operator(&mut random);
        let program = Program::new(&function, &operands);
        for _ in 0..50 {
            let arguments: Vec<Vec<u8>> = function.arguments().iter().map(|layout| random.bytes(layout)).collect();
            let arguments: Vec<&[u8]> = arguments.iter().map(Vec::as_slice).collect();
            let state = function.state().map_or_else(Vec::new, |layout| random.bytes(layout));
            let expected = function.interpret(&arguments, &state);
            assert_eq!(program.run(&arguments, &state), expected, "operator {seed} of {arguments:?} {state:?}");
            comparisons += 1;
        }
    }
    println!("{OPERATORS} random operators, {comparisons} comparisons");
}

#[test]
fn random_operators_are_assembled() {
    let operators: Vec<_> = (0..OPERATORS).map(|seed| random::operator(&mut Random::new(seed))).collect();
    let module = kernels::probes(operators.iter().map(|(function, operands)| (function, operands)));
    if ptxas::assemble("random", &module) {
        println!("{OPERATORS} random operators assembled");
    }
}
