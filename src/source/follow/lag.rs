//! How much there is to read, and for how long.

use std::collections::{BTreeSet, HashMap};
use std::time::Instant;

use crate::source::message::SourceId;

/// How far the files are behind.
#[derive(Debug, Default)]
pub(super) struct Lag {
    bytes: u64,
    files: HashMap<SourceId, (Instant, u64)>,
    since: BTreeSet<(Instant, SourceId)>,
}

impl Lag {
    /// Takes in how much of a file is unread.
    pub(super) fn set(&mut self, id: SourceId, unread: u64, now: Instant) {
        let since = self.files.get(&id).map_or(now, |(since, _)| *since);
        self.forget(id);
        if unread > 0 {
            self.bytes += unread;
            self.files.insert(id, (since, unread));
            self.since.insert((since, id));
        }
    }

    pub(super) fn forget(&mut self, id: SourceId) {
        if let Some((since, bytes)) = self.files.remove(&id) {
            self.bytes -= bytes;
            self.since.remove(&(since, id));
        }
    }

    /// How much there is to read.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Since when the one that has been behind for longest is.
    pub(super) fn since(&self) -> Option<Instant> {
        self.since.first().map(|(since, _)| *since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn counts_from_where_a_file_fell_behind() {
        let (a, b) = (SourceId::next(), SourceId::next());
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut lag = Lag::default();
        lag.set(a, 5, at(0));
        lag.set(b, 7, at(1));
        lag.set(a, 3, at(2));
        assert_eq!((lag.bytes(), lag.since()), (10, Some(at(0))));
        lag.set(a, 0, at(3));
        assert_eq!((lag.bytes(), lag.since()), (7, Some(at(1))));
        lag.forget(b);
        assert_eq!((lag.bytes(), lag.since()), (0, None));
    }
}
