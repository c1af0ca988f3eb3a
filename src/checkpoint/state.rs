//! What a checkpoint keeps of the verifier.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A part of the verifier's state. The first of a checkpoint is the one of the whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum State {
    /// What there is but once.
    Whole(SavedWhole),
    /// An open trace.
    Trace(SavedTrace),
}

/// What is shown of an open trace.
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
    /// What is to be shown of it, if it is an open trace.
    pub(crate) fn outline(&self) -> Option<Outline> {
        match self {
            State::Whole(_) => None,
            State::Trace(trace) => Some(Outline {
                trace: trace.name.clone(),
                records: trace.records,
                placements: trace.placements,
                pending: trace.pending,
                idle: trace.idle,
            }),
        }
    }
}

/// Stands for what the library saves of a verifier.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SavedWhole {
    pub(crate) records: u64,
}

/// Stands for what the library saves of a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SavedTrace {
    pub(crate) name: String,
    pub(crate) records: u64,
    pub(crate) placements: u64,
    pub(crate) pending: u64,
    pub(crate) idle: Duration,
}
