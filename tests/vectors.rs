//! The conformance vectors, through the program, and the examples of the explanations.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tracecheck::explain::ExampleKind;
use tracecheck::{Code, Options, Verifier, explanation};

fn vectors_dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("vectors")
}

fn run(dir: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tracecheck"))
        .arg("vectors")
        .arg(dir)
        .output()
        .expect("the program runs")
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("UTF-8")
}

/// Every file below `dir`.
fn files_below(dir: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(dir).expect("readable") {
        let path = entry.expect("readable").path();
        match path.is_dir() {
            true => files.extend(files_below(&path)),
            false => files.push(path),
        }
    }
    files
}

/// The names of the files in `dir` that end in `end`, without it.
fn names(dir: &Path, end: &str) -> BTreeSet<String> {
    files_below(dir)
        .iter()
        .filter_map(|path| path.file_name()?.to_str()?.strip_suffix(end))
        .map(str::to_owned)
        .collect()
}

#[test]
fn every_vector_passes() {
    let output = run(&vectors_dir());
    assert_eq!(output.status.code(), Some(0), "{}", stdout(&output));
    assert!(output.stderr.is_empty(), "{output:?}");
}

/// Each directory, what the names of its vectors' files end in, and how many vectors it has at
/// least.
const SUITES: [(&str, &[&[&str]], usize); 3] = [
    ("capability-schema", &[&[".jsonl"]], 70),
    ("ag-ui", &[&[".json"]], 60),
    (
        "ag-ui-runs",
        &[
            &[".jsonl", ".declaration.json"],
            &[".sse", ".declaration.json"],
        ],
        60,
    ),
];

#[test]
fn every_file_belongs_to_a_vector_that_ran() {
    for (suite, forms, at_least) in SUITES {
        let dir = vectors_dir().join(suite);
        let expectations = names(&dir, ".expected.json");
        let mut files = 0;
        for name in &expectations {
            let is_there = |end: &&str| dir.join(format!("{name}{end}")).is_file();
            let form = forms.iter().find(|form| form.iter().all(is_there));
            files += 1 + form.expect(name).len();
        }
        assert_eq!(files_below(&dir).len(), files, "{suite}");
        let number = expectations.len();
        assert!(number >= at_least, "{suite}: {number}");
        let expected = format!("{number} vectors: {number} passed, 0 failed\n");
        assert_eq!(stdout(&run(&dir)), expected);
    }
    let suites = fs::read_dir(vectors_dir()).expect("readable").count();
    assert_eq!(suites, SUITES.len());
}

#[test]
fn the_vectors_of_section_9_are_there() {
    for (name, code) in NINE {
        let path = vectors_dir().join(format!("capability-schema/{name}.expected.json"));
        let text = fs::read(path).expect(name);
        let expectation: serde_json::Value = serde_json::from_slice(&text).expect(name);
        let findings = expectation["findings"].as_array().expect(name);
        let codes: Vec<_> = findings.iter().map(|finding| &finding["code"]).collect();
        assert_eq!(codes, Vec::from_iter(code), "{name}");
    }
}

/// What the schema lists as the initial vectors, in its order, and what each gives.
const NINE: [(&str, Option<&str>); 9] = [
    ("valid-placement", None),
    ("capability-not-declared", Some("E_CAPABILITY_UNMET")),
    ("capability-wrong-major", Some("E_CAPABILITY_UNMET")),
    ("clearance-not-held", Some("E_CLEARANCE_UNMET")),
    ("residency-not-satisfied", Some("E_RESIDENCY_UNMET")),
    ("explanation-missing-predicate", Some("E_EXPLANATION")),
    ("chosen-among-failed", Some("E_EXPLANATION")),
    ("declaration-other-agent", Some("E_DECLARATION_SCOPE")),
    ("rejection-names-no-predicate", Some("E_REJECTION_REASON")),
];

#[test]
fn what_differs_is_said() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let copy = |name: &str| {
        let from = vectors_dir().join("capability-schema").join(name);
        let text = fs::read_to_string(from).expect("readable");
        (dir.path().join(name), text)
    };
    for name in [
        "clearance-not-held",
        "valid-placement",
        "chosen-among-failed",
    ] {
        for end in [".jsonl", ".expected.json"] {
            let (path, text) = copy(&format!("{name}{end}"));
            fs::write(path, text).expect("written");
        }
    }
    assert_eq!(run(dir.path()).status.code(), Some(0));

    let (path, text) = copy("clearance-not-held.expected.json");
    fs::write(path, text.replace("E_CLEARANCE_UNMET", "E_TOOL_UNMET")).expect("written");
    let (path, text) = copy("valid-placement.expected.json");
    fs::write(path, text.replace("\"findings\"", "\"finding\"")).expect("written");
    fs::remove_file(dir.path().join("chosen-among-failed.jsonl")).expect("removed");
    fs::create_dir(dir.path().join("more")).expect("made");
    fs::write(dir.path().join("more/notes\x1b.txt"), "").expect("written");
    let output = run(dir.path());
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    for part in [
        "FAILED chosen-among-failed: there is no trace",
        "FAILED clearance-not-held (",
        "\n  missing     line 3, seq 3, E_TOOL_UNMET clearance:",
        "\n  unexpected  line 3, seq 3, E_CLEARANCE_UNMET clearance:",
        "FAILED valid-placement: valid-placement.expected.json: unknown field `finding`",
        "1 file belongs to no vector:\n  more/notes\\u{1b}.txt\n",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    assert!(
        text.ends_with("\n3 vectors: 0 passed, 3 failed\n"),
        "{text}"
    );
}

#[test]
fn a_changed_message_is_a_difference() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let from = vectors_dir().join("capability-schema");
    let name = "clearance-not-held";
    fs::copy(
        from.join(format!("{name}.jsonl")),
        dir.path().join("v.jsonl"),
    )
    .expect("copied");
    let text = fs::read_to_string(from.join(format!("{name}.expected.json"))).expect("readable");
    let text = text.replace("does not hold", "holds no");
    fs::write(dir.path().join("v.expected.json"), text).expect("written");
    let output = run(dir.path());
    assert_eq!(output.status.code(), Some(1));
    assert!(stdout(&output).contains("the agent holds no clearance"));
}

#[test]
fn no_vectors_is_a_failure() {
    let dir = tempfile::tempdir().expect("temporary directory");
    for path in [dir.path(), Path::new("/nowhere/vectors")] {
        let output = run(path);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(message.contains(&*path.to_string_lossy()), "{message}");
    }
}

#[test]
fn each_explanation_has_an_example_of_its_code() {
    for &code in Code::ALL {
        let explanation = explanation(code);
        if explanation.example_kind != ExampleKind::Trace {
            continue;
        }
        let whole_traces = match explanation.example_options {
            [] => true,
            ["--follow"] => false,
            other => panic!("{code}: what do {other:?} mean to a verifier?"),
        };
        let mut verifier = Verifier::new(Options {
            whole_traces,
            ..Options::default()
        });
        let mut findings = Vec::new();
        for line in explanation.example.lines() {
            findings.extend(verifier.push(line.as_bytes()));
        }
        findings.extend(verifier.finish());
        let codes: BTreeSet<Code> = findings.iter().map(|finding| finding.code).collect();
        assert_eq!(codes, BTreeSet::from([code]));
    }
}
