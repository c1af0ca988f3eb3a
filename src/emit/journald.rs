//! Events as entries of the systemd journal, in its [native protocol]: one datagram an event.
//!
//! The fields that every entry has:
//!
//! | field | |
//! | --- | --- |
//! | `MESSAGE` | one line for people, cut where it gets long |
//! | `PRIORITY` | 3 of an error, 4 of a warning, a failed source and a trace that was given up, else 6 |
//! | `MESSAGE_ID` | one of [`FINDING_ID`], [`SOURCE_ID`], [`TRACE_ID`] and [`SUMMARY_ID`] |
//! | `SYSLOG_IDENTIFIER` | `tracecheck` |
//! | `TRACECHECK_EVENT` | `finding`, `source`, `trace` or `summary` |
//! | `TRACECHECK_TIME` | when the event was written, as in JSON; the journal's own time is later where it was away |
//!
//! The other members of an event, which [`Event`] describes, have a field each. It is named after
//! the member, in capitals behind `TRACECHECK_`, and left out where JSON has null:
//!
//! - `finding`: `_SEVERITY`, `_CODE`, `_MESSAGE`, `_TRACE`, `_SOURCE`, `_LINE`, `_OFFSET`, `_SEQ`,
//!   `_KIND`, `_POINTER`, `_PREDICATE`, `_AGENT_NAME`, `_AGENT_NAMESPACE`, `_RULE`, `_FINDING_ID` (the
//!   member `id`), `_VALUE`;
//! - `source`: `_STATE`, `_SOURCE`, `_MESSAGE`;
//! - `trace`: `_STATE`, `_TRACE`, `_RECORDS`, `_PLACEMENTS`, `_ERRORS`, `_WARNINGS`;
//! - `summary`: `_RECORDS`, `_PLACEMENTS`, `_TRACES`, `_ERRORS`, `_WARNINGS`, `_BYTES`, `_SECONDS`.
//!
//! `_ERRORS` and `_WARNINGS` are totals; each code that occurred has a field `_COUNT_` and its name,
//! such as `TRACECHECK_COUNT_E_STRUCTURE`. So `journalctl TRACECHECK_CODE=E_CLEARANCE_UNMET` finds
//! findings, and `journalctl -o verbose` shows everything.
//!
//! Texts come from traces. They are kept as they are, up to [`MAX_FIELD_BYTES`]; a longer one is cut,
//! ends in `…`, and the entry has `TRACECHECK_TRUNCATED=1`. No text can forge a field: one with a
//! line end or another control character is sent with its length. Only `MESSAGE`, which terminals
//! show, has such characters escaped.
//!
//! [native protocol]: https://systemd.io/JOURNAL_NATIVE_PROTOCOL/

use std::fmt::{self, Write as _};
use std::time::{SystemTime, UNIX_EPOCH};

use tracecheck::event::{Event, SourceEvent, SourceState, Summary};
use tracecheck::finding::{Counts, Finding, Severity, TraceEnd};

use super::Terms;
use super::text::TextWriter;

/// `MESSAGE_ID` of findings.
pub(crate) const FINDING_ID: &str = "c8d9b9c79f77474781beb9dedcd2fde7";

/// `MESSAGE_ID` of what became of a source.
pub(crate) const SOURCE_ID: &str = "7f0090b8d2f74f09b3ccfb706680ba64";

/// `MESSAGE_ID` of the end of a trace.
pub(crate) const TRACE_ID: &str = "29c6ef0ab29a4015b95ae547c6421d6d";

/// `MESSAGE_ID` of a run's summary.
pub(crate) const SUMMARY_ID: &str = "8b5686beaf40499ebe85150eaa58a6f9";

/// Longest text of a field. The journal takes far more; this keeps a line of 16 MiB that is wrong in
/// many places from becoming gigabytes there, and nobody searches for longer ones.
pub(crate) const MAX_FIELD_BYTES: usize = 512 * 1024;

/// What a text that was cut ends in.
const CUT_MARK: &str = "…";

/// Syslog's numbers.
const ERROR: u8 = 3;
const WARNING: u8 = 4;
const INFORMATION: u8 = 6;

/// Writes events as journal entries.
pub(super) struct JournalWriter {
    text: TextWriter,
}

impl JournalWriter {
    pub(super) fn new() -> Self {
        let color = false;
        JournalWriter {
            text: TextWriter::new(color),
        }
    }

    /// What things are called.
    pub(super) fn set_terms(&mut self, terms: Terms) {
        self.text.terms = terms;
    }

    /// Appends the entry of an event: one datagram.
    pub(super) fn append(&mut self, out: &mut Vec<u8>, event: Event<'_>, time: SystemTime) {
        let mut entry = Entry {
            out,
            truncated: false,
        };
        entry.text("MESSAGE", &self.text.line(event));
        entry.number("PRIORITY", priority(event));
        entry.text("MESSAGE_ID", message_id(event));
        entry.text("SYSLOG_IDENTIFIER", "tracecheck");
        entry.time("TRACECHECK_TIME", time);
        match event {
            Event::Finding(finding) => write_finding(&mut entry, finding),
            Event::Source(event) => write_source(&mut entry, event),
            Event::TraceClosed(end) => write_trace(&mut entry, "closed", end),
            Event::TraceEvicted(end) => write_trace(&mut entry, "evicted", end),
            Event::Summary(summary) => write_summary(&mut entry, summary),
        }
        if entry.truncated {
            entry.number("TRACECHECK_TRUNCATED", 1);
        }
    }
}

fn priority(event: Event<'_>) -> u8 {
    match event {
        Event::Finding(finding) => match finding.severity() {
            Severity::Error => ERROR,
            Severity::Warning => WARNING,
        },
        Event::Source(SourceEvent {
            state: SourceState::Failed,
            ..
        })
        | Event::TraceEvicted(_) => WARNING,
        Event::Source(_) | Event::TraceClosed(_) | Event::Summary(_) => INFORMATION,
    }
}

fn message_id(event: Event<'_>) -> &'static str {
    match event {
        Event::Finding(_) => FINDING_ID,
        Event::Source(_) => SOURCE_ID,
        Event::TraceClosed(_) | Event::TraceEvicted(_) => TRACE_ID,
        Event::Summary(_) => SUMMARY_ID,
    }
}

fn write_finding(entry: &mut Entry<'_>, finding: &Finding) {
    entry.text("TRACECHECK_EVENT", "finding");
    entry.text("TRACECHECK_SEVERITY", finding.severity().as_str());
    entry.text("TRACECHECK_CODE", finding.code.as_str());
    entry.text("TRACECHECK_MESSAGE", &finding.sentence());
    entry.text("TRACECHECK_TRACE", &finding.trace);
    entry.text("TRACECHECK_SOURCE", &finding.source);
    entry.number("TRACECHECK_LINE", finding.line);
    entry.number("TRACECHECK_OFFSET", finding.offset);
    if let Some(seq) = finding.seq {
        entry.number("TRACECHECK_SEQ", seq);
    }
    entry.text_if_any("TRACECHECK_KIND", finding.kind.as_deref());
    entry.text("TRACECHECK_POINTER", &finding.pointer);
    entry.text_if_any("TRACECHECK_PREDICATE", finding.predicate.as_deref());
    if let Some(agent) = &finding.agent {
        entry.text("TRACECHECK_AGENT_NAME", &agent.name);
        entry.text("TRACECHECK_AGENT_NAMESPACE", &agent.namespace);
    }
    entry.text("TRACECHECK_RULE", finding.rule);
    entry.number("TRACECHECK_FINDING_ID", finding.id);
    entry.text_if_any("TRACECHECK_VALUE", finding.value.as_deref());
}

fn write_source(entry: &mut Entry<'_>, event: SourceEvent<'_>) {
    entry.text("TRACECHECK_EVENT", "source");
    entry.text("TRACECHECK_STATE", event.state.as_str());
    entry.text("TRACECHECK_SOURCE", event.source);
    entry.text("TRACECHECK_MESSAGE", event.message);
}

fn write_trace(entry: &mut Entry<'_>, state: &str, end: &TraceEnd) {
    entry.text("TRACECHECK_EVENT", "trace");
    entry.text("TRACECHECK_STATE", state);
    entry.text("TRACECHECK_TRACE", &end.trace);
    entry.number("TRACECHECK_RECORDS", end.records);
    entry.number("TRACECHECK_PLACEMENTS", end.placements);
    write_counts(entry, &end.counts);
}

fn write_summary(entry: &mut Entry<'_>, summary: &Summary) {
    entry.text("TRACECHECK_EVENT", "summary");
    entry.number("TRACECHECK_RECORDS", summary.records);
    entry.number("TRACECHECK_PLACEMENTS", summary.placements);
    entry.number("TRACECHECK_TRACES", summary.traces);
    write_counts(entry, &summary.counts);
    entry.number("TRACECHECK_BYTES", summary.bytes);
    entry.number(
        "TRACECHECK_SECONDS",
        format_args!("{:.6}", summary.seconds.max(0.0)),
    );
}

fn write_counts(entry: &mut Entry<'_>, counts: &Counts) {
    entry.number("TRACECHECK_ERRORS", counts.total(Severity::Error));
    entry.number("TRACECHECK_WARNINGS", counts.total(Severity::Warning));
    for (code, count) in counts.iter() {
        entry.number(&format!("TRACECHECK_COUNT_{code}"), count);
    }
}

/// Writes the fields of one entry. Names are ours: capitals, digits and underscores, at most 64.
struct Entry<'o> {
    out: &'o mut Vec<u8>,
    truncated: bool,
}

impl Entry<'_> {
    /// Text that may hold anything.
    fn text(&mut self, name: &str, text: &str) {
        if text.len() <= MAX_FIELD_BYTES {
            self.field(name, &[text.as_bytes()]);
            return;
        }
        let kept = &text[..text.floor_char_boundary(MAX_FIELD_BYTES - CUT_MARK.len())];
        self.field(name, &[kept.as_bytes(), CUT_MARK.as_bytes()]);
        self.truncated = true;
    }

    fn text_if_any(&mut self, name: &str, text: Option<&str>) {
        if let Some(text) = text {
            self.text(name, text);
        }
    }

    /// Something that prints as one line.
    fn number(&mut self, name: &str, number: impl fmt::Display) {
        self.field(name, &[number.to_string().as_bytes()]);
    }

    fn time(&mut self, name: &str, time: SystemTime) {
        let mut text = String::new();
        // It can neither show years before 1970 nor those from 10000 on; the latter are left out.
        let shown = humantime::format_rfc3339_millis(time.max(UNIX_EPOCH));
        if write!(text, "{shown}").is_ok() {
            self.text(name, &text);
        }
    }

    /// `NAME=value`, or where that could be taken for more than one field, or is no text, the name, a
    /// line end, the value's length in 64 bits with the least significant byte first, and the value.
    /// An LF ends both.
    fn field(&mut self, name: &str, value: &[&[u8]]) {
        self.out.extend_from_slice(name.as_bytes());
        let is_plain = |part: &&[u8]| !part.iter().any(|&byte| byte < b' ');
        if value.iter().all(is_plain) {
            self.out.push(b'=');
        } else {
            let bytes: usize = value.iter().map(|part| part.len()).sum();
            self.out.push(b'\n');
            self.out.extend_from_slice(&(bytes as u64).to_le_bytes());
        }
        for part in value {
            self.out.extend_from_slice(part);
        }
        self.out.push(b'\n');
    }
}

/// A strict reader of the protocol.
#[cfg(test)]
pub(super) mod parse {
    /// The fields of an entry in their order. Panics on what a journal would not take, and on what
    /// it would take and nobody should send.
    #[track_caller]
    pub(in crate::emit) fn fields(mut datagram: &[u8]) -> Vec<(String, Vec<u8>)> {
        let mut fields = Vec::new();
        while !datagram.is_empty() {
            let end = datagram.iter().position(|&b| b == b'\n').expect("an LF");
            let (line, rest) = (&datagram[..end], &datagram[end + 1..]);
            let (name, value);
            match line.iter().position(|&b| b == b'=') {
                Some(at) => {
                    (name, value) = (&line[..at], &line[at + 1..]);
                    datagram = rest;
                }
                None => {
                    let (length, rest) = rest.split_first_chunk().expect("a length");
                    let length = u64::from_le_bytes(*length) as usize;
                    name = line;
                    value = &rest[..length];
                    assert_eq!(rest[length], b'\n', "no LF behind the value");
                    datagram = &rest[length + 1..];
                }
            }
            assert!(is_name(name), "{:?}", String::from_utf8_lossy(name));
            let name = String::from_utf8(name.to_vec()).expect("ASCII");
            assert!(fields.iter().all(|(other, _)| *other != name), "{name}");
            fields.push((name, value.to_vec()));
        }
        assert!(!fields.is_empty());
        fields
    }

    fn is_name(name: &[u8]) -> bool {
        let allowed = |b: &u8| b.is_ascii_uppercase() || b.is_ascii_digit() || *b == b'_';
        (1..=64).contains(&name.len()) && name[0].is_ascii_uppercase() && name.iter().all(allowed)
    }

    /// The value of a field as text; `None` where it is not there.
    #[track_caller]
    pub(in crate::emit) fn text(datagram: &[u8], name: &str) -> Option<String> {
        let (_, value) = fields(datagram).into_iter().find(|(n, _)| n == name)?;
        Some(String::from_utf8(value).expect("UTF-8"))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;
    use tracecheck::finding::{AgentId, Code, FindingId};

    fn entry(event: Event<'_>) -> Vec<u8> {
        let mut out = Vec::new();
        let time = UNIX_EPOCH + Duration::from_millis(1_772_357_400_250);
        JournalWriter::new().append(&mut out, event, time);
        out
    }

    /// The entry as lines; values with their length are shown as Rust's strings.
    fn shown(event: Event<'_>) -> String {
        let mut text = String::new();
        for (name, value) in parse::fields(&entry(event)) {
            let value = String::from_utf8(value).expect("UTF-8");
            let _ = match value.contains(char::is_control) {
                true => writeln!(text, "{name}: {value:?}"),
                false => writeln!(text, "{name}={value}"),
            };
        }
        text
    }

    fn clearance() -> Finding {
        Finding {
            code: Code::ClearanceUnmet,
            message: "the agent does not hold clearance `refunds.issue`".into(),
            detail: Some("the declaration's `clearances`: orders.read".into()),
            value: Some("\"refunds.issue\"".into()),
            trace: "order-4711".into(),
            source: "traces/refund.jsonl".into(),
            line: 3,
            offset: 412,
            seq: Some(3),
            kind: Some("task.bound".into()),
            pointer: "/content/scheduling/requirements/clearances/1".into(),
            predicate: Some("clearance:refunds.issue".into()),
            agent: Some(Arc::new(AgentId {
                name: "order-analyst".into(),
                namespace: "support".into(),
            })),
            rule: "7.5",
            id: FindingId(0xbad_cafe),
        }
    }

    fn counts() -> Counts {
        let mut counts = Counts::default();
        for code in [Code::Structure, Code::Structure, Code::SeqGap] {
            counts.add(code);
        }
        counts
    }

    fn end() -> TraceEnd {
        TraceEnd {
            trace: "order-4711".into(),
            records: 12,
            placements: 2,
            counts: counts(),
        }
    }

    #[test]
    fn a_finding_has_a_field_for_each_member() {
        assert_eq!(
            shown(Event::Finding(&clearance())),
            "MESSAGE=E_CLEARANCE_UNMET: the agent does not hold clearance `refunds.issue`; \
             the declaration's `clearances`: orders.read \
             (trace order-4711, line 3 of traces/refund.jsonl)
PRIORITY=3
MESSAGE_ID=c8d9b9c79f77474781beb9dedcd2fde7
SYSLOG_IDENTIFIER=tracecheck
TRACECHECK_TIME=2026-03-01T09:30:00.250Z
TRACECHECK_EVENT=finding
TRACECHECK_SEVERITY=error
TRACECHECK_CODE=E_CLEARANCE_UNMET
TRACECHECK_MESSAGE=the agent does not hold clearance `refunds.issue`; \
             the declaration's `clearances`: orders.read
TRACECHECK_TRACE=order-4711
TRACECHECK_SOURCE=traces/refund.jsonl
TRACECHECK_LINE=3
TRACECHECK_OFFSET=412
TRACECHECK_SEQ=3
TRACECHECK_KIND=task.bound
TRACECHECK_POINTER=/content/scheduling/requirements/clearances/1
TRACECHECK_PREDICATE=clearance:refunds.issue
TRACECHECK_AGENT_NAME=order-analyst
TRACECHECK_AGENT_NAMESPACE=support
TRACECHECK_RULE=7.5
TRACECHECK_FINDING_ID=0000000000000000000000000badcafe
TRACECHECK_VALUE=\"refunds.issue\"
"
        );
    }

    #[test]
    fn what_is_not_known_has_no_field() {
        let finding = Finding {
            code: Code::Null,
            detail: None,
            value: None,
            trace: "traces/refund.jsonl".into(),
            seq: None,
            kind: None,
            pointer: String::new(),
            predicate: None,
            agent: None,
            ..clearance()
        };
        assert_eq!(
            shown(Event::Finding(&finding)),
            "MESSAGE=W_NULL: the agent does not hold clearance `refunds.issue` \
             (line 3 of traces/refund.jsonl)
PRIORITY=4
MESSAGE_ID=c8d9b9c79f77474781beb9dedcd2fde7
SYSLOG_IDENTIFIER=tracecheck
TRACECHECK_TIME=2026-03-01T09:30:00.250Z
TRACECHECK_EVENT=finding
TRACECHECK_SEVERITY=warning
TRACECHECK_CODE=W_NULL
TRACECHECK_MESSAGE=the agent does not hold clearance `refunds.issue`
TRACECHECK_TRACE=traces/refund.jsonl
TRACECHECK_SOURCE=traces/refund.jsonl
TRACECHECK_LINE=3
TRACECHECK_OFFSET=412
TRACECHECK_POINTER=
TRACECHECK_RULE=7.5
TRACECHECK_FINDING_ID=0000000000000000000000000badcafe
"
        );
    }

    #[test]
    fn sources_traces_and_the_summary_have_their_fields() {
        let source = |state| {
            Event::Source(SourceEvent {
                state,
                source: "a.jsonl",
                message: "why",
            })
        };
        let opened = shown(source(SourceState::Opened));
        assert!(
            opened.starts_with("MESSAGE=a.jsonl: why\nPRIORITY=6\nMESSAGE_ID=7f0090b8"),
            "{opened}"
        );
        assert!(
            opened.ends_with(
                "TRACECHECK_EVENT=source\nTRACECHECK_STATE=opened\nTRACECHECK_SOURCE=a.jsonl\n\
                 TRACECHECK_MESSAGE=why\n"
            ),
            "{opened}"
        );
        assert!(shown(source(SourceState::Failed)).contains("\nPRIORITY=4\n"));

        let members = "TRACECHECK_TRACE=order-4711\nTRACECHECK_RECORDS=12\n\
                       TRACECHECK_PLACEMENTS=2\nTRACECHECK_ERRORS=2\nTRACECHECK_WARNINGS=1\n\
                       TRACECHECK_COUNT_E_STRUCTURE=2\nTRACECHECK_COUNT_W_SEQ_GAP=1\n";
        for (event, message, priority, state) in [
            (
                Event::TraceClosed(&end()),
                "trace `order-4711` closed after 12 records and 2 placements: 2 errors, 1 warning",
                6,
                "closed",
            ),
            (
                Event::TraceEvicted(&end()),
                "too many open traces: trace `order-4711` was given up after 12 records and 2 \
                 placements: 2 errors, 1 warning",
                4,
                "evicted",
            ),
        ] {
            let shown = shown(event);
            let begin =
                format!("MESSAGE={message}\nPRIORITY={priority}\nMESSAGE_ID={TRACE_ID}\nSYSLOG");
            assert!(shown.starts_with(&begin), "{shown}");
            let end = format!("TRACECHECK_EVENT=trace\nTRACECHECK_STATE={state}\n{members}");
            assert!(shown.ends_with(&end), "{shown}");
        }
    }

    #[test]
    fn the_summary_knows_what_was_read() {
        let summary = Summary {
            records: 1204,
            placements: 38,
            traces: 3,
            counts: counts(),
            bytes: 1_902_417,
            seconds: 0.020_417,
        };
        let mut writer = JournalWriter::new();
        let mut out = Vec::new();
        let opened = Event::Source(SourceEvent {
            state: SourceState::Opened,
            source: "a.jsonl",
            message: "reading",
        });
        writer.append(&mut out, opened, UNIX_EPOCH);
        out.clear();
        writer.append(&mut out, Event::Summary(&summary), UNIX_EPOCH);
        let text = String::from_utf8(out).expect("UTF-8");
        assert_eq!(
            text,
            "MESSAGE=checked 1,204 records and 38 placements of 3 traces (1.9 MB) in 0.02 s: \
             2 errors, 1 warning
PRIORITY=6
MESSAGE_ID=8b5686beaf40499ebe85150eaa58a6f9
SYSLOG_IDENTIFIER=tracecheck
TRACECHECK_TIME=1970-01-01T00:00:00.000Z
TRACECHECK_EVENT=summary
TRACECHECK_RECORDS=1204
TRACECHECK_PLACEMENTS=38
TRACECHECK_TRACES=3
TRACECHECK_ERRORS=2
TRACECHECK_WARNINGS=1
TRACECHECK_COUNT_E_STRUCTURE=2
TRACECHECK_COUNT_W_SEQ_GAP=1
TRACECHECK_BYTES=1902417
TRACECHECK_SECONDS=0.020417
"
        );
    }

    #[test]
    fn no_text_forges_a_field() {
        let forged = "x\nPRIORITY=7\nTRACECHECK_CODE=E_NONE\n\u{1b}[2J\0=é";
        let finding = Finding {
            message: forged.into(),
            detail: None,
            trace: forged.into(),
            source: forged.into(),
            pointer: forged.into(),
            predicate: Some(forged.into()),
            ..clearance()
        };
        let entry = entry(Event::Finding(&finding));
        let text = |name| parse::text(&entry, name).expect("there");
        assert_eq!(text("PRIORITY"), "3");
        assert_eq!(text("TRACECHECK_CODE"), "E_CLEARANCE_UNMET");
        for name in [
            "TRACECHECK_MESSAGE",
            "TRACECHECK_TRACE",
            "TRACECHECK_SOURCE",
            "TRACECHECK_POINTER",
            "TRACECHECK_PREDICATE",
        ] {
            assert_eq!(text(name), forged);
        }
        assert!(!text("MESSAGE").contains(char::is_control));
        assert!(text("MESSAGE").contains("x\\nPRIORITY=7\\n"));
    }

    #[test]
    fn long_texts_are_whole_up_to_the_limit_and_say_that_they_were_cut() {
        let entry_of = |trace: String| {
            entry(Event::Finding(&Finding {
                trace: trace.into(),
                ..clearance()
            }))
        };
        let whole = entry_of("é".repeat(MAX_FIELD_BYTES / 2));
        assert_eq!(
            parse::text(&whole, "TRACECHECK_TRACE").map(|text| text.len()),
            Some(MAX_FIELD_BYTES)
        );
        assert_eq!(parse::text(&whole, "TRACECHECK_TRUNCATED"), None);
        assert!(parse::text(&whole, "MESSAGE").is_some_and(|text| text.len() < 5_000));

        let cut = entry_of("é".repeat(MAX_FIELD_BYTES));
        let text = parse::text(&cut, "TRACECHECK_TRACE").expect("there");
        assert!(text.ends_with("é…"));
        assert!((MAX_FIELD_BYTES - 3..=MAX_FIELD_BYTES).contains(&text.len()));
        assert_eq!(
            parse::text(&cut, "TRACECHECK_TRUNCATED").as_deref(),
            Some("1")
        );
    }

    #[test]
    fn impossible_times_do_no_harm() {
        for time in [
            UNIX_EPOCH - Duration::from_secs(1),
            UNIX_EPOCH + Duration::from_secs(1 << 40),
        ] {
            let mut out = Vec::new();
            JournalWriter::new().append(&mut out, Event::Finding(&clearance()), time);
            parse::fields(&out);
        }
    }
}
