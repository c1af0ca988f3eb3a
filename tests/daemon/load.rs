//! A thousand connections, two thousand files, and a reader that takes one kilobyte a second.

use std::io::{Read, Write};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::place::{Place, note, probe, wait_for};
use crate::sockets::{connect, free_port};
use crate::supervision::get;

const CONNECTIONS: usize = 1_000;
const FILES: usize = 2_000;
/// Files that hold something to find; their findings must wait for the reader.
const FAULTY: usize = 300;

fn metric(port: u16, name: &str) -> u64 {
    let metrics = get(port, "/metrics");
    let line = metrics.lines().find_map(|line| line.strip_prefix(name));
    line.map_or(0, |value| value.trim().parse().expect("a number"))
}

#[test]
fn a_slow_reader_of_much() {
    let place = Place::new();
    place.make_dir("d");
    for n in 0..FILES {
        let content = if n < FAULTY {
            probe(format!("file{n}"))
        } else {
            note(format!("file{n}"), 1)
        };
        place.write(&format!("d/{n}.jsonl"), content);
    }
    let (port, metrics) = (free_port(), free_port());
    let arguments = [
        "--follow",
        "--format=json",
        "--trace-key=/trace",
        "--state-dir=state",
        "d",
    ]
    .map(str::to_owned);
    let sockets = [
        format!("--listen=tcp:127.0.0.1:{port}"),
        format!("--metrics=127.0.0.1:{metrics}"),
    ];
    let mut command = place.command(arguments.iter().chain(&sockets));
    command.stdout(Stdio::piped()).env("TEST_OWN_STDOUT", "1");
    let mut daemon = place.start_command(command);
    let mut out = daemon.child.stdout.take().expect("piped");

    let (done, read) = (AtomicBool::new(false), std::sync::Mutex::new(Vec::new()));
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut kilobyte = [0; 1024];
            while !done.load(Ordering::Relaxed) {
                let length = out.read(&mut kilobyte).expect("readable");
                read.lock().unwrap().extend_from_slice(&kilobyte[..length]);
                thread::sleep(Duration::from_secs(1));
            }
        });
        let mut streams: Vec<_> = (0..CONNECTIONS).map(|_| connect(port)).collect();
        wait_for("all connections", || {
            metric(metrics, "tracecheck_sources{kind=\"tcp\"}") == CONNECTIONS as u64
        });
        wait_for("all files", || {
            metric(metrics, "tracecheck_sources{kind=\"file\"}") == FILES as u64
        });
        // Each of the connections gets on, in every round.
        let before = metric(metrics, "tracecheck_records_total");
        for round in 1..=10 {
            for (n, stream) in streams.iter_mut().enumerate() {
                stream
                    .write_all(note(format!("c{n}"), round).as_bytes())
                    .expect("taken");
            }
            let expected = before + round * CONNECTIONS as u64;
            wait_for("a round", || {
                metric(metrics, "tracecheck_records_total") >= expected
            });
        }
        assert!(daemon.peak_kib() < 256 << 10, "{} KiB", daemon.peak_kib());
        assert!(get(metrics, "/healthz").starts_with("HTTP/1.1 200"));
        let started = Instant::now();
        daemon.signal("TERM");
        daemon.wait();
        assert!(
            started.elapsed() < Duration::from_secs(20),
            "{:?}",
            started.elapsed()
        );
        done.store(true, Ordering::Relaxed);
    });
    let mut rest = Vec::new();
    out.read_to_end(&mut rest).expect("readable");
    let mut text = read.into_inner().unwrap();
    text.extend_from_slice(&rest);
    place.append("out", &text);
    assert!(place.said("not written") > 0, "{}", place.diagnostics());
    let daemon = place.start(&["d"]);
    wait_for("what was cut off", || place.hits().len() == FAULTY);
    daemon.stop();
}
