//! The program from outside: help, explanations, and what it refuses.

use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use tracecheck::{Code, explanation};

fn tracecheck(arguments: &[&str]) -> Output {
    command(arguments).output().expect("the program runs")
}

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tracecheck"));
    // The help text is as wide as the terminal, and COLUMNS may stand for one.
    command.args(arguments).env_remove("COLUMNS");
    command
}

/// Standard output of a call that succeeds and says nothing else.
#[track_caller]
fn stdout(arguments: &[&str]) -> String {
    let output = tracecheck(arguments);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(output.stderr.is_empty(), "{output:?}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// Standard error of a call that is refused before anything is done.
#[track_caller]
fn refusal(arguments: &[&str]) -> String {
    let output = tracecheck(arguments);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(output.stdout.is_empty(), "{output:?}");
    String::from_utf8(output.stderr).expect("UTF-8")
}

/// Compares with a stored file, or writes it where TRACECHECK_BLESS=1.
#[track_caller]
fn assert_stored(name: &str, actual: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/expected")
        .join(name);
    if std::env::var_os("TRACECHECK_BLESS").is_some_and(|value| value == "1") {
        fs::write(&path, actual).expect("written");
    }
    let stored = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        stored == actual,
        "{} differs; look at it and run again with TRACECHECK_BLESS=1:\n{actual}",
        path.display()
    );
}

#[test]
fn help_is_as_stored() {
    assert_stored("help.txt", &stdout(&["--help"]));
    assert_stored("help-short.txt", &stdout(&["-h"]));
}

#[test]
fn every_subcommand_has_help() {
    let names = [
        "explain",
        "check",
        "match",
        "vectors",
        "state",
        "completions",
        "man",
    ];
    for name in names {
        let text = stdout(&[name, "--help"]);
        assert!(
            text.contains(&format!("Usage: tracecheck {name}")),
            "{text}"
        );
    }
}

#[test]
fn version_is_that_of_the_package() {
    let expected = format!("tracecheck {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(stdout(&["--version"]), expected);
}

#[test]
fn explain_lists_and_explains_codes() {
    let list = stdout(&["explain"]);
    assert_eq!(list.lines().count(), Code::ALL.len());
    for &code in Code::ALL {
        let text = stdout(&["explain", code.as_str()]);
        assert!(text.starts_with(code.as_str()), "{text}");
        assert!(text.ends_with(explanation(code).example), "{text}");
    }
    assert!(stdout(&["explain", "w_null"]).starts_with("W_NULL"));
    let both = stdout(&["explain", "W_NULL", "W_SEQ_GAP"]);
    assert!(both.starts_with("W_NULL") && both.contains("\n\nW_SEQ_GAP (warning)\n"));
}

#[test]
fn a_code_that_is_none_gets_the_nearest() {
    assert!(refusal(&["explain", "E_CLEARANCE_UNMENT"]).contains("E_CLEARANCE_UNMET"));
}

#[test]
fn completions_and_manual_page_are_written() {
    assert!(stdout(&["completions", "bash"]).contains("--trace-key"));
    assert!(stdout(&["man"]).contains(".TH tracecheck 1"));
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    for arguments in [&["explain"][..], &["man"], &["completions", "zsh"]] {
        let mut child = command(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program runs");
        drop(child.stdout.take());
        let status = child.wait().expect("the program ends");
        let mut stderr = String::new();
        let pipe = child.stderr.as_mut().expect("piped");
        pipe.read_to_string(&mut stderr).expect("UTF-8");
        assert_eq!(
            (status.code(), stderr.as_str()),
            (Some(0), ""),
            "{arguments:?}"
        );
    }
}

#[test]
fn a_full_disk_is_a_failure() {
    let Ok(full) = fs::OpenOptions::new().write(true).open("/dev/full") else {
        return;
    };
    let output = command(&["explain"]).stdout(full).output().expect("runs");
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(!output.stderr.is_empty());
}

#[test]
fn wrong_usage_is_refused() {
    for (arguments, word) in [
        (&["--no-such-flag"][..], "--no-such-flag"),
        (&["--trace-kee=/a"], "--trace-key"),
        (&["--trace-key"], "a value is required"),
        (
            &["--format=xml"],
            "[possible values: json, text, journald, auto]",
        ),
        (&["-q", "-v"], "cannot be used with"),
        (&["match", "one.json"], "<DECLARATION>"),
        (&["state"], "<DIR>"),
        (&["completions", "cmd"], "possible values"),
        (&["man", "more"], "unexpected argument"),
    ] {
        let message = refusal(arguments);
        assert!(message.contains(word), "{arguments:?}: {message}");
    }
}

#[test]
fn every_fault_of_flags_and_file_is_reported() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let file = dir.path().join("tc.toml");
    fs::write(&file, "colour = \"never\"\nmax_traces = -1\n").expect("written");
    let file = file.to_str().expect("UTF-8");
    let message = refusal(&[
        "--config",
        file,
        "--max-record-bytes=1.5MiB",
        "--from-end",
        "t.jsonl",
    ]);
    let expected = format!(
        "error: {file}:colour: there is no such option; expected `color`\n\
         error: --from-end: there is nothing that goes on; expected --follow or --listen with it\n\
         error: --max-record-bytes: `1.5MiB` is no size; expected whole bytes or a unit, such as \
         4096, 500kB or 16MiB\n\
         error: {file}:max_traces: `-1` is no number of traces; expected a whole number, 1 or more\n\
         \nFor more information, try '--help'.\n"
    );
    assert_eq!(message, expected);
}

#[test]
fn a_state_directory_without_a_checkpoint_is_a_failure() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let path = dir.path().to_str().expect("UTF-8");
    let message = refusal(&["state", path]);
    assert_eq!(
        message,
        format!("error: there is no checkpoint in {path}\n")
    );
    for format in ["json", "text"] {
        let nowhere = format!("{path}/nowhere");
        let message = refusal(&["state", "--format", format, &nowhere]);
        assert_eq!(
            message,
            format!("error: there is no checkpoint in {nowhere}\n")
        );
    }
    fs::write(dir.path().join("checkpoint"), [0; 64]).expect("written");
    let message = refusal(&["state", path]);
    let words = "is damaged: it does not begin as a checkpoint does";
    assert!(message.contains(words), "{message}");
}

#[test]
fn a_configuration_file_must_be_there() {
    let message = refusal(&["--config", "/nowhere/tc.toml"]);
    assert!(message.starts_with("error: --config: cannot read `/nowhere/tc.toml`"));
}
