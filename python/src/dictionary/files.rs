//! Files: a line that says what is in them, and writes that happen as a whole or not at all.

use super::any::Kind;
use crate::dtype::DType;
use crate::error::{Kind as ExceptionKind, exception};
use gpu_primitives::Error;
use pyo3::prelude::*;
use std::fs::File;
use std::io::{BufRead, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// The types of a dictionary. Without a value, it is a set; rows have `width` numbers, and 0 is a number alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Types {
    pub kind: Kind,
    pub key: DType,
    pub value: Option<DType>,
    pub width: usize,
}

const MAGIC: &str = "gpu-primitives dictionary 1";

impl Types {
    pub fn line(&self) -> String {
        let (kind, key, width) = (self.kind.name(), self.key.name(), self.width);
        let value = self.value.map_or("none", DType::name);
        format!("{MAGIC} {kind} {key} {value} {width}\n")
    }

    pub fn read(from: &mut dyn BufRead, path: &Path) -> PyResult<Self> {
        let mut line = Vec::new();
        let limit = 128;
        let read = std::io::Read::take(from, limit).read_until(b'\n', &mut line);
        let invalid = || exception(ExceptionKind::File, format!("{} is no dictionary of this package", path.display()));
        read.map_err(|error| exception(ExceptionKind::File, format!("{}: {error}", path.display())))?;
        let line = String::from_utf8(line).map_err(|_| invalid())?;
        let words = line.strip_suffix('\n').and_then(|line| line.strip_prefix(MAGIC)).ok_or_else(invalid)?;
        let [kind, key, value, width] = words.split_whitespace().collect::<Vec<_>>()[..] else { return Err(invalid()) };
        Ok(Self {
            kind: Kind::parse(kind).ok_or_else(invalid)?,
            key: DType::parse(key)?,
            value: if value == "none" { None } else { Some(DType::parse(value)?) },
            width: width.parse().map_err(|_| invalid())?,
        })
    }
}

/// Creates a file next to `path`, with a name that nobody else has: several threads may replace one file.
fn create_beside(path: &Path) -> std::io::Result<(PathBuf, File)> {
    static MADE: AtomicU64 = AtomicU64::new(0);
    loop {
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{}.{}.new", std::process::id(), MADE.fetch_add(1, Ordering::Relaxed)));
        let other = path.with_file_name(name);
        match File::create_new(&other) {
            // An earlier process with this number has left it.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            created => return created.map(|file| (other, file)),
        }
    }
}

/// Writes a file under another name, and renames it when all of it is on the disk.
pub fn replace(path: &Path, write: impl FnOnce(&mut dyn Write) -> Result<(), Error>) -> Result<(), Error> {
    let (other, file) = create_beside(path)?;
    let written = (|| {
        let mut writer = BufWriter::new(file);
        write(&mut writer)?;
        writer.flush()?;
        writer.get_ref().sync_all()?;
        std::fs::rename(&other, path)?;
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        File::open(folder)?.sync_all()?;
        Ok(())
    })();
    if written.is_err() {
        let _ = std::fs::remove_file(&other);
    }
    written
}
