//! A directory with traces and a daemon that watches them.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

/// How long anything may take before a test fails: generous, as machines are slow at times.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);

/// How long a condition is left alone before it is looked at again.
const PAUSE: Duration = Duration::from_millis(5);

/// A line with one error, a placement without its scheduling, under the name of its trace.
pub(crate) fn probe(trace: impl std::fmt::Display) -> String {
    format!("{{\"trace\":\"{trace}\",\"seq\":1,\"kind\":\"task.bound\",\"content\":{{}}}}\n")
}

/// Probes with these names.
pub(crate) fn probes<T: std::fmt::Display>(traces: impl IntoIterator<Item = T>) -> String {
    traces.into_iter().map(probe).collect()
}

/// A probe of so many bytes more.
pub(crate) fn long_probe(trace: &str, padding: usize) -> String {
    let pad = "x".repeat(padding);
    format!(
        "{{\"trace\":\"{trace}\",\"seq\":1,\"kind\":\"task.bound\",\"content\":{{}},\"pad\":\"{pad}\"}}\n"
    )
}

/// A legal line.
pub(crate) fn note(trace: impl std::fmt::Display, seq: u64) -> String {
    format!("{{\"trace\":\"{trace}\",\"seq\":{seq},\"kind\":\"note\",\"content\":{{}}}}\n")
}

/// Waits until `condition` holds.
#[track_caller]
pub(crate) fn wait_for(what: &str, mut condition: impl FnMut() -> bool) {
    let started = Instant::now();
    while !condition() {
        assert!(started.elapsed() < DEADLINE, "waited in vain for {what}");
        thread::sleep(PAUSE);
    }
}

/// A working directory. What daemons write there is collected in `out` and `err`.
pub(crate) struct Place {
    dir: TempDir,
}

impl Place {
    pub(crate) fn new() -> Place {
        Place {
            dir: tempfile::tempdir().expect("a temporary directory"),
        }
    }

    pub(crate) fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Writes a file anew, in place where it is there.
    #[track_caller]
    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::write(self.path(name), content).expect("written");
    }

    #[track_caller]
    pub(crate) fn append(&self, name: &str, content: impl AsRef<[u8]>) {
        let options = OpenOptions::new().append(true).create(true).clone();
        let mut file = options.open(self.path(name)).expect("opened");
        file.write_all(content.as_ref()).expect("written");
    }

    #[track_caller]
    pub(crate) fn rename(&self, from: &str, to: &str) {
        fs::rename(self.path(from), self.path(to)).expect("renamed");
    }

    #[track_caller]
    pub(crate) fn remove(&self, name: &str) {
        fs::remove_file(self.path(name)).expect("removed");
    }

    pub(crate) fn make_dir(&self, name: &str) {
        fs::create_dir(self.path(name)).expect("created");
    }

    /// A call of the program in this directory.
    pub(crate) fn command<S: AsRef<OsStr>>(
        &self,
        arguments: impl IntoIterator<Item = S>,
    ) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tracecheck"));
        command.args(arguments).current_dir(self.dir.path());
        for variable in [
            "NOTIFY_SOCKET",
            "WATCHDOG_USEC",
            "WATCHDOG_PID",
            "RUST_LOG",
            "LISTEN_FDS",
        ] {
            command.env_remove(variable);
        }
        command
    }

    /// Starts a daemon that keeps its state, with traces told apart by `/trace`, and waits until it
    /// is ready.
    #[track_caller]
    pub(crate) fn start(&self, arguments: &[&str]) -> Daemon<'_> {
        let usual = [
            "--follow",
            "--format=json",
            "--trace-key=/trace",
            "--state-dir=state",
        ];
        self.start_command(self.command(usual.iter().chain(arguments)))
    }

    /// Starts a daemon and waits until it is ready.
    #[track_caller]
    pub(crate) fn start_command(&self, command: Command) -> Daemon<'_> {
        let daemon = self.spawn(command);
        daemon.wait_ready();
        daemon
    }

    /// Starts a daemon.
    #[track_caller]
    pub(crate) fn spawn(&self, mut command: Command) -> Daemon<'_> {
        let log = |name: &str| {
            let options = OpenOptions::new().append(true).create(true).clone();
            options.open(self.path(name)).expect("opened")
        };
        self.drop_cut_line();
        let notify = Notify::new(self);
        command
            .env("NOTIFY_SOCKET", &notify.path)
            .stdin(Stdio::null())
            .stderr(log("err"));
        if !command_has_stdout(&command) {
            command.stdout(log("out"));
        }
        let child = command.spawn().expect("the program runs");
        Daemon {
            place: self,
            child,
            notify,
        }
    }

    /// A kill may have cut the last line, which would run into the first one of the next daemon.
    fn drop_cut_line(&self) {
        let text = fs::read(self.path("out")).unwrap_or_default();
        let whole = memchr::memrchr(b'\n', &text).map_or(0, |end| end + 1);
        if whole < text.len() {
            let file = OpenOptions::new().write(true).open(self.path("out"));
            let file = file.expect("opened");
            file.set_len(whole as u64).expect("cut");
        }
    }

    /// The events that were written so far, of all daemons; each is one valid JSON object.
    #[track_caller]
    pub(crate) fn events(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.path("out")).unwrap_or_default();
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        let event = |line: &str| {
            assert!(line.len() < 48 * 1024, "{} bytes", line.len());
            serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))
        };
        whole.lines().map(event).collect()
    }

    pub(crate) fn events_of(&self, sort: &str) -> Vec<Value> {
        let mut events = self.events();
        events.retain(|event| event["event"] == sort);
        events
    }

    pub(crate) fn findings(&self) -> Vec<Value> {
        self.events_of("finding")
    }

    /// What stands on standard error.
    pub(crate) fn diagnostics(&self) -> String {
        let bytes = fs::read(self.path("err")).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// How many findings there are of each trace.
    pub(crate) fn hits(&self) -> BTreeMap<String, usize> {
        let mut hits = BTreeMap::new();
        for finding in self.findings() {
            let trace = finding["trace"].as_str().expect("a name").to_owned();
            *hits.entry(trace).or_default() += 1;
        }
        hits
    }

    /// Waits for a finding of this trace.
    #[track_caller]
    pub(crate) fn wait_hit(&self, trace: impl std::fmt::Display) {
        let trace = trace.to_string();
        // A text search first: the file may be long.
        let name = format!("\"trace\":\"{trace}\"");
        wait_for(&trace, || {
            let text = fs::read(self.path("out")).unwrap_or_default();
            memchr::memmem::find(&text, name.as_bytes()).is_some()
                && self.hits().contains_key(&trace)
        });
    }

    /// Every one of these traces has exactly one finding, and there are no others.
    #[track_caller]
    pub(crate) fn assert_hits<T: std::fmt::Display>(&self, traces: impl IntoIterator<Item = T>) {
        let expected: BTreeMap<_, _> = traces
            .into_iter()
            .map(|trace| (trace.to_string(), 1))
            .collect();
        assert_eq!(self.hits(), expected, "{}", self.diagnostics());
    }

    /// How often a text stands on standard error.
    pub(crate) fn said(&self, text: &str) -> usize {
        self.diagnostics().matches(text).count()
    }
}

fn command_has_stdout(command: &Command) -> bool {
    // Set by tests that read it themselves.
    command
        .get_envs()
        .any(|(name, _)| name == "TEST_OWN_STDOUT")
}

/// A daemon that runs. Killed where a test fails before it ends.
pub(crate) struct Daemon<'p> {
    place: &'p Place,
    pub(crate) child: Child,
    pub(crate) notify: Notify,
}

impl Daemon<'_> {
    #[track_caller]
    pub(crate) fn wait_ready(&self) {
        self.notify.wait("READY=1");
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, name: &str) {
        let kill = Command::new("sh")
            .arg("-c")
            .arg(format!("kill -{name} {}", self.id()))
            .status();
        assert!(kill.expect("a shell").success());
    }

    /// Resident memory in KiB.
    pub(crate) fn resident_kib(&self) -> u64 {
        self.status("VmRSS:")
    }

    /// Most memory that was ever resident, in KiB.
    pub(crate) fn peak_kib(&self) -> u64 {
        self.status("VmHWM:")
    }

    fn status(&self, field: &str) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.id())).expect("it runs");
        let line = status.lines().find(|line| line.starts_with(field));
        let number = line.and_then(|line| line.split_ascii_whitespace().nth(1));
        number.expect("a number").parse().expect("a number")
    }

    pub(crate) fn descriptors(&self) -> usize {
        let directory = format!("/proc/{}/fd", self.id());
        fs::read_dir(directory).expect("it runs").count()
    }

    /// Ends it in good order, which takes no more than two seconds and a little, and gives its status.
    #[track_caller]
    pub(crate) fn stop(self) -> i32 {
        self.stop_with("TERM").expect("a status")
    }

    /// Kills it.
    #[track_caller]
    pub(crate) fn kill(self) {
        assert_eq!(self.stop_with("KILL"), None);
    }

    #[track_caller]
    fn stop_with(mut self, signal: &str) -> Option<i32> {
        self.signal(signal);
        let status = self.wait();
        assert!(
            !self.place.diagnostics().contains("panicked"),
            "{}",
            self.place.diagnostics()
        );
        status
    }

    /// Waits for its end.
    #[track_caller]
    pub(crate) fn wait(&mut self) -> Option<i32> {
        let mut status = None;
        wait_for("the end of the daemon", || {
            status = self.child.try_wait().expect("a child");
            status.is_some()
        });
        status.and_then(|status| status.code())
    }

    pub(crate) fn runs(&mut self) -> bool {
        self.child.try_wait().expect("a child").is_none()
    }
}

impl Drop for Daemon<'_> {
    fn drop(&mut self) {
        // Fails where it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The service manager's end of the notification protocol.
pub(crate) struct Notify {
    socket: UnixDatagram,
    path: PathBuf,
    _dir: TempDir,
    said: std::cell::RefCell<Vec<(Instant, String)>>,
}

impl Notify {
    fn new(_place: &Place) -> Notify {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = dir.path().join("notify");
        let socket = UnixDatagram::bind(&path).expect("bound");
        socket.set_nonblocking(true).expect("a socket");
        Notify {
            socket,
            path,
            _dir: dir,
            said: std::cell::RefCell::default(),
        }
    }

    /// Everything that was said until now, and when it was read.
    pub(crate) fn said(&self) -> Vec<(Instant, String)> {
        let mut buffer = [0; 4096];
        while let Ok(length) = self.socket.recv(&mut buffer) {
            let text = String::from_utf8_lossy(&buffer[..length]).into_owned();
            self.said.borrow_mut().push((Instant::now(), text));
        }
        self.said.borrow().clone()
    }

    #[track_caller]
    pub(crate) fn wait(&self, text: &str) {
        wait_for(text, || {
            self.said().iter().any(|(_, said)| said.contains(text))
        });
    }

    /// How many messages hold `text`.
    pub(crate) fn count(&self, text: &str) -> usize {
        let said = self.said();
        said.iter().filter(|(_, said)| said.contains(text)).count()
    }
}

/// A file that is written to in place, without append mode.
pub(crate) fn writer(path: &Path) -> File {
    File::create(path).expect("created")
}
