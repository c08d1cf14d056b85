//! The PTX in the repository is up to date.

#[test]
fn ptx_is_up_to_date() {
    // A bundle of executables comes without sources.
    if std::env::var_os("GPU_BUNDLE").is_some() {
        return;
    }
    if let Err(error) = gpu_kernel_builder::verify(env!("CARGO_MANIFEST_DIR")) {
        panic!("{error}");
    }
}
