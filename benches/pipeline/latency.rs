//! How long after a faulty record its finding is there, at a fixed rate of arrival.
//!
//! When each record arrives is fixed in advance, and latency counts from then: where the program
//! (or this one) falls behind, those that wait behind it count too.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use crate::arguments::Scale;
use crate::data::Data;
use crate::measure::quiet;
use crate::table::Table;

/// A record of `mixed` every 100 microseconds.
const PERIOD: Duration = Duration::from_micros(100);

/// How long the program is left alone before the first record.
const BEFORE: Duration = Duration::from_millis(100);

/// How long the program may take until it listens.
const START: Duration = Duration::from_secs(10);

/// Longest latency that is told apart, in microseconds.
const LONGEST: u64 = 60_000_000;

/// A record that is faulty in any trace, sent last: its finding says that all others are there.
const LAST: &[u8] = b"{\"seq\":1000000000,\"kind\":\"task.bound\",\"content\":{}}\n";

/// How records come to the program.
#[derive(Clone, Copy, Debug)]
enum Way {
    Pipe,
    Tcp,
    File,
}

/// The program, and the other ends of what it reads and writes.
struct Running {
    child: Child,
    to: Box<dyn Write + Send>,
    events: BufReader<ChildStdout>,
}

pub(crate) fn run(scale: &Scale, data: &Data, table: &mut Table) -> io::Result<()> {
    for way in [Way::Pipe, Way::Tcp, Way::File] {
        eprintln!("latency, {}", way.name());
        let directory = tempfile::tempdir()?;
        let mut running = way.start(scale, &directory.path().join("sent.jsonl"))?;
        // It has opened what it reads.
        running.events.read_line(&mut String::new())?;
        let started = Instant::now() + BEFORE;
        let records = BufReader::with_capacity(1 << 20, File::open(&data.sent)?);
        let (sent, to) = (scale.sent, running.to);
        let sender = thread::spawn(move || send(records, to, started, sent));
        let latencies = receive(running.events, started, sent)?;
        let lateness = sender.join().expect("no panic")?;
        running.child.kill()?;
        running.child.wait()?;
        report(way, scale, &latencies, &lateness, table);
    }
    Ok(())
}

impl Way {
    fn name(self) -> &'static str {
        match self {
            Way::Pipe => "pipe",
            Way::Tcp => "TCP",
            Way::File => "file",
        }
    }

    fn start(self, scale: &Scale, file: &std::path::Path) -> io::Result<Running> {
        let mut command = Command::new(&scale.program);
        command.args(["--follow", "--format", "json"]);
        quiet(&mut command);
        command.stdout(Stdio::piped()).stdin(Stdio::null());
        let (child, to): (_, Box<dyn Write + Send>) = match self {
            Way::Pipe => {
                let mut child = command.stdin(Stdio::piped()).spawn()?;
                let stdin = child.stdin.take().expect("piped");
                (child, Box::new(stdin))
            }
            Way::Tcp => {
                let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
                let listen = format!("tcp:127.0.0.1:{port}");
                let child = command.args(["--listen", &listen]).spawn()?;
                (child, Box::new(connect(port)?))
            }
            Way::File => {
                let mut options = OpenOptions::new();
                let to = options.append(true).create(true).open(file)?;
                (command.arg(file).spawn()?, Box::new(to))
            }
        };
        Running::new(child, to)
    }
}

impl Running {
    fn new(mut child: Child, to: Box<dyn Write + Send>) -> io::Result<Running> {
        let events = BufReader::new(child.stdout.take().expect("piped"));
        Ok(Running { child, to, events })
    }
}

fn connect(port: u16) -> io::Result<TcpStream> {
    let begun = Instant::now();
    loop {
        match TcpStream::connect(("127.0.0.1", port)) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                return Ok(stream);
            }
            Err(error) if begun.elapsed() > START => return Err(error),
            Err(_) => thread::sleep(Duration::from_millis(1)),
        }
    }
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
    to.write_all(LAST)?;
    Ok(lateness)
}

/// Reads findings as they come, up to the one after `count` lines. Gives how long after its record
/// each one came, in microseconds.
fn receive(mut events: impl BufRead, started: Instant, count: u64) -> io::Result<Histogram<u64>> {
    let mut latencies = histogram();
    let mut event = String::new();
    while events.read_line(&mut event)? > 0 {
        let now = Instant::now();
        if event.contains(r#""event":"finding""#) {
            let line = line_of(&event).ok_or_else(|| io::Error::other("a finding without line"))?;
            if line > count {
                return Ok(latencies);
            }
            let latency = now.saturating_duration_since(arrival(started, line));
            latencies.saturating_record(microseconds(latency));
        }
        event.clear();
    }
    Err(io::Error::other("the program ended before the last record"))
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

fn report(
    way: Way,
    scale: &Scale,
    latencies: &Histogram<u64>,
    lateness: &Histogram<u64>,
    table: &mut Table,
) {
    let milliseconds = |of: &Histogram<u64>, quantile| of.value_at_quantile(quantile) as f64 / 1e3;
    let (way, sent) = (way.name(), scale.sent);
    let what = format!("latency, {way}, {sent} records at 10,000 a second");
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
