//! What a run has to say: findings, the ends of traces, what became of sources, and the summary, as
//! JSON or as text for people on standard output, or as entries of the journal.
//!
//! There are two ways to the output:
//!
//! - A run that ends writes [directly](Emitter::new). Nothing else has to go on while its reader is
//!   slow, the text may have to be written around a progress bar, and a hand-over to another thread
//!   would only cost time.
//! - A run that follows, and whatever writes to the journal, goes [through a
//!   queue](Emitter::queued) to a thread that writes. What blocks there leaves the engine free to tell
//!   that it is alive, to hear of a stop, and to end in time with a count of what was cut off.

pub(crate) mod journal_socket;
mod journald;
pub(crate) mod quantity;
pub(crate) mod queue;
pub(crate) mod sanitise;
pub(crate) mod stop;
mod text;
pub(crate) mod writer;

use std::io::{self, Write};
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use tracecheck::event::{Event, SourceEvent, SourceState, Summary};
use tracecheck::finding::Report;

use journald::JournalWriter;
use queue::{Chunk, OutputQueue};
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
    out: Out<W>,
    buffer: Vec<u8>,
    /// How many events are in the buffer.
    collected: u32,
    form: Form,
    trace_events: bool,
    clock: fn() -> SystemTime,
}

enum Out<W> {
    Direct(W),
    Queued {
        queue: Arc<OutputQueue>,
        arrived: Option<Instant>,
    },
}

enum Form {
    Json,
    Text { writer: TextWriter, quiet: bool },
    Journal(JournalWriter),
}

impl From<Format> for Form {
    fn from(format: Format) -> Form {
        match format {
            Format::Json => Form::Json,
            Format::Text { color, quiet } => Form::Text {
                writer: TextWriter::new(color),
                quiet,
            },
        }
    }
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
        Emitter::over(Out::Direct(out), format.into(), trace_events, clock)
    }

    /// An emitter whose output goes through a queue to standard output.
    pub(crate) fn queued(
        queue: Arc<OutputQueue>,
        format: Format,
        trace_events: bool,
        clock: fn() -> SystemTime,
    ) -> Self {
        let arrived = None;
        let out = Out::Queued { queue, arrived };
        Emitter::over(out, format.into(), trace_events, clock)
    }

    /// An emitter of journal entries, through a queue.
    pub(crate) fn journal(
        queue: Arc<OutputQueue>,
        trace_events: bool,
        clock: fn() -> SystemTime,
    ) -> Self {
        let arrived = None;
        let out = Out::Queued { queue, arrived };
        let form = Form::Journal(JournalWriter::new());
        Emitter::over(out, form, trace_events, clock)
    }

    fn over(out: Out<W>, form: Form, trace_events: bool, clock: fn() -> SystemTime) -> Self {
        Emitter {
            out,
            buffer: Vec::with_capacity(WRITE_BYTES),
            collected: 0,
            form,
            trace_events,
            clock,
        }
    }

    /// The same, with text in these terms.
    pub(crate) fn in_terms_of(mut self, terms: Terms) -> Self {
        match &mut self.form {
            Form::Json => {}
            Form::Text { writer, .. } => writer.terms = terms,
            Form::Journal(writer) => writer.set_terms(terms),
        }
        self
    }

    /// Tells traces that closed in good order too, or no longer.
    pub(crate) fn set_trace_events(&mut self, trace_events: bool) {
        self.trace_events = trace_events;
    }

    /// Says when that was read of which is told from now on, so that the queue's writer can measure
    /// how long it took; `None` of what was not read, such as a summary. Flush before.
    pub(crate) fn set_arrived(&mut self, time: Option<Instant>) {
        if let Out::Queued { arrived, .. } = &mut self.out {
            *arrived = time;
        }
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

    /// Writes what was collected and flushes the writer, or hands it over to the queue. Where there
    /// is nothing to hand over, an error of the queue's writer is returned all the same.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.write_collected()?;
        match &mut self.out {
            Out::Direct(out) => out.flush(),
            Out::Queued { .. } => Ok(()),
        }
    }

    fn event(&mut self, event: Event<'_>) -> io::Result<()> {
        let before = self.buffer.len();
        match (&mut self.form, event) {
            (Form::Json, event) => event.append_to(&mut self.buffer, (self.clock)()),
            (Form::Text { quiet: true, .. }, Event::Summary(_)) => {}
            (Form::Text { writer, .. }, event) => writer.append(&mut self.buffer, event)?,
            (Form::Journal(writer), event) => {
                writer.append(&mut self.buffer, event, (self.clock)());
            }
        }
        if self.buffer.len() > before {
            self.collected += 1;
        }
        // Each journal entry is a datagram of its own.
        if matches!(self.form, Form::Journal(_)) || self.buffer.len() >= WRITE_BYTES {
            self.write_collected()?;
        }
        Ok(())
    }

    fn write_collected(&mut self) -> io::Result<()> {
        let events = std::mem::take(&mut self.collected);
        let written = match &mut self.out {
            Out::Direct(out) => out.write_all(&self.buffer),
            Out::Queued { queue, .. } if self.buffer.is_empty() => queue.check(),
            Out::Queued { queue, arrived } => queue.push(Chunk {
                bytes: self.buffer.clone(),
                events,
                arrived: *arrived,
            }),
        };
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

    fn queue() -> Arc<OutputQueue> {
        Arc::new(OutputQueue::new(stop::Stop::default(), Arc::default()))
    }

    #[test]
    fn a_queue_gets_what_was_collected_with_its_events() {
        let (queue, now) = (queue(), Instant::now());
        let clock = || SystemTime::UNIX_EPOCH;
        let mut emitter = Emitter::<Vec<u8>>::queued(Arc::clone(&queue), QUIET, false, clock);
        emitter.flush().expect("nothing to do");
        assert_eq!(queue.position(), 0);
        emitter.set_arrived(Some(now));
        for report in [
            Report::Evicted(end()),
            Report::Closed(end()),
            Report::Evicted(end()),
        ] {
            emitter.report(&report).expect("collected");
        }
        emitter.flush().expect("room");
        emitter.set_arrived(None);
        emitter.summary(&Summary::default()).expect("left out");
        emitter.flush().expect("nothing to do");
        assert_eq!(queue.position(), 1);
        let chunk = queue.next().expect("pushed");
        assert_eq!((chunk.events, chunk.arrived), (2, Some(now)));
        assert_eq!(chunk.bytes.iter().filter(|&&byte| byte == b'\n').count(), 2);
    }

    #[test]
    fn the_journal_gets_a_chunk_an_event() {
        let queue = queue();
        let clock = || SystemTime::UNIX_EPOCH;
        let emitter = Emitter::<Vec<u8>>::journal(Arc::clone(&queue), false, clock);
        let mut emitter = emitter.in_terms_of(Terms::Runs);
        emitter.report(&Report::Evicted(end())).expect("room");
        emitter.report(&Report::Closed(end())).expect("left out");
        emitter.summary(&Summary::default()).expect("room");
        emitter.flush().expect("nothing to do");
        assert_eq!(queue.position(), 2);
        for begin in [
            "MESSAGE=too many open traces: run `",
            "MESSAGE=nothing was checked: ",
        ] {
            let chunk = queue.next().expect("pushed");
            assert_eq!((chunk.events, chunk.arrived), (1, None));
            let message = journald::parse::text(&chunk.bytes, "MESSAGE").expect("there");
            assert!(format!("MESSAGE={message}").starts_with(begin), "{message}");
            queue.note_written();
        }
    }
}
