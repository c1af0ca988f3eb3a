//! One long trace as an agent leaves it: seven records in ten are of other kinds, a quarter are
//! resumed placements, and one in twenty is a placement with its full explanation.

use std::fmt::Write as _;

use super::other::Other;
use super::random::Random;
use super::task::{Candidate, Task, agent_name, candidates};
use super::{Records, moment, record};

const CANDIDATES: usize = 20;

/// See the module.
#[derive(Debug)]
pub(crate) struct Mixed {
    random: Random,
    other: Other,
    task: Task,
    candidates: Vec<Candidate>,
    seq: u64,
    /// The `seq`s of the placements with an explanation.
    explained: Vec<u64>,
    /// One placement in so many is faulty.
    fault_every: Option<u64>,
    placements: u64,
}

impl Mixed {
    /// With one placement in `fault_every` faulty, if any.
    pub(crate) fn new(seed: u64, fault_every: Option<u64>) -> Self {
        let mut random = Random::new(seed);
        Mixed {
            other: Other::new(&mut random),
            task: Task::new(&mut random, 2, 2, &agent_name(0)),
            candidates: candidates(&mut random, CANDIDATES),
            random,
            seq: 0,
            explained: Vec::new(),
            fault_every,
            placements: 0,
        }
    }

    fn placement(&mut self, full: bool, out: &mut String) -> bool {
        let Mixed {
            random, task, seq, ..
        } = self;
        self.placements += 1;
        let is_faulty = self
            .fault_every
            .is_some_and(|every| self.placements.is_multiple_of(every));
        let declaration = if is_faulty {
            &task.lacking
        } else {
            &task.declaration
        };
        record(None, *seq, "task.bound", out, |out| {
            write!(
                out,
                r#"{{"instance":"task-7-{:05x}","runtime":"node-{}","#,
                random.below(1 << 20),
                random.below(40)
            )
            .expect("a string");
            if !full {
                out.push_str(r#""resumed":true,"#);
            }
            write!(
                out,
                r#""scheduling":{{"requirements":{},"declaration":{declaration},"#,
                task.requirements
            )
            .expect("a string");
            if full {
                task.explanation(random, &self.candidates, out);
                timings(*seq, random, out);
                self.explained.push(*seq);
            } else {
                let latest = self.explained.last().copied();
                let explained = match random.percent(80) {
                    true => latest,
                    false => Some(random.pick(&self.explained)),
                };
                let failed = self
                    .candidates
                    .iter()
                    .filter(|c| c.failed.is_some())
                    .count();
                write!(
                    out,
                    r#""recorded_in":{{"kind":"task.bound","seq":{}}},"candidates_count":{CANDIDATES},"filters_passed_count":{},"filters_failed_count":{failed},"scores_count":{}"#,
                    explained.expect("the first placement has an explanation"),
                    task.predicates(),
                    CANDIDATES - failed
                )
                .expect("a string");
            }
            out.push_str("}}");
        });
        is_faulty
    }
}

impl Records for Mixed {
    fn record(&mut self, out: &mut String) -> bool {
        self.seq += 1;
        let Mixed { random, task, .. } = self;
        match self.seq {
            1 => record(None, 1, "task.submitted", out, |out| {
                task.submitted(random, out)
            }),
            2 => record(None, 2, "task.admitted", out, |out| {
                task.admitted(random, out)
            }),
            3 => return self.placement(true, out),
            seq => match random.below(100) {
                0..5 => return self.placement(true, out),
                5..30 => return self.placement(false, out),
                _ => {
                    let kind = Other::kind(random);
                    let length = random.length();
                    record(None, seq, kind, out, |out| {
                        self.other.content(kind, seq, length, random, out);
                    });
                }
            },
        }
        false
    }
}

pub(super) fn timings(seq: u64, random: &mut Random, out: &mut String) {
    write!(
        out,
        r#","timings":{{"gather_ms":{},"select_ms":{},"launch_ms":{},"decided_at":""#,
        random.below(900),
        random.below(50),
        random.below(4000)
    )
    .expect("a string");
    moment(seq, out);
    out.push_str(r#""}"#);
}
