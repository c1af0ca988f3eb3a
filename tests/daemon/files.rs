//! Following files: growth, truncation, rotation, names that come and go.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::process::Command;

use crate::place::{Place, long_probe, note, probe, probes, wait_for, writer};

#[test]
fn a_new_file_on_the_inode_of_an_old_one_is_read_from_its_start() {
    let place = Place::new();
    place.write("a.log", probes((0..200).map(|n| format!("old{n}"))));
    let daemon = place.start(&["a.log"]);
    place.wait_hit("old199");
    daemon.stop();
    let inode = |place: &Place| fs::metadata(place.path("a.log")).unwrap().ino();
    let before = inode(&place);
    // In place, so that the inode is the same on every file system.
    place.write(
        "a.log",
        probe("HEAD") + &probes((0..400).map(|n| format!("n{n}"))),
    );
    assert_eq!(inode(&place), before);
    let daemon = place.start(&["a.log"]);
    place.wait_hit("n399");
    daemon.stop();
    let old = (0..200).map(|n| format!("old{n}"));
    let new = (0..400).map(|n| format!("n{n}"));
    place.assert_hits(old.chain(["HEAD".to_owned()]).chain(new));
}

#[test]
fn a_position_beyond_the_end_means_a_new_file() {
    let place = Place::new();
    place.write("a.log", probes((0..3000).map(|n| format!("old{n}"))));
    let daemon = place.start(&["a.log"]);
    place.wait_hit("old2999");
    daemon.stop();
    place.write("a.log", probe("SHORT"));
    let daemon = place.start(&["a.log"]);
    place.wait_hit("SHORT");
    daemon.stop();
    assert_eq!(place.hits()["SHORT"], 1);
    assert_eq!(place.hits().len(), 3001);
}

#[test]
fn empty_files_are_not_one_and_the_same() {
    let place = Place::new();
    place.make_dir("d");
    for n in 0..60 {
        place.write(&format!("d/e{n}.log"), "");
    }
    let daemon = place.start(&["d/*.log"]);
    for n in 0..60 {
        place.append(&format!("d/e{n}.log"), probe(format!("Z{n}z")));
    }
    (0..60).for_each(|n| place.wait_hit(format!("Z{n}z")));
    daemon.stop();
    place.assert_hits((0..60).map(|n| format!("Z{n}z")));
    assert!(place.diagnostics().lines().count() < 5);
}

#[test]
fn a_truncated_file_is_read_from_its_start_at_once() {
    let place = Place::new();
    place.write("a.log", probes((0..300).map(|n| format!("o{n}"))));
    let daemon = place.start(&["a.log"]);
    place.wait_hit("o299");
    place.write("a.log", probe("AFTER"));
    place.wait_hit("AFTER");
    daemon.stop();
    assert_eq!(place.hits().values().max(), Some(&1));
    assert_eq!(place.hits().len(), 301);
    let states: Vec<_> = place
        .events_of("source")
        .iter()
        .map(|e| e["state"].clone())
        .collect();
    assert_eq!(
        states.iter().filter(|state| *state == "truncated").count(),
        1,
        "{states:?}"
    );
}

#[test]
fn lines_around_an_overwrite_are_all_read() {
    let place = Place::new();
    place.write("a.log", "");
    let daemon = place.start(&["a.log"]);
    for n in 0..48 {
        let line = probe(format!("N{n}n"));
        match n % 8 {
            5 => place.write("a.log", line),
            _ => place.append("a.log", line),
        }
        // Each stays until it was read.
        place.wait_hit(format!("N{n}n"));
    }
    daemon.stop();
    place.assert_hits((0..48).map(|n| format!("N{n}n")));
}

#[test]
fn a_hole_before_a_line_is_skipped_and_told() {
    let place = Place::new();
    let mut file = writer(&place.path("a.log"));
    file.write_all(probes((0..100).map(|n| format!("a{n}"))).as_bytes())
        .unwrap();
    let daemon = place.start(&["a.log"]);
    place.wait_hit("a99");
    fs::OpenOptions::new()
        .write(true)
        .truncate(true)
        .open(place.path("a.log"))
        .unwrap();
    file.write_all(probe("GAPPED").as_bytes()).unwrap();
    file.write_all(probe("NEXT").as_bytes()).unwrap();
    place.wait_hit("NEXT");
    daemon.stop();
    place.assert_hits(
        (0..100)
            .map(|n| format!("a{n}"))
            .chain(["GAPPED".into(), "NEXT".into()]),
    );
    assert_eq!(place.said("NUL"), 1, "{}", place.diagnostics());
}

#[test]
fn a_large_hole_holds_up_nobody() {
    let place = Place::new();
    fs::File::create(place.path("a.log"))
        .unwrap()
        .set_len(256 << 20)
        .unwrap();
    place.append("a.log", probe("ENDOFHOLE"));
    place.write("b.log", "");
    let daemon = place.start(&["a.log", "b.log"]);
    place.append("b.log", probe("OTHER"));
    place.wait_hit("OTHER");
    place.wait_hit("ENDOFHOLE");
    assert!(daemon.peak_kib() < 64 << 10, "{} KiB", daemon.peak_kib());
    daemon.stop();
    place.assert_hits(["ENDOFHOLE", "OTHER"]);
}

#[test]
fn a_rotated_file_is_read_to_its_end() {
    let place = Place::new();
    place.write("a.log", probes((0..20_000).map(|n| format!("q{n}q"))));
    let daemon = place.start(&["a.log"]);
    place.rename("a.log", "a.log.1");
    place.write("a.log", probe("NEWER"));
    place.wait_hit("NEWER");
    place.wait_hit("q19999q");
    daemon.stop();
    assert_eq!(place.hits().len(), 20_001);
    assert_eq!(place.findings().len(), 20_001);
}

#[test]
fn late_lines_of_a_renamed_file_are_read() {
    let place = Place::new();
    place.write("a.log", probe("one"));
    let daemon = place.start(&["a.log"]);
    place.wait_hit("one");
    let mut old = fs::OpenOptions::new()
        .append(true)
        .open(place.path("a.log"))
        .unwrap();
    place.rename("a.log", "a.log.1");
    place.write("a.log", probe("two"));
    old.write_all(probe("late").as_bytes()).unwrap();
    place.wait_hit("two");
    place.wait_hit("late");
    daemon.stop();
    place.assert_hits(["one", "two", "late"]);
}

#[test]
fn a_hard_link_that_is_swapped_is_followed() {
    let place = Place::new();
    place.write("one", probe("L1"));
    fs::hard_link(place.path("one"), place.path("cur.log")).unwrap();
    let daemon = place.start(&["cur.log"]);
    place.wait_hit("L1");
    for (file, trace) in [("two", "L2"), ("three", "L3")] {
        place.write(file, "");
        fs::hard_link(place.path(file), place.path("new")).unwrap();
        place.rename("new", "cur.log");
        place.append(file, probe(trace));
        place.wait_hit(trace);
    }
    daemon.stop();
    place.assert_hits(["L1", "L2", "L3"]);
}

#[test]
fn no_rate_of_rotation_loses_what_is_still_there() {
    let place = Place::new();
    place.write("a.log", "");
    let daemon = place.start(&["a.log*"]);
    let mut expected = Vec::new();
    for rotation in 0..25 {
        let mut file = fs::OpenOptions::new()
            .append(true)
            .create(true)
            .open(place.path("a.log"))
            .unwrap();
        let names: Vec<_> = (0..400).map(|n| format!("h{rotation}-{n}h")).collect();
        file.write_all(probes(&names).as_bytes()).unwrap();
        place.rename("a.log", &format!("a.log.{rotation:02}"));
        let late = format!("t{rotation}t");
        file.write_all(probe(&late).as_bytes()).unwrap();
        expected.extend(names);
        expected.push(late);
    }
    wait_for("every line", || place.hits().len() >= expected.len());
    daemon.stop();
    place.assert_hits(expected);
}

#[test]
fn generations_that_were_never_seen_under_the_path_are_found_beside_it() {
    let place = Place::new();
    place.write("a.log", probe("first"));
    let daemon = place.start(&["a.log"]);
    place.wait_hit("first");
    daemon.signal("STOP");
    for generation in 0..3 {
        place.rename("a.log", &format!("a.log.{generation}"));
        place.write("a.log", probe(format!("g{generation}")));
    }
    daemon.signal("CONT");
    (0..3).for_each(|generation| place.wait_hit(format!("g{generation}")));
    daemon.stop();
    place.assert_hits(["first", "g0", "g1", "g2"]);
}

#[test]
fn an_unfinished_line_waits_and_is_charged_to_its_own_file() {
    let place = Place::new();
    place.write("a.log", "{\"trace\":\"left");
    let daemon = place.start(&["a.log"]);
    place.rename("a.log", "a.log.1");
    place.write("a.log", probe("CLEAN"));
    place.wait_hit("CLEAN");
    wait_for("the old file's end", || place.findings().len() == 2);
    daemon.stop();
    let findings = place.findings();
    assert_eq!(place.hits()["CLEAN"], 1);
    let left = findings
        .iter()
        .find(|finding| finding["trace"] != "CLEAN")
        .unwrap();
    assert_eq!((&left["line"], &left["offset"]), (&1.into(), &0.into()));
}

#[test]
fn a_line_in_two_writes_is_where_it_begins() {
    let place = Place::new();
    let line = probe("TWOPART");
    let (first, second) = line.split_at(line.len() - 6);
    place.write("a.log", first);
    let daemon = place.start(&["a.log"]);
    place.append("a.log", second);
    place.append("a.log", probe("THIRD"));
    place.wait_hit("THIRD");
    daemon.stop();
    let places: Vec<_> = place
        .findings()
        .iter()
        .map(|f| (f["line"].clone(), f["offset"].clone()))
        .collect();
    assert_eq!(
        places,
        [(1.into(), 0.into()), (2.into(), line.len().into())]
    );
}

#[test]
fn marks_line_ends_and_bad_bytes_cost_no_other_line() {
    let place = Place::new();
    place.write(
        "bom.log",
        format!("\u{feff}{}{}", probe("BOM1"), probe("BOM2")),
    );
    let crlf = [
        &probe("CR1"),
        "\n",
        &note("OKAY", 1),
        &note("OKAY", 2),
        &probe("CR2"),
    ]
    .concat();
    place.write("crlf.log", crlf.replace('\n', "\r\n"));
    place.write(
        "latin.log",
        [
            probe("U1").as_bytes(),
            b"{\"trace\":\"caf\xe9\"}\n",
            probe("U2").as_bytes(),
        ]
        .concat(),
    );
    let daemon = place.start(&["bom.log", "crlf.log", "latin.log"]);
    ["BOM2", "CR2", "U2"]
        .iter()
        .for_each(|trace| place.wait_hit(trace));
    daemon.stop();
    place.assert_hits(["BOM1", "BOM2", "CR1", "CR2", "U1", "U2", "latin.log"]);
}

#[test]
fn characters_on_the_border_of_a_buffer_stay_whole() {
    let place = Place::new();
    place.write("a.log", "");
    let daemon = place.start(&["a.log"]);
    let mut expected = Vec::new();
    for size in [4096_usize, 8192, 16_384, 65_536, 1 << 18, 1 << 20] {
        for shift in 0..7 {
            let trace = format!("u{size}d{shift}\u{e9}\u{1f512}x");
            let padding = (size + shift).saturating_sub(90);
            place.append("a.log", long_probe(&format!("pad{size}-{shift}"), padding));
            place.append("a.log", probe(&trace));
            expected.push(format!("pad{size}-{shift}"));
            expected.push(trace);
        }
    }
    wait_for("every line", || place.hits().len() >= expected.len());
    daemon.stop();
    place.assert_hits(expected);
}

#[test]
fn an_over_long_line_costs_itself_alone() {
    let place = Place::new();
    place.make_dir("d");
    for n in 0..3 {
        let content = [
            probe(format!("b{n}")),
            long_probe("HUGE", 20_000),
            probe(format!("n{n}")),
        ];
        place.write(&format!("d/f{n}.log"), content.concat());
    }
    let ghost = format!("{}{}", "x".repeat(20_000), probe("GHOST"));
    place.write("d/g.log", ghost + &probe("REAL"));
    let daemon = place.start(&["d/*.log", "--max-record-bytes=8KiB"]);
    place.wait_hit("REAL");
    (0..3).for_each(|n| place.wait_hit(format!("n{n}")));
    daemon.stop();
    let hits = place.hits();
    assert!(!hits.contains_key("GHOST") && !hits.contains_key("HUGE"));
    for n in 0..3 {
        assert_eq!(
            hits[&format!("d/f{n}.log")],
            1,
            "the line counts for its source"
        );
    }
    assert_eq!(hits.values().sum::<usize>(), 3 * 3 + 2);
}

#[test]
fn a_deleted_file_is_read_to_its_end() {
    let place = Place::new();
    place.write("a.log", probes((0..20_000).map(|n| format!("d{n}d"))));
    let daemon = place.start(&["a.log"]);
    place.remove("a.log");
    place.wait_hit("d19999d");
    daemon.stop();
    assert_eq!(place.findings().len(), 20_000);
}

#[test]
fn a_compressed_copy_is_no_trace() {
    let place = Place::new();
    place.make_dir("d");
    place.write("d/a.log", probes((0..20).map(|n| format!("g{n}g"))));
    let daemon = place.start(&["d/*"]);
    place.wait_hit("g19g");
    place.rename("d/a.log", "d/a.log.1");
    place.write("d/a.log", "");
    let packed = Command::new("gzip")
        .arg(place.path("d/a.log.1"))
        .status()
        .unwrap();
    assert!(packed.success());
    wait_for("the notice", || place.said("gzip") == 1);
    place.append("d/a.log", probe("LAST"));
    place.wait_hit("LAST");
    daemon.stop();
    place.assert_hits((0..20).map(|n| format!("g{n}g")).chain(["LAST".to_owned()]));
}

#[test]
fn a_link_and_its_target_may_both_change() {
    let place = Place::new();
    place.make_dir("real");
    place.write("real/0.log", probe("y1"));
    symlink("real/0.log", place.path("cur")).unwrap();
    let daemon = place.start(&["cur"]);
    place.wait_hit("y1");
    place.rename("real/0.log", "real/0.old");
    place.write("real/0.log", probe("y2"));
    place.wait_hit("y2");
    place.write("real/1.log", probe("y3"));
    symlink("real/1.log", place.path("t")).unwrap();
    place.rename("t", "cur");
    place.wait_hit("y3");
    place.append("real/1.log", probe("y4"));
    place.wait_hit("y4");
    daemon.stop();
    place.assert_hits(["y1", "y2", "y3", "y4"]);
}

#[test]
fn patterns_that_overlap_and_links_give_one_reader() {
    let place = Place::new();
    place.make_dir("d");
    place.write("d/app-1.log", probe("o1"));
    symlink("app-1.log", place.path("d/link.log")).unwrap();
    fs::hard_link(place.path("d/app-1.log"), place.path("d/hard.log")).unwrap();
    let daemon = place.start(&[
        "d/*.log",
        "d/app-*.log",
        "d/app-1.log",
        "./d/../d/app-1.log",
    ]);
    place.wait_hit("o1");
    place.append("d/app-1.log", probe("o2"));
    place.wait_hit("o2");
    place.remove("d/app-1.log");
    place.append("d/hard.log", probe("o3"));
    place.wait_hit("o3");
    daemon.stop();
    place.assert_hits(["o1", "o2", "o3"]);
    assert!(
        place.diagnostics().lines().count() <= 1,
        "{}",
        place.diagnostics()
    );
}

#[test]
fn files_that_come_later_are_found() {
    let place = Place::new();
    place.make_dir("d");
    let daemon = place.start(&["d", "later.log", "e/*.log"]);
    place.write("later.log", probe("later"));
    place.write("d/new.jsonl", probe("new"));
    place.write("d/not.txt", probe("not"));
    place.make_dir("e");
    place.write("e/x.log", probe("x"));
    ["later", "new", "x"]
        .iter()
        .for_each(|trace| place.wait_hit(trace));
    daemon.stop();
    place.assert_hits(["later", "new", "x"]);
}

#[test]
fn from_the_end_leaves_out_what_is_there() {
    let place = Place::new();
    place.write(
        "a.log",
        probe("before") + &probe("before2") + "{\"trace\":\"unf",
    );
    let daemon = place.start(&["--from-end", "a.log", "b.log"]);
    wait_for("the file to be open", || {
        !place.events_of("source").is_empty()
    });
    place.append(
        "a.log",
        "inished\",\"seq\":1,\"kind\":\"task.bound\",\"content\":{}}\n",
    );
    place.append("a.log", probe("after"));
    place.write("b.log", probe("whole"));
    place.wait_hit("after");
    place.wait_hit("whole");
    daemon.stop();
    place.assert_hits(["unfinished", "after", "whole"]);
    let line = place
        .findings()
        .iter()
        .find(|f| f["trace"] == "after")
        .unwrap()["line"]
        .clone();
    assert_eq!(line, 4);
}

#[test]
fn a_file_that_cannot_be_read_is_told_once_and_read_later() {
    let place = Place::new();
    // Root reads everything, so a loop of links stands in for a forbidden file.
    symlink("a.log", place.path("a.log")).unwrap();
    place.write("b.log", "");
    let daemon = place.start(&["a.log", "b.log"]);
    wait_for("the failure", || place.said("a.log") > 0);
    let told = place.said("a.log");
    for n in 0..3 {
        place.append("b.log", probe(format!("meanwhile{n}")));
        place.wait_hit(format!("meanwhile{n}"));
        std::thread::sleep(std::time::Duration::from_millis(600));
    }
    assert_eq!(place.said("a.log"), told, "{}", place.diagnostics());
    place.remove("a.log");
    place.write("a.log", probe("PERM"));
    fs::set_permissions(place.path("a.log"), fs::Permissions::from_mode(0o644)).unwrap();
    place.wait_hit("PERM");
    daemon.stop();
    assert_eq!(place.hits()["PERM"], 1);
}

#[test]
fn a_large_old_file_starves_no_other() {
    let place = Place::new();
    let backlog: String = (0..300_000).map(|n| note(format!("big{n}"), 1)).collect();
    place.write("old.log", backlog.repeat(3));
    place.write("new.log", "");
    let daemon = place.start(&[
        "old.log",
        "new.log",
        "--max-traces=1000",
        "--only=E_STRUCTURE",
    ]);
    place.append("new.log", probe("FAIR"));
    place.wait_hit("FAIR");
    daemon.stop();
}

#[test]
fn a_generation_continues_its_trace_or_begins_another() {
    let place = Place::new();
    let record = |seq: u64| format!("{{\"seq\":{seq},\"kind\":\"note\",\"content\":{{}}}}\n");
    place.write("a.log", record(1) + &record(2));
    let command = place.command(["--follow", "--format=json", "--trace-events", "a.log"]);
    let daemon = place.start_command(command);
    wait_for("the file", || !place.events_of("source").is_empty());
    // It goes on in the next file, without a gap.
    place.rename("a.log", "a.log.1");
    place.write("a.log", record(3) + "broken\n");
    wait_for("the second generation", || place.findings().len() == 1);
    // Another one begins in the third.
    place.rename("a.log", "a.log.2");
    place.write("a.log", record(1) + &record(1));
    wait_for("the third generation", || place.findings().len() == 2);
    daemon.stop();
    let closed = place.events_of("trace");
    assert_eq!(closed.len(), 1, "{closed:?}");
    assert_eq!(
        (&closed[0]["state"], &closed[0]["records"]),
        (&"closed".into(), &4.into())
    );
}
