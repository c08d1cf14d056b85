//! Where measurements go: the terminal, a file of them, a folder with a report.

use crate::record::Recording;
use crate::view::{Block, html, markdown, text};
use crate::{Error, Run, report};
use std::fs;
use std::path::{Path, PathBuf};

/// Where measurements go.
#[derive(Clone, Debug, Default)]
pub struct Output {
    /// The command's name, which the files of the folder are called by.
    pub name: &'static str,
    /// What the report is called.
    pub title: &'static str,
    /// A file of the measurements.
    pub csv: Option<PathBuf>,
    /// A folder for the report and the measurements.
    pub folder: Option<PathBuf>,
    /// Whether the terminal gets JSON instead of tables.
    pub json: bool,
}

impl Output {
    /// Sees whether everything can be written, before anything is measured.
    ///
    /// # Errors
    /// [`Error::File`] names what cannot.
    pub fn prepare(&self) -> Result<(), Error> {
        if let Some(folder) = &self.folder {
            fs::create_dir_all(folder).map_err(Error::file("create the folder", folder))?;
            let probe = folder.join(format!(".{}-probe", self.name));
            fs::write(&probe, "").map_err(Error::file("write to the folder", folder))?;
            fs::remove_file(&probe).map_err(Error::file("write to the folder", folder))?;
        }
        if let Some(csv) = &self.csv {
            // What is there stays until there is something new.
            let mut options = fs::OpenOptions::new();
            options.create(true).append(true).open(csv).map_err(Error::file("write", csv))?;
        }
        Ok(())
    }

    /// Writes and prints what was measured, all or what there is of it. Gives back how the run ended.
    ///
    /// # Errors
    /// What the run gave; [`Error::File`].
    pub fn deliver(&self, run: Run) -> Result<(), Error> {
        let Run { mut recording, outcome } = run;
        if let Err(error) = &outcome {
            recording.tell("incomplete", error.to_string());
        }
        let mut written = Vec::new();
        if outcome.is_ok() || !recording.records.is_empty() {
            written = self.write(&recording)?;
            if self.json {
                let json = serde_json::to_string_pretty(&recording);
                println!("{}", json.map_err(|error| Error::Arguments(error.to_string()))?);
            } else {
                let head = recording.about.iter().map(|(name, value)| format!("{name}: {value}\n")).collect();
                println!("{}", text::render(&[vec![Block::Text(head)], report::blocks(&recording)].concat()));
            }
        }
        if outcome.is_err() {
            eprintln!("{} numbers were measured before it stopped", recording.records.len());
        }
        for path in written {
            // Beside JSON this would not be JSON.
            if self.json { eprintln!("{}", path.display()) } else { println!("{}", path.display()) }
        }
        outcome
    }

    /// Writes all files and says where they are.
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
            let blocks = [report::about(recording), report::blocks(recording)].concat();
            put(folder.join(format!("{}.csv", self.name)), &csv)?;
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
