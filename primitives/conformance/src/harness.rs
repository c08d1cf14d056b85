//! Stamps a suite onto every device that is there.

use gpu_primitives::{Device, DeviceKind};
use libtest_mimic::{Arguments, Trial};
use std::process::ExitCode;

/// One test, to be run on any device; it fails by panicking.
#[derive(Clone, Copy)]
pub struct Case {
    /// Its name. Names that begin with `small` form the subset that runs under sanitizers.
    pub name: &'static str,
    /// The test.
    pub run: fn(&Device),
}

/// A [`Case`] for each function named.
#[macro_export]
macro_rules! cases {
    ($($function:ident),* $(,)?) => {
        &[$($crate::Case { name: stringify!($function), run: $function }),*]
    };
}

/// Runs the suite as a test executable: every case on the device that `GPU_PRIMITIVES_DEVICE` names, or on the CPU in both
/// modes and on every GPU.
///
/// Test names are `DEVICE::CASE`. A GPU that is not there has no tests, instead of tests that pass without looking.
#[must_use]
pub fn run(cases: &[Case]) -> ExitCode {
    let arguments = Arguments::from_args();
    let devices = match std::env::var("GPU_PRIMITIVES_DEVICE") {
        Ok(name) => vec![Device::parse(&name).unwrap_or_else(|error| panic!("the device under test: {error}"))],
        Err(_) => {
            let gpus = (0..Device::cuda_count()).map(|ordinal| Device::cuda(ordinal).expect("a GPU that was counted"));
            [Device::cpu_checked(), Device::cpu()].into_iter().chain(gpus).collect()
        }
    };
    let trials = devices.iter().flat_map(|device| {
        cases.iter().map(move |&case| {
            let device = device.clone();
            let name = match device.kind() {
                DeviceKind::Cpu => format!("cpu::{}", case.name),
                DeviceKind::CpuChecked => format!("cpu_checked::{}", case.name),
                DeviceKind::Cuda { ordinal } => format!("cuda_{ordinal}::{}", case.name),
            };
            Trial::test(name, move || {
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
