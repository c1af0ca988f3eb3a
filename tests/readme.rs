//! README.md against the program, so that it cannot rot: its examples are run and what they write
//! is compared, and its tables are held against the help text, the codes and the limits.
//!
//! - A block of language `console` is a session: lines that begin with `$ ` are run, one after the
//!   other, by one `sh` in the root of the repository, and the lines below each are what it must
//!   write, standard error included. Times, ids and durations may differ. Where TRACECHECK_BLESS=1,
//!   README.md is changed to what they write.
//! - `cargo run --release -- ...` there stands for the program at a terminal, where text is the
//!   default; everywhere else standard output is a pipe, as it is here.
//! - A block of language `sh` is not run, for its commands would not end or need other files. Its
//!   syntax and the options that it gives to the program are checked.

#![cfg(all(unix, feature = "cli"))]

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Stdio};

use regex::Regex;
use serde_json::Value;
use tracecheck::{Code, Finding, agui, decode, event, verify};

const PROGRAM: &str = env!("CARGO_BIN_EXE_tracecheck");
const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// Options of cargo that README.md mentions.
const CARGO_OPTIONS: [&str; 8] = [
    "--all-features",
    "--all-targets",
    "--lib",
    "--locked",
    "--no-default-features",
    "--path",
    "--release",
    "--test",
];

/// Options of systemd's programs that README.md mentions.
const SYSTEMD_OPTIONS: [&str; 3] = ["--no-pager", "--now", "--since"];

/// A fenced block.
struct Block {
    language: String,
    text: String,
    line: usize,
}

/// A command of a session and what it is said to write.
struct Step {
    command: String,
    expected: String,
}

fn readme() -> String {
    fs::read_to_string(Path::new(ROOT).join("README.md")).expect("README.md is there")
}

fn blocks(language: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut open: Option<Block> = None;
    for (index, line) in readme().lines().enumerate() {
        match (line.strip_prefix("```"), &mut open) {
            (Some(language), None) => {
                open = Some(Block {
                    language: language.to_owned(),
                    text: String::new(),
                    line: index + 1,
                });
            }
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (None, Some(block)) => {
                block.text.push_str(line);
                block.text.push('\n');
            }
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "a block of README.md is not closed");
    blocks.retain(|block| block.language == language);
    assert!(!blocks.is_empty(), "README.md has no block of {language}");
    blocks
}

/// The text between a heading and the next one of the same level.
fn section(heading: &str) -> String {
    let readme = readme();
    let start = readme
        .find(&format!("\n## {heading}\n"))
        .unwrap_or_else(|| panic!("README.md has no section `{heading}`"));
    let text = &readme[start + 1..];
    let end = text.find("\n## ").unwrap_or(text.len());
    text[..end].to_owned()
}

/// The first cells of a section's table rows, without their back-ticks.
fn first_cells(section: &str) -> Vec<String> {
    section
        .lines()
        .filter_map(|line| line.strip_prefix("| `"))
        .filter_map(|rest| rest.split_once('`'))
        .map(|(cell, _)| cell.to_owned())
        .collect()
}

fn is_installed(tool: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir| dir.join(tool).is_file())
}

#[test]
#[expect(
    clippy::print_stderr,
    reason = "whoever asks for it sees what was not tested"
)]
fn sessions_write_what_is_shown() {
    let tools = tools();
    let bless = std::env::var_os("TRACECHECK_BLESS").is_some_and(|value| value == "1");
    let mut blessed = readme();
    for block in blocks("console") {
        if block.text.contains("jq ") && !is_installed("jq") {
            eprintln!("README.md:{}: passed over, as jq is not there", block.line);
            continue;
        }
        let steps = steps(&block);
        for (step, actual) in steps.iter().zip(run(&steps, tools.path())) {
            let same = normalised(&step.expected) == normalised(&actual);
            if bless && !same {
                let shown = |output| format!("$ {}\n{output}", step.command);
                blessed = blessed.replacen(&shown(&step.expected), &shown(&actual), 1);
                continue;
            }
            assert!(
                same,
                "README.md:{}: `{}` writes\n{actual}\nand not\n{}",
                block.line, step.command, step.expected,
            );
        }
    }
    if blessed != readme() {
        fs::write(Path::new(ROOT).join("README.md"), blessed).expect("written");
    }
}

fn steps(block: &Block) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for line in block.text.lines() {
        match (line.strip_prefix("$ "), steps.last_mut()) {
            (Some(command), _) => steps.push(Step {
                command: command.to_owned(),
                expected: String::new(),
            }),
            (None, Some(step)) => {
                step.expected.push_str(line);
                step.expected.push('\n');
            }
            (None, None) => panic!("README.md:{}: output before a command", block.line),
        }
    }
    steps
}

/// A directory with the programs that the sessions name.
fn tools() -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("temporary directory");
    symlink(PROGRAM, dir.path().join("tracecheck")).expect("linked");
    let cargo = dir.path().join("cargo");
    let script = "#!/bin/sh\n\
        test \"$1 $2 $3\" = 'run --release --' || { echo \"not known here: cargo $*\"; exit 101; }\n\
        shift 3\n\
        exec tracecheck --format text \"$@\"\n";
    fs::write(&cargo, script).expect("written");
    fs::set_permissions(&cargo, fs::Permissions::from_mode(0o755)).expect("made executable");
    dir
}

/// What each step writes, when all are run by one shell. Each sees the status of the one before.
fn run(steps: &[Step], tools: &Path) -> Vec<String> {
    const MARK: &str = "@@@ the next step @@@\n";
    let mut script = "exec 2>&1\nstatus=0\n".to_owned();
    for step in steps {
        let (mark, command) = (MARK.trim_end(), &step.command);
        script.push_str(&format!(
            "echo '{mark}'\n(exit $status)\n{command}\nstatus=$?\n"
        ));
    }
    let path = std::env::var("PATH").unwrap_or_default();
    let output = Command::new("sh")
        .args(["-c", &script])
        .current_dir(ROOT)
        .env("PATH", format!("{}:{path}", tools.display()))
        .env_remove("COLUMNS")
        .env_remove("RUST_LOG")
        .stdin(Stdio::null())
        .output()
        .expect("a shell is there");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let pieces: Vec<_> = text.split(MARK).skip(1).map(str::to_owned).collect();
    assert_eq!(pieces.len(), steps.len(), "{text}");
    pieces
}

/// The text without what differs from run to run.
fn normalised(text: &str) -> String {
    let mut text = text.trim_end().to_owned();
    for (pattern, replacement) in [
        (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z", "TIME"),
        (r#""id":"[0-9a-f]{32}""#, r#""id":"ID""#),
        (r#""seconds":[0-9.]+"#, r#""seconds":0"#),
        (r"\bin [0-9.]+ m?s\b", "in 0 s"),
    ] {
        let pattern = Regex::new(pattern).expect("a valid pattern");
        text = pattern.replace_all(&text, replacement).into_owned();
    }
    text
}

#[test]
fn scripts_parse_and_use_options_that_exist() {
    let known = known_options();
    let option = Regex::new(r"--[a-z][a-z-]*").expect("a valid pattern");
    for block in blocks("sh") {
        let syntax = Command::new("sh")
            .args(["-n", "-c", &block.text])
            .output()
            .expect("a shell is there");
        assert!(
            syntax.status.success(),
            "README.md:{}: {syntax:?}",
            block.line
        );
        let ours = block
            .text
            .lines()
            .filter(|line| line.contains("tracecheck"));
        for found in ours.flat_map(|line| option.find_iter(line)) {
            let name = found.as_str();
            assert!(
                known.contains(name)
                    || CARGO_OPTIONS.contains(&name)
                    || SYSTEMD_OPTIONS.contains(&name),
                "README.md:{}: there is no {name}",
                block.line
            );
        }
    }
}

#[test]
fn the_table_of_options_is_whole() {
    let options = help_options(&["--help"]);
    let listed: BTreeSet<String> = first_cells(&section("Options"))
        .into_iter()
        .filter_map(|cell| {
            let mut words = cell.split([' ', ',']);
            words.find(|word| word.starts_with("--")).map(str::to_owned)
        })
        .collect();
    let unlisted = ["--help", "--version"].map(str::to_owned).into();
    assert_eq!(listed, &options - &unlisted);
}

/// The options of the program and of its subcommands.
fn known_options() -> BTreeSet<String> {
    let mut options = help_options(&["--help"]);
    let subcommands = [
        "explain",
        "check",
        "match",
        "vectors",
        "state",
        "completions",
        "man",
    ];
    for name in subcommands {
        options.append(&mut help_options(&[name, "--help"]));
    }
    options
}

/// The options that a help text has entries for.
fn help_options(arguments: &[&str]) -> BTreeSet<String> {
    let output = Command::new(PROGRAM)
        .args(arguments)
        .env_remove("COLUMNS")
        .output()
        .expect("the program runs");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let entry =
        Regex::new(r"(?m)^ {2,6}(?:-[a-zA-Z], )?(--[a-z][a-z-]*)").expect("a valid pattern");
    entry
        .captures_iter(&text)
        .map(|found| found[1].to_owned())
        .collect()
}

#[test]
fn the_configuration_is_one() {
    let dir = tempfile::tempdir().expect("temporary directory");
    for block in blocks("toml") {
        // The other one is of a Cargo.toml.
        if block.text.contains("[dependencies]") {
            continue;
        }
        let file = dir.path().join("tracecheck.toml");
        fs::write(&file, &block.text).expect("written");
        let output = Command::new(PROGRAM)
            .arg("--config")
            .arg(&file)
            .arg("fixtures/order.jsonl")
            .current_dir(ROOT)
            .output()
            .expect("the program runs");
        assert_ne!(output.status.code(), Some(2), "{output:?}");
    }
}

#[test]
fn every_code_has_its_row() {
    let listed: Vec<String> = first_cells(&section("What is checked"));
    let codes: Vec<&str> = Code::ALL.iter().map(|code| code.as_str()).collect();
    assert_eq!(listed, codes);
}

#[test]
fn every_rule_has_its_row() {
    let rows = section("How open readings are settled");
    for rule in 1..=17 {
        assert!(rows.contains(&format!("\n| R{rule} |")), "R{rule}");
    }
}

#[test]
fn limits_are_those_of_the_program() {
    let rows = section("Limits");
    for (name, value) in [
        ("Nesting", decode::MAX_DEPTH.to_string()),
        ("Findings listed", decode::MAX_FAULTS.to_string()),
        ("Index", verify::MAX_INDEX_BYTES.to_string()),
        ("Requirements", verify::MAX_DOCUMENT_BYTES.to_string()),
        ("Waiting", verify::MAX_PENDING.to_string()),
        ("Tool calls", agui::MAX_REMEMBERED.to_string()),
        ("Event", event::MAX_EVENT_BYTES.to_string()),
        ("Value", Finding::MAX_VALUE_BYTES.to_string()),
    ] {
        let row = rows
            .lines()
            .find(|line| line.starts_with(&format!("| {name}")))
            .unwrap_or_else(|| panic!("no row for {name}"));
        let stated = row.split('|').nth(2).expect("a second cell").trim();
        assert_eq!(number(stated).to_string(), value, "{row}");
    }
}

/// The number at the beginning of the text, with its unit.
fn number(text: &str) -> u64 {
    let mut words = text.split_whitespace();
    let digits = words.next().unwrap_or_default().replace(',', "");
    let number: u64 = digits.parse().unwrap_or_else(|_| panic!("`{text}`"));
    match words.next() {
        Some("KiB") => number << 10,
        Some("MiB") => number << 20,
        _ => number,
    }
}

#[test]
fn the_record_shown_is_part_of_the_fixture() {
    let shown: Value = serde_json::from_str(&blocks("json")[0].text).expect("JSON");
    let fixture = fs::read_to_string(Path::new(ROOT).join("fixtures/refund.jsonl")).expect("read");
    let record: Value =
        serde_json::from_str(fixture.lines().nth(2).expect("a third line")).expect("JSON");
    assert!(is_part(&shown, &record), "{shown:#}\n{record:#}");
}

/// Whether `part` is `whole`, but for members that are left out of objects.
fn is_part(part: &Value, whole: &Value) -> bool {
    match (part, whole) {
        (Value::Object(part), Value::Object(whole)) => part
            .iter()
            .all(|(name, part)| whole.get(name).is_some_and(|whole| is_part(part, whole))),
        _ => part == whole,
    }
}

#[test]
fn the_event_shown_is_real_and_its_members_are_listed() {
    let mut shown: Value = serde_json::from_str(&blocks("json")[1].text).expect("JSON");
    let output = Command::new(PROGRAM)
        .args(["--format", "json", "fixtures/refund.jsonl"])
        .current_dir(ROOT)
        .output()
        .expect("the program runs");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let line = text
        .lines()
        .find(|line| line.starts_with(r#"{"event":"finding""#))
        .expect("a finding");
    let mut written: Value = serde_json::from_str(line).expect("JSON");
    let names: BTreeSet<String> = shown
        .as_object()
        .expect("an object")
        .keys()
        .cloned()
        .collect();
    for value in [&mut shown, &mut written] {
        value["time"] = Value::Null;
        value["id"] = Value::Null;
    }
    assert_eq!(shown, written);
    let listed: BTreeSet<String> = first_cells(&section("Events")).into_iter().collect();
    let missing: Vec<_> = names.difference(&listed).collect();
    assert!(missing.is_empty(), "not in the table: {missing:?}");
}
