//! Traces to measure with, made from nothing but a seed: the same arguments give the same bytes.
//!
//! Every trace keeps every rule, but for the placements that are made faulty on purpose.

#![allow(dead_code, unused_imports, reason = "each benchmark uses a part of it")]

mod fleet;
mod growth;
mod many;
mod mixed;
mod other;
mod prose;
mod random;
mod task;

use std::fmt::Write as _;
use std::io::{self, Write};

pub(crate) use fleet::Fleet;
pub(crate) use growth::{Long, Open, State};
pub(crate) use many::{Many, placement};
pub(crate) use mixed::Mixed;
pub(crate) use other::{KINDS, Other};
pub(crate) use random::Random;
pub(crate) use task::{Task, agent_name, candidates};

/// Makes one record after the other.
pub(crate) trait Records {
    /// Appends the next record, with its LF, and says whether it is faulty.
    fn record(&mut self, out: &mut String) -> bool;
}

/// How much is to be made.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Amount {
    /// At least so many bytes, up to the end of a record.
    Bytes(u64),
    Records(u64),
}

/// What was made.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Made {
    pub(crate) bytes: u64,
    pub(crate) records: u64,
    pub(crate) faulty: u64,
}

/// Makes so many records and writes them in large pieces.
pub(crate) fn write(
    records: &mut dyn Records,
    amount: Amount,
    out: &mut impl Write,
) -> io::Result<Made> {
    let mut made = Made::default();
    let mut text = String::new();
    let is_enough = |made: &Made, waiting: usize| match amount {
        Amount::Bytes(bytes) => made.bytes + waiting as u64 >= bytes,
        Amount::Records(records) => made.records >= records,
    };
    while !is_enough(&made, text.len()) {
        made.faulty += u64::from(records.record(&mut text));
        made.records += 1;
        if text.len() >= PIECE_BYTES {
            out.write_all(text.as_bytes())?;
            made.bytes += text.len() as u64;
            text.clear();
        }
    }
    out.write_all(text.as_bytes())?;
    made.bytes += text.len() as u64;
    Ok(made)
}

const PIECE_BYTES: usize = 1 << 18;

/// Appends a record whose content `content` appends. With a trace's name, under `/trace`.
pub(crate) fn record(
    trace: Option<&str>,
    seq: u64,
    kind: &str,
    out: &mut String,
    content: impl FnOnce(&mut String),
) {
    out.push('{');
    if let Some(trace) = trace {
        write!(out, r#""trace":"{trace}","#).expect("a string");
    }
    write!(out, r#""seq":{seq},"kind":"{kind}","content":"#).expect("a string");
    content(out);
    out.push_str("}\n");
}

/// Appends a moment that grows with `seq`.
fn moment(seq: u64, out: &mut String) {
    let (seconds, minutes) = (seq * 3, seq / 20);
    write!(
        out,
        "2026-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z",
        1 + minutes / 43_200 % 12,
        1 + minutes / 1440 % 28,
        minutes / 60 % 24,
        minutes % 60,
        seconds % 60,
        seq % 1000
    )
    .expect("a string");
}
