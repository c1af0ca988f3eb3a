//! Warnings that somebody else could cause without end.

use std::time::{Duration, Instant};

const WINDOW: Duration = Duration::from_secs(60);

/// Lets a few warnings a minute through and counts the others.
#[derive(Debug)]
pub(super) struct Sparing {
    max_a_minute: u32,
    /// When the first of the minute was let through.
    since: Option<Instant>,
    told: u32,
    untold: u64,
}

impl Sparing {
    pub(super) const fn new(max_a_minute: u32) -> Sparing {
        Sparing {
            max_a_minute,
            since: None,
            told: 0,
            untold: 0,
        }
    }

    /// Whether one more may be told, and then how many were not since the last.
    pub(super) fn admit(&mut self, now: Instant) -> Option<u64> {
        if self
            .since
            .is_none_or(|since| now.duration_since(since) >= WINDOW)
        {
            self.since = Some(now);
            self.told = 0;
        }
        if self.told == self.max_a_minute {
            self.untold += 1;
            return None;
        }
        self.told += 1;
        Some(std::mem::take(&mut self.untold))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_a_minute_then_a_count() {
        let mut sparing = Sparing::new(2);
        let start = Instant::now();
        let admitted: Vec<_> = [0, 1, 2, 59, 60, 61, 62, 200]
            .map(|second| sparing.admit(start + Duration::from_secs(second)))
            .to_vec();
        let expected = [
            Some(0),
            Some(0),
            None,
            None,
            Some(2),
            Some(0),
            None,
            Some(1),
        ];
        assert_eq!(admitted, expected);
    }
}
