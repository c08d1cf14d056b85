//! Tables that show the numbers of several records in one row.

use super::{NONE, Table, number, optional, ratio, spread};
use crate::names;
use crate::record::{RATE, Record};

/// The part of a record that a column shows.
#[derive(Clone, Copy)]
pub enum Show {
    /// The number.
    Value,
    /// The peer's number.
    Peer,
    /// The number divided by the peer's.
    Ratio,
    /// The distance from the worst run to the best one.
    Spread,
}

impl Show {
    fn cell(self, record: &Record) -> String {
        match self {
            Self::Value => number(record.value),
            Self::Peer => optional(record.peer_value),
            Self::Ratio => ratio(record.ratio()),
            Self::Spread => spread(record),
        }
    }
}

/// A column of a table.
pub struct Column<'a> {
    /// The name of the column.
    pub title: &'a str,
    /// The subject of the record.
    pub subject: &'a str,
    /// The row of the record.
    pub row: &'a str,
    /// The part of the record that is shown.
    pub show: Show,
}

/// Returns a table with one row per parameter.
pub fn by_parameter<'a>(
    records: impl Iterator<Item = &'a Record> + Clone,
    label: &str,
    columns: &[Column<'_>],
) -> Table {
    let mut table = Table::new(1, std::iter::once(label).chain(columns.iter().map(|column| column.title)));
    for parameter in distinct(records.clone().map(|record| record.parameter.as_str())) {
        let cell = |column: &Column<'_>| {
            let mut fitting = records.clone().filter(|record| {
                (record.parameter.as_str(), record.subject.as_str(), record.row.as_str())
                    == (parameter, column.subject, column.row)
            });
            fitting.next().map_or_else(|| NONE.into(), |record| column.show.cell(record))
        };
        table.push(std::iter::once(parameter.to_owned()).chain(columns.iter().map(cell)));
    }
    table
}

/// Returns the operation and its parameters as one text, in words.
#[must_use]
pub fn name(record: &Record) -> String {
    let unit = if record.unit == RATE { String::new() } else { format!(" ({})", record.unit) };
    let separator = if record.parameter.is_empty() { "" } else { ", " };
    format!("{}{separator}{}{unit}", names::title(&record.row), names::parameter(&record.parameter))
}

/// Returns a table with one row per operation and one column per subject.
pub fn by_subject<'a>(records: impl Iterator<Item = &'a Record> + Clone, label: &str) -> Table {
    let subjects = distinct(records.clone().map(|record| record.subject.as_str()));
    let mut table = Table::new(1, std::iter::once(label).chain(subjects.iter().copied()));
    for (name, values) in by_name(records, &subjects) {
        table.push(std::iter::once(name).chain(values.into_iter().map(optional)));
    }
    table
}

/// Returns all operations with the numbers of these subjects.
pub fn by_name<'a>(
    records: impl Iterator<Item = &'a Record> + Clone,
    subjects: &[&str],
) -> Vec<(String, Vec<Option<f64>>)> {
    let names = distinct(records.clone().map(name));
    names
        .into_iter()
        .map(|row| {
            let value = |subject: &&str| {
                records.clone().find(|record| record.subject == **subject && name(record) == row).map(|it| it.value)
            };
            let values = subjects.iter().map(value).collect();
            (row, values)
        })
        .collect()
}

/// Returns the distinct items, in the order of their first occurrence.
pub fn distinct<T: PartialEq>(items: impl Iterator<Item = T>) -> Vec<T> {
    let mut seen = Vec::new();
    for item in items {
        if !seen.contains(&item) {
            seen.push(item);
        }
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stand_where_they_belong() {
        let records = [
            Record::new("", "a", "lookup", "b = 1", 0).value(5.0, RATE).beside("p", Some(2.0)),
            Record::new("", "b", "lookup", "b = 1", 0).value(6.0, RATE),
            Record::new("", "a", "lookup", "b = 2", 0).value(7.0, RATE),
        ];
        let columns = [
            Column { title: "a", subject: "a", row: "lookup", show: Show::Value },
            Column { title: "x", subject: "a", row: "lookup", show: Show::Ratio },
            Column { title: "b", subject: "b", row: "lookup", show: Show::Value },
        ];
        let table = by_parameter(records.iter(), "", &columns);
        assert_eq!(table.rows, [["b = 1", "5.00", "2.500", "6.00"], ["b = 2", "7.00", NONE, NONE]]);
        let table = by_subject(records.iter(), "");
        assert_eq!(table.rows, [["lookup, batches of 1", "5.00", "6.00"], ["lookup, batches of 2", "7.00", NONE]]);
    }
}
