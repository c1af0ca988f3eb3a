//! What a run, or a part of it, has come to.

use std::fmt;

use tracecheck::{Severity, Totals};

/// What can be counted of a run, or of a part of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    bytes: u64,
    records: u64,
    placements: u64,
    errors: u64,
    warnings: u64,
}

impl Tally {
    pub(crate) fn new(bytes: u64, totals: &Totals) -> Tally {
        Tally {
            bytes,
            records: totals.records,
            placements: totals.placements,
            errors: totals.counts.total(Severity::Error),
            warnings: totals.counts.total(Severity::Warning),
        }
    }

    /// How many records came after `before`.
    pub(crate) fn records_since(self, before: Tally) -> u64 {
        self.records - before.records
    }

    /// Adds what came between two tallies of a whole.
    pub(crate) fn add_between(&mut self, before: Tally, after: Tally) {
        self.bytes += after.bytes - before.bytes;
        self.records += after.records - before.records;
        self.placements += after.placements - before.placements;
        self.errors += after.errors - before.errors;
        self.warnings += after.warnings - before.warnings;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "records {}, placements {}, bytes {}, errors {}, warnings {}",
            self.records, self.placements, self.bytes, self.errors, self.warnings
        )
    }
}
