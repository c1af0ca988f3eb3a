//! `vectors DIR`: the conformance vectors in a directory and below it.
//!
//! A vector is a trace `NAME.jsonl`, a declaration of AG-UI `NAME.json`, or a stream of its events
//! (`NAME.jsonl` or `NAME.sse`) with the `NAME.declaration.json` that it is held against; and beside
//! it `NAME.expected.json`, which says what is found in it. Anything else there counts as a failure: a
//! vector that does not run because of its name is worse than none.

mod ag_ui;
mod compare;
mod expectation;
mod find;

use std::io::{self, Write};
use std::path::Path;

use self::compare::{Difference, run_vector};
use self::find::{Suite, Vector};
use super::{complain, finish_output};
use crate::emit::sanitise::visible;
use crate::exit::Status;

/// Runs the vectors and says which ones differ, and how.
pub(super) fn run(dir: &Path) -> Status {
    let suite = match Suite::find(dir) {
        Ok(suite) => suite,
        Err(problem) => {
            complain(format_args!("error: {problem}"));
            return Status::Failure;
        }
    };
    let mut out = io::BufWriter::new(io::stdout().lock());
    let run = run_suite(&suite, &mut out);
    let failed = run.as_ref().is_ok_and(|&failed| failed);
    let written = run.and_then(|_| out.flush());
    if written.is_err() {
        let _ = out.into_parts();
    }
    let status = if suite.vectors.is_empty() {
        complain(format_args!(
            "error: no vectors in `{}`: expected NAME.jsonl and NAME.expected.json",
            dir.display()
        ));
        Status::Failure
    } else if failed {
        Status::Findings
    } else {
        Status::Success
    };
    finish_output(written, status)
}

/// Writes what fails and the totals; gives whether anything failed.
fn run_suite(suite: &Suite, out: &mut impl Write) -> io::Result<bool> {
    let mut failed = 0_usize;
    for vector in &suite.vectors {
        if let Err(difference) = run_vector(vector) {
            failed += 1;
            write_failure(vector, &difference, out)?;
        }
    }
    write_stray(&suite.stray, out)?;
    let total = suite.vectors.len();
    let passed = total - failed;
    writeln!(out, "{total} vectors: {passed} passed, {failed} failed")?;
    Ok(failed > 0 || !suite.stray.is_empty())
}

/// Longest name or finding that is shown; a message has a few hundred characters.
const MAX_SHOWN_CHARS: usize = 1_000;

fn write_failure(vector: &Vector, difference: &Difference, out: &mut impl Write) -> io::Result<()> {
    let name = visible(&vector.name, MAX_SHOWN_CHARS);
    match difference {
        Difference::CannotRun(problem) => {
            writeln!(out, "FAILED {name}: {}", visible(problem, MAX_SHOWN_CHARS))
        }
        Difference::Findings {
            about,
            missing,
            unexpected,
        } => {
            writeln!(out, "FAILED {name} ({})", visible(about, MAX_SHOWN_CHARS))?;
            let missing = missing.iter().map(|finding| ("missing", finding));
            let unexpected = unexpected.iter().map(|finding| ("unexpected", finding));
            for (word, finding) in missing.chain(unexpected) {
                writeln!(out, "  {word:10}  {}", visible(finding, MAX_SHOWN_CHARS))?;
            }
            Ok(())
        }
    }
}

fn write_stray(stray: &[String], out: &mut impl Write) -> io::Result<()> {
    const MAX_LISTED: usize = 20;
    match stray.len() {
        0 => return Ok(()),
        1 => writeln!(out, "1 file belongs to no vector:")?,
        several => writeln!(out, "{several} files belong to no vector:")?,
    }
    for name in stray.iter().take(MAX_LISTED) {
        writeln!(out, "  {}", visible(name, MAX_SHOWN_CHARS))?;
    }
    match stray.len().saturating_sub(MAX_LISTED) {
        0 => Ok(()),
        more => writeln!(out, "  and {more} more"),
    }
}
