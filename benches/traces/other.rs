//! Records that are no placement: what an agent does between two of them.

use std::fmt::Write as _;

use super::moment;
use super::prose::Prose;
use super::random::Random;
use super::task::{join, tool};

/// The kinds of such records.
pub(crate) const KINDS: [&str; 4] = [
    "tool.called",
    "model.responded",
    "task.parked",
    "task.preempted",
];

/// Makes the content of such records.
#[derive(Debug)]
pub(crate) struct Other {
    prose: Prose,
}

impl Other {
    pub(crate) fn new(random: &mut Random) -> Self {
        Other {
            prose: Prose::new(random),
        }
    }

    /// A kind, as often as it comes.
    pub(crate) fn kind(random: &mut Random) -> &'static str {
        match random.below(100) {
            0..28 => KINDS[0],
            28..57 => KINDS[1],
            57..87 => KINDS[2],
            _ => KINDS[3],
        }
    }

    /// Appends a content of about `length` bytes.
    pub(crate) fn content(
        &self,
        kind: &str,
        seq: u64,
        length: usize,
        random: &mut Random,
        out: &mut String,
    ) {
        let end = out.len() + length;
        let ascii = random.percent(20);
        match kind {
            "tool.called" => self.called(seq, end, ascii, random, out),
            "model.responded" => self.responded(seq, end, ascii, random, out),
            "task.parked" => {
                let reason = random.pick(&["approval", "subtask", "timer"]);
                write!(
                    out,
                    r#"{{"reason":"{reason}","waiting_on":{{"type":"approval","id":"{:016x}"}},"#,
                    random.next()
                )
                .expect("a string");
                self.pause(seq, end, ascii, random, out);
            }
            _ => {
                write!(
                    out,
                    r#"{{"reason":"higher-priority","by":{{"task":"task-{:06x}","priority":"urgent"}},"grace_ms":30000,"progress":{{"steps":{},"fraction":0.{:04}}},"#,
                    random.below(1 << 24),
                    random.below(40),
                    random.below(10_000)
                )
                .expect("a string");
                self.pause(seq, end, ascii, random, out);
            }
        }
    }

    fn called(&self, seq: u64, end: usize, ascii: bool, random: &mut Random, out: &mut String) {
        write!(
            out,
            r#"{{"call":"{:016x}","tool":"{}","at":""#,
            random.next(),
            tool(random)
        )
        .expect("a string");
        moment(seq, out);
        write!(
            out,
            r#"","duration_ms":{},"arguments":{{"claim":"B-{}","where":{{"state":["open","late"],"least":{},"nested":{{"a":{{"b":[1,[2,{{"c":"d"}}]]}}}}}},"query":""#,
            random.below(9000),
            random.below(1_000_000),
            random.below(50)
        )
        .expect("a string");
        self.prose.text(random, 60, ascii, out);
        out.push_str(r#""},"result":"#);
        let room = end.saturating_sub(out.len() + 40);
        match random.below(100) {
            0..35 => rows(room, random, out),
            35..60 => {
                out.push_str(r#"{"content":[{"type":"text","text":""#);
                self.prose.embedded(random, room, out);
                out.push_str(r#""}],"is_error":false}"#);
            }
            // Looks like a placement to who searches for one.
            60..63 => {
                write!(
                    out,
                    r#"{{"kind":"task.bound","seq":{},"scheduling":{{"candidates":["x","y"]}},"log":""#,
                    random.below(99)
                )
                .expect("a string");
                self.prose.text(random, room.saturating_sub(60), ascii, out);
                out.push_str(r#""}"#);
            }
            _ => {
                out.push_str(r#"{"text":""#);
                self.prose.text(random, room, ascii, out);
                write!(out, r#"","is_error":{}}}"#, random.percent(5)).expect("a string");
            }
        }
        out.push('}');
    }

    fn responded(&self, seq: u64, end: usize, ascii: bool, random: &mut Random, out: &mut String) {
        out.push_str(r#"{"model":"large-2026-04","at":""#);
        moment(seq, out);
        write!(
            out,
            r#"","usage":{{"input_tokens":{},"output_tokens":{},"cost_usd":"0.{:04}"}},"stop_reason":"tool_use","temperature":0.2,"logprob":-{}.{:03}e-4,"message":{{"role":"assistant","content":[{{"type":"text","text":""#,
            random.below(90_000),
            random.below(4000),
            random.below(10_000),
            1 + random.below(9),
            random.below(1000)
        )
        .expect("a string");
        let room = end.saturating_sub(out.len() + 120);
        self.prose.text(random, room, ascii, out);
        write!(
            out,
            r#""}},{{"type":"tool_use","id":"{:016x}","name":"{}","input":{{"claim":"B-{}","limit":20}}}}]}}}}"#,
            random.next(),
            tool(random),
            random.below(1_000_000)
        )
        .expect("a string");
    }

    /// The end of a record of a task that stops for a while.
    fn pause(&self, seq: u64, end: usize, ascii: bool, random: &mut Random, out: &mut String) {
        out.push_str(r#""at":""#);
        moment(seq, out);
        let digest: [u64; 4] = std::array::from_fn(|_| random.next());
        write!(
            out,
            r#"","checkpoint":{{"digest":"sha256:{:016x}{:016x}{:016x}{:016x}","bytes":{}}},"summary":""#,
            digest[0],
            digest[1],
            digest[2],
            digest[3],
            random.below(1_000_000)
        )
        .expect("a string");
        let room = end.saturating_sub(out.len() + 3);
        self.prose.text(random, room, ascii, out);
        out.push_str(r#""}"#);
    }
}

/// A table: numbers, literals and short strings.
fn rows(room: usize, random: &mut Random, out: &mut String) {
    out.push_str(r#"{"rows":["#);
    join(0..=room / 150, out, |_, out| {
        let note = if random.percent(60) {
            "null"
        } else {
            r#""late""#
        };
        write!(
            out,
            r#"{{"id":{},"article":"A-{}","pieces":{},"price":{}.{:02},"score":0.{:016},"in_stock":{},"note":{note},"size":[{},{},{}.{:03}]}}"#,
            random.below(1_000_000_000),
            random.below(100_000),
            1 + random.below(20),
            random.below(200),
            random.below(100),
            random.below(10_000_000_000_000_000),
            random.percent(70),
            random.below(100),
            random.below(100),
            random.below(10),
            random.below(1000)
        )
        .expect("a string");
    });
    write!(out, r#"],"total":{}}}"#, random.below(500)).expect("a string");
}
