//! The file operations of a checkpoint.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

/// The name of the file that is locked. It stays in the folder: if it were deleted, two processes could lock different
/// files of the same name.
const LOCK: &str = "lock";

/// A folder, and the operations on the files in it.
///
/// [`OsDisk`] is a folder of the operating system. Others are for tests, in which each operation fails in turn, or for storage of
/// another kind. Checkpoints rely on what the methods state.
pub trait Disk {
    /// A file being written.
    type Writer: Write;
    /// A file being read.
    type Reader: Read;
    /// Holds a lock until it is dropped.
    type Lock;

    /// Returns the path of the folder, for messages.
    fn path(&self) -> &Path;

    /// Locks the folder for writing. Creates it if it is missing. Does not wait: fails if someone else has a lock.
    fn lock(&self) -> io::Result<Self::Lock>;

    /// Locks the folder for reading. Waits for a writer. Returns `None` if there is nothing to lock, as in a
    /// copy.
    fn lock_shared(&self) -> io::Result<Option<Self::Lock>>;

    /// Returns the names of all files; none if the folder is missing.
    fn names(&self) -> io::Result<Vec<String>>;

    /// Opens a file for reading.
    fn open(&self, name: &str) -> io::Result<Self::Reader>;

    /// Creates a file, or empties an existing one.
    fn create(&self, name: &str) -> io::Result<Self::Writer>;

    /// Makes the contents of a file durable.
    fn sync(&self, file: &mut Self::Writer) -> io::Result<()>;

    /// Renames a file. Replaces a file of the new name, atomically.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a file.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Makes the names in the folder durable.
    fn sync_folder(&self) -> io::Result<()>;

    /// Makes the folder itself durable, with all parents that may be new.
    fn sync_parents(&self) -> io::Result<()>;
}

/// A folder of the operating system.
///
/// ```
/// use gpu_dictionary::checkpoint::{Disk, OsDisk};
///
/// let missing = OsDisk::new(std::env::temp_dir().join("no such folder"));
/// assert!(missing.names()?.is_empty());
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct OsDisk {
    path: PathBuf,
}

impl OsDisk {
    /// Names a folder, which may not exist yet.
    pub fn new(path: impl AsRef<Path>) -> Self {
        Self { path: path.as_ref().to_owned() }
    }
}

/// Makes the names in a folder durable.
#[cfg(unix)]
fn sync_names(path: &Path) -> io::Result<()> {
    // The parent of a relative path with one component is the empty path.
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    File::open(path)?.sync_all()
}

/// Does nothing: only Unix lets programs open folders. Elsewhere the file system has to keep the order of renames.
#[cfg(not(unix))]
fn sync_names(_: &Path) -> io::Result<()> {
    Ok(())
}

/// A file that is locked as long as this lives.
#[derive(Debug)]
pub struct FileLock(File);

impl Drop for FileLock {
    fn drop(&mut self) {
        // Closing the file is not enough: a process that another thread is just starting has inherited it, and with it the
        // lock, until it runs its program.
        let _ = self.0.unlock();
    }
}

impl Disk for OsDisk {
    type Writer = File;
    type Reader = File;
    type Lock = FileLock;

    fn path(&self) -> &Path {
        &self.path
    }

    fn lock(&self) -> io::Result<FileLock> {
        fs::create_dir_all(&self.path)?;
        let file = OpenOptions::new().write(true).create(true).truncate(false).open(self.path.join(LOCK))?;
        match file.try_lock() {
            Ok(()) => Ok(FileLock(file)),
            Err(TryLockError::Error(error)) => Err(error),
            Err(TryLockError::WouldBlock) => Err(ErrorKind::WouldBlock.into()),
        }
    }

    fn lock_shared(&self) -> io::Result<Option<FileLock>> {
        match File::open(self.path.join(LOCK)) {
            Ok(file) => match file.lock_shared() {
                // Without locks no one can write here.
                Err(error) if error.kind() == ErrorKind::Unsupported => Ok(None),
                locked => locked.map(|()| Some(FileLock(file))),
            },
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn names(&self) -> io::Result<Vec<String>> {
        let entries = match fs::read_dir(&self.path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        // Names that are not Unicode are not ours.
        let names = entries.map(|entry| Ok(entry?.file_name().into_string().ok()));
        Ok(names.collect::<io::Result<Vec<_>>>()?.into_iter().flatten().collect())
    }

    fn open(&self, name: &str) -> io::Result<File> {
        File::open(self.path.join(name))
    }

    fn create(&self, name: &str) -> io::Result<File> {
        File::create(self.path.join(name))
    }

    fn sync(&self, file: &mut File) -> io::Result<()> {
        file.sync_all()
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.path.join(from), self.path.join(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.path.join(name))
    }

    fn sync_folder(&self) -> io::Result<()> {
        sync_names(&self.path)
    }

    fn sync_parents(&self) -> io::Result<()> {
        for parent in self.path.ancestors().skip(1) {
            match sync_names(parent) {
                // We can read the folders that we created, so this one is not new.
                Err(error) if error.kind() == ErrorKind::PermissionDenied => {}
                synced => synced?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A lock ends with its owner, although a process that was started meanwhile has inherited the file.
    #[test]
    fn locks_are_not_inherited() {
        let path = std::env::temp_dir().join(format!("gpu-dictionary-locks-{}", std::process::id()));
        let disk = OsDisk::new(&path);
        let lock = disk.lock().unwrap();
        let inherited = lock.0.try_clone().unwrap();
        assert_eq!(disk.lock().unwrap_err().kind(), ErrorKind::WouldBlock);
        drop(lock);
        drop(disk.lock().unwrap());
        let shared = disk.lock_shared().unwrap().unwrap();
        let also_inherited = shared.0.try_clone().unwrap();
        drop(shared);
        drop(disk.lock().unwrap());
        drop((inherited, also_inherited));
        fs::remove_dir_all(&path).unwrap();
    }
}
