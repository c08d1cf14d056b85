//! The dictionary traits for [`PlainCuckoo`]. They ask for an order of the keys, which [`PlainCuckoo`] itself does not.

use super::super::options::Options;
use super::PlainCuckoo;
use bytemuck::Pod;
use gpu_dictionary::{Key, PlainKey};

gpu_dictionary::forward_traits!(impl<K: [PlainKey + Key], V: [Pod]> for PlainCuckoo, "cuckoo of plain keys", Options);
