//! The configuration file: TOML with the names of the options, underscores for hyphens.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use clap::CommandFactory;
use serde::Deserialize;
use toml::{Table, Value};

use super::Fault;
use crate::cli::{Cli, ColorChoice, FailOn, FormatChoice, ProtocolChoice};

/// What a file says, as written; `None` is not said.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct FileOptions {
    pub(super) paths: Option<Vec<PathBuf>>,
    pub(super) follow: Option<bool>,
    pub(super) from_end: Option<bool>,
    pub(super) listen: Option<Vec<String>>,
    pub(super) tls_cert: Option<PathBuf>,
    pub(super) tls_key: Option<PathBuf>,
    pub(super) tls_client_ca: Option<PathBuf>,
    pub(super) insecure_listen: Option<bool>,
    pub(super) max_connections: Option<NumberOrText>,
    pub(super) connection_idle: Option<String>,
    pub(super) unix_mode: Option<String>,
    pub(super) unix_owner: Option<String>,
    pub(super) max_buffered_bytes: Option<NumberOrText>,
    pub(super) state_dir: Option<PathBuf>,
    pub(super) metrics: Option<String>,
    pub(super) drain: Option<String>,
    pub(super) journal_socket: Option<PathBuf>,
    pub(super) jobs: Option<NumberOrText>,
    pub(super) max_record_bytes: Option<NumberOrText>,
    pub(super) protocol: Option<ProtocolChoice>,
    pub(super) declaration: Option<PathBuf>,
    pub(super) trace_key: Option<String>,
    pub(super) end_kind: Option<Vec<String>>,
    pub(super) trace_idle: Option<String>,
    pub(super) max_traces: Option<NumberOrText>,
    pub(super) claim_pattern: Option<Vec<String>>,
    pub(super) no_advisories: Option<bool>,
    pub(super) only: Option<Vec<String>>,
    pub(super) ignore: Option<Vec<String>>,
    pub(super) fail_on: Option<FailOn>,
    pub(super) trace_events: Option<bool>,
    pub(super) format: Option<FormatChoice>,
    pub(super) color: Option<ColorChoice>,
    pub(super) quiet: Option<bool>,
    pub(super) verbose: Option<u8>,
}

/// A number that may be written with a unit, and then as a string.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged, expecting = "expected a number or a string")]
pub(super) enum NumberOrText {
    Number(i64),
    Text(String),
}

impl NumberOrText {
    /// As it would be typed.
    pub(super) fn into_text(self) -> String {
        match self {
            NumberOrText::Number(number) => number.to_string(),
            NumberOrText::Text(text) => text,
        }
    }
}

impl FileOptions {
    /// Reads a file; what is wrong with it goes to `faults`, and the rest is used.
    pub(super) fn read(path: &Path, faults: &mut Vec<Fault>) -> FileOptions {
        match read_bounded(path) {
            Ok(text) => FileOptions::parse(&path.display().to_string(), &text, faults),
            Err(error) => {
                faults.push(Fault {
                    place: "--config".to_owned(),
                    problem: format!("cannot read `{}`: {error}", path.display()),
                    expected: "a TOML file in UTF-8".to_owned(),
                });
                FileOptions::default()
            }
        }
    }

    fn parse(name: &str, text: &str, faults: &mut Vec<Fault>) -> FileOptions {
        let mut table = match toml::from_str::<Table>(text) {
            Ok(table) => table,
            Err(error) => {
                faults.push(syntax_fault(name, text, &error));
                return FileOptions::default();
            }
        };
        table.retain(|key, value| match entry_fault(name, key, value) {
            Some(fault) => {
                faults.push(fault);
                false
            }
            None => true,
        });
        // Each entry has been read alone, so all of them can be read together.
        table.try_into().unwrap_or_default()
    }
}

/// Largest configuration file, in bytes: far more than anybody writes, and `/dev/zero` ends.
const MAX_FILE_BYTES: u64 = 1 << 20;

fn read_bounded(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    let file = File::open(path)?;
    file.take(MAX_FILE_BYTES + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MAX_FILE_BYTES {
        return Err(io::Error::other("it is larger than 1 MiB"));
    }
    Ok(text)
}

fn syntax_fault(name: &str, text: &str, error: &toml::de::Error) -> Fault {
    let before = error.span().and_then(|span| text.get(..span.start));
    let line = before.map_or(1, |before| before.matches('\n').count() + 1);
    Fault {
        place: format!("{name}:{line}"),
        problem: error.message().replace('\n', ", "),
        expected: "TOML such as trace_key = \"/task\"".to_owned(),
    }
}

/// What is wrong with one entry, read as if it were the only one.
fn entry_fault(name: &str, key: &str, value: &Value) -> Option<Fault> {
    let place = format!("{name}:{key}");
    let keys = known_keys();
    if !keys.iter().any(|known| known == key) {
        return Some(Fault {
            place,
            problem: "there is no such option".to_owned(),
            expected: match nearest(key, &keys) {
                Some(meant) => format!("`{meant}`"),
                None => format!("one of {}", keys.join(", ")),
            },
        });
    }
    let alone = Table::from_iter([(key.to_owned(), value.clone())]);
    let error = alone.try_into::<FileOptions>().err()?;
    let message = error.message().trim();
    let (problem, expected) = message
        .split_once("expected ")
        .unwrap_or((message, "another value"));
    let problem = problem.trim_end_matches([',', ' ']);
    Some(Fault {
        place,
        problem: match problem {
            "" => format!("`{value}` is of the wrong type"),
            problem => problem.to_owned(),
        },
        expected: in_plain_words(expected.trim_end()).to_owned(),
    })
}

/// What serde calls by the names of its own data model, as a person would write it.
fn in_plain_words(expected: &str) -> &str {
    match expected {
        "a sequence" => "a list, such as [\"a\", \"b\"]",
        "a boolean" => "true or false",
        "u8" => "a number from 0 to 255",
        other => other,
    }
}

/// The names that a file may use: those of the options that verify traces.
fn known_keys() -> Vec<String> {
    Cli::command()
        .get_arguments()
        .map(|argument| argument.get_long().unwrap_or(argument.get_id().as_str()))
        .filter(|name| !["config", "help", "version"].contains(name))
        .map(|name| name.replace('-', "_"))
        .collect()
}

/// Below this, a name is no misspelling of another.
const LEAST_LIKENESS: f64 = 0.75;

/// The key that was meant, most likely.
fn nearest<'k>(key: &str, keys: &'k [String]) -> Option<&'k String> {
    let key = key.to_ascii_lowercase().replace('-', "_");
    keys.iter()
        .map(|known| (strsim::jaro_winkler(&key, known), known))
        .filter(|&(likeness, _)| likeness >= LEAST_LIKENESS)
        .max_by(|(a, _), (b, _)| a.total_cmp(b))
        .map(|(_, known)| known)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> (FileOptions, Vec<String>) {
        let mut faults = Vec::new();
        let options = FileOptions::parse("tc.toml", text, &mut faults);
        (options, faults.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn keys_are_those_of_the_options() {
        // serde lists the fields in its complaint about one that is not there.
        let error = toml::from_str::<FileOptions>("zzz = 1").expect_err("unknown");
        let message = error.message().to_owned();
        let mut fields: Vec<_> = message.split('`').skip(3).step_by(2).collect();
        let mut keys = known_keys();
        fields.sort_unstable();
        keys.sort_unstable();
        assert_eq!(fields, keys);
    }

    #[test]
    fn every_key_can_be_set() {
        let (options, faults) = parse(
            r#"
            paths = ["a.jsonl", "-"]
            follow = true
            from_end = true
            listen = ["unix:trace.sock"]
            tls_cert = "cert.pem"
            tls_key = "key.pem"
            tls_client_ca = "ca.pem"
            insecure_listen = true
            max_connections = 100
            connection_idle = "1h"
            unix_mode = "0600"
            unix_owner = "root"
            max_buffered_bytes = "1GiB"
            state_dir = "state"
            metrics = "127.0.0.1:9184"
            drain = "5s"
            journal_socket = "journal"
            jobs = 2
            max_record_bytes = "64KiB"
            protocol = "ag-ui"
            declaration = "agent.json"
            trace_key = "/trace"
            end_kind = ["task.completed"]
            trace_idle = "5m"
            max_traces = 1_000
            claim_pattern = ["nobody"]
            no_advisories = true
            only = ["E_*"]
            ignore = ["E_STRUCTURE"]
            fail_on = "warning"
            trace_events = true
            format = "json"
            color = "never"
            quiet = true
            verbose = 2
            "#,
        );
        assert_eq!(faults, [""; 0]);
        let set = format!("{options:?}");
        assert!(!set.contains("None"), "{set}");
    }

    #[test]
    fn a_misspelt_key_gets_the_nearest() {
        for (key, meant) in [
            ("trace-key", "trace_key"),
            ("tracekey", "trace_key"),
            ("path", "paths"),
            ("colour", "color"),
            ("end_kinds", "end_kind"),
            ("max_record_size", "max_record_bytes"),
            ("Format", "format"),
        ] {
            let (_, faults) = parse(&format!("{key} = 1"));
            let expected = format!("tc.toml:{key}: there is no such option; expected `{meant}`");
            assert_eq!(faults, [expected]);
        }
        let (_, faults) = parse("xyzzy = 1");
        assert!(faults[0].contains("one of paths, follow, "), "{faults:?}");
    }

    #[test]
    fn every_bad_entry_is_reported_and_the_others_used() {
        let (options, faults) = parse(
            "follow = 1\nonly = \"E_*\"\nformat = \"xml\"\nmax_traces = [3]\nquiet = true\nverbose = 999",
        );
        assert_eq!(
            faults,
            [
                "tc.toml:follow: invalid type: integer `1`; expected true or false",
                "tc.toml:format: unknown variant `xml`; expected one of `json`, `text`, `journald`, `auto`",
                "tc.toml:max_traces: `[3]` is of the wrong type; expected a number or a string",
                "tc.toml:only: invalid type: string \"E_*\"; expected a list, such as [\"a\", \"b\"]",
                "tc.toml:verbose: invalid value: integer `999`; expected a number from 0 to 255",
            ]
        );
        assert_eq!(options.quiet, Some(true));
    }

    #[test]
    fn a_file_that_is_no_toml_is_one_fault_with_its_line() {
        let (_, faults) = parse("quiet = true\n\nonly = [\n");
        assert_eq!(faults.len(), 1);
        assert!(faults[0].starts_with("tc.toml:"), "{faults:?}");
        let (_, faults) = parse("quiet = true\nquiet = false\n");
        assert!(
            faults[0].starts_with("tc.toml:2: duplicate key"),
            "{faults:?}"
        );
    }

    #[test]
    fn a_file_that_is_not_there_is_a_fault() {
        let mut faults = Vec::new();
        FileOptions::read(Path::new("/nowhere/tc.toml"), &mut faults);
        let fault = faults.pop().expect("one").to_string();
        assert!(
            fault.starts_with("--config: cannot read `/nowhere/tc.toml`: "),
            "{fault}"
        );
    }
}
