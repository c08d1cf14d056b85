//! The measurements of an H200 in the documentation: what a reader without a GPU compares with.

use crate::record::Recording;
use std::path::Path;

/// The files of measurements, the comparison first.
const FILES: [(&str, &str); 5] = [
    ("h200-compare.csv", include_str!("../../docs/data/h200-compare.csv")),
    ("h200-primitives.csv", include_str!("../../docs/data/h200-primitives.csv")),
    ("h200-lsm.csv", include_str!("../../docs/data/h200-lsm.csv")),
    ("h200-sorted-array.csv", include_str!("../../docs/data/h200-sorted-array.csv")),
    ("h200-cuckoo.csv", include_str!("../../docs/data/h200-cuckoo.csv")),
];

/// Returns the H200's numbers, and the description of its comparison. A file that cannot be read is left out.
#[must_use]
pub fn h200() -> Recording {
    let mut all = Recording::default();
    for recording in FILES.iter().filter_map(|(name, text)| Recording::from_csv(Path::new(name), text).ok()) {
        if all.about.is_empty() {
            all.about = recording.about;
        }
        all.records.extend(recording.records);
    }
    all
}
