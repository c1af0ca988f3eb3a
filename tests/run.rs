//! A run from outside: what can be read, what cannot, and what the options change.

#![cfg(feature = "cli")]

#[path = "support/program.rs"]
mod program;

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Instant;

use serde_json::Value;
use tempfile::TempDir;

use program::{DEADLINE, Ran, command, run, run_command};

/// A trace without a finding.
const SOUND: &str = "{\"seq\":1,\"kind\":\"task.submitted\",\"content\":{}}\n";

/// A trace with one error.
const NO_KIND: &str = "{\"seq\":1}\n";

/// A trace with one advisory.
const GAP: &str = "{\"seq\":1,\"kind\":\"note\"}\n{\"seq\":3,\"kind\":\"note\"}\n";

/// A placement that waits for the one that explains it.
const WAITS: &str = concat!(
    r#"{"seq":2,"kind":"task.bound","trace":"t","content":{"resumed":true,"scheduling":{"#,
    r#""requirements":{},"declaration":{"v":"1","agent":{"name":"a","namespace":"n"},"#,
    r#""capabilities":[],"clearances":[]},"recorded_in":{"kind":"task.bound"}}}}"#,
    "\n"
);

const ADMITTED: &str = concat!(
    r#"{"seq":1,"kind":"task.admitted","trace":"t","content":{"agent":{"name":"a","namespace":"n"}}}"#,
    "\n"
);

struct Files(TempDir);

impl Files {
    fn new<const N: usize>(files: [(&str, &str); N]) -> Self {
        let dir = Files(tempfile::tempdir().expect("temporary directory"));
        for (name, text) in files {
            dir.write(name, text);
        }
        dir
    }

    fn at(&self, name: impl AsRef<OsStr>) -> PathBuf {
        self.0.path().join(Path::new(name.as_ref()))
    }

    fn write(&self, name: impl AsRef<OsStr>, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.at(name);
        fs::create_dir_all(path.parent().expect("a directory")).expect("created");
        fs::write(&path, text).expect("written");
        path
    }

    /// Runs in the directory.
    fn run(&self, arguments: &[&str], input: impl AsRef<[u8]>) -> Ran {
        let mut command = command(arguments);
        command.current_dir(self.0.path());
        run_command(command, input)
    }
}

/// The sources of the findings, in their order.
fn sources(ran: &Ran) -> Vec<String> {
    strings(&ran.findings(), "source")
}

fn strings(events: &[Value], member: &str) -> Vec<String> {
    let string = |event: &Value| event[member].as_str().expect(member).to_owned();
    events.iter().map(string).collect()
}

/// The one source that failed, and why.
#[track_caller]
fn failure(ran: &Ran) -> (String, String) {
    let failed: Vec<_> = ran
        .events_of("source")
        .into_iter()
        .filter(|event| event["state"] == "failed")
        .collect();
    assert_eq!(failed.len(), 1, "{ran:?}");
    let text = |member: &str| failed[0][member].as_str().expect(member).to_owned();
    (text("source"), text("message"))
}

// ---- What can be read ----

#[test]
fn a_file_a_directory_a_glob_and_standard_input_are_read_in_the_order_given() {
    let files = Files::new([
        ("one.jsonl", NO_KIND),
        ("dir/b.jsonl", NO_KIND),
        ("dir/a.ndjson", NO_KIND),
        ("dir/c.txt", NO_KIND),
        ("dir/sub/d.jsonl", NO_KIND),
        ("logs/x.log", NO_KIND),
        ("logs/y.log", NO_KIND),
        ("logs/z.txt", NO_KIND),
    ]);
    let ran = files.run(
        &["logs/*.log", "-", "dir", "one.jsonl", "dir/b.jsonl"],
        NO_KIND,
    );
    ran.assert_status(1);
    assert_eq!(
        sources(&ran),
        [
            "logs/x.log",
            "logs/y.log",
            "stdin",
            "dir/a.ndjson",
            "dir/b.jsonl",
            "one.jsonl"
        ]
    );
    let events = ran.events_of("source");
    for state in ["opened", "closed"] {
        let count = events
            .iter()
            .filter(|event| event["state"] == state)
            .count();
        assert_eq!(count, 6, "{state}");
    }
    let summary = ran.summary();
    assert_eq!(
        (&summary["records"], &summary["traces"]),
        (&6.into(), &6.into())
    );
    assert_eq!(summary["bytes"], 6 * NO_KIND.len());
}

#[test]
fn each_source_is_a_trace_of_its_own() {
    let files = Files::new([("a.jsonl", SOUND), ("b.jsonl", SOUND)]);
    let ran = files.run(&["a.jsonl", "b.jsonl", "--trace-events"], "");
    ran.assert_status(0);
    assert_eq!(
        strings(&ran.events_of("trace"), "trace"),
        ["a.jsonl", "b.jsonl"]
    );
    // Together the second `seq` 1 would come after the first.
    let ran = run(["-"], SOUND.repeat(2));
    assert_eq!(ran.assert_status(1).codes(), ["E_STRUCTURE"]);
}

#[test]
fn a_path_that_is_there_is_no_glob() {
    let files = Files::new([("[a].jsonl", NO_KIND), ("a.jsonl", SOUND)]);
    assert_eq!(
        sources(files.run(&["[a].jsonl"], "").assert_status(1)),
        ["[a].jsonl"]
    );
    assert!(sources(files.run(&["[b-z]*", "[a-z].jsonl"], "").assert_status(0)).is_empty());
}

#[test]
fn sources_that_are_called_alike_are_all_read() {
    let files = Files::new([("stdin", NO_KIND)]);
    let ran = files.run(&["-", "stdin"], NO_KIND);
    assert_eq!(sources(ran.assert_status(1)), ["stdin", "stdin"]);
    let ids = strings(&ran.findings(), "id");
    assert_ne!(ids[0], ids[1]);
}

#[test]
fn names_may_be_no_utf_8() {
    let files = Files::new([]);
    let names: [&[u8]; 2] = [b"\xff.jsonl", b"\xfe.jsonl"];
    for name in names {
        if fs::write(files.at(OsStr::from_bytes(name)), NO_KIND).is_err() {
            return; // Some file systems have no such names.
        }
    }
    let given: Vec<OsString> = names
        .iter()
        .map(|name| files.at(OsStr::from_bytes(name)).into())
        .collect();
    for arguments in [
        &given[..],
        &[files.0.path().into()],
        &[files.at("*.jsonl").into()],
    ] {
        let ran = run(arguments, "");
        let sources = sources(ran.assert_status(1));
        assert_eq!(sources.len(), 2, "{arguments:?}");
        assert!(
            sources.iter().all(|name| name.ends_with("\u{fffd}.jsonl")),
            "{sources:?}"
        );
    }
}

#[test]
fn what_is_in_an_empty_or_blank_file_is_sound() {
    let files = Files::new([
        ("e.jsonl", ""),
        ("b.jsonl", "\n \t\r\n\r\n"),
        ("m.jsonl", "\u{feff}"),
    ]);
    let ran = files.run(&["e.jsonl", "b.jsonl", "m.jsonl"], "");
    assert!(ran.assert_status(0).findings().is_empty());
    assert_eq!(ran.summary()["records"], 0);
}

#[test]
fn a_bom_is_skipped_at_the_very_start_only() {
    let bom = "\u{feff}";
    assert!(
        run(["-"], format!("{bom}{SOUND}"))
            .assert_status(0)
            .findings()
            .is_empty()
    );
    assert_eq!(
        run(["-"], format!("{bom}{NO_KIND}")).findings()[0]["offset"],
        0
    );
    let twice = run(["-"], format!("{bom}{bom}{SOUND}"));
    assert_eq!(twice.assert_status(1).codes(), ["E_STRUCTURE"]);
    let later = run(["-"], format!("{SOUND}{bom}{SOUND}"));
    assert_eq!(later.assert_status(1).codes(), ["E_STRUCTURE"]);
}

#[test]
fn a_binary_file_is_malformed_line_by_line() {
    let files = Files::new([]);
    let program = fs::read(env!("CARGO_BIN_EXE_tracecheck")).expect("readable");
    let bytes = &program[..1 << 20];
    let ran = run([files.write("b.jsonl", bytes)], "");
    ran.assert_status(1);
    let blank = |line: &&[u8]| line.iter().all(u8::is_ascii_whitespace);
    let lines = bytes
        .split(|&byte| byte == b'\n')
        .filter(|line| !blank(line))
        .count();
    // A form feed is white space for Rust, and none for JSON.
    assert!(ran.findings().len() >= lines);
    for finding in ran.findings() {
        assert_eq!(
            (&finding["code"], &finding["pointer"]),
            (&"E_STRUCTURE".into(), &"".into())
        );
    }
}

#[test]
fn a_file_of_nuls_is_malformed() {
    let files = Files::new([]);
    let nuls = files.write("n.jsonl", vec![0; 300_000]);
    let ran = run([nuls], "");
    assert_eq!(ran.assert_status(1).codes(), ["E_STRUCTURE"]);
    let text = format!("{SOUND}\0\0\n{}", SOUND.replace('1', "2"));
    let ran = run(["-"], text);
    assert_eq!(ran.assert_status(1).codes(), ["E_STRUCTURE"]);
    assert_eq!(ran.findings()[0]["line"], 2);
}

#[test]
fn a_line_over_the_limit_is_malformed_and_the_next_is_read() {
    let long = format!("{{\"seq\":2,\"x\":\"{}\"}}\n", "x".repeat(100));
    let text = format!("{SOUND}{long}{}", NO_KIND.replace('1', "2"));
    let ran = run(["--max-record-bytes=64", "-"], &text);
    let lines: Vec<_> = ran
        .findings()
        .iter()
        .map(|f| (f["line"].clone(), f["pointer"].clone()))
        .collect();
    assert_eq!(lines, [(2.into(), "".into()), (3.into(), "/kind".into())]);
    assert_eq!(ran.findings()[0]["seq"], Value::Null);
    let ran = run(["--max-record-bytes=1KiB", "-"], &text);
    assert_eq!(
        strings(&ran.findings(), "pointer"),
        ["/kind", "/kind", "/seq"]
    );
    // To the byte, whatever ends the line.
    let record = "{\"seq\":1,\"kind\":\"note\",\"x\":\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"}";
    assert_eq!(record.len(), 64);
    for end in ["", "\n", "\r\n"] {
        let at = |record: &str| run(["--max-record-bytes=64", "-"], format!("{record}{end}"));
        at(record).assert_status(0);
        at(&record.replace("aa", "aaa")).assert_status(1);
    }
}

#[test]
fn a_pipe_that_closes_in_mid_record_has_a_malformed_last_line() {
    let text = format!("{SOUND}{WAITS}");
    for cut in [SOUND.len() + 1, text.len() - 5, text.len() - 2] {
        let ran = run(["-"], &text[..cut]);
        assert_eq!(
            ran.assert_status(1).codes(),
            ["E_STRUCTURE"],
            "cut at {cut}"
        );
        assert_eq!(ran.findings()[0]["line"], 2);
    }
    // Without its LF the last line counts all the same.
    run(["-"], SOUND.trim_end()).assert_status(0);
    assert_eq!(
        run(["-"], NO_KIND.trim_end()).assert_status(1).codes(),
        ["E_STRUCTURE"]
    );
}

#[test]
fn lines_of_brackets_neither_crash_nor_slow_the_stream_down() {
    let started = Instant::now();
    let mut text = SOUND.to_owned();
    for deep in [
        "[",
        "{\"a\":",
        "[{\"\":",
        "{\"seq\":2,\"kind\":\"task.bound\",\"content\":[",
    ] {
        for _ in 0..25 {
            text.push_str(&deep.repeat(100_000));
            text.push('\n');
            text.push_str(&format!(
                "{}0{}\n",
                "[".repeat(100_000),
                "]".repeat(100_000)
            ));
        }
    }
    text.push_str(&NO_KIND.replace('1', "2"));
    let ran = run(["-"], text);
    assert_eq!(ran.assert_status(1).findings().len(), 201);
    assert_eq!(ran.findings()[200]["pointer"], "/kind");
    assert!(started.elapsed() < DEADLINE, "{:?}", started.elapsed());
}

// ---- What cannot be read ----

#[test]
fn a_missing_file_is_told_and_the_others_are_verified() {
    let files = Files::new([("a.jsonl", NO_KIND), ("b.jsonl", NO_KIND)]);
    let ran = files.run(&["a.jsonl", "missing.jsonl", "b.jsonl"], "");
    assert_eq!(sources(ran.assert_status(2)), ["a.jsonl", "b.jsonl"]);
    let (source, message) = failure(&ran);
    assert_eq!(source, "missing.jsonl");
    assert!(message.contains("No such file"), "{message}");
    assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
    assert!(ran.stderr.contains("missing.jsonl"), "{}", ran.stderr);
    // As text, where people look.
    let ran = files.run(&["--format=text", "missing.jsonl"], "");
    ran.assert_status(2);
    assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
    assert!(ran.stderr.contains("missing.jsonl"), "{}", ran.stderr);
    assert!(!ran.stdout.contains("no findings"), "{}", ran.stdout);
    assert!(
        ran.stdout.contains("error: cannot open: No such file"),
        "{}",
        ran.stdout
    );
    assert!(ran.stdout.contains("--> missing.jsonl"), "{}", ran.stdout);
}

#[test]
#[allow(clippy::print_stderr, reason = "a test that is skipped says so")]
fn an_unreadable_file_is_told_and_the_others_are_verified() {
    let files = Files::new([("closed.jsonl", SOUND), ("open.jsonl", NO_KIND)]);
    let closed = files.at("closed.jsonl");
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o000)).expect("changed");
    if fs::read(&closed).is_ok() {
        eprintln!("skipped: this user may read everything");
        return;
    }
    let ran = files.run(&["closed.jsonl", "open.jsonl"], "");
    assert_eq!(sources(ran.assert_status(2)), ["open.jsonl"]);
    assert!(failure(&ran).1.contains("ermission denied"));
}

#[test]
fn a_link_that_leads_nowhere_is_told_and_the_others_are_verified() {
    let files = Files::new([("z.jsonl", NO_KIND), ("dir/a.txt", "")]);
    let link = files.at("dir/loop.jsonl");
    symlink(&link, &link).expect("linked");
    for path in ["dir/loop.jsonl", "dir", "dir/*.jsonl"] {
        let ran = files.run(&[path, "z.jsonl"], "");
        assert_eq!(ran.assert_status(2).codes(), ["E_STRUCTURE"], "{path}");
        assert!(failure(&ran).0.ends_with("loop.jsonl"), "{path}");
    }
}

/// Reading from the beginning of a process's memory fails on Linux, after opening it went well.
#[test]
fn a_file_that_cannot_be_read_any_further_is_told_and_the_others_are_verified() {
    if !cfg!(target_os = "linux") {
        return;
    }
    let ran = run(["/proc/self/mem", "-"], NO_KIND);
    assert_eq!(sources(ran.assert_status(2)), ["stdin"]);
    let (source, message) = failure(&ran);
    assert_eq!(source, "/proc/self/mem");
    assert!(message.starts_with("cannot read any further"), "{message}");
}

#[test]
fn where_no_trace_is_there_is_nothing_to_read() {
    let files = Files::new([("dir/a.txt", SOUND)]);
    for path in ["dir", "*.jsonl", "dir/*.ndjson"] {
        let ran = files.run(&[path], "");
        assert_eq!(ran.assert_status(2).summary()["records"], 0);
        assert!(ran.stderr.contains("nothing to read"), "{}", ran.stderr);
        assert!(ran.stderr.contains(path), "{}", ran.stderr);
        let ran = files.run(&["--format=text", path], "");
        assert_eq!(
            ran.assert_status(2).stdout,
            "nothing was checked: no trace was read\n"
        );
    }
}

#[test]
fn a_glob_that_is_none_is_told_and_the_others_are_verified() {
    let files = Files::new([("a.jsonl", NO_KIND)]);
    let ran = files.run(&["a***", "a.jsonl"], "");
    assert_eq!(sources(ran.assert_status(2)), ["a.jsonl"]);
    assert!(failure(&ran).1.contains("not a glob"));
}

// ---- Traces ----

fn keyed(trace: &str, seq: u64, kind: &str) -> String {
    format!("{{\"seq\":{seq},\"kind\":\"{kind}\",\"trace\":{trace}}}\n")
}

#[test]
fn interleaved_traces_are_told_apart_by_their_key() {
    let files = Files::new([]);
    let text = [
        keyed("\"a\"", 1, "note"),
        keyed("7", 1, "note"),
        keyed("\"a\"", 2, "note"),
        keyed("\"7\"", 3, "note"),
    ];
    files.write("1.jsonl", text.concat());
    files.write(
        "2.jsonl",
        keyed("\"a\"", 2, "note") + &keyed("7", 4, "note"),
    );
    let ran = files.run(
        &["--trace-key=/trace", "--trace-events", "1.jsonl", "2.jsonl"],
        "",
    );
    let found: Vec<_> = ran
        .assert_status(1)
        .findings()
        .iter()
        .map(|f| {
            format!("{} {} {}:{}", f["code"], f["trace"], f["source"], f["line"]).replace('"', "")
        })
        .collect();
    assert_eq!(found, ["W_SEQ_GAP 7 1.jsonl:4", "E_STRUCTURE a 2.jsonl:1"]);
    let mut traces = strings(&ran.events_of("trace"), "trace");
    traces.sort();
    assert_eq!(traces, ["7", "a"]);
    assert_eq!(ran.summary()["traces"], 2);
}

#[test]
fn a_record_without_its_key_is_malformed() {
    let text =
        keyed("\"a\"", 1, "note") + SOUND + &keyed("\"\"", 2, "note") + &keyed("1.5", 2, "note");
    let ran = run(["--trace-key=/trace", "-"], text);
    assert_eq!(
        strings(&ran.assert_status(1).findings(), "pointer"),
        ["/trace"; 3]
    );
    assert_eq!(
        run(
            ["--trace-key=/a/b~1c", "-"],
            "{\"seq\":1,\"kind\":\"x\",\"a\":{\"b/c\":1}}"
        )
        .status,
        Some(0)
    );
}

#[test]
fn a_record_of_an_end_kind_ends_its_trace() {
    let end = keyed("\"t\"", 3, "done");
    let again = keyed("\"t\"", 1, "note");
    let text = format!("{ADMITTED}{WAITS}{end}{again}");
    let open = run(["--trace-key=/trace", "-"], &text);
    let expected = ["W_REFERENCE_PENDING", "E_STRUCTURE", "E_EXPLANATION"];
    assert_eq!(
        open.assert_status(1).codes(),
        expected,
        "one trace goes backwards"
    );
    let ended = run(
        [
            "--trace-key=/trace",
            "--end-kind=x",
            "--end-kind=done",
            "--trace-events",
            "-",
        ],
        &text,
    );
    assert_eq!(
        ended.assert_status(1).codes(),
        ["W_REFERENCE_PENDING", "E_EXPLANATION"]
    );
    let pending = &ended.findings()[1];
    assert_eq!((&pending["line"], &pending["seq"]), (&2.into(), &2.into()));
    let traces = ended.events_of("trace");
    let records: Vec<_> = traces
        .iter()
        .map(|trace| trace["records"].clone())
        .collect();
    assert_eq!(records, [3, 1]);
    assert_eq!(ended.summary()["traces"], 2);
}

#[test]
fn the_least_recently_used_trace_is_given_up_where_too_many_are_open() {
    let text = [
        keyed("\"a\"", 1, "note"),
        keyed("\"b\"", 1, "note"),
        keyed("\"a\"", 1, "note"),
        keyed("\"c\"", 1, "note"),
        keyed("\"b\"", 2, "note"),
    ];
    let arguments = ["--trace-key=/trace", "--max-traces=2", "-"];
    let ran = run(arguments, text.concat());
    let traces = ran.assert_status(1).events_of("trace");
    let told: Vec<_> = traces
        .iter()
        .map(|t| {
            format!(
                "{} {} {} {}",
                t["trace"], t["state"], t["records"], t["errors"]
            )
            .replace('"', "")
        })
        .collect();
    assert_eq!(told, ["b evicted 1 {}", "a evicted 2 {E_STRUCTURE:1}"]);
    // What comes back may have been seen before.
    assert_eq!(ran.codes(), ["E_STRUCTURE", "W_PARTIAL_TRACE"]);
    let ran = run(
        arguments.into_iter().chain(["--format=text"]),
        text.concat(),
    );
    assert!(
        ran.stdout.contains("trace `b` was given up after 1 record"),
        "{}",
        ran.stdout
    );
}

#[test]
fn a_trace_that_may_have_been_given_up_is_not_accused_of_what_was_forgotten() {
    let admitted = r#"{"trace":"a","seq":1,"kind":"task.admitted","content":{"agent":{"name":"n","namespace":"s"}}}"#;
    let other = r#"{"trace":"b","seq":1,"kind":"note"}"#;
    for seq in ["2", "\"2\"", "2.0"] {
        let bound = format!(
            r#"{{"trace":"a","seq":{seq},"kind":"task.bound","content":{{"resumed":true,"scheduling":{{"requirements":{{}},"declaration":{{"v":"1","agent":{{"name":"n","namespace":"s"}},"capabilities":[],"clearances":[]}},"recorded_in":{{"kind":"task.bound","seq":1}}}}}}}}"#
        );
        let trace = format!("{admitted}\n{other}\n{bound}\n");
        let arguments = [
            "--trace-key=/trace",
            "--max-traces=1",
            "--ignore=E_STRUCTURE",
            "-",
        ];
        let codes = run(arguments, &trace).assert_status(0).codes();
        assert_eq!(codes, ["W_PARTIAL_TRACE"], "{seq}");
    }
}

#[test]
fn ends_of_traces_are_told_where_asked() {
    let silent = run(["-"], NO_KIND);
    assert!(silent.events_of("trace").is_empty());
    let told = run(["--trace-events", "-"], NO_KIND).events_of("trace");
    assert_eq!(told.len(), 1);
    assert_eq!(
        (&told[0]["trace"], &told[0]["state"]),
        (&"stdin".into(), &"closed".into())
    );
    assert_eq!(told[0]["errors"]["E_STRUCTURE"], 1);
}

// ---- Findings ----

#[test]
fn codes_are_chosen_and_only_those_count() {
    let text = format!("{GAP}{{\"seq\":9}}\nx\n");
    for (arguments, codes, status) in [
        (&[][..], &["W_SEQ_GAP", "E_STRUCTURE", "E_STRUCTURE"][..], 1),
        (&["--no-advisories"], &["E_STRUCTURE", "E_STRUCTURE"], 1),
        (&["--only=W_*"], &["W_SEQ_GAP"], 0),
        (&["--ignore=E_*"], &["W_SEQ_GAP"], 0),
        (
            &["--ignore=E_STRUCTURE", "--fail-on=warning"],
            &["W_SEQ_GAP"],
            1,
        ),
        (
            &[
                "--ignore=E_STRUCTURE",
                "--fail-on=warning",
                "--no-advisories",
            ],
            &[],
            0,
        ),
        (
            &["--only=*_STRUCTURE", "--only=W_NULL"],
            &["E_STRUCTURE", "E_STRUCTURE"],
            1,
        ),
        (&["--only=*", "--ignore=*"], &[], 0),
        (
            &["--fail-on=never"],
            &["W_SEQ_GAP", "E_STRUCTURE", "E_STRUCTURE"],
            0,
        ),
        (
            &["--fail-on=error", "--only=*"],
            &["W_SEQ_GAP", "E_STRUCTURE", "E_STRUCTURE"],
            1,
        ),
    ] {
        let ran = run(arguments, &text);
        assert_eq!(ran.assert_status(status).codes(), codes, "{arguments:?}");
        let summary = ran.summary();
        let count = |member: &str| {
            let counts = summary[member].as_object().expect("an object");
            counts
                .values()
                .map(|count| count.as_u64().expect("a count"))
                .sum::<u64>()
        };
        assert_eq!(
            count("errors") + count("warnings"),
            codes.len() as u64,
            "{arguments:?}"
        );
    }
}

#[test]
fn nothing_to_fail_on_is_no_answer_where_a_source_failed() {
    run(["--fail-on=never", "-", "/nowhere"], NO_KIND).assert_status(2);
}

#[test]
fn wordings_of_a_claim_can_be_added() {
    let text = r#"{"seq":1,"kind":"task.rejected","content":{"reason":"Nobody around (E17)"}}"#;
    run(["-"], text).assert_status(0);
    let ran = run(
        ["--claim-pattern=x{3}", "--claim-pattern=\\(E1\\d\\)$", "-"],
        text,
    );
    assert_eq!(ran.assert_status(1).codes(), ["E_REJECTION_REASON"]);
    run(["--claim-pattern=^nobody", "-"], text).assert_status(0);
    let ran = run(["--claim-pattern=(", "-"], text);
    ran.assert_status(2);
    assert!(
        ran.stdout.is_empty() && ran.stderr.contains("--claim-pattern"),
        "{ran:?}"
    );
}

// ---- Output ----

#[test]
fn findings_are_written_as_asked() {
    let auto = run(["-"], NO_KIND);
    assert_eq!(auto.events().len(), 4);
    assert_eq!(run(["--format=auto", "-"], NO_KIND).events().len(), 4);
    assert_eq!(
        run(["--format=json", "--color=always", "-"], NO_KIND)
            .events()
            .len(),
        4
    );
    let text = run(["--format=text", "-"], NO_KIND)
        .assert_status(1)
        .stdout
        .clone();
    assert!(text.starts_with("error[E_STRUCTURE]: "), "{text}");
    assert!(text.contains("  --> stdin:1 (seq 1)\n"), "{text}");
    assert!(
        text.contains("checked 1 record and 0 placements of 1 trace"),
        "{text}"
    );
    assert!(!text.contains('\x1b'), "{text}");
    let quiet = run(["--format=text", "-q", "-"], NO_KIND);
    assert!(quiet.stdout.contains("error[E_STRUCTURE]") && !quiet.stdout.contains("checked"));
    assert_eq!(run(["-q", "-"], NO_KIND).events().len(), 4);
}

#[test]
fn text_is_coloured_where_asked_and_json_never() {
    let colored = |arguments: &[&str], no_color: &str| {
        let mut command = command(arguments);
        command.env("NO_COLOR", no_color);
        let ran = run_command(command, NO_KIND);
        ran.stdout.contains('\x1b')
    };
    assert!(colored(&["--format=text", "--color=always"], ""));
    assert!(colored(&["--format=text", "--color=always"], "1"));
    assert!(!colored(&["--format=text", "--color=auto"], ""));
    assert!(!colored(&["--format=text", "--color=never"], ""));
    assert!(!colored(&["--format=text"], "1"));
    assert!(!colored(&["--format=json", "--color=always"], ""));
}

#[test]
fn diagnostics_go_to_standard_error_and_are_quiet_where_asked() {
    let files = Files::new([("a.txt", "")]);
    let loud = files.run(&["*.jsonl", "a.txt"], "");
    assert!(
        loud.assert_status(0).stderr.contains("no traces there"),
        "{loud:?}"
    );
    assert!(files.run(&["-q", "*.jsonl", "a.txt"], "").stderr.is_empty());
    assert!(files.run(&["a.txt"], "").stderr.is_empty());
    let mut silenced = command(["*.none", "-"]);
    silenced.env("RUST_LOG", "off").current_dir(files.0.path());
    assert!(run_command(silenced, "").stderr.is_empty());
}

#[test]
fn a_verbose_run_tells_of_each_source_and_what_it_had() {
    let files = Files::new([("a.jsonl", SOUND), ("b.jsonl", NO_KIND)]);
    let told = |arguments: &[&str]| files.run(arguments, "").stderr;
    let text = told(&["-v", "--jobs=1", "a.jsonl", "b.jsonl", "missing.jsonl"]);
    let lines: Vec<_> = text
        .lines()
        .filter_map(|line| line.split_once("Z ").map(|(_, told)| told.trim()))
        .collect();
    assert_eq!(lines.len(), 5, "{text}");
    let placements = SOUND.matches("task.bound").count();
    let read = |name, records, placements, length, errors| {
        format!(
            "INFO {name}: read to its end: records {records}, placements {placements}, \
             bytes {length}, errors {errors}, warnings 0"
        )
    };
    assert_eq!(lines[0], "INFO a.jsonl: opened");
    assert_eq!(
        lines[1],
        read("a.jsonl", SOUND.lines().count(), placements, SOUND.len(), 0)
    );
    assert_eq!(lines[2], "INFO b.jsonl: opened");
    assert_eq!(lines[3], read("b.jsonl", 1, 0, NO_KIND.len(), 1));
    assert!(lines[4].starts_with("ERROR missing.jsonl: cannot open"));
    assert!(told(&["-vv", "a.jsonl"]).contains("max_traces"));
}

#[test]
fn an_option_without_effect_is_told() {
    let files = Files::new([("a.jsonl", SOUND)]);
    let ran = files.run(&["--trace-idle=5m", "a.jsonl"], "");
    let warning = "--trace-idle has no effect without --follow";
    assert!(ran.assert_status(0).stderr.contains(warning), "{ran:?}");
    let ran = files.run(&["--trace-idle=5m", "--follow"], SOUND);
    assert!(ran.assert_status(0).stderr.is_empty(), "{ran:?}");
}

/// A trace whose every name would do something to a terminal.
fn hostile() -> String {
    let evil = r"\u001b[2J\u001b]0;owned\u0007\u009b31m\r\nerror: forged\u202e\u200b";
    let reference = format!("\u{9b}1m{evil}\u{85}");
    format!(
        concat!(
            r#"{{"seq":1,"kind":"task.bound","trace":"{r}","content":{{"scheduling":{{"#,
            r#""requirements":{{"tools":["{r}"],"residency":"{r}","clearances":["{r}"]}},"#,
            r#""declaration":{{"v":"{r}","agent":{{"name":"{r}","namespace":"{r}"}},"capabilities":[],"#,
            r#""clearances":["{r}"],"tools":["{r}x"],"residency":["{r}y"]}},"candidates":["{r}"],"#,
            r#""filters_passed":["{r}"],"filters_failed":[{{"candidate":"{r}","predicate":"{r}"}}],"#,
            r#""scores":{{"{r}":1}},"{r}":1}}}}}}"#,
            "\n{{\"seq\":2,\"kind\":\"{r}\",\"trace\":\"{r}\",\"seq\":\"{r}\"}}\n",
            "{{\"{e}\": \u{1b}[2J\u{9b}31m\u{202e}\n"
        ),
        r = reference,
        e = evil
    )
}

#[test]
fn hostile_names_are_harmless_wherever_they_are_shown() {
    let is_hostile = |c: char| {
        c.is_control() && c != '\n'
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}')
    };
    for key in [&[][..], &["--trace-key=/trace"]] {
        for format in ["--format=text", "--format=json"] {
            let ran = run(
                key.iter().chain(&[format, "--trace-events", "-"]),
                hostile(),
            );
            ran.assert_status(1);
            assert!(ran.stdout.len() > 3000);
            let json = format == "--format=json";
            let found = ran
                .stdout
                .find(|c| is_hostile(c) && !(json && c == '\u{200b}'));
            assert_eq!(found, None, "{}", ran.stdout.escape_debug());
            assert!(!ran.stdout.contains("\nerror: forged"), "{}", ran.stdout);
            if json {
                ran.events();
            }
        }
    }
    let shown = run(["--format=text", "-"], hostile()).stdout;
    assert!(shown.contains(r"\u{1b}[2J"), "{shown}");
}

#[test]
fn hostile_names_of_files_are_harmless_in_diagnostics() {
    let files = Files::new([]);
    let name = "a\u{1b}[2J\n\u{202e}ERROR forged.jsonl";
    symlink("nowhere", files.at(name)).expect("linked");
    for arguments in [&["."][..], &["--format=text", "."], &["-v", "."]] {
        let ran = files.run(arguments, "");
        for text in [&ran.stdout, &ran.stderr] {
            assert!(
                !text.contains(['\u{1b}', '\u{202e}']),
                "{}",
                text.escape_debug()
            );
            assert!(
                text.lines().all(|line| !line.starts_with("ERROR forged")),
                "{text}"
            );
        }
    }
}

#[test]
fn events_are_valid_json_of_limited_length_whatever_the_record() {
    let long = "\u{202e}\"x\\".repeat(100_000);
    let long = serde_json::to_string(&long).expect("a string");
    let text = [
        format!("{{\"seq\":1,\"kind\":{long}}}\n{{\"seq\":1,\"kind\":{long}}}\n"),
        format!(
            "{{\"seq\":2,\"kind\":\"task.admitted\",\"content\":{{\"agent\":{{\"name\":{long},\"namespace\":{long}}}}}}}\n"
        ),
        format!(
            concat!(
                "{{\"seq\":3,\"kind\":\"task.bound\",\"content\":{{\"scheduling\":{{\"requirements\":",
                "{{\"tools\":[{0},\"b\"]}},\"declaration\":{{\"v\":\"1\",\"agent\":{{\"name\":{0},\"namespace\":{0}}},",
                "\"capabilities\":[],\"clearances\":[]}}}}}}}}\n"
            ),
            long
        ),
        format!("{long}\n"),
    ];
    let ran = run(["-"], text.concat());
    let findings = ran.assert_status(1).findings();
    assert!(findings.iter().any(|finding| finding["truncated"] == true));
    assert!(findings.len() > 6, "{}", findings.len());
}

#[test]
fn a_reader_that_goes_away_ends_a_run_quietly() {
    let files = Files::new([]);
    let trace = files.write("t.jsonl", NO_KIND.repeat(20_000));
    for format in ["--format=json", "--format=text"] {
        let mut child = command([OsStr::new(format), trace.as_os_str()])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program runs");
        // Something was found before anybody could go away.
        let mut stdout = child.stdout.take().expect("piped");
        std::io::Read::read_exact(&mut stdout, &mut [0; 300]).expect("a finding");
        drop(stdout);
        let output = child.wait_with_output().expect("it ends");
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(
            output.stderr.is_empty(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
}

#[test]
fn a_full_disk_is_a_failure() {
    let Ok(full) = fs::OpenOptions::new().write(true).open("/dev/full") else {
        return;
    };
    let files = Files::new([("t.jsonl", SOUND)]);
    let output = command([files.at("t.jsonl")])
        .stdout(full)
        .output()
        .expect("it runs");
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("cannot write to standard output"));
}

#[test]
fn standard_error_may_be_gone() {
    let mut child = command(["-vv", "/nowhere", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program runs");
    drop(child.stderr.take());
    drop(child.stdin.take());
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("\"event\":\"summary\""));
}

// ---- Configuration ----

#[test]
fn a_file_configures_a_run_and_flags_win() {
    let files = Files::new([
        ("a.jsonl", NO_KIND),
        ("b.jsonl", GAP),
        (
            "tc.toml",
            "paths = [\"a.jsonl\", \"b.jsonl\"]\nformat = \"text\"\nonly = [\"W_*\"]\nfail_on = \"warning\"\n\
             trace_events = true\nmax_record_bytes = \"1KiB\"\nmax_traces = 5\ntrace_idle = \"5m\"\nquiet = true\n",
        ),
    ]);
    let ran = files.run(&["--config=tc.toml"], "");
    ran.assert_status(1);
    assert!(ran.stdout.contains("warning[W_SEQ_GAP]"), "{}", ran.stdout);
    assert!(
        !ran.stdout.contains("E_STRUCTURE") && !ran.stdout.contains("checked"),
        "{}",
        ran.stdout
    );
    assert!(
        ran.stdout.contains("trace `a.jsonl` closed"),
        "{}",
        ran.stdout
    );
    let ran = files.run(
        &[
            "--config=tc.toml",
            "--format=json",
            "--only=E_*",
            "--fail-on=never",
            "a.jsonl",
        ],
        "",
    );
    assert_eq!(ran.assert_status(0).codes(), ["E_STRUCTURE"]);
    assert_eq!(ran.events_of("trace").len(), 1);
}

#[test]
fn a_bad_configuration_is_refused_before_anything_is_read() {
    let files = Files::new([
        ("a.jsonl", NO_KIND),
        ("tc.toml", "formt = \"json\"\ntrace_key = \"x\"\n"),
    ]);
    let ran = files.run(&["--config=tc.toml", "a.jsonl"], "");
    ran.assert_status(2);
    assert!(ran.stdout.is_empty(), "{ran:?}");
    assert!(
        ran.stderr.contains("`format`") && ran.stderr.contains("trace_key"),
        "{}",
        ran.stderr
    );
}
