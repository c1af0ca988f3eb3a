//! What must hold of every trace: the verifier against a second, naive one, and against itself on
//! every path that the bytes can take.

mod agreement;
mod ids;
mod json;
mod mutated;
mod neighbours;
mod paths;
#[cfg(feature = "cli")]
mod program_paths;
#[cfg(feature = "cli")]
mod saved;

#[path = "../support/generate.rs"]
mod generate;
#[cfg(feature = "cli")]
#[path = "../support/program.rs"]
mod program;
#[path = "../support/reference.rs"]
mod reference;

use std::sync::Arc;

use reference::Verdict;
use tracecheck::{Finding, Framer, Options, Report, Source, Verifier};

const MAX_RECORD_BYTES: usize = 16 << 20;

fn source(name: &str, origin: u128) -> Source {
    Source {
        name: Arc::from(name),
        origin,
        is_resumable: true,
    }
}

/// Findings of one whole trace that comes in these pieces.
fn verify_in_pieces<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<Finding> {
    verify_with(Options::default(), pieces)
}

fn verify_with<'a>(options: Options, pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<Finding> {
    let source = source("s", 7);
    let mut verifier = Verifier::new(options);
    let mut reports = Vec::new();
    read(&mut verifier, &source, pieces, &mut reports);
    verifier.end_all(&mut reports);
    findings(reports)
}

/// Reads a source to its end.
fn read<'a>(
    verifier: &mut Verifier,
    source: &Source,
    pieces: impl IntoIterator<Item = &'a [u8]>,
    reports: &mut Vec<Report>,
) {
    let mut framer = Framer::new(MAX_RECORD_BYTES);
    for piece in pieces {
        framer.push(piece, |line| verifier.verify(line, source, reports));
    }
    framer.finish(|line| verifier.verify(line, source, reports));
    verifier.end_source(source, reports);
}

fn findings(reports: Vec<Report>) -> Vec<Finding> {
    reports
        .into_iter()
        .filter_map(|report| match report {
            Report::Finding(finding) => Some(*finding),
            _ => None,
        })
        .collect()
}

fn verdicts(findings: &[Finding]) -> Vec<Verdict> {
    let mut verdicts: Vec<_> = findings
        .iter()
        .map(|finding| Verdict {
            line: finding.line,
            seq: finding.seq,
            code: finding.code.to_string(),
            pointer: finding.pointer.clone(),
            predicate: finding.predicate.clone(),
        })
        .collect();
    verdicts.sort();
    verdicts
}

#[track_caller]
fn assert_agrees(trace: &[u8], what: &str) {
    let (ours, theirs) = (
        verdicts(&verify_in_pieces([trace])),
        reference::verify(trace),
    );
    if ours != theirs {
        let only = |left: &[Verdict], right: &[Verdict]| {
            left.iter()
                .filter(|v| !right.contains(v))
                .cloned()
                .collect::<Vec<_>>()
        };
        panic!(
            "{what}\nonly ours: {:#?}\nonly the reference's: {:#?}\n{}",
            only(&ours, &theirs),
            only(&theirs, &ours),
            String::from_utf8_lossy(trace)
        );
    }
}

/// The choices of a test, from a seed: a generator of Lehmer's sort with 64 bits of state.
struct Choices(u64);

impl Choices {
    fn new(seed: u64) -> Self {
        Choices(seed.wrapping_mul(2).wrapping_add(1))
    }

    /// From 0 to one less than `limit`.
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(0xDA94_2042_E4DD_58B5);
        ((self.0 >> 32) as usize) % limit
    }
}
