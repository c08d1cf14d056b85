//! Dictionaries.

mod any;
mod files;
mod rows;

use crate::column::Column;
use crate::dtype::{DType, each_word};
use crate::error::{Kind as ErrorKind, OrRaise, exception, value_error};
use crate::stream::{Place, PyStream};
use crate::tensor::{Tensor, check};
use any::{AnyDictionary, Kind, Operation, Origin};
use files::Types;
use gpu_primitives::{Error, Stream};
use pyo3::prelude::*;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock};

/// A dictionary with its types. Queries run at the same time, updates alone.
#[pyclass(frozen, name = "Dictionary", module = "gpu_primitives._core")]
pub struct PyDictionary {
    dictionary: RwLock<Box<dyn AnyDictionary>>,
    types: Types,
    place: Place,
    /// For calls without arrays.
    home: Stream,
}

/// A dictionary of these types, new, or from a file or folder that is whole.
fn open(stream: &Stream, types: Types, origin: Origin<'_>) -> PyResult<Box<dyn AnyDictionary>> {
    if types.width > 0 {
        let value = types.value.ok_or_else(|| value_error("rows need a dtype of their numbers"))?;
        let bytes = types.width.checked_mul(value.size()).filter(|&bytes| bytes < 1 << 31);
        let bytes = bytes.ok_or_else(|| value_error("a row has too many numbers"))?;
        if types.kind == Kind::Multimap {
            return Err(value_error("the values of a Multimap are numbers; rows are for Lsm, SortedArray and HashMap"));
        }
        let batch_size = if let Origin::New { batch_size } = origin { batch_size } else { None };
        let indices = Types { value: Some(DType::U32), width: 0, ..types };
        let indices = open(stream, indices, Origin::New { batch_size })?;
        let mut made = rows::make(stream, indices, value, bytes).or_raise()?;
        let mut fill = |reader: &mut dyn std::io::Read| rows::read(&mut *made, stream, types.key, value, bytes, reader);
        match origin {
            Origin::New { .. } => {}
            Origin::File(reader) => fill(reader).or_raise()?,
            Origin::Folder(folder) => {
                let file = File::open(folder.join("rows")).map_err(Error::Io).or_raise()?;
                fill(&mut BufReader::new(file)).or_raise()?;
            }
        }
        return Ok(made);
    }
    each_word!(types.key, "keys", K => match types.value {
        None => types.kind.make::<K, ()>(stream, origin).or_raise(),
        Some(value) => each_word!(value, "values", V => types.kind.make::<K, V>(stream, origin).or_raise()),
    })
}

fn open_file(path: &Path) -> PyResult<BufReader<File>> {
    let file = File::open(path).map_err(|error| exception(ErrorKind::File, format!("{}: {error}", path.display())))?;
    Ok(BufReader::new(file))
}

impl PyDictionary {
    fn query<T: Send>(
        &self,
        py: Python<'_>,
        stream: &PyStream,
        arrays: &[&Tensor],
        call: impl FnOnce(&dyn AnyDictionary, &Stream) -> Result<T, Error> + Send,
    ) -> PyResult<T> {
        self.check(stream, arrays)?;
        let stream = &stream.stream;
        py.detach(|| call(&**self.dictionary.read().unwrap_or_else(PoisonError::into_inner), stream)).or_raise()
    }

    fn update(
        &self,
        py: Python<'_>,
        stream: &PyStream,
        arrays: &[&Tensor],
        call: impl FnOnce(&mut dyn AnyDictionary, &Stream) -> Result<(), Error> + Send,
    ) -> PyResult<()> {
        self.check(stream, arrays)?;
        let stream = &stream.stream;
        py.detach(|| call(&mut **self.dictionary.write().unwrap_or_else(PoisonError::into_inner), stream)).or_raise()
    }

    /// Checks where arrays are, and that those of keys have the type of keys.
    fn check(&self, stream: &PyStream, keys: &[&Tensor]) -> PyResult<()> {
        if stream.place != self.place {
            let (found, expected) = (stream.place.name(), self.place.name());
            return Err(value_error(format!(
                "the arrays are on {found}, and the dictionary is on {expected}; move the arrays"
            )));
        }
        check(stream, keys, &[])?;
        keys.iter().try_for_each(|keys| keys.expect_dtype("an array of keys", self.types.key))
    }

    fn check_values(&self, stream: &PyStream, keys: &Tensor, values: Option<&Tensor>) -> PyResult<()> {
        match (self.types.value, values) {
            (None, None) => Ok(()),
            (None, Some(_)) => Err(value_error("this dictionary is a set: it takes no values")),
            (Some(_), None) => Err(value_error("values are missing: pass one for each key")),
            (Some(dtype), Some(values)) => {
                check(stream, &[values], &[])?;
                values.expect_dtype("the array of values", dtype)?;
                values.expect_len("the array of values", keys.len() * self.types.width.max(1))
            }
        }
    }

    fn new_of(types: Types, place: Place, origin: Origin<'_>) -> PyResult<Self> {
        let home = place.device()?.stream().or_raise()?;
        let dictionary = RwLock::new(open(&home, types, origin)?);
        Ok(Self { dictionary, types, place, home })
    }

    /// Reads the types of the checkpoints of a folder.
    fn read_types(path: &Path) -> PyResult<Types> {
        Types::read(&mut open_file(path)?, path)
    }

    fn home(&self) -> PyStream {
        PyStream { place: self.place, stream: self.home.clone() }
    }
}

#[pymethods]
impl PyDictionary {
    #[new]
    fn new(
        kind: &str,
        key: &str,
        value: Option<&str>,
        width: usize,
        device: i32,
        batch_size: Option<usize>,
    ) -> PyResult<Self> {
        let kind = Kind::parse(kind).ok_or_else(|| value_error("no such dictionary"))?;
        let types = Types { kind, key: DType::parse(key)?, value: value.map(DType::parse).transpose()?, width };
        Self::new_of(types, Place::of(device), Origin::New { batch_size })
    }

    /// Reads a file.
    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf, device: i32) -> PyResult<Self> {
        let mut reader = open_file(&path)?;
        let types = Types::read(&mut reader, &path)?;
        py.detach(|| Self::new_of(types, Place::of(device), Origin::File(&mut reader)))
    }

    /// Reads the folder of a checkpoint.
    #[staticmethod]
    fn recover(py: Python<'_>, folder: PathBuf, device: i32) -> PyResult<Self> {
        let types = Self::read_types(&folder.join("types"))?;
        py.detach(|| Self::new_of(types, Place::of(device), Origin::Folder(&folder.join("data"))))
    }

    fn insert(
        &self,
        py: Python<'_>,
        stream: &PyStream,
        keys: PyRef<'_, Tensor>,
        values: Option<PyRef<'_, Tensor>>,
    ) -> PyResult<()> {
        let (keys, values) = (&*keys, values.as_deref());
        self.check_values(stream, keys, values)?;
        self.update(py, stream, &[keys], |dictionary, stream| dictionary.insert(stream, keys, values))
    }

    fn upsert(
        &self,
        py: Python<'_>,
        stream: &PyStream,
        keys: PyRef<'_, Tensor>,
        values: PyRef<'_, Tensor>,
        op: &str,
    ) -> PyResult<()> {
        let (keys, values) = (&*keys, &*values);
        self.check_values(stream, keys, Some(values))?;
        let operation = match op {
            "sum" => Operation::Sum,
            "max" => Operation::Max,
            "min" => Operation::Min,
            other => return Err(value_error(format!("the operation {other:?} is none of \"sum\", \"max\", \"min\""))),
        };
        self.update(py, stream, &[keys], |dictionary, stream| dictionary.upsert(stream, keys, values, operation))
    }

    fn delete(&self, py: Python<'_>, stream: &PyStream, keys: PyRef<'_, Tensor>) -> PyResult<()> {
        let keys = &*keys;
        self.update(py, stream, &[keys], |dictionary, stream| dictionary.delete(stream, keys))
    }

    fn delete_pairs(
        &self,
        py: Python<'_>,
        stream: &PyStream,
        keys: PyRef<'_, Tensor>,
        values: PyRef<'_, Tensor>,
    ) -> PyResult<()> {
        let (keys, values) = (&*keys, &*values);
        self.check_values(stream, keys, Some(values))?;
        self.update(py, stream, &[keys], |dictionary, stream| dictionary.delete_pairs(stream, keys, values))
    }

    fn clear(&self, py: Python<'_>) -> PyResult<()> {
        self.update(py, &self.home(), &[], |dictionary, stream| dictionary.clear(stream))
    }

    fn lookup(&self, py: Python<'_>, stream: &PyStream, keys: PyRef<'_, Tensor>) -> PyResult<Vec<Column>> {
        let keys = &*keys;
        self.query(py, stream, &[keys], |dictionary, stream| dictionary.lookup(stream, keys))
    }

    fn contains(&self, py: Python<'_>, stream: &PyStream, keys: PyRef<'_, Tensor>) -> PyResult<Vec<Column>> {
        let keys = &*keys;
        self.query(py, stream, &[keys], |dictionary, stream| Ok(vec![dictionary.contains(stream, keys)?]))
    }

    fn count(
        &self,
        py: Python<'_>,
        stream: &PyStream,
        low: PyRef<'_, Tensor>,
        high: PyRef<'_, Tensor>,
    ) -> PyResult<Vec<Column>> {
        let (low, high) = (&*low, &*high);
        self.query(py, stream, &[low, high], |dictionary, stream| Ok(vec![dictionary.count(stream, low, high)?]))
    }

    fn range(
        &self,
        py: Python<'_>,
        stream: &PyStream,
        low: PyRef<'_, Tensor>,
        high: PyRef<'_, Tensor>,
    ) -> PyResult<Vec<Column>> {
        let (low, high) = (&*low, &*high);
        self.query(py, stream, &[low, high], |dictionary, stream| dictionary.range(stream, low, high))
    }

    fn neighbour(
        &self,
        py: Python<'_>,
        stream: &PyStream,
        keys: PyRef<'_, Tensor>,
        next: bool,
    ) -> PyResult<Vec<Column>> {
        let keys = &*keys;
        self.query(py, stream, &[keys], |dictionary, stream| dictionary.neighbour(stream, keys, next))
    }

    fn count_values(&self, py: Python<'_>, stream: &PyStream, keys: PyRef<'_, Tensor>) -> PyResult<Vec<Column>> {
        let keys = &*keys;
        self.query(py, stream, &[keys], |dictionary, stream| Ok(vec![dictionary.count_values(stream, keys)?]))
    }

    fn get(&self, py: Python<'_>, stream: &PyStream, keys: PyRef<'_, Tensor>) -> PyResult<Vec<Column>> {
        let keys = &*keys;
        self.query(py, stream, &[keys], |dictionary, stream| dictionary.get(stream, keys))
    }

    /// All keys, and the values.
    fn export(&self, py: Python<'_>, stream: &PyStream) -> PyResult<Vec<Column>> {
        self.query(py, stream, &[], |dictionary, stream| dictionary.export(stream))
    }

    fn len(&self, py: Python<'_>) -> PyResult<usize> {
        self.query(py, &self.home(), &[], |dictionary, stream| dictionary.len(stream))
    }

    /// The bytes of device memory.
    fn bytes(&self, py: Python<'_>) -> PyResult<usize> {
        self.query(py, &self.home(), &[], |dictionary, stream| dictionary.bytes(stream))
    }

    fn snapshot(&self, py: Python<'_>) -> PyResult<Self> {
        let copy = self.query(py, &self.home(), &[], |dictionary, stream| dictionary.snapshot(stream))?;
        Ok(Self { dictionary: RwLock::new(copy), types: self.types, place: self.place, home: self.home.clone() })
    }

    /// Replaces a file.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        let types = self.types;
        self.query(py, &self.home(), &[], |dictionary, stream| {
            files::replace(&path, |writer| {
                writer.write_all(types.line().as_bytes())?;
                dictionary.save(stream, writer)
            })
        })
    }

    /// Writes what has changed to a folder.
    fn checkpoint(&self, py: Python<'_>, folder: PathBuf) -> PyResult<()> {
        let types = self.types;
        let (path, data) = (folder.join("types"), folder.join("data"));
        let present = path.exists().then(|| Self::read_types(&path)).transpose()?;
        if present.is_some_and(|present| present != types) {
            return Err(exception(
                ErrorKind::File,
                format!("{} has checkpoints of a dictionary of other types", folder.display()),
            ));
        }
        self.query(py, &self.home(), &[], |dictionary, stream| {
            std::fs::create_dir_all(&folder)?;
            if !Path::exists(&path) {
                files::replace(&path, |writer| Ok(writer.write_all(types.line().as_bytes())?))?;
            }
            dictionary.checkpoint(stream, &data)
        })
    }

    /// The stream for calls without arrays.
    #[getter]
    fn stream(&self) -> PyStream {
        self.home()
    }

    /// The kind, the key and the value dtype, and how many numbers a row has.
    #[getter]
    fn types(&self) -> (&'static str, &'static str, Option<&'static str>, usize) {
        let Types { kind, key, value, width } = self.types;
        (kind.name(), key.name(), value.map(DType::name), width)
    }

    #[getter]
    fn device(&self) -> i32 {
        self.place.index()
    }
}
