//! Dictionaries whose types are known when the program runs.

use crate::column::Column;
use crate::dtype::DType;
use crate::tensor::Tensor;
use bytemuck::Pod;
use core::marker::PhantomData;
use gpu_cuckoo::GpuCuckoo;
use gpu_dictionary::{Dictionary, Durable, Updatable, Upsertable, Value};
use gpu_lsm::{GpuLsm, GpuMultimap};
use gpu_primitives::monoid::{Max, Min, Sum};
use gpu_primitives::{DeviceSlice, DeviceVec, Error, Stream};
use gpu_sorted_array::GpuSortedArray;
use std::io::{Read, Write};
use std::path::Path;

/// How an upsert combines values.
#[derive(Clone, Copy, Debug)]
pub enum Operation {
    Sum,
    Max,
    Min,
}

/// What the dictionary cannot do.
pub fn unsupported(what: &'static str, allowed: &'static str) -> Error {
    Error::InvalidOption { what, asked: "not supported by this dictionary".into(), allowed }
}

const NO_ORDER: &str = "Lsm, SortedArray or Multimap, which have an order";
const NO_UPSERT: &str = "Lsm, SortedArray or HashMap with values that are numbers";

/// A dictionary of some key and value type. Queries return columns: those of the values are left out in a set.
pub trait AnyDictionary: Send + Sync {
    fn insert(&mut self, stream: &Stream, keys: &Tensor, values: Option<&Tensor>) -> Result<(), Error>;
    fn upsert(&mut self, _: &Stream, _: &Tensor, _: &Tensor, _: Operation) -> Result<(), Error> {
        Err(unsupported("upsert", NO_UPSERT))
    }
    fn delete(&mut self, stream: &Stream, keys: &Tensor) -> Result<(), Error>;
    fn clear(&mut self, stream: &Stream) -> Result<(), Error>;
    /// Whether each key is there, and the values.
    fn lookup(&self, stream: &Stream, keys: &Tensor) -> Result<Vec<Column>, Error>;
    fn contains(&self, stream: &Stream, keys: &Tensor) -> Result<Column, Error>;
    fn len(&self, stream: &Stream) -> Result<usize, Error>;
    fn bytes(&self, stream: &Stream) -> Result<usize, Error>;
    /// All keys in order, and the values.
    fn export(&self, stream: &Stream) -> Result<Vec<Column>, Error>;
    fn count(&self, _: &Stream, _: &Tensor, _: &Tensor) -> Result<Column, Error> {
        Err(unsupported("count", NO_ORDER))
    }
    /// Where each interval begins, the keys, and the values.
    fn range(&self, _: &Stream, _: &Tensor, _: &Tensor) -> Result<Vec<Column>, Error> {
        Err(unsupported("range", NO_ORDER))
    }
    /// Whether there is a neighbour, its key, and its value.
    fn neighbour(&self, _: &Stream, _: &Tensor, _next: bool) -> Result<Vec<Column>, Error> {
        Err(unsupported("a search for neighbours", NO_ORDER))
    }
    fn count_values(&self, _: &Stream, _: &Tensor) -> Result<Column, Error> {
        Err(unsupported("count_values", "Multimap"))
    }
    /// Where the values of each key begin, and the values.
    fn get(&self, _: &Stream, _: &Tensor) -> Result<Vec<Column>, Error> {
        Err(unsupported("get", "Multimap"))
    }
    fn delete_pairs(&mut self, _: &Stream, _: &Tensor, _: &Tensor) -> Result<(), Error> {
        Err(unsupported("delete_pairs", "Multimap"))
    }
    fn snapshot(&self, stream: &Stream) -> Result<Box<dyn AnyDictionary>, Error>;
    fn save(&self, stream: &Stream, writer: &mut dyn Write) -> Result<(), Error>;
    fn checkpoint(&self, stream: &Stream, folder: &Path) -> Result<(), Error>;
}

/// Where a new dictionary comes from.
pub enum Origin<'a> {
    New { batch_size: Option<usize> },
    File(&'a mut dyn Read),
    Folder(&'a Path),
}

/// The numbers that values can be, and how they are combined: nothing, for sets.
pub trait Number: Value + Send + Sync {
    /// `None` for no values.
    const DTYPE: Option<DType>;

    fn upsert<D: Upsertable<Value = Self>>(
        dictionary: &mut D,
        stream: &Stream,
        pairs: (DeviceSlice<'_, D::Key>, DeviceSlice<'_, Self>),
        operation: Operation,
    ) -> Result<(), Error>;
}

impl Number for () {
    const DTYPE: Option<DType> = None;

    fn upsert<D: Upsertable<Value = ()>>(
        _: &mut D,
        _: &Stream,
        _: (DeviceSlice<'_, D::Key>, DeviceSlice<'_, ()>),
        _: Operation,
    ) -> Result<(), Error> {
        Err(unsupported("upsert", NO_UPSERT))
    }
}

macro_rules! numbers {
    ($($type:ty: $dtype:ident),*) => { $(
        impl Number for $type {
            const DTYPE: Option<DType> = Some(DType::$dtype);

            fn upsert<D: Upsertable<Value = Self>>(
                dictionary: &mut D,
                stream: &Stream,
                pairs: (DeviceSlice<'_, D::Key>, DeviceSlice<'_, Self>),
                operation: Operation,
            ) -> Result<(), Error> {
                match operation {
                    Operation::Sum => dictionary.upsert(stream, pairs, Sum),
                    Operation::Max => dictionary.upsert(stream, pairs, Max),
                    Operation::Min => dictionary.upsert(stream, pairs, Min),
                }
            }
        }
    )* };
}

numbers!(i32: I32, i64: I64, u32: U32, u64: U64, f32: F32, f64: F64);

/// Returns the values of an insertion; none for sets.
fn values_of<'a, V: Number>(stream: &'a Stream, values: Option<&Tensor>) -> DeviceSlice<'a, V> {
    match values {
        Some(values) if V::DTYPE.is_some() => values.slice(stream),
        // SAFETY: there are no elements.
        _ => unsafe { DeviceSlice::from_raw_parts(stream.device(), core::ptr::NonNull::dangling().as_ptr(), 0) },
    }
}

/// Adds a column of values, unless the dictionary is a set.
fn and_values<V: Number>(mut columns: Vec<Column>, values: DeviceVec<V>) -> Vec<Column> {
    if let Some(dtype) = V::DTYPE {
        columns.push(Column::new(values, dtype));
    }
    columns
}

/// The dtypes of keys.
pub trait KeyType: Pod + Send + Sync {
    const DTYPE: DType;
}

macro_rules! keys {
    ($($type:ty: $dtype:ident),*) => { $(
        impl KeyType for $type {
            const DTYPE: DType = DType::$dtype;
        }
    )* };
}

keys!(i32: I32, i64: I64, u32: U32, u64: U64, f32: F32, f64: F64);

/// A dictionary of one type, and what is left to say about it.
pub struct Typed<D> {
    dictionary: D,
    marker: PhantomData<fn(D)>,
}

impl<D> Typed<D> {
    fn boxed(dictionary: D) -> Box<dyn AnyDictionary>
    where
        Self: AnyDictionary + 'static,
    {
        Box::new(Self { dictionary, marker: PhantomData })
    }
}

/// What dictionaries with one value per key share.
macro_rules! shared {
    () => {
        fn insert(&mut self, stream: &Stream, keys: &Tensor, values: Option<&Tensor>) -> Result<(), Error> {
            Updatable::insert(&mut self.dictionary, stream, (keys.slice(stream), values_of(stream, values)))
        }

        fn upsert(
            &mut self,
            stream: &Stream,
            keys: &Tensor,
            values: &Tensor,
            operation: Operation,
        ) -> Result<(), Error> {
            let pairs = (keys.slice(stream), values_of(stream, Some(values)));
            V::upsert(&mut self.dictionary, stream, pairs, operation)
        }

        fn delete(&mut self, stream: &Stream, keys: &Tensor) -> Result<(), Error> {
            Updatable::delete(&mut self.dictionary, stream, keys.slice(stream))
        }

        fn clear(&mut self, stream: &Stream) -> Result<(), Error> {
            Updatable::clear(&mut self.dictionary, stream)
        }

        fn lookup(&self, stream: &Stream, keys: &Tensor) -> Result<Vec<Column>, Error> {
            let found = Dictionary::lookup(&self.dictionary, stream, keys.slice(stream))?;
            Ok(and_values(vec![Column::new(found.found, DType::Bool)], found.values))
        }

        fn checkpoint(&self, stream: &Stream, folder: &Path) -> Result<(), Error> {
            Durable::checkpoint(&self.dictionary, stream, folder)
        }
    };
}

/// What all have.
macro_rules! all {
    () => {
        fn contains(&self, stream: &Stream, keys: &Tensor) -> Result<Column, Error> {
            Ok(Column::new(self.dictionary.contains(stream, keys.slice::<K>(stream))?, DType::Bool))
        }

        fn len(&self, stream: &Stream) -> Result<usize, Error> {
            self.dictionary.len(stream)
        }

        fn bytes(&self, stream: &Stream) -> Result<usize, Error> {
            Ok(self.dictionary.stats(stream)?.bytes)
        }

        fn export(&self, stream: &Stream) -> Result<Vec<Column>, Error> {
            let all = self.dictionary.export(stream)?;
            Ok(and_values(vec![Column::new(all.keys, K::DTYPE)], all.values))
        }

        fn save(&self, stream: &Stream, writer: &mut dyn Write) -> Result<(), Error> {
            self.dictionary.save(stream, writer)
        }
    };
}

macro_rules! ordered {
    () => {
        fn count(&self, stream: &Stream, low: &Tensor, high: &Tensor) -> Result<Column, Error> {
            let counts = self.dictionary.count(stream, low.slice::<K>(stream), high.slice::<K>(stream))?;
            Ok(Column::new(counts, DType::I64))
        }

        fn range(&self, stream: &Stream, low: &Tensor, high: &Tensor) -> Result<Vec<Column>, Error> {
            let found = self.dictionary.range(stream, low.slice::<K>(stream), high.slice::<K>(stream))?;
            let columns = vec![Column::new(found.offsets, DType::I64), Column::new(found.keys, K::DTYPE)];
            Ok(and_values(columns, found.values))
        }

        fn neighbour(&self, stream: &Stream, keys: &Tensor, next: bool) -> Result<Vec<Column>, Error> {
            let keys = keys.slice::<K>(stream);
            let found = if next {
                self.dictionary.successor(stream, keys)?
            } else {
                self.dictionary.predecessor(stream, keys)?
            };
            let columns = vec![Column::new(found.found, DType::Bool), Column::new(found.keys, K::DTYPE)];
            Ok(and_values(columns, found.values))
        }
    };
}

macro_rules! dictionary {
    ($name:ident, $key:path, [$($extra:ident),*], |$this:ident, $stream:ident| $copy:expr) => {
        impl<K: KeyType + $key, V: Number> AnyDictionary for Typed<$name<K, V>>
        where
            $name<K, V>: Send + Sync + 'static,
        {
            $($extra!();)*
            shared!();
            all!();

            fn snapshot(&self, $stream: &Stream) -> Result<Box<dyn AnyDictionary>, Error> {
                let $this = &self.dictionary;
                Ok(Self::boxed($copy))
            }
        }
    };
}

dictionary!(GpuLsm, gpu_dictionary::Key, [ordered], |this, _stream| this.clone());
dictionary!(GpuSortedArray, gpu_dictionary::Key, [ordered], |this, _stream| this.snapshot().into_inner());
dictionary!(GpuCuckoo, gpu_dictionary::WordKey, [], |this, stream| this.try_clone(stream)?);

impl<K: KeyType + gpu_dictionary::Key, V: Number> AnyDictionary for Typed<GpuMultimap<K, V>>
where
    GpuMultimap<K, V>: Send + Sync + 'static,
{
    ordered!();
    all!();

    fn insert(&mut self, stream: &Stream, keys: &Tensor, values: Option<&Tensor>) -> Result<(), Error> {
        self.dictionary.insert(stream, (keys.slice::<K>(stream), values_of::<V>(stream, values)))
    }

    fn delete(&mut self, stream: &Stream, keys: &Tensor) -> Result<(), Error> {
        self.dictionary.delete(stream, keys.slice::<K>(stream))
    }

    fn delete_pairs(&mut self, stream: &Stream, keys: &Tensor, values: &Tensor) -> Result<(), Error> {
        self.dictionary.delete_pairs(stream, (keys.slice::<K>(stream), values.slice::<V>(stream)))
    }

    fn clear(&mut self, stream: &Stream) -> Result<(), Error> {
        self.dictionary.clear(stream)
    }

    fn lookup(&self, _: &Stream, _: &Tensor) -> Result<Vec<Column>, Error> {
        Err(unsupported("lookup", "get, since a key can have many values"))
    }

    fn count_values(&self, stream: &Stream, keys: &Tensor) -> Result<Column, Error> {
        Ok(Column::new(self.dictionary.count_values(stream, keys.slice::<K>(stream))?, DType::I64))
    }

    fn get(&self, stream: &Stream, keys: &Tensor) -> Result<Vec<Column>, Error> {
        let found = self.dictionary.get(stream, keys.slice::<K>(stream))?;
        Ok(and_values(vec![Column::new(found.offsets, DType::I64)], found.values))
    }

    fn snapshot(&self, _: &Stream) -> Result<Box<dyn AnyDictionary>, Error> {
        Ok(Self::boxed(self.dictionary.clone()))
    }

    fn checkpoint(&self, stream: &Stream, folder: &Path) -> Result<(), Error> {
        self.dictionary.checkpoint(stream, folder)
    }
}

/// Which structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Lsm,
    SortedArray,
    HashMap,
    Multimap,
}

impl Kind {
    pub fn parse(name: &str) -> Option<Self> {
        [Self::Lsm, Self::SortedArray, Self::HashMap, Self::Multimap].into_iter().find(|kind| kind.name() == name)
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Lsm => "Lsm",
            Self::SortedArray => "SortedArray",
            Self::HashMap => "HashMap",
            Self::Multimap => "Multimap",
        }
    }

    /// Makes a dictionary with these types.
    pub fn make<K, V: Number + 'static>(
        self,
        stream: &Stream,
        origin: Origin<'_>,
    ) -> Result<Box<dyn AnyDictionary>, Error>
    where
        K: KeyType + gpu_dictionary::WordKey + 'static,
    {
        macro_rules! open {
            ($name:ident, $options:expr) => {
                Typed::boxed(match origin {
                    Origin::New { batch_size } => $name::<K, V>::new(stream, $options(batch_size))?,
                    Origin::File(reader) => $name::<K, V>::load(stream, reader)?,
                    Origin::Folder(folder) => recover!($name, folder),
                })
            };
        }
        macro_rules! recover {
            (GpuMultimap, $folder:expr) => {
                GpuMultimap::<K, V>::recover(stream, $folder)?
            };
            ($other:ident, $folder:expr) => {
                <$other<K, V> as Durable>::recover(stream, $folder)?
            };
        }
        let levels = |batch_size: Option<usize>| {
            let options = gpu_lsm::Options::new();
            batch_size.map_or(options, |operations| options.batch_size(operations))
        };
        Ok(match self {
            Self::Lsm => open!(GpuLsm, levels),
            Self::SortedArray => open!(GpuSortedArray, |_| Default::default()),
            Self::HashMap => open!(GpuCuckoo, |_| Default::default()),
            Self::Multimap => open!(GpuMultimap, levels),
        })
    }
}
