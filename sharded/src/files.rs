//! Files: one of a rank's shards, and sets of files that any number of ranks can load.

use crate::build::{Balance, distribute};
use crate::options::Options;
use crate::partition::{MAX_SHARDS, Partition};
use crate::plan::concatenated;
use crate::shard::Shard;
use crate::sharded::{Code, Sharded, unset};
use crate::world::{Call, World};
use gpu_dictionary::checkpoint::History;
use gpu_dictionary::file::{Format, Source, unique_id, write_section};
use gpu_dictionary::{Contents, Dictionary};
use gpu_primitives::{Error, Stream};
use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

const FORMAT: Format = Format { magic: *b"gpu-shd\n", version: 2 };
const SET: Format = Format { magic: *b"gpu-set\n", version: 2 };

/// The bytes of a splitter in a file: as many as the longest code has, so that a file of other keys can be told from a damaged one.
const CODE: usize = 32;

/// The file of a set that lists the others.
const LIST: &str = "sharded.list";

/// What the header of a file, or the list of a set, says.
struct Header<C> {
    /// All shards, and those in this file.
    shards: u64,
    first: u64,
    here: u64,
    partition: Partition<C>,
    /// The name of the set that the file is a part of.
    id: u128,
}

impl<C: bytemuck::Pod> Header<C> {
    fn bytes<D: Dictionary>(&self, format: Format) -> Vec<u8> {
        let mut bytes = format.header::<D::Key, D::Value>();
        for number in [self.shards, self.first, self.here] {
            bytes.extend(number.to_le_bytes());
        }
        bytes.extend(self.id.to_le_bytes());
        write_partition(&mut bytes, &self.partition);
        bytes
    }

    fn read<D: Shard>(source: &mut Source<impl Read>, format: Format) -> Result<Self, Error> {
        let header = source.header::<D::Key, D::Value, _>(format, |source| {
            let [shards, first, here] = [source.u64()?, source.u64()?, source.u64()?];
            let id = u128::from_le_bytes(source.bytes()?);
            Ok(Self { shards, first, here, partition: read_partition::<D, C>(source)?, id })
        })?;
        expect_possible(source, header.shards)?;
        Ok(header)
    }
}

/// Appends how keys are divided.
pub(crate) fn write_partition<C: bytemuck::Pod>(bytes: &mut Vec<u8>, partition: &Partition<C>) {
    let (seed, splitters) = match partition {
        &Partition::Hash { seed } => (seed, &[][..]),
        Partition::Ranges { splitters } => (0, &splitters[..]),
    };
    bytes.extend(seed.to_le_bytes());
    bytes.extend((splitters.len() as u32).to_le_bytes());
    for splitter in splitters {
        let mut code = [0; CODE];
        code[..size_of::<C>()].copy_from_slice(bytemuck::bytes_of(splitter));
        bytes.extend(code);
    }
}

/// Reads how keys are divided.
pub(crate) fn read_partition<D: Shard, C: bytemuck::Pod>(
    source: &mut Source<impl Read>,
) -> Result<Partition<C>, Error> {
    let (seed, len) = (source.u32()?, source.u32()?);
    // A false length is found by the checksum, but must not use up all memory before.
    let mut splitters = Vec::new();
    for _ in 0..(len as usize).min(MAX_SHARDS) {
        let code = source.bytes::<CODE>()?;
        splitters.push(bytemuck::pod_read_unaligned(&code[..size_of::<C>()]));
    }
    Ok(if D::IN_RANGES { Partition::Ranges { splitters } } else { Partition::Hash { seed } })
}

/// Returns an error for a file with a number of shards that is not possible.
pub(crate) fn expect_possible(source: &Source<impl Read>, shards: u64) -> Result<(), Error> {
    let most = MAX_SHARDS as u64;
    if (1..=most).contains(&shards) {
        return Ok(());
    }
    Err(source.invalid(format!("it has {shards} shards, but 1 to {most} are possible")))
}

/// Returns the name of a shard's file.
fn shard_file(directory: &Path, id: u128, shard: usize) -> PathBuf {
    directory.join(format!("{id:032x}-{shard:03}.shard"))
}

/// Writes a file, and makes sure that it is on the disk. Returns its length.
fn write_file(path: &Path, write: impl FnOnce(&mut BufWriter<File>) -> Result<(), Error>) -> Result<u64, Error> {
    let write = || {
        let mut writer = BufWriter::new(File::create(path)?);
        write(&mut writer)?;
        writer.flush()?;
        writer.get_ref().sync_all()?;
        Ok(writer.get_ref().metadata()?.len())
    };
    write().map_err(|error| in_file(path, error))
}

/// Adds the name of the file to an error.
fn in_file(path: &Path, error: Error) -> Error {
    let path = path.display();
    match error {
        Error::Io(error) => Error::Io(io::Error::new(error.kind(), format!("{path}: {error}"))),
        Error::InvalidFile { what, at } => Error::InvalidFile { what: format!("{what}, in {path}"), at },
        other => other,
    }
}

/// Returns the error for a set of files that was there, and is not whole any more: never one that says "not found", which stands
/// for a folder without a set.
fn damaged(directory: &Path, what: &str) -> Error {
    let message = format!("the set of files in {} is damaged: {what}", directory.display());
    Error::Io(io::Error::new(io::ErrorKind::InvalidData, message))
}

impl<D: Shard> Sharded<D> {
    fn header(&self, id: u128) -> Header<Code<D>> {
        let world = self.world();
        let (first, here) = (world.first_shard() as u64, world.own_shards() as u64);
        Header { shards: world.shards() as u64, first, here, partition: self.partition.clone(), id }
    }

    /// Writes the shards of this rank.
    pub(crate) fn write(&self, stream: &Stream, mut writer: impl Write) -> Result<(), Error> {
        write_section(&mut writer, &self.header(0).bytes::<D>(FORMAT))?;
        for (own, shard) in self.shards.iter().enumerate() {
            shard.save(self.world().home(own, stream), &mut writer)?;
        }
        writer.flush()?;
        Ok(())
    }

    /// Reads the shards of a dictionary of one rank.
    pub(crate) fn read(stream: &Stream, mut reader: impl Read) -> Result<Self, Error> {
        let mut source = Source::new(&mut reader);
        let header = Header::<Code<D>>::read::<D>(&mut source, FORMAT)?;
        if header.here != header.shards {
            let (last, shards) = (header.first + header.here, header.shards);
            let what = format!("it has only the shards {} to {} of {shards}: use `load_set`", header.first + 1, last);
            return Err(source.invalid(what));
        }
        let world = World::local(header.shards as usize);
        let shards: Result<Vec<D>, Error> = (0..header.shards).map(|_| D::load(stream, &mut reader)).collect();
        let shards = shards?;
        let shard = shards.first().map(Dictionary::options).unwrap_or_default();
        let (number, balance, history) = (world.count_dictionary(), Balance::default(), History::default());
        let options = Options::new(world).shard(shard);
        Ok(Self { options, shards, partition: header.partition, number, lost: None, balance, history })
    }

    /// Writes the dictionary to a folder: a file for each shard, and a list. Every rank must call it, with the same folder of a
    /// file system that all of them reach. A set that is already there is replaced when the new one is complete. Waits.
    ///
    /// # Errors
    /// [`Error::Io`] if writing fails, or if the first rank does not see the files of all others in its folder; or the errors of
    /// an export. After an error the older set, if there is one, is as it was. If a rank is lost, the folder has the older set or
    /// the new one, and is not mixed.
    pub fn save_set(&self, stream: &Stream, directory: impl AsRef<Path>) -> Result<(), Error> {
        let (directory, world) = (directory.as_ref(), self.world());
        let call = self.call("save_set");
        let _turn = self.begin()?;
        // The first rank names the set.
        let id = unique_id();
        let ids = world.agree(&call, Ok(vec![id as u64, (id >> 64) as u64]))?;
        let id = u128::from(ids[0][1]) << 64 | u128::from(ids[0][0]);
        let own_file = |own: usize| shard_file(directory, id, world.first_shard() + own);
        let write = || {
            fs::create_dir_all(directory).map_err(|error| in_file(directory, error.into()))?;
            let of_shard = |(own, shard): (usize, &D)| {
                write_file(&own_file(own), |writer| shard.save(world.home(own, stream), writer))
            };
            self.shards.iter().enumerate().map(of_shard).collect()
        };
        let lens = world.agree(&call, write());
        let outcome = lens.and_then(|lens| world.vote(&call, self.write_list(directory, id, &lens)));
        // What is not listed is of no use.
        match (&outcome, world.rank()) {
            (Ok(()), 0) => remove_unlisted(directory, id),
            (Ok(()), _) => {}
            // Nobody knows whether the first rank has written the list, or is about to.
            (Err(Error::DictionaryLost { .. }), _) => {}
            (Err(_), _) => (0..world.own_shards()).for_each(|own| _ = fs::remove_file(own_file(own))),
        }
        outcome
    }

    /// Makes the first rank write the list, if it finds the files of all ranks: by their lengths, rank by rank.
    fn write_list(&self, directory: &Path, id: u128, lens: &[Vec<u64>]) -> Result<(), Error> {
        let world = self.world();
        if world.rank() != 0 {
            return Ok(());
        }
        for shard in 0..world.shards() {
            let (rank, path) = (world.rank_of(shard), shard_file(directory, id, shard));
            let expected = lens[rank][shard % world.own_shards()];
            if fs::metadata(&path).map(|file| file.len()).ok() != Some(expected) {
                let what = format!(
                    "rank {rank} has saved to another folder than rank 0: pass the same one, of a file system that all ranks \
                     share ({} is not there)",
                    path.display()
                );
                return Err(Error::Io(io::Error::other(what)));
            }
        }
        let new = directory.join(format!("{LIST}.new"));
        write_file(&new, |writer| write_section(writer, &self.header(id).bytes::<D>(SET)))?;
        fs::rename(&new, directory.join(LIST)).map_err(|error| in_file(&new, error.into()))
    }

    /// Reads a set of files that [`save_set`](Self::save_set) has written, in a world of any size. Every rank must call it, with
    /// the same folder. Waits.
    ///
    /// With as many shards as the set has, each is read as it is. Otherwise all pairs are divided anew.
    ///
    /// # Errors
    /// - [`Error::Io`] of the kind [`NotFound`](io::ErrorKind::NotFound) if the folder has no set of files, and no part of one.
    ///   If a file is missing, the kind is [`InvalidData`](io::ErrorKind::InvalidData), and the message names the file.
    /// - The errors of [`load`](Dictionary::load), and those of [`bulk_build`](Dictionary::bulk_build).
    pub fn load_set(stream: &Stream, directory: impl AsRef<Path>, options: Options<D::Options>) -> Result<Self, Error> {
        let (directory, world) = (directory.as_ref(), options.world.clone());
        let _turn = world.turn()?;
        let number = world.count_dictionary();
        let call = Call { options: options.fingerprint::<D>(), ..Call::of::<D>("load_set", number) };
        let header = world.expect_shards().and_then(|()| listed::<D>(directory));
        let words = |header: &Header<Code<D>>| vec![header.id as u64, (header.id >> 64) as u64];
        let (header, ids) = match header {
            Ok(header) => {
                let ids = world.agree(&call, Ok(words(&header)))?;
                (header, ids)
            }
            Err(error) => return world.vote(&call, Err(error)),
        };
        if ids.iter().any(|id| id[..2] != ids[0][..2]) {
            return Err(Error::RanksDisagree { what: "they found different sets of files".to_owned() });
        }
        let load = |shard: usize, home: &Stream| {
            let path = shard_file(directory, header.id, shard);
            let file = File::open(&path)
                .map_err(|error| damaged(directory, &format!("{} cannot be opened: {error}", path.display())))?;
            D::load(home, BufReader::new(file)).map_err(|error| in_file(&path, error))
        };
        let saved = Saved { shards: header.shards as usize, partition: header.partition };
        Self::of_saved(stream, (number, &call), saved, options, load)
    }

    /// Makes a dictionary of saved shards, which `load` reads one by one. Every rank calls it.
    ///
    /// With as many shards as there are, each is read as it is. Otherwise all pairs are divided anew.
    pub(crate) fn of_saved(
        stream: &Stream,
        (number, call): (u64, &Call),
        saved: Saved<Code<D>>,
        options: Options<D::Options>,
        load: impl Fn(usize, &Stream) -> Result<D, Error>,
    ) -> Result<Self, Error> {
        let world = options.world.clone();
        let (balance, history) = (Balance::default(), History::default());
        if world.shards() == saved.shards {
            let shards = (0..world.own_shards()).map(|own| load(world.first_shard() + own, world.home(own, stream)));
            let shards = world.vote(call, shards.collect())?;
            return Ok(Self { options, shards, partition: saved.partition, number, lost: None, balance, history });
        }
        // Each rank reads a part of the files.
        let mine = saved.shards * world.rank() / world.ranks()..saved.shards * (world.rank() + 1) / world.ranks();
        let read = || {
            let (mut keys, mut values) = (Vec::new(), Vec::new());
            for shard in mine {
                let contents = load(shard, stream)?.export(stream)?;
                keys.push(contents.keys);
                values.push(contents.values);
            }
            Ok(Contents { keys: concatenated(stream, keys)?, values: concatenated(stream, values)? })
        };
        let Contents { keys, values } = world.vote(call, read())?;
        let pairs = (keys.as_slice(), values.as_slice());
        let (partition, shards) = distribute::<D>(&world, stream, call, pairs, &options, unset::<D>())?;
        Ok(Self { options, shards, partition, number, lost: None, balance, history })
    }
}

/// How many shards were saved, and how their keys were divided.
pub(crate) struct Saved<C> {
    pub shards: usize,
    pub partition: Partition<C>,
}

/// Reads the list of a set.
fn listed<D: Shard>(directory: &Path) -> Result<Header<Code<D>>, Error> {
    let path = directory.join(LIST);
    let file = File::open(&path).map_err(|error| match shard_files(directory).next() {
        Some((_, file)) if error.kind() == io::ErrorKind::NotFound => {
            damaged(directory, &format!("there is {}, and no `{LIST}`", file.display()))
        }
        _ => Error::Io(io::Error::new(error.kind(), format!("there is no set of files: {}: {error}", path.display()))),
    });
    Header::read::<D>(&mut Source::new(BufReader::new(file?)), SET).map_err(|error| in_file(&path, error))
}

/// Returns the files of shards in a folder, of any set, and the ids of their sets.
fn shard_files(directory: &Path) -> impl Iterator<Item = (u128, PathBuf)> {
    let entries = fs::read_dir(directory).ok().into_iter().flatten().flatten();
    entries.filter_map(|entry| {
        let name = entry.file_name();
        let (id, _) = name.to_str()?.strip_suffix(".shard")?.split_once('-')?;
        Some((u128::from_str_radix(id, 16).ok()?, entry.path()))
    })
}

/// Removes the shards' files of all sets but one.
fn remove_unlisted(directory: &Path, kept: u128) {
    for (_, path) in shard_files(directory).filter(|&(id, _)| id != kept) {
        // Nothing depends on it any more. A file that stays does no harm.
        _ = fs::remove_file(path);
    }
}
