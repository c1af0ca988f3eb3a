//! `NAME.expected.json`, read strictly: a misspelt member would expect nothing.

use std::fmt;
use std::num::NonZeroU64;

use serde::de::{Deserialize, Deserializer, Error};
use tracecheck::Code;
use tracecheck::finding::{Finding, Severity};

/// What a verifier finds in a trace.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Expectation {
    /// What the vector is about, in a sentence.
    pub(super) description: String,
    /// The rule that it is about.
    pub(super) rule: String,
    /// The errors, in no order.
    pub(super) findings: Vec<ExpectedFinding>,
}

/// An error that is expected.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ExpectedFinding {
    line: NonZeroU64,
    #[serde(deserialize_with = "there_or_null")]
    seq: Option<u64>,
    #[serde(deserialize_with = "error_code")]
    code: Code,
    #[serde(deserialize_with = "there_or_null")]
    predicate: Option<String>,
    /// Compared where it is given.
    #[serde(default, deserialize_with = "given")]
    pointer: Option<String>,
    /// The whole sentence; compared where it is given.
    #[serde(default, deserialize_with = "given")]
    message: Option<String>,
}

impl Expectation {
    /// Reads the text of an expectation.
    pub(super) fn read(text: &[u8]) -> Result<Expectation, serde_json::Error> {
        let expectation: Expectation = serde_json::from_slice(text)?;
        for (member, text) in [
            ("description", &expectation.description),
            ("rule", &expectation.rule),
        ] {
            if text.is_empty() {
                return Err(Error::custom(format_args!("`{member}` is empty")));
            }
        }
        Ok(expectation)
    }
}

impl ExpectedFinding {
    /// Whether a finding is the one that is expected.
    pub(super) fn is(&self, finding: &Finding) -> bool {
        self.line.get() == finding.line
            && self.seq == finding.seq
            && self.code == finding.code
            && self.predicate == finding.predicate
            && self.pointer.as_ref().is_none_or(|p| *p == finding.pointer)
            && self
                .message
                .as_ref()
                .is_none_or(|message| *message == finding.sentence())
    }

    /// How much of a finding is told: one that tells more has the first choice among findings.
    pub(super) fn precision(&self) -> usize {
        usize::from(self.pointer.is_some()) + usize::from(self.message.is_some())
    }
}

/// `line 3, seq 3, E_CLEARANCE_UNMET clearance:orders.read at /content/…: the agent …`
impl fmt::Display for ExpectedFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (pointer, message) = (self.pointer.as_deref(), self.message.as_deref());
        let predicate = self.predicate.as_deref();
        Shown(
            self.line.get(),
            self.seq,
            self.code,
            predicate,
            pointer,
            message,
        )
        .fmt(f)
    }
}

/// A finding as an expectation of it would be shown.
pub(super) fn shown(finding: &Finding) -> String {
    let (pointer, sentence) = (finding.pointer.as_str(), finding.sentence());
    let predicate = finding.predicate.as_deref();
    let (line, seq, code) = (finding.line, finding.seq, finding.code);
    Shown(line, seq, code, predicate, Some(pointer), Some(&sentence)).to_string()
}

struct Shown<'a>(
    u64,
    Option<u64>,
    Code,
    Option<&'a str>,
    Option<&'a str>,
    Option<&'a str>,
);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shown(line, seq, code, predicate, pointer, message) = self;
        write!(f, "line {line}, ")?;
        match seq {
            Some(seq) => write!(f, "seq {seq}, {code}")?,
            None => write!(f, "no seq, {code}")?,
        }
        if let Some(predicate) = predicate {
            write!(f, " {predicate}")?;
        }
        match pointer {
            Some("") => write!(f, " (whole line)")?,
            Some(pointer) => write!(f, " at {pointer}")?,
            None => {}
        }
        match message {
            Some(message) => write!(f, ": {message}"),
            None => Ok(()),
        }
    }
}

/// A member that must be there, `null` or not.
fn there_or_null<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    Option::deserialize(deserializer)
}

/// A member that may be missing and may not be `null`.
fn given<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    String::deserialize(deserializer).map(Some)
}

fn error_code<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Code, D::Error> {
    let name = String::deserialize(deserializer)?;
    Code::from_name(&name)
        .filter(|code| code.severity() == Severity::Error)
        .ok_or_else(|| Error::custom(format_args!("`{name}` is no code of an error")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(finding: &str) -> Result<Expectation, serde_json::Error> {
        let text = format!(r#"{{"description":"d","rule":"R1","findings":[{finding}]}}"#);
        Expectation::read(text.as_bytes())
    }

    #[test]
    fn what_is_expected_is_read() {
        for finding in [
            r#"{"line":1,"seq":null,"code":"E_STRUCTURE","predicate":null}"#,
            r#"{"line":1,"seq":18446744073709551615,"code":"E_TOOL_UNMET","predicate":"tool:t"}"#,
            r#"{"line":1,"seq":0,"code":"E_STRUCTURE","predicate":null,"pointer":"","message":"m"}"#,
        ] {
            let read = read(finding).expect(finding);
            assert_eq!(read.findings.len(), 1);
        }
        let shown = read(r#"{"line":2,"seq":3,"code":"E_TOOL_UNMET","predicate":"tool:t"}"#);
        assert_eq!(
            shown.expect("valid").findings[0].to_string(),
            "line 2, seq 3, E_TOOL_UNMET tool:t"
        );
    }

    #[test]
    fn whatever_is_not_understood_is_refused() {
        for finding in [
            "{}",
            r#"{"line":0,"seq":1,"code":"E_STRUCTURE","predicate":null}"#,
            r#"{"line":1,"seq":1.0,"code":"E_STRUCTURE","predicate":null}"#,
            r#"{"line":1,"code":"E_STRUCTURE","predicate":null}"#,
            r#"{"line":1,"seq":1,"code":"E_STRUCTURE"}"#,
            r#"{"line":1,"seq":1,"code":"E_NONE","predicate":null}"#,
            r#"{"line":1,"seq":1,"code":"W_NULL","predicate":null}"#,
            r#"{"line":1,"seq":1,"code":"E_STRUCTURE","predicate":null,"pointer":null}"#,
            r#"{"line":1,"seq":1,"code":"E_STRUCTURE","predicate":null,"pointers":""}"#,
            r#"{"line":1,"line":1,"seq":1,"code":"E_STRUCTURE","predicate":null}"#,
        ] {
            assert!(read(finding).is_err(), "{finding}");
        }
        for text in [
            "",
            "[]",
            r#"{"description":"d","rule":"R1"}"#,
            r#"{"description":"","rule":"R1","findings":[]}"#,
            r#"{"description":"d","rule":"","findings":[]}"#,
            r#"{"description":"d","rule":"R1","findings":[]} {}"#,
            r#"{"description":"d","rule":"R1","findings":[],"finding":[]}"#,
        ] {
            assert!(Expectation::read(text.as_bytes()).is_err(), "{text}");
        }
    }
}
