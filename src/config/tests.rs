use std::fs;

use clap::Parser;
use tracecheck::Code;

use super::*;
use crate::cli::Cli;

const PIPES: Environment = Environment {
    stdin_is_terminal: false,
    stdout_is_terminal: false,
    stderr_is_terminal: false,
    no_color: false,
    dumb_terminal: false,
    has_passed_sockets: false,
};
const TERMINAL: Environment = Environment {
    stdin_is_terminal: true,
    stdout_is_terminal: true,
    stderr_is_terminal: true,
    ..PIPES
};

fn configure_in(environment: &Environment, flags: &[&str]) -> Result<Config, ConfigError> {
    let typed = Cli::try_parse_from(["tracecheck"].iter().chain(flags)).expect("valid usage");
    Config::new(typed.run, environment)
}

#[track_caller]
fn configure(flags: &[&str]) -> Config {
    configure_in(&PIPES, flags).expect("valid")
}

#[track_caller]
fn faults(flags: &[&str]) -> Vec<String> {
    match configure_in(&PIPES, flags).expect_err("invalid") {
        ConfigError::Faults(faults) => faults.iter().map(ToString::to_string).collect(),
        other => panic!("{other:?}"),
    }
}

/// Runs a check with a configuration file of this content.
fn with_file<T>(content: &str, check: impl FnOnce(&str) -> T) -> T {
    let dir = tempfile::tempdir().expect("temporary directory");
    let path = dir.path().join("tc.toml");
    fs::write(&path, content).expect("written");
    check(path.to_str().expect("UTF-8"))
}

#[test]
fn nothing_given_is_the_defaults() {
    let config = configure(&[]);
    assert_eq!(config.inputs, [Input::Stdin]);
    assert!(!config.follow && !config.quiet && !config.trace_events && !config.progress);
    assert_eq!(config.trace_key, None);
    assert_eq!(config.end_kinds, [""; 0]);
    assert_eq!(config.trace_idle, None);
    assert_eq!(config.max_traces.get(), 1_000_000);
    assert_eq!(config.format, Format::Json);
    assert!(!config.color && !config.color_diagnostics);
    assert_eq!(config.verbosity, LevelFilter::WARN);
    assert_eq!(config.filter, Filter::default());
    assert_eq!(config.fail_on, FailOn::Error);
    assert!(!format!("{:?}", config.claims).contains("nobody"));
    assert_eq!(config.max_record_bytes, 16 << 20);
}

#[test]
fn flags_are_understood() {
    let config = configure(&[
        "a.jsonl",
        "-",
        "dir/*.jsonl",
        "--trace-key=/content/task",
        "--end-kind=task.completed",
        "--end-kind=task.failed",
        "--trace-idle=1h30m",
        "--max-traces=10",
        "--format=text",
        "--color=always",
        "-vv",
        "--no-advisories",
        "--ignore=E_STRUCTURE",
        "--fail-on=never",
        "--trace-events",
        "--claim-pattern=(?i)nobody",
        "--max-record-bytes=64KiB",
    ]);
    assert_eq!(
        config.inputs,
        [
            Input::Path("a.jsonl".into()),
            Input::Stdin,
            Input::Path("dir/*.jsonl".into())
        ]
    );
    assert_eq!(
        config.trace_key,
        Some("/content/task".parse().expect("valid"))
    );
    assert_eq!(config.end_kinds, ["task.completed", "task.failed"]);
    assert_eq!(config.trace_idle, Some(Duration::from_secs(5400)));
    assert_eq!(config.max_traces.get(), 10);
    assert_eq!(config.format, Format::Text);
    assert!(config.color && config.color_diagnostics && config.trace_events);
    assert_eq!(config.verbosity, LevelFilter::DEBUG);
    assert!(!config.filter.allows(Code::Null) && !config.filter.allows(Code::Structure));
    assert!(config.filter.allows(Code::Explanation));
    assert_eq!(config.fail_on, FailOn::Never);
    assert!(format!("{:?}", config.claims).contains("(?i)nobody"));
    assert_eq!(config.max_record_bytes, 65_536);
}

#[test]
fn every_fault_is_reported_at_once() {
    assert_eq!(
        faults(&[
            "-",
            "-",
            "--max-record-bytes=63",
            "--trace-key=trace",
            "--end-kind=",
            "--trace-idle=soon",
            "--max-traces=0",
            "--claim-pattern=(",
            "--only=E_NULL",
            "--ignore=w_null",
        ]),
        [
            "PATH: `-` is there twice, and standard input can be read once; expected it once",
            "--max-record-bytes: `63` is out of range; expected 64B to 1GiB",
            "--trace-key: `trace` is no JSON Pointer; expected one that begins with `/`, such as \
             /trace or /content/task",
            "--end-kind: a kind is empty; expected the kind of a record, such as task.completed",
            "--trace-idle: `soon` is no duration; expected numbers with units, such as 30s, 5m or \
             1h30m",
            "--max-traces: `0` is no number of traces; expected a whole number, 1 or more",
            "--claim-pattern: `(` is no regular expression: unclosed group; expected one without \
             look-around and back-references",
            "--only: `E_NULL` matches no code; the nearest: W_NULL; expected a code or a glob over \
             codes (all: tracecheck explain)",
            "--ignore: `w_null` matches no code; the nearest: W_NULL; expected a code or a glob \
             over codes (all: tracecheck explain)",
        ]
    );
}

#[test]
fn limits_are_inclusive() {
    for (size, bytes) in [("64", 64), ("64B", 64), ("1GiB", 1 << 30)] {
        assert_eq!(
            configure(&["--max-record-bytes", size]).max_record_bytes,
            bytes
        );
    }
    for size in ["63", "1073741825", "2GiB", "99999999999999999999GiB"] {
        assert!(faults(&["--max-record-bytes", size])[0].contains("out of range"));
    }
    for size in ["16M", "1.5MiB", "", "a lot"] {
        assert!(faults(&["--max-record-bytes", size])[0].contains("is no size"));
    }
    assert!(faults(&["--trace-idle=0s"])[0].contains("more than zero"));
    assert!(faults(&["--trace-key=/a~2"])[0].contains("~0"));
    assert!(faults(&["--trace-key="])[0].contains("begins with"));
}

#[test]
fn what_is_read_where_nothing_is_named() {
    assert_eq!(configure(&[]).inputs, [Input::Stdin]);
    assert_eq!(configure(&["--follow"]).inputs, [Input::Stdin]);
    let listening = configure(&["--listen=unix:trace.sock"]);
    assert_eq!(listening.inputs, []);
    assert!(listening.follow);
    let both = configure(&["--listen=unix:trace.sock", "-", "a.jsonl"]);
    assert_eq!(both.inputs, [Input::Stdin, Input::Path("a.jsonl".into())]);
    let passed_on = Environment {
        has_passed_sockets: true,
        ..TERMINAL
    };
    let config = configure_in(&passed_on, &[]).expect("sockets are to be read");
    assert!(config.follow && config.inputs.is_empty());
}

#[test]
fn options_of_following_need_something_that_goes_on() {
    for flag in ["--from-end", "--metrics=127.0.0.1:0"] {
        assert!(faults(&[flag, "a.jsonl"])[0].contains("--follow or --listen with it"));
        assert!(configure(&[flag, "--follow", "a.jsonl"]).follow);
    }
}

#[test]
fn tls_is_all_or_nothing() {
    let all = ["--tls-cert=c", "--tls-key=k", "--tls-client-ca=a"];
    assert!(configure(&all).listen.tls.is_some());
    for left_out in 0..3 {
        let mut some = all.to_vec();
        some.remove(left_out);
        assert!(faults(&some)[0].contains("TLS is mutual"), "{some:?}");
    }
}

#[test]
fn options_of_sockets_have_their_grammar() {
    assert_eq!(configure(&["--unix-mode=0600"]).listen.unix_mode, 0o600);
    for mode in ["0888", "1777", "rw", ""] {
        assert!(faults(&["--unix-mode", mode])[0].contains("is no mode"));
    }
    for address in ["9184", ":9184", "localhost:", "localhost:http"] {
        assert!(faults(&["--follow", "--metrics", address])[0].contains("is no address"));
    }
    assert!(faults(&["--max-connections=0"])[0].contains("no number of connections"));
    assert!(faults(&["--max-buffered-bytes=1KiB"])[0].contains("out of range"));
    assert!(faults(&["--drain=0s"])[0].contains("more than zero"));
    let flags = ["--journal-socket=J", "--format=json"];
    assert!(faults(&flags)[0].contains("--format journald with it"));
    let flags = ["--journal-socket=J", "--format=journald"];
    assert_eq!(configure(&flags).format, Format::Journald("J".into()));
}

#[test]
fn an_empty_call_at_a_terminal_needs_help() {
    let error = |flags: &[&str]| configure_in(&TERMINAL, flags).expect_err("nothing given");
    assert_eq!(error(&[]), ConfigError::NothingGiven);
    assert_eq!(error(&["--follow"]), ConfigError::NothingGiven);
    assert!(matches!(error(&["--max-traces=0"]), ConfigError::Faults(_)));
    for flags in [&["-"][..], &["file.jsonl"]] {
        assert!(configure_in(&TERMINAL, flags).is_ok());
    }
}

#[test]
fn format_and_colour_follow_the_terminal() {
    let look = |environment: Environment, flags: &[&str]| {
        let flags = [&["-"], flags].concat();
        let config = configure_in(&environment, &flags).expect("valid");
        (config.format, config.color, config.color_diagnostics)
    };
    let no_color = Environment {
        no_color: true,
        ..TERMINAL
    };
    let dumb = Environment {
        dumb_terminal: true,
        ..TERMINAL
    };
    let redirected = Environment {
        stdout_is_terminal: false,
        ..TERMINAL
    };
    assert_eq!(look(TERMINAL, &[]), (Format::Text, true, true));
    assert_eq!(look(no_color, &[]), (Format::Text, false, false));
    assert_eq!(look(dumb, &[]), (Format::Text, false, false));
    assert_eq!(look(redirected, &[]), (Format::Json, false, true));
    assert_eq!(
        look(redirected, &["--format=text"]),
        (Format::Text, false, true)
    );
    assert_eq!(
        look(TERMINAL, &["--format=json"]),
        (Format::Json, false, true)
    );
    assert_eq!(
        look(TERMINAL, &["--color=never"]),
        (Format::Text, false, false)
    );
    let always = &["--color=always", "--format=text"];
    assert_eq!(look(no_color, always), (Format::Text, true, true));
    assert_eq!(look(PIPES, always), (Format::Text, true, true));
}

#[test]
fn progress_needs_a_terminal_and_an_end() {
    let progress = |flags: &[&str]| {
        let flags = [&["-"], flags].concat();
        configure_in(&TERMINAL, &flags).expect("valid").progress
    };
    assert!(progress(&[]));
    assert!(!progress(&["--quiet"]));
    assert!(!progress(&["--follow"]));
    assert!(!configure(&["-"]).progress);
}

#[test]
fn verbosity_has_five_levels() {
    for (flags, level) in [
        (&["-q"][..], LevelFilter::ERROR),
        (&[], LevelFilter::WARN),
        (&["-v"], LevelFilter::INFO),
        (&["-v", "-v"], LevelFilter::DEBUG),
        (&["-vvvv"], LevelFilter::TRACE),
    ] {
        assert_eq!(configure(flags).verbosity, level);
    }
}

#[test]
fn flags_win_over_the_file() {
    let content = r#"
        paths = ["file.jsonl"]
        trace_key = "/file"
        end_kind = ["file"]
        max_traces = 7
        max_record_bytes = 100
        format = "text"
        fail_on = "never"
        verbose = 2
        trace_events = true
    "#;
    with_file(content, |path| {
        let config = configure(&["--config", path]);
        assert_eq!(config.inputs, [Input::Path("file.jsonl".into())]);
        assert_eq!(config.trace_key, Some("/file".parse().expect("valid")));
        assert_eq!(config.max_traces.get(), 7);
        assert_eq!(config.max_record_bytes, 100);
        assert_eq!(config.format, Format::Text);
        assert_eq!(config.verbosity, LevelFilter::DEBUG);

        let config = configure(&[
            "--config",
            path,
            "flag.jsonl",
            "--trace-key=/flag",
            "--end-kind=flag",
            "--max-traces=8",
            "--max-record-bytes=1KiB",
            "--format=json",
            "--fail-on=error",
            "-q",
        ]);
        assert_eq!(config.inputs, [Input::Path("flag.jsonl".into())]);
        assert_eq!(config.trace_key, Some("/flag".parse().expect("valid")));
        assert_eq!(config.end_kinds, ["flag"]);
        assert_eq!(config.max_traces.get(), 8);
        assert_eq!(config.max_record_bytes, 1024);
        assert_eq!(config.format, Format::Json);
        assert_eq!(config.fail_on, FailOn::Error);
        assert_eq!(config.verbosity, LevelFilter::ERROR);
        assert!(config.trace_events);
    });
}

#[test]
fn faults_of_the_file_join_those_of_the_flags() {
    let content = "max_traces = 0\nonly = [\"X\"]\nquiet = true\nverbose = 1\ntrace_kee = \"/t\"\nfollow = true\n";
    with_file(content, |path| {
        let faults = faults(&["--config", path, "--trace-idle=1", "a.jsonl"]);
        let places: Vec<_> = faults
            .iter()
            .map(|fault| fault.replace(path, "FILE"))
            .map(|fault| fault.split(": ").next().unwrap_or_default().to_owned())
            .collect();
        assert_eq!(
            places,
            [
                "FILE:trace_kee",
                "FILE:verbose",
                "--trace-idle",
                "FILE:max_traces",
                "FILE:only"
            ]
        );
    });
}

#[test]
fn an_empty_path_in_the_file_is_a_fault() {
    with_file("paths = [\"\"]", |path| {
        let faults = faults(&["--config", path]);
        assert!(faults[0].ends_with(":paths: a path is empty; expected a file's name or `-`"));
    });
}

#[cfg(unix)]
#[test]
fn a_path_need_not_be_utf8() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    let path = OsStr::from_bytes(b"caf\xe9.jsonl");
    let typed = RunOptions {
        paths: vec![path.into()],
        ..RunOptions::default()
    };
    let config = Config::new(typed, &PIPES).expect("valid");
    assert_eq!(config.inputs, [Input::Path(path.into())]);
}
