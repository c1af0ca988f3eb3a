//! How long things take: quantiles of the last minutes, and sums of all.

use std::mem;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

/// A page of history. Quantiles cover the page that is being written and the one before, so the
/// last 5 to 10 minutes: a run goes on for months, and what was slow in spring says nothing.
const PAGE: Duration = Duration::from_secs(5 * 60);
/// What is measured in: the shortest that counts.
const MIN_MICROSECONDS: u64 = 1;
/// One hour; what takes longer is counted as that.
const MAX_MICROSECONDS: u64 = 3_600_000_000;
/// One in a thousand is finer than any dashboard.
const SIGNIFICANT_DIGITS: u8 = 3;

/// The quantiles that are reported, with their names.
pub(super) const QUANTILES: [(f64, &str); 4] =
    [(0.5, "0.5"), (0.9, "0.9"), (0.99, "0.99"), (0.999, "0.999")];

/// Latencies that one thread measures.
#[derive(Debug)]
pub(crate) struct Latencies(Mutex<Pages>);

#[derive(Debug)]
struct Pages {
    current: Histogram<u64>,
    previous: Histogram<u64>,
    /// When the current page was begun.
    begun: Instant,
    count: u64,
    sum: Duration,
}

/// What is reported.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Summary {
    /// One for each of [`QUANTILES`], in seconds; none while there is nothing.
    pub(super) quantiles: Option<[f64; QUANTILES.len()]>,
    /// How many were ever measured.
    pub(super) count: u64,
    /// How long they took together.
    pub(super) sum: Duration,
}

impl Latencies {
    pub(super) fn new(now: Instant) -> Latencies {
        let empty =
            Histogram::new_with_bounds(MIN_MICROSECONDS, MAX_MICROSECONDS, SIGNIFICANT_DIGITS)
                .expect("the bounds are those of a histogram");
        Latencies(Mutex::new(Pages {
            current: empty.clone(),
            previous: empty,
            begun: now,
            count: 0,
            sum: Duration::ZERO,
        }))
    }

    /// Takes note of so many things that all began and ended at the same moments.
    pub(crate) fn record(&self, began: Instant, ended: Instant, count: u64) {
        if count == 0 {
            return;
        }
        let took = ended.saturating_duration_since(began);
        let microseconds = u64::try_from(took.as_micros()).unwrap_or(MAX_MICROSECONDS);
        let mut pages = self.pages();
        pages.turn(ended);
        pages
            .current
            .saturating_record_n(microseconds.max(MIN_MICROSECONDS), count);
        pages.count = pages.count.saturating_add(count);
        let factor = u32::try_from(count).unwrap_or(u32::MAX);
        pages.sum = pages.sum.saturating_add(took.saturating_mul(factor));
    }

    pub(super) fn summary(&self, now: Instant) -> Summary {
        let mut pages = self.pages();
        pages.turn(now);
        let mut recent = pages.current.clone();
        recent
            .add(&pages.previous)
            .expect("the histograms have the same bounds");
        let seconds = |quantile| recent.value_at_quantile(quantile) as f64 / 1e6;
        Summary {
            quantiles: (!recent.is_empty()).then(|| QUANTILES.map(|(of, _)| seconds(of))),
            count: pages.count,
            sum: pages.sum,
        }
    }

    fn pages(&self) -> MutexGuard<'_, Pages> {
        // A panic in between leaves a histogram as it was or with one more in it.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pages {
    fn turn(&mut self, now: Instant) {
        let age = now.saturating_duration_since(self.begun);
        if age < PAGE {
            return;
        }
        mem::swap(&mut self.current, &mut self.previous);
        self.current.reset();
        if age >= 2 * PAGE {
            self.previous.reset();
        }
        self.begun = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLISECOND: Duration = Duration::from_millis(1);

    #[track_caller]
    fn assert_about(seconds: f64, expected: f64) {
        assert!((seconds - expected).abs() <= expected / 500.0, "{seconds}");
    }

    #[test]
    fn nothing_has_no_quantiles() {
        let start = Instant::now();
        let nothing = Latencies::new(start);
        nothing.record(start, start + MILLISECOND, 0);
        let summary = nothing.summary(start);
        assert_eq!(summary.quantiles, None);
        assert_eq!((summary.count, summary.sum), (0, Duration::ZERO));
    }

    #[test]
    fn a_block_counts_for_all_its_records() {
        let start = Instant::now();
        let latencies = Latencies::new(start);
        latencies.record(start, start + MILLISECOND, 989);
        latencies.record(start, start + 10 * MILLISECOND, 10);
        latencies.record(start, start + 2000 * MILLISECOND, 1);
        let summary = latencies.summary(start);
        let [median, ninety, two_nines, three_nines] = summary.quantiles.expect("there are some");
        assert_about(median, 0.001);
        assert_about(ninety, 0.001);
        assert_about(two_nines, 0.01);
        assert_about(three_nines, 0.01);
        assert_eq!(summary.count, 1000);
        assert_eq!(summary.sum, 3089 * MILLISECOND);
    }

    #[test]
    fn what_is_out_of_bounds_counts_at_the_bound() {
        let start = Instant::now();
        let latencies = Latencies::new(start);
        latencies.record(start, start, 1);
        let [median, ..] = latencies.summary(start).quantiles.expect("there is one");
        assert_about(median, 1e-6);
        let day = Duration::from_secs(24 * 3600);
        latencies.record(start, start + day, u64::MAX);
        let summary = latencies.summary(start + day);
        assert_about(summary.quantiles.expect("there is one")[0], 3600.0);
        assert_eq!(summary.count, u64::MAX);
    }

    #[test]
    fn quantiles_forget_and_sums_do_not() {
        let start = Instant::now();
        let latencies = Latencies::new(start);
        latencies.record(start, start + MILLISECOND, 5);
        let count = |at| {
            let summary = latencies.summary(at);
            (summary.quantiles.is_some(), summary.count)
        };
        assert_eq!(count(start + PAGE), (true, 5));
        assert_eq!(count(start + 2 * PAGE - MILLISECOND), (true, 5));
        assert_eq!(count(start + 2 * PAGE), (false, 5));
        // After a long silence nothing is recent.
        latencies.record(start + 2 * PAGE, start + 2 * PAGE + MILLISECOND, 1);
        assert_eq!(count(start + 9 * PAGE), (false, 6));
    }
}
