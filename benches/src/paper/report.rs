//! The tables and figures of the paper, with our numbers.

use super::{
    BUILD, CLEANUP, CLEANUP_AND_LOOKUPS, EFFECTIVE_RATE, INSERTION, INSERTION_TIME, INTERVALS, LOOKUP, SUMMARY,
};
use crate::record::{Record, Recording};
use crate::view::pivot::{Column, Show, by_parameter, distinct};
use crate::view::plot::{Axis, Marks, Plot};
use crate::view::{Block, Table, number, optional, ratio, spread};

const LSM: &str = "LSM";
const ARRAY: &str = "sorted array";

/// Returns the tables and figures of all measured experiments.
#[must_use]
pub fn blocks(recording: &Recording) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut part = |section: &str, title: &str, text: &str, parts: &dyn Fn() -> Vec<Block>| {
        if recording.section(section).next().is_some() {
            blocks.push(Block::Heading(title.into()));
            if !text.is_empty() {
                blocks.push(Block::Text(text.into()));
            }
            blocks.extend(parts());
        }
    };
    let list = |section: &'static str| move || vec![Block::Table(list(recording.section(section)))];
    part(SUMMARY, "Summary", "", &list(SUMMARY));
    part(
        INSERTION,
        "Insertion",
        "Rates in million elements per second, over all numbers r of resident batches.",
        &|| {
            let tables = subjects(recording, INSERTION).map(|subject| Block::Table(insertion(recording, subject)));
            tables.chain([Block::Plot(insertion_rate(recording))]).collect()
        },
    );
    part(INSERTION_TIME, "Time of an insertion", "", &|| vec![Block::Plot(insertion_time(recording))]);
    part(EFFECTIVE_RATE, "Effective insertion rate", "", &|| {
        subjects(recording, EFFECTIVE_RATE).map(|subject| Block::Plot(effective_rate(recording, subject))).collect()
    });
    part(BUILD, "Bulk build", "", &list(BUILD));
    part(
        LOOKUP,
        "Lookup",
        "Rates in million queries per second, with as many queries as elements. For each b, at most 34 numbers r of \
         batches were tried, evenly spread and including the last two.",
        &|| ["none", "all"].map(|which| Block::Table(queries(recording, LOOKUP, &format!("lookup {which}")))).into(),
    );
    part(
        INTERVALS,
        "Count and range",
        "Rates in million queries per second. Each interval has exactly L keys; a call has at most 2^20 intervals of 8 \
         keys or 2^15 of 1024. For each b, at most 18 numbers r of batches were tried.",
        &|| {
            ["count L = 8", "count L = 1024", "range L = 8", "range L = 1024"]
                .map(|row| Block::Table(queries(recording, INTERVALS, row)))
                .into()
        },
    );
    part(CLEANUP, "Cleanup", "Rates in million elements per second, stale ones included.", &list(CLEANUP));
    part(CLEANUP_AND_LOOKUPS, "Lookups before and after a cleanup", "", &list(CLEANUP_AND_LOOKUPS));
    blocks
}

/// Returns the growing dictionaries that occur in a section.
fn subjects<'a>(recording: &'a Recording, section: &'a str) -> impl Iterator<Item = &'static str> + 'a {
    [LSM, ARRAY].into_iter().filter(move |subject| recording.section(section).any(|record| record.subject == *subject))
}

/// Returns a table with one row per record.
fn list<'a>(records: impl Iterator<Item = &'a Record>) -> Table {
    let mut table = Table::new(3, ["row", "of", "parameter", "ours", "unit", "spread", "paper", "ratio"]);
    for record in records {
        table.push([
            record.row.clone(),
            record.subject.clone(),
            record.parameter.clone(),
            number(record.value),
            record.unit.clone(),
            spread(record),
            optional(record.peer_value),
            ratio(record.ratio()),
        ]);
    }
    table
}

fn insertion(recording: &Recording, subject: &str) -> Table {
    let column = |title, row, show| Column { title, subject, row, show };
    let columns = [
        column("min", "insertion min", Show::Value),
        column("max", "insertion max", Show::Value),
        column("mean", "insertion mean", Show::Value),
        column("spread", "insertion mean", Show::Spread),
        column("paper min", "insertion min", Show::Peer),
        column("paper max", "insertion max", Show::Peer),
        column("paper mean", "insertion mean", Show::Peer),
        column("ratio of means", "insertion mean", Show::Ratio),
    ];
    by_parameter(recording.section(INSERTION), subject, &columns)
}

/// Returns a plot of the mean rates by batch size, with the paper's.
fn insertion_rate(recording: &Recording) -> Plot {
    let (mut series, mut lines) = (Vec::new(), Vec::new());
    for subject in subjects(recording, INSERTION) {
        // The mean over all batch sizes has no size.
        let means = || {
            let is_mean = |record: &&Record| record.row == "insertion mean" && record.work > 0;
            recording.section(INSERTION).filter(|record| record.subject == subject).filter(is_mean)
        };
        series.push(subject.to_owned());
        lines.push(means().map(|record| (record.work as f64, record.value)).collect());
        series.push(format!("{subject} (paper)"));
        lines.push(means().filter_map(|record| Some((record.work as f64, record.peer_value?))).collect());
    }
    Plot {
        title: "Mean insertion rate by batch size".into(),
        x: Axis::logarithmic("elements of a batch"),
        y: Axis::logarithmic("million elements/s"),
        series,
        marks: Marks::Lines(lines),
    }
}

fn queries(recording: &Recording, section: &str, row: &str) -> Table {
    let (min, max, mean) = (format!("{row} min"), format!("{row} max"), format!("{row} mean"));
    let column = |title, subject, row, show| Column { title, subject, row, show };
    let columns = [
        column("LSM min", LSM, &min, Show::Value),
        column("LSM max", LSM, &max, Show::Value),
        column("LSM mean", LSM, &mean, Show::Value),
        column("spread", LSM, &mean, Show::Spread),
        column("paper mean", LSM, &mean, Show::Peer),
        column("ratio", LSM, &mean, Show::Ratio),
        column("SA mean", ARRAY, &mean, Show::Value),
        column("paper SA", ARRAY, &mean, Show::Peer),
        column("SA ratio", ARRAY, &mean, Show::Ratio),
        column("cuckoo", "cuckoo", &mean, Show::Value),
        column("paper cuckoo", "cuckoo", &mean, Show::Peer),
        column("cuckoo ratio", "cuckoo", &mean, Show::Ratio),
    ];
    let has_cuckoo = recording.section(section).any(|record| record.subject == "cuckoo" && record.row == mean);
    by_parameter(recording.section(section), row, &columns[..if has_cuckoo { 12 } else { 9 }])
}

fn insertion_time(recording: &Recording) -> Plot {
    let series = distinct(recording.section(INSERTION_TIME).map(|record| record.subject.clone()));
    let line = |subject: &String| {
        let records = recording.section(INSERTION_TIME).filter(move |record| record.subject == *subject);
        records.enumerate().map(|(index, record)| (index as f64, record.value)).collect()
    };
    let first = recording.section(INSERTION_TIME).next();
    let batch = first.and_then(|record| record.parameter.split_once(',')).map_or("", |(batch, _)| batch);
    Plot {
        title: format!("Time to insert one more batch, {batch}"),
        x: Axis::linear("resident batches r"),
        y: Axis::logarithmic("ms"),
        marks: Marks::Lines(series.iter().map(line).collect()),
        series,
    }
}

fn effective_rate(recording: &Recording, subject: &str) -> Plot {
    let of_subject = || recording.section(EFFECTIVE_RATE).filter(|record| record.subject == subject);
    let series = distinct(of_subject().map(|record| record.parameter.clone()));
    let line = |parameter: &String| {
        let records = of_subject().filter(|record| record.parameter == *parameter);
        records.map(|record| (record.n as f64 / 1e6, record.value)).collect()
    };
    Plot {
        title: format!("Effective insertion rate, {subject}"),
        x: Axis::linear("million elements inserted"),
        y: Axis::logarithmic("million elements/s"),
        marks: Marks::Lines(series.iter().map(line).collect()),
        series,
    }
}
