//! The native function, the interpreter and the lowered graph agree.

use super::inputs::Random;
use super::lowered::Program;
use super::{differential_module, kernels, ptxas, random};
use crate::{Function, Operands, State, Width, Word};

/// Returns operands in registers of one width.
fn operands(function: &Function, width: Width) -> Operands {
    let words = |size: usize| Word::list(size, width, |index| format!("%w{index}"));
    let arguments = function.arguments().iter().map(|layout| words(layout.size)).collect();
    Operands {
        arguments,
        result: words(function.result().size),
        state: Some(State { parameter: "s".to_owned(), offset: 0 }),
    }
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
            let lowered = programs[position % programs.len()].run(&operands, case.state());
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

/// Returns the seeds of the random operators: `GPU_OPERATOR_SEED` and those after it, more of them with `GPU_PRIMITIVES_LONG=1`.
fn seeds(count: u64) -> std::ops::Range<u64> {
    let first = std::env::var("GPU_OPERATOR_SEED").map_or(0, |seed| seed.parse().expect("a number"));
    let is_long = std::env::var_os("GPU_PRIMITIVES_LONG").is_some_and(|long| long == "1");
    first..first + if is_long { 50 * count } else { count }
}

#[test]
fn random_operators_agree_with_their_lowered_form() {
    let mut comparisons = 0;
    for seed in seeds(3000) {
        let mut random = Random::new(seed);
        let (function, operands) = random::operator(&mut random);
        let program = Program::new(&function, &operands);
        for _ in 0..20 {
            let arguments: Vec<Vec<u8>> = function.arguments().iter().map(|layout| random.bytes(layout)).collect();
            let arguments: Vec<&[u8]> = arguments.iter().map(Vec::as_slice).collect();
            let state = function.state().map_or_else(Vec::new, |layout| random.bytes(layout));
            let expected = function.interpret(&arguments, &state);
            assert_eq!(program.run(&arguments, &state), expected, "operator {seed} of {arguments:?} {state:?}");
            comparisons += 1;
        }
    }
    println!("random operators {:?}, {comparisons} comparisons", seeds(3000));
}

#[test]
fn random_operators_are_assembled() {
    let seeds: Vec<u64> = seeds(500).collect();
    for seeds in seeds.chunks(500) {
        let operators: Vec<_> = seeds.iter().map(|seed| random::operator(&mut Random::new(*seed))).collect();
        let module = kernels::probes(operators.iter().map(|(function, operands)| (function, operands)));
        if ptxas::assemble(&format!("random-{}", seeds[0]), &module) {
            println!("random operators from seed {} on assembled", seeds[0]);
        }
    }
}
