//! `check KIND [FILE]`: what is wrong with one document.

use std::io::{self, Write};
use std::time::SystemTime;

use tracecheck::agui::{self, Capabilities};
use tracecheck::documents::{self, is_usable};
use tracecheck::finding::{Finding, Report};

use super::document::DocumentFile;
use super::{complain, finish_output};
use crate::cli::{CheckOptions, DocumentKind};
use crate::config::{self, Environment};
use crate::emit::sanitise::visible;
use crate::emit::{Emitter, Format};
use crate::exit::Status;

/// Checks a document, says what is wrong with it, and prints it if that is asked for.
pub(super) fn run(options: &CheckOptions, environment: &Environment) -> Status {
    let document = match DocumentFile::read(options.file.as_deref()) {
        Ok(document) => document,
        Err(problem) => {
            complain(format_args!("error: {problem}"));
            return Status::Failure;
        }
    };
    let findings = check(options, &document);
    let Some(format) = format(options, environment) else {
        complain(format_args!(
            "error: --format: a document's findings do not go to the journal; expected json or text"
        ));
        return Status::Failure;
    };
    let (mut out, mut err) = (io::stdout().lock(), io::stderr().lock());
    let written = if options.print {
        // Findings first: a document with errors is not printed, and here is why.
        let told = write_findings(&mut err, format, &findings);
        told.and(write_document(&mut out, options.kind, &document, &findings))
    } else {
        write_findings(&mut out, format, &findings)
            .and_then(|()| write_praise(&mut out, format, options.kind, &document, &findings))
    };
    let status = match is_usable(&findings) {
        true => Status::Success,
        false => Status::Findings,
    };
    finish_output(written, status)
}

fn check(options: &CheckOptions, document: &DocumentFile) -> Vec<Finding> {
    let (document, strict) = (document.named(), options.strict);
    match options.kind {
        DocumentKind::Requirements => {
            documents::check(documents::DocumentKind::Requirements, document, strict)
        }
        DocumentKind::Declaration => {
            documents::check(documents::DocumentKind::Declaration, document, strict)
        }
        DocumentKind::Capabilities => {
            // The strict layer says it of the members themselves.
            if !strict && agui::looks_like_a3(document) {
                complain(format_args!(
                    "note: nothing in `{}` is AG-UI's, and some of it is what A3 declarations \
                     have; for those: tracecheck check declaration",
                    visible(document.name, MAX_NAME_CHARS)
                ));
            }
            agui::check(document, strict)
        }
    }
}

/// How findings are written, by the stream that they go to; none for the journal.
fn format(options: &CheckOptions, environment: &Environment) -> Option<Format> {
    let stream = match options.print {
        true => Environment {
            stdout_is_terminal: environment.stderr_is_terminal,
            ..*environment
        },
        false => *environment,
    };
    match options.output.resolve(&stream) {
        (config::Format::Json, _) => Some(Format::Json),
        (config::Format::Text, color) => Some(Format::Text { color, quiet: true }),
        (config::Format::Journald(_), _) => None,
    }
}

fn write_findings(out: impl Write, format: Format, findings: &[Finding]) -> io::Result<()> {
    let mut emitter = Emitter::new(out, format, false, SystemTime::now);
    for finding in findings {
        emitter.report(&Report::Finding(Box::new(finding.clone())))?;
    }
    emitter.flush()
}

/// Tells a person, who would wonder at silence, that nothing is wrong.
fn write_praise(
    out: &mut impl Write,
    format: Format,
    kind: DocumentKind,
    document: &DocumentFile,
    findings: &[Finding],
) -> io::Result<()> {
    if format == Format::Json || !findings.is_empty() {
        return Ok(());
    }
    let what = match kind {
        DocumentKind::Requirements => "a well-formed requirements document",
        DocumentKind::Declaration => "a well-formed declaration",
        DocumentKind::Capabilities => "a well-formed AG-UI declaration",
    };
    writeln!(
        out,
        "{}: {what}",
        visible(document.named().name, MAX_NAME_CHARS)
    )?;
    out.flush()
}

fn write_document(
    out: &mut impl Write,
    kind: DocumentKind,
    document: &DocumentFile,
    findings: &[Finding],
) -> io::Result<()> {
    if !is_usable(findings) {
        return Ok(());
    }
    match kind {
        DocumentKind::Requirements | DocumentKind::Declaration => {
            out.write_all(document.named().trimmed())?;
        }
        DocumentKind::Capabilities => {
            let capabilities = Capabilities::read(document.named()).unwrap_or_default();
            out.write_all(capabilities.normalised().as_bytes())?;
        }
    }
    out.write_all(b"\n")?;
    out.flush()
}

/// Longest name that is shown.
const MAX_NAME_CHARS: usize = 1_000;
