//! A journal of the test's own: systemd-journald in mounts that nobody else sees.

#![allow(dead_code, reason = "each test file uses a part of it")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

const JOURNALD: &str = "/lib/systemd/systemd-journald";

/// The namespace of the journal. Such a journal leaves the kernel's log and the audit alone.
const NAMESPACE: &str = "tracecheck";

/// What runs in the private mounts: `/run`, where the journal listens, and `/var/log`, where it
/// writes, are directories of the test.
const SCRIPT: &str =
    r#"mount --bind "$0/run" /run && mount --bind "$0/log" /var/log && exec "$1" "$2""#;

/// How long anything may take before a test fails.
const DEADLINE: Duration = Duration::from_secs(60);

pub(crate) struct Journald {
    directory: tempfile::TempDir,
    child: Child,
    unshare: &'static [&'static str],
}

impl Journald {
    /// A journal that listens; or why there cannot be one on this machine.
    pub(crate) fn start() -> Result<Journald, String> {
        if !Path::new(JOURNALD).exists() {
            return Err(format!("there is no {JOURNALD}"));
        }
        let unshare = private_mounts()?;
        let directory = tempfile::tempdir().expect("a directory");
        for name in ["run", "log"] {
            fs::create_dir(directory.path().join(name)).expect("a directory");
        }
        let child = spawn(directory.path(), unshare);
        let journald = Journald {
            directory,
            child,
            unshare,
        };
        journald.wait_until_it_listens();
        Ok(journald)
    }

    /// Where it listens.
    pub(crate) fn socket(&self) -> PathBuf {
        let path = format!("run/systemd/journal.{NAMESPACE}/socket");
        self.directory.path().join(path)
    }

    /// Ends it, and takes its socket away.
    pub(crate) fn stop(&mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("a child");
        fs::remove_file(self.socket()).expect("it listened");
    }

    /// Starts it again, with what it has written before.
    pub(crate) fn start_again(&mut self) {
        self.child = spawn(self.directory.path(), self.unshare);
        self.wait_until_it_listens();
    }

    /// Its entries with all these fields (`NAME=value`), once there are so many of them, in the order
    /// in which they came.
    #[track_caller]
    pub(crate) fn entries(&self, fields: &[&str], number: usize) -> Vec<Value> {
        let started = Instant::now();
        loop {
            let output = self.journalctl(fields);
            let text = String::from_utf8(output.stdout).expect("UTF-8");
            let parse = |line| serde_json::from_str(line).expect("JSON");
            let entries: Vec<Value> = text.lines().map(parse).collect();
            if entries.len() >= number {
                return entries;
            }
            let (found, stderr) = (entries.len(), String::from_utf8_lossy(&output.stderr));
            assert!(
                started.elapsed() < DEADLINE,
                "{found} of {number} entries with {fields:?}: {stderr}"
            );
            thread::sleep(Duration::from_millis(20));
        }
    }

    fn journalctl(&self, fields: &[&str]) -> Output {
        let journals = fs::read_dir(self.directory.path().join("log/journal"));
        let journal = journals
            .ok()
            .and_then(|mut entries| entries.next())
            .map_or(PathBuf::new(), |entry| entry.expect("readable").path());
        Command::new("journalctl")
            .arg(format!("--directory={}", journal.display()))
            .args(["--output=json", "--all", "--no-pager", "--quiet"])
            .args(fields)
            .output()
            .expect("journalctl runs")
    }

    fn wait_until_it_listens(&self) {
        let started = Instant::now();
        while !self.socket().exists() {
            assert!(started.elapsed() < DEADLINE, "the journal does not listen");
            thread::sleep(Duration::from_millis(2));
        }
    }
}

impl Drop for Journald {
    fn drop(&mut self) {
        // Fails where it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn spawn(directory: &Path, unshare: &[&str]) -> Child {
    Command::new("unshare")
        .args(unshare)
        .args(["sh", "-c", SCRIPT])
        .arg(directory)
        .args([JOURNALD, NAMESPACE])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("unshare was there a moment ago")
}

/// The arguments with which `unshare` makes private mounts: root may, and mostly everybody who takes a
/// namespace of users for it.
fn private_mounts() -> Result<&'static [&'static str], String> {
    let mut why = String::new();
    for arguments in [&["--mount"][..], &["--map-root-user", "--mount"]] {
        let mut command = Command::new("unshare");
        match command.args(arguments).arg("true").output() {
            Ok(output) if output.status.success() => return Ok(arguments),
            Ok(output) => why = String::from_utf8_lossy(&output.stderr).into_owned(),
            Err(error) => why = format!("unshare: {error}"),
        }
    }
    Err(format!("private mounts are not permitted: {}", why.trim()))
}
