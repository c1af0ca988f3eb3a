//! What a task asks for, who does it, and how the choice is explained.

use std::fmt::Write as _;

use super::random::Random;

const ROLES: &[&str] = &[
    "claims-clerk",
    "translator",
    "stock-keeper",
    "planner",
    "proof-reader",
    "auditor",
    "drafter",
    "route-finder",
];
const NAMESPACES: &[&str] = &["desk", "depot", "finance", "legal"];
const TOOLS: &[&str] = &[
    "stock.count",
    "stock.find",
    "letters.draft",
    "claims.open",
    "claims.read",
    "routes.plan",
    "prices.quote",
    "archive.search",
];
const CAPABILITIES: &[&str] = &[
    "claim.assess",
    "claim.close",
    "letter.write",
    "letter.translate",
    "stock.reconcile",
    "stock.forecast",
    "route.plan",
    "price.quote",
    "contract.review",
    "image.describe",
    "record.extract",
    "record.verify",
];
const CLEARANCES: &[&str] = &[
    "claims.read",
    "claims.settle",
    "stock.read",
    "stock.write",
    "letters.send",
    "prices.read",
    "customers.read",
    "data.pii-read",
    "contracts.read",
    "routes.read",
];
const RESIDENCIES: &[&str] = &["eu", "us", "us-gov", "apac", "ch"];

/// A task with the agent that was chosen for it. All of it is JSON, ready to be written.
#[derive(Clone, Debug)]
pub(crate) struct Task {
    pub(crate) agent: String,
    pub(crate) agent_name: String,
    pub(crate) requirements: String,
    /// Satisfies the requirements.
    pub(crate) declaration: String,
    /// Lacks one clearance of the requirements.
    pub(crate) lacking: String,
    pub(crate) clearances: String,
    predicates: Vec<String>,
}

impl Task {
    /// A task with so many capabilities and clearances, for that agent.
    pub(crate) fn new(
        random: &mut Random,
        capabilities: usize,
        clearances: usize,
        agent_name: &str,
    ) -> Self {
        let capabilities = random.sample(CAPABILITIES, capabilities);
        let capabilities: Vec<_> = capabilities
            .into_iter()
            .map(|name| (name, 1 + random.below(3)))
            .collect();
        let clearances = random.sample(CLEARANCES, clearances);
        let residency = random.pick(RESIDENCIES);
        let latency = if random.percent(50) {
            "interactive"
        } else {
            "batch"
        };
        let tool = random.pick(TOOLS);
        let namespace = random.pick(NAMESPACES);
        let agent = format!(r#"{{"name":"{agent_name}","namespace":"{namespace}"}}"#);

        let entries = |list: &[(&str, usize)]| {
            let entry = |(name, version): &(&str, usize)| {
                format!(r#"{{"name":"{name}","version":{version}}}"#)
            };
            list.iter().map(entry).collect::<Vec<_>>().join(",")
        };
        let requirements = format!(
            r#"{{"v":"1.0","capabilities":[{}],"clearances":[{}],"residency":"{residency}","model":{{"latency_class":"{latency}"}},"tools":["{tool}"]}}"#,
            entries(&capabilities),
            strings(&clearances)
        );
        let mut declared = capabilities.clone();
        // Versions that nobody asks for, so that none is declared twice.
        declared.extend(
            random
                .sample(CAPABILITIES, 3)
                .into_iter()
                .map(|name| (name, 9)),
        );
        let mut tools = random.sample(TOOLS, 3);
        if !tools.contains(&tool) {
            tools.push(tool);
        }
        let declaration = |clearances: &[&str]| {
            format!(
                r#"{{"v":"1.0","agent":{agent},"capabilities":[{}],"clearances":[{}],"residency":["{residency}"],"tools":[{}],"model":{{"latency_class":"{latency}","cost_ceiling_usd":"0.60"}}}}"#,
                entries(&declared),
                strings(clearances),
                strings(&tools)
            )
        };
        let mut predicates: Vec<_> = capabilities
            .iter()
            .map(|(name, version)| format!("capability:{name}/{version}"))
            .collect();
        predicates.extend(clearances.iter().map(|name| format!("clearance:{name}")));
        predicates.push(format!("residency:{residency}"));
        predicates.push(format!("model.latency_class:{latency}"));
        predicates.push(format!("tool:{tool}"));
        Task {
            declaration: declaration(&clearances),
            lacking: declaration(&clearances[1..]),
            clearances: strings(&clearances),
            agent,
            agent_name: agent_name.to_owned(),
            requirements,
            predicates,
        }
    }

    pub(crate) fn predicates(&self) -> usize {
        self.predicates.len()
    }

    /// The content of `task.submitted`.
    pub(crate) fn submitted(&self, random: &mut Random, out: &mut String) {
        write!(
            out,
            r#"{{"goal":"Settle claim B-{}","inputs":{{"claim":"B-{}"}},"priority":"normal","deadline":"","idempotency_key":"{:032x}","requirements":{}}}"#,
            random.below(1_000_000),
            random.below(1_000_000),
            random.next(),
            self.requirements
        )
        .expect("a string");
    }

    /// The content of `task.admitted`.
    pub(crate) fn admitted(&self, random: &mut Random, out: &mut String) {
        write!(
            out,
            r#"{{"originating_principal":{{"type":"human","id":"sub|{:04x}"}},"agent":{},"authority_envelope":{{"clearances":[{}],"expires":""}},"budget":{{"usd":"2.50","tokens":400000}}}}"#,
            random.below(1 << 16),
            self.agent,
            self.clearances
        )
        .expect("a string");
    }

    /// The lists that explain a placement: the chosen agent passed, of the others those that
    /// `failed` names did not.
    pub(crate) fn explanation(
        &self,
        random: &mut Random,
        candidates: &[Candidate],
        out: &mut String,
    ) {
        out.push_str(r#""candidates":["#);
        join(candidates.iter(), out, |candidate, out| {
            write!(out, "\"{}\"", candidate.name).expect("a string");
        });
        write!(
            out,
            r#"],"filters_passed":[{}],"filters_failed":["#,
            strings(&self.predicates)
        )
        .expect("a string");
        join(
            candidates.iter().filter(|c| c.failed.is_some()),
            out,
            |candidate, out| {
                let predicate =
                    &self.predicates[candidate.failed.unwrap_or(0) % self.predicates.len()];
                write!(
                    out,
                    r#"{{"candidate":"{}","predicate":"{predicate}"}}"#,
                    candidate.name
                )
                .expect("a string");
            },
        );
        out.push_str(r#"],"scores":{"#);
        join(
            candidates.iter().filter(|c| c.failed.is_none()),
            out,
            |candidate, out| {
                write!(
                out,
                r#""{}":{{"total":0.{:04},"affinity":{},"success_rate":0.{:04},"cost":0.{:02}}}"#,
                candidate.name,
                random.below(10_000),
                random.below(2),
                random.below(10_000),
                random.below(100)
            )
            .expect("a string");
            },
        );
        out.push('}');
    }
}

/// An agent that was considered.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    pub(crate) name: String,
    /// Which predicate it failed, if any.
    pub(crate) failed: Option<usize>,
}

/// So many candidates, the first of which passes, as do four in ten of the others.
pub(crate) fn candidates(random: &mut Random, count: usize) -> Vec<Candidate> {
    (0..count)
        .map(|index| Candidate {
            name: agent_name(index),
            failed: (index > 0 && random.percent(60)).then(|| random.below(100)),
        })
        .collect()
}

pub(crate) fn agent_name(index: usize) -> String {
    format!("{}-{index:04}", ROLES[index % ROLES.len()])
}

pub(crate) fn tool(random: &mut Random) -> &'static str {
    random.pick(TOOLS)
}

/// Appends what `each` writes for every item, with commas between.
pub(crate) fn join<T>(
    items: impl Iterator<Item = T>,
    out: &mut String,
    mut each: impl FnMut(T, &mut String),
) {
    for (index, item) in items.enumerate() {
        if index > 0 {
            out.push(',');
        }
        each(item, out);
    }
}

fn strings(texts: &[impl AsRef<str>]) -> String {
    let mut list = String::new();
    join(texts.iter(), &mut list, |text, list| {
        write!(list, "\"{}\"", text.as_ref()).expect("a string");
    });
    list
}
