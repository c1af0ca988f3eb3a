//! What can be typed: the clap definitions and the help text. Nothing is decided here; values with
//! a grammar stay as they were typed, so that [`crate::config`] can report all faults at once.

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use serde::Deserialize;
use tracecheck::Code;

/// Verify traces of agent placements against the A3 Capability Schema
///
/// Reads a trace as a stream of JSON records, one a line, and reports every violation of the
/// verification procedure (section 7 of the schema): tasks placed on agents that lack a capability,
/// a clearance or a tool, placements that do not match what was asked for, explanations that
/// contradict them, and malformed records. `tracecheck explain` lists what can be reported.
#[derive(Debug, Parser)]
#[command(
    name = "tracecheck",
    version,
    args_conflicts_with_subcommands = true,
    disable_help_subcommand = true,
    after_help = SHORT_NOTES,
    after_long_help = format!(
        "Examples:\n{EXAMPLES}\n\nExit status:\n{EXIT_STATUS}\n\nEnvironment:\n{ENVIRONMENT}"
    )
)]
pub(crate) struct Cli {
    /// What to do instead of verifying traces.
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    /// How to verify traces.
    #[command(flatten)]
    pub(crate) run: RunOptions,
}

/// Options of a run, as typed.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct RunOptions {
    /// Read these files, directories or globs, or `-` for standard input
    ///
    /// A directory stands for the *.jsonl and *.ndjson files in it, also with .gz or .zst behind, a
    /// quoted glob for the files that it matches. Files are read in the order given, those of a
    /// directory or glob by name, and one that is there twice is read once. What is compressed with
    /// gzip or zstd is decompressed, whatever it is called, unless --follow. Default: standard input.
    /// A file that is named like a subcommand is given as ./explain.
    #[arg(value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,

    /// Go on as the traces grow
    ///
    /// Files are followed through growth, rotation, truncation and replacement, and files that a
    /// directory or glob comes to match are followed too; standard input is read until it closes. Each
    /// finding is written and flushed as soon as its record is complete, and a trace whose beginning
    /// was not seen is taken for what it is. Ends at SIGINT or SIGTERM, or when standard input closes
    /// and nothing else is followed. SIGHUP looks for files anew and reads --config again.
    #[arg(short, long, help_heading = INPUT)]
    pub(crate) follow: bool,

    /// Begin at the end of the files that exist now (with --follow)
    ///
    /// What they hold already is not verified; files that come later are read from their start, and
    /// files that --state-dir knows from where they were left. Default: from the start.
    #[arg(long, help_heading = INPUT)]
    pub(crate) from_end: bool,

    /// Verify with so many threads [default: the cores]
    ///
    /// Files that are traces of their own are verified side by side, and reported in their order all
    /// the same. One file, standard input and traces told apart by --trace-key take one thread that
    /// reads and one that verifies, whatever is given. At least 1; default: as many as there are cores.
    #[arg(long, value_name = "N", help_heading = INPUT)]
    pub(crate) jobs: Option<String>,

    /// Take longer lines for malformed [default: 16MiB]
    ///
    /// A longer line is E_STRUCTURE and the next one is read as if nothing had happened. The limit
    /// bounds the memory that one line can take. Bytes, or with a unit: 64KiB, 500kB, 16MiB. From 64B
    /// to 1GiB; default 16MiB.
    #[arg(long, value_name = "SIZE", help_heading = INPUT)]
    pub(crate) max_record_bytes: Option<String>,

    /// Read options from a TOML file; those given here win
    ///
    /// The names are those of the options with underscores for hyphens, and `paths` for PATH, as in
    /// trace_key = "/task". Options that can be repeated are lists, and a list given here replaces
    /// the file's. A switch that the file turns on cannot be turned off here. Paths are relative to
    /// the working directory.
    #[arg(long, value_name = "FILE", help_heading = INPUT)]
    pub(crate) config: Option<PathBuf>,

    /// Choose what the sources hold [default: a3]
    ///
    /// a3: A3 traces. ag-ui: streams of AG-UI events, one JSON event a line or server-sent events
    /// (the first line that is not blank shows which), held against --declaration. Default: a3.
    #[arg(long, value_enum, value_name = "PROTOCOL", help_heading = INPUT)]
    pub(crate) protocol: Option<ProtocolChoice>,

    /// Hold AG-UI runs against this agent's declaration
    ///
    /// A JSON document of AgentCapabilities, for --protocol ag-ui. Where it is malformed that is
    /// reported (status 1), where it cannot be read that is said (status 2), and the streams are read
    /// as of an agent that declared nothing. Default: nothing is declared.
    #[arg(long, value_name = "FILE", help_heading = INPUT)]
    pub(crate) declaration: Option<PathBuf>,

    /// Accept streams on this address (repeatable)
    ///
    /// tcp:HOST:PORT or unix:PATH. Each connection is a source. Implies --follow. A TCP address that is not of this machine alone
    /// (127.0.0.0/8, ::1) is refused without mutual TLS, unless --insecure-listen says that it is
    /// meant. Sockets that systemd passes on are listened on as well. Default: none.
    #[arg(long, value_name = "ADDRESS", help_heading = SOCKETS)]
    pub(crate) listen: Vec<String>,

    /// Identify with this certificate on TCP (PEM, with its chain)
    ///
    /// With --tls-key and --tls-client-ca, all TCP connections use TLS and need a certificate of that
    /// authority. Read again at SIGHUP. Default: no TLS.
    #[arg(long, value_name = "FILE", help_heading = SOCKETS)]
    pub(crate) tls_cert: Option<PathBuf>,

    /// Use this private key for --tls-cert (PEM)
    ///
    /// See --tls-cert. Default: no TLS.
    #[arg(long, value_name = "FILE", help_heading = SOCKETS)]
    pub(crate) tls_key: Option<PathBuf>,

    /// Let in clients with a certificate of these authorities (PEM)
    ///
    /// See --tls-cert. Default: no TLS.
    #[arg(long, value_name = "FILE", help_heading = SOCKETS)]
    pub(crate) tls_client_ca: Option<PathBuf>,

    /// Accept TCP from other machines without TLS
    ///
    /// Whoever reaches the port can then have anything verified and reported. Default: refused.
    #[arg(long, help_heading = SOCKETS)]
    pub(crate) insecure_listen: bool,

    /// Serve at most so many connections at once [default: 4096]
    ///
    /// Further ones wait to be accepted. At least 1; default 4096.
    #[arg(long, value_name = "N", help_heading = SOCKETS)]
    pub(crate) max_connections: Option<String>,

    /// Close a connection that sends nothing for so long
    ///
    /// Its unfinished line is dropped. 30s, 5m, 1h30m. Default: never.
    #[arg(long, value_name = "DURATION", help_heading = SOCKETS)]
    pub(crate) connection_idle: Option<String>,

    /// Give Unix sockets this mode [default: 0660]
    ///
    /// Octal, set before anyone can connect. Default 0660.
    #[arg(long, value_name = "MODE", help_heading = SOCKETS)]
    pub(crate) unix_mode: Option<String>,

    /// Give Unix sockets this owner, USER, USER:GROUP or :GROUP
    ///
    /// Names or numbers; needs the right to do so. Default: the process's own.
    #[arg(long, value_name = "OWNER", help_heading = SOCKETS)]
    pub(crate) unix_owner: Option<String>,

    /// Hold at most so much of unfinished lines [default: 64MiB]
    ///
    /// Of all sources together: beyond it the longest counts as over-long (E_STRUCTURE). Bounds the memory that many
    /// senders can take together. At least 64KiB; default 64MiB.
    #[arg(long, value_name = "SIZE", help_heading = INPUT)]
    pub(crate) max_buffered_bytes: Option<String>,

    /// Remember in this directory what was verified, and go on from there
    ///
    /// Positions in files and the states of open traces, saved once a second and at the end; after a
    /// crash a run on the same files reports again what came after the last save, with the same ids,
    /// and nothing is lost. One process a directory. `tracecheck state DIR` shows what is there.
    /// Default: nothing is remembered.
    #[arg(long, value_name = "DIR", help_heading = DAEMON)]
    pub(crate) state_dir: Option<PathBuf>,

    /// Serve /metrics, /healthz and /readyz over HTTP on this address
    ///
    /// HOST:PORT, for Prometheus and probes (with --follow). Nothing there tells what traces hold.
    /// Default: not served.
    #[arg(long, value_name = "HOST:PORT", help_heading = DAEMON)]
    pub(crate) metrics: Option<String>,

    /// Let a stop take so long [default: 2s]
    ///
    /// At SIGINT or SIGTERM a following run stops reading, verifies what it has read, and writes what
    /// it found. What its reader has not taken by then is counted and said; files resume there if
    /// --state-dir is given. Default 2s.
    #[arg(long, value_name = "DURATION", help_heading = DAEMON)]
    pub(crate) drain: Option<String>,

    /// Tell traces apart by this member of each record
    ///
    /// A JSON Pointer (RFC 6901) such as /trace or /content/task. Records of many traces may then
    /// interleave in one source, and a trace may go on in another. The member is a non-empty string
    /// or an integer; a record without it is E_STRUCTURE. Default: each source is one trace.
    #[arg(long, value_name = "POINTER", help_heading = TRACES)]
    pub(crate) trace_key: Option<String>,

    /// End a trace at a record of this kind (repeatable)
    ///
    /// References that still wait are decided then and the trace's memory is freed. Default: a trace
    /// ends with its source, or with the run where --trace-key is given.
    #[arg(long = "end-kind", value_name = "KIND", help_heading = TRACES)]
    pub(crate) end_kind: Vec<String>,

    /// End a trace that had no record for so long (with --follow)
    ///
    /// As --end-kind, but by the clock: 30s, 5m, 1h30m. Without --follow it has no effect, because
    /// how fast a file is read says nothing of its traces. Default: never.
    #[arg(long, value_name = "DURATION", help_heading = TRACES)]
    pub(crate) trace_idle: Option<String>,

    /// Keep at most so many traces open [default: 1000000]
    ///
    /// One more and the least recently used is given up, with a `trace` event that says so; if it
    /// goes on it counts as partly seen. An open trace takes a few hundred bytes, and more with many
    /// placements. At least 1; default 1,000,000.
    #[arg(long, value_name = "N", help_heading = TRACES)]
    pub(crate) max_traces: Option<String>,

    /// Find a claim that no agent was eligible by this wording too (repeatable)
    ///
    /// A regular expression, matched against each text in the reason of a task.rejected. A reason
    /// that makes the claim must name a predicate, or it is E_REJECTION_REASON. Default: the built-in
    /// wordings only, such as "no agent available".
    #[arg(long = "claim-pattern", value_name = "REGEX", help_heading = FINDINGS)]
    pub(crate) claim_pattern: Vec<String>,

    /// Leave out the advisories (W_*)
    ///
    /// They are then neither reported nor counted. Default: reported, without effect on the exit
    /// status unless --fail-on warning.
    #[arg(long, help_heading = FINDINGS)]
    pub(crate) no_advisories: bool,

    /// Report and count only these codes (repeatable)
    ///
    /// A code or a glob, in capitals: E_STRUCTURE, 'E_*_UNMET'. One that matches no code is refused.
    /// Default: all codes.
    #[arg(long, value_name = "CODE", help_heading = FINDINGS)]
    pub(crate) only: Vec<String>,

    /// Neither report nor count these codes (repeatable)
    ///
    /// A code or a glob, as for --only, and stronger than it. Default: none.
    #[arg(long, value_name = "CODE", help_heading = FINDINGS)]
    pub(crate) ignore: Vec<String>,

    /// Choose what makes the exit status 1 [default: error]
    ///
    /// Findings at or above this severity, as far as they are reported. Default: error.
    #[arg(long, value_enum, value_name = "SEVERITY", help_heading = FINDINGS)]
    pub(crate) fail_on: Option<FailOn>,

    /// Report the traces that ended in good order too
    ///
    /// As `trace` events of state `closed` with the numbers of records, placements and findings.
    /// Traces that were given up are always reported. Default: off.
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) trace_events: bool,

    #[command(flatten)]
    pub(crate) output: OutputOptions,

    /// Write entries of the journal to this socket [default: systemd's]
    ///
    /// For --format journald. Default: /run/systemd/journal/socket.
    #[arg(long, value_name = "PATH", help_heading = OUTPUT)]
    pub(crate) journal_socket: Option<PathBuf>,

    /// Write only errors of the program itself to standard error
    ///
    /// Also turns the progress bar off. Findings are written all the same. Default: warnings too.
    #[arg(short, long, conflicts_with = "verbose", help_heading = OUTPUT)]
    pub(crate) quiet: bool,

    /// Write more about the program's own doings (-vv: still more)
    ///
    /// To standard error: -v says when each source was opened and read, and how many records and
    /// findings it had; -vv also which options are in effect. RUST_LOG, where set, decides instead.
    /// Default: warnings and errors.
    #[arg(short, long, action = ArgAction::Count, help_heading = OUTPUT)]
    pub(crate) verbose: u8,
}

/// How findings are written.
#[derive(Clone, Copy, Debug, Default, Args)]
pub(crate) struct OutputOptions {
    /// Write findings as JSON events or as text [default: auto]
    ///
    /// json: one object a line. text: for people. journald: entries of the systemd journal, with
    /// fields such as TRACECHECK_CODE. auto: text if standard output is a terminal, JSON otherwise.
    /// Default: auto.
    #[arg(long, value_enum, value_name = "FORMAT", help_heading = OUTPUT)]
    pub(crate) format: Option<FormatChoice>,

    /// Colour text [default: auto]
    ///
    /// auto: on a terminal, unless NO_COLOR is set or TERM is dumb. always and never go by nothing
    /// else. JSON is never coloured. Default: auto.
    #[arg(long, value_enum, value_name = "WHEN", help_heading = OUTPUT)]
    pub(crate) color: Option<ColorChoice>,
}

/// What to do instead of verifying traces.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Explain codes: what they mean, what to do, an example
    ///
    /// Alone, lists all codes with a line each.
    Explain {
        /// Explain these codes
        ///
        /// Those that findings carry, such as E_CLEARANCE_UNMET; letter case does not matter.
        /// Default: list all codes.
        #[arg(
            value_name = "CODE",
            value_parser = code_parser(),
            ignore_case = true,
            hide_possible_values = true
        )]
        codes: Vec<Code>,
    },
    /// Check one document: requirements, a declaration, or AG-UI capabilities
    ///
    /// The exit status is 1 if it is malformed.
    Check(CheckOptions),
    /// Match requirements against a declaration, predicate by predicate
    ///
    /// Writes each predicate and whether the declaration satisfies it. The exit status is 1 if one
    /// is unmet.
    Match {
        /// Read the requirements from this file, or `-` for standard input
        ///
        /// A JSON document as section 4 of the schema defines it.
        #[arg(value_name = "REQUIREMENTS")]
        requirements: PathBuf,
        /// Read the declaration from this file, or `-` for standard input
        ///
        /// A JSON document as section 3 of the schema defines it.
        #[arg(value_name = "DECLARATION")]
        declaration: PathBuf,
    },
    /// Run the conformance vectors in a directory
    ///
    /// Each NAME.jsonl in it and below is verified and compared with NAME.expected.json. The exit
    /// status is 1 if one differs or a file belongs to no vector, and 2 if there are no vectors.
    Vectors {
        /// Look for vectors in this directory and below
        ///
        /// Such as vectors/capability-schema.
        #[arg(value_name = "DIR")]
        dir: PathBuf,
    },
    /// Show what a state directory holds
    ///
    /// Where reading of each file goes on, and the open traces with the references that wait in
    /// them. A process that uses the directory is not disturbed. The exit status is 2 if there is
    /// no checkpoint in it, or a damaged one.
    State(StateOptions),
    /// Write completions for a shell
    ///
    /// To standard output, to be put where the shell looks for them, such as
    /// ~/.local/share/bash-completion/completions/tracecheck.
    Completions {
        /// Complete for this shell
        ///
        /// The one that will read the completions.
        #[arg(value_enum, value_name = "SHELL")]
        shell: Shell,
    },
    /// Write the manual page
    ///
    /// To standard output, in roff: tracecheck man | man -l -
    Man,
}

/// Options of `check`.
#[derive(Debug, Args)]
pub(crate) struct CheckOptions {
    /// Choose what the document is
    ///
    /// requirements: what a task asks for (section 4). declaration: what an agent states about
    /// itself (section 3). capabilities: what an AG-UI agent declares (AgentCapabilities).
    #[arg(value_enum, value_name = "KIND")]
    pub(crate) kind: DocumentKind,

    /// Read the document from this file
    ///
    /// Default, and `-`: standard input.
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,

    /// Report unknown members too
    ///
    /// The schema lets readers ignore them; where nobody means to extend the document they are
    /// misspelt names. Default: off.
    #[arg(long)]
    pub(crate) strict: bool,

    /// Write the usable document, and the findings to standard error
    ///
    /// A document without errors goes to standard output as it was given (capabilities: without the
    /// white space between tokens, and nothing else changed); one with errors does not. Default:
    /// findings only, to standard output.
    #[arg(long)]
    pub(crate) print: bool,

    #[command(flatten)]
    pub(crate) output: OutputOptions,
}

/// Options of `state`.
#[derive(Debug, Args)]
pub(crate) struct StateOptions {
    /// Look into this directory
    ///
    /// The one that --state-dir names.
    #[arg(value_name = "DIR")]
    pub(crate) dir: PathBuf,

    /// Show every open trace
    ///
    /// Default: the 20 with the most pending references, then the longest without a record.
    #[arg(long)]
    pub(crate) all: bool,

    /// Write a JSON object or text [default: auto]
    ///
    /// json: one object. text: for people. auto: text if standard output is a terminal, JSON
    /// otherwise. Default: auto.
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub(crate) format: Option<FormatChoice>,
}

/// What the sources hold, as typed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ProtocolChoice {
    /// A3 traces
    #[default]
    A3,
    /// Streams of AG-UI events
    AgUi,
}

/// How findings are to be written, as typed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum FormatChoice {
    /// One JSON object a line
    Json,
    /// Text for people
    Text,
    /// Entries of the systemd journal
    Journald,
    /// Text on a terminal, JSON otherwise
    #[default]
    Auto,
}

/// When text is to be coloured, as typed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ColorChoice {
    /// On a terminal, unless NO_COLOR is set or TERM is dumb
    #[default]
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// What makes a run fail with status 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum FailOn {
    /// Errors (E_*)
    #[default]
    Error,
    /// Errors and advisories (W_*)
    Warning,
    /// No finding
    Never,
}

/// What a single document is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DocumentKind {
    /// What a task asks for (section 4)
    Requirements,
    /// What an agent states about itself (section 3)
    Declaration,
    /// What an AG-UI agent declares (AgentCapabilities)
    Capabilities,
}

const INPUT: &str = "Input";
const SOCKETS: &str = "Sockets";
const DAEMON: &str = "Long runs";
const TRACES: &str = "Traces";
const FINDINGS: &str = "Findings";
const OUTPUT: &str = "Output";

const SHORT_NOTES: &str = "\
Exit status: 0 nothing to fail on, 1 findings, 2 wrong usage or unreadable input.
See --help for the units, defaults and examples.";

/// Examples of use, a sentence and a command each.
pub(crate) const EXAMPLES: &str = "  Verify a trace:
      tracecheck run.jsonl
  Verify many, and keep the findings as JSON:
      tracecheck --format json archive/ 'today/*.jsonl' > findings.jsonl
  Watch traces as they grow, and go on after a restart:
      tracecheck --follow --state-dir state /var/log/agents/
  Accept traces on a socket:
      tracecheck --listen unix:/run/agents/trace.sock --trace-key /trace
  Verify interleaved traces that end with their tasks:
      tracecheck --trace-key /task --end-kind task.completed all.jsonl
  Fail only on agents that lack something:
      tracecheck --only 'E_*_UNMET' run.jsonl
  Hold the runs of an AG-UI agent against what it declares:
      tracecheck --protocol ag-ui --declaration agent.json events.sse
  Learn what a finding means:
      tracecheck explain E_RESIDENCY_UNMET";

/// What the exit status says.
pub(crate) const EXIT_STATUS: &str = "  0  nothing to fail on
  1  findings at or above --fail-on
  2  wrong usage; a source that could not be opened or read (the others are
     still verified); only directories and globs without a trace. 2 wins over 1

  When the reader of standard output goes away, a run ends quietly with the
  status that it has so far, and with --follow with 2.";

/// The variables that are looked at.
pub(crate) const ENVIRONMENT: &str =
    "  NO_COLOR  where set and not empty, no colour unless --color always
  RUST_LOG  what is written of the program's own doings: off, error, warn, info
            or debug; wins over -q and -v
  TERM      where it is dumb, no colour unless --color always";

/// Accepts the names of codes, so that clap can suggest and complete them.
fn code_parser() -> impl TypedValueParser<Value = Code> {
    let names = Code::ALL.iter().map(|code| code.as_str());
    PossibleValuesParser::new(names)
        .try_map(|name| Code::from_name(&name.to_ascii_uppercase()).ok_or("no such code"))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn commands() -> Vec<clap::Command> {
        let root = Cli::command();
        let mut all: Vec<_> = root.get_subcommands().cloned().collect();
        all.push(root);
        all
    }

    fn parse(arguments: &[&str]) -> Result<Cli, clap::Error> {
        Cli::try_parse_from(["tracecheck"].iter().chain(arguments))
    }

    #[test]
    fn definitions_are_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn everything_has_short_and_long_help() {
        for command in commands() {
            assert!(command.get_about().is_some(), "{}", command.get_name());
            assert!(command.get_long_about().is_some(), "{}", command.get_name());
            for argument in command.get_arguments() {
                let id = argument.get_id().as_str();
                let short = argument.get_help().expect(id).to_string();
                let long = argument.get_long_help().expect(id).to_string();
                assert!(short.starts_with(char::is_uppercase), "{id}: {short}");
                assert!(!short.contains('\n') && short.len() <= 72, "{id}: {short}");
                assert!(!short.ends_with('.'), "{id}: {short}");
                assert!(long.len() > short.len(), "{id}: {long}");
            }
        }
    }

    #[test]
    fn every_option_states_its_default() {
        let root = Cli::command();
        for argument in root.get_arguments() {
            let id = argument.get_id().as_str();
            let long = argument.get_long_help().map(ToString::to_string);
            let long = long.unwrap_or_default();
            assert!(
                long.contains("efault") || ["config", "follow"].contains(&id),
                "{id}: {long}"
            );
        }
    }

    #[test]
    fn first_words_tell_paths_from_subcommands() {
        let paths = |arguments: &[&str]| parse(arguments).expect("valid").run.paths;
        assert_eq!(paths(&["file.jsonl"]), [PathBuf::from("file.jsonl")]);
        assert_eq!(paths(&["./explain"]), [PathBuf::from("./explain")]);
        assert_eq!(paths(&["a", "explain"]).len(), 2);
        assert_eq!(paths(&["--", "explain"]).len(), 1);
        assert_eq!(paths(&["-f", "-"]), [PathBuf::from("-")]);
        assert!(parse(&[]).expect("valid").command.is_none());
        assert!(matches!(
            parse(&["explain"]).expect("valid").command,
            Some(Command::Explain { codes }) if codes.is_empty()
        ));
    }

    #[test]
    fn codes_are_found_in_any_case() {
        for name in ["E_STRUCTURE", "e_structure", "E_Structure"] {
            assert!(matches!(
                parse(&["explain", name]).expect(name).command,
                Some(Command::Explain { codes }) if codes == [Code::Structure]
            ));
        }
        let error = parse(&["explain", "E_STRUCTRE"]).expect_err("no such code");
        assert!(error.to_string().contains("E_STRUCTURE"), "{error}");
    }

    #[test]
    fn wrong_usage_has_status_2() {
        for arguments in [
            &["--no-such-flag"][..],
            &["--trace-key"],
            &["--format", "xml"],
            &["-q", "-v"],
            &["check"],
            &["check", "capability"],
            &["match", "one.json"],
            &["vectors"],
            &["explain", "--follow"],
        ] {
            let error = parse(arguments).expect_err("wrong usage");
            assert_eq!(error.exit_code(), 2, "{arguments:?}");
        }
    }
}
