//! Rendering as text for a terminal.

use super::{Block, Table};

/// Renders the blocks as text, without plots and without headings that have only plots.
#[must_use]
pub fn render(blocks: &[Block]) -> String {
    let shown: Vec<&Block> = blocks.iter().filter(|block| !matches!(block, Block::Plot(_))).collect();
    let is_heading = |index: usize| shown.get(index).is_none_or(|block| matches!(block, Block::Heading(_)));
    let parts: Vec<String> = shown
        .iter()
        .enumerate()
        .filter(|(index, _)| !(is_heading(*index) && is_heading(index + 1)))
        .filter_map(|(_, block)| match block {
            Block::Heading(title) => Some(format!("{title}\n{}\n", "-".repeat(title.chars().count()))),
            Block::Text(text) | Block::Notice(text) => Some(format!("{text}\n")),
            Block::Table(table) => Some(render_table(table)),
            Block::Plot(_) => None,
        })
        .collect();
    parts.join("\n")
}

fn render_table(table: &Table) -> String {
    let widths: Vec<usize> = (0..table.columns.len())
        .map(|column| {
            let cells = table.rows.iter().map(|row| &row[column]);
            cells.chain([&table.columns[column]]).map(|cell| cell.chars().count()).max().unwrap_or(0)
        })
        .collect();
    let line = |row: &[String]| {
        let cells: Vec<String> = row
            .iter()
            .zip(&widths)
            .enumerate()
            .map(
                |(column, (cell, &width))| {
                    if column < table.words { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
                },
            )
            .collect();
        format!("{}\n", cells.join("  ").trim_end())
    };
    std::iter::once(&table.columns).chain(&table.rows).map(|row| line(row)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_to_the_left_and_numbers_to_the_right() {
        let mut table = Table::new(1, ["row", "M/s"]);
        table.push(["lookup".into(), "7".into()]);
        assert_eq!(render(&[Block::Table(table)]), "row     M/s\nlookup    7\n");
    }
}
