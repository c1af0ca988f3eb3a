//! Random traces for property tests, from a seed alone, with control over every byte of their text.

const AGENTS: [&str; 6] = [
    "order-analyst",
    "summariser",
    "planner",
    "Prüfer",
    "a/b~c \"q\"",
    "😀",
];
const NAMESPACES: [&str; 3] = ["support", "billing", "日本"];
const CAPABILITIES: [&str; 5] = [
    "order.investigate",
    "case.summarise",
    "text.translate-2",
    "x.y.z",
    "9.a-",
];
const CLEARANCES: [&str; 5] = [
    "orders.read",
    "customers.read",
    "refunds.issue",
    "data.pii-read",
    "a.b.c",
];
const TOOLS: [&str; 4] = ["search", "Shell 2", "mcp/files", "π"];
const LABELS: [&str; 4] = ["eu", "us-gov", "EU", "ch:zh"];
const LATENCIES: [&str; 2] = ["interactive", "batch"];
const KINDS: [&str; 4] = [
    "task.submitted",
    "task.admitted",
    "task.bound",
    "task.rejected",
];
const OTHER_KINDS: [&str; 5] = [
    "task.parked",
    "task.preempted",
    "note",
    "Task.bound",
    "task.bound ",
];

/// Number literals, most of which some reader of JSON gets wrong.
const NUMBERS: [&str; 14] = [
    "0",
    "-0",
    "1",
    "2",
    "7",
    "1.0",
    "3e0",
    "-1",
    "1e400",
    "-1.5E-7",
    "18446744073709551615",
    "18446744073709551616",
    "123456789012345678901234567890",
    "0.1000000000000000055511151231257827",
];

/// Texts that claim nothing, some of them only just.
const NO_CLAIMS: [&str; 8] = [
    "the request names no agent",
    "no agent can approve its own plan",
    "no agent left feedback",
    "budget exhausted after 0/3 agents",
    "all candidates rejected the contract",
    "unschedulable flag not allowed",
    "1.0 agents left",
    "",
];

const CLAIMS: [&str; 8] = [
    "No agent available",
    "0/12 agents are available: 12 busy",
    "NoEligibleAgent",
    "NO_ELIGIBLE_AGENT",
    "none eligible",
    "no agent holds the clearance",
    "all candidates were filtered",
    "task is unschedulable",
];

/// Wordings around the claim; a group's name stands for one of its words.
const WORDINGS: [&str; 18] = [
    "NO FIT AG",
    "NO WORD FIT WORD AG",
    "NO FIT TARGET",
    "NO AG WORD WORD BE currently FIT",
    "NO AG BE FIT",
    "NO AG currently QUALIFY",
    "NO AG DOES the WORD OBJ",
    "NO AG DOES",
    "NO AG BE LEFT AIM WORD",
    "NO AG LEFT",
    "NO AG",
    "0/12 AG BE FIT",
    "ZERO of the 7 AG DOES WORD",
    "none of the 3 AG WORD DOES",
    "none BE FIT",
    "CANNOT find any FIT AG",
    "ALL 12 AG BE DROPPED by the filters",
    "WORD WORD SCHEDULE WORD",
];

const GROUPS: [(&str, &[&str]); 16] = [
    ("NO", &["no", "zero", "0", "No"]),
    ("AG", &["agent", "agents", "candidate", "candidates"]),
    ("BE", &["is", "are", "was", "were"]),
    (
        "FIT",
        &[
            "eligible",
            "available",
            "suitable",
            "matching",
            "qualified",
            "compatible",
            "feasible",
            "capable",
        ],
    ),
    (
        "DOES",
        &[
            "meets",
            "met",
            "match",
            "satisfies",
            "passed",
            "hold",
            "has",
            "have",
            "declares",
        ],
    ),
    (
        "OBJ",
        &[
            "requirement",
            "predicates",
            "filter",
            "constraints",
            "capability",
            "clearances",
            "tool",
            "residency",
        ],
    ),
    (
        "QUALIFY",
        &["qualify", "qualifies", "qualified", "exists", "exist"],
    ),
    ("LEFT", &["found", "registered", "left", "remaining"]),
    ("AIM", &["for", "that", "which", "with", "to", "matching"]),
    ("TARGET", &["placement", "targets", "executor"]),
    ("ZERO", &["0", "zero", "10"]),
    (
        "CANNOT",
        &[
            "could not",
            "couldn't",
            "cannot",
            "can't",
            "unable to",
            "failed to",
            "can’t",
        ],
    ),
    ("ALL", &["all", "every"]),
    (
        "DROPPED",
        &[
            "filtered",
            "filtered out",
            "excluded",
            "failed",
            "rejected",
            "ineligible",
            "unavailable",
        ],
    ),
    (
        "SCHEDULE",
        &[
            "unschedulable",
            "not schedulable",
            "unschedulable task",
            "schedulable",
        ],
    ),
    (
        "WORD",
        &[
            "task", "the", "other", "idle", "runtime", "1.0", "tool", "its", "a", "by", "x.y",
        ],
    ),
];

/// A whole trace without an error (advisories there may be), ended by LF.
pub(crate) fn valid_trace(seed: u64) -> Vec<u8> {
    let random = &mut Random::new(seed);
    let records = Story::tell(random);
    let lines: Vec<Vec<u8>> = records.iter().map(|record| line(random, record)).collect();
    joined(&lines)
}

/// A trace with up to six faults, some of them harmless.
pub(crate) fn trace(seed: u64) -> Vec<u8> {
    let random = &mut Random::new(seed);
    let mut records = Story::tell(random);
    let faults = random.below(7);
    let in_text = (0..faults).filter(|_| random.chance(15)).count();
    for _ in in_text..faults {
        fault(random, &mut records);
    }
    let mut lines: Vec<Vec<u8>> = records.iter().map(|record| line(random, record)).collect();
    for _ in 0..in_text {
        text_fault(random, &mut lines);
    }
    let mut text = joined(&lines);
    if in_text > 0 && random.chance(15) {
        text.pop();
    }
    if in_text > 0 && random.chance(15) {
        text.splice(0..0, *b"\xEF\xBB\xBF");
    }
    text
}

/// One record's line, without LF, in which up to four bytes or runs of bytes are wrong.
pub(crate) fn mutated_line(seed: u64) -> Vec<u8> {
    let random = &mut Random::new(seed);
    let records = Story::tell(random);
    let record = random.pick(&records);
    let mut bytes = line(random, record);
    for _ in 0..random.below(5) {
        mutate(random, &mut bytes);
    }
    bytes.retain(|byte| *byte != b'\n');
    bytes
}

fn joined(lines: &[Vec<u8>]) -> Vec<u8> {
    let mut text = lines.join(&b'\n');
    text.push(b'\n');
    text
}

// ---- Chance ----

/// SplitMix64: small, seedable, and good enough to choose test cases.
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Self {
        Random(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// From 0 to one less than `limit`; 0 where the limit is 0.
    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }

    fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }

    fn text(&mut self, from: &[&str]) -> String {
        (*self.pick(from)).to_owned()
    }

    fn some(&mut self, from: &[&str], percent: usize) -> Vec<String> {
        let kept = from.iter().filter(|_| self.chance(percent));
        kept.map(|text| (*text).to_owned()).collect()
    }

    fn shuffle<T>(&mut self, entries: &mut [T]) {
        for last in (1..entries.len()).rev() {
            entries.swap(last, self.below(last + 1));
        }
    }
}

// ---- JSON text ----

#[derive(Debug, Clone)]
enum Json {
    Null,
    Bool(bool),
    Text(String),
    List(Vec<Json>),
    Object(Vec<(String, Json)>),
    /// Written as it stands: a number's literal, or text that no value has.
    Literal(String),
}

impl Json {
    fn text(text: impl Into<String>) -> Json {
        Json::Text(text.into())
    }

    fn number(number: u64) -> Json {
        Json::Literal(number.to_string())
    }

    fn texts(texts: &[String]) -> Json {
        Json::List(texts.iter().map(Json::text).collect())
    }

    fn object<const N: usize>(members: [(&str, Json); N]) -> Json {
        Json::Object(members.map(|(name, value)| (name.to_owned(), value)).into())
    }

    fn set(&mut self, name: &str, value: Json) {
        if let Json::Object(members) = self {
            match members.iter_mut().find(|(other, _)| other == name) {
                Some((_, old)) => *old = value,
                None => members.push((name.to_owned(), value)),
            }
        }
    }

    fn remove(&mut self, name: &str) {
        if let Json::Object(members) = self {
            members.retain(|(other, _)| other != name);
        }
    }

    /// The node that a path of member names leads to.
    fn at(&mut self, path: &str) -> Option<&mut Json> {
        path.split('/').try_fold(self, |node, name| match node {
            Json::Object(members) => {
                let member = members.iter_mut().find(|(other, _)| other == name);
                member.map(|(_, value)| value)
            }
            _ => None,
        })
    }

    fn list_at(&mut self, path: &str) -> Option<&mut Vec<Json>> {
        match self.at(path) {
            Some(Json::List(entries)) => Some(entries),
            _ => None,
        }
    }

    fn text_at(&mut self, path: &str) -> Option<String> {
        match self.at(path) {
            Some(Json::Text(text)) => Some(text.clone()),
            _ => None,
        }
    }
}

/// How one line is spelled.
struct Writer<'r> {
    random: &'r mut Random,
    space_percent: usize,
    escape_percent: usize,
    out: String,
}

fn line(random: &mut Random, record: &Json) -> Vec<u8> {
    let mut writer = Writer {
        space_percent: if random.chance(20) { 20 } else { 0 },
        escape_percent: if random.chance(20) { 15 } else { 0 },
        random,
        out: String::new(),
    };
    writer.value(record);
    writer.out.into_bytes()
}

impl Writer<'_> {
    fn space(&mut self) {
        while self.random.chance(self.space_percent) {
            self.out.push(*self.random.pick(&[' ', '\t', '\r']));
        }
    }

    fn token(&mut self, token: &str) {
        self.space();
        self.out.push_str(token);
        self.space();
    }

    fn value(&mut self, json: &Json) {
        match json {
            Json::Null => self.token("null"),
            Json::Bool(value) => self.token(if *value { "true" } else { "false" }),
            Json::Literal(literal) => self.token(literal),
            Json::Text(text) => self.string(text),
            Json::List(entries) => {
                self.token("[");
                for (index, entry) in entries.iter().enumerate() {
                    self.comma(index);
                    self.value(entry);
                }
                self.token("]");
            }
            Json::Object(members) => {
                self.token("{");
                for (index, (name, value)) in members.iter().enumerate() {
                    self.comma(index);
                    self.string(name);
                    self.token(":");
                    self.value(value);
                }
                self.token("}");
            }
        }
    }

    fn comma(&mut self, index: usize) {
        if index > 0 {
            self.token(",");
        }
    }

    fn string(&mut self, text: &str) {
        self.space();
        self.out.push('"');
        for char in text.chars() {
            self.char(char);
        }
        self.out.push('"');
        self.space();
    }

    fn char(&mut self, char: char) {
        let must = char < ' ' || char == '"' || char == '\\';
        if !must && !self.random.chance(self.escape_percent) {
            self.out.push(char);
        } else if let Some(short) = short_escape(char).filter(|_| self.random.chance(50)) {
            self.out.extend(['\\', short]);
        } else {
            for unit in char.encode_utf16(&mut [0; 2]) {
                let hex = format!("{unit:04x}");
                let upper = self.random.chance(30);
                self.out.push_str("\\u");
                self.out
                    .push_str(&if upper { hex.to_uppercase() } else { hex });
            }
        }
    }
}

fn short_escape(char: char) -> Option<char> {
    match char {
        '"' | '\\' | '/' => Some(char),
        '\u{8}' => Some('b'),
        '\u{c}' => Some('f'),
        '\n' => Some('n'),
        '\r' => Some('r'),
        '\t' => Some('t'),
        _ => None,
    }
}

/// Any value at all, for what the verifier must not look at.
fn odd_json(random: &mut Random, depth: usize) -> Json {
    let containers = if depth < 4 { 3 } else { 0 };
    match random.below(5 + containers) {
        0 => Json::Null,
        1 => Json::Bool(random.chance(50)),
        2 => Json::Literal(random.text(&NUMBERS)),
        3 | 4 => Json::Text(odd_text(random)),
        5 => Json::List(
            (0..random.below(4))
                .map(|_| odd_json(random, depth + 1))
                .collect(),
        ),
        _ => {
            let members =
                (0..random.below(4)).map(|_| (odd_text(random), odd_json(random, depth + 1)));
            Json::Object(members.collect())
        }
    }
}

fn odd_text(random: &mut Random) -> String {
    random.text(&[
        "",
        "seq",
        "kind",
        "content",
        "plain",
        "q\"uote",
        "back\\slash",
        "tab\tline\nfeed",
        "\u{0}\u{8}\u{c}\r\u{1f}\u{7f}",
        "é",
        "𝄞 clef",
        "\u{feff}bom",
        "\u{2028}",
        "{\"not\": [json",
        "$serde_json::private::Number",
    ])
}

// ---- A valid story ----

/// What a task asks for; its predicates are the P of a placement.
#[derive(Debug, Clone, Default)]
struct Wants {
    capabilities: Vec<(String, u64)>,
    clearances: Vec<String>,
    tools: Vec<String>,
    residency: Option<String>,
    latency: Option<String>,
    agent_ref: Option<String>,
    exclude: Vec<String>,
}

impl Wants {
    fn random(random: &mut Random, chosen: &str) -> Wants {
        let others: Vec<&str> = AGENTS.into_iter().filter(|name| *name != chosen).collect();
        let names = random.some(&CAPABILITIES, 35);
        let versions = names.into_iter().map(|name| (name, random_version(random)));
        Wants {
            capabilities: versions.collect(),
            clearances: random.some(&CLEARANCES, 35),
            tools: random.some(&TOOLS, 25),
            residency: random.chance(50).then(|| random.text(&LABELS)),
            latency: random.chance(40).then(|| random.text(&LATENCIES)),
            agent_ref: random.chance(25).then(|| chosen.to_owned()),
            exclude: random.some(&others, 15),
        }
    }

    fn add(&mut self, random: &mut Random, chosen: &str) {
        let more = Wants::random(random, chosen);
        self.capabilities.extend(more.capabilities);
        self.clearances.extend(more.clearances);
        self.tools.extend(more.tools);
        self.agent_ref = self.agent_ref.take().or(more.agent_ref);
        self.exclude.extend(more.exclude);
    }

    fn predicates(&self) -> Vec<String> {
        let versions = self.capabilities.iter();
        let mut all: Vec<String> = versions
            .map(|(name, version)| format!("capability:{name}/{version}"))
            .collect();
        all.extend(self.clearances.iter().map(|id| format!("clearance:{id}")));
        all.extend(self.tools.iter().map(|name| format!("tool:{name}")));
        all.extend(
            self.residency
                .iter()
                .map(|label| format!("residency:{label}")),
        );
        all.extend(
            self.latency
                .iter()
                .map(|class| format!("model.latency_class:{class}")),
        );
        all.extend(self.agent_ref.iter().map(|name| format!("agentRef:{name}")));
        all.extend(
            self.exclude
                .iter()
                .map(|name| format!("anti-affinity:{name}")),
        );
        all
    }

    fn document(&self, random: &mut Random) -> Json {
        let mut document = Json::object([]);
        let given = random
            .chance(70)
            .then(|| Json::Text(random.text(&["1.0", "1", "1.0.0", "1.3"])));
        optional(random, &mut document, "v", given);
        let capabilities = capabilities(random, &self.capabilities);
        optional(random, &mut document, "capabilities", capabilities);
        let entries = listed(&self.clearances);
        optional(random, &mut document, "clearances", entries);
        let entries = listed(&self.tools);
        optional(random, &mut document, "tools", entries);
        let label = self.residency.clone().map(Json::Text);
        optional(random, &mut document, "residency", label);
        let model = self
            .latency
            .clone()
            .map(|class| Json::object([("latency_class", Json::Text(class))]));
        optional(random, &mut document, "model", model);
        let name = self
            .agent_ref
            .as_ref()
            .map(|name| agent_reference(random, name));
        optional(random, &mut document, "agentRef", name);
        let names = self
            .exclude
            .iter()
            .map(|name| agent_reference(random, name))
            .collect::<Vec<_>>();
        let names = (!names.is_empty()).then_some(Json::List(names));
        optional(random, &mut document, "exclude", names);
        let session = random.chance(20).then(|| Json::Text(odd_text(random)));
        optional(random, &mut document, "session", session);
        decorate(random, &mut document);
        document
    }

    /// A declaration of an agent that can do all this and perhaps more.
    fn declaration(&self, random: &mut Random, agent: &Json) -> Json {
        let mut known = self.capabilities.clone();
        let more = random.some(&CAPABILITIES, 15);
        known.extend(more.into_iter().map(|name| (name, random_version(random))));
        let described = capabilities(random, &known).unwrap_or(Json::List(Vec::new()));
        let held = [self.clearances.clone(), random.some(&CLEARANCES, 15)].concat();
        let mut document = Json::object([
            ("v", Json::Text(random.text(&["1.0", "1", "1.12"]))),
            ("agent", agent.clone()),
            ("capabilities", described),
            ("clearances", Json::texts(&held)),
        ]);
        let labels = [
            self.residency.iter().cloned().collect(),
            random.some(&LABELS, 15),
        ]
        .concat();
        optional(random, &mut document, "residency", listed(&labels));
        let bound = [self.tools.clone(), random.some(&TOOLS, 15)].concat();
        optional(random, &mut document, "tools", listed(&bound));
        let model = self.declared_model(random);
        optional(random, &mut document, "model", model);
        decorate(random, &mut document);
        document
    }

    fn declared_model(&self, random: &mut Random) -> Option<Json> {
        let mut model = Json::object([]);
        let class = self.latency.clone().map(Json::Text);
        optional(random, &mut model, "latency_class", class);
        let ceiling = random.chance(40).then(|| Json::text("0.75"));
        optional(random, &mut model, "cost_ceiling_usd", ceiling);
        (self.latency.is_some() || random.chance(30)).then_some(model)
    }
}

fn random_version(random: &mut Random) -> u64 {
    *random.pick(&[0, 1, 2, 3, u64::MAX])
}

fn listed(entries: &[String]) -> Option<Json> {
    (!entries.is_empty()).then(|| Json::texts(entries))
}

fn capabilities(random: &mut Random, entries: &[(String, u64)]) -> Option<Json> {
    let described = entries.iter().map(|(name, version)| {
        let version = match version {
            0 => Json::Literal(random.text(&["0", "-0"])),
            version => Json::number(*version),
        };
        let mut entry = Json::object([("name", Json::text(name)), ("version", version)]);
        if random.chance(15) {
            entry.set("description", Json::Text(odd_text(random)));
        }
        if random.chance(10) {
            entry.set("inputs", Json::object([("type", odd_json(random, 2))]));
        }
        entry
    });
    let described: Vec<Json> = described.collect();
    (!described.is_empty()).then_some(Json::List(described))
}

fn agent_reference(random: &mut Random, name: &str) -> Json {
    match random.below(3) {
        0 => Json::object([("name", Json::text(name)), ("namespace", Json::text("any"))]),
        1 => Json::object([("name", Json::text(name))]),
        _ => Json::text(name),
    }
}

/// A member that may be left out is now and then `null` instead.
fn optional(random: &mut Random, object: &mut Json, name: &str, value: Option<Json>) {
    match value {
        Some(value) => object.set(name, value),
        None if random.chance(1) => object.set(name, Json::Null),
        None => {}
    }
}

/// Unknown members, doubled ones too, and any order.
fn decorate(random: &mut Random, object: &mut Json) {
    let extra = if random.chance(15) {
        random.below(3)
    } else {
        0
    };
    let reorder = random.chance(30);
    if let Json::Object(members) = object {
        members.extend((0..extra).map(|_| ("x-note".to_owned(), odd_json(random, 1))));
        if reorder {
            random.shuffle(members);
        }
    }
}

/// A trace in the making.
struct Story<'r> {
    random: &'r mut Random,
    records: Vec<Json>,
    next_seq: u64,
    agent: Json,
    chosen: String,
    wants: Wants,
    full_seqs: Vec<u64>,
}

impl<'r> Story<'r> {
    fn tell(random: &'r mut Random) -> Vec<Json> {
        let mut story = Story {
            next_seq: *random.pick(&[0, 1, 1, 1, 40, 1 << 53, u64::MAX - 1000]),
            agent: Json::Null,
            chosen: String::new(),
            wants: Wants::default(),
            full_seqs: Vec::new(),
            records: Vec::new(),
            random,
        };
        story.begin();
        for _ in 0..story.random.below(6) {
            story.go_on();
        }
        story.records
    }

    fn begin(&mut self) {
        self.choose_agent();
        if self.random.chance(90) {
            self.submit();
        }
        if self.random.chance(30) {
            self.other();
        }
        self.admit();
        if self.random.chance(15) {
            self.resume();
        }
        self.bind_in_full(false);
    }

    fn go_on(&mut self) {
        match self.random.below(10) {
            0 => self.other(),
            1 | 2 => self.bind_in_full(false),
            3 | 4 => self.resume(),
            5 => self.bind_in_full(true),
            6 | 7 => self.reject(),
            8 => self.submit(),
            _ => {
                self.choose_agent();
                self.submit();
                self.admit();
            }
        }
    }

    fn choose_agent(&mut self) {
        self.chosen = self.random.text(&AGENTS);
        let namespace = self.random.text(&NAMESPACES);
        self.agent = Json::object([
            ("name", Json::text(&self.chosen)),
            ("namespace", Json::Text(namespace)),
        ]);
    }

    fn record(&mut self, kind: &str, mut content: Json) {
        decorate(self.random, &mut content);
        let mut record = Json::object([
            ("seq", Json::number(self.next_seq)),
            ("kind", Json::text(kind)),
            ("content", content),
        ]);
        decorate(self.random, &mut record);
        self.records.push(record);
        self.next_seq += if self.random.chance(4) { 3 } else { 1 };
    }

    fn other(&mut self) {
        let kind = self.random.text(&OTHER_KINDS);
        let content = odd_json(self.random, 0);
        self.record(&kind, content);
    }

    fn submit(&mut self) {
        // Half of the later submissions repeat what was asked, which is no news.
        if self.random.chance(50) || self.records.is_empty() {
            self.wants = Wants::random(self.random, &self.chosen);
        }
        self.wants.exclude.retain(|name| *name != self.chosen);
        self.wants.agent_ref = self.wants.agent_ref.take().map(|_| self.chosen.clone());
        let mut content = Json::object([("goal", Json::Text(odd_text(self.random)))]);
        let wanted = !self.wants.predicates().is_empty() || self.random.chance(30);
        let document = wanted.then(|| self.wants.document(self.random));
        optional(self.random, &mut content, "requirements", document);
        self.record("task.submitted", content);
    }

    fn admit(&mut self) {
        let content = Json::object([
            ("agent", self.agent.clone()),
            ("budget", odd_json(self.random, 2)),
        ]);
        self.record("task.admitted", content);
    }

    /// What every placement carries, and P.
    fn placement(&mut self) -> (Json, Vec<String>) {
        let mut matched = self.wants.clone();
        let route = self.random.chance(20);
        if route {
            matched.add(self.random, &self.chosen);
        }
        let mut scheduling = Json::object([
            ("requirements", matched.document(self.random)),
            ("declaration", matched.declaration(self.random, &self.agent)),
        ]);
        if route {
            scheduling.set("route", Json::text("rule-7"));
        } else if self.random.chance(10) {
            scheduling.set("route", Json::text(""));
        }
        if self.random.chance(10) {
            scheduling.set("timings", odd_json(self.random, 1));
        }
        (scheduling, matched.predicates())
    }

    fn bind_in_full(&mut self, resumed: bool) {
        let (mut scheduling, predicates) = self.placement();
        let mut content = Json::object([("instance", Json::text("task-4471-x"))]);
        if resumed {
            scheduling.set("recorded_in", self.reference());
            content.set("resumed", Json::Bool(true));
        } else {
            optional(self.random, &mut scheduling, "recorded_in", None);
        }
        self.explain(&mut scheduling, &predicates);
        decorate(self.random, &mut scheduling);
        content.set("scheduling", scheduling);
        self.full_seqs.push(self.next_seq);
        self.record("task.bound", content);
    }

    fn explain(&mut self, scheduling: &mut Json, predicates: &[String]) {
        let mut candidates = vec![self.chosen.clone()];
        let mut failed = Vec::new();
        let mut scores = vec![(
            self.chosen.clone(),
            Json::object([("total", Json::Literal("0.7".into()))]),
        )];
        for name in AGENTS.into_iter().filter(|name| *name != self.chosen) {
            if self.random.chance(50) {
                continue;
            }
            candidates.push(name.to_owned());
            if predicates.is_empty() || self.random.chance(30) {
                scores.push((name.to_owned(), odd_json(self.random, 3)));
            } else {
                let predicate = Json::text(self.random.pick(predicates));
                failed.push(Json::object([
                    ("candidate", Json::text(name)),
                    ("predicate", predicate),
                ]));
            }
        }
        let mut passed = predicates.to_vec();
        passed.extend(
            predicates
                .first()
                .filter(|_| self.random.chance(10))
                .cloned(),
        );
        self.random.shuffle(&mut passed);
        self.random.shuffle(&mut candidates);
        scheduling.set("candidates", Json::texts(&candidates));
        scheduling.set("filters_passed", Json::texts(&passed));
        scheduling.set("filters_failed", Json::List(failed));
        scheduling.set("scores", Json::Object(scores));
    }

    fn reference(&mut self) -> Json {
        let mut reference = Json::object([("kind", Json::text("task.bound"))]);
        let stated = !self.full_seqs.is_empty() && self.random.chance(65);
        let seq = stated.then(|| Json::number(*self.random.pick(&self.full_seqs)));
        optional(self.random, &mut reference, "seq", seq);
        reference
    }

    fn resume(&mut self) {
        let (mut scheduling, _) = self.placement();
        scheduling.set("recorded_in", self.reference());
        for count in ["candidates_count", "scores_count"] {
            if self.random.chance(20) {
                scheduling.set(count, odd_json(self.random, 4));
            }
        }
        optional(self.random, &mut scheduling, "scores", None);
        decorate(self.random, &mut scheduling);
        let content = Json::object([("scheduling", scheduling), ("resumed", Json::Bool(true))]);
        self.record("task.bound", content);
    }

    fn reject(&mut self) {
        let claim = self.random.text(&CLAIMS);
        let predicate = predicate(self.random);
        let reason = match self.random.below(5) {
            0 => None,
            1 => Some(Json::Text(self.random.text(&NO_CLAIMS))),
            2 => Some(Json::Text(format!("{claim}; {predicate} (summariser)"))),
            3 => Some(Json::List(vec![
                Json::Text(claim),
                Json::Null,
                Json::object([(&predicate, Json::Null)]),
            ])),
            _ => Some(Json::object([
                ("message", Json::Text(claim)),
                (
                    "failed",
                    Json::List(vec![Json::Text(predicate), Json::number(1)]),
                ),
            ])),
        };
        let mut content = Json::object([]);
        optional(self.random, &mut content, "reason", reason);
        self.record("task.rejected", content);
    }
}

fn predicate(random: &mut Random) -> String {
    let exemplary = Wants {
        capabilities: vec![(random.text(&CAPABILITIES), 2)],
        clearances: vec![random.text(&CLEARANCES)],
        tools: vec![random.text(&TOOLS)],
        residency: Some(random.text(&LABELS)),
        latency: Some(random.text(&LATENCIES)),
        agent_ref: Some("planner".to_owned()),
        exclude: vec!["planner".to_owned()],
    };
    let predicates = exemplary.predicates();
    random.pick(&predicates).clone()
}

// ---- Faults in records ----

fn fault(random: &mut Random, records: &mut Vec<Json>) {
    match random.below(100) {
        0..=7 => trace_fault(random, records),
        8..=49 => {
            let index = place(random, records);
            node_fault(random, &mut records[index]);
        }
        _ => {
            let index = place(random, records);
            let record = &mut records[index];
            match record.text_at("kind").as_deref() {
                Some("task.submitted") => submitted_fault(random, record),
                Some("task.admitted") => admitted_fault(random, record),
                Some("task.rejected") => set_at(record, "content", "reason", reason(random)),
                _ => bound_fault(random, record),
            }
        }
    }
}

/// Any record, but more often one of the two kinds that carry most of the rules.
fn place(random: &mut Random, records: &mut [Json]) -> usize {
    let any = random.below(records.len());
    let kind = match random.below(10) {
        0..=3 => "task.bound",
        4 | 5 => "task.rejected",
        _ => return any,
    };
    let mut same = Vec::new();
    for (index, record) in records.iter_mut().enumerate() {
        if record.text_at("kind").as_deref() == Some(kind) {
            same.push(index);
        }
    }
    if same.is_empty() {
        any
    } else {
        *random.pick(&same)
    }
}

/// Faults in the order and the kinds of whole records.
fn trace_fault(random: &mut Random, records: &mut Vec<Json>) {
    let index = random.below(records.len());
    let other = random.below(records.len());
    match random.below(5) {
        0 => records.swap(index, other),
        1 if records.len() > 1 => drop(records.remove(index)),
        2 => records.insert(other, records[index].clone()),
        3 => records[index].set("kind", Json::Text(random.text(&KINDS))),
        _ => {
            let seq = random.text(&NUMBERS);
            records[index].set("seq", Json::Literal(seq));
        }
    }
}

/// Breaks any one member or entry, at whatever depth, each as likely as the next.
fn node_fault(random: &mut Random, record: &mut Json) {
    let mut nth = random.below(places(record));
    break_nth(random, record, &mut nth);
}

fn places(node: &Json) -> usize {
    match node {
        Json::Object(members) => members.iter().map(|(_, value)| 1 + places(value)).sum(),
        Json::List(entries) => entries.iter().map(|entry| 1 + places(entry)).sum(),
        _ => 0,
    }
}

/// Counts `left` down in writing order; true once something broke.
fn break_nth(random: &mut Random, node: &mut Json, left: &mut usize) -> bool {
    let count = match node {
        Json::Object(members) => members.len(),
        Json::List(entries) => entries.len(),
        _ => 0,
    };
    for index in 0..count {
        if *left == 0 {
            break_child(random, node, index);
            return true;
        }
        *left -= 1;
        let broke = match node {
            Json::Object(members) => break_nth(random, &mut members[index].1, left),
            Json::List(entries) => break_nth(random, &mut entries[index], left),
            _ => false,
        };
        if broke {
            return true;
        }
    }
    false
}

fn break_child(random: &mut Random, node: &mut Json, index: usize) {
    match node {
        Json::Object(members) => member_fault(random, members, index),
        Json::List(entries) if random.chance(20) => drop(entries.remove(index)),
        Json::List(entries) => entries[index] = changed(random, &entries[index]),
        _ => {}
    }
}

fn member_fault(random: &mut Random, members: &mut Vec<(String, Json)>, index: usize) {
    match random.below(7) {
        0 => members[index].0.push('s'),
        1 => drop(members.remove(index)),
        2 => members[index].1 = Json::Null,
        3 => members.push(members[index].clone()),
        4 => {
            let (name, value) = members[index].clone();
            let other = changed(random, &value);
            members.insert(random.below(members.len() + 1), (name, other));
        }
        _ => members[index].1 = changed(random, &members[index].1),
    }
}

/// A value of another type, or another value of the same type.
fn changed(random: &mut Random, old: &Json) -> Json {
    match old {
        _ if random.chance(30) => odd_json(random, 2),
        Json::Bool(value) => Json::Bool(!value),
        Json::Literal(_) => Json::Literal(random.text(&NUMBERS)),
        Json::Text(text) => changed_text(random, text),
        Json::List(entries) => {
            let mut entries = entries.clone();
            let extra = odd_json(random, 3);
            entries.insert(random.below(entries.len() + 1), extra);
            Json::List(entries)
        }
        Json::Object(_) | Json::Null => Json::object([]),
    }
}

fn changed_text(random: &mut Random, text: &str) -> Json {
    match random.below(7) {
        0 => Json::text(""),
        1 => Json::Text(text.to_uppercase()),
        2 => Json::Text(format!("{text} ")),
        3 => Json::Text(format!("{text}.")),
        4 => Json::Literal(r#""lone \uD83d surrogate""#.to_owned()),
        5 => {
            Json::Text(random.text(&["2.0", "1.", "orders.read", "planner", "batch", "task.bound"]))
        }
        _ => Json::Text(text.replace('.', "_")),
    }
}

fn set_at(record: &mut Json, path: &str, name: &str, value: Json) {
    if let Some(object) = record.at(path) {
        object.set(name, value);
    }
}

fn remove_at(record: &mut Json, path: &str, name: &str) {
    if let Some(object) = record.at(path) {
        object.remove(name);
    }
}

fn submitted_fault(random: &mut Random, record: &mut Json) {
    const DOCUMENT: &str = "content/requirements";
    match random.below(4) {
        0 => remove_at(record, "content", "requirements"),
        1 => lose_entry(random, record, DOCUMENT),
        _ => ask_more(random, record, DOCUMENT),
    }
}

fn admitted_fault(random: &mut Random, record: &mut Json) {
    let (name, namespace) = (random.text(&AGENTS), random.text(&NAMESPACES));
    match random.below(3) {
        0 => set_at(record, "content/agent", "name", Json::Text(name)),
        1 => set_at(record, "content/agent", "namespace", Json::Text(namespace)),
        _ => remove_at(record, "content", "agent"),
    }
}

/// Takes an entry from a list of a requirements document or a declaration, or a whole member.
fn lose_entry(random: &mut Random, record: &mut Json, document: &str) {
    let lists = ["capabilities", "clearances", "tools", "residency"];
    let name = random.text(&lists);
    match record.list_at(&format!("{document}/{name}")) {
        Some(entries) if !entries.is_empty() => drop(entries.remove(random.below(entries.len()))),
        _ => {
            let member = random.text(&["tools", "residency", "model", "agentRef", "exclude"]);
            remove_at(record, document, &member);
        }
    }
}

/// Asks for one thing more, of an agent as often for the chosen one as for another.
fn ask_more(random: &mut Random, record: &mut Json, document: &str) {
    let chosen = record
        .text_at("content/scheduling/declaration/agent/name")
        .filter(|_| random.chance(50));
    let name = chosen.unwrap_or_else(|| random.text(&AGENTS));
    let member = random.text(&[
        "clearances",
        "tools",
        "residency",
        "model",
        "agentRef",
        "exclude",
        "capabilities",
    ]);
    let value = match member.as_str() {
        "clearances" => {
            Json::Text(random.text(&[CLEARANCES[0], CLEARANCES[1], "", "Not.An-Identifier"]))
        }
        "tools" => Json::Text(random.text(&TOOLS)),
        "residency" => Json::Text(random.text(&LABELS)),
        "model" => Json::object([(
            "latency_class",
            Json::Text(random.text(&["interactive", "batch", "slow"])),
        )]),
        "agentRef" | "exclude" => agent_reference(random, &name),
        _ => Json::object([
            ("name", Json::Text(random.text(&CAPABILITIES))),
            ("version", Json::number(2)),
        ]),
    };
    match record.list_at(&format!("{document}/{member}")) {
        Some(entries) => entries.push(value),
        None if ["residency", "model", "agentRef"].contains(&member.as_str()) => {
            set_at(record, document, &member, value)
        }
        None => set_at(record, document, &member, Json::List(vec![value])),
    }
}

fn bound_fault(random: &mut Random, record: &mut Json) {
    match random.below(10) {
        0 | 1 => lose_entry(random, record, "content/scheduling/declaration"),
        2 => lose_entry(random, record, "content/scheduling/requirements"),
        3 | 4 => ask_more(random, record, "content/scheduling/requirements"),
        5 | 6 => explanation_fault(random, record),
        7 | 8 => reference_fault(random, record),
        _ => identity_fault(random, record),
    }
}

fn identity_fault(random: &mut Random, record: &mut Json) {
    const SCHEDULING: &str = "content/scheduling";
    let (name, namespace) = (random.text(&AGENTS), random.text(&NAMESPACES));
    let agent = format!("{SCHEDULING}/declaration/agent");
    match random.below(4) {
        0 => set_at(record, &agent, "name", Json::Text(name)),
        1 => set_at(record, &agent, "namespace", Json::Text(namespace)),
        2 => set_at(
            record,
            SCHEDULING,
            "route",
            Json::Text(random.text(&["", "rule"])),
        ),
        _ => remove_at(record, SCHEDULING, "route"),
    }
}

fn explanation_fault(random: &mut Random, record: &mut Json) {
    let chosen = record
        .text_at("content/scheduling/declaration/agent/name")
        .unwrap_or_default();
    let name = if random.chance(40) {
        chosen
    } else {
        random.text(&AGENTS)
    };
    let predicate = Json::Text(predicate(random));
    let member = random.text(&["filters_passed", "filters_failed", "candidates", "scores"]);
    let path = format!("content/scheduling/{member}");
    if member == "scores" {
        match random.chance(70) {
            true => remove_at(record, &path, &name),
            false => set_at(record, &path, &name, Json::Null),
        }
        return;
    }
    let Some(entries) = record.list_at(&path) else {
        return;
    };
    if !entries.is_empty() && random.chance(40) {
        entries.remove(random.below(entries.len()));
        return;
    }
    entries.push(match member.as_str() {
        "filters_passed" => predicate,
        "candidates" => Json::Text(name),
        _ => Json::object([("candidate", Json::Text(name)), ("predicate", predicate)]),
    });
}

fn reference_fault(random: &mut Random, record: &mut Json) {
    const REFERENCE: &str = "content/scheduling/recorded_in";
    let seq = Json::number(random.below(9) as u64);
    match random.below(8) {
        0 => set_at(
            record,
            "content/scheduling",
            "recorded_in",
            Json::object([("seq", seq)]),
        ),
        1 => set_at(record, REFERENCE, "seq", seq),
        2 => set_at(record, REFERENCE, "kind", Json::text("task.admitted")),
        3 => remove_at(record, REFERENCE, "seq"),
        4 => remove_at(record, "content", "resumed"),
        5 => set_at(record, "content", "resumed", odd_json(random, 4)),
        6 => remove_at(record, "content/scheduling", "recorded_in"),
        _ => {
            let own = record.at("seq").cloned().unwrap_or(Json::Null);
            set_at(record, REFERENCE, "seq", own);
        }
    }
}

/// A wording that may or may not claim that no agent was eligible, with or without a predicate string.
fn reason(random: &mut Random) -> Json {
    let wording = match random.below(4) {
        0 => random.text(&CLAIMS),
        1 => random.text(&NO_CLAIMS),
        _ => random_wording(random),
    };
    let predicate = random.text(&[
        "capability:a.b/1",
        "capability:a.b/1x",
        "capability:a.b/",
        "capability:A.b/1",
        "clearance:a",
        "clearance:a.b",
        "mytool:hammer",
        "x/clearance:x.y",
        "tool: x",
        "residency:)",
        "agentRef:x",
        "anti-affinity:`",
        "Tool:x",
    ]);
    match random.below(10) {
        0 => Json::Text(format!("{wording} {predicate}")),
        1 => Json::Text(format!("{predicate}{wording}")),
        2 => Json::object([(&wording, Json::Null), ("n", odd_json(random, 3))]),
        3 => Json::object([(&predicate, Json::Text(wording))]),
        4 => Json::List(vec![Json::List(vec![Json::Text(wording)])]),
        _ => Json::Text(wording),
    }
}

fn random_wording(random: &mut Random) -> String {
    let wording = random.text(&WORDINGS);
    let mut words: Vec<String> = wording
        .split(' ')
        .map(|word| in_group(random, word))
        .collect();
    if random.chance(30) {
        words.remove(random.below(words.len()));
    }
    if random.chance(30) {
        let word = in_group(random, "WORD");
        words.insert(random.below(words.len() + 1), word);
    }
    let around = [
        "", "", "", "x. ", ". y", ", z", "!", ".", " (", " - ", "–", "\n", "..", ": 0", "' ",
    ];
    let (before, after) = (random.text(&around), random.text(&around));
    format!("{before}{}{after}", join_words(random, &words))
}

fn in_group(random: &mut Random, word: &str) -> String {
    match GROUPS.iter().find(|(name, _)| *name == word) {
        Some((_, words)) => random.text(words),
        None => word.to_owned(),
    }
}

fn join_words(random: &mut Random, words: &[String]) -> String {
    match random.below(7) {
        0 => words.join("_"),
        1 => words.join("-"),
        2 => words.join("  ").to_uppercase(),
        3 => words.iter().map(|word| capitalised(word)).collect(),
        4 => {
            let glue = random.text(&[". ", ", ", " - ", "\t", "/", "\n", "—", ".", " ' "]);
            let (head, tail) = words.split_at(random.below(words.len() + 1));
            [head.join(" "), tail.join(" ")].join(&glue)
        }
        _ => words.join(" "),
    }
}

fn capitalised(word: &str) -> String {
    let mut chars = word.chars();
    let first = chars.next().map(|char| char.to_uppercase().to_string());
    first.unwrap_or_default() + chars.as_str()
}

// ---- Faults in the text ----

fn text_fault(random: &mut Random, lines: &mut Vec<Vec<u8>>) {
    let index = random.below(lines.len());
    match random.below(9) {
        0 => lines.insert(index, random.text(&["", " ", "\r", "\t \r"]).into_bytes()),
        1 => lines.iter_mut().for_each(|line| line.push(b'\r')),
        2 => lines[index].splice(0..0, *b"\xEF\xBB\xBF").for_each(drop),
        3 => {
            lines[index] = random
                .text(&["[]", "3", "null", "\"x\"", "{}", "{} {}", "nul"])
                .into_bytes()
        }
        4 => nest(random, &mut lines[index]),
        5 => lone_surrogate(random, &mut lines[index]),
        _ => mutate(random, &mut lines[index]),
    }
}

/// Unknown members on either side of the depth limit.
fn nest(random: &mut Random, line: &mut Vec<u8>) {
    let levels = 1021 + random.below(5);
    if let Some(end) = line.iter().rposition(|byte| *byte == b'}') {
        let deep = [
            b",\"deep\":".to_vec(),
            vec![b'['; levels],
            vec![b']'; levels],
        ]
        .concat();
        line.splice(end..end, deep);
    }
}

fn lone_surrogate(random: &mut Random, line: &mut Vec<u8>) {
    let quotes = line.iter().enumerate().filter(|(_, byte)| **byte == b'"');
    let places: Vec<usize> = quotes.map(|(place, _)| place + 1).collect();
    if !places.is_empty() {
        let place = *random.pick(&places);
        let escape = random.text(&["\\ud800", "\\uDFFF", "\\ud83d\\u0041", "\\ud83d\\ude00"]);
        line.splice(place..place, escape.into_bytes());
    }
}

fn mutate(random: &mut Random, line: &mut Vec<u8>) {
    const BYTES: &[u8] = b"\"\"{}[]:,\\/0e-.+u \t\x00\x1f\x7f\xff\xc3\xed\xf4tfn";
    if line.is_empty() {
        return;
    }
    let place = random.below(line.len());
    let end = (place + 1 + random.below(6)).min(line.len());
    match random.below(6) {
        0 => line[place] = *random.pick(BYTES),
        1 => line.insert(place, *random.pick(BYTES)),
        2 => line.drain(place..end).for_each(drop),
        3 => {
            let run = line[place..end].to_vec();
            line.splice(place..place, run);
        }
        4 => line.truncate(place),
        // A flip to LF would cut the line in two.
        _ => {
            line[place] = match line[place] ^ (1 << random.below(8)) {
                b'\n' => b'\r',
                flipped => flipped,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    // Both files are siblings wherever they live.
    use super::super::reference;

    const CODES: [&str; 19] = [
        "E_STRUCTURE",
        "E_DECLARATION_SCOPE",
        "E_REQUIREMENTS_MISMATCH",
        "E_CAPABILITY_UNMET",
        "E_CLEARANCE_UNMET",
        "E_TOOL_UNMET",
        "E_RESIDENCY_UNMET",
        "E_MODEL_UNMET",
        "E_AGENTREF_UNMET",
        "E_ANTIAFFINITY_UNMET",
        "E_EXPLANATION",
        "E_REJECTION_REASON",
        "W_NULL",
        "W_SEQ_GAP",
        "W_REFERENCE_PENDING",
        "W_CANDIDATES",
        "W_FAILED_PREDICATE",
        "W_RESUMED_REQUIREMENTS",
        "W_RESUBMITTED",
    ];

    #[test]
    fn valid_traces_have_no_errors() {
        for seed in 0..3000 {
            let trace = valid_trace(seed);
            let mut verdicts = reference::verify(&trace);
            verdicts.retain(|verdict| verdict.code.starts_with("E_"));
            assert!(
                verdicts.is_empty(),
                "seed {seed}: {verdicts:#?}\n{}",
                String::from_utf8_lossy(&trace)
            );
        }
    }

    #[test]
    fn every_code_comes_often() {
        let mut traces_with: BTreeMap<String, usize> = BTreeMap::new();
        for seed in 0..3000 {
            let verdicts = reference::verify(&trace(seed));
            let mut codes: Vec<String> = verdicts.into_iter().map(|verdict| verdict.code).collect();
            codes.sort();
            codes.dedup();
            codes
                .into_iter()
                .for_each(|code| *traces_with.entry(code).or_default() += 1);
        }

        for code in CODES {
            let traces = traces_with.get(code).copied().unwrap_or_default();
            assert!(traces >= 20, "{code} in {traces} traces only");
        }
    }

    #[test]
    fn many_traces_with_faults_are_still_without_error() {
        let sound = (0..1000).filter(|seed| {
            let verdicts = reference::verify(&trace(*seed));
            !verdicts
                .iter()
                .any(|verdict| verdict.code.starts_with("E_"))
        });
        assert!((100..900).contains(&sound.count()));
    }

    #[test]
    fn mutated_lines_are_single_and_of_both_sorts() {
        let lines: Vec<Vec<u8>> = (0..1000).map(mutated_line).collect();
        assert!(lines.iter().all(|line| !line.contains(&b'\n')));
        let accepted = lines.iter().filter(|line| reference::accepts(line)).count();
        assert!((200..800).contains(&accepted), "{accepted}");
    }

    #[test]
    fn a_seed_gives_the_same_trace_again() {
        assert_eq!(trace(7), trace(7));
        assert_ne!(trace(7), trace(8));
    }
}
