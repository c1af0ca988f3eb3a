//! The engine: what the sources send goes in, verdicts come out. It alone holds the state of the
//! verifier and knows where each source was read to, so that both can be saved together.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::time::Instant;

use tracecheck::event::{SourceState, Summary};
use tracecheck::{Severity, Source, Totals};

use crate::checking::{Checker, Declaration, Lines};
use crate::config::Config;
use crate::emit::sanitise::{Visible, visible};
use crate::exit::Outcome;
use crate::output::{Output, Told};
use crate::source::{Message, Opened, SourceId};
use crate::tally::Tally;

/// Longest name of a source in a diagnostic; no path can be longer.
const MAX_NAME_CHARS: usize = 4096;

/// Verifies what it is sent and writes what it finds.
pub(crate) struct Engine {
    config: Arc<Config>,
    checker: Checker,
    output: Output,
    pub(crate) outcome: Outcome,
    started: Instant,
    /// How much was verified, archives decompressed.
    bytes: u64,
    /// Whether what was read is all there is: no source failed, nobody stopped the run.
    is_complete: bool,
    /// What other engines have seen for the same run.
    elsewhere: Totals,
    /// The sources that are being read.
    open: HashMap<SourceId, OpenSource>,
}

struct OpenSource {
    source: Source,
    lines: Lines,
    tally: Tally,
}

/// What an engine came to that verified a part of a run.
pub(crate) struct Share {
    totals: Totals,
    bytes: u64,
    source_errors: u64,
    is_complete: bool,
}

/// What a message means for the run as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    /// It goes on.
    On,
    /// Somebody wants it to end.
    Stop,
}

impl Engine {
    pub(crate) fn new(config: Arc<Config>, checker: Checker, output: Output) -> Self {
        Engine {
            outcome: Outcome {
                follow: config.follow,
                ..Outcome::default()
            },
            config,
            checker,
            output,
            started: Instant::now(),
            bytes: 0,
            is_complete: true,
            elsewhere: Totals::default(),
            open: HashMap::new(),
        }
    }

    /// Says what of the declaration cannot be used, once: the runs are read all the same.
    pub(crate) fn announce_declaration(&mut self, declaration: Declaration) -> io::Result<()> {
        const NOTHING: &str = "every run is read as of an agent that declared nothing";
        match declaration {
            Declaration::Usable => Ok(()),
            Declaration::OfA3 { name } => {
                let name = shown(&name);
                tracing::warn!("{name}: this seems to be a declaration of A3: {NOTHING}");
                Ok(())
            }
            Declaration::Absent => {
                tracing::warn!("no --declaration was given: {NOTHING}");
                Ok(())
            }
            Declaration::Unreadable { name, problem } => {
                self.outcome.source_errors += 1;
                self.tell_failure(&name, &format!("{problem}; {NOTHING}"))
            }
            Declaration::Malformed { name, findings } => {
                let name = shown(&name);
                tracing::warn!("{name}: the declaration is malformed: {NOTHING}");
                if let Checker::AgUi(checker) = &mut self.checker {
                    checker.note(findings, &mut self.output.reports);
                }
                self.output.write_reports();
                self.output.flush()
            }
        }
    }

    /// Does what a message says.
    ///
    /// # Errors
    ///
    /// If the output cannot be written.
    pub(crate) fn handle(&mut self, message: Message) -> io::Result<Flow> {
        match message {
            Message::Opened(opened) => self.open(*opened)?,
            Message::Bytes {
                id, chunk, read, ..
            } => {
                self.take(id, chunk.bytes())?;
                self.output.advance(read);
            }
            Message::Ended { id, state, message } => self.end_source(id, state, &message)?,
            Message::Failed {
                id, name, error, ..
            } => self.fail(id, &name, &error)?,
            Message::Tick => self.tick()?,
            Message::Stop => {
                self.stop();
                return Ok(Flow::Stop);
            }
        }
        Ok(Flow::On)
    }

    /// Nothing more is read, though there may be more.
    fn stop(&mut self) {
        let say = |diagnostic: &dyn Fn()| self.output.say(diagnostic);
        say(&|| tracing::info!("stopping at a signal"));
        for open in self.open.values() {
            let (name, tally) = (shown(&open.source.name), open.tally);
            say(&|| tracing::info!("{name}: read up to the signal: {tally}"));
        }
        self.is_complete = false;
    }

    /// Ends idle traces.
    fn tick(&mut self) -> io::Result<()> {
        if let Checker::A3(verifier) = &mut self.checker {
            verifier.set_time(self.started.elapsed(), &mut self.output.reports);
        }
        self.output.write_reports();
        self.output.flush()
    }

    fn open(&mut self, opened: Opened) -> io::Result<()> {
        let Opened { id, source, .. } = opened;
        let name = shown(&source.name);
        self.output.say(|| tracing::info!("{name}: opened"));
        self.output
            .source_state(SourceState::Opened, &source.name, "reading")?;
        let open = OpenSource {
            lines: self.checker.lines(self.config.max_record_bytes),
            source,
            tally: Tally::default(),
        };
        self.open.insert(id, open);
        self.output.flush()
    }

    /// Verifies what the source gave, and writes every finding before anything else is read.
    fn take(&mut self, id: SourceId, bytes: &[u8]) -> io::Result<()> {
        let before = self.tally();
        let open = self
            .open
            .get_mut(&id)
            .expect("bytes come from open sources");
        let (checker, output) = (&mut self.checker, &mut self.output);
        open.lines.push(bytes, |line| {
            checker.check(line, &open.source, &mut output.reports);
            output.write_reports();
        });
        self.bytes += bytes.len() as u64;
        let after = Tally::new(self.bytes, self.checker.totals());
        open.tally.add_between(before, after);
        self.output.flush()
    }

    fn end_source(&mut self, id: SourceId, state: SourceState, message: &str) -> io::Result<()> {
        let before = self.tally();
        let mut open = self.open.remove(&id).expect("only open sources end");
        let (checker, output) = (&mut self.checker, &mut self.output);
        open.lines.finish(|line| {
            checker.check(line, &open.source, &mut output.reports);
            output.write_reports();
        });
        checker.end_source(&open.source, &mut output.reports);
        output.write_reports();
        let name = &*open.source.name;
        output.source_state(state, name, message)?;
        open.tally.add_between(before, self.tally());
        let (name, tally) = (shown(name), open.tally);
        self.output
            .say(|| tracing::info!("{name}: {message}: {tally}"));
        self.output.flush()
    }

    /// What the run has come to.
    fn tally(&self) -> Tally {
        Tally::new(self.bytes, self.checker.totals())
    }

    /// A source could not be opened or read. What was read of it stands; the others go on.
    pub(crate) fn fail(&mut self, id: Option<SourceId>, name: &str, error: &str) -> io::Result<()> {
        self.outcome.source_errors += 1;
        self.is_complete = false;
        let name_shown = shown(name);
        let message = match id.and_then(|id| self.open.remove(&id)) {
            Some(open) => {
                let tally = open.tally;
                self.output
                    .say(|| tracing::info!("{name_shown}: read in part: {tally}"));
                format!("cannot read any further: {error}")
            }
            None => format!("cannot open: {error}"),
        };
        self.tell_failure(name, &message)
    }

    fn tell_failure(&mut self, name: &str, message: &str) -> io::Result<()> {
        self.output
            .say(|| tracing::error!("{}: {message}", shown(name)));
        self.output
            .source_state(SourceState::Failed, name, message)?;
        self.output.flush()
    }

    /// Ends the traces that are still open, if all there is of them was read, and sums up.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        if self.is_complete {
            self.checker.end_all(&mut self.output.reports);
            self.output.write_reports();
        }
        let mut totals = self.checker.totals().clone();
        totals.add(&self.elsewhere);
        let summary = Summary {
            records: totals.records,
            placements: totals.placements,
            traces: totals.traces,
            counts: totals.counts,
            bytes: self.bytes,
            seconds: self.started.elapsed().as_secs_f64(),
        };
        self.output.summary(&summary)?;
        self.output.flush()
    }

    /// Writes what another engine, for some source of the same run, has to tell.
    pub(crate) fn tell(&mut self, told: Told) -> io::Result<()> {
        self.output.tell(told)
    }

    /// Writes to another output from now on.
    pub(crate) fn write_to(&mut self, output: Output) {
        self.output = output;
    }

    /// Hands everything that was told to whoever reads it.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.output.flush()
    }

    /// Hands on what was not told yet, where another engine writes it.
    pub(crate) fn hand_on(&mut self) -> io::Result<()> {
        self.output.hand_on()
    }

    /// What it came to, for the engine that sums up.
    pub(crate) fn share(&self) -> Share {
        Share {
            totals: self.checker.totals().clone(),
            bytes: self.bytes,
            source_errors: self.outcome.source_errors,
            is_complete: self.is_complete,
        }
    }

    /// Adds what another engine came to.
    pub(crate) fn add(&mut self, share: &Share) {
        self.elsewhere.add(&share.totals);
        self.bytes += share.bytes;
        self.outcome.source_errors += share.source_errors;
        self.is_complete &= share.is_complete;
    }

    /// Whether there was a finding that `--fail-on` includes.
    pub(crate) fn has_failing_findings(&self) -> bool {
        let (here, elsewhere) = (&self.checker.totals().counts, &self.elsewhere.counts);
        let total = |severity| here.total(severity) + elsewhere.total(severity);
        let has = |severity| self.config.fail_on.includes(severity) && total(severity) > 0;
        has(Severity::Error) || has(Severity::Warning)
    }
}

/// A source's name in a diagnostic.
pub(crate) fn shown(name: &str) -> Visible<'_> {
    visible(name, MAX_NAME_CHARS)
}
