//! Types whose values can be recorded, and what stands for them in a recorded function.

use crate::Kind;
use crate::graph::Id;
use crate::ordering::OrderingValue;
use crate::recording::with_graph;
use crate::scalar::Scalar;
use crate::value::Value;
use std::cmp::Ordering;

/// A type that operators can take, return and compute with.
///
/// Numbers, `bool`, [`Ordering`], fixed arrays and tuples implement it. Structs derive it:
///
/// ```
/// use bytemuck::{Pod, Zeroable};
/// use gpu_operator::{Kind, Layout, Record};
///
/// #[repr(C)]
/// #[derive(Clone, Copy, Pod, Zeroable, Record)]
/// struct Event {
///     time: u64,
///     source: u32,
///     tags: [u16; 2],
/// }
///
/// let layout = Layout::of::<Event>();
/// assert_eq!(layout.size, 16);
/// assert_eq!(layout.leaves[1].offset, 8);
/// assert_eq!(layout.leaves[3].kind, Kind::U16);
/// ```
///
/// A struct must be [`Pod`](bytemuck::Pod), because its bytes are copied to a GPU, and `repr(C)`, so that its layout is
/// fixed. So it has no padding and no `bool` field: use a `u8`. Enums cannot be recorded: use an integer and constants.
///
/// ```compile_fail
/// # use gpu_operator::Record;
/// #[derive(Clone, Copy, Record)]
/// struct NoFixedLayout(u32);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be used in an operator",
    label = "not a type that can be recorded",
    note = "an operator's types are numbers, bool, fixed arrays, tuples and structs with `#[derive(Record)]`",
    note = "a `usize` is for loop counters and indices: write `i as u32` to compute with it"
)]
pub trait Record: Copy + 'static {
    /// What stands for the type in a recorded function.
    type Value: Twin;

    /// Appends the scalars of a value at a byte offset, in the order of [`Twin::nodes`].
    fn leaves(offset: usize, leaves: &mut Vec<Leaf>);

    /// Records a constant.
    fn lift(self) -> Self::Value;
}

/// What stands for a value in a recorded function: one node for each scalar.
pub trait Twin: Copy {
    /// Appends the nodes.
    fn nodes(&self, nodes: &mut Vec<Id>);

    /// Takes as many nodes as there are scalars.
    ///
    /// # Panics
    /// If there are fewer.
    fn from_nodes(nodes: &mut dyn Iterator<Item = Id>) -> Self;
}

/// A scalar in a type's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Leaf {
    /// The byte at which it begins.
    pub offset: usize,
    /// Its type.
    pub kind: Kind,
}

/// The bytes of a type and the scalars in them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Layout {
    /// The type's name, for messages.
    pub name: &'static str,
    /// The size in bytes.
    pub size: usize,
    /// The alignment in bytes.
    pub align: usize,
    /// The scalars.
    pub leaves: Vec<Leaf>,
}

impl Layout {
    /// Returns the layout of a type.
    ///
    /// # Panics
    /// If a scalar lies outside of the type, which only a [`Record`] that was written by hand can say.
    pub fn of<T: Record>() -> Self {
        let mut leaves = Vec::new();
        T::leaves(0, &mut leaves);
        let layout = Self { name: std::any::type_name::<T>(), size: size_of::<T>(), align: align_of::<T>(), leaves };
        for leaf in &layout.leaves {
            let Leaf { offset, kind } = *leaf;
            assert!(layout.has(offset, kind), "`{}` has no {kind:?} at byte {offset}: derive `Record`", layout.name);
        }
        layout
    }

    /// Returns whether a scalar at this offset lies inside of the type.
    pub(crate) fn has(&self, offset: usize, kind: Kind) -> bool {
        offset.checked_add(kind.size()).is_some_and(|end| end <= self.size)
    }
}

/// Returns the value of a type whose scalars are all 0.
#[doc(hidden)]
pub fn zero<T: Record>() -> T::Value {
    let kinds = Layout::of::<T>().leaves.into_iter().map(|leaf| leaf.kind);
    T::Value::from_nodes(&mut kinds.map(|kind| with_graph(|graph| graph.constant(kind, 0))))
}

/// Asks the compiler for `Pod`.
#[doc(hidden)]
pub const fn pod<T: bytemuck::Pod>() {}

impl<T> Twin for Value<T> {
    fn nodes(&self, nodes: &mut Vec<Id>) {
        nodes.push(self.id());
    }

    fn from_nodes(nodes: &mut dyn Iterator<Item = Id>) -> Self {
        Self::new(nodes.next().expect("a node for each scalar"))
    }
}

macro_rules! scalars {
    ($($type:ty)*) => { $(
        impl Record for $type {
            type Value = Value<$type>;

            fn leaves(offset: usize, leaves: &mut Vec<Leaf>) {
                leaves.push(Leaf { offset, kind: <$type as Scalar>::KIND });
            }

            fn lift(self) -> Value<$type> {
                Value::constant(self)
            }
        }
    )* };
}

scalars!(bool u8 u16 u32 u64 u128 i8 i16 i32 i64 i128 f32 f64);
#[cfg(feature = "half")]
scalars!(half::f16 half::bf16);

impl Record for Ordering {
    type Value = OrderingValue;

    fn leaves(offset: usize, leaves: &mut Vec<Leaf>) {
        leaves.push(Leaf { offset, kind: Kind::I8 });
    }

    fn lift(self) -> OrderingValue {
        OrderingValue::constant(self)
    }
}

impl<T: Record, const N: usize> Record for [T; N] {
    type Value = [T::Value; N];

    fn leaves(offset: usize, leaves: &mut Vec<Leaf>) {
        for index in 0..N {
            T::leaves(offset + index * size_of::<T>(), leaves);
        }
    }

    fn lift(self) -> Self::Value {
        self.map(T::lift)
    }
}

impl<V: Twin, const N: usize> Twin for [V; N] {
    fn nodes(&self, nodes: &mut Vec<Id>) {
        self.iter().for_each(|value| value.nodes(nodes));
    }

    fn from_nodes(nodes: &mut dyn Iterator<Item = Id>) -> Self {
        std::array::from_fn(|_| V::from_nodes(nodes))
    }
}

macro_rules! tuples {
    ($($($type:ident $index:tt)*;)*) => { $(
        impl<$($type: Record),*> Record for ($($type,)*) {
            type Value = ($($type::Value,)*);

            fn leaves(offset: usize, leaves: &mut Vec<Leaf>) {
                $($type::leaves(offset + std::mem::offset_of!(Self, $index), leaves);)*
            }

            fn lift(self) -> Self::Value {
                ($(self.$index.lift(),)*)
            }
        }

        impl<$($type: Twin),*> Twin for ($($type,)*) {
            fn nodes(&self, nodes: &mut Vec<Id>) {
                $(self.$index.nodes(nodes);)*
            }

            fn from_nodes(nodes: &mut dyn Iterator<Item = Id>) -> Self {
                ($($type::from_nodes(nodes),)*)
            }
        }
    )* };
}

tuples! {
    A 0;
    A 0 B 1;
    A 0 B 1 C 2;
    A 0 B 1 C 2 D 3;
    A 0 B 1 C 2 D 3 E 4;
    A 0 B 1 C 2 D 3 E 4 F 5;
}
