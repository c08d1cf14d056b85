//! The records of measurements: one record per number, and a description of the run. The file format is CSV with a head
//! of `# key: value` lines, the same for every command.

use crate::Error;
use crate::measure::{Times, million_per_second};
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::time::Duration;

/// The unit of rates: millions of elements, or queries, per second.
pub const RATE: &str = "M/s";

/// The name of the sentence in a recording's description that a report puts first.
pub const NOTE: &str = "note";

/// One measured number.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The table that the number belongs to.
    pub section: String,
    /// The structure or library that was measured.
    pub subject: String,
    /// The operation.
    pub row: String,
    /// The parameters, such as `b = 2^20`.
    pub parameter: String,
    /// The number of elements of the input or of the dictionary.
    pub n: u64,
    /// The number of elements or queries of one timed run; 0 if nothing was timed.
    pub work: u64,
    /// The number; the median of several runs.
    pub value: f64,
    /// The unit.
    pub unit: String,
    /// The number of the worst run.
    pub low: Option<f64>,
    /// The number of the best run.
    pub high: Option<f64>,
    /// The number of timed runs.
    pub runs: u32,
    /// The bytes that must move per element: each input read once, each output written once.
    pub bytes: Option<f64>,
    /// The name of the peer.
    pub peer: Option<String>,
    /// The peer's number, in the same unit.
    pub peer_value: Option<f64>,
    /// The number of calls that queue on the device, if the other one is of single calls: device time alone.
    #[serde(default)]
    pub queued: Option<f64>,
    /// The name of the peer whose queued calls are fastest.
    #[serde(default)]
    pub queued_peer: Option<String>,
    /// Its number.
    #[serde(default)]
    pub queued_peer_value: Option<f64>,
}

impl Record {
    /// Creates a record without a number.
    #[must_use]
    pub fn new(section: &str, subject: &str, row: impl Into<String>, parameter: impl Into<String>, n: usize) -> Self {
        Self {
            section: section.into(),
            subject: subject.into(),
            row: row.into(),
            parameter: parameter.into(),
            n: n as u64,
            ..Self::default()
        }
    }

    /// Sets the number to the rate of `work` elements in these times.
    #[must_use]
    pub fn rate(self, work: usize, times: &Times) -> Self {
        Self {
            work: work as u64,
            value: rounded(million_per_second(work, times.median())),
            unit: RATE.into(),
            low: Some(rounded(million_per_second(work, times.longest()))),
            high: Some(rounded(million_per_second(work, times.shortest()))),
            runs: times.runs() as u32,
            ..self
        }
    }

    /// Sets the number.
    #[must_use]
    pub fn value(self, value: f64, unit: &str) -> Self {
        Self { value: rounded(value), unit: unit.into(), ..self }
    }

    /// Sets the worst and the best run to the minimum and the maximum of `numbers`.
    #[must_use]
    pub fn spread(self, numbers: &[f64]) -> Self {
        if numbers.is_empty() {
            return self;
        }
        let (low, high) = numbers.iter().fold((f64::MAX, f64::MIN), |(low, high), &x| (low.min(x), high.max(x)));
        Self { low: Some(rounded(low)), high: Some(rounded(high)), runs: numbers.len() as u32, ..self }
    }

    /// Sets the bytes that must move per element.
    #[must_use]
    pub fn bytes(self, bytes: f64) -> Self {
        Self { bytes: Some(bytes), ..self }
    }

    /// Sets the number of a peer, if there is one.
    #[must_use]
    pub fn beside(self, peer: &str, value: Option<f64>) -> Self {
        Self { peer: value.map(|_| peer.into()), peer_value: value.map(rounded), ..self }
    }

    /// Sets the rate of queued calls with this time for the same work, if they were measured.
    #[must_use]
    pub fn queued(self, time: Option<Duration>) -> Self {
        let rate = |time: Duration| rounded(million_per_second(self.work as usize, time.max(Duration::from_nanos(1))));
        Self { queued: time.map(rate), ..self }
    }

    /// Sets the rate of a peer's queued calls, if there is one.
    #[must_use]
    pub fn beside_queued(self, peer: &str, value: Option<f64>) -> Self {
        Self { queued_peer: value.map(|_| peer.into()), queued_peer_value: value.map(rounded), ..self }
    }

    /// Returns the rate of queued calls divided by the peer's.
    #[must_use]
    pub fn queued_ratio(&self) -> Option<f64> {
        Some(self.queued? / self.queued_peer_value?)
    }

    /// Returns this record with the rates of queued calls in the place of those of single calls, if it has them.
    #[must_use]
    pub fn as_queued(&self) -> Option<Self> {
        let value = self.queued?;
        let (peer, peer_value) = (self.queued_peer.clone(), self.queued_peer_value);
        Some(Self { value, low: None, high: None, runs: 1, peer, peer_value, ..self.clone() })
    }

    /// Returns this number divided by the peer's.
    #[must_use]
    pub fn ratio(&self) -> Option<f64> {
        self.peer_value.map(|peer| self.value / peer)
    }

    /// Returns the time of one run in microseconds, if the number is a rate.
    #[must_use]
    pub fn microseconds(&self) -> Option<f64> {
        (self.unit == RATE && self.work > 0).then(|| self.work as f64 / self.value)
    }

    /// Returns the distance from the worst run to the best one, in percent of the number.
    #[must_use]
    pub fn spread_percent(&self) -> Option<f64> {
        Some((self.high? - self.low?) / self.value * 100.0).filter(|_| self.runs > 1)
    }
}

/// Rounds to six digits, which is more precise than any measurement.
fn rounded(value: f64) -> f64 {
    format!("{value:.5e}").parse().unwrap_or(value)
}

/// The measurements of a command, and the description of the run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Recording {
    /// The device, the date, the command and so on, in the order of their [`tell`](Self::tell) calls.
    pub about: Vec<(String, String)>,
    /// The numbers.
    pub records: Vec<Record>,
}

impl Recording {
    /// Returns the description of the run with this name.
    #[must_use]
    pub fn about(&self, name: &str) -> Option<&str> {
        self.about.iter().find(|(known, _)| known == name).map(|(_, text)| text.as_str())
    }

    /// Sets the description of the run with this name.
    pub fn tell(&mut self, name: &str, text: impl Into<String>) {
        // It must fit into one line of the file's head.
        let text = text.into().replace(['\n', '\r'], " ");
        match self.about.iter_mut().find(|(known, _)| known == name) {
            Some((_, old)) => *old = text,
            None => self.about.push((name.into(), text)),
        }
    }

    /// Returns the records of a section.
    pub fn section<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Record> + Clone {
        self.records.iter().filter(move |record| record.section == name)
    }

    /// Writes the measurements as CSV.
    ///
    /// # Errors
    /// Errors of the CSV writer, which do not occur for text in memory.
    pub fn to_csv(&self) -> Result<String, csv::Error> {
        let mut text: String = self.about.iter().map(|(name, value)| format!("# {name}: {value}\n")).collect();
        let mut writer = csv::Writer::from_writer(Vec::new());
        for record in &self.records {
            writer.serialize(record)?;
        }
        let bytes = writer.into_inner().map_err(|error| error.into_error())?;
        text += &String::from_utf8_lossy(&bytes);
        Ok(text)
    }

    /// Parses the CSV of a file of measurements.
    ///
    /// # Errors
    /// [`Error::Format`] names the file and the position.
    pub fn from_csv(path: &Path, text: &str) -> Result<Self, Error> {
        let mut recording = Self::default();
        for line in text.lines().map_while(|line| line.strip_prefix("# ")) {
            let Some((name, value)) = line.split_once(": ") else {
                return Err(Error::Format { path: path.into(), what: format!("not `# name: value`: {line:?}") });
            };
            recording.tell(name, value);
        }
        let mut reader = csv::ReaderBuilder::new().comment(Some(b'#')).from_reader(text.as_bytes());
        for record in reader.deserialize() {
            recording
                .records
                .push(record.map_err(|error| Error::Format { path: path.into(), what: error.to_string() })?);
        }
        Ok(recording)
    }

    /// Reads a file of measurements.
    ///
    /// # Errors
    /// [`Error::File`], [`Error::Format`].
    pub fn read(path: &Path) -> Result<Self, Error> {
        let text = std::fs::read_to_string(path).map_err(Error::file("read", path))?;
        Self::from_csv(path, &text)
    }
}

/// Formats a power of two as `2^k`, and any other number in decimal.
#[must_use]
pub fn power(number: usize) -> String {
    if number.is_power_of_two() { format!("2^{}", number.ilog2()) } else { number.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recording() -> Recording {
        let times = Times::new([100, 110, 90].map(Duration::from_micros).to_vec());
        let mut recording = Recording::default();
        recording.tell("device", "CPU, \"two\" cores");
        recording.tell("command", "compare\n--quick");
        recording.records = vec![
            Record::new("lookup", "LSM", "lookup, all present", "b = 2^4", 1 << 20).rate(1 << 20, &times).bytes(8.0),
            Record::new("memory", "LSM", "bytes per element", "", 7).value(8.125, "B").beside("CUB", Some(16.0)),
        ];
        recording
    }

    #[test]
    fn files_are_read_as_they_were_written() {
        let recording = recording();
        let text = recording.to_csv().unwrap();
        assert!(
            text.starts_with("# device: CPU, \"two\" cores\n# command: compare --quick\nsection,subject,row"),
            "{text}"
        );
        assert_eq!(Recording::from_csv(Path::new("x.csv"), &text).unwrap(), recording);
    }

    #[test]
    fn files_without_queued_calls_are_read() {
        let text = "section,subject,row,parameter,n,work,value,unit,low,high,runs,bytes,peer,peer_value\n\
                    primitives,gpu-primitives,copy,,8,8,4.0,M/s,3.0,5.0,15,8.0,,\n";
        let record = Recording::from_csv(Path::new("old.csv"), text).unwrap().records.remove(0);
        assert_eq!((record.value, record.queued, record.as_queued()), (4.0, None, None));
        let record = record.queued(Some(Duration::from_micros(1))).beside_queued("CUB", Some(4.0));
        assert_eq!((record.queued, record.queued_ratio()), (Some(8.0), Some(2.0)));
        let queued = record.as_queued().unwrap();
        assert_eq!((queued.value, queued.ratio(), queued.spread_percent()), (8.0, Some(2.0), None));
        let recording = Recording { about: Vec::new(), records: vec![record] };
        assert_eq!(Recording::from_csv(Path::new("new.csv"), &recording.to_csv().unwrap()).unwrap(), recording);
    }

    #[test]
    fn what_is_no_measurement_is_named() {
        for text in ["# no value\n", "section,subject\na,b\n", "section,subject,row,parameter,n\n1,2,3,4,x\n"] {
            let message = Recording::from_csv(Path::new("bad.csv"), text).unwrap_err().to_string();
            assert!(message.starts_with("bad.csv: "), "{message}");
        }
    }

    #[test]
    fn rates_and_spreads() {
        let recording = recording();
        let rate = &recording.records[0];
        assert_eq!((rate.value, rate.low, rate.high), (10485.8, Some(9532.51), Some(11650.8)));
        assert!((rate.microseconds().unwrap() - 100.0).abs() < 0.01);
        assert!((rate.spread_percent().unwrap() - 20.2).abs() < 0.1);
        assert_eq!(recording.records[1].ratio(), Some(8.125 / 16.0));
        assert_eq!((power(1 << 20), power(1000)), ("2^20".into(), "1000".into()));
    }
}
