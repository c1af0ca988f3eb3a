//! `--format journald` against a real journal, read with journalctl.

#![cfg(all(feature = "cli", target_os = "linux"))]

#[path = "support/journald.rs"]
mod journald;
#[path = "support/program.rs"]
mod program;

use std::fs;

use journald::Journald;
use program::{Running, run};
use serde_json::Value;

/// A journal; where there can be none the test is passed over, and says why.
macro_rules! journald_or_skip {
    () => {
        match Journald::start() {
            Ok(journald) => journald,
            #[allow(clippy::print_stderr, reason = "for whoever runs the tests")]
            Err(why) => return eprintln!("skipped: {why}"),
        }
    };
}

fn arguments(journald: &Journald) -> [String; 4] {
    let socket = journald.socket().display().to_string();
    ["--format", "journald", "--journal-socket", &socket].map(str::to_owned)
}

const REJECTED: &str =
    r#"{"seq":1,"kind":"task.rejected","content":{"reason":"No agent available"}}"#;

#[test]
fn findings_are_found_by_their_code() {
    let journald = journald_or_skip!();
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("refund.jsonl");
    fs::write(&path, format!("{REJECTED}\nnot JSON\n")).expect("written");
    let path = path.display().to_string();
    let mut all = arguments(&journald).to_vec();
    all.push(path.clone());
    let ran = run(all, "");
    ran.assert_status(1);
    assert_eq!(ran.stdout, "");

    let entries = journald.entries(&["TRACECHECK_CODE=E_REJECTION_REASON"], 1);
    let [entry] = &entries[..] else {
        panic!("{entries:?}")
    };
    for (name, value) in [
        ("SYSLOG_IDENTIFIER", "tracecheck"),
        ("PRIORITY", "3"),
        ("TRACECHECK_EVENT", "finding"),
        ("TRACECHECK_SEVERITY", "error"),
        ("TRACECHECK_SOURCE", &path),
        ("TRACECHECK_LINE", "1"),
        ("TRACECHECK_OFFSET", "0"),
        ("TRACECHECK_SEQ", "1"),
        ("TRACECHECK_KIND", "task.rejected"),
        ("TRACECHECK_POINTER", "/content/reason"),
        ("TRACECHECK_RULE", "7.7"),
    ] {
        assert_eq!(entry[name], value, "{name}");
    }
    let message = entry["MESSAGE"].as_str().expect("text");
    assert!(message.starts_with("E_REJECTION_REASON: "), "{message}");
    assert!(message.ends_with(&format!(" (line 1 of {path})")));
    assert_eq!(
        journald.entries(&["TRACECHECK_CODE=E_STRUCTURE"], 1).len(),
        1
    );
    let summary = &journald.entries(&["TRACECHECK_EVENT=summary"], 1)[0];
    assert_eq!(summary["TRACECHECK_RECORDS"], "2");
    assert_eq!(summary["TRACECHECK_COUNT_E_STRUCTURE"], "1");
    assert_eq!(summary["PRIORITY"], "6");
}

#[test]
fn a_value_that_no_datagram_takes_arrives_whole() {
    let journald = journald_or_skip!();
    let trace = include_str!("../vectors/capability-schema/clearance-not-held.jsonl");
    let clearance = "orders.read";
    assert!(trace.contains(clearance));
    let long = "r".repeat(400_000);
    for clearance_there in [&long, clearance] {
        let trace = trace.replace(clearance, clearance_there);
        run(arguments(&journald), trace).assert_status(1);
    }
    let entries = journald.entries(&["TRACECHECK_CODE=E_CLEARANCE_UNMET"], 2);
    for (entry, clearance) in entries.iter().zip([&long, clearance]) {
        assert!(entry["TRACECHECK_PREDICATE"] == format!("clearance:{clearance}"));
        assert_eq!(entry["TRACECHECK_TRUNCATED"], Value::Null);
    }
}

#[test]
fn a_journal_that_was_restarted_has_everything() {
    let mut journald = journald_or_skip!();
    let mut running = Running::follow(arguments(&journald));
    let bad = "TRACECHECK_CODE=E_STRUCTURE";
    running.write("one\n");
    journald.entries(&[bad], 1);
    journald.stop();
    running.write("two\nthree\n");
    journald.start_again();
    running.write("four\n");
    running.close();
    running.end().assert_status(1);
    let entries = journald.entries(&[bad], 4);
    let lines: Vec<_> = entries
        .iter()
        .map(|entry| entry["TRACECHECK_LINE"].as_str().expect("text"))
        .collect();
    assert_eq!(lines, ["1", "2", "3", "4"]);
}
