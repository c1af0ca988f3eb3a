//! The measurements in the text format of Prometheus, version 0.0.4.
//!
//! All series are there from the start, with zeros where nothing has happened yet: the first
//! finding of a code is a rise from 0 to 1, which a series that began at 1 would not show. The
//! values of labels are from fixed sets; none ever comes from a trace.

use std::fmt::{Display, Write as _};
use std::time::Instant;

use tracecheck::finding::Code;

use super::Metrics;
use super::latency::{Latencies, QUANTILES};
use crate::source::SourceKind;

/// What the text is, for the header of a response.
pub(super) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Everything that is measured.
pub(super) fn exposition(metrics: &Metrics, now: Instant) -> String {
    let mut page = Page(String::new());
    page.add_build();
    page.add_counts(metrics);
    page.add_findings(metrics);
    page.add_traces(metrics);
    page.add_sources(metrics, now);
    page.add_output(metrics, now);
    page.0
}

struct Page(String);

type Label<'a> = (&'static str, &'a str);

impl Page {
    fn add_build(&mut self) {
        let name = "tracecheck_build_info";
        self.begin(name, "gauge", "The program that runs; always 1.");
        self.sample(name, &[("version", env!("CARGO_PKG_VERSION"))], 1);
    }

    fn add_counts(&mut self, metrics: &Metrics) {
        self.single(
            "tracecheck_records_total",
            "counter",
            "Records that were verified: lines that are not blank.",
            metrics.records.get(),
        );
        self.single(
            "tracecheck_bytes_total",
            "counter",
            "Bytes that were verified, archives decompressed.",
            metrics.bytes.get(),
        );
    }

    fn add_findings(&mut self, metrics: &Metrics) {
        let name = "tracecheck_findings_total";
        self.begin(name, "counter", "Findings that were reported.");
        for &code in Code::ALL {
            let labels = [
                ("code", code.as_str()),
                ("severity", code.severity().as_str()),
            ];
            self.sample(name, &labels, metrics.findings_of(code));
        }
    }

    fn add_traces(&mut self, metrics: &Metrics) {
        self.single(
            "tracecheck_traces_open",
            "gauge",
            "Traces that are open.",
            metrics.traces_open.get(),
        );
        self.single(
            "tracecheck_traces_evicted_total",
            "counter",
            "Traces that were given up because too many were open.",
            metrics.traces_evicted.get(),
        );
        self.single(
            "tracecheck_references_pending",
            "gauge",
            "Resumed placements that wait for the placement that explains them.",
            metrics.references_pending.get(),
        );
    }

    fn add_sources(&mut self, metrics: &Metrics, now: Instant) {
        let name = "tracecheck_sources";
        self.begin(name, "gauge", "Sources that are open.");
        self.by_kind(name, |kind| metrics.open_sources(kind));

        let name = "tracecheck_lag_bytes";
        let help = "Bytes that are there and were not verified yet.";
        self.begin(name, "gauge", help);
        self.by_kind(name, |kind| metrics.lag.of(kind).bytes());

        let name = "tracecheck_lag_seconds";
        let help = "How long the oldest of these bytes have been there.";
        self.begin(name, "gauge", help);
        self.by_kind(name, |kind| metrics.lag.of(kind).age(now).as_secs_f64());
    }

    fn add_output(&mut self, metrics: &Metrics, now: Instant) {
        self.single(
            "tracecheck_output_queue",
            "gauge",
            "Events that wait for the output or are being written.",
            metrics.output_queue.get(),
        );
        if let Some(checkpoint) = &metrics.checkpoint {
            self.single(
                "tracecheck_checkpoint_age_seconds",
                "gauge",
                "How long ago everything was saved to the state directory.",
                checkpoint.age(now).as_secs_f64(),
            );
        }
        self.latencies(
            "tracecheck_verdict_seconds",
            "From the arrival of a record to its verdict; quantiles of the last 5 to 10 minutes.",
            &metrics.verdict,
            now,
        );
        self.latencies(
            "tracecheck_output_seconds",
            "From the arrival of a record until its findings were written; quantiles of the last 5 to 10 minutes.",
            &metrics.output,
            now,
        );
    }

    fn single(&mut self, name: &str, sort: &str, help: &str, value: impl Display) {
        self.begin(name, sort, help);
        self.sample(name, &[], value);
    }

    fn by_kind<T: Display>(&mut self, name: &str, value: impl Fn(SourceKind) -> T) {
        for kind in SourceKind::ALL {
            self.sample(name, &[("kind", kind.as_str())], value(kind));
        }
    }

    fn latencies(&mut self, name: &str, help: &str, latencies: &Latencies, now: Instant) {
        let summary = latencies.summary(now);
        self.begin(name, "summary", help);
        for (index, (_, quantile)) in QUANTILES.iter().enumerate() {
            let value = summary.quantiles.map_or(f64::NAN, |values| values[index]);
            self.sample(name, &[("quantile", quantile)], value);
        }
        self.sample(&format!("{name}_sum"), &[], summary.sum.as_secs_f64());
        self.sample(&format!("{name}_count"), &[], summary.count);
    }

    fn begin(&mut self, name: &str, sort: &str, help: &str) {
        self.write(format_args!("# HELP {name} {help}\n# TYPE {name} {sort}\n"));
    }

    fn sample(&mut self, name: &str, labels: &[Label<'_>], value: impl Display) {
        self.write(format_args!("{name}"));
        for (index, (label, of)) in labels.iter().enumerate() {
            let before = if index == 0 { '{' } else { ',' };
            self.write(format_args!("{before}{label}=\"{of}\""));
        }
        let end = if labels.is_empty() { "" } else { "}" };
        self.write(format_args!("{end} {value}\n"));
    }

    fn write(&mut self, text: std::fmt::Arguments<'_>) {
        self.0.write_fmt(text).expect("a string takes everything");
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::io::Write as _;
    use std::path::Path;
    use std::process::{Command, Stdio};
    use std::time::Duration;

    use regex::Regex;
    use tracecheck::finding::Counts;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// What scripts and alert rules rely on.
    const FAMILIES: [&str; 14] = [
        "tracecheck_build_info gauge",
        "tracecheck_records_total counter",
        "tracecheck_bytes_total counter",
        "tracecheck_findings_total counter",
        "tracecheck_traces_open gauge",
        "tracecheck_traces_evicted_total counter",
        "tracecheck_references_pending gauge",
        "tracecheck_sources gauge",
        "tracecheck_lag_bytes gauge",
        "tracecheck_lag_seconds gauge",
        "tracecheck_output_queue gauge",
        "tracecheck_checkpoint_age_seconds gauge",
        "tracecheck_verdict_seconds summary",
        "tracecheck_output_seconds summary",
    ];

    /// Values for everything, and the moment at which to look.
    fn busy() -> (Metrics, Instant) {
        let start = Instant::now();
        let metrics = Metrics::new(true, start);
        let mut counts = Counts::default();
        counts.add(Code::ClearanceUnmet);
        counts.add(Code::Null);
        counts.add(Code::Null);
        metrics.set_totals(1000, 12, &counts);
        metrics.traces_open.set(3);
        metrics.traces_evicted.add(1);
        metrics.references_pending.set(2);
        metrics.sources.of(SourceKind::File).set(4);
        metrics.sources.of(SourceKind::Tcp).set(5);
        let lag = metrics.lag.of(SourceKind::File);
        lag.set_unread(77, Some(start));
        metrics.output_queue.add(6);
        metrics.checkpoint_taken(start + SECOND);
        metrics.verdict.record(start, start + SECOND / 4, 8);
        (metrics, start + 3 * SECOND)
    }

    fn busy_text() -> String {
        let (metrics, now) = busy();
        exposition(&metrics, now)
    }

    fn idle_text() -> String {
        let start = Instant::now();
        exposition(&Metrics::new(false, start), start)
    }

    fn names(text: &str) -> BTreeSet<&str> {
        let samples = text.lines().filter(|line| !line.starts_with('#'));
        samples
            .filter_map(|line| line.split(['{', ' ']).next())
            .collect()
    }

    #[test]
    fn the_families_are_those_that_were_promised() {
        let text = busy_text();
        let types = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
        assert_eq!(types.collect::<Vec<_>>(), FAMILIES);
        let helps = text.lines().filter(|line| line.starts_with("# HELP "));
        assert_eq!(helps.count(), FAMILIES.len());
    }

    #[test]
    fn values_are_those_that_were_set() {
        let text = busy_text();
        let lines: Vec<&str> = text.lines().collect();
        for line in [
            "tracecheck_records_total 12",
            "tracecheck_bytes_total 1000",
            "tracecheck_findings_total{code=\"E_CLEARANCE_UNMET\",severity=\"error\"} 1",
            "tracecheck_findings_total{code=\"W_NULL\",severity=\"warning\"} 2",
            "tracecheck_findings_total{code=\"E_STRUCTURE\",severity=\"error\"} 0",
            "tracecheck_traces_open 3",
            "tracecheck_traces_evicted_total 1",
            "tracecheck_references_pending 2",
            "tracecheck_sources{kind=\"file\"} 4",
            "tracecheck_sources{kind=\"stdin\"} 0",
            "tracecheck_sources{kind=\"tcp\"} 5",
            "tracecheck_lag_bytes{kind=\"file\"} 77",
            "tracecheck_lag_seconds{kind=\"file\"} 3",
            "tracecheck_lag_seconds{kind=\"unix\"} 0",
            "tracecheck_output_queue 6",
            "tracecheck_checkpoint_age_seconds 2",
            "tracecheck_verdict_seconds_sum 2",
            "tracecheck_verdict_seconds_count 8",
            "tracecheck_output_seconds{quantile=\"0.999\"} NaN",
            "tracecheck_output_seconds_sum 0",
            "tracecheck_output_seconds_count 0",
        ] {
            assert!(lines.contains(&line), "{line}\n{text}");
        }
    }

    #[test]
    fn every_series_is_there_from_the_start() {
        let (idle, busy) = (idle_text(), busy_text());
        let series = |text: &str| -> Vec<String> {
            let samples = text.lines().filter(|line| !line.starts_with('#'));
            let series = samples.filter_map(|line| Some(line.rsplit_once(' ')?.0.to_owned()));
            series
                .filter(|name| name != "tracecheck_checkpoint_age_seconds")
                .collect()
        };
        assert_eq!(series(&idle), series(&busy));
        for &code in Code::ALL {
            assert!(idle.contains(&format!("code=\"{code}\"")), "{code}");
        }
    }

    #[test]
    fn a_checkpoint_has_an_age_only_where_state_is_kept() {
        assert!(!idle_text().contains("checkpoint"));
    }

    #[test]
    fn every_metric_of_the_alert_rules_exists() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("systemd/alerts.yml");
        let rules = fs::read_to_string(path).expect("the rules are there");
        let text = busy_text();
        let exists = names(&text);
        let name = Regex::new(r"\btracecheck_[a-z_]+").expect("a pattern");
        let used: BTreeSet<&str> = name.find_iter(&rules).map(|found| found.as_str()).collect();
        assert!(used.len() > 5, "{used:?}");
        assert!(used.is_subset(&exists), "{used:?} {exists:?}");
    }

    #[test]
    fn prometheus_takes_the_text() {
        let mut promtool = Command::new("promtool")
            .args(["check", "metrics"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("promtool is installed (Debian: prometheus)");
        let mut stdin = promtool.stdin.take().expect("piped");
        stdin
            .write_all(busy_text().as_bytes())
            .expect("it reads everything");
        drop(stdin);
        let output = promtool.wait_with_output().expect("it ends");
        assert!(output.status.success(), "{output:?}");
    }
}
