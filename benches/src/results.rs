//! The results page of the documentation, generated from a template and the files of measurements. In `results.in.md`,
//! the line `{{about NAME}}` becomes a sentence about the run of `data/NAME.csv`, and the line `{{NAME}}` becomes its
//! tables and plots. The plots are files in `plots`.

use crate::output::read;
use crate::record::Recording;
use crate::view::{Block, markdown};
use crate::{Error, report};
use std::fs;
use std::path::{Path, PathBuf};

/// Published numbers of other libraries on the same GPU, for rows that were measured without a peer.
const PUBLIC: &str = "data/public-h200.csv";

/// Writes the page, or checks that it is up to date.
///
/// # Errors
/// [`Error::File`], [`Error::Format`]; [`Error::Stale`] names a file that is out of date.
pub fn run(docs: &Path, check: bool) -> Result<(), Error> {
    for (path, text) in generate(docs)? {
        if check {
            if fs::read_to_string(&path).ok().as_deref() != Some(text.as_str()) {
                return Err(Error::Stale { path });
            }
        } else {
            if let Some(folder) = path.parent() {
                fs::create_dir_all(folder).map_err(Error::file("create the folder", folder))?;
            }
            fs::write(&path, text).map_err(Error::file("write", &path))?;
        }
    }
    Ok(())
}

/// Returns the files of the page: paths and texts.
fn generate(docs: &Path) -> Result<Vec<(PathBuf, String)>, Error> {
    let template_path = docs.join("results.in.md");
    let template = read(&template_path)?;
    let public = Recording::read(&docs.join(PUBLIC))?;
    let mut page =
        String::from("<!-- Generated from results.in.md and data/*.csv by `cargo run --release -- results`. -->\n\n");
    let mut files = Vec::new();
    for line in template.lines() {
        let Some(order) = line.strip_prefix("{{").and_then(|rest| rest.strip_suffix("}}")) else {
            page += line;
            page.push('\n');
            continue;
        };
        let (is_about, name) = order.strip_prefix("about ").map_or((false, order), |name| (true, name));
        let path = docs.join("data").join(format!("{name}.csv"));
        if !path.is_file() {
            page += if is_about { "Not measured on this GPU yet.\n" } else { "" };
            continue;
        }
        let recording = beside(Recording::read(&path)?, &public);
        page += &if is_about {
            about(&recording)
        } else {
            let mut blocks = report::blocks(&recording);
            // The template has its own heading here.
            if matches!(blocks.first(), Some(Block::Heading(_))) {
                blocks.remove(0);
            }
            let text = markdown::render(&blocks, |title, svg| {
                let file = format!("plots/{name}-{}.svg", markdown::slug(title));
                files.push((docs.join(&file), svg));
                file
            });
            text.replace("\n## ", "\n### ")
        };
    }
    files.push((docs.join("results.md"), page));
    Ok(files)
}

/// Describes the run: when, on which device and by which command it was measured.
fn about(recording: &Recording) -> String {
    let known = |name: &str| recording.about(name).map(str::to_owned);
    let mut text = format!(
        "Measured on {} on {}",
        known("date").unwrap_or_else(|| "an unknown date".into()),
        known("device").unwrap_or_else(|| "an unknown device".into())
    );
    let details: Vec<String> = ["driver", "clocks"]
        .into_iter()
        .filter_map(|name| known(name).map(|text| if name == "driver" { format!("driver {text}") } else { text }))
        .collect();
    if !details.is_empty() {
        text += &format!(" ({})", details.join("; "));
    }
    if let Some(command) = known("command") {
        text += &format!(" by `{command}`");
    }
    text += ".";
    for name in ["scale", "workload", "on the host", "incomplete"] {
        if let Some(value) = known(name) {
            text += &format!(" {name}: {value}.");
        }
    }
    text + "\n"
}

/// Adds published numbers to the records without a peer.
fn beside(mut recording: Recording, public: &Recording) -> Recording {
    for record in recording.records.iter_mut().filter(|record| record.peer.is_none()) {
        let found = public.records.iter().find(|other| {
            (&other.section, &other.row, &other.parameter, other.n, &other.unit)
                == (&record.section, &record.row, &record.parameter, record.n, &record.unit)
        });
        if let Some(found) = found {
            *record = record.clone().beside(&found.subject, Some(found.value));
        }
    }
    recording
}
