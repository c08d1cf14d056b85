//! The parts of a report: headings, text, tables and plots. They are rendered as text for a terminal, as Markdown or as
//! an HTML page.

pub mod html;
pub mod markdown;
pub mod pivot;
pub mod plot;
pub mod text;

use crate::names;
use crate::record::Record;
use plot::Plot;

/// A part of a page.
#[derive(Clone, Debug)]
pub enum Block {
    /// A heading.
    Heading(String),
    /// A paragraph.
    Text(String),
    /// A paragraph that the reader must not miss.
    Notice(String),
    /// A table.
    Table(Table),
    /// A plot.
    Plot(Plot),
}

/// A table. The first columns are text, the others numbers.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// The names of the columns.
    pub columns: Vec<String>,
    /// The number of text columns.
    pub words: usize,
    /// The rows, with one cell per column.
    pub rows: Vec<Vec<String>>,
    /// What a reader sees who points at the first cell of a row; for the first rows, or for none.
    pub hints: Vec<String>,
    /// The columns of the winners of a row; for the first rows, or for none.
    pub best: Vec<Vec<usize>>,
}

impl Table {
    /// Creates a table without rows.
    #[must_use]
    pub fn new<'a>(words: usize, columns: impl IntoIterator<Item = &'a str>) -> Self {
        Self { columns: columns.into_iter().map(str::to_owned).collect(), words, ..Self::default() }
    }

    /// Adds what a reader sees who points at the next row: what a row of measurements is.
    pub fn hint(&mut self, row: &str) {
        self.hints.push(names::explain(row).map_or_else(String::new, |known| known.text.into_owned()));
    }

    /// Returns whether the number in a cell is the best of its row.
    #[must_use]
    pub fn is_best(&self, row: usize, column: usize) -> bool {
        self.best.get(row).is_some_and(|columns| columns.contains(&column))
    }

    /// Adds a row.
    pub fn push(&mut self, row: impl IntoIterator<Item = String>) {
        self.rows.push(row.into_iter().collect());
    }
}

/// The text of an empty cell.
pub const NONE: &str = "–";

/// Formats a number with its significant digits, and commas between thousands.
#[must_use]
pub fn number(value: f64) -> String {
    let decimals = match value.abs() {
        x if x >= 99.95 || x == 0.0 => 0,
        x if x >= 9.995 => 1,
        x if x >= 0.9995 => 2,
        x if x >= 0.0995 => 3,
        // Two significant digits.
        x => (1.0 - x.log10().floor()).min(9.0) as usize,
    };
    let text = format!("{value:.decimals$}");
    let (whole, rest) = text.split_once('.').map_or((text.as_str(), None), |(whole, rest)| (whole, Some(rest)));
    let (sign, digits) = whole.strip_prefix('-').map_or(("", whole), |digits| ("-", digits));
    let mut grouped = String::from(sign);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    if let Some(rest) = rest {
        grouped.push('.');
        grouped += rest;
    }
    grouped
}

/// Formats a number that may be absent.
#[must_use]
pub fn optional(value: Option<f64>) -> String {
    value.map_or_else(|| NONE.into(), number)
}

/// Formats a ratio to the peer: with three decimals, because small differences count, or with two digits if it is below
/// 0.01.
#[must_use]
pub fn ratio(value: Option<f64>) -> String {
    value.map_or_else(|| NONE.into(), |value| if value < 0.01 { format!("{value:.1e}") } else { format!("{value:.3}") })
}

/// Formats the distance from the worst run to the best one.
#[must_use]
pub fn spread(record: &Record) -> String {
    record.spread_percent().map_or_else(|| NONE.into(), |percent| format!("{percent:.1} %"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_digits_that_say_something() {
        let numbers = [
            (1_234_567.8, "1,234,568"),
            (-1234.0, "-1,234"),
            (999.9, "1,000"),
            (100.0, "100"),
            (99.96, "100"),
            (13.72, "13.7"),
            (2.5, "2.50"),
            (0.123_45, "0.123"),
            (0.012_34, "0.012"),
            (0.000_456, "0.00046"),
            (0.0, "0"),
        ];
        for (value, text) in numbers {
            assert_eq!(number(value), text);
        }
    }
}
