//! From what a step found to a finding that says where, in which trace, and which one it is.

use std::sync::Arc;

use xxhash_rust::xxh3::{Xxh3, xxh3_128};

use super::drafts::Drafts;
use super::resumed;
use super::state::Pending;
use crate::decode::document::{Draft, Faults};
use crate::decode::{Body, Malformed, Record, Why, lookup};
use crate::filter::Filter;
use crate::finding::{AgentId, Code, Counts, Finding, FindingId, Report, Source};
use crate::framing::Line;

/// Findings of one record whose member is looked up and shown. Each look-up may read the record
/// again, and a hostile one has a thousand findings.
const MAX_EXCERPTS: usize = 100;

/// Bytes that are read again of one record, for the same reason.
const MAX_LOOKUP_BYTES: usize = 16 << 20;

/// Where a record stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<'a> {
    pub(crate) source: &'a Source,
    pub(crate) line: Line<'a>,
}

impl Place<'_> {
    pub(crate) fn line_hash(&self) -> u128 {
        xxh3_128(self.line.bytes)
    }
}

/// A line that is no record, or a text that is no document: why, and an excerpt of it where it
/// goes wrong.
#[derive(Debug)]
pub(crate) struct Broken {
    code: Code,
    message: String,
    detail: String,
    value: Option<String>,
    rule: &'static str,
}

impl Broken {
    /// The same under another code than `E_STRUCTURE`.
    pub(crate) fn with_code(self, code: Code) -> Self {
        Broken { code, ..self }
    }
}

/// A line over the limit.
pub(crate) fn too_long(max_bytes: usize) -> Broken {
    Broken {
        code: Code::Structure,
        message: format!("the line is longer than {max_bytes} bytes"),
        detail: "expected a record within the limits; --max-record-bytes and --max-buffered-bytes set them".to_owned(),
        value: None,
        rule: "7",
    }
}

/// A line that is not JSON, or no object.
pub(crate) fn not_json(malformed: Malformed, line: &[u8]) -> Broken {
    Broken {
        code: Code::Structure,
        message: match malformed.why {
            Why::NotAnObject => "the line is JSON, but no object".to_owned(),
            Why::Depth => format!(
                "the line is {}, from byte {}",
                malformed.why.describe(),
                malformed.at
            ),
            why => format!(
                "the line is not valid JSON: at byte {}: {}",
                malformed.at,
                why.describe()
            ),
        },
        detail: "expected one JSON object (RFC 8259, UTF-8) a line".to_owned(),
        value: Some(excerpt_around(malformed.at, line)),
        rule: "7",
    }
}

/// A document that is not JSON. Most have many lines, so the place is told as editors do.
pub(crate) fn no_document(malformed: Malformed, text: &[u8], rule: &'static str) -> Broken {
    let before = &text[..malformed.at];
    let line = before.iter().filter(|&&byte| byte == b'\n').count() + 1;
    let start = before.iter().rposition(|&byte| byte == b'\n');
    let column = String::from_utf8_lossy(&before[start.map_or(0, |at| at + 1)..])
        .chars()
        .count()
        + 1;
    let describe = malformed.why.describe();
    let message = match malformed.why {
        Why::Ends if text.trim_ascii().is_empty() => "the document is empty".to_owned(),
        Why::Depth => format!("the document is {describe}, from line {line}, column {column}"),
        _ => format!("the document is not valid JSON: at line {line}, column {column}: {describe}"),
    };
    Broken {
        code: Code::Structure,
        message,
        detail: "expected one JSON object (RFC 8259, UTF-8)".to_owned(),
        value: Some(excerpt_around(malformed.at, text)).filter(|excerpt| !excerpt.is_empty()),
        rule,
    }
}

/// What stands around a place in a text.
pub(crate) fn excerpt_around(at: usize, text: &[u8]) -> String {
    const BEFORE: usize = 40;
    const AFTER: usize = 20;
    let start = at.saturating_sub(BEFORE);
    let end = text.len().min(at + AFTER);
    let dots = |cut: bool| if cut { "…" } else { "" };
    let excerpt = String::from_utf8_lossy(&text[start..end]);
    format!("{}{excerpt}{}", dots(start > 0), dots(end < text.len()))
}

/// The agent of a placement's declaration, where both halves could be read.
pub(crate) fn declared_agent(record: &Record<'_>) -> Option<Arc<AgentId>> {
    let Body::Bound(placement) = &record.body else {
        return None;
    };
    placement.scheduling.value()?.agent()?.id().map(Arc::new)
}

/// Filters, counts and completes findings.
pub(crate) struct Reporter<'r, const N: usize> {
    pub(crate) filter: Filter,
    /// Whatever counts along: all that was seen, and the trace.
    pub(crate) counts: [&'r mut Counts; N],
    pub(crate) reports: &'r mut Vec<Report>,
}

/// What all findings of a record share. A hostile one has a thousand, and names of megabytes.
struct Subject<'a> {
    trace: &'a Arc<str>,
    source: &'a Source,
    line: u64,
    offset: u64,
    line_hash: u128,
    seq: Option<u64>,
    kind: Option<Arc<str>>,
    agent: Option<Arc<AgentId>>,
}

impl<'a> Subject<'a> {
    /// What is known of a line before any of it has been read.
    fn unread(place: &Place<'a>) -> Self {
        Subject {
            trace: &place.source.name,
            source: place.source,
            line: place.line.number,
            offset: place.line.offset,
            line_hash: place.line_hash(),
            seq: None,
            kind: None,
            agent: None,
        }
    }
}

impl<const N: usize> Reporter<'_, N> {
    /// Reports what is malformed in a record, and what the steps found.
    pub(crate) fn record(
        &mut self,
        place: &Place<'_>,
        record: &Record<'_>,
        trace: &Arc<str>,
        drafts: Drafts,
    ) {
        let subject = Subject {
            trace,
            seq: record.seq,
            kind: record.kind.map(|kind| Arc::from(kind.decode())),
            agent: declared_agent(record),
            ..Subject::unread(place)
        };
        let mut all: Vec<Draft> = record.faults.clone();
        tell_dropped(all.last_mut(), record.dropped_faults);
        let dropped: Vec<_> = drafts.dropped().collect();
        let mut found = drafts.list;
        for (code, dropped) in dropped {
            tell_dropped(found.iter_mut().rfind(|draft| draft.code == code), dropped);
        }
        all.append(&mut found);
        self.report_all(&subject, place.line.bytes, all);
    }

    /// Reports what is malformed in a document that stands by itself.
    pub(crate) fn document(&mut self, place: &Place<'_>, faults: Faults) {
        let subject = Subject::unread(place);
        let mut drafts = faults.drafts;
        tell_dropped(drafts.last_mut(), faults.dropped);
        self.report_all(&subject, place.line.bytes, drafts);
    }

    /// Reports a line that is no record, or a text that is no document.
    pub(crate) fn broken(&mut self, place: &Place<'_>, broken: Broken, trace: &Arc<str>) {
        if !self.filter.allows(broken.code) {
            return;
        }
        let subject = Subject {
            trace,
            ..Subject::unread(place)
        };
        let draft = Draft {
            code: broken.code,
            rule: broken.rule,
            pointer: String::new(),
            predicate: None,
            message: broken.message,
            detail: Some(broken.detail),
        };
        self.report(&subject, draft, broken.value);
    }

    /// Reports something in a run of an AG-UI agent.
    pub(crate) fn in_run(
        &mut self,
        place: &Place<'_>,
        run: &Arc<str>,
        kind: Option<&str>,
        draft: Draft,
        value: Option<String>,
    ) {
        if !self.filter.allows(draft.code) {
            return;
        }
        let subject = Subject {
            trace: run,
            kind: kind.map(Arc::from),
            ..Subject::unread(place)
        };
        self.report(&subject, draft, value);
    }

    /// Reports a placement that waited until its trace ended.
    pub(crate) fn never_explained(&mut self, pending: &Pending, trace: &Arc<str>) {
        if !self.filter.allows(Code::Explanation) {
            return;
        }
        let subject = Subject {
            trace,
            source: &pending.source,
            line: pending.line,
            offset: pending.offset,
            line_hash: pending.line_hash,
            seq: pending.seq,
            kind: Some("task.bound".into()),
            agent: pending.agent.clone(),
        };
        self.report(&subject, resumed::never_came(), None);
    }

    /// Reports findings in `text`, each with an excerpt of the member that it is about.
    fn report_all(&mut self, subject: &Subject<'_>, text: &[u8], drafts: Vec<Draft>) {
        let excerpts = (MAX_LOOKUP_BYTES / text.len().max(1)).clamp(1, MAX_EXCERPTS);
        for (number, draft) in drafts.into_iter().enumerate() {
            if !self.filter.allows(draft.code) {
                continue;
            }
            let value = (number < excerpts)
                .then(|| lookup::excerpt(text, &draft.pointer, Finding::MAX_VALUE_BYTES))
                .flatten();
            self.report(subject, draft, value);
        }
    }

    fn report(&mut self, subject: &Subject<'_>, draft: Draft, value: Option<String>) {
        self.counts
            .iter_mut()
            .for_each(|counts| counts.add(draft.code));
        let id = finding_id(subject, &draft);
        self.reports.push(Report::Finding(Box::new(Finding {
            code: draft.code,
            message: draft.message,
            detail: draft.detail,
            value,
            trace: Arc::clone(subject.trace),
            source: Arc::clone(&subject.source.name),
            line: subject.line,
            offset: subject.offset,
            seq: subject.seq,
            kind: subject.kind.clone(),
            pointer: draft.pointer,
            predicate: draft.predicate,
            agent: subject.agent.clone(),
            rule: draft.rule,
            id,
        })));
    }
}

/// Says in the last finding that was kept how many more there were.
fn tell_dropped(last: Option<&mut Draft>, dropped: usize) {
    if let Some(last) = last.filter(|_| dropped > 0) {
        let more = match dropped {
            1 => "1 more finding is not listed".to_owned(),
            several => format!("{several} more findings are not listed"),
        };
        last.detail = Some(match last.detail.take() {
            Some(detail) => format!("{detail}; {more}"),
            None => more,
        });
    }
}

fn finding_id(subject: &Subject<'_>, draft: &Draft) -> FindingId {
    let mut hash = Xxh3::new();
    hash.update(&subject.source.origin.to_le_bytes());
    hash.update(&subject.offset.to_le_bytes());
    hash.update(&subject.line_hash.to_le_bytes());
    let predicate = draft.predicate.as_deref().unwrap_or_default();
    for part in [draft.code.as_str(), &draft.pointer, predicate] {
        hash.update(&(part.len() as u64).to_le_bytes());
        hash.update(part.as_bytes());
    }
    FindingId(hash.digest128())
}
