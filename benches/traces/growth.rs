//! Short records in numbers, to see how the cost of one grows with what came before.

use std::fmt::Write as _;

use super::many::placement;
use super::random::Random;
use super::task::{Candidate, Task, agent_name};
use super::{Records, record};

/// How far back a resumed placement refers, in placements with an explanation. More than the
/// verifier keeps of a trace would be reported.
const REFERENCES: usize = 100_000;

/// One trace of any length, a third of it placements with an explanation, another third resumed
/// ones that refer to any of those.
#[derive(Debug)]
pub(crate) struct Long {
    random: Random,
    task: Task,
    candidates: Vec<Candidate>,
    seq: u64,
}

impl Long {
    pub(crate) fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let task = Task::new(&mut random, 1, 1, &agent_name(0));
        Long {
            random,
            candidates: vec![chosen(&task)],
            task,
            seq: 0,
        }
    }
}

impl Records for Long {
    fn record(&mut self, out: &mut String) -> bool {
        self.seq += 1;
        let Long {
            random, task, seq, ..
        } = self;
        match (*seq, *seq % 3) {
            (1, _) => record(None, 1, "task.submitted", out, |out| {
                task.submitted(random, out)
            }),
            (2, _) => record(None, 2, "task.admitted", out, |out| {
                task.admitted(random, out)
            }),
            (seq, 0) => placement(None, seq, false, task, random, out, |random, out| {
                task.explanation(random, &self.candidates, out);
            }),
            (seq, 1) => placement(None, seq, true, task, random, out, |random, out| {
                let back = random.below((seq as usize / 3).min(REFERENCES)) as u64;
                refer(seq - 1 - 3 * back, out);
            }),
            (seq, _) => note(None, seq, random, out),
        }
        false
    }
}

/// Traces of six records, as many of them open as asked for: each that ends, with a
/// `task.completed`, makes room for another.
#[derive(Debug)]
pub(crate) struct Open {
    random: Random,
    tasks: Vec<Task>,
    candidates: Vec<Candidate>,
    /// Number and latest `seq` of each open trace.
    live: Vec<(u32, u32)>,
    begun: u32,
}

impl Open {
    /// The kind that ends a trace.
    pub(crate) const END_KIND: &str = "task.completed";

    pub(crate) fn new(seed: u64, open: usize) -> Self {
        let mut random = Random::new(seed);
        let tasks = tasks(&mut random);
        Open {
            random,
            candidates: vec![chosen(&tasks[0])],
            tasks,
            live: (0..open as u32).map(|number| (number, 0)).collect(),
            begun: open as u32,
        }
    }
}

impl Records for Open {
    fn record(&mut self, out: &mut String) -> bool {
        let Open { random, tasks, .. } = self;
        let index = random.below(self.live.len());
        let (number, seq) = &mut self.live[index];
        *seq += 1;
        let name = format!("open-{number:010}");
        let task = &tasks[*number as usize % tasks.len()];
        if *seq == 6 {
            record(Some(&name), 6, Self::END_KIND, out, |out| {
                out.push_str("{}")
            });
            self.live[index] = (self.begun, 0);
            self.begun += 1;
        } else {
            step(&name, u64::from(*seq), task, &self.candidates, random, out);
        }
        false
    }
}

/// Traces that stay open, one after the other: a requirement set and three placements each.
#[derive(Debug)]
pub(crate) struct State {
    random: Random,
    tasks: Vec<Task>,
    candidates: Vec<Candidate>,
    number: u64,
    seq: u64,
}

impl State {
    /// How many records a trace has.
    pub(crate) const RECORDS: u64 = 6;

    pub(crate) fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let tasks = tasks(&mut random);
        State {
            random,
            candidates: vec![chosen(&tasks[0])],
            tasks,
            number: 0,
            seq: 0,
        }
    }
}

impl Records for State {
    fn record(&mut self, out: &mut String) -> bool {
        let State {
            random,
            tasks,
            number,
            seq,
            ..
        } = self;
        *seq += 1;
        let task = &tasks[*number as usize % tasks.len()];
        let name = format!("task-{:08x}-{number:07}", *number as u32 ^ 0x9E37_79B9);
        step(&name, *seq, task, &self.candidates, random, out);
        if *seq == Self::RECORDS {
            (*number, *seq) = (*number + 1, 0);
        }
        false
    }
}

/// Tasks enough that two traces seldom ask for the same, all for one agent.
fn tasks(random: &mut Random) -> Vec<Task> {
    (0..4096)
        .map(|_| {
            let (capabilities, clearances) = (1 + random.below(2), 1 + random.below(2));
            Task::new(random, capabilities, clearances, &agent_name(0))
        })
        .collect()
}

fn chosen(task: &Task) -> Candidate {
    Candidate {
        name: task.agent_name.clone(),
        failed: None,
    }
}

/// A trace of up to six records, the last three of which are placements, one of them resumed.
fn step(
    name: &str,
    seq: u64,
    task: &Task,
    candidates: &[Candidate],
    random: &mut Random,
    out: &mut String,
) {
    let name = Some(name);
    match seq {
        1 => record(name, seq, "task.submitted", out, |out| {
            task.submitted(random, out)
        }),
        2 => record(name, seq, "task.admitted", out, |out| {
            task.admitted(random, out)
        }),
        3 | 6 => placement(name, seq, false, task, random, out, |random, out| {
            task.explanation(random, candidates, out);
        }),
        5 => placement(name, seq, true, task, random, out, |_, out| refer(3, out)),
        _ => note(name, seq, random, out),
    }
}

fn refer(seq: u64, out: &mut String) {
    write!(out, r#""recorded_in":{{"kind":"task.bound","seq":{seq}}}"#).expect("a string");
}

fn note(trace: Option<&str>, seq: u64, random: &mut Random, out: &mut String) {
    record(trace, seq, "task.parked", out, |out| {
        write!(
            out,
            r#"{{"reason":"approval","id":"{:016x}"}}"#,
            random.next()
        )
        .expect("a string");
    });
}
