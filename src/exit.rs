//! What became of a run, as an exit status and a last word. No other place decides either.

use std::io;
use std::process::ExitCode;

use tracecheck::finding::Severity;

use crate::cli::FailOn;

/// The exit statuses that scripts rely on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    /// Nothing to fail on.
    Success,
    /// Findings at or above `--fail-on`, or a document that does not hold.
    Findings,
    /// Wrong usage, or input or output that failed.
    Failure,
}

impl Status {
    /// The number that the shell sees.
    pub(crate) const fn code(self) -> u8 {
        match self {
            Status::Success => 0,
            Status::Findings => 1,
            Status::Failure => 2,
        }
    }
}

impl From<Status> for ExitCode {
    fn from(status: Status) -> ExitCode {
        ExitCode::from(status.code())
    }
}

impl FailOn {
    /// Whether a finding of this severity makes the run fail.
    pub(crate) fn includes(self, severity: Severity) -> bool {
        match self {
            FailOn::Error => severity == Severity::Error,
            FailOn::Warning => true,
            FailOn::Never => false,
        }
    }
}

/// What became of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// The run did not begin: what it needs could not be had, and that was said.
    pub(crate) not_begun: bool,
    /// There was a finding that `--fail-on` includes.
    pub(crate) failing_findings: bool,
    /// How many sources could not be opened, or not be read to their end.
    pub(crate) source_errors: u64,
    /// There was no source at all: only directories and globs without traces.
    pub(crate) nothing_read: bool,
    /// The reader of standard output went away.
    pub(crate) output_closed: bool,
    /// Standard output could not be written to, for another reason.
    pub(crate) output_failed: bool,
    /// The run was to go on as the traces grow.
    pub(crate) follow: bool,
}

impl Outcome {
    /// Takes note of what became of standard output.
    pub(crate) fn note_output_error(&mut self, error: &io::Error) {
        match error.kind() {
            io::ErrorKind::BrokenPipe => self.output_closed = true,
            // The time for a stop is over; what was cut off is counted where it waits.
            io::ErrorKind::TimedOut => {}
            _ => {
                tracing::error!("cannot write to standard output: {error}");
                self.output_failed = true;
            }
        }
    }

    /// The exit status; a failure of ours hides findings, for they may not be all.
    pub(crate) fn status(&self) -> Status {
        if self.failed() {
            Status::Failure
        } else if self.failing_findings {
            Status::Findings
        } else {
            Status::Success
        }
    }

    /// What to write to standard error at the end, if the status would not be understood without.
    /// Of sources that could not be read it was said when it happened.
    pub(crate) fn message(&self) -> Option<&'static str> {
        if self.lost_its_reader() {
            return Some("standard output was closed; nothing more can be reported");
        }
        if self.found_nothing() {
            return Some("nothing to read: no traces in what was given");
        }
        None
    }

    fn failed(&self) -> bool {
        self.not_begun
            || self.source_errors > 0
            || self.output_failed
            || self.found_nothing()
            || self.lost_its_reader()
    }

    /// A following run waits for files instead.
    fn found_nothing(&self) -> bool {
        self.nothing_read && !self.follow
    }

    /// `tracecheck FILE | head` is no failure; a monitor whose alerts go nowhere is.
    fn lost_its_reader(&self) -> bool {
        self.output_closed && self.follow
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLEAN: Outcome = Outcome {
        not_begun: false,
        failing_findings: false,
        source_errors: 0,
        nothing_read: false,
        output_closed: false,
        output_failed: false,
        follow: false,
    };
    const FINDINGS: Outcome = Outcome {
        failing_findings: true,
        ..CLEAN
    };

    #[track_caller]
    fn check(outcome: Outcome, code: u8, message: Option<&str>) {
        assert_eq!(outcome.status().code(), code);
        assert_eq!(outcome.message(), message);
    }

    #[test]
    fn findings_decide_between_0_and_1() {
        for follow in [false, true] {
            check(Outcome { follow, ..CLEAN }, 0, None);
            check(Outcome { follow, ..FINDINGS }, 1, None);
        }
    }

    #[test]
    fn unread_sources_win_over_findings() {
        let source_errors = 1;
        for follow in [false, true] {
            for outcome in [CLEAN, FINDINGS] {
                check(
                    Outcome {
                        source_errors,
                        follow,
                        ..outcome
                    },
                    2,
                    None,
                );
            }
        }
    }

    #[test]
    fn nothing_to_read_fails_unless_following() {
        let nothing_read = true;
        let message = Some("nothing to read: no traces in what was given");
        check(
            Outcome {
                nothing_read,
                ..CLEAN
            },
            2,
            message,
        );
        let follow = true;
        check(
            Outcome {
                nothing_read,
                follow,
                ..CLEAN
            },
            0,
            None,
        );
    }

    #[test]
    fn a_closed_pipe_ends_a_run_quietly_and_a_following_one_with_2() {
        let output_closed = true;
        check(
            Outcome {
                output_closed,
                ..CLEAN
            },
            0,
            None,
        );
        check(
            Outcome {
                output_closed,
                ..FINDINGS
            },
            1,
            None,
        );
        let follow = true;
        let message = Some("standard output was closed; nothing more can be reported");
        check(
            Outcome {
                output_closed,
                follow,
                ..CLEAN
            },
            2,
            message,
        );
        check(
            Outcome {
                output_closed,
                follow,
                ..FINDINGS
            },
            2,
            message,
        );
    }

    #[test]
    fn fail_on_is_a_threshold() {
        assert!(FailOn::Error.includes(Severity::Error));
        assert!(!FailOn::Error.includes(Severity::Warning));
        assert!(FailOn::Warning.includes(Severity::Error));
        assert!(FailOn::Warning.includes(Severity::Warning));
        assert!(!FailOn::Never.includes(Severity::Error));
    }
}
