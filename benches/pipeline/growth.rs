//! How the cost of a record grows with what came before it, and that of a placement with its
//! candidates.
//!
//! Records come through a pipe as they are made, so no file is as long as the longest trace. Time
//! is that of the processor, which does not run while the program waits for records, less what a
//! run of nothing takes.

use std::io;

use crate::arguments::Scale;
use crate::measure::Call;
use crate::table::{Spread, Table};
use crate::traces::{Amount, Fleet, Long, Made, Open, Records, write};

/// Fewest records in a run that measures open traces.
const FEWEST_RECORDS: u64 = 1_000_000;

/// Records of a trace there.
const RECORDS_PER_TRACE: u64 = 6;

pub(crate) fn run(scale: &Scale) -> io::Result<[(&'static str, Table); 3]> {
    let bench = Bench::new(scale)?;
    Ok([
        (
            "Time per record against the length of the trace",
            bench.lengths()?,
        ),
        (
            "Time per record against the number of open traces",
            bench.open_traces()?,
        ),
        (
            "Time per placement against the number of candidates",
            bench.candidates()?,
        ),
    ])
}

struct Bench<'a> {
    scale: &'a Scale,
    /// What a run of nothing takes.
    idle_seconds: f64,
}

impl<'a> Bench<'a> {
    fn new(scale: &'a Scale) -> io::Result<Self> {
        let empty = Call::new(&scale.program).arg("-");
        let idle = (0..scale.starts)
            .map(|_| Ok(empty.run()?.cpu_seconds))
            .collect::<io::Result<Vec<_>>>()?;
        Ok(Bench {
            scale,
            idle_seconds: Spread::of(idle).median,
        })
    }

    /// Seconds that a run takes, and what it was given.
    fn measure(
        &self,
        arguments: &[&str],
        amount: Amount,
        records: impl Fn() -> Box<dyn Records>,
    ) -> io::Result<(f64, Made)> {
        let call = Call::new(&self.scale.program)
            .args(arguments)
            .arg("-")
            .on_cores(2);
        let mut made = Made::default();
        let mut seconds = Vec::new();
        for _ in 0..self.scale.rounds.min(3) {
            let took = call.run_fed(|mut out| {
                made = write(&mut *records(), amount, &mut out)?;
                Ok(())
            })?;
            let took = took.expect(0, "growth")?;
            seconds.push((took.cpu_seconds - self.idle_seconds).max(0.0));
        }
        Ok((Spread::of(seconds).median, made))
    }

    fn lengths(&self) -> io::Result<Table> {
        let mut table = Table::new(["Records", "Bytes a record", "Nanoseconds a record"]);
        for length in decades(10_000, 10_000_000, self.scale.longest_trace) {
            eprintln!("a trace of {length} records");
            let amount = Amount::Records(length);
            let (seconds, made) = self.measure(&[], amount, || Box::new(Long::new(7)))?;
            table.row([
                length.to_string(),
                bytes_each(&made),
                each(seconds, made.records),
            ]);
        }
        Ok(table)
    }

    fn open_traces(&self) -> io::Result<Table> {
        let mut table = Table::new([
            "Open traces",
            "Records",
            "Bytes a record",
            "Nanoseconds a record",
        ]);
        let fewest = FEWEST_RECORDS.min(RECORDS_PER_TRACE * self.scale.most_open);
        for open in decades(10, 1_000_000, self.scale.most_open) {
            eprintln!("{open} open traces");
            let arguments = ["--trace-key", "/trace", "--end-kind", Open::END_KIND];
            let amount = Amount::Records(fewest.max(RECORDS_PER_TRACE * open));
            let records = || -> Box<dyn Records> { Box::new(Open::new(8, open as usize)) };
            let (seconds, made) = self.measure(&arguments, amount, records)?;
            table.row([
                open.to_string(),
                made.records.to_string(),
                bytes_each(&made),
                each(seconds, made.records),
            ]);
        }
        Ok(table)
    }

    fn candidates(&self) -> io::Result<Table> {
        let mut table = Table::new([
            "Candidates",
            "Microseconds a placement",
            "Nanoseconds a candidate",
        ]);
        // Half of the records are no placements, and next to nothing beside those that are.
        let bytes = (self.scale.mb << 20) / 8;
        for candidates in [10, 100, 1000, 10_000] {
            eprintln!("{candidates} candidates");
            let records = || -> Box<dyn Records> { Box::new(Fleet::new(9, candidates)) };
            let (seconds, made) = self.measure(&[], Amount::Bytes(bytes), records)?;
            let placements = (made.records.saturating_sub(1) / 2).max(1);
            table.row([
                candidates.to_string(),
                format!("{:.1}", seconds * 1e6 / placements as f64),
                each(seconds, placements * candidates as u64),
            ]);
        }
        Ok(table)
    }
}

/// `from` and its tenfolds up to `to`, as far as they are not above `most`.
fn decades(from: u64, to: u64, most: u64) -> impl Iterator<Item = u64> {
    std::iter::successors(Some(from), |number| Some(number * 10))
        .take_while(move |&number| number <= to.min(most))
}

fn each(seconds: f64, count: u64) -> String {
    format!("{:.0}", seconds * 1e9 / count as f64)
}

fn bytes_each(made: &Made) -> String {
    (made.bytes / made.records).to_string()
}
