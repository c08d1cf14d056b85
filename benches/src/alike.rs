//! Which numbers of two runs may be compared: those that agree in the workload and the types.

use crate::record::{Record, Recording, power};
use crate::{compare, paper};

/// The rows of a comparison that depend on the share of deletions.
const WITH_DELETIONS: [&str; 2] = ["update, mixed", "cleanup"];

/// The largest difference of two shares that are alike: batches are whole numbers.
const ROUNDING: f64 = 0.01;

/// How a batch was chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Batch {
    /// A sixteenth of the elements.
    Sixteenth,
    /// A given number of operations.
    Of(f64),
}

impl Batch {
    /// Returns the share of `n` elements that is in one batch.
    fn share(self, n: u64) -> f64 {
        match self {
            Self::Sixteenth => 1.0 / 16.0,
            Self::Of(size) => (size / n as f64).min(1.0),
        }
    }
}

/// The workload of a recorded comparison.
#[derive(Clone, Debug, PartialEq)]
struct Facts {
    /// The keys and values in words: distribution, bits, bytes.
    types: String,
    batch: Batch,
    /// The share of deletions in mixed updates, in percent.
    deletions: String,
}

impl Facts {
    /// Reads the description of a run. Returns `None` if it does not say what it measured.
    fn of(run: &Recording) -> Option<Self> {
        let text = run.about("workload")?;
        let (types, rest) = text.split_once(", batches of ")?;
        let (batch, rest) = rest.split_once("; mixed updates have ")?;
        let (deletions, _) = rest.split_once(" % deletions")?;
        let batch = number(batch)?;
        // Older files give the batch of the largest size alone.
        let of_largest = || {
            let largest = run.about("elements")?.split(", ").filter_map(number).fold(0.0, f64::max);
            Some((batch - (largest / 16.0).floor()).abs() < 0.5)
        };
        let is_sixteenth = match run.about("batch") {
            Some(text) => number(text).is_none(),
            None => of_largest().unwrap_or(false),
        };
        let batch = if is_sixteenth { Batch::Sixteenth } else { Batch::Of(batch) };
        Some(Self { types: types.into(), batch, deletions: deletions.into() })
    }
}

/// Parses `2^20` or `1000`.
fn number(text: &str) -> Option<f64> {
    match text.split_once('^') {
        Some(("2", log)) => Some(2f64.powi(log.parse().ok()?)),
        Some(_) => None,
        None => text.parse().ok(),
    }
}

/// What two runs measured.
pub struct Alike {
    compared: [Option<Facts>; 2],
    paper: [[Option<String>; 2]; 2],
}

impl Alike {
    /// Reads the descriptions of two runs.
    #[must_use]
    pub fn new(one: &Recording, other: &Recording) -> Self {
        let of_paper = |run: &Recording| ["scale", "insertion"].map(|name| run.about(name).map(str::to_owned));
        Self { compared: [Facts::of(one), Facts::of(other)], paper: [of_paper(one), of_paper(other)] }
    }

    /// Returns why the records of the same row in the two runs cannot be compared, or `None` if they can.
    #[must_use]
    pub fn differs(&self, one: &Record, other: &Record) -> Option<String> {
        if one.section == compare::SECTION {
            // Runs of programs that describe no workload are taken at their word.
            let (a, b) = self.compared[0].as_ref().zip(self.compared[1].as_ref())?;
            if a.types != b.types {
                return Some(format!("one run has {}, the other {}", a.types, b.types));
            }
            if (a.batch.share(one.n) / b.batch.share(other.n) - 1.0).abs() > ROUNDING {
                let batch = |batch: Batch| match batch {
                    Batch::Sixteenth => String::from("of a sixteenth of the elements"),
                    Batch::Of(size) => format!("of {}", power(size as usize)),
                };
                return Some(format!("one run has batches {}, the other {}", batch(a.batch), batch(b.batch)));
            }
            if WITH_DELETIONS.contains(&one.row.as_str()) && a.deletions != b.deletions {
                return Some(format!("one run has {} % deletions, the other {} %", a.deletions, b.deletions));
            }
        } else if one.section.starts_with(paper::PREFIX) && self.paper[0] != self.paper[1] {
            return Some("the runs had other sizes, or other numbers of batches, of the paper's experiments".into());
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::Workload;
    use crate::data::Distribution;
    use crate::record::RATE;

    fn run(keys: Distribution, value_bytes: usize, batch: Option<usize>, deletions: f64) -> Recording {
        let workload = Workload { keys, deletions, absent: 0.5, value_bytes, key_bits: 32, batch };
        let mut recording = Recording::default();
        recording.tell("elements", "2^10, 2^20");
        recording.tell("workload", workload.describe(1 << 20));
        recording.tell("batch", workload.batch_in_words());
        recording
    }

    #[test]
    fn only_the_same_workload_is_compared() {
        let record = |row: &str| Record::new(compare::SECTION, "LSM", row, "", 1 << 10).value(1.0, RATE);
        let (count, update) = (record("count"), record("update, mixed"));
        let plain = run(Distribution::Uniform, 4, None, 0.2);
        let why = |other: &Recording, record: &Record| Alike::new(&plain, other).differs(record, record);
        assert_eq!(why(&plain, &count), None);
        let zipf = why(&run(Distribution::Zipf, 8, None, 0.2), &count).unwrap();
        assert!(zipf.contains("uniform keys of 32 bits, values of 4 bytes, the other zipf keys"), "{zipf}");
        let deletions = run(Distribution::Uniform, 4, None, 0.5);
        assert_eq!((why(&deletions, &count), why(&deletions, &update).is_some()), (None, true));
        // The same batch of the largest size, but not of this one.
        let batch = run(Distribution::Uniform, 4, Some(1 << 16), 0.2);
        assert!(why(&batch, &count).unwrap().contains("of a sixteenth of the elements, the other of 2^16"));
        assert_eq!(why(&run(Distribution::Uniform, 4, Some(1 << 6), 0.2), &count), None);
    }

    #[test]
    fn the_workload_of_older_files_is_known() {
        let h200 = crate::reference::h200();
        let facts = Facts::of(&h200).unwrap();
        assert_eq!(facts.types, "uniform keys of 32 bits, values of 4 bytes");
        assert_eq!((facts.batch, facts.deletions.as_str()), (Batch::Sixteenth, "20"));
    }

    #[test]
    fn the_paper_is_compared_at_the_same_scale() {
        let mean = Record::new(paper::INSERTION, "LSM", "insertion mean", "b = 2^19", 0).value(1.0, RATE);
        let mut scaled = Recording::default();
        scaled.tell("scale", "sizes of the paper divided by 2^12");
        let full = Recording::default();
        assert!(Alike::new(&full, &scaled).differs(&mean, &mean).is_some());
        assert_eq!(Alike::new(&scaled, &scaled).differs(&mean, &mean), None);
    }
}
