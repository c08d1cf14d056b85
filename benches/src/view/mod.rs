//! Measurements as people read them: headings, text, tables and plots, made once and written as text for a terminal, as
//! Markdown or as a page of HTML.

pub mod html;
pub mod markdown;
pub mod pivot;
pub mod plot;
pub mod text;

use crate::record::Record;
use plot::Plot;

/// A part of a page.
#[derive(Clone, Debug)]
pub enum Block {
    /// A heading.
    Heading(String),
    /// A paragraph.
    Text(String),
    /// A table.
    Table(Table),
    /// A plot.
    Plot(Plot),
}

/// A table: the first columns are words, the others numbers.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// The names of the columns.
    pub columns: Vec<String>,
    /// How many of them are words.
    pub words: usize,
    /// A cell for each column of each row.
    pub rows: Vec<Vec<String>>,
}

impl Table {
    /// A table without rows.
    #[must_use]
    pub fn new<'a>(words: usize, columns: impl IntoIterator<Item = &'a str>) -> Self {
        Self { columns: columns.into_iter().map(str::to_owned).collect(), words, rows: Vec::new() }
    }

    /// With one more row.
    pub fn push(&mut self, row: impl IntoIterator<Item = String>) {
        self.rows.push(row.into_iter().collect());
    }
}

/// What stands where there is no number.
pub const NONE: &str = "–";

/// A number with as many digits as say something, and commas between thousands.
#[must_use]
pub fn number(value: f64) -> String {
    let decimals = match value.abs() {
        x if x >= 99.95 || x == 0.0 => 0,
        x if x >= 9.995 => 1,
        x if x >= 0.9995 => 2,
        x if x >= 0.0995 => 3,
        // Two digits that are not zero.
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

/// A number that may not be there.
#[must_use]
pub fn optional(value: Option<f64>) -> String {
    value.map_or_else(|| NONE.into(), number)
}

/// How many times the peer's, with three decimals, because small differences count; a small share of it with two digits.
#[must_use]
pub fn ratio(value: Option<f64>) -> String {
    value.map_or_else(|| NONE.into(), |value| if value < 0.01 { format!("{value:.1e}") } else { format!("{value:.3}") })
}

/// From the worst run to the best one.
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
