//! The program as its users have it: arguments and bytes in, lines and a status out.

#![allow(dead_code, reason = "each test file uses a part of it")]

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde_json::Value;

/// How long anything may take before a test fails: generous, as machines are slow at times.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);

/// A call of the program, in surroundings that say nothing.
pub(crate) fn command<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tracecheck"));
    command.args(arguments);
    for variable in ["COLUMNS", "NO_COLOR", "RUST_LOG", "TERM"] {
        command.env_remove(variable);
    }
    command
}

/// What a run came to.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) status: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Runs the program to its end, with `input` on a pipe.
pub(crate) fn run<S: AsRef<OsStr>>(
    arguments: impl IntoIterator<Item = S>,
    input: impl AsRef<[u8]>,
) -> Ran {
    run_command(command(arguments), input)
}

/// [`run`] of a call that was prepared.
pub(crate) fn run_command(command: Command, input: impl AsRef<[u8]>) -> Ran {
    let mut running = Running::start(command);
    let mut stdin = running.stdin.take().expect("piped");
    let input = input.as_ref();
    thread::scope(|scope| {
        // The program may end without having read everything.
        scope.spawn(move || stdin.write_all(input));
        running.end()
    })
}

impl Ran {
    /// The events on standard output; every rule that holds for all of them is checked.
    #[track_caller]
    pub(crate) fn events(&self) -> Vec<Value> {
        let events: Vec<Value> = self.stdout.lines().map(event).collect();
        assert!(self.stdout.ends_with('\n'), "{self:?}");
        let is_summary = |event: &&Value| event["event"] == "summary";
        assert_eq!(events.iter().filter(is_summary).count(), 1, "{self:?}");
        assert!(events.last().as_ref().is_some_and(is_summary), "{self:?}");
        events
    }

    /// The events of one sort.
    #[track_caller]
    pub(crate) fn events_of(&self, sort: &str) -> Vec<Value> {
        let mut events = self.events();
        events.retain(|event| event["event"] == sort);
        events
    }

    #[track_caller]
    pub(crate) fn findings(&self) -> Vec<Value> {
        self.events_of("finding")
    }

    #[track_caller]
    pub(crate) fn summary(&self) -> Value {
        self.events_of("summary").remove(0)
    }

    /// The codes of the findings, in their order.
    #[track_caller]
    pub(crate) fn codes(&self) -> Vec<String> {
        let code = |finding: &Value| finding["code"].as_str().expect("a code").to_owned();
        self.findings().iter().map(code).collect()
    }

    #[track_caller]
    pub(crate) fn assert_status(&self, status: i32) -> &Self {
        assert_eq!(self.status, Some(status), "{self:?}");
        assert!(!self.stderr.contains("panicked"), "{self:?}");
        self
    }
}

/// One line of standard output as an event.
#[track_caller]
pub(crate) fn event(line: &str) -> Value {
    assert!(line.len() < 32 * 1024, "{} bytes", line.len());
    let event: Value = serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
    assert!(event["event"].is_string() && event["time"].is_string());
    event
}

/// A run that goes on. Ended by force where a test fails before it ends.
pub(crate) struct Running {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: Receiver<String>,
    stderr: Option<JoinHandle<String>>,
}

impl Running {
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program runs");
        let (lines, stdout) = channel();
        let mut out = BufReader::new(child.stdout.take().expect("piped"));
        thread::spawn(move || {
            let mut line = String::new();
            while out.read_line(&mut line).expect("UTF-8") > 0 {
                // Nobody listens any more where the test is over.
                let _ = lines.send(std::mem::take(&mut line));
            }
        });
        let mut err = child.stderr.take().expect("piped");
        let stderr = thread::spawn(move || {
            let mut text = Vec::new();
            err.read_to_end(&mut text).expect("readable");
            String::from_utf8_lossy(&text).into_owned()
        });
        Running {
            stdin: child.stdin.take(),
            child,
            stdout,
            stderr: Some(stderr),
        }
    }

    pub(crate) fn follow<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Self {
        let mut command = command(["--follow"]);
        command.args(arguments);
        Running::start(command)
    }

    pub(crate) fn write(&mut self, bytes: impl AsRef<[u8]>) {
        let stdin = self.stdin.as_mut().expect("open");
        stdin.write_all(bytes.as_ref()).expect("the program reads");
    }

    /// The program's standard input, to be written to beside reading what comes of it.
    pub(crate) fn take_stdin(&mut self) -> ChildStdin {
        self.stdin.take().expect("open")
    }

    /// Closes the program's standard input.
    pub(crate) fn close(&mut self) {
        self.stdin = None;
    }

    /// The next line on standard output, without its LF.
    #[track_caller]
    pub(crate) fn line(&mut self) -> String {
        let line = self.stdout.recv_timeout(DEADLINE);
        let line = line.expect("a line within the deadline");
        line.strip_suffix('\n').expect("a whole line").to_owned()
    }

    /// Waits for a line that holds `text`, and gives it.
    #[track_caller]
    pub(crate) fn line_with(&mut self, text: &str) -> String {
        loop {
            let line = self.line();
            if line.contains(text) {
                return line;
            }
        }
    }

    /// Whether anything more stands on standard output by now.
    pub(crate) fn has_more(&mut self) -> Option<String> {
        self.stdout.try_recv().ok()
    }

    pub(crate) fn signal(&self, name: &str) {
        let sent = Command::new("sh")
            .arg("-c")
            .arg(format!("kill -{name} {}", self.child.id()))
            .status()
            .expect("a shell");
        assert!(sent.success());
    }

    /// Most memory that the program has taken, in KiB. Linux only.
    pub(crate) fn peak_kib(&self) -> Option<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).ok()?;
        let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
        line.split_ascii_whitespace().nth(1)?.parse().ok()
    }

    /// Waits for the program to end by itself, and gives what stood on standard output since.
    pub(crate) fn end(mut self) -> Ran {
        let status = self.wait();
        let mut stdout = String::new();
        // The reading thread drops its end at the end of standard output.
        while let Ok(line) = self.stdout.recv_timeout(DEADLINE) {
            stdout.push_str(&line);
        }
        let stderr = self.stderr.take().expect("joined once");
        Ran {
            status: status.code(),
            stdout,
            stderr: stderr.join().expect("no panic"),
        }
    }

    fn wait(&mut self) -> ExitStatus {
        let started = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("a child") {
                return status;
            }
            assert!(started.elapsed() < DEADLINE, "the program does not end");
            thread::sleep(Duration::from_millis(2));
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Fails where it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
