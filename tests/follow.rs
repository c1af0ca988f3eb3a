//! Following a pipe: every finding at once, and a good end at a signal.

#![cfg(feature = "cli")]

#[path = "support/program.rs"]
mod program;

use std::process::Stdio;

use program::{Ran, Running, command, event, run};
use serde_json::Value;

/// A record with one error, on the line that its `seq` says.
fn faulty(seq: u64) -> String {
    format!("{{\"seq\":{seq}}}\n")
}

const ADMITTED: &str = concat!(
    r#"{"seq":1,"kind":"task.admitted","trace":"t","content":{"agent":{"name":"a","namespace":"n"}}}"#,
    "\n"
);

/// A placement that waits for the one that explains it.
const WAITS: &str = concat!(
    r#"{"seq":2,"kind":"task.bound","trace":"t","content":{"resumed":true,"scheduling":{"#,
    r#""requirements":{},"declaration":{"v":"1","agent":{"name":"a","namespace":"n"},"#,
    r#""capabilities":[],"clearances":[]},"recorded_in":{"kind":"task.bound"}}}}"#,
    "\n"
);

#[test]
fn each_finding_is_written_before_the_next_record_comes() {
    let mut running = Running::follow(["--format=json"]);
    for seq in 1..200 {
        running.write(faulty(seq));
        let finding = event(&running.line_with("\"finding\""));
        assert_eq!(
            (&finding["line"], &finding["seq"]),
            (&seq.into(), &seq.into())
        );
        assert_eq!(running.has_more(), None);
    }
    running.close();
    let ran = running.end();
    ran.assert_status(1);
    assert_eq!(ran.summary()["records"], 199);
}

#[test]
fn each_paragraph_is_written_before_the_next_record_comes() {
    let mut running = Running::follow(["--format=text"]);
    for seq in 1..50 {
        running.write(faulty(seq));
        running.line_with("error[E_STRUCTURE]: ");
        let location = running.line();
        assert_eq!(location, format!("  --> stdin:{seq} (seq {seq})"));
    }
    running.close();
    let ran = running.end();
    ran.assert_status(1);
    assert!(ran.stdout.contains("checked 49 records"), "{}", ran.stdout);
}

#[test]
fn a_record_is_judged_as_soon_as_it_is_complete() {
    let mut running = Running::follow::<&str>([]);
    running.line_with("\"opened\"");
    let (first, second) = (faulty(1), faulty(2));
    let (begin, end) = second.split_at(5);
    running.write(first + begin);
    running.line_with("\"line\":1,");
    assert_eq!(running.has_more(), None);
    running.write(end);
    running.line_with("\"line\":2,");
}

#[test]
fn a_one_shot_run_writes_at_once_too() {
    let mut running = Running::start(command(["-"]));
    for seq in 1..20 {
        running.write(faulty(seq));
        running.line_with(&format!("\"line\":{seq},"));
    }
}

fn state(ran: &Ran) -> Vec<String> {
    let events = ran.events();
    events
        .iter()
        .map(|event| event["event"].as_str().expect("a name").to_owned())
        .collect()
}

#[test]
fn a_signal_ends_a_run_in_good_order() {
    for signal in ["INT", "TERM"] {
        for arguments in [
            &["-"][..],
            &["--follow"],
            &["--follow", "--trace-key=/trace"],
        ] {
            let mut running = Running::start(command(arguments));
            running.write(format!("{ADMITTED}{WAITS}"));
            running.line_with("W_REFERENCE_PENDING");
            // A line that has not ended.
            running.write("{\"seq\":");
            running.signal(signal);
            // The pipe stays open.
            let ran = running.end();
            ran.assert_status(0);
            assert!(
                ran.codes().is_empty(),
                "nothing that waits is decided: {ran:?}"
            );
            assert_eq!(ran.summary()["records"], 2, "{signal} {arguments:?}");
            assert_eq!(state(&ran), ["summary"]);
        }
        let mut running = Running::follow::<&str>([]);
        running.write(faulty(1));
        running.line_with("E_STRUCTURE");
        running.signal(signal);
        running.end().assert_status(1);
    }
}

#[test]
fn a_signal_before_anything_was_read_ends_a_run_in_good_order() {
    for format in ["--format=json", "--format=text"] {
        let mut running = Running::follow([format, "-v"]);
        if format == "--format=json" {
            running.line_with("\"opened\"");
        } else {
            running.write(faulty(1));
            running.line_with("error[");
        }
        running.signal("TERM");
        let ran = running.end();
        assert_eq!(
            ran.status,
            Some(i32::from(format == "--format=text")),
            "{ran:?}"
        );
        assert!(ran.stderr.contains("stopping at a signal"), "{ran:?}");
    }
}

#[test]
fn complete_lines_that_were_read_before_a_signal_are_verified() {
    let mut running = Running::follow(["--fail-on=never"]);
    let text: String = (1..=20_000).map(faulty).collect();
    let written = text.clone();
    std::thread::scope(|scope| {
        let mut stdin = running.take_stdin();
        scope.spawn(move || {
            // It may end before everything is written.
            let _ = std::io::Write::write_all(&mut stdin, written.as_bytes());
            stdin
        });
        let first = event(&running.line_with("\"finding\""));
        assert_eq!(first["line"], 1);
        running.signal("INT");
        let ran = running.end();
        let summary = ran.assert_status(0).summary();
        let bytes = summary["bytes"].as_u64().expect("a number") as usize;
        let lines = text[..bytes].matches('\n').count() as u64;
        assert_eq!(summary["records"].as_u64(), Some(lines));
        assert_eq!(ran.findings().len() as u64 + 1, lines);
    });
}

#[test]
fn the_end_of_input_decides_what_waits() {
    let text = format!("{ADMITTED}{WAITS}");
    for arguments in [
        &["--follow"][..],
        &["--follow", "--trace-key=/trace"],
        &["-"],
    ] {
        let ran = run(arguments, &text);
        assert_eq!(
            ran.assert_status(1).codes(),
            ["W_REFERENCE_PENDING", "E_EXPLANATION"]
        );
        let lines: Vec<_> = ran
            .findings()
            .iter()
            .map(|finding| finding["line"].clone())
            .collect();
        assert_eq!(lines, [2, 2]);
    }
}

#[test]
fn a_trace_that_is_idle_ends_by_itself() {
    let mut running =
        Running::follow(["--trace-key=/trace", "--trace-idle=50ms", "--trace-events"]);
    running.write(format!("{ADMITTED}{WAITS}"));
    running.line_with("W_REFERENCE_PENDING");
    // Nothing more is written.
    let decided = event(&running.line_with("\"finding\""));
    assert_eq!(
        (&decided["code"], &decided["line"]),
        (&"E_EXPLANATION".into(), &2.into())
    );
    let closed = event(&running.line_with("\"trace\""));
    assert_eq!(
        (&closed["state"], &closed["records"]),
        (&"closed".into(), &2.into())
    );
    // It begins anew.
    running.write("{\"seq\":1,\"kind\":\"note\",\"trace\":\"t\"}\n");
    let closed = event(&running.line_with("\"event\":\"trace\""));
    assert_eq!(closed["records"], 1);
    running.close();
    assert_eq!(running.end().assert_status(1).summary()["traces"], 2);
}

#[test]
fn a_trace_whose_beginning_was_not_seen_is_a_partial_one() {
    let late = WAITS.replace("\"seq\":2", "\"seq\":7");
    assert_eq!(
        run(["--follow"], &late).assert_status(0).codes(),
        ["W_PARTIAL_TRACE"]
    );
    let codes = run(["-"], &late).assert_status(1).codes();
    assert_eq!(
        codes,
        [
            "E_DECLARATION_SCOPE",
            "W_REFERENCE_PENDING",
            "E_EXPLANATION"
        ]
    );
}

#[test]
fn a_placement_whose_seq_is_unreadable_is_held_against_nothing_that_was_not_seen() {
    let refers = |seq: &str, to: u64| {
        WAITS
            .replace("\"seq\":2", &format!("\"seq\":{seq}"))
            .replace(
                "\"kind\":\"task.bound\"}",
                &format!("\"kind\":\"task.bound\",\"seq\":{to}}}"),
            )
    };
    let first = refers("\"7\"", 3);
    assert!(first.contains("\"seq\":3"), "{first}");
    assert_eq!(
        run(["--follow"], &first).assert_status(1).codes(),
        ["E_STRUCTURE", "W_PARTIAL_TRACE"]
    );
    // From the first readable `seq` on it is known what was seen.
    let trace = format!("{first}{}{}", refers("8", 6), refers("9", 8));
    let codes = run(["--follow"], &trace).assert_status(1).codes();
    assert_eq!(codes, ["E_STRUCTURE", "W_PARTIAL_TRACE", "E_EXPLANATION"]);
}

#[test]
fn a_reader_that_goes_away_ends_a_following_run_with_2() {
    for arguments in [&["--follow"][..], &["--follow", "--format=text"]] {
        let mut child = command(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program runs");
        drop(child.stdout.take());
        let mut stdin = child.stdin.take().expect("piped");
        // The pipe stays open; what it cannot report ends the run.
        let _ = std::io::Write::write_all(&mut stdin, faulty(1).as_bytes());
        let output = child.wait_with_output().expect("it ends");
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        let stderr = String::from_utf8(output.stderr).expect("UTF-8");
        assert!(stderr.contains("standard output was closed"), "{stderr}");
        assert!(
            !stderr.contains("panicked") && !stderr.contains("Broken pipe"),
            "{stderr}"
        );
    }
}

#[test]
fn the_greatest_seq_survives_the_output() {
    let mut running = Running::follow::<&str>([]);
    running.write(faulty(u64::MAX));
    let found = event(&running.line_with("\"/kind\""));
    assert_eq!(found["seq"], Value::from(u64::MAX));
}
