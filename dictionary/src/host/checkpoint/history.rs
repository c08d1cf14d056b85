//! Which checkpoints a dictionary may replace.

use crate::file::unique_id;
#[cfg(doc)]
use crate::{Durable, Snapshot};
use std::sync::OnceLock;

/// Which checkpoints a dictionary continues. It may replace only these: any other one may hold updates that this
/// dictionary never saw. Every [`Durable`] dictionary has one.
///
/// A dictionary may replace the checkpoint that it was recovered from, and those that it wrote itself with no more updates than
/// it has now. Only dictionaries with [snapshots](Snapshot) need to count updates.
///
/// A clone has a history of its own: its updates are not those of the original.
#[derive(Debug, Default)]
pub struct History {
    /// The id of the dictionary; chosen when it is first needed.
    writer: OnceLock<u128>,
    /// The number of updates so far.
    updates: u64,
    /// The checkpoint that the dictionary was recovered from.
    recovered: Option<u128>,
    /// Whether this is the history of a snapshot. Its next update is none of the dictionary that it was taken from.
    is_of_snapshot: bool,
}

impl Clone for History {
    fn clone(&self) -> Self {
        Self::default()
    }
}

/// Why a dictionary may not replace a checkpoint.
#[derive(Debug, PartialEq)]
pub(super) enum Refusal {
    /// It is a newer one of the same dictionary.
    IsNewer,
    /// It is one of another dictionary, or continues this one elsewhere.
    IsOfAnother,
}

impl History {
    /// Returns the history of a dictionary that was recovered from the checkpoint with this id.
    #[must_use]
    pub fn recovered_from(checkpoint: u128) -> Self {
        Self { recovered: Some(checkpoint), ..Self::default() }
    }

    /// Returns the history of a snapshot: its checkpoints are checkpoints of the dictionary, as it is now.
    #[must_use]
    pub fn of_snapshot(&self) -> Self {
        Self { writer: self.writer().into(), updates: self.updates, recovered: self.recovered, is_of_snapshot: true }
    }

    /// Counts an update. What was a snapshot becomes a dictionary with a history of its own.
    pub fn advance(&mut self) {
        if self.is_of_snapshot {
            *self = Self::default();
        }
        self.updates += 1;
    }

    pub(super) fn writer(&self) -> u128 {
        *self.writer.get_or_init(unique_id)
    }

    pub(super) fn updates(&self) -> u64 {
        self.updates
    }

    /// Returns why the dictionary may not replace a checkpoint with this id, which `writer` wrote after so many updates; `None`
    /// if it may.
    pub(super) fn refuses(&self, checkpoint: u128, writer: u128, updates: u64) -> Option<Refusal> {
        if writer == self.writer() {
            return (updates > self.updates).then_some(Refusal::IsNewer);
        }
        (self.recovered != Some(checkpoint)).then_some(Refusal::IsOfAnother)
    }
}

#[cfg(test)]
mod tests {
    use super::{History, Refusal};

    #[test]
    fn what_may_be_replaced() {
        let mut own = History::default();
        own.advance();
        let snapshot = own.of_snapshot();
        own.advance();
        assert_eq!(own.refuses(1, own.writer(), 2), None);
        assert_eq!(snapshot.refuses(1, own.writer(), 1), None);
        assert_eq!(snapshot.refuses(1, own.writer(), 2), Some(Refusal::IsNewer));
        assert_eq!(own.clone().refuses(1, own.writer(), 2), Some(Refusal::IsOfAnother));
        let mut apart = snapshot;
        apart.advance();
        assert_eq!(apart.refuses(1, own.writer(), 0), Some(Refusal::IsOfAnother));
        let recovered = History::recovered_from(7);
        assert_eq!(recovered.refuses(7, own.writer(), 9), None);
        assert_eq!(recovered.refuses(8, own.writer(), 9), Some(Refusal::IsOfAnother));
    }
}
