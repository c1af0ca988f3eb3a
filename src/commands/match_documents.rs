//! `match REQUIREMENTS DECLARATION`: what is asked for against what is declared.

use std::io::{self, Write};
use std::path::Path;
use std::time::SystemTime;

use tracecheck::documents::{Match, Matching, Outcome, match_documents};
use tracecheck::finding::Report;

use super::document::{DocumentFile, is_stdin};
use super::{complain, finish_output};
use crate::cli::OutputOptions;
use crate::config::Environment;
use crate::emit::sanitise::visible;
use crate::emit::{Emitter, Format};
use crate::exit::Status;

/// Matches two documents and writes a line for each predicate.
pub(super) fn run(requirements: &Path, declaration: &Path, environment: &Environment) -> Status {
    let read = read_both(requirements, declaration);
    let (requirements, declaration) = match read {
        Ok(documents) => documents,
        Err(problem) => {
            complain(format_args!("error: {problem}"));
            return Status::Failure;
        }
    };
    let matching = match_documents(requirements.named(), declaration.named());
    let color = OutputOptions::default().colors_diagnostics(environment);
    let findings = write_findings(&mut io::stderr().lock(), color, &matching);
    let matches = write_matches(&mut io::stdout().lock(), &matching.matches);
    if matching.asks_nothing() {
        complain(format_args!(
            "the requirements ask for nothing: any agent is eligible"
        ));
    }
    let status = match matching.holds() {
        true => Status::Success,
        false => Status::Findings,
    };
    finish_output(findings.and(matches), status)
}

fn read_both(
    requirements: &Path,
    declaration: &Path,
) -> Result<(DocumentFile, DocumentFile), String> {
    if is_stdin(requirements) && is_stdin(declaration) {
        return Err("only one of the documents can be read from standard input".to_owned());
    }
    Ok((
        DocumentFile::read(Some(requirements))?,
        DocumentFile::read(Some(declaration))?,
    ))
}

fn write_findings(out: impl Write, color: bool, matching: &Matching) -> io::Result<()> {
    let format = Format::Text { color, quiet: true };
    let mut emitter = Emitter::new(out, format, false, SystemTime::now);
    let findings = &matching.requirements_findings;
    for finding in findings.iter().chain(&matching.declaration_findings) {
        emitter.report(&Report::Finding(Box::new(finding.clone())))?;
    }
    emitter.flush()
}

/// Longest predicate that others are aligned with; longer ones push their reason out of line.
const MAX_ALIGNED_CHARS: usize = 48;

/// Longest predicate and longest reason that are shown.
const MAX_SHOWN_CHARS: usize = 1_000;

fn write_matches(out: &mut impl Write, matches: &[Match]) -> io::Result<()> {
    let predicates: Vec<String> = matches
        .iter()
        .map(|found| visible(&found.predicate.to_string(), MAX_SHOWN_CHARS).to_string())
        .collect();
    let widths = predicates.iter().map(|text| text.chars().count());
    let width = widths.filter(|&width| width <= MAX_ALIGNED_CHARS).max();
    let width = width.unwrap_or_default();
    for (found, predicate) in matches.iter().zip(predicates) {
        let (word, reason) = match &found.outcome {
            Outcome::Satisfied => ("satisfied", None),
            Outcome::Unmet { holdings, .. } => ("unmet", Some(&**holdings)),
            Outcome::Undecided => (
                "undecided",
                Some("what the declaration says of it could not be read"),
            ),
        };
        match reason {
            None => writeln!(out, "{word:9}  {predicate}")?,
            Some(reason) => {
                let reason = visible(reason, MAX_SHOWN_CHARS);
                writeln!(out, "{word:9}  {predicate:width$}  ({reason})")?;
            }
        }
    }
    out.flush()
}

#[cfg(test)]
mod tests {
    use tracecheck::documents::NamedText;

    use super::*;

    fn named(text: &str) -> NamedText<'_> {
        NamedText {
            name: "d",
            text: text.as_bytes(),
        }
    }

    fn written(requirements: &str, declaration: &str) -> String {
        let matching = match_documents(named(requirements), named(declaration));
        let mut out = Vec::new();
        write_matches(&mut out, &matching.matches).expect("written");
        String::from_utf8(out).expect("UTF-8")
    }

    #[test]
    fn predicates_are_aligned_and_reasons_given() {
        let requirements = r#"{"capabilities":[{"name":"order.investigate","version":2}],
            "clearances":["orders.read"],"tools":["t"],"residency":"eu"}"#;
        let declaration = r#"{"v":"1.0","agent":{"name":"a","namespace":"n"},
            "capabilities":[{"name":"order.investigate","version":2}],"clearances":[],"tools":1,
            "residency":["us"]}"#;
        assert_eq!(
            written(requirements, declaration),
            "satisfied  capability:order.investigate/2\n\
             unmet      clearance:orders.read           (the declaration's `clearances`: none)\n\
             undecided  tool:t                          (what the declaration says of it could not be read)\n\
             unmet      residency:eu                    (the declaration's `residency`: us)\n"
        );
    }

    #[test]
    fn hostile_text_is_made_visible() {
        let requirements = r#"{"tools":["a\u001b[2J\nb"]}"#;
        let declaration = r#"{"v":"1.0","agent":{"name":"a","namespace":"n"},"capabilities":[],
            "clearances":[],"tools":["\u202ec\u0007"]}"#;
        let text = written(requirements, declaration);
        assert_eq!(
            text,
            "unmet      tool:a\\u{1b}[2J\\nb  (the declaration's `tools`: \\u{202e}c\\u{7})\n"
        );
    }

    #[test]
    fn a_long_predicate_does_not_push_the_others() {
        let long = "x".repeat(300);
        let requirements = format!(r#"{{"tools":["{long}","y"]}}"#);
        let text = written(&requirements, "1");
        assert!(
            text.ends_with(
                "undecided  tool:y  (what the declaration says of it could not be read)\n"
            )
        );
    }
}
