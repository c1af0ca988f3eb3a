//! How long after a faulty record its finding is there, at a fixed rate of arrival.
//!
//! When each record arrives is fixed in advance, and latency counts from then: where the program
//! (or this one) falls behind, those that wait behind it count too.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use crate::arguments::Scale;
use crate::data::Data;
use crate::measure::quiet;
use crate::table::Table;

/// A record of `mixed` every 100 microseconds.
const PERIOD: Duration = Duration::from_micros(100);

/// How long the program has to get ready before the first record.
const BEFORE: Duration = Duration::from_millis(100);

/// Longest latency that is told apart, in microseconds.
const LONGEST: u64 = 60_000_000;

pub(crate) fn run(scale: &Scale, data: &Data, table: &mut Table) -> io::Result<()> {
    eprintln!("latency");
    let mut command = Command::new(&scale.program);
    command.args(["--follow", "--format", "json"]);
    quiet(&mut command);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let (stdin, stdout) = pipes(&mut child);
    let started = Instant::now() + BEFORE;
    let records = BufReader::with_capacity(1 << 20, File::open(&data.sent)?);
    let sent = scale.sent;
    let sender = thread::spawn(move || send(records, stdin, started, sent));
    let latencies = receive(stdout, started)?;
    let lateness = sender.join().expect("no panic")?;
    child.wait()?;
    report(scale, &latencies, &lateness, table);
    Ok(())
}

fn pipes(child: &mut Child) -> (ChildStdin, ChildStdout) {
    let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
    (stdin.expect("piped"), stdout.expect("piped"))
}

/// When the record on a line, counted from 1, arrives.
fn arrival(started: Instant, line: u64) -> Instant {
    started + PERIOD * u32::try_from(line).expect("some minutes at most")
}

/// Sends every record when its time has come. Gives how late each was written, in microseconds.
fn send(
    mut records: impl BufRead,
    mut to: impl Write,
    started: Instant,
    count: u64,
) -> io::Result<Histogram<u64>> {
    let mut lateness = histogram();
    let mut record = Vec::new();
    for line in 1..=count {
        record.clear();
        if records.read_until(b'\n', &mut record)? == 0 {
            return Err(io::Error::other("too few records to send"));
        }
        let due = arrival(started, line);
        thread::sleep(due.saturating_duration_since(Instant::now()));
        to.write_all(&record)?;
        lateness.saturating_record(microseconds(due.elapsed()));
    }
    Ok(lateness)
}

/// Reads findings as they come. Gives how long after its record each one came, in microseconds.
fn receive(from: impl io::Read, started: Instant) -> io::Result<Histogram<u64>> {
    let mut latencies = histogram();
    let mut events = BufReader::new(from);
    let mut event = String::new();
    while events.read_line(&mut event)? > 0 {
        let now = Instant::now();
        if event.contains(r#""event":"finding""#) {
            let line = line_of(&event).ok_or_else(|| io::Error::other("a finding without line"))?;
            let latency = now.saturating_duration_since(arrival(started, line));
            latencies.saturating_record(microseconds(latency));
        }
        event.clear();
    }
    Ok(latencies)
}

/// The line that a finding is about. Nothing that a trace says looks like this member, as quotes
/// are escaped in a string.
fn line_of(finding: &str) -> Option<u64> {
    let (_, rest) = finding.split_once(r#","line":"#)?;
    rest.split(',').next()?.parse().ok()
}

fn histogram() -> Histogram<u64> {
    Histogram::new_with_max(LONGEST, 3).expect("bounds that make sense")
}

fn microseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(LONGEST)
}

fn report(scale: &Scale, latencies: &Histogram<u64>, lateness: &Histogram<u64>, table: &mut Table) {
    let milliseconds = |of: &Histogram<u64>, quantile| of.value_at_quantile(quantile) as f64 / 1e3;
    let what = format!("latency, pipe, {} records at 10,000 a second", scale.sent);
    for (name, quantile, most) in [
        ("p50", 0.5, None),
        ("p99", 0.99, Some(2.0)),
        ("p99.9", 0.999, Some(10.0)),
    ] {
        let latency = milliseconds(latencies, quantile);
        let written = format!("written {:.2} ms late", milliseconds(lateness, quantile));
        let (what, result) = (format!("{what}, {name}"), format!("{latency:.2} ms"));
        match most {
            Some(most) => {
                table.target(
                    &what,
                    &format!("under {most} ms"),
                    result,
                    written,
                    latency < most,
                );
            }
            None => table.row([what, String::new(), result, written, String::new()]),
        }
    }
    let most = latencies.max() as f64 / 1e3;
    let what = format!("{what}, longest of {} findings", latencies.len());
    table.row([
        what,
        String::new(),
        format!("{most:.2} ms"),
        String::new(),
        String::new(),
    ]);
}
