//! The methods of the traits as methods of the type, so that a program need not import the traits.

use crate::{Options, Shard, Sharded};
#[cfg(doc)]
use gpu_dictionary::Dictionary;
use gpu_dictionary::{Ordered, Updatable, Upsertable};

gpu_dictionary::methods_of_traits! {
    Sharded[D], D::Key, D::Value, Options<D::Options>;
    Dictionary[D: Shard]
    Updatable[D: Shard + Updatable]
    Upsertable[D: Shard + Upsertable]
    Ordered[D: Shard + Ordered]
    set Sharded<D>: [D: Shard<Value = ()> + Updatable]
}
