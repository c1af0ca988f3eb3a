//! What a run writes to standard output: findings, the ends of traces, what became of sources,
//! and the summary, as JSON or as text for people.

pub(crate) mod quantity;
pub(crate) mod sanitise;
mod text;

use std::io::{self, Write};
use std::time::SystemTime;

use tracecheck::event::{Event, SourceEvent, SourceState, Summary};
use tracecheck::finding::Report;

use text::TextWriter;

/// How many bytes are collected before they are written: few system calls, and a pipe that is as
/// large is filled in one.
const WRITE_BYTES: usize = 64 * 1024;

/// How findings are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// One event a line, for programs: see [`tracecheck::event`].
    Json,
    /// A paragraph a finding, for people.
    Text {
        /// Whether ANSI styles are used.
        color: bool,
        /// Whether the summary is left out.
        quiet: bool,
    },
}

/// What text calls the things that it counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Terms {
    /// Records and placements of traces.
    #[default]
    Traces,
    /// Events of runs.
    Runs,
}

/// Writes the output of one run.
///
/// It collects what it is given and writes whole lines. What is collected and not yet
/// [flushed](Emitter::flush) is lost when the emitter is dropped, and so is what could not be
/// written: after an error the output has a gap. An error is the writer's own, so a reader that
/// went away shows as [`io::ErrorKind::BrokenPipe`].
pub(crate) struct Emitter<W> {
    out: W,
    buffer: Vec<u8>,
    form: Form,
    trace_events: bool,
    clock: fn() -> SystemTime,
}

enum Form {
    Json,
    Text { writer: TextWriter, quiet: bool },
}

impl<W: Write> Emitter<W> {
    /// An emitter that writes to `out`. With `trace_events`, traces that closed in good order are
    /// told too. `clock` gives the times of events.
    pub(crate) fn new(
        out: W,
        format: Format,
        trace_events: bool,
        clock: fn() -> SystemTime,
    ) -> Self {
        let form = match format {
            Format::Json => Form::Json,
            Format::Text { color, quiet } => Form::Text {
                writer: TextWriter::new(color),
                quiet,
            },
        };
        Emitter {
            out,
            buffer: Vec::with_capacity(WRITE_BYTES),
            form,
            trace_events,
            clock,
        }
    }

    /// The same, with text in these terms.
    pub(crate) fn in_terms_of(mut self, terms: Terms) -> Self {
        if let Form::Text { writer, .. } = &mut self.form {
            writer.terms = terms;
        }
        self
    }

    /// Writes a finding or the end of a trace.
    pub(crate) fn report(&mut self, report: &Report) -> io::Result<()> {
        if matches!(report, Report::Closed(_)) && !self.trace_events {
            return Ok(());
        }
        self.event(Event::from(report))
    }

    /// Writes what became of a source. Text shows only failures: that the others went well is what
    /// a person takes for granted.
    pub(crate) fn source_state(
        &mut self,
        state: SourceState,
        source: &str,
        message: &str,
    ) -> io::Result<()> {
        self.event(Event::Source(SourceEvent {
            state,
            source,
            message,
        }))
    }

    /// Writes the summary; the last thing to be written. Quiet text leaves it out.
    pub(crate) fn summary(&mut self, summary: &Summary) -> io::Result<()> {
        self.event(Event::Summary(summary))
    }

    /// Writes what was collected and flushes the writer.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.write_collected()?;
        self.out.flush()
    }

    fn event(&mut self, event: Event<'_>) -> io::Result<()> {
        match (&mut self.form, event) {
            (Form::Json, event) => event.append_to(&mut self.buffer, (self.clock)()),
            (Form::Text { quiet: true, .. }, Event::Summary(_)) => {}
            (Form::Text { writer, .. }, event) => writer.append(&mut self.buffer, event)?,
        }
        if self.buffer.len() >= WRITE_BYTES {
            self.write_collected()?;
        }
        Ok(())
    }

    fn write_collected(&mut self) -> io::Result<()> {
        let written = self.out.write_all(&self.buffer);
        self.buffer.clear();
        written
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracecheck::finding::{Counts, TraceEnd};

    const JSON: Format = Format::Json;
    const TEXT: Format = Format::Text {
        color: false,
        quiet: false,
    };
    const QUIET: Format = Format::Text {
        color: false,
        quiet: true,
    };

    fn emitted(
        format: Format,
        trace_events: bool,
        write: impl FnOnce(&mut Emitter<&mut Vec<u8>>) -> io::Result<()>,
    ) -> String {
        let mut out = Vec::new();
        let mut emitter = Emitter::new(&mut out, format, trace_events, || SystemTime::UNIX_EPOCH);
        write(&mut emitter).expect("a Vec takes everything");
        emitter.flush().expect("a Vec takes everything");
        String::from_utf8(out).expect("UTF-8")
    }

    fn end() -> TraceEnd {
        TraceEnd {
            trace: "order-4711".into(),
            records: 2,
            placements: 1,
            counts: Counts::default(),
        }
    }

    #[test]
    fn closed_traces_are_told_on_request_and_evicted_ones_always() {
        for format in [JSON, TEXT] {
            for trace_events in [false, true] {
                let closed = emitted(format, trace_events, |emitter| {
                    emitter.report(&Report::Closed(end()))
                });
                assert_eq!(!closed.is_empty(), trace_events, "{closed}");
                let evicted = emitted(format, trace_events, |emitter| {
                    emitter.report(&Report::Evicted(end()))
                });
                assert!(evicted.contains("order-4711"), "{evicted}");
            }
        }
    }

    #[test]
    fn sources_are_told_in_json_and_failures_in_text() {
        for state in [
            SourceState::Opened,
            SourceState::Closed,
            SourceState::Failed,
        ] {
            let told = |format| emitted(format, false, |e| e.source_state(state, "a.jsonl", "why"));
            assert!(told(JSON).contains("a.jsonl"));
            assert_eq!(told(TEXT).is_empty(), state != SourceState::Failed);
        }
    }

    #[test]
    fn only_quiet_text_has_no_summary() {
        let summary = |format| emitted(format, false, |e| e.summary(&Summary::default()));
        assert!(summary(JSON).starts_with("{\"event\":\"summary\",\"time\":\"1970-"));
        assert!(summary(TEXT).starts_with("nothing was checked"));
        assert_eq!(summary(QUIET), "");
    }

    /// Remembers the pieces that it was given, and refuses once there are `left` of them.
    struct Pieces {
        taken: Vec<Vec<u8>>,
        left: usize,
    }

    impl Write for Pieces {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.taken.len() == self.left {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            self.taken.push(bytes.to_vec());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn whole_lines_are_written_together() {
        let mut pieces = Pieces {
            taken: Vec::new(),
            left: usize::MAX,
        };
        let mut emitter = Emitter::new(&mut pieces, JSON, false, || SystemTime::UNIX_EPOCH);
        for _ in 0..2_000 {
            emitter.report(&Report::Evicted(end())).expect("taken");
        }
        emitter.flush().expect("taken");
        assert!(pieces.taken.len() > 1);
        for piece in &pieces.taken {
            assert_eq!(piece.last(), Some(&b'\n'));
        }
        let lines = pieces.taken.concat();
        assert_eq!(lines.iter().filter(|&&byte| byte == b'\n').count(), 2_000);
    }

    #[test]
    fn a_reader_that_went_away_is_a_broken_pipe_and_nothing_is_written_twice() {
        let mut pieces = Pieces {
            taken: Vec::new(),
            left: 0,
        };
        let mut emitter = Emitter::new(&mut pieces, JSON, false, || SystemTime::UNIX_EPOCH);
        emitter.report(&Report::Evicted(end())).expect("collected");
        let error = emitter.flush().expect_err("closed");
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
        emitter.flush().expect("nothing is left to write");
    }
}
