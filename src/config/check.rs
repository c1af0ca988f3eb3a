//! Values with a grammar, checked one by one; whatever is wrong is kept until all are checked.

use std::num::NonZeroUsize;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use tracecheck::filter::FilterList;
use tracecheck::pointer::{JsonPointer, JsonPointerError};
use tracecheck::{ClaimPatterns, Filter};
use tracing::level_filters::LevelFilter;

use super::file::{FileOptions, NumberOrText};
use super::size::{EXPECTED_SIZE, parse_size};
use super::{Config, ConfigError, Environment, Fault, Format, Input, Protocol};
use crate::cli::{OutputOptions, ProtocolChoice, RunOptions};
use crate::source::listen::{
    Address, DEFAULT_MAX_CONNECTIONS, DEFAULT_UNIX_MODE, ListenOptions, Owner, TlsFiles, parse_mode,
};

/// Holds a placement among a hundred thousand candidates.
pub(crate) const DEFAULT_RECORD_BYTES: usize = 16 << 20;
/// Below, no real record fits; above, one line could take the machine's memory.
const RECORD_BYTES: RangeInclusive<u64> = 64..=1 << 30;
/// A few hundred bytes each, so some hundred megabytes at the most.
const DEFAULT_MAX_TRACES: NonZeroUsize = NonZeroUsize::new(1_000_000).expect("not zero");

/// Most of unfinished lines, of all sources: four records of the greatest length, and little beside
/// what a machine has.
const DEFAULT_BUFFERED_BYTES: usize = 64 << 20;
/// Below, ordinary lines would be refused.
const BUFFERED_BYTES: RangeInclusive<u64> = 64 << 10..=1 << 40;
/// Well within what service managers wait before they kill.
const DEFAULT_DRAIN: Duration = Duration::from_secs(2);

/// Checks values and keeps what is wrong with them.
pub(super) struct Checker {
    file_name: Option<PathBuf>,
    faults: Vec<Fault>,
}

/// A value and where it was given.
struct Given<T> {
    value: T,
    place: String,
}

impl Checker {
    /// Goes on where reading the file of that name, if any, has found faults already.
    pub(super) fn new(file_name: Option<PathBuf>, faults: Vec<Fault>) -> Checker {
        Checker { file_name, faults }
    }

    /// Decides every point of a run; what was typed wins over the file.
    pub(super) fn check(
        mut self,
        typed: RunOptions,
        file: FileOptions,
        environment: &Environment,
    ) -> Result<Config, ConfigError> {
        let output = OutputOptions {
            format: typed.output.format.or(file.format),
            color: typed.output.color.or(file.color),
        };
        let (format, color) = output.resolve(environment);
        let format = self.journal(format, &typed, &file);
        let (quiet, verbose) = self.loudness(&typed, &file);
        let protocol = self.protocol(&typed, &file);
        let listen = self.listen(&typed, &file);
        let has_sockets = !listen.addresses.is_empty() || environment.has_passed_sockets;
        let follow = typed.follow || file.follow.unwrap_or_default() || has_sockets;
        let from_end = typed.from_end || file.from_end.unwrap_or_default();
        self.only_following(&typed, &file, follow);
        let max_buffered_bytes = self.max_buffered_bytes(&typed, &file);
        let jobs = self.number("jobs", &typed.jobs, &file.jobs);
        let paths = self.list("paths", typed.paths, file.paths);
        let nothing_given = paths.value.is_empty() && !has_sockets;
        let no_advisories = typed.no_advisories || file.no_advisories.unwrap_or_default();
        let only = self.list("only", typed.only, file.only);
        let ignore = self.list("ignore", typed.ignore, file.ignore);

        let config = Config {
            inputs: self.inputs(paths, has_sockets),
            follow,
            from_end,
            jobs: jobs.unwrap_or_else(cores),
            listen,
            max_buffered_bytes,
            state_dir: typed.state_dir.or(file.state_dir),
            metrics: self.metrics(typed.metrics, file.metrics),
            drain: self
                .duration("drain", typed.drain, file.drain)
                .unwrap_or(DEFAULT_DRAIN),
            protocol,
            max_record_bytes: self.max_record_bytes(typed.max_record_bytes, file.max_record_bytes),
            trace_key: self.trace_key(typed.trace_key, file.trace_key),
            end_kinds: self.end_kinds(typed.end_kind, file.end_kind),
            trace_idle: self.trace_idle(typed.trace_idle, file.trace_idle),
            max_traces: self.max_traces(typed.max_traces, file.max_traces),
            claims: self.claims(typed.claim_pattern, file.claim_pattern),
            filter: self.filter(!no_advisories, &only, &ignore),
            fail_on: typed.fail_on.or(file.fail_on).unwrap_or_default(),
            trace_events: typed.trace_events || file.trace_events.unwrap_or_default(),
            format,
            color,
            color_diagnostics: output.colors_diagnostics(environment),
            progress: environment.stderr_is_terminal && !quiet && !follow,
            verbosity: verbosity(quiet, verbose),
            quiet,
        };
        if !self.faults.is_empty() {
            return Err(ConfigError::Faults(self.faults));
        }
        if nothing_given && environment.stdin_is_terminal {
            return Err(ConfigError::NothingGiven);
        }
        Ok(config)
    }

    fn inputs(&mut self, paths: Given<Vec<PathBuf>>, has_sockets: bool) -> Vec<Input> {
        let place = paths.place;
        let mut inputs = Vec::new();
        for path in paths.value {
            if path.as_os_str().is_empty() {
                self.fault(&place, "a path is empty".to_owned(), "a file's name or `-`");
            } else if path.as_os_str() != "-" {
                inputs.push(Input::Path(path));
            } else if inputs.contains(&Input::Stdin) {
                let problem = "`-` is there twice, and standard input can be read once";
                self.fault(&place, problem.to_owned(), "it once");
            } else {
                inputs.push(Input::Stdin);
            }
        }
        if inputs.is_empty() && !has_sockets {
            inputs.push(Input::Stdin);
        }
        inputs
    }

    /// The protocol, once everything that was given belongs to it.
    fn protocol(&mut self, typed: &RunOptions, file: &FileOptions) -> Protocol {
        let declaration = self.one(
            "declaration",
            typed.declaration.clone(),
            file.declaration.clone(),
        );
        match typed.protocol.or(file.protocol).unwrap_or_default() {
            ProtocolChoice::A3 => {
                if let Some(Given { place, .. }) = declaration {
                    let problem = "A3 traces are not held against a declaration of AG-UI";
                    self.fault(&place, problem.to_owned(), "--protocol ag-ui with it");
                }
                Protocol::A3
            }
            ProtocolChoice::AgUi => {
                self.only_of_a3(typed, file);
                if let Some(Given { value, place }) = &declaration
                    && (value.as_os_str().is_empty() || value.as_os_str() == "-")
                {
                    let problem = "standard input is for the events";
                    self.fault(place, problem.to_owned(), "a file's name");
                }
                Protocol::AgUi {
                    declaration: declaration.map(|given| given.value),
                }
            }
        }
    }

    /// Refuses what says something of A3 traces and would do nothing to AG-UI runs.
    fn only_of_a3(&mut self, typed: &RunOptions, file: &FileOptions) {
        let given = [
            (
                "trace-key",
                typed.trace_key.is_some(),
                file.trace_key.is_some(),
            ),
            (
                "end-kind",
                !typed.end_kind.is_empty(),
                file.end_kind.is_some(),
            ),
            (
                "trace-idle",
                typed.trace_idle.is_some(),
                file.trace_idle.is_some(),
            ),
            (
                "max-traces",
                typed.max_traces.is_some(),
                file.max_traces.is_some(),
            ),
            (
                "claim-pattern",
                !typed.claim_pattern.is_empty(),
                file.claim_pattern.is_some(),
            ),
        ];
        for (name, is_typed, is_in_file) in given {
            let place = match (is_typed, is_in_file) {
                (true, _) => flag_place(name),
                (false, true) => self.file_place(name),
                (false, false) => continue,
            };
            let problem = "it is about A3 traces, and AG-UI runs end by themselves";
            self.fault(&place, problem.to_owned(), "--protocol a3 with it");
        }
    }

    fn max_record_bytes(&mut self, typed: Option<String>, file: Option<NumberOrText>) -> usize {
        let range = (RECORD_BYTES, "64B to 1GiB");
        let size = self.size("max-record-bytes", typed, file, range);
        size.unwrap_or(DEFAULT_RECORD_BYTES)
    }

    fn max_buffered_bytes(&mut self, typed: &RunOptions, file: &FileOptions) -> usize {
        let typed = typed.max_buffered_bytes.clone();
        let range = (BUFFERED_BYTES, "64KiB to 1TiB");
        let size = self.size(
            "max-buffered-bytes",
            typed,
            file.max_buffered_bytes.clone(),
            range,
        );
        size.unwrap_or(DEFAULT_BUFFERED_BYTES)
    }

    fn size(
        &mut self,
        name: &str,
        typed: Option<String>,
        file: Option<NumberOrText>,
        (range, expected): (RangeInclusive<u64>, &str),
    ) -> Option<usize> {
        let file = file.map(NumberOrText::into_text);
        let Given { value, place } = self.one(name, typed, file)?;
        let Some(bytes) = parse_size(&value) else {
            self.fault(&place, format!("`{value}` is no size"), EXPECTED_SIZE);
            return None;
        };
        match usize::try_from(bytes) {
            Ok(size) if range.contains(&bytes) => Some(size),
            _ => {
                let problem = format!("`{value}` is out of range");
                self.fault(&place, problem, expected);
                None
            }
        }
    }

    /// Where connections are accepted.
    fn listen(&mut self, typed: &RunOptions, file: &FileOptions) -> ListenOptions {
        let connection_idle = self.duration(
            "connection-idle",
            typed.connection_idle.clone(),
            file.connection_idle.clone(),
        );
        let max_connections = self.number(
            "max-connections",
            &typed.max_connections,
            &file.max_connections,
        );
        ListenOptions {
            addresses: self.addresses(typed, file),
            tls: self.tls(typed, file),
            insecure: typed.insecure_listen || file.insecure_listen.unwrap_or_default(),
            max_connections: max_connections.map_or(DEFAULT_MAX_CONNECTIONS, NonZeroUsize::get),
            connection_idle,
            unix_mode: self.unix_mode(typed, file),
            unix_owner: self.unix_owner(typed, file),
        }
    }

    fn addresses(&mut self, typed: &RunOptions, file: &FileOptions) -> Vec<Address> {
        let Given { value, place } = self.list("listen", typed.listen.clone(), file.listen.clone());
        let mut addresses = Vec::new();
        for text in value {
            match text.parse::<Address>() {
                Ok(address) => addresses.push(address),
                Err(error) => self.fault(&place, error.problem, error.expected),
            }
        }
        addresses
    }

    fn unix_owner(&mut self, typed: &RunOptions, file: &FileOptions) -> Option<Owner> {
        let given = self.one(
            "unix-owner",
            typed.unix_owner.clone(),
            file.unix_owner.clone(),
        );
        let Given { value, place } = given?;
        match value.parse() {
            Ok(owner) => Some(owner),
            Err(problem) => {
                self.fault(
                    &place,
                    problem,
                    "USER, USER:GROUP or :GROUP, names or numbers",
                );
                None
            }
        }
    }

    /// All of what mutual TLS needs, or nothing of it.
    fn tls(&mut self, typed: &RunOptions, file: &FileOptions) -> Option<TlsFiles> {
        let given = [
            ("tls-cert", &typed.tls_cert, &file.tls_cert),
            ("tls-key", &typed.tls_key, &file.tls_key),
            ("tls-client-ca", &typed.tls_client_ca, &file.tls_client_ca),
        ];
        let given = given.map(|(name, typed, file)| self.one(name, typed.clone(), file.clone()));
        if let [Some(cert), Some(key), Some(client_ca)] = given {
            return Some(TlsFiles {
                cert: cert.value,
                key: key.value,
                client_ca: client_ca.value,
            });
        }
        if let Some(Given { place, .. }) = given.into_iter().flatten().next() {
            let problem = "TLS is mutual here, and needs a certificate, its key and the authority of the clients";
            self.fault(
                &place,
                problem.to_owned(),
                "all of --tls-cert, --tls-key and --tls-client-ca",
            );
        }
        None
    }

    fn unix_mode(&mut self, typed: &RunOptions, file: &FileOptions) -> u32 {
        let given = self.one("unix-mode", typed.unix_mode.clone(), file.unix_mode.clone());
        let Some(Given { value, place }) = given else {
            return DEFAULT_UNIX_MODE;
        };
        parse_mode(&value).unwrap_or_else(|problem| {
            self.fault(&place, problem, "octal digits, such as 0660");
            DEFAULT_UNIX_MODE
        })
    }

    /// Refuses what is said of following where nothing is followed.
    fn only_following(&mut self, typed: &RunOptions, file: &FileOptions, follow: bool) {
        let given = [
            (
                "from-end",
                typed.from_end.then_some(()),
                file.from_end.filter(|&on| on).map(drop),
            ),
            (
                "metrics",
                typed.metrics.as_ref().map(drop),
                file.metrics.as_ref().map(drop),
            ),
        ];
        for (name, typed, file) in given {
            if let Some(Given { place, .. }) = self.one(name, typed, file)
                && !follow
            {
                let problem = "there is nothing that goes on";
                self.fault(&place, problem.to_owned(), "--follow or --listen with it");
            }
        }
    }

    fn metrics(&mut self, typed: Option<String>, file: Option<String>) -> Option<String> {
        let Given { value, place } = self.one("metrics", typed, file)?;
        let port = value.rsplit_once(':').and_then(|(host, port)| {
            let port: Option<u16> = port.parse().ok();
            port.filter(|_| !host.is_empty())
        });
        if port.is_none() {
            let expected = "HOST:PORT, such as 127.0.0.1:9184";
            self.fault(&place, format!("`{value}` is no address"), expected);
        }
        Some(value)
    }

    fn journal(&mut self, format: Format, typed: &RunOptions, file: &FileOptions) -> Format {
        let socket = (typed.journal_socket.clone(), file.journal_socket.clone());
        match (format, self.one("journal-socket", socket.0, socket.1)) {
            (Format::Journald(_), Some(Given { value, .. })) => Format::Journald(value),
            (format @ (Format::Json | Format::Text), Some(Given { place, .. })) => {
                let problem = "nothing is written to a journal";
                self.fault(&place, problem.to_owned(), "--format journald with it");
                format
            }
            (format, None) => format,
        }
    }

    fn trace_key(&mut self, typed: Option<String>, file: Option<String>) -> Option<JsonPointer> {
        let Given { value, place } = self.one("trace-key", typed, file)?;
        let error = match value.parse() {
            Ok(pointer) => return Some(pointer),
            Err(error) => error,
        };
        let expected = match error {
            JsonPointerError::BadEscape => "`~` written ~0, and `/` inside a name ~1",
            _ => "one that begins with `/`, such as /trace or /content/task",
        };
        self.fault(&place, format!("`{value}` is no JSON Pointer"), expected);
        None
    }

    fn end_kinds(&mut self, typed: Vec<String>, file: Option<Vec<String>>) -> Vec<String> {
        let Given { value, place } = self.list("end-kind", typed, file);
        if value.iter().any(String::is_empty) {
            let expected = "the kind of a record, such as task.completed";
            self.fault(&place, "a kind is empty".to_owned(), expected);
        }
        value
    }

    fn trace_idle(&mut self, typed: Option<String>, file: Option<String>) -> Option<Duration> {
        self.duration("trace-idle", typed, file)
    }

    fn duration(
        &mut self,
        name: &str,
        typed: Option<String>,
        file: Option<String>,
    ) -> Option<Duration> {
        let Given { value, place } = self.one(name, typed, file)?;
        match humantime::parse_duration(&value) {
            Ok(duration) if !duration.is_zero() => Some(duration),
            Ok(_) => {
                let problem = format!("`{value}` is no time at all");
                self.fault(&place, problem, "more than zero, such as 5m");
                None
            }
            Err(_) => {
                let expected = "numbers with units, such as 30s, 5m or 1h30m";
                self.fault(&place, format!("`{value}` is no duration"), expected);
                None
            }
        }
    }

    fn max_traces(&mut self, typed: Option<String>, file: Option<NumberOrText>) -> NonZeroUsize {
        let number = self.number("max-traces", &typed, &file);
        number.unwrap_or(DEFAULT_MAX_TRACES)
    }

    fn number(
        &mut self,
        name: &str,
        typed: &Option<String>,
        file: &Option<NumberOrText>,
    ) -> Option<NonZeroUsize> {
        let file = file.clone().map(NumberOrText::into_text);
        let Given { value, place } = self.one(name, typed.clone(), file)?;
        let number = value.parse().ok();
        if number.is_none() {
            let problem = format!(
                "`{value}` is no number of {}",
                name.trim_start_matches("max-")
            );
            self.fault(&place, problem, "a whole number, 1 or more");
        }
        number
    }

    fn claims(&mut self, typed: Vec<String>, file: Option<Vec<String>>) -> ClaimPatterns {
        let Given { value, place } = self.list("claim-pattern", typed, file);
        for pattern in &value {
            if let Err(error) = ClaimPatterns::new([pattern]) {
                let expected = "one without look-around and back-references";
                self.fault(&place, error.to_string(), expected);
            }
        }
        // Where one does not compile the run is refused anyway.
        ClaimPatterns::new(&value).unwrap_or_default()
    }

    fn filter(
        &mut self,
        advisories: bool,
        only: &Given<Vec<String>>,
        ignore: &Given<Vec<String>>,
    ) -> Filter {
        let error = match Filter::new(advisories, &only.value, &ignore.value) {
            Ok(filter) => return filter,
            Err(error) => error,
        };
        for fault in error.faults {
            let place = match fault.list {
                FilterList::Only => &only.place,
                FilterList::Ignore => &ignore.place,
            };
            let expected = "a code or a glob over codes (all: tracecheck explain)";
            self.fault(place, fault.to_string(), expected);
        }
        Filter::default()
    }

    /// Whether to be quiet, and how verbose to be; the two exclude each other.
    fn loudness(&mut self, typed: &RunOptions, file: &FileOptions) -> (bool, u8) {
        if typed.quiet || typed.verbose > 0 {
            return (typed.quiet, typed.verbose);
        }
        let quiet = file.quiet.unwrap_or_default();
        let verbose = file.verbose.unwrap_or_default();
        if quiet && verbose > 0 {
            let place = self.file_place("verbose");
            self.fault(&place, "`quiet` is there too".to_owned(), "one of the two");
        }
        (quiet, verbose)
    }

    /// The value that was typed, or else that of the file.
    fn one<T>(&self, name: &str, typed: Option<T>, file: Option<T>) -> Option<Given<T>> {
        let (value, place) = match (typed, file) {
            (Some(value), _) => (value, flag_place(name)),
            (None, Some(value)) => (value, self.file_place(name)),
            (None, None) => return None,
        };
        Some(Given { value, place })
    }

    /// The list that was typed, or else that of the file, or else an empty one.
    fn list<T>(&self, name: &str, typed: Vec<T>, file: Option<Vec<T>>) -> Given<Vec<T>> {
        match file {
            Some(value) if typed.is_empty() => Given {
                value,
                place: self.file_place(name),
            },
            _ => Given {
                value: typed,
                place: flag_place(name),
            },
        }
    }

    fn file_place(&self, name: &str) -> String {
        let file = self.file_name.as_deref().unwrap_or(Path::new("--config"));
        format!("{}:{}", file.display(), name.replace('-', "_"))
    }

    fn fault(&mut self, place: &str, problem: String, expected: &str) {
        self.faults.push(Fault {
            place: place.to_owned(),
            problem,
            expected: expected.to_owned(),
        });
    }
}

/// How many cores the process may use.
fn cores() -> NonZeroUsize {
    thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)
}

fn flag_place(name: &str) -> String {
    match name {
        "paths" => "PATH".to_owned(),
        name => format!("--{name}"),
    }
}

fn verbosity(quiet: bool, verbose: u8) -> LevelFilter {
    match verbose {
        _ if quiet => LevelFilter::ERROR,
        0 => LevelFilter::WARN,
        1 => LevelFilter::INFO,
        2 => LevelFilter::DEBUG,
        _ => LevelFilter::TRACE,
    }
}
