//! `check` and `match`, from outside.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

const DECLARATION: &str = r#"{"v":"1.0","agent":{"name":"a","namespace":"n"},
 "capabilities":[],"clearances":["orders.read"]}"#;

/// A directory with documents in it.
struct Documents(TempDir);

impl Documents {
    fn new(documents: &[(&str, &str)]) -> Documents {
        let dir = tempfile::tempdir().expect("temporary directory");
        for (name, text) in documents {
            fs::write(dir.path().join(name), text).expect("written");
        }
        Documents(dir)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Runs the program among the documents, with one of them as standard input.
    fn run_with(&self, arguments: &[&str], stdin: Stdio) -> Run {
        let output = Command::new(env!("CARGO_BIN_EXE_tracecheck"))
            .args(arguments)
            .current_dir(self.0.path())
            .stdin(stdin)
            .output();
        Run::of(output.expect("the program runs"))
    }

    fn run(&self, arguments: &[&str]) -> Run {
        self.run_with(arguments, Stdio::null())
    }
}

#[derive(Debug)]
struct Run {
    status: Option<i32>,
    stdout: String,
    stderr: String,
}

impl Run {
    fn of(output: Output) -> Run {
        Run {
            status: output.status.code(),
            stdout: String::from_utf8(output.stdout).expect("UTF-8"),
            stderr: String::from_utf8(output.stderr).expect("UTF-8"),
        }
    }

    /// The findings among the events on standard output, as code and pointer.
    fn findings(&self) -> Vec<(String, String)> {
        let finding = |line: &str| {
            let event: serde_json::Value = serde_json::from_str(line).expect("JSON");
            assert_eq!(event["event"], "finding");
            let text = |name: &str| event[name].as_str().expect("a string").to_owned();
            (text("code"), text("pointer"))
        };
        self.stdout.lines().map(finding).collect()
    }
}

fn open(path: &Path) -> Stdio {
    File::open(path).expect("readable").into()
}

#[test]
fn a_clean_document_is_said_to_be_one_in_text_only() {
    let documents = Documents::new(&[("d.json", DECLARATION), ("r.json", "{}")]);
    for (kind, name, line) in [
        (
            "declaration",
            "d.json",
            "d.json: a well-formed declaration\n",
        ),
        (
            "requirements",
            "r.json",
            "r.json: a well-formed requirements document\n",
        ),
    ] {
        let run = documents.run(&["check", kind, "--format=text", name]);
        assert_eq!(
            (run.status, &*run.stdout, &*run.stderr),
            (Some(0), line, "")
        );
        let run = documents.run(&["check", kind, name]);
        assert_eq!((run.status, &*run.stdout, &*run.stderr), (Some(0), "", ""));
    }
}

#[test]
fn findings_are_events_or_text() {
    let text = r#"{"clearances":["Orders"],"tools":null,"residence":"eu"}"#;
    let documents = Documents::new(&[("r.json", text)]);
    let run = documents.run(&["check", "requirements", "r.json"]);
    let pair = |code: &str, pointer: &str| (code.to_owned(), pointer.to_owned());
    let mut expected = vec![
        pair("E_STRUCTURE", "/clearances/0"),
        pair("W_NULL", "/tools"),
    ];
    assert_eq!((run.status, run.findings()), (Some(1), expected.clone()));
    let run = documents.run(&["check", "requirements", "--strict", "r.json"]);
    expected.push(pair("E_STRUCTURE", "/residence"));
    assert_eq!((run.status, run.findings()), (Some(1), expected));
    let run = documents.run(&["check", "requirements", "--format=text", "r.json"]);
    assert!(
        run.stdout
            .starts_with("error[E_STRUCTURE]: `clearances[0]` is \"Orders\"\n  --> r.json:1\n")
    );
    assert_eq!(run.status, Some(1));
}

#[test]
fn an_advisory_is_no_failure() {
    let documents = Documents::new(&[("r.json", r#"{"tools":null}"#)]);
    let run = documents.run(&["check", "requirements", "r.json"]);
    assert_eq!((run.status, run.findings().len()), (Some(0), 1));
}

#[test]
fn standard_input_is_the_default() {
    let documents = Documents::new(&[("d.json", "\u{feff}[]")]);
    for arguments in [
        &["check", "declaration"][..],
        &["check", "declaration", "-"],
    ] {
        let run = documents.run_with(arguments, open(&documents.path("d.json")));
        let expected = [("E_STRUCTURE".to_owned(), String::new())];
        assert_eq!((run.status, run.findings()), (Some(1), expected.to_vec()));
        assert!(
            run.stdout
                .contains(r#""source":"stdin","line":1,"offset":0,"seq":null,"kind":null"#)
        );
    }
}

#[test]
fn a_usable_document_is_printed_as_it_was_given() {
    let text = format!("\u{feff} \r\n{DECLARATION}\n\n\t");
    let null = r#"{"tools":null, "x":1}"#;
    let documents = Documents::new(&[("d.json", &text), ("r.json", null)]);
    let run = documents.run(&["check", "declaration", "--print", "d.json"]);
    assert_eq!((run.status, &*run.stderr), (Some(0), ""));
    assert_eq!(run.stdout, format!("{DECLARATION}\n"));

    let run = documents.run(&["check", "requirements", "--print", "r.json"]);
    assert_eq!((run.status, run.stdout), (Some(0), format!("{null}\n")));
    assert!(run.stderr.contains("W_NULL") && run.stderr.starts_with('{'));

    let run = documents.run(&["check", "requirements", "--print", "--strict", "r.json"]);
    assert_eq!((run.status, &*run.stdout), (Some(1), ""));
    assert!(run.stderr.contains("E_STRUCTURE"));
}

#[test]
fn what_cannot_be_read_is_a_failure() {
    let documents = Documents::new(&[("d.json", DECLARATION)]);
    let long = File::create(documents.path("long.json")).expect("made");
    long.set_len((16 << 20) + 1).expect("sparse");
    for arguments in [
        &["check", "declaration", "none.json"][..],
        &["check", "declaration", "."],
        &["check", "declaration", "long.json"],
        &["match", "none.json", "d.json"],
        &["match", "d.json", "none.json"],
        &["match", "-", "-"],
    ] {
        let run = documents.run(arguments);
        assert_eq!((run.status, &*run.stdout), (Some(2), ""), "{arguments:?}");
        assert!(run.stderr.starts_with("error: "), "{}", run.stderr);
    }
}

#[test]
fn each_predicate_is_matched() {
    let documents = Documents::new(&[
        ("d.json", DECLARATION),
        ("held.json", r#"{"clearances":["orders.read"]}"#),
        (
            "unmet.json",
            r#"{"clearances":["orders.read"],"residency":"eu"}"#,
        ),
        ("bad.json", r#"{"clearances":["orders.read",1]}"#),
        ("none.json", "{}"),
    ]);
    let run = documents.run(&["match", "held.json", "d.json"]);
    assert_eq!((run.status, &*run.stderr), (Some(0), ""));
    assert_eq!(run.stdout, "satisfied  clearance:orders.read\n");

    let run = documents.run(&["match", "unmet.json", "d.json"]);
    assert_eq!((run.status, &*run.stderr), (Some(1), ""));
    let line = run.stdout.lines().nth(1).expect("two predicates");
    assert!(
        line.starts_with("unmet      residency:eu           (the declaration has no `residency`; "),
        "{line}"
    );

    let run = documents.run(&["match", "bad.json", "d.json"]);
    assert_eq!(
        (run.status, &*run.stdout),
        (Some(1), "satisfied  clearance:orders.read\n")
    );
    assert!(
        run.stderr
            .starts_with("error[E_STRUCTURE]: `clearances[1]` is a number, 1\n")
    );

    let run = documents.run(&["match", "held.json", "none.json"]);
    assert_eq!(run.status, Some(1));
    assert!(
        run.stdout
            .starts_with("undecided  clearance:orders.read  ("),
        "{run:?}"
    );

    let run = documents.run(&["match", "none.json", "d.json"]);
    assert_eq!((run.status, &*run.stdout), (Some(0), ""));
    assert!(run.stderr.contains("any agent is eligible"));

    let stdin = open(&documents.path("held.json"));
    let run = documents.run_with(&["match", "-", "d.json"], stdin);
    assert_eq!(run.status, Some(0), "{run:?}");
}
