//! Runs a suite on every available device.

use gpu_primitives::{CpuOptions, Device, DeviceKind, Schedule, Stream};
use libtest_mimic::{Arguments, Trial};
use std::process::ExitCode;
use std::sync::{LazyLock, PoisonError, RwLock};

/// One test, which runs on any device. It fails by panicking.
#[derive(Clone, Copy)]
pub struct Case {
    /// The name of the test. Names that begin with `small` form the subset that runs under sanitizers.
    pub name: &'static str,
    /// The test.
    pub run: fn(&Device),
    /// Returns whether the test applies to a device. Other devices do not list it.
    pub is_about: fn(&Device) -> bool,
    /// Whether no other test runs at the same time, because this one reads counters of the whole device.
    pub is_alone: bool,
    /// On which CPU devices it runs that simulate kernels thread by thread.
    pub simulated: Simulated,
}

/// On which devices a test runs, of those that simulate kernels thread by thread: one checks each access, the other one runs several
/// blocks at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Simulated {
    /// Both.
    All,
    /// The one that checks each access; both if long tests were asked for.
    Checked,
    /// Neither.
    Neither,
}

impl Case {
    /// Creates a test for all devices.
    #[must_use]
    pub const fn new(name: &'static str, run: fn(&Device)) -> Self {
        Self { name, run, is_about: |_| true, is_alone: false, simulated: Simulated::All }
    }

    /// The same test, while no other one runs.
    #[must_use]
    pub const fn alone(self) -> Self {
        Self { is_alone: true, ..self }
    }

    /// The same test, but not on the CPU devices that simulate kernels thread by thread: for host code whose kernels other
    /// tests run there.
    #[must_use]
    pub const fn of_host_code(self) -> Self {
        Self { simulated: Simulated::Neither, ..self }
    }

    /// The same test, but of the CPU devices that simulate kernels thread by thread only on the one that checks each access: for host
    /// code that could pass wrong memory to kernels, whose results other tests compare on both devices.
    #[must_use]
    pub const fn of_checked_calls(self) -> Self {
        Self { simulated: Simulated::Checked, ..self }
    }

    /// Returns whether the test runs on a device.
    #[must_use]
    pub fn is_for(&self, device: &Device) -> bool {
        let is_left_out = match self.simulated {
            Simulated::All => false,
            Simulated::Checked => is_simulated(device) && !is_checked(device) && !is_long(),
            Simulated::Neither => is_simulated(device),
        };
        (self.is_about)(device) && !is_left_out
    }
}

/// Creates a [`Case`] for each function. Those after `checked:` apply only to the checked CPU device.
#[macro_export]
macro_rules! cases {
    ($($function:ident),* $(,)? $(; checked: $($checked:ident),* $(,)?)?) => {
        &[
            $($crate::Case::new(stringify!($function), $function),)*
            $($($crate::Case {
                is_about: $crate::is_checked,
                ..$crate::Case::new(stringify!($checked), $checked)
            },)*)?
        ]
    };
}

/// Runs the suite as a test executable: every case on the device that `GPU_PRIMITIVES_DEVICE` names, or on every GPU and
/// on the CPU: checked, simulated thread by thread, and with native bodies.
///
/// Test names are `DEVICE::CASE`. Without a GPU there are no GPU tests, instead of tests that pass without testing.
///
/// How a CPU device divides its work depends on its number of workers. It is one of [`WORKERS`], whatever the machine has: another
/// one for each case, always the same, and named by the device: `cpu_native_5`. If long tests were asked for, native bodies run
/// with all of these numbers.
#[must_use]
pub fn run(cases: &[Case]) -> ExitCode {
    run_with(Arguments::from_args(), cases)
}

/// Like [`run`], but one case at a time, for cases that read counters of the whole device.
#[must_use]
pub fn run_one_by_one(cases: &[Case]) -> ExitCode {
    run_with(Arguments { test_threads: Some(1), ..Arguments::from_args() }, cases)
}

/// The numbers of workers of the CPU devices.
pub const WORKERS: [usize; 5] = [1, 2, 3, 5, 16];

/// The CPU devices with native bodies, with each number of workers.
static NATIVE: LazyLock<[Device; 5]> = LazyLock::new(|| cpu_devices(false));

/// The CPU devices that simulate threads and do not check them, with each number of workers.
static SIMULATED: LazyLock<[Device; 5]> = LazyLock::new(|| cpu_devices(true));

fn cpu_devices(simulated: bool) -> [Device; 5] {
    // A kernel without PTX would run on the CPU and not on a GPU: it is found here.
    let options = CpuOptions { only_with_ptx: true, simulated, ..CpuOptions::default() };
    WORKERS.map(|workers| Device::cpu_with(CpuOptions { workers: Some(workers), ..options.clone() }))
}

/// Returns the CPU devices with native bodies if the device is one of them, else nothing.
#[must_use]
pub fn native_devices(device: &Device) -> &'static [Device] {
    if NATIVE.contains(device) { &*NATIVE } else { &[] }
}

/// Cases read it while they run. One that must be alone writes it.
static TURNS: RwLock<()> = RwLock::new(());

/// A device that cases run on.
struct Target {
    /// The beginning of the tests' names.
    label: String,
    device: Device,
}

impl Target {
    fn checked() -> Self {
        Self { label: "cpu_checked".to_owned(), device: Device::cpu_checked() }
    }

    fn gpu(ordinal: usize, device: Device) -> Self {
        Self { label: format!("cuda_{ordinal}"), device }
    }

    /// A CPU device that does not check, with a number of workers out of [`WORKERS`].
    fn cpu(index: usize, is_simulated: bool) -> Self {
        let (name, devices) = if is_simulated { ("simulated", &SIMULATED) } else { ("native", &NATIVE) };
        Self { label: format!("cpu_{name}_{}", WORKERS[index]), device: devices[index].clone() }
    }

    /// Returns the devices that a case runs on.
    fn all(case: &Case) -> Vec<Self> {
        if let Ok(name) = std::env::var("GPU_PRIMITIVES_DEVICE") {
            let device = Device::parse(&name).unwrap_or_else(|error| panic!("GPU_PRIMITIVES_DEVICE: {error}"));
            let target = match device.kind() {
                DeviceKind::Cpu => Self { label: "cpu_native".to_owned(), device },
                DeviceKind::CpuChecked => Self::checked(),
                DeviceKind::Cuda { ordinal } => Self::gpu(ordinal, device),
            };
            return Some(target).filter(|target| case.is_for(&target.device)).into_iter().collect();
        }
        let choice = case.name.bytes().fold(5381usize, |hash, byte| hash.wrapping_mul(33) ^ usize::from(byte));
        let native = if is_long() { 0..WORKERS.len() } else { choice % WORKERS.len()..choice % WORKERS.len() + 1 };
        let gpus = (0..Device::cuda_count())
            .map(|ordinal| Self::gpu(ordinal, Device::cuda(ordinal).expect("a GPU that was counted")));
        [Self::checked(), Self::cpu((choice / WORKERS.len()) % WORKERS.len(), true)]
            .into_iter()
            .chain(native.map(|index| Self::cpu(index, false)))
            .chain(gpus)
            .filter(|target| case.is_for(&target.device))
            .collect()
    }
}

fn run_with(arguments: Arguments, cases: &[Case]) -> ExitCode {
    let trials = cases.iter().flat_map(|&case| {
        Target::all(&case).into_iter().map(move |Target { label, device, .. }| {
            Trial::test(format!("{label}::{}", case.name), move || {
                // Each case has its own checked device: such a device runs one launch at a time, and it reports errors
                // immediately only while it has a single stream.
                let device = if is_checked(&device) { Device::cpu_checked() } else { device };
                let (_alone, _beside_others);
                if case.is_alone {
                    _alone = TURNS.write().unwrap_or_else(PoisonError::into_inner);
                } else {
                    _beside_others = TURNS.read().unwrap_or_else(PoisonError::into_inner);
                }
                (case.run)(&device);
                Ok(())
            })
        })
    });
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}

/// Returns whether the device checks every access, and so needs small inputs.
#[must_use]
pub fn is_checked(device: &Device) -> bool {
    device.kind() == DeviceKind::CpuChecked
}

/// Returns whether the device is one of the CPU devices of a suite that simulate kernels thread by thread.
#[must_use]
pub fn is_simulated(device: &Device) -> bool {
    is_checked(device) || SIMULATED.contains(device)
}

/// Returns whether the device is a GPU, which runs only the kernels that were compiled for it.
#[must_use]
pub fn is_gpu(device: &Device) -> bool {
    matches!(device.kind(), DeviceKind::Cuda { .. })
}

/// Returns whether long tests were asked for, by the environment variable `GPU_PRIMITIVES_LONG`.
#[must_use]
pub fn is_long() -> bool {
    std::env::var_os("GPU_PRIMITIVES_LONG").is_some()
}

/// Returns streams for launches in different orders, each with its number. On the CPU, the number is the seed of an
/// adversarial order of blocks and threads; a GPU schedules by itself. There are 200 on a GPU, and if long tests were asked
/// for; otherwise 40, or `checked` in checked mode, which is slow.
pub fn adversarial_streams(device: &Device, checked: u64) -> impl Iterator<Item = (u64, Stream)> {
    let orders = match device.kind() {
        DeviceKind::Cuda { .. } => 200,
        _ if is_long() => 200,
        DeviceKind::CpuChecked => checked,
        DeviceKind::Cpu => 40,
    };
    (0..orders).map(|seed| {
        let schedule = Schedule::Random { seed };
        let in_order_of_seed = CpuOptions { checked: is_checked(device), schedule, ..CpuOptions::default() };
        let device = if is_gpu(device) { device.clone() } else { Device::cpu_with(in_order_of_seed) };
        (seed, device.stream().expect("failed to create a stream"))
    })
}

/// Runs several times and compares the bytes of the results: 100 times on a GPU, 3 times in checked mode, which is
/// deterministic.
pub fn assert_deterministic(device: &Device, mut run: impl FnMut() -> Vec<u8>) {
    let first = run();
    assert!(!first.is_empty(), "there is nothing to compare");
    let runs = if is_checked(device) {
        3
    } else if is_gpu(device) || is_long() {
        100
    } else {
        25
    };
    for again in 1..runs {
        assert!(run() == first, "run {again} differs");
    }
}
