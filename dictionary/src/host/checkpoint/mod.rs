//! Checkpoints: dictionaries in folders, durably. [`Durable`](crate::Durable) is the trait of dictionaries that have them; this
//! module is for those who implement it.
//!
//! # Format
//! A folder holds one dictionary:
//!
//! | file | |
//! | --- | --- |
//! | `manifest` | the state of the dictionary, and which parts it consists of |
//! | `level-ID`, `part-ID` | a part; `ID` is its id, as 32 hexadecimal digits |
//! | `lock` | empty; locked by those who use the folder |
//! | `manifest.tmp`, `level-ID.tmp`, `part-ID.tmp` | a file that was not finished |
//!
//! The manifest and the parts have the format that [`file`](crate::file) describes: version 3 of the manifest, version 2
//! of the parts. There never was a version 1 of them. Manifests of version 2, which only LSMs have, can still be read.
//!
//! The manifest adds to the header:
//!
//! | bytes | |
//! | --- | --- |
//! | 16, 16 | the id of the checkpoint, the id of the dictionary that wrote it |
//! | 8 | the number of updates of that dictionary before this state; not in version 2 |
//! | 1 | 0 until the first checkpoint of the folder is finished, then 1; not in version 2 |
//! | | the structure's own fields: its [`Body`] |
//!
//! No arrays follow. These structures have bodies:
//!
//! | name of the manifest | structure | body |
//! | --- | --- | --- |
//! | `gpu-man` | LSM | its levels: see the module `checkpoint` of gpu-lsm |
//! | `gpu-mmn` | multimap | the same |
//! | `gpu-one` | all that are [written as a whole](write_whole) | 1 byte, the number of parts, 0 or 1; 16 bytes, the id of the part |
//! | `gpu-shm` | sharded dictionary | shards, and how keys are divided: see the module `durable` of gpu-sharded |
//!
//! A `part-ID` has a header of the name `gpu-prt` and its id, in 16 bytes. A dictionary follows, as it is
//! [saved](crate::Dictionary::save).
//!
//! # Why a crash loses nothing
//! The manifest alone says what the dictionary is. It is replaced by a rename, which is atomic. Before the rename, the
//! new parts, their names in the folder, and the contents of the new manifest are durable. So whichever manifest
//! survives a crash, all its parts are complete. No file is removed before the manifest that does not name it is
//! durable.
//!
//! # Why a lost file is noticed
//! A manifest names all parts, and each part states its id. The first checkpoint of a folder writes a manifest that says
//! that nothing is finished, and makes it durable before it writes a part. So a folder with parts always has a manifest,
//! however its writers ended: if it has none, the manifest was lost.
//!
//! # Why an older state never replaces a newer one
//! Each dictionary has an id of its own, and those with snapshots count their updates. Both are in the manifest. A dictionary
//! may replace the checkpoint that it was recovered from, and those that it wrote itself with no more updates than it has now: see
//! [`History`]. A snapshot has the id and the count of its dictionary. A clone has a new id, and so has a snapshot that is taken
//! apart and updated: its updates are not those that the dictionary counts.
//!
//! An id is random and names contents that never change. So a part that the current manifest names need not be written
//! again, whoever wrote it, and a copy of a folder can be used like the original.

mod disk;
mod folder;
mod history;
mod manifest;
mod whole;
mod writing;

pub use disk::{Disk, FileLock, OsDisk};
pub use folder::{Folder, MANIFEST, Parts};
pub use history::History;
pub use manifest::{Body, Manifest, read_id};
pub use whole::{read_part, read_whole, recover_whole, write_part, write_whole};
pub use writing::{Writing, read_finished};
