//! What survives a restart, and what does not.

use std::fs;

use crate::place::{Place, long_probe, note, probe, probes, wait_for};

#[test]
fn half_a_line_is_whole_after_a_restart() {
    for signal in ["TERM", "KILL"] {
        let place = Place::new();
        let line = probe("SPLIT");
        let (first, second) = line.split_at(line.len() - 9);
        place.write("a.log", probe("S0") + first);
        let daemon = place.start(&["a.log"]);
        place.wait_hit("S0");
        match signal {
            "TERM" => assert_eq!(daemon.stop(), 1),
            _ => daemon.kill(),
        }
        place.append("a.log", second);
        let daemon = place.start(&["a.log"]);
        place.wait_hit("SPLIT");
        daemon.stop();
        let hits = place.hits();
        assert_eq!((hits.len(), hits["SPLIT"]), (2, 1), "{hits:?}");
    }
}

#[test]
fn the_rest_of_an_over_long_line_is_passed_over_after_a_restart() {
    let place = Place::new();
    place.write("a.log", "x".repeat(20_000));
    let arguments = ["a.log", "--max-record-bytes=8KiB"];
    let daemon = place.start(&arguments);
    place.wait_hit("a.log");
    daemon.stop();
    place.append("a.log", probe("GHOST") + &probe("REAL"));
    let daemon = place.start(&arguments);
    place.wait_hit("REAL");
    daemon.stop();
    place.assert_hits(["a.log", "REAL"]);
}

#[test]
fn rotation_while_it_was_down_is_caught_up() {
    let place = Place::new();
    place.write("a.log", probe("D1"));
    let daemon = place.start(&["a.log"]);
    place.wait_hit("D1");
    daemon.stop();
    place.append("a.log", probe("D2"));
    place.rename("a.log", "a.log.1");
    place.write("a.log", probe("D3"));
    let daemon = place.start(&["a.log"]);
    place.wait_hit("D2");
    place.wait_hit("D3");
    daemon.stop();
    place.assert_hits(["D1", "D2", "D3"]);
}

#[test]
fn copytruncate_while_it_was_down_is_caught_up() {
    let place = Place::new();
    place.write("a.log", probe("D1"));
    let daemon = place.start(&["a.log"]);
    place.wait_hit("D1");
    daemon.stop();
    place.append("a.log", probe("D2"));
    fs::copy(place.path("a.log"), place.path("a.log.1")).unwrap();
    place.write("a.log", probe("D3"));
    let daemon = place.start(&["a.log"]);
    place.wait_hit("D2");
    place.wait_hit("D3");
    daemon.stop();
    place.assert_hits(["D1", "D2", "D3"]);
}

#[test]
fn states_of_traces_survive() {
    let place = Place::new();
    let submitted = "{\"trace\":\"t\",\"seq\":5,\"kind\":\"task.submitted\",\"content\":{\"requirements\":{\"clearances\":[\"orders.read\"]}}}\n";
    place.write("a.log", submitted);
    let daemon = place.start(&["a.log"]);
    wait_for("the first record", || !place.events_of("source").is_empty());
    daemon.stop();
    // The same `seq` again is an error only to one that has seen the first.
    place.append("a.log", note("t", 5));
    let daemon = place.start(&["a.log"]);
    place.wait_hit("t");
    daemon.stop();
    let finding = &place.findings()[0];
    assert_eq!(finding["code"], "E_STRUCTURE");
    assert_eq!(finding["pointer"], "/seq");
}

#[test]
fn a_damaged_store_is_set_aside_and_costs_only_time() {
    for zeroed in [true, false] {
        let place = Place::new();
        place.write("a.log", probes((0..30).map(|n| format!("b{n}b"))));
        let daemon = place.start(&["a.log"]);
        place.wait_hit("b29b");
        daemon.stop();
        for entry in fs::read_dir(place.path("state")).unwrap() {
            let path = entry.unwrap().path();
            let length = fs::metadata(&path).unwrap().len() as usize;
            fs::write(&path, vec![0; if zeroed { length } else { 0 }]).unwrap();
        }
        let daemon = place.start(&["a.log"]);
        place.append("a.log", probe("more"));
        place.wait_hit("more");
        daemon.stop();
        assert_eq!(place.hits()["more"], 1);
        assert_eq!(place.hits()["b0b"], 2, "read again");
        assert!(place.said("damaged") > 0, "{}", place.diagnostics());
        let aside = fs::read_dir(place.path("state")).unwrap();
        let names = aside.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        assert!(names.into_iter().any(|name| name.contains("damaged")));
    }
}

#[test]
fn kills_lose_nothing_and_repeat_little() {
    let place = Place::new();
    place.write("a.log", "");
    let mut all = Vec::new();
    for round in 0..12 {
        let daemon = place.start(&["a.log"]);
        for n in 0..15 {
            let name = format!("k{round}-{n}k");
            place.append("a.log", probe(&name));
            all.push(name);
        }
        if round % 2 == 0 {
            place.wait_hit(all.last().unwrap());
        }
        daemon.kill();
    }
    let daemon = place.start(&["a.log"]);
    place.wait_hit(all.last().unwrap());
    daemon.stop();
    let hits = place.hits();
    all.iter()
        .for_each(|name| assert!(hits.contains_key(name), "lost {name}"));
    let mut ids: Vec<_> = place
        .findings()
        .iter()
        .map(|f| f["id"].to_string())
        .collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), all.len(), "repeats have the same ids");
    let names = fs::read_dir(place.path("state")).unwrap().count();
    assert!(names <= 4, "{names} files");
}

#[test]
fn a_second_process_on_the_directory_is_refused() {
    let place = Place::new();
    place.write("a.log", probe("i1"));
    let daemon = place.start(&["a.log"]);
    place.wait_hit("i1");
    let arguments = [
        "--follow",
        "--trace-key=/trace",
        "--state-dir=state",
        "a.log",
    ];
    let second = place.command(arguments).output().unwrap();
    assert_eq!(second.status.code(), Some(2));
    let message = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(message.contains("state"), "{message}");
    place.append("a.log", probe("i2"));
    place.wait_hit("i2");
    daemon.stop();
    place.assert_hits(["i1", "i2"]);
}

#[test]
fn sources_share_one_store() {
    let place = Place::new();
    place.make_dir("p");
    place.make_dir("q");
    place.write("p/a.log", probe("p1"));
    place.write("q/a.log", probe("q1"));
    let daemon = place.start(&["p/*.log", "q/*.log"]);
    place.wait_hit("p1");
    place.wait_hit("q1");
    daemon.stop();
    // One is left out for a run, and the order changes.
    place.append("p/a.log", probe("p2"));
    let daemon = place.start(&["p/*.log"]);
    place.wait_hit("p2");
    daemon.stop();
    place.append("q/a.log", probe("q2"));
    let daemon = place.start(&["q/*.log", "p/*.log"]);
    place.wait_hit("q2");
    daemon.stop();
    place.assert_hits(["p1", "q1", "p2", "q2"]);
}

#[test]
fn runs_to_the_end_go_on_where_they_were_left() {
    let place = Place::new();
    place.write("a.log", probe("FULL") + probe("NONL").trim_end());
    let once = || {
        let arguments = [
            "--format=json",
            "--trace-key=/trace",
            "--state-dir=state",
            "a.log",
        ];
        let ran = place.command(arguments).output().unwrap();
        place.append("out", &ran.stdout);
        ran.status.code()
    };
    assert_eq!(once(), Some(1));
    place.assert_hits(["FULL", "NONL"]);
    assert_eq!(once(), Some(0));
    place.append("a.log", "\n".to_owned() + &probe("GROWN"));
    assert_eq!(once(), Some(1));
    place.assert_hits(["FULL", "NONL", "GROWN"]);
}

#[test]
fn the_store_can_be_looked_at() {
    let place = Place::new();
    place.write("a.log", note("open", 1) + &long_probe("p", 100));
    let daemon = place.start(&["a.log"]);
    place.wait_hit("p");
    daemon.stop();
    let shown = place.command(["state", "state"]).output().unwrap();
    assert_eq!(shown.status.code(), Some(0));
    let text = String::from_utf8(shown.stdout).unwrap();
    assert!(text.contains("a.log") && text.contains("open"), "{text}");
    let json = place
        .command(["state", "state", "--format=json"])
        .output()
        .unwrap();
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert!(json.is_object());
    assert_eq!(
        place
            .command(["state", "nowhere"])
            .output()
            .unwrap()
            .status
            .code(),
        Some(2)
    );
}
