//! Stamps a suite onto every device that is there.

use gpu_primitives::{CpuOptions, Device, DeviceKind, Schedule, Stream};
use libtest_mimic::{Arguments, Trial};
use std::process::ExitCode;

/// One test, to be run on any device; it fails by panicking.
#[derive(Clone, Copy)]
pub struct Case {
    /// Its name. Names that begin with `small` form the subset that runs under sanitizers.
    pub name: &'static str,
    /// The test.
    pub run: fn(&Device),
    /// Whether it is about a device: others have no such test.
    pub is_about: fn(&Device) -> bool,
}

impl Case {
    /// A test of all devices.
    #[must_use]
    pub const fn new(name: &'static str, run: fn(&Device)) -> Self {
        Self { name, run, is_about: |_| true }
    }
}

/// A [`Case`] for each function named; those after `checked:` are about the checked CPU device alone.
#[macro_export]
macro_rules! cases {
    ($($function:ident),* $(,)? $(; checked: $($checked:ident),* $(,)?)?) => {
        &[
            $($crate::Case::new(stringify!($function), $function),)*
            $($($crate::Case { name: stringify!($checked), run: $checked, is_about: $crate::is_checked },)*)?
        ]
    };
}

/// Runs the suite as a test executable: every case on the device that `GPU_PRIMITIVES_DEVICE` names, or on the CPU in both
/// modes and on every GPU.
///
/// Test names are `DEVICE::CASE`. A GPU that is not there has no tests, instead of tests that pass without looking.
#[must_use]
pub fn run(cases: &[Case]) -> ExitCode {
    run_with(Arguments::from_args(), cases)
}

/// [`run`], one case at a time: for cases that look at counters of the whole device.
#[must_use]
pub fn run_one_by_one(cases: &[Case]) -> ExitCode {
    run_with(Arguments { test_threads: Some(1), ..Arguments::from_args() }, cases)
}

fn run_with(arguments: Arguments, cases: &[Case]) -> ExitCode {
    let devices = match std::env::var("GPU_PRIMITIVES_DEVICE") {
        Ok(name) => vec![Device::parse(&name).unwrap_or_else(|error| panic!("the device under test: {error}"))],
        Err(_) => {
            let gpus = (0..Device::cuda_count()).map(|ordinal| Device::cuda(ordinal).expect("a GPU that was counted"));
            [Device::cpu_checked(), Device::cpu()].into_iter().chain(gpus).collect()
        }
    };
    let trials = cases.iter().flat_map(|&case| {
        devices.iter().filter(move |device| (case.is_about)(device)).map(move |device| {
            let shared = device.clone();
            let name = match device.kind() {
                DeviceKind::Cpu => format!("cpu::{}", case.name),
                DeviceKind::CpuChecked => format!("cpu_checked::{}", case.name),
                DeviceKind::Cuda { ordinal } => format!("cuda_{ordinal}::{}", case.name),
            };
            Trial::test(name, move || {
                // The checked device runs the launches of its streams one at a time, and tells errors of its only stream at
                // once: each case has one of its own.
                let device = if is_checked(&shared) { Device::cpu_checked() } else { shared };
                (case.run)(&device);
                Ok(())
            })
        })
    });
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}

/// Whether the device checks every access, and so wants small inputs.
#[must_use]
pub fn is_checked(device: &Device) -> bool {
    device.kind() == DeviceKind::CpuChecked
}

/// Whether the device is a GPU, which runs the kernels that were compiled for it and no others.
#[must_use]
pub fn is_gpu(device: &Device) -> bool {
    matches!(device.kind(), DeviceKind::Cuda { .. })
}

/// Streams for 200 launches in 200 orders, each with its number. On the CPU it is the seed of an order of blocks and threads
/// that no GPU would show; a GPU makes its own. Checked launches are slow: there are `checked` of them, or all 200 if
/// `GPU_PRIMITIVES_LONG` is set.
pub fn adversarial_streams(device: &Device, checked: u64) -> impl Iterator<Item = (u64, Stream)> {
    let few = is_checked(device) && std::env::var_os("GPU_PRIMITIVES_LONG").is_none();
    (0..if few { checked } else { 200 }).map(|seed| {
        let schedule = Schedule::Random { seed };
        let in_order_of_seed = CpuOptions { checked: is_checked(device), schedule, ..CpuOptions::default() };
        let device = if is_gpu(device) { device.clone() } else { Device::cpu_with(in_order_of_seed) };
        (seed, device.stream().expect("a stream of a device that works"))
    })
}

/// Runs 100 times and compares the bytes of the results; 3 times in checked mode, which takes the same steps every time.
pub fn assert_deterministic(device: &Device, mut run: impl FnMut() -> Vec<u8>) {
    let first = run();
    assert!(!first.is_empty(), "there is something to compare");
    for again in 1..if is_checked(device) { 3 } else { 100 } {
        assert!(run() == first, "run {again} differs");
    }
}
