//! What is being done, as one line for people: `systemctl status` shows it.

use std::fmt;
use std::time::Instant;

use tracecheck::Severity;
use tracecheck::finding::Code;

use super::Metrics;
use crate::health::{Health, Phase, STALL};
use crate::source::SourceKind;

/// Such as `following 12 files, 3 connections; 1.2 M records, 4 errors; output stalled for 12 s`.
pub(crate) fn status(metrics: &Metrics, health: &Health, now: Instant) -> String {
    let doing = match health.phase() {
        Phase::Starting => "starting".to_owned(),
        Phase::Ready => following(metrics),
        Phase::Stopping => "stopping".to_owned(),
    };
    let (records, errors) = (metrics.records.get(), errors(metrics));
    let (records, errors) = (Count(records, "record"), Count(errors, "error"));
    let mut status = format!("{doing}; {records}, {errors}");
    if let Some(standstill) = health.standstill(now, STALL) {
        status += &format!("; {standstill}");
    }
    status
}

fn following(metrics: &Metrics) -> String {
    let open = |kind| metrics.open_sources(kind);
    let files = open(SourceKind::File);
    let connections = open(SourceKind::Tcp) + open(SourceKind::Unix);
    let mut sources = Vec::new();
    if files > 0 {
        sources.push(Count(files, "file").to_string());
    }
    if open(SourceKind::Stdin) > 0 {
        sources.push("standard input".to_owned());
    }
    if connections > 0 {
        sources.push(Count(connections, "connection").to_string());
    }
    match sources.is_empty() {
        true => "waiting for traces".to_owned(),
        false => format!("following {}", sources.join(", ")),
    }
}

fn errors(metrics: &Metrics) -> u64 {
    let errors = Code::ALL
        .iter()
        .filter(|code| code.severity() == Severity::Error);
    errors.map(|&code| metrics.findings_of(code)).sum()
}

/// A number, rounded down to two digits or so, and its noun, whose plural is regular.
struct Count(u64, &'static str);

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Count(number, noun) = *self;
        let units = [(1_000_000_000, "G"), (1_000_000, "M"), (10_000, "k")];
        match units.into_iter().find(|&(from, _)| number >= from) {
            None => write!(f, "{number}")?,
            Some((from, unit)) => {
                let scale = if unit == "k" { 1_000 } else { from };
                let tenths = number / (scale / 10);
                write!(f, "{}.{} {unit}", tenths / 10, tenths % 10)?;
            }
        }
        let plural = if number == 1 { "" } else { "s" };
        write!(f, " {noun}{plural}")
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tracecheck::finding::Counts;

    use super::*;
    use crate::health::Outside;

    #[test]
    fn the_line_says_what_is_read_and_found_and_what_stands_still() {
        let start = Instant::now();
        let (metrics, health) = (Metrics::new(false, start), Health::new(start));
        let status = |after| status(&metrics, &health, start + Duration::from_secs(after));
        assert_eq!(status(0), "starting; 0 records, 0 errors");
        health.set_phase(Phase::Ready);
        assert_eq!(status(0), "waiting for traces; 0 records, 0 errors");

        metrics.sources.of(SourceKind::File).set(12);
        metrics.sources.of(SourceKind::Tcp).set(2);
        metrics.sources.of(SourceKind::Unix).set(1);
        let mut counts = Counts::default();
        counts.add(Code::Structure);
        counts.add(Code::Null);
        metrics.set_totals(0, 1_234_567, &counts);
        let writer = health.part("writer");
        writer.wait_for(Outside::Output, start);
        assert_eq!(
            status(12),
            "following 12 files, 3 connections; 1.2 M records, 1 error; output stalled for 12 s"
        );

        metrics.sources.of(SourceKind::File).set(1);
        metrics.sources.of(SourceKind::Stdin).set(1);
        writer.rest();
        health.set_phase(Phase::Stopping);
        assert_eq!(status(12), "stopping; 1.2 M records, 1 error");
        health.set_phase(Phase::Ready);
        assert!(status(12).starts_with("following 1 file, standard input, 3 connections;"));
    }

    #[test]
    fn numbers_are_short() {
        for (number, text) in [
            (0, "0 records"),
            (1, "1 record"),
            (9_999, "9999 records"),
            (10_000, "10.0 k records"),
            (999_999, "999.9 k records"),
            (1_000_000, "1.0 M records"),
            (5_678_901_234, "5.6 G records"),
            (u64::MAX, "18446744073.7 G records"),
        ] {
            assert_eq!(Count(number, "record").to_string(), text);
        }
    }
}
