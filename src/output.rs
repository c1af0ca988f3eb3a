//! Where the engine's reports go.

use std::io::{self, Write};
use std::time::SystemTime;

use tracecheck::Report;
use tracecheck::event::{SourceState, Summary};

use crate::config::{Config, Format, Protocol};
use crate::emit::{self, Emitter, Terms};
use crate::progress::Progress;

/// Writes reports and says what the program does, clear of the progress bar. After an error
/// nothing more is written.
pub(crate) struct Output {
    emitter: Emitter<Box<dyn Write>>,
    progress: Progress,
    error: Option<io::Error>,
    /// What has come together and is to be written.
    pub(crate) reports: Vec<Report>,
}

impl Output {
    pub(crate) fn new(config: &Config, out: Box<dyn Write>, progress: Progress) -> Output {
        let terms = match config.protocol {
            Protocol::A3 => Terms::Traces,
            Protocol::AgUi { .. } => Terms::Runs,
        };
        let format = match &config.format {
            Format::Json => emit::Format::Json,
            Format::Text => emit::Format::Text {
                color: config.color,
                quiet: config.quiet,
            },
            Format::Journald(_) => emit::Format::Json,
        };
        let emitter = Emitter::new(out, format, config.trace_events, SystemTime::now);
        Output {
            emitter: emitter.in_terms_of(terms),
            progress,
            error: None,
            reports: Vec::new(),
        }
    }

    /// Writes the reports that have come together.
    #[inline]
    pub(crate) fn write_reports(&mut self) {
        if self.reports.is_empty() {
            return;
        }
        for report in self.reports.drain(..) {
            if self.error.is_none() {
                self.error = self.emitter.report(&report).err();
            }
        }
    }

    pub(crate) fn source_state(
        &mut self,
        state: SourceState,
        source: &str,
        message: &str,
    ) -> io::Result<()> {
        self.result()?;
        self.emitter.source_state(state, source, message)
    }

    pub(crate) fn summary(&mut self, summary: &Summary) -> io::Result<()> {
        self.result()?;
        self.progress.finish();
        self.emitter.summary(summary)
    }

    /// Hands on what was written.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.result()?;
        self.emitter.flush()
    }

    /// Tells how much more was read.
    pub(crate) fn advance(&self, read: u64) {
        self.progress.advance(read);
    }

    /// Writes a diagnostic.
    pub(crate) fn say(&self, diagnostic: impl FnOnce()) {
        self.progress.suspend(diagnostic);
    }

    fn result(&mut self) -> io::Result<()> {
        self.error.take().map_or(Ok(()), Err)
    }
}
