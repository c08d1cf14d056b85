//! The report of a command: its tables and plots.

use crate::alike::Alike;
use crate::names;
use crate::record::{NOTE, RATE, Record, Recording, power};
use crate::view::pivot::{self, distinct};
use crate::view::plot::{Axis, Mark, Marks, Plot};
use crate::view::{Block, NONE, Table, number, optional, ratio, spread};
use crate::{baseline, compare, cuckoo, lsm, paper, primitives, reference, sorted_array, tables};

/// The rows of the comparison that change a dictionary. The others ask it.
const UPDATES: [&str; 5] = ["bulk build", "insert, all batches", "delete", "update, mixed", "cleanup"];

/// What the tables of queued calls show.
const QUEUED: &str = "The same calls queued on the device, one after the other without a wait: the time of the device alone, without \
                      what the host takes to launch them. Calls that wait cannot be queued.";

/// The most lines of a plot: more cannot be told apart.
const MOST_LINES: usize = 6;

/// Returns everything that a page shows: what the reader must know first, the changes since a baseline, the description of
/// the run, tables and plots.
#[must_use]
pub fn page(recording: &Recording, before: Option<&Recording>) -> Vec<Block> {
    let note = recording.about(NOTE).map(|text| Block::Notice(text.into()));
    let changes = before.map(|before| baseline::blocks(before, recording)).unwrap_or_default();
    note.into_iter()
        .chain(changes)
        .chain(blocks(recording))
        .chain([Block::Heading("This run".into())])
        .chain(about(recording))
        .collect()
}

/// Returns the description of the run: the device, the date, the command and so on.
#[must_use]
pub fn about(recording: &Recording) -> Vec<Block> {
    let mut table = Table::new(2, ["about", "this run"]);
    for (name, text) in recording.about.iter().filter(|(name, _)| name != NOTE) {
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
        blocks.extend(of_primitives(recording));
    }
    for (section, title) in [
        (lsm::SECTION, "LSM"),
        (sorted_array::SECTION, "Sorted array"),
        (cuckoo::SECTION, "Cuckoo table"),
        (tables::SECTION, "Tables"),
    ] {
        if has(section) {
            blocks.push(Block::Heading(title.into()));
            blocks.extend(rows(recording, section));
            blocks.extend(beside_peer(recording, section, title).map(Block::Plot));
            blocks.extend(explanations(recording, section));
        }
    }
    blocks.extend(paper::report::blocks(recording));
    blocks
}

fn is_rate(record: &Record) -> bool {
    record.unit == RATE
}

/// Returns the mark of a record.
fn mark(record: &Record) -> Mark {
    let runs = record.low.zip(record.high).filter(|_| record.runs > 1);
    let hover = match runs {
        Some((low, high)) => {
            format!(
                "{} {} ({} to {} in {} runs)",
                number(record.value),
                record.unit,
                number(low),
                number(high),
                record.runs
            )
        }
        None => format!("{} {}", number(record.value), record.unit),
    };
    Mark { value: record.value, spread: runs, hover }
}

/// Returns the comparison: rates beside their ratios, memory, bars, and curves if there are several sizes.
fn comparison(recording: &Recording) -> Vec<Block> {
    let section = || recording.section(compare::SECTION);
    let largest = distinct(section().map(|record| record.subject.as_str()))
        .into_iter()
        .map(|subject| (subject, section().filter(|record| record.subject == subject).map(|record| record.n).max()))
        .collect::<Vec<_>>();
    // Each structure at its largest size: those on the host have fewer elements.
    let is_largest = |record: &&Record| largest.contains(&(record.subject.as_str(), Some(record.n)));
    let rates: Vec<&Record> = section().filter(|record| is_rate(record)).filter(is_largest).collect();
    let others: Vec<&Record> = section().filter(|record| !is_rate(record)).filter(is_largest).collect();

    let mut blocks = vec![
        Block::Heading("Dictionaries".into()),
        Block::Text(format!(
            "Million operations per second: the median of all runs; every result was checked. In parentheses: the share of \
             the rate of the fastest in the row, which is bold.{}",
            spread_in_words(recording)
        )),
        Block::Table(beside_fastest(&rates)),
    ];
    let queued: Vec<Record> = rates.iter().filter_map(|record| record.as_queued()).collect();
    if !queued.is_empty() {
        blocks.push(Block::Text(QUEUED.into()));
        blocks.push(Block::Table(beside_fastest(&queued.iter().collect::<Vec<_>>())));
    }
    blocks.extend(on_h200(recording, &rates));
    let part = |title: &str, wanted: bool| {
        let part: Vec<&Record> =
            rates.iter().copied().filter(|record| UPDATES.contains(&record.row.as_str()) == wanted).collect();
        (!part.is_empty()).then(|| Block::Plot(shares(title, &part)))
    };
    blocks.extend(part("Updates: share of the fastest", true));
    blocks.extend(part("Queries: share of the fastest", false));
    blocks.push(Block::Plot(dots("Million operations per second, logarithmic", &rates)));
    let curves = curves(&section().filter(|record| is_rate(record)).collect::<Vec<_>>());
    if !curves.is_empty() {
        blocks.push(Block::Heading("Over the number of elements".into()));
        blocks.extend(curves.into_iter().map(Block::Plot));
    }
    if !others.is_empty() {
        blocks.push(Block::Heading("Memory".into()));
        blocks.push(Block::Text("Bytes of memory per element, keys and values and all that belongs to them.".into()));
        blocks.push(Block::Table(pivot::by_subject(others.iter().copied(), "")));
    }
    blocks.extend(explanations(recording, compare::SECTION));
    blocks
}

/// Returns the H200's rates of these rows in a table of its own, if this run was on no GPU, and what is left out of it.
fn on_h200(recording: &Recording, rates: &[&Record]) -> Vec<Block> {
    if recording.about(NOTE).is_none() {
        return Vec::new();
    }
    let h200 = reference::h200();
    let alike = Alike::new(&h200, recording);
    let (mut shown, mut reasons) = (Vec::new(), Vec::new());
    for ours in rates {
        let is_same = |record: &&Record| {
            (&record.section, &record.subject, pivot::name(record)) == (&ours.section, &ours.subject, pivot::name(ours))
        };
        let Some(there) = h200.records.iter().find(is_same).filter(|record| !record.subject.starts_with("CPU")) else {
            continue;
        };
        match alike.differs(there, ours) {
            Some(why) => reasons.push(why),
            None => shown.push(there),
        }
    }
    let mut blocks = Vec::new();
    if let Some(why) = reasons.first() {
        let text =
            format!("{} rates of the H200 are not shown, because they are not comparable: {why}.", reasons.len());
        blocks.push(Block::Text(text));
    }
    if !shown.is_empty() {
        let sizes = distinct(shown.iter().map(|record| power(record.n as usize))).join(", ");
        let of_h200: Vec<Record> = shown
            .into_iter()
            .map(|record| Record { subject: format!("{}, H200", record.subject), ..record.clone() })
            .collect();
        blocks.push(Block::Text(format!("The same rows on an H200, with {sizes} elements:")));
        blocks.push(Block::Table(beside_fastest(&of_h200.iter().collect::<Vec<_>>())));
    }
    blocks
}

/// Returns the H200's rates of the primitives, if this run was on no GPU.
fn primitives_on_h200(recording: &Recording) -> Option<Vec<Record>> {
    recording.about(NOTE)?;
    Some(reference::h200().records.into_iter().filter(|record| record.section == primitives::SECTION).collect())
}

/// Returns a table of rates and their shares of the row's fastest.
fn beside_fastest(rates: &[&Record]) -> Table {
    let subjects = distinct(rates.iter().map(|record| record.subject.as_str()));
    let mut table = Table::new(1, std::iter::once("operation").chain(subjects.iter().copied()));
    for name in distinct(rates.iter().map(|record| pivot::name(record))) {
        let of_row: Vec<&Record> = rates.iter().copied().filter(|record| pivot::name(record) == name).collect();
        let fastest = of_row.iter().map(|record| record.value).fold(0.0, f64::max);
        let of = |subject: &str| of_row.iter().find(|record| record.subject == subject);
        let cells: Vec<String> = subjects
            .iter()
            .map(|subject| match of(subject) {
                Some(record) => format!("{} ({})", number(record.value), share(record.value / fastest)),
                None => NONE.into(),
            })
            .collect();
        table.hint(of_row.first().map_or("", |record| record.row.as_str()));
        // With nobody to compare with there is no winner.
        let winner = |subject: &&str| of_row.len() > 1 && of(subject).is_some_and(|record| record.value >= fastest);
        table
            .best
            .push((1..).zip(&subjects).filter(|(_, subject)| winner(subject)).map(|(column, _)| column).collect());
        table.push(std::iter::once(name).chain(cells));
    }
    table
}

/// Formats a share of the fastest in percent, with two digits. The space does not break.
fn share(value: f64) -> String {
    let percent = 100.0 * value;
    // Rounding must not turn less than all of it into all of it.
    let percent = if (99.0..100.0).contains(&percent) { 99.0 } else { percent };
    let decimals = if percent > 0.0 { (1.0 - percent.log10().floor()).clamp(0.0, 9.0) as usize } else { 0 };
    format!("{percent:.decimals$}\u{a0}%")
}

/// Returns a plot of bars: each rate divided by that of the fastest in its row.
fn shares(title: &str, rates: &[&Record]) -> Plot {
    let fastest = |name: &str| {
        rates.iter().filter(|record| pivot::name(record) == name).map(|record| record.value).fold(0.0, f64::max)
    };
    let scaled = |record: &Record| {
        let whole = fastest(&pivot::name(record));
        let mark = mark(record);
        Mark { value: mark.value / whole, spread: mark.spread.map(|(low, high)| (low / whole, high / whole)), ..mark }
    };
    Plot { marks: Marks::Bars(by_name(rates, scaled)), ..frame(title, Axis::linear("share of the fastest"), rates) }
}

/// Returns a plot of dots on a logarithmic axis.
fn dots(title: &str, rates: &[&Record]) -> Plot {
    Plot { marks: Marks::Dots(by_name(rates, mark)), ..frame(title, Axis::logarithmic("million/s"), rates) }
}

/// Returns a plot without marks, with a series per subject.
fn frame(title: &str, x: Axis, rates: &[&Record]) -> Plot {
    let series = distinct(rates.iter().map(|record| record.subject.clone()));
    Plot { title: title.into(), x, y: Axis::default(), series, marks: Marks::Dots(Vec::new()) }
}

/// Returns all operations with the marks of all subjects.
fn by_name(rates: &[&Record], mark: impl Fn(&Record) -> Mark) -> Vec<(String, Vec<Option<Mark>>)> {
    let subjects = distinct(rates.iter().map(|record| record.subject.as_str()));
    distinct(rates.iter().map(|record| pivot::name(record)))
        .into_iter()
        .map(|name| {
            let of = |subject: &&str| {
                rates
                    .iter()
                    .find(|record| record.subject == **subject && pivot::name(record) == name)
                    .map(|record| mark(record))
            };
            let marks = subjects.iter().map(of).collect();
            (name, marks)
        })
        .collect()
}

/// Returns a plot per operation that was measured at several sizes: rates over sizes.
fn curves(rates: &[&Record]) -> Vec<Plot> {
    let subjects = distinct(rates.iter().map(|record| record.subject.as_str()));
    distinct(rates.iter().map(|record| pivot::name(record)))
        .into_iter()
        .filter_map(|name| {
            let line = |subject: &&str| -> Vec<(f64, f64)> {
                let of = rates.iter().filter(|record| record.subject == **subject && pivot::name(record) == name);
                of.map(|record| (record.n as f64, record.value)).collect()
            };
            let lines: Vec<Vec<(f64, f64)>> = subjects.iter().map(line).collect();
            lines.iter().any(|line| line.len() > 1).then(|| Plot {
                title: name,
                x: Axis::logarithmic("elements"),
                y: Axis::logarithmic("million/s"),
                series: subjects.iter().map(|&subject| subject.into()).collect(),
                marks: Marks::Lines(lines),
            })
        })
        .collect()
}

/// Returns the primitives: the table, their shares of the memory rate, and curves over sizes.
fn of_primitives(recording: &Recording) -> Vec<Block> {
    let section = || recording.section(primitives::SECTION);
    let mut blocks = vec![
        Block::Heading("Primitives".into()),
        Block::Text(
            "Million elements per second. GB/s counts the bytes that must move at least: each input read once, each output \
             written once, for a radix sort once per pass. The share is that of the driver's copy of as many numbers."
                .into(),
        ),
        primitives::table(recording, primitives_on_h200(recording).as_deref()),
    ];
    if section().any(|record| record.queued.is_some()) {
        let text = format!("M/s counts one call on an idle device, with what the host takes to launch it. {QUEUED}");
        blocks.insert(2, Block::Text(text));
    }
    let largest = |record: &&Record| {
        section().filter(|other| other.row == record.row).map(|other| other.n).max() == Some(record.n)
    };
    let at_largest: Vec<&Record> = section().filter(largest).collect();
    let peer = at_largest.iter().find_map(|record| record.peer.clone());
    let bars: Vec<(String, Vec<Option<Mark>>)> = at_largest
        .iter()
        .filter_map(|record| {
            let ours = primitives::share_of_copy(recording, record)?;
            let scale = ours / record.value;
            let mark = mark(record);
            let hover = |value: f64, share: f64| format!("{:.0} % of a copy, {} M/s", 100.0 * share, number(value));
            let first = Mark {
                value: ours,
                spread: mark.spread.map(|(low, high)| (low * scale, high * scale)),
                hover: hover(record.value, ours),
            };
            let second = record.peer_value.map(|value| Mark {
                value: value * scale,
                spread: None,
                hover: hover(value, value * scale),
            });
            let mut marks = vec![Some(first)];
            if peer.is_some() {
                marks.push(second);
            }
            Some((names::title(&record.row), marks))
        })
        .collect();
    if !bars.is_empty() {
        blocks.push(Block::Plot(Plot {
            title: "Primitives: share of the rate of a copy, at the largest size".into(),
            x: Axis::linear("share of the rate of a copy"),
            y: Axis::default(),
            series: std::iter::once("ours".into()).chain(peer).collect(),
            marks: Marks::Bars(bars),
        }));
    }
    blocks.extend(rate_of_memory(recording).into_iter().map(Block::Plot));
    blocks.extend(explanations(recording, primitives::SECTION));
    blocks
}

/// Returns plots of the primitives that were measured at three sizes or more: GB/s over sizes.
fn rate_of_memory(recording: &Recording) -> Vec<Plot> {
    let section = || recording.section(primitives::SECTION);
    let line = |row: &String| -> Vec<(f64, f64)> {
        let of_row = section().filter(|record| record.row == *row);
        of_row.filter_map(|record| Some((record.n as f64, record.value * record.bytes? / 1e3))).collect()
    };
    let rows: Vec<(String, Vec<(f64, f64)>)> = distinct(section().map(|record| record.row.clone()))
        .into_iter()
        .map(|row| (names::title(&row), line(&row)))
        .filter(|(_, line)| line.len() >= 3)
        .collect();
    let count = rows.len().div_ceil(MOST_LINES);
    rows.chunks(MOST_LINES)
        .enumerate()
        .map(|(index, part)| Plot {
            title: if count == 1 {
                String::from("Primitives: GB/s over the number of elements")
            } else {
                format!("Primitives: GB/s over the number of elements ({} of {count})", index + 1)
            },
            x: Axis::logarithmic("elements"),
            y: Axis::logarithmic("GB/s that must move"),
            series: part.iter().map(|(name, _)| name.clone()).collect(),
            marks: Marks::Lines(part.iter().map(|(_, line)| line.clone()).collect()),
        })
        .collect()
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
    let with_peer = || recording.section(section).filter(|record| is_rate(record) && record.peer_value.is_some());
    let largest =
        |name: &String| with_peer().filter(|record| pivot::name(record) == *name).max_by_key(|record| record.n);
    let rows: Vec<_> = distinct(with_peer().map(pivot::name))
        .into_iter()
        .filter_map(|name| {
            largest(&name).map(|record| (name, vec![Some(mark(record)), record.peer_value.map(Mark::new)]))
        })
        .collect();
    (!rows.is_empty()).then(|| Plot {
        title: format!("{title}: million per second, at the largest size"),
        x: Axis::logarithmic("million/s"),
        y: Axis::default(),
        series: vec!["ours".into(), "peer's".into()],
        marks: Marks::Dots(rows),
    })
}

/// Returns a table of the rates, one row per record, and one of all other numbers.
#[must_use]
pub fn rows(recording: &Recording, section: &str) -> Vec<Block> {
    let of = |are_rates: bool| recording.section(section).filter(move |record| is_rate(record) == are_rates);
    let mut blocks = Vec::new();
    if of(true).next().is_some() {
        blocks.push(Block::Text("Million operations per second, and the time of one call.".into()));
        blocks.push(Block::Table(list(of(true), "M/s")));
    }
    if of(false).next().is_some() {
        blocks.push(Block::Text("Times of single calls, and memory.".into()));
        blocks.push(Block::Table(list(of(false), "value")));
    }
    blocks
}

/// Returns a table with one row per record.
fn list<'a>(records: impl Iterator<Item = &'a Record> + Clone, value: &str) -> Table {
    let are_rates = value != "value";
    let has_peer = records.clone().any(|record| record.peer_value.is_some());
    let of_values = if are_rates { ["µs", "spread"] } else { ["unit", "spread"] };
    let has_queued = records.clone().any(|record| record.queued.is_some());
    let columns =
        ["row", "parameter", "n", value].into_iter().chain(of_values).chain(has_queued.then_some("queued M/s"));
    let peer_columns = has_peer.then_some(["peer", "peer's", "ratio"]).into_iter().flatten();
    let mut table = Table::new(2, columns.chain(peer_columns));
    for record in records {
        let third = if are_rates { optional(record.microseconds()) } else { record.unit.clone() };
        let mut row = vec![
            names::title(&record.row),
            names::parameter(&record.parameter),
            power(record.n as usize),
            number(record.value),
            third,
            spread(record),
        ];
        if has_queued {
            row.push(optional(record.queued));
        }
        if has_peer {
            let peer = record.peer.clone().unwrap_or_else(|| NONE.into());
            row.extend([peer, optional(record.peer_value), ratio(record.ratio())]);
        }
        table.hint(&record.row);
        let column = |name: &str| table.columns.iter().position(|column| column == name);
        table.best.push(ahead(record, column(value), column("peer's")).into_iter().collect());
        table.push(row);
    }
    table
}

/// Returns the column of who is ahead in a row: ours or the peer's.
pub(crate) fn ahead(record: &Record, ours: Option<usize>, peers: Option<usize>) -> Option<usize> {
    let peer = record.peer_value?;
    // Rates shall be high; times and bytes low.
    let is_ours = if is_rate(record) { record.value >= peer } else { record.value <= peer };
    if is_ours { ours } else { peers }
}

/// Returns what the rows of a section are.
fn explanations(recording: &Recording, section: &str) -> Vec<Block> {
    let mut table = Table::new(3, ["row", "what it measures", "its name in files"]);
    for row in distinct(recording.section(section).map(|record| record.row.as_str())) {
        if let Some(known) = names::explain(row) {
            table.push([known.title.into_owned(), known.text.into_owned(), row.into()]);
        }
    }
    let heading = Block::Text("What the rows are:".into());
    if table.rows.is_empty() { Vec::new() } else { vec![heading, Block::Table(table)] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_of_the_documentation_is_explained() {
        let h200 = reference::h200();
        assert!(h200.records.len() > 100);
        for record in &h200.records {
            assert!(names::explain(&record.row).is_some(), "{}", record.row);
        }
    }

    #[test]
    fn rates_stand_beside_ratios_and_apart_from_bytes() {
        let mut recording = Recording::default();
        for (subject, value) in [("LSM", 50.0), ("cuckoo", 100.0)] {
            recording.records.push(Record::new(compare::SECTION, subject, "count", "L = 8", 64).value(value, RATE));
            recording.records.push(Record::new(compare::SECTION, subject, "bytes per element", "", 64).value(8.0, "B"));
        }
        let tables: Vec<Table> = blocks(&recording)
            .into_iter()
            .filter_map(|block| if let Block::Table(table) = block { Some(table) } else { None })
            .collect();
        assert_eq!(tables[0].rows, [["Count intervals, 8 keys each", "50.0 (50\u{a0}%)", "100 (100\u{a0}%)"]]);
        assert_eq!(tables[0].best, [vec![2]], "the fastest is marked");
        assert_eq!(tables[1].rows, [["Memory per element (B)", "8.00", "8.00"]]);
        assert!(!tables[2].rows.is_empty());
    }

    #[test]
    fn a_run_on_the_cpu_says_so_first_and_shows_the_h200() {
        let mut recording = Recording::default();
        recording.tell(NOTE, "GPU kernels on a CPU");
        recording.records.push(Record::new(compare::SECTION, "LSM", "bulk build", "", 64).value(2.0, RATE));
        let page = page(&recording, None);
        assert!(matches!(&page[0], Block::Notice(text) if text == "GPU kernels on a CPU"));
        let found = page
            .iter()
            .any(|block| matches!(block, Block::Table(table) if table.columns.contains(&"LSM, H200".into())));
        assert!(found);
    }

    #[test]
    fn single_and_queued_calls_are_both_shown_with_who_is_ahead() {
        let mut recording = Recording::default();
        let record =
            Record { work: 64, ..Record::new(primitives::SECTION, "gpu-primitives", "copy", "", 64).value(8.0, RATE) };
        let record = record.queued(Some(std::time::Duration::from_micros(4)));
        recording.records.push(record.beside("CUB", Some(10.0)).beside_queued("moderngpu", Some(12.0)));
        let Block::Table(table) = primitives::table(&recording, None) else { panic!("no table") };
        let columns =
            ["row", "n", "M/s", "peer M/s", "ratio", "queued M/s", "peer queued M/s", "queued ratio", "fastest peer"];
        assert_eq!(table.columns[..columns.len()], columns);
        let row = ["Copy", "2^6", "8.00", "10.0", "0.800", "16.0", "12.0", "1.333", "CUB, moderngpu"];
        assert_eq!(table.rows[0][..row.len()], row);
        // The peer is ahead in single calls, ours in queued ones.
        assert_eq!(table.best, [vec![3, 5]]);

        let mut recording = Recording::default();
        for (subject, value) in [("LSM", 32.0), ("cuckoo", 64.0)] {
            let record = Record::new(compare::SECTION, subject, "count", "L = 8", 64).value(value, RATE);
            recording.records.push(Record { work: 64, ..record }.queued(Some(std::time::Duration::from_secs(1))));
        }
        let blocks = blocks(&recording);
        let said = blocks.iter().position(|block| matches!(block, Block::Text(text) if text == QUEUED)).unwrap();
        assert!(matches!(&blocks[said + 1], Block::Table(table) if table.rows[0][1].starts_with("0.000064")));
    }

    #[test]
    fn another_workload_is_not_beside_the_h200() {
        let run = |types: &str, deletions: u32| {
            let mut recording = Recording::default();
            recording.tell(NOTE, "GPU kernels on a CPU");
            recording.tell("workload", format!("{types}, batches of 4; mixed updates have {deletions} % deletions"));
            recording.tell("batch", "a sixteenth of the elements");
            for row in ["bulk build", "update, mixed"] {
                recording.records.push(Record::new(compare::SECTION, "LSM", row, "", 64).value(2.0, RATE));
            }
            let blocks = blocks(&recording);
            let tables =
                blocks.iter().filter_map(|block| if let Block::Table(table) = block { Some(table) } else { None });
            let rows =
                tables.filter(|table| table.columns.contains(&"LSM, H200".into())).map(|table| table.rows.len()).sum();
            let said: Vec<String> = blocks
                .iter()
                .filter_map(|block| match block {
                    Block::Text(text) if text.contains("not comparable") => Some(text.clone()),
                    _ => None,
                })
                .collect();
            (rows, said.concat())
        };
        assert_eq!(run("uniform keys of 32 bits, values of 4 bytes", 20), (2usize, String::new()));
        let (rows, said) = run("zipf keys of 32 bits, values of 8 bytes", 20);
        assert!(rows == 0 && said.starts_with("2 rates") && said.contains("the other zipf keys"), "{rows}: {said}");
        let (rows, said) = run("uniform keys of 32 bits, values of 4 bytes", 50);
        assert!(rows == 1 && said.contains("20 % deletions, the other 50 %"), "{rows}: {said}");
    }

    #[test]
    fn shares_can_be_read() {
        let shares = [1.0, 0.998, 0.5, 0.0234, 0.002, 0.000_012].map(|value| share(value).replace('\u{a0}', " "));
        assert_eq!(shares, ["100 %", "99 %", "50 %", "2.3 %", "0.20 %", "0.0012 %"]);
    }

    #[test]
    fn several_sizes_are_curves() {
        let rate = |n: usize| Record::new(compare::SECTION, "LSM", "bulk build", "", n).value(n as f64, RATE);
        let (one, two) = (rate(64), rate(128));
        assert!(curves(&[&one]).is_empty());
        assert!(
            matches!(&curves(&[&one, &two])[0].marks, Marks::Lines(lines) if lines[0] == [(64.0, 64.0), (128.0, 128.0)])
        );
    }
}
