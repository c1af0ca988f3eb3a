//! `check capabilities` and `--protocol ag-ui`, as users call them.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;
use tracecheck::explain::ExampleKind;
use tracecheck::{Code, explanation};

use crate::program::{Ran, Running, command, run};

const STREAM: &str = concat!(
    r#"{"type":"RUN_STARTED","threadId":"t","runId":"r"}"#,
    "\n",
    r#"{"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"f"}"#,
    "\n",
    r#"{"type":"TOOL_CALL_END","toolCallId":"c"}"#,
    "\n",
    r#"{"type":"RUN_FINISHED","threadId":"t","runId":"r"}"#,
    "\n",
);

const NO_TOOLS: &str = r#"{"tools":{"supported":false}}"#;

struct Files(TempDir);

impl Files {
    fn new() -> Self {
        Files(tempfile::tempdir().expect("temporary directory"))
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.path().join(name);
        fs::write(&path, text).expect("written");
        path
    }
}

/// Holds [`STREAM`] against a declaration.
fn hold(declaration: &str, more: &[&str]) -> Ran {
    let files = Files::new();
    let path = files.file("agent.json", declaration);
    let mut arguments = vec![
        "--protocol",
        "ag-ui",
        "--declaration",
        path.to_str().expect("UTF-8"),
    ];
    arguments.extend(more);
    run(arguments, STREAM)
}

fn codes(findings: &[Value]) -> Vec<(&str, &str)> {
    let text = |value: &'_ Value| value.as_str().expect("a string").to_owned();
    let pair = |finding: &Value| (text(&finding["code"]), text(&finding["pointer"]));
    findings
        .iter()
        .map(pair)
        .map(|(c, p)| (leak(c), leak(p)))
        .collect()
}

fn leak(text: String) -> &'static str {
    text.leak()
}

#[test]
fn each_layer_has_its_findings_and_status() {
    let document =
        r#"{"tools":{"supported":true,"items":[]},"multiAgent":{"subAgents":[]},"custom":{"x":1}}"#;
    let consumer = run(["check", "capabilities"], document);
    assert_eq!(
        (consumer.status, &*consumer.stdout, &*consumer.stderr),
        (Some(0), "", "")
    );
    let strict = run(["check", "capabilities", "--strict"], document);
    assert_eq!(strict.status, Some(1));
    let finding: Value = serde_json::from_str(&strict.stdout).expect("one finding");
    assert_eq!(finding["code"], "E_DECLARATION_UNRECOGNISED");
    assert_eq!(finding["pointer"], "/multiAgent/subAgents");
    assert_eq!(finding["rule"], "error-handling");
    let message = finding["message"].as_str().expect("a string");
    assert!(message.ends_with("did you mean `subagents`?"), "{message}");

    let malformed = run(
        ["check", "capabilities"],
        r#"{"tools":{"supported":"yes"},"state":null}"#,
    );
    assert_eq!(malformed.status, Some(1));
    let findings: Vec<Value> = malformed
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let expected = ["/tools/supported", "/state"].map(|p| ("E_DECLARATION_MALFORMED", p));
    assert_eq!(codes(&findings), expected);

    let no_json = run(["check", "capabilities", "--format", "text"], "tools");
    assert_eq!(no_json.status, Some(1));
    assert!(
        no_json
            .stdout
            .starts_with("error[E_DECLARATION_MALFORMED]: the document is not")
    );
    let missing = run(["check", "capabilities", "/nowhere/agent.json"], "");
    assert_eq!(missing.status, Some(2));
}

#[test]
fn a_usable_document_is_printed_with_all_that_is_in_it() {
    let document = " { \"z\" : null,\n\"custom\":{ \"n\" : 123456789012345678901234567890,\"\\u0061\":null ,\"n\":1e400 },\
                     \"identity\" : {\"metadata\":{\"b\":1,\"a\":[ ]},\"name\":\"a \\\" b\"} }\n";
    let printed = "{\"z\":null,\"custom\":{\"n\":123456789012345678901234567890,\"\\u0061\":null,\"n\":1e400},\
                   \"identity\":{\"metadata\":{\"b\":1,\"a\":[]},\"name\":\"a \\\" b\"}}\n";
    let usable = run(["check", "capabilities", "--print"], document);
    assert_eq!(
        (usable.status, &*usable.stdout, &*usable.stderr),
        (Some(0), printed, "")
    );
    let again = run(["check", "capabilities", "--print"], printed);
    assert_eq!(again.stdout, printed);

    let unusable = run(["check", "capabilities", "--print", "--strict"], document);
    assert_eq!((unusable.status, &*unusable.stdout), (Some(1), ""));
    assert!(
        unusable.stderr.contains("E_DECLARATION_UNRECOGNISED"),
        "{unusable:?}"
    );
}

#[test]
fn an_a3_declaration_is_pointed_to_its_check() {
    let a3 =
        r#"{"v":"1.0","agent":{"name":"a","namespace":"n"},"capabilities":[],"clearances":[]}"#;
    let consumer = run(["check", "capabilities"], a3);
    assert_eq!((consumer.status, &*consumer.stdout), (Some(0), ""));
    assert!(
        consumer.stderr.contains("tracecheck check declaration"),
        "{consumer:?}"
    );
    let strict = run(["check", "capabilities", "--strict"], a3);
    assert!(
        strict.stdout.contains("`tracecheck check declaration`"),
        "{strict:?}"
    );
    let held = hold(a3, &[]);
    assert_eq!((held.status, held.findings().len()), (Some(0), 0));
    assert!(held.stderr.contains("a declaration of A3"), "{held:?}");
}

#[test]
fn contradictions_are_warnings() {
    let ran = hold(NO_TOOLS, &[]);
    assert_eq!((ran.status, &*ran.stderr), (Some(0), ""));
    let findings = ran.findings();
    assert_eq!(codes(&findings), [("W_CAPABILITY", "/tools/supported")]);
    let finding = &findings[0];
    assert_eq!(
        (&finding["line"], &finding["severity"]),
        (&2.into(), &"warning".into())
    );
    assert_eq!(
        (&finding["trace"], &finding["source"]),
        (&"r".into(), &"stdin".into())
    );
    assert_eq!(
        (&finding["kind"], &finding["value"]),
        (&"TOOL_CALL_START".into(), &"false".into())
    );
    let summary = &ran.events_of("summary")[0];
    assert_eq!(
        (&summary["records"], &summary["traces"]),
        (&4.into(), &1.into())
    );
    assert_eq!(summary["warnings"]["W_CAPABILITY"], 1);

    assert_eq!(hold(NO_TOOLS, &["--fail-on", "warning"]).status, Some(1));
    assert_eq!(hold("{}", &["--fail-on", "warning"]).status, Some(0));
    let silent = hold(NO_TOOLS, &["--no-advisories", "--fail-on", "warning"]);
    assert_eq!((silent.status, silent.findings().len()), (Some(0), 0));
    let text = hold(NO_TOOLS, &["--format", "text", "--trace-events"]);
    for part in [
        "warning[W_CAPABILITY]: TOOL_CALL_START contradicts the declared `tools.supported: false`",
        "  --> stdin:2 (run r, TOOL_CALL_START)\n",
        "note: run `r` closed after 4 events: 1 warning\n",
        "checked 4 events of 1 run (",
    ] {
        assert!(text.stdout.contains(part), "{part}\n{}", text.stdout);
    }
}

#[test]
fn a_declaration_that_cannot_be_used_stops_nothing_and_is_said_once() {
    let malformed = hold(r#"{"tools":{"supported":false},"state":[]}"#, &[]);
    assert_eq!(malformed.status, Some(1));
    let findings = malformed.findings();
    assert_eq!(codes(&findings), [("E_DECLARATION_MALFORMED", "/state")]);
    assert!(
        findings[0]["source"]
            .as_str()
            .is_some_and(|s| s.ends_with("agent.json"))
    );
    assert_eq!(malformed.stderr.matches("declared nothing").count(), 1);
    assert_eq!(malformed.events_of("summary")[0]["records"], 4);
    let ignored = hold(r#"{"state":[]}"#, &["--fail-on", "never"]);
    assert_eq!(ignored.status, Some(0));

    let unreadable = run(
        [
            "--protocol",
            "ag-ui",
            "--declaration",
            "/nowhere/agent.json",
        ],
        STREAM,
    );
    assert_eq!(
        (unreadable.status, unreadable.findings().len()),
        (Some(2), 0)
    );
    assert_eq!(unreadable.stderr.matches("declared nothing").count(), 1);
    assert_eq!(unreadable.events_of("summary")[0]["records"], 4);

    let absent = run(["--protocol", "ag-ui"], STREAM);
    assert_eq!((absent.status, absent.findings().len()), (Some(0), 0));
    assert_eq!(absent.stderr.matches("declared nothing").count(), 1);
}

#[test]
fn a_followed_stream_is_told_of_as_it_comes() {
    let files = Files::new();
    let path = files.file("agent.json", NO_TOOLS);
    let path = path.to_str().expect("UTF-8");
    for (before, after) in [("", "\n"), ("data: ", "\n\n"), ("data: ", "\r\r")] {
        let mut running = Running::follow(["--protocol", "ag-ui", "--declaration", path]);
        running.write(format!(
            "{before}{{\"type\":\"RUN_STARTED\",\"runId\":\"r\"}}{after}"
        ));
        running.write(format!("{before}{{\"type\":\"TOOL_CALL_START\"}}{after}"));
        let finding = running.line_with("\"finding\"");
        assert!(finding.contains("\"W_CAPABILITY\""), "{finding}");
        running.close();
        assert_eq!(running.end().status, Some(0));
    }
}

#[test]
fn what_is_no_event_is_an_error() {
    let files = Files::new();
    let path = files.file("events.sse", "data: [DONE]\n\nid: 1\ndata: {\"typ\":1}\n\n");
    let ran = run(
        [path.as_os_str(), "--protocol".as_ref(), "ag-ui".as_ref()],
        "",
    );
    assert_eq!(ran.status, Some(1));
    let findings = ran.findings();
    assert_eq!(
        codes(&findings),
        [("E_STRUCTURE", ""), ("E_STRUCTURE", "/type")]
    );
    assert!(findings.iter().all(|finding| finding["seq"].is_null()));
    assert_eq!(
        (&findings[0]["line"], &findings[1]["line"]),
        (&1.into(), &4.into())
    );
    let long = run(
        ["--protocol", "ag-ui", "--max-record-bytes", "64"],
        format!("{{\"type\":\"{}\"}}\n", "x".repeat(99)),
    );
    assert_eq!(codes(&long.findings()), [("E_STRUCTURE", "")]);
}

#[test]
fn options_of_the_other_protocol_are_refused() {
    for arguments in [
        &["--declaration", "agent.json"][..],
        &["--protocol", "a3", "--declaration", "agent.json"],
        &["--protocol", "ag-ui", "--trace-key", "/runId"],
        &["--protocol", "ag-ui", "--end-kind", "RUN_FINISHED"],
        &["--protocol", "ag-ui", "--trace-idle", "5m", "--follow"],
        &["--protocol", "ag-ui", "--max-traces", "3"],
        &["--protocol", "ag-ui", "--claim-pattern", "x"],
        &["--protocol", "ag-ui", "--declaration", "-"],
        &["--protocol", "agui"],
    ] {
        let ran = run(arguments, STREAM);
        assert_eq!((ran.status, &*ran.stdout), (Some(2), ""), "{arguments:?}");
    }
    let files = Files::new();
    let declaration = files.file("agent.json", NO_TOOLS);
    let config = files.file(
        "tc.toml",
        &format!("protocol = \"ag-ui\"\ndeclaration = {declaration:?}\n"),
    );
    let ran = run(["--config".as_ref(), config.as_os_str()], STREAM);
    assert_eq!(
        codes(&ran.findings()),
        [("W_CAPABILITY", "/tools/supported")]
    );
}

#[test]
fn each_explanation_has_an_example_of_its_code() {
    let files = Files::new();
    for &code in Code::ALL {
        let explanation = explanation(code);
        let mut arguments: Vec<String> = match explanation.example_kind {
            ExampleKind::Trace => continue,
            ExampleKind::Declaration => vec!["check".into(), "capabilities".into()],
            ExampleKind::Events { declaration } => {
                let path = files.file("agent.json", declaration);
                let path = path.to_str().expect("UTF-8").to_owned();
                vec![
                    "--protocol".into(),
                    "ag-ui".into(),
                    "--declaration".into(),
                    path,
                ]
            }
        };
        arguments.extend(
            explanation
                .example_options
                .iter()
                .map(|&option| option.to_owned()),
        );
        let ran = run(arguments, explanation.example);
        let found: Vec<Value> = ran
            .stdout
            .lines()
            .map(|line| serde_json::from_str(line).expect("JSON"))
            .filter(|event: &Value| event["event"] == "finding")
            .collect();
        assert!(!found.is_empty(), "{code}");
        assert!(
            found.iter().all(|finding| finding["code"] == code.as_str()),
            "{code}"
        );
    }
}

/// Said of the terminal that a person copies it to.
#[test]
fn the_command_under_an_example_works() {
    if Command::new("bash").arg("-c").arg("true").status().is_err() {
        return;
    }
    for code in [
        "E_DECLARATION_MALFORMED",
        "E_DECLARATION_UNRECOGNISED",
        "W_CAPABILITY",
    ] {
        let text = run(["explain", code], "").stdout;
        let (_, rest) = text.split_once("\n  tracecheck explain ").expect(code);
        let (rest, _) = rest.split_once("\n\n").expect(code);
        let example = format!("tracecheck explain {rest}");
        let program = command::<&str>([]);
        let dir = std::path::Path::new(program.get_program())
            .parent()
            .expect("a directory");
        let path = format!("{}:{}", dir.display(), std::env::var("PATH").expect("set"));
        let output = Command::new("bash")
            .arg("-c")
            .arg(&example)
            .env("PATH", path)
            .output();
        let output = output.expect("bash runs");
        assert!(
            String::from_utf8_lossy(&output.stdout).contains(code),
            "{example}\n{output:?}"
        );
    }
}
