//! The methods of the traits as methods of the type, so that a program need not import the traits.

use super::LargeValues;
#[cfg(doc)]
use crate::Upsertable;
use crate::{Dictionary, Ordered, Updatable};
use bytemuck::Pod;

crate::methods_of_traits! {
    LargeValues[D, V], D::Key, V, D::Options;
    Dictionary[D: Dictionary<Value = u32>, V: Pod]
    Updatable[D: Updatable<Value = u32>, V: Pod]
    Upsertable[D: Updatable<Value = u32>, V: Pod]
    Ordered[D: Ordered<Value = u32>, V: Pod]
    set LargeValues<D, ()>: [D: Updatable<Value = u32>]
}
