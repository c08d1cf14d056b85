//! The outputs of a command: the terminal, a CSV file, and a folder with a report.

use crate::record::Recording;
use crate::view::{Block, html, markdown, text};
use crate::{Error, Run, baseline, report};
use serde::Serialize;
use std::fs;
use std::path::{Path, PathBuf};

/// The outputs of a command.
#[derive(Clone, Debug, Default)]
pub struct Output {
    /// The command's name, and the base name of the files in the folder.
    pub name: &'static str,
    /// The title of the report.
    pub title: &'static str,
    /// A CSV file for the measurements.
    pub csv: Option<PathBuf>,
    /// A folder for the report and the measurements.
    pub folder: Option<PathBuf>,
    /// Whether to print JSON instead of tables.
    pub json: bool,
    /// An earlier run to compare with.
    pub baseline: Option<Recording>,
}

impl Output {
    /// Checks whether all outputs can be written. Call it before measuring.
    ///
    /// # Errors
    /// [`Error::File`] names the file or folder that cannot be written.
    pub fn prepare(&self) -> Result<(), Error> {
        if let Some(folder) = &self.folder {
            fs::create_dir_all(folder).map_err(Error::file("create the folder", folder))?;
            let probe = folder.join(format!(".{}-probe", self.name));
            fs::write(&probe, "").map_err(Error::file("write to the folder", folder))?;
            fs::remove_file(&probe).map_err(Error::file("write to the folder", folder))?;
        }
        if let Some(csv) = &self.csv {
            // Keeps the old content until there are new measurements.
            let mut options = fs::OpenOptions::new();
            options.create(true).append(true).open(csv).map_err(Error::file("write", csv))?;
        }
        Ok(())
    }

    /// Writes and prints the measurements, complete or not. Returns the outcome of the run.
    ///
    /// # Errors
    /// The error of the run; [`Error::File`].
    pub fn deliver(&self, run: Run) -> Result<(), Error> {
        let Run { mut recording, outcome } = run;
        if let Err(error) = &outcome {
            recording.tell("incomplete", error.to_string());
        }
        let mut written = Vec::new();
        if outcome.is_ok() || !recording.records.is_empty() {
            written = self.write(&recording)?;
            if self.json {
                println!("{}", self.to_json(&recording)?);
            } else {
                let head = recording.about.iter().map(|(name, value)| format!("{name}: {value}\n")).collect();
                let changes = self.baseline.as_ref().map(|before| baseline::blocks(before, &recording));
                let blocks =
                    [vec![Block::Text(head)], report::blocks(&recording), changes.unwrap_or_default()].concat();
                println!("{}", text::render(&blocks));
            }
        }
        if outcome.is_err() {
            eprintln!("{} numbers were measured before the run stopped", recording.records.len());
        }
        for path in written {
            // The standard output must be JSON only.
            if self.json { eprintln!("{}", path.display()) } else { println!("{}", path.display()) }
        }
        outcome
    }

    /// Returns the measurements as JSON and, if there is an earlier run, what changed.
    fn to_json(&self, recording: &Recording) -> Result<String, Error> {
        /// The measurements, and what changed.
        #[derive(Serialize)]
        struct Json<'a> {
            #[serde(flatten)]
            recording: &'a Recording,
            #[serde(flatten)]
            compared: Option<baseline::Comparison<'a>>,
        }
        let compared = self.baseline.as_ref().map(|before| baseline::compare(before, recording));
        serde_json::to_string_pretty(&Json { recording, compared }).map_err(|error| Error::Arguments(error.to_string()))
    }

    /// Writes all files and returns their paths.
    fn write(&self, recording: &Recording) -> Result<Vec<PathBuf>, Error> {
        let csv = recording.to_csv().map_err(|error| Error::Arguments(error.to_string()))?;
        let mut written = Vec::new();
        let mut put = |path: PathBuf, text: &str| -> Result<(), Error> {
            fs::write(&path, text).map_err(Error::file("write", &path))?;
            written.push(fs::canonicalize(&path).unwrap_or(path));
            Ok(())
        };
        if let Some(path) = &self.csv {
            put(path.clone(), &csv)?;
        }
        if let Some(folder) = &self.folder {
            let blocks = report::page(recording, self.baseline.as_ref());
            put(folder.join(format!("{}.csv", self.name)), &csv)?;
            put(folder.join(format!("{}.json", self.name)), &self.to_json(recording)?)?;
            let mut images = Vec::new();
            let page = markdown::render(&blocks, |title, svg| {
                let file = format!("{}-{}.svg", self.name, markdown::slug(title));
                images.push((file.clone(), svg));
                file
            });
            put(folder.join(format!("{}.md", self.name)), &format!("# {}\n\n{page}", self.title))?;
            for (file, svg) in images {
                let path = folder.join(file);
                fs::write(&path, svg).map_err(Error::file("write", &path))?;
            }
            put(folder.join(format!("{}.html", self.name)), &html::render(self.title, &blocks))?;
        }
        Ok(written)
    }
}

/// Reads a file.
///
/// # Errors
/// [`Error::File`].
pub fn read(path: &Path) -> Result<String, Error> {
    fs::read_to_string(path).map_err(Error::file("read", path))
}
