//! When a run must have ended.

use std::sync::{Arc, OnceLock};
use std::time::Instant;

/// The time by which everything must have come to its end. Its clones know the same.
///
/// Nobody is woken when it is set: whoever waits looks several times a second, as it has to tell
/// that it is alive in any case.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stop(Arc<OnceLock<Instant>>);

impl Stop {
    /// Sets the end. The first call counts: the time for a stop does not begin again.
    pub(crate) fn end_by(&self, deadline: Instant) {
        let _ = self.0.set(deadline);
    }

    /// The end, once somebody wants it.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.0.get().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn the_first_deadline_counts_and_clones_know_it() {
        let (stop, now) = (Stop::default(), Instant::now());
        let other = stop.clone();
        assert_eq!(other.deadline(), None);
        stop.end_by(now);
        other.end_by(now + Duration::from_secs(1));
        assert_eq!(other.deadline(), Some(now));
    }
}
