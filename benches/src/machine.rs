//! The description of the machine and the run.

use crate::record::{NOTE, Recording};
use gpu_primitives::{Device, DeviceKind};
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

/// What a reader must know first about a run without a GPU.
const ON_CPU: &str = "This is the CPU device: every kernel has a body for the CPU, which runs as plain loops on all cores. For the rates of a \
                      GPU, look at the columns of the H200, which was measured with more elements.";

/// Returns what is known before the run: the program, the command, the date, the device and the host.
#[must_use]
pub fn describe(device: &Device) -> Recording {
    let mut recording = Recording::default();
    recording.tell("program", concat!("gpu-benches ", env!("CARGO_PKG_VERSION")));
    recording.tell("command", command(std::env::args().skip(1)));
    recording.tell("date", today());
    if !matches!(device.kind(), DeviceKind::Cuda { .. }) {
        recording.tell(NOTE, ON_CPU);
    }
    recording.tell("device", device.name());
    if let Some([driver, memory]) = query(device, ["driver_version", "memory.total"]) {
        recording.tell("driver", driver);
        recording.tell("memory", memory);
    }
    recording.tell("host", host());
    recording
}

/// Adds what is known after the run: the clocks, while the GPU is still warm.
pub fn describe_clocks(device: &Device, recording: &mut Recording) {
    if let Some([sm, most, memory]) = query(device, ["clocks.sm", "clocks.max.sm", "clocks.mem"]) {
        recording.tell("clocks", format!("SM {sm} at the end, {most} at most; memory {memory}"));
    }
}

/// Returns the command line without the arguments that only name files.
fn command(arguments: impl Iterator<Item = String>) -> String {
    const FILES: [&str; 4] = ["--baseline", "--csv", "--out", "--peer"];
    let (mut words, mut skip) = (vec![String::from("gpu-benches")], false);
    for argument in arguments {
        let is_file = FILES.iter().any(|name| argument.strip_prefix(name).is_some_and(|rest| rest.starts_with('=')));
        if !skip && !is_file && !FILES.contains(&argument.as_str()) {
            words.push(argument.clone());
        }
        skip = FILES.contains(&argument.as_str());
    }
    words.join(" ")
}

/// Queries `nvidia-smi` about a GPU, if it is installed.
fn query<const N: usize>(device: &Device, fields: [&str; N]) -> Option<[String; N]> {
    let DeviceKind::Cuda { ordinal } = device.kind() else { return None };
    let output = Command::new("nvidia-smi")
        .args(["--format=csv,noheader", "-i", &ordinal.to_string()])
        .arg(format!("--query-gpu={}", fields.join(",")))
        .output()
        .ok()
        .filter(|output| output.status.success())?;
    let text = String::from_utf8(output.stdout).ok()?;
    let answers: Vec<String> = text.lines().next()?.split(", ").map(str::to_owned).collect();
    answers.try_into().ok()
}

fn host() -> String {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let model = std::fs::read_to_string("/proc/cpuinfo").ok().and_then(|text| {
        let line = text.lines().find(|line| line.starts_with("model name"))?;
        line.split_once(": ").map(|(_, model)| model.to_owned())
    });
    format!("{}, {cores} cores", model.unwrap_or_else(|| std::env::consts::ARCH.into()))
}

/// Returns the date in UTC.
fn today() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
    let (year, month, day) = civil(seconds / 86_400);
    format!("{year}-{month:02}-{day:02}")
}

/// Converts days since 1970 to year, month and day. The calendar repeats after 400 years of 146,097 days. Years are
/// counted from the first of March of year 0, so that the leap day comes last.
fn civil(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, carry) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (era * 400 + year + carry, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_names_no_files() {
        let words = "paper --csv /a/b.csv --scale 3 --out=c --device cpu".split(' ').map(str::to_owned);
        assert_eq!(command(words), "gpu-benches paper --scale 3 --device cpu");
    }

    #[test]
    fn days_of_the_calendar() {
        let days = [(0, (1970, 1, 1)), (11_016, (2000, 2, 29)), (11_017, (2000, 3, 1)), (20_772, (2026, 11, 15))];
        for (since, date) in days {
            assert_eq!(civil(since), date);
        }
    }
}
