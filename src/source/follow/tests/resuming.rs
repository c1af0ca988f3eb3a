//! Going on where another process has stopped.

use std::fs;

use tracecheck::event::SourceState::{Removed, Rotated, Truncated};

use super::harness::{Harness, How, KEYED, POLLED, UNKEYED, warnings};
use crate::source::message::Follows;

const ALL: [How; 3] = [KEYED, UNKEYED, POLLED];

/// A process has read `text` of `a.log`, then `change` happened, then another begins.
fn resumed(how: How, inputs: &[&str], text: &str, change: impl FnOnce(&Harness)) -> Harness {
    let mut first = Harness::new(inputs, how);
    first.write("a.log", text);
    first.turn();
    assert_eq!(first.text("a.log"), text);
    change(&first);
    let mut second = first.restart(inputs, how);
    second.settle();
    second
}

#[test]
fn a_file_is_gone_on_with_behind_its_last_complete_line() {
    for how in ALL {
        let (_guard, warnings) = warnings();
        let harness = resumed(how, &["a.log"], "one\nha", |harness| {
            harness.append("a.log", "lf\ntwo\n");
        });
        assert_eq!(harness.story(), [("a.log", "half\ntwo\n", None)]);
        let opened = &harness.heard[0].opened;
        assert_eq!((opened.start.line, opened.start.offset), (2, 4));
        assert_eq!(opened.follows, Follows::Itself);
        assert_eq!(warnings.taken(), "");
    }
}

#[test]
fn other_content_is_read_from_its_beginning() {
    let replaced = |harness: &Harness| {
        harness.remove("a.log");
        harness.write("a.log", "other\nand longer\n");
    };
    let overwritten = |harness: &Harness| harness.write("a.log", "other\nand longer\n");
    let shorter = |harness: &Harness| harness.write("a.log", "other\n");
    for how in ALL {
        for (change, follows) in [
            (&replaced as &dyn Fn(&Harness), Follows::Rotated),
            (&overwritten, Follows::Truncated),
            (&shorter, Follows::Truncated),
        ] {
            let (_guard, warnings) = warnings();
            let harness = resumed(how, &["a.log"], "one\ntwo\n", change);
            assert_eq!(harness.heard.len(), 1);
            assert!(harness.heard[0].text().starts_with("other\n"));
            assert_eq!(harness.follows(), [follows]);
            let warnings = warnings.taken();
            assert_eq!(warnings.lines().count(), 1, "{warnings}");
        }
    }
}

#[test]
fn the_rest_of_a_rotated_file_comes_first() {
    for how in ALL {
        for inputs in [["a.log"], ["a.log*"]] {
            let harness = resumed(how, &inputs, "one\n", |harness| {
                harness.append("a.log", "two\n");
                harness.rename("a.log", "a.log.1");
                harness.write("a.log", "three\n");
            });
            let end = match inputs {
                ["a.log"] => Some(Rotated),
                _ => None,
            };
            assert_eq!(
                harness.story(),
                [("a.log", "two\n", end), ("a.log", "three\n", None)]
            );
            assert_eq!(harness.follows(), [Follows::Itself, Follows::Rotated]);
        }
    }
}

#[test]
fn all_generations_in_between_are_read_in_their_order() {
    for how in ALL {
        for inputs in [["a.log"], ["a.log*"]] {
            let harness = resumed(how, &inputs, "1\n", |harness| {
                harness.append("a.log", "2\n");
                harness.rename("a.log", "a.log.3");
                harness.tick();
                harness.write("a.log", "3\n");
                harness.rename("a.log", "a.log.2");
                harness.tick();
                harness.write("a.log", "4\n");
                harness.rename("a.log", "a.log.1");
                harness.write("a.log", "5\n");
                fs::write(harness.at("a.log.0.gz"), b"\x1f\x8b\x08\0").unwrap();
            });
            assert_eq!(harness.text("a.log"), "2\n3\n4\n5\n");
            assert_eq!(harness.heard.len(), 4);
        }
    }
}

#[test]
fn a_rotated_file_without_a_successor_is_read_to_its_end() {
    for how in ALL {
        let harness = resumed(how, &["a.log"], "one\n", |harness| {
            harness.append("a.log", "two\n");
            harness.rename("a.log", "a.log.1");
        });
        assert_eq!(harness.story(), [("a.log", "two\n", Some(Removed))]);
    }
}

#[test]
fn the_rest_is_read_from_a_copy() {
    for how in ALL {
        for is_live_kept in [true, false] {
            let (_guard, warnings) = warnings();
            let harness = resumed(how, &["a.log*"], "one\n", |harness| {
                harness.append("a.log", "two\n");
                fs::copy(harness.at("a.log"), harness.at("a.log.1")).unwrap();
                if !is_live_kept {
                    harness.remove("a.log");
                }
                harness.write("a.log", "three\n");
            });
            let mut story = harness.story();
            story.retain(|(name, ..)| *name == "a.log");
            assert_eq!(
                story,
                [
                    ("a.log", "two\n", Some(Truncated)),
                    ("a.log", "three\n", None)
                ]
            );
            assert_eq!(harness.text("a.log.1"), "");
            assert_eq!(warnings.taken(), "");
        }
    }
}

#[test]
fn generations_keep_their_identity() {
    let mut first = Harness::new(&["a.log"], KEYED);
    first.write("a.log", "one\n");
    first.turn();
    first.write("a.log", "other\n");
    first.look();
    let origin = first.heard[1].opened.source.origin;
    let mut second = first.restart(&["a.log"], KEYED);
    second.append("a.log", "more\n");
    second.settle();
    assert_eq!(second.story(), [("a.log", "more\n", None)]);
    assert_eq!(second.heard[0].opened.source.origin, origin);
}

#[test]
fn what_is_no_longer_an_input_is_left_alone() {
    let mut first = Harness::new(&["a.log", "b.log"], KEYED);
    first.write("a.log", "1\n");
    first.write("b.log", "2\n");
    first.turn();
    first.append("a.log", "3\n");
    first.append("b.log", "4\n");
    let (_guard, warnings) = warnings();
    let mut second = first.restart(&["b.log"], KEYED);
    second.settle();
    assert_eq!(second.story(), [("b.log", "4\n", None)]);
    assert_eq!(warnings.taken(), "");
}
