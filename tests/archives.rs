//! Archives from outside: they are what they hold, and what is wrong with one is said.

#![cfg(feature = "cli")]

#[path = "support/program.rs"]
mod program;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use flate2::{Compression, GzBuilder};
use serde_json::Value;
use tempfile::TempDir;

use program::{Ran, Running, command, run, run_command};

fn gzip(text: impl AsRef<[u8]>) -> Vec<u8> {
    let mut encoder = GzBuilder::new()
        .filename("trace.jsonl")
        .comment("kept for a year")
        .write(Vec::new(), Compression::default());
    encoder.write_all(text.as_ref()).expect("written");
    encoder.finish().expect("written")
}

fn zstd(text: impl AsRef<[u8]>) -> Vec<u8> {
    let mut encoder = zstd::Encoder::new(Vec::new(), 3).expect("a level");
    encoder.include_checksum(true).expect("possible");
    encoder.write_all(text.as_ref()).expect("written");
    encoder.finish().expect("written")
}

/// How an archive is made.
type Pack = fn(&[u8]) -> Vec<u8>;

const PACKERS: [(&str, &str, Pack); 2] = [
    ("gzip", "member", |text| gzip(text)),
    ("zstd", "frame", |text| zstd(text)),
];

fn fleet() -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/fleet.jsonl");
    fs::read(path).expect("the fixture is there")
}

/// Records without a kind, a finding each.
fn faulty(records: usize) -> String {
    (1..=records)
        .map(|seq| format!("{{\"seq\":{seq}}}\n"))
        .collect()
}

struct Files(TempDir);

impl Files {
    fn new() -> Self {
        Files(tempfile::tempdir().expect("temporary directory"))
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.path().join(name);
        fs::create_dir_all(path.parent().expect("a directory")).expect("created");
        fs::write(&path, bytes).expect("written");
        path
    }

    /// Runs with a file of this content.
    fn run(&self, bytes: &[u8], arguments: &[&str]) -> Ran {
        self.write("t", bytes);
        let mut command = command(["t"]);
        command.args(arguments).current_dir(self.0.path());
        run_command(command, "")
    }
}

/// The events without what differs from run to run and from file to file.
fn comparable(ran: &Ran) -> Vec<Value> {
    let mut events = ran.events();
    for event in &mut events {
        for member in ["time", "seconds", "id"] {
            event.as_object_mut().expect("an object").remove(member);
        }
    }
    events
}

/// Why the one source failed.
#[track_caller]
fn failure(ran: &Ran) -> String {
    let mut failed = ran.events_of("source");
    failed.retain(|event| event["state"] == "failed");
    assert_eq!(failed.len(), 1, "{ran:?}");
    failed[0]["message"].as_str().expect("a message").to_owned()
}

#[test]
fn an_archive_gives_the_findings_of_what_it_holds() {
    let files = Files::new();
    let text = fleet();
    let keyed = ["--trace-key=/trace", "--trace-events"];
    let plain = files.run(&text, &keyed);
    plain.assert_status(1);
    assert_eq!(plain.summary()["bytes"], text.len());
    let piped = run(["-"].iter().chain(&keyed), &text);
    for (_, _, pack) in PACKERS {
        // Cut within a line too.
        for cut in [0, 1, 738, text.len() / 2, text.len()] {
            let archive = [pack(&text[..cut]), pack(&text[cut..])].concat();
            let ran = files.run(&archive, &keyed);
            assert_eq!(comparable(ran.assert_status(1)), comparable(&plain));
            let ran = run(["-"].iter().chain(&keyed), &archive);
            assert_eq!(comparable(ran.assert_status(1)), comparable(&piped));
        }
    }
}

#[test]
fn ids_are_those_of_the_file_and_differ_from_line_to_line() {
    let files = Files::new();
    let ids = |ran: &Ran| -> Vec<_> { ran.findings().iter().map(|f| f["id"].clone()).collect() };
    let path = files.write("t.gz", gzip(faulty(3)));
    let first = ids(&run([&path], ""));
    let renamed = path.with_file_name("old");
    fs::rename(&path, &renamed).expect("renamed");
    assert_eq!(ids(&run([&renamed], "")), first);
    assert!(first.len() == 3 && first[0] != first[1] && first[1] != first[2]);
}

#[test]
fn an_archive_of_nothing_is_sound() {
    let files = Files::new();
    for (_, _, pack) in PACKERS {
        let ran = files.run(&pack(b""), &[]);
        assert_eq!(ran.assert_status(0).summary()["records"], 0);
    }
}

#[test]
fn archives_are_known_by_their_content() {
    let files = Files::new();
    let misnamed = files.write("t.gz", faulty(1));
    assert_eq!(run([misnamed], "").assert_status(1).codes().len(), 1);
    let misnamed = files.write("t.jsonl", zstd(faulty(2)));
    assert_eq!(run([misnamed], "").assert_status(1).codes().len(), 2);
}

#[test]
fn a_directory_has_archives_of_traces_and_a_glob_what_it_matches() {
    let files = Files::new();
    for name in ["b.jsonl.gz", "d.ndjson.gz", "notes.gz", "sub/e.jsonl.gz"] {
        files.write(&format!("dir/{name}"), gzip(faulty(1)));
    }
    files.write("dir/a.ndjson.zst", zstd(faulty(1)));
    files.write("dir/c.jsonl", faulty(1));
    let sources = |argument: &str| -> Vec<_> {
        let mut command = command([argument]);
        command.current_dir(files.0.path());
        let findings = run_command(command, "").assert_status(1).findings();
        let name = |finding: &Value| finding["source"].as_str().expect("a name").to_owned();
        findings.iter().map(name).collect()
    };
    let expected = ["a.ndjson.zst", "b.jsonl.gz", "c.jsonl", "d.ndjson.gz"];
    assert_eq!(sources("dir"), expected.map(|name| format!("dir/{name}")));
    assert_eq!(sources("dir/n*"), ["dir/notes.gz"]);
}

#[test]
fn an_archive_that_is_cut_off_gives_the_findings_up_to_there() {
    let files = Files::new();
    let text = faulty(40);
    for (format, part, pack) in PACKERS {
        let (first, second) = (pack(&text.as_bytes()[..205]), pack(&text.as_bytes()[205..]));
        let archive = [&first[..], &second].concat();
        let whole = files.run(&archive, &[]).assert_status(1).findings().len();
        assert_eq!(whole, 40);
        let lines_of_first = text[..205].matches('\n').count();
        for (cut, number, least, most) in [
            (4, 1, 0, 0),
            (12, 1, 0, lines_of_first),
            (first.len() / 2, 1, 0, lines_of_first),
            (first.len() - 1, 1, lines_of_first, lines_of_first),
            (first.len() + 3, 2, lines_of_first, lines_of_first),
            (first.len() + second.len() / 2, 2, lines_of_first, 40),
            (archive.len() - 1, 2, 40, 40),
        ] {
            let ran = files.run(&archive[..cut], &[]);
            let message = failure(ran.assert_status(2));
            let expected = format!("{format} data ends in the middle of {part} {number}, at byte ");
            assert!(message.contains(&expected), "{cut}: {message}");
            assert!(ran.stderr.contains(&expected), "{}", ran.stderr);
            // The line that was cut off is no record.
            let found = ran.findings().len();
            assert!((least..=most).contains(&found), "{cut}: {found}");
        }
        // Whole parts are a whole archive, but the line that goes on in the next one is cut off.
        let ran = files.run(&first, &[]);
        assert_eq!(ran.assert_status(1).findings().len(), lines_of_first + 1);
    }
}

#[test]
fn a_damaged_archive_is_told_and_the_others_are_verified() {
    let files = Files::new();
    let sound = files.write("z.jsonl", faulty(1));
    for (format, part, pack) in PACKERS {
        let first = pack(faulty(5).as_bytes());
        let mut archive = [&first[..], &pack(faulty(2000).as_bytes())].concat();
        let length = archive.len();
        archive[length - 6] ^= 0x10;
        let damaged = files.write("t", &archive);
        let ran = run([&damaged, &sound], "");
        let message = failure(ran.assert_status(2));
        let expected = format!("{format} data cannot be decompressed in {part} 2, near byte ");
        assert!(message.contains(&expected), "{message}");
        let findings = ran.findings();
        let of = |path: &PathBuf| {
            let name = path.to_str().expect("UTF-8");
            findings.iter().filter(|f| f["source"] == name).count()
        };
        assert!(of(&damaged) >= 5, "{}", of(&damaged));
        assert_eq!(of(&sound), 1);
    }
}

#[test]
fn what_follows_an_archive_is_an_error() {
    let files = Files::new();
    for (format, part, pack) in PACKERS {
        let archive = pack(faulty(2).as_bytes());
        let ran = files.run(&[&archive[..], faulty(3).as_bytes()].concat(), &[]);
        let message = failure(ran.assert_status(2));
        let expected = format!(
            "something that is no {format} {part} follows {part} 1, at byte {}",
            archive.len()
        );
        assert!(message.contains(&expected), "{message}");
        assert_eq!(ran.findings().len(), 2);
    }
}

/// Nobody waits for the end of an archive to hear of its beginning.
#[test]
fn an_archive_may_come_byte_by_byte() {
    let text = faulty(300);
    for (_, _, pack) in PACKERS {
        let (first, second) = text.as_bytes().split_at(2000);
        let (first, second) = (pack(first), pack(second));
        let mut running = Running::start(command(["-"]));
        first.iter().for_each(|byte| running.write([*byte]));
        running.line_with("\"line\":100,");
        second.iter().for_each(|byte| running.write([*byte]));
        running.close();
        let ran = running.end();
        let lines = ran.assert_status(1).stdout.matches("\"finding\"").count();
        assert!(
            ran.stdout.contains("\"line\":300,") && lines >= 190,
            "{lines}"
        );
    }
}

#[test]
fn a_followed_archive_is_refused() {
    for (format, _, pack) in PACKERS {
        let ran = run(["--follow"], pack(faulty(3).as_bytes()));
        let message = failure(ran.assert_status(2));
        let expected = format!("this is {format} data, which --follow does not decompress");
        assert!(message.contains(&expected), "{message}");
        assert!(ran.findings().is_empty());
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_gigabyte_of_nothing_is_one_malformed_line() {
    const PART_BYTES: usize = 32 << 20;
    for (_, _, pack) in PACKERS {
        let archive = pack(&vec![0; PART_BYTES]).repeat(32);
        assert!(archive.len() < 2 << 20, "{}", archive.len());
        let mut running = Running::start(command(["-"]));
        running.write(&archive);
        // So that everything before it is verified when it is found.
        running.write(pack(b"\nmark\n"));
        let line = running.line_with("\"finding\"");
        assert!(line.contains("E_STRUCTURE"), "{line}");
        let line = running.line_with("\"line\":2,");
        assert!(line.contains("\"offset\":1073741825,"), "{line}");
        let peak = running.peak_kib().expect("Linux");
        assert!(peak < 64 * 1024, "{peak} KiB");
        running.close();
        let summary = running.end().assert_status(1).summary();
        assert_eq!(summary["errors"].to_string(), r#"{"E_STRUCTURE":2}"#);
    }
}
