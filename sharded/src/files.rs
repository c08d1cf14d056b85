//! Files: one of a rank's shards, and sets of files that any number of ranks can load.

use crate::build::{Balance, distribute};
use crate::options::Options;
use crate::partition::{MAX_SHARDS, Partition};
use crate::plan::concatenated;
use crate::shard::Shard;
use crate::sharded::{Code, Sharded, fingerprint, unset};
use crate::world::{Call, World};
use gpu_dictionary::file::{Format, Source, unique_id, write_section};
use gpu_dictionary::{Contents, Dictionary};
use gpu_primitives::{Error, Stream};
use std::fs::{self, File};
use std::io::{BufReader, BufWriter, Read, Write};
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
        let (seed, splitters) = match &self.partition {
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
        bytes
    }

    fn read<D: Shard>(source: &mut Source<impl Read>, format: Format) -> Result<Self, Error> {
        let header = source.header::<D::Key, D::Value, _>(format, |source| {
            let [shards, first, here] = [source.u64()?, source.u64()?, source.u64()?];
            let id = u128::from_le_bytes(source.bytes()?);
            let (seed, len) = (source.u32()?, source.u32()?);
            // A false length is found by the checksum, but must not use up all memory before.
            let mut splitters = Vec::new();
            for _ in 0..(len as usize).min(MAX_SHARDS) {
                let code = source.bytes::<CODE>()?;
                splitters.push(bytemuck::pod_read_unaligned(&code[..size_of::<C>()]));
            }
            let partition = if D::IN_RANGES { Partition::Ranges { splitters } } else { Partition::Hash { seed } };
            Ok(Self { shards, first, here, partition, id })
        })?;
        let most = MAX_SHARDS as u64;
        if header.shards == 0 || header.shards > most {
            return Err(source.invalid(format!("it has {} shards, but 1 to {most} are possible", header.shards)));
        }
        Ok(header)
    }
}

/// Returns the name of a shard's file.
fn shard_file(directory: &Path, id: u128, shard: usize) -> PathBuf {
    directory.join(format!("{id:032x}-{shard:03}.shard"))
}

/// Writes a file, and makes sure that it is on the disk.
fn write_file(path: &Path, write: impl FnOnce(&mut BufWriter<File>) -> Result<(), Error>) -> Result<(), Error> {
    let mut writer = BufWriter::new(File::create(path)?);
    write(&mut writer)?;
    writer.flush()?;
    writer.get_ref().sync_all()?;
    Ok(())
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
        let (number, balance) = (world.count_dictionary(), Balance::default());
        let options = Options::new(world).shard(shard);
        Ok(Self { options, shards, partition: header.partition, number, lost: None, balance })
    }

    /// Writes the dictionary to a folder: a file for each shard, and a list. Every rank must call it, with the same folder of a
    /// file system that all of them reach. A set that is already there is replaced when the new one is complete. Waits.
    ///
    /// # Errors
    /// [`Error::Io`] if writing fails, or the errors of an export. After an error the older set, if there is one, is as it was.
    pub fn save_set(&self, stream: &Stream, directory: impl AsRef<Path>) -> Result<(), Error> {
        let (directory, world) = (directory.as_ref(), self.world());
        let call = self.call("save_set");
        let _turn = self.begin()?;
        // The first rank names the set.
        let id = unique_id();
        let ids = world.agree(&call, Ok(vec![id as u64, (id >> 64) as u64]))?;
        let id = u128::from(ids[0][1]) << 64 | u128::from(ids[0][0]);
        let write = || {
            fs::create_dir_all(directory)?;
            for (own, shard) in self.shards.iter().enumerate() {
                let path = shard_file(directory, id, world.first_shard() + own);
                write_file(&path, |writer| shard.save(world.home(own, stream), writer))?;
            }
            Ok(())
        };
        let outcome = world.vote(&call, write());
        let outcome = outcome.and_then(|()| world.vote(&call, self.write_list(directory, id)));
        // What is not listed is of no use.
        let kept = if outcome.is_ok() { Some(id) } else { listed::<D>(directory).ok().map(|header| header.id) };
        if world.rank() == 0 {
            remove_unlisted(directory, kept, outcome.is_err().then_some(id));
        }
        outcome
    }

    /// Makes the first rank write the list.
    fn write_list(&self, directory: &Path, id: u128) -> Result<(), Error> {
        if self.world().rank() != 0 {
            return Ok(());
        }
        let new = directory.join(format!("{LIST}.new"));
        write_file(&new, |writer| write_section(writer, &self.header(id).bytes::<D>(SET)))?;
        fs::rename(&new, directory.join(LIST))?;
        Ok(())
    }

    /// Reads a set of files that [`save_set`](Self::save_set) has written, in a world of any size. Every rank must call it, with
    /// the same folder. Waits.
    ///
    /// With as many shards as the set has, each is read as it is. Otherwise all pairs are divided anew.
    ///
    /// # Errors
    /// The errors of [`load`](Dictionary::load), and those of [`bulk_build`](Dictionary::bulk_build).
    pub fn load_set(stream: &Stream, directory: impl AsRef<Path>, options: Options<D::Options>) -> Result<Self, Error> {
        let (directory, world) = (directory.as_ref(), options.world.clone());
        let _turn = world.turn()?;
        let number = world.count_dictionary();
        let call = Call { name: "load_set", dictionary: number, fingerprint: fingerprint::<D>(world.own_shards()) };
        let header = listed::<D>(directory);
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
            D::load(home, BufReader::new(File::open(shard_file(directory, header.id, shard))?))
        };
        let (first, saved) = (world.first_shard(), header.shards as usize);
        if world.shards() == saved {
            let shards = (0..world.own_shards()).map(|own| load(first + own, world.home(own, stream)));
            let shards = world.vote(&call, shards.collect())?;
            let (partition, balance) = (header.partition, Balance::default());
            return Ok(Self { options, shards, partition, number, lost: None, balance });
        }
        // Each rank reads a part of the files.
        let mine = saved * world.rank() / world.ranks()..saved * (world.rank() + 1) / world.ranks();
        let read = || {
            let (mut keys, mut values) = (Vec::new(), Vec::new());
            for shard in mine {
                let contents = load(shard, stream)?.export(stream)?;
                keys.push(contents.keys);
                values.push(contents.values);
            }
            Ok(Contents { keys: concatenated(stream, keys)?, values: concatenated(stream, values)? })
        };
        let Contents { keys, values } = world.vote(&call, read())?;
        let pairs = (keys.as_slice(), values.as_slice());
        let (partition, shards) = distribute::<D>(&world, stream, &call, pairs, &options, unset::<D>())?;
        Ok(Self { options, shards, partition, number, lost: None, balance: Balance::default() })
    }
}

/// Reads the list of a set.
fn listed<D: Shard>(directory: &Path) -> Result<Header<Code<D>>, Error> {
    let path = directory.join(LIST);
    let open = File::open(&path).map_err(|error| {
        std::io::Error::new(error.kind(), format!("there is no set of files: {}: {error}", path.display()))
    });
    Header::read::<D>(&mut Source::new(BufReader::new(open?)), SET)
}

/// Removes the shards' files of sets other than the one that is kept: of all other sets, or of one that failed.
fn remove_unlisted(directory: &Path, kept: Option<u128>, failed: Option<u128>) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some((id, _)) = name.to_str().and_then(|name| name.strip_suffix(".shard")?.split_once('-')) else {
            continue;
        };
        let Ok(id) = u128::from_str_radix(id, 16) else { continue };
        if Some(id) != kept && failed.is_none_or(|failed| failed == id) {
            // Nothing depends on it any more. A file that stays does no harm.
            _ = fs::remove_file(entry.path());
        }
    }
}
