//! The units, the configuration and the alert rules in `systemd/`, as the programs read them that
//! will: systemd-analyze (Debian: systemd) and promtool (Debian: prometheus). Where there is a Linux
//! these have to be there.

#![cfg(feature = "cli")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");
const PROGRAM: &str = env!("CARGO_BIN_EXE_tracecheck");
const SERVICES: [&str; 2] = ["tracecheck.service", "tracecheck@.service"];

/// What the installed program is called in the units.
const INSTALLED: &str = "/usr/local/bin/tracecheck";

/// Of ten; what is left is the network, which the sockets and the metrics take.
const MAX_EXPOSURE: f64 = 2.0;

fn directory() -> PathBuf {
    Path::new(ROOT).join("systemd")
}

fn read(name: &str) -> String {
    fs::read_to_string(directory().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The lines of a unit that are neither comments nor empty.
fn settings(name: &str) -> Vec<String> {
    let text = read(name);
    let lines = text.lines().map(str::trim);
    lines
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(str::to_owned)
        .collect()
}

/// Whether the programs can be there at all.
#[expect(clippy::print_stdout, reason = "what was skipped should be seen")]
fn can_check() -> bool {
    if !cfg!(target_os = "linux") {
        println!("skipped: there is no systemd on this system");
    }
    cfg!(target_os = "linux")
}

fn output(command: &mut Command) -> Output {
    let name = command.get_program().to_string_lossy().into_owned();
    command
        .output()
        .unwrap_or_else(|error| panic!("{name} has to be installed: {error}"))
}

fn text(output: &Output) -> String {
    let out = String::from_utf8_lossy(&output.stdout);
    let err = String::from_utf8_lossy(&output.stderr);
    format!("{out}{err}")
}

#[track_caller]
fn assert_success(output: &Output) {
    assert!(output.status.success(), "{}", text(output));
}

/// The units with the program as it is here, for it is not installed.
fn runnable_units() -> tempfile::TempDir {
    let units = tempfile::tempdir().expect("a directory");
    for name in SERVICES.into_iter().chain(["tracecheck.socket"]) {
        let unit = read(name).replace(INSTALLED, PROGRAM);
        fs::write(units.path().join(name), unit).expect("there is room");
    }
    units
}

/// What systemd has to say of a unit. Of unknown settings it only warns, and also of other units.
fn complaints(unit: &Path) -> String {
    let mut analyze = Command::new("systemd-analyze");
    let output = output(analyze.args(["verify", "--man=no"]).arg(unit));
    assert_success(&output);
    text(&output)
}

#[test]
fn systemd_takes_the_units() {
    if !can_check() {
        return;
    }
    let units = runnable_units();
    for name in [
        "tracecheck.service",
        "tracecheck@.service",
        "tracecheck@orders.service",
        "tracecheck.socket",
    ] {
        let text = complaints(&units.path().join(name));
        assert!(!text.contains("tracecheck"), "{name}: {text}");
    }
}

#[test]
fn a_setting_that_systemd_does_not_know_would_be_seen() {
    if !can_check() {
        return;
    }
    let units = runnable_units();
    let path = units.path().join("tracecheck.service");
    let unit = fs::read_to_string(&path).expect("it is there");
    fs::write(&path, unit.replace("WatchdogSec=", "WatchdogSecs=")).expect("there is room");
    assert!(complaints(&path).contains("WatchdogSecs"));
}

#[test]
fn the_services_are_little_exposed() {
    if !can_check() {
        return;
    }
    for name in SERVICES {
        let path = directory().join(name);
        let mut analyze = Command::new("systemd-analyze");
        analyze.args(["security", "--offline=true", "--no-pager"]);
        let output = output(analyze.arg(path));
        assert_success(&output);
        let text = text(&output);
        let exposure = text
            .rsplit_once("Overall exposure level")
            .and_then(|(_, level)| level.split_once(": "))
            .and_then(|(_, level)| level.split(' ').next()?.parse::<f64>().ok())
            .unwrap_or_else(|| panic!("{name}: no level in {text}"));
        assert!(exposure <= MAX_EXPOSURE, "{name}: {text}");
    }
}

#[test]
fn an_instance_is_the_service_under_another_name() {
    let named = settings("tracecheck@.service");
    let mut plain = settings("tracecheck.service");
    for line in &mut plain {
        *line = line
            .replace("/tracecheck.toml", "/%i.toml")
            .replace("=tracecheck/tracecheck", "=tracecheck/%i")
            .replace("A3 traces", "A3 traces of %i");
    }
    assert_eq!(named, plain);
}

#[test]
fn the_units_say_what_the_daemon_counts_on() {
    for name in SERVICES {
        let settings = settings(name);
        for setting in [
            "Type=notify",
            "WatchdogSec=30",
            "Restart=on-failure",
            "LogRateLimitIntervalSec=0",
            "MemoryMax=512M",
            "RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6",
        ] {
            assert!(settings.iter().any(|line| line == setting), "{setting}");
        }
        let command = settings
            .iter()
            .find(|line| line.starts_with("ExecStart="))
            .expect("it starts something");
        for option in [
            "--follow",
            "--format journald",
            "--fail-on never",
            "--state-dir ${STATE_DIRECTORY}",
        ] {
            assert!(command.contains(option), "{option}");
        }
    }
}

/// The example of a configuration with everything in it that is commented out.
fn whole_configuration() -> String {
    let lines = read("tracecheck.toml");
    let lines = lines.lines().map(|line| match line.strip_prefix('#') {
        // Prose has a space behind the sign.
        Some(setting) if !setting.starts_with(' ') => setting,
        _ => line,
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn the_configuration_is_toml() {
    for text in [read("tracecheck.toml"), whole_configuration()] {
        let table: toml::Table = text.parse().expect("it is TOML");
        assert!(table.contains_key("paths"));
    }
    assert!(whole_configuration().contains("\nmetrics = "));
}

#[test]
fn the_configuration_holds_options_of_the_program() {
    let help = text(&output(Command::new(PROGRAM).arg("--help")));
    let table: toml::Table = whole_configuration().parse().expect("it is TOML");
    for key in table.keys().filter(|key| *key != "paths") {
        let option = format!("--{}", key.replace('_', "-"));
        assert!(help.contains(&option), "{option}");
    }
}

#[test]
fn prometheus_takes_the_rules() {
    if !can_check() {
        return;
    }
    for arguments in [
        ["check", "rules", "alerts.yml"],
        ["test", "rules", "alerts_test.yml"],
    ] {
        let mut promtool = Command::new("promtool");
        promtool.args(arguments).current_dir(directory());
        let output = output(&mut promtool);
        assert_success(&output);
        assert!(text(&output).contains("SUCCESS"), "{}", text(&output));
    }
}

/// The names of the alerts.
fn alerts() -> Vec<String> {
    let rules = read("alerts.yml");
    let alerts = rules.lines().filter_map(|line| {
        let name = line.trim().strip_prefix("- alert: ")?;
        Some(name.to_owned())
    });
    alerts.collect()
}

#[test]
fn each_alert_is_tested_firing_and_silent() {
    let tests = read("alerts_test.yml");
    assert!(alerts().len() >= 8);
    for alert in alerts() {
        let silent = format!("alertname: {alert}}}");
        assert!(tests.contains(&silent), "{alert} is never silent");
        let fires = format!("alertname: {alert}\n        exp_alerts:");
        assert!(tests.contains(&fires), "{alert} never fires");
    }
}

#[test]
fn each_code_of_an_error_raises_one_alert() {
    let rules = read("alerts.yml");
    let matchers: Vec<(bool, regex::Regex)> = rules
        .lines()
        .filter_map(|line| {
            let (_, matcher) = line.split_once("increase5m{code")?;
            let (sign, pattern) = matcher.split_at(2);
            let pattern = pattern.strip_prefix('"')?.split('"').next()?;
            let pattern = format!("^(?:{pattern})$");
            Some((
                sign == "=~",
                regex::Regex::new(&pattern).expect("a pattern"),
            ))
        })
        .collect();
    assert_eq!(matchers.len(), 3);
    for &code in tracecheck::Code::ALL {
        let matches = matchers
            .iter()
            .filter(|(is_wanted, pattern)| pattern.is_match(code.as_str()) == *is_wanted);
        if code.severity() == tracecheck::Severity::Error {
            assert_eq!(matches.count(), 1, "{code}");
        }
    }
}
