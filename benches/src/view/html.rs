//! Rendering as one self-contained HTML page: no network, no other files.

use super::{Block, Table};

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// Renders the page.
#[must_use]
pub fn render(title: &str, blocks: &[Block]) -> String {
    let mut body = String::new();
    let mut plots_open = false;
    for block in blocks {
        // Consecutive plots are placed side by side where there is space.
        let is_plot = matches!(block, Block::Plot(_));
        if is_plot != plots_open {
            body += if is_plot { "<div class=\"plots\">\n" } else { "</div>\n" };
            plots_open = is_plot;
        }
        body += &match block {
            Block::Heading(title) => format!("<h2>{}</h2>\n", escape(title)),
            Block::Text(text) => format!("<p>{}</p>\n", escape(text)),
            Block::Notice(text) => format!("<p class=\"notice\" role=\"note\">{}</p>\n", escape(text)),
            Block::Table(table) => render_table(table),
            Block::Plot(plot) => {
                format!("<figure>\n<figcaption>{}</figcaption>\n{}</figure>\n", escape(&plot.title), plot.to_svg())
            }
        };
    }
    if plots_open {
        body += "</div>\n";
    }
    let title = escape(title);
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{title}</title>\n\
         <link rel=\"icon\" href=\"data:,\">\n<style>\n{STYLE}{}</style>\n</head>\n<body>\n<main>\n<h1>{title}</h1>\n\
         {body}</main>\n<script>\n{SCRIPT}</script>\n</body>\n</html>\n",
        super::plot::STYLE
    )
}

fn render_table(table: &Table) -> String {
    let cell = |column: usize, text: &str, hint: Option<&String>, is_best: bool| {
        let class = match (column < table.words, is_best) {
            (true, _) => "",
            (false, false) => " class=\"number\"",
            (false, true) => " class=\"number best\"",
        };
        let hint = hint.filter(|hint| column == 0 && !hint.is_empty());
        let hint = hint.map_or_else(String::new, |hint| format!(" title=\"{}\"", escape(hint)));
        // A flag of a change.
        let text = if text == "WORSE" { "<strong class=\"worse\">worse</strong>".into() } else { escape(text) };
        format!("<td{class}{hint}>{text}</td>")
    };
    let head: String = table
        .columns
        .iter()
        .enumerate()
        .map(|(column, name)| {
            let class = if column < table.words { "" } else { " class=\"number\"" };
            format!("<th{class} scope=\"col\"><button type=\"button\">{}</button></th>", escape(name))
        })
        .collect();
    let rows: String = table
        .rows
        .iter()
        .enumerate()
        .map(|(index, row)| {
            let hint = table.hints.get(index);
            let cell = |(column, text): (usize, &String)| cell(column, text, hint, table.is_best(index, column));
            let cells: String = row.iter().enumerate().map(cell).collect();
            format!("<tr>{cells}</tr>\n")
        })
        .collect();
    format!(
        "<div class=\"table\" tabindex=\"0\"><table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}</tbody>\n</table></div>\n"
    )
}

/// Escapes text for HTML.
#[must_use]
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_not_markup() {
        let page = render("a <b>", &[Block::Text("x < y & \"z\"".into())]);
        assert!(page.contains("<h1>a &lt;b&gt;</h1>") && page.contains("<p>x &lt; y &amp; &quot;z&quot;</p>"));
    }
}
