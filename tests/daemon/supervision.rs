//! What a service manager and a scraper see.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::place::{Daemon, Place, note, probe, wait_for};
use crate::sockets::{connect, free_port};

/// What an HTTP request comes to: status line, headers and body.
pub(crate) fn get(port: u16, path: &str) -> String {
    let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)) else {
        return String::new();
    };
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn it_is_ready_when_its_listeners_are_and_says_that_it_stops() {
    let place = Place::new();
    let port = free_port();
    let daemon = place.start(&[&format!("--listen=tcp:127.0.0.1:{port}")]);
    connect(port);
    assert_eq!(daemon.notify.count("STOPPING=1"), 0);
    daemon.signal("TERM");
    daemon.notify.wait("STOPPING=1");
    let Daemon { .. } = daemon;
}

#[test]
fn the_watchdog_is_fed_while_it_is_busy() {
    let place = Place::new();
    let lines: String = (0..400_000).map(|n| note(format!("w{n}"), 1)).collect();
    place.write("a.log", lines);
    let interval = Duration::from_secs(2);
    let mut command = place.command([
        "--follow",
        "--trace-key=/trace",
        "--state-dir=state",
        "a.log",
        "--format=json",
    ]);
    command.env("WATCHDOG_USEC", interval.as_micros().to_string());
    let daemon = place.start_command(command);
    let until = Instant::now() + Duration::from_secs(5);
    wait_for("some seconds", || {
        daemon.notify.said();
        Instant::now() > until
    });
    let fed: Vec<_> = daemon
        .notify
        .said()
        .into_iter()
        .filter(|(_, said)| said.contains("WATCHDOG=1"))
        .map(|(at, _)| at)
        .collect();
    assert!(fed.len() >= 3, "{} times", fed.len());
    let longest = fed.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap();
    assert!(longest < interval, "{longest:?}");
    daemon.stop();
}

#[test]
fn the_watchdog_is_off_unless_it_is_for_this_process() {
    for (usec, pid, is_fed) in [
        (Some("600000"), None, true),
        (Some("600000"), Some("1"), false),
        (Some("junk"), None, false),
        (None, None, false),
    ] {
        let place = Place::new();
        place.write("a.log", "");
        let mut command = place.command(["--follow", "a.log"]);
        if let Some(usec) = usec {
            command.env("WATCHDOG_USEC", usec);
        }
        if let Some(pid) = pid {
            command.env("WATCHDOG_PID", pid);
        }
        let daemon = place.start_command(command);
        if is_fed {
            daemon.notify.wait("WATCHDOG=1");
        } else {
            let until = Instant::now() + Duration::from_millis(700);
            wait_for("longer than the interval", || Instant::now() > until);
            assert_eq!(daemon.notify.count("WATCHDOG=1"), 0, "{usec:?} {pid:?}");
        }
        daemon.stop();
    }
}

#[test]
fn metrics_and_health_are_served() {
    let place = Place::new();
    let port = free_port();
    place.write("a.log", probe("one") + &note("open", 1));
    let daemon = place.start(&["a.log", &format!("--metrics=127.0.0.1:{port}")]);
    place.wait_hit("one");
    wait_for("the metrics", || {
        let metrics = get(port, "/metrics");
        metrics.contains("tracecheck_records_total 2\n")
            && metrics
                .contains("tracecheck_findings_total{code=\"E_STRUCTURE\",severity=\"error\"} 1\n")
            && metrics.contains("tracecheck_sources{kind=\"file\"} 1\n")
    });
    let metrics = get(port, "/metrics");
    for name in [
        "tracecheck_bytes_total",
        "tracecheck_traces_open",
        "tracecheck_traces_evicted_total",
        "tracecheck_references_pending",
        "tracecheck_lag_bytes{kind=\"file\"}",
        "tracecheck_lag_seconds{kind=\"file\"}",
        "tracecheck_output_queue",
        "tracecheck_checkpoint_age_seconds",
        "tracecheck_verdict_seconds{quantile=\"0.99\"}",
        "tracecheck_output_seconds{quantile=\"0.99\"}",
    ] {
        assert!(metrics.contains(&format!("\n{name} ")), "{name}: {metrics}");
    }
    assert!(get(port, "/healthz").starts_with("HTTP/1.1 200"));
    assert!(get(port, "/readyz").starts_with("HTTP/1.1 200"));
    assert!(get(port, "/nothing").starts_with("HTTP/1.1 404"));
    daemon.stop();
}
