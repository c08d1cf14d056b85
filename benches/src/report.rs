//! The report of a command: its tables and plots.

use crate::record::{Record, Recording, power};
use crate::view::pivot::{self, by_name, by_subject, distinct};
use crate::view::plot::{Axis, Marks, Plot};
use crate::view::{Block, NONE, Table, number, optional, ratio, spread};
use crate::{compare, cuckoo, lsm, paper, primitives, sorted_array};

/// Returns the description of the run: the device, the date, the command and so on.
#[must_use]
pub fn about(recording: &Recording) -> Vec<Block> {
    let mut table = Table::new(2, ["about", "this run"]);
    for (name, text) in &recording.about {
        table.push([name.clone(), text.clone()]);
    }
    vec![Block::Table(table)]
}

/// Returns all tables and plots of the recording.
#[must_use]
pub fn blocks(recording: &Recording) -> Vec<Block> {
    let has = |section: &str| recording.section(section).next().is_some();
    let mut blocks = Vec::new();
    if has(compare::SECTION) {
        blocks.extend(comparison(recording));
    }
    if has(primitives::SECTION) {
        blocks.push(Block::Heading("Primitives".into()));
        blocks.push(Block::Text("Rates in million elements per second.".into()));
        blocks.push(primitives::table(recording));
        blocks.extend(beside_peer(recording, primitives::SECTION, "Primitives").map(Block::Plot));
    }
    for (section, title) in
        [(lsm::SECTION, "LSM"), (sorted_array::SECTION, "Sorted array"), (cuckoo::SECTION, "Cuckoo table")]
    {
        if has(section) {
            blocks.push(Block::Heading(title.into()));
            blocks.push(rows(recording, section));
            blocks.extend(beside_peer(recording, section, title).map(Block::Plot));
        }
    }
    blocks.extend(paper::report::blocks(recording));
    blocks
}

/// Returns the comparison: one table and one plot.
fn comparison(recording: &Recording) -> Vec<Block> {
    let rates = || recording.section(compare::SECTION).filter(|record| record.unit == crate::record::RATE);
    let subjects = distinct(rates().map(|record| record.subject.as_str()));
    let plot = Plot {
        title: "Million operations per second, logarithmic".into(),
        x: Axis::logarithmic("million/s"),
        y: Axis::default(),
        marks: Marks::Dots(by_name(rates(), &subjects)),
        series: subjects.iter().map(|&subject| subject.into()).collect(),
    };
    vec![
        Block::Heading("Dictionaries".into()),
        Block::Text(format!(
            "Rates in million operations per second, the median of all runs; every result was checked.{}",
            spread_in_words(recording)
        )),
        Block::Table(by_subject(recording.section(compare::SECTION), "operation")),
        Block::Plot(plot),
    ]
}

/// Describes the spread of the runs, over all rows.
fn spread_in_words(recording: &Recording) -> String {
    let mut spreads: Vec<f64> = recording.records.iter().filter_map(Record::spread_percent).collect();
    spreads.sort_by(f64::total_cmp);
    let Some(most) = spreads.last() else { return String::new() };
    let middle = spreads[spreads.len() / 2];
    format!(
        " The spread from the worst run to the best is {middle:.1} % of the rate in the median row, and at most \
         {most:.1} %."
    )
}

/// Returns a plot of our rates and the peer's, for the rows that have a peer, at the largest size of each row.
fn beside_peer(recording: &Recording, section: &str, title: &str) -> Option<Plot> {
    let rates = || recording.section(section).filter(|record| record.unit == crate::record::RATE);
    let with_peer = || rates().filter(|record| record.peer_value.is_some());
    let largest =
        |name: &String| with_peer().filter(|record| pivot::name(record) == *name).max_by_key(|record| record.n);
    let rows: Vec<_> = distinct(with_peer().map(pivot::name))
        .into_iter()
        .filter_map(|name| largest(&name).map(|record| (name, vec![Some(record.value), record.peer_value])))
        .collect();
    (!rows.is_empty()).then(|| Plot {
        title: format!("{title}: million per second, at the largest size"),
        x: Axis::logarithmic("million/s"),
        y: Axis::default(),
        series: vec!["ours".into(), "peer's".into()],
        marks: Marks::Dots(rows),
    })
}

/// Returns a table with one row per record.
#[must_use]
pub fn rows(recording: &Recording, section: &str) -> Block {
    let has_peer = recording.section(section).any(|record| record.peer_value.is_some());
    let columns = ["row", "parameter", "n", "value", "unit", "µs", "spread"];
    let peer_columns = has_peer.then_some(["peer", "peer's", "ratio"]).into_iter().flatten();
    let mut table = Table::new(2, columns.into_iter().chain(peer_columns));
    for record in recording.section(section) {
        let mut row = vec![
            record.row.clone(),
            record.parameter.clone(),
            power(record.n as usize),
            number(record.value),
            record.unit.clone(),
            optional(record.microseconds()),
            spread(record),
        ];
        if has_peer {
            let peer = record.peer.clone().unwrap_or_else(|| NONE.into());
            row.extend([peer, optional(record.peer_value), ratio(record.ratio())]);
        }
        table.push(row);
    }
    Block::Table(table)
}
