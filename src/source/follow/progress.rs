//! What others may know of the following thread while it works.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant};

/// Why the lock is never poisoned.
const NO_PANIC: &str = "nothing panics while it is held";

/// Numbers that the following thread keeps up to date. Each is right by itself; together they are
/// of about the same moment.
#[derive(Debug)]
pub(crate) struct FollowProgress {
    begun: Instant,
    files: AtomicU64,
    lag_bytes: AtomicU64,
    /// Milliseconds after `begun`, plus 1; 0 where nothing lags.
    lag_since: AtomicU64,
    beats: AtomicU64,
    waiting: AtomicBool,
    /// Whether everything that was there at the start was looked at.
    has_begun: Mutex<bool>,
    has_begun_now: Condvar,
}

impl FollowProgress {
    pub(crate) fn new() -> Self {
        FollowProgress {
            begun: Instant::now(),
            files: AtomicU64::new(0),
            lag_bytes: AtomicU64::new(0),
            lag_since: AtomicU64::new(0),
            beats: AtomicU64::new(0),
            waiting: AtomicBool::new(false),
            has_begun: Mutex::new(false),
            has_begun_now: Condvar::new(),
        }
    }

    /// How many files are open.
    pub(crate) fn files(&self) -> u64 {
        self.files.load(Relaxed)
    }

    /// How many bytes the files are known to hold that were not read yet.
    pub(crate) fn lag_bytes(&self) -> u64 {
        self.lag_bytes.load(Relaxed)
    }

    /// For how long some file has not been read to its end; the longest.
    pub(crate) fn lag(&self, now: Instant) -> Duration {
        match self.lag_since.load(Relaxed) {
            0 => Duration::ZERO,
            since => {
                let passed = now.saturating_duration_since(self.begun);
                passed.saturating_sub(Duration::from_millis(since - 1))
            }
        }
    }

    /// Grows as long as the thread is alive and not [waiting](Self::is_waiting).
    pub(crate) fn beats(&self) -> u64 {
        self.beats.load(Relaxed)
    }

    /// Whether the thread sleeps until something happens or the engine takes what it has.
    pub(crate) fn is_waiting(&self) -> bool {
        self.waiting.load(Relaxed)
    }

    /// Waits until the first turn is over: what was there is open.
    pub(crate) fn wait_begun(&self, at_most: Duration) {
        let has_begun = self.has_begun.lock().expect(NO_PANIC);
        let waited = self
            .has_begun_now
            .wait_timeout_while(has_begun, at_most, |has_begun| !*has_begun);
        drop(waited.expect(NO_PANIC));
    }

    pub(super) fn set_begun(&self) {
        *self.has_begun.lock().expect(NO_PANIC) = true;
        self.has_begun_now.notify_all();
    }

    pub(super) fn beat(&self) {
        self.beats.fetch_add(1, Relaxed);
    }

    pub(super) fn set_waiting(&self, waiting: bool) {
        self.waiting.store(waiting, Relaxed);
    }

    pub(super) fn set(&self, files: usize, lag_bytes: u64, lag_since: Option<Instant>) {
        let since = lag_since.map_or(0, |since| {
            since.saturating_duration_since(self.begun).as_millis() as u64 + 1
        });
        self.files.store(files as u64, Relaxed);
        self.lag_bytes.store(lag_bytes, Relaxed);
        self.lag_since.store(since, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lag_is_counted_from_where_it_began() {
        let progress = FollowProgress::new();
        let now = progress.begun + Duration::from_secs(5);
        assert_eq!(progress.lag(now), Duration::ZERO);
        progress.set(1, 10, Some(progress.begun + Duration::from_secs(3)));
        assert_eq!(progress.lag(now), Duration::from_secs(2));
        assert_eq!(progress.lag(progress.begun), Duration::ZERO);
        progress.set(1, 0, None);
        assert_eq!((progress.lag(now), progress.files()), (Duration::ZERO, 1));
    }
}
