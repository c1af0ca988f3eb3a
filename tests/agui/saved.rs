//! A checker whose runs were saved and read back says what it would have said.

use std::convert::Infallible;

use proptest::prelude::*;
use tracecheck::agui::{Capabilities, EventFramer, RestoredRun, RunChecker, SAVED_FORMAT};
use tracecheck::framing::Position;
use tracecheck::{Filter, Report, Source};
use xxhash_rust::xxh3::xxh3_64;

use crate::streams::{capabilities, declaration, event, lines, server_sent};

const MAX_EVENT_BYTES: usize = 1 << 20;

fn save(checker: &RunChecker) -> Vec<Vec<u8>> {
    let mut runs = Vec::new();
    let saved = checker.save_runs(|run| -> Result<(), Infallible> {
        runs.push(postcard::to_stdvec(&run).expect("a form"));
        Ok(())
    });
    saved.expect("infallible");
    runs
}

fn restore(capabilities: &Capabilities, runs: &[Vec<u8>]) -> RunChecker {
    let mut checker = RunChecker::new(capabilities, Filter::default());
    for bytes in runs {
        let run: RestoredRun = postcard::from_bytes(bytes).expect("what was written");
        checker.restore_run(run);
    }
    checker
}

fn file(name: &str) -> Source {
    Source {
        name: name.into(),
        origin: 7,
        is_resumable: true,
    }
}

/// Two sources that are read a piece in turn.
struct Reading<'t> {
    texts: [&'t [u8]; 2],
    positions: [Position; 2],
    reports: Vec<Report>,
}

impl Reading<'_> {
    /// Reads both sources up to such a part of them, with `framers` that are where they were left.
    fn read(
        &mut self,
        checker: &mut RunChecker,
        framers: &mut [EventFramer; 2],
        part: usize,
        parts: usize,
    ) {
        for (index, framer) in framers.iter_mut().enumerate() {
            let text = self.texts[index];
            let from = usize::try_from(self.positions[index].read_from()).expect("short");
            let to = text.len() * part / parts;
            let source = file(["a", "b"][index]);
            framer.push(&text[from..to.max(from)], |event| {
                checker.check(event, &source, &mut self.reports);
            });
            self.positions[index] = framer.position();
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn runs_go_on_wherever_they_are_cut(
        declaration in declaration(),
        events in prop::collection::vec(event(), 0..40),
        others in prop::collection::vec(event(), 0..40),
        parts in 1..20_usize,
    ) {
        let capabilities = capabilities(&declaration.to_string());
        let (text, sse) = (lines(&events), server_sent(&others));
        let mut found = [false, true].map(|is_saved| {
            let mut reading = Reading {
                texts: [text.as_bytes(), sse.as_bytes()],
                positions: [Position::START; 2],
                reports: Vec::new(),
            };
            let mut checker = RunChecker::new(&capabilities, Filter::default());
            let framers = |positions: [Position; 2]| positions.map(|at| EventFramer::resume(MAX_EVENT_BYTES, at));
            for part in 1..=parts {
                if is_saved {
                    checker = restore(&capabilities, &save(&checker));
                }
                let mut framers = framers(reading.positions);
                reading.read(&mut checker, &mut framers, part, parts);
            }
            checker.end_all(&mut reading.reports);
            reading.reports
        });
        let [expected, reports] = &mut found;
        prop_assert_eq!(reports, expected);
    }
}

#[test]
fn only_runs_of_sources_that_can_be_read_again_are_saved() {
    let mut checker = RunChecker::new(&Capabilities::default(), Filter::default());
    let mut framer = EventFramer::new(MAX_EVENT_BYTES);
    let stream = Source {
        is_resumable: false,
        ..file("tcp:x")
    };
    for source in [&stream, &file("b"), &file("a")] {
        framer.push(b"{\"type\":\"RUN_STARTED\",\"runId\":\"r\"}\n", |event| {
            checker.check(event, source, &mut Vec::new());
        });
    }
    let mut saved = Vec::new();
    let each = |run: tracecheck::agui::SavedRun<'_>| {
        saved.push((run.source().to_owned(), run.name().to_owned(), run.events()));
        Ok::<(), Infallible>(())
    };
    checker.save_runs(each).expect("infallible");
    let expected = ["a", "b"].map(|source| (source.to_owned(), "r".to_owned(), 1));
    assert_eq!(saved, expected);
}

#[test]
fn a_run_is_held_to_what_was_declared_before_and_after() {
    let before = capabilities(r#"{"tools":{"supported":false},"state":{"deltas":false}}"#);
    let after = capabilities(r#"{"state":{"deltas":false,"snapshots":false}}"#);
    let mut checker = RunChecker::new(&before, Filter::default());
    let mut reports = Vec::new();
    let mut framer = EventFramer::new(MAX_EVENT_BYTES);
    framer.push(b"{\"type\":\"RUN_STARTED\"}\n", |event| {
        checker.check(event, &file("a"), &mut reports);
    });
    let mut checker = restore(&after, &save(&checker));
    for kind in ["TOOL_CALL_START", "STATE_SNAPSHOT", "STATE_DELTA"] {
        framer.push(format!("{{\"type\":\"{kind}\"}}\n").as_bytes(), |event| {
            checker.check(event, &file("a"), &mut reports);
        });
    }
    let pointers: Vec<_> = reports
        .into_iter()
        .filter_map(Report::into_finding)
        .map(|finding| finding.pointer)
        .collect();
    assert_eq!(pointers, ["/state/deltas"]);
}

/// Runs of one form are read by all who know its number: another form needs another number, and then
/// this test other bytes.
#[test]
fn the_form_is_the_one_of_its_number() {
    let declared = r#"{"tools":{"parallelCalls":false},"state":{"deltas":false},"reasoning":{"streaming":false}}"#;
    let mut checker = RunChecker::new(&capabilities(declared), Filter::default());
    let mut framer = EventFramer::new(MAX_EVENT_BYTES);
    let events = [
        r#"{"type":"RUN_STARTED","runId":"r","timestamp":300}"#,
        r#"{"type":"STATE_DELTA"}"#,
        r#"{"type":"TOOL_CALL_START","toolCallId":"c","parentMessageId":"m"}"#,
        r#"{"type":"REASONING_MESSAGE_CHUNK","messageId":"m","delta":"x"}"#,
        "",
    ];
    framer.push(events.join("\n").as_bytes(), |event| {
        checker.check(event, &file("a"), &mut Vec::new());
    });
    let runs = save(&checker);
    assert_eq!(
        (SAVED_FORMAT, runs.len(), xxh3_64(&runs[0])),
        (1, 1, 11342725286314006758)
    );
}
