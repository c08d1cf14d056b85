//! A folder with a manifest, which names the files that count. All other files of ours are garbage.

use super::disk::Disk;
use gpu_primitives::Error;
use std::collections::BTreeSet;
use std::io::{self, BufReader, BufWriter, ErrorKind, Read, Write};
use std::path::Path;

/// The name of the manifest.
pub const MANIFEST: &str = "manifest";
/// The end of the names of files that are not complete yet.
const TEMPORARY: &str = ".tmp";

/// What the parts of a checkpoint are. It is in the names of their files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parts {
    /// Levels of an LSM or of a multimap: `level-ID`.
    Levels,
    /// Whole dictionaries or shards, as they are saved: `part-ID`.
    Files,
}

impl Parts {
    const ALL: [Self; 2] = [Self::Levels, Self::Files];

    const fn prefix(self) -> &'static str {
        match self {
            Self::Levels => "level-",
            Self::Files => "part-",
        }
    }

    /// Returns the name of the file of the part with this id.
    #[must_use]
    pub fn name(self, id: u128) -> String {
        format!("{}{id:032x}", self.prefix())
    }
}

fn is_part_name(name: &str) -> bool {
    let digits = Parts::ALL.iter().find_map(|parts| name.strip_prefix(parts.prefix())).unwrap_or_default();
    digits.len() == 32 && digits.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'))
}

/// Returns whether a file holds a part of a checkpoint, complete or not.
pub fn is_of_part(name: &str) -> bool {
    is_part_name(name.strip_suffix(TEMPORARY).unwrap_or(name))
}

/// Returns whether a file may be removed if the manifest does not name it. Files of others may not.
fn is_collectable(name: &str) -> bool {
    is_of_part(name) || name.strip_suffix(TEMPORARY) == Some(MANIFEST)
}

/// A folder of files that are never changed, only added and removed.
#[derive(Debug)]
pub struct Folder<'a, D> {
    disk: &'a D,
}

impl<D> Clone for Folder<'_, D> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<D> Copy for Folder<'_, D> {}

/// Adds the path of a file to an error, and what to do about it if its contents are wrong.
fn explain(path: &Path, error: Error) -> Error {
    let path = path.display();
    match error {
        Error::InvalidFile { what, at } => Error::InvalidFile {
            what: format!("{path}: {what}; restore the folder from a copy, or use another one"),
            at,
        },
        Error::Io(error) => Error::Io(io::Error::new(error.kind(), format!("{path}: {error}"))),
        error => error,
    }
}

impl<'a, D: Disk> Folder<'a, D> {
    /// Names a folder, which may not exist yet.
    pub fn new(disk: &'a D) -> Self {
        Self { disk }
    }

    /// Returns the path of the folder, for messages.
    pub fn path(&self) -> &'a Path {
        self.disk.path()
    }

    /// Returns the error for a file that must be there, and is not.
    #[must_use]
    pub fn lacks(&self, name: &str) -> Error {
        Error::DamagedFolder { folder: self.path().to_owned(), missing: name.to_owned() }
    }

    /// Returns the error for a folder in which no checkpoint was ever finished.
    #[must_use]
    pub fn without_checkpoint(&self) -> Error {
        let what = "there is no finished checkpoint in this folder: check the path, or start with an empty dictionary";
        self.error(ErrorKind::NotFound, what)
    }

    /// Returns an error that concerns the whole folder.
    #[must_use]
    pub fn error(&self, kind: ErrorKind, what: &str) -> Error {
        Error::Io(io::Error::new(kind, format!("{}: {what}", self.disk.path().display())))
    }

    /// Returns the error for a file whose contents are wrong as a whole.
    #[must_use]
    pub fn invalid(&self, name: &str, what: String) -> Error {
        explain(&self.disk.path().join(name), Error::InvalidFile { what, at: 0 })
    }

    /// Adds the path of the folder to an error.
    fn explain(&self, error: io::Error) -> Error {
        explain(self.disk.path(), error.into())
    }

    /// Locks the folder for writing. Creates it if it is missing.
    ///
    /// # Errors
    /// [`Error::Io`], of kind [`WouldBlock`](ErrorKind::WouldBlock) if someone else has a lock.
    pub fn lock(&self) -> Result<D::Lock, Error> {
        self.disk.lock().map_err(|error| match error.kind() {
            ErrorKind::WouldBlock => {
                self.error(ErrorKind::WouldBlock, "someone else writes or reads this folder: try again when it is free")
            }
            _ => self.explain(error),
        })
    }

    /// Locks the folder for reading. Waits for a writer. Returns `None` if there is nothing to lock, as in a copy.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn lock_shared(&self) -> Result<Option<D::Lock>, Error> {
        self.disk.lock_shared().map_err(|error| self.explain(error))
    }

    /// Reads a file to its end, or returns `None` if there is none of that name.
    ///
    /// # Errors
    /// [`Error::Io`], those of `read`, and [`Error::InvalidFile`] if `read` does not reach the end. They name the file.
    pub fn read<T>(
        &self,
        name: &str,
        read: impl FnOnce(&mut BufReader<D::Reader>) -> Result<T, Error>,
    ) -> Result<Option<T>, Error> {
        let read_all = || {
            let mut reader = match self.disk.open(name) {
                Ok(file) => BufReader::new(file),
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
                Err(error) => return Err(error.into()),
            };
            let contents = read(&mut reader)?;
            match reader.read(&mut [0])? {
                0 => Ok(Some(contents)),
                _ => Err(Error::InvalidFile { what: "it is longer than its header says".to_owned(), at: 0 }),
            }
        };
        read_all().map_err(|error| explain(&self.disk.path().join(name), error))
    }

    /// Writes a file under a temporary name, makes it durable and gives it its name, which is durable after the next
    /// [`sync`](Self::sync). A file of that name is replaced atomically.
    ///
    /// # Errors
    /// [`Error::Io`], and those of `write`. They name the file. After an error there is no new file of that name.
    pub fn publish(
        &self,
        name: &str,
        write: impl FnOnce(&mut BufWriter<D::Writer>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let temporary = format!("{name}{TEMPORARY}");
        let publish = || {
            let mut writer = BufWriter::new(self.disk.create(&temporary)?);
            write(&mut writer)?;
            writer.flush()?;
            self.disk.sync(writer.get_mut())?;
            drop(writer);
            Ok(self.disk.rename(&temporary, name)?)
        };
        publish().map_err(|error| {
            // The disk may be full. If this fails, the next checkpoint removes the file.
            let _ = self.disk.remove(&temporary);
            explain(&self.disk.path().join(name), error)
        })
    }

    /// Makes the names of all files durable.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn sync(&self) -> Result<(), Error> {
        self.disk.sync_folder().map_err(|error| self.explain(error))
    }

    /// Makes the folder itself durable.
    pub(super) fn sync_parents(&self) -> Result<(), Error> {
        self.disk.sync_parents().map_err(|error| self.explain(error))
    }

    /// Returns the names of all files; none if the folder is missing.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn names(&self) -> Result<BTreeSet<String>, Error> {
        Ok(self.disk.names().map_err(|error| self.explain(error))?.into_iter().collect())
    }

    /// Removes the files of ours that are not used. The manifest that does not name them must be durable.
    ///
    /// Garbage does no harm, so this never fails. The next checkpoint tries again.
    pub fn collect<'n>(&self, names: impl Iterator<Item = &'n String>, used: &BTreeSet<String>) {
        for name in garbage(names, used) {
            let _ = self.disk.remove(name);
        }
    }
}

/// Returns the names of the files of ours that are not used.
pub fn garbage<'a>(
    names: impl Iterator<Item = &'a String>,
    used: &BTreeSet<String>,
) -> impl Iterator<Item = &'a String> {
    names.filter(|name| is_collectable(name) && !used.contains(*name))
}

#[cfg(test)]
mod tests {
    use super::{Parts, is_collectable};

    #[test]
    fn only_our_own_files_are_collected() {
        let level = Parts::Levels.name(0xabc);
        assert_eq!(level, "level-00000000000000000000000000000abc");
        assert!(is_collectable(&Parts::Files.name(u128::MAX)) && !is_collectable("part-1"));
        for name in [&level, &format!("{level}.tmp"), "manifest.tmp"] {
            assert!(is_collectable(name), "{name}");
        }
        let upper = level.to_uppercase();
        let (short, long) = (&level[..level.len() - 1], format!("{level}0"));
        for name in
            ["manifest", "lock", "", ".tmp", "level-", "level-.tmp", "lock.tmp", "manifest.tmp.tmp", "notes.tmp"]
        {
            assert!(!is_collectable(name), "{name}");
        }
        for name in [&upper, short, &long, &format!("{level}.bak"), &format!("x{level}"), &format!("{level}.tmp.tmp")] {
            assert!(!is_collectable(name), "{name}");
        }
        assert!(!is_collectable(&format!("level-{}", "g".repeat(32))));
    }
}
