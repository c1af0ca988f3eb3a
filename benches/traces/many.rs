//! Short traces, two thousand at a time interleaved, told apart by `/trace`. None of them is
//! closed by a record that a default run would take for its end.

use std::fmt::Write as _;

use super::other::Other;
use super::random::Random;
use super::task::{Candidate, Task, agent_name};
use super::{Records, moment, record};

const INTERLEAVED: usize = 2000;

/// See the module.
#[derive(Debug)]
pub(crate) struct Many {
    random: Random,
    other: Other,
    live: Vec<Trace>,
    begun: u64,
}

#[derive(Debug)]
struct Trace {
    name: String,
    task: Task,
    candidates: Vec<Candidate>,
    seq: u64,
    parks: bool,
    completes: bool,
}

impl Many {
    pub(crate) fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let other = Other::new(&mut random);
        Many {
            random,
            other,
            live: Vec::new(),
            begun: 0,
        }
    }

    fn begin(&mut self) -> Trace {
        let random = &mut self.random;
        self.begun += 1;
        let mut numbers: Vec<_> = (0..2 + random.below(4))
            .map(|_| random.below(2000))
            .collect();
        numbers.sort_unstable();
        numbers.dedup();
        let candidates: Vec<_> = numbers
            .into_iter()
            .enumerate()
            .map(|(index, number)| Candidate {
                name: agent_name(number),
                failed: (index > 0 && random.percent(60)).then(|| random.below(100)),
            })
            .collect();
        let (capabilities, clearances) = (1 + random.below(2), 1 + random.below(2));
        Trace {
            name: format!("run-{:07}-{:08x}", self.begun, random.below(1 << 32)),
            task: Task::new(random, capabilities, clearances, &candidates[0].name),
            candidates,
            seq: 0,
            parks: random.percent(50),
            completes: random.percent(50),
        }
    }
}

impl Records for Many {
    fn record(&mut self, out: &mut String) -> bool {
        if self.live.len() < INTERLEAVED {
            let trace = self.begin();
            self.live.push(trace);
        }
        let index = self.random.below(self.live.len());
        let trace = &mut self.live[index];
        if trace.next(&mut self.random, &self.other, out) {
            self.live.swap_remove(index);
        }
        false
    }
}

impl Trace {
    /// Appends the next record and says whether it was the last one.
    fn next(&mut self, random: &mut Random, other: &Other, out: &mut String) -> bool {
        self.seq += 1;
        let Trace { task, seq, .. } = self;
        let name = Some(self.name.as_str());
        let before_end = if self.parks { 5 } else { 3 };
        match *seq {
            1 => record(name, 1, "task.submitted", out, |out| {
                task.submitted(random, out)
            }),
            2 => record(name, 2, "task.admitted", out, |out| {
                task.admitted(random, out)
            }),
            3 => placement(name, 3, false, task, random, out, |random, out| {
                task.explanation(random, &self.candidates, out);
            }),
            4 if self.parks => record(name, 4, "task.parked", out, |out| {
                write!(
                    out,
                    r#"{{"reason":"approval","id":"{:016x}","at":""#,
                    random.next()
                )
                .expect("a string");
                moment(4, out);
                out.push_str(r#""}"#);
            }),
            5 if self.parks => placement(name, 5, true, task, random, out, |_, out| {
                write!(
                    out,
                    r#""recorded_in":{{"kind":"task.bound","seq":3}},"candidates_count":{}"#,
                    self.candidates.len()
                )
                .expect("a string");
            }),
            seq => record(name, seq, "task.completed", out, |out| {
                let length = 300 + random.below(300);
                other.content("task.parked", seq, length, random, out);
            }),
        }
        *seq == before_end + u64::from(self.completes)
    }
}

/// Appends a placement.
pub(crate) fn placement(
    trace: Option<&str>,
    seq: u64,
    resumed: bool,
    task: &Task,
    random: &mut Random,
    out: &mut String,
    explanation: impl FnOnce(&mut Random, &mut String),
) {
    record(trace, seq, "task.bound", out, |out| {
        write!(
            out,
            r#"{{"instance":"t-{:05x}","runtime":"node-{}",{}"scheduling":{{"requirements":{},"declaration":{},"#,
            random.below(1 << 20),
            random.below(40),
            if resumed { r#""resumed":true,"# } else { "" },
            task.requirements,
            task.declaration
        )
        .expect("a string");
        explanation(random, out);
        out.push_str("}}");
    });
}
