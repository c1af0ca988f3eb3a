//! The two protocols side by side: what checks the lines of a source, and what finds them.

use std::io;
use std::path::Path;
use std::time::Duration;

use tracecheck::agui::{Capabilities, EventFramer, RunChecker, looks_like_a3};
use tracecheck::finding::Finding;
use tracecheck::framing::Position;
use tracecheck::{Framer, Line, Options, Report, Source, Totals, Verifier};

use crate::checkpoint::{State, StateRef};
use crate::commands::document::DocumentFile;
use crate::config::{Config, Protocol};

/// Checks what a run reads.
pub(crate) enum Checker {
    /// A3 traces.
    A3(Box<Verifier>),
    /// Streams of AG-UI events.
    AgUi(Box<RunChecker>),
}

/// What became of the declaration that AG-UI runs are held against.
pub(crate) enum Declaration {
    /// There is nothing to say of it.
    Usable,
    /// It declares nothing of AG-UI's, and what A3 declarations do.
    OfA3 { name: String },
    /// None was given.
    Absent,
    /// It could not be read: its name, and why.
    Unreadable { name: String, problem: String },
    /// It is malformed and must not be used.
    Malformed {
        name: String,
        findings: Vec<Finding>,
    },
}

impl Checker {
    /// A checker for the protocol of a run, and what to tell of the declaration.
    pub(crate) fn new(config: &Config) -> (Checker, Declaration) {
        let declaration = match &config.protocol {
            Protocol::A3 => {
                let verifier = Verifier::new(options(config));
                return (Checker::A3(Box::new(verifier)), Declaration::Usable);
            }
            Protocol::AgUi { declaration } => declaration.as_deref(),
        };
        let (capabilities, declaration) = match declaration {
            Some(path) => read_declaration(path),
            None => (Capabilities::default(), Declaration::Absent),
        };
        let checker = RunChecker::new(&capabilities, config.filter);
        (Checker::AgUi(Box::new(checker)), declaration)
    }

    /// Goes on finding the lines of a source from a position in it.
    pub(crate) fn lines_from(&self, max_bytes: usize, position: Position) -> Lines {
        match self {
            Checker::A3(_) => Lines::Records(Framer::resume(max_bytes, position)),
            Checker::AgUi(_) => Lines::Events(EventFramer::resume(max_bytes, position)),
        }
    }

    /// A source begins anew under its name: it was rotated or truncated.
    pub(crate) fn begin_generation(&mut self, source: &Source) {
        match self {
            Checker::A3(verifier) => verifier.begin_generation(source),
            // A run goes on until an event or the source's end says otherwise.
            Checker::AgUi(_) => {}
        }
    }

    /// Time has gone on, to so long after the start.
    pub(crate) fn set_time(&mut self, now: Duration, reports: &mut Vec<Report>) {
        if let Checker::A3(verifier) = self {
            verifier.set_time(now, reports);
        }
    }

    /// Decides what can only be decided at the end, and leaves the traces open for a later run.
    pub(crate) fn decide_pending(&mut self, reports: &mut Vec<Report>) {
        if let Checker::A3(verifier) = self {
            verifier.decide_pending(reports);
        }
    }

    /// Goes on under another configuration of the same protocol and trace key.
    pub(crate) fn reconfigure(&mut self, config: &Config, reports: &mut Vec<Report>) {
        match self {
            Checker::A3(verifier) => verifier.set_options(options(config), reports),
            Checker::AgUi(checker) => checker.set_filter(config.filter),
        }
    }

    /// How many traces are open, and how many references wait in them.
    pub(crate) fn open_and_pending(&self) -> (usize, usize) {
        match self {
            Checker::A3(verifier) => (verifier.open_traces(), verifier.pending_references()),
            Checker::AgUi(_) => (0, 0),
        }
    }

    /// Gives everything that a checkpoint keeps. `may_lose_traces` says that there may be others of
    /// which nothing is kept.
    pub(crate) fn save(
        &self,
        may_lose_traces: bool,
        mut each: impl FnMut(StateRef<'_>) -> io::Result<()>,
    ) -> io::Result<()> {
        match self {
            Checker::A3(verifier) => {
                let mut meta = verifier.saved_meta();
                meta.any_evicted |= may_lose_traces;
                each(StateRef::Whole(&meta))?;
                verifier.save_traces(|trace| each(StateRef::Trace(trace)))
            }
            Checker::AgUi(checker) => checker.save_runs(|run| each(StateRef::Run(run))),
        }
    }

    /// Takes back a part of what was saved so long ago.
    pub(crate) fn restore(&mut self, state: State, age: Duration, reports: &mut Vec<Report>) {
        match (self, state) {
            (Checker::A3(verifier), State::Whole(meta)) => verifier.restore_meta(&meta, age),
            (Checker::A3(verifier), State::Trace(trace)) => verifier.restore_trace(*trace, reports),
            (Checker::AgUi(checker), State::Run(run)) => checker.restore_run(*run),
            // A checkpoint of another protocol is not used at all.
            _ => {}
        }
    }

    /// Checks one line of a source.
    pub(crate) fn check(&mut self, line: Line<'_>, source: &Source, reports: &mut Vec<Report>) {
        match self {
            Checker::A3(verifier) => verifier.verify(line, source, reports),
            Checker::AgUi(checker) => checker.check(line, source, reports),
        }
    }

    /// A source has ended.
    pub(crate) fn end_source(&mut self, source: &Source, reports: &mut Vec<Report>) {
        match self {
            Checker::A3(verifier) => verifier.end_source(source, reports),
            Checker::AgUi(checker) => checker.end_source(source, reports),
        }
    }

    /// A source broke off: nobody knows what more there was of it.
    pub(crate) fn give_up_source(&mut self, source: &Source, reports: &mut Vec<Report>) {
        match self {
            Checker::A3(verifier) => verifier.give_up_source(source, reports),
            Checker::AgUi(checker) => checker.end_source(source, reports),
        }
    }

    /// Everything was read to its end.
    pub(crate) fn end_all(&mut self, reports: &mut Vec<Report>) {
        match self {
            Checker::A3(verifier) => verifier.end_all(reports),
            Checker::AgUi(checker) => checker.end_all(reports),
        }
    }

    /// What has been seen so far.
    pub(crate) fn totals(&self) -> &Totals {
        match self {
            Checker::A3(verifier) => verifier.totals(),
            Checker::AgUi(checker) => checker.totals(),
        }
    }
}

/// Finds the lines of one source.
pub(crate) enum Lines {
    /// Records, one a line.
    Records(Framer),
    /// Events in either of their forms.
    Events(EventFramer),
}

impl Lines {
    /// Takes the next bytes of the source and calls `each` with every line that they complete.
    pub(crate) fn push(&mut self, bytes: &[u8], each: impl FnMut(Line<'_>)) {
        match self {
            Lines::Records(framer) => framer.push(bytes, each),
            Lines::Events(framer) => framer.push(bytes, each),
        }
    }

    /// Passes over NUL bytes before a line's first other byte.
    pub(crate) fn skipping_nuls(self) -> Lines {
        match self {
            Lines::Records(framer) => Lines::Records(framer.skipping_nuls()),
            Lines::Events(framer) => Lines::Events(framer.skipping_nuls()),
        }
    }

    /// How many NUL bytes were passed over since this was asked last.
    pub(crate) fn take_skipped_nuls(&mut self) -> u64 {
        match self {
            Lines::Records(framer) => framer.take_skipped_nuls(),
            Lines::Events(framer) => framer.take_skipped_nuls(),
        }
    }

    /// Where to go on after what was handed out.
    pub(crate) fn position(&self) -> Position {
        match self {
            Lines::Records(framer) => framer.position(),
            Lines::Events(framer) => framer.position(),
        }
    }

    /// How much memory unfinished lines take.
    pub(crate) fn held_bytes(&self) -> usize {
        match self {
            Lines::Records(framer) => framer.held_bytes(),
            Lines::Events(framer) => framer.held_bytes(),
        }
    }

    /// Hands out the unfinished line as over-long, and passes over the rest of it.
    pub(crate) fn give_up(&mut self, each: impl FnMut(Line<'_>)) {
        match self {
            Lines::Records(framer) => framer.give_up(each),
            Lines::Events(framer) => framer.give_up(each),
        }
    }

    /// The source has ended: its last line counts without its end.
    pub(crate) fn finish(&mut self, each: impl FnMut(Line<'_>)) {
        match self {
            Lines::Records(framer) => framer.finish(each),
            Lines::Events(framer) => framer.finish(each),
        }
    }
}

fn options(config: &Config) -> Options {
    Options {
        trace_key: config.trace_key.clone(),
        end_kinds: config.end_kinds.clone(),
        trace_idle: config.trace_idle,
        max_traces: config.max_traces,
        claims: config.claims.clone(),
        filter: config.filter,
        trace_ends: config.trace_events,
        whole_traces: !config.follow,
    }
}

fn read_declaration(path: &Path) -> (Capabilities, Declaration) {
    let name = path.display().to_string();
    let (capabilities, declaration) = match DocumentFile::read(Some(path)) {
        Err(problem) => (None, Declaration::Unreadable { name, problem }),
        Ok(document) => match Capabilities::read(document.named()) {
            Ok(capabilities) if looks_like_a3(document.named()) => {
                (Some(capabilities), Declaration::OfA3 { name })
            }
            Ok(capabilities) => (Some(capabilities), Declaration::Usable),
            Err(findings) => (None, Declaration::Malformed { name, findings }),
        },
    };
    (capabilities.unwrap_or_default(), declaration)
}
