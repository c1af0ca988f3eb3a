//! Flags and a TOML file made into one checked [`Config`]. Every fault is found before anything is
//! opened, and all are reported at once.

mod check;
mod file;
mod size;

use std::env;
use std::fmt;
use std::io::{self, IsTerminal};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use tracecheck::pointer::JsonPointer;
use tracecheck::{ClaimPatterns, Filter};
use tracing::level_filters::LevelFilter;

use self::check::Checker;
pub(crate) use self::check::DEFAULT_RECORD_BYTES;
use self::file::FileOptions;
use crate::cli::{ColorChoice, FailOn, FormatChoice, OutputOptions, RunOptions};
use crate::emit::journal_socket::JOURNAL_SOCKET;
use crate::source::listen::ListenOptions;

/// A run, decided in every point.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    /// Standard input at most once. Empty only where sockets are listened on.
    pub(crate) inputs: Vec<Input>,
    /// Go on as the traces grow.
    pub(crate) follow: bool,
    /// Begin at the end of files that exist and are not known.
    pub(crate) from_end: bool,
    /// How many threads may verify.
    pub(crate) jobs: NonZeroUsize,
    /// Where connections are accepted.
    pub(crate) listen: ListenOptions,
    /// Most that is held of unfinished lines, of all sources together.
    pub(crate) max_buffered_bytes: usize,
    /// Where positions and states are kept.
    pub(crate) state_dir: Option<PathBuf>,
    /// Where metrics are served, HOST:PORT.
    pub(crate) metrics: Option<String>,
    /// How long a stop may take.
    pub(crate) drain: Duration,
    /// What the sources hold.
    pub(crate) protocol: Protocol,
    /// The member that names a record's trace; without it each source is a trace.
    pub(crate) trace_key: Option<JsonPointer>,
    /// Kinds of the records that end their traces; none is empty.
    pub(crate) end_kinds: Vec<String>,
    /// How long a trace may be without a record; never zero.
    pub(crate) trace_idle: Option<Duration>,
    /// How many traces may be open.
    pub(crate) max_traces: NonZeroUsize,
    /// How findings are written.
    pub(crate) format: Format,
    /// Colour on standard output; never with JSON.
    pub(crate) color: bool,
    /// Colour on standard error.
    pub(crate) color_diagnostics: bool,
    /// Show how far the reading is.
    pub(crate) progress: bool,
    /// What is written of the program's own doings where `RUST_LOG` does not say.
    pub(crate) verbosity: LevelFilter,
    /// Only errors of the program itself on standard error.
    pub(crate) quiet: bool,
    /// Which findings are reported and counted.
    pub(crate) filter: Filter,
    /// What makes the exit status 1.
    pub(crate) fail_on: FailOn,
    /// Report traces that ended in good order.
    pub(crate) trace_events: bool,
    /// Wordings of a claim that no agent was eligible.
    pub(crate) claims: ClaimPatterns,
    /// Longer lines are malformed; from 64 B to 1 GiB.
    pub(crate) max_record_bytes: usize,
}

/// What the sources hold, and what it is held against.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// A3 traces.
    A3,
    /// Streams of AG-UI events.
    AgUi {
        /// What the agent declares.
        declaration: Option<PathBuf>,
    },
}

/// Something to read. A directory or a glob is expanded where it is opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Input {
    /// Standard input.
    Stdin,
    /// A file, a directory or a glob.
    Path(PathBuf),
}

/// How findings are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// One JSON object a line.
    Json,
    /// Text for people.
    Text,
    /// Entries of the journal that listens on this socket.
    Journald(PathBuf),
}

/// What the surroundings say; an argument, so that tests need no terminal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Environment {
    pub(crate) stdin_is_terminal: bool,
    pub(crate) stdout_is_terminal: bool,
    pub(crate) stderr_is_terminal: bool,
    /// `NO_COLOR` is set and not empty (no-color.org).
    pub(crate) no_color: bool,
    /// `TERM` is `dumb`.
    pub(crate) dumb_terminal: bool,
    /// systemd passes sockets on to this process.
    pub(crate) has_passed_sockets: bool,
}

/// Why there is no [`Config`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ConfigError {
    /// Nothing was given to read and standard input is a terminal: somebody needs the help text.
    NothingGiven,
    /// What was given does not hold; never empty.
    Faults(Vec<Fault>),
}

/// One thing that is wrong with what was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    /// The flag, or file and key.
    pub(crate) place: String,
    /// What is wrong there.
    pub(crate) problem: String,
    /// What should be there.
    pub(crate) expected: String,
}

impl Config {
    /// Checks what was typed, with the file that it names.
    ///
    /// # Errors
    ///
    /// Everything that is wrong, in the file's structure first, then option by option.
    pub(crate) fn new(typed: RunOptions, environment: &Environment) -> Result<Config, ConfigError> {
        let mut faults = Vec::new();
        let file = match &typed.config {
            Some(path) => FileOptions::read(path, &mut faults),
            None => FileOptions::default(),
        };
        Checker::new(typed.config.clone(), faults).check(typed, file, environment)
    }
}

impl Config {
    /// What differs from another configuration and cannot change while a run goes on: what states
    /// and output already depend on.
    pub(crate) fn what_cannot_change(&self, other: &Config) -> Vec<&'static str> {
        let mut fixed = Vec::new();
        let mut same = |name, is_same: bool| {
            if !is_same {
                fixed.push(name);
            }
        };
        same("protocol or declaration", self.protocol == other.protocol);
        same("drain", self.drain == other.drain);
        same("trace_key", self.trace_key == other.trace_key);
        same("state_dir", self.state_dir == other.state_dir);
        same("metrics", self.metrics == other.metrics);
        same("format", self.format == other.format);
        same("color", self.color == other.color);
        same("follow", other.follow);
        let stdin = |config: &Config| config.inputs.contains(&Input::Stdin);
        same("standard input", stdin(self) == stdin(other));
        fixed
    }
}

impl ConfigError {
    /// Each thing that is wrong, for itself.
    pub(crate) fn problems(&self) -> Vec<String> {
        match self {
            ConfigError::NothingGiven => vec![self.to_string()],
            ConfigError::Faults(faults) => faults.iter().map(ToString::to_string).collect(),
        }
    }
}

impl Environment {
    /// That of this process.
    pub(crate) fn of_process() -> Environment {
        Environment {
            stdin_is_terminal: io::stdin().is_terminal(),
            stdout_is_terminal: io::stdout().is_terminal(),
            stderr_is_terminal: io::stderr().is_terminal(),
            no_color: env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty()),
            dumb_terminal: env::var_os("TERM").is_some_and(|value| value == "dumb"),
            has_passed_sockets: false,
        }
    }

    fn colors(&self, choice: ColorChoice, is_terminal: bool) -> bool {
        match choice {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => is_terminal && !self.no_color && !self.dumb_terminal,
        }
    }
}

impl OutputOptions {
    /// The format, and whether standard output is coloured.
    pub(crate) fn resolve(self, environment: &Environment) -> (Format, bool) {
        let format = match self.format.unwrap_or_default() {
            FormatChoice::Json => Format::Json,
            FormatChoice::Text => Format::Text,
            FormatChoice::Journald => Format::Journald(JOURNAL_SOCKET.into()),
            FormatChoice::Auto if environment.stdout_is_terminal => Format::Text,
            FormatChoice::Auto => Format::Json,
        };
        let choice = self.color.unwrap_or_default();
        let color = environment.colors(choice, environment.stdout_is_terminal);
        let color = color && format == Format::Text;
        (format, color)
    }

    /// Whether standard error is coloured.
    pub(crate) fn colors_diagnostics(self, environment: &Environment) -> bool {
        environment.colors(
            self.color.unwrap_or_default(),
            environment.stderr_is_terminal,
        )
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Fault {
            place,
            problem,
            expected,
        } = self;
        write!(f, "{place}: {problem}; expected {expected}")
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConfigError::NothingGiven => {
                f.write_str("error: nothing to read: standard input is a terminal")
            }
            ConfigError::Faults(faults) => {
                for fault in faults {
                    writeln!(f, "error: {fault}")?;
                }
                f.write_str("\nFor more information, try '--help'.")
            }
        }
    }
}

impl std::error::Error for ConfigError {}

#[cfg(test)]
mod tests;
