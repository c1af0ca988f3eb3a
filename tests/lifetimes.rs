//! How long a trace lives: over generations of its file, other options, and too many others.

use std::num::NonZeroUsize;
use std::time::Duration;

use tracecheck::{Code, Filter, Line, Options, Report, Source, Verifier};

/// A verifier of one or many sources, and what it has said.
struct Session {
    verifier: Verifier,
    reports: Vec<Report>,
    lines: u64,
}

/// What is said, in short: a finding's code with its `seq` or line, or what became of a trace.
type Said = (&'static str, String);

impl Session {
    fn new(options: Options) -> Self {
        Session {
            verifier: Verifier::new(options),
            reports: Vec::new(),
            lines: 0,
        }
    }

    fn line(&mut self, source: &Source, text: &str) {
        self.lines += 1;
        let line = Line {
            number: self.lines,
            offset: 100 * self.lines,
            bytes: text.as_bytes(),
            too_long: false,
        };
        self.verifier.verify(line, source, &mut self.reports);
    }

    fn said(&mut self) -> Vec<Said> {
        let said = |report: Report| match report {
            Report::Finding(finding) => (finding.code.as_str(), format!("{}", finding.line)),
            Report::Closed(end) => ("closed", format!("{} of {}", end.trace, end.records)),
            Report::Evicted(end) => ("evicted", format!("{} of {}", end.trace, end.records)),
        };
        self.reports.drain(..).map(said).collect()
    }
}

fn file(name: &str) -> Source {
    Source {
        name: name.into(),
        origin: 7,
        is_resumable: true,
    }
}

fn options() -> Options {
    Options {
        trace_ends: true,
        ..Options::default()
    }
}

fn keyed(max_traces: usize) -> Options {
    Options {
        trace_key: Some("/t".parse().expect("a pointer")),
        max_traces: NonZeroUsize::new(max_traces).expect("not zero"),
        ..options()
    }
}

fn note(trace: &str, seq: &str) -> String {
    format!(r#"{{"t":"{trace}","seq":{seq},"kind":"note"}}"#)
}

/// A placement that waits for the one that explains it.
fn waiting(trace: &str, seq: u64) -> String {
    placement(trace, seq, r#""recorded_in":{"kind":"task.bound"}"#)
}

fn explained(trace: &str, seq: u64) -> String {
    let lists = r#""candidates":["n"],"filters_passed":[],"filters_failed":[],"scores":{"n":{}}"#;
    placement(trace, seq, lists)
}

fn placement(trace: &str, seq: u64, rest: &str) -> String {
    format!(
        r#"{{"t":"{trace}","seq":{seq},"kind":"task.bound","content":{{"resumed":true,"scheduling":{{"requirements":{{}},"declaration":{{"v":"1.0","agent":{{"name":"n","namespace":"s"}},"capabilities":[],"clearances":[]}},{rest}}}}}}}"#
    )
}

const STRUCTURE: &str = "E_STRUCTURE";

fn said(code: &'static str, what: &str) -> Said {
    (code, what.to_owned())
}

#[test]
fn a_new_generation_with_a_greater_seq_continues_the_trace() {
    let mut session = Session::new(options());
    let source = file("a.jsonl");
    session.line(&source, &note("-", "1"));
    session.line(&source, &note("-", "2"));
    session.verifier.begin_generation(&source);
    session.line(&source, &note("-", "3"));
    session.line(&source, &note("-", "3"));
    assert_eq!(session.said(), [said(STRUCTURE, "4")]);
    session.verifier.end_source(&source, &mut session.reports);
    assert_eq!(session.said(), [said("closed", "a.jsonl of 4")]);
    assert_eq!(session.verifier.totals().traces, 1);
}

#[test]
fn a_new_generation_without_a_greater_seq_ends_the_trace_and_begins_another() {
    for first in [1, 4] {
        let mut session = Session::new(options());
        let source = file("a.jsonl");
        session.line(&source, &note("-", "3"));
        session.line(&source, &waiting("-", 4));
        session.said();
        session.verifier.begin_generation(&source);
        assert_eq!(session.said(), []);
        session.line(&source, &note("-", &first.to_string()));
        session.line(&source, &note("-", "5"));
        let expected = [said("E_EXPLANATION", "2"), said("closed", "a.jsonl of 2")];
        assert_eq!(session.said()[..2], expected);
        session.verifier.end_all(&mut session.reports);
        assert_eq!(session.said(), [said("closed", "a.jsonl of 2")]);
        assert_eq!(session.verifier.totals().traces, 2);
    }
}

#[test]
fn only_a_readable_seq_decides_what_a_new_generation_is() {
    let mut session = Session::new(options());
    let source = file("a.jsonl");
    session.line(&source, &note("-", "3"));
    session.verifier.begin_generation(&source);
    session.line(&source, "{");
    session.line(&source, &note("-", "\"1\""));
    let expected = [said(STRUCTURE, "2"), said(STRUCTURE, "3")];
    assert_eq!(session.said(), expected);
    session.line(&source, &note("-", "1"));
    session.line(&source, &note("-", "1"));
    let expected = [said("closed", "a.jsonl of 3"), said(STRUCTURE, "5")];
    assert_eq!(session.said(), expected);
}

#[test]
fn a_trace_without_a_readable_seq_does_not_go_on_in_a_new_generation() {
    let mut session = Session::new(options());
    let source = file("a.jsonl");
    session.line(&source, "{");
    session.verifier.begin_generation(&source);
    session.line(&source, &note("-", "9"));
    let expected = [said(STRUCTURE, "1"), said("closed", "a.jsonl of 1")];
    assert_eq!(session.said(), expected);
}

#[test]
fn with_a_trace_key_a_new_generation_is_nothing_new() {
    let mut session = Session::new(keyed(9));
    // A trace may be called as the file is.
    let source = file("a");
    session.line(&source, &note("a", "2"));
    session.verifier.begin_generation(&source);
    session.line(&source, &note("a", "1"));
    assert_eq!(session.said(), [said(STRUCTURE, "2")]);
}

#[test]
fn a_trace_that_is_open_when_another_is_given_up_is_no_partial_one() {
    let mut session = Session::new(keyed(2));
    let source = file("f");
    for (trace, seq) in [
        ("a", "1"),
        ("b", "1"),
        ("b", "2"),
        ("c", "1"),
        ("b", "3"),
        ("c", "2"),
    ] {
        session.line(&source, &note(trace, seq));
    }
    assert_eq!(session.said(), [said("evicted", "a of 1")]);
    session.line(&source, &note("a", "2"));
    let expected = [said("evicted", "b of 3"), said("W_PARTIAL_TRACE", "7")];
    assert_eq!(session.said(), expected);
    assert_eq!(session.verifier.totals().evicted, 2);
}

#[test]
fn fewer_open_traces_give_up_the_others_at_once() {
    let mut session = Session::new(keyed(4));
    let source = file("f");
    for trace in ["a", "b", "c", "d"] {
        session.line(&source, &waiting(trace, 1));
    }
    session.line(&source, &note("a", "2"));
    session.said();
    assert_eq!(session.verifier.pending_references(), 4);
    session.verifier.set_options(keyed(2), &mut session.reports);
    assert_eq!(
        session.said(),
        [said("evicted", "b of 1"), said("evicted", "c of 1")]
    );
    assert_eq!(session.verifier.open_traces(), 2);
    assert_eq!(session.verifier.pending_references(), 2);
    session.line(&source, &note("a", "3"));
    assert_eq!(session.said(), []);
}

#[test]
fn other_options_hold_from_the_next_record_on() {
    let mut session = Session::new(keyed(4));
    let source = file("f");
    session.line(&source, &note("a", "2"));
    session.line(&source, &note("b", "2"));
    let changed = Options {
        trace_key: None,
        end_kinds: vec!["note".to_owned()],
        trace_idle: Some(Duration::from_secs(5)),
        filter: Filter::new(true, &["W_*".to_owned()], &[]).expect("a filter"),
        ..keyed(4)
    };
    session.verifier.set_options(changed, &mut session.reports);
    // The key stays, E_* is not reported any more, and the kind ends the trace.
    session.line(&source, &note("a", "1"));
    assert_eq!(session.said(), [said("closed", "a of 2")]);
    session
        .verifier
        .set_time(Duration::from_secs(5), &mut session.reports);
    assert_eq!(session.said(), [said("closed", "b of 1")]);
}

#[test]
fn pending_references_are_counted_and_decided_without_ending_traces() {
    let mut session = Session::new(keyed(3));
    let source = file("f");
    session.line(&source, &waiting("a", 1));
    session.line(&source, &waiting("a", 2));
    session.line(&source, &waiting("b", 1));
    session.line(&source, &waiting("c", 1));
    assert_eq!(session.verifier.pending_references(), 4);
    session.line(&source, &explained("c", 2));
    assert_eq!(session.verifier.pending_references(), 3);
    session.said();
    session.verifier.decide_pending(&mut session.reports);
    let lines = ["1", "2", "3"].map(|line| said(Code::Explanation.as_str(), line));
    assert_eq!(session.said(), lines);
    assert_eq!(session.verifier.pending_references(), 0);
    assert_eq!(session.verifier.open_traces(), 3);
    // They are open still, and hold nothing against it.
    session.line(&source, &waiting("a", 3));
    assert_eq!(session.verifier.pending_references(), 1);
    session.line(&source, &note("d", "1"));
    assert!(session.said().contains(&said("evicted", "b of 1")));
    session.verifier.end_all(&mut session.reports);
    assert_eq!(session.verifier.pending_references(), 0);
}
