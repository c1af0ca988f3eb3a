//! The state of a verifier as it is saved, and a verifier that goes on from it.
//!
//! What a verifier knows of open traces is written trace by trace, so that nobody need hold it
//! twice, and read back into a new one. From there on that says what the first would have said: the
//! same findings, with the same ids. A test holds it to that at every record of many traces.
//!
//! The forms are serde's, made for a format that does not describe itself; [`SAVED_FORMAT`] is
//! their number. What is read back is checked as far as it takes never to panic over it.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::state::TraceState;
use super::verifier::Verifier;
use crate::finding::Report;

/// Tells what was saved in another form: of traces, of what is known across them, and of positions
/// in their sources. It changes with each of these.
pub const SAVED_FORMAT: u32 = 1;

/// What a verifier knows across traces.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedMeta {
    /// Whether any trace was given up, or is by being left out: a trace that comes back may have
    /// been it.
    pub any_evicted: bool,
    /// The time, on the verifier's clock.
    pub now: Duration,
    /// How many open traces are left out, as records of them came from sources that cannot be read
    /// again. Should one go on, it is a partial trace.
    pub dropped: u64,
}

/// An open trace, as it is written.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct SavedTrace<'v> {
    name: &'v str,
    used_at: Duration,
    state: &'v TraceState,
}

/// An open trace, as it is read back.
#[derive(Debug, Deserialize)]
pub struct RestoredTrace {
    name: String,
    used_at: Duration,
    state: TraceState,
}

impl SavedTrace<'_> {
    /// The trace's name: its key, or the source's name; a long one is cut.
    #[must_use]
    pub fn name(&self) -> &str {
        self.name
    }

    /// How many records it has had.
    #[must_use]
    pub fn records(&self) -> u64 {
        self.state.records
    }

    /// How many of them were `task.bound`.
    #[must_use]
    pub fn placements(&self) -> u64 {
        self.state.placements
    }

    /// How many placements wait for the one that explains them (R16).
    #[must_use]
    pub fn pending_references(&self) -> usize {
        self.state.pending()
    }

    /// How long it had had no record when it was saved, with the rest that was saved then.
    #[must_use]
    pub fn age(&self, meta: &SavedMeta) -> Duration {
        meta.now.saturating_sub(self.used_at)
    }
}

impl RestoredTrace {
    /// What was written.
    #[must_use]
    pub fn saved(&self) -> SavedTrace<'_> {
        SavedTrace {
            name: &self.name,
            used_at: self.used_at,
            state: &self.state,
        }
    }
}

/// Saving, and going on from what was saved.
///
/// A verifier is saved behind a whole line of each source, with the sources' [positions]. What was
/// found so far should be in safe hands by then.
///
/// [positions]: crate::Framer::position
impl Verifier {
    /// Gives each open trace that can go on after a restart, least recently used first. Traces with
    /// records from sources that cannot be read again ([`Source::is_resumable`]) are left out.
    ///
    /// # Errors
    ///
    /// The first that `each` gives; nothing comes after it.
    ///
    /// [`Source::is_resumable`]: crate::Source::is_resumable
    pub fn save_traces<E>(
        &self,
        mut each: impl FnMut(SavedTrace<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut kept = self.traces.iter_by_use(|state| !state.from_stream);
        kept.try_for_each(|(trace, used_at)| {
            each(SavedTrace {
                name: &trace.name,
                used_at,
                state: &trace.state,
            })
        })
    }

    /// What goes with the traces of [`Verifier::save_traces`].
    #[must_use]
    pub fn saved_meta(&self) -> SavedMeta {
        let dropped = self.traces.iter_by_use(|state| state.from_stream).count() as u64;
        SavedMeta {
            any_evicted: self.tally.any_evicted || dropped > 0,
            now: self.now,
            dropped,
        }
    }

    /// Takes over what another verifier knew across traces, before the first trace and the first
    /// record. The trace key must be that verifier's.
    ///
    /// Its clock goes on: it has run for `downtime` since, and what is given to
    /// [`Verifier::set_time`] from now on is the time since this call. So the time for which a trace
    /// had no record counts on over a restart, and one that was idle for long enough ends when the
    /// time is set. Where what was written meanwhile is yet to be read, `downtime` can be zero.
    pub fn restore_meta(&mut self, meta: &SavedMeta, downtime: Duration) {
        self.tally.any_evicted |= meta.any_evicted;
        self.clock_base = meta.now.saturating_add(downtime);
        self.now = self.clock_base;
    }

    /// Takes over an open trace of another verifier. They come least recently used first, as they
    /// were given; where there are more than may be open, the first are given up.
    pub fn restore_trace(&mut self, trace: RestoredTrace, reports: &mut Vec<Report>) {
        let RestoredTrace {
            name,
            used_at,
            mut state,
        } = trace;
        state.share_sources();
        if let Some(replaced) = self.traces.close(&name) {
            self.tally.pending -= replaced.state.pending();
        }
        self.tally.pending += state.pending();
        self.traces.restore(&name, state, used_at);
        self.give_up_excess(reports);
    }
}
