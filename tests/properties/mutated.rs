//! Records that something went over: no panic, whatever they hold, and the reference's verdict.

use std::time::{Duration, Instant};

use tracecheck::{Options, Verifier};

use crate::{Choices, assert_agrees, findings, generate, read, source};

/// As many as the project promises.
const RECORDS: usize = 100_000;

const BYTES: &[u8] = b"\"\"{}[]:,\\/0e-.+u \t\r\x00\x1f\x7f\xff\xc3\xed\xf4tfn";

/// Changes a line in up to three places, and never cuts it in two.
fn mutate(choices: &mut Choices, line: &mut Vec<u8>) {
    for _ in 0..1 + choices.below(3) {
        if line.is_empty() {
            return;
        }
        let at = choices.below(line.len());
        let end = (at + 1 + choices.below(40)).min(line.len());
        let byte = BYTES[choices.below(BYTES.len())];
        match choices.below(8) {
            0 => line[at] = byte,
            1 => line.insert(at, byte),
            2 => drop(line.remove(at)),
            3 => line.truncate(at),
            4 => line[at] ^= 1 << choices.below(8),
            5 => line.drain(at..end).for_each(drop),
            6 => {
                let run = line[at..end].to_vec();
                let to = choices.below(line.len());
                line.splice(to..to, run);
            }
            _ => {
                let to = choices.below(line.len());
                line.swap(at, to);
            }
        }
        line.iter_mut()
            .filter(|byte| **byte == b'\n')
            .for_each(|byte| *byte = b'\r');
    }
}

/// Some records of a trace, most of them changed.
fn mutated_trace(seed: u64) -> (Vec<u8>, usize) {
    let choices = &mut Choices::new(seed);
    let trace = match seed % 2 {
        0 => generate::trace(seed),
        _ => generate::valid_trace(seed),
    };
    let mut lines: Vec<_> = trace
        .split(|&byte| byte == b'\n')
        .map(<[u8]>::to_vec)
        .collect();
    // The last is empty.
    lines.pop();
    let mut mutated = 0;
    for line in &mut lines {
        if choices.below(4) > 0 {
            mutate(choices, line);
            mutated += 1;
        }
    }
    (lines.join(&b'\n'), mutated)
}

#[test]
fn mutated_records_cause_no_panic_and_have_the_verdicts_of_the_reference() {
    let started = Instant::now();
    let keyed = Options {
        trace_key: Some(
            "/content/scheduling/declaration/agent/name"
                .parse()
                .expect("a pointer"),
        ),
        end_kinds: vec!["task.rejected".to_owned()],
        whole_traces: false,
        max_traces: 3.try_into().expect("not zero"),
        ..Options::default()
    };
    // State goes on from one trace to the next, as it would in a stream.
    let mut stream = Verifier::new(keyed);
    let source = source("stream", 1);
    let (mut records, mut compared) = (0, 0);
    for seed in 0.. {
        let (trace, mutated) = mutated_trace(seed);
        let mut reports = Vec::new();
        let size = 1 + seed as usize % 5000;
        read(&mut stream, &source, trace.chunks(size), &mut reports);
        records += mutated;
        if seed % 32 == 0 {
            assert_agrees(&trace, &format!("seed {seed}"));
            compared += mutated;
        }
        if records >= RECORDS {
            break;
        }
    }
    let mut reports = Vec::new();
    stream.end_all(&mut reports);
    drop(findings(reports));
    assert!(compared > 2500, "{compared}");
    // Ten times what it takes; a record that takes long to judge would show.
    assert!(
        started.elapsed() < Duration::from_secs(300),
        "{:?}",
        started.elapsed()
    );
}

/// Records of which every part is there fifty thousand times, and each is wrong.
#[test]
fn a_record_with_very_many_faults_is_judged_in_time() {
    const MANY: usize = 50_000;
    let list = |entry: &str| format!("[{}]", vec![entry; MANY].join(","));
    let bound = |member: &str| {
        format!(r#"{{"seq":1,"kind":"task.bound","content":{{"scheduling":{{{member}}}}}}}"#)
    };
    let started = Instant::now();
    for line in [
        bound(&format!(r#""candidates":{}"#, list("0"))),
        bound(&format!(
            r#""filters_failed":{}"#,
            list(r#"{"candidate":1,"candidate":1}"#)
        )),
        bound(&format!(
            r#""requirements":{{"capabilities":{}}}"#,
            list(r#"{"name":0,"name":0}"#)
        )),
        bound(&format!(
            r#""requirements":{{"exclude":{}}}"#,
            list(r#"{"name":0,"name":0}"#)
        )),
        bound(&format!(
            r#""requirements":{{"clearances":{}}}"#,
            list(r#""A""#)
        )),
        bound(&format!(
            r#""declaration":{{"capabilities":{}}}"#,
            list(r#"{"name":"","version":-1}"#)
        )),
        bound(&vec![r#""declaration":0"#; MANY].join(",")),
        bound(&format!(
            r#""scores":{{{}}}"#,
            vec![r#""a":0"#; MANY].join(",")
        )),
        format!(
            r#"{{"seq":1,"kind":"note"{}}}"#,
            r#","kind":0"#.repeat(MANY)
        ),
        format!(
            r#"{{"seq":1,"kind":"task.rejected","content":{{"reason":{}}}}}"#,
            list(r#"{"no":"agent"}"#)
        ),
    ] {
        let found = Verifier::default().push(line.as_bytes());
        assert!(!found.is_empty() || line.contains("reason"));
        assert!(found.len() < 2100, "{}", found.len());
    }
    assert!(
        started.elapsed() < Duration::from_secs(60),
        "{:?}",
        started.elapsed()
    );
}

/// A placement with lists of `many` entries, of which half are held where `held` says so.
fn long_lists(many: usize, held: bool) -> String {
    let list = |entry: &dyn Fn(usize) -> String, skip: bool| {
        let entries = (0..many)
            .rev()
            .map(|n| if skip && n % 2 == 0 { n + many } else { n });
        format!("[{}]", entries.map(entry).collect::<Vec<_>>().join(","))
    };
    let capability = |n| format!("{{\"name\":\"a.b{n}\",\"version\":{n}}}");
    let identifier = |n| format!("\"a.b{n}\"");
    let lists = |skip| {
        let (names, capabilities) = (list(&identifier, skip), list(&capability, skip));
        format!("\"capabilities\":{capabilities},\"clearances\":{names},\"tools\":{names}")
    };
    let failed = list(
        &|n| format!("{{\"candidate\":\"a.b{n}\",\"predicate\":\"tool:a.b{n}\"}}"),
        false,
    );
    let scores: Vec<_> = (0..many).map(|n| format!("\"s{n}\":{n}")).collect();
    format!(
        "{{\"seq\":1,\"kind\":\"task.bound\",\"content\":{{\"scheduling\":{{\"requirements\":{{{}}},\
         \"declaration\":{{\"v\":\"1\",\"agent\":{{\"name\":\"a\",\"namespace\":\"n\"}},{}}},\
         \"candidates\":{},\"filters_passed\":{},\"filters_failed\":{failed},\"scores\":{{{}}}}}}}}}\n",
        lists(false),
        lists(held),
        list(&identifier, true),
        list(&|n| format!("\"clearance:a.b{n}\""), true),
        scores.join(",")
    )
}

#[test]
fn long_lists_are_judged_as_short_ones() {
    for many in [1, 2, 20, 21, 22, 64, 65, 66, 300] {
        for held in [false, true] {
            let record = long_lists(many, held);
            assert_agrees(record.as_bytes(), &format!("{many} entries"));
            let unreadable = record.replacen("\"a.b1\"", "7", 2);
            assert_agrees(
                unreadable.as_bytes(),
                &format!("{many} entries, some unreadable"),
            );
        }
    }
}

#[test]
fn long_lists_are_judged_in_time() {
    let started = Instant::now();
    let found = Verifier::default().push(long_lists(20_000, true).as_bytes());
    // Those of one code that are not listed hide none of another.
    for code in [
        "E_CAPABILITY_UNMET",
        "E_CLEARANCE_UNMET",
        "E_TOOL_UNMET",
        "E_EXPLANATION",
        "W_CANDIDATES",
    ] {
        assert!(
            found.iter().any(|finding| finding.code.as_str() == code),
            "{code}"
        );
    }
    let mut tools = found
        .iter()
        .filter(|finding| finding.code == tracecheck::Code::ToolUnmet);
    let last = tools.next_back().expect("findings");
    assert!(last.sentence().contains("more findings are not listed"));
    assert!(
        started.elapsed() < Duration::from_secs(60),
        "{:?}",
        started.elapsed()
    );
}

/// Records in which something long and written with escapes is held against very many others, or
/// is quoted in very many findings.
#[test]
fn a_long_name_with_escapes_is_compared_in_time() {
    const LONG: usize = 1 << 20;
    let list = |entry: &str, count: usize| format!("[{}]", vec![entry; count].join(","));
    let name = format!("\\u0061{}", "a".repeat(LONG));
    let escapes = format!("a.{}", "\\u0061".repeat(LONG / 20));
    let thousand = (0..1000).map(|n| format!("\"a.c{n}\"")).collect::<Vec<_>>();
    let bound = |name: &str, clearances: &str, requirements: &str, members: &str| {
        format!(
            r#"{{"seq":1,"kind":"task.bound","content":{{"scheduling":{{"requirements":{requirements},
            "declaration":{{"v":"1","agent":{{"name":"{name}","namespace":"s"}},"capabilities":[],
            "clearances":{clearances}}},{members}}}}}}}"#
        )
        .replace('\n', " ")
    };
    let explained = |failed: &str, scores: &str| {
        format!(
            r#""candidates":[],"filters_passed":[],"filters_failed":{failed},"scores":{{{scores}}}"#
        )
    };
    let other = r#"{"candidate":"b","predicate":"x"}"#;
    let tool = format!(r#"{{"tools":["{name}"]}}"#);
    let same_tool = format!(r#"{{"candidate":"b","predicate":"tool:{name}"}},{other}"#);
    let started = Instant::now();
    for line in [
        bound(&name, "[]", "{}", &explained(&list(other, 50_000), "")),
        bound(
            &name,
            "[]",
            "{}",
            &explained("[]", &vec![r#""b":0"#; 50_000].join(",")),
        ),
        bound(
            &name,
            "[]",
            &format!(r#"{{"exclude":{}}}"#, list("\"b\"", 50_000)),
            &explained("[]", ""),
        ),
        bound(
            "n",
            "[]",
            &tool,
            &explained(&list(other, 50_000).replacen(other, &same_tool, 1), ""),
        ),
        bound(
            "n",
            &list(&format!("\"{escapes}\""), 10),
            &format!(r#"{{"clearances":[{}]}}"#, thousand.join(",")),
            &explained("[]", ""),
        ),
    ] {
        assert!(!Verifier::default().push(line.as_bytes()).is_empty());
    }
    assert!(
        started.elapsed() < Duration::from_secs(30),
        "{:?}",
        started.elapsed()
    );
}
