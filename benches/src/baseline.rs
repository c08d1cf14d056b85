//! What has changed since an earlier run.

use crate::record::{RATE, Record, Recording, power};
use crate::view::{Block, Table, number};
use crate::{names, view::ratio};
use serde::Serialize;

/// The assumed spread of a number that was measured once, as a share.
const SINGLE_RUN: f64 = 0.05;

/// The most changes that a report lists: what is worse comes first, and the largest changes of each kind.
const MOST_ROWS: usize = 40;

/// How a number compares with the earlier one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Worse, and beyond the spread of both runs.
    Worse,
    /// Better, and beyond the spread of both runs.
    Better,
    /// The runs overlap.
    Same,
}

/// A number of both runs.
#[derive(Clone, Debug, Serialize)]
pub struct Change<'a> {
    /// The earlier record.
    pub before: &'a Record,
    /// The record of this run.
    pub now: &'a Record,
    /// How they compare.
    pub verdict: Verdict,
}

/// Returns the numbers that both runs have.
#[must_use]
pub fn changes<'a>(before: &'a Recording, now: &'a Recording) -> Vec<Change<'a>> {
    let same = |a: &Record, b: &Record| {
        (&a.section, &a.subject, &a.row, &a.parameter, a.n, &a.unit)
            == (&b.section, &b.subject, &b.row, &b.parameter, b.n, &b.unit)
    };
    let with_earlier = |now: &'a Record| {
        let before = before.records.iter().find(|record| same(record, now))?;
        Some(Change { before, now, verdict: verdict(before, now) })
    };
    now.records.iter().filter_map(with_earlier).collect()
}

/// Returns the numbers of the worst and of the best run.
fn runs(record: &Record) -> (f64, f64) {
    match record.low.zip(record.high).filter(|_| record.runs > 1) {
        Some(runs) => runs,
        None => (record.value * (1.0 - SINGLE_RUN), record.value * (1.0 + SINGLE_RUN)),
    }
}

fn verdict(before: &Record, now: &Record) -> Verdict {
    let (before_runs, now_runs) = (runs(before), runs(now));
    let (is_less, is_more) = (now_runs.1 < before_runs.0, now_runs.0 > before_runs.1);
    // Rates shall be high; times and bytes low.
    match (is_less, is_more, now.unit == RATE) {
        (true, _, true) | (_, true, false) => Verdict::Worse,
        (_, true, true) | (true, _, false) => Verdict::Better,
        _ => Verdict::Same,
    }
}

/// Returns the part of a report about the changes: those beyond the spread, the worst first.
#[must_use]
pub fn blocks(before: &Recording, now: &Recording) -> Vec<Block> {
    let mut changes = changes(before, now);
    let count = |verdict: Verdict| changes.iter().filter(|change| change.verdict == verdict).count();
    let (worse, better, same) = (count(Verdict::Worse), count(Verdict::Better), count(Verdict::Same));
    let summary = format!(
        "Compared with the run of {} on {}: {worse} numbers are worse and {better} better, beyond the spread of both runs; \
         {same} are the same.",
        before.about("date").unwrap_or("an unknown date"),
        before.about("device").unwrap_or("an unknown device")
    );
    let mut blocks = vec![Block::Heading("What changed".into()), Block::Text(summary)];
    if before.about("device") != now.about("device") {
        blocks.push(Block::Notice("The two runs were on different devices.".into()));
    }
    changes.retain(|change| change.verdict != Verdict::Same);
    let quotient = |change: &Change<'_>| change.now.value / change.before.value;
    // Of the same verdict, the largest change first.
    let size = |change: &Change<'_>| quotient(change).ln().abs();
    changes.sort_by(|a, b| a.verdict.cmp(&b.verdict).then(size(b).total_cmp(&size(a))));
    if changes.is_empty() {
        return blocks;
    }
    let mut table = Table::new(3, ["", "row", "subject", "n", "before", "now", "unit", "ratio"]);
    for change in changes.iter().take(MOST_ROWS) {
        let record = change.now;
        let separator = if record.parameter.is_empty() { "" } else { ", " };
        table.push([
            if change.verdict == Verdict::Worse { "WORSE".into() } else { "better".into() },
            format!("{}{separator}{}", names::title(&record.row), names::parameter(&record.parameter)),
            record.subject.clone(),
            power(record.n as usize),
            number(change.before.value),
            number(record.value),
            record.unit.clone(),
            ratio(Some(quotient(change))),
        ]);
    }
    blocks.push(Block::Table(table));
    if changes.len() > MOST_ROWS {
        blocks.push(Block::Text(format!("{} more are in the JSON file.", changes.len() - MOST_ROWS)));
    }
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(values: [(f64, f64, f64); 3], bytes: f64) -> Recording {
        let mut recording = Recording::default();
        for (index, (low, value, high)) in values.into_iter().enumerate() {
            let record = Record::new("compare", "LSM", format!("row {index}"), "", 64).value(value, RATE);
            recording.records.push(Record { low: Some(low), high: Some(high), runs: 3, ..record });
        }
        recording.records.push(Record::new("compare", "LSM", "bytes per element", "", 64).value(bytes, "B"));
        recording
    }

    #[test]
    fn only_what_is_beyond_the_spread_counts() {
        let before = run([(90.0, 100.0, 110.0); 3], 8.0);
        let now = run([(85.0, 95.0, 105.0), (60.0, 70.0, 80.0), (120.0, 130.0, 140.0)], 10.0);
        let verdicts: Vec<Verdict> = changes(&before, &now).iter().map(|change| change.verdict).collect();
        assert_eq!(verdicts, [Verdict::Same, Verdict::Worse, Verdict::Better, Verdict::Worse]);
        let blocks = blocks(&before, &now);
        assert!(matches!(&blocks[1], Block::Text(text) if text.contains("2 numbers are worse and 1 better")));
        let Some(Block::Table(table)) = blocks.last() else { panic!("no table") };
        let rows: Vec<&str> = table.rows.iter().map(|row| row[1].as_str()).collect();
        assert_eq!(rows, ["row 1", "Memory per element", "row 2"]);
        assert_eq!(changes(&before, &before).iter().filter(|change| change.verdict != Verdict::Same).count(), 0);
    }
}
