//! A run: sources in, findings out. Whatever reads sends [messages](Message) through one channel;
//! here they are verified and what is found is written.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::mem;
use std::time::{Instant, SystemTime};

use tokio::sync::mpsc::{Receiver, Sender, channel};
use tracecheck::event::{SourceState, Summary};
use tracecheck::{Report, Severity, Source, Totals};

use crate::checking::{Checker, Declaration, Lines};
use crate::config::{Config, Format, Protocol};
use crate::emit::sanitise::{Visible, visible};
use crate::emit::{self, Emitter, Terms};
use crate::exit::Outcome;
use crate::progress::{Beside, Progress};
use crate::signals;
use crate::source::{Archives, Expansion, Message, Opened, Origin, SourceId, expand, read_all};

/// Messages that wait between the threads; what bounds the memory is the number of blocks.
const CHANNEL_MESSAGES: usize = 4;

/// Longest name of a source in a diagnostic; no path can be longer.
const MAX_NAME_CHARS: usize = 4096;

/// Verifies everything that the configuration names.
pub(crate) fn run(config: &Config) -> Outcome {
    tracing::debug!("{}", visible(&format!("{config:?}"), usize::MAX));
    let expansion = expand(&config.inputs);
    let progress = Progress::new(config.progress, total_bytes(&expansion.origins));
    let (sender, mut receiver) = channel(CHANNEL_MESSAGES);
    if let Err(error) = signals::listen(sender.clone(), config.follow) {
        tracing::warn!("signals will end the run at once: {error}");
    }
    let (checker, declaration) = Checker::new(config);
    let mut run = Run::new(config, checker, &progress);
    let announced = run.announce_declaration(declaration);
    let result = announced.and_then(|()| {
        run.announce(&expansion)?;
        let nothing_read = expansion.origins.is_empty() && expansion.failures.is_empty();
        run.outcome.nothing_read = nothing_read;
        run.take_all(expansion.origins, sender, &mut receiver)?;
        run.finish()
    });
    progress.finish();
    if let Err(error) = result {
        run.outcome.note_output_error(&error);
    }
    run.outcome.failing_findings = run.has_failing_findings();
    let outcome = run.outcome;
    // The process ends here; freeing a million states one by one would only keep somebody waiting.
    mem::forget(run);
    outcome
}

/// How many bytes there are to read, where that is known.
fn total_bytes(origins: &[Origin]) -> Option<u64> {
    let length = |origin: &Origin| match origin {
        Origin::Stdin => None,
        Origin::File(path) => {
            let metadata = path.metadata().ok()?;
            metadata.is_file().then_some(metadata.len())
        }
    };
    origins.iter().map(length).sum()
}

struct Run<'c> {
    config: &'c Config,
    checker: Checker,
    output: Output<'c>,
    outcome: Outcome,
    started: Instant,
    /// How much was verified, archives decompressed.
    bytes: u64,
    /// Whether what was read is all there is: no source failed, nobody stopped the run.
    is_complete: bool,
    /// The sources that are being read.
    open: HashMap<SourceId, OpenSource>,
}

struct OpenSource {
    source: Source,
    lines: Lines,
    tally: Tally,
}

/// What can be counted of a run, or of a part of it.
#[derive(Clone, Copy, Default)]
struct Tally {
    bytes: u64,
    records: u64,
    placements: u64,
    errors: u64,
    warnings: u64,
}

impl Tally {
    fn new(bytes: u64, totals: &Totals) -> Tally {
        Tally {
            bytes,
            records: totals.records,
            placements: totals.placements,
            errors: totals.counts.total(Severity::Error),
            warnings: totals.counts.total(Severity::Warning),
        }
    }

    /// Adds what came between two tallies of a whole.
    fn add_between(&mut self, before: Tally, after: Tally) {
        self.bytes += after.bytes - before.bytes;
        self.records += after.records - before.records;
        self.placements += after.placements - before.placements;
        self.errors += after.errors - before.errors;
        self.warnings += after.warnings - before.warnings;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "records {}, placements {}, bytes {}, errors {}, warnings {}",
            self.records, self.placements, self.bytes, self.errors, self.warnings
        )
    }
}

/// Where reports go. After an error nothing more is written.
struct Output<'c> {
    emitter: Emitter<Beside<io::Stdout>>,
    progress: &'c Progress,
    error: Option<io::Error>,
    reports: Vec<Report>,
}

impl Output<'_> {
    /// Writes the reports that have come together.
    #[inline]
    fn write_reports(&mut self) {
        if self.reports.is_empty() {
            return;
        }
        for report in self.reports.drain(..) {
            if self.error.is_none() {
                self.error = self.emitter.report(&report).err();
            }
        }
    }

    fn result(&mut self) -> io::Result<()> {
        self.error.take().map_or(Ok(()), Err)
    }
}

impl<'c> Run<'c> {
    fn new(config: &'c Config, checker: Checker, progress: &'c Progress) -> Self {
        let terms = match config.protocol {
            Protocol::A3 => Terms::Traces,
            Protocol::AgUi { .. } => Terms::Runs,
        };
        let clock = SystemTime::now;
        let format = match &config.format {
            Format::Json => emit::Format::Json,
            Format::Text => emit::Format::Text {
                color: config.color,
                quiet: config.quiet,
            },
            Format::Journald(_) => todo!("the journal"),
        };
        let out = progress.beside(io::stdout());
        Run {
            config,
            checker,
            output: Output {
                emitter: Emitter::new(out, format, config.trace_events, clock).in_terms_of(terms),
                progress,
                error: None,
                reports: Vec::new(),
            },
            outcome: Outcome {
                follow: config.follow,
                ..Outcome::default()
            },
            started: Instant::now(),
            bytes: 0,
            is_complete: true,
            open: HashMap::new(),
        }
    }

    /// Says what of the declaration cannot be used, once: the runs are read all the same.
    fn announce_declaration(&mut self, declaration: Declaration) -> io::Result<()> {
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
                self.flush()
            }
        }
    }

    /// Says what of the options has no effect and what of the input could not be found.
    fn announce(&mut self, expansion: &Expansion) -> io::Result<()> {
        if self.config.trace_idle.is_some() && !self.config.follow {
            tracing::warn!("--trace-idle has no effect without --follow");
        }
        for name in &expansion.empty {
            let name = shown(name);
            tracing::warn!(
                "{name}: no traces there (*.jsonl, *.ndjson, these with .gz or .zst, or what the glob matches)"
            );
        }
        expansion
            .failures
            .iter()
            .try_for_each(|(name, error)| self.fail(None, name, error))
    }

    fn take_all(
        &mut self,
        origins: Vec<Origin>,
        sender: Sender<Message>,
        receiver: &mut Receiver<Message>,
    ) -> io::Result<()> {
        let archives = match self.config.follow {
            true => Archives::Refuse,
            false => Archives::Decompress,
        };
        read_all(origins, archives, sender);
        loop {
            let message = receiver.blocking_recv().unwrap_or(Message::Done);
            match message {
                Message::Opened(opened) => self.open(*opened)?,
                Message::Bytes {
                    id, chunk, read, ..
                } => {
                    self.take(id, chunk.bytes())?;
                    self.output.progress.advance(read);
                }
                Message::Ended { id, state, message } => self.end_source(id, state, &message)?,
                Message::Failed {
                    id, name, error, ..
                } => self.fail(id, &name, &error)?,
                Message::Tick => self.tick()?,
                Message::Done => return Ok(()),
                Message::Stop => {
                    self.say(|| tracing::info!("stopping at a signal"));
                    for open in self.open.values() {
                        let (name, tally) = (shown(&open.source.name), open.tally);
                        self.say(|| tracing::info!("{name}: read up to the signal: {tally}"));
                    }
                    self.is_complete = false;
                    return Ok(());
                }
            }
        }
    }

    /// Ends idle traces.
    fn tick(&mut self) -> io::Result<()> {
        if let Checker::A3(verifier) = &mut self.checker {
            verifier.set_time(self.started.elapsed(), &mut self.output.reports);
        }
        self.output.write_reports();
        self.flush()
    }

    fn open(&mut self, opened: Opened) -> io::Result<()> {
        let Opened { id, source, .. } = opened;
        self.output
            .emitter
            .source_state(SourceState::Opened, &source.name, "reading")?;
        self.say(|| tracing::info!("{}: opened", shown(&source.name)));
        let open = OpenSource {
            source,
            lines: self.checker.lines(self.config.max_record_bytes),
            tally: Tally::default(),
        };
        self.open.insert(id, open);
        self.flush()
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
        self.flush()
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
        output.result()?;
        let name = &*open.source.name;
        output.emitter.source_state(state, name, message)?;
        open.tally.add_between(before, self.tally());
        let (name, tally) = (shown(name), open.tally);
        self.say(|| tracing::info!("{name}: {message}: {tally}"));
        self.flush()
    }

    /// What the run has come to.
    fn tally(&self) -> Tally {
        Tally::new(self.bytes, self.checker.totals())
    }

    /// Writes a diagnostic clear of the progress bar.
    fn say(&self, diagnostic: impl FnOnce()) {
        self.output.progress.suspend(diagnostic);
    }

    /// A source could not be opened or read. What was read of it stands; the others go on.
    fn fail(&mut self, id: Option<SourceId>, name: &str, error: &str) -> io::Result<()> {
        self.outcome.source_errors += 1;
        self.is_complete = false;
        let name_shown = shown(name);
        let message = match id.and_then(|id| self.open.remove(&id)) {
            Some(open) => {
                let tally = open.tally;
                self.say(|| tracing::info!("{name_shown}: read in part: {tally}"));
                format!("cannot read any further: {error}")
            }
            None => format!("cannot open: {error}"),
        };
        self.tell_failure(name, &message)
    }

    fn tell_failure(&mut self, name: &str, message: &str) -> io::Result<()> {
        self.say(|| tracing::error!("{}: {message}", shown(name)));
        self.output
            .emitter
            .source_state(SourceState::Failed, name, message)?;
        self.flush()
    }

    fn flush(&mut self) -> io::Result<()> {
        self.output.result()?;
        self.output.emitter.flush()
    }

    /// Ends the traces that are still open, if all there is of them was read, and sums up.
    fn finish(&mut self) -> io::Result<()> {
        if self.is_complete {
            self.checker.end_all(&mut self.output.reports);
            self.output.write_reports();
            self.output.result()?;
        }
        self.output.progress.finish();
        let totals = self.checker.totals();
        let summary = Summary {
            records: totals.records,
            placements: totals.placements,
            traces: totals.traces,
            counts: totals.counts.clone(),
            bytes: self.bytes,
            seconds: self.started.elapsed().as_secs_f64(),
        };
        self.output.emitter.summary(&summary)?;
        self.flush()
    }

    fn has_failing_findings(&self) -> bool {
        let counts = &self.checker.totals().counts;
        let has = |severity| self.config.fail_on.includes(severity) && counts.total(severity) > 0;
        has(Severity::Error) || has(Severity::Warning)
    }
}

/// A source's name in a diagnostic.
fn shown(name: &str) -> Visible<'_> {
    visible(name, MAX_NAME_CHARS)
}
