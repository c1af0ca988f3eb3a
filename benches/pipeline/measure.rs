//! Runs a program and says what it took.
//!
//! A process of its own, this very program, stands between: it pins itself to so many cores, which
//! the program inherits, and asks the kernel afterwards what its only child took.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use crate::arguments::Pinned;

/// A call of a program.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    cores: usize,
    call: Vec<OsString>,
    out: PathBuf,
}

/// What it took.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Took {
    /// From the start to the end of the program, by the clock.
    pub(crate) seconds: f64,
    /// On all cores together.
    pub(crate) cpu_seconds: f64,
    pub(crate) peak_bytes: u64,
    pub(crate) status: i32,
}

impl Call {
    pub(crate) fn new(program: impl AsRef<OsStr>) -> Self {
        Call {
            cores: 1,
            call: vec![program.as_ref().to_owned()],
            out: "/dev/null".into(),
        }
    }

    /// This very program, for what it does besides measuring.
    pub(crate) fn this(command: &str) -> io::Result<Self> {
        Ok(Call::new(std::env::current_exe()?).arg(command))
    }

    pub(crate) fn arg(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.call.push(argument.as_ref().to_owned());
        self
    }

    pub(crate) fn args(self, arguments: &[&str]) -> Self {
        arguments.iter().fold(self, Call::arg)
    }

    pub(crate) fn on_cores(mut self, cores: usize) -> Self {
        self.cores = cores;
        self
    }

    pub(crate) fn to(mut self, out: &Path) -> Self {
        self.out = out.to_owned();
        self
    }

    /// Runs it with nothing to read on standard input.
    pub(crate) fn run(&self) -> io::Result<Took> {
        self.wait(self.start(Stdio::null())?)
    }

    /// Runs it with what `feed` writes on standard input.
    pub(crate) fn run_fed(
        &self,
        feed: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> io::Result<Took> {
        let mut child = self.start(Stdio::piped())?;
        let mut stdin = child.stdin.take().expect("piped");
        feed(&mut stdin)?;
        drop(stdin);
        self.wait(child)
    }

    fn start(&self, stdin: Stdio) -> io::Result<Child> {
        Command::new(std::env::current_exe()?)
            .args(["measure", "--cores", &self.cores.to_string(), "--out"])
            .arg(&self.out)
            .arg("--")
            .args(&self.call)
            .stdin(stdin)
            .stdout(Stdio::piped())
            .spawn()
    }

    fn wait(&self, mut child: Child) -> io::Result<Took> {
        let mut text = String::new();
        let mut stdout = child.stdout.take().expect("piped");
        stdout.read_to_string(&mut text)?;
        child.wait()?;
        took(&text).ok_or_else(|| io::Error::other(format!("could not run {:?}", self.call)))
    }
}

impl Took {
    /// An error where the program ended otherwise than expected.
    pub(crate) fn expect(self, status: i32, what: &str) -> io::Result<Self> {
        if self.status == status {
            return Ok(self);
        }
        let message = format!("{what}: status {} instead of {status}", self.status);
        Err(io::Error::other(message))
    }
}

fn took(text: &str) -> Option<Took> {
    let mut words = text.split_ascii_whitespace();
    Some(Took {
        seconds: words.next()?.parse().ok()?,
        cpu_seconds: words.next()?.parse().ok()?,
        peak_bytes: words.next()?.parse().ok()?,
        status: words.next()?.parse().ok()?,
    })
}

/// The process between: runs the call and writes what it took.
pub(crate) fn measure(pinned: &Pinned) -> io::Result<()> {
    pin(pinned.cores)?;
    let (program, arguments) = pinned.call.split_first().expect("clap sees to it");
    let mut command = Command::new(program);
    command.args(arguments).stdout(File::create(&pinned.out)?);
    quiet(&mut command);
    let started = Instant::now();
    let status = command.status()?;
    let seconds = started.elapsed().as_secs_f64();
    let (cpu_seconds, peak_bytes) = usage()?;
    let status = status.code().unwrap_or(-1);
    println!("{seconds} {cpu_seconds} {peak_bytes} {status}");
    Ok(())
}

/// Surroundings that say nothing.
pub(crate) fn quiet(command: &mut Command) {
    for variable in ["COLUMNS", "NO_COLOR", "RUST_LOG", "TERM"] {
        command.env_remove(variable);
    }
}

/// How many cores this process may use.
pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

#[cfg(target_os = "linux")]
fn pin(cores: usize) -> io::Result<()> {
    use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
    use nix::unistd::Pid;

    let this = Pid::from_raw(0);
    let allowed = sched_getaffinity(this)?;
    let mut chosen = CpuSet::new();
    (0..CpuSet::count())
        .filter(|&core| allowed.is_set(core).unwrap_or(false))
        .take(cores)
        .try_for_each(|core| chosen.set(core))?;
    Ok(sched_setaffinity(this, &chosen)?)
}

#[cfg(target_os = "linux")]
fn usage() -> io::Result<(f64, u64)> {
    use nix::sys::resource::{UsageWho, getrusage};

    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let seconds =
        |time: nix::sys::time::TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
    let peak_kib = u64::try_from(usage.max_rss()).unwrap_or_default();
    Ok((
        seconds(usage.user_time()) + seconds(usage.system_time()),
        peak_kib * 1024,
    ))
}

#[cfg(not(target_os = "linux"))]
fn pin(_: usize) -> io::Result<()> {
    Err(io::Error::other(
        "programs are pinned to cores on Linux only",
    ))
}

#[cfg(not(target_os = "linux"))]
fn usage() -> io::Result<(f64, u64)> {
    Err(io::Error::other(
        "the memory of programs is known on Linux only",
    ))
}
