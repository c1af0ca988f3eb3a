//! The same verdict on every path through the library: however the bytes are cut, whatever ends
//! the lines, alone or among other traces.

use std::collections::BTreeMap;

use serde_json::value::RawValue;
use tracecheck::{Code, Finding, Options, Verifier};

use crate::{Choices, findings, generate, read, reference, source, verify_in_pieces, verify_with};

#[test]
fn pieces_of_any_size_give_the_same_findings() {
    for seed in 0..400 {
        let trace = generate::trace(seed);
        let whole = verify_in_pieces([&*trace]);
        for size in [1, 2, 3, 7, 64, 4096] {
            assert_eq!(
                verify_in_pieces(trace.chunks(size)),
                whole,
                "seed {seed}, pieces of {size}"
            );
        }
    }
}

#[test]
fn every_split_point_gives_the_same_findings() {
    let mut bytes = 0;
    for seed in 0.. {
        let trace = generate::trace(seed);
        if trace.len() > 3000 {
            continue;
        }
        let whole = verify_in_pieces([&*trace]);
        for at in 0..=trace.len() {
            let (first, second) = trace.split_at(at);
            assert_eq!(
                verify_in_pieces([first, second]),
                whole,
                "seed {seed}, split at {at}"
            );
        }
        bytes += trace.len();
        if bytes > 20_000 {
            return;
        }
    }
}

/// A finding without what depends on where its line stands.
fn placeless(mut finding: Finding) -> Finding {
    finding.offset = 0;
    finding.id.0 = 0;
    if finding.pointer.is_empty() {
        // An excerpt of the line, which may show the white space at its end.
        finding.value = None;
    }
    finding
}

fn sorted(findings: impl IntoIterator<Item = Finding>) -> Vec<Finding> {
    let mut findings: Vec<_> = findings.into_iter().collect();
    findings.sort_by_cached_key(|finding| {
        let pointer = finding.pointer.clone();
        (
            finding.line,
            finding.code,
            pointer,
            finding.predicate.clone(),
        )
    });
    findings
}

#[test]
fn lines_may_end_in_cr_lf() {
    for seed in 0..1000 {
        let trace = generate::trace(seed);
        let with_cr: Vec<u8> = trace
            .split_inclusive(|&byte| byte == b'\n')
            .flat_map(|line| match line.strip_suffix(b"\n") {
                Some(line) => [line, b"\r\n"].concat(),
                None => line.to_vec(),
            })
            .collect();
        let lf = verify_in_pieces([&*trace]).into_iter().map(placeless);
        for size in [with_cr.len(), 1] {
            let crlf = verify_in_pieces(with_cr.chunks(size));
            assert!(
                crlf.into_iter().map(placeless).eq(lf.clone()),
                "seed {seed}, pieces of {size}"
            );
        }
    }
}

/// A record that begins a trace, so that nobody can take it for a part of one.
const BEGINNING: &[u8] = b"{\"seq\":0,\"kind\":\"note\"}\n";

#[test]
fn a_followed_trace_that_is_seen_from_its_beginning_is_a_whole_one() {
    let following = || Options {
        whole_traces: false,
        ..Options::default()
    };
    let mut partial = 0;
    for seed in 0..1000 {
        let trace = generate::trace(seed);
        let found = verify_with(following(), [&*trace]);
        if found
            .iter()
            .any(|finding| finding.code == Code::PartialTrace)
        {
            partial += 1;
        } else {
            assert_eq!(found, verify_in_pieces([&*trace]), "seed {seed}");
        }
        let begun = [
            BEGINNING,
            trace.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&trace),
        ]
        .concat();
        assert_eq!(
            verify_with(following(), [&*begun]),
            verify_in_pieces([&*begun]),
            "seed {seed}, begun"
        );
    }
    assert!((10..500).contains(&partial), "{partial}");
}

// ---- Members in another order ----

/// The members of an object, each as it is written, where the line is one and no name repeats.
fn members(line: &[u8]) -> Option<Vec<(String, String)>> {
    let text = std::str::from_utf8(line).ok()?;
    if !reference::accepts(line) {
        return None;
    }
    let values: BTreeMap<String, Box<RawValue>> = serde_json::from_str(text).ok()?;
    let members = values.into_iter().map(|(name, value)| {
        let name = serde_json::to_string(&name).expect("a string");
        (name, value.get().to_owned())
    });
    let members: Vec<_> = members.collect();
    // One that repeats was dropped, and its colon with it.
    let count = |text: &str| text.bytes().filter(|&byte| byte == b':').count();
    let kept: usize = members
        .iter()
        .map(|(name, value)| count(name) + count(value) + 1)
        .sum();
    (kept == count(text)).then_some(members)
}

fn object(members: &[(String, String)]) -> Vec<u8> {
    let member = |(name, value): &(String, String)| format!("{name}:{value}");
    let members: Vec<_> = members.iter().map(member).collect();
    format!("{{{}}}", members.join(",")).into_bytes()
}

#[test]
fn kind_may_stand_before_or_behind_content() {
    let mut moved = 0;
    for seed in 0..400 {
        let trace = generate::trace(seed);
        let rewrite = |kind_first: bool| {
            let rewrite = |line: &[u8]| match members(line) {
                Some(mut members) => {
                    members.sort_by_key(|(name, _)| (name == "\"kind\"") != kind_first);
                    object(&members)
                }
                None => line.to_vec(),
            };
            let lines: Vec<_> = trace.split(|&byte| byte == b'\n').map(rewrite).collect();
            lines.join(&b'\n')
        };
        let (first, last) = (rewrite(true), rewrite(false));
        moved += usize::from(first != last);
        let found = |trace: &[u8]| sorted(verify_in_pieces([trace]).into_iter().map(placeless));
        assert_eq!(found(&first), found(&last), "seed {seed}");
        assert_eq!(
            reference::verify(&first),
            reference::verify(&last),
            "seed {seed}"
        );
    }
    assert!(moved > 300, "{moved}");
}

// ---- Many traces on few sources ----

/// `line` with a member that names its trace, if it is an object or might become one.
pub(crate) fn with_key(line: &[u8], key: &str) -> Vec<u8> {
    let Some(open) = line.iter().position(|byte| !byte.is_ascii_whitespace()) else {
        return line.to_vec();
    };
    if line[open] != b'{' {
        return line.to_vec();
    }
    let (before, behind) = line.split_at(open + 1);
    let is_empty = behind.trim_ascii_start().starts_with(b"}");
    let comma = if is_empty { "" } else { "," };
    [before, key.as_bytes(), comma.as_bytes(), behind].concat()
}

/// What a finding says of its record, wherever that stands. Of a line that is no record, only that.
fn told(line: u64, finding: &Finding) -> (u64, Code, Vec<String>) {
    let whole_line = finding.pointer.is_empty();
    let told = match whole_line {
        true => Vec::new(),
        false => vec![
            format!("{:?} {:?}", finding.seq, finding.kind),
            finding.pointer.clone(),
            format!("{:?}", finding.predicate),
            finding.sentence(),
            format!("{:?} {:?} {}", finding.value, finding.agent, finding.rule),
        ],
    };
    (line, finding.code, told)
}

type Told = Vec<(u64, Code, Vec<String>)>;

/// Some traces of their own, each with a member that spells its key.
struct Crowd {
    traces: Vec<Vec<Vec<u8>>>,
    keys: Vec<String>,
}

impl Crowd {
    fn new(choices: &mut Choices) -> Self {
        let traces: Vec<Vec<Vec<u8>>> = (0..2 + choices.below(5))
            .map(|_| {
                let trace = generate::trace(choices.below(100_000) as u64);
                let trace = trace.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&trace);
                trace
                    .split(|&byte| byte == b'\n')
                    .map(<[u8]>::to_vec)
                    .collect()
            })
            .collect();
        let keys = (0..traces.len())
            .map(|index| match index % 3 {
                0 => format!("\"tr/ace~\":\"t\\u002d{index}\""),
                1 => format!("\"tr/ace~\": {index}"),
                _ => format!("\"tr\\/ace\\u007e\" :\"é {index}\""),
            })
            .collect();
        Crowd { traces, keys }
    }

    /// What is found in each trace alone.
    fn alone(&self) -> Vec<Told> {
        let alone = |lines: &Vec<Vec<u8>>| {
            let found = verify_in_pieces([b"\n", &*lines.join(&b'\n')]);
            let mut told: Told = found.iter().map(|f| told(f.line - 1, f)).collect();
            told.sort();
            told
        };
        self.traces.iter().map(alone).collect()
    }

    /// What is found in each trace among the others, on so many sources.
    fn together(&self, choices: &mut Choices, sources: usize) -> Vec<Told> {
        let total: usize = self.traces.iter().map(Vec::len).sum();
        let mut next = vec![0; self.traces.len()];
        // For each line of each source: its trace, and its number there.
        let mut origins = vec![Vec::new(); sources];
        // The blank line is for a BOM that some line begins with: it must not begin a source.
        let mut texts = vec![vec![Vec::new()]; sources];
        for count in 0..total {
            let open: Vec<usize> = (0..next.len())
                .filter(|&index| next[index] < self.traces[index].len())
                .collect();
            let index = open[choices.below(open.len())];
            let on = count * sources / total;
            let line = &self.traces[index][next[index]];
            texts[on].push(with_key(line, &self.keys[index]));
            next[index] += 1;
            origins[on].push((index, next[index] as u64));
        }
        let mut verifier = Verifier::new(Options {
            trace_key: Some("/tr~1ace~0".parse().expect("a pointer")),
            ..Options::default()
        });
        let mut reports = Vec::new();
        for (on, lines) in texts.iter().enumerate() {
            let source = source(&on.to_string(), on as u128);
            read(&mut verifier, &source, [&*lines.join(&b'\n')], &mut reports);
        }
        verifier.end_all(&mut reports);
        let mut together = vec![Told::new(); self.traces.len()];
        for finding in findings(reports) {
            let on: usize = finding.source.parse().expect("a number");
            let (index, line) = origins[on][finding.line as usize - 2];
            together[index].push(told(line, &finding));
        }
        together.iter_mut().for_each(|told| told.sort());
        together
    }
}

#[test]
fn traces_that_interleave_are_judged_as_if_alone() {
    for seed in 0..400 {
        let choices = &mut Choices::new(seed);
        let crowd = Crowd::new(choices);
        let alone = crowd.alone();
        for sources in 1..=3 {
            let together = crowd.together(choices, sources);
            for (index, (together, alone)) in together.iter().zip(&alone).enumerate() {
                assert_eq!(
                    together, alone,
                    "seed {seed}, {sources} sources, trace {index}"
                );
            }
        }
    }
}
