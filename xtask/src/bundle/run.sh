#!/usr/bin/env bash
# Runs the tests and benchmarks in this folder on a machine with an NVIDIA driver. Needs no Rust.
#
#   ./run.sh [--device-check] [--tests] [--sanitizer] [--benches]      (default: --device-check --tests --benches)
#
#   BUNDLE_TIMEOUT=60         time limit of one test executable in seconds
#   BENCH_TIMEOUT=300         time limit of one benchmark in seconds
#   SANITIZER_TIMEOUT=300     time limit of one test executable under one tool of compute-sanitizer in seconds
#   SANITIZER_FILTER=small    run the tests with this in their names under compute-sanitizer
set -u
cd "$(dirname "$0")" || exit 1

usage() { sed -n '2,10s/^# \{0,1\}//p' "$0"; }

want_device='' want_tests='' want_sanitizer='' want_benches=''
[ $# -gt 0 ] || { want_device=1 want_tests=1 want_benches=1; }
for argument in "$@"; do
    case "$argument" in
        --device-check) want_device=1 ;;
        --tests) want_tests=1 ;;
        --sanitizer) want_sanitizer=1 ;;
        --benches) want_benches=1 ;;
        -h | --help) usage; exit 0 ;;
        *) echo "unknown argument: $argument" >&2; usage >&2; exit 2 ;;
    esac
done

# The executables are packed.
packed=executables.tar.xz
if [ -f $packed ]; then tar -xJf $packed && rm $packed || exit 1; fi

# Tests and benchmarks must not silently fall back to the CPU, and must not look for the sources.
export GPU_PRIMITIVES_DEVICE=cuda GPU_BUNDLE=1
log=$(mktemp) || exit 1
trap 'rm -f "$log"' EXIT
failures=0

device_check() {
    if ! command -v nvidia-smi > /dev/null; then
        echo "device check: FAILED: nvidia-smi was not found: install the NVIDIA driver" >&2
        return 1
    fi
    if ! nvidia-smi --format=csv \
        --query-gpu=name,compute_cap,driver_version,clocks.sm,clocks.max.sm,clocks.mem,memory.total,memory.used; then
        echo "device check: FAILED: nvidia-smi found no GPU" >&2
        return 1
    fi
}

# The number before a word in the summary line of a test harness, such as `12 passed`.
count() { sed -n "s/^test result:.* \([0-9][0-9]*\) $1.*/\1/p" "$log" | awk '{ n += $1 } END { print n + 0 }'; }

run_tests() {
    local passed=0 failed=0 test status p f
    for test in tests/*; do
        [ -f "$test" ] || continue
        timeout -k 10 "${BUNDLE_TIMEOUT:-60}" "./$test" --test-threads=4 > "$log" 2>&1
        status=$?
        p=$(count passed) f=$(count failed)
        # A crash, a timeout or a custom harness leaves no count of failures.
        if [ $status -ne 0 ] && [ "$f" -eq 0 ]; then f=1; fi
        passed=$((passed + p)) failed=$((failed + f))
        if [ $status -eq 0 ]; then
            echo "ok      ${test#tests/}: $p passed"
        else
            [ $status -eq 124 ] && echo "took longer than BUNDLE_TIMEOUT=${BUNDLE_TIMEOUT:-60} seconds" >> "$log"
            echo "FAILED  ${test#tests/}: $p passed, $f failed (exit status $status)"
            sed 's/^/    /' "$log"
        fi
    done
    echo "tests: $passed passed, $failed failed"
    [ "$failed" -eq 0 ]
}

run_sanitizer() {
    local filter=${SANITIZER_FILTER:-small} clean=0 failed=0 test tool status
    if ! command -v compute-sanitizer > /dev/null; then
        echo "sanitizer: FAILED: compute-sanitizer was not found: install the CUDA toolkit" >&2
        return 1
    fi
    for test in tests/*; do
        [ -f "$test" ] || continue
        "./$test" "$filter" --list --format terse 2> /dev/null | grep -q ': test$' || continue
        for tool in memcheck racecheck; do
            timeout -k 10 "${SANITIZER_TIMEOUT:-300}" compute-sanitizer --tool "$tool" --error-exitcode 9 \
                "./$test" "$filter" --test-threads=1 > "$log" 2>&1
            status=$?
            if [ $status -eq 0 ]; then
                clean=$((clean + 1))
                echo "ok      $tool ${test#tests/}"
            else
                failed=$((failed + 1))
                echo "FAILED  $tool ${test#tests/} (exit status $status)"
                tail -n 60 "$log" | sed 's/^/    /'
            fi
        done
    done
    echo "sanitizer: $clean clean, $failed failed (tests with \`$filter\` in their names)"
    if [ $((clean + failed)) -eq 0 ]; then
        echo "sanitizer: FAILED: no test has \`$filter\` in its name, so nothing was checked" >&2
        return 1
    fi
    [ "$failed" -eq 0 ]
}

# benches.txt has one benchmark per line: its name and its arguments.
run_benches() {
    local failed=0 name arguments status
    while read -r name arguments; do
        [ -n "$name" ] || continue
        echo "== $name"
        # The arguments must be split into words.
        # shellcheck disable=SC2086
        timeout -k 10 "${BENCH_TIMEOUT:-300}" "./benches/$name" $arguments < /dev/null
        status=$?
        if [ $status -ne 0 ]; then
            failed=$((failed + 1))
            echo "FAILED  $name (exit status $status)"
        fi
    done < benches.txt
    echo "benches: $failed failed"
    [ "$failed" -eq 0 ]
}

if [ -n "$want_device" ]; then
    # Without a GPU everything else would fail, too, with less clear messages.
    device_check || exit 1
fi
if [ -n "$want_tests" ]; then run_tests || failures=1; fi
if [ -n "$want_sanitizer" ]; then run_sanitizer || failures=1; fi
if [ -n "$want_benches" ]; then run_benches || failures=1; fi
exit $failures
