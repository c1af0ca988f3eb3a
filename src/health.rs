//! Whether the parts of the daemon get on with their work.
//!
//! Each part says when it begins with something ([`Beat::beat`]) and when nothing is expected of it
//! ([`Beat::rest`]): it has nothing to do, has ended, or waits for another part, which answers for
//! itself. What is begun and not followed by a word for long is stuck. A part that waits for the
//! world outside ([`Beat::wait_for`]) is not stuck, as that is backpressure at work and starting the
//! program again would not help; but the pipeline stands still, and that can be asked for too.

use std::fmt;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long a part may be silent, or wait for the world, until the pipeline counts as standing
/// still: far longer than any block takes, and short enough for a person who looks.
pub(crate) const STALL: Duration = Duration::from_secs(10);

/// The parts of the daemon, and how far it is.
#[derive(Debug)]
pub(crate) struct Health {
    start: Instant,
    parts: Mutex<Vec<Arc<Beat>>>,
    phase: AtomicU8,
}

/// How far the daemon is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Sources are being bound, state is being loaded.
    Starting,
    /// Whatever comes is taken.
    Ready,
    /// Nothing more is taken; what was taken is still worked on.
    Stopping,
}

/// What a part may wait for without being stuck.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outside {
    /// The disk under the state directory.
    Disk,
    /// Whoever reads the output.
    Output,
}

/// Why the pipeline does not move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Standstill {
    /// What stands still: a part's name, or what it waits for.
    what: &'static str,
    age: Duration,
}

/// A part's word on itself.
#[derive(Debug)]
pub(crate) struct Beat {
    name: &'static str,
    start: Instant,
    /// An [`Activity`] with the millisecond since `start` at which it began, packed into one so that
    /// nobody sees half of a change.
    state: AtomicU64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Activity {
    Rest,
    Work,
    Wait(Outside),
}

impl Health {
    /// A daemon that is starting and has no parts yet.
    pub(crate) fn new(now: Instant) -> Health {
        Health {
            start: now,
            parts: Mutex::default(),
            phase: AtomicU8::new(Phase::Starting as u8),
        }
    }

    /// A new part, at rest. It is remembered for good: a thread that dies in the middle of its work
    /// is stuck.
    pub(crate) fn part(&self, name: &'static str) -> Arc<Beat> {
        let beat = Arc::new(Beat {
            name,
            start: self.start,
            state: AtomicU64::new(pack(Activity::Rest, 0)),
        });
        self.parts().push(Arc::clone(&beat));
        beat
    }

    pub(crate) fn set_phase(&self, phase: Phase) {
        self.phase.store(phase as u8, Ordering::Relaxed);
    }

    pub(crate) fn phase(&self) -> Phase {
        let phase = self.phase.load(Ordering::Relaxed);
        let known = [Phase::Starting, Phase::Ready];
        known
            .into_iter()
            .find(|&known| known as u8 == phase)
            .unwrap_or(Phase::Stopping)
    }

    /// The part that has been at the same work for longest, and for `max_age` or longer.
    pub(crate) fn stuck(&self, now: Instant, max_age: Duration) -> Option<&'static str> {
        self.longest(now, max_age, |activity| activity == Activity::Work)
            .map(|standstill| standstill.what)
    }

    /// What keeps the pipeline from moving, and has for `min_age` or longer: a part that is stuck,
    /// or else the world outside.
    pub(crate) fn standstill(&self, now: Instant, min_age: Duration) -> Option<Standstill> {
        self.longest(now, min_age, |activity| activity == Activity::Work)
            .or_else(|| self.longest(now, min_age, |activity| activity != Activity::Rest))
    }

    fn longest(
        &self,
        now: Instant,
        min_age: Duration,
        counts: impl Fn(Activity) -> bool,
    ) -> Option<Standstill> {
        let of_part = |beat: &Arc<Beat>| {
            let (activity, age) = beat.activity(now);
            let what = match activity {
                Activity::Wait(outside) => outside.as_str(),
                Activity::Rest | Activity::Work => beat.name,
            };
            (counts(activity) && age >= min_age).then_some(Standstill { what, age })
        };
        self.parts()
            .iter()
            .filter_map(of_part)
            .max_by_key(|standstill| standstill.age)
    }

    fn parts(&self) -> MutexGuard<'_, Vec<Arc<Beat>>> {
        // Nobody can leave the list half changed.
        self.parts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Beat {
    /// Begins with the next piece of work: at most a block, a file, or a directory.
    pub(crate) fn beat(&self, now: Instant) {
        self.set(Activity::Work, now);
    }

    /// Has nothing to do, has ended, or waits for another part.
    pub(crate) fn rest(&self) {
        self.state.store(pack(Activity::Rest, 0), Ordering::Relaxed);
    }

    /// Waits for the world outside, from now on; [`Beat::beat`] or [`Beat::rest`] ends it.
    pub(crate) fn wait_for(&self, outside: Outside, now: Instant) {
        self.set(Activity::Wait(outside), now);
    }

    fn set(&self, activity: Activity, now: Instant) {
        let age = now.saturating_duration_since(self.start);
        let milliseconds = u64::try_from(age.as_millis()).unwrap_or(u64::MAX);
        self.state
            .store(pack(activity, milliseconds), Ordering::Relaxed);
    }

    fn activity(&self, now: Instant) -> (Activity, Duration) {
        let (activity, milliseconds) = unpack(self.state.load(Ordering::Relaxed));
        let age = now
            .saturating_duration_since(self.start)
            .saturating_sub(Duration::from_millis(milliseconds));
        (activity, age)
    }
}

impl Outside {
    const fn as_str(self) -> &'static str {
        match self {
            Outside::Disk => "disk",
            Outside::Output => "output",
        }
    }
}

impl Phase {
    /// The phase as the endpoint calls it.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Phase::Starting => "starting",
            Phase::Ready => "ready",
            Phase::Stopping => "stopping",
        }
    }
}

impl fmt::Display for Standstill {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} stalled for {} s", self.what, self.age.as_secs())
    }
}

/// The activity in the two lowest bits, the milliseconds above: enough for a hundred million years.
fn pack(activity: Activity, milliseconds: u64) -> u64 {
    let activity = match activity {
        Activity::Rest => 0,
        Activity::Work => 1,
        Activity::Wait(Outside::Disk) => 2,
        Activity::Wait(Outside::Output) => 3,
    };
    milliseconds << 2 | activity
}

fn unpack(state: u64) -> (Activity, u64) {
    let activity = match state & 3 {
        0 => Activity::Rest,
        1 => Activity::Work,
        2 => Activity::Wait(Outside::Disk),
        _ => Activity::Wait(Outside::Output),
    };
    (activity, state >> 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_part_is_stuck_when_its_work_takes_too_long() {
        let start = Instant::now();
        let health = Health::new(start);
        let engine = health.part("engine");
        let stuck = |after| health.stuck(start + after * SECOND, 2 * SECOND);
        assert_eq!(stuck(100), None, "it was not asked to do anything");
        engine.beat(start + 100 * SECOND);
        assert_eq!(stuck(101), None);
        assert_eq!(stuck(102), Some("engine"));
        engine.beat(start + 102 * SECOND);
        assert_eq!(stuck(103), None);
        engine.rest();
        assert_eq!(stuck(1000), None);
    }

    #[test]
    fn waiting_for_the_world_is_a_standstill_and_not_stuck() {
        let start = Instant::now();
        let health = Health::new(start);
        let writer = health.part("writer");
        let later = start + 12 * SECOND;
        for (outside, text) in [
            (Outside::Output, "output stalled for 12 s"),
            (Outside::Disk, "disk stalled for 12 s"),
        ] {
            writer.wait_for(outside, start);
            assert_eq!(health.stuck(later, SECOND), None);
            let standstill = health.standstill(later, STALL).expect("it is one");
            assert_eq!(standstill.to_string(), text);
            assert_eq!(health.standstill(later, 13 * SECOND), None);
        }
        writer.rest();
        assert_eq!(health.standstill(later, SECOND), None);
    }

    #[test]
    fn the_longest_comes_first_and_what_is_stuck_before_what_waits() {
        let start = Instant::now();
        let health = Health::new(start);
        let (engine, follower, writer) = (
            health.part("engine"),
            health.part("file follower"),
            health.part("writer"),
        );
        writer.wait_for(Outside::Output, start);
        engine.beat(start + 2 * SECOND);
        follower.beat(start + SECOND);
        let now = start + 5 * SECOND;
        assert_eq!(health.stuck(now, SECOND), Some("file follower"));
        let text = |min_age| {
            health
                .standstill(now, min_age)
                .map(|standstill| standstill.to_string())
        };
        assert_eq!(
            text(SECOND).as_deref(),
            Some("file follower stalled for 4 s")
        );
        assert_eq!(text(5 * SECOND).as_deref(), Some("output stalled for 5 s"));
    }

    #[test]
    fn a_part_that_died_at_work_is_remembered() {
        let start = Instant::now();
        let health = Health::new(start);
        health.part("engine").beat(start);
        assert_eq!(health.stuck(start + SECOND, SECOND), Some("engine"));
    }

    #[test]
    fn phases_come_back_as_they_were_set() {
        let health = Health::new(Instant::now());
        assert_eq!(health.phase(), Phase::Starting);
        for phase in [Phase::Ready, Phase::Stopping, Phase::Starting] {
            health.set_phase(phase);
            assert_eq!(health.phase(), phase);
        }
    }

    #[test]
    fn nothing_is_lost_in_packing() {
        for activity in [
            Activity::Rest,
            Activity::Work,
            Activity::Wait(Outside::Disk),
            Activity::Wait(Outside::Output),
        ] {
            for milliseconds in [0, 1, u64::MAX >> 2] {
                let packed = pack(activity, milliseconds);
                assert_eq!(unpack(packed), (activity, milliseconds));
            }
        }
    }
}
