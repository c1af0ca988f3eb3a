//! What happens to files while they are followed.

use std::fs::{self, File, Permissions, hard_link};
use std::io::{Seek, SeekFrom, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::time::Duration;

use tracecheck::event::SourceState::{Closed, Removed, Rotated, Truncated};

use super::harness::{Harness, Heard, How, KEYED, POLLED, UNKEYED, warnings};
use crate::source::follow::scan;
use crate::source::message::Follows;

const ALL: [How; 3] = [KEYED, UNKEYED, POLLED];

#[test]
fn growth_is_read_as_it_comes() {
    for how in [KEYED, UNKEYED] {
        let mut harness = Harness::new(&["a.log"], how);
        harness.turn();
        assert!(harness.heard.is_empty());
        harness.write("a.log", "one\ntw");
        harness.pass(Duration::from_millis(20));
        assert_eq!(harness.text("a.log"), "one\ntw");
        // Without a scan: events alone lead to the file.
        harness.append("a.log", "o\n");
        harness.turn();
        assert_eq!(harness.story(), [("a.log", "one\ntwo\n", None)]);
        assert_eq!(harness.follows(), [Follows::Nothing]);
    }
}

#[test]
fn a_file_that_is_moved_away_between_being_seen_and_being_opened_is_read() {
    for how in ALL {
        let mut harness = Harness::new(&["a.log"], how);
        harness.write("a.log", "one\n");
        harness.turn();
        harness.tick();
        harness.remove("a.log");
        harness.write("a.log", "two\n");
        let seen = scan::find(&harness.following.inputs, &harness.following.progress);
        harness.tick();
        harness.rename("a.log", "a.log.1");
        harness.write("a.log", "three\n");
        harness.following.take_found(&seen, harness.now);
        harness.settle();
        assert_eq!(harness.text("a.log"), "one\ntwo\nthree\n");
    }
}

#[test]
fn without_events_growth_is_found_by_scans() {
    let mut harness = Harness::new(&["a.log"], POLLED);
    harness.write("a.log", "one\n");
    harness.turn();
    harness.append("a.log", "two\n");
    harness.turn();
    assert_eq!(harness.text("a.log"), "one\n");
    harness.pass(Duration::from_millis(250));
    assert_eq!(harness.text("a.log"), "one\ntwo\n");
}

#[test]
fn empty_files_are_opened_and_told_apart() {
    let mut harness = Harness::new(&["e*"], KEYED);
    for i in 0..60 {
        harness.write(&format!("e{i}"), "");
    }
    harness.turn();
    assert_eq!(harness.heard.len(), 60);
    for i in 0..60 {
        harness.append(&format!("e{i}"), &format!("{i}\n"));
    }
    harness.turn();
    assert_eq!(harness.heard.len(), 60);
    for i in 0..60 {
        assert_eq!(harness.text(&format!("e{i}")), format!("{i}\n"));
    }
}

#[test]
fn a_truncated_file_is_read_from_its_beginning() {
    for how in ALL {
        let mut harness = Harness::new(&["a.log"], how);
        harness.write("a.log", "one\ntwo\nthree\n");
        harness.turn();
        harness.write("a.log", "");
        harness.look();
        assert_eq!(
            harness.story(),
            [("a.log", "one\ntwo\nthree\n", Some(Truncated))]
        );
        harness.append("a.log", "fo");
        harness.look();
        assert_eq!(harness.heard.len(), 1, "its first line tells what it is");
        harness.append("a.log", "ur\n");
        harness.look();
        assert_eq!(harness.story()[1], ("a.log", "four\n", None));
        assert_eq!(harness.follows()[1], Follows::Truncated);
        assert_ne!(
            harness.heard[0].opened.source.origin,
            harness.heard[1].opened.source.origin
        );
        assert!(!harness.heard[0].message().contains("never"));
    }
}

#[test]
fn an_overwritten_file_that_is_as_long_or_longer_is_noticed() {
    for how in ALL {
        for new in ["1ne\ntwo\n", "one\ntwO\n", "longer\nthan\nbefore\n"] {
            let mut harness = Harness::new(&["a.log"], how);
            harness.write("a.log", "one\ntwo\n");
            harness.turn();
            harness.write("a.log", new);
            harness.look();
            assert_eq!(
                harness.story(),
                [
                    ("a.log", "one\ntwo\n", Some(Truncated)),
                    ("a.log", new, None)
                ]
            );
        }
    }
}

#[test]
fn what_is_known_to_be_lost_is_said() {
    let mut harness = Harness::new(&["a.log"], KEYED);
    harness.write("a.log", "one\n");
    harness.turn();
    harness.append("a.log", "two\n");
    harness.following.want_scan();
    // The scan sees the growth; a message that nobody has taken keeps it from being read.
    harness
        .following
        .outbox
        .push_back(crate::source::Message::Tick);
    harness.following.turn(harness.now);
    harness.following.outbox.clear();
    harness.write("a.log", "");
    harness.turn();
    let message = harness.heard[0].message();
    assert!(
        message.contains("4 bytes") && message.contains("never read"),
        "{message}"
    );
}

#[test]
fn the_rest_of_a_truncated_file_is_read_from_its_copy() {
    for (how, copy) in [
        (KEYED, "a.log.1"),
        (UNKEYED, "a-20260101.log"),
        (POLLED, "a.log.1"),
    ] {
        let mut harness = Harness::new(&["a.log"], how);
        harness.write("a.log", "one\n");
        harness.turn();
        harness.append("a.log", "two\n");
        fs::copy(harness.at("a.log"), harness.at(copy)).unwrap();
        harness.write("a.log", "three\n");
        harness.look();
        assert_eq!(
            harness.story(),
            [
                ("a.log", "one\ntwo\n", Some(Truncated)),
                ("a.log", "three\n", None)
            ]
        );
        harness.settle();
        assert_eq!(harness.heard.len(), 2);
    }
}

#[test]
fn a_writer_that_does_not_append_leaves_a_hole() {
    let mut harness = Harness::new(&["a.log"], KEYED);
    let mut file = File::create(harness.at("a.log")).unwrap();
    file.write_all(b"one\ntwo\n").unwrap();
    harness.turn();
    File::create(harness.at("a.log")).unwrap();
    file.write_all(b"gapped\n").unwrap();
    harness.look();
    assert_eq!(harness.story()[1].1, "\0\0\0\0\0\0\0\0gapped\n");
}

#[test]
fn a_huge_hole_keeps_no_other_file_waiting() {
    let mut harness = Harness::new(&["a.log", "b.log"], KEYED);
    let mut file = File::create(harness.at("a.log")).unwrap();
    file.seek(SeekFrom::Start(256 << 20)).unwrap();
    file.write_all(b"end\n").unwrap();
    harness.write("b.log", "");
    harness.following.turn(harness.now);
    harness.following.outbox.clear();
    harness.append("b.log", "other\n");
    let mut turns = 0;
    let is_other = |message: &crate::source::Message| matches!(message, crate::source::Message::Bytes { chunk, .. } if chunk.bytes() == b"other\n");
    while !harness.following.outbox.iter().any(is_other) {
        harness.following.outbox.clear();
        harness.following.turn(harness.now);
        turns += 1;
        assert!(turns < 10);
    }
    assert!(harness.following.progress.lag_bytes() > 200 << 20);
}

#[test]
fn a_rotated_file_is_read_to_its_end_and_the_next_from_its_beginning() {
    for how in ALL {
        let mut harness = Harness::new(&["a.log"], how);
        harness.write("a.log", "one\n");
        harness.turn();
        harness.append("a.log", "two\n");
        harness.rename("a.log", "a.log.1");
        harness.write("a.log", "four\n");
        harness.append("a.log.1", "three\n");
        harness.pass(Duration::from_millis(1300));
        harness.append("a.log.1", "late\n");
        harness.settle();
        assert_eq!(
            harness.story(),
            [
                ("a.log", "one\ntwo\nthree\nlate\n", Some(Rotated)),
                ("a.log", "four\n", None)
            ]
        );
        assert_eq!(harness.follows(), [Follows::Nothing, Follows::Rotated]);
    }
}

#[test]
fn the_next_file_waits_as_long_as_it_has_to() {
    for (how, first, wait_millis) in [
        (KEYED, "one\n", 0),
        (UNKEYED, "one\n", 500),
        (KEYED, "unfinished", 2000),
        (UNKEYED, "unfinished", 2000),
    ] {
        let mut harness = Harness::new(&["a.log"], how);
        harness.write("a.log", first);
        harness.turn();
        harness.pass(Duration::from_millis(100));
        harness.rename("a.log", "b");
        harness.write("a.log", "two\n");
        harness.look();
        if wait_millis > 0 {
            harness.pass(Duration::from_millis(wait_millis - 50));
            assert_eq!(harness.heard.len(), 1);
        }
        harness.pass(Duration::from_millis(100));
        assert_eq!(harness.heard.len(), 2);
        assert_eq!(harness.story()[1], ("a.log", "two\n", None));
    }
}

#[test]
fn a_removed_file_is_read_to_its_end() {
    for how in ALL {
        let mut harness = Harness::new(&["a.log"], how);
        harness.write("a.log", "");
        harness.turn();
        let text = "line\n".repeat(300_000);
        harness.append("a.log", &text);
        harness.remove("a.log");
        harness.settle();
        assert!(harness.text("a.log") == text);
        assert_eq!(harness.story()[0].2, Some(Removed));
        harness.write("a.log", "again\n");
        harness.settle();
        assert_eq!(harness.story()[1], ("a.log", "again\n", None));
        assert_eq!(harness.follows()[1], Follows::Rotated);
    }
}

#[test]
fn a_link_that_is_pointed_elsewhere_is_followed() {
    for how in ALL {
        let mut harness = Harness::new(&["cur"], how);
        harness.write("one", "1\n");
        hard_link(harness.at("one"), harness.at("cur")).unwrap();
        harness.turn();
        for (file, text) in [("two", "2\n"), ("three", "3\n")] {
            harness.write(file, "");
            hard_link(harness.at(file), harness.at("new")).unwrap();
            harness.rename("new", "cur");
            harness.pass(Duration::from_secs(1));
            harness.append(file, text);
            harness.settle();
        }
        assert_eq!(
            harness.story(),
            [
                ("cur", "1\n", Some(Rotated)),
                ("cur", "2\n", Some(Rotated)),
                ("cur", "3\n", None)
            ]
        );
    }
}

#[test]
fn fast_rotation_loses_nothing_that_is_kept() {
    for (how, inputs) in [
        (KEYED, ["a.log*"]),
        (UNKEYED, ["a.log*"]),
        (POLLED, ["a.log*"]),
        (KEYED, ["a.log"]),
        (UNKEYED, ["a.log"]),
        (POLLED, ["a.log"]),
    ] {
        let mut harness = Harness::new(&inputs, how);
        harness.write("a.log", "");
        harness.turn();
        let mut written = String::new();
        for rotation in 0..25 {
            let text: String = (0..200).map(|i| format!("{rotation} {i}\n")).collect();
            let late = format!("late {rotation}\n");
            let rotated = format!("a.log.{rotation:02}");
            harness.append("a.log", &text);
            harness.rename("a.log", &rotated);
            harness.append(&rotated, &late);
            harness.tick();
            harness.write("a.log", "");
            written += &(text + &late);
            if rotation % 7 == 3 {
                harness.look();
            }
        }
        harness.settle();
        assert!(harness.text("a.log") == written);
        assert_eq!(harness.heard.len(), 26);
        assert!(harness.heard.iter().all(|heard| heard.name == "a.log"));
    }
}

#[test]
fn a_generation_that_nobody_could_open_is_missed() {
    let (_guard, warnings) = super::harness::warnings();
    let mut harness = Harness::new(&["a.log"], KEYED);
    harness.write("a.log", "one\n");
    harness.turn();
    for text in ["two\n", "three\n", "four\n"] {
        harness.remove("a.log");
        harness.write("a.log", text);
    }
    harness.settle();
    assert_eq!(harness.text("a.log"), "one\nfour\n");
    let warnings = warnings.taken();
    assert_eq!(warnings.matches("2 files").count(), 1, "{warnings}");
}

#[test]
fn a_file_that_only_changes_its_name_goes_on() {
    for how in ALL {
        let mut harness = Harness::new(&["a.log*"], how);
        harness.write("a.log", "one\n");
        harness.turn();
        harness.rename("a.log", "a.log.1");
        harness.look();
        harness.append("a.log.1", "two\n");
        harness.settle();
        assert_eq!(harness.story(), [("a.log", "one\ntwo\n", None)]);
        harness.write("a.log", "three\n");
        harness.settle();
        harness.append("a.log.1", "late\n");
        harness.settle();
        assert_eq!(
            harness.story(),
            [
                ("a.log", "one\ntwo\nlate\n", None),
                ("a.log", "three\n", None)
            ]
        );
    }
}

#[test]
fn a_file_that_comes_back_is_not_read_again() {
    for how in ALL {
        let mut harness = Harness::new(&["a.log"], how);
        harness.write("a.log", "one\n");
        harness.turn();
        harness.rename("a.log", "x");
        harness.settle();
        assert_eq!(harness.story()[0].2, Some(Removed));
        harness.append("x", "two\n");
        harness.rename("x", "a.log");
        harness.settle();
        assert_eq!(harness.story()[1], ("a.log", "two\n", None));
        let (first, second) = (&harness.heard[0].opened, &harness.heard[1].opened);
        assert_eq!(first.source.origin, second.source.origin);
        assert_eq!((second.start.line, second.start.offset), (2, 4));
        assert_eq!(second.follows, Follows::Itself);
    }
}

#[test]
fn a_symbolic_link_is_followed_wherever_it_leads() {
    for how in ALL {
        let mut harness = Harness::new(&["cur"], how);
        fs::create_dir(harness.at("real")).unwrap();
        harness.write("real/0.log", "1\n");
        symlink("real/0.log", harness.at("cur")).unwrap();
        harness.turn();
        harness.rename("real/0.log", "real/0.old");
        harness.write("real/0.log", "2\n");
        harness.settle();
        harness.write("real/1.log", "3\n");
        symlink("real/1.log", harness.at("t")).unwrap();
        harness.rename("t", "cur");
        harness.settle();
        harness.append("real/1.log", "4\n");
        harness.settle();
        assert_eq!(harness.text("cur"), "1\n2\n3\n4\n");
        assert_eq!(harness.heard.len(), 3);
    }
}

#[test]
fn events_come_from_where_a_link_leads() {
    let mut harness = Harness::new(&["cur"], KEYED);
    fs::create_dir(harness.at("real")).unwrap();
    harness.write("real/0.log", "1\n");
    symlink("real/0.log", harness.at("cur")).unwrap();
    harness.pass(Duration::from_millis(100));
    harness.append("real/0.log", "2\n");
    harness.turn();
    assert_eq!(harness.text("cur"), "1\n2\n");
}

#[test]
fn one_file_with_many_names_is_read_once() {
    for how in ALL {
        let (_guard, warnings) = super::harness::warnings();
        let mut harness = Harness::new(&["d/*.log", "d/r*", "d/real.log", "d/../d/real.log"], how);
        fs::create_dir(harness.at("d")).unwrap();
        harness.write("d/real.log", "1\n");
        symlink("real.log", harness.at("d/link.log")).unwrap();
        hard_link(harness.at("d/real.log"), harness.at("d/hard.log")).unwrap();
        harness.settle();
        harness.append("d/real.log", "2\n");
        harness.settle();
        harness.remove("d/real.log");
        harness.settle();
        harness.append("d/hard.log", "3\n");
        harness.settle();
        assert_eq!(harness.story(), [("d/hard.log", "1\n2\n3\n", None)]);
        assert_eq!(warnings.taken(), "");
    }
}

#[test]
fn compressed_copies_are_passed_over() {
    for how in ALL {
        let (_guard, warnings) = super::harness::warnings();
        let mut harness = Harness::new(&["d/*"], how);
        fs::create_dir(harness.at("d")).unwrap();
        harness.write("d/a.log", "1\n");
        harness.turn();
        harness.rename("d/a.log", "d/a.log.1");
        harness.write("d/a.log", "2\n");
        harness.settle();
        fs::write(harness.at("d/a.log.1.gz"), b"").unwrap();
        harness.look();
        fs::write(harness.at("d/a.log.1.gz"), b"\x1f\x8b\x08\0\0\0\0\0").unwrap();
        fs::write(harness.at("d/odd"), b"\x28\xb5\x2f\xfd...").unwrap();
        harness.remove("d/a.log.1");
        harness.settle();
        assert_eq!(
            harness.story(),
            [("d/a.log", "1\n", Some(Rotated)), ("d/a.log", "2\n", None)]
        );
        let warnings = warnings.taken();
        assert_eq!(warnings.lines().count(), 2, "{warnings}");
        harness.write("d/odd", "3\n");
        harness.settle();
        assert_eq!(harness.story()[2], ("d/odd", "3\n", None));
    }
}

#[test]
fn an_open_file_that_turns_out_to_be_compressed_is_closed() {
    let mut harness = Harness::new(&["*"], KEYED);
    harness.write("a", "");
    harness.turn();
    fs::write(harness.at("a"), b"\x1f").unwrap();
    harness.look();
    assert_eq!(harness.story(), [("a", "", None)]);
    fs::write(harness.at("a"), b"\x1f\x8b\x08").unwrap();
    harness.look();
    assert_eq!(harness.story(), [("a", "", Some(Closed))]);
    harness.settle();
    assert_eq!(harness.heard.len(), 1);
}

#[test]
fn what_cannot_be_opened_is_said_once() {
    let mut harness = Harness::new(&["a.log", "b.log"], KEYED);
    harness.write("a.log", "one\n");
    // A link to itself can be opened by nobody, not even by root, who ignores modes.
    symlink("b.log", harness.at("b.log")).unwrap();
    fs::set_permissions(harness.at("a.log"), Permissions::from_mode(0o000)).unwrap();
    harness.settle();
    let is_root = harness.text("a.log") == "one\n";
    assert_eq!(harness.failures.len(), 2 - usize::from(is_root));
    fs::set_permissions(harness.at("a.log"), Permissions::from_mode(0o644)).unwrap();
    harness.remove("b.log");
    harness.write("b.log", "two\n");
    harness.settle();
    assert_eq!(harness.text("a.log") + &harness.text("b.log"), "one\ntwo\n");
    assert_eq!(harness.failures.len(), 2 - usize::from(is_root));
}

#[test]
fn new_files_of_a_directory_are_found() {
    let mut harness = Harness::new(&["d"], KEYED);
    harness.turn();
    fs::create_dir(harness.at("d")).unwrap();
    harness.write("d/a.jsonl", "1\n");
    harness.write("d/b.txt", "2\n");
    harness.look();
    harness.write("d/c.ndjson", "3\n");
    harness.pass(Duration::from_millis(50));
    assert_eq!(
        harness.story(),
        [("d/a.jsonl", "1\n", None), ("d/c.ndjson", "3\n", None)]
    );
}

#[test]
fn other_inputs_take_effect_at_once() {
    let mut harness = Harness::new(&["a", "b"], KEYED);
    harness.write("a", "1\n");
    harness.write("b", "2\n");
    harness.write("c", "3\n");
    harness.turn();
    harness.set_inputs(&["b", "c"]);
    harness.turn();
    assert_eq!(
        harness.story(),
        [
            ("a", "1\n", Some(Closed)),
            ("b", "2\n", None),
            ("c", "3\n", None)
        ]
    );
    assert_eq!(harness.heard[0].message(), "no longer followed");
    harness.set_inputs(&["a"]);
    harness.append("a", "4\n");
    harness.turn();
    assert_eq!(harness.story()[3], ("a", "4\n", None));
}

#[test]
fn what_is_wanted_again_is_gone_on_with_wherever_it_is_by_then() {
    for how in ALL {
        let mut harness = Harness::new(&["a.log", "b"], how);
        harness.write("a.log", "one\ntw");
        harness.write("b", "");
        harness.turn();
        harness.set_inputs(&["b"]);
        harness.turn();
        harness.append("a.log", "o\n");
        harness.tick();
        harness.rename("a.log", "a.log.2");
        harness.write("a.log", "three\n");
        harness.tick();
        harness.rename("a.log", "a.log.1");
        harness.write("a.log", "four\n");
        harness.settle();
        assert_eq!(
            harness.story(),
            [("a.log", "one\ntw", Some(Closed)), ("b", "", None)],
            "{how:?}"
        );
        let (_guard, warnings) = warnings();
        harness.set_inputs(&["a.log", "b"]);
        harness.settle();
        assert_eq!(
            harness.story()[2..],
            [
                ("a.log", "two\n", Some(Rotated)),
                ("a.log", "three\n", Some(Rotated)),
                ("a.log", "four\n", None)
            ],
            "{how:?}"
        );
        let [_, _, itself, rotated @ ..] = &*harness.follows() else {
            panic!("five were opened");
        };
        assert_eq!(*itself, Follows::Itself);
        assert_eq!(rotated, [Follows::Rotated; 2]);
        let start = harness.heard[2].opened.start;
        assert_eq!((start.line, start.offset), (2, 4));
        assert_eq!(warnings.taken(), "");
    }
}

#[test]
fn what_is_wanted_again_is_gone_on_with_in_its_copy_or_said_to_be_lost() {
    let mut harness = Harness::new(&["a.log", "b.log"], KEYED);
    harness.write("a.log", "one\n");
    harness.write("b.log", "1\n");
    harness.turn();
    harness.set_inputs(&[]);
    harness.turn();
    harness.append("a.log", "two\n");
    fs::copy(harness.at("a.log"), harness.at("a.log.1")).unwrap();
    harness.write("a.log", "x\n");
    harness.remove("b.log");
    let (_guard, warnings) = warnings();
    harness.set_inputs(&["a.log", "b.log"]);
    harness.settle();
    assert_eq!(harness.text("a.log"), "one\ntwo\nx\n");
    let warnings = warnings.taken();
    assert!(
        warnings.contains("b.log: the file that was read up to byte 2 is gone"),
        "{warnings}"
    );
}

#[test]
fn lines_are_counted_where_reading_begins_at_the_end() {
    let how = How {
        from_end: true,
        ..KEYED
    };
    let mut harness = Harness::new(&["a", "b", "c"], how);
    let old = "line\n".repeat(500_000);
    harness.write("a", &format!("{old}unfinish"));
    harness.write("b", "unfinish");
    harness.settle();
    harness.append("a", "ed\n");
    harness.write("c", "new\n");
    harness.settle();
    assert_eq!(
        harness.story(),
        [
            ("b", "unfinish", None),
            ("a", "unfinished\n", None),
            ("c", "new\n", None)
        ]
    );
    let start = harness.heard[1].opened.start;
    assert_eq!((start.line, start.offset), (500_001, old.len() as u64));
    let mut again = harness.restart(&["a"], how);
    again.append("a", "more\n");
    again.settle();
    assert_eq!(again.story(), [("a", "more\n", None)]);
    assert_eq!(again.heard[0].opened.start.line, 500_002);
}

#[test]
fn lost_events_make_everything_be_looked_at() {
    let mut harness = Harness::new(&["a"], KEYED);
    harness.write("a", "1\n");
    harness.turn();
    let limit = fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap();
    let limit: usize = limit.trim().parse().unwrap();
    for _ in 0..=limit / 2 {
        harness.write("x", "");
        harness.remove("x");
    }
    harness.append("a", "2\n");
    harness.pass(Duration::from_millis(30));
    assert_eq!(harness.text("a"), "1\n2\n");
}

#[test]
fn a_copy_that_is_matched_too_is_not_read_again() {
    for how in ALL {
        let mut harness = Harness::new(&["a.log*"], how);
        harness.write("a.log", "one\n");
        harness.turn();
        for (rotation, text) in ["two\n", "three\n", "four\n"].into_iter().enumerate() {
            harness.append("a.log", text);
            let copy = harness.at(&format!("a.log.{rotation}"));
            if rotation == 1 {
                File::create(&copy).unwrap();
                harness.look();
            }
            fs::copy(harness.at("a.log"), &copy).unwrap();
            if rotation != 2 {
                harness.look();
            }
            harness.append("a.log", "lost\n");
            harness.write("a.log", "");
            harness.look();
            harness.append("a.log", &format!("{rotation}\n"));
            harness.settle();
        }
        let text = harness.text("a.log");
        assert_eq!(text, "one\ntwo\n0\nthree\n1\nfour\n2\n");
        let mut heard = harness.heard.iter();
        assert!(heard.all(|heard| heard.name == "a.log" || heard.bytes.is_empty()));
        let mut again = harness.restart(&["a.log*"], how);
        again.settle();
        assert!(again.heard.iter().all(|heard| heard.bytes.is_empty()));
    }
}

#[test]
fn a_file_that_only_begins_like_another_is_read() {
    for how in ALL {
        let mut harness = Harness::new(&["a*.log"], how);
        harness.write("a.log", "header\none\n");
        harness.turn();
        harness.write("a-1.log", "header\n");
        harness.settle();
        harness.append("a-1.log", "two\n");
        harness.write("a-2.log", "");
        harness.settle();
        assert_eq!(harness.text("a-1.log"), "header\ntwo\n");
        harness.append("a-2.log", "three\n");
        harness.settle();
        assert_eq!(harness.text("a-2.log"), "three\n");
    }
}

#[test]
fn with_keys_older_files_are_read_first() {
    let mut harness = Harness::new(&["*"], KEYED);
    for (name, text) in [("a.log.2", "1\n"), ("a.log.1", "2\n"), ("a.log", "3\n")] {
        harness.write(name, text);
        harness.tick();
    }
    harness.write("b.log", "4\n");
    harness.turn();
    let mut order: Vec<_> = harness.heard.iter().map(Heard::text).collect();
    order.retain(|text| *text != "4\n");
    assert_eq!(order, ["1\n", "2\n", "3\n"]);
    assert_eq!(harness.heard.len(), 4);
}

#[test]
fn descriptors_are_left_for_others() {
    let mut harness = Harness::new(&["*"], KEYED);
    harness.following.max_files = 2;
    for name in ["a", "b", "c", "d"] {
        harness.write(name, &format!("{name}\n"));
    }
    harness.settle();
    assert_eq!(harness.heard.len(), 2);
    assert_eq!(harness.failures.len(), 1);
    harness.remove("a");
    harness.remove("b");
    harness.settle();
    assert_eq!(harness.text("c") + &harness.text("d"), "c\nd\n");
    assert_eq!(harness.failures.len(), 1);
}
