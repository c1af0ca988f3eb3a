//! A simple model of what must be reported, held against the daemon through random writes, partial
//! writes, rotations, truncations, replacements, deletions, stops, kills and restarts.

use std::collections::BTreeMap;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use crate::kill::Random;
use crate::place::{Daemon, Place, probe, wait_for};

/// Runs of the model, each from a seed of its own; `TRACECHECK_MODEL_SEED` says the first.
const SEEDS: u64 = 12;

/// Actions in a run.
const STEPS: u64 = 200;

/// What is known of a line that was written.
#[derive(Clone, Copy, Debug)]
struct Written {
    /// Whether it stays where it can be found until it is reported.
    must_come: bool,
    /// How many kills there had been when it was written.
    kills_before: usize,
    /// The action that wrote it.
    step: usize,
}

struct Model<'p> {
    place: &'p Place,
    daemon: Option<Daemon<'p>>,
    random: Random,
    lines: BTreeMap<String, Written>,
    /// The lines of the file that is being written, which a truncation could destroy.
    in_file: Vec<String>,
    /// The second half of a line whose first half stands in the file.
    unfinished: Option<String>,
    kills: usize,
    rotations: usize,
    log: Vec<String>,
}

impl<'p> Model<'p> {
    fn new(place: &'p Place, seed: u64) -> Self {
        place.write("a.log", "");
        // What is moved away before it was ever seen is nobody's business.
        let daemon = place.start(&["a.log"]);
        wait_for("a checkpoint", || place.path("state/checkpoint").exists());
        Model {
            place,
            daemon: Some(daemon),
            random: Random(seed),
            lines: BTreeMap::new(),
            in_file: Vec::new(),
            unfinished: None,
            kills: 0,
            rotations: 0,
            log: Vec::new(),
        }
    }

    fn line(&mut self) -> String {
        let name = format!("m{}m", self.lines.len());
        let written = Written {
            must_come: true,
            kills_before: self.kills,
            step: self.log.len(),
        };
        self.lines.insert(name.clone(), written);
        self.in_file.push(name.clone());
        probe(name)
    }

    fn append(&mut self) {
        let mut text = self.unfinished.take().unwrap_or_default();
        for _ in 0..=self.random.below(5) {
            text += &self.line();
        }
        self.place.append("a.log", text);
    }

    fn append_part(&mut self) {
        if let Some(rest) = self.unfinished.take() {
            return self.place.append("a.log", rest);
        }
        let line = self.line();
        let (first, rest) = line.split_at(1 + self.random.below(line.len() as u64 - 2) as usize);
        self.place.append("a.log", first);
        self.unfinished = Some(rest.to_owned());
    }

    /// Lets the clock of the file system go on, which tells files apart by when they were created.
    fn wait_for_another_birth(&self) {
        let born = |name: &str| fs::metadata(self.place.path(name)).and_then(|file| file.created());
        wait_for("the file system's clock", || {
            let _ = fs::remove_file(self.place.path("tick"));
            self.place.write("tick", "");
            born("tick").expect("told") > born("a.log").expect("told")
        });
    }

    /// The file gets another name, or another file its name.
    fn rotate(&mut self) {
        self.finish_line();
        self.wait_for_another_birth();
        self.rotations += 1;
        self.place
            .rename("a.log", &format!("a.log.{:03}", self.rotations));
        self.in_file.clear();
        match self.random.below(2) {
            0 => self.place.write("a.log", ""),
            _ => {
                let line = self.line();
                self.place.write("new", line);
                self.place.rename("new", "a.log");
            }
        }
    }

    fn truncate(&mut self) {
        self.let_it_read();
        self.in_file.clear();
        let line = self.line();
        self.place.write("a.log", line);
        // Two truncations at once leave the first content to nobody.
        self.let_it_read();
    }

    fn delete(&mut self) {
        self.let_it_read();
        self.in_file.clear();
        self.wait_for_another_birth();
        self.place.remove("a.log");
        let line = self.line();
        self.place.append("a.log", line);
    }

    /// What stands in the file is about to be destroyed: it is read first, or nobody can ask for it.
    fn let_it_read(&mut self) {
        self.finish_line();
        match (&self.daemon, self.in_file.last()) {
            (Some(_), Some(last)) => self.place.wait_hit(last),
            (Some(_), None) => {}
            (None, _) => {
                for name in &self.in_file {
                    self.lines.get_mut(name).expect("written").must_come = false;
                }
            }
        }
    }

    fn finish_line(&mut self) {
        if let Some(rest) = self.unfinished.take() {
            self.place.append("a.log", rest);
        }
    }

    fn start(&mut self) {
        if self.daemon.is_none() {
            self.daemon = Some(self.place.start(&["a.log"]));
        }
    }

    fn stop(&mut self) {
        if let Some(daemon) = self.daemon.take() {
            daemon.stop();
        }
    }

    fn kill(&mut self) {
        if let Some(daemon) = self.daemon.take() {
            daemon.kill();
            self.kills += 1;
        }
    }

    fn step(&mut self) {
        let (name, action): (_, fn(&mut Self)) = match self.random.below(24) {
            0..=9 => ("append", Self::append),
            10..=13 => ("append part", Self::append_part),
            14..=15 => ("rotate", Self::rotate),
            16 => ("truncate", Self::truncate),
            17 => ("delete", Self::delete),
            18 => ("stop", Self::stop),
            19 => ("kill", Self::kill),
            _ => ("start", Self::start),
        };
        self.log.push(name.to_owned());
        action(self);
    }

    /// Which lines did not come, what wrote them and the actions around, and where they are.
    fn show_missing(&self) {
        let hits = self.place.hits();
        let missing =
            |(name, written): &(&String, &Written)| written.must_come && !hits.contains_key(*name);
        for (name, written) in self.lines.iter().filter(missing) {
            let (step, until) = (written.step, (written.step + 8).min(self.log.len()));
            let around = self.log[step.saturating_sub(8)..until].join(", ");
            println!("{name} was written by action {step} of: ... {around} ...");
            for entry in fs::read_dir(self.place.path("."))
                .expect("listed")
                .flatten()
            {
                let text = fs::read_to_string(entry.path()).unwrap_or_default();
                if text.contains(&format!("\"{name}\"")) {
                    println!("  it is in {:?}", entry.file_name());
                }
            }
        }
    }

    fn check(mut self) {
        self.finish_line();
        self.start();
        let last = self.line();
        self.place.append("a.log", last);
        let place = self.place;
        let due = |hits: &BTreeMap<String, usize>, lines: &BTreeMap<String, Written>| {
            let must = lines.iter().filter(|(_, written)| written.must_come);
            must.filter(|(name, _)| !hits.contains_key(*name)).count()
        };
        let lines = &self.lines;
        let come = || wait_for("all that must come", || due(&place.hits(), lines) == 0);
        if let Err(panic) = catch_unwind(AssertUnwindSafe(come)) {
            self.show_missing();
            resume_unwind(panic);
        }
        self.stop();
        let mut ids = BTreeMap::<String, String>::new();
        for finding in place.findings() {
            let trace = finding["trace"].as_str().expect("a name").to_owned();
            let id = finding["id"].to_string();
            let first = ids.entry(trace.clone()).or_insert_with(|| id.clone());
            assert_eq!(*first, id, "{trace} has two ids");
        }
        for (name, hits) in place.hits() {
            let written = self
                .lines
                .get(&name)
                .unwrap_or_else(|| panic!("{name} was never written"));
            let most = 1 + self.kills - written.kills_before;
            assert!(hits <= most, "{name}: {hits} times, {most} at most");
        }
    }
}

#[test]
fn a_model_agrees() {
    let first = std::env::var("TRACECHECK_MODEL_SEED");
    let first: u64 = first.map_or(1, |text| text.parse().expect("a number"));
    for seed in first..first + SEEDS {
        let place = Place::new();
        let mut model = Model::new(&place, seed * 0x9e37_79b9);
        println!("seed {seed}");
        for _ in 0..STEPS {
            model.step();
        }
        let log = model.log.join(", ");
        let checked = catch_unwind(AssertUnwindSafe(|| model.check()));
        if let Err(panic) = checked {
            let files: Vec<_> = fs::read_dir(place.path("."))
                .unwrap()
                .flatten()
                .map(|entry| entry.file_name())
                .collect();
            println!("seed {seed}: {log}\n{files:?}\n{}", place.diagnostics());
            resume_unwind(panic);
        }
    }
}
