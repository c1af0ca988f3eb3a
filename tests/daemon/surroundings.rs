//! What the machine may do to a daemon: clocks that jump, kernels without events, disks that take
//! their time, managers with ways of their own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::place::{Daemon, Place, long_probe, note, probe, wait_for};
use crate::sockets::{connect, free_port};
use crate::supervision::get;

/// Where Debian's package faketime has its library.
const FAKETIME: &str = "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1";

#[test]
fn a_clock_that_jumps_expires_nothing() {
    if !Path::new(FAKETIME).exists() {
        println!("skipped: there is no libfaketime");
        return;
    }
    let place = Place::new();
    let port = free_port();
    place.write("offset", "+0");
    place.write("a.log", note("JUMP", 1));
    let mut command = place.command([
        "--follow",
        "--format=json",
        "--trace-key=/trace",
        "--state-dir=state",
        "--trace-events",
        "--trace-idle=1h",
        "--connection-idle=1h",
        "a.log",
        &format!("--listen=tcp:127.0.0.1:{port}"),
    ]);
    command
        .env("LD_PRELOAD", FAKETIME)
        .env("FAKETIME_TIMESTAMP_FILE", place.path("offset"))
        .env("FAKETIME_NO_CACHE", "1")
        .env("FAKETIME_DONT_FAKE_MONOTONIC", "1")
        .env("NO_FAKE_STAT", "1");
    let daemon = place.start_command(command);
    let mut connection = connect(port);
    let day = |event: &Value| event["time"].as_str().expect("a time")[..10].to_owned();
    place.append("a.log", probe("before"));
    place.wait_hit("before");
    place.write("offset", "+3d");
    // Ticks come once a second at the latest: two records say that time has gone by.
    place.append("a.log", probe("after"));
    place.wait_hit("after");
    let jumped = Instant::now();
    wait_for("more than a tick", || {
        jumped.elapsed() > Duration::from_millis(1500)
    });
    std::io::Write::write_all(&mut connection, probe("same").as_bytes()).expect("still open");
    place.wait_hit("same");
    place.append("a.log", note("JUMP", 2));
    daemon.stop();
    place.assert_hits(["before", "after", "same"]);
    let ended = place.events_of("trace");
    assert!(
        ended.iter().all(|event| event["state"] != "idle"),
        "{ended:?}"
    );
    let findings = place.findings();
    assert_ne!(day(&findings[0]), day(&findings[1]), "the clock has jumped");
}

/// A daemon of a user who may have `watches` inotify watches and `instances` instances, unless such a
/// user cannot be made here.
fn limited<'p>(
    place: &'p Place,
    watches: u32,
    instances: u32,
    paths: &[&str],
) -> Option<Daemon<'p>> {
    let script = format!(
        "echo {watches} >/proc/sys/user/max_inotify_watches &&
         echo {instances} >/proc/sys/user/max_inotify_instances && exec \"$@\""
    );
    let unshare = |arguments: &[&str]| {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "sh", "-c", &script, "sh"]);
        command.args(arguments).current_dir(place.path("."));
        command
    };
    let tried = unshare(&["true"]).output();
    if !tried.is_ok_and(|output| output.status.success()) {
        println!("skipped: no user namespace can be had");
        return None;
    }
    let usual = ["--follow", "--format=json", "--trace-key=/trace"];
    let program = [env!("CARGO_BIN_EXE_tracecheck")];
    let arguments: Vec<_> = program.iter().chain(&usual).chain(paths).copied().collect();
    Some(place.start_command(unshare(&arguments)))
}

#[test]
fn too_few_watches_cost_time_and_no_line() {
    let place = Place::new();
    let names: Vec<_> = (0..12).map(|n| format!("d{n}/a.log")).collect();
    for name in &names {
        place.make_dir(name.split('/').next().expect("a directory"));
        place.write(name, "");
    }
    let paths: Vec<_> = names.iter().map(String::as_str).collect();
    let Some(daemon) = limited(&place, 2, 1, &paths) else {
        return;
    };
    for name in &names {
        place.append(name, probe(name));
    }
    names.iter().for_each(|name| place.wait_hit(name));
    daemon.stop();
    place.assert_hits(names);
    assert_eq!(place.said("max_user_watches"), 1, "{}", place.diagnostics());
}

#[test]
fn without_any_events_growth_and_rotation_are_found() {
    let place = Place::new();
    place.write("a.log", "");
    let Some(daemon) = limited(&place, 0, 0, &["a.log"]) else {
        return;
    };
    place.append("a.log", probe("grown"));
    place.wait_hit("grown");
    place.append("a.log", probe("last"));
    place.rename("a.log", "a.log.1");
    place.write("a.log", probe("rotated"));
    place.wait_hit("rotated");
    daemon.stop();
    place.assert_hits(["grown", "last", "rotated"]);
    assert_eq!(
        place.said("no inotify instance"),
        1,
        "{}",
        place.diagnostics()
    );
}

/// A library that makes each fsync take as long as on a disk that is about to fail.
fn slow_disk(place: &Place) -> PathBuf {
    let library = place.path("slow.so");
    place.write(
        "slow.c",
        "#include <unistd.h>\n\
         int fsync(int f) { (void)f; sleep(3); return 0; }\n\
         int fdatasync(int f) { (void)f; sleep(3); return 0; }\n",
    );
    let built = Command::new("cc")
        .args(["-shared", "-fPIC", "-o"])
        .arg(&library)
        .arg(place.path("slow.c"))
        .status()
        .expect("what links this test");
    assert!(built.success());
    library
}

#[test]
fn the_watchdog_is_fed_through_long_scans_and_on_a_slow_disk() {
    const FILES: usize = 20_000;
    let place = Place::new();
    place.make_dir("d");
    for n in 0..FILES {
        fs::write(place.path(format!("d/{n}.log")), "").expect("written");
    }
    // The first of them, as not all can be open everywhere.
    place.write("d/0.log", probe("read"));
    let interval = Duration::from_secs(2);
    let mut command = place.command([
        "--follow",
        "--format=json",
        "--trace-key=/trace",
        "--state-dir=state",
        "d/*.log",
    ]);
    command
        .env("WATCHDOG_USEC", interval.as_micros().to_string())
        .env("LD_PRELOAD", slow_disk(&place));
    let daemon = place.start_command(command);
    place.wait_hit("read");
    let slow = Instant::now();
    wait_for("more than a checkpoint", || {
        daemon.notify.said();
        slow.elapsed() > Duration::from_secs(5)
    });
    let said = daemon.notify.said();
    let fed = said.iter().filter(|(_, said)| said.contains("WATCHDOG=1"));
    let fed: Vec<_> = fed.map(|(at, _)| *at).collect();
    let longest = fed.windows(2).map(|pair| pair[1] - pair[0]).max();
    assert!(longest.expect("fed at all") < interval, "{longest:?}");
    daemon.signal("KILL");
}

#[test]
fn the_watchdog_of_a_process_that_became_the_daemon_is_fed() {
    let place = Place::new();
    place.write("a.log", "");
    let mut command = Command::new("sh");
    command
        .args(["-c", "WATCHDOG_PID=$$ exec \"$0\" --follow a.log"])
        .arg(env!("CARGO_BIN_EXE_tracecheck"))
        .current_dir(place.path("."))
        .env("WATCHDOG_USEC", "600000");
    let daemon = place.start_command(command);
    daemon.notify.wait("WATCHDOG=1");
    daemon.stop();
}

#[test]
fn over_long_lines_are_told_and_the_totals_add_up() {
    let place = Place::new();
    let port = free_port();
    place.make_dir("d");
    for n in 1..=3 {
        let lines = probe(format!("before{n}")) + &long_probe("huge", 10_000);
        place.write(
            &format!("d/f{n}.log"),
            lines + &probe(format!("after{n}")) + "junk\n",
        );
    }
    let daemon = place.start(&[
        "--max-record-bytes=4096",
        &format!("--metrics=127.0.0.1:{port}"),
        "d/*.log",
    ]);
    (1..=3).for_each(|n| place.wait_hit(format!("after{n}")));
    let total = |name: &str| {
        let metrics = get(port, "/metrics");
        let value = |line: &str| line.strip_prefix(name)?.trim().parse::<u64>().ok();
        metrics.lines().filter_map(value).sum::<u64>()
    };
    wait_for("the totals", || total("tracecheck_records_total ") == 12);
    let malformed = "tracecheck_findings_total{code=\"E_STRUCTURE\",severity=\"error\"} ";
    assert_eq!(
        total(malformed),
        12,
        "two judged, one over-long, one malformed each"
    );
    daemon.stop();
    for n in 1..=3 {
        let source = format!("d/f{n}.log");
        let of_source = |finding: &Value| {
            let is_over_long = finding["message"].as_str().expect("text").contains("4096");
            is_over_long && finding["source"] == source.as_str()
        };
        let findings = place.findings();
        let told: Vec<_> = findings
            .iter()
            .filter(|finding| of_source(finding))
            .collect();
        let [told] = *told else {
            panic!("{told:?} of {findings:?}");
        };
        assert_eq!(told["line"], 2);
        assert_eq!(told["offset"], probe("before1").len());
    }
}
