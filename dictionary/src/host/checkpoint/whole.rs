//! Checkpoints that are rewritten as a whole: one part, which is what the dictionary saves.

use super::disk::Disk;
use super::folder::{Folder, Parts};
use super::history::History;
use super::manifest::{Body, Manifest, read_id};
use super::writing::{Writing, read_finished};
use crate::file::{Format, Source, unique_id, write_section};
use crate::{Dictionary, Durable, Key};
use bytemuck::Pod;
use core::fmt::{self, Debug, Formatter};
use core::marker::PhantomData;
use gpu_primitives::{Error, Stream};
use std::io::{Read, Write};

const PART_FORMAT: Format = Format { magic: *b"gpu-prt\n", version: 2 };

/// A state that consists of one part, or of none if no checkpoint is finished.
struct Whole<K, V> {
    part: Vec<u128>,
    types: PhantomData<fn() -> (K, V)>,
}

impl<K, V> Debug for Whole<K, V> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Whole").field(&self.part).finish()
    }
}

impl<K: Key, V: Pod> Whole<K, V> {
    fn of(part: Vec<u128>) -> Self {
        Self { part, types: PhantomData }
    }
}

impl<K: Key, V: Pod> Body for Whole<K, V> {
    type Key = K;
    type Value = V;
    type Fields = Vec<u128>;

    const FORMAT: Format = Format { magic: *b"gpu-one\n", version: 3 };
    const PARTS: Parts = Parts::Files;

    fn parts(&self) -> &[u128] {
        &self.part
    }

    fn unfinished(&self) -> Self {
        Self::of(Vec::new())
    }

    fn write(&self, bytes: &mut Vec<u8>) {
        bytes.push(self.part.len() as u8);
        bytes.extend(self.part.iter().flat_map(|id| id.to_le_bytes()));
    }

    fn read(source: &mut Source<impl Read>) -> Result<Vec<u128>, Error> {
        let [len] = source.bytes()?;
        (0..len).map(|_| read_id(source)).collect()
    }

    fn checked(source: &Source<impl Read>, fields: Vec<u128>) -> Result<Self, Error> {
        match fields.len() {
            0 | 1 => Ok(Self::of(fields)),
            _ => Err(source.invalid("its header contradicts itself")),
        }
    }
}

/// Writes a part: a header with its id, and a dictionary after it.
///
/// # Errors
/// [`Error::Io`], and those of `save`.
pub fn write_part<K: Key, V: Pod>(
    mut writer: &mut dyn Write,
    id: u128,
    save: impl FnOnce(&mut dyn Write) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut header = PART_FORMAT.header::<K, V>();
    header.extend(id.to_le_bytes());
    write_section(&mut writer, &header)?;
    save(writer)
}

/// Reads the part of a folder that the manifest names.
///
/// # Errors
/// - [`Error::DamagedFolder`] if there is no such part.
/// - [`Error::InvalidFile`] if it is another one, and the errors of `load`.
pub fn read_part<K: Key, V: Pod, T>(
    folder: Folder<'_, impl Disk>,
    id: u128,
    load: impl FnOnce(&mut dyn Read) -> Result<T, Error>,
) -> Result<T, Error> {
    let name = Parts::Files.name(id);
    let part = folder.read(&name, |reader| {
        let reader: &mut dyn Read = reader;
        let mut source = Source::new(&mut *reader);
        if source.header::<K, V, _>(PART_FORMAT, read_id)? != id {
            return Err(source.invalid("it is not the part that the manifest names"));
        }
        load(reader)
    })?;
    part.ok_or_else(|| folder.lacks(&name))
}

/// Writes a checkpoint of a dictionary: all of it, as it is [saved](Dictionary::save).
///
/// # Errors
/// Those of [`Writing::begin`], [`Writing::finish`] and [`Dictionary::save`].
pub fn write_whole<D: Dictionary>(
    dictionary: &D,
    history: &History,
    stream: &Stream,
    disk: &impl Disk,
) -> Result<(), Error> {
    let id = unique_id();
    let state = Whole::<D::Key, D::Value>::of(vec![id]);
    let mut writing = Writing::begin(disk, history, &state, true)?;
    writing.part(id, |writer| write_part::<D::Key, D::Value>(writer, id, |writer| dictionary.save(stream, writer)))?;
    writing.finish(state)
}

/// Reads the dictionary of the last finished checkpoint, and its history; `None` if no checkpoint was ever finished.
///
/// # Errors
/// [`Error::Io`], [`Error::DamagedFolder`], and those of [`Dictionary::load`].
pub fn read_whole<D: Dictionary>(stream: &Stream, disk: &impl Disk) -> Result<Option<(D, History)>, Error> {
    read_finished(disk, |folder, manifest: &Manifest<Whole<D::Key, D::Value>>| {
        let &[id] = manifest.body.parts() else {
            return Err(folder.invalid(super::folder::MANIFEST, "it names no part".to_owned()));
        };
        let dictionary = read_part::<D::Key, D::Value, _>(folder, id, |reader| D::load(stream, reader))?;
        Ok((dictionary, History::recovered_from(manifest.id)))
    })
}

/// Recovers a dictionary that [`write_whole`] has written, as [`Durable::recover_from`] does. `history` finds the history that the
/// dictionary keeps.
///
/// # Errors
/// Those of [`read_whole`].
#[doc(hidden)]
pub fn recover_whole<D: Durable>(
    stream: &Stream,
    disk: &impl Disk,
    options: Option<&D::Options>,
    history: impl FnOnce(&mut D) -> &mut History,
) -> Result<Option<D>, Error> {
    let Some((mut recovered, found)) = read_whole::<D>(stream, disk)? else { return Ok(None) };
    *history(&mut recovered) = found;
    if let Some(options) = options {
        recovered.adopt(options);
    }
    Ok(Some(recovered))
}
