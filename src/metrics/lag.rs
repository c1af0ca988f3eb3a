//! How far verification is behind.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// What there is of one kind of source and was not verified yet: first unread, then in the channel
/// until the engine is done with it.
#[derive(Debug, Default)]
pub(crate) struct Lag(Mutex<Stages>);

#[derive(Debug, Default)]
struct Stages {
    unread: Stage,
    queued: Stage,
}

#[derive(Clone, Copy, Debug, Default)]
struct Stage {
    bytes: u64,
    /// Since when the oldest of these bytes are there; none if there are none.
    since: Option<Instant>,
}

impl Lag {
    /// Reader: so many bytes are there and not read, the oldest of them since then. Of what cannot
    /// be asked how much there is, such as a pipe, nothing is said.
    pub(crate) fn set_unread(&self, bytes: u64, since: Option<Instant>) {
        self.stages().unread = Stage { bytes, since };
    }

    /// Reader: these bytes, which arrived then, are about to be sent to the engine.
    pub(crate) fn queue(&self, bytes: u64, arrived: Instant) {
        let queued = &mut self.stages().queued;
        queued.bytes += bytes;
        queued.since.get_or_insert(arrived);
    }

    /// Engine: begins with bytes that arrived then. Those before are verified, so that nothing that
    /// waits is older.
    pub(crate) fn begin(&self, arrived: Instant) {
        self.stages().queued.since = Some(arrived);
    }

    /// Engine: is done with these bytes.
    pub(crate) fn verified(&self, bytes: u64) {
        let queued = &mut self.stages().queued;
        queued.bytes = queued.bytes.saturating_sub(bytes);
        if queued.bytes == 0 {
            queued.since = None;
        }
    }

    /// How many bytes are waiting.
    pub(super) fn bytes(&self) -> u64 {
        let stages = self.stages();
        stages.unread.bytes + stages.queued.bytes
    }

    /// How long the oldest of them have been waiting.
    pub(super) fn age(&self, now: Instant) -> Duration {
        let stages = self.stages();
        let age = |stage: Stage| {
            let since = stage.since?;
            Some(now.saturating_duration_since(since))
        };
        age(stages.unread)
            .max(age(stages.queued))
            .unwrap_or_default()
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
    fn what_waits_ages_until_it_is_verified() {
        let (lag, start) = (Lag::default(), Instant::now());
        lag.queue(10, start);
        lag.queue(5, start + SECOND);
        assert_eq!((lag.bytes(), lag.age(start + 3 * SECOND)), (15, 3 * SECOND));
        lag.begin(start);
        assert_eq!(lag.age(start + 4 * SECOND), 4 * SECOND);
        lag.verified(10);
        lag.begin(start + SECOND);
        assert_eq!((lag.bytes(), lag.age(start + 4 * SECOND)), (5, 3 * SECOND));
        lag.verified(5);
        assert_eq!(
            (lag.bytes(), lag.age(start + 5 * SECOND)),
            (0, Duration::ZERO)
        );
    }

    #[test]
    fn the_older_of_unread_and_queued_counts() {
        let (lag, start) = (Lag::default(), Instant::now());
        lag.set_unread(100, Some(start));
        lag.queue(10, start + SECOND);
        assert_eq!(
            (lag.bytes(), lag.age(start + 2 * SECOND)),
            (110, 2 * SECOND)
        );
        lag.set_unread(0, None);
        assert_eq!((lag.bytes(), lag.age(start + 2 * SECOND)), (10, SECOND));
    }

    #[test]
    fn bytes_that_nobody_queued_do_no_harm() {
        let (lag, start) = (Lag::default(), Instant::now());
        lag.begin(start);
        lag.verified(10);
        assert_eq!((lag.bytes(), lag.age(start + SECOND)), (0, Duration::ZERO));
    }
}
