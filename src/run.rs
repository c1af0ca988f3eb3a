//! A run: sources in, findings out, one thread that reads and one that verifies and writes.

use std::io;
use std::mem;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant, SystemTime};

use tracecheck::event::{SourceState, Summary};
use tracecheck::{Framer, Options, Report, Severity, Source, Verifier};

use crate::config::{Config, Format};
use crate::emit::sanitise::visible;
use crate::emit::{self, Emitter};
use crate::exit::Outcome;
use crate::progress::{Beside, Progress};
use crate::signals;
use crate::source::{Archives, Block, Expansion, Message, Origin, expand, read_all};

/// Messages that wait between the threads; what bounds the memory is the number of blocks.
const CHANNEL_MESSAGES: usize = 4;

/// How often idle traces are looked for while nothing comes.
const IDLE_CHECK: Duration = Duration::from_millis(250);

/// Longest name of a source in a diagnostic; no path can be longer.
const MAX_NAME_CHARS: usize = 4096;

/// Verifies everything that the configuration names.
pub(crate) fn run(config: &Config) -> Outcome {
    let expansion = expand(&config.inputs);
    let progress = Progress::new(config.progress, total_bytes(&expansion.origins));
    let (sender, receiver) = sync_channel(CHANNEL_MESSAGES);
    if let Err(error) = signals::listen(sender.clone()) {
        tracing::warn!("signals will end the run at once: {error}");
    }
    let mut run = Run::new(config, &progress);
    let result = run.announce(&expansion).and_then(|()| {
        let nothing_read = expansion.origins.is_empty() && expansion.failures.is_empty();
        run.outcome.nothing_read = nothing_read;
        run.take_all(expansion.origins, sender, &receiver)?;
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
    verifier: Verifier,
    output: Output<'c>,
    outcome: Outcome,
    started: Instant,
    /// How much was verified, archives decompressed.
    bytes: u64,
    /// Whether what was read is all there is: no source failed, nobody stopped the run.
    is_complete: bool,
    /// The source that is being read.
    current: Option<Current>,
}

struct Current {
    source: Source,
    framer: Framer,
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
    fn write_reports(&mut self) {
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
    fn new(config: &'c Config, progress: &'c Progress) -> Self {
        let format = match config.format {
            Format::Json => emit::Format::Json,
            Format::Text => emit::Format::Text {
                color: config.color,
                quiet: config.quiet,
            },
        };
        let out = progress.beside(io::stdout());
        Run {
            config,
            verifier: Verifier::new(options(config)),
            output: Output {
                emitter: Emitter::new(out, format, config.trace_events, SystemTime::now),
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
            current: None,
        }
    }

    /// Says what of the input could not be found.
    fn announce(&mut self, expansion: &Expansion) -> io::Result<()> {
        for name in &expansion.empty {
            let name = visible(name, MAX_NAME_CHARS);
            tracing::warn!(
                "{name}: no traces there (*.jsonl, *.ndjson, these with .gz or .zst, or what the glob matches)"
            );
        }
        expansion
            .failures
            .iter()
            .try_for_each(|(name, error)| self.fail(name, error))
    }

    fn take_all(
        &mut self,
        origins: Vec<Origin>,
        sender: SyncSender<Message>,
        receiver: &Receiver<Message>,
    ) -> io::Result<()> {
        let archives = match self.config.follow {
            true => Archives::Refuse,
            false => Archives::Decompress,
        };
        let used = read_all(origins, archives, sender);
        loop {
            match self.next_message(receiver)? {
                Message::Opened(source) => self.open(source)?,
                Message::Bytes { block, read } => {
                    self.take(&block)?;
                    self.output.progress.advance(read);
                    // The reading thread has gone where it needs no more blocks.
                    let _ = used.send(block);
                }
                Message::Ended => self.end_source()?,
                Message::Failed { name, error } => self.fail(&name, &error)?,
                Message::Done => return Ok(()),
                Message::Stop => {
                    tracing::info!("stopping at a signal");
                    self.is_complete = false;
                    return Ok(());
                }
            }
        }
    }

    /// Waits for the next message, ending idle traces meanwhile.
    fn next_message(&mut self, receiver: &Receiver<Message>) -> io::Result<Message> {
        let gone = "the signals' thread never drops its end";
        if self.config.trace_idle.is_none() || !self.config.follow {
            return Ok(receiver.recv().unwrap_or(Message::Done));
        }
        loop {
            let message = receiver.recv_timeout(IDLE_CHECK);
            self.verifier
                .set_time(self.started.elapsed(), &mut self.output.reports);
            self.output.write_reports();
            match message {
                Ok(message) => return Ok(message),
                Err(RecvTimeoutError::Timeout) => self.flush()?,
                Err(RecvTimeoutError::Disconnected) => unreachable!("{gone}"),
            }
        }
    }

    fn open(&mut self, source: Source) -> io::Result<()> {
        self.output
            .emitter
            .source_state(SourceState::Opened, &source.name, "reading")?;
        self.current = Some(Current {
            source,
            framer: Framer::new(self.config.max_record_bytes),
        });
        self.flush()
    }

    /// Verifies what the source gave, and writes every finding before anything else is read.
    fn take(&mut self, block: &Block) -> io::Result<()> {
        let current = self
            .current
            .as_mut()
            .expect("bytes come from an open source");
        let (verifier, output) = (&mut self.verifier, &mut self.output);
        current.framer.push(block.bytes(), |line| {
            verifier.verify(line, &current.source, &mut output.reports);
            output.write_reports();
        });
        self.bytes += block.bytes().len() as u64;
        self.flush()
    }

    fn end_source(&mut self) -> io::Result<()> {
        let Some(mut current) = self.current.take() else {
            return Ok(());
        };
        let (verifier, output) = (&mut self.verifier, &mut self.output);
        current.framer.finish(|line| {
            verifier.verify(line, &current.source, &mut output.reports);
            output.write_reports();
        });
        verifier.end_source(&current.source, &mut output.reports);
        output.write_reports();
        output.result()?;
        output.emitter.source_state(
            SourceState::Closed,
            &current.source.name,
            "read to its end",
        )?;
        self.flush()
    }

    /// A source could not be opened or read. What was read of it stands; the others go on.
    fn fail(&mut self, name: &str, error: &str) -> io::Result<()> {
        self.outcome.source_errors += 1;
        self.is_complete = false;
        let message = match self.current.take() {
            Some(_) => format!("cannot read any further: {error}"),
            None => format!("cannot open: {error}"),
        };
        if self.config.format == Format::Json {
            tracing::error!("{}: {message}", visible(name, MAX_NAME_CHARS));
        }
        self.output
            .emitter
            .source_state(SourceState::Failed, name, &message)?;
        self.flush()
    }

    fn flush(&mut self) -> io::Result<()> {
        self.output.result()?;
        self.output.emitter.flush()
    }

    /// Ends the traces that are still open, if all there is of them was read, and sums up.
    fn finish(&mut self) -> io::Result<()> {
        if self.is_complete {
            self.verifier.end_all(&mut self.output.reports);
            self.output.write_reports();
            self.output.result()?;
        }
        self.output.progress.finish();
        let totals = self.verifier.totals();
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
        let counts = &self.verifier.totals().counts;
        let has = |severity| self.config.fail_on.includes(severity) && counts.total(severity) > 0;
        has(Severity::Error) || has(Severity::Warning)
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
