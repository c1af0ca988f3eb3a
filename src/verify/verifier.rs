//! Takes lines to their traces and findings to their reader.

use std::mem;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use super::drafts::Drafts;
use super::judge;
use super::reason::ClaimPatterns;
use super::report::{self, Broken, Place, Reporter};
use super::resumed::Reference;
use super::sequence;
use super::state::TraceState;
use crate::decode::{self, Body, JsonStr, Record};
use crate::filter::Filter;
use crate::finding::{Counts, Finding, Report, Source, TraceEnd};
use crate::framing::{Line, is_blank};
use crate::pointer::JsonPointer;
use crate::schema::known::KnownDocuments;
use crate::traces::{Entered, Trace, Traces};

/// How a [`Verifier`] goes about its work. The default verifies whole traces, one a source.
#[derive(Clone, Debug)]
pub struct Options {
    /// Which member names the trace that a record belongs to. Without it each source is one trace.
    pub trace_key: Option<JsonPointer>,
    /// A record of one of these kinds ends its trace.
    pub end_kinds: Vec<String>,
    /// A trace ends when it has had no record for so long.
    pub trace_idle: Option<Duration>,
    /// How many traces may be open; beyond, the least recently used is given up.
    pub max_traces: NonZeroUsize,
    /// Wordings of a claim that no agent was eligible (R17).
    pub claims: ClaimPatterns,
    /// Which codes are reported and counted.
    pub filter: Filter,
    /// Whether the ends of traces in good order are reported.
    pub trace_ends: bool,
    /// Whether a trace's first record is known to be its beginning. Where it is not, one that is no
    /// `task.submitted`, with a `seq` above 1 or an unreadable one, makes the trace a partial one.
    pub whole_traces: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            trace_key: None,
            end_kinds: Vec::new(),
            trace_idle: None,
            max_traces: NonZeroUsize::new(1_000_000).expect("not zero"),
            claims: ClaimPatterns::default(),
            filter: Filter::default(),
            trace_ends: false,
            whole_traces: true,
        }
    }
}

/// What a verifier has seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Lines that are not blank.
    pub records: u64,
    /// Records of kind `task.bound`.
    pub placements: u64,
    /// Traces that were opened.
    pub traces: u64,
    /// Traces that were given up because too many were open.
    pub evicted: u64,
    /// Findings by code.
    pub counts: Counts,
}

impl Totals {
    /// Adds what another verifier has seen.
    pub fn add(&mut self, other: &Totals) {
        self.records += other.records;
        self.placements += other.placements;
        self.traces += other.traces;
        self.counts.add_all(&other.counts);
    }
}

/// Verifies traces line by line. Knows no file, socket or clock.
///
/// ```
/// use tracecheck::{Code, Verifier};
///
/// let trace = r#"
/// {"seq":1,"kind":"task.submitted","content":{"requirements":{"clearances":["orders.read"]}}}
/// {"seq":2,"kind":"task.rejected","content":{"reason":"No agent available"}}
/// "#;
/// let mut verifier = Verifier::default();
/// let mut findings = Vec::new();
/// for line in trace.lines() {
///     findings.extend(verifier.push(line.as_bytes()));
/// }
/// findings.extend(verifier.finish());
///
/// assert_eq!(findings.len(), 1);
/// assert_eq!(findings[0].code, Code::RejectionReason);
/// assert_eq!(findings[0].line, 3);
/// ```
#[derive(Debug)]
pub struct Verifier {
    options: Options,
    pub(super) traces: Traces,
    pub(super) tally: Tally,
    /// The time, on a clock that goes on over restarts, and when that stood at what the user of the
    /// verifier calls zero.
    pub(super) now: Duration,
    pub(super) clock_base: Duration,
    known: KnownDocuments,
    /// Where [`Verifier::push`] is in its one source.
    pushed_lines: u64,
    pushed_bytes: u64,
    pushed_source: Source,
}

/// What is known across traces.
#[derive(Debug, Default)]
pub(super) struct Tally {
    totals: Totals,
    /// Whether any trace was given up: one that comes back may have been it.
    pub(super) any_evicted: bool,
    /// Placements of open traces that wait for the one that explains them.
    pub(super) pending: usize,
}

impl Default for Verifier {
    fn default() -> Self {
        Verifier::new(Options::default())
    }
}

impl Verifier {
    /// A verifier that has seen nothing.
    #[must_use]
    pub fn new(options: Options) -> Self {
        Verifier {
            traces: Traces::new(options.max_traces),
            options,
            tally: Tally::default(),
            now: Duration::ZERO,
            clock_base: Duration::ZERO,
            known: KnownDocuments::default(),
            pushed_lines: 0,
            pushed_bytes: 0,
            pushed_source: Source {
                name: Arc::from("trace"),
                origin: 0,
                is_resumable: false,
            },
        }
    }

    /// Verifies the next line of a source that is called `trace`, and gives what is wrong with it.
    /// Lines are counted from 1, and their offsets as if each but the last ended with one LF.
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
        self.verify(line, &source, &mut reports);
        findings(reports)
    }

    /// Ends every trace, and gives what can be said only then.
    pub fn finish(&mut self) -> Vec<Finding> {
        let mut reports = Vec::new();
        self.end_all(&mut reports);
        findings(reports)
    }

    /// Verifies one line of a source. Lines of one trace must come in their order.
    pub fn verify(&mut self, line: Line<'_>, source: &Source, reports: &mut Vec<Report>) {
        if !line.too_long && is_blank(line.bytes) {
            return;
        }
        self.tally.totals.records += 1;
        let place = Place { source, line };
        if line.too_long {
            return self.report_broken(&place, report::too_long(line.bytes.len()), reports);
        }
        // Taken out while the record borrows from it.
        let mut known = mem::take(&mut self.known);
        let pair = known.pair.take();
        match decode::record(line.bytes, self.options.trace_key.as_ref(), pair.as_deref()) {
            Ok(record) => {
                self.verify_record(&place, &record, reports);
                known.learn(&record);
            }
            Err(malformed) => {
                let broken = report::not_json(malformed, line.bytes);
                self.report_broken(&place, broken, reports);
            }
        }
        known.pair = known.pair.or(pair);
        self.known = known;
    }

    /// Reports a line that is no record. Without a trace key it counts for its source's trace.
    fn report_broken(&mut self, place: &Place<'_>, broken: Broken, reports: &mut Vec<Report>) {
        let filter = self.options.filter;
        if self.options.trace_key.is_some() {
            let counts = [&mut self.tally.totals.counts];
            Reporter {
                filter,
                counts,
                reports,
            }
            .broken(place, broken, &place.source.name);
            return;
        }
        let trace = self.traces.enter(&place.source.name, self.now);
        let trace = self.tally.note(trace, reports);
        trace.state.records += 1;
        trace.state.from_stream |= !place.source.is_resumable;
        let counts = [
            &mut self.tally.totals.counts,
            &mut trace.state.rare().counts,
        ];
        Reporter {
            filter,
            counts,
            reports,
        }
        .broken(place, broken, &trace.name);
    }

    /// A source begins anew, under the name that it had: a file was rotated or truncated. Without a
    /// trace key its trace goes on if the first `seq` of the new generation is greater than the last
    /// one of the old, as it does where a writer rotates its file; otherwise the trace ends and
    /// another begins. With a key records tell by themselves which trace they belong to.
    ///
    /// The next record with a readable `seq` decides. What comes before it, lines that are no records
    /// and records without a readable `seq`, decides nothing and is judged in the old trace.
    pub fn begin_generation(&mut self, source: &Source) {
        if self.options.trace_key.is_none()
            && let Some(trace) = self.traces.find_open(&source.name)
        {
            trace.state.generation_began = true;
        }
    }

    /// A source has ended. Without a trace key, so has its trace.
    pub fn end_source(&mut self, source: &Source, reports: &mut Vec<Report>) {
        if self.options.trace_key.is_none()
            && let Some(trace) = self.traces.close(&source.name)
        {
            self.end(trace, reports);
        }
    }

    /// A source broke off, and nobody knows what more there was of it. Without a trace key its trace
    /// is given up, and what waits in it stays undecided.
    pub fn give_up_source(&mut self, source: &Source, reports: &mut Vec<Report>) {
        if self.options.trace_key.is_none()
            && let Some(trace) = self.traces.close(&source.name)
        {
            self.tally.note_evicted(trace, reports);
        }
    }

    /// Ends every trace: no record will come any more.
    pub fn end_all(&mut self, reports: &mut Vec<Report>) {
        let tell_ends = self.options.trace_ends;
        let mut ending = Vec::new();
        let is_heard = |state: &TraceState| tell_ends || state.has_pending();
        self.traces.close_all(is_heard, |trace| ending.push(trace));
        ending
            .into_iter()
            .for_each(|trace| self.end(trace, reports));
    }

    /// Decides what waits, as if every trace had ended, and leaves them open: placements that no
    /// other has explained yet are reported, and wait no longer. For a run that comes to the end of
    /// its input, and whose traces go on in a later run.
    pub fn decide_pending(&mut self, reports: &mut Vec<Report>) {
        let (filter, tally) = (self.options.filter, &mut self.tally);
        self.traces.visit(TraceState::has_pending, |trace| {
            tally.decide_pending(trace, filter, reports);
        });
    }

    /// Goes on under other options, from the next record on. The trace key stays what it was: no
    /// open trace could be found again under another. Where fewer traces may be open than are, the
    /// least recently used are given up at once.
    pub fn set_options(&mut self, options: Options, reports: &mut Vec<Report>) {
        let trace_key = self.options.trace_key.take();
        self.options = Options {
            trace_key,
            ..options
        };
        self.traces.set_max_open(self.options.max_traces);
        self.give_up_excess(reports);
    }

    /// Gives up the least recently used traces while more are open than may be.
    pub(super) fn give_up_excess(&mut self, reports: &mut Vec<Report>) {
        while let Some(evicted) = self.traces.close_excess() {
            self.tally.note_evicted(evicted, reports);
        }
    }

    /// Sets the time, as monotonic time since any moment, and ends the traces that have been idle
    /// for [`Options::trace_idle`].
    pub fn set_time(&mut self, now: Duration, reports: &mut Vec<Report>) {
        self.now = self.clock_base.saturating_add(now);
        let Some(since) = self
            .options
            .trace_idle
            .and_then(|idle| self.now.checked_sub(idle))
        else {
            return;
        };
        while let Some(trace) = self.traces.close_unused_since(since) {
            self.end(trace, reports);
        }
    }

    /// What has been seen so far.
    #[must_use]
    pub fn totals(&self) -> &Totals {
        &self.tally.totals
    }

    /// How many placements of open traces wait for the one that explains them (R16).
    #[must_use]
    pub fn pending_references(&self) -> usize {
        self.tally.pending
    }

    /// How many traces are open.
    #[must_use]
    pub fn open_traces(&self) -> usize {
        self.traces.len()
    }

    fn verify_record(&mut self, place: &Place<'_>, record: &Record<'_>, reports: &mut Vec<Report>) {
        let is_placement = matches!(record.body, Body::Bound(_));
        self.tally.totals.placements += u64::from(is_placement);
        let name = match &self.options.trace_key {
            None => Some(&*place.source.name),
            Some(_) => record.key.as_deref(),
        };
        let Some(name) = name else {
            // Nobody knows which trace it belongs to; what it tells by itself is judged.
            let mut drafts = Drafts::default();
            judge::record(record, None, &self.options.claims, &mut drafts);
            let counts = [&mut self.tally.totals.counts];
            let mut reporter = Reporter {
                filter: self.options.filter,
                counts,
                reports,
            };
            return reporter.record(place, record, &place.source.name, drafts);
        };
        let mut trace = self.tally.note(self.traces.enter(name, self.now), reports);
        if trace.state.generation_began
            && let Some(seq) = record.seq
        {
            self.settle_generation(name, seq, reports);
            trace = self.tally.note(self.traces.enter(name, self.now), reports);
        }
        let state = &mut trace.state;
        state.records += 1;
        state.placements += u64::from(is_placement);
        state.from_stream |= !place.source.is_resumable;
        let mut drafts = Drafts::default();
        let (whole_traces, any_evicted) = (self.options.whole_traces, self.tally.any_evicted);
        sequence::judge_beginning(record, state, whole_traces, any_evicted, &mut drafts);
        // Only placements wait, and only they are waited for.
        let pending = if is_placement { state.pending() } else { 0 };
        let reference = judge::record(record, Some(state), &self.options.claims, &mut drafts);
        if reference == Reference::Waits {
            judge::wait(place, record, state, &mut drafts);
        }
        if is_placement {
            self.tally.pending = self.tally.pending - pending + state.pending();
        }
        if !(record.faults.is_empty() && drafts.list.is_empty()) {
            let counts = [&mut self.tally.totals.counts, &mut state.rare().counts];
            let mut reporter = Reporter {
                filter: self.options.filter,
                counts,
                reports,
            };
            reporter.record(place, record, &trace.name, drafts);
        }
        if self.ends_trace(record)
            && let Some(trace) = self.traces.close(name)
        {
            self.end(trace, reports);
        }
    }

    /// Decides by the `seq` of a new generation's record whether the trace of that name goes on, or
    /// has ended with the generation before.
    #[cold]
    fn settle_generation(&mut self, name: &str, seq: u64, reports: &mut Vec<Report>) {
        let Some(trace) = self.traces.find_open(name) else {
            return;
        };
        trace.state.generation_began = false;
        let goes_on = trace.state.begun && seq > trace.state.greatest_seq;
        if !goes_on && let Some(trace) = self.traces.close(name) {
            self.end(trace, reports);
        }
    }

    fn ends_trace(&self, record: &Record<'_>) -> bool {
        let is_end = |kind: JsonStr<'_>| self.options.end_kinds.iter().any(|end| kind == **end);
        record.kind.is_some_and(is_end)
    }

    /// Ends a trace in good order: what still waits will not come.
    fn end(&mut self, mut trace: Trace, reports: &mut Vec<Report>) {
        self.tally
            .decide_pending(&mut trace, self.options.filter, reports);
        if self.options.trace_ends {
            reports.push(Report::Closed(trace_end(trace)));
        }
    }
}

impl Tally {
    /// Counts a trace that was opened, and says which one was given up for it.
    fn note<'t>(&mut self, entered: Entered<'t>, reports: &mut Vec<Report>) -> &'t mut Trace {
        self.totals.traces += u64::from(entered.is_new);
        if let Some(evicted) = entered.evicted {
            self.note_evicted(evicted, reports);
        }
        entered.trace
    }

    fn note_evicted(&mut self, evicted: Trace, reports: &mut Vec<Report>) {
        self.any_evicted = true;
        self.totals.evicted += 1;
        self.pending -= evicted.state.pending();
        reports.push(Report::Evicted(trace_end(evicted)));
    }

    /// Reports the placements of a trace that wait: what they wait for will not come.
    fn decide_pending(&mut self, trace: &mut Trace, filter: Filter, reports: &mut Vec<Report>) {
        let pending = trace.state.take_pending();
        if pending.is_empty() {
            return;
        }
        self.pending -= pending.len();
        let counts = [&mut self.totals.counts, &mut trace.state.rare().counts];
        let mut reporter = Reporter {
            filter,
            counts,
            reports,
        };
        pending
            .iter()
            .for_each(|pending| reporter.never_explained(pending, &trace.name));
    }
}

fn trace_end(trace: Trace) -> TraceEnd {
    TraceEnd {
        records: trace.state.records,
        placements: trace.state.placements,
        trace: trace.name,
        counts: trace.state.into_counts(),
    }
}

fn findings(reports: Vec<Report>) -> Vec<Finding> {
    let findings = reports.into_iter().filter_map(Report::into_finding);
    findings.collect()
}
