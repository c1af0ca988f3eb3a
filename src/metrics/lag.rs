//! How far verification is behind.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// What there is of one kind of source and was not verified yet: first unread, then received
/// until the engine is done with it.
#[derive(Debug, Default)]
pub(crate) struct Lag(Mutex<Stages>);

#[derive(Debug, Default)]
struct Stages {
    unread: u64,
    /// Since when the oldest of these bytes are there; none if there are none.
    unread_since: Option<Instant>,
    /// Totals since the start. What was read of files is not counted as received.
    received: u64,
    verified: u64,
    /// When that arrived which is being verified.
    verifying_since: Option<Instant>,
}

impl Lag {
    /// Reader: so many bytes are there and not read, the oldest of them since then. Of what cannot
    /// be asked how much there is, such as a pipe, nothing is said.
    pub(crate) fn set_unread(&self, bytes: u64, since: Option<Instant>) {
        let mut stages = self.stages();
        (stages.unread, stages.unread_since) = (bytes, since);
    }

    /// Reader: so many bytes were received since the start.
    pub(crate) fn set_received(&self, bytes: u64) {
        self.stages().received = bytes;
    }

    /// Engine: begins with bytes that arrived then. Those before are verified, so that nothing that
    /// waits is older.
    pub(crate) fn begin(&self, arrived: Instant) {
        self.stages().verifying_since = Some(arrived);
    }

    /// Engine: is done with these bytes.
    pub(crate) fn verified(&self, bytes: u64) {
        let mut stages = self.stages();
        stages.verified += bytes;
        stages.verifying_since = None;
    }

    /// How many bytes are waiting.
    pub(super) fn bytes(&self) -> u64 {
        let stages = self.stages();
        stages.unread + stages.received.saturating_sub(stages.verified)
    }

    /// How long the oldest of them have been waiting.
    pub(super) fn age(&self, now: Instant) -> Duration {
        let stages = self.stages();
        let since = [stages.unread_since, stages.verifying_since];
        let oldest = since.into_iter().flatten().min();
        oldest.map_or(Duration::ZERO, |since| now.saturating_duration_since(since))
    }

    fn stages(&self) -> MutexGuard<'_, Stages> {
        // Nobody panics while holding it; and if, the numbers are still numbers.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn nothing_waits_at_first() {
        let lag = Lag::default();
        assert_eq!((lag.bytes(), lag.age(Instant::now())), (0, Duration::ZERO));
    }

    #[test]
    fn what_was_received_waits_until_it_is_verified() {
        let (lag, start) = (Lag::default(), Instant::now());
        lag.set_received(15);
        lag.begin(start);
        assert_eq!((lag.bytes(), lag.age(start + 4 * SECOND)), (15, 4 * SECOND));
        lag.verified(10);
        lag.begin(start + SECOND);
        assert_eq!((lag.bytes(), lag.age(start + 4 * SECOND)), (5, 3 * SECOND));
        lag.verified(5);
        let now = start + 5 * SECOND;
        assert_eq!((lag.bytes(), lag.age(now)), (0, Duration::ZERO));
    }

    #[test]
    fn the_older_of_unread_and_verified_counts() {
        let (lag, start) = (Lag::default(), Instant::now());
        lag.set_unread(100, Some(start));
        lag.set_received(10);
        lag.begin(start + SECOND);
        let now = start + 2 * SECOND;
        assert_eq!((lag.bytes(), lag.age(now)), (110, 2 * SECOND));
        lag.set_unread(0, None);
        assert_eq!((lag.bytes(), lag.age(now)), (10, SECOND));
    }

    #[test]
    fn verifying_ahead_of_the_count_does_no_harm() {
        let (lag, start) = (Lag::default(), Instant::now());
        lag.begin(start);
        lag.verified(10);
        assert_eq!((lag.bytes(), lag.age(start + SECOND)), (0, Duration::ZERO));
        lag.set_received(15);
        assert_eq!(lag.bytes(), 5);
    }
}
