//! What a checkpoint keeps of the verifier: the library's own forms, one after the other.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tracecheck::agui::{RestoredRun, SavedRun};
use tracecheck::verify::{RestoredTrace, SavedMeta, SavedTrace};

/// A part of the verifier's state, as it is read. The one of the whole comes first.
#[derive(Debug, Deserialize)]
pub(crate) enum State {
    /// What there is but once.
    Whole(SavedMeta),
    /// An open trace.
    Trace(RestoredTrace),
    /// An open run of AG-UI.
    Run(RestoredRun),
}

/// [`State`], as it is written; the variants in the same order.
#[derive(Debug, Serialize)]
pub(crate) enum StateRef<'s> {
    Whole(&'s SavedMeta),
    Trace(SavedTrace<'s>),
    Run(SavedRun<'s>),
}

/// What is shown of an open trace or run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Outline {
    pub(crate) trace: String,
    pub(crate) records: u64,
    pub(crate) placements: u64,
    /// References that wait for the placement that explains them.
    pub(crate) pending: u64,
    /// How long it had no record when the checkpoint was taken.
    pub(crate) idle: Duration,
}

impl State {
    /// What is to be shown of it, if it is an open trace or run; `whole` is what came first.
    pub(crate) fn outline(&self, whole: Option<&SavedMeta>) -> Option<Outline> {
        match self {
            State::Whole(_) => None,
            State::Trace(trace) => {
                let trace = trace.saved();
                Some(Outline {
                    trace: trace.name().to_owned(),
                    records: trace.records(),
                    placements: trace.placements(),
                    pending: trace.pending_references() as u64,
                    idle: whole.map_or(Duration::ZERO, |whole| trace.age(whole)),
                })
            }
            State::Run(run) => {
                let run = run.saved();
                Some(Outline {
                    trace: run.name().to_owned(),
                    records: run.events(),
                    placements: 0,
                    pending: 0,
                    idle: Duration::ZERO,
                })
            }
        }
    }
}
