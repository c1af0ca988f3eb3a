//! The verifier against a second, naive one, and against itself on every path.

#[path = "support/generate.rs"]
mod generate;
#[path = "support/reference.rs"]
mod reference;

use std::sync::Arc;

use reference::Verdict;
use tracecheck::{Finding, Framer, Options, Report, Source, Verifier};

fn verify_in_pieces<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<Finding> {
    let source = Source {
        name: Arc::from("s"),
        origin: 7,
    };
    let mut verifier = Verifier::new(Options::default());
    let mut framer = Framer::new(16 << 20);
    let mut reports = Vec::new();
    for piece in pieces {
        framer.push(piece, |line| verifier.verify(line, &source, &mut reports));
    }
    framer.finish(|line| verifier.verify(line, &source, &mut reports));
    verifier.end_all(&mut reports);
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

#[test]
fn agrees_with_the_reference_on_generated_traces() {
    for seed in 0..3000 {
        assert_agrees(&generate::trace(seed), &format!("seed {seed}"));
    }
}

#[test]
fn agrees_with_the_reference_on_valid_traces() {
    for seed in 0..500 {
        assert_agrees(&generate::valid_trace(seed), &format!("seed {seed}"));
    }
}
