//! Input that means harm: limits hold, and others are served.

use std::io::Write;

use crate::place::{Place, note, probe, wait_for};
use crate::sockets::{connect, free_port};

#[test]
fn a_gigabyte_without_a_line_end_is_one_finding() {
    let place = Place::new();
    let port = free_port();
    let listen = format!("--listen=tcp:127.0.0.1:{port}");
    let daemon = place.start(&[&listen, "--max-record-bytes=1MiB"]);
    let mut stream = connect(port);
    let block = vec![b'x'; 1 << 20];
    for _ in 0..1024 {
        stream.write_all(&block).unwrap();
    }
    stream.write_all(b"\n").unwrap();
    stream.write_all(probe("AFTER").as_bytes()).unwrap();
    place.wait_hit("AFTER");
    assert!(daemon.peak_kib() < 64 << 10, "{} KiB", daemon.peak_kib());
    daemon.stop();
    assert_eq!(place.findings().len(), 2);
}

#[test]
fn many_unfinished_lines_together_are_bounded() {
    let place = Place::new();
    let port = free_port();
    let listen = format!("--listen=tcp:127.0.0.1:{port}");
    let daemon = place.start(&[&listen, "--max-buffered-bytes=16MiB"]);
    let block = vec![b'x'; 1 << 20];
    let mut held: Vec<_> = (0..100).map(|_| connect(port)).collect();
    for stream in &mut held {
        (0..2).for_each(|_| stream.write_all(&block).unwrap());
    }
    connect(port).write_all(probe("SERVED").as_bytes()).unwrap();
    place.wait_hit("SERVED");
    wait_for("the longest to be given up", || place.findings().len() > 90);
    assert!(daemon.peak_kib() < 96 << 10, "{} KiB", daemon.peak_kib());
    drop(held);
    daemon.stop();
}

#[test]
fn garbage_and_floods_leave_the_log_readable() {
    let place = Place::new();
    let port = free_port();
    let daemon = place.start(&[&format!("--listen=tcp:127.0.0.1:{port}")]);
    let mut garbage: Vec<u8> = (0..1_000_000u32)
        .map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    garbage.push(b'\n');
    connect(port).write_all(&garbage).unwrap();
    connect(port)
        .write_all(&[vec![0; 1 << 20], b"\n".to_vec()].concat())
        .unwrap();
    let keys: Vec<_> = (0..100_000).map(|n| format!("\"k{n}\":{n}")).collect();
    let wide = format!(
        "{{\"trace\":\"wide\",\"seq\":1,\"kind\":\"note\",\"content\":{{{}}}}}\n",
        keys.join(",")
    );
    connect(port).write_all(wide.as_bytes()).unwrap();
    let escape = probe("\\u001b[31mred\\u0007");
    connect(port).write_all(escape.as_bytes()).unwrap();
    connect(port).write_all(probe("SERVED").as_bytes()).unwrap();
    place.wait_hit("SERVED");
    wait_for("the one with escapes", || {
        place.hits().keys().any(|trace| trace.contains("red"))
    });
    daemon.stop();
    let control = |text: &str| text.chars().any(|c| c.is_control() && c != '\n');
    assert!(!control(&place.diagnostics()));
    assert!(!control(
        &std::fs::read_to_string(place.path("out")).unwrap()
    ));
}

#[test]
fn open_traces_level_off_and_evictions_are_told() {
    let place = Place::new();
    place.write("a.log", "");
    let daemon = place.start(&["a.log", "--max-traces=100"]);
    let lines: String = ["FIRST".to_owned()]
        .into_iter()
        .chain((0..110).map(|n| format!("c{n}")))
        .map(|trace| note(trace, 1))
        .collect();
    place.append("a.log", lines + &note("FIRST", 2) + &probe("end"));
    place.wait_hit("end");
    daemon.stop();
    let evicted = place.events_of("trace");
    assert_eq!(
        evicted
            .iter()
            .filter(|e| e["trace"] == "FIRST" && e["state"] == "evicted")
            .count(),
        1
    );
    // Its end is no violation.
    let errors: Vec<_> = place
        .findings()
        .into_iter()
        .filter(|f| f["severity"] == "error" && f["trace"] != "end")
        .collect();
    assert_eq!(errors, Vec::<serde_json::Value>::new());
}
