//! The results page is up to date with the files of measurements.

use std::path::Path;

#[test]
fn the_page_and_the_measurements_agree() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
    if std::env::var_os("GPU_BUNDLE").is_some() {
        eprintln!("skipped: the documentation is not in the bundle");
        return;
    }
    if let Err(error) = gpu_benches::results::run(&docs, true) {
        panic!("{error}");
    }
}
