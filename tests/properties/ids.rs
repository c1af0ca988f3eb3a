//! Ids: the same finding has the same one, and no two findings share one.

use std::collections::HashMap;

use tracecheck::{Finding, Options, Verifier};

use crate::{findings, generate, read, source, verify_in_pieces, verify_with};

#[track_caller]
fn assert_unique(findings: &[Finding], what: &str) {
    let mut seen = HashMap::new();
    for finding in findings {
        if let Some(other) = seen.insert(finding.id, finding) {
            panic!("{what}: one id for\n{finding:#?}\nand\n{other:#?}");
        }
    }
}

/// Many traces one behind the other; the same ones come again.
fn crowd() -> Vec<u8> {
    let traces: Vec<_> = (0..600).chain(0..50).map(generate::trace).collect();
    traces.join(&b'\n')
}

#[test]
fn no_id_repeats_in_a_file() {
    let found = verify_in_pieces([&*crowd()]);
    assert!(found.len() > 2000, "{}", found.len());
    assert_unique(&found, "one trace");
}

/// A key that most records lack, or that some other check reads too, makes no finding twice.
#[test]
fn no_id_repeats_whatever_the_key() {
    for key in [
        "/seq",
        "/kind",
        "/content",
        "/content/agent/name",
        "/content/scheduling/declaration/agent/name",
        "/content/scheduling/requirements/capabilities/0/name",
        "/content/reason",
        "/none",
    ] {
        let options = Options {
            trace_key: Some(key.parse().expect("a pointer")),
            ..Options::default()
        };
        assert_unique(&verify_with(options, [&*crowd()]), key);
    }
}

#[test]
fn files_that_hold_the_same_have_ids_of_their_own() {
    let trace = crowd();
    let mut verifier = Verifier::default();
    let mut reports = Vec::new();
    for (name, origin) in [("a", 1), ("b", 2)] {
        read(
            &mut verifier,
            &source(name, origin),
            [&*trace],
            &mut reports,
        );
    }
    assert_unique(&findings(reports), "two files");
}
