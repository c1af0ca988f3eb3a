//! Values that several threads read and write.
//!
//! No order between two of them is promised: a reader may see one new and the other old.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::source::SourceKind;

/// A number that goes up and down.
#[derive(Debug, Default)]
pub(crate) struct Gauge(AtomicU64);

impl Gauge {
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    pub(crate) fn add(&self, difference: u64) {
        self.0.fetch_add(difference, Ordering::Relaxed);
    }

    /// Never goes below zero: a gauge that wrapped around would show as 2^64.
    pub(crate) fn sub(&self, difference: u64) {
        let less = |value: u64| Some(value.saturating_sub(difference));
        // Always `Ok`, as `less` always gives a value.
        let _ = self
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    }
}

/// A value for each kind of source.
#[derive(Debug, Default)]
pub(crate) struct ByKind<T>([T; SourceKind::ALL.len()]);

impl<T> ByKind<T> {
    pub(crate) fn of(&self, kind: SourceKind) -> &T {
        &self.0[kind as usize]
    }
}

/// A moment that is not before a first one.
#[derive(Debug)]
pub(super) struct Moment {
    first: Instant,
    nanoseconds: AtomicU64,
}

impl Moment {
    pub(super) fn new(first: Instant) -> Moment {
        Moment {
            first,
            nanoseconds: AtomicU64::new(0),
        }
    }

    pub(super) fn set(&self, moment: Instant) {
        let since_first = moment.saturating_duration_since(self.first);
        // Enough for five centuries.
        let nanoseconds = u64::try_from(since_first.as_nanos()).unwrap_or(u64::MAX);
        self.nanoseconds.store(nanoseconds, Ordering::Relaxed);
    }

    pub(super) fn age(&self, now: Instant) -> Duration {
        let moment = Duration::from_nanos(self.nanoseconds.load(Ordering::Relaxed));
        now.saturating_duration_since(self.first)
            .saturating_sub(moment)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gauge_stops_at_zero() {
        let gauge = Gauge::default();
        gauge.add(3);
        gauge.sub(1);
        assert_eq!(gauge.get(), 2);
        gauge.sub(5);
        assert_eq!(gauge.get(), 0);
    }

    #[test]
    fn kinds_are_kept_apart() {
        let gauges = ByKind::<Gauge>::default();
        for (index, kind) in SourceKind::ALL.into_iter().enumerate() {
            gauges.of(kind).set(index as u64);
        }
        for (index, kind) in SourceKind::ALL.into_iter().enumerate() {
            assert_eq!(gauges.of(kind).get(), index as u64);
        }
    }

    #[test]
    fn a_moment_ages() {
        let first = Instant::now();
        let second = Duration::from_secs(1);
        let moment = Moment::new(first);
        assert_eq!(moment.age(first + 3 * second), 3 * second);
        moment.set(first + 2 * second);
        assert_eq!(moment.age(first + 3 * second), second);
        // Threads look at the clock one after the other.
        assert_eq!(moment.age(first + second), Duration::ZERO);
    }
}
