//! The results page is what the files of measurements give.

use std::path::Path;

#[test]
fn the_page_and_the_measurements_agree() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
    if std::env::var_os("GPU_BUNDLE").is_some() {
        eprintln!("not run: the documentation is not here");
        return;
    }
    if let Err(error) = gpu_benches::results::run(&docs, true) {
        panic!("{error}");
    }
}
