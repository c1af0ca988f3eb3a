//! Rule R17: what the reason of a `task.rejected` says.
//!
//! Section 7, step 7 of the schema: a rejection "whose `reason` claims no eligible agent" must
//! "contain at least one predicate string from §5"; section 6 adds that "No agent available" is
//! not a conformant reason. Both halves are judged on plain text here, one text at a time. Which
//! texts a `reason` is made of, and what follows from the two answers, is the caller's business.
//!
//! # The claim
//!
//! A claim is free prose, so `claims_no_agent` looks for it in two steps, neither of which knows
//! about the other:
//!
//! 1. `fold` rewrites the text as *folded clauses*: lower-case words, each ended by `_`, one
//!    clause a line. Identifiers (`NoEligibleAgent`, `NO_ELIGIBLE_AGENT`) become the same words as
//!    prose, and what is said in one clause cannot run on into the next.
//! 2. `CLAIMS`, a table of patterns over whole words, is searched for in it.
//!
//! ```text
//!   Rejected: NoEligibleAgent (0/12 agents can't...)
//!
//!   rejected_ ⏎ no_eligible_agent_ ⏎ 0/12_agents_cant_ ⏎
//! ```
//!
//! `_` ends a word because it can never be part of one: the rule makes a space of it. It needs no
//! escape in a pattern, so that the table stays legible, and as *every* word ends with it a pattern
//! that ends a word needs no second case for the end of the clause. A word is whatever stands
//! between spaces: `1.0` is one, so that "1.0 agents left" holds no `0`; and so is `0/12`, which
//! is why the pattern for shares spells its `/` out.
//!
//! Readings chosen where the rule leaves one open:
//!
//! - Apostrophes are `'`, `’` and `ʼ`, and also `‘`: it opens what `’` closes, and a quoted claim
//!   is to be read alike in both styles of quotation marks.
//! - "A full stop before white space or the end" means the end of the text or of the clause, so that
//!   `("No agent available.")` and "No agent available..." are both read without their full stops.
//! - Line breaks are those of Unicode: LF, VT, FF, CR, NEL, LS and PS.
//! - White space and letter case are those of Unicode; the digits of a number are ASCII.
//!
//! # Cost
//!
//! Rejections are rare and their texts are untrusted. All here takes time and memory linear in the
//! text: folding copies it twice, and `regex` does not backtrack.

use std::fmt;
use std::sync::LazyLock;

use regex::{Regex, RegexSet};

/// Whether the text contains a predicate string of section 5, in one of the seven forms that
/// [`PREDICATE`] spells out.
pub(crate) fn names_predicate(text: &str) -> bool {
    PREDICATE_REGEX.is_match(text)
}

/// Whether the text claims that no agent was eligible: whether one of [`CLAIMS`] is found in one of
/// its clauses.
pub(crate) fn claims_no_agent(text: &str) -> bool {
    CLAIM_REGEXES.is_match(&fold(text))
}

/// The wordings that count as a claim that no agent was eligible: the built-in ones, which always
/// do, and those that an operator added.
///
/// An operator's pattern is matched against the text as it stands, neither folded nor cut into
/// clauses: whoever writes one has a runtime's own wording before them.
#[derive(Clone, Debug, Default)]
pub struct ClaimPatterns {
    /// Not a `RegexSet`: that has one size limit for all its patterns, and so could refuse patterns
    /// each of which is fine.
    added: Vec<Regex>,
}

impl ClaimPatterns {
    /// The built-in wordings and these, each in the syntax of the `regex` crate and within its
    /// default limits.
    ///
    /// # Errors
    ///
    /// The first pattern that is not valid, or too large once compiled.
    pub fn new(patterns: impl IntoIterator<Item = impl AsRef<str>>) -> Result<Self, PatternError> {
        let added = patterns
            .into_iter()
            .map(|pattern| compile_added(pattern.as_ref()))
            .collect::<Result<_, _>>()?;
        Ok(Self { added })
    }

    /// Whether the text claims that no agent was eligible.
    pub(crate) fn claims(&self, text: &str) -> bool {
        claims_no_agent(text) || self.added.iter().any(|pattern| pattern.is_match(text))
    }
}

fn compile_added(pattern: &str) -> Result<Regex, PatternError> {
    Regex::new(pattern).map_err(|reason| PatternError {
        pattern: pattern.to_owned(),
        reason,
    })
}

/// A pattern of the operator's that cannot be used.
#[derive(Clone, Debug)]
pub struct PatternError {
    pattern: String,
    reason: regex::Error,
}

impl fmt::Display for PatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A syntax error draws the pattern over several lines; its last one says what is wrong.
        let reason = self.reason.to_string();
        let reason = reason.lines().last().unwrap_or_default();
        let reason = reason.strip_prefix("error: ").unwrap_or(reason);
        write!(f, "`{}` is no regular expression: {reason}", self.pattern)
    }
}

// No `source`: the message says all of it, and a printed chain of causes would say it twice.
impl std::error::Error for PatternError {}

/// The text as folded clauses: lower-case words, each ended by `_`, one clause a line. Lines may be
/// empty, words never are.
///
/// The steps are the rule's, in the rule's order: a full stop or a hyphen is looked at when the
/// apostrophes are gone and `_` and `-` are not yet spaces.
fn fold(text: &str) -> String {
    let spaced = split_camel_case(text);
    let mut folded = String::with_capacity(spaced.len() + 2);
    for piece in spaced.split(cuts_clause) {
        for token in piece.split_whitespace() {
            fold_token(token, &mut folded);
        }
        folded.push('\n');
    }
    folded
}

/// The text without apostrophes, and with a space between a lower-case letter or digit and an
/// upper-case letter.
fn split_camel_case(text: &str) -> String {
    let mut spaced = String::with_capacity(text.len() + text.len() / 8);
    let mut after_lower = false;
    for c in text.chars() {
        if after_lower && c.is_uppercase() {
            spaced.push(' ');
        }
        if !is_apostrophe(c) {
            spaced.push(c);
        }
        after_lower = c.is_lowercase() || c.is_ascii_digit();
    }
    spaced
}

/// Appends the words of what stands between two white spaces, and a line end where a clause ends
/// with it.
fn fold_token(token: &str, folded: &mut String) {
    let unstopped = token.trim_end_matches('.');
    for word in unstopped.split(['_', '-']).filter(|word| !word.is_empty()) {
        folded.extend(word.chars().flat_map(char::to_lowercase));
        folded.push('_');
    }
    // A hyphen at either end of a piece stands between a space and a cut, not between spaces, but
    // whether the clause is cut there makes no difference: nothing is left on the other side.
    let lone_hyphen = unstopped == "-";
    let full_stop = unstopped.len() < token.len();
    if lone_hyphen || full_stop {
        folded.push('\n');
    }
}

/// Whether the character ends a clause wherever it stands.
fn cuts_clause(c: char) -> bool {
    const PUNCTUATION: [char; 12] = [';', ':', ',', '!', '?', '(', ')', '[', ']', '{', '}', '"'];
    const DASHES: [char; 2] = ['\u{2013}', '\u{2014}'];
    PUNCTUATION.contains(&c) || DASHES.contains(&c) || is_line_break(c)
}

fn is_line_break(c: char) -> bool {
    matches!(c, '\n'..='\r' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

fn is_apostrophe(c: char) -> bool {
    matches!(c, '\'' | '\u{2018}' | '\u{2019}' | '\u{2bc}')
}

/// The pattern with its names replaced by what they stand for, to be found from the start of a word
/// of a folded clause.
fn expand(pattern: &str) -> String {
    let expanded = NAMES
        .iter()
        .fold(pattern.to_owned(), |expanded, (name, words)| {
            expanded.replace(name, &format!("(({words})_)"))
        });
    format!("(?mx) (^|_) ({expanded})")
}

static CLAIM_REGEXES: LazyLock<RegexSet> = LazyLock::new(|| {
    RegexSet::new(CLAIMS.map(expand)).expect("the table is constant, and the tests compile it")
});

static PREDICATE_REGEX: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(PREDICATE).expect("the pattern is constant, and the tests compile it")
});

/// What the names in [`CLAIMS`] stand for: one word each.
///
/// Names alone are in capitals, and `NO` is replaced before `N`, so plain replacement finds them.
const NAMES: [(&str, &str); 8] = [
    ("NO", "no|zero|0"),
    ("AG", "agents?|candidates?"),
    ("BE", "is|are|was|were"),
    (
        "FIT",
        "eligible|available|suitable|matching|qualified|qualifying|capable|compatible|feasible",
    ),
    (
        "DOES",
        "meets?|met|match|matches|matched|satisfy|satisfies|satisfied|pass|passes|passed\
         |holds?|has|have|declares?|declared",
    ),
    (
        "OBJ",
        "requirements?|predicates?|filters?|constraints?|capability|capabilities|clearances?\
         |tools?|residency|grants?",
    ),
    ("N", "[0-9]+"),
    ("W", r"[^_\n]+"),
];

/// The claims that no agent was eligible, as regular expressions over folded clauses.
///
/// `_` ends a word, `^` and `$` are the clause's ends, a space means nothing.
#[rustfmt::skip] // one pattern an entry, in the rule's order, to be compared with it line by line
const CLAIMS: [&str; 14] = [
    /*  1 */ "NO W? FIT W? AG",
    /*  2 */ "NO FIT (placement|target|executor)s?_",
    /*  3 */ "NO AG W{0,4} BE (currently_)? FIT",
    /*  4 */ "NO AG (currently_)? (FIT | (qualify|qualifies|qualified)_ | exists?_)",
    /*  5 */ "NO AG (currently_)? DOES ($ | W{0,3} OBJ)",
    /*  6 */ "NO AG BE? (found|registered|left|remaining)_ ($ | (for|that|which|with|to|matching)_)",
    /*  7 */ "^NO AG$",
    /*  8 */ "((0|zero)(_?/_?|_of_|_out_of_)(the_)? N | none_of_(the_)? N?) AG W{0,3}
              (FIT | DOES | (qualify|qualifies|qualified)_)",
    /*  9 */ "none_of_(the_)? FIT AG",
    /* 10 */ "none_ BE? FIT",
    /* 11 */ "(could_not|couldnt|cannot|can_not|cant|unable_to|failed_to)_ (find|select|choose)_
              ((a|an|any)_)? FIT? AG",
    /* 12 */ "(all|every)_ N? AG BE? ((ineligible|unavailable)_
              | (filtered|filtered_out|excluded|failed|rejected)_ ($ | by_ | the_filters?_))",
    /* 13 */ "(unschedulable|not_schedulable)_ $",
    /* 14 */ "unschedulable_task_",
];

/// A predicate string, as a search that any position may start.
///
/// `(?-u:\b)` says "no ASCII letter, digit or `_`" on the outer side, because the character on its
/// inner side is always one. It is ASCII on both sides of a predicate: a script that writes no
/// spaces may go on right after it. An identifier needs no such end. It is found in
/// `clearance:orders.read.` by giving the last full stop back; before a `/` there is nothing to give
/// back.
const PREDICATE: &str = r#"(?x)
    (?-u:\b)
    ( capability: [a-z0-9]+ (\.[a-z0-9-]+)+ / [0-9]+ (?-u:\b)
    | clearance: [a-z0-9]+ (\.[a-z0-9-]+)+
    | (tool|residency|model\.latency_class|agentRef|anti-affinity): [^\s,;:)\]}"'`]
    )"#;

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use proptest::prelude::*;

    use super::*;

    /// The numbers of the patterns found in the text, as the table counts them.
    fn patterns_found(text: &str) -> Vec<usize> {
        let found = CLAIM_REGEXES.matches(&fold(text));
        found.iter().map(|index| index + 1).collect()
    }

    /// Looks at every row before it fails, so that one run shows all that is wrong.
    fn assert_rows<T>(rows: &[T], judge: impl Fn(&T) -> Option<String>) {
        let wrong: Vec<String> = rows.iter().filter_map(judge).collect();
        assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    }

    /// Each text is a claim by just these patterns.
    fn assert_claims(rows: &[(&[usize], &str)]) {
        assert_rows(rows, |(expected, text)| {
            assert!(!expected.is_empty());
            let found = patterns_found(text);
            (found != *expected || !claims_no_agent(text))
                .then(|| format!("{text:?}: expected {expected:?}, found {found:?}"))
        });
    }

    fn assert_no_claims(texts: &[&str]) {
        assert_rows(texts, |text| {
            claims_no_agent(text).then(|| format!("{text:?}: found {:?}", patterns_found(text)))
        });
    }

    fn assert_predicates(expected: bool, texts: &[&str]) {
        assert_rows(texts, |text| {
            (names_predicate(text) != expected).then(|| format!("{text:?}: expected {expected}"))
        });
    }

    #[test]
    fn examples_of_the_rule_that_claim() {
        assert_claims(&[
            (&[4], "No agent available"),
            (&[8], "0/12 agents are available: …"),
            (&[1], "NoEligibleAgent"),
            (&[1], "NO_ELIGIBLE_AGENT"),
            (&[10], "none eligible"),
            (&[5], "no agent holds the clearance"),
            (&[12], "all candidates were filtered"),
            (&[13], "task is unschedulable"),
        ]);
    }

    #[test]
    fn examples_of_the_rule_that_do_not() {
        assert_no_claims(&[
            "the request names no agent",
            "no agent can approve its own plan",
            "no agent left feedback",
            "budget exhausted after 0/3 agents",
            "all candidates rejected the contract",
            "unschedulable flag not allowed",
            "1.0 agents left",
        ]);
    }

    #[test]
    fn pattern_1_no_fit_agent() {
        assert_claims(&[
            (&[1], "no eligible agent"),
            (&[1], "zero suitable candidates"),
            (&[1], "0 feasible agents"),
            (&[1], "no currently available agent"),
            (&[1], "no eligible healthy agents"),
            (&[1], "found no more qualified support candidates for it"),
        ]);
        assert_no_claims(&[
            "no at all eligible agent",
            "no eligible and healthy agents",
            "no eligible agency",
            "nothing: eligible agent",
            "no eligible agentic planner",
            "10 eligible agents",
            "piano eligible agent",
        ]);
    }

    #[test]
    fn pattern_2_no_fit_place() {
        assert_claims(&[
            (&[2], "no feasible placement"),
            (&[2], "no suitable targets in eu"),
            (&[2], "zero matching executors"),
        ]);
        assert_no_claims(&[
            "no placement",
            "no feasible placemat",
            "no good target",
            "no suitable backup target",
        ]);
    }

    #[test]
    fn pattern_3_no_agent_is_fit() {
        assert_claims(&[
            (&[3], "no agent is eligible"),
            (&[3], "no agent in the namespace is currently available"),
            (&[3], "No agent of this tenant was suitable."),
            (&[3], "no agent that we know are compatible"),
            (&[3, 6], "no candidates were found that are capable"),
        ]);
        assert_no_claims(&[
            "no agent of the very large fleet is eligible",
            "no agent is presently eligible",
            "no agent is",
            "no agent was told; the plan is feasible",
        ]);
    }

    #[test]
    fn pattern_4_no_agent_fit() {
        assert_claims(&[
            (&[4], "no agents available"),
            (&[4], "no candidate qualifies"),
            (&[4], "no agent exists with that name"),
            (&[4], "no agent currently qualified"),
            (&[4], "no agents qualify"),
            (&[4], "0 agents exist"),
            (&[4], "there is no agent available → retry"),
        ]);
        assert_no_claims(&[
            "no agent qualification",
            "no agent existed",
            "no agent ever qualifies",
            "no agent availability report",
            "no reagent available",
        ]);
    }

    #[test]
    fn pattern_5_no_agent_does() {
        assert_claims(&[
            (&[5], "no agent matches"),
            (&[5], "no agent matches. Try later."),
            (&[5], "no agent currently satisfies the predicates"),
            (&[5], "no candidate passed"),
            (&[5], "no agent has all of the clearances"),
            (&[5], "no agent declared capability x"),
            (&[5], "no agent passed: see the log"),
            (&[5], "no agent has, it seems, a way in"),
        ]);
        assert_no_claims(&[
            "no agent has capacity",
            "no agent has each one of the clearances",
            "no agent passed judgement on it",
            "no agent held",
            "no agent has a toolbox",
            "no agent has time; tools are idle",
        ]);
    }

    #[test]
    fn pattern_6_no_agent_found() {
        assert_claims(&[
            (&[6], "no agent found"),
            (&[6], "no agents were found for the task"),
            (&[6], "no candidates remaining"),
            (&[6], "no agent registered that holds it"),
            (&[6], "no agent is registered with it"),
            (&[6], "no agent was found matching it"),
            (&[6], "0 agents left"),
            (&[6], "zero agents left, giving up"),
            (&[6], "no agents left to ask"),
        ]);
        assert_no_claims(&[
            "no agent found fault",
            "no agent left forever",
            "no agent left its post",
            "no agent was ever found",
            "0.5 agents left",
            "10 agents left",
            "v0 agents left",
        ]);
    }

    #[test]
    fn pattern_7_no_agent_alone() {
        assert_claims(&[
            (&[7], "no agents"),
            (&[7], "placement failed: no candidates."),
            (&[7], "Zero agents!"),
            (&[7], "0 agents"),
            (&[7], "no_agent"),
            (&[7], "- no agent -"),
            (&[7], "refused\nno agent\n"),
        ]);
        assert_no_claims(&[
            "no agent name given",
            "with no agent",
            "no agents yet",
            "no agent/candidate",
        ]);
    }

    #[test]
    fn pattern_8_none_of_so_many() {
        assert_claims(&[
            (&[8], "0/12 agents eligible"),
            (&[8], "0 / 12 agents eligible"),
            (&[8], "0 of 12 agents were eligible"),
            (&[8], "0 out of the 12 agents in eu match"),
            (&[8], "0/3 agents in the eu match"),
            (&[8], "zero of 3 candidates qualify"),
            (&[8], "zero/3 candidates passed"),
            (&[8], "none of the 12 agents meets it"),
            (&[8], "none of 12 candidates declared x.y"),
            (&[8], "none of the agents is available"),
            (&[8], "none of agents qualifies"),
        ]);
        assert_no_claims(&[
            "10/12 agents are available",
            "1.0/12 agents are available",
            "0/12.5 agents are available",
            "0/many agents are available",
            "0 of 12 agents",
            "0/3 agents in the eu zone match",
            "none of the others is available",
            "0/12 nodes are available",
        ]);
    }

    #[test]
    fn pattern_9_none_of_the_fit() {
        assert_claims(&[
            (&[9], "none of the eligible agents"),
            (&[9], "none of suitable candidates took it"),
        ]);
        assert_no_claims(&["none of the agents", "none of these eligible agents"]);
    }

    #[test]
    fn pattern_10_none_fit() {
        assert_claims(&[
            (&[10], "none is available"),
            (&[10], "3 asked - none were suitable"),
            (&[10], "of twelve none matching"),
        ]);
        assert_no_claims(&[
            "none",
            "none is currently eligible",
            "none was asked, all are available",
            "nonetheless eligible",
        ]);
    }

    #[test]
    fn pattern_11_could_not_find() {
        assert_claims(&[
            (&[11], "could not find an agent"),
            (&[11], "couldn't select any eligible agent"),
            (&[11], "couldn’t choose agent"),
            (&[11], "cannot find suitable candidates"),
            (&[11], "can not find a candidate"),
            (&[11], "can't find any agents"),
            (&[11], "Unable to select agent"),
            (&[11], "FailedToFindAgent"),
        ]);
        assert_no_claims(&[
            "could find an agent",
            "cannot find the agent",
            "can find an agent",
            "cannot find a trusted agent",
            "failed to ask an agent",
        ]);
    }

    #[test]
    fn pattern_12_all_filtered() {
        assert_claims(&[
            (&[12], "all 12 agents ineligible"),
            (&[12], "every candidate is unavailable today"),
            (&[12], "all agents filtered out"),
            (&[12], "all candidates were filtered out by residency"),
            (&[12], "every agent failed the filters"),
            (&[12], "all agents failed the filter for tools"),
            (&[12], "all candidates excluded by route"),
            (&[12], "all candidates rejected"),
        ]);
        assert_no_claims(&[
            "all twelve agents ineligible",
            "all agents failed the task",
            "all candidates were excluded from review",
            "all the agents are ineligible",
            "overall agents failed",
            "all candidates filtered bypass",
        ]);
    }

    #[test]
    fn patterns_13_and_14_unschedulable() {
        assert_claims(&[
            (&[13], "Unschedulable"),
            (&[13], "not schedulable: quota"),
            (&[13], "pod not-schedulable."),
            (&[14], "an unschedulable task was dropped"),
            (&[14], "UnschedulableTask"),
            (&[13, 14], "unschedulable - UNSCHEDULABLE_TASK"),
        ]);
        assert_no_claims(&[
            "schedulable",
            "not schedulable yet",
            "unschedulable tasks",
            "cannot schedulable",
        ]);
    }

    /// Each word of each name, and none with a letter more, without the patterns' shorthand.
    #[test]
    fn every_word_of_the_names() {
        let tables: [(usize, &str, &str); 6] = [
            (4, "* agent available", "no zero 0"),
            (4, "no * available", "agent agents candidate candidates"),
            (10, "none * eligible", "is are was were"),
            (
                4,
                "no agent *",
                "eligible available suitable matching qualifying capable compatible feasible \
                 qualified qualify qualifies exist exists",
            ),
            (
                5,
                "no agent *",
                "meet meets met match matches matched satisfy satisfies satisfied pass passes \
                 passed hold holds has have declare declares declared",
            ),
            (
                5,
                "no agent has *",
                "requirement requirements predicate predicates filter filters constraint \
                 constraints capability capabilities clearance clearances tool tools residency \
                 grant grants",
            ),
        ];
        for (pattern, frame, words) in tables {
            let words: Vec<&str> = words.split(' ').collect();
            assert_rows(&words, |word| {
                let text = frame.replace('*', word);
                let found = patterns_found(&text);
                (found != [pattern]).then(|| format!("{text:?}: found {found:?}"))
            });
            assert_rows(&words, |word| {
                let text = frame.replace('*', &format!("{word}x"));
                claims_no_agent(&text).then(|| format!("{text:?} is a claim"))
            });
        }
    }

    #[test]
    fn camel_and_snake_case() {
        assert_claims(&[
            (&[4], "noAgentsAvailable"),
            (&[4], "NoAgentAvailableError"),
            (&[4], "errors.v1/x no-agent-available"),
            (&[1], "reason=x,code=1;NoSuitableCandidates"),
            (&[1], "__NO__ELIGIBLE__AGENT__"),
            (&[8], "0_of_12_AgentsAvailable"),
            (&[12], "AllCandidatesFilteredOut"),
        ]);
        assert_no_claims(&[
            "NOAGENTAVAILABLE",
            "noagentsavailable",
            "NOAgentAvailable",
            "0Of12AgentsAvailable",
            "CODE_NOAgentAvailable",
        ]);
    }

    #[test]
    fn apostrophes_are_dropped() {
        assert_claims(&[
            (&[4], "'no agent available'"),
            (&[4], "‘No agent available’"),
            (&[4], "said 'no agent available.' and left"),
            (&[11], "canʼt find an agent"),
            (&[7], "no agent '-' retry"),
            // Nothing tells a genitive from a plural once its apostrophe is gone.
            (&[4], "no agent's available slot"),
        ]);
        assert_no_claims(&["no agent´s available", "`no agent available`"]);
    }

    /// "no agents" is a claim only as a whole clause, so each cut shows.
    #[test]
    fn every_separator_cuts() {
        let cuts = [
            ";",
            ":",
            ",",
            "!",
            "?",
            "(",
            ")",
            "[",
            "]",
            "{",
            "}",
            "\"",
            "\n",
            "\r",
            "\r\n",
            "\u{b}",
            "\u{c}",
            "\u{85}",
            "\u{2028}",
            "\u{2029}",
            "–",
            "—",
            " - ",
            "\t-\u{a0}",
            ". ",
            ".\t",
            "... ",
            ".)",
            ".\"",
            " . ",
            " '-' ",
            ".' ",
        ];
        assert_rows(&cuts, |cut| {
            let text = format!("why{cut}no agents{cut}at all");
            (patterns_found(&text) != [7]).then(|| format!("{text:?} is not cut"))
        });
    }

    #[test]
    fn nothing_else_cuts() {
        let joints = [
            " ", "\t", "\u{a0}", ".", "-", " -", "- ", "_", "/", " / ", "--", " -- ", "…", "'",
            "’", "`", "“", "|", "*", "=", ".x ", ".-", "._",
        ];
        assert_rows(&joints, |joint| {
            let text = format!("why{joint}no agents{joint}at all");
            claims_no_agent(&text).then(|| format!("{text:?} is cut"))
        });
    }

    #[test]
    fn no_claim_runs_over_a_cut() {
        assert_no_claims(&[
            "no, agent available",
            "met no agent. Available again",
            "met no agent - available",
            "met no agent—available",
            "no\nagent available",
            "met no agent (currently) available",
            "none of: 12 agents qualify",
            "all agents failed badly, by the filter",
        ]);
    }

    #[test]
    fn the_end_of_a_clause_is_the_end_of_the_claim() {
        assert_claims(&[
            (&[4], "No agent available."),
            (&[4], "No agent available..."),
            (&[4], "(No agent available.)"),
            (&[4], r#"{"message":"No agent available."}"#),
            (&[4], "No agent available?!"),
            (&[4], "no agent available-"),
        ]);
        assert_no_claims(&["no agent available.x", "no agent available/x"]);
    }

    #[test]
    fn white_space_and_letter_case_are_folded() {
        assert_claims(&[
            (&[4], "  no \t agent\u{a0}\u{3000}available  "),
            (&[4], "NO AGENT AVAILABLE"),
            (&[4], "no agent\u{2003}AVAILABLE"),
            (&[4, 7], "no agents - available no agent available"),
        ]);
        assert_no_claims(&["no agent\u{200b}available", "n o agent available"]);
    }

    #[test]
    fn text_of_any_script() {
        assert_claims(&[
            (&[4], "拒否: no agent available — 以上"),
            (&[4], "İŞ reddedildi, NO AGENT AVAILABLE 🚫"),
            (&[3], "no agent über größe ÉTÉ 日本語 is eligible"),
        ]);
        assert_no_claims(&[
            "",
            " ",
            "\n",
            ".",
            "-",
            "_",
            "'",
            "no agent é",
            "エージェントなし",
        ]);
    }

    #[test]
    fn names_are_all_replaced() {
        assert_rows(&CLAIMS, |pattern| {
            let expanded = expand(pattern);
            expanded
                .contains(|c: char| c.is_ascii_uppercase())
                .then_some(expanded)
        });
    }

    #[test]
    fn predicates_of_each_form() {
        assert_predicates(
            true,
            &[
                "capability:order.investigate/2",
                "clearance:orders.read",
                "tool:hammer",
                "residency:eu",
                "model.latency_class:batch",
                "agentRef:order-analyst",
                "anti-affinity:proposer",
                "no agent: summariser/clearance:x.y failed",
                "見つからない：tool:検索",
            ],
        );
        assert_predicates(
            false,
            &[
                "",
                "capability",
                "tool",
                "tool hammer",
                "Tool:hammer",
                "CLEARANCE:orders.read",
                "agentref:a",
                "model:batch",
                "latency_class:batch",
                "model_latency_class:batch",
                "modelxlatency_class:batch",
                "antiaffinity:a",
                "anti_affinity:a",
                "session:a",
            ],
        );
    }

    #[test]
    fn what_may_stand_before_a_predicate() {
        assert_predicates(
            true,
            &[
                "my-tool:hammer",
                "a.tool:hammer",
                "étool:hammer",
                "\ntool:hammer",
                "(tool:hammer)",
                "tool:tool:hammer",
                "mytool:tool:hammer",
                "tool: tool:hammer",
                "xcapability:capability:a.b/1",
                "clearance:a clearance:a.b",
            ],
        );
        assert_predicates(
            false,
            &[
                "mytool:hammer",
                "MYtool:hammer",
                "my_tool:hammer",
                "2tool:hammer",
                "xclearance:a.b",
                "xcapability:a.b/1",
                "mymodel.latency_class:batch",
                "xagentRef:a",
                "xanti-affinity:a",
            ],
        );
    }

    #[test]
    fn identifiers_and_versions() {
        assert_predicates(
            true,
            &[
                "capability:a.b/2",
                "capability:0.-/00",
                "capability:a.b.c-d/18446744073709551616",
                "capability:a.b/2.",
                "capability:a.b/2.5",
                "capability:a.b/2/3",
                "capability:a.b/2-rc",
                "capability:a.b/2を満たす",
                "capability:a.b/2x capability:a.b/2",
                "clearance:a.b.",
                "clearance:a.b..c",
                "clearance:a.b_c",
                "clearance:a.bC",
                "clearance:a.-",
                "clearance:a.b/2",
            ],
        );
        assert_predicates(
            false,
            &[
                "capability:a/2",
                "capability:a.b",
                "capability:a.b/",
                "capability:a.b/x",
                "capability:a.b/-2",
                "capability:a.b/2x",
                "capability:a.b/2X",
                "capability:a.b/2_",
                "capability:a.b/٣",
                "capability:a.b./2",
                "capability:a..b/2",
                "capability:.a.b/2",
                "capability:a-b.c/2",
                "capability:A.b/2",
                "capability: a.b/2",
                "capability:a.b /2",
                "clearance:a",
                "clearance:a.",
                "clearance:a.B",
                "clearance:a..b",
                "clearance:.a.b",
                "clearance:a-b.c",
                "clearance:",
            ],
        );
    }

    #[test]
    fn labels_end_at_white_space_and_punctuation() {
        for form in [
            "tool",
            "residency",
            "model.latency_class",
            "agentRef",
            "anti-affinity",
        ] {
            let with = |label: &char| format!("{form}:{label}x");
            let enders: Vec<char> = " \t\n\u{a0}\u{3000},;:)]}\"'`".chars().collect();
            assert_rows(&enders, |c| names_predicate(&with(c)).then(|| with(c)));
            let labels: Vec<char> = "aZ0_-./<([{*’é日🚫\u{200b}".chars().collect();
            assert_rows(&labels, |c| (!names_predicate(&with(c))).then(|| with(c)));
            assert!(!names_predicate(&format!("{form}:")));
            assert!(names_predicate(&format!("{form}:x")));
        }
    }

    #[test]
    fn an_operators_patterns_see_the_raw_text() {
        let patterns = ClaimPatterns::new(["^E-17:", r"(?i)\bfleet exhausted\b"]).unwrap();
        assert!(patterns.claims("E-17: nothing to run on"));
        assert!(patterns.claims("the Fleet Exhausted itself"));
        assert!(!patterns.claims("code E-17: nothing"));
        assert!(!patterns.claims("fleet_exhausted"));
        assert!(patterns.clone().claims("no agent available"));
    }

    #[test]
    fn without_an_operators_patterns_the_built_in_ones_remain() {
        for patterns in [
            ClaimPatterns::default(),
            ClaimPatterns::new([""; 0]).unwrap(),
        ] {
            assert!(patterns.claims("no agent available"));
            assert!(!patterns.claims("quota exceeded"));
            assert!(!patterns.claims(""));
        }
    }

    #[test]
    fn a_bad_pattern_is_named_with_its_fault() {
        let unclosed = ClaimPatterns::new(vec!["fine".to_owned(), "(oops".to_owned()]);
        let message = unclosed.unwrap_err().to_string();
        assert!(
            message.starts_with("`(oops` is no regular expression: "),
            "{message}"
        );
        assert!(message.contains("unclosed group"), "{message}");

        let message = ClaimPatterns::new([r"\w{5000}"]).unwrap_err().to_string();
        assert!(
            message.starts_with(r"`\w{5000}` is no regular expression: "),
            "{message}"
        );
        assert!(message.contains("size limit"), "{message}");
    }

    /// Fails where the verdict on the unit, repeated up to this length, takes far longer than any
    /// linear search does. The limit is lax enough for an unoptimised build on a busy machine.
    fn assert_judged_quickly(unit: &str, text_bytes: usize) {
        const LIMIT: Duration = Duration::from_secs(10);
        let text = unit.repeat(text_bytes.div_ceil(unit.len()));
        let start = Instant::now();
        assert!(!claims_no_agent(&text), "{unit:?}");
        assert!(!names_predicate(&text), "{unit:?}");
        let took = start.elapsed();
        assert!(took < LIMIT, "{unit:?}: {took:?}");
    }

    #[test]
    fn a_long_text_takes_linear_time() {
        assert_judged_quickly("no ", 1 << 20);
        assert_judged_quickly("capability:a.b/", 1 << 20);
        let units = [
            "no",
            "a:",
            ".",
            "- ",
            "-",
            "_",
            "'",
            "aB",
            " ",
            "\u{2014}",
            "no agent ",
            "no eligible x ",
            "0/12 agents x ",
            "none of the 12 agents a b ",
            "no agent has a b c ",
            "all 1 agents were ",
            "could not find any ",
            "not ",
            "capability:",
            "clearance:a",
            "a.b",
            "tool:,",
            "1",
            "İ",
            "no agent é 日本語 ",
        ];
        for unit in units {
            assert_judged_quickly(unit, 1 << 17);
        }
    }

    #[test]
    fn a_claim_and_a_predicate_are_found_at_the_end_of_a_long_text() {
        let text = "no ".repeat(100_000) + "agent available tool:x";
        assert!(claims_no_agent(&text));
        assert!(names_predicate(&text));
    }

    /// The rule's folding, one step at a time over the whole text; clauses without words left out.
    fn clauses_step_by_step(text: &str) -> Vec<String> {
        let chars: Vec<char> = text.chars().collect();
        let mut spaced = Vec::new();
        for (at, &c) in chars.iter().enumerate() {
            let before = at.checked_sub(1).map(|before| chars[before]);
            if c.is_uppercase() && before.is_some_and(|b| b.is_lowercase() || b.is_ascii_digit()) {
                spaced.push(' ');
            }
            spaced.push(c);
        }
        spaced.retain(|c| !"'‘’ʼ".contains(*c));

        let is_space = |at: Option<usize>| {
            at.and_then(|at| spaced.get(at))
                .is_some_and(|c| c.is_whitespace())
        };
        let mut cuts = vec![false; spaced.len() + 1];
        cuts[spaced.len()] = true;
        for (at, &c) in spaced.iter().enumerate().rev() {
            cuts[at] = match c {
                '.' => cuts[at + 1] || is_space(Some(at + 1)),
                '-' => is_space(at.checked_sub(1)) && is_space(Some(at + 1)),
                _ => ";:,!?()[]{}\"\n\r–—".contains(c),
            };
        }

        let mut clauses = vec![String::new()];
        for (&c, &cut) in spaced.iter().zip(&cuts) {
            match c {
                _ if cut => clauses.push(String::new()),
                '_' | '-' => clauses.last_mut().unwrap().push(' '),
                c => clauses.last_mut().unwrap().extend(c.to_lowercase()),
            }
        }
        clauses
            .iter()
            .map(|clause| clause.split_whitespace().collect::<Vec<_>>().join(" "))
            .filter(|clause| !clause.is_empty())
            .collect()
    }

    /// Where the identifiers end that start where the text does.
    fn identifier_ends(text: &str) -> Vec<usize> {
        let is_identifier = |text: &str| {
            let mut labels = text.split('.');
            let first = labels.next().unwrap_or_default();
            let mut rest = labels.peekable();
            let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
            !first.is_empty()
                && first.chars().all(is_plain)
                && rest.peek().is_some()
                && rest.all(|label| {
                    !label.is_empty() && label.chars().all(|c| is_plain(c) || c == '-')
                })
        };
        (0..=text.len())
            .filter(|&end| text.get(..end).is_some_and(is_identifier))
            .collect()
    }

    fn predicate_starts(text: &str) -> bool {
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if let Some(rest) = text.strip_prefix("capability:") {
            return identifier_ends(rest).into_iter().any(|end| {
                rest[end..].strip_prefix('/').is_some_and(|version| {
                    let after = version.trim_start_matches(|c: char| c.is_ascii_digit());
                    after.len() < version.len() && !after.starts_with(is_word)
                })
            });
        }
        if let Some(rest) = text.strip_prefix("clearance:") {
            return !identifier_ends(rest).is_empty();
        }
        [
            "tool:",
            "residency:",
            "model.latency_class:",
            "agentRef:",
            "anti-affinity:",
        ]
        .iter()
        .filter_map(|form| text.strip_prefix(form)?.chars().next())
        .any(|c| !c.is_whitespace() && !",;:)]}\"'`".contains(c))
    }

    /// The rule's search for a predicate string, tried at every position.
    fn names_predicate_somewhere(text: &str) -> bool {
        text.char_indices().any(|(at, _)| {
            let before = text[..at].chars().next_back();
            let inside_word = before.is_some_and(|c| c.is_ascii_alphanumeric() || c == '_');
            !inside_word && predicate_starts(&text[at..])
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn folding_is_the_rules_step_by_step(text in "[ab0AÉ. \n'’_:)\\-–é\u{a0}]{0,24}") {
            let folded: Vec<String> = fold(&text)
                .lines()
                .filter(|line| !line.is_empty())
                .map(|line| line.strip_suffix('_').unwrap_or(line).replace('_', " "))
                .collect();
            prop_assert_eq!(folded, clauses_step_by_step(&text));
        }

        #[test]
        fn predicates_are_those_of_a_plain_search(
            parts in prop::collection::vec(
                prop::sample::select(vec![
                    "capability:", "clearance:", "tool:", "agentRef:", "a", "b.c", ".", "-", "/",
                    "2", "_", " ", "X", ")", "é", ":",
                ]),
                0..10,
            ),
        ) {
            let text = parts.concat();
            prop_assert_eq!(names_predicate(&text), names_predicate_somewhere(&text));
        }

        #[test]
        fn any_text_is_judged(text in any::<String>()) {
            claims_no_agent(&text);
            names_predicate(&text);
        }

        #[test]
        fn a_claim_holds_in_any_company(before in any::<String>(), after in any::<String>()) {
            let text = format!("{before}; no agent available; {after}");
            prop_assert!(claims_no_agent(&text));
        }
    }
}
