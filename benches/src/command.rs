//! The options that all commands share, and the outputs that they ask for.

use crate::Error;
use crate::compare::Workload;
use crate::data::Distribution;
use crate::output::Output;
use crate::peers::Peer;
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;

/// The device, the sizes and the outputs.
#[derive(Args, Clone, Debug)]
pub struct Common {
    /// cpu, cpu-checked, cuda or cuda:N [default: `GPU_PRIMITIVES_DEVICE`, else the first GPU, else the CPU]
    #[arg(long)]
    pub device: Option<String>,
    /// Number of elements, such as 1000000 or 2^24; several, separated by commas, make curves [default: suited to the device]
    #[arg(long = "size", value_name = "SIZE", value_parser = size, value_delimiter = ',')]
    pub sizes: Vec<usize>,
    /// An earlier file of measurements: the report shows what changed, and flags what is worse beyond the spread
    #[arg(long, value_name = "FILE")]
    pub baseline: Option<PathBuf>,
    /// Also write the measurements to this file
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Print JSON instead of tables
    #[arg(long)]
    pub json: bool,
    /// The folder for the report: a page for a browser, Markdown, CSV and JSON
    #[arg(long, value_name = "DIR", default_value = "target/gpu-benches")]
    pub out: PathBuf,
}

impl Common {
    /// Returns the outputs of a command, after a check that all of them can be written.
    ///
    /// # Errors
    /// [`Error::File`], [`Error::Format`].
    pub fn output(&self, name: &'static str, title: &'static str) -> Result<Output, Error> {
        let baseline = self.baseline.as_deref().map(crate::record::Recording::read).transpose()?;
        let output =
            Output { name, title, csv: self.csv.clone(), folder: Some(self.out.clone()), json: self.json, baseline };
        output.prepare()?;
        Ok(output)
    }

    /// Returns the only size, if there is one.
    ///
    /// # Errors
    /// [`Error::Arguments`] for several sizes.
    pub fn one_size(&self) -> Result<Option<usize>, Error> {
        match self.sizes[..] {
            [] => Ok(None),
            [size] => Ok(Some(size)),
            _ => Err(Error::Arguments(String::from("--size: this command takes one size"))),
        }
    }
}

/// The programs of others that measure the same rows.
#[derive(Args, Clone, Debug)]
pub struct Peers {
    /// A program that measures the same rows with another library; repeat the option for several
    #[arg(long = "peer", value_name = "PROGRAM")]
    pub programs: Vec<PathBuf>,
    /// End such a program if it prints nothing for so many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 300, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub peer_timeout: u64,
}

impl Peers {
    /// Returns how long a program may be silent.
    #[must_use]
    pub const fn silence(&self) -> Duration {
        Duration::from_secs(self.peer_timeout)
    }

    /// Asks all programs which rows they know.
    ///
    /// # Errors
    /// [`Error::Peer`] names a program that cannot be run, or that knows a row which does not exist.
    pub fn open(&self) -> Result<Vec<Peer>, Error> {
        self.programs.iter().map(|program| Peer::open(program, self.silence())).collect()
    }
}

/// The options of the comparison.
#[derive(Args, Clone, Debug)]
pub struct Compare {
    /// The shared options.
    #[command(flatten)]
    pub common: Common,
    /// Measure quickly, with fewer elements and runs
    #[arg(long)]
    pub quick: bool,
    /// Distribution of the keys
    #[arg(long, value_enum, default_value_t)]
    pub keys: Distribution,
    /// Share of deletions in mixed updates, from 0 to 1
    #[arg(long, default_value_t = 0.2)]
    pub deletions: f64,
    /// Share of absent keys in mixed lookups, from 0 to 1
    #[arg(long, default_value_t = 0.5)]
    pub absent: f64,
    /// Size of a value in bytes [default: 4, or that of the structures]
    #[arg(long, value_parser = ["0", "4", "8"])]
    pub value_bytes: Option<String>,
    /// Size of a key in bits [default: 32, or that of the structures]
    #[arg(long, value_parser = ["32", "64"])]
    pub key_bits: Option<String>,
    /// Operations per batch, such as 10000 or 2^16 [default: a sixteenth of the elements]
    #[arg(long, value_parser = size)]
    pub batch: Option<usize>,
    /// The programs of others.
    #[command(flatten)]
    pub peers: Peers,
}

impl Compare {
    /// Returns the workload of structures with keys of so many bits and values of so many bytes.
    ///
    /// # Errors
    /// [`Error::Arguments`] if the options ask for others.
    pub fn workload(&self, key_bits: usize, value_bytes: usize) -> Result<Workload, Error> {
        let asked = [
            ("--key-bits", &self.key_bits, "keys", key_bits, "bits"),
            ("--value-bytes", &self.value_bytes, "values", value_bytes, "bytes"),
        ];
        for (option, asked, what, size, unit) in asked {
            if let Some(asked) = asked.as_ref().filter(|asked| **asked != size.to_string()) {
                let problem = format!("{option} {asked}: these structures have {what} of {size} {unit}");
                return Err(Error::Arguments(problem));
            }
        }
        let Self { keys, deletions, absent, batch, .. } = *self;
        Ok(Workload { keys, deletions, absent, value_bytes, key_bits, batch })
    }
}

/// Parses a number of elements: `1000` or `2^10`.
///
/// # Errors
/// What to write instead.
pub fn size(text: &str) -> Result<usize, String> {
    let number = match text.split_once('^') {
        Some(("2", power)) => power.parse().ok().and_then(|power| 1usize.checked_shl(power)),
        Some(_) => None,
        None => text.replace('_', "").parse().ok(),
    };
    number.ok_or_else(|| String::from("use a number such as 1000000 or 2^20"))
}

#[cfg(test)]
mod tests {
    use super::Compare;
    use clap::Parser;

    #[derive(Parser)]
    struct Program {
        #[command(flatten)]
        compare: Compare,
    }

    #[test]
    fn structures_decide_the_sizes_that_nobody_asks_for() {
        let compare = |options: &[&str]| Program::parse_from([&["program"], options].concat()).compare;
        let workload = compare(&[]).workload(64, 8).unwrap();
        assert_eq!((workload.key_bits, workload.value_bytes), (64, 8));
        assert!(compare(&["--key-bits", "64", "--value-bytes", "8"]).workload(64, 8).is_ok());
        let problem = compare(&["--value-bytes", "4"]).workload(64, 8).unwrap_err().to_string();
        assert!(problem.contains("--value-bytes 4: these structures have values of 8 bytes"), "{problem}");
    }
}
