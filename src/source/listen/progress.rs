//! What metrics tell of connections.

use std::sync::atomic::{AtomicU64, Ordering};

use super::super::SourceKind;

/// What is open and what came, kept up to date by every connection.
#[derive(Debug, Default)]
pub(crate) struct ListenProgress {
    tcp: Counts,
    unix: Counts,
}

#[derive(Debug, Default)]
struct Counts {
    open: AtomicU64,
    bytes: AtomicU64,
}

impl ListenProgress {
    /// How many connections of the kind are open. One that has not yet shown its certificate does
    /// not count.
    #[cfg(test)]
    pub(super) fn open(&self, kind: SourceKind) -> u64 {
        self.of(kind)
            .map_or(0, |counts| counts.open.load(Ordering::Relaxed))
    }

    /// How many bytes connections of the kind have sent into the channel since the start.
    pub(crate) fn bytes(&self, kind: SourceKind) -> u64 {
        self.of(kind)
            .map_or(0, |counts| counts.bytes.load(Ordering::Relaxed))
    }

    /// Counts a connection as open until what it gives is dropped.
    pub(super) fn count(&self, kind: SourceKind) -> OpenConnection<'_> {
        let counts = self.of(kind);
        if let Some(counts) = counts {
            counts.open.fetch_add(1, Ordering::Relaxed);
        }
        OpenConnection { counts }
    }

    fn of(&self, kind: SourceKind) -> Option<&Counts> {
        match kind {
            SourceKind::Tcp => Some(&self.tcp),
            SourceKind::Unix => Some(&self.unix),
            SourceKind::File | SourceKind::Stdin => None,
        }
    }
}

/// A connection that is open.
#[derive(Debug)]
pub(super) struct OpenConnection<'p> {
    counts: Option<&'p Counts>,
}

impl OpenConnection<'_> {
    /// Counts bytes that are about to be sent, so that nobody has received more than was counted.
    pub(super) fn add_bytes(&self, bytes: u64) {
        if let Some(counts) = self.counts {
            counts.bytes.fetch_add(bytes, Ordering::Relaxed);
        }
    }
}

impl Drop for OpenConnection<'_> {
    fn drop(&mut self) {
        if let Some(counts) = self.counts {
            counts.open.fetch_sub(1, Ordering::Relaxed);
        }
    }
}
