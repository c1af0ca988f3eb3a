//! SIGHUP: the configuration is read again, whole or not at all.

use crate::place::{Place, note, probe, wait_for};

fn configured(place: &Place) -> std::process::Command {
    place.command(["--config=conf.toml"])
}

fn configuration(path: &str) -> String {
    format!(
        "follow = true\nformat = \"json\"\ntrace_key = \"/trace\"\nstate_dir = \"state\"\npaths = [\"{path}\"]\n"
    )
}

#[test]
fn the_newest_configuration_holds_after_a_burst() {
    let place = Place::new();
    place.write("conf.toml", configuration("f1"));
    let daemon = place.start_command(configured(&place));
    for n in 2..=25 {
        place.write("conf.toml", configuration(&format!("f{n}")));
        daemon.signal("HUP");
    }
    place.write("f25", probe("LASTCFG"));
    place.wait_hit("LASTCFG");
    daemon.stop();
    place.assert_hits(["LASTCFG"]);
}

#[test]
fn a_reload_is_announced() {
    let place = Place::new();
    place.write("conf.toml", configuration("f1"));
    let daemon = place.start_command(configured(&place));
    daemon.signal("HUP");
    daemon.notify.wait("RELOADING=1");
    wait_for("readiness again", || daemon.notify.count("READY=1") == 2);
    let said = daemon.notify.said();
    let reloading = said
        .iter()
        .find(|(_, said)| said.contains("RELOADING=1"))
        .unwrap();
    assert!(reloading.1.contains("MONOTONIC_USEC="), "{}", reloading.1);
    daemon.stop();
}

#[test]
fn a_bad_configuration_changes_nothing_and_says_why() {
    let place = Place::new();
    place.write("conf.toml", configuration("f1"));
    place.write("f1", "");
    let daemon = place.start_command(configured(&place));
    for (bad, word) in [
        (
            "paths = [\"f2\"]\nmax_traces = 0\n".to_owned(),
            "max_traces",
        ),
        (configuration("f2").replace("/trace", "/other"), "trace_key"),
        (
            configuration("f2") + "listen = [\"tcp:nonsense\"]\n",
            "listen",
        ),
        (configuration("f2").replace("json", "text"), "format"),
    ] {
        place.write("conf.toml", bad);
        let before = place.said(word);
        daemon.signal("HUP");
        wait_for(word, || place.said(word) > before);
    }
    place.write("f2", probe("not_followed"));
    place.append("f1", probe("followed"));
    place.wait_hit("followed");
    daemon.stop();
    place.assert_hits(["followed"]);
}

#[test]
fn filters_and_sockets_change() {
    let place = Place::new();
    place.write("conf.toml", configuration("f1"));
    place.write("f1", "");
    let daemon = place.start_command(configured(&place));
    place.append("f1", probe("one"));
    place.wait_hit("one");
    place.write(
        "conf.toml",
        configuration("f1") + "ignore = [\"E_STRUCTURE\"]\nlisten = [\"unix:s.sock\"]\n",
    );
    daemon.signal("HUP");
    wait_for("the socket", || place.path("s.sock").exists());
    place.append("f1", probe("two"));
    place.write("conf.toml", configuration("f1"));
    wait_for("the second to be read", || {
        // The position moves past what is not reported.
        let shown = place.command(["state", "state"]).output().unwrap();
        String::from_utf8_lossy(&shown.stdout).contains(&(2 * probe("one").len()).to_string())
    });
    daemon.signal("HUP");
    wait_for("the socket to go", || !place.path("s.sock").exists());
    place.append("f1", probe("three"));
    place.wait_hit("three");
    daemon.stop();
    place.assert_hits(["one", "three"]);
}

#[test]
fn a_file_that_was_rotated_while_nobody_wanted_it_is_gone_on_with() {
    let place = Place::new();
    let unkeyed = |path: &str| configuration(path).replace("trace_key = \"/trace\"\n", "");
    place.write("conf.toml", unkeyed("a.log"));
    place.write("other", "");
    place.write("a.log", note("t", 1));
    let mut command = configured(&place);
    command.env("RUST_LOG", "info");
    let daemon = place.start_command(command);
    let reload = |path: &str, times: usize| {
        place.write("conf.toml", unkeyed(path));
        daemon.signal("HUP");
        wait_for("the reload", || place.said("was read again") == times);
    };
    wait_for("the first record", || place.said("a.log: opened") == 1);
    reload("other", 1);
    wait_for("the file's end", || place.said("no longer followed") == 1);
    place.append("a.log", note("t", 2));
    place.rename("a.log", "a.log.1");
    place.write("a.log", note("t", 3) + &note("t", 7));
    reload("a.log", 2);
    wait_for("the gap", || !place.findings().is_empty());
    daemon.stop();
    let findings = place.findings();
    assert_eq!(findings.len(), 1, "{findings:?}");
    assert_eq!(findings[0]["code"], "W_SEQ_GAP");
    assert_eq!(findings[0]["seq"], 7);
}
