//! One bad member never hides another's error (R6): each rule's error stays, whatever member
//! beside those that the rule reads is broken, and however.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::{assert_agrees, verdicts, verify_in_pieces};

/// A trace that breaks one rule in its last record.
struct Case {
    code: &'static str,
    pointer: &'static str,
    predicate: Option<&'static str>,
    records: Vec<Value>,
    /// What the rule reads of the last record, as JSON Pointers below `/content`.
    reads: &'static [&'static str],
}

const SCHEDULING: &str = "/content/scheduling";

/// Everything that can be asked for and declared, all of it in order.
fn placement() -> Value {
    json!({
        "requirements": {
            "v": "1.0",
            "capabilities": [{"name": "a.b", "version": 1}, {"name": "a.c", "version": 2}],
            "clearances": ["c.a", "c.b"],
            "tools": ["t", "u"],
            "residency": "eu",
            "model": {"latency_class": "batch"},
            "session": "s",
            "agentRef": {"name": "ann"},
            "exclude": ["bob", {"name": "cat"}],
        },
        "declaration": {
            "v": "1.0",
            "agent": {"name": "ann", "namespace": "n"},
            "capabilities": [
                {"name": "a.b", "version": 1, "description": "d"},
                {"name": "a.c", "version": 2, "inputs": {}},
            ],
            "clearances": ["c.a", "c.b"],
            "residency": ["eu", "us"],
            "tools": ["t", "u"],
            "model": {"latency_class": "batch", "cost_ceiling_usd": "1.5"},
        },
        "candidates": ["ann", "bob"],
        "filters_passed": [
            "capability:a.b/1", "capability:a.c/2", "clearance:c.a", "clearance:c.b", "tool:t",
            "tool:u", "residency:eu", "model.latency_class:batch", "agentRef:ann",
            "anti-affinity:bob", "anti-affinity:cat",
        ],
        "filters_failed": [
            {"candidate": "bob", "predicate": "anti-affinity:bob"},
            {"candidate": "bob", "predicate": "tool:t"},
        ],
        "scores": {"ann": {"load": 0.5}},
        "route": "r",
        "timings": {},
    })
}

/// The story of a placement, with `change` made to its last record's content.
fn story(change: impl FnOnce(&mut Value)) -> Vec<Value> {
    let scheduling = placement();
    let agent = scheduling["declaration"]["agent"].clone();
    let mut last = json!({"scheduling": scheduling, "resumed": false});
    let submitted = json!({"requirements": last["scheduling"]["requirements"]});
    change(&mut last);
    vec![
        json!({"seq": 1, "kind": "task.submitted", "content": submitted}),
        json!({"seq": 2, "kind": "task.admitted", "content": {"agent": agent}}),
        json!({"seq": 3, "kind": "task.bound", "content": last}),
    ]
}

fn unmet(
    code: &'static str,
    pointer: &'static str,
    predicate: &'static str,
    reads: &'static [&'static str],
    change: impl FnOnce(&mut Value),
) -> Case {
    Case {
        code,
        pointer,
        predicate: Some(predicate),
        records: story(|content| change(&mut content["scheduling"]["declaration"])),
        reads,
    }
}

fn unmet_cases() -> Vec<Case> {
    vec![
        unmet(
            "E_CAPABILITY_UNMET",
            "/content/scheduling/requirements/capabilities/1",
            "capability:a.c/2",
            &[
                "/scheduling/requirements/capabilities/1",
                "/scheduling/declaration/capabilities",
            ],
            |declaration| declaration["capabilities"][1]["version"] = 3.into(),
        ),
        unmet(
            "E_CLEARANCE_UNMET",
            "/content/scheduling/requirements/clearances/0",
            "clearance:c.a",
            &[
                "/scheduling/requirements/clearances/0",
                "/scheduling/declaration/clearances",
            ],
            |declaration| declaration["clearances"] = json!(["c.b"]),
        ),
        unmet(
            "E_TOOL_UNMET",
            "/content/scheduling/requirements/tools/1",
            "tool:u",
            &[
                "/scheduling/requirements/tools/1",
                "/scheduling/declaration/tools",
            ],
            |declaration| declaration["tools"] = json!(["t", "v"]),
        ),
        unmet(
            "E_RESIDENCY_UNMET",
            "/content/scheduling/requirements/residency",
            "residency:eu",
            &[
                "/scheduling/requirements/residency",
                "/scheduling/declaration/residency",
            ],
            |declaration| declaration["residency"] = json!(["us"]),
        ),
        unmet(
            "E_MODEL_UNMET",
            "/content/scheduling/requirements/model/latency_class",
            "model.latency_class:batch",
            &[
                "/scheduling/requirements/model/latency_class",
                "/scheduling/declaration/model/latency_class",
            ],
            |declaration| declaration["model"]["latency_class"] = "interactive".into(),
        ),
        unmet(
            "E_AGENTREF_UNMET",
            "/content/scheduling/requirements/agentRef",
            "agentRef:ann",
            &[
                "/scheduling/requirements/agentRef",
                "/scheduling/declaration/agent/name",
            ],
            |declaration| declaration["agent"]["name"] = "dan".into(),
        ),
        unmet(
            "E_ANTIAFFINITY_UNMET",
            "/content/scheduling/requirements/exclude/1",
            "anti-affinity:cat",
            &[
                "/scheduling/requirements/exclude/1",
                "/scheduling/declaration/agent/name",
            ],
            |declaration| declaration["agent"]["name"] = "cat".into(),
        ),
    ]
}

fn explanation(
    pointer: &'static str,
    reads: &'static [&'static str],
    change: impl FnOnce(&mut Value),
) -> Case {
    Case {
        code: "E_EXPLANATION",
        pointer,
        predicate: None,
        records: story(change),
        reads,
    }
}

fn explanation_cases() -> Vec<Case> {
    let resumed = |content: &mut Value| {
        content["resumed"] = true.into();
        content["scheduling"]["recorded_in"] = json!({"kind": "task.bound", "seq": 3});
    };
    vec![
        explanation(
            "/content/scheduling/filters_passed",
            // A whole set is compared; all that it is made of must be readable.
            &["/scheduling/requirements", "/scheduling/filters_passed"],
            |content| content["scheduling"]["filters_passed"] = json!(["tool:t"]),
        ),
        explanation(
            "/content/scheduling/filters_failed/1",
            &[
                "/scheduling/declaration/agent/name",
                "/scheduling/filters_failed/1/candidate",
            ],
            |content| content["scheduling"]["filters_failed"][1]["candidate"] = "ann".into(),
        ),
        explanation(
            "/content/scheduling/scores",
            &["/scheduling/declaration/agent/name", "/scheduling/scores"],
            |content| content["scheduling"]["scores"] = json!({"bob": 1}),
        ),
        explanation(
            "/content/resumed",
            &["/resumed", "/scheduling/recorded_in"],
            |content| {
                resumed(content);
                content["resumed"] = false.into();
            },
        ),
        explanation(
            "/content/scheduling/recorded_in/kind",
            &["/scheduling/recorded_in/kind"],
            |content| {
                resumed(content);
                content["scheduling"]["recorded_in"]["kind"] = "task.parked".into();
            },
        ),
        explanation(
            "/content/scheduling/recorded_in/seq",
            &["/scheduling/recorded_in/seq"],
            |content| {
                resumed(content);
                content["scheduling"]["recorded_in"]["seq"] = 2.into();
            },
        ),
    ]
}

fn cases() -> Vec<Case> {
    let mut cases = vec![
        Case {
            code: "E_DECLARATION_SCOPE",
            pointer: "/content/scheduling/declaration/agent",
            predicate: None,
            records: story(|content| {
                content["scheduling"]["declaration"]["agent"] =
                    json!({"name": "x", "namespace": "y"});
            }),
            // Either half tells; the object must be there.
            reads: &["/scheduling/declaration/agent"],
        },
        Case {
            code: "E_REQUIREMENTS_MISMATCH",
            pointer: "/content/scheduling/requirements",
            predicate: None,
            records: story(|content| {
                content["scheduling"]["requirements"]["tools"] = json!(["t"]);
            }),
            reads: &[
                "/scheduling/requirements/capabilities",
                "/scheduling/requirements/clearances",
                "/scheduling/requirements/tools",
                "/scheduling/requirements/residency",
                "/scheduling/requirements/model",
                "/scheduling/requirements/agentRef",
                "/scheduling/requirements/exclude",
            ],
        },
        Case {
            code: "E_REJECTION_REASON",
            pointer: "/content/reason",
            predicate: None,
            records: vec![json!({
                "seq": 1,
                "kind": "task.rejected",
                "content": {"reason": {"why": ["No agent available"]}, "code": 7, "scheduling": {}},
            })],
            reads: &["/reason"],
        },
    ];
    cases.extend(unmet_cases());
    cases.extend(explanation_cases());
    cases
}

/// Pointers to everything in a value, itself left out.
fn pointers(value: &Value, at: &str, into: &mut Vec<String>) {
    let children: Vec<(String, &Value)> = match value {
        Value::Object(members) => members.iter().map(|(k, v)| (k.clone(), v)).collect(),
        Value::Array(entries) => entries
            .iter()
            .enumerate()
            .map(|(i, v)| (i.to_string(), v))
            .collect(),
        _ => Vec::new(),
    };
    for (token, child) in children {
        let at = format!("{at}/{token}");
        pointers(child, &at, into);
        into.push(at);
    }
}

fn contains(outer: &str, inner: &str) -> bool {
    inner
        .strip_prefix(outer)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Ways to break a member: values that some member cannot have, and its name twice. An entry of a
/// list has no name, and is 0 then.
const BREAKS: [&str; 7] = [
    "null",
    "-1.5",
    "\"\"",
    "[null]",
    "{\"a\":0}",
    "true",
    "TWICE",
];

/// The record's text with the value at `pointer` broken.
fn broken(record: &Value, pointer: &str, how: &str) -> String {
    let mut record = record.clone();
    *record.pointer_mut(pointer).expect("it is there") = "@@".into();
    let text = record.to_string();
    let name = pointer.rsplit('/').next().expect("a token");
    let is_entry = name.parse::<usize>().is_ok();
    let with = match how {
        "TWICE" if is_entry => "0".to_owned(),
        "TWICE" => format!("0,\"{name}\":0"),
        _ => how.to_owned(),
    };
    text.replace("\"@@\"", &with)
}

fn trace(records: &[Value], last: &str) -> String {
    let before: String = records[..records.len() - 1]
        .iter()
        .map(|record| format!("{record}\n"))
        .collect();
    format!("{before}{last}\n")
}

#[test]
fn a_broken_neighbour_hides_no_error() {
    for case in cases() {
        let last = case.records.last().expect("not empty");
        let has_error = |trace: &str| {
            verdicts(&verify_in_pieces([trace.as_bytes()]))
                .iter()
                .any(|verdict| {
                    verdict.code == case.code
                        && verdict.pointer == case.pointer
                        && verdict.predicate.as_deref() == case.predicate
                })
        };
        assert!(
            has_error(&trace(&case.records, &last.to_string())),
            "{} unbroken",
            case.pointer
        );
        let mut places = vec!["/seq".to_owned()];
        pointers(&last["content"], "/content", &mut places);
        let is_read = |place: &str| {
            let place = place.strip_prefix("/content").unwrap_or(place);
            case.reads
                .iter()
                .any(|read| contains(read, place) || contains(place, read))
        };
        let neighbours: Vec<_> = places.iter().filter(|place| !is_read(place)).collect();
        assert!(neighbours.len() > 2, "{}", case.pointer);
        for place in neighbours {
            for how in BREAKS {
                let trace = trace(&case.records, &broken(last, place, how));
                assert!(
                    has_error(&trace),
                    "{} is hidden by {how} at {place}\n{trace}",
                    case.pointer
                );
                assert_agrees(trace.as_bytes(), "as the reference");
            }
        }
    }
}

/// Half of an agent tells of a mismatch where the other half cannot be read.
#[test]
fn half_an_agent_is_compared() {
    for (half, other) in [("name", "namespace"), ("namespace", "name")] {
        let records = story(|content| {
            content["scheduling"]["declaration"]["agent"][half] = "another".into();
        });
        let place = format!("{SCHEDULING}/declaration/agent/{other}");
        for how in BREAKS {
            let trace = trace(&records, &broken(&records[2], &place, how));
            let found = verdicts(&verify_in_pieces([trace.as_bytes()]));
            assert!(
                found.iter().any(|v| v.code == "E_DECLARATION_SCOPE"),
                "{how}: {trace}"
            );
            assert_agrees(trace.as_bytes(), "as the reference");
        }
    }
}

#[test]
fn every_step_has_a_vector_with_a_malformed_neighbour() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("vectors/capability-schema");
    let mut codes = Vec::new();
    for entry in fs::read_dir(dir).expect("vectors") {
        let path = entry.expect("readable").path();
        let name = path
            .file_name()
            .and_then(|name| name.to_str())
            .expect("UTF-8");
        if !(name.starts_with("malformed-neighbour-") && name.ends_with(".expected.json")) {
            continue;
        }
        let text = fs::read_to_string(&path).expect("readable");
        let expected: Value = serde_json::from_str(&text).expect("JSON");
        let findings = expected["findings"].as_array().expect("a list");
        let malformed: Vec<_> = findings
            .iter()
            .filter(|f| f["code"] == "E_STRUCTURE")
            .collect();
        assert!(!malformed.is_empty(), "{name}");
        let beside = findings
            .iter()
            .filter(|f| malformed.iter().any(|m| m["line"] == f["line"]));
        codes.extend(beside.map(|f| f["code"].as_str().expect("a code").to_owned()));
    }
    for (rule, prefix, suffix) in [
        ("R12", "E_DECLARATION_SCOPE", ""),
        ("R13", "E_REQUIREMENTS_MISMATCH", ""),
        ("R14", "E_", "_UNMET"),
        ("R15 and R16", "E_EXPLANATION", ""),
        ("R17", "E_REJECTION_REASON", ""),
    ] {
        let has = |code: &String| code.starts_with(prefix) && code.ends_with(suffix);
        assert!(codes.iter().any(has), "{rule}");
    }
    for name in ["explanation", "resumed"] {
        let path = format!("vectors/capability-schema/malformed-neighbour-{name}.jsonl");
        assert!(
            Path::new(env!("CARGO_MANIFEST_DIR")).join(path).exists(),
            "{name}"
        );
    }
}
