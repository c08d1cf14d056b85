//! Runs the tests of a crate that uses this library beside another one. Each of these crates includes this file.

use std::error::Error;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

/// How a test ends.
pub type Tested = Result<(), Box<dyn Error>>;

/// Runs tests, each with its name, and prints how each ended.
pub fn run(tests: impl IntoIterator<Item = (String, impl FnOnce() -> Tested)>) -> ExitCode {
    let (mut passed, mut failed) = (0, 0);
    for (name, test) in tests {
        match catch_unwind(AssertUnwindSafe(test)) {
            Ok(Ok(())) => {
                println!("{name}: ok");
                passed += 1;
                continue;
            }
            Ok(Err(error)) => println!("{name}: FAILED: {error}"),
            Err(_) => println!("{name}: FAILED, see above"),
        }
        failed += 1;
    }
    println!("{passed} passed, {failed} failed");
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
