//! What the parts cost, each by itself: framing, reading a record of each kind, each document, and
//! the steps of section 7.
//!
//! `cargo bench --bench micro -- [FILTER]`. A step is measured through the verifier, as a run takes
//! it, on records that differ in what that step has to do; `decode` says what is due to reading.

#[path = "traces/mod.rs"]
mod traces;

use std::hint::black_box;
use std::sync::Arc;

use criterion::{
    BatchSize, BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main,
    measurement::WallTime,
};
use tracecheck::documents::{DocumentKind, NamedText, check, match_documents};
use tracecheck::{Framer, Line, Options, Source, Verifier, decode};
use traces::{
    Amount, Fleet, KINDS, Mixed, Other, Random, Records, Task, agent_name, candidates, placement,
    write,
};

criterion_group!(benches, framing, reading, documents, steps);
criterion_main!(benches);

const MAX_LINE_BYTES: usize = 16 << 20;

fn framing(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("framing");
    for (name, mut records) in [
        ("mixed", Box::new(Mixed::new(1, None)) as Box<dyn Records>),
        ("fleet", Box::new(Fleet::new(2, 1000))),
    ] {
        let mut text = Vec::new();
        write(&mut *records, Amount::Bytes(4 << 20), &mut text).expect("memory takes it all");
        group.throughput(Throughput::Bytes(text.len() as u64));
        for (pieces, bytes) in [("blocks of 1 MiB", 1 << 20), ("pieces of 4 KiB", 4 << 10)] {
            group.bench_function(format!("{name}, {pieces}"), |bencher| {
                bencher.iter(|| {
                    let mut framer = Framer::new(MAX_LINE_BYTES);
                    let mut lines = 0;
                    for piece in text.chunks(bytes) {
                        framer.push(piece, |line| lines += black_box(line).bytes.len());
                    }
                    lines
                });
            });
        }
    }
}

fn reading(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("decode");
    for (name, line) in lines() {
        group.throughput(Throughput::Bytes(line.len() as u64));
        group.bench_function(name, |bencher| {
            assert!(decode::reads(line.as_bytes()));
            bencher.iter(|| decode::reads(black_box(line.as_bytes())));
        });
    }
}

/// A record of each kind, without its LF.
fn lines() -> Vec<(String, String)> {
    let mut random = Random::new(1);
    let other = Other::new(&mut random);
    let mut lines = Vec::new();
    for kind in KINDS {
        for length in [300, 3000] {
            let mut line = String::new();
            traces::record(None, 7, kind, &mut line, |out| {
                other.content(kind, 7, length, &mut random, out);
            });
            lines.push((format!("{kind}, {length} bytes"), line));
        }
    }
    let made = |name: &str, line: String| (name.to_owned(), line);
    let sample = Sample::new();
    lines.push(made("task.submitted", sample.submitted()));
    lines.push(made("task.admitted", sample.admitted()));
    lines.push(made("task.rejected", rejected(3, NAMING)));
    lines.push(made("task.bound, resumed", sample.resumed(4, 3, 0)));
    for count in [1, 20, 1000] {
        let line = sample.explained(3, count, 0);
        lines.push(made(&format!("task.bound, {count} candidates"), line));
    }
    lines
        .iter_mut()
        .for_each(|(_, line)| assert_eq!(line.pop(), Some('\n')));
    lines
}

fn documents(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("documents");
    let sample = Sample::new();
    let named = |text| NamedText {
        name: "document",
        text,
    };
    let requirements = named(sample.task.requirements.as_bytes());
    let declaration = named(sample.task.declaration.as_bytes());
    for (name, kind, text) in [
        ("requirements", DocumentKind::Requirements, requirements),
        ("declaration", DocumentKind::Declaration, declaration),
    ] {
        group.throughput(Throughput::Bytes(text.text.len() as u64));
        group.bench_function(name, |bencher| {
            bencher.iter(|| check(kind, black_box(text), false));
        });
    }
    let bytes = requirements.text.len() + declaration.text.len();
    group.throughput(Throughput::Bytes(bytes as u64));
    group.bench_function("match", |bencher| {
        bencher.iter(|| match_documents(black_box(requirements), black_box(declaration)));
    });
}

/// Records of one measurement: enough that the first ones do not count.
const RECORDS: u64 = 300;

const NAMING: &str = "no agent available: capability:claim.assess/2 failed on all";
const CLAIMING: &str = "no agent available";
const OTHER_REASON: &str = "the budget of the task was used up before anybody was asked";

fn steps(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("steps");
    group.throughput(Throughput::Elements(RECORDS));
    let sample = Sample::new();
    let beginning = [sample.submitted(), sample.admitted()];
    let explained = sample.explained(3, 1, 0);

    run(&mut group, "order of seq", &beginning, 0, |seq| {
        let mut line = String::new();
        traces::record(None, seq, "note", &mut line, |out| out.push_str("{}"));
        line
    });
    run(&mut group, "1 requirements", &beginning, 0, |seq| {
        sample
            .submitted()
            .replace("\"seq\":1", &format!("\"seq\":{seq}"))
    });
    run(
        &mut group,
        "2 to 6 placement, documents repeat",
        &beginning,
        0,
        |seq| sample.explained(seq, 1, 0),
    );
    let whole = |seq| sample.explained(seq, 1, seq);
    run(&mut group, "2 to 6 placement", &beginning, 0, whole);
    run(
        &mut group,
        "3 scope, another agent",
        &beginning,
        RECORDS,
        |seq| whole(seq).replace("\"namespace\":\"", "\"namespace\":\"another-"),
    );
    let another = [Sample::of(5, 2).submitted(), sample.admitted()];
    run(
        &mut group,
        "4 consistency, other requirements",
        &another,
        RECORDS,
        whole,
    );
    run(
        &mut group,
        "5 satisfaction, a clearance is lacking",
        &beginning,
        RECORDS,
        |seq| whole(seq).replace(&sample.declaration(seq), &sample.task.lacking),
    );
    run(
        &mut group,
        "6 explanation, another predicate passed",
        &beginning,
        RECORDS,
        |seq| {
            whole(seq).replace(
                "\"filters_passed\":[",
                "\"filters_passed\":[\"tool:none.such\",",
            )
        },
    );
    for count in [20, 1000] {
        let name = format!("6 explanation, {count} candidates");
        run(&mut group, &name, &beginning, 0, |seq| {
            sample.explained(seq, count, seq)
        });
    }
    let begun = [&beginning[..], &[explained]].concat();
    run(&mut group, "6 explanation, resumed", &begun, 0, |seq| {
        sample.resumed(seq, 3, seq)
    });
    for (name, reason, found) in [
        ("7 rejection, no claim", OTHER_REASON, 0),
        ("7 rejection, claims and names a predicate", NAMING, 0),
        ("7 rejection, claims and names none", CLAIMING, RECORDS),
    ] {
        run(&mut group, name, &beginning, found, |seq| {
            rejected(seq, reason)
        });
    }
}

/// Measures records that `line` makes, of one trace, behind those of its beginning. So many of
/// them must be found faulty, or something else is measured than is said.
fn run(
    group: &mut BenchmarkGroup<'_, WallTime>,
    name: &str,
    beginning: &[String],
    found: u64,
    line: impl Fn(u64) -> String,
) {
    let source = Source {
        name: Arc::from("bench"),
        origin: 0,
        is_resumable: false,
    };
    let push = |verifier: &mut Verifier, text: &str| {
        let mut reports = Vec::new();
        let line = Line {
            number: 1,
            offset: 0,
            bytes: text.trim_end().as_bytes(),
            too_long: false,
        };
        verifier.verify(line, &source, &mut reports);
        reports.len() as u64
    };
    let begun = || {
        let mut verifier = Verifier::new(Options::default());
        beginning
            .iter()
            .for_each(|text| assert_eq!(push(&mut verifier, text), 0, "{text}"));
        verifier
    };
    let first = beginning.len() as u64 + 1;
    let lines: Vec<_> = (first..first + RECORDS).map(line).collect();
    let all = |verifier: &mut Verifier| -> u64 {
        lines
            .iter()
            .map(|text| push(verifier, black_box(text)))
            .sum()
    };
    group.bench_function(name, |bencher| {
        assert_eq!(all(&mut begun()), found, "{name}: {}", lines[0]);
        bencher.iter_batched_ref(begun, all, BatchSize::LargeInput);
    });
}

/// A task and its records.
struct Sample {
    task: Task,
}

impl Sample {
    fn new() -> Self {
        Sample::of(1, 2)
    }

    fn of(seed: u64, capabilities: usize) -> Self {
        Sample {
            task: Task::new(&mut Random::new(seed), capabilities, 2, &agent_name(0)),
        }
    }

    fn submitted(&self) -> String {
        let mut line = String::new();
        traces::record(None, 1, "task.submitted", &mut line, |out| {
            self.task.submitted(&mut Random::new(1), out);
        });
        line
    }

    fn admitted(&self) -> String {
        let mut line = String::new();
        traces::record(None, 2, "task.admitted", &mut line, |out| {
            self.task.admitted(&mut Random::new(1), out);
        });
        line
    }

    /// The declaration, with other text for every other `variant`, so that it does not repeat.
    fn declaration(&self, variant: u64) -> String {
        let cost = format!("\"0.6{}\"", variant % 2);
        self.task.declaration.replace("\"0.60\"", &cost)
    }

    fn placement(
        &self,
        seq: u64,
        resumed: bool,
        variant: u64,
        rest: impl FnOnce(&mut String),
    ) -> String {
        let mut line = String::new();
        let random = &mut Random::new(1);
        placement(
            None,
            seq,
            resumed,
            &self.task,
            random,
            &mut line,
            |_, out| rest(out),
        );
        line.replace(&self.task.declaration, &self.declaration(variant))
    }

    fn explained(&self, seq: u64, count: usize, variant: u64) -> String {
        let mut random = Random::new(2);
        let candidates = candidates(&mut random, count);
        self.placement(seq, false, variant, |out| {
            self.task.explanation(&mut random, &candidates, out);
        })
    }

    fn resumed(&self, seq: u64, explained: u64, variant: u64) -> String {
        self.placement(seq, true, variant, |out| {
            out.push_str(&format!(
                r#""recorded_in":{{"kind":"task.bound","seq":{explained}}}"#
            ));
        })
    }
}

fn rejected(seq: u64, reason: &str) -> String {
    let mut line = String::new();
    traces::record(None, seq, "task.rejected", &mut line, |out| {
        out.push_str(&format!(r#"{{"reason":"{reason}"}}"#));
    });
    line
}
