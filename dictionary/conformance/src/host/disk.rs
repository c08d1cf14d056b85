//! A folder in memory that forgets what was not made durable, and whose operations can fail.

use super::model::Random;
use gpu_dictionary::checkpoint::Disk;
use std::collections::BTreeMap;
use std::io::{self, Cursor, ErrorKind, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What happens at an operation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Failure {
    /// The process is killed: this operation and all later ones do nothing.
    Killed,
    /// This operation fails, later ones do not.
    DiskFull,
    /// This operation and all later ones fail.
    ReadOnly,
}

#[derive(Clone, Debug, Default)]
struct Contents {
    now: Vec<u8>,
    durable: Vec<u8>,
}

/// A change of the names in the folder.
#[derive(Clone, Debug)]
enum Change {
    Add { name: String, file: usize },
    Rename { from: String, to: String, file: usize },
    Remove { name: String },
}

impl Change {
    fn apply(&self, names: &mut BTreeMap<String, usize>) {
        match self {
            Self::Add { name, file } => _ = names.insert(name.clone(), *file),
            Self::Remove { name } => _ = names.remove(name),
            Self::Rename { from, to, file } => {
                if names.get(from) == Some(file) {
                    names.remove(from);
                }
                names.insert(to.clone(), *file);
            }
        }
    }
}

#[derive(Clone, Debug, Default)]
struct State {
    files: Vec<Contents>,
    names: BTreeMap<String, usize>,
    durable_names: BTreeMap<String, usize>,
    /// The changes of names since they were made durable.
    pending: Vec<Change>,
    is_folder_durable: bool,
    is_locked: bool,
    /// The operations that changed something, or tried to.
    operations: usize,
    failure: Option<(usize, Failure)>,
    /// Bytes written, and how often something was made durable.
    written: usize,
    syncs: usize,
    /// The sync that does nothing, although it says that it did.
    omitted_sync: Option<usize>,
}

impl State {
    /// Counts an operation, which may fail.
    fn operate(&mut self) -> io::Result<()> {
        self.operations += 1;
        let now = self.operations - 1;
        match self.failure {
            Some((at, Failure::DiskFull)) if at == now => Err(ErrorKind::StorageFull.into()),
            Some((at, Failure::ReadOnly)) if at <= now => Err(ErrorKind::ReadOnlyFilesystem.into()),
            Some((at, Failure::Killed)) if at <= now => Err(io::Error::other("the process was killed")),
            _ => Ok(()),
        }
    }

    /// Counts a sync. Returns whether it is to be done.
    fn sync(&mut self) -> io::Result<bool> {
        self.operate()?;
        self.syncs += 1;
        Ok(self.omitted_sync != Some(self.syncs - 1))
    }

    fn change(&mut self, change: Change) {
        change.apply(&mut self.names);
        self.pending.push(change);
    }

    fn file(&self, name: &str) -> io::Result<usize> {
        self.names.get(name).copied().ok_or_else(|| ErrorKind::NotFound.into())
    }
}

/// A machine with one folder. Clones are the same machine.
#[derive(Clone, Debug, Default)]
pub struct Machine(Arc<Mutex<State>>);

/// A file being written.
#[derive(Debug)]
pub struct Writer {
    machine: Machine,
    file: usize,
}

impl Write for Writer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut state = self.machine.state();
        let operated = state.operate();
        // A write that fails may have been done in part.
        let done = if operated.is_ok() { bytes.len() } else { bytes.len() / 2 };
        state.written += done;
        state.files[self.file].now.extend(&bytes[..done]);
        operated.map(|()| done)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Unlocks the folder when it is dropped.
#[derive(Debug)]
pub struct Lock(Machine);

impl Drop for Lock {
    fn drop(&mut self) {
        self.0.state().is_locked = false;
    }
}

impl Machine {
    fn state(&self) -> MutexGuard<'_, State> {
        // A rank that dies in a test panics.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets an operation from now on fail, counted from 0, or none.
    pub fn fail(&self, failure: Option<(usize, Failure)>) {
        let mut state = self.state();
        state.failure = failure.map(|(after, failure)| (state.operations + after, failure));
    }

    /// Lets a sync from now on do nothing, counted from 0.
    pub fn omit_sync(&self, after: usize) {
        let mut state = self.state();
        state.omitted_sync = Some(state.syncs + after);
    }

    /// Returns how many operations there were.
    #[must_use]
    pub fn operations(&self) -> usize {
        self.state().operations
    }

    /// Returns how many bytes were written, and how often something was made durable.
    #[must_use]
    pub fn cost(&self) -> (usize, usize) {
        let state = self.state();
        (state.written, state.syncs)
    }

    /// Returns the names of all files.
    #[must_use]
    pub fn all_names(&self) -> Vec<String> {
        self.state().names.keys().cloned().collect()
    }

    /// Returns a copy of the machine, as a copy of the folder would be.
    #[must_use]
    pub fn copy(&self) -> Self {
        Self(Arc::new(Mutex::new(self.state().clone())))
    }

    /// Changes the contents of a file, durably.
    pub fn alter(&self, name: &str, alter: impl FnOnce(&mut Vec<u8>)) {
        let mut state = self.state();
        let file = state.names[name];
        let contents = &mut state.files[file];
        alter(&mut contents.now);
        contents.durable = contents.now.clone();
    }

    /// Adds a file, durably.
    pub fn put(&self, name: &str, contents: &[u8]) {
        let mut state = self.state();
        let file = state.files.len();
        state.files.push(Contents::default());
        state.names.insert(name.to_owned(), file);
        state.durable_names.insert(name.to_owned(), file);
        drop(state);
        self.alter(name, |bytes| bytes.extend(contents));
    }

    /// Removes a file, durably.
    pub fn take(&self, name: &str) {
        let mut state = self.state();
        state.names.remove(name);
        state.durable_names.remove(name);
    }

    /// Returns the machine after a loss of power. What was durable is there. Of all else, anything may be there:
    /// every change of a name or none, and files that are empty, torn, or full of zeros.
    #[must_use]
    pub fn after_power_loss(&self, random: &mut Random) -> Self {
        let old = self.state();
        let mut state = State { is_folder_durable: old.is_folder_durable, ..State::default() };
        if !old.is_folder_durable && random.below(3) == 0 {
            return Self(Arc::new(Mutex::new(state)));
        }
        // Of eight crashes, one keeps all names and one only the durable ones.
        let share = random.below(8);
        state.durable_names.clone_from(&old.durable_names);
        for change in &old.pending {
            if random.below(7) < share {
                change.apply(&mut state.durable_names);
            }
        }
        state.names.clone_from(&state.durable_names);
        state.files = old.files.iter().map(|contents| survivor(contents, random)).collect();
        Self(Arc::new(Mutex::new(state)))
    }
}

/// Returns what is left of a file after a loss of power.
fn survivor(contents: &Contents, random: &mut Random) -> Contents {
    let Contents { now, durable } = contents;
    let mut left = match random.below(4) {
        _ if now == durable => now.clone(),
        0 => durable.clone(),
        1 => now.clone(),
        2 => now[..random.below(now.len() + 1)].to_vec(),
        _ => {
            let mut torn = now.clone();
            let (from, to) = (random.below(now.len() + 1), random.below(now.len() + 1));
            torn[from.min(to)..from.max(to)].fill(0);
            torn
        }
    };
    left.shrink_to_fit();
    Contents { now: left.clone(), durable: left }
}

impl Disk for Machine {
    type Writer = Writer;
    type Reader = Cursor<Vec<u8>>;
    type Lock = Lock;

    fn path(&self) -> &Path {
        Path::new("simulated")
    }

    fn lock(&self) -> io::Result<Lock> {
        let mut state = self.state();
        state.operate()?;
        if std::mem::replace(&mut state.is_locked, true) {
            return Err(ErrorKind::WouldBlock.into());
        }
        Ok(Lock(self.clone()))
    }

    fn lock_shared(&self) -> io::Result<Option<Lock>> {
        Ok(None)
    }

    fn names(&self) -> io::Result<Vec<String>> {
        Ok(self.all_names())
    }

    fn open(&self, name: &str) -> io::Result<Self::Reader> {
        let state = self.state();
        Ok(Cursor::new(state.files[state.file(name)?].now.clone()))
    }

    fn create(&self, name: &str) -> io::Result<Writer> {
        let mut state = self.state();
        state.operate()?;
        let file = state.file(name).unwrap_or_else(|_| {
            state.files.push(Contents::default());
            let file = state.files.len() - 1;
            state.change(Change::Add { name: name.to_owned(), file });
            file
        });
        state.files[file].now.clear();
        Ok(Writer { machine: self.clone(), file })
    }

    fn sync(&self, writer: &mut Writer) -> io::Result<()> {
        let mut state = self.state();
        if state.sync()? {
            let contents = &mut state.files[writer.file];
            contents.durable.clone_from(&contents.now);
        }
        Ok(())
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut state = self.state();
        state.operate()?;
        let file = state.file(from)?;
        state.change(Change::Rename { from: from.to_owned(), to: to.to_owned(), file });
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut state = self.state();
        state.operate()?;
        state.file(name)?;
        state.change(Change::Remove { name: name.to_owned() });
        Ok(())
    }

    fn sync_folder(&self) -> io::Result<()> {
        let mut state = self.state();
        if state.sync()? {
            state.durable_names = state.names.clone();
            state.pending.clear();
        }
        Ok(())
    }

    fn sync_parents(&self) -> io::Result<()> {
        let mut state = self.state();
        let is_done = state.sync()?;
        state.is_folder_durable |= is_done;
        Ok(())
    }
}
