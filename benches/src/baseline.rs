//! What has changed since an earlier run, of what can be compared.

use crate::alike::Alike;
use crate::record::{RATE, Record, Recording, power};
use crate::view::pivot::distinct;
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

/// Numbers that were not compared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LeftOut {
    /// How many.
    pub numbers: usize,
    /// Why.
    pub why: String,
}

/// What can be compared of two runs, and what cannot.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison<'a> {
    /// The numbers that both runs have, of the same workload, types and sizes.
    pub changes: Vec<Change<'a>>,
    /// The other numbers of both runs.
    pub left_out: Vec<LeftOut>,
}

/// Compares the numbers of the same rows at the same sizes, if the workloads agree.
#[must_use]
pub fn compare<'a>(before: &'a Recording, now: &'a Recording) -> Comparison<'a> {
    let row = |a: &Record, b: &Record| {
        (&a.section, &a.subject, &a.row, &a.parameter, &a.unit)
            == (&b.section, &b.subject, &b.row, &b.parameter, &b.unit)
    };
    let alike = Alike::new(before, now);
    let (mut changes, mut reasons) = (Vec::new(), Vec::new());
    for record in &now.records {
        let of_row = || before.records.iter().filter(|earlier| row(earlier, record));
        match of_row().find(|earlier| earlier.n == record.n) {
            Some(earlier) => match alike.differs(earlier, record) {
                Some(why) => reasons.push(why),
                None => changes.push(Change { before: earlier, now: record, verdict: verdict(earlier, record) }),
            },
            None if of_row().next().is_some() => reasons.push("the earlier run has other sizes".into()),
            None => reasons.push("the earlier run does not have these rows".into()),
        }
    }
    for earlier in &before.records {
        let of_row = || now.records.iter().filter(|record| row(earlier, record));
        if of_row().all(|record| record.n != earlier.n) {
            let is_there = of_row().next().is_some();
            reasons
                .push(if is_there { "this run has other sizes" } else { "this run does not have these rows" }.into());
        }
    }
    let count = |why: &String| reasons.iter().filter(|reason| *reason == why).count();
    let left_out =
        distinct(reasons.iter()).into_iter().map(|why| LeftOut { numbers: count(why), why: why.clone() }).collect();
    Comparison { changes, left_out }
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
    let Comparison { mut changes, left_out } = compare(before, now);
    let count = |verdict: Verdict| changes.iter().filter(|change| change.verdict == verdict).count();
    let (worse, better, same) = (count(Verdict::Worse), count(Verdict::Better), count(Verdict::Same));
    let summary = format!(
        "Compared with the run of {} on {}: {worse} numbers are worse and {better} better, beyond the spread of both runs; \
         {same} are the same.",
        before.about("date").unwrap_or("an unknown date"),
        before.about("device").unwrap_or("an unknown device")
    );
    let mut blocks = vec![Block::Heading("What changed".into()), Block::Text(summary)];
    if !left_out.is_empty() {
        let reason = |LeftOut { numbers, why }: &LeftOut| format!("{numbers} because {why}");
        let reasons = left_out.iter().map(reason).collect::<Vec<_>>().join("; ");
        blocks.push(Block::Notice(format!("Numbers that were not compared: {reasons}.")));
    }
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
    let mut table = Table::new(3, ["row", "change", "subject", "n", "before", "now", "unit", "ratio"]);
    for change in changes.iter().take(MOST_ROWS) {
        let record = change.now;
        let separator = if record.parameter.is_empty() { "" } else { ", " };
        table.push([
            format!("{}{separator}{}", names::title(&record.row), names::parameter(&record.parameter)),
            if change.verdict == Verdict::Worse { "WORSE".into() } else { "better".into() },
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
        let verdicts: Vec<Verdict> = compare(&before, &now).changes.iter().map(|change| change.verdict).collect();
        assert_eq!(verdicts, [Verdict::Same, Verdict::Worse, Verdict::Better, Verdict::Worse]);
        let blocks = blocks(&before, &now);
        assert!(matches!(&blocks[1], Block::Text(text) if text.contains("2 numbers are worse and 1 better")));
        let Some(Block::Table(table)) = blocks.last() else { panic!("no table") };
        let rows: Vec<&str> = table.rows.iter().map(|row| row[0].as_str()).collect();
        assert_eq!(rows, ["row 1", "Memory per element", "row 2"]);
        assert_eq!(
            compare(&before, &before).changes.iter().filter(|change| change.verdict != Verdict::Same).count(),
            0
        );
    }
    #[test]
    fn what_is_not_alike_is_left_out_and_said() {
        let describe = |mut recording: Recording, types: &str| {
            recording.tell("elements", "64");
            recording.tell("workload", format!("{types}, batches of 4; mixed updates have 20 % deletions"));
            recording
        };
        let (before, mut now) = (run([(1.0, 2.0, 3.0); 3], 8.0), run([(4.0, 5.0, 6.0); 3], 8.0));
        let before = describe(before, "uniform keys of 32 bits, values of 4 bytes");
        now = describe(now, "zipf keys of 32 bits, values of 8 bytes");
        let comparison = compare(&before, &now);
        assert!(comparison.changes.is_empty() && comparison.left_out[0].numbers == 4, "{comparison:?}");
        let page = blocks(&before, &now);
        assert!(matches!(&page[1], Block::Text(text) if text.contains("0 numbers are worse and 0 better")));
        assert!(
            matches!(&page[2], Block::Notice(text) if text.contains("4 because one run has uniform keys of 32 bits"))
        );

        now = describe(now, "uniform keys of 32 bits, values of 4 bytes");
        now.records[0].n = 128;
        now.records[1].row = "new".into();
        let comparison = compare(&before, &now);
        let why = |why: &str| LeftOut { numbers: 1, why: why.into() };
        let expected = [
            why("the earlier run has other sizes"),
            why("the earlier run does not have these rows"),
            why("this run has other sizes"),
            why("this run does not have these rows"),
        ];
        assert_eq!((comparison.changes.len(), comparison.left_out), (2, expected.to_vec()));
    }
}
