//! Streams of random events: against the model, in pieces, in both forms, and beyond the limits.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};
use tracecheck::agui::{Capabilities, EventFramer, MAX_REMEMBERED, RunChecker};
use tracecheck::documents::NamedText;
use tracecheck::{Code, Filter, Finding, Report, Source};

use crate::model::complaints;

pub(crate) fn capabilities(declaration: &str) -> Capabilities {
    let document = NamedText {
        name: "declaration",
        text: declaration.as_bytes(),
    };
    Capabilities::read(document).expect("well-formed")
}

/// The findings in a stream that comes in these pieces.
fn check(capabilities: &Capabilities, pieces: &[&[u8]]) -> Vec<Finding> {
    let source = Source {
        name: Arc::from("stream"),
        origin: 7,
        is_resumable: true,
    };
    let mut framer = EventFramer::new(1 << 20);
    let mut checker = RunChecker::new(capabilities, Filter::default());
    let mut reports = Vec::new();
    for piece in pieces {
        framer.push(piece, |event| checker.check(event, &source, &mut reports));
    }
    framer.finish(|event| checker.check(event, &source, &mut reports));
    checker.end_source(&source, &mut reports);
    reports
        .into_iter()
        .filter_map(Report::into_finding)
        .collect()
}

/// Lines and pointers of complaints.
fn places(findings: &[Finding]) -> Vec<(u64, &str)> {
    let place = |finding: &'_ Finding| {
        assert_eq!(finding.code, Code::Capability, "{finding:?}");
        finding.line
    };
    findings.iter().map(|f| (place(f), &*f.pointer)).collect()
}

pub(crate) fn lines(events: &[Value]) -> String {
    events.iter().map(|event| format!("{event}\n")).collect()
}

pub(crate) fn server_sent(events: &[Value]) -> String {
    events
        .iter()
        .map(|event| format!("data: {event}\n\n"))
        .collect()
}

pub(crate) fn event() -> impl Strategy<Value = Value> {
    let id = || prop::option::weighted(0.9, prop::sample::select(&["a", "b", "c", "é"][..]));
    let kind = prop::sample::select(
        &[
            "RUN_STARTED",
            "RUN_FINISHED",
            "RUN_ERROR",
            "TOOL_CALL_START",
            "TOOL_CALL_START",
            "TOOL_CALL_ARGS",
            "TOOL_CALL_END",
            "TOOL_CALL_END",
            "TOOL_CALL_CHUNK",
            "TOOL_CALL_RESULT",
            "TOOL_CALL_RESULT",
            "STATE_SNAPSHOT",
            "STATE_DELTA",
            "SUBAGENT_STARTED",
            "REASONING_START",
            "REASONING_MESSAGE_START",
            "REASONING_MESSAGE_CONTENT",
            "REASONING_MESSAGE_CHUNK",
            "REASONING_ENCRYPTED_VALUE",
            "TEXT_MESSAGE_CONTENT",
            "NEW_IN_1_1",
        ][..],
    );
    let outcome = prop::sample::select(&["interrupt", "success"][..]);
    let parent = prop::option::of(prop::sample::select(&["m", "n"][..]));
    let (call, message) = (id(), id());
    let more = (any::<bool>(), prop::option::of(0..30_i64), outcome);
    (kind, call, parent, message, more).prop_map(
        |(kind, call, parent, message, (delta, timestamp, outcome))| {
            let mut event = json!({"type": kind, "outcome": {"type": outcome}});
            let mut set = |name: &str, value: Option<Value>| {
                if let Some(value) = value {
                    event[name] = value;
                }
            };
            set("toolCallId", call.map(Into::into));
            set("parentMessageId", parent.map(Into::into));
            set("messageId", message.map(Into::into));
            set("delta", delta.then(|| "x".into()));
            set("timestamp", timestamp.map(Into::into));
            event
        },
    )
}

pub(crate) fn declaration() -> impl Strategy<Value = Value> {
    let flag = || prop::option::of(any::<bool>());
    let flags = prop::collection::vec(flag(), 11);
    (flags, prop::option::of(0..20_u32)).prop_map(|(flags, limit)| {
        const FIELDS: [(&str, &str); 11] = [
            ("tools", "supported"),
            ("tools", "parallelCalls"),
            ("state", "snapshots"),
            ("state", "deltas"),
            ("multiAgent", "supported"),
            ("multiAgent", "delegation"),
            ("reasoning", "supported"),
            ("reasoning", "streaming"),
            ("reasoning", "encrypted"),
            ("humanInTheLoop", "supported"),
            ("humanInTheLoop", "interrupts"),
        ];
        let mut declaration = json!({});
        for ((group, field), flag) in FIELDS.into_iter().zip(flags) {
            if let Some(flag) = flag {
                declaration[group][field] = flag.into();
            }
        }
        if let Some(limit) = limit {
            declaration["execution"]["maxExecutionTime"] = limit.into();
        }
        declaration
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn complaints_are_those_of_the_model(
        declaration in declaration(),
        events in prop::collection::vec(event(), 0..40),
    ) {
        let capabilities = capabilities(&declaration.to_string());
        let findings = check(&capabilities, &[lines(&events).as_bytes()]);
        let expected: Vec<_> = complaints(&declaration, &events)
            .into_iter()
            .map(|(index, pointer)| (index as u64 + 1, pointer))
            .collect();
        prop_assert_eq!(places(&findings), expected);
    }

    #[test]
    fn both_forms_and_every_way_to_cut_give_the_same(
        declaration in declaration(),
        events in prop::collection::vec(event(), 0..12),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
    ) {
        let capabilities = capabilities(&declaration.to_string());
        let (text, sse) = (lines(&events), server_sent(&events));
        let whole = check(&capabilities, &[text.as_bytes()]);
        let sent = check(&capabilities, &[sse.as_bytes()]);
        let doubled: Vec<_> = places(&whole).into_iter().map(|(n, p)| (2 * n - 1, p)).collect();
        prop_assert_eq!(places(&sent), doubled);
        for (text, expected) in [(&text, &whole), (&sse, &sent)] {
            let mut at: Vec<_> = cuts.iter().map(|cut| cut.index(text.len() + 1)).collect();
            at.extend([0, text.len()]);
            at.sort_unstable();
            let pieces: Vec<_> = at.windows(2).map(|w| &text.as_bytes()[w[0]..w[1]]).collect();
            prop_assert_eq!(&check(&capabilities, &pieces), expected);
            let bytes: Vec<_> = text.as_bytes().chunks(1).collect();
            prop_assert_eq!(&check(&capabilities, &bytes), expected);
        }
    }
}

#[test]
fn a_finding_tells_the_run_the_event_and_what_is_declared() {
    let capabilities = capabilities(r#"{"execution":{"maxExecutionTime":1.5e3}}"#);
    let stream = concat!(
        r#"{"type":"RUN_STARTED","runId":"r 1","timestamp":1000}"#,
        "\n",
        r#"{"type":"RUN_FINISHED","timestamp":2501}"#,
        "\n",
    );
    let findings = check(&capabilities, &[stream.as_bytes()]);
    let [finding] = &findings[..] else {
        panic!("{findings:?}");
    };
    assert_eq!((finding.line, finding.offset, finding.seq), (2, 54, None));
    assert_eq!((&*finding.trace, &*finding.source), ("r 1", "stream"));
    assert_eq!(finding.kind.as_deref(), Some("RUN_FINISHED"));
    assert_eq!(finding.pointer, "/execution/maxExecutionTime");
    assert_eq!(finding.value.as_deref(), Some("1.5e3"));
    assert_eq!(
        (finding.rule, &finding.agent, &finding.predicate),
        ("declaring", &None, &None)
    );
    assert!(
        finding.sentence().contains("1501 ms"),
        "{}",
        finding.sentence()
    );
    assert_eq!(check(&capabilities, &[stream.as_bytes()])[0].id, finding.id);
}

#[test]
fn sources_have_runs_of_their_own() {
    let capabilities = capabilities(r#"{"tools":{"parallelCalls":false}}"#);
    let mut checker = RunChecker::new(&capabilities, Filter::default());
    let source = |name: &str| Source {
        name: Arc::from(name),
        origin: 0,
        is_resumable: true,
    };
    let (a, b) = (source("a"), source("b"));
    let mut reports = Vec::new();
    let mut check = |source: &Source, number, text: &str| {
        let line = tracecheck::Line {
            number,
            offset: 0,
            bytes: text.as_bytes(),
            too_long: false,
        };
        checker.check(line, source, &mut reports);
    };
    check(&a, 1, r#"{"type":"TOOL_CALL_START","toolCallId":"x"}"#);
    check(&b, 1, r#"{"type":"TOOL_CALL_START","toolCallId":"y"}"#);
    check(&a, 2, r#"{"type":"TOOL_CALL_END","toolCallId":"x"}"#);
    check(&b, 2, r#"{"type":"TOOL_CALL_START","toolCallId":"z"}"#);
    check(&a, 3, r#"{"type":"TOOL_CALL_START","toolCallId":"w"}"#);
    checker.end_source(&a, &mut reports);
    checker.end_all(&mut reports);
    assert_eq!(checker.totals().traces, 2);
    let ends = reports
        .iter()
        .filter(|report| matches!(report, Report::Closed(_)));
    assert_eq!(ends.count(), 2);
    let findings: Vec<_> = reports
        .into_iter()
        .filter_map(Report::into_finding)
        .collect();
    assert_eq!(findings.len(), 1);
    assert_eq!((&*findings[0].source, findings[0].line), ("b", 2));
}

/// A run of that many calls and messages, none beside or after another of the same.
fn long_run(number: usize) -> Vec<Value> {
    (0..number)
        .flat_map(|n| {
            [
                json!({"type":"TOOL_CALL_START","toolCallId":format!("c{n}"),"parentMessageId":format!("p{n}")}),
                json!({"type":"TOOL_CALL_END","toolCallId":format!("c{n}")}),
                json!({"type":"REASONING_MESSAGE_CONTENT","messageId":format!("m{n}"),"delta":"x"}),
            ]
        })
        .collect()
}

#[test]
fn beyond_the_limit_nothing_is_made_up() {
    let capabilities =
        capabilities(r#"{"tools":{"parallelCalls":false},"reasoning":{"streaming":false}}"#);
    let chunk =
        |call: &str| json!({"type":"TOOL_CALL_CHUNK","toolCallId":call,"parentMessageId":"q"});
    let content =
        |message: &str| json!({"type":"REASONING_MESSAGE_CONTENT","messageId":message,"delta":"x"});
    let start = |call: &str, parent: &str| json!({"type":"TOOL_CALL_START","toolCallId":call,"parentMessageId":parent});
    let last = |events: &[Value]| events.len() as u64;

    let mut events = long_run(MAX_REMEMBERED + 10);
    // Forgotten: neither a second piece, nor calls beside one another.
    events.extend([content("m0"), chunk("c0"), chunk("c1")]);
    assert_eq!(check(&capabilities, &[lines(&events).as_bytes()]), []);
    // Remembered: both are seen.
    events.push(content(&format!("m{}", MAX_REMEMBERED + 9)));
    let piece = last(&events);
    events.push(start("z", &format!("p{}", MAX_REMEMBERED + 9)));
    let call = last(&events);
    let findings = check(&capabilities, &[lines(&events).as_bytes()]);
    assert_eq!(
        places(&findings),
        [
            (piece, "/reasoning/streaming"),
            (call, "/tools/parallelCalls")
        ]
    );

    // One less than the limit, and everything is remembered.
    let mut events = long_run(MAX_REMEMBERED - 1);
    events.extend([content("m0"), start("z", "p0")]);
    let findings = check(&capabilities, &[lines(&events).as_bytes()]);
    assert_eq!(
        places(&findings),
        [
            (last(&events) - 1, "/reasoning/streaming"),
            (last(&events), "/tools/parallelCalls")
        ]
    );
}

#[test]
fn an_event_over_the_limit_is_one_finding() {
    let mut framer = EventFramer::new(64);
    let mut checker = RunChecker::new(&Capabilities::default(), Filter::default());
    let source = Source {
        name: Arc::from("stream"),
        origin: 0,
        is_resumable: true,
    };
    let long = format!(
        "data: {{\"type\":\"RAW\",\ndata: \"x\":\"{}\"}}\n\n",
        "y".repeat(100)
    );
    let mut reports = Vec::new();
    for text in [&long, "data: {\"type\":\"RAW\"}\n\n"] {
        framer.push(text.as_bytes(), |event| {
            checker.check(event, &source, &mut reports)
        });
    }
    let findings: Vec<_> = reports
        .into_iter()
        .filter_map(Report::into_finding)
        .collect();
    assert_eq!(findings.len(), 1);
    assert_eq!((findings[0].code, findings[0].line), (Code::Structure, 1));
    assert_eq!(checker.totals().records, 2);
}
