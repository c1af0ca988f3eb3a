//! Connections: many at once, broken off, held open, over-long, activated.

use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::place::{Place, long_probe, probe, probes, wait_for};

/// A port that nobody listens on.
pub(crate) fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

pub(crate) fn connect(port: u16) -> TcpStream {
    TcpStream::connect(("127.0.0.1", port)).expect("somebody listens")
}

#[test]
fn closing_and_half_closing_end_the_last_line() {
    let place = Place::new();
    let port = free_port();
    let daemon = place.start(&[&format!("--listen=tcp:127.0.0.1:{port}")]);
    connect(port)
        .write_all(probe("CLOSEL").trim_end().as_bytes())
        .unwrap();
    let mut half = connect(port);
    half.write_all(probe("HALFL").trim_end().as_bytes())
        .unwrap();
    half.shutdown(Shutdown::Write).unwrap();
    assert_eq!(half.read(&mut [0; 1]).unwrap(), 0, "it closes its side too");
    place.wait_hit("CLOSEL");
    place.wait_hit("HALFL");
    daemon.stop();
    place.assert_hits(["CLOSEL", "HALFL"]);
}

#[test]
fn idle_connections_keep_nobody_waiting() {
    let place = Place::new();
    let port = free_port();
    let daemon = place.start(&[&format!("--listen=tcp:127.0.0.1:{port}")]);
    let mut idle: Vec<_> = (0..40).map(|_| connect(port)).collect();
    for stream in &mut idle[..20] {
        stream.write_all(b"{\"trace\":").unwrap();
    }
    let started = Instant::now();
    connect(port).write_all(probe("SERVED").as_bytes()).unwrap();
    place.wait_hit("SERVED");
    assert!(started.elapsed() < Duration::from_secs(20));
    drop(idle);
    daemon.stop();
}

#[test]
fn every_connection_is_served_and_none_joins_another() {
    let place = Place::new();
    let port = free_port();
    let daemon = place.start(&[&format!("--listen=tcp:127.0.0.1:{port}")]);
    for n in 0..30 {
        connect(port)
            .write_all(probe(format!("rc{n}c")).as_bytes())
            .unwrap();
    }
    connect(port).write_all(b"{\"cut").unwrap();
    connect(port)
        .write_all(probe("AFTERCUT").as_bytes())
        .unwrap();
    (0..30).for_each(|n| place.wait_hit(format!("rc{n}c")));
    place.wait_hit("AFTERCUT");
    wait_for("the cut line", || place.findings().len() == 32);
    daemon.stop();
    assert_eq!(place.hits()["AFTERCUT"], 1);
}

#[test]
fn an_over_long_line_leaves_the_connection_open() {
    let place = Place::new();
    let port = free_port();
    let listen = format!("--listen=tcp:127.0.0.1:{port}");
    let daemon = place.start(&[&listen, "--max-record-bytes=8KiB"]);
    let mut stream = connect(port);
    let lines = [probe("TB"), long_probe("THUGE", 100_000), probe("TA")].concat();
    stream.write_all(lines.as_bytes()).unwrap();
    place.wait_hit("TA");
    drop(stream);
    daemon.stop();
    let hits = place.hits();
    assert_eq!((hits["TB"], hits["TA"], hits.len()), (1, 1, 3), "{hits:?}");
}

#[test]
fn single_bytes_make_the_same_lines() {
    let place = Place::new();
    let port = free_port();
    let daemon = place.start(&[&format!("--listen=tcp:127.0.0.1:{port}")]);
    let mut stream = connect(port);
    stream.set_nodelay(true).unwrap();
    let trace = "u\u{e9}\u{1f512}x";
    for byte in probe(trace).bytes() {
        stream.write_all(&[byte]).unwrap();
    }
    place.wait_hit(trace);
    daemon.stop();
    place.assert_hits([trace]);
}

#[test]
fn a_stale_socket_is_replaced_a_living_one_is_not() {
    let place = Place::new();
    let socket = place.path("s.sock");
    let daemon = place.start(&["--listen=unix:s.sock"]);
    let metadata = fs::symlink_metadata(&socket).unwrap();
    assert!(metadata.file_type().is_socket());
    assert_eq!(metadata.permissions().mode() & 0o777, 0o660);
    let arguments = ["--listen=unix:s.sock", "--trace-key=/trace"];
    let second = place
        .command(arguments)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_eq!(second.status.code(), Some(2), "{second:?}");
    assert!(String::from_utf8_lossy(&second.stderr).contains("s.sock"));
    daemon.kill();
    assert!(socket.exists());
    let daemon = place.start(&["--listen=unix:s.sock"]);
    UnixStream::connect(&socket)
        .unwrap()
        .write_all(probe("US1").as_bytes())
        .unwrap();
    place.wait_hit("US1");
    daemon.stop();
    assert!(!socket.exists(), "it is removed at the end");
    let source = place.findings()[0]["source"].as_str().unwrap().to_owned();
    assert!(source.starts_with("unix:"), "{source}");
}

#[test]
fn the_mode_of_a_socket_can_be_set() {
    let place = Place::new();
    let daemon = place.start(&["--listen=unix:s.sock", "--unix-mode=0600"]);
    let metadata = fs::symlink_metadata(place.path("s.sock")).unwrap();
    assert_eq!(metadata.permissions().mode() & 0o777, 0o600);
    daemon.stop();
}

#[test]
fn other_machines_are_let_in_only_where_it_is_meant() {
    let place = Place::new();
    let port = free_port();
    let listen = format!("--listen=tcp:0.0.0.0:{port}");
    let refused = place
        .command([&listen])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_eq!(refused.status.code(), Some(2));
    let message = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(message.contains("--insecure-listen"), "{message}");
    let daemon = place.start(&[&listen, "--insecure-listen"]);
    connect(port).write_all(probe("MEANT").as_bytes()).unwrap();
    place.wait_hit("MEANT");
    daemon.stop();
}

#[test]
fn a_silent_connection_is_closed_where_that_is_asked_for() {
    let place = Place::new();
    let port = free_port();
    let listen = format!("--listen=tcp:127.0.0.1:{port}");
    let daemon = place.start(&[&listen, "--connection-idle=200ms"]);
    let mut silent = connect(port);
    silent.write_all(b"{\"trace\":\"slow").unwrap();
    assert_eq!(silent.read(&mut [0; 1]).unwrap_or(0), 0);
    connect(port).write_all(probe("NEXT").as_bytes()).unwrap();
    place.wait_hit("NEXT");
    daemon.stop();
    place.assert_hits(["NEXT"]);
}

#[test]
fn a_trace_goes_on_in_another_connection() {
    let place = Place::new();
    let port = free_port();
    let daemon = place.start(&[&format!("--listen=tcp:127.0.0.1:{port}")]);
    let record =
        |seq| format!("{{\"trace\":\"t\",\"seq\":{seq},\"kind\":\"note\",\"content\":{{}}}}\n");
    connect(port)
        .write_all((record(1) + &probe("first")).as_bytes())
        .unwrap();
    place.wait_hit("first");
    connect(port).write_all(record(1).as_bytes()).unwrap();
    place.wait_hit("t");
    daemon.stop();
    place.assert_hits(["first", "t"]);
}

#[test]
fn traces_of_connections_are_partial_after_a_crash() {
    let place = Place::new();
    let port = free_port();
    let listen = format!("--listen=tcp:127.0.0.1:{port}");
    let record = |seq| {
        format!("{{\"trace\":\"t\",\"seq\":{seq},\"kind\":\"task.submitted\",\"content\":{{}}}}\n")
    };
    place.write("a.log", "");
    let daemon = place.start(&[&listen, "a.log"]);
    connect(port)
        .write_all((record(5) + &probe("first")).as_bytes())
        .unwrap();
    place.wait_hit("first");
    place.append("a.log", probe("file"));
    place.wait_hit("file");
    // The state that is saved now may know the trace, but not what was lost.
    wait_for("a checkpoint", || place.path("state/checkpoint").exists());
    daemon.kill();
    let daemon = place.start(&[&listen, "a.log"]);
    connect(port).write_all(record(5).as_bytes()).unwrap();
    place.wait_hit("t");
    daemon.stop();
    let codes: Vec<_> = place
        .findings()
        .iter()
        .filter(|f| f["trace"] == "t")
        .map(|f| f["code"].clone())
        .collect();
    assert_eq!(codes, ["W_PARTIAL_TRACE"]);
}

#[test]
fn systemd_passes_sockets_on() {
    let place = Place::new();
    let port = free_port();
    let socket = place.path("passed.sock");
    let mut command = std::process::Command::new("systemd-socket-activate");
    command
        .arg(format!("--listen=127.0.0.1:{port}"))
        .arg(format!("--listen={}", socket.display()))
        .arg(env!("CARGO_BIN_EXE_tracecheck"))
        .args(["--format=json", "--trace-key=/trace"])
        .current_dir(place.path("."));
    let mut daemon = place.spawn(command);
    wait_for("systemd to listen", || {
        TcpStream::connect(("127.0.0.1", port)).is_ok() && socket.exists()
    });
    connect(port).write_all(probe("TCP").as_bytes()).unwrap();
    UnixStream::connect(&socket)
        .unwrap()
        .write_all(probe("UNIX").as_bytes())
        .unwrap();
    place.wait_hit("TCP");
    place.wait_hit("UNIX");
    assert!(daemon.runs());
    daemon.stop();
    place.assert_hits(["TCP", "UNIX"]);
    assert!(socket.exists(), "what systemd made is systemd's");
}

#[test]
fn a_flood_starves_no_other() {
    let place = Place::new();
    let port = free_port();
    place.write("a.log", "");
    let listen = format!("--listen=tcp:127.0.0.1:{port}");
    let daemon = place.start(&[&listen, "a.log", "--only=E_*"]);
    let mut flood = connect(port);
    let lines = (0..1000)
        .map(|n| crate::place::note(format!("f{n}"), 1))
        .collect::<String>();
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            use std::sync::atomic::Ordering::Relaxed;
            while !done.load(Relaxed) {
                // Fails where the daemon was stopped first.
                let _ = flood.write_all(lines.as_bytes());
            }
        });
        connect(port).write_all(probe("FAIRT").as_bytes()).unwrap();
        place.append("a.log", probes(["FAIRF"]));
        place.wait_hit("FAIRT");
        place.wait_hit("FAIRF");
        done.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    daemon.stop();
}
