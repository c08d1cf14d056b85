//! The published numbers of the paper.

use crate::record::Record;
use serde::Deserialize;

/// The name of the paper's numbers as a peer.
pub const PEER: &str = "paper, Tesla K40c";

const TEXT: &str = include_str!("../../data/paper-k40c.csv");

#[derive(Deserialize)]
struct Entry {
    section: String,
    subject: String,
    row: String,
    parameter: String,
    value: f64,
    unit: String,
}

/// All numbers of the paper.
pub struct Published(Vec<Entry>);

impl Published {
    /// Loads the numbers.
    #[must_use]
    pub fn load() -> Self {
        let reader = csv::ReaderBuilder::new().comment(Some(b'#')).from_reader(TEXT.as_bytes());
        // A test checks that every line is valid.
        Self(reader.into_deserialize().filter_map(Result::ok).collect())
    }

    /// Adds the paper's number to our record. `parameter` is that of the paper; ours may be scaled down.
    #[must_use]
    pub fn beside(&self, record: Record, parameter: &str) -> Record {
        let found = self.0.iter().find(|entry| {
            (&entry.section, &entry.subject, &entry.row) == (&record.section, &record.subject, &record.row)
                && entry.parameter == parameter
                && entry.unit == record.unit
        });
        record.beside(PEER, found.map(|entry| entry.value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_read() {
        let lines = TEXT.lines().filter(|line| !line.starts_with('#')).count() - 1;
        assert_eq!(Published::load().0.len(), lines);
    }

    #[test]
    fn a_number_is_found_by_all_its_names() {
        let record = Record::new("paper insertion", "LSM", "insertion mean", "b = 2^3", 1 << 10).value(100.0, "M/s");
        let found = Published::load().beside(record.clone(), "b = 2^20");
        assert_eq!((found.peer_value, found.peer.as_deref()), (Some(354.1), Some(PEER)));
        assert_eq!(Published::load().beside(record, "b = 2^14").peer, None);
    }
}
