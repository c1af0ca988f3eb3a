//! The engine: what the sources send goes in, verdicts come out. It alone holds the state of the
//! verifier and knows where each source was read to, so that both can be saved together.

use std::collections::HashMap;
use std::io;
use std::mem;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use tracecheck::event::{SourceState, Summary};
use tracecheck::framing::Position;
use tracecheck::{Severity, Source, Totals};

use crate::checking::{Checker, Declaration, Lines};
use crate::checkpoint::{CheckpointWriter, Remembered, Saved, State, unix_seconds};
use crate::config::Config;
use crate::emit::sanitise::{Visible, visible};
use crate::exit::Outcome;
use crate::metrics::Metrics;
use crate::output::{Output, Told};
use crate::source::{Fingerprint, Follows, Message, Opened, SavedFile, SourceId, SourceKind};
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
    /// How much memory their unfinished lines take.
    held_bytes: usize,
    /// Files that are not read just now, where positions are kept.
    remembered: Option<Remembered>,
    /// Whether anything has happened that a checkpoint would keep.
    has_changed: bool,
    news: News,
    /// Whether a crash would lose records of traces that are not even known yet.
    may_lose_traces: bool,
    metrics: Option<Arc<Metrics>>,
}

struct OpenSource {
    source: Source,
    kind: SourceKind,
    lines: Lines,
    tally: Tally,
    /// Where a file goes on after a restart.
    place: Option<Place>,
}

/// How far a file was read and verified.
struct Place {
    /// Up to where lines were handed out.
    saved: SavedFile,
    /// Of everything that was read.
    seen: Fingerprint,
    read_to: u64,
}

impl Place {
    fn new(saved: SavedFile) -> Place {
        Place {
            seen: saved.fingerprint.clone(),
            read_to: saved.position.read_from(),
            saved,
        }
    }

    /// Bytes came, and now the next line begins at `position`.
    fn advance(&mut self, bytes: &[u8], position: Position) {
        let before = self.read_to;
        if position.read_from() > before {
            let passed = usize::try_from(position.read_from() - before).unwrap_or(usize::MAX);
            let mut fingerprint = self.seen.clone();
            fingerprint.push(&bytes[..passed.min(bytes.len())]);
            self.saved.fingerprint = fingerprint;
        }
        self.saved.position = position;
        self.seen.push(bytes);
        self.read_to += bytes.len() as u64;
    }

    /// A line was handed out without its end, and what may still come of it is passed over.
    fn pass_over_the_rest(&mut self, position: Position) {
        self.saved.position = position;
        if position.read_from() == self.read_to {
            self.saved.fingerprint = self.seen.clone();
        }
    }
}

/// What an engine came to that verified a part of a run.
pub(crate) struct Share {
    totals: Totals,
    bytes: u64,
    source_errors: u64,
    is_complete: bool,
}

/// What a checkpoint should soon know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum News {
    None,
    /// A file was opened or has ended.
    File,
    /// A file was truncated, and what it holds now is about to be verified.
    Generation,
}

/// What a message means for the run as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    /// It goes on.
    On,
    /// Somebody wants it to end.
    Stop,
    /// Somebody wants the configuration to be read again.
    Reload,
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
            held_bytes: 0,
            remembered: None,
            has_changed: false,
            news: News::None,
            may_lose_traces: false,
            metrics: None,
        }
    }

    /// Keeps count for others to see.
    pub(crate) fn measure(&mut self, metrics: Arc<Metrics>) {
        self.metrics = Some(metrics);
    }

    /// Goes on from what was saved, and keeps positions from now on. Gives the files that were saved,
    /// for whoever reads them.
    pub(crate) fn restore(
        &mut self,
        saved: Option<Saved<State>>,
        now: SystemTime,
    ) -> Vec<SavedFile> {
        let age = saved
            .as_ref()
            .map_or(Duration::ZERO, |saved| saved.age(now));
        let entries = saved
            .as_ref()
            .map_or(Vec::new(), |saved| saved.files.clone());
        let files = entries.iter().map(|entry| entry.file.clone()).collect();
        self.remembered = Some(Remembered::new(entries, Instant::now(), now));
        for state in saved.into_iter().flat_map(Saved::states) {
            match state {
                Ok(state) => self.checker.restore(state, age, &mut self.output.reports),
                Err(damage) => {
                    tracing::error!("the checkpoint cannot be read any further: {damage}")
                }
            }
        }
        files
    }

    /// Says whether there are sources that cannot be read again. To a process that goes on after a
    /// crash, any trace that does not begin at its beginning may then be one that was lost.
    pub(crate) fn lose_streams_in_a_crash(&mut self, may_lose_traces: bool) {
        self.may_lose_traces = may_lose_traces;
    }

    /// Writes what a checkpoint keeps.
    pub(crate) fn save(&mut self, writer: &mut CheckpointWriter) -> io::Result<()> {
        self.has_changed = false;
        let (now, wall) = (Instant::now(), SystemTime::now());
        for open in self.open.values() {
            if let Some(place) = &open.place {
                writer.file(&place.saved, unix_seconds(wall))?;
            }
        }
        if let Some(remembered) = &mut self.remembered {
            remembered.expire(now);
            for (file, last_seen) in remembered.entries(now, wall) {
                writer.file(file, last_seen)?;
            }
        }
        self.checker
            .save(self.may_lose_traces, |state| writer.state(&state))
    }

    /// Whether anything has happened since it was saved.
    pub(crate) fn has_changed(&self) -> bool {
        self.has_changed
    }

    /// What has happened to files since this was asked last.
    pub(crate) fn take_news(&mut self) -> News {
        mem::replace(&mut self.news, News::None)
    }

    /// Nothing could be done about it yet.
    pub(crate) fn keep_news(&mut self) {
        self.news = self.news.max(News::File);
    }

    /// Goes on under another configuration.
    pub(crate) fn reconfigure(&mut self, config: Arc<Config>) -> io::Result<()> {
        self.checker.reconfigure(&config, &mut self.output.reports);
        self.output.set_trace_events(config.trace_events);
        self.config = config;
        self.output.write_reports();
        self.output.flush()
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
                id,
                chunk,
                read,
                arrived,
            } => {
                self.take(id, chunk.bytes(), arrived)?;
                self.output.advance(read);
            }
            Message::Ended { id, state, message } => self.end_source(id, state, &message)?,
            Message::Failed {
                id,
                name,
                error,
                is_final: true,
            } => self.fail(id, &name, &error)?,
            Message::Failed {
                id, name, error, ..
            } => self.lose(id, &name, &error)?,
            Message::Gone(file) => {
                if let Some(remembered) = &mut self.remembered {
                    remembered.forget(file);
                    self.has_changed = true;
                }
            }
            Message::Tick => self.tick()?,
            Message::Reload => return Ok(Flow::Reload),
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
        let reports = &mut self.output.reports;
        self.checker.set_time(self.started.elapsed(), reports);
        self.has_changed |= !reports.is_empty();
        self.output.write_reports();
        self.publish();
        self.output.flush()
    }

    fn open(&mut self, opened: Opened) -> io::Result<()> {
        let Opened {
            id,
            source,
            kind,
            start,
            file,
            follows,
        } = opened;
        let name = shown(&source.name);
        self.output.say(|| tracing::info!("{name}: opened"));
        let message = match follows {
            Follows::Nothing => "reading",
            Follows::Itself => "reading on where it was left",
            Follows::Rotated => "reading the next file of this name",
            Follows::Truncated => "reading it from its start again",
        };
        self.output
            .source_state(SourceState::Opened, &source.name, message)?;
        if matches!(follows, Follows::Rotated | Follows::Truncated) {
            self.checker.begin_generation(&source);
        }
        let lines = self.checker.lines_from(self.config.max_record_bytes, start);
        let lines = match self.config.follow && kind == SourceKind::File {
            true => lines.skipping_nuls(),
            false => lines,
        };
        if let (Some(remembered), Some(file)) = (&mut self.remembered, &file) {
            remembered.forget(file.generation.file);
            let news = match follows {
                Follows::Truncated => News::Generation,
                _ => News::File,
            };
            self.news = self.news.max(news);
        }
        if let Some(metrics) = &self.metrics {
            metrics.sources.of(kind).add(1);
        }
        let open = OpenSource {
            source,
            kind,
            lines,
            tally: Tally::default(),
            place: file.map(Place::new),
        };
        self.open.insert(id, open);
        self.has_changed = true;
        self.output.flush()
    }

    /// Verifies what the source gave, and writes every finding before anything else is read.
    fn take(&mut self, id: SourceId, bytes: &[u8], arrived: Instant) -> io::Result<()> {
        self.output.set_arrived(Some(arrived));
        let before = self.tally();
        let open = self
            .open
            .get_mut(&id)
            .expect("bytes come from open sources");
        let kind = open.kind;
        if let Some(metrics) = &self.metrics {
            metrics.lag.of(kind).begin(arrived);
        }
        let (checker, output) = (&mut self.checker, &mut self.output);
        let held_before = open.lines.held_bytes();
        open.lines.push(bytes, |line| {
            checker.check(line, &open.source, &mut output.reports);
            output.write_reports();
        });
        self.held_bytes = self.held_bytes + open.lines.held_bytes() - held_before;
        if let Some(place) = &mut open.place {
            place.advance(bytes, open.lines.position());
        }
        let nuls = open.lines.take_skipped_nuls();
        if nuls > 0 {
            let name = shown(&open.source.name);
            tracing::warn!("{name}: {nuls} NUL bytes before a line were skipped");
        }
        self.bytes += bytes.len() as u64;
        self.has_changed = true;
        let after = Tally::new(self.bytes, self.checker.totals());
        open.tally.add_between(before, after);
        if self.held_bytes > self.config.max_buffered_bytes {
            self.give_up_lines();
        }
        if let Some(metrics) = &self.metrics {
            metrics.lag.of(kind).verified(bytes.len() as u64);
            let records = after.records_since(before);
            metrics.verdict.record(arrived, Instant::now(), records);
        }
        self.publish();
        self.output.flush()?;
        self.output.set_arrived(None);
        Ok(())
    }

    /// Makes room where too many lines are unfinished: the longest count as over-long.
    fn give_up_lines(&mut self) {
        while self.held_bytes > self.config.max_buffered_bytes {
            let longest = self
                .open
                .values_mut()
                .max_by_key(|open| open.lines.held_bytes());
            let Some(open) = longest else { return };
            let held = open.lines.held_bytes();
            let (checker, output) = (&mut self.checker, &mut self.output);
            open.lines.give_up(|line| {
                checker.check(line, &open.source, &mut output.reports);
                output.write_reports();
            });
            if let Some(place) = &mut open.place {
                place.pass_over_the_rest(open.lines.position());
            }
            let freed = held - open.lines.held_bytes();
            self.held_bytes -= freed;
            if freed == 0 {
                return;
            }
        }
    }

    fn end_source(&mut self, id: SourceId, state: SourceState, message: &str) -> io::Result<()> {
        let before = self.tally();
        let mut open = self.close(id);
        let is_let_go = self.config.follow && open.place.is_some() && state == SourceState::Closed;
        let (checker, output) = (&mut self.checker, &mut self.output);
        if !is_let_go {
            open.lines.finish(|line| {
                checker.check(line, &open.source, &mut output.reports);
                output.write_reports();
            });
            if let Some(place) = &mut open.place {
                place.pass_over_the_rest(open.lines.position());
            }
        }
        let goes_on = matches!(state, SourceState::Rotated | SourceState::Truncated);
        // What is kept of a file's trace waits for the file to grow.
        let is_kept = self.remembered.is_some() && open.place.is_some();
        let waits = is_kept && state == SourceState::Closed;
        if !goes_on && !waits && !is_let_go {
            checker.end_source(&open.source, &mut output.reports);
        }
        output.write_reports();
        let name = &*open.source.name;
        output.source_state(state, name, message)?;
        open.tally.add_between(before, self.tally());
        let (name, tally) = (shown(name), open.tally);
        self.output
            .say(|| tracing::info!("{name}: {message}: {tally}"));
        if let (Some(remembered), Some(place)) = (&mut self.remembered, open.place)
            && state == SourceState::Closed
        {
            remembered.remember(place.saved, Instant::now());
        }
        self.output.flush()
    }

    /// Takes a source out of those that are read.
    fn close(&mut self, id: SourceId) -> OpenSource {
        let open = self.open.remove(&id).expect("only open sources end");
        self.held_bytes -= open.lines.held_bytes();
        self.has_changed = true;
        if open.place.is_some() {
            self.keep_news();
        }
        if let Some(metrics) = &self.metrics {
            metrics.sources.of(open.kind).sub(1);
        }
        open
    }

    /// Shows others what was counted.
    fn publish(&self) {
        if let Some(metrics) = &self.metrics {
            let totals = self.checker.totals();
            let (open, pending) = self.checker.open_and_pending();
            metrics.set_totals(self.bytes, totals.records, &totals.counts);
            metrics.traces_open.set(open as u64);
            metrics.references_pending.set(pending as u64);
            metrics.traces_evicted.set(totals.evicted);
        }
    }

    /// A source broke off, or cannot be had for now. What was not a whole line of it is dropped.
    fn lose(&mut self, id: Option<SourceId>, name: &str, error: &str) -> io::Result<()> {
        if let Some(id) = id {
            let open = self.close(id);
            self.checker
                .give_up_source(&open.source, &mut self.output.reports);
            self.output.write_reports();
        }
        self.output
            .say(|| tracing::warn!("{}: {}", shown(name), visible(error, MAX_NAME_CHARS)));
        self.output.source_state(SourceState::Failed, name, error)?;
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
        let message = match id.map(|id| self.close(id)) {
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
        let reports = &mut self.output.reports;
        match (self.is_complete, &self.remembered) {
            (true, None) => self.checker.end_all(reports),
            (true, Some(_)) => self.checker.decide_pending(reports),
            (false, _) => {}
        }
        self.output.write_reports();
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
