//! Runs one vector, and compares what is found with what is expected.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use tracecheck::finding::{Finding, Report, Severity, Source};
use tracecheck::{Framer, Verifier};

use super::ag_ui;
use super::expectation::{Expectation, ExpectedFinding, shown};
use super::find::{Subject, Vector};
use crate::config::DEFAULT_RECORD_BYTES;

/// Why a vector does not pass.
#[derive(Debug)]
pub(super) enum Difference {
    /// It could not be run.
    CannotRun(String),
    /// It was run and found other errors than expected; each list in the order of the trace.
    Findings {
        /// The vector's rule and description.
        about: String,
        missing: Vec<String>,
        unexpected: Vec<String>,
    },
}

/// Runs a vector with all options at their defaults.
///
/// # Errors
///
/// What differs.
pub(super) fn run_vector(vector: &Vector) -> Result<(), Difference> {
    let subject = vector.subject().map_err(cannot_run)?;
    let expectation = vector.expectation.as_deref();
    let Some(expectation) = expectation else {
        return Err(cannot_run("there is no NAME.expected.json beside it"));
    };
    let expected = read(expectation)?;
    match subject {
        Subject::Trace(trace) => run_trace(trace, &expected, expectation),
        Subject::Declaration(declaration) => ag_ui::run_declaration(&read(declaration)?, &expected),
        Subject::Stream {
            events,
            declaration,
        } => ag_ui::run_stream(events, &read(declaration)?, &expected),
    }
}

fn run_trace(trace: &Path, expected: &[u8], expectation: &Path) -> Result<(), Difference> {
    let expected = Expectation::read(expected).map_err(|error| unreadable(expectation, &error))?;
    let mut found = verify(trace).map_err(|error| unreadable(trace, &error))?;
    found.retain(|finding| finding.severity() == Severity::Error);
    let mut by_precision: Vec<&ExpectedFinding> = expected.findings.iter().collect();
    by_precision.sort_by_key(|finding| std::cmp::Reverse(finding.precision()));
    let about = format!("{}: {}", expected.rule, expected.description);
    compare(about, by_precision, ExpectedFinding::is, found)
}

fn read(path: &Path) -> Result<Vec<u8>, Difference> {
    fs::read(path).map_err(|error| unreadable(path, &error))
}

fn unreadable(path: &Path, error: &dyn std::fmt::Display) -> Difference {
    cannot_run(&format!("{}: {error}", file_name(path)))
}

fn cannot_run(problem: &str) -> Difference {
    Difference::CannotRun(problem.to_owned())
}

fn file_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or(path.as_os_str());
    name.to_string_lossy().into_owned()
}

/// Verifies a file as a run would, piece by piece.
fn verify(path: &Path) -> io::Result<Vec<Finding>> {
    let source = Source {
        name: Arc::from("trace"),
        origin: 0,
        is_resumable: false,
    };
    let mut file = File::open(path)?;
    let mut framer = Framer::new(DEFAULT_RECORD_BYTES);
    let mut verifier = Verifier::default();
    let mut reports = Vec::new();
    let mut piece = vec![0; 64 * 1024];
    loop {
        let length = file.read(&mut piece)?;
        if length == 0 {
            break;
        }
        framer.push(&piece[..length], |line| {
            verifier.verify(line, &source, &mut reports)
        });
    }
    framer.finish(|line| verifier.verify(line, &source, &mut reports));
    verifier.end_all(&mut reports);
    let findings = reports.into_iter().filter_map(Report::into_finding);
    Ok(findings.collect())
}

/// Compares what is expected, the most precise first, with what was found, without order.
pub(super) fn compare<E: std::fmt::Display>(
    about: String,
    expected: Vec<&E>,
    is: impl Fn(&E, &Finding) -> bool,
    mut unexpected: Vec<Finding>,
) -> Result<(), Difference> {
    let mut missing = Vec::new();
    for finding in expected {
        match unexpected.iter().position(|found| is(finding, found)) {
            Some(index) => drop(unexpected.remove(index)),
            None => missing.push(finding.to_string()),
        }
    }
    if missing.is_empty() && unexpected.is_empty() {
        return Ok(());
    }
    Err(Difference::Findings {
        about,
        missing,
        unexpected: unexpected.iter().map(shown).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = r#"{"seq":1,"kind":"k"}
{"seq":1,"kind":"k"}
{"seq":"2","kind":null}
"#;

    fn run(trace: &str, findings: &str) -> Result<(), Difference> {
        let dir = tempfile::tempdir().expect("temporary directory");
        let (trace_path, expectation) = (dir.path().join("v.jsonl"), dir.path().join("v.json"));
        fs::write(&trace_path, trace).expect("written");
        let text = format!(r#"{{"description":"d","rule":"R1","findings":[{findings}]}}"#);
        fs::write(&expectation, text).expect("written");
        run_vector(&Vector {
            name: "v".to_owned(),
            lines: Some(trace_path),
            expectation: Some(expectation),
            ..Vector::default()
        })
    }

    fn structure(line: u64, seq: &str, more: &str) -> String {
        format!(r#"{{"line":{line},"seq":{seq},"code":"E_STRUCTURE","predicate":null{more}}}"#)
    }

    #[test]
    fn order_does_not_matter_and_advisories_do_not_count() {
        let (a, b) = (structure(2, "1", ""), structure(3, "null", ""));
        let c = structure(3, "null", r#","pointer":"/seq""#);
        for findings in [[&a, &b, &c], [&c, &b, &a], [&b, &c, &a]] {
            let findings = findings.map(String::as_str).join(",");
            assert!(run(TRACE, &findings).is_ok());
        }
        let gap = "{\"seq\":1,\"kind\":\"k\"}\n{\"seq\":9,\"kind\":\"k\"}\n";
        assert!(run(gap, "").is_ok());
        assert!(run("", "").is_ok());
    }

    #[test]
    fn what_differs_is_told() {
        let kind = structure(3, "null", r#","pointer":"/kind""#);
        let findings = [structure(2, "2", ""), kind.clone(), kind].join(",");
        let Err(Difference::Findings {
            about,
            missing,
            unexpected,
        }) = run(TRACE, &findings)
        else {
            panic!("it differs");
        };
        assert_eq!(about, "R1: d");
        assert_eq!(
            missing,
            [
                "line 3, no seq, E_STRUCTURE at /kind",
                "line 2, seq 2, E_STRUCTURE"
            ]
        );
        assert_eq!(unexpected.len(), 2);
        assert!(unexpected[0].starts_with("line 2, seq 1, E_STRUCTURE at /seq: `seq` is 1"));
        assert!(unexpected[1].starts_with("line 3, no seq, E_STRUCTURE at /seq: "));
    }

    #[test]
    fn half_a_vector_cannot_be_run() {
        for (trace, expectation) in [(Some("x"), None), (None, Some("x")), (Some("x"), Some("x"))] {
            let vector = Vector {
                name: "v".to_owned(),
                lines: trace.map(Into::into),
                expectation: expectation.map(Into::into),
                ..Vector::default()
            };
            let result = run_vector(&vector);
            assert!(
                matches!(result, Err(Difference::CannotRun(_))),
                "{result:?}"
            );
        }
        assert!(matches!(
            run("", r#"{"line":1}"#),
            Err(Difference::CannotRun(_))
        ));
    }
}
