//! Files that came under a path and were gone before anybody could open them: only events tell of
//! them.

use super::watch::Happened;

/// What events say of one path, held against what scans find there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Arrivals {
    /// Events since the last scan.
    events: u32,
    /// Files that came since the last scan.
    came: u32,
    /// Those of them, and of those that a scan found before, that are known to have held something.
    filled: u32,
    /// Whether the last that came has not been written to.
    is_empty: bool,
    /// Those that no scan has found so far. The next may, as they may have come after the last had
    /// looked.
    unexplained: u32,
    /// Those that a scan found before they were known to hold something.
    ahead: u32,
}

impl Arrivals {
    /// Takes an event in. `is_known` says of a file that was moved here that it came as one of the
    /// followed paths first.
    pub(super) fn note(&mut self, happened: Happened, is_known: bool) {
        self.events += 1;
        match happened {
            Happened::Created => {
                self.forget_empty();
                self.came += 1;
                self.is_empty = true;
            }
            Happened::MovedHere(_) => {
                self.forget_empty();
                self.came += 1;
                self.filled += u32::from(!is_known);
            }
            Happened::Deleted | Happened::MovedAway(_) => self.forget_empty(),
            Happened::Content if self.is_empty => {
                self.is_empty = false;
                self.filled += 1;
            }
            Happened::Content | Happened::Closed | Happened::Attributes => {}
        }
    }

    /// Events were lost: nothing can be concluded from those that were not.
    pub(super) fn forget(&mut self) {
        *self = Arrivals::default();
    }

    /// Whether more files may have come since the last scan than the one that is there now.
    pub(super) fn may_hide_others(&self, is_there: bool) -> bool {
        // A change without an event is one of which this system is not told.
        self.events == 0 || self.came > u32::from(is_there)
    }

    /// Whether there were events since the last scan.
    pub(super) fn are_told(&self) -> bool {
        self.events > 0
    }

    /// Whether there is anything for [`settle`](Self::settle) to do.
    pub(super) fn is_idle(&self) -> bool {
        self.events == 0 && self.unexplained == 0
    }

    /// A scan has found `others` beside the one that is there now, and has found that to be another
    /// than before. Returns how many were lost for good.
    pub(super) fn settle(&mut self, others: u32, is_there: bool, has_changed: bool) -> u32 {
        let there = u32::from(is_there && (has_changed || self.came > 0 || self.filled > 0));
        let known = others + there + self.ahead;
        let arrived = self.unexplained + self.filled;
        let missing = arrived.saturating_sub(known);
        let lost = missing.min(self.unexplained);
        *self = Arrivals {
            is_empty: self.is_empty,
            unexplained: missing - lost,
            ahead: match self.is_empty {
                true => u32::from(is_there),
                false => 0,
            },
            ..Arrivals::default()
        };
        lost
    }

    fn forget_empty(&mut self) {
        if self.is_empty {
            self.is_empty = false;
            self.ahead = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Happened::*;
    use super::*;

    fn noted(arrivals: &mut Arrivals, events: &[Happened]) {
        events.iter().for_each(|event| arrivals.note(*event, false));
    }

    #[test]
    fn what_is_found_is_not_lost() {
        let mut arrivals = Arrivals::default();
        noted(&mut arrivals, &[MovedAway(1), Created, Content, Closed]);
        assert!(!arrivals.may_hide_others(true));
        assert_eq!(arrivals.settle(0, true, true), 0);
        assert_eq!(arrivals.settle(0, true, false), 0);
        noted(&mut arrivals, &[Created]);
        assert_eq!(arrivals.settle(0, true, true), 0);
        noted(&mut arrivals, &[Content, MovedAway(1), Created, Content]);
        assert_eq!(arrivals.settle(0, true, true), 0);
        assert_eq!(arrivals.settle(0, true, false), 0);
    }

    #[test]
    fn what_nobody_finds_is_lost_once() {
        let mut arrivals = Arrivals::default();
        let come_and_gone = [Created, Content, MovedAway(1)];
        noted(&mut arrivals, &come_and_gone);
        noted(&mut arrivals, &[Created, Content]);
        assert!(arrivals.may_hide_others(true));
        assert_eq!(
            arrivals.settle(0, true, true),
            0,
            "the next scan may find it"
        );
        assert_eq!(arrivals.settle(0, true, false), 1);
        assert_eq!(arrivals.settle(0, true, false), 0);
        noted(&mut arrivals, &come_and_gone);
        noted(&mut arrivals, &[Created, Content]);
        assert_eq!(arrivals.settle(1, true, true), 0, "found beside it");
        assert_eq!(arrivals.settle(0, true, false), 0);
    }

    #[test]
    fn what_came_after_the_look_is_found_by_the_next() {
        let mut arrivals = Arrivals::default();
        noted(&mut arrivals, &[MovedHere(1), MovedHere(2)]);
        assert_eq!(arrivals.settle(0, true, true), 0);
        assert_eq!(arrivals.settle(0, true, true), 0);
        assert_eq!(arrivals.settle(0, true, false), 0);
    }

    #[test]
    fn what_held_nothing_or_only_changed_its_name_is_not_lost() {
        let mut arrivals = Arrivals::default();
        noted(&mut arrivals, &[Created, Deleted, Created, Content]);
        arrivals.note(MovedHere(1), true);
        for _ in 0..3 {
            assert_eq!(arrivals.settle(0, true, true), 0);
        }
    }
}
