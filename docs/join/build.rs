//! Compiles this crate's kernels to PTX, into `OUT_DIR/ptx`. Without a nightly toolchain, the crate is built for the CPU alone.

fn main() {
    gpu_kernel_builder::PtxBuilder::new(env!("CARGO_MANIFEST_DIR"))
        .or_cpu_alone()
        .build_for_build_script()
        .unwrap_or_else(|error| panic!("{error}"));
}
