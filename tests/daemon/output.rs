//! Standard output: at once, slow, stuck, gone.

use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::place::{Place, long_probe, probe, probes, wait_for};

const USUAL: [&str; 4] = [
    "--follow",
    "--format=json",
    "--trace-key=/trace",
    "--state-dir=state",
];

#[test]
fn a_finding_is_written_at_once() {
    let place = Place::new();
    place.write("a.log", "");
    let daemon = place.start(&["a.log"]);
    for n in 0..5 {
        place.append("a.log", probe(format!("NOW{n}")));
        place.wait_hit(format!("NOW{n}"));
    }
    daemon.stop();
}

#[test]
fn a_stuck_reader_costs_no_memory_and_no_finding() {
    let place = Place::new();
    let all = 60_000;
    place.write("a.log", probes((0..all).map(|n| format!("f{n}f"))));
    let mut command = place.command(USUAL.iter().chain(&["a.log", "--drain=500ms"]));
    command.stdout(Stdio::piped()).env("TEST_OWN_STDOUT", "1");
    let mut daemon = place.start_command(command);
    let mut out = daemon.child.stdout.take().unwrap();
    // The pipe is full; the daemon goes on to live, and takes no more memory.
    let until = Instant::now() + Duration::from_secs(2);
    wait_for("a while", || Instant::now() > until);
    assert!(
        daemon.resident_kib() < 96 << 10,
        "{} KiB",
        daemon.resident_kib()
    );
    let started = Instant::now();
    daemon.signal("TERM");
    daemon.wait();
    assert!(started.elapsed() < Duration::from_secs(10));
    let mut text = Vec::new();
    out.read_to_end(&mut text).unwrap();
    place.append("out", &text);
    assert!(text.ends_with(b"\n"), "no line is cut");
    assert!(place.said("not written") > 0, "{}", place.diagnostics());
    // What was cut off comes after a restart.
    let daemon = place.start(&["a.log"]);
    wait_for("the rest", || place.hits().len() == all);
    daemon.stop();
    place.hits().values().for_each(|&hits| assert!(hits <= 2));
}

#[test]
fn a_slow_reader_gets_everything_in_order() {
    let place = Place::new();
    place.write("a.log", probes((0..5_000).map(|n| format!("f{n}f"))));
    let mut command = place.command(USUAL.iter().chain(&["a.log"]));
    command.stdout(Stdio::piped()).env("TEST_OWN_STDOUT", "1");
    let mut daemon = place.start_command(command);
    let mut lines = BufReader::new(daemon.child.stdout.take().unwrap()).lines();
    let mut next = 0;
    while next < 5_000 {
        let line = lines.next().unwrap().unwrap();
        if line.contains("\"finding\"") {
            assert!(line.contains(&format!("\"f{next}f\"")), "{next}: {line}");
            next += 1;
            if next % 500 == 0 {
                std::thread::sleep(Duration::from_millis(20));
            }
        }
    }
    daemon.signal("TERM");
    assert_eq!(
        lines
            .map_while(Result::ok)
            .filter(|line| line.contains("\"summary\""))
            .count(),
        1
    );
    assert_eq!(daemon.wait(), Some(1));
}

#[test]
fn a_reader_that_goes_away_ends_the_daemon_and_nothing_is_lost() {
    let place = Place::new();
    place.write("a.log", probe("seen"));
    let mut command = place.command(USUAL.iter().chain(&["a.log"]));
    command.stdout(Stdio::piped()).env("TEST_OWN_STDOUT", "1");
    let mut daemon = place.start_command(command);
    let mut out = BufReader::new(daemon.child.stdout.take().unwrap());
    let mut line = String::new();
    while !line.contains("\"seen\"") {
        line.clear();
        assert!(out.read_line(&mut line).unwrap() > 0);
    }
    drop(out);
    place.append("a.log", probe("unseen"));
    assert_eq!(daemon.wait(), Some(2));
    assert!(!place.diagnostics().contains("panicked"));
    let daemon = place.start(&["a.log"]);
    place.wait_hit("unseen");
    daemon.stop();
}

#[test]
fn events_stay_under_the_journals_limit() {
    let place = Place::new();
    place.write(
        "a.log",
        long_probe("LONGECHO", 90_000) + &probe("x".repeat(90_000)),
    );
    let daemon = place.start(&["a.log"]);
    wait_for("both", || place.findings().len() == 2);
    daemon.stop();
}
