//! Memory of a run: bounded by the longest line and the open traces, not by what was read.

#![cfg(all(feature = "cli", target_os = "linux"))]

#[path = "support/program.rs"]
mod program;

use std::fmt::Write as _;

use program::{Running, command};

/// A line whose finding says that everything before it was verified.
const MARK: &str = "mark\n";

const KIB_OF_A_RUN: u64 = 32 * 1024;

const DECLARATION: &str = concat!(
    r#""requirements":{"clearances":["orders.read"]},"declaration":{"v":"1.0","agent":{"name":"a","#,
    r#""namespace":"n"},"capabilities":[],"clearances":["orders.read"]}"#
);

fn beginning() -> String {
    concat!(
        r#"{"seq":1,"kind":"task.submitted","content":{"requirements":{"clearances":["orders.read"]}}}"#,
        "\n",
        r#"{"seq":2,"kind":"task.admitted","content":{"agent":{"name":"a","namespace":"n"}}}"#,
        "\n"
    )
    .to_owned()
}

/// A sound placement that weighed so many candidates.
fn placement(candidates: usize) -> (String, String) {
    let mut names = String::from("\"a\"");
    let mut scores = String::from("\"a\":1");
    for number in 1..candidates {
        write!(names, ",\"candidate-{number:05}\"").expect("a string");
        write!(scores, ",\"candidate-{number:05}\":{{\"load\":0.5}}").expect("a string");
    }
    let before = r#"{"kind":"task.bound","seq":"#.to_owned();
    let behind = format!(
        ",\"content\":{{\"scheduling\":{{{DECLARATION},\"candidates\":[{names}],\"filters_passed\":\
         [\"clearance:orders.read\"],\"filters_failed\":[],\"scores\":{{{scores}}}}}}}}}\n"
    );
    (before, behind)
}

/// Most memory so far, once everything that was written is verified.
fn peak_kib(running: &mut Running) -> u64 {
    running.write(MARK);
    let line = running.line_with("\"finding\"");
    assert!(line.contains("the line is"), "{line}");
    running.peak_kib().expect("Linux")
}

#[test]
fn long_placements_leave_nothing_behind() {
    let (before, behind) = placement(2100);
    assert!(
        (95_000..115_000).contains(&behind.len()),
        "{}",
        behind.len()
    );
    for arguments in [&["-"][..], &["--follow"]] {
        let mut running = Running::start(command(arguments));
        running.write(beginning());
        for seq in 3..643 {
            running.write(format!("{before}{seq}{behind}"));
        }
        let peak = peak_kib(&mut running);
        assert!(peak < KIB_OF_A_RUN, "{peak} KiB");
        running.close();
        let summary = running.end().assert_status(1).summary();
        assert!(summary["bytes"].as_u64() > Some(60_000_000), "{summary}");
        assert_eq!(summary["placements"], 640);
        assert_eq!(summary["errors"].to_string(), r#"{"E_STRUCTURE":1}"#);
    }
}

#[test]
fn a_placement_takes_two_bytes_at_the_most() {
    let (before, behind) = placement(1);
    let mut running = Running::start(command(["-"]));
    running.write(beginning());
    let mut seq = 3;
    let mut feed = |running: &mut Running, placements: u64| {
        let mut text = String::new();
        for _ in 0..placements {
            text.push_str(&before);
            write!(text, "{seq}").expect("a string");
            text.push_str(&behind);
            seq += 1;
            if text.len() > 1 << 20 {
                running.write(&text);
                text.clear();
            }
        }
        running.write(&text);
        peak_kib(running)
    };
    let few = feed(&mut running, 20_000);
    let many = feed(&mut running, 300_000);
    let grown = (many - few) * 1024;
    assert!(grown < 300_000 * 2 + 300_000, "{few} KiB, then {many} KiB");
}

#[test]
fn open_traces_take_a_few_hundred_bytes_each() {
    const TRACES: u64 = 50_000;
    let mut running = Running::follow(["--trace-key=/trace"]);
    let base = peak_kib(&mut running);
    let admitted = r#""kind":"task.admitted","content":{"agent":{"name":"a","namespace":"n"}}"#;
    for (seq, rest) in [
        (1, r#""kind":"note""#),
        (2, admitted),
        (3, r#""kind":"note""#),
    ] {
        for first in (0..TRACES).step_by(1000) {
            let mut text = String::new();
            for trace in first..first + 1000 {
                // Each third is visited in another order.
                let trace = trace * [1, 7, 11][seq - 1] % TRACES;
                writeln!(
                    text,
                    "{{\"seq\":{seq},\"trace\":\"order-{trace:010}\",{rest}}}"
                )
                .expect("a string");
            }
            running.write(text);
        }
    }
    let peak = peak_kib(&mut running);
    running.close();
    let summary = running.end().assert_status(1).summary();
    assert_eq!(summary["traces"], TRACES);
    assert_eq!(summary["errors"].to_string(), r#"{"E_STRUCTURE":2}"#);
    let each = (peak - base) * 1024 / TRACES;
    assert!(
        each < 800,
        "{each} bytes a trace: {base} KiB, then {peak} KiB"
    );
}

/// Findings share what they have in common, and what waits is bounded.
#[test]
fn a_hostile_record_takes_no_more_than_its_size() {
    let name = "n".repeat(4 << 20);
    let tools: Vec<_> = (0..900).map(|number| format!("\"t{number}\"")).collect();
    let mut running = Running::follow(["--format=json"]);
    running.write("{\"seq\":0,\"kind\":\"note\"}\n");
    running.write(format!(
        "{{\"seq\":1,\"kind\":\"task.bound\",\"content\":{{\"scheduling\":{{\"requirements\":{{\"tools\":[{}]}},\
         \"declaration\":{{\"v\":\"1\",\"agent\":{{\"name\":\"{name}\",\"namespace\":\"n\"}},\"capabilities\":[],\
         \"clearances\":[]}}}}}}}}\n",
        tools.join(",")
    ));
    running.line_with("tool:t899");
    let peak = running.peak_kib().expect("Linux");
    assert!(peak < KIB_OF_A_RUN, "{peak} KiB");
}

#[test]
fn agents_of_placements_that_wait_are_bounded() {
    let mut running = Running::follow(["--format=json", "--only=E_*"]);
    running.write("{\"seq\":0,\"kind\":\"note\"}\n");
    for seq in 1..500 {
        let name = format!("{seq}").repeat(40_000);
        running.write(format!(
            "{{\"seq\":{seq},\"kind\":\"task.bound\",\"content\":{{\"resumed\":true,\"scheduling\":{{\"requirements\":{{}},\
             \"declaration\":{{\"v\":\"1\",\"agent\":{{\"name\":\"{name}\",\"namespace\":\"n\"}},\"capabilities\":[],\
             \"clearances\":[]}},\"recorded_in\":{{\"kind\":\"task.bound\"}}}}}}}}\n"
        ));
    }
    running.line_with("\"line\":500,");
    let peak = running.peak_kib().expect("Linux");
    assert!(peak < KIB_OF_A_RUN, "{peak} KiB");
}

#[test]
fn a_line_without_an_end_is_not_kept() {
    let mut running = Running::follow(["--max-record-bytes=1MiB"]);
    let piece = "x".repeat(1 << 20);
    for _ in 0..64 {
        running.write(&piece);
    }
    running.write("\n");
    running.line_with("\"finding\"");
    let peak = peak_kib(&mut running);
    assert!(peak < KIB_OF_A_RUN, "{peak} KiB");
}
