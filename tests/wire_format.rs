//! The wire format, read by a strict reader of its own.
//!
//! The structs here say again, independently of the writer, which members an event has and of
//! which types; whatever drifts breaks a test. They read no more than the members they know, and
//! demand all of them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use proptest::prelude::*;
use serde::Deserialize;
use tracecheck::event::{Event, MAX_EVENT_BYTES, SourceEvent, SourceState, Summary};
use tracecheck::finding::{AgentId, Code, Counts, Finding, FindingId, Report, Severity, TraceEnd};

#[derive(Debug, Deserialize)]
#[serde(tag = "event", rename_all = "lowercase")]
enum Wire {
    Finding(Box<WireFinding>),
    Source(WireSource),
    Trace(WireTrace),
    Summary(WireSummary),
}

/// `Option` alone would accept a missing member; with `deserialize_with` serde demands it.
fn nullable<'de, T: Deserialize<'de>, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    Option::deserialize(deserializer)
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WireFinding {
    time: String,
    severity: String,
    code: String,
    message: String,
    trace: String,
    source: String,
    line: u64,
    offset: u64,
    #[serde(deserialize_with = "nullable")]
    seq: Option<u64>,
    #[serde(deserialize_with = "nullable")]
    kind: Option<String>,
    pointer: String,
    #[serde(deserialize_with = "nullable")]
    predicate: Option<String>,
    #[serde(deserialize_with = "nullable")]
    agent: Option<WireAgent>,
    rule: String,
    id: String,
    #[serde(deserialize_with = "nullable")]
    value: Option<String>,
    truncated: Option<bool>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WireAgent {
    name: String,
    namespace: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WireSource {
    time: String,
    state: String,
    source: String,
    message: String,
    truncated: Option<bool>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WireTrace {
    time: String,
    state: String,
    trace: String,
    records: u64,
    placements: u64,
    errors: BTreeMap<String, u64>,
    warnings: BTreeMap<String, u64>,
    truncated: Option<bool>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WireSummary {
    time: String,
    records: u64,
    placements: u64,
    traces: u64,
    errors: BTreeMap<String, u64>,
    warnings: BTreeMap<String, u64>,
    bytes: u64,
    seconds: f64,
}

const TIME: &str = "2026-03-01T09:30:00.250Z";

/// The event's line, which must be one line of allowed length, with its LF.
fn line(event: Event<'_>) -> String {
    let time = SystemTime::UNIX_EPOCH + Duration::from_millis(1_772_357_400_250);
    let mut out = Vec::new();
    event.append_to(&mut out, time);
    let text = String::from_utf8(out).expect("UTF-8");
    assert!(text.len() <= MAX_EVENT_BYTES, "{} bytes", text.len());
    assert_eq!(text.find('\n'), Some(text.len() - 1));
    text
}

fn read(text: &str) -> Wire {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn read_finding(text: &str) -> WireFinding {
    match read(text) {
        Wire::Finding(finding) => *finding,
        other => panic!("{other:?}"),
    }
}

/// The names of an object's members as they follow one another, nested ones left out.
fn member_order(text: &str) -> Vec<String> {
    struct Names(Vec<String>);
    impl<'de> Deserialize<'de> for Names {
        fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            struct Visitor;
            impl<'de> serde::de::Visitor<'de> for Visitor {
                type Value = Names;
                fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                    f.write_str("an object")
                }
                fn visit_map<A: serde::de::MapAccess<'de>>(
                    self,
                    mut map: A,
                ) -> Result<Names, A::Error> {
                    let mut names = Vec::new();
                    while let Some((name, _)) = map.next_entry::<_, serde::de::IgnoredAny>()? {
                        names.push(name);
                    }
                    Ok(Names(names))
                }
            }
            deserializer.deserialize_map(Visitor)
        }
    }
    serde_json::from_str::<Names>(text).expect("an object").0
}

fn example_finding() -> Finding {
    Finding {
        code: Code::ClearanceUnmet,
        message: "the agent does not hold clearance `refunds.issue`".into(),
        detail: Some("the declaration's `clearances`: orders.read".into()),
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
        id: FindingId(0xbad_cafe),
    }
}

fn example_end() -> TraceEnd {
    TraceEnd {
        trace: "order-4711".into(),
        records: 12,
        placements: 2,
        counts: counts(&[(Code::ClearanceUnmet, 1)]),
    }
}

fn example_summary() -> Summary {
    Summary {
        records: 1204,
        placements: 38,
        traces: 3,
        counts: counts(&[
            (Code::SeqGap, 1),
            (Code::ClearanceUnmet, 1),
            (Code::Structure, 1),
        ]),
        bytes: 1_902_417,
        seconds: 0.020_417,
    }
}

fn counts(of: &[(Code, u64)]) -> Counts {
    let mut counts = Counts::default();
    for &(code, count) in of {
        (0..count).for_each(|_| counts.add(code));
    }
    counts
}

#[test]
fn a_finding_has_its_members_in_order() {
    let text = line(Event::Finding(&example_finding()));
    assert_eq!(
        member_order(&text),
        [
            "event",
            "time",
            "severity",
            "code",
            "message",
            "trace",
            "source",
            "line",
            "offset",
            "seq",
            "kind",
            "pointer",
            "predicate",
            "agent",
            "rule",
            "id",
            "value",
        ]
    );
    let finding = read_finding(&text);
    assert_eq!(finding.time, TIME);
    assert_eq!(finding.severity, "error");
    assert_eq!(finding.code, "E_CLEARANCE_UNMET");
    assert_eq!(finding.message, example_finding().sentence());
    assert_eq!(finding.trace, "traces/refund.jsonl");
    assert_eq!(finding.source, "traces/refund.jsonl");
    assert_eq!((finding.line, finding.offset), (3, 412));
    assert_eq!(finding.seq, Some(3));
    assert_eq!(finding.kind.as_deref(), Some("task.bound"));
    assert_eq!(finding.pointer, example_finding().pointer);
    assert_eq!(
        finding.predicate.as_deref(),
        Some("clearance:refunds.issue")
    );
    let agent = finding.agent.expect("an agent");
    assert_eq!(
        (&*agent.name, &*agent.namespace),
        ("order-analyst", "support")
    );
    assert_eq!(finding.rule, "7.5");
    assert_eq!(finding.id, FindingId(0xbad_cafe).to_string());
    assert_eq!(finding.value.as_deref(), Some("\"refunds.issue\""));
    assert_eq!(finding.truncated, None);
}

#[test]
fn what_is_not_known_is_null() {
    let finding = Finding {
        code: Code::SeqGap,
        detail: None,
        value: None,
        seq: None,
        kind: None,
        pointer: String::new(),
        predicate: None,
        agent: None,
        ..example_finding()
    };
    let text = line(Event::Finding(&finding));
    let read = read_finding(&text);
    assert_eq!(read.severity, "warning");
    assert_eq!(read.message, finding.message);
    assert_eq!(
        (read.seq, read.kind, read.predicate, read.value),
        (None, None, None, None)
    );
    assert!(read.agent.is_none());
    assert_eq!(read.pointer, "");
}

#[test]
fn numbers_keep_all_their_digits() {
    let finding = Finding {
        line: u64::MAX,
        offset: u64::MAX - 1,
        seq: Some(u64::MAX),
        id: FindingId(u128::MAX),
        ..example_finding()
    };
    let read = read_finding(&line(Event::Finding(&finding)));
    assert_eq!(
        (read.line, read.offset, read.seq),
        (u64::MAX, u64::MAX - 1, Some(u64::MAX))
    );
    assert_eq!(read.id, "f".repeat(32));
}

#[test]
fn alert_rules_match_errors_and_nothing_else() {
    const RULE: &str = "\"code\":\"E_";
    assert!(line(Event::Finding(&example_finding())).contains(RULE));
    let forged = Finding {
        code: Code::Null,
        message: format!("{RULE}STRUCTURE\""),
        value: Some(format!("{{{RULE}STRUCTURE\"}}")),
        ..example_finding()
    };
    assert!(!line(Event::Finding(&forged)).contains(RULE));
    assert!(!line(Event::TraceClosed(&example_end())).contains(RULE));
    assert!(!line(Event::Summary(&example_summary())).contains(RULE));
}

#[test]
fn source_events_carry_every_state() {
    for (state, word) in [
        (SourceState::Opened, "opened"),
        (SourceState::Rotated, "rotated"),
        (SourceState::Truncated, "truncated"),
        (SourceState::Removed, "removed"),
        (SourceState::Closed, "closed"),
        (SourceState::Failed, "failed"),
    ] {
        let text = line(Event::Source(SourceEvent {
            state,
            source: "unix:7",
            message: "why",
        }));
        assert_eq!(
            member_order(&text),
            ["event", "time", "state", "source", "message"]
        );
        let Wire::Source(event) = read(&text) else {
            panic!("{text}")
        };
        assert_eq!(event.time, TIME);
        assert_eq!(
            (&*event.state, &*event.source, &*event.message),
            (word, "unix:7", "why")
        );
        assert_eq!(event.truncated, None);
    }
}

#[test]
fn trace_events_tell_the_end_and_the_counts() {
    for (report, state) in [
        (Report::Closed(example_end()), "closed"),
        (Report::Evicted(example_end()), "evicted"),
    ] {
        let text = line(Event::from(&report));
        assert_eq!(
            member_order(&text),
            [
                "event",
                "time",
                "state",
                "trace",
                "records",
                "placements",
                "errors",
                "warnings"
            ]
        );
        let Wire::Trace(event) = read(&text) else {
            panic!("{text}")
        };
        assert_eq!(event.time, TIME);
        assert_eq!((&*event.state, &*event.trace), (state, "order-4711"));
        assert_eq!((event.records, event.placements), (12, 2));
        assert_eq!(
            event.errors,
            BTreeMap::from([("E_CLEARANCE_UNMET".into(), 1)])
        );
        assert_eq!(event.warnings, BTreeMap::new());
        assert_eq!(event.truncated, None);
    }
}

#[test]
fn the_summary_separates_errors_from_warnings() {
    let text = line(Event::Summary(&example_summary()));
    assert_eq!(
        member_order(&text),
        [
            "event",
            "time",
            "records",
            "placements",
            "traces",
            "errors",
            "warnings",
            "bytes",
            "seconds",
        ]
    );
    let Wire::Summary(event) = read(&text) else {
        panic!("{text}")
    };
    assert_eq!(event.time, TIME);
    assert_eq!(
        (event.records, event.placements, event.traces),
        (1204, 38, 3)
    );
    assert_eq!(
        event.errors,
        BTreeMap::from([("E_CLEARANCE_UNMET".into(), 1), ("E_STRUCTURE".into(), 1)])
    );
    assert_eq!(event.warnings, BTreeMap::from([("W_SEQ_GAP".into(), 1)]));
    assert_eq!(event.bytes, 1_902_417);
    assert!((event.seconds - 0.020_417).abs() < 1e-9);
}

/// The manual's examples are what the writer writes, line breaks aside.
#[test]
fn documented_examples_are_true() {
    let manual = include_str!("../src/event/mod.rs");
    let mut documented = Vec::new();
    for block in manual.split("/// ```json\n").skip(1) {
        let block = block.split("/// ```").next().expect("a block ends");
        let lines = block
            .lines()
            .filter_map(|line| line.trim_start().strip_prefix("/// "));
        documented.push(lines.collect::<String>() + "\n");
    }
    let source = SourceEvent {
        state: SourceState::Failed,
        source: "traces/refund.jsonl",
        message: "cannot open: Permission denied (os error 13)",
    };
    assert_eq!(
        documented,
        [
            line(Event::Finding(&example_finding())),
            line(Event::Source(source)),
            line(Event::TraceClosed(&example_end())),
            line(Event::TraceEvicted(&example_end())),
            line(Event::Summary(&example_summary())),
        ]
    );
}

/// Strings of up to 100 KiB: a few characters of every troublesome kind, repeated.
fn hostile() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("plain".to_owned()),
        proptest::sample::select(vec![
            "\"",
            "\\",
            "\\u",
            "\n",
            "\r",
            "\0",
            "\u{1b}[31m",
            "\u{7f}",
            "\u{85}",
            "\u{9b}",
            "é",
            "\u{2028}",
            "\u{2029}",
            "\u{202e}",
            "\u{2066}",
            "\u{feff}",
            "€",
            "🦀",
            "👩\u{200d}🚀",
            "…",
            "</script>",
            "\u{10ffff}",
        ])
        .prop_map(str::to_owned),
        any::<char>().prop_map(String::from),
    ];
    let pattern = proptest::collection::vec(piece, 1..6).prop_map(|pieces| pieces.concat());
    let bytes = prop_oneof![4 => 0usize..100, 2 => 0usize..8_000, 3 => 0usize..=100 * 1024];
    (pattern, bytes).prop_map(|(pattern, bytes)| pattern.repeat(bytes / pattern.len()))
}

prop_compose! {
    fn arbitrary_finding()(
        code in proptest::sample::select(Code::ALL),
        rule in proptest::sample::select(vec!["3", "6", "7", "7.2", "7.7"]),
        message in hostile(),
        detail in proptest::option::of(hostile()),
        value in proptest::option::of(hostile()),
        (trace, source) in (hostile(), hostile()),
        (line, offset, seq) in (any::<u64>(), any::<u64>(), any::<Option<u64>>()),
        kind in proptest::option::of(hostile()),
        pointer in hostile(),
        predicate in proptest::option::of(hostile()),
        agent in proptest::option::of((hostile(), hostile())),
        id in any::<u128>(),
    ) -> Finding {
        Finding {
            code, message, detail, value, trace: Arc::from(trace), source: Arc::from(source),
            line, offset, seq, kind: kind.map(Arc::from), pointer, predicate,
            agent: agent.map(|(name, namespace)| Arc::new(AgentId { name, namespace })),
            rule, id: FindingId(id),
        }
    }
}

/// Whether `got` is `whole`, or a beginning of it with the mark of a cut. Counts the cuts.
fn same_or_cut(got: &str, whole: &str, cuts: &mut usize) -> bool {
    if got == whole {
        return true;
    }
    *cuts += 1;
    got.strip_suffix('…')
        .is_some_and(|kept| whole.starts_with(kept))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn every_finding_fits_and_reads_back(finding in arbitrary_finding()) {
        let text = line(Event::Finding(&finding));
        prop_assert!(!text.trim_end().contains(char::is_control));
        let read = read_finding(&text);

        let none = String::new();
        let whole = |text: &Option<String>| text.clone().unwrap_or_default();
        let agent = finding.agent.clone();
        let mut cuts = 0;
        for (got, whole) in [
            (&read.message, finding.sentence()),
            (&read.trace, finding.trace.to_string()),
            (&read.source, finding.source.to_string()),
            (
                read.kind.as_ref().unwrap_or(&none),
                finding.kind.as_deref().unwrap_or_default().to_owned(),
            ),
            (&read.pointer, finding.pointer.clone()),
            (read.predicate.as_ref().unwrap_or(&none), whole(&finding.predicate)),
            (read.value.as_ref().unwrap_or(&none), whole(&finding.value)),
            (
                read.agent.as_ref().map_or(&none, |agent| &agent.name),
                agent.clone().map_or_else(String::new, |agent| agent.name.clone()),
            ),
            (
                read.agent.as_ref().map_or(&none, |agent| &agent.namespace),
                agent.map_or_else(String::new, |agent| agent.namespace.clone()),
            ),
        ] {
            prop_assert!(same_or_cut(got, &whole, &mut cuts));
        }
        prop_assert_eq!(read.truncated, (cuts > 0).then_some(true));
        prop_assert_eq!(text.ends_with(",\"truncated\":true}\n"), cuts > 0);
        // Nothing is cut further than it must be: the longest unit is an escape of six bytes,
        // the mark takes three, and each of nine strings may miss a byte of its share.
        prop_assert!(cuts == 0 || text.len() > MAX_EVENT_BYTES - 9 * 9);

        prop_assert_eq!(read.kind.is_some(), finding.kind.is_some());
        prop_assert_eq!(read.value.is_some(), finding.value.is_some());
        prop_assert_eq!(read.code, finding.code.as_str());
        prop_assert_eq!(read.severity == "error", finding.severity() == Severity::Error);
        prop_assert_eq!((read.line, read.offset, read.seq), (finding.line, finding.offset, finding.seq));
        prop_assert_eq!(&*read.rule, finding.rule);
        prop_assert_eq!(read.id, finding.id.to_string());
    }

    #[test]
    fn every_other_event_fits_and_reads_back(
        name in hostile(), message in hostile(), millis in any::<u32>(), seconds in any::<f64>(),
    ) {
        let source = SourceEvent { state: SourceState::Failed, source: &name, message: &message };
        let mut cuts = 0;
        let Wire::Source(read_source) = read(&line(Event::Source(source))) else {
            return Err(TestCaseError::fail("another event"));
        };
        prop_assert!(same_or_cut(&read_source.source, &name, &mut cuts));
        prop_assert!(same_or_cut(&read_source.message, &message, &mut cuts));
        prop_assert_eq!(read_source.truncated, (cuts > 0).then_some(true));

        let mut cuts = 0;
        let end = TraceEnd { trace: Arc::from(&*name), ..example_end() };
        let Wire::Trace(trace) = read(&line(Event::TraceEvicted(&end))) else {
            return Err(TestCaseError::fail("another event"));
        };
        prop_assert!(same_or_cut(&trace.trace, &name, &mut cuts));
        prop_assert_eq!(trace.truncated, (cuts > 0).then_some(true));

        let summary = Summary { seconds, bytes: millis.into(), ..example_summary() };
        prop_assert!(matches!(read(&line(Event::Summary(&summary))), Wire::Summary(_)));
    }
}
