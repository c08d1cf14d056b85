//! Values that are rows of numbers, of a length that is known when the program runs.
//!
//! The rows are in one table, where they stay, and their numbers in a dictionary, as in `gpu_dictionary::LargeValues`, whose
//! values have a type instead. Row 0 is all zeros, for keys that are absent.

use super::any::{AnyDictionary, unsupported};
use crate::column::Column;
use crate::dtype::DType;
use crate::tensor::Tensor;
use bytemuck::Pod;
use gpu_primitives::operator::map;
use gpu_primitives::{DeviceVec, Error, Stream, permute, source, transfer, transform};
use std::io::{Read, Write};
use std::path::Path;

/// Rows of `units` elements `U` each. The type of the numbers in a row is only for Python.
pub struct Rows<U: Pod> {
    indices: Box<dyn AnyDictionary>,
    table: DeviceVec<U>,
    used: usize,
    units: usize,
    dtype: DType,
}

/// The most bytes that are in host memory while a table is written or read.
const CHUNK: usize = 1 << 26;

/// Makes a dictionary of rows of `bytes` bytes, in units that are as large as possible. `indices` is empty.
pub fn make(
    stream: &Stream,
    indices: Box<dyn AnyDictionary>,
    dtype: DType,
    bytes: usize,
) -> Result<Box<dyn AnyDictionary>, Error> {
    Ok(match bytes {
        _ if bytes.is_multiple_of(16) => Box::new(Rows::<[u32; 4]>::new(stream, indices, dtype, bytes / 16)?),
        _ if bytes.is_multiple_of(4) => Box::new(Rows::<u32>::new(stream, indices, dtype, bytes / 4)?),
        _ => Box::new(Rows::<u8>::new(stream, indices, dtype, bytes)?),
    })
}

/// Reads what [`AnyDictionary::save`] has written, into an empty dictionary of the same types.
pub fn read(
    dictionary: &mut dyn AnyDictionary,
    stream: &Stream,
    key: DType,
    value: DType,
    bytes: usize,
    from: &mut dyn Read,
) -> Result<(), Error> {
    let mut from = Checked { inner: from, crc: crc32fast::Hasher::new() };
    let mut len = [0; 8];
    from.read_exact(&mut len)?;
    let len = usize::try_from(u64::from_le_bytes(len)).unwrap_or(usize::MAX);
    let rows = (CHUNK / (bytes + key.size())).max(1);
    let (mut left, mut parts) = (len, Vec::new());
    while left > 0 {
        let part = rows.min(left);
        let mut keys = vec![0u8; part * key.size()];
        from.read_exact(&mut keys)?;
        let mut values = vec![0u8; part * bytes];
        from.read_exact(&mut values)?;
        parts.push((part, stream.upload(&keys)?, stream.upload(&values)?));
        left -= part;
    }
    let expected = from.crc.clone().finalize();
    let mut crc = [0; 4];
    from.read_exact(&mut crc)?;
    if u32::from_le_bytes(crc) != expected {
        return Err(Error::Io(std::io::Error::new(
            std::io::ErrorKind::InvalidData,
            "the file is damaged: the checksum of its rows is another one",
        )));
    }
    for (part, keys, values) in &parts {
        let keys = Tensor::of_vec(stream, keys, key, *part);
        let values = Tensor::of_vec(stream, values, value, part * bytes / value.size());
        dictionary.insert(stream, &keys, Some(&values))?;
    }
    Ok(())
}

/// What has been written or read, with a checksum.
struct Checked<T> {
    inner: T,
    crc: crc32fast::Hasher,
}

impl<T: Read> Read for Checked<T> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let len = self.inner.read(buffer)?;
        self.crc.update(&buffer[..len]);
        Ok(len)
    }
}

impl<T: Write> Write for Checked<T> {
    fn write(&mut self, buffer: &[u8]) -> std::io::Result<usize> {
        let len = self.inner.write(buffer)?;
        self.crc.update(&buffer[..len]);
        Ok(len)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.inner.flush()
    }
}

impl<U: Pod + Send + Sync> Rows<U> {
    fn new(stream: &Stream, indices: Box<dyn AnyDictionary>, dtype: DType, units: usize) -> Result<Self, Error> {
        Ok(Self { indices, table: stream.zeroed(units)?, used: 1, units, dtype })
    }

    /// Returns the rows that a column of indices names.
    fn rows(&self, stream: &Stream, indices: &Column) -> Result<Column, Error> {
        let len = indices.len();
        let units = self.units as u64;
        let (mut starts, mut offsets) = (stream.uninit::<u64>(len)?, stream.uninit::<u64>(len + 1)?);
        transform::map(
            stream,
            indices.slice::<u32>(stream),
            &mut starts,
            map!(units: u64 = units; |row: u32| -> u64 { row as u64 * units }),
        )?;
        let multiples = map!(units: u64 = units; |row: u64| -> u64 { row * units });
        transform::map(stream, source::counting(0u64, len + 1), &mut offsets, multiples)?;
        let mut rows = stream.uninit::<U>(len * self.units)?;
        permute::batched_copy(stream, &self.table, &starts, &mut rows, &offsets)?;
        Ok(Column::of_rows(rows, self.dtype))
    }

    /// Replaces the last column, which has indices, by rows.
    fn with_rows(&self, stream: &Stream, mut columns: Vec<Column>) -> Result<Vec<Column>, Error> {
        if let Some(indices) = columns.pop() {
            columns.push(self.rows(stream, &indices)?);
        }
        Ok(columns)
    }

    /// Makes room for more rows: drops those of no key if they are half, and doubles the table if that is not enough.
    fn reserve(&mut self, stream: &Stream, more: usize) -> Result<(), Error> {
        let room = self.table.len() / self.units.max(1);
        if self.used + more <= room {
            return Ok(());
        }
        let live = self.indices.len(stream)?;
        let needed = live + 1 + more;
        if live < self.used / 2 {
            let columns = self.export(stream)?;
            let [keys, values] = &columns[..] else { unreachable!("keys and rows") };
            let mut table = stream.zeroed::<U>(needed.max(room) * self.units)?;
            transfer::copy(stream, values.slice::<U>(stream), table.slice_mut(self.units..(live + 1) * self.units)?)?;
            let mut indices = stream.uninit::<u32>(live)?;
            transform::sequence(stream, &mut indices, 1)?;
            let (keys, rows) = (keys.tensor(stream), Tensor::of_vec(stream, &indices, DType::U32, live));
            // All keys get new indices in one call, which changes everything or nothing.
            self.indices.insert(stream, &keys, Some(&rows))?;
            (self.table, self.used) = (table, live + 1);
            return Ok(());
        }
        let rows = (2 * room).max(self.used + more).max(16);
        let mut table = stream.uninit::<U>(rows * self.units)?;
        let used = self.used * self.units;
        transfer::copy(stream, self.table.slice(..used)?, table.slice_mut(..used)?)?;
        self.table = table;
        Ok(())
    }
}

impl<U: Pod + Send + Sync> AnyDictionary for Rows<U> {
    fn insert(&mut self, stream: &Stream, keys: &Tensor, values: Option<&Tensor>) -> Result<(), Error> {
        let len = keys.len();
        let Some(values) = values else { return Err(unsupported("an insertion without rows", "keys and rows")) };
        if self.used + len > u32::MAX as usize {
            return Err(Error::TooLong {
                what: "the rows of a dictionary",
                len: self.used + len,
                limit: u32::MAX as usize,
            });
        }
        self.reserve(stream, len)?;
        let mut indices = stream.uninit::<u32>(len)?;
        transform::sequence(stream, &mut indices, self.used as u32)?;
        let rows = self.table.slice_mut(self.used * self.units..(self.used + len) * self.units)?;
        transfer::copy(stream, values.bytes(stream), rows.bytes())?;
        self.indices.insert(stream, keys, Some(&Tensor::of_vec(stream, &indices, DType::U32, len)))?;
        self.used += len;
        Ok(())
    }

    fn delete(&mut self, stream: &Stream, keys: &Tensor) -> Result<(), Error> {
        self.indices.delete(stream, keys)
    }

    fn clear(&mut self, stream: &Stream) -> Result<(), Error> {
        self.indices.clear(stream)?;
        self.used = 1;
        Ok(())
    }

    fn lookup(&self, stream: &Stream, keys: &Tensor) -> Result<Vec<Column>, Error> {
        self.with_rows(stream, self.indices.lookup(stream, keys)?)
    }

    fn contains(&self, stream: &Stream, keys: &Tensor) -> Result<Column, Error> {
        self.indices.contains(stream, keys)
    }

    fn len(&self, stream: &Stream) -> Result<usize, Error> {
        self.indices.len(stream)
    }

    fn bytes(&self, stream: &Stream) -> Result<usize, Error> {
        Ok(self.indices.bytes(stream)? + self.table.len() * size_of::<U>())
    }

    fn export(&self, stream: &Stream) -> Result<Vec<Column>, Error> {
        self.with_rows(stream, self.indices.export(stream)?)
    }

    fn count(&self, stream: &Stream, low: &Tensor, high: &Tensor) -> Result<Column, Error> {
        self.indices.count(stream, low, high)
    }

    fn range(&self, stream: &Stream, low: &Tensor, high: &Tensor) -> Result<Vec<Column>, Error> {
        self.with_rows(stream, self.indices.range(stream, low, high)?)
    }

    fn neighbour(&self, stream: &Stream, keys: &Tensor, next: bool) -> Result<Vec<Column>, Error> {
        self.with_rows(stream, self.indices.neighbour(stream, keys, next)?)
    }

    fn count_values(&self, stream: &Stream, keys: &Tensor) -> Result<Column, Error> {
        self.indices.count_values(stream, keys)
    }

    fn get(&self, stream: &Stream, keys: &Tensor) -> Result<Vec<Column>, Error> {
        self.with_rows(stream, self.indices.get(stream, keys)?)
    }

    /// Copies the rows: later insertions write to the table.
    fn snapshot(&self, stream: &Stream) -> Result<Box<dyn AnyDictionary>, Error> {
        let (indices, table) = (self.indices.snapshot(stream)?, self.table.try_clone(stream)?);
        Ok(Box::new(Self { indices, table, used: self.used, units: self.units, dtype: self.dtype }))
    }

    /// Writes how many keys there are, parts of keys and rows, and a checksum.
    fn save(&self, stream: &Stream, writer: &mut dyn Write) -> Result<(), Error> {
        let mut writer = Checked { inner: writer, crc: crc32fast::Hasher::new() };
        let all = self.indices.export(stream)?;
        let [keys, indices] = &all[..] else { unreachable!("keys and indices") };
        let (len, bytes) = (keys.len(), self.units * size_of::<U>());
        writer.write_all(&(len as u64).to_le_bytes())?;
        let rows = (CHUNK / (bytes + keys.size())).max(1);
        for start in (0..len).step_by(rows) {
            let part = start..len.min(start + rows);
            writer.write_all(&keys.part(part.clone())?.to_vec(stream)?)?;
            let values = self.rows(stream, &indices.copy(stream, part)?)?;
            writer.write_all(&values.part(0..values.len())?.to_vec(stream)?)?;
        }
        let crc = writer.crc.clone().finalize();
        writer.inner.write_all(&crc.to_le_bytes())?;
        Ok(())
    }

    /// Replaces the file in the folder by a new one, as a whole.
    fn checkpoint(&self, stream: &Stream, folder: &Path) -> Result<(), Error> {
        std::fs::create_dir_all(folder)?;
        super::files::replace(&folder.join("rows"), |writer| self.save(stream, writer))
    }
}
