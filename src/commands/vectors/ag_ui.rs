//! Vectors of AG-UI: declarations by themselves, and streams held against one.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::num::NonZeroU64;
use std::path::Path;
use std::sync::Arc;

use serde::de::{Deserialize, Deserializer, Error};
use tracecheck::agui::{self, Capabilities, EventFramer, RunChecker};
use tracecheck::documents::NamedText;
use tracecheck::finding::{Finding, Report, Source};
use tracecheck::{Code, Filter};

use super::compare::{Difference, compare};
use crate::config::DEFAULT_RECORD_BYTES;

/// What each layer finds in a declaration.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct DeclarationExpectation {
    description: String,
    consumer: Vec<Expected>,
    strict: Vec<Expected>,
}

/// What is found in a stream.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct RunExpectation {
    description: String,
    findings: Vec<ExpectedAtLine>,
}

/// A finding in a declaration.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Expected {
    #[serde(deserialize_with = "code")]
    code: Code,
    pointer: String,
}

/// A finding in a stream.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct ExpectedAtLine {
    line: NonZeroU64,
    #[serde(deserialize_with = "code")]
    code: Code,
    pointer: String,
}

fn code<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Code, D::Error> {
    let name = String::deserialize(deserializer)?;
    Code::from_name(&name).ok_or_else(|| Error::custom(format_args!("`{name}` is no code")))
}

impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.code, place(&self.pointer))
    }
}

impl fmt::Display for ExpectedAtLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "line {}, {}{}",
            self.line,
            self.code,
            place(&self.pointer)
        )
    }
}

fn place(pointer: &str) -> String {
    match pointer {
        "" => " (the whole)".to_owned(),
        pointer => format!(" at {pointer}"),
    }
}

/// Checks a declaration in both layers.
///
/// # Errors
///
/// What differs.
pub(super) fn run_declaration(text: &[u8], expectation: &[u8]) -> Result<(), Difference> {
    let expected: DeclarationExpectation = read(expectation)?;
    for (layer, strict, findings) in [
        ("consumer layer", false, &expected.consumer),
        ("strict layer", true, &expected.strict),
    ] {
        let document = NamedText {
            name: "declaration",
            text,
        };
        let found = agui::check(document, strict);
        let about = format!("{layer}: {}", expected.description);
        let is = |expected: &Expected, found: &Finding| {
            expected.code == found.code && expected.pointer == found.pointer
        };
        compare(about, findings.iter().collect(), is, found)?;
    }
    Ok(())
}

/// Holds a stream against a declaration; against none, where it is malformed.
///
/// # Errors
///
/// What differs.
pub(super) fn run_stream(
    stream: &Path,
    declaration: &[u8],
    expectation: &[u8],
) -> Result<(), Difference> {
    let expected: RunExpectation = read(expectation)?;
    let document = NamedText {
        name: "declaration",
        text: declaration,
    };
    let capabilities = Capabilities::read(document).unwrap_or_default();
    let found = check(stream, &capabilities)
        .map_err(|error| Difference::CannotRun(format!("the stream: {error}")))?;
    let is = |expected: &ExpectedAtLine, found: &Finding| {
        expected.line.get() == found.line
            && expected.code == found.code
            && expected.pointer == found.pointer
    };
    compare(
        expected.description,
        expected.findings.iter().collect(),
        is,
        found,
    )
}

fn read<'t, T: Deserialize<'t>>(expectation: &'t [u8]) -> Result<T, Difference> {
    serde_json::from_slice(expectation)
        .map_err(|error| Difference::CannotRun(format!("the expectation: {error}")))
}

/// Reads a stream as a run would, piece by piece.
fn check(path: &Path, capabilities: &Capabilities) -> io::Result<Vec<Finding>> {
    let source = Source {
        name: Arc::from("stream"),
        origin: 0,
        is_resumable: false,
    };
    let mut file = File::open(path)?;
    let mut framer = EventFramer::new(DEFAULT_RECORD_BYTES);
    let mut checker = RunChecker::new(capabilities, Filter::default());
    let mut reports = Vec::new();
    let mut piece = vec![0; 64 * 1024];
    loop {
        let length = file.read(&mut piece)?;
        if length == 0 {
            break;
        }
        framer.push(&piece[..length], |event| {
            checker.check(event, &source, &mut reports)
        });
    }
    framer.finish(|event| checker.check(event, &source, &mut reports));
    checker.end_all(&mut reports);
    Ok(reports
        .into_iter()
        .filter_map(Report::into_finding)
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_layers_of_a_declaration_count() {
        let text = br#"{"tools":{"supported":1,"x":1}}"#;
        let expectation = |strict: &str| {
            format!(
                r#"{{"description":"d","consumer":[{{"code":"E_DECLARATION_MALFORMED","pointer":"/tools/supported"}}],
                "strict":[{{"code":"E_DECLARATION_MALFORMED","pointer":"/tools/supported"}}{strict}]}}"#
            )
        };
        let right = expectation(r#",{"code":"E_DECLARATION_UNRECOGNISED","pointer":"/tools/x"}"#);
        run_declaration(text, right.as_bytes()).expect("as expected");
        let Err(Difference::Findings {
            about, unexpected, ..
        }) = run_declaration(text, expectation("").as_bytes())
        else {
            panic!("it differs");
        };
        assert_eq!(about, "strict layer: d");
        assert_eq!(unexpected.len(), 1);
        let more = right.replace("\"strict\"", "\"more\":[],\"strict\"");
        assert!(matches!(
            run_declaration(text, more.as_bytes()),
            Err(Difference::CannotRun(_))
        ));
    }

    #[test]
    fn a_stream_is_held_against_its_declaration() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let stream = dir.path().join("v.sse");
        std::fs::write(&stream, "data: {\"type\":\"STATE_DELTA\"}\n\n").expect("written");
        let expectation = br#"{"description":"d","findings":
            [{"line":1,"code":"W_CAPABILITY","pointer":"/state/deltas"}]}"#;
        let declares = |text: &str| run_stream(&stream, text.as_bytes(), expectation);
        declares(r#"{"state":{"deltas":false}}"#).expect("as expected");
        for other in ["{}", r#"{"state":{"deltas":false,"memory":null}}"#] {
            let Err(Difference::Findings { missing, .. }) = declares(other) else {
                panic!("it differs");
            };
            assert_eq!(missing, ["line 1, W_CAPABILITY at /state/deltas"]);
        }
    }
}
