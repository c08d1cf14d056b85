//! Whether updates and queries alternate.

use std::sync::atomic::{AtomicBool, Ordering};

/// Expects what happened last time: a query right after an update, or more updates.
///
/// A buffer pays off when several updates are sorted at once. A program that queries after each update would copy each batch into
/// the buffer for nothing.
#[derive(Debug, Default)]
pub(crate) struct Cadence {
    /// Whether there was a query since the last update.
    is_queried: AtomicBool,
    /// Whether there was one update between the last two queries.
    alternates: bool,
    /// The number of updates since the last query; all that are more than one count as two.
    updates: u8,
}

impl Clone for Cadence {
    fn clone(&self) -> Self {
        Self { is_queried: AtomicBool::new(self.is_queried.load(Ordering::Relaxed)), ..*self }
    }
}

impl Cadence {
    /// Notes a query.
    pub fn query(&self) {
        // Updates have exclusive access. So they see this, whatever the order among queries.
        self.is_queried.store(true, Ordering::Relaxed);
    }

    /// Notes an update. Returns whether a query is expected before the next one.
    pub fn update(&mut self) -> bool {
        if std::mem::take(self.is_queried.get_mut()) {
            self.alternates = self.updates == 1;
            self.updates = 0;
        }
        self.updates = (self.updates + 1).min(2);
        self.alternates && self.updates == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_happened_last_time_is_expected() {
        let mut cadence = Cadence::default();
        // Updates and queries, and for each update whether a query is expected.
        let history = "u0 u0 q u0 q u1 q u1 u0 q u0 u0 q q u0 q u1 q";
        for (at, event) in history.split(' ').enumerate() {
            match event {
                "q" => cadence.query(),
                update => assert_eq!(cadence.update(), update == "u1", "event {at}"),
            }
        }
    }
}
