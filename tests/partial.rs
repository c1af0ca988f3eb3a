//! `W_PARTIAL_TRACE`: said in each of its cases and once a trace, and what was not seen is passed
//! over there, never guessed.

use std::num::NonZeroUsize;

use tracecheck::verify::{MAX_DOCUMENT_BYTES, MAX_PENDING};
use tracecheck::{Framer, Options, Report, Source, Verifier};

/// The options of a run that follows.
fn following() -> Options {
    Options {
        whole_traces: false,
        ..Options::default()
    }
}

/// The options of a run over many traces of which only one may be open.
fn one_at_a_time() -> Options {
    Options {
        trace_key: Some("/t".parse().expect("a pointer")),
        max_traces: NonZeroUsize::MIN,
        ..Options::default()
    }
}

/// The line and code of what is found.
fn found(options: Options, trace: &str) -> Vec<(u64, &'static str)> {
    let mut verifier = Verifier::new(options);
    let source = Source {
        name: "test".into(),
        origin: 0,
        is_resumable: false,
    };
    let mut reports = Vec::new();
    let mut framer = Framer::new(1 << 24);
    framer.push(trace.as_bytes(), |line| {
        verifier.verify(line, &source, &mut reports);
    });
    verifier.end_all(&mut reports);
    let findings = reports.into_iter().filter_map(Report::into_finding);
    findings.map(|f| (f.line, f.code.as_str())).collect()
}

fn submitted(seq: &str, clearance: &str) -> String {
    format!(
        r#"{{"t":"a","seq":{seq},"kind":"task.submitted","content":{{"requirements":{{"clearances":["{clearance}"]}}}}}}"#
    ) + "\n"
}

fn admitted(seq: &str, name: &str) -> String {
    format!(
        r#"{{"t":"a","seq":{seq},"kind":"task.admitted","content":{{"agent":{{"name":"{name}","namespace":"s"}}}}}}"#
    ) + "\n"
}

/// Another trace, for which the one before is given up where one may be open.
const OTHER: &str = "{\"t\":\"other\",\"seq\":0,\"kind\":\"note\"}\n";

/// A placement that asks for `clearance`, explained by `rest` of its scheduling.
fn bound(seq: &str, clearance: &str, rest: &str) -> String {
    format!(
        r#"{{"t":"a","seq":{seq},"kind":"task.bound","content":{{"resumed":true,"scheduling":{{"requirements":{{"clearances":["{clearance}"]}},"declaration":{{"v":"1.0","agent":{{"name":"n","namespace":"s"}},"capabilities":[],"clearances":["a.a","a.b"]}},{rest}}}}}}}"#
    ) + "\n"
}

fn explained(seq: &str, clearance: &str) -> String {
    let rest = format!(
        r#""route":"r","candidates":["n"],"filters_passed":["clearance:{clearance}"],"filters_failed":[],"scores":{{"n":{{}}}}"#
    );
    bound(seq, clearance, &rest)
}

fn resumed(seq: &str, clearance: &str, referred: &str) -> String {
    let rest = format!(r#""route":"r","recorded_in":{{"kind":"task.bound","seq":{referred}}}"#);
    bound(seq, clearance, &rest)
}

/// One that refers to any placement with a full explanation.
fn waiting(seq: &str) -> String {
    bound(
        seq,
        "a.a",
        r#""route":"r","recorded_in":{"kind":"task.bound"}"#,
    )
}

const PARTIAL: &str = "W_PARTIAL_TRACE";
const STRUCTURE: &str = "E_STRUCTURE";
const SCOPE: &str = "E_DECLARATION_SCOPE";
const EXPLANATION: &str = "E_EXPLANATION";

#[test]
fn a_trace_that_is_joined_is_partial_and_what_a_record_tells_by_itself_is_judged() {
    let trace = [
        &explained("7", "a.a"),
        &resumed("8", "a.a", "3"),
        &waiting("9"),
        &resumed("10", "a.a", "8"),
        &explained("11", "z.z"),
    ];
    let trace = trace.map(String::as_str).concat();
    let expected = [(1, PARTIAL), (4, EXPLANATION), (5, "E_CLEARANCE_UNMET")];
    assert_eq!(found(following(), &trace), expected);
}

#[test]
fn a_trace_that_begins_with_its_submission_or_at_1_is_whole() {
    for first in [
        submitted("7", "a.a"),
        OTHER.to_owned(),
        OTHER.replace('0', "1"),
    ] {
        let trace = first + &explained("8", "a.a");
        let codes = found(following(), &trace);
        assert!(codes.contains(&(2, SCOPE)), "{codes:?}");
        assert!(!codes.iter().any(|&(_, code)| code == PARTIAL), "{codes:?}");
    }
}

#[test]
fn a_submission_with_a_malformed_seq_is_a_beginning_all_the_same() {
    let trace = submitted("\"1\"", "a.a") + &explained("2", "a.a");
    let expected = [(1, STRUCTURE), (2, SCOPE)];
    assert_eq!(found(following(), &trace), expected);
}

#[test]
fn where_the_first_seq_is_malformed_nobody_knows_what_came_before() {
    let trace = resumed("\"7\"", "a.a", "3") + &explained("8", "a.a") + &resumed("9", "a.a", "4");
    let expected = [(1, STRUCTURE), (1, PARTIAL)];
    assert_eq!(found(following(), &trace), expected);
    assert!(found(Options::default(), &trace).contains(&(1, SCOPE)));
}

#[test]
fn a_trace_that_was_given_up_is_partial_when_it_goes_on() {
    for seq in ["3", "\"3\"", "3.0"] {
        let before = submitted("1", "a.a") + &admitted("2", "n") + OTHER;
        let trace = before + &explained(seq, "a.a") + &explained("4", "a.a");
        let expected: &[_] = match seq {
            "3" => &[(4, PARTIAL)],
            _ => &[(4, STRUCTURE), (4, PARTIAL)],
        };
        assert_eq!(found(one_at_a_time(), &trace), expected, "{seq}");
    }
    // Even a submission may be a later one of the trace that was given up.
    let trace = admitted("1", "n") + OTHER + &submitted("2", "a.a") + &explained("3", "a.a");
    assert_eq!(found(one_at_a_time(), &trace), [(3, PARTIAL)]);
}

#[test]
fn a_full_index_makes_a_trace_partial_and_references_to_the_oldest_undecided() {
    const PLACEMENTS: usize = 70_000;
    let mut trace = admitted("2", "n");
    // Each change of the requirements takes room in the index.
    for seq in 3..3 + PLACEMENTS {
        trace += &explained(&(10 * seq).to_string(), ["a.a", "a.b"][seq % 2]);
    }
    let codes = found(Options::default(), &trace);
    let [(_, "W_SEQ_GAP"), (full, PARTIAL)] = codes[..] else {
        panic!("{:?}", &codes[..codes.len().min(5)]);
    };
    let last = 10 * (2 + PLACEMENTS);
    let next = |add: usize| (last + add).to_string();
    trace += &resumed(&next(1), "a.b", "50");
    trace += &resumed(&next(2), "a.b", "51");
    trace += &resumed(&next(3), "a.b", &(last - 1).to_string());
    trace += &waiting(&next(4));
    let line = (PLACEMENTS + 4) as u64;
    let codes = found(Options::default(), &trace);
    assert_eq!(codes[1..], [(full, PARTIAL), (line, EXPLANATION)]);
}

#[test]
fn a_document_too_large_to_keep_makes_a_trace_partial_and_is_compared_with_nothing() {
    let long = "x".repeat(MAX_DOCUMENT_BYTES + 1);
    let large = submitted("1", &format!("a.{long}"));
    let trace = large + &admitted("2", &long) + &explained("3", "a.a");
    assert_eq!(found(Options::default(), &trace), [(1, PARTIAL)]);
    let trace = submitted("1", "a.a") + &admitted("2", &long) + &explained("3", "a.a");
    assert_eq!(found(Options::default(), &trace), [(2, PARTIAL)]);
}

#[test]
fn placements_that_wait_beyond_the_limit_make_a_trace_partial() {
    let mut trace = submitted("1", "a.a") + &admitted("2", "n");
    for seq in 3..3 + MAX_PENDING + 2 {
        trace += &waiting(&seq.to_string());
    }
    let codes = found(Options::default(), &trace);
    let count = |wanted| codes.iter().filter(|(_, code)| *code == wanted).count();
    assert_eq!(count(PARTIAL), 1);
    assert_eq!(count(EXPLANATION), MAX_PENDING);
    assert_eq!(count("W_REFERENCE_PENDING"), MAX_PENDING + 2);
}
