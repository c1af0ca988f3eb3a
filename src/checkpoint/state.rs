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
    Trace(Box<RestoredTrace>),
    /// An open run of AG-UI.
    Run(Box<RestoredRun>),
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

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use tracecheck::agui::{Capabilities, RunChecker};
    use tracecheck::{Filter, Line, Source, Verifier};

    use super::*;

    fn source() -> Source {
        Source {
            name: "a".into(),
            origin: 1,
            is_resumable: true,
        }
    }

    fn line(bytes: &[u8]) -> Line<'_> {
        Line {
            number: 1,
            offset: 0,
            bytes,
            too_long: false,
        }
    }

    /// What was written is read back, as the variant of this number.
    #[track_caller]
    fn read(written: &StateRef<'_>, variant: u8) -> State {
        let bytes = postcard::to_stdvec(written).expect("a form");
        assert_eq!(bytes[0], variant);
        postcard::from_bytes(&bytes).expect("the same form")
    }

    #[test]
    fn what_is_known_across_traces_is_read_as_it_was_written() {
        let meta = SavedMeta {
            any_evicted: true,
            now: Duration::from_millis(1_500),
            dropped: 3,
        };
        let state = read(&StateRef::Whole(&meta), 0);
        assert_eq!(state.outline(None), None);
        assert!(matches!(state, State::Whole(read) if read == meta));
    }

    #[test]
    fn a_trace_is_read_as_it_was_written() {
        let mut verifier = Verifier::default();
        let waits = br#"{"kind":"task.bound","content":{"resumed":true,"scheduling":{"recorded_in":{"kind":"task.bound"}}}}"#;
        for bytes in [br#"{"kind":"task.parked"}"#, &waits[..]] {
            verifier.verify(line(bytes), &source(), &mut Vec::new());
        }
        verifier.set_time(Duration::from_secs(2), &mut Vec::new());
        let meta = verifier.saved_meta();
        let mut outlines = Vec::new();
        let saved = verifier.save_traces(|trace| -> Result<(), Infallible> {
            outlines.extend(read(&StateRef::Trace(trace), 1).outline(Some(&meta)));
            Ok(())
        });
        saved.expect("infallible");
        let outline = Outline {
            trace: "a".to_owned(),
            records: 2,
            placements: 1,
            pending: 1,
            idle: Duration::from_secs(2),
        };
        assert_eq!(outlines, [outline]);
    }

    #[test]
    fn a_run_is_read_as_it_was_written() {
        let mut checker = RunChecker::new(&Capabilities::default(), Filter::default());
        let started = br#"{"type":"RUN_STARTED","threadId":"t","runId":"r"}"#;
        checker.check(line(started), &source(), &mut Vec::new());
        let mut outlines = Vec::new();
        let saved = checker.save_runs(|run| -> Result<(), Infallible> {
            outlines.extend(read(&StateRef::Run(run), 2).outline(None));
            Ok(())
        });
        saved.expect("infallible");
        let outline = Outline {
            trace: "r".to_owned(),
            records: 1,
            placements: 0,
            pending: 0,
            idle: Duration::ZERO,
        };
        assert_eq!(outlines, [outline]);
    }
}
