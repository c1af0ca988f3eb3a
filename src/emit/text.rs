//! Text for people: a paragraph a finding, in the manner of a compiler.
//!
//! ```text
//! error[E_CLEARANCE_UNMET]: the agent does not hold clearance `refunds.issue`
//!   --> traces/refund.jsonl:3 (seq 3, task.bound, agent support/order-analyst)
//!    |
//!    | /content/scheduling/requirements/clearances/1
//!    |     "refunds.issue"
//!    |
//!    = the declaration's `clearances`: orders.read, customers.read
//!    = help: tracecheck explain E_CLEARANCE_UNMET
//! ```
//!
//! The help line comes with the first finding of a code only. Everything that may come from a trace
//! goes through [`visible`], so that each of it stays on its line.

use std::fmt;
use std::io::{self, Write};

use tracecheck::event::{Event, SourceEvent, SourceState, Summary};
use tracecheck::finding::{Code, Counts, Finding, Severity, TraceEnd};

use super::Terms;
use super::quantity::{self, Count};
use super::sanitise::visible;

/// Longest message, detail and path: some ten lines of a terminal, beyond which nobody reads.
const MAX_SENTENCE_CHARS: usize = 1_000;

/// Longest name of a trace, a kind or an agent, and longest pointer.
const MAX_NAME_CHARS: usize = 240;

/// Longest excerpt of a value. Findings carry no longer ones; this holds whoever made them.
const MAX_VALUE_CHARS: usize = Finding::MAX_VALUE_BYTES;

/// Writes events as text.
pub(super) struct TextWriter {
    /// What things are called.
    pub(super) terms: Terms,
    color: bool,
    last: Last,
    /// How many sources were opened, and how many could not be opened or not be read to their end.
    opened: u64,
    failed: u64,
    /// Whether a code's help line was shown, indexed by [`Code`].
    helped: [bool; Code::ALL.len()],
}

/// What was written last. Paragraphs have blank lines around them; single lines follow one another.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Last {
    Nothing,
    Line,
    Paragraph,
}

impl TextWriter {
    /// A writer of a new text, with ANSI styles or without.
    pub(super) fn new(color: bool) -> Self {
        TextWriter {
            terms: Terms::default(),
            color,
            last: Last::Nothing,
            opened: 0,
            failed: 0,
            helped: [false; Code::ALL.len()],
        }
    }

    /// Appends what a person wants to know of the event, if anything.
    pub(super) fn append(&mut self, out: &mut impl Write, event: Event<'_>) -> io::Result<()> {
        match event {
            Event::Finding(finding) => self.finding(out, finding),
            Event::Source(event) => self.source(out, event),
            Event::TraceClosed(end) => self.closed(out, end),
            Event::TraceEvicted(end) => self.evicted(out, end),
            Event::Summary(summary) => self.summary(out, summary),
        }
    }

    /// What there is to say of the event, in one line without its LF, for where severity and place
    /// are kept beside it.
    pub(super) fn line(&mut self, event: Event<'_>) -> String {
        match event {
            Event::Finding(finding) => self.finding_line(finding),
            Event::Source(event) => {
                self.count_source(event.state);
                let source = visible(event.source, MAX_SENTENCE_CHARS);
                format!("{source}: {}", visible(event.message, MAX_SENTENCE_CHARS))
            }
            Event::TraceClosed(end) => self.closed_line(end),
            Event::TraceEvicted(end) => self.evicted_line(end),
            Event::Summary(summary) => self.verdict(summary),
        }
    }

    /// `E_CLEARANCE_UNMET: the agent does not hold clearance … (trace order-4711, line 3 of a.jsonl)`
    fn finding_line(&self, finding: &Finding) -> String {
        let sentence = finding.sentence();
        let mut of_trace = String::new();
        if finding.trace != finding.source {
            let trace = visible(&finding.trace, MAX_NAME_CHARS);
            of_trace = format!("{} {trace}, ", self.terms.whole());
        }
        format!(
            "{}: {} ({of_trace}line {} of {})",
            finding.code,
            visible(&sentence, MAX_SENTENCE_CHARS),
            finding.line,
            visible(&finding.source, MAX_SENTENCE_CHARS),
        )
    }

    fn finding(&mut self, out: &mut impl Write, finding: &Finding) -> io::Result<()> {
        self.separate(out, Last::Paragraph)?;
        let (code, severity) = (finding.code, finding.severity());
        let label = format!("{severity}[{code}]");
        self.heading(out, severity, &label, &finding.message)?;
        self.location(out, finding)?;
        self.member(out, finding)?;
        self.notes(out, finding)
    }

    fn heading(
        &self,
        out: &mut impl Write,
        severity: Severity,
        label: &str,
        message: &str,
    ) -> io::Result<()> {
        let label = self.paint(Style::of(severity), label);
        let message = visible(message, MAX_SENTENCE_CHARS);
        let message = self.paint(Style::Bold, format!(": {message}"));
        writeln!(out, "{label}{message}")
    }

    /// `  --> traces/refund.jsonl:3 (seq 3, task.bound, agent support/order-analyst)`
    fn location(&self, out: &mut impl Write, finding: &Finding) -> io::Result<()> {
        let source = visible(&finding.source, MAX_SENTENCE_CHARS);
        let arrow = self.paint(Style::Gutter, "-->");
        write!(out, "  {arrow} {source}:{}", finding.line)?;
        let name = |text| visible(text, MAX_NAME_CHARS);
        let mut facts = Vec::new();
        if finding.trace != finding.source {
            facts.push(format!("{} {}", self.terms.whole(), name(&finding.trace)));
        }
        if let Some(seq) = finding.seq {
            facts.push(format!("seq {seq}"));
        }
        if let Some(kind) = &finding.kind {
            facts.push(name(kind).to_string());
        }
        if let Some(agent) = &finding.agent {
            facts.push(format!(
                "agent {}/{}",
                name(&agent.namespace),
                name(&agent.name)
            ));
        }
        if !facts.is_empty() {
            write!(out, " ({})", facts.join(", "))?;
        }
        writeln!(out)
    }

    /// The pointer, and the value there.
    fn member(&self, out: &mut impl Write, finding: &Finding) -> io::Result<()> {
        if finding.pointer.is_empty() && finding.value.is_none() {
            return Ok(());
        }
        let bar = self.paint(Style::Gutter, "|");
        writeln!(out, "   {bar}")?;
        if !finding.pointer.is_empty() {
            writeln!(
                out,
                "   {bar} {}",
                visible(&finding.pointer, MAX_NAME_CHARS)
            )?;
        }
        if let Some(value) = &finding.value {
            writeln!(out, "   {bar}     {}", visible(value, MAX_VALUE_CHARS))?;
        }
        Ok(())
    }

    fn notes(&mut self, out: &mut impl Write, finding: &Finding) -> io::Result<()> {
        let helped = std::mem::replace(&mut self.helped[finding.code as usize], true);
        if finding.detail.is_none() && helped {
            return Ok(());
        }
        let equals = self.paint(Style::Gutter, "=");
        writeln!(out, "   {}", self.paint(Style::Gutter, "|"))?;
        if let Some(detail) = &finding.detail {
            writeln!(out, "   {equals} {}", visible(detail, MAX_SENTENCE_CHARS))?;
        }
        if !helped {
            let help = self.paint(Style::Bold, "help");
            writeln!(
                out,
                "   {equals} {help}: tracecheck explain {}",
                finding.code
            )?;
        }
        Ok(())
    }

    /// Shows only failures, and keeps in mind what the summary has to say of the others.
    fn source(&mut self, out: &mut impl Write, event: SourceEvent<'_>) -> io::Result<()> {
        self.count_source(event.state);
        match event.state {
            SourceState::Failed => self.failure(out, event),
            _ => Ok(()),
        }
    }

    fn count_source(&mut self, state: SourceState) {
        match state {
            SourceState::Opened => self.opened += 1,
            SourceState::Failed => self.failed += 1,
            _ => {}
        }
    }

    fn failure(&mut self, out: &mut impl Write, event: SourceEvent<'_>) -> io::Result<()> {
        self.separate(out, Last::Paragraph)?;
        self.heading(out, Severity::Error, "error", event.message)?;
        let source = visible(event.source, MAX_SENTENCE_CHARS);
        writeln!(out, "  {} {source}", self.paint(Style::Gutter, "-->"))
    }

    fn closed(&mut self, out: &mut impl Write, end: &TraceEnd) -> io::Result<()> {
        self.separate(out, Last::Line)?;
        let label = self.paint(Style::Bold, "note");
        writeln!(out, "{label}: {}", self.closed_line(end))
    }

    fn closed_line(&self, end: &TraceEnd) -> String {
        format!("{} closed {}", self.name_of(end), self.after(end))
    }

    fn evicted(&mut self, out: &mut impl Write, end: &TraceEnd) -> io::Result<()> {
        self.separate(out, Last::Line)?;
        let label = self.paint(Style::Warning, "warning");
        writeln!(out, "{label}: {}", self.evicted_line(end))
    }

    fn evicted_line(&self, end: &TraceEnd) -> String {
        let (name, after) = (self.name_of(end), self.after(end));
        format!("too many open traces: {name} was given up {after}")
    }

    fn name_of(&self, end: &TraceEnd) -> String {
        let name = visible(&end.trace, MAX_NAME_CHARS);
        format!("{} `{name}`", self.terms.whole())
    }

    /// `after 12 records and 2 placements: 1 error`
    fn after(&self, end: &TraceEnd) -> String {
        format!(
            "after {}: {}",
            self.terms.parts(end.records, end.placements),
            self.totals(&end.counts),
        )
    }

    fn summary(&mut self, out: &mut impl Write, summary: &Summary) -> io::Result<()> {
        self.separate(out, Last::Paragraph)?;
        writeln!(out, "{}", self.verdict(summary))?;
        let mut rows: Vec<_> = summary.counts.iter().collect();
        if rows.is_empty() || self.opened == 0 {
            return Ok(());
        }
        // Stable: codes that are as frequent stay in the order of the steps.
        rows.sort_by_key(|&(_, count)| std::cmp::Reverse(count));
        let width = quantity::grouped(rows[0].1).len();
        writeln!(out)?;
        for (code, count) in rows {
            let count = quantity::grouped(count);
            let code = self.paint(Style::of(code.severity()), code);
            writeln!(out, "  {count:>width$}  {code}")?;
        }
        Ok(())
    }

    /// What a run came to, in one line.
    fn verdict(&self, summary: &Summary) -> String {
        if self.opened == 0 {
            // Whatever stood here in numbers would read as if all were well.
            let nothing = self.paint(Style::Error, "nothing was checked");
            return format!("{nothing}: {}", self.why_nothing());
        }
        let mut verdict = format!(
            "checked {} of {} ({}) in {}: {}",
            self.terms.parts(summary.records, summary.placements),
            Count {
                number: summary.traces,
                noun: self.terms.whole(),
            },
            quantity::bytes(summary.bytes),
            quantity::seconds(summary.seconds),
            self.totals(&summary.counts),
        );
        if self.failed > 0 {
            let failures = self.paint(Style::Error, self.failures());
            verdict.push_str(&format!("; {failures}"));
        }
        verdict
    }

    fn why_nothing(&self) -> String {
        match self.failed {
            0 => "no trace was read".to_owned(),
            _ => self.failures(),
        }
    }

    /// `2 sources could not be read`
    fn failures(&self) -> String {
        let sources = Count {
            number: self.failed,
            noun: "source",
        };
        format!("{sources} could not be read")
    }

    /// `2 errors, 1 warning`, or `no findings`.
    fn totals(&self, counts: &Counts) -> String {
        let totals: Vec<String> = [Severity::Error, Severity::Warning]
            .into_iter()
            .map(|severity| (severity, counts.total(severity)))
            .filter(|&(_, number)| number > 0)
            .map(|(severity, number)| {
                let noun = severity.as_str();
                self.paint(Style::of(severity), Count { number, noun })
                    .to_string()
            })
            .collect();
        if totals.is_empty() {
            // Not in the colour of success where not everything could be looked at.
            let style = (self.failed == 0).then_some(Style::Good);
            return self.paint_if(style, "no findings").to_string();
        }
        totals.join(", ")
    }

    /// Writes the blank line that belongs before `next`, if any.
    fn separate(&mut self, out: &mut impl Write, next: Last) -> io::Result<()> {
        let last = std::mem::replace(&mut self.last, next);
        if last == Last::Nothing || (last, next) == (Last::Line, Last::Line) {
            return Ok(());
        }
        writeln!(out)
    }

    fn paint<T: fmt::Display>(&self, style: Style, text: T) -> Painted<T> {
        self.paint_if(Some(style), text)
    }

    fn paint_if<T: fmt::Display>(&self, style: Option<Style>, text: T) -> Painted<T> {
        let style = style.filter(|_| self.color);
        Painted { style, text }
    }
}

impl Terms {
    /// What a source holds one or many of.
    const fn whole(self) -> &'static str {
        match self {
            Terms::Traces => "trace",
            Terms::Runs => "run",
        }
    }

    /// `12 records and 2 placements`, or `12 events`.
    fn parts(self, records: u64, placements: u64) -> String {
        let count = |number, noun| Count { number, noun };
        match self {
            Terms::Traces => format!(
                "{} and {}",
                count(records, "record"),
                count(placements, "placement")
            ),
            Terms::Runs => count(records, "event").to_string(),
        }
    }
}

/// The styles of the text.
#[derive(Clone, Copy)]
enum Style {
    Error,
    Warning,
    Good,
    Gutter,
    Bold,
}

impl Style {
    fn of(severity: Severity) -> Style {
        match severity {
            Severity::Error => Style::Error,
            Severity::Warning => Style::Warning,
        }
    }

    /// The ANSI sequence that begins it; one of eight colours, which every terminal's user has
    /// chosen to be readable.
    fn begin(self) -> &'static str {
        match self {
            Style::Error => "\x1b[1;31m",
            Style::Warning => "\x1b[1;33m",
            Style::Good => "\x1b[1;32m",
            Style::Gutter => "\x1b[1;34m",
            Style::Bold => "\x1b[1m",
        }
    }
}

/// A text in a style, or plain.
struct Painted<T> {
    style: Option<Style>,
    text: T,
}

impl<T: fmt::Display> fmt::Display for Painted<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.style {
            Some(style) => write!(f, "{}{}\x1b[0m", style.begin(), self.text),
            None => self.text.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use tracecheck::finding::{AgentId, FindingId};

    fn text(color: bool, events: &[Event<'_>]) -> String {
        let mut writer = TextWriter::new(color);
        let mut out = Vec::new();
        for &event in events {
            writer
                .append(&mut out, event)
                .expect("a Vec takes everything");
        }
        String::from_utf8(out).expect("UTF-8")
    }

    fn clearance() -> Finding {
        Finding {
            code: Code::ClearanceUnmet,
            message: "the agent does not hold clearance `refunds.issue`".into(),
            detail: Some("the declaration's `clearances`: orders.read, customers.read".into()),
            value: Some("\"refunds.issue\"".into()),
            trace: "traces/refund.jsonl".into(),
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
            id: FindingId(1),
        }
    }

    fn broken_line() -> Finding {
        Finding {
            code: Code::Structure,
            message: "the line is not valid JSON".into(),
            detail: None,
            value: None,
            line: 7,
            seq: None,
            kind: None,
            pointer: String::new(),
            predicate: None,
            agent: None,
            rule: "7",
            ..clearance()
        }
    }

    #[test]
    fn a_finding_is_a_paragraph() {
        assert_eq!(
            text(false, &[Event::Finding(&clearance())]),
            r#"error[E_CLEARANCE_UNMET]: the agent does not hold clearance `refunds.issue`
  --> traces/refund.jsonl:3 (seq 3, task.bound, agent support/order-analyst)
   |
   | /content/scheduling/requirements/clearances/1
   |     "refunds.issue"
   |
   = the declaration's `clearances`: orders.read, customers.read
   = help: tracecheck explain E_CLEARANCE_UNMET
"#
        );
    }

    #[test]
    fn styles_enclose_what_they_mark() {
        let warning = Finding {
            code: Code::SeqGap,
            message: "a gap".into(),
            ..clearance()
        };
        assert_eq!(
            text(true, &[Event::Finding(&warning)]),
            "\x1b[1;33mwarning[W_SEQ_GAP]\x1b[0m\x1b[1m: a gap\x1b[0m\n  \
             \x1b[1;34m-->\x1b[0m traces/refund.jsonl:3 \
             (seq 3, task.bound, agent support/order-analyst)\n   \
             \x1b[1;34m|\x1b[0m\n   \
             \x1b[1;34m|\x1b[0m /content/scheduling/requirements/clearances/1\n   \
             \x1b[1;34m|\x1b[0m     \"refunds.issue\"\n   \
             \x1b[1;34m|\x1b[0m\n   \
             \x1b[1;34m=\x1b[0m the declaration's `clearances`: orders.read, customers.read\n   \
             \x1b[1;34m=\x1b[0m \x1b[1mhelp\x1b[0m: tracecheck explain W_SEQ_GAP\n"
        );
        let coloured = text(true, &[Event::Finding(&clearance())]);
        assert!(coloured.starts_with("\x1b[1;31merror[E_CLEARANCE_UNMET]\x1b[0m"));
    }

    #[test]
    fn help_comes_with_a_code_once_and_paragraphs_are_apart() {
        let (first, second) = (clearance(), broken_line());
        let events = [&first, &second, &first, &second].map(Event::Finding);
        assert_eq!(
            text(false, &events),
            r#"error[E_CLEARANCE_UNMET]: the agent does not hold clearance `refunds.issue`
  --> traces/refund.jsonl:3 (seq 3, task.bound, agent support/order-analyst)
   |
   | /content/scheduling/requirements/clearances/1
   |     "refunds.issue"
   |
   = the declaration's `clearances`: orders.read, customers.read
   = help: tracecheck explain E_CLEARANCE_UNMET

error[E_STRUCTURE]: the line is not valid JSON
  --> traces/refund.jsonl:7
   |
   = help: tracecheck explain E_STRUCTURE

error[E_CLEARANCE_UNMET]: the agent does not hold clearance `refunds.issue`
  --> traces/refund.jsonl:3 (seq 3, task.bound, agent support/order-analyst)
   |
   | /content/scheduling/requirements/clearances/1
   |     "refunds.issue"
   |
   = the declaration's `clearances`: orders.read, customers.read

error[E_STRUCTURE]: the line is not valid JSON
  --> traces/refund.jsonl:7
"#
        );
    }

    #[test]
    fn a_missing_member_has_no_value_and_a_whole_line_no_pointer() {
        let missing = Finding {
            value: None,
            detail: None,
            trace: "order-4711".into(),
            ..clearance()
        };
        let line = Finding {
            code: Code::ClearanceUnmet,
            value: Some("{\"seq\":3,".into()),
            detail: Some("the line ends inside an object".into()),
            ..broken_line()
        };
        assert_eq!(
            text(false, &[Event::Finding(&missing), Event::Finding(&line)]),
            r#"error[E_CLEARANCE_UNMET]: the agent does not hold clearance `refunds.issue`
  --> traces/refund.jsonl:3 (trace order-4711, seq 3, task.bound, agent support/order-analyst)
   |
   | /content/scheduling/requirements/clearances/1
   |
   = help: tracecheck explain E_CLEARANCE_UNMET

error[E_CLEARANCE_UNMET]: the line is not valid JSON
  --> traces/refund.jsonl:7
   |
   |     {"seq":3,
   |
   = the line ends inside an object
"#
        );
    }

    #[test]
    fn hostile_text_stays_on_its_line_and_is_seen() {
        let hostile = Finding {
            message: "no clearance `\u{1b}[2Jx`\nerror[E_FORGED]: not ours".into(),
            detail: Some("it lists: a\r\n   = help: rm -rf".into()),
            value: Some("\"one\ntwo\u{9b}31m\u{202e}three\u{200b}\"".into()),
            trace: "t\u{7}".into(),
            source: "a\u{2028}b.jsonl".into(),
            kind: Some("task.bound\u{1b}]0;x\u{7}".into()),
            pointer: "/con\ttent/\u{feff}".into(),
            agent: Some(Arc::new(AgentId {
                name: "n\u{7f}".into(),
                namespace: "\u{2066}s".into(),
            })),
            ..clearance()
        };
        assert_eq!(
            text(false, &[Event::Finding(&hostile)]),
            r#"error[E_CLEARANCE_UNMET]: no clearance `\u{1b}[2Jx`\nerror[E_FORGED]: not ours
  --> a\u{2028}b.jsonl:3 (trace t\u{7}, seq 3, task.bound\u{1b}]0;x\u{7}, agent \u{2066}s/n\u{7f})
   |
   | /con\ttent/\u{feff}
   |     "one\ntwo\u{9b}31m\u{202e}three\u{200b}"
   |
   = it lists: a\r\n   = help: rm -rf
   = help: tracecheck explain E_CLEARANCE_UNMET
"#
        );
    }

    #[test]
    fn long_texts_are_cut() {
        let long = "x".repeat(100_000);
        let finding = Finding {
            message: long.clone(),
            detail: Some(long.clone()),
            value: Some(long.clone()),
            trace: format!("t{long}").into(),
            source: long.clone().into(),
            kind: Some(long.clone().into()),
            pointer: long.clone(),
            agent: Some(Arc::new(AgentId {
                name: long.clone(),
                namespace: long,
            })),
            ..clearance()
        };
        let text = text(false, &[Event::Finding(&finding)]);
        assert_eq!(text.matches("x…").count(), 9);
        assert!(text.len() < 5_000, "{}", text.len());
    }

    #[test]
    fn failures_name_their_source() {
        let event = SourceEvent {
            state: SourceState::Failed,
            source: "traces/a.jsonl",
            message: "cannot open: Permission denied (os error 13)",
        };
        assert_eq!(
            text(
                false,
                &[Event::Source(event), Event::Finding(&broken_line())]
            ),
            "error: cannot open: Permission denied (os error 13)
  --> traces/a.jsonl

error[E_STRUCTURE]: the line is not valid JSON
  --> traces/refund.jsonl:7
   |
   = help: tracecheck explain E_STRUCTURE
"
        );
    }

    fn counts(of: &[(Code, u64)]) -> Counts {
        let mut counts = Counts::default();
        for &(code, number) in of {
            (0..number).for_each(|_| counts.add(code));
        }
        counts
    }

    #[test]
    fn ends_of_traces_are_single_lines() {
        let end = TraceEnd {
            trace: "order\n4711".into(),
            records: 1,
            placements: 0,
            counts: counts(&[(Code::Structure, 2), (Code::SeqGap, 1)]),
        };
        let clean = TraceEnd {
            counts: Counts::default(),
            ..end.clone()
        };
        let finding = broken_line();
        let events = [
            Event::TraceEvicted(&end),
            Event::TraceClosed(&clean),
            Event::Finding(&finding),
            Event::TraceClosed(&end),
        ];
        assert_eq!(
            text(false, &events),
            r"warning: too many open traces: trace `order\n4711` was given up after 1 record and 0 placements: 2 errors, 1 warning
note: trace `order\n4711` closed after 1 record and 0 placements: no findings

error[E_STRUCTURE]: the line is not valid JSON
  --> traces/refund.jsonl:7
   |
   = help: tracecheck explain E_STRUCTURE

note: trace `order\n4711` closed after 1 record and 0 placements: 2 errors, 1 warning
"
        );
    }

    const OPENED: Event<'static> = Event::Source(SourceEvent {
        state: SourceState::Opened,
        source: "a.jsonl",
        message: "reading",
    });
    const FAILED: Event<'static> = Event::Source(SourceEvent {
        state: SourceState::Failed,
        source: "b.jsonl",
        message: "cannot open: Permission denied (os error 13)",
    });

    fn summary(counts: Counts) -> Summary {
        Summary {
            records: 1204,
            placements: 38,
            traces: 3,
            counts,
            bytes: 1_902_417,
            seconds: 0.0204,
        }
    }

    #[test]
    fn the_summary_counts_the_most_frequent_code_first() {
        let found = summary(counts(&[
            (Code::Structure, 2),
            (Code::ToolUnmet, 1_000),
            (Code::Explanation, 2),
            (Code::SeqGap, 1),
        ]));
        assert_eq!(
            text(false, &[OPENED, Event::Summary(&found)]),
            "checked 1,204 records and 38 placements of 3 traces (1.9 MB) in 0.02 s: \
             1,004 errors, 1 warning

  1,000  E_TOOL_UNMET
      2  E_STRUCTURE
      2  E_EXPLANATION
      1  W_SEQ_GAP
"
        );
    }

    #[test]
    fn a_clean_summary_is_one_line() {
        let clean = summary(Counts::default());
        assert_eq!(
            text(false, &[OPENED, Event::Summary(&clean)]),
            "checked 1,204 records and 38 placements of 3 traces (1.9 MB) in 0.02 s: no findings\n"
        );
        let coloured = text(true, &[OPENED, Event::Summary(&clean)]);
        assert!(coloured.ends_with(": \x1b[1;32mno findings\x1b[0m\n"));
    }

    #[test]
    fn the_summary_stands_apart() {
        let (finding, clean) = (broken_line(), summary(Counts::default()));
        let events = [OPENED, Event::Finding(&finding), Event::Summary(&clean)];
        let both = text(false, &events);
        assert!(both.contains("\n\nchecked"));
    }

    #[test]
    fn a_summary_does_not_look_like_success_where_something_was_not_read() {
        let clean = summary(Counts::default());
        let last = |events: &[Event<'_>]| {
            let text = text(true, events);
            let line = text.lines().last().expect("a line").to_owned();
            assert!(!line.contains("\x1b[1;32m"), "{line}");
            line
        };
        let nothing = "\x1b[1;31mnothing was checked\x1b[0m: ";
        assert_eq!(
            last(&[Event::Summary(&clean)]),
            format!("{nothing}no trace was read")
        );
        assert_eq!(
            last(&[FAILED, FAILED, Event::Summary(&clean)]),
            format!("{nothing}2 sources could not be read")
        );
        let part = last(&[OPENED, FAILED, Event::Summary(&clean)]);
        let end = ": no findings; \x1b[1;31m1 source could not be read\x1b[0m";
        assert!(part.ends_with(end), "{part}");
    }
}
