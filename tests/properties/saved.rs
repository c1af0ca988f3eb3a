//! A verifier that was saved and read back says what it would have said: wherever it is cut, on any
//! path, and in the form in which the program saves it.

use std::convert::Infallible;
use std::num::NonZeroUsize;
use std::time::Duration;

use proptest::prelude::*;
use tracecheck::framing::Position;
use tracecheck::verify::{MAX_DOCUMENT_BYTES, RestoredTrace, SAVED_FORMAT, SavedMeta};
use tracecheck::{Framer, Line, Options, Report, Source, Verifier};
use xxhash_rust::xxh3::xxh3_64;

use crate::paths::with_key;
use crate::{Choices, MAX_RECORD_BYTES, generate, source};

/// What the program would write: what is known across traces, then each trace.
fn save(verifier: &Verifier) -> (Vec<u8>, Vec<Vec<u8>>) {
    let meta = postcard::to_stdvec(&verifier.saved_meta()).expect("a form");
    let mut traces = Vec::new();
    let saved = verifier.save_traces(|trace| -> Result<(), Infallible> {
        traces.push(postcard::to_stdvec(&trace).expect("a form"));
        Ok(())
    });
    saved.expect("infallible");
    (meta, traces)
}

fn restore(
    options: Options,
    (meta, traces): &(Vec<u8>, Vec<Vec<u8>>),
    downtime: Duration,
    reports: &mut Vec<Report>,
) -> Verifier {
    let mut verifier = Verifier::new(options);
    let meta: SavedMeta = postcard::from_bytes(meta).expect("what was written");
    verifier.restore_meta(&meta, downtime);
    for bytes in traces {
        let trace: RestoredTrace = postcard::from_bytes(bytes).expect("what was written");
        assert_eq!(&postcard::to_stdvec(&trace.saved()).expect("a form"), bytes);
        verifier.restore_trace(trace, reports);
    }
    verifier
}

/// What a verifier says of the lines of one source from there on, to its end.
fn goes_on(
    verifier: &mut Verifier,
    source: &Source,
    mut framer: Framer,
    bytes: &[u8],
    reports: &mut Vec<Report>,
) {
    framer.push(bytes, |line| verifier.verify(line, source, reports));
    framer.finish(|line| verifier.verify(line, source, reports));
    verifier.end_source(source, reports);
}

fn options(whole_traces: bool) -> Options {
    Options {
        trace_ends: true,
        whole_traces,
        ..Options::default()
    }
}

/// Holds a trace that is cut at a byte, saved, read back and taken up against the same in one go.
fn assert_cut_makes_no_difference(trace: &[u8], cut: usize, whole_traces: bool) {
    let source = source("s", 7);
    let mut expected = Vec::new();
    let mut verifier = Verifier::new(options(whole_traces));
    let start = Framer::resume(MAX_RECORD_BYTES, Position::START);
    goes_on(&mut verifier, &source, start, trace, &mut expected);

    let mut reports = Vec::new();
    let mut verifier = Verifier::new(options(whole_traces));
    let mut framer = Framer::new(MAX_RECORD_BYTES);
    framer.push(&trace[..cut], |line| {
        verifier.verify(line, &source, &mut reports)
    });
    let position = postcard::to_stdvec(&framer.position()).expect("a form");
    let position: Position = postcard::from_bytes(&position).expect("what was written");
    let saved = save(&verifier);
    let mut verifier = restore(options(whole_traces), &saved, Duration::ZERO, &mut reports);
    let framer = Framer::resume(MAX_RECORD_BYTES, position);
    let from = usize::try_from(position.read_from()).expect("short");
    goes_on(&mut verifier, &source, framer, &trace[from..], &mut reports);
    assert_eq!(
        reports,
        expected,
        "cut at {cut}: {}",
        String::from_utf8_lossy(trace)
    );
}

#[test]
fn a_trace_goes_on_behind_every_record() {
    for seed in 0..300 {
        let trace = generate::trace(seed);
        let ends = memchr::memchr_iter(b'\n', &trace).map(|at| at + 1);
        for cut in ends.chain([0, trace.len()]) {
            assert_cut_makes_no_difference(&trace, cut, seed % 2 == 0);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_trace_goes_on_wherever_its_bytes_are_cut(seed in any::<u64>(), at in any::<prop::sample::Index>()) {
        let trace = generate::trace(seed);
        assert_cut_makes_no_difference(&trace, at.index(trace.len() + 1), seed % 2 == 0);
    }
}

/// What random traces hardly ever have.
#[test]
fn what_is_rare_goes_on_too() {
    let long = "x".repeat(MAX_DOCUMENT_BYTES);
    let admitted = |seq: u32, name: &str| {
        format!(
            r#"{{"seq":{seq},"kind":"task.admitted","content":{{"agent":{{"name":"{name}","namespace":"s"}}}}}}"#
        )
    };
    let without_seq = bound("\"3\"", LISTS);
    let referring = bound("4", r#","recorded_in":{"kind":"task.bound","seq":2}}}"#);
    for lines in [
        // Which placement is referred to cannot be known.
        [admitted(1, "n"), without_seq, referring],
        // That the trace is known in part is said once.
        [admitted(7, "n"), admitted(8, &long), admitted(9, &long)],
    ] {
        let trace = lines.join("\n");
        for cut in memchr::memchr_iter(b'\n', trace.as_bytes()) {
            assert_cut_makes_no_difference(trace.as_bytes(), cut + 1, false);
        }
    }
}

/// A placement that would resume another, if it is explained so.
fn bound(seq: &str, explanation: &str) -> String {
    format!(
        r#"{{"seq":{seq},"kind":"task.bound","content":{{"resumed":true,"scheduling":{{"requirements":{{}},"declaration":{{"v":"1.0","agent":{{"name":"n","namespace":"s"}},"capabilities":[],"clearances":[]}}{explanation}}}"#
    )
}

const LISTS: &str =
    r#","candidates":["n"],"filters_passed":[],"filters_failed":[],"scores":{"n":{}}}}"#;

// ---- Many traces, some of which end, are idle or are given up ----

/// One line of a source.
struct Step {
    source: usize,
    number: u64,
    text: Vec<u8>,
}

/// Some traces that interleave on two sources.
fn crowd(choices: &mut Choices) -> Vec<Step> {
    let mut traces: Vec<(String, Vec<Vec<u8>>)> = (0..3 + choices.below(4))
        .map(|index| {
            let trace = generate::trace(choices.below(100_000) as u64);
            let lines = trace.split(|&byte| byte == b'\n').rev();
            (
                format!("\"t\":\"{index}\""),
                lines.map(<[u8]>::to_vec).collect(),
            )
        })
        .collect();
    let mut steps = Vec::new();
    while !traces.is_empty() {
        let index = choices.below(traces.len());
        let (key, lines) = &mut traces[index];
        if let Some(line) = lines.pop() {
            steps.push(Step {
                source: choices.below(2),
                number: steps.len() as u64 + 1,
                text: with_key(&line, key),
            });
        } else {
            traces.swap_remove(index);
        }
    }
    steps
}

fn crowd_options() -> Options {
    Options {
        trace_key: Some("/t".parse().expect("a pointer")),
        end_kinds: vec!["task.rejected".to_owned()],
        trace_idle: Some(Duration::from_secs(12)),
        max_traces: NonZeroUsize::new(3).expect("not zero"),
        ..options(false)
    }
}

/// Takes steps, one a second, on a clock that is at `time` before the first.
fn take(verifier: &mut Verifier, steps: &[Step], time: u64, reports: &mut Vec<Report>) {
    let sources = [source("a", 1), source("b", 2)];
    for (index, step) in steps.iter().enumerate() {
        let now = Duration::from_secs(time + index as u64 + 1);
        verifier.set_time(now, reports);
        let line = Line {
            number: step.number,
            offset: 1000 * step.number,
            bytes: &step.text,
            too_long: false,
        };
        verifier.verify(line, &sources[step.source], reports);
    }
}

#[test]
fn many_traces_go_on_behind_every_record() {
    let mut kinds = [0; 3];
    for seed in 0..60 {
        let choices = &mut Choices::new(seed);
        let steps = crowd(choices);
        let mut expected = Vec::new();
        let mut verifier = Verifier::new(crowd_options());
        take(&mut verifier, &steps, 0, &mut expected);
        let pending = verifier.pending_references();
        let open = verifier.open_traces();
        verifier.end_all(&mut expected);
        for report in &expected {
            kinds[match report {
                Report::Finding(_) => 0,
                Report::Closed(_) => 1,
                Report::Evicted(_) => 2,
            }] += 1;
        }

        let mut reports = Vec::new();
        let mut verifier = Verifier::new(crowd_options());
        let mut taken = 0;
        while taken < steps.len() {
            let next = (taken + 1 + choices.below(3)).min(steps.len());
            take(&mut verifier, &steps[taken..next], 0, &mut reports);
            taken = next;
            verifier = restore(
                crowd_options(),
                &save(&verifier),
                Duration::ZERO,
                &mut reports,
            );
        }
        assert_eq!(verifier.pending_references(), pending);
        assert_eq!(verifier.open_traces(), open);
        verifier.end_all(&mut reports);
        assert_eq!(reports, expected, "seed {seed}");
    }
    assert!(kinds.iter().all(|&count| count > 50), "{kinds:?}");
}

// ---- What is left out, and what counts on ----

fn line_of(text: &str) -> Line<'_> {
    Line {
        number: 1,
        offset: 0,
        bytes: text.as_bytes(),
        too_long: false,
    }
}

fn keyed() -> Options {
    Options {
        trace_key: Some("/t".parse().expect("a pointer")),
        ..options(true)
    }
}

#[test]
fn traces_with_records_from_a_stream_are_left_out_and_go_on_as_partial_ones() {
    let file = source("f", 1);
    let stream = Source {
        is_resumable: false,
        ..source("tcp:x", 2)
    };
    let mut verifier = Verifier::new(keyed());
    let mut reports = Vec::new();
    for (source, text) in [
        (&file, r#"{"t":"file","seq":1,"kind":"note"}"#),
        (&file, r#"{"t":"both","seq":1,"kind":"note"}"#),
        (&stream, r#"{"t":"both","seq":2,"kind":"note"}"#),
        (&stream, r#"{"t":"stream","seq":1,"kind":"note"}"#),
    ] {
        verifier.verify(line_of(text), source, &mut reports);
    }
    let meta = verifier.saved_meta();
    assert_eq!((meta.dropped, meta.any_evicted), (2, true));
    let mut names = Vec::new();
    let each = |trace: tracecheck::verify::SavedTrace<'_>| {
        names.push((trace.name().to_owned(), trace.records(), trace.placements()));
        Ok::<(), Infallible>(())
    };
    verifier.save_traces(each).expect("infallible");
    assert_eq!(names, [("file".to_owned(), 1, 0)]);

    let mut verifier = restore(keyed(), &save(&verifier), Duration::ZERO, &mut reports);
    assert_eq!((verifier.open_traces(), reports.len()), (1, 0));
    for text in [
        r#"{"t":"file","seq":2,"kind":"note"}"#,
        r#"{"t":"both","seq":3,"kind":"note"}"#,
        r#"{"t":"new","seq":1,"kind":"note"}"#,
    ] {
        verifier.verify(line_of(text), &file, &mut reports);
    }
    let findings: Vec<_> = reports
        .into_iter()
        .filter_map(Report::into_finding)
        .collect();
    assert_eq!(findings.len(), 1);
    assert_eq!(findings[0].code.as_str(), "W_PARTIAL_TRACE");
    assert_eq!(&*findings[0].trace, "both");
}

#[test]
fn an_unkeyed_stream_is_left_out_for_a_line_that_is_no_record_too() {
    let stream = Source {
        is_resumable: false,
        ..source("stdin", 2)
    };
    let mut verifier = Verifier::new(options(false));
    verifier.verify(line_of("{"), &stream, &mut Vec::new());
    assert_eq!(verifier.saved_meta().dropped, 1);
}

#[test]
fn a_restart_counts_for_the_time_without_a_record() {
    let idle = || Options {
        trace_idle: Some(Duration::from_secs(10)),
        ..keyed()
    };
    let file = source("f", 1);
    let text = r#"{"t":"a","seq":1,"kind":"note"}"#;
    let mut reports = Vec::new();
    let mut verifier = Verifier::new(idle());
    verifier.set_time(Duration::from_secs(100), &mut reports);
    verifier.verify(line_of(text), &file, &mut reports);
    verifier.set_time(Duration::from_secs(104), &mut reports);
    let meta = verifier.saved_meta();
    let each = |trace: tracecheck::verify::SavedTrace<'_>| {
        assert_eq!(trace.age(&meta), Duration::from_secs(4));
        Ok::<(), Infallible>(())
    };
    verifier.save_traces(each).expect("infallible");
    let saved = save(&verifier);
    for (downtime, ends_after) in [(0, 6), (4, 2), (1000, 0)] {
        let mut verifier = restore(idle(), &saved, Duration::from_secs(downtime), &mut reports);
        if ends_after > 0 {
            verifier.set_time(Duration::from_secs(ends_after - 1), &mut reports);
        }
        assert_eq!(verifier.open_traces(), 1, "{downtime}");
        verifier.set_time(Duration::from_secs(ends_after), &mut reports);
        assert_eq!(verifier.open_traces(), 0, "{downtime}");
    }
}

#[test]
fn a_generation_that_began_before_a_restart_is_decided_behind_it() {
    let file = source("f", 1);
    for (seq, ends) in [(2, 0), (1, 1)] {
        let mut reports = Vec::new();
        let mut verifier = Verifier::new(options(false));
        let first = r#"{"seq":1,"kind":"note"}"#;
        verifier.verify(line_of(first), &file, &mut reports);
        verifier.begin_generation(&file);
        let mut verifier = restore(
            options(false),
            &save(&verifier),
            Duration::ZERO,
            &mut reports,
        );
        let next = format!(r#"{{"seq":{seq},"kind":"note"}}"#);
        verifier.verify(line_of(&next), &file, &mut reports);
        assert_eq!(reports.len(), ends);
    }
}

#[test]
fn more_traces_than_may_be_open_are_given_up_from_the_oldest_on() {
    let file = source("f", 1);
    let mut reports = Vec::new();
    let mut verifier = Verifier::new(keyed());
    for name in ["a", "b", "c", "a"] {
        let text = format!(r#"{{"t":"{name}","seq":1,"kind":"other"}}"#);
        verifier.verify(line_of(&text), &file, &mut Vec::new());
    }
    let fewer = Options {
        max_traces: NonZeroUsize::MIN,
        ..keyed()
    };
    let verifier = restore(fewer, &save(&verifier), Duration::ZERO, &mut reports);
    let evicted: Vec<_> = reports
        .iter()
        .map(|report| match report {
            Report::Evicted(end) => &*end.trace,
            _ => "",
        })
        .collect();
    assert_eq!(evicted, ["b", "c"]);
    assert_eq!((verifier.open_traces(), verifier.totals().evicted), (1, 2));
    assert!(verifier.saved_meta().any_evicted);
}

/// Bytes that are not what was written are an error, or another state, and never a panic.
#[test]
fn damaged_states_do_not_panic() {
    let choices = &mut Choices::new(1);
    let file = source("s", 7);
    for seed in 0..40 {
        let trace = generate::trace(seed);
        let mut verifier = Verifier::new(options(true));
        let mut framer = Framer::new(MAX_RECORD_BYTES);
        framer.push(&trace, |line| verifier.verify(line, &file, &mut Vec::new()));
        let (_, traces) = save(&verifier);
        for bytes in traces {
            for _ in 0..200 {
                let mut damaged = bytes.clone();
                let at = choices.below(damaged.len());
                damaged[at] = choices.below(256) as u8;
                damaged.truncate(
                    damaged.len() - choices.below(2) * choices.below(9).min(damaged.len()),
                );
                let Ok(trace_read) = postcard::from_bytes::<RestoredTrace>(&damaged) else {
                    continue;
                };
                let mut verifier = Verifier::new(options(true));
                verifier.restore_trace(trace_read, &mut Vec::new());
                let mut framer = Framer::new(MAX_RECORD_BYTES);
                framer.push(&trace, |line| verifier.verify(line, &file, &mut Vec::new()));
                verifier.end_all(&mut Vec::new());
            }
        }
    }
}

/// States of one form are read by all who know its number: another form needs another number, and
/// then this test other bytes.
#[test]
fn the_form_is_the_one_of_its_number() {
    let submitted = r#""kind":"task.submitted","content":{"requirements":{"clearances":["a.b"],"capabilities":[{"name":"c.d","version":300}]}}"#;
    let admitted = r#""kind":"task.admitted","content":{"agent":{"name":"n","namespace":"s"}}"#;
    let bound = r#""kind":"task.bound","content":{"resumed":true,"scheduling":{"requirements":{},"declaration":{"v":"1.0","agent":{"name":"n","namespace":"s"},"capabilities":[],"clearances":[]}"#;
    let lists =
        r#","candidates":["n"],"filters_passed":[],"filters_failed":[],"scores":{"n":{}}}}"#;
    let reference = r#","recorded_in":{"kind":"task.bound"}}}"#;
    let mut lines = vec![
        format!(r#"{{"t":"a","seq":1,{submitted}}}"#),
        format!(r#"{{"t":"a","seq":2,{admitted}}}"#),
        format!(r#"{{"t":"b","seq":1,{bound}{reference}}}"#),
        format!(r#"{{"t":"b","seq":"8",{admitted}}}"#),
    ];
    let explained = (3..80).chain([5]);
    lines.extend(explained.map(|seq| format!(r#"{{"t":"a","seq":{seq},{bound}{lists}}}"#)));
    let file = source("f", 7);
    let mut verifier = Verifier::new(Options {
        whole_traces: false,
        ..keyed()
    });
    let mut framer = Framer::new(MAX_RECORD_BYTES);
    verifier.set_time(Duration::from_millis(1500), &mut Vec::new());
    framer.push(lines.join("\n").as_bytes(), |line| {
        verifier.verify(line, &file, &mut Vec::new());
    });
    let (mut all, traces) = save(&verifier);
    traces.iter().for_each(|trace| all.extend(trace));
    all.extend(postcard::to_stdvec(&framer.position()).expect("a form"));
    assert_eq!(
        (SAVED_FORMAT, all.len(), xxh3_64(&all)),
        (1, 299, 9683241725674357423)
    );
}
