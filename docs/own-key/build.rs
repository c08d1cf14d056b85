//! Compiles this crate's kernels to PTX, into `OUT_DIR/ptx`.

fn main() {
    gpu_kernel_builder::PtxBuilder::new(env!("CARGO_MANIFEST_DIR"))
        .build_for_build_script()
        .unwrap_or_else(|error| panic!("{error}"));
}
