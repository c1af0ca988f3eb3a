//! SIGKILL at any moment: together the runs report what one uninterrupted run reports.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::OpenOptions;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::place::{Place, note, probe, wait_for};

/// How often it is killed.
const KILLS: u32 = 200;

/// Lines before the file is rotated.
const LINES_A_FILE: u32 = 4_000;

/// A source of numbers that are the same every time.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// Appends lines of twenty traces until it is told to stop, in pieces that end anywhere. What is
/// wrong with them shows only to one that remembers the traces.
fn load(place: &Place, stop: &AtomicBool) {
    let mut random = Random(0x7261_6365);
    let mut seqs = [0_u64; 20];
    let (mut lines, mut file) = (0, None);
    while !stop.load(Ordering::Relaxed) {
        let out = file.get_or_insert_with(|| {
            let options = OpenOptions::new().append(true).create(true).clone();
            options.open(place.path("a.log")).expect("opened")
        });
        let mut text = String::new();
        for _ in 0..20 {
            let trace = random.below(20) as usize;
            // Now and then the last one once more.
            seqs[trace] += u64::from(random.below(10) > 0 || seqs[trace] == 0);
            text += &note(format!("t{trace}"), seqs[trace]);
            if random.below(50) == 0 {
                text += "broken\n";
            }
            lines += 1;
        }
        let (first, second) = text.split_at(random.below(text.len() as u64) as usize);
        out.write_all(first.as_bytes()).expect("written");
        out.write_all(second.as_bytes()).expect("written");
        thread::sleep(Duration::from_micros(500));
        if lines % LINES_A_FILE == 0 {
            place.rename("a.log", &format!("a.log.{:03}", lines / LINES_A_FILE));
            file = None;
        }
    }
}

#[test]
fn kills_at_any_moment_change_nothing_of_what_is_reported() {
    let place = Place::new();
    place.write("a.log", "");
    let stop = AtomicBool::new(false);
    let arguments = [
        "--follow",
        "--format=json",
        "--trace-key=/trace",
        "--state-dir=state",
        "a.log",
    ];
    // What is moved away before it was ever seen is nobody's business.
    let daemon = place.start_command(place.command(arguments));
    wait_for("a checkpoint", || place.path("state/checkpoint").exists());
    daemon.kill();
    thread::scope(|scope| {
        scope.spawn(|| load(&place, &stop));
        let mut random = Random(0x6b69_6c6c);
        for _ in 0..KILLS {
            let daemon = place.spawn(place.command(arguments));
            thread::sleep(Duration::from_millis(random.below(60)));
            daemon.kill();
        }
        stop.store(true, Ordering::Relaxed);
    });
    place.append("a.log", "\n".to_owned() + &probe("END"));
    let daemon = place.start_command(place.command(arguments));
    place.wait_hit("END");
    daemon.stop();

    let mut files: Vec<_> = std::fs::read_dir(place.path("."))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    files.retain(|name| name.starts_with("a.log."));
    files.sort();
    files.push("a.log".to_owned());
    let once = ["--format=json", "--trace-key=/trace"].map(str::to_owned);
    let whole = place
        .command(once.into_iter().chain(files))
        .output()
        .unwrap();
    let whole: Vec<Value> = String::from_utf8(whole.stdout)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();

    // What a finding is, its time and the name of its file left out.
    let told = |events: &[Value]| -> BTreeMap<String, BTreeSet<String>> {
        let mut told = BTreeMap::<String, BTreeSet<String>>::new();
        for event in events.iter().filter(|event| event["event"] == "finding") {
            let what =
                ["code", "message", "line", "offset", "seq"].map(|name| event[name].to_string());
            told.entry(event["id"].to_string())
                .or_default()
                .insert(what.join(" "));
        }
        told
    };
    let (expected, found) = (told(&whole), told(&place.events()));
    assert!(expected.len() > 100, "{} findings", expected.len());
    for (id, what) in &expected {
        assert_eq!(found.get(id), Some(what), "lost, or told otherwise");
    }
    for (id, what) in &found {
        assert!(expected.contains_key(id), "{what:?} was never there");
    }
}
