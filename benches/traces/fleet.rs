//! A task that is placed again and again on a large fleet: with 1,000 candidates, a placement
//! takes about 100 KB.

use std::fmt::Write as _;

use super::mixed::timings;
use super::other::Other;
use super::random::Random;
use super::task::{Candidate, Task, agent_name, candidates};
use super::{Records, record};

/// See the module.
#[derive(Debug)]
pub(crate) struct Fleet {
    random: Random,
    other: Other,
    task: Task,
    /// The fleet, and behind it those who wait for their turn.
    agents: Vec<Candidate>,
    candidates: usize,
    seq: u64,
}

impl Fleet {
    pub(crate) fn new(seed: u64, fleet: usize) -> Self {
        let mut random = Random::new(seed);
        Fleet {
            other: Other::new(&mut random),
            task: Task::new(&mut random, 1, 2, &agent_name(0)),
            agents: candidates(&mut random, fleet + fleet / 5 + 1),
            random,
            candidates: fleet,
            seq: 0,
        }
    }

    fn placement(&mut self, out: &mut String) {
        let Fleet {
            random,
            task,
            agents,
            ..
        } = self;
        // A few agents leave and others come. The chosen one stays.
        for _ in 0..5.min(self.candidates - 1) {
            let leaves = 1 + random.below(self.candidates - 1);
            let comes = self.candidates + random.below(agents.len() - self.candidates);
            agents.swap(leaves, comes);
        }
        record(None, self.seq, "task.bound", out, |out| {
            write!(
                out,
                r#"{{"instance":"task-7-{:05x}","runtime":"node-{}","scheduling":{{"requirements":{},"declaration":{},"#,
                random.below(1 << 20),
                random.below(40),
                task.requirements,
                task.declaration
            )
            .expect("a string");
            task.explanation(random, &agents[..self.candidates], out);
            timings(self.seq, random, out);
            out.push_str("}}");
        });
    }
}

impl Records for Fleet {
    fn record(&mut self, out: &mut String) -> bool {
        self.seq += 1;
        let Fleet {
            random, task, seq, ..
        } = self;
        match *seq {
            1 => record(None, 1, "task.submitted", out, |out| {
                task.submitted(random, out)
            }),
            2 => record(None, 2, "task.admitted", out, |out| {
                task.admitted(random, out)
            }),
            seq if seq % 2 == 1 => self.placement(out),
            seq => record(None, seq, "task.parked", out, |out| {
                self.other.content("task.parked", seq, 500, random, out);
            }),
        }
        false
    }
}
