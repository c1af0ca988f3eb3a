//! The wire format: what `--format json` writes, one JSON object a line.
//!
//! [`Event`] is the only thing that writes it, and its documentation is the manual. What holds for
//! every event:
//!
//! - **Envelope.** An event is one JSON object (RFC 8259, UTF-8) on one line, ended by LF. Its
//!   first member is `event`, which names its kind: `finding`, `source`, `trace` or `summary`. The
//!   second is `time`, when it was written: RFC 3339, in UTC, to the millisecond
//!   (`2026-03-01T09:30:00.250Z`). The other members always come in the order documented here, with
//!   no space between tokens, so that `grep '"code":"E_'` finds the errors: no string of a trace
//!   can imitate that text, because its quotes are escaped.
//! - **Null.** Every member is always there. What is not known is `null`; a member is never left
//!   out for want of a value. The one exception is `truncated`, which is there only when it is
//!   `true`.
//! - **Numbers** are integers from 0 to 2^64-1, except `seconds`. Read them as 64-bit integers: a
//!   double loses the low digits of a `seq` or `offset` above 2^53.
//! - **Text is hostile.** Strings may hold anything a trace holds. Beyond what JSON demands, these
//!   are written as `\uXXXX` too: DEL and the C1 controls (some terminals act on them), the line
//!   and paragraph separators (some readers end a line there) and the bidirectional controls (they
//!   make a line show other than it is).
//! - **Size.** An event has at most [`MAX_EVENT_BYTES`], its LF included. One that would be longer
//!   has its longest strings cut, just far enough for the whole to fit; each ends in `…` then, and
//!   `"truncated":true` is the last member. `code`, `line`, `offset`, `seq`, `rule` and `id` are
//!   never cut.
//! - **Growth.** Later versions may add members behind the ones documented here, and kinds of
//!   events. A reader ignores what it does not know.

mod json;
mod time;

use std::time::SystemTime;

use crate::finding::{AgentId, Counts, Finding, Report, Severity, TraceEnd};
use json::ObjectWriter;

/// Most bytes of an event, its LF included. Log shippers and the journal split longer lines; a
/// pipe is written in one piece far beyond it.
pub const MAX_EVENT_BYTES: usize = 32 * 1024;

/// One line of the output. The envelope, and what is the same everywhere, is described in the
/// [module's documentation](self).
///
/// ```
/// use std::time::SystemTime;
/// use tracecheck::event::{Event, SourceEvent, SourceState};
///
/// let mut out = Vec::new();
/// let event = Event::Source(SourceEvent {
///     state: SourceState::Opened,
///     source: "traces/refund.jsonl",
///     message: "reading",
/// });
/// event.append_to(&mut out, SystemTime::UNIX_EPOCH);
/// assert!(out.starts_with(br#"{"event":"source","time":"1970-01-01T00:00:00.000Z","#));
/// ```
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// `finding`: something is wrong with one record.
    ///
    /// | member | type | |
    /// | --- | --- | --- |
    /// | `severity` | string | `error` (`E_*`) or `warning` (`W_*`) |
    /// | `code` | string | a [`Code`](crate::finding::Code), such as `E_CLEARANCE_UNMET` |
    /// | `message` | string | what is wrong, in one sentence, without a full stop |
    /// | `trace` | string | the trace's key; without `--trace-key`, the source's name. Of AG-UI: the run's `runId`, or else the source's name |
    /// | `source` | string | a file's path as given or matched, `stdin`, `tcp:PEER`, `unix:N` |
    /// | `line` | integer | 1-based number of the line in the source |
    /// | `offset` | integer | offset in the source of the line's first byte |
    /// | `seq` | integer or null | the record's `seq`, where it could be read |
    /// | `kind` | string or null | the record's `kind`, where it could be read; of `W_CAPABILITY`, the event's `type` |
    /// | `pointer` | string | JSON Pointer (RFC 6901) of the member; `""` for the whole line. Of `W_CAPABILITY`: of the field in the declaration |
    /// | `predicate` | string or null | the predicate in question, as section 5 writes it |
    /// | `agent` | object or null | `name` and `namespace` of the declaration's agent |
    /// | `rule` | string | the step of section 7, `7.2` to `7.7`; `7` or `6` outside of the steps; `3` or `4` for a document; see below for AG-UI |
    /// | `id` | string | 32 hexadecimal digits: the same finding has the same `id` in every run |
    /// | `value` | string or null | excerpt of the member as it stands in the record, JSON as text |
    ///
    /// With `--protocol ag-ui` a record is an event, and a server-sent event of several lines has the
    /// `line` and `offset` of its first `data` line. Its `seq`, `predicate` and `agent` are null.
    /// `rule` is `declaring` (`W_CAPABILITY`) or `error-handling` (`E_DECLARATION_*`), a section of the
    /// protocol's page on capabilities, or `events` (`E_STRUCTURE`), and a finding about a declaration
    /// has `line` 1 and `offset` 0 of that document.
    ///
    /// ```json
    /// {"event":"finding","time":"2026-03-01T09:30:00.250Z","severity":"error",
    /// "code":"E_CLEARANCE_UNMET",
    /// "message":"the agent does not hold clearance `refunds.issue`; the declaration's `clearances`: orders.read",
    /// "trace":"traces/refund.jsonl","source":"traces/refund.jsonl","line":3,"offset":412,"seq":3,
    /// "kind":"task.bound","pointer":"/content/scheduling/requirements/clearances/1",
    /// "predicate":"clearance:refunds.issue",
    /// "agent":{"name":"order-analyst","namespace":"support"},"rule":"7.5",
    /// "id":"0000000000000000000000000badcafe","value":"\"refunds.issue\""}
    /// ```
    Finding(&'a Finding),

    /// `source`: something became of a source.
    ///
    /// | member | type | |
    /// | --- | --- | --- |
    /// | `state` | string | `opened`, `rotated`, `truncated`, `removed`, `closed` or `failed`, see [`SourceState`] |
    /// | `source` | string | the source's name, as in a finding |
    /// | `message` | string | a sentence for people; its wording may change |
    ///
    /// ```json
    /// {"event":"source","time":"2026-03-01T09:30:00.250Z","state":"failed",
    /// "source":"traces/refund.jsonl","message":"cannot open: Permission denied (os error 13)"}
    /// ```
    Source(SourceEvent<'a>),

    /// `trace` with the state `closed`: a trace ended in good order. Written with
    /// `--trace-events`.
    ///
    /// | member | type | |
    /// | --- | --- | --- |
    /// | `state` | string | `closed` |
    /// | `trace` | string | the trace's name, as in a finding |
    /// | `records` | integer | how many records it had |
    /// | `placements` | integer | how many of them were `task.bound` |
    /// | `errors` | object | how many errors by code; codes without any are left out |
    /// | `warnings` | object | how many warnings by code, likewise |
    ///
    /// ```json
    /// {"event":"trace","time":"2026-03-01T09:30:00.250Z","state":"closed","trace":"order-4711",
    /// "records":12,"placements":2,"errors":{"E_CLEARANCE_UNMET":1},"warnings":{}}
    /// ```
    TraceClosed(&'a TraceEnd),

    /// `trace` with the state `evicted`: too many traces were open, and this one, used least
    /// recently, was given up. Should more of its records come, they are verified as a trace whose
    /// beginning was not seen. The members are those of `closed`.
    ///
    /// ```json
    /// {"event":"trace","time":"2026-03-01T09:30:00.250Z","state":"evicted","trace":"order-4711",
    /// "records":12,"placements":2,"errors":{"E_CLEARANCE_UNMET":1},"warnings":{}}
    /// ```
    TraceEvicted(&'a TraceEnd),

    /// `summary`: the last event of a run that came to its end; there is one.
    ///
    /// | member | type | |
    /// | --- | --- | --- |
    /// | `records` | integer | how many records were read; of AG-UI, events |
    /// | `placements` | integer | how many of them were `task.bound` |
    /// | `traces` | integer | how many traces they made up; of AG-UI, runs |
    /// | `errors` | object | how many errors by code; codes without any are left out |
    /// | `warnings` | object | how many warnings by code, likewise |
    /// | `bytes` | integer | how many bytes were read |
    /// | `seconds` | number | how long the run took, to the microsecond |
    ///
    /// ```json
    /// {"event":"summary","time":"2026-03-01T09:30:00.250Z","records":1204,"placements":38,
    /// "traces":3,"errors":{"E_STRUCTURE":1,"E_CLEARANCE_UNMET":1},"warnings":{"W_SEQ_GAP":1},
    /// "bytes":1902417,"seconds":0.020417}
    /// ```
    Summary(&'a Summary),
}

/// What became of a source; see [`Event::Source`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceEvent<'a> {
    /// What happened.
    pub state: SourceState,
    /// The source's name: a file's path, `stdin`, or the name of a connection.
    pub source: &'a str,
    /// The same for people, with what is worth knowing beyond the state.
    pub message: &'a str,
}

/// The states that a `source` event reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SourceState {
    /// Reading has begun.
    Opened,
    /// Another file has taken the name; the old one was read to its end.
    Rotated,
    /// The file has become shorter than what was read of it, and is read from its beginning.
    Truncated,
    /// The file's name is gone.
    Removed,
    /// The source has ended and was read to its end.
    Closed,
    /// The source could not be opened, or not be read further.
    Failed,
}

impl SourceState {
    /// The word that events carry.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            SourceState::Opened => "opened",
            SourceState::Rotated => "rotated",
            SourceState::Truncated => "truncated",
            SourceState::Removed => "removed",
            SourceState::Closed => "closed",
            SourceState::Failed => "failed",
        }
    }
}

/// What a run came to; see [`Event::Summary`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Summary {
    /// How many records were read.
    pub records: u64,
    /// How many of them were `task.bound`.
    pub placements: u64,
    /// How many traces they made up.
    pub traces: u64,
    /// The findings that were reported, by code.
    pub counts: Counts,
    /// How many bytes were read.
    pub bytes: u64,
    /// How long the run took.
    pub seconds: f64,
}

impl<'a> From<&'a Report> for Event<'a> {
    fn from(report: &'a Report) -> Self {
        match report {
            Report::Finding(finding) => Event::Finding(finding),
            Report::Closed(end) => Event::TraceClosed(end),
            Report::Evicted(end) => Event::TraceEvicted(end),
        }
    }
}

impl Event<'_> {
    /// Appends the event to `out` as one line, its LF included. `time` goes into the envelope.
    pub fn append_to(&self, out: &mut Vec<u8>, time: SystemTime) {
        json::append_line(out, |object| {
            object.word("event", self.kind());
            object.time("time", time);
            match self {
                Event::Finding(finding) => write_finding(object, finding),
                Event::Source(event) => write_source(object, event),
                Event::TraceClosed(end) => write_trace(object, "closed", end),
                Event::TraceEvicted(end) => write_trace(object, "evicted", end),
                Event::Summary(summary) => write_summary(object, summary),
            }
        });
    }

    fn kind(&self) -> &'static str {
        match self {
            Event::Finding(_) => "finding",
            Event::Source(_) => "source",
            Event::TraceClosed(_) | Event::TraceEvicted(_) => "trace",
            Event::Summary(_) => "summary",
        }
    }
}

fn write_finding(object: &mut ObjectWriter<'_>, finding: &Finding) {
    object.word("severity", finding.severity().as_str());
    object.word("code", finding.code.as_str());
    // The parts of `Finding::sentence`, without the `String`.
    match &finding.detail {
        Some(detail) => object.text_of("message", &[&finding.message, "; ", detail]),
        None => object.text("message", &finding.message),
    }
    object.text("trace", &finding.trace);
    object.text("source", &finding.source);
    object.number("line", finding.line);
    object.number("offset", finding.offset);
    match finding.seq {
        Some(seq) => object.number("seq", seq),
        None => object.null("seq"),
    }
    object.text_or_null("kind", finding.kind.as_deref());
    object.text("pointer", &finding.pointer);
    object.text_or_null("predicate", finding.predicate.as_deref());
    match finding.agent.as_deref() {
        Some(AgentId { name, namespace }) => object.object("agent", |agent| {
            agent.text("name", name);
            agent.text("namespace", namespace);
        }),
        None => object.null("agent"),
    }
    object.word("rule", finding.rule);
    object.hex("id", finding.id.0);
    object.text_or_null("value", finding.value.as_deref());
}

fn write_source(object: &mut ObjectWriter<'_>, event: &SourceEvent<'_>) {
    object.word("state", event.state.as_str());
    object.text("source", event.source);
    object.text("message", event.message);
}

fn write_trace(object: &mut ObjectWriter<'_>, state: &'static str, end: &TraceEnd) {
    object.word("state", state);
    object.text("trace", &end.trace);
    object.number("records", end.records);
    object.number("placements", end.placements);
    write_counts(object, &end.counts);
}

fn write_summary(object: &mut ObjectWriter<'_>, summary: &Summary) {
    object.number("records", summary.records);
    object.number("placements", summary.placements);
    object.number("traces", summary.traces);
    write_counts(object, &summary.counts);
    object.number("bytes", summary.bytes);
    object.seconds("seconds", summary.seconds);
}

fn write_counts(object: &mut ObjectWriter<'_>, counts: &Counts) {
    for (name, severity) in [("errors", Severity::Error), ("warnings", Severity::Warning)] {
        object.object(name, |map| {
            for (code, count) in counts
                .iter()
                .filter(|(code, _)| code.severity() == severity)
            {
                map.number(code.as_str(), count);
            }
        });
    }
}
