//! Takes events to their runs, and what contradicts a declaration to its reader.

use std::collections::HashMap;
use std::sync::Arc;

use super::before::Before;
use super::capabilities::Capabilities;
use super::contradictions::{Contradiction, Facts, Held, TABLE};
use super::event::{Event, Kind, NotAnEvent, why_no_event};
use super::run::{Run, Sighting};
use crate::decode::Why;
use crate::decode::document::{Draft, cut, quoted};
use crate::filter::Filter;
use crate::finding::{Code, Counts, Finding, Report, Source, TraceEnd};
use crate::framing::{Line, is_blank};
use crate::traces::kept_name;
use crate::verify::Totals;
use crate::verify::report::{Place, Reporter, excerpt_around};

/// The section of the page that says what a declaration obliges its producer to.
const DECLARING: &str = "declaring";
/// What the protocol's page on events takes for granted.
const EVENTS: &str = "events";

/// Holds streams of AG-UI events against a declaration. Knows no file, socket or clock.
///
/// A run begins at `RUN_STARTED` and ends at `RUN_FINISHED` or `RUN_ERROR`, the next `RUN_STARTED`,
/// or its source's end. Events outside of a run belong to one that begins with them. In each run
/// every declared field is contradicted once at most, by the first event that does so, and that is
/// `W_CAPABILITY`: the stream is right, whatever is declared. What is no JSON object with a string
/// `type` is `E_STRUCTURE`, and nothing else of an event is ever an error.
///
/// How much is remembered of a run is bounded; see [`MAX_REMEMBERED`](super::MAX_REMEMBERED).
///
/// ```
/// use tracecheck::agui::{Capabilities, RunChecker};
/// use tracecheck::documents::NamedText;
/// use tracecheck::{Code, Filter};
///
/// let declaration = NamedText {
///     name: "agent.json",
///     text: br#"{"tools": {"supported": false}}"#,
/// };
/// let capabilities = Capabilities::read(declaration).expect("well-formed");
/// let mut checker = RunChecker::new(&capabilities, Filter::default());
/// let mut findings = Vec::new();
/// for event in [
///     r#"{"type":"RUN_STARTED","threadId":"t","runId":"r"}"#,
///     r#"{"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"search"}"#,
///     r#"{"type":"TOOL_CALL_END","toolCallId":"c"}"#,
///     r#"{"type":"RUN_FINISHED","threadId":"t","runId":"r"}"#,
/// ] {
///     findings.extend(checker.push(event.as_bytes()));
/// }
/// assert_eq!(findings.len(), 1);
/// assert_eq!(findings[0].code, Code::Capability);
/// assert_eq!((findings[0].line, &*findings[0].pointer), (2, "/tools/supported"));
/// ```
#[derive(Debug)]
pub struct RunChecker {
    held: Held,
    filter: Filter,
    totals: Totals,
    /// The source that the last event came from, and its run.
    current: Option<(Arc<str>, Option<Run>)>,
    /// The runs of the other sources.
    others: HashMap<Arc<str>, Run>,
    /// The event that was read last, of whatever source.
    before: Before,
    /// Where [`RunChecker::push`] is in its one source.
    pushed_lines: u64,
    pushed_bytes: u64,
    pushed_source: Source,
}

impl RunChecker {
    /// A checker that has seen nothing. `filter` says which codes are reported and counted.
    #[must_use]
    pub fn new(capabilities: &Capabilities, filter: Filter) -> Self {
        RunChecker {
            held: Held::new(capabilities),
            filter,
            totals: Totals::default(),
            current: None,
            others: HashMap::new(),
            before: Before::default(),
            pushed_lines: 0,
            pushed_bytes: 0,
            pushed_source: Source {
                name: Arc::from("stream"),
                origin: 0,
                is_resumable: false,
            },
        }
    }

    /// Checks the next event, on a line of its own, of a source that is called `stream`. Lines are
    /// counted from 1, and their offsets as if each but the last ended with one LF.
    pub fn push(&mut self, line: &[u8]) -> Vec<Finding> {
        self.pushed_lines += 1;
        let source = self.pushed_source.clone();
        let line = Line {
            number: self.pushed_lines,
            offset: self.pushed_bytes,
            bytes: line,
            too_long: false,
        };
        self.pushed_bytes += line.bytes.len() as u64 + 1;
        let mut reports = Vec::new();
        self.check(line, &source, &mut reports);
        let findings = reports.into_iter().filter_map(Report::into_finding);
        findings.collect()
    }

    /// Counts findings that were made elsewhere, such as those of the declaration, and reports
    /// them.
    pub fn note(&mut self, findings: Vec<Finding>, reports: &mut Vec<Report>) {
        for finding in findings {
            if self.filter.allows(finding.code) {
                self.totals.counts.add(finding.code);
                reports.push(Report::Finding(Box::new(finding)));
            }
        }
    }

    /// Checks one event of a source, as [`EventFramer`](super::EventFramer) hands it out. The
    /// events of a source must come in their order.
    pub fn check(&mut self, line: Line<'_>, source: &Source, reports: &mut Vec<Report>) {
        if !line.too_long && is_blank(line.bytes) {
            return;
        }
        self.totals.records += 1;
        self.turn_to(&source.name);
        let mut event = Event::unread();
        if line.too_long || event.read(line.bytes, &mut self.before).is_none() {
            return self.report_broken(&Place { source, line }, reports);
        }
        if event.kind == Kind::RunStarted {
            self.end_run(reports);
        }
        if self.run().is_none() {
            self.begin_run(&event, source);
        }
        let (_, Some(run)) = self.current.as_mut().expect("turned to") else {
            unreachable!("begun above where there was none")
        };
        let sightings = run.see(&event, line.number, &self.held);
        if !sightings.is_empty() {
            self.complain(&Place { source, line }, &event, &sightings, reports);
        }
        if matches!(event.kind, Kind::RunFinished | Kind::RunError) {
            self.end_run(reports);
        }
    }

    /// Reports a line that is no event.
    #[cold]
    fn report_broken(&mut self, place: &Place<'_>, reports: &mut Vec<Report>) {
        let line = place.line;
        let (draft, value) = match line.too_long {
            true => too_long(line.bytes.len()),
            false => no_event(why_no_event(line.bytes), line.bytes),
        };
        self.report(place, None, draft, value, reports);
    }

    /// A source has ended, and so has its run.
    pub fn end_source(&mut self, source: &Source, reports: &mut Vec<Report>) {
        self.turn_to(&source.name);
        self.end_run(reports);
        self.current = None;
    }

    /// Every source has ended.
    pub fn end_all(&mut self, reports: &mut Vec<Report>) {
        self.end_run(reports);
        self.current = None;
        let mut others: Vec<_> = self.others.drain().map(|(_, run)| run).collect();
        others.sort_by(|a, b| a.name.cmp(&b.name));
        let ends = others.into_iter().map(|run| Report::Closed(run_end(run)));
        reports.extend(ends);
    }

    /// Sets which codes are reported and counted from the next event on.
    pub fn set_filter(&mut self, filter: Filter) {
        self.filter = filter;
    }

    /// What has been seen so far: `records` are events, `traces` are runs.
    #[must_use]
    pub fn totals(&self) -> &Totals {
        &self.totals
    }

    /// Makes a source the current one.
    #[inline]
    fn turn_to(&mut self, name: &Arc<str>) {
        match &self.current {
            Some((current, _)) if Arc::ptr_eq(current, name) || current == name => {}
            _ => {
                if let Some((before, Some(run))) = self.current.take() {
                    self.others.insert(before, run);
                }
                self.current = Some((Arc::clone(name), self.others.remove(name)));
            }
        }
    }

    fn run(&mut self) -> Option<&mut Run> {
        self.current.as_mut()?.1.as_mut()
    }

    fn begin_run(&mut self, event: &Event<'_>, source: &Source) {
        self.totals.traces += 1;
        let id = event
            .run_id()
            .filter(|id| event.kind == Kind::RunStarted && !id.is_empty());
        let name = match id {
            Some(id) => Arc::from(&*kept_name(&id)),
            None => Arc::clone(&source.name),
        };
        if let Some((_, run)) = &mut self.current {
            *run = Some(Run::new(name, !source.is_resumable, &self.held));
        }
    }

    /// The open runs, each with its source.
    #[cfg(feature = "serde")]
    pub(super) fn runs(&self) -> impl Iterator<Item = (&Arc<str>, &Run)> {
        let current = self.current.iter();
        let current = current.filter_map(|(source, run)| Some((source, run.as_ref()?)));
        current.chain(&self.others)
    }

    /// Goes on with a run that was begun elsewhere.
    #[cfg(feature = "serde")]
    pub(super) fn open_run(&mut self, source: Arc<str>, mut run: Run) {
        run.hold_to(&self.held);
        self.turn_to(&source);
        self.current = Some((source, Some(run)));
    }

    fn end_run(&mut self, reports: &mut Vec<Report>) {
        let run = self.current.as_mut().and_then(|(_, run)| run.take());
        reports.extend(run.map(|run| Report::Closed(run_end(run))));
    }

    /// Reports each declared field that is contradicted, in the order of the table.
    #[cold]
    fn complain(
        &mut self,
        place: &Place<'_>,
        event: &Event<'_>,
        sightings: &[Sighting],
        reports: &mut Vec<Report>,
    ) {
        let name = event.type_name();
        let mut complaints = Vec::new();
        for sighting in sightings {
            let facts = Facts::of(sighting.fact);
            for (row, declared) in self.held.contradicted(facts) {
                let draft = complaint(row, declared, &name, sighting.detail.as_deref());
                complaints.push((row, draft, declared.to_owned()));
            }
        }
        let rank = |row: &Contradiction| {
            let is_it =
                |other: &Contradiction| (row.group, row.field) == (other.group, other.field);
            TABLE.iter().position(is_it)
        };
        complaints.sort_by_key(|(row, ..)| rank(row));
        for (_, draft, declared) in complaints {
            self.report(place, Some(&name), draft, Some(declared), reports);
        }
    }

    fn report(
        &mut self,
        place: &Place<'_>,
        kind: Option<&str>,
        draft: Draft,
        value: Option<String>,
        reports: &mut Vec<Report>,
    ) {
        let run = self.current.as_mut().and_then(|(_, run)| run.as_mut());
        let mut nobody = Counts::default();
        let (trace, counts) = match run {
            Some(run) => (Arc::clone(&run.name), &mut run.counts),
            None => (Arc::clone(&place.source.name), &mut nobody),
        };
        Reporter {
            filter: self.filter,
            counts: [&mut self.totals.counts, counts],
            reports,
        }
        .in_run(place, &trace, kind, draft, value);
    }
}

fn run_end(run: Run) -> TraceEnd {
    TraceEnd {
        trace: run.name,
        records: run.events,
        placements: 0,
        counts: run.counts,
    }
}

fn complaint(row: &Contradiction, declared: &str, event: &str, detail: Option<&str>) -> Draft {
    let Contradiction {
        group, field, says, ..
    } = row;
    let message = format!(
        "{} contradicts the declared `{group}.{field}: {}`, that {says}",
        quoted(event),
        quoted(declared)
    );
    Draft {
        code: Code::Capability,
        rule: DECLARING,
        pointer: row.pointer(),
        predicate: None,
        message,
        detail: detail.map(str::to_owned),
    }
}

/// An event over the limit.
fn too_long(max_bytes: usize) -> (Draft, Option<String>) {
    let message = format!("the event is longer than {max_bytes} bytes");
    let detail =
        "expected one within the limits; --max-record-bytes and --max-buffered-bytes set them";
    (structure("", message, detail), None)
}

/// What is no event, and an excerpt of it.
fn no_event(error: NotAnEvent<'_>, text: &[u8]) -> (Draft, Option<String>) {
    const TYPE: &str = "expected a JSON object with a string `type`";
    let value = |text: &str| Some(cut(text, Finding::MAX_VALUE_BYTES).into_owned());
    match error {
        NotAnEvent::Json(malformed) => {
            let message = match malformed.why {
                Why::NotAnObject => "the event is JSON, but no object".to_owned(),
                why => format!(
                    "the event is not valid JSON: at byte {}: {}",
                    malformed.at,
                    why.describe()
                ),
            };
            let value = Some(excerpt_around(malformed.at, text));
            (structure("", message, TYPE), value)
        }
        NotAnEvent::TypeMissing => (
            structure("/type", "`type` is missing".to_owned(), TYPE),
            None,
        ),
        NotAnEvent::TypeDoubled => {
            let message = "`type` occurs twice in its object".to_owned();
            let detail = "expected it once; two readers could disagree about which one counts";
            (structure("/type", message, detail), None)
        }
        NotAnEvent::TypeWrong(found) => {
            let found = &String::from_utf8_lossy(found);
            let message = format!("`type` is {}", quoted(found));
            (structure("/type", message, TYPE), value(found))
        }
    }
}

fn structure(pointer: &str, message: String, detail: &str) -> Draft {
    Draft {
        code: Code::Structure,
        rule: EVENTS,
        pointer: pointer.to_owned(),
        predicate: None,
        message,
        detail: Some(detail.to_owned()),
    }
}
