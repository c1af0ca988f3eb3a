//! What one would write in an afternoon: each line to a `serde_json::Value`, and the main checks of
//! section 7 on that. It finds what the made traces get wrong, and knows neither advisories nor
//! doubled members, ill-formed documents or texts for people.

use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use serde_json::Value;

/// Prints how many findings there are.
pub(crate) fn verify(file: &Path, trace_key: Option<&str>) -> io::Result<()> {
    let mut lines = BufReader::with_capacity(1 << 20, File::open(file)?);
    let mut traces: HashMap<String, Trace> = HashMap::new();
    let mut line = Vec::new();
    let mut findings = 0;
    while lines.read_until(b'\n', &mut line)? > 0 {
        let record: Value = serde_json::from_slice(&line)?;
        let name = trace_key.and_then(|key| record.pointer(key)?.as_str());
        let trace = traces
            .entry(name.unwrap_or_default().to_owned())
            .or_default();
        findings += trace.record(&record);
        line.clear();
    }
    println!("{findings}");
    Ok(())
}

type Predicates = BTreeSet<String>;

#[derive(Debug, Default)]
struct Trace {
    seq: u64,
    asked: Predicates,
    agent: Value,
    /// The predicate sets of the placements with an explanation.
    explained: HashMap<u64, Predicates>,
}

impl Trace {
    /// How much is wrong with the next record.
    fn record(&mut self, record: &Value) -> usize {
        let (Some(seq), Some(kind)) = (record["seq"].as_u64(), record["kind"].as_str()) else {
            return 1;
        };
        let out_of_order = usize::from(seq <= self.seq);
        self.seq = self.seq.max(seq);
        let content = &record["content"];
        let findings = match kind {
            "task.submitted" => {
                self.asked = predicates(&content["requirements"]);
                0
            }
            "task.admitted" => {
                self.agent = content["agent"].clone();
                0
            }
            "task.bound" => self.placement(seq, &content["scheduling"]),
            "task.rejected" => usize::from(claims_without_predicate(&content["reason"])),
            _ => 0,
        };
        out_of_order + findings
    }

    fn placement(&mut self, seq: u64, scheduling: &Value) -> usize {
        let declaration = &scheduling["declaration"];
        let matched = predicates(&scheduling["requirements"]);
        let held = held(declaration);
        let routed = scheduling["route"]
            .as_str()
            .is_some_and(|route| !route.is_empty());
        let consistent = match routed {
            true => matched.is_superset(&self.asked),
            false => matched == self.asked,
        };
        let mut findings = usize::from(declaration["agent"] != self.agent);
        findings += usize::from(!consistent);
        findings += matched.difference(&held).count();
        let recorded_in = &scheduling["recorded_in"];
        if recorded_in.is_null() {
            findings += unexplained(scheduling, &matched, declaration["agent"]["name"].as_str());
            self.explained.insert(seq, matched);
        } else {
            let explained = recorded_in["seq"]
                .as_u64()
                .and_then(|seq| self.explained.get(&seq));
            findings += usize::from(explained != Some(&matched));
        }
        findings
    }
}

/// The predicates of section 4 that the made traces use.
fn predicates(requirements: &Value) -> Predicates {
    let mut predicates = Predicates::new();
    for entry in list(&requirements["capabilities"]) {
        predicates.extend(capability(entry));
    }
    for (member, prefix) in [("clearances", "clearance"), ("tools", "tool")] {
        predicates.extend(names(&requirements[member], prefix));
    }
    predicates.extend(
        requirements["residency"]
            .as_str()
            .map(|label| format!("residency:{label}")),
    );
    predicates.extend(latency_class(requirements));
    predicates
}

/// Every predicate that a declaration satisfies.
fn held(declaration: &Value) -> Predicates {
    let mut held = Predicates::new();
    for entry in list(&declaration["capabilities"]) {
        held.extend(capability(entry));
    }
    for (member, prefix) in [
        ("clearances", "clearance"),
        ("tools", "tool"),
        ("residency", "residency"),
    ] {
        held.extend(names(&declaration[member], prefix));
    }
    held.extend(latency_class(declaration));
    held
}

fn capability(entry: &Value) -> Option<String> {
    Some(format!(
        "capability:{}/{}",
        entry["name"].as_str()?,
        entry["version"].as_u64()?
    ))
}

fn latency_class(document: &Value) -> Option<String> {
    let class = document["model"]["latency_class"].as_str()?;
    Some(format!("model.latency_class:{class}"))
}

fn names(list_of_names: &Value, prefix: &str) -> Vec<String> {
    let names = list(list_of_names).iter().filter_map(Value::as_str);
    names.map(|name| format!("{prefix}:{name}")).collect()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn unexplained(scheduling: &Value, matched: &Predicates, chosen: Option<&str>) -> usize {
    let passed: Predicates = list(&scheduling["filters_passed"])
        .iter()
        .filter_map(|text| text.as_str().map(str::to_owned))
        .collect();
    let failed = list(&scheduling["filters_failed"]);
    let has_failed = failed
        .iter()
        .any(|entry| entry["candidate"].as_str() == chosen);
    let is_scored = chosen.is_some_and(|chosen| scheduling["scores"].get(chosen).is_some());
    usize::from(passed != *matched) + usize::from(has_failed) + usize::from(!is_scored)
}

fn claims_without_predicate(reason: &Value) -> bool {
    let text = reason.to_string().to_lowercase();
    text.contains("no agent") && !text.contains("capability:") && !text.contains("clearance:")
}
