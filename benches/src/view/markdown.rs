//! Rendering as Markdown, with the plots in separate files.

use super::{Block, Table};

/// Renders the blocks as Markdown. `image` takes the title and the SVG of each plot, and returns its path.
pub fn render(blocks: &[Block], mut image: impl FnMut(&str, String) -> String) -> String {
    let parts: Vec<String> = blocks
        .iter()
        .map(|block| match block {
            Block::Heading(title) => format!("## {title}\n"),
            Block::Text(text) => format!("{text}\n"),
            Block::Notice(text) => format!("> {text}\n"),
            Block::Table(table) => render_table(table),
            Block::Plot(plot) => {
                let place = image(&plot.title, plot.to_svg_file());
                format!("![{}]({place})\n", plot.title)
            }
        })
        .collect();
    parts.join("\n")
}

fn render_table(table: &Table) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let rule: Vec<String> =
        (0..table.columns.len()).map(|column| if column < table.words { "---" } else { "---:" }.into()).collect();
    let head = [line(&table.columns), line(&rule)];
    let bold = |row: usize, cells: &[String]| -> Vec<String> {
        let cell = |(column, text): (usize, &String)| {
            if table.is_best(row, column) { format!("**{text}**") } else { text.clone() }
        };
        cells.iter().enumerate().map(cell).collect()
    };
    head.into_iter().chain(table.rows.iter().enumerate().map(|(row, cells)| line(&bold(row, cells)))).collect()
}

/// Converts a title to a file name.
#[must_use]
pub fn slug(title: &str) -> String {
    let mapped: String =
        title.to_lowercase().chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    mapped.split('-').filter(|word| !word.is_empty()).collect::<Vec<_>>().join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_rows_between_bars() {
        let mut table = Table::new(1, ["row", "M/s"]);
        table.best.push(vec![1]);
        table.push(["lookup".into(), "7".into()]);
        let text = render(&[Block::Heading("A".into()), Block::Table(table)], |_, _| String::new());
        assert_eq!(text, "## A\n\n| row | M/s |\n| --- | ---: |\n| lookup | **7** |\n");
        assert_eq!(slug("Insertion: b = 2^19, all r"), "insertion-b-2-19-all-r");
    }
}
