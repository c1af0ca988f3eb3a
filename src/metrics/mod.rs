//! What can be measured of a run, shared by whoever measures and whoever asks.
//!
//! Of each value the part named with it alone keeps it up to date; all of them may read it.
//! Nothing here waits for anything but another's few instructions.

mod gauge;
pub(crate) mod http;
mod lag;
mod latency;
pub(crate) mod status;
mod text;

use std::time::Instant;

use tracecheck::finding::{Code, Counts};

use self::gauge::{ByKind, Gauge, Moment};
use self::lag::Lag;
use self::latency::Latencies;
use crate::source::SourceKind;

/// The measurements of one run.
#[derive(Debug)]
pub(crate) struct Metrics {
    /// Engine: lines that are not blank.
    records: Gauge,
    /// Engine: bytes that were verified, archives decompressed.
    bytes: Gauge,
    /// Engine: findings, indexed by [`Code`].
    findings: [Gauge; Code::ALL.len()],
    /// Engine: traces that are open.
    pub(crate) traces_open: Gauge,
    /// Engine: traces that were given up because too many were open.
    pub(crate) traces_evicted: Gauge,
    /// Engine: resumed placements that wait for the one that explains them.
    pub(crate) references_pending: Gauge,
    /// Engine: sources that are open.
    pub(crate) sources: ByKind<Gauge>,
    /// Readers and engine: what is there and was not verified.
    pub(crate) lag: ByKind<Lag>,
    /// Engine adds, writer subtracts: events that were handed over and not written yet, with the
    /// one that is being written.
    pub(crate) output_queue: Gauge,
    /// Engine: from the arrival of a record's last byte to its verdict.
    pub(crate) verdict: Latencies,
    /// Writer: from the arrival of a record's last byte until what was found in it was written.
    pub(crate) output: Latencies,
    /// When everything was last as it is on disk; none where no state is kept.
    checkpoint: Option<Moment>,
}

impl Metrics {
    /// Those of a run that begins now. Without a state directory there is no age of a checkpoint.
    pub(crate) fn new(keeps_state: bool, now: Instant) -> Metrics {
        Metrics {
            records: Gauge::default(),
            bytes: Gauge::default(),
            findings: Default::default(),
            traces_open: Gauge::default(),
            traces_evicted: Gauge::default(),
            references_pending: Gauge::default(),
            sources: ByKind::default(),
            lag: ByKind::default(),
            output_queue: Gauge::default(),
            verdict: Latencies::new(now),
            output: Latencies::new(now),
            checkpoint: keeps_state.then(|| Moment::new(now)),
        }
    }

    /// Engine, after each block: what the run has come to.
    pub(crate) fn set_totals(&self, bytes: u64, records: u64, counts: &Counts) {
        self.bytes.set(bytes);
        self.records.set(records);
        for (code, count) in counts.iter() {
            self.findings[code as usize].set(count);
        }
    }

    /// Engine: a checkpoint was taken, or there was nothing new to put into one. Until the first
    /// the age counts from the beginning of the run.
    pub(crate) fn checkpoint_taken(&self, now: Instant) {
        if let Some(moment) = &self.checkpoint {
            moment.set(now);
        }
    }

    fn findings_of(&self, code: Code) -> u64 {
        self.findings[code as usize].get()
    }

    fn open_sources(&self, kind: SourceKind) -> u64 {
        self.sources.of(kind).get()
    }
}
