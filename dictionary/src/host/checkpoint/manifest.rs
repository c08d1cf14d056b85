//! The manifest: which state a folder holds, and of which parts it consists.

use super::disk::Disk;
use super::folder::{Folder, MANIFEST, Parts, is_of_part};
use super::history::History;
use crate::Key;
use crate::file::{Format, Source, unique_id, write_section};
use bytemuck::Pod;
use gpu_primitives::Error;
use std::collections::BTreeSet;
use std::io::{Read, Write};

/// The last version of manifests that did not count updates.
const WITHOUT_UPDATES: u32 = 2;

/// What the manifest of a structure says in addition to that of all others: a state of the dictionary.
pub trait Body: Sized {
    /// The type of the keys.
    type Key: Key;
    /// The type of the values.
    type Value: Pod;
    /// The fields as they are read: unchecked.
    type Fields;

    /// The format of the manifest: version 3, or an older one to be read.
    const FORMAT: Format;
    /// What the parts are.
    const PARTS: Parts;

    /// Returns the ids of the parts that the state consists of. An id is random, and names contents that never change.
    fn parts(&self) -> &[u128];

    /// Returns what the manifest says while the first checkpoint of a folder is not finished. It has no parts.
    fn unfinished(&self) -> Self;

    /// Appends the fields to the bytes of a header.
    fn write(&self, bytes: &mut Vec<u8>);

    /// Reads the fields, which must not be relied on yet.
    ///
    /// # Errors
    /// Those of the source.
    fn read(source: &mut Source<impl Read>) -> Result<Self::Fields, Error>;

    /// Checks fields whose checksum was right.
    ///
    /// # Errors
    /// [`Error::InvalidFile`] if they contradict each other.
    fn checked(source: &Source<impl Read>, fields: Self::Fields) -> Result<Self, Error>;
}

/// What a folder says about its dictionary.
#[derive(Debug)]
pub struct Manifest<B> {
    /// The id of the checkpoint.
    pub id: u128,
    /// The id of the dictionary that wrote it.
    pub(super) writer: u128,
    /// The number of updates of the writer before this state.
    pub(super) updates: u64,
    /// Whether a checkpoint was finished. If not, there are no parts.
    pub(super) is_finished: bool,
    /// The state.
    pub body: B,
}

/// Reads an id.
///
/// # Errors
/// Those of the source.
pub fn read_id(source: &mut Source<impl Read>) -> Result<u128, Error> {
    source.bytes().map(u128::from_le_bytes)
}

impl<B: Body> Manifest<B> {
    pub(super) fn new(history: &History, body: B, is_finished: bool) -> Self {
        Self { id: unique_id(), writer: history.writer(), updates: history.updates(), is_finished, body }
    }

    pub(super) fn write(&self, writer: &mut impl Write) -> Result<(), Error> {
        let mut bytes = B::FORMAT.header::<B::Key, B::Value>();
        bytes.extend(self.id.to_le_bytes());
        bytes.extend(self.writer.to_le_bytes());
        bytes.extend(self.updates.to_le_bytes());
        bytes.push(self.is_finished.into());
        self.body.write(&mut bytes);
        write_section(writer, &bytes)
    }

    fn read(reader: &mut impl Read) -> Result<Self, Error> {
        let mut source = Source::new(reader);
        let (id, writer, updates, is_finished, fields) = source.header::<B::Key, B::Value, _>(B::FORMAT, |source| {
            let (id, writer) = (read_id(source)?, read_id(source)?);
            let (updates, [is_finished]) =
                if source.version() <= WITHOUT_UPDATES { (0, [1]) } else { (source.u64()?, source.bytes()?) };
            Ok((id, writer, updates, is_finished, B::read(source)?))
        })?;
        let body = B::checked(&source, fields)?;
        let is_finished = match is_finished {
            0 if body.parts().is_empty() => false,
            1 => true,
            _ => return Err(source.invalid("its header contradicts itself")),
        };
        Ok(Self { id, writer, updates, is_finished, body })
    }

    /// Returns whether both describe the same state.
    pub(super) fn is_same_state(&self, other: &Self) -> bool {
        let bytes = |manifest: &Self| {
            let mut bytes = Vec::new();
            manifest.body.write(&mut bytes);
            bytes
        };
        bytes(self) == bytes(other)
    }

    /// Returns the names of the parts' files.
    pub(super) fn names(&self) -> BTreeSet<String> {
        self.body.parts().iter().map(|&id| B::PARTS.name(id)).collect()
    }

    /// Reads the manifest of a folder, finished or not. Returns `None` if the folder is new: it has no files of a dictionary.
    pub(super) fn find(folder: Folder<'_, impl Disk>) -> Result<Option<Self>, Error> {
        let read = || folder.read(MANIFEST, |reader| Self::read(reader));
        if let Some(manifest) = read()? {
            return Ok(Some(manifest));
        }
        if !folder.names()?.iter().any(|name| is_of_part(name)) {
            return Ok(None);
        }
        // A part is never there before a manifest. But where there is no lock, both may be new.
        read()?.map(Some).ok_or_else(|| folder.lacks(MANIFEST))
    }

    /// Reads the manifest of the last finished checkpoint in a folder, or returns `None` if none was ever finished there. The
    /// caller holds a lock.
    ///
    /// # Errors
    /// - [`Error::Io`].
    /// - [`Error::DamagedFolder`] if the folder has parts, but has lost its manifest.
    /// - [`Error::InvalidFile`] if the manifest is damaged, or that of another structure or of other types.
    pub fn of(folder: Folder<'_, impl Disk>) -> Result<Option<Self>, Error> {
        Ok(Self::find(folder)?.filter(|manifest| manifest.is_finished))
    }
}
